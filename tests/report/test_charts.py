from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.report.charts import (
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

POSITIONS = ["clean", "1", "2", "3", "4", "5"]


def line(label: str, values: Sequence[float | None]) -> Series:
    low = [None if v is None else v - 0.02 for v in values]
    high = [None if v is None else v + 0.02 for v in values]
    return Series(label, values, low, high)


def parse(svg: str) -> ElementTree.Element:
    """Parse a chart, and check what every chart must have."""
    assert "nan" not in svg
    assert "inf" not in svg
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert [child.tag for child in root[:2]] == ["title", "desc"]
    assert root[0].text
    return root


def classes(root: ElementTree.Element, tag: str, kind: str) -> list[str]:
    return [e.get("class", "") for e in root.iter(tag) if kind in e.get("class", "").split()]


@pytest.mark.parametrize("models", [1, 2, 6, 8])
def test_lines_differ_by_more_than_color(models: int) -> None:
    series = [line(f"m{i}", [0.8 - 0.1 * k for k in range(6)]) for i in range(models)]
    root = parse(line_chart("Fog", POSITIONS, series, y_range=(0, 1), y_label="Dice"))
    styles = classes(root, "polyline", "line")
    assert len(styles) == len(set(styles)) == models
    assert len({style.split()[-1] for style in styles}) == min(models, 6)  # dashes
    titles = [t.text for t in root.iter("title")]
    assert f"m{models - 1}, Fog, severity 5: Dice 0.300 [0.280, 0.320]" in titles
    assert "m0, Fog, clean: Dice 0.800 [0.780, 0.820]" in titles


def test_a_numeric_axis() -> None:
    places = [0.0, 0.1, 0.12, 0.14, 0.3, 0.4]
    series = [replace(line(name, [0.8, 0.7, None, 0.6, 0.5, 0.4]), x=places) for name in ("a", "b")]
    svg = line_chart("Fog", POSITIONS, series, y_range=(0, 1), y_label="Dice", x_range=(0, 0.4), x_label="1−SSIM")
    root = parse(svg)
    assert root[0].text == "Fog: Dice by 1−SSIM"
    assert (root[1].text or "").startswith(
        "a: clean at 0.000 0.800, 1 at 0.100 0.700, 2 at 0.120 undefined, 3 at 0.140"
    )
    marks = [float(use.get("x", "")) for use in root.iter("use")]
    assert marks == pytest.approx([44 + 208 * place / 0.4 for i, place in enumerate(places) if i != 2] * 2, abs=0.06)
    level = {t.text: float(t.get("x", "")) for t in root.iter("text") if t.get("class") == "level"}
    assert level == pytest.approx({"5": 252, "1": 96, "2": 106.4, "3": 116.8, "4": 200}, abs=0.06)
    assert [t.text for t in root.iter("text") if t.get("class") == "tick"][-5:] == ["0.0", "0.1", "0.2", "0.3", "0.4"]


def test_severities_too_close_to_read_leave_the_outer_ones() -> None:
    series = [replace(line("m", [0.5] * 6), x=[0.0, 0.1, 0.105, 0.11, 0.112, 0.115])]
    root = parse(line_chart("JPEG", POSITIONS, series, y_range=(0, 1), y_label="Dice", x_range=(0, 1), x_label="x"))
    assert {t.text for t in root.iter("text") if t.get("class") == "level"} == {"5"}
    ruler = next(p.get("d", "") for p in root.iter("path") if p.get("class") == "whisker")
    assert ruler.count("M") == 5


def test_a_line_without_values_keeps_its_place_and_the_ruler_is_of_another() -> None:
    nothing = Series("stored", [None] * 6, [None] * 6, [None] * 6, [0.0] * 6)
    series = [nothing, replace(line("live", [0.5] * 6), x=[0.0, 0.1, 0.2, 0.3, 0.4, 0.5])]
    root = parse(line_chart("Fog", POSITIONS, series, y_range=(0, 1), y_label="Dice", x_range=(0, 0.5), x_label="x"))
    assert classes(root, "polyline", "line") == ["line s1 d1"]
    assert len([t for t in root.iter("text") if t.get("class") == "level"]) == 5


def test_lines_on_one_axis_have_their_severities_at_their_points() -> None:
    series = [
        replace(line(f"entry {k}", [0.8, 0.7, 0.6, None, 0.5, 0.4]), x=[s * (k + 1) / 50 for s in range(6)])
        for k in range(8)
    ]
    svg = overlay_chart("net", series, y_range=(0, 1), y_label="Dice", x_range=(0, 1), x_label="1−SSIM", marked=0.1)
    root = parse(svg)
    curves = [g for g in root.iter("g") if "curve" in g.get("class", "")]
    assert len({g.get("class") for g in curves}) == 8
    assert [use.get("href") for use in curves[0].iter("use")] == ["#n1", "#n2", "#n4", "#n5"]
    assert curves[7][0].text == (
        "entry 7: clean at 0.000 0.800, 1 at 0.160 0.700, 2 at 0.320 0.600, 3 at 0.480 undefined, 4 at 0.640 0.500, "
        "5 at 0.800 0.400"
    )
    marked = next(e for e in root.iter("line") if e.get("class") == "ideal")
    assert marked.get("x1") == marked.get("x2") == "84.2"
    assert "0.100" in [t.text for t in root.iter("text")]


def test_a_missing_value_interrupts_the_line() -> None:
    root = parse(
        line_chart("Fog", POSITIONS, [line("m", [0.5, 0.5, None, 0.4, 0.3, None])], y_range=(0, 1), y_label="Dice")
    )
    assert len(classes(root, "polyline", "line")) == 2
    assert len(list(root.iter("use"))) == 4


@pytest.mark.parametrize("value", [None, 0.0, 0.5, 1.0])
def test_constant_or_absent_values(value: float | None) -> None:
    series = [line("m", [value] * 6)]
    parse(line_chart("Fog", POSITIONS, series, y_range=value_range([value]), y_label="Dice"))
    parse(bar_chart("t", {"Fog": [Bar("m", value)]}, x_range=value_range([value], zero=True), x_label="Dice"))
    parse(reliability_chart("m", [ReliabilityCurve("clean", [0.0] * 15, [None] * 15, [None] * 15, value)], series=0))
    ElementTree.fromstring(meter(value, value, series=0, label="m"))


@pytest.mark.parametrize("models", [1, 6, 8])
def test_bars(models: int) -> None:
    groups = {
        name: [Bar(f"m{i}", 0.6 - 0.05 * i, 0.5 - 0.05 * i, 0.65 - 0.05 * i, 0.7) for i in range(models)]
        for name in ("Fog", "Rain")
    }
    root = parse(bar_chart("Mean", groups, x_range=(0, 0.8), x_label="Dice"))
    bars = [r for r in root.iter("rect") if "fill" in r.get("class", "").split()]
    assert len(bars) == 2 * models
    assert float(bars[0].get("width", "0")) == pytest.approx(0.6 / 0.8 * (460 - 118 - 46), abs=0.1)
    assert len(classes(root, "rect", "hatch")) == 2 * (models - 1)
    assert len(classes(root, "line", "reference")) == len(classes(root, "line", "whisker")) == 2 * models
    assert "m0, Fog: Dice 0.600 [0.500, 0.650], clean 0.700" in [t.text for t in root.iter("title")]


def test_room_for_long_labels() -> None:
    label = "Color-space conversion damage"
    found = {}
    for room in (118.0, 218.0):
        root = parse(bar_chart("t", {label: [Bar("m", 0.5)]}, x_range=(0, 1), x_label="AP", room=room))
        found[room] = next(t.text for t in root.iter("text") if t.get("class") == "category")
    assert found == {118.0: "Color-space conv…", 218.0: label}


def test_meter_ends_where_it_is_told() -> None:
    root = ElementTree.fromstring(meter(0.2, 0.1, series=0, label="m", most=0.2))
    assert [bar.get("width") for bar in root.iter() if bar.tag == "rect"] == ["240", "240", "120"]


def test_brief_lines_are_told_by_name_alone() -> None:
    series = [line("net", [0.5, 0.4, 0.3])]
    told = []
    for brief in (False, True):
        root = parse(line_chart("Fog", POSITIONS[:3], series, y_range=(0, 1), y_label="AP", brief=brief))
        told.append([title.text for title in root.iter("title")][1:])
    assert told[1] == ["net"]
    assert len(told[0]) == 3


def test_hatches_referred_to_are_defined() -> None:
    defined = {p.get("id") for p in ElementTree.fromstring(chart_definitions()).iter("pattern")}
    used = {r.get("fill") for i in range(12) for r in ElementTree.fromstring(swatch(i, bar=True)).iter("rect")}
    assert {f"url(#{name})" for name in defined} == used - {None}


def test_marks_referred_to_are_defined() -> None:
    defined = {f"#{e.get('id')}" for e in ElementTree.fromstring(chart_definitions()).iter() if e.get("id")}
    used = {u.get("href") for i in range(12) for u in ElementTree.fromstring(swatch(i)).iter("use")}
    assert used < defined
    assert len(used) == 6
    assert not list(ElementTree.fromstring(swatch(0, mark=False)).iter("use"))


def test_reliability_shows_filled_bins_of_both_conditions() -> None:
    confidence = [None] * 7 + [0.5 + 0.06 * k for k in range(8)]
    curves = [
        ReliabilityCurve("clean", [0.0] * 7 + [0.125] * 8, confidence, confidence, 0.0),
        ReliabilityCurve("corrupted", [0.0] * 7 + [0.125] * 8, confidence, [None] * 7 + [0.45] * 8, 0.25),
    ]
    svg = reliability_chart("m", curves, series=1)
    root = parse(svg)
    assert len(classes(root, "circle", "hollow")) == len(classes(root, "circle", "full")) == 8
    assert "ECE clean 0.000 · corrupted 0.250" in svg
    assert "accuracy 0.450, 12.50% of pixels" in svg


def test_text_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    series = [line(evil, [0.5] * 6)]
    for svg in (
        line_chart(evil, POSITIONS, series, y_range=(0, 1), y_label=evil),
        bar_chart(evil, {evil: [Bar(evil, 0.5)]}, x_range=(0, 1), x_label=evil),
        reliability_chart(evil, [ReliabilityCurve(evil, [1.0], [0.9], [0.8], 0.1)], series=0),
        meter(0.5, 0.4, series=0, label=evil),
    ):
        assert "<script" not in svg
        ElementTree.fromstring(svg)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.one_of(st.none(), st.floats(-5, 5, allow_subnormal=False)), max_size=8), st.booleans())
def test_value_range_holds_all_values(values: list[float | None], zero: bool) -> None:
    low, high = value_range(values, zero=zero)
    assert math.isfinite(low)
    assert low < high
    known = [v for v in values if v is not None]
    slack = 1e-6 * max(1.0, high - low)
    assert all(low - slack <= v <= high + slack for v in known)
    if zero:
        assert low <= 0 <= high
