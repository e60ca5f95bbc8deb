"""How long a detection benchmark takes and how much disk it fills, from a short trial on this machine."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ..errors import ImageError
from ..results import PARTS
from .detect import run_detection
from .detection_plan import DetectionPlan

__all__ = ["DetectionEstimate", "estimate_detection"]

_TRIAL_SEVERITY = 3
_TRIAL_CONDITIONS = 12


@dataclass(frozen=True, slots=True)
class DetectionEstimate:
    """What a plan would take; rates are CPU seconds of one process.

    Attributes:
        images: number of clean images.
        conditions: how many, `clean` included.
        models: number of detectors.
        decode: seconds to read one clean image.
        degrade: seconds for one degraded image, the mean over the entries at severity 3.
        measure: seconds to measure the strength of one.
        detect: seconds of all detectors on one image.
        measured: images on which strength is measured.
        bytes: disk space of one image under one condition, all detectors.
    """

    images: int
    conditions: int
    models: int
    decode: float
    degrade: float
    measure: float
    detect: float
    measured: int
    bytes: float

    @property
    def cells(self) -> int:
        """Images × conditions."""
        return self.images * self.conditions

    @property
    def seconds(self) -> dict[str, float]:
        """CPU seconds of the whole run by stage."""
        degraded = self.images * (self.conditions - 1)
        return {
            "decode": self.images * self.decode,
            "degrade": degraded * self.degrade,
            "measure": self.measured * (self.conditions - 1) * self.measure,
            "detect": self.cells * self.detect,
        }

    def hours(self, workers: int) -> float:
        """Return hours of wall time with so many processes that have a processor each."""
        return sum(self.seconds.values()) / workers / 3600

    def text(self, workers: int) -> str:
        """Return it as lines to print, for this machine and for more workers."""
        total = sum(self.seconds.values())
        shares = ", ".join(f"{stage} {spent / total:.0%}" for stage, spent in self.seconds.items())
        each = 1000 * total / self.cells
        counts = sorted({1, workers, 16, 64, 256})
        times = "\n".join(f"  {n:>4} worker{'s' * (n > 1)}{' ' * (n == 1)}  {_time(self.hours(n))}" for n in counts)
        return (
            f"{self.images:,} images × {self.conditions:,} conditions = {self.cells:,} images to look at "
            f"({self.images * (self.conditions - 1):,} of them degraded), by {self.models} "
            f"detector{'s' * (self.models != 1)}\n"
            f"one takes {each:.1f} ms of CPU ({shares}), measured here in a short trial\n{times}\n"
            f"disk about {self.cells * self.bytes / 1e9:.3g} GB for detections, none for images; any number of "
            "machines can share the work with --shard i/n"
        )


def _time(hours: float) -> str:
    if hours >= 48:
        return f"{hours / 24:.1f} days"
    if hours >= 1:
        return f"{hours:.1f} h"
    return f"{60 * hours:.1f} min" if hours >= 1 / 60 else f"{3600 * hours:.0f} s"


def estimate_detection(plan: DetectionPlan) -> DetectionEstimate:
    """Run a small part of a plan in a temporary folder, and scale what it took.

    One image goes through every entry at severity 3 without a detector, and through a dozen of them with all
    detectors; an image of the middle of the set is taken, whose size may differ from the others'.

    Raises:
        ImageError: no image can be read.
    """
    items = plan.dataset.items
    for item in (*items[len(items) // 2 :], *items[: len(items) // 2]):
        try:
            image = plan.dataset.load(item)
            break
        except ImageError:
            continue
    else:
        raise ImageError(f"{plan.dataset.name}: no image can be read.")
    degrade = 0.0
    if any(mapping is not None for mapping in plan.categories.values()):  # else all detections are stored
        begin = time.process_time()
        for entry in plan.entries:
            entry.degrade(image, _TRIAL_SEVERITY, seed=plan.seed, image_key=item.key)
        degrade = (time.process_time() - begin) / len(plan.entries)
    step = max(1, len(plan.entries) // _TRIAL_CONDITIONS)
    trial = dataclasses.replace(
        plan,
        dataset=dataclasses.replace(plan.dataset, items=(item,)),
        entries=plan.entries[::step],
        severities=(_TRIAL_SEVERITY,),
    )
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_detection(trial, Path(folder))
        size = sum(part.stat().st_size for part in (Path(folder) / PARTS).iterdir())
    seen = len(trial.conditions)
    return DetectionEstimate(
        images=len(items),
        conditions=len(plan.conditions),
        models=len(plan.models),
        decode=outcome.seconds.get("decode", 0.0),
        degrade=degrade,
        measure=outcome.seconds.get("measure", 0.0) / seen,
        detect=outcome.seconds.get("detect", 0.0) / seen,
        measured=len(plan.measured()),
        bytes=size / seen,
    )
