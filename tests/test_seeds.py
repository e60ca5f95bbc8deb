from __future__ import annotations

import json
import random
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.seeds import content_key, rng_for


def draw(seed: int = 0, key: str = "a/b", entry: str = "cod10k-c/rain") -> list[int]:
    return rng_for(seed, key, entry).integers(0, 2**63, size=4).tolist()


def test_same_names_same_numbers_here_and_in_a_fresh_process() -> None:
    draws = "s.rng_for(0, 'a/b', 'cod10k-c/rain').integers(0, 2**63, size=4).tolist()"
    code = f"import json, crypsis.seeds as s; print(json.dumps({draws}))"
    fresh = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert draw() == json.loads(fresh)


def test_the_numbers_are_pinned() -> None:
    # made by rng_for itself, 2026-11-30: a change here changes every published run
    assert draw() == PINNED


PINNED = [7248497704415519417, 8713539938636930475, 3419211430918686555, 1806419203051032746]


@pytest.mark.parametrize("other", [{"seed": 1}, {"seed": -1}, {"key": "a/c"}, {"key": ""}, {"entry": "cod10k-c/fog"}])
def test_any_other_name_gives_other_numbers(other: dict[str, object]) -> None:
    assert draw(**other) != draw()  # type: ignore[arg-type]


def test_names_do_not_run_together() -> None:
    assert draw(1, "2x", "y") != draw(12, "x", "y")
    assert draw(1, "x", "yz") != draw(1, "xy", "z")


def test_composed_and_decomposed_names_are_one_key() -> None:
    name = "é/ü"
    assert draw(key=unicodedata.normalize("NFD", name)) == draw(key=unicodedata.normalize("NFC", name))


def test_no_global_state_is_read_or_written() -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the state that must not matter
    before, first = random.getstate(), draw()
    numpy_before = np.random.get_state()[1].copy()  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert draw() == first
    np.random.seed(1)  # noqa: NPY002
    assert random.getstate() == before
    assert (np.random.get_state()[1] == numpy_before).all()  # noqa: NPY002


@settings(deadline=None, max_examples=50)
@given(st.integers(), st.text(st.characters()), st.text(st.characters()))
def test_any_text_is_a_name(seed: int, key: str, entry: str) -> None:
    assert draw(seed, key, entry) == draw(seed, key, entry)


def test_content_key() -> None:
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert content_key(image) == content_key(image.copy())
    assert content_key(image) == content_key(np.asfortranarray(image))
    assert content_key(image) != content_key(image.reshape(4, 2, 3))
    assert content_key(image) != content_key(image + np.uint8(1))
