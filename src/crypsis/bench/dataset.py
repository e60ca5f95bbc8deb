"""Degraded copies of a whole data set, with its masks or annotations, that can be interrupted and continued.

OUT/plan.json                     the plan, and the versions of each session
OUT/parts/*.jsonl                 one per unit of work; what a part lists is on disk
OUT/<entry>/<severity>/…          the images (`full`); OUT/<severity>/… (`round-robin`)
OUT/manifest.jsonl                one line a file, written when all is done

In a folder of a condition lie the images by their names below the source; for a set with masks `Imgs/…` and `GT/…`,
which `crypsis bench --data` reads again; for COCO the images and `annotations.json`; for YOLO `images/…`, `labels/…`
and `data.yaml`. Each such folder is a data set of its own, for mmdetection by `data_root` (that folder), `ann_file`
(`annotations.json`) and an empty `data_prefix`, for Ultralytics by its `data.yaml`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from ..catalog import list_entries, select_entries
from ..catalog.aligned import align_mask, check_truth
from ..catalog.entry import Entry
from ..datasets.coco import CocoFile, read_coco
from ..datasets.detection import DetectionDataset, open_detection
from ..datasets.folder import counted, holds_mask_folder, list_images, missing_path
from ..datasets.masks import open_masks
from ..errors import (
    CrypsisError,
    DatasetError,
    ImageError,
    IncompleteError,
    InputError,
    PlanChangedError,
    UnknownNameError,
)
from ..io import (
    IMAGE_SUFFIXES,
    atomic_path,
    discard_leftovers,
    encode_image,
    file_size,
    read_file,
    read_image,
    read_mask,
    write_atomic,
)
from ..types import Image
from . import store
from .annotations import AnnotationWriter, align_annotation
from .engines import map_units
from .yolo_labels import yolo_label, yolo_names, yolo_yaml

__all__ = [
    "ARRANGEMENTS",
    "LABEL_FORMATS",
    "DatasetOutcome",
    "DatasetPlan",
    "Estimate",
    "Source",
    "degrade_dataset",
    "estimate",
    "image_suffix",
    "plan_dataset",
]

ARRANGEMENTS = ("full", "round-robin")
"""Every image under every entry, or every image under the one entry assigned to it; both at all severities."""
LABEL_FORMATS = ("coco", "yolo")
"""How objects are written."""
DATASET_SCHEMA = "crypsis.dataset/1"

_UNIT_FILES = 200
_OPEN_FILES = 64
_SAMPLE_PAIRS = 32
_SAMPLE_PIXELS = 30_000_000


def image_suffix(image_format: str) -> str | None:
    """Return the file ending of a format, None for `keep`; raise `InputError` for one that cannot be written."""
    suffix = f".{image_format.lower().lstrip('.')}"
    if suffix == ".keep":
        return None
    if suffix not in IMAGE_SUFFIXES:
        formats = ", ".join(s[1:] for s in sorted(IMAGE_SUFFIXES))
        raise InputError(f"{image_format!r} cannot be written; use {formats}, or keep.")
    return suffix


@dataclass(frozen=True, slots=True)
class Source:
    """One image of the data set.

    Attributes:
        key: path inside the data set without suffix, POSIX; what seeds go by.
        name: the same with suffix.
        image: the file.
        mask: its mask's file, if the set has masks.
        size: (height, width) that its annotations are for, if known.
        id: its id in the annotations, if there are any.
        entry: name of the one entry assigned to it (`round-robin`), else None.
    """

    key: str
    name: str
    image: Path
    mask: Path | None = None
    size: tuple[int, int] | None = None
    id: int | str | None = None
    entry: str | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every worker needs to know; small, because it travels to each.

    Attributes:
        entries: the degradations.
        severities: native severities, each 1..5.
        arrangement: one of `ARRANGEMENTS`.
        seed: seed of all random draws.
        truth: one of `crypsis.catalog.aligned.TRUTHS`.
        suffix: file ending of what is written, None for that of the source.
        kind: `images`, `masks`, `coco` or `yolo`.
        categories: ids, in the order in which YOLO's classes are numbered.
    """

    entries: tuple[Entry, ...]
    severities: tuple[int, ...]
    arrangement: str
    seed: int
    truth: str
    suffix: str | None
    kind: str
    categories: tuple[int, ...] = ()

    def conditions(self, source: Source) -> Iterator[tuple[Entry, int]]:
        """Yield what is done to an image."""
        for entry in self.entries:
            if source.entry in (None, entry.name):
                for severity in self.severities:
                    yield entry, severity

    def folder(self, entry: Entry, severity: int) -> str:
        """Return the folder of a condition inside OUT."""
        return f"{entry.name}/{severity}" if self.arrangement == "full" else str(severity)

    def folders(self) -> tuple[str, ...]:
        """Return all folders of conditions."""
        return tuple(dict.fromkeys(self.folder(entry, s) for entry in self.entries for s in self.severities))

    def image_name(self, source: Source) -> str:
        """Return the image's name in the folder of a condition."""
        name = source.name if self.suffix is None else source.key + self.suffix
        if self.kind == "yolo":
            return yolo_names(name)[0]
        return f"Imgs/{name}" if self.kind == "masks" else name


@dataclass(frozen=True, slots=True)
class Unit:
    """A few images under all their conditions; one part file.

    Attributes:
        name: plain text, the part's file stem.
        sources: the images.
        annotations: of each image, by its id; for COCO only where they are to be moved.
    """

    name: str
    sources: tuple[Source, ...]
    annotations: Mapping[int | str, Sequence[Mapping[str, Any]]]

    @property
    def images(self) -> int:
        """How many images are in it."""
        return len(self.sources)


@dataclass(frozen=True, kw_only=True)
class DatasetPlan:
    """What will be written; see `plan_dataset`.

    Attributes:
        data: the data set as the user named it.
        root: folder of the images, or the manifest.
        settings: what is done to each image.
        sources: the images, sorted by key.
        coco: the annotations, if they are written as COCO's.
        objects: the annotations, if they are written as YOLO's.
        warnings: what a user should know, one sentence each.
    """

    data: str
    root: Path
    settings: Settings
    sources: tuple[Source, ...] = field(repr=False)
    coco: CocoFile | None = field(default=None, repr=False)
    objects: DetectionDataset | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def files(self) -> int:
        """Number of images that will be written."""
        s = self.settings
        return len(self.sources) * len(s.severities) * (len(s.entries) if s.arrangement == "full" else 1)

    def units(self) -> Iterator[Unit]:
        """Yield the units of work, in a fixed order."""
        step = max(1, _UNIT_FILES * len(self.sources) // self.files)
        moving = self.settings.truth == "aligned" and any(e.moves_pixels for e in self.settings.entries)
        for start in range(0, len(self.sources), step):
            chunk = self.sources[start : start + step]
            annotations: dict[int | str, Sequence[Mapping[str, Any]]] = {}
            if self.coco is not None and moving:
                annotations = {s.id: self.coco.annotations.get(s.id, ()) for s in chunk if s.id is not None}
            elif self.objects is not None:
                annotations = {s.id: self.objects.annotations.get(s.id, ()) for s in chunk if s.id is not None}
            yield Unit(f"images-{start:07d}-{start + len(chunk) - 1:07d}", chunk, annotations)

    def identity(self) -> dict[str, Any]:
        """Return what decides the files, as JSON values."""
        s = self.settings
        names = "\n".join(f"{source.name}\t{source.mask.name if source.mask else ''}" for source in self.sources)
        annotations = self.coco or self.objects
        return {
            "arrangement": s.arrangement,
            "dataset": {
                "kind": s.kind,
                "images": len(self.sources),
                "names_sha256": hashlib.sha256(names.encode()).hexdigest(),
                "annotations_sha256": annotations.sha256 if annotations else None,
            },
            "entries": {e.name: [dict(values) for values in e.parameters] for e in s.entries},
            "severities": list(s.severities),
            "seed": s.seed,
            "truth": s.truth,
            "format": (s.suffix or ".keep")[1:],
            "unit_files": _UNIT_FILES,
        }


def plan_dataset(
    data: str,
    *,
    arrangement: str = "full",
    entries: Sequence[str | Entry] = (),
    families: Sequence[str] = (),
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    seed: int = 0,
    truth: str = "published",
    image_format: str = "png",
    annotations: Path | None = None,
    label_format: str = "coco",
    split: str = "test",
    include_noncam: bool = False,
    allow_unpaired: bool = False,
) -> DatasetPlan:
    """Plan degraded copies of a data set.

    Args:
        data: `demo`, a folder or manifest of images and masks (see `crypsis.datasets.masks.open_masks`), any other
            folder of images, or with `annotations` the folder their `file_name`s start from.
        arrangement: `full`: every image under every entry; `round-robin`: each image keeps its one entry at all
            severities. Assignment goes around the entries in an order of images drawn from `seed`, so that entries
            differ by one image at most; it depends on the set of images.
        entries: rows of the catalog or their names; all rows if neither `entries` nor `families` is given.
        families: families of the catalog, taken before `entries`.
        severities: native severities, each 1..5.
        seed: seed of all random draws.
        truth: `published` copies masks and annotations; `aligned` moves them along where content moves.
        image_format: `png`, another format, or `keep` for the file names as they are (JPEG adds losses of its own).
        annotations: a COCO annotation file; only the images it lists are written.
        label_format: one of `LABEL_FORMATS`. `yolo` takes `data` and `annotations` as
            `crypsis.datasets.detection.open_detection` does, folders of labels and the demo set too.
        split: of a data set with masks.
        include_noncam: keep COD10K's images without camouflaged objects.
        allow_unpaired: go on when images or masks lack their partner.

    Raises:
        InputError: something that cannot be used as given; the message names it.
    """
    if arrangement not in ARRANGEMENTS:
        raise UnknownNameError.among("plan", str(arrangement), ARRANGEMENTS)
    if not severities or not all(s in (1, 2, 3, 4, 5) for s in severities):
        raise InputError(f"Severities are 1 to 5; got {list(severities)}.")
    if label_format not in LABEL_FORMATS:
        raise UnknownNameError.among("format of labels", label_format, LABEL_FORMATS)
    check_truth(truth)
    rows = select_entries(families, entries) or list_entries()
    coco = objects = None
    warnings: tuple[str, ...] = ()
    if label_format == "yolo":
        objects = open_detection(data, annotations, segmentations=truth == "aligned")
        kind, root, warnings = "yolo", objects.root, (*objects.warnings, *_unsayable(objects))
        sources = [Source(i.key, i.file_name, i.image, size=i.size, id=i.id) for i in objects.items]
    elif annotations is not None:
        coco = read_coco(annotations, Path(data))
        kind, root, warnings = "coco", Path(data), coco.warnings
        sources = [Source(i.key, i.name, i.path, size=i.size, id=i.id) for i in coco.images]
    elif data == "demo" or not Path(data).is_dir() or holds_mask_folder(Path(data)):
        if data != "demo" and not Path(data).exists():
            raise missing_path(Path(data))
        masks = open_masks(data, split=split, include_noncam=include_noncam, allow_unpaired=allow_unpaired)
        kind, root, warnings = "masks", masks.root, masks.warnings
        sources = [Source(i.key, i.key + i.image.suffix, i.image, i.mask) for i in masks.items]
    else:
        kind, root = "images", Path(data)
        found, _ = list_images(root)
        if not found:
            raise InputError(f"{root}: no image is in this folder ({', '.join(sorted(IMAGE_SUFFIXES))}).")
        sources = [Source(key, key + found[key].suffix, found[key]) for key in sorted(found)]
    settings = Settings(
        entries=rows,
        severities=tuple(sorted(set(severities))),
        arrangement=arrangement,
        seed=seed,
        truth=truth,
        suffix=image_suffix(image_format),
        kind=kind,
        categories=tuple(objects.categories) if objects else (),
    )
    if arrangement == "round-robin":
        assigned = _assign([source.key for source in sources], [row.name for row in settings.entries], seed)
        sources = [replace(source, entry=assigned[source.key]) for source in sources]
    return DatasetPlan(
        data=data,
        root=root,
        settings=settings,
        sources=tuple(sources),
        coco=coco,
        objects=objects,
        warnings=tuple(warnings),
    )


def _unsayable(objects: DetectionDataset) -> list[str]:
    """Return a sentence about objects that are left out of YOLO's labels."""
    count = sum(bool(found["iscrowd"] or found["ignore"]) for each in objects.annotations.values() for found in each)
    if not count:
        return []
    return [f"{objects.name}: {counted(count, 'crowd or ignored object')} left out, as YOLO's labels cannot mark them."]


def _assign(keys: Sequence[str], names: Sequence[str], seed: int) -> dict[str, str]:
    """Deal the names to the keys in turn, both in an order drawn from the seed."""

    def draw(name: str) -> bytes:
        return hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=16).digest()

    order = sorted(names, key=draw)
    return {key: order[index % len(order)] for index, key in enumerate(sorted(keys, key=draw))}


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan would still write.

    Attributes:
        images: images written in all.
        left: images still to be written.
        bytes: disk space these need, estimated; None if no image could be read.
        free: bytes free at the target.
    """

    images: int
    left: int
    bytes: int | None
    free: int

    def text(self, plan: DatasetPlan) -> str:
        """Return it as lines to print."""
        s = plan.settings
        entries = f"{len(s.entries)} entries" if len(s.entries) != 1 else s.entries[0].name
        times = "" if s.arrangement == "full" else ", one entry an image"
        need = "unknown, no image can be read" if self.bytes is None else f"about {self.bytes / 1e9:.3g} GB"
        return (
            f"{len(plan.sources):,} images × {len(s.severities)} severities of {entries}{times}: "
            f"{self.images:,} images, {self.images - self.left:,} of them done.\n"
            f"Disk space still needed: {need}; free: {self.free / 1e9:.3g} GB."
        )


def estimate(plan: DatasetPlan, folder: Path) -> Estimate:
    """Degrade and encode a sample of the plan in memory, and scale it to what is not yet in `folder`.

    The sample takes images and conditions at even distances, up to 32 of them or 30 million pixels. The sizes of
    images are as various as the sample shows them, so the estimate is one.
    """
    return _estimate(plan, folder, [source for unit in _remaining(folder, plan) for source in unit.sources])


def _estimate(plan: DatasetPlan, folder: Path, todo: Sequence[Source]) -> Estimate:
    s = plan.settings
    left = sum(1 for source in todo for _ in s.conditions(source))
    total = pixels = taken = 0
    count = min(_SAMPLE_PAIRS, left)
    for index in range(count):
        source = todo[index * len(todo) // count]
        conditions = list(s.conditions(source))
        entry, severity = conditions[index * len(conditions) // count]
        try:
            image = read_image(source.image)
            worse = entry.degrade(image, severity, seed=s.seed, image_key=source.key)
            total += len(encode_image(worse, s.suffix or Path(source.name).suffix))
            total += source.mask.stat().st_size if source.mask else 0
        except (ImageError, OSError):
            continue  # counted and reported when its turn comes
        taken += 1
        pixels += image.shape[0] * image.shape[1]
        if pixels > _SAMPLE_PIXELS:
            break
    need = total * left // taken if taken else None
    if need is not None and plan.coco is not None and left:
        need += plan.coco.path.stat().st_size * len(s.folders())
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    return Estimate(plan.files, left, need, shutil.disk_usage(place).free)


@dataclass(frozen=True, slots=True)
class DatasetOutcome:
    """How it ended.

    Attributes:
        written: images written by this call.
        kept: images that were there before.
        failures: `(image path, reason)` of images that could not be used.
        errors: tracebacks of bugs; their units are not done.
        warnings: one sentence on annotations that could not be moved along and are left out where content moves.
    """

    written: int
    kept: int
    failures: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def degrade_dataset(
    plan: DatasetPlan,
    folder: Path,
    *,
    workers: int = 1,
    progress: Callable[[int, int, int], None] | None = None,
) -> DatasetOutcome:
    """Do what is left of `plan` in `folder`; each image is decoded once for all its conditions.

    Killed at any moment and called again, it goes on where no file is missing or of another size than was
    written; the files are the same bytes whatever the number of workers and interruptions. Images that could not
    be used are tried again.

    Args:
        plan: what to do.
        folder: made if absent.
        workers: number of processes.
        progress: told images done, images in all, and how many of them failed.

    Raises:
        InputError: the folder holds other things, or lies inside the source.
        PlanChangedError: the folder holds another plan, or images changed since they were degraded.
        IncompleteError: there is too little space, the disk is full, or a worker died.
    """
    if workers < 1:
        raise InputError(f"workers is a number from 1 up; got {workers}.")
    if plan.coco is None and plan.root.is_dir() and folder.resolve().is_relative_to(plan.root.resolve()):
        raise InputError(f"{folder} lies inside {plan.root}, whose images are read; choose a place outside.")
    store.claim_folder(
        folder,
        "plan.json",
        schema=DATASET_SCHEMA,
        identity=plan.identity(),
        session=store.session_of(plan.data),
        what="degraded data set",
        option="OUT",
    )
    todo = list(_remaining(folder, plan))
    if todo:
        _check_space(_estimate(plan, folder, [source for unit in todo for source in unit.sources]), folder)
        (folder / "manifest.jsonl").unlink(missing_ok=True)
    total = len(plan.sources)
    done = total - sum(len(unit.sources) for unit in todo)
    failures: list[tuple[str, str]] = []
    errors: list[str] = []
    written = 0
    kept = plan.files - sum(1 for unit in todo for source in unit.sources for _ in plan.settings.conditions(source))
    if progress:
        progress(done, total, 0)
    for receipt in map_units(partial(_Worker, plan.settings, folder), todo, workers=min(workers, max(1, len(todo)))):
        done += receipt.images
        written += receipt.written
        failures += receipt.failures
        if receipt.error:
            errors.append(receipt.error)
        if progress:
            progress(done, total, len(failures))
    if not errors and (todo or not _is_finished(folder, plan)):
        _finish(folder, plan)
    discard_leftovers(folder)  # again: workers of a killed session may have lived on into the start of this one
    return DatasetOutcome(written, kept, tuple(sorted(failures)), tuple(errors), tuple(_unmovable(folder, plan)))


def _unmovable(folder: Path, plan: DatasetPlan) -> Iterator[str]:
    """Say which annotations are left out where content moves."""
    if plan.settings.truth != "aligned" or plan.settings.kind not in ("coco", "yolo"):
        return
    parts = ((folder / "parts" / f"{unit.name}.jsonl") for unit in plan.units())
    rows = (row for part in parts if part.exists() for row in _read_part(part))
    reasons = {(row["source"], key): text for row in rows for key, text in row.get("unusable", {}).items()}
    if reasons:
        count, first = counted(len(reasons), "annotation"), next(iter(reasons.values())).removesuffix(".")
        yield f"{plan.data}: {count} that cannot be moved along left out where content moves ({first})."


def _check_space(guess: Estimate, folder: Path) -> None:
    if guess.bytes is not None and guess.bytes > guess.free:
        raise IncompleteError(
            f"{folder}: about {guess.bytes / 1e9:.1f} GB are needed for {guess.left:,} images, and "
            f"{guess.free / 1e9:.1f} GB are free; free some, choose fewer entries or severities, or --format jpg."
        )


def _remaining(folder: Path, plan: DatasetPlan) -> Iterator[Unit]:
    """Yield the units that are not done: no part, a failed image, or a file that is not as it was written.

    Raises:
        PlanChangedError: source images have another size in bytes than when they were degraded.
    """
    changed = []
    for unit in plan.units():
        part = folder / "parts" / f"{unit.name}.jsonl"
        rows = _read_part(part) if part.exists() else []
        if not rows or any("error" in row for row in rows) or not all(_is_whole(folder, row) for row in rows):
            yield unit
            continue
        sizes = {row["source"]: row["source_bytes"] for row in rows}
        changed += [s.name for s in unit.sources if file_size(s.image) not in (None, sizes[s.name])]
    if changed:
        raise PlanChangedError(
            f"{len(changed)} images are other files now than when they were degraded ({', '.join(changed[:3])}"
            f"{' …' if len(changed) > 3 else ''}); use a new folder for OUT."
        )


def _read_part(part: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in part.read_text("utf-8").split("\n") if line]


def _is_whole(folder: Path, row: Mapping[str, Any]) -> bool:
    return file_size(folder / row["file"]) == row["bytes"] and all(
        file_size(folder / row[kind]) == row[f"{kind}_bytes"] for kind in ("mask", "label") if kind in row
    )


@dataclass(frozen=True, slots=True)
class _Receipt:
    """What a worker reports of one unit; its rows are already on disk."""

    images: int
    written: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    error: str | None = None


class _Worker:
    """Degrades units in one process."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder

    def __call__(self, unit: Unit) -> _Receipt:
        rows: list[dict[str, Any]] = []
        failures = []
        try:
            for source in unit.sources:
                try:
                    rows += self._degrade(source, unit.annotations.get(source.id, ()) if source.id is not None else ())
                except IncompleteError:
                    raise
                except CrypsisError as error:
                    failures.append((str(source.image), str(error)))
                    rows.append({"source": source.name, "error": str(error)})
            lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
            write_atomic(self.folder / "parts" / f"{unit.name}.jsonl", lines.encode())
        except IncompleteError:
            raise
        except Exception:
            return _Receipt(len(unit.sources), error=f"unit {unit.name}\n{traceback.format_exc()}")
        return _Receipt(len(unit.sources), sum("file" in row for row in rows), tuple(failures))

    def _degrade(self, source: Source, annotations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Write one image under all its conditions, and return the rows of the manifest."""
        s = self.settings
        image = read_image(source.image)
        height, width = image.shape[:2]
        if source.size not in (None, (height, width)):
            listed = f"{source.size[1]}×{source.size[0]}" if source.size else ""
            raise ImageError(f"{source.image}: is {width}×{height} pixels upright, but {listed} in the annotations.")
        mask_data = read_file(source.mask) if source.mask else b""
        mask = read_mask(source.mask).mask if source.mask else None
        if mask is not None and mask.shape != (height, width):
            sizes = f"{width}×{height} pixels, its mask {mask.shape[1]}×{mask.shape[0]}"
            raise ImageError(f"{source.image}: the image is {sizes}; repair one of them.")
        rows = []
        for entry, severity in s.conditions(source):
            place = s.folder(entry, severity)
            worse = entry.degrade(image, severity, seed=s.seed, image_key=source.key)
            name = f"{place}/{s.image_name(source)}"
            data = encode_image(worse, Path(name).suffix)
            write_atomic(self.folder / name, data)
            row: dict[str, Any] = {
                "source": source.name,
                "image_key": source.key,
                "entry": entry.name,
                "severity": severity,
                "seed": s.seed,
                "truth": s.truth,
                "file": name,
                "sha256": hashlib.sha256(data).hexdigest(),
                "bytes": len(data),
                "width": width,
                "height": height,
                "source_bytes": source.image.stat().st_size,
            }
            moves = s.truth == "aligned" and entry.moves_pixels
            if mask is not None and source.mask is not None:
                suffix, written = source.mask.suffix, mask_data
                if moves:
                    moved = align_mask(mask, entry, severity, seed=s.seed, image_key=source.key)
                    suffix, written = ".png", encode_image(moved.astype("uint8") * 255, ".png")
                row |= self._write("mask", f"{place}/GT/{source.key}{suffix}", written)
            if source.id is not None and moves:
                row |= self._align(annotations, entry, severity, source, image)
            if s.kind == "yolo":
                label = yolo_label(row.pop("annotations", annotations), s.categories, height, width)
                row |= self._write("label", f"{place}/{yolo_names(source.name)[1]}", label.encode())
            rows.append(row)
        return rows

    def _write(self, kind: str, name: str, data: bytes) -> dict[str, Any]:
        """Write what belongs to an image, and return its columns."""
        write_atomic(self.folder / name, data)
        return {kind: name, f"{kind}_sha256": hashlib.sha256(data).hexdigest(), f"{kind}_bytes": len(data)}

    def _align(
        self, annotations: Sequence[Mapping[str, Any]], entry: Entry, severity: int, source: Source, image: Image
    ) -> dict[str, Any]:
        height, width = image.shape[:2]
        field = entry.source_of(height, width, severity, seed=self.settings.seed, image_key=source.key)
        if field is None:
            return {}
        moved: list[dict[str, Any]] = []
        lost, unusable = [], {}
        for annotation in annotations:
            try:
                after = align_annotation(annotation, field)
            except DatasetError as error:
                unusable[str(annotation.get("id"))] = str(error)
                continue
            if after is None:
                lost.append(annotation.get("id"))
            else:
                moved.append(after)
        return {"annotations": moved, "lost": lost, "unusable": unusable}


_PRIVATE = ("annotations", "unusable", "bytes", "label_bytes", "mask_bytes", "source_bytes")


def _is_finished(folder: Path, plan: DatasetPlan) -> bool:
    files = [folder / "manifest.jsonl"]
    if plan.coco is not None:
        files += [folder / place / "annotations.json" for place in plan.settings.folders()]
    if plan.objects is not None:
        files += [folder / place / "data.yaml" for place in plan.settings.folders()]
    return all(file.exists() for file in files)


def _finish(folder: Path, plan: DatasetPlan) -> None:
    """Write the annotations of each folder, then the manifest, whose presence says that they are there."""
    if plan.coco is not None:
        places = plan.settings.folders()
        for start in range(0, len(places), _OPEN_FILES):
            _write_annotations(folder, plan, plan.coco, places[start : start + _OPEN_FILES])
    if plan.objects is not None:
        text = yolo_yaml(plan.objects.categories.values())
        for place in plan.settings.folders():
            write_atomic(folder / place / "data.yaml", text.encode())
    with atomic_path(folder / "manifest.jsonl") as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in _rows(folder, plan):
            if "file" in row:
                public = {name: value for name, value in row.items() if name not in _PRIVATE}
                file.write(f"{json.dumps(public, ensure_ascii=False)}\n")


def _rows(folder: Path, plan: DatasetPlan) -> Iterator[dict[str, Any]]:
    for unit in plan.units():
        yield from _read_part(folder / "parts" / f"{unit.name}.jsonl")


def _write_annotations(folder: Path, plan: DatasetPlan, coco: CocoFile, places: Sequence[str]) -> None:
    """Stream through the parts once, and write the annotation files of some folders at the same time."""
    s = plan.settings
    source_of = {source.name: source for source in plan.sources}
    listed_of = {image.id: image.listed for image in coco.images}
    place_of = {(e.name, v): s.folder(e, v) for e in s.entries for v in s.severities}
    images: dict[str, list[Mapping[str, Any]]] = {place: [] for place in places}
    lost: dict[str, list[Any]] = {place: [] for place in places}
    unusable: dict[str, list[str]] = {place: [] for place in places}
    failed: list[str] = []
    with ExitStack() as stack:
        writers: dict[str, AnnotationWriter] = {}
        for place in places:
            temporary = stack.enter_context(atomic_path(folder / place / "annotations.json"))
            file: IO[str] = stack.enter_context(temporary.open("w", encoding="utf-8"))
            writers[place] = AnnotationWriter(file, coco.rest)
        unmoved: tuple[str, list[str]] = ("", [])
        for row in _rows(folder, plan):
            if "error" in row:
                failed.append(row["source"])
                continue
            place = place_of[row["entry"], row["severity"]]
            if place not in writers:
                continue
            source = source_of[row["source"]]
            assert source.id is not None
            if "annotations" in row:
                texts = [json.dumps(annotation) for annotation in row["annotations"]]
                lost[place] += row["lost"]
                unusable[place] += row.get("unusable", {})
            else:
                if unmoved[0] != source.name:
                    unmoved = source.name, [json.dumps(a) for a in coco.annotations.get(source.id, ())]
                texts = unmoved[1]
            writers[place].add(texts)
            size = {"width": row["width"], "height": row["height"]}  # not every file lists it, mmdetection needs it
            images[place].append({**listed_of[source.id], "file_name": s.image_name(source), **size})
        for place, writer in writers.items():
            note = {"truth": s.truth, "seed": s.seed, "failed_images": failed, "lost_annotations": lost[place],
                    "unusable_annotations": unusable[place]}  # fmt: skip
            writer.close(images[place], note)
