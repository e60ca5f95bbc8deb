"""Does a probability mean what it says: expected calibration error over equal bins, from sums that pool.

Bins divide [0, 1] equally, [i/n, (i+1)/n), and the last one is closed: neither p = 0 nor p = 1 is lost. An image's
bins are three short arrays; added up over images they give the pooled error exactly. For either kind of bins
ECE ≤ mean |p − g|, and the pooled error is at most the pixel-weighted mean of the images' errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..types import Mask

__all__ = ["BINS", "CalibrationBins", "confidence_bins", "ece_from_bins", "foreground_bins"]

BINS = 15
"""Bins of Guo et al., "On Calibration of Modern Neural Networks", ICML 2017."""


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationBins:
    """Sums over the pixels of each bin.

    Attributes:
        count: int32[n], pixels.
        confidence: float64[n], sum of the confidence.
        correct: int32[n], pixels where the event the confidence speaks of took place.
    """

    count: NDArray[np.int32]
    confidence: NDArray[np.float64]
    correct: NDArray[np.int32]


def _bins(confidence: NDArray[np.floating[Any]], wrong: Mask, bins: int) -> CalibrationBins:
    """Sum over equal bins; pixels of the last bin, most of a map, and right ones are not picked out one by one."""
    if not 1 <= bins <= 255:
        raise InputError(f"The number of calibration bins is from 1 to 255; got {bins}.")
    values = confidence.ravel()
    index = (values * bins).astype(np.uint8)
    last = index >= bins - 1
    rest = np.flatnonzero(~last)
    index_of_rest = index[rest]
    count = np.bincount(index_of_rest, minlength=bins)
    count[-1] = index.size - rest.size
    sums = np.bincount(index_of_rest, weights=values[rest], minlength=bins).astype(np.float64)
    sums[-1] = values.sum(where=last, dtype=np.float64)
    index_of_wrong = np.minimum(index[wrong.ravel()], bins - 1)
    correct = count - np.bincount(index_of_wrong, minlength=bins)
    return CalibrationBins(count.astype(np.int32), sums, correct.astype(np.int32))


def confidence_bins(probability: NDArray[np.floating[Any]], mask: Mask, *, bins: int = BINS) -> CalibrationBins:
    """Bin the confidence max(p, 1 − p) in the decision p > 0.5; correct means the decision is the mask's.

    Args:
        probability: float32 or float64 H×W in [0, 1]; the confidence is computed in this type and summed in float64.
        mask: bool H×W.
        bins: equal bins over [0, 1], at most 255; those below 0.5 stay empty.

    Raises:
        InputError: if `bins` is out of range.
    """
    confidence = 1 - probability
    np.maximum(confidence, probability, out=confidence)
    return _bins(confidence, (probability > 0.5) != mask, bins)


def foreground_bins(probability: NDArray[np.floating[Any]], mask: Mask, *, bins: int = BINS) -> CalibrationBins:
    """Bin p itself against the mask (the binary calibration error of torchmetrics).

    Args and errors as in `confidence_bins`; correct means that the pixel is of the object.
    """
    return _bins(probability, ~mask, bins)


def ece_from_bins(count: ArrayLike, confidence: ArrayLike, correct: ArrayLike) -> tuple[Any, Any]:
    """Return the expected calibration error and the signed gap of binned pixels.

    The error is Σ_b |confidence_b − correct_b| / Σ_b count_b, in [0, 1]. The gap is the same without the bars, mean
    confidence − accuracy, in [−1, 1]: positive is over-confident; its size is at most the error.

    Args:
        count: numbers [..., n], pixels by bin; sums or weighted sums over images are as good as one image.
        confidence: numbers [..., n], sum of confidence by bin.
        correct: numbers [..., n], correct pixels by bin.

    Returns:
        Two float64 for one set of bins, two float64 arrays [...] for several.

    Raises:
        InputError: if there is no pixel in a set of bins.
    """
    pixels = np.asarray(count, np.float64).sum(axis=-1)
    if not np.all(pixels > 0):
        raise InputError("A calibration error needs at least one pixel in its bins; these bins are empty.")
    gaps = np.asarray(confidence, np.float64) - np.asarray(correct, np.float64)
    return np.abs(gaps).sum(axis=-1) / pixels, gaps.sum(axis=-1) / pixels
