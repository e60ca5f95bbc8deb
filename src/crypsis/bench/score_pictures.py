"""Pictures of a finished run of scores: what was proposed, and the subset that meets the object best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..datasets.masks import MaskDataset
from ..io import encode_image, write_atomic
from ..models.proposals import StoredProposals
from ..types import Image, Mask
from .detection_pictures import draw_box, draw_tag
from .pictures import outlined
from .store import write_json

__all__ = ["chosen_ranks", "make_score_pictures"]

_QUALITY = 60
_AT_EACH_END = 20
_INK, _PAPER, _BEST = (0, 0, 0), (255, 255, 255), (86, 180, 233)


def make_score_pictures(
    folder: Path,
    dataset: MaskDataset,
    rows: Sequence[Mapping[str, Any]],
    proposals: StoredProposals | None,
    *,
    on_size_mismatch: str = "error",
) -> None:
    """Write `pictures/*.webp` and `pictures/index.json` of a run of scores.

    The object is outlined in orange. `proposals` shows the boxes of those that took part with their β, solid where they
    belong to the best subset and dashed where not; `best` tints the union of that subset.

    Args:
        folder: of the run.
        dataset: its images and masks.
        rows: of all images, ranked; see `crypsis.bench.score.ROW_SCHEMA`.
        proposals: where the proposals lie, or None for pictures of the objects alone.
        on_size_mismatch: as the run had it.
    """
    items = {item.key: item for item in dataset.items}
    images = []
    for rank in chosen_ranks(len(rows)):
        row = rows[rank]
        sample = dataset.load(items[row["image"]], on_size_mismatch=on_size_mismatch)
        views = {"object": outlined(sample.image, sample.mask)}
        if proposals is not None:
            masks = proposals.load(row["image"], (row["height"], row["width"])).masks
            views = {
                "proposals": _boxed(sample.image, sample.mask, row, masks),
                "best": _tinted(sample.image, sample.mask, masks[row["best"]].any(axis=0)),
            }
        files = {view: f"rank-{rank:06d}-{view}.webp" for view in views}
        for view, picture in views.items():
            write_atomic(folder / "pictures" / files[view], encode_image(picture, ".webp", quality=_QUALITY))
        images.append({"image": row["image"], "rank": rank, "files": files})
    write_json(folder / "pictures" / "index.json", {"images": images})


def chosen_ranks(count: int) -> list[int]:
    """Return the ranks that are shown of so many images, from 0: both ends, and some evenly spaced between them."""
    between = np.linspace(0, count - 1, min(count, _AT_EACH_END + 2)).round().astype(int).tolist()
    ends: Iterable[int] = (*range(min(count, _AT_EACH_END)), *range(max(0, count - _AT_EACH_END), count))
    return sorted({*ends, *between})


def _boxed(image: Image, truth: Mask, row: Mapping[str, Any], masks: NDArray[np.bool_]) -> Image:
    small = outlined(image, truth)
    scale = small.shape[1] / image.shape[1]
    boxes = {i: scale * np.array(row["boxes"][i] if row["boxes"] else _around(masks[i])) for i in row["kept"]}
    for i in sorted(boxes, key=row["best"].count):
        color, width, dash = (_BEST, 2, 0) if i in row["best"] else (_PAPER, 1, 6)
        draw_box(small, boxes[i], _INK, width + 2)
        draw_box(small, boxes[i], color, width, dash=dash)
    taken: set[tuple[int, int]] = set()
    for i, box in boxes.items():
        draw_tag(small, box, f"{row['beta'][i]:.2f}", taken)
    return small


def _around(mask: Mask) -> list[float]:
    """Return the box around a mask; one without size where it is empty."""
    x, y, width, height = cv2.boundingRect(mask.astype(np.uint8))
    return [x, y, x + width, y + height]


def _tinted(image: Image, truth: Mask, union: Mask) -> Image:
    tint = np.where(union[..., None], (image.astype(np.uint16) + _BEST) // 2, image * 0.5)
    return outlined(np.asarray(tint, np.uint8), truth)
