from __future__ import annotations

import numpy as np
import pytest

from crypsis.camouflage.agreement import Vote, agreement, judge
from crypsis.camouflage.seamcam import Proposals, seamcam_score
from crypsis.camouflage.threshold_sweep import sweep_scores, threshold_sweep
from crypsis.errors import InputError

ALPHAS, BETAS = (0.2, 0.5, 0.8), (0.1, 0.4)


def proposals_of(seed: int, count: int = 9) -> tuple[Proposals, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.random((8, 9)) < 0.4
    return Proposals(rng.random(count), rng.random(count), rng.random((count, 8, 9)) < 0.3), truth


@pytest.mark.parametrize("duplicate_iou", [None, 0.3])
def test_scores_of_a_sweep_are_those_of_each_combination(duplicate_iou: float | None) -> None:
    proposals, truth = proposals_of(0)
    found = sweep_scores(proposals, truth, tau_alphas=ALPHAS, tau_betas=BETAS, top_k=4, duplicate_iou=duplicate_iou)
    for (i, j, k), score in np.ndenumerate(found):
        options = {"tau_alpha": ALPHAS[i], "tau_beta": BETAS[j], "top_k": k + 1, "duplicate_iou": duplicate_iou}
        assert score == seamcam_score(proposals, truth, **options).score


def study(pairs: int, informative: tuple[int, int, int]) -> tuple[list[Vote], dict[str, np.ndarray]]:
    """Return votes, and scores that know the harder image at one combination and above its K, and toss elsewhere."""
    rng = np.random.default_rng(0)
    votes, scores = [], {}
    i, j, k = informative
    for number in range(pairs):
        easy, hard = f"{number:03d}a", f"{number:03d}b"
        for person in range(3):
            votes.append(Vote(f"p{person}", easy, hard, "right"))
        for name in (easy, hard):
            scores[name] = rng.random((len(ALPHAS), len(BETAS), 5))
        scores[hard][i, j, k:] = 1 + rng.random()
    return votes, scores


OPTIONS = {"tau_alphas": ALPHAS, "tau_betas": BETAS}


def test_finds_thresholds_and_leaves_the_tuning_pairs_out() -> None:
    votes, scores = study(80, (1, 0, 2))
    found = threshold_sweep(judge(votes), scores, **OPTIONS, pairs=30)
    assert (found.tau_alpha, found.tau_beta, found.top_k) == (0.5, 0.1, 3)
    assert found.accuracy.shape == (3, 2, 5)
    assert (found.accuracy[1, 0, 2:] == 1).all()
    tuned = set(found.tuning)
    assert len(tuned) == 30
    left = {(pair.first, pair.second) for pair in found.evaluation.pairs}
    assert not left & tuned
    assert len(left) == 50
    assert found.shared == 0
    # what it says of the tuning pairs is what agreement says of them
    judgments = judge(votes)
    keep = np.array([(pair.first, pair.second) in tuned for pair in judgments.pairs])
    at = {name: float(array[2, 1, 4]) for name, array in scores.items()}
    assert found.accuracy[2, 1, 4] == agreement(judgments.subset(keep), at, clusters=()).accuracy
    chosen = {name: float(array[1, 0, 2]) for name, array in scores.items()}
    assert agreement(found.evaluation, chosen, clusters=()).accuracy == 1.0


def test_the_seed_draws_the_pairs() -> None:
    votes, scores = study(40, (1, 0, 2))
    first, again, other = (
        threshold_sweep(judge(votes), scores, **OPTIONS, pairs=10, seed=seed).tuning for seed in (1, 1, 2)
    )
    assert first == again != other


def test_slack_takes_a_smaller_k() -> None:
    votes, scores = study(60, (0, 1, 3))
    judgments = judge(votes)
    by_k = threshold_sweep(judgments, scores, **OPTIONS, pairs=50).accuracy[0, 1]
    assert by_k[:3].max() < by_k[3] == 1
    cost = 1 - float(by_k[0])
    assert threshold_sweep(judgments, scores, **OPTIONS, pairs=50, slack=cost + 1e-9).top_k == 1
    assert threshold_sweep(judgments, scores, **OPTIONS, pairs=50, slack=0.0).top_k == 4


@pytest.mark.parametrize(("ties", "value"), [("half", 0.5), ("wrong", 0.0)])
def test_equal_scores_go_by_the_named_rule(ties: str, value: float) -> None:
    votes, scores = study(10, (0, 0, 0))
    level = {name: np.ones_like(array) for name, array in scores.items()}
    found = threshold_sweep(judge(votes), level, **OPTIONS, pairs=5, ties=ties)
    assert (found.accuracy == value).all()
    assert (found.tau_alpha, found.tau_beta, found.top_k) == (0.2, 0.1, 1)  # equally good: the lowest


def test_thresholds_that_decide_next_to_nothing_do_not_win() -> None:
    """Left out as ties, all pairs but two at one combination would make these two its whole agreement."""
    votes, scores = study(20, (1, 0, 0))
    for number, name in enumerate(scores):
        scores[name][2, 1] = number % 2 if number < 4 else 0.5
        scores[name][1, 0] = number % 2 if number < 36 else 1 - number % 2
    found = threshold_sweep(judge(votes), scores, **OPTIONS, pairs=19)
    assert (found.tau_alpha, found.tau_beta) == (0.5, 0.1)
    assert found.accuracy[2, 1, 0] < 0.6
    with pytest.raises(InputError, match="as half or wrong; got 'excluded'"):
        threshold_sweep(judge(votes), scores, **OPTIONS, pairs=5, ties="excluded")


def test_images_shared_with_the_tuning_pairs_are_counted_or_left_out() -> None:
    votes, scores = study(20, (1, 1, 0))
    for number in range(20):  # every image in a second pair
        votes += [Vote(f"p{p}", f"{number:03d}b", f"{(number + 1) % 20:03d}a", "left") for p in range(3)]
    judgments = judge(votes)
    found = threshold_sweep(judgments, scores, **OPTIONS, pairs=10)
    assert (found.evaluation.judged, found.shared > 0) == (30, True)
    apart = threshold_sweep(judgments, scores, **OPTIONS, pairs=10, disjoint_images=True)
    assert (apart.evaluation.judged, apart.shared) == (30 - found.shared, found.shared)
    with pytest.raises(InputError, match="Every pair shares an image with one of the 39 tuning pairs"):
        threshold_sweep(judgments, scores, **OPTIONS, pairs=39, disjoint_images=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": 20}, "leaves at least 1 of the 20"),
        ({"pairs": 0}, "at least 1 pair"),
        ({"slack": -0.1}, "slack"),
        ({"tau_alphas": (0.5, 0.2, 0.8)}, "tau_alphas are one or more ascending"),
        ({"tau_betas": ()}, "tau_betas are one or more ascending"),
        ({"tau_betas": (0.1, 0.2, 0.3)}, "shape \\(3, 3, K\\)"),
    ],
)
def test_options_are_checked(options: dict, message: str) -> None:
    votes, scores = study(20, (0, 0, 0))
    with pytest.raises(InputError, match=message):
        threshold_sweep(judge(votes), scores, **{**OPTIONS, "pairs": 5, **options})


def test_scores_must_be_there() -> None:
    with pytest.raises(InputError, match="got no scores"):
        threshold_sweep(judge(study(5, (0, 0, 0))[0]), {}, **OPTIONS)
