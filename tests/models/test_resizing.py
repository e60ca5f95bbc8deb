from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.models.activations import minmax, sigmoid
from crypsis.models.resizing import KERNELS, resize_image, resize_map

SIDES = st.integers(1, 40)


def bilinear(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Bilinear with half-pixel centers, from its definition, in float64."""
    for axis, out in enumerate(size):
        side = values.shape[axis]
        at = np.clip((np.arange(out) + 0.5) * side / out - 0.5, 0, side - 1)
        low = np.floor(at).astype(int)
        weight = np.expand_dims(at - low, 1 - axis)
        values = (1 - weight) * values.take(low, axis) + weight * values.take(np.minimum(low + 1, side - 1), axis)
    return values


@settings(deadline=None, max_examples=80)
@given(h=SIDES, w=SIDES, out_h=SIDES, out_w=SIDES, seed=st.integers(0, 1000))
def test_maps_are_resized_bilinearly_and_stay_in_range(h, w, out_h, out_w, seed) -> None:
    values = np.random.default_rng(seed).random((h, w), np.float32)
    before = values.copy()
    resized = resize_map(values, (out_h, out_w))
    assert resized.dtype == np.float32
    assert resized.shape == (out_h, out_w)
    np.testing.assert_allclose(resized, bilinear(values.astype(np.float64), (out_h, out_w)), atol=2e-5)
    assert values.min() <= resized.min() <= resized.max() <= values.max()
    assert not np.shares_memory(resized, values)
    np.testing.assert_array_equal(values, before)


def test_nan_in_a_map_is_kept() -> None:
    values = np.zeros((4, 4), np.float32)
    values[1, 1] = np.nan
    assert np.isnan(resize_map(values, (8, 8))).any()


@pytest.mark.parametrize("kernel", KERNELS)
@settings(deadline=None, max_examples=15)
@given(h=SIDES, w=SIDES, out_h=SIDES, out_w=SIDES, level=st.integers(0, 255))
def test_every_kernel_keeps_a_flat_image_flat(kernel, h, w, out_h, out_w, level) -> None:
    resized = resize_image(np.full((h, w, 3), level, np.uint8), (out_h, out_w), kernel)
    assert resized.dtype == np.uint8
    np.testing.assert_array_equal(resized, np.full((out_h, out_w, 3), level))


def test_kernels_are_what_they_are_called() -> None:
    image = np.random.default_rng(0).integers(0, 256, (24, 36, 3), dtype=np.uint8)
    size = (8, 12)
    results = {kernel: resize_image(image, size, kernel).astype(float) for kernel in KERNELS}
    pillow = PIL.Image.fromarray(image).resize((12, 8), PIL.Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(results["bilinear-antialias"], np.asarray(pillow))
    np.testing.assert_array_equal(results["nearest"], image[1::3, 1::3])  # the center of each 3×3
    np.testing.assert_allclose(results["area"], image.reshape(8, 3, 12, 3, 3).mean(axis=(1, 3)), atol=0.51)
    plain = np.stack([bilinear(image[:, :, c].astype(float), size) for c in range(3)], axis=2)
    np.testing.assert_allclose(results["bilinear"], plain, atol=0.75)


def test_bicubic_overshoots_where_bilinear_does_not() -> None:
    edge = np.zeros((1, 8, 3), np.uint8) + np.uint8(60)
    edge[:, 4:] = 200
    assert resize_image(edge, (1, 32), "bicubic").max() > 200 >= resize_image(edge, (1, 32), "bilinear").max()


def test_an_image_of_the_right_size_is_given_back() -> None:
    image = np.zeros((5, 6, 3), np.uint8)
    assert resize_image(image, (5, 6), "bicubic") is image


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-200, 200, width=32), min_size=1, max_size=20))
def test_sigmoid_is_exact_and_never_overflows(values) -> None:
    logits = np.array(values, np.float32)
    expected = 1 / (1 + np.exp(-logits.astype(np.float64)))
    np.testing.assert_allclose(sigmoid(logits), expected, rtol=1e-5, atol=1e-30)
    assert sigmoid(logits).dtype == np.float32


def test_sigmoid_of_infinities_and_nan() -> None:
    np.testing.assert_allclose(sigmoid(np.float32([np.inf, -np.inf, np.nan])), [1.0, 0.0, np.nan], atol=1e-30)


def test_minmax_spans_the_unit_interval_and_leaves_flat_maps_at_zero() -> None:
    stretched = minmax(np.float32([[0.2, 0.3], [0.4, 0.2]]))
    np.testing.assert_allclose(stretched, [[0, 0.5], [1, 0]], atol=1e-6)
    assert stretched.max() <= 1.0
    assert minmax(np.full((2, 2), 0.8, np.float32)).max() == 0.0
