"""`crypsis measure` and `crypsis calibrate`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import crypsis
from command_line import run


@pytest.fixture
def data(make_set: Callable[..., Path]) -> Path:
    return make_set(3, height=24, width=32)


def test_measure_then_print_in_every_format(data: Path, tmp_path: Path) -> None:
    command = ["measure", "--data", data, "--entries", "cod10k-c/fog,cod10k-c/rain", "--workers", 1]
    command += ["--out", tmp_path / "run"]
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert "| Fog |" in result.stdout
    assert "in 0." in result.stderr
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
        (["measure", "--metric", "snr", "--out", "{tmp}/r"], "did you mean 'psnr'"),
        (["calibrate", "--entry", "cod10k-c/fog", "--metric", "snr", "-o", "{tmp}/c.json"], "did you mean 'psnr'"),
    ],
)
def test_mistakes(arguments: list[str], message: str, data: Path, tmp_path: Path) -> None:
    filled = [a.replace("{tmp}", str(tmp_path)) for a in arguments]
    result = run(*filled, "--data", data)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.glob("[rc]*"))
