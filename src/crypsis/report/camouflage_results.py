"""Results of runs by how well hidden the objects are: camouflage × corruption as one surface.

Images meet a file of scores by their names and are divided into groups from the easiest to the hardest. What a table or
chart of a benchmark says of all images is then said of each group: nothing is detected or segmented again.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..camouflage.difficulty import DifficultyGroup, difficulty_groups, resampled_spearman
from ..camouflage.proportions import spearman
from ..camouflage.vote_files import read_scores
from ..detection_results import RESAMPLED, DetectionRun, EntryRows, moved_truth, score_interval
from ..errors import DatasetError, InputError, UnknownNameError
from ..metrics.detection import SCORES as DETECTION_SCORES
from ..metrics.detection import DetectionEvaluator, Matches
from ..metrics.robustness import aggregate, bootstrap_counts
from ..results import SCORES, Interval, RunFolder, image_scores, interval
from ..types import Condition
from .comparison import Comparison, ModelResult, higher_is_better
from .detection_comparison import DetectionComparison

__all__ = [
    "CamouflageScores",
    "Level",
    "ModelByCamouflage",
    "ResultsByCamouflage",
    "detections_by_camouflage",
    "image_losses",
    "masks_by_camouflage",
    "read_camouflage",
]

_STRENGTHS = 5
_NAMED = 5
"""Images that a note names."""


@dataclass(frozen=True, slots=True)
class CamouflageScores:
    """A score of images, and how it is to be used.

    Attributes:
        file: where it comes from.
        name: which column.
        values: image, its name in Unicode's composed form → number, higher being better hidden.
        others: further columns of scores.
        groups: how many groups of images to make.
        seen_from: the score from which on a model counts as seeing; None for half of its clean score on the easiest
            group.
    """

    file: Path
    name: str
    values: Mapping[str, float]
    others: tuple[str, ...] = ()
    groups: int = 4
    seen_from: float | None = None

    def of(self, image: str) -> float | None:
        """Return the score of an image; a name typed on macOS and on Linux is the same."""
        return self.values.get(unicodedata.normalize("NFC", image))


def read_camouflage(
    path: Path, name: str | None = None, *, groups: int = 4, seen_from: float | None = None
) -> CamouflageScores:
    """Read scores of images, as `crypsis score` writes them.

    Args:
        path: a CSV file with a column `image`, or the folder of a run of `crypsis score`.
        name: which column; by default the first one of scores, which is what such a run ranks by.
        groups: see `CamouflageScores`.
        seen_from: likewise.

    Raises:
        DatasetError: the file cannot be used, or no image has the score.
        UnknownNameError: no column of that name.
        InputError: an option out of its range.
    """
    if seen_from is not None and not 0 < seen_from < 1:
        raise InputError(f"A model sees from a score between 0 and 1 on; got {seen_from:g}.")
    table = read_scores(path, None if name is None else [name])
    file = path / "scores.csv" if path.is_dir() else path
    first = next(iter(table.scores))
    if not table.scores[first]:
        raise DatasetError(f"{file}: no image has a score in the column {first}.")
    values = {unicodedata.normalize("NFC", image): value for image, value in table.scores[first].items()}
    return CamouflageScores(file, first, values, tuple(list(table.scores)[1:]), groups, seen_from)


@dataclass(frozen=True, slots=True)
class Level:
    """The first level of a corruption at which a model no longer sees.

    Attributes:
        value: 0 for clean images, 1 for the first level, and so on; one more than there are for never.
        low: lower end of its 95% interval, None where it is not estimated.
        high: upper end.
    """

    value: int
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class ModelByCamouflage:
    """One model on each group of images.

    Attributes:
        result: the model among those compared.
        images: how many of a group it has scores of.
        clean: its score on them, by group.
        corrupted: mean over all corruptions and severities.
        delta: corrupted − clean.
        retention: corrupted / clean.
        by_severity: group × severity, mean over corruptions.
        by_strength: group × strength, mean over the conditions of a bin; no columns where strength was not measured.
        threshold: the score from which on it counts as seeing; None where it sees nothing.
        stops: by group, the first severity at which its mean is below; None where there is no threshold or score.
        stops_strength: the same for the bins of strength; empty where there are none.
        correlations: `clean` and `corrupted` → Spearman's ρ of camouflage and the score of an image, and its p; empty
            for detectors, whose score is of sets of images.
    """

    result: ModelResult
    images: tuple[int, ...]
    clean: tuple[Interval, ...]
    corrupted: tuple[Interval, ...]
    delta: tuple[Interval, ...]
    retention: tuple[Interval, ...]
    by_severity: tuple[tuple[Interval, ...], ...]
    by_strength: tuple[tuple[Interval, ...], ...]
    threshold: float | None
    stops: tuple[Level | None, ...]
    stops_strength: tuple[Level | None, ...]
    correlations: Mapping[str, tuple[Interval, float | None]]


@dataclass(frozen=True, slots=True)
class ResultsByCamouflage:
    """All models on each group of images.

    Attributes:
        scores: what the images are divided by.
        groups: from the easiest to the hardest.
        metric: what the numbers are.
        severities: columns of `by_severity`.
        strengths: columns of `by_strength`: least and greatest mean 1 − SSIM of the conditions in it.
        models: in the order of the comparison.
        notes: sentences on which images are in it and how.
    """

    scores: CamouflageScores
    groups: tuple[DifficultyGroup, ...]
    metric: str
    severities: tuple[int, ...]
    strengths: tuple[tuple[float, float], ...]
    models: tuple[ModelByCamouflage, ...]
    notes: tuple[str, ...]


def masks_by_camouflage(comparison: Comparison, scores: CamouflageScores, metric: str = "dice") -> ResultsByCamouflage:
    """Return the scores of segmenters by camouflage.

    For each model, an image that failed under any condition is left out, as in all other tables. Intervals are 95%
    ranges over the same resamplings of the images as there, those of a group being what was drawn of it.

    Args:
        comparison: runs set side by side.
        scores: of their images.
        metric: a score of an image (`crypsis.results.SCORES`) of which more is better.

    Raises:
        UnknownNameError: another metric.
        InputError: no image has a score, or too few have; a part is damaged.
    """
    if metric not in SCORES or not higher_is_better(metric):
        known = [name for name in SCORES if higher_is_better(name)]
        raise UnknownNameError.among("score of an image", metric, known, f"By camouflage: {', '.join(known)}.")
    found = [image_scores(run, metric) for run in comparison.runs]
    groups, notes = _divide(scores, (image for images, _ in found for image in images))
    columns = _Columns.of(comparison.runs[0].conditions, comparison.results)
    models = []
    for result in comparison.results:
        run = comparison.runs[result.run]
        images, everything = found[result.run]
        values = everything[run.models.index(result.model)]
        counts = _counts(len(images), comparison.summaries[result.run]["samples"], run.plan["seed"])
        places = [_places(images, group, ~np.isnan(values[:, 0])) for group in groups]
        stack = np.stack([_weighted_means(values[place], counts[:, place]) for place in places])
        made = columns.reduce(result, [len(place) for place in places], stack, scores.seen_from)
        models.append(replace(made, correlations=_correlations(scores, images, values, counts, np.concatenate(places))))
    return columns.results(scores, groups, metric, models, notes)


def detections_by_camouflage(
    comparison: DetectionComparison, scores: CamouflageScores, metric: str = "ap"
) -> ResultsByCamouflage:
    """Return the scores of detectors by camouflage: those of a group's images and boxes alone, as of a run of them.

    Every number is the evaluator's own. Intervals, of AP, AP50 and AP75, are over as many resamplings as those of the
    run, centered on the value as there; a group's are what was drawn of it.

    Args:
        comparison: runs set side by side.
        scores: of their images.
        metric: of `crypsis.metrics.detection.SCORES`.

    Raises:
        UnknownNameError: another metric.
        InputError: no image has a score, or too few have; a part is damaged.
    """
    if metric not in DETECTION_SCORES:
        known = ", ".join(DETECTION_SCORES)
        raise UnknownNameError.among("metric of detections", metric, DETECTION_SCORES, f"Known: {known}.")
    progress = [run.progress() for run in comparison.runs]
    groups, notes = _divide(scores, (image for done, _ in progress for image in done))
    if len(comparison.categories) > 1:
        notes += ("As COCO does, a group's mean is over the categories of which its images have an object.",)
    columns = _Columns.of(comparison.runs[0].conditions, comparison.results)
    stacks = [
        _detection_stacks(run, summary, done, failed, groups, metric)
        for run, summary, (done, failed) in zip(comparison.runs, comparison.summaries, progress, strict=True)
    ]
    models = [
        columns.reduce(result, *stacks[result.run][result.model], scores.seen_from, centered=True)
        for result in comparison.results
    ]
    return columns.results(scores, groups, metric, models, notes)


def image_losses(run: RunFolder, model: str, on: str) -> dict[str, float]:
    """Return what a model gets wrong of each image of a run, 1 − Dice; images that failed are left out.

    Args:
        run: the run.
        model: its label.
        on: `clean`, or `corrupted` for the mean over all corruptions and severities.

    Raises:
        UnknownNameError: there is no such model.
        InputError: `on` is something else, nothing was scored, or a part is damaged.
    """
    if model not in run.models:
        raise UnknownNameError.among(f"model in {run.path}", model, run.models)
    if on not in ("clean", "corrupted"):
        raise InputError(f"Losses are on clean or on corrupted images; got {on!r}.")
    images, scores = image_scores(run, "dice")
    own = scores[run.models.index(model)]
    means = own[:, 0] if on == "clean" else own[:, 1:].mean(axis=1)
    losses = {image: 1 - float(mean) for image, mean in zip(images, means, strict=True) if not np.isnan(mean)}
    if not losses:
        raise InputError(f"{run.path}: {model} has no scores; give the bench command again.")
    return losses


# Images and groups


def _divide(scores: CamouflageScores, images: Iterable[str]) -> tuple[tuple[DifficultyGroup, ...], tuple[str, ...]]:
    """Return the groups of a run's images, and what must be said of them."""
    names = list(dict.fromkeys(images))
    known = {name: value for name in names if (value := scores.of(name)) is not None}
    if not known:
        raise InputError(_strangers(scores, names))
    try:
        groups = difficulty_groups(known, scores.groups)
    except InputError as error:
        raise InputError(f"{scores.file}: {error}") from None
    notes = [
        f"Camouflage: {scores.name} in {scores.file.name}, higher being better hidden. Q1 holds the easiest images; "
        "equal scores are never parted, so groups can differ in size."
    ]
    if scores.others:
        notes.append(f"Other scores in that file: {', '.join(scores.others)}.")
    missing = [name for name in names if name not in known]
    if missing:
        notes.append(f"{_some(missing, len(names))} of the run have no score and are left out: {_list(missing)}.")
    here = {unicodedata.normalize("NFC", name) for name in known}
    foreign = [name for name in scores.values if name not in here]
    if foreign:
        notes.append(f"{_some(foreign, len(scores.values))} with a score are not in the run: {_list(foreign)}.")
    if merged := [group for group in groups if group.first < group.last]:
        notes.append(
            f"Too few images lay in some of the {scores.groups} quantiles, as many have equal scores; taken together: "
            f"{', '.join(group.name for group in merged)}."
        )
    return groups, tuple(notes)


def _some(names: Sequence[str], of: int) -> str:
    return f"{len(names):,} of {of:,} images"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


def _strangers(scores: CamouflageScores, names: Sequence[str]) -> str:
    """Say why no name of a score is that of an image."""

    def bare(name: str) -> str:
        return PurePosixPath(name.replace("\\", "/")).stem

    stems = {bare(name): name for name in names}
    alike = [(name, stems[bare(name)]) for name in scores.values if bare(name) in stems]
    if alike:
        return (
            f"{scores.file}: no name is that of an image of the run, but {len(alike):,} differ in folder or ending "
            f"only: {alike[0][0]!r} there is {alike[0][1]!r} in the run; write the column image as the run does."
        )
    return (
        f"{scores.file}: its scores are of other images: {next(iter(scores.values))!r} there, {names[0]!r} in the run; "
        "score the images of the run (crypsis score, with the same --data), or name them alike."
    )


def _places(names: Sequence[str], group: DifficultyGroup, usable: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return where the images of a group are, of those that can be used."""
    members = set(group.images)
    return np.array([i for i, name in enumerate(names) if usable[i] and name in members], np.intp)


# Numbers


def _counts(images: int, samples: int, seed: int) -> NDArray[np.integer[Any]]:
    """Return how often each image counts: row 0 once, as it is; then the samples of the run's own intervals."""
    once = np.ones((1, images), np.uint16)
    return once if not samples else np.concatenate([once, bootstrap_counts(images, samples=samples, seed=int(seed))])


def _weighted_means(values: NDArray[np.float64], counts: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Return means [samples, conditions] over images [images, conditions]; NaN where none was drawn."""
    weights = counts.astype(np.float64)
    total = weights.sum(axis=1, keepdims=True)
    sums = weights @ values
    return np.asarray(np.divide(sums, total, out=np.full_like(sums, np.nan), where=total > 0), np.float64)


def _correlations(
    scores: CamouflageScores,
    images: Sequence[str],
    values: NDArray[np.float64],
    counts: NDArray[np.integer[Any]],
    places: NDArray[np.intp],
) -> dict[str, tuple[Interval, float | None]]:
    hidden = [value for i in places if (value := scores.of(images[i])) is not None]
    found = {}
    for kind, column in (("clean", values[:, 0]), ("corrupted", values[:, 1:].mean(axis=1))):
        seen = column[places].tolist()
        relation = spearman(hidden, seen)
        samples = np.concatenate([[relation.rho], resampled_spearman(hidden, seen, counts[1:, places])])
        found[kind] = interval(samples), None if np.isnan(relation.p) else relation.p
    return found


def _detection_stacks(
    run: DetectionRun,
    summary: Mapping[str, Any],
    done: Mapping[str, int],
    failed: Mapping[str, Mapping[str, str]],
    groups: Sequence[DifficultyGroup],
    metric: str,
) -> dict[str, tuple[list[int], NDArray[np.float64]]]:
    """Return for each detector with scores the images of each group, and a metric [groups, samples, conditions]."""
    truth, name = run.truth(), summary["evaluator"]["name"]
    every = np.array(sorted(image["id"] for image in truth["images"]))
    samples = summary["samples"] if metric in RESAMPLED else 0
    counts = _counts(len(every), samples, run.plan["seed"])
    place = {condition: k for k, condition in enumerate(run.conditions)}
    members = [{done[image] for image in group.images if image in done} for group in groups]
    found = {}
    for model in run.models:
        if summary["models"][model]:
            usable = {number for image, number in done.items() if image not in failed[model]}
            drawn = counts[1:, np.isin(every, list(usable))]
            found[model] = _Detector(truth, usable, [usable & numbers for numbers in members], drawn, name, metric)
    stacks = {model: np.full((len(groups), len(counts), len(place)), np.nan) for model in found}
    for entries in run.batches(len(done)):
        for (model, entry, severity), rows in run.rows(entries):
            if model in found:
                stacks[model][:, :, place[Condition(entry, severity)]] = found[model].score(rows)
    return {model: ([len(numbers) for numbers in one.members], stacks[model]) for model, one in found.items()}


class _Detector:
    """Scores one detector on groups of images."""

    def __init__(
        self,
        truth: Mapping[str, Any],
        usable: set[int],
        members: Sequence[set[int]],
        drawn: NDArray[np.integer[Any]],
        evaluator: str,
        metric: str,
    ) -> None:
        """Prepare the truth.

        Args:
            truth: of all images, in COCO's form.
            usable: numbers of those that the detector did not fail on.
            members: of each group, likewise.
            drawn: how often each usable image, by number, was drawn in each sample, [samples, images]; maybe none.
            evaluator: the name of one.
            metric: of `crypsis.metrics.detection.SCORES`.
        """
        self.members, self.drawn, self.name, self.metric = members, drawn, evaluator, metric
        self.whole = self._prepared(_truth_of(truth, usable)) if len(drawn) else None
        self.parts = [self._prepared(_truth_of(truth, numbers)) if numbers else None for numbers in members]

    def score(self, rows: EntryRows) -> NDArray[np.float64]:
        """Return the metric under one condition, [groups, 1 + samples]: the evaluator's own, then those resampled."""
        result = np.full((len(self.members), 1 + len(self.drawn)), np.nan)
        for g, part in enumerate(self.parts):
            if part is not None:
                evaluator, boxes = self._ready(part, rows)
                result[g, 0] = getattr(evaluator.evaluate(boxes), self.metric)
        if self.whole is not None:
            evaluator, boxes = self._ready(self.whole, rows)
            matches = evaluator.match(boxes)
            for g, numbers in enumerate(self.members):
                within = _within(matches, np.isin(evaluator.image_ids, list(numbers)))
                result[g, 1:] = within.average_precision(self.drawn)[:, RESAMPLED[self.metric]].mean(axis=1)
        return result

    def _prepared(self, truth: dict[str, Any]) -> tuple[dict[str, Any], DetectionEvaluator]:
        return truth, DetectionEvaluator(truth, evaluator=self.name)

    def _ready(
        self, prepared: tuple[dict[str, Any], DetectionEvaluator], rows: EntryRows
    ) -> tuple[DetectionEvaluator, NDArray[np.float64]]:
        """Return the evaluator of a condition and the boxes of its images."""
        truth, evaluator = prepared
        if rows.truth_boxes:
            evaluator = DetectionEvaluator(moved_truth(truth, rows.truth_boxes), evaluator=self.name)
        return evaluator, rows.detections[np.isin(rows.detections[:, 0], evaluator.image_ids)]


def _truth_of(truth: Mapping[str, Any], images: set[int]) -> dict[str, Any]:
    """Return the truth of some of the images."""
    return {
        "categories": truth["categories"],
        "images": [image for image in truth["images"] if image["id"] in images],
        "annotations": [found for found in truth["annotations"] if found["image_id"] in images],
    }


def _within(matches: Matches, keep: NDArray[np.bool_]) -> Matches:
    """Return the matches of some of the images, bool [images]; AP does not see the others, whatever their counts."""
    detections, objects = keep[matches.image], keep[matches.object_image]

    def moved(starts: NDArray[np.int64], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)[starts]

    return replace(
        matches,
        image=matches.image[detections],
        starts=moved(matches.starts, detections),
        right=matches.right[:, detections],
        counted=matches.counted[:, detections],
        object_image=matches.object_image[objects],
        object_starts=moved(matches.object_starts, objects),
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """How conditions become the columns of a surface.

    Attributes:
        entries: number of corruptions.
        severities: of each.
        strengths: ends of the bins of strength.
        bins: the conditions in each, counted from the first corrupted one.
    """

    entries: int
    severities: tuple[int, ...]
    strengths: tuple[tuple[float, float], ...]
    bins: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(cls, conditions: Sequence[Condition], results: Sequence[ModelResult]) -> _Columns:
        severities = tuple(dict.fromkeys(condition.severity for condition in conditions[1:]))
        names = [str(condition) for condition in conditions[1:]]
        measured = np.array(next((s for r in results if (s := r.strengths(names))), []), np.float64)
        order = np.argsort(measured, kind="stable")
        bins = tuple(np.array_split(order, min(_STRENGTHS, len(order)))) if len(order) else ()
        ends = tuple((float(measured[part[0]]), float(measured[part[-1]])) for part in bins)
        return cls(len(names) // len(severities), severities, ends, bins)

    def reduce(
        self,
        result: ModelResult,
        images: Sequence[int],
        stack: NDArray[np.float64],
        seen_from: float | None,
        *,
        centered: bool = False,
    ) -> ModelByCamouflage:
        """Return what follows from scores [groups, samples, conditions], the first sample being the data itself.

        Where `centered`, bootstrap samples are moved to the value, as those of AP must be.
        """
        clean, corrupted = stack[:, :, 0], stack[:, :, 1:]
        whole = aggregate(clean, corrupted.reshape(*clean.shape, self.entries, len(self.severities)))
        assert whole.by_severity is not None
        strong = np.stack([corrupted[:, :, part].mean(axis=2) for part in self.bins], axis=2) if self.bins else None

        def each(values: NDArray[np.float64]) -> tuple[Interval, ...]:
            return tuple((score_interval if centered else interval)(row) for row in values)

        def surface(values: NDArray[np.float64]) -> tuple[tuple[Interval, ...], ...]:
            return tuple(each(group.T) for group in values)

        move = _centered if centered else np.asarray
        line = np.full(clean.shape[1], seen_from) if seen_from else move(clean[0]) / 2
        sees = bool(np.isfinite(line[0]) and line[0] > 0)

        def levels(values: NDArray[np.float64]) -> tuple[Level | None, ...]:
            path = np.concatenate([clean[:, :, None], values], axis=2)
            return tuple(_first_below(move(group), line) if sees else None for group in path)

        return ModelByCamouflage(
            result=result,
            images=tuple(images),
            clean=each(whole.clean),
            corrupted=each(whole.corrupted),
            delta=each(whole.delta),
            retention=each(whole.retention),
            by_severity=surface(whole.by_severity),
            by_strength=tuple(() for _ in clean) if strong is None else surface(strong),
            threshold=float(line[0]) if sees else None,
            stops=levels(whole.by_severity),
            stops_strength=() if strong is None else levels(strong),
            correlations={},
        )

    def results(
        self,
        scores: CamouflageScores,
        groups: tuple[DifficultyGroup, ...],
        metric: str,
        models: Sequence[ModelByCamouflage],
        notes: tuple[str, ...],
    ) -> ResultsByCamouflage:
        return ResultsByCamouflage(scores, groups, metric, self.severities, self.strengths, tuple(models), notes)


def _centered(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move bootstrap samples [samples, ...] so that their mean is the value, row 0."""
    known = np.isfinite(samples[1:])
    mean = np.where(known, samples[1:], 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.concatenate([samples[:1], samples[1:] + (samples[0] - mean)])


def _first_below(path: NDArray[np.float64], line: NDArray[np.float64]) -> Level | None:
    """Return the first column of [samples, levels] that is below a line [samples]; None where there are no scores."""
    if not np.isfinite(path[0]).all():
        return None
    known = np.isfinite(path).all(axis=1) & np.isfinite(line)
    below = path < line[:, None]
    first = np.where(below.any(axis=1), below.argmax(axis=1), path.shape[1])
    spread = np.sort(first[1:][known[1:]])
    if len(spread) < 2:
        return Level(int(first[0]), None, None)
    low, high = (int(spread[min(int(q * len(spread)), len(spread) - 1)]) for q in (0.025, 0.975))
    return Level(int(first[0]), low, high)
