"""`saliency`: a classical salient-object segmenter without weights, the floor line of every comparison.

What stands out from the image's border, and near the center, is taken for the object. The two cues are those of
Zhang, Sclaroff, Lin, Shen, Price, Mech, "Minimum Barrier Salient Object Detection at 80 FPS", ICCV 2015 (MB+):

1. the minimum barrier distance of a pixel to the border: the smallest difference between the largest and smallest
   value along any path to it, per Lab channel, approximated by sweeps over the lines of the image, here in four
   directions;
2. the border contrast: the Mahalanobis distance of a pixel's color to the colors of each of the four border bands;
   the four are summed without the largest, so that an object may touch one side.

It differs from the paper where a benchmark needs it. All is done on an image of at most 48 pixels a side, and no
map is stretched to [0, 1]: a cue is divided by its largest value but never by less than a floor, so that an
image in which nothing stands out gets a low map instead of an invented object. Smoothing is by opening and closing.
The two cues are combined by their geometric mean, weighted by a Gaussian center prior, and a sigmoid makes a
probability. The constants were chosen on 64 composites of the demo set's training split: soft Dice 0.435, mean
absolute error 0.156 there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..types import Image, Prediction, check_image
from .activations import sigmoid
from .options import read_options
from .resizing import resize_map
from .segmenter import Description

__all__ = ["Saliency", "barrier_distance", "border_contrast", "saliency_map"]

SIDE = 48
"""Longest side, in pixels, at which saliency is computed."""
_ROUNDS = 2
_BAND = 0.1  # of the side, as in the paper
_COLOR_VARIANCE = 4.0  # Lab units squared, added to a band's: what two pixels of one color may differ by
_BARRIER_FLOOR, _CONTRAST_FLOOR = 30.0, 8.0
_CENTER_SPREAD = 0.4  # standard deviation of the center prior, in sides
_SLOPE, _MIDPOINT = 20.0, 0.4


class Saliency:
    """The segmenter; see the module for the method."""

    def __init__(self, *, name: str = "saliency") -> None:
        """Make the segmenter under a label."""
        self.name = name

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> Saliency:
        """Make it from `saliency`."""
        read_options("saliency", options, {})
        if target:
            raise ModelError(f"saliency takes nothing after the colon; got {target!r}.")
        return cls(name=name or "saliency")

    def describe(self) -> Description:
        """Return the method's constants and the version of OpenCV."""
        return {
            "adapter": "saliency",
            "method": "minimum barrier distance and border contrast (Zhang et al., ICCV 2015), simplified",
            "side": SIDE,
            "rounds": _ROUNDS,
            "barrier_floor": _BARRIER_FLOOR,
            "contrast_floor": _CONTRAST_FLOOR,
            "center_spread": _CENTER_SPREAD,
            "slope": _SLOPE,
            "midpoint": _MIDPOINT,
            "opencv": cv2.__version__,
        }

    def predict(self, images: Sequence[Image]) -> list[Prediction]:
        """Return one prediction per image; see `Segmenter.predict`."""
        return [Prediction(saliency_map(image)) for image in images]


def saliency_map(image: Image) -> NDArray[np.float32]:
    """Return how likely each pixel belongs to a salient object.

    Args:
        image: uint8 H×W×3 RGB, from 1×1 up.

    Returns:
        float32 H×W in [0, 1]; 0.0003 everywhere for an image of one color.

    Raises:
        ImageError: `image` is not uint8 H×W×3.
    """
    height, width = check_image(image).shape[:2]
    scale = min(1.0, SIDE / max(height, width))
    small = (max(1, round(height * scale)), max(1, round(width * scale)))
    reduced = cv2.resize(image, small[::-1], interpolation=cv2.INTER_AREA)
    lab = np.asarray(cv2.cvtColor(reduced.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB), np.float32)
    barrier = _relative(_smooth(barrier_distance(lab, rounds=_ROUNDS).sum(axis=2)), _BARRIER_FLOOR)
    contrast = _relative(_smooth(border_contrast(lab)), _CONTRAST_FLOOR)
    score = np.sqrt(barrier * contrast) * _center(small)
    return sigmoid(resize_map(np.float32(_SLOPE) * (score - np.float32(_MIDPOINT)), (height, width)))


def barrier_distance(values: NDArray[np.float32], *, rounds: int) -> NDArray[np.float32]:
    """Return the approximate minimum barrier distance of every pixel to the image's border, per channel.

    Args:
        values: float32 H×W×C.
        rounds: how often the image is swept in each of four directions; the paper takes three raster passes.

    Returns:
        float32 H×W×C, at least 0, 0 on the border, and never below the true distance.
    """
    distance = np.full_like(values, np.inf)
    distance[[0, -1]] = 0.0
    distance[:, [0, -1]] = 0.0
    state = (values, distance, values.copy(), values.copy())
    transposed = tuple(array.transpose(1, 0, 2) for array in state)
    for _ in range(rounds):
        for view in (state, transposed):
            _sweep(*view)
        for view in (state, transposed):
            _sweep(*(array[::-1] for array in view))
    return distance


def _sweep(
    values: NDArray[np.float32],
    distance: NDArray[np.float32],
    highest: NDArray[np.float32],
    lowest: NDArray[np.float32],
) -> None:
    """Try for every pixel, line by line, the path that comes from the line before; changes all but `values`."""
    for line in range(1, len(values)):
        high = np.maximum(highest[line - 1], values[line])
        low = np.minimum(lowest[line - 1], values[line])
        barrier = high - low
        better = barrier < distance[line]
        np.copyto(distance[line], barrier, where=better)
        np.copyto(highest[line], high, where=better)
        np.copyto(lowest[line], low, where=better)


def border_contrast(lab: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how much every pixel's color differs from the colors along the border.

    Args:
        lab: float32 H×W×3, CIE Lab.

    Returns:
        float32 H×W, at least 0: the sum of the three smaller of four Mahalanobis distances.
    """
    rows, columns = (max(1, round(_BAND * side)) for side in lab.shape[:2])
    distances = []
    for band in (lab[:rows], lab[-rows:], lab[:, :columns], lab[:, -columns:]):
        colors = band.reshape(-1, 3).astype(np.float64)
        mean = colors.mean(axis=0)
        # einsum rather than @: no BLAS, so that the number of its threads cannot change a bit
        covariance = np.einsum("ni,nj->ij", colors - mean, colors - mean) / len(colors) + _COLOR_VARIANCE * np.eye(3)
        # the squared distance is the squared length of the whitened difference
        whitening = np.linalg.inv(np.linalg.cholesky(covariance)).astype(np.float32)
        whitened = np.einsum("hwi,ji->hwj", lab - mean.astype(np.float32), whitening)
        distances.append(np.sqrt(np.square(whitened).sum(axis=2)))
    return np.asarray(np.sort(distances, axis=0)[:3].sum(axis=0), np.float32)


def _smooth(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Remove bright specks (opening, 3×3) and fill dark ones (closing, 5×5)."""
    opened = cv2.morphologyEx(values, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    return np.asarray(cv2.morphologyEx(opened, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8)), np.float32)


def _relative(values: NDArray[np.float32], floor: float) -> NDArray[np.float32]:
    return values / np.float32(max(float(values.max()), floor))


def _center(size: tuple[int, int]) -> NDArray[np.float32]:
    """Return a Gaussian that is 1 at the image's center."""
    down, right = ((np.arange(side) + 0.5) / side - 0.5 for side in size)
    return np.exp(-(down[:, None] ** 2 + right[None] ** 2) / (2 * _CENTER_SPREAD**2)).astype(np.float32)
