"""Paired differences between models, on runs whose numbers are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic_runs import make_run, paper_model

from crypsis.report.comparison import compare_runs
from crypsis.report.differences import difference_table
from crypsis.report.tables import Number
from crypsis.results import RECORD_SCHEMA, SCORES, STRENGTHS, RunFolder, image_scores

Dice = Callable[[int, str, int], float]
"""Of an image, an entry and a severity."""

SCORED = {
    **dict.fromkeys((*SCORES, *STRENGTHS), 0.5),
    **dict.fromkeys(("ece_count", "ece_confidence", "ece_correct"), [1] * 15),
    **dict.fromkeys(("histogram_object", "histogram_background"), [1] * 256),
    "height": 8,
    "width": 8,
    "foreground": 16,
}


def fill(run: RunFolder, models: Mapping[str, Dice], images: int = 48, failed: tuple[str, int] | None = None) -> None:
    """Write rows with a Dice of each image, condition and model; one image of a model may fail under fog at 3."""
    rows = []
    for image in range(images):
        for model, dice in models.items():
            for c in run.conditions:
                row = dict.fromkeys(RECORD_SCHEMA.names)
                row |= {"image": f"im-{image:02d}", "model": model, "entry": c.entry, "severity": c.severity}
                if failed == (model, image) and (c.entry, c.severity) == ("cod10k-c/fog", 3):
                    row |= {"status": "failed", "error": "no"}
                else:
                    row |= {"status": "ok", **SCORED, "dice": dice(image, c.entry, c.severity)}
                rows.append(row)
    (run.path / "parts").mkdir()
    of_image = len(models) * len(run.conditions)
    for k, some in enumerate((rows[: 5 * of_image], rows[5 * of_image :])):
        pq.write_table(pa.Table.from_pylist(some, RECORD_SCHEMA), run.path / "parts" / f"{k}.parquet")


def hard(image: int, entry: str, severity: int) -> float:
    """Return a Dice that depends on the image far more than on anything else."""
    return 0.3 + 0.01 * image - 0.02 * severity


def better(image: int, entry: str, severity: int) -> float:
    return hard(image, entry, severity) + (0.02 if entry == "clean" else 0.05)


@pytest.fixture
def two(tmp_path: Path) -> RunFolder:
    run = make_run(tmp_path / "run", {"first": paper_model("SINet-v2"), "second": paper_model("PFNet")})
    fill(run, {"first": hard, "second": better})
    return run


def numbers(run: RunFolder | list[RunFolder], metric: str = "dice") -> list[Number]:
    table = difference_table(compare_runs(run if isinstance(run, list) else [run]), metric)
    assert table is not None
    return [cell for cell in table.rows[0] if isinstance(cell, Number)]


def test_the_interval_is_of_the_difference(two: RunFolder) -> None:
    clean, corrupted, retention = numbers(two)
    for found, expected in ((clean, 0.02), (corrupted, 0.05)):
        assert found.value == pytest.approx(expected)
        assert found.low == pytest.approx(expected)  # the images differ, the models' difference does not
        assert found.high == pytest.approx(expected)
    mean = 0.3 + 0.01 * np.mean(range(48))
    assert retention.value == pytest.approx(100 * ((mean - 0.06 + 0.05) / (mean + 0.02) - (mean - 0.06) / mean))
    assert retention.low is not None
    assert retention.high is not None
    assert 0 < retention.low < retention.value < retention.high


def test_models_of_two_runs_are_paired(two: RunFolder, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", {"second": paper_model("PFNet")})
    fill(other, {"second": better})
    table = difference_table(compare_runs([two, other]))
    assert table is not None
    assert [row[0] for row in table.rows] == ["run/second", "other/second"]
    assert table.rows[0][1:] == table.rows[1][1:]
    assert table.title == "Difference from first"


def test_an_image_that_failed_is_left_out_of_both(tmp_path: Path) -> None:
    models = {
        "first": hard,
        "second": lambda image, entry, severity: 9.0 if image == 7 else better(image, entry, severity),
    }
    run = make_run(tmp_path / "run", dict.fromkeys(models, paper_model("PFNet")))
    fill(run, models, failed=("second", 7))
    assert numbers(run)[0].value == pytest.approx(0.02)
    images, scores = image_scores(run, "dice")
    assert images == tuple(f"im-{k:02d}" for k in range(48))
    assert scores.shape == (2, 48, 41)
    assert np.isnan(scores[1, 7]).all()
    assert np.isnan(scores).sum() == 41
    assert scores[0, 7, 0] == pytest.approx(hard(7, "clean", 0))


def test_without_a_common_image_nothing_is_said(tmp_path: Path) -> None:
    one, two = (make_run(tmp_path / name, {name: paper_model("PFNet")}) for name in ("one", "two"))
    fill(one, {"one": hard}, images=2, failed=("one", 0))
    fill(two, {"two": hard}, images=2, failed=("two", 1))
    assert [number.value for number in numbers([one, two])] == [None, None, None]


def test_errors_keep_no_share(two: RunFolder) -> None:
    table = difference_table(compare_runs([two]), "mae")
    assert table is not None
    assert table.header == ("Model", "Clean ΔMAE ↓", "Corrupted ΔMAE ↓")
    assert [len(row) for row in table.rows] == [3]


@pytest.mark.parametrize("metric", ["ece_pooled", "f_max"])
def test_no_difference_of_pooled_metrics(two: RunFolder, metric: str) -> None:
    assert difference_table(compare_runs([two]), metric) is None


def test_no_difference_of_one_model(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"first": paper_model("SINet-v2")})
    fill(run, {"first": hard})
    assert difference_table(compare_runs([run])) is None
