"""Where other people's packages and functions are met: imports, threads, files and arrays that come from them."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingDependencyError, ModelError
from ..types import Detections, Image, check_image
from .coco_classes import CLASSES

__all__ = ["batches", "class_names", "import_extra", "on_device", "one_thread", "sha256_of", "to_detections", "told"]

_LONGEST_NAMES = 1_000_000
"""Bytes of a file with names of classes that are read at most."""


def told(error: BaseException) -> str:
    """Return an error's type and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].rstrip('.')}" if lines else type(error).__name__


def import_extra(module: str, extra: str) -> Any:
    """Import a package that only some models need.

    Args:
        module: its dotted name.
        extra: the extra of Crypsis that brings it, also the kind of model that needs it.

    Raises:
        MissingDependencyError: it is not installed, or does not fit what is.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = (error.name or package).partition(".")[0]
        raise MissingDependencyError(
            f"{extra} models need the package {name}, which is not installed: pip install 'crypsis[{extra}]'."
        ) from error
    except Exception as error:  # such as a torchvision built for another torch
        raise MissingDependencyError(
            f"{extra} models need the package {package}, which is installed but cannot be imported ({told(error)}); "
            f"reinstall it together with what it builds on: pip install 'crypsis[{extra}]'."
        ) from error


def class_names(text: str) -> tuple[str, ...]:
    """Read an option `classes=`: `coco`, names separated by slashes, or a text file with one name a line.

    Raises:
        ValueError: none of these, with what is allowed.
    """
    allowed = "coco | names separated by / | a text file with one name a line"
    if text == "coco":
        return CLASSES
    file, names = Path(text), text.split("/")
    if file.is_file() or file.suffix == ".txt":
        try:
            if file.stat().st_size > _LONGEST_NAMES:
                raise ValueError(f"{allowed}; {file} is too large for one")
            names = file.read_text("utf-8-sig").rstrip().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{allowed}; {file} cannot be read ({told(error)})") from None
    names = [name.strip() for name in names]
    if not all(name and name.isprintable() for name in names):
        raise ValueError(f"{allowed}; no empty or unprintable names")
    return tuple(names)


def on_device(network: Any, device: str) -> Any:
    """Return a torch network, ready to infer, on `cpu` or `cuda`.

    Raises:
        MissingDependencyError: torch finds no GPU.
    """
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise MissingDependencyError(
            "device=cuda needs a GPU and a torch that can use it (see pytorch.org), or leave device= out."
        )
    return network.eval().to(device)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread and without gradients, so that results do not depend on the number of cores."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(threads)


def batches(images: Sequence[Image], size: int) -> Iterator[list[Image]]:
    """Yield runs of at most `size` images of one shape, in order: none is padded because of its neighbors."""
    for _, group in groupby(map(check_image, images), key=lambda image: image.shape):
        members = list(group)
        yield from (members[start : start + size] for start in range(0, len(members), size))


def sha256_of(paths: Iterable[Path]) -> str:
    """Return the SHA-256, hex, of the contents of files one after the other.

    Raises:
        ModelError: one cannot be read.
    """
    digest = hashlib.sha256()
    for path in paths:
        try:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except FileNotFoundError:
            raise ModelError(f"There is no model file {path} (looked in {path.absolute().parent}).") from None
        except OSError as error:
            raise ModelError(f"{path}: the model file cannot be read ({error.strerror or error}).") from error
    return digest.hexdigest()


def to_detections(source: str, boxes: object, scores: object, labels: object, classes: int) -> Detections:
    """Return what a detector said of one image, checked.

    Args:
        source: the detector, for error messages.
        boxes: N×4 numbers, x1, y1, x2, y2; for no objects also an empty list.
        scores: N numbers in [0, 1].
        labels: N whole numbers below `classes`.
        classes: how many classes there are.

    Raises:
        ModelError: something else.
    """
    corners = _array(source, "boxes", boxes)
    corners = corners.reshape(0, 4) if corners.size == 0 else corners
    certainties, kinds = _array(source, "scores", scores), _array(source, "labels", labels)
    wrong = (kinds < 0) | (kinds >= classes) | (kinds % 1 != 0)
    if wrong.any():
        raise ModelError(
            f"{source} returned the label {kinds[wrong][0]}; labels are whole numbers from 0 to {classes - 1}."
        )
    try:
        return Detections(corners.astype(np.float32), certainties.astype(np.float32), kinds.astype(np.int64))
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from error


def _array(source: str, what: str, values: object) -> NDArray[Any]:
    """Return numbers from an array, a list, or a torch tensor wherever it lies."""
    try:
        array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    except Exception as error:
        raise ModelError(f"{source} returned {what} that are no array: {told(error)}.") from error
    if array.dtype.kind not in "fiu" and array.size:
        got = f"{array.dtype} {array.shape}" if array.dtype != object else type(values).__name__
        raise ModelError(f"{source} returned {what} that are not numbers but {got}.")
    if array.ndim == 0:
        raise ModelError(f"{source} returned one number as {what}; return an array, also for one object or none.")
    if not np.isfinite(array).all():
        raise ModelError(f"{source} returned {what} that are not finite.")
    return array
