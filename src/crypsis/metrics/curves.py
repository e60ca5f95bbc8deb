"""Scores at every threshold, from two histograms of 256 bins.

A histogram counts q = floor(255·p) over object or background pixels. A curve has 256 values, for q ≥ 255, q ≥ 254,
…, q ≥ 0 in this order (descending, as PySODMetrics stores it). Leading axes are images: histograms of shape
[images, 256] give curves of the same shape. "Mean X" of a data set is the mean of all its curves' values; "max X"
is the maximum of the curve averaged over images, not the average of the images' maxima.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from . import overlap
from .structure import e_measure

__all__ = ["dice_curve", "e_curve", "f_curve", "iou_curve", "maximum_of_mean", "precision_curve", "recall_curve"]


def _counts(
    histogram_object: ArrayLike, histogram_background: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return true positives, false positives and false negatives [..., 256] at descending thresholds."""
    inside, outside = np.asarray(histogram_object, np.int64), np.asarray(histogram_background, np.int64)
    if inside.shape != outside.shape or inside.ndim == 0 or inside.shape[-1] != 256:
        raise InputError(f"Curves need two histograms [..., 256] of one shape; got {inside.shape}, {outside.shape}.")
    tp = np.cumsum(inside[..., ::-1], axis=-1)
    fp = np.cumsum(outside[..., ::-1], axis=-1)
    return tp, fp, tp[..., -1:] - tp


def precision_curve(histogram_object: ArrayLike, histogram_background: ArrayLike) -> NDArray[np.float64]:
    """Precision at the 256 thresholds; 0 where nothing is marked."""
    tp, fp, _ = _counts(histogram_object, histogram_background)
    return np.asarray(overlap.precision(tp, fp), np.float64)


def recall_curve(histogram_object: ArrayLike, histogram_background: ArrayLike) -> NDArray[np.float64]:
    """Recall at the 256 thresholds; 0 for a mask without object."""
    tp, _, fn = _counts(histogram_object, histogram_background)
    return np.asarray(overlap.recall(tp, fn), np.float64)


def f_curve(histogram_object: ArrayLike, histogram_background: ArrayLike, *, beta2: float = 0.3) -> NDArray[np.float64]:
    """F-measure at the 256 thresholds."""
    tp, fp, fn = _counts(histogram_object, histogram_background)
    return np.asarray(overlap.f_beta(tp, fp, fn, beta2=beta2), np.float64)


def iou_curve(histogram_object: ArrayLike, histogram_background: ArrayLike) -> NDArray[np.float64]:
    """IoU at the 256 thresholds."""
    tp, fp, fn = _counts(histogram_object, histogram_background)
    return np.asarray(overlap.iou(tp, fp, fn), np.float64)


def dice_curve(histogram_object: ArrayLike, histogram_background: ArrayLike) -> NDArray[np.float64]:
    """Binary Dice at the 256 thresholds; its mean is the "mDice" of several papers, not the Dice at 0.5."""
    tp, fp, fn = _counts(histogram_object, histogram_background)
    return np.asarray(overlap.dice(tp, fp, fn), np.float64)


def e_curve(histogram_object: ArrayLike, histogram_background: ArrayLike) -> NDArray[np.float64]:
    """E-measure at the 256 thresholds; see `crypsis.metrics.structure.e_measure`."""
    tp, fp, _ = _counts(histogram_object, histogram_background)
    foreground = tp[..., -1:]
    pixels = foreground + fp[..., -1:]
    if not np.all(pixels > 0):
        raise InputError("An E-measure needs at least one pixel; these histograms are empty.")
    return np.asarray(e_measure(tp, fp, foreground, pixels), np.float64)


def maximum_of_mean(curves: ArrayLike) -> float:
    """Maximum of the curve averaged over images: "max F", "max E" of a data set.

    Args:
        curves: numbers [images, 256], or one curve [256].

    Raises:
        InputError: if there is no image.
    """
    values = np.atleast_2d(np.asarray(curves, np.float64))
    if values.size == 0:
        raise InputError("The maximum of an averaged curve needs at least one image; there is none.")
    return float(values.mean(axis=0).max())
