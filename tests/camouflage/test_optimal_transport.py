from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.camouflage.optimal_transport import (
    Mixture,
    fit_mixture,
    gmm_ot_score,
    mixture_distance,
    transport_plan,
)
from crypsis.errors import ImageError, InputError


def gaussian(mean: tuple[float, ...], variance: float) -> Mixture:
    return Mixture(np.ones(1), np.array([mean]), variance * np.eye(len(mean))[None])


def test_distance_of_two_gaussians() -> None:
    first, second = gaussian((0.0, 0.0, 0.0), 1.0), gaussian((3.0, 4.0, 0.0), 4.0)
    assert mixture_distance(first, second) == pytest.approx(math.sqrt(28))
    assert mixture_distance(second, first) == pytest.approx(math.sqrt(28))


def test_distance_of_gaussians_that_do_not_commute() -> None:
    rng = np.random.default_rng(0)
    a, b = (root @ root.T for root in rng.normal(size=(2, 3, 3)))
    first, second = (Mixture(np.ones(1), np.zeros((1, 3)), c[None]) for c in (a, b))
    values = np.linalg.eigvals(a @ b)  # of the same eigenvalues as the symmetric form
    expected = np.trace(a + b) - 2 * np.sqrt(values.real).sum()
    assert mixture_distance(first, second) ** 2 == pytest.approx(expected)


def test_distance_of_mixtures_takes_the_cheapest_plan() -> None:
    first = Mixture(np.array([0.5, 0.5]), np.array([[0.0], [10.0]]), np.ones((2, 1, 1)))
    second = Mixture(np.array([0.25, 0.75]), np.array([[10.0], [1.0]]), np.ones((2, 1, 1)))
    # half from 0 to 1, a quarter stays at 10, a quarter from 10 to 1
    assert mixture_distance(first, second) ** 2 == pytest.approx(0.5 * 1 + 0.25 * 81)
    assert mixture_distance(first, first) == 0.0


COUNTS = st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any)


@settings(deadline=None, max_examples=120)
@given(COUNTS, COUNTS, st.integers(0, 2**32 - 1), st.booleans())
def test_a_plan_moves_everything_and_none_is_cheaper(
    supply: list[int], demand: list[int], seed: int, whole: bool
) -> None:
    """Unit by unit it is an assignment, and the least of all permutations is the least of all plans."""
    rng = np.random.default_rng(seed)
    cost = rng.random((len(supply), len(demand)))
    cost = np.rint(3 * cost) if whole else cost
    a, b = np.array(supply) / sum(supply), np.array(demand) / sum(demand)
    plan = transport_plan(cost, a, b)
    np.testing.assert_allclose(plan.sum(axis=1), a, atol=1e-12)
    np.testing.assert_allclose(plan.sum(axis=0), b, atol=1e-12)
    assert plan.min() >= 0
    units = math.lcm(sum(supply), sum(demand))
    if units <= 6:
        sources = np.repeat(np.arange(len(a)), np.rint(a * units).astype(int))
        targets = np.repeat(np.arange(len(b)), np.rint(b * units).astype(int))
        least = min(cost[sources, list(order)].sum() for order in set(permutations(targets.tolist()))) / units
        assert (plan * cost).sum() == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize("size", [3, 6, 10])
def test_on_a_line_the_cheapest_plan_keeps_the_order(size: int) -> None:
    rng = np.random.default_rng(size)
    x, y = np.sort(rng.random(size)), np.sort(rng.random(size + 1))
    a, b = (rng.dirichlet(np.ones(n)) for n in (size, size + 1))
    plan = transport_plan(np.square(x[:, None] - y), a, b)
    edges = np.unique(np.concatenate([np.cumsum(a), np.cumsum(b)]))
    middles = (np.concatenate([[0], edges[:-1]]) + edges) / 2
    i = np.minimum(np.searchsorted(np.cumsum(a), middles), size - 1)
    j = np.minimum(np.searchsorted(np.cumsum(b), middles), size)
    expected = (np.diff(edges, prepend=0) * np.square(x[i] - y[j])).sum()
    assert (plan * np.square(x[:, None] - y)).sum() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("supply", "demand"), [([0.5, 0.5], [1.0]), ([1.0], [0.5, 0.4]), ([1.0], [0.2, 0.3, 0.5])])
def test_supply_and_demand_must_fit(supply: list[float], demand: list[float]) -> None:
    with pytest.raises(InputError, match="as much supply as demand"):
        transport_plan(np.ones((1, 2)), np.array(supply), np.array(demand))


def test_a_fit_finds_what_was_mixed() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(0, 1, (3000, 2)), rng.normal((20, 5), 2, (1000, 2))])
    found = fit_mixture(points, components=2, floor=1e-6)
    order = np.argsort(found.means[:, 0])
    np.testing.assert_allclose(found.weights[order], [0.75, 0.25], atol=1e-3)
    np.testing.assert_allclose(found.means[order], [[0, 0], [20, 5]], atol=0.2)
    np.testing.assert_allclose(found.covariances[order], [np.eye(2), 4 * np.eye(2)], atol=0.4)


def test_a_fit_of_one_component_is_mean_and_covariance() -> None:
    points = np.random.default_rng(1).normal(size=(50, 3))
    found = fit_mixture(points, components=1, floor=0.25)
    np.testing.assert_allclose(found.means[0], points.mean(axis=0))
    np.testing.assert_allclose(found.covariances[0], np.cov(points.T, bias=True) + 0.25 * np.eye(3))


@pytest.mark.parametrize("points", [np.zeros((1, 3)), np.full((40, 3), 7.0), np.arange(6.0).reshape(2, 3)])
def test_a_fit_of_next_to_nothing(points: np.ndarray) -> None:
    found = fit_mixture(points)
    assert found.weights.sum() == pytest.approx(1.0)
    assert np.isfinite(found.covariances).all()
    assert (found.weights @ found.means) == pytest.approx(points.mean(axis=0))


@pytest.mark.parametrize(
    ("points", "options"),
    [
        (np.zeros((0, 3)), {}),
        (np.zeros(3), {}),
        (np.zeros((4, 3)), {"components": 0}),
        (np.zeros((4, 3)), {"floor": 0}),
    ],
)
def test_a_fit_refuses(points: np.ndarray, options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="A mixture needs"):
        fit_mixture(points, **options)


def scene(shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a noisy scene with an object that is so many gray levels lighter."""
    mask = np.zeros((96, 96), bool)
    mask[30:70, 26:66] = True
    texture = np.random.default_rng(0).normal(100, 15, (96, 96, 3)) + shift * mask[..., None]
    return np.clip(texture, 0, 255).astype(np.uint8), mask


def test_the_farther_the_color_the_lower_the_score() -> None:
    scores = [gmm_ot_score(*scene(shift)) for shift in (0, 15, 40, 100)]
    assert [score.distance for score in scores] == sorted(score.distance for score in scores)
    assert scores[0].distance < 4  # the floor of two fits
    assert scores[3].distance == pytest.approx(36, abs=4)  # what ΔL* a hundred gray levels are here
    assert all(0 < score.score <= 1 and score.score == math.exp(-score.distance / 20) for score in scores)
    assert gmm_ot_score(*scene(40)) == scores[2]


def test_settings_say_all_that_was_chosen() -> None:
    found = gmm_ot_score(*scene(40), components=2, pixels=500, scale=10.0)
    assert {"components": 2, "pixels": 500, "scale": 10.0}.items() <= found.settings.items()
    assert found.score == math.exp(-found.distance / 10)


def test_no_background_is_no_score() -> None:
    found = gmm_ot_score(scene(0)[0], np.ones((96, 96), bool))
    assert math.isnan(found.score)
    assert found.reason == "the object fills the image"


@pytest.mark.parametrize("options", [{"components": 0}, {"pixels": 0}, {"scale": 0.0}, {"scale": math.inf}])
def test_options_are_checked(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="gmm-ot needs"):
        gmm_ot_score(*scene(0), **options)


def test_an_empty_mask_is_refused() -> None:
    with pytest.raises(ImageError, match="no object pixel"):
        gmm_ot_score(scene(0)[0], np.zeros((96, 96), bool))
