"""What a run leaves behind: the schema of its rows, how they are read, and the summary made from them.

One row is one (image, condition, model). A row holds scores and the small counts they pool from, so that every
dataset-level number (pooled calibration error, maximum of an averaged curve, any threshold) is a group-by.
"""

from __future__ import annotations

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
from .types import Condition

__all__ = ["PARTS", "RECORD_SCHEMA", "RUN_SCHEMA", "SCORES", "SUMMARY_SCHEMA", "RunFolder", "summarize"]

PARTS = "parts"
RUN_SCHEMA = "crypsis.run/1"
SUMMARY_SCHEMA = "crypsis.summary/1"

SCORES = (
    "dice", "iou", "mae", "boundary_f1", "ece", "s_measure", "weighted_f",
    "e_adaptive", "e_mean", "f_adaptive", "f_mean",
)  # fmt: skip
"""Per-image scores, float64, by column name; `crypsis.metrics.segmentation.METRICS` defines each."""

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
        ("image_bytes", pa.int64()),
        ("mask_bytes", pa.int64()),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("foreground", pa.int64()),
        *((name, pa.float64()) for name in SCORES),
        ("ece_count", pa.list_(pa.int32())),
        ("ece_confidence", pa.list_(pa.float64())),
        ("ece_correct", pa.list_(pa.int32())),
        ("histogram_object", pa.list_(pa.int32())),
        ("histogram_background", pa.list_(pa.int32())),
    ]
)
"""Columns of a part. `entry` is `clean` with severity 0, or a catalog name with severity 1..5. `status` is `ok`
or `failed`; a failed row has `error` and null scores. The three `ece_*` lists have 15 bins; the two histograms
have 256 bins of floor(255·p) over object and background pixels."""

_BINS = 15
_SAMPLES = 1000
_BATCH_PARTS = 16

Interval: TypeAlias = dict[str, float | None]
"""`value`, and `low` and `high` of its 95% bootstrap interval over images (None where it is not estimated)."""


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
        file = path / "run.json"
        try:
            content = json.loads(file.read_text("utf-8"))
        except FileNotFoundError:
            raise InputError(f"{path}: no run is here (run.json is missing); give the folder named by --out.") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot be read ({error}).") from error
        if content.get("schema") != RUN_SCHEMA:
            raise InputError(f"{file}: has schema {content.get('schema')!r}; this version reads {RUN_SCHEMA!r}.")
        return cls(path, content["plan"], tuple(content["sessions"]))

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
        """Yield the rows, a few parts at a time, so that memory does not grow with the run."""
        parts = self.parts()
        for start in range(0, len(parts), _BATCH_PARTS):
            yield pa.concat_tables([pq.read_table(p, columns=columns) for p in parts[start : start + _BATCH_PARTS]])

    def progress(self) -> tuple[list[str], dict[str, str]]:
        """Return the images that are done, in order, and of those the failed ones with a reason."""
        done: dict[str, None] = {}
        failed: dict[str, str] = {}
        for table in self.tables(["image", "status", "error"]):
            done.update(dict.fromkeys(table["image"].to_pylist()))
            bad = table.filter(pc.equal(table["status"], "failed"))
            failed.update(zip(bad["image"].to_pylist(), bad["error"].to_pylist(), strict=True))
        return list(done), failed

    def summary(self) -> dict[str, Any]:
        """Read summary.json, or make the summary from the parts when it is absent or older than they are."""
        file = self.path / "summary.json"
        parts = self.parts()
        if file.exists() and all(file.stat().st_mtime_ns >= part.stat().st_mtime_ns for part in parts):
            content = json.loads(file.read_text("utf-8"))
            if content.get("schema") == SUMMARY_SCHEMA:
                return dict(content)
        return summarize(self)


def summarize(run: RunFolder) -> dict[str, Any]:
    """Reduce a run's rows to means with 95% bootstrap intervals over images.

    An image that failed under any condition or model is left out of every mean, so that all numbers are over
    the same images. Conditions weigh alike: corrupted means are over entries × severities, as in COD10K-C,
    Table 2. The interval is the 2.5–97.5% range over resamplings of the images, drawn once and used for all
    conditions and models, so that differences are paired.

    Returns:
        JSON values: `complete`, `images` (planned), `scored`, `failed` (image → reason), and per model
        `conditions`, `entries` (mean over severities), `severities` (mean over entries), `corrupted`, `delta`,
        `retention`, each metric → `Interval`; `reliability` (pooled bins of clean and corrupted).

    Raises:
        InputError: nothing was scored.
    """
    images, failed = run.progress()
    kept = [image for image in images if image not in failed]
    if not kept:
        reason = next(iter(failed.values()), "no part is done yet")
        raise InputError(f"{run.path}: nothing was scored ({reason}).")
    sums = _Sums(run, {image: index for index, image in enumerate(kept)})
    for table in run.tables():
        sums.add(table)
    planned = int(run.plan["dataset"]["images"])
    return {
        "schema": SUMMARY_SCHEMA,
        "complete": len(images) == planned and not failed,
        "images": planned,
        "scored": len(kept),
        "failed": failed,
        "samples": _SAMPLES,
        "models": {model: sums.summary(index) for index, model in enumerate(run.models)},
    }


class _Sums:
    """Weighted sums over images of everything a summary needs, for the data and for each bootstrap sample."""

    def __init__(self, run: RunFolder, rank: dict[str, int]) -> None:
        self.run = run
        self.rank = rank
        self.conditions = run.conditions
        self.cell = {
            (model, c.entry, c.severity): (m, k)
            for m, model in enumerate(run.models)
            for k, c in enumerate(self.conditions)
        }
        # row 0 is the data itself, every image once; the others are the bootstrap samples
        samples = bootstrap_counts(len(rank), samples=_SAMPLES, seed=int(run.plan["seed"]))
        self.counts = np.concatenate([np.ones((1, len(rank)), np.uint16), samples])
        width = len(SCORES) + 3 * _BINS
        self.means = np.zeros((len(run.models), 1 + _SAMPLES, len(self.conditions), width))
        self.curves = np.zeros((len(run.models), len(self.conditions), 2, 256))

    def add(self, table: pa.Table) -> None:
        """Add the rows of a few images."""
        table = table.filter(pc.is_in(table["image"], pa.array(list(self.rank))))
        if not table.num_rows:
            return
        names = table["image"].unique().to_pylist()
        place = {name: i for i, name in enumerate(names)}
        image = [place[name] for name in table["image"].to_pylist()]
        cells = zip(*(table[c].to_pylist() for c in ("model", "entry", "severity")), strict=True)
        model, condition = np.array([self.cell[cell] for cell in cells]).T
        values = np.zeros((len(self.run.models), len(names), *self.means.shape[2:]))
        scores = [table[name].to_numpy()[:, None] for name in SCORES]
        bins = [_matrix(table[name], _BINS) for name in ("ece_count", "ece_confidence", "ece_correct")]
        values[model, image, condition] = np.concatenate([*scores, *bins], axis=1)
        weights = self.counts[:, [self.rank[name] for name in names]] / len(self.rank)
        for m, block in enumerate(values):
            self.means[m] += (weights @ block.reshape(len(names), -1)).reshape(self.means.shape[1:])
        histograms = [_matrix(table[f"histogram_{part}"], 256) for part in ("object", "background")]
        np.add.at(self.curves, (model, condition, 0), f_curve(*histograms))
        np.add.at(self.curves, (model, condition, 1), e_curve(*histograms))

    def summary(self, m: int) -> dict[str, Any]:
        """Return one model's summary."""
        means = self.means[m]  # samples × conditions × columns
        bins = means[:, :, len(SCORES) :].reshape(*means.shape[:2], 3, _BINS)
        stacks: dict[str, NDArray[np.float64]] = {name: means[:, :, i] for i, name in enumerate(SCORES)}
        ece, gap = ece_from_bins(bins[:, :, 0], bins[:, :, 1], bins[:, :, 2])
        stacks |= {"ece_pooled": ece, "ece_signed_gap": gap}
        peaks = (self.curves[m] / len(self.rank)).max(axis=2)
        stacks |= {"f_max": peaks[None, :, 0], "e_max": peaks[None, :, 1]}
        return self._tables(stacks) | {"reliability": self._reliability(bins[0])}

    def _tables(self, stacks: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
        """Return every mean of every metric, given as [samples, conditions]."""
        entries = list(self.run.plan["entries"])
        tables: dict[str, Any] = {"conditions": {str(c): {} for c in self.conditions}}
        tables |= {"entries": {e: {} for e in entries}, "severities": {}}
        tables |= {"corrupted": {}, "delta": {}, "retention": {}}
        for metric, stack in stacks.items():
            result = aggregate(stack[:, 0], stack[:, 1:].reshape(len(stack), len(entries), -1))
            for k, condition in enumerate(self.conditions):
                tables["conditions"][str(condition)][metric] = _interval(stack[:, k])
            for k, entry in enumerate(entries):
                tables["entries"][entry][metric] = _interval(result.by_corruption[:, k])
            assert result.by_severity is not None
            for k in range(result.by_severity.shape[1]):
                tables["severities"].setdefault(str(k + 1), {})[metric] = _interval(result.by_severity[:, k])
            tables["corrupted"][metric] = _interval(result.corrupted)
            tables["delta"][metric] = _interval(result.delta)
            if METRICS[metric].higher_is_better:
                tables["retention"][metric] = _interval(result.retention)
        return tables

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


def _interval(samples: NDArray[np.float64]) -> Interval:
    """Return the value (row 0) and the central 95% of the bootstrap samples (the other rows)."""
    value = float(samples[0])
    if not np.isfinite(value):
        return {"value": None, "low": None, "high": None}
    spread = samples[1:][np.isfinite(samples[1:])]
    if spread.size < 2:
        return {"value": value, "low": None, "high": None}
    low, high = np.quantile(spread, (0.025, 0.975))
    return {"value": value, "low": float(low), "high": float(high)}
