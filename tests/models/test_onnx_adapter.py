from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import PIL.Image
import pytest
from onnx import TensorProto, helper, numpy_helper

from crypsis.errors import MissingDependencyError, ModelError, UnknownNameError
from crypsis.models.onnx import OnnxOptions, OnnxSegmenter
from crypsis.models.segmenter import Segmenter, load_model

Dims = Sequence[int | str | None]

WEIGHTS = np.array([0.9, -0.7, 0.4], np.float32)
BIAS = np.float32(-0.2)
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
SIZE = (16, 24)


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Path]:
    """Write an ONNX file from nodes, constants, one or more inputs and outputs; return its path."""

    def write(
        nodes: list[onnx.NodeProto],
        constants: dict[str, np.ndarray] | None = None,
        *,
        inputs: dict[str, Dims] | None = None,
        outputs: Sequence[str] = ("map",),
        input_type: int = TensorProto.FLOAT,
        output_type: int = TensorProto.FLOAT,
        name: str = "net.onnx",
        **save: Any,
    ) -> Path:
        inputs = inputs or {"image": ("N", 3, "H", "W")}
        graph = helper.make_graph(
            nodes,
            "test",
            [helper.make_tensor_value_info(k, input_type, v) for k, v in inputs.items()],
            [helper.make_tensor_value_info(k, output_type, None) for k in outputs],
            [numpy_helper.from_array(np.ascontiguousarray(v), k) for k, v in (constants or {}).items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, path, **save)
        return path

    return write


@pytest.fixture
def linear(export: Callable[..., Path]) -> Callable[..., Path]:
    """Write a 1×1 convolution of the three colors (`WEIGHTS`, `BIAS`), every second pixel: logits or more."""

    def write(
        *,
        dims: Dims = ("N", 3, "H", "W"),
        nhwc: bool = False,
        sigmoid: bool = False,
        two_channels: bool = False,
        drop_channel: bool = False,
        drop_all: bool = False,
        stride: int = 2,
        name: str = "net.onnx",
    ) -> Path:
        kernel = WEIGHTS.reshape(1, 3, 1, 1)
        bias = np.array([BIAS])
        if two_channels:  # the object's logit minus the background's is what one channel would be
            kernel, bias = np.concatenate([kernel * -0.25, kernel * 0.75]), np.array([0.1, 0.1 + BIAS], np.float32)
        nodes, last = [], "image"

        def add(op: str, *more: str, **attributes: Any) -> None:
            nonlocal last
            nodes.append(helper.make_node(op, [last, *more], [f"{op}{len(nodes)}"], **attributes))
            last = nodes[-1].output[0]

        if nhwc:
            add("Transpose", perm=[0, 3, 1, 2])
        add("Conv", "kernel", "bias", strides=[stride, stride])
        if sigmoid:
            add("Sigmoid")
        if nhwc:
            add("Transpose", perm=[0, 2, 3, 1])
        if drop_channel or drop_all:
            add("Squeeze", "axes")
        nodes[-1].output[0] = "map"
        axes = [0, 1] if drop_all else [3 if nhwc else 1]
        constants = {"kernel": kernel, "bias": bias, "axes": np.array(axes, np.int64)}
        return export(nodes, constants, inputs={"image": dims}, name=name)

    return write


@pytest.fixture
def images() -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in ((40, 30), (16, 24), (7, 51))]


def bilinear(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Bilinear with half-pixel centers, from its definition."""
    for axis, out in enumerate(size):
        side = values.shape[axis]
        at = np.clip((np.arange(out) + 0.5) * side / out - 0.5, 0, side - 1)
        low = np.floor(at).astype(int)
        weight = np.expand_dims(at - low, 1 - axis)
        values = (1 - weight) * values.take(low, axis) + weight * values.take(np.minimum(low + 1, side - 1), axis)
    return values


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def pillow(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    return np.asarray(PIL.Image.fromarray(image).resize(size[::-1], PIL.Image.Resampling.BILINEAR))


def logits(
    image: np.ndarray,
    *,
    size: tuple[int, int] = SIZE,
    mean: np.ndarray = MEAN,
    std: np.ndarray = STD,
    scale: float = 255.0,
    bgr: bool = False,
) -> np.ndarray:
    """What the `linear` model returns for one image, in float64."""
    pixels = pillow(image, size).astype(np.float64)
    pixels = pixels[:, :, ::-1] if bgr else pixels
    return (((pixels / scale - mean) / std) @ WEIGHTS + BIAS)[::2, ::2]


def resized_then_sigmoid(image: np.ndarray, **convention: Any) -> np.ndarray:
    return sigmoid(bilinear(logits(image, **convention), image.shape[:2]))


def check(model: Any, images: list[np.ndarray], expected: list[np.ndarray]) -> None:
    predictions = model.predict(images)
    assert len(predictions) == len(images)
    for image, prediction, wanted in zip(images, predictions, expected, strict=True):
        assert prediction.probability.shape == image.shape[:2]
        assert prediction.probability.dtype == np.float32
        np.testing.assert_allclose(prediction.probability, wanted, atol=3e-6)


SHAPES: dict[str, dict[str, Any]] = {
    "N1hw": {},
    "Nhw": {"drop_channel": True},
    "hw": {"drop_all": True},
    "static": {"dims": (1, 3, *SIZE)},
    "static batch": {"dims": (2, 3, "H", "W")},
    "nhwc": {"dims": ("N", "H", "W", 3), "nhwc": True},
    "nhwc, Nhw": {"dims": (1, *SIZE, 3), "nhwc": True, "drop_channel": True},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_output_shape_and_layout_gives_the_map_computed_by_hand(linear, images, shape) -> None:
    path = linear(**SHAPES[shape])
    model = load_model(f"onnx:{path},size=16x24,activation=sigmoid")
    assert isinstance(model, Segmenter)
    check(model, images, [resized_then_sigmoid(image) for image in images])


def test_two_channels_by_softmax_or_as_probabilities(linear, export, images) -> None:
    path = linear(two_channels=True, name="two.onnx")
    check(
        load_model(f"onnx:{path},size=16x24,activation=softmax"),
        images,
        [resized_then_sigmoid(image) for image in images],
    )
    path = linear(two_channels=True, nhwc=True, dims=(1, *SIZE, 3), name="last.onnx")
    check(load_model(f"onnx:{path},activation=softmax"), images, [resized_then_sigmoid(image) for image in images])
    pair = [
        helper.make_node("ReduceMean", ["image"], ["gray"], axes=[1]),
        helper.make_node("Sub", ["one", "gray"], ["rest"]),
        helper.make_node("Concat", ["rest", "gray"], ["map"], axis=1),
    ]
    path = export(pair, {"one": np.float32(1)}, name="probabilities.onnx")
    model = load_model(f"onnx:{path},size=16x24,mean=0/0/0,std=1/1/1")
    check(model, images, [bilinear(pillow(i, SIZE).mean(axis=2) / 255.0, i.shape[:2]) for i in images])


def test_the_order_of_resizing_and_activation(linear, images) -> None:
    path = linear()
    before = load_model(f"onnx:{path},size=16x24,activation=sigmoid,order=activate-then-resize")
    check(before, images, [bilinear(sigmoid(logits(image)), image.shape[:2]) for image in images])
    after = load_model(f"onnx:{path},size=16x24,activation=sigmoid,order=resize-then-activate")
    check(after, images, [resized_then_sigmoid(image) for image in images])
    assert np.abs(before.predict(images)[0].probability - after.predict(images)[0].probability).max() > 1e-3


def test_a_model_that_ends_in_a_sigmoid_needs_no_activation(linear, images) -> None:
    path = linear(sigmoid=True)
    model = load_model(f"onnx:{path},size=16x24")
    check(model, images, [bilinear(sigmoid(logits(image)), image.shape[:2]) for image in images])


@pytest.mark.parametrize(
    ("options", "convention"),
    [
        ("channels=bgr", {"bgr": True}),
        ("scale=127.5", {"scale": 127.5}),
        ("mean=0/0/0,std=1/1/1", {"mean": np.zeros(3), "std": np.ones(3)}),
        ("mean=0.5/0.4/-0.3,std=0.2/0.3/0.4", {"mean": np.array([0.5, 0.4, -0.3]), "std": np.array([0.2, 0.3, 0.4])}),
        ("layout=nchw", {}),
        ("batch=3", {}),
    ],
)
def test_normalization_options(linear, images, options, convention) -> None:
    model = load_model(f"onnx:{linear()},size=16x24,activation=sigmoid,{options}")
    check(model, images, [resized_then_sigmoid(image, **convention) for image in images])


def test_resize_kernels_differ_where_they_should(linear, images) -> None:
    path = linear(stride=1)
    maps = {
        kernel: load_model(f"onnx:{path},size=16x24,activation=sigmoid,resize={kernel}").predict(images)
        for kernel in ("bilinear", "bilinear-antialias", "area", "nearest", "bicubic")
    }
    shrunk = [predictions[0].probability.tobytes() for predictions in maps.values()]
    assert len(set(shrunk)) == len(maps)
    as_it_is = [predictions[1].probability.tobytes() for predictions in maps.values()]  # 16×24 is the input size
    assert len(set(as_it_is)) == 1


@pytest.mark.parametrize(
    ("multiple", "fed"), [(32, [(32, 32), (32, 32), (32, 64)]), (4, [(40, 32), (16, 24), (8, 52)])]
)
def test_native_size_feeds_sides_rounded_to_a_multiple(linear, images, multiple, fed) -> None:
    model = load_model(f"onnx:{linear()},size=native,multiple={multiple},activation=sigmoid")
    check(model, images, [resized_then_sigmoid(i, size=size) for i, size in zip(images, fed, strict=True)])
    assert model.describe()["size"] == f"native, multiple of {multiple}"


def test_minmax_stretches_each_map(linear, images) -> None:
    plain = load_model(f"onnx:{linear()},size=16x24,activation=sigmoid").predict(images)
    stretched = load_model(f"onnx:{linear()},size=16x24,activation=sigmoid,minmax=yes").predict(images)
    for p, s in zip(plain, stretched, strict=True):
        low, high = p.probability.min(), p.probability.max()
        np.testing.assert_allclose(s.probability, (p.probability - low) / (high - low), atol=1e-6)
    flat = load_model(f"onnx:{linear()},size=16x24,activation=sigmoid,minmax=yes").predict(
        [np.full((5, 5, 3), 9, np.uint8)]
    )
    assert flat[0].probability.max() == 0.0


@pytest.fixture
def several(export: Callable[..., Path]) -> Path:
    """A model that returns a score, gray, and 1 - gray."""
    nodes = [
        helper.make_node("ReduceMean", ["image"], ["gray"], axes=[1]),
        helper.make_node("Sub", ["one", "gray"], ["doubt"]),
        helper.make_node("ReduceMean", ["gray"], ["score"], axes=[2, 3]),
    ]
    return export(nodes, {"one": np.float32(1)}, outputs=("score", "gray", "doubt"))


@pytest.mark.parametrize("options", ["output=gray,uncertainty=doubt", "output=1,uncertainty=2"])
def test_outputs_by_name_and_by_index(several, images, options) -> None:
    model = load_model(f"onnx:{several},size=16x24,mean=0/0/0,std=1/1/1,{options}")
    gray = [bilinear(pillow(i, SIZE).mean(axis=2) / 255.0, i.shape[:2]) for i in images]
    check(model, images, gray)
    for prediction, expected in zip(model.predict(images), gray, strict=True):
        np.testing.assert_allclose(prediction.uncertainty, 1 - expected, atol=3e-6)
    description = model.describe()
    assert (description["output"], description["output_index"], description["uncertainty"]) == ("gray", 1, "doubt")
    assert description["outputs"] == "score, gray, doubt"


def test_uncertainty_none_asks_for_none(several, images) -> None:
    model = load_model(f"onnx:{several},size=16x24,mean=0/0/0,std=1/1/1,output=1,uncertainty=none")
    assert model.predict(images[:1])[0].uncertainty is None


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_half_and_double_precision(export, images, kind) -> None:
    nodes = [helper.make_node("ReduceMean", ["image"], ["map"], axes=[1])]
    path = export(nodes, input_type=kind, output_type=kind)
    (prediction,) = load_model(f"onnx:{path},size=16x24,mean=0/0/0,std=1/1/1").predict(images[1:2])
    np.testing.assert_allclose(prediction.probability, images[1].mean(axis=2) / 255, atol=1e-3)


def test_a_hard_mask_of_integers_is_a_map(export, images) -> None:
    nodes = [helper.make_node("ArgMax", ["image"], ["map"], axis=1, keepdims=0)]
    path = export(
        [*nodes, helper.make_node("Clip", ["map", "zero", "one"], ["mask"])],
        {"zero": np.int64(0), "one": np.int64(1)},
        outputs=("mask",),
        output_type=TensorProto.INT64,
    )
    (prediction,) = load_model(f"onnx:{path},size=16x24,mean=0/0/0,std=1/1/1").predict(images[1:2])
    np.testing.assert_array_equal(prediction.probability, np.minimum(images[1].argmax(axis=2), 1))


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_results_depend_neither_on_batch_nor_on_repetition(linear, images, batch) -> None:
    alone = load_model(f"onnx:{linear()},size=16x24,activation=sigmoid")
    model = load_model(f"onnx:{linear()},size=16x24,activation=sigmoid,batch={batch}")
    expected = [alone.predict([image])[0].probability for image in images]
    for _ in range(2):
        for prediction, wanted in zip(model.predict(images), expected, strict=True):
            np.testing.assert_array_equal(prediction.probability, wanted)
    assert model.predict([]) == []


def test_images_are_not_changed(linear, images) -> None:
    before = [image.copy() for image in images]
    for image in images:
        image.setflags(write=False)
    load_model(f"onnx:{linear()},size=16x24,activation=sigmoid,channels=bgr").predict(images)
    assert all(np.array_equal(a, b) for a, b in zip(before, images, strict=True))


def test_the_description_identifies_model_and_conventions(linear, tmp_path) -> None:
    path = linear(dims=(1, 3, *SIZE))
    model = load_model(f"onnx:{path},activation=sigmoid,name=ours")
    description = model.describe()
    assert model.name == "ours"
    assert load_model(f"onnx:{path}").name == "net"
    assert description["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert description["size"] == "16×24"
    assert description["mean"] == "0.485/0.456/0.406"
    assert description["layout"] == "nchw"
    assert json.loads(json.dumps(description)) == description
    assert str(tmp_path) not in json.dumps(description)
    other = load_model(f"onnx:{path},activation=sigmoid,order=activate-then-resize").describe()
    assert {k for k in description if description[k] != other[k]} == {"order"}


def test_weights_beside_the_file_are_hashed_too(export, images) -> None:
    def build(offset: float) -> Path:
        nodes = [
            helper.make_node("ReduceMean", ["image"], ["gray"], axes=[1]),
            helper.make_node("Add", ["gray", "offset"], ["map"]),
        ]
        return export(
            nodes,
            {"offset": np.full((1, 1, *SIZE), offset, np.float32)},
            name="external/net.onnx",
            save_as_external_data=True,
            location="net.onnx.data",
            size_threshold=0,
        )

    path = build(0.0)
    spec = f"onnx:{path},size=16x24,mean=0/0/0,std=2/2/2"
    first = load_model(spec)
    weights = path.with_name("net.onnx.data")
    assert first.describe()["weights_sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    low = first.predict(images[1:2])[0].probability
    weights.unlink()  # onnx appends to a file that exists
    second = load_model(f"onnx:{build(0.25)},size=16x24,mean=0/0/0,std=2/2/2")
    np.testing.assert_allclose(second.predict(images[1:2])[0].probability, low + 0.25, atol=1e-6)
    assert second.describe()["sha256"] == first.describe()["sha256"]
    assert second.describe()["weights_sha256"] != first.describe()["weights_sha256"]
    weights.unlink()
    with pytest.raises(ModelError, match=r"keeps weights in net\.onnx\.data"):
        load_model(spec)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ("", ModelError, "any size .*size=352"),
        ("size=0", ModelError, "size=0 is not understood; allowed: a side such as 352"),
        ("size=3x", ModelError, "size=3x is not understood"),
        ("size=16,multiple=0", ModelError, "multiple=0 .*whole number from 1"),
        ("size=16,mean=1/2", ModelError, "mean=1/2 .*3 numbers separated by /"),
        ("size=16,mean=a/b/c", ModelError, "mean=a/b/c .*3 numbers"),
        ("size=16,mean=nan/0/0", ModelError, "mean=nan/0/0 .*3 numbers"),
        ("size=16,std=1/0/1", ModelError, "std=1/0/1 .*above 0"),
        ("size=16,scale=0", ModelError, "scale=0 .*a number above 0"),
        ("size=16,channels=gbr", ModelError, "channels=gbr .*rgb \\| bgr"),
        ("size=16,layout=hwc", ModelError, "layout=hwc .*nchw"),
        ("size=16,layout=nhwc", ModelError, "size=16x16 does not fit"),
        ("size=16,resize=lanczos", ModelError, "resize=lanczos .*bilinear-antialias"),
        ("size=16,activation=auto", ModelError, "activation=auto .*none \\| sigmoid \\| softmax"),
        ("size=16,order=both", ModelError, "order=both .*resize-then-activate"),
        ("size=16,output=", ModelError, "output= .*name"),
        ("size=16,output=1", ModelError, r"output=1, but the model has 1 output\(s\)"),
        ("size=16,output=mop", UnknownNameError, "did you mean 'map'"),
        ("size=16,uncertainty=7", ModelError, "uncertainty=7"),
        ("size=16,batch=-1", ModelError, "batch=-1"),
        ("size=16,minmax=true", ModelError, "minmax=true .*yes \\| no"),
        ("size=16,device=tpu", ModelError, "device=tpu .*cpu \\| cuda"),
        ("sise=16", UnknownNameError, "option of onnx models 'sise'; did you mean 'size'"),
    ],
)
def test_a_wrong_option_says_which_and_what_is_allowed(linear, images, options, kind, message) -> None:
    with pytest.raises(kind, match=message):
        load_model(f"onnx:{linear()},{options}" if options else f"onnx:{linear()}").predict(images)


@pytest.mark.parametrize(
    ("dims", "options", "message"),
    [
        ((1, 3, 16, 24), "size=24", "size=24x24 does not fit the model's input 1×3×16×24"),
        ((1, 3, 16, 24), "size=native", "size=native does not fit"),
        ((1, 3, "H", 24), "size=native", "size=native does not fit"),
        ((2, 3, 16, 24), "batch=3", "batch=3 does not fit the model, which takes 2"),
        ((1, 3, 16, 24), "layout=nhwc", "layout=nhwc does not fit the model's input 1×3×16×24"),
        ((1, 1, 16, 24), "", "no axis of three colors"),
        ((1, "C", 16, "W"), "", "does not show where the colors are; give layout="),
        ((3, 16, 24), "", "has shape 3×16×24; an image model takes four axes"),
    ],
)
def test_an_input_that_does_not_fit(export, dims, options, message) -> None:
    path = export([helper.make_node("Identity", ["image"], ["map"])], inputs={"image": dims})
    with pytest.raises(ModelError, match=message):
        load_model(f"onnx:{path},{options}" if options else f"onnx:{path}")


def test_inputs_that_are_no_single_float_image(export) -> None:
    add = [helper.make_node("Add", ["large", "small"], ["map"])]
    dims = (1, 3, 16, 24)
    path = export(add, inputs={"large": dims, "small": dims}, name="two.onnx")
    with pytest.raises(ModelError, match=r"takes 2 inputs \(large, small\)"):
        load_model(f"onnx:{path}")
    same = [helper.make_node("Identity", ["image"], ["map"])]
    path = export(same, inputs={"image": dims}, input_type=TensorProto.UINT8, output_type=TensorProto.UINT8)
    with pytest.raises(ModelError, match=r"tensor\(uint8\); export the model with a float input"):
        load_model(f"onnx:{path}")


def test_logits_without_activation_are_refused_with_the_remedy(linear, images) -> None:
    with pytest.raises(ModelError, match=r"^net: .*activation=sigmoid"):
        load_model(f"onnx:{linear()},size=16x24").predict(images)


def _shaped(export: Callable[..., Path], *shape: int) -> Path:
    """A model that returns an array of `shape`, whatever it is shown."""
    nodes = [
        helper.make_node("ReduceMean", ["image"], ["gray"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("ReduceMean", ["gray"], ["mean"], axes=[0], keepdims=0),
        helper.make_node("Expand", ["mean", "shape"], ["map"]),
    ]
    return export(nodes, {"shape": np.array(shape, np.int64)})


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 1000), "", "shape 1×1000, not one map per image"),
        ((1, 1000, 1, 1), "", "shape 1×1000×1×1, not one map"),
        ((1, 1, 1, 1), "", "shape 1×1×1×1, not one map"),
        ((1, 21, 16, 24), "", "shape 1×21×16×24, not one map"),
        ((2, 16, 24), "", "shape 2×16×24, not one map"),
        ((), "", "shape scalar, not one map"),
        ((1, 2, 16, 24), "activation=sigmoid", "two channels; give activation=softmax"),
        ((1, 1, 16, 24), "activation=softmax", "softmax needs two channels"),
        ((1, 16, 24), "activation=softmax", "softmax needs two channels"),
        ((1, 2, 16, 24), "activation=softmax,uncertainty=0", "output 'map' has two channels.$"),
    ],
)
def test_an_output_that_is_no_map(export, images, shape, options, message) -> None:
    path = _shaped(export, *shape)
    with pytest.raises(ModelError, match=message):
        load_model(f"onnx:{path},size=16x24,mean=0/0/0,std=1/1/1,{options}".rstrip(",")).predict(images[:1])


def test_an_output_that_is_no_array_of_numbers(export, images) -> None:
    nodes = [helper.make_node("Cast", ["image"], ["map"], to=TensorProto.STRING)]
    path = export(nodes, output_type=TensorProto.STRING)
    with pytest.raises(ModelError, match="output 'map' is not an array of numbers; choose another by output="):
        load_model(f"onnx:{path},size=16x24").predict(images[:1])


def test_nan_from_the_model_is_refused(export, images) -> None:
    nodes = [
        helper.make_node("Sub", ["image", "image"], ["zero"]),
        helper.make_node("Div", ["zero", "zero"], ["nan"]),
        helper.make_node("ReduceMean", ["nan"], ["map"], axes=[1]),
    ]
    path = export(nodes)
    for options in ("activation=none", "activation=sigmoid", "minmax=yes"):
        with pytest.raises(ModelError, match="without NaN"):
            load_model(f"onnx:{path},size=16x24,{options}").predict(images[:1])


def test_a_size_the_model_cannot_take_is_one_sentence(export, images) -> None:
    nodes = [helper.make_node("Add", ["image", "fixed"], ["map"])]
    path = export(nodes, {"fixed": np.zeros((1, 3, 16, 24), np.float32)})
    with pytest.raises(ModelError, match=r"^net: the model failed on 1 image\(s\) of 20×20: ") as caught:
        load_model(f"onnx:{path},size=20").predict(images[:1])
    assert "\n" not in str(caught.value)


def test_files_that_are_no_models(tmp_path) -> None:
    with pytest.raises(ModelError, match=r"no model file .*gone.onnx \(looked in "):
        load_model(f"onnx:{tmp_path / 'gone.onnx'}")
    for name, data in (("empty.onnx", b""), ("text.onnx", b"weights? " * 50), ("short.onnx", b"\x08\x0a")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ModelError, match=rf"{name}: (the model file is empty|not a usable ONNX model)"):
            load_model(f"onnx:{tmp_path / name}")
    with pytest.raises(ModelError, match="cannot be read"):
        load_model(f"onnx:{tmp_path}")
    with pytest.raises(ModelError, match="onnx needs a file"):
        load_model("onnx")


def test_a_gpu_that_is_not_there_names_the_package(linear) -> None:
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime can use a GPU")
    with pytest.raises(MissingDependencyError, match="onnxruntime-gpu"):
        load_model(f"onnx:{linear()},size=16,device=cuda")


def test_from_python(linear, images) -> None:
    model = OnnxSegmenter(linear(), OnnxOptions(size=SIZE, activation="sigmoid"))
    check(model, images, [resized_then_sigmoid(image) for image in images])
