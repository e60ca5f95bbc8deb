"""The page of a search for thresholds, and what is said of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parsed_page import Page
from searched_run import make_searched_run

from crypsis.errors import InputError
from crypsis.report.sweep_page import build_sweep_report, sweep_lines, sweep_tables


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_searched_run(tmp_path_factory.mktemp("searched"), images="<b>hills")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def changed(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads((folder / "sweep.json").read_text("utf-8"))
    edit(document)
    (folder / "sweep.json").write_text(json.dumps(document), "utf-8")


def test_the_page_says_what_was_chosen_and_what_it_is_worth(folder: Path) -> None:
    html = build_sweep_report(folder)
    page = Page(html)
    assert [a["id"] for a in page.all("section")] == ["summary", "search", "tables", "made"]
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    words = page.words.replace("\N{NO-BREAK SPACE}", " ")
    assert "Chosen 0.4 · 0.2 · 2 τα · τβ · K, on 15 tuning pairs." in words
    assert "Agreement with the chosen 100.0% [88.6, 100.0] on 30 evaluation pairs." in words
    assert "evaluation pairs, at 0.5 · 0.1 · 7." in words
    assert "evaluation pairs, at 0.6 · 0.1 · 7." in words
    assert "Of 45 pairs voted on, 30 are evaluated. Left out: 15 were" in words
    assert "Left out for their catch trials d<b>" in words
    assert "The lowest that the observer proposed are α 0.3 and β 0.15" in words
    assert "No image has more than 4 proposals, so that a larger K changes nothing." in words
    assert len(page.classed("heat")) == len(page.classed("elbow")) == 1
    assert (
        len([a for a in page.all("text") if a.get("class") == "value"]) == 10 * 10
    )  # 0.6, the run's, is in the grid already
    assert json.loads(page.data["crypsis-data"])["sweep"]["thresholds"]["chosen"]["top_k"] == 2


def test_it_loads_nothing_leaks_no_folder_and_is_always_the_same(folder: Path) -> None:
    html = build_sweep_report(folder)
    for _, attributes in Page(html).tags:
        assert (attributes.get("src") or "data:").startswith("data:")
        assert not any(name.startswith("on") for name in attributes)
    assert str(folder.parent) not in html
    assert "d<b>" not in html
    assert build_sweep_report(folder) == html == (folder / "sweep.html").read_text("utf-8")
    assert "<h1>Mine</h1>" in build_sweep_report(folder, title="Mine")


def test_tables(folder: Path) -> None:
    thresholds, differences = sweep_tables(folder)
    assert [row[0] for row in thresholds.rows] == ["chosen", "the paper’s", "this run’s"]
    assert [row[0] for row in differences.rows] == ["chosen less the paper’s", "chosen less this run’s"]
    assert "| chosen | 0.40 | 0.20 | 2 | 100.0% | 30 | 100.0% [88.6, 100.0] |" in thresholds.markdown()


def test_what_may_be_chance_is_said_so(folder: Path) -> None:
    assert "more than chance" in sweep_lines(folder)[1]
    assert "which may be chance" not in sweep_lines(folder)[1]

    def weaken(document: dict[str, Any]) -> None:
        for one in document["chosen_less"].values():
            one["bootstrap"]["pair"] = [-0.01, 0.3]
            one["difference"] = -0.0001

    changed(folder, weaken)
    assert sweep_lines(folder)[1].count("change it by 0.0 points [−1.0, +30.0], which may be chance") == 2


def test_equally_good_thresholds_are_counted(folder: Path) -> None:
    changed(folder, lambda document: document.update(accuracy=[[[0.5] * 12] * 10] * 10))
    assert "As good: 99 other pairs of τα and τβ; the lowest is taken." in sweep_lines(folder)[0]


def test_pairs_without_scores_and_pairs_that_share_images_are_told(folder: Path) -> None:
    def leave_out(document: dict[str, Any]) -> None:
        document["settings"]["disjoint_images"] = True
        document["shared"] = 20
        document["images"]["failed"] = {"<i>x": "cannot be <read>"}
        for one in document["thresholds"].values():
            one["on_evaluation_pairs"]["pairs"] = 7

    changed(folder, leave_out)
    said = sweep_lines(folder)[2]
    assert "7 are evaluated" in said
    assert "3 lack a score because an image failed" in said
    assert said.endswith("20 share an image with these.")
    words = Page(build_sweep_report(folder)).words
    assert "1 failed Their pairs are left out. <i>x : cannot be <read>" in words
    assert "in no evaluation pair" in words


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda document: document.update(schema="crypsis.sweep/9"), "not of a search in the form"),
        (lambda document: document.update(accuracy=[[[0.5]]]), "an agreement for each combination is not there"),
        (lambda document: document.update(tuning=[["a"]]), "damaged"),
        (lambda document: document.pop("judgments"), "damaged"),
        (lambda document: document["thresholds"].pop("chosen"), "damaged"),
        (lambda document: document["thresholds"]["chosen"].update(tau_alpha=0.77), "damaged"),
        (lambda document: document["stored"].update(most=None), "damaged"),
        (lambda document: document["images"].update(failed=3), "damaged"),
    ],
)
def test_damaged_files(folder: Path, edit: Callable[[dict[str, Any]], object], message: str) -> None:
    changed(folder, edit)
    with pytest.raises(InputError, match=message):
        build_sweep_report(folder)


def test_missing_and_unreadable(folder: Path) -> None:
    (folder / "sweep.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        sweep_tables(folder)
    (folder / "sweep.json").unlink()
    with pytest.raises(InputError, match="no finished search for thresholds is here"):
        sweep_lines(folder)
