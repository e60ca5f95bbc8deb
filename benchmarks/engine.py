"""What the engine costs beside the work itself, and how much memory a run takes.

    python benchmarks/engine.py                       # demo set, 1 worker: overhead
    python benchmarks/engine.py --images 400 --size 1024x768 --workers 2   # made-up set: memory

Overhead is the CPU time of all processes that is not decoding, degrading, measuring strength, predicting or scoring:
starting up, planning, writing parts, collecting, and (named apart) summary, pictures and report. Memory is the
largest sum over processes of proportional set size (Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

from crypsis.io import write_image

STAGES = ("decode", "degrade", "measure", "predict", "score")


def make_set(folder: Path, images: int, size: tuple[int, int]) -> None:
    """Write JPEG photographs of noise fields with a disc, and the disc's mask."""
    width, height = size
    y, x = np.mgrid[:height, :width]
    for index in range(images):
        rng = np.random.default_rng(index)
        coarse = rng.integers(0, 256, (24, 32, 3), np.uint8)
        image = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
        disc = np.hypot(y - rng.uniform(0.3, 0.7) * height, x - rng.uniform(0.3, 0.7) * width) < 0.15 * height
        image[disc] = image[disc] // 2 + 60
        write_image(folder / "Imgs" / f"{index:06d}.jpg", image)
        write_image(folder / "GT" / f"{index:06d}.png", disc.astype(np.uint8) * 255)


def tree_memory(root: int) -> float:
    """Return the proportional set size of a process and its descendants in MB."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    total, pending = 0, [root]
    while pending:
        pid = pending.pop()
        pending += children.get(pid, [])
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=0, help="images of a made-up set; 0 takes the demo set")
    parser.add_argument("--size", default="1024x768", help="WIDTHxHEIGHT of made-up images")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--model", default="saliency")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data = "demo"
        if options.images:
            width, _, height = options.size.partition("x")
            data = str(Path(scratch) / "set")
            make_set(Path(data), options.images, (int(width), int(height)))
        run = Path(scratch) / "run"
        command = [sys.executable, "-m", "crypsis", "bench", "cod10k-c", "-q", "--data", data, "--out", str(run)]
        command += ["--model", options.model, "--workers", str(options.workers)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        started, peak = time.perf_counter(), 0.0
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
        while process.poll() is None:
            peak = max(peak, tree_memory(process.pid))
            time.sleep(0.2)
        wall = time.perf_counter() - started
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        units = [json.loads(line) for line in (run / "timing.jsonl").read_text().splitlines()]
        size = sum(part.stat().st_size for part in (run / "parts").iterdir())
    total = usage.ru_utime + usage.ru_stime
    stages = {stage: sum(unit.get(stage, 0.0) for unit in units) for stage in STAGES}
    inside = sum(unit["total"] for unit in units)
    work = sum(stages.values())
    rows = [
        *stages.items(),
        ("engine, in the workers", inside - work),
        ("start, plan, summary, pictures, report", total - inside),
    ]
    print(f"{options.images or 48} images, {options.workers} workers, {options.model}: {wall:.1f} s wall")
    print("\n| part | CPU s | share |\n|---|---:|---:|")
    for name, seconds in [*rows, ("all", total)]:
        print(f"| {name} | {seconds:.2f} | {seconds / total:.1%} |")
    print(f"\npeak memory of all processes {peak:.0f} MB; parts {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
