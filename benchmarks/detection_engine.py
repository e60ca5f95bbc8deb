"""What a detection run costs beside the operators, what it holds in memory, and what scoring costs; prints Markdown.

    OMP_NUM_THREADS=1 python benchmarks/detection_engine.py
    OMP_NUM_THREADS=1 python benchmarks/detection_engine.py --score 250   # scoring 36 detections an image

The images are made up; the detector finds nothing, and strength is not measured, so that what remains beside the
operators is the engine. All times are CPU time of all processes but for the one column that says wall. Memory is the
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa

from crypsis.bench.detect import run_detection, truth_of
from crypsis.bench.detection_plan import DetectionPlan, plan_coco_degradation
from crypsis.bench.store import claim_folder, session_of, write_json, write_part
from crypsis.bench.work import Labor
from crypsis.detection_results import (
    DETECTION_RUN_SCHEMA,
    DETECTION_SCHEMA,
    TRUTH_FILE,
    DetectionRun,
    summarize_detections,
)
from crypsis.io import write_image
from engine import tree_memory

STAGES = ("decode", "degrade", "align", "measure", "detect", "store")
DETECTIONS = 36
CLASSES = 80
FULL = 5000
SIZE = (640, 480)


def nothing(image: np.ndarray) -> tuple[list[list[float]], list[float], list[int]]:
    """Find nothing in an image."""
    return [], [], []


MODEL = "python:detection_engine:nothing,classes=class_0"


def make_set(folder: Path, images: int) -> tuple[str, str]:
    """Write JPEG photographs of noise fields with seven boxes each, and their COCO file."""
    width, height = SIZE
    listed, objects = [], []
    for index in range(images):
        rng = np.random.default_rng(index)
        coarse = rng.integers(0, 256, (24, 32, 3), np.uint8)
        write_image(folder / "images" / f"{index:06d}.jpg", cv2.resize(coarse, SIZE, interpolation=cv2.INTER_CUBIC))
        listed.append({"id": index, "file_name": f"{index:06d}.jpg", "width": width, "height": height})
        for x, y in (rng.uniform(0, 0.6, (7, 2)) * SIZE).tolist():
            box = {"bbox": [x, y, 120, 90], "area": 120 * 90, "category_id": int(rng.integers(CLASSES)), "iscrowd": 0}
            objects.append({"id": len(objects) + 1, "image_id": index, **box})
    file = folder / "instances.json"
    content = {
        "images": listed,
        "annotations": objects,
        "categories": [{"id": k, "name": f"class {k}"} for k in range(CLASSES)],
    }
    file.write_text(json.dumps(content))
    return str(folder / "images"), str(file)


def plan(data: tuple[str, str], images: int, severities: Sequence[int] = (1, 2, 3, 4, 5)) -> DetectionPlan:
    return plan_coco_degradation(*data, [MODEL], limit=images, strength_images=0, severities=severities)


def work(options: argparse.Namespace) -> None:
    """Do a run and score it; this is the process whose CPU time and memory are measured."""
    run = Path(options.run)
    outcome = run_detection(plan(tuple(options.data), options.images, options.severities), run, labor=Labor(2))
    assert outcome.left == 0
    begin = time.process_time()
    write_json(run / "summary.json", summarize_detections(DetectionRun.open(run), samples=0))
    write_json(run / "seconds.json", {**outcome.seconds, "evaluate": time.process_time() - begin})


def measured_run(data: tuple[str, str], images: int, severities: Sequence[int]) -> dict[str, float]:
    """Return CPU seconds by stage, `cpu` in all, `wall`, and `memory` in MB of a run with two workers."""
    with tempfile.TemporaryDirectory() as run:
        command = [sys.executable, __file__, "--run", f"{run}/run", "--data", *data, "--images", str(images)]
        before, started, memory = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), 0.0
        process = subprocess.Popen([*command, "--severities", *map(str, severities)], cwd=Path(__file__).parent)
        while process.poll() is None:
            memory = max(memory, tree_memory(process.pid))
            time.sleep(0.1)
        assert process.returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds: dict[str, float] = json.loads((Path(run) / "run" / "seconds.json").read_text())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**seconds, "cpu": cpu, "wall": time.perf_counter() - started, "memory": memory}


def bare(planned: DetectionPlan) -> float:
    """Return the CPU seconds of the operators alone, in one process, on decoded images."""
    images = [(item.key, planned.dataset.load(item)) for item in planned.dataset.items]
    begin = time.process_time()
    for key, image in images:
        for entry in planned.entries:
            for severity in planned.severities:
                entry.degrade(image, severity, seed=planned.seed, image_key=key)
    return time.process_time() - begin


def score(images: int) -> None:
    """Print the time of scoring made-up detections, and what follows for as many images as COCO's val set has."""
    print("| images | conditions | detections each | CPU s | MB of parts |\n|---:|---:|---:|---:|---:|")
    found = []
    for count in (images, 2 * images):
        with tempfile.TemporaryDirectory() as scratch:
            seconds, size, conditions = _scored(Path(scratch), count)
        found.append(seconds)
        print(f"| {count} | {conditions} | {DETECTIONS} | {seconds:.1f} | {size / 1e6:.0f} |")
    each = (found[1] - found[0]) / images
    total = found[0] + each * (FULL - images)
    print(f"\n{FULL:,} images would take {total:.0f} CPU s and {size * FULL / (2 * images) / 1e9:.1f} GB of parts;")
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB were held.")


def _scored(scratch: Path, images: int) -> tuple[float, int, int]:
    """Return CPU seconds of scoring, bytes of parts, and the number of conditions."""
    planned = plan(make_set(scratch, images), images)
    run = scratch / "run"
    session = session_of(planned.data)
    claim_folder(
        run, "run.json", schema=DETECTION_RUN_SCHEMA, identity=planned.identity(), session=session, what="", option=""
    )
    write_json(run / TRUTH_FILE, truth_of(planned))
    rng = np.random.default_rng(0)
    for unit in planned.units():
        rows = [_row(rng, item.key, item.number, c) for c in planned.conditions for item in unit.items]
        write_part(run, unit.name, pa.Table.from_pylist(rows, DETECTION_SCHEMA), by="entry")
    begin = time.process_time()
    summarize_detections(DetectionRun.open(run), samples=0)
    size = sum(part.stat().st_size for part in (run / "parts").iterdir())
    return time.process_time() - begin, size, len(planned.conditions)


def _row(rng: np.random.Generator, key: str, number: int, condition: Any) -> dict[str, Any]:
    boxes = rng.uniform(0, 300, (DETECTIONS, 4)).astype(np.float32)
    return {
        "image": key, "number": number, "model": "nothing", "entry": condition.entry, "severity": condition.severity,
        "status": "ok", "image_digest": "0" * 32, "height": SIZE[1], "width": SIZE[0], "boxes": boxes.ravel(),
        "scores": rng.uniform(0, 1, DETECTIONS).astype(np.float32), "categories": rng.integers(0, CLASSES, DETECTIONS),
    }  # fmt: skip


def engine(scratch: Path) -> None:
    """Print the tables of cost and memory."""
    data = make_set(scratch, 48)
    planned = plan(data, 48)
    every = planned.severities
    runs = {(n, 296): measured_run(data, n, every) for n in (12, 24, 48)} | {(48, 60): measured_run(data, 48, [3])}
    full = runs[48, 296]
    degraded = 48 * 295
    alone = bare(planned)
    spent = {stage: full.get(stage, 0.0) for stage in (*STAGES, "evaluate")}
    spent["engine: start, plan, collect"] = full["cpu"] - sum(spent.values())
    print(f"48 images of {SIZE[0]}×{SIZE[1]}, 295 conditions beside clean, 2 workers:\n")
    print("| stage | CPU s | share | ms per degraded image |\n|---|---:|---:|---:|")
    for stage, seconds in [*spent.items(), ("all", full["cpu"])]:
        print(f"| {stage} | {seconds:.2f} | {seconds / full['cpu']:.1%} | {1000 * seconds / degraded:.2f} |")
    run = full["cpu"] - full["evaluate"]
    print(f"\nThe operators alone, in one process: {alone:.2f} CPU s, {degraded / alone:.0f} images per CPU second.")
    print(
        f"The run without scoring: {degraded / run:.0f} images per CPU second, {alone / run:.1%} of the operators' own"
    )
    print(f"speed; {full['degrade'] / run:.1%} of its time is in the operators.\n")
    print("| images | conditions | CPU s | wall s | memory of all processes, MB |\n|---:|---:|---:|---:|---:|")
    for (images, conditions), run in runs.items():
        print(f"| {images} | {conditions} | {run['cpu']:.1f} | {run['wall']:.1f} | {run['memory']:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--score", type=int, metavar="IMAGES", help="measure scoring instead, on that many images")
    for name, kind, count in (("run", str, None), ("data", str, 2), ("images", int, None), ("severities", int, "+")):
        parser.add_argument(f"--{name}", type=kind, nargs=count, help=argparse.SUPPRESS)  # of the measured process
    options = parser.parse_args()
    os.chdir(Path(__file__).parent)
    if options.run:
        work(options)
        return
    if options.score:
        score(options.score)
        return
    with tempfile.TemporaryDirectory() as scratch:
        engine(Path(scratch))


if __name__ == "__main__":
    main()
