"""Degraded copies of files: an image, or a folder of images, under one degradation or a chain, at severities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..catalog import get_entry
from ..catalog.composition import chain
from ..catalog.entry import Entry
from ..datasets.folder import list_images
from ..errors import ImageError, InputError, UnreachableError
from ..io import IMAGE_SUFFIXES, read_image, storing, write_atomic, write_image
from ..severity.inverse import degrade_to_strength
from ..types import Image
from .dataset import image_suffix
from .engines import map_units

__all__ = ["STRENGTHS_FILE", "DegradeOutcome", "Step", "Target", "degrade_files", "parse_step"]


@dataclass(frozen=True, slots=True)
class DegradeOutcome:
    """How many files were written, and which images could not be used.

    Attributes:
        written: number of files.
        failures: `(image path, reason)`.
    """

    written: int
    failures: tuple[tuple[str, str], ...]


STRENGTHS_FILE = "strengths.csv"
"""What `degrade_files` writes beside images of one strength: file, entry, metric, target, strength, level. Beside the
single file `a.png`, it is `a.strengths.csv`."""

_LOSSY = (".jpeg", ".jpg", ".webp")


@dataclass(frozen=True, slots=True)
class Target:
    """A strength to degrade every image to; see `crypsis.severity.inverse.degrade_to_strength`.

    Attributes:
        strength: in units of `metric`.
        metric: `1-ssim`, `psnr` or `lpips`.
        tolerance: greatest distance from `strength`; None for that of the metric.
    """

    strength: float
    metric: str = "1-ssim"
    tolerance: float | None = None

    def __str__(self) -> str:
        """The name of its folder, such as `1-ssim=0.25`."""
        return f"{self.metric}={repr(float(self.strength)).removesuffix('.0')}"


@dataclass(frozen=True, slots=True)
class Step:
    """One degradation of a chain.

    Attributes:
        entry: the row of the catalog.
        severity: its own severity, or None for the one that is asked of the whole chain.
    """

    entry: Entry
    severity: int | None = None

    def __str__(self) -> str:
        """The name as a part of a path: a slash becomes a dot; `@severity` follows where the step has its own."""
        name = self.entry.name.replace("/", ".")
        return name if self.severity is None else f"{name}@{self.severity}"


def parse_step(text: str) -> Step:
    """Read `NAME` or `NAME@SEVERITY`, such as `cod10k-c/fog@2`.

    Raises:
        UnknownNameError: no degradation has that name.
        InputError: the severity is not one of 1..5.
    """
    name, mark, level = text.partition("@")
    if mark and level not in ("1", "2", "3", "4", "5"):
        raise InputError(f"A degradation with its own severity is written NAME@1 to NAME@5; got {text!r}.")
    return Step(get_entry(name), int(level) if mark else None)


_Steps = tuple[tuple[Entry, int], ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """One image, its key, and where it goes under each list of steps."""

    source: Path
    key: str
    targets: tuple[tuple[_Steps, Path], ...]


def degrade_files(
    source: Path,
    target: Path,
    *,
    ops: Sequence[str],
    severities: Sequence[int] | None = None,
    strength: Target | None = None,
    seed: int = 0,
    image_format: str = "png",
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> DegradeOutcome:
    """Write degraded copies; an image is decoded once for all its severities.

    Images are written upright: the EXIF orientation is applied to the pixels and no tag is written. With `strength`,
    every image is brought to that strength by one degradation, and `strengths.csv` says what was achieved and at
    which level; an image that cannot be brought there is one of the failures, and what an earlier call wrote of it is
    removed.

    Args:
        source: an image file, or a folder that is searched for images at any depth.
        target: a file when `source` is a file and there is one severity; else a folder. One degradation fills
            `<family>/<term>/<severity>/<path inside source>.<format>`; a chain fills
            `<family>.<term>+<family>.<term>/<severity>/…`, where a step with its own severity is written
            `<family>.<term>@<severity>`, and the folder of severities is left out if every step has its own.
        ops: catalog names, each with or without its own severity (`cod10k-c/fog@2`), in the order of application.
        severities: native severities, each 1..5, of the steps that have none of their own; 3 if None.
        strength: instead of severities; the folder is then `<family>/<term>/<metric>=<strength>`.
        seed: seed of the random draws; the image key is the path inside `source`, without suffix.
        image_format: file ending of what is written when `target` is a folder, or `keep` for that of the source.
        workers: number of processes.
        progress: told images done and in all.

    Raises:
        InputError: an unknown name, a missing or empty source, a target that cannot be meant, a strength in a format
            that would change it.
        IncompleteError: the disk is full or a worker died.
    """
    steps = [parse_step(op) for op in ops]
    conditions = _conditions(steps, severities) if strength is None else [_at_strength(steps, severities, strength)]
    jobs = _jobs(source, target, conditions, image_suffix(image_format))
    if strength is not None:
        _refuse_losses(jobs)
    written, failures, achieved = 0, [], {}
    worker = partial(_Worker, seed, strength)
    for done, (job, reason, found) in enumerate(map_units(worker, jobs, workers=min(workers, len(jobs))), 1):
        if reason:
            failures.append((str(job.source), reason))
        else:
            written += len(job.targets)
        if found:
            achieved[job.targets[0][1]] = found
        elif strength is not None and job.targets[0][1].resolve() != job.source.resolve():
            _remove(job.targets[0][1])
        if progress:
            progress(done, len(jobs))
    if strength is not None:
        single = jobs[0].targets[0][1] == target
        table = target.with_suffix(f".{STRENGTHS_FILE}") if single else target / conditions[0][0] / STRENGTHS_FILE
        _write_strengths(table, achieved)
    return DegradeOutcome(written, tuple(sorted(failures)))


def _refuse_losses(jobs: Sequence[_Job]) -> None:
    """Refuse to write images of a strength in a format that would change it."""
    for job in jobs:
        suffix = job.targets[0][1].suffix
        if suffix.lower() in _LOSSY:
            raise InputError(
                f"--strength is measured before the file is written, and {suffix} would add losses to it; write .png, "
                ".bmp or .tif."
            )


def _write_strengths(file: Path, achieved: Mapping[Path, str]) -> None:
    """Write what was achieved, by image; where nothing was, no table of an earlier call stays."""
    rows = sorted(f"{_quoted(i.relative_to(file.parent).as_posix())},{line}" for i, line in achieved.items())
    if rows:
        write_atomic(file, "\n".join(["file,entry,metric,target,strength,level", *rows, ""]).encode())
    else:
        _remove(file)


def _remove(file: Path) -> None:
    with storing(file):
        file.unlink(missing_ok=True)


def _at_strength(steps: Sequence[Step], severities: Sequence[int] | None, target: Target) -> tuple[str, _Steps]:
    """Return the folder and the one step of images at a strength."""
    if len(steps) != 1 or steps[0].severity is not None or severities is not None:
        raise InputError("--strength takes the place of a severity, for one degradation: --op NAME --strength 0.25.")
    entry = steps[0].entry
    return f"{entry.name}/{target}", ((entry, 1),)


def _conditions(steps: Sequence[Step], severities: Sequence[int] | None) -> list[tuple[str, _Steps]]:
    """Return the folder and the steps of each condition."""
    if not steps:
        raise InputError("Name a degradation, such as --op cod10k-c/fog; `crypsis list` shows them all.")
    if all(step.severity is not None for step in steps):
        if severities is not None:
            raise InputError("Every --op has its own severity (@), so --severity has nothing to say; leave it out.")
        severities = [0]  # one condition, and no step asks for this
    fixed = severities == [0]
    found = []
    for severity in severities or [3]:
        rows = tuple((step.entry, severity if step.severity is None else step.severity) for step in steps)
        if len(steps) == 1:
            folder = f"{steps[0].entry.name}/{rows[0][1]}"
        else:
            name = "+".join(map(str, steps))
            folder = name if fixed else f"{name}/{severity}"
        found.append((folder, rows))
    return found


def _jobs(source: Path, target: Path, conditions: Sequence[tuple[str, _Steps]], suffix: str | None) -> list[_Job]:
    if source.is_file():
        if len(conditions) == 1 and target.suffix.lower() in IMAGE_SUFFIXES:
            return [_Job(source, source.stem, ((conditions[0][1], target),))]
        images = {source.stem: source}
    elif source.is_dir():
        images, _ = list_images(source)
        if not images:
            raise InputError(f"{source}: no image is in this folder ({', '.join(sorted(IMAGE_SUFFIXES))}).")
    else:
        raise InputError(f"{source}: no such file or folder.")
    if target.is_file() or target.suffix.lower() in IMAGE_SUFFIXES:
        raise InputError(f"{target}: several files are written, so OUT must be a folder.")
    if source.is_dir() and target.resolve().is_relative_to(source.resolve()):
        raise InputError(f"{target} lies inside {source}, whose images are read; choose a place outside.")
    return [
        _Job(
            images[key],
            key,
            tuple((steps, target / folder / f"{key}{suffix or images[key].suffix}") for folder, steps in conditions),
        )
        for key in sorted(images)
    ]


class _Worker:
    """Degrades images of one process."""

    def __init__(self, seed: int, strength: Target | None) -> None:
        self.seed = seed
        self.strength = strength

    def __call__(self, job: _Job) -> tuple[_Job, str, str]:
        """Return the job, why it failed or nothing, and the line of `STRENGTHS_FILE` without the file's name."""
        line = ""
        try:
            image = read_image(job.source)
            for steps, target in job.targets:
                if self.strength is None:
                    worse = chain(image, steps, seed=self.seed, image_key=job.key)
                else:
                    worse, line = self._at_strength(image, steps[0][0], self.strength, job.key)
                write_image(target, worse)
        except (ImageError, UnreachableError) as error:
            return job, str(error), ""
        return job, "", line

    def _at_strength(self, image: Image, entry: Entry, target: Target, key: str) -> tuple[Image, str]:
        at = degrade_to_strength(
            image, entry.name, strength=target.strength, metric=target.metric, tolerance=target.tolerance,
            seed=self.seed, image_key=key,
        )  # fmt: skip
        return at.image, f"{entry.name},{at.metric},{target.strength!r},{at.strength:.6g},{at.level!r}"


def _quoted(name: str) -> str:
    """Return a file's name as a field of CSV."""
    return f'"{name.replace(chr(34), chr(34) * 2)}"' if any(c in name for c in ',"\n') else name
