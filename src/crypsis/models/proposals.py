"""What proposes regions for SeamCam: the protocols, and the specifications by which a user names one.

An observer is told what is looked for, and says where it may be: boxes, how well each fits the name (α), how sure it is
of it (β), and a mask for each box.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from ..errors import InputError
from ..types import Image, Proposals
from .segmenter import Description, parse_specification

__all__ = [
    "ANY_ANIMAL",
    "PROPOSERS",
    "NameReader",
    "ProposalSource",
    "StoredProposals",
    "clean_category",
    "load_proposer",
    "looked_for",
]

ANY_ANIMAL = "animal"
"""What is looked for where nobody says what is shown."""


@runtime_checkable
class ProposalSource(Protocol):
    """Proposes regions for a category.

    Attributes:
        name: its label.
    """

    name: str

    def describe(self) -> Description:
        """Return everything that identifies the observer, how it makes α and β among it; no absolute paths."""
        ...

    def propose(self, image: Image, category: str) -> Proposals:
        """Return the regions of one image that may show the category, with their boxes; there may be none.

        Args:
            image: uint8 H×W×3, RGB; it is not changed.
            category: as `clean_category` returns it.

        Raises:
            ModelError: the observer failed.
        """
        ...


@runtime_checkable
class NameReader(Protocol):
    """What a `ProposalSource` has besides if its text encoder takes no more than so many tokens."""

    def fit_name(self, category: str) -> str:
        """Return the name that is looked for: the category, without its last words where they do not fit."""
        ...


@runtime_checkable
class StoredProposals(Protocol):
    """Holds proposals that were made elsewhere.

    Attributes:
        name: its label.
    """

    name: str

    def describe(self) -> Description:
        """Return what identifies the source; no absolute paths."""
        ...

    def load(self, key: str, shape: tuple[int, int]) -> Proposals:
        """Return the proposals of one image.

        Args:
            key: the image's name inside its data set, POSIX, without suffix.
            shape: height and width of the image, which the masks must have.

        Raises:
            ModelError: there are none of that name, or they are not proposals.
        """
        ...

    def check(self, keys: Sequence[str]) -> list[str]:
        """Return the keys of which nothing is stored, without reading any file."""
        ...


class _Kind(Protocol):
    """A class that `PROPOSERS` may name."""

    @classmethod
    def from_specification(
        cls, target: str, options: Mapping[str, str], name: str | None
    ) -> ProposalSource | StoredProposals: ...


PROPOSERS: dict[str, str] = {
    "embedded": "crypsis.models.embedded_observer:EmbeddedObserver",
    "proposals": "crypsis.models.saved_proposals:SavedProposals",
    "grounding-dino": "crypsis.models.hub_observer:GROUNDING_DINO",
    "owlv2": "crypsis.models.hub_observer:OWLV2",
    "sam3": "crypsis.models.sam3_observer:Sam3Observer",
}
"""Kind → "module:Class", imported when it is asked for. The class, or the row, has `from_specification`."""


def load_proposer(spec: str) -> ProposalSource | StoredProposals:
    """Load the observer that `spec` names.

    Args:
        spec: `embedded`, `grounding-dino[:PATH_OR_ID]`, `owlv2[:PATH_OR_ID]`, `sam3[:PATH_OR_ID]` or `proposals:DIR`,
            with options behind commas (`embedded,segment=network`); all accept `name=LABEL`.

    Raises:
        UnknownNameError: an unknown kind or option; the nearest is suggested.
        ModelError: a wrong value, or a file or folder that cannot be used.
        MissingDependencyError: a package or file that the observer needs is missing.
    """
    parsed = parse_specification(spec, PROPOSERS, what="observer", hint=_hint)
    module, _, attribute = PROPOSERS[parsed.kind].partition(":")
    kind = cast("type[_Kind]", getattr(importlib.import_module(module), attribute))
    return kind.from_specification(parsed.target, parsed.options, parsed.name)


def looked_for(source: object, category: str) -> str:
    """Return the name that an observer looks for when it is given a category; see `NameReader`."""
    return source.fit_name(category) if isinstance(source, NameReader) else category


def _hint(head: str) -> str:
    return f"For a folder of saved proposals write proposals:{head}" if Path(head).is_dir() else ""


def clean_category(name: str, *, longest: int = 60) -> str:
    """Return the name of an animal as observers take it: lower case, words with single spaces, no full stop.

    Detectors that read text end a phrase at a full stop or question mark, so that `Rana sp.` would be two; and their
    text encoders fail above some number of words, so that long names lose their last words.

    Args:
        name: as a data set spells it, such as `BatFish`, `leafy_sea_dragon` or `Rana sp.`.
        longest: characters that are kept, in whole words as long as there is more than one.

    Raises:
        InputError: nothing is left of it.
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", unicodedata.normalize("NFC", name))
    words = re.sub(r"[^\w'’-]|_", " ", spaced).lower().split()
    while len(words) > 1 and len(" ".join(words)) > longest:
        words.pop()
    cleaned = " ".join(words)[:longest]
    if not any(character.isalnum() for character in cleaned):
        raise InputError(f"{name!r} is no name of what is shown; write a word, such as 'frog'.")
    return cleaned
