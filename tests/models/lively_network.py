"""RobustCODLite without training whose maps still differ from pixel to pixel."""

from __future__ import annotations

import pytest
import torch

from crypsis.models.robust_cod_lite import NetworkOptions, RobustCodLite


def build(encoder: str = "efficientnet-lite0", seed: int = 0, **options: bool) -> RobustCodLite:
    """Return a network with random weights; skip the test where its encoder cannot be had."""
    if encoder == "efficientnet-b0":
        pytest.importorskip("transformers", reason="needs the extra transformers")
    return RobustCodLite(NetworkOptions(encoder=encoder, **options), seed=seed)


def lively(encoder: str = "efficientnet-lite0") -> RobustCodLite:
    """Return a network whose normalizations have met some input, with wide heads."""
    network = build(encoder)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = None  # the mean over all that it meets
        network.train()(scene(4, 128, 128))
        for head in (network.segmentation, network.uncertainty):
            head.weight *= 3
    return network.eval()


def scene(count: int, height: int, width: int, *, seed: int = 0) -> torch.Tensor:
    """Return images of blobs under some noise: on noise alone, a random network amplifies the last bit of a number."""
    blobs = torch.nn.functional.interpolate(noise(count, 3, 16, 16, seed=seed), size=(height, width), mode="bilinear")
    return blobs + noise(count, 3, height, width, seed=seed + 1) / 4


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return normal noise."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
