"""The tables of COD10K-C, as data that can be written as Markdown, LaTeX or CSV.

Source: "COD10K-C: Benchmarking Robustness of Camouflaged Object Detection Under Natural Image Corruptions",
Tables 1–4; a fifth table has the structure measures common for camouflaged objects.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, TypeAlias

from ..metrics.segmentation import METRICS
from ..results import RunFolder
from .comparison import METRIC_LABELS, Comparison, ModelResult, arrow, check_metric, compare_runs, higher_is_better
from .markup import plain

__all__ = ["Cell", "Number", "Table", "build_tables", "cell_text", "headline_table", "long_csv", "run_tables"]

PAPER_METRICS = ("dice", "iou", "mae", "boundary_f1", "ece_pooled")
STRUCTURE_METRICS = (
    "s_measure", "weighted_f", "e_adaptive", "e_mean", "e_max", "f_adaptive", "f_mean", "f_max",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Number:
    """A measured value.

    Attributes:
        value: the value, or None where it is undefined.
        low: lower end of its 95% interval, or None.
        high: upper end.
        style: `score`, `delta` (with a sign), `percent` (a ratio shown as %, one decimal) or `p` (two digits,
            however small).
        best: whether it is the best of its column (of its group, in a grouped table).
        decimals: number of decimals of a `score` or `delta`.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    style: Literal["score", "delta", "percent", "p"] = "score"
    best: bool = False
    decimals: int = 3

    @classmethod
    def of(cls, found: Mapping[str, float | None], style: Literal["score", "delta", "percent"] = "score") -> Number:
        """Return the number of a value with its `low` and `high`, as summaries hold it."""
        return cls(found["value"], found["low"], found["high"], style)

    @property
    def text(self) -> str:
        """The value as text; `–` where it is undefined."""
        return "–" if self.value is None else self._write(self.value) + ("%" if self.style == "percent" else "")

    @property
    def interval(self) -> str:
        """The interval as `[low, high]`, or nothing."""
        if self.low is None or self.high is None:
            return ""
        return f"[{self._write(self.low)}, {self._write(self.high)}]"

    def _write(self, value: float) -> str:
        if self.style == "percent":
            text = f"{100 * value:.1f}"
        elif self.style == "p":
            text = f"{value:.2g}"
        else:
            text = f"{value:{'+' if self.style == 'delta' else ''}.{self.decimals}f}".replace("inf", "∞")
        if not text.strip("+-0."):
            text = text.lstrip("+-")  # no signed zero
        return text.replace("-", "−")


Cell: TypeAlias = str | Number


@dataclass(frozen=True, slots=True)
class Table:
    """A table; a second column of text makes it a grouped one, by its first column.

    Attributes:
        title: what it shows.
        header: one label per column, arrows included.
        rows: text cells first, then numbers; every row as long as the header.
        notes: sentences on conventions.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def text_columns(self) -> int:
        """Number of leading columns that hold text."""
        return sum(1 for cell in self.rows[0] if isinstance(cell, str)) if self.rows else 1

    @property
    def groups(self) -> list[list[tuple[Cell, ...]]]:
        """Rows that belong together: all of them, or those with one first cell in a grouped table."""
        if self.text_columns < 2:
            return [list(self.rows)]
        return [list(rows) for _, rows in groupby(self.rows, key=lambda row: row[0])]

    def marked(self) -> Table:
        """Return a copy in which the best number of each column and group is marked, by the header's arrow.

        Numbers equal in print are marked together; a single row has no best.
        """
        groups = [_mark_best(rows, self.header) for rows in self.groups]
        return replace(self, rows=tuple(row for rows in groups for row in rows))

    def markdown(self) -> str:
        """Return a GitHub Markdown table with its title and notes."""
        texts = self.text_columns
        lines = [f"**{_markdown_text(self.title)}**", "", _bar(_markdown(label) for label in self.header)]
        lines.append(_bar([":--"] * texts + ["--:"] * (len(self.header) - texts)))
        for group in self.groups:
            for index, row in enumerate(group):
                lines.append(_bar(self._cells(row, index, _markdown, "**{}**")))
        if self.notes:
            lines += ["", *(f"- {_markdown_text(note)}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """Return a LaTeX table; it needs the package booktabs."""
        texts = self.text_columns
        lines = [
            "% needs \\usepackage{booktabs}",
            "\\begin{table}[t]",
            "\\centering",
            f"\\caption{{{_latex(self.title)}}}",
            f"\\begin{{tabular}}{{{'l' * texts}{'r' * (len(self.header) - texts)}}}",
            "\\toprule",
            " & ".join(_latex(label) for label in self.header) + " \\\\",
        ]
        for group in self.groups:
            lines.append("\\midrule")
            for index, row in enumerate(group):
                lines.append(" & ".join(self._cells(row, index, _latex, "\\textbf{{{}}}")) + " \\\\")
        lines += ["\\bottomrule", "\\end{tabular}"]
        if self.notes:
            lines += ["", "\\smallskip", "\\parbox{\\linewidth}{\\footnotesize"]
            lines += [f"{_latex(note)}\\par" for note in self.notes]
            lines.append("}")
        return "\n".join([*lines, "\\end{table}"]) + "\n"

    def csv(self) -> str:
        """Return comma-separated values, numbers with six decimals, intervals as columns of their own.

        Title and notes are left out, and so are arrows. Text that a spreadsheet would take for a formula is
        preceded by an apostrophe.
        """
        with_interval = [any(_has_interval(row[i]) for row in self.rows) for i in range(len(self.header))]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        header: list[str] = []
        for label, wide in zip(self.header, with_interval, strict=True):
            name = label.rstrip(" ↑↓")
            header += [name, f"{name} low", f"{name} high"] if wide else [name]
        writer.writerow(header)
        for row in self.rows:
            line: list[str] = []
            for cell, wide in zip(row, with_interval, strict=True):
                if isinstance(cell, str):
                    line.append(cell_text(cell))
                else:
                    scale = 100 if cell.style == "percent" else 1
                    numbers = (cell.value, cell.low, cell.high) if wide else (cell.value,)
                    form = ".6g" if cell.style == "p" else ".6f"
                    line += ["" if number is None else f"{scale * number:{form}}" for number in numbers]
            writer.writerow(line)
        return out.getvalue()

    def _cells(self, row: tuple[Cell, ...], index: int, write: _Escape, bold: str) -> Iterator[str]:
        """Yield a row's cells; the name of a group stands in its first row only."""
        for column, cell in enumerate(row):
            if isinstance(cell, str):
                yield "" if index and column == 0 and self.text_columns > 1 else write(cell)
            else:
                text = bold.format(write(cell.text)) if cell.best else write(cell.text)
                yield f"{text} {write(cell.interval)}" if cell.interval else text


class _Escape:
    """Replace characters that mean something in a markup language."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self.table = table
        self.pattern = re.compile("|".join(map(re.escape, table)))

    def __call__(self, text: str) -> str:
        return self.pattern.sub(lambda match: self.table[match[0]], _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(plain(text).split())


_GREEK = "alpha beta gamma delta varepsilon theta lambda mu pi sigma tau varphi"
_NOTE_SIGNS = "\\`*_<&~$#"
_LINKS = {"](": "]\\(", "][": "]\\[", "]:": "]\\:"}  # brackets alone mean nothing, and intervals have them
_markdown_text = _Escape({character: f"\\{character}" for character in _NOTE_SIGNS} | _LINKS)
_markdown = _Escape({character: f"\\{character}" for character in _NOTE_SIGNS + "|"} | _LINKS)
_latex = _Escape(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
        "|": "\\textbar{}",
        "[": "{[}",  # after \\ a bracket or a star would be its argument
        "]": "{]}",
        "*": "{*}",
        "↑": "$\\uparrow$",
        "↓": "$\\downarrow$",
        "Δ": "$\\Delta$",
        "−": "$-$",
        "×": "$\\times$",
        "·": "$\\cdot$",
        "≥": "$\\geq$",
        "≤": "$\\leq$",
        "∩": "$\\cap$",
        "∪": "$\\cup$",
        "∞": "$\\infty$",
        "Σ": "$\\Sigma$",
        "²": "$^2$",
        "–": "--",
        "…": "\\ldots{}",
        "→": "$\\rightarrow$",
        **{letter: f"$\\{name}$" for letter, name in zip("αβγδεθλμπστφ", _GREEK.split(), strict=True)},
    }
)


def _bar(cells: Sequence[str] | Iterator[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _has_interval(cell: Cell) -> bool:
    return isinstance(cell, Number) and cell.low is not None


def _mark_best(rows: list[tuple[Cell, ...]], header: Sequence[str]) -> list[tuple[Cell, ...]]:
    if len(rows) < 2:
        return rows
    columns: list[list[Cell]] = []
    for label, *cells in zip(header, *rows, strict=True):
        numbers = [c.value for c in cells if isinstance(c, Number) and c.value is not None]
        if numbers and label[-1] in "↑↓":
            best = max(numbers) if label[-1] == "↑" else min(numbers)
            shown = next(c.text for c in cells if isinstance(c, Number) and c.value == best)
            cells = [replace(c, best=True) if isinstance(c, Number) and c.text == shown else c for c in cells]
        columns.append(cells)
    return list(zip(*columns, strict=True))


def run_tables(runs: Sequence[RunFolder], *, metric: str = "dice", intervals: bool = True) -> list[Table]:
    """Return the tables of COD10K-C for one run, or for several side by side.

    In order: clean images; mean over all corruptions and severities, with change and retention; by corruption;
    by corruption and severity; structure measures. Means are over images; corrupted means weigh every condition
    alike. `ECE` is pooled over the pixels of a condition.

    Args:
        runs: run folders over the same images, entries, seed and rules.
        metric: the metric of the changes and of the third and fourth table, such as `dice` or `mae`.
        intervals: whether to give 95% bootstrap intervals.

    Raises:
        UnknownNameError: `metric` is not one of a summary's.
        InputError: the runs cannot be compared, or nothing was scored.
    """
    return build_tables(compare_runs(runs), metric=metric, intervals=intervals)


def build_tables(comparison: Comparison, *, metric: str = "dice", intervals: bool = True) -> list[Table]:
    """Return the tables of runs that are already set side by side; see `run_tables`."""
    check_metric(metric)
    build = _Builder(comparison, intervals)
    return [
        build.clean(),
        build.corrupted(metric),
        build.by_entry(metric),
        build.by_severity(metric),
        build.structure(),
    ]


def long_csv(runs: Sequence[RunFolder]) -> str:
    """Return every mean of every metric as one tidy CSV, a number a row, with what it is over.

    Columns: run, model, images (`clean`, `corrupted`, `delta`, `retention`, an entry, an entry@severity, or
    `severity N`), metric, value, low and high (95% interval, empty where there is none), scored, planned, complete.
    Conditions also have the measured strength of their images, as the metrics `1-ssim` and `psnr`.

    Raises:
        InputError: the runs cannot be compared, or nothing was scored.
    """
    comparison = compare_runs(runs)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = ("run", "model", "images", "metric", "value", "low", "high", "scored", "planned", "complete")
    writer.writerow(columns)
    for result in comparison.results:
        run, summary, scores = comparison.runs[result.run], comparison.summaries[result.run], result.scores
        over = (scores["scored"], summary["images"], str(summary["complete"]).lower())
        tables = {
            **{name: {**table, **scores["strength"][name]} for name, table in scores["conditions"].items()},
            **scores["entries"],
            **{f"severity {level}": table for level, table in scores["severities"].items()},
            **{kind: scores[kind] for kind in ("corrupted", "delta", "retention")},
        }
        for images, table in tables.items():
            for metric, found in table.items():
                numbers = ("" if found[k] is None else f"{found[k]:.6f}" for k in ("value", "low", "high"))
                writer.writerow((cell_text(run.name), cell_text(result.model), images, metric, *numbers, *over))
    return out.getvalue()


def cell_text(text: str) -> str:
    """Return text on one line that no spreadsheet takes for a formula."""
    line = _one_line(text)
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line


def headline_table(comparison: Comparison) -> Table:
    """Return what to read first: Dice clean and corrupted, change and retention, then the other metrics corrupted."""
    return _Builder(comparison, intervals=True).headline()


class _Builder:
    """Makes tables of one comparison."""

    def __init__(self, comparison: Comparison, intervals: bool) -> None:
        self.comparison = comparison
        self.intervals = intervals

    def headline(self) -> Table:
        rest = [m for m in PAPER_METRICS if m != "dice"]
        header = ["Model", "Clean Dice ↑", "Corrupted Dice ↑", "ΔDice ↑", "Retention % ↑", *map(_label, rest)]
        rows: list[tuple[Cell, ...]] = [
            (
                result.label,
                self.number(result, "conditions", "dice", "clean"),
                *self.changes(result, "dice"),
                *(self.number(result, "corrupted", m) for m in rest),
            )
            for result in self.comparison.results
        ]
        return self.table("Clean against corrupted", header, rows, ["dice", *rest], means=True)

    def clean(self) -> Table:
        rows: list[tuple[Cell, ...]] = [
            (result.label, *(self.number(result, "conditions", m, "clean") for m in PAPER_METRICS))
            for result in self.comparison.results
        ]
        return self.table("Clean images", ["Model", *map(_label, PAPER_METRICS)], rows, PAPER_METRICS)

    def corrupted(self, metric: str) -> Table:
        metrics = list(dict.fromkeys((*PAPER_METRICS, metric)))
        header = ["Model", *map(_label, metrics), f"Δ{_label(metric)}"]
        if higher_is_better(metric):
            header.append("Retention % ↑")
        rows: list[tuple[Cell, ...]] = [
            (
                result.label,
                *(self.number(result, "corrupted", m) for m in metrics),
                *self.changes(result, metric)[1:],
            )
            for result in self.comparison.results
        ]
        return self.table("Mean over all corruptions and severities", header, rows, metrics, means=True)

    def by_entry(self, metric: str) -> Table:
        titles = self.comparison.titles
        sign = arrow(metric)
        header = ["Model", *(f"{title} {sign}" for title in titles.values()), f"Mean {sign}"]
        rows: list[tuple[Cell, ...]] = [
            (
                result.label,
                *(self.number(result, "entries", metric, name) for name in titles),
                self.number(result, "corrupted", metric),
            )
            for result in self.comparison.results
        ]
        return self.table(f"{METRIC_LABELS[metric]} by corruption, mean over severities", header, rows, [metric])

    def by_severity(self, metric: str) -> Table:
        comparison = self.comparison
        header = ["Corruption", "Model", *(f"s={s} {arrow(metric)}" for s in comparison.severities)]
        rows: list[tuple[Cell, ...]] = []
        for name, title in comparison.titles.items():
            levels = len(comparison.plan["entries"][name])
            for result in comparison.results:
                numbers = [
                    self.number(result, "conditions", metric, f"{name}@{s}") if s <= levels else Number(None)
                    for s in comparison.severities
                ]
                rows.append((title, result.label, *numbers))
        return self.table(f"{METRIC_LABELS[metric]} by severity", header, rows, [metric])

    def structure(self) -> Table:
        rows: list[tuple[Cell, ...]] = []
        for title, kind, name in (("Clean", "conditions", "clean"), ("Corrupted", "corrupted", None)):
            for result in self.comparison.results:
                numbers = [self.number(result, kind, metric, name) for metric in STRUCTURE_METRICS]
                rows.append((title, result.label, *numbers))
        header = ["Images", "Model", *map(_label, STRUCTURE_METRICS)]
        return self.table("Structure measures, clean and corrupted", header, rows, STRUCTURE_METRICS)

    def changes(self, result: ModelResult, metric: str) -> tuple[Number, ...]:
        """Return the corrupted mean, its change from clean, and the share kept where more is better."""
        numbers = [self.number(result, "corrupted", metric), self.number(result, "delta", metric, style="delta")]
        if higher_is_better(metric):
            numbers.append(self.number(result, "retention", metric, style="percent"))
        return tuple(numbers)

    def number(
        self,
        result: ModelResult,
        kind: str,
        metric: str,
        name: str | None = None,
        style: Literal["score", "delta", "percent"] = "score",
    ) -> Number:
        found = result.interval(kind, metric, name)
        ends = (found["low"], found["high"]) if self.intervals else (None, None)
        return Number(found["value"], *ends, style=style)

    def table(
        self,
        title: str,
        header: Sequence[str],
        rows: Sequence[tuple[Cell, ...]],
        metrics: Sequence[str],
        *,
        means: bool = False,
    ) -> Table:
        comparison = self.comparison
        notes = [*comparison.warnings(), comparison.scope()]
        if means:
            notes.append("Δ = corrupted − clean; retention = corrupted / clean.")
        if self.intervals:
            samples = comparison.summaries[0]["samples"]
            notes.append(f"[low, high] = 95% bootstrap interval over images ({samples:,} samples).")
        notes += [f"{METRIC_LABELS[metric]}: {METRICS[metric].definition}" for metric in metrics]
        if not comparison.complete:
            title = f"INCOMPLETE: {title}"
        return Table(title, tuple(header), tuple(rows), tuple(notes)).marked()


def _label(metric: str) -> str:
    return f"{METRIC_LABELS[metric]} {arrow(metric)}"
