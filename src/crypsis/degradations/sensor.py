"""Failures of the sensor and of the processing that turns its raw values into an image."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Image
from .bands import bands

__all__ = [
    "bayer_mosaic",
    "blooming_columns",
    "broken_sensor",
    "dead_lines",
    "dead_pixels",
    "demosaic",
    "gray_pixels",
    "lens_shading",
    "ycbcr_offset",
]

_WHITE = (255, 255, 255)
_MIN_RAW = 4  # rows and columns; OpenCV leaves a mosaic of one or two black


def bayer_mosaic(image: Image) -> NDArray[np.uint8]:
    """Return the raw values behind an RGGB color filter: one channel of every pixel.

    Red lies at even rows and columns, blue at odd ones, green between.

    Args:
        image: uint8 H×W×3, RGB.

    Returns:
        uint8 H'×W', both even and at least 4: an image with an odd or shorter side is first mirrored below and to
        the right (reflect-101), so that the pattern goes on.
    """
    height, width = image.shape[:2]
    below, right = (max(_MIN_RAW, side + side % 2) - side for side in (height, width))
    if below or right:
        image = np.asarray(cv2.copyMakeBorder(image, 0, below, 0, right, cv2.BORDER_REFLECT_101), np.uint8)
    raw = np.ascontiguousarray(image[:, :, 1])
    raw[::2, ::2] = image[::2, ::2, 0]
    raw[1::2, 1::2] = image[1::2, 1::2, 2]
    return raw


def demosaic(raw: NDArray[np.uint8], *, height: int, width: int) -> Image:
    """Interpolate the missing channels of an RGGB mosaic bilinearly.

    Each missing value is the rounded mean of its two or four nearest neighbors of that channel. The outermost rows
    and columns repeat those beside them: OpenCV's rule.

    Args:
        raw: uint8 H'×W' as of `bayer_mosaic`.
        height: of the image; the mosaic is cut to it.
        width: of the image.

    Returns:
        uint8 H×W×3, RGB, as new memory.
    """
    # OpenCV names a pattern by its second row, from the second column on: RGGB is its BG
    image = cv2.cvtColor(raw, cv2.COLOR_BayerBG2RGB)
    return np.ascontiguousarray(image[:height, :width], np.uint8)


def _hits(image: Image, fraction: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose every pixel with probability `fraction` (a multiple of 1/65536); a larger one keeps the chosen."""
    if not 0 <= fraction <= 1:
        raise InputError(f"fraction is a share of all pixels, from 0 to 1; got {fraction!r}.")
    words = rng.integers(0, 65536, size=image.shape[:2], dtype=np.uint16)
    return np.asarray(words < np.uint32(round(fraction * 65536)))


def _defects(image: Image, defects: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw (column, row, half width, half height) of defects, the first ones the same at every number."""
    if defects < 0:
        raise InputError(f"defects is a number of defects, 0 or more; got {defects!r}.")
    height, width = image.shape[:2]
    drawn = (rng.random((defects, 4)) * (width, height, 2, 2)).astype(np.intp)
    drawn[:, 2:] += (1, 3)
    return drawn


def blooming_columns(image: Image, *, defects: int, rng: np.random.Generator) -> Image:
    """Overload single spots of a CCD: white ellipses, and the whole column of each white.

    An ellipse has half axes of 1 or 2 pixels across and 3 or 4 along the column, which is one pixel wide. Sizes do
    not scale with the image. The defects at a lower number are the first of those at a higher one.

    Args:
        image: uint8 H×W×3, RGB.
        defects: number of spots, ≥ 0.
        rng: source of places and sizes.

    Returns:
        The damaged image, as new memory.

    Raises:
        InputError: `defects` is negative.
    """
    damaged = np.array(image, order="C")
    spots = _defects(image, defects, rng)
    for column, row, across, along in spots.tolist():
        cv2.ellipse(damaged, (column, row), (across, along), 0, 0, 360, _WHITE, cv2.FILLED)
    damaged[:, spots[:, 0]] = 255
    return damaged


def dead_lines(image: Image, *, defects: int, rng: np.random.Generator) -> Image:
    """Kill rows and columns of a CMOS sensor: black crosses over the whole image, with a white ellipse under each.

    The ellipses are those of `blooming_columns`; a line is one pixel wide. Defects are painted one after another,
    so that a later ellipse covers an earlier line.

    Args:
        image: uint8 H×W×3, RGB.
        defects: number of crosses, ≥ 0.
        rng: source of places and sizes.

    Returns:
        The damaged image, as new memory.

    Raises:
        InputError: `defects` is negative.
    """
    damaged = np.array(image, order="C")
    for column, row, across, along in _defects(image, defects, rng).tolist():
        cv2.ellipse(damaged, (column, row), (across, along), 0, 0, 360, _WHITE, cv2.FILLED)
        damaged[row] = 0
        damaged[:, column] = 0
    return damaged


def lens_shading(image: Image, *, falloff: float) -> Image:
    """Leave the light falloff of a lens uncorrected: dark corners, in the raw values.

    The gain is 1 up to (1 − falloff)·R from the center (row H/2, column W/2) and goes down linearly to 0 at R, half
    the diagonal. It is applied to the RGGB mosaic, which is then demosaiced: where the gain is 1, what changes is
    the detail that no single-chip sensor has.

    Args:
        image: uint8 H×W×3, RGB.
        falloff: share of the half diagonal over which light falls off, in (0, 1].

    Returns:
        The shaded image, as new memory.

    Raises:
        InputError: `falloff` is not in (0, 1].
    """
    if not 0 < falloff <= 1:
        raise InputError(f"falloff is a share of the half diagonal, more than 0 and up to 1; got {falloff!r}.")
    height, width = image.shape[:2]
    raw = bayer_mosaic(image)
    reach = np.hypot(height / 2, width / 2)
    y, x = (np.arange(n, dtype=np.float32) for n in raw.shape)
    for rows in bands(*raw.shape):
        distance = np.sqrt(np.square(y[rows] - height / 2)[:, None] + np.square(x - width / 2))
        distance *= np.float32(-1 / (falloff * reach))
        distance += np.float32(1 / falloff)
        gain = np.clip(distance, 0, 1, out=distance)
        raw[rows] = cv2.convertScaleAbs(raw[rows] * gain).reshape(gain.shape)
    return demosaic(raw, height=height, width=width)


def dead_pixels(image: Image, *, fraction: float, rng: np.random.Generator) -> Image:
    """Leave dead pixels uncorrected: values of the RGGB mosaic become 0 before it is demosaiced.

    Every pixel dies with probability `fraction`, on its own. The pixels dead at a lower fraction are dead at a
    higher one.

    Args:
        image: uint8 H×W×3, RGB.
        fraction: share of dead pixels, 0..1.
        rng: source of the places.

    Returns:
        The damaged image, as new memory.

    Raises:
        InputError: `fraction` is not in [0, 1].
    """
    height, width = image.shape[:2]
    dead = _hits(image, fraction, rng)
    raw = bayer_mosaic(image)
    raw[:height, :width][dead] = 0
    return demosaic(raw, height=height, width=width)


def gray_pixels(image: Image, *, fraction: float, rng: np.random.Generator) -> Image:
    """Fail to interpolate color at scattered pixels: they show their luma (BT.601) in all channels.

    Every pixel fails with probability `fraction`, on its own. The pixels that fail at a lower fraction fail at a
    higher one.

    Args:
        image: uint8 H×W×3, RGB.
        fraction: share of failing pixels, 0..1.
        rng: source of the places.

    Returns:
        The damaged image, as new memory.

    Raises:
        InputError: `fraction` is not in [0, 1].
    """
    fails = _hits(image, fraction, rng)
    gray = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    return np.asarray(cv2.copyTo(gray, fails.view(np.uint8), np.array(image, order="C")), np.uint8)


_OFFSETS = np.clip(np.arange(256)[:, None] - (16, 128, 128), 0, 255).astype(np.uint8).reshape(1, 256, 3)


def ycbcr_offset(image: Image, *, fraction: float, rng: np.random.Generator) -> Image:
    """Subtract the offsets (16, 128, 128) of Y, Cr and Cb twice at scattered pixels, down to 0: they turn green.

    The whole image goes through 8-bit YCbCr (full range, BT.601) and back, which moves other pixels by up to 2
    gray levels. Every pixel fails with probability `fraction`, on its own. The pixels that fail at a lower
    fraction fail at a higher one.

    Args:
        image: uint8 H×W×3, RGB.
        fraction: share of failing pixels, 0..1.
        rng: source of the places.

    Returns:
        The damaged image, as new memory.

    Raises:
        InputError: `fraction` is not in [0, 1].
    """
    fails = _hits(image, fraction, rng)
    values = cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb)
    values = cv2.copyTo(cv2.LUT(values, _OFFSETS), fails.view(np.uint8), values)
    return np.asarray(cv2.cvtColor(values, cv2.COLOR_YCrCb2RGB), np.uint8)


_MAX_RADIUS = 6  # pixels, of a spot
_BAND_REACH = 50  # columns to each side of the band's middle
_LONGEST_DRIP = 36  # pixels


def broken_sensor(
    image: Image,
    *,
    spots: int,
    spot_weight: float,
    band_strength: float,
    leak_half_width: int,
    rng: np.random.Generator,
) -> Image:
    """Break a sensor: red spots, a magenta band over some columns, and a black leak below a dead row.

    Sizes are in pixels and do not scale with the image.

    * Spots: discs with radii of 1 to 6, anywhere; 255·`spot_weight` is added to red, once where they overlap.
    * Band: red and blue get 0.6·`band_strength`·(250 − 5·d) at d columns from its middle, up to 50.
    * Leak: two rows black over the full width. Below them, at fewer than `leak_half_width` columns from its middle,
      drips of 16 − (d/10)² pixels and a random number of up to 20 − d/2 more.

    An anchor is drawn, its column at least 100 from the right border (the middle column of images no wider than
    that). The dead rows end there; the band's middle lies 10 to 19 columns to its right, the leak's 10 to 29. Places
    do not depend on the other parameters: fewer spots are the first of more.

    Args:
        image: uint8 H×W×3, RGB.
        spots: number of spots, ≥ 0.
        spot_weight: strength of the spots, 0..1.
        band_strength: strength of the band, 0..1; 0 leaves it out.
        leak_half_width: half width of the leak in pixels, ≥ 0; 0 leaves it out.
        rng: source of places, sizes and drips.

    Returns:
        The damaged image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if spots < 0 or leak_half_width < 0:
        raise InputError(f"spots and leak_half_width are 0 or more; got {spots!r} and {leak_half_width!r}.")
    if not (0 <= spot_weight <= 1 and 0 <= band_strength <= 1):
        raise InputError(f"spot_weight and band_strength are from 0 to 1; got {spot_weight!r} and {band_strength!r}.")
    height, width = image.shape[:2]
    damaged = np.array(image, order="C")
    anchor = rng.random(4) * (height, max(1, width - 100), 10, 20)
    row, column, band_shift, leak_shift = anchor.astype(np.intp).tolist()
    if width <= 100:
        column = width // 2
    drawn = rng.random((max(spots, leak_half_width), 5))  # one row for a spot and for the drips at one distance

    disc = np.zeros((height, width), np.uint8)
    places = np.floor(drawn[:spots, :3] * (width, height, _MAX_RADIUS)).astype(np.intp)
    for spot_column, spot_row, radius in places.tolist():
        cv2.circle(disc, (spot_column, spot_row), radius + 1, np.rint(255 * spot_weight), cv2.FILLED)
    damaged[:, :, 0] = cv2.add(damaged[:, :, 0], disc).reshape(disc.shape)

    columns, distance = _around(column + 10 + band_shift, _BAND_REACH, width)
    beam = np.zeros((height, len(distance), 3), np.uint8)
    beam[:, :, 0] = beam[:, :, 2] = np.rint(0.6 * np.floor(band_strength * (250 - 5 * np.abs(distance))))
    damaged[:, columns] = cv2.add(damaged[:, columns], beam)

    if leak_half_width:
        damaged[max(0, row - 1) : row + 1] = 0
        columns, distance = _around(column + 10 + leak_shift, leak_half_width - 1, width)
        more = np.maximum(1, 20 - np.abs(distance) / 2) * drawn[np.abs(distance), 3 + (distance < 0)]
        length = np.floor(np.maximum(0, 16 - np.square(distance / 10))) + np.floor(more)
        below = damaged[row:, columns][:_LONGEST_DRIP]
        below[np.arange(len(below))[:, None] < length] = 0
    return damaged


def _around(middle: int, reach: int, width: int) -> tuple[slice, NDArray[np.intp]]:
    """Return the columns of an image up to `reach` from `middle`, and their distances from it (left is negative)."""
    columns = slice(max(0, middle - reach), min(width, middle + reach + 1))
    return columns, np.arange(columns.start, columns.stop) - middle
