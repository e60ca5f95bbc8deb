"""A prediction beside its image, as one picture."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..types import Image, Mask, Prediction

__all__ = ["draw_panel", "gray_levels"]


def gray_levels(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return numbers in [0, 1] as 0..255."""
    return np.asarray(np.rint(values * 255.0), np.uint8)


def draw_panel(image: Image, prediction: Prediction, mask: Mask | None = None) -> Image:
    """Return image, truth (if given), probability and uncertainty (if there is one) side by side, as Figure 1.

    Uncertainty is in the colors of OpenCV's inferno, from black over orange to yellow.
    """
    views = [image]
    if mask is not None:
        views.append(np.repeat(gray_levels(mask)[:, :, None], 3, axis=2))
    views.append(np.repeat(gray_levels(prediction.probability)[:, :, None], 3, axis=2))
    if prediction.uncertainty is not None:
        colors = cv2.applyColorMap(gray_levels(prediction.uncertainty), cv2.COLORMAP_INFERNO)
        views.append(np.asarray(colors[:, :, ::-1], np.uint8))
    height = image.shape[0]
    gap = np.full((height, max(2, height // 100), 3), 255, np.uint8)
    pieces = [piece for view in views for piece in (gap, view)][1:]
    return np.ascontiguousarray(np.concatenate(pieces, axis=1))
