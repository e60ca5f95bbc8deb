"""The page of a measurement: what the severities of entries do, in one HTML file that opens offline and loads nothing.

Everything is made from the run folder's `run.json`, `summary.json` and `timing.jsonl`; no image is opened.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..catalog import get_entry
from ..catalog.entry import Entry
from ..errors import InputError
from ..severity.findings import SATURATED, Finding, StrengthTable
from ..severity.strength import METRICS
from ..taxonomy import Cause, Effect, Group
from .blocks import (
    fact_list,
    failure_list,
    in_prose,
    level_strip,
    parameter_table,
    read_seconds,
    report_page,
    rounded,
    sessions_block,
    switch,
    table_block,
    taxonomy_map,
    time_list,
)
from .markup import attributes, escape
from .strength_charts import (
    Curve,
    Scale,
    curve_chart,
    family_chart,
    family_swatch,
    index_definitions,
    ruler,
    shade,
    shade_legend,
)
from .strength_tables import METRIC_NAMES, notable_findings, strength_tables

__all__ = ["build_strength_report", "is_measurement"]

_RUN_SCHEMA = "crypsis.measurement/2"
_SUMMARY_SCHEMA = "crypsis.strengths/1"
_PAIRS_SCHEMA = "crypsis.pair-strengths/1"
_STATISTICS = ("mean", "sd", "p5", "p95")
_WRITTEN_OUT = 6


def is_measurement(folder: Path) -> bool:
    """Say whether a run folder is that of `crypsis measure`; what cannot be read is not."""
    try:
        content = json.loads((folder / "run.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("schema") == _RUN_SCHEMA


def build_strength_report(folder: Path, *, title: str | None = None) -> str:
    """Return a self-contained HTML page about a measurement of strength.

    The same folder gives the same page.

    Args:
        folder: a run folder of `crypsis measure`.
        title: heading; by default what was measured.

    Raises:
        InputError: the folder holds no finished measurement, or one of its files is damaged.
        UnknownNameError: an entry is not in this version's catalog.
    """
    run = _Measurement.open(folder)
    heading = title or "How strong is a severity?"
    sections = [
        ("summary", "In short", _headline(run)),
        ("curves", "Curves", _curves(run)),
        ("axis", "On one axis", _rulers(run)),
        ("map", "Map", _maps(run)),
        ("findings", "Findings", _findings(run)),
        ("tables", "All tables", _tables(run)),
        ("made", "How it was made", _provenance(run)),
    ]
    return report_page(
        heading,
        eyebrow="Crypsis report of measured strength",
        scope=_scope(run),
        sections=sections,
        data=_data(run),
        before=index_definitions(),
    )


@dataclass(frozen=True)
class _Measurement:
    """A measurement as read from its folder."""

    name: str
    plan: Mapping[str, Any]
    sessions: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any]
    table: StrengthTable
    findings: Sequence[Finding]
    failed: Mapping[str, str]
    seconds: Mapping[str, float]

    @classmethod
    def open(cls, folder: Path) -> _Measurement:
        run, summary = _read_json(folder / "run.json"), _read_json(folder / "summary.json")
        if summary.get("schema") == _PAIRS_SCHEMA:
            raise InputError(
                f"{folder}: is a measurement of images that exist (--against), of which there is no page; the same "
                "measure command prints its tables."
            )
        for name, content, schema in (("run.json", run, _RUN_SCHEMA), ("summary.json", summary, _SUMMARY_SCHEMA)):
            if content.get("schema") != schema:
                raise InputError(
                    f"{folder / name}: has schema {content.get('schema')!r}; this version reads {schema!r}."
                )
        try:
            plan, sessions = run["plan"], run["sessions"]
            table = _table(plan["metrics"], summary)
            findings = [Finding(**{**found, "value": float(found["value"])}) for found in summary["findings"]]
            failed = {str(file): str(reason) for file, reason in summary["failed"].items()}
            if set(plan["entries"]) != set(table.entries):
                raise ValueError("run.json has other entries")
            _ = plan["seed"], plan["limit"], plan["dataset"]["names_sha256"], summary["images"]
            _ = [(s["started"], s["versions"], s["machine"]) for s in sessions]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{folder}: summary.json or run.json is damaged ({error!r}).") from error
        return cls(
            folder.resolve().name,
            plan,
            sessions,
            summary,
            table,
            findings,
            failed,
            read_seconds(folder / "timing.jsonl"),
        )

    @cached_property
    def entries(self) -> list[Entry]:
        return [get_entry(name) for name in self.table.entries]

    @cached_property
    def families(self) -> list[str]:
        return list(dict.fromkeys(entry.family for entry in self.entries))

    @property
    def main(self) -> str:
        """The metric that is shown first and spoken of in short: the first that grows with strength."""
        return next((m for m in self.table.metrics if METRICS[m].rising), self.table.metrics[0])

    def curves(self, metric: str) -> list[Curve]:
        m = self.table.metrics.index(metric)
        statistics = (self.table.mean[m].tolist(), self.table.low[m].tolist(), self.table.high[m].tolist())
        return [
            Curve(entry.name, entry.title, entry.family, self.families.index(entry.family), *numbers)
            for entry, *numbers in zip(self.entries, *statistics, strict=True)
        ]

    def scale(self, metric: str, values: Sequence[float] | None = None) -> Scale:
        meaning = METRICS[metric]
        label = f"{METRIC_NAMES[metric]} {f'({meaning.unit})' if meaning.unit else ''}".rstrip()
        known = self.table.mean[self.table.metrics.index(metric)].ravel().tolist() if values is None else values
        return Scale.over(known, label=label, rising=meaning.rising)

    def found(self, kind: str) -> list[Finding]:
        """Return the findings of a kind in the main metric."""
        return [f for f in self.findings if f.kind == kind and f.metric == self.main]


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{file.parent}: no finished measurement is here ({file.name} is missing); give the folder that a measure "
            "command named by --out, or give that command again."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read ({error}).") from error
    if not isinstance(content, dict):
        raise InputError(f"{file}: is not of a measurement.")
    return content


def _table(metrics: Sequence[str], summary: Mapping[str, Any]) -> StrengthTable:
    """Return the table that `StrengthTable.to_dict` wrote."""
    entries = summary["entries"]
    if unknown := [metric for metric in metrics if metric not in METRICS]:
        raise ValueError(f"unknown metrics {unknown}")
    blocks = [
        np.array([[entries[entry][metric][name] for entry in entries] for metric in metrics], np.float64)
        for name in _STATISTICS
    ]
    unchanged = np.array([entries[entry]["unchanged"] for entry in entries], np.int64)
    shape = (len(metrics), len(entries), 5)
    if 0 in shape or any(b.shape != shape or not np.isfinite(b).all() for b in blocks) or unchanged.shape != shape[1:]:
        raise ValueError("not five numbers for each entry and metric")
    mean, deviation, low, high = blocks
    return StrengthTable(
        tuple(entries), tuple(metrics), int(summary["measured"]), mean, deviation, low, high, unchanged
    )


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _scope(run: _Measurement) -> str:
    names = ", ".join(METRIC_NAMES[metric] for metric in run.table.metrics)
    entries = f"{len(run.entries):,} degradation{'s' * (len(run.entries) != 1)}"
    families = f"{len(run.families)} {'families' if len(run.families) != 1 else 'family'}"
    return f"{entries} of {families} at 5 severities, measured on {_plural(run.table.images, 'image')} as {names}."


# In short


def _headline(run: _Measurement) -> str:
    cards = [_monotone_card(run), _ratio_card(run), _apart_card(run), _step_card(run)]
    shown = "".join(
        f'<article class="card"><h3>{escape(head)}</h3><p class="figure">{escape(figure)}</p>'
        f'<p class="sentence">{escape(sentence)}</p></article>'
        for head, figure, sentence in filter(None, cards)
    )
    return f'<p class="lead">{escape(_verdict(run))}</p><div class="cards">{shown}</div>'


def _verdict(run: _Measurement) -> str:
    levels = run.table.mean[run.table.metrics.index(run.main), :, 2]
    low, high = int(np.argmin(levels)), int(np.argmax(levels))
    if len(levels) == 1:
        return f"A severity is a rank, not a distance. Here is what the five of {_called(run.entries[0])} do to images."
    ends = [f"{_amount(levels[i])} ({_called(run.entries[i])})" for i in (low, high)]
    return (
        "A severity is a rank, not a distance: the one label “severity 3” stands for strengths from "
        f"{' to '.join(ends)} in {METRIC_NAMES[run.main]}."
    )


def _called(entry: Entry) -> str:
    return f"{entry.family}’s {in_prose(entry.title)}"


def _monotone_card(run: _Measurement) -> tuple[str, str, str]:
    found = run.found("monotonicity")
    falling = sorted((f for f in found if f.notable), key=lambda f: f.value)
    sentence = f"entries never get weaker, in mean {METRIC_NAMES[run.main]}, from one severity to the next."
    if falling:
        worst = falling[-1]
        sentence += (
            f" Worst: {_called(get_entry(worst.entry))}, which falls back by {worst.value:.0%} of its range at "
            f"severity {worst.severity}."
        )
    return "Order", f"{len(found) - len(falling)} of {len(found)}", sentence


def _ratio_card(run: _Measurement) -> tuple[str, str, str] | None:
    found = sorted((f for f in run.found("misalignment") if f.severity == 3), key=lambda f: f.value)
    if not found:
        return None
    worst = found[-1]
    effects = {effect.code: effect.title for effect in Effect}
    sentence = (
        f"is how many times stronger the strongest entry is than the weakest of the same effect at severity 3 (median "
        f"of {_plural(len(found), 'effect')}). Most in {effects[worst.effect or '']}: {_times(worst.value)}, "
        f"{_called(get_entry(worst.entry))} against {_called(get_entry(worst.other or ''))}."
    )
    return "Same severity", _times(statistics.median(f.value for f in found)), sentence


def _times(value: float) -> str:
    return f"×{value:.3g}" if value < 1000 else f"×{value:,.0f}" if math.isfinite(value) else "×∞"


def _apart_card(run: _Measurement) -> tuple[str, str, str] | None:
    """Count the pairs of one effect whose severities do not even overlap."""
    sign = 1 if METRICS[run.main].rising else -1
    levels = sign * run.table.mean[run.table.metrics.index(run.main)]
    pairs = apart = 0
    widest: tuple[float, int, int] = (0.0, 0, 0)
    for a, b in combinations(range(len(run.entries)), 2):
        if run.entries[a].effect is not run.entries[b].effect:
            continue
        pairs += 1
        gap, weak, strong = max(
            (float(levels[strong].min() - levels[weak].max()), weak, strong) for weak, strong in ((a, b), (b, a))
        )
        apart += gap > 0
        widest = max(widest, (gap, weak, strong))
    if not pairs:
        return None
    sentence = (
        "pairs of entries with the same effect do not overlap at all: every severity of the one is weaker than every "
        "severity of the other."
    )
    if apart:
        _, weak, strong = widest
        sentence += f" Widest apart: {_called(run.entries[weak])} below {_called(run.entries[strong])}."
    return "No overlap", f"{apart} of {pairs}", sentence


def _step_card(run: _Measurement) -> tuple[str, str, str]:
    saturated = [f for f in run.found("saturation") if f.notable]
    steps = sum(4 if f.severity is None else 1 for f in saturated)
    uneven = run.found("unevenness")
    return (
        "Steps",
        f"{steps} of {4 * len(run.entries)}",
        f"steps to the next severity do next to nothing (below {SATURATED:.0%} of the entry's range). "
        f"{sum(f.notable for f in uneven)} of {len(run.entries)} entries have very uneven steps.",
    )


# Charts


def _switch(run: _Measurement) -> str:
    if len(run.table.metrics) < 2:
        return ""
    return switch({m: (METRIC_NAMES[m], METRICS[m].meaning.partition(" (")[0]) for m in run.table.metrics}, run.main)


def _legend(run: _Measurement) -> str:
    items = "".join(f"<li>{family_swatch(i)}<bdi>{escape(name)}</bdi></li>" for i, name in enumerate(run.families))
    return f'<ul class="legend" aria-label="Families">{items}</ul>'


def _by_metric(run: _Measurement, content: Callable[[str], str]) -> str:
    """Return what `content` makes of each metric, of which the script shows one."""
    return "".join(
        f'<div class="panels"{attributes(data_metric=metric, hidden=metric != run.main)}>{content(metric)}</div>'
        for metric in run.table.metrics
    )


def _direction(scale: Scale, where: str) -> str:
    turned = "" if scale.rising else f"; the axis is turned around, since {scale.label} falls with strength"
    return f'<p class="axis">{escape(scale.label)}, mean over images: {where} is stronger{turned}</p>'


def _grouped(run: _Measurement, curves: Sequence[Curve]) -> dict[Group, list[Curve]]:
    groups: dict[Group, list[Curve]] = {group: [] for group in Group}
    for entry, curve in zip(run.entries, curves, strict=True):
        groups[entry.group].append(curve)
    return {group: members for group, members in groups.items() if members}


def _curves(run: _Measurement) -> str:
    def panels(metric: str) -> str:
        curves, scale = run.curves(metric), run.scale(metric)
        families = "".join(
            family_chart(name, [curve for curve in curves if curve.family == name], scale) for name in run.families
        )
        groups = "".join(
            curve_chart(f"{group.code} {group.title}", members, scale)
            for group, members in _grouped(run, curves).items()
        )
        return (
            f"{_direction(scale, 'up')}<h3>By family</h3>"
            f'<div class="grid">{families}</div><h3>By group of the taxonomy</h3><div class="grid wide">{groups}</div>'
        )

    return (
        "<p>Mean strength at the native severities, which are the digits. All panels of a metric share one axis. By "
        "family: thin, the entries; bold, their mean. By group: one line an entry; where there are three or fewer, the "
        f"band is the 5–95% range over images.{_empty_groups(run)}</p>"
        f'<div class="controls">{_legend(run)}{_switch(run)}</div>{_by_metric(run, panels)}'
    )


def _empty_groups(run: _Measurement) -> str:
    filled = {entry.group for entry in run.entries}
    empty = [f"{group.code} ({group.title})" for group in Group if group not in filled]
    return escape(f" No entry here: {', '.join(empty)}.") if empty else ""


def _rulers(run: _Measurement) -> str:
    def rulers(metric: str) -> str:
        scale = run.scale(metric)
        return _direction(scale, "right") + "".join(
            f'<div class="measured"><h3>{escape(f"{group.code} {group.title}")} '
            f"<small>{escape(_span(members))}</small></h3>{ruler(members, scale)}</div>"
            for group, members in _grouped(run, run.curves(metric)).items()
        )

    return (
        "<p>The five native severities of each entry, where they measure. In every group the entries are sorted by "
        "severity 3, the filled digit: what is level 3 here is level 1 there.</p>"
        f'<div class="controls">{_legend(run)}{_switch(run)}</div>{_by_metric(run, rulers)}'
    )


def _span(curves: Sequence[Curve]) -> str:
    middle = [curve.mean[2] for curve in curves]
    if len(middle) == 1:
        return f"severity 3 is {middle[0]:.3g}"
    return f"severity 3 lies from {min(middle):.3g} to {max(middle):.3g}"


# Map


def _maps(run: _Measurement) -> str:
    return (
        "<p>Mean strength by where a degradation arises and what one sees, over entries and severities; below it the "
        "means at severities 1 to 5. A darker field is stronger (in the dark scheme, a brighter one).</p>"
        f'<div class="controls"><span></span>{_switch(run)}</div>{_by_metric(run, lambda metric: _map(run, metric))}'
    )


def _map(run: _Measurement, metric: str) -> str:
    mean = run.table.mean[run.table.metrics.index(metric)]
    cells: dict[tuple[Cause, Effect], list[int]] = {}
    for index, entry in enumerate(run.entries):
        cells.setdefault((entry.cause, entry.effect), []).append(index)
    levels = {place: mean[indices].mean(axis=0).tolist() for place, indices in cells.items()}
    scale = run.scale(metric, [value for five in levels.values() for value in five])
    shown = {place: _map_cell(run, indices, levels[place], scale) for place, indices in cells.items()}
    label = f"{scale.label}, mean over {_plural(run.table.images, 'image')}, by effect (rows) and cause (columns)"
    return f'<p class="axis">{escape(label)}</p>{taxonomy_map(label, shown)}{shade_legend(scale)}'


def _map_cell(run: _Measurement, indices: Sequence[int], levels: Sequence[float], scale: Scale) -> str:
    mean = statistics.fmean(levels)
    names = ", ".join(run.entries[i].name for i in indices)
    count = f"{len(indices)} {'entries' if len(indices) != 1 else 'entry'}"
    strip = level_strip({s: f"{level:.3g}" for s, level in enumerate(levels, 1)}, [shade(v, scale) for v in levels])
    return (
        f'<td class="{shade(mean, scale)}"{attributes(title=names)}>'
        f'<span class="mean"><b>{_amount(mean)}</b><small>{count}</small></span>{strip}</td>'
    )


def _amount(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


# Findings and tables


def _findings(run: _Measurement) -> str:
    groups = notable_findings(run.findings)

    def blocks(metric: str) -> str:
        own = {title: found for (of, title), found in groups.items() if of == metric}
        if not own:
            return "<p>Nothing stands out: no entry falls back, saturates or has very uneven steps.</p>"
        return f'<div class="findings">{"".join(_finding_block(title, own[title]) for title in own)}</div>'

    return (
        "<p>Computed from the means over images, the most striking first; of misaligned effects, their worst severity. "
        "Definitions stand under “How it was made”.</p>"
        f'<div class="controls"><span></span>{_switch(run)}</div>{_by_metric(run, blocks)}'
    )


def _finding_block(title: str, found: Sequence[Finding]) -> str:
    first, rest = found[:_WRITTEN_OUT], found[_WRITTEN_OUT:]
    more = f"<details><summary>… and {len(rest)} more</summary>{_finding_list(rest)}</details>" if rest else ""
    heading = f"{title[:1].upper()}{title[1:]}"
    return f"<div><h3>{escape(heading)} <small>{len(found)}</small></h3>{_finding_list(first)}{more}</div>"


def _finding_list(found: Sequence[Finding]) -> str:
    return f"<ul>{''.join(f'<li>{escape(f.text)}</li>' for f in found)}</ul>"


def _tables(run: _Measurement) -> str:
    tables = strength_tables(run.table)
    return "<p>As Table I of the taxonomy's paper: a table for each family.</p>" + "".join(
        table_block(table, f"family-{index}") for index, table in enumerate(tables, 1)
    )


# How it was made


_DEFINITIONS = {
    "Not monotone": "The mean at a severity is weaker than at the one before; the share is of the range of the five "
    "means.",
    "Saturated": f"A step between two severities below {SATURATED:.0%} of the range of the entry's five means.",
    "Uneven": "Coefficient of variation of the four steps' sizes: 0 for evenly spaced severities, 1.73 where one step "
    "does it all; named from 0.5 up.",
    "The same severity, other strengths": "The largest mean strength over the smallest among the entries of one effect "
    "at one severity; named from 2 up.",
}


def _provenance(run: _Measurement) -> str:
    plan, data = run.plan, run.plan["dataset"]
    facts = {
        "Run": run.name,
        "Images": f"{run.table.images} measured of {run.summary['images']}",
        "Fingerprint of names": data["names_sha256"],
        "Limit": "none" if plan["limit"] is None else f"{plan['limit']} images",
        "Metrics": [METRIC_NAMES[metric] for metric in run.table.metrics],
        "Degradations": len(run.entries),
        "Seed": plan["seed"],
    }
    metrics = {METRIC_NAMES[metric]: METRICS[metric].meaning for metric in run.table.metrics}
    failed = dict(map(_without_folder, run.failed.items()))
    return "".join(
        (
            failure_list(
                f"{len(failed):,} failed", "What failed under any condition is left out of all numbers.", failed
            ),
            f'<div class="made"><div><h3>Plan</h3>{fact_list(facts)}</div>'
            "<div><h3>Time</h3>"
            f"{time_list(run.seconds, run.table.images, run.table.images * len(run.entries) * 5)}</div></div>",
            f"<details><summary>Definitions</summary>{fact_list({**metrics, **_DEFINITIONS})}</details>",
            sessions_block(run.name, run.sessions),
            parameter_table("Degradations", {entry.name: entry.title for entry in run.entries}, plan["entries"]),
        )
    )


def _without_folder(failure: tuple[str, str]) -> tuple[str, str]:
    """Return a file and what is said of it without its folder, which is no business of the page's readers."""
    file, reason = failure
    name = file.replace("\\", "/").rpartition("/")[2]
    return name, reason.replace(file, name)


def _data(run: _Measurement) -> dict[str, Any]:
    """Return what the page embeds, numbers to six digits; the findings follow from it."""
    return {
        "schema": "crypsis.strength-report/1",
        "name": run.name,
        "plan": run.plan,
        "sessions": [{key: s[key] for key in ("started", "versions", "machine")} for s in run.sessions],
        "summary": {key: rounded(run.summary[key]) for key in ("images", "measured", "entries")},
        "seconds": rounded(run.seconds),
    }
