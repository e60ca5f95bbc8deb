"""`crypsis score`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import known_search as known
from command_line import run
from crypsis.camouflage.vote_files import read_scores

EMBEDDED = ["--observer", "embedded,segment=grabcut,limit=2", "--species", "frog", "--workers", 1]


@pytest.fixture
def data(make_set: Callable[..., Path]) -> Path:
    return make_set(5, height=96, width=128)


def test_scores_a_page_and_a_table(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ["score", "--data", data, *EMBEDDED, "--score", "seamcam,s_rf", "--limit", 3, "--out", out]
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert "| SeamCam ζ | 3 |" in result.stdout
    assert "| frog | 3 |" in result.stdout
    assert "propose" in result.stderr
    table = read_scores(out / "scores.csv")
    assert {name: len(values) for name, values in table.scores.items()} == {"seamcam": 3, "s_rf": 3}
    assert "<h1>How well hidden are they?</h1>" in (out / "report.html").read_text("utf-8")
    again = run(*command, "--json", "-q")
    assert (again.exit_code, again.stderr) == (0, "")
    assert json.loads(again.stdout)["scored"] == 3
    assert run("report", out, "--out", tmp_path / "page.html").exit_code == 0
    assert (tmp_path / "page.html").read_bytes() == (out / "report.html").read_bytes()
    for other in ("tables", "status"):
        refused = run(other, out)
        assert (refused.exit_code, "is a run of camouflage scores" in refused.stderr) == (2, True)


def test_it_continues_and_its_proposals_can_be_used(data: Path, tmp_path: Path) -> None:
    command = ["score", "--data", data, *EMBEDDED, "--out", tmp_path / "run"]
    assert "left; the same command continues" in run(*command, "--max-minutes", 1e-9).stderr
    assert not (tmp_path / "run" / "scores.csv").exists()
    assert run(*command, "-q").exit_code == 0
    stored = f"proposals:{tmp_path / 'run' / 'proposals'}"
    result = run("score", "--data", data, "--observer", stored, "--out", tmp_path / "again", "--workers", 1)
    assert result.exit_code == 0, result.output
    assert "'animal' is looked for" in result.stderr
    first, second = (read_scores(tmp_path / name / "scores.csv").scores for name in ("run", "again"))
    assert first == second


def test_a_damaged_image_ends_with_3(data: Path, tmp_path: Path) -> None:
    (data / "Imgs" / "animal-01.png").write_bytes(b"no image")
    result = run("score", "--data", data, "--score", "s_rf", "--out", tmp_path / "run", "--workers", 1)
    assert result.exit_code == 3
    assert "animal-01.png" in result.stderr
    assert len(read_scores(tmp_path / "run" / "scores.csv").scores["s_rf"]) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score", "semcam"], "did you mean 'seamcam'"),
        (["--observer", "sam"], "no observer 'sam'"),
        (["--tau-alpha", 3], "tau_alpha"),
        (["--data", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_one_sentence(data: Path, tmp_path: Path, options: list[object], message: str) -> None:
    result = run("score", "--data", data, "--out", tmp_path / "run", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture
def known_run(tmp_path: Path) -> list[object]:
    """A command on ten images whose best thresholds are known, and its votes in `votes.csv`."""
    data = known.write_data(tmp_path, 10)
    known.write_votes(tmp_path / "votes.csv", known.votes(10))
    stored = f"proposals:{tmp_path / 'proposals'}"
    return [
        "score", "--data", data, "--observer", stored, "--species", "owl", "--workers", 1, "--out", tmp_path / "run",
        "--sweep-pairs", 15, "--sweep-alphas", "0.2,0.5,0.8", "--sweep-betas", "0.1,0.2,0.4",
    ]  # fmt: skip


def test_a_search_for_thresholds(known_run: list[object], tmp_path: Path) -> None:
    command, out = [*known_run, "--sweep", tmp_path / "votes.csv"], tmp_path / "run"
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert "| SeamCam ζ | 10 |" in result.stdout
    assert "| chosen | 0.50 | 0.20 | 2 | 100.0% | 30 | 100.0% [88.6, 100.0] |" in result.stdout
    assert "Chosen on 15 pairs: τα 0.5, τβ 0.2, K 2" in result.stdout
    assert "Of 45 pairs voted on, 30 are evaluated. Left out: 15 were" in result.stdout
    shown = f"--observer proposals:{tmp_path / 'proposals'} --tau-alpha 0.5 --tau-beta 0.2 --top-k 2 --out NEW"
    assert shown in result.stderr
    assert "<h1>Which thresholds agree with people?</h1>" in (out / "sweep.html").read_text("utf-8")
    files = {name: (out / name).read_bytes() for name in ("sweep.json", "sweep.csv", "tuning_pairs.csv", "sweep.html")}
    again = run(*command, "--json", "-q")
    assert (again.exit_code, again.stderr) == (0, "")
    document = json.loads(again.stdout)
    assert document["scored"] == 10
    assert document["sweep"] == json.loads(files["sweep.json"])
    assert {name: (out / name).read_bytes() for name in files} == files
    # what it advises gives the scores of the thresholds chosen
    best = ["--tau-alpha", 0.5, "--tau-beta", 0.2, "--top-k", 2, "--out", tmp_path / "best"]
    assert run(*known_run[:9], *best, "-q").exit_code == 0
    agreed = run("agree", tmp_path / "votes.csv", tmp_path / "best" / "scores.csv", "--samples", 10)
    assert "| seamcam | 45 | 45 | 100.0%" in agreed.stdout


def test_a_search_is_stopped_and_goes_on(known_run: list[object], tmp_path: Path) -> None:
    command = [*known_run, "--sweep", tmp_path / "votes.csv"]
    assert run(*known_run[:11], "-q").exit_code == 0  # a finished run of scores
    stopped = run(*command, "--max-minutes", 1e-9)
    assert stopped.exit_code == 3
    assert "10 of 10 images are left" in stopped.stderr
    assert not (tmp_path / "run" / "sweep.json").exists()
    done = run(*command)
    assert done.exit_code == 0
    assert "10 images at all thresholds in" in done.stderr


def test_a_search_names_images_that_failed(known_run: list[object], tmp_path: Path) -> None:
    (tmp_path / "set" / "Imgs" / "animal-03.png").write_bytes(b"no image")
    result = run(*known_run, "--sweep", tmp_path / "votes.csv")
    assert result.exit_code == 3
    assert "9 lack a score because an image failed" in result.stdout
    assert "1 failed" in (tmp_path / "run" / "sweep.html").read_text("utf-8")
    known.write_data(tmp_path, 10)  # mended
    assert run(*known_run, "--sweep", tmp_path / "votes.csv", "-q").exit_code == 0
    assert "1 failed" not in (tmp_path / "run" / "sweep.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sweep", "nowhere.csv"], "nowhere.csv: cannot be read"),
        (["--sweep", "votes.csv", "--sweep-pairs", 45], "--sweep-pairs is at least 1 and less than those"),
        (["--sweep", "votes.csv", "--minimum-votes", 4], "0 pairs of 45 have a majority"),
        (["--sweep", "votes.csv", "--catch-share", 2], "a share of catch trials lies in [0, 1]"),
        (
            ["--sweep", "votes.csv", "--score", "s_rf"],
            "this run scores s_rf; name a new run folder and --score seamcam",
        ),
        (["--sweep", "votes.csv", "--limit", 4], "(--limit took 4 of its images) 'animal-01'"),
        (["--sweep", "votes.csv", "--sweep-alphas", "0.1;0.2"], "--sweep-alphas takes numbers with commas"),
        (["--sweep", "votes.csv", "--sweep-betas", "0.1,2"], "tau_beta is a threshold in [0, 1]; got 2.0"),
        (["--sweep", "votes.csv", "--sweep-top-k", 21], "equal to 20"),
        ([], "--sweep-pairs is for a search; give --sweep votes.csv too"),
    ],
)
def test_mistakes_about_a_search_are_told_before_any_work(
    known_run: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[object], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*known_run, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()
