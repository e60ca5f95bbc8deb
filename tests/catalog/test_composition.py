"""Chains of degradations."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
from natural_images import make_natural

from crypsis import apply_degradation
from crypsis.catalog import get_entry
from crypsis.catalog.composition import chain
from crypsis.errors import InputError, UnknownNameError

IMAGE = make_natural(31, 47)


def test_each_step_is_what_it_is_alone() -> None:
    result = chain(IMAGE, [("cod10k-c/rain", 2), ("cod10k-c/gaussian_noise", 4)], seed=5, image_key="a/b")
    expected = get_entry("cod10k-c/rain").degrade(IMAGE, 2, seed=5, image_key="a/b")
    expected = get_entry("cod10k-c/gaussian_noise").degrade(expected, 4, seed=5, image_key="a/b")
    assert np.array_equal(result, expected)


def test_order_matters_and_one_step_is_apply_degradation() -> None:
    steps = [("cod10k-c/gaussian_blur", 3), ("cod10k-c/gaussian_noise", 3)]
    assert (chain(IMAGE, steps, image_key="k") != chain(IMAGE, steps[::-1], image_key="k")).any()
    assert np.array_equal(chain(IMAGE, [("cod10k-c/fog", 3)]), apply_degradation(IMAGE, "cod10k-c/fog", severity=3))


def test_an_entry_that_occurs_again_draws_anew() -> None:
    noise = get_entry("cod10k-c/gaussian_noise")
    gray = np.full((64, 64, 3), 128, np.uint8)
    once = noise.degrade(gray, 1, seed=0, image_key="k")
    twice = chain(gray, [(noise, 1), (noise, 1)], image_key="k")
    first, second = once.astype(float) - 128, twice.astype(float) - once
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.05
    assert second.std() == pytest.approx(first.std(), rel=0.05)
    again = chain(gray, [(noise, 1), ("cod10k-c/brightness", 1), (noise, 1)], image_key="k")
    assert np.array_equal(again, chain(gray, [(noise, 1), ("cod10k-c/brightness", 1), (noise, 1)], image_key="k"))


def test_the_kind_of_image_is_kept() -> None:
    steps = [("cod10k-c/fog", 2), ("cod10k-c/gaussian_noise", 2)]
    picture = chain(PIL.Image.fromarray(IMAGE), steps, image_key="k")
    assert isinstance(picture, PIL.Image.Image)
    assert np.array_equal(np.asarray(picture), chain(IMAGE, steps, image_key="k"))
    gray = chain(IMAGE[..., 0], steps, image_key="k")
    assert gray.shape == (31, 47)


def test_without_a_key_it_comes_from_the_pixels() -> None:
    steps = [("cod10k-c/gaussian_noise", 3)] * 2
    assert np.array_equal(chain(IMAGE, steps), chain(IMAGE.copy(), steps))
    assert (chain(IMAGE, steps) != chain(IMAGE, steps, seed=1)).any()


def test_mistakes() -> None:
    with pytest.raises(InputError, match="at least one step"):
        chain(IMAGE, [])
    with pytest.raises(UnknownNameError, match="did you mean"):
        chain(IMAGE, [("cod10k-c/fogg", 1)])
    with pytest.raises(InputError, match="severities 1 to 5"):
        chain(IMAGE, [("cod10k-c/fog", 0)])
