"""From scores under conditions to robustness: means, drops, retention, and weights for bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..seeds import rng_for

__all__ = ["CorruptionSummary", "bootstrap_weights", "summarize_corruption"]


def bootstrap_weights(n_images: int, *, samples: int = 1000, seed: int) -> NDArray[np.float64]:
    """Return the weight of each image in each bootstrap sample, float64 [samples, n_images].

    Row i says how often each image was drawn in sample i (n draws with replacement), divided by n; `weights @ x`
    with per-image scores x gives the bootstrapped means. The result depends on the arguments alone.

    Raises:
        InputError: if `n_images` or `samples` is below 1.
    """
    if n_images < 1 or samples < 1:
        raise InputError(f"A bootstrap needs at least one image and one sample; got {n_images} and {samples}.")
    drawn = rng_for(seed, "", "bootstrap").integers(0, n_images, size=(samples, n_images))
    drawn += np.arange(samples)[:, None] * n_images
    counts = np.bincount(drawn.ravel(), minlength=samples * n_images)
    return counts.reshape(samples, n_images) / n_images


@dataclass(frozen=True, slots=True)
class CorruptionSummary:
    """One score, clean and corrupted.

    Attributes:
        clean: the score on clean images.
        corrupted: mean over corruptions of each corruption's mean over severities.
        delta: corrupted − clean.
        retention: corrupted / clean; None when clean is 0, where no share can be kept.
        by_corruption: mean over severities, by corruption, in the order given.
        worst: the corruption with the largest loss against clean (the first of equals).
        by_severity: mean over corruptions at each severity; None if severities were not given.
    """

    clean: float
    corrupted: float
    delta: float
    retention: float | None
    by_corruption: dict[str, float]
    worst: str
    by_severity: tuple[float, ...] | None


def summarize_corruption(
    clean: float,
    by_corruption: Mapping[str, float | Sequence[float]],
    *,
    higher_is_better: bool = True,
) -> CorruptionSummary:
    """Summarize a score under corruptions as the COD10K-C paper does in its Table 2.

    Args:
        clean: the score on clean images.
        by_corruption: by corruption, its mean score, or its scores at each severity.
        higher_is_better: False for errors, whose largest loss is the largest rise.

    Raises:
        InputError: if there is no corruption or severity, a value is not finite, some corruptions have
            severities and others not, or their numbers differ.
    """
    if not by_corruption:
        raise InputError("A corruption summary needs at least one corruption; none was given.")
    rows: dict[str, list[float]] = {}
    for name, value in by_corruption.items():
        rows[name] = [float(v) for v in value] if isinstance(value, Sequence) else [float(value)]
        if not rows[name] or not all(math.isfinite(v) for v in rows[name]):
            raise InputError(f"{name}: every corruption needs finite scores; got {value!r}.")
    if not math.isfinite(clean):
        raise InputError(f"The clean score must be finite; got {clean!r}.")
    with_severities = [isinstance(value, Sequence) for value in by_corruption.values()]
    if len({len(row) for row in rows.values()}) > 1 or len(set(with_severities)) > 1:
        sizes = ", ".join(f"{name} {len(row)}" for name, row in rows.items())
        raise InputError(f"All corruptions need scores at the same severities; got {sizes}.")
    means = {name: math.fsum(row) / len(row) for name, row in rows.items()}
    corrupted = math.fsum(means.values()) / len(means)
    by_severity = tuple(math.fsum(column) / len(rows) for column in zip(*rows.values(), strict=True))
    pick = min if higher_is_better else max
    return CorruptionSummary(
        clean=clean,
        corrupted=corrupted,
        delta=corrupted - clean,
        retention=corrupted / clean if clean else None,
        by_corruption=means,
        worst=pick(means, key=lambda name: means[name]),
        by_severity=by_severity if with_severities[0] else None,
    )
