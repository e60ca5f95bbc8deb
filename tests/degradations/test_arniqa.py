"""Operators of the ARNIQA rows: what their docstrings say."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import PIL.features
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from crypsis.degradations import blur, codec, color, geometry, noise, occlusion, tone
from crypsis.degradations.bands import bands
from crypsis.degradations.colorspace import compressed_xyz, linear_words, srgb_of_words
from crypsis.errors import InputError, MissingDependencyError

images = npst.arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3)))


def generator(seed: int = 5) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def gray(level: int, height: int = 40, width: int = 50) -> np.ndarray:
    return np.full((height, width, 3), level, np.uint8)


# Bands and color space


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 9999))
def test_bands_cover_every_row_once(height: int, width: int, pixels: int) -> None:
    parts = list(bands(height, width, pixels=pixels))
    assert [row for part in parts for row in range(height)[part]] == list(range(height))
    assert all((part.stop - part.start - 1) * width < pixels for part in parts)


@pytest.mark.parametrize("swapped", [False, True])
def test_compressed_xyz_is_lab(natural: np.ndarray, swapped: bool) -> None:
    fx, fy, fz = np.moveaxis(compressed_xyz(natural, swapped=swapped).astype(float), 2, 0)
    lab = np.stack([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], axis=2)
    order = cv2.COLOR_BGR2Lab if swapped else cv2.COLOR_RGB2Lab
    assert abs(lab - cv2.cvtColor((natural / 255).astype(np.float32), order)).max() < 0.5


@pytest.mark.parametrize("swapped", [False, True])
@settings(deadline=None, max_examples=50)
@given(image=images)
def test_there_and_back(image: np.ndarray, swapped: bool) -> None:
    words = linear_words(compressed_xyz(image, swapped=swapped), swapped=swapped)
    assert np.array_equal(np.rint(255 * srgb_of_words()[words]), image)


# Blur


@pytest.mark.parametrize("radius", [1, 2, 4, 6, 8])
def test_lens_kernel(radius: int) -> None:
    kernel = blur._misread_disk(radius)
    assert kernel.shape == (2 * radius + 1, 2 * radius + 1)
    assert kernel.sum() == pytest.approx(1, abs=1e-6)
    assert np.allclose(kernel, kernel.T)
    assert np.allclose(kernel, kernel[::-1])
    assert (kernel.min() < 0) == (radius > 1)


def test_lens_kernel_of_radius_one_is_the_disk() -> None:
    y, x = (np.mgrid[:900, :900] + 0.5) / 300 - 1.5
    area = (np.hypot(x, y) < 1).reshape(3, 300, 3, 300).mean(axis=(1, 3))
    assert blur._misread_disk(1) == pytest.approx(area / area.sum(), abs=2e-4)


@pytest.mark.parametrize("length", [1, 2, 4, 6, 10, 23])
@pytest.mark.parametrize("angle", [0, 17, 45, 90, 133, 179])
def test_line_kernel(length: int, angle: int) -> None:
    kernel = blur._line(length, np.radians(angle))
    assert kernel.sum() == pytest.approx(1, abs=1e-6)
    assert np.allclose(kernel, kernel[::-1, ::-1])
    y, x = np.mgrid[: kernel.shape[0], : kernel.shape[1]].astype(float)
    x, y = x - kernel.shape[1] // 2, y - kernel.shape[0] // 2
    spread = np.array([[(kernel * x * x).sum(), (kernel * x * y).sum()], [0, (kernel * y * y).sum()]])
    if length >= 6:  # the long axis points up by the angle
        assert np.degrees(0.5 * np.arctan2(-2 * spread[0, 1], spread[0, 0] - spread[1, 1])) % 180 == pytest.approx(
            angle, abs=2
        )
    assert max(kernel.shape) <= length + 2


def test_line_blur_of_one_pixel_changes_nothing(natural: np.ndarray) -> None:
    assert np.array_equal(blur.line_blur(natural, length=1, rng=generator()), natural)


def test_truncated_gaussian(natural: np.ndarray) -> None:
    assert np.array_equal(blur.gaussian_blur(natural, sigma=0.1, truncate=2), natural)
    spot = gray(0, 41, 41)
    spot[20, 20] = 255
    assert np.flatnonzero(blur.gaussian_blur(spot, sigma=2, truncate=1)[20, :, 0]).tolist() == list(range(18, 23))


# Noise


@pytest.mark.parametrize("sigma", [0.05, 0.2])
def test_multiplicative_noise_grows_with_the_signal(sigma: float) -> None:
    for level in (40, 120):
        change = noise.multiplicative_noise(gray(level, 300, 300), sigma=sigma, rng=generator()) - float(level)
        assert change.std() == pytest.approx(np.hypot(sigma * level, 12**-0.5), rel=0.02)
        assert abs(change.mean()) < 0.1


def test_multiplicative_noise_leaves_black() -> None:
    assert not noise.multiplicative_noise(gray(0), sigma=1, rng=generator()).any()


def test_ycbcr_noise_has_the_stated_deviations() -> None:
    change = noise.ycbcr_noise(gray(128, 300, 300), sigma=10, rng=generator()) - 128.0
    assert change.std(axis=(0, 1)) == pytest.approx([17.2, 12.8, 20.4], rel=0.02)
    assert np.corrcoef(change.reshape(-1, 3).T)[1] == pytest.approx([0, 1, 0.15], abs=0.02)


@pytest.mark.parametrize("density", [0, 0.001, 0.03, 0.5])
def test_salt_and_pepper(density: float) -> None:
    noisy = noise.salt_and_pepper(gray(100, 200, 200), density=density, rng=generator())
    places = int(density * noisy.size)
    white, black = (noisy == 255).sum(), (noisy == 0).sum()
    assert white + black + (noisy == 100).sum() == noisy.size
    assert places * (1 - density) - 3 <= white + black <= places  # a few coincide
    assert white == pytest.approx(places / 2, rel=max(0.03, 0.7 * density))
    assert white <= black


def test_salt_and_pepper_is_nested() -> None:
    few, many = (noise.salt_and_pepper(gray(100), density=d, rng=generator()) for d in (0.01, 0.03))
    assert (many[few != 100] != 100).all()


# Codec


def test_jpeg2000_keeps_the_rate(natural: np.ndarray) -> None:
    errors = [abs(codec.jpeg2000(natural, ratio=r).astype(float) - natural).mean() for r in (1, 4, 16, 64)]
    assert errors[0] == 0
    assert errors == sorted(errors)


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (2, 3), (31, 47), (127, 200)])
@pytest.mark.parametrize("ratio", [1, 16, 170])
def test_jpeg2000_of_small_images(size: tuple[int, int], ratio: float) -> None:
    image = np.resize(np.arange(256, dtype=np.uint8), (*size, 3))
    assert codec.jpeg2000(image, ratio=ratio).shape == image.shape


def test_jpeg2000_missing_in_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PIL.features, "check", lambda name: name != "jpg_2000")
    with pytest.raises(MissingDependencyError, match="no JPEG 2000"):
        codec.jpeg2000(gray(3), ratio=16)


@settings(deadline=None, max_examples=60)
@given(image=images, levels=st.integers(1, 30))
def test_quantize(image: np.ndarray, levels: int) -> None:
    result = codec.quantize(image, levels=levels)
    assert len(np.unique(result)) <= levels + 1
    order = np.argsort(image, axis=None)
    assert (np.diff(result.ravel()[order].astype(int)) >= 0).all()
    if len(np.unique(result)) > 1:
        assert result.min() == 0
        assert result.max() == 255
    else:
        assert abs(int(result[0, 0, 0]) - int(image[0, 0, 0])) <= 255 / levels + 1


# Tone and color


@given(st.floats(0, 2))
def test_darken_and_brighten_keep_the_ends(amount: float) -> None:
    ends = np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8)
    assert np.array_equal(tone.darken(ends, amount=amount), ends)
    assert np.array_equal(tone.brighten(ends, amount=amount), ends)
    assert np.array_equal(tone.s_curve(ends, amount=amount), ends)


def test_amount_zero_changes_nothing(natural: np.ndarray) -> None:
    assert np.array_equal(tone.darken(natural, amount=0), natural)
    assert np.array_equal(tone.brighten(natural, amount=0), natural)
    assert np.array_equal(tone.s_curve(natural, amount=-0.2), natural)
    assert np.array_equal(tone.sharpen_lightness(natural, amount=0, sigma=3, reach=6), natural)
    assert np.array_equal(color.hsv_saturation(natural, factor=1), natural)


@pytest.mark.parametrize("amount", [-0.6, 0.0, 0.3])
def test_s_curve_passes_its_points(amount: float) -> None:
    levels = np.rint(255 * np.array([0.3, 0.5, 0.7])).astype(np.uint8)
    result = tone.s_curve(np.repeat(levels[:, None, None], 3, axis=2), amount=amount)[:, 0, 0]
    assert result == pytest.approx(255 * np.array([0.25 - amount / 4, 0.5, 0.75 + amount / 4]), abs=1.5)


@pytest.mark.parametrize("swapped", [False, True])
def test_lab_operators_leave_gray_gray(swapped: bool) -> None:
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
    for result in (
        color.lab_chroma(ramp, factor=9, swapped=swapped),
        color.lab_diffusion(ramp, factor=12, sigma=3, swapped=swapped),
        tone.brighten(ramp, amount=0.5, swapped=swapped),
        tone.sharpen_lightness(ramp, amount=3, sigma=3, reach=6, swapped=swapped),
    ):
        assert np.ptp(result.astype(int), axis=2).max() <= 1


def test_swapping_channels_is_swapping_channels(natural: np.ndarray) -> None:
    reverse = np.ascontiguousarray(natural[:, :, ::-1])
    for operator, options in (
        (color.lab_chroma, {"factor": 3}),
        (color.lab_diffusion, {"factor": 3, "sigma": 4.0}),
        (tone.brighten, {"amount": 0.4}),
        (tone.sharpen_lightness, {"amount": 2, "sigma": 6.0, "reach": 6}),
    ):
        swapped = operator(natural, swapped=True, **options)
        plain = operator(reverse, swapped=False, **options)[:, :, ::-1]
        assert abs(swapped.astype(int) - plain).max() <= 1
        assert not np.array_equal(swapped, operator(natural, **options))


def test_sharpening_in_bands_is_sharpening_at_once(monkeypatch: pytest.MonkeyPatch, natural: np.ndarray) -> None:
    whole = tone.sharpen_lightness(natural, amount=3, sigma=6, reach=6)
    monkeypatch.setattr(tone, "bands", lambda height, width, pixels: bands(height, width, pixels=5 * width))
    assert abs(tone.sharpen_lightness(natural, amount=3, sigma=6, reach=6).astype(int) - whole).max() <= 1


@pytest.mark.parametrize("factor", [0.4, 0.0, -0.4, 2.0])
def test_hsv_saturation(natural: np.ndarray, factor: float) -> None:
    value = natural.max(axis=2, keepdims=True).astype(float)
    exact = np.clip(value - factor * (value - natural), 0, 255)
    assert abs(color.hsv_saturation(natural, factor=factor) - exact).max() <= 0.5 + 1e-4


def test_color_shift_moves_green_alone(natural: np.ndarray) -> None:
    result = color.color_shift(natural, amount=8, rng=generator())
    changed = (result != natural).any(axis=(0, 1))
    assert changed.tolist() == [False, True, False]


def test_color_shift_moves_green_at_edges_and_no_labels() -> None:
    image = gray(20, 90, 120)
    image[30:, 50:] = 220
    x, y = np.moveaxis(color.color_shift_field(90, 120, amount=12, rng=generator(3)), 2, 0)
    assert (x == np.arange(120)).all()
    assert (y == np.arange(90)[:, None]).all()
    green = color.color_shift(image, amount=12, rng=generator(3))[:, :, 1].astype(int)
    assert green[70, 51] < 160  # beside the edge, dark comes in
    assert (abs(green[:20, :30] - 20) <= 1).all()  # far from it nothing does


def test_color_shift_wraps_where_the_shift_exceeds_the_margin() -> None:
    assert color._moved_from(10, 3, 1).tolist() == [9, 9, 0, 0, 1, 2, 3, 4, 5, 6]
    assert color._moved_from(10, 1, 3).tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]


# Geometry and occlusion


def smooth(height: int, width: int) -> np.ndarray:
    """Planes whose values tell the place: red is x, green is y."""
    x, y = np.meshgrid(np.linspace(20, 235, width), np.linspace(20, 235, height))
    return np.rint(np.stack([x, y, 255 - x], axis=2)).astype(np.uint8)


MOVING: list[tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]] = [
    (geometry.jitter, geometry.jitter_field, {"sigma": 1.0, "rng": 4}),
    (geometry.displaced_patches, geometry.displaced_patches_field, {"patches": 60, "rng": 4}),
    (geometry.nearest_resample, geometry.nearest_resample_field, {"scale": 0.3}),
]


@pytest.mark.parametrize(("operator", "field", "options"), MOVING)
@pytest.mark.parametrize("size", [(1, 1), (3, 50), (61, 83), (120, 90)])
def test_field_is_where_pixels_come_from(
    operator: Callable[..., Any], field: Callable[..., Any], options: dict[str, Any], size: tuple[int, int]
) -> None:
    def fresh() -> dict[str, Any]:
        return options | ({"rng": generator(options["rng"])} if "rng" in options else {})

    image = smooth(*size)
    source = field(*size, **fresh())
    assert source.shape == (*size, 2)
    assert source.dtype == np.float32
    assert source.min() >= 0
    assert (source.max(axis=(0, 1)) <= [size[1] - 1, size[0] - 1]).all()
    expected = cv2.remap(image, source, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE).reshape(image.shape)
    assert abs(operator(image, **fresh()).astype(int) - expected).max() <= (4 if operator is geometry.jitter else 0)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0])
def test_jitter_displaces_by_root_five_sigma(sigma: float) -> None:
    offset = geometry.jitter_field(200, 220, sigma=sigma, rng=generator())[20:-20, 20:-20]
    offset = offset - np.dstack(np.meshgrid(np.arange(20, 200), np.arange(20, 180)))
    # each interpolation averages displacements of neighbors, so somewhat less than the sum of independent ones
    assert 0.6 * sigma * 5**0.5 < offset.std() <= 1.02 * sigma * 5**0.5
    assert abs(offset.mean()) < 0.03 * sigma


def test_jitter_has_a_limit_of_sixteen_bits() -> None:
    with pytest.raises(InputError, match="up to 32766"):
        geometry.jitter(np.broadcast_to(np.uint8(0), (1, 32767, 3)), sigma=1, rng=generator())


@pytest.mark.parametrize("length", [1, 2, 17, 101, 640])
@pytest.mark.parametrize("scale", [1.0, 0.887, 0.29, 0.001])
def test_nearest_resample(length: int, scale: float) -> None:
    ramp = np.arange(length, dtype=np.uint8)[None, :, None].repeat(3, axis=2)
    chosen = geometry._nearest(length, scale)
    assert len(np.unique(chosen)) == max(1, int(length * scale))
    assert (np.diff(chosen) >= 0).all()
    assert (chosen <= np.arange(length)).all()  # content drifts to the right and down alone
    assert np.array_equal(geometry.nearest_resample(ramp, scale=scale)[0, :, 0], chosen.astype(np.uint8))


def test_patches_are_nested(natural: np.ndarray) -> None:
    few = geometry.displaced_patches_field(200, 300, patches=1, rng=generator())
    own = np.dstack(np.meshgrid(np.arange(300), np.arange(200)))
    moved = (few != own).any(axis=2)
    assert 0 < moved.sum() <= 16 * 16
    y, x = np.nonzero(moved)
    assert np.ptp(y) < 16
    assert np.ptp(x) < 16
    assert abs(few - own).max() <= 16


@pytest.mark.parametrize("size", [(16, 16), (20, 47), (33, 200)])
def test_patches_fit_small_images(size: tuple[int, int]) -> None:
    field = geometry.displaced_patches_field(*size, patches=100, rng=generator())
    assert field.min() >= 0
    assert (field.max(axis=(0, 1)) <= [size[1] - 1, size[0] - 1]).all()


@pytest.mark.parametrize("size", [(200, 300), (32, 33), (31, 20), (1, 1)])
def test_color_blocks(size: tuple[int, int]) -> None:
    image = gray(100, *size)
    painted = occlusion.color_blocks(image, blocks=3, rng=generator())
    changed = (painted != image).any(axis=2)
    side = [32 if n >= 32 else (n + 1) // 2 for n in size]
    assert 0 < changed.sum() <= 3 * side[0] * side[1]
    assert len(np.unique(painted.reshape(-1, 3), axis=0)) <= 4
    one = occlusion.color_blocks(image, blocks=1, rng=generator())
    assert (one != image).any(axis=2).sum() == side[0] * side[1]


RNG = {"rng": generator()}


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        (blur.gaussian_blur, {"sigma": 1, "truncate": 0}),
        (blur.lens_blur, {"radius": 0}),
        (blur.lens_blur, {"radius": 1.5}),
        (blur.line_blur, {"length": 0.5} | RNG),
        (noise.multiplicative_noise, {"sigma": -1} | RNG),
        (noise.ycbcr_noise, {"sigma": float("nan")} | RNG),
        (noise.salt_and_pepper, {"density": 1.5} | RNG),
        (codec.jpeg2000, {"ratio": 0.5}),
        (codec.quantize, {"levels": 0}),
        (codec.quantize, {"levels": 255}),
        (tone.darken, {"amount": -0.1}),
        (tone.brighten, {"amount": float("inf")}),
        (tone.s_curve, {"amount": float("nan")}),
        (tone.sharpen_lightness, {"amount": 1, "sigma": 0, "reach": 6}),
        (color.hsv_saturation, {"factor": float("nan")}),
        (color.lab_chroma, {"factor": -1}),
        (color.lab_diffusion, {"factor": 1, "sigma": 0}),
        (color.color_shift, {"amount": -1} | RNG),
        (geometry.jitter, {"sigma": -1} | RNG),
        (geometry.displaced_patches, {"patches": -1} | RNG),
        (geometry.nearest_resample, {"scale": 0}),
        (geometry.nearest_resample, {"scale": 1.1}),
        (occlusion.color_blocks, {"blocks": -1} | RNG),
    ],
)
def test_refused(operator: Callable[..., Any], options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="got"):
        operator(gray(3), **options)


def test_jpeg2000_is_what_pillow_makes(natural: np.ndarray) -> None:
    code = io.BytesIO()
    PIL.Image.fromarray(natural).save(
        code, "JPEG2000", quality_mode="rates", quality_layers=[30], num_resolutions=min(natural.shape[:2]).bit_length()
    )
    assert np.array_equal(codec.jpeg2000(natural, ratio=30), np.asarray(PIL.Image.open(code)))
