"""The table of uncertainty against error, by hand."""

from __future__ import annotations

import csv
import io

import pytest

from crypsis.metrics.uncertainty import UncertaintyScores
from crypsis.report.tables import Number
from crypsis.report.uncertainty_table import uncertainty_csv, uncertainty_table

SCORES = {"a": UncertaintyScores(0.1, 0.6, 0.3, 0.5), "=b": UncertaintyScores(0.2, 0.4, 0.4, 0.3)}


def test_means_and_their_difference() -> None:
    table = uncertainty_table(SCORES)
    values = {row[0]: [cell.value for cell in row[1:] if isinstance(cell, Number)] for row in table.rows}
    assert values["the model's own"] == pytest.approx([0.15, 0.5])
    assert values["p(1 − p)"] == pytest.approx([0.35, 0.4])
    assert values["difference"] == pytest.approx([-0.2, 0.1])
    ause = table.rows[2][1]
    assert isinstance(ause, Number)
    assert (ause.low, ause.high) == (pytest.approx(-0.2), pytest.approx(-0.2))  # each image differs by as much
    assert table.notes[0].startswith("Means over 2 images")


def test_one_row_for_each_image() -> None:
    rows = list(csv.DictReader(io.StringIO(uncertainty_csv(SCORES))))
    assert [row["image"] for row in rows] == ["a", "'=b"]
    assert {name: float(value) for name, value in rows[0].items() if name != "image"} == {
        "ause": 0.1, "correlation": 0.6, "baseline_ause": 0.3, "baseline_correlation": 0.5
    }  # fmt: skip
