"""The tables of a detection benchmark, as data that can be written as Markdown, LaTeX or CSV.

COCO's numbers clean and under degradation; mPC and rPC of Michaelis et al., "Benchmarking Robustness in Object
Detection" (2019); AP by degradation and severity, and its change by place in the taxonomy.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from ..detection_results import PLACES, DetectionRun
from ..errors import UnknownNameError
from ..metrics.detection import SCORES
from .comparison import ModelResult
from .detection_comparison import SCORE_LABELS, SCORE_TITLES, DetectionComparison, compare_detections, place_title
from .tables import Cell, Number, Table, cell_text

__all__ = ["build_detection_tables", "detection_csv", "detection_tables"]

CSV_COLUMNS = (
    "run", "model", "kind", "label", "severity", "metric", "value", "low", "high", "1-ssim", "psnr",
    "scored", "planned", "complete",
)  # fmt: skip
"""Columns of `detection_csv`."""

_PLACES = {
    "family": "family",
    "cause": "cause",
    "effect": "effect",
    "group": "group of the taxonomy",
    "cell": "cause and effect",
}


def detection_tables(runs: Sequence[DetectionRun], *, metric: str = "ap", intervals: bool = True) -> list[Table]:
    """Return the tables of one detection run, or of several side by side.

    In order: COCO's numbers clean, corrupted (mPC), their difference and quotient (rPC); by severity; a table for each
    family of its degradations by severity; the change by family, cause, effect, group, and cause × effect; and, where
    there are several, the categories.

    Args:
        runs: run folders over the same images, objects, degradations, seed and rules.
        metric: of `crypsis.metrics.detection.SCORES`, for the tables by severity and by degradation.
        intervals: whether to give 95% bootstrap intervals where there are any.

    Raises:
        UnknownNameError: `metric` is not one of these.
        InputError: the runs cannot be compared, or nothing was detected.
    """
    return build_detection_tables(compare_detections(runs), metric=metric, intervals=intervals)


def build_detection_tables(
    comparison: DetectionComparison, *, metric: str = "ap", intervals: bool = True
) -> list[Table]:
    """Return the tables of runs that are already set side by side; see `detection_tables`."""
    if metric not in SCORES:
        raise UnknownNameError.among("metric of detections", metric, SCORES, f"Known: {', '.join(SCORES)}.")
    build = _Builder(comparison, metric, intervals)
    tables = [build.overall(), build.severities()]
    tables += [build.family(family) for family in comparison.members("family")]
    tables += [build.places(place) for place in PLACES]
    if len(comparison.categories) > 1:
        tables.append(build.categories())
    return tables


def detection_csv(runs: Sequence[DetectionRun]) -> str:
    """Return every number of every detector as one tidy CSV, a number a row, with what it is over.

    Columns: run; model; kind and label, which say what the number is of: `clean`, `condition` (an entry at a
    severity), `entry` (mean over severities), `severity` (mean over entries), `corrupted` (mPC), `delta` (mPC − clean),
    `retention` (mPC / clean), `drop by family`, `cause`, `effect`, `group` and `cell` (cause-effect; degraded − clean),
    `category clean` and `category corrupted`; severity; metric; value; low and high (95% interval, empty where there is
    none); mean measured 1 − SSIM and PSNR (dB) of a condition; images scored and planned; complete.

    Raises:
        InputError: the runs cannot be compared, or nothing was detected.
    """
    comparison = compare_detections(runs)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for result in comparison.results:
        summary = comparison.summaries[result.run]
        first = (cell_text(comparison.runs[result.run].name), cell_text(result.model))
        over = (result.scores["scored"], summary["images"], str(summary["complete"]).lower())
        for kind, label, severity, table in _all_numbers(comparison, result):
            strength = summary["strength"].get(_condition(label, severity)) if kind in ("clean", "condition") else None
            measured = [_decimals((strength or {}).get(name)) for name in ("1-ssim", "psnr")]
            for metric, found in table.items():
                numbers = (_decimals(found[end]) for end in ("value", "low", "high"))
                writer.writerow((*first, kind, cell_text(label), severity, metric, *numbers, *measured, *over))
    return out.getvalue()


def _all_numbers(
    comparison: DetectionComparison, result: ModelResult
) -> Iterable[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield kind, label, severity, and metric → value, low and high."""
    scores = result.scores
    yield "clean", "clean", "0", scores["conditions"]["clean"]
    for name in comparison.entries:
        for severity in map(str, comparison.severities):
            yield "condition", name, severity, scores["conditions"][f"{name}@{severity}"]
    for name in comparison.entries:
        yield "entry", name, "", scores["entries"][name]
    for severity, table in scores["severities"].items():
        yield "severity", "", severity, table
    for kind in ("corrupted", "delta", "retention"):
        yield kind, "", "", scores[kind]
    for place in PLACES:
        for label, table in scores["places"][place].items():
            yield f"drop by {place}", label, "", table
    for kind in ("clean", "corrupted"):
        for number, found in scores["per_category"].items():
            yield f"category {kind}", comparison.categories[number], "", {"ap": _alone(found[kind])}


def _condition(label: str, severity: str) -> str:
    return label if label == "clean" else f"{label}@{severity}"


def _alone(value: float | None) -> dict[str, float | None]:
    return {"value": value, "low": None, "high": None}


def _decimals(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


class _Builder:
    """Makes tables of one comparison."""

    def __init__(self, comparison: DetectionComparison, metric: str, intervals: bool) -> None:
        self.comparison = comparison
        self.metric = metric
        self.intervals = intervals
        self.several = len(comparison.results) > 1

    def overall(self) -> Table:
        kinds: dict[str, tuple[str, str | None, Literal["score", "delta", "percent"]]] = {
            "Clean": ("conditions", "clean", "score"),
            "Corrupted (mPC)": ("corrupted", None, "score"),
            "Δ": ("delta", None, "delta"),
            "Kept (rPC)": ("retention", None, "percent"),
        }

        def numbers(result: ModelResult, label: str) -> list[Number]:
            kind, name, style = kinds[label]
            return [self.number(result, kind, metric, name, style) for metric in SCORES]

        header = [f"{SCORE_LABELS[metric]} ↑" for metric in SCORES]
        return self.table(
            "Clean and corrupted", "Images", header, {label: label for label in kinds}, numbers, SCORES, delta=True
        )

    def severities(self) -> Table:
        levels = [str(severity) for severity in self.comparison.severities]
        rows: list[tuple[Cell, ...]] = [
            (
                result.label,
                self.number(result, "conditions", self.metric, "clean"),
                *(self.number(result, "severities", self.metric, level) for level in levels),
            )
            for result in self.comparison.results
        ]
        header = ("Detector", "Clean ↑", *(f"s={level} ↑" for level in levels))
        return self.finished(f"{self.label} by severity, mean over degradations", header, rows, [self.metric])

    def family(self, family: str) -> Table:
        comparison = self.comparison
        titles = {
            name: comparison.titles[name].replace(f" ({family})", "") for name in comparison.members("family")[family]
        }
        drops = {result.label: comparison.drops(result, self.metric) for result in comparison.results}

        def numbers(result: ModelResult, name: str) -> list[Number]:
            return [
                *(self.number(result, "conditions", self.metric, f"{name}@{s}") for s in comparison.severities),
                self.number(result, "entries", self.metric, name),
                Number(drops[result.label].get(name), style="delta"),
            ]

        header = [*(f"s={severity} ↑" for severity in comparison.severities), "Mean ↑", f"Δ{self.label} ↑"]
        return self.table(
            f"{self.label} of {family}", "Degradation", header, titles, numbers, [self.metric], delta=True
        )

    def places(self, place: str) -> Table:
        comparison = self.comparison
        members = comparison.members(place)
        titles = {label: f"{place_title(place, label)} ({len(names)})" for label, names in members.items()}
        metrics = [metric for metric in SCORES if metric.startswith("ap") or metric == "ar100"]

        def numbers(result: ModelResult, label: str) -> list[Number]:
            found = result.scores["places"][place][label]
            return [self.of(found[metric], "delta") for metric in metrics]

        header = [f"Δ{SCORE_LABELS[metric]} ↑" for metric in metrics]
        title, first = f"Change by {_PLACES[place]}", _PLACES[place].partition(" of ")[0].capitalize()
        return self.table(title, first, header, titles, numbers, metrics, delta=True, count=True)

    def categories(self) -> Table:
        def numbers(result: ModelResult, number: str) -> list[Number]:
            found = result.scores["per_category"][number]
            clean, corrupted = found["clean"], found["corrupted"]
            known = clean is not None and corrupted is not None
            return [
                Number(clean),
                Number(corrupted),
                Number(corrupted - clean if known else None, style="delta"),
                Number(corrupted / clean if known and clean else None, style="percent"),
            ]

        header = ["Clean AP ↑", "mPC ↑", "ΔAP ↑", "rPC ↑"]
        return self.table("AP by category", "Category", header, self.comparison.categories, numbers, ["ap"], delta=True)

    @property
    def label(self) -> str:
        return SCORE_LABELS[self.metric]

    def number(
        self,
        result: ModelResult,
        kind: str,
        metric: str,
        name: str | None = None,
        style: Literal["score", "delta", "percent"] = "score",
    ) -> Number:
        return self.of(result.interval(kind, metric, name), style)

    def of(self, found: Mapping[str, float | None], style: Literal["score", "delta", "percent"]) -> Number:
        return Number.of(found, style) if self.intervals else Number(found["value"], style=style)

    def table(
        self,
        title: str,
        first: str,
        header: Sequence[str],
        titles: Mapping[str, str],
        numbers: Callable[[ModelResult, str], list[Number]],
        metrics: Sequence[str],
        *,
        delta: bool = False,
        count: bool = False,
    ) -> Table:
        """Return a table with a row for each of `titles`, or a group of rows by detector if there are several."""
        rows: list[tuple[Cell, ...]] = [
            (text, *((result.label,) if self.several else ()), *numbers(result, key))
            for key, text in titles.items()
            for result in self.comparison.results
        ]
        columns = (first, *(("Detector",) if self.several else ()), *header)
        notes = ["Δ = degraded − clean."] if delta else []
        if count:
            notes.append("In parentheses: the number of degradations, over which and their severities is the mean.")
        return self.finished(title, columns, rows, metrics, notes)

    def finished(
        self,
        title: str,
        header: Sequence[str],
        rows: Sequence[tuple[Cell, ...]],
        metrics: Sequence[str],
        more: Sequence[str] = (),
    ) -> Table:
        """Return a table with its notes, the best marked where detectors stand against each other."""
        comparison = self.comparison
        notes = [*comparison.warnings(), comparison.scope(), *more]
        notes.append(
            "mPC: mean over all degradations and severities, which weigh alike. rPC = mPC / clean: the share kept; "
            "above 100% where degraded images score higher. –: nothing to find, or nothing to be kept of."
        )
        samples = comparison.summaries[0]["samples"]
        if self.intervals and samples:
            notes.append(
                f"[low, high] = 95% bootstrap interval over images ({samples:,} samples), centered on the value, so "
                "that an end can leave the range of the score in small sets."
            )
        if comparison.moving:
            notes.append(comparison.moving)
        notes += [f"{SCORE_LABELS[metric]}: {SCORE_TITLES[metric]} (COCO)." for metric in metrics]
        if not comparison.complete:
            title = f"INCOMPLETE: {title}"
        table = Table(title, tuple(header), tuple(rows), tuple(notes))
        return table.marked() if self.several else table
