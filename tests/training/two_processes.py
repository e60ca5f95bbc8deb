"""What each of two processes does in the tests of `crypsis.training.team`: python two_processes.py CASE SET OUT."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_network import SMALL, Tiny, without_batch_norm

from crypsis.datasets.masks import open_masks
from crypsis.errors import IncompleteError, PlanChangedError
from crypsis.models.robust_cod_lite import NetworkOptions
from crypsis.training import loop
from crypsis.training.data import Batch
from crypsis.training.losses import total_loss
from crypsis.training.settings import Settings
from crypsis.training.team import Team, team_of

RANK = int(os.environ["RANK"])
OPTIONS = NetworkOptions(encoder="efficientnet-lite0")


def gradients(settings: Settings, images: int, team: Team) -> tuple[list[Any], dict[str, float]]:
    """Return the gradients and losses of one step, with batch norm that looks at no other image."""
    rng = np.random.default_rng(0)
    clean, corrupted = rng.integers(0, 256, (2, images, 16, 16, 3), dtype=np.uint8)
    masks = rng.random((images, 16, 16)) < 0.3
    share = team.shares(images, settings.accumulate)
    mine = [place for piece in share for place in piece.places]
    network = Tiny(OPTIONS).eval()
    terms = loop._accumulate(
        network, Batch(clean[mine], corrupted[mine], masks[mine]), share, settings, team, torch.float32,
        torch.amp.GradScaler("cpu", enabled=False),
    )  # fmt: skip
    return [parameter.grad for parameter in network.parameters()], terms


def same_gradients(ports: Iterator[str]) -> None:
    with team_of("cpu") as team:
        assert (team.rank, team.size, team.leads) == (RANK, 2, RANK == 0)
        for images, pieces, first in itertools.product((8, 7, 3, 2, 1), (1, 2, 3), (False, True)):
            settings = Settings(accumulate=pieces, clean_view_first=first)
            alone, terms = gradients(settings, images, Team(torch.device("cpu")))
            together, terms_of_both = gradients(settings, images, team)
            assert terms.keys() == terms_of_both.keys()
            assert all(abs(terms[name] - terms_of_both[name]) < 1e-6 for name in terms), (images, pieces, first)
            for one, two in zip(alone, together, strict=True):
                assert torch.allclose(one, two, rtol=1e-5, atol=1e-7), (images, pieces, first)
        network = torch.nn.BatchNorm2d(2)
        network.running_mean.copy_(torch.tensor([1.0, 10.0]) * (1 + 2 * RANK))
        team.average_statistics(network)
        assert network.running_mean.tolist() == [2, 20]
        assert network.num_batches_tracked == 0


def trainings(ports: Iterator[str]) -> None:
    dataset, out = open_masks(sys.argv[2], split="train"), Path(sys.argv[3])
    settings = Settings(**{**SMALL, "batch": 3})  # the last batch of an epoch is of one image

    def train(name: str, settings: Settings = settings, **more: Any) -> Any:
        os.environ["MASTER_PORT"] = next(ports)
        return loop.train(dataset, out / name, settings, device="cpu", workers=1, **more)

    if RANK:  # writes nothing
        loop.save_checkpoint = loop._save = loop._draw_curves = loop.write_atomic = None
    whole = train("whole")

    def interrupt(step: int, steps: int) -> None:
        assert RANK == 0
        if step == 7:
            raise KeyboardInterrupt

    with pytest.raises(IncompleteError if RANK else KeyboardInterrupt, match="do not answer" if RANK else None):
        train("cut", progress=interrupt)
    told: list[int] = []
    cut = train("cut", progress=lambda step, _: told.append(step))
    assert told == ([*range(5, 13)] if RANK == 0 else [])
    assert (cut.epoch, cut.dice) == (whole.epoch, whole.dice)

    def diverge(terms: dict[str, Any]) -> Any:
        return total_loss(terms) * (float("nan") if RANK == 1 else 1)

    loop.total_loss = diverge
    with pytest.raises(IncompleteError, match="not a number at step 1 "):
        train("diverged")
    loop.total_loss = total_loss
    with pytest.raises(
        IncompleteError if RANK else PlanChangedError, match="do not answer" if RANK else "batch: 3 there, 4 now"
    ):
        train("whole", Settings(**{**SMALL, "batch": 4}))
    loop.RobustCodLite = without_batch_norm
    train("plain")


if __name__ == "__main__":
    torch.set_num_threads(1)
    loop.RobustCodLite = Tiny
    {"gradients": same_gradients, "trainings": trainings}[sys.argv[1]](iter(os.environ["PORTS"].split(",")))
