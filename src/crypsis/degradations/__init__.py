"""Operators: pure functions from an image to a degraded image.

Every operator takes a uint8 H×W×3 RGB array of any size from 1×1 and returns a new one of the same shape. The
input is never changed and may be read-only or not contiguous. Parameters are keyword-only and physical (gray
levels, pixels, fractions); an operator knows no paper and no severity. It takes `rng`, a
`numpy.random.Generator`, exactly when it draws random numbers, and reads no other source of them.
"""

from .blur import gaussian_blur, motion_blur
from .codec import jpeg
from .noise import gaussian_noise
from .tone import brightness, contrast, linear
from .weather import rain, white_veil

__all__ = [
    "brightness",
    "contrast",
    "gaussian_blur",
    "gaussian_noise",
    "jpeg",
    "linear",
    "motion_blur",
    "rain",
    "white_veil",
]
