"""Pictures of detection runs: which images are worst, what is drawn, and finishing a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crypsis.bench import detection_pictures
from crypsis.bench.detect import run_detection
from crypsis.bench.detection_finish import finish_detection, score_detection
from crypsis.bench.detection_pictures import make_detection_pictures
from crypsis.bench.detection_plan import DetectionPlan
from crypsis.detection_results import DetectionRun
from crypsis.io import read_image
from crypsis.report.detection_page import build_detection_report
from crypsis.report.pictures import read_detection_pictures
from crypsis.types import Condition
from toy_detection import ENTRIES, Nobody, plan_toy, write_results, write_set

TRUTH = (230, 159, 0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return write_set(tmp_path_factory.mktemp("pictures"))


def losing(condition: Condition, thing: dict[str, Any]) -> dict[str, Any] | None:
    """Lose both objects of image 4 under one condition, the cats of two others under another, nothing else."""
    image, cat = thing["image_id"], thing["category_id"] == 3
    if condition == Condition(ENTRIES[0], 5) and image == 4:
        return None
    if condition == Condition(ENTRIES[2], 1) and cat and image in (2, 6, 7):
        return {**thing, "category_id": 7}  # found, but called something else
    return {**thing, "score": 0.5 + 0.01 * image}


def make(
    data: tuple[str, str], folder: Path, say: Any = losing, **options: Any
) -> tuple[DetectionRun, DetectionPlan, dict[str, Any]]:
    spec = write_results(folder / "net", plan_toy(data, [Nobody()]), say)
    plan = plan_toy(data, [spec], **options)
    run_detection(plan, folder / "run")
    run = DetectionRun.open(folder / "run")
    make_detection_pictures(run, plan)
    return run, plan, json.loads((run.path / "pictures" / "index.json").read_text("utf-8"))


def test_the_worst_lost_most(data: tuple[str, str], tmp_path: Path) -> None:
    _, _, index = make(data, tmp_path)
    chosen = [(w["image"], w["model"], w["entry"], w["severity"]) for w in index["worst"]]
    # of those that lost one object, the surest losses first, and two of a degradation at most
    assert chosen == [
        ("photo-03", "net", ENTRIES[0], 5),
        ("photo-06", "net", ENTRIES[2], 1),
        ("photo-05", "net", ENTRIES[2], 1),
    ]
    first, second, _ = index["worst"]
    assert (first["objects"], first["views"]["clean"]["found"], first["views"]["degraded"]["found"]) == (2, 2, 0)
    assert (first["views"]["clean"]["scores"], first["views"]["degraded"]["scores"]) == ([0.54, 0.54], [])
    assert (second["views"]["clean"]["found"], second["views"]["degraded"]["found"]) == (2, 1)
    assert index["images"] == 10
    assert index["found"] == {"score": 0.3, "iou": 0.5}


def test_crowds_are_no_objects(data: tuple[str, str], tmp_path: Path) -> None:
    def lose_two(condition: Condition, thing: dict[str, Any]) -> dict[str, Any] | None:
        return None if condition.severity == 5 and thing["image_id"] == 2 else thing

    _, _, index = make(data, tmp_path, lose_two)
    assert [(w["image"], w["objects"]) for w in index["worst"]] == [("photo-01", 2)]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="all found"),
        pytest.param({"score": 0.1}, id="never sure enough"),
        pytest.param({"category_id": 3, "bbox": [0, 0, 2, 2]}, id="never in place"),
    ],
)
def test_no_loss_no_picture(data: tuple[str, str], tmp_path: Path, change: dict[str, Any]) -> None:
    run, _, index = make(data, tmp_path, lambda _, thing: thing | change)
    assert index["worst"] == []
    assert read_detection_pictures(run.path) == ([], 10)


def test_boxes_are_drawn_where_the_objects_are(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where content moves, the boxes of an aligned truth move along, those of a published one stay."""
    monkeypatch.setattr(detection_pictures, "_QUALITY", 100)  # lossless
    outlines = {}
    for truth in ("published", "aligned"):
        options = {"entries": ("arniqa/jitter",), "severities": (5,), "truth": truth}
        empty = plan_toy(data, [Nobody()], **options)
        spec = write_results(tmp_path / truth, empty, lambda c, o: None if c.severity else o)
        plan = plan_toy(data, [spec], **options)
        run_detection(plan, tmp_path / truth / "run")
        run = DetectionRun.open(tmp_path / truth / "run")
        make_detection_pictures(run, plan)
        losses, _ = read_detection_pictures(run.path)
        first = losses[0]
        assert (first.objects, first.found) == (2, {"clean": 2, "degraded": 0})
        drawn = read_image(run.path / "pictures" / "worst-00-degraded.webp")
        outlines[truth] = (drawn == TRUTH).all(axis=2)
    assert outlines["published"].sum() > 100
    assert outlines["aligned"].any()
    assert (outlines["published"] != outlines["aligned"]).any()


def test_pictures_are_small_and_show_solid_and_dashed_boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection_pictures, "_QUALITY", 100)  # lossless
    data = write_set(tmp_path, count=2, height=450, width=600)

    def say(condition: Condition, thing: dict[str, Any]) -> dict[str, Any] | None:
        if condition.severity == 0:
            return thing
        unsure = thing["category_id"] == 7
        return {**thing, "bbox": [300, 100, 200, 300], "score": 0.2 if unsure else 0.8}

    run, _, index = make(data, tmp_path, say)
    assert index["worst"][0]["views"]["degraded"]["scores"] == [0.8]
    drawn = read_image(run.path / "pictures" / "worst-00-degraded.webp")
    assert drawn.shape == (225, 300, 3)
    left = drawn[80:190, 150, 0]
    assert set(left.tolist()) == {0, 255}
    assert np.count_nonzero(np.diff(left.astype(int))) >= 10  # dashes
    x, y, width, _ = json.loads(Path(data[1]).read_text("utf-8"))["annotations"][0]["bbox"]
    top = drawn[y // 2 - 2 : y // 2 + 3, x // 2 : (x + width) // 2]
    assert ((top == TRUTH).all(axis=2).any(axis=0)).all()  # a line without gaps


def test_written_pictures_are_read_by_the_report(data: tuple[str, str], tmp_path: Path) -> None:
    run, _, index = make(data, tmp_path)
    losses, images = read_detection_pictures(run.path)
    assert images == 10
    assert [loss.image for loss in losses] == [w["image"] for w in index["worst"]]
    assert all(not view.problem for loss in losses for view in loss.views.values())
    assert losses[0].found == {"clean": 2, "degraded": 0}
    clean = read_image(run.path / "pictures" / index["worst"][0]["views"]["clean"]["file"])
    assert clean.shape == (48, 64, 3)


def test_parts_are_skipped_evenly_in_large_runs(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, plan, _ = make(data, tmp_path)
    monkeypatch.setattr(detection_pictures, "_IMAGES", 5)
    make_detection_pictures(run, plan)
    index = json.loads((run.path / "pictures" / "index.json").read_text("utf-8"))
    assert index["images"] == 6  # of three parts the first and the last
    assert "photo-05" not in [w["image"] for w in index["worst"]]


def test_finish(data: tuple[str, str], tmp_path: Path) -> None:
    _, plan, _ = make(data, tmp_path)
    (tmp_path / "run" / "pictures" / "index.json").unlink()
    run = finish_detection(tmp_path / "run", plan, samples=20)
    written = json.loads((run.path / "summary.json").read_text("utf-8"))
    assert written["parts"] == run.digest()
    assert written["samples"] == 20
    assert (run.path / "pictures" / "index.json").exists()
    assert run.summary() == written
    assert build_detection_report([run]).count("<img") == 6


def test_scoring_anew_needs_no_images(data: tuple[str, str], tmp_path: Path) -> None:
    run, _, _ = make(data, tmp_path)
    scored = score_detection(run.path, evaluator="pycocotools", samples=0)
    summary = scored.summary()
    assert summary["evaluator"]["name"] == "pycocotools"
    assert summary["samples"] == 0
    assert summary["models"]["net"]["conditions"]["clean"]["ap"]["value"] == pytest.approx(1.0)
