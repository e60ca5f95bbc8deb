"""The one place where the stages meet: decode, degrade, measure, predict, score, store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..catalog.aligned import align_mask
from ..datasets.masks import Item
from ..errors import CrypsisError, InputError
from ..io import file_digest
from ..metrics.segmentation import MaskTruth, score_mask
from ..models.segmenter import PredictionSource, Segmenter, load_model
from ..results import RECORD_SCHEMA, SCORES
from ..severity.strength import CleanImage, psnr, ssim
from ..types import Condition, Image, Mask, Prediction, Sample
from . import store
from .plan import MaskPlan, Model, Unit
from .work import Clock, Labor, Outcome, Progress, Receipt, do_units, make_part

__all__ = ["LARGE", "degraded", "predict", "run_masks", "strength_meter", "truth_under"]


def run_masks(
    plan: MaskPlan,
    folder: Path,
    *,
    workers: int = 1,
    labor: Labor | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Do what is left of `plan` in `folder`.

    Killed at any moment and called again, it goes on; the parts are the same bytes whatever the number of
    workers, engine, shards and interruptions.

    Args:
        plan: what to do.
        folder: the run folder; made if absent.
        workers: number of processes; 1 works in this one.
        labor: who does it, if more is to be said than `workers`.
        progress: told after each unit.

    Raises:
        InputError: `workers` below 1, model objects with several workers, or a folder that is not this run's.
        IncompleteError: a worker died, or the disk is full.
    """
    labor = labor or Labor(workers)
    if (labor.workers > 1 or labor.cluster) and not all(isinstance(model, str) for model in plan.models):
        raise InputError("Model objects run in this process only: use workers=1, or name the model by a specification.")
    store.open_run(folder, plan)
    return do_units(
        folder,
        list(plan.units()),
        partial(_Scorer, plan, folder),
        columns=("image", "image_digest", "mask_digest"),
        files_now=lambda unit: [(item.key, file_digest(item.image), file_digest(item.mask)) for item in unit.items],
        labor=labor,
        progress=progress,
    )


class _Scorer:
    """Does units: holds the models of one process."""

    def __init__(self, plan: MaskPlan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.models = [load_model(model) if isinstance(model, str) else model for model in plan.models]
        self.needs_pixels = any(isinstance(model, Segmenter) for model in self.models)

    def __call__(self, unit: Unit) -> Receipt:
        return make_part(self.folder, unit, RECORD_SCHEMA, partial(self._rows, unit))

    def _rows(self, unit: Unit, clock: Clock) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
        """Return the rows of a unit, and what failed."""
        rows = [row for item in unit.items for row in self._score_item(item, clock)]
        return rows, [(row["image"], row["error"]) for row in rows if row["status"] == "failed"]

    def _score_item(self, item: Item, clock: Clock) -> list[dict[str, Any]]:
        """Return the rows of one image: all conditions × all models."""
        plan = self.plan
        common: dict[str, Any] = {
            "image": item.key,
            "seed": plan.seed,
            "species": item.species,
            "super_class": item.super_class,
        }
        try:
            with clock("decode"):
                common |= {"image_digest": file_digest(item.image), "mask_digest": file_digest(item.mask)}
                sample = plan.dataset.load(item, on_size_mismatch=plan.on_size_mismatch)
        except CrypsisError as error:
            return self._failed(item, common, plan.conditions, error)
        with clock("score"):
            unmoved = MaskTruth(sample.mask)
        with clock("measure"):
            measure = strength_meter(sample.image) if self.needs_pixels else None
        common["height"], common["width"] = sample.mask.shape
        rows = []
        for conditions in self._batches(sample):
            try:
                with clock("degrade"):
                    images = [degraded(plan, sample, c) for c in conditions] if self.needs_pixels else []
            except CrypsisError as error:  # an image that an operator cannot take, such as one too long for JPEG
                rows += self._failed(item, common, conditions, error)
                continue
            with clock("measure"):
                strengths = [measure(image) for image in images] if measure else [{}] * len(conditions)
            with clock("score"):
                truths = [self._truth(sample, condition, unmoved) for condition in conditions]
            for model in self.models:
                with clock("predict"):
                    predictions = predict(model, sample, images, conditions)
                each = zip(conditions, strengths, predictions, truths, strict=True)
                for condition, strength, prediction, truth in each:
                    if isinstance(prediction, CrypsisError):
                        rows += self._failed(item, common, [condition], prediction, [model])
                        continue
                    with clock("score"):
                        scores = score_mask(prediction.probability, truth, normalize=plan.normalize)
                    row = {**common, "model": model.name, "entry": condition.entry, "severity": condition.severity}
                    row |= {"status": "ok", "foreground": truth.foreground, **strength}
                    rows.append(row | {name: getattr(scores, name) for name in _SCORE_FIELDS})
        return rows

    def _batches(self, sample: Sample) -> Iterator[list[Condition]]:
        """Yield the conditions that are held in memory together: the severities of one entry, or one if large."""
        yield [Condition("clean", 0)]
        for entry in self.plan.entries:
            conditions = [Condition(entry.name, s) for s in entry.severities]
            if sample.mask.size <= LARGE:
                yield conditions
            else:
                yield from ([condition] for condition in conditions)

    def _truth(self, sample: Sample, condition: Condition, unmoved: MaskTruth) -> MaskTruth:
        mask = truth_under(self.plan, sample, condition)
        return unmoved if mask is sample.mask else MaskTruth(mask)

    def _failed(
        self,
        item: Item,
        common: dict[str, Any],
        conditions: Sequence[Condition],
        error: CrypsisError,
        models: Sequence[Model] | None = None,
    ) -> list[dict[str, Any]]:
        reason = str(error)
        for path in (item.image, item.mask):  # wherever the data lie, the rows are the same
            reason = reason.replace(str(path), f"{item.key}{path.suffix}")
        failed = {**common, "status": "failed", "error": reason}
        return [
            {**failed, "model": model.name, "entry": c.entry, "severity": c.severity}
            for c in conditions
            for model in models or self.models
        ]


# pixels; above it, five degraded images and their maps, or what SSIM keeps of a clean image, would fill the memory
LARGE = 2_000_000

_SCORE_FIELDS = (
    *SCORES,
    "ece_count",
    "ece_confidence",
    "ece_correct",
    "histogram_object",
    "histogram_background",
)


def strength_meter(clean: Image) -> Callable[[Image], dict[str, float]]:
    """Return what gives the columns of measured strength of a condition's image; a large one's terms are not kept."""
    similarity = CleanImage(clean).ssim if clean.size <= 3 * LARGE else partial(ssim, clean)
    return lambda image: {"one_minus_ssim": 1.0 - similarity(image), "psnr": psnr(clean, image)}


def degraded(plan: MaskPlan, sample: Sample, condition: Condition) -> Image:
    """Return the image under `condition`; the sample's own where that is `clean`."""
    if condition.severity == 0:
        return sample.image
    entry = plan.entry(condition.entry)
    return entry.degrade(sample.image, condition.severity, seed=plan.seed, image_key=sample.key)


def truth_under(plan: MaskPlan, sample: Sample, condition: Condition) -> Mask:
    """Return the mask that a prediction under `condition` is scored against; the sample's own where nothing moves."""
    if plan.truth == "published" or condition.severity == 0:
        return sample.mask
    entry = plan.entry(condition.entry)
    if not entry.moves_pixels:
        return sample.mask
    return align_mask(sample.mask, entry, condition.severity, seed=plan.seed, image_key=sample.key)


def predict(
    model: Model, sample: Sample, images: Sequence[Any], conditions: Sequence[Condition]
) -> list[Prediction | CrypsisError]:
    """Return each condition's prediction, or the expected error that took its place."""
    if isinstance(model, Segmenter):
        try:
            return list(model.predict(images))
        except CrypsisError as error:
            if len(images) == 1:
                return [error]
            pairs = zip(images, conditions, strict=True)
            return [predict(model, sample, [image], [condition])[0] for image, condition in pairs]
    return [_load(model, sample, condition) for condition in conditions]


def _load(model: PredictionSource, sample: Sample, condition: Condition) -> Prediction | CrypsisError:
    try:
        return model.load(sample.key, condition, sample.mask.shape)
    except CrypsisError as error:
        return error
