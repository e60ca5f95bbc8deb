from __future__ import annotations

import cv2
import numpy as np
import pytest

from crypsis.degradations import rain
from crypsis.errors import InputError

CLEAR = {"density": 0.002, "length": 30, "thickness": 1.2, "opacity": 0.6, "veil": 1.0, "blur": 0.5}


def generator(seed: int = 5) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def streaks(height: int = 480, width: int = 640, seed: int = 5, **changes: float) -> np.ndarray:
    """Rain in front of black: what is seen is streaks alone."""
    black = np.zeros((height, width, 3), np.uint8)
    return rain(black, **{**CLEAR, **changes}, rng=generator(seed))[:, :, 0]


def test_streaks_are_gray_and_no_lighter_than_their_opacity() -> None:
    picture = rain(np.zeros((200, 300, 3), np.uint8), **CLEAR, rng=generator())
    assert (picture == picture[:, :, :1]).all()
    assert 60 < picture.max() <= 0.6 * 200 + 1


def test_drops_are_nested() -> None:
    few, many = streaks(density=0.001).astype(int), streaks(density=0.003).astype(int)
    assert (many >= few - 1).all()
    assert (many > few + 20).sum() > 1000


def test_longer_and_denser_rain_covers_more() -> None:
    middle = streaks().mean()
    assert streaks(density=0.004).mean() == pytest.approx(2 * middle, rel=0.15)
    assert streaks(length=60).mean() == pytest.approx(2 * middle, rel=0.15)


def test_rain_is_as_dense_at_the_border_as_inside() -> None:
    total = np.mean([streaks(seed=seed).astype(float) for seed in range(30)], axis=0)
    inside = total[40:-40, 40:-40].mean()
    for strip in (total[:20], total[-20:], total[:, :20], total[:, -20:]):
        assert strip.mean() == pytest.approx(inside, rel=0.12)


@pytest.mark.parametrize("scale", [0.5, 2, 4])
def test_rain_keeps_its_look_at_every_size(scale: float) -> None:
    middle = np.mean([streaks(seed=s).mean() for s in range(4)])
    sized = np.mean([streaks(int(480 * scale), int(640 * scale), seed=s).mean() for s in range(4)])
    assert sized == pytest.approx(middle, rel=0.05)


def test_streaks_share_one_direction_within_twenty_degrees() -> None:
    tilts = []
    for seed in range(12):
        gy, gx = np.gradient(streaks(seed=seed, length=60, thickness=4).astype(float))
        # principal axis of the structure tensor; 0 is vertical
        tilt = np.degrees(0.5 * np.arctan2(-2 * (gx * gy).sum(), (gx * gx).sum() - (gy * gy).sum()))
        energy = np.hypot(2 * (gx * gy).sum(), (gx * gx - gy * gy).sum()) / (gx * gx + gy * gy).sum()
        assert energy > 0.7
        tilts.append(tilt)
    assert max(map(abs, tilts)) <= 21
    assert np.ptp(tilts) > 15


def test_scene_is_darkened_and_blurred(natural: np.ndarray) -> None:
    dry = {**CLEAR, "density": 0.0}
    assert rain(natural, **{**dry, "veil": 0.8}, rng=generator()).mean() == pytest.approx(
        0.8 * natural.mean(), rel=0.01
    )
    detail = [
        cv2.Laplacian(rain(natural, **{**dry, "blur": blur}, rng=generator()), cv2.CV_64F).std() for blur in (0.5, 2, 4)
    ]
    assert detail[0] > 1.2 * detail[1] > 1.2 * detail[2]


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 3), (1, 5000), (5000, 1)])
def test_degenerate_sizes(shape: tuple[int, int]) -> None:
    image = np.full((*shape, 3), 90, np.uint8)
    assert rain(image, **CLEAR, rng=generator()).shape == image.shape


@pytest.mark.parametrize(
    "change", [{"density": -1}, {"length": 0}, {"thickness": 0}, {"opacity": 1.2}, {"veil": -0.1}, {"blur": 0}]
)
def test_bad_parameters(change: dict[str, float]) -> None:
    with pytest.raises(InputError):
        rain(np.zeros((4, 4, 3), np.uint8), **{**CLEAR, **change}, rng=generator())
