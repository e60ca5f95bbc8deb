"""Tests and intervals of shares and ranks, exact or in closed form, so that no statistics package is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError

__all__ = ["Correlation", "McNemar", "binomial_test", "check_level", "holm", "mcnemar", "spearman", "wilson_interval"]


@dataclass(frozen=True, slots=True)
class McNemar:
    """Whether two scores that were right on the same pairs differ in how often one alone was right.

    Attributes:
        first_only: pairs on which the first alone was right.
        second_only: pairs on which the second alone was.
        statistic: χ² with continuity correction, (|b − c| − 1)² / (b + c), 0 where b = c; of one degree of freedom.
        p_corrected: its p-value.
        p_exact: that of the exact test, two-sided: b of b + c tosses of a fair coin.
    """

    first_only: int
    second_only: int
    statistic: float
    p_corrected: float
    p_exact: float

    @property
    def p(self) -> float:
        """The exact p-value below 25 pairs on which they differ, where χ² is no good approximation; else χ²'s."""
        return self.p_exact if self.first_only + self.second_only < 25 else self.p_corrected


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's rank correlation.

    Attributes:
        rho: in [−1, 1], ties having their mean rank; NaN where it is not defined.
        p: two-sided, of Student's t with n − 2 degrees of freedom; NaN where it is not defined.
        count: n.
        reason: why rho or p is not defined, in words; None where both are.
    """

    rho: float
    p: float
    count: int
    reason: str | None = None


def check_level(level: float) -> None:
    """Raise `InputError` if `level` is not the coverage of an interval, in (0, 1)."""
    if not 0 < level < 1:
        raise InputError(f"The level of an interval lies between 0 and 1; got {level!r}.")


def wilson_interval(successes: float, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a share (JASA 1927), without continuity correction.

    Args:
        successes: from 0 to `trials`; halves are taken as they are.
        trials: at least 1.
        level: coverage, in (0, 1).

    Raises:
        InputError: a number out of its range.
    """
    check_level(level)
    if trials < 1 or not 0 <= successes <= trials:
        raise InputError(f"A share is of at least one trial, and no more successes; got {successes!r} of {trials!r}.")
    z2 = NormalDist().inv_cdf(0.5 + level / 2) ** 2
    middle = (successes + z2 / 2) / (trials + z2)
    spread = math.sqrt(z2 * (successes * (trials - successes) / trials + z2 / 4)) / (trials + z2)
    return max(0.0, middle - spread), min(1.0, middle + spread)


def binomial_test(successes: int, trials: int) -> float:
    """Return how likely a fair coin is at least as far from half, on either side; exact; 1 for no trials.

    Raises:
        InputError: fewer than 0 or more successes than trials.
    """
    if not 0 <= successes <= trials:
        raise InputError(f"There are 0 to {trials} successes of {trials} trials; got {successes}.")
    fewer = min(successes, trials - successes)
    term = total = 1
    for k in range(fewer):
        term = term * (trials - k) // (k + 1)
        total += term
    return min(1.0, 2 * total / (1 << trials))


def mcnemar(first_only: int, second_only: int) -> McNemar:
    """Return McNemar's test, corrected and exact; p is 1 where the two never differ.

    Raises:
        InputError: a count below 0.
    """
    if min(first_only, second_only) < 0:
        raise InputError(f"McNemar's test counts pairs, 0 or more; got {first_only} and {second_only}.")
    total = first_only + second_only
    statistic = max(abs(first_only - second_only) - 1, 0) ** 2 / total if total else 0.0
    exact = binomial_test(first_only, total)
    return McNemar(first_only, second_only, statistic, math.erfc(math.sqrt(statistic / 2)), exact)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's step-down method (1979), in the same order, at most 1."""
    order = np.argsort(p_values, kind="stable")
    steps = np.asarray(p_values, np.float64)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(p) for p in corrected]


def spearman(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Return Spearman's rank correlation of two equally long rows of finite numbers.

    Raises:
        InputError: the rows differ in length or hold a number that is not finite.
    """
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.shape != b.shape or a.ndim != 1 or not np.isfinite([a, b]).all():
        raise InputError(f"A correlation needs two equally long rows of finite numbers; got {a.shape} and {b.shape}.")
    count = len(a)
    if count < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Correlation(math.nan, math.nan, count, "fewer than two pairs" if count < 2 else "one side is constant")
    ranks = [_mean_ranks(values) for values in (a, b)]
    u, v = (rank - rank.mean() for rank in ranks)
    rho = float(np.clip((u @ v) / math.sqrt((u @ u) * (v @ v)), -1, 1))
    if count < 3:
        return Correlation(rho, math.nan, count, "two pairs have no p-value")
    return Correlation(rho, _two_sided(rho, count - 2), count)


def _mean_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(sizes) - (sizes + 1) / 2)[group], np.float64)


def _two_sided(rho: float, freedom: int) -> float:
    """Return P(|T| ≥ t) of Student's t, t = ρ·√(ν / (1 − ρ²)), by the finite sums of Abramowitz and Stegun 26.7.3–4."""
    sine, cosine2 = abs(rho), 1 - rho**2  # of the angle arctan(t / √ν)
    odd = freedom % 2
    term = math.sqrt(cosine2) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine2 * k / (k + 1)
    inside = 2 / math.pi * (math.asin(sine) + sine * total) if odd else sine * total
    return min(1.0, max(0.0, 1 - inside))
