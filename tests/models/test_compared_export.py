"""What the exports of the compared models need beyond `export_onnx`; whole models in tests/cli."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("onnx", reason="needs onnx")

from crypsis.models import compared_export  # noqa: E402
from crypsis.models.compared import ComparedModel, build_network  # noqa: E402
from crypsis.models.network_export import export_onnx, largest_difference  # noqa: E402
from crypsis.models.zoomnet import _shrink  # noqa: E402


class Scales(torch.nn.Module):  # type: ignore[misc]
    """Stands for ZoomNet: takes three sizes."""

    def forward(self, large: torch.Tensor, medium: torch.Tensor, small: torch.Tensor) -> torch.Tensor:
        shrunk = _shrink(large, (medium.shape[2], medium.shape[3])) + medium
        return (shrunk + torch.nn.functional.interpolate(small, scale_factor=2.0)).sum(dim=1, keepdim=True)


@pytest.mark.parametrize("size", [(1, 6, 6), (2, 40, 31), (3, 7, 90)])
def test_sizes_are_made_inside(size: tuple[int, int, int], tmp_path: Path) -> None:
    network = compared_export._Zooming(Scales(), (18, 12, 6))
    path = tmp_path / "scales.onnx"
    export_onnx(network, path, example=torch.zeros(2, 3, 18, 50), outputs=["map"], dynamic_outputs=(0,))
    count, height, width = size
    images = torch.randn(count, 3, height, width, generator=torch.Generator().manual_seed(0))
    assert network(images).shape == (count, 1, 12, 12)
    assert largest_difference(network, path, images) < 1e-3  # of noise, at places known to seven digits


def test_another_kernel_for_maps_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save(build_network("dgnet-s").state_dict(), tmp_path / "net.pth")
    model = ComparedModel("dgnet-s", tmp_path / "net.pth")
    model.recipe = dataclasses.replace(model.recipe, map_resize="bilinear-antialias")
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    export = compared_export.export_compared(model, tmp_path / "net.onnx", [image])
    assert export.notes == (
        "Maps of images that are smaller than 352 pixels differ a little: dgnet-s brings them to size by "
        "bilinear-antialias, onnx by bilinear.",
    )
    assert export.difference < 1e-5
    assert export.specification.startswith(f"onnx:{tmp_path / 'net.onnx'},activation=sigmoid")


@pytest.mark.skipif("CRYPSIS_SLOW" not in os.environ, reason="takes long; CRYPSIS_SLOW=1 runs it")
def test_zoomnet(tmp_path: Path) -> None:
    torch.save(build_network("zoomnet").state_dict(), tmp_path / "net.pth")
    image = np.random.default_rng(0).integers(0, 256, (400, 620, 3), dtype=np.uint8)
    model = ComparedModel("zoomnet", tmp_path / "net.pth")
    export = compared_export.export_compared(model, tmp_path / "net.onnx", [image])
    assert export.specification.endswith(",activation=sigmoid,order=activate-then-resize,size=native,multiple=1")
    assert export.difference < 1e-5
