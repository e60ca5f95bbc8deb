"""Lists of pairs for a two-alternative study: who is shown which images, in which order, on which sides.

Appendix D of "SeamCam" (arXiv 2605.16515): each participant answers a fixed number of pairs, left and right are drawn
for each trial anew, and catch trials show one animal that nobody can miss, such as "a high-contrast subject on a
uniform background". What the paper leaves open is decided here:

    pairs          in rounds, in each of which an image is shown at most once (the circle method of tournaments), so
                   that no pair comes twice and all images are compared about equally often
    participants   numbered from 1; a number's list depends on the seed and that number alone, and the lists go
                   through the pairs in turn, so that all are voted on about equally often
    catch trials   of a few clearly visible images beside the ones that are compared, anywhere in a list

A list is the table of votes (`crypsis.camouflage.vote_files`) with the choices yet to be filled in.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from ..errors import InputError
from ..seeds import rng_for
from ..types import Image, Mask, check_image
from .agreement import Side, Vote

__all__ = ["QUESTION", "Study", "cut_out", "plan_study", "votes_csv"]

QUESTION = "Which image is more camouflaged?"
"""The paper's instruction."""

_COLUMNS = ("participant", "left", "right", "choice", "answer", "species")
_CATCHERS = 12
"""Clearly visible images that a study uses at most: a page holds each."""


@dataclass(frozen=True, slots=True)
class Study:
    """Who is shown what.

    Attributes:
        pairs: the pairs to be voted on, each sorted, in the order in which lists go through them.
        lists: the trials of participants 1, 2, …, in order, without their choices.
    """

    pairs: tuple[tuple[str, str], ...]
    lists: tuple[tuple[Vote, ...], ...]

    @property
    def images(self) -> tuple[str, ...]:
        """All images shown, sorted."""
        return tuple(sorted({name for trials in self.lists for vote in trials for name in (vote.left, vote.right)}))

    @property
    def votes(self) -> Iterator[Vote]:
        """All trials of all lists."""
        return (vote for trials in self.lists for vote in trials)


def plan_study(
    images: Mapping[str, str | None],
    *,
    pairs: int,
    within_species: bool = False,
    obvious: Sequence[str] = (),
    hidden: Iterable[str] | None = None,
    catch_share: float = 0.1,
    per_participant: int | None = None,
    participants: int | None = None,
    seed: int = 0,
) -> Study:
    """Return the lists of a study; the same arguments give the same, and more participants only add lists.

    Args:
        images: name → species if known, of the images to compare.
        pairs: how many pairs are voted on, at least 1.
        within_species: pair images of one species only, as the paper does; those of unknown species are left out.
        obvious: names of images whose animal nobody can miss, for catch trials; none of them among `images`.
        hidden: which of `images` may stand beside them; None for all.
        catch_share: catch trials for each pair of a list, in [0, 1]; at least one unless it is 0.
        per_participant: pairs of a list, 1 to `pairs`; None for all.
        participants: how many lists; None for as many as give each pair at least three votes.
        seed: of all draws.

    Raises:
        InputError: more pairs than can be made, no obvious image for catch trials or one that is compared too, or an
            option out of its range.
    """
    length = pairs if per_participant is None else per_participant
    if pairs < 1 or not 1 <= length <= pairs or not 0 <= catch_share <= 1:
        raise InputError(
            "A study has at least 1 pair, from 1 to all of them for each participant, and a share of catch trials in "
            f"[0, 1]; got {pairs!r}, {length!r} and {catch_share!r}."
        )
    people = 3 * math.ceil(pairs / length) if participants is None else participants
    if people < 1:
        raise InputError(f"A study has at least 1 participant; got {people!r}.")
    catches = max(1, round(catch_share * length)) if catch_share else 0
    if catches and not obvious:
        raise InputError("Catch trials need images whose animal nobody can miss; name some, or set their share to 0.")
    shared = sorted(set(obvious) & set(images))
    if shared:
        raise InputError(f"{shared[0]!r} is named as obvious and is also among the images to compare.")

    drawn = _draw_pairs(images, pairs, within_species, seed)
    shown = {name for pair in drawn for name in pair}
    rng = rng_for(seed, "", "study/catch")
    easy = [obvious[i] for i in rng.permutation(len(obvious))[:_CATCHERS]]
    hard = sorted(shown if hidden is None else shown.intersection(hidden) or set(hidden))
    if catches and not hard:
        raise InputError("Catch trials need hidden animals beside the obvious ones; none is named.")
    lists = []
    for number in range(people):
        rng = rng_for(seed, str(number + 1), "study/list")
        chosen = [drawn[(number * length + i) % pairs] for i in range(length)]
        trials = [(*pair, False) for pair in chosen]
        trials += [(easy[rng.integers(len(easy))], hard[rng.integers(len(hard))], True) for _ in range(catches)]
        lists.append(
            tuple(
                _trial(str(number + 1), trials[i], bool(rng.integers(2)), images) for i in rng.permutation(len(trials))
            )
        )
    return Study(tuple(drawn), tuple(lists))


def _trial(participant: str, trial: tuple[str, str, bool], swapped: bool, images: Mapping[str, str | None]) -> Vote:
    first, second, catch = trial
    left, right = (second, first) if swapped else (first, second)
    if catch:  # the second one is the hidden one
        answer: Side = "left" if swapped else "right"
        return Vote(participant, left, right, None, answer)
    species = images[first] if images[first] == images[second] else None
    return Vote(participant, left, right, None, None, species)


def _draw_pairs(images: Mapping[str, str | None], pairs: int, within_species: bool, seed: int) -> list[tuple[str, str]]:
    groups: dict[str, list[str]] = {}
    for name in sorted(images):
        species = images[name]
        if not within_species:
            groups.setdefault("", []).append(name)
        elif species:
            groups.setdefault(species, []).append(name)
    possible = sum(math.comb(len(names), 2) for names in groups.values())
    if pairs > possible:
        rule = "of one species " if within_species else ""
        raise InputError(f"{len(images)} images make {possible} pairs {rule}and no more; got {pairs} to draw.")
    rng = rng_for(seed, "", "study/pairs")
    rounds = [_rounds([names[i] for i in rng.permutation(len(names))]) for names in groups.values()]
    drawn: list[tuple[str, str]] = []
    for parts in zip_longest(*rounds, fillvalue=()):
        matches = [pair for part in parts for pair in part]
        drawn += [matches[i] for i in rng.permutation(len(matches))]
        if len(drawn) >= pairs:
            break
    return drawn[:pairs]


def _rounds(names: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """Yield rounds of pairs, sorted; each name once a round (but for one, of an odd number), each pair once in all."""
    ring: list[str | None] = [*names, *([None] * (len(names) % 2))]
    last, count = ring.pop(), len(ring)
    for start in range(count):
        met = [(ring[start], last)]
        met += [(ring[(start + i) % count], ring[(start - i) % count]) for i in range(1, count // 2 + 1)]
        yield [(min(a, b), max(a, b)) for a, b in met if a is not None and b is not None]


def votes_csv(votes: Iterable[Vote]) -> str:
    """Return votes as the CSV that `crypsis.camouflage.vote_files.read_votes` reads; no choice is an empty one."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([getattr(vote, name) or "" for name in _COLUMNS] for vote in votes)
    return out.getvalue()


def cut_out(image: Image, mask: Mask) -> Image:
    """Return an animal alone, on black or white, whichever is further from its mean: the paper's catch image.

    Args:
        image: uint8 H×W×3, RGB.
        mask: bool H×W, True is the animal.

    Returns:
        uint8 H×W×3; an image with an empty mask becomes black.

    Raises:
        ImageError: `image` is not uint8 H×W×3.
        InputError: the mask has another size.
    """
    check_image(image)
    if mask.shape != image.shape[:2]:
        raise InputError(f"The mask is {mask.shape} and its image {image.shape[:2]}; they must agree.")
    dark = mask.any() and image[mask].mean() < 127.5
    return np.where(mask[:, :, None], image, np.uint8(255 if dark else 0))
