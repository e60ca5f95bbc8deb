"""A small detection set, detectors that cost nothing, and results as others hand them around."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from crypsis.bench.detection_plan import DetectionPlan, plan_coco_degradation
from crypsis.io import write_image
from crypsis.types import Condition, Detections, Image

ENTRIES = ("imagenet-c/contrast", "imagenet-c/elastic_transform", "arniqa/darken", "real-camera/gamma_damage")
CATEGORIES = {3: "cat", 7: "sea lion"}

MODULE = '''
import time
from pathlib import Path

import numpy as np


def find(image):
    """Two boxes that depend on all pixels."""
    gray = image.mean(axis=2)
    y, x = np.unravel_index(gray.argmax(), gray.shape)
    return [[x, y, x + 12, y + 9], [0, 0, 20, 20]], [gray.mean() / 255, gray.std() / 255], [0, 1]


def slow(image):
    """The same, slow enough to be killed in the middle of; it tells who does it."""
    import os
    Path("pids").mkdir(exist_ok=True)
    (Path("pids") / str(os.getpid())).touch()
    time.sleep(0.02)
    return find(image)
'''
FAST = "python:toy_module:find,classes=Cat/sea_lion,name=toy"
SLOW = "python:toy_module:slow,classes=Cat/sea_lion,name=toy"


def write_set(folder: Path, count: int = 10, height: int = 48, width: int = 64) -> tuple[str, str]:
    """Write images with two objects each, a crowd beside them in one and nothing in the last; return how to open it."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for index in range(count):
        rng = np.random.default_rng(index)
        pixels = cv2.resize(rng.integers(60, 200, (6, 8, 3), np.uint8), (width, height), interpolation=cv2.INTER_CUBIC)
        for order in range(2 if index < count - 1 else 0):
            x, y = 6 + 30 * order + int(rng.integers(0, 8)), int(rng.integers(4, 20))
            box = [x, y, 14, 12 + 6 * order]
            pixels[y : y + box[3], x : x + box[2]] = (250, 20, 20) if order else (20, 250, 20)
            annotations.append(_object(len(annotations) + 1, index + 1, list(CATEGORIES)[order], box))
        name = f"photo-{index:02d}.png"
        write_image(folder / "images" / name, pixels)
        images.append({"id": index + 1, "file_name": name, "width": width, "height": height})
    annotations.append(_object(len(annotations) + 1, 2, 3, [0, 30, 40, 16], crowd=1))
    categories = [{"id": number, "name": name} for number, name in CATEGORIES.items()]
    text = json.dumps({"images": images, "annotations": annotations, "categories": categories})
    (folder / "instances.json").write_text(text)
    return str(folder / "images"), str(folder / "instances.json")


def _object(number: int, image: int, category: int, box: list[int], crowd: int = 0) -> dict[str, Any]:
    area = box[2] * box[3]
    return {"id": number, "image_id": image, "category_id": category, "bbox": box, "area": area, "iscrowd": crowd}


def plan_toy(data: tuple[str, str], models: Sequence[Any] = (FAST,), **options: Any) -> DetectionPlan:
    return plan_coco_degradation(
        *data, list(models), **{"entries": ENTRIES, "severities": (1, 5), "strength_images": 2, **options}
    )


def part_bytes(run: Path) -> dict[str, bytes]:
    return {part.name: part.read_bytes() for part in sorted((run / "parts").iterdir())}


class Nobody:
    """A detector that finds nothing."""

    classes = ("cat", "sea lion")

    def __init__(self, name: str = "nobody") -> None:
        self.name = name

    def describe(self) -> dict[str, str | int | float | bool | None]:
        return {"adapter": "test", "device": "cpu"}

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        return [Detections(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64))] * len(images)


def write_results(
    folder: Path, plan: DetectionPlan, say: Callable[[Condition, dict[str, Any]], dict[str, Any] | None]
) -> str:
    """Save what `say` makes of each object (no crowd) under each condition as COCO results; return how to name them."""
    for condition in plan.conditions:
        found = []
        for item in plan.dataset.items:
            for thing in plan.dataset.annotations.get(item.id, ()):
                if not thing["iscrowd"]:
                    said = say(condition, {**thing, "image_id": item.id, "score": 0.9})
                    found += [said] if said else []
        name = "clean.json" if condition.severity == 0 else f"{condition.entry}/{condition.severity}.json"
        keys = ("image_id", "category_id", "bbox", "score")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps([{key: row[key] for key in keys} for row in found]))
    return f"predictions:{folder}"
