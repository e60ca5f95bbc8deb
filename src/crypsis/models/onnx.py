"""Any segmenter that was exported to ONNX, run by onnxruntime.

What a benchmark of such a model depends on besides its weights (input size, resize kernel, normalization, which
output, activation and its order with resizing) is an option here, and part of the description of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, UnknownNameError
from ..types import Image, Prediction, check_image
from .activations import minmax, sigmoid
from .onnx_session import hash_model, in_batches, model_input, open_session, read_size, run_session, times
from .options import Reader, numbers, one_of, positive_integer, positive_number, read_options, yes_or_no
from .resizing import KERNELS, resize_image, resize_map
from .segmenter import Description

__all__ = ["OnnxOptions", "OnnxSegmenter"]


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


def _read_output(text: str) -> str | int:
    if not text:
        raise ValueError("an output's name, or its index from 0")
    return int(text) if text.isascii() and text.isdigit() else text


_READERS: dict[str, Reader] = {
    "size": read_size,
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
        self._hashes = hash_model(path)
        self._session = open_session(path, self.options.device)
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(node.name for node in inputs)
            raise ModelError(f"{path}: the model takes {len(inputs)} inputs ({names}); only one image can be fed.")
        node = inputs[0]
        options = self.options
        self._input = model_input(
            path, node.name, node.type, node.shape, size=options.size, layout=options.layout, batch=options.batch
        )
        self._choose_outputs(path)

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> OnnxSegmenter:
        """Load `onnx:PATH[,option=value…]`; see `OnnxOptions`."""
        if not target:
            raise ModelError("onnx needs a file; write onnx:PATH.")
        return cls(Path(target), OnnxOptions(**read_options("onnx", options, _READERS)), name=name)

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
        size = (
            f"native, multiple of {options.multiple}" if isinstance(self._input.size, str) else times(self._input.size)
        )
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
            "layout": self._input.layout,
            "output": self._outputs[self._output],
            "output_index": self._output,
            "outputs": ", ".join(self._outputs),
            "uncertainty": None if self._uncertainty is None else self._outputs[self._uncertainty],
            "activation": options.activation,
            "order": options.order,
            "minmax": options.minmax,
            "batch": self._input.batch,
            "device": options.device,
            "onnxruntime": str(onnxruntime.__version__),
        }

    def predict(self, images: Sequence[Image]) -> list[Prediction]:
        """Return one prediction per image; see `Segmenter.predict`."""
        checked = [check_image(image) for image in images]
        return in_batches(checked, self._input_size, self._input.batch, self._predict_batch)

    def _input_size(self, image: Image) -> tuple[int, int]:
        if not isinstance(self._input.size, str):
            return self._input.size
        step = self.options.multiple
        height, width = (max(1, (side + step // 2) // step) * step for side in image.shape[:2])
        return height, width

    def _predict_batch(self, images: list[Image], size: tuple[int, int]) -> list[Prediction]:
        options = self.options
        pixels = [resize_image(image, size, options.resize) for image in images]
        fed = self._input.stack(
            [
                self._input.tensor(
                    image, mean=options.mean, std=options.std, scale=options.scale, channels=options.channels
                )
                for image in pixels
            ]
        )
        wanted = [self._output] if self._uncertainty is None else [self._output, self._uncertainty]
        names = [self._outputs[i] for i in wanted]
        values = run_session(self._session, names, {self._input.name: fed}, self.name, len(fed), size)
        logits = self._maps(values[0], len(fed), size, names[0])
        doubts: list[NDArray[np.float32] | None] = [None] * len(images)
        if self._uncertainty is not None:
            doubts[:] = self._maps(values[1], len(fed), size, names[1], single=True)[: len(images)]
        return [
            self._finish(image, logit, doubt)
            for image, logit, doubt in zip(images, logits[: len(images)], doubts, strict=True)
        ]

    def _maps(
        self, values: object, count: int, size: tuple[int, int], output: str, *, single: bool = False
    ) -> NDArray[np.float32]:
        """Return an output as `count`×h×w: probabilities or logits of the object."""
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
            raise ModelError(f"{self.name}: output {output!r} is not an array of numbers; choose another by output=.")
        shape = values.shape
        problem = ModelError(
            f"{self.name}: output {output!r} has shape {times(shape) or 'scalar'}, not one map per image "
            f"({count} of {times(size)} fed); choose another by output=, or export a segmenter."
        )
        if values.ndim == 2 and count == 1:
            values = values[None]
        elif values.ndim == 4:
            axes = (1, 3) if self._input.layout == "nchw" else (3, 1)
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
