"""Detection sets: what malformed annotation files say and keep, label folders, and the truth for evaluators."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.datasets.demo import demo_folder, demo_species
from crypsis.datasets.detection import DetectionDataset, open_detection
from crypsis.datasets.validation import validate_detection
from crypsis.errors import DatasetError, ImageError, InputError, UnknownNameError

NAMES = ("a.png", "b.png", "deep/c.png")
BOX = {"id": 5, "image_id": 1, "category_id": 7, "bbox": [2, 3, 10, 8], "area": 60, "iscrowd": 0}
CROWD = {"id": 6, "image_id": 3, "category_id": 90, "bbox": [0, 0, 30, 20], "area": 600, "iscrowd": 1}
LENGTHS = {"size": [20, 30], "counts": [22, 5, 15, 5, 553]}  # columns 1 and 2, rows 2 to 6


def document(*more: object, **changes: Any) -> dict[str, Any]:
    """Three images: one with an object, one without, one with a crowd alone; gaps in all ids."""
    return {
        "images": [
            {"id": n, "file_name": name, "width": 30, "height": 20} for n, name in zip((1, 4, 3), NAMES, strict=True)
        ],
        "categories": [{"id": 90, "name": "toothbrush"}, {"id": 7, "name": "truck"}],
        "annotations": [BOX, CROWD, *more],
        **changes,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n, name in enumerate(NAMES):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.new("RGB", (30, 20), (n, 9, 9)).save(path)
    return tmp_path


def opened(folder: Path, content: object, **options: Any) -> DetectionDataset:
    path = folder / "instances.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return open_detection(folder / "images", path, **options)


def test_a_good_file(folder: Path) -> None:
    dataset = opened(folder, document())
    assert [(i.id, i.number, i.key, i.file_name, i.size) for i in dataset.items] == [
        (1, 1, "a", "a.png", (20, 30)),
        (4, 4, "b", "b.png", (20, 30)),
        (3, 3, "deep/c", "deep/c.png", (20, 30)),
    ]
    assert (dataset.name, dataset.layout, dataset.warnings, len(dataset)) == ("instances", "coco", (), 3)
    assert list(dataset.categories.items()) == [(7, "truck"), (90, "toothbrush")]
    assert dataset.load(dataset.items[2])[0, 0].tolist() == [2, 9, 9]
    assert dataset.truth() == {
        "images": [
            {"id": 1, "file_name": "a.png", "width": 30, "height": 20},
            {"id": 4, "file_name": "b.png", "width": 30, "height": 20},
            {"id": 3, "file_name": "deep/c.png", "width": 30, "height": 20},
        ],
        "annotations": [
            {**BOX, "id": 1, "bbox": [2.0, 3.0, 10.0, 8.0], "area": 60.0, "ignore": 0},
            {**CROWD, "id": 2, "bbox": [0.0, 0.0, 30.0, 20.0], "area": 600.0, "ignore": 0},
        ],
        "categories": [{"id": 7, "name": "truck"}, {"id": 90, "name": "toothbrush"}],
    }  # fmt: skip


def one(**changes: Any) -> dict[str, Any]:
    """A third annotation, like the first but for its id."""
    return document({**BOX, "id": 8, "bbox": [1, 1, 4, 4], **changes})


def without(name: str) -> dict[str, Any]:
    return document({k: v for k, v in {**BOX, "id": 8, "bbox": [1, 1, 4, 4]}.items() if k != name})


# what the third annotation has, what is said, and how many of the three count
LEFT_OUT: dict[str, tuple[object, str, int]] = {
    "no such image": (one(image_id=99), "1 annotation of no listed image left out: 8", 2),
    "image id as text": (one(image_id="1"), "1 annotation of no listed image left out: 8; write ids as .* quotes", 2),
    "image id is a word": (one(image_id="a"), r"1 annotation of no listed image left out: 8\.$", 2),
    "category id as text": (one(category_id="7"), r"whose category_id is text left out \(write ids .* quotes\): 8", 2),
    "no such category": (one(category_id=8), r"of no listed category left out: 8 \(a\.png\)", 2),
    "no category": (without("category_id"), "of no listed category left out", 2),
    "category is true": (document(categories=[{"id": 1, "name": "x"}], annotations=[
        {**BOX, "category_id": 1}, {**BOX, "id": 8, "category_id": True}]), "of no listed category left out: 8", 1),
    "category is a list": (one(category_id=[7]), "of no listed category left out", 2),
    "no box": (without("bbox"), r"without four finite numbers as a box left out: 8 \(a\.png\)", 2),
    "three numbers": (one(bbox=[1, 2, 3]), "without four finite numbers", 2),
    "text in the box": (one(bbox=["1", 2, 3, 4]), "without four finite numbers", 2),
    "null in the box": (one(bbox=[None, 2, 3, 4]), "without four finite numbers", 2),
    "box is an object": (one(bbox={"x": 1}), "without four finite numbers", 2),
    "NaN": (one(bbox=[float("nan"), 2, 3, 4]), "without four finite numbers", 2),
    "infinite": (one(bbox=[1, 2, float("inf"), 4]), "without four finite numbers", 2),
    "huge": (one(bbox=[1, 2, 1e300, 4]), "without four finite numbers", 2),
    "huge whole number": (one(bbox=[10**400, 2, 3, 4]), "without four finite numbers", 2),
    "no width": (one(bbox=[1, 2, 0, 4]), "whose box has no area left out: 8", 2),
    "negative height": (one(bbox=[1, 2, 3, -4]), "whose box has no area left out", 2),
    "strange crowd": (one(iscrowd="maybe"), "iscrowd or ignore is neither 0 nor 1 left out: 8", 2),
    "strange ignore": (one(ignore=2), "iscrowd or ignore is neither 0 nor 1", 2),
    "listed twice": (document(BOX), r"same id, image, category and box counted once: 5 \(a\.png\)", 2),
    "broken outline": (one(bbox=None, segmentation=[[1, 2, 3]]), "without four finite numbers", 2),
    "run lengths of another size": (one(bbox=[], segmentation={**LENGTHS, "size": [9, 9]}), "without four finite", 2),
    "empty run lengths": (one(bbox=[], segmentation={"size": [20, 30], "counts": [600]}), "without four finite", 2),
}  # fmt: skip
KEPT: dict[str, tuple[object, str, int]] = {
    "shared id": (one(id=5), r"sharing an id with another, numbered anew: 5 \(a\.png\)", 3),
    "id 0": (one(id=0), "with the id 0, which COCO's evaluators take for no match, numbered anew: 0", 3),
    "no area": (without("area"), "without a usable area, for which that of the box is taken: 8", 3),
    "area is NaN": (one(area=float("nan")), "without a usable area", 3),
    "area below 0": (one(area=-1), "without a usable area", 3),
    "over the border": (one(bbox=[20, 10, 20, 20]), "over the border of its image, kept", 3),
    "outside": (one(bbox=[40, 10, 5, 5]), "wholly outside its image, kept", 3),
    "ignored": (one(ignore=1), "marked ignore but not iscrowd", 3),
    "polygons for a box": (one(bbox=None, segmentation=[[4, 2, 9, 2, 9, 7]]), "taken from the segmentation: 8", 3),
    "polygons beside a broken box": (one(bbox=[1, 2, float("nan"), 4], segmentation=[[4, 2, 9, 2, 9, 7]]),
                                     "without a readable box, which is taken from the segmentation: 8", 3),
    "no size": (document(images=[{"id": 1, "file_name": "a.png"}, *document()["images"][1:]]),
                "1 image without usable width and height: a.png", 2),
    "size is nonsense": (document(images=[{"id": 1, "file_name": "a.png", "width": -30, "height": True},
                                          *document()["images"][1:]]), "1 image without usable", 2),
    "not all images listed": (document(images=document()["images"][::2]),
                              "1 image beside the listed ones left out: b.png", 2),
}  # fmt: skip
SILENT: dict[str, tuple[object, int]] = {
    "no id": (without("id"), 3),
    "no iscrowd": (without("iscrowd"), 3),
    "image id as text everywhere": (
        document(
            images=[{**i, "id": str(i["id"])} for i in document()["images"]], annotations=[{**BOX, "image_id": "1"}]
        ),
        1,
    ),
    "crowd is true": (one(iscrowd=True), 3),
    "crowd is text": (one(iscrowd="0", ignore="false"), 3),
    "crowd is null": (one(iscrowd=None), 3),
    "whole numbers as decimals": (one(image_id=1.0, category_id=7.0), 3),
    "a little over the border": (one(bbox=[20, 10, 10.6, 10.4]), 3),
    "byte order mark": (b"\xef\xbb\xbf" + json.dumps(document()).encode(), 2),
    "fields nobody knows": (one(score=0.5, attributes={"bbox": []}), 3),
}


@pytest.mark.parametrize(("content", "words", "count"), [*LEFT_OUT.values(), *KEPT.values()], ids=[*LEFT_OUT, *KEPT])
def test_one_sentence_and_nothing_else_lost(folder: Path, content: object, words: str, count: int) -> None:
    dataset = opened(folder, content)
    assert len(dataset.warnings) == 1
    with pytest.raises(DatasetError, match=words):
        raise DatasetError(dataset.warnings[0])
    assert str(folder / "instances.json") in dataset.warnings[0]
    truth = dataset.truth()
    assert [row["id"] for row in truth["annotations"]] == list(range(1, count + 1))
    assert truth["annotations"][0]["bbox"] == [2, 3, 10, 8]
    json.dumps(truth, allow_nan=False)


@pytest.mark.parametrize(("content", "count"), SILENT.values(), ids=SILENT)
def test_what_means_the_same_is_read_without_a_word(folder: Path, content: object, count: int) -> None:
    dataset = opened(folder, content)
    assert dataset.warnings == ()
    assert len(dataset.truth()["annotations"]) == count


PLAIN = json.dumps(document())
REFUSED: dict[str, tuple[object, str]] = {
    "empty file": ("", "the file is empty"),
    "cut off": (PLAIN[:-40], r"is not JSON \(.*line 1 column \d+"),
    "not text": (b"\xff\xd8\xff\xe0", "is not JSON"),
    "list": ([BOX], "needs an object with a list of images"),
    "results": ([{"image_id": 1, "category_id": 7, "bbox": [1, 1, 2, 2], "score": 0.5}], "is a list of detections"),
    "no annotations": ({k: v for k, v in document().items() if k != "annotations"}, "holds no object to score against"),
    "empty annotations": (document(annotations=[]), "holds no object to score against"),
    "annotations in an object": (document(annotations={"5": BOX}), "annotations must be a list of objects"),
    "annotation is null": (document(None), r"annotations\[2\] is 'None'"),
    "annotation without image": (without("image_id"), r"annotations\[2\]: image_id must be a number or text"),
    "only annotations of other images": (
        document(annotations=[{**BOX, "image_id": "1"}]),
        "holds no object to score against.*of no listed image left out: 5",
    ),
    "panoptic": (
        document(annotations=[{"image_id": 1, "file_name": "a.png", "segments_info": []}]),
        "holds panoptic segments",
    ),
    "captions": (document(annotations=[{"id": 1, "image_id": 1, "caption": "a truck"}]), "holds captions"),
    "no categories": ({k: v for k, v in document().items() if k != "categories"}, "lists no categories"),
    "category without a name": (document(categories=[{"id": 7}]), r"categories\[0\]: needs a name"),
    "category id as text": (document(categories=[{"id": "7", "name": "x"}]), r"categories\[0\]: needs an id"),
    "category below 0": (document(categories=[{"id": -7, "name": "x"}]), r"categories\[0\]: needs an id"),
    "category is text": (document(categories=["truck"]), r"categories\[0\]: needs an id"),
    "category twice": (
        document(categories=[{"id": 7, "name": "x"}, {"id": 7, "name": "y"}]),
        r"categories\[1\]: the id 7 occurs twice \(x and y\)",
    ),
    "image id twice": (
        document(images=[{"id": 1, "file_name": "a.png"}, {"id": 1, "file_name": "b.png"}]),
        r"images\[1\]: the id 1 occurs twice \(b\.png\)",
    ),
    "file name twice": (
        document(images=[{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "./a.png"}]),
        r"images\[1\]: a\.png is listed twice",
    ),
    "file name leads out": (document(images=[{"id": 1, "file_name": "../a.png"}]), r"images\[0\].*leads out"),
    "no file name": (document(images=[{"id": 1, "coco_url": "x/a.png"}]), r"images\[0\]: file_name must be text"),
    "images absent": (
        document(images=[{"id": n, "file_name": f"{n}.png"} for n in (1, 2)] + document()["images"][1:]),
        r"2 of the 4 images that .*instances\.json lists are not there \(1\.png, 2\.png\)",
    ),
    "image in a folder below": (document(images=[{"id": 1, "file_name": "c.png"}]), "not there.*did you mean .*deep"),
    "name too long": (document(images=[{"id": 1, "file_name": "x" * 300 + ".png"}]), "1 of the 1 image .* not there"),
    "number without end": ('{"images": [], "annotations": [' + "9" * 5000 + "]}", "is not JSON|list of objects"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(folder: Path, content: object, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        opened(folder, content)


def test_all_kinds_of_faults_are_named_at_once(folder: Path) -> None:
    names = ["a.png", "../b.png", "b.txt", 5, "a.png", "gone.png", *(f"../{n}.png" for n in range(9))]
    images = [{"id": min(n, 5), "file_name": name} for n, name in enumerate(names, 1)]
    content = document({**BOX, "image_id": None}, images=images, categories=[{"id": "7", "name": "x"}, {"id": 3}])
    with pytest.raises(DatasetError) as caught:
        opened(folder, content)
    message = str(caught.value)
    for words in (
        "images[1]: the file_name '../b.png' leads out", "(And 7 more like these.)", "images[2]: 'b.txt' is not an",
        "images[3]: file_name must be text; got '5'", "images[4]: a.png is listed twice", "the id 5 occurs twice (gone",
        "annotations[2]: image_id must be a number or text", "categories[0]: needs an id", "without quotes; got '7'",
        "categories[1]: needs a name",
    ):  # fmt: skip
        assert words in message
    assert message.count("instances.json") == 1
    assert len(message) < 2_500
    with pytest.raises(DatasetError, match=r"images\[0\]: the file_name.* 1 of the 1 image .* not there"):
        opened(folder, document(images=[{"id": 1, "file_name": "../a.png"}, {"id": 2, "file_name": "gone.png"}]))


def test_categories_of_the_same_name_are_told(folder: Path) -> None:
    dataset = opened(folder, document(categories=[{"id": 7, "name": "cat"}, {"id": 90, "name": "cat"}]))
    assert len(dataset.warnings) == 1
    assert "the categories 7 and 90 are all called 'cat'" in dataset.warnings[0]


def test_several_faults_are_one_sentence_each(folder: Path) -> None:
    bad = [{**BOX, "id": 10 + n, "bbox": [1, 1, 0, n]} for n in range(8)]
    dataset = opened(folder, document(*bad, {**BOX, "id": 0}, {**BOX, "id": 30, "image_id": 2}))
    assert len(dataset.truth()["annotations"]) == 3
    orphan, empty, zero = dataset.warnings
    assert "1 annotation of no listed image" in orphan
    assert "8 annotations whose box has no area left out: 10 (a.png), " in empty
    assert empty.endswith("and 3 more.")
    assert "id 0" in zero


@pytest.mark.parametrize(
    ("segmentation", "box"),
    [
        ([[4, 2, 9, 2, 9, 7.5]], [4, 2, 5, 5.5]),
        ([[4, 2, 9, 2, 9, 7], [20, 1, 21, 1, 21, 3]], [4, 1, 17, 6]),
        (LENGTHS, [1, 2, 2, 5]),
        ({"size": [20, 30], "counts": [0, 600]}, [0, 0, 30, 20]),
    ],
)
def test_box_from_the_segmentation(folder: Path, segmentation: object, box: list[float]) -> None:
    content = document(annotations=[{**BOX, "bbox": [], "segmentation": segmentation}])
    for keep in (False, True):
        dataset = opened(folder, content, segmentations=keep)
        (found,) = dataset.annotations[1]
        assert found["bbox"] == box
        assert found.get("segmentation") == (segmentation if keep else None)


def test_segmentations_are_kept_when_asked_for(folder: Path) -> None:
    content = document({**BOX, "id": 8, "bbox": [1, 2, 2, 5], "segmentation": LENGTHS})
    assert "segmentation" not in opened(folder, content).annotations[1][1]
    kept = opened(folder, content, segmentations=True)
    assert kept.annotations[1][1]["segmentation"] == LENGTHS
    assert kept.truth() == opened(folder, content).truth()


@pytest.mark.parametrize(("ids", "numbers"), [
    ((12, 0, 5), [12, 0, 5]), ((12, -1, 5), [1, 2, 3]), (("12", "x", "5"), [1, 2, 3]), ((2**60, 1, 5), [1, 2, 3]),
])  # fmt: skip
def test_images_get_numbers_that_evaluators_take(folder: Path, ids: tuple[Any, ...], numbers: list[int]) -> None:
    listed = [{"id": i, "file_name": name, "width": 30, "height": 20} for i, name in zip(ids, NAMES, strict=True)]
    dataset = opened(folder, document(images=listed, annotations=[{**BOX, "image_id": ids[2]}]))
    assert [item.id for item in dataset.items] == list(ids)
    assert [item.number for item in dataset.items] == numbers
    assert dataset.truth()["annotations"][0]["image_id"] == numbers[2]
    assert [item.number for item in dataset.limit(2).items] == numbers[:2]


def test_a_subset_has_its_own_truth_alone(folder: Path) -> None:
    dataset = opened(folder, document())
    part = dataset.limit(2)
    assert [item.key for item in part.items] == ["a", "b"]
    truth = part.truth()
    assert [image["id"] for image in truth["images"]] == [1, 4]
    assert [row["image_id"] for row in truth["annotations"]] == [1]
    assert truth["categories"] == dataset.truth()["categories"]
    assert part.fingerprint() != dataset.fingerprint() == opened(folder, document(BOX)).fingerprint()
    assert part.sha256 == dataset.sha256 != opened(folder, document(BOX)).sha256
    assert dataset.limit(3) is dataset
    with pytest.raises(InputError, match="at least 1 image"):
        dataset.limit(0)


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3) | st.sampled_from([0, 1, 5, 7, 90]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)
FIELDS = ("id", "image_id", "category_id", "bbox", "area", "iscrowd", "ignore", "segmentation")


@settings(deadline=None, max_examples=150)
@given(changes=st.lists(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3), max_size=3))
def test_any_annotation_is_used_named_or_refused(
    changes: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("set")
    (folder / "images" / "deep").mkdir(parents=True)
    for name in NAMES:
        (folder / "images" / name).touch()
    try:
        dataset = opened(folder, document(*({**BOX, "id": n, **c} for n, c in enumerate(changes, 10))))
    except DatasetError as error:
        assert "annotations[" in str(error)  # noqa: PT017 - or else nothing is raised
        return
    rows = dataset.truth()["annotations"]
    assert 2 <= len(rows) <= 2 + len(changes)
    assert len(rows) == 2 + len(changes) or dataset.warnings
    assert all(w > 0 and h > 0 and row["area"] >= 0 for row in rows for *_, w, h in [row["bbox"]])
    json.dumps(rows, allow_nan=False)


# --- pictures -------------------------------------------------------------------------------------------------


def turned(path: Path, stored: tuple[int, int]) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    PIL.Image.new("RGB", stored, (9, 9, 9)).save(path, exif=exif)


def test_boxes_belong_to_the_upright_picture(folder: Path) -> None:
    turned(folder / "images" / "as-shown.jpg", (20, 30))
    turned(folder / "images" / "as-stored.jpg", (30, 20))
    PIL.Image.new("L", (30, 20)).save(folder / "images" / "gray.jpg")
    PIL.Image.new("CMYK", (30, 20)).save(folder / "images" / "cmyk.jpg")
    PIL.Image.new("RGB", (31, 20)).save(folder / "images" / "other.jpg")
    (folder / "images" / "broken.jpg").write_bytes(b"\xff\xd8")
    stems = ("as-shown", "as-stored", "broken", "cmyk", "gray", "other")
    listed = [{"id": n, "file_name": f"{name}.jpg", "width": 30, "height": 20} for n, name in enumerate(stems, 1)]
    far = {**BOX, "id": 9, "image_id": 5, "bbox": [50, 3, 10, 8]}
    dataset = opened(folder, document(images=listed, annotations=[BOX, {**CROWD, "image_id": 5}, far]))
    shapes = {}
    errors = {}
    for item in dataset.items:
        try:
            shapes[item.key] = dataset.load(item).shape
        except ImageError as error:
            errors[item.key] = str(error)
    assert shapes == dict.fromkeys(("as-shown", "cmyk", "gray"), (20, 30, 3))
    assert "listed with 30×20: its boxes lie as before the EXIF rotation (orientation 6)" in errors["as-stored"]
    assert "damaged" in errors["broken"] or "not an image" in errors["broken"]
    assert (
        errors["other"]
        == "other: the image is 31×20 pixels upright, but listed with 30×20; repair the file or its entry."
    )

    seen: list[tuple[int, int]] = []
    report = validate_detection(dataset, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(n, 6) for n in range(1, 7)]
    assert [(p.key, p.severity, p.kind) for p in report.problems] == [
        ("as-shown", "note", "exif-rotation"),
        ("as-stored", "note", "exif-rotation"),
        ("as-stored", "error", "size-mismatch"),
        ("broken", "error", "unreadable-image"),
        ("gray", "warning", "box-outside"),
        ("other", "error", "size-mismatch"),
    ]
    assert (report.images, report.usable, report.ok) == (6, 3, False)
    assert (report.objects, report.crowds, report.empty) == (3, 1, 4)
    assert report.categories == {"truck": 2, "toothbrush": 1}
    assert (report.width, report.height) == ((20, 31), (20, 30))
    assert report.to_dict()["counts"] == report.counts()
    text = report.text()
    assert "instances: 6 images with boxes (coco) in " in text
    assert "boxes     3, 1 of them crowds; 4 images without" in text
    assert "classes   2: truck 2, toothbrush 1" in text
    assert text.endswith("6 images checked, 3 cannot be scored.")


def test_equal_files_are_named(folder: Path) -> None:
    (folder / "images" / "b.png").write_bytes((folder / "images" / "a.png").read_bytes())
    report = validate_detection(opened(folder, document()))
    assert [(p.key, p.kind) for p in report.problems] == [("b", "duplicate-image")]
    assert report.ok


# --- the demo set ---------------------------------------------------------------------------------------------


def test_the_demo_set() -> None:
    dataset = open_detection("demo")
    assert (dataset.name, dataset.layout, dataset.warnings, len(dataset)) == ("demo", "demo", (), 48)
    assert list(dataset.categories) == list(range(1, 25))
    assert list(dataset.categories.values()) == sorted(set(demo_species().values()))
    for item in dataset.items:
        mask = cv2.imread(str(demo_folder() / "masks" / f"{item.key}.png"), cv2.IMREAD_GRAYSCALE)
        (found,) = dataset.annotations[item.id]
        assert found["bbox"] == list(cv2.boundingRect(mask))
        assert found["area"] == np.count_nonzero(mask)
        assert dataset.categories[found["category_id"]] == demo_species()[item.key]
    assert validate_detection(dataset).ok
    assert validate_detection(dataset).problems == ()


# --- folders of label files -----------------------------------------------------------------------------------

YAML = {
    "list": "path: .\nnames: ['red truck', \"owl\"]  # two\n",
    "list on lines": "names: [red truck,\n  owl]\nnc: 2\n",
    "braces": "nc: 2\nnames: {0: red truck, 1: owl}\n",
    "dashes": "names:\n- red truck\n- 'owl'\nnc: 2\n",
    "numbers": "# names: [x]\nnames:\n  0: red truck # big\n  1: owl\n\nval: images/val\n",
    "gap": "names:\n  1: owl\n  0: red truck\n",
}


def yolo(folder: Path) -> None:
    (folder / "labels" / "deep").mkdir(parents=True)
    (folder / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.4\n\n1 0.1 0.1 0.2 0.1 0.3 0.35\n")
    (folder / "labels" / "deep" / "c.txt").write_text(
        "1 0.5 0.5 1 1\n1 300 200 20 20\n0 0.5 0.5\n9 0.5 0.5 0.1 0.1\nx 0 0 1 1\n"
    )
    (folder / "labels" / "z.txt").write_text("")


@pytest.mark.parametrize("names", YAML.values(), ids=YAML)
def test_yolo(folder: Path, names: str) -> None:
    yolo(folder)
    (folder / "data.yaml").write_text(names)
    dataset = open_detection(folder)
    assert dict(dataset.categories) == {0: "red truck", 1: "owl"}
    assert (dataset.layout, [i.id for i in dataset.items]) == ("yolo", ["a", "b", "deep/c"])
    rows = dataset.truth()["annotations"]
    assert [(r["image_id"], r["category_id"]) for r in rows] == [(1, 0), (1, 1), (3, 1)]
    for row, box in zip(rows, ([12, 6, 6, 8], [3, 2, 6, 5], [0, 0, 30, 20]), strict=True):
        assert row["bbox"] == pytest.approx(box)
        assert row["area"] == pytest.approx(box[2] * box[3])
    warnings = "\n".join(dataset.warnings)
    assert "1 × image without a label file, taken to show no object: b." in warnings
    assert "1 × label file without an image, left out: z." in warnings
    assert (
        "without four finite numbers as a box left out: deep/c.txt:2 (deep/c.png), deep/c.txt:3 (deep/c.png)."
        in warnings
    )
    assert "of no listed category left out: deep/c.txt:4 (deep/c.png), deep/c.txt:5 (deep/c.png)." in warnings
    assert len(dataset.warnings) == 4


def test_where_yolo_labels_are_found(folder: Path) -> None:
    yolo(folder)
    (folder / "labels" / "classes.txt").write_text("red truck\nowl\n")
    known = open_detection(folder).truth()["annotations"]
    for images, labels in ((folder / "images", None), (folder / "images", folder / "labels")):
        assert open_detection(images, labels, format="yolo").truth()["annotations"] == known
    (part,) = open_detection(folder / "images" / "deep").truth()["annotations"]
    assert part["bbox"] == [0, 0, 30, 20]
    for old in ("a.txt", "classes.txt"):
        (folder / "labels" / old).rename(folder / "images" / old)
    assert [i.id for i in open_detection(folder / "images", folder / "images").items] == ["a", "b", "deep/c"]


def test_yolo_shares_are_of_the_upright_picture(folder: Path) -> None:
    yolo(folder)
    (folder / "data.yaml").write_text(YAML["list"])
    turned(folder / "images" / "t.jpg", (40, 10))
    (folder / "labels" / "t.txt").write_text("0 0.5 0.75 1 0.5\n")
    dataset = open_detection(folder)
    assert dataset.items[-1].size == (40, 10) == dataset.load(dataset.items[-1]).shape[:2]
    assert dataset.annotations["t"][0]["bbox"] == [0, 20, 10, 20]


def test_yolo_refusals(folder: Path) -> None:
    yolo(folder)
    with pytest.raises(DatasetError, match=r"classes have no names; put a classes\.txt"):
        open_detection(folder)
    (folder / "data.yaml").write_text("names: names.txt\n")
    with pytest.raises(DatasetError, match="classes have no names"):
        open_detection(folder)
    (folder / "data.yaml").write_text(YAML["list"])
    (folder / "images" / "b.png").write_bytes(b"no picture")
    with pytest.raises(DatasetError, match=r"1 file cannot be read: b\.png"):
        open_detection(folder)


def voc_object(name: str, corners: tuple[float, ...], more: str = "") -> str:
    sides = "".join(f"<{k}>{v}</{k}>" for k, v in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True))
    return f"<object><name>{name}</name><bndbox>{sides}</bndbox>{more}</object>"


def voc(folder: Path, **files: str) -> Path:
    (folder / "images").rename(folder / "JPEGImages")
    (folder / "Annotations").mkdir()
    for name, body in files.items():
        (folder / "Annotations" / f"{name}.xml").write_text(body)
    return folder


SIZE = "<size><width>30</width><height>20</height><depth>3</depth></size>"


def test_pascal_voc(folder: Path) -> None:
    first = voc_object("owl", (1, 1, 30, 20)) + voc_object("bat", (3, 4, 3, 5), "<difficult>1</difficult>")
    broken = voc_object("owl", ("left", 1, 2, 3)) + voc_object("", (1, 1, 5, 5))
    files = {"a": f"<annotation>{SIZE}{first}</annotation>", "b": f"<annotation>{broken}</annotation>", "q": "<a/>"}
    dataset = open_detection(voc(folder, **files))
    assert (dataset.layout, dict(dataset.categories)) == ("voc", {1: "bat", 2: "owl"})
    assert [(i.id, i.size) for i in dataset.items] == [("a", (20, 30)), ("b", None)]
    assert [(r["category_id"], r["bbox"], r["ignore"]) for r in dataset.truth()["annotations"]] == [
        (2, [0, 0, 30, 20], 0),
        (1, [2, 3, 1, 2], 1),
    ]
    warnings = "\n".join(dataset.warnings)
    assert "1 × image without a label file, left out: deep/c." in warnings
    assert "1 × label file without an image, left out: q." in warnings
    assert "without usable width and height: b.png" in warnings
    assert "without four finite numbers as a box left out: b.xml object 1 (b.png)" in warnings
    assert "of no listed category left out: b.xml object 2 (b.png)" in warnings
    assert open_detection(folder / "JPEGImages").truth() == dataset.truth()


BOMB = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><annotation>&c;</annotation>'


@pytest.mark.parametrize(("body", "words"), [
    (BOMB, "declares a document type"), ("<annotation>", "no element found"), ("", "no element found"),
    ("{}", "not well-formed"),
])  # fmt: skip
def test_pascal_voc_refusals(folder: Path, body: str, words: str) -> None:
    with pytest.raises(DatasetError, match=rf"2 files cannot be read: a\.xml \({words}.*b\.xml \({words}"):
        open_detection(voc(folder, a=body, b=body))


@pytest.mark.parametrize(
    ("open_it", "words"),
    [
        (lambda f: open_detection(f / "absent"), "no such file or folder"),
        (lambda f: open_detection(f / "images", f / "instance.json"), r"did you mean .*instances\.json"),
        (lambda f: open_detection(f / "images"), "no label files are here; give a COCO file"),
        (lambda f: open_detection(f / "images", f / "images"), "no label files are here"),
        (lambda f: open_detection(f / "images", format="coco"), "are a file beside the images"),
        (lambda f: open_detection(f / "instances.json"), "no label files are here"),
        (lambda f: open_detection(f / "instances.json", f / "instances.json"), "is not a folder of images"),
        (lambda f: open_detection("demo", "absent.json"), "no such file or folder"),
    ],
)
def test_places_that_hold_no_set(folder: Path, open_it: Callable[[Path], object], words: str) -> None:
    opened(folder, document())
    with pytest.raises(DatasetError, match=words):
        open_it(folder)


def test_unknown_format(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'coco'"):
        open_detection(folder, format="cocos")
