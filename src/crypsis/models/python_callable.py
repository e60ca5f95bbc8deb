"""A Python function as a segmenter: `python:module:function`.

The function takes an image (uint8 H×W×3, RGB) and returns a probability map (float H×W in [0, 1]), or a pair
(probability, uncertainty) of such maps.
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
from ..types import Image, Prediction, ProbabilityMap, check_image
from .options import read_options
from .segmenter import Description

__all__ = ["PythonCallable"]


class PythonCallable:
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

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> PythonCallable:
        """Import `python:module:function`."""
        read_options("python", options, {})
        module, _, function = target.partition(":")
        if not all(all(part.isidentifier() for part in dotted.split(".")) for dotted in (module, function)):
            raise ModelError(f"python:{target} does not name a function; write python:package.module:function.")
        return cls(module, function, name=name)

    def describe(self) -> Description:
        """Return the function's name, and name and SHA-256 of the file that defines it."""
        return {"adapter": "python", "function": self._spec.removeprefix("python:"), **self._source}

    def predict(self, images: Sequence[Image]) -> list[Prediction]:
        """Call the function with a copy of each image; see `Segmenter.predict`.

        Raises:
            ModelError: the function raised, or returned something else than a map or two.
        """
        return [self._predict_one(check_image(image)) for image in images]

    def _predict_one(self, image: Image) -> Prediction:
        try:
            with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
                result = self._function(image.copy())
        except (Exception, SystemExit) as error:
            raise ModelError(f"{self._spec} raised {_told(error)}.") from error
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
            raise ModelError(f"{self._spec} returned what is no array: {_told(error)}.") from error
        if array.dtype.kind not in "fb" or array.shape != shape:
            got = f"{array.dtype} {array.shape}" if array.dtype != object else type(values).__name__
            raise ModelError(f"{self._spec} returned {got}; return floats in [0, 1] of shape {shape}.")
        return np.array(array, np.float32)


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
        raise ModelError(f"{spec}: importing {module} failed: {_told(error)}.") from error
    except (Exception, SystemExit) as error:
        raise ModelError(f"{spec}: importing {module} failed: {_told(error)}.") from error
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


def _told(error: BaseException) -> str:
    """Return an error's type and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].rstrip('.')}" if lines else type(error).__name__
