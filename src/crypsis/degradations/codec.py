"""Coding losses."""

from __future__ import annotations

import cv2
import numpy as np

from ..errors import ImageError, InputError
from ..types import Image

__all__ = ["jpeg"]

_MAX_SIDE = 65500  # libjpeg's own limit


def jpeg(image: Image, *, quality: int) -> Image:
    """Encode as baseline JPEG with 4:2:0 chroma and decode again.

    `quality` is libjpeg's scale. The pixels equal those of Pillow at the same quality: both use libjpeg-turbo
    with its accurate integer transform.

    Args:
        image: uint8 H×W×3, RGB, sides up to 65 500.
        quality: 1..100.

    Returns:
        The decoded image, as new memory.

    Raises:
        InputError: `quality` is not in 1..100.
        ImageError: a side is longer than JPEG allows.
    """
    if not 1 <= quality <= 100:
        raise InputError(f"quality is a JPEG quality from 1 to 100; got {quality!r}.")
    height, width = image.shape[:2]
    if max(height, width) > _MAX_SIDE:
        raise ImageError(f"JPEG holds sides up to {_MAX_SIDE} pixels; the image is {width}×{height}.")
    options = [
        cv2.IMWRITE_JPEG_QUALITY,
        quality,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    ]
    _, code = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
    decoded = cv2.imdecode(code, cv2.IMREAD_COLOR)
    if decoded is None:  # OpenCV's own pixel limits, which the environment can lower
        raise ImageError(f"OpenCV refuses to decode a JPEG of {width}×{height} pixels.")
    return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB, dst=decoded), np.uint8)
