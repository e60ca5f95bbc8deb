"""The losses of RobustCODLite: equations 2 to 6 of the COD10K-C paper, section 4.2.

All take float N×1×H×W tensors and return a scalar: logits m̂ of the object, logits û of the error, and the mask m with
values 0 and 1. Norms are means over all pixels, so that weights hold for any size. Where the paper leaves a choice:

- The soft Dice is taken per image, with 1 added above and below the line, and averaged over the images.
- Boundaries are of the probability σ(m̂), and of the clean view, as is the uncertainty that is learned.
- The reliability that weights the consistency is the clean view's; gradients flow into both views.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

__all__ = [
    "WEIGHTS",
    "boundary_loss",
    "boundary_map",
    "consistency_loss",
    "segmentation_loss",
    "total_loss",
    "uncertainty_loss",
]


WEIGHTS = {"clean": 1.0, "corrupted": 0.5, "boundary": 0.2, "uncertainty": 0.1, "consistency": 0.2}
"""Of the terms of equation 6: the segmentation losses of the two views, and the other three losses."""


def segmentation_loss(logits: Tensor, mask: Tensor) -> Tensor:
    """Return binary cross-entropy plus soft Dice loss (equation 2)."""
    probability = logits.sigmoid()
    both = (probability * mask).sum(dim=(1, 2, 3))
    either = (probability + mask).sum(dim=(1, 2, 3))
    dice = 1 - (2 * both + 1) / (either + 1)
    return functional.binary_cross_entropy_with_logits(logits, mask) + dice.mean()


def boundary_map(values: Tensor, *, kernel: int = 5) -> Tensor:
    """Return dilation minus erosion, both by max pooling over kernel×kernel pixels: in [0, 1] for such values."""
    pooled = [functional.max_pool2d(sign * values, kernel, stride=1, padding=kernel // 2) for sign in (1, -1)]
    return pooled[0] + pooled[1]  # the largest of the negated values is minus the smallest


def boundary_loss(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the mean absolute difference of the boundary maps of σ(m̂) and m (equation 3)."""
    return functional.l1_loss(boundary_map(logits.sigmoid()), boundary_map(mask))


def uncertainty_loss(uncertainty: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
    """Return the binary cross-entropy of û against |σ(m̂) − m|; no gradient reaches `logits` (equation 4)."""
    error = (logits.detach().sigmoid() - mask).abs()
    return functional.binary_cross_entropy_with_logits(uncertainty, error)


def consistency_loss(clean: Tensor, corrupted: Tensor, uncertainty: Tensor) -> Tensor:
    """Return the mean of |σ(clean) − σ(corrupted)|·(1 − σ(û)); no gradient reaches `uncertainty` (equation 5)."""
    reliability = 1 - uncertainty.detach().sigmoid()
    return ((clean.sigmoid() - corrupted.sigmoid()).abs() * reliability).mean()


def total_loss(terms: Mapping[str, Tensor]) -> Tensor:
    """Return the sum of the terms, weighted by `WEIGHTS` (equation 6); an ablation leaves terms out."""
    return torch.stack([WEIGHTS[name] * term for name, term in terms.items()]).sum()
