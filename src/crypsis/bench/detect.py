"""Detectors under degradations: decode, degrade, measure, detect, store; what is scored later stands in the rows."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..catalog.aligned import warp_boxes
from ..catalog.entry import Entry
from ..datasets.detection import DetectionItem
from ..detection_results import DETECTION_RUN_SCHEMA, DETECTION_SCHEMA, TRUTH_FILE
from ..errors import CrypsisError, InputError
from ..io import file_digest, write_atomic
from ..models.detector import Detector, load_detector
from ..results import PARTS
from ..types import Condition, Detections, Image, ListedDetections
from . import store
from .detection_plan import DetectionPlan, DetectionUnit
from .run import LARGE, strength_meter
from .stored_detections import StoredDetections, store_detections
from .work import Clock, Labor, Outcome, Progress, Receipt, do_units, look_ahead, make_part

__all__ = ["detect_under", "run_detection"]


def run_detection(
    plan: DetectionPlan, folder: Path, *, labor: Labor | None = None, progress: Progress | None = None
) -> Outcome:
    """Do what is left of `plan` in `folder`.

    Killed at any moment and called again, it goes on; the parts are the same bytes whatever the number of workers,
    engine, shards and interruptions.

    Args:
        plan: what to do.
        folder: the run folder; made if absent.
        labor: who does it; this process alone if None.
        progress: told after each unit.

    Raises:
        InputError: detector objects with several workers, or a folder that is not this run's.
        ModelError: saved detections changed since the plan was made, and cannot be read any more.
        IncompleteError: a worker died, or the disk is full.
    """
    labor = labor or Labor()
    models = [m if isinstance(m, str) else type(m).__name__ for m in plan.models]
    if (labor.workers > 1 or labor.cluster) and not all(isinstance(model, str) for model in plan.models):
        raise InputError("Detector objects run in this process only: use workers=1, or name one by a specification.")
    store.claim_folder(
        folder,
        "run.json",
        schema=DETECTION_RUN_SCHEMA,
        identity=plan.identity(),
        session={**store.session_of(plan.data), "models": models},
        what="run",
        option="--out",
    )
    truth = json.dumps(truth_of(plan), ensure_ascii=False)
    write_atomic(folder / TRUTH_FILE, truth.encode(), durable=True)
    units = plan.units()
    ids = [item.id for item in plan.dataset.items]
    stored: dict[int, Path] = {}
    for k, given in enumerate(plan.models):
        source = load_detector(given) if isinstance(given, str) else given
        if not isinstance(source, Detector):
            stored[k] = folder / f"saved-{k}.bin"
            if not stored[k].is_file():  # what is in it follows from the identity of the run
                store_detections(source, stored[k], ids, plan.conditions)
    outcome = do_units(
        folder,
        units,
        partial(_Finder, _light(plan), folder, stored),
        columns=("image", "image_digest"),
        files_now=lambda unit: [(item.key, file_digest(item.image)) for item in unit.items],
        labor=labor,
        progress=progress,
    )
    if all((folder / PARTS / f"{unit.name}.parquet").is_file() for unit in units):
        for path in stored.values():
            with contextlib.suppress(OSError):  # where an open file cannot be removed, it stays
                path.unlink(missing_ok=True)
    return outcome


def truth_of(plan: DetectionPlan) -> dict[str, Any]:
    """Return the objects to be found, in COCO's form; all of one category if labels do not count."""
    truth = plan.dataset.truth()
    if plan.labels != "agnostic":
        return truth
    one = min(plan.dataset.categories)
    annotations = [{**found, "category_id": one} for found in truth["annotations"]]
    return {**truth, "annotations": annotations, "categories": [{"id": one, "name": "object"}]}


def _light(plan: DetectionPlan) -> DetectionPlan:
    """Return the plan as workers need it: without the objects, unless these move."""
    if plan.truth != "published":
        return plan
    return dataclasses.replace(plan, dataset=dataclasses.replace(plan.dataset, annotations={}))


@dataclass(frozen=True, slots=True)
class _Batch:
    """What detectors are shown together: one image under some conditions, or the error that took its place."""

    item: DetectionItem
    common: Mapping[str, Any]
    conditions: Sequence[Condition]
    images: Sequence[Image] = ()
    truths: Sequence[Mapping[str, Any]] = ()
    strengths: Sequence[Mapping[str, float]] = ()
    error: CrypsisError | None = None


_Model = Detector | StoredDetections


class _Finder:
    """Does units: holds the detectors of one process.

    Where one of them runs on a GPU, a thread degrades the next batch while they look at the last.
    """

    def __init__(self, plan: DetectionPlan, folder: Path, stored: Mapping[int, Path]) -> None:
        self.plan = plan
        self.folder = folder
        ids = [item.id for item in plan.dataset.items]
        self.models: list[_Model] = []
        for k, given in enumerate(plan.models):
            model = load_detector(given) if isinstance(given, str) else given
            if isinstance(model, Detector):
                self.models.append(model)
            else:
                self.models.append(StoredDetections(model.name, stored[k], ids, plan.conditions))
        detectors = [model for model in self.models if isinstance(model, Detector)]
        self.needs_pixels = bool(detectors)
        self.ahead = any(model.describe().get("device", "cpu") != "cpu" for model in detectors)
        self.measured = plan.measured()

    def __call__(self, unit: DetectionUnit) -> Receipt:
        clock = Clock(time.thread_time if self.ahead else time.process_time)
        return make_part(self.folder, unit, DETECTION_SCHEMA, partial(self._rows, unit), by="entry", clock=clock)

    def _rows(self, unit: DetectionUnit, clock: Clock) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
        """Return the rows of a unit, entry by entry, and what failed."""
        batches = self._prepared(unit, clock)
        rows = [row for batch in (look_ahead(batches) if self.ahead else batches) for row in self._found(batch, clock)]
        place = {entry: index for index, entry in enumerate(["clean", *(e.name for e in self.plan.entries)])}
        rows.sort(key=lambda row: (place[row["entry"]], row["severity"]))
        return rows, [(row["image"], row["error"]) for row in rows if row["status"] == "failed"]

    def _prepared(self, unit: DetectionUnit, clock: Clock) -> Iterator[_Batch]:
        """Yield all images under all conditions."""
        plan = self.plan
        for item in unit.items:
            common: dict[str, Any] = {"image": item.key, "number": item.number}
            try:
                with clock("decode"):
                    common["image_digest"] = file_digest(item.image)
                    image = plan.dataset.load(item)
            except CrypsisError as error:
                yield _Batch(item, common, plan.conditions, error=error)
                continue
            common["height"], common["width"] = image.shape[:2]
            measure = None
            if item.key in self.measured and self.needs_pixels:
                with clock("measure"):
                    measure = strength_meter(image)
            for entry, conditions in self._batches(image):
                try:
                    with clock("degrade"):
                        images = [self._degraded(image, entry, c, item.key) for c in conditions]
                    with clock("align"):
                        truths = [self._truth(image, item, entry, condition) for condition in conditions]
                except CrypsisError as error:  # an image that an operator cannot take, such as one too long for JPEG
                    yield _Batch(item, common, conditions, error=error)
                    continue
                with clock("measure"):
                    strengths = [measure(i) if measure else {} for i in images]
                yield _Batch(item, common, conditions, images, truths, strengths)

    def _found(self, batch: _Batch, clock: Clock) -> list[dict[str, Any]]:
        """Return the rows of a batch: its conditions × all detectors."""
        if batch.error:
            return self._failed(batch, batch.conditions, batch.error)
        rows = []
        for model in self.models:
            with clock("detect"):
                found = detect_under(model, batch.item, batch.images, batch.conditions)
            each = zip(batch.conditions, batch.strengths, batch.truths, found, strict=True)
            for condition, strength, truth, detections in each:
                if isinstance(detections, CrypsisError):
                    rows += self._failed(batch, [condition], detections, [model])
                    continue
                row = {**batch.common, "model": model.name, "entry": condition.entry, "severity": condition.severity}
                row |= {"status": "ok", **strength, **truth}
                rows.append(row | self._columns(model, detections))
        return rows

    def _batches(self, image: Image) -> Iterator[tuple[Entry | None, list[Condition]]]:
        """Yield the conditions that are held in memory together: the severities of one entry, or one if large."""
        yield None, [Condition("clean", 0)]
        for entry in self.plan.entries:
            conditions = [Condition(entry.name, s) for s in self.plan.severities]
            if image.shape[0] * image.shape[1] <= LARGE:
                yield entry, conditions
            else:
                yield from ((entry, [condition]) for condition in conditions)

    def _degraded(self, image: Image, entry: Entry | None, condition: Condition, key: str) -> Image:
        if entry is None or not self.needs_pixels:
            return image
        return entry.degrade(image, condition.severity, seed=self.plan.seed, image_key=key)

    def _truth(self, image: Image, item: DetectionItem, entry: Entry | None, condition: Condition) -> dict[str, Any]:
        """Return the column of boxes that moved along with the content, where they are asked for and move."""
        objects = self.plan.dataset.annotations.get(item.id, ())
        if self.plan.truth == "published" or entry is None or not entry.moves_pixels or not objects:
            return {}
        height, width = image.shape[:2]
        field = entry.source_of(height, width, condition.severity, seed=self.plan.seed, image_key=item.key)
        assert field is not None
        boxes = np.array([found["bbox"] for found in objects], np.float64)
        boxes[:, 2:] += boxes[:, :2]
        moved, visible = warp_boxes(boxes, field)
        moved[~visible] = np.nan
        return {"truth_boxes": moved.ravel()}

    def _columns(self, model: _Model, detections: Detections | ListedDetections) -> dict[str, Any]:
        """Return the columns of detections that count, classes being categories."""
        plan = self.plan
        mapping = plan.categories[model.name]
        listed = detections.listed() if isinstance(detections, Detections) else detections
        labels = listed.labels
        if mapping is not None:
            labels = np.array([-1 if category is None else category for category in mapping], np.int64)[labels]
            counts = labels >= 0
        else:
            counts = np.isin(labels, plan.kept) if plan.keep else np.ones(len(labels), np.bool_)
            if plan.labels == "agnostic":
                labels = np.full_like(labels, min(plan.dataset.categories))
        return {"boxes": listed.boxes[counts].ravel(), "scores": listed.scores[counts], "categories": labels[counts]}

    def _failed(
        self,
        batch: _Batch,
        conditions: Sequence[Condition],
        error: CrypsisError,
        models: Sequence[_Model] | None = None,
    ) -> list[dict[str, Any]]:
        # rows are the same wherever the data set lies
        reason = str(error).replace(str(batch.item.image), batch.item.file_name)
        failed = {**batch.common, "status": "failed", "error": reason}
        return [
            {**failed, "model": model.name, "entry": c.entry, "severity": c.severity}
            for c in conditions
            for model in models or self.models
        ]


def detect_under(
    model: _Model, item: DetectionItem, images: Sequence[Image], conditions: Sequence[Condition]
) -> Sequence[Detections | ListedDetections | CrypsisError]:
    """Return each condition's detections, or the expected error that took their place."""
    if isinstance(model, StoredDetections):
        return [model.load(item.id, condition) for condition in conditions]
    try:
        return model.detect(images)
    except CrypsisError as error:
        if len(images) == 1:
            return [error]
        pairs = zip(images, conditions, strict=True)
        return [detect_under(model, item, [image], [condition])[0] for image, condition in pairs]
