from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from crypsis.errors import InputError
from crypsis.metrics.robustness import aggregate, bootstrap_counts, bootstrap_weights

PAPER = json.loads((Path(__file__).parents[1] / "data" / "paper_tables.json").read_text("utf-8"))["cod10k_c"]
HALF = 0.0005
"""Half of the last printed digit."""


def by_corruption(model: str) -> dict[str, float]:
    return {k: v for k, v in PAPER["dice_by_corruption"][model].items() if k != "mean"}


@pytest.mark.parametrize("model", PAPER["dice_by_corruption"])
def test_the_paper_from_its_own_numbers(model: str) -> None:
    scores = by_corruption(model)
    clean, printed = PAPER["clean"][model]["dice"], PAPER["mean_corrupted"][model]
    result = aggregate(clean, list(scores.values()))
    assert len(scores) == 8
    # Numbers printed with three decimals are within HALF of the authors' own. The mean of eight of them is again
    # within HALF of the mean, and so is the printed mean: 2·HALF (PFNet: .5736 here, .573 printed). A difference
    # adds the clean score's HALF. A quotient adds HALF and retention·HALF in units of the clean score, and its own.
    fuzz = 1e-9
    assert result.corrupted == pytest.approx(printed["dice"], abs=2 * HALF + fuzz)
    assert result.delta == pytest.approx(printed["delta_dice"], abs=3 * HALF + fuzz)
    assert result.retention == pytest.approx(
        PAPER["retention"][model], abs=(1 + float(result.retention)) * HALF / clean + HALF + fuzz
    )


@pytest.mark.parametrize("model", PAPER["clean"])
def test_severities_of_the_paper_average_to_its_corruptions(model: str) -> None:
    names = ("gaussian_noise", "motion_blur")
    result = aggregate(PAPER["clean"][model]["dice"], [PAPER["dice_by_severity"][name][model] for name in names])
    for name, mean in zip(names, result.by_corruption, strict=True):
        assert mean == pytest.approx(PAPER["dice_by_corruption"][model][name], abs=2 * HALF + 1e-9)
    assert result.by_severity is not None
    assert list(result.by_severity) == sorted(result.by_severity, reverse=True)


def test_by_hand() -> None:
    result = aggregate(0.8, [[0.8, 0.6], [0.4, 0.2]])
    assert result.by_corruption == pytest.approx([0.7, 0.3])
    assert result.by_severity == pytest.approx([0.6, 0.4])
    assert result.corrupted == pytest.approx(0.5)
    assert result.delta == pytest.approx(-0.3)
    assert result.retention == pytest.approx(0.625)


def test_leading_axes_are_independent() -> None:
    rng = np.random.default_rng(0)
    clean, scores = rng.uniform(0.1, 1, 7), rng.uniform(0, 1, (7, 8, 5))
    together = aggregate(clean, scores)
    for i in range(7):
        alone = aggregate(clean[i], scores[i])
        assert together.corrupted[i] == pytest.approx(alone.corrupted)
        assert together.retention[i] == pytest.approx(alone.retention)
        assert together.by_corruption[i] == pytest.approx(alone.by_corruption)


def test_nothing_is_kept_of_nothing() -> None:
    result = aggregate(0.0, [0.1])
    assert np.isnan(result.retention)
    assert result.delta == pytest.approx(0.1)
    assert result.by_severity is None


@pytest.mark.parametrize(("clean", "scores"), [(0.5, []), (0.5, [[]]), (0.5, 0.4), ([0.5, 0.6], [[0.1]])])
def test_shapes_that_do_not_belong_together(clean: object, scores: object) -> None:
    with pytest.raises(InputError, match="shape"):
        aggregate(clean, scores)  # type: ignore[arg-type]


def test_bootstrap_draws_as_many_images_as_there_are() -> None:
    counts = bootstrap_counts(37, samples=200, seed=5)
    assert (counts.shape, counts.dtype) == ((200, 37), np.uint16)
    assert (counts.sum(axis=1) == 37).all()


def test_bootstrap_depends_on_the_seed_alone() -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - it is what must not move
    one, again, other = (bootstrap_counts(20, samples=50, seed=s) for s in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def test_bootstrap_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        scores = rng.normal(0.6, 0.2, 60)
        low, high = np.quantile(bootstrap_counts(60, samples=400, seed=trial) @ scores / 60, [0.025, 0.975])
        covered += low <= 0.6 <= high
    assert 0.88 <= covered / 200 <= 0.99


@pytest.mark.parametrize(("n", "samples"), [(0, 10), (10, 0)])
def test_bootstrap_of_nothing(n: int, samples: int) -> None:
    with pytest.raises(InputError, match="at least one"):
        bootstrap_counts(n, samples=samples, seed=0)


def test_weights_are_the_images_themselves_and_then_the_draws() -> None:
    weights = bootstrap_weights(5, samples=7, seed=3)
    assert weights.shape == (8, 5)
    assert (weights[0] == 0.2).all()
    assert np.allclose(weights.sum(axis=1), 1)
    assert np.array_equal(weights[1:], bootstrap_counts(5, samples=7, seed=3) / 5)
    assert bootstrap_weights(1, seed=0).tolist() == [[1.0]]  # one image has no spread
