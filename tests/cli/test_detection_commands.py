"""The commands about detection runs, as a user gives them."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from command_line import run
from toy_detection import ENTRIES, FAST, MODULE, write_set

OPTIONS = ("--entries", ",".join(ENTRIES), "--severity", "1,5", "--workers", 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("boxes")
    (folder / "toy_module.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    images, annotations = write_set(folder)
    return "--images", images, "--annotations", annotations, "--model", FAST


@pytest.fixture(scope="module")
def done(data: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "toy"
    result = run("bench", "coco-degradation", *data, *OPTIONS, "--out", out)
    assert result.exit_code == 0, result.output
    assert "| Corrupted (mPC) |" in result.stdout
    assert "images under a condition in" in result.stderr
    assert (out / "report.html").stat().st_size > 50_000
    return out


def test_the_same_command_has_nothing_left_to_do(data: tuple[str, ...], done: Path) -> None:
    before = {part.name: part.stat().st_mtime_ns for part in (done / "parts").iterdir()}
    result = run("bench", "coco-degradation", *data, *OPTIONS, "--out", done, "-q", "--json")
    assert result.exit_code == 0, result.output
    (summary,) = json.loads(result.stdout).values()
    assert summary["complete"]
    assert before == {part.name: part.stat().st_mtime_ns for part in (done / "parts").iterdir()}
    other = run("bench", "coco-degradation", *data, *OPTIONS, "--out", done, "--seed", 1)
    assert (other.exit_code, "of another plan" in other.stderr) == (2, True), other.output


def test_shards_make_one_run(data: tuple[str, ...], done: Path, tmp_path: Path) -> None:
    out = tmp_path / "shards"
    first = run("bench", "coco-degradation", *data, *OPTIONS, "--out", out, "--shard", "1/2")
    assert first.exit_code == 0, first.output
    assert "Shard 1/2 is done; 2 of 3 units of the run are there." in first.stderr
    assert not (out / "report.html").exists()
    status = run("status", out)
    assert (status.exit_code, "6 of 10 images done" in status.stdout) == (3, True), status.output
    assert run("verify", out).exit_code == 3
    last = run("bench", "coco-degradation", *data, *OPTIONS, "--out", out, "--shard", "2/2")
    assert last.exit_code == 0, last.output
    assert (out / "report.html").exists()
    digests = [run("verify", folder).stdout.splitlines()[-1] for folder in (out, done)]
    assert digests[0] == digests[1]
    assert digests[0].startswith("digest ")


def test_time_that_is_up(data: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = run("bench", "coco-degradation", *data, *OPTIONS, "--out", out, "--max-minutes", "1e-9")
    assert (result.exit_code, "3 of 3 units are left" in result.stderr) == (3, True), result.output
    assert run("bench", "coco-degradation", *data, *OPTIONS, "--out", out, "-q").exit_code == 0


def test_reading_a_run(done: Path, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("tables", done, "--format", "csv").stdout)))
    assert {"ap", "ar100"} <= {row["metric"] for row in rows}
    assert "\\begin{tabular}" in run("tables", done, "--format", "latex", "--metric", "ap50").stdout
    assert run("report", done, "-o", tmp_path / "page.html", "-q").exit_code == 0
    one = json.loads(run("eval", done, "--json").stdout)
    two = json.loads(run("eval", done, "--evaluator", "pycocotools", "--json").stdout)
    summaries = [next(iter(found.values())) for found in (one, two)]
    assert [summary["evaluator"]["name"] for summary in summaries] == ["hotcoco", "pycocotools"]
    assert summaries[0]["models"] == summaries[1]["models"]
    assert run("status", done).exit_code == 0
    assert json.loads(run("verify", done, "--json").stdout)["ok"] is True


def test_export(done: Path, tmp_path: Path) -> None:
    result = run("export", done, tmp_path / "coco", "--condition", "clean,imagenet-c/contrast@5")
    assert result.exit_code == 0, result.output
    assert "10 images, 2 conditions" in result.stdout
    assert sorted(p.relative_to(tmp_path / "coco").as_posix() for p in (tmp_path / "coco").rglob("*.json")) == [
        "clean.json", "imagenet-c/contrast/5.json", "instances.json",
    ]  # fmt: skip
    for text, words in (("imagenet-c/contrast", "such as imagenet-c/contrast@3"), ("fog@9", "written NAME@1")):
        wrong = run("export", done, tmp_path / "other", "--condition", text)
        assert (wrong.exit_code, words in wrong.stderr) == (2, True), wrong.output


def test_dry_run_writes_nothing(data: tuple[str, ...], tmp_path: Path) -> None:
    result = run("bench", "coco-degradation", *data, *OPTIONS, "--out", tmp_path / "run", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "10 images × 9 conditions = 90 images to look at (80 of them degraded), by 1 detector" in result.stdout
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--shard", "3/2"), "written i/n"),
        (("--engine", "spark"), "--engine is local or ray"),
        (("--address", "auto"), "is for --engine ray"),
        (("--labels", "nams"), "did you mean 'names'"),
        (("--keep", "walrus"), "no class of toy 'walrus'"),
        (("--severity", "6"), "Severities are 1 to 5"),
        (("--max-minutes", "0"), "a number above 0"),
        (("--entries", "imagenet-c/fogg"), "did you mean 'fog'"),
        (("--model", "yolo.onnx"), "onnx:yolo.onnx"),
    ],
)
def test_wrong_use(data: tuple[str, ...], tmp_path: Path, more: tuple[str, ...], words: str) -> None:
    result = run("bench", "coco-degradation", *data, "--workers", 1, "--out", tmp_path / "run", *more)
    assert (result.exit_code, words in result.stderr) == (2, True), result.output


def test_runs_of_different_kinds_are_not_mixed(done: Path, tmp_path: Path) -> None:
    masks = tmp_path / "masks"
    assert (
        run("bench", "cod10k-c", "--data", "demo", "--model", "saliency", "--limit", 1, "-o", masks, "-q").exit_code
        == 0
    )
    for command in (("tables", done, masks), ("report", masks, done)):
        result = run(*command)
        assert (result.exit_code, "give them one by one" in result.stderr) == (2, True), result.output
    assert run("eval", masks, "--bootstrap", 10).exit_code == 2
    assert run("eval", masks).exit_code == 0
    assert run("verify", masks).exit_code == 0


def test_doctor() -> None:
    found = json.loads(run("doctor", "--json").stdout)
    assert found["problems"] == []
    assert "No problem found" in run("doctor").stdout
