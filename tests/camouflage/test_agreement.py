from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest

from crypsis.camouflage.agreement import Judgments, Vote, agreement, as_document, compare, judge
from crypsis.errors import InputError, UnknownNameError


def votes_for(first: str, second: str, a: int, b: int, **more: str) -> list[Vote]:
    """Return `a` votes for the first image and `b` for the second, of as many people, sides changing."""
    found = []
    for number in range(a + b):
        harder = first if number < a else second
        left, right = (first, second) if number % 2 else (second, first)
        found.append(Vote(f"p{number:02d}", left, right, "left" if left == harder else "right", **more))
    return found


def study(table: dict[tuple[int, int], int]) -> tuple[Judgments, dict[str, float], dict[str, float]]:
    """Return pairs of which (is the first score right, is the second) holds so many times, three votes each."""
    votes, scores = [], ({}, {})
    for outcome, count in table.items():
        for _ in range(count):
            name = f"{len(votes):06d}"
            votes += votes_for(name + "a", name + "b", 3, 0)
            for score, right in zip(scores, outcome, strict=True):
                score[name + "a"], score[name + "b"] = (1.0, 0.0) if right else (0.0, 1.0)
    return judge(votes), *scores


PAPER = {(1, 1): 969, (1, 0): 833, (0, 1): 259, (0, 0): 210}


def test_the_papers_paired_table() -> None:
    judgments, seamcam, other = study(PAPER)
    found = compare(judgments, seamcam, other, clusters=("pair",))
    assert (found.pairs, found.both, found.neither, found.undecided) == (2271, 969, 210, 0)
    assert (found.test.first_only, found.test.second_only) == (833, 259)
    # 54.07% of the main text is of these pairs; SeamCam's 79.35% on them is not reported
    assert found.second_accuracy == pytest.approx(1228 / 2271)
    assert round(100 * found.second_accuracy, 2) == 54.07
    assert round(100 * found.first_accuracy, 2) == 79.35
    assert found.difference == pytest.approx(574 / 2271)
    assert found.difference == pytest.approx(0.252752, abs=1e-6)
    assert found.bootstrap["pair"] == pytest.approx((0.2268, 0.2792), abs=1.5e-3)


@pytest.mark.parametrize(("right", "interval"), [(1805, (0.7716, 0.8048)), (1234, (0.5179, 0.5598))])
def test_the_papers_headline_shares(right: int, interval: tuple[float, float]) -> None:
    judgments, score, _ = study({(1, 1): right, (0, 0): 2290 - right})
    found = agreement(judgments, score, clusters=("pair",))
    assert (found.pairs, found.right, found.ties, found.missing) == (2290, right, 0, 0)
    assert found.bootstrap["pair"] == pytest.approx(interval, abs=1.5e-3)
    assert agreement(judgments, score, clusters=("pair",)) == found


@pytest.mark.parametrize(
    ("percent", "pairs", "attainable"),
    [
        ("78.82", 2290, True), ("78.82", 2390, False), ("78.82", 2271, True), ("53.89", 2290, True),
        ("53.89", 2390, True), ("53.89", 2271, False), ("54.07", 2271, True), ("54.07", 2290, False),
        ("54.07", 2390, False), ("77.48", 2290, False), ("79.69", 2290, True), ("79.17", 2290, True),
    ],
)  # fmt: skip
def test_which_of_the_papers_shares_its_numbers_of_pairs_can_give(percent: str, pairs: int, attainable: bool) -> None:
    assert attainable == any(f"{100 * right / pairs:.2f}" == percent for right in range(pairs + 1))


def test_majorities_ties_and_too_few() -> None:
    votes = [
        *votes_for("a", "b", 3, 1),
        *votes_for("c", "d", 2, 2),
        *votes_for("e", "f", 0, 2),
        *votes_for("h", "g", 1, 2),
    ]
    found = judge(votes)
    assert [(p.first, p.second, p.votes_first, p.votes_second) for p in found.pairs] == [
        ("a", "b", 3, 1), ("c", "d", 2, 2), ("e", "f", 0, 2), ("g", "h", 2, 1),
    ]  # fmt: skip
    assert found.harder.tolist() == [1, 0, 0, 1]
    assert (found.judged, found.tied, found.too_few, found.participants) == (2, 1, 1, 4)
    assert [pair.margin for pair in found.pairs] == [0.5, 0.0, 1.0, pytest.approx(1 / 3)]
    assert judge(votes, minimum_votes=2).harder.tolist() == [1, 0, -1, 1]


def test_those_who_fail_catch_trials_are_left_out() -> None:
    votes = votes_for("a", "b", 2, 2)
    votes += [
        Vote("p00", "x", "plain", "left", answer="left"),
        Vote("p00", "plain", "y", "left", answer="right"),
        Vote("p01", "x", "plain", None, answer="left"),
        Vote("p02", "x", "plain", "left", answer="left"),
    ]
    found = judge(votes)
    assert (found.failed, found.participants, found.unchecked, found.catch_trials) == (("p00", "p01"), 2, 1, 4)
    assert [(p.votes_first, p.votes_second) for p in found.pairs] == [(0, 2)]
    assert judge(votes, catch_share=0.5).failed == ("p01",)
    assert judge(votes, catch_share=0.0).failed == ()


def test_no_answer_and_a_second_answer_are_counted_and_not_used() -> None:
    votes = votes_for("a", "b", 3, 0)
    votes += [Vote("p00", "a", "b", "right"), Vote("p09", "a", "b", None)]
    found = judge(votes)
    assert (found.unanswered, found.repeated) == (1, 1)
    assert (found.pairs[0].votes_first, found.pairs[0].votes_second) == (3, 0)


def test_species_come_from_the_votes_or_from_both_images() -> None:
    votes = votes_for("a", "b", 3, 0, species="Owl") + votes_for("c", "d", 3, 0) + votes_for("e", "f", 3, 0)
    found = judge(votes, species={"a": "Cat", "b": "Cat", "c": "Frog", "d": "Frog", "e": "Frog", "f": "Toad"})
    assert [pair.species for pair in found.pairs] == ["Owl", "Frog", None]


TIED = [*votes_for("a", "b", 3, 0), *votes_for("c", "d", 3, 0), *votes_for("e", "f", 0, 3), *votes_for("g", "h", 3, 0)]
SCORES = {"a": 0.9, "b": 0.1, "c": 1.0, "d": 1.0, "e": 0.7, "f": 0.3, "g": 0.5, "h": math.nan}


@pytest.mark.parametrize(("ties", "pairs", "right"), [("half", 3, 1.5), ("wrong", 3, 1.0), ("excluded", 2, 1.0)])
def test_ties_of_a_score_go_by_the_named_rule(ties: str, pairs: int, right: float) -> None:
    found = agreement(judge(TIED), SCORES, ties=ties, samples=200)
    assert (found.pairs, found.right, found.accuracy) == (pairs, right, right / pairs)
    assert (found.ties, found.tie_rule, found.missing) == (1, ties, 1)


def test_a_tie_under_half_is_left_out_of_mcnemar_alone() -> None:
    other = {name: ord(name) / 200 for name in "abcdefgh"}  # wrong on a–b and c–d, right on e–f
    found = compare(judge(TIED), SCORES, other, samples=100)
    assert (found.pairs, found.undecided, found.both, found.neither) == (3, 1, 0, 0)
    assert (found.test.first_only, found.test.second_only) == (1, 1)
    assert found.difference == pytest.approx(1.5 / 3 - 1 / 3)
    wrong = compare(judge(TIED), SCORES, other, ties="wrong", samples=100)
    assert (wrong.undecided, wrong.neither) == (0, 1)


def test_per_species() -> None:
    votes, score = [], {}
    for species, right, wrong in (("Owl", 9, 1), ("Toad", 5, 5), ("Cat", 20, 0)):
        for number in range(right + wrong):
            name = f"{species}{number:02d}"
            votes += votes_for(name + "a", name + "b", 3, 0, species=species)
            score |= {name + "a": 1.0, name + "b": 0.0 if number < right else 2.0}
    found = agreement(judge(votes), score, samples=100).species
    assert [(row.species, row.pairs, row.accuracy) for row in found] == [
        ("Cat", 20, 1.0), ("Owl", 10, 0.9), ("Toad", 10, 0.5),
    ]  # fmt: skip
    assert [row.p for row in found] == pytest.approx([2 / 2**20, 22 / 1024, 1.0])
    assert [row.p_holm for row in found] == pytest.approx([6 / 2**20, 44 / 1024, 1.0])
    assert found[1].interval == pytest.approx((0.59585, 0.98212), abs=1e-5)


def test_gap_and_margin() -> None:
    votes, score = [], {}
    for number in range(6):  # the more people agree, the larger the gap
        name = f"{number}"
        votes += votes_for(name + "a", name + "b", 6 + number, 5 - number)
        score |= {name + "a": number / 10, name + "b": 0.0}
    found = agreement(judge(votes), score, samples=100).gap_and_margin
    assert (found.rho, found.count) == (1.0, 6)
    level = agreement(judge(TIED), SCORES, samples=100).gap_and_margin
    assert math.isnan(level.rho)
    assert level.reason == "one side is constant"


def test_a_bootstrap_of_participants_takes_majorities_anew() -> None:
    # everybody agrees: other people would say the same, other pairs would not be the same
    judgments, score, _ = study({(1, 1): 30, (0, 0): 10})
    found = agreement(judgments, score, samples=500)
    assert found.bootstrap["participant"] == (0.75, 0.75)
    low, high = found.bootstrap["pair"]
    assert low < 0.7
    assert high > 0.8
    # two against one: whose votes are drawn decides
    split = judge([vote for n in range(20) for vote in votes_for(f"{n:02d}a", f"{n:02d}b", 2, 1)])
    close = agreement(split, {f"{n:02d}{side}": float(side == "a") for n in range(20) for side in "ab"}, samples=500)
    assert close.accuracy == 1.0
    # 7 of 27 draws of three people have the third at least twice: majorities fall, and the limits rise by as much
    assert close.bootstrap["participant"] == (pytest.approx(7 / 27, abs=0.06), 1.0)


def test_a_bootstrap_of_images_knows_that_one_image_decides_many_pairs() -> None:
    rng = np.random.default_rng(0)
    hub = [vote for n in range(60) for vote in votes_for(f"{n:02d}", "hub", 3, 0)]
    score = {f"{n:02d}": rng.random() for n in range(60)} | {"hub": 0.4}
    widths = {by: high - low for by, (low, high) in agreement(judge(hub), score, samples=4000).bootstrap.items()}
    # the hub's own draw scales all pairs alike, so the spread is that of sixty images
    assert widths["image"] == pytest.approx(widths["pair"], rel=0.15)
    apart, right, _ = study({(1, 1): 150, (0, 0): 50})
    lone = {by: high - low for by, (low, high) in agreement(apart, right, samples=4000).bootstrap.items()}
    assert lone["image"] / lone["pair"] == pytest.approx(math.sqrt(3), rel=0.1)


def test_a_bootstrap_agrees_with_its_own_definition() -> None:
    """Intervals over participants, against drawing votes and judging them again."""
    rng = np.random.default_rng(4)
    votes = []
    for pair in range(25):
        for person in range(9):
            side = "left" if rng.random() < 0.35 + 0.02 * pair else "right"
            votes.append(Vote(f"{person}", f"{pair:02d}a", f"{pair:02d}b", side))
    score = {f"{pair:02d}{side}": float(side == "a") for pair in range(25) for side in "ab"}
    accuracies = []
    for _ in range(400):
        again = [
            Vote(f"{copy}", vote.left, vote.right, vote.choice)
            for copy, person in enumerate(rng.integers(0, 9, 9).tolist())
            for vote in votes
            if vote.participant == f"{person}"
        ]
        accuracies.append(agreement(judge(again), score, clusters=()).accuracy)
    found = agreement(judge(votes), score, clusters=("participant",), samples=4000).bootstrap["participant"]
    value = agreement(judge(votes), score, clusters=()).accuracy
    expected = np.quantile(accuracies, (0.025, 0.975)) + value - np.mean(accuracies)
    assert found == pytest.approx(expected, abs=0.05)


def test_wider_levels_and_the_seed() -> None:
    judgments, score, other = study({(1, 1): 20, (1, 0): 20, (0, 1): 9, (0, 0): 11})
    widths = []
    for level in (0.5, 0.8, 0.95, 0.99):
        found = compare(judgments, score, other, level=level, clusters=("pair",), samples=2000)
        low, high = found.bootstrap["pair"]
        widths.append(high - low)
    assert all(a < b for a, b in pairwise(widths))
    first, again, another = (agreement(judgments, score, samples=300, seed=seed).bootstrap for seed in (1, 1, 2))
    assert first == again != another


def test_any_monotone_change_of_a_score_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    judgments, score, _ = study({(1, 1): 12, (0, 0): 8})
    score = {name: value + rng.random() / 2 for name, value in score.items()}
    changed = {name: math.exp(5 * value) for name, value in score.items()}
    a, b = (agreement(judgments, values, samples=200) for values in (score, changed))
    assert (a.right, a.bootstrap) == (b.right, b.bootstrap)


def test_a_subset_is_what_its_votes_alone_would_give() -> None:
    keep = np.array([True, False, True, False])
    part, alone = judge(TIED).subset(keep), judge(TIED[:3] + TIED[6:9])
    assert (part.pairs, part.harder.tolist()) == (alone.pairs, alone.harder.tolist())
    assert sorted(part.ballots.tolist()) == sorted(alone.ballots.tolist())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"ties": "hlaf"}, UnknownNameError, "did you mean 'half'"),
        ({"clusters": ("pairs",)}, UnknownNameError, "did you mean 'pair'"),
        ({"level": 1.0}, InputError, "between 0 and 1"),
        ({"samples": 0}, InputError, "at least one sample"),
    ],
)
def test_options_are_checked(options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        agreement(judge(TIED), SCORES, **options)
    with pytest.raises(error, match=message):
        compare(judge(TIED), SCORES, SCORES, **options)


@pytest.mark.parametrize("options", [{"minimum_votes": 0}, {"catch_share": 1.1}])
def test_judging_options_are_checked(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="A majority needs"):
        judge(TIED, **options)


def test_nothing_to_count_says_why() -> None:
    with pytest.raises(InputError, match=r"4 voted on, 4 have a majority; 8 images .* such as 'a'"):
        agreement(judge(TIED), {"a.jpg": 1.0})
    with pytest.raises(InputError, match=r"1 voted on, 0 have a majority\."):
        agreement(judge(votes_for("a", "b", 1, 1)), SCORES)
    with pytest.raises(InputError, match="0 voted on"):
        compare(judge([]), SCORES, SCORES)


def test_a_document_has_none_where_a_number_is_not_defined() -> None:
    found = agreement(judge([Vote(who, "a", "b", "left") for who in "pqr"]), {"a": 2.0, "b": 1.0}, samples=20)
    document = as_document(found)
    assert (document["accuracy"], document["pairs"], document["gap_and_margin"]["rho"]) == (1.0, 1, None)
    assert document["gap_and_margin"]["reason"] == "fewer than two pairs"
    assert json.loads(json.dumps(document, allow_nan=False))["bootstrap"]["pair"] == [1.0, 1.0]
