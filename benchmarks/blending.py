"""Do camouflage scores follow a blending strength that is known?

    python benchmarks/blending.py                   # the 48 images of the demo set, each of its own scene
    python scripts/build_demo_set.py --blend 0 0.5 0.95 --out SERIES    # each of 48 animals at three strengths
    python benchmarks/blending.py --series SERIES

Prints Spearman's correlation of each score with the strength, and how often the weakest version of an animal is scored
easier than the strongest; 95% bootstrap intervals over animals, ties in half.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crypsis.bench.score import SCORES, plan_score, read_rows, score_images
from crypsis.bench.work import Labor
from crypsis.camouflage.proportions import spearman
from crypsis.datasets.demo import demo_folder
from crypsis.report.tables import Number, Table
from crypsis.results import interval
from crypsis.seeds import rng_for

OBSERVERS = ("embedded", "embedded,segment=network")
SAMPLES = 1000


def measure(data: str, observer: str, scores: tuple[str, ...], workers: int) -> dict[str, dict[str, float]]:
    """Return score → image → value."""
    plan = plan_score(data, scores=scores, observer=observer)
    with tempfile.TemporaryDirectory() as folder:
        score_images(plan, Path(folder) / "run", labor=Labor(workers))
        rows = read_rows(plan, Path(folder) / "run")
    if len(rows) != len(plan.dataset):
        raise SystemExit(f"{len(plan.dataset) - len(rows)} images could not be scored.")
    return {score: {row["image"]: row[score] for row in rows} for score in scores}


def correlation(values: NDArray[np.float64], strengths: NDArray[np.float64]) -> float:
    return spearman(values, strengths).rho


def ordered(values: NDArray[np.float64], strengths: NDArray[np.float64]) -> float:
    """Return the share of animals whose weakest version has the lower score; rows of one animal follow each other."""
    weak, strong = values[strengths == strengths.min()], values[strengths == strengths.max()]
    return float((np.sign(strong - weak) / 2 + 0.5).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=Path, help="a folder made by scripts/build_demo_set.py --blend")
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    folder = arguments.series or demo_folder()
    images = json.loads((folder / "annotations.json").read_text("utf-8"))["images"]
    strength = {Path(image["file_name"]).stem: float(image["blend"]) for image in images}
    data = str(arguments.series or "demo")

    found: dict[str, dict[str, float]] = {}
    for observer in OBSERVERS:
        found[f"seamcam, {observer}"] = measure(data, observer, ("seamcam",), arguments.workers)["seamcam"]
    of_pixels = tuple(score for score in SCORES if score != "seamcam")
    found |= measure(data, OBSERVERS[0], of_pixels, arguments.workers)

    animals: dict[str, list[str]] = {}
    for name in sorted(strength):
        animals.setdefault(name.rpartition("-t")[0] if arguments.series else name, []).append(name)
    groups = list(animals.values())
    draws = rng_for(0, "", "blending").integers(len(groups), size=(SAMPLES, len(groups)))
    rows: list[tuple[str | Number, ...]] = []
    for score, values in found.items():
        numbers = []
        for statistic in (correlation, ordered) if arguments.series else (correlation,):
            samples = []
            for draw in (range(len(groups)), *draws):
                names = [name for g in draw for name in groups[g]]
                samples.append(statistic(np.array([values[n] for n in names]), np.array([strength[n] for n in names])))
            numbers.append(Number.of(interval(np.array(samples))))
        rows.append((score, *numbers))
    header = ("Score", "Spearman ↑", *(["Weakest easier than strongest ↑"] if arguments.series else []))
    notes = (f"{len(strength)} images of {len(groups)} animals; 95% bootstrap intervals over animals.",)
    print(Table("Scores against the known blending strength", header, tuple(rows), notes).markdown(), end="")


if __name__ == "__main__":
    main()
