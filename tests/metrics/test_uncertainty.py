from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crypsis.errors import InputError
from crypsis.metrics.uncertainty import (
    error_correlation,
    predictive_variance,
    sparsification_curve,
    sparsification_error,
    uncertainty_scores,
)

ERROR = np.array([0.8, 0.0, 0.4, 0.0], np.float32)


@pytest.mark.parametrize(
    ("order", "curve"),
    [
        # mean of all four, then without the largest, and so on
        ([4, 1, 3, 2], [0.3, 0.4 / 3, 0.0, 0.0]),
        ([1, 4, 2, 3], [0.3, 0.4, 0.6, 0.8]),
        # two and two without an order: each counts with the mean 0.4 and 0.2 of its pair
        ([2, 2, 1, 1], [0.3, (0.4 + 0.2 + 0.2) / 3, 0.2, 0.2]),
        ([5, 5, 5, 5], [0.3, 0.3, 0.3, 0.3]),
    ],
)
def test_curve(order: list[float], curve: list[float]) -> None:
    np.testing.assert_allclose(sparsification_curve(np.array(order, np.float32), ERROR), curve, rtol=1e-6)


@pytest.mark.parametrize(
    ("order", "area"),
    [
        ([4, 1, 3, 2], 0.0),
        # the oracle's curve is 0.3, 0.4/3, 0, 0; differences 0, 0.8/3, 0.6, 0.8, their mean over 0.3
        ([1, 4, 2, 3], (0.8 / 3 + 0.6 + 0.8) / 4 / 0.3),
        ([5, 5, 5, 5], (0.3 - 0.4 / 3 + 0.3 + 0.3) / 4 / 0.3),
    ],
)
def test_area(order: list[float], area: float) -> None:
    assert sparsification_error(np.array(order, np.float32), ERROR) == pytest.approx(area, abs=1e-7)


def test_nothing_to_find_in_a_perfect_map() -> None:
    assert sparsification_error(np.arange(4.0), np.zeros(4)) == 0.0
    assert error_correlation(np.arange(4.0), np.zeros(4)) == 0.0


VALUES = arrays(np.float32, (5, 7), elements=st.floats(0, 1, width=16))


@settings(deadline=None, max_examples=80)
@given(VALUES, VALUES)
def test_area_is_bounded_and_depends_on_the_order_alone(uncertainty: np.ndarray, error: np.ndarray) -> None:
    area = sparsification_error(uncertainty, error)
    reverse = sparsification_error(-error, error)
    assert -1e-9 <= area <= reverse + 1e-6
    assert sparsification_error(error, error) == 0.0
    assert sparsification_error(uncertainty.astype(np.float64) * 3 + 1, error) == pytest.approx(area)
    shuffled = np.random.default_rng(0).permutation(error.size)
    assert sparsification_error(uncertainty.ravel()[shuffled], error.ravel()[shuffled]) == pytest.approx(area, abs=1e-6)


def test_ties_are_the_mean_over_their_orders() -> None:
    rng = np.random.default_rng(3)
    order, error = rng.integers(0, 3, 60).astype(np.float64), rng.random(60)
    split = [sparsification_curve(order + 0.5 * rng.random(60), error) for _ in range(4000)]
    np.testing.assert_allclose(np.mean(split, axis=0), sparsification_curve(order, error), atol=0.02)


@settings(deadline=None, max_examples=60)
@given(VALUES, VALUES)
def test_correlation_is_pearsons(uncertainty: np.ndarray, error: np.ndarray) -> None:
    found = error_correlation(uncertainty, error)
    assert -1 <= found <= 1
    if min(uncertainty.std(), error.std()) > 1e-3:
        assert found == pytest.approx(np.corrcoef(uncertainty.ravel(), error.ravel())[0, 1], abs=1e-5)


def test_scores_of_an_image() -> None:
    probability = np.array([[0.9, 0.6], [0.4, 0.1]], np.float32)
    mask = np.array([[True, False], [True, True]])
    error = np.array([[0.1, 0.6], [0.6, 0.9]], np.float32)
    scores = uncertainty_scores(probability, mask, error)
    assert scores.ause == 0.0
    assert scores.correlation == pytest.approx(1.0)
    # p(1 − p) is sure of the worst pixel
    variance = predictive_variance(probability)
    np.testing.assert_allclose(variance, [[0.09, 0.24], [0.24, 0.09]], rtol=1e-6)
    assert scores.baseline_ause == pytest.approx(sparsification_error(variance, error))
    assert scores.baseline_ause > 0.1
    # deviations ∓0.075 of the variance, and -0.45, 0.05, 0.05, 0.35 of the error: 0.015 / √(0.0225·0.33)
    assert scores.baseline_correlation == pytest.approx(0.015 / (0.0225 * 0.33) ** 0.5, rel=1e-5)


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (np.zeros(3), np.zeros(4)),
        (np.zeros(0), np.zeros(0)),
        (np.array([0.0, np.nan]), np.zeros(2)),
    ],
)
def test_refuses_what_has_no_order(order: np.ndarray, error: np.ndarray) -> None:
    with pytest.raises(InputError, match="same pixels"):
        sparsification_curve(order, error)


def test_refuses_different_shapes() -> None:
    flat = np.zeros((2, 2), np.float32)
    with pytest.raises(InputError, match="one shape"):
        error_correlation(np.zeros(3), np.zeros(4))
    with pytest.raises(InputError, match="one shape"):
        uncertainty_scores(flat, np.zeros((2, 3), bool), flat)
