"""Tables of measured strength, and the findings as text.

The layout is that of "A Causally Grounded Taxonomy for Image Degradation Robustness Evaluation", Table I: a row an
entry, and for each metric its mean at severities 1..5; here a table for each family.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ..catalog import get_entry
from ..severity.calibration import PSNR_CEILING
from ..severity.findings import SATURATED, Finding, StrengthTable
from ..severity.strength import METRICS
from .tables import Cell, Number, Table

__all__ = ["findings_text", "strength_csv", "strength_tables"]

_NAMES = {"1-ssim": "1−SSIM", "psnr": "PSNR", "lpips": "LPIPS"}


def _label(metric: str) -> str:
    """Return a metric as a column says it, with the arrow to where stronger degradations are."""
    meaning = METRICS[metric]
    unit = f" {meaning.unit}" if meaning.unit else ""
    return f"{_NAMES.get(metric, metric)}{unit} {'↑' if meaning.rising else '↓'}"


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
            for m in range(len(table.metrics)):
                for s in range(5):
                    ends = (float(table.low[m, e, s]), float(table.high[m, e, s])) if spread else (None, None)
                    cells.append(Number(float(table.mean[m, e, s]), *ends))
            rows.append(tuple(cells))
        title = f"Measured strength of {family}, mean over {table.images} image{'s' * (table.images != 1)}"
        tables.append(Table(title, tuple(header), tuple(rows), tuple(_notes(table, indices, spread))))
    return tables


def _notes(table: StrengthTable, indices: Sequence[int], spread: bool) -> list[str]:
    notes = ["Columns s=1 to s=5 are native severities; arrows point to where a degradation is stronger."]
    if spread:
        notes.append("[low, high] = 5–95% range over images.")
    notes += [f"{_label(metric)[:-2]}: {METRICS[metric].meaning}" for metric in table.metrics]
    if "psnr" in table.metrics:
        notes.append(
            f"In means and ranges a PSNR above {PSNR_CEILING:.2f} dB (that of rounding to 8 bits), the infinite one of "
            f"an unchanged image included, counts as {PSNR_CEILING:.2f} dB."
        )
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


def findings_text(findings: Sequence[Finding], *, longest: int = 8) -> str:
    """Return the notable findings as Markdown, the largest of each kind first.

    Args:
        findings: as `crypsis.severity.findings.find_all` returns them.
        longest: how many sentences of one kind and metric are written out.
    """
    titles = {
        "monotonicity": "not monotone",
        "saturation": f"saturated steps, below {SATURATED:.0%} of the range",
        "unevenness": "uneven steps, by coefficient of variation",
        "misalignment": "the same severity, other strengths",
    }
    lines = []
    for kind, title in titles.items():
        for metric in dict.fromkeys(f.metric for f in findings if f.kind == kind):
            notable = [f for f in findings if f.kind == kind and f.metric == metric and f.notable]
            if kind == "misalignment":  # of each effect, its worst severity
                worst = {f.effect: f for f in sorted(notable, key=lambda f: f.value)}
                notable = list(worst.values())
            if not notable:
                continue
            notable.sort(key=lambda f: f.value, reverse=kind != "saturation")
            lines += [f"**{_NAMES.get(metric, metric)}: {title}: {len(notable)}**", ""]
            lines += [f"- {finding.text}" for finding in notable[:longest]]
            if len(notable) > longest:
                lines.append(f"- … and {len(notable) - longest} more, in summary.json")
            lines.append("")
    return "\n".join(lines) or "Nothing stands out: no entry falls back, saturates or has very uneven steps.\n"
