"""Detectors of torchvision: `torchvision:NAME,weights=…`.

    torchvision:fasterrcnn_resnet50_fpn_v2,weights=DEFAULT
    torchvision:ssdlite320_mobilenet_v3_large,weights=nets/fish.pth,classes=__background__/fish

`weights` is one of torchvision's own (fetched once, checked by the hash in its name, kept by torch), or a file: a state
dict in `.pth` or `.pt`, which is read without running code, or in `.safetensors`. A file that has the name of one of
torchvision's own is taken for it. Other files need `classes`, in the order the network counts them; torchvision's
networks count a background first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ModelError, UnknownNameError
from ..types import Detections, Image
from .foreign import batches, class_names, import_extra, on_device, one_thread, sha256_of, to_detections, told
from .options import Reader, one_of, positive_integer, read_options, share
from .segmenter import Description

__all__ = ["TorchvisionDetector"]

_READERS: dict[str, Reader] = {
    "weights": str,
    "classes": class_names,
    "score": share,
    "batch": positive_integer,
    "device": one_of("cpu", "cuda"),
}
_WITHOUT_EPSILON = {f"{kind}_resnet50_fpn" for kind in ("fasterrcnn", "maskrcnn", "keypointrcnn", "retinanet")}
"""Networks whose weights COCO_V1 were trained with a normalization that adds nothing to the variance, to which
torchvision returns when it loads them."""


class TorchvisionDetector:
    """A network of `torchvision.models.detection`; on the CPU it runs on one thread."""

    def __init__(
        self,
        network: str,
        weights: str,
        *,
        classes: Sequence[str] | None = None,
        score: float = 0.05,
        batch: int = 1,
        device: str = "cpu",
        name: str | None = None,
    ) -> None:
        """Build the network and load its weights.

        Args:
            network: its name, such as `fasterrcnn_resnet50_fpn_v2`.
            weights: name of torchvision's own (`DEFAULT`, `COCO_V1`), or a file.
            classes: names in the order the network counts them; None for those of torchvision's own weights.
            score: boxes with this score or less are left out, in [0, 1]; networks have limits of their own too.
            batch: images of one size in one call.
            device: `cpu` or `cuda`.
            name: label; the network's name, or the stem of a file of weights that are not torchvision's, if None.

        Raises:
            UnknownNameError: torchvision has no such network or weights.
            ModelError: a file that cannot be read or does not fit, or classes missing.
            MissingDependencyError: torchvision is not installed, or there is no GPU.
        """
        models = import_extra("torchvision.models", "torchvision")
        import torch

        detection = import_extra("torchvision.models.detection", "torchvision")
        known = models.list_models(module=detection)
        if network not in known:
            raise UnknownNameError.among("detector of torchvision", network, known)
        own = models.get_model_weights(network)
        path, member = _find(own, weights)
        if classes is None:
            if member is None:
                raise ModelError(
                    f"{path}: does not say what its labels mean; add classes=, such as classes=__background__/fish."
                )
            classes = member.meta["categories"]
        self._about: Description = {
            "network": network,
            "weights": path.name if member is None else member.name,
            "sha256": _checked_sha256(path, member),
        }
        self.classes = tuple(classes)
        net = models.get_model(network, weights=None, weights_backbone=None, num_classes=len(self.classes))
        _fill(net, path)
        if member is not None and member.name == "COCO_V1" and network in _WITHOUT_EPSILON:
            for module in net.modules():
                if isinstance(module, torch.nn.BatchNorm2d):
                    module.eps = 0.0
        self._network = on_device(net, device)
        self.name = name or (path.stem if member is None else network)
        self._score, self._batch, self._device = score, batch, device

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> TorchvisionDetector:
        """Load `torchvision:NAME,weights=…`."""
        values = read_options("torchvision", options, _READERS)
        if not target or not values.get("weights"):
            raise ModelError(
                "torchvision needs a network and weights; write torchvision:fasterrcnn_resnet50_fpn_v2,weights=DEFAULT "
                "or weights=FILE."
            )
        return cls(target, values.pop("weights"), **values, name=name)

    def describe(self) -> Description:
        """Return names of network and weights, the file's SHA-256, options, and versions."""
        import torch

        return {
            "adapter": "torchvision",
            **self._about,
            "score": self._score,
            "batch": self._batch,
            "device": self._device,
            "torchvision": import_extra("torchvision", "torchvision").__version__,
            "torch": torch.__version__,
        }

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one set of detections per image; see `Detector.detect`."""
        import torch

        found = []
        for batch in batches(images, self._batch):
            height, width = batch[0].shape[:2]
            tensors = [torch.tensor(image, device=self._device).permute(2, 0, 1) / 255 for image in batch]
            try:
                with one_thread():
                    results = self._network(tensors)
            except Exception as error:
                raise ModelError(
                    f"{self.name}: the model failed on {len(batch)} image(s) of {height}×{width}: {told(error)}."
                ) from error
            for one in results:
                kept = one["scores"] > self._score
                boxes, scores, labels = (one[part][kept] for part in ("boxes", "scores", "labels"))
                found.append(to_detections(self.name, boxes, scores, labels, len(self.classes)))
        return found


def _find(own: Any, weights: str) -> tuple[Path, Any | None]:
    """Return the file of weights, and which of torchvision's `own` it is, if any; fetch these."""
    import torch

    by_name = {member.name: member for member in own} | {"DEFAULT": own.DEFAULT}
    if weights in by_name:
        member = by_name[weights]
        path = Path(torch.hub.get_dir()) / "checkpoints" / _file_name(member)
        if not path.is_file():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                torch.hub.download_url_to_file(member.url, str(path), _hash_prefix(member), progress=False)
            except Exception as error:
                raise ModelError(
                    f"{member.url} cannot be fetched ({told(error)}); fetch it yourself and give weights=FILE."
                ) from error
        return path, member
    path = Path(weights)
    if not path.is_file() and path.suffix not in (".pth", ".pt", ".safetensors"):
        raise UnknownNameError.among("file or weights of torchvision", weights, by_name)
    return path, next((member for member in own if _file_name(member) == path.name), None)


def _file_name(member: Any) -> str:
    return str(member.url.rpartition("/")[2])


def _hash_prefix(member: Any) -> str:
    match = re.search(r"-([0-9a-f]{8,})\.", _file_name(member))
    return match[1] if match else ""


def _checked_sha256(path: Path, member: Any | None) -> str:
    digest = sha256_of([path])
    if member is not None and not digest.startswith(_hash_prefix(member)):
        raise ModelError(f"{path}: is damaged, or not the file of that name; remove it and give weights={member.name}.")
    return digest


def _fill(network: Any, path: Path) -> None:
    """Load a state dict from a file."""
    import torch

    try:
        if path.suffix == ".safetensors":
            state = import_extra("safetensors.torch", "torchvision").load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ModelError(
            f"{path}: is not a state dict that can be read without running code ({told(error)}); write one by "
            "torch.save(network.state_dict(), FILE)."
        ) from error
    for key in ("model", "state_dict"):  # as training scripts nest it
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    try:
        network.load_state_dict(state)
    except Exception as error:
        reason = str(error).splitlines()[-1].strip()
        raise ModelError(
            f"{path}: does not fit the network ({reason[:200]}); name the network it was trained as, and all its "
            "classes, background included."
        ) from error
