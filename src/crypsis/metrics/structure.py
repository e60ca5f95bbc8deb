"""Scores that look at structure: S-measure, E-measure, weighted F-measure.

Values agree with PySODMetrics 1.6.2 (and through it with the authors' Matlab code) except where that gives NaN or
divides by N − 1 = 0; the docstrings say what is defined there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..types import Mask
from .distance import squared_distance

if TYPE_CHECKING:
    from .truth import MaskTruth

__all__ = ["ErrorWeights", "Quadrants", "e_measure", "s_measure", "weighted_f"]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Quadrants:
    """The four parts of an image around the centroid of its object.

    Attributes:
        blocks: the parts that have pixels, as (rows, columns); one has none when the centroid is in the last
            row or column.
        foreground: object pixels of each block.
        member: intp, for each object pixel in row-major order the index of its block.
    """

    blocks: tuple[tuple[slice, slice], ...]
    foreground: tuple[int, ...]
    member: NDArray[np.intp]

    @classmethod
    def of(cls, mask: Mask) -> Quadrants:
        """Cut a mask that has at least one object pixel below and right of its centroid, rounded half to even."""
        height, width = mask.shape
        rows, columns = np.nonzero(mask)
        row, column = round(float(rows.mean())) + 1, round(float(columns.mean())) + 1
        member = 2 * (rows >= row) + (columns >= column)
        blocks = (
            (slice(0, row), slice(0, column)),
            (slice(0, row), slice(column, width)),
            (slice(row, height), slice(0, column)),
            (slice(row, height), slice(column, width)),
        )
        counts = np.bincount(member, minlength=4)
        return cls(blocks, tuple(int(count) for count in counts), member)


def s_measure(probability: NDArray[np.floating[Any]], truth: MaskTruth) -> float:
    """Structure measure ½·S_object + ½·S_region, in [0, 1] (Fan et al., ICCV 2017).

    A quadrant without pixels (the object's centroid in the last row or column) has no weight; PySODMetrics and the
    Matlab original give NaN there. A quadrant of one class scores 1 if the map is constant in it, 0 if not. An
    empty mask scores 1 − mean p, a full one mean p.

    Args:
        probability: float H×W in [0, 1].
        truth: the mask, of the same size.
    """
    p = probability.astype(np.float64, copy=False)
    total = float(p.sum())
    if truth.foreground in (0, truth.pixels):
        mean = total / truth.pixels
        return mean if truth.foreground else 1 - mean
    inside = p.ravel()[truth.object_index]
    squares = inside * inside
    outside = truth.pixels - truth.foreground
    share = truth.foreground / truth.pixels

    quadrants = truth.quadrants
    inside_sums = np.bincount(quadrants.member, weights=inside, minlength=4)
    region = all_squares = 0.0
    for block, count, inside_sum in zip(quadrants.blocks, quadrants.foreground, inside_sums, strict=True):
        part = p[block]
        if part.size == 0:
            continue
        square_sum = float(np.einsum("ij,ij->", part, part))
        all_squares += square_sum
        score = _similarity(part, square_sum, count, float(inside_sum))
        region += score * part.size / truth.pixels

    inside_sum = float(inside.sum())
    inside_mean, outside_mean = inside_sum / truth.foreground, (total - inside_sum) / outside
    inside_spread = _spread(inside_sum, float(squares.sum()), truth.foreground)
    outside_spread = _spread(total - inside_sum, all_squares - float(squares.sum()), outside)
    objects = share * _uniformity(inside_mean, inside_spread)
    objects += (1 - share) * _uniformity(1 - outside_mean, outside_spread)
    return min(max(0.5 * objects + 0.5 * region, 0.0), 1.0)


def _spread(total: float, squares: float, count: int) -> float:
    """Sample standard deviation from sums; 0 for one value."""
    return math.sqrt(max(squares - total * total / count, 0.0) / max(count - 1, 1))


def _uniformity(mean: float, spread: float) -> float:
    return 2 * mean / (mean * mean + 1 + spread + _EPS)


def _similarity(part: NDArray[np.float64], squares: float, foreground: int, inside: float) -> float:
    """SSIM-like agreement of a block of the map with the mask's, from sums; in [−1, 1]."""
    count = part.size
    if foreground in (0, count):
        return float(part.min() == part.max())
    total = float(part.sum())
    x, y = total / count, foreground / count
    variances = max(squares - total * x, 0.0) + (foreground - foreground * y)
    covariance = inside - total * y
    return 4 * x * y * covariance / (count - 1) / ((x * x + y * y) * variances / (count - 1) + _EPS)


def e_measure(tp: Any, fp: Any, foreground: Any, pixels: Any) -> Any:
    """Enhanced-alignment measure of a binary map, from counts (Fan et al., IJCAI 2018).

    The sum over pixels is divided by N − 1 as in the authors' code, so that a perfect map scores N / (N − 1),
    slightly above 1; an image of one pixel is divided by 1. An empty mask scores the share of pixels left out, a
    full one the share of pixels marked.

    Args:
        tp: true positives, int or array.
        fp: false positives, like `tp`.
        foreground: object pixels of the mask, int or array that broadcasts against `tp`.
        pixels: pixels of the image, like `foreground`.
    """
    marked = tp + fp
    p, g = marked / pixels, foreground / pixels
    total: Any = 0.0
    for count, a, b in (
        (tp, 1 - p, 1 - g),
        (fp, 1 - p, -g),
        (foreground - tp, -p, 1 - g),
        (pixels - foreground - fp, -p, -g),
    ):
        alignment = 2 * a * b / (a * a + b * b + _EPS)
        total = total + count * (alignment + 1) ** 2 / 4
    total = np.where(foreground == 0, pixels - marked, np.where(foreground == pixels, marked, total))
    return total / np.maximum(pixels - 1, 1)


_REACH = 3
_SIGMA = 5.0
_GAUSSIAN = np.exp(-(np.arange(-_REACH, _REACH + 1) ** 2) / (2 * _SIGMA**2))
_GAUSSIAN /= _GAUSSIAN.sum()

# An object pixel lies within 3 rows and columns of every background pixel that the 7×7 window can meet, so the
# nearest one is at most √18 away. In this order the first hit is the one scipy's feature transform picks: the
# nearest, then the leftmost, then the topmost.
_NEAR = sorted(
    (dy * dy + dx * dx, dx, dy)
    for dx in range(-4, 5)
    for dy in range(-4, 5)
    if 0 < dy * dy + dx * dx <= 2 * _REACH * _REACH
)
_PAD = 4


@dataclass(frozen=True, slots=True, eq=False)
class ErrorWeights:
    """What the weighted F-measure needs of a mask.

    Attributes:
        background: float64[N], row-major: 2 − 0.5^(d/5) with d the exact Euclidean distance in pixels to the
            object, and 0 on the object.
        shape: size of the part of the image that holds the object and 3 pixels around it.
        object: intp, position in that part of each object pixel, row-major.
        ring: intp, position in that part of each background pixel within 3 rows and columns of the object.
        source: intp, for each pixel of the ring the number (row-major) of its nearest object pixel.
    """

    background: NDArray[np.float64]
    shape: tuple[int, int]
    object: NDArray[np.intp]
    ring: NDArray[np.intp]
    source: NDArray[np.intp]

    @classmethod
    def of(cls, mask: Mask) -> ErrorWeights:
        """Measure a mask that has at least one object pixel; exact, and linear in the pixels."""
        bits = mask.view(np.uint8)
        background = np.sqrt(squared_distance(bits), dtype=np.float64)
        background *= math.log(0.5) / 5
        np.exp(background, out=background)
        np.subtract(2.0, background, out=background)
        background[mask] = 0.0

        left, top, width, height = cv2.boundingRect(bits)
        rows = slice(max(top - _REACH, 0), min(top + height + _REACH, mask.shape[0]))
        columns = slice(max(left - _REACH, 0), min(left + width + _REACH, mask.shape[1]))
        part = np.ascontiguousarray(bits[rows, columns])
        window = np.ones((2 * _REACH + 1, 2 * _REACH + 1), np.uint8)
        spread = cv2.dilate(part, window, borderType=cv2.BORDER_CONSTANT, borderValue=0)
        inside, ring = np.flatnonzero(part), np.flatnonzero(spread - part)

        stride = part.shape[1] + 2 * _PAD
        number = np.full((part.shape[0] + 2 * _PAD) * stride, -1, np.intp)
        number[_padded(inside, part.shape[1], stride)] = np.arange(inside.size)
        place, left_over = _padded(ring, part.shape[1], stride), np.arange(ring.size)
        source = np.empty(ring.size, np.intp)
        for _, dx, dy in _NEAR:
            candidate = number[place[left_over] + (dy * stride + dx)]
            hit = candidate >= 0
            source[left_over[hit]] = candidate[hit]
            left_over = left_over[~hit]
        return cls(background.ravel(), (part.shape[0], part.shape[1]), inside, ring, source)


def _padded(index: NDArray[np.intp], width: int, stride: int) -> NDArray[np.intp]:
    """Move row-major positions from rows of `width` to the middle of padded rows of `stride`."""
    row, column = np.divmod(index, width)
    return (row + _PAD) * stride + column + _PAD


def weighted_f(probability: NDArray[np.floating[Any]], truth: MaskTruth) -> float:
    """Weighted F-measure with β² = 1, in [0, 1] (Margolin et al., CVPR 2014).

    Errors are spread by a 7×7 Gaussian of σ = 5 px before they count inside the object, and weigh up to twice far
    from it outside. An empty mask scores 0 whatever is predicted, as in PySODMetrics.

    Args:
        probability: float H×W in [0, 1].
        truth: the mask, of the same size.
    """
    if truth.foreground == 0:
        return 0.0
    weights = truth.error_weights
    p = probability.astype(np.float64, copy=False).ravel()
    error = 1 - p[truth.object_index]
    field = np.zeros(weights.shape)
    field.ravel()[weights.object] = error
    field.ravel()[weights.ring] = error[weights.source]
    smooth = cv2.sepFilter2D(field, cv2.CV_64F, _GAUSSIAN, _GAUSSIAN, borderType=cv2.BORDER_CONSTANT)
    missed = float(np.minimum(error, np.asarray(smooth).ravel()[weights.object]).sum())
    invented = float(np.dot(p, weights.background))
    found = max(truth.foreground - missed, 0.0)
    recall, precision = found / truth.foreground, found / (found + invented + _EPS)
    return 2 * recall * precision / (recall + precision + _EPS)
