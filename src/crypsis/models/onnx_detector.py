"""Any detector that was exported to ONNX, run by onnxruntime.

How an image becomes the model's input and its outputs become boxes changes a model's figures as its weights do, so each
of these conventions is an option here, and part of the description of the run. The forms of output are in
`detection_formats`.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, UnknownNameError
from ..types import Detections, Image, check_image
from . import coco_classes
from .detection_formats import FORMATS, NAMES, Format, Shape, guess_format, select
from .foreign import class_names
from .letterbox import Placement, place_image
from .onnx_session import (
    FLOATS,
    hash_model,
    in_batches,
    model_input,
    open_session,
    read_size,
    run_session,
    times,
)
from .options import Reader, numbers, one_of, positive_integer, positive_number, read_options, share, yes_or_no
from .resizing import KERNELS
from .segmenter import Description
from .suppression import suppress

__all__ = ["READERS", "OnnxDetector", "OnnxDetectorOptions"]

_TYPES: dict[str, type[np.generic]] = {**FLOATS, "tensor(uint8)": np.uint8}
_LONGEST_NAMES = 1_000_000
"""Characters of metadata with names of classes that are read at most."""
_NATIVE_TRIAL = (320, 320)
"""Height and width of what a model of any size is tried with, where the file does not tell the shapes of outputs."""
_OF_A_FORM = ("channels", "letterbox", "pad", "activation", "units", "first", "nms", "limit", "multiple")


@dataclass(frozen=True, kw_only=True)
class OnnxDetectorOptions:
    """How images become the model's input and its outputs become boxes.

    What is None is taken from the form of output (`detection_formats.FORMATS`), or from the model.

    Attributes:
        format: a key of `detection_formats.FORMATS`, or `auto` to tell it by names and shapes, if they
            leave no doubt. RT-DETR as Ultralytics exports it is `yolov8` with units=normalized, letterbox=no, nms=none.
        outputs: names of the outputs, in the form's order (one, or boxes, scores, labels).
        classes: `coco` (80, counted on), `coco91` (COCO's category ids, gaps included: DETR, torchvision, TensorFlow),
            `metadata` (what Ultralytics writes into the file), or the names; None for metadata if there are any, or for
            COCO where the outputs have as many columns.
        first: the model's number of the first class; has no meaning with `coco91`.
        score: boxes with this score or less are left out, in [0, 1]. 0.05 is the habit of COCO evaluations; Ultralytics
            validates with 0.001.
        nms: overlap (intersection over union) above which the worse of two boxes of a class goes, or `none`.
        limit: boxes that are kept of an image, the best.
        size: (height, width) the model is fed with; `"native"` for the image's own, each side rounded to the nearest
            multiple of `multiple`; None to take it from the model.
        multiple: see `size`.
        letterbox: keep the image's proportions and fill what remains.
        pad: value of the filling, 0..255.
        center: fill on both sides; or else right and below only.
        resize: kernel that brings an image to its size, one of `resizing.KERNELS`, on 8-bit pixels.
        mean: subtracted per channel after division by `scale`, in the order the model sees.
        std: divided by, likewise.
        scale: pixel values 0..255 are divided by it first.
        channels: `rgb` or `bgr`, the order the model sees.
        layout: `nchw` or `nhwc`; None to read it off the model's input shape.
        activation: what makes scores of the model's numbers: `none`, `sigmoid` or `softmax`.
        units: `pixels` of the input, or `normalized` by its sides: in what the model gives boxes.
        batch: images in one call; a model exported with a fixed batch is fed full batches of that many.
        device: `cpu` or `cuda`.
    """

    format: str = "auto"
    outputs: tuple[str, ...] | None = None
    classes: str | tuple[str, ...] | None = None
    first: int | None = None
    score: float = 0.05
    nms: float | str | None = None
    limit: int | None = None
    size: tuple[int, int] | str | None = None
    multiple: int | None = None
    letterbox: bool | None = None
    pad: int | None = None
    center: bool = True
    resize: str = "bilinear"
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    scale: float | None = None
    channels: str | None = None
    layout: str | None = None
    activation: str | None = None
    units: str | None = None
    batch: int | None = None
    device: str = "cpu"


def _whole(last: int) -> Reader:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) <= last):
            raise ValueError(f"a whole number from 0 to {last}")
        return int(text)

    return read


def _classes(text: str) -> str | tuple[str, ...]:
    if text in ("coco", "coco91", "metadata"):
        return text
    try:
        return class_names(text)
    except ValueError as error:
        raise ValueError(f"coco91 | metadata | {error}") from None


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split("/"))
    if not all(names):
        raise ValueError("names of outputs separated by /")
    return names


READERS: dict[str, Reader] = {
    "format": one_of("auto", *FORMATS),
    "outputs": _names,
    "classes": _classes,
    "first": _whole(1000),
    "score": share,
    "nms": lambda text: text if text == "none" else share(text),
    "limit": positive_integer,
    "size": read_size,
    "multiple": positive_integer,
    "letterbox": yes_or_no,
    "pad": _whole(255),
    "center": yes_or_no,
    "resize": one_of(*KERNELS),
    "mean": numbers(3),
    "std": numbers(3, above_zero=True),
    "scale": positive_number,
    "channels": one_of("rgb", "bgr"),
    "layout": one_of("nchw", "nhwc"),
    "activation": one_of("none", "sigmoid", "softmax"),
    "units": one_of("pixels", "normalized"),
    "batch": positive_integer,
    "device": one_of("cpu", "cuda"),
}
"""Option → how its text is read."""


class OnnxDetector:
    """A detector in an ONNX file, on one CPU thread, so that results do not depend on the machine's number of cores.

    It has one image input (four axes, or three for one image; floats or 8-bit), and perhaps a second of whole numbers,
    N×2, that takes the size its boxes shall refer to. Boxes are clipped to the image; those that are wholly outside,
    in the filling, are dropped.
    """

    def __init__(self, path: Path, options: OnnxDetectorOptions | None = None, *, name: str | None = None) -> None:
        """Load the file, and settle what its outputs are.

        Where shapes of outputs are not written in the file, the model is run once on a black image.

        Args:
            path: the `.onnx` file; weights kept beside it ("external data") are found by onnxruntime.
            options: see `OnnxDetectorOptions`.
            name: label; the file's stem if None.

        Raises:
            ModelError: no such file, not ONNX, not a detector of a known form, or an option that does not fit it.
            UnknownNameError: `outputs` names one that the model does not have.
            MissingDependencyError: `device` is cuda and this onnxruntime cannot use it.
        """
        self.name = name or path.stem
        self._file = path.name
        self.options = options or OnnxDetectorOptions()
        self._hashes = hash_model(path)
        self._session = open_session(path, self.options.device)
        self._choose_inputs(path)
        known = self._known_classes(path)
        shapes = self._shapes()
        self._form, self._in_force = self._choose_format(path, shapes, known)
        self._outputs = self._choose_outputs(path, shapes)
        self._choose_classes(path, [shapes[name] for name in self._outputs], known)

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> OnnxDetector:
        """Load `onnx:PATH[,option=value…]`; see `OnnxDetectorOptions`."""
        if not target:
            raise ModelError("onnx needs a file; write onnx:PATH.")
        return cls(Path(target), OnnxDetectorOptions(**read_options("onnx", options, READERS)), name=name)

    def _choose_inputs(self, path: Path) -> None:
        nodes = self._session.get_inputs()
        sizes = [node for node in nodes if node.type in ("tensor(int64)", "tensor(int32)") and len(node.shape) == 2]
        images = [node for node in nodes if node not in sizes]
        if len(images) != 1 or len(sizes) > 1:
            names = ", ".join(node.name for node in nodes)
            raise ModelError(
                f"{path}: the model takes {len(nodes)} inputs ({names}); one image can be fed, and one array of sizes."
            )
        node = images[0]
        self._sizes = (sizes[0].name, np.int64 if "64" in sizes[0].type else np.int32) if sizes else None
        self._alone = len(node.shape) == 3
        dims = [1, *node.shape] if self._alone else node.shape
        options = self.options
        self._input = model_input(
            path,
            node.name,
            node.type,
            dims,
            size=options.size,
            layout=options.layout,
            batch=options.batch,
            types=_TYPES,
        )

    def _known_classes(self, path: Path) -> tuple[str, tuple[str, ...]] | None:
        """Return where names of classes are from, and the names, if an option or the file tells them."""
        asked = self.options.classes
        metadata = self._session.get_modelmeta().custom_metadata_map.get("names")
        if asked in ("coco", "coco91"):
            return str(asked), coco_classes.CLASSES
        if isinstance(asked, tuple):
            source, names = "option", asked
        elif metadata:
            source, names = "metadata", _parse_metadata(path, metadata)
        elif asked == "metadata":
            raise ModelError(f"{path}: the file has no metadata with names of classes; give classes=FILE or coco.")
        else:
            return None
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ModelError(f"{path}: the class {twice!r} (from {source}) is there twice; give different names.")
        return source, names

    def _shapes(self) -> dict[str, Shape]:
        """Return name → shape of all outputs, with a batch of one or that of the model."""
        nodes = self._session.get_outputs()
        declared = {node.name: tuple(node.shape) for node in nodes}
        if all(isinstance(side, int) and side > 0 for shape in declared.values() for side in shape[1:]):
            return {name: (self._input.batch, *shape[1:]) for name, shape in declared.items()}
        height, width = self._trial_size()
        colors = (3, height, width) if self._input.layout == "nchw" else (height, width, 3)
        black = np.zeros((self._input.batch if self._input.fixed_batch else 1, *colors), self._input.dtype)
        values = self._run(black, (height, width), list(declared))
        return {name: np.shape(value) for name, value in zip(declared, values, strict=True)}

    def _trial_size(self) -> tuple[int, int]:
        return _NATIVE_TRIAL if isinstance(self._input.size, str) else self._input.size

    def _choose_format(
        self, path: Path, shapes: dict[str, Shape], known: tuple[str, tuple[str, ...]] | None
    ) -> tuple[Format, dict[str, Any]]:
        """Return the form of the outputs, and option → value in force for all options that a form has."""
        options, format = self.options, self.options.format
        if format == "auto":
            guess = guess_format(
                shapes,
                self._trial_size(),
                None if known is None else len(known[1]),
                takes_sizes=self._sizes is not None,
                coco_ids=options.classes == "coco91",
            )
            if guess is None:
                seen = ", ".join(f"{name} {times(shape) or 'scalar'}" for name, shape in shapes.items())
                forms = "; ".join(f"{name} ({form.shown})" for name, form in FORMATS.items())
                raise ModelError(f"{path}: the outputs ({seen}) do not tell their form; give format= one of {forms}.")
            format = guess
        form = FORMATS[format]
        if options.activation == "softmax" and "labels" in form.roles:
            raise ModelError(f"{path}: activation=softmax needs scores of all classes, which format={format} lacks.")
        mean, std, scale = form.normalization
        if self._input.dtype is np.uint8:
            mean, std, scale = (0.0,) * 3, (1.0,) * 3, 1.0
            if any(value is not None for value in (options.mean, options.std, options.scale)):
                raise ModelError(f"{path}: the model takes 8-bit pixels as they are; leave mean=, std= and scale= out.")
        defaults: dict[str, Any] = {
            "format": format,
            "mean": mean,
            "std": std,
            "scale": scale,
            **{option: getattr(form, option) for option in _OF_A_FORM},
        }
        asked = {option: getattr(options, option) for option in defaults if option != "format"}
        return form, defaults | {option: value for option, value in asked.items() if value is not None}

    def _choose_outputs(self, path: Path, shapes: dict[str, Shape]) -> list[str]:
        """Return the outputs that the form needs, in its order."""
        roles, asked, format = self._form.roles, self.options.outputs, self._in_force["format"]
        if asked is not None:
            for name in asked:
                if name not in shapes:
                    raise UnknownNameError.among(f"output in {path}", name, shapes, "(outputs=)")
            if len(asked) != len(roles):
                raise ModelError(f"{path}: format={format} needs outputs={'/'.join(roles)}; got {len(asked)} name(s).")
            chosen: list[str | None] = list(asked)
        else:
            types = {node.name: node.type for node in self._session.get_outputs()}
            chosen = [_find(role, axes, shapes, types) for role, axes in roles.items()]
        fits = [
            name is not None and axes - len(shapes[name]) in (0, 1) and (role != "boxes" or shapes[name][-1] == 4)
            for name, (role, axes) in zip(chosen, roles.items(), strict=True)
        ]
        if not all(fits) or len(set(chosen)) < len(chosen):
            raise ModelError(self._misfit(path, shapes))
        return [name for name in chosen if name is not None]

    def _misfit(self, path: Path, shapes: dict[str, Shape]) -> str:
        seen = ", ".join(f"{name} {times(shape) or 'scalar'}" for name, shape in shapes.items())
        format = self._in_force["format"]
        return (
            f"{path}: the outputs ({seen}) are not of format={format} ({self._form.shown}); give another format=, or "
            "say which outputs to take by outputs=."
        )

    def _choose_classes(self, path: Path, shapes: list[Shape], known: tuple[str, tuple[str, ...]] | None) -> None:
        """Settle which classes the model's numbers mean."""
        # an output without a batch axis counts as a batch of one
        by_role = {
            role: shape if len(shape) == axes else (1, *shape)
            for (role, axes), shape in zip(self._form.roles.items(), shapes, strict=True)
        }
        first = self._in_force["first"]
        numbers_of = None if known is None else _numbering(known[0], len(known[1]), first)
        columns = self._form.columns(by_role, None if numbers_of is None else len(numbers_of))
        if columns is not None and columns < 1:
            raise ModelError(self._misfit(path, dict(zip(self._outputs, shapes, strict=True))))
        if known is None:
            source = {80 + first: "coco", 91: "coco91"}.get(columns or 0)
            if source is None:
                count = "do not say" if columns is None else f"count {columns}"
                raise ModelError(
                    f"{path}: the outputs {count} classes; say which they are: classes=coco | coco91 | FILE with one "
                    "name a line."
                )
            known = source, coco_classes.CLASSES
            numbers_of = _numbering(source, 80, first)
        assert numbers_of is not None
        if columns is not None and columns != len(numbers_of):
            extra = " (the first is none)" if len(numbers_of) > len(known[1]) and known[0] != "coco91" else ""
            raise ModelError(
                f"{path}: as format={self._in_force['format']} the outputs count {columns} classes{extra}, but classes "
                f"from {known[0]} are {len(numbers_of)}; give another classes= or format=."
            )
        self._source, self.classes = known
        self._class_of = numbers_of

    def describe(self) -> Description:
        """Return file name, hashes, all conventions in force, and the version of onnxruntime."""
        import onnxruntime

        options, force = self.options, self._in_force
        native = f"native, multiple of {force['multiple']}"
        return {
            "adapter": "onnx",
            "file": self._file,
            **self._hashes,
            "format": force["format"],
            "outputs": ", ".join(self._outputs),
            "classes": self._source,
            "class_count": len(self.classes),
            "classes_sha256": hashlib.sha256("\n".join(self.classes).encode()).hexdigest(),
            "first": None if self._source == "coco91" else force["first"],
            "activation": force["activation"],
            "units": force["units"],
            "score": options.score,
            "nms": force["nms"],
            "limit": force["limit"],
            "boxes": "clipped to the image",
            "size": native if isinstance(self._input.size, str) else times(self._input.size),
            "letterbox": force["letterbox"],
            "pad": force["pad"] if force["letterbox"] else None,
            "center": options.center if force["letterbox"] else None,
            "resize": options.resize,
            "scale": force["scale"],
            "mean": "/".join(map(repr, force["mean"])),
            "std": "/".join(map(repr, force["std"])),
            "channels": force["channels"],
            "layout": self._input.layout,
            "batch": self._input.batch,
            "device": options.device,
            "onnxruntime": str(onnxruntime.__version__),
        }

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return the objects of each image, the best first; see `Detector.detect`."""
        checked = [check_image(image) for image in images]
        return in_batches(checked, self._input_size, self._input.batch, self._detect_batch)

    def _input_size(self, image: Image) -> tuple[int, int]:
        if not isinstance(self._input.size, str):
            return self._input.size
        step = self._in_force["multiple"]
        height, width = (max(1, (side + step // 2) // step) * step for side in image.shape[:2])
        return height, width

    def _detect_batch(self, images: list[Image], size: tuple[int, int]) -> list[Detections]:
        force, options = self._in_force, self.options
        placed = [
            place_image(
                image,
                size,
                letterbox=force["letterbox"],
                pad=force["pad"],
                center=options.center,
                kernel=options.resize,
            )
            for image in images
        ]
        fed = self._input.stack(
            [
                self._input.tensor(
                    pixels, mean=force["mean"], std=force["std"], scale=force["scale"], channels=force["channels"]
                )
                for pixels, _ in placed
            ]
        )
        outputs = [
            self._batched(value, axes, len(fed), name)
            for value, axes, name in zip(
                self._run(fed, size, self._outputs), self._form.roles.values(), self._outputs, strict=True
            )
        ]
        try:
            return [
                self._finish([output[i] for output in outputs], size, placement)
                for i, (_, placement) in enumerate(placed)
            ]
        except ModelError as error:
            raise ModelError(f"{self.name}: {error}") from None

    def _run(self, fed: NDArray[Any], size: tuple[int, int], outputs: list[str]) -> list[Any]:
        feed = {self._input.name: fed[0] if self._alone else fed}
        if self._sizes is not None:
            name, dtype = self._sizes
            feed[name] = np.tile(np.array(size[::-1], dtype), (len(fed), 1))
        return run_session(self._session, outputs, feed, self.name, len(fed), size)

    def _batched(self, values: object, axes: int, count: int, output: str) -> NDArray[Any]:
        """Return an output with its batch axis."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
            batched = values[None] if values.ndim == axes - 1 and count == 1 else values
            if batched.ndim == axes and len(batched) == count:
                return batched
        shape = times(np.shape(values)) if isinstance(values, np.ndarray) else type(values).__name__
        raise ModelError(
            f"{self.name}: output {output!r} is {shape}; for {count} image(s) an array of {axes} axes was expected."
        )

    def _finish(self, outputs: list[NDArray[Any]], size: tuple[int, int], placement: Placement) -> Detections:
        force, options = self._in_force, self.options
        boxes, scores, numbers_of = select(
            self._form.decode(outputs, len(self._class_of), size),
            self._form,
            len(self._class_of),
            activation=force["activation"],
            units=force["units"],
            size=size,
            threshold=options.score,
        )
        if len(numbers_of) and numbers_of.max() >= len(self._class_of):
            raise ModelError(
                f"an object is of class {numbers_of.max()}, but by classes from {self._source} the last is "
                f"{len(self._class_of) - 1}; give another classes= or first=."
            )
        boxes = placement.to_image(boxes)
        # a negative number is filling, for which the last class must not be taken
        labels = np.where(numbers_of < 0, -1, self._class_of[np.maximum(numbers_of, 0)])
        kept = np.flatnonzero((boxes[:, :2] < boxes[:, 2:]).all(axis=1) & (labels >= 0))
        overlap = None if force["nms"] in (None, "none") else force["nms"]
        kept = kept[suppress(boxes[kept], scores[kept], labels[kept], iou=overlap)][: force["limit"]]
        return Detections(boxes[kept].astype(np.float32), scores[kept], labels[kept])


def _find(role: str, axes: int, shapes: dict[str, Shape], types: dict[str, str]) -> str | None:
    """Return the output that has a role: by its name, or else the only one that can have it by its type and shape."""
    plain = {name.partition(":")[0].lower(): name for name in shapes}
    for name in NAMES.get(role, ()):
        if name in plain:
            return plain[name]
    fitting = []
    for name, shape in shapes.items():
        whole, four = "int" in types[name], shape[-1:] == (4,)
        kind = {"rows": not whole, "boxes": four, "labels": whole, "scores": not (whole or four)}[role]
        if kind and len(shape) in ((axes,) if role == "rows" else (axes, axes - 1)):
            fitting.append(name)
    return fitting[0] if len(fitting) == 1 else None


def _numbering(source: str, count: int, first: int) -> NDArray[np.int64]:
    """Return the model's number of a class → which of the classes it is, or -1 for none."""
    if source == "coco91":
        class_of = np.full(91, -1, np.int64)
        class_of[list(coco_classes.CATEGORY_IDS)] = np.arange(80)
        return class_of
    return np.concatenate([np.full(first, -1, np.int64), np.arange(count, dtype=np.int64)])


def _parse_metadata(path: Path, text: str) -> tuple[str, ...]:
    """Return names of classes as Ultralytics writes them: a Python dict of number → name, or a list."""
    try:
        if len(text) > _LONGEST_NAMES:
            raise ValueError("too long")
        value = ast.literal_eval(text)
        names = tuple(value[i] for i in range(len(value)))
        if not names or not all(isinstance(name, str) and name and name.isprintable() for name in names):
            raise ValueError("not names")
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        raise ModelError(
            f"{path}: the metadata's names of classes cannot be read ({text[:60]!r}); give classes=FILE or coco."
        ) from None
    return names
