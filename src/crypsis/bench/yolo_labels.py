"""Objects as YOLO's tools read them: a text file beside each image, and a YAML file that names the classes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

__all__ = ["yolo_label", "yolo_names", "yolo_yaml"]


def yolo_names(name: str) -> tuple[str, str]:
    """Return where an image and its label file go, given the image's name in its set.

    Tools find a label by the last folder of the image's path that is called `images`, so one inside the name is
    renamed to `pictures`.
    """
    plain = re.sub(r"(?<![^/])images(?=/)", "pictures", name)
    return f"images/{plain}", f"labels/{PurePosixPath(plain).with_suffix('.txt')}"


def yolo_label(annotations: Iterable[Mapping[str, Any]], categories: Sequence[int], height: int, width: int) -> str:
    """Return a line `class x y width height` for each object: the center and the sides, in shares of the image's.

    Boxes are cut at the image's border, outside of which some tools refuse the whole file. Crowds and objects to be
    ignored are left out, because a line cannot say that they are.

    Args:
        annotations: as in `crypsis.datasets.detection.DetectionDataset.annotations`.
        categories: ids, in the order in which classes are numbered from 0 on.
        height: of the image, in pixels.
        width: likewise.
    """
    lines = []
    for found in annotations:
        x, y, w, h = found["bbox"]
        left, right = (min(max(value / width, 0.0), 1.0) for value in (x, x + w))
        top, bottom = (min(max(value / height, 0.0), 1.0) for value in (y, y + h))
        if left < right and top < bottom and not found["iscrowd"] and not found["ignore"]:
            shares = ((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)
            lines.append(" ".join([str(categories.index(found["category_id"])), *(f"{share:.8f}" for share in shares)]))
    return "".join(f"{line}\n" for line in lines)


def yolo_yaml(names: Iterable[str]) -> str:
    """Return the description of a data set whose `images` lie beside it; it has no path of its own, so it may move."""
    classes = "".join(f"  {number}: {json.dumps(name, ensure_ascii=False)}\n" for number, name in enumerate(names))
    return f"train: images\nval: images\nnames:\n{classes}"
