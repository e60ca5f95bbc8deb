from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.errors import ModelError, UnknownNameError
from crypsis.metrics.segmentation import METRICS, MaskScores, MaskTruth, score_mask
from crypsis.results import SCORES

EXAMPLES = settings(deadline=None, max_examples=150)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A map and a mask of any small size, with the degenerate ones well represented."""
    height, width = draw(st.integers(1, 26)), draw(st.integers(1, 26))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["empty", "full", "one pixel", "noise", "box"]))
    mask = np.full((height, width), kind == "full")
    if kind == "one pixel":
        mask[rng.integers(height), rng.integers(width)] = True
    elif kind == "noise":
        mask = rng.random((height, width)) < 0.4
    elif kind == "box":
        mask[rng.integers(height) :, : rng.integers(width) + 1] = True
    value = draw(st.sampled_from(["uniform", "levels", "binary", "constant", "near the mask", "tiny", "zero", "one"]))
    p = {
        "uniform": lambda: rng.random(mask.shape),
        "levels": lambda: rng.integers(0, 256, mask.shape) / 255,
        "binary": lambda: rng.integers(0, 2, mask.shape).astype(float),
        "constant": lambda: np.full(mask.shape, rng.random()),
        "near the mask": lambda: np.clip(mask + rng.normal(0, 0.3, mask.shape), 0, 1),
        "tiny": lambda: rng.random(mask.shape) * 1e-40,
        "zero": lambda: np.zeros(mask.shape),
        "one": lambda: np.ones(mask.shape),
    }[value]()
    return p.astype(draw(st.sampled_from([np.float32, np.float64]))), mask


def numbers(scores: MaskScores) -> dict[str, float]:
    return {name: getattr(scores, name) for name in SCORES}


@EXAMPLES
@given(pairs(), st.sampled_from(["raw", "minmax"]))
def test_all_scores_are_finite_and_in_range(pair: tuple[np.ndarray, np.ndarray], normalize: str) -> None:
    p, mask = pair
    scores = score_mask(p, MaskTruth(mask), normalize=normalize)
    for name, value in numbers(scores).items():
        assert type(value) is float, name
        assert math.isfinite(value), name
        top = mask.size / max(mask.size - 1, 1) if name.startswith("e_") else 1.0
        assert 0 <= value <= top + 1e-9, (name, value)


@EXAMPLES
@given(pairs())
def test_counts_add_up(pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, mask = pair
    scores = score_mask(p, MaskTruth(mask))
    assert scores.histogram_object.sum() == mask.sum()
    assert scores.histogram_object.sum() + scores.histogram_background.sum() == mask.size
    assert scores.ece_count.sum() == mask.size
    assert (scores.ece_correct <= scores.ece_count).all()
    for name, length, dtype in (
        ("histogram_object", 256, np.int32),
        ("histogram_background", 256, np.int32),
        ("ece_count", 15, np.int32),
        ("ece_confidence", 15, np.float64),
        ("ece_correct", 15, np.int32),
    ):
        array = getattr(scores, name)
        assert (array.shape, array.dtype) == ((length,), dtype), name


@EXAMPLES
@given(pairs())
def test_calibration_error_is_at_most_the_absolute_error(pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, mask = pair
    scores = score_mask(p, MaskTruth(mask))
    assert scores.ece <= scores.mae + (1e-6 if p.dtype == np.float32 else 1e-12)


@EXAMPLES
@given(pairs(), st.sampled_from([(0,), (1,), (0, 1)]))
def test_flipping_both_changes_nothing(pair: tuple[np.ndarray, np.ndarray], axes: tuple[int, ...]) -> None:
    p, mask = pair
    here, there = score_mask(p, MaskTruth(mask)), score_mask(np.flip(p, axes), MaskTruth(np.flip(mask, axes)))
    for name in ("dice", "iou", "mae", "boundary_f1", "ece", "e_mean", "f_mean"):
        assert getattr(there, name) == pytest.approx(getattr(here, name), abs=1e-9), name
    assert (there.histogram_object == here.histogram_object).all()
    assert (there.ece_correct == here.ece_correct).all()


@EXAMPLES
@given(pairs(), pairs())
def test_a_reused_truth_scores_like_a_fresh_one(
    pair: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
) -> None:
    p, mask = pair
    truth = MaskTruth(mask)
    before = score_mask(p, truth)
    score_mask(np.resize(other[0], mask.shape), truth, normalize="minmax")
    for scores in (score_mask(p, truth), score_mask(p, MaskTruth(mask))):
        for field in dataclasses.fields(MaskScores):
            assert np.array_equal(getattr(scores, field.name), getattr(before, field.name)), field.name


@settings(deadline=None, max_examples=60)
@given(pairs())
def test_a_perfect_map_is_perfect(pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, mask = pair
    scores = score_mask(mask.astype(p.dtype), MaskTruth(mask))
    assert (scores.mae, scores.ece, scores.dice, scores.boundary_f1) == (0, 0, 1, 1)
    assert scores.s_measure == pytest.approx(1)
    if mask.any():
        assert scores.iou == scores.f_adaptive == 1
        assert scores.weighted_f == pytest.approx(1)
        assert scores.e_adaptive == pytest.approx(mask.size / max(mask.size - 1, 1))


def test_input_is_left_alone() -> None:
    rng = np.random.default_rng(0)
    p, mask = rng.random((9, 11), np.float32), rng.random((9, 11)) < 0.4
    copies = p.copy(), mask.copy()
    p.setflags(write=False)
    score_mask(p, MaskTruth(mask), normalize="minmax")
    assert np.array_equal(p, copies[0])
    assert np.array_equal(mask, copies[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eight_bit_levels_survive(dtype: type) -> None:
    levels = np.arange(256)
    p = (levels / 255).astype(dtype).reshape(16, 16)
    scores = score_mask(p, MaskTruth(np.ones((16, 16), bool)))
    assert (scores.histogram_object == 1).all()


def test_half_is_not_object() -> None:
    truth = MaskTruth(np.eye(8, dtype=bool))
    assert score_mask(np.full((8, 8), 0.5), truth).iou == 0.0
    assert score_mask(np.full((8, 8), np.nextafter(0.5, 1)), truth).iou == pytest.approx(1 / 8)


def test_views_score_like_copies() -> None:
    rng = np.random.default_rng(2)
    p, mask = rng.random((20, 22), np.float32), rng.random((20, 22)) < 0.4
    view = score_mask(p[::2, 1::3], MaskTruth(mask[::2, 1::3]))
    copy = score_mask(p[::2, 1::3].copy(), MaskTruth(mask[::2, 1::3].copy()))
    assert numbers(view) == numbers(copy)


def test_minmax_invents_an_object_where_raw_sees_none() -> None:
    mask = np.zeros((30, 30), bool)
    mask[10:20, 10:20] = True
    faint = np.where(mask, 0.09, 0.0).astype(np.float32)
    truth = MaskTruth(mask)
    assert score_mask(faint, truth).iou == 0.0
    assert score_mask(faint, truth, normalize="minmax").iou == 1.0


def test_minmax_leaves_a_constant_map() -> None:
    p, truth = np.full((5, 5), 0.25, np.float32), MaskTruth(np.eye(5, dtype=bool))
    assert numbers(score_mask(p, truth, normalize="minmax")) == numbers(score_mask(p, truth))


@pytest.mark.parametrize(
    ("probability", "message"),
    [
        (np.zeros((4, 5), np.uint8), "float32 or float64"),
        (np.zeros((4, 5), np.float16), "float32 or float64"),
        (np.zeros((4, 5), bool), "float32 or float64"),
        ([[0.5] * 5] * 4, "list"),
        (np.zeros((5, 4), np.float32), r"shape \(5, 4\), the mask \(4, 5\)"),
        (np.zeros((4, 5, 1), np.float32), "shape"),
        (np.full((4, 5), 1.5, np.float32), r"\[0, 1\]"),
        (np.full((4, 5), -0.1), r"\[0, 1\]"),
        (np.full((4, 5), np.nan, np.float32), "NaN"),
        (np.full((4, 5), np.inf, np.float32), r"\[0, 1\]"),
    ],
)
def test_maps_that_do_not_fit(probability: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        score_mask(probability, MaskTruth(np.zeros((4, 5), bool)))


def test_unknown_normalization() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'minmax'"):
        score_mask(np.zeros((4, 5)), MaskTruth(np.zeros((4, 5), bool)), normalize="min-max")


def test_every_score_is_defined() -> None:
    assert set(METRICS) == {*SCORES, "e_max", "f_max", "ece_pooled", "ece_signed_gap"}
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.definition.endswith(".")
        assert metric.title
        assert metric.symbol
    errors = {name for name, metric in METRICS.items() if not metric.higher_is_better}
    assert errors == {"mae", "ece", "ece_pooled", "ece_signed_gap"}
    assert {field.name for field in dataclasses.fields(MaskScores)} >= set(SCORES)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dice", "1e-6"),
        ("iou", "p > 0.5"),
        ("boundary_f1", "max(1, round(0.006·diagonal))"),
        ("ece", "15 equal bins"),
        ("e_adaptive", "min(2·mean p, 1)"),
        ("e_max", "averaged over images"),
    ],
)
def test_definitions_state_the_convention(name: str, said: str) -> None:
    assert said in METRICS[name].definition
