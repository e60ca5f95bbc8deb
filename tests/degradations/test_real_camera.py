"""Failures of sensor, raw pipeline, lens and board."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from crypsis.degradations.blur import gaussian_blur
from crypsis.degradations.color import color_veil, gray_world
from crypsis.degradations.occlusion import lens_drops
from crypsis.degradations.sensor import (
    bayer_mosaic,
    blooming_columns,
    broken_sensor,
    dead_lines,
    dead_pixels,
    demosaic,
    gray_pixels,
    lens_shading,
    ycbcr_offset,
)
from crypsis.degradations.tone import gamma_curve
from crypsis.degradations.transfer import cleared_bits, lost_rows, lost_rows_field, zeroed_bytes
from crypsis.degradations.weather import distance_fog
from crypsis.errors import InputError

BROKEN: dict[str, Any] = {"spots": 9, "spot_weight": 0.5, "band_strength": 0.6, "leak_half_width": 25}
DROPS: dict[str, Any] = {"drops": 100, "scale": 0.05, "luma": 0.7}
SIZES = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (1, 9), (9, 1), (2, 7), (5, 8), (31, 47), (1, 40000), (40000, 1)]


def generator(seed: int = 5) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


# --- mosaic


@pytest.mark.parametrize("size", SIZES)
def test_mosaic_keeps_one_channel_of_every_pixel(size: tuple[int, int]) -> None:
    image = generator().integers(0, 256, (*size, 3), dtype=np.uint8)
    raw = bayer_mosaic(image)
    assert all(n % 2 == 0 and n >= 4 for n in raw.shape)
    y, x = np.mgrid[: size[0], : size[1]]
    channel = np.where(y % 2, np.where(x % 2, 2, 1), np.where(x % 2, 1, 0))  # RGGB
    assert np.array_equal(raw[: size[0], : size[1]], image[y, x, channel])


@pytest.mark.parametrize("size", SIZES)
def test_demosaicing_keeps_a_plain_color(size: tuple[int, int]) -> None:
    image = np.full((*size, 3), (200, 120, 40), np.uint8)
    assert np.array_equal(demosaic(bayer_mosaic(image), height=size[0], width=size[1]), image)


def test_demosaicing_keeps_what_was_measured(natural: np.ndarray) -> None:
    image = natural[:61, :83]
    result = demosaic(bayer_mosaic(image), height=61, width=83)
    assert np.array_equal(result[2:-1:2, 2:-1:2, 0], image[2:-1:2, 2:-1:2, 0])
    assert np.array_equal(result[1:-1:2, 1:-1:2, 2], image[1:-1:2, 1:-1:2, 2])
    green = image[:, :, 1].astype(int)
    cross = green[1:-3:2, 2:-1:2] + green[3::2, 2:-1:2] + green[2:-1:2, 1:-3:2] + green[2:-1:2, 3::2]
    assert abs(result[2:-1:2, 2:-1:2, 1] - cross / 4).max() <= 0.5


# --- sensor


def test_shading_is_even_inside_and_black_in_the_corners() -> None:
    white = np.full((120, 160, 3), 255, np.uint8)
    for falloff in (0.1, 0.5, 1.0):
        gain = lens_shading(white, falloff=falloff).astype(float)
        y, x = np.mgrid[:120, :160]
        share = np.hypot(y - 60, x - 80) / 100
        assert (gain[share < 1 - falloff - 0.05] == 255).all()
        exact = 255 * np.clip((1 - share) / falloff, 0, 1)[:, :, None]
        assert abs(gain - exact)[2:-2, 2:-2].max() < 255 * 0.02 / falloff
        assert gain[0, 0].max() < 255 * 0.03 / falloff


@pytest.mark.parametrize("operator", [dead_pixels, gray_pixels, ycbcr_offset])
@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.3, 0.6, 1.0])
def test_share_of_hit_pixels(operator: Callable[..., np.ndarray], fraction: float) -> None:
    image = np.full((200, 300, 3), (200, 120, 40), np.uint8)
    result = operator(image, fraction=fraction, rng=generator())
    if operator is dead_pixels:  # interpolation spreads a dead value; its own pixel is 0
        hit = (bayer_mosaic(result)[2:-2, 2:-2] == 0).mean()
    else:
        hit = (abs(result.astype(int) - image).max(axis=2) > 2).mean()
    spread = 4 * np.sqrt(fraction * (1 - fraction) / 58000)
    assert hit == pytest.approx(fraction, abs=spread + 1e-9)


@pytest.mark.parametrize("operator", [gray_pixels, ycbcr_offset])
def test_hit_pixels_are_nested(operator: Callable[..., np.ndarray]) -> None:
    image = np.full((50, 60, 3), (200, 120, 40), np.uint8)
    none = operator(image, fraction=0.0, rng=generator())
    few, many = ((operator(image, fraction=f, rng=generator()) != none).any(axis=2) for f in (0.1, 0.3))
    assert (many | ~few).all()
    assert many.sum() > 2 * few.sum() > 0


def test_gray_images_have_no_color_to_lose(natural: np.ndarray) -> None:
    gray = np.repeat(natural[:, :, :1], 3, axis=2)
    assert np.array_equal(gray_pixels(gray, fraction=0.6, rng=generator()), gray)


def test_offset_pixels_are_green() -> None:
    image = np.full((20, 20, 3), 128, np.uint8)
    red, green, blue = ycbcr_offset(image, fraction=1.0, rng=generator())[5, 5].tolist()
    assert green > 200
    assert red == blue == 0


@pytest.mark.parametrize("operator", [blooming_columns, dead_lines])
def test_defects_are_nested_and_their_spots_small(operator: Callable[..., np.ndarray]) -> None:
    gray = np.full((300, 400, 3), 100, np.uint8)
    assert np.array_equal(operator(gray, defects=0, rng=generator()), gray)
    few, many = (operator(gray, defects=n, rng=generator()) for n in (4, 20))
    lines = [(part != 100).any(axis=2).all(axis=0) for part in (few, many)]
    assert lines[0].sum() == 4
    assert (lines[1] | ~lines[0]).all()
    one = operator(gray, defects=1, rng=generator())
    column = int((one != 100).all(axis=(0, 2)).argmax())
    spot = (one == 255).all(axis=2)
    spot[:, column] = False
    assert 2 <= spot.sum() <= 4 * 8  # half axes up to 2 and 4 pixels
    assert spot.any(axis=1).sum() <= 9
    assert spot.any(axis=0).sum() <= 4


def test_parts_of_a_broken_sensor() -> None:
    gray = np.full((300, 400, 3), 100, np.uint8)

    def broken(**changes: Any) -> np.ndarray:
        return broken_sensor(gray, **{**BROKEN, **changes}, rng=generator())

    spots = broken(band_strength=0, leak_half_width=0)
    assert (spots[:, :, 1:] == 100).all()
    assert set(np.unique(spots[:, :, 0])) == {100, 228}
    band = broken(spots=0, leak_half_width=0)
    assert (band == band[:1]).all()
    assert (band[:, :, 1] == 100).all()
    assert np.array_equal(band[:, :, 0], band[:, :, 2])
    assert band.max() == 190
    leak = broken(spots=0, band_strength=0)
    assert set(np.unique(leak)) == {0, 100}
    assert (leak == 0).all(axis=(1, 2)).sum() == 2
    whole = broken()
    assert (whole[(leak == 0).all(axis=2)] == 0).all()
    assert np.array_equal(broken(spots=0, band_strength=0, leak_half_width=0), gray)
    fewer = broken(spots=4, band_strength=0, leak_half_width=0)
    assert (spots[:, :, 0] >= fewer[:, :, 0]).all()


# --- lens


def test_drops_show_the_view_upside_down() -> None:
    image = np.zeros((480, 640, 3), np.uint8)
    image[:240] = 240  # light above, dark below
    image[:, :, 0] = np.where(np.arange(640) < 320, 200, 0)  # red at the left
    seen = 0
    for seed in range(60):
        drop = lens_drops(image, drops=1, scale=0.1, luma=1.0, rng=generator(seed))
        y, x, _ = generator(seed).random(3) * (480, 640, 1)
        row, column = int(y), int(x)
        # a border at 240 lies at 24 in the small view, and the drop's middle at y / 10; all is turned
        if abs(y - 240) < 60:
            seen += 1
            below = np.arange(-8, 9) > int(y / 10) - 24
            assert (drop[row - 8 : row + 9, column, 1] == np.where(below, 240, 0)).mean() > 0.85
        if abs(x - 320) < 40:
            seen += 1
            right = np.arange(-5, 6) > int(x / 10) - 32
            assert (drop[row, column - 5 : column + 6, 0] == np.where(right, 200, 0)).mean() > 0.8
    assert seen > 10


def test_drops_are_nested_at_one_scale(natural: np.ndarray) -> None:
    dim = lens_drops(natural, **{**DROPS, "drops": 0}, rng=generator())
    luma = natural @ np.array([0.299, 0.587, 0.114])
    assert abs(dim - np.clip(natural - 0.3 * luma[:, :, None], 0, 255)).max() < 1.01
    few = (lens_drops(natural, **{**DROPS, "drops": 20}, rng=generator()) != dim).any(axis=2)
    many = (lens_drops(natural, **DROPS, rng=generator()) != dim).any(axis=2)
    assert (many | ~few).mean() > 0.99  # later drops may by chance show what was there
    assert many.mean() > 2 * few.mean() > 0


def test_fog_is_never_brighter_than_the_scene_where_it_is_clear() -> None:
    image = np.full((60, 9000, 3), 200, np.uint8)
    foggy = distance_fog(image, density=0.25, airlight=0.6)
    assert (foggy <= 200).all()
    assert (foggy[:, -1] == 200).all()
    assert foggy[12, 4500, 0] == 153


def test_blur_mirrors_or_repeats(natural: np.ndarray) -> None:
    part = natural[:20, :30]
    padded = np.pad(part, ((4, 4), (4, 4), (0, 0)), mode="reflect")
    mirrored = gaussian_blur(part, sigma=1.7, truncate=2.3, mirror=True)
    assert np.array_equal(mirrored, gaussian_blur(padded, sigma=1.7, truncate=2.3)[4:-4, 4:-4])
    assert not np.array_equal(mirrored, gaussian_blur(part, sigma=1.7, truncate=2.3))


# --- color


def test_veil_color(natural: np.ndarray) -> None:
    veiled = color_veil(natural, color=(255, 0, 10), alpha=0.3)
    assert abs(veiled - (0.7 * natural + 0.3 * np.array([255, 0, 10]))).max() < 0.501
    assert np.array_equal(color_veil(natural, color=(1, 2, 3), alpha=0), natural)


def test_gray_world_removes_a_cast(natural: np.ndarray) -> None:
    cast = np.clip(natural * np.array([0.5, 0.8, 1.0]), 0, 255).astype(np.uint8)
    balanced = gray_world(cast, excess=0).reshape(-1, 3).mean(axis=0)
    assert np.ptp(balanced) < 0.12 * balanced.mean()  # clipping leaves some
    red, green, blue = gray_world(cast, excess=20).reshape(-1, 3).mean(axis=0)
    assert red > green
    assert red > blue


def test_gray_world_leaves_an_empty_channel_empty() -> None:
    image = np.zeros((4, 4, 3), np.uint8)
    assert (gray_world(image, excess=0) == 0).all()
    image[:, :, 1] = 90
    result = gray_world(image, excess=5)
    assert (result[:, :, [0, 2]] == 0).all()


def test_gamma(natural: np.ndarray) -> None:
    assert np.array_equal(gamma_curve(natural, gamma=1), natural)
    assert gamma_curve(natural, gamma=0.5).mean() > natural.mean() > gamma_curve(natural, gamma=2).mean()
    ends = np.array([[[0, 255, 128]]], np.uint8)
    assert gamma_curve(ends, gamma=3.0).tolist() == [[[0, 255, 32]]]


# --- board


@pytest.mark.parametrize("threshold", [0, 64, 200, 255])
def test_bytes_lost(threshold: int) -> None:
    image = np.full((200, 300, 3), 77, np.uint8)
    lost = zeroed_bytes(image, threshold=threshold, rng=generator()) == 0
    share = (threshold + 1) / 256
    assert lost.mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / image.size) + 1e-9)
    more = zeroed_bytes(image, threshold=min(255, threshold + 20), rng=generator()) == 0
    assert (more | ~lost).all()


def test_bits_hit_rows_and_columns() -> None:
    image = np.full((100, 200, 3), 128, np.uint8)
    assert np.array_equal(cleared_bits(image, share=0.0, rng=generator()), image)
    few, many = ((cleared_bits(image, share=s, rng=generator()) != image).any(axis=2) for s in (0.2, 0.5))
    assert few.any(axis=1).sum() == 20
    assert many.any(axis=1).sum() == 50
    assert few.sum(axis=1).max() <= 40
    assert (many | ~few).all()


def test_lost_rows_move_the_rest_up(natural: np.ndarray) -> None:
    height, width = natural.shape[:2]
    numbered = np.repeat(np.arange(height, dtype=np.uint8)[:, None, None] + 1, 3, axis=2)
    torn = lost_rows(numbered, fraction=0.1, breaks=4, rng=generator())[:, 0, 0].astype(int)
    ended = round(0.1 * height)
    assert (torn[-ended:] == 0).all()
    shown = torn[:-ended] - 1
    steps = np.diff(shown)
    assert (steps >= 1).all()
    assert (steps > 1).sum() == 4
    assert (shown[: height // 10] == np.arange(height // 10)).all()
    assert shown[-1] == height - 1
    field = lost_rows_field(height, width, fraction=0.1, breaks=4, rng=generator())
    assert field.dtype == np.float32
    assert np.array_equal(field[:, :, 0], np.broadcast_to(np.arange(width), (height, width)))
    assert np.array_equal(field[:-ended, 0, 1], shown)
    assert (field[-ended:, :, 1] >= height).all()


# --- all


OPERATORS: dict[str, tuple[Callable[..., np.ndarray], dict[str, Any]]] = {
    "lens_shading": (lens_shading, {"falloff": 0.45}),
    "dead_pixels": (dead_pixels, {"fraction": 0.3}),
    "gray_pixels": (gray_pixels, {"fraction": 0.3}),
    "ycbcr_offset": (ycbcr_offset, {"fraction": 0.3}),
    "blooming_columns": (blooming_columns, {"defects": 22}),
    "dead_lines": (dead_lines, {"defects": 22}),
    "broken_sensor": (broken_sensor, BROKEN),
    "lens_drops": (lens_drops, DROPS),
    "zeroed_bytes": (zeroed_bytes, {"threshold": 64}),
    "cleared_bits": (cleared_bits, {"share": 0.3}),
    "lost_rows": (lost_rows, {"fraction": 0.07, "breaks": 3}),
    "distance_fog": (distance_fog, {"density": 0.15, "airlight": 0.7}),
    "color_veil": (color_veil, {"color": (160, 0, 0), "alpha": 0.3}),
    "gray_world": (gray_world, {"excess": 15.0}),
    "gamma_curve": (gamma_curve, {"gamma": 1.75}),
}
DETERMINISTIC = {"lens_shading", "distance_fog", "color_veil", "gray_world", "gamma_curve"}


def run(name: str, image: np.ndarray, seed: int = 5, **changes: Any) -> np.ndarray:
    operator, parameters = OPERATORS[name]
    rng = {} if name in DETERMINISTIC else {"rng": generator(seed)}
    return operator(image, **{**parameters, **changes}, **rng)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("size", SIZES)
def test_any_size(name: str, size: tuple[int, int]) -> None:
    image = np.full((*size, 3), (90, 160, 30), np.uint8)
    image.flags.writeable = False
    result = run(name, image)
    assert result.shape == image.shape
    assert result.dtype == np.uint8
    assert result.flags.c_contiguous
    assert result.flags.writeable
    assert not np.shares_memory(result, image)


@settings(deadline=None, max_examples=60)
@given(
    image=npst.arrays(np.uint8, st.tuples(st.integers(1, 20), st.integers(1, 20), st.just(3))),
    name=st.sampled_from(sorted(OPERATORS)),
    seed=st.integers(0, 99),
)
def test_layout_does_not_matter(image: np.ndarray, name: str, seed: int) -> None:
    turned = np.ascontiguousarray(image[::-1, :, ::-1])[::-1, :, ::-1]
    assert np.array_equal(run(name, turned, seed), run(name, image, seed))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("lens_shading", {"falloff": 0}),
        ("lens_shading", {"falloff": 1.1}),
        ("dead_pixels", {"fraction": -0.1}),
        ("gray_pixels", {"fraction": 1.1}),
        ("ycbcr_offset", {"fraction": float("nan")}),
        ("blooming_columns", {"defects": -1}),
        ("dead_lines", {"defects": -1}),
        ("broken_sensor", {"spots": -1}),
        ("broken_sensor", {"spot_weight": 1.5}),
        ("broken_sensor", {"band_strength": -1}),
        ("broken_sensor", {"leak_half_width": -1}),
        ("lens_drops", {"drops": -1}),
        ("lens_drops", {"scale": 0}),
        ("lens_drops", {"luma": 2}),
        ("zeroed_bytes", {"threshold": 256}),
        ("cleared_bits", {"share": 1.5}),
        ("lost_rows", {"fraction": 1.5}),
        ("lost_rows", {"breaks": 0}),
        ("distance_fog", {"density": -1}),
        ("distance_fog", {"airlight": 1.5}),
        ("color_veil", {"alpha": 1.5}),
        ("color_veil", {"color": (0, 0, 256)}),
        ("gray_world", {"excess": -1}),
        ("gamma_curve", {"gamma": 0}),
    ],
)
def test_bad_parameters(name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        run(name, np.zeros((4, 4, 3), np.uint8), **changes)
