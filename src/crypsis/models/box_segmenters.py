"""Networks that turn boxes into masks: SAM, SAM 2, and the part of SAM 3 that takes boxes.

The image is embedded once, and all its boxes are decoded in one call, or in several of `batch` boxes: none changes what
another gets. Of a box one mask is asked for. What comes before and after is done here as transformers' processors do
it, without torchvision, which theirs for SAM 2 and SAM 3 need:

    sam1        longer side resized to the network's by Pillow's bilinear filter, the rest of the square filled with
                zeros after normalizing; masks to the square, cut to the image, to the image's size
    sam2, sam3  both sides resized to the network's, on 8-bit values, bilinear with antialiasing; masks to the image's
                size

all by bilinear interpolation of the logits, which are then compared with 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from ..errors import ModelError
from ..types import Image
from .foreign import import_extra, on_device
from .hub import Pretrained
from .robust_cod_lite_segmenter import MEAN, STD
from .segmenter import Description

__all__ = ["BOX_SEGMENTERS", "BoxSegmenter", "BoxSegmenterKind", "normalization", "square_pixels"]


class BoxSegmenterKind(NamedTuple):
    """A row of `BOX_SEGMENTERS`.

    Attributes:
        architecture: a class of transformers.
        types: what `model_type` of its configuration may be.
        model: the network that is taken if none is named.
        extra: the extra of Crypsis that brings what it needs.
        mean: of RGB in [0, 1], where that is not saved with the weights.
        std: its standard deviation.
    """

    architecture: str
    types: tuple[str, ...]
    model: str
    extra: str = "camouflage"
    mean: tuple[float, ...] = MEAN
    std: tuple[float, ...] = STD


BOX_SEGMENTERS: dict[str, BoxSegmenterKind] = {
    "sam2": BoxSegmenterKind("Sam2Model", ("sam2", "sam2_video"), "facebook/sam2.1-hiera-large"),
    "sam1": BoxSegmenterKind("SamModel", ("sam",), "facebook/sam-vit-huge"),
    "sam3": BoxSegmenterKind(
        "Sam3TrackerModel", ("sam3_tracker", "sam3_tracker_video", "sam3_video"), "facebook/sam3", "sam3",
        (0.5, 0.5, 0.5), (0.5, 0.5, 0.5),
    ),
}  # fmt: skip
"""By the names that `segment=` takes."""


class BoxSegmenter:
    """One of `BOX_SEGMENTERS`, loaded."""

    def __init__(self, kind: str, files: Pretrained, *, device: str) -> None:
        """Load the network.

        Args:
            kind: a key of `BOX_SEGMENTERS`.
            files: of the network.
            device: `cpu` or `cuda`.

        Raises:
            ModelError: the files are none of such a network.
            MissingDependencyError: a package is missing, or there is no GPU.
        """
        row = BOX_SEGMENTERS[kind]
        transformers = import_extra("transformers", row.extra)
        if row.extra == "sam3":
            import_extra("torchvision", row.extra)
        architecture = getattr(transformers, row.architecture)
        self._network = on_device(files.load(architecture, what=f"a network for segment={kind}"), device)
        self._kind, self._files, self._device = kind, files, device
        self._side = int(self._network.config.prompt_encoder_config.image_size)
        self._mean, self._std = normalization(files, row.mean, row.std)

    def describe(self) -> Description:
        """Return the files' hashes, and the size at which the network sees the image."""
        return {
            "segment": self._kind,
            **self._files.describe("segmenter"),
            "segmenter_size": self._side if self._kind == "sam1" else f"{self._side}×{self._side}",
        }

    def segment(self, image: Image, boxes: NDArray[np.float64], *, batch: int | None = None) -> NDArray[np.bool_]:
        """Return one mask per box.

        Args:
            image: uint8 H×W×3, RGB.
            boxes: [N, 4], x1, y1, x2, y2 in pixels of the image; N may be 0.
            batch: boxes that are decoded in one call; all if None.

        Returns:
            bool N×H×W.
        """
        import torch

        height, width = image.shape[:2]
        masks = np.zeros((len(boxes), height, width), np.bool_)
        if not len(boxes):
            return masks
        resized = self._resized_shape(height, width)
        scale = np.tile([resized[1] / width, resized[0] / height], 2)
        prompts = torch.from_numpy((boxes * scale).astype(np.float32))[None].to(self._device)
        pixels = self._prepare(image, resized).to(self._device)
        embedded = self._network.get_image_embeddings(pixels)
        step = batch or len(boxes)
        for start in range(0, len(boxes), step):
            output = self._network(
                image_embeddings=embedded, input_boxes=prompts[:, start : start + step], multimask_output=False
            )
            for place, logits in enumerate(output.pred_masks[0].float().cpu(), start):  # one by one: memory
                masks[place] = self._full_size(logits, resized, (height, width)).numpy()
        return masks

    def _resized_shape(self, height: int, width: int) -> tuple[int, int]:
        if self._kind != "sam1":
            return self._side, self._side
        scale = self._side / max(height, width)
        return max(1, int(height * scale + 0.5)), max(1, int(width * scale + 0.5))

    def _prepare(self, image: Image, resized: tuple[int, int]) -> Any:
        """Return the image as the network takes it: float32, 1×3×side×side."""
        import torch

        if self._kind != "sam1":
            return square_pixels(image, self._side, self._mean, self._std)
        small = PIL.Image.fromarray(image).resize(resized[::-1], PIL.Image.Resampling.BILINEAR)
        values = (np.asarray(small, np.float32) / 255 - self._mean) / self._std
        square = np.zeros((self._side, self._side, 3), np.float32)
        square[: resized[0], : resized[1]] = values
        return torch.from_numpy(np.ascontiguousarray(square.transpose(2, 0, 1)))[None]

    def _full_size(self, logits: Any, resized: tuple[int, int], size: tuple[int, int]) -> Any:
        """Return a mask, bool H×W, of logits 1×h×w."""
        from torch.nn.functional import interpolate

        values = logits[None]
        if self._kind == "sam1":
            square = (self._side, self._side)
            values = interpolate(values, square, mode="bilinear", align_corners=False)[..., : resized[0], : resized[1]]
        return interpolate(values, size, mode="bilinear", align_corners=False)[0, 0] > 0


def square_pixels(image: Image, side: int, mean: NDArray[np.float32], std: NDArray[np.float32]) -> Any:
    """Return an image as SAM 2 and SAM 3 take it: resized to a square on 8-bit values, then normalized.

    Args:
        image: uint8 H×W×3, RGB.
        side: of the square, in pixels.
        mean: of RGB in [0, 1].
        std: its standard deviation.

    Returns:
        a float32 tensor 1×3×side×side.
    """
    import torch
    from torch.nn.functional import interpolate

    pixels = torch.tensor(image).permute(2, 0, 1)[None]
    small = interpolate(pixels, (side, side), mode="bilinear", antialias=True, align_corners=False)
    return (small.float() / 255 - torch.from_numpy(mean)[:, None, None]) / torch.from_numpy(std)[:, None, None]


def normalization(
    files: Pretrained, mean: tuple[float, ...], std: tuple[float, ...]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return mean and standard deviation of RGB in [0, 1]: those saved with the weights, or else those given.

    Raises:
        ModelError: what is saved are not three numbers, or standard deviations that are not above 0.
    """
    saved = files.settings()
    values = []
    for name, default in (("image_mean", mean), ("image_std", std)):
        try:
            array = np.array(saved.get(name, default), np.float32)
        except (TypeError, ValueError):
            array = np.zeros(0, np.float32)
        if array.shape != (3,) or not np.isfinite(array).all() or (name == "image_std" and not (array > 0).all()):
            raise ModelError(f"{files.label}: {name} in its preprocessor_config.json is not three usable numbers.")
        values.append(array)
    return values[0], values[1]
