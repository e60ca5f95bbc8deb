"""What a segmenter is, and the specifications by which a user names one."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias, cast, runtime_checkable

from ..errors import ModelError, UnknownNameError
from ..types import Condition, Image, Prediction

__all__ = [
    "MODELS",
    "Description",
    "PredictionSource",
    "Segmenter",
    "Specification",
    "load_model",
    "parse_specification",
]

Description: TypeAlias = dict[str, str | int | float | bool | None]
"""Plain JSON values; equal descriptions mean equal maps for equal images."""


@runtime_checkable
class Segmenter(Protocol):
    """Turns images into probability maps."""

    name: str

    def describe(self) -> Description:
        """Return everything that identifies the model and its conventions; no absolute paths."""
        ...

    def predict(self, images: Sequence[Image]) -> list[Prediction]:
        """Return one prediction per image, in order, each at its own image's size.

        Args:
            images: uint8 H×W×3 RGB, of any, possibly differing sizes; they are not changed.

        Raises:
            ModelError: the model failed or returned something that is not a map.
        """
        ...


@runtime_checkable
class PredictionSource(Protocol):
    """Holds maps that were made elsewhere; no degraded image is needed to score them."""

    name: str

    def describe(self) -> Description:
        """Return what identifies the source and its conventions; no absolute paths."""
        ...

    def load(self, key: str, condition: Condition, shape: tuple[int, int]) -> Prediction:
        """Return the map of one image under one condition, resized to `shape` (height, width).

        Raises:
            ModelError: there is no such map, or it is not a map.
        """
        ...

    def check(self, keys: Sequence[str], conditions: Sequence[Condition]) -> list[tuple[str, Condition]]:
        """Return the (key, condition) pairs that have no map, without reading any."""
        ...


class _Kind(Protocol):
    """A class that `MODELS` may name."""

    @classmethod
    def from_specification(
        cls, target: str, options: Mapping[str, str], name: str | None
    ) -> Segmenter | PredictionSource: ...


MODELS: dict[str, str] = {
    "saliency": "crypsis.models.saliency:Saliency",
    "onnx": "crypsis.models.onnx:OnnxSegmenter",
    "predictions": "crypsis.models.predictions:SavedPredictions",
    "python": "crypsis.models.python_callable:PythonCallable",
    "robust-cod-lite": "crypsis.models.robust_cod_lite_segmenter:RobustCodLiteSegmenter",
    "sinet-v2": "crypsis.models.compared:SINET_V2",
    "pfnet": "crypsis.models.compared:PFNET",
    "zoomnet": "crypsis.models.compared:ZOOMNET",
    "dgnet": "crypsis.models.compared:DGNET",
    "dgnet-s": "crypsis.models.compared:DGNET_S",
}
"""Kind → "module:Class", imported when it is asked for. The class, or the row of a table, has `from_specification`."""

_OPTION = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_-]*)=")


@dataclass(frozen=True, slots=True)
class Specification:
    """A model as the user wrote it, in pieces.

    Attributes:
        kind: a key of `MODELS`.
        target: what follows the colon (a path, a folder, `module:function`), or nothing.
        options: option → value as written, without `name`.
        name: the label asked for with `name=`, or None.
    """

    kind: str
    target: str
    options: Mapping[str, str]
    name: str | None


def parse_specification(
    spec: str,
    kinds: Mapping[str, str] = MODELS,
    *,
    what: str = "kind of model",
    hint: Callable[[str], str] | None = None,
) -> Specification:
    r"""Take `kind[:target][,option=value…]` apart.

    Options are split off from the right, at commas whose piece looks like `word=`; a target may therefore hold
    commas and colons (`onnx:C:\nets\a,b.onnx,size=352`).

    Args:
        spec: as the user wrote it.
        kinds: the kinds there are.
        what: what they are kinds of, for the message that there is no such one.
        hint: advice for that message, by what stands before the options; for models if None.

    Raises:
        UnknownNameError: there is no such kind.
        ModelError: an option is given twice, or `name=` is empty.
    """
    pieces = spec.strip().split(",")
    options: dict[str, str] = {}
    while len(pieces) > 1 and (match := _OPTION.match(pieces[-1])):
        option, value = match[1], pieces.pop()[match.end() :].strip()
        if option in options:
            raise ModelError(f"Model {spec!r}: {option}= is given twice; give it once.")
        options[option] = value
    kind, _, target = ",".join(pieces).partition(":")
    if kind not in kinds:
        raise UnknownNameError.among(what, kind, kinds, (hint or _hint)(",".join(pieces)))
    name = options.pop("name", None)
    if name is not None and not (name and name.isprintable()):
        raise ModelError(f"Model {spec!r}: name= needs a printable label.")
    return Specification(kind, target, options, name)


def _hint(head: str) -> str:
    """Say which kind was probably meant by a bare path."""
    if head.lower().endswith(".onnx"):
        return f"For an exported model write onnx:{head}"
    if Path(head).is_dir():
        return f"For a folder of saved maps write predictions:{head}"
    return ""


def load_model(spec: str) -> Segmenter | PredictionSource:
    """Load the model that `spec` names.

    Args:
        spec: `saliency`, `onnx:PATH`, `predictions:DIR`, `python:module:function`, `robust-cod-lite[:PATH]`, or one
            of the compared models (`sinet-v2:PATH`, `pfnet:PATH`, `zoomnet:PATH`, `dgnet:PATH`, `dgnet-s:PATH`), each
            with options behind commas (`onnx:net.onnx,size=352,activation=sigmoid`). All accept `name=LABEL`, what
            tables call the model; without it, the file's stem, the folder's or the function's name, or the kind.

    Raises:
        UnknownNameError: an unknown kind or option; the nearest is suggested.
        ModelError: a wrong value, or a file, folder or function that cannot be used.
        MissingDependencyError: a package that the model needs is not installed.
    """
    parsed = parse_specification(spec)
    module, _, attribute = MODELS[parsed.kind].partition(":")
    kind = cast("type[_Kind]", getattr(importlib.import_module(module), attribute))
    return kind.from_specification(parsed.target, parsed.options, parsed.name)
