from __future__ import annotations

import csv
import io
import json

import pytest

from crypsis.camouflage.agreement import Vote, agreement, compare, judge
from crypsis.report.agreement_tables import Findings, agreement_csv, agreement_document, agreement_tables
from crypsis.report.tables import Number, Table


def findings(pairs: int = 40, *, species: bool = True, scores: int = 2) -> Findings:
    """Three people who always find the second image harder; `good` says so too, `bad` on every fourth pair."""
    votes = [Vote("sleeper", "plain", "0b", "left", "right")]
    votes += [
        Vote(f"p{person}", f"{i}a", f"{i}b", "right", None, f"kind {i % 2}" if species else None)
        for i in range(pairs)
        for person in range(3)
    ]
    good = {f"{i}{side}": float(side == "b") for i in range(pairs) for side in "ab"}
    bad = {name: value if int(name[:-1]) % 4 == 0 else -value for name, value in good.items()}
    known = dict(list({"good": good, "bad": bad}.items())[:scores])
    judgments = judge(votes)
    options = {"samples": 50}
    return Findings(
        judgments,
        {name: agreement(judgments, values, **options) for name, values in known.items()},
        {("good", "bad"): compare(judgments, good, bad, **options)} if scores > 1 else {},
    )


def by_title(tables: list[Table]) -> dict[str, Table]:
    return {table.title: table for table in tables}


def test_tables_hold_what_was_found() -> None:
    found = findings()
    tables = by_title(agreement_tables(found))
    assert list(tables) == [
        "Judgments of people", "Agreement with people", "Bootstrap intervals", "Comparison of scores",
        "Agreement by species",
    ]  # fmt: skip
    counts = {row[0]: row[1].value for row in tables["Judgments of people"].rows if isinstance(row[1], Number)}
    assert counts["Participants"] == 3
    assert counts["Participants left out for their catch trials"] == 1
    assert counts["Pairs with a majority"] == 40
    assert "sleeper" in " ".join(tables["Judgments of people"].notes)
    good, bad = tables["Agreement with people"].rows
    assert [cell.text for cell in good[1:4] if isinstance(cell, Number)] == ["40", "40", "100.0%"]
    assert [cell.text for cell in bad[1:4] if isinstance(cell, Number)] == ["40", "10", "25.0%"]
    assert [row[:2] for row in tables["Bootstrap intervals"].rows] == [
        (name, by) for name in ("good", "bad", "good less bad") for by in ("pairs", "participants", "images")
    ]
    (row,) = tables["Comparison of scores"].rows
    words = [cell.text if isinstance(cell, Number) else cell for cell in row]
    # (30 − 0 − 1)² / 30 = 28.03; exact: 2 / 2³⁰
    assert words == ["good", "bad", "40", "100.0%", "25.0%", "30", "0", "10", "0", "0", "28.03", "1.2e−07", "1.9e−09"]
    assert len(tables["Agreement by species"].rows) == 4


@pytest.mark.parametrize("style", ["markdown", "latex"])
def test_they_can_be_written(style: str) -> None:
    for table in agreement_tables(findings()):
        text = getattr(table, style)()
        assert all(str(row[0]).split()[0] in text for row in table.rows)


def test_what_is_not_there_is_left_out() -> None:
    titles = [table.title for table in agreement_tables(findings(species=False, scores=1))]
    assert titles == ["Judgments of people", "Agreement with people", "Bootstrap intervals"]


def test_undefined_numbers_are_dashes_and_null() -> None:
    found = findings()  # all margins are 1: no correlation
    table = by_title(agreement_tables(found))["Agreement with people"]
    assert [cell.text for cell in table.rows[0][-2:] if isinstance(cell, Number)] == ["–", "–"]
    assert "good: no correlation or p, as one side is constant." in table.notes
    document = json.loads(json.dumps(agreement_document(found), allow_nan=False))
    assert document["scores"]["good"]["gap_and_margin"]["rho"] is None
    assert document["scores"]["bad"]["accuracy"] == 0.25
    assert document["comparisons"][0]["test"]["first_only"] == 30
    assert document["judgments"]["failed"] == ["sleeper"]


def test_csv_has_every_number() -> None:
    found = findings()
    rows = list(csv.DictReader(io.StringIO(agreement_csv(found))))
    accuracy = [row for row in rows if row["quantity"] == "accuracy" and row["score"] == "bad" and not row["species"]]
    assert [row["interval"] for row in accuracy] == ["wilson", "pair", "participant", "image"]
    assert (float(accuracy[0]["low"]), float(accuracy[0]["high"])) == found.scores["bad"].wilson
    exact = next(row for row in rows if row["quantity"] == "mcnemar_p_exact")
    assert float(exact["value"]) == 2 / 2**30
    assert next(row for row in rows if row["quantity"] == "spearman_rho")["value"] == ""
    assert sum(row["quantity"] == "binomial_p_holm" for row in rows) == 4
    assert next(row for row in rows if row["quantity"] == "pairs with a majority")["value"] == "40"


def test_p_values_are_written_however_small() -> None:
    number = Number(2.36e-67, style="p")
    assert number.text == "2.4e−67"
    assert "2.36e-67" in Table("t", ("Score", "p"), (("a", number),)).csv()
