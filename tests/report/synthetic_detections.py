"""Folders of detection runs as a benchmark would leave them, with made-up numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crypsis.catalog import get_entry, list_entries
from crypsis.detection_results import DETECTION_RUN_SCHEMA, DETECTION_SUMMARY_SCHEMA, PLACES, DetectionRun
from crypsis.io import encode_image
from crypsis.metrics.detection import SCORES, drops_by_label
from crypsis.metrics.robustness import aggregate

ENTRIES = (
    "imagenet-c/impulse_noise", "imagenet-c/elastic_transform", "imagenet-c/fog", "imagenet-c/jpeg_compression",
    "arniqa/impulsenoise", "arniqa/jitter", "arniqa/brighten", "real-camera/broken_sensor",
)  # fmt: skip
"""Two have one title, two move content."""
PAPER_ENTRIES = tuple(
    e.name for family in ("imagenet-c", "arniqa", "real-camera") for e in list_entries(family=family) if not e.extra
)
CATEGORIES = {"1": "cat", "7": "dog"}
DATASET = {
    "name": "demo",
    "layout": "coco",
    "images": 120,
    "keys_sha256": "5f" * 32,
    "annotations_sha256": "6a" * 32,
}
_RESAMPLED = ("ap", "ap50", "ap75")
_FACTORS = dict(zip(SCORES, (1, 1.5, 1.1, 0.6, 0.9, 1.2, 0.8, 1.1, 1.2, 0.7, 1.1, 1.3), strict=True))


def detector(clean: float, slope: float, *, small: bool = True) -> dict[str, float | bool]:
    """Return what decides a detector's numbers: AP clean, its loss with severity, whether there are small objects."""
    return {"clean": clean, "slope": slope, "small": small}


def _interval(values: Any, metric: str) -> dict[str, float | None]:
    value = float(values)
    if not np.isfinite(value):
        return {"value": None, "low": None, "high": None}
    if metric not in _RESAMPLED:
        return {"value": value, "low": None, "high": None}
    return {"value": value, "low": value - 0.02, "high": value + 0.02}


def scores_of(
    model: Mapping[str, Any], entries: Sequence[str], severities: Sequence[int], images: int
) -> dict[str, Any]:
    """Return a detector's part of a summary, its means and drops made as the real one's are."""
    tables: dict[str, Any] = {"scored": images, "conditions": {}, "entries": {}, "severities": {}}
    tables |= {"places": {place: {} for place in PLACES}, "corrupted": {}, "delta": {}, "retention": {}}
    labels = {
        "family": [get_entry(e).family for e in entries],
        "cause": [get_entry(e).cause.code for e in entries],
        "effect": [get_entry(e).effect.code for e in entries],
        "group": [get_entry(e).group.code for e in entries],
        "cell": [f"{get_entry(e).cause.code}-{get_entry(e).effect.code}" for e in entries],
    }
    for metric in SCORES:
        clean = model["clean"] * _FACTORS[metric]
        if metric.endswith("small") and not model["small"]:
            clean = np.nan
        order = np.arange(len(entries))[:, None] / max(len(entries) - 1, 1)
        under = clean * np.maximum(1.05 - model["slope"] * (0.3 + order) * np.array(severities)[None, :], 0.0)
        result = aggregate(np.float64(clean), under)
        conditions = {"clean": clean}
        conditions |= {f"{e}@{s}": under[i, j] for i, e in enumerate(entries) for j, s in enumerate(severities)}
        for name, value in conditions.items():
            tables["conditions"].setdefault(name, {})[metric] = _interval(value, metric)
        for i, entry in enumerate(entries):
            tables["entries"].setdefault(entry, {})[metric] = _interval(result.by_corruption[i], metric)
        for j, severity in enumerate(severities):
            assert result.by_severity is not None
            tables["severities"].setdefault(str(severity), {})[metric] = _interval(result.by_severity[j], metric)
        for place in PLACES:
            for label, drop in drops_by_label(result, labels[place]).items():
                tables["places"][place].setdefault(label, {})[metric] = _interval(drop, metric)
        for name in ("corrupted", "delta", "retention"):
            tables[name][metric] = _interval(getattr(result, name), metric)
    ap = tables["corrupted"]["ap"]["value"]
    tables["per_category"] = {"1": {"clean": 0.5, "corrupted": ap}, "7": {"clean": None, "corrupted": None}}
    return tables


def make_detections(
    folder: Path,
    models: Mapping[str, Mapping[str, Any] | None] | None = None,
    *,
    entries: Sequence[str] = ENTRIES,
    severities: Sequence[int] = (1, 3, 5),
    failed: Mapping[str, str] | None = None,
    measured: bool = True,
    categories: Mapping[str, str] = CATEGORIES,
    **plan: Any,
) -> DetectionRun:
    """Write a run of `models` (label → `detector`, None for one that failed on all images) and return it."""
    models = models or {"net": detector(0.4, 0.12)}
    failed = dict(failed or {})
    full: dict[str, Any] = {
        "benchmark": "coco-degradation",
        "dataset": DATASET,
        "models": {name: {"adapter": "onnx", "sha256": "c0de" * 16} for name in models},
        "entries": {name: [dict(values) for values in get_entry(name).parameters] for name in entries},
        "severities": list(severities),
        "seed": 0,
        "limit": None,
        "labels": "names",
        "keep": [],
        "truth": "published",
        "strength_images": 50,
        "unit_images": 4,
    } | plan
    images = full["dataset"]["images"]
    session = {
        "started": "2026-06-01T12:00:00+00:00",
        "data": "/home/someone/private/coco",
        "models": ["onnx:/home/someone/private/model.onnx"],
        "versions": {"python": "3.11.7", "crypsis": "0.1.0"},
        "machine": {"system": "Linux-6.1-x86_64", "processors": 2},
    }
    conditions = ["clean", *(f"{e}@{s}" for e in entries for s in severities)]
    summary = {
        "schema": DETECTION_SUMMARY_SCHEMA,
        "complete": not failed,
        "images": images,
        "failed": failed,
        "objects": 345,
        "categories": dict(categories),
        "evaluator": {"name": "hotcoco", "version": "1.3.0"},
        "samples": 1000,
        "parts": hashlib.sha256(b"").hexdigest(),  # as of no parts
        "measured": 50 if measured else 0,
        "strength": {
            c: {"1-ssim": 0.0 if c == "clean" else 0.02 + 0.15 * int(c[-1]) + 0.003 * i, "psnr": 30.0 - i}
            for i, c in enumerate(conditions)
        }
        if measured
        else {},
        "models": {
            name: None if model is None else scores_of(model, entries, severities, images - len(failed))
            for name, model in models.items()
        },
        "ranks": None,
    }
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(
        json.dumps({"schema": DETECTION_RUN_SCHEMA, "plan": full, "sessions": [session]}), "utf-8"
    )
    (folder / "summary.json").write_text(json.dumps(summary), "utf-8")
    lines = [{"unit": f"u{i}", "decode": 0.5, "degrade": 1.5, "detect": 8.0, "total": 10.0} for i in range(3)]
    (folder / "timing.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return DetectionRun.open(folder)


def add_pictures(run: DetectionRun, *, image: str = "scene-1", model: str | None = None, side: int = 96) -> None:
    """Write the pictures of two worst images of a run."""
    folder = run.path / "pictures"
    folder.mkdir()
    worst = []
    for i in range(2):
        views = {}
        for view, found in (("clean", 2 + i), ("degraded", 0)):
            pixels = np.random.default_rng(i).integers(0, 255, (side, side, 3)).astype(np.uint8)
            name = f"worst-{i:02d}-{view}.webp"
            (folder / name).write_bytes(encode_image(pixels, ".webp", quality=60))
            views[view] = {"file": name, "found": found, "scores": [0.9, 0.45][:found]}
        worst.append(
            {"image": image, "model": model or run.models[0], "entry": run.entries[i], "severity": 3, "objects": 4,
             "views": views}
        )  # fmt: skip
    index = {"worst": worst, "found": {"score": 0.3, "iou": 0.5}, "images": 120}
    (folder / "index.json").write_text(json.dumps(index), "utf-8")
