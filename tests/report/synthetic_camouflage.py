"""Runs with rows, made of scores that are given image by image, and files of camouflage scores."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from synthetic_runs import ENTRIES, make_run

from crypsis.results import RECORD_SCHEMA, SCORES, RunFolder

IMAGES = tuple(f"animal-{i:02d}" for i in range(20))
Dice = Callable[[int, str, int], float | None]
"""Image number, entry and severity → Dice; None for one that failed."""


def make_rows(
    folder: Path,
    models: Mapping[str, Dice],
    *,
    images: Sequence[str] = IMAGES,
    measured: bool = True,
    planned: int | None = None,
    **plan: Any,
) -> RunFolder:
    """Write a run whose rows have these scores; the strength of a condition is 0.1 · severity + 0.001 · entry."""
    data = {"name": "demo", "layout": "test", "images": planned or len(images), "keys_sha256": "5f" * 32}
    part = {label: {"scored": len(images)} for label in models}
    run = make_run(folder, part, dataset=data, **plan)
    conditions = [("clean", 0), *((name, s) for name in ENTRIES for s in range(1, 6))]
    rows = [
        _row(images[i], model, name, s, dice(i, name, s), measured)
        for i in range(len(images))
        for name, s in conditions
        for model, dice in models.items()
    ]
    (folder / "parts").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=RECORD_SCHEMA), folder / "parts" / "0000.parquet")
    return run


def _row(image: str, model: str, entry: str, severity: int, dice: float | None, measured: bool) -> dict[str, Any]:
    row = {"image": image, "model": model, "entry": entry, "severity": severity, "seed": 0}
    if dice is None:
        return {**row, "status": "failed", "error": "too dark"}
    strength = 0.1 * severity + 0.001 * [*ENTRIES].index(entry) if severity else 0.0
    return {
        **row, "status": "ok", "height": 10, "width": 10, "foreground": 5,
        "one_minus_ssim": strength if measured else None, "psnr": 50.0 - severity if measured else None,
        **dict.fromkeys(SCORES, dice),
        "ece_count": [1] * 15, "ece_confidence": [0.5] * 15, "ece_correct": [1] * 15,
        "histogram_object": [1] * 256, "histogram_background": [1] * 256,
    }  # fmt: skip


def write_scores(path: Path, **columns: Mapping[str, float | None]) -> Path:
    """Write a file of scores: column → image → number, None for none."""
    images = dict.fromkeys(image for values in columns.values() for image in values)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", *columns])
        for image in images:
            writer.writerow([image, *("" if (v := c.get(image)) is None else repr(v) for c in columns.values())])
    return path
