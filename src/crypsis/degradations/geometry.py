"""Pixels in the wrong place."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import cv2
import numpy as np
import PIL.Image
from numpy.typing import NDArray

from ..errors import ImageError, InputError
from ..types import Image
from .bands import bands
from .rounding import floor_to_uint8

__all__ = [
    "box_pixelate",
    "displaced_patches",
    "displaced_patches_field",
    "elastic_field",
    "elastic_transform",
    "jitter",
    "jitter_field",
    "nearest_resample",
    "nearest_resample_field",
]

_MAX_SIDE = 32766  # cv2.remap's own limit


def _grid(height: int, width: int) -> NDArray[np.float32]:
    """Return each pixel's own coordinates (x, y), float32 H×W×2."""
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    return np.stack([x, y], axis=2)


_PASSES = 5  # how often jitter moves the pixels
_STEPS = 32  # places between two pixels at which cv2.remap interpolates


@lru_cache(maxsize=8)
def _displacements(sigma: float) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
    """For every 16-bit word: whole pixels (x, y) as two int16 in one int32, and cv2.remap's code of the fractions.

    Each byte of the word is one normal number, of 256 equally likely ones, scaled to standard deviation 1.
    """
    inverse = NormalDist().inv_cdf
    upper = np.array([inverse((i + 0.5) / 256) for i in range(128, 256)])
    normal = np.concatenate([-upper[::-1], upper]) / np.sqrt(np.mean(upper**2))
    steps = np.rint(_STEPS * sigma * normal).astype(np.int16)
    word = np.arange(65536)
    dx, dy = steps[word & 255], steps[word >> 8]
    whole = np.stack([dx // _STEPS, dy // _STEPS], axis=1).view(np.int32)[:, 0]
    return np.ascontiguousarray(whole), (dy % _STEPS * _STEPS + dx % _STEPS).astype(np.uint16)


def _scatter(array: NDArray[Any], *, sigma: float, rng: np.random.Generator) -> NDArray[Any]:
    """Sample `array` (H×W×C, uint8 or float32) five times in turn at normally displaced places."""
    if not 0 <= sigma <= 100:
        raise InputError(f"sigma is a standard deviation in pixels, from 0 to 100; got {sigma!r}.")
    height, width = array.shape[:2]
    if max(height, width) > _MAX_SIDE:
        raise ImageError(f"Pixels are moved in images with sides up to {_MAX_SIDE}; this one is {width}×{height}.")
    whole, fraction = _displacements(float(sigma))
    column, row = np.arange(width, dtype=np.int16), np.arange(height, dtype=np.int16)[:, None]
    source = np.ascontiguousarray(array)
    for _ in range(_PASSES):
        moved = np.empty_like(source)
        for rows in bands(height, width):
            words = rng.integers(0, 65536, size=(rows.stop - rows.start, width), dtype=np.uint16)
            place = whole.take(words, mode="wrap").view(np.int16).reshape(*words.shape, 2)
            place[:, :, 0] += column
            place[:, :, 1] += row[rows]
            codes = fraction.take(words, mode="wrap")
            part = cv2.remap(source, place, codes, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
            moved[rows] = part.reshape(moved[rows].shape)
        source = moved
    return source


def jitter(image: Image, *, sigma: float, rng: np.random.Generator) -> Image:
    """Displace every pixel at random, five times in turn.

    In each pass every pixel takes the bilinearly interpolated value at its own place plus N(0, σ) pixels in x and in
    y; beyond the border the edge pixel is repeated. The normal numbers are 256 equally likely ones (up to ±2.8 σ),
    rounded to 1/32 pixel. Over the five passes content is displaced by √5 σ along each axis and smoothed by each
    interpolation. Generators in the same state give the same displacements at every σ, only scaled.

    Args:
        image: uint8 H×W×3, RGB, sides up to 32 766.
        sigma: standard deviation of one pass in pixels, 0..100.
        rng: source of the displacements.

    Returns:
        The jittered image, as new memory.

    Raises:
        InputError: `sigma` is out of its range.
        ImageError: a side is longer than 32 766 pixels.
    """
    return np.asarray(_scatter(image, sigma=sigma, rng=rng), np.uint8)


def jitter_field(height: int, width: int, *, sigma: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return where the content of each pixel of `jitter`'s output comes from: the five passes, composed.

    Args:
        height: of the image, in pixels.
        width: of the image, in pixels.
        sigma: as in `jitter`.
        rng: a generator in the state that `jitter` was given.

    Returns:
        float32 H×W×2, source coordinates (x, y) in pixels.
    """
    return np.asarray(_scatter(_grid(height, width), sigma=sigma, rng=rng), np.float32)


def _copy_patches(array: NDArray[Any], *, patches: int, side: int, rng: np.random.Generator) -> NDArray[Any]:
    """Copy `patches` squares of `array` (H×W×C) a little aside, one after another, in a copy of it."""
    if patches < 0 or side < 1:
        raise InputError(f"Give 0 or more patches of 1 or more pixels a side; got {patches!r} of {side!r}.")
    result = np.array(array, order="C")
    length = np.array(result.shape[:2])
    size = np.minimum(side, length)
    margin = np.minimum(side, (length - size) // 2)
    draw = rng.random((patches, 4))
    start = np.rint(draw[:, :2] * (length - size - 2 * margin)).astype(np.intp) + margin
    reach = np.minimum(side / 2, margin)
    goal = np.rint(start + (2 * draw[:, 2:] - 1) * reach).astype(np.intp)
    for (y0, x0), (y1, x1) in zip(start.tolist(), goal.tolist(), strict=True):
        step = y1 - y0 if y1 > y0 else side  # so many rows can be copied before one is read that was written
        for row in range(0, size[0], step):
            rows = min(step, size[0] - row)
            part = result[y0 + row : y0 + row + rows, x0 : x0 + size[1]].copy()
            result[y1 + row : y1 + row + rows, x1 : x1 + size[1]] = part
    return result


def displaced_patches(image: Image, *, patches: int, side: int = 16, rng: np.random.Generator) -> Image:
    """Copy small squares of the image a little aside, over what is there.

    Each is taken at least `side` pixels from the border and put up to side/2 pixels away along each axis; later
    ones see what earlier ones left. Rows are copied one by one from the top down, so a square that lands lower, on
    its own source, reads rows it has just written. In an image with less than three times `side` pixels along an
    axis the margin and, if need be, the reach and the patch shrink so that all stay inside. Generators in the same
    state give nested sets: fewer patches are the first of more.

    Args:
        image: uint8 H×W×3, RGB.
        patches: how many, ≥ 0.
        side: of a patch in pixels, ≥ 1.
        rng: source of the places.

    Returns:
        The changed image, as new memory.

    Raises:
        InputError: `patches` or `side` is out of its range.
    """
    return np.asarray(_copy_patches(image, patches=patches, side=side, rng=rng), np.uint8)


def displaced_patches_field(
    height: int, width: int, *, patches: int, side: int = 16, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return where each pixel of `displaced_patches`' output was copied from.

    Args:
        height: of the image, in pixels.
        width: of the image, in pixels.
        patches: as in `displaced_patches`.
        side: as in `displaced_patches`.
        rng: a generator in the state that `displaced_patches` was given.

    Returns:
        float32 H×W×2, source coordinates (x, y) in pixels, whole numbers.
    """
    return np.asarray(_copy_patches(_grid(height, width), patches=patches, side=side, rng=rng), np.float32)


def _nearest(length: int, scale: float) -> NDArray[np.intp]:
    """Return which of `length` samples each is replaced by when they are thinned to `scale` and repeated."""
    if not 0 < scale <= 1:
        raise InputError(f"scale is the size of the small image, more than 0 and up to 1; got {scale!r}.")
    fewer = max(1, int(length * scale))
    # Single precision, in which PyTorch finds the nearest sample; it decides where a quotient is almost whole.
    down = (np.arange(fewer, dtype=np.float32) * (np.float32(length) / np.float32(fewer))).astype(np.intp)
    up = (np.arange(length, dtype=np.float32) * (np.float32(fewer) / np.float32(length))).astype(np.intp)
    return np.minimum(down, length - 1)[np.minimum(up, fewer - 1)]


def nearest_resample(image: Image, *, scale: float) -> Image:
    """Shrink and enlarge by taking single samples: pixels become blocks of uneven size.

    Both times output i takes the sample at ⌊i·(input size / output size)⌋, PyTorch's "nearest", which is not
    centered: content drifts by up to a pixel of the small image to the right and down.

    Args:
        image: uint8 H×W×3, RGB.
        scale: size of the small image, more than 0 and up to 1; sides are rounded down, to 1 at least.

    Returns:
        The image of the same size, as new memory.

    Raises:
        InputError: `scale` is out of its range.
    """
    rows, columns = _nearest(image.shape[0], scale), _nearest(image.shape[1], scale)
    pixel = np.ascontiguousarray(image).view("V3")[:, :, 0]  # three bytes at once
    chosen, repeated = np.unique(rows, return_inverse=True)
    return pixel[chosen].take(columns, axis=1)[repeated][:, :, None].view(np.uint8)


def nearest_resample_field(height: int, width: int, *, scale: float) -> NDArray[np.float32]:
    """Return which pixel each pixel of `nearest_resample`'s output is a copy of.

    Args:
        height: of the image, in pixels.
        width: of the image, in pixels.
        scale: as in `nearest_resample`.

    Returns:
        float32 H×W×2, source coordinates (x, y) in pixels, whole numbers.
    """
    x, y = np.meshgrid(_nearest(width, scale), _nearest(height, scale))
    return np.stack([x, y], axis=2).astype(np.float32)


_FINE = 2.0  # cells; smooth noise is made on a grid so coarse that its sigma is about this, and interpolated


def _smooth_noise(
    height: int, width: int, *, most: float, sigma: tuple[float, float], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return noise, even within ±`most` at each pixel, averaged with a Gaussian of `sigma` (y, x) in pixels.

    The average mirrors at the border and ends at 3 σ. Where σ allows, it is made on a grid of cells of several
    pixels, whose noise has the variance of their mean, and interpolated.
    """
    cells = [max(1, int(s / _FINE)) for s in sigma]
    grid = [-(-side // cell) for side, cell in zip((height, width), cells, strict=True)]
    noise = rng.random(grid, dtype=np.float32)
    noise -= np.float32(0.5)
    noise *= np.float32(2 * most / math.sqrt(cells[0] * cells[1]))
    down, across = (
        cv2.getGaussianKernel(2 * int(3 * s / cell + 0.5) + 1, max(s / cell, 1e-3), cv2.CV_32F)
        for s, cell in zip(sigma, cells, strict=True)
    )
    smooth = cv2.sepFilter2D(noise, -1, across, down, borderType=cv2.BORDER_REFLECT)
    size = grid[1] * cells[1], grid[0] * cells[0]
    return np.asarray(cv2.resize(smooth, size, interpolation=cv2.INTER_CUBIC)[:height, :width], np.float32)


def _elastic(
    height: int, width: int, alpha: float, amplitude: float, smoothness: float, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the displacements of `elastic_transform` in x and in y, float32 H×W each."""
    sigma, most = (smoothness * height, smoothness * width), alpha * amplitude * height
    x = _smooth_noise(height, width, most=most, sigma=sigma, rng=rng)
    return x, _smooth_noise(height, width, most=most, sigma=sigma, rng=rng)


def elastic_field(
    height: int,
    width: int,
    *,
    alpha: float,
    amplitude: float = 0.005,
    smoothness: float = 0.01,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Return where each pixel of `elastic_transform`'s output comes from; mirrored where that is beyond the border.

    Args:
        height: of the image, in pixels.
        width: of the image, in pixels.
        alpha: as in `elastic_transform`.
        amplitude: as in `elastic_transform`.
        smoothness: as in `elastic_transform`.
        rng: a generator in the state that `elastic_transform` was given.

    Returns:
        float32 H×W×2, source coordinates (x, y) in pixels.
    """
    field = _grid(height, width)
    x, y = _elastic(height, width, alpha, amplitude, smoothness, rng)
    for axis, (shift, side) in enumerate(((x, width), (y, height))):
        place = field[:, :, axis]
        place += shift
        # BORDER_REFLECT: the image goes on behind its edge as in a mirror that stands half a pixel outside
        place[:] = np.abs((place + np.float32(0.5 + side)) % (2 * side) - side) - np.float32(0.5)
    return field


def elastic_transform(
    image: Image, *, alpha: float, amplitude: float = 0.005, smoothness: float = 0.01, rng: np.random.Generator
) -> Image:
    """Warp smoothly at random, as in ImageNet-C for images of any size.

    Each pixel takes the bilinearly interpolated value at its own place plus a displacement. In x and in y it is
    noise even within ±amplitude·H, averaged with a Gaussian of σ smoothness·H in y and smoothness·W in x (up to
    3 σ, mirrored at the border), times alpha. Both axes go with the height, so a picture and its quarter turn are
    not warped alike. Beyond the border the image is mirrored.

    Args:
        image: uint8 H×W×3, RGB, sides up to 32 766.
        alpha: factor on the averaged noise, ≥ 0.
        amplitude: largest noise, as a share of the height.
        smoothness: standard deviation of the average, as a share of each side.
        rng: source of the displacements.

    Returns:
        The warped image, as new memory; rounded down.

    Raises:
        InputError: a parameter is out of its range.
        ImageError: a side is too long.
    """
    if not (0 <= alpha < np.inf and 0 <= amplitude <= 1 and 0 <= smoothness <= 1):
        raise InputError(
            f"alpha is 0 or more, amplitude and smoothness are shares of a side; got {alpha!r}, {amplitude!r}, "
            f"{smoothness!r}."
        )
    height, width = image.shape[:2]
    if max(height, width) > _MAX_SIDE:
        raise ImageError(f"Pixels are moved in images with sides up to {_MAX_SIDE}; this one is {width}×{height}.")
    x, y = _elastic(height, width, alpha, amplitude, smoothness, rng)
    reach = 2 + math.ceil(max(-float(y.min()), float(y.max())))
    column, row = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)[:, None]
    warped = np.empty(image.shape, np.uint8)
    for rows in bands(height, width, pixels=1 << 15):
        top = max(0, rows.start - reach)
        source = image[top : rows.stop + reach].astype(np.float32)
        places = x[rows] + column, y[rows] + (row[rows] - np.float32(top))
        part = cv2.remap(source, *places, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
        warped[rows] = floor_to_uint8(np.asarray(part, np.float32)).reshape(warped[rows].shape)
    return warped


def box_pixelate(image: Image, *, scale: float) -> Image:
    """Shrink by averaging boxes of pixels and enlarge by repeating: Pillow's BOX, then its NEAREST.

    Args:
        image: uint8 H×W×3, RGB.
        scale: size of the small image, more than 0 and up to 1; sides are rounded down, to 1 at least.

    Returns:
        The blocky image, as new memory.

    Raises:
        InputError: `scale` is out of its range.
    """
    if not 0 < scale <= 1:
        raise InputError(f"scale is the size of the small image, more than 0 and up to 1; got {scale!r}.")
    height, width = image.shape[:2]
    size = max(1, int(width * scale)), max(1, int(height * scale))
    small = np.asarray(PIL.Image.fromarray(image).resize(size, PIL.Image.Resampling.BOX))
    # Pillow adds up the step from one sample to the next, and so do we: which sample a tie takes depends on it
    columns, rows = (
        np.cumsum(np.r_[0.5 * few / side, np.full(side - 1, few / side)]).astype(np.intp)
        for side, few in zip((width, height), size, strict=True)
    )
    pixel = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2RGBA), np.uint8).view(np.uint32)[:, :, 0]  # moves as one
    wide = pixel.take(columns, axis=1, mode="wrap").view(np.uint8).reshape(size[1], width, 4)
    return np.asarray(cv2.cvtColor(wide, cv2.COLOR_RGBA2RGB), np.uint8)[rows]
