"""The public call: degrade one image of whatever kind, and get the same kind back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, cast

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from ..errors import ImageError, InputError
from ..seeds import content_key
from ..types import Image
from . import get_entry
from .entry import Entry

__all__ = ["apply_degradation", "check_draw", "named_entry", "nearest_severity", "through_rgb", "through_rgb_and_back"]

AnyImage = TypeVar("AnyImage")
_Array = NDArray[Any]
_Degrade = Callable[[_Array], _Array]


def apply_degradation(
    image: AnyImage,
    name: str | None = None,
    *,
    paper: str | None = None,
    term: str | None = None,
    severity: int,
    seed: int = 0,
    image_key: str | None = None,
    mode: Literal["native", "canonical"] = "native",
    calibration: Mapping[str, Any] | None = None,
    canonical_strengths: Sequence[float] | None = None,
) -> AnyImage:
    """Degrade one image and return it as the kind it came: type, shape, dtype, mode and device.

    `apply_degradation(image, "cod10k-c/rain", severity=3)` and
    `apply_degradation(image, paper="COD10K-C", term="rain", severity=3)` are the same call.

    Operators work on uint8 RGB; everything else is led there and back:

    * float in [0, 1] is rounded to 255 steps, 16-bit to v/257; the result has 256 levels in the image's dtype.
    * bool is black and white; the result is thresholded at 128.
    * Gray (H×W, H×W×1, mode L) is degraded as three equal channels and the green one is returned. An average of
      the three would weaken noise by √3, since noise is independent in every channel.
    * Alpha is not touched.

    Args:
        image: the clean image, which is not changed. A NumPy array H×W, H×W×1, H×W×3 (RGB) or H×W×4 (RGBA) of
            uint8, uint16, bool, or float in [0, 1]; a Pillow image of mode 1, L, LA, RGB, RGBA, I;16 or F; or a
            torch tensor, C×H×W with C 1, 3 or 4 or H×W, of the same dtypes. Gradients do not pass.
        name: `family/term`; see `crypsis.catalog.get_entry`.
        paper: instead of `name`: the paper's key or its family.
        term: with `paper`: the paper's word for the degradation.
        severity: the level, 1..5, in the sense of `mode`.
        seed: which of many random fields; any integer.
        image_key: the name all randomness of this image depends on, such as its path inside the data set. Without
            one it is derived from the pixels, so that equal images get equal noise and others do not.
        mode: `native`: `severity` is the paper's level. `canonical`: it is one of five strengths, and the paper's
            level whose measured strength is nearest is applied; several canonical levels can mean the same one.
        calibration: for `canonical`: the measured strengths, from `crypsis.calibration.calibrate_distortion` for
            this degradation, or read back from JSON; `crypsis.calibration.shipped_calibration(name)` needs no images.
        canonical_strengths: for `canonical`: five strengths, mildest first (in `psnr` falling, in every other metric
            rising), between the ends of the measured ones; by default those of the calibration.

    Returns:
        A new image; it shares no memory with `image`.

    Raises:
        UnknownNameError: there is no such degradation.
        ImageError: the image has another type, shape or range; the message says what to convert to.
        InputError: another argument is wrong.
    """
    entry = named_entry(name, paper, term)
    if not _is_whole(severity) or int(severity) not in entry.severities:
        raise InputError(f"{entry.name} has the severities 1 to {len(entry.parameters)}; got {severity!r}.")
    if mode == "canonical":
        severity = _native_severity(entry, int(severity), calibration, canonical_strengths)
    elif mode != "native":
        raise InputError(f"mode is 'native' or 'canonical'; got {mode!r}.")
    elif calibration is not None or canonical_strengths is not None:
        raise InputError("calibration and canonical_strengths are for mode='canonical'; add it or leave them out.")
    seed = check_draw(seed, image_key)

    def degrade(rgb: Image) -> Image:
        key = content_key(rgb) if image_key is None else image_key
        return entry.degrade(rgb, int(severity), seed=seed, image_key=key)

    return through_rgb(image, degrade)


def through_rgb(image: AnyImage, operate: Callable[[Image], Image]) -> AnyImage:
    """Lead an image of any accepted kind to uint8 RGB, through `operate`, and back; see `apply_degradation`.

    Raises:
        ImageError: the image has another type, shape or range; the message says what to convert to.
    """
    return through_rgb_and_back(image, lambda rgb, _: operate(rgb))


def through_rgb_and_back(image: AnyImage, operate: Callable[[Image, Callable[[Image], Image]], Image]) -> AnyImage:
    """Do as `through_rgb`, and also tell `operate` what of a result is given back.

    Args:
        image: of any accepted kind.
        operate: is given the image as uint8 RGB, and a function that returns, as uint8 RGB, what a result becomes in
            the image's kind: three equal channels of a gray one, black and white of a bool one.

    Raises:
        ImageError: see `through_rgb`.
    """

    def degrade(array: _Array) -> _Array:
        """Degrade H×W×C of any accepted dtype, C = 1..4, where the last of 2 or 4 is alpha."""
        color = array[:, :, : 1 if array.shape[2] < 3 else 3]
        channels = color.shape[2]

        def as_rgb(values: _Array) -> Image:
            rgb = _to_uint8(values)
            return np.repeat(rgb, 3, axis=2) if channels == 1 else rgb

        def in_kind(worse: Image) -> _Array:
            return _from_uint8(worse[:, :, 1:2] if channels == 1 else worse, array.dtype)

        worse = operate(as_rgb(color), lambda result: as_rgb(in_kind(result)))
        result = np.empty(array.shape, array.dtype)
        result[:, :, :channels] = in_kind(worse)
        result[:, :, channels:] = array[:, :, channels:]
        return result

    if isinstance(image, PIL.Image.Image):
        return cast(AnyImage, _degrade_pillow(image, degrade))
    if any(c.__name__ == "Tensor" and c.__module__.partition(".")[0] == "torch" for c in type(image).__mro__):
        return cast(AnyImage, _degrade_tensor(image, degrade))
    if isinstance(image, np.ndarray):
        return cast(AnyImage, _degrade_array(image, degrade))
    if isinstance(image, str | bytes) or hasattr(image, "__fspath__"):
        raise ImageError("An image is given as pixels, not as a path; read it with crypsis.io.read_image first.")
    raise ImageError(
        f"An image is a NumPy array, a Pillow image or a torch tensor; got {type(image).__name__}. "
        "Convert it with numpy.asarray."
    )


def _is_whole(value: object) -> bool:
    """Tell whether `value` is an integer of Python or NumPy; True and 3.0 are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_draw(seed: object, image_key: object) -> int:
    """Return `seed` as a Python integer; refuse one that is none, and an image key that is neither text nor None.

    Raises:
        InputError: one of them has another type.
    """
    if not _is_whole(seed):
        raise InputError(f"seed is an integer; got {seed!r}.")
    if not isinstance(image_key, str | None):
        raise InputError(f"image_key is a string, such as the image's path in its data set; got {image_key!r}.")
    return int(cast(int, seed))


def named_entry(name: str | None, paper: str | None, term: str | None) -> Entry:
    """Return the row that the caller named in one of the two ways.

    Raises:
        UnknownNameError: there is no such degradation.
        InputError: it is named in both ways, or in neither.
    """
    if name is not None and paper is None and term is None:
        return get_entry(name)
    if name is None and paper is not None and term is not None:
        return get_entry(paper, term)
    raise InputError("Name the degradation either as 'family/term' or by both paper= and term=.")


def nearest_severity(strengths: Sequence[float], target: float, *, rising: bool) -> int:
    """Return the native severity whose measured strength is nearest to `target`; of equally near ones the milder.

    Severities need not be in order of strength.

    Args:
        strengths: measured at the severities 1, 2, ….
        target: on the same scale.
        rising: True where a greater number is a stronger degradation, as for `1-ssim`; False for `psnr`.
    """
    distances = [abs(strength - target) for strength in strengths]
    # a tie in decimals is not one in binary
    limit = min(distances) + 1e-9 * (max(strengths) - min(strengths))
    near = [index for index, distance in enumerate(distances) if distance <= limit]
    return 1 + min(near, key=lambda index: strengths[index] if rising else -strengths[index])


def _native_severity(
    entry: Entry, level: int, calibration: Mapping[str, Any] | None, canonical_strengths: Sequence[float] | None
) -> int:
    """Return the native severity that a canonical level 1..5 means under a calibration."""
    measure = "measure one with crypsis.calibration.calibrate_distortion(images, paper, term)"
    if calibration is None:
        raise InputError(f"mode='canonical' needs a calibration of {entry.name}; {measure}.")
    if not isinstance(calibration, Mapping):
        raise InputError(f"calibration is what calibrate_distortion returns; got {type(calibration).__name__}.")
    if calibration.get("entry") != entry.name:
        raise InputError(f"The calibration is of {calibration.get('entry')!r}, not of {entry.name!r}; {measure}.")
    measured = _numbers(calibration.get("strengths"), "the calibration's strengths", len(entry.severities))
    if canonical_strengths is None:
        canonical_strengths = calibration.get("canonical_strengths")
    targets = _numbers(canonical_strengths, "canonical_strengths", len(entry.severities))
    metric = calibration.get("metric")
    rising = targets[-1] >= targets[0] if metric is None else metric != "psnr"
    if targets != sorted(targets, reverse=not rising):
        order = "" if metric is None else f", which {'rise' if rising else 'fall'} in {metric}"
        raise InputError(f"canonical_strengths go from the mildest to the strongest{order}; got {targets}.")
    low, high = min(measured), max(measured)
    slack = 1e-9 * (high - low)
    if not low - slack <= targets[level - 1] <= high + slack:
        raise InputError(
            f"{entry.name} cannot reach the strength {targets[level - 1]:.4g} of canonical level {level}: in this "
            f"calibration ({calibration.get('metric')}) it lies between {low:.4g} and {high:.4g}."
        )
    return nearest_severity(measured, targets[level - 1], rising=rising)


def _numbers(values: object, name: str, count: int) -> list[float]:
    """Return a sequence or array of `count` finite numbers as a list."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    if isinstance(listed, Sequence) and len(listed) == count:
        numbers = [float(v) for v in listed if isinstance(v, Real) and math.isfinite(v)]
        if len(numbers) == count:
            return numbers
    raise InputError(f"{name} are {count} finite numbers; got {values!r:.80}.")


def _degrade_array(image: _Array, degrade: _Degrade) -> _Array:
    """Degrade a NumPy array H×W or H×W×C."""
    if isinstance(image, np.ma.MaskedArray):
        raise ImageError("A masked array has pixels without a value; fill them first with image.filled(…).")
    image = np.asarray(image)
    if image.ndim == 2:
        return degrade(image[:, :, None])[:, :, 0]
    if image.ndim == 3 and image.shape[2] in (1, 3, 4):
        return degrade(image)
    hint = ""
    if image.ndim == 3 and image.shape[0] in (1, 3, 4):
        hint = " If channels come first, use image.transpose(1, 2, 0)."
    elif image.ndim == 4:
        hint = " Degrade the images of a batch one by one, each with its own image_key."
    raise ImageError(f"An array image is H×W, H×W×1, H×W×3 or H×W×4; got the shape {image.shape}.{hint}")


def _degrade_pillow(image: PIL.Image.Image, degrade: _Degrade) -> PIL.Image.Image:
    """Degrade a Pillow image whose mode stores values (not a palette, not another color space)."""
    if image.mode not in ("1", "L", "LA", "RGB", "RGBA", "F") and not image.mode.startswith("I;16"):
        advice = "convert it with image.convert('RGB') first"
        if image.mode in ("P", "PA"):
            advice += ", or to 'RGBA' if it has transparency"
        elif image.mode == "I":
            advice = "if it holds 16-bit values, convert it with image.convert('I;16') first"
        raise ImageError(f"A Pillow image of mode {image.mode} cannot be degraded and given back as such; {advice}.")
    try:
        array = np.asarray(image)
    except OSError as error:  # files are decoded on first use
        raise ImageError(f"The Pillow image cannot be decoded ({error}).") from error
    worse = degrade(array) if array.ndim == 3 else degrade(array[:, :, None])[:, :, 0]
    result = PIL.Image.fromarray(worse)
    result.info = dict(image.info)  # color profile, resolution and orientation stay true
    return result


def _degrade_tensor(image: Any, degrade: _Degrade) -> Any:
    """Degrade a torch tensor C×H×W or H×W, without importing torch."""
    shape = tuple(image.shape)
    if len(shape) == 4:
        raise ImageError(
            f"One image at a time, please: got a batch of shape {shape}. Loop over it, each image with its own "
            "image_key: torch.stack([apply_degradation(x, …) for x in batch])."
        )
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[0] not in (1, 3, 4)):
        hint = " If channels come last, use image.permute(2, 0, 1)." if shape[2:] and shape[2] in (1, 3, 4) else ""
        raise ImageError(f"A tensor image is C×H×W with C 1, 3 or 4, or H×W; got the shape {shape}.{hint}")
    try:
        values = image.detach().cpu()
        array = (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise ImageError(f"The tensor cannot be read as an array ({error}).") from error
    worse = degrade(array.transpose(1, 2, 0)).transpose(2, 0, 1) if array.ndim == 3 else degrade(array[:, :, None])
    return image.new_tensor(np.ascontiguousarray(worse).reshape(shape))


def _to_uint8(values: _Array) -> Image:
    """Return the values as 0..255, uint8; raise `ImageError` if they do not mean an image."""
    kind = values.dtype.kind
    if values.size == 0:
        raise ImageError(f"The image is empty: its height and width are {values.shape[:2]}.")
    if values.dtype == np.uint8:
        return np.asarray(values, np.uint8)
    if kind == "b":
        return np.asarray(values * np.uint8(255), np.uint8)
    if values.dtype.newbyteorder("=") == np.uint16:
        return np.asarray((values.astype(np.uint32) + 128) // 257, np.uint8)
    if kind in "iu":
        raise ImageError(_integer_advice(values))
    if kind != "f":
        raise ImageError(f"An image is uint8, uint16, bool, or float in [0, 1]; got {values.dtype}.")
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(low + high):
        raise ImageError("The float image has NaN or infinite values; replace them first.")
    if low < 0 or high > 1:
        advice = "divide it by 255" if low >= 0 and 2 < high <= 255 else "rescale it, or clip it with image.clip(0, 1)"
        raise ImageError(f"A float image lies in [0, 1]; this one in [{low:.4g}, {high:.4g}]: {advice}.")
    return np.asarray(np.rint(values.astype(np.float32) * np.float32(255)), np.uint8)


def _integer_advice(values: _Array) -> str:
    """Say why an integer image is refused and how to convert it."""
    low, high = int(values.min()), int(values.max())
    start = f"An integer image is uint8 or uint16; got {values.dtype}"
    if low < 0:
        return (
            f"{start} with negative values (down to {low}); shift it to 0..255 and convert with image.astype('uint8')."
        )
    if high > 65535:
        return f"{start} with values up to {high}; scale it to 0..65535 and convert with image.astype('uint16')."
    target = "uint8" if high <= 255 else "uint16"
    return f"{start} with values up to {high}; convert it with image.astype('{target}')."


def _from_uint8(values: Image, dtype: np.dtype[Any]) -> _Array:
    """Return 0..255 on the scale of `dtype`."""
    if dtype == np.uint8:
        return values
    if dtype.kind == "b":
        return values >= 128
    if dtype.kind == "f":
        return (values / np.float64(255)).astype(dtype)
    return np.asarray(values * np.uint16(257), dtype)
