"""The report of one or several runs: one HTML file that opens offline, prints, and loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import __version__
from ..catalog import get_entry
from ..errors import UnknownNameError
from ..metrics.segmentation import METRICS
from ..results import RunFolder
from .charts import (
    Bar,
    ReliabilityCurve,
    Series,
    bar_chart,
    hatch_definitions,
    line_chart,
    meter,
    reliability_chart,
    swatch,
    value_range,
)
from .comparison import METRIC_LABELS, Comparison, ModelResult, compare_runs, higher_is_better
from .markup import attributes, document, escape, json_script, webp_uri
from .pictures import Picture, Strip, WorstDrop, read_pictures
from .tables import Number, Table, build_tables, headline_table

__all__ = ["build_report"]

_CHART_METRICS = ("dice", "iou", "mae", "boundary_f1", "ece_pooled", "s_measure")
_PICTURE_BYTES = 900_000
_MOST_WORST = 10
_MOST_FAILURES = 50
_VIEW_TITLES = {
    "clean": "clean, truth outlined",
    "degraded": "degraded",
    "truth": "truth",
    "prediction_clean": "prediction, clean",
    "prediction": "prediction, degraded",
}


def build_report(runs: Sequence[RunFolder], *, title: str | None = None) -> str:
    """Return a self-contained HTML page about one or several runs.

    Everything is made from the run folders alone. The same folders give the same page.

    Args:
        runs: run folders over the same images, entries, seed and rules.
        title: heading; by default the benchmark and the data set.

    Raises:
        InputError: the runs cannot be compared, nothing was scored, or a run's pictures are not as they should be.
    """
    comparison = compare_runs(runs)
    plan = comparison.plan
    heading = title or f"{str(plan['benchmark']).upper()} on {plan['dataset']['name']}"
    drops, strip = _collect_pictures(comparison)
    sections = [
        ("summary", "In short", _headline(comparison)),
        ("severity", "By severity", _curves(comparison)),
        ("corruption", "By corruption", _bars(comparison)),
        ("calibration", "Calibration", _reliability(comparison)),
        ("worst", "Worst drops", _worst(comparison, drops)),
        ("corruptions", "The corruptions", _strip(comparison, strip)),
        ("tables", "All tables", _tables(comparison)),
        ("made", "How it was made", _provenance(comparison)),
    ]
    links = "".join(f'<a href="#{name}">{escape(text)}</a>' for name, text, _ in sections)
    body = [
        '<a class="skip" href="#summary">Skip to the results</a>',
        hatch_definitions(),
        _watermark(comparison),
        f'<header><p class="eyebrow">Crypsis robustness report</p><h1>{escape(heading)}</h1>',
        f'<p class="scope">{escape(_scope(comparison))}</p><nav aria-label="Sections">{links}</nav></header>',
        "<main>",
        *(
            f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(text)}</h2>'
            f"{content}</section>"
            for name, text, content in sections
        ),
        f"</main><footer><p>Made by Crypsis {escape(__version__)}. This file holds its own data: see the block "
        "<code>crypsis-data</code> in its source.</p></footer>",
        '<div id="live" class="away" role="status" aria-live="polite"></div>',
        json_script("crypsis-data", _data(comparison)),
    ]
    return document(heading, "\n".join(body), script="report.js")


def _scope(comparison: Comparison) -> str:
    entries, levels = len(comparison.plan["entries"]), len(comparison.severities)
    images = comparison.summaries[0]["images"]
    models = len(comparison.results)
    return (
        f"{models} model{'s' * (models != 1)} on {images:,} image{'s' * (images != 1)}, clean and under {entries} "
        f"corruption{'s' * (entries != 1)} at {levels} severities."
    )


def _watermark(comparison: Comparison) -> str:
    warnings = "".join(f"<p>{escape(text)}</p>" for text in comparison.warnings())
    if not warnings:
        return ""
    mark = "" if comparison.complete else '<div class="watermark" aria-hidden="true">INCOMPLETE</div>'
    return f'{mark}<div class="banner" role="alert">{warnings}</div>'


# In short


def _headline(comparison: Comparison) -> str:
    cards = "".join(_card(comparison, i, result) for i, result in enumerate(comparison.results))
    return (
        f'<p class="lead">{escape(_verdict(comparison))}</p><div class="cards">{cards}</div>'
        f"{_table(headline_table(comparison), 'headline')}"
    )


def _verdict(comparison: Comparison) -> str:
    """Say in plain words who keeps most, and who is best under corruption."""
    results = comparison.results
    kept = [(value, r.label) for r in results if (value := r.value("retention", "dice")) is not None]
    best = [(value, r.label) for r in results if (value := r.value("corrupted", "dice")) is not None]
    if len(results) == 1 or not kept or not best:
        return (
            "Dice measures the overlap of prediction and truth, from 0 to 1. Retention is the share of the clean score "
            "that is left, on average over all corruptions and severities."
        )
    share, keeper = max(kept)
    score, leader = max(best)
    if keeper == leader:
        return (
            f"{keeper} keeps the largest share of its clean Dice ({100 * share:.1f}%) and also has the highest Dice "
            f"under corruption ({score:.3f})."
        )
    return (
        f"{keeper} keeps the largest share of its clean Dice ({100 * share:.1f}%); {leader} has the highest Dice "
        f"under corruption ({score:.3f})."
    )


def _card(comparison: Comparison, index: int, result: ModelResult) -> str:
    retention = Number(result.value("retention", "dice"), style="percent").text
    clean, corrupted = result.value("conditions", "dice", "clean"), result.value("corrupted", "dice")
    return (
        f'<article class="card"><h3>{swatch(index)}<bdi>{escape(result.label)}</bdi></h3>'
        f'<p class="figure">{escape(retention)}</p>'
        f"{meter(clean, corrupted, series=index, label=result.label)}"
        f'<p class="sentence">{escape(_sentence(comparison, result))}</p></article>'
    )


def _sentence(comparison: Comparison, result: ModelResult) -> str:
    retention = result.value("retention", "dice")
    if retention is None:
        return "Has a clean Dice of 0.000: there is nothing that corruption could take."
    text = f"Keeps {100 * retention:.1f}% of its clean Dice under corruption"
    worst = result.worst_entry("dice")
    if worst is None:
        return f"{text}."
    name, change = worst
    if change > -0.0005:
        return f"{text}; no corruption lowers it by a tenth of a point."
    points = f"{100 * change:+.1f}".replace("-", "−")
    return f"{text}; worst: {_in_prose(comparison.titles[name])} ({points} points)."


def _in_prose(title: str) -> str:
    """Write a title inside a sentence: `motion blur`, `JPEG`."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


# Tables


def _table(table: Table, name: str) -> str:
    """Return a table with its copy buttons and notes."""
    head = "".join(f'<th scope="col">{_header(label)}</th>' for label in table.header)
    body = "".join(f"<tbody>{''.join(_rows(group, table.text_columns))}</tbody>" for group in table.groups)
    buttons = "".join(
        f'<button type="button" class="copy"{attributes(data_copy=text, data_name=kind)}>{kind}</button>'
        for kind, text in (("Markdown", table.markdown()), ("LaTeX", table.latex()), ("CSV", table.csv()))
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    return (
        f'<figure class="table" id="table-{name}"><figcaption><span>{escape(table.title)}</span>'
        '<span class="buttons" role="group" aria-label="Copy this table"><span aria-hidden="true">Copy</span>'
        f"{buttons}</span></figcaption>"
        f"{_scroll(table.title, f'<table><thead><tr>{head}</tr></thead>{body}</table>')}"
        f"<details><summary>Conventions</summary><ul>{notes}</ul></details></figure>"
    )


def _header(label: str) -> str:
    """Return a column's label, whose arrow stays on the line of its last word."""
    return escape(label).replace(" ↑", "&nbsp;↑").replace(" ↓", "&nbsp;↓")


def _scroll(label: str, content: str) -> str:
    """Return what may be wider than a phone, scrolled also by keyboard."""
    return f'<div class="scroll" role="region" tabindex="0"{attributes(aria_label=label)}>{content}</div>'


def _rows(group: list[tuple[str | Number, ...]], texts: int) -> Iterable[str]:
    for index, row in enumerate(group):
        cells: list[str] = []
        for column, cell in enumerate(row):
            if not isinstance(cell, str):
                value = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
                interval = f"<small>{escape(cell.interval)}</small>" if cell.interval else ""
                cells.append(f"<td>{value}{interval}</td>")
            elif texts > 1 and column == 0:
                if index == 0:
                    cells.append(f'<th scope="rowgroup" rowspan="{len(group)}">{escape(cell)}</th>')
            else:
                cells.append(f'<th scope="row"><bdi>{escape(cell)}</bdi></th>')
        yield f"<tr>{''.join(cells)}</tr>"


def _tables(comparison: Comparison) -> str:
    bold = " The best of each column is bold." if len(comparison.results) > 1 else ""
    intro = f"<p>The tables of the COD10K-C paper, and structure measures.{bold}</p>"
    names = ("clean", "corrupted", "entries", "severities", "structure")
    return intro + "".join(_table(table, name) for table, name in zip(build_tables(comparison), names, strict=True))


# Charts


def _legend(comparison: Comparison, *, bar: bool = False) -> str:
    items = "".join(
        f"<li>{swatch(i, bar=bar)}<bdi>{escape(result.label)}</bdi></li>" for i, result in enumerate(comparison.results)
    )
    return f'<ul class="legend" aria-label="Models">{items}</ul>'


def _switch() -> str:
    buttons = "".join(
        f'<button type="button" data-show="{metric}" aria-pressed="{str(metric == "dice").lower()}"'
        f"{attributes(title=METRICS[metric].title)}>{escape(METRIC_LABELS[metric])}</button>"
        for metric in _CHART_METRICS
    )
    return f'<div class="switch" role="group" aria-label="Metric of the charts">{buttons}</div>'


def _by_metric(panels: Mapping[str, str]) -> str:
    """Return the panels of every metric, of which the script shows one."""
    parts = []
    for metric, content in panels.items():
        better = "higher is better" if higher_is_better(metric) else "lower is better"
        label = f"{METRICS[metric].title}: {better}"
        parts.append(
            f'<div class="panels"{attributes(data_metric=metric, hidden=metric != "dice")}>'
            f'<p class="axis">{escape(label)}</p><div class="grid">{content}</div></div>'
        )
    return "".join(parts)


def _curves(comparison: Comparison) -> str:
    panels = {metric: "".join(_curve_panels(comparison, metric)) for metric in _CHART_METRICS}
    return (
        "<p>How the score falls as a corruption grows. Bands are 95% bootstrap intervals over images. Severity is a "
        f'rank, not a distance.</p><div class="controls">{_legend(comparison)}{_switch()}</div>{_by_metric(panels)}'
    )


def _curve_panels(comparison: Comparison, metric: str) -> Iterable[str]:
    entries: Mapping[str, Sequence[Any]] = comparison.plan["entries"]
    lines = {
        name: [
            [
                result.interval("conditions", metric, condition)
                for condition in ("clean", *(f"{name}@{s}" for s in range(1, len(levels) + 1)))
            ]
            for result in comparison.results
        ]
        for name, levels in entries.items()
    }
    intervals = [interval for panel in lines.values() for line in panel for interval in line]
    span = value_range(i[key] for i in intervals for key in ("value", "low", "high"))
    for name, panel in lines.items():
        series = [
            Series(result.label, *([i[key] for i in line] for key in ("value", "low", "high")))
            for result, line in zip(comparison.results, panel, strict=True)
        ]
        positions = ["clean", *map(str, range(1, len(entries[name]) + 1))]
        yield line_chart(comparison.titles[name], positions, series, y_range=span, y_label=METRIC_LABELS[metric])


def _bars(comparison: Comparison) -> str:
    panels = {metric: "".join(_bar_panels(comparison, metric)) for metric in _CHART_METRICS}
    return (
        "<p>Means over the severities, hardest corruption first. The upright line is the same model on clean "
        'images, the horizontal one the 95% interval.</p><div class="controls">'
        f"{_legend(comparison, bar=True)}{_switch()}</div>{_by_metric(panels)}"
    )


def _bar_panels(comparison: Comparison, metric: str) -> Iterable[str]:
    groups: dict[str, list[Bar]] = {}
    for name in comparison.titles:
        groups[name] = []
        for result in comparison.results:
            found = result.interval("entries", metric, name)
            reference = result.value("conditions", metric, "clean")
            groups[name].append(Bar(result.label, found["value"], found["low"], found["high"], reference))

    def hardness(name: str) -> float:
        values = [bar.value for bar in groups[name] if bar.value is not None]
        mean = sum(values) / len(values) if values else 0.0
        return mean if higher_is_better(metric) else -mean

    everything = [v for bars in groups.values() for bar in bars for v in (bar.value, bar.high, bar.reference)]
    span = value_range(everything, zero=True)
    order = sorted(groups, key=hardness)
    half = (len(order) + 1) // 2
    for part in filter(None, (order[:half], order[half:])):
        yield bar_chart(
            "Mean by corruption",
            {comparison.titles[name]: groups[name] for name in part},
            x_range=span,
            x_label=METRIC_LABELS[metric],
        )


def _reliability(comparison: Comparison) -> str:
    charts = []
    for index, result in enumerate(comparison.results):
        curves = [
            ReliabilityCurve(label, bins["share"], bins["confidence"], bins["accuracy"], ece)
            for label, bins, ece in (
                ("clean", result.scores["reliability"]["clean"], result.value("conditions", "ece_pooled", "clean")),
                ("corrupted", result.scores["reliability"]["corrupted"], result.value("corrupted", "ece_pooled")),
            )
        ]
        charts.append(reliability_chart(result.label, curves, series=index))
    return (
        "<p>Of the pixels about which a model is 80% sure, are 80% right? Below the diagonal it is over-confident. "
        "Hollow and solid: clean; filled and dashed: all corruptions together. Below each diagram stands the share "
        f'of pixels by confidence, on a log scale.</p><div class="grid">{"".join(charts)}</div>'
    )


# Pictures


def _collect_pictures(comparison: Comparison) -> tuple[list[tuple[str, WorstDrop]], Strip | None]:
    """Return the worst drops of all runs with the models' labels, and the first strip, within the size budget."""
    labels = {(r.run, r.model): r.label for r in comparison.results}
    drops: list[tuple[str, WorstDrop]] = []
    strip = None
    for index, run in enumerate(comparison.runs):
        worst, found = read_pictures(run)
        drops += [(labels.get((index, drop.model), drop.model), drop) for drop in worst]
        strip = strip or found
    drops.sort(key=lambda pair: pair[1].dice - pair[1].dice_clean)
    left = _PICTURE_BYTES
    if strip is not None:
        left -= sum(len(picture.data) for picture in strip.cells.values())
        if left < 0:
            strip = None
            left = _PICTURE_BYTES
    kept = []
    for label, drop in drops[:_MOST_WORST]:
        left -= sum(len(picture.data) for picture in drop.views.values())
        if left < 0:
            break
        kept.append((label, drop))
    return kept, strip


def _picture(picture: Picture, alt: str, *, lazy: bool = True) -> str:
    if picture.problem:
        return f'<span class="missing">{escape(picture.problem)}</span>'
    return (
        f'<img src="{webp_uri(picture.data)}"'
        f"{attributes(alt=alt, width=picture.width, height=picture.height, loading='lazy' if lazy else None)}>"
    )


def _worst(comparison: Comparison, drops: Sequence[tuple[str, WorstDrop]]) -> str:
    if not drops:
        return (
            "<p>There are no pictures of worst drops: none were made for this run, or no corruption lowered any "
            "score.</p>"
        )
    indices = {result.label: i for i, result in enumerate(comparison.results)}
    items = []
    for label, drop in drops:
        title = comparison.titles.get(drop.entry, drop.entry)
        what = drop.species or drop.image
        views = "".join(
            f"<figure>{_picture(drop.views[view], f'{what}: {text}')}<figcaption>{text}</figcaption></figure>"
            for view, text in _VIEW_TITLES.items()
        )
        key = f'<p class="key"><bdi>{escape(drop.image)}</bdi></p>' if drop.species else ""
        name = f"<h3{attributes(class_='species' if drop.species else None)}><bdi>{escape(what)}</bdi></h3>"
        sign = swatch(indices[label]) if label in indices else ""
        change = f"{100 * (drop.dice - drop.dice_clean):+.1f}".replace("-", "−")
        items.append(
            f'<li class="drop"><div class="about">{name}'
            f"<p>{escape(title)}, severity {drop.severity}</p><p>{sign}<bdi>{escape(label)}</bdi></p>"
            f'<p class="fall">Dice {drop.dice_clean:.3f} → <b>{drop.dice:.3f}</b><br><span>{change} points</span></p>'
            f'{key}</div><div class="views">{views}</div></li>'
        )
    return (
        "<p>Where Dice fell most. The orange line is the outline of the truth; in a prediction, white is sure "
        f'object.</p><ol class="drops">{"".join(items)}</ol>'
    )


def _strip(comparison: Comparison, strip: Strip | None) -> str:
    if strip is None:
        return "<p>There are no pictures of the corruptions: none were made for this run.</p>"
    names = [name for name in comparison.titles if any(entry == name for entry, _ in strip.cells)]
    levels = sorted({severity for entry, severity in strip.cells if entry in comparison.titles})
    head = "".join(f'<th scope="col">{escape(comparison.titles[name])}</th>' for name in names)
    rows = []
    for level in levels:
        cells = []
        for name in names:
            picture = strip.cells.get((name, level))
            alt = f"{comparison.titles[name]}, severity {level}"
            cells.append(f"<td>{'' if picture is None else _picture(picture, alt)}</td>")
        rows.append(f'<tr><th scope="row">{level}</th>{"".join(cells)}</tr>')
    clean = strip.cells.get(("clean", 0))
    shown = "" if clean is None else _picture(clean, "the clean image") + "<figcaption>clean</figcaption>"
    table = (
        '<table class="strip"><thead><tr><th scope="col"><span class="away">Severity</span></th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return (
        f'<div class="strip-intro"><figure class="clean">{shown}</figure><p>One image under every condition: '
        f"<bdi>{escape(strip.image)}</bdi>. Severities are the levels of the paper, from 1, mild, to 5.</p></div>"
        f"{_scroll('One image under every condition', table)}"
    )


# How it was made


def _provenance(comparison: Comparison) -> str:
    parts = [_failures(comparison)]
    for run in comparison.runs:
        plan = run.plan
        data = plan["dataset"]
        facts = {
            "Run": run.name,
            "Benchmark": plan["benchmark"],
            "Data set": f"{data['name']} ({data['layout']}), {data['images']:,} images",
            "Fingerprint": data["keys_sha256"],
            "Seed": plan["seed"],
            "Limit": "none" if plan["limit"] is None else f"{plan['limit']:,} images: a trial, not a result",
            "Predictions": "raw probabilities" if plan["normalize"] == "raw" else f"stretched ({plan['normalize']})",
            "Sizes that differ": plan["on_size_mismatch"],
            "Truth where content moves": plan.get("truth", "published"),
        }
        models = "".join(
            f"<h4><bdi>{escape(name)}</bdi></h4>{_facts(description)}" for name, description in plan["models"].items()
        )
        parts.append(
            f'<div class="made"><div><h3>Plan</h3>{_facts(facts)}</div><div><h3>Models</h3>{models}</div></div>'
            f"<details><summary>Sessions of {escape(run.name)}: {len(run.sessions)}</summary>{_sessions(run)}</details>"
        )
    parts.append(f"<details><summary>Corruptions and their parameters</summary>{_entries(comparison)}</details>")
    definitions = {METRIC_LABELS[name]: f"{METRICS[name].title}. {METRICS[name].definition}" for name in METRIC_LABELS}
    parts.append(f"<details><summary>Definitions of the metrics</summary>{_facts(definitions)}</details>")
    return "".join(parts)


def _failures(comparison: Comparison) -> str:
    parts = []
    for run, summary in zip(comparison.runs, comparison.summaries, strict=True):
        failed: Mapping[str, str] = summary["failed"]
        if not failed:
            continue
        items = "".join(
            f"<li><bdi><code>{escape(image)}</code></bdi>: {escape(reason)}</li>"
            for image, reason in list(failed.items())[:_MOST_FAILURES]
        )
        more = f"<p>… and {len(failed) - _MOST_FAILURES:,} more.</p>" if len(failed) > _MOST_FAILURES else ""
        parts.append(
            f'<div class="failures"><h3>{len(failed):,} failed in {escape(run.name)}</h3><p>These images are left '
            f"out of all numbers of the models that failed on them.</p><ul>{items}</ul>{more}</div>"
        )
    return "".join(parts)


def _facts(facts: Mapping[str, Any]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{_fact(value)}</dd>" for name, value in facts.items())
    return f'<dl class="facts">{rows}</dl>'


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return _facts(value) if value else "none"
    if isinstance(value, list | tuple):
        return escape(", ".join(map(str, value)))
    return "none" if value is None else f"<bdi>{escape(value)}</bdi>"


def _sessions(run: RunFolder) -> str:
    """Return when and with what a run was computed; paths on the machine stay out of a page that is passed on."""
    return "".join(
        _facts({"Started": s["started"], "Versions": s["versions"], "Machine": s["machine"]}) for s in run.sessions
    )


def _entries(comparison: Comparison) -> str:
    rows = []
    for name, levels in comparison.plan["entries"].items():
        try:
            entry = get_entry(name)
            place, note = f"{entry.cause.title} → {entry.effect.title}", entry.note
        except UnknownNameError:
            place, note = "not in this version's catalog", ""
        cells = "".join(
            f"<td>{'<br>'.join(f'{escape(key)} {escape(value)}' for key, value in values.items())}</td>"
            for values in levels
        )
        rows.append(
            f'<tr><th scope="row">{escape(comparison.titles[name])}<small>{escape(name)}</small></th>'
            f'<td class="text">{escape(place)}<small>{escape(note)}</small></td>{cells}</tr>'
        )
    head = "".join(f'<th scope="col">{s}</th>' for s in comparison.severities)
    table = (
        '<table class="entries"><thead><tr><th scope="col">Corruption</th><th scope="col">Cause → effect</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return _scroll("Corruptions and their parameters", table)


def _data(comparison: Comparison) -> dict[str, Any]:
    """Return what the page embeds of each run, numbers to six digits."""
    return {
        "schema": "crypsis.report/1",
        "runs": [
            {
                "name": run.name,
                "plan": run.plan,
                "sessions": [{key: s[key] for key in ("started", "versions", "machine")} for s in run.sessions],
                "summary": _rounded(summary),
            }
            for run, summary in zip(comparison.runs, comparison.summaries, strict=True)
        ],
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value
