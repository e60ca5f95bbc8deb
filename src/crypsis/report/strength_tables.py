"""Tables of measured strength, and the findings as text.

The layout is that of "A Causally Grounded Taxonomy for Image Degradation Robustness Evaluation", Table I: a row an
entry, and for each metric its mean at severities 1..5; here a table for each family.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from ..catalog import get_entry
from ..severity.findings import SATURATED, Finding, StrengthTable
from ..severity.placement import PairStrength, Placement
from ..severity.strength import METRICS, PSNR_CEILING
from .tables import Cell, Number, Table

__all__ = [
    "METRIC_NAMES",
    "findings_text",
    "notable_findings",
    "pair_csv",
    "pair_table",
    "placement_text",
    "strength_csv",
    "strength_tables",
]

METRIC_NAMES = {name: metric.title for name, metric in METRICS.items()}
"""Metrics of strength as a figure calls them."""

_DECIMALS = {"psnr": 1}

_KINDS = {
    "monotonicity": "not monotone",
    "saturation": f"saturated steps, below {SATURATED:.0%} of the range",
    "unevenness": "uneven steps, by coefficient of variation",
    "misalignment": "the same severity, other strengths",
}


def _label(metric: str) -> str:
    """Return a metric as a column says it, with the arrow to where stronger degradations are."""
    meaning = METRICS[metric]
    unit = f" {meaning.unit}" if meaning.unit else ""
    return f"{meaning.title}{unit} {'↑' if meaning.rising else '↓'}"


def _number(metric: str, value: float, low: float | None = None, high: float | None = None) -> Number:
    return Number(value, low, high, decimals=_DECIMALS.get(metric, 3))


def _mean(metric: str, value: float, low: float | None, high: float | None, *, unchanged: bool) -> Number:
    """Return a mean, which is infinite for the PSNR of images that are all unchanged."""
    return _number(metric, math.inf) if unchanged and metric == "psnr" else _number(metric, value, low, high)


def strength_tables(table: StrengthTable, *, spread: bool = False) -> list[Table]:
    """Return a table of mean strengths for each family, rows entries and columns metrics × severities.

    Args:
        table: the measurements.
        spread: whether to give the range from the 5% to the 95% quantile over images with each mean.
    """
    header = ["Degradation"]
    for metric in table.metrics:
        name, _, arrow = _label(metric).rpartition(" ")
        header += [f"{name} s={severity} {arrow}" for severity in range(1, 6)]
    families: dict[str, list[int]] = {}
    for index, name in enumerate(table.entries):
        families.setdefault(get_entry(name).family, []).append(index)
    tables = []
    for family, indices in families.items():
        rows: list[tuple[Cell, ...]] = []
        for e in indices:
            cells: list[Cell] = [get_entry(table.entries[e]).title]
            for m, metric in enumerate(table.metrics):
                for s in range(5):
                    ends = (float(table.low[m, e, s]), float(table.high[m, e, s])) if spread else (None, None)
                    unchanged = bool(table.unchanged[e, s] == table.images)
                    cells.append(_mean(metric, float(table.mean[m, e, s]), *ends, unchanged=unchanged))
            rows.append(tuple(cells))
        title = f"Measured strength of {family}, mean over {table.images} image{'s' * (table.images != 1)}"
        tables.append(Table(title, tuple(header), tuple(rows), tuple(_notes(table, indices, spread))))
    return tables


def _notes(table: StrengthTable, indices: Sequence[int], spread: bool) -> list[str]:
    notes = ["Columns s=1 to s=5 are native severities; arrows point to where a degradation is stronger."]
    if spread:
        notes.append("[low, high] = 5–95% range over images.")
    notes += _metric_notes(table.metrics)
    changed_nothing = [
        f"{get_entry(table.entries[e]).title} s={s + 1}"
        + ("" if table.unchanged[e, s] == table.images else f" ({table.unchanged[e, s]} of {table.images})")
        for e in indices
        for s in range(5)
        if table.unchanged[e, s]
    ]
    if changed_nothing:
        notes.append(f"Images left exactly as they were: {', '.join(changed_nothing)}.")
    return notes


def _metric_notes(metrics: Sequence[str]) -> list[str]:
    """Return what the metrics mean, and how means treat an infinite PSNR."""
    notes = []
    for metric in metrics:
        name, meaning = _label(metric)[:-2], METRICS[metric].meaning
        notes.append(meaning if meaning.startswith(name) else f"{name}: {meaning}")
    if "psnr" in metrics:
        notes.append(
            f"In means and ranges a PSNR above {PSNR_CEILING:.2f} dB (that of rounding to 8 bits), the infinite one of "
            f"an unchanged image included, counts as {PSNR_CEILING:.2f} dB; ∞ is where all images are unchanged."
        )
    return notes


def strength_csv(table: StrengthTable) -> str:
    """Return every number as one tidy CSV: a row for each entry, severity and metric.

    Columns: family, entry, severity, metric, mean, sd, p5, p95 (six decimals), unchanged and images (counts).
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("family", "entry", "severity", "metric", "mean", "sd", "p5", "p95", "unchanged", "images"))
    for e, name in enumerate(table.entries):
        for s in range(5):
            for m, metric in enumerate(table.metrics):
                numbers = (f"{a[m, e, s]:.6f}" for a in (table.mean, table.deviation, table.low, table.high))
                counts = (table.unchanged[e, s], table.images)
                writer.writerow((get_entry(name).family, name, s + 1, metric, *numbers, *counts))
    return out.getvalue()


def notable_findings(findings: Sequence[Finding]) -> dict[tuple[str, str], list[Finding]]:
    """Return the notable findings by metric and what they are about, the largest first.

    Of findings about misalignment only the worst severity of each effect is taken.
    """
    groups = {}
    for kind, title in _KINDS.items():
        for metric in dict.fromkeys(f.metric for f in findings if f.kind == kind):
            notable = [f for f in findings if f.kind == kind and f.metric == metric and f.notable]
            if kind == "misalignment":
                worst = {f.effect: f for f in sorted(notable, key=lambda f: f.value)}
                notable = list(worst.values())
            if notable:
                groups[metric, title] = sorted(notable, key=lambda f: f.value, reverse=kind != "saturation")
    return groups


def findings_text(findings: Sequence[Finding], *, longest: int = 8) -> str:
    """Return the notable findings as Markdown, the largest of each kind first.

    Args:
        findings: as `crypsis.severity.findings.find_all` returns them.
        longest: how many sentences of one kind and metric are written out.
    """
    lines = []
    for (metric, title), notable in notable_findings(findings).items():
        lines += [f"**{METRIC_NAMES[metric]}: {title}: {len(notable)}**", ""]
        lines += [f"- {finding.text}" for finding in notable[:longest]]
        if len(notable) > longest:
            lines.append(f"- … and {len(notable) - longest} more, in summary.json")
        lines.append("")
    return "\n".join(lines) or "Nothing stands out: no entry falls back, saturates or has very uneven steps.\n"


def pair_table(sets: Sequence[PairStrength]) -> Table:
    """Return the strengths of existing degraded images: a row a set, and for each metric mean, range and spread.

    Args:
        sets: at least one, all in the same metrics.
    """
    metrics = list(sets[0].mean)
    leveled = any(one.severity is not None for one in sets)
    header = ["Degraded images", *(["Severity"] if leveled else [])]
    for metric in metrics:
        name, _, arrow = _label(metric).rpartition(" ")
        header += [f"{name} {arrow}", f"{name} sd"]
    header += ["Pairs", "Unchanged"]
    rows: list[tuple[Cell, ...]] = []
    for one in sets:
        cells: list[Cell] = [one.label, *([str(one.severity or "–")] if leveled else [])]
        for metric in metrics:
            ends = one.low[metric], one.high[metric]
            cells.append(_mean(metric, one.mean[metric], *ends, unchanged=one.unchanged == one.images))
            cells.append(_number(metric, one.deviation[metric]))
        rows.append((*cells, Number(one.images, decimals=0), Number(one.unchanged, decimals=0)))
    notes = [
        "Mean over the pairs with [low, high] = 5–95% range; sd = standard deviation over the pairs. Arrows point to "
        "where images are more degraded.",
        *_metric_notes(metrics),
        "Unchanged: pairs whose pixels are equal.",
    ]
    if len({one.images for one in sets}) > 1:
        notes.append("The rows are over different numbers of pairs, so they are of different images.")
    return Table("Measured strength of existing images", tuple(header), tuple(rows), tuple(notes))


def pair_csv(sets: Sequence[PairStrength]) -> str:
    """Return every number as one tidy CSV: a row for each set and metric.

    Columns: label, severity (empty where there is none), metric, mean, sd, p5, p95 (six decimals), unchanged and
    images (counts).
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("label", "severity", "metric", "mean", "sd", "p5", "p95", "unchanged", "images"))
    for one in sets:
        for metric in one.mean:
            numbers = (f"{found[metric]:.6f}" for found in (one.mean, one.deviation, one.low, one.high))
            writer.writerow((one.label, one.severity or "", metric, *numbers, one.unchanged, one.images))
    return out.getvalue()


def placement_text(placements: Sequence[Placement]) -> str:
    """Return where existing degraded images lie among the catalog entries, as Markdown; nothing for no placement."""
    if not placements:
        return ""
    lines = ["**On the same axis: native severities (s) of catalog entries, with their strength**", ""]
    lines += [f"- {one.text}" for one in placements]
    lines.append(
        "- The entries' strengths are those of the calibrations that come with Crypsis, means over the demo images. On "
        "your clean images they differ; `crypsis measure` without --against says how much."
    )
    return "\n".join(lines) + "\n"
