"""The report of one or several runs: one HTML file that opens offline, prints, and loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..metrics.segmentation import METRICS
from ..results import RunFolder
from .blocks import (
    fact_list,
    failure_list,
    image_tag,
    in_prose,
    parameter_table,
    report_page,
    rounded,
    scroll,
    sessions_block,
    switch,
    table_block,
    watermark,
)
from .camouflage_results import CamouflageScores, masks_by_camouflage
from .camouflage_section import camouflage_section
from .camouflage_tables import camouflage_document
from .charts import (
    Bar,
    ReliabilityCurve,
    Series,
    bar_chart,
    chart_definitions,
    line_chart,
    meter,
    overlay_chart,
    reliability_chart,
    swatch,
    value_range,
)
from .comparison import METRIC_LABELS, Comparison, ModelResult, compare_runs, higher_is_better
from .differences import difference_table
from .markup import attributes, escape
from .pictures import Strip, WorstDrop, read_pictures
from .strength_charts import index_definitions
from .tables import Number, build_tables, headline_table

__all__ = ["build_report"]

_CHART_METRICS = ("dice", "iou", "mae", "boundary_f1", "ece_pooled", "s_measure")
_PAGE_BYTES = 1_950_000
"""Of the whole page, which mail and browsers take well; pictures get what the rest leaves, but for their captions."""
_MOST_WORST = 10
_VIEW_TITLES = {
    "clean": "clean, truth outlined",
    "degraded": "degraded",
    "truth": "truth",
    "prediction_clean": "prediction, clean",
    "prediction": "prediction, degraded",
}


def build_report(
    runs: Sequence[RunFolder], *, title: str | None = None, camouflage: CamouflageScores | None = None
) -> str:
    """Return a self-contained HTML page about one or several runs.

    Everything is made from the run folders alone. The same folders give the same page.

    Args:
        runs: run folders over the same images, entries, seed and rules.
        title: heading; by default the benchmark and the data set.
        camouflage: scores of the images, to show the results by camouflage as well.

    Raises:
        InputError: the runs cannot be compared, nothing was scored, the scores are not of these images, or a run's
            pictures are not as they should be.
    """
    comparison = compare_runs(runs)
    plan = comparison.plan
    heading = title or f"{str(plan['benchmark']).upper()} on {plan['dataset']['name']}"
    before = [
        ("summary", "In short", _headline(comparison)),
        ("severity", "By severity", _curves(comparison)),
        ("strength", "By strength", _strength(comparison)),
        ("corruption", "By corruption", _bars(comparison)),
        ("calibration", "Calibration", _reliability(comparison)),
    ]
    data = _data(comparison)
    if camouflage is not None:
        by_camouflage = masks_by_camouflage(comparison, camouflage)
        before.insert(-1, camouflage_section(comparison, by_camouflage))
        data["camouflage"] = rounded(camouflage_document(by_camouflage))
    after = [
        ("tables", "All tables", _tables(comparison)),
        ("made", "How it was made", _provenance(comparison)),
    ]

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
    drops, strip = _collect_pictures(comparison, room)
    return page(
        ("worst", "Worst drops", _worst(comparison, drops)),
        ("corruptions", "The corruptions", _strip(comparison, strip)),
    )


def _scope(comparison: Comparison) -> str:
    entries, levels = len(comparison.plan["entries"]), len(comparison.severities)
    images = comparison.summaries[0]["images"]
    models = len(comparison.results)
    return (
        f"{models} model{'s' * (models != 1)} on {images:,} image{'s' * (images != 1)}, clean and under {entries} "
        f"corruption{'s' * (entries != 1)} at {levels} severities."
    )


# In short


def _headline(comparison: Comparison) -> str:
    cards = "".join(_card(comparison, i, result) for i, result in enumerate(comparison.results))
    difference = difference_table(comparison)
    return (
        f'<p class="lead">{escape(_verdict(comparison))}</p><div class="cards">{cards}</div>'
        f"{table_block(headline_table(comparison), 'headline')}"
        f"{table_block(difference, 'difference') if difference else ''}"
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
    return f"{text}; worst: {in_prose(comparison.titles[name])} ({points} points)."


# Tables


def _tables(comparison: Comparison) -> str:
    bold = " The best of each column is bold." if len(comparison.results) > 1 else ""
    intro = f"<p>The tables of the COD10K-C paper, and structure measures.{bold}</p>"
    names = ("clean", "corrupted", "entries", "severities", "structure")
    return intro + "".join(
        table_block(table, name) for table, name in zip(build_tables(comparison), names, strict=True)
    )


# Charts


def _legend(comparison: Comparison, *, bar: bool = False) -> str:
    items = "".join(
        f"<li>{swatch(i, bar=bar)}<bdi>{escape(result.label)}</bdi></li>" for i, result in enumerate(comparison.results)
    )
    return f'<ul class="legend" aria-label="Models">{items}</ul>'


def _switch() -> str:
    return switch({name: (METRIC_LABELS[name], METRICS[name].title) for name in _CHART_METRICS}, "dice")


def _by_metric(panels: Mapping[str, str], more: Mapping[str, str] | None = None) -> str:
    """Return the panels of every metric, and what comes below them; the script shows those of one metric."""
    parts = []
    for metric, content in panels.items():
        better = "higher is better" if higher_is_better(metric) else "lower is better"
        label = f"{METRICS[metric].title}: {better}"
        parts.append(
            f'<div class="panels"{attributes(data_metric=metric, hidden=metric != "dice")}>'
            f'<p class="axis">{escape(label)}</p><div class="grid">{content}</div>{(more or {}).get(metric, "")}</div>'
        )
    return "".join(parts)


def _curves(comparison: Comparison) -> str:
    panels = {metric: "".join(_curve_panels(comparison, metric)) for metric in _CHART_METRICS}
    return (
        "<p>How the score falls as a corruption grows. Bands are 95% bootstrap intervals over images. Severity is a "
        f'rank, not a distance.</p><div class="controls">{_legend(comparison)}{_switch()}</div>{_by_metric(panels)}'
    )


def _curve_panels(comparison: Comparison, metric: str) -> Iterable[str]:
    results, entries = comparison.results, comparison.plan["entries"]
    panels = {name: [_line(r, r.label, comparison.path(name), metric) for r in results] for name in entries}
    span = _span(panels.values())
    for name, series in panels.items():
        positions = _positions(comparison, name)
        yield line_chart(comparison.titles[name], positions, series, y_range=span, y_label=METRIC_LABELS[metric])


def _line(result: ModelResult, label: str, conditions: Sequence[str], metric: str) -> Series:
    found = [result.interval("conditions", metric, condition) for condition in conditions]
    return Series(label, [i["value"] for i in found], [i["low"] for i in found], [i["high"] for i in found])


def _span(panels: Iterable[Sequence[Series]]) -> tuple[float, float]:
    """Return the ends of a y axis for all panels."""
    every = [one for panel in panels for one in panel]
    return value_range(value for one in every for values in (one.values, one.low, one.high) for value in values)


def _positions(comparison: Comparison, entry: str) -> list[str]:
    return [condition.rpartition("@")[2] for condition in comparison.path(entry)]


_STRENGTH = "1−SSIM"


def _strength(comparison: Comparison) -> str:
    strength = comparison.common_strength()
    if strength is None:
        return (
            "<p>Strength was not measured: these runs score saved predictions only, so no image was degraded. Score "
            "them in one run with a model that sees the images, such as <code>--model saliency</code>, to have it.</p>"
        )
    absent = [r.label for r in comparison.results if r.strengths(["clean"]) is None]
    missing = f"<p>Not measured, and so not drawn: {escape(', '.join(absent))}.</p>" if absent else ""
    places = [r.strengths(comparison.path(entry)) or [] for r in comparison.results for entry in comparison.titles]
    x_range = value_range((place for path in places for place in path), zero=True)
    panels, overlays = {}, {}
    for metric in _CHART_METRICS:
        lines = {
            name: [_strength_line(comparison, result, result.label, name, metric) for result in comparison.results]
            for name in comparison.titles
        }
        span = _span(lines.values())
        axes: dict[str, Any] = {"y_range": span, "y_label": METRIC_LABELS[metric], "x_range": x_range}
        panels[metric] = "".join(
            line_chart(comparison.titles[name], _positions(comparison, name), series, x_label=_STRENGTH, **axes)
            for name, series in lines.items()
        )
        overlays[metric] = _equal_strength(comparison, strength, metric, x_range)
    return (
        f"<p>The same scores against what each severity does to these images: {_STRENGTH}, 0 where nothing changed, "
        "means over the images. One axis serves all panels; the severities stand on the ruler under each.</p>"
        f'{missing}<div class="controls">{_legend(comparison)}{_switch()}</div>{_by_metric(panels, overlays)}'
    )


def _strength_line(comparison: Comparison, result: ModelResult, label: str, entry: str, metric: str) -> Series:
    """Return a line over measured strength; without values, so that the others keep their colors, if there is none."""
    path = comparison.path(entry)
    places = result.strengths(path)
    if places is None:
        nothing = [None] * len(path)
        return Series(label, nothing, nothing, nothing, [0.0] * len(path))
    return replace(_line(result, label, path, metric), x=places)


def _equal_strength(comparison: Comparison, strength: float, metric: str, x_range: tuple[float, float]) -> str:
    """Return for each model all corruptions on one axis, and which hurts most and least where all are as strong."""
    titles = comparison.titles
    measured = [result for result in comparison.results if result.strengths(["clean"])]
    signs = "".join(f"<li>{swatch(i, mark=False)}{escape(title)}</li>" for i, title in enumerate(titles.values()))
    said = "".join(
        f"<li><bdi>{escape(result.label)}</bdi>: {escape(sentence)}</li>"
        for result in measured
        if (sentence := _most_and_least(comparison, result, strength, metric))
    )
    lines = {
        result.label: [_strength_line(comparison, result, title, name, metric) for name, title in titles.items()]
        for result in measured
    }
    y_range = value_range(value for series in lines.values() for one in series for value in one.values)
    axes: dict[str, Any] = {"y_range": y_range, "y_label": METRIC_LABELS[metric], "x_range": x_range}
    charts = "".join(
        overlay_chart(label, series, x_label=_STRENGTH, marked=strength, **axes) for label, series in lines.items()
    )
    return (
        f'<h3>At equal strength</h3><p class="sentence">The upright line is at {_STRENGTH} {strength:.3f}, the most '
        "that all corruptions reach. There, interpolated between severities and leaving the bands out of account:"
        f'</p><ul>{said}</ul><ul class="legend" aria-label="Corruptions">{signs}</ul><div class="grid">{charts}</div>'
    )


def _most_and_least(comparison: Comparison, result: ModelResult, strength: float, metric: str) -> str:
    """Say which corruption costs a model most and least at a strength; nothing unless two can be compared."""
    clean = result.value("conditions", metric, "clean")
    found = {name: result.at_strength(metric, comparison.path(name), strength) for name in comparison.titles}
    known = {name: value for name, value in found.items() if value is not None}
    if clean is None or len(known) < 2:
        return ""
    order = sorted(known, key=known.__getitem__, reverse=not higher_is_better(metric))
    most, least = (
        f"{in_prose(comparison.titles[name])} ({METRIC_LABELS[metric]} {known[name]:.3f}, {known[name] - clean:+.3f})"
        for name in (order[0], order[-1])
    )
    return f"{most} hurts most, {least} least; clean {clean:.3f}.".replace("-", "−")


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


def _collect_pictures(comparison: Comparison, room: int) -> tuple[list[tuple[str, WorstDrop]], Strip | None]:
    """Return the worst drops of all runs with the models' labels, and the first strip, as far as they fit in `room`."""
    labels = {(r.run, r.model): r.label for r in comparison.results}
    drops: list[tuple[str, WorstDrop]] = []
    strip = None
    for index, run in enumerate(comparison.runs):
        worst, found = read_pictures(run)
        drops += [(labels.get((index, drop.model), drop.model), drop) for drop in worst]
        strip = strip or found
    drops.sort(key=lambda pair: pair[1].dice - pair[1].dice_clean)
    left = room
    if strip is not None:
        left -= sum(len(picture.data) for picture in strip.cells.values())
        if left < 0:
            strip = None
            left = room
    kept = []
    for label, drop in drops[:_MOST_WORST]:
        left -= sum(len(picture.data) for picture in drop.views.values())
        if left < 0:
            break
        kept.append((label, drop))
    return kept, strip


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
            f"<figure>{image_tag(drop.views[view], f'{what}: {text}')}<figcaption>{text}</figcaption></figure>"
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
            cells.append(f"<td>{'' if picture is None else image_tag(picture, alt)}</td>")
        rows.append(f'<tr><th scope="row">{level}</th>{"".join(cells)}</tr>')
    clean = strip.cells.get(("clean", 0))
    shown = "" if clean is None else image_tag(clean, "the clean image") + "<figcaption>clean</figcaption>"
    table = (
        '<table class="strip"><thead><tr><th scope="col"><span class="away">Severity</span></th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return (
        f'<div class="strip-intro"><figure class="clean">{shown}</figure><p>One image under every condition: '
        f"<bdi>{escape(strip.image)}</bdi>. Severities are the levels of the paper, from 1, mild, to 5.</p></div>"
        f"{scroll('One image under every condition', table)}"
    )


# How it was made


def _provenance(comparison: Comparison) -> str:
    parts = [
        failure_list(
            f"{len(summary['failed']):,} failed in {run.name}",
            "These images are left out of all numbers of the models that failed on them.",
            summary["failed"],
        )
        for run, summary in zip(comparison.runs, comparison.summaries, strict=True)
    ]
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
            f"<h4><bdi>{escape(name)}</bdi></h4>{fact_list(description)}"
            for name, description in plan["models"].items()
        )
        parts.append(
            f'<div class="made"><div><h3>Plan</h3>{fact_list(facts)}</div><div><h3>Models</h3>{models}</div></div>'
            f"{sessions_block(run.name, run.sessions)}"
        )
    parts.append(parameter_table("Corruptions", comparison.titles, comparison.plan["entries"]))
    definitions = {METRIC_LABELS[name]: f"{METRICS[name].title}. {METRICS[name].definition}" for name in METRIC_LABELS}
    parts.append(f"<details><summary>Definitions of the metrics</summary>{fact_list(definitions)}</details>")
    return "".join(parts)


def _data(comparison: Comparison) -> dict[str, Any]:
    """Return what the page embeds of each run, numbers to six digits."""
    return {
        "schema": "crypsis.report/1",
        "runs": [
            {
                "name": run.name,
                "plan": run.plan,
                "sessions": [{key: s[key] for key in ("started", "versions", "machine")} for s in run.sessions],
                "summary": rounded(summary),
            }
            for run, summary in zip(comparison.runs, comparison.summaries, strict=True)
        ],
    }
