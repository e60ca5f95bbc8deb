"""`crypsis train`, `ablate` and `predict`, with the real network at its smallest."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import run
from crypsis.io import decode_map, read_image, read_mask, write_image
from crypsis.report.panel import draw_panel
from crypsis.types import Prediction

training = importlib.import_module("crypsis.cli.training")

SMALL = ["--epochs", 1, "--size", 64, "--batch", 4, "--encoder", "efficientnet-lite0", "--encoder-weights", "none"]
SMALL += ["--device", "cpu", "--workers", 1]


@pytest.fixture
def data(make_set: Callable[..., Path]) -> Path:
    return make_set(6, height=40, width=56)


@pytest.fixture
def torch() -> Any:
    pytest.importorskip("safetensors", reason="needs safetensors")
    found = pytest.importorskip("torch", reason="needs torch")
    found.set_num_threads(1)
    return found


def test_train_then_predict(data: Path, tmp_path: Path, torch: Any) -> None:
    command = ["train", "--data", data, "--out", tmp_path / "run", *SMALL]
    result = run(*command, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["best"] == str(tmp_path / "run" / "best.safetensors")
    assert told["epoch"] == 1
    again = run(*command, "-q")
    assert again.stdout == f"{told['best']}: Dice {told['dice']:.3f} on the images held out, after epoch 1\n"
    assert again.stderr == ""
    model = f"robust-cod-lite:{told['best']}"
    image = data / "Imgs" / "animal-03.png"
    result = run(
        "predict", image, "--model", model, "--out", tmp_path / "maps", "--panel", "--truth", data / "GT", "-q"
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("**Uncertainty against error**")
    assert result.stderr == ""
    assert (tmp_path / "maps" / "uncertainty.csv").read_text("utf-8").splitlines()[1].startswith("animal-03,0.")
    for kind in ("probability", "uncertainty"):
        assert decode_map((tmp_path / "maps" / kind / "animal-03.png").read_bytes()).shape == (40, 56)
    assert read_image(tmp_path / "maps" / "panels" / "animal-03.png").shape == (40, 4 * 56 + 3 * 2, 3)
    changed = run(*command, "--without", "frequency")
    assert changed.exit_code == 2
    assert "without: [] there, ['frequency'] now" in changed.stderr


def test_ablate_prints_table_5_and_continues(
    data: Path, tmp_path: Path, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["ablate", "--data", data, "--test", data, "--limit", 1, "--seeds", 2, "--out", tmp_path / "runs"]
    command += ["--configuration", "full,plain", *SMALL]
    result = run(*command)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "| Configuration | Seeds | Clean | Corrupt | Retention |"
    assert [line.split("|")[1:3] for line in lines[2:]] == [
        [" Full model ", " 2 "], [" Plain EfficientNet U-Net ", " 2 "],
    ]  # fmt: skip
    assert "plain, seed 1:" in result.stderr
    assert "warning: 6 images of --test are trained on" in result.stderr
    loop = importlib.import_module("crypsis.training.loop")
    monkeypatch.setattr(loop, "_accumulate", lambda *_: pytest.fail("a step"))
    rows = json.loads(run(*command, "--json", "-q").stdout)
    assert [row["configuration"] for row in rows] == ["full", "plain"]
    assert all(row["seeds"] == 2 and row["clean_sd"] is not None for row in rows)


def test_train_by_weight_and_rank(data: Path, tmp_path: Path, torch: Any) -> None:
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("image,rank,weight\n" + "".join(f"animal-0{i},{i + 1},{1 + i}\n" for i in range(6)))
    command = ["train", "--data", data, "--out", tmp_path / "run", *SMALL, "--weights", numbers]
    command += ["--curriculum", numbers, "--curriculum-start", 0.5, "--curriculum-until", 1]
    result = run(*command)
    assert result.exit_code == 0, result.output
    plan = json.loads((tmp_path / "run" / "training.json").read_text())
    digest = hashlib.sha256(numbers.read_bytes()).hexdigest()
    assert plan["weights"] == plan["curriculum"] == {"file": "numbers.csv", "sha256": digest}
    assert (plan["settings"]["curriculum_start"], plan["settings"]["curriculum_until"]) == (0.5, 1)
    numbers.write_text(numbers.read_text().replace(",1\n", ",2\n"))
    changed = run(*command)
    assert changed.exit_code == 2
    assert "weights: {'file': 'numbers.csv'" in changed.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--weights", "imagenet"],
            "--weights names a CSV with the columns image,weight; weights to start the encoder",
        ),
        (["--curriculum", "no.csv"], "no.csv: there is no such file; --curriculum names a CSV"),
        (["--curriculum-start", 0], "got 0.0 and 0.5"),
        (["--device", "gpu"], "torch cannot use the device 'gpu' here"),
    ],
)
def test_train_refuses(data: Path, tmp_path: Path, torch: Any, more: list[Any], message: str) -> None:
    result = run("train", "--data", data, "--out", tmp_path / "run", *SMALL, *more)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_two_processes_of_torchrun(data: Path, tmp_path: Path, torch: Any) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "-m", "crypsis", "train", "--data", data, "--out", tmp_path / "run", *SMALL, "--json"]
    result = subprocess.run(
        [str(word) for word in [*command, "--clean-view-first"]],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["best"] == str(tmp_path / "run" / "best.safetensors")
    assert [result.stderr.count(text) for text in ("2/2 steps", "Use it as --model")] == [1, 1]


def test_ctrl_c_waits_for_the_import_of_torch() -> None:
    before, done = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with training._interrupted_later():
            signal.raise_signal(signal.SIGINT)
            done.append("import")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    with training._interrupted_later():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_ablate_is_for_one_process(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = run("ablate", "--data", data, "--test", data, "--out", tmp_path / "runs")
    assert result.exit_code == 2
    assert "crypsis ablate works in one process" in result.stderr


def test_unknown_configuration(data: Path, tmp_path: Path) -> None:
    result = run("ablate", "--data", data, "--test", data, "--out", tmp_path / "runs", "--configuration", "plane")
    assert result.exit_code == 2
    assert "did you mean 'plain'" in result.stderr


def test_train_needs_masks(data: Path, tmp_path: Path) -> None:
    (data / "GT" / "animal-02.png").unlink()
    result = run("train", "--data", data, "--out", tmp_path / "run", *SMALL)
    assert result.exit_code == 2
    assert "1 image without a mask (animal-02)" in result.stderr
    assert not (tmp_path / "run").exists()


def test_train_needs_images(tmp_path: Path) -> None:
    for name in ("Imgs", "GT"):
        (tmp_path / "set" / name).mkdir(parents=True)
    result = run("train", "--data", tmp_path / "set", "--out", tmp_path / "run", *SMALL)
    assert result.exit_code == 2
    assert "holds no images" in result.stderr


def test_predict_folders_without_uncertainty(data: Path, tmp_path: Path) -> None:
    result = run("predict", data / "Imgs", "--model", "saliency", "--out", tmp_path / "maps", "-q")
    assert result.exit_code == 0, result.output
    assert len(list((tmp_path / "maps" / "probability").iterdir())) == 6
    assert not (tmp_path / "maps" / "uncertainty").exists()
    assert not (tmp_path / "maps" / "panels").exists()


def test_predict_goes_on_after_a_bad_image(data: Path, tmp_path: Path) -> None:
    (data / "Imgs" / "animal-01.png").write_bytes(b"no image")
    result = run("predict", data / "Imgs", "--model", "saliency", "--out", tmp_path / "maps")
    assert result.exit_code == 3
    assert "animal-01.png: not an image" in result.stderr
    assert len(list((tmp_path / "maps" / "probability").iterdir())) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["set/Imgs", "set/Imgs/animal-00.png"], "animal-00.png was named twice; name each image once."),
        (["set/Imgs", "set/GT"], "would both become animal-00.png"),
        (["set/Imgs", "set/Img/animal-00.png"], "set/Img/animal-00.png: no such file or folder"),
        (["set/Imgs", "--truth", "few"], "few: holds no mask for animal-00"),
        (["set/Imgs", "--model", "predictions:maps"], "holds maps that are made already"),
        (["few"], "few: holds no images"),
    ],
)
def test_predict_refuses(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few").mkdir()
    run("predict", "set/Imgs", "--model", "saliency", "--out", "maps/clean", "-q")
    model = [] if "--model" in arguments else ["--model", "saliency"]
    result = run("predict", *arguments, *model, "--out", "out")
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_mask_of_another_size_has_no_panel(data: Path, tmp_path: Path) -> None:
    write_image(data / "GT" / "animal-00.png", np.zeros((30, 56), np.uint8))
    result = run(
        "predict", data / "Imgs", "--model", "saliency", "--out", tmp_path / "maps", "--panel", "--truth", data / "GT"
    )  # fmt: skip
    assert result.exit_code == 3
    assert "animal-00.png: the mask has another size" in result.stderr
    assert len(list((tmp_path / "maps" / "panels").iterdir())) == 5


def test_the_demo_is_judged_by_its_own_masks(tmp_path: Path) -> None:
    result = run("predict", "demo", "--out", tmp_path / "maps", "-q")
    assert result.exit_code == 0, result.output
    own, baseline = (line.split("|")[2:4] for line in result.stdout.splitlines()[4:6])
    assert float(own[0].split()[0]) < float(baseline[0].split()[0]) - 0.05  # AUSE
    assert float(own[1].split()[0]) > float(baseline[1].split()[0])
    assert len((tmp_path / "maps" / "uncertainty.csv").read_text("utf-8").splitlines()) == 49
    assert not (tmp_path / "maps" / "panels").exists()


def test_without_uncertainty_there_is_nothing_to_judge(data: Path, tmp_path: Path) -> None:
    result = run("predict", data / "Imgs", "--model", "saliency", "--out", tmp_path / "maps", "--truth", data / "GT")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "saliency tells no uncertainty" in result.stderr


@pytest.mark.parametrize(
    ("with_mask", "with_uncertainty", "views"), [(True, True, 4), (False, True, 3), (False, False, 2)]
)
def test_panel(data: Path, with_mask: bool, with_uncertainty: bool, views: int) -> None:
    image, mask = read_image(data / "Imgs" / "animal-00.png"), read_mask(data / "GT" / "animal-00.png").mask
    maps = [np.full(mask.shape, value, np.float32) for value in (0.5, 1.0)]
    panel = draw_panel(
        image, Prediction(maps[0], maps[1] if with_uncertainty else None), mask if with_mask else None
    )  # fmt: skip
    assert panel.shape == (40, views * 56 + (views - 1) * 2, 3)
    assert np.array_equal(panel[:, :56], image)
    if with_mask:
        assert np.array_equal(panel[:, 58:114, 0] > 128, mask)
    if with_uncertainty:
        red, _, blue = panel[20, -10].astype(int)
        assert red > blue  # the light end of inferno
