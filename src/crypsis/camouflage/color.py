"""CIE L*a*b* of sRGB pixels, and CIEDE2000: how different two colors look.

OpenCV's conversion of float32 interpolates in a table and is up to 0.45 off (4.9 and 5.0), too much for a
difference of similar colors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["delta_e2000", "lab"]

_LINEAR = np.arange(256) / 255
_LINEAR = np.where(_LINEAR > 0.04045, ((_LINEAR + 0.055) / 1.055) ** 2.4, _LINEAR / 12.92)
_TO_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return L* in [0, 100], a* and b* (D65, 2°) of sRGB pixels.

    Args:
        pixels: uint8 [..., 3], RGB.

    Returns:
        float64 [..., 3].
    """
    tristimulus = _LINEAR[pixels] @ (_TO_XYZ.T / _WHITE)
    x, y, z = np.moveaxis(np.where(tristimulus > 0.008856, np.cbrt(tristimulus), 7.787 * tristimulus + 16 / 116), -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def delta_e2000(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the CIEDE2000 color difference, kL = kC = kH = 1.

    The formula, and the pairs it is tested on, are those of Sharma, Wu and Dalal, "The CIEDE2000 color-difference
    formula" (Color Research & Application, 2005).

    Args:
        first: float64 [..., 3], L*a*b*.
        second: likewise.

    Returns:
        float64 [...], at least 0.
    """
    (l1, a1, b1), (l2, a2, b2) = (np.moveaxis(np.asarray(c, np.float64), -1, 0) for c in (first, second))
    chroma = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    a1, a2 = stretch * a1, stretch * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    gray = c1 * c2 == 0  # a color without hue takes the other's

    turn = (h2 - h1 + 180) % 360 - 180
    turn = np.where(gray, 0, np.where((turn == -180) & (h2 > h1), 180, turn))
    hue = np.where(gray, h1 + h2, (h1 + h2) / 2)
    hue = np.where(~gray & (np.abs(h1 - h2) > 180), hue + np.where(h1 + h2 < 360, 180, -180), hue)

    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    weight = (
        1
        - 0.17 * np.cos(np.radians(hue - 30))
        + 0.24 * np.cos(np.radians(2 * hue))
        + 0.32 * np.cos(np.radians(3 * hue + 6))
        - 0.20 * np.cos(np.radians(4 * hue - 63))
    )
    by_lightness = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2))
    by_chroma = (c2 - c1) / (1 + 0.045 * chroma)
    by_hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * chroma * weight)
    rotation = (
        -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    )
    squared = by_lightness**2 + by_chroma**2 + by_hue**2 + rotation * by_chroma * by_hue
    return np.asarray(np.sqrt(np.maximum(squared, 0)), np.float64)
