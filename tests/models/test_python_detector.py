from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from crypsis.errors import ImageError, ModelError, UnknownNameError
from crypsis.models.coco_classes import CLASSES
from crypsis.models.detector import Detector, load_detector

SOURCE = '''
import numpy as np

BOXES = [[1, 2, 3, 4], [0, 0, 8.5, 5]]

def arrays(image):
    return np.array(BOXES), np.array([0.5, 1]), np.array([0, 1])

def lists(image):
    return BOXES, [0.5, 1], [0, 1]

def dictionary(image):
    return {"labels": [0, 1], "scores": [0.5, 1], "boxes": BOXES, "masks": None}

def floats(image):
    return np.array(BOXES, np.float16), np.float64([0.5, 1]), np.float32([0, 1])

class Tensor:
    """What a torch tensor that requires grad, on a GPU, looks like."""
    def __init__(self, values): self.values, self.ready = values, False
    def detach(self): return self
    def cpu(self): self.ready = True; return self
    def __array__(self, dtype=None, copy=None):
        assert self.ready
        return np.asarray(self.values, dtype)

def tensors(image):
    return Tensor(BOXES), Tensor([0.5, 1.0]), Tensor([0, 1])

def nothing_found(image):
    return [], [], []

def nothing_shaped(image):
    return np.zeros((0, 4)), np.zeros(0), np.zeros(0)

def spoil(image):
    image[:] = 0
    return nothing_found(image)

def size(image):
    return [[0, 0, image.shape[1], image.shape[0]]], [1.0], [0]

def raises(image):
    raise KeyError("weights")

def none(image):
    return None

def two(image):
    return BOXES, [0.5, 1]

def lacks(image):
    return {"boxes": BOXES, "scores": [0.5, 1]}

def five(image):
    return [[0, 0, 1, 1, 0.5]], [0.5], [0]

def counts(image):
    return BOXES, [0.5], [0, 1]

def widths(image):
    return [[5, 5, 3, 3]], [0.5], [0]

def nan(image):
    return [[0, 0, 1, np.nan]], [0.5], [0]

def percent(image):
    return BOXES, [50, 100], [0, 1]

def third(image):
    return BOXES, [0.5, 1], [0, 2]

def half(image):
    return BOXES, [0.5, 1], [0, 0.5]

def below(image):
    return BOXES, [0.5, 1], [0, -1]

def names(image):
    return BOXES, [0.5, 1], ["cat", "dog"]

def scalar(image):
    return [[0, 0, 1, 1]], 0.5, [0]

def ragged(image):
    return [[0, 0, 1], [0, 0, 1, 1]], [0.5, 1], [0, 1]
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name of a module in the current folder, importable from there alone."""
    (tmp_path / "crypsis_test_detectors.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "crypsis_test_detectors"
    sys.modules.pop("crypsis_test_detectors", None)


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (5, 8, 3), dtype=np.uint8)


@pytest.mark.parametrize("function", ["arrays", "lists", "dictionary", "floats", "tensors"])
def test_arrays_lists_tensors_and_dictionaries(module, image, function) -> None:
    model = load_detector(f"python:{module}:{function},classes=cat/dog")
    assert isinstance(model, Detector)
    assert (model.name, model.classes) == (function, ("cat", "dog"))
    (found,) = model.detect([image])
    np.testing.assert_array_equal(found.boxes, np.float32([[1, 2, 3, 4], [0, 0, 8.5, 5]]))
    np.testing.assert_array_equal(found.scores, np.float32([0.5, 1]))
    np.testing.assert_array_equal(found.labels, [0, 1])


@pytest.mark.parametrize("function", ["nothing_found", "nothing_shaped"])
def test_an_image_in_which_nothing_is_found(module, image, function) -> None:
    (found,) = load_detector(f"python:{module}:{function},classes=cat").detect([image])
    assert found.boxes.shape == (0, 4)
    assert len(found.scores) == len(found.labels) == 0


def test_images_keep_their_order_and_the_caller_its_pixels(module, image) -> None:
    before = image.copy()
    load_detector(f"python:{module}:spoil,classes=cat").detect([image])
    np.testing.assert_array_equal(image, before)
    sized = load_detector(f"python:{module}:size,classes=cat").detect([image, image[:2], image[:, :3]])
    assert [found.boxes[0].tolist() for found in sized] == [[0, 0, 8, 5], [0, 0, 8, 2], [0, 0, 3, 5]]


def test_what_is_no_image_is_the_callers_mistake_not_the_functions(module) -> None:
    with pytest.raises(ImageError, match="uint8 array"):
        load_detector(f"python:{module}:lists,classes=cat/dog").detect([np.zeros((4, 4, 3))])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("raises", "raised KeyError: 'weights'"),
        ("none", r"returned NoneType; return \(boxes, scores, labels\), or a dictionary with these"),
        ("two", "returned 2 values"),
        ("lacks", "returned a dictionary without 'labels'"),
        ("five", r"boxes of float32 \(1, 4\); got float32 \(1, 5\)"),
        ("counts", "Detections of 1 objects"),
        ("widths", "x1 ≤ x2"),
        ("nan", "boxes that are not finite"),
        ("percent", r"Scores lie in \[0, 1\]"),
        ("third", "returned the label 2; labels are whole numbers from 0 to 1"),
        ("half", "returned the label 0.5"),
        ("below", "returned the label -1"),
        ("names", "labels that are not numbers"),
        ("scalar", "returned one number as scores"),
        ("ragged", "boxes that are no array: ValueError"),
    ],
)
def test_what_goes_wrong_inside_is_one_sentence_with_the_function(module, image, function, message) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        load_detector(f"python:{module}:{function},classes=cat/dog").detect([image])
    assert f"python:{module}:{function}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_classes_by_name_by_file_and_of_coco(module, tmp_path) -> None:
    (tmp_path / "classes.txt").write_text("\ufeffsea horse\r\nGrößtes/Tier \n\n", "utf-8")
    for option, classes in (("cat", ("cat",)), ("classes.txt", ("sea horse", "Größtes/Tier")), ("coco", CLASSES)):
        assert load_detector(f"python:{module}:lists,classes={option}").classes == classes


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("", "does not say what its labels mean; add classes=cat/dog or classes=FILE"),
        (",classes=", "classes= is not understood; allowed: coco | names separated by / | a text file"),
        (",classes=cat//dog", "no empty or unprintable names"),
        (",classes=gone.txt", "gone.txt cannot be read"),
        (",classes=latin.txt", "latin.txt cannot be read"),
        (",classes=long.txt", "long.txt is too large"),
    ],
)
def test_classes_that_are_none(module, tmp_path, option, message) -> None:
    (tmp_path / "latin.txt").write_bytes("Wal\nLöwe".encode("latin-1"))
    (tmp_path / "long.txt").write_bytes(b"a\n" * 600_000)
    with pytest.raises(ModelError, match=message):
        load_detector(f"python:{module}:lists{option}")


def test_a_target_that_is_no_function(module) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'lists'"):
        load_detector(f"python:{module}:list,classes=cat")
    with pytest.raises(ModelError, match=r"write python:package.module:function"):
        load_detector(f"python:{module},classes=cat")
    with pytest.raises(UnknownNameError, match="did you mean 'classes'"):
        load_detector(f"python:{module}:lists,clases=cat")


def test_the_description_names_source_and_classes(module, tmp_path) -> None:
    digest = hashlib.sha256((tmp_path / "crypsis_test_detectors.py").read_bytes()).hexdigest()
    model = load_detector(f"python:{module}:lists,classes=cat/dog,name=ours")
    assert model.name == "ours"
    assert model.describe() == {
        "adapter": "python",
        "function": f"{module}:lists",
        "source": "crypsis_test_detectors.py",
        "sha256": digest,
        "classes": "cat/dog",
    }
