"""`robust-cod-lite[:PATH]`: RobustCODLite as a segmenter, from an export (`.onnx`) or a checkpoint (`.safetensors`).

Without a path, the network that comes with the package; `robust-cod-lite:no-augmentation` is its ablation, trained on
clean images only. Images are brought to the size the network was trained at, whatever their proportions, and both maps
back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingDependencyError, ModelError
from ..types import Image, Prediction, check_image
from .foreign import import_extra, on_device, one_thread, sha256_of, told
from .onnx_session import ImageInput, in_batches, open_session, read_size, run_session, times
from .options import Reader, one_of, positive_integer, read_options
from .resizing import resize_image, resize_map
from .segmenter import Description

__all__ = ["ABLATIONS", "MEAN", "OUTPUTS", "STD", "WEIGHTS", "RobustCodLiteSegmenter"]

_SHIPPED = Path(__file__).parents[1] / "data" / "robust_cod_lite"
WEIGHTS = _SHIPPED / "robust_cod_lite.onnx"
"""The network that comes with the package."""
ABLATIONS = {"no-augmentation": _SHIPPED / "robust_cod_lite_no_augmentation.onnx"}
"""Others that do, by the name that stands for their path."""

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's, of RGB in [0, 1]: a network is fed (image / 255 - MEAN) / STD."""

OUTPUTS = ("probability", "uncertainty")
"""Of an exported network; the second only where the network has that head."""

_SIZE = 384
"""Side, in pixels, where the file does not say at which it was trained."""
_RESIZE = "bilinear-antialias"

_READERS: dict[str, Reader] = {
    "size": read_size,
    "batch": positive_integer,
    "device": one_of("cpu", "cuda"),
}

_Infer: TypeAlias = Callable[[NDArray[Any]], list[NDArray[Any]]]
"""float32 N×3×h×w → one or two N×1×h×w in [0, 1]."""

_Loaded: TypeAlias = tuple[_Infer, dict[str, Any], dict[str, Any], str]
"""The function, what the network is built of, what was kept with it, and what runs it."""


class RobustCodLiteSegmenter:
    """The segmenter; on the CPU it runs on one thread."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        size: tuple[int, int] | str | None = None,
        batch: int = 1,
        device: str = "cpu",
        name: str | None = None,
    ) -> None:
        """Load a network.

        Args:
            path: `.onnx` as `export_network` writes it, `.safetensors` as `save_checkpoint` does, or None for the
                network of the package.
            size: (height, width) that images are brought to, `"native"` for their own; None for that of the training.
            batch: images of one size in one call.
            device: `cpu` or `cuda`.
            name: label; the file's stem if None.

        Raises:
            ModelError: the file is missing, unusable, or of another network.
            MissingDependencyError: the package's network is missing, a checkpoint needs torch, or there is no GPU.
        """
        shipped = (WEIGHTS, *ABLATIONS.values())
        path = path or WEIGHTS
        if path in shipped and not path.is_file():
            raise MissingDependencyError(
                f"robust-cod-lite needs its network {path}, which is missing; reinstall Crypsis, or give a file: "
                "robust-cod-lite:PATH."
            )
        loaders = {".onnx": self._load_onnx, ".safetensors": self._load_checkpoint}
        if path.suffix.lower() not in loaders:
            raise ModelError(
                f"{path}: robust-cod-lite takes a file that ends in {' or '.join(loaders)}, or one of its own by name: "
                f"{', '.join(ABLATIONS)}."
            )
        self.name = name or path.stem
        self._device = device
        self._sha256 = sha256_of([path])
        self._file = path.name
        self._infer, self._options, meta, self._runtime = loaders[path.suffix.lower()](path)
        settings = meta.get("settings", {})
        trained = settings.get("size", _SIZE) if isinstance(settings, dict) else None
        if not isinstance(trained, int) or trained < 1:
            raise ModelError(f"{path}: does not say with which settings it was trained; write it anew.")
        self._input = ImageInput("image", np.float32, "nchw", size or (trained, trained), batch, False)

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> RobustCodLiteSegmenter:
        """Load `robust-cod-lite[:PATH][,option=value…]`."""
        given = read_options("robust-cod-lite", options, _READERS)
        if not target or target in ABLATIONS:
            name = name or "-".join(filter(None, ("robust-cod-lite", target)))
        return cls(ABLATIONS.get(target, Path(target)) if target else None, **given, name=name)

    def _load_onnx(self, path: Path) -> _Loaded:
        import onnxruntime

        session = open_session(path, self._device)
        outputs = [node.name for node in session.get_outputs()]
        try:
            about = json.loads(session.get_modelmeta().custom_metadata_map["crypsis"])
            options, meta = dict(about["options"]), dict(about["meta"])
        except (KeyError, TypeError, ValueError):
            options, meta = {}, {}
        if not options or outputs != list(OUTPUTS[: len(outputs)]):
            raise ModelError(f"{path}: not an export of robust-cod-lite; for any other segmenter write onnx:{path}.")

        def infer(fed: NDArray[Any]) -> list[NDArray[Any]]:
            return run_session(session, outputs, {"image": fed}, self.name, len(fed), fed.shape[2:])

        return infer, options, meta, f"onnxruntime {onnxruntime.__version__}"

    def _load_checkpoint(self, path: Path) -> _Loaded:
        torch = import_extra("torch", "torch")
        from .robust_cod_lite import Maps, load_checkpoint

        network, meta = load_checkpoint(path)
        maps = on_device(Maps(network), self._device)

        def infer(fed: NDArray[Any]) -> list[NDArray[Any]]:
            try:
                with one_thread():
                    return [output.cpu().numpy() for output in maps(torch.from_numpy(fed).to(self._device))]
            except Exception as error:
                raise ModelError(
                    f"{self.name}: the model failed on {len(fed)} image(s) of {times(fed.shape[2:])}: {told(error)}."
                ) from error

        return infer, network.options.to_dict(), meta, f"torch {torch.__version__}"

    def describe(self) -> Description:
        """Return the file and its hash, what the network is built of, conventions, and the version of what runs it."""
        size = self._input.size
        return {
            "adapter": "robust-cod-lite",
            "file": self._file,
            "sha256": self._sha256,
            **self._options,
            "size": size if isinstance(size, str) else times(size),
            "resize": _RESIZE,
            "batch": self._input.batch,
            "device": self._device,
            "runtime": self._runtime,
        }

    def predict(self, images: Sequence[Image]) -> list[Prediction]:
        """Return one prediction per image, with an uncertainty if the network has one; see `Segmenter.predict`."""
        checked = [check_image(image) for image in images]
        return in_batches(checked, self._input_size, self._input.batch, self._predict_batch)

    def _input_size(self, image: Image) -> tuple[int, int]:
        size = self._input.size
        return (image.shape[0], image.shape[1]) if isinstance(size, str) else size

    def _predict_batch(self, images: list[Image], size: tuple[int, int]) -> list[Prediction]:
        fed = [
            self._input.tensor(resize_image(image, size, _RESIZE), mean=MEAN, std=STD, scale=255.0, channels="rgb")
            for image in images
        ]
        outputs = self._infer(self._input.stack(fed))
        try:
            return [
                Prediction(*(resize_map(output[i, 0], (image.shape[0], image.shape[1])) for output in outputs))
                for i, image in enumerate(images)
            ]
        except ModelError as error:
            raise ModelError(f"{self.name}: {error}") from None
