"""The compared models as ONNX files of one image input, which any runtime can run and `onnx:PATH` runs alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import ModelError
from ..io import atomic_path
from ..types import Image
from .compared import ComparedModel
from .network_export import export_onnx
from .onnx import OnnxSegmenter
from .resizing import resize_image
from .segmenter import parse_specification

__all__ = ["TOLERANCE", "Export", "export_compared"]

TOLERANCE = 1e-3
"""By how much a probability may differ between a model and its export."""


@dataclass(frozen=True, slots=True)
class Export:
    """What came of an export.

    Attributes:
        specification: of the file, with the options by which its maps are the checkpoint's.
        difference: the largest between a probability of the checkpoint's maps and of the file's.
        notes: where they are not expected to agree, a sentence each.
    """

    specification: str
    difference: float
    notes: tuple[str, ...]


def export_compared(model: ComparedModel, path: Path, images: Sequence[Image]) -> Export:
    """Write a compared model as one ONNX file, and compare what it says of images.

    The file takes images at the size and with the normalization that the model's authors use, any number at once, and
    returns the one output that is the map. ZoomNet's takes normalized images of any size and brings them to its
    three sizes itself.

    Args:
        model: the model.
        path: the file.
        images: to compare on, at least one; uint8 H×W×3 RGB. Those smaller than the model's input are enlarged.

    Raises:
        ModelError: it cannot be exported, or the file says something else than the checkpoint, and is not kept.
        MissingDependencyError: onnx is not installed.
        IncompleteError: the file cannot be written.
    """
    recipe = model.recipe
    zooms = len(recipe.sides) > 1
    options = {"activation": recipe.activation, "order": recipe.order}
    if zooms:
        options |= {"size": "native", "multiple": "1"}
    else:
        options |= {"resize": recipe.resize}
    tail = "".join(f",{option}={value}" for option, value in options.items())
    side = max(recipe.sides)
    device = next(model.network.parameters()).device
    with atomic_path(path) as temporary:
        export_onnx(
            _Zooming(model.network, recipe.sides) if zooms else _Single(model.network, recipe.output),
            temporary,
            example=torch.zeros(2, 3, side, side + 32 * zooms, device=device),
            outputs=("map",),
            dynamic=(0, 2, 3) if zooms else (0,),
            dynamic_outputs=(0,),
            metadata={"model": {**model.describe(), "parameters": recipe.parameters}},
        )
        exported = parse_specification(f"onnx:{temporary}{tail}")
        other = OnnxSegmenter.from_specification(exported.target, exported.options, None)
        large = [resize_image(image, _at_least(image, side), "bicubic") for image in images]
        pairs = zip(model.predict(large), other.predict(large), strict=True)
        difference = max(float(np.abs(one.probability - two.probability).max()) for one, two in pairs)
        if difference > TOLERANCE:
            raise ModelError(
                f"{path}: the export is not kept, as its maps differ by up to {difference:.2g} from those of "
                f"{model.name}; use the checkpoint itself."
            )
    notes = []
    if recipe.map_resize != "bilinear":
        notes.append(
            f"Maps of images that are smaller than {side} pixels differ a little: {recipe.kind} brings them to size by "
            f"{recipe.map_resize}, onnx by bilinear."
        )
    return Export(f"onnx:{path}{tail}", difference, tuple(notes))


def _at_least(image: Image, side: int) -> tuple[int, int]:
    return max(image.shape[0], side), max(image.shape[1], side)


class _Single(nn.Module):
    """One output of a network."""

    def __init__(self, network: nn.Module, output: int) -> None:
        super().__init__()
        self.network, self.output = network, output

    def forward(self, images: Tensor) -> Tensor:
        returned = self.network(images)
        chosen: Tensor = returned if isinstance(returned, Tensor) else returned[self.output]
        return chosen


class _Zooming(nn.Module):
    """A network of several sizes, given one."""

    def __init__(self, network: nn.Module, sides: Sequence[int]) -> None:
        super().__init__()
        self.network, self.sides = network, sides

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.network(*(functional.interpolate(images, (s, s), mode="bilinear") for s in self.sides))
        return logits
