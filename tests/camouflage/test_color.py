from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.camouflage.color import delta_e2000, lab


@pytest.mark.parametrize(
    ("rgb", "expected"),
    [
        ((0, 0, 0), (0.0, 0.0, 0.0)),
        ((255, 255, 255), (100.0, 0.0, 0.0)),
        ((255, 0, 0), (53.2406, 80.0923, 67.2028)),
        ((0, 255, 0), (87.7351, -86.1830, 83.1795)),
        ((0, 0, 255), (32.2957, 79.1871, -107.8618)),
        ((3, 3, 3), (0.8226, 0.0, 0.0)),
    ],
)
def test_lab_of_known_colors(rgb: tuple[int, int, int], expected: tuple[float, float, float]) -> None:
    assert lab(np.array(rgb, np.uint8)) == pytest.approx(expected, abs=6e-3)


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        # from the table of test data of Sharma, Wu and Dalal (2005)
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 3.1571, -77.2803), (50.0, 0.0, -82.7485), 2.8615),
        ((50.0, 2.8361, -74.0200), (50.0, 0.0, -82.7485), 3.4412),
        ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, -1.0, 2.0), (50.0, 0.0, 0.0), 2.3669),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0009), 7.1792),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0011), 7.2195),
        ((50.0, -0.001, 2.49), (50.0, 0.0009, -2.49), 4.8045),
        ((50.0, -0.001, 2.49), (50.0, 0.0011, -2.49), 4.7461),
        ((50.0, 2.5, 0.0), (50.0, 0.0, -2.5), 4.3065),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.5, 0.0), (61.0, -5.0, 29.0), 22.8977),
        ((50.0, 2.5, 0.0), (56.0, -27.0, -3.0), 31.9030),
        ((50.0, 2.5, 0.0), (58.0, 24.0, 15.0), 19.4535),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_ciede2000(first: tuple[float, ...], second: tuple[float, ...], difference: float) -> None:
    assert delta_e2000(np.array(first), np.array(second)) == pytest.approx(difference, abs=5e-5)


COLOR = st.tuples(*[st.integers(0, 255)] * 3).map(lambda rgb: lab(np.array(rgb, np.uint8)))


@settings(deadline=None, max_examples=100)
@given(COLOR, COLOR)
def test_a_difference_is_symmetric_and_of_equal_colors_zero(first: np.ndarray, second: np.ndarray) -> None:
    assert delta_e2000(first, first) == 0
    assert 0 <= delta_e2000(first, second) == pytest.approx(delta_e2000(second, first))
