from __future__ import annotations

import numpy as np
import pytest

from crypsis.metrics import overlap
from crypsis.metrics.truth import MaskTruth


def disc(size: int = 20) -> np.ndarray:
    y, x = np.mgrid[:size, :size]
    return np.hypot(y - size / 2, x - size / 2) < size / 4


def test_soft_dice_is_the_ratio_of_sums() -> None:
    mask = disc()
    p = np.random.default_rng(0).random(mask.shape)
    expected = 2 * (p * mask).sum() / (p.sum() + mask.sum())
    assert overlap.soft_dice(p, MaskTruth(mask)) == pytest.approx(expected, abs=1e-8)


def test_soft_dice_of_nothing() -> None:
    nothing = MaskTruth(np.zeros((5, 7), bool))
    assert overlap.soft_dice(np.zeros((5, 7)), nothing) == 1.0
    assert overlap.soft_dice(np.full((5, 7), 0.01), nothing) < 1e-5
    assert overlap.soft_dice(np.zeros((20, 20)), MaskTruth(disc())) < 1e-7


def test_soft_dice_needs_no_threshold_and_no_stretching() -> None:
    mask = disc()
    faint = np.where(mask, 0.1, 0.0)
    assert overlap.soft_dice(faint, MaskTruth(mask)) == pytest.approx(2 * 0.1 / 1.1, abs=1e-6)


def test_absolute_error_is_the_mean() -> None:
    mask = disc()
    p = np.random.default_rng(1).random(mask.shape)
    assert overlap.absolute_error(p, MaskTruth(mask)) == pytest.approx(np.abs(p - mask).mean(), abs=1e-12)


@pytest.mark.parametrize(("level", "threshold"), [(0.0, 0.0), (0.2, 0.4), (0.5, 1.0), (0.9, 1.0)])
def test_adaptive_threshold_is_twice_the_mean_at_most_one(level: float, threshold: float) -> None:
    assert overlap.adaptive_threshold(np.full((4, 4), level)) == pytest.approx(threshold)


def test_counts() -> None:
    mask = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], bool)
    predicted = np.array([[1, 0, 1, 1], [1, 0, 0, 0]], bool)
    assert overlap.confusion(predicted, MaskTruth(mask)) == (2, 2, 1)
    assert overlap.iou(2, 2, 1) == pytest.approx(2 / 5)
    assert overlap.dice(2, 2, 1) == pytest.approx(4 / 7)
    assert overlap.precision(2, 2) == pytest.approx(1 / 2)
    assert overlap.recall(2, 1) == pytest.approx(2 / 3)
    assert overlap.f_beta(2, 2, 1) == pytest.approx(1.3 * (1 / 2) * (2 / 3) / (0.3 / 2 + 2 / 3))


def test_nothing_over_nothing_is_zero() -> None:
    ratios = (overlap.iou(0, 0, 0), overlap.dice(0, 0, 0), overlap.f_beta(0, 0, 0))
    assert (*ratios, overlap.precision(0, 0), overlap.recall(0, 0)) == (0,) * 5


def test_f_beta_of_one_object_pixel_not_found() -> None:
    assert overlap.f_beta(0, 0, 1) == 0.0


def test_counts_may_be_arrays() -> None:
    tp, fp, fn = np.array([0, 1, 5]), np.array([0, 1, 0]), np.array([0, 0, 5])
    assert overlap.iou(tp, fp, fn).tolist() == [0.0, 0.5, 0.5]
