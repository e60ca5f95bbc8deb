"""Degraded copies of files, under one degradation or a chain."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from command_line import run
from crypsis.bench.degrade import STRENGTHS_FILE, Target, degrade_files, parse_step
from crypsis.catalog.composition import chain
from crypsis.errors import InputError, UnknownNameError
from crypsis.io import read_image, write_image

FOG, NOISE, RAIN = "cod10k-c/fog", "cod10k-c/gaussian_noise", "cod10k-c/rain"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name in ("a.png", "sub/b.jpg"):
        write_image(tmp_path / "photos" / name, rng.integers(0, 256, (20, 30, 3), np.uint8))
    return tmp_path / "photos"


def files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("options", "folders", "levels"),
    [
        (("--op", FOG, "--op", NOISE), ["cod10k-c.fog+cod10k-c.gaussian_noise/3"], [(3, 3)]),
        (
            ("--op", FOG, "--op", NOISE, "--severity", "2,4"),
            [f"cod10k-c.fog+cod10k-c.gaussian_noise/{s}" for s in (2, 4)],
            [(2, 2), (4, 4)],
        ),
        (
            ("--op", f"{FOG}@1", "--op", NOISE, "--severity", "5"),
            ["cod10k-c.fog@1+cod10k-c.gaussian_noise/5"],
            [(1, 5)],
        ),
        (("--op", f"{FOG}@1", "--op", f"{NOISE}@4"), ["cod10k-c.fog@1+cod10k-c.gaussian_noise@4"], [(1, 4)]),
    ],
)
def test_chains(
    options: tuple[str, ...], folders: list[str], levels: list[tuple[int, int]], photos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run("degrade", photos, out, *options, "--seed", 3, "-q", "--workers", 1)
    assert result.exit_code == 0, result.output
    assert files(out) == sorted(f"{folder}/{key}.png" for folder in folders for key in ("a", "sub/b"))
    for folder, (fog, noise) in zip(folders, levels, strict=True):
        expected = chain(read_image(photos / "sub" / "b.jpg"), [(FOG, fog), (NOISE, noise)], seed=3, image_key="sub/b")
        assert np.array_equal(read_image(out / folder / "sub" / "b.png"), expected)


def test_one_degradation_with_its_own_severity(photos: Path, tmp_path: Path) -> None:
    outcome = degrade_files(photos, tmp_path / "out", ops=[f"{RAIN}@2"])
    assert (outcome.written, outcome.failures) == (2, ())
    assert files(tmp_path / "out") == ["cod10k-c/rain/2/a.png", "cod10k-c/rain/2/sub/b.png"]


def test_a_chain_on_one_file(photos: Path, tmp_path: Path) -> None:
    target = tmp_path / "one.png"
    assert run("degrade", photos / "a.png", target, "--op", f"{FOG}@1", "--op", f"{FOG}@2").exit_code == 0
    expected = chain(read_image(photos / "a.png"), [(FOG, 1), (FOG, 2)], image_key="a")
    assert np.array_equal(read_image(target), expected)


def test_formats_can_be_kept(photos: Path, tmp_path: Path) -> None:
    degrade_files(photos, tmp_path / "out", ops=[FOG], severities=[1], image_format="keep")
    assert files(tmp_path / "out") == ["cod10k-c/fog/1/a.png", "cod10k-c/fog/1/sub/b.jpg"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Name a degradation"),
        (("--op", f"{FOG}@6"), "NAME@1 to NAME@5"),
        (("--op", f"{FOG}@"), "NAME@1 to NAME@5"),
        (("--op", "cod10k-c/fogg@2"), "did you mean 'fog'"),
        (("--op", f"{FOG}@1", "--severity", "2"), "leave it out"),
        (("--op", FOG, "--truth", "aligned"), "need --plan"),
        (("--op", FOG, "--dry-run"), "need --plan"),
        (("--op", FOG, "--plan", "full"), "--op is for copies without one"),
        (("--plan", "most"), "known: full, round-robin"),
        (("--op", FOG, "--metric", "psnr"), "--metric and --tolerance are of --strength"),
        (("--op", FOG, "--tolerance", "1"), "--metric and --tolerance are of --strength"),
        (("--plan", "full", "--tolerance", "1"), "--metric and --tolerance are of --strength"),
        (("--op", FOG, "--strength", "0.1", "--format", "jpg"), "would add losses"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], words: str, photos: Path, tmp_path: Path) -> None:
    result = run("degrade", photos, tmp_path / "out", *arguments)
    assert result.exit_code == 2, result.output
    assert words in result.output.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def rows(file: Path) -> dict[str, dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return {row["file"]: row for row in csv.DictReader(lines)}


def test_strengths_of_single_files_stand_beside_each(photos: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        arguments = ("--op", FOG, "--strength", 0.1, "--tolerance", 0.05, "--workers", 1, "-q")
        assert run("degrade", photos / "a.png", tmp_path / "out" / f"{name}.png", *arguments).exit_code == 0
    assert files(tmp_path / "out") == ["one.png", "one.strengths.csv", "two.png", "two.strengths.csv"]
    assert list(rows(tmp_path / "out" / "one.strengths.csv")) == ["one.png"]


def test_strengths_of_a_folder_are_in_one_table(photos: Path, tmp_path: Path) -> None:
    degrade_files(photos, tmp_path / "out", ops=[FOG], strength=Target(0.1, tolerance=0.05))
    assert list(rows(tmp_path / "out" / FOG / "1-ssim=0.1" / STRENGTHS_FILE)) == ["a.png", "sub/b.png"]


def test_what_fails_at_a_strength_does_not_stay(photos: Path, tmp_path: Path) -> None:
    at = tmp_path / "out" / NOISE / "psnr=20"
    write_image(photos / "c.png", np.full((20, 30, 3), 128, np.uint8))
    assert degrade_files(photos, tmp_path / "out", ops=[NOISE], strength=Target(20, "psnr", 9)).failures == ()
    assert files(at) == ["a.png", "c.png", STRENGTHS_FILE, "sub/b.png"]
    (photos / "a.png").write_bytes(b"no image")
    assert len(degrade_files(photos, tmp_path / "out", ops=[NOISE], strength=Target(20, "psnr", 9)).failures) == 1
    assert files(at) == ["c.png", STRENGTHS_FILE, "sub/b.png"]
    assert sorted(rows(at / STRENGTHS_FILE)) == ["c.png", "sub/b.png"]
    outcome = degrade_files(photos, tmp_path / "out", ops=[NOISE], strength=Target(20, "psnr", 1e-9))
    assert (outcome.written, len(outcome.failures), files(at)) == (0, 3, [])


def test_the_source_stays_where_it_is_also_the_target(photos: Path) -> None:
    before = (photos / "a.png").read_bytes()
    outcome = degrade_files(photos / "a.png", photos / "a.png", ops=[FOG], strength=Target(1.9))
    assert (len(outcome.failures), (photos / "a.png").read_bytes()) == (1, before)


@pytest.mark.parametrize("image_format", ["jpg", "webp", "keep"])
def test_a_strength_is_not_written_with_losses(image_format: str, photos: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"would add losses to it; write \.png"):
        degrade_files(photos, tmp_path / "out", ops=[FOG], strength=Target(0.1), image_format=image_format)
    with pytest.raises(InputError, match=r"and \.JPG would add losses"):
        degrade_files(photos / "a.png", tmp_path / "out.JPG", ops=[FOG], strength=Target(0.1))
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(
    ("strength", "name"),
    [(0.5, "psnr=0.5"), (0.500000001, "psnr=0.500000001"), (25, "psnr=25"), (25.0, "psnr=25"), (1e-7, "psnr=1e-07")],
)
def test_every_strength_has_a_folder_of_its_own(strength: float, name: str) -> None:
    assert str(Target(strength, "psnr")) == name


def test_out_inside_in_is_refused(photos: Path) -> None:
    with pytest.raises(InputError, match="lies inside"):
        degrade_files(photos, photos / "out", ops=[FOG])


def test_steps_are_read() -> None:
    assert str(parse_step("cod10k-c/jpeg@3")) == "cod10k-c.jpeg_compression@3"
    assert str(parse_step(FOG)) == "cod10k-c.fog"
    with pytest.raises(UnknownNameError):
        parse_step("@3")
