"""Resizing images to what a model takes, and maps to the size of their image.

Pixels are areas here (half-pixel centers; torch's `align_corners=False`), as in the official evaluation code of
the camouflaged object detection models.
"""

from __future__ import annotations

import cv2
import numpy as np
import PIL.Image
from numpy.typing import NDArray

from ..types import Image, ProbabilityMap

__all__ = ["KERNELS", "resize_image", "resize_map"]

_CV2_KERNELS = {
    "bilinear": cv2.INTER_LINEAR,
    "area": cv2.INTER_AREA,
    "nearest": cv2.INTER_NEAREST_EXACT,
    "bicubic": cv2.INTER_CUBIC,
}

KERNELS = ("bilinear-antialias", *_CV2_KERNELS)
"""How an image may be brought to a model's input size. `bilinear-antialias` widens the kernel when it shrinks
(Pillow, hence torchvision's `Resize`); `bilinear` and `bicubic` do not (OpenCV, albumentations, ZoomNet)."""


def resize_image(image: Image, size: tuple[int, int], kernel: str) -> Image:
    """Return `image` (uint8 H×W×3) at `size` (height, width), as uint8; `image` itself if it has that size.

    Args:
        image: the pixels.
        size: height and width to reach, at least 1.
        kernel: one of `KERNELS`.
    """
    if image.shape[:2] == size:
        return image
    height, width = size
    if kernel == "bilinear-antialias":
        return np.asarray(PIL.Image.fromarray(image).resize((width, height), PIL.Image.Resampling.BILINEAR))
    resized = cv2.resize(image, (width, height), interpolation=_CV2_KERNELS[kernel])
    return np.asarray(resized, np.uint8)


def resize_map(values: NDArray[np.float32], size: tuple[int, int]) -> ProbabilityMap:
    """Return `values` (float32 h×w, any range) at `size` (height, width), bilinearly, as new memory.

    The result never leaves the range of `values`, not even by rounding; NaN stays NaN.
    """
    if values.shape == size:
        return values.copy()
    resized = cv2.resize(values, (size[1], size[0]), interpolation=cv2.INTER_LINEAR)
    return np.asarray(np.clip(resized, values.min(), values.max()), np.float32)
