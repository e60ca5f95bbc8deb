"""torchvision where its compiled part cannot be loaded: a wheel made for CUDA beside a torch made for CPU.

`pip install --no-deps torchvision==0.28.0` beside `torch==2.13.0` for CPU takes 24 MB, without the packages of CUDA. Of
the compiled part, detectors need non-maximum suppression alone; torchvision has all else in Python too.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from typing import Any

import pytest

_KEPT: list[Any] = []


def import_torchvision() -> Any:
    """Import torchvision, with suppression as below where its own cannot be loaded; skip where it is not installed."""
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("torchvision") is None:
        pytest.skip("needs the extra torchvision", allow_module_level=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its image readers are missing too
        try:
            import torchvision
        except RuntimeError as error:
            if "torchvision::nms does not exist" not in str(error):
                raise
            _define_suppression()
            for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
                del sys.modules[name]
            import torchvision

            torchvision.extension._has_ops = lambda: True
    return torchvision


def _define_suppression() -> None:
    import torch

    library = torch.library.Library("torchvision", "DEF")
    _KEPT.append(library)  # it undoes its definitions when it is collected
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

    def suppress(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
        left = scores.argsort(descending=True, stable=True)
        areas = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1)
        kept = []
        while len(left):
            best, left = left[0], left[1:]
            kept.append(int(best))
            low, high = torch.maximum(boxes[best, :2], boxes[left, :2]), torch.minimum(boxes[best, 2:], boxes[left, 2:])
            common = (high - low).clamp(min=0).prod(dim=1)
            left = left[common / (areas[best] + areas[left] - common) <= threshold]
        return torch.tensor(kept, dtype=torch.int64)

    library.impl("nms", suppress, "CPU")
