"""The operators of ImageNet-C against plain, slow statements of what they do."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.degradations.bands import bands
from crypsis.degradations.blur import (
    disc_blur,
    enlarge,
    gaussian_blur,
    glass_blur,
    glass_copies,
    glass_field,
    one_sided_blur,
    one_sided_field,
    smear,
    zoom_blur,
    zoom_field,
)
from crypsis.degradations.color import saturate
from crypsis.degradations.geometry import box_pixelate, elastic_field, elastic_transform
from crypsis.degradations.noise import (
    gaussian_noise,
    impulse_noise,
    multiplicative_noise,
    normal_field,
    shot_noise,
)
from crypsis.degradations.rounding import floor_to_uint8
from crypsis.degradations.tone import channel_contrast, raise_value
from crypsis.degradations.weather import frost, plasma_fog, snow, spatter
from crypsis.errors import ImageError, InputError

WATER = {"mean": 0.65, "std": 0.3, "blur_sigma": 2.0, "threshold": 0.68, "intensity": 0.5}
MUD = {"mean": 0.67, "std": 0.4, "blur_sigma": 1.0, "threshold": 0.65, "mask_sigma": 1.5}
FLAKES = {
    "mean": 0.55,
    "std": 0.3,
    "zoom": 4.0,
    "threshold": 0.9,
    "blur_radius": 12,
    "blur_sigma": 8.0,
    "blend": 0.7,
}


def generator(seed: int = 3) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def plain(level: int, height: int = 200, width: int = 300) -> np.ndarray:
    return np.full((height, width, 3), level, np.uint8)


# Rounding


def test_floor_keeps_whole_numbers_that_single_precision_misses() -> None:
    values = np.array([0, 0.4, 1, 1.9996, 1.98, 127.9999, 200.5, 254.97, 255, 400], np.float32)
    assert floor_to_uint8(values).ravel().tolist() == [0, 0, 1, 2, 1, 128, 200, 254, 255, 255]


def test_floor_is_half_a_level_darker(natural: np.ndarray) -> None:
    gray = plain(128)
    pairs = [
        [gaussian_noise(gray, sigma=20, floor=f, rng=generator()) for f in (True, False)],
        [multiplicative_noise(gray, sigma=0.1, floor=f, rng=generator()) for f in (True, False)],
        [gaussian_blur(natural, sigma=2, truncate=4, floor=f) for f in (True, False)],
    ]
    for down, nearest in pairs:
        assert (nearest.astype(float) - down).mean() == pytest.approx(0.5, abs=0.06)
        assert abs(nearest.astype(int) - down).max() <= 1


# Noise


@pytest.mark.parametrize("photons", [1, 3, 12, 60, 254])
@pytest.mark.parametrize("level", [1, 40, 128, 255])
def test_shot_noise_is_poisson(photons: int, level: int) -> None:
    values = shot_noise(plain(level), photons=photons, rng=generator()).ravel()
    expected = np.random.default_rng(0).poisson(photons * level / 255, values.size)
    expected = (expected.clip(max=photons) * 255 / photons).astype(np.uint8)
    gray = (np.arange(photons + 1) * 255 / photons).astype(np.uint8)
    assert set(np.unique(values)) <= set(gray.tolist())
    shares = [np.bincount(v, minlength=256) / v.size for v in (values, expected)]
    allowed = 5 * np.sqrt(2 * shares[1] / values.size) + 5 / values.size
    assert (abs(shares[0] - shares[1]) <= allowed + 2**-16).all()


def test_shot_noise_is_the_quantile_of_every_word() -> None:
    class Counting:
        """All 16-bit words, in order."""

        def integers(self, low: int, high: int, size: int, dtype: type) -> np.ndarray:
            return np.arange(65536, dtype="<u2").view("<u8").astype(dtype)

    image = np.full((1, 21845, 3), 200, np.uint8)
    counts = np.rint(shot_noise(image, photons=7, rng=Counting()).ravel() * (7 / 255))
    mean = 7 * 200 / 255
    term, reached = np.exp(-mean), 0.0
    for count in range(7):
        reached += term
        assert abs((counts <= count).sum() - 65536 * reached) <= 1.5
        term *= mean / (count + 1)


@pytest.mark.parametrize("amount", [0, 0.03, 0.27, 1])
def test_impulse_noise_replaces_each_channel_for_itself(amount: float) -> None:
    noisy = impulse_noise(plain(90), amount=amount, rng=generator())
    salt, pepper = noisy == 255, noisy == 0
    assert ((noisy == 90) | salt | pepper).all()
    limit = 5 * np.sqrt(0.25 / noisy.size) + 2**-16
    assert salt.mean() == pytest.approx(amount / 2, abs=limit)
    assert pepper.mean() == pytest.approx(amount / 2, abs=limit)
    if 0 < amount < 1:
        assert abs(np.corrcoef((noisy != 90).reshape(-1, 3).T)[0, 1]) < 5 / np.sqrt(noisy[..., 0].size)


def test_impulse_noise_is_nested() -> None:
    few, many = (impulse_noise(plain(90), amount=a, rng=generator()) for a in (0.06, 0.2))
    assert (many[few != 90] == few[few != 90]).all()


def test_normal_field_is_normal() -> None:
    field = normal_field(301, 401, rng=generator())
    assert field.shape == (301, 401)
    assert field.dtype == np.float32
    assert abs(field.mean()) < 5 / np.sqrt(field.size)
    assert field.std() == pytest.approx(1, abs=5 / np.sqrt(2 * field.size))


# Blurs


@pytest.mark.parametrize(("radius", "sigma", "mass"), [(3, 0.1, 1), (6, 0.5, 1), (8, 0.5, 1.013), (10, 0.5, 1.011)])
def test_disc_blur_of_a_point_and_of_a_plain(radius: int, sigma: float, mass: float) -> None:
    square = np.zeros((61, 61, 3), np.uint8)
    square[29:32, 29:32] = 255
    seen = disc_blur(square, radius=radius, alias_sigma=sigma)[:, :, 0]
    y, x = np.nonzero(seen)
    assert np.hypot(y - 30, x - 30).max() <= radius + 3
    area = (np.hypot(*np.mgrid[-radius : radius + 1, -radius : radius + 1]) <= radius).sum()
    assert seen[30, 30] == int(9 * 255 / area)
    assert disc_blur(plain(100, 40, 50), radius=radius, alias_sigma=sigma).mean() == pytest.approx(
        np.floor(100 * mass + 0.01), abs=0.01
    )


def copied(height: int, width: int, max_delta: int, iterations: int, rng: np.random.Generator) -> np.ndarray:
    """The published scan, pixel by pixel, on pixel numbers."""
    numbers = np.arange(height * width).reshape(height, width)
    share = -(-65536 // (2 * max_delta))
    for _ in range(iterations):
        offsets = np.empty((2, height, width), int)
        for rows in reversed(list(bands(height, width, pixels=1 << 14))):
            count = (rows.stop - rows.start) * width
            words = rng.integers(0, 2**64, size=-(-count // 2), dtype=np.uint64).astype("<u8").view("<u2").astype(int)
            offsets[:, rows] = words[: 2 * count].reshape(2, -1, width) // share - max_delta
        for y in range(height - max_delta, max_delta, -1):
            for x in range(width - max_delta, max_delta, -1):
                numbers[y, x] = numbers[y + offsets[1, y, x], x + offsets[0, y, x]]
    return numbers


@pytest.mark.parametrize(("max_delta", "iterations"), [(1, 2), (2, 1), (2, 3), (3, 2), (4, 2)])
@pytest.mark.parametrize("size", [(1, 1), (8, 40), (9, 9), (31, 47), (170, 110)])
def test_glass_copies_as_the_sequential_scan_does(max_delta: int, iterations: int, size: tuple[int, int]) -> None:
    expected = copied(*size, max_delta, iterations, generator())
    options = {"max_delta": max_delta, "iterations": iterations}
    assert np.array_equal(glass_copies(*size, **options, rng=generator()), expected)
    field = glass_field(*size, sigma=1, **options, rng=generator())
    places = np.stack([expected % size[1], expected // size[1]], axis=2).astype(np.float32)
    averaged = cv2.GaussianBlur(places, (0, 0), 1, borderType=cv2.BORDER_REPLICATE)
    assert np.array_equal(field, averaged.reshape(field.shape))


def test_glass_loses_two_thirds_of_the_values_as_published() -> None:
    # 64×64 distinct values: 1384 remain in one run of the published code (severity 3)
    left = []
    for seed in range(20):
        left.append(len(np.unique(glass_copies(64, 64, max_delta=2, iterations=3, rng=generator(seed)))))
    assert np.mean(left) == pytest.approx(1384, abs=30)


def test_glass_blur_blurs_the_copies(natural: np.ndarray) -> None:
    copies = glass_copies(240, 320, max_delta=2, iterations=3, rng=generator())
    soft = gaussian_blur(natural, sigma=1, truncate=4, floor=True).reshape(-1, 3)
    expected = gaussian_blur(soft[copies], sigma=1, truncate=4, floor=True)
    assert np.array_equal(glass_blur(natural, sigma=1.0, max_delta=2, iterations=3, rng=generator()), expected)


def test_no_iteration_moves_nothing(natural: np.ndarray) -> None:
    twice = gaussian_blur(gaussian_blur(natural, sigma=1, truncate=4, floor=True), sigma=1, truncate=4, floor=True)
    assert np.array_equal(glass_blur(natural, sigma=1, max_delta=2, iterations=0, rng=generator()), twice)


@settings(deadline=None, max_examples=60)
@given(
    height=st.integers(1, 50),
    width=st.integers(1, 50),
    radius=st.integers(0, 20),
    sigma=st.floats(0.5, 20),
    angle=st.floats(-180, 180),
)
def test_smear_is_a_sum_of_moved_copies(height: int, width: int, radius: int, sigma: float, angle: float) -> None:
    image = np.random.default_rng(0).integers(0, 256, (height, width, 3)).astype(np.uint8)
    step = np.arange(2 * radius + 1)
    weight = np.exp(-(step**2) / (2 * sigma**2))
    expected = np.zeros(image.shape)
    for i, w in zip(step, weight / weight.sum(), strict=True):
        x = np.clip(np.arange(width) + int(np.ceil(i * np.cos(np.radians(angle)) - 0.5)), 0, width - 1)
        y = np.clip(np.arange(height) + int(np.ceil(i * np.sin(np.radians(angle)) - 0.5)), 0, height - 1)
        expected += w * image[y][:, x]
    assert np.allclose(smear(image, radius=radius, sigma=sigma, angle=angle), expected, atol=1e-3)


@pytest.mark.parametrize(("radius", "sigma", "mean"), [(10, 3, 2.09), (15, 5, 3.68), (15, 12, 8.99), (20, 15, 11.43)])
def test_one_sided_field_is_the_way_that_content_moves(radius: int, sigma: float, mean: float) -> None:
    point = np.zeros((121, 121, 3), np.uint8)
    point[60, 60] = 255
    options = {"radius": radius, "sigma": sigma}
    for seed in range(4):
        field = one_sided_field(121, 121, **options, rng=generator(seed)) - one_sided_field(
            121, 121, radius=0, sigma=1.0, rng=generator(seed)
        )
        assert np.hypot(*field[0, 0]) == pytest.approx(mean, abs=0.05 * mean)
        seen = one_sided_blur(point, **options, rng=generator(seed))[:, :, 0].astype(float)
        y, x = (np.average(axis, weights=seen) for axis in np.indices(seen.shape))
        assert (60 - x, 60 - y) == pytest.approx(field[0, 0].tolist(), abs=1.2)  # weights below 1/255 are not seen


@pytest.mark.parametrize("side", [1, 2, 37, 120, 333])
@pytest.mark.parametrize("factor", [1.0, 1.11, 1.3, 4.5])
def test_enlarge_keeps_the_ends(side: int, factor: float) -> None:
    size = round(side * factor)
    ramp = np.tile(np.arange(side, dtype=np.float32)[:, None, None], (1, 3, 3))
    whole = enlarge(ramp, factor=factor, height=size, width=3)
    expected = np.linspace(0, side - 1, size) if size > 1 else np.zeros(1)
    assert np.allclose(whole[:, 0, 0], expected, atol=0.02)
    assert np.allclose(enlarge(ramp, factor=factor, height=1, width=3, top=size - 1), side - 1, atol=0.02)


def test_zoom_blur_of_a_ramp_is_its_field() -> None:
    y, x = np.mgrid[:150, :201]
    image = np.stack([x, y, 0 * x], axis=2).astype(np.uint8)
    field = zoom_field(150, 201, step=0.02, stop=1.21)
    blurred = zoom_blur(image, step=0.02, stop=1.21)
    assert abs(blurred[:, :, 0] + 0.5 - field[:, :, 0]).max() <= 0.52
    assert abs(blurred[:, :, 1] + 0.5 - field[:, :, 1]).max() <= 0.52


# Weather


def fog_cloud(height: int, width: int, decay: float, seed: int = 3) -> np.ndarray:
    """The cloud alone: fog in front of one white pixel and black, brightest fog white."""
    black = np.zeros((height, width, 3), np.uint8)
    black[0, 0] = 255
    return plasma_fog(black, weight=1e6, wibble_decay=decay, rng=generator(seed))[:, :, 1].astype(float) / 255


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (64, 64), (65, 33), (480, 640)])
def test_fog_fills_any_size(size: tuple[int, int]) -> None:
    cloud = fog_cloud(*size, 2.0)
    assert cloud.shape == size
    assert 0 <= cloud.min() <= cloud.max() <= 1


def test_fog_is_the_plasma_of_the_published_code() -> None:
    for decay in (2.0, 1.7, 1.4):
        clouds = np.array([fog_cloud(120, 160, decay, seed) for seed in range(40)])
        assert clouds.mean() == pytest.approx(0.5, abs=0.06)
        assert clouds.std(axis=(1, 2)).mean() == pytest.approx(0.15, abs=0.03)
    smooth, rough = (np.abs(np.diff(fog_cloud(120, 160, d), axis=1)).mean() for d in (2.0, 1.4))
    assert rough > 2 * smooth


def test_fog_keeps_black_black_and_the_brightest_as_bright() -> None:
    assert not plasma_fog(plain(0), weight=2.5, wibble_decay=1.7, rng=generator()).any()
    white = plasma_fog(plain(255), weight=2.5, wibble_decay=1.7, rng=generator())
    assert white.max() <= 255
    assert white.min() >= int(255 / 3.5)


def test_snow_bleaches_and_adds_layers_turned_by_half(natural: np.ndarray) -> None:
    dry = snow(natural, **{**FLAKES, "mean": -9.0}, rng=generator())
    scene = natural.astype(np.float32)
    pale = np.maximum(scene, 1.5 * cv2.cvtColor(scene, cv2.COLOR_RGB2GRAY)[:, :, None] + 127.5)
    assert abs(dry.astype(int) - np.clip(0.7 * scene + 0.3 * pale, 0, 255).astype(int)).max() <= 1
    layer = snow(plain(0), **{**FLAKES, "blend": 1.0}, rng=generator())[:, :, 0]
    assert np.array_equal(layer, layer[::-1, ::-1])
    assert 0.02 < (layer > 0).mean() < 0.9


def folder_of_textures(folder: Path) -> list[np.ndarray]:
    made = []
    for number, name in enumerate(("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")):
        texture = np.full((30 + 10 * number, 50, 3), (40 * number, 100, 255 - 40 * number), np.uint8)
        PIL.Image.fromarray(texture).save(folder / name, quality=100, subsampling=0)
        made.append(np.asarray(PIL.Image.open(folder / name)))
    return made


def test_frost_takes_the_five_textures_of_a_folder(tmp_path: Path, natural: np.ndarray) -> None:
    textures = folder_of_textures(tmp_path)
    used = set()
    for seed in range(30):
        options = {"image_weight": 0.5, "frost_weight": 0.5, "textures": tmp_path}
        frosted = frost(natural, **options, rng=generator(seed))
        index = int(generator(seed).integers(5))
        used.add(index)
        assert abs(frosted - (natural.astype(float) + textures[index][0, 0]) / 2).max() <= 1
    assert used == {0, 1, 2, 3, 4}


def test_frost_without_its_textures(tmp_path: Path, natural: np.ndarray) -> None:
    with pytest.raises(ImageError, match="frost"):
        frost(natural, image_weight=1, frost_weight=1, textures=tmp_path, rng=generator())


@pytest.mark.parametrize("size", [(1, 1), (30, 900), (700, 20), (480, 640)])
def test_frost_covers_any_size(size: tuple[int, int]) -> None:
    frosted = frost(plain(0, *size), image_weight=1, frost_weight=1, rng=generator(1))
    assert frosted.shape == (*size, 3)
    assert frosted.min() > 20


def test_water_is_turquoise_and_mud_brown() -> None:
    water = spatter(plain(0), **WATER, rng=generator())
    assert (water[:, :, 1] == water[:, :, 2]).all()
    assert water[:, :, 1].max() == 119  # half of 238
    assert (water[:, :, 0] <= water[:, :, 1]).all()
    mud = spatter(plain(255), **MUD, rng=generator())
    assert mud[(mud < 255).any(axis=2)].min(axis=0).tolist() == pytest.approx([63, 42, 20], abs=25)
    assert 0.05 < (mud < 255).any(axis=2).mean() < 0.4


@pytest.mark.parametrize(("kind", "coverage"), [(WATER, 0.24), (MUD, 0.20)])
def test_spatter_covers_as_much_as_published(kind: dict[str, float], coverage: float) -> None:
    change = [spatter(plain(128, 480, 640), **kind, rng=generator(s)) != 128 for s in range(4)]
    assert np.mean([c.any(axis=2).mean() for c in change]) == pytest.approx(coverage, abs=0.03)


def test_without_liquid_nothing_changes(natural: np.ndarray) -> None:
    assert np.array_equal(spatter(natural, **{**WATER, "threshold": 9.0}, rng=generator()), natural)
    assert np.array_equal(spatter(natural, **{**MUD, "threshold": 9.0}, rng=generator()), natural)


# Tone, color, geometry


def to_hsv(image: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    value = image.max(axis=2) / 255
    spread = np.ptp(image.astype(int), axis=2) / 255
    return value, spread, np.divide(spread, value, out=np.zeros_like(value), where=value > 0)


@pytest.mark.parametrize("amount", [-1, -0.2, 0, 0.1, 0.5, 1])
def test_raise_value_changes_value_alone(natural: np.ndarray, amount: float) -> None:
    before, after = to_hsv(natural), to_hsv(raise_value(natural, amount=amount))
    assert abs(after[0] - np.clip(before[0] + amount, 0, 1)).max() <= 1.01 / 255
    if amount > 0:
        assert abs(after[2] - before[2]).max() < 0.05
    assert (raise_value(plain(0), amount=amount) == int(255 * max(amount, 0))).all()


@pytest.mark.parametrize(("factor", "offset"), [(0, 0), (0.3, 0), (1, 0), (2, 0), (5, 0.1), (20, 0.2)])
def test_saturate_changes_saturation_alone(natural: np.ndarray, factor: float, offset: float) -> None:
    before, after = to_hsv(natural), to_hsv(saturate(natural, factor=factor, offset=offset))
    assert np.array_equal(after[0], before[0])
    wanted = np.clip(before[2] * factor + offset, 0, 1)
    assert abs(after[1] - wanted * before[0]).max() <= 1.01 / 255
    red = saturate(plain(200), factor=factor, offset=offset)[0, 0]
    assert red.tolist() == [200, int(200 * (1 - offset) + 1e-3), int(200 * (1 - offset) + 1e-3)]


@pytest.mark.parametrize("factor", [0, 0.05, 0.4, 1, 2])
def test_channel_contrast_has_a_pivot_in_each_channel(natural: np.ndarray, factor: float) -> None:
    mean = natural.mean(axis=(0, 1))
    expected = np.clip(mean + factor * (natural - mean) + 1e-9, 0, 255).astype(int)
    assert np.array_equal(channel_contrast(natural, factor=factor), expected)


@pytest.mark.parametrize("scale", [0.6, 0.5, 0.4, 0.3, 0.25, 0.01, 1])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (33, 47), (240, 320)])
def test_pixelate_is_that_of_pillow(natural: np.ndarray, scale: float, size: tuple[int, int]) -> None:
    image = natural[: size[0], : size[1]]
    small = max(1, int(size[1] * scale)), max(1, int(size[0] * scale))
    pillow = PIL.Image.fromarray(image).resize(small, PIL.Image.Resampling.BOX)
    pillow = pillow.resize(size[::-1], PIL.Image.Resampling.NEAREST)
    assert np.array_equal(box_pixelate(image, scale=scale), np.asarray(pillow))


@pytest.mark.parametrize(
    ("size", "alpha", "displacement"),
    # root mean square over both axes, per axis, of the published code at severities 1, 3 and 5
    [
        ((480, 640), 12.5, 0.91),
        ((480, 640), 21.25, 1.54),
        ((480, 640), 30.0, 2.17),
        ((640, 480), 12.5, 1.18),
        ((640, 480), 30.0, 2.84),
    ],
)
def test_elastic_displacement(size: tuple[int, int], alpha: float, displacement: float) -> None:
    own = np.stack(np.meshgrid(np.arange(size[1]), np.arange(size[0])), axis=2)
    shifts = [elastic_field(*size, alpha=alpha, rng=generator(s)) - own for s in range(8)]
    assert np.sqrt(np.mean(np.square(shifts))) == pytest.approx(displacement, rel=0.03)


@pytest.mark.parametrize("size", [(1, 1), (1, 200), (97, 3), (190, 260)])
def test_elastic_transform_follows_its_field(size: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*size, 3)).astype(np.uint8)
    field = elastic_field(*size, alpha=60, rng=generator())
    x, y = np.ascontiguousarray(field[..., 0]), np.ascontiguousarray(field[..., 1])
    warped = cv2.remap(image.astype(np.float32), x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    difference = abs(elastic_transform(image, alpha=60, rng=generator()) - np.floor(warped.reshape(image.shape)))
    assert np.quantile(difference, 0.999) <= 8.5  # OpenCV may round places to 1/32 pixel, here relative to a band
    assert difference.mean() < 1


def test_elastic_transform_refuses_what_remap_cannot_hold() -> None:
    with pytest.raises(ImageError, match="32"):
        elastic_transform(np.zeros((1, 40000, 3), np.uint8), alpha=1, rng=generator())


# What is refused


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        (impulse_noise, {"amount": 1.1}),
        (shot_noise, {"photons": 0}),
        (shot_noise, {"photons": 255}),
        (one_sided_blur, {"radius": -1, "sigma": 3}),
        (one_sided_blur, {"radius": 3, "sigma": 0}),
        (glass_blur, {"sigma": 1, "max_delta": 0, "iterations": 1}),
        (glass_blur, {"sigma": 1, "max_delta": 1, "iterations": -1}),
        (snow, {**FLAKES, "zoom": 0.5}),
        (frost, {"image_weight": -1, "frost_weight": 0}),
        (plasma_fog, {"weight": -1, "wibble_decay": 2}),
        (plasma_fog, {"weight": 1, "wibble_decay": 0}),
        (spatter, {**WATER, "std": -1}),
        (spatter, {**WATER, "mask_sigma": 1.0}),
        (spatter, {**MUD, "mask_sigma": None}),
        (spatter, {**WATER, "intensity": 1.5}),
        (elastic_transform, {"alpha": -1}),
    ],
)
def test_random_operators_refuse(operator: object, options: dict[str, float]) -> None:
    with pytest.raises(InputError):
        operator(plain(9, 4, 5), **options, rng=generator())


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        (disc_blur, {"radius": 0, "alias_sigma": 0.5}),
        (disc_blur, {"radius": 3, "alias_sigma": 0}),
        (zoom_blur, {"step": 0, "stop": 1.1}),
        (zoom_blur, {"step": 0.1, "stop": 1}),
        (raise_value, {"amount": 1.5}),
        (channel_contrast, {"factor": -1}),
        (saturate, {"factor": -1, "offset": 0}),
        (saturate, {"factor": 1, "offset": 2}),
        (box_pixelate, {"scale": 0}),
        (box_pixelate, {"scale": 1.1}),
    ],
)
def test_operators_refuse(operator: object, options: dict[str, float]) -> None:
    with pytest.raises(InputError):
        operator(plain(9, 4, 5), **options)


@pytest.mark.parametrize("size", [(16, 20_000), (20_000, 16), (1, 3000), (3000, 1)])
def test_thin_images_cost_what_their_pixels_cost(size: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    foggy = plasma_fog(image, weight=2.5, wibble_decay=1.7, rng=generator())
    frosty = frost(image, image_weight=0.7, frost_weight=0.7, rng=generator())
    assert foggy.shape == frosty.shape == image.shape
    tracemalloc.start()
    plasma_fog(image, weight=2.5, wibble_decay=1.7, rng=generator())
    frost(image, image_weight=0.7, frost_weight=0.7, rng=generator())
    assert tracemalloc.get_traced_memory()[1] < 80e6
    tracemalloc.stop()


def test_frost_cut_out_of_a_large_picture_is_the_same_frost() -> None:
    image = np.zeros((900, 40, 3), np.uint8)
    whole = frost(image, image_weight=1.0, frost_weight=1.0, rng=generator(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crypsis.degradations.weather._FROST_SPARE", 0)
        cut = frost(image, image_weight=1.0, frost_weight=1.0, rng=generator(2))
    assert abs(whole.astype(int) - cut).mean() < 1
