"""Whether a model's uncertainty tells where it errs: the numbers beside Figure 1 of COD10K-C."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from ..datasets.folder import counted
from ..metrics.robustness import bootstrap_weights
from ..metrics.uncertainty import UncertaintyScores
from ..results import interval
from .tables import Cell, Number, Table, cell_text

__all__ = ["uncertainty_csv", "uncertainty_table"]

_COLUMNS = tuple(field.name for field in fields(UncertaintyScores))


def uncertainty_table(scores: Mapping[str, UncertaintyScores], *, samples: int = 1000, seed: int = 0) -> Table:
    """Return means over images of a model's own uncertainty, of p(1 − p), and of their difference.

    Args:
        scores: image → its scores, at least one.
        samples: of the bootstrap of the 95% intervals, over images, the same for all rows.
        seed: of the bootstrap.
    """
    weights = bootstrap_weights(len(scores), samples=samples, seed=seed)
    means = weights @ np.array([[getattr(one, name) for name in _COLUMNS] for one in scores.values()])
    own, baseline = means[:, :2], means[:, 2:]

    def numbers(stack: NDArray[np.float64], *, sign: bool = False) -> list[Number]:
        return [Number.of(interval(column), "delta" if sign else "score") for column in stack.T]

    rows: tuple[tuple[Cell, ...], ...] = (
        ("the model's own", *numbers(own)),
        ("p(1 − p)", *numbers(baseline)),
        ("difference", *numbers(own - baseline, sign=True)),
    )
    notes = (
        f"Means over {counted(len(scores), 'image')}, and 95% bootstrap intervals over images ({samples:,} samples).",
        "AUSE: area between the error that is left when the least certain pixels are removed first and when the worst "
        "are, in units of the error of all pixels (sparsification error, Ilg 2018); 0 is perfect.",
        "Correlation: Pearson's, of the uncertainty with the absolute error |p − g| over the pixels of an image.",
    )
    return Table("Uncertainty against error", ("Uncertainty", "AUSE ↓", "Correlation ↑"), rows, notes)


def uncertainty_csv(scores: Mapping[str, UncertaintyScores]) -> str:
    """Return the scores of each image, under the names of `UncertaintyScores`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("image", *_COLUMNS))
    for image, one in scores.items():
        writer.writerow((cell_text(image), *(f"{getattr(one, name):.6f}" for name in _COLUMNS)))
    return out.getvalue()
