"""What the file names of COD10K say.

Grammar (Readme of COD10K-v3): `COD10K-CAM-<super number>-<super-class>-<sub number>-<sub-class>-<image number>`,
for instance `COD10K-CAM-1-Aquatic-1-BatFish-2`. Names of images without a camouflaged object start with
`COD10K-NonCAM-` and keep to no grammar: they have five or seven parts, their numbers mean something else, and
what stands in the place of the species is not one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["COD10K_SPECIES", "COD10K_TRAIN_TEST_OVERLAP", "Cod10kName", "parse_cod10k_name"]

COD10K_SPECIES: tuple[str, ...] = (
    "bat fish", "clown fish", "crab", "crocodile", "crocodile fish", "fish", "flounder", "frog fish",
    "ghost pipefish", "leafy sea dragon", "octopus", "pagurian", "pipefish", "scorpion fish",
    "sea horse", "shrimp", "slug", "star fish", "stingaree", "turtle", "ant", "bug", "cat",
    "caterpillar", "centipede", "chameleon", "cheetah", "deer", "dog", "duck", "gecko", "giraffe",
    "grouse", "human", "kangaroo", "leopard", "lion", "lizard", "monkey", "rabbit", "raccoon",
    "sciuridae", "sheep", "snake", "spider", "stick insect", "tiger", "wolf", "worm", "bat", "bee",
    "beetle", "bird", "bittern", "butterfly", "cicada", "dragonfly", "frogmouth", "grasshopper",
    "heron", "katydid", "mantis", "mockingbird", "moth", "owl", "owlfly", "frog", "toad", "other",
)  # fmt: skip
"""The 69 sub-classes of COD10K by sub number, the first at index 0, in readable spelling. The file names write
number 41 "Reccoon"; number 69, "other", is a class of the set without being a species."""

COD10K_TRAIN_TEST_OVERLAP = frozenset({"COD10K-CAM-1-Aquatic-3-Crab-32", "COD10K-CAM-2-Terrestrial-23-Cat-1506"})
"""Images that COD10K holds in its training and in its test split (README of SINet-V2, 2021-10-09)."""

_NAME = re.compile(r"COD10K-(CAM|NonCAM)-(.+)", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Cod10kName:
    """The parts of a COD10K file name; what the name does not tell is None.

    Attributes:
        camouflaged: False for the `NonCAM` half, which papers do not evaluate on.
        super_class: `Aquatic`, `Terrestrial`, `Flying`, `Amphibian` or `Other`; `NonCAM` images also have others.
        species_id: sub number, 1 to 69; None for `NonCAM`.
        species: readable lower-case name by sub number, else the name's own spelling; None for `NonCAM`.
        number: image number.
    """

    camouflaged: bool
    super_class: str | None = None
    species_id: int | None = None
    species: str | None = None
    number: int | None = None


def parse_cod10k_name(stem: str) -> Cod10kName | None:
    """Return what a file name without suffix says, or None if it is not a COD10K name; never raises.

    The species is looked up by its number, because spellings in file names vary ("BatFish", "batFish").
    """
    match = _NAME.fullmatch(stem)
    if match is None:
        return None
    camouflaged = match[1].lower() == "cam"
    parts = match[2].split("-")
    super_class = parts[1].capitalize() if len(parts) > 1 and parts[1].isalpha() else None
    number = int(parts[-1]) if _NUMBER.fullmatch(parts[-1]) else None
    if not camouflaged or len(parts) != 5:
        return Cod10kName(camouflaged, super_class, number=number)
    species_id = int(parts[2]) if _NUMBER.fullmatch(parts[2]) else None
    if species_id is not None and 1 <= species_id <= len(COD10K_SPECIES):
        return Cod10kName(True, super_class, species_id, COD10K_SPECIES[species_id - 1], number)
    spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", parts[3]).strip().lower()
    return Cod10kName(True, super_class, None, spelled or None, number)
