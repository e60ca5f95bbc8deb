"""The report of a detection benchmark: one HTML file that opens offline, prints, and loads nothing."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..detection_results import DETECTION_RUN_SCHEMA, DetectionRun
from ..metrics.detection import SCORES, rank_changes
from ..taxonomy import Cause, Effect
from .blocks import (
    fact_list,
    failure_list,
    image_tag,
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
    watermark,
)
from .camouflage_results import CamouflageScores, detections_by_camouflage
from .camouflage_section import camouflage_section
from .camouflage_tables import camouflage_document
from .charts import Bar, Series, bar_chart, chart_definitions, line_chart, meter, swatch, value_range
from .comparison import ModelResult
from .detection_charts import Frame, bundle_chart, named_chart
from .detection_comparison import (
    SCORE_LABELS,
    SCORE_TITLES,
    DetectionComparison,
    compare_detections,
    place_title,
)
from .detection_tables import build_detection_tables
from .markup import attributes, escape
from .pictures import WorstLoss, read_detection_pictures
from .strength_charts import Scale, family_swatch, index_definitions, shade, shade_legend
from .tables import Cell, Number, Table

__all__ = ["build_detection_report", "is_detection"]

CHART_METRICS = ("ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large", "ar100")
"""What the charts by severity can show."""
_PAGE_BYTES = 1_490_000
"""Of the whole page; pictures get what the rest leaves, but for their captions."""
_FEW_IMAGES = 100
_NAMED = 6
_WORST_BARS = 15
_MILDEST_BARS = 5
_MOST_CATEGORIES = 120
_MOST_PICTURES = 8


def is_detection(folder: Path) -> bool:
    """Say whether a run folder is that of a detection benchmark; what cannot be read is not."""
    try:
        content = json.loads((folder / "run.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("schema") == DETECTION_RUN_SCHEMA


def build_detection_report(
    runs: Sequence[DetectionRun], *, title: str | None = None, camouflage: CamouflageScores | None = None
) -> str:
    """Return a self-contained HTML page about one or several detection runs.

    Everything is made from the run folders alone. The same folders give the same page.

    Args:
        runs: run folders over the same images, objects, degradations, seed and rules.
        title: heading; by default the benchmark and the data set.
        camouflage: scores of the images, to show the results by camouflage as well.

    Raises:
        InputError: the runs cannot be compared, nothing was detected, the scores are not of these images, or a run's
            pictures are not as they should be.
        UnknownNameError: an entry is not in this version's catalog.
    """
    comparison = compare_detections(runs)
    heading = title or f"COCO-Degradation on {comparison.plan['dataset']['name']}"
    before = [
        ("summary", "In short", _headline(comparison)),
        ("map", "Map", _maps(comparison)),
        ("severity", "By severity", _by_severity(comparison)),
        ("strength", "By strength", _by_strength(comparison)),
        ("ranking", "By degradation", _ranking(comparison)),
    ]
    data = _data(comparison)
    if camouflage is not None:
        by_camouflage = detections_by_camouflage(comparison, camouflage)
        before.append(camouflage_section(comparison, by_camouflage))
        data["camouflage"] = rounded(camouflage_document(by_camouflage))
    if len(comparison.results) > 1:
        before.append(("ranks", "Ranks", _ranks(comparison)))
    after = [("tables", "All tables", _tables(comparison)), ("made", "How it was made", _provenance(comparison))]

    def page(*pictures: tuple[str, str, str]) -> str:
        return report_page(
            heading,
            eyebrow="Crypsis robustness report",
            scope=_scope(comparison),
            sections=[*before, *pictures, *after],
            data=data,
            before=chart_definitions() + index_definitions() + watermark(comparison.warnings(), comparison.complete),
        )

    room = (_PAGE_BYTES - len(page().encode())) * 3 // 4  # as Base64, three bytes take four
    return page(("worst", "Worst images", _worst(comparison, room)))


def _count(number: int, word: str, plural: str = "") -> str:
    return f"{number:,} {word if number == 1 else plural or f'{word}s'}"


def _scope(comparison: DetectionComparison) -> str:
    summary = comparison.summaries[0]
    return (
        f"{_count(len(comparison.results), 'detector')} on {_count(summary['images'], 'image')} with "
        f"{_count(summary['objects'], 'object')}, clean and under {_count(len(comparison.entries), 'degradation')} at "
        f"{_count(len(comparison.severities), 'severity', 'severities')}."
    )


def _points(change: float) -> str:
    return f"{100 * change:+.1f}".replace("-", "−")


# In short


def _headline(comparison: DetectionComparison) -> str:
    top = value_range((r.value("conditions", "ap", "clean") for r in comparison.results), zero=True)[1]
    cards = "".join(_card(comparison, i, result, top) for i, result in enumerate(comparison.results))
    images = comparison.summaries[0]["images"]
    few = (
        f"<p>With {_count(images, 'image')}, intervals are wide and differences of a few points mean little.</p>"
        if images < _FEW_IMAGES
        else ""
    )
    overall = build_detection_tables(comparison)[0]
    return (
        f'<p class="lead">{escape(_verdict(comparison))}</p>{few}<div class="cards">{cards}</div>'
        f"{table_block(overall, 'overall')}"
    )


def _verdict(comparison: DetectionComparison) -> str:
    """Say in plain words how much is left, or who keeps most and who is best under degradation."""
    results = comparison.results
    kept = [(value, r.label) for r in results if (value := r.value("retention", "ap")) is not None]
    best = [(value, r.label) for r in results if (value := r.value("corrupted", "ap")) is not None]
    if not kept or not best:
        return "No detector finds anything in clean images, so there is nothing that degradation could take."
    share, keeper = max(kept)
    score, leader = max(best)
    if len(results) == 1:
        clean = results[0].value("conditions", "ap", "clean")
        return (
            f"On average over {_count(len(comparison.entries), 'degradation')}, {keeper} keeps {100 * share:.1f}% of "
            f"its average precision: AP falls from {clean:.3f} to {score:.3f}."
            if share < 1
            else f"Degradation takes nothing from {keeper} on average: it keeps {100 * share:.1f}% of its AP."
        )
    if keeper == leader:
        return (
            f"{keeper} keeps the largest share of its clean AP ({100 * share:.1f}%) and also has the highest AP under "
            f"degradation ({score:.3f})."
        )
    return (
        f"{keeper} keeps the largest share of its clean AP ({100 * share:.1f}%); {leader} has the highest AP under "
        f"degradation ({score:.3f})."
    )


def _card(comparison: DetectionComparison, index: int, result: ModelResult, most: float) -> str:
    retention = Number.of(result.interval("retention", "ap"), "percent")
    clean = Number.of(result.interval("conditions", "ap", "clean"))
    corrupted = Number.of(result.interval("corrupted", "ap"))
    interval = f" <small>{escape(retention.interval)}</small>" if retention.interval else ""
    return (
        f'<article class="card"><h3>{swatch(index)}<bdi>{escape(result.label)}</bdi></h3>'
        f'<p class="figure">{escape(retention.text)}{interval}</p>'
        f"{meter(clean.value, corrupted.value, series=index, label=result.label, most=most)}"
        f'<p class="sentence"><b>AP {escape(f"{clean.text} {clean.interval}")} → mPC '
        f"{escape(f'{corrupted.text} {corrupted.interval}')}</b></p>"
        f'<p class="sentence">{escape(_sentence(comparison, result))}</p></article>'
    )


def _sentence(comparison: DetectionComparison, result: ModelResult) -> str:
    """Name the worst cause, effect and entry of a detector."""
    if result.value("retention", "ap") is None:
        return "Has a clean AP of 0.000: there is nothing that degradation could take."
    worst = []
    for place in ("cause", "effect"):
        found = {k: t["ap"]["value"] for k, t in result.scores["places"][place].items() if t["ap"]["value"] is not None}
        if len(found) > 1:
            label = min(found, key=found.__getitem__)
            worst.append(f"{place} {place_title(place, label)} ({_points(found[label])})")
    drops = comparison.drops(result)
    name = next(iter(drops))
    if drops[name] > -0.0005:
        return "No degradation lowers it by a tenth of a point."
    entry = comparison.entries[name]
    worst.append(f"degradation {entry.title}, {entry.family} ({_points(drops[name])})")
    return f"Worst, in points of AP: {'; '.join(worst)}."


# What is shown of one detector or metric at a time


def _metrics(comparison: DetectionComparison) -> list[str]:
    """Return the metrics that say anything."""
    return [m for m in CHART_METRICS if any(r.value("conditions", m, "clean") is not None for r in comparison.results)]


def _metric_switch(comparison: DetectionComparison) -> str:
    return switch({m: (SCORE_LABELS[m], SCORE_TITLES[m]) for m in _metrics(comparison)}, "ap")


def _detector_switch(comparison: DetectionComparison) -> str:
    if len(comparison.results) < 2:
        return ""
    choices = {str(i): (result.label, result.label) for i, result in enumerate(comparison.results)}
    return switch(choices, "0", what="Detector", key="pick")


def _by_metric(comparison: DetectionComparison, content: Callable[[str], str]) -> str:
    return "".join(
        f'<div class="panels"{attributes(data_metric=metric, hidden=metric != "ap")}>'
        f'<p class="axis">{escape(f"{SCORE_LABELS[metric]}, {SCORE_TITLES[metric]}: higher is better")}</p>'
        f"{content(metric)}</div>"
        for metric in _metrics(comparison)
    )


def _by_detector(comparison: DetectionComparison, content: Callable[[ModelResult], str]) -> str:
    several = len(comparison.results) > 1
    return "".join(
        f"<div{attributes(data_model=i, hidden=i > 0)}>"
        f"{f'<h3><bdi>{escape(result.label)}</bdi></h3>' if several else ''}{content(result)}</div>"
        for i, result in enumerate(comparison.results)
    )


def _controls(*parts: str) -> str:
    return f'<div class="controls">{"".join(parts)}</div>' if any(parts) else ""


def _legend(comparison: DetectionComparison, *, bar: bool = False) -> str:
    if len(comparison.results) < 2:
        return ""
    items = "".join(
        f"<li>{swatch(i, bar=bar)}<bdi>{escape(r.label)}</bdi></li>" for i, r in enumerate(comparison.results)
    )
    return f'<ul class="legend" aria-label="Detectors">{items}</ul>'


def _families(comparison: DetectionComparison) -> str:
    items = "".join(
        f"<li>{family_swatch(i)}<bdi>{escape(f)}</bdi></li>" for i, f in enumerate(comparison.members("family"))
    )
    return f'<ul class="legend" aria-label="Families">{items}</ul>'


def _moving(comparison: DetectionComparison) -> str:
    return f'<p class="axis">{escape(comparison.moving)}</p>' if comparison.moving else ""


# Map


def _maps(comparison: DetectionComparison) -> str:
    drops = {result.label: _cells(comparison, result) for result in comparison.results}
    every = [max(-change, 0.0) for cells in drops.values() for levels in cells.values() for change in levels]
    if not every:
        return "<p>No detector finds anything in clean images, so there is no drop to map.</p>"
    scale = Scale.over(every, label="AP lost", rising=True)
    return (
        "<p>Change of AP against clean images by where a degradation arises and what one sees, over entries and "
        "severities; below it the severities one by one. A darker field loses more (in the dark scheme, a brighter "
        f"one); a gain has the shade of no loss.</p>{_controls('<span></span>', _detector_switch(comparison))}"
        + _by_detector(comparison, lambda result: _map(comparison, result, drops[result.label], scale))
        + shade_legend(scale)
    )


def _cells(comparison: DetectionComparison, result: ModelResult) -> dict[str, list[float]]:
    """Return for each cause-effect the change of AP at every severity, the mean over its entries."""
    clean = result.value("conditions", "ap", "clean")
    found = {}
    for cell, entries in comparison.members("cell").items():
        means = comparison.mean_path(result, entries, "ap")[1:]
        known = [mean for mean in means if mean is not None]
        if clean is not None and len(known) == len(means):
            found[cell] = [mean - clean for mean in known]
    return found


def _map(
    comparison: DetectionComparison, result: ModelResult, cells: Mapping[str, Sequence[float]], scale: Scale
) -> str:
    causes, effects = {cause.code: cause for cause in Cause}, {effect.code: effect for effect in Effect}
    members = comparison.members("cell")
    shown = {}
    for cell, levels in cells.items():
        number = Number.of(result.scores["places"]["cell"][cell]["ap"], "delta")
        said = {s: Number(level, style="delta").text for s, level in zip(comparison.severities, levels, strict=True)}
        strip = level_strip(said, [shade(-level, scale) for level in levels])
        title = f"{number.text} {number.interval}: {', '.join(members[cell])}"
        cause, _, effect = cell.partition("-")
        shown[causes[cause], effects[effect]] = (
            f'<td class="{shade(-(number.value or 0.0), scale)}"{attributes(title=title)}><span class="mean">'
            f"<b>{number.text}</b><small>{_count(len(members[cell]), 'entry', 'entries')}</small></span>{strip}</td>"
        )
    return taxonomy_map(f"Change of AP of {result.label} by effect (rows) and cause (columns)", shown)


# By severity


def _by_severity(comparison: DetectionComparison) -> str:
    several = len(comparison.results) > 1
    each = (
        "By group: one line a detector, the mean of the group’s degradations."
        if several
        else "By group: one line a degradation, in the color of its family."
    )
    return (
        "<p>How the score falls as degradations grow; panels of a kind share one axis. Bands are 95% bootstrap "
        "intervals over images, cut off at the ends of the axis. By family: thin, the degradations; bold, their mean, "
        "with the severities. "
        f"{each} Severity is a rank, not a distance.</p>"
        f"{_controls(_legend(comparison) or _families(comparison), _metric_switch(comparison))}"
        f"{_by_metric(comparison, partial(_severity_panels, comparison))}{_moving(comparison)}"
    )


def _severity_panels(comparison: DetectionComparison, metric: str) -> str:
    results, entries = comparison.results, list(comparison.entries)
    positions = ["clean", *map(str, comparison.severities)]
    values = (r.value("conditions", metric, c) for r in results for e in entries for c in comparison.path(e))
    overall = [_overall(comparison, result, metric) for result in results]
    y_range = value_range(values, zero=True)
    frame = Frame(positions, (0.0, float(len(positions) - 1)), "severity", y_range, SCORE_LABELS[metric], ranks=True)

    def mean(result: ModelResult, label: str, names: Sequence[str]) -> Series:
        return _plain(label, comparison.mean_path(result, names, metric))

    def families(result: ModelResult) -> str:
        return "".join(
            bundle_chart(
                f"{family} ({len(names)})",
                [_path(comparison, result, name, metric) for name in names],
                mean(result, f"{family}, mean", names),
                frame,
                series=index,
            )
            for index, (family, names) in enumerate(comparison.members("family").items())
        )

    groups = comparison.members("group")
    titles = {code: place_title("group", code) for code in groups}
    if len(results) > 1:
        lines = {"All degradations": overall}
        lines |= {titles[code]: [mean(r, r.label, names) for r in results] for code, names in groups.items()}
        span = value_range((v for series in lines.values() for one in series for v in one.values), zero=True)
        of_groups = "".join(
            line_chart(title, positions, series, y_range=span, y_label=SCORE_LABELS[metric], brief=True)
            for title, series in lines.items()
        )
        panels = f'<div class="grid">{of_groups}</div>'
        by_family = _by_detector(comparison, lambda result: f'<div class="grid">{families(result)}</div>')
        return (
            f"<h3>By group of the taxonomy</h3>{panels}<h3>By family</h3>"
            f"{_controls(_families(comparison), _detector_switch(comparison))}{by_family}"
        )
    families_in_order = list(comparison.members("family"))
    of_groups = "".join(
        named_chart(
            titles[code],
            [_path(comparison, results[0], name, metric) for name in names],
            frame,
            colors=[families_in_order.index(comparison.entries[name].family) for name in names],
        )
        for code, names in groups.items()
    )
    first = line_chart("All degradations", positions, overall, y_range=y_range, y_label=SCORE_LABELS[metric])
    return (
        f'<h3>By family</h3><div class="grid">{first}{families(results[0])}</div>'
        f'<h3>By group of the taxonomy</h3><div class="grid wide">{of_groups}</div>'
    )


def _overall(comparison: DetectionComparison, result: ModelResult, metric: str) -> Series:
    """Return a detector's mean over all degradations, which has intervals."""
    found = [result.interval("conditions", metric, "clean")]
    found += [result.interval("severities", metric, str(severity)) for severity in comparison.severities]
    return Series(result.label, [i["value"] for i in found], [i["low"] for i in found], [i["high"] for i in found])


def _path(
    comparison: DetectionComparison,
    result: ModelResult,
    entry: str,
    metric: str,
    places: Sequence[float] | None = None,
) -> Series:
    values = [result.value("conditions", metric, condition) for condition in comparison.path(entry)]
    return _plain(comparison.titles[entry], values, places)


def _plain(label: str, values: Sequence[float | None], places: Sequence[float] | None = None) -> Series:
    """Return a line without intervals."""
    nothing = [None] * len(values)
    return Series(label, values, nothing, nothing, places)


# By strength


def _by_strength(comparison: DetectionComparison) -> str:
    strengths = {
        name: found
        for name in comparison.entries
        if (found := next((s for r in comparison.results if (s := r.strengths(comparison.path(name)))), None))
    }
    if not strengths:
        return (
            "<p>Strength was not measured: these runs read saved detections only, so no image was degraded, or "
            "<code>--strength-images 0</code> was given.</p>"
        )
    x_range = value_range((place for path in strengths.values() for place in path), zero=True)
    # half of the entries become at least as strong as this, so that they can be compared there
    level = statistics.median(max(path) for path in strengths.values())
    measured = max(summary["measured"] for summary in comparison.summaries)
    return (
        "<p>AP against what the severities, which are the digits, do to these images: 1−SSIM, 0 where nothing "
        f"changed, mean over {_count(measured, 'image')}. One axis serves all panels. Named are the {_NAMED} of each "
        "family that cost most; the others are gray. A line that lies low at the left costs much for what it does.</p>"
        f"{_controls('<span></span>', _detector_switch(comparison))}"
        + _by_detector(comparison, lambda result: _strength_panels(comparison, result, strengths, x_range, level))
    )


def _strength_panels(
    comparison: DetectionComparison,
    result: ModelResult,
    strengths: Mapping[str, Sequence[float]],
    x_range: tuple[float, float],
    level: float,
) -> str:
    values = (result.value("conditions", "ap", c) for name in strengths for c in comparison.path(name))
    positions = ["clean", *map(str, comparison.severities)]
    frame = Frame(positions, x_range, "1−SSIM", value_range(values, zero=True), "AP", ranks=False)
    order = [name for name in comparison.drops(result) if name in strengths]
    charts = []
    for family, names in comparison.members("family").items():
        lines = {n: _path(comparison, result, n, "ap", strengths[n]) for n in order if n in names}
        named = list(lines)[:_NAMED]
        rest = [line for name, line in lines.items() if name not in named]
        if lines:
            charts.append(
                named_chart(f"{family} ({len(lines)})", [lines[n] for n in named], frame, threads=rest, large=True)
            )
    reached = {
        name: value for name in order if (value := result.at_strength("ap", comparison.path(name), level)) is not None
    }
    said = ""
    if len(reached) > 1:
        ranked = sorted(reached, key=reached.__getitem__)
        most, least = (f"{comparison.titles[n]} (AP {reached[n]:.3f})" for n in (ranked[0], ranked[-1]))
        said = (
            f"At equal strength, 1−SSIM {level:.3f}, which {len(reached)} of {len(comparison.entries)} degradations "
            f"reach, {most} costs most and {least} least, interpolated between severities."
        )
    grid = f'<div class="grid">{"".join(charts)}</div>'
    return f'<div class="panels">{grid}<p class="sentence">{escape(said)}</p></div>'


# By degradation


def _ranking(comparison: DetectionComparison) -> str:
    drops = {result.label: comparison.drops(result) for result in comparison.results}
    means = {
        name: statistics.fmean(known)
        for name in comparison.entries
        if (known := [found[name] for found in drops.values() if name in found])
    }
    order = sorted(means, key=means.__getitem__)
    span = value_range((-found[name] for found in drops.values() for name in found), zero=True)
    if not order:
        return "<p>No detector finds anything in clean images, so there is no drop to rank.</p>"

    parts: dict[str, tuple[list[str], ...]]

    def chart(title: str, names: Sequence[str]) -> str:
        groups = {
            comparison.titles[name]: [
                Bar(label, -found[name] if name in found else None) for label, found in drops.items()
            ]
            for name in names
        }
        return bar_chart(title, groups, x_range=span, x_label="AP lost", room=218.0) if names else ""

    rest = len(order) - _WORST_BARS - _MILDEST_BARS
    if rest > 0:
        half = (_WORST_BARS + 1) // 2
        parts = {"Most": (order[:half], order[half:_WORST_BARS]), "Least": (order[-_MILDEST_BARS:],)}
        what = f"The {_WORST_BARS} that cost most and the {_MILDEST_BARS} that cost least; all are in the tables."
    else:
        half = (len(order) + 1) // 2
        parts, what = {"Most": (order[:half], order[half:])}, ""
    several = ", in order of the mean over the detectors" if len(drops) > 1 else ""
    charts = "".join(
        f'<h3>{title}</h3><div class="grid">{"".join(chart(f"{title} AP lost", names) for names in columns)}</div>'
        for title, columns in parts.items()
    )
    return (
        f"<p>AP lost against clean images, mean over the severities{several}. {what}</p>"
        f"{_controls(_legend(comparison, bar=True))}"
        f'<div class="panels">{charts}</div>{_moving(comparison)}'
    )


# Ranks


def _ranks(comparison: DetectionComparison) -> str:
    """Say how the order of detectors changes between clean and degraded images."""
    found = {
        r.label: (clean, corrupted)
        for r in comparison.results
        if (clean := r.value("conditions", "ap", "clean")) is not None
        and (corrupted := r.value("corrupted", "ap")) is not None
    }
    if len(found) < 2:
        return "<p>Fewer than two detectors have scores to rank.</p>"
    before, after = [scores[0] for scores in found.values()], [scores[1] for scores in found.values()]
    ranks = rank_changes(list(found), before, after)
    if ranks.swaps:
        swaps = "; ".join(f"{a} is better on clean images, {b} under degradation" for a, b in ranks.swaps[:5])
        more = f"; and {len(ranks.swaps) - 5} more pairs" if len(ranks.swaps) > 5 else ""
        said = f"{_count(len(ranks.swaps), 'pair')} of {math.comb(len(found), 2)} change places: {swaps}{more}."
    else:
        said = "No pair changes places: who is better on clean images is also better under degradation."
    tau = "is undefined, as all are equal" if math.isnan(ranks.kendall) else f"is {ranks.kendall:.2f}".replace("-", "−")
    kept = {r.label: r.value("retention", "ap") for r in comparison.results if r.label in found}
    rows: list[tuple[Cell, ...]] = [
        (
            label,
            *_ranked(before, found[label][0]),
            *_ranked(after, found[label][1]),
            Number(kept[label], style="percent"),
            *_ranked([share for share in kept.values() if share is not None], kept[label])[1:],
        )
        for label in found
    ]
    header = ("Detector", "Clean AP ↑", "Rank ↓", "mPC ↑", "Rank ↓", "rPC ↑", "Rank ↓")
    notes = (*comparison.warnings(), comparison.scope(), "Rank 1 is the best; equal scores share a rank.")
    table = Table("Order of detectors", header, tuple(rows), notes).marked()
    return (
        f'<p class="lead">{escape(said)}</p><p>Kendall’s τ between the orders by clean AP and by AP under degradation '
        f"{tau} (1: the same order; −1: reversed).</p>{table_block(table, 'ranks')}"
    )


def _ranked(values: Iterable[float], value: float | None) -> tuple[Number, Number]:
    rank = None if value is None else 1.0 + sum(other > value for other in values)
    return Number(value), Number(rank, decimals=0)


# Worst images


def _worst(comparison: DetectionComparison, room: int) -> str:
    found: list[tuple[int, WorstLoss]] = []
    looked_at = 0
    for run, folder in enumerate(comparison.runs):
        losses, images = read_detection_pictures(folder.path)
        found += [(run, loss) for loss in losses]
        looked_at = max(looked_at, images)
    found.sort(key=lambda pair: pair[1].found["degraded"] - pair[1].found["clean"])
    indices = {(result.run, result.model): i for i, result in enumerate(comparison.results)}
    items = []
    for run, loss in found[:_MOST_PICTURES]:
        room -= sum(len(view.data) for view in loss.views.values())
        if room < 0:
            break
        items.append(_loss(comparison, loss, indices.get((run, loss.model))))
    if found and not items:
        return "<p>The pictures of worst images are left out: the page would become too large for mail.</p>"
    if not items:
        return (
            "<p>There are no pictures of worst images: none were made for this run, or no object that was found clean "
            "was lost.</p>"
        )
    return (
        "<p>Where most objects were lost. Solid boxes: objects of the truth. Dashed boxes: detections with a score of "
        "0.3 or more, with the score; where there is none, the best one. An object is found by a detection of its "
        f"category with such a score and an IoU of 0.5 or more. Chosen among {_count(looked_at, 'image')}.</p>"
        f'<ol class="drops">{"".join(items)}</ol>'
    )


def _loss(comparison: DetectionComparison, loss: WorstLoss, index: int | None) -> str:
    entry = comparison.titles.get(loss.entry, loss.entry)
    label = loss.model if index is None else comparison.results[index].label
    sign = "" if index is None or len(comparison.results) < 2 else swatch(index)
    figures = []
    for view in ("clean", "degraded"):
        scores = ", ".join(f"{score:.2f}" for score in loss.scores[view]) or "none"
        said = f"{view}: {loss.found[view]} of {_count(loss.objects, 'object')} found; scores drawn: {scores}"
        shown = image_tag(loss.views[view], f"{loss.image}, {said}")
        figures.append(f"<figure>{shown}<figcaption>{escape(said)}</figcaption></figure>")
    return (
        f'<li class="drop"><div class="about"><h3><bdi>{escape(loss.image)}</bdi></h3>'
        f"<p>{escape(entry)}, severity {loss.severity}</p><p>{sign}<bdi>{escape(label)}</bdi></p>"
        f'<p class="fall">Found {loss.found["clean"]} → <b>{loss.found["degraded"]}</b> of {loss.objects}</p></div>'
        f'<div class="views two">{"".join(figures)}</div></li>'
    )


# Tables


def _tables(comparison: DetectionComparison) -> str:
    bold = " The best of each column is bold." if len(comparison.results) > 1 else ""
    tables = build_detection_tables(comparison)[1:]
    many = len(comparison.categories) > _MOST_CATEGORIES
    if many:
        tables = tables[:-1]
    more = f"<p>The {len(comparison.categories):,} categories are in the CSV of <code>crypsis tables</code>.</p>"
    return (
        f"<p>The tables of a detection benchmark; the first stands under “In short”.{bold}</p>"
        + "".join(table_block(table, f"detection-{i}") for i, table in enumerate(tables, 1))
        + (more if many else "")
    )


# How it was made


def _provenance(comparison: DetectionComparison) -> str:
    parts = [
        failure_list(
            f"{len(summary['failed']):,} failed in {run.name}",
            "These images are left out of all numbers of the detectors that failed on them.",
            summary["failed"],
        )
        for run, summary in zip(comparison.runs, comparison.summaries, strict=True)
    ]
    for run, summary in zip(comparison.runs, comparison.summaries, strict=True):
        plan, data = run.plan, run.plan["dataset"]
        facts = {
            "Run": run.name,
            "Benchmark": plan["benchmark"],
            "Data set": f"{data['name']} ({data['layout']}), {_count(data['images'], 'image')}, "
            f"{_count(summary['objects'], 'object')}, {_count(len(summary['categories']), 'category', 'categories')}",
            "Fingerprint of names": data["keys_sha256"],
            "Fingerprint of annotations": data["annotations_sha256"],
            "Seed": plan["seed"],
            "Severities": plan["severities"],
            "Limit": "none" if plan["limit"] is None else f"{plan['limit']:,} images: a trial, not a result",
            "Classes are matched": _MATCHED[plan["labels"]],
            "Classes that count": plan["keep"] or "all",
            "Truth where content moves": plan["truth"],
            "Strength measured on": _count(summary["measured"], "image"),
            "Evaluator": f"{summary['evaluator']['name']} {summary['evaluator']['version']}",
            "Bootstrap samples": f"{summary['samples']:,}" if summary["samples"] else "none: too many images",
        }
        detectors = "".join(
            f"<h4><bdi>{escape(name)}</bdi></h4>{fact_list(description)}"
            for name, description in plan["models"].items()
        )
        images, conditions = int(data["images"]), len(run.conditions) - 1
        seconds = read_seconds(run.path / "timing.jsonl")
        parts.append(
            f'<div class="made"><div><h3>Plan</h3>{fact_list(facts)}<h3>Time</h3>'
            f"{time_list(seconds, images, images * conditions)}</div><div><h3>Detectors</h3>{detectors}</div></div>"
            f"{sessions_block(run.name, run.sessions)}"
        )
    parts.append(parameter_table("Degradations", comparison.titles, comparison.plan["entries"]))
    definitions = {
        **{SCORE_LABELS[metric]: f"{SCORE_TITLES[metric]}." for metric in SCORES},
        "mPC": "mean performance under corruption: the mean over all degradations and severities, which weigh alike.",
        "rPC": "relative performance under corruption: mPC / clean.",
        "Intervals": "the 95% range over resamplings of the images, the same for all conditions and detectors, "
        "centered on the value.",
    }
    parts.append(f"<details><summary>Definitions</summary>{fact_list(definitions)}</details>")
    return "".join(parts)


_MATCHED = {"names": "by equal names", "index": "by index", "agnostic": "not at all: all of both are one (agnostic)"}


def _data(comparison: DetectionComparison) -> dict[str, Any]:
    """Return what the page embeds of each run: numbers to four digits, an interval as [value, low, high]."""
    return {
        "schema": "crypsis.detection-report/1",
        "metrics": SCORES,
        "runs": [
            {
                "name": run.name,
                "plan": run.plan,
                "sessions": [{key: s[key] for key in ("started", "versions", "machine")} for s in run.sessions],
                "summary": rounded(_compact(summary), 4),
            }
            for run, summary in zip(comparison.runs, comparison.summaries, strict=True)
        ],
    }


def _compact(value: Any) -> Any:
    """Write a mapping of all metrics as the list of their values, each with its interval if it has one."""
    if not isinstance(value, Mapping):
        return value
    if tuple(value) == SCORES:
        found = [value[metric] for metric in SCORES]
        return [i["value"] if i["low"] is None else [i["value"], i["low"], i["high"]] for i in found]
    return {key: _compact(item) for key, item in value.items()}
