"""Calibrate all entries of the catalog on the demo photographs, for the calibrations that ship with the package.

    pip install -e .
    python scripts/make_demo_calibrations.py            # writes
    python scripts/make_demo_calibrations.py --check    # measures again, says whether the bytes are the same

The files are src/crypsis/data/calibrations/demo-1-ssim.json and demo-psnr.json: the same bytes with the same versions
of the packages, which the files name. Takes about 80 s of one core.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2

from crypsis.catalog import list_entries
from crypsis.catalog.entry import Entry
from crypsis.datasets.masks import open_masks
from crypsis.io import read_image
from crypsis.seeds import content_key
from crypsis.severity.calibration import SHIPPED_SCHEMA, Calibration, from_strengths, image_name
from crypsis.severity.strength import CleanImage

TARGET = Path(__file__).parents[1] / "src" / "crypsis" / "data" / "calibrations"
METRICS = ("1-ssim", "psnr")


def rounded(values: tuple[float, ...]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def content_of(calibrations: list[Calibration]) -> dict[str, Any]:
    """Return calibrations of one metric and the same images as what the file holds."""
    first = calibrations[0]
    return {
        "schema": SHIPPED_SCHEMA,
        "origin": "48 photographs of the Crypsis demo set, scripts/make_demo_calibrations.py",
        "metric": first.metric,
        "count": first.count,
        "images": first.images,
        "seed": first.seed,
        "versions": dict(first.versions),
        "entries": {
            c.entry: {"strengths": rounded(c.strengths), "deviations": rounded(c.deviations)} for c in calibrations
        },
    }


def text_of(content: dict[str, Any]) -> str:
    """Return JSON with one entry a line."""
    head = {key: value for key, value in content.items() if key != "entries"}
    lines = [f"  {json.dumps(name)}: {json.dumps(levels)}" for name, levels in content["entries"].items()]
    return json.dumps(head, indent=1)[:-2] + ',\n "entries": {\n' + ",\n".join(lines) + "\n }\n}\n"


def calibrated(entries: Sequence[Entry]) -> dict[str, list[Calibration]]:
    """Return for each metric the calibrations of entries on all demo photographs; each is decoded once."""
    rows: dict[tuple[str, str], list[tuple[float, ...]]] = {(m, e.name): [] for m in METRICS for e in entries}
    names = []
    for item in open_masks("demo").items:
        image = read_image(item.image)
        names.append(image_name(item.key, content_key(image)))
        clean = CleanImage(image)
        for entry in entries:
            levels = [
                clean.strengths(entry.degrade(image, severity, seed=0, image_key=item.key))
                for severity in entry.severities
            ]
            for metric in METRICS:
                rows[metric, entry.name].append(tuple(level.value(metric) for level in levels))
    return {m: [from_strengths(e.name, m, rows[m, e.name], names, seed=0) for e in entries] for m in METRICS}


def main() -> None:
    cv2.setNumThreads(1)
    TARGET.mkdir(parents=True, exist_ok=True)
    changed = []
    for metric, found in calibrated(list_entries()).items():
        file, text = TARGET / f"demo-{metric}.json", text_of(content_of(found))
        if "--check" not in sys.argv:
            file.write_text(text, "utf-8")
        elif file.read_text("utf-8") != text:
            changed.append(file.name)
    if "--check" in sys.argv:
        print(f"other bytes: {', '.join(changed)}" if changed else "the same bytes")
        raise SystemExit(bool(changed))


if __name__ == "__main__":
    main()
