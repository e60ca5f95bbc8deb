from __future__ import annotations

import numpy as np
import pytest

from crypsis.errors import ImageError, ModelError
from crypsis.types import Condition, Detections, ListedDetections, Prediction, Sample, check_image

IMAGE = np.zeros((4, 5, 3), np.uint8)


def test_check_image_returns_what_it_was_given() -> None:
    assert check_image(IMAGE) is IMAGE


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((4, 5), np.uint8), np.zeros((4, 5, 4), np.uint8), np.zeros((4, 5, 3), np.float32),
        np.zeros((0, 5, 3), np.uint8), [[1, 2, 3]], None,
    ],
)  # fmt: skip
def test_check_image_refuses(wrong: object) -> None:
    with pytest.raises(ImageError):
        check_image(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("entry", "severity"), [("clean", 1), ("cod10k-c/fog", 0), ("cod10k-c/fog", 6), ("x", -1)])
def test_conditions_that_do_not_exist(entry: str, severity: int) -> None:
    with pytest.raises(ValueError, match="no condition"):
        Condition(entry, severity)


def test_condition_names() -> None:
    assert str(Condition("clean", 0)) == "clean"
    assert str(Condition("cod10k-c/fog", 3)) == "cod10k-c/fog@3"


def test_sample_needs_a_mask_of_its_size() -> None:
    Sample("a", IMAGE, np.zeros((4, 5), np.bool_))
    with pytest.raises(ImageError, match="a: the mask"):
        Sample("a", IMAGE, np.zeros((5, 4), np.bool_))
    with pytest.raises(ImageError, match="a: the mask"):
        Sample("a", IMAGE, np.zeros((4, 5), np.uint8))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.full((2, 2), np.nan, np.float32), "without NaN"), (np.full((2, 2), 1.1, np.float32), "activation=sigmoid"),
        (np.full((2, 2), -0.1, np.float32), "activation=sigmoid"), (np.zeros((2, 2)), "float32"),
        (np.zeros((2, 2, 1), np.float32), "H×W"), (np.zeros((0, 2), np.float32), "H×W"),
    ],
)  # fmt: skip
def test_predictions_are_probabilities(values: np.ndarray, words: str) -> None:
    good = np.zeros((2, 2), np.float32)
    with pytest.raises(ModelError, match=words):
        Prediction(values)
    with pytest.raises(ModelError, match=words):
        Prediction(good, values)


def test_listed_detections() -> None:
    boxes = np.float32([[1.1, 2, 3.3, 4], [0, 0, 0, 0]])
    found = Detections(boxes, np.float32([0.1, 1]), np.array([3, 0]))
    listed = found.listed()
    assert (listed.boxes.dtype, listed.scores.dtype) == (np.float64, np.float64)
    assert (listed.boxes[:, :2] + listed.boxes[:, 2:]).astype(np.float32).tolist() == boxes[:, 2:].tolist()
    assert found.boxes.tolist() == boxes.tolist(), "the corners are not changed"
    sound = {"boxes": listed.boxes, "scores": listed.scores, "labels": listed.labels}
    for name, value, words in (
        ("boxes", boxes, "boxes of float64"), ("boxes", np.full((2, 4), np.nan), "finite"),
        ("boxes", -listed.boxes, "no size below 0"), ("scores", np.array([0.5, 1.5]), r"in \[0, 1\]"),
        ("labels", np.zeros(3, np.int64), "labels of int64"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=words):
            ListedDetections(**{**sound, name: value})
