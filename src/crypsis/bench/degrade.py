"""Degraded copies of files: an image, or a folder of images, at one or more severities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..catalog import get_entry
from ..catalog.entry import Entry
from ..errors import ImageError, InputError
from ..io import IMAGE_SUFFIXES, read_image, write_image
from .engines import map_units

__all__ = ["DegradeOutcome", "degrade_files"]


@dataclass(frozen=True, slots=True)
class DegradeOutcome:
    """How many files were written, and which images could not be used.

    Attributes:
        written: number of files.
        failures: `(image path, reason)`.
    """

    written: int
    failures: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """One image, its key, and where each severity goes."""

    source: Path
    key: str
    targets: tuple[tuple[int, Path], ...]


def degrade_files(
    source: Path,
    target: Path,
    *,
    op: str,
    severities: Sequence[int],
    seed: int = 0,
    image_format: str = "png",
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> DegradeOutcome:
    """Write degraded copies; an image is decoded once for all its severities.

    Images are written upright: the EXIF orientation is applied to the pixels and no tag is written.

    Args:
        source: an image file, or a folder that is searched for images at any depth.
        target: a file when `source` is a file and there is one severity; else a folder, filled as
            `<family>/<term>/<severity>/<path inside source>.<format>`.
        op: catalog name.
        severities: native severities, each 1..5.
        seed: seed of the random draws; the image key is the path inside `source`, without suffix.
        image_format: file ending of what is written, when `target` is a folder.
        workers: number of processes.
        progress: told images done and in all.

    Raises:
        InputError: an unknown name, a missing or empty source, a target that cannot be meant.
        IncompleteError: the disk is full or a worker died.
    """
    entry = get_entry(op)
    jobs = _jobs(source, target, entry, severities, image_format)
    written, failures = 0, []
    for done, (job, reason) in enumerate(
        map_units(partial(_Worker, entry, seed), jobs, workers=min(workers, len(jobs))), 1
    ):
        if reason:
            failures.append((str(job.source), reason))
        else:
            written += len(job.targets)
        if progress:
            progress(done, len(jobs))
    return DegradeOutcome(written, tuple(sorted(failures)))


def _jobs(source: Path, target: Path, entry: Entry, severities: Sequence[int], image_format: str) -> list[_Job]:
    suffix = f".{image_format.lower().lstrip('.')}"
    if suffix not in IMAGE_SUFFIXES:
        raise InputError(f"{image_format!r} cannot be written; use {', '.join(s[1:] for s in sorted(IMAGE_SUFFIXES))}.")
    if source.is_file():
        if len(severities) == 1 and target.suffix.lower() in IMAGE_SUFFIXES:
            return [_Job(source, source.stem, ((severities[0], target),))]
        images, root = [source], source.parent
    elif source.is_dir():
        images, root = _find(source), source
        if not images:
            raise InputError(f"{source}: no image is in this folder ({', '.join(sorted(IMAGE_SUFFIXES))}).")
    else:
        raise InputError(f"{source}: no such file or folder.")
    if target.is_file() or target.suffix.lower() in IMAGE_SUFFIXES:
        raise InputError(f"{target}: several files are written, so OUT must be a folder.")
    jobs: dict[str, _Job] = {}
    for image in images:
        relative = image.relative_to(root).with_suffix("")
        key = relative.as_posix()
        if key in jobs:
            raise InputError(f"{image} and {jobs[key].source} would be written to one file; rename one.")
        jobs[key] = _Job(image, key, tuple((s, target / entry.name / str(s) / f"{key}{suffix}") for s in severities))
    return list(jobs.values())


def _find(folder: Path) -> list[Path]:
    found = (p for p in folder.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES and p.is_file())
    return sorted(p for p in found if not any(part.startswith(".") for part in p.relative_to(folder).parts))


class _Worker:
    """Degrades images of one process."""

    def __init__(self, entry: Entry, seed: int) -> None:
        self.entry = entry
        self.seed = seed

    def __call__(self, job: _Job) -> tuple[_Job, str]:
        try:
            image = read_image(job.source)
        except ImageError as error:
            return job, str(error)
        for severity, target in job.targets:
            write_image(target, self.entry.degrade(image, severity, seed=self.seed, image_key=job.key))
        return job, ""
