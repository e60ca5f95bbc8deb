from __future__ import annotations

from fractions import Fraction

import numpy as np
import PIL.Image
import PIL.ImageEnhance
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.degradations import brightness, contrast, linear, white_veil
from crypsis.errors import InputError

RAMP = np.arange(256, dtype=np.uint8)
FACTORS = ("0.85", "0.7", "0.55", "0.4", "0.3")


def half_up(scale: Fraction, offset: Fraction) -> list[int]:
    """The 256 levels in exact arithmetic."""
    return [min(255, max(0, (scale * x + offset + Fraction(1, 2)).__floor__())) for x in range(256)]


def ramp_of(length: int) -> np.ndarray:
    """Every level, in an image whose rows end at every place of a vector register."""
    return np.resize(RAMP, 256 * length * 3).reshape(256, length, 3)


@pytest.mark.parametrize("factor", [*FACTORS, "0", "1", "1.5", "0.1234", "3.999"])
@pytest.mark.parametrize("length", [1, 5, 16, 33])
def test_brightness_is_exact(factor: str, length: int) -> None:
    image = ramp_of(length)
    expected = np.array(half_up(Fraction(factor), Fraction(0)))[image]
    assert np.array_equal(brightness(image, factor=float(factor)), expected)


@pytest.mark.parametrize("alpha", ["0.12", "0.2", "0.28", "0.36", "0.44", "0", "1"])
@pytest.mark.parametrize("length", [1, 5, 16, 33])
def test_white_veil_is_exact(alpha: str, length: int) -> None:
    image = ramp_of(length)
    expected = np.array(half_up(1 - Fraction(alpha), 255 * Fraction(alpha)))[image]
    assert np.array_equal(white_veil(image, alpha=float(alpha)), expected)


@pytest.mark.parametrize("factor", [*FACTORS, "0", "1", "2.5"])
@pytest.mark.parametrize("level", [0, 1, 77, 128, 254, 255])
def test_contrast_is_exact_about_the_mean(factor: str, level: int) -> None:
    image = np.full((60, 60, 3), level, np.uint8)
    image[0, :3] = RAMP[::29].reshape(3, 3)[:, ::-1]  # too few pixels to move the rounded mean of the others
    pivot = round(float(np.mean(image @ [0.299, 0.587, 0.114])))
    expected = np.array(half_up(Fraction(factor), (1 - Fraction(factor)) * pivot))[image]
    assert np.array_equal(contrast(image, factor=float(factor)), expected)


@settings(deadline=None, max_examples=300)
@given(scale=st.floats(-4, 4), offset=st.floats(-300, 300), length=st.integers(1, 40))
def test_vector_arithmetic_and_table_agree(scale: float, offset: float, length: int) -> None:
    image = ramp_of(length)[:7]
    exact = scale * image.astype(float) + offset
    got = linear(image, scale=scale, offset=offset).astype(int)
    assert (abs(got - np.clip(exact, 0, 255)) <= 0.5 + 1e-6).all()


@pytest.mark.parametrize("factor", [float(factor) for factor in FACTORS])
def test_brightness_and_contrast_are_those_of_pillow(natural: np.ndarray, factor: float) -> None:
    picture = PIL.Image.fromarray(natural)
    darker = np.asarray(PIL.ImageEnhance.Brightness(picture).enhance(factor))
    flatter = np.asarray(PIL.ImageEnhance.Contrast(picture).enhance(factor))
    assert abs(brightness(natural, factor=factor).astype(int) - darker).max() <= 1  # Pillow truncates
    assert abs(contrast(natural, factor=factor).astype(int) - flatter).max() <= 1


@pytest.mark.parametrize("alpha", [0.12, 0.20, 0.28, 0.36, 0.44])
def test_white_veil_is_the_blend_of_pillow(natural: np.ndarray, alpha: float) -> None:
    picture = PIL.Image.fromarray(natural)
    blend = np.asarray(PIL.Image.blend(picture, PIL.Image.new("RGB", picture.size, "white"), alpha))
    assert abs(white_veil(natural, alpha=alpha).astype(int) - blend).max() <= 1


@pytest.mark.parametrize("factor", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("operator", [brightness, contrast])
def test_bad_factor(operator: object, factor: float) -> None:
    with pytest.raises(InputError, match="factor"):
        operator(np.zeros((2, 2, 3), np.uint8), factor=factor)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_bad_alpha(alpha: float) -> None:
    with pytest.raises(InputError, match="alpha"):
        white_veil(np.zeros((2, 2, 3), np.uint8), alpha=alpha)
