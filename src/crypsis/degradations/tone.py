"""Brightness and contrast: every gray level goes to another, wherever it stands."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Image
from .bands import bands
from .colorspace import compressed_xyz, linear_words, srgb_of_words

__all__ = [
    "brighten",
    "brightness",
    "channel_contrast",
    "contrast",
    "darken",
    "gamma_curve",
    "linear",
    "raise_value",
    "s_curve",
    "sharpen_lightness",
]

_NUDGE = 1e-3  # moves ties up, where OpenCV would round them to even
_GUARD = 2e-4  # many times what OpenCV's single precision can be off for values up to 255


@lru_cache(maxsize=4096)
def _curve(scale: float, offset: float) -> tuple[NDArray[np.uint8], bool]:
    """Return the 256 output levels, and whether OpenCV's vector arithmetic is certain to give the same ones."""
    exact = scale * np.arange(256) + offset
    levels = np.clip(np.floor(exact + 0.5 + 1e-9), 0, 255).astype(np.uint8)
    nudged = exact + _NUDGE
    steps = nudged + 0.5
    clear = np.abs(steps - np.rint(steps)) > _GUARD
    same = np.minimum(np.floor(steps), 255) == levels
    return levels, bool((clear & same & (nudged > 0)).all())


def linear(image: Image, *, scale: float, offset: float) -> Image:
    """Map every value x to scale·x + offset, rounded half up, clipped to 0..255.

    Args:
        image: uint8 H×W×3, RGB.
        scale: factor.
        offset: gray levels added.

    Returns:
        The mapped image, as new memory.
    """
    levels, vector = _curve(float(scale), float(offset))
    if vector:  # 2.5 times as fast as the table
        return np.asarray(cv2.convertScaleAbs(image, alpha=scale, beta=offset + _NUDGE), np.uint8)
    return np.asarray(cv2.LUT(image, levels), np.uint8)


def brightness(image: Image, *, factor: float) -> Image:
    """Multiply every value by `factor`, rounded half up: below 1 it darkens.

    Args:
        image: uint8 H×W×3, RGB.
        factor: ≥ 0; 1 changes nothing.

    Returns:
        The darker or lighter image, as new memory.

    Raises:
        InputError: `factor` is negative or not finite.
    """
    if not 0 <= factor < np.inf:
        raise InputError(f"factor is a multiplier, 0 or more; got {factor!r}.")
    return linear(image, scale=factor, offset=0.0)


def contrast(image: Image, *, factor: float) -> Image:
    """Draw every value towards the image's mean luma, or away from it.

    x becomes m + factor·(x − m), rounded half up, where m is the mean of the image's gray version (ITU-R BT.601
    luma), rounded to a whole level: one number per image, the pivot of Pillow's `ImageEnhance.Contrast`.

    Args:
        image: uint8 H×W×3, RGB.
        factor: ≥ 0; 1 changes nothing, 0 leaves a plain gray.

    Returns:
        The flatter or steeper image, as new memory.

    Raises:
        InputError: `factor` is negative or not finite.
    """
    if not 0 <= factor < np.inf:
        raise InputError(f"factor is a multiplier, 0 or more; got {factor!r}.")
    mean = cv2.mean(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))[0]
    pivot = int(mean + 0.5)
    return linear(image, scale=factor, offset=(1 - factor) * pivot)


def _bow(value: NDArray[np.float64], amount: float) -> NDArray[np.float64]:
    """Return x + 2·amount·x·(1 − x), clipped to 0..1: the parabola through (0, 0), (½, ½ + amount/2) and (1, 1)."""
    return np.clip(value + 2 * amount * value * (1 - value), 0, 1)


def darken(image: Image, *, amount: float) -> Image:
    """Bend the tone curve down: x − 2·amount·x·(1 − x) on 0..1, clipped, rounded.

    Args:
        image: uint8 H×W×3, RGB.
        amount: twice what middle gray loses, ≥ 0; from ½ on the darkest values are lost.

    Returns:
        The darker image, as new memory.

    Raises:
        InputError: `amount` is negative or not finite.
    """
    if not 0 <= amount < np.inf:
        raise InputError(f"amount is twice what middle gray loses, 0 or more; got {amount!r}.")
    levels = np.rint(255 * _bow(np.arange(256) / 255, -amount)).astype(np.uint8)
    return np.asarray(cv2.LUT(image, levels), np.uint8)


def s_curve(image: Image, *, amount: float) -> Image:
    """Change contrast by a cubic tone curve that keeps black, middle gray and white.

    The cubic passes through (0, 0), (0.3, ¼ − amount/4), (½, ½), (0.7, ¾ + amount/4) and (1, 1); on 0..1 it is
    ½ + (1 + b/0.672)·t − (b/0.168)·t³ with t = x − ½ and b = amount + 0.2, clipped, rounded. It is the identity
    at amount −0.2.

    Args:
        image: uint8 H×W×3, RGB.
        amount: above −0.2 contrast in the mid-tones grows, below it shrinks.

    Returns:
        The changed image, as new memory.

    Raises:
        InputError: `amount` is not finite.
    """
    if not np.isfinite(amount):
        raise InputError(f"amount is a finite number; got {amount!r}.")
    t, bend = np.arange(256) / 255 - 0.5, amount + 0.2
    value = np.clip(0.5 + (1 + bend / 0.672) * t - bend / 0.168 * t**3, 0, 1)
    return np.asarray(cv2.LUT(image, np.rint(255 * value).astype(np.uint8)), np.uint8)


@lru_cache(maxsize=1)
def _third_of_words() -> NDArray[np.float32]:
    """A third of the gray level of each word of linear light."""
    return (255 / 3 * srgb_of_words()).astype(np.float32)


def brighten(image: Image, *, amount: float, swapped: bool = False) -> Image:
    """Bend the tone curve up, for two thirds in RGB and for one in lightness.

    With q(x) = x + 2·amount·x·(1 − x), clipped, the result is (2·q(RGB) + RGB′)/3, where RGB′ is the image with
    CIE lightness L* replaced by 100·q(L*/100), clipped to the gamut.

    Args:
        image: uint8 H×W×3, RGB.
        amount: twice what middle gray gains, ≥ 0; from ½ on the lightest values are lost.
        swapped: read red as blue and blue as red for the conversion to L*a*b*.

    Returns:
        The lighter image, as new memory.

    Raises:
        InputError: `amount` is negative or not finite.
    """
    if not 0 <= amount < np.inf:
        raise InputError(f"amount is twice what middle gray gains, 0 or more; got {amount!r}.")
    curve = (255 * 2 / 3 * _bow(np.arange(256) / 255, amount)).astype(np.float32)
    third = _third_of_words()
    lighter = np.empty(image.shape, np.uint8)
    for rows in bands(*image.shape[:2]):
        part = image[rows]
        compressed = compressed_xyz(part, swapped=swapped)
        lightness = np.clip(1.16 * compressed[:, :, 1] - 0.16, 0, 1)
        gain = np.minimum(2 * amount * lightness * (1 - lightness), 1 - lightness) / np.float32(1.16)
        cv2.add(compressed, cv2.merge([gain, gain, gain]), dst=compressed)
        inside = third.take(linear_words(compressed, swapped=swapped), mode="wrap")
        lighter[rows] = cv2.convertScaleAbs(cv2.add(cv2.LUT(part, curve), inside))
    return lighter


@lru_cache(maxsize=1)
def _level_of_words() -> NDArray[np.uint8]:
    """The gray level of each word of linear light, rounded."""
    return np.rint(255 * srgb_of_words()).astype(np.uint8)


def sharpen_lightness(image: Image, *, amount: float, sigma: float, reach: int, swapped: bool = False) -> Image:
    """Sharpen CIE lightness by an unsharp mask: L* becomes L* + amount·(L* − blurred L*).

    The blur is a Gaussian on (2·reach + 1)² pixels, normalized; beyond the border the edge pixel is repeated.
    a* and b* stay; the result is clipped to the gamut.

    Args:
        image: uint8 H×W×3, RGB.
        amount: ≥ 0; 0 changes nothing but rounding.
        sigma: standard deviation of the blur in pixels, > 0.
        reach: half the side of the blur's window in pixels, ≥ 1.
        swapped: read red as blue and blue as red for the conversion to L*a*b*.

    Returns:
        The sharpened image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if not (0 <= amount < np.inf and 0 < sigma < np.inf and reach >= 1):
        raise InputError(
            f"sharpen_lightness needs amount 0 or more, sigma above 0 and reach 1 or more; got {amount!r}, {sigma!r}, "
            f"{reach!r}."
        )
    height, width = image.shape[:2]
    table = _level_of_words()
    sharp = np.empty(image.shape, np.uint8)
    for rows in bands(height, width, pixels=max(1 << 16, 4 * reach * width)):  # each needs `reach` rows more
        top, bottom = max(0, rows.start - reach), min(height, rows.stop + reach)
        wide = compressed_xyz(image[top:bottom], swapped=swapped)
        fy = np.ascontiguousarray(wide[:, :, 1])
        soft = cv2.GaussianBlur(fy, (2 * reach + 1, 2 * reach + 1), sigma, borderType=cv2.BORDER_REPLICATE)
        gain: Any = cv2.subtract(fy, soft, dst=soft)
        gain *= amount
        kept = slice(rows.start - top, rows.stop - top)
        cv2.add(wide, cv2.merge([gain, gain, gain]), dst=wide)
        sharp[rows] = table.take(linear_words(wide[kept], swapped=swapped), mode="wrap")
    return sharp


@lru_cache(maxsize=64)
def _gamma_levels(gamma: float) -> NDArray[np.uint8]:
    """Return the 256 output levels of x^gamma."""
    return np.asarray(np.floor(255 * (np.arange(256) / 255) ** gamma + 0.5), np.uint8)


def gamma_curve(image: Image, *, gamma: float) -> Image:
    """Raise every value, as a share of 255, to the power `gamma`, rounded: below 1 it lightens, above 1 it darkens.

    Args:
        image: uint8 H×W×3, RGB.
        gamma: exponent, > 0; 1 changes nothing.

    Returns:
        The lighter or darker image, as new memory.

    Raises:
        InputError: `gamma` is not positive and finite.
    """
    if not 0 < gamma < np.inf:
        raise InputError(f"gamma is an exponent, more than 0; got {gamma!r}.")
    return np.asarray(cv2.LUT(image, _gamma_levels(float(gamma))), np.uint8)


def channel_contrast(image: Image, *, factor: float) -> Image:
    """Draw every value towards its channel's mean, or away from it: m + factor·(x − m), clipped, rounded down.

    Each channel has its own mean m, so color casts stay.

    Args:
        image: uint8 H×W×3, RGB.
        factor: ≥ 0; 1 changes nothing, 0 leaves one color.

    Returns:
        The flatter or steeper image, as new memory.

    Raises:
        InputError: `factor` is negative or not finite.
    """
    if not 0 <= factor < np.inf:
        raise InputError(f"factor is a multiplier, 0 or more; got {factor!r}.")
    means = np.array(cv2.mean(image)[:3])
    levels = means + factor * (np.arange(256)[:, None] - means)
    table = np.clip(levels + 1e-9, 0, 255).astype(np.uint8)  # the billionth keeps whole numbers
    return np.asarray(cv2.LUT(image, table.reshape(1, 256, 3)), np.uint8)


@lru_cache(maxsize=16)
def _raised(amount: float) -> NDArray[np.uint8]:
    """Return what each level x becomes in a pixel of value V, at 256·V + x."""
    value = np.arange(256)[:, None] / 255
    share = np.divide(np.arange(256) / 255, value, out=np.ones((256, 256)), where=value > 0)
    return (np.clip(value + amount, 0, 1) * np.minimum(share, 1) * 255).astype(np.uint8).reshape(-1)


def raise_value(image: Image, *, amount: float) -> Image:
    """Add to the value of HSV, with hue and saturation kept: V becomes V + amount, clipped to 0..1, rounded down.

    V is the largest of the three channels on 0..1, and they all grow in proportion to it; black becomes gray.

    Args:
        image: uint8 H×W×3, RGB.
        amount: −1..1; below 0 it darkens.

    Returns:
        The lighter image, as new memory.

    Raises:
        InputError: `amount` is not in [−1, 1].
    """
    if not -1 <= amount <= 1:
        raise InputError(f"amount is added to a value in 0..1, so it lies in -1..1; got {amount!r}.")
    table = _raised(float(amount))
    lighter = np.empty(image.shape, np.uint8)
    for rows in bands(*image.shape[:2], pixels=1 << 15):
        part = np.ascontiguousarray(image[rows])
        red, green, blue = cv2.split(part)
        value = cv2.max(cv2.max(red, green), blue)
        place = np.asarray(cv2.merge([value, value, value]), np.uint16) << 8
        place |= part
        lighter[rows] = table.take(place, mode="wrap")
    return lighter
