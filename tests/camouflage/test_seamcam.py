from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crypsis.camouflage import seamcam
from crypsis.camouflage.seamcam import (
    Proposals,
    SeamCamScore,
    seamcam_score,
    select_proposals,
    subset_counts,
)
from crypsis.errors import ImageError, InputError

SHAPE = (4, 6)
TRUTH = np.zeros(SHAPE, bool)
TRUTH[1:3] = True  # twelve pixels: columns 0..5 of two rows


def columns(*chosen: int) -> np.ndarray:
    """Return the truth's pixels in some columns."""
    mask = np.zeros(SHAPE, bool)
    mask[1:3, list(chosen)] = True
    return mask


def proposed(*masks: np.ndarray, alpha: float = 1.0, beta: list[float] | None = None) -> Proposals:
    count = len(masks)
    return Proposals(
        np.full(count, alpha),
        np.linspace(0.9, 0.2, count) if beta is None else np.array(beta),
        np.array(masks, bool).reshape(count, *SHAPE),
    )


def by_force(masks: np.ndarray, truth: np.ndarray) -> dict[tuple[int, ...], tuple[int, int]]:
    """Return intersection and union of every non-empty subset, each built from its masks."""
    found = {}
    for size in range(1, len(masks) + 1):
        for subset in combinations(range(len(masks)), size):
            united = np.logical_or.reduce(masks[list(subset)])
            found[subset] = (int((united & truth).sum()), int((united | truth).sum()))
    return found


def test_two_halves_are_one_animal() -> None:
    found = seamcam_score(proposed(columns(0, 1, 2), columns(3, 4, 5)), TRUTH)
    assert found == SeamCamScore(
        score=0.0, detectability=1.0, kept=(0, 1), best=(0, 1), gains=(0.5, 0.5),
        by_top_k=(0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), intersection=12, union=12, proposals=2, passed=2, reason=None,
    )  # fmt: skip


def test_what_is_beside_the_animal_is_left_out() -> None:
    aside = ~TRUTH
    found = seamcam_score(proposed(aside, columns(0, 1, 2), aside | TRUTH), TRUTH, top_k=3)
    # half the animal and everything both have an IoU of one half: the one proposal of the higher confidence wins
    assert (found.detectability, found.best, found.gains) == (0.5, (1,), (0.0, 0.0, 0.0))
    assert found.by_top_k == (0.0, 0.5, 0.5)


def test_ranks_by_confidence_and_names_what_was_given() -> None:
    found = seamcam_score(proposed(columns(0), columns(1, 2), columns(3, 4, 5), beta=[0.3, 0.9, 0.5]), TRUTH, top_k=2)
    assert found.kept == (1, 2)
    assert found.best == (1, 2)
    assert found.detectability == 10 / 12
    assert found.by_top_k == (4 / 12, 10 / 12)
    assert found.gains == (pytest.approx(4 / 12), pytest.approx(6 / 12))
    assert (found.proposals, found.passed) == (3, 3)


@pytest.mark.parametrize(
    ("proposals", "reason"),
    [
        (proposed(), "no proposals"),
        (proposed(TRUTH, TRUTH, alpha=0.49), "none of 2 proposals passes α ≥ 0.5 and β ≥ 0.1"),
        (proposed(TRUTH, beta=[0.09]), "none of 1 proposals passes α ≥ 0.5 and β ≥ 0.1"),
        (proposed(columns(), columns()), "no proposal's mask overlaps the object"),
        (proposed(~TRUTH), "no proposal's mask overlaps the object"),
    ],
)
def test_nothing_found_is_a_score_of_one_with_its_reason(proposals: Proposals, reason: str) -> None:
    found = seamcam_score(proposals, TRUTH)
    assert (found.score, found.detectability, found.best, found.reason) == (1.0, 0.0, (), reason)
    assert (found.intersection, found.union) == (0, 12)
    assert found.by_top_k == (0.0,) * 7
    assert set(found.gains) <= {0.0}


def test_gates_let_their_own_threshold_pass() -> None:
    for dtype in (np.float32, np.float64):
        at = np.array([0.7, 0.7, 0.69], dtype), np.array([0.1, 0.09, 0.3], dtype)
        assert select_proposals(*at, tau_alpha=0.7, tau_beta=0.1).tolist() == [0]
    assert select_proposals(np.ones(4), np.array([0.2, 0.5, 0.2, 0.5]), top_k=3).tolist() == [1, 3, 0]


def test_a_confidence_gate_below_the_name_gate_is_inert_where_alpha_is_never_above_beta() -> None:
    beta = np.random.default_rng(0).random(200)
    alpha = beta * np.random.default_rng(1).random(200)
    gated = [select_proposals(alpha, beta, tau_alpha=0.5, tau_beta=tau).tolist() for tau in (0.0, 0.1, 0.5)]
    assert gated[0] == gated[1] == gated[2]


def test_seven_copies_crowd_out_the_other_part_unless_duplicates_are_removed() -> None:
    four, two = columns(0, 1, 2, 3), columns(4, 5)
    proposals = proposed(*[four] * 7, two)
    crowded = seamcam_score(proposals, TRUTH)
    assert (round(crowded.detectability, 3), crowded.kept) == (0.667, tuple(range(7)))
    cleared = seamcam_score(proposals, TRUTH, duplicate_iou=1.0)
    assert (cleared.detectability, cleared.kept, cleared.passed) == (1.0, (0, 7), 2)


def test_near_duplicates_go_by_their_overlap() -> None:
    proposals = proposed(columns(0, 1, 2), columns(0, 1), columns(3), columns(), columns())
    # IoU of the first two: 2/3
    for least, kept in ((1.0, (0, 1, 2, 3)), (0.67, (0, 1, 2, 3)), (0.66, (0, 2, 3))):
        assert seamcam_score(proposals, TRUTH, duplicate_iou=least).kept == kept


MASKS = arrays(bool, st.tuples(st.integers(0, 6), st.just(3), st.just(5)))
OBJECT = arrays(bool, (3, 5)).filter(np.any)


@settings(deadline=None, max_examples=150)
@given(MASKS, OBJECT)
def test_equals_enumeration(masks: np.ndarray, truth: np.ndarray) -> None:
    expected = by_force(masks, truth)
    inside, union = subset_counts(list(masks), truth)
    assert (inside[0], union[0]) == (0, truth.sum())
    for subset, counts in expected.items():
        code = sum(1 << i for i in subset)
        assert (inside[code], union[code]) == counts

    found = seamcam_score(Proposals(np.ones(len(masks)), np.ones(len(masks)), masks), truth)
    ratios = {subset: a / b for subset, (a, b) in expected.items()}
    assert found.detectability == max(ratios.values(), default=0.0)
    for i, gain in enumerate(found.gains):
        rest = max((ratio for subset, ratio in ratios.items() if i not in subset), default=0.0)
        assert gain == found.detectability - rest
    if found.detectability:
        smallest = min((s for s, r in ratios.items() if r == found.detectability), key=lambda s: (len(s), s[::-1]))
        assert found.best == smallest
        assert expected[found.best] == (found.intersection, found.union)


@settings(deadline=None, max_examples=100)
@given(MASKS.filter(len), OBJECT, st.randoms(use_true_random=False))
def test_order_and_copies_change_nothing(masks: np.ndarray, truth: np.ndarray, random: object) -> None:
    def detectability(chosen: np.ndarray) -> float:
        return seamcam_score(
            Proposals(np.ones(len(chosen)), np.ones(len(chosen)), chosen), truth, top_k=14
        ).detectability

    drawn = [random.randrange(len(masks)) for _ in range(6)]
    order = list(range(len(masks))) + drawn
    random.shuffle(order)
    assert detectability(masks[order]) == detectability(masks)


@settings(deadline=None, max_examples=100)
@given(MASKS.filter(len), OBJECT, st.data())
def test_never_falls_with_k_and_is_no_less_than_any_single_mask(masks: np.ndarray, truth: np.ndarray, data) -> None:
    beta = data.draw(arrays(np.float32, len(masks), elements=st.floats(0, 1, width=16)))
    proposals = Proposals(np.ones(len(masks)), beta, masks)
    every = seamcam_score(proposals, truth, tau_beta=0.0, top_k=8)
    assert list(every.by_top_k) == sorted(every.by_top_k)
    for k in range(1, 9):
        alone = seamcam_score(proposals, truth, tau_beta=0.0, top_k=k)
        assert alone.detectability == every.by_top_k[k - 1] == alone.by_top_k[-1]
    single = [(mask & truth).sum() / (mask | truth).sum() for mask in masks]
    assert every.detectability >= max(single)


@pytest.mark.parametrize("count", [7, 8, 15, 16, 20])
def test_every_width_of_code(count: int) -> None:
    rng = np.random.default_rng(count)
    masks, truth = rng.random((count, 9, 11)) < 0.15, rng.random((9, 11)) < 0.5
    inside, union = subset_counts(list(masks), truth)
    assert len(inside) == 2**count
    for code in [0, 1, 2**count - 1, *rng.integers(0, 2**count, 60).tolist()]:
        united = np.zeros_like(truth)
        for i in range(count):
            if code >> i & 1:
                united |= masks[i]
        assert (inside[code], union[code]) == ((united & truth).sum(), (united | truth).sum())
    found = seamcam_score(Proposals(np.ones(count), np.ones(count), masks), truth, top_k=count)
    assert found.detectability == (inside / union).max()


def test_fractions_that_round_to_one_number_are_told_apart() -> None:
    n = 100_000_009
    assert (n - 1) / n == n / (n + 1)
    inside, union = np.array([0, n - 1, n, n]), np.array([5, n, n + 1, n + 1])
    assert seamcam._best_subset(inside, union, inside / union) == 2


def test_an_empty_truth_is_refused() -> None:
    with pytest.raises(ImageError, match="no object pixel"):
        seamcam_score(proposed(TRUTH), np.zeros(SHAPE, bool))


@pytest.mark.parametrize("truth", [TRUTH.T, TRUTH.reshape(2, 12), TRUTH[:3]])
def test_another_shape_is_refused_also_one_of_as_many_pixels(truth: np.ndarray) -> None:
    with pytest.raises(ImageError, match="none is resized"):
        seamcam_score(proposed(TRUTH), truth)


@pytest.mark.parametrize("truth", [TRUTH.astype(np.uint8) * 255, TRUTH[None], TRUTH.tolist()])
def test_a_truth_that_is_no_mask_is_refused(truth: object) -> None:
    with pytest.raises(ImageError, match="bool array"):
        seamcam_score(proposed(TRUTH), truth)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 21}, "1 to 20.*got 21"),
        ({"top_k": 0}, "got 0"),
        ({"tau_alpha": 1.5}, "tau_alpha.*1.5"),
        ({"tau_beta": float("nan")}, "tau_beta.*nan"),
        ({"duplicate_iou": 0.0}, "duplicate_iou"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        seamcam_score(proposed(TRUTH), TRUTH, **options)


ONE = np.ones(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ONE, ONE, TRUTH[None].astype(np.uint8)), "gray >= 128"),
        ((ONE, ONE, TRUTH), "shape \\(1, height, width\\)"),
        ((ONE, ONE, np.stack([TRUTH, TRUTH])), "shape \\(1, height, width\\)"),
        ((ONE, np.ones(2), TRUTH[None]), "equally long"),
        ((np.ones(1, int), ONE, TRUTH[None]), "rows of float"),
        ((ONE, np.array([np.nan]), TRUTH[None]), "β lies in"),
        ((ONE * 1.1, ONE, TRUTH[None]), "α lies in"),
        ((ONE, ONE, TRUTH[None], np.zeros((1, 5))), "boxes of 1"),
    ],
)
def test_proposals_that_do_not_belong_together_are_refused(arguments: tuple[np.ndarray, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Proposals(*arguments)
