"""What the pages about runs are built of: their frame, tables with copy buttons, switches, lists of facts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from ..catalog import get_entry
from ..errors import InputError, UnknownNameError
from ..taxonomy import Cause, Effect
from .markup import attributes, document, escape, json_script, webp_uri
from .pictures import Picture
from .tables import Number, Table

__all__ = [
    "fact_list",
    "failure_list",
    "image_tag",
    "in_prose",
    "level_strip",
    "parameter_table",
    "read_seconds",
    "report_page",
    "rounded",
    "scroll",
    "sessions_block",
    "switch",
    "table_block",
    "taxonomy_map",
    "time_list",
    "watermark",
]

_MOST_FAILURES = 50


def report_page(
    heading: str,
    *,
    eyebrow: str,
    scope: str,
    sections: Sequence[tuple[str, str, str]],
    data: Mapping[str, Any],
    before: str = "",
) -> str:
    """Return a whole page about runs.

    Args:
        heading: plain text.
        eyebrow: plain text above it: what kind of page this is.
        scope: plain text below it: what was done on what.
        sections: (identifier, plain heading, HTML) each; the first one holds the results.
        data: what the page embeds, so that nothing shown is lost to a program.
        before: HTML ahead of everything: definitions that charts refer to, warnings.
    """
    links = "".join(f'<a href="#{name}">{escape(text)}</a>' for name, text, _ in sections)
    body = [
        f'<a class="skip" href="#{sections[0][0]}">Skip to the results</a>',
        before,
        f'<header><p class="eyebrow">{escape(eyebrow)}</p><h1>{escape(heading)}</h1>',
        f'<p class="scope">{escape(scope)}</p><nav aria-label="Sections">{links}</nav></header>',
        "<main>",
        *(
            f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(text)}</h2>'
            f"{content}</section>"
            for name, text, content in sections
        ),
        f"</main><footer><p>Made by Crypsis {escape(__version__)}. This file holds its own data: see the block "
        "<code>crypsis-data</code> in its source.</p></footer>",
        '<div id="live" class="away" role="status" aria-live="polite"></div>',
        json_script("crypsis-data", data),
    ]
    return document(heading, "\n".join(body), script="report.js")


def watermark(warnings: Sequence[str], complete: bool) -> str:
    """Return what must not be overlooked: warnings, and a mark across the page where results are incomplete."""
    if not warnings:
        return ""
    mark = "" if complete else '<div class="watermark" aria-hidden="true">INCOMPLETE</div>'
    return f'{mark}<div class="banner" role="alert">{"".join(f"<p>{escape(text)}</p>" for text in warnings)}</div>'


def image_tag(shown: Picture, alt: str, *, lazy: bool = True) -> str:
    """Return a picture, or why there is none."""
    if shown.problem:
        return f'<span class="missing">{escape(shown.problem)}</span>'
    return (
        f'<img src="{webp_uri(shown.data)}"'
        f"{attributes(alt=alt, width=shown.width, height=shown.height, loading='lazy' if lazy else None)}>"
    )


def table_block(table: Table, name: str) -> str:
    """Return a table with its copy buttons and notes; `name` makes its identifier."""
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
        f"{scroll(table.title, f'<table><thead><tr>{head}</tr></thead>{body}</table>')}"
        f"<details><summary>Conventions</summary><ul>{notes}</ul></details></figure>"
    )


def _header(label: str) -> str:
    """Return a column's label, whose arrow stays on the line of its last word."""
    return escape(label).replace(" ↑", "&nbsp;↑").replace(" ↓", "&nbsp;↓")


def _breakable(text: str) -> str:
    """Return a row's name, which may go on in the next line behind a slash."""
    return escape(text).replace("/", "/<wbr>")


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
                cells.append(f'<th scope="row"><bdi>{_breakable(cell)}</bdi></th>')
        yield f"<tr>{''.join(cells)}</tr>"


def scroll(label: str, content: str) -> str:
    """Return what may be wider than a phone, scrolled also by keyboard."""
    return f'<div class="scroll" role="region" tabindex="0"{attributes(aria_label=label)}>{content}</div>'


def switch(choices: Mapping[str, tuple[str, str]], shown: str, *, what: str = "Metric", key: str = "show") -> str:
    """Return the buttons that choose what all charts show.

    Args:
        choices: name → (label, full title).
        shown: the name that is chosen at first.
        what: what is chosen, capitalized.
        key: `show` for elements with `data-metric`, `pick` for those with `data-model`.
    """
    buttons = "".join(
        f'<button type="button"'
        f"{attributes(**{f'data_{key}': name}, aria_pressed=str(name == shown).lower(), title=title)}>"
        f"{escape(label)}</button>"
        for name, (label, title) in choices.items()
    )
    return f'<div class="switch" role="group" aria-label="{escape(what)} of the charts">{buttons}</div>'


def taxonomy_map(label: str, cells: Mapping[tuple[Cause, Effect], str]) -> str:
    """Return a table of effects (rows) by causes (columns).

    Args:
        label: what it shows, for screen readers.
        cells: a whole `<td>` each, of those that there are.
    """
    effects = [effect for effect in Effect if any(effect is place[1] for place in cells)]
    causes = [cause for cause in Cause if any(cause is place[0] for place in cells)]
    head = "".join(_taxonomy_heading(cause, "col") for cause in causes)
    none = '<td class="none"><span class="away">no entry</span></td>'
    rows = "".join(
        f"<tr>{_taxonomy_heading(effect, 'row')}{''.join(cells.get((cause, effect), none) for cause in causes)}</tr>"
        for effect in effects
    )
    table = (
        f'<table class="map"><caption class="away">{escape(label)}</caption><thead><tr>'
        f'<th scope="col"><span class="away">Effect</span></th>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )
    return scroll(label, table)


def _taxonomy_heading(part: Cause | Effect, scope: str) -> str:
    title = escape(part.title).replace("/", "/<wbr>")
    return f"<th{attributes(scope=scope, title=part.meaning)}>{title} <small>{part.code}</small></th>"


def level_strip(levels: Mapping[int, str], shades: Sequence[str]) -> str:
    """Return fields side by side, a shade for each severity: severity → what is said of it."""
    fields = "".join(
        f'<i class="{shade}"{attributes(title=f"severity {severity}: {said}")}></i>'
        for (severity, said), shade in zip(levels.items(), shades, strict=True)
    )
    severities = list(levels)
    span = f"severities {severities[0]} to {severities[-1]}" if len(severities) > 1 else f"severity {severities[0]}"
    said = f"{span}: {', '.join(levels.values())}"
    return f'<span class="levels" role="img"{attributes(aria_label=said)}>{fields}</span>'


def fact_list(facts: Mapping[str, Any]) -> str:
    """Return names and values as a list, mappings among the values as lists inside it."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{_fact(value)}</dd>" for name, value in facts.items())
    return f'<dl class="facts">{rows}</dl>'


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return fact_list(value) if value else "none"
    if isinstance(value, list | tuple):
        return escape(", ".join(map(str, value)))
    return "none" if value is None else f"<bdi>{escape(value)}</bdi>"


def read_seconds(file: Path) -> dict[str, float]:
    """Return the CPU seconds of all units by stage; empty if no times were kept."""
    seconds: Counter[str] = Counter()
    try:
        for line in file.read_text("utf-8").splitlines():
            seconds.update({stage: float(spent) for stage, spent in json.loads(line).items() if stage != "unit"})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{file}: cannot be read ({error}); delete it to have a report without times.") from error
    return dict(seconds)


def time_list(seconds: Mapping[str, float], images: int, degraded: int) -> str:
    """Return the CPU seconds of a run by stage, and what one core does of its images in a second."""
    total = seconds.get("total", 0.0)
    if not total:
        return "<p>No times were kept.</p>"
    facts = {
        stage: f"{spent:,.1f} s, {spent / total:.0%}"
        for stage, spent in sorted(seconds.items(), key=lambda item: -item[1])
        if stage != "total"
    }
    facts["total"] = f"{total:,.1f} s of CPU"
    facts["speed"] = f"{images / total:.3g} images/s, {degraded / total:.3g} degraded images/s on one core"
    return fact_list(facts)


def failure_list(title: str, consequence: str, failed: Mapping[str, str]) -> str:
    """Return what failed and why, cut where it gets long; nothing if nothing failed."""
    if not failed:
        return ""
    items = "".join(
        f"<li><bdi><code>{escape(image)}</code></bdi>: {escape(reason)}</li>"
        for image, reason in list(failed.items())[:_MOST_FAILURES]
    )
    more = f"<p>… and {len(failed) - _MOST_FAILURES:,} more.</p>" if len(failed) > _MOST_FAILURES else ""
    return f'<div class="failures"><h3>{escape(title)}</h3><p>{escape(consequence)}</p><ul>{items}</ul>{more}</div>'


def sessions_block(name: str, sessions: Sequence[Mapping[str, Any]]) -> str:
    """Return when and with what a run was computed; paths on the machine stay out of a page that is passed on."""
    content = "".join(
        fact_list({"Started": s["started"], "Versions": s["versions"], "Machine": s["machine"]}) for s in sessions
    )
    return f"<details><summary>Sessions of {escape(name)}: {len(sessions)}</summary>{content}</details>"


def parameter_table(label: str, titles: Mapping[str, str], entries: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return entries with their place in the taxonomy and their parameters by severity.

    Args:
        label: what the first column lists, in the plural.
        titles: of the entries, by name.
        entries: parameters at each severity, by name.
    """
    rows = []
    for name, levels in entries.items():
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
            f'<tr><th scope="row">{escape(titles[name])}<small>{escape(name)}</small></th>'
            f'<td class="text">{escape(place)}<small>{escape(note)}</small></td>{cells}</tr>'
        )
    most = max((len(levels) for levels in entries.values()), default=0)
    head = "".join(f'<th scope="col">{s}</th>' for s in range(1, most + 1))
    table = (
        f'<table class="entries"><thead><tr><th scope="col">{escape(label.removesuffix("s"))}</th>'
        f'<th scope="col">Cause → effect</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )
    return (
        f"<details><summary>{escape(label)} and their parameters</summary>"
        f"{scroll(f'{label} and their parameters', table)}</details>"
    )


def in_prose(title: str) -> str:
    """Write a title inside a sentence: `motion blur`, `JPEG`."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def rounded(value: Any, digits: int = 6) -> Any:
    """Return JSON values with numbers to so many digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {key: rounded(item, digits) for key, item in value.items()}
    return [rounded(item, digits) for item in value] if isinstance(value, list) else value
