"""Charts of a threshold search: agreement by τα and τβ as a heat map, and by K as an elbow.

Source: "SeamCam" (arXiv 2605.16515), appendix B.
"""

from __future__ import annotations

from ..camouflage.threshold_sweep import ThresholdChoice
from .charts import (
    Axis,
    Series,
    coordinate,
    numbers_below,
    polylines,
    rules_across,
    shortened,
    svg_chart,
    svg_line,
    svg_text,
    value_range,
)
from .markup import attributes, escape
from .strength_charts import SHADES

__all__ = ["sweep_elbow", "sweep_heat_map"]

_CELL = 44.0, 28.0


def sweep_heat_map(sweep: ThresholdChoice) -> str:
    """Return agreement on the tuning pairs at the largest K: a row for each τα, a column for each τβ, in percent.

    Darker (in a dark scheme, lighter) is better, the shades dividing what occurs into eighths; the thresholds chosen
    are framed.
    """
    values = sweep.accuracy[:, :, -1]
    (cell, row), left, top = _CELL, 58.0, 46.0
    columns, rows = len(sweep.tau_betas), len(sweep.tau_alphas)
    width, height = max(left + columns * cell + 10, 264.0), top + rows * row + 30
    low, high = float(values.min()), float(values.max())
    shade = Axis(low, high, 0, SHADES) if high > low else None
    title = f"Agreement in % at K = {sweep.accuracy.shape[2]}, {len(sweep.tuning)} tuning pairs"
    body = [svg_text(10, 15, shortened(title, int(width / 7)), "panel"), svg_text(10, top - 8, "τα")]
    body.append(svg_text(left + columns * cell / 2, height - 6, "τβ", anchor="middle"))
    for j, beta in enumerate(sweep.tau_betas):
        body.append(svg_text(left + (j + 0.5) * cell, height - 20, f"{beta:g}", anchor="middle"))
    said, frame = [], ""
    for i, alpha in enumerate(sweep.tau_alphas):
        y = top + i * row
        body.append(svg_text(left - 8, y + row / 2 + 4, f"{alpha:g}", anchor="end"))
        for j, beta in enumerate(sweep.tau_betas):
            x, value = left + j * cell, float(values[i, j])
            level = min(int(shade(value)), SHADES - 1) if shade else 0
            box = {"x": coordinate(x + 1), "y": coordinate(y + 1), "width": cell - 2, "height": row - 2, "rx": 4}
            body.append(f"<rect{attributes(**box, style=f'fill:var(--h{level})')}/>")
            words = f"τα {alpha:g}, τβ {beta:g}: {100 * value:.1f}"
            said.append(words)
            ink = f"fill:var(--t{level})"
            body.append(
                f'<text class="value" text-anchor="middle"{attributes(x=coordinate(x + cell / 2), style=ink)}'
                f"{attributes(y=coordinate(y + row / 2 + 3.5))}>{100 * value:.1f}<title>{escape(words)}</title></text>"
            )
            if (alpha, beta) == (sweep.tau_alpha, sweep.tau_beta):
                inset = {"x": coordinate(x + 3.5), "y": coordinate(y + 3.5), "width": cell - 7, "height": row - 7}
                frame = f"<rect{attributes(**inset, style=f'fill:none;stroke:var(--t{level});stroke-width:1.5')}/>"
    chosen = f"Chosen: τα {sweep.tau_alpha:g}, τβ {sweep.tau_beta:g}. "
    return svg_chart(width, height, title, chosen + "; ".join(said), "".join(body) + frame, "bars heat")


def sweep_elbow(sweep: ThresholdChoice) -> str:
    """Return agreement on the tuning pairs by K at the thresholds chosen, with an upright line at the K chosen."""
    i, j = sweep.tau_alphas.index(sweep.tau_alpha), sweep.tau_betas.index(sweep.tau_beta)
    found = [100 * float(value) for value in sweep.accuracy[i, j]]
    count = len(found)
    none = (None,) * count
    series = Series("agreement", found, none, none, x=range(1, count + 1))
    width, height = 440.0, 290.0
    x, y = Axis(1, max(count, 2), 44, width - 14), Axis(*value_range(found), height - 38, 30)
    title = f"Agreement in % by K, at τα {sweep.tau_alpha:g} and τβ {sweep.tau_beta:g}"
    body = [svg_text(10, 15, shortened(title, 60), "panel"), *rules_across(y, 34, width - 4)]
    if count <= 12:
        body += [svg_text(x(k), height - 20, str(k), anchor="middle") for k in range(1, count + 1)]
    else:
        body += numbers_below(x, height - 20)
    body.append(svg_text((x.start + x.end) / 2, height - 5, "K", anchor="middle"))
    body.append(svg_line(x(sweep.top_k), y.start, x(sweep.top_k), y.end, "ideal"))
    body += polylines(series, 0, x, y)
    said = [f"K {k}: {value:.1f}" for k, value in enumerate(found, 1)]
    for k, (value, words) in enumerate(zip(found, said, strict=True), 1):
        kind = "point s0" if k == sweep.top_k else "point hollow s0"
        body.append(
            f'<circle class="{kind}" cx="{coordinate(x(k))}" cy="{coordinate(y(value))}" r="3.2">'
            f"<title>{escape(words)}</title></circle>"
        )
    return svg_chart(width, height, title, f"Chosen: K {sweep.top_k}. " + "; ".join(said), "".join(body), "bars elbow")
