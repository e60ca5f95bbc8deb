"""Tables and CSV of detection runs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from synthetic_detections import DATASET, ENTRIES, detector, make_detections

from crypsis.detection_results import DetectionRun
from crypsis.errors import InputError, UnknownNameError
from crypsis.metrics.detection import SCORES
from crypsis.report.detection_comparison import SCORE_LABELS, SCORE_TITLES, compare_detections, place_title
from crypsis.report.detection_tables import CSV_COLUMNS, detection_csv, detection_tables
from crypsis.report.tables import Number


@pytest.fixture
def run(tmp_path: Path) -> DetectionRun:
    return make_detections(tmp_path / "run", {"strong": detector(0.5, 0.15), "steady": detector(0.4, 0.02)})


def test_every_score_has_a_name() -> None:
    assert tuple(SCORE_LABELS) == SCORES == tuple(SCORE_TITLES)


@pytest.mark.parametrize(
    ("place", "label", "title"),
    [
        ("family", "arniqa", "arniqa"),
        ("cause", "S", "Sensor/Optics"),
        ("effect", "N", "Noise"),
        ("group", "G3", "G3 Resolution/Sampling"),
        ("cell", "S-N", "Sensor/Optics → Noise"),
    ],
)
def test_place_title(place: str, label: str, title: str) -> None:
    assert place_title(place, label) == title


def test_overall(run: DetectionRun) -> None:
    table = detection_tables([run])[0]
    assert table.header == ("Images", "Detector", *(f"{label} ↑" for label in SCORE_LABELS.values()))
    assert [row[:2] for row in table.rows[:4]] == [
        ("Clean", "strong"), ("Clean", "steady"), ("Corrupted (mPC)", "strong"), ("Corrupted (mPC)", "steady"),
    ]  # fmt: skip
    clean, kept = table.rows[0][2], table.rows[7][2]
    assert isinstance(clean, Number)
    assert isinstance(kept, Number)
    assert (clean.text, clean.interval, clean.best) == ("0.500", "[0.480, 0.520]", True)
    assert kept.text == f"{100 * float(compare_detections([run]).results[1].value('retention', 'ap') or 0):.1f}%"
    assert kept.best
    assert any("mPC" in note and "rPC" in note for note in table.notes)
    assert any(note.startswith("[low, high]") for note in table.notes)


def test_entries_by_severity(run: DetectionRun) -> None:
    tables = {table.title: table for table in detection_tables([run], metric="ap50")}
    table = tables["AP50 of arniqa"]
    assert table.header == ("Degradation", "Detector", "s=1 ↑", "s=3 ↑", "s=5 ↑", "Mean ↑", "ΔAP50 ↑")
    names = [group[0][0] for group in table.groups]
    assert names == ["Impulse noise", "Jitter †", "Brighten"]
    assert any(note.startswith("†") and "stayed" in note for note in table.notes)
    _, _, *levels, mean, change = table.rows[0]
    values = [cell.value for cell in (*levels, mean, change) if isinstance(cell, Number)]
    assert values[3] == pytest.approx(sum(v for v in values[:3] if v is not None) / 3)
    assert values[4] == pytest.approx((values[3] or 0) - 0.75)


def test_aligned_truth_is_said(tmp_path: Path) -> None:
    run = make_detections(tmp_path / "run", truth="aligned")
    assert any("moved along" in note for note in detection_tables([run])[0].notes)


def test_places_are_in_the_order_of_the_taxonomy_and_count_entries(run: DetectionRun) -> None:
    tables = {table.title: table for table in detection_tables([run])}
    groups = [group[0][0] for group in tables["Change by group of the taxonomy"].groups]
    assert groups[0] == "G1 Noise (2)"
    numbers = [int(str(group).split()[0][1:]) for group in groups]
    assert numbers == sorted(numbers)
    counts = [
        int(str(group[0][0]).rpartition("(")[2].rstrip(")")) for group in tables["Change by cause and effect"].groups
    ]
    assert sum(counts) == len(ENTRIES)


def test_one_detector_has_no_column_of_names_and_no_best(tmp_path: Path) -> None:
    tables = detection_tables([make_detections(tmp_path / "run")])
    assert all("Detector" not in table.header[1:] for table in tables)
    assert not any(cell.best for table in tables for row in table.rows for cell in row if isinstance(cell, Number))


def test_categories(run: DetectionRun, tmp_path: Path) -> None:
    table = detection_tables([run])[-1]
    assert table.title == "AP by category"
    assert [row[0] for row in table.rows] == ["cat", "cat", "dog", "dog"]
    assert [cell.text for cell in table.rows[2][2:] if isinstance(cell, Number)] == ["–"] * 4
    one = make_detections(tmp_path / "one", categories={"1": "object"})
    assert "AP by category" not in [t.title for t in detection_tables([one])]


def test_undefined_numbers_are_dashes(tmp_path: Path) -> None:
    run = make_detections(tmp_path / "run", {"net": detector(0.4, 0.1, small=False)})
    overall = detection_tables([run])[0]
    place = overall.header.index("APs ↑")
    assert {row[place].text for row in overall.rows if isinstance(row[place], Number)} == {"–"}


def test_intervals_can_be_left_out(run: DetectionRun) -> None:
    tables = detection_tables([run], intervals=False)
    assert not any(cell.interval for t in tables for row in t.rows for cell in row if isinstance(cell, Number))
    assert not any(note.startswith("[low") for table in tables for note in table.notes)


def test_incomplete_is_in_every_title(tmp_path: Path) -> None:
    run = make_detections(tmp_path / "run", failed={"a": "damaged"})
    tables = detection_tables([run])
    assert all(table.title.startswith("INCOMPLETE: ") for table in tables)
    assert "119 of 120 images, 1 failed" in tables[0].notes[0]


def test_unknown_metric(run: DetectionRun) -> None:
    with pytest.raises(UnknownNameError, match=r"Known: ap, ap50, .*ar_large"):
        detection_tables([run], metric="ap5")


def test_csv_has_every_number_once(run: DetectionRun) -> None:
    rows = list(csv.DictReader(io.StringIO(detection_csv([run]))))
    assert tuple(rows[0]) == CSV_COLUMNS
    keys = [(r["model"], r["kind"], r["label"], r["severity"], r["metric"]) for r in rows]
    assert len(set(keys)) == len(keys)
    conditions = [r for r in rows if r["kind"] == "condition"]
    assert len(conditions) == 2 * len(ENTRIES) * 3 * len(SCORES)
    assert all(r["1-ssim"] and r["psnr"] for r in conditions)
    assert not any(r["1-ssim"] for r in rows if r["kind"] not in ("clean", "condition"))
    clean = next(r for r in rows if r["kind"] == "clean" and r["metric"] == "ap")
    assert (clean["value"], clean["low"], clean["high"], clean["planned"]) == (
        "0.500000",
        "0.480000",
        "0.520000",
        "120",
    )
    category = next(r for r in rows if r["kind"] == "category clean" and r["label"] == "dog")
    assert (category["metric"], category["value"]) == ("ap", "")


def test_csv_of_odd_names(tmp_path: Path) -> None:
    run = make_detections(tmp_path / "run", {"=1+1": detector(0.4, 0.1)}, categories={"1": "@cmd", "7": "b"})
    rows = list(csv.DictReader(io.StringIO(detection_csv([run]))))
    assert {r["model"] for r in rows} == {"'=1+1"}
    assert "'@cmd" in {r["label"] for r in rows}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"severities": (1, 2, 3)}, "severities"),
        ({"entries": ENTRIES[:3]}, "entries"),
        ({"seed": 1}, "seed"),
        ({"labels": "agnostic"}, "labels"),
        ({"keep": ["cat"]}, "keep"),
        ({"truth": "aligned"}, "truth"),
        ({"dataset": DATASET | {"annotations_sha256": "00" * 32}}, "annotations"),
        ({"dataset": DATASET | {"keys_sha256": "00" * 32}}, "images"),
    ],
)
def test_runs_that_differ_are_refused(run: DetectionRun, tmp_path: Path, change: dict[str, object], named: str) -> None:
    other = make_detections(tmp_path / "other", **change)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"cannot be compared: they differ in {named}"):
        detection_tables([run, other])


def test_runs_are_set_side_by_side(run: DetectionRun, tmp_path: Path) -> None:
    other = make_detections(tmp_path / "other", {"strong": detector(0.3, 0.1), "third": detector(0.2, 0.1)})
    labels = [result.label for result in compare_detections([run, other]).results]
    assert labels == ["run/strong", "steady", "other/strong", "third"]
    with pytest.raises(InputError, match="given twice"):
        compare_detections([run, run])
    with pytest.raises(InputError, match="No run"):
        compare_detections([])


def test_warnings(tmp_path: Path) -> None:
    run = make_detections(tmp_path / "run", {"net": detector(0.4, 0.1), "broken": None})
    assert any("broken scored no image" in text for text in compare_detections([run]).warnings())
    other = make_detections(tmp_path / "other", {"two": detector(0.4, 0.1)}, failed={"x": "damaged"})
    assert any("different subsets" in text for text in compare_detections([run, other]).warnings())


def test_detectors_that_failed_on_different_images_are_told(tmp_path: Path) -> None:
    models = {"one": detector(0.4, 0.1), "two": detector(0.3, 0.1)}
    run = make_detections(tmp_path / "run", models, failed={"x": "damaged"})
    assert not any("different images" in text for text in compare_detections([run]).warnings())
    path = tmp_path / "run" / "summary.json"
    summary = json.loads(path.read_text())
    summary["failed"]["y"] = "too small"  # of two failed images, each detector lost one
    path.write_text(json.dumps(summary))
    assert any("failed on different images" in text for text in compare_detections([run]).warnings())


@pytest.mark.parametrize(
    ("adapters", "words"),
    [
        (["onnx"], "labels by equal names;"),
        (["predictions"], "labels by category id;"),
        (["onnx", "predictions"], "labels by equal names (of saved detections by category id);"),
    ],
)
def test_how_labels_became_categories(tmp_path: Path, adapters: list[str], words: str) -> None:
    models = {name: detector(0.4, 0.1) for name in adapters}
    run = make_detections(tmp_path / "run", models)
    run.plan["models"] = {name: {"adapter": name} for name in adapters}  # type: ignore[index]
    assert words in compare_detections([run]).scope()


def test_titles_say_the_family_only_where_they_must(run: DetectionRun) -> None:
    titles = compare_detections([run]).titles
    assert titles["arniqa/impulsenoise"] == "Impulse noise (arniqa)"
    assert titles["imagenet-c/impulse_noise"] == "Impulse noise (imagenet-c)"
    assert titles["imagenet-c/fog"] == "Fog"
    assert titles["arniqa/jitter"] == "Jitter †"


def test_drops_are_sorted_from_the_worst(run: DetectionRun) -> None:
    comparison = compare_detections([run])
    drops = comparison.drops(comparison.results[0])
    assert list(drops) == list(reversed(ENTRIES))
    assert list(drops.values()) == sorted(drops.values())
