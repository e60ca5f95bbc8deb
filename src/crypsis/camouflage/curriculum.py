"""From the difficulty of images to training: an order from easy to hard, and weights that draw hard ones more often."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .difficulty import relative_ranks

__all__ = ["Curriculum", "curriculum_csv", "make_curriculum"]


@dataclass(frozen=True, slots=True)
class Curriculum:
    """Images in the order in which they are to be learned.

    Attributes:
        images: from the easiest to the hardest; their ranks are 1, 2, …
        difficulty: of each.
        weights: how often each is drawn against the average image; their mean is 1.
    """

    images: tuple[str, ...]
    difficulty: tuple[float, ...]
    weights: tuple[float, ...]


def make_curriculum(difficulty: Mapping[str, float], *, strength: float = 2.0) -> Curriculum:
    """Return the order and the sampling weights of images.

    The order is by rising difficulty, equal ones by name. The weight of an image at relative rank q (in (0, 1), equal
    difficulties sharing one, see `crypsis.camouflage.difficulty.relative_ranks`) is

        w = (1 + strength · q) / (1 + strength / 2)

    whose mean over the images is 1. It depends on ranks alone, so that a score's scale and outliers do not matter; the
    hardest image is drawn about 1 + strength times as often as the easiest.

    Args:
        difficulty: image → finite number, higher being harder.
        strength: 0 or more; at 0 all images weigh alike.

    Raises:
        InputError: no image, a number that is not finite, all equal, or a strength out of its range.
    """
    if not (math.isfinite(strength) and strength >= 0):
        raise InputError(f"The strength of the weights is a number of 0 or more; got {strength:g}.")
    if not difficulty:
        raise InputError("There is no image to put in order.")
    strange = [image for image, value in difficulty.items() if not math.isfinite(value)]
    if strange:
        raise InputError(
            f"{len(strange)} of {len(difficulty)} images have no finite score, such as {strange[0]}; score them, or "
            "leave them out."
        )
    if len(set(difficulty.values())) == 1:
        raise InputError(f"All {len(difficulty)} images have the same score; there is no order in them.")
    images = sorted(difficulty, key=lambda image: (difficulty[image], image))
    values = np.array([difficulty[image] for image in images], np.float64)
    weights = (1 + strength * relative_ranks(values)) / (1 + strength / 2)
    return Curriculum(tuple(images), tuple(values.tolist()), tuple(weights.tolist()))


def curriculum_csv(curriculum: Curriculum, name: str) -> str:
    """Return a curriculum as CSV: `image`, the difficulty under its `name`, `rank` and `weight`, the easiest first.

    Raises:
        InputError: `name` is that of another column.
    """
    if name in ("image", "rank", "weight"):
        raise InputError(f"A score cannot be called {name}, as another column is; rename it in the file of scores.")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["image", name, "rank", "weight"])
    rows = zip(curriculum.images, curriculum.difficulty, curriculum.weights, strict=True)
    for rank, (image, difficulty, weight) in enumerate(rows, 1):
        writer.writerow([image, repr(difficulty), rank, repr(weight)])
    return text.getvalue()
