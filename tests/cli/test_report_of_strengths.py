"""`crypsis measure` writes a page, and `crypsis report` makes it again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from command_line import run


def test_the_page_of_a_measurement(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(2, height=24, width=32)
    out = tmp_path / "measured"
    command = ["measure", "--data", data, "--entries", "cod10k-c/fog", "--workers", 1, "--out", out]
    first = run(*command)
    assert first.exit_code == 0, first.output
    assert f"Report: {out / 'report.html'}" in first.stderr
    page = (out / "report.html").read_text("utf-8")
    assert "Here is what the five of cod10k-c’s fog do to images." in page
    assert run("report", out, "-o", tmp_path / "page.html").exit_code == 0
    assert (tmp_path / "page.html").read_text("utf-8") == page
    again = run("report", out, out, "-o", tmp_path / "both.html")
    assert again.exit_code == 2
    assert "its report is of that folder alone" in again.stderr.replace("\n", " ")
    assert not (tmp_path / "both.html").exists()


def test_images_that_exist_have_no_page(make_set: Callable[..., Path], tmp_path: Path) -> None:
    images = make_set(2, height=24, width=32) / "Imgs"
    degraded, out = tmp_path / "degraded", tmp_path / "pairs"
    shutil.copytree(images, degraded)
    assert run("measure", "--data", images, "--against", degraded, "--workers", 1, "--out", out).exit_code == 0
    refused = run("report", out, "-o", tmp_path / "page.html")
    assert refused.exit_code == 2
    assert "of which there is no page" in refused.stderr.replace("\n", " ")
