"""Wrong colors."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Image
from .bands import bands
from .colorspace import compressed_xyz, linear_words, srgb_of_words
from .rounding import floor_to_uint8

__all__ = [
    "color_shift",
    "color_shift_field",
    "color_veil",
    "gray_world",
    "hsv_saturation",
    "lab_chroma",
    "lab_diffusion",
    "saturate",
]


@lru_cache(maxsize=1)
def _floor_of_words() -> NDArray[np.uint8]:
    """The gray level of each word of linear light, rounded down."""
    return np.floor(255 * srgb_of_words() + 1e-9).astype(np.uint8)


def hsv_saturation(image: Image, *, factor: float) -> Image:
    """Multiply the saturation of HSV, with hue and value kept: every channel c becomes V − factor·(V − c), clipped.

    V is the largest of the three channels. The result is not limited to saturations up to 1: a negative factor
    turns colors into their complements, lighter than V.

    Args:
        image: uint8 H×W×3, RGB.
        factor: 1 changes nothing, 0 leaves gray of level V.

    Returns:
        The changed image, as new memory; rounded to nearest.

    Raises:
        InputError: `factor` is not finite.
    """
    if not np.isfinite(factor):
        raise InputError(f"factor is a finite multiplier; got {factor!r}.")
    changed = np.empty(image.shape, np.uint8)
    for rows in bands(*image.shape[:2]):
        part = np.ascontiguousarray(image[rows])
        red, green, blue = cv2.split(part)
        value = cv2.max(cv2.max(red, green), blue)
        changed[rows] = cv2.addWeighted(part, factor, cv2.merge([value, value, value]), 1 - factor, 0)
    return changed


def lab_chroma(image: Image, *, factor: float, swapped: bool = False) -> Image:
    """Multiply a* and b* of CIE L*a*b*, clip to the gamut and round down.

    Args:
        image: uint8 H×W×3, RGB.
        factor: ≥ 0; 1 changes nothing but rounding, which takes one level from about every second value.
        swapped: read red as blue and blue as red for the conversion to L*a*b*.

    Returns:
        The changed image, as new memory.

    Raises:
        InputError: `factor` is negative or not finite.
    """
    if not 0 <= factor < np.inf:
        raise InputError(f"factor is a multiplier, 0 or more; got {factor!r}.")
    spread = np.array([[factor, 1 - factor, 0], [0, 1, 0], [0, 1 - factor, factor]], np.float32)
    table = _floor_of_words()
    changed = np.empty(image.shape, np.uint8)
    for rows in bands(*image.shape[:2]):
        compressed: Any = cv2.transform(compressed_xyz(image[rows], swapped=swapped), spread)
        changed[rows] = table.take(linear_words(compressed, swapped=swapped), mode="wrap")
    return changed


def lab_diffusion(image: Image, *, factor: float, sigma: float, truncate: float = 2.0, swapped: bool = False) -> Image:
    """Blur a* and b* of CIE L*a*b* and multiply them: color bleeds over edges and is exaggerated.

    L* is kept. The blur is a Gaussian on ±⌈truncate·σ⌉ pixels, normalized; beyond the border the edge pixel is
    repeated. The result is clipped to the gamut and rounded down.

    Args:
        image: uint8 H×W×3, RGB.
        factor: on the blurred a* and b*, ≥ 0.
        sigma: standard deviation of the blur in pixels, > 0.
        truncate: reach of the blur in standard deviations, > 0.
        swapped: read red as blue and blue as red for the conversion to L*a*b*.

    Returns:
        The changed image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if not (0 <= factor < np.inf and 0 < sigma < np.inf and 0 < truncate < np.inf):
        raise InputError(
            f"lab_diffusion needs factor 0 or more and sigma and truncate above 0; got {factor!r}, {sigma!r}, "
            f"{truncate!r}."
        )
    height, width = image.shape[:2]
    light = np.empty((height, width), np.float32)
    chroma = np.empty((height, width, 2), np.float32)
    apart = np.array([[1, -1, 0], [0, -1, 1]], np.float32)
    for rows in bands(height, width):
        compressed = compressed_xyz(image[rows], swapped=swapped)
        light[rows] = compressed[:, :, 1]
        chroma[rows] = cv2.transform(compressed, apart).reshape(chroma[rows].shape)
    side = 2 * math.ceil(truncate * sigma) + 1
    blurred: Any = cv2.GaussianBlur(chroma, (side, side), sigma, borderType=cv2.BORDER_REPLICATE)
    chroma = blurred.reshape(chroma.shape)
    together = np.array([[factor, 1, 0], [0, 1, 0], [0, 1, factor]], np.float32)
    table = _floor_of_words()
    changed = np.empty(image.shape, np.uint8)
    for rows in bands(height, width):
        parts = cv2.merge([chroma[rows, :, 0], light[rows], chroma[rows, :, 1]])
        stretched: Any = cv2.transform(parts, together)
        changed[rows] = table.take(linear_words(stretched, swapped=swapped), mode="wrap")
    return changed


def _shift(amount: float, rng: np.random.Generator) -> tuple[int, int]:
    """Draw a direction down and to the right; return `amount` pixels that way, as whole pixels (y, x)."""
    if not 0 <= amount < np.inf:
        raise InputError(f"amount is a distance in pixels, 0 or more; got {amount!r}.")
    way = rng.random(2)
    down, right = np.rint(way / np.hypot(*way) * amount).astype(int).tolist()
    return down, right


def _moved_from(length: int, shift: int, other: int) -> NDArray[np.intp]:
    """Return which sample each of `length` shows after a shift, with the wrap-around described in `color_shift`."""
    padded = length + 2 * other
    return np.clip((np.arange(length) + other - shift) % padded - other, 0, length - 1)


def color_shift(image: Image, *, amount: float, rng: np.random.Generator) -> Image:
    """Shift the green channel down and to the right where there are edges: color fringes.

    The direction is that of a point drawn evenly from the unit square, the distance is rounded to whole pixels on
    each axis. The shifted channel is blended in with a weight: the gradient of the gray image, blurred with σ 4 on
    17×17 pixels, stretched to 0..1 over the image. Three defects of the published code are kept. Its border is as
    wide along one axis as the shift is along the other: where the shift is the larger, rows of the bottom or columns
    of the right come in at the top or at the left. Its clipping of the weight at two percentiles sets, instead,
    one weight of each row to 0 and another to 1: those whose columns equal the number of weights in the row below,
    and above, that of the first column. And it is always green, always to the right and down.

    Args:
        image: uint8 H×W×3, RGB.
        amount: distance in pixels, ≥ 0.
        rng: source of the direction.

    Returns:
        The changed image, as new memory; rounded to nearest.

    Raises:
        InputError: `amount` is negative or not finite.
    """
    down, right = _shift(amount, rng)
    height, width = image.shape[:2]
    gray = np.empty((height, width), np.float32)
    for rows in bands(height, width):
        gray[rows] = cv2.cvtColor(image[rows].astype(np.float32), cv2.COLOR_RGB2GRAY)
    steep = cv2.magnitude(
        cv2.Sobel(gray, cv2.CV_32F, 1, 0, ksize=1, borderType=cv2.BORDER_REPLICATE),
        cv2.Sobel(gray, cv2.CV_32F, 0, 1, ksize=1, borderType=cv2.BORDER_REPLICATE),
    )
    weight = np.asarray(cv2.GaussianBlur(steep, (17, 17), 4, borderType=cv2.BORDER_REPLICATE), np.float32)
    low, high = float(weight.min()), float(weight.max())
    if low < high:
        weight -= np.float32(low)
        weight *= np.float32(1 / (high - low))
    below, above = (weight < weight[:, :1]).sum(axis=1), (weight > weight[:, :1]).sum(axis=1)
    row = np.arange(height)
    weight[row, below] = 0
    weight[row, above] = 1
    changed = np.array(image, order="C")
    green = np.ascontiguousarray(changed[:, :, 1])
    moved = green[_moved_from(height, down, right)].take(_moved_from(width, right, down), axis=1)
    # in one type throughout: OpenCV 4 takes many times as long to add bytes to floats
    base = green.astype(np.float32)
    weight *= moved.astype(np.float32) - base
    weight += base
    changed[:, :, 1] = cv2.convertScaleAbs(np.maximum(weight, 0, out=weight))
    return changed


def color_shift_field(height: int, width: int, *, amount: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return where content of `color_shift`'s output comes from: its own place.

    Green moves, at edges, and red and blue stay: labels fit red and blue, and a mean over the channels would fit
    none. The row counts as moving content because of its green.

    Args:
        height: of the image, in pixels.
        width: of the image, in pixels.
        amount: as in `color_shift`.
        rng: a generator in the state that `color_shift` was given.

    Returns:
        float32 H×W×2, source coordinates (x, y) in pixels.
    """
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    return np.stack([x, y], axis=2).astype(np.float32)


def _each_channel(image: Image, levels: NDArray[np.float64]) -> Image:
    """Map red, green and blue by the columns of `levels`, 256×3, rounded down and clipped."""
    return np.asarray(cv2.LUT(image, np.clip(levels, 0, 255).astype(np.uint8).reshape(1, 256, 3)), np.uint8)


def color_veil(image: Image, *, color: tuple[int, int, int], alpha: float) -> Image:
    """Blend with one color: (1 − alpha)·x + alpha·color, rounded half up.

    Args:
        image: uint8 H×W×3, RGB.
        color: red, green and blue, 0..255.
        alpha: share of the color, 0..1.

    Returns:
        The tinted image, as new memory.

    Raises:
        InputError: `alpha` is not in [0, 1], or `color` not in 0..255.
    """
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha is a share from 0 to 1; got {alpha!r}.")
    if len(color) != 3 or not all(0 <= value <= 255 for value in color):
        raise InputError(f"color is red, green and blue from 0 to 255; got {color!r}.")
    blend = (1 - alpha) * np.arange(256)[:, None] + alpha * np.array(color)
    return _each_channel(image, blend + 0.5 + 1e-9)


def gray_world(image: Image, *, excess: float) -> Image:
    """Balance white by the gray-world rule, with the means of green and blue taken `excess` too high.

    Every channel is multiplied by g/m, rounded down and clipped, where m is its mean, for green and blue plus
    `excess`, and g a third of the sum of the three, cut to a whole number. With an excess of 0 the cast of the
    image's average is removed; more leaves the image too red. A channel that is black throughout stays black.

    Args:
        image: uint8 H×W×3, RGB.
        excess: gray levels, ≥ 0.

    Returns:
        The image with its new color balance, as new memory.

    Raises:
        InputError: `excess` is negative or not finite.
    """
    if not 0 <= excess < np.inf:
        raise InputError(f"excess is a number of gray levels, 0 or more; got {excess!r}.")
    means = np.add(cv2.mean(image)[:3], (0, excess, excess))
    gray = int(means.sum()) / 3
    gains = np.divide(gray, means, out=np.zeros(3), where=means > 0)
    return _each_channel(image, np.asarray(np.arange(256)[:, None] * gains + 1e-9, np.float64))


@lru_cache(maxsize=16)
def _stretch_of_saturation(factor: float, offset: float) -> NDArray[np.float32]:
    """Return new over old saturation in a pixel of largest channel V and smallest m, at 256·V + m.

    Where V = m there is no old one; it holds what V exceeds the other two channels by.
    """
    most, least = np.arange(256.0)[:, None], np.arange(256.0)
    old = np.divide(most - least, most, out=np.zeros((256, 256)), where=most > 0)
    new = np.clip(old * factor + offset, 0, 1)
    ratio: NDArray[np.float64] = np.divide(new, old, out=new * most, where=old > 0)
    return ratio.astype(np.float32).reshape(-1)


def saturate(image: Image, *, factor: float, offset: float) -> Image:
    """Change the saturation of HSV to factor·S + offset, clipped to 0..1, with hue and value kept.

    A channel c becomes V − r·(V − c), V being the largest of the three and r new over old saturation; the result
    is rounded down. Gray, which has no hue, counts as red: with an offset it turns red.

    Args:
        image: uint8 H×W×3, RGB.
        factor: on S, ≥ 0; 0 leaves gray (with no offset), 1 changes nothing.
        offset: added to S, 0..1.

    Returns:
        The changed image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if not (0 <= factor < np.inf and 0 <= offset <= 1):
        raise InputError(f"factor is 0 or more, offset from 0 to 1; got {factor!r} and {offset!r}.")
    table = _stretch_of_saturation(float(factor), float(offset))
    changed = np.empty(image.shape, np.uint8)
    for rows in bands(*image.shape[:2], pixels=1 << 15):
        part = np.ascontiguousarray(image[rows])
        red, green, blue = cv2.split(part)
        most = np.asarray(cv2.max(cv2.max(red, green), blue), np.uint8)
        least = np.asarray(cv2.min(cv2.min(red, green), blue), np.uint8)
        ratio = table.take((most.astype(np.uint16) << 8) | least, mode="wrap")
        gray = (most == least).view(np.uint8)
        value = cv2.merge([most, most, most])
        behind = cv2.add(cv2.subtract(value, part), cv2.merge([np.zeros_like(gray), gray, gray]))
        rest = np.asarray(value, np.float32)
        rest -= np.asarray(behind, np.float32) * cv2.merge([ratio, ratio, ratio])
        changed[rows] = floor_to_uint8(np.maximum(rest, 0, out=rest))
    return changed
