"""A study and proposals whose best thresholds are known: τα 0.5, τβ 0.2 and K 2, on a grid of the module's values.

The object of image i has 40 columns, of which two proposals together leave the last i + 1 uncovered; alone, the first
is the same in all images. A third, below τα 0.5, covers the object whole, and so does a fourth, below τβ 0.2, in every
other image. People find the image harder of which more is uncovered.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from crypsis.camouflage.agreement import Vote
from crypsis.camouflage.study import votes_csv
from crypsis.io import write_image
from crypsis.models.saved_proposals import save_proposals
from crypsis.types import Proposals

ALPHAS, BETAS = (0.2, 0.5, 0.8), (0.1, 0.2, 0.4)
BEST = 0.5, 0.2, 2
SIZE = 24, 50


def key(number: int) -> str:
    return f"animal-{number:02d}"


def proposals(number: int) -> Proposals:
    """Return those of one image."""
    masks = np.zeros((4, *SIZE), np.bool_)
    masks[0, 4:20, 5:10] = True
    masks[1, 4:20, 10 : 44 - number] = True
    masks[2, 4:20, 5:45] = True
    masks[3, 4:20, 5:45] = number % 2 == 1
    return Proposals(np.array([0.7, 0.7, 0.3, 0.9]), np.array([0.35, 0.3, 0.9, 0.15]), masks)


def write_data(root: Path, count: int) -> Path:
    """Write images, masks and `root/proposals`; return the data set's folder."""
    mask = np.zeros(SIZE, np.uint8)
    mask[4:20, 5:45] = 255
    for number in range(count):
        write_image(root / "set" / "Imgs" / f"{key(number)}.png", np.full((*SIZE, 3), 10 + number, np.uint8))
        write_image(root / "set" / "GT" / f"{key(number)}.png", mask)
        save_proposals(root / "proposals", key(number), proposals(number))
    return root / "set"


def votes(count: int, *, people: Sequence[str] = ("a", "b", "c")) -> list[Vote]:
    """Return what everybody says of all pairs of so many images, and a catch trial each with images of no data set."""
    found = [Vote(who, "obvious (cut out)", key(0), "right", "right") for who in people]
    found += [Vote(who, key(j), key(i), "left") for i, j in combinations(range(count), 2) for who in people]
    return found


def write_votes(file: Path, found: Sequence[Vote]) -> Path:
    file.write_text(votes_csv(found), "utf-8")
    return file
