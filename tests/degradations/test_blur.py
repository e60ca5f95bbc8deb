from __future__ import annotations

import math

import numpy as np
import PIL.Image
import PIL.ImageFilter
import pytest

from crypsis.degradations import gaussian_blur, motion_blur
from crypsis.errors import InputError


@pytest.mark.parametrize("kernel", [1, 3, 5, 7, 9, 11])
@pytest.mark.parametrize("width", [1, 2, 3, 11, 64])
def test_motion_blur_is_the_rounded_mean_of_mirrored_neighbors(natural: np.ndarray, kernel: int, width: int) -> None:
    image = natural[:9, :width]
    reach = kernel // 2
    columns = np.pad(np.arange(width), reach, mode="reflect") if width > 1 else np.zeros(kernel, int)
    mean = np.mean([image[:, columns[i : i + width]].astype(float) for i in range(kernel)], axis=0)
    assert np.array_equal(motion_blur(image, kernel=kernel), np.rint(mean))


@pytest.mark.parametrize("kernel", [0, -3, 4])
def test_bad_kernel(kernel: int) -> None:
    with pytest.raises(InputError, match="odd"):
        motion_blur(np.zeros((2, 2, 3), np.uint8), kernel=kernel)


@pytest.mark.parametrize("sigma", [0.8, 1.2, 1.6, 2.0, 2.5])
def test_gaussian_blur_is_a_gaussian_with_repeated_edges(natural: np.ndarray, sigma: float) -> None:
    image = natural[:40, :50]
    reach = math.ceil(3 * sigma)
    weight = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    weight /= weight.sum()
    padded = np.pad(image.astype(float), ((reach, reach), (reach, reach), (0, 0)), mode="edge")
    rows = sum(w * padded[i : i + 40] for i, w in enumerate(weight))
    both = sum(w * rows[:, i : i + 50] for i, w in enumerate(weight))
    assert abs(gaussian_blur(image, sigma=sigma) - both).max() <= 1


@pytest.mark.parametrize(("sigma", "largest"), [(0.8, 7), (1.2, 4), (1.6, 4), (2.0, 4), (2.5, 4)])
def test_gaussian_blur_beside_pillow(natural: np.ndarray, sigma: float, largest: int) -> None:
    ours = gaussian_blur(natural, sigma=sigma)
    pillow = np.asarray(PIL.Image.fromarray(natural).filter(PIL.ImageFilter.GaussianBlur(sigma)))
    difference = abs(ours.astype(int) - pillow)
    border = math.ceil(3 * sigma)
    assert difference[border:-border, border:-border].max() <= largest
    assert difference.mean() < 1


@pytest.mark.parametrize("sigma", [0, -1, float("nan"), float("inf")])
def test_bad_sigma(sigma: float) -> None:
    with pytest.raises(InputError, match="sigma"):
        gaussian_blur(np.zeros((2, 2, 3), np.uint8), sigma=sigma)
