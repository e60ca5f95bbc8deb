"""Liu et al. 2024: failures of real cameras, from the lens to the board; sixteen rows and an extra one.

Source: Liu et al., "Benchmarking Object Detection Robustness against Real-World Corruptions" (IJCV 2024), in the
form in which the library imdeg (commit 952d6b3; Becker et al. 2026, arXiv 2605.15906) runs it. The paper has five
levels for each corruption, whose numbers we have not found; the levels here are imdeg's linear ramps between two
values, which it calls placeholders. imdeg has "sensor broken" where the paper has synchronization exceptions; that
one stands last, as an extra.

The authors' code has no license and was not used: operators are written from a description of what it computes.
"""

from __future__ import annotations

from ..degradations import blur, color, occlusion, sensor, tone, transfer, weather
from ..taxonomy import Cause, Effect, Group
from .entry import Entry
from .family import Family

__all__ = ["ENTRIES", "PAPER"]

PAPER = "Liu_IJCV_2024"


_row = Family("real-camera", PAPER, "Liu et al. (IJCV 2024); imdeg 952d6b3, backends/Liu_IJCV_2024 (levels)").row


_DENSITY = (0.05, 0.10, 0.15, 0.20, 0.25)
_BLACK_LEVEL = (64, 112, 160, 207, 255)
_FRACTION = (0.05, 0.1875, 0.325, 0.4625, 0.6)
_DEFECTS = (5, 14, 22, 31, 40)

ENTRIES: tuple[Entry, ...] = (
    _row(
        "fog",
        "Fog (by distance)",
        weather.distance_fog,
        (Cause.ENVIRONMENT, Effect.WEATHER, Group.G8),
        "Depends on the image's size in pixels: larger images are foggier. The fog darkens from 0.80 to 0.60 as it "
        "thickens, so that its strength is not ordered. The published transmission exceeds 1 far from the center of "
        "large images (from 1920×1080); here it ends at 1.",
        aliases=("F", "distance_fog"),
        monotone=False,
        density=_DENSITY,
        airlight=(0.80, 0.75, 0.70, 0.65, 0.60),
    ),
    _row(
        "lens_obstruction",
        "Lens obstruction (drops)",
        occlusion.lens_drops,
        (Cause.SENSOR, Effect.OCCLUSION, Group.G9),
        "Dimmed to 0.7 of its luma at every level, which outweighs the drops; drops shrink as their number grows, so "
        "that the levels are nearly equal. The cause is S, unlike the group's E: the drops are on the lens. Windows "
        "that would leave a small image are moved inside.",
        aliases=("LO", "lens_drops", "raindrops"),
        monotone=False,
        drops=(50, 138, 225, 312, 400),
        scale=(0.075, 0.0662, 0.0575, 0.0488, 0.04),
        luma=(0.7,) * 5,
    ),
    _row(
        "focus_motor_damage",
        "Focus motor damage",
        blur.gaussian_blur,
        (Cause.SENSOR, Effect.BLUR, Group.G2),
        "Kernels of 3, 9, 15, 23 and 29 pixels with the σ that OpenCV derives from the size, mirrored at the border "
        "(reflect-101). OpenCV's kernel of 3 is (1, 2, 1)/4, whose σ is 0.849, not the 0.8 of its formula.",
        aliases=("FM-D", "defocus"),
        sigma=(0.8493218002880191, 1.7, 2.6, 3.8, 4.7),
        truncate=(1.1, 2.3, 2.6, 2.8, 2.9),
        mirror=(True,) * 5,
    ),
    _row(
        "ccd_sensor_damage",
        "CCD sensor damage",
        sensor.blooming_columns,
        (Cause.SENSOR, Effect.NOISE, Group.G1),
        "Numbers and sizes are in pixels: the larger the image, the weaker.",
        aliases=("CCD-D", "ccd_damage"),
        defects=_DEFECTS,
    ),
    _row(
        "cmos_sensor_damage",
        "CMOS sensor damage",
        sensor.dead_lines,
        (Cause.SENSOR, Effect.NOISE, Group.G1),
        "Numbers and sizes are in pixels: the larger the image, the weaker.",
        aliases=("CMOS-D", "cmos_damage"),
        defects=_DEFECTS,
    ),
    _row(
        "insufficient_blc",
        "Insufficient black-level correction",
        color.color_veil,
        (Cause.RENDERING, Effect.ILLUMINATION, Group.G6),
        "A red veil over an image dimmed to 0.7 at every level, rather than a lifted black; not ordered in strength "
        "on dark images.",
        aliases=("I-BLC", "insufficient_black_level_correction"),
        monotone=False,
        color=tuple((level, 0, 0) for level in _BLACK_LEVEL),
        alpha=(0.3,) * 5,
    ),
    _row(
        "excessive_blc",
        "Excessive black-level correction",
        color.color_veil,
        (Cause.RENDERING, Effect.ILLUMINATION, Group.G6),
        "A green veil over an image dimmed to 0.7 at every level, rather than a crushed black; not ordered in "
        "strength on dark images.",
        aliases=("E-BLC", "excessive_black_level_correction"),
        monotone=False,
        color=tuple((0, level, 0) for level in _BLACK_LEVEL),
        alpha=(0.3,) * 5,
    ),
    _row(
        "lens_shading_damage",
        "Lens-shading correction damage",
        sensor.lens_shading,
        (Cause.RENDERING, Effect.ILLUMINATION, Group.G6),
        "Corners are black at every level; mosaic and demosaicing alone change every edge. imdeg cuts images with "
        "an odd side to even ones and stretches the result back; here nothing is stretched.",
        aliases=("LSC-D", "lens_shading_correction_damage", "vignetting"),
        falloff=(0.1, 0.275, 0.45, 0.625, 0.8),
    ),
    _row(
        "awb_damage",
        "White-balance damage",
        color.gray_world,
        (Cause.RENDERING, Effect.COLOR, Group.G5),
        "Balances by the gray-world rule first, so that the strength depends on the image's own cast; on many images "
        "level 1 is the strongest.",
        aliases=("AWB-D", "automated_white_balance_damage", "auto_white_balance_damage", "white_balance_damage"),
        monotone=False,
        excess=(5, 10, 15, 20, 25),
    ),
    _row(
        "bad_pixel_correction",
        "Bad-pixel correction damage",
        sensor.dead_pixels,
        (Cause.RENDERING, Effect.NOISE, Group.G1),
        "The cause is R, unlike the group's S: the correction fails. Level 2 is already far stronger than level 1 "
        "(16 % against 1 % of the pixels). Pixels are drawn one by one; the published number of them is exact.",
        aliases=("BPC-D", "bad_pixel_correction_damage", "dead_pixels"),
        fraction=(0.01, 0.1575, 0.305, 0.4525, 0.6),
    ),
    _row(
        "cfa_interpolation_damage",
        "Color-filter-array interpolation damage",
        sensor.gray_pixels,
        (Cause.RENDERING, Effect.TEXTURE, Group.G10),
        "Scattered gray pixels; no color filter is involved, and gray images do not change. Pixels are drawn one by "
        "one; the published number of them is exact.",
        aliases=("CFAI-D", "color_filter_array_interpolation_damage", "demosaicing_damage"),
        fraction=_FRACTION,
    ),
    _row(
        "gamma_damage",
        "Gamma-correction damage",
        tone.gamma_curve,
        (Cause.RENDERING, Effect.TEXTURE, Group.G10),
        "Level 1 (γ = 0.5) lightens strongly, level 2 (γ = 1.125) is almost no change, the others darken.",
        aliases=("GC-D", "gamma_correction_damage", "gamma"),
        monotone=False,
        gamma=(0.5, 1.125, 1.75, 2.375, 3.0),
    ),
    _row(
        "color_space_conversion_damage",
        "Color-space conversion damage",
        sensor.ycbcr_offset,
        (Cause.RENDERING, Effect.COLOR, Group.G5),
        "As in imdeg, values end at 0; the authors' own code wraps around, which gives other colors. Pixels are "
        "drawn one by one; the published number of them is exact.",
        aliases=("CSC-D",),
        fraction=_FRACTION,
    ),
    _row(
        "memory_exceptions",
        "Memory exceptions",
        transfer.zeroed_bytes,
        (Cause.TRANSFER, Effect.TEMPORAL, Group.G11),
        "What one sees is noise. This is imdeg's; the paper blacks out a box whose size comes from the smallest "
        "annotated object.",
        aliases=("ME", "memory_damage"),
        threshold=(16, 32, 64, 128, 200),
    ),
    _row(
        "transfer_harness_exceptions",
        "Transfer-harness exceptions",
        transfer.cleared_bits,
        (Cause.TRANSFER, Effect.TEMPORAL, Group.G11),
        "What one sees is noise in rows. The area hit is the square of the share. Dark values are multiplied up to "
        "128 times, because the published code writes binary digits from the left of the byte.",
        aliases=("THE", "transfer_harness_damage"),
        share=(0.05, 0.1625, 0.275, 0.3875, 0.5),
    ),
    _row(
        "sensor_broken",
        "Broken sensor",
        sensor.broken_sensor,
        (Cause.TRANSFER, Effect.TEMPORAL, Group.G11),
        "In imdeg, not among the paper's sixteen. Filed under transfer as there, though a sensor fails and what one "
        "sees is occlusion. Level 1 (three faint spots) is almost invisible. The band begins at level 2, the leak at "
        "level 3. Sizes are in pixels.",
        aliases=("broken_sensor",),
        spots=(3, 6, 9, 12, 15),
        spot_weight=(0.2, 0.35, 0.5, 0.65, 0.8),
        band_strength=(0.0, 0.4, 0.6, 0.8, 1.0),
        leak_half_width=(0, 0, 25, 32, 40),
    ),
    _row(
        "synchronization_exceptions",
        "Synchronization exceptions",
        transfer.lost_rows,
        (Cause.TRANSFER, Effect.TEMPORAL, Group.G11),
        "What one sees is displaced content. The paper takes sizes from the smallest annotated object, which "
        "unlabeled images do not have and which leaks labels into the image; here they are shares of the height, "
        "with levels by Crypsis, and lost rows are shared equally among the breaks, so that levels are ordered.",
        aliases=("SE", "lost_rows"),
        source="Liu et al. (IJCV 2024); operator and levels by Crypsis",
        field=transfer.lost_rows_field,
        extra=True,
        fraction=(0.02, 0.04, 0.07, 0.11, 0.16),
        breaks=(1, 2, 3, 4, 6),
    ),
)
"""The sixteen rows, and the extra one."""
