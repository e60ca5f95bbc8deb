"""The part of a report that says where models stop seeing: a heat map of camouflage × corruption, model by model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..results import Interval
from .blocks import scroll, table_block
from .camouflage_results import Level, ModelByCamouflage, ResultsByCamouflage
from .camouflage_tables import (
    camouflage_tables,
    group_label,
    level_text,
    metric_label,
    strength_label,
    threshold_text,
)
from .charts import swatch
from .markup import attributes, escape
from .strength_charts import Scale, shade, shade_legend
from .tables import Number

__all__ = ["camouflage_section"]

_NAMES = ("groups", "severities", "strengths", "stops", "correlations")


def camouflage_section(comparison: Any, found: ResultsByCamouflage) -> tuple[str, str, str]:
    """Return identifier, heading and content of the section.

    Args:
        comparison: runs of segmenters or of detectors side by side.
        found: their results by camouflage.
    """
    label = metric_label(found)
    every = [cell["value"] for model in found.models for cell in _cells(model)]
    values = [value for value in every if value is not None]
    content = [
        f"<p>Where does a model stop seeing? The images in {len(found.groups)} groups by camouflage "
        f"({escape(found.scores.name)}, from {escape(found.scores.file.name)}), the easiest above; each field is the "
        f"mean {escape(label)} of a group, clean and as corruptions grow. A model counts as blind from the first field "
        f"of a row that is below {escape(threshold_text(found))}: there stands an upright bar. Numbers above that line "
        "are bold.</p>"
    ]
    if values:
        scale = Scale.over(values, label=label, rising=True)
        content += [_model(found, i, model, scale) for i, model in enumerate(found.models)]
        content.append(shade_legend(scale))
    content.append(f'<p class="axis">{escape(" ".join(found.notes))}</p>')
    tables = camouflage_tables(comparison, found)
    names = [name for name in _NAMES if name != "strengths" or found.strengths]
    content += [
        table_block(table, f"camouflage-{name}") for table, name in zip(tables, names, strict=False)
    ]  # detectors have no correlations, which come last
    return "camouflage", "By camouflage", "".join(content)


def _cells(model: ModelByCamouflage) -> list[Interval]:
    surfaces = (*model.by_severity, *model.by_strength)
    return [*model.clean, *(cell for row in surfaces for cell in row)]


def _model(found: ResultsByCamouflage, index: int, model: ModelByCamouflage, scale: Scale) -> str:
    name = model.result.label
    severities = [str(severity) for severity in found.severities]
    maps = [
        _map(found, model, scale, f"{name} by severity", severities, model.by_severity, model.stops, severities[-1])
    ]
    if found.strengths:
        bins = [strength_label(ends) for ends in found.strengths]
        last = f"{found.strengths[-1][1]:.2f}"
        title = f"{name} by measured strength, 1−SSIM"
        maps.append(_map(found, model, scale, title, bins, model.by_strength, model.stops_strength, last))
    return (
        f'<div class="sight"><h3>{swatch(index)}<bdi>{escape(name)}</bdi></h3>'
        f'<p class="sentence">{escape(_sentence(found, model))}</p><div class="surfaces">{"".join(maps)}</div></div>'
    )


def _sentence(found: ResultsByCamouflage, model: ModelByCamouflage) -> str:
    """Say where a model stops seeing the easiest and the hardest images."""
    label = metric_label(found)
    if model.threshold is None:
        return "Sees nothing even on the easiest clean images: there is nothing to lose."

    def said(level: Level | None) -> str:
        if level is None:
            return "there is nothing to find"
        if level.value == 0:
            return "it is below that even without corruption"
        if level.value > len(found.severities):
            return f"it stays above that up to severity {found.severities[-1]}"
        return f"it falls below that at severity {found.severities[level.value - 1]}"

    easiest, hardest = (f"clean {Number(model.clean[g]['value']).text}, {said(model.stops[g])}" for g in (0, -1))
    return f"The line is at {label} {model.threshold:.3f}. On the easiest images, {easiest}; on the hardest, {hardest}."


def _map(
    found: ResultsByCamouflage,
    model: ModelByCamouflage,
    scale: Scale,
    title: str,
    labels: Sequence[str],
    rows: Sequence[Sequence[Interval]],
    stops: Sequence[Level | None],
    last: str,
) -> str:
    """Return a heat map: a row for each group, columns clean and the levels, and in words where it stops."""
    columns = ["clean", *labels]
    head = "".join(f'<th scope="col">{escape(column).replace("–", "–<wbr>")}</th>' for column in columns)
    body = []
    for g, group in enumerate(found.groups):
        fields = []
        for k, cell in enumerate((model.clean[g], *rows[g])):
            stop = stops[g]
            first = stop is not None and stop.value == k
            fields.append(_field(cell, columns[k], scale, model.threshold, first=first))
        value, _, interval = level_text(stops[g], labels, last).partition(" [")
        small = f"<br><small>[{escape(interval)}</small>" if interval else ""
        name, _, ends = group_label(group).partition(" (")
        body.append(
            f'<tr><th scope="row">{escape(name)}<br><small>{escape(ends.rstrip(")"))}, {model.images[g]:,} images'
            f'</small></th>{"".join(fields)}<td class="words">{escape(value)}{small}</td></tr>'
        )
    table = (
        f'<table class="map surface"><caption>{escape(title)}</caption><thead><tr><th scope="col">Camouflage</th>'
        f'{head}<th scope="col">Blind from</th></tr></thead><tbody>{"".join(body)}</tbody></table>'
    )
    return scroll(title, table)


def _field(cell: Interval, column: str, scale: Scale, threshold: float | None, *, first: bool) -> str:
    number = Number.of(cell)
    value = number.value
    if value is None:
        return f'<td class="none">{number.text}</td>'
    below = threshold is not None and value < threshold
    classes = f"{shade(value, scale)}{' stop' if first else ''}"
    text = f"{value:.2f}" if below else f"<b>{value:.2f}</b>"
    return f'<td class="{classes}"{attributes(title=f"{column}: {number.text} {number.interval}".strip())}>{text}</td>'
