from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.camouflage.proportions import binomial_test, holm, mcnemar, spearman, wilson_interval
from crypsis.errors import InputError


@pytest.mark.parametrize(
    ("successes", "trials", "interval"),
    [
        # the paper's two headline shares on 2,290 pairs
        (1805, 2290, (0.770999824, 0.804454070)),
        (1234, 2290, (0.518399896, 0.559199190)),
        (0, 4, (0.0, 0.489890)),
        (4, 4, (0.510110, 1.0)),
    ],
)
def test_wilson(successes: int, trials: int, interval: tuple[float, float]) -> None:
    assert wilson_interval(successes, trials) == pytest.approx(interval, abs=1e-6)


@pytest.mark.parametrize(
    ("share", "some", "every"), [(0.55, 370, 385), (0.6, 91, 97), (0.65, 41, 43), (0.7, 21, 25), (0.79, 11, 12)]
)
def test_pairs_that_a_species_needs_to_be_above_chance(share: float, some: int, every: int) -> None:
    """`some` is the first number at which the nearest whole count suffices, `every` where the share itself does."""

    def above(successes: float, trials: int) -> bool:
        return wilson_interval(successes, trials)[0] > 0.5

    assert above(round(share * some), some)
    assert not above(share * some, some)
    assert above(share * every, every)
    assert not above(share * (every - 1), every - 1)


@settings(deadline=None, max_examples=80)
@given(st.integers(1, 500), st.floats(0, 1), st.floats(0.5, 0.99))
def test_wilson_holds_the_share_and_is_symmetric(trials: int, share: float, level: float) -> None:
    successes = round(share * trials)
    low, high = wilson_interval(successes, trials, level=level)
    assert 0 <= low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= high <= 1
    assert wilson_interval(trials - successes, trials, level=level) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize(
    ("arguments", "level"), [((1, 0), 0.95), ((-1, 3), 0.95), ((4, 3), 0.95), ((1, 3), 1.0), ((1, 3), 0.0)]
)
def test_wilson_refuses(arguments: tuple[int, int], level: float) -> None:
    with pytest.raises(InputError):
        wilson_interval(*arguments, level=level)


def test_mcnemar_of_the_papers_table() -> None:
    found = mcnemar(833, 259)
    assert found.statistic == pytest.approx(300.6675824, abs=1e-7)
    # the paper says p < 1e-67 of this statistic; it is so for the exact test alone
    assert found.p_corrected == pytest.approx(2.3568e-67, rel=1e-4)
    assert found.p_corrected > 1e-67
    assert math.erfc(math.sqrt((833 - 259) ** 2 / 1092 / 2)) == pytest.approx(1.39e-67, rel=5e-3)
    assert found.p_exact == pytest.approx(9.7146e-71, rel=1e-4)
    assert found.p == found.p_corrected
    assert pytest.approx(3.21622, abs=1e-5) == 833 / 259


@pytest.mark.parametrize(
    ("counts", "statistic", "exact"),
    [
        ((0, 0), 0.0, 1.0),
        ((5, 5), 0.0, 1.0),
        ((1, 0), 0.0, 1.0),
        ((6, 1), 16 / 7, 2 * 8 / 128),
        ((10, 0), 8.1, 2 / 1024),
    ],
)
def test_mcnemar_of_few(counts: tuple[int, int], statistic: float, exact: float) -> None:
    for b, c in (counts, counts[::-1]):
        found = mcnemar(b, c)
        assert found.statistic == pytest.approx(statistic)
        assert found.p == found.p_exact == pytest.approx(exact)


def test_the_exact_test_ends_where_chi_squared_is_good() -> None:
    assert mcnemar(16, 8).p == mcnemar(16, 8).p_exact
    assert mcnemar(16, 9).p == mcnemar(16, 9).p_corrected == pytest.approx(math.erfc(math.sqrt(36 / 25 / 2)))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 30), st.integers(0, 30))
def test_binomial_sums_the_tails(successes: int, more: int) -> None:
    trials = successes + more
    far = abs(2 * successes - trials)
    tails = sum(math.comb(trials, k) for k in range(trials + 1) if abs(2 * k - trials) >= far)
    assert binomial_test(successes, trials) == pytest.approx(tails / 2**trials)


def test_counts_below_zero_are_refused() -> None:
    with pytest.raises(InputError, match="0 or more"):
        mcnemar(-1, 3)
    with pytest.raises(InputError, match="0 to 3"):
        binomial_test(4, 3)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9, 0.6]) == [1.0, 1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("x", "y", "rho", "p"),
    [
        # values of scipy.stats.spearmanr 1.17.1
        ([1, 2, 3, 4, 5], [5, 6, 7, 8, 7], 0.8207826816681233, 0.08858700531354381),
        ([1, 2, 2, 3, 9, 4], [2, 1, 4, 3, 5, 5], 0.7941176470588236, 0.059217891308772586),
        ([3, 1, 2], [1, 3, 2], -1.0, 0.0),
    ],
)
def test_spearman(x: list[float], y: list[float], rho: float, p: float) -> None:
    found = spearman(x, y)
    assert (found.rho, found.p) == pytest.approx((rho, p), abs=1e-9)
    assert (found.count, found.reason) == (len(x), None)


@pytest.mark.parametrize(("target", "p"), [(-0.048, 0.0216), (0.011, 0.5988)])
def test_what_the_papers_two_correlations_amount_to(target: float, p: float) -> None:
    """Of 2,290 pairs, the one called a slight inversion is significant at 5% and the other is not."""
    n = 2290
    x = np.arange(n, dtype=np.float64)
    noise = np.random.default_rng(1).permutation(n).astype(np.float64)
    low, high = -1.0, 1.0
    for _ in range(60):  # a mixture of order and noise with the wanted ρ
        share = (low + high) / 2
        found = spearman(x, share * x + (1 - abs(share)) * noise)
        low, high = (share, high) if found.rho < target else (low, share)
    assert found.rho == pytest.approx(target, abs=2e-5)
    assert found.p == pytest.approx(p, abs=1e-3)


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [([1.0, 2, 3], [2.0, 2, 2], "constant"), ([1.0], [2.0], "fewer than two"), ([], [], "fewer than two")],
)
def test_spearman_of_nothing_has_a_reason(x: list[float], y: list[float], reason: str) -> None:
    found = spearman(x, y)
    assert math.isnan(found.rho)
    assert reason in found.reason


def test_spearman_of_two_pairs_has_no_p() -> None:
    found = spearman([1, 2], [4, 3])
    assert found.rho == -1.0
    assert math.isnan(found.p)


@pytest.mark.parametrize(("x", "y"), [([1.0, 2], [1.0]), ([1.0, math.nan], [1.0, 2])])
def test_spearman_refuses(x: list[float], y: list[float]) -> None:
    with pytest.raises(InputError, match="finite numbers"):
        spearman(x, y)
