"""The catalog seen as the taxonomy's matrix: how many rows each pair of cause and effect has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..taxonomy import Cause, Effect
from .entry import Entry

__all__ = ["taxonomy_matrix"]


def taxonomy_matrix(entries: Iterable[Entry]) -> dict[tuple[Cause, Effect], int]:
    """Return the number of rows of each cell, empty cells included: causes first, then effects, in their order."""
    counts = Counter((entry.cause, entry.effect) for entry in entries)
    return {(cause, effect): counts[cause, effect] for cause in Cause for effect in Effect}
