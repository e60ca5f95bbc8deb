from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import make_run, paper_model, unmeasured

from crypsis.report.comparison import ModelResult, compare_runs

PATH = ["clean", "fog@1", "fog@2", "fog@3"]


def result(strengths: list[float | None], dice: list[float | None]) -> ModelResult:
    """Return a model whose conditions have these strengths and scores."""

    def interval(value: float | None) -> dict[str, float | None]:
        return {"value": value, "low": None, "high": None}

    scores: dict[str, Any] = {
        "strength": {c: {"1-ssim": interval(v)} for c, v in zip(PATH, strengths, strict=True)},
        "conditions": {c: {"dice": interval(v)} for c, v in zip(PATH, dice, strict=True)},
    }
    return ModelResult("m", "m", 0, scores)


@pytest.mark.parametrize(
    ("strengths", "place", "expected"),
    [
        ([0.0, 0.1, 0.2, 0.4], 0.0, 0.8),
        ([0.0, 0.1, 0.2, 0.4], 0.1, 0.7),
        ([0.0, 0.1, 0.2, 0.4], 0.3, 0.45),
        ([0.0, 0.1, 0.2, 0.4], 0.4, 0.4),
        ([0.0, 0.1, 0.2, 0.4], 0.41, None),
        ([0.0, 0.3, 0.1, 0.4], 0.15, 0.75),  # reached on the way to the first severity, not on the way back
        ([0.0, 0.3, 0.1, 0.4], 0.35, 0.5 - 0.1 * 0.25 / 0.3),
        ([0.0, 0.0, 0.2, 0.2], 0.0, 0.8),
        ([0.0, None, 0.2, 0.4], 0.1, None),
    ],
)
def test_score_at_a_strength(strengths: list[float | None], place: float, expected: float | None) -> None:
    found = result(strengths, [0.8, 0.7, 0.5, 0.4]).at_strength("dice", PATH, place)
    assert found == (None if expected is None else pytest.approx(expected))


def test_no_score_where_it_is_undefined() -> None:
    one = result([0.0, 0.1, 0.2, 0.4], [0.8, None, 0.5, 0.4])
    assert one.at_strength("dice", PATH, 0.05) is None
    assert one.at_strength("dice", PATH, 0.3) == pytest.approx(0.45)


def test_the_common_strength_is_what_the_weakest_entry_reaches(tmp_path: Path) -> None:
    measured = make_run(tmp_path / "a", {"m": paper_model("PFNet")})
    stored = make_run(tmp_path / "b", {"stored": unmeasured(paper_model("ZoomNet"))})
    comparison = compare_runs([stored, measured])
    reached = [
        max(comparison.results[1].strengths(comparison.path(entry)) or []) for entry in comparison.plan["entries"]
    ]
    assert comparison.common_strength() == min(reached) > 0.1
    assert compare_runs([stored]).common_strength() is None
    assert comparison.path("cod10k-c/fog")[:2] == ["clean", "cod10k-c/fog@1"]
