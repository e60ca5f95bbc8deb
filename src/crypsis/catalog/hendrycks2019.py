"""ImageNet-C: nineteen corruptions, five severities each, for images of any size.

Source: Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations"
(ICLR 2019), in the variant for images of any size of Michaelis et al., "Benchmarking Robustness in Object Detection"
(2019): bethgelab/imagecorruptions, with which COCO-C, Pascal-C and Cityscapes-C were made. Parameters are the
published ones; sizes in pixels do not scale with the image. Results are cut to 8 bits, as there; a `note` says where a
row differs. The last four rows are those meant for validation.
"""

from __future__ import annotations

from typing import Any

from ..degradations import blur, codec, color, geometry, noise, tone, weather
from ..taxonomy import Cause, Effect, Group
from .entry import Entry
from .family import Family

__all__ = ["ENTRIES", "PAPER"]

PAPER = "Hendrycks_ICLR_2019"

_NOISE = (Cause.SENSOR, Effect.NOISE, Group.G1)
_BLUR = (Cause.SENSOR, Effect.BLUR, Group.G2)
_WEATHER = (Cause.ENVIRONMENT, Effect.WEATHER, Group.G8)


_row = Family(
    "imagenet-c", PAPER, "Hendrycks & Dietterich (ICLR 2019), as in bethgelab/imagecorruptions@c959e65 corruptions.py"
).row


def _each(names: str, *values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return one mapping from the names to each tuple of values."""
    return [dict(zip(names.split(), row, strict=True)) for row in values]


_FLAKES = "mean std zoom threshold blur_radius blur_sigma blend"

ENTRIES: tuple[Entry, ...] = (
    _row(
        "gaussian_noise",
        "Gaussian noise",
        noise.gaussian_noise,
        _NOISE,
        "σ in gray levels: the published 0.08, 0.12, 0.18, 0.26, 0.38 times 255.",
        *_each("sigma floor", (20.4, True), (30.6, True), (45.9, True), (66.3, True), (96.9, True)),
    ),
    _row(
        "shot_noise",
        "Shot noise",
        noise.shot_noise,
        _NOISE,
        "Poisson counts, independent in every channel.",
        *_each("photons", (60,), (25,), (12,), (5,), (3,)),
        aliases=("poisson_noise",),
    ),
    _row(
        "impulse_noise",
        "Impulse noise",
        noise.impulse_noise,
        _NOISE,
        "Salt and pepper in each channel for itself, so specks are colored. The published code cannot be seeded.",
        *_each("amount", (0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
        aliases=("salt_and_pepper",),
    ),
    _row(
        "defocus_blur",
        "Defocus blur",
        blur.disc_blur,
        _BLUR,
        "As published, the kernels of severities 4 and 5 sum to 1.013 and 1.011 and lighten the image as much.",
        *_each("radius alias_sigma", (3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
        aliases=("disc_blur",),
    ),
    _row(
        "glass_blur",
        "Frosted-glass blur",
        blur.glass_blur,
        _BLUR,
        "As published, pixels are copied and not exchanged: array views make the swap a copy, and a true swap would "
        "be milder by 1.6 dB at severity 3. Severities are not ordered: 2 is milder than 1 and 4 than 3 (fewer "
        "passes). Offsets average −½ pixel. The published code cannot be seeded.",
        *_each("sigma max_delta iterations", (0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
        aliases=("frosted_glass_blur",),
        field=blur.glass_field,
        monotone=False,
    ),
    _row(
        "motion_blur",
        "Motion blur",
        blur.one_sided_blur,
        _BLUR,
        "One-sided: content moves by 2.1, 3.7, 6.1, 9.0 and 11.4 pixels on average. In images with fewer pixels "
        "along a side than the blur is long (up to 41), the published code drops the rest of the kernel and darkens; "
        "here the edge is repeated as elsewhere. The original ImageNet-C used ImageMagick's kernel.",
        *_each("radius sigma", (10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
        field=blur.one_sided_field,
    ),
    _row(
        "zoom_blur",
        "Zoom blur",
        blur.zoom_blur,
        _BLUR,
        "As published for any size, enlarged layers are cut at the right and below only, up to a pixel off the "
        "center, and the image itself counts twice. 12, 16, 11, 13 and 11 layers; the drop in their number makes 3 "
        "milder than 2, or 5 than 4, for every seventh of the demo photographs.",
        *_each("step stop", (0.01, 1.11), (0.01, 1.16), (0.02, 1.21), (0.02, 1.26), (0.03, 1.31)),
        field=blur.zoom_field,
        monotone=False,
    ),
    _row(
        "snow",
        "Snow",
        weather.snow,
        _WEATHER,
        "Flakes have another size at each severity, so severities share few of their places. By PSNR, 2 and 3 are "
        "equal on average, and 3 is milder for a third of the demo photographs.",
        *_each(
            _FLAKES,
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
        monotone=False,
    ),
    _row(
        "frost",
        "Frost",
        weather.frost,
        _WEATHER,
        "The published photographs of frost are of unknown origin and not part of this package. Pictures with their "
        "sizes, mean colors and contrasts are computed instead; PSNR agrees within about 0.5 dB, pixels do not. To use "
        "the photographs: `get_entry('imagenet-c/frost').with_options(textures=FOLDER)`. By PSNR, 4 is milder than 3.",
        *_each("image_weight frost_weight", (1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
        monotone=False,
    ),
    _row(
        "fog",
        "Fog",
        weather.plasma_fog,
        _WEATHER,
        "Not aware of depth. Billows grow with the power of two above the longer side. An image that is black "
        "throughout stays black. By PSNR, 3 and 4 are equal on average.",
        *_each("weight wibble_decay", (1.5, 2), (2.0, 2), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4)),
        monotone=False,
    ),
    _row(
        "brightness",
        "Brightness",
        tone.raise_value,
        (Cause.RENDERING, Effect.ILLUMINATION, Group.G6),
        "Brightens, unlike the corruption of the same name of COD10K-C, which darkens.",
        *_each("amount", (0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
    ),
    _row(
        "contrast",
        "Contrast",
        tone.channel_contrast,
        (Cause.RENDERING, Effect.TEXTURE, Group.G10),
        "Towards the mean of each channel.",
        *_each("factor", (0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
    ),
    _row(
        "elastic_transform",
        "Elastic transform",
        geometry.elastic_transform,
        (Cause.RENDERING, Effect.GEOMETRY, Group.G7),
        "The displacement goes with the image's height on both axes, so portrait and landscape differ. The original "
        "ImageNet-C adds a random affine warp.",
        *_each("alpha", (12.5,), (16.25,), (21.25,), (25.0,), (30.0,)),
        aliases=("elastic",),
        field=geometry.elastic_field,
    ),
    _row(
        "pixelate",
        "Pixelate",
        geometry.box_pixelate,
        (Cause.RENDERING, Effect.RESOLUTION, Group.G3),
        "Sides of the small image are rounded down, to 1 at least; the published code fails where they are 0.",
        *_each("scale", (0.6,), (0.5,), (0.4,), (0.3,), (0.25,)),
        aliases=("pixelation",),
    ),
    _row(
        "jpeg_compression",
        "JPEG",
        codec.jpeg,
        (Cause.RENDERING, Effect.COMPRESSION, Group.G4),
        "Pillow's encoder with 4:2:0 chroma.",
        *_each("quality", (25,), (18,), (15,), (10,), (7,)),
        aliases=("jpeg",),
    ),
    _row(
        "speckle_noise",
        "Speckle noise",
        noise.multiplicative_noise,
        _NOISE,
        "In proportion to the value, independent in every channel. One of the four for validation.",
        *_each("sigma floor", (0.15, True), (0.2, True), (0.35, True), (0.45, True), (0.6, True)),
    ),
    _row(
        "gaussian_blur",
        "Gaussian blur",
        blur.gaussian_blur,
        _BLUR,
        "Kernels end at 4 σ. One of the four for validation.",
        *_each("sigma truncate floor", (1, 4, True), (2, 4, True), (3, 4, True), (4, 4, True), (6, 4, True)),
    ),
    _row(
        "spatter",
        "Spatter",
        weather.spatter,
        _WEATHER,
        "Water at severities 1 to 3, mud at 4 and 5. The group's cause is kept although the liquid is on the lens. "
        "Where no liquid is left the image stays as it is; the published code divides by zero there. Mud hides light "
        "scenes more than dark ones: by PSNR, 4 is milder than 3 for every seventh of the demo photographs. One of "
        "the four for validation.",
        *_each(
            "mean std blur_sigma threshold intensity",
            (0.65, 0.3, 4, 0.69, 0.6),
            (0.65, 0.3, 3, 0.68, 0.6),
            (0.65, 0.3, 2, 0.68, 0.5),
        ),
        *_each(
            "mean std blur_sigma threshold mask_sigma",
            (0.65, 0.3, 1, 0.65, 1.5),
            (0.67, 0.4, 1, 0.65, 1.5),
        ),
        monotone=False,
    ),
    _row(
        "saturate",
        "Saturation",
        color.saturate,
        (Cause.RENDERING, Effect.COLOR, Group.G5),
        "Severities 1 and 2 take color away and 3 to 5 exaggerate it, so they are not ordered. Gray, which has no "
        "hue, turns red at 4 and 5. One of the four for validation.",
        *_each("factor offset", (0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
        aliases=("saturation",),
        monotone=False,
    ),
)
"""The nineteen rows, in the order of the published list."""
