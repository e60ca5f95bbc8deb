"""Results by camouflage: known by hand, and the same as of a run that has a group's images alone."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic_camouflage import IMAGES, make_rows, write_scores
from synthetic_runs import ENTRIES

from crypsis.bench.detect import run_detection
from crypsis.camouflage.proportions import spearman
from crypsis.detection_results import DetectionRun, moved_truth, summarize_detections
from crypsis.errors import DatasetError, InputError, UnknownNameError
from crypsis.metrics.detection import DetectionEvaluator
from crypsis.report.camouflage_results import (
    CamouflageScores,
    Level,
    _centered,
    _Detector,
    detections_by_camouflage,
    image_losses,
    masks_by_camouflage,
    read_camouflage,
)
from crypsis.report.camouflage_tables import (
    CSV_COLUMNS,
    camouflage_csv,
    camouflage_document,
    camouflage_tables,
    level_text,
)
from crypsis.report.comparison import compare_runs
from crypsis.report.detection_comparison import compare_detections
from crypsis.report.tables import Number
from crypsis.results import RunFolder, summarize
from crypsis.types import Condition, Detections, Image
from toy_detection import ENTRIES as DEGRADATIONS
from toy_detection import plan_toy, write_set

HIDDEN = {image: i / 20 for i, image in enumerate(IMAGES)}


def steady(i: int, entry: str, severity: int) -> float:
    """Five images a group; the harder, the lower and the faster it falls."""
    group = i // 5
    return 0.9 - 0.1 * group - 0.04 * severity * (group + 1)


def noisy(i: int, entry: str, severity: int) -> float:
    return float(np.random.default_rng([i, severity, [*ENTRIES, "clean"].index(entry)]).uniform(0.1, 0.9))


def scores(tmp_path: Path, values: dict[str, float | None] | None = None, **options: Any) -> CamouflageScores:
    return read_camouflage(write_scores(tmp_path / "scores.csv", seamcam=values or HIDDEN), **options)


def values(row: Sequence[dict[str, float | None]]) -> list[float | None]:
    return [cell["value"] for cell in row]


# Segmenters


def test_a_surface_known_by_hand(tmp_path: Path) -> None:
    run = make_rows(tmp_path / "run", {"net": steady})
    found = masks_by_camouflage(compare_runs([run]), scores(tmp_path))
    (model,) = found.models
    assert [group.images for group in found.groups] == [IMAGES[k : k + 5] for k in (0, 5, 10, 15)]
    assert model.images == (5, 5, 5, 5)
    assert values(model.clean) == pytest.approx([0.9, 0.8, 0.7, 0.6])
    assert values(model.corrupted) == pytest.approx([0.78, 0.56, 0.34, 0.12])
    assert values(model.delta) == pytest.approx([-0.12, -0.24, -0.36, -0.48])
    assert values(model.retention) == pytest.approx([0.78 / 0.9, 0.7, 0.34 / 0.7, 0.2])
    for g, row in enumerate(model.by_severity):
        assert values(row) == pytest.approx([0.9 - 0.1 * g - 0.04 * s * (g + 1) for s in range(1, 6)])
    assert model.threshold == pytest.approx(0.45)
    # Q3 is at 0.7 − 0.12 s, below 0.45 from s = 3 on; Q4 at 0.6 − 0.16 s, from s = 1 on
    assert [level and level.value for level in model.stops] == [6, 5, 3, 1]
    assert model.clean[0]["low"] == pytest.approx(0.9), "equal images leave no doubt"
    assert model.stops[2] == Level(3, 3, 3)
    assert model.correlations["clean"][0]["value"] == pytest.approx(spearman(range(20), np.arange(20) // 5 * -1).rho)


def test_strength_takes_the_place_of_severity(tmp_path: Path) -> None:
    """The eight conditions of a severity are weaker than those of the next one: the bins are the severities."""

    def uneven(i: int, entry: str, severity: int) -> float:
        return steady(i, entry, severity) + (0.02 * [*ENTRIES].index(entry) if severity else 0.0)

    run = make_rows(tmp_path / "run", {"net": uneven})
    found = masks_by_camouflage(compare_runs([run]), scores(tmp_path))
    (model,) = found.models
    assert np.array(found.strengths) == pytest.approx(np.array([[0.1 * s, 0.1 * s + 0.007] for s in range(1, 6)]))
    for by_severity, by_strength in zip(model.by_severity, model.by_strength, strict=True):
        assert values(by_strength) == pytest.approx(values(by_severity))
    assert model.stops_strength == model.stops
    unmeasured = make_rows(tmp_path / "saved", {"net": steady}, measured=False)
    found = masks_by_camouflage(compare_runs([unmeasured]), scores(tmp_path))
    assert (found.strengths, found.models[0].by_strength, found.models[0].stops_strength) == ((), ((),) * 4, ())
    assert len(camouflage_tables(compare_runs([unmeasured]), found)) == 4


def test_a_line_can_be_named(tmp_path: Path) -> None:
    comparison = compare_runs([make_rows(tmp_path / "run", {"net": steady})])
    found = masks_by_camouflage(comparison, scores(tmp_path, seen_from=0.75))
    assert found.models[0].threshold == 0.75
    assert [level and level.value for level in found.models[0].stops] == [4, 1, 0, 0]
    blind = make_rows(tmp_path / "blind", {"net": lambda i, entry, severity: 0.0})
    (model,) = masks_by_camouflage(compare_runs([blind]), scores(tmp_path)).models
    assert (model.threshold, model.stops, model.retention[0]["value"]) == (None, (None,) * 4, None)


@pytest.mark.parametrize("metric", ["dice", "iou"])
def test_a_group_is_what_a_run_of_its_images_would_be(tmp_path: Path, metric: str) -> None:
    run = make_rows(tmp_path / "run", {"net": noisy, "other": steady})
    shuffled = {image: float(v) for image, v in zip(IMAGES, np.random.default_rng(3).permutation(20), strict=True)}
    found = masks_by_camouflage(compare_runs([run]), scores(tmp_path, shuffled, groups=3), metric)
    for g, group in enumerate(found.groups):
        places = [IMAGES.index(image) for image in group.images]

        def own(i: int, entry: str, severity: int, places: list[int] = places) -> float:
            return noisy(places[i], entry, severity)

        alone = make_rows(tmp_path / group.name, {"net": own}, images=group.images)
        summary = summarize(alone)["models"]["net"]
        model = found.models[0]
        assert model.images[g] == len(places)
        for name in ("corrupted", "delta", "retention"):
            assert getattr(model, name)[g]["value"] == pytest.approx(summary[name][metric]["value"])
        assert model.clean[g]["value"] == pytest.approx(summary["conditions"]["clean"][metric]["value"])
        by_severity = [table[metric]["value"] for table in summary["severities"].values()]
        assert values(model.by_severity[g]) == pytest.approx(by_severity)
        low, value, high = (model.clean[g][end] for end in ("low", "value", "high"))
        assert low < value < high
        assert high - low < 0.6


def test_intervals_of_all_images_are_those_of_the_summary(tmp_path: Path) -> None:
    """The resamplings are the report's own: with all images in a group, so are the intervals."""
    run = make_rows(tmp_path / "run", {"net": noisy})
    found = masks_by_camouflage(compare_runs([run]), scores(tmp_path, groups=2))
    summary = summarize(run)["models"]["net"]["conditions"]["clean"]["dice"]
    halves = found.models[0].clean
    assert np.mean(values(halves)) == pytest.approx(summary["value"])
    widths = [half["high"] - half["low"] for half in halves]
    assert summary["high"] - summary["low"] < max(widths) < 3 * (summary["high"] - summary["low"])


def test_correlations(tmp_path: Path) -> None:
    run = make_rows(tmp_path / "run", {"net": noisy})
    ((rho, p), (rho_c, p_c)) = (
        masks_by_camouflage(compare_runs([run]), scores(tmp_path)).models[0].correlations.values()
    )
    clean = [noisy(i, "clean", 0) for i in range(20)]
    corrupted = [np.mean([noisy(i, e, s) for e in ENTRIES for s in range(1, 6)]) for i in range(20)]
    for found, p_value, means in ((rho, p, clean), (rho_c, p_c, corrupted)):
        expected = spearman(range(20), means)
        assert found["value"] == pytest.approx(expected.rho)
        assert p_value == pytest.approx(expected.p)
        assert found["low"] < expected.rho < found["high"]


def test_failed_images_are_left_out_of_that_model_alone(tmp_path: Path) -> None:
    def failing(i: int, entry: str, severity: int) -> float | None:
        return None if i in (3, 17) and severity == 5 else noisy(i, entry, severity)

    run = make_rows(tmp_path / "run", {"good": noisy, "bad": failing})
    found = masks_by_camouflage(compare_runs([run]), scores(tmp_path))
    assert [model.images for model in found.models] == [(5, 5, 5, 5), (4, 5, 5, 4)]
    assert found.models[1].clean[0]["value"] == pytest.approx(np.mean([noisy(i, "clean", 0) for i in (0, 1, 2, 4)]))
    assert found.models[0].clean[1] == found.models[1].clean[1]
    tables = camouflage_tables(compare_runs([run]), found)
    assert all(table.title.startswith("INCOMPLETE: ") for table in tables)


def test_a_model_without_images_in_a_group(tmp_path: Path) -> None:
    run = make_rows(tmp_path / "run", {"net": lambda i, entry, s: None if i < 5 and s == 1 else steady(i, entry, s)})
    found = masks_by_camouflage(compare_runs([run]), scores(tmp_path))
    (model,) = found.models
    assert model.images == (0, 5, 5, 5)
    assert model.clean[0] == {"value": None, "low": None, "high": None}
    assert model.clean[1]["value"] == pytest.approx(0.8)
    assert (model.threshold, model.stops) == (None, (None,) * 4)
    named = masks_by_camouflage(compare_runs([run]), scores(tmp_path, seen_from=0.5)).models[0]
    assert [level and level.value for level in named.stops] == [None, 4, 2, 1]
    assert camouflage_csv(compare_runs([run]), found)


def test_runs_side_by_side(tmp_path: Path) -> None:
    first, second = (make_rows(tmp_path / n, {"net": dice}) for n, dice in (("a", steady), ("b", noisy)))
    comparison = compare_runs([first, second])
    found = masks_by_camouflage(comparison, scores(tmp_path))
    assert [model.result.label for model in found.models] == ["a/net", "b/net"]
    alone = masks_by_camouflage(compare_runs([second]), scores(tmp_path))
    assert found.models[1].clean == alone.models[0].clean
    rows = list(csv.DictReader(io.StringIO(camouflage_csv(comparison, found))))
    assert {(row["run"], row["model"]) for row in rows} == {("a", "net"), ("b", "net")}


def test_images_without_a_score_are_counted(tmp_path: Path) -> None:
    run = make_rows(tmp_path / "run", {"net": steady})
    some: dict[str, float | None] = {image: value for image, value in HIDDEN.items() if image not in IMAGES[:6]}
    some |= {"stranger": 0.5, IMAGES[0]: None}
    found = masks_by_camouflage(compare_runs([run]), scores(tmp_path, some, groups=2))
    assert [len(group.images) for group in found.groups] == [7, 7]
    said = " ".join(found.notes)
    assert "6 of 20 images of the run have no score and are left out: animal-00, animal-01, " in said
    assert "animal-04 and 1 more." in said
    assert "1 of 15 images with a score are not in the run: stranger." in said
    assert found.models[0].images == (7, 7)


def test_names_are_the_same_on_all_systems(tmp_path: Path) -> None:
    images = [f"\N{LATIN SMALL LETTER A WITH DIAERESIS}-{i:02d}" for i in range(20)]
    run = make_rows(tmp_path / "run", {"net": steady}, images=images)
    typed = {unicodedata.normalize("NFD", image): i / 20 for i, image in enumerate(images)}
    found = masks_by_camouflage(compare_runs([run]), scores(tmp_path, typed))
    assert values(found.models[0].clean) == pytest.approx([0.9, 0.8, 0.7, 0.6])
    assert len(found.notes) == 1


def test_ties_are_said(tmp_path: Path) -> None:
    run = make_rows(tmp_path / "run", {"net": steady})
    found = masks_by_camouflage(compare_runs([run]), scores(tmp_path, {**HIDDEN, **dict.fromkeys(IMAGES[10:], 1.0)}))
    assert [group.name for group in found.groups] == ["Q1 easiest", "Q2", "Q3–4 hardest"]
    assert "as many have equal scores; taken together: Q3–4 hardest." in found.notes[-1]
    assert values(found.models[0].clean) == pytest.approx([0.9, 0.8, 0.65])


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (lambda image: f"{image}.jpg", "20 differ in folder or ending only: 'animal-00.jpg' there is 'animal-00' in"),
        (lambda image: f"Imgs/{image}", "differ in folder or ending only: 'Imgs/animal-00' there"),
        (lambda image: f"C:\\set\\{image}.png", "differ in folder or ending only"),
        (lambda image: image.replace("animal", "fish"), "scores are of other images: 'fish-00' there, 'animal-00' in"),
    ],
)
def test_scores_of_other_images(tmp_path: Path, names: Any, words: str) -> None:
    run = make_rows(tmp_path / "run", {"net": steady})
    with pytest.raises(InputError) as caught:
        masks_by_camouflage(compare_runs([run]), scores(tmp_path, {names(image): v for image, v in HIDDEN.items()}))
    assert words in str(caught.value)
    assert str(tmp_path / "scores.csv") in str(caught.value)


def test_what_cannot_be_divided(tmp_path: Path) -> None:
    comparison = compare_runs([make_rows(tmp_path / "run", {"net": steady})])
    with pytest.raises(InputError, match=r"scores.csv: 20 images .* too few for 5 groups of 5 or more; ask for 4"):
        masks_by_camouflage(comparison, scores(tmp_path, groups=5))
    with pytest.raises(InputError, match="so equal"):
        masks_by_camouflage(comparison, scores(tmp_path, dict.fromkeys(IMAGES, 1.0)))
    for metric in ("mae", "ece", "ece_pooled", "f_max", "dise"):
        with pytest.raises(UnknownNameError, match="By camouflage: dice, iou,"):
            masks_by_camouflage(comparison, scores(tmp_path), metric)


def test_which_score_is_read(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    file = write_scores(tmp_path / "run" / "scores.csv", seamcam=HIDDEN, s_rf=dict.fromkeys(IMAGES, 0.5))
    found = read_camouflage(tmp_path / "run")
    assert (found.file, found.name, found.values, found.others) == (file, "seamcam", HIDDEN, ("s_rf",))
    assert read_camouflage(file, "s_rf").name == "s_rf"
    with pytest.raises(UnknownNameError, match="did you mean 's_rf'"):
        read_camouflage(file, "srf")
    with pytest.raises(InputError, match=r"between 0 and 1 on; got 1.5"):
        read_camouflage(file, seen_from=1.5)
    with pytest.raises(DatasetError, match="no image has a score in the column s"):
        read_camouflage(write_scores(tmp_path / "none.csv", s={"a": None}), "s")
    with pytest.raises(DatasetError, match="cannot be read"):
        read_camouflage(tmp_path / "absent.csv")


def test_losses_of_images(tmp_path: Path) -> None:
    def failing(i: int, entry: str, severity: int) -> float | None:
        return None if i == 4 and severity == 5 else steady(i, entry, severity)

    run = make_rows(tmp_path / "run", {"net": failing, "other": noisy})
    clean, corrupted = (image_losses(run, "net", on) for on in ("clean", "corrupted"))
    assert set(clean) == set(corrupted) == {image for image in IMAGES if image != IMAGES[4]}
    assert (clean[IMAGES[0]], clean[IMAGES[19]]) == pytest.approx((0.1, 0.4))
    assert (corrupted[IMAGES[0]], corrupted[IMAGES[19]]) == pytest.approx((0.22, 0.88))
    with pytest.raises(UnknownNameError, match="net, other"):
        image_losses(run, "nut and bolt", "clean")
    with pytest.raises(InputError, match="clean or on corrupted images; got 'rainy'"):
        image_losses(run, "net", "rainy")
    none = make_rows(tmp_path / "none", {"net": lambda i, entry, severity: None})
    with pytest.raises(InputError, match="net has no scores"):
        image_losses(none, "net", "clean")


# Tables


def test_tables_csv_and_document_say_the_same(tmp_path: Path) -> None:
    comparison = compare_runs([make_rows(tmp_path / "run", {"net": noisy, "other": steady})])
    found = masks_by_camouflage(comparison, scores(tmp_path))
    groups, severities, strengths, stops, correlations = camouflage_tables(comparison, found)
    assert groups.header[:4] == ("Camouflage", "Model", "Images", "Clean Dice ↑")
    assert [row[0] for row in groups.rows[::2]] == [
        "Q1 easiest (0–0.2)", "Q2 (0.25–0.45)", "Q3 (0.5–0.7)", "Q4 hardest (0.75–0.95)",
    ]  # fmt: skip
    document = camouflage_document(found)
    assert json.loads(json.dumps(document)) == document
    rows = list(csv.DictReader(io.StringIO(camouflage_csv(comparison, found))))
    assert tuple(rows[0]) == CSV_COLUMNS
    table = {(r["model"], r["group"], r["kind"], r["label"]): r for r in rows}
    assert len(table) == len(rows) == 2 * (4 * (4 + 5 + 5 + 2) + 1 + 4)
    for m, name in enumerate(("net", "other")):
        model = document["models"][name]
        for g, group in enumerate(found.groups):
            row = groups.rows[2 * g + m]
            assert row[1] == name
            for cell, kind in zip(row[3:], ("clean", "corrupted", "delta", "retention"), strict=True):
                assert isinstance(cell, Number)
                assert cell.value == model[kind][g]["value"]
                line = table[name, group.name, kind, ""]
                assert (line["value"], line["low"]) == (f"{cell.value:.6f}", f"{cell.low:.6f}")
                assert line["images"] == "5"
            for surface, kind, labels in (
                (severities, "severity", list("12345")),
                (strengths, "strength", [f"{a:.2f}–{b:.2f}" for a, b in found.strengths]),
            ):
                cells = surface.rows[2 * g + m][3:]
                for k, (cell, label) in enumerate(zip(cells, labels, strict=True)):
                    assert isinstance(cell, Number)
                    assert cell.value == model[f"by_{kind}"][g][k]["value"]
                    assert table[name, group.name, kind, label]["value"] == f"{cell.value:.6f}"
            said = stops.rows[4 * m + g]
            assert said[0] == name
            assert said[2] == model["stops_at_severity"][g] == stop_of(table, name, group.name, "severity")
            assert said[3] == model["stops_at_strength"][g] == stop_of(table, name, group.name, "strength")
        assert correlations.rows[m][0] == name
        assert correlations.rows[m][1].value == model["correlations"]["clean"]["value"]
    assert [r[2] for r in stops.rows[4:]] == ["never up to 5", "5", "3", "1"]
    assert table["other", "Q3", "stops at severity", "3"]["value"] == "3.000000"
    assert table["other", "Q1 easiest", "stops at severity", "never up to 5"]["value"] == ""
    for one in (groups, severities, strengths, stops, correlations):
        assert one.markdown()
        assert one.latex()
        assert one.csv()


def stop_of(table: dict[tuple[str, str, str, str], Any], model: str, group: str, kind: str) -> str:
    (label,) = (key[3] for key in table if key[:3] == (model, group, f"stops at {kind}"))
    return label


def test_tables_without_intervals_and_of_one_model(tmp_path: Path) -> None:
    comparison = compare_runs([make_rows(tmp_path / "run", {"net": noisy})])
    found = masks_by_camouflage(comparison, scores(tmp_path, seen_from=0.5))
    plain = camouflage_tables(comparison, found, intervals=False)
    assert not any("[" in table.markdown().split("\n\n- ")[0] for table in plain)
    assert plain[0].header[:2] == ("Camouflage", "Images")
    assert "[" in camouflage_tables(comparison, found)[3].rows[0][2]


def test_levels_in_words() -> None:
    labels = ("1", "3", "5")
    assert level_text(None, labels, "5") == "–"
    assert level_text(Level(0, None, None), labels, "5") == "clean"
    assert level_text(Level(2, 1, 4), labels, "5") == "3 [1, never]"
    assert level_text(Level(4, 0, 4), labels, "5") == "never up to 5 [clean, never]"
    assert level_text(Level(4, 4, 4), labels, "5") == "never up to 5"


# Detectors


class Finder:
    """Finds the most colorful spot of two colors, off by a few pixels that depend on all."""

    classes = ("cat", "sea lion")
    name = "finder"

    def describe(self) -> dict[str, str | int | float | bool | None]:
        return {"adapter": "test", "device": "cpu"}

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        return [self.one(image) for image in images]

    def one(self, image: Image) -> Detections:
        boxes, found, off = [], [], int(image.sum(dtype=int) % 4)
        for channel in (1, 0):
            spots = image[:, :, channel].astype(int) - np.delete(image, channel, axis=2).max(axis=2)
            ys, xs = np.nonzero(spots > spots.max() - 50)
            boxes.append([xs.min(), ys.min(), xs.max() + 1 + off, ys.max() + 1])
            found.append(min(max(spots.max(), 0) + 10 * off, 255) / 255)
        return Detections(np.array(boxes, np.float32), np.array(found, np.float32), np.arange(2))


class Blind(Finder):
    """Fails on some images."""

    name = "blind"

    def one(self, image: Image) -> Detections:
        if image.mean() < 40:
            raise InputError("too dark")
        return super().one(image)


@pytest.fixture(scope="module", params=["published", "aligned"])
def detections(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DetectionRun:
    folder = tmp_path_factory.mktemp("detections")
    plan = plan_toy(write_set(folder, 14), [Finder(), Blind()], truth=request.param)
    run_detection(plan, folder / "run")
    return DetectionRun.open(folder / "run")


def photographs(run: DetectionRun) -> dict[str, float]:
    names = list(run.progress()[0])
    return dict(zip(names, np.random.default_rng(1).permutation(len(names)).astype(float).tolist(), strict=True))


@pytest.mark.parametrize("metric", ["ap", "ap50", "ar10"])
def test_detections_of_a_group_are_scored_as_if_alone(detections: DetectionRun, tmp_path: Path, metric: str) -> None:
    """pycocotools, given the truth and the boxes of a group's images only, says the same to the last digits."""
    comparison = compare_detections([detections])
    found = detections_by_camouflage(comparison, scores(tmp_path, photographs(detections), groups=2), metric)
    done, failed = detections.progress()
    truth = detections.truth()
    seen: list[float] = []
    for g, group in enumerate(found.groups):
        for model in found.models:
            label = model.result.model
            numbers = {done[image] for image in group.images if image not in failed[label]}
            assert model.images[g] == len(numbers)
            own = {
                "categories": truth["categories"],
                "images": [image for image in truth["images"] if image["id"] in numbers],
                "annotations": [thing for thing in truth["annotations"] if thing["image_id"] in numbers],
            }
            alone = {}
            for (name, entry, severity), rows in detections.rows(["clean", *DEGRADATIONS]):
                if name != label:
                    continue
                evaluator = DetectionEvaluator(moved_truth(own, rows.truth_boxes), evaluator="pycocotools")
                boxes = rows.detections[np.isin(rows.detections[:, 0], list(numbers))]
                alone[Condition(entry, severity)] = getattr(evaluator.evaluate(boxes), metric)
            by_severity = [np.mean([alone[Condition(e, s)] for e in DEGRADATIONS]) for s in (1, 5)]
            seen += [alone[Condition("clean", 0)], *by_severity]
            assert model.clean[g]["value"] == pytest.approx(seen[-3], abs=1e-12)
            assert values(model.by_severity[g]) == pytest.approx(by_severity, abs=1e-12)
            assert model.corrupted[g]["value"] == pytest.approx(np.mean(by_severity), abs=1e-12)
    assert len(set(seen)) > 3
    assert 0 < min(value for value in seen if value) < 1


def test_detections_have_intervals_and_strengths(detections: DetectionRun, tmp_path: Path) -> None:
    comparison = compare_detections([detections])
    given = scores(tmp_path, photographs(detections), groups=2)
    found = detections_by_camouflage(comparison, given)
    assert found.severities == (1, 5)
    assert len(found.strengths) == 5
    assert "over the categories of which its images have an object" in found.notes[-1]
    for model in found.models:
        assert not model.correlations
        for cell in (*model.clean, *model.corrupted):
            assert cell["low"] <= cell["value"] <= cell["high"]
            assert cell["low"] < cell["high"]
        flat = np.mean([cell["value"] for row in model.by_strength for cell in row])
        assert 0 < flat < 1
    assert found == detections_by_camouflage(comparison, given), "draws are seeded"
    tables = camouflage_tables(comparison, found)
    assert [table.title.partition(": ")[2] or table.title for table in tables] == [
        "By camouflage",
        "AP by camouflage and severity, mean over corruptions",
        "AP by camouflage and measured strength",
        "Where models stop seeing",
    ]
    assert camouflage_csv(comparison, found).count("\n") == 1 + 2 * (2 * (4 + 2 + 5 + 2) + 1)


def test_resampled_precision_is_that_of_a_group_alone(detections: DetectionRun, tmp_path: Path) -> None:
    """Matches of all images, parted, are those of the group's; each image once gives what the evaluator says."""
    given = scores(tmp_path, photographs(detections), groups=2)
    groups = detections_by_camouflage(compare_detections([detections]), given).groups
    done, failed = detections.progress()
    usable = {number for image, number in done.items() if image not in failed["blind"]}
    assert 8 < len(usable) < 14, "it fails on some"
    members = [usable & {done[image] for image in group.images} for group in groups]
    drawn = np.random.default_rng(0).integers(0, 4, (20, len(usable)))
    drawn[0] = 1
    truth = detections.truth()
    scorer = _Detector(truth, usable, members, drawn, "hotcoco", "ap")
    for _, rows in detections.rows(["clean", *DEGRADATIONS]):
        for numbers, (own, *resampled) in zip(members, scorer.score(rows), strict=True):
            assert resampled[0] == pytest.approx(own, abs=1e-12)
            alone = {
                **truth,
                "images": [image for image in truth["images"] if image["id"] in numbers],
                "annotations": [thing for thing in truth["annotations"] if thing["image_id"] in numbers],
            }
            evaluator = DetectionEvaluator(moved_truth(alone, rows.truth_boxes))
            matches = evaluator.match(rows.detections[np.isin(rows.detections[:, 0], list(numbers))])
            counts = drawn[:, np.isin(sorted(usable), list(numbers))]
            np.testing.assert_allclose(resampled, matches.average_precision(counts).mean(axis=1), atol=1e-12)


def test_samples_that_lie_too_high_are_moved() -> None:
    samples = np.array([[0.5, 0.2], [0.7, 0.2], [np.nan, 0.4], [0.9, 0.6]])
    moved = _centered(samples)
    np.testing.assert_allclose(moved, [[0.5, 0.2], [0.4, 0.0], [np.nan, 0.2], [0.6, 0.4]], atol=1e-12)


def test_detections_without_resampling(detections: DetectionRun, tmp_path: Path) -> None:
    comparison = compare_detections([detections])
    summary = summarize_detections(detections, samples=0)
    plain = detections_by_camouflage(
        replace(comparison, summaries=(summary,)), scores(tmp_path, photographs(detections), groups=2)
    )
    usual = detections_by_camouflage(comparison, scores(tmp_path, photographs(detections), groups=2))
    for one, other in zip(plain.models, usual.models, strict=True):
        assert values(one.corrupted) == values(other.corrupted), "resampling leaves the values alone"
        assert {cell["low"] for cell in one.corrupted} == {None}
        assert one.stops[0] is not None
        assert one.stops[0].low is None


def test_detections_that_cannot_be_divided(detections: DetectionRun, tmp_path: Path) -> None:
    comparison = compare_detections([detections])
    with pytest.raises(InputError, match="of other images: 'animal-00' there, 'photo-00' in the run"):
        detections_by_camouflage(comparison, scores(tmp_path))
    with pytest.raises(UnknownNameError, match="Known: ap, ap50, ap75"):
        detections_by_camouflage(comparison, scores(tmp_path), "dice")


def test_a_group_without_objects(detections: DetectionRun, tmp_path: Path) -> None:
    """Its AP is not defined, and so is where it stops."""
    comparison = compare_detections([detections])
    run = comparison.runs[0]
    truth = run.truth()
    images = [image["id"] for image in truth["images"]]
    emptied = {**truth, "annotations": [a for a in truth["annotations"] if a["image_id"] in images[:7]]}

    class Emptied(DetectionRun):
        def truth(self) -> dict[str, Any]:
            return emptied

        def rows(self, entries: Sequence[str]) -> Any:
            return ((key, replace(rows, truth_boxes={})) for key, rows in DetectionRun.rows(self, entries))

    names = list(run.progress()[0])
    found = detections_by_camouflage(
        replace(comparison, runs=(Emptied(run.path, run.plan, run.sessions),)),
        scores(tmp_path, {name: float(i) for i, name in enumerate(names)}, groups=2),
    )
    for model in found.models:
        assert model.clean[0]["value"] is not None
        assert (model.clean[1]["value"], model.stops[1]) == (None, None)


def test_runs_of_segmenters_are_read_as_they_are(tmp_path: Path) -> None:
    """A summary that was made earlier serves as well as a new one."""
    run = make_rows(tmp_path / "run", {"net": noisy})
    before = masks_by_camouflage(compare_runs([run]), scores(tmp_path))
    (run.path / "summary.json").write_text(json.dumps(summarize(run)))
    assert masks_by_camouflage(compare_runs([RunFolder.open(run.path)]), scores(tmp_path)).models == before.models
