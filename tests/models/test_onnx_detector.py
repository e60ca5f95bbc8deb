from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from crypsis.errors import ModelError, UnknownNameError
from crypsis.models import coco_classes
from crypsis.models.detection_formats import FORMATS, guess_format, select
from crypsis.models.detector import Detector, load_detector
from crypsis.models.letterbox import place_image
from crypsis.models.onnx_detector import OnnxDetector, OnnxDetectorOptions
from crypsis.models.suppression import suppress

SIZE = (96, 64)
"""Height and width of the inputs here."""
CELLS = 12 * 8 + 6 * 4 + 3 * 2
NAMES = ("ant", "bee", "cat")
BOXES = np.array([[8.0, 20.0, 24.0, 70.0], [30.0, 40.0, 60.0, 60.0]])
"""Corners in pixels of the input: of a bee and of a cat."""
SCORES = np.array([[0.02, 0.9, 0.03], [0.01, 0.04, 0.6]])
INTEGERS = TensorProto.INT64

Outputs = dict[str, np.ndarray]


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Path]:
    """Write a model that returns the same arrays for each image of a batch, whatever the images; return its path."""

    def write(
        outputs: Outputs,
        *,
        dims: Sequence[int | str] = ("N", 3, *SIZE),
        kind: int = TensorProto.FLOAT,
        sizes: bool = False,
        shapes: bool = True,
        metadata: dict[str, str] | None = None,
        name: str = "net.onnx",
    ) -> Path:
        nodes = [
            helper.make_node("Cast", ["image"], ["float"], to=TensorProto.FLOAT),
            helper.make_node("ReduceMean", ["float"], ["mean"], axes=list(range(1, len(dims))), keepdims=0),
            helper.make_node("Mul", ["mean", "zero"], ["zeros"]),
        ]
        constants = {"zero": np.zeros(1, np.float32)}
        declared = []
        for output, values in outputs.items():
            constants[f"{output}_of_one"] = values.astype(np.float32)
            constants[f"{output}_shape"] = np.array([-1] + [1] * (values.ndim - 1), np.int64)
            target = helper.np_dtype_to_tensor_dtype(values.dtype)
            nodes += [
                helper.make_node("Reshape", ["zeros", f"{output}_shape"], [f"{output}_zeros"]),
                helper.make_node("Add", [f"{output}_of_one", f"{output}_zeros"], [f"{output}_float"]),
                helper.make_node("Cast", [f"{output}_float"], [output], to=target),
            ]
            shape: Any = ["N", *values.shape[1:]] if shapes else [f"{output}{i}" for i in range(values.ndim)]
            declared.append(helper.make_tensor_value_info(output, target, shape))
        inputs = [helper.make_tensor_value_info("image", kind, dims)]
        if sizes:
            inputs.append(helper.make_tensor_value_info("orig_target_sizes", INTEGERS, ["N", 2]))
            # boxes come in shares of the sizes, as RT-DETR's deployed form takes them
            nodes += [
                helper.make_node("Concat", ["orig_target_sizes", "orig_target_sizes"], ["twice"], axis=1),
                helper.make_node("Cast", ["twice"], ["factors"], to=TensorProto.FLOAT),
                helper.make_node("Unsqueeze", ["factors", "one"], ["wide"]),
                helper.make_node("Mul", ["boxes_share", "wide"], ["boxes"]),
            ]
            constants["one"] = np.array([1], np.int64)
            for node in nodes:
                node.output[:] = ["boxes_share" if o == "boxes" and node.op_type == "Cast" else o for o in node.output]
        stored = [numpy_helper.from_array(np.ascontiguousarray(v), k) for k, v in constants.items()]
        graph = helper.make_graph(nodes, "test", inputs, declared, stored)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        helper.set_model_props(model, metadata or {})
        path = tmp_path / name
        onnx.save(model, path)
        return path

    return write


def centered(boxes: np.ndarray) -> np.ndarray:
    return np.hstack([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]])


def padded(rows: np.ndarray, count: int) -> np.ndarray:
    return np.vstack([rows, np.zeros((count - len(rows), rows.shape[1]))]).astype(np.float32)


def logit(p: np.ndarray) -> np.ndarray:
    return np.log(p / (1 - p))


SHARES = BOXES / [SIZE[1], SIZE[0], SIZE[1], SIZE[0]]
BEST = SCORES.max(axis=1)
ROWS_8 = padded(np.hstack([centered(BOXES), SCORES]), CELLS)
ROWS_5 = padded(np.hstack([centered(BOXES), np.full((2, 1), 0.6), SCORES / 0.6]), 3 * CELLS)
LABELS = np.array([[1, 2]], np.int64)


def float32(values: np.ndarray) -> np.ndarray:
    return values[None].astype(np.float32)


FORMS: dict[str, tuple[str, Outputs]] = {
    "yolov5": ("yolov5", {"output": ROWS_5[None], "raw": np.zeros((1, 3, 12, 8, 8), np.float32)}),
    "yolov8": ("yolov8", {"output0": ROWS_8.T[None]}),
    "yolov8 transposed": ("yolov8", {"output0": ROWS_8[None]}),
    "yolo-nms": ("yolo-nms", {"output0": padded(np.hstack([BOXES, BEST[:, None], LABELS.T]), 300)[None]}),
    "detr": (
        "detr",
        {
            "logits": float32(np.log(np.hstack([SCORES, 1 - SCORES.sum(axis=1, keepdims=True)]))),
            "pred_boxes": float32(centered(SHARES)),
            "last_hidden_state": np.zeros((1, 2, 16), np.float32),
        },
    ),
    "rtdetr": ("rtdetr", {"logits": float32(logit(SCORES)), "pred_boxes": float32(centered(SHARES))}),
    "ssd": ("ssd", {"boxes": float32(SHARES), "scores": float32(np.hstack([np.full((2, 1), 0.5), SCORES]))}),
    "tf": (
        "tf",
        {
            "detection_boxes:0": float32(SHARES[:, [1, 0, 3, 2]]),
            "detection_classes:0": (LABELS + 1).astype(np.float32),
            "detection_scores:0": float32(BEST),
            "num_detections:0": np.array([2], np.float32),
        },
    ),
    "torchvision": ("torchvision", {"boxes": float32(BOXES), "labels": LABELS + 1, "scores": float32(BEST)}),
    "torchvision without a batch": (
        "torchvision",
        {"6379": float32(BOXES)[0], "6381": (LABELS + 1)[0], "6383": float32(BEST)[0]},
    ),
    "boxes": ("boxes", {"boxes": float32(BOXES), "labels": LABELS, "scores": float32(BEST)}),
}  # fmt: skip


def test_every_form_has_an_example() -> None:
    assert {form for form, _ in FORMS.values()} == set(FORMATS) - {"nanodet"}


@pytest.mark.parametrize(
    ("shape", "ratio", "corner"),
    [((50, 100), 0.64, (32, 0)), ((192, 64), 0.5, (0, 16)), ((37, 23), 96 / 37, (0, 2)), ((96, 64), 1.0, (0, 0))],
)
@pytest.mark.parametrize("example", FORMS)
def test_boxes_return_to_the_image(
    export: Callable[..., Path], example: str, shape: tuple[int, int], ratio: float, corner: tuple[int, int]
) -> None:
    form, outputs = FORMS[example]
    options = OnnxDetectorOptions(format=form, classes=NAMES, letterbox=True)
    detector = OnnxDetector(export(outputs), options)
    image = np.zeros((*shape, 3), np.uint8)
    found = detector.detect([image])[0]

    resized = [max(1, round(side * ratio)) for side in shape]
    scale = np.array([resized[1] / shape[1], resized[0] / shape[0]] * 2)
    expected = (BOXES - [corner[1], corner[0]] * 2) / scale
    expected = np.clip(expected, 0, [shape[1], shape[0]] * 2)
    inside = [i for i in range(2) if (expected[i, :2] < expected[i, 2:]).all()]
    np.testing.assert_allclose(found.boxes, expected[inside], atol=1e-4)
    np.testing.assert_allclose(found.scores, BEST[inside], atol=1e-5)
    assert [detector.classes[label] for label in found.labels] == [("bee", "cat")[i] for i in inside]


@pytest.mark.parametrize("example", FORMS)
def test_stretched_images(export: Callable[..., Path], example: str) -> None:
    form, outputs = FORMS[example]
    detector = OnnxDetector(export(outputs), OnnxDetectorOptions(format=form, classes=NAMES, letterbox=False))
    found = detector.detect([np.zeros((48, 128, 3), np.uint8)])[0]
    np.testing.assert_allclose(found.boxes, BOXES * [2, 0.5, 2, 0.5], atol=1e-4)


@pytest.mark.parametrize(
    ("example", "more"),
    [
        ("yolov5", {}), ("yolov8", {}), ("yolov8 transposed", {"classes": NAMES}), ("yolo-nms", {"classes": NAMES}),
        ("tf", {"classes": NAMES}), ("torchvision", {"classes": "coco91"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shapes", [True, False])
def test_forms_that_leave_no_doubt(
    export: Callable[..., Path], example: str, more: dict[str, Any], shapes: bool
) -> None:
    form, outputs = FORMS[example]
    path = export(outputs, shapes=shapes, metadata=None if more else {"names": str(dict(enumerate(NAMES)))})
    detector = OnnxDetector(path, OnnxDetectorOptions(**more))
    assert detector.describe()["format"] == form
    assert len(detector.detect([np.zeros((*SIZE, 3), np.uint8)])[0].scores) == 2


@pytest.mark.parametrize(("columns", "form"), [(80, "rtdetr"), (92, "detr"), (91, None)])
def test_transformers_are_told_by_their_classes(columns: int, form: str | None) -> None:
    outputs = {"logits": (1, 300, columns), "pred_boxes": (1, 300, 4)}
    assert guess_format(outputs, (640, 640), None, takes_sizes=False, coco_ids=False) == form


@pytest.mark.parametrize(
    ("shape", "classes", "form"),
    [
        ((1, 84, 8400), None, "yolov8"), ((1, 8400, 84), None, "yolov8"), ((1, 25200, 85), None, "yolov5"),
        ((1, 300, 6), None, "yolo-nms"), ((1, 6, 8400), None, "yolov8"), ((1, 25200, 6), None, "yolov5"),
        ((1, 8400, 85), 80, None), ((1, 8400, 85), 81, "yolov8"), ((1, 8400, 6), 1, None), ((1, 1000, 4), None, None),
    ],
)  # fmt: skip
def test_rows_are_told_by_their_number(shape: tuple[int, ...], classes: int | None, form: str | None) -> None:
    assert guess_format({"out": shape}, (640, 640), classes, takes_sizes=False, coco_ids=False) == form


@pytest.mark.parametrize("example", ["torchvision", "ssd", "rtdetr"])
def test_doubtful_outputs_list_the_forms(export: Callable[..., Path], example: str) -> None:
    outputs = FORMS[example][1]
    with pytest.raises(ModelError, match=r"do not tell their form; give format= one of yolov5 .*; nanodet") as caught:
        OnnxDetector(export(outputs))
    for name, values in outputs.items():
        assert f"{name} {'×'.join(map(str, values.shape))}" in str(caught.value)


def test_half_precision(export: Callable[..., Path]) -> None:
    outputs = {name: values.astype(np.float16) for name, values in FORMS["yolov8"][1].items()}
    detector = OnnxDetector(export(outputs, kind=TensorProto.FLOAT16), OnnxDetectorOptions(classes=NAMES))
    found = detector.detect([np.full((*SIZE, 3), 7, np.uint8)])[0]
    np.testing.assert_allclose(found.boxes, BOXES, atol=1e-4)  # whole and half numbers are exact
    np.testing.assert_allclose(found.scores, BEST, atol=1e-3)


def test_boxes_for_given_sizes(export: Callable[..., Path]) -> None:
    outputs = {"labels": LABELS, "boxes": float32(SHARES), "scores": float32(BEST)}
    detector = OnnxDetector(export(outputs, sizes=True), OnnxDetectorOptions(classes=NAMES, batch=2))
    images = [np.zeros((48, 128, 3), np.uint8), np.zeros((*SIZE, 3), np.uint8)]
    found = detector.detect(images)
    assert detector.describe()["format"] == "boxes"
    np.testing.assert_allclose(found[0].boxes, BOXES * [2, 0.5, 2, 0.5], atol=1e-4)
    np.testing.assert_allclose(found[1].boxes, BOXES, atol=1e-4)


def pixel_model(path: Path, dims: Sequence[int | str], kind: int, at: tuple[int, ...]) -> Path:
    """Write a YOLOv10-like model that returns one box whose score is a number of its input."""
    whole = [0, *at] if len(dims) == 4 else list(at)
    constants = {
        "start": np.array(whole, np.int64),
        "end": np.array(whole, np.int64) + 1,
        "three": np.array([1, 1, 1], np.int64),
        "box": np.array([[[0, 0, 9, 9]]], np.float32),
        "class": np.array([[[0]]], np.float32),
    }
    nodes = [
        helper.make_node("Slice", ["image", "start", "end"], ["pixel"]),
        helper.make_node("Cast", ["pixel"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["number", "three"], ["score"]),
        helper.make_node("Concat", ["box", "score", "class"], ["rows"], axis=2),
    ]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("image", kind, dims)],
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [1, 1, 6])],
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize(
    ("dims", "kind", "at", "options", "expected"),
    [
        ((1, 3, 8, 8), TensorProto.FLOAT, (0, 4, 4), {}, 40 / 255),
        ((1, 3, 8, 8), TensorProto.FLOAT, (0, 4, 4), {"channels": "bgr"}, 120 / 255),
        ((1, 8, 8, 3), TensorProto.FLOAT, (4, 4, 2), {}, 120 / 255),
        ((1, 3, 8, 8), TensorProto.FLOAT, (1, 4, 4), {"mean": (0, 0.1, 0), "std": (1, 0.5, 1)}, (80 / 255 - 0.1) * 2),
        ((1, 3, 8, 8), TensorProto.FLOAT, (1, 4, 4), {"scale": 100.0}, 0.8),
        ((1, 3, 8, 8), TensorProto.FLOAT, (1, 0, 4), {}, 114 / 255),
        ((1, 3, 8, 8), TensorProto.FLOAT, (1, 0, 4), {"pad": 60}, 60 / 255),
        ((1, 3, 8, 8), TensorProto.FLOAT, (1, 0, 4), {"center": False, "pad": 60}, 80 / 255),
        ((1, 3, 8, 8), TensorProto.FLOAT, (1, 7, 4), {"center": False, "pad": 60}, 60 / 255),
        ((1, 3, 8, 8), TensorProto.FLOAT, (1, 0, 4), {"letterbox": False}, 80 / 255),
        ((3, "H", "W"), TensorProto.FLOAT, (1, 0, 4), {"size": "native", "multiple": 1}, 80 / 255),
        ((1, 8, 8, 3), TensorProto.UINT8, (4, 4, 2), {"pad": 1}, None),
    ],
)  # fmt: skip
def test_what_the_model_is_fed(
    tmp_path: Path,
    dims: Sequence[int | str],
    kind: int,
    at: tuple[int, ...],
    options: dict[str, Any],
    expected: float | None,
) -> None:
    path = pixel_model(tmp_path / "net.onnx", dims, kind, at)
    detector = OnnxDetector(path, OnnxDetectorOptions(format="yolo-nms", classes=("thing",), **options))
    image = np.full((10, 20, 3), [40, 80, 120], np.uint8)
    if expected is None:  # 8-bit pixels are fed as they are, 120 of 0..255
        with pytest.raises(ModelError, match=r"net: scores reach 120, not 1 at most"):
            detector.detect([image])
    else:
        assert detector.detect([image])[0].scores == pytest.approx([expected], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [0.9, 0.8, 0.7, 0.6]), ({"nms": 0.2}, [0.9, 0.7, 0.6]), ({"nms": "none"}, [0.9, 0.85, 0.8, 0.7, 0.6]),
        ({"limit": 2}, [0.9, 0.8]), ({"score": 0.7}, [0.9, 0.8]),
    ],
)  # fmt: skip
def test_which_boxes_are_kept(export: Callable[..., Path], options: dict[str, Any], kept: list[float]) -> None:
    boxes = np.array([[0, 0, 40, 40], [1, 0, 40, 40], [20, 0, 60, 40], [0, 0, 40, 40], [70, 0, 90, 9], [0, 60, 9, 80]])
    scores = np.zeros((6, 3))
    scores[[0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 1, 2]] = [0.9, 0.85, 0.8, 0.7, 0.99, 0.6]  # the fifth lies outside
    rows = padded(np.hstack([centered(boxes), scores]), CELLS)
    detector = OnnxDetector(export({"out": rows.T[None]}), OnnxDetectorOptions(classes=NAMES, **options))
    assert detector.detect([np.zeros((*SIZE, 3), np.uint8)])[0].scores == pytest.approx(kept, abs=1e-6)


def test_yolo_gives_all_classes_of_a_box_and_detr_the_best(export: Callable[..., Path]) -> None:
    scores = np.array([[0.3, 0.5, 0.1]])
    rows = padded(np.hstack([centered(BOXES[:1]), scores]), CELLS)
    many = OnnxDetector(export({"out": rows.T[None]}), OnnxDetectorOptions(classes=NAMES))
    logits = float32(np.log(np.append(scores, [[0.1]], axis=1)))
    outputs = {"logits": logits, "pred_boxes": float32(centered(SHARES[:1]))}
    one = OnnxDetector(export(outputs, name="detr.onnx"), OnnxDetectorOptions(format="detr", classes=NAMES))
    image = np.zeros((*SIZE, 3), np.uint8)
    assert many.detect([image])[0].labels.tolist() == [1, 0, 2]
    assert one.detect([image])[0].labels.tolist() == [1]


READ_OTHERWISE: dict[str, tuple[Outputs, dict[str, Any]]] = {
    "logits": (
        {"out": padded(np.hstack([centered(BOXES), logit(SCORES)]), CELLS).T[None]},
        {"format": "yolov8", "activation": "sigmoid", "score": 0.55},
    ),
    "shares of the input": (
        {"out": ROWS_8.T[None] / [[[64], [96], [64], [96], [1], [1], [1]]]},
        {"units": "normalized"},
    ),
    "RT-DETR of Ultralytics": (
        {"out": float32(np.hstack([centered(SHARES), SCORES]))},
        {"format": "yolov8", "units": "normalized", "letterbox": False, "nms": "none"},
    ),
    "classes from 1": ({**FORMS["boxes"][1], "labels": LABELS + 1}, {"format": "boxes", "first": 1}),
    "classes from 0": ({**FORMS["torchvision"][1], "labels": LABELS}, {"format": "torchvision", "first": 0}),
    "softmax outside": (
        {
            "scores": float32(np.log(np.hstack([1 - SCORES.sum(axis=1, keepdims=True), SCORES]))),
            "boxes": float32(SHARES),
        },
        {"format": "ssd", "activation": "softmax"},
    ),
    "other names": (
        {"a": float32(BOXES), "b": float32(BEST), "c": LABELS + 1, "d": np.zeros((1, 7, 4), np.float32)},
        {"format": "torchvision", "outputs": ("a", "b", "c")},
    ),
}


@pytest.mark.parametrize("example", READ_OTHERWISE)
def test_outputs_read_otherwise(export: Callable[..., Path], example: str) -> None:
    outputs, options = READ_OTHERWISE[example]
    outputs = {name: v if v.dtype == np.int64 else v.astype(np.float32) for name, v in outputs.items()}
    detector = OnnxDetector(export(outputs), OnnxDetectorOptions(classes=NAMES, **options))
    found = detector.detect([np.zeros((*SIZE, 3), np.uint8)])[0]
    np.testing.assert_allclose(found.boxes, BOXES, atol=1e-4)
    np.testing.assert_allclose(found.scores, BEST, atol=1e-5)
    assert found.labels.tolist() == [1, 2]


@pytest.mark.parametrize("example", FORMS)
def test_nothing_detected(export: Callable[..., Path], example: str) -> None:
    form, outputs = FORMS[example]
    detector = OnnxDetector(export(outputs), OnnxDetectorOptions(format=form, classes=NAMES, score=0.95))
    found = detector.detect([np.zeros((5, 5, 3), np.uint8)])[0]
    assert (found.boxes.shape, found.scores.shape, found.labels.shape) == ((0, 4), (0,), (0,))
    assert detector.detect([]) == []


@pytest.mark.parametrize("form", ["torchvision", "detr", "yolov5"])
def test_no_rows_at_all(form: str) -> None:
    rows = {"torchvision": [(0, 4), (0,), (0,)], "detr": [(0, 4), (0, 4)], "yolov5": [(0, 8)]}[form]
    candidates = FORMATS[form].decode([np.zeros(shape, np.float32) for shape in rows], 3, SIZE)
    boxes, scores, labels = select(
        candidates, FORMATS[form], 3, activation="none", units="pixels", size=SIZE, threshold=0.1
    )
    assert (boxes.shape, scores.shape, labels.shape) == ((0, 4), (0,), (0,))


def test_coco_ids_become_the_80_classes(export: Callable[..., Path]) -> None:
    labels = np.array([[1, 90, 12, 17, 0, -1]], np.int64)
    outputs = {
        "boxes": np.tile(float32(BOXES[:1]), (1, 6, 1)),
        "labels": labels,
        "scores": np.full((1, 6), 0.5, np.float32),
    }
    detector = OnnxDetector(export(outputs), OnnxDetectorOptions(classes="coco91"))
    found = detector.detect([np.zeros((*SIZE, 3), np.uint8)])[0]
    # 12 is not used, 0 is background, -1 is filling
    assert [detector.classes[label] for label in found.labels] == ["person", "toothbrush", "cat"]
    assert len(coco_classes.CLASSES) == len(set(coco_classes.CLASSES)) == len(coco_classes.CATEGORY_IDS) == 80


@pytest.mark.parametrize(("columns", "classes", "source"), [(84, None, "coco"), (7, "file", "option")])
def test_where_names_come_from(
    export: Callable[..., Path], tmp_path: Path, columns: int, classes: str | None, source: str
) -> None:
    (tmp_path / "names.txt").write_text("\n".join(NAMES) + "\n", "utf-8")
    path = export({"out": np.zeros((1, columns, CELLS), np.float32)})
    spec = f"onnx:{path}" + (f",classes={tmp_path / 'names.txt'}" if classes else "")
    detector = load_detector(spec)
    assert isinstance(detector, Detector)
    assert detector.describe()["classes"] == source
    assert detector.classes == (NAMES if classes else coco_classes.CLASSES)


@pytest.mark.parametrize("names", ["{0: 'ant', 1: 'bee', 2: 'cat'}", "['ant', 'bee', 'cat']"])
def test_names_in_metadata(export: Callable[..., Path], names: str) -> None:
    assert OnnxDetector(export(FORMS["yolov8"][1], metadata={"names": names})).classes == NAMES


@pytest.mark.parametrize(
    "names",
    [
        "__import__('os').getcwd()",
        "{0: 'ant', 2: 'bee'}",
        "{0: 1, 1: 2, 2: 3}",
        "",
        "3",
        "{'a': 'b'}",
        "(" * 5000,
        "{0: ''}",
    ],
)
def test_names_in_metadata_that_are_none(export: Callable[..., Path], names: str) -> None:
    path = export(FORMS["yolov8"][1], metadata={"names": names})
    with pytest.raises(ModelError, match=r"metadata"):
        OnnxDetector(path, OnnxDetectorOptions(classes="metadata"))


@pytest.mark.parametrize(
    ("example", "spec", "message"),
    [
        ("yolov8", "classes=coco", r"as format=yolov8 the outputs count 3 classes, but classes from coco are 80"),
        ("yolov8", "", r"the outputs count 3 classes; say which they are: classes=coco \| coco91 \| FILE"),
        ("yolo-nms", "", r"the outputs do not say classes; say which they are"),
        ("yolov8", "classes=ant/ant/bee", r"the class 'ant' \(from option\) is there twice"),
        ("yolov8", "classes=metadata", r"the file has no metadata with names of classes"),
        ("yolov8", "classes=nowhere.txt", r"classes=nowhere.txt is not understood; allowed: coco91 \|"),
        ("yolov8", "format=yolo-nms", r"\(output0 1×7×126\) are not of format=yolo-nms"),
        ("yolov8", "format=detr", r"are not of format=detr"),
        ("yolov8", "format=yolov5,classes=ant/bee/cat", r"count 121 classes, but classes from option are 3"),
        ("yolov8", "format=yolov9", r"format=yolov9 is not understood; allowed: auto \| yolov5"),
        ("yolov8", "score=2", r"allowed: a number from 0 to 1"),
        ("yolov8", "nms=some", r"nms=some is not understood"),
        ("yolov8", "pad=256", r"allowed: a whole number from 0 to 255"),
        ("yolov8", "outputs=a//b", r"allowed: names of outputs separated by /"),
        ("yolov8", "size=64", r"size=64x64 does not fit the model's input \?×3×96×64"),
        ("ssd", "format=ssd,outputs=boxes", r"format=ssd needs outputs=boxes/scores; got 1 name"),
        ("ssd", "format=ssd,classes=ant/bee", r"count 4 classes \(the first is none\), but classes from option are 3"),
        ("ssd", "format=ssd,outputs=boxes/boxes", r"are not of format=ssd"),
        ("tf", "format=tf,activation=softmax", r"activation=softmax needs scores of all classes"),
    ],
)  # fmt: skip
def test_what_does_not_fit(export: Callable[..., Path], example: str, spec: str, message: str) -> None:
    path = export(FORMS[example][1])
    with pytest.raises(ModelError, match=message):
        load_detector(f"onnx:{path}" + (f",{spec}" if spec else "")).detect([np.zeros((9, 9, 3), np.uint8)])


@pytest.mark.parametrize(
    ("outputs", "options", "message"),
    [
        ({"out": ROWS_8.T[None] * 50}, {}, r"scores reach 45, not 1 at most; if they are logits give"),
        ({"out": np.full((1, 7, CELLS), np.nan, np.float32)}, {}, r"scores reach nan"),
        ({"out": np.full((1, 300, 6), 0.7, np.float32)}, {}, r"labels are not one whole number"),
        ({"out": np.ones((1, 300, 6), np.float32) * [9, 9, 5, 5, 1, 1]}, {}, r"boxes are not finite corners"),
        ({"out": np.ones((1, 300, 6), np.float32) * [1, 1, 5, 5, 1, 3]}, {}, r"of class 3, but by classes"),
        (
            {"logits": float32(logit(SCORES)), "pred_boxes": float32(SHARES[:1])},
            {"format": "rtdetr"},
            r"there are 1 boxes, but scores of 2",
        ),
        ({"out": np.zeros((1, 99, 7), np.float32)}, {"format": "nanodet"}, r"there are 99 cells, where strides"),
    ],
)  # fmt: skip
def test_outputs_that_are_no_detections(
    export: Callable[..., Path], outputs: Outputs, options: dict[str, Any], message: str
) -> None:
    outputs = {name: values.astype(np.float32) for name, values in outputs.items()}
    detector = OnnxDetector(export(outputs), OnnxDetectorOptions(classes=NAMES, **options))
    with pytest.raises(ModelError, match=rf"^net: .*{message}"):
        detector.detect([np.zeros((9, 9, 3), np.uint8)])


def test_a_batch_that_is_not_one(export: Callable[..., Path]) -> None:
    path = export(FORMS["torchvision without a batch"][1])
    detector = OnnxDetector(path, OnnxDetectorOptions(format="torchvision", classes="coco91", batch=2))
    image = np.zeros((9, 9, 3), np.uint8)
    with pytest.raises(
        ModelError, match=r"net: output '6379' is 2×4; for 2 image\(s\) an array of 3 axes was expected"
    ):
        detector.detect([image, image])


def test_names_that_do_not_exist(export: Callable[..., Path], tmp_path: Path) -> None:
    path = export(FORMS["ssd"][1])
    with pytest.raises(UnknownNameError, match=r"no output in .* 'box'; did you mean 'boxes'\? \(outputs=\)"):
        load_detector(f"onnx:{path},format=ssd,outputs=box/scores")
    with pytest.raises(UnknownNameError, match=r"no option of onnx models 'iou'"):
        load_detector(f"onnx:{path},iou=0.5")
    with pytest.raises(ModelError, match=r"no model file"):
        load_detector(f"onnx:{tmp_path / 'none.onnx'}")
    with pytest.raises(ModelError, match=r"write onnx:PATH"):
        load_detector("onnx")


def test_pixels_as_they_are_are_not_normalized(tmp_path: Path) -> None:
    path = pixel_model(tmp_path / "net.onnx", (1, 8, 8, 3), TensorProto.UINT8, (0, 0, 0))
    with pytest.raises(ModelError, match=r"takes 8-bit pixels as they are; leave mean="):
        OnnxDetector(path, OnnxDetectorOptions(format="yolo-nms", classes=("thing",), scale=255.0))


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_batches_and_sizes_do_not_change_boxes(export: Callable[..., Path], batch: int) -> None:
    path = export(FORMS["yolov8"][1])
    images = [np.zeros((20 + 9 * i, 30, 3), np.uint8) for i in range(5)]
    detector = OnnxDetector(path, OnnxDetectorOptions(classes=NAMES, batch=batch))
    alone = OnnxDetector(path, OnnxDetectorOptions(classes=NAMES))
    for image, found in zip(images, detector.detect(images), strict=True):
        np.testing.assert_array_equal(found.boxes, alone.detect([image])[0].boxes)


def test_the_description_has_every_convention(export: Callable[..., Path]) -> None:
    path = export(FORMS["yolov8"][1])
    described = load_detector(f"onnx:{path},classes=ant/bee/cat,name=mine").describe()
    left_out = {"multiple"}  # part of the size where it has a meaning
    assert set(OnnxDetectorOptions.__dataclass_fields__) - left_out <= set(described)
    assert (described["format"], described["letterbox"], described["pad"], described["nms"]) == (
        "yolov8",
        True,
        114,
        0.7,
    )
    assert str(path.parent) not in str(described)


@settings(deadline=None, max_examples=60)
@given(
    shape=st.tuples(st.integers(8, 90), st.integers(8, 90)),
    size=st.tuples(st.integers(16, 80), st.integers(16, 80)),
    letterbox=st.booleans(),
    center=st.booleans(),
)
def test_a_rectangle_is_found_where_it_was(
    shape: tuple[int, int], size: tuple[int, int], letterbox: bool, center: bool
) -> None:
    height, width = shape
    image = np.zeros((*shape, 3), np.uint8)
    box = [width // 4, height // 4, max(width // 4 + 1, 3 * width // 4), max(height // 4 + 1, 3 * height // 4)]
    image[box[1] : box[3], box[0] : box[2]] = 255
    pixels, placement = place_image(image, size, letterbox=letterbox, pad=0, center=center, kernel="nearest")
    assert pixels.shape == (*size, 3)
    rows, columns = np.flatnonzero(pixels[:, :, 0].any(axis=1)), np.flatnonzero(pixels[:, :, 0].any(axis=0))
    if not len(rows) or not len(columns):
        return  # shrunk away
    seen = np.array([[columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]], np.float64)
    pixel = [width / placement.resized[1], height / placement.resized[0]] * 2
    assert (np.abs(placement.to_image(seen)[0] - box) <= np.add(pixel, 1e-9)).all()


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 40), iou=st.sampled_from([0.0, 0.3, 0.6, 1.0]))
def test_suppression_is_greedy_within_a_class(seed: int, count: int, iou: float) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.integers(-30, 30, (count, 2))
    boxes = np.hstack([corners, corners + rng.integers(1, 40, (count, 2))]).astype(np.float32)
    scores = rng.integers(0, 5, count).astype(np.float32) / 5  # many are equal
    labels = rng.integers(0, 3, count)

    def overlap(a: np.ndarray, b: np.ndarray) -> float:
        sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
        shared = float(np.prod(np.maximum(sides, 0)))
        return shared / float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)

    expected: list[int] = []
    for i in sorted(range(count), key=lambda i: -scores[i]):
        if all(labels[i] != labels[j] or overlap(boxes[i], boxes[j]) <= iou + 1e-9 for j in expected):
            expected.append(i)
    assert suppress(boxes, scores, labels, iou=iou).tolist() == expected
    assert sorted(suppress(boxes, scores, labels, iou=None)) == list(range(count))
