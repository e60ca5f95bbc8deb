"""Which images an epoch shows and in what order: each once, or by weight, or at first only the easiest.

The sources are two files with a line per image: `weight` says how often, `rank` says how early (1 is the easiest). With
both, an image is drawn by weight among those whose turn has come. Every epoch has as many steps as without either, so
that trainings of the same settings cost the same and their learning rates fall alike.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..camouflage.vote_files import read_scores
from ..datasets.folder import counted, examples
from ..datasets.masks import MaskDataset
from ..errors import DatasetError, InputError, UnknownNameError
from ..seeds import rng_for
from .settings import Settings

__all__ = ["Order", "read_column"]


def read_column(path: Path, column: str, dataset: MaskDataset) -> dict[str, float]:
    """Read one number for each image of a set: CSV with the columns `image` and `column`.

    Args:
        path: the file.
        column: `weight` or `rank`.
        dataset: the images, all of which have a line, and no others.

    Returns:
        Key of an image → its number, finite.

    Raises:
        InputError: no such file.
        DatasetError: no such table; an image is listed twice or lacks its number.
        UnknownNameError: an image that is not in the set.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the CSV in it.")
    if not path.is_file():
        option = "--weights" if column == "weight" else "--curriculum"
        hint = "; weights to start the encoder from are given with --encoder-weights" if column == "weight" else ""
        raise InputError(f"{path}: there is no such file; {option} names a CSV with the columns image,{column}{hint}.")
    found = {}
    for image, number in read_scores(path, [column]).scores[column].items():
        found[unicodedata.normalize("NFC", image)] = number
    keys = [item.key for item in dataset.items]
    unknown = found.keys() - set(keys)
    if unknown:
        raise UnknownNameError.among(f"image in {dataset.root}", min(unknown), keys, f"({path}, column image.)")
    missing = [key for key in keys if key not in found]
    if missing:
        raise DatasetError(
            f"{path}: {counted(len(missing), 'image')} of {dataset.root} without a {column} ({examples(missing)}); "
            "give every image a line."
        )
    return found


@dataclass(frozen=True)
class Order:
    """How the images of every epoch are chosen and ordered.

    Attributes:
        keys: of the images trained on.
        weights: key → how often it is drawn, at least 0, relative to the others; None to show each image as often.
        ranks: key → how early it is shown, the smallest first; None to show all from the start.
    """

    keys: tuple[str, ...]
    weights: Mapping[str, float] | None = None
    ranks: Mapping[str, float] | None = None

    def check(self, settings: Settings, source: str) -> None:
        """Refuse weights that cannot be drawn by.

        Args:
            settings: of the training.
            source: where the weights stand, for messages.

        Raises:
            DatasetError: a weight is below 0, or those of the first epoch are all 0, or they are too large to add.
        """
        if self.weights is None:
            return
        below = next((key for key in self.keys if self.weights[key] < 0), None)
        if below is not None:
            raise DatasetError(f"{source}: the weight of {below} is {self.weights[below]:g}; a weight is at least 0.")
        if not math.isfinite(sum(self.weights[key] for key in self.keys)):
            raise DatasetError(f"{source}: the weights are too large to add; divide all of them by the largest.")
        first = self._pool(settings, 0)
        total = float(sum(self.weights[self.keys[place]] for place in first))
        if not total > 0:
            raise DatasetError(
                f"{source}: the weights of the {counted(len(first), 'image')} that the first epoch draws from sum to "
                f"{total:g}; some of them have to be above 0."
            )

    def epoch(self, settings: Settings, epoch: int, name: str) -> list[tuple[int, int]]:
        """Return the images of one epoch, as many as there are keys.

        Args:
            settings: its seed, and the pace of the curriculum.
            epoch: from 0.
            name: of the data set, which the draw depends on.

        Returns:
            For each the place among `keys`, and how often this epoch has shown it before: mostly 0.
        """
        rng, pool = rng_for(settings.seed, name, f"train/{epoch}/order"), self._pool(settings, epoch)
        if self.weights is None:
            rounds = math.ceil(len(self.keys) / len(pool))
            order = np.concatenate([rng.permutation(pool) for _ in range(rounds)])[: len(self.keys)]
        else:
            weights = np.array([self.weights[self.keys[place]] for place in pool])
            order = rng.choice(pool, len(self.keys), p=weights / weights.sum())
        before: Counter[int] = Counter()
        found = []
        for place in order.tolist():
            found.append((place, before[place]))
            before[place] += 1
        return found

    def _pool(self, settings: Settings, epoch: int) -> NDArray[np.int64]:
        """Return the places of the images whose turn has come by an epoch, the easiest of them first."""
        count = len(self.keys)
        if self.ranks is None:
            return np.arange(count)
        ranks = self.ranks
        easiest_first = sorted(range(count), key=lambda place: (ranks[self.keys[place]], self.keys[place]))
        share = round(count * pace(settings, epoch), 9)  # in floating point, 100 × .07 is a little over 7
        return np.array(easiest_first[: math.ceil(share)])


def pace(settings: Settings, epoch: int) -> float:
    """Return which share of the images, the easiest, a curriculum shows in an epoch, counted from 0.

    `curriculum_start` in the first epoch; then it grows by the same amount each epoch, until it is 1 when the share
    `curriculum_until` of the epochs has passed.
    """
    growing = settings.curriculum_until * settings.epochs
    if epoch >= growing:
        return 1.0
    return settings.curriculum_start + (1 - settings.curriculum_start) * epoch / growing
