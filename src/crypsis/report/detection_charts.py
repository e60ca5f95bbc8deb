"""Charts of detectors under degradation: many degradations in one panel, over severity or over measured strength."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .charts import (
    SERIES_COLORS,
    Axis,
    Series,
    coordinate,
    described,
    numbers_below,
    polylines,
    rules_across,
    shortened,
    svg_chart,
    svg_text,
)
from .markup import escape
from .strength_charts import spread

__all__ = ["Frame", "bundle_chart", "named_chart"]

_LABEL_GAP = 11.5


@dataclass(frozen=True, slots=True)
class Frame:
    """The axes that panels share.

    Attributes:
        positions: names of a line's points: `clean`, then severities.
        x_range: ends of the x axis.
        x_label: what x is.
        y_range: ends of the y axis.
        y_label: what y is.
        ranks: whether positions are evenly spaced, from 0; otherwise x is measured.
    """

    positions: Sequence[str]
    x_range: tuple[float, float]
    x_label: str
    y_range: tuple[float, float]
    y_label: str
    ranks: bool

    def below(self, x: Axis, baseline: float) -> list[str]:
        """Return what stands below the x axis."""
        if not self.ranks:
            return numbers_below(x, baseline)
        return [svg_text(x(i), baseline, text, anchor="middle") for i, text in enumerate(self.positions)]


def bundle_chart(title: str, threads: Sequence[Series], mean: Series, frame: Frame, *, series: int) -> str:
    """Return one panel: the mean of many lines, bold, with its severities at its points, and each of them thin.

    Args:
        title: what the lines have in common.
        threads: the lines, with `x`.
        mean: their mean, with `x`.
        frame: the axes.
        series: decides color and dash.
    """
    width, height = 264.0, 200.0
    x, y = Axis(*frame.x_range, 44, width - 12), Axis(*frame.y_range, 176, 30)
    body = [svg_text(10, 15, shortened(title, 36), "panel"), *rules_across(y, 34, width - 4)]
    body += frame.below(x, height - 8)
    color = f"s{series % SERIES_COLORS}"
    for thread in threads:
        lines = "".join(polylines(thread, series, x, y, kind="thread"))
        body.append(f"<g><title>{escape(thread.label)}</title>{lines}</g>")
    dash = f"d{series % SERIES_COLORS}"
    lines = "".join(polylines(mean, series, x, y, kind="line bold"))
    said = described(mean, frame.positions)
    body.append(f'<g class="curve {dash}"><title>{escape(said)}</title>{lines}{_signs(mean, frame, x, y)}</g>')
    name = f"{title}: {frame.y_label} by {frame.x_label}"
    return svg_chart(width, height, name, said, f'<g class="{color}">{"".join(body)}</g>', "bundle")


def named_chart(
    title: str,
    lines: Sequence[Series],
    frame: Frame,
    *,
    colors: Sequence[int] | None = None,
    threads: Sequence[Series] = (),
    large: bool = False,
) -> str:
    """Return one panel: lines with their names at their ends, and others thin behind them.

    Args:
        title: what the lines have in common.
        lines: with `x`.
        frame: the axes.
        colors: of each line; those of one color differ in dashes. In the order of the lines if None.
        threads: more lines, with `x`, whose names only pointing tells.
        large: whether the panel is large, with the severities at the lines' points; the page must hold
            `index_definitions()`.
    """
    width, right, bottom = (520.0, 360.0, 286.0) if large else (404.0, 244.0, max(196.0, 30 + len(lines) * _LABEL_GAP))
    x, y = Axis(*frame.x_range, 46, right), Axis(*frame.y_range, bottom, 30)
    body = [svg_text(10, 15, shortened(title, 54), "panel"), *rules_across(y, 34, right + 6)]
    body += frame.below(x, bottom + 17)
    for thread in threads:
        drawn = "".join(polylines(thread, 0, x, y, kind="thread plain"))
        body.append(f"<g><title>{escape(thread.label)}</title>{drawn}</g>")
    known = [(one, value) for one in lines if (value := one.values[-1]) is not None]
    ends = [y(value) for _, value in known]
    places = dict(zip((one.label for one, _ in known), spread(ends, _LABEL_GAP, 30, bottom + 8), strict=True))
    seen: Counter[int] = Counter()
    for index, one in enumerate(lines):
        color = (index if colors is None else colors[index]) % SERIES_COLORS
        style = f"s{color} d{(color + seen[color]) % SERIES_COLORS}"
        seen[color] += 1
        drawn = "".join(polylines(one, index, x, y, kind="line"))
        if one.label in places:
            end, place = (x(one.at(len(one.values) - 1)), y(one.values[-1] or 0.0)), places[one.label]
            path = f"M{coordinate(end[0] + 6)} {coordinate(end[1])}L{coordinate(right + 18)} {coordinate(place)}"
            name = svg_text(right + 21, place + 3.5, shortened(one.label, 25), "name")
            drawn += f'<path class="leader" d="{path}"/>{name}'
        marks = _signs(one, frame, x, y) if large else ""
        said = described(one, frame.positions)
        body.append(f'<g class="curve {style}"><title>{escape(said)}</title>{drawn}{marks}</g>')
    description = "; ".join(described(one, frame.positions) for one in lines)
    name = f"{title}: {frame.y_label} by {frame.x_label}"
    return svg_chart(width, bottom + 24, name, description, "".join(body), "overlay" if large else "named")


def _signs(series: Series, frame: Frame, x: Axis, y: Axis) -> str:
    return "".join(
        f'<use href="#n{position}" x="{coordinate(x(series.at(i)))}" y="{coordinate(y(value))}"/>'
        for i, (position, value) in enumerate(zip(frame.positions, series.values, strict=True))
        if i and value is not None
    )
