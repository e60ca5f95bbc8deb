"""Scores of camouflage that compare the object's pixels with its surroundings: no detector, no species.

S_Rf and S_b are the perceptual scores of Lamdouar, Xie and Zisserman, "The Making and Breaking of Camouflage" (ICCV
2023), by their published code; their third, probabilistic score is not published in full and is not here. The
camouflage degree is the weight map of "Context-measure" (arXiv 2512.07076), by its published code. Higher is better
hidden in all of them.

Both rebuild the object out of 7×7 patches of its surroundings, on a grid of step 3. Lamdouar's code looks for the
nearest patch in an approximate index, so its results vary; here the nearest one is exact. The sums of squared
differences of 8-bit values stay below 2²⁴ (patches are shifted by 128), where float32 holds every whole number, so a
matrix product gives them without rounding, in whatever order it adds; equally near patches go to the first in reading
order. Time grows with object pixels × surrounding pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import ImageError, InputError
from ..types import Image, Mask, check_image
from .color import delta_e2000, lab

__all__ = [
    "CamouflageDegree",
    "PatchScore",
    "Trimap",
    "boundary_score",
    "camouflage_degree",
    "check_object",
    "combined_score",
    "reconstruction_fidelity",
    "surroundings",
    "trimap",
]

_SIDE, _STEP = 7, 3
_CHUNK = 1 << 23
"""Distances that are held at a time: 32 MB of float32."""

_Places: TypeAlias = NDArray[np.intp]
"""Upper left corners of patches: [N, 2], row and column."""


@dataclass(frozen=True, slots=True)
class PatchScore:
    """A score of one image.

    Attributes:
        score: in [0, 1], higher is better hidden; NaN where it is not defined.
        reason: why it is not defined, in words; None where it is.
    """

    score: float
    reason: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CamouflageDegree(PatchScore):
    """The camouflage degree of one image; `score` is its mean over the object pixels that were rebuilt.

    Attributes:
        degree: float64 H×W in [0, 1], of each pixel; 0 outside the object and where no patch reached.
        covered: share of the object's pixels that a patch reached, in [0, 1].
    """

    degree: NDArray[np.float64] | None = None
    covered: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Trimap:
    """An object without its border and with its surroundings' nearest part; between the two lies the boundary band.

    Attributes:
        inner: bool H×W, the eroded object.
        outer: bool H×W, the dilated object.
    """

    inner: Mask
    outer: Mask


def check_object(image: Image, mask: Mask) -> None:
    """Raise `ImageError` if an image and its object's mask do not fit, or the mask is empty."""
    check_image(image)
    if mask.dtype != np.bool_ or mask.shape != image.shape[:2]:
        raise ImageError(
            f"The mask must be bool with the image's size {image.shape[:2]}; got {mask.dtype} {mask.shape}."
        )
    if not mask.any():
        raise ImageError("The mask has no object pixel, so how well its object is hidden is not defined.")


def surroundings(mask: Mask) -> tuple[slice, slice]:
    """Return rows and columns of the object's bounding box with a quarter of its sides added all around.

    The margin is that of Lamdouar's `utils/crop.py`, but at least one pixel; the box ends at the image's border.

    Args:
        mask: bool H×W with at least one object pixel.
    """
    box = []
    for axis, size in ((1, mask.shape[0]), (0, mask.shape[1])):
        held = np.flatnonzero(mask.any(axis=axis))
        first, last = int(held[0]), int(held[-1])
        margin = max(1, (last - first) // 4)
        box.append(slice(max(0, first - margin), min(size, last + margin)))
    return box[0], box[1]


def trimap(mask: Mask) -> Trimap:
    """Return the object eroded to 70–80% of its area, and dilated by as much (Lamdouar's `utils/trimap.py`).

    Three erosions by a square whose side is the first of 1, 3, 5, …, 19 that gives such an area; 3 if none does.

    Args:
        mask: bool H×W with at least one object pixel.
    """
    bits = mask.astype(np.uint8)
    area = np.count_nonzero(mask)
    for side in (*range(1, 21, 2), 3):
        kernel = np.ones((side, side), np.uint8)
        inner = cv2.erode(bits, kernel, iterations=3)
        if 0.7 <= np.count_nonzero(inner) / area < 0.8:
            break
    return Trimap(inner.astype(bool), cv2.dilate(bits, kernel, iterations=3).astype(bool))


def reconstruction_fidelity(image: Image, mask: Mask) -> PatchScore:
    """Return S_Rf: the share of the eroded object whose color its surroundings can rebuild.

    The image is cropped to `surroundings`. A pixel counts if the absolute differences of its three channels from the
    rebuilt ones sum to less than a fifth of the sum of its channels; one that no patch covers does not.

    Args:
        image: uint8 H×W×3, RGB.
        mask: bool H×W.

    Raises:
        ImageError: the two do not fit, or the mask is empty.
    """
    check_object(image, mask)
    box = surroundings(mask)
    image, mask = image[box], mask[box]
    regions = trimap(mask)
    target, source = _places(regions.inner), _places(~regions.outer)
    reason = _no_patch(len(target), len(source))
    if reason:
        return PatchScore(math.nan, reason)
    found = source[_nearest(_patches(image, target), _patches(image, source))]
    total, count = _rebuild(image, target, found)
    true = image.astype(np.int64)
    close = 5 * np.abs(count[..., None] * true - total).sum(axis=2) < count * true.sum(axis=2)
    return PatchScore(float(np.count_nonzero(close & regions.inner) / np.count_nonzero(regions.inner)))


def boundary_score(contours: Mask, true_contours: Mask, mask: Mask) -> PatchScore:
    """Return S_b: one minus the macro F1 of contours found in the image against those of the object's mask.

    Only the band between the eroded and the dilated object counts. The authors find both kinds of contours with
    DexiNed, in the image and in the mask, both cropped to `surroundings`, and take values below 0.5 of its output, dark
    lines on white; no contour detector belongs to Crypsis. F1 is averaged over the classes, contour and not, that
    occur.

    Args:
        contours: bool H×W, found in the cropped image.
        true_contours: bool H×W, found in the cropped mask.
        mask: bool H×W, the cropped mask itself.

    Raises:
        ImageError: the three are not bool of one shape, or the mask is empty.
    """
    for given in (contours, true_contours, mask):
        if given.dtype != np.bool_ or given.shape != mask.shape or given.ndim != 2:
            raise ImageError(f"Contours and mask are bool arrays of one shape; got {given.dtype} {given.shape}.")
    if not mask.any():
        raise ImageError("The mask has no object pixel, so it has no boundary.")
    regions = trimap(mask)
    band = regions.outer & ~regions.inner
    if not band.any():
        return PatchScore(math.nan, "the object fills the image")
    found, true = contours[band], true_contours[band]
    scores = []
    for a, b in ((found, true), (~found, ~true)):
        size = np.count_nonzero(a) + np.count_nonzero(b)
        if size:
            scores.append(float(2 * np.count_nonzero(a & b) / size))
    return PatchScore(1 - sum(scores) / len(scores))


def combined_score(fidelity: float, boundary: float, *, alpha: float = 0.35) -> float:
    """Return S_α = (1 − α)·S_Rf + α·S_b; α in [0, 1], 0.35 in the authors' code."""
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha weighs two scores and lies in [0, 1]; got {alpha!r}.")
    return (1 - alpha) * fidelity + alpha * boundary


def camouflage_degree(image: Image, mask: Mask, *, gamma: float = 8.0, spatial: float = 20.0) -> CamouflageDegree:
    """Return the camouflage degree of Context-measure, pixel by pixel, and its mean.

    Patches of the object are replaced by the nearest of a ring around it (dilation by a square of 20 pixels, so about
    10 pixels wide), near in 8-bit L*a*b* and in place. With s = 1 − ΔE2000 / 100 of a pixel and what replaces it, its
    degree is (exp(γs) − 1) / (exp(γ) − 1). The published code compares pixels that no patch covers with black, which
    calls thin parts of a dark animal well hidden; here they have no degree, and `covered` says how many have one. It
    gives a map only: the mean is Crypsis's.

    Args:
        image: uint8 H×W×3, RGB.
        mask: bool H×W.
        gamma: γ, above 0.
        spatial: weight of standardized coordinates beside the 8-bit values, at least 0.

    Raises:
        ImageError: image and mask do not fit, or the mask is empty.
        InputError: γ or the weight is out of its range.
    """
    check_object(image, mask)
    if not (gamma > 0 and spatial >= 0 and math.isfinite(gamma + spatial)):
        raise InputError(f"gamma is above 0 and spatial at least 0; got {gamma!r} and {spatial!r}.")
    ring = cv2.dilate(mask.astype(np.uint8), np.ones((20, 20), np.uint8)).astype(bool) & ~mask
    target, source = _places(mask), _places(ring)
    reason = _no_patch(len(target), len(source))
    if reason:
        return CamouflageDegree(math.nan, reason)
    coded = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2LAB), np.uint8)
    every = np.concatenate([source, target]).astype(np.float64)
    deviation = every.std(axis=0)
    places = spatial * (every - every.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    near = _nearest(_patches(coded, target), _patches(coded, source), places[len(source) :], places[: len(source)])
    total, count = _rebuild(image, target, source[near])
    reached = (count > 0) & mask
    total, count = total[reached], count[reached][:, None]
    rebuilt = ((2 * total + count - 1) // (2 * count)).astype(np.uint8)  # halves down, as theirs come out
    likeness = 1 - np.minimum(delta_e2000(lab(rebuilt), lab(image[reached])) / 100, 1)
    degree = np.zeros(mask.shape)
    degree[reached] = np.expm1(gamma * likeness) / math.expm1(gamma)
    return CamouflageDegree(
        float(degree[reached].mean()), None, degree, float(np.count_nonzero(reached) / np.count_nonzero(mask))
    )


def _no_patch(targets: int, sources: int) -> str | None:
    if not targets:
        return f"the object is too thin for a patch of {_SIDE}×{_SIDE} pixels"
    return None if sources else f"the surroundings are too narrow for a patch of {_SIDE}×{_SIDE} pixels"


def _places(allowed: Mask) -> _Places:
    """Return the patches on the grid all of whose pixels are allowed."""
    if min(allowed.shape) < _SIDE:
        return np.empty((0, 2), np.intp)
    windows = np.lib.stride_tricks.sliding_window_view(allowed, (_SIDE, _SIDE))[::_STEP, ::_STEP]
    return np.argwhere(windows.all(axis=(2, 3))) * _STEP


def _patches(channels: NDArray[np.uint8], places: _Places) -> NDArray[np.float32]:
    """Return float32 [N, 147], each value less 128."""
    windows = np.lib.stride_tricks.sliding_window_view(channels, (_SIDE, _SIDE), axis=(0, 1))
    taken = windows[places[:, 0], places[:, 1]].reshape(len(places), -1)
    return np.asarray(taken, np.float32) - np.float32(128)


def _nearest(
    queries: NDArray[np.float32],
    keys: NDArray[np.float32],
    query_places: NDArray[np.float64] | None = None,
    key_places: NDArray[np.float64] | None = None,
) -> NDArray[np.intp]:
    """Return the nearest key of each query; the places' squared distance is added where they are given."""
    size = np.einsum("ij,ij->i", keys, keys)
    found = np.empty(len(queries), np.intp)
    step = max(1, _CHUNK // len(keys))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        distance = size - 2 * (queries[part] @ keys.T)  # short of the query's own size, which changes no order
        if query_places is not None and key_places is not None:
            apart = query_places[part, None] - key_places
            distance = distance + np.square(apart[..., 0]) + np.square(apart[..., 1])
        found[part] = distance.argmin(axis=1)
    return found


def _rebuild(image: Image, target: _Places, source: _Places) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Put the source patches at the targets: the sums of what came to lie on each pixel, and how many."""
    total, count = np.zeros(image.shape, np.int64), np.zeros(image.shape[:2], np.int64)
    for offset in np.ndindex(_SIDE, _SIDE):
        # at one offset no two patches share a pixel
        to, origin = target + offset, source + offset
        total[to[:, 0], to[:, 1]] += image[origin[:, 0], origin[:, 1]]
        count[to[:, 0], to[:, 1]] += 1
    return total, count
