"""How strong entries are on a set of images: every image × entry × severity × metric, interruptible and continued.

RUN/run.json           the plan, and the versions and machine of each session
RUN/parts/*.parquet    one per unit of work; a part that is there is done
RUN/timing.jsonl       CPU seconds of each unit by stage
RUN/summary.json       the table over images and the findings, written when all is done
"""

from __future__ import annotations

import hashlib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..catalog.entry import Entry
from ..errors import CrypsisError, ImageError, IncompleteError, InputError, PlanChangedError, UnknownNameError
from ..io import discard_leftovers, file_size, read_image
from ..results import PARTS
from ..severity.calibration import Calibration, calibrate_distortion
from ..severity.findings import StrengthTable, find_all
from ..severity.strength import METRICS, CleanImage
from ..types import Image
from . import store
from .dataset import DatasetPlan, Source, Unit, plan_dataset
from .engines import map_units
from .run import Clock

__all__ = [
    "DEFAULT_METRICS",
    "MEASURE_SCHEMA",
    "STRENGTH_SCHEMA",
    "MeasurePlan",
    "Measured",
    "calibrate",
    "finish_measuring",
    "measure",
    "plan_measure",
    "read_strengths",
]

MEASURE_SCHEMA = "crypsis.measurement/1"
DEFAULT_METRICS = ("1-ssim", "psnr")
"""What is measured unless said otherwise: the metrics that need no network."""

STRENGTH_SCHEMA = pa.schema(
    [
        ("image", pa.string()),
        ("entry", pa.string()),
        ("severity", pa.int8()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("unchanged", pa.bool_()),
        ("seed", pa.int64()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("image_bytes", pa.int64()),
        ("height", pa.int32()),
        ("width", pa.int32()),
    ]
)
"""Columns of a part. `value` is the strength, infinite for the PSNR of an image that came out `unchanged`. `status`
is `ok` or `failed`; a failed row has `error` and neither metric nor value, and no entry if the image could not be
read at all."""


@dataclass(frozen=True, kw_only=True)
class MeasurePlan:
    """What will be measured; see `plan_measure`.

    Attributes:
        images: the images and entries.
        metrics: names of `crypsis.severity.strength.METRICS`.
        limit: number of images asked for, or None for all.
    """

    images: DatasetPlan = field(repr=False)
    metrics: tuple[str, ...]
    limit: int | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The degradations; each is measured at severities 1..5."""
        return self.images.settings.entries

    @property
    def sources(self) -> tuple[Source, ...]:
        """The images."""
        return self.images.sources

    def units(self) -> list[Unit]:
        """Return the units of work, in a fixed order."""
        return list(self.images.units())

    def identity(self) -> dict[str, Any]:
        """Return what decides the numbers, as JSON values."""
        names = "\n".join(source.name for source in self.sources)
        return {
            "dataset": {"images": len(self.sources), "names_sha256": hashlib.sha256(names.encode()).hexdigest()},
            "entries": {e.name: [dict(values) for values in e.parameters] for e in self.entries},
            "metrics": list(self.metrics),
            "seed": self.images.settings.seed,
            "limit": self.limit,
        }


def plan_measure(
    data: str,
    *,
    entries: Sequence[str] = (),
    families: Sequence[str] = (),
    metrics: Sequence[str] = DEFAULT_METRICS,
    seed: int = 0,
    limit: int | None = None,
    split: str = "test",
) -> MeasurePlan:
    """Plan to measure the strength of entries on images.

    Args:
        data: `demo`, a folder of images, or a folder or manifest of images and masks (only the images are read).
        entries: names; all rows of the catalog if neither `entries` nor `families` is given.
        families: families of the catalog, taken before `entries`.
        metrics: names of `crypsis.severity.strength.METRICS`.
        seed: seed of all random draws.
        limit: take only this many images, at even distances in the order of their names.
        split: of a data set with masks.

    Raises:
        InputError: something that cannot be used as given; the message names it.
    """
    for metric in metrics:
        if metric not in METRICS:
            raise UnknownNameError.among("strength metric", metric, METRICS)
    if not metrics:
        raise InputError(f"No metric was named; there are {', '.join(METRICS)}.")
    if limit is not None and limit < 1:
        raise InputError(f"A limit is a number of images from 1 up; got {limit}.")
    if not -(2**63) <= seed < 2**63:
        raise InputError(f"A seed is a whole number of at most 64 bits with sign; got {seed}.")
    images = plan_dataset(data, entries=entries, families=families, seed=seed, split=split, allow_unpaired=True)
    count = len(images.sources)
    if limit is not None and limit < count:
        images = replace(images, sources=tuple(images.sources[i * count // limit] for i in range(limit)))
    return MeasurePlan(images=images, metrics=tuple(dict.fromkeys(metrics)), limit=limit)


@dataclass(frozen=True, slots=True)
class Measured:
    """How measuring ended.

    Attributes:
        units: number of units in the plan.
        images: images measured by this call, the failed ones included.
        seconds: CPU seconds of this call by stage (`decode`, `degrade`, `measure`, `store`), and `total`.
        failures: `(image file, reason)` of images that could not be measured under every condition.
        errors: tracebacks of bugs; their units are not done.
    """

    units: int
    images: int
    seconds: Mapping[str, float]
    failures: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]


def measure(
    plan: MeasurePlan,
    folder: Path,
    *,
    workers: int = 1,
    progress: Callable[[int, int, int], None] | None = None,
) -> Measured:
    """Do what is left of `plan` in `folder`; each image is decoded once for all its conditions.

    Killed at any moment and called again, it goes on; the parts are the same bytes whatever the number of workers
    and interruptions. Images that could not be measured are tried again.

    Args:
        plan: what to do.
        folder: the run folder; made if absent.
        workers: number of processes; 1 works in this one.
        progress: told images done, images in all, and how many of them failed.

    Raises:
        InputError: `workers` below 1, or the folder holds other things.
        PlanChangedError: the folder holds another plan, or images changed since they were measured.
        IncompleteError: a worker died, or the disk is full.
    """
    if workers < 1:
        raise InputError(f"workers is a number from 1 up; got {workers}.")
    store.claim_folder(
        folder,
        "run.json",
        schema=MEASURE_SCHEMA,
        identity=plan.identity(),
        session=store.session_of(plan.images.data),
        what="measurement",
        option="--out",
    )
    units = plan.units()
    todo = _remaining(folder, units)
    total = len(plan.sources)
    images = sum(len(unit.sources) for unit in todo)
    done = total - images
    failures: dict[str, str] = {}
    errors: list[str] = []
    seconds: Counter[str] = Counter()
    if progress:
        progress(done, total, 0)
    worker = partial(_Measurer, plan.entries, plan.metrics, plan.images.settings.seed, folder)
    for receipt in map_units(worker, todo, workers=min(workers, max(1, len(todo)))):
        done += receipt.images
        failures |= receipt.failures
        if receipt.error:
            errors.append(receipt.error)
        else:
            seconds.update(receipt.seconds)
            store.append_lines(folder / "timing.jsonl", [{"unit": receipt.unit, **receipt.seconds}])
        if progress:
            progress(done, total, len(failures))
    discard_leftovers(folder)  # again: workers of a killed session may have lived on into the start of this one
    return Measured(len(units), images, dict(seconds), tuple(sorted(failures.items())), tuple(errors))


def _remaining(folder: Path, units: Sequence[Unit]) -> list[Unit]:
    """Return the units that are not done: no part or a damaged one, or an image that failed.

    Raises:
        PlanChangedError: images have another size in bytes than when they were measured.
    """
    todo, changed = [], []
    for unit in units:
        try:
            part = pq.read_table(folder / PARTS / f"{unit.name}.parquet", columns=["image", "status", "image_bytes"])
        except (OSError, pa.ArrowException):  # absent, or damaged by a power cut say
            todo.append(unit)
            continue
        if "failed" in part["status"].unique().to_pylist():
            todo.append(unit)
            continue
        sizes = dict(zip(part["image"].to_pylist(), part["image_bytes"].to_pylist(), strict=True))
        changed += [s.name for s in unit.sources if file_size(s.image) not in (None, sizes.get(s.key))]
    if changed:
        raise PlanChangedError(
            f"{len(changed)} images are other files now than when they were measured ({', '.join(changed[:3])}"
            f"{' …' if len(changed) > 3 else ''}); use a new folder for --out."
        )
    return todo


@dataclass(frozen=True, slots=True)
class _Receipt:
    """What a worker reports of one unit; its rows are already on disk."""

    unit: str
    images: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None


class _Measurer:
    """Measures units in one process."""

    def __init__(self, entries: Sequence[Entry], metrics: Sequence[str], seed: int, folder: Path) -> None:
        self.entries = entries
        self.metrics = metrics
        self.seed = seed
        self.folder = folder

    def __call__(self, unit: Unit) -> _Receipt:
        clock = Clock()
        rows: list[dict[str, Any]] = []
        failures: dict[str, str] = {}
        try:
            for source in unit.sources:
                found = self._measure(source, clock)
                rows += found
                failures |= {str(source.image): row["error"] for row in found if row["status"] == "failed"}
            with clock("store"):
                store.write_part(self.folder, unit.name, pa.Table.from_pylist(rows, STRENGTH_SCHEMA))
        except IncompleteError:
            raise
        except Exception:
            return _Receipt(unit.name, len(unit.sources), error=f"unit {unit.name}\n{traceback.format_exc()}")
        return _Receipt(unit.name, len(unit.sources), clock.read(), failures)

    def _measure(self, source: Source, clock: Clock) -> list[dict[str, Any]]:
        """Return the rows of one image under all conditions."""
        common = {"image": source.key, "seed": self.seed, "image_bytes": file_size(source.image)}
        try:
            with clock("decode"):
                image = read_image(source.image)
            with clock("measure"):
                clean = CleanImage(image)
        except CrypsisError as error:
            return [{**common, "status": "failed", "error": str(error)}]
        common |= {"height": image.shape[0], "width": image.shape[1]}
        rows = []
        for entry in self.entries:
            for severity in entry.severities:
                row = {**common, "entry": entry.name, "severity": severity}
                try:
                    with clock("degrade"):
                        degraded = entry.degrade(image, severity, seed=self.seed, image_key=source.key)
                    with clock("measure"):
                        strengths = clean.strengths(degraded, lpips="lpips" in self.metrics)
                        values = {metric: strengths.value(metric) for metric in self.metrics}
                        row |= {"status": "ok", "unchanged": bool(np.array_equal(image, degraded))}
                except CrypsisError as error:  # an image that an operator cannot take, such as one too long for JPEG
                    rows.append({**row, "status": "failed", "error": str(error)})
                    continue
                rows += [{**row, "metric": metric, "value": value} for metric, value in values.items()]
        return rows


def read_strengths(plan: MeasurePlan, folder: Path) -> StrengthTable:
    """Reduce the parts of a measurement to its table over images.

    An image that failed under any condition is left out of all of them, so that all numbers are over the same images.

    Raises:
        InputError: no image could be measured, or a part is missing or damaged.
    """
    entries = [entry.name for entry in plan.entries]
    place = {name: index for index, name in enumerate(entries)}
    row_of = {metric: index for index, metric in enumerate(plan.metrics)}
    values: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    unchanged = np.zeros((len(entries), 5), np.int64)
    reasons: list[str] = []
    columns = ["image", "entry", "severity", "metric", "value", "unchanged", "status", "error"]
    for unit in plan.units():
        file = folder / PARTS / f"{unit.name}.parquet"
        try:
            part = pq.read_table(file, columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{file}: cannot be read ({error}); give the measure command again.") from error
        failed = part.filter(pc.equal(part["status"], "failed"))
        reasons += failed["error"].to_pylist()
        part = part.filter(pc.invert(pc.is_in(part["image"], failed["image"].combine_chunks())))
        keys = {key: index for index, key in enumerate(part["image"].unique().to_pylist())}
        block = np.full((len(row_of), len(entries), 5, len(keys)), np.nan)
        index = (
            np.array([row_of[m] for m in part["metric"].to_pylist()], np.intp),
            np.array([place[e] for e in part["entry"].to_pylist()], np.intp),
            part["severity"].to_numpy().astype(np.intp) - 1,
            np.array([keys[k] for k in part["image"].to_pylist()], np.intp),
        )
        block[index] = part["value"].to_numpy()
        values.append(block)
        first = index[0] == 0
        np.add.at(unchanged, (index[1][first], index[2][first]), part["unchanged"].to_numpy()[first].astype(np.int64))
    stacked = np.concatenate(values, axis=3)
    if not stacked.shape[3]:
        raise InputError(f"{folder}: no image could be measured ({reasons[0]}).")
    return StrengthTable.from_values(entries, plan.metrics, stacked, unchanged)


def finish_measuring(plan: MeasurePlan, folder: Path, failures: Sequence[tuple[str, str]] = ()) -> StrengthTable:
    """Make the table of a measurement, write it and its findings to `summary.json`, and return it.

    Raises:
        InputError: no image could be measured, or a part is missing or damaged.
    """
    table = read_strengths(plan, folder)
    summary = {
        "schema": "crypsis.strengths/1",
        "images": len(plan.sources),
        "measured": table.images,
        "failed": dict(failures),
        "entries": table.to_dict(),
        "findings": [finding.to_dict() for finding in find_all(table)],
    }
    store.write_json(folder / "summary.json", summary)
    return table


def calibrate(
    plan: MeasurePlan, *, progress: Callable[[int, int, int], None] | None = None
) -> tuple[Calibration, tuple[tuple[str, str], ...]]:
    """Calibrate the one entry of a plan in its one metric; see `crypsis.severity.calibration.calibrate_distortion`.

    Args:
        plan: what to do.
        progress: told images read, images in all, and how many of them failed.

    Returns:
        The calibration, whose images' names are their keys in the data set, and `(image file, reason)` of every
        image that could not be read; it is without these.

    Raises:
        InputError: the plan has several entries or metrics, or no image could be read.
    """
    if len(plan.entries) != 1 or len(plan.metrics) != 1:
        raise InputError("A calibration is of one entry in one metric.")
    total = len(plan.sources)
    failures: list[tuple[str, str]] = []
    keys: list[str] = []

    def images() -> Iterator[Image]:
        for done, source in enumerate(plan.sources, 1):
            try:
                image = read_image(source.image)
            except ImageError as error:
                failures.append((str(source.image), str(error)))
            else:
                keys.append(source.key)  # read as the list grows: each name right after its image
                yield image
            if progress:
                progress(done, total, len(failures))

    entry = plan.entries[0]
    seed = plan.images.settings.seed
    try:
        found = calibrate_distortion(images(), entry.family, entry.term, plan.metrics[0], seed=seed, image_keys=keys)
    except InputError as error:
        if len(failures) == total:
            raise InputError(f"{plan.images.data}: no image could be read ({failures[0][1]}).") from error
        raise
    return found, tuple(failures)
