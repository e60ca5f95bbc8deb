"""What the five severities of entries do, measured over images, and what is odd about it.

`StrengthTable` holds the numbers; the functions below read one and return `Finding`s, each a number and a sentence.
Source: A Causally Grounded Taxonomy for Image Degradation Robustness Evaluation, sections III and IV, which reads the
same from its Table I by eye: steps that are not evenly spaced, irregular order, levels that do not compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..catalog import get_entry
from .strength import METRICS, capped

__all__ = [
    "SATURATED",
    "Finding",
    "StrengthTable",
    "find_all",
    "misalignment",
    "monotonicity",
    "over_images",
    "saturation",
    "unevenness",
]

SATURATED = 0.05
"""A step between two severities below this share of the entry's whole range is called saturated."""

_Floats = NDArray[np.float64]


def over_images(metrics: Sequence[str], values: _Floats) -> tuple[_Floats, _Floats, _Floats, _Floats]:
    """Return mean, standard deviation (of the population), 5% and 95% quantile over the last axis.

    Args:
        metrics: names, along the first axis.
        values: metrics × … × images, with at least one image. A PSNR above `PSNR_CEILING` counts as that.
    """
    finite = np.stack([capped(own) if m == "psnr" else own for m, own in zip(metrics, values, strict=True)])
    low, high = np.quantile(finite, (0.05, 0.95), axis=-1)
    return finite.mean(axis=-1), finite.std(axis=-1), low, high


@dataclass(frozen=True, eq=False)
class StrengthTable:
    """Measured strengths of entries × severities over images.

    In all four statistics a PSNR above `PSNR_CEILING`, an unchanged image's infinite one included, counts as that.

    Attributes:
        entries: names, in the order of the rows.
        metrics: names of `crypsis.severity.strength.METRICS`.
        images: number of images.
        mean: float64, metrics × entries × severities.
        deviation: standard deviation over the images, of the population; likewise.
        low: 5% quantile over the images; likewise.
        high: 95% quantile; likewise.
        unchanged: int, entries × severities: how many images came out exactly as they were.
    """

    entries: tuple[str, ...]
    metrics: tuple[str, ...]
    images: int
    mean: _Floats
    deviation: _Floats
    low: _Floats
    high: _Floats
    unchanged: NDArray[np.int64]

    @classmethod
    def from_values(
        cls,
        entries: Sequence[str],
        metrics: Sequence[str],
        values: _Floats,
        unchanged: NDArray[np.int64],
    ) -> StrengthTable:
        """Reduce measured values.

        Args:
            entries: names.
            metrics: names.
            values: metrics × entries × severities × images, with at least one image; PSNR may be infinite.
            unchanged: entries × severities, as the attribute.
        """
        mean, deviation, low, high = over_images(metrics, values)
        return cls(
            entries=tuple(entries),
            metrics=tuple(metrics),
            images=values.shape[3],
            mean=mean,
            deviation=deviation,
            low=low,
            high=high,
            unchanged=unchanged,
        )

    def curve(self, entry: str, metric: str) -> _Floats:
        """Return the mean strengths of an entry at severities 1..5."""
        curve: _Floats = self.mean[self.metrics.index(metric), self.entries.index(entry)]
        return curve

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values: entry → metric → `mean`, `sd`, `p5`, `p95`, five numbers each, and `unchanged`."""
        names = {"mean": self.mean, "sd": self.deviation, "p5": self.low, "p95": self.high}
        return {
            entry: {
                **{
                    metric: {name: numbers[m, e].tolist() for name, numbers in names.items()}
                    for m, metric in enumerate(self.metrics)
                },
                "unchanged": self.unchanged[e].tolist(),
            }
            for e, entry in enumerate(self.entries)
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """One number about the severities of entries, and what it says.

    Attributes:
        kind: `monotonicity`, `saturation`, `unevenness` or `misalignment`.
        metric: the metric of strength it is about.
        entry: the entry; for `misalignment` the strongest one.
        severity: the severity; for `saturation` the one its step ends at; None where it is about all of them.
        value: the number; the function of the same name defines it.
        notable: whether it is against what an evenly rising severity would do.
        text: a sentence.
        other: for `misalignment` the weakest entry.
        effect: for `misalignment` the code of the effect that the entries share.
    """

    kind: str
    metric: str
    entry: str
    severity: int | None
    value: float
    notable: bool
    text: str
    other: str | None = None
    effect: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; an infinite `value` as "inf"."""
        names = ("kind", "metric", "entry", "other", "effect", "severity", "value", "notable", "text")
        found = {name: getattr(self, name) for name in names}
        return found | {"value": self.value if math.isfinite(self.value) else "inf"}


def _curves(table: StrengthTable) -> Iterator[tuple[str, str, _Floats]]:
    """Yield metric, entry and five means, of a sign that rises with strength."""
    for metric in table.metrics:
        sign = 1.0 if METRICS[metric].rising else -1.0
        for entry in table.entries:
            yield metric, entry, sign * table.curve(entry, metric)


def _amount(value: float, metric: str) -> str:
    unit = METRICS[metric].unit
    return f"{value:.3g} {unit}".rstrip()


def monotonicity(table: StrengthTable) -> list[Finding]:
    """Say of each entry and metric whether the mean strength never falls from one severity to the next.

    `value` is the largest fall as a share of the range of the five means: 0 for a monotone entry. Equal means are
    no fall.
    """
    found = []
    for metric, entry, curve in _curves(table):
        steps = np.diff(curve)
        at = int(np.argmin(steps))
        fall = max(0.0, -float(steps[at]))
        share = fall / float(np.ptp(curve)) if fall else 0.0
        if fall:
            text = (
                f"{entry} is not monotone in {METRICS[metric].title}: severity {at + 2} is weaker than {at + 1} by "
                f"{_amount(fall, metric)}, {share:.0%} of its range."
            )
        else:
            text = f"{entry} is monotone in {METRICS[metric].title}: no severity is weaker than the one before."
        found.append(Finding("monotonicity", metric, entry, at + 2 if fall else None, share, fall > 0, text))
    return found


def saturation(table: StrengthTable, *, threshold: float = SATURATED) -> list[Finding]:
    """Name the steps from one severity to the next that do next to nothing.

    `value` is the size of the step as a share of the range of the entry's five means; those below `threshold` are
    returned, and for an entry whose means are all equal one finding with the value 0.
    """
    found = []
    for metric, entry, curve in _curves(table):
        extent = float(np.ptp(curve))
        if extent == 0:
            text = f"{entry} has the same mean {METRICS[metric].title} at all severities."
            found.append(Finding("saturation", metric, entry, None, 0.0, True, text))
            continue
        for severity, step in enumerate(np.abs(np.diff(curve)), 2):
            share = float(step) / extent
            if share < threshold:
                text = (
                    f"{entry} hardly changes from severity {severity - 1} to {severity}: a step of "
                    f"{_amount(float(step), metric)} in {METRICS[metric].title}, {share:.1%} of its range "
                    f"(below {threshold:.0%})."
                )
                found.append(Finding("saturation", metric, entry, severity, share, True, text))
    return found


def unevenness(table: StrengthTable) -> list[Finding]:
    """Say of each entry and metric how unequal its four steps are.

    `value` is the coefficient of variation of the steps' sizes (their standard deviation, of the population, over
    their mean): 0 for evenly spaced severities, √3 = 1.73 where one step does it all. An entry whose means are all
    equal has no such number and is left out. Notable from 0.5 up.
    """
    found = []
    for metric, entry, curve in _curves(table):
        sizes = np.abs(np.diff(curve))
        if not sizes.any():
            continue
        value = float(sizes.std() / sizes.mean())
        small, large = int(np.argmin(sizes)), int(np.argmax(sizes))
        text = (
            f"{entry} in {METRICS[metric].title}: the steps vary by {value:.0%} of their mean, from "
            f"{_amount(float(sizes[small]), metric)} (severity {small + 1} to {small + 2}) to "
            f"{_amount(float(sizes[large]), metric)} ({large + 1} to {large + 2})."
        )
        found.append(Finding("unevenness", metric, entry, None, value, value >= 0.5, text))
    return found


def misalignment(table: StrengthTable, *, metric: str = "1-ssim") -> list[Finding]:
    """Compare entries of the same effect at the same severity, within and across families.

    `value` is the largest mean strength over the smallest: 1 if a severity meant the same everywhere, infinite where
    the weakest entry changes nothing. Notable from 2 up. Effects with fewer than two entries are left out.

    Args:
        table: the measurements.
        metric: one that is 0 where nothing changed, such as `1-ssim`; a ratio of decibels would mean nothing.
    """
    by_effect: dict[str, list[str]] = {}
    for entry in table.entries:
        by_effect.setdefault(get_entry(entry).effect.code, []).append(entry)
    found = []
    for effect, entries in by_effect.items():
        if len(entries) < 2:
            continue
        curves = np.stack([table.curve(entry, metric) for entry in entries])
        for severity, level in enumerate(curves.T, 1):
            weak, strong = int(np.argmin(level)), int(np.argmax(level))
            low, high = float(level[weak]), float(level[strong])
            value = high / low if low > 0 else math.inf if high > 0 else 1.0
            is_strong = f"{value:.3g} times as strong as" if math.isfinite(value) else "infinitely stronger than"
            text = (
                f"Effect {effect}, severity {severity}: {entries[strong]} ({METRICS[metric].title} {high:.3g}) is "
                f"{is_strong} {entries[weak]} ({low:.3g}), of {len(entries)} entries."
            )
            found.append(
                Finding(
                    "misalignment", metric, entries[strong], severity, value, value >= 2, text, entries[weak], effect
                )
            )
    return found


def find_all(table: StrengthTable) -> list[Finding]:
    """Return the findings of all four kinds, for every metric they make sense for."""
    found = monotonicity(table) + saturation(table) + unevenness(table)
    for metric in table.metrics:
        if METRICS[metric].rising:
            found += misalignment(table, metric=metric)
    return found
