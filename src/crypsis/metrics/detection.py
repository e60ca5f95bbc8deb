"""Boxes against boxes: COCO's average precision and recall by an existing evaluator, and intervals of it.

Every reported number is the evaluator's own (hotcoco, or pycocotools, which it equals). Only bootstrap intervals
are added up here, from the evaluator's matches: which detection meets which object depends on its image alone, so a
resample of images needs no new matching, only other weights.

Mean performance under corruption and its share of the clean one (mPC and rPC of Michaelis et al., "Benchmarking
Robustness in Object Detection", 2019) are `corrupted` and `retention` of `crypsis.metrics.robustness.aggregate`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, MissingDependencyError, UnknownNameError
from .robustness import Robustness

__all__ = [
    "EVALUATORS",
    "IOU_THRESHOLDS",
    "SCORES",
    "DetectionEvaluator",
    "DetectionScores",
    "Matches",
    "RankChanges",
    "centered_interval",
    "drops_by_label",
    "rank_changes",
]

EVALUATORS = ("hotcoco", "pycocotools")
"""Packages that score; the first is the default, the second COCO's own, slower."""
SCORES = (
    "ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large",
    "ar1", "ar10", "ar100", "ar_small", "ar_medium", "ar_large",
)  # fmt: skip
"""The numbers of `DetectionScores` in the order of pycocotools' `stats`."""
IOU_THRESHOLDS: NDArray[np.float64] = np.linspace(0.5, 0.95, 10)
"""Overlaps from which on a detection has found an object; AP is the mean over them."""
RECALL_LEVELS = np.linspace(0.0, 1.0, 101)
"""Recalls at which precision is read, as COCO does."""
PER_CATEGORY = 100
"""Detections of one category in one image that count, those with the highest scores."""
ALL_AREAS = (0.0, 1e10)
"""COCO's area range `all`, square pixels."""
CHUNK = 32
"""Images whose matches are read from the evaluator at a time; the garbage collector goes through all that are held."""
BLOCK = 1 << 18
"""Numbers that a step of the bootstrap holds at a time: what fits into a cache."""


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """COCO's twelve numbers, in [0, 1]; NaN where there is nothing to find (pycocotools writes −1).

    Attributes:
        ap: average precision, the mean over IoU thresholds 0.50, 0.55, …, 0.95 and over the categories in the truth.
        ap50: at IoU 0.50.
        ap75: at IoU 0.75.
        ap_small: of objects below 32² square pixels of annotated area.
        ap_medium: from 32² to 96².
        ap_large: above 96².
        ar1: average recall with 1 detection per image and category, over the same thresholds and categories.
        ar10: with 10.
        ar100: with 100.
        ar_small: with 100, of small objects.
        ar_medium: of medium ones.
        ar_large: of large ones.
        per_category: category id → `ap` of that category alone, NaN for one without an object.
    """

    ap: float
    ap50: float
    ap75: float
    ap_small: float
    ap_medium: float
    ap_large: float
    ar1: float
    ar10: float
    ar100: float
    ar_small: float
    ar_medium: float
    ar_large: float
    per_category: Mapping[int, float]


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Which detections are right, and what there was to find: all that AP of any weighting of the images needs.

    Detections are sorted by category, falling score, image and row; objects by category. K categories ascend by id.

    Attributes:
        images: number of images.
        image: int32[N], index into `DetectionEvaluator.image_ids`.
        starts: int64[K + 1], where the detections of each category begin.
        right: bool[10, N], whether the detection has found an object that counts, by IoU threshold.
        counted: bool[10, N], False where it lies on a crowd, or is larger than any area range, and is neither right nor
            wrong.
        object_image: int32[M], image of each object that counts (no crowds).
        object_starts: int64[K + 1], where the objects of each category begin.
    """

    images: int
    image: NDArray[np.int32]
    starts: NDArray[np.int64]
    right: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    object_image: NDArray[np.int32]
    object_starts: NDArray[np.int64]

    def average_precision(self, counts: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return AP at each IoU threshold for sets in which each image occurs `counts` times.

        The mean over the last axis is AP, [:, 0] AP50, [:, 5] AP75; `centered_interval` makes limits of them. It is
        what the evaluator says of a set in which copies of an image stand beside each other, but for detections of one
        score, image and category, of which all copies of the first come before those of the second here.

        Args:
            counts: integers [S, images], for instance of `crypsis.metrics.robustness.bootstrap_counts`; the same for
                all conditions and detectors that are compared.

        Returns:
            float64 [S, 10], NaN where nothing is to be found.

        Raises:
            InputError: `counts` has another shape.
        """
        if counts.ndim != 2 or counts.shape[1] != self.images:
            raise InputError(f"Counts of {self.images} images have the shape [samples, images]; got {counts.shape}.")
        sums = np.zeros((len(counts), len(IOU_THRESHOLDS)))
        categories = np.zeros((len(counts), 1))
        for k in range(len(self.starts) - 1):
            objects = self.object_image[self.object_starts[k] : self.object_starts[k + 1]]
            if not objects.size:
                continue
            part = slice(self.starts[k], self.starts[k + 1])
            step = max(1, BLOCK // max(objects.size, part.stop - part.start, 1))
            for first in range(0, len(counts), step):
                rows = slice(first, first + step)
                number = np.take(counts[rows], objects, axis=1).sum(axis=1, dtype=np.int64)
                categories[rows, 0] += number > 0
                sums[rows] += self._of_category(part, counts[rows], np.maximum(number, 1)[:, None])
        return np.divide(sums, categories, out=np.full_like(sums, np.nan), where=categories > 0)

    def _of_category(
        self, part: slice, counts: NDArray[np.integer[Any]], number: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return AP [S, 10] of the detections in `part`, with `number` [S, 1] objects to find."""
        weights = np.take(counts, self.image[part], axis=1).astype(np.int32)
        total_of_all = np.cumsum(weights, axis=1, dtype=np.int32)
        result = np.zeros((len(counts), len(IOU_THRESHOLDS)))
        for t, (right, counted) in enumerate(zip(self.right[:, part], self.counted[:, part], strict=True)):
            hits = np.flatnonzero(right)
            if not hits.size:
                continue
            total = total_of_all if counted.all() else np.cumsum(weights * counted, axis=1, dtype=np.int32)
            found = np.cumsum(weights[:, hits], axis=1, dtype=np.int32)
            # precision peaks at hits, so the best one at a recall or beyond is that of a hit
            precision = found / (total[:, hits] + np.spacing(1.0))
            best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
            levels = np.searchsorted(RECALL_LEVELS, found / number, side="right")
            result[:, t] = np.einsum("sh,sh->s", best, np.diff(levels, axis=1, prepend=0)) / len(RECALL_LEVELS)
        return result


class DetectionEvaluator:
    """Scores detections against one truth, which is prepared once for all conditions.

    Attributes:
        image_ids: int64[I], ascending; the order of the columns of bootstrap counts.
        category_ids: int64[K], ascending.
    """

    def __init__(self, truth: Mapping[str, Any], *, evaluator: str = EVALUATORS[0]) -> None:
        """Prepare the truth.

        Args:
            truth: in COCO's form: `images` and `categories` with an `id`; `annotations` with `id` (1 or more: both
                evaluators may take 0 for "no match"), `image_id`, `category_id`, `bbox` (x, y, width, height),
                `area` (square pixels) and `iscrowd`. All ids are whole numbers, each occurring once; whoever has
                text for ids numbers them. A field `ignore` has no effect, as in pycocotools. Only what is in it is
                scored: for some of the images give the truth of these. It is not changed. For scores without regard
                to class, give truth and detections one category.
            evaluator: one of `EVALUATORS`.

        Raises:
            UnknownNameError: there is no such evaluator.
            MissingDependencyError: its package is not installed.
            InputError: the truth is not of this form.
        """
        if evaluator not in EVALUATORS:
            raise UnknownNameError.among("evaluator of detections", evaluator, EVALUATORS)
        self._evaluator = evaluator
        try:
            if evaluator == "hotcoco":
                package = importlib.import_module("hotcoco")
                self._coco, self._evaluation = package.COCO, package.COCOeval
            else:
                self._coco = importlib.import_module("pycocotools.coco").COCO
                self._evaluation = importlib.import_module("pycocotools.cocoeval").COCOeval
        except ImportError as error:
            raise MissingDependencyError(
                f"Scoring detections with {evaluator} needs its package: pip install {evaluator}."
            ) from error
        try:
            images, categories, annotations = truth["images"], truth["categories"], truth["annotations"]
            self.image_ids = _ids("image", (image["id"] for image in images))
            self.category_ids = _ids("category", (category["id"] for category in categories))
            numbers = _ids("annotation", (annotation["id"] for annotation in annotations))
            fields = ("id", "image_id", "category_id", "bbox", "area", "iscrowd")
            boxes = [{field: annotation[field] for field in fields} for annotation in annotations]
        except KeyError as error:
            raise InputError(f"The truth lacks {error} where COCO's form has it.") from error
        if not self.image_ids.size or 0 in numbers:
            raise InputError("The truth needs at least one image, and annotation ids that start at 1.")
        _known("Annotations", "image", [box["image_id"] for box in boxes], self.image_ids)
        _known("Annotations", "category", [box["category_id"] for box in boxes], self.category_ids)
        self._lists = {
            "images": [{"id": number} for number in self.image_ids.tolist()],
            "categories": [{"id": number, "name": str(number)} for number in self.category_ids.tolist()],
        }
        self._truth = self._load(boxes)
        of_boxes = np.array([(box["image_id"], box["category_id"]) for box in boxes], np.int64).reshape(-1, 2)
        self._cells = np.unique(self._cell(of_boxes[:, 0], of_boxes[:, 1]))

    def evaluate(self, detections: NDArray[np.float64]) -> DetectionScores:
        """Return the scores of one condition.

        Args:
            detections: float64 N×7: image id, x, y, width, height, score, category id; in any order, possibly none,
                which scores 0.

        Raises:
            InputError: another shape or type, a value that is not finite, a negative size, or ids that are not in the
                truth.
        """
        with self._quiet():
            evaluation = self._evaluation(self._truth, self._results(self._checked(detections)), "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
            if self._evaluator == "hotcoco":
                evaluation.summary_lines()  # fills `stats` as `summarize` does, without printing
            else:
                evaluation.summarize()
        numbers = [float(value) if value > -1 else np.nan for value in evaluation.stats]
        # thresholds × recalls × categories × areas (the first is all) × limits (the last is 100)
        precision = np.asarray(evaluation.eval["precision"])[:, :, :, 0, -1].mean(axis=(0, 1))
        per_category = np.where(precision > -1, precision, np.nan).tolist()
        return DetectionScores(
            per_category=dict(zip(self.category_ids.tolist(), per_category, strict=True)),
            **dict(zip(SCORES, numbers, strict=True)),
        )

    def match(self, detections: NDArray[np.float64]) -> Matches:
        """Return which detections of one condition are right, for bootstrap intervals of AP.

        Args and errors as in `evaluate`.
        """
        rows = self._checked(detections)
        rows = rows[np.lexsort((rows[:, 0], -rows[:, 5], rows[:, 6]))]
        cell = self._cell(rows[:, 0], rows[:, 6])
        by_cell = np.argsort(cell, kind="stable")
        rank = np.empty(len(rows), np.int64)
        rank[by_cell] = np.arange(len(rows)) - np.searchsorted(cell[by_cell], cell[by_cell])
        rows, cell = rows[rank < PER_CATEGORY], cell[rank < PER_CATEGORY]
        # Reading a cell (image and category) costs more than matching it: only those with something to find are read
        tried = np.flatnonzero(np.isin(cell, self._cells))
        count = len(IOU_THRESHOLDS)
        right = np.zeros((count, len(rows)), np.bool_)
        counted = np.tile(rows[:, 3] * rows[:, 4] <= ALL_AREAS[1], (count, 1))
        pairs = [np.empty((0, 2), np.int64)]
        for cells in self._matched(rows[tried]):
            place = tried[np.concatenate([np.asarray(c["dtIds"], np.int64) for c in cells]) - 1]
            found = np.concatenate([np.asarray(c["dtMatches"]).reshape(count, -1) != 0 for c in cells], axis=1)
            ignored = np.concatenate([np.asarray(c["dtIgnore"], np.bool_).reshape(count, -1) for c in cells], axis=1)
            right[:, place], counted[:, place] = found & ~ignored, ~ignored
            numbers = [len(c["gtIgnore"]) - sum(c["gtIgnore"]) for c in cells]
            pairs.append(np.repeat([(c["category_id"], c["image_id"]) for c in cells], numbers, axis=0))
        objects = np.concatenate(pairs)
        objects = objects[np.lexsort((objects[:, 1], objects[:, 0]))]
        return Matches(
            images=len(self.image_ids),
            image=np.searchsorted(self.image_ids, rows[:, 0]).astype(np.int32),
            starts=self._starts(rows[:, 6]),
            right=right,
            counted=counted,
            object_image=np.searchsorted(self.image_ids, objects[:, 1]).astype(np.int32),
            object_starts=self._starts(objects[:, 0]),
        )

    def _matched(self, rows: NDArray[np.float64]) -> Iterator[list[Mapping[str, Any]]]:
        """Yield, some images at a time, the evaluator's matches by image and category; `dtIds` count rows from 1."""
        results = self._results(rows)
        images = self.image_ids[np.unique(self._cells // max(len(self.category_ids), 1))].tolist()
        for first in range(0, len(images), CHUNK):
            with self._quiet():
                evaluation = self._evaluation(self._truth, results, "bbox")
                evaluation.params.imgIds = images[first : first + CHUNK]
                evaluation.params.areaRng, evaluation.params.areaRngLbl = [list(ALL_AREAS)], ["all"]
                evaluation.params.maxDets = [PER_CATEGORY]
                evaluation.evaluate()
            yield [cell for cell in evaluation.evalImgs if cell is not None]

    def _checked(self, detections: NDArray[np.float64]) -> NDArray[np.float64]:
        if detections.dtype != np.float64 or detections.ndim != 2 or detections.shape[1] != 7:
            raise InputError(
                "Detections are float64 N×7: image id, x, y, width, height, score, category id; "
                f"got {detections.dtype} {detections.shape}."
            )
        if not np.isfinite(detections).all() or (detections[:, 3:5] < 0).any():
            raise InputError("Detections have finite values, and no width or height below 0.")
        _known("Detections", "image", detections[:, 0], self.image_ids)
        _known("Detections", "category", detections[:, 6], self.category_ids)
        return detections

    def _cell(self, image: NDArray[Any], category: NDArray[Any]) -> NDArray[np.int64]:
        """Number the pairs of image and category ids, by image first."""
        at_image = np.searchsorted(self.image_ids, image)
        return np.asarray(at_image * len(self.category_ids) + np.searchsorted(self.category_ids, category), np.int64)

    def _starts(self, categories: NDArray[Any]) -> NDArray[np.int64]:
        """Return where each category begins in ascending ids, and behind them the end: int64[K + 1]."""
        return np.append(np.searchsorted(categories, self.category_ids), len(categories)).astype(np.int64)

    def _load(self, boxes: list[dict[str, Any]]) -> Any:
        """Return `boxes` as the evaluator's own data set."""
        dataset = {**self._lists, "annotations": boxes}
        if self._evaluator == "hotcoco":
            return self._coco(dataset)
        with self._quiet():
            loaded = self._coco()
            loaded.dataset = dataset
            loaded.createIndex()
        return loaded

    def _results(self, rows: NDArray[np.float64]) -> Any:
        """Return detections as the evaluator's own data set, numbered from 1 in the order of `rows`."""
        if self._evaluator == "hotcoco":
            return self._truth.loadRes(rows)
        # not its `loadRes`, which fails where there are none
        return self._load(
            [
                {"id": number, "image_id": int(image), "category_id": int(category), "bbox": [x, y, width, height],
                 "area": width * height, "iscrowd": 0, "score": score}
                for number, (image, x, y, width, height, score, category) in enumerate(rows.tolist(), 1)
            ]
        )  # fmt: skip

    def _quiet(self) -> contextlib.AbstractContextManager[object]:
        """Keep what pycocotools prints off the standard output."""
        return contextlib.nullcontext() if self._evaluator == "hotcoco" else contextlib.redirect_stdout(io.StringIO())


def _ids(kind: str, values: Iterable[object]) -> NDArray[np.int64]:
    """Return ids in ascending order; `InputError` if one is not a whole number that a float64 holds, or not unique."""
    ids = list(values)
    for value in ids:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1 << 53:
            raise InputError(f"Ids are whole numbers, 0 or more; the truth has the {kind} id {value!r}: number them.")
    found, times = np.unique(np.array(ids, np.int64), return_counts=True)
    if len(found) < len(ids):
        raise InputError(f"The {kind} id {found[times > 1][0]} occurs more than once in the truth.")
    return found


def _known(what: str, kind: str, values: ArrayLike, ids: NDArray[np.int64]) -> None:
    """Raise `InputError`, naming the first few, if some of `values` are not among `ids`."""
    strange = np.setdiff1d(np.asarray(values), ids)
    if strange.size:
        names = ", ".join(f"{value:.17g}" for value in strange[:5].tolist())
        more = f" and {strange.size - 5} more" if strange.size > 5 else ""
        raise InputError(f"{what} have {kind} ids that the truth does not list: {names}{more}.")


def centered_interval(value: float, samples: ArrayLike, *, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a score from its bootstrap samples, moved to have the samples' mean at `value`.

    AP takes the best precision at a recall or beyond, and repeated images make more peaks: resamples score higher on
    average than the set, the more the fewer objects a category has. Their spread is right, their place is not. For
    400 images of 80 classes (`benchmarks/detection.py --coverage 80`) the plain quantiles held the expected AP in 61%
    of the sets, these limits in 96%.

    Args:
        value: what the evaluator says of the set; anything derived from it, such as rPC, if the samples are as well.
        samples: numbers [S]; those that are NaN are left out.
        level: share of the samples between the limits, in (0, 1).

    Returns:
        low and high; NaN if all samples are.

    Raises:
        InputError: `samples` is empty or not of one axis, or `level` is not in (0, 1).
    """
    spread = np.asarray(samples, np.float64)
    if spread.ndim != 1 or not spread.size or not 0 < level < 1:
        raise InputError(
            f"An interval needs samples [S] and a level between 0 and 1; got {spread.shape} and {level:g}."
        )
    spread = spread[~np.isnan(spread)]
    if not spread.size:
        return float("nan"), float("nan")
    low, high = np.quantile(spread, (0.5 - level / 2, 0.5 + level / 2)) - spread.mean() + value
    return float(low), float(high)


def drops_by_label(result: Robustness, labels: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return by how much the score falls short of the clean one, on average over the corruptions of each label.

    Args:
        result: scores [...] and, by corruption, [..., C]; leading axes may be detectors or bootstrap samples.
        labels: of each of the C corruptions: its family, cause, effect, group, or its own name.

    Returns:
        label → corrupted − clean, float64 [...], negative where the score drops; in order of first occurrence.

    Raises:
        InputError: not one label for each corruption.
    """
    if len(labels) != result.by_corruption.shape[-1]:
        raise InputError(f"There are {result.by_corruption.shape[-1]} corruptions and {len(labels)} labels for them.")
    every = np.array(list(labels))
    return {
        label: result.by_corruption[..., every == label].mean(axis=-1) - result.clean for label in dict.fromkeys(labels)
    }


@dataclass(frozen=True, slots=True)
class RankChanges:
    """How an order of detectors survives corruption.

    Attributes:
        kendall: Kendall's τ-b of clean and corrupted scores, in [−1, 1]; NaN if all of either are equal.
        spearman: Spearman's ρ, ties having their mean rank; likewise.
        swaps: pairs (a, b) of which a is better on clean images and b on corrupted ones.
    """

    kendall: float
    spearman: float
    swaps: tuple[tuple[str, str], ...]


def rank_changes(names: Sequence[str], clean: ArrayLike, corrupted: ArrayLike) -> RankChanges:
    """Compare the order of detectors by clean score with that by corrupted score.

    Args:
        names: of the D detectors.
        clean: numbers [D], higher is better.
        corrupted: numbers [D], likewise; for instance mean performance under corruption.

    Raises:
        InputError: not one finite score of either kind for each name.
    """
    before, after = np.asarray(clean, np.float64), np.asarray(corrupted, np.float64)
    if before.shape != (len(names),) or after.shape != before.shape or not np.isfinite([before, after]).all():
        raise InputError(
            f"Ranks of {len(names)} detectors need as many finite scores; got {before.shape} and {after.shape}."
        )
    # sign of each pair's difference; its sum over a row is a centered rank, doubled
    x, y = (np.sign(scores[:, None] - scores) for scores in (before, after))
    return RankChanges(
        kendall=_cosine(x, y),
        spearman=_cosine(x.sum(axis=1), y.sum(axis=1)),
        swaps=tuple((names[i], names[j]) for i, j in np.argwhere((x > 0) & (y < 0)).tolist()),
    )


def _cosine(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    size = np.sqrt((x * x).sum() * (y * y).sum())
    return float((x * y).sum() / size) if size > 0 else float("nan")
