"""How well an outline is traced: F1 of boundary pixels within a tolerance.

There is no agreed boundary F1 (DAVIS, bfscore, BSDS and Boundary IoU all differ), so mode, radius and tolerance are
explicit. The default, a thin morphological boundary matched within 3 px at 384×384, is the variant whose values
lie where the COD10K-C paper's do (.43 to .48 at Dice .69 to .72); the paper names none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, UnknownNameError
from ..types import Mask
from .distance import squared_distance

if TYPE_CHECKING:
    from .truth import MaskTruth

__all__ = ["MODES", "BoundaryTruth", "boundary_f1", "boundary_of", "default_tolerance"]

MODES = ("morphological", "inner")
"""`morphological`: dilation − erosion, a band on both sides; `inner`: mask − erosion, the object's own edge."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryTruth:
    """The boundary of a true mask, in the part of the image that is within the tolerance's reach of it.

    Attributes:
        window: rows and columns of that part.
        line: uint8, window-sized, 1 on the boundary.
        count: number of boundary pixels.
        zone: uint8, window-sized, 1 within the tolerance of the boundary.
        tolerance: pixels.
    """

    window: tuple[slice, slice]
    line: NDArray[np.uint8]
    count: int
    zone: NDArray[np.uint8]
    tolerance: float

    @classmethod
    def of(cls, mask: Mask, *, mode: str, radius: int, tolerance: float) -> BoundaryTruth:
        """Trace `mask`; see `boundary_f1` for the arguments."""
        line = boundary_of(mask, mode=mode, radius=radius)
        left, top, width, height = cv2.boundingRect(line)
        reach = math.floor(tolerance)
        rows, columns = (
            slice(max(top - reach, 0), top + height + reach),
            slice(max(left - reach, 0), left + width + reach),
        )
        line = np.ascontiguousarray(line[rows, columns])
        return cls((rows, columns), line, int(np.count_nonzero(line)), _within(line, tolerance), tolerance)


def default_tolerance(shape: tuple[int, ...]) -> int:
    """0.6 % of the diagonal of an H×W image, rounded to whole pixels, at least 1; 3 px at 352² and at 384²."""
    return max(1, round(0.006 * math.hypot(*shape)))


def boundary_of(mask: Mask, *, mode: str = "morphological", radius: int = 1) -> NDArray[np.uint8]:
    """Return the boundary of a bool H×W mask as uint8 0/1; outside the image is background.

    An object cut by the frame has a boundary along the frame.

    Raises:
        UnknownNameError: if `mode` is not in `MODES`.
        InputError: if `radius` is below 1.
    """
    if mode not in MODES:
        raise UnknownNameError.among("boundary mode", mode, MODES)
    if radius < 1:
        raise InputError(f"A boundary radius is a whole number of pixels, 1 or more; got {radius}.")
    bits = np.ascontiguousarray(mask).view(np.uint8)
    square = np.ones((2 * radius + 1, 2 * radius + 1), np.uint8)
    # OpenCV's own default border would leave an object without a boundary along the frame
    core = cv2.erode(bits, square, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    hull = bits if mode == "inner" else cv2.dilate(bits, square, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return np.asarray(hull - core, np.uint8)


def _within(line: NDArray[np.uint8], tolerance: float) -> NDArray[np.uint8]:
    """Return uint8 0/1: pixels no further than `tolerance` (Euclidean, px) from a pixel of `line`."""
    if not line.any():
        return np.zeros_like(line)
    return (squared_distance(line) <= tolerance * tolerance).view(np.uint8)


def boundary_f1(
    predicted: Mask,
    truth: MaskTruth,
    *,
    mode: str = "morphological",
    radius: int = 1,
    tolerance: float | None = None,
) -> float:
    """F1 of boundary precision and recall, in [0, 1].

    Precision is the share of predicted boundary pixels within the tolerance of a true one, recall the share of
    true ones within the tolerance of a predicted one. Two masks without boundary (both empty) score 1, one
    without 0.

    Args:
        predicted: bool H×W, the binarized prediction.
        truth: the mask, of the same size.
        mode: one of `MODES`.
        radius: pixels; the structuring element is a (2·radius + 1)² square.
        tolerance: Euclidean distance in pixels; `default_tolerance` of the size if None.

    Raises:
        UnknownNameError: if `mode` is not in `MODES`.
        InputError: if `radius` is below 1 or `tolerance` negative or not finite.
    """
    true = truth.boundary(mode=mode, radius=radius, tolerance=tolerance)
    line = boundary_of(predicted, mode=mode, radius=radius)
    count = int(np.count_nonzero(line))
    if count == 0 or true.count == 0:
        return float(count == true.count)
    # a predicted pixel outside the window is beyond the tolerance of every true one
    near = np.ascontiguousarray(line[true.window])
    hits = int(np.count_nonzero(near & true.zone))
    found = int(np.count_nonzero(_within(near, true.tolerance) & true.line))
    if hits == 0 or found == 0:
        return 0.0
    precision, recall = hits / count, found / true.count
    return 2 * precision * recall / (precision + recall)
