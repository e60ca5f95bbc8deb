"""The two tables that agreement is made of: `votes.csv` of a study, and `scores.csv` of its images."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import DatasetError, UnknownNameError
from .agreement import Side, Vote

__all__ = ["ScoreTable", "read_scores", "read_votes"]

_SIDES: Mapping[str, Side | None] = {"left": "left", "right": "right", "": None}


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Scores of images, by name of the score.

    Attributes:
        scores: name → image → number, higher being better hidden; an image without a number is left out.
        species: image → species, where a column says so.
        ignored: columns that are not scores.
        images: all that are listed.
    """

    scores: Mapping[str, Mapping[str, float]]
    species: Mapping[str, str]
    ignored: tuple[str, ...]
    images: tuple[str, ...]


def read_votes(path: Path) -> tuple[Vote, ...]:
    """Read the votes of a two-alternative study: CSV with a header line, one answer a line.

    Columns: `participant`; `left` and `right`, the images shown; `choice`, `left` or `right` for the one in which the
    animal is harder to find, empty for no answer; where wanted `answer`, which makes the line a catch trial and names
    its right choice, and `species`. Other columns are ignored.

    Raises:
        DatasetError: not readable, a column or value missing, a choice or answer that is no side, or an image shown
            beside itself.
    """
    votes = []
    for where, line in _lines(path, ("participant", "left", "right", "choice")):
        for name in ("participant", "left", "right"):
            if not line[name]:
                raise DatasetError(f"{where}: {name} is missing; every vote needs a participant and two images.")
        if line["left"] == line["right"]:
            raise DatasetError(f"{where}: {line['left']!r} is shown beside itself; a pair is of two images.")
        sides = {}
        for name in ("choice", "answer"):
            given = line.get(name, "").lower()
            if given not in _SIDES:
                raise DatasetError(f"{where}: {name} is left, right or empty; got {line[name]!r}.")
            sides[name] = _SIDES[given]
        votes.append(
            Vote(
                line["participant"],
                line["left"],
                line["right"],
                sides["choice"],
                sides["answer"],
                line.get("species") or None,
            )
        )
    return tuple(votes)


def read_scores(path: Path, names: Iterable[str] | None = None) -> ScoreTable:
    """Read scores of images: CSV with a header line, one image a line; or those in the folder of a run of scores.

    Columns: `image`, as the votes call it; `species` where known; and scores, higher being better hidden. An empty
    value or `nan` means that the image has no such score.

    Args:
        path: the file, or a folder that holds it as `scores.csv`.
        names: which columns are scores; None for all whose every value is a number or empty, and at least one a number.

    Raises:
        DatasetError: not readable, no image, a column or name missing, an image listed twice, or a value that is no
            number.
        UnknownNameError: no column of that name.
    """
    if path.is_dir():
        path = path / "scores.csv"
    lines = list(_lines(path, ("image",)))
    if not lines:
        raise DatasetError(f"{path}: lists no image below its header.")
    columns = [name for name in lines[0][1] if name not in ("image", "species")]
    wanted = list(names) if names is not None else None
    for name in wanted or ():
        if name not in columns:
            raise UnknownNameError.among(f"column in {path}", name, columns)
    images: dict[str, str] = {}
    for where, line in lines:
        if not line["image"]:
            raise DatasetError(f"{where}: image is missing; every score belongs to an image.")
        if line["image"] in images:
            raise DatasetError(f"{where}: {line['image']!r} is listed a second time; an image has one line.")
        images[line["image"]] = line.get("species", "")
    scores: dict[str, dict[str, float]] = {}
    for name in columns if wanted is None else wanted:
        values = {line["image"]: _number(line[name]) for _, line in lines}
        strange = next((image for image, value in values.items() if value is None), None)
        if strange is not None and wanted is not None:
            where, line = next((where, line) for where, line in lines if line["image"] == strange)
            raise DatasetError(f"{where}: {name} is a finite number or empty; got {line[name]!r}.")
        known = {image: value for image, value in values.items() if value is not None and not math.isnan(value)}
        if strange is None and (known or wanted is not None):
            scores[name] = known
    if not scores:
        found = ", ".join(columns) or "none"
        raise DatasetError(
            f"{path}: has no column of scores, with finite numbers (or nothing) in every line; those beside image and "
            f"species are {found}."
        )
    return ScoreTable(
        scores,
        {image: species for image, species in images.items() if species},
        tuple(name for name in columns if name not in scores),
        tuple(images),
    )


def _number(text: str) -> float | None:
    """Return a finite number, NaN for none, or None for what is no number."""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return None if math.isinf(value) else value


def _lines(path: Path, needed: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Return where each line of a CSV file stands, and its values by lower-case column name, stripped."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}: is not UTF-8 text; save it as UTF-8.") from error
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        header = [name.lower() if name.lower() in _KNOWN else name for name in header]
        missing = [name for name in needed if name not in header]
        if missing:
            raise DatasetError(
                f"{path}: has no column {', '.join(missing)}; its header is {', '.join(header) or 'empty'}."
            )
        if len(set(header)) < len(header):
            raise DatasetError(f"{path}: a column name occurs twice in its header: {', '.join(header)}.")
        for values in reader:
            if not values:
                continue
            where = f"{path}, line {reader.line_num}"
            if len(values) != len(header):
                raise DatasetError(
                    f"{where}: has {len(values)} values for {len(header)} columns; put names with a comma in double "
                    "quotes."
                )
            yield where, dict(zip(header, (value.strip() for value in values), strict=True))
    except csv.Error as error:
        raise DatasetError(f"{path}, line {reader.line_num}: is not CSV ({error}).") from error


_KNOWN = ("answer", "choice", "image", "left", "participant", "right", "species")
