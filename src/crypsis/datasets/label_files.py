"""Folders of one label file an image: YOLO's text and Pascal VOC's XML, read as what a COCO file says."""

from __future__ import annotations

import hashlib
import io
import math
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import TreeBuilder
from xml.parsers import expat

import PIL.Image

from ..errors import DatasetError
from ..io import exif_orientation, read_file
from .coco import CocoFile, CocoImage
from .folder import counted, examples, file_key, list_images

__all__ = ["find_labels", "read_labels"]

_SUFFIXES = {"voc": ".xml", "yolo": ".txt"}
_PLACES = (("JPEGImages", "Annotations"), ("images", "labels"))
_NAME = re.compile(r"""(?:(\d+)\s*:\s*)?(?:'([^']*)'|"([^"]*)"|([^\s,'"-][^,'"\n]*))""")
_FLOW = re.compile(r"^names\s*:\s*[\[{](.*?)[\]}]", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^names[ \t]*:[ \t]*\n((?:[ \t]*-.*\n?|[ \t]+\d+[ \t]*:.*\n?|[ \t]*\n)+)", re.MULTILINE)


def find_labels(images: Path, labels: Path | None, format: str) -> tuple[str, Path, Path] | None:
    """Return the format, the folder of images and that of label files; None if no label files are there.

    Args:
        images: the folder of images, or one that holds both in the usual arrangement.
        labels: the folder of label files; None looks inside `images`, beside it, and among the images.
        format: `yolo`, `voc`, or `auto` for whichever is there.
    """
    places = [(images, labels or images)]
    for old, new in _PLACES if labels is None else ():
        places.insert(0, (images / old, images / new))
        above, found, below = images.absolute().as_posix().rpartition(f"/{old}")
        if found and not below.partition("/")[0]:  # images/val has its labels in labels/val
            places.insert(0, (images, Path(f"{above}/{new}{below}")))
    for pictures, texts in places:
        for kind, suffix in _SUFFIXES.items():
            if format in ("auto", kind) and pictures.is_dir() and any(texts.rglob(f"*{suffix}")):
                return kind, pictures, texts
    return None


def read_labels(kind: str, images: Path, labels: Path) -> CocoFile:
    """Read the label files of a folder of images; an object's id is its place, such as `a.txt:3`.

    YOLO has `class x y width height` a line, or a polygon's corners, in shares of the upright picture. Names come from
    `classes.txt` or a YAML file in `labels` or up to two folders above; category ids are the numbers in the files.

    In Pascal VOC pixels count from 1 and a box includes both its corners, as in its development kit. Categories are
    the names in the files, sorted and numbered from 1; what is marked difficult is to be ignored.

    An image without a label file has no objects in YOLO, and is left out in Pascal VOC.

    Raises:
        DatasetError: files that cannot be read, XML that declares a document type, or classes without names.
    """
    suffix = _SUFFIXES[kind]
    paths = sorted(p for p in labels.rglob(f"*{suffix}") if not p.name.startswith(".") and p.name != "classes.txt")
    texts = {file_key(path.relative_to(labels), labels): read_file(path) for path in paths}
    digest = hashlib.sha256()
    for key, data in texts.items():
        digest.update(f"{key}\0{len(data)}\0".encode() + data)
    pictures, _ = list_images(images)
    bare, alone = sorted(pictures.keys() - texts.keys()), sorted(texts.keys() - pictures.keys())
    if kind == "voc":
        pictures = {key: path for key, path in pictures.items() if key in texts}
    if not pictures:
        raise DatasetError(f"{images}: holds no image that a label file ({suffix}) in {labels} belongs to.")
    names = _yolo_names(labels) if kind == "yolo" else {}
    sizes: dict[str, tuple[int, int] | None] = {}
    rows: dict[int | str, list[dict[str, Any]]] = {}
    broken = []
    for key, path in sorted(pictures.items()):
        try:
            if kind == "yolo":
                sizes[key] = size = _upright_size(path)
                rows[key] = _yolo_rows(f"{key}.txt", texts.get(key, b""), *size)
            else:
                sizes[key], rows[key] = _voc_rows(f"{key}.xml", texts[key])
        except Exception as error:  # a decoder may raise anything on damaged bytes
            broken.append(f"{path.name if kind == 'yolo' else f'{key}.xml'} ({error})")
    if broken:
        raise DatasetError(f"{labels}: {counted(len(broken), 'file')} cannot be read: {examples(broken)}.")
    if kind == "voc":
        names = dict(enumerate(sorted({row["name"] for group in rows.values() for row in group} - {""}), 1))
        numbers = {name: number for number, name in names.items()}
        rows = {key: [{**row, "category_id": numbers.get(row["name"])} for row in group] for key, group in rows.items()}
    notes = {
        f"image without a label file, {'left out' if kind == 'voc' else 'taken to show no object'}": bare,
        "label file without an image, left out": alone,
    }
    return CocoFile(
        labels,
        digest.hexdigest(),
        {"categories": [{"id": number, "name": name} for number, name in names.items()]},
        tuple(CocoImage(k, k, pictures[k].relative_to(images).as_posix(), pictures[k], sizes[k], {}) for k in sizes),
        rows,
        tuple(f"{labels}: {len(keys):,} × {text}: {examples(keys)}." for text, keys in notes.items() if keys),
    )


def _number(text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        return math.nan


def _upright_size(path: Path) -> tuple[int, int]:
    data = read_file(path)
    with PIL.Image.open(io.BytesIO(data)) as picture:
        width, height = picture.size
    return (width, height) if exif_orientation(data) >= 5 else (height, width)


def _yolo_rows(name: str, data: bytes, height: int, width: int) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        label, *shares = (_number(field) for field in line.split() or [""])
        values = [share for share in shares if -0.001 <= share <= 1.001]
        box = None
        if len(values) == len(shares) and (len(values) == 4 or (len(values) >= 6 and len(values) % 2 == 0)):
            x, y, w, h = values[:4]
            left, top = x - w / 2, y - h / 2
            if len(values) > 4:
                left, top = min(values[0::2]), min(values[1::2])
                w, h = max(values[0::2]) - left, max(values[1::2]) - top
            box = [left * width, top * height, w * width, h * height]
        if line.strip():
            rows.append({"id": f"{name}:{number}", "category_id": label, "bbox": box, "area": box and box[2] * box[3]})
    return rows


def _yolo_names(labels: Path) -> dict[int, str]:
    folders = (labels, *labels.absolute().parents[:2])
    for path in (p for folder in folders for form in ("classes.txt", "*.yaml") for p in sorted(folder.glob(form))):
        text = read_file(path).decode("utf-8-sig", "replace")
        if path.suffix == ".txt":
            return dict(enumerate(filter(None, map(str.strip, text.splitlines()))))
        text = re.sub(r"(?m)(^|[ \t])#.*", "", text)
        body = _FLOW.search(text) or _BLOCK.search(text)
        if body:
            found = [(m[1], (m[2] or m[3] or m[4] or "").strip()) for m in _NAME.finditer(body[1])]
            return {int(number or n): name for n, (number, name) in enumerate(found)}
    raise DatasetError(f"{labels}: the classes have no names; put a classes.txt there, one name a line.")


def _voc_rows(name: str, data: bytes) -> tuple[tuple[int, int] | None, list[dict[str, Any]]]:
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = builder.data, _refuse_doctype
    parser.Parse(data, True)
    tree = builder.close()
    height, width = (_number(tree.findtext(f"size/{side}")) for side in ("height", "width"))
    rows = []
    for number, found in enumerate(tree.iter("object"), 1):
        corners = (_number(found.findtext(f"bndbox/{side}")) for side in ("xmin", "ymin", "xmax", "ymax"))
        left, top, right, bottom = corners
        box = [left - 1, top - 1, right - left + 1, bottom - top + 1]
        row = {"id": f"{name} object {number}", "bbox": box, "area": box[2] * box[3]}
        rows.append({**row, "name": (found.findtext("name") or "").strip(), "ignore": found.findtext("difficult")})
    return (int(height), int(width)) if height >= 1 and width >= 1 else None, rows


def _refuse_doctype(*_: object) -> None:
    raise ValueError("declares a document type, which could name entities without end")
