"""CPU time of the whole metric set against PySODMetrics, on the same maps in the same process, one thread.

    OMP_NUM_THREADS=1 python benchmarks/metrics.py [--size HEIGHT WIDTH] [--pairs N] [--rounds N] [--seed S]

Needs the environment of benchmarks/requirements-metrics.txt. Prints a Markdown table. PySODMetrics computes MAE, S, E,
weighted F, and F, IoU and Dice through FmeasureV2 (curve, adaptive, binary); Crypsis computes all of `MaskScores`,
which is these and soft Dice, boundary F1 and the calibration bins. Both get the same float32 map and bool mask.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable

import cv2
import numpy as np

from crypsis.metrics.segmentation import MaskTruth, score_mask

CONDITIONS = 41


def make_pair(rng: np.random.Generator, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a soft map such as a network gives and the mask it misses a little: float32 and bool H×W."""
    field = cv2.GaussianBlur(rng.standard_normal((height, width)), (0, 0), min(height, width) / 14)
    y, x = np.mgrid[:height, :width]
    center = rng.uniform(0.35, 0.65, 2) * (height, width)
    pull = np.hypot((y - center[0]) / height, (x - center[1]) / width)
    field = field / field.std() - 9 * pull
    mask = field > np.quantile(field, 1 - rng.uniform(0.04, 0.15))
    error = cv2.GaussianBlur(rng.standard_normal((height, width)), (0, 0), min(height, width) / 40)
    logit = (
        9 * cv2.GaussianBlur(mask.astype(np.float64), (0, 0), min(height, width) / 90) - 5 + 1.5 * error / error.std()
    )
    probability = 1 / (1 + np.exp(-(logit + 0.2 * rng.standard_normal((height, width)))))
    return probability.astype(np.float32), mask


def cpu_ms(work: Callable[[], object], rounds: int, maps: int) -> float:
    """Return the least CPU time of `rounds` runs after a first one, in ms per map."""
    work()
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best * 1e3 / maps


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, nargs=2, default=(384, 384), metavar=("HEIGHT", "WIDTH"))
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        import py_sod_metrics as sod
    except ImportError as error:
        print(f"{error}: make the environment of benchmarks/requirements-metrics.txt.", file=sys.stderr)
        return 4
    cv2.setNumThreads(1)
    rng = np.random.default_rng(options.seed)
    pairs = [make_pair(rng, *options.size) for _ in range(options.pairs)]
    count = len(pairs)

    def handlers() -> dict[str, object]:
        kinds = {"f": (sod.FmeasureHandler, {"beta": 0.3}), "iou": (sod.IOUHandler, {}), "dice": (sod.DICEHandler, {})}
        wanted = {"with_dynamic": True, "with_adaptive": True, "with_binary": True, "sample_based": True}
        return {name: kind(**wanted, **more) for name, (kind, more) in kinds.items()}

    peers: dict[str, Callable[[], object]] = {
        "MAE": sod.MAE,
        "S": sod.Smeasure,
        "E": sod.Emeasure,
        "wF": sod.WeightedFmeasure,
        "F, IoU, Dice": lambda: sod.FmeasureV2(metric_handlers=handlers()),
    }

    def peer(names: list[str]) -> dict[str, object]:
        results = {}
        for name in names:
            meter = peers[name]()
            for probability, mask in pairs:
                meter.step(pred=probability, gt=mask, normalize=False)
            results[name] = meter.get_results()
        return results

    truths = [MaskTruth(mask) for _, mask in pairs]

    def reused() -> list[object]:
        return [score_mask(probability, truth) for (probability, _), truth in zip(pairs, truths, strict=True)]

    def fresh() -> list[object]:
        return [score_mask(probability, MaskTruth(mask)) for probability, mask in pairs]

    ours, theirs = reused(), peer(list(peers))
    difference = max(
        abs(np.mean([getattr(scores, field) for scores in ours]) - value)
        for field, value in {
            "mae": theirs["MAE"]["mae"],
            "s_measure": theirs["S"]["sm"],
            "weighted_f": theirs["wF"]["wfm"],
            "e_adaptive": theirs["E"]["em"]["adp"],
            "e_mean": theirs["E"]["em"]["curve"].mean(),
            "f_mean": theirs["F, IoU, Dice"]["f"]["dynamic"].mean(),
            "f_adaptive": theirs["F, IoU, Dice"]["f"]["adaptive"].mean(),
            "iou": theirs["F, IoU, Dice"]["iou"]["binary"].mean(),
        }.items()
    )

    rows = {f"PySODMetrics {name}": cpu_ms(lambda name=name: peer([name]), options.rounds, count) for name in peers}
    whole = cpu_ms(lambda: peer(list(peers)), options.rounds, count)
    cached, uncached = (cpu_ms(work, options.rounds, count) for work in (reused, fresh))
    rows["PySODMetrics, all of these"] = whole
    rows["Crypsis, truth reused"] = cached
    rows[f"Crypsis, truth built once for {CONDITIONS} maps"] = cached + (uncached - cached) / CONDITIONS
    rows["Crypsis, truth built for every map"] = uncached

    height, width = options.size
    print(
        f"{count} pairs of {height}×{width}, seed {options.seed}, least of {options.rounds} rounds, one thread; Python "
        f"{platform.python_version()}, numpy {np.__version__}, OpenCV {cv2.__version__}; the eight scores both "
        f"compute differ by at most {difference:.1e}.\n"
    )
    print("| metric set | CPU ms per map | share of PySODMetrics |\n|---|---:|---:|")
    for name, value in rows.items():
        print(f"| {name} | {value:.2f} | {value / whole:.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
