"""How long a detection benchmark takes and how much disk it fills, from a short trial on this machine."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import ImageError
from ..results import PARTS
from . import store
from .detect import run_detection
from .detection_plan import UNIT_IMAGES, DetectionPlan

__all__ = ["DetectionEstimate", "estimate_detection"]

_TRIAL_SEVERITY = 3
_TRIAL_ENTRIES = 8
_GOLDEN = (5**0.5 - 1) / 2


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
            f"disk about {_size(self.cells * self.bytes)} for detections, none for images; any number of "
            "machines can share the work with --shard i/n"
        )


def _time(hours: float) -> str:
    if hours >= 48:
        return f"{hours / 24:.1f} days"
    if hours >= 1:
        return f"{hours:.1f} h"
    return f"{60 * hours:.1f} min" if hours >= 1 / 60 else f"{3600 * hours:.0f} s"


def _size(count: float) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} bytes"


def estimate_detection(plan: DetectionPlan) -> DetectionEstimate:
    """Run a small part of a plan in a temporary folder, and scale what it took.

    One image, of the middle of the set, goes through every entry at severity 3 without a detector; it and up to three
    more, spread over the set, go through some of them with all detectors. Other images may differ from these.

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
        for _ in range(2):  # tables and textures are made by the first call, whose time does not count
            begin = time.process_time()
            for entry in plan.entries:
                entry.degrade(image, _TRIAL_SEVERITY, seed=plan.seed, image_key=item.key)
            degrade = (time.process_time() - begin) / len(plan.entries)
    # places that no period of the set meets, as even distances might
    places = dict.fromkeys(int(len(items) * ((0.5 + k * _GOLDEN) % 1)) for k in range(1, UNIT_IMAGES))
    others = [items[place] for place in places if items[place] != item]
    step = max(1, len(plan.entries) // _TRIAL_ENTRIES)
    trial = dataclasses.replace(
        plan,
        dataset=dataclasses.replace(plan.dataset, items=(item, *others)),
        entries=plan.entries[::step],
        severities=(min(plan.severities, key=lambda severity: abs(severity - _TRIAL_SEVERITY)),),
    )
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_detection(trial, Path(folder))
        size = _bytes(plan, Path(folder))
        table = pq.read_table(Path(folder) / PARTS, columns=["image", "status"])
    good = table.filter(pc.equal(table["status"], "ok"))
    seen = max(1, len(good) // len(plan.models))
    measured = len(trial.measured()) * len(trial.conditions)
    return DetectionEstimate(
        images=len(items),
        conditions=len(plan.conditions),
        models=len(plan.models),
        decode=outcome.seconds.get("decode", 0.0) / len(trial.dataset),
        degrade=degrade,
        measure=outcome.seconds.get("measure", 0.0) / max(1, measured),
        detect=outcome.seconds.get("detect", 0.0) / seen,
        measured=len(plan.measured()),
        bytes=size,
    )


def _bytes(plan: DetectionPlan, folder: Path) -> float:
    """Return the disk space of one image under one condition of a plan, from the part of a trial.

    What Parquet takes for each row group, however few rows are in it, is told from what detections take.
    """
    (part,) = (folder / PARTS).iterdir()
    table = pq.read_table(part)
    table = table.filter(pc.greater(table["severity"], 0))  # most are found in clean images, which are few
    bare = table
    for name in ("boxes", "scores", "categories", "truth_boxes"):
        column = bare.schema.get_field_index(name)
        bare = bare.set_column(column, name, pa.nulls(len(bare), bare.schema.field(name).type))
    sizes = []
    for name, rows in (("full", table), ("bare", bare)):
        store.write_part(folder, name, rows, by="entry")
        sizes.append((folder / PARTS / f"{name}.parquet").stat().st_size)
    full, group = sizes[0], sizes[1] / len(table["entry"].unique())
    good: int = max(1, pc.sum(pc.equal(table["status"], "ok")).as_py())
    detections = len(plan.models) * (full - sizes[1]) / good
    groups = len(plan.units()) * (len(plan.entries) + 1)
    return detections + groups * group / (len(plan.dataset) * len(plan.conditions))
