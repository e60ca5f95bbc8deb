"""Where pairs of existing images lie on the axis of strength: their own numbers, and catalog entries of like strength.

The entries' strengths are those of `crypsis.severity.calibration.shipped_calibration`: means over the demo images.
On other images the same entry has other strengths, so a placement is a guide, not a measurement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..catalog import get_entry, list_entries
from .calibration import SHIPPED_METRICS, shipped_calibration
from .findings import over_images
from .strength import METRICS

__all__ = ["Level", "PairStrength", "Placement", "place"]


@dataclass(frozen=True, slots=True)
class PairStrength:
    """The strength of one set of degraded images, over all its pairs.

    In all four statistics a PSNR above `PSNR_CEILING`, an unchanged image's infinite one included, counts as that.

    Attributes:
        label: what the set is called.
        severity: 1..5, or None for a set without severities.
        images: number of pairs.
        unchanged: how many of them are of equal pixels.
        mean: by metric, over the pairs.
        deviation: standard deviation, of the population; likewise.
        low: 5% quantile; likewise.
        high: 95% quantile; likewise.
    """

    label: str
    severity: int | None
    images: int
    unchanged: int
    mean: Mapping[str, float]
    deviation: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]

    @classmethod
    def from_values(
        cls, label: str, severity: int | None, metrics: Sequence[str], values: NDArray[np.float64], unchanged: int
    ) -> PairStrength:
        """Reduce measured values.

        Args:
            label: as the attribute.
            severity: likewise.
            metrics: names.
            values: metrics × pairs, with at least one pair; PSNR may be infinite.
            unchanged: as the attribute.
        """
        statistics = (dict(zip(metrics, row.tolist(), strict=True)) for row in over_images(metrics, values))
        return cls(label, severity, values.shape[-1], unchanged, *statistics)

    @property
    def name(self) -> str:
        """The label, with the severity where there is one: `real-fog` or `tool s=3`."""
        return self.label if self.severity is None else f"{self.label} s={self.severity}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values: the counts, and metric → `mean`, `sd`, `p5`, `p95`."""
        names = {"mean": self.mean, "sd": self.deviation, "p5": self.low, "p95": self.high}
        counts = {"label": self.label, "severity": self.severity, "images": self.images, "unchanged": self.unchanged}
        return counts | {metric: {name: found[metric] for name, found in names.items()} for metric in self.mean}


@dataclass(frozen=True, slots=True)
class Level:
    """A native severity of a catalog entry, and its strength in the shipped calibration."""

    entry: str
    severity: int
    strength: float

    def __str__(self) -> str:
        """Such as `imagenet-c/fog s=2 (0.294)`."""
        return f"{self.entry} s={self.severity} ({self.strength:.3g})"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one mean strength lies among the native severities of catalog entries.

    Attributes:
        name: of the set of pairs; see `PairStrength.name`.
        metric: name of the metric.
        value: the mean strength of the set.
        nearest: levels of any entry, nearest in strength first.
        between: for each entry asked for, its strongest level that is not stronger than the set, and its weakest that
            is not weaker; None where it has none.
    """

    name: str
    metric: str
    value: float
    nearest: tuple[Level, ...]
    between: Mapping[str, tuple[Level | None, Level | None]]

    @property
    def text(self) -> str:
        """A sentence."""
        metric = METRICS[self.metric]
        said = [f"{self.name}: {metric.title} {self.value:.3g} {metric.unit}".rstrip()]
        for milder, stronger in self.between.values():
            if milder is None:
                said.append(f"milder than {stronger}, the mildest of its entry")
            elif stronger is None:
                said.append(f"stronger than {milder}, the strongest of its entry")
            elif milder == stronger:
                said.append(f"as strong as {milder}")
            else:
                said.append(f"between {milder} and {stronger}")
        said.append(f"nearest of all: {', '.join(map(str, self.nearest))}")
        return "; ".join(said) + "."

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""

        def level(found: Level | None) -> dict[str, Any] | None:
            return asdict(found) if found else None

        return {
            "name": self.name,
            "metric": self.metric,
            "value": self.value,
            "nearest": [level(found) for found in self.nearest],
            "between": {
                name: {"milder": level(milder), "stronger": level(stronger)}
                for name, (milder, stronger) in self.between.items()
            },
        }


def place(sets: Sequence[PairStrength], *, near: Sequence[str] = (), nearest: int = 3) -> list[Placement]:
    """Place sets of pairs among the catalog entries, in each metric that has a shipped calibration.

    Args:
        sets: the measurements.
        near: entries to say the neighboring severities of.
        nearest: how many levels of all entries are named.

    Raises:
        UnknownNameError: there is no such entry.
    """
    names = list(dict.fromkeys(get_entry(name).name for name in near))
    found = []
    for metric in SHIPPED_METRICS:
        levels = [
            Level(entry.name, severity, strength)
            for entry in list_entries()
            for severity, strength in enumerate(shipped_calibration(entry.name, metric).strengths, 1)
        ]
        for one in sets:
            if metric in one.mean:
                value = one.mean[metric]
                between = {name: _between([lv for lv in levels if lv.entry == name], metric, value) for name in names}
                by_distance = sorted(levels, key=lambda level: abs(level.strength - value))
                found.append(Placement(one.name, metric, value, tuple(by_distance[:nearest]), between))
    return found


def _between(levels: Sequence[Level], metric: str, value: float) -> tuple[Level | None, Level | None]:
    """Return the neighbors in strength, whatever the order of the severities."""
    sign = 1 if METRICS[metric].rising else -1
    slack = 1e-5 * abs(value)  # shipped strengths have six significant digits
    milder = [level for level in levels if sign * (level.strength - value) <= slack]
    stronger = [level for level in levels if sign * (level.strength - value) >= -slack]
    return (
        max(milder, key=lambda level: sign * level.strength, default=None),
        min(stronger, key=lambda level: sign * level.strength, default=None),
    )
