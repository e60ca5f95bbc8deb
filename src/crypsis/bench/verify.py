"""Whether a run folder holds what its plan says: every row once, in parts that can be read.

A run is read from outside, part by part, and nothing in it is changed; it may lie on another machine's disk and may
still be going on.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..camouflage.seamcam import select_proposals
from ..datasets.folder import counted, examples
from ..detection_results import DETECTION_RUN_SCHEMA, DETECTION_SCHEMA, DetectionRun
from ..errors import CrypsisError, InputError
from ..models.saved_proposals import SavedProposals
from ..results import PARTS, RECORD_SCHEMA, RUN_SCHEMA, read_run
from .measure import MEASURE_SCHEMA, STRENGTH_SCHEMA
from .score import PROPOSALS, ROW_SCHEMA, SCORE_SCHEMA, SCORES, SEAMCAM, SeamCamSettings

__all__ = ["VerifyReport", "verify_run"]

_PART = re.compile(r"images-(\d{6,})-(\d{6,})\.parquet", re.ASCII)
_SHOWN = 20


@dataclass(frozen=True)
class VerifyReport:
    """What `verify_run` found.

    Attributes:
        path: the run folder.
        kind: `segmentation`, `detection`, `measurement` or `camouflage`.
        images: planned.
        done: images in parts that are sound.
        parts: number of part files.
        rows: in sound parts.
        failed: rows that hold the reason of a failure in place of numbers.
        faults: what is wrong or missing, a sentence each.
        leftovers: temporary files below the folder: of a session that is going on, or of one that was killed.
        digest: SHA-256 (hex) over the names and the bytes of all parts; equal for equal runs, wherever they were made.
    """

    path: Path
    kind: str
    images: int
    done: int
    parts: int
    rows: int
    failed: int
    faults: tuple[str, ...]
    leftovers: tuple[str, ...]
    digest: str

    @property
    def ok(self) -> bool:
        """Whether every planned row is there once; failed rows are rows."""
        return not self.faults

    def text(self) -> str:
        """Return it as lines to print."""
        lines = [
            f"{self.path}: {self.kind}, {self.done:,} of {counted(self.images, 'image')} in "
            f"{counted(self.parts, 'part')}, {counted(self.rows, 'row')}, {self.failed:,} of them failed.",
            *self.faults[:_SHOWN],
        ]
        if len(self.faults) > _SHOWN:
            lines.append(f"… and {len(self.faults) - _SHOWN:,} more of these.")
        if self.leftovers:
            named = counted(len(self.leftovers), "temporary file")
            lines.append(f"{named}, which the next session removes: {examples(self.leftovers)}.")
        if self.ok:
            lines.append("Every planned row is there once.")
        return "\n".join([*lines, f"digest {self.digest}"])

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "schema": "crypsis.verification/1",
            "run": self.path.resolve().name,
            "kind": self.kind,
            "ok": self.ok,
            "images": self.images,
            "done": self.done,
            "parts": self.parts,
            "rows": self.rows,
            "failed": self.failed,
            "faults": list(self.faults),
            "leftovers": list(self.leftovers),
            "digest": self.digest,
        }


class _Fault(Exception):  # noqa: N818 - not an error of this program
    """What is wrong with a part."""


@dataclass(frozen=True)
class _Sound:
    """What was read of a part that is sound, and is needed beyond it.

    Attributes:
        keys: of its images, sorted.
        rows: how many.
        failed: how many of them.
        covered: how many images each version has rows of, where not every image has all.
        unread: images that failed before any version.
    """

    keys: list[str]
    rows: int
    failed: int
    covered: Mapping[tuple[str, str], int]
    unread: int


@dataclass(frozen=True)
class _Kind:
    """One kind of run folder; `files` looks at what lies beside the parts and belongs to the rows of one."""

    name: str
    columns: pa.Schema
    check: Callable[[Mapping[str, Any], pa.Table], _Sound]
    files: Callable[[Path, Mapping[str, Any], pa.Table], None] | None = None


def verify_run(path: Path) -> VerifyReport:
    """Read all parts of a run folder of any kind, and compare them with its plan.

    Each part must be readable, have the columns of this version, and hold every condition × model (× metric) of its
    images once and nothing else; images must occur in one part, and be those of the plan. A run of scores has one row
    an image, whose numbers must fit each other and the proposals that were stored. Memory does not grow with the run.

    Args:
        path: the folder.

    Raises:
        InputError: there is no run in it, or one that this version does not know.
    """
    schema = _schema_of(path)
    if schema not in _KINDS:
        raise InputError(f"{path / 'run.json'}: has schema {schema!r}; this version reads {', '.join(_KINDS)}.")
    kind = _KINDS[schema]
    plan, _ = read_run(path, schema)
    try:
        images, keys_sha256 = int(plan["dataset"]["images"]), plan["dataset"].get("keys_sha256")
        check = partial(kind.check, plan)
        nothing = kind.columns.empty_table()  # a damaged plan is known before any part is read
        check(nothing)
        if kind.files:
            kind.files(path, plan, nothing)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path / 'run.json'}: the plan in it is damaged ({error!r}).") from error
    files = sorted(file for file in (path / PARTS).glob("*") if not _is_leftover(file))
    faults: list[str] = []
    all_parts, all_keys = hashlib.sha256(), hashlib.sha256()
    covered: Counter[tuple[str, str]] = Counter()
    parts = done = rows = failed = unread = 0
    following = 0  # the image that the next part starts with
    last = ""
    for file in files:
        match = _PART.fullmatch(file.name)
        if match is None or not file.is_file():
            faults.append(f"{file}: is no part of this run; take it out of the folder.")
            continue
        first, final = int(match[1]), int(match[2])
        try:
            data = file.read_bytes()
        except OSError as error:
            faults.append(f"{file}: cannot be read ({error.strerror or error}).")
            continue
        parts += 1
        all_parts.update(f"{file.name} {hashlib.sha256(data).hexdigest()}\n".encode())
        if final < first or final >= images or first < following:
            faults.append(f"{file}: is of images that are in another part, or not in the plan; take it out.")
            continue
        faults += _gap(path, following, first)
        following = final + 1
        try:
            table = _read(data, kind.columns)
            found = check(table)
            if len(found.keys) != final + 1 - first:
                raise _Fault(f"holds {counted(len(found.keys), 'image')} in place of {final + 1 - first}")
            if last and found.keys[0] <= last:
                raise _Fault(f"{found.keys[0]!r} should come before {last!r} of the part before it, or is in both")
            if kind.files:
                kind.files(path, plan, table)
        except _Fault as fault:
            faults.append(f"{file}: {fault}; delete it and give the command of the run again to make it anew.")
            continue
        for key in found.keys:
            all_keys.update(f"\n{key}".encode() if done else key.encode())
            done += 1
        last = found.keys[-1]
        rows, failed, unread = rows + found.rows, failed + found.failed, unread + found.unread
        covered.update(found.covered)
    faults += _gap(path, following, images)
    if done == images and keys_sha256 not in (None, all_keys.hexdigest()):
        faults.append(f"{path}: its parts are of other images than those of its plan; they are another run's.")
    if done == images:
        faults += [f"{path}: {fault}" for fault in _uncovered(plan, covered, unread)]
    if schema == DETECTION_RUN_SCHEMA:
        faults += _truth_faults(path, images)
    leftovers = sorted(file.relative_to(path).as_posix() for file in path.rglob(".*.tmp") if _is_leftover(file))
    digest = all_parts.hexdigest()
    return VerifyReport(path, kind.name, images, done, parts, rows, failed, tuple(faults), tuple(leftovers), digest)


def _schema_of(path: Path) -> Any:
    try:
        content = json.loads((path / "run.json").read_text("utf-8"))
    except (OSError, ValueError):
        read_run(path, RUN_SCHEMA)  # says in a sentence what is wrong
        raise
    return content.get("schema") if isinstance(content, dict) else None


def _is_leftover(file: Path) -> bool:
    return file.name.startswith(".") and file.suffix == ".tmp"


def _gap(path: Path, start: int, end: int) -> Iterator[str]:
    if start < end:
        which = f"image {start + 1:,}" if end == start + 1 else f"images {start + 1:,} to {end:,}"
        yield f"{path}: {which} in the order of the plan are not done; give the command of the run again."


def _read(data: bytes, columns: pa.Schema) -> pa.Table:
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (OSError, pa.ArrowException) as error:
        raise _Fault(f"is damaged ({error})") from error
    if not table.schema.equals(columns):
        names = set(table.schema.names) ^ set(columns.names)
        raise _Fault(f"has other columns than this version writes ({examples(sorted(names)) or 'of other types'})")
    return table


def _check_rows(
    levels: Callable[[Mapping[str, Any]], list[tuple[str, int]]], plan: Mapping[str, Any], table: pa.Table
) -> _Sound:
    """Check the rows of a benchmark: image × model × condition."""
    wanted = {(model, *condition) for model in plan["models"] for condition in [("clean", 0), *levels(plan)]}
    cells = Counter(zip(*(table[name].to_pylist() for name in ("image", "model", "entry", "severity")), strict=True))
    keys = sorted({cell[0] for cell in cells})
    _refuse(cells, {(key, *one) for key in keys for one in wanted})
    return _Sound(keys, len(table), _failures(table), {}, 0)


def _check_strengths(plan: Mapping[str, Any], table: pa.Table) -> _Sound:
    """Check the rows of a measurement: image × version × metric; a failed version is one row, a failed image too."""
    names = ("image", "entry", "severity", "metric", "status")
    metrics = plan["metrics"]
    versions = _versions(plan)
    cells: Counter[tuple[Any, ...]] = Counter()
    unread: Counter[str] = Counter()
    for image, entry, severity, metric, status in zip(*(table[name].to_pylist() for name in names), strict=True):
        if status == "failed" and entry is None:
            unread[image] += 1
        else:
            for each in metrics if status == "failed" else [metric]:
                cells[image, entry, "" if severity is None else str(severity), each] += 1
    read = {cell[0] for cell in cells}
    covered = Counter(cell[1:3] for cell in {cell[:3] for cell in cells})
    # existing images may lack for some of the clean ones; the plan knows how many each version has
    of_each = {cell[:3] for cell in cells} if "against" in plan else {(key, *one) for key in read for one in versions}
    _refuse(cells, {(*one, metric) for one in of_each for metric in metrics})
    if foreign := sorted(set(covered) - set(versions)):
        raise _Fault(f"holds rows that are not planned ({examples(map(str, foreign))})")
    if twice := sorted(key for key, count in unread.items() if count > 1 or key in read):
        raise _Fault(f"says of images that they failed, and more ({examples(twice)})")
    sound = covered if "against" in plan else {}
    return _Sound(sorted(read | unread.keys()), len(table), _failures(table), sound, len(unread))


def _check_scores(plan: Mapping[str, Any], table: pa.Table) -> _Sound:
    """Check the rows of a run of scores: image by image, numbers that fit each other."""
    cells: Counter[tuple[Any, ...]] = Counter((image,) for image in table["image"].to_pylist())
    keys = sorted({image for (image,) in cells})
    _refuse(cells, set(cells))
    failed = _failures(table)
    planned = list(plan["scores"])
    settings = SeamCamSettings(**plan["seamcam"]) if SEAMCAM in planned else None
    for row in table.to_pylist():
        if wrong := _wrong_score(row, planned, settings):
            raise _Fault(f"the row of {row['image']!r} {wrong}")
    return _Sound(keys, len(table), failed, {}, 0)


def _wrong_score(row: Mapping[str, Any], planned: list[str], settings: SeamCamSettings | None) -> str | None:
    """Return what is wrong with a row of scores."""
    if row["status"] == "failed":
        held = [name for name in SCORES if row[name] is not None]
        if held:
            return f"says that it failed, and holds {examples(held)}"
        return None if row["error"] else "says that it failed, and not why"
    missing = [
        name for name in ("image_digest", "mask_digest", "height", "width", "object_pixels") if row[name] is None
    ]
    if missing:
        return f"lacks {examples(missing)}"
    if not 1 <= row["object_pixels"] <= row["height"] * row["width"]:
        return f"says that the object has {row['object_pixels']:,} pixels, of {row['height']}×{row['width']}"
    reasons = dict(row["reasons"] or ())
    for name in SCORES:
        value = row[name]
        if value is None and name in planned and (name == SEAMCAM or name not in reasons):
            return f"lacks {name}, and a reason for that"
        if value is not None and (name not in planned or not 0 <= value <= 1):
            return f"holds {name} = {value}, which is not {'in [0, 1]' if name in planned else 'planned'}"
    return _wrong_seamcam(row, settings) if settings else None


def _wrong_seamcam(row: Mapping[str, Any], settings: SeamCamSettings) -> str | None:
    """Return how SeamCam's columns do not fit each other."""
    columns = ("alpha", "beta", "passed", "kept", "best", "gains", "by_top_k")
    if missing := [name for name in columns if row[name] is None]:
        return f"lacks {examples(missing)}"
    count, kept, by_top_k, top_k = len(row["alpha"]), row["kept"], row["by_top_k"], settings.top_k
    if len(row["beta"]) == count and settings.duplicate_iou is None and not _let_pass(row, settings):
        return "holds other proposals than its α, β and thresholds let pass"
    fits = (
        len(row["beta"]) == count
        and (row["boxes"] is None or len(row["boxes"]) == count)
        and len(kept) == len(set(kept)) == len(row["gains"]) == min(row["passed"], top_k)
        and set(row["best"]) <= set(kept) <= set(range(count))
        and bool(row["best"]) == (by_top_k[-1:] > [0])
        and all(0 <= gain <= by_top_k[-1] for gain in row["gains"])
        and len(by_top_k) == top_k
        and by_top_k == sorted(by_top_k)
        and row[SEAMCAM] == 1.0 - by_top_k[-1]
    )
    return None if fits else "holds columns of SeamCam that do not fit each other"


def _let_pass(row: Mapping[str, Any], settings: SeamCamSettings) -> bool:
    """Tell whether thresholds let the proposals of a row pass, in a precision that its scores may have been made in."""
    precisions: tuple[type[np.floating[Any]], ...] = (np.float64, np.float32, np.float16)
    for precision in precisions:
        alpha, beta = (np.array(row[name], precision) for name in ("alpha", "beta"))
        if alpha.tolist() == row["alpha"] and beta.tolist() == row["beta"]:
            passed = select_proposals(alpha, beta, tau_alpha=settings.tau_alpha, tau_beta=settings.tau_beta).tolist()
            if (row["passed"], row["kept"]) == (len(passed), passed[: settings.top_k]):
                return True
    return False


def _check_proposals(path: Path, plan: Mapping[str, Any], table: pa.Table) -> None:
    """Check the proposals that a part was scored from, where the run made them itself."""
    if SEAMCAM not in plan["scores"] or plan["observer"].get("observer") == "proposals" or not len(table):
        return
    if not (path / PROPOSALS).is_dir():
        raise _Fault(f"what was proposed for its images is gone ({path / PROPOSALS} is no folder)")
    stored = SavedProposals(path / PROPOSALS)
    for row in table.select(["image", "status", "height", "width", "alpha", "beta", "boxes"]).to_pylist():
        if row["status"] != "ok":
            continue
        try:
            found = stored.load(row["image"], (row["height"], row["width"]))
        except CrypsisError as error:
            reason = str(error).removesuffix(".")
            raise _Fault(f"what was proposed for {row['image']!r} cannot be used ({reason})") from error
        boxes = None if found.boxes is None else found.boxes.tolist()
        if (found.alpha.tolist(), found.beta.tolist(), boxes) != (row["alpha"], row["beta"], row["boxes"]):
            raise _Fault(f"what was proposed for {row['image']!r} is not what its row was scored from")


def _refuse(cells: Counter[tuple[Any, ...]], wanted: set[tuple[Any, ...]]) -> None:
    """Raise `_Fault` unless every wanted cell occurs once, and no other."""
    if not cells.keys() <= wanted:
        raise _Fault(f"holds rows that are not planned ({_cells(cells.keys() - wanted)})")
    if missing := wanted - cells.keys():
        raise _Fault(f"lacks {len(missing):,} of {counted(len(wanted), 'row')} ({_cells(missing)})")
    if twice := {cell for cell, count in cells.items() if count > 1}:
        raise _Fault(f"holds {counted(len(twice), 'row')} more than once ({_cells(twice)})")


def _cells(cells: set[tuple[Any, ...]]) -> str:
    return examples(sorted(" ".join(map(str, cell)) for cell in cells))


def _failures(table: pa.Table) -> int:
    counts = Counter(table["status"].to_pylist())
    if others := counts.keys() - {"ok", "failed"}:
        raise _Fault(f"holds rows that neither are ok nor failed ({examples(map(str, others))})")
    return counts["failed"]


def _versions(plan: Mapping[str, Any]) -> dict[tuple[str, str], int | None]:
    """Return the versions of a measurement, and of how many images each is; None for all."""
    if "against" in plan:
        sets = plan["against"].items()
        return {(label, level): int(one["images"]) for label, levels in sets for level, one in levels.items()}
    return {(name, str(severity)): None for name, severity in _all_levels(plan)}


def _uncovered(plan: Mapping[str, Any], covered: Mapping[tuple[str, str], int], unread: int) -> Iterator[str]:
    """Yield what is missing of versions that not every image has; those of unread images are not known."""
    for (label, level), images in _versions(plan).items() if "against" in plan else ():
        found = covered.get((label, level), 0)
        if images is not None and not found <= images <= found + unread:
            name = f"{label} s={level}" if level else label
            yield f"{name} was measured on {counted(found, 'image')} and planned on {images:,}."


def _all_levels(plan: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(name, severity) for name, levels in plan["entries"].items() for severity in range(1, len(levels) + 1)]


def _some_levels(plan: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(name, severity) for name in plan["entries"] for severity in plan["severities"]]


def _truth_faults(path: Path, images: int) -> Iterator[str]:
    try:
        listed = DetectionRun.open(path).truth()["images"]
        numbers = {image["id"] for image in listed}
    except InputError as error:
        yield str(error)
    except (KeyError, TypeError) as error:
        yield f"{path}: its truth is damaged ({error!r}); give the bench command again."
    else:
        if len(numbers) != images:
            yield f"{path}: its truth is of {counted(len(numbers), 'image')}, its plan of {images:,}."


_KINDS = {
    RUN_SCHEMA: _Kind("segmentation", RECORD_SCHEMA, partial(_check_rows, _all_levels)),
    DETECTION_RUN_SCHEMA: _Kind("detection", DETECTION_SCHEMA, partial(_check_rows, _some_levels)),
    MEASURE_SCHEMA: _Kind("measurement", STRENGTH_SCHEMA, _check_strengths),
    SCORE_SCHEMA: _Kind("camouflage", ROW_SCHEMA, _check_scores, _check_proposals),
}
