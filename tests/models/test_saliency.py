from __future__ import annotations

import itertools

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.errors import ImageError
from crypsis.models.saliency import barrier_distance, border_contrast, saliency_map
from crypsis.models.segmenter import load_model


def scene(size: tuple[int, int] = (120, 160), contrast: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """An orange ellipse on noisy green, and its mask."""
    mask = np.zeros(size, np.uint8)
    cv2.ellipse(mask, (size[1] * 2 // 5, size[0] // 2), (size[1] // 6, size[0] // 5), 20, 0, 360, 1, -1)
    back, front = np.array([70.0, 110, 60]), np.array([190.0, 120, 50])
    color = np.where(mask[:, :, None] > 0, back + contrast * (front - back), back)
    noise = np.random.default_rng(1).normal(0, 8, (*size, 3))
    return np.clip(color + noise, 0, 255).astype(np.uint8), mask.astype(bool)


def dice(probability: np.ndarray, mask: np.ndarray) -> float:
    return float(2 * probability[mask].sum() / (probability.sum() + mask.sum()))


def test_it_finds_what_stands_out() -> None:
    image, mask = scene()
    (prediction,) = load_model("saliency").predict([image])
    probability = prediction.probability
    assert dice(probability, mask) > 0.7
    assert dice(np.full(mask.shape, mask.mean()), mask) < 0.3  # the best that a flat map can do
    assert np.abs(probability - mask).mean() < 0.1
    assert probability[mask].mean() > 0.8 > 0.1 > probability[~mask].mean()


def test_it_sees_less_when_there_is_less_to_see() -> None:
    found = [saliency_map(scene(contrast=c)[0])[scene()[1]].mean() for c in (1.0, 0.1, 0.0)]
    assert found[0] > found[1] > found[2]
    assert found[2] < 0.1


@settings(deadline=None, max_examples=60)
@given(h=st.integers(1, 70), w=st.integers(1, 70), seed=st.integers(0, 1000))
def test_any_image_gives_a_probability_the_same_every_time(h, w, seed) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (h, w, 3), dtype=np.uint8)
    before = image.copy()
    probability = saliency_map(image)
    assert probability.shape == (h, w)
    assert probability.dtype == np.float32
    assert 0.0 <= probability.min() <= probability.max() <= 1.0
    np.testing.assert_array_equal(saliency_map(image.copy()), probability)
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (500, 1), (2, 3), (31, 47), (300, 401)])
@pytest.mark.parametrize("color", [(0, 0, 0), (255, 255, 255), (90, 140, 30)])
def test_an_image_of_one_color_has_nothing_in_it(size, color) -> None:
    probability = saliency_map(np.full((*size, 3), color, np.uint8))
    assert probability.max() == probability.min() < 0.01


def test_it_does_not_matter_how_the_image_lies_in_memory() -> None:
    image, _ = scene()
    np.testing.assert_array_equal(saliency_map(image[:, ::-1]), saliency_map(np.ascontiguousarray(image[:, ::-1])))


@pytest.mark.parametrize("image", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8)])
def test_other_arrays_are_refused(image) -> None:
    with pytest.raises(ImageError):
        load_model("saliency").predict([image])


def exact_barrier(values: np.ndarray) -> np.ndarray:
    """Minimum barrier distance to the border by trying every interval of values (paths stay inside it)."""
    distance = np.full(values.shape, np.inf)
    for low, high in itertools.combinations_with_replacement(np.unique(values), 2):
        inside = ((values >= low) & (values <= high)).astype(np.uint8)
        _, labels = cv2.connectedComponents(inside, connectivity=4)
        rim = np.unique(np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]]))
        reached = np.isin(labels, rim[rim > 0])
        distance[reached] = np.minimum(distance[reached], high - low)
    return distance


@settings(deadline=None, max_examples=40)
@given(h=st.integers(1, 9), w=st.integers(1, 9), seed=st.integers(0, 1000))
def test_barrier_distance_is_close_to_the_exact_one_and_never_below(h, w, seed) -> None:
    values = np.random.default_rng(seed).integers(0, 12, (h, w)).astype(np.float32)
    exact = exact_barrier(values)
    found = barrier_distance(values[:, :, None], rounds=2)[:, :, 0]
    assert (found >= exact).all()
    assert np.abs(found - exact).mean() < 0.75
    border = np.ones((h, w), bool)
    border[1:-1, 1:-1] = False
    assert (found[border] == 0).all()


def test_barrier_distance_of_a_plateau_is_its_height() -> None:
    values = np.zeros((9, 9, 2), np.float32)
    values[3:6, 3:6] = [5, -2]
    found = barrier_distance(values, rounds=1)
    np.testing.assert_array_equal(found[3:6, 3:6], np.broadcast_to([5, 2], (3, 3, 2)))
    assert found.sum() == 9 * 7


def test_border_contrast_forgives_one_side() -> None:
    lab = np.zeros((40, 40, 3), np.float32)
    lab[:, :, 0] = 50.0
    lab[4:20, 0:16] = [70.0, 40.0, 0.0]  # an object that touches the left side
    contrast = border_contrast(lab)
    assert contrast[5:19, 1:15].min() > 10 * contrast[25:35, 20:35].max()


def test_the_label_and_the_description() -> None:
    model = load_model("saliency,name=floor")
    assert model.name == "floor"
    assert load_model("saliency").name == "saliency"
    assert model.describe()["adapter"] == "saliency"
    assert model.describe() == load_model("saliency").describe()
