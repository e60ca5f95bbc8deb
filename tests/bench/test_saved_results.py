"""Runs over detections that were made elsewhere: their numbers are scored as they are, or refused before any work."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from crypsis.bench.detect import run_detection
from crypsis.bench.detection_plan import plan_coco_degradation
from crypsis.bench.stored_detections import StoredDetections, store_detections
from crypsis.detection_results import DetectionRun, summarize_detections
from crypsis.errors import DatasetError, ModelError, PlanChangedError, UnknownNameError
from crypsis.io import write_image
from crypsis.metrics.detection import SCORES
from crypsis.models.saved_detections import SavedDetections
from crypsis.types import Condition
from toy_detection import ENTRIES, Nobody, plan_toy, write_results, write_set

CLEAN, CONTRAST = Condition("clean", 0), Condition(ENTRIES[0], 5)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return write_set(tmp_path_factory.mktemp("saved-results"))


def save(folder: Path, data: tuple[str, str], change: Any = lambda thing: thing) -> str:
    return write_results(folder, plan_toy(data, [Nobody()]), lambda _, thing: change(thing))


def as_decimals(folder: Path, seed: int) -> tuple[str, str, str]:
    """Write a set with boxes of one decimal, and detections whose overlaps and areas lie on COCO's thresholds."""
    rng = np.random.default_rng(seed)
    images, objects, results = [], [], []
    for image in range(1, 13):
        name = f"{image}.png"
        write_image(folder / "images" / name, np.full((120, 160, 3), 90, np.uint8))
        images.append({"id": image, "file_name": name, "width": 160, "height": 120})
        for _ in range(6):
            x, y = (round(float(v), 1) for v in rng.uniform(0, 60, 2))
            width, height = [(20.0, 10.0), (40.0, 25.6), (32.0, 32.0), (30.1, 33.3)][rng.integers(4)]
            category = int(rng.integers(1, 3))
            box = {"image_id": image, "category_id": category, "bbox": [x, y, width, height]}
            objects.append({**box, "id": len(objects) + 1, "area": round(width * height, 2), "iscrowd": 0})
            for _ in range(3):
                share = 0.5 + 0.05 * int(rng.integers(0, 10))
                size = [width, round(share * height, 2)] if rng.random() < 0.7 else [40.0, 25.6]
                score = round(float(rng.uniform(0.1, 1)), 5)
                results.append({**box, "bbox": [x, y, *size], "score": score - 1e-9 * int(rng.integers(0, 2))})
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    (folder / "truth.json").write_text(json.dumps({"images": images, "annotations": objects, "categories": categories}))
    for number, name in enumerate(("clean.json", f"{ENTRIES[0]}/5.json")):
        (folder / "net" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "net" / name).write_text(json.dumps(results[number:]))
    return str(folder / "images"), str(folder / "truth.json"), str(folder / "net")


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_pycocotools_on_the_files(tmp_path: Path, seed: int) -> None:
    images, truth, saved = as_decimals(tmp_path, seed)
    plan = plan_coco_degradation(images, truth, [f"predictions:{saved}"], entries=[ENTRIES[0]], severities=[5])
    run_detection(plan, tmp_path / "run")
    run = DetectionRun.open(tmp_path / "run")
    for evaluator in ("pycocotools", "hotcoco"):
        found = summarize_detections(run, evaluator=evaluator, samples=0)["models"]["net"]["conditions"]
        for condition, file in (("clean", "clean.json"), (str(CONTRAST), f"{ENTRIES[0]}/5.json")):
            with contextlib.redirect_stdout(io.StringIO()):
                listed = COCO(truth)
                evaluation = COCOeval(listed, listed.loadRes(str(Path(saved) / file)), "bbox")
                evaluation.evaluate()
                evaluation.accumulate()
                evaluation.summarize()
            expected = [value if value > -1 else None for value in evaluation.stats.tolist()]
            assert [found[condition][name]["value"] for name in SCORES] == expected
            assert 0.1 < expected[0] < 0.9


def test_faults_are_told_before_any_work(data: tuple[str, str], tmp_path: Path) -> None:
    strange = save(tmp_path / "strange", data, lambda thing: {**thing, "category_id": 4})
    with pytest.raises(ModelError, match=r"strange: under clean, 1 of 1 category ids are not in the data set \(4\)"):
        plan_toy(data, [strange])
    run_detection(plan_toy(data, [strange], labels="agnostic"), tmp_path / "run")
    summary = summarize_detections(DetectionRun.open(tmp_path / "run"), samples=0)
    assert summary["models"]["strange"]["conditions"]["clean"]["ap"]["value"] == 1.0
    other = save(tmp_path / "other", data, lambda thing: {**thing, "image_id": thing["image_id"] + 100})
    with pytest.raises(ModelError, match=r"other: under clean, 9 of 9 image ids are not .* annotations that these"):
        plan_toy(data, [other])


def test_images_beyond_a_limit_are_known(data: tuple[str, str], tmp_path: Path) -> None:
    """Detections of all images serve a run over some of them, and so do those of others alone: nothing was found."""
    saved = save(tmp_path / "saved", data)
    assert plan_toy(data, [saved], limit=3).warnings == plan_toy(data, [Nobody()], limit=3).warnings
    one = save(tmp_path / "one", data, lambda thing: {**thing, "image_id": 2})
    assert [item.id for item in plan_toy(data, [one], limit=1).dataset.items] == [1]


def test_changed_results_are_another_run(data: tuple[str, str], tmp_path: Path) -> None:
    saved = save(tmp_path / "saved", data)
    run_detection(plan_toy(data, [saved]), tmp_path / "run")
    file = tmp_path / "saved" / "clean.json"
    file.write_text(file.read_text().replace("0.9", "0.8"))  # of the same size
    with pytest.raises(PlanChangedError, match="detections_sha256"):
        run_detection(plan_toy(data, [saved]), tmp_path / "run")


def parts(data: tuple[str, str], models: list[Any], out: Path, **options: Any) -> tuple[set[int], dict[str, Any]]:
    """Return the categories of all detections of a run, and its truth."""
    run_detection(plan_toy(data, models, entries=ENTRIES[:2], **options), out)
    rows = pq.read_table(out / "parts").to_pylist()
    assert all(len(row["boxes"]) == 4 * len(row["scores"]) == 4 * len(row["categories"]) for row in rows)
    return {number for row in rows for number in row["categories"]}, DetectionRun.open(out).truth()


class Indexed(Nobody):
    classes = ("first", "sea lion")


@pytest.mark.parametrize(
    ("labels", "model"), [("names", "saved"), ("index", "saved"), ("names", "net"), ("index", "indexed")]
)
def test_kept_classes_alone_are_scored(data: tuple[str, str], tmp_path: Path, labels: str, model: str) -> None:
    given: Any = {"net": Nobody(), "indexed": Indexed()}.get(model) or save(tmp_path / "saved", data)
    found, truth = parts(data, [given], tmp_path / "run", labels=labels, keep=["Sea_Lion"], truth="aligned")
    assert found == ({7} if model == "saved" else set())
    assert truth["categories"] == [{"id": 7, "name": "sea lion"}]
    assert {one["category_id"] for one in truth["annotations"]} == {7}
    assert len(truth["annotations"]) == 9
    assert len(truth["images"]) == 10
    scores = summarize_detections(DetectionRun.open(tmp_path / "run"), samples=0)["models"]
    (alone,) = scores.values()
    assert alone["conditions"]["clean"]["ap"]["value"] == (1.0 if model == "saved" else 0.0)
    assert alone["per_category"].keys() == {"7"}


def test_kept_classes_of_saved_detections_when_labels_do_not_count(data: tuple[str, str], tmp_path: Path) -> None:
    found, truth = parts(data, [save(tmp_path / "saved", data)], tmp_path / "run", labels="agnostic", keep=["sea lion"])
    assert found == {3}, "all are one, under the lowest id"
    assert len(truth["annotations"]) == 19
    rows = pq.read_table(tmp_path / "run" / "parts").to_pylist()
    assert {len(row["scores"]) for row in rows if row["image"] != "photo-09"} == {1}


def test_what_cannot_be_kept(data: tuple[str, str], tmp_path: Path) -> None:
    saved = save(tmp_path / "saved", data)
    with pytest.raises(UnknownNameError, match=r"no category 'sea lions'; did you mean 'sea lion'\? .*those of saved"):
        plan_toy(data, [saved], keep=["sea lions"])
    animals = Nobody("animals")
    animals.classes = ("cat", "dog", "cow")
    with pytest.raises(ModelError, match=r"No category .* to be kept \(dog, cow\)"):
        plan_toy(data, [animals], keep=["dog", "cow"])
    plan = plan_toy(data, [animals], keep=["dog", "cat"])
    assert plan.warnings[-1] == "No category of the data set is called dog, so keeping it changes nothing."
    content = json.loads(Path(data[1]).read_text())
    content["annotations"] = [one for one in content["annotations"] if one["category_id"] == 3]
    (tmp_path / "cats.json").write_text(json.dumps(content))
    with pytest.raises(DatasetError, match=r"cats: no object is of what is to be kept \(sea lion\)"):
        plan_toy((data[0], str(tmp_path / "cats.json")), [saved], keep=["sea lion"])


def test_each_file_is_read_once_for_a_plan_and_once_for_a_run(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = save(tmp_path / "saved", data)
    read: list[Path] = []
    inner = SavedDetections._find
    monkeypatch.setattr(SavedDetections, "_find", lambda self, c: (found := inner(self, c), read.extend(found))[0])
    monkeypatch.setattr("crypsis.models.saved_detections._KEPT_ROWS", 0)
    plan = plan_toy(data, [saved])
    assert len(read) == len(plan.conditions) == 9
    run_detection(plan, tmp_path / "run")
    assert len(read) == 18
    assert not list((tmp_path / "run").glob("saved*"))


def test_what_was_stored_is_read_back(data: tuple[str, str], tmp_path: Path) -> None:
    plan = plan_toy(data, [save(tmp_path / "saved", data)], entries=ENTRIES[:1])
    source = SavedDetections(tmp_path / "saved")
    ids = [5, 10, 1]
    store_detections(source, tmp_path / "some.bin", ids, plan.conditions)
    stored = StoredDetections("saved", tmp_path / "some.bin", ids, plan.conditions)
    for condition in plan.conditions:
        for image_id in ids:
            found, expected = stored.load(image_id, condition), source.load(image_id, condition)
            for part in ("boxes", "scores", "labels"):
                np.testing.assert_array_equal(getattr(found, part), getattr(expected, part), strict=True)
    store_detections(source, tmp_path / "none.bin", [10], plan.conditions)
    assert len(StoredDetections("saved", tmp_path / "none.bin", [10], plan.conditions).load(10, CLEAN).scores) == 0
