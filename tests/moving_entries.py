"""Rows that move content, for tests: a plain shift, a smooth random warp, and a shuffle of tiles."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from crypsis.catalog import Entry
from crypsis.taxonomy import Cause, Effect, Group
from crypsis.types import Image


def _gather(image: Image, field: NDArray[np.float32]) -> Image:
    """Show at each pixel the nearest source pixel, black outside."""
    return cv2.remap(image, field, None, cv2.INTER_NEAREST, borderMode=cv2.BORDER_CONSTANT, borderValue=(0, 0, 0))


def grid(height: int, width: int) -> NDArray[np.float32]:
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    return np.stack([x, y], axis=2).astype(np.float32)


def shift_field(height: int, width: int, *, right: float, down: float = 0.0) -> NDArray[np.float32]:
    return grid(height, width) - np.float32([right, down])


def shift(image: Image, *, right: float, down: float = 0.0) -> Image:
    return _gather(image, shift_field(*image.shape[:2], right=right, down=down))


def wobble_field(height: int, width: int, *, amplitude: float, rng: np.random.Generator) -> NDArray[np.float32]:
    coarse = rng.uniform(-1, 1, (4, 4, 2)).astype(np.float32)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)
    return grid(height, width) + np.float32(amplitude) * smooth


def wobble(image: Image, *, amplitude: float, rng: np.random.Generator) -> Image:
    return _gather(image, wobble_field(*image.shape[:2], amplitude=amplitude, rng=rng))


def tiles_field(height: int, width: int, *, side: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Exchange the tiles of the largest part that whole tiles fill."""
    field = grid(height, width)
    rows, columns = height // side, width // side
    order = rng.permutation(rows * columns)
    for place, source in enumerate(order):
        (y, x), (v, u) = divmod(place, columns), divmod(int(source), columns)
        part = field[y * side : (y + 1) * side, x * side : (x + 1) * side]
        part += np.float32([(u - x) * side, (v - y) * side])
    return field


def tiles(image: Image, *, side: int, rng: np.random.Generator) -> Image:
    return _gather(image, tiles_field(*image.shape[:2], side=side, rng=rng))


def _entry(term: str, operator: object, field: object, **levels: tuple[float, ...]) -> Entry:
    names = list(levels)
    return Entry(
        name=f"test/{term}",
        title=term,
        paper="TEST",
        term=term,
        operator=operator,  # type: ignore[arg-type]
        parameters=tuple(dict(zip(names, values, strict=True)) for values in zip(*levels.values(), strict=True)),
        cause=Cause.RENDERING,
        effect=Effect.GEOMETRY,
        group=Group.G7,
        source="made for tests",
        field=field,  # type: ignore[arg-type]
    )


SHIFT = _entry("shift", shift, shift_field, right=(1, 2, 4, 6, 8))
WOBBLE = _entry("wobble", wobble, wobble_field, amplitude=(2, 3, 4, 5, 6))
TILES = _entry("tiles", tiles, tiles_field, side=(2, 3, 4, 6, 8))
