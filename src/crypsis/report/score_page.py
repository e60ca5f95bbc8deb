"""The page of a run of scores: a data set's images from the most visible to the best hidden, and `scores.csv`.

Everything is made from the run folder's `run.json`, `summary.json`, `timing.jsonl` and pictures.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ..errors import InputError
from .blocks import (
    fact_list,
    failure_list,
    image_tag,
    read_seconds,
    report_page,
    rounded,
    sessions_block,
    table_block,
)
from .charts import Series, line_chart
from .markup import escape
from .pictures import Picture, read_score_pictures
from .tables import Cell, Number, Table

__all__ = ["SCORE_TITLES", "build_score_report", "score_tables", "scores_csv"]

_RUN_SCHEMA = "crypsis.score/1"
_SUMMARY_SCHEMA = "crypsis.scores/1"
_MOST_ROWS = 500
"""Images of which the page has a row; `scores.csv` has all."""
_PICTURE_BYTES = 2_500_000
"""Most that the pictures of a page take; what does not fit is left out, from the middle of the ranking on."""

SCORE_TITLES: Mapping[str, str] = {
    "seamcam": "SeamCam ζ",
    "gmm-ot": "GMM-OT",
    "s_rf": "S_Rf",
    "camouflage-degree": "Camouflage degree",
}
"""Short names of the scores."""

_MEANINGS: Mapping[str, str] = {
    "seamcam": "ζ = 1 − D, D being the best overlap (IoU) with the object that any union of the observer's proposals "
    "reaches (arXiv 2605.16515). It depends on the observer: compare numbers of one observer only.",
    "gmm-ot": "exp(−distance / 20) of the mixtures of colors in and around the object, by optimal transport; it is not "
    "CamOT, whose definition is not published.",
    "s_rf": "Share of the object whose colors can be rebuilt from patches around it (Lamdouar et al. 2023).",
    "camouflage-degree": "Likeness of the object's patches to the nearest around it, mean over the object "
    "(Context-measure).",
}
_VIEWS = {
    "proposals": "what took part, with its confidence; solid: in the best subset",
    "best": "the best union",
    "object": "the object",
}


@dataclass(frozen=True, slots=True)
class _Scores:
    """A run of scores as read from its folder."""

    name: str
    plan: Mapping[str, Any]
    sessions: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any]
    seconds: Mapping[str, float]

    @property
    def names(self) -> list[str]:
        return list(self.plan["scores"])

    @property
    def ranking(self) -> list[Mapping[str, Any]]:
        return list(self.summary["ranking"])


def build_score_report(folder: Path, *, title: str | None = None) -> str:
    """Return a self-contained HTML page about a run of scores; the same folder gives the same page.

    Args:
        folder: a run folder of `crypsis score`.
        title: heading; by default what was asked.

    Raises:
        InputError: the folder holds no finished run of scores, or one of its files is damaged.
    """
    run = _open(folder)
    sections = [
        ("summary", "In short", _headline(run)),
        ("ranking", "From the most visible to the best hidden", _ranking(run, read_score_pictures(folder))),
        ("tables", "All numbers", "".join(table_block(t, str(i)) for i, t in enumerate(_tables(run)))),
        *([("proposals", "How many proposals it takes", _by_top_k(run))] if run.summary["by_top_k"] else []),
        ("made", "How it was made", _provenance(run)),
    ]
    return report_page(
        title or "How well hidden are they?",
        eyebrow="Crypsis report of camouflage",
        scope=f"{run.summary['scored']:,} images of {run.plan['dataset']['name']}, scored by "
        f"{', '.join(_title(name) for name in run.names)}{_observed(run)}.",
        sections=sections,
        data={
            "schema": "crypsis.score-report/1",
            "name": run.name,
            "plan": run.plan,
            "sessions": [{key: s[key] for key in ("started", "versions", "machine")} for s in run.sessions],
            "summary": rounded({**run.summary, "failed": len(run.summary["failed"])}),
            "seconds": rounded(dict(run.seconds)),
        },
    )


def scores_csv(folder: Path) -> str:
    """Return the scores of a run as CSV, an image a line in the order of their names.

    Columns are `image`, `species` and the scores; a score that is not defined is empty, and images that failed are
    left out. `crypsis.camouflage.vote_files.read_scores` reads it.

    Raises:
        InputError: the folder holds no finished run of scores, or one of its files is damaged.
    """
    run = _open(folder)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["image", "species", *run.names])
    for row in sorted(run.ranking, key=lambda row: str(row["image"])):
        values = ("" if row[name] is None else repr(float(row[name])) for name in run.names)
        writer.writerow([row["image"], row["species"] or "", *values])
    return text.getvalue()


def score_tables(folder: Path) -> list[Table]:
    """Return the tables of a run: all scores in short, by species, and image by image.

    Raises:
        InputError: the folder holds no finished run of scores, or one of its files is damaged.
    """
    return _tables(_open(folder))


def _open(folder: Path) -> _Scores:
    contents = {}
    for name, schema in (("run.json", _RUN_SCHEMA), ("summary.json", _SUMMARY_SCHEMA)):
        file = folder / name
        try:
            contents[name] = json.loads(file.read_text("utf-8"))
        except FileNotFoundError:
            raise InputError(
                f"{folder}: no finished run of scores is here ({name} is missing); give the folder that a score "
                "command named by --out, or give that command again."
            ) from None
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot be read ({error}).") from error
        if not isinstance(contents[name], dict) or contents[name].get("schema") != schema:
            raise InputError(f"{file}: is not of a run of scores in the form that this version reads ({schema}).")
    run, summary = contents["run.json"], contents["summary.json"]
    try:
        found = _Scores(
            folder.resolve().name, run["plan"], run["sessions"], summary, read_seconds(folder / "timing.jsonl")
        )
        for row in found.ranking:
            numbers = [row[name] for name in found.names if row[name] is not None]
            if not all(math.isfinite(float(number)) for number in numbers) or not isinstance(row["image"], str):
                raise ValueError("an image without name, or a score that is no number")
            _ = row["species"], dict(row["reasons"])
        _ = found.plan["dataset"]["name"], found.plan["observer"], summary["scored"], dict(summary["failed"])
        _ = [[summary["scores"][name][key] for key in ("images", "mean", "median")] for name in found.names]
        _ = [(s["started"], s["versions"], s["machine"]) for s in found.sessions], summary["by_top_k"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: summary.json or run.json is damaged ({error!r}).") from error
    return found


def _title(name: str) -> str:
    return SCORE_TITLES.get(name, name)


def _observed(run: _Scores) -> str:
    name = run.plan["observer"].get("name")
    return f", as {name} sees them" if name else ""


def _headline(run: _Scores) -> str:
    first = run.names[0]
    scored = [row for row in run.ranking if row[first] is not None]
    cards = [
        ("Typical", _number(run.summary["scores"][first]["median"]), f"Median {_title(first)}; 0 is plain to see.")
    ]
    if scored:
        for head, row in (("Most visible", scored[0]), ("Best hidden", scored[-1])):
            cards.append((head, _number(row[first]), f"{row['image']} ({row['species'] or 'species not known'})"))
    unseen = sum(1 for row in scored if first == "seamcam" and row[first] == 1)
    if first == "seamcam" and scored:
        cards.append(
            (
                "Not found at all",
                f"{unseen / len(scored):.0%}",
                f"{unseen:,} of {len(scored):,} images have no proposal that overlaps the object: ζ = 1, and their "
                "order says nothing.",
            )
        )
    shown = "".join(
        f'<article class="card"><h3>{escape(head)}</h3><p class="figure">{escape(figure)}</p>'
        f'<p class="sentence">{escape(sentence)}</p></article>'
        for head, figure, sentence in cards
    )
    warning = ""
    if run.plan["observer"].get("observer") == "embedded":
        warning = (
            '<p class="lead">The observer is the one that comes with Crypsis, which knows ten kinds of animals and is '
            "far weaker than that of SeamCam’s paper: compare its scores with each other, not with published ones.</p>"
        )
    return f'{warning}<div class="cards">{shown}</div>'


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _ranking(run: _Scores, pictures: Mapping[str, Mapping[str, Picture]]) -> str:
    ranked = [(rank, row) for rank, row in enumerate(run.ranking, 1) if row["image"] in pictures]
    if not ranked:
        return "<p>No pictures were kept.</p>"
    room = _PICTURE_BYTES
    shown = []
    for rank, row in sorted(ranked, key=lambda one: min(one[0], len(run.ranking) + 1 - one[0])):
        room -= sum(len(picture.data) for picture in pictures[row["image"]].values())
        if room >= 0:
            shown.append((rank, row))
    items = "".join(
        _item(run, rank, row, pictures[row["image"]]) for rank, row in sorted(shown, key=lambda one: one[0])
    )
    left = len(run.ranking) - len(shown)
    rest = f" {left:,} more are in the tables alone." if left else ""
    return f'<p>The object is outlined in orange.{rest}</p><ol class="drops">{items}</ol>'


def _item(run: _Scores, rank: int, row: Mapping[str, Any], views: Mapping[str, Picture]) -> str:
    facts = "".join(f"<p>{escape(_title(name))} {_number(row[name])}</p>" for name in run.names[1:])
    if row.get("proposals") is not None:
        facts += f"<p>{row['passed']} of {row['proposals']} proposals pass, {row['best']} make the best union</p>"
    facts += "".join(f"<p>{escape(_title(name))}: {escape(reason)}</p>" for name, reason in row["reasons"].items())
    figures = "".join(
        f"<figure>{image_tag(picture, said)}<figcaption>{escape(said)}</figcaption></figure>"
        for picture, said in ((picture, _VIEWS.get(view, view)) for view, picture in views.items())
    )
    first = run.names[0]
    return (
        f'<li class="drop"><div class="about"><h3>{rank}. <bdi>{escape(row["image"])}</bdi></h3>'
        f'<p class="species">{escape(row["species"] or "species not known")}</p>'
        f'<p class="fall">{escape(_title(first))} {_number(row[first])}</p>{facts}</div>'
        f'<div class="views two">{figures}</div></li>'
    )


def _tables(run: _Scores) -> list[Table]:
    names = run.names
    arrows = [f"{_title(name)} ↑" for name in names]
    notes = [f"{_title(name)}: {_MEANINGS.get(name, '')}" for name in names]
    notes.append("Higher is better hidden; – is not defined.")
    spread = Table(
        "Scores over all images",
        ("Score", "Images", "Mean", "Median", "Lowest", "Highest"),
        tuple(
            (_title(name), Number(found["images"], decimals=0), *_row(found, ("mean", "median", "lowest", "highest")))
            for name, found in ((name, run.summary["scores"][name]) for name in names)
        ),
        tuple(notes),
    )
    by_species: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in run.ranking:
        by_species[row["species"] or "not known"].append(row)
    means = {
        species: {name: _mean([row[name] for row in rows if row[name] is not None]) for name in names}
        for species, rows in by_species.items()
    }
    order = sorted(means, key=lambda species: (means[species][names[0]] or 0.0, species))
    species_table = Table(
        "Mean by species",
        ("Species", "Images", *arrows),
        tuple((one, Number(len(by_species[one]), decimals=0), *_row(means[one], names)) for one in order),
        tuple(notes),
    )
    images = Table(
        "Image by image" if len(run.ranking) <= _MOST_ROWS else f"The {_MOST_ROWS} most visible images",
        ("Image", *arrows),
        tuple((f"{row['image']}", *_row(row, names)) for row in run.ranking[:_MOST_ROWS]),
        tuple(notes),
    )
    return [spread, species_table, images]


def _row(found: Mapping[str, Any], names: Sequence[str]) -> tuple[Cell, ...]:
    return tuple(Number(found[name]) for name in names)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _by_top_k(run: _Scores) -> str:
    values = [float(value) for value in run.summary["by_top_k"]]
    empty = [None] * len(values)
    series = Series("all images", values, empty, empty)
    positions = [str(k) for k in range(1, len(values) + 1)]
    chart = line_chart(
        "Detectability D", positions, [series], y_range=(0.0, 1.0), y_label="mean D", x_label="proposals"
    )
    return (
        "<p>Mean detectability of the object from the first 1, 2, … proposals that pass. Where the line is level, more "
        f'proposals show nothing new.</p><div class="grid">{chart}</div>'
    )


def _provenance(run: _Scores) -> str:
    plan = run.plan
    facts = {
        "Run": run.name,
        "Images": f"{run.summary['scored']} scored of {run.summary['images']}",
        "Fingerprint of names": plan["dataset"]["keys_sha256"],
        "Limit": "none" if plan["limit"] is None else f"{plan['limit']} images",
        "Species": plan["species"] or "as the data set says",
        "Observer": plan["observer"],
        "SeamCam": plan["seamcam"],
    }
    total, images = run.seconds.get("total", 0.0), max(1, int(run.summary["scored"]))
    times = {
        stage: f"{1000 * spent / images:,.0f} ms an image, {spent / total:.0%}"
        for stage, spent in sorted(run.seconds.items(), key=lambda item: -item[1])
    } if total else {}  # fmt: skip
    return "".join(
        (
            failure_list(f"{len(run.summary['failed']):,} failed", "They are in no number.", run.summary["failed"]),
            f'<div class="made"><div><h3>Plan</h3>{fact_list(facts)}</div>'
            f"<div><h3>Time of one core</h3>{fact_list(times) if times else '<p>No times were kept.</p>'}</div></div>",
            sessions_block(run.name, run.sessions),
        )
    )
