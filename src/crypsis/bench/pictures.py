"""Pictures of a finished run: the worst drops, and one image under every condition.

They are made once, here, because the report reads nothing but the run folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..datasets.masks import Item
from ..errors import CrypsisError
from ..io import encode_image, write_atomic
from ..models.segmenter import load_model
from ..results import RunFolder
from ..types import Condition, Image, Mask
from .plan import MaskPlan
from .run import degraded, predict, truth_under
from .store import write_json

__all__ = ["make_pictures", "outlined"]

_SIDE = 256
_STRIP_SIDE = 160
_WORST = 8
_OUTLINE = (230, 159, 0)
_QUALITY = 72


def make_pictures(run: RunFolder, plan: MaskPlan) -> None:
    """Write `pictures/*.webp` and `pictures/index.json` of a run.

    The worst drops are the largest losses of Dice against the same image clean, each image once and each
    degradation at most twice. The strip shows the image whose clean score is the median of the set.
    """
    folder = run.path / "pictures"
    items = {item.key: item for item in plan.dataset.items}
    clean, drops = _dice(run)
    models = {m.name: m for m in (load_model(m) if isinstance(m, str) else m for m in plan.models)}
    worst: list[dict[str, Any]] = []
    for image, name, condition in _worst(clean, drops):
        sample = plan.dataset.load(items[image], on_size_mismatch=plan.on_size_mismatch)
        worse = degraded(plan, sample, condition)
        views = {"clean": outlined(sample.image, sample.mask), "degraded": _fit(worse, _SIDE)}
        views["truth"] = _fit(sample.mask.astype(np.uint8) * 255, _SIDE)
        for view, picture, under in (
            ("prediction_clean", sample.image, Condition("clean", 0)),
            ("prediction", worse, condition),
        ):
            prediction = predict(models[name], sample, [picture], [under])[0]
            if isinstance(prediction, CrypsisError):  # it was scored before: files changed in between
                raise prediction
            gray = np.rint(prediction.probability * 255).astype(np.uint8)
            views[view] = outlined(np.repeat(gray[:, :, None], 3, axis=2), truth_under(plan, sample, under))
        worst.append(
            {
                "image": image,
                "species": sample.species,
                "model": name,
                "entry": condition.entry,
                "severity": condition.severity,
                "dice_clean": clean[name, image],
                "dice": drops[name, image, condition],
                "files": _write(folder, f"worst-{len(worst):02d}", views),
            }
        )
    write_json(folder / "index.json", {"worst": worst, "strip": _strip(plan, items, clean, folder)})


def _dice(
    run: RunFolder,
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str, Condition], float]]:
    """Return Dice of (model, image) clean, and of (model, image, condition) degraded; failed rows left out."""
    clean: dict[tuple[str, str], float] = {}
    worse: dict[tuple[str, str, Condition], float] = {}
    for table in run.tables(["model", "image", "entry", "severity", "dice"]):
        for row in table.to_pylist():
            if row["dice"] is None:
                continue
            if row["severity"] == 0:
                clean[row["model"], row["image"]] = row["dice"]
            else:
                worse[row["model"], row["image"], Condition(row["entry"], row["severity"])] = row["dice"]
    return clean, worse


def _worst(
    clean: Mapping[tuple[str, str], float], worse: Mapping[tuple[str, str, Condition], float]
) -> Iterator[tuple[str, str, Condition]]:
    """Yield (image, model, condition) from the largest drop down."""
    drops = sorted(
        (dice - clean[model, image], image, model, condition)
        for (model, image, condition), dice in worse.items()
        if (model, image) in clean
    )
    images: set[str] = set()
    entries: Counter[str] = Counter()
    for drop, image, model, condition in drops:
        if drop >= 0 or len(images) == _WORST:
            return
        if image not in images and entries[condition.entry] < 2:
            images.add(image)
            entries[condition.entry] += 1
            yield image, model, condition


def _strip(
    plan: MaskPlan, items: Mapping[str, Item], clean: Mapping[tuple[str, str], float], folder: Path
) -> dict[str, Any] | None:
    """Write one image under every condition."""
    if not clean:
        return None
    first = next(iter(clean))[0]
    ranked = sorted((dice, image) for (model, image), dice in clean.items() if model == first)
    image = ranked[len(ranked) // 2][1]
    sample = plan.dataset.load(items[image], on_size_mismatch=plan.on_size_mismatch)
    views = {
        str(index): _fit(degraded(plan, sample, condition), _STRIP_SIDE)
        for index, condition in enumerate(plan.conditions)
    }
    files = _write(folder, "strip", views)
    cells = [
        {"entry": condition.entry, "severity": condition.severity, "file": files[str(index)]}
        for index, condition in enumerate(plan.conditions)
    ]
    return {"image": image, "cells": cells}


def _fit(picture: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Shrink to at most `side` px; small pictures stay."""
    scale = side / max(picture.shape[:2])
    if scale >= 1:
        return picture
    size = [max(1, round(scale * n)) for n in picture.shape[1::-1]]
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)


def outlined(picture: Image, mask: Mask) -> Image:
    """Draw the outline of the truth on a small copy."""
    small = _fit(picture, _SIDE).copy()
    truth = (_fit(mask.astype(np.uint8) * 255, _SIDE) > 127).astype(np.uint8)
    kernel = np.ones((3, 3), np.uint8)
    edge = cv2.dilate(truth, kernel) - cv2.erode(truth, kernel, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    small[edge > 0] = _OUTLINE
    return small


def _write(folder: Path, stem: str, views: Mapping[str, NDArray[np.uint8]]) -> dict[str, str]:
    files = {}
    for view, picture in views.items():
        files[view] = f"{stem}-{view}.webp"
        write_atomic(folder / files[view], encode_image(picture, ".webp", quality=_QUALITY))
    return files
