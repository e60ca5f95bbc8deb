"""Failures between sensor and screen: memory, cables, timing."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Image

__all__ = ["cleared_bits", "lost_rows", "lost_rows_field", "zeroed_bytes"]


def zeroed_bytes(image: Image, *, threshold: int, rng: np.random.Generator) -> Image:
    """Lose single bytes of the frame buffer: each is 0 with probability (threshold + 1)/256, on its own.

    The three channels of a pixel are three bytes. The bytes lost at a lower threshold are lost at a higher one.

    Args:
        image: uint8 H×W×3, RGB.
        threshold: 0..255; a byte is kept where a random one is more.
        rng: source of the losses.

    Returns:
        The damaged image, as new memory.

    Raises:
        InputError: `threshold` is not in 0..255.
    """
    if not 0 <= threshold <= 255:
        raise InputError(f"threshold is a byte from 0 to 255; got {threshold!r}.")
    drawn = np.frombuffer(rng.bytes(image.size), np.uint8).reshape(len(image), -1)
    kept = cv2.threshold(drawn, threshold, 255, cv2.THRESH_BINARY)[1].reshape(image.shape)
    return np.asarray(np.bitwise_and(image, kept, out=kept), np.uint8)


@lru_cache(maxsize=1)
def _misread() -> NDArray[np.uint8]:
    """For 8·value + bit: the value moved up until its highest bit is set, then without that bit."""
    value = np.arange(256)
    shift = np.array([8 - int(v).bit_length() for v in value])
    return np.asarray((value << shift)[:, None] & ~(1 << np.arange(8)) & 255, np.uint8).reshape(-1)


def cleared_bits(image: Image, *, share: float, rng: np.random.Generator) -> Image:
    """Lose bits on the way: in some rows, at some columns, each of Y, Cr and Cb arrives with one bit cleared.

    ⌊share·H⌋ random rows are hit, and in each, anew, ⌊share·W⌋ random columns: share² of the image. There, a
    component's binary digits are written from the left of the byte, so that values below 128 are multiplied by 2,
    4, …, 128; then one random bit of the eight is cleared. The whole image goes through 8-bit YCbCr (full range,
    BT.601) and back, which moves other pixels by up to 2 gray levels. What is hit at a lower share is hit, with the
    same bits, at a higher one.

    Args:
        image: uint8 H×W×3, RGB.
        share: share of the rows, and of the columns in each, 0..1.
        rng: source of places and bits.

    Returns:
        The damaged image, as new memory.

    Raises:
        InputError: `share` is not in [0, 1].
    """
    if not 0 <= share <= 1:
        raise InputError(f"share is a share of the rows, from 0 to 1; got {share!r}.")
    height, width = image.shape[:2]
    values = cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb)
    rows = rng.permutation(height)[: int(height * share), None]
    words = rng.integers(0, 2**32, size=(len(rows), width), dtype=np.uint32)
    # the smallest words choose the columns; their low bits, which the choice leaves random, choose the bits
    columns = np.argpartition(words, min(int(width * share), width - 1), axis=1)[:, : int(width * share)]
    bits = (np.take_along_axis(words, columns, axis=1)[:, :, None] >> np.array([0, 3, 6], np.uint32)) & np.uint32(7)
    values[rows, columns] = _misread()[values[rows, columns].astype(np.uint32) * 8 + bits]
    return np.asarray(cv2.cvtColor(values, cv2.COLOR_YCrCb2RGB), np.uint8)


def _source_rows(height: int, fraction: float, breaks: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the row of the scene that each row shows; beyond the last where the frame has ended."""
    if not (0 <= fraction <= 1 and breaks >= 1):
        raise InputError(f"fraction is from 0 to 1 and breaks 1 or more; got {fraction!r} and {breaks!r}.")
    first = np.sort(np.floor((0.1 + 0.8 * rng.random(breaks)) * height))
    lost = np.rint(round(fraction * height) * np.arange(breaks + 1) / breaks)  # before and after each break
    shown = np.arange(height)
    return np.asarray(shown + lost[np.searchsorted(first, shown, side="right")], np.intp)


def lost_rows(image: Image, *, fraction: float, breaks: int, rng: np.random.Generator) -> Image:
    """Lose rows while a frame is read out: what follows moves up, and the end of the frame stays black.

    The losses happen at `breaks` places, anywhere in the middle 80 % of the height; each takes an equal part of
    round(fraction·H) rows. Generators in the same state give nested places: fewer breaks are the first of more.

    Args:
        image: uint8 H×W×3, RGB.
        fraction: share of the rows that is lost, 0..1.
        breaks: number of places, ≥ 1.
        rng: source of the places.

    Returns:
        The torn image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    height = len(image)
    rows = _source_rows(height, fraction, breaks, rng)
    torn = np.take(image, np.minimum(rows, height - 1), axis=0)
    torn[rows >= height] = 0
    return torn


def lost_rows_field(
    height: int, width: int, *, fraction: float, breaks: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return where `lost_rows` takes its pixels from; below the image where it is black.

    Args:
        height: of the image, in pixels.
        width: of the image, in pixels.
        fraction: as in `lost_rows`.
        breaks: as in `lost_rows`.
        rng: as in `lost_rows`.

    Returns:
        float32 H×W×2, source coordinates (x, y) in pixels.

    Raises:
        InputError: a parameter is out of its range.
    """
    field = np.empty((height, width, 2), np.float32)
    field[:, :, 0] = np.arange(width)
    field[:, :, 1] = _source_rows(height, fraction, breaks, rng)[:, None]
    return field
