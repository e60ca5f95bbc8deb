"""PSNR and SSIM: parity with scikit-image 0.26 on stored pairs, and what must hold for any pair of images."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crypsis.errors import ImageError, InputError, UnknownNameError
from crypsis.severity.strength import METRICS, PSNR_CEILING, CleanImage, Strengths, capped, check_metric, psnr, ssim

DATA = Path(__file__).parents[1] / "data"
PAIRS = json.loads((DATA / "strength_reference.json").read_text("utf-8"))["pairs"]
IMAGES = st.tuples(st.integers(1, 24), st.integers(1, 24)).flatmap(
    lambda size: st.tuples(*[arrays(np.uint8, (*size, 3), elements=st.integers(0, 255), fill=st.integers(0, 255))] * 2)
)


def load(pair: dict) -> tuple[np.ndarray, np.ndarray]:
    with np.load(DATA / "strength_pairs.npz", allow_pickle=False) as stored:
        return stored[f"clean_{pair['id']:02d}"], stored[f"degraded_{pair['id']:02d}"]


def flat(value: int, height: int = 20, width: int = 30) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def by_definition(x: np.ndarray, y: np.ndarray) -> float:
    """SSIM window by window in float64, images continued by reflection where a side is shorter than 11."""
    window = np.exp(-(np.arange(-5, 6) ** 2) / 4.5)
    window = np.outer(window, window) / window.sum() ** 2
    pads = [(0, 0) if side >= 11 else (5, 5) for side in x.shape[:2]]
    x, y = (np.pad(image.astype(float), [*pads, (0, 0)], mode="symmetric") for image in (x, y))
    values = []
    for top in range(x.shape[0] - 10):
        for left in range(x.shape[1] - 10):
            a, b = (image[top : top + 11, left : left + 11] for image in (x, y))
            mean_a, mean_b = (np.tensordot(window, image, 2) for image in (a, b))
            var_a, var_b = (np.tensordot(window, image**2, 2) for image in (a - mean_a, b - mean_b))
            cov = np.tensordot(window, (a - mean_a) * (b - mean_b), 2)
            c1, c2 = 2.55**2, 7.65**2
            luminance = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
            values.append(luminance * (2 * cov + c2) / (var_a + var_b + c2))
    return float(np.mean(values))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["name"])
def test_parity_with_scikit_image(pair: dict) -> None:
    clean, degraded = load(pair)
    assert ssim(clean, degraded) == pytest.approx(pair["ssim"], abs=2e-5, rel=0)
    assert psnr(clean, degraded) == pytest.approx(pair["psnr"], abs=1e-9, rel=0)
    assert CleanImage(clean).strengths(degraded) == Strengths(psnr(clean, degraded), ssim(clean, degraded))


@pytest.mark.parametrize(
    "size", [(1, 1), (1, 2), (2, 1), (3, 4), (10, 10), (10, 11), (11, 10), (4, 30), (107, 3), (120, 13)]
)
def test_definition_at_any_size(size: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(size))
    x, y = rng.integers(0, 256, (2, *size, 3), np.uint8)
    assert ssim(x, y) == pytest.approx(by_definition(x, y), abs=2e-5, rel=0)


@settings(deadline=None, max_examples=200)
@given(IMAGES)
def test_bounds_and_symmetry(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    score = ssim(x, y)
    assert -1 <= score <= 1
    assert score == pytest.approx(ssim(y, x), abs=1e-4, rel=0)
    assert psnr(x, y) == psnr(y, x) >= 0
    assert (psnr(x, y) == math.inf) == np.array_equal(x, y)
    assert ssim(x, x) == 1
    assert psnr(x, x) == math.inf


@settings(deadline=None, max_examples=100)
@given(IMAGES)
def test_opposites_stay_in_bounds(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, _ = pair
    assert -1 <= ssim(x, 255 - x) <= 1


def test_known_values() -> None:
    assert psnr(flat(0), flat(255)) == 0
    assert psnr(flat(7), flat(8)) == pytest.approx(20 * math.log10(255))


@pytest.mark.parametrize(
    ("x", "y"), [(0, 255), (0, 0), (0, 1), (153, 154), (255, 73), (255, 97), (209, 255), (46, 209)]
)
def test_flat_images_have_their_luminance_term(x: int, y: int) -> None:
    c1 = 2.55**2
    expected = (2 * x * y + c1) / (x**2 + y**2 + c1)
    assert ssim(flat(x), flat(y)) == pytest.approx(expected, abs=1e-4, rel=0)
    assert ssim(flat(x, 3, 2), flat(y, 3, 2)) == pytest.approx(expected, abs=1e-4, rel=0)


def test_one_changed_value_counts() -> None:
    x = flat(100, 480, 640)
    y = x.copy()
    y[240, 320, 1] += 1
    assert psnr(x, y) == pytest.approx(10 * math.log10(255**2 * x.size))
    assert 0 < 1 - ssim(x, y) < 1e-7


def test_more_noise_is_stronger() -> None:
    clean, _ = load(PAIRS[0])
    noise = np.random.default_rng(0).standard_normal(clean.shape)
    image = CleanImage(clean)
    noisy = [np.clip(clean + s * noise, 0, 255).astype(np.uint8) for s in (2, 5, 10, 20, 40)]
    levels = [image.strengths(degraded, lpips=True) for degraded in noisy]
    for metric, kind in METRICS.items():
        values = [level.value(metric) for level in levels]
        assert values == sorted(values, reverse=not kind.rising)


def test_memory_order_does_not_matter() -> None:
    clean, degraded = load(PAIRS[0])
    kept = clean.copy()
    turned = (np.asfortranarray(clean), degraded[::-1][::-1])
    strided = (np.repeat(clean, 2, axis=1)[:, ::2], np.repeat(degraded, 2, axis=0)[::2])
    for x, y in (turned, strided):
        x.flags.writeable = y.flags.writeable = False
        assert CleanImage(x).strengths(y) == CleanImage(clean).strengths(degraded)
    assert np.array_equal(clean, kept)


def test_metric_names() -> None:
    strengths = Strengths(psnr=30.0, ssim=0.75, lpips=0.5)
    assert {name: strengths.value(name) for name in METRICS} == {"1-ssim": 0.25, "psnr": 30.0, "lpips": 0.5}
    with pytest.raises(UnknownNameError, match="did you mean '1-ssim'"):
        strengths.value("ssim")
    with pytest.raises(UnknownNameError, match="known: 1-ssim, psnr, lpips"):
        strengths.value("vmaf")
    with pytest.raises(InputError, match="LPIPS was not measured here"):
        Strengths(psnr=30.0, ssim=0.75).value("lpips")


def test_psnr_in_means() -> None:
    values = np.array([[30.0, math.inf], [PSNR_CEILING + 1, PSNR_CEILING]])
    assert capped(values).tolist() == [[30.0, PSNR_CEILING], [PSNR_CEILING, PSNR_CEILING]]
    assert values[0, 1] == math.inf
    assert capped(values[:1].tolist()).dtype == np.float64


@pytest.mark.parametrize("name", ["ssim", ["1-ssim"], None])
def test_no_such_metric(name: object) -> None:
    with pytest.raises(UnknownNameError, match="no strength metric"):
        check_metric(name)
    assert check_metric("lpips") == "lpips"


@pytest.mark.parametrize("measure", [psnr, ssim, lambda x, y: CleanImage(x).strengths(y)])
def test_images_that_cannot_be_compared(measure: object) -> None:
    with pytest.raises(ImageError, match="the clean one is 30×20, the degraded one 31×20"):
        measure(flat(0), flat(0, 20, 31))
    with pytest.raises(ImageError, match="float64"):
        measure(flat(0), flat(0) / 255)
    with pytest.raises(ImageError, match="uint8"):
        measure(flat(0)[:, :, 0], flat(0)[:, :, 0])
    with pytest.raises(ImageError, match="empty"):
        measure(flat(0, 0, 4), flat(0, 0, 4))
