"""Several degradations one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import InputError
from ..seeds import content_key
from ..types import Image
from . import get_entry
from .apply import AnyImage, through_rgb
from .entry import Entry

__all__ = ["chain", "keyed"]


def chain(
    image: AnyImage,
    steps: Sequence[tuple[str | Entry, int]],
    *,
    seed: int = 0,
    image_key: str | None = None,
) -> AnyImage:
    """Apply several degradations one after the other, and return the image as the kind it came.

    Every step draws as it would alone, from (seed, image key, entry), so that the rain of a chain is the rain of
    the benchmark. An entry that occurs again draws anew: its image key is extended by which occurrence it is.

    Args:
        image: as for `apply_degradation`; it is not changed.
        steps: (row of the catalog or its name, severity), first to last.
        seed: which of many random fields.
        image_key: the name all randomness of this image depends on; derived from the pixels if None.

    Raises:
        UnknownNameError: there is no such degradation.
        ImageError: the image has another type, shape or range.
        InputError: no step, or a severity that is not one of 1..5.
    """
    rows = [(get_entry(entry) if isinstance(entry, str) else entry, severity) for entry, severity in steps]
    if not rows:
        raise InputError("A chain has at least one step, (name, severity).")

    def degrade(rgb: Image) -> Image:
        key = content_key(rgb) if image_key is None else image_key
        for (entry, severity), own_key in zip(rows, keyed([entry for entry, _ in rows], key), strict=True):
            rgb = entry.degrade(rgb, severity, seed=seed, image_key=own_key)
        return rgb

    return through_rgb(image, degrade)


def keyed(entries: Sequence[Entry], image_key: str) -> Iterator[str]:
    """Yield the image key of each step: `key`, and `key#2`, `key#3` … where its entry occurs again."""
    seen: dict[str, int] = {}
    for entry in entries:
        seen[entry.name] = occurrence = seen.get(entry.name, 0) + 1
        yield image_key if occurrence == 1 else f"{image_key}#{occurrence}"
