from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_runs import ENTRIES, HOSTILE, PAPER, make_run, paper_model

from crypsis.errors import InputError, UnknownNameError
from crypsis.report.tables import Number, Table, long_csv, run_tables
from crypsis.results import RunFolder
from crypsis.severity.calibration import shipped_calibration


def markdown_rows(table: Table) -> list[list[str]]:
    """Return the body cells of a Markdown table, without bold."""
    lines = [line for line in table.markdown().splitlines() if line.startswith("|")]
    return [[cell.strip().replace("**", "") for cell in line.strip("|").split("|")] for line in lines[2:]]


def minus(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def test_table_1_of_the_paper(paper_run: RunFolder) -> None:
    table = run_tables([paper_run], intervals=False)[0]
    assert table.header == ("Model", "Dice ↑", "IoU ↑", "MAE ↓", "BF1 ↑", "ECE ↓")
    expected = [[name, *(f"{v:.3f}" for v in values.values())] for name, values in PAPER["clean"].items()]
    assert markdown_rows(table) == expected


def test_table_2_of_the_paper(paper_run: RunFolder) -> None:
    table = run_tables([paper_run], intervals=False)[1]
    assert table.header[-2:] == ("ΔDice ↑", "Retention % ↑")
    expected = [
        [
            name,
            *(f"{values[m]:.3f}" for m in ("dice", "iou", "mae", "bf1", "ece")),
            minus(values["delta_dice"]),
            f"{PAPER['retention_percent'][name]:.1f}%",
        ]
        for name, values in PAPER["mean_corrupted"].items()
    ]
    assert markdown_rows(table) == expected


def test_table_3_of_the_paper(paper_run: RunFolder) -> None:
    table = run_tables([paper_run], intervals=False)[2]
    assert [label.removesuffix(" ↑") for label in table.header] == [
        "Model", "Brightness", "Contrast", "Fog", "Rain", "JPEG", "Gaussian noise", "Gaussian blur", "Motion blur",
        "Mean",
    ]  # fmt: skip
    expected = [[name, *(f"{v:.3f}" for v in values.values())] for name, values in PAPER["dice_by_corruption"].items()]
    assert markdown_rows(table) == expected


@pytest.mark.parametrize(("term", "title"), [("gaussian_noise", "Gaussian noise"), ("motion_blur", "Motion blur")])
def test_table_4_of_the_paper(paper_run: RunFolder, term: str, title: str) -> None:
    rows = run_tables([paper_run], intervals=False)[3].rows
    found = {str(row[1]): [c.text for c in row[2:] if isinstance(c, Number)] for row in rows if row[0] == title}
    assert found == {n: [f"{v:.3f}" for v in values] for n, values in PAPER["dice_by_severity"][term].items()}
    assert len(rows) == len(ENTRIES) * 4


def test_structure_table_never_says_a_bare_e(paper_run: RunFolder) -> None:
    table = run_tables([paper_run])[4]
    labels = [label.rstrip(" ↑↓") for label in table.header[2:]]
    assert labels == ["S", "wF", "E adp", "E mean", "E max", "F adp", "F mean", "F max"]
    assert [row[0] for row in table.rows] == ["Clean"] * 4 + ["Corrupted"] * 4


def test_best_is_bold_in_the_direction_of_the_arrow_and_ties_together(paper_run: RunFolder) -> None:
    clean, _, by_entry, by_severity, _ = run_tables([paper_run], intervals=False)
    assert "**0.734**" in clean.markdown()
    assert "**0.036**" in clean.markdown()  # MAE: the lowest
    assert "\\textbf{0.036}" in clean.latex()
    noise = by_entry.header.index("Gaussian noise ↑")
    assert [row[noise].best for row in by_entry.rows if isinstance(row[noise], Number)] == [True, False, False, True]
    # in a grouped table every corruption has its own best
    assert all(sum(row[-1].best for row in group if isinstance(row[-1], Number)) >= 1 for group in by_severity.groups)


def test_one_row_has_no_best(tmp_path: Path) -> None:
    tables = run_tables([make_run(tmp_path / "one", {"m": paper_model("PFNet")})])
    assert all("\\textbf" not in table.latex() for table in tables)
    assert all("**" not in table.markdown().partition("\n")[2] for table in tables)


def test_intervals_on_and_off(paper_run: RunFolder) -> None:
    with_intervals = run_tables([paper_run])[0]
    assert "**0.734** [0.713, 0.753]" in with_intervals.markdown()
    assert "\\textbf{0.734} {[}0.713, 0.753{]}" in with_intervals.latex()
    without = run_tables([paper_run], intervals=False)[0]
    assert "0.713" not in without.markdown() + without.latex() + without.csv()
    assert not any("bootstrap" in note for note in without.notes)


def test_csv_has_intervals_as_columns(paper_run: RunFolder) -> None:
    rows = list(csv.DictReader(io.StringIO(run_tables([paper_run])[1].csv())))
    assert list(rows[0])[:4] == ["Model", "Dice", "Dice low", "Dice high"]
    assert rows[0]["Model"] == "SINet-v2"
    assert [float(rows[0][k]) for k in ("Dice low", "Dice", "Dice high")] == pytest.approx([0.623, 0.644, 0.6629])
    assert float(rows[0]["Retention %"]) == pytest.approx(87.74, abs=0.01)


def test_notes_state_the_conventions(paper_run: RunFolder) -> None:
    notes = " ".join(run_tables([paper_run])[0].notes)
    for part in ("48 of 48 images", "seed 0", "limit none", "Soft Dice", "pixels of all images together", "bootstrap"):
        assert part in notes


def test_incomplete_is_said_loudly_everywhere(tmp_path: Path) -> None:
    run = make_run(tmp_path / "part", failed={"x/1": "damaged", "x/2": "missing"}, limit=48)
    for table in run_tables([run]):
        assert table.markdown().startswith("**INCOMPLETE")
        assert "\\caption{INCOMPLETE" in table.latex()
        assert "INCOMPLETE: part scored 46 of 48 images, 2 failed" in table.notes[0]
    assert "limit 48 (a trial)" in " ".join(table.notes)


def test_metric_changes_the_third_and_fourth_table(paper_run: RunFolder) -> None:
    _, corrupted, by_entry, by_severity, _ = run_tables([paper_run], metric="mae")
    assert corrupted.header[-1] == "ΔMAE ↓"  # nothing is retained of an error
    assert by_entry.title.startswith("MAE")
    assert by_severity.header[2] == "s=1 ↓"


@pytest.mark.parametrize("metric", ["dise", "accuracy", ""])
def test_unknown_metric(paper_run: RunFolder, metric: str) -> None:
    with pytest.raises(UnknownNameError, match="There is no metric"):
        run_tables([paper_run], metric=metric)


@pytest.mark.parametrize("metric", ["e_max", "ece", "weighted_f"])
def test_every_metric_has_tables(paper_run: RunFolder, metric: str) -> None:
    assert len(run_tables([paper_run], metric=metric)) == 5


def test_two_runs_side_by_side(two_runs: tuple[RunFolder, RunFolder]) -> None:
    table = run_tables(two_runs)[0]
    assert [row[0] for row in table.rows] == ["first/net", "other", "second/net"]


def test_equal_folder_names_are_told_apart(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / parent / "run", {"net": paper_model("PFNet")}) for parent in ("a", "b")]
    labels = [row[0] for row in run_tables(runs)[0].rows]
    assert labels == [f"{tmp_path}/a/run/net", f"{tmp_path}/b/run/net"]


def test_runs_with_limit_and_without_are_named(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, limit=limit) for name, limit in (("a", None), ("b", 48))]
    assert any("limit none, 48 (a trial)" in note for note in run_tables(runs)[0].notes)


def test_different_failures_are_not_paired(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", failed={"x": "damaged"})]
    assert any("different subsets" in note for note in run_tables(runs)[0].notes)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"dataset": {"name": "COD10K", "layout": "x", "images": 20, "keys_sha256": "00" * 32}}, "images"),
        ({"entries": {**ENTRIES, "cod10k-c/fog": [{"alpha": 0.5}] * 5}}, "cod10k-c/fog"),
        ({"seed": 7}, "seed (0 and 7)"),
        ({"normalize": "minmax"}, "normalize (raw and minmax)"),
        ({"truth": "aligned"}, "truth (published and aligned)"),
        ({"on_size_mismatch": "resize-mask"}, "on_size_mismatch (error and resize-mask)"),
    ],
)
def test_what_cannot_be_compared_is_named(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    runs = [make_run(tmp_path / "one"), make_run(tmp_path / "two", **change)]
    with pytest.raises(InputError, match=re.escape(named)) as caught:
        run_tables(runs)
    assert "Report them separately" in str(caught.value)


def test_no_run_and_the_same_run_twice(paper_run: RunFolder) -> None:
    with pytest.raises(InputError, match="No run was given"):
        run_tables([])
    with pytest.raises(InputError, match="given twice"):
        run_tables([paper_run, RunFolder.open(paper_run.path / ".." / "paper")])


def test_hostile_label_is_escaped(hostile_run: RunFolder) -> None:
    table = run_tables([hostile_run])[0]
    assert "| \\<b>\\&\\|\\_% |" in table.markdown()
    assert "\\textless{}b\\textgreater{}\\&\\textbar{}\\_\\% &" in table.latex()
    assert list(csv.reader(io.StringIO(table.csv())))[1][0] == HOSTILE
    for text in (table.markdown(), table.latex(), table.csv()):
        text.encode("utf-8")  # no lone surrogates
        assert "\0" not in text


@pytest.mark.parametrize("label", ["[a](javascript:x)", "![a](http://x)", "[a][b]", "[a]: http://x", "`<i>`", "$x$"])
def test_markdown_of_a_label_makes_no_link(label: str) -> None:
    row = Table("t", ("Model", "Dice ↑"), ((label, Number(0.5)),)).markdown().splitlines()[4]
    assert not re.search(r"\](\(|\[|:)|(?<!\\)[`<$]", row)


def test_undefined_values() -> None:
    table = Table("t", ("Model", "Dice ↑"), (("a", Number(None)), ("b", Number(0.5)))).marked()
    assert "| a | – |" in table.markdown()
    assert "| b | **0.500** |" in table.markdown()
    assert table.csv() == "Model,Dice\na,\nb,0.500000\n"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Number(0.1234), "0.123"),
        (Number(-0.0901, style="delta"), "−0.090"),
        (Number(0.02, style="delta"), "+0.020"),
        (Number(-0.00001, style="delta"), "0.000"),
        (Number(0.8774, style="percent"), "87.7%"),
        (Number(None, style="percent"), "–"),
    ],
)
def test_numbers_as_text(number: Number, text: str) -> None:
    assert number.text == text


@pytest.mark.parametrize("label", ["=1+1", "+x", "-x", "@x"])
def test_csv_holds_no_formulas(label: str) -> None:
    table = Table("t", ("Model", "Dice ↑"), ((label, Number(0.5)),))
    assert table.csv().splitlines()[1] == f"'{label},0.500000"


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=30))
def test_no_label_breaks_a_table(label: str) -> None:
    table = Table(label, ("Model", "Dice ↑"), ((label, Number(0.5)), ("b", Number(0.25))), (label,)).marked()
    lines = table.markdown().splitlines()
    body = [line for line in lines if line.startswith("| ")]
    assert len(body) == 4
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3 for line in body)
    latex = table.latex()
    bare = re.sub(r"\\[\\{}&%$#_]", "", latex)
    assert bare.count("{") == bare.count("}")
    rows = [line for line in latex.splitlines() if line.endswith(" \\\\")]
    assert [len(re.findall(r"(?<!\\)&", row)) for row in rows] == [1, 1, 1]
    assert len(list(csv.reader(io.StringIO(table.csv(), newline="")))) == 3


def test_long_csv_has_the_strength_of_conditions(paper_run: RunFolder) -> None:
    rows = [row for row in csv.DictReader(io.StringIO(long_csv([paper_run]))) if row["metric"] in ("1-ssim", "psnr")]
    assert len(rows) == len(paper_run.models) * 41 * 2
    fog = [r for r in rows if r["images"] == "cod10k-c/fog@3"]
    assert float(fog[0]["value"]) == pytest.approx(shipped_calibration("cod10k-c/fog").strengths[2], abs=1e-6)
    assert {r["value"] for r in rows if r["images"] == "clean" and r["metric"] == "1-ssim"} == {"0.000000"}
