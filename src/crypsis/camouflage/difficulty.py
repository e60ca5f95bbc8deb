"""Images by difficulty: groups from the easiest to the hardest, and rank correlations of resampled images.

Difficulty is any number that grows with how hard an image is: a camouflage score, or a model's own loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError

__all__ = ["FEWEST_IMAGES", "DifficultyGroup", "difficulty_groups", "relative_ranks", "resampled_spearman"]

FEWEST_IMAGES = 5
"""Images that a group has at least: the mean of fewer says nothing of the next image."""

_CELLS = 1 << 21
"""Samples × images that a step of the correlation holds."""


@dataclass(frozen=True, slots=True)
class DifficultyGroup:
    """Images of about one difficulty.

    Attributes:
        first: number of its first quantile, 1 being the easiest.
        last: of its last one; another than `first` where quantiles were taken together.
        of: how many quantiles there were to be.
        images: by rising difficulty, equal ones by name.
        low: the least difficulty in it.
        high: the greatest.
    """

    first: int
    last: int
    of: int
    images: tuple[str, ...]
    low: float
    high: float

    @property
    def name(self) -> str:
        """`Q1`, or `Q1–2` where quantiles were taken together; the outer ones say which end they are."""
        text = f"Q{self.first}" if self.first == self.last else f"Q{self.first}–{self.last}"
        if self.first == 1:
            return f"{text} easiest"
        return f"{text} hardest" if self.last == self.of else text


def relative_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Return where each value stands among all, in (0, 1): (mean rank − ½) / n; equal values stand at one place.

    The mean is ½ whatever the values are.

    Args:
        values: finite numbers [n].
    """
    _, place, sizes = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
    return np.asarray(((np.cumsum(sizes) - sizes / 2) / max(sizes.sum(), 1))[place], np.float64)


def difficulty_groups(
    difficulty: Mapping[str, float], count: int = 4, *, fewest: int = FEWEST_IMAGES
) -> tuple[DifficultyGroup, ...]:
    """Divide images into groups of rising difficulty, as equally large as equal values let them be.

    An image goes by its `relative_ranks` times `count`, rounded down: equal values are never parted, they go where the
    middle of them belongs, and stand for quantiles that this leaves empty. A quantile with fewer than `fewest` images
    is taken together with the next easier one, the easiest with the next harder one.

    Args:
        difficulty: image → finite number.
        count: of quantiles, at least 2.
        fewest: images of a group, at least 1.

    Raises:
        InputError: fewer than two quantiles, too few images for so many, or values so equal that one group is left.
    """
    if count < 2:
        raise InputError(f"Groups by difficulty are two or more; got {count}.")
    total = len(difficulty)
    if total < count * fewest:
        most = total // fewest
        advice = f"ask for {most} at most" if most > 1 else f"two groups need {2 * fewest} images"
        raise InputError(f"{total} images with a score are too few for {count} groups of {fewest} or more; {advice}.")
    images = sorted(difficulty, key=lambda image: (difficulty[image], image))
    values = np.array([difficulty[image] for image in images])
    quantile = np.minimum(np.floor(relative_ranks(values) * count).astype(np.intp), count - 1)
    # where equal values empty a quantile, its middle is among them: their group stands for it as well
    middles = ((np.arange(count) + 0.5) * total / count).astype(np.intp)
    owner = np.where(np.isin(np.arange(count), quantile), np.arange(count), quantile[middles])
    parts = [
        (int(owned[0]), int(owned[-1]), np.flatnonzero(quantile == k))
        for k in np.unique(quantile)
        for owned in [np.flatnonzero(owner == k)]
    ]
    merged: list[tuple[int, int, NDArray[np.intp]]] = []
    for first, last, places in parts:
        if merged and (len(places) < fewest or len(merged[-1][2]) < fewest):
            before = merged.pop()
            merged.append((before[0], last, np.concatenate([before[2], places])))
        else:
            merged.append((first, last, places))
    if len(merged) < 2:
        raise InputError(
            f"The scores of the {total} images are so equal that no two groups of {fewest} or more can be told apart; "
            "use a score that has more values."
        )
    return tuple(
        DifficultyGroup(
            first + 1, last + 1, count, tuple(images[i] for i in places), float(values[places[0]]),
            float(values[places[-1]]),
        )
        for first, last, places in merged
    )  # fmt: skip


def resampled_spearman(x: Sequence[float], y: Sequence[float], counts: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return Spearman's ρ of rows in which each pair occurs as often as it was drawn.

    It is exactly that of the rows written out, ties having their mean rank.

    Args:
        x: finite numbers [n].
        y: likewise.
        counts: integers [samples, n], for instance of `crypsis.metrics.robustness.bootstrap_counts`.

    Returns:
        float64 [samples], in [−1, 1]; NaN where a side is constant or nothing was drawn.
    """
    step = max(1, _CELLS // max(len(x), 1))
    blocks = [_weighted_spearman(x, y, counts[i : i + step].astype(np.float64)) for i in range(0, len(counts), step)]
    return np.concatenate([np.empty(0), *blocks])


def _weighted_spearman(x: ArrayLike, y: ArrayLike, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    middle = (weights.sum(axis=1, keepdims=True) + 1) / 2
    u, v = (_weighted_ranks(np.asarray(values, np.float64), weights) - middle for values in (x, y))
    products = [(weights * a * b).sum(axis=1) for a, b in ((u, v), (u, u), (v, v))]
    size = np.sqrt(products[1] * products[2])
    rho = np.divide(products[0], size, out=np.full_like(size, np.nan), where=size > 0)
    return np.asarray(np.clip(rho, -1, 1), np.float64)


def _weighted_ranks(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean rank [samples, n] of every value where each occurs `weights` times."""
    _, starts, place = np.unique(np.sort(values), return_index=True, return_inverse=True)
    order = np.argsort(values, kind="stable")
    blocks = np.add.reduceat(weights[:, order], starts, axis=1)
    ranks = np.cumsum(blocks, axis=1) - (blocks - 1) / 2
    result = np.empty_like(weights)
    result[:, order] = ranks[:, place]
    return result
