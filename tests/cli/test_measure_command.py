"""`crypsis measure` and `crypsis calibrate`."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import crypsis
from command_line import run
from crypsis.io import write_image


@pytest.fixture
def data(make_set: Callable[..., Path]) -> Path:
    return make_set(3, height=24, width=32)


def test_measure_then_print_in_every_format(data: Path, tmp_path: Path) -> None:
    command = ["measure", "--data", data, "--entries", "cod10k-c/fog,cod10k-c/rain", "--workers", 1]
    command += ["--out", tmp_path / "run"]
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert "| Fog |" in result.stdout
    assert " s of CPU, " in result.stderr
    assert "(decode" in result.stderr
    again = run(*command, "--format", "latex", "--spread", "-q")
    assert "\\begin{tabular}" in again.stdout
    assert again.stderr == ""
    rows = list(csv.DictReader(io.StringIO(run(*command, "--format", "csv").stdout)))
    assert len(rows) == 2 * 5 * 2
    summary = json.loads(run(*command, "--json").stdout)
    assert set(summary["entries"]) == {"cod10k-c/fog", "cod10k-c/rain"}
    assert summary["failed"] == {}


def test_a_family_and_a_metric(data: Path, tmp_path: Path) -> None:
    result = run(
        "measure", "--data", data, "--family", "cod10k-c", "--metric", "psnr", "--limit", 1, "--out", tmp_path / "run",
        "--workers", 1, "--json",
    )  # fmt: skip
    summary = json.loads(result.stdout)
    assert len(summary["entries"]) == 8
    assert all(set(levels) == {"psnr", "unchanged"} for levels in summary["entries"].values())


def test_bad_images_end_with_3(data: Path, tmp_path: Path) -> None:
    (data / "Imgs" / "animal-01.png").write_bytes(b"no image")
    chosen = ["--data", data / "Imgs"]
    result = run("measure", *chosen, "--entries", "cod10k-c/fog", "--workers", 1, "--out", tmp_path / "run", "--json")
    assert result.exit_code == 3
    assert "animal-01.png" in result.stderr
    summary = json.loads(result.stdout)
    assert (summary["images"], summary["measured"], len(summary["failed"])) == (3, 2, 1)
    result = run("calibrate", *chosen, "--entry", "cod10k-c/fog", "-o", tmp_path / "fog.json")
    assert result.exit_code == 3
    assert json.loads((tmp_path / "fog.json").read_text("utf-8"))["count"] == 2


@pytest.fixture
def haze(data: Path, tmp_path: Path) -> Path:
    """Return what `crypsis degrade` wrote of one entry at severities 2 and 4."""
    run("degrade", data / "Imgs", tmp_path / "out", "--op", "cod10k-c/fog", "--severity", "2,4", "--workers", 1, "-q")
    return tmp_path / "out" / "cod10k-c" / "fog"


def test_pairs_in_every_format(data: Path, haze: Path, tmp_path: Path) -> None:
    command = ["measure", "--data", data / "Imgs", "--against", f"haze={haze}", "--against", f"one={haze / '2'}"]
    command += ["--workers", 1, "--out", tmp_path / "run"]
    result = run(*command, "--near", "imagenet-c/fog")
    assert result.exit_code == 0, result.output
    assert "| Degraded images | Severity | 1−SSIM ↑ | 1−SSIM sd | PSNR dB ↓ | PSNR dB sd | Pairs |" in result.stdout
    assert "| haze | 2 | 0." in result.stdout
    assert "| one | – | 0." in result.stdout
    assert "- haze s=2: 1−SSIM 0." in result.stdout
    assert "imagenet-c/fog s=1 (0.332)" in result.stdout
    assert "means over the demo images" in result.stdout
    assert "warning: There are only 3 images" in result.stderr
    again = run(*command, "-f", "latex", "-q")
    assert "\\begin{tabular}{llrrrrrr}" in again.stdout
    assert again.stderr == ""
    rows = list(csv.DictReader(io.StringIO(run(*command, "-f", "csv").stdout)))
    assert [(r["label"], r["severity"], r["metric"]) for r in rows] == [
        ("haze", "2", "1-ssim"), ("haze", "2", "psnr"), ("haze", "4", "1-ssim"), ("haze", "4", "psnr"),
        ("one", "", "1-ssim"), ("one", "", "psnr"),
    ]  # fmt: skip
    summary = json.loads(run(*command, "--json").stdout)
    assert f"{summary['sets'][0]['psnr']['mean']:.6f}" == rows[1]["mean"]


def test_a_pair_of_two_sizes_ends_with_3(data: Path, haze: Path, tmp_path: Path) -> None:
    (haze / "2" / "animal-01.png").write_bytes((haze / "2" / "animal-00.png").read_bytes()[:60])
    write_image(haze / "4" / "animal-02.png", np.zeros((5, 5, 3), np.uint8))
    result = run("measure", "--data", data / "Imgs", "--against", haze, "--workers", 1, "--out", tmp_path / "run")
    assert result.exit_code == 3
    assert "animal-01.png: damaged" in result.stderr
    assert "animal-02.png: Strength compares images of one size" in result.stderr
    assert "| fog | 2 |" in result.stdout


def test_unpaired_images(data: Path, haze: Path, tmp_path: Path) -> None:
    (haze / "2" / "animal-01.png").unlink()
    command = ["measure", "--data", data / "Imgs", "--against", haze / "2", "--workers", 1, "--out", tmp_path / "run"]
    result = run(*command)
    assert result.exit_code == 2
    assert "1 of 3 clean images have no partner" in result.stderr
    result = run(*command, "--allow-unpaired")
    assert result.exit_code == 0
    assert "warning: fog s=2: 1 of 3 clean images are left out" in result.stderr


def test_calibrate_writes_what_canonical_mode_takes(data: Path, tmp_path: Path) -> None:
    result = run("calibrate", "--data", data, "--entry", "cod10k-c/fog", "--limit", 2, "-o", tmp_path / "fog.json")
    assert result.exit_code == 0, result.output
    assert "cod10k-c/fog, 1-ssim, 2 images" in result.stdout
    calibration = json.loads((tmp_path / "fog.json").read_text("utf-8"))
    assert f"{calibration['strengths'][2]:.4f}" in result.stdout
    image = np.full((20, 20, 3), 90, np.uint8)
    worse = crypsis.apply_degradation(image, "cod10k-c/fog", severity=5, mode="canonical", calibration=calibration)
    np.testing.assert_array_equal(worse, crypsis.apply_degradation(image, "cod10k-c/fog", severity=5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["measure", "--entries", "cod10k-c/fogg", "--out", "{tmp}/r"], "did you mean 'fog'"),
        (
            ["measure", "--against", "{tmp}", "--entries", "cod10k-c/fog", "--out", "{tmp}/r"],
            "takes images as they are",
        ),
        (["measure", "--against", "{tmp}", "--family", "arniqa", "--out", "{tmp}/r"], "takes images as they are"),
        (["measure", "--against", "{tmp}", "--seed", "0", "--out", "{tmp}/r"], "takes images as they are"),
        (["measure", "--against", "{tmp}", "--near", "cod10k-c/fogg", "--out", "{tmp}/r"], "did you mean 'fog'"),
        (["measure", "--near", "cod10k-c/fog", "--out", "{tmp}/r"], "name these with --against"),
        (
            ["measure", "--against", "{tmp}", "--metric", "lpips", "--near", "cod10k-c/fog", "--out", "{tmp}/r"],
            "--near compares in 1-ssim or psnr; name one of these",
        ),
        (["measure", "--out", "{tmp}/set/pipe"], "pipe is a file; --out names a folder"),
        (["calibrate", "--entry", "cod10k-c/fog", "-o", "{tmp}"], "is a folder; --out names a file"),
        (["calibrate", "--entry", "cod10k-c/fog", "-o", "{tmp}/set/pipe"], "is no regular file; --out names one"),
        (["calibrate", "--entry", "cod10k-c/fog", "-o", "{tmp}/set/pipe/c.json"], "cannot be written"),
        (["measure", "--allow-unpaired", "--out", "{tmp}/r"], "name these with --against"),
        (["measure", "--metric", "snr", "--out", "{tmp}/r"], "did you mean 'psnr'"),
        (["calibrate", "--entry", "cod10k-c/fog", "--metric", "snr", "-o", "{tmp}/c.json"], "did you mean 'psnr'"),
    ],
)
def test_mistakes(arguments: list[str], message: str, data: Path, tmp_path: Path) -> None:
    os.mkfifo(data / "pipe")  # what a device is too: neither a folder nor a regular file
    filled = [a.replace("{tmp}", str(tmp_path)) for a in arguments]
    result = run(*filled, "--data", data)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.glob("[rc]*"))
