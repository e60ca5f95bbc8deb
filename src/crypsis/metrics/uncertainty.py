"""Does an uncertainty say where a probability map is wrong: sparsification, and correlation with the error.

The error of a pixel is |p − m|. Sparsification (Ilg et al., "Uncertainty Estimates and Multi-Hypotheses Networks for
Optical Flow", ECCV 2018) removes pixels, the most uncertain first, and follows the mean error of those that are left;
an oracle removes those with the largest error first. The area between the two curves, relative to the mean error of all
pixels, is 0 for the best possible order. Pixels of equal uncertainty have no order: each counts with the mean error of
all of them, so that a constant uncertainty gives the flat line of a random order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Mask, ProbabilityMap

__all__ = [
    "UncertaintyScores",
    "error_correlation",
    "predictive_variance",
    "sparsification_curve",
    "sparsification_error",
    "uncertainty_scores",
]

_Values: TypeAlias = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class UncertaintyScores:
    """How well an uncertainty tells the error of one map, and how well p(1 − p) does.

    Attributes:
        ause: area under the sparsification error curve of the uncertainty, see `sparsification_error`; lower is better.
        correlation: of the uncertainty with the error, see `error_correlation`; higher is better.
        baseline_ause: of p(1 − p), which costs nothing.
        baseline_correlation: likewise.
    """

    ause: float
    correlation: float
    baseline_ause: float
    baseline_correlation: float


def uncertainty_scores(probability: ProbabilityMap, mask: Mask, uncertainty: ProbabilityMap) -> UncertaintyScores:
    """Return the scores of one image.

    Args:
        probability: float32 H×W in [0, 1].
        mask: bool H×W.
        uncertainty: float32 H×W; of any range, more is less certain.

    Raises:
        InputError: the three differ in shape.
    """
    if probability.shape != mask.shape:
        raise InputError(f"A map and its mask need one shape; got {probability.shape} and {mask.shape}.")
    error = np.abs(probability - mask.astype(np.float32))
    baseline = predictive_variance(probability)
    oracle = sparsification_curve(error, error)
    return UncertaintyScores(
        _area(sparsification_curve(uncertainty, error), oracle),
        error_correlation(uncertainty, error),
        _area(sparsification_curve(baseline, error), oracle),
        error_correlation(baseline, error),
    )


def predictive_variance(probability: ProbabilityMap) -> ProbabilityMap:
    """Return p(1 − p), the variance of a yes or no with that probability, in [0, 0.25]."""
    return probability * (1 - probability)


def sparsification_curve(order: _Values, error: _Values) -> NDArray[np.float64]:
    """Return the mean error of the pixels that are left after k = 0, 1, …, n − 1 have been removed.

    Args:
        order: of n pixels, any shape; the largest are removed first.
        error: of the same pixels, at least 0.

    Raises:
        InputError: the two differ in shape, are empty, or `order` has a NaN.
    """
    if order.shape != error.shape or not order.size or np.isnan(order).any():
        raise InputError(
            "A sparsification curve needs an uncertainty and an error of the same pixels, at least one, without NaN; "
            f"got {order.shape} and {error.shape}."
        )
    _, group, count = np.unique(order, return_inverse=True, return_counts=True)
    mean = np.bincount(group.ravel(), weights=error.ravel()) / count
    left = np.cumsum(np.repeat(mean, count)) / np.arange(1, order.size + 1)
    return np.asarray(left[::-1], np.float64)


def sparsification_error(uncertainty: _Values, error: _Values) -> float:
    """Return the area between the sparsification curve and the oracle's, over removed shares from 0 to 1.

    Args:
        uncertainty: of n pixels, any shape.
        error: of the same pixels, at least 0.

    Returns:
        At least 0; in units of the mean error of all pixels, and 0 where that is 0. A random order gives the area
        between 1 and the oracle's curve.

    Raises:
        InputError: as `sparsification_curve`.
    """
    return _area(sparsification_curve(uncertainty, error), sparsification_curve(error, error))


def _area(curve: NDArray[np.float64], oracle: NDArray[np.float64]) -> float:
    return max(0.0, float((curve - oracle).mean() / curve[0])) if curve[0] > 0 else 0.0


def error_correlation(uncertainty: _Values, error: _Values) -> float:
    """Return Pearson's correlation of an uncertainty with the error, in [−1, 1]; 0 where either is constant.

    Args:
        uncertainty: of n pixels, any shape.
        error: of the same pixels.

    Raises:
        InputError: the two differ in shape.
    """
    if uncertainty.shape != error.shape:
        raise InputError(f"An uncertainty and its error need one shape; got {uncertainty.shape} and {error.shape}.")
    first, second = (
        values.astype(np.float64).ravel() - values.mean(dtype=np.float64) for values in (uncertainty, error)
    )
    spread = float(np.sqrt(np.square(first).sum() * np.square(second).sum()))
    return float(np.clip((first * second).sum() / spread, -1.0, 1.0)) if spread > 0 else 0.0
