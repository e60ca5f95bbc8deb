"""The order of images from easy to hard, and their weights."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.camouflage.curriculum import curriculum_csv, make_curriculum
from crypsis.camouflage.vote_files import read_scores
from crypsis.errors import InputError


def test_order_and_weights() -> None:
    found = make_curriculum({"b": 0.7, "a": 0.7, "c": 0.1, "d": 0.9}, strength=2)
    assert found.images == ("c", "a", "b", "d")
    assert found.difficulty == (0.1, 0.7, 0.7, 0.9)
    assert found.weights == (1.25 / 2, 2 / 2, 2 / 2, 2.75 / 2)
    assert make_curriculum({"a": 1, "b": 2}, strength=0).weights == (1, 1)


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=50), st.floats(0, 50))
@settings(deadline=None, max_examples=100)
def test_weights_have_mean_1_and_rise(values: list[int], strength: float) -> None:
    if len(set(values)) == 1:
        return
    found = make_curriculum({str(i): value for i, value in enumerate(values)}, strength=strength)
    assert math.fsum(found.weights) / len(values) == pytest.approx(1)
    assert list(found.weights) == sorted(found.weights)
    assert found.weights[-1] / found.weights[0] <= 1 + strength + 1e-9
    assert len(set(zip(found.difficulty, found.weights, strict=True))) == len(set(values)), "equal ones weigh alike"


@pytest.mark.parametrize(
    ("difficulty", "strength", "words"),
    [
        ({}, 1, "no image"),
        ({"a": 1.0, "b": math.nan}, 1, "1 of 2 images have no finite score, such as b"),
        ({"a": 1.0, "b": math.inf}, 1, "such as b"),
        ({"a": 1.0, "b": 1.0}, 1, "All 2 images have the same score"),
        ({"a": 1.0, "b": 2.0}, -0.5, "0 or more; got -0.5"),
        ({"a": 1.0, "b": 2.0}, math.nan, "0 or more; got nan"),
        ({"a": 1.0, "b": 2.0}, math.inf, "0 or more; got inf"),
    ],
)
def test_what_cannot_be_ordered(difficulty: dict[str, float], strength: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_curriculum(difficulty, strength=strength)


def test_the_file_holds_every_digit(tmp_path: Path) -> None:
    found = make_curriculum({"folder/frog, green": 1 / 3, "owl": 0.1})
    path = tmp_path / "curriculum.csv"
    path.write_text(curriculum_csv(found, "seamcam"), "utf-8")
    assert path.read_text("utf-8").splitlines()[0] == "image,seamcam,rank,weight"
    columns = read_scores(path).scores
    assert columns["seamcam"] == {"owl": 0.1, "folder/frog, green": 1 / 3}
    assert columns["rank"] == {"owl": 1, "folder/frog, green": 2}
    assert columns["weight"] == dict(zip(found.images, found.weights, strict=True))
    with pytest.raises(InputError, match="cannot be called rank"):
        curriculum_csv(found, "rank")
