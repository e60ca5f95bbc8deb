"""Write tests/data/parity_sam2.json: what transformers' processor of SAM 2 does before and after the network.

    pip install torch torchvision transformers numpy
    python scripts/make_parity_sam2.py

It needs torchvision, and the package does not: `crypsis.models.box_segmenters` does the same on its own. For images
that a formula gives: the pixels that the network would see, as 8-bit values, the boxes in its coordinates, and the
masks that come of logits that another formula gives, as text of 0 and 1, row by row.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
import transformers

OUT = Path(__file__).parent.parent / "tests" / "data" / "parity_sam2.json"
SIDE = 24
SIZES = ((17, 31), (40, 24), (20, 60))
MEAN, STD = np.array((0.485, 0.456, 0.406)), np.array((0.229, 0.224, 0.225))


def image_of(height: int, width: int) -> np.ndarray:
    """Return a colored pattern, uint8 H×W×3."""
    y, x, channel = np.mgrid[:height, :width, :3]
    return (127.5 + 127.5 * np.sin(0.9 * x + 0.5 * y * (channel + 1) + channel)).astype(np.uint8)


def logits_of(count: int) -> np.ndarray:
    """Return logits of `count` masks, float32 1×count×1×6×6."""
    place, y, x = np.mgrid[:count, :6, :6]
    return np.sin(1.3 * x + (place + 1) * 0.7 * y + place).astype(np.float32)[None, :, None]


def boxes_of(height: int, width: int) -> np.ndarray:
    """Return two boxes, float64 [2, 4]."""
    return np.array([[0, 0, width, height], [0.25 * width, 1, 0.7 * width, 0.9 * height]])


def main() -> None:
    """Write the file."""
    maker = transformers.Sam2ImageProcessor(size={"height": SIDE, "width": SIDE})
    processor = transformers.Sam2Processor(maker)
    cases: list[dict[str, Any]] = []
    for height, width in SIZES:
        boxes = boxes_of(height, width)
        inputs = processor(images=image_of(height, width), input_boxes=[boxes.tolist()], return_tensors="pt")
        pixels = inputs["pixel_values"][0].permute(1, 2, 0).numpy() * STD + MEAN
        (masks,) = processor.post_process_masks([torch.from_numpy(logits_of(2))[0]], [(height, width)])
        cases.append(
            {
                "size": [height, width],
                "pixels": np.round(pixels * 255).astype(int).ravel().tolist(),
                "boxes": inputs["input_boxes"][0].tolist(),
                "masks": ["".join(map(str, mask.int().ravel().tolist())) for mask in masks[:, 0]],
            }
        )
    origin = (
        f"scripts/make_parity_sam2.py: Sam2Processor of transformers {transformers.__version__}, "
        f"torch {torch.__version__}, torchvision {torchvision.__version__}"
    )
    OUT.write_text(json.dumps({"origin": origin, "side": SIDE, "cases": cases}) + "\n", "utf-8")


if __name__ == "__main__":
    main()
