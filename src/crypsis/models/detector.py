"""What a detector is, and the specifications by which a user names one."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, cast, runtime_checkable

from ..types import Condition, Detections, Image, ListedDetections
from .segmenter import Description, parse_specification

__all__ = ["DETECTORS", "DetectionSource", "Detector", "load_detector"]


@runtime_checkable
class Detector(Protocol):
    """Finds objects in images.

    Attributes:
        name: its label.
        classes: names of its classes, in the order that labels count them.
    """

    name: str
    classes: tuple[str, ...]

    def describe(self) -> Description:
        """Return everything that identifies the model and its conventions; no absolute paths."""
        ...

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one set of detections per image, in order, in pixels of its own image.

        Args:
            images: uint8 H×W×3 RGB, of any, possibly differing sizes; they are not changed.

        Raises:
            ModelError: the model failed or returned something that is not detections.
        """
        ...


@runtime_checkable
class DetectionSource(Protocol):
    """Holds detections that were made elsewhere; no degraded image is needed to score them.

    Attributes:
        name: its label.
    """

    name: str

    def describe(self) -> Description:
        """Return what identifies the source and its conventions; no absolute paths."""
        ...

    def load(self, image_id: int | str, condition: Condition) -> ListedDetections:
        """Return the detections of one image under one condition.

        An image of which nothing was detected has none. All images are asked for under one condition after another.

        Raises:
            ModelError: there is no file for that condition, or it is not one of detections.
        """
        ...

    def check(
        self, image_ids: Sequence[int | str], categories: Collection[int] | None, conditions: Sequence[Condition]
    ) -> tuple[list[str], list[str]]:
        """Return faults that forbid scoring (a file is missing, say) and notes on what is left out, a sentence each.

        Args:
            image_ids: of all images that the annotations list, scored or not.
            categories: ids of the data set's categories; None where labels do not count.
            conditions: that will be asked for.
        """
        ...


class _Kind(Protocol):
    """A class that `DETECTORS` may name."""

    @classmethod
    def from_specification(
        cls, target: str, options: Mapping[str, str], name: str | None
    ) -> Detector | DetectionSource: ...


DETECTORS: dict[str, str] = {
    "nanodet": "crypsis.models.nanodet:NanoDet",
    "onnx": "crypsis.models.onnx_detector:OnnxDetector",
    "predictions": "crypsis.models.saved_detections:SavedDetections",
    "python": "crypsis.models.python_callable:PythonDetector",
    "transformers": "crypsis.models.transformers_detector:TransformersDetector",
    "torchvision": "crypsis.models.torchvision_detector:TorchvisionDetector",
    "ultralytics": "crypsis.models.ultralytics_detector:UltralyticsDetector",
}
"""Kind → "module:Class", imported when it is asked for. The class has `from_specification`."""


def load_detector(spec: str) -> Detector | DetectionSource:
    """Load the detector that `spec` names.

    Args:
        spec: `kind:target`, with options behind commas (`onnx:yolo11n.onnx,size=640`). All accept `name=LABEL`, what
            tables call the model; without it, the file's stem, the folder's or the function's name.

    Raises:
        UnknownNameError: an unknown kind or option; the nearest is suggested.
        ModelError: a wrong value, or a file, folder or function that cannot be used.
        MissingDependencyError: a package that the model needs is not installed.
    """
    parsed = parse_specification(spec, DETECTORS)
    module, _, attribute = DETECTORS[parsed.kind].partition(":")
    kind = cast("type[_Kind]", getattr(importlib.import_module(module), attribute))
    return kind.from_specification(parsed.target, parsed.options, parsed.name)
