"""Whether people agree with scores, as tables, as one long CSV, and as a document for JSON.

The statistics are those of appendix D of "SeamCam" (arXiv 2605.16515); see `crypsis.camouflage.agreement`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..camouflage.agreement import Agreement, Cluster, Comparison, Judgments, as_document
from .tables import Cell, Number, Table

__all__ = ["Findings", "agreement_csv", "agreement_document", "agreement_tables"]

_DRAWN: Mapping[Cluster, str] = {"pair": "pairs", "participant": "participants", "image": "images"}
_TIES = {
    "half": "a pair with two equal scores counts one half",
    "wrong": "a pair with two equal scores counts as wrong",
    "excluded": "pairs with two equal scores are left out",
}
_NAMES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Findings:
    """All that is known of some scores and the people they are compared with.

    Attributes:
        judgments: of people.
        scores: name → how often it agrees with them.
        comparisons: (first, second) → how these two scores differ.
        level: coverage of all intervals.
    """

    judgments: Judgments
    scores: Mapping[str, Agreement]
    comparisons: Mapping[tuple[str, str], Comparison]
    level: float = 0.95

    @property
    def counts(self) -> dict[str, int]:
        """What people did, in numbers, by plain names."""
        found = self.judgments
        return {
            "participants": found.participants,
            "participants left out for their catch trials": len(found.failed),
            "participants without a catch trial": found.unchecked,
            "catch trials": found.catch_trials,
            "trials unanswered": found.unanswered,
            "further votes of one person on one pair": found.repeated,
            "votes": len(found.ballots),
            "pairs": len(found.pairs),
            "pairs with a majority": found.judged,
            "pairs tied": found.tied,
            f"pairs with fewer than {found.minimum_votes} votes": found.too_few,
        }


def agreement_tables(findings: Findings) -> list[Table]:
    """Return the judgments, each score's agreement, its intervals, comparisons, and species, where there are any."""
    tables = [_judgments(findings), _scores(findings), _intervals(findings)]
    if findings.comparisons:
        tables.append(_comparisons(findings))
    if any(found.species for found in findings.scores.values()):
        tables.append(_species(findings))
    return [table for table in tables if table.rows]


def _count(value: int) -> Number:
    return Number(value, decimals=0)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _percent(value: float, interval: tuple[float, float] | None = None) -> Number:
    low, high = interval or (math.nan, math.nan)
    return Number(value, _known(low), _known(high), "percent")


def _p(value: float) -> Number:
    return Number(_known(value), style="p")


def _judgments(findings: Findings) -> Table:
    rows = tuple((name[0].upper() + name[1:], _count(value)) for name, value in findings.counts.items())
    failed = findings.judgments.failed
    notes = ["Further votes of one person on a pair are left out: the first counts."]
    if failed:
        more = f", and {len(failed) - _NAMES_SHOWN} more" if len(failed) > _NAMES_SHOWN else ""
        notes.append(f"Left out for their catch trials: {', '.join(failed[:_NAMES_SHOWN])}{more}.")
    return Table("Judgments of people", ("Judgments", "Count"), rows, tuple(notes))


def _scores(findings: Findings) -> Table:
    rows: list[tuple[Cell, ...]] = []
    reasons = []
    for name, found in findings.scores.items():
        relation = found.gap_and_margin
        right = Number(found.right, decimals=0 if found.right == int(found.right) else 1)
        rows.append(
            (
                name, _count(found.pairs), right, _percent(found.accuracy, found.wilson), _count(found.ties),
                _count(found.missing), Number(_known(relation.rho), style="delta"), _p(relation.p),
            )
        )  # fmt: skip
        if relation.reason:
            reasons.append(f"{name}: no correlation or p, as {relation.reason}.")
    rule = next(iter(findings.scores.values())).tie_rule
    notes = (
        "Accuracy: share of the pairs with a majority on which the image that people find harder has the higher score; "
        f"{_TIES[rule]}. [low, high] = Wilson's {findings.level:.0%} interval, for which pairs are independent.",
        "Tied: pairs with two equal scores. Missing: pairs with a majority but without both scores, left out.",
        "ρ: Spearman's correlation of the score's absolute gap with the vote margin |a − b| / (a + b).",
        *reasons,
    )
    header = ("Score", "Pairs", "Right", "Accuracy ↑", "Tied", "Missing", "ρ gap, margin", "p of ρ")
    return Table("Agreement with people", header, tuple(rows), notes)


def _intervals(findings: Findings) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, found in findings.scores.items():
        rows += [(name, _DRAWN[by], _percent(found.accuracy, ends)) for by, ends in found.bootstrap.items()]
    for (first, second), pair in findings.comparisons.items():
        label = f"{first} less {second}"
        rows += [(label, _DRAWN[by], _percent(pair.difference, ends)) for by, ends in pair.bootstrap.items()]
    notes = (
        f"[low, high] = {findings.level:.0%} percentile interval of a bootstrap that draws pairs as if they were "
        "independent, participants (their majorities are taken anew; the interval is moved to have the mean of its "
        "samples at the value), or images (wide rather than narrow, where images recur in pairs).",
    )
    return Table("Bootstrap intervals", ("Accuracy of", "Drawn", "Accuracy"), tuple(rows), notes)


def _comparisons(findings: Findings) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (first, second), found in findings.comparisons.items():
        test = found.test
        rows.append(
            (
                first, second, _count(found.pairs), _percent(found.first_accuracy), _percent(found.second_accuracy),
                _count(test.first_only), _count(test.second_only), _count(found.both), _count(found.neither),
                _count(found.undecided), Number(test.statistic, decimals=2), _p(test.p_corrected), _p(test.p_exact),
            )
        )  # fmt: skip
    header = (
        "First", "Second", "Pairs", "First accuracy", "Second accuracy", "First alone", "Second alone", "Both",
        "Neither", "Undecided", "χ² corrected", "p corrected", "p exact",
    )  # fmt: skip
    notes = [
        "McNemar's test on the pairs that count for both scores: on how many the first alone is right, and the second "
        "alone. χ² is with continuity correction; below 25 such pairs take the exact p.",
        "Undecided: a score is equal for both images and counts one half; such pairs are not in the test.",
    ]
    if len(rows) > 1:
        notes.append(f"These are {len(rows)} tests; their p-values are not corrected for that.")
    return Table("Comparison of scores", header, tuple(rows), tuple(notes))


def _species(findings: Findings) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, found in findings.scores.items():
        for one in found.species:
            ends = _percent(one.accuracy, one.interval)
            rows.append((name, one.species, _count(one.pairs), ends, _p(one.p), _p(one.p_holm)))
    notes = (
        f"[low, high] = Wilson's {findings.level:.0%} interval. p: exact two-sided binomial test against one half, "
        "without tied pairs; Holm: corrected for the number of species.",
    )
    return Table("Agreement by species", ("Score", "Species", "Pairs", "Accuracy", "p", "p Holm"), tuple(rows), notes)


def agreement_csv(findings: Findings) -> str:
    """Return every number as one tidy CSV.

    Columns: quantity, score, against (the second score of a comparison), species, interval (what it is by: `wilson`,
    or what a bootstrap draws), value, low, high (as few digits as say the number exactly), pairs.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("quantity", "score", "against", "species", "interval", "value", "low", "high", "pairs"))
    for row in _tidy(findings):
        writer.writerow(["" if isinstance(cell, float) and math.isnan(cell) else cell for cell in row])
    return out.getvalue()


def _tidy(findings: Findings) -> Iterator[tuple[Any, ...]]:
    def row(quantity: str, value: float, *, score: str = "", against: str = "", species: str = "", by: str = "",
            ends: tuple[float, float] = (math.nan, math.nan), pairs: int | str = "") -> tuple[Any, ...]:  # fmt: skip
        return quantity, score, against, species, by, value, *ends, pairs

    for quantity, count in findings.counts.items():
        yield row(quantity, count)
    for name, found in findings.scores.items():
        for by, ends in (("wilson", found.wilson), *found.bootstrap.items()):
            yield row("accuracy", found.accuracy, score=name, by=by, ends=ends, pairs=found.pairs)
        for quantity, value in (
            ("right", found.right), ("ties", found.ties), ("missing", found.missing),
            ("spearman_rho", found.gap_and_margin.rho), ("spearman_p", found.gap_and_margin.p),
        ):  # fmt: skip
            yield row(quantity, value, score=name, pairs=found.pairs)
        for one in found.species:
            yield row(
                "accuracy", one.accuracy, score=name, species=one.species, by="wilson", ends=one.interval,
                pairs=one.pairs,
            )  # fmt: skip
            for quantity, value in (("binomial_p", one.p), ("binomial_p_holm", one.p_holm)):
                yield row(quantity, value, score=name, species=one.species, pairs=one.pairs)
    for (first, second), pair in findings.comparisons.items():
        for by, ends in pair.bootstrap.items():
            yield row("difference", pair.difference, score=first, against=second, by=by, ends=ends, pairs=pair.pairs)
        for quantity, value in (
            ("first_accuracy", pair.first_accuracy), ("second_accuracy", pair.second_accuracy), ("both", pair.both),
            ("neither", pair.neither), ("undecided", pair.undecided), ("first_only", pair.test.first_only),
            ("second_only", pair.test.second_only), ("mcnemar_chi2", pair.test.statistic),
            ("mcnemar_p", pair.test.p_corrected), ("mcnemar_p_exact", pair.test.p_exact),
        ):  # fmt: skip
            yield row(quantity, value, score=first, against=second, pairs=pair.pairs)


def agreement_document(findings: Findings) -> dict[str, Any]:
    """Return the same for JSON: judgments, scores, comparisons; None where a number is not defined."""
    return {
        "level": findings.level,
        "judgments": {**findings.counts, "failed": list(findings.judgments.failed)},
        "scores": {name: as_document(found) for name, found in findings.scores.items()},
        "comparisons": [
            {"first": first, "second": second, **as_document(found)}
            for (first, second), found in findings.comparisons.items()
        ],
    }
