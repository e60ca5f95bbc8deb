"""Writing a torch network as an ONNX file: any number of images of any size, with weights in 32, 16 or 8 bits.

All precisions compute in float32; the narrow ones keep the weights of convolutions and matrix products small in the
file, and onnxruntime widens them once, when it opens it.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..errors import ModelError, UnknownNameError
from ..io import atomic_path
from .foreign import import_extra, told

__all__ = ["PRECISIONS", "export_onnx", "inferring", "largest_difference"]

PRECISIONS = ("fp32", "fp16", "int8")
"""How weights may be stored. `fp16` rounds them to half precision, `int8` to 255 steps for each output channel."""

_OPSET = 17
_SMALLEST = 1024
"""Weights with fewer numbers stay as they are: biases, and what rounding would cost more than it saves."""


def export_onnx(
    network: nn.Module,
    path: Path,
    *,
    example: Tensor,
    outputs: Sequence[str],
    input_name: str = "image",
    dynamic: Sequence[int] = (0, 2, 3),
    dynamic_outputs: Sequence[int] | None = None,
    precision: str = "fp32",
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a network as one ONNX file, whole or not at all.

    Args:
        network: takes one tensor and returns as many as there are `outputs`; it is exported as it infers.
        path: the file.
        example: an input of the network; the sides that are not `dynamic` are fixed to its.
        outputs: names.
        input_name: name of the input.
        dynamic: axes of the input that may have any length.
        dynamic_outputs: axes of every output that may; those of the input if None.
        precision: one of `PRECISIONS`.
        metadata: JSON values that are kept in the file under the key `crypsis`.

    Raises:
        UnknownNameError: a precision that is not known.
        ModelError: the network cannot be exported, or its weights cannot be stored in this precision.
        MissingDependencyError: onnx is not installed.
        IncompleteError: the file cannot be written.
    """
    if precision not in PRECISIONS:
        raise UnknownNameError.among("precision", precision, PRECISIONS)
    onnx = import_extra("onnx", "torch")
    axes = {axis: f"axis{axis}" for axis in dynamic}
    output_axes = axes if dynamic_outputs is None else {axis: f"axis{axis}" for axis in dynamic_outputs}
    with atomic_path(path, durable=True) as temporary:
        try:
            with warnings.catch_warnings(), inferring(network), torch.no_grad():
                warnings.simplefilter("ignore")  # that there is a newer exporter, which needs one more package
                torch.onnx.export(
                    network,
                    (example,),
                    str(temporary),
                    input_names=[input_name],
                    output_names=list(outputs),
                    dynamic_axes={input_name: axes, **dict.fromkeys(outputs, output_axes)},
                    opset_version=_OPSET,
                    dynamo=False,
                )
        except OSError:
            raise  # of the file system
        except Exception as error:
            raise ModelError(f"{type(network).__name__} cannot be exported to ONNX ({told(error)}).") from error
        model = onnx.load(temporary)
        if precision != "fp32":
            _store_narrow(onnx, model, precision)
        if metadata:
            onnx.helper.set_model_props(model, {"crypsis": json.dumps(dict(metadata), allow_nan=False)})
        onnx.checker.check_model(model)
        temporary.write_bytes(model.SerializeToString(deterministic=True))


@contextlib.contextmanager
def inferring(network: nn.Module) -> Iterator[None]:
    """Put a network and its parts into the mode for inference, and each back into its own afterwards."""
    before = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


def _store_narrow(onnx: Any, model: Any, precision: str) -> None:
    """Replace large weights by narrow ones and the nodes that widen them; changes `model`."""
    graph = model.graph
    weighted = {node.input[1] for node in graph.node if node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul")}
    kept, nodes = [], []
    for stored in graph.initializer:
        values = onnx.numpy_helper.to_array(stored)
        if stored.name not in weighted or values.dtype != np.float32 or values.size < _SMALLEST:
            kept.append(stored)
            continue
        if not np.isfinite(values).all() or np.abs(values).max() > np.finfo(np.float16).max:
            raise ModelError(f"The weights {stored.name} do not fit {precision}; export as fp32.")
        narrow, wide = f"{stored.name}.{precision}", stored.name
        if precision == "fp16":
            kept.append(onnx.numpy_helper.from_array(values.astype(np.float16), narrow))
            nodes.append(onnx.helper.make_node("Cast", [narrow], [wide], to=onnx.TensorProto.FLOAT))
        else:
            steps, scale = _in_steps(values)
            kept.append(onnx.numpy_helper.from_array(steps, narrow))
            kept.append(onnx.numpy_helper.from_array(scale, f"{wide}.scale"))
            # not DequantizeLinear, which onnxruntime would compute anew for every image
            nodes.append(onnx.helper.make_node("Cast", [narrow], [f"{wide}.steps"], to=onnx.TensorProto.FLOAT))
            nodes.append(onnx.helper.make_node("Mul", [f"{wide}.steps", f"{wide}.scale"], [wide]))
    nodes.extend(graph.node)
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(kept)
    graph.node.extend(nodes)


def _in_steps(values: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return whole numbers from -127 to 127, and by what to multiply them: one number for each first index."""
    largest = np.abs(values).max(axis=tuple(range(1, values.ndim)), keepdims=True)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    return np.rint(values / scale).astype(np.int8), scale


def largest_difference(network: nn.Module, path: Path, images: Tensor) -> float:
    """Return the largest absolute difference between what a network and its ONNX file say of the same input.

    Args:
        network: as it was given to `export_onnx`.
        path: the file.
        images: what both are fed.

    Raises:
        ModelError: the file is not usable.
    """
    from .onnx_session import open_session

    with inferring(network), torch.inference_mode():
        returned = network(images)
    expected = [returned] if isinstance(returned, Tensor) else returned
    session = open_session(path, "cpu")
    found = session.run(None, {session.get_inputs()[0].name: images.cpu().numpy()})
    return max(float(np.abs(theirs.cpu().numpy() - ours).max()) for theirs, ours in zip(expected, found, strict=True))
