"""The detections of a run in the forms that other tools read.

`coco`, a folder that `predictions:DIR` reads back:

    DIR/clean.json
    DIR/<entry>/<severity>.json   COCO results: image_id, category_id, bbox, score
    DIR/instances.json            the objects of the same images, written last

It takes files of up to 512 MB, some 3 million detections of a condition; a threshold makes them smaller.

`fiftyone`, a folder that `fiftyone.Dataset.from_dir(dataset_dir=DIR, dataset_type=fiftyone.types.FiftyOneDataset)`
reads:

    DIR/samples.json              one sample an image, with a field of detections for the truth and for each condition
    DIR/metadata.json             the classes, written last

FiftyOne takes a `metadata.json` without a `version` for the plainer of its two JSON forms, which needs neither its
database's ids nor its field descriptions; read so by FiftyOne 1.22.1.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .. import __version__
from ..datasets.demo import demo_folder
from ..datasets.folder import counted, examples
from ..detection_results import DetectionRun
from ..errors import InputError, UnknownNameError
from ..io import atomic_path
from ..types import Condition
from .store import write_json

__all__ = ["STYLES", "Export", "export_detections", "field_name"]

STYLES = ("coco", "fiftyone")
"""What `export_detections` can write."""

_OPEN_FILES = 64
_DECIMALS = 7  # of FiftyOne's shares of a side
_COLUMNS = ["number", "entry", "severity", "status", "height", "width", "boxes", "scores", "categories", "truth_boxes"]


@dataclass(frozen=True)
class Export:
    """What was written.

    Attributes:
        images: in it.
        conditions: in it.
        detections: in it, of all conditions.
        failed: image → reason, of those left out because the detector failed on them.
        missing: images left out because their part is not done.
    """

    images: int
    conditions: int
    detections: int
    failed: Mapping[str, str]
    missing: int

    def text(self) -> str:
        """Return it as lines to print."""
        held = [counted(self.images, "image"), counted(self.conditions, "condition")]
        lines = [f"{', '.join(held)}, {counted(self.detections, 'detection')}."]
        if self.failed:
            names = [f"{image} ({reason})" for image, reason in self.failed.items()]
            left_out = f"{counted(len(names), 'image')} that failed"
            lines.append(f"Left out, as in the run's scores: {left_out}: {examples(names, 3)}.")
        if self.missing:
            lines.append(f"Left out: {counted(self.missing, 'image')} of the plan not done yet.")
        return "\n".join(lines)


def export_detections(
    run: DetectionRun,
    target: Path,
    *,
    model: str,
    style: str = "coco",
    threshold: float = 0.0,
    conditions: Sequence[Condition] = (),
    images: Path | None = None,
) -> Export:
    """Write the detections of one detector of a run, and the objects to be found.

    An image on which the detector failed under any condition is left out, as the run's own scores do, so that other
    tools come to the same ones; unscored are also images that are not done yet. Memory does not grow with conditions.

    Args:
        run: the run.
        target: a folder that does not exist or is empty.
        model: label of the detector.
        style: one of `STYLES`.
        threshold: detections of lower scores are left out; AP needs them all.
        conditions: some of the run's; all if empty. FiftyOne shows one field for each, so choose a few for it.
        images: for `fiftyone`, the folder that file names start from, which samples refer to by absolute path; None
            for where the run found them.

    Raises:
        InputError: the target holds something, no image has detections, images are not there, or a part is damaged.
        UnknownNameError: an unknown style, detector or condition.
        IncompleteError: the target cannot be written.
    """
    if style not in STYLES:
        raise UnknownNameError.among("style of export", style, STYLES)
    if model not in run.models:
        raise UnknownNameError.among(f"detector in {run.path}", model, run.models)
    for condition in conditions:
        if condition not in run.conditions:
            raise UnknownNameError.among(f"condition in {run.path}", str(condition), map(str, run.conditions))
    if not 0 <= threshold <= 1:
        raise InputError(f"A threshold of scores is a number from 0 to 1; got {threshold}.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is not an empty folder; name a new one to export to.")
    chosen = tuple(dict.fromkeys(conditions)) or run.conditions
    done, failures = run.progress()
    failed = failures[model]
    numbers = {number for image, number in done.items() if image not in failed}
    if not numbers:
        reason = next(iter(failed.values()), "no part is done yet")
        raise InputError(f"{run.path}: there is nothing of {model} to export ({reason}).")
    truth = run.truth()
    truth["images"] = [image for image in truth["images"] if image["id"] in numbers]
    truth["annotations"] = [found for found in truth["annotations"] if found["image_id"] in numbers]
    about = {"run": run.name, "model": model, "threshold": threshold, "crypsis": __version__}
    if style == "coco":
        detections = _write_results(run, target, model, chosen, numbers, threshold)
        write_json(target / "instances.json", {"info": about, **truth})
    else:
        paths = _image_paths(run, truth, images)
        detections = _write_samples(run, target, model, chosen, truth, paths, threshold)
        info = {"classes": [category["name"] for category in truth["categories"]], "crypsis": about}
        write_json(target / "metadata.json", {"info": info})
    planned = int(run.plan["dataset"]["images"])
    return Export(len(numbers), len(chosen), detections, failed, planned - len(done))


def _parts(run: DetectionRun, model: str, conditions: Sequence[Condition]) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a detector under some conditions, part by part."""
    of_model = [("model", "==", model), ("entry", "in", sorted({c.entry for c in conditions}))]
    for part in run.parts():
        try:
            table = pq.read_table(part, columns=_COLUMNS, filters=of_model)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{part}: is damaged ({error}); give the bench command again to make it anew.") from error
        yield table.to_pylist()


def _write_results(
    run: DetectionRun, target: Path, model: str, conditions: Sequence[Condition], numbers: set[int], threshold: float
) -> int:
    """Write a file of results for each condition, several at once, and return the number of detections."""
    count = 0
    for start in range(0, len(conditions), _OPEN_FILES):
        batch = conditions[start : start + _OPEN_FILES]
        with ExitStack() as stack:
            files: dict[Condition, IO[str]] = {}
            for condition in batch:
                name = "clean" if condition.severity == 0 else f"{condition.entry}/{condition.severity}"
                temporary = stack.enter_context(atomic_path(target / f"{name}.json"))
                files[condition] = stack.enter_context(temporary.open("w", encoding="utf-8"))
                files[condition].write("[")
            separators = dict.fromkeys(batch, "\n")
            for rows in _parts(run, model, batch):
                for row in rows:
                    condition = Condition(row["entry"], row["severity"])
                    if condition not in files or row["number"] not in numbers:
                        continue
                    results = _results(row, threshold)
                    count += len(results)
                    if results:
                        files[condition].write(separators[condition] + json.dumps(results)[1:-1])
                        separators[condition] = ",\n"
            for file in files.values():
                file.write("\n]\n")
    return count


def _results(row: Mapping[str, Any], threshold: float) -> list[dict[str, Any]]:
    """Return the COCO results of a row, in its own numbers."""
    boxes = np.array(row["boxes"]).reshape(-1, 4).tolist()
    return [
        {"image_id": row["number"], "category_id": category, "bbox": box, "score": score}
        for box, score, category in zip(boxes, row["scores"], row["categories"], strict=True)
        if score >= threshold
    ]


def _image_paths(run: DetectionRun, truth: Mapping[str, Any], images: Path | None) -> dict[int, str]:
    """Return the absolute path of each image by its number."""
    if images is None:
        data = str(run.sessions[-1]["data"])
        images = demo_folder() / "images" if data == "demo" else Path(data)
    paths = {image["id"]: images.absolute() / image["file_name"] for image in truth["images"]}
    absent = [str(path) for path in paths.values() if not path.is_file()]
    if absent:
        raise InputError(
            f"{images}: {len(absent):,} of {counted(len(paths), 'image')} of {run.path} are not there "
            f"({examples(absent, 3)}); give the folder that their names start from."
        )
    return {number: str(path) for number, path in paths.items()}


def field_name(condition: Condition) -> str:
    """Return what FiftyOne calls the detections of a condition, such as `predictions_imagenet_c_fog_3`."""
    return "predictions_" + re.sub(r"\W+", "_", str(condition))


def _write_samples(
    run: DetectionRun,
    target: Path,
    model: str,
    conditions: Sequence[Condition],
    truth: Mapping[str, Any],
    paths: Mapping[int, str],
    threshold: float,
) -> int:
    """Write the samples, one image after the other, and return the number of detections."""
    labels = {category["id"]: category["name"] for category in truth["categories"]}
    objects: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for found in truth["annotations"]:
        objects[found["image_id"]].append(found)
    fields = {condition: field_name(condition) for condition in conditions}
    count = 0
    separator = "\n"
    with atomic_path(target / "samples.json") as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write('{"samples": [')
        for rows in _parts(run, model, conditions):
            samples: dict[int, dict[str, Any]] = {}
            for row in rows:
                number, field = row["number"], fields.get(Condition(row["entry"], row["severity"]))
                if field is None or number not in paths:
                    continue
                size = row["width"], row["height"]
                known = objects.get(number, [])
                if number not in samples:
                    found = [_object(one, one["bbox"], labels, size) for one in known]
                    samples[number] = {"filepath": paths[number], "ground_truth": _detections(found)}
                results = _results(row, threshold)
                count += len(results)
                found = [_detection(labels[r["category_id"]], r["bbox"], size, confidence=r["score"]) for r in results]
                samples[number][field] = _detections(found)
                if row["truth_boxes"] is not None:
                    corners = np.array(row["truth_boxes"]).reshape(-1, 4)
                    boxes = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1).tolist()
                    moved = zip(known, boxes, strict=True)
                    seen = [_object(one, box, labels, size) for one, box in moved if np.isfinite(box[0])]
                    samples[number][field.replace("predictions", "ground_truth", 1)] = _detections(seen)
            for sample in samples.values():
                file.write(f"{separator}{json.dumps(sample, ensure_ascii=False)}")
                separator = ",\n"
        file.write("\n]}\n")
    return count


def _object(
    listed: Mapping[str, Any], box: Sequence[float], labels: Mapping[int, str], size: tuple[int, int]
) -> dict[str, Any]:
    return _detection(labels[listed["category_id"]], box, size, iscrowd=listed["iscrowd"])


def _detection(label: str, box: Sequence[float], size: tuple[int, int], **more: float) -> dict[str, Any]:
    """Return a FiftyOne detection, whose box is in shares of the image's sides."""
    shares = [round(value / side, _DECIMALS) for value, side in zip(box, size * 2, strict=True)]
    return {"_cls": "Detection", "label": label, "bounding_box": shares, **more}


def _detections(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"_cls": "Detections", "detections": list(found)}
