"""`gmm-ot`: how far the object's colors lie from those around it, by optimal transport between Gaussian mixtures.

This is not CamOT (Das and Gopalakrishnan, "Camouflage Anything", CVPR 2025). That score is said to use optimal
transport between mixtures of foreground and background too, but which features, how many components, which background
and which normalization are not published where they could be read; numbers of the two cannot be compared. The choices
made here are in `GmmOtScore.settings`.

Colors are CIE L*a*b*, so distances are in ΔE*ab. Each mixture has full covariances, fitted by EM without chance: a
mixture of both sides' pixels starts from groups of equal size along their principal axis, and each side's own from that
mixture. The distance is that of Delon and Desolneux ("A
Wasserstein-type distance in the space of Gaussian mixture models", SIAM J. Imaging Sciences, 2020): transport of the
components' weights at least cost, where the cost of moving one Gaussian to another is their squared Bures–Wasserstein
distance.

Such a distance has a floor, because two fits of one distribution divide it into components in different ways: random
halves of the background of eight demo images lie 1.9 to 4.9 apart, their objects 9 to 57. (From separate starts the
halves lie 5.3 to 9.8 apart: hence the common one.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Image, Mask
from .color import lab
from .other_scores import check_object, surroundings

__all__ = ["GmmOtScore", "Mixture", "fit_mixture", "gmm_ot_score", "mixture_distance", "transport_plan"]

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """A mixture of K Gaussians in D dimensions.

    Attributes:
        weights: float64 [K], positive, summing to 1.
        means: float64 [K, D].
        covariances: float64 [K, D, D], symmetric and positive semidefinite.
    """

    weights: _Floats
    means: _Floats
    covariances: _Floats


@dataclass(frozen=True, slots=True)
class GmmOtScore:
    """How alike the colors of an object and of its surroundings are.

    Attributes:
        score: exp(−distance / `scale`), in (0, 1]; higher is better hidden; NaN where it is not defined.
        distance: in ΔE*ab, at least 0; NaN likewise.
        settings: everything the numbers depend on beside the pixels.
        reason: why the score is not defined, in words; None where it is.
    """

    score: float
    distance: float
    settings: Mapping[str, str | int | float]
    reason: str | None = None


def gmm_ot_score(
    image: Image, mask: Mask, *, components: int = 5, pixels: int = 4000, scale: float = 20.0
) -> GmmOtScore:
    """Return the score of one image; the same arguments give the same number.

    Args:
        image: uint8 H×W×3, RGB.
        mask: bool H×W, the object. Its surroundings are what else its bounding box holds, a quarter of its sides added
            all around (`crypsis.camouflage.other_scores.surroundings`).
        components: Gaussians of each mixture, at least 1; fewer where there are fewer pixels.
        pixels: most that are fitted of either side, spread evenly; at least 1.
        scale: distance at which the score is 1/e, in ΔE*ab, above 0. It changes no order of images.

    Raises:
        ImageError: image and mask do not fit, or the mask is empty.
        InputError: an option out of its range.
    """
    check_object(image, mask)
    if components < 1 or pixels < 1 or not (math.isfinite(scale) and scale > 0):
        raise InputError(
            "gmm-ot needs at least 1 component and 1 pixel, and a scale above 0; "
            f"got {components!r}, {pixels!r} and {scale!r}."
        )
    settings: dict[str, str | int | float] = {
        "features": "CIE L*a*b*", "background": "rest of the 1.5× bounding box", "covariance": "full",
        "start": "mixture of both sides",
        "components": components, "pixels": pixels, "scale": scale, "distance": "MW2, exact transport",
    }  # fmt: skip
    box = surroundings(mask)
    crop, held = image[box], mask[box]
    if held.all():
        return GmmOtScore(math.nan, math.nan, settings, "the object fills the image")
    sides = [lab(_spread(crop[chosen], pixels)) for chosen in (held, ~held)]
    start = fit_mixture(np.concatenate(sides), components=components)
    distance = mixture_distance(*(fit_mixture(side, start=start) for side in sides))
    return GmmOtScore(math.exp(-distance / scale), distance, settings)


def _spread(pixels: NDArray[np.uint8], most: int) -> NDArray[np.uint8]:
    """Return at most `most` of some pixels, spread evenly by the golden ratio, in step with no period of an image."""
    if len(pixels) <= most:
        return pixels
    return pixels[(np.arange(most) * ((math.sqrt(5) - 1) / 2) % 1 * len(pixels)).astype(np.intp)]


def fit_mixture(
    points: _Floats,
    *,
    components: int = 5,
    start: Mixture | None = None,
    iterations: int = 100,
    tolerance: float = 1e-3,
    floor: float = 0.25,
) -> Mixture:
    """Fit a mixture of Gaussians by expectation maximization.

    Args:
        points: float64 [n, D], at least one.
        components: K, at least 1; fewer where there are fewer points.
        start: what to begin with, in place of `components`; None for groups of equal size along the principal axis.
        iterations: most steps, at least 1.
        tolerance: gain of the mean log likelihood at which it ends.
        floor: added to every variance, in squared units of the points; above 0.

    Raises:
        InputError: no points, or options out of their range.
    """
    if points.ndim != 2 or not len(points) or components < 1 or iterations < 1 or not floor > 0:
        raise InputError(
            "A mixture needs points [n, D], at least one, and at least one component and step, and a floor above 0; "
            f"got {points.shape}, {components!r}, {iterations!r} and {floor!r}."
        )
    if start is None:
        components, count = min(components, len(points)), len(points)
        centered = points - points.mean(axis=0)
        axis = np.linalg.eigh(centered.T @ centered)[1][:, -1]
        share = np.zeros((components, count))
        share[np.arange(count) * components // count, np.argsort(centered @ axis, kind="stable")] = 1.0
        mixture = _maximized(points, share, floor)
    else:
        mixture = start
    likelihood = -math.inf
    for _ in range(iterations):
        share, reached = _expected(points, mixture)
        if reached - likelihood < tolerance:
            break
        likelihood = reached
        mixture = _maximized(points, share, floor)
    return mixture


def _expected(points: _Floats, mixture: Mixture) -> tuple[_Floats, float]:
    """Return each component's share in each point, [K, n], and the points' mean log likelihood."""
    roots = np.linalg.cholesky(mixture.covariances)
    white = np.linalg.solve(roots, (points - mixture.means[:, None]).transpose(0, 2, 1))
    heights = np.log(mixture.weights) - np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    logs = heights[:, None] - (np.square(white).sum(axis=1) + points.shape[1] * math.log(2 * math.pi)) / 2
    top = logs.max(axis=0)
    total = top + np.log(np.exp(logs - top).sum(axis=0))
    return np.exp(logs - total), float(total.mean())


def _maximized(points: _Floats, share: _Floats, floor: float) -> Mixture:
    """Return the mixture that suits these shares best."""
    mass = share.sum(axis=1) + 1e-9  # a component that holds no point stays, without weight
    means = share @ points / mass[:, None]
    apart = points - means[:, None]
    covariances = (share[:, None] * apart.transpose(0, 2, 1)) @ apart / mass[:, None, None]
    return Mixture(mass / mass.sum(), means, covariances + floor * np.eye(points.shape[1]))


def mixture_distance(first: Mixture, second: Mixture) -> float:
    """Return MW2, the distance of two mixtures, in the units of their points.

    The squared distance of two Gaussians is |m₁ − m₂|² + tr(S₁ + S₂ − 2·(S₁^½ S₂ S₁^½)^½).
    """
    values, vectors = np.linalg.eigh(first.covariances)
    roots = (vectors * np.sqrt(np.maximum(values, 0))[:, None]) @ vectors.transpose(0, 2, 1)
    inner = roots[:, None] @ second.covariances @ roots[:, None]  # [K, L, D, D]
    shared = np.sqrt(np.maximum(np.linalg.eigvalsh(inner), 0)).sum(axis=-1)
    traces = [np.trace(mixture.covariances, axis1=1, axis2=2) for mixture in (first, second)]
    apart = np.square(first.means[:, None] - second.means).sum(axis=-1)
    cost = np.maximum(apart + traces[0][:, None] + traces[1] - 2 * shared, 0)
    return math.sqrt((cost * transport_plan(cost, first.weights, second.weights)).sum())


def transport_plan(cost: _Floats, supply: _Floats, demand: _Floats) -> _Floats:
    """Return the cheapest way to move what is supplied to where it is demanded: the simplex method on the transport LP.

    Small problems only: every step solves a system of K + L equations.

    Args:
        cost: float64 [K, L], of moving a unit.
        supply: float64 [K], at least 0.
        demand: float64 [L], at least 0, of the same sum.

    Returns:
        float64 [K, L], at least 0, with `supply` and `demand` as its sums.

    Raises:
        InputError: the three do not fit.
    """
    rows, columns = cost.shape
    sums = float(supply.sum()), float(demand.sum())
    if supply.shape != (rows,) or demand.shape != (columns,) or not math.isclose(*sums, rel_tol=1e-9):
        raise InputError(
            f"Transport needs as much supply as demand, one each for a row and a column of {cost.shape} costs; got "
            f"{supply.shape} summing to {sums[0]:g} and {demand.shape} summing to {sums[1]:g}."
        )
    # one equation a row and a column, the last left out because the others imply it
    equations = np.zeros((rows + columns, rows, columns))
    equations[np.arange(rows), np.arange(rows)] = 1
    equations[rows + np.arange(columns), :, np.arange(columns)] = 1
    matrix = equations.reshape(rows + columns, -1)[:-1]
    amounts = np.concatenate([supply, demand])[:-1]
    costs = cost.ravel()
    basis = _northwest(supply, demand)
    while True:
        square = matrix[:, basis]
        flow = np.linalg.solve(square, amounts)
        prices = np.linalg.solve(square.T, costs[basis])
        gains = prices @ matrix - costs
        # the first that gains enters and the first that empties leaves: Bland's rule, which cannot go round in circles
        better = np.flatnonzero(gains > 1e-12 * (1 + np.abs(costs).max()))
        if not better.size:
            break
        change = np.rint(np.linalg.solve(square, matrix[:, better[0]]))  # −1, 0 or 1 around one cycle
        limits = np.where(change > 0, np.maximum(flow, 0), np.inf)
        leaving = np.flatnonzero(limits <= limits.min() + 1e-15)
        basis[min(leaving, key=basis.__getitem__)] = int(better[0])
    plan = np.zeros(rows * columns)
    plan[basis] = np.maximum(flow, 0)
    return plan.reshape(rows, columns)


def _northwest(supply: _Floats, demand: _Floats) -> list[int]:
    """Return the cells of a first plan: down or right from the upper left corner, K + L − 1 of them."""
    i = j = 0
    left, wanted = supply.tolist(), demand.tolist()
    cells = [0]
    while i + j < len(left) + len(wanted) - 2:
        moved = min(left[i], wanted[j])
        left[i] -= moved
        wanted[j] -= moved
        if j == len(wanted) - 1 or (i < len(left) - 1 and left[i] <= wanted[j]):
            i += 1
        else:
            j += 1
        cells.append(i * len(wanted) + j)
    return cells
