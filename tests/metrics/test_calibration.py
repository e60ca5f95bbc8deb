from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.errors import InputError
from crypsis.metrics.calibration import CalibrationBins, confidence_bins, ece_from_bins, foreground_bins


def pair(seed: int, height: int = 24, width: int = 31) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    mask = rng.random((height, width)) < rng.random()
    p = np.clip(mask * rng.random() + rng.normal(0, 0.3, mask.shape), 0, 1)
    return p, mask


def ece(bins: CalibrationBins) -> float:
    return float(ece_from_bins(bins.count, bins.confidence, bins.correct)[0])


def ece_by_definition(confidence: np.ndarray, correct: np.ndarray, bins: int) -> float:
    total = 0.0
    for i in range(bins):
        chosen = (confidence >= i / bins) & ((confidence < (i + 1) / bins) | (i == bins - 1))
        if chosen.any():
            total += chosen.sum() / chosen.size * abs(confidence[chosen].mean() - correct[chosen].mean())
    return total


@pytest.mark.parametrize("bins", [1, 10, 15])
@pytest.mark.parametrize("seed", range(5))
def test_error_is_what_it_says(seed: int, bins: int) -> None:
    p, mask = pair(seed)
    confidence = np.maximum(p, 1 - p)
    assert ece(confidence_bins(p, mask, bins=bins)) == pytest.approx(
        ece_by_definition(confidence, (p > 0.5) == mask, bins), abs=1e-12
    )
    assert ece(foreground_bins(p, mask, bins=bins)) == pytest.approx(ece_by_definition(p, mask, bins), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("level", [0.0, 1.0])
def test_certain_pixels_fall_in_the_last_bin(level: float, dtype: type) -> None:
    p = np.full((3, 4), level, dtype)
    bins = confidence_bins(p, p > 0.5)
    assert bins.count.tolist() == [0] * 14 + [12]
    assert bins.confidence.tolist() == [0] * 14 + [12]
    assert bins.correct.tolist() == [0] * 14 + [12]
    assert foreground_bins(p, p > 0.5).count[-1 if level else 0] == 12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins_of", [confidence_bins, foreground_bins])
def test_no_pixel_is_lost(bins_of, dtype: type) -> None:
    edges = np.concatenate([np.arange(16) / 15, np.nextafter(np.arange(1, 16) / 15, 0), [5e-324, 0.5]])
    p = np.tile(edges.astype(dtype), (2, 1))
    bins = bins_of(p, np.zeros(p.shape, bool))
    assert bins.count.sum() == p.size
    assert (bins.correct >= 0).all()
    assert (bins.correct <= bins.count).all()


def test_half_is_background() -> None:
    p = np.full((2, 2), 0.5)
    assert confidence_bins(p, np.zeros((2, 2), bool)).correct.sum() == 4
    assert confidence_bins(p, np.ones((2, 2), bool)).correct.sum() == 0


def test_the_gap_has_a_sign() -> None:
    p = np.full((10, 10), 0.9)
    mask = np.zeros((10, 10), bool)
    mask[:6] = True
    bins = confidence_bins(p, mask)
    assert ece_from_bins(bins.count, bins.confidence, bins.correct) == pytest.approx((0.3, 0.3))
    bins = confidence_bins(np.where(mask, 0.6, 0.4), mask)
    assert ece_from_bins(bins.count, bins.confidence, bins.correct) == pytest.approx((0.4, -0.4))


def test_many_sets_at_once() -> None:
    several = [confidence_bins(*pair(seed)) for seed in range(6)]
    stacks = [np.stack([getattr(b, name) for b in several]) for name in ("count", "confidence", "correct")]
    errors, gaps = ece_from_bins(*stacks)
    assert errors.shape == gaps.shape == (6,)
    assert errors[3] == pytest.approx(ece(several[3]))
    assert (np.abs(gaps) <= errors + 1e-12).all()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_pooling_never_exceeds_the_mean_of_images(seed: int) -> None:
    sizes = np.random.default_rng(seed).integers(1, 20, (4, 2))
    for bins_of in (confidence_bins, foreground_bins):
        images = [bins_of(*pair(seed + i, int(h), int(w))) for i, (h, w) in enumerate(sizes)]
        pooled = CalibrationBins(*(sum(getattr(b, n) for b in images) for n in ("count", "confidence", "correct")))
        weights = [b.count.sum() for b in images]
        assert ece(pooled) <= np.average([ece(b) for b in images], weights=weights) + 1e-12


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_half_range_confidence_bins_never_exceed_aligned_bins_of_p(seed: int) -> None:
    # 15 bins over [0, 1] hold 0.5 in the middle of a bin; with 30 every bin of confidence is two bins of p
    p, mask = pair(seed)
    assert ece(confidence_bins(p, mask, bins=30)) <= ece(foreground_bins(p, mask, bins=30)) + 1e-12


def test_empty_bins_and_wrong_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="at least one pixel"):
        ece_from_bins(np.zeros(15), np.zeros(15), np.zeros(15))
    for bins in (0, 256):
        with pytest.raises(InputError, match="from 1 to 255"):
            confidence_bins(*pair(0), bins=bins)
