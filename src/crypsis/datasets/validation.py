"""Looking at every image, mask and box of a data set before a long run does."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import statistics
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from ..errors import ImageError, UnknownNameError
from ..io import MaskFile, decode_image, decode_mask, exif_orientation, read_file
from .detection import DetectionDataset, DetectionItem, size_fault
from .folder import counted, examples
from .masks import SIZE_POLICIES, Item, MaskDataset, fit_mask
from .naming import parse_cod10k_name

__all__ = [
    "GRAY_SHARE",
    "TINY_PIXELS",
    "TINY_SHARE",
    "DetectionReport",
    "Problem",
    "ValidationReport",
    "validate_detection",
    "validate_masks",
]

GRAY_SHARE = 0.01
"""From this share of gray pixels on, a mask's threshold is a warning instead of a note."""
TINY_PIXELS = 16
"""An object of fewer pixels is called tiny."""
TINY_SHARE = 1e-4
"""An object that covers less of its image is called tiny."""

_Item = TypeVar("_Item", Item, DetectionItem)

_UNUSUAL = {
    "0/1": "1 is the object, where tools that ask for values above 128 see none",
    "palette": "any index but 0 is the object",
    "color": "any channel above 128 is the object",
    "alpha": "alpha above 128 is the object",
}


@dataclass(frozen=True)
class Problem:
    """Something about one image that a user should know.

    Attributes:
        key: the image's key.
        severity: `error` (the image cannot be scored), `warning` (its score means something else than one may
            think) or `note`.
        kind: `unreadable-image`, `unreadable-mask`, `size-mismatch`, `empty-mask`, `full-mask`, `tiny-object`,
            `gray-mask`, `mask-coding`, `exif-rotation` or `duplicate-image`.
        message: one sentence.
    """

    key: str
    severity: str
    kind: str
    message: str


@dataclass(frozen=True)
class _Report(ABC):
    name: str
    root: str
    layout: str
    images: int
    usable: int
    warnings: tuple[str, ...]
    problems: tuple[Problem, ...]
    width: tuple[int, int] | None
    height: tuple[int, int] | None
    file_bytes: int

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems of severity `error`."""
        return tuple(p for p in self.problems if p.severity == "error")

    @property
    def ok(self) -> bool:
        """Whether every image can be scored."""
        return self.usable == self.images

    def counts(self) -> dict[str, int]:
        """Return how many problems there are of each kind, most frequent first."""
        return _counted(p.kind for p in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return asdict(self) | {"ok": self.ok, "counts": self.counts()}

    def text(self, limit: int = 10) -> str:
        """Return the report as lines to print: every error, and up to `limit` other problems of each kind."""
        sizes = []
        if self.width and self.height:
            pixels = f"{_span(*self.width)} × {_span(*self.height)} pixels"
            sizes = [f"  sizes     {pixels}, {self.file_bytes / 1e6:,.1f} MB of files"]
        title, *lines = self._summary()
        lines = [title, *sizes, *lines, *(f"warning: {sentence}" for sentence in self.warnings)]
        for kind, count in self.counts().items():
            members = [p for p in self.problems if p.kind == kind]
            lines.append(f"{kind} ({count:,})")
            shown = [p for i, p in enumerate(members) if i < limit or p.severity == "error"]
            lines += [f"  {p.severity:<7} {p.key}: {p.message}" for p in shown]
            if len(shown) < count:
                lines.append(f"  … and {count - len(shown):,} more")
        tail = f"{self.images - self.usable:,} cannot be scored" if self.usable < self.images else "all can be scored"
        return "\n".join([*lines, *self._refusals(), f"{counted(self.images, 'image')} checked, {tail}."])

    @abstractmethod
    def _summary(self) -> list[str]:
        """Return what the set is and, line by line, what it holds."""

    def _refusals(self) -> list[str]:
        """Return why a benchmark would refuse the set as a whole."""
        return []


@dataclass(frozen=True)
class ValidationReport(_Report):
    """What a look at every file of a data set with masks found.

    Attributes:
        name: the data set's name.
        root: where it is.
        layout: how it is laid out.
        images: number of images with masks.
        usable: how many of them have no problem of severity `error`.
        unpaired: files left out for want of their partner.
        warnings: the data set's own warnings.
        problems: in the order of the images.
        width: smallest and largest image width in pixels; None if nothing could be read.
        height: smallest and largest image height.
        coverage: `min`, `median`, `mean` and `max` of the object's share of the image, over usable images; empty
            if there are none.
        species: images of each species, most frequent first; those of unknown species are not in it.
        super_classes: the same for super-classes.
        codings: masks of each coding (see `MaskFile.coding`).
        file_bytes: size of all image and mask files.
    """

    unpaired: int
    coverage: dict[str, float]
    species: dict[str, int]
    super_classes: dict[str, int]
    codings: dict[str, int]

    @property
    def ok(self) -> bool:
        """Whether every image can be scored, and none is left out."""
        return self.usable == self.images and not self.unpaired

    def _summary(self) -> list[str]:
        lines = [f"{self.name}: {counted(self.images, 'image')} with masks ({self.layout}) in {self.root}"]
        if self.coverage:
            share = {name: f"{value:.2%}" for name, value in self.coverage.items()}
            lines.append(f"  object    {share['min']} to {share['max']} of the image, median {share['median']}")
        kinds = (("groups", self.super_classes), ("species", self.species), ("masks", self.codings))
        return lines + [_shares(title, counts) for title, counts in kinds if counts]

    def _refusals(self) -> list[str]:
        if not self.unpaired:
            return []
        return [f"error: {counted(self.unpaired, 'file')} without a partner; a benchmark refuses this set."]


@dataclass(frozen=True)
class DetectionReport(_Report):
    """What a look at every image of a detection set found.

    Attributes:
        name: the data set's name.
        root: the folder of images.
        layout: how it is laid out.
        images: number of images.
        usable: how many of them have no problem of severity `error`.
        warnings: the data set's own warnings, among them what was left out of its annotations.
        problems: in the order of the images; of the kinds `unreadable-image`, `size-mismatch`, `exif-rotation`,
            `duplicate-image` and `box-outside`.
        width: smallest and largest image width in pixels; None if nothing could be read.
        height: smallest and largest image height.
        file_bytes: size of all image files.
        objects: number of annotations that can be scored, crowds among them.
        crowds: how many of them are crowds.
        empty: number of images without an object.
        categories: objects of each category, most frequent first; those without objects are not in it.
        sha256: of the annotations, hex.
    """

    objects: int
    crowds: int
    empty: int
    categories: dict[str, int]
    sha256: str

    def _summary(self) -> list[str]:
        return [
            f"{self.name}: {counted(self.images, 'image')} with boxes ({self.layout}) in {self.root}",
            f"  boxes     {self.objects:,}, {self.crowds:,} of them crowds; {counted(self.empty, 'image')} without",
            *([_shares("classes", self.categories)] if self.categories else []),
        ]


def _shares(title: str, counts: dict[str, int]) -> str:
    return f"  {title:<9} {len(counts)}: {examples(f'{name} {count:,}' for name, count in counts.items())}"


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


@dataclass(frozen=True)
class _Finding:
    """What is kept of one image after its pixels are gone."""

    problems: tuple[Problem, ...]
    file_bytes: int = 0
    digest: bytes | None = None
    shape: tuple[int, int] | None = None
    coding: str | None = None
    coverage: float | None = None


def validate_masks(
    dataset: MaskDataset,
    *,
    on_size_mismatch: str = "error",
    progress: Callable[[int, int], None] | None = None,
) -> ValidationReport:
    """Decode every image and mask of `dataset` and list what is wrong or unusual, image by image.

    Files are decoded in a few threads and dropped at once; memory does not grow with the set, and the result does
    not depend on timing.

    Args:
        dataset: the set.
        on_size_mismatch: one of `masks.SIZE_POLICIES`; under `resize-mask` another size is a warning.
        progress: called after each image with the number done and the total.

    Raises:
        UnknownNameError: an unknown size policy.
    """
    if on_size_mismatch not in SIZE_POLICIES:
        raise UnknownNameError.among("size policy", on_size_mismatch, SIZE_POLICIES)
    findings = _examined(dataset.items, lambda item: _examine(item, on_size_mismatch), progress)
    return _report(dataset, list(findings))


def validate_detection(
    dataset: DetectionDataset, *, progress: Callable[[int, int], None] | None = None
) -> DetectionReport:
    """Decode every image of `dataset` and list what is wrong or unusual, image by image; see `validate_masks`.

    Args:
        dataset: the set.
        progress: called after each image with the number done and the total.
    """
    rows = [dataset.annotations.get(item.id, ()) for item in dataset.items]
    boxes = {item.key: [row["bbox"] for row in found] for item, found in zip(dataset.items, rows, strict=True)}
    findings = list(_examined(dataset.items, lambda item: _examine_boxes(item, boxes[item.key]), progress))
    objects = [row for found in rows for row in found]
    return DetectionReport(
        **_shared(dataset, findings),
        objects=len(objects),
        crowds=sum(row["iscrowd"] for row in objects),
        empty=sum(not found for found in rows),
        categories=_counted(dataset.categories[row["category_id"]] for row in objects),
        sha256=dataset.sha256,
    )


def _examined(
    items: Sequence[_Item], examine: Callable[[_Item], _Finding], progress: Callable[[int, int], None] | None
) -> Iterator[_Finding]:
    first_of: dict[bytes, str] = {}
    # The decoders set warning filters while they work; threads would otherwise leave these behind for good.
    with warnings.catch_warnings(), ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        try:
            for done, (item, finding) in enumerate(zip(items, pool.map(examine, items), strict=True), 1):
                yield _with_duplicate(item, finding, first_of)
                if progress is not None:
                    progress(done, len(items))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _shared(dataset: MaskDataset | DetectionDataset, findings: list[_Finding]) -> dict[str, Any]:
    widths = [f.shape[1] for f in findings if f.shape]
    heights = [f.shape[0] for f in findings if f.shape]
    return {
        "name": dataset.name,
        "root": str(dataset.root),
        "layout": dataset.layout,
        "images": len(findings),
        "usable": sum(_is_usable(f) for f in findings),
        "warnings": dataset.warnings,
        "problems": tuple(p for f in findings for p in f.problems),
        "width": (min(widths), max(widths)) if widths else None,
        "height": (min(heights), max(heights)) if heights else None,
        "file_bytes": sum(f.file_bytes for f in findings),
    }


def _is_usable(finding: _Finding) -> bool:
    return not any(p.severity == "error" for p in finding.problems)


def _report(dataset: MaskDataset, findings: list[_Finding]) -> ValidationReport:
    shares = [f.coverage for f in findings if f.coverage is not None and _is_usable(f)]
    return ValidationReport(
        **_shared(dataset, findings),
        unpaired=dataset.unpaired,
        coverage={
            "min": min(shares),
            "median": statistics.median(shares),
            "mean": statistics.fmean(shares),
            "max": max(shares),
        }
        if shares
        else {},
        species=_counted(i.species for i in dataset.items),
        super_classes=_counted(i.super_class for i in dataset.items),
        codings=_counted(f.coding for f in findings),
    )


def _counted(names: Iterable[str | None]) -> dict[str, int]:
    counts = Counter(name for name in names if name)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _with_duplicate(item: Item | DetectionItem, finding: _Finding, first_of: dict[bytes, str]) -> _Finding:
    if finding.digest is None:
        return finding
    first = first_of.setdefault(finding.digest, item.key)
    if first == item.key:
        return finding
    problem = Problem(item.key, "warning", "duplicate-image", f"The image file is the same as that of {first}.")
    return dataclasses.replace(finding, problems=(*finding.problems, problem))


def _examine_image(item: Item | DetectionItem) -> tuple[_Finding, bytes]:
    """Return what the image file alone shows, and its bytes."""
    data, digest = b"", None
    try:
        data = read_file(item.image)
        digest = hashlib.blake2b(data, digest_size=16).digest()
        height, width, _ = decode_image(data, str(item.image)).shape
    except ImageError as error:
        return _Finding((Problem(item.key, "error", "unreadable-image", str(error)),), len(data), digest), data
    orientation = exif_orientation(data)
    message = f"The image is turned by its EXIF orientation {orientation} when read."
    problems = () if orientation == 1 else (Problem(item.key, "note", "exif-rotation", message),)
    return _Finding(problems, len(data), digest, (height, width)), data


def _examine_boxes(item: DetectionItem, boxes: list[list[float]]) -> _Finding:
    finding, data = _examine_image(item)
    if finding.shape is None:
        return finding
    problems = list(finding.problems)
    fault = size_fault(item, finding.shape, data)
    if fault is not None:
        problems.append(Problem(item.key, "error", "size-mismatch", f"{fault[0].upper()}{fault[1:]}"))
    height, width = finding.shape
    outside = sum(x >= width or y >= height or x + w <= 0 or y + h <= 0 for x, y, w, h in boxes)
    if outside and fault is None:
        message = f"Of {len(boxes):,} boxes, {outside:,} lie wholly outside the image."
        problems.append(Problem(item.key, "warning", "box-outside", message))
    return dataclasses.replace(finding, problems=tuple(problems))


def _examine(item: Item, policy: str) -> _Finding:
    finding, _ = _examine_image(item)
    problems = list(finding.problems)
    total, shape = finding.file_bytes, finding.shape
    coding: str | None = None
    coverage: float | None = None
    try:
        data = read_file(item.mask)
        total += len(data)
        decoded = decode_mask(data, str(item.mask))
        coding, coverage = decoded.coding, float(decoded.mask.mean())
        if shape is not None:
            problems += _size_problems(item, decoded, shape, policy)
        problems += _mask_problems(item, decoded)
    except ImageError as error:
        problems.append(Problem(item.key, "error", "unreadable-mask", str(error)))
    return _Finding(tuple(problems), total, finding.digest, shape, coding, coverage)


def _size_problems(item: Item, decoded: MaskFile, size: tuple[int, int], policy: str) -> list[Problem]:
    if decoded.mask.shape == size:
        return []
    try:
        fit_mask(decoded.mask, item, size, policy)
    except ImageError as error:
        message = str(error).removeprefix(f"{item.key}: ")
        return [Problem(item.key, "error", "size-mismatch", message)]
    (height, width), (mask_height, mask_width) = size, decoded.mask.shape
    message = f"The mask of {mask_width}×{mask_height} pixels is brought to the image's {width}×{height}."
    return [Problem(item.key, "warning", "size-mismatch", message)]


def _mask_problems(item: Item, decoded: MaskFile) -> list[Problem]:
    problems: list[Problem] = []
    pixels, total = int(np.count_nonzero(decoded.mask)), decoded.mask.size
    if pixels == 0:
        name = parse_cod10k_name(item.key.rpartition("/")[2])
        expected = name is not None and not name.camouflaged
        reason = f"; {decoded.gray_pixels:,} pixels are gray but not above 128" if decoded.gray_pixels else ""
        message = f"The mask is empty: no pixel belongs to an object{reason}."
        problems.append(Problem(item.key, "note" if expected else "warning", "empty-mask", message))
    elif pixels == total:
        message = "The mask is full: every pixel belongs to the object."
        problems.append(Problem(item.key, "warning", "full-mask", message))
    elif pixels < max(TINY_PIXELS, TINY_SHARE * total):
        message = f"The object is tiny: {pixels:,} of {total:,} pixels."
        problems.append(Problem(item.key, "warning", "tiny-object", message))
    if decoded.gray_pixels:
        share = decoded.gray_pixels / total
        message = f"{decoded.gray_pixels:,} pixels of the mask ({share:.2%}) are gray; above 128 counts as object."
        problems.append(Problem(item.key, "warning" if share >= GRAY_SHARE else "note", "gray-mask", message))
    if decoded.coding in _UNUSUAL:
        message = f"The mask is coded as {decoded.coding}: {_UNUSUAL[decoded.coding]}."
        problems.append(Problem(item.key, "note", "mask-coding", message))
    return problems
