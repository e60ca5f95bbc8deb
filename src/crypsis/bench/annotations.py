"""Object annotations of degraded images: moved along with the content, and written folder by folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..catalog.aligned import warp_boxes, warp_mask, warp_points, warp_polygons
from ..datasets.coco import decode_rle, encode_rle
from ..errors import DatasetError

__all__ = ["AnnotationWriter", "align_annotation"]

_DECIMALS = 3


def align_annotation(annotation: Mapping[str, Any], field: NDArray[np.float32]) -> dict[str, Any] | None:
    """Return a COCO annotation whose box, segmentation and keypoints moved along with the content.

    Run lengths are sampled; polygons and keypoints are mapped point by point (see
    `crypsis.catalog.aligned.warp_points`), polygon vertices that leave the image are put on its border. The box is
    that of the segmentation where there is one, else around what was in the box. `area` changes by the same factor
    as the segmentation's, or the box's. Coordinates are rounded to 0.001 px.

    Args:
        annotation: as in the file; it is not changed.
        field: H×W×2, source coordinates (x, y) in pixels.

    Returns:
        A new annotation with the same id, or None where nothing of it is left to see.

    Raises:
        DatasetError: a box, segmentation or keypoints that are not of COCO's form, or a box without area.
    """
    where = f"annotation {annotation.get('id')!r}"
    moved = dict(annotation)
    height, width = field.shape[:2]
    factor: float | None = None
    corners: NDArray[np.float64] | None = None
    if "bbox" in annotation:
        x, y, w, h = _numbers(annotation["bbox"], f"{where}: bbox", 4)
        if w <= 0 or h <= 0:
            raise DatasetError(f"{where}: bbox has no area.")
        boxes, visible = warp_boxes([[x, y, x + w, y + h]], field)
        if not visible[0]:
            return None
        corners = boxes[0]
        factor = _extent(corners) / (w * h)
    segmentation = annotation.get("segmentation")
    if isinstance(segmentation, Mapping):
        try:
            before = decode_rle(segmentation, height, width)
        except DatasetError as error:
            raise DatasetError(f"{where}: {error}") from error
        after = warp_mask(before, field)
        if not after.any():
            return None
        moved["segmentation"] = encode_rle(after, compressed=isinstance(segmentation["counts"], str))
        rows, columns = np.flatnonzero(after.any(axis=1)), np.flatnonzero(after.any(axis=0))
        corners = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], np.float64)
        factor = float(after.sum() / before.sum())
    elif segmentation:
        polygons = _polygons(segmentation, f"{where}: segmentation")
        bent = [np.clip(p, 0, [width, height]) for p in warp_polygons(polygons, field)]
        vertices = np.concatenate(bent)
        corners = np.concatenate([vertices.min(axis=0), vertices.max(axis=0)])
        if _extent(corners) <= 0:
            return None
        moved["segmentation"] = [_rounded(polygon.ravel()) for polygon in bent]
        before_area = sum(map(_polygon_area, polygons))
        factor = sum(map(_polygon_area, bent)) / before_area if before_area else None
    if "bbox" in annotation and corners is not None:
        x1, y1, x2, y2 = corners.tolist()
        moved["bbox"] = _rounded([x1, y1, x2 - x1, y2 - y1])
    if factor is not None and isinstance(annotation.get("area"), int | float):
        moved["area"] = round(annotation["area"] * factor, _DECIMALS)
    if annotation.get("keypoints"):
        moved |= _keypoints(annotation["keypoints"], f"{where}: keypoints", field)
    return moved


def _extent(corners: NDArray[np.float64]) -> float:
    return float((corners[2] - corners[0]) * (corners[3] - corners[1]))


def _polygon_area(polygon: NDArray[np.float64]) -> float:
    x, y = polygon.T
    return float(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2)


def _rounded(values: Sequence[float] | NDArray[np.float64]) -> list[float]:
    return [round(float(value), _DECIMALS) for value in values]


def _numbers(values: Any, where: str, count: int | None = None) -> NDArray[np.float64]:
    good = isinstance(values, list) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if not good or (count is not None and len(values) != count) or not np.isfinite(values).all():
        raise DatasetError(f"{where} must be {count or 'some'} finite numbers; got {str(values)[:60]}.")
    return np.asarray(values, np.float64)


def _polygons(segmentation: Any, where: str) -> list[NDArray[np.float64]]:
    polygons = []
    for values in segmentation if isinstance(segmentation, list) else [segmentation]:
        flat = _numbers(values, where)
        if flat.size < 6 or flat.size % 2:
            raise DatasetError(f"{where}: a polygon has at least three points x, y; got {flat.size} numbers.")
        polygons.append(flat.reshape(-1, 2))
    return polygons


def _keypoints(values: Any, where: str, field: NDArray[np.float32]) -> dict[str, Any]:
    flat = _numbers(values, where)
    if flat.size % 3:
        raise DatasetError(f"{where} must be triples x, y, v; got {flat.size} numbers.")
    points = flat.reshape(-1, 3).copy()
    labeled = points[:, 2] > 0
    points[labeled, :2] = warp_points(points[labeled, :2], field)
    height, width = field.shape[:2]
    outside = labeled & ((points[:, :2] < 0) | (points[:, :2] > [width, height])).any(axis=1)
    points[outside] = 0  # as COCO writes what is not labeled
    written = [value for x, y, v in points.tolist() for value in (round(x, _DECIMALS), round(y, _DECIMALS), int(v))]
    return {"keypoints": written, "num_keypoints": int((points[:, 2] > 0).sum())}


class AnnotationWriter:
    """Writes one annotation file as a stream: annotations as they come, the images at the end.

    Args:
        file: an open text file.
        rest: everything of the source file but images and annotations.
    """

    def __init__(self, file: IO[str], rest: Mapping[str, Any]) -> None:
        self.file = file
        self.separator = ""
        file.write("{" + "".join(f"{json.dumps(name)}: {json.dumps(value)}, " for name, value in rest.items()))
        file.write('"annotations": [')

    def add(self, annotations: Sequence[str]) -> None:
        """Append annotations that are JSON already."""
        for text in annotations:
            self.file.write(f"{self.separator}{text}")
            self.separator = ", "

    def close(self, images: Sequence[Mapping[str, Any]], note: Mapping[str, Any]) -> None:
        """Write the images and what was done, as `crypsis`, and end the object."""
        self.file.write(f'], "images": {json.dumps(images)}, "crypsis": {json.dumps(note)}}}\n')
