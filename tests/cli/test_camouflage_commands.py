"""`crypsis tables` and `crypsis report` with --camouflage, and `crypsis curriculum`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from command_line import run
from crypsis.bench.detect import run_detection
from crypsis.bench.plan import plan_cod10k_c
from crypsis.bench.run import run_masks
from crypsis.camouflage.vote_files import read_scores
from crypsis.io import write_image
from crypsis.report.camouflage_results import image_losses
from crypsis.results import RunFolder
from toy_detection import Nobody, plan_toy, write_results, write_set


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a segmenter over ten images, and scores of them."""
    folder = tmp_path_factory.mktemp("made")
    for i in range(10):
        image, mask = np.random.default_rng(i).integers(0, 200, (24, 32, 3), np.uint8), np.zeros((24, 32), np.uint8)
        mask[6:18, 8 + i // 2 : 20], image[6:18, 8:20] = 255, 20 * i
        write_image(folder / "set" / "Imgs" / f"animal-{i:02d}.png", image)
        write_image(folder / "set" / "GT" / f"animal-{i:02d}.png", mask)
    run_masks(plan_cod10k_c(str(folder / "set"), ["saliency"]), folder / "run")
    lines = [f"animal-{i:02d},frog,{(7 * i) % 10 / 10},{i}" for i in range(10)]
    (folder / "scores.csv").write_text("\n".join(["image,species,seamcam,other", *lines]) + "\n")
    return folder


def test_tables_by_camouflage(made: Path) -> None:
    options = ["--camouflage", made / "scores.csv", "--groups", 2]
    result = run("tables", made / "run", *options)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("**By camouflage**\n\n| Camouflage | Images | Clean Dice ↑ |")
    assert "| Q1 easiest (0–0.4) | 5 |" in result.stdout
    assert "Other scores in that file: other." in result.stdout
    document = json.loads(run("tables", made / "run", *options, "--json").stdout)
    assert [len(group["images"]) for group in document["groups"]] == [5, 5]
    rows = list(csv.DictReader(io.StringIO(run("tables", made / "run", *options, "-f", "csv").stdout)))
    found = {row["group"]: float(row["value"]) for row in rows if row["kind"] == "clean"}
    clean = document["models"]["saliency"]["clean"]
    assert found == {
        group["name"]: pytest.approx(cell["value"], abs=1e-6)
        for group, cell in zip(document["groups"], clean, strict=True)
    }
    other = run("tables", made / "run", *options, "--score", "other", "--metric", "iou", "--seen-from", 0.2)
    assert "| Q1 easiest (0–4) | 5 |" in other.stdout
    assert "the group's mean is below IoU 0.2." in other.stdout


def test_a_report_by_camouflage(made: Path) -> None:
    command = ["report", made / "run", "--camouflage", made / "scores.csv", "--groups", 2, "-o", made / "page.html"]
    assert run(*command).exit_code == 0
    assert '<section id="camouflage"' in (made / "page.html").read_text("utf-8")


def test_detections_by_camouflage(tmp_path: Path) -> None:
    data = write_set(tmp_path, 10)
    model = write_results(tmp_path / "net", plan_toy(data, [Nobody()]), lambda _, thing: thing)
    run_detection(plan_toy(data, [model]), tmp_path / "run")
    (tmp_path / "scores.csv").write_text("image,s\n" + "".join(f"photo-{i:02d},{i}\n" for i in range(10)))
    result = run("tables", tmp_path / "run", "--camouflage", tmp_path / "scores.csv", "--groups", 2, "--metric", "ap50")
    assert result.exit_code == 0, result.output
    assert "| Q1 easiest (0–4) | 5 | 1.000 [1.000, 1.000] |" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tables", "{run}", "--score", "seamcam"], "--score is for --camouflage"),
        (["report", "{run}", "--groups", "3"], "--groups is for --camouflage"),
        (["tables", "{run}", "--seen-from", "0.5"], "--seen-from is for --camouflage"),
        (["tables", "{run}", "--camouflage", "{scores}", "--paper"], "give one of them"),
        (["tables", "{run}", "--camouflage", "{scores}"], "10 images with a score are too few for 4 groups of 5"),
        (["tables", "{run}", "--camouflage", "{scores}", "--groups", "1"], "two or more; got 1"),
        (["tables", "{run}", "--camouflage", "{scores}", "--score", "seam"], "did you mean 'seamcam'?"),
        (["tables", "{run}", "--camouflage", "{scores}", "--seen-from", "2"], "between 0 and 1"),
        (["tables", "{run}", "--camouflage", "{scores}", "--groups", "2", "--metric", "mae"], "By camouflage: dice"),
        (["report", "{run}", "--camouflage", "absent.csv"], "absent.csv: cannot be read"),
        (["report", "{run}", "--camouflage", "{run}"], "scores.csv: cannot be read"),
        (["report", "{run}", "--camouflage", "{others}"], "of other images: 'a' there, 'animal-00' in the run"),
        (["report", "{run}", "--camouflage", "{endings}"], "differ in folder or ending only"),
    ],
)
def test_mistakes_of_reports(made: Path, arguments: list[str], words: str) -> None:
    (made / "others.csv").write_text("image,s\na,1\nb,2\n")
    (made / "endings.csv").write_text("image,s\nanimal-00.png,1\nanimal-01.png,2\n")
    places = {name: made / f"{name}.csv" for name in ("scores", "others", "endings")} | {"run": made / "run"}
    result = run(*(text.format(**places) for text in arguments))
    assert (result.exit_code, "Traceback" in result.output) == (2, False)
    assert words in result.stderr


def test_a_curriculum_of_scores(made: Path) -> None:
    out = made / "curriculum.csv"
    result = run("curriculum", made / "scores.csv", "--out", out)
    assert result.exit_code == 0, result.output
    assert "10 images by seamcam, from animal-00 to animal-07; weights 0.550 to 1.450\n" in result.stderr
    table = read_scores(out).scores
    assert list(table) == ["seamcam", "rank", "weight"]
    assert table["seamcam"] == read_scores(made / "scores.csv").scores["seamcam"]
    order = sorted(table["rank"], key=table["rank"].__getitem__)
    assert order == sorted(table["seamcam"], key=table["seamcam"].__getitem__)
    assert sum(table["weight"].values()) == pytest.approx(10)
    (made / "ties.csv").write_text("image,s\na,1\nc,1\nb,1\nd,0\n")
    ties = run("curriculum", made / "ties.csv", "--out", made / "ties-out.csv").stderr
    assert "; 3 share their s with another and stand in the order of their names\n" in ties
    assert (made / "ties-out.csv").read_text().splitlines()[2].startswith("a,1.0,2,")
    assert run("curriculum", made / "scores.csv", "--score", "other", "--strength", 0, "-o", out, "-q").stderr == ""
    assert set(read_scores(out).scores["weight"].values()) == {1.0}


def test_a_curriculum_of_what_a_model_gets_wrong(made: Path) -> None:
    out = made / "curriculum.csv"
    for on in ("corrupted", "clean"):
        result = run("curriculum", "--run", made / "run", "--on", on, "--out", out)
        assert result.exit_code == 0, result.output
        table = read_scores(out).scores
        assert table[f"loss-{on}"] == image_losses(RunFolder.open(made / "run"), "saliency", on)
        assert max(table["weight"], key=table["weight"].__getitem__) == max(table["rank"], key=table["rank"].get)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one of the two"),
        (["{scores}", "--run", "{run}"], "one of the two"),
        (["{scores}", "--model", "saliency"], "--model is for --run"),
        (["--run", "{run}", "--score", "seamcam"], "--score is for a file of scores"),
        (["--run", "{run}", "--model", "salience"], "did you mean 'saliency'?"),
        (["--run", "{run}", "--on", "rain"], "clean or on corrupted images; got 'rain'"),
        (["{run}"], "scores.csv: cannot be read"),
        (["{scores}", "--score", "seam"], "did you mean 'seamcam'?"),
        (["{scores}", "--strength", "-1"], "0 or more"),
        (["{gaps}"], "gaps.csv: 1 of 3 images have no s, such as b; score them, or delete their lines"),
        (["{twice}"], "'a' is listed a second time"),
        (["{empty}"], "empty.csv: lists no image"),
        (["{equal}"], "same score"),
    ],
)
def test_mistakes_of_curricula(made: Path, arguments: list[str], words: str) -> None:
    files = {
        "gaps": "image,s\na,1\nb,nan\nc,2\n", "twice": "image,s\na,1\na,2\n", "empty": "image,s\n",
        "equal": "image,s\na,1\nb,1\n",
    }  # fmt: skip
    for name, text in files.items():
        (made / f"{name}.csv").write_text(text)
    places = {name: made / f"{name}.csv" for name in ("scores", *files)} | {"run": made / "run"}
    result = run("curriculum", *(text.format(**places) for text in arguments), "--out", made / "out.csv")
    assert (result.exit_code, "Traceback" in result.output) == (2, False)
    assert words in result.stderr
    assert not (made / "out.csv").exists()


def test_a_run_of_several_models_needs_a_choice(make_set: Callable[..., Path], tmp_path: Path) -> None:
    plan = plan_cod10k_c(str(make_set(2)), ["saliency", "saliency,name=second"])
    run_masks(plan, tmp_path / "run")
    result = run("curriculum", "--run", tmp_path / "run", "--out", tmp_path / "out.csv")
    assert (result.exit_code, "choose one with --model" in result.stderr) == (2, True)
    chosen = run("curriculum", "--run", tmp_path / "run", "--model", "second", "--out", tmp_path / "out.csv")
    assert chosen.exit_code == 0, chosen.output
