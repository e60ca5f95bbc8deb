from __future__ import annotations

import numpy as np
import pytest

from crypsis.metrics.distance import squared_distance


@pytest.mark.parametrize("seed", range(30))
def test_squares_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = (rng.random(rng.integers(1, 60, 2)) < 0.02).astype(np.uint8)
    bits[rng.integers(bits.shape[0]), rng.integers(bits.shape[1])] = 1
    y, x = np.indices(bits.shape)
    ys, xs = np.nonzero(bits)
    expected = ((y[..., None] - ys) ** 2 + (x[..., None] - xs) ** 2).min(-1)
    assert np.array_equal(squared_distance(bits), expected)


def test_squares_are_exact_far_away() -> None:
    bits = np.zeros((900, 1100), np.uint8)
    bits[3, 7] = bits[880, 90] = 1
    y, x = np.indices(bits.shape)
    expected = np.minimum((y - 3) ** 2 + (x - 7) ** 2, (y - 880) ** 2 + (x - 90) ** 2)
    assert np.array_equal(squared_distance(bits), expected)
