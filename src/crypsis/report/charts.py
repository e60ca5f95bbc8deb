"""Charts as SVG text, written by hand: small, sharp in print, readable by a screen reader, no library.

Colors, dashes and hatches are classes `s0`…`s5` and `d0`…`d5` of the page's style sheet, so that light, dark
and print have their own; no two series differ by color alone. Colors follow Okabe and Ito, "Color Universal
Design" (2008).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .markup import escape

__all__ = [
    "SERIES_COLORS",
    "Axis",
    "Bar",
    "ReliabilityCurve",
    "Series",
    "axis_step",
    "axis_ticks",
    "bar_chart",
    "chart_definitions",
    "coordinate",
    "described",
    "line_chart",
    "meter",
    "numbers_below",
    "overlay_chart",
    "polylines",
    "reliability_chart",
    "rules_across",
    "shortened",
    "svg_chart",
    "svg_line",
    "svg_text",
    "swatch",
    "tick_text",
    "value_range",
]

SERIES_COLORS = 6
"""Number of colors, dashes and hatches of the style sheet."""
_Value = float | None


@dataclass(frozen=True, slots=True)
class Series:
    """One line: a value per position, None where there is none.

    Attributes:
        label: the model.
        values: y.
        low: lower ends of the 95% intervals; same length.
        high: upper ends; same length.
        x: where the values stand on a numeric axis; same length. None stands for even spacing.
    """

    label: str
    values: Sequence[_Value]
    low: Sequence[_Value]
    high: Sequence[_Value]
    x: Sequence[float] | None = None

    def at(self, i: int) -> float:
        """Return the x of a position."""
        return i if self.x is None else self.x[i]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a group.

    Attributes:
        label: the model.
        value: its length.
        low: lower end of its 95% interval.
        high: upper end.
        reference: where its reference line stands, the clean value.
    """

    label: str
    value: _Value
    low: _Value = None
    high: _Value = None
    reference: _Value = None


@dataclass(frozen=True, slots=True)
class ReliabilityCurve:
    """Pooled bins of one condition: share of pixels, mean confidence and accuracy, None in an empty bin."""

    label: str
    share: Sequence[float]
    confidence: Sequence[_Value]
    accuracy: Sequence[_Value]
    ece: _Value


def value_range(values: Iterable[_Value], *, zero: bool = False) -> tuple[float, float]:
    """Return round ends of an axis that shows all `values`; from 0 if asked; (0, 1) if there are none."""
    known = [v for v in values if v is not None and math.isfinite(v)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low < 1e-9:
        pad = max(abs(high) * 0.1, 1e-3)
        low, high = (low, high + pad) if zero else (low - pad, high + pad)
    step = axis_step(high - low)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def axis_step(span: float, most: int = 6) -> float:
    """Return the smallest step of 1, 2, 2.5 or 5 × 10ⁿ that divides `span` into at most `most` parts."""
    power: float = 10.0 ** math.floor(math.log10(span / most))
    return next(k * power for k in (1, 2, 2.5, 5, 10, 20) if span / (k * power) <= most + 1e-9)


def axis_ticks(low: float, high: float) -> list[float]:
    """Return the values that an axis between two round ends names."""
    step = axis_step(high - low)
    count = math.floor((high - low) / step + 1e-6)
    return [low + i * step for i in range(count + 1)]


def tick_text(value: float, step: float) -> str:
    """Write a value of an axis with as many decimals as its steps need."""
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if abs(step * 10**digits - round(step * 10**digits)) > 1e-6:
        digits += 1  # steps of 2.5
    return f"{value:.{digits}f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear map from values to a length in SVG units."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return self.start + min(max(part, 0.0), 1.0) * (self.end - self.start)


def coordinate(value: float) -> str:
    """Write a coordinate to a tenth of a unit."""
    return f"{value:.1f}".removesuffix(".0")


def _number(value: _Value) -> str:
    return "undefined" if value is None else f"{value:.3f}".replace("-", "−")


def _said(value: _Value, low: _Value, high: _Value) -> str:
    interval = "" if low is None or high is None else f" [{_number(low)}, {_number(high)}]"
    return _number(value) + interval


def svg_chart(width: float, height: float, title: str, description: str, body: str, kind: str) -> str:
    """Return a chart; `title` and `description` are what a screen reader says, `kind` is a class."""
    return (
        f'<svg class="chart {kind}" role="img" viewBox="0 0 {coordinate(width)} {coordinate(height)}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{body}</svg>"
    )


def svg_text(x: float, y: float, text: str, kind: str = "tick", anchor: str = "start") -> str:
    """Return text in a chart, its baseline at `y`."""
    return f'<text class="{kind}" x="{coordinate(x)}" y="{coordinate(y)}" text-anchor="{anchor}">{escape(text)}</text>'


def shortened(text: str, most: int) -> str:
    """Cut what would run out of its chart; the whole text stands in the chart's title."""
    return text if len(text) <= most else text[: most - 1] + "…"


def svg_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line."""
    start, end = f'x1="{coordinate(x1)}" y1="{coordinate(y1)}"', f'x2="{coordinate(x2)}" y2="{coordinate(y2)}"'
    return f'<line class="{kind}" {start} {end}/>'


def _rect(kind: str, x: float, y: float, width: float, height: float, more: str = "") -> str:
    box = f'x="{coordinate(x)}" y="{coordinate(y)}" width="{coordinate(width)}" height="{coordinate(height)}"'
    return f'<rect class="{kind}" {box}{more}/>'


def _style(index: int) -> str:
    """Return the classes of a series; beyond six, colors come again with other dashes."""
    return f"s{index % SERIES_COLORS} d{(index + index // SERIES_COLORS) % SERIES_COLORS}"


def _shape(index: int) -> int:
    return (index + index // SERIES_COLORS) % SERIES_COLORS


def _mark(x: float, y: float, index: int, title: str = "") -> str:
    """Return a reference to the mark of a series, see `chart_definitions`; its group has the color."""
    at = f'x="{coordinate(x)}" y="{coordinate(y)}"'
    inner = f"<title>{escape(title)}</title></use>" if title else ""
    return f'<use href="#m{_shape(index)}" {at}{">" if title else "/>"}{inner}'


def swatch(index: int, *, bar: bool = False, mark: bool = True) -> str:
    """Return the sign of a series in a legend: its line, with its mark or without, or a piece of its bar."""
    if bar:
        body = _rect(f"fill s{index % SERIES_COLORS}", 1, 2, 28, 10) + _hatch(index, 1, 2, 28, 10)
    else:
        sign = f'<g class="mark s{index % SERIES_COLORS}">{_mark(15, 7, index)}</g>' if mark else ""
        body = f'<line class="line {_style(index)}" x1="1" y1="7" x2="29" y2="7"/>{sign}'
    return f'<svg class="swatch" viewBox="0 0 30 14" aria-hidden="true">{body}</svg>'


def line_chart(
    title: str,
    positions: Sequence[str],
    series: Sequence[Series],
    *,
    y_range: tuple[float, float],
    y_label: str,
    x_range: tuple[float, float] | None = None,
    x_label: str = "severity",
    brief: bool = False,
) -> str:
    """Return one panel: a line, marks and a 95% band per series over positions.

    Args:
        title: what the panel shows; drawn above it.
        positions: labels along x.
        series: one value per position each; a None interrupts the line.
        y_range: ends of the y axis; give all panels the same.
        y_label: what y is, for the description and the tooltips.
        x_range: ends of a numeric x axis, on which every series has its own `x`. The labels that are severities stand
            on a ruler below, where the first series with values has them. Without it the positions are evenly spaced.
        x_label: what x is, likewise.
        brief: whether pointing tells the names of lines, not the value of each mark, as it does with `x_range`.
    """
    brief = brief or x_range is not None
    width, height = 264.0, 218.0 if x_range else 200.0
    low, high = x_range or (0.0, max(len(positions) - 1.0, 1.0))
    x = Axis(low, high, 44, width - 12)
    y = Axis(*y_range, 176, 30)
    body = [svg_text(10, 15, shortened(title, 32), "panel"), *rules_across(y, 34, width - 4)]
    if x_range:
        measured = next((one for one in series if any(v is not None for v in one.values)), series[0])
        body += [*numbers_below(x, height - 8), *_ruler(measured, positions, x, y.start)]
    else:
        body += [svg_text(x(i), height - 8, label, anchor="middle") for i, label in enumerate(positions)]
    for index, one in enumerate(series):
        body += [_band(one, index, x, y, piece) for piece in _pieces(one)]
    for index, one in enumerate(series):
        body += polylines(one, index, x, y)
    for index, one in enumerate(series):
        body.append(f'<g class="mark s{index % SERIES_COLORS}">')
        if brief:
            body.append(f"<title>{escape(one.label)}</title>")
        for i, value in enumerate(one.values):
            if value is not None:
                where = f"{one.label}, {title}, {_position(positions[i])}"
                said = f"{where}: {y_label} {_said(value, one.low[i], one.high[i])}"
                body.append(_mark(x(one.at(i)), y(value), index, "" if brief else said))
        body.append("</g>")
    name = f"{title}: {y_label} by {x_label}"
    description = "; ".join(described(one, positions) for one in series)
    return svg_chart(width, height, name, description, "".join(body), "lines")


def overlay_chart(
    title: str,
    series: Sequence[Series],
    *,
    y_range: tuple[float, float],
    y_label: str,
    x_range: tuple[float, float],
    x_label: str,
    marked: float | None = None,
) -> str:
    """Return one larger panel of many lines on a numeric axis, each with its severities written at their points.

    Beside it should stand the `line_chart` of each, which says the numbers to screen readers. The page must hold the
    severities' signs, `crypsis.report.strength_charts.index_definitions()`.

    Args:
        title: what the panel shows; drawn above it.
        series: values at clean, which is not marked, and at severities 1 and on, with `x`; bands are left out.
        y_range: ends of the y axis; give all panels the same.
        y_label: what y is, for the description and the tooltips.
        x_range: ends of the x axis.
        x_label: what x is, likewise.
        marked: a value of x to draw an upright line at.
    """
    width, height = 460.0, 320.0
    positions = ["clean", *(str(s) for s in range(1, max(len(one.values) for one in series)))]
    x, y = Axis(*x_range, 44, width - 14), Axis(*y_range, height - 38, 30)
    body = [
        svg_text(10, 15, shortened(title, 58), "panel"),
        *rules_across(y, 34, width - 4),
        *numbers_below(x, height - 20),
    ]
    body.append(svg_text((x.start + x.end) / 2, height - 5, x_label, anchor="middle"))
    if marked is not None:
        body += [svg_line(x(marked), y.start, x(marked), y.end, "ideal")]
        body.append(svg_text(x(marked), y.end - 3, _number(marked), anchor="middle"))
    for index, one in enumerate(series):
        signs = "".join(
            f'<use href="#n{i}" x="{coordinate(x(one.at(i)))}" y="{coordinate(y(value))}"/>'
            for i, value in enumerate(one.values)
            if i and value is not None
        )
        lines, said = "".join(polylines(one, index, x, y)), described(one, positions)
        body.append(f'<g class="curve {_style(index)}"><title>{escape(said)}</title>{lines}{signs}</g>')
    description = f"Lines of {', '.join(one.label for one in series)}; their numbers stand in the panels of each."
    return svg_chart(width, height, f"{title}: {y_label} by {x_label}", description, "".join(body), "overlay")


def rules_across(y: Axis, left: float, right: float) -> list[str]:
    """Return the lines across a panel at the round values of y, with these at their left."""
    step, ticks = axis_step(y.high - y.low), axis_ticks(y.low, y.high)
    lines = "".join(f"M{coordinate(left)} {coordinate(y(tick))}H{coordinate(right)}" for tick in ticks)
    numbers = [svg_text(left - 4, y(tick) + 3.5, tick_text(tick, step), anchor="end") for tick in ticks]
    return [f'<path class="rule" d="{lines}"/>', *numbers]


def numbers_below(x: Axis, baseline: float) -> list[str]:
    """Return the round values of x, as many as there is room for."""
    step = axis_step(x.high - x.low)
    return [svg_text(x(t), baseline, tick_text(t, step), anchor="middle") for t in axis_ticks(x.low, x.high)]


def _ruler(series: Series, positions: Sequence[str], x: Axis, top: float) -> list[str]:
    """Return a strip with the severities where they lie on x; of those too close together the outer ones."""
    body = [_rect("track", x.start - 6, top + 3, x.end - x.start + 12, 13, ' rx="3"')]
    severities = [i for i, label in enumerate(positions) if label.isdigit()]
    taken: list[float] = []
    for i in (*severities[-1:], *severities[:-1]):
        place = x(series.at(i))
        if all(abs(place - other) >= _ROOM for other in taken):
            taken.append(place)
            body.append(svg_text(place, top + 13, positions[i], "level", "middle"))
    ticks = "".join(f"M{coordinate(x(series.at(i)))} {coordinate(top)}v3" for i in severities)
    return [*body, f'<path class="whisker" d="{ticks}"/>']


_ROOM = 7.5  # units that a digit takes


def polylines(series: Series, index: int, x: Axis, y: Axis, *, kind: str = "") -> list[str]:
    """Return the line of a series, in pieces where values are missing; `kind` replaces the classes of its index."""
    lines, classes = [], kind or f"line {_style(index)}"
    for piece in _pieces(series):
        points = " ".join(f"{coordinate(x(series.at(i)))},{coordinate(y(series.values[i] or 0.0))}" for i in piece)
        lines.append(f'<polyline class="{classes}" points="{points}"/>')
    return lines


def described(series: Series, positions: Sequence[str]) -> str:
    """Say all values of a line, and where they stand on a numeric axis."""
    return f"{series.label}: " + ", ".join(
        f"{positions[i]}{'' if series.x is None else f' at {_number(series.x[i])}'} {_number(value)}"
        for i, value in enumerate(series.values)
    )


def _position(label: str) -> str:
    return f"severity {label}" if label.isdigit() else label


def _pieces(series: Series) -> list[list[int]]:
    """Return runs of neighboring positions that have values."""
    pieces: list[list[int]] = []
    for i, value in enumerate(series.values):
        if value is None:
            continue
        if pieces and pieces[-1][-1] == i - 1:
            pieces[-1].append(i)
        else:
            pieces.append([i])
    return pieces


def _band(series: Series, index: int, x: Axis, y: Axis, piece: Sequence[int]) -> str:
    upper = [(i, high) for i in piece if (high := series.high[i]) is not None]
    lower = [(i, low) for i in piece if (low := series.low[i]) is not None]
    if len(upper) < 2 or len(lower) < 2:
        return ""
    points = " ".join(f"{coordinate(x(series.at(i)))},{coordinate(y(v))}" for i, v in (*upper, *reversed(lower)))
    return f'<polygon class="band s{index % SERIES_COLORS}" points="{points}"/>'


def bar_chart(
    title: str,
    groups: Mapping[str, Sequence[Bar]],
    *,
    x_range: tuple[float, float],
    x_label: str,
    room: float = 118.0,
) -> str:
    """Return horizontal bars, grouped, each with its 95% interval, its value and a line at its reference.

    Args:
        title: what the chart shows, for screen readers.
        groups: group label → bars, in one order of series.
        x_range: ends of the x axis; should begin at 0.
        x_label: what x is, for the description and the tooltips.
        room: units of the chart's 460 that the groups' labels take.
    """
    width, left, right = 460.0, room, 46.0
    thick = 16.0 if max((len(bars) for bars in groups.values()), default=1) <= 2 else 11.0
    x = Axis(*x_range, left, width - right)
    step = axis_step(x_range[1] - x_range[0])
    body: list[str] = []
    top = 22.0
    marks: list[str] = []
    for name, bars in groups.items():
        bottom = top + len(bars) * (thick + 2)
        body.append(
            svg_text(left - 10, (top + bottom) / 2 + 3, shortened(name, int((left - 16) / 6)), "category", "end")
        )
        for index, bar in enumerate(bars):
            y = top + index * (thick + 2)
            marks.append(_bar(bar, index, name, x, y, thick, x_label))
        top = bottom + 12
    for tick in axis_ticks(*x_range):
        body.insert(0, svg_line(x(tick), 18, x(tick), top - 8, "rule"))
        body.append(svg_text(x(tick), 11, tick_text(tick, step), anchor="middle"))
    description = "; ".join(
        f"{name}: " + ", ".join(f"{bar.label} {_number(bar.value)}" for bar in bars) for name, bars in groups.items()
    )
    return svg_chart(width, top - 4, f"{title}: {x_label}", description, "".join(body + marks), "bars")


def _bar(bar: Bar, index: int, group: str, x: Axis, y: float, thick: float, x_label: str) -> str:
    middle = y + thick / 2
    clean = "" if bar.reference is None else f", clean {_number(bar.reference)}"
    said = f"{bar.label}, {group}: {x_label} {_said(bar.value, bar.low, bar.high)}{clean}"
    if bar.value is None:
        return f"<g><title>{escape(said)}</title>{svg_text(x.start + 4, middle + 3.5, '–', 'value')}</g>"
    start, end = sorted((x(max(x.low, 0.0)), x(bar.value)))
    length = max(end - start, 0.8)
    parts = [
        f"<title>{escape(said)}</title>",
        _rect(f"fill s{index % SERIES_COLORS}", start, y, length, thick),
        _hatch(index, start, y, length, thick),
    ]
    if bar.low is not None and bar.high is not None:
        parts.append(svg_line(x(bar.low), middle, x(bar.high), middle, "whisker"))
    if bar.reference is not None:
        parts.append(svg_line(x(bar.reference), y, x(bar.reference), y + thick, "reference"))
    parts.append(svg_text(x.end + 40, middle + 3.5, _number(bar.value), "value", "end"))
    return f"<g>{''.join(parts)}</g>"


def _hatch(index: int, x: float, y: float, width: float, height: float) -> str:
    """Return the pattern that tells a bar from its neighbors without color; the first has none."""
    if index == 0:
        return ""
    pattern = 1 + (index - 1) % (SERIES_COLORS - 1)
    return _rect("hatch", x, y, width, height, f' fill="url(#hatch-{pattern})"')


def chart_definitions() -> str:
    """Return the patterns of bars and the marks of lines, which charts refer to.

    They stand once in a page, in an element that is never hidden.
    """
    paths = {
        1: "M0 6L6 0M-1 1L1 -1M5 7L7 5",
        2: "M0 3H6",
        3: "M0 0L6 6M5 -1L7 1M-1 5L1 7",
        4: "M3 0V6",
        5: "M0 6L6 0M0 0L6 6",
    }
    patterns = "".join(
        f'<pattern id="hatch-{i}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path class="hatch-line" d="{path}"/></pattern>'
        for i, path in paths.items()
    )
    shapes = (
        "-2.9 -2.9 2.9 -2.9 2.9 2.9 -2.9 2.9",
        "0 -3.9 3.7 2.9 -3.7 2.9",
        "0 -4.3 4.3 0 0 4.3 -4.3 0",
        "-1.2 -3.6 1.2 -3.6 1.2 -1.2 3.6 -1.2 3.6 1.2 1.2 1.2 1.2 3.6 -1.2 3.6 -1.2 1.2 -3.6 1.2 -3.6 -1.2 -1.2 -1.2",
        "0 3.9 3.7 -2.9 -3.7 -2.9",
    )
    marks = "".join(f'<polygon id="m{i}" points="{points}"/>' for i, points in enumerate(shapes, 1))
    marks += '<circle id="m0" r="3.1"/>'
    return f'<svg class="definitions" width="0" height="0" aria-hidden="true"><defs>{patterns}{marks}</defs></svg>'


def reliability_chart(title: str, curves: Sequence[ReliabilityCurve], *, series: int) -> str:
    """Return accuracy against confidence, with the share of pixels of every bin below, on a log scale.

    Args:
        title: the model.
        curves: clean first, drawn hollow and solid; then corrupted, drawn full and dashed.
        series: index of the model among all, which decides the color.
    """
    width, height, floor = 264.0, 292.0, 1e-4
    confident = [c for curve in curves for c in curve.confidence if c is not None]
    right = [a for curve in curves for a in curve.accuracy if a is not None]
    left = 0.45 if min(confident, default=1.0) >= 0.45 else 0.0
    bottom = min(left, math.floor(10 * min(right, default=1.0)) / 10)
    x = Axis(left, 1.0, 44, width - 14)
    y = Axis(bottom, 1.0, 206, 46)
    share = Axis(math.log10(floor), 0.0, height - 26, 222)
    body = [svg_text(10, 15, shortened(title, 32), "panel")]
    for tick in (t / 10 for t in range(math.ceil(10 * bottom), 11, 1 if bottom > 0.2 else 2)):
        body.append(svg_line(38, y(tick), width - 8, y(tick), "rule"))
        body.append(svg_text(34, y(tick) + 3.5, f"{tick:.1f}", anchor="end"))
    for tick in (t / 10 for t in range(math.ceil(10 * left), 11, 1 if left else 2)):
        body.append(svg_text(x(tick), height - 10, f"{tick:.1f}", anchor="middle"))
    body.append(svg_line(x(left), y(left), x(1.0), y(1.0), "ideal"))
    for power, label in ((0, "100%"), (-2, "1%"), (-4, "0.01%")):
        body.append(svg_line(38, share(power), width - 8, share(power), "rule"))
        body.append(svg_text(34, share(power) + 3.5, label, anchor="end"))
    color = f"s{series % SERIES_COLORS}"
    bars: list[str] = []
    lines: list[str] = []
    for k, curve in enumerate(curves):
        name = "hollow" if k == 0 else "full"
        wide = (x.end - x.start) / (15 * (1 - left)) * 0.36
        points = []
        for part, confidence, accuracy in zip(curve.share, curve.confidence, curve.accuracy, strict=True):
            if confidence is None or accuracy is None:
                continue
            points.append((x(confidence), y(accuracy), confidence, accuracy, part))
            bar_top = share(math.log10(max(part, floor)))
            bar_left = x(confidence) - wide * (1 - k)
            bars.append(_rect(f"share {name} {color}", bar_left, bar_top, wide, share.start - bar_top))
        corners = " ".join(f"{coordinate(a)},{coordinate(b)}" for a, b, *_ in points)
        lines.append(f'<polyline class="line {name} {color}" points="{corners}"/>')
        for a, b, confidence, accuracy, part in points:
            said = (
                f"{title}, {curve.label}: confidence {confidence:.3f}, accuracy {accuracy:.3f}, "
                f"{100 * part:.2f}% of pixels"
            )
            lines.append(
                f'<circle class="point {name} {color}" cx="{coordinate(a)}" cy="{coordinate(b)}" r="3.2">'
                f"<title>{escape(said)}</title></circle>"
            )
    body += bars + lines
    said = " · ".join(f"{curve.label} {_number(curve.ece)}" for curve in curves)
    body.append(svg_text(10, 31, f"ECE {said}", "tick"))
    description = "; ".join(
        f"{curve.label}: "
        + ", ".join(
            f"confidence {c:.2f} accuracy {a:.2f}"
            for c, a in zip(curve.confidence, curve.accuracy, strict=True)
            if c is not None and a is not None
        )
        for curve in curves
    )
    return svg_chart(width, height, f"Reliability of {title}", description, "".join(body), "reliability")


def meter(clean: _Value, corrupted: _Value, *, series: int, label: str, most: float = 1.0) -> str:
    """Return a thin bar from 0 to `most`: what is kept, full, and what was there on clean images, pale."""
    x = Axis(0, most, 0, 240)
    body = _rect("track", 0, 1, 240, 8, ' rx="4"')
    for value, kind in ((clean, "pale"), (corrupted, "fill")):
        if value is not None:
            body += _rect(f"{kind} s{series % SERIES_COLORS}", 0, 1, x(value), 8, ' rx="4"')
    said = f"{label}: clean {_number(clean)}, corrupted {_number(corrupted)}"
    return f'<svg class="chart meter" role="img" viewBox="0 0 240 10"><title>{escape(said)}</title>{body}</svg>'
