"""CIE L*a*b* in the form its definition computes first: three compressed tristimulus values (fx, fy, fz).

L* = 116·fy − 16, a* = 500·(fx − fy) and b* = 200·(fy − fz). What scales chroma or changes lightness alone is a
linear step in (fx, fy, fz), so the operators take it there and never form L*, a*, b*. sRGB, D65 with the white
(0.95047, 1, 1.08883).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..types import Image

__all__ = ["compressed_xyz", "linear_words", "srgb_of_words"]

_WHITE = np.array([0.95047, 1.0, 1.08883])
_TO_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_COMPRESS = (_TO_XYZ / _WHITE[:, None]).astype(np.float32)
_EXPAND = (65535 * np.linalg.inv(_TO_XYZ) * _WHITE).astype(np.float32)
_LOW = np.float32(0.008856)  # below this tristimulus value the cube root is continued by its tangent,
_SLOPE = np.float32(7.787)  # whose slope this is;
_LOW_ROOT = np.float32(0.2068966)  # its compressed value


@lru_cache(maxsize=1)
def _linear() -> NDArray[np.float32]:
    """Linear light in 0..1 of the 256 sRGB levels."""
    value = np.arange(256) / 255
    return np.where(value > 0.04045, ((value + 0.055) / 1.055) ** 2.4, value / 12.92).astype(np.float32)


@lru_cache(maxsize=1)
def srgb_of_words() -> NDArray[np.float64]:
    """Return the sRGB value in 0..1 of the 65 536 words of `linear_words`."""
    linear = np.arange(65536) / 65535
    return np.where(linear > 0.0031308, 1.055 * np.maximum(linear, 1e-9) ** (1 / 2.4) - 0.055, 12.92 * linear)


def compressed_xyz(image: Image, *, swapped: bool) -> NDArray[np.float32]:
    """Return (fx, fy, fz), float32 H×W×3, of a uint8 H×W×3 image.

    Args:
        image: uint8 H×W×3, RGB.
        swapped: whether red is taken for blue and blue for red.
    """
    matrix = _COMPRESS[:, ::-1] if swapped else _COMPRESS
    xyz = cv2.transform(cv2.LUT(image, _linear()), np.ascontiguousarray(matrix))
    flat: Any = xyz.reshape(len(xyz), -1)
    above = np.maximum(flat, _LOW)
    cv2.subtract(flat, above, dst=flat)
    return np.asarray(cv2.scaleAdd(flat, float(_SLOPE), cv2.pow(above, 1 / 3)).reshape(xyz.shape), np.float32)


def linear_words(compressed: NDArray[np.float32], *, swapped: bool) -> NDArray[np.uint16]:
    """Return linear RGB light as words of 0..65535, uint16 H×W×3, clipped; the inverse of `compressed_xyz`.

    Args:
        compressed: float32 H×W×3, (fx, fy, fz); it is changed. A negative fz counts as 0.
        swapped: as in `compressed_xyz`.
    """
    np.maximum(compressed[:, :, 2], 0, out=compressed[:, :, 2])
    flat: Any = compressed.reshape(len(compressed), -1)
    above = np.maximum(flat, _LOW_ROOT)
    cv2.subtract(flat, above, dst=flat)
    cube = cv2.multiply(cv2.multiply(above, above), above, dst=above)
    xyz = cv2.scaleAdd(flat, float(1 / _SLOPE), cube).reshape(compressed.shape)
    matrix = _EXPAND[::-1] if swapped else _EXPAND
    light: Any = cv2.transform(xyz, np.ascontiguousarray(matrix))
    light += np.float32(0.5)  # to nearest
    return np.asarray(np.clip(light, 0, 65535, out=light), np.uint16)
