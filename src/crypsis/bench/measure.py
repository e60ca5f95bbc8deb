"""How strong degradations are on a set of images, in every metric; interruptible and continued.

The degradations are entries of the catalog at severities 1..5, or degraded images that exist (see `pairs`).

RUN/run.json           the plan, and the versions and machine of each session
RUN/parts/*.parquet    one per unit of work; a part that is there is done
RUN/timing.jsonl       CPU seconds of each unit by stage
RUN/summary.json       the table over images and the findings, written when all is done
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..catalog.entry import Entry
from ..errors import CrypsisError, ImageError, InputError
from ..io import file_digest, read_image
from ..results import PARTS
from ..severity.calibration import Calibration, calibrate_distortion
from ..severity.findings import StrengthTable, find_all
from ..severity.strength import METRICS, CleanImage, check_metric
from ..types import Image
from . import store
from .dataset import DatasetPlan, Source, Unit, plan_dataset
from .work import Clock, Labor, Outcome, Progress, Receipt, do_units, make_part

__all__ = [
    "DEFAULT_METRICS",
    "MEASURE_SCHEMA",
    "STRENGTH_SCHEMA",
    "MeasurePlan",
    "Plan",
    "Version",
    "calibrate",
    "check_selection",
    "finish_measuring",
    "measure",
    "names_sha256",
    "plan_measure",
    "read_strengths",
    "read_values",
    "spaced",
    "too_few",
]

MEASURE_SCHEMA = "crypsis.measurement/2"
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
        ("image_digest", pa.string()),
        ("degraded_digest", pa.string()),
        ("height", pa.int32()),
        ("width", pa.int32()),
    ]
)
"""Columns of a part. `entry` is the entry's name, or the label of existing images; these have a `degraded_digest` and
no `seed`, and no `severity` where they come without. The digests are of the files' bytes: names and sizes of two
folders may agree. `value` is the strength, infinite for the PSNR of an image that came
out `unchanged`. `status` is `ok` or `failed`; a failed row has `error` and neither metric nor value, and no entry if
the clean image could not be read."""

_FEW = 10


@dataclass(frozen=True, slots=True)
class Version:
    """A degraded version of one image.

    Attributes:
        columns: what its rows hold beside the numbers, `entry` and `severity` among it.
        stage: what making it counts as in the timing.
        file: the file that an error in making it is about.
        make: returns it, uint8 H×W×3 RGB, from the clean image.
    """

    columns: Mapping[str, Any]
    stage: str
    file: Path
    make: Callable[[Image], Image]


class Plan(Protocol):
    """What `measure` needs to know."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """The clean images."""
        ...

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of `crypsis.severity.strength.METRICS`."""
        ...

    @property
    def conditions(self) -> Sequence[tuple[str, int | None]]:
        """The `entry` and `severity` of all versions, in a fixed order."""
        ...

    @property
    def versions(self) -> Callable[[Source], Iterable[Version]]:
        """Returns the versions of an image; travels to each worker."""
        ...

    def units(self) -> list[Unit]:
        """Return the units of work, in a fixed order."""
        ...

    @property
    def file_columns(self) -> Sequence[str]:
        """The columns that say of which files a row is; see `crypsis.bench.store.remaining_units`."""
        ...

    def files_now(self, unit: Unit) -> Iterable[tuple[Any, ...]]:
        """Return what `file_columns` would hold of a unit now."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return what decides the numbers, as JSON values."""
        ...

    def session(self) -> dict[str, Any]:
        """Return when, where and with what this session works."""
        ...


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

    @property
    def conditions(self) -> list[tuple[str, int | None]]:
        """Every entry at every severity."""
        return [(entry.name, severity) for entry in self.entries for severity in entry.severities]

    @property
    def versions(self) -> Callable[[Source], Iterable[Version]]:
        """Returns the versions of an image."""
        return partial(_computed, self.entries, self.images.settings.seed)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know, one sentence each."""
        return (*self.images.warnings, *too_few(len(self.sources)))

    @property
    def file_columns(self) -> tuple[str, ...]:
        """See `Plan`."""
        return "image", "image_digest"

    def units(self) -> list[Unit]:
        """Return the units of work, in a fixed order."""
        return list(self.images.units())

    def files_now(self, unit: Unit) -> list[tuple[Any, ...]]:
        """See `Plan`; images that are gone are not needed again."""
        digests = ((source.key, file_digest(source.image)) for source in unit.sources)
        return [(key, digest) for key, digest in digests if digest is not None]

    def identity(self) -> dict[str, Any]:
        """Return what decides the numbers, as JSON values."""
        return {
            "dataset": {"images": len(self.sources), "names_sha256": names_sha256(s.name for s in self.sources)},
            "entries": {e.name: [dict(values) for values in e.parameters] for e in self.entries},
            "metrics": list(self.metrics),
            "seed": self.images.settings.seed,
            "limit": self.limit,
        }

    def session(self) -> dict[str, Any]:
        """See `Plan`."""
        return store.session_of(self.images.data)


def _computed(entries: Sequence[Entry], seed: int, source: Source) -> Iterator[Version]:
    """Yield an image under all entries and severities."""
    for entry in entries:
        for severity in entry.severities:
            columns = {"entry": entry.name, "severity": severity, "seed": seed}
            make = partial(entry.degrade, severity=severity, seed=seed, image_key=source.key)
            yield Version(columns, "degrade", source.image, make)


def names_sha256(names: Iterable[str]) -> str:
    """Return what stands for a list of names in an identity."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def too_few(images: int) -> list[str]:
    """Return a sentence of warning where there are so few images that statistics over them say little."""
    if images >= _FEW:
        return []
    count = "There is only 1 image" if images == 1 else f"There are only {images} images"
    return [f"{count}; strengths over so few say little about others, a few dozen are a good number."]


def check_selection(metrics: Sequence[str], limit: int | None) -> tuple[str, ...]:
    """Return the metrics without repetitions; raise `InputError` for one that does not exist, none, or a bad limit."""
    for metric in metrics:
        check_metric(metric)
    if not metrics:
        raise InputError(f"No metric was named; there are {', '.join(METRICS)}.")
    if limit is not None and limit < 1:
        raise InputError(f"A limit is a number of images from 1 up; got {limit}.")
    return tuple(dict.fromkeys(metrics))


def spaced(sources: Sequence[Source], limit: int | None) -> tuple[Source, ...]:
    """Return `limit` of the images at even distances; all of them if there are not more, or it is None."""
    count = len(sources)
    if limit is None or limit >= count:
        return tuple(sources)
    return tuple(sources[i * count // limit] for i in range(limit))


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
    metrics = check_selection(metrics, limit)
    if not -(2**63) <= seed < 2**63:
        raise InputError(f"A seed is a whole number of at most 64 bits with sign; got {seed}.")
    images = plan_dataset(data, entries=entries, families=families, seed=seed, split=split, allow_unpaired=True)
    images = replace(images, sources=spaced(images.sources, limit))
    return MeasurePlan(images=images, metrics=metrics, limit=limit)


def measure(plan: Plan, folder: Path, *, workers: int = 1, progress: Progress | None = None) -> Outcome:
    """Do what is left of `plan` in `folder`; each image is decoded once for all its conditions.

    Killed at any moment and called again, it goes on; the parts are the same bytes whatever the number of workers
    and interruptions. Images that could not be measured are tried again.

    Args:
        plan: what to do.
        folder: the run folder; made if absent.
        workers: number of processes; 1 works in this one.
        progress: told after each unit.

    Returns:
        How it ended; failures are files with the reason, stages `decode`, `degrade`, `measure` and `store`.

    Raises:
        InputError: `workers` below 1, or the folder holds other things.
        PlanChangedError: the folder holds another plan, or images changed since they were measured.
        IncompleteError: a worker died, or the disk is full.
    """
    labor = Labor(workers)
    store.claim_folder(
        folder,
        "run.json",
        schema=MEASURE_SCHEMA,
        identity=plan.identity(),
        session=plan.session(),
        what="measurement",
        option="--out",
    )
    return do_units(
        folder,
        plan.units(),
        partial(_Measurer, plan.versions, plan.metrics, folder),
        columns=plan.file_columns,
        files_now=plan.files_now,
        labor=labor,
        progress=progress,
    )


class _Measurer:
    """Measures units in one process."""

    def __init__(self, versions: Callable[[Source], Iterable[Version]], metrics: Sequence[str], folder: Path) -> None:
        self.versions = versions
        self.metrics = metrics
        self.folder = folder

    def __call__(self, unit: Unit) -> Receipt:
        return make_part(self.folder, unit, STRENGTH_SCHEMA, partial(self._rows, unit))

    def _rows(self, unit: Unit, clock: Clock) -> tuple[list[dict[str, Any]], Iterable[tuple[str, str]]]:
        """Return the rows of a unit, and the files that failed with the reason."""
        rows: list[dict[str, Any]] = []
        failures: dict[str, str] = {}
        for source in unit.sources:
            rows += self._measure(source, clock, failures)
        return rows, failures.items()

    def _measure(self, source: Source, clock: Clock, failures: dict[str, str]) -> list[dict[str, Any]]:
        """Return the rows of one image under all conditions; name the files that fail, with the reason."""
        common = {"image": source.key, "image_digest": file_digest(source.image)}
        try:
            with clock("decode"):
                image = read_image(source.image)
            with clock("measure"):
                clean = CleanImage(image)
        except CrypsisError as error:
            failures[str(source.image)] = str(error)
            return [{**common, "status": "failed", "error": str(error)}]
        common |= {"height": image.shape[0], "width": image.shape[1]}
        rows = []
        for version in self.versions(source):
            row = {**common, **version.columns}
            try:
                with clock(version.stage):
                    degraded = version.make(image)
                with clock("measure"):
                    strengths = clean.strengths(degraded, lpips="lpips" in self.metrics)
                    values = {metric: strengths.value(metric) for metric in self.metrics}
                    row |= {"status": "ok", "unchanged": bool(np.array_equal(image, degraded))}
            except CrypsisError as error:  # such as an image too long for JPEG, or a file that is damaged
                file, reason = str(version.file), str(error)
                failures[file] = reason if file in reason else f"{file}: {reason}"
                rows.append({**row, "status": "failed", "error": failures[file]})
                continue
            rows += [{**row, "metric": metric, "value": value} for metric, value in values.items()]
        return rows


def read_values(plan: Plan, folder: Path) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers in the parts of a measurement.

    Returns:
        The strengths, metrics × conditions × images, and whether an image is unchanged, conditions × images. A
        strength that was not measured is NaN; images without any are left out.

    Raises:
        InputError: no image could be measured, or a part is missing or damaged.
    """
    place = {condition: index for index, condition in enumerate(plan.conditions)}
    row_of = {metric: index for index, metric in enumerate(plan.metrics)}
    values: list[NDArray[np.float64]] = []
    unchanged: list[NDArray[np.bool_]] = []
    reason = ""
    columns = ["image", "entry", "severity", "metric", "value", "unchanged", "status", "error"]
    for unit in plan.units():
        file = folder / PARTS / f"{unit.name}.parquet"
        try:
            part = pq.read_table(file, columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{file}: cannot be read ({error}); give the measure command again.") from error
        failed = pc.equal(part["status"], "failed")
        reason = reason or next(iter(part.filter(failed)["error"].to_pylist()), "")
        part = part.filter(pc.invert(failed))
        keys = {key: index for index, key in enumerate(part["image"].unique().to_pylist())}
        conditions = zip(part["entry"].to_pylist(), part["severity"].to_pylist(), strict=True)
        index = (
            np.array([row_of[m] for m in part["metric"].to_pylist()], np.intp),
            np.array([place[c] for c in conditions], np.intp),
            np.array([keys[k] for k in part["image"].to_pylist()], np.intp),
        )
        values.append(np.full((len(row_of), len(place), len(keys)), np.nan))
        values[-1][index] = part["value"].to_numpy()
        unchanged.append(np.zeros((len(place), len(keys)), np.bool_))
        unchanged[-1][index[1:]] = part["unchanged"].to_numpy()
    stacked = np.concatenate(values, axis=2)
    if not stacked.shape[2]:
        raise InputError(f"{folder}: no image could be measured ({reason}).")
    return stacked, np.concatenate(unchanged, axis=1)


def read_strengths(plan: MeasurePlan, folder: Path) -> StrengthTable:
    """Reduce the parts of a measurement to its table over images.

    An image that failed under any condition is left out of all of them, so that all numbers are over the same images.

    Raises:
        InputError: no image could be measured, or a part is missing or damaged.
    """
    values, unchanged = read_values(plan, folder)
    whole = ~np.isnan(values).any(axis=(0, 1))
    if not whole.any():
        raise InputError(f"{folder}: no image could be measured under every condition; choose fewer entries.")
    shape = (len(plan.entries), 5)
    return StrengthTable.from_values(
        [entry.name for entry in plan.entries],
        plan.metrics,
        values[:, :, whole].reshape(len(plan.metrics), *shape, -1),
        unchanged[:, whole].sum(axis=1).reshape(shape),
    )


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
