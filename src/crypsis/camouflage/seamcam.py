"""SeamCam: one minus the best overlap with the object that any union of proposals reaches.

Section 3.1 and Algorithm 1 of "SeamCam: Quantifying Seamless Camouflage via Multi-Cue Visual Detectability"
(arXiv 2605.16515). A detector that knows the species proposes regions, a segmenter draws each one's mask; what passes
two gates and ranks among the first K takes part. Detectability D is the largest IoU of the object with the union of a
non-empty subset of them, and the score is ζ = 1 − D: higher is better hidden.

All 2^K unions are counted at once. The code of a pixel is the set of masks that hold it, so how many pixels of the
object, and of the rest, have each code decides every IoU; the pixels that a union leaves out are those whose code is a
subset of its complement, and one pass of additions per mask sums the counts over subsets. Everything is an integer.

Where the paper is open, Algorithm 1 is followed as it is written: gates are ≥, K = min(Kmax, proposals that pass), the
rank is by confidence, and equal ones keep the detector's order. "Duplicates do not affect D" holds for the subsets of
one set of masks but not for the choice of the first K: seven copies of half an animal crowd out the other half.
`duplicate_iou` removes them first; it is off by default because the paper does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ImageError, InputError
from ..types import Mask, Proposals, check_proposal_scores

__all__ = ["MAX_TOP_K", "Proposals", "SeamCamScore", "seamcam_score", "select_proposals", "subset_counts"]

MAX_TOP_K = 20
"""Most masks whose subsets are counted: a million subsets, 40 MB."""


@dataclass(frozen=True, slots=True)
class SeamCamScore:
    """How well one object is hidden from one set of proposals.

    Attributes:
        score: ζ = 1 − D, in [0, 1]; higher is better hidden.
        detectability: D, the largest IoU of a union of proposals with the object.
        kept: positions of the proposals that took part, the most confident first.
        best: positions of those whose union reaches D: of the smallest such subset, and of equally small ones the
            most confident; empty where D is 0.
        gains: of each of `kept`, by how much D would fall without it; 0 for one whose work others can do.
        by_top_k: D of the first 1, 2, …, `top_k` that pass; never falling, constant where no more passed.
        intersection: pixels the best union has in common with the object; 0 where D is 0.
        union: pixels of either; the object's where D is 0.
        proposals: how many there were.
        passed: how many passed both gates, duplicates removed where that was asked for.
        reason: why D is 0, in words; None where it is not.
    """

    score: float
    detectability: float
    kept: tuple[int, ...]
    best: tuple[int, ...]
    gains: tuple[float, ...]
    by_top_k: tuple[float, ...]
    intersection: int
    union: int
    proposals: int
    passed: int
    reason: str | None


def seamcam_score(
    proposals: Proposals,
    truth: Mask,
    *,
    tau_alpha: float = 0.5,
    tau_beta: float = 0.1,
    top_k: int = 7,
    duplicate_iou: float | None = None,
) -> SeamCamScore:
    """Return how well an object is hidden; exact, whatever the order or number of equal proposals.

    Args:
        proposals: of the image, for the object's species; none at all is a score of 1.
        truth: bool H×W, the union of all its instances.
        tau_alpha: least α, in [0, 1].
        tau_beta: least β, in [0, 1]. Where α is never above β, as with a phrase's own probability under the detector's
            best of all words, a `tau_beta` below `tau_alpha` rejects nothing.
        top_k: how many of those that pass take part, 1..20.
        duplicate_iou: in (0, 1]: a mask whose IoU with that of a more confident proposal reaches it is removed before
            the first K are taken; 1 removes equal masks alone. None keeps all.

    Raises:
        ImageError: an empty truth, for which the score is not defined, or masks of another shape than it.
        InputError: a threshold or K out of its range.
    """
    if not isinstance(truth, np.ndarray) or truth.dtype != np.bool_ or truth.ndim != 2:
        got = f"{truth.dtype} {truth.shape}" if isinstance(truth, np.ndarray) else type(truth).__name__
        raise ImageError(f"A true mask is a bool array of shape (height, width); got {got}.")
    if proposals.masks.shape[1:] != truth.shape:
        raise ImageError(
            f"Proposals and truth need one size, and none is resized: masks are {proposals.masks.shape[1:]}, the truth "
            f"is {truth.shape} (height, width)."
        )
    if not truth.any():
        raise ImageError("The true mask has no object pixel, so how well its object is hidden is not defined.")
    _check_top_k(top_k)
    if duplicate_iou is not None and not 0 < duplicate_iou <= 1:
        raise InputError(f"duplicate_iou is above 0 and at most 1, or None; got {duplicate_iou!r}.")

    passed = select_proposals(proposals.alpha, proposals.beta, tau_alpha=tau_alpha, tau_beta=tau_beta)
    if duplicate_iou is not None:
        passed = _without_duplicates(passed, proposals.masks, duplicate_iou)
    kept = passed[:top_k]
    inside, union = subset_counts([proposals.masks[i] for i in kept], truth)
    ratios = inside / union
    code = _best_subset(inside, union, ratios)
    detectability = float(ratios[code])
    # subsets of the first k are the codes below 2^k; the empty one has an IoU of 0
    by_top_k = [float(ratios[: 2 ** min(k, len(kept))].max()) for k in range(1, top_k + 1)]
    gains = (detectability - float(ratios.reshape(-1, 2, 2**i)[:, 0].max()) for i in range(len(kept)))
    reason: str | None
    if not len(proposals.alpha):
        reason = "no proposals"
    elif not len(kept):
        reason = f"none of {len(proposals.alpha)} proposals passes α ≥ {tau_alpha:g} and β ≥ {tau_beta:g}"
    else:
        reason = None if detectability else "no proposal's mask overlaps the object"
    return SeamCamScore(
        1.0 - detectability,
        detectability,
        tuple(kept.tolist()),
        tuple(kept[i].item() for i in range(len(kept)) if code >> i & 1),
        tuple(gains),
        tuple(by_top_k),
        int(inside[code]),
        int(union[code]),
        len(proposals.alpha),
        len(passed),
        reason,
    )


def select_proposals(
    alpha: NDArray[np.floating[Any]],
    beta: NDArray[np.floating[Any]],
    *,
    tau_alpha: float = 0.5,
    tau_beta: float = 0.1,
    top_k: int | None = None,
) -> NDArray[np.intp]:
    """Return the positions of the proposals that take part, the most confident first; masks need not exist yet.

    Thresholds are compared in the scores' own precision: a float32 score written as 0.7 passes a gate of 0.7.

    Args:
        alpha: float [N] in [0, 1].
        beta: float [N] in [0, 1]; equal ones keep their order.
        tau_alpha: least α, in [0, 1].
        tau_beta: least β, in [0, 1].
        top_k: how many at most, 1..20; None for all that pass.

    Raises:
        InputError: scores that are not two equally long rows in [0, 1], or a threshold or K out of its range.
    """
    check_proposal_scores(alpha, beta)
    for name, value in (("tau_alpha", tau_alpha), ("tau_beta", tau_beta)):
        if not 0 <= value <= 1:
            raise InputError(f"{name} is a threshold in [0, 1]; got {value!r}.")
    if top_k is not None:
        _check_top_k(top_k)
    rank = np.argsort(-beta, kind="stable")
    return rank[((alpha >= float(tau_alpha)) & (beta >= float(tau_beta)))[rank]][:top_k]


def subset_counts(masks: Sequence[Mask], truth: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count |U ∩ truth| and |U ∪ truth| of the union U of every subset of some masks.

    Args:
        masks: bool H×W each, K of them, at most 20.
        truth: bool H×W.

    Returns:
        two int64 [2^K]; bit i of an index says whether masks[i] belongs to the subset, so index 0 is no mask at all.
    """
    count = len(masks)
    width = np.dtype(np.uint8 if count < 8 else np.uint16 if count < 16 else np.uint32)
    codes = truth.astype(width)
    for mask in masks[::-1]:  # doubling is far cheaper than shifting: numpy adds, but does not shift, in wide registers
        np.add(codes, codes, out=codes)
        np.add(codes, mask, out=codes)
    # [outside or inside the object, code] → pixels whose code is a subset of the index
    within = np.bincount(codes.ravel(), minlength=2 << count).reshape(2, -1)
    for i in range(count):
        pairs = within.reshape(2, -1, 2, 2**i)
        pairs[:, :, 1] += pairs[:, :, 0]
    covered = within[:, -1:] - within[:, ::-1]  # the complement of a set is its index from the end
    return covered[1], within[1, -1] + covered[0]


def _best_subset(inside: NDArray[np.int64], union: NDArray[np.int64], ratios: NDArray[np.float64]) -> int:
    """Return the smallest subset of the largest IoU, of equally small ones the one with the lowest code."""
    if ratios.max() == 0:
        return 0  # the empty set stands for all that overlap nothing
    codes = np.flatnonzero(ratios == ratios.max())
    inside, union = inside[codes], union[codes]
    # different fractions of many pixels may round to one number; products of counts are exact in 64 bits
    top = 0
    while (better := np.flatnonzero(inside * union[top] > inside[top] * union)).size:
        top = int(better[0])
    codes = codes[inside * union[top] == inside[top] * union]
    sizes = np.zeros(1, np.int8)
    while len(sizes) < len(ratios):
        sizes = np.concatenate([sizes, sizes + np.int8(1)])
    return int(codes[np.argmin(sizes[codes])])


def _without_duplicates(ranked: NDArray[np.intp], masks: NDArray[np.bool_], least: float) -> NDArray[np.intp]:
    """Drop each proposal whose mask overlaps that of an earlier one that stays by at least `least`."""
    kept: list[int] = []
    for i in ranked.tolist():
        pairs = ((np.count_nonzero(masks[i] & masks[j]), np.count_nonzero(masks[i] | masks[j])) for j in kept)
        if not any(both >= least * either for both, either in pairs):  # two empty masks are equal: 0 ≥ 0
            kept.append(i)
    return np.array(kept, np.intp)


def _check_top_k(top_k: int) -> None:
    if not 1 <= top_k <= MAX_TOP_K:
        raise InputError(f"top_k is 1 to {MAX_TOP_K}, whose 2^K subsets can all be counted; got {top_k!r}.")
