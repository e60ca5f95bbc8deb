from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.errors import ModelError, UnknownNameError
from crypsis.models.options import numbers, one_of, positive_integer, positive_number, yes_or_no
from crypsis.models.segmenter import (
    MODELS,
    PredictionSource,
    Segmenter,
    Specification,
    load_model,
    parse_specification,
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("saliency", Specification("saliency", "", {}, None)),
        ("saliency,name=floor", Specification("saliency", "", {}, "floor")),
        (" saliency , name = floor ", None),
        (r"onnx:C:\nets\a,b.onnx,size=352", Specification("onnx", r"C:\nets\a,b.onnx", {"size": "352"}, None)),
        ("onnx:a,b.onnx", Specification("onnx", "a,b.onnx", {}, None)),
        (
            "onnx:./x=y/net.onnx,mean=0/0/0, std=1/1/1,name=a b",
            Specification("onnx", "./x=y/net.onnx", {"mean": "0/0/0", "std": "1/1/1"}, "a b"),
        ),
        ("predictions:maps/2024,10,name=x", Specification("predictions", "maps/2024,10", {}, "x")),
        ("python:package.module:fn", Specification("python", "package.module:fn", {}, None)),
        ("onnx:net.onnx,output=a:b", Specification("onnx", "net.onnx", {"output": "a:b"}, None)),
    ],
)
def test_a_specification_is_taken_apart_from_the_right(spec, expected) -> None:
    if expected is None:
        with pytest.raises(UnknownNameError, match="did you mean 'saliency'"):
            parse_specification(spec)
    else:
        assert parse_specification(spec) == expected


@settings(deadline=None, max_examples=100)
@given(
    target=st.text(min_size=1).map(str.strip).filter(bool),
    options=st.dictionaries(
        st.sampled_from(["size", "mean", "order"]), st.text().map(str.strip).filter(lambda t: "," not in t)
    ),
)
def test_a_target_without_equals_signs_survives(target, options) -> None:
    target = target.replace("=", "-")
    spec = f"onnx:{target}" + "".join(f",{k}={v}" for k, v in options.items())
    parsed = parse_specification(spec)
    assert parsed.target == (target if options else target.strip())
    assert parsed.options == options


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        ("salency", UnknownNameError, "kind of model 'salency'; did you mean 'saliency'"),
        ("", UnknownNameError, "known: saliency, onnx, predictions, python"),
        ("nets/a.onnx", UnknownNameError, "write onnx:nets/a.onnx"),
        ("saliency,size=3", UnknownNameError, "option of saliency models 'size'"),
        ("saliency:fast", ModelError, "takes nothing after the colon; got 'fast'"),
        ("saliency,name=", ModelError, "printable label"),
        ("saliency,name=a\nb", ModelError, "printable label"),
        ("saliency,name=a,name=b", ModelError, "name= is given twice"),
        ("predictions", ModelError, "predictions needs a folder"),
        ("predictions:x,size=3", UnknownNameError, "option of predictions models 'size'"),
        ("python:m:f,batch=2", UnknownNameError, "option of python models 'batch'"),
    ],
)
def test_a_wrong_specification_is_one_sentence(spec, kind, message) -> None:
    with pytest.raises(kind, match=message):
        load_model(spec)


def test_a_bare_folder_is_told_to_be_predictions(tmp_path) -> None:
    with pytest.raises(UnknownNameError, match="write predictions:"):
        load_model(str(tmp_path))


def test_the_protocols_tell_models_from_maps_on_disk(tmp_path) -> None:
    assert isinstance(load_model("saliency"), Segmenter)
    assert not isinstance(load_model("saliency"), PredictionSource)
    assert isinstance(load_model(f"predictions:{tmp_path}"), PredictionSource)
    assert not isinstance(load_model(f"predictions:{tmp_path}"), Segmenter)


def test_every_kind_in_the_table_can_be_imported() -> None:
    import importlib

    for place in MODELS.values():
        module, _, attribute = place.partition(":")
        assert callable(getattr(importlib.import_module(module), attribute).from_specification)


@pytest.mark.parametrize(
    ("reader", "text", "value"),
    [
        (one_of("a", "b"), "b", "b"),
        (yes_or_no, "yes", True),
        (yes_or_no, "no", False),
        (positive_integer, "12", 12),
        (positive_number, "0.5", 0.5),
        (numbers(3), "0/-1/2.5", (0.0, -1.0, 2.5)),
    ],
)
def test_readers_accept(reader, text, value) -> None:
    assert reader(text) == value


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (one_of("a", "b"), "A"),
        (yes_or_no, "1"),
        (positive_integer, "0"),
        (positive_integer, "²"),
        (positive_integer, "1.0"),
        (positive_number, "inf"),
        (positive_number, "0"),
        (numbers(2), "1/2/3"),
        (numbers(2), "1/"),
    ],
)
def test_readers_refuse(reader, text) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        reader(text)
