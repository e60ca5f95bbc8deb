"""How much of the object is found: counts at a threshold, and soft scores of the probabilities themselves.

The functions of counts (`tp`, `fp`, `fn`: true positives, false positives, false negatives) take integers or
integer arrays of one shape and give 0 where the ratio is 0/0, as PySODMetrics does: a binary map without a single
object pixel on a mask without a single object pixel has IoU, Dice, precision, recall and F of 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..types import Mask

if TYPE_CHECKING:
    from .truth import MaskTruth

__all__ = [
    "DICE_EPSILON", "absolute_error", "adaptive_threshold", "confusion", "dice", "f_beta", "iou", "precision",
    "recall", "soft_dice",
]  # fmt: skip

DICE_EPSILON = 1e-6
"""Added, in pixels, to numerator and denominator of the soft Dice: nothing predicted where nothing is scores 1."""


def soft_dice(probability: NDArray[np.floating[Any]], truth: MaskTruth) -> float:
    """Dice of the probabilities, (2·Σpg + ε) / (Σp + Σg + ε) with ε = 1e-6, in [0, 1]; no threshold.

    An empty mask gives 1 for a map that is 0 everywhere, and about 0 as soon as Σp is well above 1e-6.

    Args:
        probability: float H×W in [0, 1].
        truth: the mask, of the same size.
    """
    total = float(probability.sum(dtype=np.float64))
    inside = float(probability.ravel()[truth.object_index].sum(dtype=np.float64))
    return (2 * inside + DICE_EPSILON) / (total + truth.foreground + DICE_EPSILON)


def absolute_error(probability: NDArray[np.floating[Any]], truth: MaskTruth) -> float:
    """Mean over pixels of |p − g|, in [0, 1] (Perazzi et al., CVPR 2012); arguments as in `soft_dice`."""
    total = float(probability.sum(dtype=np.float64))
    inside = float(probability.ravel()[truth.object_index].sum(dtype=np.float64))
    return min(max((total - 2 * inside + truth.foreground) / truth.pixels, 0.0), 1.0)


def adaptive_threshold(probability: NDArray[np.floating[Any]]) -> float:
    """Twice the map's mean, at most 1 (Achanta et al., CVPR 2009); a pixel counts as object when p ≥ it."""
    return min(2 * float(probability.mean(dtype=np.float64)), 1.0)


def confusion(predicted: Mask, truth: MaskTruth) -> tuple[int, int, int]:
    """Count true positives, false positives and false negatives of a bool H×W map."""
    tp = int(np.count_nonzero(predicted & truth.mask))
    return tp, int(np.count_nonzero(predicted)) - tp, truth.foreground - tp


def _ratio(numerator: Any, denominator: Any) -> Any:
    """Divide counts; a denominator here is below 1 only where the numerator is 0."""
    return numerator / np.maximum(denominator, 1)


def iou(tp: Any, fp: Any, fn: Any) -> Any:
    """Intersection over union, TP / (TP + FP + FN), of counts or arrays of counts."""
    return _ratio(tp, tp + fp + fn)


def dice(tp: Any, fp: Any, fn: Any) -> Any:
    """Dice of a binary map, 2·TP / (2·TP + FP + FN), of counts or arrays of counts."""
    return _ratio(2 * tp, 2 * tp + fp + fn)


def precision(tp: Any, fp: Any) -> Any:
    """TP / (TP + FP), of counts or arrays of counts."""
    return _ratio(tp, tp + fp)


def recall(tp: Any, fn: Any) -> Any:
    """TP / (TP + FN), of counts or arrays of counts."""
    return _ratio(tp, tp + fn)


def f_beta(tp: Any, fp: Any, fn: Any, *, beta2: float = 0.3) -> Any:
    """F-measure (1 + β²)·P·R / (β²·P + R), written in counts; β² = 0.3 is the habit of saliency detection."""
    weighted = (1 + beta2) * tp
    return _ratio(weighted, weighted + beta2 * fn + fp)
