"""CPU time of SeamCam's maximum over subsets, against trying every union, and that both find the same.

    OMP_NUM_THREADS=1 python benchmarks/seamcam.py [--size HEIGHT WIDTH] [--rounds N] [--seed S]

Prints a Markdown table of CPU milliseconds of one image, bool masks in and detectability out, one thread, the least of
the rounds; enumeration of more than 1000 subsets runs once. Naive enumeration is Algorithm 1 as it is written, each
subset's masks united and compared with the object; the grown one makes each union out of a smaller one and counts it
without a second union, the least work that still visits every subset. Masks are overlapping discs (proposals of one
animal) or independent noise (the worst case for the histogram). It ends with 1 if any result differs.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from crypsis.camouflage.seamcam import Proposals, seamcam_score

COUNTS = (7, 12, 16, 20)
ENUMERATED = 12


def discs(rng: np.random.Generator, count: int, height: int, width: int) -> np.ndarray:
    """Return bool count×H×W, discs around the middle."""
    y, x = np.mgrid[:height, :width]
    side = min(height, width)
    masks = np.empty((count, height, width), bool)
    for mask in masks:
        center = rng.uniform(0.35, 0.65, 2) * (height, width)
        mask[:] = np.hypot(y - center[0], x - center[1]) < rng.uniform(0.08, 0.2) * side
    return masks


def noise(rng: np.random.Generator, count: int, height: int, width: int) -> np.ndarray:
    """Return bool count×H×W, every pixel drawn by itself."""
    return rng.random((count, height, width), np.float32) < 0.3


def naive(masks: np.ndarray, truth: np.ndarray) -> float:
    """Return the largest IoU over all non-empty subsets, each union made anew."""
    best = 0.0
    for size in range(1, len(masks) + 1):
        for subset in combinations(range(len(masks)), size):
            union = np.any(masks[list(subset)], axis=0)
            best = max(best, np.logical_and(union, truth).sum() / np.logical_or(union, truth).sum())
    return float(best)


def grown(masks: np.ndarray, truth: np.ndarray) -> float:
    """Return the largest IoU over all non-empty subsets, each union one mask more than another."""
    best = 0.0
    pixels = int(np.count_nonzero(truth))

    def extend(union: np.ndarray, first: int) -> None:
        nonlocal best
        for i in range(first, len(masks)):
            wider = union | masks[i]
            inside = int(np.count_nonzero(wider & truth))
            best = max(best, inside / (pixels + int(np.count_nonzero(wider)) - inside))
            extend(wider, i + 1)

    extend(np.zeros_like(truth), 0)
    return best


def crypsis(masks: np.ndarray, truth: np.ndarray) -> float:
    """Return the same through the score, with all it reports beside it."""
    ones = np.ones(len(masks))
    return seamcam_score(Proposals(ones, ones, masks), truth, top_k=20).detectability


def cpu_ms(work: Callable[[], float], rounds: int) -> tuple[float, float]:
    """Return the least CPU time of a call in milliseconds, and its result."""
    best, result = float("inf"), 0.0
    for _ in range(rounds):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best * 1e3, result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, nargs=2, default=(1024, 1024), metavar=("HEIGHT", "WIDTH"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    height, width = options.size
    print(
        f"{height}×{width}, seed {options.seed}, least of {options.rounds} rounds, one thread; Python "
        f"{platform.python_version()}, numpy {np.__version__}.\n"
    )
    print("| K | masks | naive, ms | grown, ms | Crypsis, ms | naive / Crypsis | grown / Crypsis | D |")
    print("|---:|---|---:|---:|---:|---:|---:|---|")
    same = True
    for count in COUNTS:
        for make in (discs, noise):
            rng = np.random.default_rng([options.seed, count])
            masks, truth = make(rng, count, height, width), discs(rng, 3, height, width).any(axis=0)
            ours, found = cpu_ms(lambda m=masks, t=truth: crypsis(m, t), options.rounds)
            row = f"| {count} | {make.__name__} |"
            if count > ENUMERATED:
                print(f"{row} – | – | {ours:.1f} | – | – | {found:.6f} |")
                continue
            rounds = 1 if 2**count > 1000 else options.rounds
            times = []
            for work in (naive, grown):
                spent, expected = cpu_ms(lambda m=masks, t=truth, w=work: w(m, t), rounds)
                times.append(spent)
                same &= found == expected
            print(
                f"{row} {times[0]:,.0f} | {times[1]:,.0f} | {ours:.1f} | {times[0] / ours:,.0f} | "
                f"{times[1] / ours:,.0f} | {found:.6f}{', equal' if same else ', NOT equal'} |"
            )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
