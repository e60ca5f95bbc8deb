"""Images cut into bands of rows: temporaries stay in the cache, and memory does not grow with the image."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["bands"]


def bands(height: int, width: int, *, pixels: int = 1 << 15) -> Iterator[slice]:
    """Yield slices of rows that follow one another and hold about `pixels` pixels each (at least one row).

    Args:
        height: of the image, in pixels.
        width: of the image, in pixels.
        pixels: wanted size of a band.
    """
    rows = max(1, pixels // width)
    for top in range(0, height, rows):
        yield slice(top, min(top + rows, height))
