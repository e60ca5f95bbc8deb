"""Small sets of images with masks, made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from crypsis.io import write_image


def make_pair(seed: int, height: int = 48, width: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Return a smooth textured image with an off-color disc, and the disc as a 0/255 mask."""
    rng = np.random.default_rng(seed)
    image = cv2.GaussianBlur(rng.uniform(0, 255, (height, width, 3)), (0, 0), 3)
    image = (image - image.min()) / np.ptp(image) * 200
    y, x = np.mgrid[:height, :width]
    center = rng.uniform(0.35, 0.65, 2) * (height, width)
    disc = np.hypot(y - center[0], x - center[1]) < 0.2 * min(height, width)
    image[disc] = 0.4 * image[disc] + rng.uniform(60, 150, 3)
    return np.clip(image, 0, 255).astype(np.uint8), disc.astype(np.uint8) * 255


@pytest.fixture
def make_set(tmp_path: Path) -> Callable[..., Path]:
    """Return a builder of `Imgs` + `GT` folders."""

    def build(count: int = 6, name: str = "set", height: int = 48, width: int = 64) -> Path:
        root = tmp_path / name
        for index in range(count):
            image, mask = make_pair(index, height, width)
            write_image(root / "Imgs" / f"animal-{index:02d}.png", image)
            write_image(root / "GT" / f"animal-{index:02d}.png", mask)
        return root

    return build
