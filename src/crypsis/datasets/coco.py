"""Object annotations in the format of COCO: the images they list, and masks as run lengths.

A file may come from anywhere: names that lead out of the image folder are refused, run lengths are checked before
an array is made of them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from ..errors import DatasetError
from ..io import IMAGE_SUFFIXES, MAX_PIXELS
from ..run_lengths import pack_counts, unpack_counts
from ..types import Mask
from .folder import counted, examples, file_key, missing_path

__all__ = [
    "CocoFile",
    "CocoImage",
    "Faults",
    "decode_rle",
    "encode_rle",
    "is_box",
    "is_coordinate",
    "outline_box",
    "read_coco",
    "refuse",
]

_LARGEST = 1e9

Faults = dict[str, list[str]]
"""Kind of fault → a sentence for each of that kind."""

_SHOWN_FAULTS = 3


@dataclass(frozen=True)
class CocoImage:
    """One image that an annotation file lists.

    Attributes:
        id: its id in the file.
        key: path inside the image folder without suffix, POSIX; what seeds go by.
        name: the same with suffix, without detours.
        path: where it should lie; not looked at yet.
        size: (height, width) in pixels as listed, or None.
        listed: the file's own object.
    """

    id: int | str
    key: str
    name: str
    path: Path
    size: tuple[int, int] | None
    listed: Mapping[str, Any]


@dataclass(frozen=True)
class CocoFile:
    """An annotation file and the folder of its images; see `read_coco`.

    Attributes:
        path: the file.
        sha256: of its bytes, hex.
        rest: everything in it but images and annotations.
        images: sorted by key.
        annotations: by image id, in the order of the file.
        warnings: one sentence each.
        faults: why it cannot be used.
    """

    path: Path
    sha256: str
    rest: Mapping[str, Any]
    images: tuple[CocoImage, ...]
    annotations: Mapping[int | str, Sequence[Mapping[str, Any]]]
    warnings: tuple[str, ...]
    faults: Mapping[str, Sequence[str]] = field(default_factory=dict)


def refuse(path: Path, faults: Mapping[str, Sequence[str]]) -> None:
    """Raise one error that names all kinds of faults of a file, and the first few of each kind.

    Raises:
        DatasetError: there is a fault.
    """
    said: list[str] = []
    for each in faults.values():
        said += each[:_SHOWN_FAULTS]
        if len(each) > _SHOWN_FAULTS:
            said.append(f"(And {len(each) - _SHOWN_FAULTS:,} more like these.)")
    if said:
        raise DatasetError(" ".join([said[0], *(text.removeprefix(f"{path}, ") for text in said[1:])]))


def read_coco(path: Path, root: Path, *, segmentations: bool = True, strict: bool = True) -> CocoFile:
    """Read an annotation file of COCO's instances or keypoints kind.

    Args:
        path: the JSON file.
        root: the folder its `file_name`s start from.
        segmentations: False drops the segmentation of each annotation that has a readable box while the file is parsed,
            which needs a third of the memory.
        strict: raise for faults of what is listed; False leaves that to the caller (`refuse`), who may have found more.

    Raises:
        DatasetError: not readable, not of this form, an id or a name that occurs twice, or a name that is absolute,
            leads out of `root`, or does not end like an image. All kinds of these are named at once.
    """
    if not root.is_dir():
        raise missing_path(root) if not root.exists() else DatasetError(f"{root}: is not a folder of images.")
    document, digest = _read(path, None if segmentations else _without_segmentation)
    images: dict[int | str, CocoImage] = {}
    keys: dict[str, str] = {}
    faults: Faults = defaultdict(list)
    for number, listed in enumerate(_objects(path, document, "images")):
        where = f"{path}, images[{number}]"
        image = _image(where, root, listed, faults)
        if image is None:
            continue
        if image.id in images:
            faults["image id twice"].append(f"{where}: the id {image.id!r} occurs twice ({image.name}).")
        elif keys.get(image.key) == image.name:
            faults["name twice"].append(f"{where}: {image.name} is listed twice.")
        elif image.key in keys:
            both = f"{image.name} and {keys[image.key]}"
            faults["name twice"].append(f"{where}: {both} have the same name but for the ending.")
        images.setdefault(image.id, image)
        keys.setdefault(image.key, image.name)
    if not document["images"]:
        raise DatasetError(f"{path}: lists no images.")
    annotations: dict[int | str, list[Mapping[str, Any]]] = {}
    orphans = []
    quoted = False
    for number, annotation in enumerate(_objects(path, document, "annotations")):
        owner = _id(f"{path}, annotations[{number}]", annotation, "image_id", faults)
        if owner is None:
            continue
        if owner in images:
            annotations.setdefault(owner, []).append(annotation)
        else:
            orphans.append(str(annotation.get("id")))
            quoted = quoted or (isinstance(owner, str) and owner.isdecimal() and int(owner[:20]) in images)
    if strict:
        refuse(path, faults)
    warnings = []
    if orphans:
        advice = "; write ids as numbers without quotes" if quoted else ""
        warnings.append(f"{path}: {counted(len(orphans), 'annotation')} of no listed image left out: "
                        f"{examples(orphans)}{advice}.")  # fmt: skip
    rest = {name: value for name, value in document.items() if name not in ("images", "annotations")}
    ordered = tuple(sorted(images.values(), key=lambda image: image.key))
    return CocoFile(path, digest, rest, ordered, annotations, tuple(warnings), faults)


def _without_segmentation(found: dict[str, Any]) -> dict[str, Any]:
    if is_box(found.get("bbox")):
        found.pop("segmentation", None)
    return found


def _read(path: Path, each_object: Callable[[dict[str, Any]], Any] | None) -> tuple[dict[str, Any], str]:
    try:
        data = path.read_bytes()
        document = json.loads(data, object_hook=each_object)
    except OSError as error:
        if not path.exists():
            raise missing_path(path) from error
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except (ValueError, RecursionError) as error:
        reason = f"is not JSON ({error})" if data.strip() else "the file is empty"
        raise DatasetError(f"{path}: {reason}.") from error
    if isinstance(document, list) and document and isinstance(document[0], dict) and "score" in document[0]:
        raise DatasetError(f"{path}: is a list of detections, as models write them; give the file of annotations.")
    if not isinstance(document, dict) or not isinstance(document.get("images"), list):
        raise DatasetError(f"{path}: is not a COCO annotation file; it needs an object with a list of images.")
    return document, hashlib.sha256(data).hexdigest()


def _objects(path: Path, document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    values = document.get(name, [])
    if not isinstance(values, list):
        raise DatasetError(f"{path}: {name} must be a list of objects; got {_shown(values)}.")
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            raise DatasetError(f"{path}: {name} must be a list of objects; {name}[{number}] is {_shown(value)}.")
    return values


def _shown(value: object) -> str:
    return f"{str(value)[:40]!r}"


def _id(where: str, value: Mapping[str, Any], name: str, faults: Faults) -> int | str | None:
    found = value.get(name)
    if isinstance(found, float) and found.is_integer():  # as tables with gaps write whole numbers
        return int(found)
    if isinstance(found, bool) or not isinstance(found, int | str):
        faults[name].append(f"{where}: {name} must be a number or text; got {_shown(found)}.")
        return None
    return found


def _image(where: str, root: Path, listed: Mapping[str, Any], faults: Faults) -> CocoImage | None:
    """Return an image, or None and note what is wrong in `faults`."""
    number = _id(where, listed, "id", faults)
    name = listed.get("file_name")
    if not isinstance(name, str) or not name.strip():
        faults["no name"].append(f"{where}: file_name must be text; got {_shown(name)}.")
        return None
    folder = Path(os.path.normpath(root.absolute()))
    # normpath, not resolve: a data set whose files are links to a store elsewhere is a common one
    path = Path(os.path.normpath(folder / name))
    if "\0" in name or not path.is_relative_to(folder) or path == folder:
        faults["outside"].append(f"{where}: the file_name {name!r} leads out of the image folder {folder}.")
        return None
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        faults["ending"].append(f"{where}: {name!r} is not an image ({', '.join(sorted(IMAGE_SUFFIXES))}).")
        return None
    if number is None:
        return None
    relative = path.relative_to(folder)
    height, width = _pixels(listed.get("height")), _pixels(listed.get("width"))
    size = (height, width) if height and width else None
    return CocoImage(number, file_key(relative, folder), relative.as_posix(), path, size, listed)


def _pixels(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < 2**31 or value != int(value):
        return None
    return int(value)


def decode_rle(segmentation: Mapping[str, Any], height: int, width: int) -> Mask:
    """Return the mask of COCO's run lengths, which run down the columns and start with background.

    Args:
        segmentation: `size` [height, width] and `counts`, a list of numbers or the compressed text.
        height: of the image, in pixels.
        width: of the image, in pixels.

    Raises:
        DatasetError: another size, or counts that do not fill it.
    """
    counts = _counts(segmentation, height, width)
    if height * width > MAX_PIXELS:
        raise DatasetError(f"run lengths of {height * width:,} pixels, more than the limit of {MAX_PIXELS:,}.")
    runs = np.repeat(np.arange(len(counts)) % 2 == 1, counts)
    return np.ascontiguousarray(runs.reshape((height, width), order="F"))


def _counts(segmentation: Mapping[str, Any], height: int, width: int) -> list[int]:
    counts = segmentation.get("counts")
    if isinstance(counts, str):
        try:
            counts = unpack_counts(counts)
        except ValueError as error:
            raise DatasetError(f"{error}.") from None
    if segmentation.get("size") != [height, width]:
        raise DatasetError(f"run lengths of size {segmentation.get('size')!r} in an image of {[height, width]}.")
    if (
        not isinstance(counts, list)
        or not all(isinstance(count, int) and count >= 0 for count in counts)
        or sum(counts) != height * width
    ):
        raise DatasetError(f"run lengths that do not fill the {height * width} pixels of the image.")
    return counts


def outline_box(segmentation: object, size: tuple[int, int] | None) -> list[float] | None:
    """Return the box [x, y, width, height] around a segmentation; None where it is not COCO's or holds nothing.

    Args:
        segmentation: a list of polygons, each [x, y, x, y, …], or run lengths (see `decode_rle`); no mask is made.
        size: (height, width) of the image; run lengths need it.
    """
    if isinstance(segmentation, Mapping):
        try:
            counts = _counts(segmentation, *size) if size else []
        except DatasetError:
            return None
        ends = list(accumulate(counts))
        runs = [(start, end - 1) for start, end in zip(ends[0::2], ends[1::2], strict=False) if end > start]
        if not size or not runs:
            return None
        height = size[0]
        # a run that goes on in the next column touches both the last row and the first
        whole = any(first // height < last // height for first, last in runs)
        top = 0 if whole else min(first % height for first, _ in runs)
        bottom = height if whole else max(last % height for _, last in runs) + 1
        left, right = runs[0][0] // height, runs[-1][1] // height + 1
        return [float(left), float(top), float(right - left), float(bottom - top)]
    polygons = segmentation if isinstance(segmentation, list) else []
    if not polygons or not all(isinstance(p, list) and len(p) >= 6 and len(p) % 2 == 0 for p in polygons):
        return None
    if not all(is_coordinate(value) for polygon in polygons for value in polygon):
        return None
    x, y = ([value for polygon in polygons for value in polygon[axis::2]] for axis in (0, 1))
    return [float(min(x)), float(min(y)), float(max(x) - min(x)), float(max(y) - min(y))]


def is_box(value: object) -> TypeGuard[list[float]]:
    """Tell whether a value is a list of four finite numbers, as a box has."""
    return isinstance(value, list) and len(value) == 4 and all(is_coordinate(number) for number in value)


def is_coordinate(value: object) -> TypeGuard[float]:
    """Tell whether a value is a finite number that a position in an image, in pixels, can be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def encode_rle(mask: Mask, *, compressed: bool) -> dict[str, Any]:
    """Return a mask, bool H×W, as COCO's run lengths; see `decode_rle`."""
    flat = mask.ravel(order="F")
    edges = [0, *(np.flatnonzero(flat[1:] != flat[:-1]) + 1).tolist(), flat.size]
    counts = [int(high - low) for low, high in pairwise(edges)]
    if flat[0]:
        counts.insert(0, 0)
    return {"size": list(mask.shape), "counts": pack_counts(counts) if compressed else counts}
