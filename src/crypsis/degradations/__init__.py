"""Operators: pure functions from an image to a degraded image.

Every operator takes a uint8 H×W×3 RGB array of any size from 1×1 and returns a new one of the same shape. The
input is never changed and may be read-only or not contiguous. Parameters are keyword-only and physical (gray
levels, pixels, fractions); an operator knows no paper and no severity. It takes `rng`, a
`numpy.random.Generator`, exactly when it draws random numbers, and reads no other source of them.
"""

from .blur import disc_blur, gaussian_blur, glass_blur, lens_blur, line_blur, motion_blur, one_sided_blur, zoom_blur
from .codec import jpeg, jpeg2000, quantize
from .color import color_shift, color_veil, gray_world, hsv_saturation, lab_chroma, lab_diffusion, saturate
from .geometry import box_pixelate, displaced_patches, elastic_transform, jitter, nearest_resample
from .noise import gaussian_noise, impulse_noise, multiplicative_noise, salt_and_pepper, shot_noise, ycbcr_noise
from .occlusion import color_blocks, lens_drops
from .sensor import blooming_columns, broken_sensor, dead_lines, dead_pixels, gray_pixels, lens_shading, ycbcr_offset
from .tone import (
    brighten,
    brightness,
    channel_contrast,
    contrast,
    darken,
    gamma_curve,
    linear,
    raise_value,
    s_curve,
    sharpen_lightness,
)
from .transfer import cleared_bits, lost_rows, zeroed_bytes
from .weather import distance_fog, frost, plasma_fog, rain, snow, spatter, white_veil

__all__ = [
    "blooming_columns",
    "box_pixelate",
    "brighten",
    "brightness",
    "broken_sensor",
    "channel_contrast",
    "cleared_bits",
    "color_blocks",
    "color_shift",
    "color_veil",
    "contrast",
    "darken",
    "dead_lines",
    "dead_pixels",
    "disc_blur",
    "displaced_patches",
    "distance_fog",
    "elastic_transform",
    "frost",
    "gamma_curve",
    "gaussian_blur",
    "gaussian_noise",
    "glass_blur",
    "gray_pixels",
    "gray_world",
    "hsv_saturation",
    "impulse_noise",
    "jitter",
    "jpeg",
    "jpeg2000",
    "lab_chroma",
    "lab_diffusion",
    "lens_blur",
    "lens_drops",
    "lens_shading",
    "line_blur",
    "linear",
    "lost_rows",
    "motion_blur",
    "multiplicative_noise",
    "nearest_resample",
    "one_sided_blur",
    "plasma_fog",
    "quantize",
    "rain",
    "raise_value",
    "s_curve",
    "salt_and_pepper",
    "saturate",
    "sharpen_lightness",
    "shot_noise",
    "snow",
    "spatter",
    "white_veil",
    "ycbcr_noise",
    "ycbcr_offset",
    "zeroed_bytes",
    "zoom_blur",
]
