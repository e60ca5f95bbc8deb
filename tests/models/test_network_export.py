from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")
onnx = pytest.importorskip("onnx", reason="needs onnx")

from lively_network import lively, noise, scene  # noqa: E402

from crypsis.errors import ModelError, UnknownNameError  # noqa: E402
from crypsis.models.network_export import PRECISIONS, export_onnx, largest_difference  # noqa: E402
from crypsis.models.onnx_session import open_session  # noqa: E402
from crypsis.models.robust_cod_lite import (  # noqa: E402
    ENCODERS,
    OUTPUTS,
    Maps,
    NetworkOptions,
    RobustCodLite,
    export_network,
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = torch.nn.Conv2d(3, 64, 3, padding=1)
        self.head = torch.nn.Conv2d(64, 1, 1)
        with torch.no_grad():
            self.kernel.weight.copy_(noise(64, 3, 3, 3) / 5)
            self.head.weight.copy_(noise(1, 64, 1, 1, seed=1) / 8)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.kernel(images)))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_parity(encoder: str, tmp_path: Path) -> None:
    network, path = lively(encoder), tmp_path / "net.onnx"
    export_network(network, path, precision="fp32", meta={"epoch": 2})
    maps = Maps(network)
    for shape in ((1, 33, 47), (3, 64, 64), (1, 128, 96)):
        images = scene(*shape, seed=5)
        with torch.inference_mode():
            assert all(output.std() > 0.1 for output in maps(images))
        assert largest_difference(maps, path, images) <= 1e-4
    session = open_session(path, "cpu")
    assert [node.name for node in session.get_outputs()] == list(OUTPUTS)
    about = json.loads(session.get_modelmeta().custom_metadata_map["crypsis"])
    assert about == {"options": network.options.to_dict(), "meta": {"epoch": 2}}


@pytest.mark.parametrize(("precision", "share", "difference"), [("fp16", 0.51, 1e-2), ("int8", 0.27, 0.15)])
def test_narrow_weights(precision: str, share: float, difference: float, tmp_path: Path) -> None:
    network = lively()
    for name in ("fp32", precision):
        export_network(network, tmp_path / f"{name}.onnx", precision=name)
    whole, narrow = ((tmp_path / f"{name}.onnx").stat().st_size for name in ("fp32", precision))
    assert narrow < share * whole
    found = largest_difference(Maps(network), tmp_path / f"{precision}.onnx", scene(1, 96, 64, seed=5))
    assert 0 < found < difference


def test_int8_is_within_half_a_step_of_each_channel(tmp_path: Path) -> None:
    network, path = Small(), tmp_path / "net.onnx"
    export_onnx(network, path, example=noise(1, 3, 8, 8), outputs=["map"], precision="int8")
    stored = {one.name: onnx.numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}
    assert stored["kernel.weight.int8"].dtype == np.int8
    assert stored["head.weight"].dtype == np.float32  # too small to matter
    steps, scale = stored["kernel.weight.int8"].astype(np.float32), stored["kernel.weight.scale"]
    assert scale.shape == (64, 1, 1, 1)
    weights = network.kernel.weight.detach().numpy()
    assert (np.abs(steps * scale - weights) <= scale * 0.5001).all()
    assert (np.abs(steps).max(axis=(1, 2, 3)) == 127).all()


def test_a_channel_of_zeros_stays_zero(tmp_path: Path) -> None:
    network, path = Small(), tmp_path / "net.onnx"
    with torch.no_grad():
        network.kernel.weight[5] = 0
    export_onnx(network, path, example=noise(1, 3, 8, 8), outputs=["map"], precision="int8")
    assert largest_difference(network, path, noise(2, 3, 9, 7)) < 0.05


def test_the_same_network_gives_the_same_bytes_and_stays_as_it_is(tmp_path: Path) -> None:
    network = Small().train()
    network.head.eval()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    for name in ("a", "b"):
        export_onnx(network, tmp_path / name, example=noise(1, 3, 8, 8), outputs=["map"], precision="fp16")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert [network.training, network.kernel.training, network.head.training] == [True, True, False]
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_fixed_sides(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    export_onnx(Small(), path, example=noise(1, 3, 8, 10), outputs=["map"], input_name="pixels", dynamic=(0,))
    (node,) = open_session(path, "cpu").get_inputs()
    assert (node.name, node.shape[1:]) == ("pixels", [3, 8, 10])
    assert isinstance(node.shape[0], str)


def test_weights_beyond_half_precision_are_refused(tmp_path: Path) -> None:
    network = Small()
    with torch.no_grad():
        network.kernel.weight[0, 0, 0, 0] = 1e5
    with pytest.raises(ModelError, match=r"kernel\.weight do not fit fp16; export as fp32"):
        export_onnx(network, tmp_path / "net.onnx", example=noise(1, 3, 8, 8), outputs=["map"], precision="fp16")
    assert list(tmp_path.iterdir()) == []


def test_unknown_precision(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'fp16'"):
        export_network(RobustCodLite(NetworkOptions(encoder="efficientnet-lite0")), tmp_path / "n", precision="f16")
    assert PRECISIONS == ("fp32", "fp16", "int8")


def test_a_network_that_cannot_be_exported(tmp_path: Path) -> None:
    class Odd(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("not today")

    with pytest.raises(ModelError, match=r"Odd cannot be exported to ONNX \(RuntimeError: not today\)"):
        export_onnx(Odd(), tmp_path / "net.onnx", example=noise(1, 3, 8, 8), outputs=["map"])
    assert list(tmp_path.iterdir()) == []
