from __future__ import annotations

import numpy as np
import pytest

from crypsis.degradations import gaussian_noise
from crypsis.errors import InputError


def generator(seed: int = 3) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def field(sigma: float, shape: tuple[int, ...] = (300, 400, 3), seed: int = 3) -> np.ndarray:
    """Noise on middle gray, where σ ≤ 25 never clips."""
    gray = np.full(shape, 128, np.uint8)
    return gaussian_noise(gray, sigma=sigma, rng=generator(seed)).astype(int) - 128


@pytest.mark.parametrize("sigma", [1, 8, 16, 24])
def test_mean_deviation_and_end_of_the_distribution(sigma: int) -> None:
    noise = field(sigma)
    assert abs(noise.mean()) < 5 * sigma / np.sqrt(noise.size)
    assert noise.std() == pytest.approx(np.sqrt(sigma**2 + 1 / 12), rel=5 / np.sqrt(2 * noise.size) + 1e-3)
    assert abs(noise).max() <= np.ceil(4.33 * sigma)


def test_it_is_gaussian() -> None:
    noise = np.sort(field(24).ravel()) / 24
    for z, share in ((-2, 0.02275), (-1, 0.15866), (0, 0.5), (1, 0.84134), (2, 0.97725), (3, 0.99865)):
        # half a gray level to the right of z, for rounded values
        assert np.searchsorted(noise, z + 0.5 / 24 - 1e-9) / noise.size == pytest.approx(share, abs=0.012)
    assert abs((noise**3).mean()) < 0.03
    assert (noise**4).mean() / noise.var() ** 2 == pytest.approx(3, abs=0.05)


def test_pixels_and_channels_are_independent() -> None:
    noise = field(24).astype(float)
    limit = 5 / np.sqrt(noise[:, :, 0].size)
    for a, b in (
        (noise[:, :, 0], noise[:, :, 1]),
        (noise[:, :, 1], noise[:, :, 2]),
        (noise[:, :-1], noise[:, 1:]),
        (noise[:-1], noise[1:]),
    ):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < limit


def test_one_state_gives_one_field_at_every_sigma() -> None:
    weak, strong = field(8), field(24)
    assert abs(strong - 3 * weak).max() <= 2  # both are rounded
    assert np.corrcoef(weak.ravel(), strong.ravel())[0, 1] > 0.998


def test_blocks_do_not_show() -> None:
    # more values than one block, and a part of a word at the end
    shape = (331, 331, 3)
    tall = gaussian_noise(np.full(shape, 128, np.uint8), sigma=8, rng=generator())
    flat = gaussian_noise(np.full((1, 331 * 331, 3), 128, np.uint8), sigma=8, rng=generator())
    assert np.array_equal(tall.ravel(), flat.ravel())
    noise = tall.astype(float).ravel() - 128
    half = len(noise) // 2
    assert abs(np.corrcoef(noise[:half], noise[half : 2 * half])[0, 1]) < 5 / np.sqrt(half)


@pytest.mark.parametrize("level", [0, 255])
def test_it_saturates_and_never_wraps(level: int) -> None:
    noisy = gaussian_noise(np.full((50, 50, 3), level, np.uint8), sigma=40, rng=generator())
    assert abs(noisy.astype(int) - level).max() <= 174
    assert (noisy == level).mean() == pytest.approx(0.5, abs=0.05)


def test_sigma_zero_changes_nothing(natural: np.ndarray) -> None:
    assert np.array_equal(gaussian_noise(natural, sigma=0, rng=generator()), natural)


@pytest.mark.parametrize("sigma", [-1, float("nan"), float("inf")])
def test_bad_sigma(sigma: float) -> None:
    with pytest.raises(InputError, match="sigma"):
        gaussian_noise(np.zeros((2, 2, 3), np.uint8), sigma=sigma, rng=generator())
