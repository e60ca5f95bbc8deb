"""CPU time of scoring detections, per condition and for a whole run, and against pycocotools, one thread.

    OMP_NUM_THREADS=1 RAYON_NUM_THREADS=1 python benchmarks/detection.py [--images N] [--detections N] [--conditions N]
        [--of N] [--samples N] [--oracle-images N] [--seed S] [--coverage SETS]

Needs hotcoco, and pycocotools for the comparison. Prints Markdown. Truth and detections are made up: 7.3 objects an
image of 80 classes, boxes from 2 to 400 px, 1.2 % crowds; detections are displaced objects, fewer from condition to
condition, and strays of random class, which makes more pairs of image and class than a real detector's output has.
With --coverage it prints instead how often intervals hold the mean AP of many sets of 400 images.
"""

from __future__ import annotations

import argparse
import io
import platform
import resource
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crypsis.errors import MissingDependencyError
from crypsis.metrics.detection import SCORES, DetectionEvaluator, centered_interval
from crypsis.metrics.robustness import bootstrap_counts

COLUMNS = ("image_id", "x", "y", "width", "height", "score", "category_id")
CLASSES = 80
SIZE = np.array([640.0, 480.0])


def make_boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return float64 [count, 4] of x, y, width, height inside the image."""
    size = np.exp(rng.normal(4, 1, (count, 2))).clip(2, 400)
    return np.concatenate([rng.uniform(0, 1, (count, 2)) * (SIZE - size).clip(0), size], axis=1)


def make_truth(rng: np.random.Generator, images: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return a truth in COCO's form, and its objects as rows of `COLUMNS` with a score of 0."""
    owner = np.repeat(np.arange(1, images + 1), rng.poisson(7.26, images))
    boxes, classes = make_boxes(rng, len(owner)), rng.integers(1, CLASSES + 1, len(owner))
    crowds = rng.random(len(owner)) < 0.012
    annotations = [
        {"id": n, "image_id": image, "category_id": k, "bbox": box, "area": box[2] * box[3], "iscrowd": int(crowd)}
        for n, (image, k, box, crowd) in enumerate(
            zip(owner.tolist(), classes.tolist(), boxes.tolist(), crowds.tolist(), strict=True), 1
        )
    ]
    truth = {
        "images": [{"id": n} for n in range(1, images + 1)],
        "categories": [{"id": n} for n in range(1, CLASSES + 1)],
        "annotations": annotations,
    }
    return truth, np.column_stack([owner, boxes, np.zeros(len(owner)), classes])


def make_detections(rng: np.random.Generator, objects: np.ndarray, total: int, share: float) -> np.ndarray:
    """Return `total` rows of `COLUMNS`; `share` of the objects are found."""
    found = objects[rng.random(len(objects)) < share]
    error = rng.normal(0, 0.12, (len(found), 4))
    found[:, 1:3] += error[:, :2] * found[:, 3:5]
    found[:, 3:5] *= np.exp(error[:, 2:])
    found[:, 5] = rng.beta(4, 2, len(found))
    count = total - len(found)
    images = rng.integers(1, int(objects[:, 0].max()) + 1, count)
    classes = rng.integers(1, CLASSES + 1, count)
    stray = np.column_stack([images, make_boxes(rng, count), rng.beta(1.2, 6, count), classes])
    return np.concatenate([found, stray])


def to_parquet(rows: np.ndarray) -> bytes:
    whole = {"image_id", "category_id"}
    kinds = {name: pa.int64() if name in whole else pa.float32() for name in COLUMNS}
    table = pa.table({name: pa.array(rows[:, n]).cast(kinds[name]) for n, name in enumerate(COLUMNS)})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def from_parquet(data: bytes) -> np.ndarray:
    table = pq.read_table(io.BytesIO(data))
    return np.column_stack([table[name].to_numpy().astype(np.float64) for name in COLUMNS])


def print_coverage(sets: int, samples: int, detections: int) -> None:
    """Print the share of made up sets whose interval holds the mean AP of all, which stands for the true one."""
    counts = bootstrap_counts(400, samples=samples, seed=1)
    values, spreads = np.empty(sets), np.empty((sets, samples))
    for n in range(sets):
        rng = np.random.default_rng(n)
        truth, objects = make_truth(rng, 400)
        rows = make_detections(rng, objects, 400 * detections, 0.7)
        scorer = DetectionEvaluator(truth)
        values[n] = scorer.evaluate(rows).ap
        spreads[n] = scorer.match(rows).average_precision(counts).mean(axis=1)
    plain = np.quantile(spreads, (0.025, 0.975), axis=1)
    centered = np.transpose([centered_interval(v, s) for v, s in zip(values, spreads, strict=True)])
    print(
        f"{sets} sets of 400 images: mean AP {values.mean():.4f}, standard deviation {values.std():.4f} over sets and "
        f"{spreads.std(axis=1).mean():.4f} over resamples, whose mean is {spreads.mean() - values.mean():+.4f} off.\n\n"
        "| 95% interval | holds the mean AP |\n|---|---:|"
    )
    for name, (low, high) in {"quantiles": plain, "quantiles, centered": centered}.items():
        print(f"| {name} | {np.mean((low <= values.mean()) & (values.mean() <= high)):.0%} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--detections", type=int, default=36, help="per image")
    parser.add_argument("--conditions", type=int, default=3, help="measured")
    parser.add_argument("--of", type=int, default=295, help="conditions of a whole run")
    parser.add_argument("--samples", type=int, default=200, help="bootstrap samples")
    parser.add_argument("--oracle-images", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--coverage", type=int, metavar="SETS")
    options = parser.parse_args()
    if options.coverage:
        print_coverage(options.coverage, options.samples, options.detections)
        return 0
    clock = time.process_time
    rng = np.random.default_rng(options.seed)
    truth, objects = make_truth(rng, options.images)
    stored = [
        to_parquet(make_detections(rng, objects, options.images * options.detections, 0.7 / (1 + n)))
        for n in range(options.conditions)
    ]
    small_truth, small_objects = make_truth(rng, options.oracle_images)
    small = make_detections(rng, small_objects, options.oracle_images * options.detections, 0.7)

    try:
        start = clock()
        scorer = DetectionEvaluator(truth)
        once = clock() - start
        start = clock()
        counts = bootstrap_counts(options.images, samples=options.samples, seed=options.seed)
        once_bootstrap = clock() - start
        parts: dict[str, list[float]] = {"reading Parquet": [], "scoring": [], "matching": [], "bootstrap": []}
        for data in stored:
            times = [clock()]
            rows = from_parquet(data)
            times.append(clock())
            scores = scorer.evaluate(rows)
            times.append(clock())
            matches = scorer.match(rows)
            times.append(clock())
            low, high = centered_interval(scores.ap, matches.average_precision(counts).mean(axis=1))
            times.append(clock())
            for part, seconds in zip(parts, np.diff(times), strict=True):
                parts[part].append(float(seconds))
        seconds_of = {}
        found = {}
        for evaluator in ("hotcoco", "pycocotools"):
            start = clock()
            found[evaluator] = DetectionEvaluator(small_truth, evaluator=evaluator).evaluate(small)
            seconds_of[evaluator] = clock() - start
    except MissingDependencyError as error:
        print(error, file=sys.stderr)
        return error.exit_code

    mean = {part: float(np.mean(seconds)) for part, seconds in parts.items()}
    needed, wanted = mean["reading Parquet"] + mean["scoring"], mean["matching"] + mean["bootstrap"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{options.images} images, {len(objects)} objects, {options.detections} detections an image, "
        f"{options.conditions} conditions, seed {options.seed}; Python {platform.python_version()}, numpy "
        f"{np.__version__}, hotcoco {version('hotcoco')}, pycocotools {version('pycocotools')}; peak memory {peak:.0f} "
        f"MB. Truth prepared once: {once:.2f} CPU s; {options.samples} resamples drawn once: {once_bootstrap:.2f}. "
        f"Last condition: AP {scores.ap:.4f}, 95% interval [{low:.4f}, {high:.4f}].\n"
    )
    print(f"| step | CPU s per condition | CPU min for {options.of} conditions |\n|---|---:|---:|")
    for part, seconds in mean.items():
        print(f"| {part} | {seconds:.2f} | {seconds * options.of / 60:.1f} |")
    print(f"| **scores** | {needed:.2f} | {(once + needed * options.of) / 60:.1f} |")
    whole = (once_bootstrap + wanted * options.of) / 60
    print(f"| **intervals, {options.samples} samples** | {wanted:.2f} | {whole:.1f} |")
    differing = [n for n in SCORES if getattr(found["hotcoco"], n) != getattr(found["pycocotools"], n)]
    print(
        f"\n{options.oracle_images} images, truth included: hotcoco {seconds_of['hotcoco']:.3f} CPU s, pycocotools "
        f"{seconds_of['pycocotools']:.3f}, {seconds_of['pycocotools'] / seconds_of['hotcoco']:.0f} times as long; "
        f"{len(SCORES) - len(differing)} of {len(SCORES)} numbers are identical."
    )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
