"""All scores of one predicted map against one true mask, and what each of them means.

    truth = MaskTruth(mask)                       # once per image
    scores = score_mask(probability, truth)       # once per condition

Scores are of the raw probabilities. `normalize="minmax"` stretches each map to [0, 1] first, as PySODMetrics and
several published evaluators do; it is there for comparison with their tables. Under corruption it turns a map that
says "nothing here" into a confident one, so no robustness number should rest on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, UnknownNameError
from . import overlap
from .boundary import boundary_f1
from .calibration import confidence_bins, ece_from_bins
from .curves import e_curve, f_curve
from .structure import e_measure, s_measure, weighted_f
from .truth import MaskTruth

__all__ = ["METRICS", "NORMALIZATIONS", "MaskScores", "MaskTruth", "Metric", "score_mask"]

NORMALIZATIONS = ("raw", "minmax")


@dataclass(frozen=True, slots=True, eq=False)
class MaskScores:
    """The scores of one map, named as in `crypsis.results.SCORES` and defined in `METRICS`, and what pools.

    Attributes:
        ece_count: int32[15], pixels by bin of confidence.
        ece_confidence: float64[15], sum of confidence by bin.
        ece_correct: int32[15], correct pixels by bin.
        histogram_object: int32[256] of floor(255·p) over object pixels.
        histogram_background: int32[256] of floor(255·p) over background pixels.
    """

    dice: float
    iou: float
    mae: float
    boundary_f1: float
    ece: float
    s_measure: float
    weighted_f: float
    e_adaptive: float
    e_mean: float
    f_adaptive: float
    f_mean: float
    ece_count: NDArray[np.int32]
    ece_confidence: NDArray[np.float64]
    ece_correct: NDArray[np.int32]
    histogram_object: NDArray[np.int32]
    histogram_background: NDArray[np.int32]


def score_mask(probability: NDArray[np.floating[Any]], truth: MaskTruth, *, normalize: str = "raw") -> MaskScores:
    """Score a predicted map; every number is finite for every valid input.

    Args:
        probability: float32 or float64 H×W in [0, 1], at the mask's size.
        truth: the true mask, built once and reused for all maps of its image.
        normalize: "raw", or "minmax" for (p − min) / (max − min) in the map's own type, skipped if constant.

    Raises:
        ModelError: if the map has another type or size, or values outside [0, 1] or NaN.
        UnknownNameError: if `normalize` is neither of the two.
    """
    p = _checked(probability, truth)
    if normalize not in NORMALIZATIONS:
        raise UnknownNameError.among("normalization", normalize, NORMALIZATIONS)
    if normalize == "minmax":
        low, high = p.min(), p.max()
        if low != high:
            p = (p - low) / (high - low)
    # in the map's own type, as PySODMetrics casts it; a stored level k/255 comes back as k in either type
    levels = (p * p.dtype.type(255)).astype(np.uint8)
    both = np.bincount((levels + truth.histogram_offset).ravel(), minlength=512).astype(np.int32)
    background, inside = both[:256], both[256:]

    exact = p.astype(np.float64, copy=False)
    predicted = p > 0.5
    adaptive = overlap.confusion(exact >= overlap.adaptive_threshold(exact), truth)
    bins = confidence_bins(p, truth.mask)
    return MaskScores(
        dice=overlap.soft_dice(exact, truth),
        iou=float(overlap.iou(*overlap.confusion(predicted, truth))),
        mae=overlap.absolute_error(exact, truth),
        boundary_f1=boundary_f1(predicted, truth),
        ece=float(ece_from_bins(bins.count, bins.confidence, bins.correct)[0]),
        s_measure=s_measure(exact, truth),
        weighted_f=weighted_f(exact, truth),
        e_adaptive=float(e_measure(*adaptive[:2], truth.foreground, truth.pixels)),
        e_mean=float(e_curve(inside, background).mean()),
        f_adaptive=float(overlap.f_beta(*adaptive)),
        f_mean=float(f_curve(inside, background).mean()),
        ece_count=bins.count,
        ece_confidence=bins.confidence,
        ece_correct=bins.correct,
        histogram_object=inside,
        histogram_background=background,
    )


def _checked(probability: NDArray[np.floating[Any]], truth: MaskTruth) -> NDArray[np.floating[Any]]:
    if not isinstance(probability, np.ndarray) or probability.dtype not in (np.float32, np.float64):
        got = str(probability.dtype) if isinstance(probability, np.ndarray) else type(probability).__name__
        raise ModelError(f"A predicted map must be a float32 or float64 array in [0, 1]; got {got}.")
    if probability.shape != truth.shape:
        raise ModelError(
            f"The predicted map has shape {probability.shape}, the mask {truth.shape}; resize the map to the mask."
        )
    low, high = float(probability.min()), float(probability.max())
    if not (low >= 0.0 and high <= 1.0):
        raise ModelError(f"A predicted map must lie in [0, 1] without NaN; got [{low:.4g}, {high:.4g}].")
    return np.ascontiguousarray(probability)


@dataclass(frozen=True, slots=True)
class Metric:
    """What a number is called and what exactly it is.

    Attributes:
        name: column or key.
        title: for headings.
        symbol: for narrow columns.
        higher_is_better: False for errors, and for the signed gap, which is best at 0.
        definition: the convention in full, in one sentence.
    """

    name: str
    title: str
    symbol: str
    higher_is_better: bool
    definition: str


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "dice", "Dice", "Dice", True,
            "Soft Dice (2·Σpg + ε)/(Σp + Σg + ε) of the probabilities with ε = 1e-6, no threshold, per image and "
            "averaged over images; an empty mask with nothing predicted scores 1.",
        ),
        Metric(
            "iou", "IoU", "IoU", True,
            "Intersection over union of the map binarized at p > 0.5, per image and averaged over images; 0/0 "
            "counts as 0.",
        ),
        Metric(
            "mae", "MAE", "MAE", False,
            "Mean absolute error |p − g| over all pixels of an image, averaged over images (Perazzi 2012).",
        ),
        Metric(
            "boundary_f1", "Boundary F1", "BF1", True,
            "F1 of the boundary pixels of the map binarized at p > 0.5, the boundary being the 3×3 dilation minus the "
            "3×3 erosion with background outside the image, matched within a Euclidean distance of "
            "max(1, round(0.006·diagonal)) px (3 px at 384×384), per image and averaged over images; both without "
            "boundary 1, one without 0.",
        ),
        Metric(
            "ece", "ECE", "ECE", False,
            "Expected calibration error of one image, averaged over images: confidence max(p, 1 − p) in the decision "
            "p > 0.5, 15 equal bins over [0, 1] with the last one closed, weighted by pixels (Guo 2017).",
        ),
        Metric(
            "s_measure", "S-measure", "S", True,
            "Structure measure with α = 0.5 of the probabilities (Fan 2017, PySODMetrics' rounding of the centroid, "
            "quadrants without pixels left out), per image and averaged over images; an empty mask scores "
            "1 − mean p, a full one mean p.",
        ),
        Metric(
            "weighted_f", "Weighted F", "wF", True,
            "Weighted F-measure with β² = 1, 7×7 Gaussian of σ = 5 px and weights up to 2 outside the object "
            "(Margolin 2014), per image and averaged over images; an empty mask scores 0.",
        ),
        Metric(
            "e_adaptive", "E-measure, adaptive", "E_adp", True,
            "Enhanced-alignment measure of the map binarized at p ≥ min(2·mean p, 1), sum over pixels divided by "
            "N − 1 (Fan 2018), per image and averaged over images.",
        ),
        Metric(
            "e_mean", "E-measure, mean", "E_mean", True,
            "Enhanced-alignment measure averaged over the 256 thresholds floor(255·p) ≥ t, sum over pixels divided "
            "by N − 1 (Fan 2018), averaged over images.",
        ),
        Metric(
            "f_adaptive", "F-measure, adaptive", "F_adp", True,
            "F-measure with β² = 0.3 of the map binarized at p ≥ min(2·mean p, 1) (Achanta 2009), per image and "
            "averaged over images; 0/0 counts as 0.",
        ),
        Metric(
            "f_mean", "F-measure, mean", "F_mean", True,
            "F-measure with β² = 0.3 averaged over the 256 thresholds floor(255·p) ≥ t, averaged over images; 0/0 "
            "counts as 0.",
        ),
        Metric(
            "e_max", "E-measure, max", "E_max", True,
            "Maximum over the 256 thresholds floor(255·p) ≥ t of the enhanced-alignment measure averaged over "
            "images (Fan 2018), not the average of the images' maxima.",
        ),
        Metric(
            "f_max", "F-measure, max", "F_max", True,
            "Maximum over the 256 thresholds floor(255·p) ≥ t of the F-measure with β² = 0.3 averaged over images, "
            "not the average of the images' maxima.",
        ),
        Metric(
            "ece_pooled", "ECE, pooled", "ECE_pool", False,
            "Expected calibration error over all pixels of all images together: confidence max(p, 1 − p) in the "
            "decision p > 0.5, 15 equal bins over [0, 1] with the last one closed, weighted by pixels (Guo 2017).",
        ),
        Metric(
            "ece_signed_gap", "Confidence gap", "Gap", False,
            "Mean confidence max(p, 1 − p) minus accuracy of the decision p > 0.5 over all pixels of all images "
            "together: positive is over-confident, 0 is best.",
        ),
    )
}  # fmt: skip
"""Every score of a row and the numbers of a data set that are not means of scores, by name."""
