"""Plans of detection runs: what is refused before any work, and which class means which category."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crypsis.bench.detection_estimate import DetectionEstimate, estimate_detection
from crypsis.bench.detection_plan import class_map, plan_coco_degradation
from crypsis.errors import DatasetError, ImageError, InputError, ModelError, UnknownNameError
from crypsis.io import write_image
from crypsis.types import Condition, Detections, Image
from toy_detection import ENTRIES, Nobody, plan_toy, write_results, write_set

CATEGORIES = {3: "cat", 7: "sea lion", 12: "traffic light"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return write_set(tmp_path_factory.mktemp("plans"))


def test_the_paper_is_59_degradations(data: tuple[str, str]) -> None:
    plan = plan_coco_degradation(*data, [Nobody()])
    assert len(plan.entries) == 59
    assert len(plan.conditions) == 1 + 59 * 5
    assert {e.family for e in plan.entries} == {"imagenet-c", "arniqa", "real-camera"}
    assert not any(e.extra for e in plan.entries)
    assert plan.conditions[:3] == (Condition("clean", 0), *(Condition(plan.entries[0].name, s) for s in (1, 2)))


def test_units_hold_all_images_once(data: tuple[str, str]) -> None:
    plan = plan_toy(data, [Nobody()])
    units = plan.units()
    assert [item.key for unit in units for item in unit.items] == [f"photo-{k:02d}" for k in range(10)]
    assert [unit.images for unit in units] == [4, 4, 2]
    assert plan.measured() == {"photo-00", "photo-05"}
    assert plan_toy(data, [Nobody()], strength_images=0).measured() == frozenset()
    assert len(plan_toy(data, [Nobody()], strength_images=99).measured()) == 10


def test_identity_says_what_decides_the_results(data: tuple[str, str]) -> None:
    base = plan_toy(data, [Nobody()]).identity()
    assert json.loads(json.dumps(base)) == base
    assert str(Path(data[0]).parent) not in json.dumps(base)
    for options in (
        {"seed": 1}, {"limit": 3}, {"labels": "agnostic"}, {"keep": ["cat"]}, {"truth": "aligned"},
        {"strength_images": 3}, {"severities": (5,)}, {"entries": ENTRIES[:2]}, {"models": [Nobody("other")]},
    ):  # fmt: skip
        assert plan_toy(data, **{"models": [Nobody()], **options}).identity() != base
    assert plan_toy(data, [Nobody()], severities=(5, 1, 5)).identity() == base


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"models": []}, InputError, "No detector was named; try --model nanodet"),
        ({"limit": 0}, InputError, "from 1 up; got 0"),
        ({"labels": "name"}, UnknownNameError, "'name'; did you mean 'names'"),
        ({"truth": "moved"}, InputError, "moved"),
        ({"seed": 2**63}, InputError, "at most 64 bits"),
        ({"severities": ()}, InputError, r"some of 1 to 5; got \[\]"),
        ({"severities": (0, 6)}, InputError, "some of 1 to 5"),
        ({"strength_images": -1}, InputError, "0 or more; got -1"),
        ({"entries": ["imagenet-c/contrst"]}, UnknownNameError, "did you mean 'contrast'"),
        ({"families": ["imagenetc"]}, UnknownNameError, "imagenet-c"),
        ({"models": ["onnx:absent.onnx"]}, ModelError, r"absent\.onnx"),
        ({"models": ["predictions:absent"]}, ModelError, "absent"),
        ({"models": [Nobody(), Nobody()]}, InputError, "Two detectors are called 'nobody'.*name=LABEL"),
        ({"keep": ["dog"]}, UnknownNameError, "class of nobody 'dog'"),
    ],
)
def test_wrong_plans(data: tuple[str, str], options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        plan_toy(data, **{"models": [Nobody()], **options})


def test_wrong_data(data: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no/such"):
        plan_toy(("no/such", data[1]), [Nobody()])
    with pytest.raises(DatasetError, match="give it too"):
        plan_coco_degradation(data[0], None, [Nobody()], annotation_format="coco")
    with pytest.raises(UnknownNameError, match="did you mean 'coco'"):
        plan_toy(data, [Nobody()], annotation_format="cocoo")


class Raising(Nobody):
    def detect(self, images: Sequence[Image]) -> list[Detections]:
        raise ModelError("it wants 640 pixels")


def test_a_detector_is_tried_before_any_work(data: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="it wants 640 pixels"):
        plan_toy(data, [Raising()])
    images, annotations = write_set(tmp_path / "set", 3)
    (Path(images) / "photo-00.png").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="it wants 640 pixels"):
        plan_toy((images, annotations), [Raising()])


class Small(Nobody):
    """A detector that takes images of up to 40 rows."""

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        if any(len(image) > 40 for image in images):
            raise ModelError("it wants 40 rows")
        return super().detect(images)


def test_a_detector_that_fails_on_some_sizes_is_not_refused(tmp_path: Path) -> None:
    images, annotations = write_set(tmp_path / "set", 5)
    content = json.loads(Path(annotations).read_text())
    content["images"][4]["height"] = 30
    write_image(Path(images) / "photo-04.png", np.zeros((30, 64, 3), np.uint8))
    Path(annotations).write_text(json.dumps(content))
    plan = plan_toy((images, annotations), [Small()])
    assert plan.warnings == ("nobody fails on photo-00, which is left out of its scores: it wants 40 rows",)


def test_crowds_alone_are_nothing_to_find(tmp_path: Path) -> None:
    images, annotations = write_set(tmp_path / "set", 3)
    content = json.loads(Path(annotations).read_text())
    for found in content["annotations"]:
        found["iscrowd"] = 1
    Path(annotations).write_text(json.dumps(content))
    with pytest.raises(DatasetError, match="no image that was chosen has an object to be found"):
        plan_toy((images, annotations), [Nobody()])


def test_missing_results_are_told_before_any_work(data: tuple[str, str], tmp_path: Path) -> None:
    saved = write_results(tmp_path / "saved", plan_toy(data, [Nobody()]), lambda _, thing: thing)
    assert plan_toy(data, [saved]).categories == {"saved": None}
    for severity in (1, 5):
        for entry in ENTRIES[:2]:
            (tmp_path / "saved" / entry / f"{severity}.json").unlink()
    with pytest.raises(ModelError, match=r"contrast.*… and 1 more$"):
        plan_toy(data, [saved])


@pytest.mark.parametrize(
    ("classes", "labels", "mapping"),
    [
        (("cat", "sea lion", "traffic light"), "names", (3, 7, 12)),
        (("Traffic_Light", "CAT", "Sea-Lion"), "names", (12, 3, 7)),
        (("person", "cat", "sea  lion", "traffic light"), "names", (None, 3, 7, 12)),
        (("a", "b", "c"), "index", (3, 7, 12)),
        (("a", "b"), "index", (3, 7)),
        (("a", "b", "c", "d"), "agnostic", (3, 3, 3, 3)),
    ],
)
def test_class_maps(classes: tuple[str, ...], labels: str, mapping: tuple[int | None, ...]) -> None:
    assert class_map("net", classes, CATEGORIES, labels) == (mapping, [])


def test_categories_without_a_class_are_told() -> None:
    mapping, said = class_map("net", ("dog", "cat"), CATEGORIES, "names")
    assert mapping == (None, 3)
    assert said == ["net has no class for 2 of 3 categories (sea lion, traffic light), which it can never find."]


@pytest.mark.parametrize(
    ("classes", "labels", "words"),
    [
        (("a", "b", "c", "d"), "index", "net has 4 classes and the data set 3 categories.*--labels names"),
        (("a", "b"), "names", r"No class of net \(a, b\).*\(cat, sea lion, traffic light\); use --labels index or"),
    ],
)
def test_classes_that_cannot_be_matched(classes: tuple[str, ...], labels: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        class_map("net", classes, CATEGORIES, labels)


def test_classes_that_are_kept() -> None:
    classes = ("cat", "dog", "sea lion")
    assert class_map("net", classes, CATEGORIES, "names", ["Sea_Lion"])[0] == (None, None, 7)
    assert class_map("net", classes, CATEGORIES, "agnostic", ["dog", "cat"])[0] == (3, 3, None)
    with pytest.raises(UnknownNameError, match="no class of net 'cow'"):
        class_map("net", classes, CATEGORIES, "agnostic", ["cow"])


class Everything(Nobody):
    """A detector of four classes that finds one of each, and counts how often it is asked."""

    classes = ("cat", "dog", "sea lion", "table")
    asked = 0

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        self.asked += len(images)
        boxes = np.tile(np.float32([[2, 3, 12, 13]]), (4, 1))
        return [Detections(boxes, np.full(4, 0.5, np.float32), np.arange(4)) for _ in images]


class Scattered(Nobody):
    """A detector that finds thirty boxes, which depend on the image."""

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        found = []
        for image in images:
            rng = np.random.default_rng(int(image.sum()))
            corners = rng.uniform(0, 30, (30, 4)).astype(np.float32)
            corners[:, 2:] += 31
            scores = np.sort(rng.random(30, np.float32))[::-1].copy()
            found.append(Detections(corners, scores, rng.integers(0, 2, 30)))
        return found


@pytest.mark.parametrize(
    ("options", "categories"),
    [
        ({}, [3, 7]),
        ({"keep": ["sea lion"]}, [7]),
        ({"labels": "agnostic"}, [3, 3, 3, 3]),
        ({"labels": "agnostic", "keep": ["Dog", "table"]}, [3, 3]),
    ],
)
def test_kept_classes_reach_the_rows(
    data: tuple[str, str], tmp_path: Path, options: dict[str, Any], categories: list[int]
) -> None:
    import pyarrow.parquet as pq

    from crypsis.bench.detect import run_detection

    run_detection(plan_toy(data, [Everything()], limit=1, entries=ENTRIES[:1], **options), tmp_path / "run")
    rows = pq.read_table(tmp_path / "run" / "parts").to_pylist()
    assert [row["categories"] for row in rows] == [categories] * 3
    assert {len(row["boxes"]) for row in rows} == {4 * len(categories)}


def test_estimate_tries_a_little_and_scales(data: tuple[str, str]) -> None:
    model = Everything()
    plan = plan_coco_degradation(*data, [model], strength_images=2)
    model.asked = 0
    estimate = estimate_detection(plan)
    assert model.asked < 45
    assert (estimate.images, estimate.conditions, estimate.models, estimate.measured) == (10, 296, 1, 2)
    assert estimate.cells == 2960
    assert min(estimate.decode, estimate.degrade, estimate.measure) > 0
    assert estimate.detect >= 0
    assert estimate.bytes > 0
    assert estimate.hours(4) == pytest.approx(sum(estimate.seconds.values()) / 4 / 3600)


def test_estimate_of_stored_detections_degrades_nothing(data: tuple[str, str], tmp_path: Path) -> None:
    saved = write_results(tmp_path / "saved", plan_toy(data, [Nobody()]), lambda _, thing: thing)
    estimate = estimate_detection(plan_toy(data, [saved]))
    assert estimate.degrade == 0
    assert estimate.measure == pytest.approx(0, abs=1e-3)
    assert estimate.detect > 0


def test_estimate_of_a_full_run_as_text() -> None:
    estimate = DetectionEstimate(
        images=5000, conditions=296, models=2, measured=50, bytes=200,
        decode=0.01, degrade=0.03, measure=0.02, detect=0.06,
    )  # fmt: skip
    seconds = 5000 * 0.01 + 5000 * 295 * 0.03 + 50 * 295 * 0.02 + 5000 * 296 * 0.06
    assert estimate.hours(1) == pytest.approx(seconds / 3600)
    text = estimate.text(8)
    assert "5,000 images × 296 conditions = 1,480,000 images to look at (1,475,000 of them degraded)" in text
    assert "by 2 detectors" in text
    assert "   8 workers  4.6 h" in text
    assert "   1 worker   37.1 h" in text
    assert "disk about 296 MB" in text


@pytest.mark.parametrize(
    ("size", "text"), [(0.04, "59.2 kB"), (10, "14.8 MB"), (2000, "2.96 GB"), (1e6, "1.48 TB"), (0.0005, "740 bytes")]
)
def test_disk_in_units_that_can_be_read(size: float, text: str) -> None:
    estimate = DetectionEstimate(
        images=5000, conditions=296, models=1, measured=0, bytes=size, decode=0.01, degrade=0.0, measure=0.0, detect=0.1
    )
    assert f"disk about {text} for" in estimate.text(1)


def test_estimated_disk_is_what_is_filled(data: tuple[str, str], tmp_path: Path) -> None:
    from crypsis.bench.detect import run_detection

    plan = plan_toy(data, [Scattered()], severities=(1, 2, 3, 4, 5))
    estimate = estimate_detection(plan)
    run_detection(plan, tmp_path / "run")
    size = sum(part.stat().st_size for part in (tmp_path / "run" / "parts").iterdir())
    assert estimate.cells * estimate.bytes == pytest.approx(size, rel=0.15)


def test_estimate_needs_an_image(tmp_path: Path) -> None:
    data = write_set(tmp_path / "set", 3)
    plan = plan_toy(data, [Nobody()])
    for image in Path(data[0]).iterdir():
        image.write_bytes(b"")
    with pytest.raises(ImageError, match="no image can be read"):
        estimate_detection(plan)
