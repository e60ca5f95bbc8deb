"""Groups by difficulty, and rank correlations of resampled images."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.camouflage.difficulty import difficulty_groups, relative_ranks, resampled_spearman
from crypsis.camouflage.proportions import spearman
from crypsis.errors import InputError

levels = st.lists(st.integers(0, 6), min_size=12, max_size=60)


def named(values: list[float]) -> dict[str, float]:
    return {f"image-{i:02d}": value for i, value in enumerate(values)}


def test_ranks_share_their_place() -> None:
    assert relative_ranks([5, 1, 3, 3]).tolist() == [0.875, 0.125, 0.5, 0.5]
    assert relative_ranks([2, 2]).tolist() == [0.5, 0.5]
    assert relative_ranks([]).tolist() == []


@given(st.integers(2, 6), st.integers(0, 40), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_different_values_make_equal_groups(count: int, more: int, random: object) -> None:
    values = list(range(5 * count + more))
    random.shuffle(values)  # type: ignore[attr-defined]
    groups = difficulty_groups(named(values), count)
    sizes = [len(group.images) for group in groups]
    assert len(sizes) == count
    assert max(sizes) - min(sizes) <= 1
    assert [group.name for group in groups][:: count - 1] == ["Q1 easiest", f"Q{count} hardest"]


@given(levels, st.integers(2, 5))
@settings(deadline=None, max_examples=200)
def test_groups_part_all_images_and_no_equal_ones(values: list[int], count: int) -> None:
    difficulty = named(values)
    try:
        groups = difficulty_groups(difficulty, count, fewest=2)
    except InputError:
        return
    images = [image for group in groups for image in group.images]
    assert images == sorted(difficulty, key=lambda image: (difficulty[image], image))
    assert all(len(group.images) >= 2 for group in groups)
    assert all(before.high < after.low for before, after in pairwise(groups))
    assert [q for group in groups for q in range(group.first, group.last + 1)] == list(range(1, count + 1))
    assert all((g.low, g.high) == (difficulty[g.images[0]], difficulty[g.images[-1]]) for g in groups)


def test_quantiles_that_ties_empty_are_taken_together() -> None:
    """Half of the images have the highest score, as of an observer that finds nothing in them."""
    groups = difficulty_groups(named([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95] + [1.0] * 10), 4)
    assert [(g.name, len(g.images)) for g in groups] == [("Q1 easiest", 5), ("Q2", 5), ("Q3–4 hardest", 10)]
    first = difficulty_groups(named([0.0] * 10 + list(range(1, 11))), 4)
    assert [(g.name, len(g.images)) for g in first] == [("Q1–2 easiest", 10), ("Q3", 5), ("Q4 hardest", 5)]


@pytest.mark.parametrize(
    ("values", "count", "words"),
    [
        (list(range(19)), 4, "19 images with a score are too few for 4 groups of 5 or more; ask for 3 at most"),
        (list(range(9)), 4, "9 images with a score are too few for 4 groups of 5 or more; two groups need 10 images"),
        ([1.0] * 30, 4, "so equal that no two groups"),
        (list(range(9)), 1, "two or more; got 1"),
    ],
)
def test_groups_that_cannot_be(values: list[float], count: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        difficulty_groups(named(values), count)


@given(levels, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_resampled_correlations_are_those_of_the_rows_written_out(x: list[int], random: object) -> None:
    rng = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
    y = np.round(rng.normal(size=len(x)) + 0.3 * np.array(x), 1)
    counts = rng.integers(0, 4, (5, len(x)))
    expected = [spearman(np.repeat(x, row), np.repeat(y, row)).rho for row in counts]
    np.testing.assert_allclose(resampled_spearman(x, y.tolist(), counts), expected, atol=1e-12)


def test_a_correlation_of_nothing_is_not_a_number() -> None:
    assert np.isnan(resampled_spearman([], [], np.zeros((3, 0), int))).tolist() == [True] * 3
    assert resampled_spearman([1, 2], [1, 2], np.zeros((0, 2), int)).shape == (0,)
    many = np.ones((2000, 2000), np.uint16)
    assert resampled_spearman(range(2000), range(2000), many).tolist() == pytest.approx([1.0] * 2000)
