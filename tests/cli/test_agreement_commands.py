"""`crypsis study build` and `crypsis agree`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import run
from crypsis.camouflage.study import votes_csv
from crypsis.camouflage.vote_files import read_votes


@pytest.fixture
def data(make_set: Callable[..., Path]) -> Path:
    return make_set(6, height=24, width=32)


def test_a_study_and_the_agreement_with_it(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    command = ["study", "build", "--data", data, "--pairs", 8, "--per-participant", 4, "--out", out]
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert "8 pairs, 6 participants of 5 trials each" in result.stdout
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == [
        "lists.csv", "study.html", "study.json",
    ]  # fmt: skip
    before = (out / "study.html").read_bytes()
    assert run(*command, "-q").stderr == ""
    assert (out / "study.html").read_bytes() == before

    # all find the image with the higher number harder, and two of them fail their catch trial
    trials = read_votes(out / "lists.csv")
    assert {"(cut out)" in vote.left + vote.right for vote in trials if vote.answer} == {True}
    votes = []
    for vote in trials:
        right = vote.answer or ("left" if vote.left > vote.right else "right")
        wrong = vote.answer and vote.participant in ("5", "6")
        votes.append(replace(vote, choice={"left": "right", "right": "left"}[right] if wrong else right))
    folder = tmp_path / "votes"
    folder.mkdir()
    for number in range(1, 7):
        (folder / f"votes-{number}.csv").write_text(votes_csv(v for v in votes if v.participant == str(number)))
    scores = tmp_path / "scores.csv"
    lines = [f"animal-{i:02d},{i},{-i},{i % 2},unet" for i in range(6)]
    scores.write_text("\n".join(["image,rank,reverse,parity,source", *lines]) + "\n")
    agree = ["agree", folder, scores, "--minimum-votes", 2, "--samples", 50]
    found = run(*agree)
    assert found.exit_code == 0, found.output
    assert "ignored: source" in found.stderr
    assert "| rank | 8 | 8 | 100.0%" in found.stdout
    assert "Left out for their catch trials: 5, 6." in found.stdout
    document = json.loads(run(*agree, "--json", "--score", "rank,reverse", "-q").stdout)
    assert set(document["scores"]) == {"rank", "reverse"}
    assert document["scores"]["reverse"]["accuracy"] == 0
    assert document["comparisons"][0]["test"]["first_only"] == 8
    assert "\\begin{tabular}" in run(*agree, "--format", "latex").stdout
    rows = list(csv.DictReader(io.StringIO(run(*agree, "--format", "csv", "-q").stdout)))
    assert {row["against"] for row in rows} == {"", "reverse", "parity"}
    ties = {
        rule: json.loads(run(*agree, "--score", "parity", "--ties", rule, "--json").stdout)["scores"]["parity"]
        for rule in ("half", "wrong", "excluded")
    }
    assert ties["half"]["ties"] > 0
    assert ties["excluded"]["pairs"] == 8 - ties["half"]["ties"]
    assert ties["half"]["right"] - ties["wrong"]["right"] == ties["half"]["ties"] / 2


def test_a_folder_of_images_needs_obvious_ones(data: Path, tmp_path: Path) -> None:
    images = data / "Imgs"
    result = run("study", "build", "--data", images, "--pairs", 3, "--out", tmp_path / "a")
    assert result.exit_code == 2
    assert "nobody can miss" in result.stderr
    assert not (tmp_path / "a").exists()
    (tmp_path / "obvious.txt").write_text("animal-05\n\n")
    command = ["study", "build", "--data", images, "--pairs", 3, "--obvious", tmp_path / "obvious.txt"]
    assert run(*command, "--out", tmp_path / "a").exit_code == 0
    votes = read_votes(tmp_path / "a" / "lists.csv")
    assert all(("animal-05" in (vote.left, vote.right)) == (vote.answer is not None) for vote in votes)
    assert (
        run("study", "build", "--data", images, "--pairs", 3, "--catch-share", 0, "--out", tmp_path / "b").exit_code
        == 0
    )
    assert not any(vote.answer for vote in read_votes(tmp_path / "b" / "lists.csv"))


def test_in_the_demo_set_only_hidden_animals_stand_beside_obvious_ones(tmp_path: Path) -> None:
    options = ["--species-within", "--pairs", 20, "--size", 64, "--catch-share", 0.5, "--out", tmp_path / "demo"]
    result = run("study", "build", "--data", "demo", *options)
    assert result.exit_code == 0, result.output
    from crypsis.datasets.demo import demo_blending, demo_species

    blending, species = demo_blending(), demo_species()
    votes = read_votes(tmp_path / "demo" / "lists.csv")
    assert min(blending[vote.left if vote.answer == "left" else vote.right] for vote in votes if vote.answer) >= 0.85
    assert all(species[vote.left] == species[vote.right] == vote.species for vote in votes if not vote.answer)


def test_another_study_needs_another_folder(data: Path, tmp_path: Path) -> None:
    command = ["study", "build", "--data", data, "--pairs", 3, "--out", tmp_path / "study"]
    assert run(*command).exit_code == 0
    result = run(*command, "--seed", 1)
    assert result.exit_code == 2
    assert "study of another plan" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pairs", 99], "make 15 pairs"),
        (["--pairs", 3, "--megabytes", 0.0001], "more than 0.0001 MB"),
        (["--pairs", 3, "--obvious", "absent.txt"], "cannot be read"),
        (["--pairs", 3, "--species-within"], "make 0 pairs of one species"),
    ],
)
def test_studies_that_cannot_be_built(data: Path, tmp_path: Path, options: list[object], message: str) -> None:
    result = run("study", "build", "--data", data, *options, "--out", tmp_path / "study")
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "study").exists()


def test_obvious_images_that_are_not_there(data: Path, tmp_path: Path) -> None:
    (tmp_path / "obvious.txt").write_text("animal-5")
    command = ["study", "build", "--data", data, "--pairs", 3, "--out", tmp_path / "study", "--obvious"]
    result = run(*command, tmp_path / "obvious.txt")
    assert result.exit_code == 2
    assert "did you mean 'animal-05'" in result.stderr
    (tmp_path / "obvious.txt").write_text("\n")
    assert "names no image" in run(*command, tmp_path / "obvious.txt").stderr
    (tmp_path / "obvious.txt").write_bytes("é".encode("latin-1"))
    assert "not UTF-8" in run(*command, tmp_path / "obvious.txt").stderr


@pytest.mark.parametrize(
    ("votes", "options", "message"),
    [
        ("participant,left,right,choice\n", [], "No pair can be counted"),
        ("participant,left,choice\n", [], "has no column right"),
        ("participant,left,right,choice\nann,a,b,left\n", ["--ties", "halve"], "did you mean 'half'"),
        ("participant,left,right,choice\nann,a,b,left\n", ["--score", "seamcan"], "did you mean 'seamcam'"),
        ("participant,left,right,choice\nann,a,b,left\n", ["--samples", "0"], "at least one sample"),
        ("participant,left,right,choice\nann,a,b,left\n", ["--minimum-votes", "0"], "at least 1 vote"),
    ],
)
def test_agreement_that_cannot_be_found(tmp_path: Path, votes: str, options: list[str], message: str) -> None:
    (tmp_path / "votes.csv").write_text(votes)
    (tmp_path / "scores.csv").write_text("image,seamcam\na,1\nb,0\n")
    result = run("agree", tmp_path / "votes.csv", tmp_path / "scores.csv", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_without_votes(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("image,seamcam\na,1\nb,0\n")
    (tmp_path / "empty").mkdir()
    result = run("agree", tmp_path / "empty", tmp_path / "scores.csv")
    assert result.exit_code == 2
    assert "holds no .csv file of votes" in result.stderr
