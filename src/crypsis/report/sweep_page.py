"""The page of a search for SeamCam's thresholds: heat map, elbow, and what the chosen ones are worth on other pairs.

Everything is made from the run folder's `sweep.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..camouflage.proportions import wilson_interval
from ..camouflage.threshold_sweep import ThresholdChoice
from ..datasets.folder import counted
from ..errors import CrypsisError, InputError
from .blocks import fact_list, failure_list, report_page, rounded, table_block
from .markup import escape
from .sweep_charts import sweep_elbow, sweep_heat_map
from .tables import Cell, Number, Table

__all__ = ["build_sweep_report", "sweep_lines", "sweep_tables"]

_SCHEMA = "crypsis.sweep/1"
_NAMES = {"chosen": "chosen", "paper": "the paper’s", "run": "this run’s"}
_SHOWN = {"alpha": "α", "beta": "β"}


@dataclass(frozen=True, slots=True)
class _Search:
    """A search as read from its file."""

    found: Mapping[str, Any]
    choice: ThresholdChoice
    tables: list[Table]


def build_sweep_report(folder: Path, *, title: str | None = None) -> str:
    """Return a self-contained HTML page about a search for thresholds; the same folder gives the same page.

    Args:
        folder: a run folder of `crypsis score --sweep`.
        title: heading; by default what was asked.

    Raises:
        InputError: the folder holds no finished search, or its file is damaged.
    """
    search = _open(folder)
    found = search.found
    sections = [
        ("summary", "In short", _headline(search)),
        ("search", "Agreement on the tuning pairs", _charts(search)),
        ("tables", "All numbers", "".join(table_block(t, str(i)) for i, t in enumerate(search.tables))),
        ("made", "How it was made", _provenance(search)),
    ]
    observer = found["observer"].get("name")
    return report_page(
        title or "Which thresholds agree with people?",
        eyebrow="Crypsis search for thresholds",
        scope=f"SeamCam against {found['judgments']['votes']:,} votes on {found['judgments']['pairs']:,} pairs of "
        f"images{f', as {observer} sees them' if observer else ''}.",
        sections=sections,
        data={"schema": "crypsis.sweep-report/1", "sweep": rounded(dict(found))},
    )


def sweep_tables(folder: Path) -> list[Table]:
    """Return the tables of a search: agreement at each set of thresholds, and differences.

    Raises:
        InputError: the folder holds no finished search, or its file is damaged.
    """
    return _open(folder).tables


def sweep_lines(folder: Path) -> list[str]:
    """Return what is to be said of a search, a sentence or two each: what was chosen, left out, and how sure it is.

    Raises:
        InputError: the folder holds no finished search, or its file is damaged.
    """
    search = _open(folder)
    return [_chosen(search), _difference(search), _left_out(search), *_cautions(search)]


def _open(folder: Path) -> _Search:
    file = folder / "sweep.json"
    try:
        found = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no finished search for thresholds is here (sweep.json is missing); give the score command with "
            "--sweep."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read ({error}).") from error
    if not isinstance(found, dict) or found.get("schema") != _SCHEMA:
        raise InputError(f"{file}: is not of a search in the form that this version reads ({_SCHEMA}).")
    try:
        settings, chosen = found["settings"], found["thresholds"]["chosen"]
        accuracy = np.array(found["accuracy"], np.float64)
        alphas, betas = tuple(map(float, settings["tau_alphas"])), tuple(map(float, settings["tau_betas"]))
        if accuracy.shape != (len(alphas), len(betas), int(settings["top_k"])) or not np.isfinite(accuracy).all():
            raise ValueError("an agreement for each combination is not there")
        choice = ThresholdChoice(
            alphas, betas, accuracy, tuple((first, second) for first, second in found["tuning"]),
            float(chosen["tau_alpha"]), float(chosen["tau_beta"]), int(chosen["top_k"]),
        )  # fmt: skip
        search = _Search(found, choice, [_thresholds(found), _differences(found)])
        _chosen(search), _difference(search), _left_out(search), _cautions(search), _charts(search)
        _ = dict(found["images"]["failed"]), found["observer"].get("name"), found["votes"], settings["seed"]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, CrypsisError):
            raise InputError(f"{file}: is damaged ({error})") from error
        raise InputError(f"{file}: is damaged ({error!r}).") from error
    return search


def _thresholds(found: Mapping[str, Any]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, one in found["thresholds"].items():
        tested = one["on_evaluation_pairs"]
        drawn = [_percent(tested["accuracy"], tested["bootstrap"][by]) for by in ("image", "participant")]
        rows.append(
            (
                _NAMES.get(name, name), Number(one["tau_alpha"], decimals=2), Number(one["tau_beta"], decimals=2),
                _count(one["top_k"]), _percent(one["on_tuning_pairs"]), _count(tested["pairs"]),
                _percent(tested["accuracy"], tested["wilson"]), *drawn, _count(tested["ties"]),
            )
        )  # fmt: skip
    tuned = len(found["tuning"])
    return Table(
        "Agreement with people, by thresholds",
        ("Thresholds", "τα", "τβ", "K", f"On {tuned:,} tuning pairs", "Evaluation pairs", "Agreement ↑",
         "Drawing images", "Drawing participants", "Tied"),
        tuple(rows),
        (
            "Agreement: share of the evaluation pairs, none of which was tuned on, on which the image that most people "
            "find harder has the higher score; a pair with two equal scores (tied) counts one half. [low, high] = "
            "Wilson's 95% interval, for which pairs are independent.",
            "Drawing images, participants: the same with the 95% interval of a bootstrap that draws these; the first "
            "is wide rather than narrow where images recur in pairs, the second lies low where participants are few.",
            "What the chosen thresholds reach on the tuning pairs is the best of many numbers, and too good for that.",
        ),
    )  # fmt: skip


def _differences(found: Mapping[str, Any]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, one in found["chosen_less"].items():
        ends = [Number.of({"value": one["difference"], "low": low, "high": high}, "percent")
                for low, high in (one["bootstrap"][by] for by in ("pair", "image", "participant"))]  # fmt: skip
        test = one["test"]
        rows.append(
            (
                f"chosen less {_NAMES.get(name, name)}", _count(one["pairs"]), *ends, _count(test["first_only"]),
                _count(test["second_only"]), _count(one["undecided"]), Number(test["p_exact"], style="p"),
            )
        )  # fmt: skip
    return Table(
        "Difference on the evaluation pairs",
        ("Thresholds", "Pairs", "Difference", "Drawing images", "Drawing participants", "First alone", "Second alone",
         "Undecided", "p exact"),
        tuple(rows),
        (
            "[low, high] = 95% interval of the difference, by a bootstrap that draws pairs, images, or participants.",
            "First alone, second alone: pairs on which only one of the two agrees with people; McNemar's exact test is "
            "of these. Undecided: a score is tied, and the pair not in the test.",
        ),
    )  # fmt: skip


def _count(value: int) -> Number:
    return Number(value, decimals=0)


def _percent(value: float, ends: Sequence[float | None] = (None, None)) -> Number:
    low, high = ends
    return Number(value, low, high, "percent")


def _chosen(search: _Search) -> str:
    choice, found = search.choice, search.found
    at_top = choice.accuracy[:, :, -1]
    equal = int(np.count_nonzero(at_top == at_top.max()))
    others = f" As good: {counted(equal - 1, 'other pair')} of τα and τβ; the lowest is taken." if equal > 1 else ""
    tested = found["thresholds"]["chosen"]["on_evaluation_pairs"]
    shown = _percent(tested["accuracy"], tested["wilson"])
    return (
        f"Chosen on {len(choice.tuning):,} pairs: τα {choice.tau_alpha:g}, τβ {choice.tau_beta:g}, K {choice.top_k}; "
        f"they agree with people on {shown.text} {shown.interval} of the {tested['pairs']:,} evaluation pairs.{others}"
    )


def _difference(search: _Search) -> str:
    said = []
    for name, one in search.found["chosen_less"].items():
        at = search.found["thresholds"][name]
        tested, ends = at["on_evaluation_pairs"], one["bootstrap"]["pair"]
        there, change = _percent(tested["accuracy"], tested["wilson"]), _points(one["difference"])
        sure = "which may be chance" if ends[0] <= 0 <= ends[1] else "more than chance"
        said.append(
            f"With {_NAMES.get(name, name)} (τα {at['tau_alpha']:g}, τβ {at['tau_beta']:g}, K {at['top_k']}) it is "
            f"{there.text} {there.interval} on {tested['pairs']:,} pairs: the chosen ones change it by {change} points "
            f"[{_points(ends[0])}, {_points(ends[1])}], {sure}."
        )
    return " ".join(said)


def _points(value: float) -> str:
    text = f"{100 * value:+.1f}".replace("-", "−")
    return "0.0" if not text.strip("+−0.") else text


def _left_out(search: _Search) -> str:
    found = search.found
    people, tuned = found["judgments"], len(search.choice.tuning)
    tested = found["thresholds"]["chosen"]["on_evaluation_pairs"]
    unscored = people["majority"] - tuned - tested["pairs"]
    shared, apart = found["shared"], found["settings"]["disjoint_images"]
    parts = {
        f"{people['tied']:,} are tied": people["tied"],
        f"{people['too_few']:,} have fewer than {people['minimum_votes']} votes": people["too_few"],
        f"{unscored - shared * apart:,} lack a score because an image failed": unscored - shared * apart,
        f"{tuned:,} were tuned on, and thresholds fit to a pair prove nothing on it": tuned,
        f"{shared:,} share an image with these": shared * apart,
    }
    also = f" Of those evaluated, {shared:,} share an image with a tuning pair." if shared and not apart else ""
    left_out = "; ".join(part for part, count in parts.items() if count)
    return f"Of {people['pairs']:,} pairs voted on, {tested['pairs']:,} are evaluated. Left out: {left_out}.{also}"


def _cautions(search: _Search) -> list[str]:
    """Return how far the search can be trusted."""
    choice, stored = search.choice, search.found["stored"]
    best = float(choice.accuracy[:, :, -1].max())
    low, high = wilson_interval(best * len(choice.tuning), len(choice.tuning))
    said = [
        f"On {len(choice.tuning):,} pairs an agreement of {100 * best:.1f}% has a 95% interval of {100 * low:.0f} to "
        f"{100 * high:.0f}%: smaller differences between fields of the map may be chance."
    ]
    floors = [
        f"{_SHOWN[letter]} {least:.2g}"
        for letter, grid in (("alpha", choice.tau_alphas), ("beta", choice.tau_betas))
        if (least := stored[f"least_{letter}"]) is not None and least > grid[0]
    ]
    if floors:
        said.append(
            f"The lowest that the observer proposed are {' and '.join(floors)}: lower thresholds change nothing."
        )
    if stored["most"] < choice.accuracy.shape[2]:
        said.append(f"No image has more than {stored['most']:,} proposals, so that a larger K changes nothing.")
    return said


def _headline(search: _Search) -> str:
    choice = search.choice
    cards = [
        (
            "Chosen",
            _triple(choice.tau_alpha, choice.tau_beta, choice.top_k),
            f"τα · τβ · K, on {len(choice.tuning):,} tuning pairs.",
        )
    ]
    for name, one in search.found["thresholds"].items():
        tested = one["on_evaluation_pairs"]
        shown = _percent(tested["accuracy"], tested["wilson"])
        cards.append(
            (
                f"Agreement with {'the chosen' if name == 'chosen' else _NAMES.get(name, name)}",
                shown.text,
                f"{shown.interval} on {tested['pairs']:,} evaluation pairs"
                + ("." if name == "chosen" else f", at {_triple(one['tau_alpha'], one['tau_beta'], one['top_k'])}."),
            )
        )
    articles = "".join(
        f'<article class="card"><h3>{escape(head)}</h3><p class="figure">{escape(figure)}</p>'
        f'<p class="sentence">{escape(sentence)}</p></article>'
        for head, figure, sentence in cards
    )
    return f'<div class="cards">{articles}</div>{_listed((_difference(search), _left_out(search)))}'


def _triple(tau_alpha: float, tau_beta: float, top_k: int) -> str:
    return f"{tau_alpha:g} · {tau_beta:g} · {top_k}".replace(" ", "\N{NO-BREAK SPACE}")


def _listed(sentences: Iterable[str]) -> str:
    return f'<div class="findings"><ul>{"".join(f"<li>{escape(one)}</li>" for one in sentences)}</ul></div>'


def _charts(search: _Search) -> str:
    said = (
        f"First τα and τβ at the largest K, then the smallest K that costs no more than "
        f"{100 * search.found['settings']['slack']:g} point of agreement.",
        *_cautions(search),
    )
    return (
        f'{_listed(said)}<div class="panels"><div class="grid">{sweep_heat_map(search.choice)}'
        f"{sweep_elbow(search.choice)}</div></div>"
    )


def _provenance(search: _Search) -> str:
    found = search.found
    people, settings = found["judgments"], found["settings"]
    failed = people["failed"]
    judged = {
        "Votes": found["votes"],
        "Participants": people["participants"],
        "Left out for their catch trials": ", ".join(failed) if failed else "none",
        "Without a catch trial": people["unchecked"],
        "Pairs": people["pairs"],
        "With a majority": people["majority"],
        "Images voted on": found["images"]["voted"],
        "Images scored": found["images"]["scored"],
    }
    made = {
        "Observer": found["observer"],
        "Pairs tuned on": f"{settings['pairs']}, drawn with seed {settings['seed']}; tuning_pairs.csv lists them",
        "Equal scores": "count one half",
        "Images of tuning pairs": "in no evaluation pair" if settings["disjoint_images"] else "may be in others",
        "Duplicates": "kept" if settings["duplicate_iou"] is None else f"dropped from IoU {settings['duplicate_iou']}",
    }
    return (
        failure_list(
            f"{len(found['images']['failed']):,} failed", "Their pairs are left out.", found["images"]["failed"]
        )
        + f'<div class="made"><div><h3>People</h3>{fact_list(judged)}</div>'
        f"<div><h3>Search</h3>{fact_list(made)}</div></div>"
    )
