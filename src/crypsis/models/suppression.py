"""Which of many overlapping boxes to keep."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

__all__ = ["CANDIDATES", "suppress"]

CANDIDATES = 30_000
"""Boxes, the best first, that are compared at most (Ultralytics compares as many)."""


def suppress(
    boxes: NDArray[np.floating], scores: NDArray[np.floating], labels: NDArray[np.int64], *, iou: float | None
) -> NDArray[np.intp]:
    """Return the indices of the boxes to keep, by falling score; of equal scores the first comes first.

    Greedy non-maximum suppression, each class for itself: a box goes when it overlaps a better one of its class by
    more than `iou`.

    Args:
        boxes: N×4, corners x1, y1, x2, y2.
        scores: N.
        labels: N, from 0.
        iou: intersection over union above which a box goes, in [0, 1]; None keeps all boxes.
    """
    order = np.argsort(-scores, kind="stable")
    if iou is None or len(order) == 0:
        return order
    order = order[:CANDIDATES]
    # OpenCV tells classes apart by moving each away from the others, which works for corners from 0
    corners = boxes[order].astype(np.float64) - boxes[order].min()
    corners[:, 2:] -= corners[:, :2]
    # its stubs ask for lists, which take longer
    suppressor: Any = cv2.dnn.NMSBoxesBatched
    kept = suppressor(corners, scores[order].astype(np.float32), labels[order].astype(np.int32), -1.0, iou)
    return order[np.sort(np.asarray(kept, np.intp).ravel())]
