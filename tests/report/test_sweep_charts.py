from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from crypsis.camouflage.agreement import judge
from crypsis.camouflage.threshold_sweep import ThresholdSweep
from crypsis.report.sweep_charts import sweep_elbow, sweep_heat_map


def sweep(accuracy: np.ndarray, *, at: tuple[int, int] = (1, 0), top_k: int = 2) -> ThresholdSweep:
    alphas, betas = tuple(np.arange(1, accuracy.shape[0] + 1) / 10), tuple(np.arange(accuracy.shape[1]) / 20)
    return ThresholdSweep(alphas, betas, accuracy, (("a", "b"),), alphas[at[0]], betas[at[1]], top_k, judge([]), 0)


VALUES = np.linspace(0.5, 0.9, 3 * 2 * 4).reshape(3, 2, 4)


def test_the_heat_map_says_each_cell_and_frames_the_best() -> None:
    root = ElementTree.fromstring(sweep_heat_map(sweep(VALUES)))
    cells = [text for text in root.iter("text") if text.attrib["class"] == "value"]
    assert [text.text for text in cells] == [f"{100 * v:.1f}" for v in VALUES[:, :, -1].ravel()]
    boxes = list(root.iter("rect"))
    assert len(boxes) == 7
    frame, chosen = boxes[-1].attrib, boxes[2].attrib
    for at, size in (("x", "width"), ("y", "height")):
        assert float(frame[at]) - float(chosen[at]) == (float(chosen[size]) - float(frame[size])) / 2 > 0
    shades = [box.attrib["style"] for box in boxes[:6]]
    assert shades[0] == "fill:var(--h0)"
    assert shades == sorted(shades)
    assert shades[-1] == "fill:var(--h7)"
    description = root.findtext("desc") or ""
    assert description.startswith("Chosen: τα 0.2, τβ 0. τα 0.1, τβ 0: 55.2;")


def test_a_heat_map_of_one_value_has_one_shade() -> None:
    root = ElementTree.fromstring(sweep_heat_map(sweep(np.full((2, 2, 1), 0.5))))
    assert {box.attrib["style"] for box in list(root.iter("rect"))[:4]} == {"fill:var(--h0)"}


@pytest.mark.parametrize("top_k", [1, 3, 4])
def test_the_elbow_stands_at_the_k_chosen(top_k: int) -> None:
    root = ElementTree.fromstring(sweep_elbow(sweep(VALUES, top_k=top_k)))
    marks = list(root.iter("circle"))
    assert [mark.findtext("title") for mark in marks] == [
        f"K {k}: {100 * VALUES[1, 0, k - 1]:.1f}" for k in range(1, 5)
    ]
    (full,) = [mark for mark in marks if "hollow" not in mark.attrib["class"]]
    (line,) = root.iter("line")
    assert full.attrib["cx"] == line.attrib["x1"] == line.attrib["x2"]
    heights = [float(mark.attrib["cy"]) for mark in marks]
    assert heights == sorted(heights, reverse=True)


def test_an_elbow_stands_one_or_many_k() -> None:
    for count in (1, 20):
        many = sweep(np.full((2, 1, count), 0.7), top_k=1)
        assert len(list(ElementTree.fromstring(sweep_elbow(many)).iter("circle"))) == count
