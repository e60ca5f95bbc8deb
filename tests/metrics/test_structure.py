from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.metrics.structure import ErrorWeights, e_measure, s_measure, weighted_f
from crypsis.metrics.truth import MaskTruth


def nearest_by_definition(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance of every pixel to the object and number of its nearest object pixel; ties: leftmost, then topmost."""
    ys, xs = np.nonzero(mask)
    y, x = np.indices(mask.shape)
    squares = (y[..., None] - ys) ** 2 + (x[..., None] - xs) ** 2
    order = (squares * 1000 + xs) * 1000 + ys
    return np.sqrt(squares.min(-1)), order.argmin(-1)


def weighted_f_by_definition(p: np.ndarray, mask: np.ndarray) -> float:
    distance, nearest = nearest_by_definition(mask)
    error = np.abs(p - mask)
    spread = np.pad(error[mask][nearest], 3)
    t = np.arange(-3, 4)
    kernel = np.exp(-(t[:, None] ** 2 + t**2) / 50)
    windows = np.lib.stride_tricks.sliding_window_view(spread, (7, 7))
    smooth = (windows * kernel / kernel.sum()).sum((2, 3))
    weighted = np.where(mask, np.minimum(error, smooth), error * (2 - 0.5 ** (distance / 5)))
    found = mask.sum() - weighted[mask].sum()
    recall, precision = 1 - weighted[mask].mean(), found / (found + weighted[~mask].sum() + 1e-300)
    return float(2 * recall * precision / (recall + precision + 1e-300))


def random_mask(rng: np.random.Generator) -> np.ndarray:
    mask = rng.random(rng.integers(1, 40, 2)) < rng.choice([0.003, 0.03, 0.3, 0.9, 1.0])
    mask[rng.integers(mask.shape[0]), rng.integers(mask.shape[1])] = True
    return mask


@settings(deadline=None, max_examples=120)
@given(st.integers(0, 10**6))
def test_distances_and_nearest_pixels_are_exact(seed: int) -> None:
    mask = random_mask(np.random.default_rng(seed))
    weights = ErrorWeights.of(mask)
    distance, nearest = nearest_by_definition(mask)
    expected = np.where(mask, 0, 2 - 0.5 ** (distance / 5))
    assert weights.background.reshape(mask.shape) == pytest.approx(expected, abs=1e-12)
    rows, columns = np.nonzero(mask)
    corner = max(rows.min() - 3, 0), max(columns.min() - 3, 0)
    row, column = np.divmod(weights.ring, weights.shape[1])
    assert (weights.source == nearest[row + corner[0], column + corner[1]]).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6))
def test_weighted_f_is_what_it_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = random_mask(rng)
    p = np.clip(mask * rng.random() + rng.random(mask.shape) * rng.random(), 0, 1)
    assert weighted_f(p, MaskTruth(mask)) == pytest.approx(weighted_f_by_definition(p, mask), abs=1e-9)


def test_weighted_f_of_an_empty_mask_is_zero() -> None:
    assert weighted_f(np.zeros((4, 5)), MaskTruth(np.zeros((4, 5), bool))) == 0.0


def test_an_error_far_from_the_object_weighs_more() -> None:
    mask = np.zeros((40, 60), bool)
    mask[10:20, 5:15] = True
    near, far = mask.astype(float), mask.astype(float)
    near[15, 17] = far[15, 55] = 1.0
    assert weighted_f(far, MaskTruth(mask)) < weighted_f(near, MaskTruth(mask)) < 1


@pytest.mark.parametrize("where", [np.s_[-1, -1], np.s_[-1, :], np.s_[:, -1], np.s_[5:9, -1], np.s_[0, 0]])
def test_s_measure_is_defined_at_the_frame(where: object) -> None:
    mask = np.zeros((12, 15), bool)
    mask[where] = True
    truth = MaskTruth(mask)
    assert s_measure(mask.astype(float), truth) == pytest.approx(1.0)
    assert s_measure(np.random.default_rng(0).random(mask.shape), truth) < 0.9


@pytest.mark.parametrize("level", [0.0, 0.1, 1 / 3, 0.7, 1.0])
def test_s_measure_of_a_constant_map_does_not_hang_on_rounding(level: float) -> None:
    # A quadrant of one class is perfect if the map is constant there. With the variance of a mean that is not exact,
    # 1e-34 instead of 0, the same quadrant would score 0.
    mask = np.zeros((31, 37), bool)
    mask[:9, :9] = True
    row = column = 5  # the centroid is (4, 4)
    one_class = sum(
        part.size
        for part in (mask[:row, :column], mask[:row, column:], mask[row:, :column], mask[row:, column:])
        if part.all() or not part.any()
    )
    inside, outside = 2 * level / (level**2 + 1), 2 * (1 - level) / ((1 - level) ** 2 + 1)
    objects = mask.mean() * inside + (1 - mask.mean()) * outside
    expected = 0.5 * objects + 0.5 * one_class / mask.size
    assert s_measure(np.full(mask.shape, level), MaskTruth(mask)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("fill", "expected"), [(False, 0.7), (True, 0.3)])
def test_s_measure_of_one_class(fill: bool, expected: float) -> None:
    assert s_measure(np.full((4, 6), 0.3), MaskTruth(np.full((4, 6), fill))) == pytest.approx(expected)


def test_e_measure_of_perfect_inverse_and_single_pixels() -> None:
    assert e_measure(30, 0, 30, 100) == pytest.approx(100 / 99)
    assert e_measure(0, 70, 30, 100) == pytest.approx(0.0, abs=1e-12)
    assert e_measure(0, 0, 0, 100) == pytest.approx(100 / 99)
    assert e_measure(40, 0, 100, 100) == pytest.approx(40 / 99)
    assert e_measure(1, 0, 1, 1) == 1.0
    assert math.isfinite(e_measure(0, 1, 0, 1))
