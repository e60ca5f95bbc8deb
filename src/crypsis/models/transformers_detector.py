"""Detectors of Hugging Face's transformers: `transformers:FOLDER` or `transformers:OWNER/NAME` on the hub.

What `AutoModelForObjectDetection` knows can be loaded: DETR and its kin, YOLOS, RT-DETR, D-FINE and others. Weights are
read from safetensors alone, and no code that lies beside them is run.

Images are prepared by the model's own image processor in its Pillow variant, which needs no torchvision; the variant
that does resizes a little differently. Models with a backbone of the package timm need timm; DETR's authors keep
variants without (`transformers:facebook/detr-resnet-50,revision=no_timm`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..types import Detections, Image
from .foreign import batches, import_extra, on_device, one_thread, sha256_of, to_detections, told
from .hub import Pretrained
from .options import Reader, one_of, positive_integer, read_options, share
from .segmenter import Description

__all__ = ["TransformersDetector"]

_CONFIGURATION = ("config.json", "preprocessor_config.json", "processor_config.json")
_WANTED = [*_CONFIGURATION, "model*.safetensors", "model.safetensors.index.json"]
_UNNAMED = "N/A"

_READERS: dict[str, Reader] = {
    "score": share,
    "revision": str,
    "batch": positive_integer,
    "device": one_of("cpu", "cuda"),
}


class TransformersDetector:
    """A detector in a folder that transformers' `save_pretrained` wrote; on the CPU it runs on one thread."""

    def __init__(
        self,
        model: str,
        *,
        score: float = 0.05,
        revision: str | None = None,
        batch: int = 1,
        device: str = "cpu",
        name: str | None = None,
    ) -> None:
        """Load the model and its image processor; what is on the hub is fetched first, and kept by huggingface_hub.

        Args:
            model: a folder, or owner and name on the hub.
            score: boxes with this score or less are left out, in [0, 1].
            revision: branch, tag or commit on the hub.
            batch: images of one size in one call.
            device: `cpu` or `cuda`.
            name: label; the last part of `model` if None.

        Raises:
            ModelError: there is no such model, or it is not a detector with all its weights.
            MissingDependencyError: transformers, or what the model needs besides, is not installed; or no GPU is there.
        """
        transformers = import_extra("transformers", "transformers")
        local = Path(model).is_dir()
        folder = _local(model, revision) if local else _fetch(model, revision)
        self._processor, self._network = _load(transformers, model, folder)
        if not hasattr(self._processor, "post_process_object_detection"):
            raise ModelError(f"{model}: {type(self._processor).__name__} does not tell how its output becomes boxes.")
        self._network = on_device(self._network, device)
        labels = {int(label): str(text) for label, text in self._network.config.id2label.items()}
        self.classes = tuple(labels.get(label, _UNNAMED) for label in range(max(labels) + 1))
        self.name = name or (folder.resolve().name if local else model.rpartition("/")[2])
        self._score, self._batch, self._device = score, batch, device
        self._about: Description = {
            "model": folder.resolve().name if local else model,
            "revision": None if local else folder.name,
            "weights_sha256": sha256_of(sorted(folder.glob("*.safetensors"))),
            "configuration_sha256": sha256_of(path for n in _CONFIGURATION if (path := folder / n).is_file()),
        }

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> TransformersDetector:
        """Load `transformers:FOLDER` or `transformers:OWNER/NAME`."""
        if not target:
            raise ModelError("transformers needs a model; write transformers:FOLDER or transformers:OWNER/NAME.")
        return cls(target, **read_options("transformers", options, _READERS), name=name)

    def describe(self) -> Description:
        """Return name and hashes of the model, its classes of the package, options, and versions."""
        import torch

        return {
            "adapter": "transformers",
            **self._about,
            "architecture": type(self._network).__name__,
            "processor": type(self._processor).__name__,
            "score": self._score,
            "batch": self._batch,
            "device": self._device,
            "transformers": import_extra("transformers", "transformers").__version__,
            "torch": torch.__version__,
        }

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one set of detections per image; see `Detector.detect`."""
        found = []
        for batch in batches(images, self._batch):
            height, width = batch[0].shape[:2]
            try:
                with one_thread(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    results = self._infer(batch)
            except Exception as error:
                raise ModelError(
                    f"{self.name}: the model failed on {len(batch)} image(s) of {height}×{width}: {told(error)}."
                ) from error
            found += [
                to_detections(self.name, one["boxes"], one["scores"], one["labels"], len(self.classes))
                for one in results
            ]
        return found

    def _infer(self, batch: list[Image]) -> list[dict[str, Any]]:
        import torch

        inputs = self._processor(images=batch, return_tensors="pt", input_data_format="channels_last")
        sizes = torch.tensor([image.shape[:2] for image in batch], device=self._device)
        outputs = self._network(**inputs.to(self._device))
        results: list[dict[str, Any]] = self._processor.post_process_object_detection(
            outputs, threshold=self._score, target_sizes=sizes
        )
        return results


def _local(model: str, revision: str | None) -> Path:
    if revision is not None:
        raise ModelError(f"revision= is for models on the hub; {model} is a folder; leave it out.")
    return Path(model)


def _fetch(model: str, revision: str | None) -> Path:
    """Return the folder in which huggingface_hub keeps a model."""
    if model.startswith((".", "~", "/")) or "\\" in model or model.count("/") > 1:
        raise ModelError(f"There is no folder {model} (looked in {Path(model).absolute().parent}).")
    hub = import_extra("huggingface_hub", "transformers")
    try:
        return Path(hub.snapshot_download(model, revision=revision, allow_patterns=_WANTED))
    except Exception as error:
        raise ModelError(
            f"{model} is neither a folder here nor a model that the hub gives ({told(error)}); correct the name, or "
            "connect to the network once, or give a folder."
        ) from error


def _load(transformers: Any, model: str, folder: Path) -> tuple[Any, Any]:
    """Return image processor and network."""
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{model}: there are no weights in safetensors; save the model by save_pretrained of a recent transformers "
            "(other weights are pickles, which run code)."
        )
    files, what = Pretrained(model, folder), "a detector"
    processor = files.read(transformers.AutoImageProcessor, what=what, backend="pil")
    return processor, files.load(transformers.AutoModelForObjectDetection, what=what)
