from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from crypsis.errors import ModelError, UnknownNameError
from crypsis.models.segmenter import Segmenter, load_model

SOURCE = '''
import functools
import numpy as np

LIMIT = 3

def red(image):
    return image[:, :, 0] / 255

def half(image):
    return red(image).astype(np.float16)

def hard(image):
    return image[:, :, 0] > 127

def doubtful(image):
    return red(image), np.float32(1) - red(image)

def sure(image):
    return red(image), None

class Tensor:
    """What a torch tensor looks like to numpy."""
    def __init__(self, values): self.values = values
    def __array__(self, dtype=None, copy=None): return np.asarray(self.values, dtype)

def tensor(image):
    return Tensor(red(image))

class Lazy:
    def __array__(self, dtype=None, copy=None): raise RuntimeError("call detach() first.\\nreally")

def lazy(image):
    return Lazy()

def spoil(image):
    image[:] = 0
    return red(image)

def raises(image):
    raise KeyError("weights")

def silent(image):
    raise ValueError

def small(image):
    return red(image)[1:]

def batched(image):
    return red(image)[None]

def bytes_(image):
    return image[:, :, 0]

def logits(image):
    return red(image) * 9 - 4

def nan(image):
    return red(image) * np.nan

def nothing(image):
    return None

def three(image):
    return red(image), red(image), red(image)

def bad_doubt(image):
    return red(image), red(image) + 2

class Net:
    def __call__(self, image): return red(image)
    @staticmethod
    def segment(image): return red(image)

net = Net()
decorated = functools.wraps(red)(lambda image: red(image))
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name of a module in the current folder, importable from there alone."""
    (tmp_path / "crypsis_test_nets.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "crypsis_test_nets"
    sys.modules.pop("crypsis_test_nets", None)


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (5, 8, 3), dtype=np.uint8)


@pytest.mark.parametrize("function", ["red", "half", "tensor", "sure", "net", "Net.segment", "decorated"])
def test_a_function_in_the_current_folder(module, image, function) -> None:
    model = load_model(f"python:{module}:{function}")
    assert isinstance(model, Segmenter)
    assert model.name == function
    other = image[:3, :4]
    predictions = model.predict([image, other])
    for given, prediction in zip((image, other), predictions, strict=True):
        assert prediction.uncertainty is None
        assert prediction.probability.dtype == np.float32
        np.testing.assert_allclose(prediction.probability, given[:, :, 0] / 255, atol=1e-3)


def test_a_hard_mask_and_an_uncertainty(module, image) -> None:
    (hard,) = load_model(f"python:{module}:hard").predict([image])
    np.testing.assert_array_equal(hard.probability, image[:, :, 0] > 127)
    (doubtful,) = load_model(f"python:{module}:doubtful").predict([image])
    assert doubtful.uncertainty is not None
    np.testing.assert_allclose(doubtful.probability + doubtful.uncertainty, 1, atol=1e-6)


def test_the_caller_keeps_its_image(module, image) -> None:
    before = image.copy()
    (prediction,) = load_model(f"python:{module}:spoil").predict([image])
    assert prediction.probability.max() == 0
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("raises", "raised KeyError: 'weights'"),
        ("silent", "raised ValueError"),
        ("small", r"returned float64 \(4, 8\); return floats in \[0, 1\] of shape \(5, 8\)"),
        ("batched", r"returned float64 \(1, 5, 8\)"),
        ("bytes_", r"returned uint8 \(5, 8\)"),
        ("logits", r"must lie in \[0, 1\]"),
        ("nan", "without NaN"),
        ("nothing", "returned NoneType"),
        ("three", r"returned 3 values; return a map, or \(probability, uncertainty\)"),
        ("bad_doubt", "An? uncertainty map must lie"),
        ("lazy", "no array: RuntimeError: call detach"),
    ],
)
def test_what_goes_wrong_inside_is_one_sentence_with_the_function(module, image, function, message) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        load_model(f"python:{module}:{function}").predict([image])
    assert f"python:{module}:{function}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_cause_is_chained(module, image) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(f"python:{module}:raises").predict([image])
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ("{m}:rad", UnknownNameError, "did you mean 'red'"),
        ("{m}:Net.segmant", UnknownNameError, "did you mean 'segment'"),
        ("{m}:LIMIT", ModelError, "is a int, not a function"),
        ("{m}:LIMIT.size", UnknownNameError, "no function in"),
        ("{m}", ModelError, "write python:package.module:function"),
        ("", ModelError, "write python:package.module:function"),
        ("nets/a.py:red", ModelError, "write python:package.module:function"),
        ("{m}:", ModelError, "write python:package.module:function"),
        ("crypsis_no_such:red", ModelError, "no module 'crypsis_no_such', neither in the current folder"),
        ("{m}.inner:red", ModelError, "importing|no module"),
    ],
)
def test_a_target_that_is_no_function(module, target, kind, message) -> None:
    with pytest.raises(kind, match=message):
        load_model(f"python:{target.format(m=module)}")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import crypsis_absent_weights", "importing broken_nets failed: ModuleNotFoundError"),
        ("def f(:", "importing broken_nets failed: SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_a_module_that_breaks_on_import(module, tmp_path, source, message) -> None:
    (tmp_path / "broken_nets.py").write_text(source)
    with pytest.raises(ModelError, match=message) as caught:
        load_model("python:broken_nets:f")
    assert caught.value.__cause__ is not None


def test_the_description_names_the_source_file(module, tmp_path) -> None:
    digest = hashlib.sha256((tmp_path / "crypsis_test_nets.py").read_bytes()).hexdigest()
    for function in ("red", "net", "decorated"):
        assert load_model(f"python:{module}:{function},name=x").describe() == {
            "adapter": "python",
            "function": f"{module}:{function}",
            "source": "crypsis_test_nets.py",
            "sha256": digest,
        }


def test_a_function_written_in_c_has_no_source(image) -> None:
    model = load_model("python:math:sqrt")
    assert model.describe()["sha256"] is None or len(str(model.describe()["sha256"])) == 64
    with pytest.raises(ModelError, match="python:math:sqrt raised TypeError"):
        model.predict([image])
