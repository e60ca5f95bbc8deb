"""Everything that depends on a true mask alone, computed once and reused under all conditions."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import ImageError, InputError
from ..types import Mask
from .boundary import BoundaryTruth, default_tolerance
from .structure import ErrorWeights, Quadrants

__all__ = ["MaskTruth"]


class MaskTruth:
    """A true mask and what the metrics derive from it, each at its first use and at most once.

    All of it together takes less than twice the time of scoring one map, from 384×384 to 3840×2160 pixels
    (`benchmarks/metrics.py`), and 11 bytes a pixel and 24 more for each object pixel.

    Attributes:
        mask: bool H×W, a read-only copy.
        shape: (H, W).
        pixels: H·W.
        foreground: number of object pixels; 0 and H·W are allowed.
    """

    def __init__(self, mask: Mask) -> None:
        """Take a bool H×W mask with at least one pixel; raise `ImageError` for anything else."""
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.ndim != 2 or mask.size == 0:
            got = f"{mask.dtype} {mask.shape}" if isinstance(mask, np.ndarray) else type(mask).__name__
            raise ImageError(f"A true mask is a bool array of shape (height, width); got {got}.")
        self.mask: Mask = np.array(mask, order="C")
        self.mask.setflags(write=False)
        self.shape: tuple[int, int] = (mask.shape[0], mask.shape[1])
        self.pixels: int = mask.size
        self.foreground: int = int(np.count_nonzero(mask))
        self._boundaries: dict[tuple[str, int, float], BoundaryTruth] = {}

    @cached_property
    def object_index(self) -> NDArray[np.intp]:
        """Row-major positions of the object pixels."""
        return np.flatnonzero(self.mask)

    @cached_property
    def histogram_offset(self) -> NDArray[np.uint16]:
        """H×W, 0 on background and 256 on object pixels: added to a byte it makes one histogram of two."""
        return self.mask * np.uint16(256)

    @cached_property
    def quadrants(self) -> Quadrants:
        """The parts of the S-measure; needs at least one object pixel."""
        return Quadrants.of(self.mask)

    @cached_property
    def error_weights(self) -> ErrorWeights:
        """Distances, weights and nearest object pixels of the weighted F; needs at least one object pixel."""
        return ErrorWeights.of(self.mask)

    def boundary(self, *, mode: str, radius: int, tolerance: float | None) -> BoundaryTruth:
        """Boundary and its surroundings; arguments and errors as in `crypsis.metrics.boundary.boundary_f1`."""
        reach = default_tolerance(self.shape) if tolerance is None else tolerance
        if not (math.isfinite(reach) and reach >= 0):
            raise InputError(f"A boundary tolerance is a finite number of pixels, 0 or more; got {reach}.")
        key = (mode, radius, float(reach))
        if key not in self._boundaries:
            self._boundaries[key] = BoundaryTruth.of(self.mask, mode=mode, radius=radius, tolerance=reach)
        return self._boundaries[key]
