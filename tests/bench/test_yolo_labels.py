"""Degraded copies as YOLO's tools read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crypsis.bench.annotations import align_annotation
from crypsis.bench.dataset import degrade_dataset, plan_dataset
from crypsis.bench.yolo_labels import yolo_label, yolo_names, yolo_yaml
from crypsis.catalog import get_entry
from crypsis.datasets.detection import open_detection
from crypsis.errors import CrypsisError, DatasetError, InputError, UnknownNameError
from crypsis.io import read_image
from toy_detection import CATEGORIES, write_set

FOG, ELASTIC = "cod10k-c/fog", "imagenet-c/elastic_transform"


def boxes(data: str, annotations: str | None = None) -> dict[str, list[tuple[str, list[float]]]]:
    """Key → names and boxes of the objects that YOLO can say, of a set."""
    found = open_detection(data, annotations)
    return {
        item.key: [
            (found.categories[one["category_id"]], one["bbox"])
            for one in found.annotations.get(item.id, ())
            if not one["iscrowd"]
        ]
        for item in found.items
    }


def assert_same(found: dict[str, Any], wanted: dict[str, Any], tolerance: float) -> None:
    assert found.keys() == wanted.keys()
    for key, objects in wanted.items():
        assert [name for name, _ in found[key]] == [name for name, _ in objects]
        for (_, box), (_, expected) in zip(found[key], objects, strict=True):
            np.testing.assert_allclose(box, expected, atol=tolerance)


@pytest.mark.parametrize("arrangement", ["full", "round-robin"])
def test_what_is_written_opens_as_the_same_set(tmp_path: Path, arrangement: str) -> None:
    data = write_set(tmp_path)
    plan = plan_dataset(
        data[0],
        annotations=Path(data[1]),
        label_format="yolo",
        arrangement=arrangement,
        entries=[FOG],
        severities=[2, 5],
    )
    assert plan.warnings == ("instances: 1 crowd or ignored object left out, as YOLO's labels cannot mark them.",)
    outcome = degrade_dataset(plan, tmp_path / "out")
    assert (outcome.written, outcome.failures, outcome.errors) == (20, (), ())
    for folder in plan.settings.folders():
        place = tmp_path / "out" / folder
        assert {path.name for path in place.iterdir()} == {"images", "labels", "data.yaml"}
        again = open_detection(place)
        assert (again.layout, again.warnings) == ("yolo", ())
        assert again.categories == dict(enumerate(CATEGORIES.values()))
        assert_same(boxes(str(place)), boxes(*data), 1e-5)
    assert len(list((tmp_path / "out").rglob("labels/*.txt"))) == 20  # an image without an object has an empty one
    assert degrade_dataset(plan, tmp_path / "out").written == 0


def test_boxes_that_move_along(tmp_path: Path) -> None:
    data = write_set(tmp_path)
    plan = plan_dataset(
        data[0], annotations=Path(data[1]), label_format="yolo", entries=[FOG, ELASTIC], severities=[5],
        truth="aligned", seed=4,
    )  # fmt: skip
    degrade_dataset(plan, tmp_path / "out")
    before = open_detection(*data)
    wanted: dict[str, Any] = {}
    for item in before.items:
        height, width = read_image(item.image).shape[:2]
        field = get_entry(ELASTIC).source_of(height, width, 5, seed=4, image_key=item.key)
        objects = [one for one in before.annotations.get(item.id, ()) if not one["iscrowd"]]
        moved = [(align_annotation(one, field), one) for one in objects]
        wanted[item.key] = [(CATEGORIES[one["category_id"]], after["bbox"]) for after, one in moved if after]
    assert_same(boxes(str(tmp_path / "out" / FOG / "5")), boxes(*data), 1e-5)
    assert_same(boxes(str(tmp_path / "out" / ELASTIC / "5")), wanted, 1e-5)
    assert wanted != boxes(*data)


def test_labels_come_from_labels_too(tmp_path: Path) -> None:
    data = write_set(tmp_path)
    first = plan_dataset(data[0], annotations=Path(data[1]), label_format="yolo", entries=[FOG], severities=[1])
    degrade_dataset(first, tmp_path / "one")
    place = tmp_path / "one" / FOG / "1"
    second = plan_dataset(str(place), label_format="yolo", entries=[FOG], severities=[1])
    assert second.identity()["dataset"]["annotations_sha256"] == open_detection(place).sha256
    degrade_dataset(second, tmp_path / "two")
    for label in (place / "labels").iterdir():
        assert (tmp_path / "two" / FOG / "1/labels" / label.name).read_bytes() == label.read_bytes()


def test_a_lost_label_is_written_again(tmp_path: Path) -> None:
    data = write_set(tmp_path)
    plan = plan_dataset(data[0], annotations=Path(data[1]), label_format="yolo", entries=[FOG], severities=[1])
    degrade_dataset(plan, tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out/manifest.jsonl").read_text().splitlines()]
    label = tmp_path / "out" / rows[3]["label"]
    text = label.read_text()
    label.unlink()
    (tmp_path / "out" / FOG / "1/data.yaml").unlink()
    degrade_dataset(plan, tmp_path / "out")
    assert label.read_text() == text
    assert (tmp_path / "out" / FOG / "1/data.yaml").exists()
    assert rows[3]["file"] == f"{FOG}/1/images/photo-03.png"
    assert "label_bytes" not in rows[3]


def test_an_image_that_cannot_be_used_has_no_label(tmp_path: Path) -> None:
    data = write_set(tmp_path)
    (tmp_path / "images/photo-04.png").write_bytes(b"")
    plan = plan_dataset(data[0], annotations=Path(data[1]), label_format="yolo", entries=[FOG], severities=[1])
    outcome = degrade_dataset(plan, tmp_path / "out")
    assert len(outcome.failures) == 1
    assert len(list((tmp_path / "out").rglob("labels/*.txt"))) == 9
    assert len(open_detection(tmp_path / "out" / FOG / "1")) == 9


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"label_format": "yollo"}, UnknownNameError, "did you mean 'yolo'"),
        ({"label_format": "yolo"}, DatasetError, "no label files are here"),
        ({"label_format": "yolo", "truth": "moved"}, InputError, "moved"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, options: dict[str, Any], error: type[CrypsisError], sentence: str) -> None:
    data = write_set(tmp_path)
    with pytest.raises(error, match=sentence):
        plan_dataset(data[0], entries=[FOG], **options)


@pytest.mark.parametrize(
    ("name", "image", "label"),
    [
        ("a.png", "images/a.png", "labels/a.txt"),
        ("val/a.b.jpeg", "images/val/a.b.jpeg", "labels/val/a.b.txt"),
        ("images/a.png", "images/pictures/a.png", "labels/pictures/a.txt"),
        ("x/images/my images/a.png", "images/x/pictures/my images/a.png", "labels/x/pictures/my images/a.txt"),
        ("images.png", "images/images.png", "labels/images.txt"),
    ],
)
def test_the_last_folder_called_images_is_the_one_above(name: str, image: str, label: str) -> None:
    assert yolo_names(name) == (image, label)
    above, _, below = f"/{image}".rpartition("/images/")  # as Ultralytics finds a label
    assert f"{above}/labels/{below}".rpartition(".")[0] == f"/{label}".rpartition(".")[0]


@pytest.mark.parametrize(
    ("box", "line"),
    [
        ([10, 5, 20, 10], "1 0.20000000 0.20000000 0.20000000 0.20000000"),
        ([-10, -5, 20, 10], "1 0.05000000 0.05000000 0.10000000 0.10000000"),
        ([90, 45, 20, 10], "1 0.95000000 0.95000000 0.10000000 0.10000000"),
        ([-1e9, -1e9, 2e9, 2e9], "1 0.50000000 0.50000000 1.00000000 1.00000000"),
        ([100, 5, 20, 10], None),
        ([-20, 5, 20, 10], None),
        ([10, 50, 20, 10], None),
    ],
)
def test_boxes_are_cut_at_the_border(box: list[float], line: str | None) -> None:
    found = {"bbox": box, "category_id": 9, "iscrowd": 0, "ignore": 0}
    assert yolo_label([found], (4, 9), 50, 100) == ("" if line is None else f"{line}\n")
    for flag in ("iscrowd", "ignore"):
        assert yolo_label([{**found, flag: 1}], (4, 9), 50, 100) == ""


def test_the_description_names_the_classes() -> None:
    assert yolo_yaml(["cat", "sea: lion"]) == 'train: images\nval: images\nnames:\n  0: "cat"\n  1: "sea: lion"\n'
