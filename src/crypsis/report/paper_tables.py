"""Tables 1–4 of the COD10K-C paper with a run's own numbers and the differences, for runs over the same images.

The printed numbers are in `data/paper_tables.json`. Which of them a model belongs beside, its adapter says.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..catalog import list_entries
from ..datasets.naming import parse_cod10k_name
from ..errors import InputError
from ..results import RunFolder
from .comparison import METRIC_LABELS, Comparison, ModelResult, arrow, compare_runs
from .tables import PAPER_METRICS, Cell, Number, Table, cell_text

__all__ = ["paper_csv", "paper_rows", "paper_tables", "printed_numbers"]

_FILE = Path(__file__).parents[1] / "data" / "paper_tables.json"

_DOUBTS = (
    "Paper: COD10K-C (arXiv 2606.02603), Tables 1–4 as printed; its corruptions leave decisions open that were made "
    "here, above all rain, for which it gives no numbers (crypsis describe cod10k-c/rain).",
    "Doubtful in the paper: ZoomNet. It says that it took the public weights; ZoomNet's authors, who feed it three "
    "scales, have a MAE of 0.029 on these images, as has a user of their code (issue 21 of their repository), where "
    "Table 1 prints 0.036. So ZoomNet was fed or scored in another way there, and zoomnet:PATH, which does as its "
    "authors do, is not expected to meet the table.",
    "Doubtful in the paper: section 5.1 gives all compared models a ResNet-50 and section 6 SINet-v2 more than 30 "
    "million parameters; its public network is a Res2Net-50 of 27 million.",
    "Doubtful in the paper: in section 5.2 RobustCODLite's clean Dice is 0.681 and the lower one, in Table 1 it is "
    "0.685 and PFNet's is 0.681. Its weights are not published: what is here was trained by someone else.",
)


@cache
def printed_numbers() -> Mapping[str, Any]:
    """Return what the paper prints: `origin`, `images`, and `models`, adapter → the tables of a summary."""
    content: dict[str, Any] = json.loads(_FILE.read_text("utf-8"))
    return content


class _Column(NamedTuple):
    """A number of a summary, as `ModelResult.interval` takes it."""

    label: str
    kind: str
    metric: str
    name: str | None = None
    style: Literal["score", "delta", "percent"] = "score"


def paper_tables(runs: Sequence[RunFolder], *, intervals: bool = True) -> list[Table]:
    """Return the paper's Tables 1–4, each model's printed numbers with those here and the difference below them.

    Models of the runs that the paper does not have stand at the end of each table.

    Args:
        runs: runs of COD10K-C over all of COD10K's test images, comparable with each other.
        intervals: whether to give 95% bootstrap intervals of the numbers here.

    Raises:
        InputError: a run is over other images, incomplete, or by other rules than the paper's; the message says which
            and why.
    """
    comparison = compare_runs(runs)
    for run, summary in zip(comparison.runs, comparison.summaries, strict=True):
        if reasons := _why_not(run, summary):
            raise InputError(
                f"{run.path}: its numbers cannot stand beside the paper's, which are over the "
                f"{printed_numbers()['images']:,} test images of COD10K: {'; '.join(reasons)}. Without --paper, "
                "crypsis tables prints them alone."
            )
    dice, notes = f"Dice {arrow('dice')}", (*comparison.warnings(), comparison.scope(), *_DOUBTS)
    labels = {metric: f"{METRIC_LABELS[metric]} {arrow(metric)}" for metric in PAPER_METRICS}
    clean = [_Column(label, "conditions", metric, "clean") for metric, label in labels.items()]
    corrupted = [_Column(label, "corrupted", metric) for metric, label in labels.items()]
    corrupted.append(_Column(f"Δ{dice}", "delta", "dice", style="delta"))
    corrupted.append(_Column("Retention % ↑", "retention", "dice", style="percent"))
    titles = comparison.titles
    entries = [_Column(f"{title} ↑", "entries", "dice", name) for name, title in titles.items()]
    entries.append(_Column("Mean ↑", "corrupted", "dice"))
    found = [
        _table(comparison, title, columns, notes, intervals)
        for title, columns in (
            ("Table 1: clean images", clean),
            ("Table 2: mean over all corruptions and severities", corrupted),
            ("Table 3: Dice by corruption, mean over severities", entries),
        )
    ]
    for name in ("cod10k-c/gaussian_noise", "cod10k-c/motion_blur"):
        columns = [_Column(f"s={s} ↑", "conditions", "dice", f"{name}@{s}") for s in comparison.severities]
        found.append(_table(comparison, f"Table 4: Dice by severity, {titles[name]}", columns, notes, intervals))
    return found


def _why_not(run: RunFolder, summary: Mapping[str, Any]) -> list[str]:
    """Return what keeps a run from being compared with the paper."""
    plan, count = run.plan, printed_numbers()["images"]
    images, name = plan["dataset"]["images"], plan["dataset"]["name"]
    reasons = []
    if images != count or plan["limit"] == images:
        limit = "" if plan["limit"] is None else f", by --limit {plan['limit']}"
        reasons.append(f"it covers {images:,} images of {name}{limit}")
    elif others := [key for key in _images(run) if not _is_cod10k(key)]:
        reasons.append(f"it covers images of {name} that are not COD10K's, such as {others[0]}")
    if not summary["complete"]:
        reasons.append(f"it scored {summary['scored']:,} of {summary['images']:,} images")
    if plan["entries"] != {e.name: [dict(values) for values in e.parameters] for e in list_entries(family="cod10k-c")}:
        reasons.append("its corruptions are not those of this version")
    for rule, usual in (("normalize", "raw"), ("truth", "published")):
        if plan.get(rule, usual) != usual:
            reasons.append(f"its {rule} is {plan[rule]}, not {usual}")
    return reasons


def _images(run: RunFolder) -> list[str]:
    keys = (table["image"].unique().to_pylist() for table in run.tables(["image"]))
    return [key for some in keys for key in some]


def _is_cod10k(key: str) -> bool:
    name = parse_cod10k_name(key.rpartition("/")[2])
    return name is not None and name.camouflaged


def _table(
    comparison: Comparison, title: str, columns: Sequence[_Column], notes: Sequence[str], intervals: bool
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    by_adapter: dict[str, list[ModelResult]] = {}
    for result in comparison.results:
        adapter = str(comparison.runs[result.run].plan["models"][result.model].get("adapter"))
        by_adapter.setdefault(adapter, []).append(result)
    for adapter, printed in printed_numbers()["models"].items():
        theirs = [_printed(printed, column) for column in columns]
        numbers = (Number(value, style=column.style) for column, value in zip(columns, theirs, strict=True))
        rows.append((printed["name"], "paper", *numbers))
        for result in by_adapter.pop(adapter, []):
            rows.append((printed["name"], f"here: {result.label}", *_own(result, columns, intervals)))
            rows.append((printed["name"], "here − paper", *_differences(result, columns, theirs)))
    for results in by_adapter.values():
        rows += [(result.label, "here", *_own(result, columns, intervals)) for result in results]
    return Table(title, ("Model", "Numbers", *(column.label for column in columns)), tuple(rows), tuple(notes))


def _printed(printed: Mapping[str, Any], column: _Column) -> float:
    table = printed[column.kind] if column.name is None else printed[column.kind][column.name]
    return float(table[column.metric])


def _own(result: ModelResult, columns: Sequence[_Column], intervals: bool) -> Iterator[Number]:
    for column in columns:
        found = result.interval(column.kind, column.metric, column.name)
        yield Number.of(found, column.style) if intervals else Number(found["value"], style=column.style)


def _differences(result: ModelResult, columns: Sequence[_Column], theirs: Sequence[float]) -> Iterator[Number]:
    for column, printed in zip(columns, theirs, strict=True):
        value = result.value(column.kind, column.metric, column.name)
        style: Literal["delta", "percent"] = "percent" if column.style == "percent" else "delta"
        yield Number(None if value is None else value - printed, style=style)


def paper_rows(tables: Sequence[Table]) -> list[dict[str, str | float | None]]:
    """Return every number of `paper_tables` as a row: table, model, numbers, column, value, low, high."""
    return [
        {
            "table": table.title, "model": str(model), "numbers": str(whose), "column": label.rstrip(" ↑↓"),
            "value": cell.value, "low": cell.low, "high": cell.high,
        }
        for table in tables
        for model, whose, *cells in table.rows
        for label, cell in zip(table.header[2:], cells, strict=True)
        if isinstance(cell, Number)
    ]  # fmt: skip


def paper_csv(tables: Sequence[Table]) -> str:
    """Return `paper_rows` as CSV; ratios are not in percent."""
    out = io.StringIO()
    rows = paper_rows(tables)
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        texts = {key: cell_text(value) if isinstance(value, str) else value for key, value in row.items()}
        writer.writerow({key: f"{v:.6f}" if isinstance(v, float) else v for key, v in texts.items()})
    return out.getvalue()
