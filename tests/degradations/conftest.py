"""Images with the statistics of photographs, made on the spot."""

from __future__ import annotations

import numpy as np
import pytest


def make_natural(height: int, width: int, seed: int) -> np.ndarray:
    """Return a uint8 H×W×3 image with the 1/f amplitude spectrum and the correlated channels of photographs."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    frequency[0, 0] = 1

    def layer() -> np.ndarray:
        return np.fft.ifft2(np.fft.fft2(rng.standard_normal((height, width))) / frequency).real

    shared = layer()
    color = np.stack([shared + 0.3 * layer() for _ in range(3)], axis=2)
    return np.clip(128 + 50 * color / color.std(), 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def natural() -> np.ndarray:
    image = make_natural(240, 320, seed=0)
    image.flags.writeable = False
    return image
