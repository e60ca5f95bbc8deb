"""Which thresholds make SeamCam agree best with people: τα × τβ × K on some pairs, then judged on the others.

Appendix B of "SeamCam" (arXiv 2605.16515) tunes on 100 pairs of the evaluation set, and does not say whether they were
left out of it afterwards. Here they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..seeds import rng_for
from ..types import Mask
from .agreement import Judgments, TieRule, credit_of
from .seamcam import Proposals, seamcam_score, select_proposals

__all__ = ["ThresholdChoice", "ThresholdSweep", "sweep_scores", "threshold_sweep"]


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdChoice:
    """Agreement with people by thresholds, on the pairs that were tuned on, and the thresholds chosen by it.

    Attributes:
        tau_alphas: ascending.
        tau_betas: ascending.
        accuracy: float64 [tau_alphas, tau_betas, K], K = 1, 2, …, on the tuning pairs. The heat map is
            `accuracy[:, :, -1]`, the elbow plot the row of the thresholds chosen.
        tuning: the pairs that were tuned on, (first, second) by name.
        tau_alpha: the best at the largest K; of equally good ones the lowest, τα before τβ.
        tau_beta: likewise.
        top_k: the smallest with which these thresholds come within `slack` of their best.
    """

    tau_alphas: tuple[float, ...]
    tau_betas: tuple[float, ...]
    accuracy: NDArray[np.float64]
    tuning: tuple[tuple[str, str], ...]
    tau_alpha: float
    tau_beta: float
    top_k: int


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdSweep(ThresholdChoice):
    """The same, with what to evaluate the thresholds on.

    Attributes:
        evaluation: all other pairs.
        shared: how many pairs outside of the tuning ones have a majority, scores and an image that a tuning pair
            shows too; they are in `evaluation` unless they were to be left out.
    """

    evaluation: Judgments
    shared: int


def sweep_scores(
    proposals: Proposals,
    truth: Mask,
    *,
    tau_alphas: Sequence[float],
    tau_betas: Sequence[float],
    top_k: int = 12,
    duplicate_iou: float | None = None,
) -> NDArray[np.float64]:
    """Return ζ of one image at every combination, float64 [tau_alphas, tau_betas, top_k].

    All K cost as much as the largest, and thresholds that let the same proposals pass are scored once.

    Args:
        proposals: of the image, ungated.
        truth: bool H×W.
        tau_alphas: values of τα, in [0, 1].
        tau_betas: values of τβ, in [0, 1].
        top_k: largest K, 1..20.
        duplicate_iou: as in `seamcam_score`.

    Raises:
        ImageError: as `seamcam_score`.
        InputError: likewise.
    """
    found: dict[bytes, tuple[float, ...]] = {}
    scores = np.empty((len(tau_alphas), len(tau_betas), top_k))
    for i, tau_alpha in enumerate(tau_alphas):
        for j, tau_beta in enumerate(tau_betas):
            passed = select_proposals(proposals.alpha, proposals.beta, tau_alpha=tau_alpha, tau_beta=tau_beta)
            key = (passed if duplicate_iou is not None else passed[:top_k]).tobytes()
            if key not in found:
                found[key] = seamcam_score(
                    proposals, truth, tau_alpha=tau_alpha, tau_beta=tau_beta, top_k=top_k, duplicate_iou=duplicate_iou
                ).by_top_k
            scores[i, j] = 1 - np.array(found[key])
    return scores


def threshold_sweep(
    judgments: Judgments,
    scores: Mapping[str, NDArray[np.float64]],
    *,
    tau_alphas: Sequence[float],
    tau_betas: Sequence[float],
    pairs: int = 100,
    seed: int = 0,
    ties: TieRule = "half",
    slack: float = 0.01,
    disjoint_images: bool = False,
) -> ThresholdSweep:
    """Choose thresholds on a few pairs, in the paper's two stages: τα and τβ at the largest K, then K.

    Args:
        judgments: of people.
        scores: image → what `sweep_scores` returns for it, all of one shape; images may be missing.
        tau_alphas: their first axis, ascending.
        tau_betas: their second.
        pairs: how many to tune on, at least 1; at least one must be left to evaluate.
        seed: of the draw among the pairs with a majority and scores.
        ties: what a pair with two equal scores counts, `half` or `wrong`. Were such pairs left out, thresholds under
            which hardly a pair is decided would win by the few that are.
        slack: how much agreement a smaller K may cost, at least 0.
        disjoint_images: whether pairs that share an image with the tuning pairs are left out of the evaluation too.

    Raises:
        InputError: too few pairs, scores of another shape, thresholds not ascending, or an option out of its range.
    """
    for name, values in (("tau_alphas", tau_alphas), ("tau_betas", tau_betas)):
        if not len(values) or list(values) != sorted(set(values)):
            raise InputError(f"{name} are one or more ascending thresholds; got {list(values)!r}.")
    grid = len(tau_alphas), len(tau_betas)
    shapes = {array.shape for array in scores.values()}
    if len(shapes) != 1 or any(len(shape) != 3 or shape[:2] != grid or not shape[2] for shape in shapes):
        raise InputError(
            f"Scores of a sweep over {grid[0]} τα and {grid[1]} τβ have the shape ({grid[0]}, {grid[1]}, K), one for "
            f"all images; got {', '.join(map(str, sorted(shapes))) or 'no scores'}."
        )
    if ties not in ("half", "wrong"):
        raise InputError(f"A search counts pairs with equal scores as half or wrong; got {ties!r}.")
    usable = [
        i
        for i, pair in enumerate(judgments.pairs)
        if judgments.harder[i] and pair.first in scores and pair.second in scores
    ]
    if not 1 <= pairs < len(usable) or not slack >= 0:
        raise InputError(
            f"Tuning needs at least 1 pair and leaves at least 1 of the {len(usable)} with a majority and scores, and "
            f"a slack of at least 0; got {pairs!r} and {slack!r}."
        )
    drawn = np.sort(rng_for(seed, "", "threshold-sweep").choice(np.array(usable), pairs, replace=False))
    tuning = [judgments.pairs[i] for i in drawn]
    signs = np.sign([scores[pair.first] - scores[pair.second] for pair in tuning])
    accuracy = credit_of(judgments.harder[drawn][:, None, None, None], signs, ties)[0].mean(axis=0)
    i, j = divmod(int(accuracy[:, :, -1].argmax()), len(tau_betas))
    top_k = int(np.flatnonzero(accuracy[i, j] >= accuracy[i, j].max() - slack - 1e-12)[0]) + 1

    seen = {name for pair in tuning for name in (pair.first, pair.second)}
    keep = np.ones(len(judgments.pairs), bool)
    keep[drawn] = False
    shares = np.array([pair.first in seen or pair.second in seen for pair in judgments.pairs]) & keep
    shared = sum(1 for i in usable if shares[i])
    if disjoint_images:
        keep &= ~shares
        if shared == len(usable) - pairs:
            raise InputError(
                f"Every pair shares an image with one of the {pairs} tuning pairs, so that none is left to evaluate; "
                "tune on fewer, or let the pairs share images."
            )
    return ThresholdSweep(
        tuple(tau_alphas),
        tuple(tau_betas),
        accuracy,
        tuple((pair.first, pair.second) for pair in tuning),
        float(tau_alphas[i]),
        float(tau_betas[j]),
        top_k,
        judgments.subset(keep),
        shared,
    )
