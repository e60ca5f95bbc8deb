"""Any segmenter that was exported to ONNX, run by onnxruntime.

What a benchmark of such a model depends on besides its weights (input size, resize kernel, normalization, which
output, activation and its order with resizing) is an option here, and part of the description of the run.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingDependencyError, ModelError, UnknownNameError
from ..types import Image, Prediction, check_image
from .activations import minmax, sigmoid
from .options import Reader, numbers, one_of, positive_integer, positive_number, read_options, yes_or_no
from .resizing import KERNELS, resize_image, resize_map
from .segmenter import Description

__all__ = ["OnnxOptions", "OnnxSegmenter"]

_INPUT_TYPES: dict[str, type[np.floating[Any]]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
}


@dataclass(frozen=True, kw_only=True)
class OnnxOptions:
    """How images become the model's input and its output becomes a map.

    Attributes:
        size: (height, width) the model is fed with; `"native"` for the image's own size, each side rounded to
            the nearest multiple of `multiple`; None to take it from the model.
        multiple: see `size`.
        mean: subtracted per channel after division by `scale`, in the order the model sees; ImageNet's.
        std: divided by, likewise.
        scale: pixel values 0..255 are divided by it first.
        channels: `rgb` or `bgr`, the order the model sees.
        layout: `nchw` or `nhwc`; None to read it off the model's input shape.
        resize: kernel that brings an image to `size`, one of `resizing.KERNELS`, on 8-bit pixels.
        activation: `none` (the output is a probability), `sigmoid` (it is a logit) or `softmax` (two channels
            of logits, the second is the object).
        order: `resize-then-activate` (SINet-V2, DGNet) or `activate-then-resize` (PFNet, ZoomNet).
        output: name or index of the output that is the map.
        uncertainty: name or index of an output that is an uncertainty in [0, 1], or None.
        batch: images in one call; a model exported with a fixed batch is fed full batches of that many.
        minmax: stretch each map to [0, 1]; see `activations.minmax`.
        device: `cpu` or `cuda`.
    """

    size: tuple[int, int] | str | None = None
    multiple: int = 32
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    scale: float = 255.0
    channels: str = "rgb"
    layout: str | None = None
    resize: str = "bilinear-antialias"
    activation: str = "none"
    order: str = "resize-then-activate"
    output: str | int = 0
    uncertainty: str | int | None = None
    batch: int | None = None
    minmax: bool = False
    device: str = "cpu"


def _read_size(text: str) -> tuple[int, int] | str:
    if text == "native":
        return text
    match = re.fullmatch(r"([1-9][0-9]{0,4})(?:[x×]([1-9][0-9]{0,4}))?", text, re.ASCII)
    if not match:
        raise ValueError("a side such as 352, HEIGHTxWIDTH such as 352x384, or native")
    return int(match[1]), int(match[2] or match[1])


def _read_output(text: str) -> str | int:
    if not text:
        raise ValueError("an output's name, or its index from 0")
    return int(text) if text.isascii() and text.isdigit() else text


_READERS: dict[str, Reader] = {
    "size": _read_size,
    "multiple": positive_integer,
    "mean": numbers(3),
    "std": numbers(3, above_zero=True),
    "scale": positive_number,
    "channels": one_of("rgb", "bgr"),
    "layout": one_of("nchw", "nhwc"),
    "resize": one_of(*KERNELS),
    "activation": one_of("none", "sigmoid", "softmax"),
    "order": one_of("resize-then-activate", "activate-then-resize"),
    "output": _read_output,
    "uncertainty": lambda text: None if text == "none" else _read_output(text),
    "batch": positive_integer,
    "minmax": yes_or_no,
    "device": one_of("cpu", "cuda"),
}


class OnnxSegmenter:
    """A segmenter in an ONNX file with one image input.

    Its output may have shape N×1×h×w, N×h×w×1, N×h×w, h×w (batch 1), or two channels in place of the one. It
    runs on one CPU thread, so that results do not depend on the machine's number of cores.
    """

    def __init__(self, path: Path, options: OnnxOptions | None = None, *, name: str | None = None) -> None:
        """Load the file and check that it takes images.

        Args:
            path: the `.onnx` file; weights kept beside it ("external data") are found by onnxruntime.
            options: see `OnnxOptions`.
            name: label; the file's stem if None.

        Raises:
            ModelError: no such file, not ONNX, not a model of one image, or an option that does not fit it.
            MissingDependencyError: `device` is cuda and this onnxruntime cannot use it.
        """
        self.name = name or path.stem
        self._file = path.name
        self.options = options or OnnxOptions()
        self._hashes = _hash(path)
        self._session = _open(path, self.options.device)
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(node.name for node in inputs)
            raise ModelError(f"{path}: the model takes {len(inputs)} inputs ({names}); only one image can be fed.")
        node = inputs[0]
        self._input = node.name
        if node.type not in _INPUT_TYPES:
            raise ModelError(f"{path}: input {node.name!r} is {node.type}; export the model with a float input.")
        self._dtype = _INPUT_TYPES[node.type]
        shape = tuple(side if isinstance(side, int) and side > 0 else None for side in node.shape)
        self._fit(path, shape)
        self._choose_outputs(path)

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> OnnxSegmenter:
        """Load `onnx:PATH[,option=value…]`; see `OnnxOptions`."""
        if not target:
            raise ModelError("onnx needs a file; write onnx:PATH.")
        return cls(Path(target), OnnxOptions(**read_options("onnx", options, _READERS)), name=name)

    def _fit(self, path: Path, shape: tuple[int | None, ...]) -> None:
        """Settle layout, size and batch from the model's input shape (None where it is dynamic)."""
        shown = "×".join("?" if side is None else str(side) for side in shape)
        if len(shape) != 4:
            raise ModelError(
                f"{path}: input {self._input!r} has shape {shown or 'scalar'}; an image model takes four axes, "
                "such as 1×3×352×352."
            )
        self.layout = _layout(path, shape, shown, self.options.layout)
        height, width = shape[2:] if self.layout == "nchw" else shape[1:3]
        self.size = _size(path, (height, width), shown, self.options.size)
        fixed, asked = shape[0], self.options.batch
        if fixed is not None and asked not in (None, fixed):
            raise ModelError(
                f"{path}: batch={asked} does not fit the model, which takes {fixed} at a time; leave batch= out."
            )
        self._fixed_batch = fixed is not None
        self.batch = fixed or asked or 1

    def _choose_outputs(self, path: Path) -> None:
        names = [node.name for node in self._session.get_outputs()]

        def index_of(option: str, wanted: str | int) -> int:
            if isinstance(wanted, str):
                if wanted not in names:
                    raise UnknownNameError.among(f"output in {path}", wanted, names, f"({option}=)")
                return names.index(wanted)
            if wanted >= len(names):
                raise ModelError(
                    f"{path}: {option}={wanted}, but the model has {len(names)} output(s), counted from 0: "
                    f"{', '.join(names)}."
                )
            return wanted

        self._outputs = names
        self._output = index_of("output", self.options.output)
        uncertainty = self.options.uncertainty
        self._uncertainty = None if uncertainty is None else index_of("uncertainty", uncertainty)

    def describe(self) -> Description:
        """Return file name, hashes, all conventions in force, and the version of onnxruntime."""
        import onnxruntime

        options = self.options
        size = f"native, multiple of {options.multiple}" if isinstance(self.size, str) else _times(self.size)
        return {
            "adapter": "onnx",
            "file": self._file,
            **self._hashes,
            "size": size,
            "resize": options.resize,
            "scale": options.scale,
            "mean": "/".join(map(repr, options.mean)),
            "std": "/".join(map(repr, options.std)),
            "channels": options.channels,
            "layout": self.layout,
            "output": self._outputs[self._output],
            "output_index": self._output,
            "outputs": ", ".join(self._outputs),
            "uncertainty": None if self._uncertainty is None else self._outputs[self._uncertainty],
            "activation": options.activation,
            "order": options.order,
            "minmax": options.minmax,
            "batch": self.batch,
            "device": options.device,
            "onnxruntime": str(onnxruntime.__version__),
        }

    def predict(self, images: Sequence[Image]) -> list[Prediction]:
        """Return one prediction per image; see `Segmenter.predict`."""
        predictions = []
        fed = [(self._input_size(check_image(image)), image) for image in images]
        for size, group in itertools.groupby(fed, key=lambda pair: pair[0]):
            members = [image for _, image in group]
            for start in range(0, len(members), self.batch):
                predictions += self._predict_batch(members[start : start + self.batch], size)
        return predictions

    def _input_size(self, image: Image) -> tuple[int, int]:
        if not isinstance(self.size, str):
            return self.size
        step = self.options.multiple
        height, width = (max(1, (side + step // 2) // step) * step for side in image.shape[:2])
        return height, width

    def _predict_batch(self, images: list[Image], size: tuple[int, int]) -> list[Prediction]:
        tensors = [self._tensor(image, size) for image in images]
        if self._fixed_batch:
            tensors += [tensors[-1]] * (self.batch - len(tensors))
        wanted = [self._output] if self._uncertainty is None else [self._output, self._uncertainty]
        try:
            values = self._session.run([self._outputs[i] for i in wanted], {self._input: np.stack(tensors)})
        except Exception as error:
            raise ModelError(
                f"{self.name}: the model failed on {len(tensors)} image(s) of {_times(size)}: {_reason(error)}"
            ) from error
        logits = self._maps(values[0], len(tensors), size, self._outputs[self._output])
        doubts: list[NDArray[np.float32] | None] = [None] * len(images)
        if self._uncertainty is not None:
            output = self._outputs[self._uncertainty]
            doubts[:] = self._maps(values[1], len(tensors), size, output, single=True)[: len(images)]
        return [
            self._finish(image, logit, doubt)
            for image, logit, doubt in zip(images, logits[: len(images)], doubts, strict=True)
        ]

    def _tensor(self, image: Image, size: tuple[int, int]) -> NDArray[np.floating[Any]]:
        """Return one normalized image in the model's layout."""
        options = self.options
        pixels = resize_image(image, size, options.resize)
        if options.channels == "bgr":
            pixels = pixels[:, :, ::-1]
        levels = np.arange(256, dtype=np.float32) / np.float32(options.scale)
        axis = 0 if self.layout == "nchw" else 2
        return np.stack(
            [
                # 256 values are normalized, not every pixel
                ((levels - np.float32(mean)) / np.float32(std)).astype(self._dtype)[pixels[:, :, channel]]
                for channel, (mean, std) in enumerate(zip(options.mean, options.std, strict=True))
            ],
            axis=axis,
        )

    def _maps(
        self, values: object, count: int, size: tuple[int, int], output: str, *, single: bool = False
    ) -> NDArray[np.float32]:
        """Return an output as `count`×h×w: probabilities or logits of the object."""
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
            raise ModelError(f"{self.name}: output {output!r} is not an array of numbers; choose another by output=.")
        shape = values.shape
        problem = ModelError(
            f"{self.name}: output {output!r} has shape {_times(shape) or 'scalar'}, not one map per image "
            f"({count} of {_times(size)} fed); choose another by output=, or export a segmenter."
        )
        if values.ndim == 2 and count == 1:
            values = values[None]
        elif values.ndim == 4:
            axes = (1, 3) if self.layout == "nchw" else (3, 1)
            axis = next((a for a in axes if shape[a] in (1, 2)), None)
            if axis is None:
                raise problem
            values = self._object_channel(np.moveaxis(values, axis, 1), output, single=single)
        if values.ndim != 3 or len(values) != count:
            raise problem
        # a row or a single value for a larger image is a classifier's or a score's, not a map
        if any(side < min(2, fed) for side, fed in zip(values.shape[1:], size, strict=True)):
            raise problem
        if self.options.activation == "softmax" and not single and len(shape) != 4:
            raise ModelError(f"{self.name}: activation=softmax needs two channels; output {output!r} has one.")
        return np.ascontiguousarray(values, np.float32)

    def _object_channel(self, values: NDArray[Any], output: str, *, single: bool) -> NDArray[Any]:
        """Return N×h×w of N×1×h×w or N×2×h×w."""
        channels, activation = values.shape[1], self.options.activation
        if single or activation == "sigmoid":
            if channels != 1:
                advice = "" if single else "; give activation=softmax if they are logits, none if probabilities"
                raise ModelError(f"{self.name}: output {output!r} has two channels{advice}.")
            return values[:, 0]
        if activation == "softmax":
            if channels != 2:
                raise ModelError(f"{self.name}: activation=softmax needs two channels; output {output!r} has one.")
            wide = values.astype(np.float32)
            # softmax over two is the sigmoid of their difference, and resizing commutes with the difference
            return np.asarray(wide[:, 1] - wide[:, 0])
        return values[:, channels - 1]

    def _finish(self, image: Image, logits: NDArray[np.float32], doubt: NDArray[np.float32] | None) -> Prediction:
        shape = (image.shape[0], image.shape[1])
        activate = self.options.activation != "none"
        if self.options.order == "resize-then-activate":
            values = resize_map(logits, shape)
            values = sigmoid(values) if activate else values
        else:
            values = resize_map(sigmoid(logits) if activate else logits, shape)
        if self.options.minmax:
            values = minmax(values)
        try:
            return Prediction(values, None if doubt is None else resize_map(doubt, shape))
        except ModelError as error:
            raise ModelError(f"{self.name}: {error}") from None


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
        fits, text = height in (None, asked[0]) and width in (None, asked[1]), f"{asked[0]}x{asked[1]}"
    if not fits:
        raise ModelError(f"{path}: size={text} does not fit the model's input {shown}; leave size= out.")
    return asked


def _times(sides: Sequence[int]) -> str:
    return "×".join(map(str, sides))


def _reason(error: Exception) -> str:
    """Return the first line of an onnxruntime error without its code."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", lines[0])


def _hash(path: Path) -> Description:
    """Return the SHA-256 of the file, and of the weight files it names, if any."""
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


def _open(path: Path, device: str) -> Any:
    """Open an onnxruntime session that uses one thread."""
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
