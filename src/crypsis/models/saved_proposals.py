"""A folder of saved proposals: one file per image, `DIR/<key>.npz` or `DIR/<key>.json`.

Of N proposals, `.npz` holds the arrays

    alpha   [N], float in [0, 1]: how well each region fits the name of what is looked for
    beta    [N], float in [0, 1]: how sure the detector is of it
    masks   N×H×W, bool, at the image's size
    boxes   [N, 4], x1, y1, x2, y2 in pixels; may be left out

and `.json` an object with the same members as lists, each mask being COCO's run lengths down the columns,
`{"size": [H, W], "counts": [background, object, background, …]}`, or the same with `counts` as the text into which
COCO's tools compress them. Nothing in a file is executed.
"""

from __future__ import annotations

import io
import json
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CrypsisError, ModelError
from ..io import read_file, write_atomic
from ..run_lengths import unpack_counts
from ..types import Mask, Proposals
from .options import read_options
from .predictions import listing_sha256, refuse_escape
from .segmenter import Description

__all__ = ["MAX_PROPOSALS", "SavedProposals", "save_proposals"]

MAX_PROPOSALS = 1000
"""Most proposals of one image that are read."""
_ARRAYS = ("alpha", "beta", "masks", "boxes")
_SUFFIXES = (".npz", ".json")


class SavedProposals:
    """Proposals that lie in a folder; see the module for its layout."""

    def __init__(self, folder: Path, *, name: str | None = None) -> None:
        """Take the folder; its files are read when they are asked for.

        Args:
            folder: what holds the files.
            name: label; the folder's name if None.

        Raises:
            ModelError: there is no such folder.
        """
        if not folder.is_dir():
            raise ModelError(f"There is no folder of proposals {folder} (looked in {folder.absolute().parent}).")
        self.folder = folder
        self.name = name or folder.resolve().name

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> SavedProposals:
        """Take `proposals:DIR`."""
        read_options("proposals", options, {})
        if not target:
            raise ModelError("proposals needs a folder; write proposals:DIR.")
        return cls(Path(target), name=name)

    def describe(self) -> Description:
        """Return the folder's name, and a digest of the files' names and sizes."""
        return {
            "observer": "proposals",
            "folder": self.folder.resolve().name,
            "proposals_sha256": listing_sha256(self.folder, set(_SUFFIXES)),
        }

    def load(self, key: str, shape: tuple[int, int]) -> Proposals:
        """Return the proposals of one image; see `StoredProposals.load`."""
        files = self._files(key)
        if not files:
            raise ModelError(f"{self.name}: there are no proposals {self.folder / key}.npz (nor .json).")
        if len(files) > 1:
            raise ModelError(f"{self.name}: several files for {key}: {', '.join(map(str, files))}; keep one.")
        path = files[0]
        try:
            found = _read_npz(path, shape) if path.suffix == ".npz" else _read_json(path, shape)
            proposals = Proposals(found["alpha"], found["beta"], found["masks"], found.get("boxes"))
        except CrypsisError as error:
            reason = str(error)
            raise ModelError(reason if str(path) in reason else f"{path}: {reason}") from error
        return proposals

    def check(self, keys: Sequence[str]) -> list[str]:
        """Return the keys that have no file; see `StoredProposals.check`."""
        return [key for key in keys if not self._files(key)]

    def _files(self, key: str) -> list[Path]:
        refuse_escape(key)
        return [path for suffix in _SUFFIXES if (path := self.folder / f"{key}{suffix}").is_file()]


def save_proposals(folder: Path, key: str, proposals: Proposals) -> None:
    """Write `folder/<key>.npz`, whole or not at all; `SavedProposals` reads it back, and equal ones are equal bytes.

    Raises:
        ModelError: the key would leave the folder.
        IncompleteError: the place cannot be written.
    """
    refuse_escape(key)
    arrays: dict[str, Any] = {name: getattr(proposals, name) for name in _ARRAYS}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: values for name, values in arrays.items() if values is not None})
    write_atomic(folder / f"{key}.npz", buffer.getvalue())


def _read_npz(path: Path, shape: tuple[int, int]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, whose headers are looked at first: a small file can promise much."""
    found = {}
    try:
        with zipfile.ZipFile(io.BytesIO(read_file(path))) as archive:
            names = set(archive.namelist())
            for name in _ARRAYS:
                if f"{name}.npy" not in names:
                    continue
                with archive.open(f"{name}.npy") as file:
                    if np.lib.format.read_magic(file) != (1, 0):
                        raise ValueError(f"{name} is not written in version 1.0 of the format")
                    held, _, dtype = np.lib.format.read_array_header_1_0(file)
                _check_shape(name, held, shape)
                if dtype.kind not in "bfiu":
                    raise ModelError(f"{name} is of type {dtype}; proposals are numbers, and masks bool.")
                with archive.open(f"{name}.npy") as file:
                    found[name] = np.lib.format.read_array(file, allow_pickle=False)
    except (
        zipfile.BadZipFile, zlib.error, tokenize.TokenError, ValueError, EOFError, NotImplementedError, RuntimeError,
    ) as error:  # fmt: skip
        if isinstance(error, CrypsisError):
            raise
        raise ModelError(f"{path}: not a readable .npz file ({error}).") from error
    _check_members(found)
    return found


def _read_json(path: Path, shape: tuple[int, int]) -> dict[str, NDArray[Any]]:
    try:
        content = json.loads(read_file(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not readable as JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path}: is not an object with alpha, beta and masks.")
    found: dict[str, NDArray[Any]] = {}
    for name in _ARRAYS:
        if (values := content.get(name)) is None:
            continue
        if not isinstance(values, list) or len(values) > MAX_PROPOSALS:
            raise ModelError(f"{path}: {name} is a list of at most {MAX_PROPOSALS} values.")
        try:
            if name == "masks":
                masks = [_decode(value, shape) for value in values]
                found[name] = np.array(masks, np.bool_).reshape(len(masks), *shape)
            else:
                found[name] = _numbers(values, 4 if name == "boxes" else None)
        except CrypsisError:
            raise
        except (ValueError, TypeError, OverflowError) as error:
            raise ModelError(f"{path}: {name} cannot be read ({error}).") from error
    _check_members(found)
    return found


def _numbers(values: list[Any], width: int | None) -> NDArray[np.float64]:
    """Return a list of numbers, or of lists of `width` numbers, as an array."""
    for row in values if width else [values]:
        if not isinstance(row, list) or (width and len(row) != width):
            raise ValueError(f"{row!r} is no list of {width} numbers")
        for value in row:
            if type(value) not in (int, float) or not np.isfinite(value):
                raise ValueError(f"{value!r} is no number")
    return np.array(values, np.float64).reshape((len(values), width) if width else -1)


def _check_members(found: Mapping[str, NDArray[Any]]) -> None:
    missing = [name for name in ("alpha", "beta", "masks") if name not in found]
    if missing:
        raise ModelError(f"has no {' and no '.join(missing)}; proposals are alpha, beta and masks.")


def _check_shape(name: str, held: tuple[int, ...], shape: tuple[int, int]) -> None:
    rest = {"masks": shape, "boxes": (4,)}.get(name, ())
    if len(held) != 1 + len(rest) or held[1:] != rest or held[0] > MAX_PROPOSALS:
        raise ModelError(f"{name} of N ≤ {MAX_PROPOSALS} proposals has shape {('N', *rest)}; got {held}.")


def _decode(mask: object, shape: tuple[int, int]) -> Mask:
    """Return the mask of COCO's run lengths, a list of numbers or the compressed text."""
    size, counts = (mask.get("size"), mask.get("counts")) if isinstance(mask, Mapping) else (None, None)
    if size != list(shape):
        raise ModelError(f"a mask has size {size}; the image has {list(shape)} (height, width).")
    if isinstance(counts, str):
        counts = unpack_counts(counts)
    if not isinstance(counts, list) or not all(type(count) is int and count >= 0 for count in counts):
        raise ModelError("counts of a mask are whole numbers from 0, as a list or as COCO's compressed text.")
    if sum(counts) != shape[0] * shape[1]:
        raise ModelError(f"run lengths of a mask make {sum(counts)} pixels; the image has {shape[0] * shape[1]}.")
    runs = np.repeat(np.arange(len(counts)) % 2 == 1, counts)
    return np.ascontiguousarray(runs.reshape(shape, order="F"))
