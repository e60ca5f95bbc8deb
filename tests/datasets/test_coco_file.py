"""COCO annotation files: what is read, what is refused, and masks as run lengths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from crypsis.datasets.coco import decode_rle, encode_rle, is_coordinate, outline_box, read_coco
from crypsis.errors import DatasetError

NOISE = np.unpackbits(np.frombuffer(bytes.fromhex("7d7ce84821137173b9d507f2ed7277b6232a"), np.uint8))[:143]
Y, X = np.mgrid[:40, :60]
# written by pycocotools 2.0.11, mask.encode
KNOWN = {
    "empty": (np.zeros((7, 9), np.bool_), "o1"),
    "full": (np.ones((7, 9), np.bool_), "0o1"),
    "disc": ((Y - 18) ** 2 + (X - 31) ** 2 < 150, "Xh05P16K4M2N2N2O0O2O000O2O00000001N10001N101N2N2N3L5Jcc0"),
    "corner": ((Y < 9) & (X < 11), "09o00000000000000000000Xm1"),
    "noise": (
        NOISE.reshape(11, 13).astype(bool),
        "111020N23OM00O001001O010O10O0O52LN00O130M10O034ML01131LM15OL10OO0011O31L",
    ),
}


@pytest.mark.parametrize(("mask", "text"), KNOWN.values(), ids=KNOWN)
def test_compressed_run_lengths_are_cocos(mask: np.ndarray, text: str) -> None:
    assert encode_rle(mask, compressed=True) == {"size": list(mask.shape), "counts": text}
    assert np.array_equal(decode_rle({"size": list(mask.shape), "counts": text}, *mask.shape), mask)


@settings(deadline=None, max_examples=60)
@given(
    mask=npst.arrays(np.bool_, npst.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=30)),
    compressed=st.booleans(),
)
def test_run_lengths_there_and_back(mask: np.ndarray, compressed: bool) -> None:
    written = json.loads(json.dumps(encode_rle(mask, compressed=compressed)))
    assert np.array_equal(decode_rle(written, *mask.shape), mask)


@pytest.mark.parametrize(
    "segmentation",
    [
        {"size": [4, 5], "counts": [20]},
        {"size": [5, 4], "counts": [19]},
        {"size": [5, 4], "counts": [30, -10]},
        {"size": [5, 4], "counts": [10.0, 10.0]},
        {"size": [5, 4], "counts": "\x10"},
        {"size": [5, 4], "counts": "o" * 40},
        {"size": [5, 4], "counts": None},
        {"counts": [20]},
    ],
)
def test_wrong_run_lengths(segmentation: dict[str, Any]) -> None:
    with pytest.raises(DatasetError, match="run lengths"):
        decode_rle(segmentation, 5, 4)


def test_run_lengths_of_a_vast_image_make_no_mask() -> None:
    vast = {"size": [10**6, 10**6], "counts": [5, 10**12 - 5]}
    with pytest.raises(DatasetError, match="more than the limit of 200,000,000"):
        decode_rle(vast, 10**6, 10**6)
    assert outline_box(vast, (10**6, 10**6)) == [0, 0, 10**6, 10**6]


@settings(deadline=None, max_examples=100)
@given(mask=npst.arrays(np.bool_, npst.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12)))
def test_box_of_run_lengths_is_that_of_the_mask(mask: np.ndarray) -> None:
    expected = None
    if mask.any():
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        expected = [columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1]
    assert outline_box(encode_rle(mask, compressed=True), mask.shape) == expected


@pytest.mark.parametrize(
    ("outline", "box"),
    [
        ([[4, 2, 9, 2, 9, 7.5], [20, 1, 21, 1, 21, 3]], [4, 1, 17, 6.5]),
        ([[4, 2, 9, 2, 9]], None),
        ([[4, 2, 9, 2]], None),
        ([[4, 2, 9, 2, 9, "7"]], None),
        ([[4, 2, 9, 2, 9, float("nan")]], None),
        ([4, 2, 9, 2, 9, 7], None),
        ([], None),
        ("o1", None),
        ({"size": [3, 4], "counts": [12]}, None),
        ({"size": [4, 3], "counts": [6, 6]}, None),
    ],
)
def test_box_of_an_outline(outline: object, box: list[float] | None) -> None:
    assert outline_box(outline, (3, 4)) == box
    if isinstance(outline, dict):
        assert outline_box(outline, None) is None


@pytest.mark.parametrize("value", [None, True, "1", [1], float("nan"), float("inf"), 1e10, -(10**400)])
def test_no_coordinates(value: object) -> None:
    assert not is_coordinate(value)


@settings(deadline=None, max_examples=100)
@given(text=st.text(max_size=20))
def test_any_text_is_a_mask_or_a_sentence(text: str) -> None:
    try:
        mask = decode_rle({"size": [5, 4], "counts": text}, 5, 4)
    except DatasetError:
        return
    assert mask.shape == (5, 4)


def document(**changes: Any) -> dict[str, Any]:
    return {
        "info": {"year": 2026},
        "categories": [{"id": 3, "name": "animal"}],
        "images": [
            {"id": 7, "file_name": "b/two.jpg", "width": 30, "height": 20},
            {"id": 2, "file_name": "one.png", "width": 10, "height": 10},
        ],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "bbox": [1, 1, 5, 5]}],
        **changes,
    }


def written(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "instances.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_what_is_read(tmp_path: Path) -> None:
    coco = read_coco(written(tmp_path, document()), tmp_path)
    assert [(i.id, i.key, i.name, i.size) for i in coco.images] == [
        (7, "b/two", "b/two.jpg", (20, 30)),
        (2, "one", "one.png", (10, 10)),
    ]
    assert coco.images[0].path == tmp_path / "b" / "two.jpg"
    assert list(coco.annotations) == [7]
    assert set(coco.rest) == {"info", "categories"}
    assert coco.warnings == ()


def test_annotations_of_no_image_are_named(tmp_path: Path) -> None:
    orphan = {"id": 99, "image_id": 1234}
    coco = read_coco(written(tmp_path, document(annotations=[orphan])), tmp_path)
    assert coco.annotations == {}
    assert "1 annotation of no listed image left out: 99" in coco.warnings[0]


def test_segmentations_are_dropped_where_a_box_is(tmp_path: Path) -> None:
    outline = [[1, 1, 5, 1, 5, 5]]
    rows = [{"image_id": 7, "bbox": box, "segmentation": outline} for box in ([1, 1, 4, 4], [], [1, 1, 4])]
    path = written(tmp_path, document(annotations=rows))
    assert ["segmentation" in row for row in read_coco(path, tmp_path).annotations[7]] == [True] * 3
    assert ["segmentation" in row for row in read_coco(path, tmp_path, segmentations=False).annotations[7]] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("height", "width", "size"),
    [(20, 30, (20, 30)), (20.0, 30.0, (20, 30)), (20.5, 30, None), (True, 30, None), (0, 30, None), ("20", 30, None),
     (float("nan"), 30, None), (10**30, 30, None)],
)  # fmt: skip
def test_listed_sizes(height: Any, width: Any, size: tuple[int, int] | None, tmp_path: Path) -> None:
    listed = [{"id": 1, "file_name": "a.png", "height": height, "width": width}]
    (image,) = read_coco(written(tmp_path, document(images=listed, annotations=[])), tmp_path).images
    assert image.size == size


def images(*names: Any) -> dict[str, Any]:
    return document(images=[{"id": n, "file_name": name} for n, name in enumerate(names)], annotations=[])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (images("../outside.png"), "leads out of the image folder"),
        (images("a/../../outside.png"), "leads out"),
        (images("/etc/passwd.png"), "leads out"),
        (images("a\0.png"), "leads out"),
        (images("."), "leads out"),
        (images("notes.txt"), "is not an image"),
        (images("a.png", "a.jpg"), "have the same name"),
        (images("a.png", "b/../a.png"), r"images\[1\]: a\.png is listed twice"),
        (images(5), "file_name must be text"),
        (images(""), "file_name must be text"),
        (document(images=[{"id": 1, "file_name": "a.png"}, {"id": 1, "file_name": "b.png"}]), "occurs twice"),
        (document(images=[{"file_name": "a.png"}]), "id must be a number or text"),
        (document(images=[{"id": True, "file_name": "a.png"}]), "id must be a number or text"),
        (document(images=[]), "lists no images"),
        (document(images=["a.png"]), "list of objects"),
        (document(annotations={"1": {}}), "list of objects"),
        (document(annotations=[{"id": 1}]), "image_id must be"),
        ([], "not a COCO annotation file"),
        ({"annotations": []}, "not a COCO annotation file"),
        ([{"image_id": 1, "score": 0.5}], "list of detections"),
        (document(annotations=[{"image_id": 7}, None]), r"annotations\[1\] is 'None'"),
        ("", "the file is empty"),
        (" \n", "the file is empty"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_refused(content: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=words):
        read_coco(written(tmp_path, content), tmp_path)


def test_missing_places(tmp_path: Path) -> None:
    path = written(tmp_path, document())
    with pytest.raises(DatasetError, match="no such file or folder"):
        read_coco(path, tmp_path / "absent")
    with pytest.raises(DatasetError, match=r"did you mean .*instances\.json"):
        read_coco(tmp_path / "instance.json", tmp_path)
    with pytest.raises(DatasetError, match="is not a folder"):
        read_coco(path, path)
