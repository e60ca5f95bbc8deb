"""A run folder: the plan it holds, the parts that are done, and how to continue.

run.json           the plan, and the versions and machine of each session
parts/*.parquet    one per unit of work; a part that is there is done
timing.jsonl       CPU seconds of each unit by stage
summary.json       what the tables and the report are made from
pictures/          the pictures of the report
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..datasets.masks import MaskDataset
from ..errors import ImageError, InputError, PlanChangedError
from ..io import atomic_path, discard_leftovers, storing, write_atomic
from ..results import PARTS, RUN_SCHEMA
from .plan import MaskPlan, Unit

__all__ = ["append_lines", "claim_folder", "open_run", "remaining_units", "session_of", "write_json", "write_part"]

_PACKAGES = ("crypsis", "numpy", "opencv-python-headless", "pillow", "pyarrow", "onnxruntime")


def open_run(folder: Path, plan: MaskPlan) -> None:
    """Make `folder` the run of `plan`, or check that it already is.

    Raises:
        InputError: the folder holds other things.
        PlanChangedError: the folder holds a run of another plan; the message names what differs.
    """
    models = [m if isinstance(m, str) else type(m).__name__ for m in plan.models]
    session = {**session_of(plan.data), "models": models}
    claim_folder(
        folder, "run.json", schema=RUN_SCHEMA, identity=plan.identity(), session=session, what="run", option="--out"
    )


def claim_folder(
    folder: Path,
    name: str,
    *,
    schema: str,
    identity: Mapping[str, Any],
    session: Mapping[str, Any],
    what: str,
    option: str,
) -> None:
    """Make `folder` the place of a plan by writing it to the file `name` in it, or check that it already is.

    Args:
        folder: made if absent.
        name: of the JSON file that holds the plan.
        schema: of that file.
        identity: the plan.
        session: when, where and with what this session works; appended to the file.
        what: what such a folder is called in messages.
        option: how the command line calls the folder.

    Raises:
        InputError: the folder holds other things.
        PlanChangedError: the folder holds another plan; the message names what differs.
    """
    identity = json.loads(json.dumps(identity))  # as it will be read back: tuples are lists there
    file = folder / name
    sessions: list[Any] = []
    if file.exists():
        old = _read_json(file)
        if old.get("plan") != identity:
            raise PlanChangedError(
                f"{folder} holds a {what} of another plan ({'; '.join(_differences(old.get('plan', {}), identity))}). "
                f"Give the command it was made with, or another folder for {option}."
            )
        sessions = old.get("sessions", [])
    elif folder.is_file():
        raise InputError(f"{folder} is a file; {option} names a folder.")
    elif folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty and not a {what}; name a new folder for {option}.")
    discard_leftovers(folder)
    sessions.append(session)
    write_json(file, {"schema": schema, "plan": identity, "sessions": sessions})


def session_of(data: str) -> dict[str, Any]:
    """Return when, where and with what work on `data` is being done."""
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "data": data if data == "demo" else str(Path(data).absolute()),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "machine": {"system": platform.platform(), "processors": os.cpu_count()},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except ImportError:  # PackageNotFoundError: another build of the same module
        return "unknown"


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Name, in words, the values in which two plans differ."""
    found: list[str] = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += _differences(before, after, f"{prefix}{key}.")
        else:
            found.append(f"{prefix}{key}: {_short(before)} there, {_short(after)} now")
    return found[:5]


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"


def remaining_units(folder: Path, plan: MaskPlan) -> tuple[list[Unit], int]:
    """Return the units still to be done, and the number of all units.

    A part with failed rows is done again: the user may have mended the file. A part whose images changed since
    they were scored is refused, because old and new rows must not be mixed.

    Raises:
        PlanChangedError: image or mask files differ in size from when they were scored.
    """
    units = list(plan.units())
    todo: list[Unit] = []
    changed: list[str] = []
    for unit in units:
        part = folder / PARTS / f"{unit.name}.parquet"
        if not part.exists():
            todo.append(unit)
            continue
        try:
            rows = pq.read_table(part, columns=["image", "status", "image_bytes", "mask_bytes"])
        except (OSError, pa.ArrowException):  # damaged, by a power cut say
            todo.append(unit)
            continue
        if "failed" in rows["status"].unique().to_pylist():
            todo.append(unit)
            continue
        scored = zip(*(rows[name].to_pylist() for name in ("image", "image_bytes", "mask_bytes")), strict=True)
        sizes = {image: (image_bytes, mask_bytes) for image, image_bytes, mask_bytes in scored}
        changed += [item.key for item in unit.items if _sizes(plan.dataset, item) != sizes.get(item.key)]
    if changed:
        raise PlanChangedError(
            f"{len(changed)} of the images in {folder} have other files now than when they were scored "
            f"({', '.join(changed[:3])}{' …' if len(changed) > 3 else ''}); use a new folder for --out."
        )
    return todo, len(units)


def _sizes(dataset: MaskDataset, item: Any) -> tuple[int, int] | None:
    try:
        return dataset.file_sizes(item)
    except (OSError, ImageError):
        return None


def write_part(folder: Path, name: str, table: pa.Table) -> None:
    """Write the rows of the unit `name`, whole or not at all."""
    with atomic_path(folder / PARTS / f"{name}.parquet", durable=True) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def write_json(path: Path, value: Any) -> None:
    """Write readable JSON, whole or not at all; NaN and infinity are refused."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomic(path, text.encode(), durable=True)


def append_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Append JSON lines."""
    with storing(path), path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}).") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: is not the run.json of a run.")
    return value
