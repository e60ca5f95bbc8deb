"""The strength of degraded images that exist, such as another tool's corruptions or real footage, against clean ones.

They are measured by `crypsis.bench.measure.measure`, into the same kind of run folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets.folder import (
    counted,
    examples,
    find_layout,
    holds_mask_folder,
    list_images,
    missing_path,
    pair_by_key,
)
from ..errors import InputError
from ..io import IMAGE_SUFFIXES, file_digest, read_image
from ..severity.placement import PairStrength, Placement, place
from ..severity.strength import METRICS
from ..types import Image
from . import store
from .dataset import Source, Unit, plan_dataset
from .measure import DEFAULT_METRICS, Version, check_selection, names_sha256, read_values, spaced, too_few

__all__ = ["PairPlan", "PairSet", "finish_pairs", "plan_pairs"]

_UNIT_PAIRS = 200
_SEVERITIES = ("1", "2", "3", "4", "5")
_NUMBER = re.compile(r"[\d.]+(e[+-]\d+)?")


@dataclass(frozen=True, slots=True)
class PairSet:
    """Degraded images of one label and severity.

    Attributes:
        label: what they are called.
        severity: 1..5, or None where they come without.
        folder: where they are.
        files: the degraded image by the key of its clean one.
        missing: keys of clean images without a degraded one here.
        extra: keys of images here without a clean one.
    """

    label: str
    severity: int | None
    folder: Path
    files: Mapping[str, Path] = field(repr=False)
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The label, with the severity where there is one."""
        return self.label if self.severity is None else f"{self.label} s={self.severity}"


@dataclass(frozen=True, kw_only=True)
class PairPlan:
    """What will be measured; a `crypsis.bench.measure.Plan`, see `plan_pairs`.

    Attributes:
        data: the clean images as the user named them.
        sources: the clean images that have a partner in any set (after `limit`), sorted by key.
        sets: the degraded images.
        metrics: names of `crypsis.severity.strength.METRICS`.
        limit: number of images asked for, or None for all.
        warnings: what a user should know, one sentence each.
    """

    data: str
    sources: tuple[Source, ...] = field(repr=False)
    sets: tuple[PairSet, ...]
    metrics: tuple[str, ...]
    limit: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def conditions(self) -> list[tuple[str, int | None]]:
        """Label and severity of every set."""
        return [(one.label, one.severity) for one in self.sets]

    @property
    def versions(self) -> Callable[[Source], Iterable[Version]]:
        """Returns the degraded versions of an image."""
        return partial(_stored, self.sets)

    @property
    def file_columns(self) -> tuple[str, ...]:
        """See `crypsis.bench.measure.Plan`."""
        return "image", "image_digest", "entry", "severity", "degraded_digest"

    def units(self) -> list[Unit]:
        """Return the units of work, in a fixed order."""
        step = max(1, _UNIT_PAIRS // len(self.sets))
        chunks = (self.sources[start : start + step] for start in range(0, len(self.sources), step))
        return [Unit(f"images-{i * step:07d}-{i * step + len(c) - 1:07d}", c, {}) for i, c in enumerate(chunks)]

    def files_now(self, unit: Unit) -> Iterator[tuple[Any, ...]]:
        """See `crypsis.bench.measure.Plan`."""
        for source in unit.sources:
            digest = file_digest(source.image)
            for version in self.versions(source):
                yield (source.key, digest, *(version.columns[name] for name in self.file_columns[2:]))

    def identity(self) -> dict[str, Any]:
        """Return what decides the numbers, as JSON values."""
        against: dict[str, dict[str, Any]] = {}
        for one in self.sets:
            names = names_sha256(f"{key}\t{file.relative_to(one.folder)}" for key, file in one.files.items())
            level = "" if one.severity is None else str(one.severity)
            against.setdefault(one.label, {})[level] = {"images": len(one.files), "names_sha256": names}
        return {
            "dataset": {"images": len(self.sources), "names_sha256": names_sha256(s.name for s in self.sources)},
            "against": against,
            "metrics": list(self.metrics),
            "limit": self.limit,
        }

    def session(self) -> dict[str, Any]:
        """See `crypsis.bench.measure.Plan`."""
        return {**store.session_of(self.data), "against": {s.name: str(s.folder.absolute()) for s in self.sets}}


def plan_pairs(
    data: str,
    against: Sequence[str],
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    limit: int | None = None,
    split: str = "test",
    allow_unpaired: bool = False,
) -> PairPlan:
    """Plan to measure the strength of degraded images that exist.

    A degraded image belongs to the clean one with the same path below its folder, without suffix (see
    `crypsis.datasets.folder.pair_by_key`).

    Args:
        data: the clean images, as `crypsis.bench.measure.plan_measure` takes them.
        against: `FOLDER` or `LABEL=FOLDER`; without a label, the folder's name is it, or, for a folder of one severity
            or strength, that of the folder above. A folder has the images in it, or with masks as a data set; or,
            with no image directly in it, subfolders such as `crypsis degrade` writes, named 1 to 5 or like
            `1-ssim=0.2`, each with them; or folders of these one or two levels down, whose path becomes the label.
            Where clean images lie in folders named 1 to 5, names mean no severity and no strength.
        metrics: names of `crypsis.severity.strength.METRICS`.
        limit: take only this many clean images, at even distances in the order of their names.
        split: of a data set with masks.
        allow_unpaired: leave out clean images without a degraded one, rather than refuse them. Images that have no
            clean one are left out either way.

    Raises:
        InputError: something that cannot be used as given; the message names it.
    """
    metrics = check_selection(metrics, limit)
    clean = plan_dataset(data, split=split, allow_unpaired=True)
    images = {source.key: source.image for source in clean.sources}
    numbered = any(part in _SEVERITIES for key in images for part in key.split("/")[:-1])
    found: dict[tuple[str, int | None], Path] = {}
    for text in against:
        for label, severity, folder in _folders(text, numbered):
            if (label, severity) in found:
                raise InputError(
                    f"Two folders have the label {label!r} ({found[label, severity]} and {folder}); "
                    "give them different ones, as LABEL=FOLDER."
                )
            found[label, severity] = folder
    if not found:
        raise InputError("No folder of degraded images was named.")
    real = [file.resolve() for file in images.values()]
    warnings = list(clean.warnings)
    sets = []
    for (label, severity), folder in found.items():
        resolved = folder.resolve()
        clean_there = sum(file.is_relative_to(resolved) for file in real)
        if clean_there:
            raise InputError(
                f"{folder} holds {counted(clean_there, 'clean image')} of {data}; --against names a folder of degraded "
                "ones only, outside that of the clean ones."
            )
        one = _paired(images, PairSet(label, severity, folder, {}), split)
        if not one.files or (one.missing and not allow_unpaired):
            raise InputError(_unpaired(one, len(images)))
        if one.missing:
            warnings.append(
                f"{one.name}: {len(one.missing):,} of {counted(len(images), 'clean image')} are left out, as they have "
                f"no partner in {folder} ({examples(one.missing)})."
            )
        if one.extra:
            there = f"{counted(len(one.extra), 'image')} in {folder}"
            warnings.append(f"{one.name}: {there} without a clean one left out ({examples(one.extra)}).")
        sets.append(one)
    sources = spaced([source for source in clean.sources if any(source.key in one.files for one in sets)], limit)
    kept = {source.key for source in sources}
    sets = [replace(one, files={key: file for key, file in one.files.items() if key in kept}) for one in sets]
    for one in sets:
        if not one.files:
            raise InputError(f"{one.name}: none of its images is among the {limit} that the limit leaves; take more.")
    warnings += too_few(len(sources))
    return PairPlan(
        data=data, sources=sources, sets=tuple(sets), metrics=metrics, limit=limit, warnings=tuple(warnings)
    )


def _folders(text: str, numbered: bool) -> list[tuple[str, int | None, Path]]:
    """Return label, severity and folder of each set that `[LABEL=]FOLDER` names.

    Args:
        text: what was given.
        numbered: whether clean images lie in folders named like severities, which then mean none.
    """
    label, mark, rest = text.partition("=")
    given = bool(mark) and not Path(text).exists()
    folder = Path(rest if given else text)
    if not (rest if given else text):
        raise InputError(f"--against is written FOLDER or LABEL=FOLDER; got {text!r}.")
    if not folder.exists():
        raise missing_path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; --against names a folder of degraded images.")
    own = None if given or numbered else _level(folder.resolve())
    label = label.strip() if given else (folder.resolve().parent if own else folder.resolve()).name
    if not label[:1].isalnum():
        raise InputError(f"A label starts with a letter or digit; got {label!r}. Give one as LABEL={folder}.")
    if own:
        return [(label + own[0], own[1], folder)]
    inside = _inside(folder)
    if numbered or any(path.suffix.lower() in IMAGE_SUFFIXES for path in inside):
        return [(label, None, folder)]
    if levels := _levels(folder):
        return [(label + more, severity, level) for more, severity, level in levels]
    start = f"{label}/" if given else ""
    nested: list[tuple[str, int | None, Path]] = [
        (f"{start}{below.relative_to(folder).as_posix()}{more}", severity, level)
        for child in inside
        for below in ([child] if _levels(child) else _inside(child))
        for more, severity, level in _levels(below)
    ]
    return nested or [(label, None, folder)]


def _inside(folder: Path) -> list[Path]:
    """Return what lies in a folder; nothing for a file."""
    try:
        return sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror or error}).") from error


def _levels(folder: Path) -> list[tuple[str, int | None, Path]]:
    """Return the subfolders that are named like a severity or strength, with what they add to the label."""
    named = [(_level(path), path) for path in _inside(folder)]
    return [(*level, path) for level, path in named if level and path.is_dir()]


def _level(folder: Path) -> tuple[str, int | None] | None:
    """Return what a folder of `crypsis degrade` adds to a label, and its severity; None for one of another name."""
    if folder.name in _SEVERITIES:
        return "", int(folder.name)
    metric, mark, strength = folder.name.partition("=")
    return (f"/{folder.name}", None) if mark and metric in METRICS and _NUMBER.fullmatch(strength) else None


def _paired(clean: Mapping[str, Path], one: PairSet, split: str) -> PairSet:
    """Return the set with what its folder holds."""
    root = find_layout(one.folder, split).images if holds_mask_folder(one.folder) else one.folder
    images, _ = list_images(root)
    pairing = pair_by_key(clean, images)
    files = {key: file for key, _, file in pairing.pairs}
    return replace(one, files=files, missing=pairing.without_mask, extra=pairing.without_image)


def _unpaired(one: PairSet, total: int) -> str:
    """Say which images have no partner."""
    missing = f"{len(one.missing):,} of {counted(total, 'clean image')} have no partner in {one.folder}"
    extra = f"; {len(one.extra):,} there have no clean one ({examples(one.extra)})" if one.extra else ""
    advice = " --allow-unpaired leaves them out." if one.files else ""
    return (
        f"{one.name}: {missing} ({examples(one.missing)}){extra}. A pair has one path below its folders, whatever the "
        f"suffix.{advice}"
    )


def _stored(sets: Sequence[PairSet], source: Source) -> Iterator[Version]:
    """Yield the degraded versions of an image."""
    for one in sets:
        file = one.files.get(source.key)
        if file is not None:
            columns = {"entry": one.label, "severity": one.severity, "degraded_digest": file_digest(file)}
            yield Version(columns, "decode", file, partial(_read, file))


def _read(file: Path, _: Image) -> Image:
    """Return a degraded image, for which its clean one is not needed."""
    return read_image(file)


def finish_pairs(
    plan: PairPlan, folder: Path, failures: Sequence[tuple[str, str]] = (), *, near: Sequence[str] = ()
) -> tuple[list[PairStrength], list[Placement]]:
    """Make the table of a measurement and its place among the catalog entries, and write both to `summary.json`.

    Each set is over the pairs it has; a set of which no pair could be measured is left out.

    Args:
        plan: what was measured.
        folder: the run folder.
        failures: `(file, reason)` of images that could not be measured.
        near: see `crypsis.severity.placement.place`.

    Raises:
        InputError: no image could be measured, or a part is missing or damaged; or no entry is called as in `near`.
    """
    values, unchanged = read_values(plan, folder)
    sets = []
    for index, one in enumerate(plan.sets):
        measured = ~np.isnan(values[0, index])
        if measured.any():
            count = int(unchanged[index, measured].sum())
            block = values[:, index, measured]
            sets.append(PairStrength.from_values(one.label, one.severity, plan.metrics, block, count))
    placements = place(sets, near=near)
    summary = {
        "schema": "crypsis.pair-strengths/1",
        "images": len(plan.sources),
        "failed": dict(failures),
        "unpaired": {s.name: {"clean": len(s.missing), "degraded": len(s.extra)} for s in plan.sets},
        "sets": [one.to_dict() for one in sets],
        "placement": [one.to_dict() for one in placements],
    }
    store.write_json(folder / "summary.json", summary)
    return sets, placements
