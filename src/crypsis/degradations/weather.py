"""Weather between the scene and the lens."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Image
from .blur import gaussian_blur
from .tone import linear

__all__ = ["rain", "white_veil"]

_SHORT_SIDE = 480  # pixels; the size rain's lengths are given for
_MIN_SCALE = 1 / 8  # below a short side of 60 pixels, streaks would be too thin to be streaks
_MAX_TILT = 20.0  # degrees from vertical
_BLOCK = 128  # drops drawn at once: temporaries stay in the cache
_STREAK_GRAY = 200  # what an opaque streak looks like: lighter than most scenes, darker than a bright sky


def white_veil(image: Image, *, alpha: float) -> Image:
    """Blend with white: (1 − alpha)·x + alpha·255, rounded half up; a fog of equal density everywhere.

    Args:
        image: uint8 H×W×3, RGB.
        alpha: share of white, 0..1.

    Returns:
        The veiled image, as new memory.

    Raises:
        InputError: `alpha` is not in [0, 1].
    """
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha is a share from 0 to 1; got {alpha!r}.")
    return linear(image, scale=1 - alpha, offset=255 * alpha)


def _streaks(
    height: int, width: int, *, density: float, length: float, thickness: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return how much of each pixel is covered by streaks, H×W, 0 and more; units as in `rain`, scaled."""
    tilt = math.radians(rng.uniform(-_MAX_TILT, _MAX_TILT))
    drops = rng.random((round(density * height * width), 3))  # one row a drop: fewer drops are the first of more
    drops = drops[drops[:, 2].argsort(kind="stable")]  # alike lengths together, so that few rows are empty
    cover = np.zeros(height * width, np.float32)
    for part in range(0, len(drops), _BLOCK):
        block = drops[part : part + _BLOCK]
        x0, y0 = block[:, :1] * width, block[:, 1:2] * height
        size = 0.4 + 1.1 * block[:, 2:] ** 2  # many far drops, few near ones
        fall = size * (length * math.cos(tilt))
        # A drop meets its pixel rows one by one; in each it covers a part of the row's height (its ends are
        # fractions) and, in width, a share of the two pixels beside its axis. What leaves the frame on one side
        # comes in on the other, so that streaks are as dense at the border as inside.
        row = np.floor(y0) + np.arange(math.ceil(fall[-1, 0]) + 1)
        upper = np.maximum(row, y0)
        lower = np.minimum(row + 1, y0 + fall)
        middle = (upper + lower) / 2 - y0
        along = middle / fall
        ink = np.maximum(lower - upper, 0) * np.maximum(4 * along * (1 - along), 0)  # the ends fade
        ink *= thickness * 1.2 * np.minimum(size, 1)
        axis = x0 + middle * math.tan(tilt)
        left = np.floor(axis)
        share = axis - left
        start = row.astype(np.intp) % height * width
        column = left.astype(np.intp)
        np.add.at(cover, (start + column % width).ravel(), (ink - ink * share).astype(np.float32).ravel())
        np.add.at(cover, (start + (column + 1) % width).ravel(), (ink * share).astype(np.float32).ravel())
    return cover.reshape(height, width)


def rain(
    image: Image,
    *,
    density: float,
    length: float,
    thickness: float,
    opacity: float,
    veil: float,
    blur: float,
    rng: np.random.Generator,
) -> Image:
    """Let it rain: the scene is blurred a little and darkened, and light streaks fall in front of it.

    All streaks of an image share one direction, drawn evenly from ±20° around the vertical. Each has a place, and
    a nearness r (the square of a uniform number) that makes it 0.4 + 1.1 r times as long as `length`, and as
    opaque up to full; it fades towards both ends. Streaks are drawn with sub-pixel precision and blended over the
    scene with gray 200. Pixel sizes are given for a short side of 480 and scale with the image (down to a short
    side of 60; smaller images are treated as if 60), so that an image and its enlargement show the same rain.
    Generators in the same state give nested rain: the drops at a lower density are the first of those at a
    higher one.

    Args:
        image: uint8 H×W×3, RGB.
        density: streaks per pixel, ≥ 0.
        length: length of a streak of middle size in pixels, > 0.
        thickness: width of a streak in pixels, > 0.
        opacity: opacity of a fully covered pixel, 0..1.
        veil: factor on the scene's brightness, 0..1.
        blur: standard deviation of the blur of the scene in pixels, > 0.
        rng: source of direction and places.

    Returns:
        The rainy image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if not (0 <= density < 1 and 0 < length < np.inf and 0 < thickness < np.inf and 0 < blur < np.inf):
        raise InputError("rain needs a density from 0 to 1, and length, thickness and blur of more than 0 pixels.")
    if not (0 <= opacity <= 1 and 0 <= veil <= 1):
        raise InputError(f"opacity and veil are shares from 0 to 1; got {opacity!r} and {veil!r}.")
    height, width = image.shape[:2]
    scale = max(min(height, width) / _SHORT_SIDE, _MIN_SCALE)
    cover = _streaks(
        height,
        width,
        density=density / scale**2,
        length=length * scale,
        thickness=thickness * scale,
        rng=rng,
    )
    spread = 0.45 * thickness * scale  # gives the one-pixel axis its thickness
    side = 2 * math.ceil(3 * spread) + 1
    thick = cv2.GaussianBlur(cover, (side, side), spread, borderType=cv2.BORDER_REPLICATE)
    full = 255 * opacity
    _, mask = cv2.threshold(cv2.convertScaleAbs(thick, alpha=full), full, full, cv2.THRESH_TRUNC)
    clear, light = cv2.bitwise_not(mask), cv2.convertScaleAbs(mask, alpha=_STREAK_GRAY / 255)
    scene = gaussian_blur(image, sigma=blur * scale)
    three = cv2.merge([clear, clear, clear])
    behind = cv2.multiply(scene, three, dst=scene, scale=veil / 255)
    return np.asarray(cv2.add(behind, cv2.merge([light, light, light], dst=three), dst=behind), np.uint8)
