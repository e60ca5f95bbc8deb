"""Results by camouflage as tables, as one long CSV, and as a document for JSON and pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ..camouflage.difficulty import DifficultyGroup
from ..detection_results import RESAMPLED
from ..metrics.segmentation import METRICS
from ..results import Interval
from .camouflage_results import Level, ModelByCamouflage, ResultsByCamouflage
from .comparison import METRIC_LABELS
from .detection_comparison import SCORE_LABELS, SCORE_TITLES
from .tables import Cell, Number, Table, cell_text

__all__ = [
    "CSV_COLUMNS",
    "camouflage_csv",
    "camouflage_document",
    "camouflage_tables",
    "group_label",
    "level_text",
    "metric_label",
    "strength_label",
    "threshold_text",
]

CSV_COLUMNS = (
    "run", "model", "score", "group", "easiest", "hardest", "images", "kind", "label", "metric", "value", "low", "high",
)  # fmt: skip
"""Columns of `camouflage_csv`."""

_LABELS = {**METRIC_LABELS, **SCORE_LABELS}


class _Comparison(Protocol):
    """Runs of any benchmark side by side."""

    @property
    def runs(self) -> Sequence[Any]: ...

    @property
    def summaries(self) -> Sequence[Any]: ...

    @property
    def complete(self) -> bool: ...

    def warnings(self) -> list[str]: ...

    def scope(self) -> str: ...


def metric_label(found: ResultsByCamouflage) -> str:
    """Return what tables call the metric."""
    return _LABELS[found.metric]


def group_label(group: DifficultyGroup) -> str:
    """Return what tables call a group: its quantile, and its least and greatest score."""
    ends = dict.fromkeys(f"{end:.3g}" for end in (group.low, group.high))
    return f"{group.name} ({'–'.join(ends)})"


def strength_label(ends: tuple[float, float]) -> str:
    """Return what tables call a bin of strength."""
    return f"{ends[0]:.2f}–{ends[1]:.2f}"


def level_text(level: Level | None, labels: Sequence[str], last: str) -> str:
    """Say at which level a model stops seeing.

    Args:
        level: None where that is not known.
        labels: of the levels behind `clean`.
        last: of the greatest, for what never happens.
    """
    if level is None:
        return "–"

    def text(value: int, never: str) -> str:
        return never if value > len(labels) else "clean" if value == 0 else labels[value - 1]

    said = text(level.value, f"never up to {last}")
    if level.low is None or level.high is None or level.low == level.high:
        return said
    return f"{said} [{text(level.low, 'never')}, {text(level.high, 'never')}]"


def threshold_text(found: ResultsByCamouflage) -> str:
    """Say from which score on a model counts as seeing."""
    label = metric_label(found)
    if found.scores.seen_from is not None:
        return f"{label} {found.scores.seen_from:g}"
    return f"half of its own clean {label} on the easiest group"


def camouflage_tables(comparison: _Comparison, found: ResultsByCamouflage, *, intervals: bool = True) -> list[Table]:
    """Return the tables of results by camouflage.

    In order: clean, corrupted and kept by group; by group and severity; by group and measured strength, where there is
    one; where models stop seeing; and for segmenters how camouflage and score go together image by image.

    Args:
        comparison: the runs that the results are of.
        found: the results.
        intervals: whether to give 95% bootstrap intervals where there are any.
    """
    build = _Builder(comparison, found, intervals)
    tables = [build.groups(), build.severities()]
    if found.strengths:
        tables.append(build.strengths())
    tables.append(build.stops())
    if found.models[0].correlations:
        tables.append(build.correlations())
    return tables


def camouflage_csv(comparison: _Comparison, found: ResultsByCamouflage) -> str:
    """Return every number of results by camouflage as one tidy CSV, a number a row.

    Columns: run; model; the score of camouflage; group, with its least and greatest score and the images that the model
    was scored on; kind (`clean`, `corrupted`, `delta`, `retention`, `severity`, `strength`, `stops at severity`, `stops
    at strength`, `threshold`, `correlation clean` and `corrupted`, and their `p`) and label (which severity, or which
    range of 1 − SSIM; for stops in words, as never has no number); metric; value; low and high (95% interval). Stops
    are a severity, 0 being clean images, or the number of the bin of strength.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for model in found.models:
        first = (cell_text(comparison.runs[model.result.run].name), cell_text(model.result.model))
        for g, group in enumerate(found.groups):
            place = (found.scores.name, group.name, _number(group.low), _number(group.high), model.images[g])
            for kind, label, values in _numbers_of(found, model, g):
                writer.writerow((*first, *place, kind, label, found.metric, *map(_number, values)))
        everything = (found.scores.name, "", "", "", sum(model.images))
        writer.writerow((*first, *everything, "threshold", "", found.metric, _number(model.threshold), "", ""))
        for kind, (rho, p) in model.correlations.items():
            for name, values in ((f"correlation {kind}", _ends(rho)), (f"p of {kind}", (p, None, None))):
                writer.writerow((*first, *everything, name, "", found.metric, *map(_number, values)))
    return out.getvalue()


_Ends = tuple[float | None, float | None, float | None]


def _ends(found: Interval) -> _Ends:
    return found["value"], found["low"], found["high"]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _numbers_of(found: ResultsByCamouflage, model: ModelByCamouflage, g: int) -> Iterator[tuple[str, str, _Ends]]:
    """Yield kind, label, and value, low and high of one group."""
    for kind in ("clean", "corrupted", "delta", "retention"):
        yield kind, "", _ends(getattr(model, kind)[g])
    severities, strengths = _severities(found), _strengths(found)
    for label, cell in zip(severities.labels, model.by_severity[g], strict=True):
        yield "severity", label, _ends(cell)
    for label, cell in zip(strengths.labels, model.by_strength[g], strict=True):
        yield "strength", label, _ends(cell)
    yield "stops at severity", *_stop(model.stops[g], severities, [0, *found.severities])
    if model.stops_strength:
        yield "stops at strength", *_stop(model.stops_strength[g], strengths, range(len(strengths.labels) + 1))


def _stop(level: Level | None, axis: _Axis, numbers: Sequence[int]) -> tuple[str, _Ends]:
    def at(value: int | None) -> float | None:
        return numbers[value] if value is not None and value < len(numbers) else None

    ends = (None, None, None) if level is None else (at(level.value), at(level.low), at(level.high))
    return axis.said(level), ends


def camouflage_document(found: ResultsByCamouflage) -> dict[str, Any]:
    """Return results by camouflage as JSON values."""
    severities, strengths = _severities(found), _strengths(found)
    return {
        "score": found.scores.name,
        "file": found.scores.file.name,
        "metric": found.metric,
        "seen_from": found.scores.seen_from,
        "groups": [{"name": g.name, "low": g.low, "high": g.high, "images": list(g.images)} for g in found.groups],
        "severities": list(found.severities),
        "strengths": [list(ends) for ends in found.strengths],
        "models": {
            model.result.label: {
                **{name: list(getattr(model, name)) for name in ("images", "clean", "corrupted", "delta", "retention")},
                "by_severity": [list(row) for row in model.by_severity],
                "by_strength": [list(row) for row in model.by_strength],
                "threshold": model.threshold,
                "stops_at_severity": [severities.said(level) for level in model.stops],
                "stops_at_strength": [strengths.said(level) for level in model.stops_strength],
                "correlations": {kind: {**rho, "p": p} for kind, (rho, p) in model.correlations.items()},
            }
            for model in found.models
        },
        "notes": list(found.notes),
    }


@dataclass(frozen=True, slots=True)
class _Axis:
    """The levels of a surface behind clean, and the last one in words."""

    labels: tuple[str, ...]
    last: str

    def said(self, level: Level | None) -> str:
        return level_text(level, self.labels, self.last)


def _severities(found: ResultsByCamouflage) -> _Axis:
    return _Axis(tuple(map(str, found.severities)), str(found.severities[-1]))


def _strengths(found: ResultsByCamouflage) -> _Axis:
    ends = found.strengths
    return _Axis(tuple(map(strength_label, ends)), f"{ends[-1][1]:.2f}" if ends else "")


class _Builder:
    """Makes tables of one comparison."""

    def __init__(self, comparison: _Comparison, found: ResultsByCamouflage, intervals: bool) -> None:
        self.comparison, self.found, self.intervals = comparison, found, intervals
        self.label = metric_label(found)
        self.several = len(found.models) > 1

    def groups(self) -> Table:
        def numbers(model: ModelByCamouflage, g: int) -> list[Number]:
            return [
                Number(model.images[g], decimals=0),
                self.number(model.clean[g]),
                self.number(model.corrupted[g]),
                self.number(model.delta[g], "delta"),
                self.number(model.retention[g], "percent"),
            ]

        header = ("Images", f"Clean {self.label} ↑", f"Corrupted {self.label} ↑", f"Δ{self.label} ↑", "Retention % ↑")
        return self.by_group(
            "By camouflage", header, numbers,
            "Corrupted: mean over all corruptions and severities, which weigh alike. Δ = corrupted − clean; retention "
            "= corrupted / clean, both of the group's images.",
        )  # fmt: skip

    def severities(self) -> Table:
        labels = [f"s={label} ↑" for label in _severities(self.found).labels]
        return self.surface("severity, mean over corruptions", labels, lambda model: model.by_severity)

    def strengths(self) -> Table:
        labels = [f"{label} ↑" for label in _strengths(self.found).labels]
        return self.surface(
            "measured strength", labels, lambda model: model.by_strength,
            "Strength: mean 1−SSIM of a corruption at a severity over the images; the conditions, in order of it, "
            "are divided into bins of equal number, whose ends head the columns. All cells of a column are "
            "over the same conditions.",
        )  # fmt: skip

    def surface(
        self,
        what: str,
        labels: Sequence[str],
        cells: Callable[[ModelByCamouflage], Sequence[Sequence[Interval]]],
        *notes: str,
    ) -> Table:
        def numbers(model: ModelByCamouflage, g: int) -> list[Number]:
            return [self.number(cell) for cell in (model.clean[g], *cells(model)[g])]

        return self.by_group(f"{self.label} by camouflage and {what}", ("Clean ↑", *labels), numbers, *notes)

    def stops(self) -> Table:
        found, severities, strengths = self.found, _severities(self.found), _strengths(self.found)
        rows: list[tuple[Cell, ...]] = []
        for model in found.models:
            for g, group in enumerate(found.groups):
                words = [severities.said(model.stops[g])]
                words += [strengths.said(model.stops_strength[g])] if found.strengths else []
                shown = words if self.intervals else [text.partition(" [")[0] for text in words]
                rows.append((model.result.label, group_label(group), *shown, Number(model.threshold)))
        measured = ("At strength (1−SSIM)",) if found.strengths else ()
        header = ("Model", "Camouflage", "At severity", *measured, f"Below {self.label}")
        return self.finished(
            "Where models stop seeing", header, rows,
            "The first column of the surface, clean images before the levels, at which the group's mean is below "
            f"{threshold_text(found)}. –: nothing to fall from or to find. No interval stands where 95% of the "
            "samples agree.",
        )  # fmt: skip

    def correlations(self) -> Table:
        rows: list[tuple[Cell, ...]] = []
        for model in self.found.models:
            cells: list[Number] = []
            for rho, p in model.correlations.values():
                cells += [self.number(rho, "delta"), Number(p, style="p")]
            rows.append((model.result.label, *cells))
        kinds = self.found.models[0].correlations
        header = ("Model", *(text for kind in kinds for text in (f"ρ {kind}", f"p {kind}")))
        return self.finished(
            f"Camouflage and {self.label} image by image", header, rows,
            f"ρ: Spearman's correlation of {self.found.scores.name} with an image's {self.label}, clean and on average "
            "over all corruptions; negative where better hidden objects are found worse. p: two-sided, of Student's t.",
        )  # fmt: skip

    def number(self, found: Interval, style: Literal["score", "delta", "percent"] = "score") -> Number:
        return Number.of(found, style) if self.intervals else Number(found["value"], style=style)

    def by_group(
        self,
        title: str,
        header: Sequence[str],
        numbers: Callable[[ModelByCamouflage, int], list[Number]],
        *notes: str,
    ) -> Table:
        """Return a table with a row for each group of images, or a group of rows by model if there are several."""
        rows: list[tuple[Cell, ...]] = [
            (group_label(group), *((model.result.label,) if self.several else ()), *numbers(model, g))
            for g, group in enumerate(self.found.groups)
            for model in self.found.models
        ]
        columns = ("Camouflage", *(("Model",) if self.several else ()), *header)
        table = self.finished(title, columns, rows, *notes)
        return table.marked() if self.several else table

    def finished(self, title: str, header: Sequence[str], rows: Sequence[tuple[Cell, ...]], *notes: str) -> Table:
        comparison, metric = self.comparison, self.found.metric
        every = [*comparison.warnings(), comparison.scope(), *self.found.notes, *notes]
        samples = comparison.summaries[0]["samples"]
        if self.intervals and samples and (metric in METRICS or metric in RESAMPLED):
            centered = ", centered on the value" if metric in SCORE_LABELS else ""
            every.append(f"[low, high] = 95% bootstrap interval over images ({samples:,} samples{centered}).")
        what = METRICS[metric].definition if metric in METRICS else f"{SCORE_TITLES[metric]} (COCO)."
        every.append(f"{self.label}: {what}")
        if not comparison.complete:
            title = f"INCOMPLETE: {title}"
        return Table(title, tuple(header), tuple(rows), tuple(every))
