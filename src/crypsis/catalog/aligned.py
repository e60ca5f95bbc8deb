"""The truth of a degraded image: as published, where labels stay, or moved along with the content.

Benchmarks keep the labels of the clean image even under degradations that move content (`published`); part of the
drop they measure is then the label's, not the model's. `aligned` moves masks, boxes and polygons by the field that
moved the pixels, `Entry.source_of`: float32 H×W×2, for each pixel of the degraded image the coordinates (x, y) of
the clean pixel that it shows.

Masks are sampled, which is exact for any field. Boxes and polygons are in the convention of COCO: coordinates run
along pixel edges, so that pixel i covers i to i + 1 and its center, where a field counts i, lies at i + 0.5.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, UnknownNameError
from ..types import Mask, Sample
from . import get_entry
from .entry import Entry

__all__ = [
    "TRUTHS",
    "align_mask",
    "check_truth",
    "degrade",
    "warp_boxes",
    "warp_mask",
    "warp_points",
    "warp_polygons",
]

TRUTHS = ("published", "aligned")
"""What may happen to labels where a degradation moves content: they stay, or they move along."""

_ITERATIONS = 20

Field = NDArray[np.float32]
Labels = TypeVar("Labels", bound=np.generic)


def check_truth(truth: str) -> str:
    """Return `truth` if it is one of `TRUTHS`; raise `UnknownNameError` if not."""
    if truth not in TRUTHS:
        raise UnknownNameError.among("truth", str(truth), TRUTHS)
    return truth


def degrade(sample: Sample, entry: str | Entry, severity: int, *, seed: int = 0, truth: str = "published") -> Sample:
    """Degrade an image together with its mask.

    Args:
        sample: the clean image and its mask; neither is changed.
        entry: a row of the catalog, or its name.
        severity: the paper's level, 1..5.
        seed: which of many random fields; `sample.key` names the image.
        truth: `published` keeps the mask; `aligned` moves it along where the row moves content.

    Raises:
        UnknownNameError: no such row, or no such truth.
        InputError: `severity` is not one of 1..5.
    """
    check_truth(truth)
    row = get_entry(entry) if isinstance(entry, str) else entry
    image = row.degrade(sample.image, severity, seed=seed, image_key=sample.key)
    mask = sample.mask
    if truth == "aligned":
        mask = align_mask(mask, row, severity, seed=seed, image_key=sample.key)
    return dataclasses.replace(sample, image=image, mask=mask)


def align_mask(mask: Mask, entry: Entry, severity: int, *, seed: int, image_key: str) -> Mask:
    """Return where the object is after `entry.degrade` with the same arguments; `mask` itself if nothing moves."""
    height, width = mask.shape
    field = entry.source_of(height, width, severity, seed=seed, image_key=image_key)
    return mask if field is None else warp_mask(mask, field)


def warp_mask(mask: NDArray[Labels], field: Field) -> NDArray[Labels]:
    """Return labels moved along with the content: each pixel takes the label of its nearest source pixel.

    Args:
        mask: H×W or H×W×K labels of any dtype.
        field: H×W×2, source coordinates (x, y) in pixels.

    Returns:
        A new array like `mask`; 0 (background) where the source lies outside the image.

    Raises:
        InputError: the sizes differ.
    """
    height, width = _size(field)
    if mask.shape[:2] != (height, width):
        raise InputError(f"The mask is {mask.shape[:2]}, but the field that moves it {(height, width)}.")
    column, row = np.rint(field[:, :, 0]), np.rint(field[:, :, 1])
    outside = ~((column >= 0) & (column < width) & (row >= 0) & (row < height))
    column[outside] = row[outside] = 0
    moved = mask[row.astype(np.int32), column.astype(np.int32)]
    moved[outside] = 0
    return moved


def warp_boxes(boxes: ArrayLike, field: Field) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return tight boxes around what the content of each box has become.

    Every pixel shows a unit square of the clean image around its source coordinates. Its part inside a box, moved
    to the pixel, belongs to the box's content; the result is the smallest box around all such parts. A field of
    zero displacement therefore returns the boxes, a shift by 0.3 px boxes shifted by 0.3 px, and a field that tears
    content apart boxes around all pieces. Content of the box that is not the object's counts too, so that under
    uneven fields the result can be wider than the object.

    Args:
        boxes: N×4 (x1, y1, x2, y2) in pixels, along pixel edges.
        field: H×W×2, source coordinates (x, y) in pixels.

    Returns:
        float64 N×4, within the image, without NaN; and bool N, False where nothing of the box is left to see (or
        it had no area in the image to begin with), in which case the box has zero area, at its old place.

    Raises:
        InputError: not N×4, not finite, or a field of another shape.
    """
    height, width = _size(field)
    given = np.asarray(boxes, np.float64)
    if given.size == 0:
        return np.zeros((0, 4)), np.zeros(0, np.bool_)
    if given.ndim != 2 or given.shape[1] != 4 or not np.isfinite(given).all():
        raise InputError(f"Boxes are finite numbers N×4 (x1, y1, x2, y2); got the shape {given.shape}.")
    given = np.clip(given, 0, [width, height, width, height])
    reach_x = float(np.abs(field[:, :, 0] - np.arange(width, dtype=np.float32)).max()) + 2
    reach_y = float(np.abs(field[:, :, 1] - np.arange(height, dtype=np.float32)[:, None]).max()) + 2
    moved, visible = given[:, [0, 1, 0, 1]], np.zeros(len(given), np.bool_)
    for index, (x1, y1, x2, y2) in enumerate(given):
        if x1 >= x2 or y1 >= y2:
            continue
        left, top = max(0, int(x1 - reach_x)), max(0, int(y1 - reach_y))
        part = field[top : int(min(height, y2 + reach_y)), left : int(min(width, x2 + reach_x))]
        shows = (part[:, :, 0] > x1 - 1) & (part[:, :, 0] < x2) & (part[:, :, 1] > y1 - 1) & (part[:, :, 1] < y2)
        row, column = np.nonzero(shows)
        if row.size == 0:
            continue
        source = part[shows].astype(np.float64)
        corner = np.stack([column + left, row + top], axis=1)
        low = (corner + np.maximum(0, [x1, y1] - source)).min(axis=0)
        high = (corner + np.minimum(1, [x2, y2] - source)).max(axis=0)
        moved[index], visible[index] = (*low, *high), True
    return moved, visible


def warp_points(points: ArrayLike, field: Field) -> NDArray[np.float64]:
    """Return where points of the clean image lie in the degraded one, approximately.

    A field tells where content comes from; where it goes is found by the fixed-point iteration
    q ← p − d(q), with d the displacement field(q) − q, bilinear between pixels and constant beyond the border. It
    converges where d changes by less than one pixel per pixel, to far below a pixel. Where a field jumps (patches,
    jitter) there is no one answer: the iterate whose source is nearest to the point is returned.

    Args:
        points: N×2 (x, y) in pixels, along pixel edges.
        field: H×W×2, source coordinates (x, y) in pixels.

    Returns:
        float64 N×2; points may leave the image.

    Raises:
        InputError: not N×2, not finite, or a field of another shape.
    """
    _size(field)
    given = np.asarray(points, np.float64)
    if given.size == 0:
        return np.zeros((0, 2))
    if given.ndim != 2 or given.shape[1] != 2 or not np.isfinite(given).all():
        raise InputError(f"Points are finite numbers N×2 (x, y); got the shape {given.shape}.")
    target = given - 0.5
    place = best = target
    error = np.full(len(target), np.inf)
    for _ in range(_ITERATIONS):
        displacement = _displacement(field, place)
        miss = np.abs(place + displacement - target).max(axis=1)
        best = np.where((miss < error)[:, None], place, best)
        error = np.minimum(error, miss)
        place = target - displacement
    return np.asarray(best + 0.5, np.float64)


def warp_polygons(polygons: Sequence[ArrayLike], field: Field) -> list[NDArray[np.float64]]:
    """Return polygons whose vertices were moved by `warp_points`; edges stay straight.

    Args:
        polygons: arrays K×2 (x, y) in pixels, along pixel edges.
        field: H×W×2, source coordinates (x, y) in pixels.

    Raises:
        InputError: as `warp_points`.
    """
    return [warp_points(polygon, field) for polygon in polygons]


def _size(field: NDArray[Any]) -> tuple[int, int]:
    """Return a field's height and width."""
    if not isinstance(field, np.ndarray) or field.ndim != 3 or field.shape[2] != 2 or field.size == 0:
        raise InputError(f"A field is an array H×W×2 of source coordinates (x, y); got {np.shape(field)}.")
    return field.shape[0], field.shape[1]


def _displacement(field: Field, place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return field(q) − q at points (x, y), bilinear between pixels, constant beyond the border."""
    last = np.array([field.shape[1] - 1, field.shape[0] - 1])
    inside = np.clip(place, 0, last)
    low = np.floor(inside).astype(np.intp)
    high = np.minimum(low + 1, last)
    part_x, part_y = (inside - low).T[:, :, None]

    def at(x: NDArray[np.intp], y: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.asarray(field[y, x] - np.stack([x, y], axis=1), np.float64)

    above = (1 - part_x) * at(low[:, 0], low[:, 1]) + part_x * at(high[:, 0], low[:, 1])
    below = (1 - part_x) * at(low[:, 0], high[:, 1]) + part_x * at(high[:, 0], high[:, 1])
    return np.asarray((1 - part_y) * above + part_y * below, np.float64)
