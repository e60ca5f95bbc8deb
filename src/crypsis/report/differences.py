"""Models compared image by image: by how much one is better, with an interval of the difference itself.

Models that are scored on the same images find the same images hard, so that a difference is known better than the
intervals of the two suggest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..metrics.robustness import aggregate, bootstrap_weights
from ..results import SCORES, image_scores, interval
from .comparison import METRIC_LABELS, Comparison, arrow, higher_is_better
from .tables import Cell, Number, Table

__all__ = ["difference_table"]

_SAMPLES = 1000


def difference_table(comparison: Comparison, metric: str = "dice") -> Table | None:
    """Return each model minus the first one: clean, corrupted, and the share of the clean score that is kept.

    The 95% intervals are of the difference, over resamplings of the images that both models scored; the same images
    are drawn for both, and weigh alike, as do conditions.

    Args:
        comparison: the runs.
        metric: what to compare.

    Returns:
        The table; None for a single model, and for a metric that is not a mean over images.
    """
    first, *others = comparison.results
    if not others or metric not in SCORES:
        return None
    scores = _image_scores(comparison, metric)
    label, sign = METRIC_LABELS[metric], arrow(metric)
    header = ["Model", f"Clean Δ{label} {sign}", f"Corrupted Δ{label} {sign}"]
    if higher_is_better(metric):
        header.append("ΔRetention, points ↑")
    seed = int(comparison.plan["seed"])
    rows: list[tuple[Cell, ...]] = []
    for result in others:
        numbers = _differences(scores[result.label], scores[first.label], seed)[: len(header) - 1]
        rows.append((result.label, *numbers))
    notes = (
        *comparison.warnings(),
        f"Δ = model − {first.label}, over the images that both scored.",
        f"[low, high] = 95% bootstrap interval of the difference ({_SAMPLES:,} samples of the images, the same for "
        "both models). Where it holds 0, these images do not say which of the two is better.",
    )
    return Table(f"Difference from {first.label}", tuple(header), tuple(rows), notes)


def _image_scores(comparison: Comparison, metric: str) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return label → image → scores under all conditions, of the images that a model scored."""
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    for index, run in enumerate(comparison.runs):
        images, values = image_scores(run, metric)
        for result in comparison.results:
            if result.run == index:
                of_model = values[run.models.index(result.model)]
                found[result.label] = {
                    image: row for image, row in zip(images, of_model, strict=True) if not np.isnan(row).any()
                }
    return found


def _differences(
    one: dict[str, NDArray[np.float64]], two: dict[str, NDArray[np.float64]], seed: int
) -> tuple[Number, ...]:
    """Return one − two: clean, corrupted, and retention."""
    common = [image for image in one if image in two]
    if not common:
        return Number(None), Number(None), Number(None)
    weights = bootstrap_weights(len(common), samples=_SAMPLES, seed=seed)
    means = [weights @ np.stack([scores[image] for image in common]) for scores in (one, two)]
    first, second = (aggregate(mean[:, 0], mean[:, 1:]) for mean in means)
    return (
        Number.of(interval(first.clean - second.clean), "delta"),
        Number.of(interval(first.corrupted - second.corrupted), "delta"),
        replace(Number.of(interval(100 * (first.retention - second.retention)), "delta"), decimals=1),
    )
