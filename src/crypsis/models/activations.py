"""From what a model returns to probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["minmax", "sigmoid"]


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 1/(1 + exp(-logits)) in float32, without overflow; NaN stays NaN."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.maximum(logits, np.float32(-80.0)))), np.float32)


def minmax(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (v - min)/(max - min + 1e-8), as SINet-V2, DGNet and FEDER do before they save a map.

    It invents an object where a model saw none, and destroys calibration; for comparison with their numbers only.
    """
    low, high = values.min(), values.max()
    return np.asarray((values - low) / (high - low + np.float32(1e-8)), np.float32)
