"""Data sets of images with object boxes: COCO's instances, YOLO and Pascal VOC folders, and the demo set.

Opening a set reads its annotations and decodes no image; what cannot be used is left out by name, so that a truth that
is made here is one an evaluator takes as it is.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DatasetError, ImageError, InputError, UnknownNameError
from ..io import IMAGE_SUFFIXES, decode_image, exif_orientation, read_file
from ..types import Image
from .coco import CocoFile, CocoImage, Faults, is_box, is_coordinate, outline_box, read_coco, refuse
from .demo import demo_folder
from .folder import counted, examples, missing_path
from .label_files import find_labels, read_labels

__all__ = ["FORMATS", "DetectionDataset", "DetectionItem", "open_detection", "size_fault"]

FORMATS = ("auto", "coco", "yolo", "voc")
"""What annotations may be written in; `auto` looks."""

_FAULTS = {
    "category": "of no listed category left out",
    "quoted": "whose category_id is text left out (write ids as numbers, without quotes)",
    "flag": "whose iscrowd or ignore is neither 0 nor 1 left out",
    "box": "without four finite numbers as a box left out",
    "empty": "whose box has no area left out",
    "twice": "listed again with the same id, image, category and box counted once",
    "shared": "sharing an id with another, numbered anew",
    "zero": "with the id 0, which COCO's evaluators take for no match, numbered anew",
    "outline": "without a readable box, which is taken from the segmentation",
    "area": "without a usable area, for which that of the box is taken",
    "ignore": "marked ignore but not iscrowd, which COCO's evaluators count all the same",
    "border": "with a box over the border of its image, kept as COCO's evaluators do",
    "outside": "with a box wholly outside its image, kept as COCO's evaluators do",
}
_BORDER = 1.0  # pixels: rounded outlines reach that far over it
_LARGEST_ID = 2**53  # evaluators carry ids in float64


@dataclass(frozen=True)
class DetectionItem:
    """One image of a detection set.

    Attributes:
        id: what the annotation file, and results that go with it, call the image; its key in folders of labels.
        number: the same for evaluators, which want numbers: `id` where all ids are whole numbers from 0 on, else its
            place in the set's order from 1 on. It stays when the set is limited.
        key: path inside the image folder without suffix, POSIX, unique; what seeds go by.
        image: the image file.
        file_name: path inside the image folder.
        size: (height, width) in pixels as listed, or None; it is that of the upright picture (see `size_fault`).
    """

    id: int | str
    number: int
    key: str
    image: Path
    file_name: str
    size: tuple[int, int] | None


@dataclass(frozen=True)
class DetectionDataset:
    """A detection set that was found and checked; see `open_detection`.

    Attributes:
        name: what to call it.
        root: the folder of the images.
        layout: `coco`, `yolo`, `voc` or `demo`.
        items: its images, sorted by key.
        categories: id → name, sorted by id.
        annotations: image id → its objects in the order of the file: `id` as listed, `category_id`, `bbox` [x, y,
            width, height] in pixels, `area`, `iscrowd` and `ignore` 0 or 1, and `segmentation` where it was asked for.
            Images without objects are not in it.
        sha256: of the annotation file, or of all label files with their names, hex.
        warnings: what a user should know before trusting numbers, one sentence each.
    """

    name: str
    root: Path
    layout: str
    items: tuple[DetectionItem, ...]
    categories: Mapping[int, str]
    annotations: Mapping[int | str, Sequence[Mapping[str, Any]]] = dataclasses.field(repr=False)
    sha256: str
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Number of images."""
        return len(self.items)

    def load(self, item: DetectionItem) -> Image:
        """Read and decode one image, upright.

        Raises:
            ImageError: it cannot be read or decoded, or has not the listed size.
        """
        data = read_file(item.image)
        image = decode_image(data, str(item.image))
        fault = size_fault(item, image.shape[:2], data)
        if fault is not None:
            raise ImageError(f"{item.key}: {fault}")
        return image

    def fingerprint(self) -> str:
        """Return the SHA-256 (hex) of the sorted keys: which images, not what is in them."""
        return hashlib.sha256("\n".join(sorted(item.key for item in self.items)).encode()).hexdigest()

    def limit(self, n: int) -> DetectionDataset:
        """Return a set of `n` images evenly spaced over the sorted keys (all of them if there are not more).

        Raises:
            InputError: `n` is below 1.
        """
        if n < 1:
            raise InputError(f"A limit must be at least 1 image; got {n}.")
        total = len(self.items)
        if n >= total:
            return self
        return dataclasses.replace(self, items=tuple(self.items[i * total // n] for i in range(n)))

    def truth(self) -> dict[str, Any]:
        """Return images, annotations and categories in COCO's form, of the items of this set alone.

        Images go by their `number`. Annotations are numbered from 1 on in the order of the items: evaluators take the
        id 0 for "no match" and lose objects that share an id. Crowds and ignored objects are in it, images without
        objects too. All categories are listed, in the order of their ids.
        """
        images = []
        annotations: list[dict[str, Any]] = []
        for item in self.items:
            height, width = item.size or (None, None)
            size = {"width": width, "height": height} if item.size else {}
            images.append({"id": item.number, "file_name": item.file_name, **size})
            for found in self.annotations.get(item.id, ()):
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": item.number,
                        "category_id": found["category_id"],
                        "bbox": list(found["bbox"]),
                        "area": found["area"],
                        "iscrowd": found["iscrowd"],
                        "ignore": found["ignore"],
                    }
                )
        categories = [{"id": number, "name": name} for number, name in self.categories.items()]
        return {"images": images, "annotations": annotations, "categories": categories}


def size_fault(item: DetectionItem, size: tuple[int, ...], data: bytes) -> str | None:
    """Return a sentence if boxes listed for another picture would be laid over this one, else None.

    Pictures are read upright, with their EXIF orientation applied, and boxes belong to the upright picture. The size
    that was listed with the boxes shows where they do not; a picture that is turned by half or mirrored shows nothing.

    Args:
        item: the image.
        size: (height, width) of the decoded, upright picture.
        data: the bytes of the image file.
    """
    if item.size is None or item.size == size:
        return None
    (height, width), (listed_height, listed_width) = size, item.size
    sizes = f"the image is {width}×{height} pixels upright, but listed with {listed_width}×{listed_height}"
    orientation = exif_orientation(data)
    if orientation >= 5 and item.size == (width, height):
        return (
            f"{sizes}: its boxes lie as before the EXIF rotation (orientation {orientation}); "
            "turn them as the image, or remove the tag from the image."
        )
    return f"{sizes}; repair the file or its entry."


def open_detection(
    images: str | Path, annotations: str | Path | None = None, *, format: str = "auto", segmentations: bool = False
) -> DetectionDataset:
    """Read the annotations of a detection set, and find its images.

    Objects that no evaluator can use are left out with a warning that counts and names them: those of no listed image
    or category, without a finite box, or with one of no area. Boxes that reach over the border are kept as they are,
    as COCO's evaluators do. A box that is missing or not finite is taken from the segmentation if there is one, an
    area from the box. An object
    listed twice counts once.

    Args:
        images: `demo` for the built-in set, whose species are the categories; else the folder of images, or one that
            holds images and labels in the arrangement of YOLO (`images`, `labels`) or Pascal VOC (`JPEGImages`,
            `Annotations`).
        annotations: a COCO file (.json) whose file names start from `images`, or a folder of YOLO (.txt) or Pascal VOC
            (.xml) files; not needed where they lie in the usual arrangement.
        format: one of `FORMATS`.
        segmentations: keep those of a COCO file, which takes about three times the memory.

    Raises:
        DatasetError: not there, not readable, not annotations of objects, images that are listed but absent, ids or
            names of images that occur twice, or nothing left to score. All kinds of faults are named at once.
        UnknownNameError: an unknown format.
    """
    if format not in FORMATS:
        raise UnknownNameError.among("format", format, FORMATS)
    if images == "demo" and annotations is None:
        folder = demo_folder()
        file = read_coco(folder / "annotations.json", folder / "images")
        return _checked("demo", "demo", folder / "images", file, keep=segmentations)
    root = Path(images)
    path = None if annotations is None else Path(annotations)
    if not root.exists():
        raise missing_path(root)
    if path is not None and not path.exists():
        raise missing_path(path)
    if format == "coco" or (format == "auto" and path is not None and not path.is_dir()):
        if path is None:
            raise DatasetError(f"{root}: COCO annotations are a file beside the images; give it too.")
        file = read_coco(path, root, segmentations=segmentations, strict=False)
        return _checked(path.stem, "coco", root, file, keep=segmentations)
    found = find_labels(root, path, format)
    if found is None:
        raise DatasetError(
            f"{path or root}: no label files are here; give a COCO file (.json) as annotations, or a folder of YOLO "
            "(images, labels) or Pascal VOC (JPEGImages, Annotations) files."
        )
    layout, pictures, labels = found
    return _checked(root.absolute().name, layout, pictures, read_labels(layout, pictures, labels), keep=False)


def _checked(name: str, layout: str, root: Path, file: CocoFile, *, keep: bool) -> DetectionDataset:
    broken: Faults = defaultdict(list, {kind: list(each) for kind, each in file.faults.items()})
    categories = _categories(file, broken)
    absent = _absent(root, file)
    refuse(file.path, {**broken, "absent": absent})
    faults: Faults = defaultdict(list)
    first: dict[str, tuple[Any, ...]] = {}
    annotations = {}
    for image in file.images:
        rows = [_usable(row, image, categories, first, faults, keep) for row in file.annotations.get(image.id, ())]
        if any(rows):
            annotations[image.id] = tuple(row for row in rows if row is not None)
    warnings = [*file.warnings, *_sizeless(file), *_unlisted(file)]
    for kind, text in _FAULTS.items():
        if faults[kind]:
            count = counted(len(faults[kind]), "annotation")
            warnings.append(f"{file.path}: {count} {text}: {examples(faults[kind])}.")
    for name, sharing in _namesakes(categories).items():
        numbers = " and ".join(map(str, sharing))
        warnings.append(f"{file.path}: the categories {numbers} are all called {name!r}; classes of that name mean the "
                        f"category {sharing[0]}, and the objects of the others are never found by name.")  # fmt: skip
    if not annotations:
        raise DatasetError(" ".join([f"{file.path}: holds no object to score against.", *warnings]))
    ids = [image.id for image in file.images]
    numbered = all(isinstance(i, int) and 0 <= i < _LARGEST_ID for i in ids)
    items = tuple(
        DetectionItem(i.id, int(i.id) if numbered else n, i.key, i.path, i.name, i.size)
        for n, i in enumerate(file.images, 1)
    )
    return DetectionDataset(name, root, layout, items, categories, annotations, file.sha256, tuple(warnings))


def _categories(file: CocoFile, faults: Faults) -> dict[int, str]:
    sample = next((listed for group in file.annotations.values() for listed in group), {})
    for mark, kind in (("segments_info", "panoptic segments"), ("caption", "captions")):
        if mark in sample and "category_id" not in sample:
            raise DatasetError(f"{file.path}: holds {kind}; give the file of instances, with a box for each object.")
    listed = file.rest.get("categories")
    if not isinstance(listed, list) or not listed:
        raise DatasetError(f"{file.path}: lists no categories; it needs a list of objects with id and name.")
    names: dict[int, str] = {}
    for number, category in enumerate(listed):
        where = f"{file.path}, categories[{number}]"
        found, name = (category.get("id"), category.get("name")) if isinstance(category, dict) else (None, None)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < _LARGEST_ID:
            advice = ", without quotes" if isinstance(found, str) else ""
            text = f"{where}: needs an id that is a whole number from 0 on{advice}; got {str(found)[:40]!r}."
            faults["category id"].append(text)
        elif not isinstance(name, str) or not name.strip():
            faults["category name"].append(f"{where}: needs a name; got {str(name)[:40]!r}.")
        elif found in names:
            faults["category twice"].append(f"{where}: the id {found} occurs twice ({names[found]} and {name}).")
        else:
            names[found] = name
    return dict(sorted(names.items()))


def _namesakes(categories: Mapping[int, str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for number, name in categories.items():
        found[name].append(number)
    return {name: numbers for name, numbers in found.items() if len(numbers) > 1}


def _absent(root: Path, file: CocoFile) -> list[str]:
    """Return a sentence if images are listed but not there."""
    absent = [image for image in file.images if not os.path.isfile(image.path)]  # noqa: PTH113 - a name may be too long
    if not absent:
        return []
    below = sorted(f for f in root.iterdir() if f.is_dir() and os.path.isfile(f / absent[0].name))  # noqa: PTH113
    advice = f"did you mean {below[0]}?" if below else "fetch them, or take them out of the file."
    return [
        f"{root}: {len(absent):,} of the {counted(len(file.images), 'image')} that {file.path} lists "
        f"{'is' if len(absent) == 1 else 'are'} not there ({examples(i.name for i in absent)}); {advice}"
    ]


def _sizeless(file: CocoFile) -> list[str]:
    names = [image.name for image in file.images if image.size is None]
    if not names:
        return []
    return [f"{file.path}: {counted(len(names), 'image')} without usable width and height: {examples(names)}."]


def _unlisted(file: CocoFile) -> list[str]:
    """Look for further images in the folders of the listed ones, not below them."""
    listed: dict[Path, set[str]] = defaultdict(set)
    for image in file.images:
        listed[image.path.parent].add(image.path.name)
    others = []
    for folder, names in listed.items():
        with os.scandir(folder) as entries:
            found = (e.name for e in entries if not e.name.startswith("."))
            others += [n for n in found if Path(n).suffix.lower() in IMAGE_SUFFIXES and n not in names]
    if not others:
        return []
    beside = counted(len(others), "image")
    return [f"{file.path}: {beside} beside the listed ones left out: {examples(sorted(others))}."]


def _usable(
    listed: Mapping[str, Any],
    image: CocoImage,
    categories: Mapping[int, str],
    first: dict[str, tuple[Any, ...]],
    faults: Mapping[str, list[str]],
    keep: bool,
) -> dict[str, Any] | None:
    """Return an object in the form of `DetectionDataset.annotations`, or None; note what is wrong in `faults`."""
    name = str(listed.get("id", "without id"))[:40]
    place = f"{name} ({image.name})"
    category = listed.get("category_id")
    if isinstance(category, bool) or not isinstance(category, int | float) or category not in categories:
        faults["quoted" if isinstance(category, str) else "category"].append(place)
        return None
    crowd, ignore = _flag(listed.get("iscrowd")), _flag(listed.get("ignore"))
    if crowd is None or ignore is None:
        faults["flag"].append(place)
        return None
    box, segmentation = listed.get("bbox"), listed.get("segmentation")
    outlined = not is_box(box)
    if outlined:
        box = outline_box(segmentation, image.size)
    if not is_box(box):
        faults["box"].append(place)
        return None
    x, y, width, height = map(float, box)
    if width <= 0 or height <= 0:
        faults["empty"].append(place)
        return None
    same = (image.id, category, x, y, width, height)
    if "id" in listed and first.setdefault(name, same) is not same:
        if first[name] == same:
            faults["twice"].append(place)
            return None
        faults["shared"].append(place)
    area = listed.get("area")
    if not is_coordinate(area) or area < 0:
        faults["area"].append(place)
        area = width * height
    if image.size:
        tall, wide = image.size
        if x >= wide or y >= tall or x + width <= 0 or y + height <= 0:
            faults["outside"].append(place)
        elif min(x, y) < -_BORDER or x + width > wide + _BORDER or y + height > tall + _BORDER:
            faults["border"].append(place)
    for kind, is_so in (("outline", outlined), ("zero", name == "0"), ("ignore", ignore and not crowd)):
        if is_so:
            faults[kind].append(place)
    found = {
        "id": listed.get("id"),
        "category_id": int(category),
        "bbox": [x, y, width, height],
        "area": float(area),
        "iscrowd": crowd,
        "ignore": ignore,
    }
    return {**found, "segmentation": segmentation} if keep and segmentation else found


def _flag(value: object) -> int | None:
    """Read 0 or 1 as people write it; nothing is 0."""
    if value is None:
        return 0
    text = str(value).strip().lower()
    return 0 if text in ("0", "0.0", "false") else 1 if text in ("1", "1.0", "true") else None
