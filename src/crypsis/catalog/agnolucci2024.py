"""ARNIQA: twenty-four distortions of image quality assessment, five severities each.

Source: Agnolucci, Galteri, Bertini, Del Bimbo, "ARNIQA: Learning Distortion Manifold for Image Quality Assessment"
(WACV 2024), whose distortions follow those of KADID-10k (Lin, Hosu, Saupe, QoMEX 2019). Parameters and algorithms
are those of the authors' code (miccunifi/ARNIQA), its defects included where they shape the result; each `note` says
so. That code works on floats in 0..1; here the result is rounded to the nearest of 256 levels.
"""

from __future__ import annotations

import math

from ..degradations import blur, codec, color, geometry, noise, occlusion, tone
from ..taxonomy import Cause, Effect, Group
from .entry import Entry
from .family import Family

__all__ = ["ENTRIES", "PAPER"]

PAPER = "Agnolucci_WACV_2024"

_NOISE = (Cause.SENSOR, Effect.NOISE, Group.G1)
_BLUR = (Cause.SENSOR, Effect.BLUR, Group.G2)
_CODING = (Cause.RENDERING, Effect.COMPRESSION, Group.G4)
_COLOR = (Cause.RENDERING, Effect.COLOR, Group.G5)
_EXPOSURE = (Cause.RENDERING, Effect.ILLUMINATION, Group.G6)
_GEOMETRY = (Cause.RENDERING, Effect.GEOMETRY, Group.G7)
_TEXTURE = (Cause.RENDERING, Effect.TEXTURE, Group.G10)


_row = Family(
    "arniqa", PAPER, "ARNIQA (WACV 2024), miccunifi/ARNIQA@f60c0f2 utils/distortions.py and distortion_range"
).row


def _sigma(*variances: float) -> tuple[float, ...]:
    """Return standard deviations in gray levels for variances on the 0..1 scale."""
    return tuple(255 * math.sqrt(v) for v in variances)


_SWAPPED = "The published code feeds blue, green, red to a conversion that expects red, green, blue; so does this row. "

ENTRIES: tuple[Entry, ...] = (
    _row(
        "gaublur",
        "Gaussian blur",
        blur.gaussian_blur,
        _BLUR,
        "Severity 1 is the exact identity: its kernel has one weight above zero. Kernels end at 2 σ.",
        aliases=("gaussian_blur",),
        sigma=(0.1, 0.5, 1.0, 2.0, 5.0),
        truncate=2.0,
    ),
    _row(
        "lensblur",
        "Lens blur",
        blur.lens_blur,
        _BLUR,
        "The published disk kernel is wrong for radius 2 and more: weights on its rim go down to −0.05, so that edges "
        "ring. It is kept.",
        aliases=("lens_blur",),
        radius=(1, 2, 4, 6, 8),
    ),
    _row(
        "motionblur",
        "Motion blur",
        blur.line_blur,
        _BLUR,
        "Severity 1 is the exact identity. The direction is random, whole degrees; content does not move.",
        aliases=("motion_blur",),
        length=(1, 2, 4, 6, 10),
    ),
    _row(
        "colordiff",
        "Color diffusion",
        color.lab_diffusion,
        _COLOR,
        _SWAPPED + "Blurred a* and b* are also multiplied by up to 12: from severity 3 on most colors leave the gamut.",
        aliases=("color_diffusion",),
        factor=(1, 3, 6, 8, 12),
        sigma=(3.5, 6.5, 11.0, 14.0, 20.0),
        truncate=2.0,
        swapped=True,
    ),
    _row(
        "colorshift",
        "Color shift",
        color.color_shift,
        _COLOR,
        "Three defects of the published code are kept: always the green channel, to the right and down; border and "
        "shift exchange their axes, so that rows or columns of the far side come in; and the clipping of the blend "
        "weight at percentiles sets two weights of each row to 0 and 1 instead. Only green moves, and labels "
        "stay with red and blue under either choice of truth.",
        aliases=("color_shift",),
        field=color.color_shift_field,
        amount=(1, 3, 6, 8, 12),
    ),
    _row(
        "colorsat1",
        "Color saturation 1 (HSV)",
        color.hsv_saturation,
        _COLOR,
        "Severity 4 is gray; severity 5, a negative factor, turns colors into their complements.",
        aliases=("color_saturation_1",),
        factor=(0.4, 0.2, 0.1, 0.0, -0.4),
    ),
    _row(
        "colorsat2",
        "Color saturation 2 (Lab)",
        color.lab_chroma,
        _COLOR,
        _SWAPPED + "Severity 1 has factor 1 and differs from the image by rounding down only.",
        aliases=("color_saturation_2",),
        factor=(1, 2, 3, 6, 9),
        swapped=True,
    ),
    _row(
        "jpeg2000",
        "JPEG 2000",
        codec.jpeg2000,
        _CODING,
        "The published code asks OpenJPEG for eight resolutions and fails where a side is under 128 pixels; here such "
        "images get as many as fit. KADID-10k's last level is 400, not 170. imdeg uses another wavelet and a color "
        "transform, which cost 4 dB less at severity 1.",
        aliases=("jpeg2000_compression",),
        ratio=(16, 32, 45, 120, 170),
    ),
    _row(
        "jpeg",
        "JPEG",
        codec.jpeg,
        _CODING,
        "libjpeg-turbo with 4:2:0 chroma.",
        aliases=("jpeg_compression",),
        quality=(43, 36, 24, 7, 4),
    ),
    _row(
        "whitenoise",
        "White noise",
        noise.gaussian_noise,
        _NOISE,
        "The published parameter is a variance on the 0..1 scale: 0.001, 0.002, 0.003, 0.005, 0.01.",
        aliases=("white_noise",),
        sigma=_sigma(0.001, 0.002, 0.003, 0.005, 0.01),
    ),
    _row(
        "whitenoiseCC",
        "White noise in color components",
        noise.ycbcr_noise,
        _NOISE,
        "The published parameter is a variance on the 0..1 scale: 0.0001, 0.0005, 0.001, 0.002, 0.003. The noise is "
        "added to full-range YCbCr.",
        aliases=("white_noise_in_color_component",),
        sigma=_sigma(0.0001, 0.0005, 0.001, 0.002, 0.003),
    ),
    _row(
        "impulsenoise",
        "Impulse noise",
        noise.salt_and_pepper,
        _NOISE,
        "Single channels of pixels are hit, so impulses are colored.",
        aliases=("impulse_noise",),
        density=(0.001, 0.005, 0.01, 0.02, 0.03),
    ),
    _row(
        "multnoise",
        "Multiplicative noise",
        noise.multiplicative_noise,
        _NOISE,
        "The published parameter is the factor's variance: 0.001, 0.005, 0.01, 0.02, 0.05. KADID-10k draws it from a "
        "uniform distribution.",
        aliases=("multiplicative_noise", "multiplicative_gaussian_noise"),
        sigma=tuple(math.sqrt(v) for v in (0.001, 0.005, 0.01, 0.02, 0.05)),
    ),
    _row(
        "brighten",
        "Brighten",
        tone.brighten,
        _EXPOSURE,
        _SWAPPED + "At severity 5 all values above 0.45 of the range are saturated in the RGB part.",
        aliases=("brightness_increase",),
        amount=(0.1, 0.2, 0.4, 0.7, 1.1),
        swapped=True,
    ),
    _row(
        "darken",
        "Darken",
        tone.darken,
        _EXPOSURE,
        "In RGB alone, unlike its counterpart. At severity 5 all values below 0.375 of the range go to 0.",
        aliases=("brightness_decrease",),
        amount=(0.05, 0.1, 0.2, 0.4, 0.8),
    ),
    _row(
        "meanshift",
        "Mean shift",
        tone.linear,
        _EXPOSURE,
        "Severity 1 is the exact identity, and the sign alternates: 0, +0.08, −0.08, +0.15, −0.15 of the range. The "
        "order is the published one; severities 2 and 3 are as strong as each other, and so are 4 and 5.",
        aliases=("mean_shift",),
        monotone=False,
        scale=1.0,
        offset=tuple(255 * a for a in (0.0, 0.08, -0.08, 0.15, -0.15)),
    ),
    _row(
        "jitter",
        "Jitter",
        geometry.jitter,
        _GEOMETRY,
        "Five passes; over all of them content is displaced by √5 σ along each axis. In the published code the picture "
        "moves by a pixel in a pass whose two largest displacements round up to different margins, and values far out "
        "of range come from divisions by almost nothing at the border; here neither happens. Passes are in 8 bits.",
        field=geometry.jitter_field,
        sigma=(0.05, 0.1, 0.2, 0.5, 1.0),
    ),
    _row(
        "noneccpatch",
        "Non-eccentricity patch",
        geometry.displaced_patches,
        _GEOMETRY,
        "Patches are 16×16 pixels, so strength depends on the size of the image. A patch that overlaps its own source "
        "comes out as the published code makes it on CPUs. That code fails or leaves its range where a side is under "
        "48 pixels; here margin, reach and patch shrink.",
        aliases=("non_eccentricity_patch",),
        field=geometry.displaced_patches_field,
        patches=(20, 40, 60, 80, 100),
        side=16,
    ),
    _row(
        "pixelate",
        "Pixelate",
        geometry.nearest_resample,
        (Cause.RENDERING, Effect.RESOLUTION, Group.G3),
        "The published parameter is 0.95 − scale to the power 5/3: 0.01, 0.05, 0.1, 0.2, 0.5. Samples are not "
        "centered, so content drifts by up to a block. Filed under resolution; imdeg gives it that effect but the "
        "group of geometry.",
        field=geometry.nearest_resample_field,
        scale=tuple(0.95 - s**0.6 for s in (0.01, 0.05, 0.1, 0.2, 0.5)),
    ),
    _row(
        "quantization",
        "Quantization",
        codec.quantize,
        _CODING,
        "The published code stretches the levels present over the whole range, so contrast depends on the image's "
        "extremes. It makes an image of one level white; here it is quantized.",
        levels=(20, 16, 13, 10, 7),
    ),
    _row(
        "colorblock",
        "Color block",
        occlusion.color_blocks,
        (Cause.RENDERING, Effect.OCCLUSION, Group.G9),
        "Caused by rendering, unlike other occlusions: nothing stands before the lens. Blocks are 32×32 pixels, so "
        "strength depends on the size of the image. The published code fails where a side is under 32 pixels; here "
        "blocks are half as long as such a side.",
        aliases=("color_block",),
        blocks=(2, 4, 6, 8, 10),
        side=32,
    ),
    _row(
        "highsharpen",
        "Over-sharpening",
        tone.sharpen_lightness,
        _TEXTURE,
        _SWAPPED + "The published code takes half the window, 6, for the σ of its blur, where 3 was meant.",
        aliases=("high_sharpen",),
        amount=(1, 2, 3, 6, 12),
        sigma=6.0,
        reach=6,
        swapped=True,
    ),
    _row(
        "lincontrchange",
        "Contrast change (cubic)",
        tone.s_curve,
        _TEXTURE,
        'The cubic curve, in spite of the name "linear". The identity is at amount −0.2, so the published order 0, '
        "0.15, −0.4, 0.3, −0.6 has the strengths 0.2, 0.35, 0.2, 0.5, 0.4: severity 3 flattens as much as 1 steepens.",
        aliases=("linear_contrast_change",),
        monotone=False,
        amount=(0.0, 0.15, -0.4, 0.3, -0.6),
    ),
    _row(
        "nonlincontrchange",
        "Contrast change (linear)",
        tone.linear,
        _TEXTURE,
        'A linear compression about middle gray, in spite of the name "nonlinear": to 0.8, 0.6, 0.4, 0.2 and 0.1 of '
        "the range. KADID-10k does not have it.",
        aliases=("nonlinear_contrast_change",),
        scale=(0.8, 0.6, 0.4, 0.2, 0.1),
        offset=tuple(255 * (0.5 - h) for h in (0.4, 0.3, 0.2, 0.1, 0.05)),
    ),
)
"""The twenty-four rows."""
