"""Placing an image of any shape in the input of a detector, and finding its boxes again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..types import Image
from .resizing import resize_image

__all__ = ["Placement", "place_image"]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an image lies in a model's input.

    Attributes:
        image: its own (height, width).
        resized: (height, width) it has in the input.
        corner: (top, left) of it there.
    """

    image: tuple[int, int]
    resized: tuple[int, int]
    corner: tuple[int, int]

    def to_image(self, boxes: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return boxes of the input (N×4, corners x1, y1, x2, y2 in pixels) as boxes of the image, clipped to it."""
        (height, width), (top, left) = self.image, self.corner
        scale = np.array([width / self.resized[1], height / self.resized[0]] * 2)
        moved = (boxes.astype(np.float64) - [left, top, left, top]) * scale
        clipped: NDArray[np.float64] = np.clip(moved, 0.0, [width, height, width, height])
        return clipped


def place_image(
    image: Image, size: tuple[int, int], *, letterbox: bool, pad: int, center: bool, kernel: str
) -> tuple[Image, Placement]:
    """Return the pixels to feed, and where the image is among them.

    Args:
        image: uint8 H×W×3.
        size: (height, width) of the result.
        letterbox: keep the image's proportions and fill what remains; or else stretch the image to `size`.
        pad: value of the filling, 0..255.
        center: fill both sides alike (the odd pixel goes right or below, as Ultralytics does it); or else only right
            and below.
        kernel: how the image is resized, one of `resizing.KERNELS`.
    """
    height, width = image.shape[:2]
    if not letterbox:
        return resize_image(image, size, kernel), Placement((height, width), size, (0, 0))
    ratio = min(size[0] / height, size[1] / width)
    resized = (max(1, round(height * ratio)), max(1, round(width * ratio)))
    rows, columns = size[0] - resized[0], size[1] - resized[1]
    top, left = (rows // 2, columns // 2) if center else (0, 0)
    pixels = np.full((*size, 3), pad, np.uint8)
    pixels[top : top + resized[0], left : left + resized[1]] = resize_image(image, resized, kernel)
    return pixels, Placement((height, width), resized, (top, left))
