"""Summaries of detection runs: what is scored, what follows from it, and damage told in a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crypsis.bench.detect import run_detection
from crypsis.catalog import get_entry
from crypsis.detection_results import PLACES, DetectionRun, summarize_detections
from crypsis.errors import InputError
from crypsis.metrics.detection import SCORES
from crypsis.severity.calibration import PSNR_CEILING
from crypsis.types import Condition
from toy_detection import ENTRIES, Nobody, plan_toy, write_results, write_set

Say = Callable[[Condition, dict[str, Any]], dict[str, Any] | None]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return write_set(tmp_path_factory.mktemp("results"))


def perfect(_: Condition, thing: dict[str, Any]) -> dict[str, Any]:
    return thing


def nothing(_: Condition, thing: dict[str, Any]) -> None:
    return None


def fading(condition: Condition, thing: dict[str, Any]) -> dict[str, Any] | None:
    """Boxes that are off by more the worse it gets, and lose images."""
    if thing["image_id"] <= condition.severity:
        return None
    x, y, width, height = thing["bbox"]
    off = 0.4 * condition.severity * (1 + ENTRIES.index(condition.entry)) / 4 if condition.severity else 0.0
    return {**thing, "bbox": [x + off, y, width, height], "score": 0.2 + 0.07 * thing["image_id"]}


def detect(data: tuple[str, str], folder: Path, saying: dict[str, Say], **options: Any) -> DetectionRun:
    """Make a run of detectors that say this."""
    plan = plan_toy(data, [Nobody()])
    models = [write_results(folder / name, plan, say) for name, say in saying.items()]
    run_detection(plan_toy(data, models, **options), folder / "run")
    return DetectionRun.open(folder / "run")


def values(scores: dict[str, Any], metric: str = "ap") -> dict[str, float]:
    return {name: found[metric]["value"] for name, found in scores.items()}


def test_perfect_and_none(data: tuple[str, str], tmp_path: Path) -> None:
    summary = summarize_detections(detect(data, tmp_path, {"all": perfect, "none": nothing}), samples=50)
    assert (summary["complete"], summary["images"], summary["failed"], summary["objects"]) == (True, 10, {}, 18)
    assert summary["categories"] == {"3": "cat", "7": "sea lion"}
    for name, ap in (("all", 1.0), ("none", 0.0)):
        scores = summary["models"][name]
        assert scores["scored"] == 10
        assert set(scores["conditions"]) == {"clean", *(f"{e}@{s}" for e in ENTRIES for s in (1, 5))}
        for metric in ("ap", "ap50", "ap75", "ar100"):
            assert set(values(scores["conditions"], metric).values()) == {ap}
        assert set(values(scores["conditions"], "ap_large").values()) == {None}, "there is no large object"
        assert scores["delta"]["ap"]["value"] == 0.0
        assert scores["corrupted"]["ap"] == {"value": ap, "low": ap, "high": ap}
        assert scores["per_category"] == {c: {"clean": ap, "corrupted": ap} for c in ("3", "7")}
    assert summary["models"]["all"]["retention"]["ap"]["value"] == 1.0
    assert summary["models"]["none"]["retention"]["ap"] == {"value": None, "low": None, "high": None}


def test_what_follows_from_the_scores(data: tuple[str, str], tmp_path: Path) -> None:
    """MPC is the mean over corruptions of the mean over severities, rPC its share of the clean score."""
    summary = summarize_detections(detect(data, tmp_path, {"net": fading}))
    scores = summary["models"]["net"]
    for metric in SCORES:
        ap = values(scores["conditions"], metric)
        if ap["clean"] is None:
            continue
        table = np.array([[ap[f"{e}@{s}"] for s in (1, 5)] for e in ENTRIES])
        assert list(values(scores["entries"], metric).values()) == pytest.approx(table.mean(axis=1))
        assert list(values(scores["severities"], metric).values()) == pytest.approx(table.mean(axis=0))
        assert scores["corrupted"][metric]["value"] == pytest.approx(table.mean())
        assert scores["delta"][metric]["value"] == pytest.approx(table.mean() - ap["clean"])
        assert scores["retention"][metric]["value"] == pytest.approx(table.mean() / ap["clean"])
    assert 0 < scores["retention"]["ap"]["value"] < 1
    ap = values(scores["conditions"])
    for place in PLACES:
        labels = {
            "family": lambda e: e.family,
            "cause": lambda e: e.cause.code,
            "effect": lambda e: e.effect.code,
            "group": lambda e: str(e.group.code),
            "cell": lambda e: f"{e.cause.code}-{e.effect.code}",
        }[place]
        of_entry = {e: labels(get_entry(e)) for e in ENTRIES}
        assert set(scores["places"][place]) == set(of_entry.values())
        for label, drop in values(scores["places"][place]).items():
            mine = [ap[f"{e}@{s}"] for e in ENTRIES for s in (1, 5) if of_entry[e] == label]
            assert drop == pytest.approx(np.mean(mine) - ap["clean"])


def test_intervals_of_the_main_scores(data: tuple[str, str], tmp_path: Path) -> None:
    run = detect(data, tmp_path, {"net": fading})
    summary = summarize_detections(run)
    assert summary["samples"] == 1000, "it is small, so they cost nothing"
    scores = summary["models"]["net"]
    tables = [scores, scores["conditions"], scores["entries"], scores["severities"], scores["places"]["group"]]
    for metric in ("ap", "ap50", "ap75"):
        for table in tables:
            for name, found in table.items():
                if table is not scores or name in ("corrupted", "delta", "retention"):
                    assert found[metric]["low"] <= found[metric]["value"] <= found[metric]["high"]
    width = scores["corrupted"]["ap"]["high"] - scores["corrupted"]["ap"]["low"]
    assert 0.05 < width < 0.9
    assert scores["corrupted"]["ar1"]["low"] is None
    assert summarize_detections(run) == summary, "draws are seeded"
    without = summarize_detections(run, samples=0)["models"]["net"]
    assert without["corrupted"]["ap"] == {"value": scores["corrupted"]["ap"]["value"], "low": None, "high": None}


def test_both_evaluators_agree(data: tuple[str, str], tmp_path: Path) -> None:
    run = detect(data, tmp_path, {"net": fading})
    one, other = (summarize_detections(run, evaluator=name, samples=20) for name in ("hotcoco", "pycocotools"))
    assert (one.pop("evaluator")["name"], other.pop("evaluator")["name"]) == ("hotcoco", "pycocotools")
    assert one == other


def test_labels_may_not_count(data: tuple[str, str], tmp_path: Path) -> None:
    def swapped(_: Condition, thing: dict[str, Any]) -> dict[str, Any]:
        return {**thing, "category_id": {3: 7, 7: 3}[thing["category_id"]]}

    named = summarize_detections(detect(data, tmp_path / "names", {"net": swapped}))
    agnostic = summarize_detections(detect(data, tmp_path / "agnostic", {"net": swapped}, labels="agnostic"))
    assert set(values(named["models"]["net"]["conditions"]).values()) == {0.0}
    assert set(values(agnostic["models"]["net"]["conditions"]).values()) == {1.0}
    assert agnostic["categories"] == {"3": "object"}


def test_order_of_detectors(data: tuple[str, str], tmp_path: Path) -> None:
    def proud(condition: Condition, thing: dict[str, Any]) -> dict[str, Any] | None:
        return None if condition.severity else thing

    def steady(_: Condition, thing: dict[str, Any]) -> dict[str, Any] | None:
        return thing if thing["image_id"] % 2 else None

    summary = summarize_detections(detect(data, tmp_path, {"proud": proud, "steady": steady, "none": nothing}))
    # by clean score proud > steady > none; corrupted steady > proud = none
    assert summary["ranks"]["swaps"] == [["proud", "steady"]]
    assert summary["ranks"]["spearman"] == pytest.approx(0.0)
    alone = summarize_detections(detect(data, tmp_path / "alone", {"proud": proud}))
    assert alone["ranks"] is None
    assert alone["models"]["proud"]["retention"]["ap"]["value"] == 0.0


def test_strength_is_the_mean_over_measured_images(data: tuple[str, str], tmp_path: Path) -> None:
    run_detection(plan_toy(data, [Nobody()], strength_images=3), tmp_path / "run")
    summary = summarize_detections(DetectionRun.open(tmp_path / "run"), samples=0)
    assert summary["measured"] == 3
    assert summary["strength"]["clean"] == {"1-ssim": 0.0, "psnr": pytest.approx(PSNR_CEILING)}
    weak, strong = (summary["strength"][f"imagenet-c/contrast@{s}"] for s in (1, 5))
    assert 0 < weak["1-ssim"] < strong["1-ssim"] < 1
    assert strong["psnr"] < weak["psnr"] < PSNR_CEILING


def test_half_a_run_is_summarized(data: tuple[str, str], tmp_path: Path) -> None:
    run = detect(data, tmp_path, {"net": perfect})
    run.parts()[1].unlink()
    done, failed = run.progress()
    assert (len(done), failed) == (6, {"net": {}})
    summary = summarize_detections(run)
    assert (summary["complete"], summary["images"], summary["models"]["net"]["scored"]) == (False, 10, 6)
    assert set(values(summary["models"]["net"]["conditions"]).values()) == {1.0}


def test_rows_are_read_some_entries_at_a_time(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = detect(data, tmp_path, {"net": fading})
    whole = summarize_detections(run, samples=20)
    read: list[tuple[str, ...]] = []
    rows = DetectionRun.rows

    def noted(self: DetectionRun, entries: Any) -> Any:
        read.append(tuple(entries))
        return rows(self, entries)

    monkeypatch.setattr(DetectionRun, "rows", noted)
    monkeypatch.setattr("crypsis.detection_results._ROWS_AT_ONCE", 41)
    assert summarize_detections(run, samples=20) == whole
    assert read == [("clean", ENTRIES[0]), ENTRIES[1:3], ENTRIES[3:]]
    assert {entry for (_, entry, _), _ in rows(run, ["clean", ENTRIES[2]])} == {"clean", ENTRIES[2]}


def test_summary_is_made_again_when_it_is_of_other_parts(data: tuple[str, str], tmp_path: Path) -> None:
    run = detect(data, tmp_path, {"net": perfect})
    made = summarize_detections(run)
    file = run.path / "summary.json"
    for damage in ("{", "[]", "{}"):
        file.write_text(damage)
        assert run.summary() == made
    file.write_text(json.dumps({**made, "images": 77}))
    assert run.summary()["images"] == 77, "it is read, where it is of these parts"
    run.parts()[2].unlink()
    assert run.summary()["models"]["net"]["scored"] == 8


def test_damage_is_a_sentence(data: tuple[str, str], tmp_path: Path) -> None:
    run = detect(data, tmp_path, {"net": perfect})
    part = run.parts()[1]
    whole = part.read_bytes()
    zeros = bytes(200)
    for damaged in (b"", whole[:-30], whole[:4] + zeros + whole[204:], whole[:-400] + zeros + whole[-200:]):
        part.write_bytes(damaged)
        with pytest.raises(InputError, match=r"images-000004-000007.*is damaged .*delete it and give the bench"):
            summarize_detections(run)
    part.write_bytes(whole)
    truth = run.path / "truth.json"
    for damage in ("{", None):
        truth.write_text(damage) if damage else truth.unlink()
        with pytest.raises(InputError, match=r"truth\.json: cannot be read .*give the bench command again"):
            summarize_detections(run)


def test_nothing_to_score(data: tuple[str, str], tmp_path: Path) -> None:
    run = detect(data, tmp_path, {"net": perfect})
    for part in run.parts():
        part.unlink()
    with pytest.raises(InputError, match=r"nothing was detected \(no part is done yet\)"):
        summarize_detections(run)
    images, annotations = write_set(tmp_path / "set", 3)
    plan = plan_toy((images, annotations), [Nobody()])
    for image in Path(images).iterdir():
        image.write_bytes(b"no image")
    run_detection(plan, tmp_path / "bad")
    with pytest.raises(InputError, match=r"nothing was detected \(.*photo-00\.png: not an image"):
        summarize_detections(DetectionRun.open(tmp_path / "bad"))
    with pytest.raises(InputError, match="no run"):
        DetectionRun.open(tmp_path)


def test_what_a_run_says_of_itself(data: tuple[str, str], tmp_path: Path) -> None:
    run = detect(data, tmp_path, {"one": perfect, "two": nothing})
    assert (run.name, run.models, run.entries, run.severities) == ("run", ("one", "two"), ENTRIES, (1, 5))
    assert [str(c) for c in run.conditions[:3]] == ["clean", f"{ENTRIES[0]}@1", f"{ENTRIES[0]}@5"]
    assert [len(session["models"]) for session in run.sessions] == [2]
    assert run.progress()[0] == {f"photo-{k:02d}": k + 1 for k in range(10)}
