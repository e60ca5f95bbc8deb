"""What sources hold, laid out by image: they are read condition by condition, while a run goes image by image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..io import atomic_path
from ..models.detector import DetectionSource
from ..types import Condition, ListedDetections

__all__ = ["StoredDetections", "store_detections"]

_ROW = np.dtype([("box", np.float64, 4), ("score", np.float64), ("label", np.int64)])
"""48 bytes, six words."""


def store_detections(
    source: DetectionSource, path: Path, image_ids: Sequence[int | str], conditions: Sequence[Condition]
) -> None:
    """Write all that a source holds of these images, whole or not at all, for `StoredDetections`.

    The file starts with a table, by condition, of where the detections of each image begin, and those of the last end.

    Raises:
        ModelError: what the source holds cannot be read.
        IncompleteError: the place cannot be written.
    """
    starts = np.zeros((len(conditions), len(image_ids) + 1), np.int64)
    total = 0
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        file.write(starts.tobytes())
        for condition, row in zip(conditions, starts, strict=True):
            found = [source.load(image_id, condition) for image_id in image_ids]
            row[:] = total + np.cumsum([0, *(len(each.scores) for each in found)])
            rows = np.empty(row[-1] - total, _ROW)
            for name, values in (("box", "boxes"), ("score", "scores"), ("label", "labels")):
                rows[name] = np.concatenate([getattr(each, values) for each in found])
            file.write(rows.tobytes())
            total = int(row[-1])
        file.seek(0)
        file.write(starts.tobytes())


class StoredDetections:
    """Detections of a source as `store_detections` wrote them; only what is asked for is read."""

    def __init__(self, name: str, path: Path, image_ids: Sequence[int | str], conditions: Sequence[Condition]) -> None:
        """Open the file; ids and conditions are those with which it was written."""
        self.name = name
        self._image = {image_id: k for k, image_id in enumerate(image_ids)}
        self._condition = {condition: k for k, condition in enumerate(conditions)}
        words = np.memmap(path, np.int64, mode="r")
        table = len(conditions) * (len(image_ids) + 1)
        self._starts = words[:table].reshape(len(conditions), -1)
        self._rows = words[table:].view(_ROW)

    def load(self, image_id: int | str, condition: Condition) -> ListedDetections:
        """Return the detections of one image under one condition."""
        image = self._image[image_id]
        start, end = self._starts[self._condition[condition], image : image + 2]
        rows = np.array(self._rows[start:end])
        return ListedDetections(rows["box"], rows["score"], rows["label"])
