"""COD10K-C: eight corruptions of camouflaged-object photographs, five severities each.

Source: "COD10K-C: Benchmarking Robustness of Camouflaged Object Detection Under Natural Image Corruptions"
(arXiv 2606.02603, 2026), section 3.2. The paper gives the parameters of seven rows; those of rain, and whatever
a `note` calls open, are decisions made here. Rows are in the order of the paper's Table 3.
"""

from __future__ import annotations

from ..degradations import blur, codec, noise, tone, weather
from ..taxonomy import Cause, Effect, Group
from .entry import Entry
from .family import Family

__all__ = ["ENTRIES", "PAPER"]

PAPER = "COD10K-C"


_row = Family("cod10k-c", PAPER, "COD10K-C (arXiv 2606.02603), section 3.2").row


_REDUCTION = (0.85, 0.70, 0.55, 0.40, 0.30)

ENTRIES: tuple[Entry, ...] = (
    _row(
        "brightness",
        "Brightness",
        tone.brightness,
        (Cause.RENDERING, Effect.ILLUMINATION, Group.G6),
        "Darkens, unlike the ImageNet-C corruption of the same name, which brightens.",
        aliases=("darkness",),
        factor=_REDUCTION,
    ),
    _row(
        "contrast",
        "Contrast",
        tone.contrast,
        (Cause.RENDERING, Effect.TEXTURE, Group.G10),
        "The paper does not say about which level contrast is reduced; here it is the image's mean luma, as in "
        "Pillow's ImageEnhance.Contrast.",
        factor=_REDUCTION,
    ),
    _row(
        "fog",
        "Fog",
        weather.white_veil,
        (Cause.ENVIRONMENT, Effect.WEATHER, Group.G8),
        'The paper\'s "additive blending on a white canvas" is read as the convex blend (1 − α)·x + α·255; plain '
        "addition would clip.",
        alpha=(0.12, 0.20, 0.28, 0.36, 0.44),
    ),
    _row(
        "rain",
        "Rain",
        weather.rain,
        (Cause.ENVIRONMENT, Effect.WEATHER, Group.G8),
        'The paper says "synthetic streaks at different density and length" with mild blur (sections 3.2, 5.4) and '
        "gives no numbers; these were chosen by eye on photographs. On twelve of them they measure 33.6, 28.4, 24.6, "
        "21.9 and 19.6 dB PSNR. Pixel sizes are for a short side of 480 and scale with the image.",
        source="COD10K-C (arXiv 2606.02603), sections 3.2 and 5.4; parameters by Crypsis",
        density=(0.0010, 0.0016, 0.0024, 0.0034, 0.0046),
        length=(24, 30, 36, 42, 48),
        thickness=(1.0, 1.1, 1.2, 1.3, 1.4),
        opacity=(0.50, 0.54, 0.58, 0.62, 0.66),
        veil=(0.97, 0.94, 0.91, 0.88, 0.85),
        blur=(0.4, 0.5, 0.65, 0.8, 1.0),
    ),
    _row(
        "jpeg_compression",
        "JPEG",
        codec.jpeg,
        (Cause.RENDERING, Effect.COMPRESSION, Group.G4),
        "The paper does not name the encoder; here it is libjpeg-turbo with 4:2:0 chroma, as in Pillow.",
        aliases=("jpeg",),
        quality=(70, 55, 40, 30, 20),
    ),
    _row(
        "gaussian_noise",
        "Gaussian noise",
        noise.gaussian_noise,
        (Cause.SENSOR, Effect.NOISE, Group.G1),
        "The paper's σ is read in gray levels (0..255 scale).",
        sigma=(8, 16, 24, 32, 40),
    ),
    _row(
        "gaussian_blur",
        "Gaussian blur",
        blur.gaussian_blur,
        (Cause.SENSOR, Effect.BLUR, Group.G2),
        "The paper's radius is read as Pillow's, which is the standard deviation in pixels. It does not scale with "
        "the image.",
        sigma=(0.8, 1.2, 1.6, 2.0, 2.5),
    ),
    _row(
        "motion_blur",
        "Motion blur",
        blur.motion_blur,
        (Cause.SENSOR, Effect.BLUR, Group.G2),
        "The paper does not name the border rule; here the image is mirrored (reflect-101). The kernel is in pixels "
        "and does not scale with the image.",
        kernel=(3, 5, 7, 9, 11),
    ),
)
"""The eight rows."""
