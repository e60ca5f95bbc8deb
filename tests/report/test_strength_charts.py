from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crypsis.report.strength_charts import (
    SHADES,
    Curve,
    Scale,
    curve_chart,
    family_chart,
    index_definitions,
    ruler,
    shade,
    shade_legend,
)

RISING = Scale("1−SSIM", 0.0, 1.0, rising=True)
FALLING = Scale("PSNR (dB)", 0.0, 50.0, rising=False)


def curve(name: str, *mean: float, series: int = 0) -> Curve:
    return Curve(name, name.title(), "family", series, mean, [m - 0.01 for m in mean], [m + 0.01 for m in mean])


def points(svg: str) -> list[list[tuple[float, float]]]:
    found = []
    for line in ElementTree.fromstring(svg).iter("polyline"):
        found.append([(float(x), float(y)) for x, y in (p.split(",") for p in line.attrib["points"].split())])
    return found


def test_stronger_is_up_whether_the_metric_rises_or_falls() -> None:
    for scale, mean in ((RISING, (0.1, 0.2, 0.4, 0.6, 0.9)), (FALLING, (40.0, 30.0, 20.0, 15.0, 10.0))):
        (line,) = points(curve_chart("G1", [curve("a", *mean)], scale))
        heights = [y for _, y in line]
        assert heights == sorted(heights, reverse=True)
        signs = ElementTree.fromstring(curve_chart("G1", [curve("a", *mean)], scale)).iter("use")
        marked = [(sign.attrib["href"], (float(sign.attrib["x"]), float(sign.attrib["y"]))) for sign in signs]
        assert marked == [(f"#n{i}", point) for i, point in enumerate(line, 1)]


def test_few_lines_have_bands_many_have_none() -> None:
    curves = [curve(str(i), 0.1, 0.2, 0.3, 0.4, 0.5) for i in range(4)]
    assert curve_chart("G", curves[:3], RISING).count('class="band') == 3
    assert curve_chart("G", curves, RISING).count('class="band') == 0


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 100), min_size=1, max_size=30, unique=True))
@example([0, 1, 2, 3, 19])
def test_labels_never_overlap_and_keep_the_order_of_the_ends(ends: list[int]) -> None:
    curves = [curve(f"e{i}", 0, 0, 0, 0, end / 100) for i, end in enumerate(ends)]
    root = ElementTree.fromstring(curve_chart("G", curves, RISING))
    height = float(root.attrib["viewBox"].split()[3])
    labels = [float(text.attrib["y"]) for text in root.iter("text") if text.get("class") == "name"]
    from_top = [label for _, label in sorted(zip(ends, labels, strict=True), reverse=True)]
    assert all(0 < label < height for label in labels)
    assert all(below - above >= 11.2 for above, below in pairwise(from_top))


def test_equal_ends_have_labels_under_each_other() -> None:
    curves = [curve(str(i), 0, 0, 0, 0, 0.5) for i in range(5)]
    root = ElementTree.fromstring(curve_chart("G", curves, RISING))
    labels = sorted(float(text.attrib["y"]) for text in root.iter("text") if text.get("class") == "name")
    assert all(below - above >= 11.2 for above, below in pairwise(labels))


def test_a_lone_label_stands_at_its_line() -> None:
    root = ElementTree.fromstring(curve_chart("G", [curve("a", 0, 0.1, 0.2, 0.3, 0.5)], RISING))
    leader = next(line for line in root.iter("line") if line.get("class") == "leader")
    assert leader.attrib["y1"] == leader.attrib["y2"]


def test_a_family_has_the_mean_of_its_entries() -> None:
    svg = family_chart("f", [curve("a", 0, 0, 0, 0, 0.2), curve("b", 0.2, 0.2, 0.2, 0.2, 0.4)], RISING)
    root = ElementTree.fromstring(svg)
    assert root[1].text == "mean over 2 entries: 0.1, 0.1, 0.1, 0.1, 0.3"
    assert len(points(svg)) == 3


def test_a_ruler_sorts_by_severity_3_and_sets_touching_indices_below() -> None:
    found = ruler([curve("strong", 0.5, 0.6, 0.7, 0.8, 0.9), curve("weak", 0.1, 0.101, 0.102, 0.3, 0.05)], RISING)
    assert found.index("Weak") < found.index("Strong")
    marks = re.findall(r'<b style="left:([\d.]+)%(?:;--lane:(\d))?">(\d)</b>', found)
    assert [(float(at), lane, index) for at, lane, index in marks[:5]] == [
        (10, "", "1"), (10.1, "1", "2"), (10.2, "2", "3"), (30, "", "4"), (5, "", "5"),
    ]  # fmt: skip
    assert all(lane == "" for _, lane, _ in marks[5:])
    assert "--lanes:3" in found
    assert "left:5%;width:25%" in found


@pytest.mark.parametrize(
    ("value", "scale", "expected"),
    [
        (0.0, RISING, "h0"), (0.13, RISING, "h1"), (1.0, RISING, "h7"), (2.0, RISING, "h7"),
        (50.0, FALLING, "h0"), (1.0, FALLING, "h7"),
    ],
)  # fmt: skip
def test_shades(value: float, scale: Scale, expected: str) -> None:
    assert shade(value, scale) == expected


def test_the_legend_of_shades_goes_from_weak_to_strong() -> None:
    steps = re.findall(r'<li class="h(\d)">([^<]+)</li>', shade_legend(FALLING))
    assert [int(index) for index, _ in steps] == list(range(SHADES))
    assert (steps[0][1], steps[-1][1]) == ("50–43.8", "6.25–0")


def test_scale_of_a_rising_metric_begins_where_nothing_changed() -> None:
    assert Scale.over([0.4, 0.5], label="x", rising=True).low == 0
    assert Scale.over([30.0, 40.0], label="x", rising=False).low == 30


def test_indices_are_defined_once() -> None:
    root = ElementTree.fromstring(index_definitions())
    assert [g.attrib["id"] for g in root.iter("g")] == ["n1", "n2", "n3", "n4", "n5"]
