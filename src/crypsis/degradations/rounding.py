"""Rounding down to 8 bits, as the plain casts of published implementations do, where OpenCV rounds to the nearest."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ..types import Image

__all__ = ["FLOOR", "floor_to_uint8"]

FLOOR = -0.5 + 1e-3
"""What to add before OpenCV rounds; the thousandth keeps whole numbers, which single precision misses by less."""


def floor_to_uint8(values: NDArray[np.float32]) -> Image:
    """Return values as uint8, rounded down, 255 where they are more.

    Args:
        values: float32, any shape, ≥ 0.
    """
    return np.asarray(cv2.convertScaleAbs(values, beta=FLOOR), np.uint8)
