"""Synthetic data sets: small pictures whose pixels depend on their name."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

Pair = Callable[..., tuple[Path, Path]]
Tree = Callable[..., Path]


@pytest.fixture
def write_pair() -> Pair:
    """Write one image and its mask; each place is a path with suffix."""

    def write(image: Path, mask: Path, size: tuple[int, int] = (24, 16)) -> tuple[Path, Path]:
        width, height = size
        rng = np.random.default_rng(zlib.crc32(image.stem.encode()))
        for path in (image, mask):
            path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(image)
        truth = np.zeros((height, width), np.uint8)
        truth[height // 4 : height // 2, width // 4 : width // 2] = 255
        PIL.Image.fromarray(truth).save(mask)
        return image, mask

    return write


@pytest.fixture
def write_tree(write_pair: Pair) -> Tree:
    """Write pairs `stem.jpg` + `stem.png` into a folder of images and one of masks; return `root`."""

    def write(root: Path, images: str, masks: str, stems: Iterable[str] = ("a", "b", "c")) -> Path:
        for stem in stems:
            write_pair(root / images / f"{stem}.jpg", root / masks / f"{stem}.png")
        return root

    return write
