"""Charts of measured strength: curves, entries on one axis, and the shades of the map.

In all of them stronger is up, to the right, or away from the page's own color, also where the metric falls. The
native indices 1..5 are written at their points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .charts import (
    SERIES_COLORS,
    Axis,
    axis_step,
    axis_ticks,
    coordinate,
    shortened,
    svg_chart,
    svg_line,
    svg_text,
    tick_text,
    value_range,
)
from .markup import attributes, escape

__all__ = [
    "SHADES",
    "Curve",
    "Scale",
    "curve_chart",
    "family_chart",
    "family_swatch",
    "index_definitions",
    "ruler",
    "shade",
    "shade_legend",
    "spread",
]

SHADES = 8
"""Number of shades of the style sheet, `h0` to `h7`; the text on each has a contrast of 4.5:1 or more."""

_MOST_BANDS = 3
_LABEL_GAP = 11.5
_MARK = 1.9  # percent of a ruler that a native index takes on a wide screen


@dataclass(frozen=True, slots=True)
class Curve:
    """The measured strength of one entry in one metric at native severities 1..5.

    Attributes:
        name: the entry.
        title: what a figure calls it.
        family: its family.
        series: index of the family among all, which decides color and dash.
        mean: mean over images.
        low: 5% quantile over images.
        high: 95% quantile.
    """

    name: str
    title: str
    family: str
    series: int
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]

    @property
    def said(self) -> str:
        """The numbers in words."""
        return f"{self.title} ({self.name}): {_numbers(self.mean)}"


@dataclass(frozen=True, slots=True)
class Scale:
    """The axis that all charts of a metric share.

    Attributes:
        label: the metric and its unit.
        low: one round end.
        high: the other.
        rising: whether the greater number is the stronger one; if not, charts turn the axis around.
    """

    label: str
    low: float
    high: float
    rising: bool

    @classmethod
    def over(cls, values: Sequence[float], *, label: str, rising: bool) -> Scale:
        """Return the scale that shows all `values`; a rising one begins at 0, where nothing changed."""
        return cls(label, *value_range(values, zero=rising), rising)

    def axis(self, weak: float, strong: float) -> Axis:
        """Return the map onto lengths: what is weakest to `weak`, what is strongest to `strong`."""
        return Axis(self.low, self.high, *((weak, strong) if self.rising else (strong, weak)))

    def ticks(self) -> list[tuple[float, str]]:
        """Return the values that the axis names, with their text."""
        step = axis_step(self.high - self.low)
        return [(tick, tick_text(tick, step)) for tick in axis_ticks(self.low, self.high)]


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values).replace("-", "−")


def _family_style(series: int) -> str:
    return f"s{series % SERIES_COLORS} d{series % SERIES_COLORS}"


def index_definitions() -> str:
    """Return the signs of native indices that curves refer to; they stand once in a page, never hidden."""
    signs = "".join(
        f'<g id="n{index}"><circle class="disc" r="4.6"/>'
        f'<text class="index" y="2.7" text-anchor="middle">{index}</text></g>'
        for index in range(1, 6)
    )
    return f'<svg class="definitions chart" width="0" height="0" aria-hidden="true"><defs>{signs}</defs></svg>'


def family_swatch(series: int) -> str:
    """Return the sign of a family in a legend."""
    body = f'<line class="line {_family_style(series)}" x1="1" y1="7" x2="29" y2="7"/>'
    return f'<svg class="swatch" viewBox="0 0 30 14" aria-hidden="true">{body}</svg>'


def _frame(title: str, scale: Scale, x: Axis, y: Axis, right: float, bottom: float) -> list[str]:
    body = [svg_text(10, 15, shortened(title, 44), "panel")]
    for tick, text in scale.ticks():
        body += [svg_line(34, y(tick), right, y(tick), "rule"), svg_text(30, y(tick) + 3.5, text, anchor="end")]
    body += [svg_text(x(i), bottom + 17, str(i), anchor="middle") for i in range(1, 6)]
    return body


def _points(values: Sequence[float], x: Axis, y: Axis) -> list[tuple[str, str]]:
    return [(coordinate(x(i)), coordinate(y(value))) for i, value in enumerate(values, 1)]


def _polyline(values: Sequence[float], x: Axis, y: Axis, kind: str) -> str:
    return f'<polyline class="{kind}" points="{" ".join(",".join(point) for point in _points(values, x, y))}"/>'


def _signs(values: Sequence[float], x: Axis, y: Axis) -> str:
    return "".join(f'<use href="#n{i}" x="{a}" y="{b}"/>' for i, (a, b) in enumerate(_points(values, x, y), 1))


def curve_chart(title: str, curves: Sequence[Curve], scale: Scale) -> str:
    """Return one panel: mean strength against native severity, a line an entry, its name at its end.

    Up to three lines also show their 5–95% range over images, as a band.

    Args:
        title: what the entries have in common.
        curves: at least one.
        scale: the same for all panels.
    """
    room = len(curves) * _LABEL_GAP
    width, bottom = 404.0, max(204.0, 30 + room)
    x, y = Axis(1, 5, 46, 238), scale.axis(bottom, 30)
    body = _frame(title, scale, x, y, 246, bottom)
    if len(curves) <= _MOST_BANDS:
        for curve in curves:
            edge = [*_points(curve.high, x, y), *reversed(_points(curve.low, x, y))]
            points = " ".join(",".join(point) for point in edge)
            body.append(f'<polygon class="band s{curve.series % SERIES_COLORS}" points="{points}"/>')
    ends = [y(curve.mean[-1]) for curve in curves]
    for curve, end, place in zip(curves, ends, spread(ends, _LABEL_GAP, 30, bottom + 8), strict=True):
        label = svg_text(266, place + 3.5, shortened(curve.title, 24), "name")
        leader = svg_line(244, end, 263, place, "leader")
        body.append(
            f'<g class="curve {_family_style(curve.series)}"><title>{escape(curve.said)}</title>'
            f"{_polyline(curve.mean, x, y, 'line')}{leader}{_signs(curve.mean, x, y)}{label}</g>"
        )
    description = "Means at severities 1 to 5. " + "; ".join(curve.said for curve in curves)
    return svg_chart(
        width, bottom + 24, f"{title}: {scale.label} by native severity", description, "".join(body), "curves"
    )


def spread(places: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Move places apart until neighbors are `gap` apart, in the same order, as little as that takes."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    blocks: list[tuple[float, int]] = []  # of neighbors that touch: where the first would stand, and how many
    for i in order:
        start, count = max(top, min(places[i], bottom)), 1
        while blocks and blocks[-1][0] + blocks[-1][1] * gap > start:
            before, many = blocks.pop()
            # the block that results stands where the mean of its members' wishes puts it
            start = (before * many + (start - many * gap) * count) / (many + count)
            count += many
            start = max(top, min(start, bottom - (count - 1) * gap))
        blocks.append((start, count))
    moved = [0.0] * len(places)
    settled = (start + k * gap for start, count in blocks for k in range(count))
    for i, place in zip(order, settled, strict=True):
        moved[i] = place
    return moved


def family_chart(title: str, curves: Sequence[Curve], scale: Scale) -> str:
    """Return one panel: the mean over a family's entries, with the indices, and every entry as a thin line.

    Args:
        title: the family.
        curves: its entries, at least one.
        scale: the same for all panels.
    """
    width, bottom = 264.0, 196.0
    x, y = Axis(1, 5, 46, width - 16), scale.axis(bottom, 30)
    body = _frame(f"{title} ({len(curves)})", scale, x, y, width - 4, bottom)
    mean = [sum(curve.mean[i] for curve in curves) / len(curves) for i in range(5)]
    body += [
        f'<g class="s{curve.series % SERIES_COLORS}"><title>{escape(curve.title)}</title>'
        f"{_polyline(curve.mean, x, y, 'thread')}</g>"
        for curve in curves
    ]
    said = f"mean over {len(curves)} entries: {_numbers(mean)}"
    body.append(
        f'<g class="curve {_family_style(curves[0].series)}"><title>{escape(f"{title}, {said}")}</title>'
        f"{_polyline(mean, x, y, 'line bold')}{_signs(mean, x, y)}</g>"
    )
    return svg_chart(width, bottom + 24, f"{title}: {scale.label} by native severity", said, "".join(body), "curves")


def ruler(curves: Sequence[Curve], scale: Scale) -> str:
    """Return entries under each other, each with its five native indices where their mean strengths lie.

    Weak is left. The rows are sorted by the strength of severity 3, whose index is filled.

    Args:
        curves: at least one.
        scale: the same for all rulers.
    """
    place = scale.axis(0, 100)
    ticks = "".join(f'<i style="left:{place(tick):.4g}%">{text}</i>' for tick, text in scale.ticks())
    step = 100 * axis_step(scale.high - scale.low) / (scale.high - scale.low)
    rows = "".join(_ruler_row(curve, place) for curve in sorted(curves, key=lambda curve: place(curve.mean[2])))
    return (
        f'<ul class="ruler" style="--tick:{step:.5g}%"><li class="ticks" aria-hidden="true"><span></span>'
        f'<span class="measure">{ticks}</span></li>{rows}</ul>'
    )


def _ruler_row(curve: Curve, place: Axis) -> str:
    places = [place(value) for value in curve.mean]
    lanes: list[float] = []  # of each lane, where its last index lies
    lane_of = [0] * 5
    for i in sorted(range(5), key=lambda i: places[i]):
        lane = next((k for k, last in enumerate(lanes) if places[i] - last >= _MARK), len(lanes))
        lanes[lane:] = [places[i], *lanes[lane + 1 :]]
        lane_of[i] = lane
    marks = "".join(
        f'<b style="left:{at:.4g}%{f";--lane:{lane}" if lane else ""}">{i}</b>'
        for i, (at, lane) in enumerate(zip(places, lane_of, strict=True), 1)
    )
    reach = f'<u style="left:{min(places):.4g}%;width:{max(places) - min(places):.4g}%"></u>'
    said = f"strengths at severities 1 to 5: {_numbers(curve.mean)}"
    lanes_style = f"--lanes:{len(lanes)}" if len(lanes) > 1 else None
    return (
        f'<li class="s{curve.series % SERIES_COLORS}"{attributes(style=lanes_style)}>'
        f"<span><bdi>{escape(curve.title)}</bdi> <small>{escape(curve.family)}</small></span>"
        f'<span class="measure" role="img"{attributes(aria_label=said)}>{reach}{marks}</span></li>'
    )


def shade(value: float, scale: Scale) -> str:
    """Return the class of a value's shade: `h0` for the weakest eighth of the scale to `h7` for the strongest."""
    return f"h{min(int(scale.axis(0, SHADES)(value)), SHADES - 1)}"


def shade_legend(scale: Scale) -> str:
    """Return the shades in order, with the values at which they change."""
    weak, strong = (scale.low, scale.high) if scale.rising else (scale.high, scale.low)
    edges = [weak + (strong - weak) * i / SHADES for i in range(SHADES + 1)]
    steps = "".join(f'<li class="h{i}">{_numbers([edges[i]])}–{_numbers([edges[i + 1]])}</li>' for i in range(SHADES))
    return f'<ol class="shades"{attributes(aria_label=f"Shades by {scale.label}, weak to strong")}>{steps}</ol>'
