"""What a run leaves behind: the schema of its rows, how they are read, and the summary made from them.

One row is one (image, condition, model). A row holds scores and the small counts they pool from, so that every
dataset-level number (pooled calibration error, maximum of an averaged curve, any threshold) is a group-by.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from .errors import InputError
from .metrics.calibration import ece_from_bins
from .metrics.curves import e_curve, f_curve
from .metrics.robustness import aggregate, bootstrap_counts
from .metrics.segmentation import METRICS
from .severity.strength import capped
from .types import Condition

__all__ = [
    "PARTS",
    "RECORD_SCHEMA",
    "RUN_SCHEMA",
    "SCORES",
    "STRENGTHS",
    "SUMMARY_SCHEMA",
    "RunFolder",
    "RunProgress",
    "image_scores",
    "interval",
    "read_run",
    "run_schema",
    "summarize",
]

PARTS = "parts"
RUN_SCHEMA = "crypsis.run/3"
SUMMARY_SCHEMA = "crypsis.summary/2"

SCORES = (
    "dice", "iou", "mae", "boundary_f1", "ece", "s_measure", "weighted_f",
    "e_adaptive", "e_mean", "f_adaptive", "f_mean",
)  # fmt: skip
"""Per-image scores, float64, by column name; `crypsis.metrics.segmentation.METRICS` defines each."""

STRENGTHS = {"one_minus_ssim": "1-ssim", "psnr": "psnr"}
"""Columns of measured strength, float64, and the `crypsis.severity.strength.METRICS` they hold."""

RECORD_SCHEMA = pa.schema(
    [
        ("image", pa.string()),
        ("model", pa.string()),
        ("entry", pa.string()),
        ("severity", pa.int8()),
        ("seed", pa.int64()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("species", pa.string()),
        ("super_class", pa.string()),
        ("image_digest", pa.string()),
        ("mask_digest", pa.string()),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("foreground", pa.int64()),
        *((name, pa.float64()) for name in (*STRENGTHS, *SCORES)),
        ("ece_count", pa.list_(pa.int32())),
        ("ece_confidence", pa.list_(pa.float64())),
        ("ece_correct", pa.list_(pa.int32())),
        ("histogram_object", pa.list_(pa.int32())),
        ("histogram_background", pa.list_(pa.int32())),
    ]
)
"""Columns of a part. `entry` is `clean` with severity 0, or a catalog name with severity 1..5. `status` is `ok` or
`failed`; a failed row has `error` and null scores. The two digests are of the files' bytes. The two columns of
`STRENGTHS` measure the condition's image against the clean one, whose own rows have 0 and infinity; a PSNR is infinite
wherever nothing changed. They are null where no image was degraded: in failed rows, and in runs of saved predictions
only. The three `ece_*` lists have 15 bins; the two histograms have 256 bins of floor(255·p) over object and background
pixels."""

_MEANS = (*SCORES, *STRENGTHS)
_BINS = 15
_SAMPLES = 1000
_BATCH_PARTS = 16

Interval: TypeAlias = dict[str, float | None]
"""`value`, and `low` and `high` of its 95% bootstrap interval over images (None where it is not estimated)."""


def run_schema(path: Path) -> str:
    """Return the schema of a run folder, which says what kind of run is in it.

    Raises:
        InputError: there is no run in it.
    """
    return _read_run_file(path)[0]


def _read_run_file(path: Path) -> tuple[str, Any]:
    file = path / "run.json"
    try:
        content = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no run is here (run.json is missing); give the folder named by --out.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read ({error}).") from error
    return str(content.get("schema") if isinstance(content, dict) else None), content


def read_run(path: Path, schema: str) -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
    """Return the plan and the sessions of a run folder.

    Args:
        path: the folder.
        schema: that its run.json must have.

    Raises:
        InputError: there is no run in it, or one of another kind.
    """
    found, content = _read_run_file(path)
    file = path / "run.json"
    if found != schema:
        raise InputError(f"{file}: has schema {found!r}; this version reads {schema!r}.")
    try:
        return content["plan"], tuple(content["sessions"])
    except (KeyError, TypeError) as error:
        raise InputError(f"{file}: is damaged ({error} is missing); the run cannot be used.") from error


@dataclass(frozen=True)
class RunFolder:
    """A run on disk.

    Attributes:
        path: its folder.
        plan: what decides the results (`MaskPlan.identity`).
        sessions: when, where and with which versions it was computed.
    """

    path: Path
    plan: Mapping[str, Any]
    sessions: tuple[Mapping[str, Any], ...]

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a run folder.

        Raises:
            InputError: there is no run in it.
        """
        return cls(path, *read_run(path, RUN_SCHEMA))

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.path.resolve().name

    @property
    def models(self) -> tuple[str, ...]:
        """Model labels, in the order given."""
        return tuple(self.plan["models"])

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """`clean`, then each entry at each severity."""
        entries: Mapping[str, Any] = self.plan["entries"]
        degraded = (Condition(name, s) for name, levels in entries.items() for s in range(1, len(levels) + 1))
        return (Condition("clean", 0), *degraded)

    def parts(self) -> list[Path]:
        """Return the part files, in order."""
        return sorted((self.path / PARTS).glob("*.parquet"))

    def tables(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows, a few parts at a time, so that memory does not grow with the run.

        Raises:
            InputError: a part is damaged.
        """
        parts = self.parts()
        for start in range(0, len(parts), _BATCH_PARTS):
            yield pa.concat_tables([_read(part, columns) for part in parts[start : start + _BATCH_PARTS]])

    def progress(self) -> RunProgress:
        """Look through the parts; see `RunProgress`."""
        done: dict[str, None] = {}
        failed: dict[str, dict[str, str]] = {model: {} for model in self.models}
        odd: dict[str, list[str]] = {"empty": [], "full": []}
        first = self.models[0]
        for table in self.tables(["image", "model", "severity", "status", "error", "foreground", "height", "width"]):
            done.update(dict.fromkeys(table["image"].to_pylist()))
            for row in table.filter(pc.equal(table["status"], "failed")).to_pylist():
                failed[row["model"]].setdefault(row["image"], row["error"])
            clean = table.filter(pc.and_(pc.equal(table["severity"], 0), pc.equal(table["model"], first)))
            for row in clean.to_pylist():
                if row["foreground"] == 0:
                    odd["empty"].append(row["image"])
                elif row["foreground"] is not None and row["foreground"] == row["height"] * row["width"]:
                    odd["full"].append(row["image"])
        return RunProgress(tuple(done), failed, tuple(odd["empty"]), tuple(odd["full"]))

    def summary(self) -> dict[str, Any]:
        """Read summary.json, or make the summary when it is absent, damaged, or of other parts than are there."""
        try:
            content = json.loads((self.path / "summary.json").read_text("utf-8"))
            if content["schema"] == SUMMARY_SCHEMA and content["parts"] == self.parts_digest():
                return dict(content)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # it holds nothing that the parts do not
        return summarize(self)

    def parts_digest(self) -> str:
        """Return a digest of the names and sizes of the parts: whether a summary is of these."""
        text = "\n".join(f"{part.name} {part.stat().st_size}" for part in self.parts())
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class RunProgress:
    """How far a run is.

    Attributes:
        images: images whose part is there, in order.
        failed: model → image → reason, for images that failed under at least one condition.
        empty_masks: images whose mask has no object.
        full_masks: images whose mask is all object.
    """

    images: tuple[str, ...]
    failed: Mapping[str, Mapping[str, str]]
    empty_masks: tuple[str, ...]
    full_masks: tuple[str, ...]

    @property
    def failures(self) -> dict[str, str]:
        """Image → reason, over all models."""
        return {image: reason for by_image in self.failed.values() for image, reason in by_image.items()}


def image_scores(run: RunFolder, score: str) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Return a score of every image: the images in order, and float64 [models, images, conditions].

    Where a model failed on an image under any condition, all its scores of that image are NaN, as `summarize` leaves
    the image out of all its means.

    Args:
        run: the run.
        score: one of `SCORES`.

    Raises:
        InputError: a part is damaged.
    """
    place = {(m, c.entry, c.severity): k for m in run.models for k, c in enumerate(run.conditions)}
    images: dict[str, int] = {}
    models = {model: m for m, model in enumerate(run.models)}
    blocks = [np.empty((len(models), 0, len(run.conditions)))]
    for table in run.tables(["image", "model", "entry", "severity", score]):
        known = len(images)
        rows = [images.setdefault(name, len(images)) - known for name in table["image"].to_pylist()]
        cells = list(zip(*(table[name].to_pylist() for name in ("model", "entry", "severity")), strict=True))
        block = np.full((len(models), len(images) - known, len(run.conditions)), np.nan)
        values = table[score].to_numpy(zero_copy_only=False)
        block[[models[cell[0]] for cell in cells], rows, [place[cell] for cell in cells]] = values
        blocks.append(block)
    found = np.concatenate(blocks, axis=1)
    found[np.isnan(found).any(axis=2)] = np.nan
    return tuple(images), found


def _read(part: Path, columns: list[str] | None) -> pa.Table:
    try:
        return pq.read_table(part, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{part}: is damaged ({error}); give the bench command again to make it anew.") from error


def summarize(run: RunFolder) -> dict[str, Any]:
    """Reduce a run's rows to means with 95% bootstrap intervals over images.

    For each model, an image that failed under any condition is left out of all its means, so that clean and
    corrupted are over the same images. Conditions weigh alike: corrupted means are over entries × severities, as
    in COD10K-C, Table 2. The interval is the 2.5–97.5% range over resamplings of the images, drawn once and used
    for all conditions and models, so that differences are paired. In means of PSNR, values above
    `crypsis.severity.strength.PSNR_CEILING`, the infinite ones included, count as that.

    Returns:
        JSON values: `complete`, `images` (planned), `scored` (for all models), `failed` (image → reason),
        `empty_masks` and `full_masks` (images), `parts` (a digest), and per model `scored`, `conditions`,
        `entries` (mean over severities), `severities` (mean over entries), `corrupted`, `delta`, `retention`, each
        metric → `Interval`; `strength`, condition → strength metric → `Interval` over the images that the scores are
        over, None where it was not measured; and `reliability` (pooled bins of clean and corrupted). A model of which
        no image could be scored is None.

    Raises:
        InputError: nothing was scored.
    """
    progress = run.progress()
    failed = progress.failures
    if all(len(progress.failed[model]) == len(progress.images) for model in run.models):
        reason = next(iter(failed.values()), "no part is done yet")
        raise InputError(f"{run.path}: nothing was scored ({reason}).")
    sums = _Sums(run, progress)
    for table in run.tables():
        sums.add(table)
    planned = int(run.plan["dataset"]["images"])
    return {
        "schema": SUMMARY_SCHEMA,
        "complete": len(progress.images) == planned and not failed,
        "images": planned,
        "scored": len(progress.images) - len(failed),
        "failed": failed,
        "empty_masks": list(progress.empty_masks),
        "full_masks": list(progress.full_masks),
        "parts": run.parts_digest(),
        "samples": _SAMPLES,
        "models": {model: sums.summary(index) for index, model in enumerate(run.models)},
    }


class _Sums:
    """Weighted sums over images of everything a summary needs, for the data and for each bootstrap sample."""

    def __init__(self, run: RunFolder, progress: RunProgress) -> None:
        self.run = run
        self.rank = {image: index for index, image in enumerate(progress.images)}
        self.conditions = run.conditions
        self.cell = {
            (model, c.entry, c.severity): (m, k)
            for m, model in enumerate(run.models)
            for k, c in enumerate(self.conditions)
        }
        self.usable = np.array([[i not in progress.failed[m] for i in progress.images] for m in run.models])
        # row 0 is the data itself, every image once; the others are the bootstrap samples
        samples = bootstrap_counts(len(self.rank), samples=_SAMPLES, seed=int(run.plan["seed"]))
        self.counts = np.concatenate([np.ones((1, len(self.rank)), np.uint16), samples])
        width = len(_MEANS) + 3 * _BINS
        self.sums = np.zeros((len(run.models), 1 + _SAMPLES, len(self.conditions), width))
        self.curves = np.zeros((len(run.models), len(self.conditions), 2, 256))

    def add(self, table: pa.Table) -> None:
        """Add the rows of a few images."""
        table = table.filter(pc.equal(table["status"], "ok"))
        cells = zip(*(table[c].to_pylist() for c in ("model", "entry", "severity")), strict=True)
        model, condition = np.array([self.cell[cell] for cell in cells], np.intp).reshape(-1, 2).T
        image = np.array([self.rank[name] for name in table["image"].to_pylist()], np.intp)
        keep = self.usable[model, image]
        if not keep.any():
            return
        table, model, condition, image = table.filter(pa.array(keep)), model[keep], condition[keep], image[keep]
        ranks, place = np.unique(image, return_inverse=True)
        values = np.zeros((len(self.run.models), len(ranks), *self.sums.shape[2:]))
        scores = {name: table[name].to_numpy()[:, None] for name in _MEANS}
        scores["psnr"] = capped(scores["psnr"])
        bins = [_matrix(table[name], _BINS) for name in ("ece_count", "ece_confidence", "ece_correct")]
        # what is not usable stays 0
        values[model, place, condition] = np.concatenate([*scores.values(), *bins], axis=1)
        weights = self.counts[:, ranks].astype(np.float64)
        for m, block in enumerate(values):
            self.sums[m] += (weights @ block.reshape(len(ranks), -1)).reshape(self.sums.shape[1:])
        histograms = [_matrix(table[f"histogram_{part}"], 256) for part in ("object", "background")]
        np.add.at(self.curves, (model, condition, 0), f_curve(*histograms))
        np.add.at(self.curves, (model, condition, 1), e_curve(*histograms))

    def summary(self, m: int) -> dict[str, Any] | None:
        """Return one model's summary; None if no image could be scored."""
        scored = int(self.usable[m].sum())
        if scored == 0:
            return None
        weights = self.counts @ self.usable[m].astype(np.float64)
        drawn = weights > 0  # a sample may hold none of a few usable images
        drawn[1:] &= scored > 1  # one image has no spread to draw from
        means = self.sums[m][drawn] / weights[drawn][:, None, None]  # samples × conditions × columns
        bins = means[:, :, len(_MEANS) :].reshape(*means.shape[:2], 3, _BINS)
        stacks: dict[str, NDArray[np.float64]] = {name: means[:, :, i] for i, name in enumerate(SCORES)}
        ece, gap = ece_from_bins(bins[:, :, 0], bins[:, :, 1], bins[:, :, 2])
        stacks |= {"ece_pooled": ece, "ece_signed_gap": gap}
        peaks = (self.curves[m] / scored).max(axis=2)
        stacks |= {"f_max": peaks[None, :, 0], "e_max": peaks[None, :, 1]}
        tables = {**self._tables(stacks), "strength": self._strength(means[:, :, len(SCORES) : len(_MEANS)])}
        return {"scored": scored, **tables, "reliability": self._reliability(bins[0])}

    def _tables(self, stacks: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
        """Return every mean of every metric, given as [samples, conditions]."""
        entries = list(self.run.plan["entries"])
        tables: dict[str, Any] = {"conditions": {str(c): {} for c in self.conditions}}
        tables |= {"entries": {e: {} for e in entries}, "severities": {}}
        tables |= {"corrupted": {}, "delta": {}, "retention": {}}
        for metric, stack in stacks.items():
            result = aggregate(stack[:, 0], stack[:, 1:].reshape(len(stack), len(entries), -1))
            for k, condition in enumerate(self.conditions):
                tables["conditions"][str(condition)][metric] = interval(stack[:, k])
            for k, entry in enumerate(entries):
                tables["entries"][entry][metric] = interval(result.by_corruption[:, k])
            assert result.by_severity is not None
            for k in range(result.by_severity.shape[1]):
                tables["severities"].setdefault(str(k + 1), {})[metric] = interval(result.by_severity[:, k])
            tables["corrupted"][metric] = interval(result.corrupted)
            tables["delta"][metric] = interval(result.delta)
            if METRICS[metric].higher_is_better:
                tables["retention"][metric] = interval(result.retention)
        return tables

    def _strength(self, means: NDArray[np.float64]) -> dict[str, Any]:
        """Return the mean strength of each condition, given as [samples, conditions, metrics]."""
        return {
            str(condition): {metric: interval(means[:, k, i]) for i, metric in enumerate(STRENGTHS.values())}
            for k, condition in enumerate(self.conditions)
        }

    def _reliability(self, bins: NDArray[np.float64]) -> dict[str, Any]:
        """Return pooled bins as pixel shares, mean confidence and accuracy, for clean and all corrupted."""
        result = {}
        for label, pooled in (("clean", bins[0]), ("corrupted", bins[1:].sum(axis=0))):
            count, confidence, correct = pooled
            result[label] = {
                "share": (count / count.sum()).tolist(),
                "confidence": _means(confidence, count),
                "accuracy": _means(correct, count),
            }
        return result


def _matrix(column: pa.ChunkedArray, width: int) -> NDArray[np.float64]:
    """Return a column of equally long lists as rows."""
    values = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.asarray(values, np.float64).reshape(-1, width)


def _means(total: NDArray[np.float64], count: NDArray[np.float64]) -> list[float | None]:
    """Return each bin's mean, None where it is empty."""
    return [float(t / n) if n > 0 else None for t, n in zip(total, count, strict=True)]


def interval(samples: NDArray[np.float64]) -> Interval:
    """Return the value (row 0) and the central 95% of the bootstrap samples (the other rows)."""
    value = float(samples[0])
    if not np.isfinite(value):
        return {"value": None, "low": None, "high": None}
    spread = samples[1:][np.isfinite(samples[1:])]
    if spread.size < 2:
        return {"value": value, "low": None, "high": None}
    low, high = np.quantile(spread, (0.025, 0.975))
    return {"value": value, "low": float(low), "high": float(high)}
