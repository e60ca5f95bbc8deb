from __future__ import annotations

import numpy as np
import pytest

from crypsis.errors import InputError, UnknownNameError
from crypsis.metrics.boundary import boundary_f1, boundary_of, default_tolerance
from crypsis.metrics.truth import MaskTruth


def square(top: int, left: int, side: int = 10, shape: tuple[int, int] = (40, 50)) -> np.ndarray:
    mask = np.zeros(shape, bool)
    mask[top : top + side, left : left + side] = True
    return mask


def f1_by_definition(predicted: np.ndarray, mask: np.ndarray, mode: str, radius: int, tolerance: float) -> float:
    def trace(m: np.ndarray) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(m, radius), (2 * radius + 1,) * 2)
        outer = m if mode == "inner" else windows.any((2, 3))
        return np.argwhere(outer & ~windows.all((2, 3)))

    a, b = trace(predicted), trace(mask)
    if not len(a) or not len(b):
        return float(len(a) == len(b))
    near = np.hypot(*(a[:, None] - b[None]).transpose(2, 0, 1)) <= tolerance
    precision, recall = near.any(1).mean(), near.any(0).mean()
    return 0.0 if precision == 0 or recall == 0 else 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("mode", ["morphological", "inner"])
@pytest.mark.parametrize("radius", [1, 2])
@pytest.mark.parametrize("tolerance", [0, 1, 2.5, 4])
@pytest.mark.parametrize("seed", range(4))
def test_f1_is_what_it_says(mode: str, radius: int, tolerance: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = square(*rng.integers(0, 30, 2)) | square(*rng.integers(0, 30, 2), side=4)
    predicted = np.roll(mask, rng.integers(-4, 5, 2), (0, 1)) & (rng.random(mask.shape) > 0.02)
    got = boundary_f1(predicted, MaskTruth(mask), mode=mode, radius=radius, tolerance=tolerance)
    assert got == pytest.approx(f1_by_definition(predicted, mask, mode, radius, tolerance), abs=1e-12)


@pytest.mark.parametrize(("shift", "expected"), [(0, 1.0), (3, 1.0), (20, 0.0)])
def test_a_shift_within_the_tolerance_costs_nothing(shift: int, expected: float) -> None:
    assert boundary_f1(square(12, 12 + shift), MaskTruth(square(12, 12)), tolerance=3) == expected


def test_tolerance_is_a_euclidean_distance() -> None:
    one, other = np.zeros((2, 20, 20), bool)
    one[5, 5] = other[8, 9] = True  # 5 px apart
    assert boundary_f1(other, MaskTruth(one), mode="inner", tolerance=5) == 1.0
    assert boundary_f1(other, MaskTruth(one), mode="inner", tolerance=4.99) == 0.0


def test_empty_masks() -> None:
    nothing, something = np.zeros((40, 50), bool), square(3, 3)
    assert boundary_f1(nothing, MaskTruth(nothing)) == 1.0
    assert boundary_f1(something, MaskTruth(nothing)) == 0.0
    assert boundary_f1(nothing, MaskTruth(something)) == 0.0


def test_an_object_cut_by_the_frame_has_a_boundary_there() -> None:
    full = np.ones((6, 8), bool)
    expected = np.ones((6, 8), np.uint8)
    expected[1:-1, 1:-1] = 0
    assert (boundary_of(full) == expected).all()
    assert boundary_f1(full, MaskTruth(full)) == 1.0


def test_modes_differ_by_the_outer_pixel() -> None:
    mask = square(10, 10)
    assert np.count_nonzero(boundary_of(mask, mode="inner")) == 10**2 - 8**2
    assert np.count_nonzero(boundary_of(mask)) == 12**2 - 8**2


@pytest.mark.parametrize(
    ("shape", "pixels"), [((1, 1), 1), ((60, 80), 1), ((352, 352), 3), ((384, 384), 3), ((768, 1024), 8)]
)
def test_default_tolerance(shape: tuple[int, int], pixels: int) -> None:
    assert default_tolerance(shape) == pixels


def test_wrong_arguments() -> None:
    truth = MaskTruth(square(3, 3))
    with pytest.raises(UnknownNameError, match="did you mean 'inner'"):
        boundary_f1(truth.mask, truth, mode="iner")
    with pytest.raises(InputError, match="radius"):
        boundary_f1(truth.mask, truth, radius=0)
    for tolerance in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="tolerance"):
            boundary_f1(truth.mask, truth, tolerance=tolerance)
