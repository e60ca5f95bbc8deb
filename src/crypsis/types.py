"""The values that flow through Crypsis: frozen, and checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import ImageError, ModelError

__all__ = [
    "Condition",
    "Detections",
    "Image",
    "Mask",
    "Prediction",
    "ProbabilityMap",
    "Sample",
    "check_image",
    "check_pair",
]

Image: TypeAlias = NDArray[np.uint8]
"""H×W×3, RGB, 0..255: the one image convention inside."""
Mask: TypeAlias = NDArray[np.bool_]
"""H×W; True is the object."""
ProbabilityMap: TypeAlias = NDArray[np.float32]
"""H×W, in [0, 1]: probability that a pixel belongs to the object."""


def check_image(image: Image) -> Image:
    """Return `image` if it is uint8 H×W×3 with at least one pixel; raise `ImageError` if not."""
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        got = f"{image.dtype} {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise ImageError(f"An image here is a uint8 array of shape (height, width, 3), RGB; got {got}.")
    if image.size == 0:
        raise ImageError(f"The image is empty: its shape is {image.shape}.")
    return image


def check_pair(clean: Image, degraded: Image) -> None:
    """Raise `ImageError` if two images are not both uint8 H×W×3 of one size."""
    check_image(clean)
    check_image(degraded)
    if degraded.shape != clean.shape:
        (h, w), (height, width) = degraded.shape[:2], clean.shape[:2]
        raise ImageError(
            f"Strength compares images of one size, and none is resized: the clean one is {width}×{height}, the "
            f"degraded one {w}×{h}."
        )


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """What was done to an image: a catalog entry at a native severity, or nothing at all.

    Attributes:
        entry: canonical entry name such as `cod10k-c/rain`, or `clean`.
        severity: 1..5, and 0 for `clean` alone.
    """

    entry: str
    severity: int

    def __post_init__(self) -> None:
        """Refuse a severity that does not belong to the entry."""
        if (self.entry == "clean") != (self.severity == 0) or not 0 <= self.severity <= 5:
            raise ValueError(f"no condition has entry {self.entry!r} and severity {self.severity}")

    def __str__(self) -> str:
        """`clean`, or `entry@severity`."""
        return self.entry if self.entry == "clean" else f"{self.entry}@{self.severity}"


@dataclass(frozen=True, slots=True)
class Sample:
    """One image with its truth.

    Attributes:
        key: path inside the data set without suffix, POSIX; the name every random draw depends on.
        image: uint8 H×W×3, RGB.
        mask: bool H×W, the object.
        species: name of what is shown, if known.
        super_class: coarser group such as `Aquatic`, if known.
    """

    key: str
    image: Image
    mask: Mask
    species: str | None = None
    super_class: str | None = None

    def __post_init__(self) -> None:
        """Check types and that image and mask have one size."""
        check_image(self.image)
        if self.mask.dtype != np.bool_ or self.mask.shape != self.image.shape[:2]:
            raise ImageError(
                f"{self.key}: the mask must be bool with the image's size {self.image.shape[:2]}; "
                f"got {self.mask.dtype} {self.mask.shape}."
            )


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a segmenter says of one image.

    Attributes:
        probability: float32 H×W in [0, 1], at the image's size.
        uncertainty: float32 H×W in [0, 1] at the image's size, or None.
    """

    probability: ProbabilityMap
    uncertainty: ProbabilityMap | None = None

    def __post_init__(self) -> None:
        """Refuse maps of a wrong type, NaN, or values outside [0, 1]."""
        for name in ("probability", "uncertainty"):
            value = getattr(self, name)
            if value is None:
                continue
            if value.dtype != np.float32 or value.ndim != 2 or value.size == 0:
                raise ModelError(f"A {name} map must be float32 H×W; got {value.dtype} {value.shape}.")
            low, high = float(value.min()), float(value.max())
            if not (low >= 0.0 and high <= 1.0):
                raise ModelError(
                    f"A {name} map must lie in [0, 1] without NaN; got [{low:.4g}, {high:.4g}]. "
                    "If the model returns logits, ask for activation=sigmoid."
                )


@dataclass(frozen=True, slots=True)
class Detections:
    """What a detector says of one image.

    Attributes:
        boxes: float32 N×4, corners x1, y1, x2, y2 in pixels of the image, x1 ≤ x2 and y1 ≤ y2; they may reach over its
            border.
        scores: float32 N, in [0, 1]; in any order.
        labels: int64 N, which of the detector's classes, from 0.
    """

    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together, numbers that are none, and boxes inside out."""
        count = len(self.scores)
        for name, dtype, shape in (
            ("boxes", np.float32, (count, 4)), ("scores", np.float32, (count,)), ("labels", np.int64, (count,)),
        ):  # fmt: skip
            value = getattr(self, name)
            if value.dtype != dtype or value.shape != shape:
                raise ModelError(
                    f"Detections of {count} objects have {name} of {np.dtype(dtype).name} {shape}; "
                    f"got {value.dtype} {value.shape}."
                )
        if not np.isfinite(self.boxes).all() or (self.boxes[:, :2] > self.boxes[:, 2:]).any():
            raise ModelError("Boxes are finite corners x1, y1, x2, y2 with x1 ≤ x2 and y1 ≤ y2.")
        if count and not (self.scores.min() >= 0.0 and self.scores.max() <= 1.0):
            raise ModelError(
                f"Scores lie in [0, 1] without NaN; got [{self.scores.min():.4g}, {self.scores.max():.4g}]."
            )
        if count and self.labels.min() < 0:
            raise ModelError("Labels count a detector's classes from 0; got a negative one.")
