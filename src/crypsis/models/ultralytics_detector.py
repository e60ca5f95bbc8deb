"""Detectors of Ultralytics: `ultralytics:FILE.pt,trust=yes`.

The package is licensed under AGPL-3.0; Crypsis only calls it, where the user has installed it.

A `.pt` file of Ultralytics is a pickle: loading it runs what it says. Give only files whose origin you trust; that is
what `trust=yes` says. An exported model needs no such trust: `yolo export model=FILE.pt format=onnx`, then
`onnx:FILE.onnx`.

The package is told not to go online (no downloads, no installing of packages, no usage statistics), by its environment
variables YOLO_OFFLINE and YOLO_AUTOINSTALL, where these are not set. Boxes are those of its `predict`, of the best
class each; `yolo val` lets a box count for several.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MissingDependencyError, ModelError
from ..types import Detections, Image
from .foreign import batches, import_extra, on_device, one_thread, sha256_of, to_detections, told
from .options import Reader, one_of, positive_integer, read_options, share, yes_or_no
from .segmenter import Description

__all__ = ["UltralyticsDetector"]

_READERS: dict[str, Reader] = {
    "trust": yes_or_no,
    "size": positive_integer,
    "score": share,
    "nms": share,
    "limit": positive_integer,
    "batch": positive_integer,
    "device": one_of("cpu", "cuda"),
}
_TASKS = ("detect", "segment", "pose")


class UltralyticsDetector:
    """A model that Ultralytics trained or made; on the CPU it runs on one thread."""

    def __init__(
        self,
        path: Path,
        *,
        trust: bool = False,
        size: int = 640,
        score: float = 0.05,
        nms: float = 0.7,
        limit: int = 300,
        batch: int = 1,
        device: str = "cpu",
        name: str | None = None,
    ) -> None:
        """Load the file, and run the model once.

        Args:
            path: the `.pt` file.
            trust: whether the file may run code; without, it is not loaded.
            size: the longer side that images are resized to (`imgsz`), in pixels.
            score: boxes with less are left out (`conf`), in [0, 1].
            nms: overlap above which the worse of two boxes of a class goes (`iou`), in [0, 1].
            limit: boxes that are kept of an image (`max_det`).
            batch: images of one size in one call.
            device: `cpu` or `cuda`.
            name: label; the file's stem if None.

        Raises:
            ModelError: no such file, no trust, or not a model that gives upright boxes.
            MissingDependencyError: ultralytics is not installed, or there is no GPU.
        """
        if path.suffix != ".pt":
            raise ModelError(f"{path}: is not a .pt file of Ultralytics; for an exported model write onnx:FILE.onnx.")
        self._digest = sha256_of([path])
        if not trust:
            raise ModelError(
                f"{path}: is a pickle, which runs code when it is loaded; add trust=yes if you trust its origin, or "
                "export it (yolo export format=onnx) and write onnx:FILE.onnx."
            )
        for variable, value in (("YOLO_OFFLINE", "true"), ("YOLO_AUTOINSTALL", "false"), ("YOLO_VERBOSE", "false")):
            os.environ.setdefault(variable, value)
        with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():  # stdout is for results
            warnings.simplefilter("ignore")
            package = import_extra("ultralytics", "ultralytics")
            self._model = _load(package, path)
        self.classes = _classes(path, self._model)
        self.name = name or path.stem
        self._file, self._device = path.name, device
        self._settings = {"imgsz": size, "conf": score, "iou": nms, "max_det": limit}
        self._batch = batch
        on_device(self._model.model, device)
        self.detect([np.full((64, 64, 3), 114, np.uint8)])

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> UltralyticsDetector:
        """Load `ultralytics:FILE.pt,trust=yes`."""
        if not target:
            raise ModelError("ultralytics needs a file; write ultralytics:FILE.pt,trust=yes.")
        return cls(Path(target), **read_options("ultralytics", options, _READERS), name=name)

    def describe(self) -> Description:
        """Return file name, SHA-256, kind of model, settings by the package's names, and versions."""
        import torch

        return {
            "adapter": "ultralytics",
            "file": self._file,
            "sha256": self._digest,
            "architecture": type(self._model.model).__name__,
            "task": self._model.task,
            **self._settings,
            "batch": self._batch,
            "device": self._device,
            "ultralytics": import_extra("ultralytics", "ultralytics").__version__,
            "torch": torch.__version__,
        }

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one set of detections per image; see `Detector.detect`."""
        found = []
        for batch in batches(images, self._batch):
            height, width = batch[0].shape[:2]
            try:
                with one_thread(), contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    results = self._infer(batch)
            except Exception as error:
                raise ModelError(
                    f"{self.name}: the model failed on {len(batch)} image(s) of {height}×{width}: {told(error)}."
                ) from error
            found += [
                to_detections(self.name, boxes.xyxy, boxes.conf, boxes.cls, len(self.classes)) for boxes in results
            ]
        return found

    def _infer(self, batch: list[Image]) -> list[Any]:
        results = self._model.predict(
            [np.ascontiguousarray(image[:, :, ::-1]) for image in batch],  # the package takes arrays as BGR
            device=self._device,
            augment=False,
            agnostic_nms=False,
            half=False,
            save=False,
            verbose=False,
            **self._settings,
        )
        return [result.boxes for result in results]


def _load(package: Any, path: Path) -> Any:
    try:
        return package.YOLO(path)
    except ImportError as error:
        raise MissingDependencyError(f"{path}: a package that this model needs is missing ({told(error)}).") from error
    except Exception as error:
        raise ModelError(f"{path}: is not a model that Ultralytics can load ({told(error)}).") from error


def _classes(path: Path, model: Any) -> tuple[str, ...]:
    if model.task not in _TASKS:
        raise ModelError(f"{path}: is a model to {model.task}; it must {', '.join(_TASKS)}.")
    return tuple(str(model.names[label]) for label in range(len(model.names)))
