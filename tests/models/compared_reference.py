"""What the official code of the compared models says, and the weights and images it said it of."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from crypsis.models.compared import COMPARED, build_network

DATA = Path(__file__).parents[1] / "data"


def published_keys(kind: str) -> dict[str, Any]:
    """Return `parameters` and `keys`, name → shape."""
    return json.loads((DATA / f"keys_{kind}.json").read_text())


def filled(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return weights of the same names and shapes by the rule in compared_reference.json, in float64."""
    weights = {}
    for key, value in state.items():
        shape, last, draws = tuple(value.shape), key.rsplit(".", 1)[-1], np.random.RandomState(zlib.crc32(key.encode()))
        if last == "num_batches_tracked":
            numbers = np.zeros(shape, np.int64)
        elif last == "running_mean":
            numbers = 0.1 * draws.standard_normal(shape)
        elif last == "running_var":
            numbers = draws.uniform(0.5, 1.5, shape)
        elif len(shape) >= 2:
            numbers = draws.standard_normal(shape) * np.sqrt(1 / np.prod(shape[1:]))
        elif last in ("gamma", "alpha", "beta"):
            numbers = draws.uniform(0.4, 0.6, shape)
        elif key.endswith("bn3.weight"):
            numbers = draws.uniform(0.1, 0.3, shape)
        elif last == "weight":
            numbers = draws.uniform(0.8, 1.2, shape)
        else:
            numbers = 0.05 * draws.standard_normal(shape)
        weights[key] = torch.as_tensor(numbers)
    return weights


def normal_images(side: int) -> torch.Tensor:
    """Return the input of the rule: float64 1×3×side×side."""
    return torch.from_numpy(np.random.RandomState(0).standard_normal((1, 3, side, side)))


def check_keys(kind: str) -> None:
    """Compare names, their order, shapes and the number of parameters with those of the official network."""
    network, published = build_network(kind, device="meta"), published_keys(kind)
    state = network.state_dict()
    assert list(state) == list(published["keys"])
    assert {key: list(value.shape) for key, value in state.items()} == published["keys"]
    assert all(
        value.dtype == (torch.int64 if key.endswith("num_batches_tracked") else torch.float32)
        for key, value in state.items()
    )
    assert sum(parameter.numel() for parameter in network.parameters()) == published["parameters"]
    assert COMPARED[kind].parameters == published["parameters"]


def check_outputs(kind: str, *, tolerance: float = 1e-9) -> None:
    """Compare all outputs with those of the official network."""
    network = build_network(kind).double().eval()
    network.load_state_dict(filled(network.state_dict()))
    expected = json.loads((DATA / "compared_reference.json").read_text())["models"][kind]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            returned = network(*map(normal_images, expected["input_sizes"].values()))
    finally:
        torch.set_num_threads(threads)
    outputs = [returned] if isinstance(returned, torch.Tensor) else returned
    for output, said in zip(outputs, expected["outputs"], strict=True):
        assert list(output.shape) == said["shape"]
        values = output.numpy().ravel()
        assert values[said["idx"]] == pytest.approx(said["val"], abs=tolerance)
        for statistic in ("mean", "std", "min", "max"):
            assert getattr(values, statistic)() == pytest.approx(said[statistic], abs=tolerance)
