"""Finding a folder of images and its folder of masks, and pairing their files by name."""

from __future__ import annotations

import difflib
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import DatasetError
from ..io import IMAGE_SUFFIXES

__all__ = [
    "KNOWN_LAYOUTS",
    "Layout",
    "Pairing",
    "counted",
    "examples",
    "file_key",
    "find_layout",
    "holds_mask_folder",
    "list_images",
    "missing_path",
    "pair_by_key",
    "split_key",
    "split_of",
]

KNOWN_LAYOUTS = (
    "Image+GT_Object (COD10K-v3), Imgs+GT, Image+GT, Image+Mask, Images+Masks, im+gt, Images/{Train,Test}+GT (CAMO)"
)
"""What is recognized, in any case of letters, directly in a folder, below its Train or Test, or one level down."""

_IMAGE_FOLDERS = frozenset({"im", "image", "images", "img", "imgs"})
_MASK_FOLDERS = frozenset({"gt", "gt_object", "gts", "mask", "masks"})
_SPLIT_FOLDERS = {
    "train": "train", "training": "train", "traindataset": "train", "trainvaldataset": "train",
    "test": "test", "testing": "test", "testdataset": "test",
    "val": "val", "valid": "val", "validation": "val", "valdataset": "val",
}  # fmt: skip
_SPLIT_TOKENS = {**_SPLIT_FOLDERS, "te": "test", "tr": "train"}
_DEBRIS = frozenset({"__macosx", "desktop.ini", "thumbs.db"})


@dataclass(frozen=True)
class Layout:
    """Where a data set keeps its images and masks.

    Attributes:
        root: the folder that holds both.
        images: folder of images.
        masks: folder of masks.
        title: the two names, such as `Imgs+GT`.
        split: `train`, `test` or `val` where a folder name says so.
        shared_masks: True where `masks` also holds the masks of other splits.
    """

    root: Path
    images: Path
    masks: Path
    title: str
    split: str | None
    shared_masks: bool = False


@dataclass(frozen=True)
class Pairing:
    """Images and masks of one key, and the keys found on one side only; all sorted."""

    pairs: tuple[tuple[str, Path, Path], ...]
    without_mask: tuple[str, ...]
    without_image: tuple[str, ...]

    @property
    def unpaired(self) -> int:
        """Number of files without a partner."""
        return len(self.without_mask) + len(self.without_image)


def examples(names: Iterable[str], limit: int = 5) -> str:
    """Return the first few names for a sentence, and how many more there are."""
    listed = list(names)
    more = f", and {len(listed) - limit:,} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, as `1 image` or `2,026 images`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _is_debris(name: str) -> bool:
    return name.startswith(".") or name.lower() in _DEBRIS


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what a folder holds, sorted by name, without hidden files and debris."""
    try:
        with os.scandir(folder) as found:
            return sorted((e for e in found if not _is_debris(e.name)), key=lambda e: e.name)
    except OSError as error:
        raise DatasetError(f"{folder}: cannot be listed ({error.strerror or error}).") from error


def _subfolders(folder: Path) -> list[Path]:
    return [Path(e.path) for e in _entries(folder) if e.is_dir()]


def _by_split(folders: Iterable[Path]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for folder in folders:
        split = _SPLIT_FOLDERS.get(folder.name.lower())
        if split:
            found[split].append(folder)
    return found


def split_key(split: str) -> str:
    """Return `train`, `test` or `val` for the usual spellings of these, other names in lower case."""
    return _SPLIT_TOKENS.get(split.strip().lower(), split.strip().lower())


def split_of(folder: Path) -> str | None:
    """Return the split that a folder's name stands for (`TrainDataset`, `TE-CAMO`), or that of the folder above."""
    here = folder.absolute()
    tokens = re.split(r"[^a-z0-9]+", here.name.lower())
    found = next((_SPLIT_TOKENS[token] for token in tokens if token in _SPLIT_TOKENS), None)
    return found or _SPLIT_FOLDERS.get(here.parent.name.lower())


def missing_path(path: Path) -> DatasetError:
    """Return the error for a path that does not exist, with the nearest name where the path breaks off."""
    absent = path.absolute()
    while not absent.parent.exists():
        absent = absent.parent
    try:
        siblings = {path.name.lower(): path for path in absent.parent.iterdir()}
    except OSError:
        siblings = {}
    near = difflib.get_close_matches(absent.name.lower(), siblings, n=1, cutoff=0.6)
    if near:
        advice = f"did you mean {siblings[near[0]]}?"
    else:
        advice = f"{absent.parent} exists, {absent.name!r} in it does not."
    return DatasetError(f"{path}: no such file or folder; {advice}")


def find_layout(folder: Path, split: str) -> Layout:
    """Return where images and masks lie in `folder`, below its folder for `split`, or one or two levels down.

    Args:
        folder: an existing folder.
        split: which of several split folders to take; not looked at where there is none.

    Raises:
        DatasetError: no known layout, several data sets, or no such split.
    """
    found = _search(folder, split_key(split), depth=2)
    if len(found) == 1:
        return found[0]
    if found:
        names = [layout.root.relative_to(folder).as_posix() for layout in found]
        raise DatasetError(f"{folder}: holds {len(found)} data sets; give one of them: {examples(names, 12)}.")
    raise DatasetError(f"{folder}: {_what_is_there(folder)} {_advice(folder)}")


def holds_mask_folder(folder: Path) -> bool:
    """Tell whether a folder named like one of masks lies where `find_layout` would look for it."""
    level = [folder]
    for _ in range(5):  # two levels, each with a split folder, and the masks
        level = [child for here in level for child in _subfolders(here)]
        if any(child.name.lower() in _MASK_FOLDERS for child in level):
            return True
    return False


def _search(folder: Path, split: str, depth: int) -> list[Layout]:
    children = _subfolders(folder)
    layout = _layout_in(folder, children, split)
    if layout is not None:
        return [layout]
    splits = _by_split(children)
    if splits:
        return [layout for child in _of_split(folder, splits, split) for layout in _search(child, split, depth)]
    if depth == 0:
        return []
    return [layout for child in children for layout in _search(child, split, depth - 1)]


def _of_split(folder: Path, splits: Mapping[str, list[Path]], split: str) -> list[Path]:
    if split not in splits:
        raise DatasetError(f"{folder}: has no split {split!r}; its splits are {', '.join(sorted(splits))}.")
    return splits[split]


def _layout_in(folder: Path, children: list[Path], split: str) -> Layout | None:
    images = [c for c in children if c.name.lower() in _IMAGE_FOLDERS]
    masks = [c for c in children if c.name.lower() in _MASK_FOLDERS]
    # COD10K-v3 also has GT_Instance and GT_Edge; where GT_Object is there, it is the one with object masks
    masks = [c for c in masks if c.name.lower() == "gt_object"] or masks
    if not images or not masks:
        return None
    if len(images) > 1 or len(masks) > 1:
        names = ", ".join(c.name for c in (images if len(images) > 1 else masks))
        raise DatasetError(f"{folder}: cannot tell which of {names} to take; move the others out of the folder.")
    layout = Layout(folder, images[0], masks[0], f"{images[0].name}+{masks[0].name}", split_of(folder))
    inner = _subfolders(layout.images)
    splits = _by_split(inner)
    if not inner or len(splits) < len(inner) or any(e.is_file() for e in _entries(layout.images)):
        return layout
    below = _of_split(layout.images, splits, split)[0]
    masks_below = _by_split(_subfolders(layout.masks)).get(split)
    return Layout(
        folder,
        below,
        masks_below[0] if masks_below else layout.masks,
        f"{layout.images.name}/{below.name}+{layout.masks.name}",
        split,
        shared_masks=not masks_below,
    )


def _what_is_there(folder: Path) -> str:
    entries = _entries(folder)
    if not entries:
        return "the folder is empty."
    folders = [e.name for e in entries if e.is_dir()]
    pictures = sum(1 for e in entries if not e.is_dir() and Path(e.name).suffix.lower() in IMAGE_SUFFIXES)
    others = len(entries) - len(folders) - pictures
    parts = [f"{counted(len(folders), 'folder')} ({examples(folders)})"] if folders else []
    parts += [counted(pictures, "image")] if pictures else []
    parts += [counted(others, "other file")] if others else []
    return f"no folder of images with a folder of masks beside it; it holds {' and '.join(parts)}."


def _advice(folder: Path) -> str:
    parent = folder.absolute().parent
    if folder.absolute().name.lower() in _IMAGE_FOLDERS | _MASK_FOLDERS:
        names = {p.name.lower() for p in _subfolders(parent)}
        if names & _IMAGE_FOLDERS and names & _MASK_FOLDERS:
            return f"Give the folder that holds images and masks: {parent}."
    manifests = [e.name for e in _entries(folder) if e.name.lower().endswith((".csv", ".jsonl"))]
    if manifests:
        return f"If {manifests[0]} is its manifest, give that: {folder / manifests[0]}."
    return f"Known layouts: {KNOWN_LAYOUTS}; anything else can be listed in a manifest (.csv or .jsonl)."


def list_images(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """Return the image files below a folder by key, and the names of files that are none.

    The key is the path below `folder` without suffix, POSIX, in Unicode composed form (NFC), so that a set
    copied from macOS keeps its keys. Folders reached by a link are followed once; debris is left out.

    Raises:
        DatasetError: a folder that cannot be listed, two files of one key, or a name that is not UTF-8.
    """
    found: dict[str, Path] = {}
    others: list[str] = []
    seen: set[Path] = set()
    pending = [folder]
    while pending:
        here = pending.pop()
        real = here.resolve()
        if real in seen:
            continue
        seen.add(real)
        for entry in _entries(here):
            path = Path(entry.path)
            if entry.is_dir():
                pending.append(path)
            elif path.suffix.lower() not in IMAGE_SUFFIXES:
                others.append(path.relative_to(folder).as_posix())
            else:
                key = file_key(path.relative_to(folder), folder)
                if key in found:
                    pair = " and ".join(sorted(p.relative_to(folder).as_posix() for p in (found[key], path)))
                    raise DatasetError(f"{folder}: {pair} have the same name; remove or rename one of them.")
                found[key] = path
    return found, others


def file_key(relative: Path, source: Path) -> str:
    """Return the key of a path inside a data set; see `list_images`."""
    key = unicodedata.normalize("NFC", relative.with_suffix("").as_posix())
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise DatasetError(f"{source}: the file name {relative.name!a} is not UTF-8; rename it.") from error
    return key


def pair_by_key(images: Mapping[str, Path], masks: Mapping[str, Path]) -> Pairing:
    """Pair images and masks whose keys are equal, then those left whose keys differ in case only.

    Position never decides, and where several keys differ only in case none of them is guessed.
    """
    partner = {key: key for key in images if key in masks}
    images_left, masks_left = _by_case(images.keys() - partner.keys()), _by_case(masks.keys() - partner.keys())
    for folded, keys in images_left.items():
        others = masks_left.get(folded, [])
        if len(keys) == len(others) == 1:
            partner[keys[0]] = others[0]
    return Pairing(
        tuple((key, images[key], masks[partner[key]]) for key in sorted(partner)),
        tuple(sorted(images.keys() - partner.keys())),
        tuple(sorted(masks.keys() - set(partner.values()))),
    )


def _by_case(keys: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        found[key.casefold()].append(key)
    return found
