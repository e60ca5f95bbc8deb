"""A network of a few weights for tests of the training loop."""

from __future__ import annotations

from typing import Any

import torch

from crypsis.models.robust_cod_lite import NetworkOptions

SMALL: dict[str, Any] = {"epochs": 3, "batch": 4, "size": 64, "learning_rate": 0.01, "encoder": "efficientnet-lite0"}


class Tiny(torch.nn.Module):
    """Stands for the network: same options, same outputs, 100 times faster."""

    def __init__(self, options: NetworkOptions, *, seed: int = 0) -> None:
        super().__init__()
        self.options = options
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.body = torch.nn.Sequential(
                torch.nn.Conv2d(3, 6, 5, padding=2), torch.nn.BatchNorm2d(6), torch.nn.SiLU()
            )
            self.segmentation = torch.nn.Conv2d(6, 1, 1)
            if options.uncertainty:
                self.uncertainty = torch.nn.Conv2d(6, 1, 1)

    def forward(self, images: Any) -> Any:
        features = self.body(images)
        return self.segmentation(features), self.uncertainty(features) if self.options.uncertainty else None


def without_batch_norm(options: NetworkOptions, *, seed: int = 0) -> Tiny:
    """Return such a network in which no image looks at another."""
    network = Tiny(options, seed=seed)
    network.body[1] = torch.nn.Identity()
    return network
