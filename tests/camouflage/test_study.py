from __future__ import annotations

from collections import Counter
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.camouflage.agreement import Vote
from crypsis.camouflage.study import Study, cut_out, plan_study, votes_csv
from crypsis.camouflage.vote_files import read_votes
from crypsis.errors import ImageError, InputError

IMAGES = {f"{species}-{i}": species for species in ("owl", "frog") for i in range(5)}


def counted(study: Study) -> list[Vote]:
    return [vote for vote in study.votes if vote.answer is None]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.booleans(), st.integers(0, 5))
def test_all_pairs_that_can_be_made_come_once(sizes: list[int], within: bool, seed: int) -> None:
    images = {f"{s}-{i}": f"species {s}" for s, size in enumerate(sizes) for i in range(size)}
    possible = sum(comb(size, 2) for size in sizes) if within else comb(len(images), 2)
    if not possible:
        return
    options = {"within_species": within, "catch_share": 0, "seed": seed}
    pairs = plan_study(images, pairs=possible, **options).pairs
    assert len(set(pairs)) == possible
    assert all(first < second for first, second in pairs)
    if within:
        assert all(images[first] == images[second] for first, second in pairs)
    with pytest.raises(InputError, match=f"make {possible} pairs"):
        plan_study(images, pairs=possible + 1, **options)


@pytest.mark.parametrize("pairs", [5, 12, 20])
def test_images_are_compared_equally_often(pairs: int) -> None:
    found = plan_study(IMAGES, pairs=pairs, catch_share=0).pairs
    uses = Counter(name for pair in found for name in pair)
    assert len(uses) == 10
    assert max(uses.values()) - min(uses.values()) <= 1


def test_each_pair_has_three_votes_and_no_list_repeats_one() -> None:
    study = plan_study(IMAGES, pairs=17, per_participant=5, obvious=["plain"])
    assert len(study.lists) == 3 * 4
    votes = Counter(frozenset((vote.left, vote.right)) for vote in counted(study))
    assert set(votes) == {frozenset(pair) for pair in study.pairs}
    assert min(votes.values()) >= 3
    assert max(votes.values()) - min(votes.values()) <= 1
    for number, trials in enumerate(study.lists, 1):
        assert {vote.participant for vote in trials} == {str(number)}
        assert len({frozenset((v.left, v.right)) for v in trials if v.answer is None}) == 5
        assert sum(vote.answer is not None for vote in trials) == 1


def test_sides_and_order_are_drawn_for_each_list() -> None:
    study = plan_study(IMAGES, pairs=40, participants=25, obvious=["plain"], catch_share=0.25)
    assert len({tuple(frozenset((v.left, v.right)) for v in trials) for trials in study.lists}) == 25
    votes = counted(study)
    left = sum(vote.left < vote.right for vote in votes)
    assert abs(left / len(votes) - 0.5) < 0.07  # 1000 tosses: over four standard deviations
    answers = Counter(vote.answer for vote in study.votes if vote.answer)
    assert sum(answers.values()) == 25 * 10
    assert min(answers.values()) > 90
    firsts = {trials[0].answer for trials in study.lists}
    assert None in firsts


def test_the_right_answer_of_a_catch_trial_is_the_hidden_animal() -> None:
    study = plan_study(IMAGES, pairs=30, obvious=["plain"], hidden=["owl-1", "owl-2"], catch_share=0.5)
    catches = [vote for vote in study.votes if vote.answer]
    assert catches
    for vote in catches:
        assert getattr(vote, vote.answer or "") in ("owl-1", "owl-2")
        assert {vote.left, vote.right} & {"plain"}
        assert vote.species is None
    assert "plain" in study.images


def test_the_same_seed_gives_the_same_and_more_participants_only_add() -> None:
    options = {"pairs": 20, "per_participant": 8, "obvious": [f"plain {i}" for i in range(40)]}
    first = plan_study(IMAGES, **options, participants=6, seed=1)
    assert first == plan_study(dict(reversed(IMAGES.items())), **options, participants=6, seed=1)
    assert plan_study(IMAGES, **options, participants=9, seed=1).lists[:6] == first.lists
    assert plan_study(IMAGES, **options, participants=6, seed=2).pairs != first.pairs
    assert sum(name.startswith("plain") for name in first.images) <= 12


def test_species_stands_where_both_have_it() -> None:
    study = plan_study({"a": "owl", "b": "owl", "c": "frog", "d": None}, pairs=6, catch_share=0)
    for vote in study.votes:
        assert vote.species == ("owl" if {vote.left, vote.right} == {"a", "b"} else None)
    assert plan_study({"a": "owl", "b": "owl", "c": None, "d": None}, pairs=1, catch_share=0, within_species=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": 0}, "at least 1 pair"),
        ({"pairs": 4, "per_participant": 5}, "from 1 to all"),
        ({"pairs": 4, "per_participant": 0}, "from 1 to all"),
        ({"pairs": 4, "catch_share": 1.5}, "share of catch trials"),
        ({"pairs": 4, "participants": 0}, "at least 1 participant"),
        ({"pairs": 4, "obvious": []}, "nobody can miss; name some"),
        ({"pairs": 4, "obvious": ["owl-1"]}, "'owl-1' is named as obvious and is also"),
        ({"pairs": 4, "hidden": []}, "need hidden animals"),
        ({"pairs": 21, "within_species": True}, "make 20 pairs of one species and no more; got 21"),
    ],
)
def test_what_cannot_be_a_study(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_study(IMAGES, **{"obvious": ["plain"], **options})


def test_lists_are_read_as_votes(tmp_path: Path) -> None:
    study = plan_study({'a,"b"': "Owl, tawny", "c\nd": "Owl, tawny", "é": None}, pairs=3, obvious=["plain"])
    (tmp_path / "lists.csv").write_text(votes_csv(study.votes), "utf-8", newline="")
    assert read_votes(tmp_path / "lists.csv") == tuple(study.votes)


@pytest.mark.parametrize(("animal", "around"), [(30, 255), (220, 0)])
def test_a_cut_out_is_the_animal_on_what_is_further_away(animal: int, around: int) -> None:
    image = np.full((4, 6, 3), animal, np.uint8)
    image[0] = 99
    mask = np.zeros((4, 6), bool)
    mask[1:3, 2:4] = True
    found = cut_out(image, mask)
    assert found.dtype == np.uint8
    assert (found[mask] == animal).all()
    assert (found[~mask] == around).all()
    assert (cut_out(image, np.zeros((4, 6), bool)) == 0).all()


def test_a_cut_out_needs_a_mask_of_its_size() -> None:
    with pytest.raises(InputError, match="must agree"):
        cut_out(np.zeros((4, 6, 3), np.uint8), np.zeros((6, 4), bool))
    with pytest.raises(ImageError):
        cut_out(np.zeros((4, 6), np.uint8), np.zeros((4, 6), bool))
