"""Run folders as a benchmark would leave them, made from the numbers of the COD10K-C paper instead of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from crypsis.catalog import get_entry, list_entries
from crypsis.io import encode_image
from crypsis.metrics.segmentation import METRICS
from crypsis.results import RUN_SCHEMA, SUMMARY_SCHEMA, RunFolder
from crypsis.severity.calibration import PSNR_CEILING, shipped_calibration

PAPER: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "cod10k_c_paper.json").read_text("utf-8"))
HOSTILE = "<b>&|_%"
SCRIPT = "<script>alert(1)</script>"
_TERMS = {
    "brightness": "brightness", "contrast": "contrast", "fog": "fog", "rain": "rain", "jpeg": "jpeg_compression",
    "gaussian_noise": "gaussian_noise", "gaussian_blur": "gaussian_blur", "motion_blur": "motion_blur",
}  # fmt: skip
_PAPER_NAMES = {"dice": "dice", "iou": "iou", "mae": "mae", "boundary_f1": "bf1", "ece_pooled": "ece"}
ENTRIES = {e.name: [dict(values) for values in e.parameters] for e in list_entries(family="cod10k-c")}


def paper_model(name: str) -> dict[str, Any]:
    """Return a model's part of a summary, with the numbers the paper prints and plausible ones in between."""
    clean, corrupted = PAPER["clean"][name], PAPER["mean_corrupted"][name]
    known = PAPER["dice_by_severity"]
    conditions = {"clean": dict.fromkeys(METRICS, 0.0) | {m: clean[p] for m, p in _PAPER_NAMES.items()}}
    means = {}
    for term, entry_term in _TERMS.items():
        mean = PAPER["dice_by_corruption"][name][term]
        drop = clean["dice"] - mean
        levels = known.get(term, {}).get(name) or [mean - 0.28 * drop * (s - 3) for s in range(1, 6)]
        means[f"cod10k-c/{entry_term}"] = mean
        for s, dice in enumerate(levels, 1):
            conditions[f"cod10k-c/{entry_term}@{s}"] = {"dice": dice}
    mean_drop = clean["dice"] - corrupted["dice"]
    for values in conditions.values():
        part = (clean["dice"] - values["dice"]) / mean_drop
        for metric, p in _PAPER_NAMES.items():
            if metric != "dice":
                values[metric] = clean[p] + part * (corrupted[p] - clean[p])
        _derive(values)
    entries = {}
    for entry in ENTRIES:
        of_entry = [conditions[f"{entry}@{s}"] for s in range(1, 6)]
        entries[entry] = {m: float(np.mean([v[m] for v in of_entry])) for m in METRICS} | {"dice": means[entry]}
    everything = {m: float(np.mean([v[m] for v in entries.values()])) for m in METRICS}
    everything |= {m: corrupted[p] for m, p in _PAPER_NAMES.items()}
    severities = {
        str(s): {m: float(np.mean([conditions[f"{e}@{s}"][m] for e in ENTRIES])) for m in METRICS} for s in range(1, 6)
    }
    delta = {m: everything[m] - conditions["clean"][m] for m in METRICS}
    retention = {m: everything[m] / conditions["clean"][m] for m in METRICS if METRICS[m].higher_is_better}
    return {
        "conditions": {k: _intervals(v) for k, v in conditions.items()},
        "entries": {k: _intervals(v) for k, v in entries.items()},
        "severities": {k: _intervals(v) for k, v in severities.items()},
        "corrupted": _intervals(everything),
        "delta": _intervals(delta, 0.4),
        "retention": _intervals(retention, 0.4),
        "strength": {"clean": _strength(0.0, PSNR_CEILING)}
        | {
            f"{entry}@{s}": _strength(dissimilarity, psnr)
            for entry in ENTRIES
            for s, (dissimilarity, psnr) in enumerate(
                zip(*(shipped_calibration(entry, metric).strengths for metric in ("1-ssim", "psnr")), strict=True), 1
            )
        },
        "reliability": {"clean": _bins(clean["ece"] * 2.5), "corrupted": _bins(corrupted["ece"] * 4)},
    }


def _strength(dissimilarity: float | None, psnr: float | None) -> dict[str, dict[str, float | None]]:
    """Return measured strengths; those of a corruption on the demo images will do for any."""
    return {m: {"value": v, "low": v, "high": v} for m, v in (("1-ssim", dissimilarity), ("psnr", psnr))}


def unmeasured(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's part of a summary as of saved predictions: without strength."""
    return {**model, "strength": {condition: _strength(None, None) for condition in model["strength"]}}


def _derive(values: dict[str, float]) -> None:
    dice = values["dice"]
    values["ece"] = 1.1 * values["ece_pooled"]
    values["ece_signed_gap"] = 0.9 * values["ece_pooled"]
    values["s_measure"] = 0.42 + 0.55 * dice
    values["weighted_f"] = dice - 0.03
    for kind, add in (("adaptive", 0.0), ("mean", 0.01), ("max", 0.03)):
        values[f"e_{kind}"] = 0.45 + 0.58 * dice + add
        values[f"f_{kind}"] = dice + 0.01 + add


def _intervals(values: Mapping[str, float], scale: float = 1.0) -> dict[str, dict[str, float | None]]:
    half = {m: scale * (0.004 if m in ("mae", "ece", "ece_pooled", "ece_signed_gap") else 0.021) for m in values}
    return {m: {"value": v, "low": v - half[m], "high": v + 0.9 * half[m]} for m, v in values.items()}


def _bins(gap: float) -> dict[str, list[float | None]]:
    share: list[float | None] = [0.0] * 15
    confidence: list[float | None] = [None] * 15
    accuracy: list[float | None] = [None] * 15
    for k in range(7, 15):
        confidence[k] = 0.51 if k == 7 else (k + 0.5) / 15
        accuracy[k] = max(0.4, confidence[k] - gap * (15 - k) / 4)
        share[k] = 0.004 * 1.25 ** (k - 7)
    share[14] = 1 - sum(s for s in share[:14] if s)
    confidence[14], accuracy[14] = 0.993, 0.993 - 0.2 * gap
    return {"share": share, "confidence": confidence, "accuracy": accuracy}


def make_run(
    folder: Path,
    models: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    failed: Mapping[str, str] | None = None,
    photographs: Sequence[tuple[str, str | None, Any, Any]] = (),
    **plan: Any,
) -> RunFolder:
    """Write a run of `models` (label → part of a summary) and return it.

    Args:
        folder: where.
        models: by default two of the paper's.
        failed: image → reason.
        photographs: (key, species, image, mask) to make the run's pictures of.
        plan: values of the plan that differ from the usual ones.
    """
    models = models or {name: paper_model(name) for name in ("SINet-v2", "RobustCODLite")}
    failed = dict(failed or {})
    full = {
        "benchmark": "cod10k-c",
        "dataset": {"name": "demo", "layout": "image+mask folders", "images": 48, "keys_sha256": "5f" * 32},
        "models": {name: {"kind": "onnx", "sha256": "c0de" * 16, "size": [384, 384]} for name in models},
        "entries": ENTRIES,
        "seed": 0,
        "limit": None,
        "normalize": "raw",
        "truth": "published",
        "on_size_mismatch": "error",
        "unit_images": 4,
    } | plan
    images = full["dataset"]["images"]
    session = {
        "started": "2026-06-01T12:00:00+00:00",
        "data": "/home/someone/private/demo",
        "models": ["onnx:/home/someone/private/model.onnx"],
        "versions": {"python": "3.11.7", "crypsis": "0.1.0", "numpy": "2.4.6"},
        "machine": {"system": "Linux-6.1-x86_64", "processors": 2},
    }
    summary = {
        "schema": SUMMARY_SCHEMA,
        "complete": not failed,
        "images": images,
        "scored": images - len(failed),
        "failed": failed,
        "empty_masks": [],
        "full_masks": [],
        "parts": hashlib.sha256(b"").hexdigest(),  # as of no parts
        "samples": 1000,
        "models": {name: {"scored": images - len(failed), **scores} for name, scores in models.items()},
    }
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"schema": RUN_SCHEMA, "plan": full, "sessions": [session]}), "utf-8")
    (folder / "summary.json").write_text(json.dumps(summary), "utf-8")
    if photographs:
        _write_pictures(folder / "pictures", list(models), photographs)
    return RunFolder.open(folder)


def drawn_photographs(count: int = 2, side: int = 96) -> list[tuple[str, str | None, Any, Any]]:
    """Return small made-up scenes: a blob on a texture."""
    found: list[tuple[str, str | None, Any, Any]] = []
    for i in range(count):
        rng = np.random.default_rng(i)
        texture = cv2.GaussianBlur(rng.integers(60, 200, (side, side + 32, 3)).astype(np.uint8), (0, 0), 2)
        mask = np.zeros(texture.shape[:2], np.uint8)
        cv2.ellipse(mask, (side // 2 + 8 * i, side // 2), (side // 4, side // 6), 20.0 * i, 0, 360, 1, -1)
        image = np.where(mask[:, :, None] > 0, texture // 2 + 40, texture).astype(np.uint8)
        found.append((f"scene-{i}", f"blob {i}", image, mask.astype(bool)))
    return found


def _write_pictures(
    folder: Path, models: Sequence[str], photographs: Sequence[tuple[str, str | None, Any, Any]]
) -> None:
    folder.mkdir()

    def write(name: str, pixels: Any) -> str:
        scale = min(1.0, 256 / max(pixels.shape[:2]))
        small = cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        (folder / name).write_bytes(encode_image(small, ".webp", quality=70))
        return name

    names = list(ENTRIES)
    worst = []
    for i, (key, species, image, mask) in enumerate(photographs):
        entry, severity = get_entry(names[-1 - i % 3]), 5 - i % 2
        soft = cv2.GaussianBlur(mask.astype(np.float32), (0, 0), 4)
        bad = np.roll(soft, (9, 23), (0, 1)) * np.linspace(0.1, 0.9, soft.shape[1], dtype=np.float32)
        views = {
            "clean": _outlined(image, mask),
            "degraded": entry.degrade(image, severity, seed=0, image_key=key),
            "truth": mask.astype(np.uint8) * 255,
            "prediction_clean": _outlined(np.repeat((soft * 255).astype(np.uint8)[:, :, None], 3, 2), mask),
            "prediction": _outlined(np.repeat((bad * 255).astype(np.uint8)[:, :, None], 3, 2), mask),
        }
        worst.append(
            {
                "image": key,
                "species": species,
                "model": models[i % len(models)],
                "entry": entry.name,
                "severity": severity,
                "dice_clean": 0.91 - 0.02 * i,
                "dice": 0.08 + 0.03 * i,
                "files": {view: write(f"worst-{i:02d}-{view}.webp", picture) for view, picture in views.items()},
            }
        )
    key, _, image, _ = photographs[0]
    scale = min(1.0, 160 / max(image.shape[:2]))
    cells = [{"entry": "clean", "severity": 0, "file": write("strip-0.webp", image)}]
    for name in names:
        for s in range(1, 6):
            small = get_entry(name).degrade(image, s, seed=0, image_key=key)
            small = cv2.resize(small, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
            cells.append({"entry": name, "severity": s, "file": write(f"strip-{len(cells)}.webp", small)})
    index = {"worst": worst, "strip": {"image": key, "cells": cells}}
    (folder / "index.json").write_text(json.dumps(index), "utf-8")


def _outlined(image: Any, mask: Any) -> Any:
    edge = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
    return np.where(edge[:, :, None] > 0, np.array([230, 159, 0], np.uint8), image).astype(np.uint8)
