"""The processes that train one network together, each on its share of every batch; most often it is one alone.

`torchrun --nproc-per-node 2 -m crypsis train …` starts several, on one machine or many, and tells each who it is. Each
holds the whole network, and once a step their gradients are added (torch.distributed: NCCL on GPUs, Gloo on CPUs).
`Team.shares` weights them so that the sum is the gradient of the whole batch. Batch norm makes the difference: on GPUs
it sees the images that all processes work on at once (SyncBatchNorm); on CPUs, for which torch has no such, it sees
those of its own process, and what it remembers is averaged over the processes at the end of each epoch.

torch's wrapper DistributedDataParallel adds gradients while a backward pass runs, and every weight must take part in
that pass. With the clean view first, the last of a step's passes leaves the head of the uncertainty out, and the
wrapper stops with an error. Added after the last pass, gradients need none of its conditions, and so few weights take
little time: 5.25 million over Gloo 0.02 s, where a step of two processes takes seconds.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..errors import IncompleteError, InputError
from ..models.foreign import told

__all__ = ["Piece", "Team", "team_of"]

PATIENCE = timedelta(minutes=10)
"""How long a process waits for the others."""

_VARIABLES = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True)
class Piece:
    """Images of a batch that a process works on at once.

    Attributes:
        places: in the whole batch, from 0; at least one.
        weight: which part of the mean over the whole batch the mean over them makes up.
    """

    places: tuple[int, ...]
    weight: float


@dataclass(frozen=True)
class Team:
    """One process among those that train together.

    Attributes:
        device: where it computes.
        rank: which it is, from 0; the first one writes.
        size: how many there are.
    """

    device: torch.device
    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def shares(self, count: int, pieces: int) -> list[Piece]:
        """Tell which images of a batch this process works on.

        Args:
            count: images in the batch.
            pieces: how many pieces it is worked through in, one after the other, each by all processes.

        Returns:
            One for each piece of the batch. Where a piece has fewer images than there are processes, several work on
            the same image, each for a part of its weight, so that every process does the same number of passes.
        """
        found = []
        for piece in np.array_split(np.arange(count), min(pieces, count)):
            groups = np.array_split(piece, min(self.size, len(piece)))
            mine = groups[self.rank % len(groups)]
            sharing = len(range(self.rank % len(groups), self.size, len(groups)))
            found.append(Piece(tuple(mine.tolist()), len(mine) / count / sharing))
        return found

    def prepare(self, network: nn.Module) -> nn.Module:
        """Let the batch norm of a network see the images of all processes, where torch can do that."""
        if self.size > 1 and self.device.type == "cuda":
            return nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-any-return,no-untyped-call]
        return network

    def add(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by their sums over all processes, all at once; they are of one type on one device."""
        tensors = list(tensors)
        if self.size > 1 and tensors:
            summed = torch.cat([tensor.flatten() for tensor in tensors])
            with _in_touch():
                dist.all_reduce(summed)
            parts = torch.split(summed, [tensor.numel() for tensor in tensors])
            for tensor, part in zip(tensors, parts, strict=True):
                tensor.copy_(part.view_as(tensor))

    def add_gradients(self, network: nn.Module) -> None:
        """Give every process the sum of all gradients of a network."""
        self.add(parameter.grad for parameter in network.parameters() if parameter.grad is not None)

    @torch.no_grad()
    def average_statistics(self, network: nn.Module) -> None:
        """Give every process the mean of what batch norm remembers."""
        names = "running_mean", "running_var"
        statistics = [buffer for name, buffer in network.named_buffers() if name.rpartition(".")[2] in names]
        self.add(statistics)
        for buffer in statistics if self.size > 1 else ():
            buffer /= self.size

    def sums(self, values: Sequence[float]) -> list[float]:
        """Return the sums of numbers over all processes; alone, the numbers themselves."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        self.add([tensor])
        return tensor.tolist()

    def wait(self) -> None:
        """Return when all processes have come here."""
        self.sums([0.0])


@contextlib.contextmanager
def team_of(device: str | None) -> Iterator[Team]:
    """Join the processes that torchrun started, or be alone where it did not.

    Args:
        device: as torch names it, or None for a GPU where there is one; of several processes each takes its own.

    Raises:
        InputError: the environment variables of torchrun do not belong together, or there is no such device for each.
        IncompleteError: the other processes cannot be reached.
    """
    size = _number("WORLD_SIZE") if os.environ.get("WORLD_SIZE") else 1
    if size == 1:
        yield Team(_usable(device or ("cuda" if torch.cuda.is_available() else "cpu")))
        return
    missing = [name for name in _VARIABLES if not os.environ.get(name)]
    if missing:
        raise InputError(
            f"WORLD_SIZE is {size}, but there is no {' and no '.join(missing)}; start several processes with torchrun "
            "--nproc-per-node N -m crypsis train …, or unset WORLD_SIZE to train with one."
        )
    rank, local, _ = (_number(name) for name in ("RANK", "LOCAL_RANK", "MASTER_PORT"))
    if rank >= size:
        raise InputError(f"RANK is {rank}, which is none of the {size} processes of WORLD_SIZE, counted from 0.")
    if device not in (None, "cpu", "cuda"):
        raise InputError(f"Of several processes each takes a GPU of its own; the device is cuda or cpu, not {device}.")
    at = torch.device("cpu")
    if device == "cuda" or (device is None and torch.cuda.is_available()):
        if local >= torch.cuda.device_count():
            raise InputError(
                f"Process {rank} is number {local + 1} on this machine, where torch finds {torch.cuda.device_count()} "
                "GPUs; start no more processes than GPUs (torchrun --nproc-per-node), or train on the device cpu."
            )
        at = torch.device("cuda", local)
        torch.cuda.set_device(at)
    try:
        dist.init_process_group("nccl" if at.type == "cuda" else "gloo", rank=rank, world_size=size, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise IncompleteError(
            f"Process {rank} of {size} could not reach the others at {os.environ['MASTER_ADDR']}:"
            f"{os.environ['MASTER_PORT']} ({told(error)}); start all of them with torchrun."
        ) from error
    try:
        yield Team(at, rank, size)
    finally:
        dist.destroy_process_group()


@contextlib.contextmanager
def _in_touch() -> Iterator[None]:
    """Say what happened when the others do not answer."""
    try:
        yield
    except RuntimeError as error:
        reason = told(error).partition(". ")[0]  # advice on torch's own code follows
        raise IncompleteError(
            f"The other processes of the training do not answer ({reason}); one of them has ended, and says why. "
            "The last whole epoch is kept; the same command continues."
        ) from error


def _number(name: str) -> int:
    text = os.environ[name]
    if not text.isdecimal() or (name == "WORLD_SIZE" and int(text) == 0):
        raise InputError(f"The environment variable {name} is {text!r}, not a number as torchrun sets it.")
    return int(text)


def _usable(device: str) -> torch.device:
    try:
        at = torch.device(device)
        torch.empty(1, device=at)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"torch cannot use the device {device!r} here, where it finds {torch.cuda.device_count()} GPUs; give cpu, "
            "or cuda:N with N counted from 0."
        ) from error
    return at
