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

from crypsis.datasets.coco import decode_rle, encode_rle, read_coco
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
        (images("a.png", "b/../a.png"), "have the same name"),
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
