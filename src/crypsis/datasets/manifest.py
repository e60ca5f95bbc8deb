"""A table of images and masks: the way in for a data set that keeps to no known layout."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DatasetError
from .folder import examples, file_key, split_key

__all__ = ["MANIFEST_SUFFIXES", "Manifest", "Row", "read_manifest"]

MANIFEST_SUFFIXES = (".csv", ".jsonl")
"""File endings (lower case) that are read as a manifest."""

_COLUMNS = ("image", "mask", "species", "super_class", "split")


@dataclass(frozen=True)
class Row:
    """One line of a manifest, its paths made absolute; the files need not exist."""

    key: str
    image: Path
    mask: Path
    species: str | None
    super_class: str | None
    split: str | None


@dataclass(frozen=True)
class Manifest:
    """The rows of one split, sorted by key, and the columns that were not understood."""

    rows: tuple[Row, ...]
    ignored_columns: tuple[str, ...]


def read_manifest(path: Path, split: str) -> Manifest:
    """Read a manifest: CSV with a header line, or one JSON object a line.

    Columns: `image` and `mask`, paths relative to the manifest's folder and inside it; `species`,
    `super_class` and `split` where known. If a row names a split, the rows of `split` alone are returned.

    Raises:
        DatasetError: not readable, a column or value missing, a path outside the folder, one image listed twice,
            or no row of `split`.
    """
    lines = _csv_lines(path) if path.suffix.lower() == ".csv" else _json_lines(path)
    rows: dict[str, Row] = {}
    ignored: dict[str, None] = {}
    splits: dict[str, int] = {}
    for number, line in lines:
        where = f"{path}, line {number}"
        row = _row(path, where, line)
        if row.key in rows and row.split == rows[row.key].split:
            raise DatasetError(f"{where}: {row.image.name} has the same key as an earlier row, {row.key!r}.")
        ignored |= dict.fromkeys(name for name in line if name not in _COLUMNS)
        splits[row.split or ""] = splits.get(row.split or "", 0) + 1
        if row.split in (None, split_key(split)):
            rows[row.key] = row
    if not splits:
        raise DatasetError(f"{path}: the manifest has no rows.")
    if not rows:
        counts = ", ".join(f"{name} ({count:,})" for name, count in sorted(splits.items()))
        raise DatasetError(f"{path}: no row belongs to split {split!r}; its splits are {counts}.")
    return Manifest(tuple(rows[key] for key in sorted(rows)), tuple(ignored))


def _row(path: Path, where: str, line: Mapping[str, Any]) -> Row:
    values: dict[str, str] = {}
    for name in _COLUMNS:
        value = line.get(name)
        if value is not None and not isinstance(value, str):
            raise DatasetError(f"{where}: {name} must be text; got {value!r}.")
        values[name] = (value or "").strip()
    for name in ("image", "mask"):
        if not values[name]:
            raise DatasetError(f"{where}: {name} is missing; every row needs an image and a mask.")
    folder = Path(os.path.normpath(path.parent.absolute()))
    image, mask = (_inside(folder, values[name], where) for name in ("image", "mask"))
    return Row(
        file_key(image.relative_to(folder), path),
        image,
        mask,
        values["species"] or None,
        values["super_class"] or None,
        split_key(values["split"]) if values["split"] else None,
    )


def _inside(folder: Path, name: str, where: str) -> Path:
    # normpath, not resolve: a data set whose files are links to a store elsewhere is a common one
    path = Path(os.path.normpath(folder / name))
    if "\0" in name or not path.is_relative_to(folder) or path == folder:
        raise DatasetError(f"{where}: the path {name!r} leads out of the manifest's folder {folder}.")
    return path


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}: is not UTF-8 text; save the manifest as UTF-8.") from error


def _csv_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(_text(path).splitlines(keepends=True), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        missing = [name for name in ("image", "mask") if name not in header]
        if missing:
            raise DatasetError(
                f"{path}: has no column {' or '.join(missing)}; its header is {examples(header, 12) or 'empty'}."
            )
        if len(set(header)) < len(header):
            raise DatasetError(f"{path}: a column name occurs twice in its header: {examples(header, 12)}.")
        for values in reader:
            if not values:
                continue
            if len(values) != len(header):
                raise DatasetError(
                    f"{path}, line {reader.line_num}: has {len(values)} values for {len(header)} columns; "
                    "put names with a comma in double quotes."
                )
            yield reader.line_num, dict(zip(header, values, strict=True))
    except csv.Error as error:
        raise DatasetError(f"{path}, line {reader.line_num}: is not CSV ({error}).") from error


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    # not splitlines, which would also cut at separators that JSON text may hold unescaped
    for number, text in enumerate(_text(path).split("\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{path}, line {number}: is not JSON ({error}).") from error
        if not isinstance(line, dict):
            raise DatasetError(f"{path}, line {number}: must be a JSON object with image and mask.")
        yield number, line
