"""What a run will do: which images, conditions and models, in plain words that can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..catalog import list_entries
from ..catalog.aligned import check_truth
from ..catalog.entry import Entry
from ..datasets.masks import Item, MaskDataset, open_masks
from ..errors import ImageError, InputError, ModelError
from ..io import read_image
from ..models.segmenter import PredictionSource, Segmenter, load_model
from ..types import Condition

__all__ = ["UNIT_IMAGES", "MaskPlan", "Unit", "plan_cod10k_c"]

UNIT_IMAGES = 4
"""Images in one unit of work: what a killed worker loses at most, times all conditions and models."""

Model = Segmenter | PredictionSource


@dataclass(frozen=True, slots=True)
class Unit:
    """A few images under all conditions and models; one part file.

    Attributes:
        name: plain text, the part's file stem.
        items: the images.
    """

    name: str
    items: tuple[Item, ...]

    @property
    def images(self) -> int:
        """How many images are in it."""
        return len(self.items)


@dataclass(frozen=True, kw_only=True)
class MaskPlan:
    """A segmentation benchmark: every image × condition × model.

    Attributes:
        benchmark: its name.
        data: the data set as the user named it.
        dataset: the images and masks (after `limit`).
        models: what the user named, in order: specifications, or objects for runs in one process.
        descriptions: for each model its label, and everything that identifies it.
        entries: the degradations; each is run at severities 1..5, beside `clean`.
        seed: seed of all random draws.
        limit: number of images asked for, or None for all.
        normalize: `raw`, or `minmax` for the min-max habit of some evaluators.
        on_size_mismatch: `error`, or `resize-mask`.
        truth: `published` (masks stay) or `aligned` (masks move along where a degradation moves content).
    """

    benchmark: str
    data: str
    dataset: MaskDataset
    models: tuple[str | Model, ...]
    descriptions: Mapping[str, Mapping[str, Any]] = field(repr=False)
    entries: tuple[Entry, ...] = field(repr=False)
    seed: int = 0
    limit: int | None = None
    normalize: str = "raw"
    on_size_mismatch: str = "error"
    truth: str = "published"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """`clean`, then every entry at every severity."""
        return _conditions(self.entries)

    def entry(self, name: str) -> Entry:
        """Return the entry of that name."""
        return next(e for e in self.entries if e.name == name)

    def units(self) -> Iterator[Unit]:
        """Yield the units of work, in a fixed order."""
        items = self.dataset.items
        for start in range(0, len(items), UNIT_IMAGES):
            chunk = items[start : start + UNIT_IMAGES]
            yield Unit(f"images-{start:06d}-{start + len(chunk) - 1:06d}", tuple(chunk))

    def identity(self) -> dict[str, Any]:
        """Return what decides the results, as JSON values; two runs with the same identity agree."""
        return {
            "benchmark": self.benchmark,
            "dataset": {
                "name": self.dataset.name,
                "layout": self.dataset.layout,
                "images": len(self.dataset),
                "keys_sha256": self.dataset.fingerprint(),
            },
            "models": {name: dict(description) for name, description in self.descriptions.items()},
            "entries": {e.name: [dict(values) for values in e.parameters] for e in self.entries},
            "seed": self.seed,
            "limit": self.limit,
            "normalize": self.normalize,
            "on_size_mismatch": self.on_size_mismatch,
            "truth": self.truth,
            "unit_images": UNIT_IMAGES,
        }


def plan_cod10k_c(
    data: str,
    models: Sequence[str | Model],
    *,
    split: str = "test",
    seed: int = 0,
    limit: int | None = None,
    normalize: str = "raw",
    on_size_mismatch: str = "error",
    truth: str = "published",
    include_noncam: bool = False,
    allow_unpaired: bool = False,
) -> MaskPlan:
    """Plan COD10K-C: clean and 8 corruptions × 5 severities on any set of images with masks.

    Every model is loaded once here, tried on one image, and asked what it is, so that a wrong file is known
    before any work; maps on disk are checked to be all there.

    Args:
        data: `demo`, or the path of a folder or manifest; see `crypsis.datasets.masks.open_masks`.
        models: specifications such as `saliency` or `onnx:PATH`; see `crypsis.models.segmenter.load_model`.
        split: `test` or `train`, where the layout has both.
        seed: seed of the noise and the rain.
        limit: take only this many images.
        normalize: `raw` or `minmax`.
        on_size_mismatch: `error` or `resize-mask`.
        truth: one of `crypsis.catalog.aligned.TRUTHS`.
        include_noncam: keep COD10K's images without camouflaged objects.
        allow_unpaired: go on when images or masks lack their partner.

    Raises:
        InputError: something that cannot be used as given; the message names it.
    """
    if not models:
        raise InputError("No model was named; try --model saliency, which needs no weights.")
    if limit is not None and limit < 1:
        raise InputError(f"A limit is a number of images from 1 up; got {limit}.")
    if normalize not in ("raw", "minmax"):
        raise InputError(f"normalize is 'raw' or 'minmax'; got {normalize!r}.")
    if on_size_mismatch not in ("error", "resize-mask"):
        raise InputError(f"on_size_mismatch is 'error' or 'resize-mask'; got {on_size_mismatch!r}.")
    check_truth(truth)
    if not -(2**63) <= seed < 2**63:
        raise InputError(f"A seed is a whole number of at most 64 bits with sign; got {seed}.")
    dataset = open_masks(data, split=split, include_noncam=include_noncam, allow_unpaired=allow_unpaired)
    if limit is not None:
        dataset = dataset.limit(limit)
    entries = list_entries(family="cod10k-c")
    conditions = _conditions(entries)
    descriptions: dict[str, Mapping[str, Any]] = {}
    for given in models:
        model = load_model(given) if isinstance(given, str) else given
        if model.name in descriptions:
            raise InputError(f"Two models are called {model.name!r}; tell them apart with ,name=LABEL.")
        _try(model, dataset, conditions)
        descriptions[model.name] = model.describe()
    return MaskPlan(
        benchmark="cod10k-c",
        data=data,
        dataset=dataset,
        models=tuple(models),
        descriptions=descriptions,
        entries=entries,
        seed=seed,
        limit=limit,
        normalize=normalize,
        on_size_mismatch=on_size_mismatch,
        truth=truth,
    )


def _conditions(entries: Sequence[Entry]) -> tuple[Condition, ...]:
    return (Condition("clean", 0), *(Condition(e.name, s) for e in entries for s in e.severities))


def _try(model: Model, dataset: MaskDataset, conditions: Sequence[Condition]) -> None:
    """Find out before any work whether a model can be used at all.

    Raises:
        ModelError: the model fails on an image, or maps are missing.
    """
    if not isinstance(model, Segmenter):
        missing = model.check([item.key for item in dataset.items], conditions)
        if missing:
            shown = "; ".join(f"{key} under {condition}" for key, condition in missing[:3])
            raise ModelError(
                f"{model.name}: {len(missing):,} of {len(dataset) * len(conditions):,} maps are missing: {shown}"
                f"{' …' if len(missing) > 3 else ''}. A score over part of a set is not comparable; add the maps."
            )
        return
    for item in dataset.items:
        try:
            image = read_image(item.image)
        except ImageError:
            continue  # counted and reported when its turn comes
        predictions = model.predict([image])
        if len(predictions) != 1 or predictions[0].probability.shape != image.shape[:2]:
            raise ModelError(f"{model.name}: one image went in, but not one map of its size came out.")
        return
