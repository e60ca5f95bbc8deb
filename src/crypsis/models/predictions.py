"""A folder of saved maps, one sub-folder per condition: how the camouflage community hands results around.

    DIR/clean/<key>.png
    DIR/<entry>/<severity>/<key>.png

where `<entry>` is the catalog name (`cod10k-c/rain`) or its last part (`rain`), and the file is `.npy` (float in
[0, 1], or 8- or 16-bit), or an 8- or 16-bit gray picture (`.png`, `.tif`, `.jpg`, `.bmp`, `.webp`). A file
`<key>.uncertainty.png` beside it is read as the uncertainty map.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence, Set
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CrypsisError, ModelError
from ..io import IMAGE_SUFFIXES, MAX_PIXELS, decode_map, read_file
from ..types import Condition, Prediction, ProbabilityMap
from .options import read_options
from .resizing import resize_map
from .segmenter import Description

__all__ = ["SavedPredictions", "condition_places", "listing_sha256", "refuse_escape"]

_SUFFIXES = IMAGE_SUFFIXES | {".npy"}


class SavedPredictions:
    """Maps that lie in a folder; see the module for its layout."""

    def __init__(self, folder: Path, *, name: str | None = None) -> None:
        """Take the folder; its maps are read when they are asked for.

        Args:
            folder: what holds `clean` and the folders of the conditions.
            name: label; the folder's name if None.

        Raises:
            ModelError: there is no such folder.
        """
        if not folder.is_dir():
            raise ModelError(f"There is no folder of predictions {folder} (looked in {folder.absolute().parent}).")
        self.folder = folder
        self.name = name or folder.resolve().name
        self._listings: dict[Path, dict[str, list[Path]]] = {}

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> SavedPredictions:
        """Take `predictions:DIR`."""
        read_options("predictions", options, {})
        if not target:
            raise ModelError("predictions needs a folder; write predictions:DIR.")
        return cls(Path(target), name=name)

    def describe(self) -> Description:
        """Return the folder's name, how maps are read, and a digest of the maps' names and sizes."""
        return {
            "adapter": "predictions",
            "folder": self.folder.resolve().name,
            "maps_sha256": listing_sha256(self.folder, _SUFFIXES),
            "scaling": "8-bit/255, 16-bit/65535, float as stored",
            "resize": "bilinear",
        }

    def load(self, key: str, condition: Condition, shape: tuple[int, int]) -> Prediction:
        """Return the saved map at `shape`; see `PredictionSource.load`.

        Args:
            key: the image's name inside its data set, POSIX, without suffix.
            condition: `clean`, or entry and severity.
            shape: height and width of the image; a map of another size is resized bilinearly.

        Raises:
            ModelError: no map or several for this image, a damaged or colored file, values outside [0, 1], or
                a key that would leave the folder.
        """
        found = self._find(key, condition)
        if not found:
            places = " or ".join(str(place / f"{key}.png") for place in condition_places(self.folder, condition))
            raise ModelError(f"{self.name}: there is no map {places} (nor .npy, .tif, .jpg).")
        if len(found) > 1:
            files = ", ".join(map(str, found))
            raise ModelError(f"{self.name}: several maps for {key} under {condition}: {files}; keep one.")
        doubts = self._listing(found[0].parent).get(f"{_stem(found[0])}.uncertainty", [])
        if len(doubts) > 1:
            raise ModelError(f"{self.name}: several uncertainty maps: {', '.join(map(str, doubts))}; keep one.")
        uncertainty = _read_map(doubts[0], shape) if doubts else None
        return Prediction(_read_map(found[0], shape), uncertainty)

    def check(self, keys: Sequence[str], conditions: Sequence[Condition]) -> list[tuple[str, Condition]]:
        """Return the (key, condition) pairs that have no map; names are compared, no file is opened.

        Raises:
            ModelError: a key that would leave the folder.
        """
        return [(key, condition) for condition in conditions for key in keys if not self._find(key, condition)]

    def _find(self, key: str, condition: Condition) -> list[Path]:
        """Return the files that claim to be the map."""
        refuse_escape(key)
        parent, stem = PurePosixPath(key).parent, PurePosixPath(key).name
        return [
            path
            for place in condition_places(self.folder, condition)
            for path in self._listing(place / parent).get(unicodedata.normalize("NFC", stem), [])
        ]

    def _listing(self, folder: Path) -> dict[str, list[Path]]:
        """Return stem → files of a folder, listed once; names may be composed (NFC) or not, as on macOS."""
        if folder not in self._listings:
            listing: dict[str, list[Path]] = {}
            for path in sorted(folder.iterdir()) if folder.is_dir() else []:
                if path.suffix.lower() in _SUFFIXES:
                    listing.setdefault(_stem(path), []).append(path)
            self._listings[folder] = listing
        return self._listings[folder]


def listing_sha256(folder: Path, suffixes: Set[str]) -> str:
    """Return a digest of all names and sizes: other files under the same folder name are another model."""
    files = (path for path in folder.rglob("*") if path.suffix.lower() in suffixes and path.is_file())
    lines = sorted(f"{path.relative_to(folder).as_posix()} {path.stat().st_size}" for path in files)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def condition_places(folder: Path, condition: Condition) -> list[Path]:
    """Return where below `folder` something saved for a condition may lie.

    Raises:
        ModelError: the entry's name would lead out of the folder.
    """
    if condition.entry == "clean":
        return [folder / "clean"]
    refuse_escape(condition.entry)
    names = dict.fromkeys((condition.entry, PurePosixPath(condition.entry).name))
    return [folder / name / str(condition.severity) for name in names]


def _stem(path: Path) -> str:
    return unicodedata.normalize("NFC", path.stem)


def refuse_escape(name: str) -> None:
    """Raise `ModelError` unless `name` is a plain relative POSIX path."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or not part.isprintable() or set(part) & set('\\:"<>|?*') for part in parts):
        raise ModelError(f"{name!r} is not a name inside a folder of predictions; rename the image.")


def _read_map(path: Path, shape: tuple[int, int]) -> ProbabilityMap:
    """Return one file as float32 in [0, 1] at `shape`."""
    try:
        values = _read_npy(path) if path.suffix.lower() == ".npy" else decode_map(read_file(path), str(path))
        if values.shape != shape and values.shape == shape[::-1]:
            height, width = shape
            raise ModelError(f"{path}: is {height}×{width} pixels, its image {width}×{height}; turn it by 90°.")
        return Prediction(resize_map(values, shape)).probability
    except CrypsisError as error:
        reason = str(error)
        raise ModelError(reason if str(path) in reason else f"{path}: {reason}") from error


def _read_npy(path: Path) -> NDArray[np.float32]:
    """Return an H×W array (also 1×H×W or H×W×1) as float32; integers are scaled by their full range."""
    try:
        # mapped, so that a header that promises too much costs nothing
        stored: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not a readable NumPy array ({error}).") from error
    if stored.ndim == 3 and 1 in (stored.shape[0], stored.shape[2]):
        stored = stored[0] if stored.shape[0] == 1 else stored[:, :, 0]
    if stored.ndim != 2 or not 0 < stored.size <= MAX_PIXELS:
        raise ModelError(f"{path}: a map has two axes, height and width; got shape {stored.shape}.")
    if stored.dtype in (np.uint8, np.uint16):
        return np.asarray(stored / np.float32(np.iinfo(stored.dtype).max), np.float32)
    if stored.dtype.kind not in "fb":
        raise ModelError(f"{path}: a map is float, bool, uint8 or uint16; got {stored.dtype}.")
    return np.array(stored, np.float32)
