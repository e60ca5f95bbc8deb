"""The pictures that a run left for its report, checked: what lies in a run folder may come from anyone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ImageError, InputError
from ..io import decode_image, read_file
from ..results import RunFolder

__all__ = [
    "Picture",
    "Strip",
    "WorstDrop",
    "WorstLoss",
    "read_detection_pictures",
    "read_pictures",
    "read_score_pictures",
]

VIEWS = ("clean", "degraded", "truth", "prediction_clean", "prediction")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.webp")
_MOST_BYTES = 200_000
_MOST_SIDE = 1024


@dataclass(frozen=True, slots=True)
class Picture:
    """A WebP file, or why it cannot be shown.

    Attributes:
        data: the file; empty if it cannot be shown.
        width: in pixels.
        height: in pixels.
        problem: why it cannot be shown.
    """

    data: bytes
    width: int = 0
    height: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WorstDrop:
    """One of the largest losses of a run: an image, a model and a condition, in five views (see `VIEWS`)."""

    image: str
    species: str | None
    model: str
    entry: str
    severity: int
    dice_clean: float
    dice: float
    views: Mapping[str, Picture]


@dataclass(frozen=True, slots=True)
class Strip:
    """One image under every condition: (entry, severity) → picture; `("clean", 0)` is the image itself."""

    image: str
    cells: Mapping[tuple[str, int], Picture]


@dataclass(frozen=True, slots=True)
class WorstLoss:
    """An image on which a detector lost objects under a condition.

    Attributes:
        image: its key.
        model: the detector's label in its run.
        entry: the degradation.
        severity: its severity.
        objects: number of objects in the image.
        found: how many are found, by view (`clean`, `degraded`).
        scores: of the detections drawn, by view.
        views: the pictures.
    """

    image: str
    model: str
    entry: str
    severity: int
    objects: int
    found: Mapping[str, int]
    scores: Mapping[str, tuple[float, ...]]
    views: Mapping[str, Picture]


def read_pictures(run: RunFolder) -> tuple[list[WorstDrop], Strip | None]:
    """Return a run's pictures; nothing if it has none.

    A file that is missing or damaged becomes a `Picture` with its problem.

    Raises:
        InputError: the index is not one, or names a file outside the folder.
    """
    folder = run.path / "pictures"
    index = folder / "index.json"
    if not index.exists():
        return [], None
    try:
        content = json.loads(index.read_text("utf-8"))
        worst = [_worst(folder, item) for item in content["worst"]]
        strip = None if content["strip"] is None else _strip(folder, content["strip"])
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not_an_index(index, error) from error
    return worst, strip


def read_detection_pictures(folder: Path) -> tuple[list[WorstLoss], int]:
    """Return the pictures that a detection run left, and among how many images they are the worst.

    Args:
        folder: the run's.

    Raises:
        InputError: the index is not one, or names a file outside the folder.
    """
    folder = folder / "pictures"
    if not (folder / "index.json").exists():
        return [], 0
    try:
        content = json.loads((folder / "index.json").read_text("utf-8"))
        return [_loss(folder, item) for item in content["worst"]], int(content["images"])
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not_an_index(folder / "index.json", error) from error


def read_score_pictures(folder: Path) -> dict[str, dict[str, Picture]]:
    """Return the pictures that a run of scores left: image → view → picture; nothing if it has none.

    Args:
        folder: the run's.

    Raises:
        InputError: the index is not one, or names a file outside the folder.
    """
    folder = folder / "pictures"
    if not (folder / "index.json").exists():
        return {}
    try:
        content = json.loads((folder / "index.json").read_text("utf-8"))
        return {
            str(item["image"]): {str(view): _picture(folder, name) for view, name in item["files"].items()}
            for item in content["images"]
        }
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not_an_index(folder / "index.json", error) from error


def _not_an_index(index: Path, error: Exception) -> InputError:
    return InputError(
        f"{index}: is not the index of a run's pictures ({type(error).__name__}: {error}); remove the folder "
        "'pictures' and give the command of the run again."
    )


def _loss(folder: Path, item: Mapping[str, Any]) -> WorstLoss:
    views = {view: item["views"][view] for view in ("clean", "degraded")}
    return WorstLoss(
        image=str(item["image"]),
        model=str(item["model"]),
        entry=str(item["entry"]),
        severity=int(item["severity"]),
        objects=int(item["objects"]),
        found={view: int(content["found"]) for view, content in views.items()},
        scores={view: tuple(map(float, content["scores"])) for view, content in views.items()},
        views={view: _picture(folder, content["file"]) for view, content in views.items()},
    )


def _worst(folder: Path, item: Mapping[str, Any]) -> WorstDrop:
    species = item["species"]
    return WorstDrop(
        image=str(item["image"]),
        species=None if species is None else str(species),
        model=str(item["model"]),
        entry=str(item["entry"]),
        severity=int(item["severity"]),
        dice_clean=float(item["dice_clean"]),
        dice=float(item["dice"]),
        views={view: _picture(folder, item["files"][view]) for view in VIEWS},
    )


def _strip(folder: Path, item: Mapping[str, Any]) -> Strip:
    cells = {(str(c["entry"]), int(c["severity"])): _picture(folder, c["file"]) for c in item["cells"]}
    return Strip(str(item["image"]), cells)


def _picture(folder: Path, name: Any) -> Picture:
    """Read one WebP file that lies in `folder` itself."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or (folder / name).is_symlink():
        raise InputError(f"{folder / 'index.json'}: {str(name)[:80]!r} is not the plain name of a .webp file.")
    try:
        data = read_file(folder / name)
        if len(data) > _MOST_BYTES or data[:4] != b"RIFF" or data[8:12] != b"WEBP":
            return Picture(b"", problem="not a small WebP file")
        height, width = decode_image(data, name).shape[:2]
    except ImageError:
        return Picture(b"", problem="missing or damaged")
    if max(height, width) > _MOST_SIDE:
        return Picture(b"", problem=f"larger than {_MOST_SIDE} px")
    return Picture(data, width, height)
