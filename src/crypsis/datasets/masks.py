"""Data sets of images with one object mask each: COD10K, CAMO, CHAMELEON, NC4K, and any folders or list like them.

Opening a set lists and pairs files and decodes nothing; `MaskDataset.load` reads one pair at a time, so memory
does not grow with the set.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ..errors import DatasetError, ImageError, InputError, UnknownNameError
from ..io import exif_orientation, read_file, read_image, read_mask
from ..types import Mask, Sample
from .demo import demo_folder, demo_species
from .folder import Pairing, counted, examples, find_layout, list_images, missing_path, pair_by_key
from .manifest import MANIFEST_SUFFIXES, read_manifest
from .naming import COD10K_TRAIN_TEST_OVERLAP, parse_cod10k_name

__all__ = ["SIZE_POLICIES", "Item", "MaskDataset", "fit_mask", "open_masks"]

SIZE_POLICIES = ("error", "resize-mask")
"""For a mask whose size is not its image's: refuse it, or bring it to the image's size (nearest pixel)."""

_EXPECTED: dict[str, dict[str, int]] = {
    "COD10K": {"test": 2026, "train": 3040},
    "CAMO": {"test": 250, "train": 1000},
    "CHAMELEON": {"test": 76},
    "NC4K": {"test": 4121},
}
_EXPECTED_WITH_NONCAM = {"COD10K": {"test": 4000, "train": 6000}}


@dataclass(frozen=True)
class Item:
    """One image with its mask, on disk.

    Attributes:
        key: path inside the data set without suffix, POSIX, unique; what seeds, results and predictions go by.
        image: the image file.
        mask: the mask file.
        species: what is shown, if known.
        super_class: coarser group such as `Aquatic`, if known.
        split: `train`, `test` or `val`, if known.
    """

    key: str
    image: Path
    mask: Path
    species: str | None = None
    super_class: str | None = None
    split: str | None = None


@dataclass(frozen=True)
class MaskDataset:
    """A data set that was found and paired; see `open_masks`.

    Attributes:
        name: what to call it.
        root: the folder (or manifest) it was found in.
        layout: how it is laid out: the two folder names, `csv`, `jsonl`, or `demo`.
        items: its images, sorted by key.
        warnings: what a user should know before trusting numbers, one sentence each.
        unpaired: number of images and masks left out for want of their partner.
    """

    name: str
    root: Path
    layout: str
    items: tuple[Item, ...]
    warnings: tuple[str, ...] = ()
    unpaired: int = 0

    def __len__(self) -> int:
        """Number of images."""
        return len(self.items)

    def load(self, item: Item, *, on_size_mismatch: str = "error") -> Sample:
        """Read and decode one image and its mask.

        Args:
            item: one of `items`.
            on_size_mismatch: one of `SIZE_POLICIES`.

        Raises:
            ImageError: a file that cannot be read or decoded, or sizes that differ under the policy `error`.
            UnknownNameError: an unknown policy.
        """
        image = read_image(item.image)
        mask = fit_mask(read_mask(item.mask).mask, item, image.shape[:2], on_size_mismatch)
        return Sample(item.key, image, mask, item.species, item.super_class)

    def fingerprint(self) -> str:
        """Return the SHA-256 (hex) of the sorted keys: which images, not what is in them."""
        return hashlib.sha256("\n".join(sorted(item.key for item in self.items)).encode()).hexdigest()

    def limit(self, n: int) -> MaskDataset:
        """Return a set of `n` images evenly spaced over the sorted keys (all of them if there are not more).

        Keys sort by super-class and species in COD10K, so that a trial on a few images still covers the set.
        The choice depends on `n` and the keys alone.

        Raises:
            InputError: `n` is below 1.
        """
        if n < 1:
            raise InputError(f"A limit must be at least 1 image; got {n}.")
        total = len(self.items)
        if n >= total:
            return self
        return dataclasses.replace(self, items=tuple(self.items[i * total // n] for i in range(n)))


def fit_mask(mask: Mask, item: Item, size: tuple[int, ...], policy: str) -> Mask:
    """Return `mask` at `size` (height, width), or refuse, by one of `SIZE_POLICIES`.

    A mask that lies as its image does before the EXIF rotation is refused under both policies: resizing it would
    move the object.

    Raises:
        ImageError: the sizes differ and the policy does not mend that.
        UnknownNameError: an unknown policy.
    """
    if policy not in SIZE_POLICIES:
        raise UnknownNameError.among("size policy", policy, SIZE_POLICIES)
    if mask.shape == size:
        return mask
    (height, width), (mask_height, mask_width) = size, mask.shape
    sizes = f"{item.key}: the image is {width}×{height} pixels, its mask {mask_width}×{mask_height}"
    orientation = exif_orientation(read_file(item.image))
    if orientation >= 5 and mask.shape == (width, height):
        raise ImageError(
            f"{sizes}: the mask fits the image before its EXIF rotation (orientation {orientation}); "
            "rotate the mask as the image, or remove the tag from the image."
        )
    if policy == "error":
        raise ImageError(f"{sizes}; repair one of them, or choose the size policy resize-mask.")
    resized = cv2.resize(mask.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST_EXACT)
    return resized.astype(np.bool_)


def open_masks(
    data: str | Path, *, split: str = "test", include_noncam: bool = False, allow_unpaired: bool = False
) -> MaskDataset:
    """Find the images and masks of a data set and pair them by name.

    Args:
        data: `demo` for the built-in set; a folder in a known layout (`folder.KNOWN_LAYOUTS`), directly, below
            its Train or Test, or one or two folders down; or a manifest `.csv` or `.jsonl` (see
            `manifest.read_manifest`).
        split: which split to take where `data` holds several: `test`, `train` or `val` (manifests: any name).
        include_noncam: keep COD10K's images without a camouflaged object, on which papers do not evaluate.
        allow_unpaired: leave out images without a mask and masks without an image, with a warning.

    Returns:
        The set, sorted by key. Counts other than the published ones, and images known to lie in two splits, are
        in its `warnings`.

    Raises:
        DatasetError: not there, no known layout, several data sets, unpaired files, or nothing left.
    """
    if data == "demo":
        return _open_demo()
    path = Path(data)
    try:
        exists = path.exists()
    except OSError as error:  # a folder on the way may not be entered
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error}).") from error
    if not exists:
        if isinstance(data, str) and difflib.get_close_matches(data.lower(), ["demo"], cutoff=0.7):
            raise DatasetError(f"{data}: no such file or folder; did you mean demo, the built-in set?")
        raise missing_path(path)
    if path.is_dir():
        return _open_folder(path, split, include_noncam, allow_unpaired)
    if path.suffix.lower() in MANIFEST_SUFFIXES:
        return _open_manifest(path, split, include_noncam, allow_unpaired)
    if path.suffix.lower() == ".json":
        raise DatasetError(f"{path}: annotations in JSON are not masks; give a folder or a manifest (.csv or .jsonl).")
    raise DatasetError(f"{path}: is a file; give the folder of the data set, or a manifest (.csv or .jsonl).")


def _open_demo() -> MaskDataset:
    layout = find_layout(demo_folder(), "test")
    images, _ = list_images(layout.images)
    masks, _ = list_images(layout.masks)
    pairing = pair_by_key(images, masks)
    species = demo_species()
    items = tuple(Item(key, image, mask, species.get(key), None, "test") for key, image, mask in pairing.pairs)
    return MaskDataset("demo", layout.root, "demo", items)


def _open_folder(folder: Path, split: str, include_noncam: bool, allow_unpaired: bool) -> MaskDataset:
    layout = find_layout(folder, split)
    warnings = []
    files = []
    for place in (layout.images, layout.masks):
        found, others = list_images(place)
        if others:
            warnings.append(f"{place}: not images, ignored: {examples(others)}.")
        files.append(found)
    images, masks = files
    if not images:
        raise DatasetError(f"{layout.images}: holds no images.")
    if not include_noncam:
        left_out = sorted(key for key in images if _is_noncam(key))
        images = {key: path for key, path in images.items() if not _is_noncam(key)}
        masks = {key: path for key, path in masks.items() if not _is_noncam(key)}
        warnings += _noncam_warning(layout.root, len(left_out), len(images))
    pairing = pair_by_key(images, masks)
    if layout.shared_masks:
        pairing = dataclasses.replace(pairing, without_image=())
    warnings += _check_unpaired(layout.root, pairing, allow_unpaired)
    items = tuple(_item(key, image, mask, layout.split) for key, image, mask in pairing.pairs)
    name = _name_of(layout.root)
    warnings += _doubts(name, items, layout.split, include_noncam)
    return MaskDataset(name, layout.root, layout.title, items, tuple(warnings), pairing.unpaired)


def _open_manifest(path: Path, split: str, include_noncam: bool, allow_unpaired: bool) -> MaskDataset:
    manifest = read_manifest(path, split)
    warnings = []
    if manifest.ignored_columns:
        warnings.append(f"{path}: columns not known here, ignored: {examples(manifest.ignored_columns)}.")
    rows = [row for row in manifest.rows if include_noncam or not _is_noncam(row.key)]
    warnings += _noncam_warning(path, len(manifest.rows) - len(rows), len(rows))
    pairing = Pairing(
        tuple((row.key, row.image, row.mask) for row in rows if row.image.is_file() and row.mask.is_file()),
        tuple(row.key for row in rows if not row.mask.is_file()),
        tuple(row.key for row in rows if not row.image.is_file()),
    )
    warnings += _check_unpaired(path, pairing, allow_unpaired)
    by_key = {row.key: row for row in rows}
    items = []
    for key, image, mask in pairing.pairs:
        row, item = by_key[key], _item(key, image, mask, by_key[key].split)
        items.append(
            dataclasses.replace(
                item, species=row.species or item.species, super_class=row.super_class or item.super_class
            )
        )
    layout = path.suffix[1:].lower()
    return MaskDataset(path.stem, path, layout, tuple(items), tuple(warnings), pairing.unpaired)


def _item(key: str, image: Path, mask: Path, split: str | None) -> Item:
    name = parse_cod10k_name(key.rpartition("/")[2])
    species, super_class = (name.species, name.super_class) if name else (None, None)
    return Item(key, image, mask, species, super_class, split)


def _is_noncam(key: str) -> bool:
    name = parse_cod10k_name(key.rpartition("/")[2])
    return name is not None and not name.camouflaged


def _noncam_warning(source: Path, left_out: int, kept: int) -> list[str]:
    if not left_out:
        return []
    if not kept:
        raise DatasetError(f"{source}: holds only NonCAM images; ask for them with include_noncam to use them.")
    return [f"Left out, as papers do: {counted(left_out, 'NonCAM image')} (without a camouflaged object)."]


def _check_unpaired(source: Path, pairing: Pairing, allowed: bool) -> list[str]:
    parts = [
        f"{counted(len(keys), thing)} without {missing} ({examples(keys)})"
        for keys, thing, missing in (
            (pairing.without_mask, "image", "a mask"),
            (pairing.without_image, "mask", "an image"),
        )
        if keys
    ]
    if not pairing.pairs:
        raise DatasetError(f"{source}: no image has a mask of the same name: {' and '.join(parts)}.")
    if not parts:
        return []
    if allowed:
        return [f"Left out: {' and '.join(parts)}."]
    raise DatasetError(
        f"{source}: {' and '.join(parts)}, beside {counted(len(pairing.pairs), 'pair')}; "
        "complete the set, or allow unpaired files to leave them out."
    )


def _name_of(root: Path) -> str:
    here = root.resolve()
    generic = ("test", "testing", "train", "training", "val", "valid", "validation")
    return next((p.name for p in (here, *here.parents) if p.name.lower() not in generic and p.name), here.name)


def _doubts(name: str, items: tuple[Item, ...], split: str | None, include_noncam: bool) -> list[str]:
    """Return a warning for a count that is not the published one, and for images known to lie in two splits."""
    tokens = set(re.split(r"[^a-z0-9]+", name.lower()))
    known = next((k for k in _EXPECTED if k.lower() in tokens and not tokens & {"coco", "fs"}), None)
    doubts = []
    if known is not None:
        counts = (_EXPECTED_WITH_NONCAM if include_noncam else _EXPECTED).get(known, _EXPECTED[known])
        expected = counts if split is None else {k: v for k, v in counts.items() if k == split}
        if expected and len(items) not in expected.values():
            published = " or ".join(f"{count:,} ({k})" for k, count in expected.items())
            doubts.append(f"{known} has {published} images; found here: {len(items):,}.")
    overlap = sorted(i.key for i in items if i.key.rpartition("/")[2] in COD10K_TRAIN_TEST_OVERLAP)
    if overlap and split == "train":
        doubts.append(f"In COD10K's training and test split alike: {', '.join(overlap)}.")
    return doubts
