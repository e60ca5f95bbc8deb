from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from crypsis.errors import InputError
from crypsis.metrics.robustness import bootstrap_weights, summarize_corruption

PAPER = json.loads((Path(__file__).parents[1] / "data" / "paper_tables.json").read_text("utf-8"))["cod10k_c"]
HALF = 0.0005
"""Half of the last printed digit."""


@pytest.mark.parametrize("model", PAPER["dice_by_corruption"])
def test_the_paper_from_its_own_numbers(model: str) -> None:
    by_corruption = {k: v for k, v in PAPER["dice_by_corruption"][model].items() if k != "mean"}
    clean, printed = PAPER["clean"][model]["dice"], PAPER["mean_corrupted"][model]
    summary = summarize_corruption(clean, by_corruption)
    assert len(by_corruption) == 8
    # Numbers printed with three decimals are within HALF of the authors' own. The mean of eight of them is again
    # within HALF of the mean, and so is the printed mean: 2·HALF (PFNet: .5736 here, .573 printed). A difference
    # adds the clean score's HALF. A quotient adds HALF and retention·HALF in units of the clean score, and its own.
    fuzz = 1e-9
    assert summary.corrupted == pytest.approx(printed["dice"], abs=2 * HALF + fuzz)
    assert summary.delta == pytest.approx(printed["delta_dice"], abs=3 * HALF + fuzz)
    assert summary.retention is not None
    assert summary.retention == pytest.approx(
        PAPER["retention"][model], abs=(1 + summary.retention) * HALF / clean + HALF + fuzz
    )


@pytest.mark.parametrize(
    ("model", "worst"),
    [("SINet-v2", "motion_blur"), ("ZoomNet", "gaussian_blur"), ("PFNet", "gaussian_noise")],
)
def test_the_worst_corruption_of_the_paper(model: str, worst: str) -> None:
    by_corruption = {k: v for k, v in PAPER["dice_by_corruption"][model].items() if k != "mean"}
    assert summarize_corruption(PAPER["clean"][model]["dice"], by_corruption).worst == worst


@pytest.mark.parametrize("model", PAPER["clean"])
def test_severities_of_the_paper_average_to_its_corruptions(model: str) -> None:
    by_severity = {name: PAPER["dice_by_severity"][name][model] for name in ("gaussian_noise", "motion_blur")}
    summary = summarize_corruption(PAPER["clean"][model]["dice"], by_severity)
    for name, mean in summary.by_corruption.items():
        assert mean == pytest.approx(PAPER["dice_by_corruption"][model][name], abs=2 * HALF + 1e-9)
    assert summary.by_severity is not None
    assert list(summary.by_severity) == sorted(summary.by_severity, reverse=True)


def test_a_summary_by_hand() -> None:
    summary = summarize_corruption(0.8, {"fog": [0.8, 0.6], "rain": (0.4, 0.2)})
    assert summary.by_corruption == pytest.approx({"fog": 0.7, "rain": 0.3})
    assert summary.corrupted == pytest.approx(0.5)
    assert summary.delta == pytest.approx(-0.3)
    assert summary.retention == pytest.approx(0.625)
    assert summary.worst == "rain"
    assert summary.by_severity == pytest.approx((0.6, 0.4))


def test_the_worst_error_is_the_largest() -> None:
    assert summarize_corruption(0.04, {"fog": 0.05, "rain": 0.09}, higher_is_better=False).worst == "rain"
    assert summarize_corruption(0.04, {"fog": 0.05, "rain": 0.09}).worst == "fog"


def test_nothing_is_kept_of_nothing() -> None:
    summary = summarize_corruption(0.0, {"fog": 0.1})
    assert summary.retention is None
    assert summary.delta == pytest.approx(0.1)
    assert summary.by_severity is None


@pytest.mark.parametrize(
    ("clean", "by_corruption", "message"),
    [
        (0.5, {}, "at least one corruption"),
        (0.5, {"fog": []}, "fog"),
        (0.5, {"fog": [0.1, float("nan")]}, "fog"),
        (float("inf"), {"fog": 0.1}, "clean"),
        (0.5, {"fog": [0.1, 0.2], "rain": [0.1]}, "fog 2, rain 1"),
        (0.5, {"fog": [0.1], "rain": 0.1}, "same severities"),
    ],
)
def test_unusable_scores(clean: float, by_corruption: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        summarize_corruption(clean, by_corruption)


def test_bootstrap_weights_are_shares_of_draws() -> None:
    weights = bootstrap_weights(37, samples=200, seed=5)
    assert (weights.shape, weights.dtype) == ((200, 37), np.float64)
    assert weights.sum(axis=1) == pytest.approx(np.ones(200))
    assert np.allclose(weights * 37, np.rint(weights * 37), atol=1e-9)
    assert weights.mean() == pytest.approx(1 / 37)


def test_bootstrap_weights_depend_on_the_seed_alone() -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - it is what must not move
    one, again, other = (bootstrap_weights(20, samples=50, seed=s) for s in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def test_bootstrap_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        scores = rng.normal(0.6, 0.2, 60)
        low, high = np.quantile(bootstrap_weights(60, samples=400, seed=trial) @ scores, [0.025, 0.975])
        covered += low <= 0.6 <= high
    assert 0.88 <= covered / 200 <= 0.99


@pytest.mark.parametrize(("n", "samples"), [(0, 10), (10, 0)])
def test_bootstrap_of_nothing(n: int, samples: int) -> None:
    with pytest.raises(InputError, match="at least one"):
        bootstrap_weights(n, samples=samples, seed=0)
