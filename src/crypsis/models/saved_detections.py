"""A folder of saved detections: one COCO results file per condition.

    DIR/clean.json
    DIR/<entry>/<severity>.json

where `<entry>` is the catalog name (`imagenet-c/fog`) or its last part (`fog`). In place of a file there may be a
folder of that name without `.json`, whose `.json` files are parts of it. A file is a list of objects with `image_id`,
`category_id`, `bbox` (x, y, width, height in pixels) and `score`; others of their members are ignored. An empty list
is a detector that found nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CrypsisError, ModelError
from ..io import file_digest, read_file
from ..types import Condition, ListedDetections
from .options import read_options
from .predictions import condition_places
from .segmenter import Description

__all__ = ["MAX_BYTES", "SavedDetections"]

MAX_BYTES = 512_000_000
"""Largest file that is parsed: its objects take six times as much memory. A larger one can be given in parts."""

_KEPT_ROWS = 1_000_000
"""Detections kept in memory, of the conditions asked for last (48 bytes each)."""
_FARTHEST = 1e9
_EXAMPLES = 5


@dataclass(frozen=True)
class _Results:
    """The detections of one condition, sorted by image.

    Attributes:
        detections: of all images.
        rows: image id → its slice of them.
        repeated: exact repetitions that were left out.
    """

    detections: ListedDetections
    rows: Mapping[int | str, slice]
    repeated: int


class SavedDetections:
    """Detections that lie in a folder; see the module for its layout.

    A condition's files are read when it is first asked for, and a million detections are kept: ask condition by
    condition.
    """

    def __init__(self, folder: Path, *, name: str | None = None) -> None:
        """Take the folder.

        Args:
            folder: what holds `clean.json` and the folders of the entries.
            name: label; the folder's name if None.

        Raises:
            ModelError: there is no such folder.
        """
        if not folder.is_dir():
            raise ModelError(f"There is no folder of predictions {folder} (looked in {folder.absolute().parent}).")
        self.folder = folder
        self.name = name or folder.resolve().name
        self._kept: OrderedDict[Condition, _Results] = OrderedDict()

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> SavedDetections:
        """Take `predictions:DIR`."""
        read_options("predictions", options, {})
        if not target:
            raise ModelError("predictions needs a folder; write predictions:DIR.")
        return cls(Path(target), name=name)

    def describe(self) -> Description:
        """Return the folder's name, and a digest of the files' names and contents, all of which it reads."""
        return {
            "adapter": "predictions",
            "folder": self.folder.resolve().name,
            "detections_sha256": self._digest(),
            "repetitions": "left out",
        }

    def load(self, image_id: int | str, condition: Condition) -> ListedDetections:
        """Return the detections of one image; see `DetectionSource.load`.

        Detections that repeat another of the image in every number (as when parts overlap, or a distributed evaluation
        filled up its last batch) are left out.

        Raises:
            ModelError: no file or several for the condition, or one that is not COCO results.
        """
        results = self._results(condition)
        rows = results.rows.get(image_id, slice(0))
        found = results.detections
        return ListedDetections(found.boxes[rows], found.scores[rows], found.labels[rows])

    def check(
        self, image_ids: Sequence[int | str], categories: Collection[int] | None, conditions: Sequence[Condition]
    ) -> tuple[list[str], list[str]]:
        """Return what is wrong and what is to be known, one sentence each; see `DetectionSource.check`.

        Reads the files of all conditions.

        Returns:
            Faults: files that are missing or cannot be used, ids of categories that are not in `categories`, and ids of
            images that are written in another way than in `image_ids`, or none of which is in it. Notes: ids of other
            images, and repetitions, both of which are left out.
        """
        faults: list[str] = []
        notes: list[str] = []
        known = set(image_ids)
        for condition in conditions:
            try:
                results = self._results(condition)
            except CrypsisError as error:
                faults.append(str(error))
                continue
            unknown = [image_id for image_id in results.rows if image_id not in known]
            if unknown:
                spelled = {str(image_id) for image_id in known}
                advice = "their detections are left out"
                if any(str(image_id) in spelled for image_id in unknown):
                    advice = "write ids as the annotation file does, numbers without quotes and texts with"
                elif len(unknown) == len(results.rows):
                    advice = "give the annotations that these detections were made for"
                which = f"{len(unknown):,} of {len(results.rows):,} image ids"
                sentence = self._unknown(condition, which, unknown, advice)
                (notes if "left out" in advice else faults).append(sentence)
            of_categories = np.unique(results.detections.labels).tolist()
            if categories is not None and (strange := [number for number in of_categories if number not in categories]):
                which = f"{len(strange):,} of {len(of_categories):,} category ids"
                advice = "write them as the annotation file does (many models count classes from 0, COCO ids go to 90)"
                faults.append(self._unknown(condition, which, strange, advice))
            if results.repeated:
                notes.append(
                    f"{self.name}: {results.repeated:,} detections under {condition} repeat others in every number; "
                    "each counts once."
                )
        return faults, notes

    def _digest(self) -> str:
        """Return a digest of the names and contents of all files: other results in the same files are another model."""
        files = sorted((path.relative_to(self.folder).as_posix(), path) for path in self.folder.rglob("*.json"))
        lines = "\n".join(f"{name} {file_digest(path)}" for name, path in files)
        return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()

    def _unknown(self, condition: Condition, which: str, unknown: Sequence[int | str], advice: str) -> str:
        listed = ", ".join(map(repr, unknown[:_EXAMPLES]))
        more = f", and {len(unknown) - _EXAMPLES:,} more" if len(unknown) > _EXAMPLES else ""
        return f"{self.name}: under {condition}, {which} are not in the data set ({listed}{more}); {advice}."

    def _results(self, condition: Condition) -> _Results:
        """Return the detections of a condition, kept or read."""
        if condition not in self._kept:
            self._kept[condition] = _merge(self._find(condition))
        self._kept.move_to_end(condition)
        while len(self._kept) > 1 and sum(len(kept.detections.scores) for kept in self._kept.values()) > _KEPT_ROWS:
            self._kept.popitem(last=False)
        return self._kept[condition]

    def _find(self, condition: Condition) -> list[Path]:
        """Return the file, or the parts, of a condition."""
        places = condition_places(self.folder, condition)
        files = [place.with_name(f"{place.name}.json") for place in places]
        found = [[file] for file in files if file.is_file()]
        found += [parts for place in places if (parts := sorted(place.glob("*.json")))]
        if not found:
            raise ModelError(
                f"{self.name}: there are no detections under {condition}: no {' or '.join(map(str, files))}, "
                f"nor a folder {files[0].stem} with parts of it."
            )
        if len(found) > 1:
            several = ", ".join(str(paths[0]) for paths in found)
            raise ModelError(f"{self.name}: several sets of detections under {condition}: {several}; keep one.")
        return found[0]


def _merge(paths: Sequence[Path]) -> _Results:
    """Read files into one set, sorted by image, in their order within each, without repetitions."""
    numbers: dict[int | str, int] = {}
    columns = [_read(path, numbers) for path in paths]
    images, boxes, scores, labels = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    table = np.column_stack([boxes, scores, labels, images])
    alike = np.lexsort(table.T)
    again = alike[1:][(table[alike[1:]] == table[alike[:-1]]).all(axis=1)]
    kept = np.delete(np.arange(len(images)), again)
    order = kept[np.argsort(images[kept], kind="stable")]
    edges = np.searchsorted(images[order], np.arange(len(numbers) + 1))
    rows = {image_id: slice(int(edges[n]), int(edges[n + 1])) for image_id, n in numbers.items()}
    detections = ListedDetections(boxes[order], scores[order], labels[order])
    return _Results(detections, rows, len(images) - len(order))


def _read(path: Path, numbers: dict[int | str, int]) -> tuple[NDArray[Any], ...]:
    """Return image numbers, boxes (x, y, width, height), scores and labels of a file; number new image ids on."""
    if path.stat().st_size > MAX_BYTES:
        raise ModelError(
            f"{path}: is larger than {MAX_BYTES // 1_000_000} MB; split its list into files in a folder {path.stem}."
        )
    try:
        results = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: is not JSON ({error}).") from error
    if not isinstance(results, list):
        raise ModelError(f"{path}: is not a list of COCO results; objects of image_id, category_id, bbox and score.")
    try:
        images = [numbers.setdefault(result["image_id"], len(numbers)) for result in results]
        boxes = np.array([result["bbox"] for result in results], np.float64).reshape(len(results), 4)
        scores = np.array([result["score"] for result in results], np.float64)
        labels = np.array([result["category_id"] for result in results] or np.empty(0, np.int64))
        sound = (
            labels.dtype.kind == "i"
            and scores.ndim == 1
            and all(map(_is_id, numbers))
            and bool((np.abs(boxes) <= _FARTHEST).all() and (boxes[:, 2:] >= 0).all())
            and bool(((scores >= 0) & (scores <= 1)).all() and (labels >= 0).all())
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        faults = (f"{path}, [{n}]: {fault}" for n, result in enumerate(results) if (fault := _fault(result)))
        raise ModelError(next(faults, f"{path}: is not a list of COCO results."))
    return np.array(images, np.int64), boxes, scores, labels


def _is_id(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _fault(result: object) -> str | None:
    """Return what is wrong with one object of a file, if anything."""
    if not isinstance(result, dict):
        return f"must be an object; got {type(result).__name__}."
    for member in ("image_id", "category_id", "bbox", "score"):
        if member not in result:
            return f"there is no {member}."
    image, category, box, score = (result[member] for member in ("image_id", "category_id", "bbox", "score"))
    if not _is_id(image):
        return f"image_id must be a number without fraction or text; got {image!r}."
    if isinstance(category, bool) or not isinstance(category, int) or not 0 <= category < 2**63:
        return f"category_id must be a number from 0 without fraction; got {category!r}."
    if not _numbers(box, 4, -_FARTHEST, _FARTHEST) or min(map(float, box[2:])) < 0:
        return f"bbox must be four numbers, x, y, and a width and height from 0; got {box!r:.200}."
    if not _numbers([score], 1, 0, 1):
        return f"score must be a number from 0 to 1; got {score!r:.200}."
    return None


def _numbers(values: object, count: int, low: float, high: float) -> bool:
    if not isinstance(values, list) or len(values) != count:
        return False
    try:
        return all(low <= float(value) <= high for value in values)
    except (TypeError, ValueError, OverflowError):
        return False
