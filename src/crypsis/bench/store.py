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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..datasets.folder import examples
from ..errors import InputError, PlanChangedError
from ..io import atomic_path, discard_leftovers, locked, storing, write_atomic
from ..results import PARTS, RUN_SCHEMA
from .plan import MaskPlan

__all__ = ["append_lines", "claim_folder", "open_run", "remaining_units", "session_of", "write_json", "write_part"]

_PACKAGES = ("crypsis", "numpy", "opencv-python-headless", "pillow", "pyarrow", "onnxruntime")


class Named(Protocol):
    """A unit of work: what its part file is called after."""

    @property
    def name(self) -> str:
        """Plain text, the part's file stem."""
        ...


AnyUnit = TypeVar("AnyUnit", bound=Named)


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
        PlanChangedError: the folder holds another plan, or was written by a version with other columns; the message
            names what differs.
    """
    identity = json.loads(json.dumps(identity))  # as it will be read back: tuples are lists there
    file, lock = folder / name, folder / f".{name}.lock"
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; {option} names a folder.")
    with locked(lock):  # shards start at the same time
        sessions: list[Any] = []
        if file.exists():
            old = _read_json(file)
            if old.get("plan") != identity:
                differences = "; ".join(_differences(old.get("plan", {}), identity))
                raise PlanChangedError(
                    f"{folder} holds a {what} of another plan ({differences}). "
                    f"Give the command it was made with, or another folder for {option}."
                )
            if old.get("schema") != schema:
                raise PlanChangedError(
                    f"{file} has schema {old.get('schema')!r} and this version writes {schema!r}, whose rows do not "
                    f"mix; finish it with the version it was made with, or name another folder for {option}."
                )
            sessions = old.get("sessions", [])
        elif any(path != lock and path.suffix != ".tmp" for path in folder.iterdir()):
            with suppress(OSError):
                lock.unlink()
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
    """Name, in words, the values in which two plans differ; of long ones only the names."""
    found: list[str] = []
    named: dict[str, list[str]] = {}
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += _differences(before, after, f"{prefix}{key}.")
        elif _is_long(before) or _is_long(after):
            how = "only now" if before is None else "only there" if after is None else "with other values"
            named.setdefault(how, []).append(key)
        else:
            found.append(f"{prefix}{key}: {_short(before)} there, {_short(after)} now")
    if named:
        said = ", ".join(f"{examples(names)} {how}" for how, names in named.items())
        found.append(f"{prefix.removesuffix('.')}: {said}" if prefix else said)
    return found[:5]


def _is_long(value: Any) -> bool:
    """Tell a value such as an entry's five sets of parameters."""
    return isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(v, Mapping) for v in value))


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"


def remaining_units(
    folder: Path,
    units: Iterable[AnyUnit],
    columns: Sequence[str],
    files_now: Callable[[AnyUnit], Iterable[tuple[Any, ...]]],
) -> list[AnyUnit]:
    """Return the units still to be done.

    A part with failed rows is done again: the user may have mended the file. A part whose files changed since they
    were read is refused, because old and new rows must not be mixed.

    Args:
        folder: of the run.
        units: all units, each with a `name`.
        columns: columns of a part that say of which files, and of which content, a row is; `image` first.
        files_now: returns what these columns would hold if the unit were done now. A file that is gone may be left
            out where it is not needed any more.

    Raises:
        PlanChangedError: files are others than when they were read.
    """
    todo: list[AnyUnit] = []
    changed: dict[str, None] = {}
    for unit in units:
        try:
            part = pq.read_table(folder / PARTS / f"{unit.name}.parquet", columns=[*columns, "status"])
        except (OSError, pa.ArrowException):  # absent, or damaged by a power cut say
            todo.append(unit)
            continue
        if "failed" in part["status"].unique().to_pylist():
            todo.append(unit)
            continue
        rows = set(zip(*(part[name].to_pylist() for name in columns), strict=True))
        changed |= dict.fromkeys(row[0] for row in files_now(unit) if row not in rows)
    if changed:
        raise PlanChangedError(
            f"{len(changed)} of the images in {folder} have other files now than when they were read "
            f"({', '.join(list(changed)[:3])}{' …' if len(changed) > 3 else ''}); use a new folder for --out."
        )
    return todo


def write_part(folder: Path, name: str, table: pa.Table, *, by: str | None = None) -> None:
    """Write the rows of the unit `name`, whole or not at all.

    Args:
        folder: of the run.
        name: the part's file stem.
        table: the rows.
        by: a column; its values, in the order in which they occur first, become row groups of their own, so that
            those of one value can be read without the others.
    """
    values = [] if by is None else table[by].unique()
    groups = [table.filter(pc.equal(table[by], value)) for value in values] or [table]
    words = [field.name for field in table.schema if pa.types.is_string(field.type)]  # numbers seldom repeat
    with (
        atomic_path(folder / PARTS / f"{name}.parquet", durable=True) as temporary,
        pq.ParquetWriter(
            temporary, table.schema, compression="zstd", use_dictionary=words, write_statistics=[by] if by else []
        ) as writer,
    ):
        for group in groups:
            writer.write_table(group)


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
