"""Random variation of pixel values."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Image
from .bands import bands
from .rounding import floor_to_uint8

__all__ = [
    "gaussian_noise",
    "impulse_noise",
    "multiplicative_noise",
    "normal_field",
    "salt_and_pepper",
    "shot_noise",
    "ycbcr_noise",
]

_BLOCK = 1 << 17  # values handled at once: temporaries stay in the cache, memory does not grow with the image


@lru_cache(maxsize=1)
def _quantiles() -> NDArray[np.float64]:
    """Φ⁻¹((i + ½) / 65536) for every 16-bit i; the lower half mirrors the upper, so the mean is exactly 0."""
    inverse = NormalDist().inv_cdf
    upper = np.array([inverse((i + 0.5) / 65536) for i in range(32768, 65536)])
    return np.concatenate([-upper[::-1], upper])


@lru_cache(maxsize=64)
def _table(sigma: float, floor: bool) -> NDArray[np.int16]:
    """Noise in gray levels for every 16-bit word; ±255 already saturates any 8-bit value."""
    noise = sigma * _quantiles()
    return np.clip(np.floor(noise) if floor else np.rint(noise), -255, 255).astype(np.int16)


def gaussian_noise(image: Image, *, sigma: float, floor: bool = False, rng: np.random.Generator) -> Image:
    """Add Gaussian noise, independent in every pixel and channel, and clip.

    The noise is round(σ·Φ⁻¹(u)) with u on a grid of 65 536 equally likely values, looked up in a table with
    uniform 16-bit words: its mean is exactly 0, its standard deviation √(σ² + 1/12) to within 0.1 % for σ ≥ 1 (the
    1/12 is the rounding to whole gray levels), and it ends at ±4.33 σ. The words do not depend on σ: generators
    in the same state give the same field at every σ, only scaled.

    Args:
        image: uint8 H×W×3, RGB.
        sigma: standard deviation in gray levels (0..255 scale), ≥ 0.
        floor: round down, as a plain cast to 8 bits does: half a level darker than to the nearest.
        rng: source of the noise.

    Returns:
        The noisy image, as new memory.

    Raises:
        InputError: `sigma` is negative or not finite.
    """
    if not 0 <= sigma < np.inf:
        raise InputError(f"sigma is a standard deviation in gray levels, 0 or more; got {sigma!r}.")
    table = _table(float(sigma), floor)
    clean = np.ascontiguousarray(image).reshape(-1)
    noisy = np.empty_like(clean)
    for start in range(0, clean.size, _BLOCK):
        part = clean[start : start + _BLOCK]
        value = table.take(_words(rng, part.size), mode="wrap")  # never wraps; the mode that skips the bounds check
        value += part
        np.clip(value, 0, 255, out=value)
        noisy[start : start + _BLOCK] = value
    return noisy.reshape(image.shape)


def _words(rng: np.random.Generator, count: int) -> NDArray[np.uint16]:
    """Draw uniform 16-bit words, four from each 64 bits of the generator."""
    words = rng.integers(0, 2**64, size=-(-count // 4), dtype=np.uint64)
    return words.astype("<u8", copy=False).view("<u2")[:count].astype(np.uint16, copy=False)


@lru_cache(maxsize=16)
def _gains(sigma: float) -> NDArray[np.float32]:
    """1 + σ·Φ⁻¹ for every 16-bit word, not below 0, where the product clips."""
    return np.maximum(1 + sigma * _quantiles(), 0).astype(np.float32)


def multiplicative_noise(image: Image, *, sigma: float, floor: bool = False, rng: np.random.Generator) -> Image:
    """Multiply every value by its own 1 + N(0, σ), round and clip: noise that grows with the signal (speckle).

    The normal numbers are those of `gaussian_noise`: 65 536 equally likely values up to ±4.33 σ, a field that does
    not depend on σ.

    Args:
        image: uint8 H×W×3, RGB.
        sigma: standard deviation of the factor, ≥ 0.
        floor: round down, as a plain cast to 8 bits does.
        rng: source of the noise.

    Returns:
        The noisy image, as new memory.

    Raises:
        InputError: `sigma` is negative or not finite.
    """
    if not 0 <= sigma < np.inf:
        raise InputError(f"sigma is the standard deviation of a factor, 0 or more; got {sigma!r}.")
    table = _gains(float(sigma))
    noisy = np.empty(image.shape, np.uint8)
    for rows in bands(*image.shape[:2], pixels=1 << 15):
        part = np.ascontiguousarray(image[rows]).reshape(1, -1)
        gain = table.take(_words(rng, part.size), mode="wrap").reshape(1, -1)
        gain *= part.astype(np.float32)
        value = floor_to_uint8(gain) if floor else np.asarray(cv2.convertScaleAbs(gain), np.uint8)
        noisy[rows] = value.reshape(noisy[rows].shape)
    return noisy


_RGB_OF_YCBCR = np.array([[1, 0, 1.403], [1, -0.344, -0.714], [1, 1.773, 0]], np.float32)  # full range, BT.601


def ycbcr_noise(image: Image, *, sigma: float, rng: np.random.Generator) -> Image:
    """Add Gaussian noise of one σ to luma and to both chroma components, and return to RGB.

    The conversion is linear, so noise is drawn for (Y, Cb, Cr), carried to RGB (R = Y + 1.403 Cr,
    G = Y − 0.344 Cb − 0.714 Cr, B = Y + 1.773 Cb) and added there. In gray levels it has the standard deviations
    1.72 σ, 1.28 σ and 2.04 σ in R, G and B, before clipping. The normal numbers are those of `gaussian_noise`.

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
    table = (sigma * _quantiles()).astype(np.float32)
    noisy = np.empty(image.shape, np.uint8)
    for rows in bands(*image.shape[:2]):
        part = image[rows]
        noise = cv2.transform(table.take(_words(rng, part.size), mode="wrap").reshape(part.shape), _RGB_OF_YCBCR)
        noisy[rows] = cv2.add(np.ascontiguousarray(part), noise, dtype=cv2.CV_8U)
    return noisy


def salt_and_pepper(image: Image, *, density: float, rng: np.random.Generator) -> Image:
    """Set values at random places of random channels to 255 and to 0, half each.

    ⌊density·3·H·W⌋ places are drawn with replacement, so a few coincide; where a white and a black one do, black
    wins. Generators in the same state give nested noise: the places at a lower density are the first of those at a
    higher one.

    Args:
        image: uint8 H×W×3, RGB.
        density: places drawn per value, 0..1.
        rng: source of the places.

    Returns:
        The noisy image, as new memory.

    Raises:
        InputError: `density` is not in [0, 1].
    """
    if not 0 <= density <= 1:
        raise InputError(f"density is a share of all values, from 0 to 1; got {density!r}.")
    noisy = np.array(image, order="C")
    places = rng.integers(0, noisy.size, size=int(density * noisy.size))
    flat = noisy.reshape(-1)
    flat[places[1::2]] = 255
    flat[places[::2]] = 0
    return noisy


@lru_cache(maxsize=1)
def _standard() -> NDArray[np.float32]:
    """Φ⁻¹ for every 16-bit word."""
    return _quantiles().astype(np.float32)


def normal_field(height: int, width: int, *, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return independent standard normal numbers, float32 H×W, on the grid of quantiles that `gaussian_noise` uses.

    Args:
        height: in pixels.
        width: in pixels.
        rng: source of the numbers.
    """
    table = _standard()
    field = np.empty((height, width), np.float32)
    for rows in bands(height, width, pixels=1 << 15):
        part = field[rows]
        part[:] = table.take(_words(rng, part.size), mode="wrap").reshape(part.shape)
    return field


def impulse_noise(image: Image, *, amount: float, rng: np.random.Generator) -> Image:
    """Replace each value, with a probability, by 0 or 255: salt and pepper, each channel of a pixel for itself.

    Generators in the same state replace, at a higher probability, all that a lower one replaces, by the same.

    Args:
        image: uint8 H×W×3, RGB.
        amount: probability of being replaced, by 0 and by 255 alike, 0..1; rounded to steps of 2⁻¹⁵.
        rng: source of places and kinds.

    Returns:
        The noisy image, as new memory.

    Raises:
        InputError: `amount` is not in [0, 1].
    """
    if not 0 <= amount <= 1:
        raise InputError(f"amount is a probability from 0 to 1; got {amount!r}.")
    each = round(amount * 32768)
    noisy = np.empty(image.shape, np.uint8)
    for rows in bands(*image.shape[:2]):
        part = image[rows]
        words = _words(rng, part.size).reshape(part.shape)
        # as bytes, False and True are 0 and 1, and below zero 0 and 255
        kept, salt = (np.negative(yes.view(np.uint8)) for yes in (words >= each, words >= 65536 - each))
        noisy[rows] = part & kept | salt
    return noisy


_UNDECIDED = 255  # a count that `_counts` never holds, photons being fewer


@lru_cache(maxsize=8)
def _counts(photons: int) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the quantiles of Poisson counts, capped at `photons`, for every gray level.

    The first array holds, for each gray level and 12-bit number, the count of all sixteen 16-bit words that begin
    with it, or `_UNDECIDED` if they differ. The second holds for each gray level the first word of each count from
    1 up, plus 2¹⁷ times the level: ascending, to be searched.
    """
    expected = np.arange(256) / 255 * photons
    term = np.exp(-expected)
    reached = np.zeros(256)
    first = np.empty((256, photons))
    for count in range(photons):
        reached += term
        first[:, count] = 65536 * reached - 0.5
        term *= expected / (count + 1)
    cuts = np.ceil(first).clip(0, 65536).astype(np.int32) + (np.arange(256, dtype=np.int32)[:, None] << 17)
    flat = cuts.reshape(-1)
    low = (np.arange(256, dtype=np.int32)[:, None] << 17) + np.arange(0, 65536, 16, dtype=np.int32)
    counts = [flat.searchsorted(words, side="right") - np.arange(256)[:, None] * photons for words in (low, low + 15)]
    cells = np.where(counts[0] == counts[1], counts[0], _UNDECIDED).astype(np.uint8)
    return cells.reshape(-1), flat


def shot_noise(image: Image, *, photons: int, rng: np.random.Generator) -> Image:
    """Count photons: x becomes 255·n/photons, rounded down, with n from a Poisson distribution of mean photons·x/255.

    Counts are independent in every pixel and channel; what exceeds 255 is 255. They are the quantiles of uniform
    16-bit words, exact to 2⁻¹⁶ in probability: generators in the same state give fields that go together at all
    photon numbers.

    Args:
        image: uint8 H×W×3, RGB.
        photons: mean count of a white value, 1..254; the fewer, the noisier.
        rng: source of the counts.

    Returns:
        The noisy image, as new memory.

    Raises:
        InputError: `photons` is not in 1..254.
    """
    if not 1 <= photons < _UNDECIDED:
        raise InputError(f"photons is a whole number from 1 to {_UNDECIDED - 1}; got {photons!r}.")
    photons = int(photons)
    cells, cuts = _counts(photons)
    gray = (np.arange(photons + 1) * 255 / photons).astype(np.uint8)
    noisy = np.empty(image.shape, np.uint8)
    for rows in bands(*image.shape[:2]):
        part = image[rows]
        words = _words(rng, part.size)
        level = part.reshape(-1).astype(np.int32)
        count = cells.take(level << 12 | words >> 4, mode="wrap")
        rest = np.flatnonzero(count == _UNDECIDED)
        level = level[rest]
        count[rest] = cuts.searchsorted((level << 17) + words[rest], side="right") - level * photons
        noisy[rows] = gray.take(count, mode="wrap").reshape(part.shape)
    return noisy
