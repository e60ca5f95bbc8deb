"""One axis of strength for several entries: "0.3" means the same for fog and for JPEG, on average over images."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

from ..catalog import get_entry
from ..catalog.apply import nearest_severity
from ..errors import InputError, UnknownNameError
from .calibration import Calibration
from .strength import METRICS

__all__ = ["SCALE_SCHEMA", "CommonScale", "Place", "common_scale"]

SCALE_SCHEMA = "crypsis.scale/1"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry has a strength.

    Attributes:
        severity: the native severity whose measured strength is nearest.
        measured: the strength of that severity.
        level: between two severities, where the line through their strengths has it (the lowest such level); for
            `Entry.degrade_at`. The average over images at it is near the strength and not exactly it.
    """

    severity: int
    measured: float
    level: float


@dataclass(frozen=True)
class CommonScale:
    """Several entries on one axis of strength; see `common_scale`.

    Attributes:
        metric: `1-ssim`, `psnr` in dB, or `lpips`.
        strengths: the levels of the axis, mildest first.
        calibrations: by entry.
        places: by entry, for each of `strengths` where the entry has it, or None where it cannot be reached.
    """

    metric: str
    strengths: tuple[float, ...]
    calibrations: Mapping[str, Calibration]
    places: Mapping[str, tuple[Place | None, ...]]

    def place(self, entry: str, strength: float) -> Place:
        """Return where an entry has any strength.

        Raises:
            UnknownNameError: the scale has no such entry.
            InputError: it is no number, or the entry cannot reach it; the message says what it can.
        """
        if not _is_number(strength):
            raise InputError(f"A strength is a finite number; got {strength!r}.")
        calibration = self._of(entry)
        found = _place(calibration, float(strength))
        if found is None:
            raise InputError(f"{self._reach(calibration)}, so not {strength:.4g}.")
        return found

    def cannot_reach(self) -> dict[str, str]:
        """Return a sentence for each entry that lacks one of the strengths."""
        sentences = {}
        for name, places in self.places.items():
            missing = [f"{s:.4g}" for s, place in zip(self.strengths, places, strict=True) if place is None]
            if missing:
                sentences[name] = f"{self._reach(self.calibrations[name])}, so not {', '.join(missing)}."
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values, the calibrations in full; `from_dict` takes it back."""
        return {
            "schema": SCALE_SCHEMA,
            "metric": self.metric,
            "strengths": list(self.strengths),
            "calibrations": {name: calibration.to_dict() for name, calibration in self.calibrations.items()},
            "places": {
                name: [p and {"severity": p.severity, "measured": p.measured, "level": p.level} for p in places]
                for name, places in self.places.items()
            },
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> CommonScale:
        """Return the scale that `to_dict` wrote.

        Raises:
            InputError: something is missing or makes no sense; the message names it.
            UnknownNameError: an entry or metric of it does not exist here.
        """
        if not isinstance(content, Mapping) or content.get("schema") != SCALE_SCHEMA:
            raise InputError(f"This is not a scale: the content has no 'schema' of {SCALE_SCHEMA!r}.")
        for name, kind in (("metric", str), ("strengths", list), ("calibrations", Mapping), ("places", Mapping)):
            if not isinstance(content.get(name), kind):
                raise InputError(f"The scale has no usable {name!r}; make it anew with common_scale.")
        calibrations = {name: Calibration.from_dict(found) for name, found in content["calibrations"].items()}
        scale = common_scale(calibrations.values(), content["strengths"])
        if scale.metric != content["metric"] or list(scale.calibrations) != list(calibrations):
            raise InputError("The scale's 'metric' or entries are others than those of its 'calibrations'.")
        if scale.to_dict()["places"] != content["places"]:
            raise InputError("The scale's 'places' do not follow from its 'calibrations'; make it anew.")
        return scale

    def _of(self, entry: str) -> Calibration:
        name = get_entry(entry).name
        if name not in self.calibrations:
            raise UnknownNameError.among("entry on this scale", name, self.calibrations)
        return self.calibrations[name]

    def _reach(self, calibration: Calibration) -> str:
        low, high = min(calibration.strengths), max(calibration.strengths)
        unit = f" {METRICS[self.metric].unit}".rstrip()
        return f"{calibration.entry} reaches {self.metric} from {low:.4g} to {high:.4g}{unit}"


def common_scale(
    calibrations: Iterable[Calibration], strengths: Sequence[float] | None = None, *, levels: int = 5
) -> CommonScale:
    """Put several entries on one axis of strength.

        shipped = [shipped_calibration(name) for name in ("imagenet-c/fog", "imagenet-c/jpeg_compression")]
        scale = common_scale(shipped)
        level = scale.place("imagenet-c/fog", scale.strengths[2]).level

    Args:
        calibrations: one for each entry, in one metric and on the same images.
        strengths: levels of the axis, mildest first; by default evenly spaced over what all entries reach.
        levels: how many, if `strengths` are not given; from 2 up.

    Raises:
        InputError: no calibration, two of one entry, of different metrics or images, strengths that are not
            numbers in order, or entries that have no strength in common.
    """
    by_entry: dict[str, Calibration] = {}
    for calibration in calibrations:
        if not isinstance(calibration, Calibration):
            raise InputError(f"A scale is made of calibrations; got {type(calibration).__name__}.")
        if calibration.entry in by_entry:
            raise InputError(f"{calibration.entry} was given twice; a scale takes one calibration for each entry.")
        by_entry[calibration.entry] = calibration
    if not by_entry:
        raise InputError("A scale is made of one calibration or more; got none.")
    first = next(iter(by_entry.values()))
    for other in by_entry.values():
        if other.metric != first.metric:
            raise InputError(
                f"{first.entry} was calibrated in {first.metric} and {other.entry} in {other.metric}; "
                "one axis has one metric."
            )
        if other.images != first.images:
            raise InputError(
                f"{first.entry} and {other.entry} were calibrated on different images, so their strengths do not "
                "compare; calibrate both on the same ones."
            )
    axis = _even(by_entry, levels) if strengths is None else _given(strengths, rising=METRICS[first.metric].rising)
    places = {name: tuple(_place(calibration, s) for s in axis) for name, calibration in by_entry.items()}
    return CommonScale(first.metric, axis, MappingProxyType(by_entry), MappingProxyType(places))


def _even(calibrations: Mapping[str, Calibration], levels: int) -> tuple[float, ...]:
    """Return strengths evenly spaced over what all entries reach, mildest first."""
    if isinstance(levels, bool) or not isinstance(levels, int) or levels < 2:
        raise InputError(f"levels is a whole number from 2 up; got {levels!r}.")
    highest_low = max(calibrations.values(), key=lambda c: min(c.strengths))
    lowest_high = min(calibrations.values(), key=lambda c: max(c.strengths))
    low, high = min(highest_low.strengths), max(lowest_high.strengths)
    flat = [c for c in calibrations.values() if min(c.strengths) == max(c.strengths)]
    if flat:
        raise InputError(
            f"{', '.join(c.entry for c in flat)}: all severities have the same strength on these images "
            f"({flat[0].metric} {flat[0].strengths[0]:.4g}), which makes no scale; calibrate on images they change."
        )
    if low >= high:
        raise InputError(
            f"These entries have no strength in common: {highest_low.entry} begins at {low:.4g} and "
            f"{lowest_high.entry} ends at {high:.4g} ({highest_low.metric}). Leave one out, or give strengths of your "
            "own; what an entry cannot reach is then said."
        )
    ends = (low, high) if METRICS[highest_low.metric].rising else (high, low)
    return tuple(np.linspace(*ends, levels).tolist())


def _given(strengths: Sequence[float], *, rising: bool) -> tuple[float, ...]:
    listed = list(strengths) if isinstance(strengths, Iterable) else []
    numbers = [float(s) for s in listed if _is_number(s)]
    if not numbers or len(numbers) != len(listed) or numbers != sorted(set(numbers), reverse=not rising):
        raise InputError(f"strengths are different finite numbers, from the mildest to the strongest; got {strengths}.")
    return tuple(numbers)


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def _place(calibration: Calibration, strength: float) -> Place | None:
    """Return where a calibrated entry has a strength, or None where it lies outside of what was measured."""
    measured = calibration.strengths
    slack = 1e-9 * (max(measured) - min(measured))
    if not min(measured) - slack <= strength <= max(measured) + slack:
        return None
    severity = nearest_severity(measured, strength, rising=METRICS[calibration.metric].rising)
    level = float(severity)
    for below, (a, b) in enumerate(pairwise(measured), 1):
        if a != b and min(a, b) <= strength <= max(a, b):
            level = below + (strength - a) / (b - a)
            break
    return Place(severity, measured[severity - 1], level)
