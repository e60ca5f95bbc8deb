"""NanoDet-g at 416×416, the detector that comes with the package.

Lyu, NanoDet (2021), trained on COCO train2017; its author reports an AP of 22.9 on val2017. Images are fed as its
configuration `nanodet-g.yml` says: proportions kept and centered on black, bilinear without widening, BGR. Boxes are
decoded from distributions over 11 bins at strides 8, 16 and 32, and suppressed above an overlap of 0.6 within a class;
scores of 0.05 or less are left out, and so are all boxes but the best 100. Where images of the demo set are stretched
to the square, the best box of an animal class overlaps the mask's box by more than half in 19 of 48; as they are fed
here, in 23.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from ..errors import MissingDependencyError, ModelError
from .onnx_detector import READERS, OnnxDetector, OnnxDetectorOptions
from .options import read_options
from .segmenter import Description

__all__ = ["WEIGHTS", "NanoDet"]

WEIGHTS = Path(__file__).parents[1] / "data" / "nanodet" / "nanodet.onnx"
"""The network; `scripts/make_nanodet_onnx.py` says what it was made from."""

_OPTIONS = ("score", "nms", "limit", "letterbox", "pad", "center", "resize", "batch", "device")


class NanoDet(OnnxDetector):
    """The detector; `classes` are COCO's 80."""

    def __init__(self, options: OnnxDetectorOptions | None = None, *, name: str = "nanodet") -> None:
        """Load the network.

        Args:
            options: see `OnnxDetectorOptions`; the network's own conventions (format, classes, size, normalization)
                are not a choice.
            name: label.

        Raises:
            MissingDependencyError: the file of the network is missing, or `device` is cuda and this onnxruntime cannot
                use it.
        """
        if not WEIGHTS.is_file():
            raise MissingDependencyError(f"nanodet needs its network {WEIGHTS}, which is missing; reinstall Crypsis.")
        own = dataclasses.replace(options or OnnxDetectorOptions(), format="nanodet", classes="coco")
        super().__init__(WEIGHTS, own, name=name)

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> NanoDet:
        """Load `nanodet[,option=value…]`."""
        if target:
            raise ModelError(f"nanodet takes nothing after the colon; got {target!r}.")
        given = read_options("nanodet", options, {option: READERS[option] for option in _OPTIONS})
        return cls(OnnxDetectorOptions(**given), name=name or "nanodet")

    def describe(self) -> Description:
        """Return what `OnnxDetector` does."""
        return {**super().describe(), "adapter": "nanodet"}
