"""Coding losses."""

from __future__ import annotations

import io
from functools import lru_cache

import cv2
import numpy as np
import PIL.features
import PIL.Image
from numpy.typing import NDArray

from ..errors import ImageError, InputError, MissingDependencyError
from ..types import Image

__all__ = ["jpeg", "jpeg2000", "quantize"]

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


def jpeg2000(image: Image, *, ratio: float) -> Image:
    """Encode as JPEG 2000 at a fixed rate and decode again.

    One quality layer at a compression ratio, the reversible 5/3 wavelet without a color transform, code blocks of
    64×64, and eight resolutions or as many as the shorter side allows (⌊log₂ side⌋ + 1): OpenJPEG, through Pillow.
    The ratio counts the code stream's headers, about 100 bytes: of an image of few pixels little or nothing is left.

    Args:
        image: uint8 H×W×3, RGB.
        ratio: raw size divided by coded size, ≥ 1.

    Returns:
        The decoded image, as new memory.

    Raises:
        InputError: `ratio` is less than 1 or not finite.
        MissingDependencyError: this build of Pillow has no JPEG 2000.
    """
    if not 1 <= ratio < np.inf:
        raise InputError(f"ratio is a compression ratio, 1 or more; got {ratio!r}.")
    if not PIL.features.check("jpg_2000"):
        raise MissingDependencyError(
            "This build of Pillow has no JPEG 2000; install one that has: pip install --force-reinstall pillow."
        )
    resolutions = min(8, min(image.shape[:2]).bit_length())
    code = io.BytesIO()
    PIL.Image.fromarray(np.ascontiguousarray(image)).save(
        code,
        "JPEG2000",
        quality_mode="rates",
        quality_layers=[float(ratio)],
        num_resolutions=resolutions,
        progression="LRCP",
        irreversible=False,
    )
    with PIL.Image.open(code) as decoded:
        return np.array(decoded, np.uint8)


@lru_cache(maxsize=16)
def _buckets(levels: int) -> NDArray[np.uint8]:
    """Bucket of each of the 256 levels: 0 for black alone, then one for every step of ⌊255·i/levels⌋."""
    bounds = np.array([0, *(255 * i // levels for i in range(1, levels)), 256])
    return np.searchsorted(bounds, np.arange(256)).astype(np.uint8)


def quantize(image: Image, *, levels: int) -> Image:
    """Keep few levels, evenly spaced, and stretch those present over the whole range.

    Values up to ⌊255·i/levels⌋ (i = 1..levels) share a bucket, and exact black has one for itself. The lowest bucket
    present in any channel becomes 0, the highest 255, so contrast depends on the image's extremes. An image within
    one bucket has nothing to stretch; it gets the bucket's share of the range.

    Args:
        image: uint8 H×W×3, RGB.
        levels: 1..254.

    Returns:
        The quantized image, as new memory.

    Raises:
        InputError: `levels` is not in 1..254.
    """
    if not 1 <= levels <= 254:
        raise InputError(f"levels is a number of levels from 1 to 254; got {levels!r}.")
    bucket = _buckets(int(levels)).astype(np.float64)
    low, high = bucket[image.min()], bucket[image.max()]
    span = (bucket - low) / (high - low) if low < high else bucket / levels
    return np.asarray(cv2.LUT(image, np.rint(255 * np.clip(span, 0, 1)).astype(np.uint8)), np.uint8)
