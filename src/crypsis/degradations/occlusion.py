"""Something in front of the scene."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Image

__all__ = ["color_blocks", "lens_drops"]


def color_blocks(image: Image, *, blocks: int, side: int = 32, rng: np.random.Generator) -> Image:
    """Paint squares of random plain colors at random places.

    Along an axis shorter than `side`, a block is half as long as the image. Generators in the same state give nested
    sets: fewer blocks are the first of more.

    Args:
        image: uint8 H×W×3, RGB.
        blocks: how many, ≥ 0.
        side: of a block in pixels, ≥ 1.
        rng: source of places and colors.

    Returns:
        The image with blocks, as new memory.

    Raises:
        InputError: `blocks` or `side` is out of its range.
    """
    if blocks < 0 or side < 1:
        raise InputError(f"Give 0 or more blocks of 1 or more pixels a side; got {blocks!r} of {side!r}.")
    painted = np.array(image, order="C")
    length = np.array(image.shape[:2])
    size = np.where(length >= side, side, (length + 1) // 2)
    draw = rng.random((blocks, 5))
    start = (draw[:, :2] * (length - size)).astype(np.intp)
    color = np.rint(255 * draw[:, 2:]).astype(np.uint8)
    for (y, x), paint in zip(start.tolist(), color, strict=True):
        painted[y : y + size[0], x : x + size[1]] = paint
    return painted


def lens_drops(image: Image, *, drops: int, scale: float, luma: float, rng: np.random.Generator) -> Image:
    """Wet the lens: the scene is dimmed, and every drop shows the view around it, small and upside down.

    From each pixel 1 − `luma` of its luma (BT.601) is taken, in all channels alike. A drop is an ellipse with a
    height of 200 to 370 pixels times `scale`, 0.6 to 0.8 times as wide, anywhere in the image; it is filled with the
    dimmed image, shrunk by `scale` (area means) and turned by 180°. Later drops cover earlier ones. Sizes do not
    scale with the image. Generators in the same state give the same places at every number: fewer drops are the
    first of more.

    Args:
        image: uint8 H×W×3, RGB.
        drops: number of drops, ≥ 0.
        scale: how much drops shrink what they show, in (0, 1].
        luma: factor on the luma, 0..1.
        rng: source of places and sizes.

    Returns:
        The image behind drops, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if drops < 0 or not (0 < scale <= 1 and 0 <= luma <= 1):
        raise InputError(f"Drops are 0 or more, scale in (0, 1], luma 0 to 1; got {drops!r}, {scale!r}, {luma!r}.")
    height, width = image.shape[:2]
    taken = cv2.convertScaleAbs(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), alpha=1 - luma)
    wet = np.asarray(cv2.subtract(image, cv2.merge([taken, taken, taken])), np.uint8)
    small_size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(wet, small_size, interpolation=cv2.INTER_AREA)

    drawn = rng.random((drops, 4))[:, :, None, None]
    center_y, center_x = drawn[:, 0] * height, drawn[:, 1] * width
    half_y = (100 + 85 * drawn[:, 2]) * scale
    half_x = half_y * (0.6 + 0.2 * drawn[:, 3])
    reach = int(185 * scale) + 1
    y, x = np.ogrid[-reach : reach + 1, -reach : reach + 1]
    row, column = np.floor(center_y).astype(np.intp) + y, np.floor(center_x).astype(np.intp) + x
    inside = np.square(y / half_y) + np.square(x / half_x) <= 1
    inside &= (row >= 0) & (row < height) & (column >= 0) & (column < width)

    view_row = _mirrored(center_y * scale, half_y, y, small_size[1])
    view_column = _mirrored(center_x * scale, half_x, x, small_size[0])
    places = [np.broadcast_to(place, inside.shape)[inside] for place in (row, column, view_row, view_column)]
    wet[places[0], places[1]] = small[places[2], places[3]]  # where drops overlap, NumPy keeps the last assignment
    return wet


def _mirrored(
    center: NDArray[np.float64], half: NDArray[np.float64], offset: NDArray[np.intp], length: int
) -> NDArray[np.intp]:
    """Return what a drop shows at `offset` from its center, along one axis of an image of `length` pixels.

    A window of `half` pixels to each side that would leave the image is moved inside.
    """
    middle = np.clip(center, np.minimum(half, length / 2), np.maximum(length - half, length / 2))
    return np.asarray(np.clip(np.floor(middle).astype(np.intp) - offset, 0, length - 1), np.intp)
