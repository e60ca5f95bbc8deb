"""What a detection run leaves behind: the schema of its rows, how they are read and scored, and the summary.

One row is one (image, condition, detector) with all its detections, so that every score can be made again, with
another evaluator or on part of the images, without a detector.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from .catalog import get_entry
from .errors import InputError
from .metrics.detection import SCORES, DetectionEvaluator, centered_interval, drops_by_label, rank_changes
from .metrics.robustness import aggregate, bootstrap_counts
from .results import PARTS, Interval, read_run
from .severity.strength import capped
from .types import Condition

__all__ = [
    "DETECTION_RUN_SCHEMA",
    "DETECTION_SCHEMA",
    "DETECTION_SUMMARY_SCHEMA",
    "PLACES",
    "RESAMPLED",
    "TRUTH_FILE",
    "DetectionRun",
    "EntryRows",
    "moved_truth",
    "score_interval",
    "summarize_detections",
]

DETECTION_RUN_SCHEMA = "crypsis.detection-run/3"
DETECTION_SUMMARY_SCHEMA = "crypsis.detection-summary/1"
TRUTH_FILE = "truth.json"
"""The objects of the images of a run, in COCO's form: a run can be scored without the data set."""

PLACES = ("family", "cause", "effect", "group", "cell")
"""What entries are taken together by: their family, and codes of the taxonomy (`cell` is `cause-effect`)."""

DETECTION_SCHEMA = pa.schema(
    [
        ("image", pa.string()),
        ("number", pa.int64()),
        ("model", pa.string()),
        ("entry", pa.string()),
        ("severity", pa.int8()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("image_digest", pa.string()),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("one_minus_ssim", pa.float64()),
        ("psnr", pa.float64()),
        ("boxes", pa.list_(pa.float64())),
        ("scores", pa.list_(pa.float64())),
        ("categories", pa.list_(pa.int64())),
        ("truth_boxes", pa.list_(pa.float64())),
    ]
)
"""Columns of a part; its row groups are the entries. `entry` is `clean` with severity 0, or a catalog name. `number` is
the image's in the truth. `status` is `ok` or `failed`; a failed row has `error` and no detections. `boxes` holds x,
y, width, height of each detection, `categories` ids of the data set. `truth_boxes` holds x1, y1, x2, y2 of the image's
objects in the order of the truth where they moved along with the content, NaN where nothing of one is left to see.
Strength is null where it was not measured."""

_SCORED = [name for name in DETECTION_SCHEMA.names if name not in ("image", "error", "image_digest", "height", "width")]

_ROWS_AT_ONCE = 75_000
"""Rows that are held in memory together; with 36 detections each, scoring takes some 500 MB."""

_FREE_SAMPLES = 100_000
"""Images × conditions × detectors up to which intervals are estimated unasked."""


@dataclass(frozen=True, eq=False)
class EntryRows:
    """The rows of one detector under one condition.

    Attributes:
        detections: float64 N×7: image number, x, y, width, height, score, category id.
        truth_boxes: image number → float64 M×4 corners, of the images whose objects moved.
        strengths: float64 K×2: 1 − SSIM and PSNR (dB, may be infinite) of the images they were measured on.
    """

    detections: NDArray[np.float64]
    truth_boxes: Mapping[int, NDArray[np.float64]]
    strengths: NDArray[np.float64]


@dataclass(frozen=True)
class DetectionRun:
    """A detection run on disk.

    Attributes:
        path: its folder.
        plan: what decides the results (`DetectionPlan.identity`).
        sessions: when, where and with which versions it was computed.
    """

    path: Path
    plan: Mapping[str, Any]
    sessions: tuple[Mapping[str, Any], ...]

    @classmethod
    def open(cls, path: Path) -> DetectionRun:
        """Open a run folder.

        Raises:
            InputError: there is no such run in it.
        """
        return cls(path, *read_run(path, DETECTION_RUN_SCHEMA))

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.path.resolve().name

    @property
    def models(self) -> tuple[str, ...]:
        """Labels of the detectors, in the order given."""
        return tuple(self.plan["models"])

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the degradations."""
        return tuple(self.plan["entries"])

    @property
    def severities(self) -> tuple[int, ...]:
        """At which each was run."""
        return tuple(self.plan["severities"])

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """`clean`, then each entry at each severity."""
        return (Condition("clean", 0), *(Condition(name, s) for name in self.entries for s in self.severities))

    def parts(self) -> list[Path]:
        """Return the part files, in order."""
        return sorted((self.path / PARTS).glob("*.parquet"))

    def progress(self) -> tuple[dict[str, int], dict[str, dict[str, str]]]:
        """Return the images whose part is there with their numbers, and model → image → reason of the failed ones.

        Raises:
            InputError: a part is damaged.
        """
        done: dict[str, int] = {}
        failed: dict[str, dict[str, str]] = {model: {} for model in self.models}
        columns = ["image", "number", "model", "status", "error"]
        for part in self.parts():
            with _reading(part):
                table = pq.ParquetFile(part).read(columns)
            done.update(zip(table["image"].to_pylist(), table["number"].to_pylist(), strict=True))
            for row in table.filter(pc.equal(table["status"], "failed")).to_pylist():
                failed[row["model"]].setdefault(row["image"], row["error"])
        return done, failed

    def digest(self) -> str:
        """Return a digest of the names and sizes of the parts: whether a summary is of these."""
        text = "\n".join(f"{part.name} {part.stat().st_size}" for part in self.parts())
        return hashlib.sha256(text.encode()).hexdigest()

    def truth(self) -> dict[str, Any]:
        """Return the objects to be found, in COCO's form.

        Raises:
            InputError: the file is not there or damaged.
        """
        try:
            truth: dict[str, Any] = json.loads((self.path / TRUTH_FILE).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"{self.path / TRUTH_FILE}: cannot be read ({error}); give the bench command again."
            ) from error
        return truth

    def summary(self) -> dict[str, Any]:
        """Read summary.json, or make the summary when it is absent, damaged, or of other parts than are there."""
        try:
            content = json.loads((self.path / "summary.json").read_text("utf-8"))
            if content["schema"] == DETECTION_SUMMARY_SCHEMA and content["parts"] == self.digest():
                return dict(content)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # it holds nothing that the parts do not
        return summarize_detections(self)

    def rows(self, entries: Sequence[str]) -> Iterator[tuple[tuple[str, str, int], EntryRows]]:
        """Read the rows of some entries (`clean` is one too), and of these alone.

        Yields:
            (model, entry, severity), and what the detector said of all images.

        Raises:
            InputError: a part is damaged.
        """
        table = pa.concat_tables([DETECTION_SCHEMA.empty_table().select(_SCORED), *self._tables(entries)])
        keys = ("model", "entry", "severity")
        codes = np.stack([table[key].combine_chunks().dictionary_encode().indices.to_numpy() for key in keys])
        order = np.lexsort(codes)  # stable: ties between equal scores go by the order of rows
        order = order[pc.equal(table["status"], "ok").to_numpy()[order]]
        table, codes = table.take(order), codes[:, order]
        starts = np.flatnonzero((np.diff(codes, axis=1, prepend=-1) != 0).any(axis=0)).tolist()
        for start, end in zip(starts, [*starts[1:], len(table)], strict=True):
            model, entry, severity = (table[key][start].as_py() for key in keys)
            yield (model, entry, severity), _entry_rows(table.slice(start, end - start))

    def batches(self, images: int) -> Iterator[list[str]]:
        """Yield `clean`, then entries whose rows of so many images can be held in memory together."""
        names = ["clean", *self.entries]
        step = max(1, _ROWS_AT_ONCE // (images * len(self.severities) * len(self.models)))
        for start in range(0, len(names), step):
            yield names[start : start + step]

    def _tables(self, entries: Sequence[str]) -> Iterator[pa.Table]:
        place = DETECTION_SCHEMA.get_field_index("entry")
        for part in self.parts():
            with _reading(part):
                file = pq.ParquetFile(part)
                groups = [
                    g
                    for g in range(file.num_row_groups)
                    if (statistics := file.metadata.row_group(g).column(place).statistics) is None
                    or statistics.min in entries
                ]
                table = file.read_row_groups(groups, _SCORED) if groups else None
            if table is not None:
                yield table


@contextmanager
def _reading(part: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{part}: is damaged ({reason}); delete it and give the bench command again.") from error


def _entry_rows(table: pa.Table) -> EntryRows:
    table = table.combine_chunks()
    scores = table["scores"].combine_chunks()
    counts = np.diff(scores.offsets.to_numpy())
    flat = scores.flatten().to_numpy()
    numbers = table["number"].to_numpy()
    detections = np.empty((len(flat), 7))
    detections[:, 0] = np.repeat(numbers, counts)
    detections[:, 1:5] = table["boxes"].combine_chunks().flatten().to_numpy().reshape(-1, 4)
    detections[:, 5] = flat
    detections[:, 6] = table["categories"].combine_chunks().flatten().to_numpy()
    moved = table["truth_boxes"].to_pylist() if table["truth_boxes"].null_count < len(table) else []
    measured = table.filter(pc.is_valid(table["psnr"]))
    return EntryRows(
        detections,
        {n: np.array(b, np.float64).reshape(-1, 4) for n, b in zip(numbers, moved, strict=False) if b is not None},
        np.stack([measured[name].to_numpy() for name in ("one_minus_ssim", "psnr")], axis=1),
    )


def summarize_detections(
    run: DetectionRun, *, evaluator: str = "hotcoco", samples: int | None = None
) -> dict[str, Any]:
    """Score a run: COCO's twelve numbers for each condition, and what they say of robustness.

    For each detector, an image that failed under any condition is left out of all its scores, so that clean and
    degraded are over the same images. `corrupted` is mPC and `retention` rPC of Michaelis et al. (2019): conditions
    weigh alike. Intervals (of AP, AP50 and AP75) are the 95% range over resamplings of the images, the same for all
    conditions and detectors, moved to the value (`crypsis.metrics.detection.centered_interval` says why).

    Args:
        run: the run.
        evaluator: one of `crypsis.metrics.detection.EVALUATORS`.
        samples: bootstrap samples; 0 for no intervals; None for 1,000 where that takes little time, else none.

    Returns:
        JSON values: `complete`, `images` (planned), `failed` (image → reason), `objects`, `categories` (id → name),
        `evaluator`, `samples`, `parts` (a digest), `strength` (condition → strength metric → mean, over `measured`
        images), `ranks` (how the order of detectors changes, None for one), and per detector `scored` (images),
        `conditions`, `entries` (mean over severities), `severities` (mean over entries), `places` (see `PLACES`: label
        → degraded minus clean), `corrupted`, `delta`, `retention`, each metric → value, low and high; and
        `per_category` (id → AP clean and degraded). A detector that failed on all images is None.

    Raises:
        InputError: nothing was detected, or a part is damaged.
        MissingDependencyError: the evaluator is not installed.
    """
    done, failed = run.progress()
    if not done or all(len(failed[model]) == len(done) for model in run.models):
        reason = next((r for by_image in failed.values() for r in by_image.values()), "no part is done yet")
        raise InputError(f"{run.path}: nothing was detected ({reason}).")
    if samples is None:
        samples = 1000 if len(done) * len(run.conditions) * len(run.models) <= _FREE_SAMPLES else 0
    truth = run.truth()
    scorers = {
        model: _Scorer(run, truth, {n for i, n in done.items() if i not in failed[model]}, evaluator, samples)
        for model in run.models
        if len(failed[model]) < len(done)
    }
    strengths: dict[Condition, NDArray[np.float64]] = {}
    for entries in run.batches(len(done)):
        for (model, entry, severity), rows in run.rows(entries):
            condition = Condition(entry, severity)
            if len(rows.strengths):
                strengths[condition] = rows.strengths
            if model in scorers:
                scorers[model].add(condition, rows)
    planned = int(run.plan["dataset"]["images"])
    reasons = {image: reason for by_image in failed.values() for image, reason in by_image.items()}
    models = {model: scorers[model].summary() if model in scorers else None for model in run.models}
    return {
        "schema": DETECTION_SUMMARY_SCHEMA,
        "complete": len(done) == planned and not reasons,
        "images": planned,
        "failed": reasons,
        "objects": sum(not found["iscrowd"] for found in truth["annotations"]),
        "categories": {str(category["id"]): category["name"] for category in truth["categories"]},
        "evaluator": {"name": evaluator, "version": version(evaluator)},
        "samples": samples,
        "parts": run.digest(),
        "measured": max((len(values) for values in strengths.values()), default=0),
        "strength": {
            str(condition): {"1-ssim": float(v[:, 0].mean()), "psnr": float(capped(v[:, 1]).mean())}
            for condition, v in strengths.items()
        },
        "models": models,
        "ranks": _ranks(models),
    }


def _ranks(models: Mapping[str, Any]) -> dict[str, Any] | None:
    """Say how the order of detectors changes between clean and degraded images."""
    found = {
        name: (scores["conditions"]["clean"]["ap"]["value"], scores["corrupted"]["ap"]["value"])
        for name, scores in models.items()
        if scores
    }
    known = {name: values for name, values in found.items() if None not in values}
    if len(known) < 2:
        return None
    clean, corrupted = zip(*known.values(), strict=True)
    ranks = rank_changes(list(known), clean, corrupted)
    return {
        "kendall": None if np.isnan(ranks.kendall) else ranks.kendall,
        "spearman": None if np.isnan(ranks.spearman) else ranks.spearman,
        "swaps": [list(pair) for pair in ranks.swaps],
    }


class _Scorer:
    """The scores of one detector."""

    def __init__(
        self, run: DetectionRun, truth: Mapping[str, Any], images: set[int], evaluator: str, samples: int
    ) -> None:
        self.run = run
        self.name = evaluator
        self.truth = {
            "categories": truth["categories"],
            "images": [image for image in truth["images"] if image["id"] in images],
            "annotations": [found for found in truth["annotations"] if found["image_id"] in images],
        }
        self.images = np.array(sorted(images))
        self.evaluator = DetectionEvaluator(self.truth, evaluator=evaluator)
        self.place = {condition: k for k, condition in enumerate(run.conditions)}
        # row 0 is the data itself, every image once; the others are the bootstrap samples
        self.stacks = {name: np.full((1, len(self.place)), np.nan) for name in SCORES}
        self.counts: NDArray[np.integer[Any]] | None = None
        if samples:
            every = sorted(image["id"] for image in truth["images"])
            drawn = bootstrap_counts(len(every), samples=samples, seed=int(run.plan["seed"]))
            self.counts = drawn[:, np.isin(every, self.images)]
            for name in RESAMPLED:
                self.stacks[name] = np.full((1 + samples, len(self.place)), np.nan)
        self.per_category = np.full((len(self.place), len(truth["categories"])), np.nan)

    def add(self, condition: Condition, rows: EntryRows) -> None:
        """Score one condition."""
        k = self.place[condition]
        detections = rows.detections[np.isin(rows.detections[:, 0], self.images)]
        evaluator = self.evaluator
        if rows.truth_boxes:
            evaluator = DetectionEvaluator(moved_truth(self.truth, rows.truth_boxes), evaluator=self.name)
        scores = evaluator.evaluate(detections)
        for name in SCORES:
            self.stacks[name][0, k] = getattr(scores, name)
        self.per_category[k] = [scores.per_category[number] for number in sorted(scores.per_category)]
        if self.counts is not None:
            drawn = evaluator.match(detections).average_precision(self.counts)
            for name, thresholds in RESAMPLED.items():
                self.stacks[name][1:, k] = drawn[:, thresholds].mean(axis=1)

    def summary(self) -> dict[str, Any]:
        """Return what `summarize_detections` says of a detector."""
        entries, severities = self.run.entries, self.run.severities
        tables: dict[str, Any] = {"scored": len(self.images), "conditions": {str(c): {} for c in self.place}}
        tables |= {"entries": {e: {} for e in entries}, "severities": {str(s): {} for s in severities}}
        tables |= {"places": {place: {} for place in PLACES}, "corrupted": {}, "delta": {}, "retention": {}}
        for metric, stack in self.stacks.items():
            for condition, k in self.place.items():
                tables["conditions"][str(condition)][metric] = score_interval(stack[:, k])
            result = aggregate(stack[:, 0], stack[:, 1:].reshape(len(stack), len(entries), len(severities)))
            for k, entry in enumerate(entries):
                tables["entries"][entry][metric] = score_interval(result.by_corruption[:, k])
            assert result.by_severity is not None
            for k, severity in enumerate(severities):
                tables["severities"][str(severity)][metric] = score_interval(result.by_severity[:, k])
            for place in PLACES:
                for label, drop in drops_by_label(result, [_label(e, place) for e in entries]).items():
                    tables["places"][place].setdefault(label, {})[metric] = score_interval(drop)
            for name in ("corrupted", "delta", "retention"):
                tables[name][metric] = score_interval(getattr(result, name))
        numbers = [str(number) for number in self.evaluator.category_ids.tolist()]
        each = zip(numbers, self.per_category[0], self.per_category[1:].mean(axis=0), strict=True)
        return {
            **tables,
            "per_category": {
                number: {"clean": _known(clean), "corrupted": _known(corrupted)} for number, clean, corrupted in each
            },
        }


RESAMPLED: Mapping[str, slice] = {"ap": slice(None), "ap50": slice(0, 1), "ap75": slice(5, 6)}
"""Scores with intervals, and the IoU thresholds they are the mean over."""


def score_interval(samples: NDArray[np.float64]) -> Interval:
    """Return the value (row 0) and its interval by the bootstrap samples (the other rows)."""
    value = _known(samples[0])
    spread = samples[1:][np.isfinite(samples[1:])]
    if value is None or spread.size < 2:
        return {"value": value, "low": None, "high": None}
    low, high = centered_interval(value, spread)
    return {"value": value, "low": low, "high": high}


def _label(entry: str, place: str) -> str:
    row = get_entry(entry)
    if place == "family":
        return row.family
    if place == "cell":
        return f"{row.cause.code}-{row.effect.code}"
    return str(getattr(row, place).code)


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def moved_truth(truth: Mapping[str, Any], boxes: Mapping[int, NDArray[np.float64]]) -> dict[str, Any]:
    """Return a truth whose objects moved along with the content; those that are gone are not in it."""
    annotations = []
    taken: dict[int, int] = {}
    for found in truth["annotations"]:
        image = found["image_id"]
        order = taken[image] = taken.get(image, -1) + 1
        if image not in boxes:
            annotations.append(found)
            continue
        x1, y1, x2, y2 = boxes[image][order].tolist()
        if not np.isfinite(x1):
            continue
        _, _, width, height = found["bbox"]
        factor = (x2 - x1) * (y2 - y1) / (width * height)
        annotations.append({**found, "bbox": [x1, y1, x2 - x1, y2 - y1], "area": found["area"] * factor})
    return {**truth, "annotations": annotations}
