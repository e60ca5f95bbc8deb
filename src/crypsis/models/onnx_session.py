"""What every model in an ONNX file has in common: opening the file, feeding it images, and telling it from others."""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingDependencyError, ModelError
from ..types import Image
from .segmenter import Description

__all__ = [
    "FLOATS",
    "ImageInput",
    "hash_model",
    "in_batches",
    "model_input",
    "open_session",
    "read_size",
    "run_session",
    "times",
]

FLOATS: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
}
"""What onnxruntime calls a type → that type."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ImageInput:
    """How a model takes its images.

    Attributes:
        name: the input's.
        dtype: of the numbers it takes.
        layout: `nchw` or `nhwc`.
        size: (height, width), or `"native"` for that of each image.
        batch: images in one call.
        fixed_batch: it takes neither more nor fewer.
    """

    name: str
    dtype: type[np.generic]
    layout: str
    size: tuple[int, int] | str
    batch: int
    fixed_batch: bool

    def tensor(
        self, pixels: Image, *, mean: Sequence[float], std: Sequence[float], scale: float, channels: str
    ) -> NDArray[Any]:
        """Return one image in the model's layout and type, as (v / scale - mean) / std in the model's color order.

        Args:
            pixels: uint8 H×W×3 RGB, at the size the model takes.
            mean: of three channels, in the order the model sees.
            std: likewise.
            scale: what pixel values are divided by first.
            channels: `rgb` or `bgr`, the order the model sees.
        """
        if channels == "bgr":
            pixels = pixels[:, :, ::-1]
        levels = np.arange(256, dtype=np.float32) / np.float32(scale)
        return np.stack(
            [
                # 256 values are normalized, not every pixel
                ((levels - np.float32(mean[i])) / np.float32(std[i])).astype(self.dtype)[pixels[:, :, i]]
                for i in range(3)
            ],
            axis=0 if self.layout == "nchw" else 2,
        )

    def stack(self, tensors: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return tensors as one batch; the last is repeated where the model takes a fixed number."""
        missing = self.batch - len(tensors) if self.fixed_batch else 0
        return np.stack([*tensors, *[tensors[-1]] * missing])


def in_batches(
    images: Sequence[Image],
    size_of: Callable[[Image], tuple[int, int]],
    count: int,
    process: Callable[[list[Image], tuple[int, int]], Sequence[_Result]],
) -> list[_Result]:
    """Return what `process` makes of neighboring images that are fed at one size, at most `count` in a call."""
    results: list[_Result] = []
    pending: list[Image] = []
    for index, image in enumerate(images):
        pending.append(image)
        size = size_of(image)
        if len(pending) == count or index + 1 == len(images) or size_of(images[index + 1]) != size:
            results += process(pending, size)
            pending = []
    return results


def model_input(
    path: Path,
    name: str,
    kind: str,
    dims: Sequence[object],
    *,
    size: tuple[int, int] | str | None,
    layout: str | None,
    batch: int | None,
    types: Mapping[str, type[np.generic]] = FLOATS,
) -> ImageInput:
    """Settle how images are fed to an input of four axes.

    Args:
        path: of the model, for messages.
        name: the input's.
        kind: what onnxruntime calls its type.
        dims: its shape; anything but a number above 0 is dynamic.
        size: (height, width) asked for, `"native"`, or None to take it from the model.
        layout: asked for, or None to take it from the model.
        batch: asked for, or None to take it from the model, or else 1.
        types: those that can be fed.

    Raises:
        ModelError: it is no image input, or does not fit what was asked for.
    """
    if kind not in types:
        raise ModelError(f"{path}: input {name!r} is {kind}; export the model with a float input.")
    shape = tuple(side if isinstance(side, int) and side > 0 else None for side in dims)
    shown = "×".join("?" if side is None else str(side) for side in shape)
    if len(shape) != 4:
        raise ModelError(
            f"{path}: input {name!r} has shape {shown or 'scalar'}; an image model takes four axes, "
            "such as 1×3×352×352."
        )
    layout = _layout(path, shape, shown, layout)
    height, width = shape[2:] if layout == "nchw" else shape[1:3]
    size = _size(path, (height, width), shown, size)
    fixed = shape[0]
    if fixed is not None and batch not in (None, fixed):
        raise ModelError(
            f"{path}: batch={batch} does not fit the model, which takes {fixed} at a time; leave batch= out."
        )
    return ImageInput(name, types[kind], layout, size, fixed or batch or 1, fixed is not None)


def _layout(path: Path, shape: tuple[int | None, ...], shown: str, asked: str | None) -> str:
    """Return where the colors are in a four-axis input: as asked, or by the axis that has three."""
    axes = {"nchw": 1, "nhwc": 3}
    if asked is not None:
        if shape[axes[asked]] not in (3, None):
            raise ModelError(f"{path}: layout={asked} does not fit the model's input {shown}; leave layout= out.")
        return asked
    for layout, axis in axes.items():
        if shape[axis] == 3:
            return layout
    if shape[1] is None or shape[3] is None:
        raise ModelError(f"{path}: the input shape {shown} does not show where the colors are; give layout=.")
    raise ModelError(f"{path}: the model's input {shown} has no axis of three colors.")


def _size(
    path: Path, own: tuple[int | None, int | None], shown: str, asked: tuple[int, int] | str | None
) -> tuple[int, int] | str:
    """Return what to feed: as asked where that fits the model's `own` height and width, or else these."""
    height, width = own
    if asked is None:
        if height is None or width is None:
            raise ModelError(
                f"{path}: the model takes images of any size ({shown}); say which to feed, such as size=352, "
                "or size=native."
            )
        return height, width
    if isinstance(asked, str):
        fits, text = height is None and width is None, asked
    else:
        fits, text = height in (None, asked[0]) and width in (None, asked[1]), times(asked, "x")
    if not fits:
        raise ModelError(f"{path}: size={text} does not fit the model's input {shown}; leave size= out.")
    return asked


def read_size(text: str) -> tuple[int, int] | str:
    """Accept a side, `HEIGHTxWIDTH` or `native`, as an option's value."""
    if text == "native":
        return text
    match = re.fullmatch(r"([1-9][0-9]{0,4})(?:[x×]([1-9][0-9]{0,4}))?", text, re.ASCII)
    if not match:
        raise ValueError("a side such as 352, HEIGHTxWIDTH such as 352x384, or native")
    return int(match[1]), int(match[2] or match[1])


def times(sides: Sequence[int], sign: str = "×") -> str:
    """Return a shape as text, such as 352×384."""
    return sign.join(map(str, sides))


def hash_model(path: Path) -> Description:
    """Return the SHA-256 of the file, and of the weight files it names, if any.

    Raises:
        ModelError: the file, or one that it names, cannot be read.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            digest = hashlib.sha256(data).hexdigest()
            # a StringStringEntryProto {"location": name} of an external tensor, as torch's exporter writes it
            found = re.finditer(rb"\x0a\x08location\x12([\x01-\x7f])", data)
            names = {bytes(data[match.end() : match.end() + match[1][0]]) for match in found}
    except FileNotFoundError:
        raise ModelError(f"There is no model file {path} (looked in {path.absolute().parent}).") from None
    except OSError as error:
        raise ModelError(f"{path}: the model file cannot be read ({error.strerror or error}).") from error
    except ValueError:
        raise ModelError(f"{path}: the model file is empty.") from None
    hashes: Description = {"sha256": digest}
    files = sorted({path.parent / name.decode(errors="replace") for name in names})
    if files:
        whole = hashlib.sha256()
        for external in files:
            try:
                with external.open("rb") as file:
                    while block := file.read(1 << 20):
                        whole.update(block)
            except (OSError, ValueError) as error:
                raise ModelError(
                    f"{path}: the model keeps weights in {external.name}, which cannot be read beside it; "
                    "put both files in one folder."
                ) from error
        hashes["weights_sha256"] = whole.hexdigest()
    return hashes


def open_session(path: Path, device: str) -> Any:
    """Return an onnxruntime session that uses one thread, so that results do not depend on the number of cores.

    Args:
        path: the `.onnx` file; weights kept beside it ("external data") are found by onnxruntime.
        device: `cpu` or `cuda`.

    Raises:
        ModelError: the file is no usable model.
        MissingDependencyError: `device` is cuda and this onnxruntime cannot use it.
    """
    import onnxruntime

    provider = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}[device]
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.use_deterministic_compute = True
    settings.log_severity_level = 4  # what it has to say comes as an exception
    try:
        available = provider in onnxruntime.get_available_providers()
        session = onnxruntime.InferenceSession(str(path), settings, providers=[provider]) if available else None
    except Exception as error:
        raise ModelError(f"{path}: not a usable ONNX model ({_reason(error)})") from error
    if session is None or session.get_providers()[0] != provider:
        raise MissingDependencyError(
            "device=cuda needs a GPU and its package: pip install onnxruntime-gpu, or leave device= out."
        )
    return session


def run_session(
    session: Any, outputs: Sequence[str], feed: Mapping[str, NDArray[Any]], model: str, count: int, size: Sequence[int]
) -> list[Any]:
    """Return the named outputs.

    Args:
        session: as `open_session` returns it.
        outputs: names.
        feed: input → array.
        model: the model's label, for messages.
        count: images that are fed.
        size: their height and width.

    Raises:
        ModelError: the model failed.
    """
    try:
        return list(session.run(list(outputs), dict(feed)))
    except Exception as error:
        raise ModelError(f"{model}: the model failed on {count} image(s) of {times(size)}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return the first line of an onnxruntime error without its code."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", lines[0])
