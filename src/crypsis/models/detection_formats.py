"""The forms in which exported detectors return their boxes, and how they are told apart.

A form says which outputs there are, what their numbers mean, and what models that have it are usually fed. Decoding is
of one image at a time, and ends with boxes in pixels of the model's input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from .activations import sigmoid

__all__ = ["FORMATS", "NAMES", "Candidates", "Format", "Shape", "guess_format", "select"]

Array: TypeAlias = NDArray[np.floating]
Shape: TypeAlias = tuple[int, ...]
"""Of an output, the batch included."""

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 255.0
UNIT = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 255.0
"""Mean, deviation and what pixels are divided by: for numbers in 0..1."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a form says of one image, before anything is left out.

    Attributes:
        boxes: P×4, in the form's own coordinates.
        scores: P×C for each class, or P.
        labels: P, the model's numbers of the classes, where `scores` is P.
    """

    boxes: Array
    scores: Array
    labels: Array | None = None


Decoder: TypeAlias = Callable[[Sequence[Array], int, tuple[int, int]], Candidates]
"""Outputs of one image (without the batch axis), number of classes the model counts, (height, width) of the input."""


@dataclass(frozen=True, slots=True)
class Format:
    """A form of outputs.

    Attributes:
        roles: output → axes it has, with the batch's; the names are keys of `NAMES`, or `rows`.
        shown: what it looks like, for messages.
        decode: from outputs to candidates.
        columns: shape of the outputs, by role, and number of classes (None if not known) → number of classes as the
            outputs count them; None if they do not show it, -1 if they do not have the form.
        corners: `xyxy`, `yxyx` or `cxcywh`, what the four numbers of a box are.
        units: `pixels` of the input, or `normalized` by its sides.
        activation: what makes scores of the numbers: `none`, `sigmoid` or `softmax`.
        single: a box has its best class only, as DETR is evaluated; or else all its classes, as YOLO and NanoDet are.
        first: the model's number of the first class.
        letterbox: images keep their proportions.
        pad: value of the filling.
        normalization: mean, deviation, and what pixels are divided by first.
        channels: `rgb` or `bgr`.
        nms: overlap above which the worse box goes, or None where the model has seen to it.
        limit: boxes that are kept of an image.
        multiple: of which sides are in size=native.
    """

    roles: dict[str, int]
    shown: str
    decode: Decoder
    columns: Callable[[dict[str, Shape], int | None], int | None]
    corners: str = "xyxy"
    units: str = "pixels"
    activation: str = "none"
    single: bool = False
    first: int = 0
    letterbox: bool = False
    pad: int = 114
    normalization: tuple[tuple[float, ...], tuple[float, ...], float] = UNIT
    channels: str = "rgb"
    nms: float | None = None
    limit: int = 300
    multiple: int = 32


def _objectness(outputs: Sequence[Array], classes: int, size: tuple[int, int]) -> Candidates:
    rows = outputs[0]
    return Candidates(rows[:, :4], rows[:, 4:5] * rows[:, 5:])


def _anchor_free(outputs: Sequence[Array], classes: int, size: tuple[int, int]) -> Candidates:
    rows = outputs[0].T if outputs[0].shape[0] == 4 + classes else outputs[0]
    return Candidates(rows[:, :4], rows[:, 4:])


def _six(outputs: Sequence[Array], classes: int, size: tuple[int, int]) -> Candidates:
    rows = outputs[0]
    return Candidates(rows[:, :4], rows[:, 4], rows[:, 5])


def _table(outputs: Sequence[Array], classes: int, size: tuple[int, int]) -> Candidates:
    return Candidates(outputs[0], outputs[1])


def _list(outputs: Sequence[Array], classes: int, size: tuple[int, int]) -> Candidates:
    return Candidates(*outputs)


def _distributions(outputs: Sequence[Array], classes: int, size: tuple[int, int]) -> Candidates:
    """Generalized focal loss (Li et al., NeurIPS 2020): a distance is the mean of its distribution over bins.

    Distances are from the middle of a cell to the left, top, right and bottom, in strides.
    """
    rows = outputs[0]
    if len(rows) not in _cell_counts(size):
        raise ModelError(f"there are {len(rows)} cells, where strides 8, 16, 32 (and 64) have {_cell_counts(size)[0]}.")
    centers, strides = _cells(size, len(rows))
    bins = rows[:, classes:].reshape(len(rows), 4, -1).astype(np.float64)
    weights = np.exp(bins - bins.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    distances = weights @ np.arange(bins.shape[2]) * strides[:, None]
    return Candidates(np.hstack([centers - distances[:, :2], centers + distances[:, 2:]]), rows[:, :classes])


def _cells(size: tuple[int, int], count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return middle (x, y) and stride of `count` cells, which are those of strides 8, 16, 32 and perhaps 64."""
    middles, strides = [], []
    for stride in (8, 16, 32, 64):
        y, x = np.mgrid[: math.ceil(size[0] / stride), : math.ceil(size[1] / stride)]
        middles.append((np.stack([x.ravel(), y.ravel()], axis=1) + 0.5) * stride)
        strides.append(np.full(x.size, float(stride)))
    return np.concatenate(middles)[:count], np.concatenate(strides)[:count]


def _cell_counts(size: tuple[int, int]) -> tuple[int, int]:
    """Return how many cells strides 8 to 32, and 8 to 64, have together."""
    cells = [math.ceil(size[0] / stride) * math.ceil(size[1] / stride) for stride in (8, 16, 32, 64)]
    return sum(cells[:3]), sum(cells)


def _anchor_free_columns(shapes: dict[str, Shape], classes: int | None) -> int | None:
    _, first, second = shapes["rows"]
    return classes if classes is not None and 4 + classes in (first, second) else min(first, second) - 4


def _distribution_columns(shapes: dict[str, Shape], classes: int | None) -> int | None:
    columns = shapes["rows"][2]
    if classes is None:
        classes = 80
    return classes if columns > classes and (columns - classes) % 4 == 0 else -1


_ROWS = {"rows": 3}
_TABLE = {"boxes": 3, "scores": 3}
_LIST = {"boxes": 3, "scores": 2, "labels": 2}

FORMATS: dict[str, Format] = {
    "yolov5": Format(
        _ROWS, "N×A×(5+C) with objectness", _objectness, lambda shapes, _: shapes["rows"][2] - 5,
        corners="cxcywh", letterbox=True, nms=0.6,
    ),
    "yolov8": Format(
        _ROWS, "N×(4+C)×A or N×A×(4+C); YOLOv8, v9, 11", _anchor_free, _anchor_free_columns,
        corners="cxcywh", letterbox=True, nms=0.7,
    ),
    "yolo-nms": Format(
        _ROWS, "N×M×6: x1, y1, x2, y2, score, class; YOLOv10 and exports with NMS", _six,
        lambda shapes, _: None if shapes["rows"][2] == 6 else -1, letterbox=True,
    ),
    "detr": Format(
        _TABLE, "logits N×Q×(C+1), boxes N×Q×4; the last class is no object", _table,
        lambda shapes, _: shapes["scores"][2] - 1,
        corners="cxcywh", units="normalized", activation="softmax", single=True, normalization=IMAGENET,
    ),
    "rtdetr": Format(
        _TABLE, "logits N×Q×C, boxes N×Q×4", _table, lambda shapes, _: shapes["scores"][2],
        corners="cxcywh", units="normalized", activation="sigmoid",
    ),
    "ssd": Format(
        _TABLE, "boxes N×P×4, scores N×P×(1+C); the first class is background", _table,
        lambda shapes, _: shapes["scores"][2], units="normalized", first=1, normalization=IMAGENET, nms=0.45,
    ),
    "tf": Format(
        _LIST, "detection_boxes, detection_scores, detection_classes from 1", _list, lambda *_: None,
        corners="yxyx", units="normalized", first=1,
    ),
    "torchvision": Format(
        _LIST, "boxes, labels from 1, scores", _list, lambda *_: None, first=1, multiple=1,
    ),
    "boxes": Format(_LIST, "boxes, labels from 0, scores; RT-DETR and D-FINE deployed", _list, lambda *_: None),
    "nanodet": Format(
        _ROWS, "N×cells×(C+4·bins); NanoDet", _distributions, _distribution_columns, letterbox=True, pad=0,
        normalization=((103.53, 116.28, 123.675), (57.375, 57.12, 58.395), 1.0), channels="bgr", nms=0.6, limit=100,
    ),
}  # fmt: skip
"""Name → form. Corners are in pixels of the input unless `units` says otherwise."""

NAMES: dict[str, tuple[str, ...]] = {
    "boxes": ("detection_boxes", "pred_boxes", "boxes", "bboxes", "det_boxes"),
    "scores": ("detection_scores", "logits", "pred_logits", "scores", "det_scores"),
    "labels": ("detection_classes", "labels", "det_classes"),
}
"""Role → how exporters name the output, the most specific first."""


def guess_format(
    outputs: dict[str, Shape], size: tuple[int, int], classes: int | None, *, takes_sizes: bool, coco_ids: bool
) -> str | None:
    """Return the form that outputs have, or None where they may have several or none.

    Args:
        outputs: name → shape, batch included.
        size: (height, width) of the input that was fed.
        classes: how many the model counts, if that is known.
        takes_sizes: the model has a second input, the images' sizes.
        coco_ids: the model counts classes by COCO's category ids.
    """
    names = {name.partition(":")[0].lower() for name in outputs}
    if {"detection_boxes", "detection_scores", "detection_classes"} <= names:
        return "tf"
    if {"boxes", "scores", "labels"} <= names:
        # from 1 or from 0 cannot be seen; the ids are the same in both
        return "boxes" if takes_sizes else "torchvision" if coco_ids else None
    if names & {"logits", "pred_logits"} and "pred_boxes" in names:
        columns = next(s[-1] for name, s in outputs.items() if name.partition(":")[0].lower().endswith("logits"))
        return {80: "rtdetr", 92: "detr"}.get(columns)
    rows = [shape for shape in outputs.values() if len(shape) == 3]
    if len(rows) != 1:
        return None
    _, first, second = rows[0]
    cells = _cell_counts(size)
    if second in cells and first > 4:
        return "yolov8"
    if first in [3 * count for count in cells] and second > 5:
        return "yolov5"
    if first in cells:
        # other families have as many columns as YOLOv8 with another number of classes
        return "yolov8" if second == 4 + (classes or 80) else None
    return "yolo-nms" if second == 6 and first <= 1000 else None


def select(
    candidates: Candidates,
    form: Format,
    classes: int,
    *,
    activation: str,
    units: str,
    size: tuple[int, int],
    threshold: float,
) -> tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64]]:
    """Return the boxes, scores and labels of each box and class whose score is above `threshold`.

    Args:
        candidates: as the form decodes them.
        form: theirs.
        classes: how many the model counts; columns of scores beyond them are no class.
        activation: see `Format`.
        units: see `Format`.
        size: (height, width) of the input.
        threshold: in [0, 1].

    Returns:
        Boxes (N×4, float64, corners in pixels of the input), scores (N, float32), labels (N, int64, the model's).

    Raises:
        ModelError: the numbers cannot be of this form.
    """
    if len(candidates.boxes) != len(candidates.scores):
        raise ModelError(f"there are {len(candidates.boxes)} boxes, but scores of {len(candidates.scores)}.")
    scores = candidates.scores.astype(np.float32)
    if activation == "sigmoid":
        scores = sigmoid(scores)
    elif activation == "softmax":
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
    if scores.size and not scores.max() <= 1.001:  # half precision may round up
        raise ModelError(
            f"scores reach {scores.max():.4g}, not 1 at most; if they are logits give activation=sigmoid, or else "
            "another format=."
        )
    if candidates.labels is not None:
        rows = np.flatnonzero(scores > threshold)
        if len(candidates.labels) != len(scores) or (candidates.labels[rows] % 1 != 0).any():
            raise ModelError("labels are not one whole number for each box; give another format=.")
        scores, labels = scores[rows], candidates.labels[rows].astype(np.int64)
    else:
        scores = scores[:, :classes]
        chosen = scores > threshold
        if form.single:
            chosen &= np.arange(classes) == scores.argmax(axis=1)[:, None]
        rows, labels = np.nonzero(chosen)
        scores = scores[rows, labels]
    boxes = candidates.boxes[rows].astype(np.float64)
    if form.corners == "cxcywh":
        centers, halves = boxes[:, :2], np.maximum(boxes[:, 2:], 0.0) / 2
        boxes = np.hstack([centers - halves, centers + halves])
    elif form.corners == "yxyx":
        boxes = boxes[:, [1, 0, 3, 2]]
    if units == "normalized":
        boxes *= [size[1], size[0], size[1], size[0]]
    if not np.isfinite(boxes).all() or (boxes[:, :2] > boxes[:, 2:]).any():
        raise ModelError("boxes are not finite corners x1, y1, x2, y2 with x1 ≤ x2 and y1 ≤ y2; give another format=.")
    return boxes, np.minimum(scores, np.float32(1)), labels.astype(np.int64)
