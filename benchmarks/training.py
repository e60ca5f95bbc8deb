"""What a training step of RobustCODLite costs, and whether loading images keeps up with it.

    python benchmarks/training.py --data TRAIN [--size 384] [--batch 8] [--steps 2] [--device cpu]

Prints, for the clean view alone, both views, and the clean view first, the CPU time of a step (one thread) and the peak
memory of its process; on a GPU, wall time and the peak of its allocations. Then the time of loading and degrading an
image, and the time of steps on images from disk against steps on tensors made before, taken in turns: on a CPU that of
all threads together, which is what one core needs.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import subprocess
import sys
import time
from functools import partial

import torch

from crypsis.datasets.masks import open_masks
from crypsis.models.robust_cod_lite import NetworkOptions, RobustCodLite
from crypsis.training import loop
from crypsis.training.data import Batch, batches, in_groups
from crypsis.training.settings import Settings
from crypsis.training.team import Team

MODES: dict[str, dict[str, object]] = {
    "clean view alone": {"without": ("augmentation",)},
    "both views": {},
    "clean view first": {"clean_view_first": True},
    "both views, 2 pieces": {"accumulate": 2},
    "both views, bfloat16": {"precision": "bfloat16"},
}


class Steps:
    """Training steps on batches from disk."""

    def __init__(self, arguments: argparse.Namespace, mode: str) -> None:
        self.settings = Settings(size=arguments.size, batch=arguments.batch, encoder=arguments.encoder, **MODES[mode])
        self.team = Team(torch.device(arguments.device))
        uncertainty = self.settings.has("consistency")
        self.network = RobustCodLite(NetworkOptions(encoder=arguments.encoder, uncertainty=uncertainty)).train()
        self.network.to(self.team.device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.network.parameters())
        self.scaler = torch.amp.GradScaler(self.team.device.type, enabled=False)
        self.dataset = open_masks(arguments.data, split="train")
        items = itertools.islice(itertools.cycle(self.dataset.items), arguments.batch * (arguments.steps + 1))
        shown = [(item, 0) for item in items]
        load = partial(loop._load, self.dataset, self.settings, 0)
        self.stream = batches(in_groups(shown, arguments.batch), load, workers=1)

    def step(self, batch: Batch) -> None:
        precision = loop._precision(self.settings, self.team.device)
        share = self.team.shares(len(batch), self.settings.accumulate)
        loop._accumulate(self.network, batch, share, self.settings, self.team, precision, self.scaler)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.team.device.type == "cuda":
            torch.cuda.synchronize()


def one_mode(arguments: argparse.Namespace) -> None:
    steps = Steps(arguments, arguments.mode)
    clock = time.perf_counter if arguments.device == "cuda" else time.thread_time
    times = []
    for batch in steps.stream:
        began = clock()
        steps.step(batch)
        times.append(clock() - began)
    if arguments.device == "cuda":
        peak = torch.cuda.max_memory_allocated()
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{arguments.mode:22} {statistics.median(times[1:]):7.2f} s a step   peak {peak / 2**30:5.2f} GiB", flush=True
    )


def loading(arguments: argparse.Namespace) -> None:
    steps = Steps(arguments, "both views")
    began = time.process_time()
    for item in steps.dataset.items[:32]:
        loop._load(steps.dataset, steps.settings, 0, (item, 0))
    each = (time.process_time() - began) / min(32, len(steps.dataset))
    clock = time.perf_counter if arguments.device == "cuda" else time.process_time
    print(f"loading and degrading  {1000 * each:7.1f} ms of CPU an image")
    cached = next(steps.stream)
    steps.step(cached)
    seconds: dict[str, list[float]] = {"from disk": [], "cached": []}
    while True:
        for kind, times in seconds.items():
            began = clock()
            batch = next(steps.stream, None) if kind == "from disk" else cached
            if batch is None:
                disk, memory = (statistics.median(times) for times in seconds.values())
                print(f"step from disk {disk:.2f} s, on cached tensors {memory:.2f} s: {disk / memory - 1:+.1%}")
                return
            steps.step(batch)
            times.append(clock() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--size", type=int, default=384)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--encoder", default="efficientnet-lite0")
    parser.add_argument("--mode", choices=[*MODES, "loading"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.mode == "loading":
        loading(arguments)
    elif arguments.mode:
        one_mode(arguments)
    else:
        for mode in (*MODES, "loading"):  # each in a process of its own: a peak of memory stays
            subprocess.run([sys.executable, *sys.argv, "--mode", mode], check=True)


if __name__ == "__main__":
    main()
