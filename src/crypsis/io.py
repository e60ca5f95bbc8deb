"""Reading images and masks people have, and writing files that are whole or absent.

Input is untrusted: the number of pixels is limited before anything is decoded, and a damaged file is one
sentence, never half an image.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import platform
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageOps
from numpy.typing import NDArray

from .errors import ImageError, IncompleteError, InputError
from .types import Image, Mask

__all__ = [
    "IMAGE_SUFFIXES",
    "MAX_PIXELS",
    "MaskFile",
    "atomic_path",
    "check_place",
    "decode_image",
    "decode_map",
    "decode_mask",
    "discard_leftovers",
    "encode_image",
    "exif_orientation",
    "file_digest",
    "file_size",
    "locked",
    "read_file",
    "read_image",
    "read_mask",
    "storing",
    "write_atomic",
    "write_image",
]

MAX_PIXELS = 200_000_000
"""Largest image that is decoded, in pixels (600 MB as RGB)."""

IMAGE_SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
"""File endings (lower case) that count as images or masks in a folder."""

_FORMATS = ("BMP", "JPEG", "PNG", "TIFF", "WEBP")


def read_file(path: str | Path) -> bytes:
    """Return a file's bytes; raise `ImageError` with one sentence when it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ImageError(f"{path}: cannot be read ({error.strerror or error}).") from error


def _open(data: bytes, source: str) -> PIL.Image.Image:
    """Decode `data` with its EXIF orientation applied."""
    if not data:
        raise ImageError(f"{source}: the file is empty.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's own size warning and notes on odd metadata
            picture = PIL.Image.open(io.BytesIO(data), formats=_FORMATS)
            if picture.width * picture.height > MAX_PIXELS:
                raise ImageError(
                    f"{source}: {picture.width}×{picture.height} pixels are more than the limit of {MAX_PIXELS:,}."
                )
            picture.load()
            return PIL.ImageOps.exif_transpose(picture)
    except ImageError:
        raise
    except PIL.Image.DecompressionBombError as error:
        raise ImageError(f"{source}: claims more pixels than the limit of {MAX_PIXELS:,}.") from error
    except PIL.UnidentifiedImageError as error:
        raise ImageError(f"{source}: not an image that can be read here ({', '.join(_FORMATS)}).") from error
    except Exception as error:  # a decoder may raise anything on damaged bytes
        raise ImageError(f"{source}: damaged or truncated image ({error}).") from error


def exif_orientation(data: bytes) -> int:
    """Return the EXIF orientation of an image file, 1 (as stored) to 8; 1 where it says none or nonsense.

    Only the header is read. `decode_image` and `decode_mask` have already applied it to the pixels they return.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            picture = PIL.Image.open(io.BytesIO(data), formats=_FORMATS)
            if picture.format == "PNG" and "exif" not in picture.info:
                return 1  # Pillow would decode all pixels to look behind them
            value = picture.getexif().get(0x0112, 1)
    except Exception:  # damaged metadata says nothing
        return 1
    return value if value in range(1, 9) else 1


def _to_uint8(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Scale 16-bit (also as int32), or float [0, 1], to 0..255."""
    if values.dtype == np.uint8:
        return np.asarray(values, np.uint8)
    if np.issubdtype(values.dtype, np.floating):
        return np.asarray(np.rint(np.clip(np.nan_to_num(values), 0.0, 1.0) * 255.0), np.uint8)
    return np.asarray((np.clip(values.astype(np.int64), 0, 65535) + 128) // 257, np.uint8)


def decode_image(data: bytes, source: str = "image") -> Image:
    """Decode an image file to uint8 H×W×3 RGB.

    EXIF orientation is applied. Gray is repeated, CMYK and palettes are converted, 16-bit is scaled by 1/257,
    alpha is dropped (colors are taken as stored).

    Args:
        data: the file's bytes (BMP, JPEG, PNG, TIFF or WebP).
        source: what to call it in an error message.

    Raises:
        ImageError: not an image, damaged, or more than `MAX_PIXELS`.
    """
    picture = _open(data, source)
    if picture.mode.startswith("I") or picture.mode == "F":
        values = np.asarray(picture)
        if picture.mode == "F" and not (values.min() >= 0.0 and values.max() <= 1.0):
            raise ImageError(
                f"{source}: float pixels must lie in [0, 1]; got [{values.min():.4g}, {values.max():.4g}]."
            )
        gray = _to_uint8(values)
        return np.repeat(gray[:, :, None], 3, axis=2)
    if picture.mode == "P" or picture.mode.endswith("A") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
    return np.array(picture.convert("RGB"))


def read_image(path: str | Path) -> Image:
    """Read and decode an image file; see `decode_image`."""
    return decode_image(read_file(path), str(path))


@dataclass(frozen=True, slots=True)
class MaskFile:
    """A decoded mask and how it was coded.

    Attributes:
        mask: bool H×W, True is the object.
        coding: `1-bit`, `gray` (> 128), `0/1` (any gray mask whose largest value is 1), `palette` (any
            non-zero index), `color` (any channel > 128), or `alpha` (> 128).
        gray_pixels: pixels that are neither 0 nor full scale, where the threshold decided.
    """

    mask: Mask
    coding: str
    gray_pixels: int = 0


def decode_mask(data: bytes, source: str = "mask") -> MaskFile:
    """Decode a mask file to bool, by the rule that fits how it is coded.

    COD and salient-object tools read gray and take values above 128 as the object; that rule is kept wherever
    it is meaningful. It would silently empty masks that store 0/1, class indices or a colored object, so these
    are recognized (see `MaskFile.coding`).

    Raises:
        ImageError: not an image, damaged, or more than `MAX_PIXELS`.
    """
    picture = _open(data, source)
    if picture.mode == "1":
        return MaskFile(np.asarray(picture).astype(bool), "1-bit")
    if picture.mode == "P":
        indices = np.asarray(picture)
        shown = np.asarray(picture.convert("RGBA"))[:, :, :3]
        if (shown == shown[:, :, :1]).all():  # a gray ramp stored as a palette
            return _from_gray(shown[:, :, 0])
        return MaskFile(indices > 0, "palette")
    if picture.mode in ("LA", "PA", "RGBA", "La", "RGBa"):
        rgba = np.asarray(picture.convert("RGBA"))
        color, alpha = rgba[:, :, :3], rgba[:, :, 3]
        if alpha.min() != alpha.max() and (color == color[:1, :1]).all():
            return MaskFile(alpha > 128, "alpha", _between(alpha, 255))
        return _from_color(color)
    if picture.mode.startswith("I") or picture.mode == "F":
        values = np.asarray(picture)
        # 8-bit values kept in a wider type mean what they mean in 8 bits
        small = values.max() <= 255 and not (picture.mode == "F" and values.max() <= 1)
        return _from_gray(np.clip(values, 0, 255).astype(np.uint8) if small else _to_uint8(values))
    if picture.mode == "L":
        return _from_gray(np.asarray(picture))
    return _from_color(np.asarray(picture.convert("RGB")))


def _between(values: NDArray[np.uint8], full: int) -> int:
    return int(np.count_nonzero((values != 0) & (values != full)))


def _from_gray(gray: NDArray[np.uint8]) -> MaskFile:
    if gray.max() == 1:
        return MaskFile(gray == 1, "0/1")
    return MaskFile(gray > 128, "gray", _between(gray, 255))


def _from_color(color: NDArray[np.uint8]) -> MaskFile:
    strongest = color.max(axis=2)
    if (color == color[:, :, :1]).all():
        return _from_gray(strongest)
    return MaskFile(strongest > 128, "color", _between(strongest, 255))


def read_mask(path: Path) -> MaskFile:
    """Read and decode a mask file; see `decode_mask`."""
    return decode_mask(read_file(path), str(path))


def decode_map(data: bytes, source: str = "map") -> NDArray[np.float32]:
    """Decode a gray picture that stores values of [0, 1], such as a saved probability map, to float32 H×W.

    8-bit is divided by 255, 16-bit by 65535, 1-bit is 0 and 1, float is taken as stored. Color is accepted where
    all channels are equal; alpha is dropped.

    Raises:
        ImageError: not an image, damaged, more than `MAX_PIXELS`, in color, or outside the range of its type.
    """
    picture = _open(data, source)
    if picture.mode == "F":
        return np.array(picture, np.float32)
    if picture.mode.startswith("I"):
        values = np.asarray(picture).astype(np.int64)
        if values.min() < 0 or values.max() > 65535:
            raise ImageError(f"{source}: holds values up to {values.max()}; a map has 8 or 16 bits.")
        return np.asarray(values / 65535.0, np.float32)
    color = decode_image(data, source) if picture.mode == "P" else np.asarray(picture.convert("RGB"))
    if (color != color[:, :, :1]).any():
        raise ImageError(f"{source}: is a color picture, not a map; save probabilities as gray.")
    return np.asarray(color[:, :, 0] / np.float32(255.0), np.float32)


def encode_image(image: NDArray[np.uint8], suffix: str = ".png", *, quality: int = 95) -> bytes:
    """Encode uint8 H×W×3 RGB or H×W gray by file ending; PNG and WebP at quality 100 are lossless.

    Args:
        image: the pixels.
        suffix: `.png`, `.jpg`, `.jpeg`, `.webp`, `.bmp`, `.tif` or `.tiff`.
        quality: 1..100 for JPEG and WebP.

    Raises:
        ImageError: an ending that cannot be written, or a side too long for the format.
    """
    suffix = suffix.lower()
    if suffix not in IMAGE_SUFFIXES:
        raise ImageError(f"{suffix!r} cannot be written; use one of {', '.join(sorted(IMAGE_SUFFIXES))}.")
    options: dict[str, int | bool] = {}
    if suffix in (".jpg", ".jpeg"):
        options = {"quality": quality, "subsampling": 0 if quality >= 90 else 2}
    elif suffix == ".webp":
        # method 2: half the time of the default for 4% more bytes
        options = {"lossless": True} if quality == 100 else {"quality": quality, "method": 2}
    elif suffix == ".png":
        options = {"compress_level": 3}
    buffer = io.BytesIO()
    kind = {".jpg": "JPEG", ".tif": "TIFF"}.get(suffix, suffix[1:].upper())
    try:
        PIL.Image.fromarray(image).save(buffer, kind, **options)
    except (OSError, ValueError) as error:  # JPEG and WebP have a largest side
        height, width = image.shape[:2]
        raise ImageError(f"{width}×{height} pixels cannot be written as {kind} ({error}); use .png.") from error
    return buffer.getvalue()


def write_image(path: Path, image: NDArray[np.uint8], *, quality: int = 95) -> None:
    """Write an image by its file ending, whole or not at all; see `encode_image`."""
    write_atomic(path, encode_image(image, path.suffix, quality=quality))


def file_digest(path: Path) -> str | None:
    """Return what stands for a file's content; None if it is not there or cannot be read."""
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return None


def file_size(path: Path) -> int | None:
    """Return a file's size in bytes; None if it is not there or cannot be asked."""
    try:
        return path.stat().st_size
    except OSError:
        return None


@contextlib.contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn what the file system refuses while `path` is written into one sentence.

    Raises:
        IncompleteError: the disk is full or the place cannot be written.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = "no space is left on the disk; free some"
        else:
            reason = f"{error.strerror or error}; make the place writable"
        raise IncompleteError(f"{path}: cannot be written: {reason} and give the same command again.") from error


def check_place(path: Path, option: str) -> None:
    """Refuse, before long work, a file that could not be written after it.

    Args:
        path: the file to be.
        option: how the command line calls it.

    Raises:
        InputError: there is a folder or device of that name, or the place cannot be written.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; {option} names a file.")
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is no regular file; {option} names one.")
        with tempfile.TemporaryFile(dir=next(parent for parent in path.absolute().parents if parent.exists())):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be written ({reason}); name another place for {option}.") from error


@contextlib.contextmanager
def atomic_path(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`; move it there when the block ends well, remove it when not.

    Args:
        path: the file to be; its folder is made if absent.
        durable: whether the bytes are on the disk before the name is, so that a power cut leaves no empty file.

    Raises:
        InputError: a device, pipe or socket has that name.
        IncompleteError: the disk is full or the place cannot be written.
    """
    with storing(path):
        if path.exists() and not (path.is_file() or path.is_dir()):  # /dev/null would be replaced by a file
            raise InputError(f"{path} is no regular file; name another place for what is written.")
    # short, so that a name of the greatest length still has room for its temporary twin
    twin = hashlib.blake2b(path.name.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    temporary = path.with_name(f".{twin}.{_HOST}.{os.getpid()}.tmp")
    try:
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            if durable:
                with temporary.open("rb") as written:
                    os.fsync(written.fileno())
            temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file `path`, made if absent, as a lock against other processes; the death of its holder frees it.

    It stays when the block ends: to remove it would take it from those who wait for it.

    On a file system without locks the block runs all the same.

    Raises:
        IncompleteError: the place cannot be written.
    """
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    with file:
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def discard_leftovers(folder: Path) -> None:
    """Remove the temporary files below `folder` that a process of this machine left when it died."""
    for leftover in folder.glob(f"**/.*.{_HOST}.*.tmp"):
        process = leftover.name.split(".")[-2]
        if process.isdigit() and not _alive(int(process)):
            leftover.unlink(missing_ok=True)


_HOST = hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()
"""Which machine a temporary file is of: several may share a folder, and the numbers of their processes tell nothing."""


def _alive(process: int) -> bool:
    if os.name == "nt":  # there, signal 0 is Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is another user's
    return True


def write_atomic(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write `data` to `path`, whole or not at all; see `atomic_path`."""
    with atomic_path(path, durable=durable) as temporary:
        temporary.write_bytes(data)
