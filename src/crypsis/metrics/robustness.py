"""From scores under conditions to robustness: means, drops, retention, and draws for bootstrap intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..seeds import rng_for

__all__ = ["Robustness", "aggregate", "bootstrap_counts", "bootstrap_weights"]


def bootstrap_counts(n_images: int, *, samples: int = 1000, seed: int) -> NDArray[np.uint16]:
    """Return how often each image was drawn in each bootstrap sample, uint16 [samples, n_images].

    Every row is `n_images` draws with replacement; `counts @ x / n_images` with per-image scores x gives the
    bootstrapped means. The result depends on the arguments alone. 100,000 images and 1,000 samples take 200 MB.

    Raises:
        InputError: `n_images` or `samples` is below 1.
    """
    if n_images < 1 or samples < 1:
        raise InputError(f"A bootstrap needs at least one image and one sample; got {n_images} and {samples}.")
    rng = rng_for(seed, "", "bootstrap")
    counts = np.empty((samples, n_images), np.uint16)
    for row in counts:
        row[:] = np.bincount(rng.integers(0, n_images, size=n_images), minlength=n_images)
    return counts


def bootstrap_weights(n_images: int, *, samples: int = 1000, seed: int) -> NDArray[np.float64]:
    """Return what makes means of the images as they are, row 0, and of bootstrap samples: float64 [rows, n_images].

    Of a single image there is row 0 alone, for there is no spread to draw from; see `bootstrap_counts`.
    """
    rows = [np.ones((1, n_images))]
    if n_images > 1:
        rows.append(bootstrap_counts(n_images, samples=samples, seed=seed).astype(np.float64))
    return np.concatenate(rows) / n_images


@dataclass(frozen=True, slots=True)
class Robustness:
    """One score, clean and corrupted; every field has the leading axes of the input.

    Attributes:
        clean: [...], the score on clean images.
        by_corruption: [..., C], means over severities.
        by_severity: [..., S], means over corruptions; None if severities were not given.
        corrupted: [...], mean over corruptions.
        delta: [...], corrupted − clean.
        retention: [...], corrupted / clean; NaN where clean is 0, of which no share can be kept.
    """

    clean: NDArray[np.float64]
    by_corruption: NDArray[np.float64]
    by_severity: NDArray[np.float64] | None
    corrupted: NDArray[np.float64]
    delta: NDArray[np.float64]
    retention: NDArray[np.float64]


def aggregate(clean: ArrayLike, corrupted: ArrayLike) -> Robustness:
    """Summarize a score under corruptions as COD10K-C does in its Tables 2–4: all conditions weigh alike.

    Args:
        clean: [...], the score on clean images.
        corrupted: [..., C, S], the score under each of C corruptions at S severities; or [..., C], means over
            severities.

    Raises:
        InputError: the shapes do not belong together, or there is no corruption or severity.
    """
    base, scores = np.asarray(clean, np.float64), np.asarray(corrupted, np.float64)
    axes = scores.ndim - base.ndim
    if axes not in (1, 2) or scores.shape[: base.ndim] != base.shape or scores.size == 0:
        raise InputError(
            "Corrupted scores have the shape of the clean ones and behind it corruptions, or corruptions × "
            f"severities; got {scores.shape} beside {base.shape}."
        )
    by_corruption = scores.mean(axis=-1) if axes == 2 else scores
    mean = by_corruption.mean(axis=-1)
    return Robustness(
        clean=base,
        by_corruption=by_corruption,
        by_severity=scores.mean(axis=-2) if axes == 2 else None,
        corrupted=mean,
        delta=mean - base,
        retention=np.divide(mean, base, out=np.full_like(mean, np.nan), where=base > 0),
    )
