"""Strength: the measured distance between a clean image and its degraded version.

    clean = CleanImage(image)                     # once per image
    strengths = clean.strengths(degraded)         # once per degraded version; lpips=True adds LPIPS

All numbers are of uint8 RGB, all three channels, at the images' own size.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, UnknownNameError
from ..types import Image, check_image, check_pair
from .lpips import Features, lpips_distance, shared_network

__all__ = [
    "METRICS",
    "PSNR_CEILING",
    "CleanImage",
    "StrengthMetric",
    "Strengths",
    "capped",
    "check_metric",
    "psnr",
    "ssim",
]


@dataclass(frozen=True, slots=True)
class StrengthMetric:
    """What a metric of strength means.

    Attributes:
        title: what figures and sentences call it.
        rising: True where a stronger degradation has a greater number.
        unit: of the number; empty for a pure number.
        meaning: in one sentence, with every convention the number depends on.
    """

    title: str
    rising: bool
    unit: str
    meaning: str


METRICS: Mapping[str, StrengthMetric] = MappingProxyType(
    {
        "1-ssim": StrengthMetric(
            title="1−SSIM",
            rising=True,
            unit="",
            meaning="1 minus SSIM (Wang et al. 2004; RGB, mean of the channels, Gaussian window 11×11 of σ 1.5, "
            "K1 .01, K2 .03, range 255, windows that lie within the image): 0 where nothing changed, at most 2.",
        ),
        "psnr": StrengthMetric(
            title="PSNR",
            rising=False,
            unit="dB",
            meaning="Peak signal-to-noise ratio over all pixels and channels of 8-bit RGB: infinite where nothing "
            "changed, and the less the stronger.",
        ),
        "lpips": StrengthMetric(
            title="LPIPS",
            rising=True,
            unit="",
            meaning="LPIPS (Zhang et al. 2018; AlexNet, version 0.1, RGB at the images' own size): 0 where nothing "
            "changed.",
        ),
    }
)
"""Metrics of strength by name."""

PSNR_CEILING = 10 * math.log10(255**2 * 12)
"""58.92 dB, the PSNR of rounding to 8 bits (error uniform in ±½ gray level). In a mean over images every PSNR above
it, the infinite one of an unchanged image included, counts as this much."""


def capped(values: ArrayLike) -> NDArray[np.float64]:
    """Return values of PSNR (dB) as means take them: one above `PSNR_CEILING` is that. What is given is not changed."""
    return np.minimum(np.asarray(values, np.float64), PSNR_CEILING)


def check_metric(name: object) -> str:
    """Return the name of a metric of `METRICS`.

    Raises:
        UnknownNameError: there is no such metric.
    """
    if isinstance(name, str) and name in METRICS:
        return name
    raise UnknownNameError.among("strength metric", str(name), METRICS)


_C1 = (0.01 * 255) ** 2
_C2 = (0.03 * 255) ** 2
_RADIUS = 5
_ROWS = 64
"""Rows of a strip: few enough for the cache and to bound memory, many enough that 10 shared rows cost little."""


def _window() -> NDArray[np.float32]:
    """Return the Gaussian window of SSIM in one dimension: 11 weights of σ 1.5 that sum to 1."""
    weights = np.exp(-(np.arange(-_RADIUS, _RADIUS + 1) ** 2) / (2 * 1.5**2))
    # multiples of 2⁻¹⁷ lose less when float32 sums them, which halves the greatest error on flat areas
    weights = np.rint(weights / weights.sum() * 2**17) / 2**17
    weights[_RADIUS] += 1 - weights.sum()
    return np.asarray(weights, np.float32)


_WINDOW = _window()


@dataclass(frozen=True, slots=True)
class Strengths:
    """How far a degraded image is from its clean one.

    Attributes:
        psnr: peak signal-to-noise ratio in dB; infinite where the images are identical.
        ssim: structural similarity in [-1, 1]; 1 where the images are identical.
        lpips: distance from 0, where the images are identical; None where it was not asked for.
    """

    psnr: float
    ssim: float
    lpips: float | None = None

    def value(self, metric: str) -> float:
        """Return the number of a metric of `METRICS`.

        Raises:
            UnknownNameError: there is no such metric.
            InputError: it is `lpips`, which was not measured.
        """
        if check_metric(metric) == "lpips":
            if self.lpips is None:
                raise InputError("LPIPS was not measured here; ask for it with CleanImage.strengths(…, lpips=True).")
            return self.lpips
        return self.psnr if metric == "psnr" else 1.0 - self.ssim


class CleanImage:
    """A clean image, with what SSIM and LPIPS need of it alone computed once for all its degraded versions."""

    def __init__(self, image: Image) -> None:
        """Keep a clean image (uint8 H×W×3, RGB), which must not change as long as this object is used.

        What is kept beside it takes four times its bytes, and about 14 times more after the first use of LPIPS.

        Raises:
            ImageError: `image` is not uint8 H×W×3, or empty.
        """
        self._image = check_image(image)
        self._doubled = [means.copy() for means in _doubled_means(image)]

    def strengths(self, degraded: Image, *, lpips: bool = False) -> Strengths:
        """Return all metrics of a degraded version.

        Args:
            degraded: uint8, of the clean image's shape.
            lpips: measure LPIPS too, which takes about 15 times as long as the rest.

        Raises:
            ImageError: `degraded` has another type or shape.
        """
        distance = self.lpips(degraded) if lpips else None
        return Strengths(psnr(self._image, degraded), self.ssim(degraded), distance)

    def ssim(self, degraded: Image) -> float:
        """Return the structural similarity; see the function `ssim`."""
        check_pair(self._image, degraded)
        return _ssim(self._image, degraded, self._doubled)

    def lpips(self, degraded: Image) -> float:
        """Return LPIPS; see the function `crypsis.severity.lpips.lpips`."""
        check_pair(self._image, degraded)
        return lpips_distance(self._features, shared_network().features(degraded))

    @functools.cached_property
    def _features(self) -> Features:
        """What LPIPS needs of the clean image, from its first use on."""
        return shared_network().features(self._image)


def psnr(clean: Image, degraded: Image) -> float:
    """Return the peak signal-to-noise ratio 10 log₁₀(255² / MSE), in dB.

    The mean squared error is over all pixels and the three channels of RGB, nothing cropped.

    Args:
        clean: uint8 H×W×3, RGB.
        degraded: uint8, of the same shape.

    Returns:
        Above 0, or 0 for black against white; infinity for identical images.

    Raises:
        ImageError: an image has another type, or the two differ in shape.
    """
    check_pair(clean, degraded)
    # squares of 8-bit values sum to an integer, which some builds of OpenCV miss by a rounding
    squares = round(cv2.norm(clean, degraded, cv2.NORM_L2SQR))
    return 10.0 * math.log10(255.0**2 * clean.size / squares) if squares else math.inf


def ssim(clean: Image, degraded: Image) -> float:
    """Return the structural similarity of Wang, Bovik, Sheikh and Simoncelli (IEEE Trans. Image Processing, 2004).

    Gaussian window of 11×11 pixels, σ 1.5; K1 0.01, K2 0.03, range 255; population variances; each channel of RGB
    by itself, then their mean; over the windows that lie within the image. scikit-image computes the same with
    `structural_similarity(clean, degraded, gaussian_weights=True, sigma=1.5, use_sample_covariance=False,
    data_range=255, channel_axis=2)`; the two differ by less than 1e-5 on photographs. The rounding of float32 shows
    most where both images are flat and far apart: there by up to 7e-5.

    Along a side shorter than the window's 11 pixels, where no window fits, the image is continued by its mirror
    image (edge pixel repeated, as often as needed) and a window is centered on every pixel.

    Args:
        clean: uint8 H×W×3, RGB.
        degraded: uint8, of the same shape.

    Returns:
        A number in [-1, 1]; exactly 1 for identical images.

    Raises:
        ImageError: an image has another type, or the two differ in shape.
    """
    check_pair(clean, degraded)
    return _ssim(clean, degraded, _doubled_means(clean))


def _ssim(clean: Image, degraded: Image, doubled: Iterable[NDArray[np.float32]]) -> float:
    """Return the structural similarity, given the means of the clean image as `_doubled_means` yields them."""
    height, width = clean.shape[:2]
    scratch = _scratch(clean, 6)
    strips = zip(_strips(height), doubled, strict=True)
    lost = sum(_dissimilarity(clean[rows], degraded[rows], means, scratch) for rows, means in strips)
    windows = (height - 2 * _crop(height)) * (width - 2 * _crop(width))
    # float32 can carry the mean past its bounds by a rounding
    return float(min(max(1.0 - lost / (3 * windows), -1.0), 1.0))


def _dissimilarity(clean: Image, degraded: Image, doubled: NDArray[np.float32], scratch: NDArray[np.float32]) -> float:
    """Return the sum of 1 - SSIM over the windows of a strip.

    With d = x - y and s = x + y, the two factors of SSIM are 1 - 2l and 1 - 2c, where
    l = d̄² / (s̄² + d̄² + 2 C1) and c = var d / (var s + var d + 2 C2). So equal images give 1 exactly, a small
    difference is not the difference of large numbers, and no factor leaves [-1, 1].
    """
    difference, total, *means = scratch[:, : len(clean)]
    cv2.subtract(clean, degraded, dst=difference, dtype=cv2.CV_32F)
    _add(clean, degraded, total)
    c1 = _means(difference, means[0])  # d̄, then l
    d2 = _means(np.multiply(difference, difference, out=difference), means[1])  # mean of d², then var d, then c
    s2 = _means(np.multiply(total, total, out=total), means[2])  # mean of (s - 255)², then var s
    s1 = np.subtract(doubled, c1, out=means[3][: len(c1)])  # s̄ - 255, as the mean is linear
    np.multiply(c1, c1, out=c1)
    d2 -= c1
    s2 -= np.multiply(s1, s1, out=total[: len(s1)])
    s2 += d2
    s2 += np.float32(2 * _C2)
    d2 /= s2
    s1 += np.float32(255)
    np.multiply(s1, s1, out=s1)
    s1 += c1
    s1 += np.float32(2 * _C1)
    c1 /= s1
    # 1 - (1 - 2l)(1 - 2c) = 2l + 2c(1 - 2l)
    lost = _total(c1)
    c1 *= np.float32(-2)
    c1 += np.float32(1)
    d2 *= c1
    return 2 * (lost + _total(d2))


def _crop(side: int) -> int:
    """Return how many pixels at each end of a side carry no window."""
    return _RADIUS if side > 2 * _RADIUS else 0


def _strips(height: int) -> Iterator[slice]:
    """Yield rows of an image, overlapping so that each window lies in exactly one strip."""
    if not _crop(height):
        yield slice(0, height)
        return
    windows = height - 2 * _RADIUS
    for top in range(0, windows, _ROWS):
        yield slice(top, min(top + _ROWS, windows) + 2 * _RADIUS)


def _scratch(image: Image, count: int) -> NDArray[np.float32]:
    """Return room for `count` strips of an image; new memory for every strip would cost as much as the work in it."""
    height, width, channels = image.shape
    return np.empty((count, min(height, _ROWS + 2 * _RADIUS), width, channels), np.float32)


def _doubled_means(image: Image) -> Iterator[NDArray[np.float32]]:
    """Yield for each strip the means of 2x - 255, from which those of x + y - 255 follow for any y.

    What is yielded is overwritten by the next.
    """
    scratch = _scratch(image, 2)
    for rows in _strips(len(image)):
        total, means = scratch[:, : rows.stop - rows.start]
        _add(image[rows], image[rows], total)
        yield _means(total, means)


def _add(x: Image, y: Image, out: NDArray[np.float32]) -> None:
    """Write x + y - 255; centered, since squares of small numbers lose less when they are averaged."""
    cv2.addWeighted(x, 1, y, 1, -255, dst=out, dtype=cv2.CV_32F)


def _means(values: NDArray[np.float32], out: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return, as a part of `out`, the weighted mean over every window within the rows; columns are not cropped."""
    cv2.sepFilter2D(values, cv2.CV_32F, _WINDOW, _WINDOW, dst=out, borderType=cv2.BORDER_REFLECT)
    crop = _crop(len(values))
    return out[crop : len(values) - crop]


def _total(values: NDArray[np.float32]) -> float:
    """Return the sum, in double precision, over the windows that lie within the columns."""
    width = values.shape[1]
    return sum(cv2.sumElems(values[:, _crop(width) : width - _crop(width)]))
