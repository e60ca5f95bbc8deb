"""Measurements of strength as `crypsis measure` leaves them, of known numbers and without images."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crypsis.catalog import get_entry, list_entries
from crypsis.severity.findings import StrengthTable, find_all

METRICS = ("1-ssim", "psnr", "lpips")
IMAGES = 4


def strengths(entries: Sequence[str], *, seed: int = 0) -> StrengthTable:
    """Return rising strengths of every entry; the first falls back at severity 3."""
    rng = np.random.default_rng(seed)
    rising = np.cumsum(rng.uniform(0.01, 0.15, (len(entries), 5, 1)), axis=1) * rng.uniform(0.9, 1.1, IMAGES)
    rising[0, 2] = rising[0, 0] + 0.001
    values = np.stack([rising, 40 - 30 * rising, 1.3 * rising])
    return StrengthTable.from_values(entries, METRICS, values, np.zeros((len(entries), 5), np.int64))


def make_measurement(folder: Path, table: StrengthTable | None = None, **changes: Any) -> Path:
    """Write a run folder; `changes` replace parts of its summary."""
    table = table or strengths([entry.name for entry in list_entries()])
    folder.mkdir()
    plan = {
        "dataset": {"images": IMAGES, "names_sha256": "5f" * 32},
        "entries": {name: [dict(values) for values in get_entry(name).parameters] for name in table.entries},
        "metrics": list(table.metrics),
        "seed": 7,
        "limit": IMAGES,
    }
    session = {
        "started": "2026-06-01T12:00:00+00:00",
        "data": "/home/someone/pictures",
        "versions": {"crypsis": "0.1.0", "numpy": "2.0.0"},
        "machine": {"system": "Linux", "processors": 2},
    }
    summary = {
        "schema": "crypsis.strengths/1",
        "images": table.images,
        "measured": table.images,
        "failed": {},
        "entries": table.to_dict(),
        "findings": [finding.to_dict() for finding in find_all(table)],
    } | changes
    run = {"schema": "crypsis.measurement/2", "plan": plan, "sessions": [session]}
    (folder / "run.json").write_text(json.dumps(run), "utf-8")
    (folder / "summary.json").write_text(json.dumps(summary), "utf-8")
    times = [{"unit": f"images-{i}", "decode": 1.0, "degrade": 2.0, "measure": 7.0, "total": 10.0} for i in range(2)]
    (folder / "timing.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in times), "utf-8")
    return folder
