"""From strength back to a level: the parameters that degrade one image by as much as was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any, Generic, TypeVar

from ..catalog.apply import check_draw, named_entry, through_rgb_and_back
from ..catalog.entry import Entry
from ..errors import InputError, UnreachableError
from ..seeds import content_key
from ..types import Image
from .strength import METRICS, CleanImage, check_metric

__all__ = ["TOLERANCES", "AtStrength", "degrade_to_strength"]

AnyImage = TypeVar("AnyImage")

TOLERANCES: Mapping[str, float] = {"1-ssim": 0.005, "psnr": 0.1, "lpips": 0.005}
"""How near to the target is near enough, unless said otherwise; that of `psnr` in dB."""

_NARROW = 1e-6
"""An interval of levels this short, over which strength still jumps, holds no level that would do."""


@dataclass(frozen=True, slots=True)
class AtStrength(Generic[AnyImage]):
    """An image degraded to a strength.

    Attributes:
        image: the degraded image, of the kind given.
        strength: what was measured on it, within the tolerance of what was asked for.
        metric: of the strength.
        level: between the native severities; `Entry.degrade_at` with it gives the same pixels again.
        parameters: of the operator.
    """

    image: AnyImage
    strength: float
    metric: str
    level: float
    parameters: Mapping[str, Any]


def degrade_to_strength(
    image: AnyImage,
    name: str | None = None,
    *,
    paper: str | None = None,
    term: str | None = None,
    strength: float,
    metric: str = "1-ssim",
    tolerance: float | None = None,
    seed: int = 0,
    image_key: str | None = None,
) -> AtStrength[AnyImage]:
    """Degrade one image until the measured strength is what was asked for.

    The native severities are five points on a path; between neighbors, parameters are interpolated
    (`crypsis.catalog.entry.Entry.parameters_at`), and random draws stay the same. Two points of which one is milder
    and one stronger than the target enclose it, and a bracketed search (regula falsi with the Illinois rule, bisection
    where that is slow) finds it, whether or not severities are in order of strength. Only parameters between those of
    neighboring severities are used. Where these pass through no change at all, as between a contrast that is raised and
    one that is lowered, they reach milder results than any severity.

    Args:
        image: the clean image, of any kind that `apply_degradation` takes.
        name: `family/term`; see `crypsis.catalog.get_entry`.
        paper: instead of `name`: the paper's key or its family.
        term: with `paper`: the paper's word for the degradation.
        strength: the target, in units of `metric`.
        metric: `1-ssim`, `psnr` (dB) or `lpips`, measured on what is given back, in 8-bit RGB (alpha is left out).
        tolerance: greatest distance of the achieved strength from the target; that of `TOLERANCES` if None.
        seed: which of many random fields; any integer.
        image_key: the name that all randomness of this image depends on; without one it is derived from the pixels.

    Returns:
        The image, the strength achieved and the level that gives it.

    Raises:
        UnknownNameError: there is no such degradation or metric.
        UnreachableError: this image cannot be brought there; the message says what can be reached.
        ImageError: the image has another type, shape or range.
        InputError: another argument is wrong.
    """
    entry = named_entry(name, paper, term)
    check_metric(metric)
    near = TOLERANCES[metric] if tolerance is None else tolerance
    numbers: tuple[tuple[str, Any, float], ...] = ("strength", strength, 0.0), ("tolerance", near, math.ulp(0.0))
    for what, value, least in numbers:
        if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) < math.inf:
            kind = "a finite number from 0 up" if what == "strength" else "a finite number above 0"
            raise InputError(f"{what} is {kind}; got {value!r}.")
    seed = check_draw(seed, image_key)
    found: list[tuple[float, float]] = []

    def degrade(rgb: Image, given_back: Callable[[Image], Image]) -> Image:
        key = content_key(rgb) if image_key is None else image_key
        search = _Search(entry, rgb, given_back, metric, seed, key)
        level = search.level(float(strength), float(near))
        found.append((level, search.strength(level)))
        return search.image(level)

    degraded = through_rgb_and_back(image, degrade)
    level, achieved = found[0]
    return AtStrength(degraded, achieved, metric, level, entry.parameters_at(level))


class _Search:
    """The strengths of one image along the path of an entry, each measured once."""

    def __init__(
        self, entry: Entry, image: Image, given_back: Callable[[Image], Image], metric: str, seed: int, key: str
    ) -> None:
        self.entry = entry
        self.clean_pixels = image
        self.given_back = given_back
        self.clean = CleanImage(image)
        self.metric = metric
        self.seed = seed
        self.key = key
        self.strengths: dict[str, float] = {}
        self.latest: tuple[str, Image] | None = None

    def image(self, level: float) -> Image:
        """Return the degraded image."""
        name = repr(self.entry.parameters_at(level))
        if self.latest is None or self.latest[0] != name:
            degraded = self.entry.degrade_at(self.clean_pixels, level, seed=self.seed, image_key=self.key)
            self.latest = name, degraded
        return self.latest[1]

    def strength(self, level: float) -> float:
        """Return the strength at a level."""
        name = repr(self.entry.parameters_at(level))
        if name not in self.strengths:
            measured = self.clean.strengths(self.given_back(self.image(level)), lpips=self.metric == "lpips")
            self.strengths[name] = measured.value(self.metric)
        return self.strengths[name]

    def level(self, target: float, tolerance: float) -> float:
        """Return a level whose strength is within `tolerance` of `target`; see `degrade_to_strength`."""
        sign = 1.0 if METRICS[self.metric].rising else -1.0

        def excess(level: float) -> float:
            return sign * (self.strength(level) - target)

        # the ends first, which enclose most targets; then neighbors; then what lies between them
        for parts in (1 / 4, 1, 4, 16):
            points = [1 + step / parts for step in range(int(4 * parts) + 1)]
            if parts == 16 and not min(self.strengths.values()) < target < max(self.strengths.values()):
                break
            for low, high in pairwise(points):
                level = _root(excess, low, high, tolerance)
                if level is not None:
                    return level
        raise self._unreachable(target, tolerance)

    def _unreachable(self, target: float, tolerance: float) -> UnreachableError:
        unit = f" {METRICS[self.metric].unit}".rstrip()
        measured = sorted(self.strengths.values())
        below = [strength for strength in measured if strength < target]
        above = [strength for strength in measured if strength > target]
        if below and above:
            nearest = min(target - below[-1], above[0] - target)
            digits = math.floor(math.log10(nearest)) - 1
            reason = (
                f"its levels go in steps, from {below[-1]:.6g} to {above[0]:.6g}{unit}; "
                f"allow a tolerance of {math.ceil(nearest / 10**digits) * 10**digits:.2g}"
            )
        elif measured[0] == measured[-1]:
            reason = f"on this image all levels have {measured[0]:.4g}{unit}"
        else:
            reason = f"on this image the levels tried lie between {measured[0]:.4g} and {measured[-1]:.4g}{unit}"
        error = UnreachableError(
            f"{self.entry.name} cannot reach {self.metric} {target:.4g}{unit} (± {tolerance:.2g}): {reason}."
        )
        error.strengths = measured[0], measured[-1]
        return error


def _root(excess: Callable[[float], float], low: float, high: float, tolerance: float) -> float | None:
    """Return where |excess| ≤ `tolerance` between two levels; None where they do not enclose it or it jumps over.

    Infinite values (the PSNR of an unchanged image) count by their sign.
    """
    f_low, f_high = excess(low), excess(high)
    for level, value in ((low, f_low), (high, f_high)):
        if abs(value) <= tolerance:
            return level
    if f_low * f_high > 0:
        return None
    replaced = ""
    width = high - low
    while high - low > _NARROW:
        middle = (low + high) / 2
        # where three steps did not halve the interval, or a PSNR is infinite, it is halved
        if high - low <= width and math.isfinite(f_low - f_high):
            middle = low + (high - low) * f_low / (f_low - f_high)
        if not low < middle < high:
            return None
        value = excess(middle)
        if abs(value) <= tolerance:
            return middle
        # an end that stays twice in a row counts half (Illinois)
        if (value > 0) == (f_low > 0):
            low, f_low, f_high = middle, value, f_high / (2 if replaced == "low" else 1)
            replaced = "low"
        else:
            high, f_high, f_low = middle, value, f_low / (2 if replaced == "high" else 1)
            replaced = "high"
        width *= 0.8
    return None
