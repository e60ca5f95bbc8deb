"""The one place where the stages meet: decode, degrade, predict, score, store."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..catalog.aligned import align_mask
from ..datasets.masks import Item
from ..errors import CrypsisError, IncompleteError, InputError
from ..io import discard_leftovers
from ..metrics.segmentation import MaskTruth, score_mask
from ..models.segmenter import PredictionSource, Segmenter, load_model
from ..results import RECORD_SCHEMA, SCORES
from ..types import Condition, Image, Mask, Prediction, Sample
from . import store
from .engines import map_units
from .plan import MaskPlan, Model, Unit

__all__ = ["Clock", "Outcome", "Receipt", "degraded", "predict", "run_masks", "truth_under"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a worker reports of one unit; its rows are already on disk.

    Attributes:
        unit: its name.
        images: number of images in it.
        failures: `(image, reason)` of everything that could not be scored.
        seconds: CPU seconds by stage, and `total`.
        error: the traceback of a bug, which left the unit undone.
    """

    unit: str
    images: int
    failures: tuple[tuple[str, str], ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        units: number of units in the plan.
        done: number of units whose part is on disk.
        failures: see `Receipt.failures`.
        errors: tracebacks of bugs; their units are not done.
    """

    units: int
    done: int
    failures: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]


Progress = Callable[[int, int, Receipt | None], None]
"""Called with images done, images in all, and the last receipt (None at the start)."""


def run_masks(plan: MaskPlan, folder: Path, *, workers: int = 1, progress: Progress | None = None) -> Outcome:
    """Do what is left of `plan` in `folder`.

    Killed at any moment and called again, it goes on; the parts are the same bytes whatever the number of
    workers and interruptions.

    Args:
        plan: what to do.
        folder: the run folder; made if absent.
        workers: number of processes; 1 works in this one.
        progress: told after each unit.

    Raises:
        InputError: `workers` below 1, model objects with several workers, or a folder that is not this run's.
        IncompleteError: a worker died, or the disk is full.
    """
    if workers < 1:
        raise InputError(f"workers is a number from 1 up; got {workers}.")
    if workers > 1 and not all(isinstance(model, str) for model in plan.models):
        raise InputError("Model objects run in this process only: use workers=1, or name the model by a specification.")
    store.open_run(folder, plan)
    todo, total = store.remaining_units(folder, plan)
    images = len(plan.dataset)
    done_images = images - sum(len(unit.items) for unit in todo)
    if progress:
        progress(done_images, images, None)
    failures: list[tuple[str, str]] = []
    errors: list[str] = []
    for receipt in map_units(partial(_Scorer, plan, folder), todo, workers=min(workers, max(1, len(todo)))):
        done_images += receipt.images
        failures += receipt.failures
        if receipt.error:
            errors.append(receipt.error)
        else:
            store.append_lines(folder / "timing.jsonl", [{"unit": receipt.unit, **receipt.seconds}])
        if progress:
            progress(done_images, images, receipt)
    discard_leftovers(folder)  # again: workers of a killed session may have lived on into the start of this one
    return Outcome(total, total - len(errors), tuple(sorted(failures)), tuple(errors))


class Clock:
    """CPU seconds by stage: `with clock("decode"): …`, then `read()`."""

    def __init__(self) -> None:
        """Start."""
        self.start = time.process_time()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Add what the block takes to a stage."""
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.process_time() - start

    def read(self) -> dict[str, float]:
        """Return the seconds of each stage, and `total` since the start."""
        total = time.process_time() - self.start
        return {stage: round(value, 6) for stage, value in {**self.seconds, "total": total}.items()}


class _Scorer:
    """Does units: holds the models of one process."""

    def __init__(self, plan: MaskPlan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.models = [load_model(model) if isinstance(model, str) else model for model in plan.models]
        self.needs_pixels = any(isinstance(model, Segmenter) for model in self.models)

    def __call__(self, unit: Unit) -> Receipt:
        clock = Clock()
        rows: list[dict[str, Any]] = []
        try:
            for item in unit.items:
                rows += self._score_item(item, clock)
            with clock("store"):
                store.write_part(self.folder, unit.name, pa.Table.from_pylist(rows, RECORD_SCHEMA))
        except IncompleteError:
            raise
        except Exception:
            return Receipt(unit.name, len(unit.items), error=f"unit {unit.name}\n{traceback.format_exc()}")
        failures = dict.fromkeys((row["image"], row["error"]) for row in rows if row["status"] == "failed")
        return Receipt(unit.name, len(unit.items), tuple(failures), clock.read())

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
                common["image_bytes"], common["mask_bytes"] = plan.dataset.file_sizes(item)
                sample = plan.dataset.load(item, on_size_mismatch=plan.on_size_mismatch)
        except CrypsisError as error:
            return self._failed(common, plan.conditions, error)
        with clock("score"):
            unmoved = MaskTruth(sample.mask)
        common["height"], common["width"] = sample.mask.shape
        rows = []
        for conditions in self._batches(sample):
            try:
                with clock("degrade"):
                    images = [degraded(plan, sample, c) for c in conditions] if self.needs_pixels else []
            except CrypsisError as error:  # an image that an operator cannot take, such as one too long for JPEG
                rows += self._failed(common, conditions, error)
                continue
            with clock("score"):
                truths = [self._truth(sample, condition, unmoved) for condition in conditions]
            for model in self.models:
                with clock("predict"):
                    predictions = predict(model, sample, images, conditions)
                for condition, prediction, truth in zip(conditions, predictions, truths, strict=True):
                    if isinstance(prediction, CrypsisError):
                        rows += self._failed(common, [condition], prediction, [model])
                        continue
                    with clock("score"):
                        scores = score_mask(prediction.probability, truth, normalize=plan.normalize)
                    row = {**common, "model": model.name, "entry": condition.entry, "severity": condition.severity}
                    row |= {"status": "ok", "foreground": truth.foreground}
                    rows.append(row | {name: getattr(scores, name) for name in _SCORE_FIELDS})
        return rows

    def _batches(self, sample: Sample) -> Iterator[list[Condition]]:
        """Yield the conditions that are held in memory together: the severities of one entry, or one if large."""
        yield [Condition("clean", 0)]
        for entry in self.plan.entries:
            conditions = [Condition(entry.name, s) for s in entry.severities]
            if sample.mask.size <= _LARGE:
                yield conditions
            else:
                yield from ([condition] for condition in conditions)

    def _truth(self, sample: Sample, condition: Condition, unmoved: MaskTruth) -> MaskTruth:
        mask = truth_under(self.plan, sample, condition)
        return unmoved if mask is sample.mask else MaskTruth(mask)

    def _failed(
        self,
        common: dict[str, Any],
        conditions: Sequence[Condition],
        error: CrypsisError,
        models: Sequence[Model] | None = None,
    ) -> list[dict[str, Any]]:
        failed = {**common, "status": "failed", "error": str(error)}
        return [
            {**failed, "model": model.name, "entry": c.entry, "severity": c.severity}
            for c in conditions
            for model in models or self.models
        ]


_LARGE = 2_000_000  # pixels; above it, five degraded images and their maps would be what fills the memory

_SCORE_FIELDS = (
    *SCORES,
    "ece_count",
    "ece_confidence",
    "ece_correct",
    "histogram_object",
    "histogram_background",
)


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
