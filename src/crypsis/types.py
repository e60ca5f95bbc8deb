"""The values that flow through Crypsis: frozen, and checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import ImageError, InputError, ModelError

__all__ = [
    "Condition",
    "Detections",
    "Image",
    "ListedDetections",
    "Mask",
    "Prediction",
    "ProbabilityMap",
    "Proposals",
    "Sample",
    "check_image",
    "check_pair",
    "check_proposal_scores",
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
        _check_detections(self, np.float32)
        if not np.isfinite(self.boxes).all() or (self.boxes[:, :2] > self.boxes[:, 2:]).any():
            raise ModelError("Boxes are finite corners x1, y1, x2, y2 with x1 ≤ x2 and y1 ≤ y2.")
        if self.labels.size and self.labels.min() < 0:
            raise ModelError("Labels count a detector's classes from 0; got a negative one.")

    def listed(self) -> ListedDetections:
        """Return them with widths and heights in place of the farther corners, which loses nothing."""
        boxes = self.boxes.astype(np.float64)
        boxes[:, 2:] -= boxes[:, :2]
        return ListedDetections(boxes, self.scores.astype(np.float64), self.labels)


@dataclass(frozen=True, slots=True)
class ListedDetections:
    """Detections of one image as COCO's results list them, in the same numbers.

    An evaluator computes overlaps and areas from these; rounded ones, or those of corners, come out on the other side
    of a threshold now and then.

    Attributes:
        boxes: float64 N×4: x, y, width and height in pixels, no size below 0.
        scores: float64 N, in [0, 1].
        labels: int64 N: ids of the data set's categories.
    """

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together, numbers that are none, and negative sizes."""
        _check_detections(self, np.float64)
        if not np.isfinite(self.boxes).all() or (self.boxes[:, 2:] < 0).any():
            raise ModelError("Listed boxes are finite x, y, width and height, no size below 0.")


def _check_detections(found: Detections | ListedDetections, dtype: type[np.floating[Any]]) -> None:
    """Raise `ModelError` unless arrays have the types and shapes of detections, and scores their range."""
    count = len(found.scores)
    for name, kind, shape in (
        ("boxes", dtype, (count, 4)), ("scores", dtype, (count,)), ("labels", np.int64, (count,)),
    ):  # fmt: skip
        value = getattr(found, name)
        if value.dtype != kind or value.shape != shape:
            raise ModelError(
                f"Detections of {count} objects have {name} of {np.dtype(kind).name} {shape}; "
                f"got {value.dtype} {value.shape}."
            )
    if count and not (found.scores.min() >= 0.0 and found.scores.max() <= 1.0):
        raise ModelError(f"Scores lie in [0, 1] without NaN; got [{found.scores.min():.4g}, {found.scores.max():.4g}].")


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """What a detector and a segmenter say of one image, for one species; N may be 0.

    Attributes:
        alpha: float [N] in [0, 1], how well each region fits the species' name.
        beta: float [N] in [0, 1], how sure the detector is of it.
        masks: bool N×H×W.
        boxes: float [N, 4], x1, y1, x2, y2 in pixels, or None; the score does not use them.
    """

    alpha: NDArray[np.floating[Any]]
    beta: NDArray[np.floating[Any]]
    masks: NDArray[np.bool_]
    boxes: NDArray[np.floating[Any]] | None = None

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together, and masks that are not bool."""
        check_proposal_scores(self.alpha, self.beta)
        count = len(self.alpha)
        if self.masks.dtype != np.bool_ or self.masks.ndim != 3 or len(self.masks) != count:
            raise ImageError(
                f"The masks of {count} proposals are a bool array of shape ({count}, height, width), for instance "
                f"gray >= 128; got {self.masks.dtype} {self.masks.shape}."
            )
        if self.boxes is not None and self.boxes.shape != (count, 4):
            raise InputError(f"The boxes of {count} proposals have shape ({count}, 4); got {self.boxes.shape}.")
        if self.boxes is not None and not np.isfinite(self.boxes).all():
            raise InputError("The boxes of proposals are finite numbers of pixels; got NaN or infinity.")


def check_proposal_scores(alpha: NDArray[np.floating[Any]], beta: NDArray[np.floating[Any]]) -> None:
    """Raise `InputError` unless α and β are two equally long rows of float in [0, 1] without NaN."""
    for name, values in (("α", alpha), ("β", beta)):
        if not np.issubdtype(values.dtype, np.floating) or values.ndim != 1 or len(values) != len(alpha):
            raise InputError(
                f"Proposals have one α and one β each, two equally long rows of float; got {alpha.dtype} {alpha.shape} "
                f"and {beta.dtype} {beta.shape}."
            )
        if values.size and not (values.min() >= 0 and values.max() <= 1):
            raise InputError(f"{name} lies in [0, 1] without NaN; got [{values.min():.4g}, {values.max():.4g}].")
