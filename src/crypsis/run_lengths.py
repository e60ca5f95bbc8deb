"""COCO's compressed text of run lengths: what `counts` of a mask is where it is no list of numbers."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["pack_counts", "unpack_counts"]


def pack_counts(counts: Sequence[int]) -> str:
    """Write each count, from the fourth on as its difference to the one two before, in digits of five bits."""
    text = []
    for index, count in enumerate(counts):
        value = count - counts[index - 2] if index > 2 else count
        while True:
            digit = value & 31
            value >>= 5
            last = value == (-1 if digit & 16 else 0)
            text.append(chr(48 + (digit if last else digit | 32)))
            if last:
                break
    return "".join(text)


def unpack_counts(text: str) -> list[int]:
    """Undo `pack_counts`.

    Raises:
        ValueError: the text is not of that form.
    """
    counts: list[int] = []
    value = shift = 0
    for character in text:
        digit = ord(character) - 48
        if not 0 <= digit < 64 or shift > 60:
            raise ValueError("run lengths in text that is not COCO's")
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            if digit & 16:
                value -= 1 << shift
            counts.append(value + counts[-2] if len(counts) > 2 else value)
            value = shift = 0
    if shift:
        raise ValueError("run lengths in text that ends within a number")
    return counts
