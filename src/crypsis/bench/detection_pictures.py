"""Pictures of a finished detection run: where degradation took most objects, clean and degraded, with boxes.

They are made once, here, from the run's rows and the images, without a detector, because the report reads nothing but
the run folder.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..detection_results import DetectionRun
from ..errors import CrypsisError
from ..io import encode_image, write_atomic
from ..types import Condition, Image
from .detection_plan import DetectionPlan
from .store import write_json

__all__ = ["FOUND_IOU", "FOUND_SCORE", "draw_box", "draw_tag", "make_detection_pictures"]

FOUND_SCORE = 0.3
"""A detection is drawn, and finds an object, from this score on."""
FOUND_IOU = 0.5
"""It finds an object of its category that it overlaps by this much."""

_IMAGES = 200
_WORST = 6
_PER_ENTRY = 2
_MOST_DRAWN = 12
_SIDE = 300
_QUALITY = 60
_COLUMNS = ("image", "number", "model", "entry", "severity", "status", "boxes", "scores", "categories", "truth_boxes")
_INK, _PAPER, _TRUTH = (0, 0, 0), (255, 255, 255), (230, 159, 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What a detector said of one image under one condition, and what there was to find.

    Attributes:
        truth: float64 M×4, corners of the objects that are there, crowds left out.
        boxes: float64 N×4, corners.
        scores: float64 N.
        best: float64 M, of each object the highest score among the detections that find it, whatever that is; else 0.
    """

    truth: NDArray[np.float64]
    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    best: NDArray[np.float64]

    @property
    def found(self) -> int:
        return int((self.best >= FOUND_SCORE).sum())


_Case = tuple[str, str, Condition]


def make_detection_pictures(run: DetectionRun, plan: DetectionPlan) -> None:
    """Write `pictures/*.webp` and `pictures/index.json` of a run.

    The worst images lost most objects against the same image clean, and of as many lost those whose best scores fell
    most; each image once and each degradation at most twice. An object is found by a detection of its category with
    a score of at least 0.3 and an IoU of at least 0.5. Of large sets, 200 images spread over the set are looked at.

    Solid boxes are objects of the truth; dashed boxes are detections, with their scores.
    """
    folder = run.path / "pictures"
    items = {item.key: item for item in plan.dataset.items}
    entries = {entry.name: entry for entry in plan.entries}
    objects: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for found in run.truth()["annotations"]:
        objects[found["image_id"]].append(found)
    looked_at = 0
    losses: list[tuple[int, float, _Case]] = []
    for table in _parts(run):
        looked_at += len(table["image"].unique())
        losses += _losses(_seen(table, objects))
    chosen = _worst(losses)
    pairs: dict[_Case, tuple[_Seen, _Seen]] = {}
    wanted = {image for image, _, _ in chosen}
    for table in _parts(run):
        if wanted & set(table["image"].unique().to_pylist()):
            seen = _seen(table, objects)
            for image, model, condition in chosen:
                if (image, model, condition) in seen:
                    case = (image, model, condition)
                    pairs[case] = seen[image, model, Condition("clean", 0)], seen[case]
    worst: list[dict[str, Any]] = []
    for case in chosen:
        image, model, condition = case
        before, after = pairs[case]
        clean = plan.dataset.load(items[image])
        try:
            worse = entries[condition.entry].degrade(clean, condition.severity, seed=plan.seed, image_key=image)
        except CrypsisError:  # saved detections of an image that the operator cannot take
            continue
        views = {}
        for view, picture, what in (("clean", clean, before), ("degraded", worse, after)):
            name = f"worst-{len(worst):02d}-{view}.webp"
            write_atomic(folder / name, encode_image(_drawn(picture, what), ".webp", quality=_QUALITY))
            shown = _shown(what.scores)
            views[view] = {
                "file": name,
                "found": what.found,
                "scores": [round(s, 6) for s in what.scores[shown].tolist()],
            }
        worst.append(
            {
                "image": image,
                "model": model,
                "entry": condition.entry,
                "severity": condition.severity,
                "objects": len(before.truth),
                "views": views,
            }
        )
    rule = {"score": FOUND_SCORE, "iou": FOUND_IOU}
    write_json(folder / "index.json", {"worst": worst, "found": rule, "images": looked_at})


def _parts(run: DetectionRun) -> Iterator[pa.Table]:
    """Yield parts of the run, evenly spaced where there are many."""
    parts = run.parts()
    images = int(run.plan["unit_images"])
    step = max(1, len(parts) * images // _IMAGES)
    for part in parts[::step]:
        yield pq.ParquetFile(part).read(list(_COLUMNS))


def _seen(table: pa.Table, objects: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[_Case, _Seen]:
    """Return what each (image, detector, condition) of a part says; failed rows left out."""
    found = {}
    table = table.filter(pc.equal(table["status"], "ok")).combine_chunks()
    lists = zip(*(_lists(table, name) for name in ("boxes", "scores", "categories")), strict=True)
    rows = table.drop_columns(["boxes", "scores", "categories"]).to_pylist()
    for row, (flat, scores, labels) in zip(rows, lists, strict=True):
        mine = objects.get(row["number"], ())
        corners = np.array([_corners(one["bbox"]) for one in mine], np.float64).reshape(-1, 4)
        if row["truth_boxes"] is not None:
            corners = np.array(row["truth_boxes"], np.float64).reshape(-1, 4)
        there = np.isfinite(corners[:, 0]) & np.array([not one["iscrowd"] for one in mine], np.bool_)
        truth = corners[there]
        categories = np.array([one["category_id"] for one in mine], np.int64)[there]
        boxes = flat.reshape(-1, 4).copy()
        boxes[:, 2:] += boxes[:, :2]
        hits = (_overlap(truth, boxes) >= FOUND_IOU) & (categories[:, None] == labels[None, :])
        best = np.where(hits, scores, 0.0).max(axis=1, initial=0.0)
        case = (row["image"], row["model"], Condition(row["entry"], row["severity"]))
        found[case] = _Seen(truth, boxes, scores, best)
    return found


def _lists(table: pa.Table, name: str) -> list[NDArray[Any]]:
    """Return the lists of a column, a view each."""
    column = table[name].combine_chunks()
    return np.split(column.flatten().to_numpy(), column.offsets.to_numpy()[1:-1]) if len(table) else []


def _losses(seen: Mapping[_Case, _Seen]) -> Iterator[tuple[int, float, _Case]]:
    """Yield how many objects fewer are found than clean, and how much less sure of them the detector is."""
    for (image, model, condition), now in seen.items():
        before = seen.get((image, model, Condition("clean", 0)))
        if condition.severity and before is not None:
            yield before.found - now.found, float(before.best.sum() - now.best.sum()), (image, model, condition)


def _worst(losses: Sequence[tuple[int, float, _Case]]) -> list[_Case]:
    """Choose from the largest loss down, with different images and degradations."""
    chosen: list[_Case] = []
    images: set[str] = set()
    entries: Counter[str] = Counter()
    for lost, _, case in sorted(losses, key=lambda loss: (-loss[0], -loss[1], loss[2])):
        if len(chosen) == _WORST or lost < 1:
            break
        if case[0] not in images and entries[case[2].entry] < _PER_ENTRY:
            images.add(case[0])
            entries[case[2].entry] += 1
            chosen.append(case)
    return chosen


def _corners(box: Sequence[float]) -> tuple[float, float, float, float]:
    x, y, width, height = box
    return x, y, x + width, y + height


def _overlap(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return intersection over union of each box of `a` (M×4) with each of `b` (N×4), M×N."""
    sides = np.minimum(a[:, None, 2:], b[None, :, 2:]) - np.maximum(a[:, None, :2], b[None, :, :2])
    common = np.maximum(sides, 0.0).prod(axis=2)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (a, b)]
    union = areas[0][:, None] + areas[1][None, :] - common
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=union > 0), np.float64)


def _shown(scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return which detections are drawn: the surest ones, and of none that is sure enough the first."""
    order = np.argsort(-scores, kind="stable")
    sure = order[scores[order] >= FOUND_SCORE]
    return (sure if sure.size else order[:1])[:_MOST_DRAWN]


def _drawn(image: Image, seen: _Seen) -> Image:
    """Draw the boxes on a small copy."""
    scale = min(1.0, _SIDE / max(image.shape[:2]))
    size = [max(1, round(scale * side)) for side in image.shape[1::-1]]
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA) if scale < 1 else image.copy()
    for box in seen.truth * scale:
        for color, width in ((_INK, 4), (_TRUTH, 2)):
            draw_box(small, box, color, width)
    shown = _shown(seen.scores)
    taken: set[tuple[int, int]] = set()
    for box in seen.boxes[shown] * scale:
        draw_box(small, box, _INK, 3)
        draw_box(small, box, _PAPER, 1, dash=6)
    for box, score in zip(seen.boxes[shown] * scale, seen.scores[shown].tolist(), strict=True):
        draw_tag(small, box, f"{score:.2f}", taken)
    return np.asarray(small, np.uint8)


def draw_box(
    picture: NDArray[Any], box: NDArray[np.float64], color: tuple[int, int, int], width: int, dash: int = 0
) -> None:
    """Draw the outline of a box (corners x1, y1, x2, y2 in pixels) into a picture, dashed by so many pixels."""
    height, across = picture.shape[:2]
    limits = np.array([across, height, across, height]) - 2
    x1, y1, x2, y2 = (int(v) for v in np.rint(np.clip(box, 1, limits)))
    if not dash:
        cv2.rectangle(picture, (x1, y1), (x2, y2), color, width)
        return
    for start in range(x1, x2, 2 * dash):
        for y in (y1, y2):
            cv2.line(picture, (start, y), (min(start + dash, x2), y), color, width)
    for start in range(y1, y2, 2 * dash):
        for x in (x1, x2):
            cv2.line(picture, (x, start), (x, min(start + dash, y2)), color, width)


def draw_tag(picture: NDArray[Any], box: NDArray[np.float64], text: str, taken: set[tuple[int, int]]) -> None:
    """Write a score into the upper left corner of a box, below those that were written there before."""
    (width, height), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, 0.38, 1)
    x = int(np.clip(box[0], 0, max(0, picture.shape[1] - width - 6)))
    y = int(np.clip(box[1], 0, max(0, picture.shape[0] - height - 6)))
    while (place := (x // width, y // (height + 6))) in taken:
        y += height + 6
    taken.add(place)
    cv2.rectangle(picture, (x, y), (x + width + 5, y + height + 5), _INK, -1)
    cv2.putText(picture, text, (x + 3, y + height + 2), cv2.FONT_HERSHEY_SIMPLEX, 0.38, _PAPER, 1, cv2.LINE_AA)
