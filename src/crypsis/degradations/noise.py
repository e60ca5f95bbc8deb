"""Random variation of pixel values."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Image

__all__ = ["gaussian_noise"]

_BLOCK = 1 << 17  # values handled at once: temporaries stay in the cache, memory does not grow with the image


@lru_cache(maxsize=1)
def _quantiles() -> NDArray[np.float64]:
    """Φ⁻¹((i + ½) / 65536) for every 16-bit i; the lower half mirrors the upper, so the mean is exactly 0."""
    inverse = NormalDist().inv_cdf
    upper = np.array([inverse((i + 0.5) / 65536) for i in range(32768, 65536)])
    return np.concatenate([-upper[::-1], upper])


@lru_cache(maxsize=64)
def _table(sigma: float) -> NDArray[np.int16]:
    """Noise in gray levels for every 16-bit word; ±255 already saturates any 8-bit value."""
    return np.clip(np.rint(sigma * _quantiles()), -255, 255).astype(np.int16)


def gaussian_noise(image: Image, *, sigma: float, rng: np.random.Generator) -> Image:
    """Add Gaussian noise, independent in every pixel and channel, and clip.

    The noise is round(σ·Φ⁻¹(u)) with u on a grid of 65 536 equally likely values, looked up in a table with
    uniform 16-bit words: its mean is exactly 0, its standard deviation √(σ² + 1/12) to within 0.1 % for σ ≥ 1 (the
    1/12 is the rounding to whole gray levels), and it ends at ±4.33 σ. The words do not depend on σ: generators
    in the same state give the same field at every σ, only scaled.

    Args:
        image: uint8 H×W×3, RGB.
        sigma: standard deviation in gray levels (0..255 scale), ≥ 0.
        rng: source of the noise.

    Returns:
        The noisy image, as new memory.

    Raises:
        InputError: `sigma` is negative or not finite.
    """
    if not 0 <= sigma < np.inf:
        raise InputError(f"sigma is a standard deviation in gray levels, 0 or more; got {sigma!r}.")
    table = _table(float(sigma))
    clean = np.ascontiguousarray(image).reshape(-1)
    noisy = np.empty_like(clean)
    for start in range(0, clean.size, _BLOCK):
        part = clean[start : start + _BLOCK]
        words = rng.integers(0, 2**64, size=-(-part.size // 4), dtype=np.uint64)
        uniform = words.astype("<u8", copy=False).view("<u2")[: part.size]
        value = table.take(uniform, mode="wrap")  # never wraps; the mode that skips the bounds check
        value += part
        np.clip(value, 0, 255, out=value)
        noisy[start : start + _BLOCK] = value
    return noisy.reshape(image.shape)
