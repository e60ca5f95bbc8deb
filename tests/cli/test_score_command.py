"""`crypsis score`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

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
        (["--observer", "sam"], "no kind of model 'sam'"),
        (["--tau-alpha", 3], "tau_alpha"),
        (["--data", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_one_sentence(data: Path, tmp_path: Path, options: list[object], message: str) -> None:
    result = run("score", "--data", data, "--out", tmp_path / "run", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
