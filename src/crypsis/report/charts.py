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
    "Bar",
    "ReliabilityCurve",
    "Series",
    "bar_chart",
    "hatch_definitions",
    "line_chart",
    "meter",
    "reliability_chart",
    "swatch",
    "value_range",
]

SERIES_COLORS = 6
_Value = float | None


@dataclass(frozen=True, slots=True)
class Series:
    """One line: a value per position, None where there is none.

    Attributes:
        label: the model.
        values: y.
        low: lower ends of the 95% intervals; same length.
        high: upper ends; same length.
    """

    label: str
    values: Sequence[_Value]
    low: Sequence[_Value]
    high: Sequence[_Value]


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
    step = _step(high - low)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _step(span: float, most: int = 6) -> float:
    """Return the smallest step of 1, 2, 2.5 or 5 × 10ⁿ that divides `span` into at most `most` parts."""
    power: float = 10.0 ** math.floor(math.log10(span / most))
    return next(k * power for k in (1, 2, 2.5, 5, 10, 20) if span / (k * power) <= most + 1e-9)


def _ticks(low: float, high: float) -> list[float]:
    step = _step(high - low)
    count = math.floor((high - low) / step + 1e-6)
    return [low + i * step for i in range(count + 1)]


def _tick_text(value: float, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if abs(step * 10**digits - round(step * 10**digits)) > 1e-6:
        digits += 1  # steps of 2.5
    return f"{value:.{digits}f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class _Axis:
    """A linear map from values to a length in SVG units."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return self.start + min(max(part, 0.0), 1.0) * (self.end - self.start)


def _n(value: float) -> str:
    """Write a coordinate."""
    return f"{value:.1f}".removesuffix(".0")


def _number(value: _Value) -> str:
    return "undefined" if value is None else f"{value:.3f}".replace("-", "−")


def _said(value: _Value, low: _Value, high: _Value) -> str:
    interval = "" if low is None or high is None else f" [{_number(low)}, {_number(high)}]"
    return _number(value) + interval


def _svg(width: float, height: float, title: str, description: str, body: str, kind: str) -> str:
    return (
        f'<svg class="chart {kind}" role="img" viewBox="0 0 {_n(width)} {_n(height)}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{body}</svg>"
    )


def _text(x: float, y: float, text: str, kind: str = "tick", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{escape(text)}</text>'


def _short(text: str, most: int) -> str:
    """Cut what would run out of its chart; the whole text stands in the chart's title."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"/>'


def _rect(kind: str, x: float, y: float, width: float, height: float, more: str = "") -> str:
    box = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    return f'<rect class="{kind}" {box}{more}/>'


def _style(index: int) -> str:
    """Return the classes of a series; beyond six, colors come again with other dashes."""
    return f"s{index % SERIES_COLORS} d{(index + index // SERIES_COLORS) % SERIES_COLORS}"


def _marker(x: float, y: float, index: int, title: str = "", r: float = 3.1) -> str:
    """Return a mark at a point: circle, square, triangle, diamond, cross or inverted triangle."""
    shape = (index + index // SERIES_COLORS) % SERIES_COLORS
    color = f"mark s{index % SERIES_COLORS}"
    inner = f"<title>{escape(title)}</title>" if title else ""
    if shape == 0:
        return f'<circle class="{color}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(r)}">{inner}</circle>'
    d = r * 1.15
    steps = {
        1: ((-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)),
        2: ((0, -1.1), (1.05, 0.8), (-1.05, 0.8)),
        3: ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
        4: (
            (-0.35, -1), (0.35, -1), (0.35, -0.35), (1, -0.35), (1, 0.35), (0.35, 0.35),
            (0.35, 1), (-0.35, 1), (-0.35, 0.35), (-1, 0.35), (-1, -0.35), (-0.35, -0.35),
        ),
        5: ((0, 1.1), (1.05, -0.8), (-1.05, -0.8)),
    }[shape]  # fmt: skip
    points = " ".join(f"{_n(x + d * a)},{_n(y + d * b)}" for a, b in steps)
    return f'<polygon class="{color}" points="{points}">{inner}</polygon>'


def swatch(index: int, *, bar: bool = False) -> str:
    """Return the sign of a series in a legend: its line and mark, or a piece of its bar."""
    if bar:
        body = _rect(f"fill s{index % SERIES_COLORS}", 1, 2, 28, 10) + _hatch(index, 1, 2, 28, 10)
    else:
        body = f'<line class="line {_style(index)}" x1="1" y1="7" x2="29" y2="7"/>{_marker(15, 7, index)}'
    return f'<svg class="swatch" viewBox="0 0 30 14" aria-hidden="true">{body}</svg>'


def line_chart(
    title: str, positions: Sequence[str], series: Sequence[Series], *, y_range: tuple[float, float], y_label: str
) -> str:
    """Return one panel: a line, marks and a 95% band per series over evenly spaced positions.

    Args:
        title: what the panel shows; drawn above it.
        positions: labels along x.
        series: one value per position each; a None interrupts the line.
        y_range: ends of the y axis; give all panels the same.
        y_label: what y is, for the description and the tooltips.
    """
    width, height = 264.0, 200.0
    x = _Axis(0, max(len(positions) - 1, 1), 44, width - 12)
    y = _Axis(*y_range, height - 24, 30)
    step = _step(y_range[1] - y_range[0])
    body = [_text(10, 15, _short(title, 32), "panel")]
    for tick in _ticks(*y_range):
        body.append(_line(34, y(tick), width - 4, y(tick), "rule"))
        body.append(_text(30, y(tick) + 3.5, _tick_text(tick, step), anchor="end"))
    for i, label in enumerate(positions):
        body.append(_text(x(i), height - 8, label, anchor="middle"))
    for index, one in enumerate(series):
        body += [_band(one, index, x, y, piece) for piece in _pieces(one)]
    for index, one in enumerate(series):
        for piece in _pieces(one):
            points = " ".join(f"{_n(x(i))},{_n(y(one.values[i] or 0.0))}" for i in piece)
            body.append(f'<polyline class="line {_style(index)}" points="{points}"/>')
    for index, one in enumerate(series):
        for i, value in enumerate(one.values):
            if value is not None:
                where = f"{one.label}, {title}, {_position(positions[i])}"
                said = f"{where}: {y_label} {_said(value, one.low[i], one.high[i])}"
                body.append(_marker(x(i), y(value), index, said))
    description = "; ".join(
        f"{one.label}: " + ", ".join(f"{p} {_number(v)}" for p, v in zip(positions, one.values, strict=True))
        for one in series
    )
    return _svg(width, height, f"{title}: {y_label} by severity", description, "".join(body), "lines")


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


def _band(series: Series, index: int, x: _Axis, y: _Axis, piece: Sequence[int]) -> str:
    upper = [(i, high) for i in piece if (high := series.high[i]) is not None]
    lower = [(i, low) for i in piece if (low := series.low[i]) is not None]
    if len(upper) < 2 or len(lower) < 2:
        return ""
    points = " ".join(f"{_n(x(i))},{_n(y(v))}" for i, v in (*upper, *reversed(lower)))
    return f'<polygon class="band s{index % SERIES_COLORS}" points="{points}"/>'


def bar_chart(title: str, groups: Mapping[str, Sequence[Bar]], *, x_range: tuple[float, float], x_label: str) -> str:
    """Return horizontal bars, grouped, each with its 95% interval, its value and a line at its reference.

    Args:
        title: what the chart shows, for screen readers.
        groups: group label → bars, in one order of series.
        x_range: ends of the x axis; should begin at 0.
        x_label: what x is, for the description and the tooltips.
    """
    width, left, right = 460.0, 118.0, 46.0
    thick = 16.0 if max((len(bars) for bars in groups.values()), default=1) <= 2 else 11.0
    x = _Axis(*x_range, left, width - right)
    step = _step(x_range[1] - x_range[0])
    body: list[str] = []
    top = 22.0
    marks: list[str] = []
    for name, bars in groups.items():
        bottom = top + len(bars) * (thick + 2)
        body.append(_text(left - 10, (top + bottom) / 2 + 3, _short(name, 17), "category", "end"))
        for index, bar in enumerate(bars):
            y = top + index * (thick + 2)
            marks.append(_bar(bar, index, name, x, y, thick, x_label))
        top = bottom + 12
    for tick in _ticks(*x_range):
        body.insert(0, _line(x(tick), 18, x(tick), top - 8, "rule"))
        body.append(_text(x(tick), 11, _tick_text(tick, step), anchor="middle"))
    description = "; ".join(
        f"{name}: " + ", ".join(f"{bar.label} {_number(bar.value)}" for bar in bars) for name, bars in groups.items()
    )
    return _svg(width, top - 4, f"{title}: {x_label}", description, "".join(body + marks), "bars")


def _bar(bar: Bar, index: int, group: str, x: _Axis, y: float, thick: float, x_label: str) -> str:
    middle = y + thick / 2
    clean = "" if bar.reference is None else f", clean {_number(bar.reference)}"
    said = f"{bar.label}, {group}: {x_label} {_said(bar.value, bar.low, bar.high)}{clean}"
    if bar.value is None:
        return f"<g><title>{escape(said)}</title>{_text(x.start + 4, middle + 3.5, '–', 'value')}</g>"
    start, end = sorted((x(max(x.low, 0.0)), x(bar.value)))
    length = max(end - start, 0.8)
    parts = [
        f"<title>{escape(said)}</title>",
        _rect(f"fill s{index % SERIES_COLORS}", start, y, length, thick),
        _hatch(index, start, y, length, thick),
    ]
    if bar.low is not None and bar.high is not None:
        parts.append(_line(x(bar.low), middle, x(bar.high), middle, "whisker"))
    if bar.reference is not None:
        parts.append(_line(x(bar.reference), y, x(bar.reference), y + thick, "reference"))
    parts.append(_text(x.end + 40, middle + 3.5, _number(bar.value), "value", "end"))
    return f"<g>{''.join(parts)}</g>"


def _hatch(index: int, x: float, y: float, width: float, height: float) -> str:
    """Return the pattern that tells a bar from its neighbors without color; the first has none."""
    if index == 0:
        return ""
    pattern = 1 + (index - 1) % (SERIES_COLORS - 1)
    return _rect("hatch", x, y, width, height, f' fill="url(#hatch-{pattern})"')


def hatch_definitions() -> str:
    """Return the patterns that bars refer to; they stand once in a page, in an element that is never hidden."""
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
    return f'<svg class="definitions" width="0" height="0" aria-hidden="true"><defs>{patterns}</defs></svg>'


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
    x = _Axis(left, 1.0, 44, width - 14)
    y = _Axis(bottom, 1.0, 206, 46)
    share = _Axis(math.log10(floor), 0.0, height - 26, 222)
    body = [_text(10, 15, _short(title, 32), "panel")]
    for tick in (t / 10 for t in range(math.ceil(10 * bottom), 11, 1 if bottom > 0.2 else 2)):
        body.append(_line(38, y(tick), width - 8, y(tick), "rule"))
        body.append(_text(34, y(tick) + 3.5, f"{tick:.1f}", anchor="end"))
    for tick in (t / 10 for t in range(math.ceil(10 * left), 11, 1 if left else 2)):
        body.append(_text(x(tick), height - 10, f"{tick:.1f}", anchor="middle"))
    body.append(_line(x(left), y(left), x(1.0), y(1.0), "ideal"))
    for power, label in ((0, "100%"), (-2, "1%"), (-4, "0.01%")):
        body.append(_line(38, share(power), width - 8, share(power), "rule"))
        body.append(_text(34, share(power) + 3.5, label, anchor="end"))
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
        corners = " ".join(f"{_n(a)},{_n(b)}" for a, b, *_ in points)
        lines.append(f'<polyline class="line {name} {color}" points="{corners}"/>')
        for a, b, confidence, accuracy, part in points:
            said = (
                f"{title}, {curve.label}: confidence {confidence:.3f}, accuracy {accuracy:.3f}, "
                f"{100 * part:.2f}% of pixels"
            )
            lines.append(
                f'<circle class="point {name} {color}" cx="{_n(a)}" cy="{_n(b)}" r="3.2">'
                f"<title>{escape(said)}</title></circle>"
            )
    body += bars + lines
    said = " · ".join(f"{curve.label} {_number(curve.ece)}" for curve in curves)
    body.append(_text(10, 31, f"ECE {said}", "tick"))
    description = "; ".join(
        f"{curve.label}: "
        + ", ".join(
            f"confidence {c:.2f} accuracy {a:.2f}"
            for c, a in zip(curve.confidence, curve.accuracy, strict=True)
            if c is not None and a is not None
        )
        for curve in curves
    )
    return _svg(width, height, f"Reliability of {title}", description, "".join(body), "reliability")


def meter(clean: _Value, corrupted: _Value, *, series: int, label: str) -> str:
    """Return a thin bar on a scale of 0 to 1: what is kept, full, and what was there on clean images, pale."""
    x = _Axis(0, 1, 0, 240)
    body = _rect("track", 0, 1, 240, 8, ' rx="4"')
    for value, kind in ((clean, "pale"), (corrupted, "fill")):
        if value is not None:
            body += _rect(f"{kind} s{series % SERIES_COLORS}", 0, 1, x(value), 8, ' rx="4"')
    said = f"{label}: clean {_number(clean)}, corrupted {_number(corrupted)}"
    return f'<svg class="chart meter" role="img" viewBox="0 0 240 10"><title>{escape(said)}</title>{body}</svg>'
