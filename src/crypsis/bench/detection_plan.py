"""What a detection benchmark will do: which images, conditions and detectors, and which class means which category."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from ..catalog import list_entries, select_entries
from ..catalog.aligned import check_truth
from ..catalog.entry import Entry
from ..datasets.detection import DetectionDataset, DetectionItem, open_detection
from ..errors import DatasetError, ImageError, InputError, ModelError, UnknownNameError
from ..models.detector import DetectionSource, Detector, load_detector
from ..types import Condition

__all__ = ["LABELS", "DetectionPlan", "DetectionUnit", "class_map", "plan_coco_degradation", "plan_demo"]

PAPER_FAMILIES = ("imagenet-c", "arniqa", "real-camera")
"""Whose rows, the extra ones left out, are the 59 of COCO-Degradation."""

LABELS = ("names", "index", "agnostic")
"""How a detector's classes become the data set's categories: by equal names; the i-th the i-th in the order of ids; or
all of both are one."""

UNIT_IMAGES = 4
"""Images in one unit of work."""

STRENGTH_IMAGES = 50
"""On how many images strength is measured unless said otherwise: it costs as much as a degradation."""

_TRIED_IMAGES = 3
"""On how many images a detector must fail before it is refused."""

Model = Detector | DetectionSource


@dataclass(frozen=True, slots=True)
class DetectionUnit:
    """A few images under all conditions and detectors; one part file.

    Attributes:
        name: plain text, the part's file stem.
        items: the images.
    """

    name: str
    items: tuple[DetectionItem, ...]

    @property
    def images(self) -> int:
        """How many images are in it."""
        return len(self.items)


@dataclass(frozen=True, kw_only=True)
class DetectionPlan:
    """A detection benchmark: every image × condition × detector.

    Attributes:
        benchmark: its name.
        data: the images as the user named them.
        dataset: the images and their objects (after `limit`).
        models: what the user named, in order: specifications, or objects for runs in one process.
        descriptions: for each detector its label, and everything that identifies it.
        categories: for each detector, the category id of each of its classes, None for a class that is left out; None
            for a source whose labels are category ids.
        warnings: what a user should know before trusting numbers.
        entries: the degradations, beside `clean`.
        severities: at which each is run.
        seed: seed of all random draws.
        limit: number of images asked for, or None for all.
        labels: one of `LABELS`.
        keep: classes that count, the others being left out; all if empty. Unless `labels` is `agnostic`, the data set
            holds only their categories and objects.
        kept: ids of the categories that these names mean where labels are category ids.
        truth: `published` (boxes stay) or `aligned` (they move along where a degradation moves content).
        strength_images: on how many images, evenly spaced, strength is measured.
    """

    benchmark: str
    data: str
    dataset: DetectionDataset = field(repr=False)
    models: tuple[str | Model, ...]
    descriptions: Mapping[str, Mapping[str, Any]] = field(repr=False)
    categories: Mapping[str, tuple[int | None, ...] | None] = field(repr=False)
    warnings: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = field(repr=False)
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    seed: int = 0
    limit: int | None = None
    labels: str = "names"
    keep: tuple[str, ...] = ()
    kept: tuple[int, ...] = ()
    truth: str = "published"
    strength_images: int = STRENGTH_IMAGES

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """`clean`, then every entry at every severity."""
        return _conditions(self.entries, self.severities)

    def units(self) -> list[DetectionUnit]:
        """Return the units of work, in a fixed order."""
        items = self.dataset.items
        chunks = [items[start : start + UNIT_IMAGES] for start in range(0, len(items), UNIT_IMAGES)]
        return [
            DetectionUnit(f"images-{k * UNIT_IMAGES:06d}-{k * UNIT_IMAGES + len(chunk) - 1:06d}", tuple(chunk))
            for k, chunk in enumerate(chunks)
        ]

    def measured(self) -> frozenset[str]:
        """Return the keys of the images on which strength is measured."""
        count = min(self.strength_images, len(self.dataset))
        return frozenset(item.key for item in self.dataset.limit(count).items) if count else frozenset()

    def identity(self) -> dict[str, Any]:
        """Return what decides the results, as JSON values; two runs with the same identity agree."""
        return {
            "benchmark": self.benchmark,
            "dataset": {
                "name": self.dataset.name,
                "layout": self.dataset.layout,
                "images": len(self.dataset),
                "keys_sha256": self.dataset.fingerprint(),
                "annotations_sha256": self.dataset.sha256,
            },
            "models": {name: dict(description) for name, description in self.descriptions.items()},
            "entries": {e.name: [dict(values) for values in e.parameters] for e in self.entries},
            "severities": list(self.severities),
            "seed": self.seed,
            "limit": self.limit,
            "labels": self.labels,
            "keep": list(self.keep),
            "truth": self.truth,
            "strength_images": self.strength_images,
            "unit_images": UNIT_IMAGES,
        }


def plan_coco_degradation(
    images: str,
    annotations: str | None,
    models: Sequence[str | Model],
    *,
    families: Sequence[str] = (),
    entries: Sequence[str] = (),
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    seed: int = 0,
    limit: int | None = None,
    labels: str = "names",
    keep: Sequence[str] = (),
    truth: str = "published",
    strength_images: int = STRENGTH_IMAGES,
    annotation_format: str = "auto",
) -> DetectionPlan:
    """Plan COCO-Degradation: clean and 59 degradations × 5 severities on any set of images with boxes.

    Every detector is loaded once here and tried on an image, or on others where it fails on that, so that a wrong file
    is known before any work.

    Args:
        images: `demo`, or the folder of the images; see `crypsis.datasets.detection.open_detection`.
        annotations: the annotation file, or None where the folder has labels of its own.
        models: specifications such as `nanodet` or `onnx:PATH`; see `crypsis.models.detector.load_detector`.
        families: of the catalog; with neither these nor `entries`, the paper's 59 rows.
        entries: names, taken after `families`.
        severities: which of 1..5.
        seed: seed of all random draws.
        limit: take only this many images, evenly spaced.
        labels: one of `LABELS`.
        keep: names of classes, for saved detections of categories; detections of others are left out and, unless
            `labels` is `agnostic`, objects of others too. All count if it is empty.
        truth: one of `crypsis.catalog.aligned.TRUTHS`.
        strength_images: on how many images to measure strength; 0 for none.
        annotation_format: one of `crypsis.datasets.detection.FORMATS`.

    Raises:
        InputError: something that cannot be used as given; the message names it.
    """
    if not models:
        raise InputError("No detector was named; try --model nanodet, whose weights come with Crypsis.")
    if limit is not None and limit < 1:
        raise InputError(f"A limit is a number of images from 1 up; got {limit}.")
    if labels not in LABELS:
        raise UnknownNameError.among("way to match labels", labels, LABELS)
    check_truth(truth)
    if not -(2**63) <= seed < 2**63:
        raise InputError(f"A seed is a whole number of at most 64 bits with sign; got {seed}.")
    if not severities or not set(severities) <= {1, 2, 3, 4, 5}:
        raise InputError(f"Severities are some of 1 to 5; got {list(severities)}.")
    if strength_images < 0:
        raise InputError(f"The number of images to measure strength on is 0 or more; got {strength_images}.")
    dataset = open_detection(images, annotations, format=annotation_format)
    if not any(dataset.annotations.values()):
        raise DatasetError(f"{dataset.name}: no image has an object, so there is nothing to find.")
    listed = [item.id for item in dataset.items]
    if limit is not None:
        dataset = dataset.limit(limit)
    rows = select_entries(families, entries) or _paper_rows()
    conditions = _conditions(rows, severities)
    descriptions: dict[str, Mapping[str, Any]] = {}
    categories: dict[str, tuple[int | None, ...] | None] = {}
    kept: tuple[int, ...] = ()
    warnings = list(dataset.warnings)
    for given in models:
        model = load_detector(given) if isinstance(given, str) else given
        if model.name in descriptions:
            raise InputError(f"Two detectors are called {model.name!r}; tell them apart with ,name=LABEL.")
        if isinstance(model, Detector):
            warnings += _try(model, dataset)
        else:
            warnings += _check(model, listed, None if labels == "agnostic" else dataset.categories, conditions)
        if isinstance(model, Detector):
            mapping, said = class_map(model.name, model.classes, dataset.categories, labels, keep)
            categories[model.name] = mapping
            warnings += said
        else:
            kept = _named(model.name, dataset.categories, keep)
            categories[model.name] = None
        descriptions[model.name] = model.describe()
    if keep and labels != "agnostic":
        meant = {number for mapping in categories.values() for number in mapping or () if number is not None}
        dataset = _only(dataset, meant | set(kept))
    counting = (not found["iscrowd"] for item in dataset.items for found in dataset.annotations.get(item.id, ()))
    if not any(counting):
        raise DatasetError(
            f"{dataset.name}: no image that was chosen has an object to be found (crowds do not count), so there is "
            "nothing to score."
        )
    return DetectionPlan(
        benchmark="coco-degradation",
        data=images,
        dataset=dataset,
        models=tuple(models),
        descriptions=descriptions,
        categories=categories,
        warnings=tuple(warnings),
        entries=rows,
        severities=tuple(sorted(set(severities))),
        seed=seed,
        limit=limit,
        labels=labels,
        keep=tuple(keep),
        kept=kept,
        truth=truth,
        strength_images=strength_images,
    )


_ANIMALS = ("bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe")
_DEMO_ENTRIES = (
    "imagenet-c/gaussian_noise", "imagenet-c/motion_blur", "imagenet-c/fog", "imagenet-c/jpeg_compression",
    "arniqa/gaublur", "arniqa/darken", "arniqa/colorsat2", "arniqa/jitter",
    "real-camera/lens_obstruction", "real-camera/color_space_conversion_damage",
    "real-camera/cmos_sensor_damage", "real-camera/transfer_harness_exceptions",
)  # fmt: skip


def plan_demo(limit: int | None = None) -> DetectionPlan:
    """Plan what `crypsis demo --detection` shows: NanoDet-g on the demo images, under four rows of each family.

    The species of the demo set are not COCO's, so that all count as one, and so do the ten animals of COCO.

    Args:
        limit: take only this many images.
    """
    return plan_coco_degradation(
        "demo", None, ["nanodet"], entries=_DEMO_ENTRIES, severities=(1, 3, 5), labels="agnostic", keep=_ANIMALS,
        limit=limit,
    )  # fmt: skip


def _paper_rows() -> tuple[Entry, ...]:
    return tuple(e for family in PAPER_FAMILIES for e in list_entries(family=family) if not e.extra)


def _conditions(entries: Sequence[Entry], severities: Sequence[int]) -> tuple[Condition, ...]:
    return (Condition("clean", 0), *(Condition(e.name, s) for e in entries for s in sorted(set(severities))))


def class_map(
    model: str, classes: Sequence[str], categories: Mapping[int, str], labels: str, keep: Sequence[str] = ()
) -> tuple[tuple[int | None, ...], list[str]]:
    """Say which category each class of a detector means.

    Args:
        model: the detector's label, for messages.
        classes: its classes.
        categories: of the data set, id → name.
        labels: one of `LABELS`. Names are compared without regard to case, and to what separates words.
        keep: classes that count; all if empty.

    Returns:
        For each class a category id, or None where there is none of that name; and what should be said about it.

    Raises:
        ModelError: nothing matches, or `index` with more classes than categories.
        UnknownNameError: a name to keep is not one of the classes.
    """
    ids = sorted(categories)
    plain = [_plain(name) for name in classes]
    for name in keep:
        if _plain(name) not in plain:
            raise UnknownNameError.among(f"class of {model}", name, classes)
    if keep:
        kept = {_plain(name) for name in keep}
        mapping, _ = class_map(model, classes, categories, labels)
        some = tuple(number if name in kept else None for name, number in zip(plain, mapping, strict=True))
        void = [name for name, number in zip(classes, some, strict=True) if number is None and _plain(name) in kept]
        if not any(number is not None for number in some):
            raise ModelError(f"No category of the data set is called like what is to be kept ({_some(void)}).")
        said = [f"No category of the data set is called {_some(void)}, so keeping it changes nothing."] if void else []
        return some, said
    if labels == "agnostic":
        return (ids[0],) * len(classes), []
    if labels == "index":
        if len(classes) > len(ids):
            raise ModelError(
                f"{model} has {len(classes)} classes and the data set {len(ids)} categories, so they cannot be matched "
                "one by one; use --labels names."
            )
        return tuple(ids[: len(classes)]), []
    by_name = {_plain(name): number for number, name in sorted(categories.items(), reverse=True)}
    found = tuple(by_name.get(name) for name in plain)
    if not any(number is not None for number in found):
        raise ModelError(
            f"No class of {model} ({_some(classes)}) is called like a category of the data set "
            f"({_some(list(categories.values()))}); use --labels index or --labels agnostic."
        )
    lacking = [categories[number] for number in ids if number not in found]
    said = [f"{model} has no class for {len(lacking)} of {len(ids)} categories ({_some(lacking)}), which it can never "
            "find."] if lacking else []  # fmt: skip
    return found, said


def _named(model: str, categories: Mapping[int, str], keep: Sequence[str]) -> tuple[int, ...]:
    """Return the ids of the categories of these names, for saved detections, whose labels are ids.

    Raises:
        UnknownNameError: a name is not one of the categories.
    """
    names = [_plain(name) for name in categories.values()]
    for name in keep:
        if _plain(name) not in names:
            hint = f"(Saved detections, as those of {model}, are of the data set's categories.)"
            raise UnknownNameError.among("category", name, categories.values(), hint)
    wanted = {_plain(name) for name in keep}
    return tuple(number for number, name in categories.items() if _plain(name) in wanted)


def _only(dataset: DetectionDataset, kept: Set[int]) -> DetectionDataset:
    """Return a data set of the same images with the objects of some categories alone."""
    annotations = {
        image: mine
        for image, objects in dataset.annotations.items()
        if (mine := tuple(found for found in objects if found["category_id"] in kept))
    }
    categories = {number: name for number, name in dataset.categories.items() if number in kept}
    if not annotations:
        raise DatasetError(f"{dataset.name}: no object is of what is to be kept ({_some(list(categories.values()))}).")
    return replace(dataset, categories=categories, annotations=annotations)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", " ", name.casefold()).strip()


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _check(
    model: DetectionSource,
    image_ids: Sequence[int | str],
    categories: Collection[int] | None,
    conditions: Sequence[Condition],
) -> list[str]:
    """Find out before any work whether saved detections can be used, and return what should be said about them.

    Raises:
        ModelError: files are missing or wrong.
    """
    faults, notes = model.check(image_ids, categories, conditions)
    if faults:
        more = f" … and {len(faults) - 3} more" if len(faults) > 3 else ""
        raise ModelError(f"{' '.join(faults[:3])}{more}")
    return [*notes[:3], *([f"… and {len(notes) - 3} more of these."] if len(notes) > 3 else [])]


def _try(model: Detector, dataset: DetectionDataset) -> list[str]:
    """Find out before any work whether a detector can be used at all, and return what should be said about it.

    Raises:
        InputError: it fails on `_TRIED_IMAGES` images, or on all if there are fewer.
    """
    failed: list[tuple[str, InputError]] = []
    for item in _various(dataset):
        try:
            image = dataset.load(item)
        except ImageError:
            continue  # counted and reported when its turn comes
        try:
            model.detect([image])
        except InputError as error:
            failed.append((item.key, error))
            if len(failed) == _TRIED_IMAGES:
                break
            continue
        return [f"{model.name} fails on {key}, which is left out of its scores: {error}" for key, error in failed]
    if failed:
        raise failed[0][1]
    return []


def _various(dataset: DetectionDataset) -> Iterator[DetectionItem]:
    """Yield the images, first one of each listed size: a detector may take some sizes only."""
    first = {item.size: item for item in reversed(dataset.items)}
    chosen = {item.key for item in first.values()}
    yield from sorted(first.values(), key=lambda item: item.key)
    yield from (item for item in dataset.items if item.key not in chosen)
