"""A Python function as a segmenter or a detector: `python:module:function`.

The function takes an image (uint8 H×W×3, RGB). A segmenter returns a probability map (float H×W in [0, 1]), or a pair
(probability, uncertainty) of such maps. A detector returns arrays, lists or tensors: boxes (N×4: x1, y1, x2, y2 in
pixels), scores (N, in [0, 1]) and labels (N, counting the classes from 0), in this order or as a dictionary.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError, UnknownNameError
from ..types import Detections, Image, Prediction, ProbabilityMap, check_image
from .foreign import class_names, to_detections, told
from .options import read_options
from .segmenter import Description

__all__ = ["PythonCallable", "PythonDetector"]

_PARTS = ("boxes", "scores", "labels")
_PARTS_TOLD = ", ".join(_PARTS)


class _Function:
    """A function of one image, found by module and name; the current folder is importable."""

    def __init__(self, module: str, function: str, *, name: str | None = None) -> None:
        """Import the function.

        Args:
            module: dotted name; modules in the current folder come first.
            function: its name in the module; may be dotted (`Net.segment`).
            name: label; the function's name if None.

        Raises:
            ModelError: the module cannot be imported, or the name is not callable.
            UnknownNameError: the module has no such name.
        """
        self.name = name or function
        self._spec = f"python:{module}:{function}"
        self._function = _find(self._spec, module, function)
        self._source = _source(self._function, sys.modules[module])

    def describe(self) -> Description:
        """Return the function's name, and name and SHA-256 of the file that defines it."""
        return {"adapter": "python", "function": self._spec.removeprefix("python:"), **self._source}

    def _call(self, image: Image) -> Any:
        """Return what the function makes of a copy of the image."""
        copy = check_image(image).copy()
        try:
            with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
                return self._function(copy)
        except (Exception, SystemExit) as error:
            raise ModelError(f"{self._spec} raised {told(error)}.") from error


class PythonCallable(_Function):
    """A function that returns a probability map, or (probability, uncertainty)."""

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> PythonCallable:
        """Import `python:module:function`."""
        read_options("python", options, {})
        return cls(*_split(target), name=name)

    def predict(self, images: Sequence[Image]) -> list[Prediction]:
        """Call the function with a copy of each image; see `Segmenter.predict`.

        Raises:
            ModelError: the function raised, or returned something else than a map or two.
        """
        return [self._predict_one(image) for image in images]

    def _predict_one(self, image: Image) -> Prediction:
        result = self._call(image)
        probability, uncertainty = result, None
        if isinstance(result, tuple):
            if len(result) != 2:
                raise ModelError(
                    f"{self._spec} returned {len(result)} values; return a map, or (probability, uncertainty)."
                )
            probability, uncertainty = result
        shape = (image.shape[0], image.shape[1])
        try:
            return Prediction(
                self._map(probability, shape), None if uncertainty is None else self._map(uncertainty, shape)
            )
        except ModelError as error:
            reason = str(error)
            raise ModelError(reason if self._spec in reason else f"{self._spec}: {reason}") from error

    def _map(self, values: object, shape: tuple[int, int]) -> ProbabilityMap:
        try:
            array = np.asarray(values)
        except Exception as error:  # such as a torch tensor that requires grad, or lies on a GPU
            raise ModelError(f"{self._spec} returned what is no array: {told(error)}.") from error
        if array.dtype.kind not in "fb" or array.shape != shape:
            got = f"{array.dtype} {array.shape}" if array.dtype != object else type(values).__name__
            raise ModelError(f"{self._spec} returned {got}; return floats in [0, 1] of shape {shape}.")
        return np.array(array, np.float32)


class PythonDetector(_Function):
    """A function that returns boxes, scores and labels."""

    def __init__(self, module: str, function: str, classes: Sequence[str], *, name: str | None = None) -> None:
        """Import the function; see `PythonCallable`.

        Args:
            module: dotted name; modules in the current folder come first.
            function: its name in the module; may be dotted.
            classes: their names, in the order that the function's labels count them.
            name: label; the function's name if None.
        """
        super().__init__(module, function, name=name)
        self.classes = tuple(classes)

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> PythonDetector:
        """Import `python:module:function,classes=…`; see `foreign.class_names`."""
        values = read_options("python", options, {"classes": class_names})
        if "classes" not in values:
            raise ModelError(f"python:{target} does not say what its labels mean; add classes=cat/dog or classes=FILE.")
        return cls(*_split(target), values["classes"], name=name)

    def describe(self) -> Description:
        """Return the function's name, name and SHA-256 of the file that defines it, and the classes."""
        return {**super().describe(), "classes": "/".join(self.classes)}

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Call the function with a copy of each image; see `Detector.detect`.

        Raises:
            ModelError: the function raised, or returned something else than boxes, scores and labels.
        """
        return [self._detect_one(image) for image in images]

    def _detect_one(self, image: Image) -> Detections:
        result = self._call(image)
        if isinstance(result, Mapping):
            if missing := [part for part in _PARTS if part not in result]:
                raise ModelError(f"{self._spec} returned a dictionary without {missing[0]!r}; it needs {_PARTS_TOLD}.")
            result = tuple(result[part] for part in _PARTS)
        if not isinstance(result, tuple | list) or len(result) != 3:
            got = f"{len(result)} values" if isinstance(result, tuple | list) else type(result).__name__
            raise ModelError(f"{self._spec} returned {got}; return ({_PARTS_TOLD}), or a dictionary with these.")
        boxes, scores, labels = result
        return to_detections(self._spec, boxes, scores, labels, len(self.classes))


def _split(target: str) -> tuple[str, str]:
    """Return module and function of `module:function`."""
    module, _, function = target.partition(":")
    if not all(all(part.isidentifier() for part in dotted.split(".")) for dotted in (module, function)):
        raise ModelError(f"python:{target} does not name a function; write python:package.module:function.")
    return module, function


def _find(spec: str, module: str, function: str) -> Callable[[Image], Any]:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise ModelError(
                f"{spec}: there is no module {error.name!r}, neither in the current folder nor installed."
            ) from error
        raise ModelError(f"{spec}: importing {module} failed: {told(error)}.") from error
    except (Exception, SystemExit) as error:
        raise ModelError(f"{spec}: importing {module} failed: {told(error)}.") from error
    for part in function.split("."):
        if not hasattr(found, part):
            known = [n for n in dir(found) if callable(getattr(found, n, None)) and not n.startswith("_")]
            raise UnknownNameError.among(f"function in {module}", function, known)
        found = getattr(found, part)
    if not callable(found):
        raise ModelError(f"{spec} is a {type(found).__name__}, not a function.")
    return found  # type: ignore[no-any-return]


def _source(function: Callable[[Image], Any], module: Any) -> Description:
    """Return name and SHA-256 of the file that defines `function`, or else of `module`."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:  # an object with __call__, or a function written in C
        file = getattr(module, "__file__", None)
    path = Path(file) if file else None
    if path is None or not path.is_file():
        return {"source": None, "sha256": None}
    return {"source": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
