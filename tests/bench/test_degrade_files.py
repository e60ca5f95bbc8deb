"""Degraded copies of files, under one degradation or a chain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import run
from crypsis.bench.degrade import degrade_files, parse_step
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
    ],
)
def test_mistakes(arguments: tuple[str, ...], words: str, photos: Path, tmp_path: Path) -> None:
    result = run("degrade", photos, tmp_path / "out", *arguments)
    assert result.exit_code == 2, result.output
    assert words in result.output.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_out_inside_in_is_refused(photos: Path) -> None:
    with pytest.raises(InputError, match="lies inside"):
        degrade_files(photos, photos / "out", ops=[FOG])


def test_steps_are_read() -> None:
    assert str(parse_step("cod10k-c/jpeg@3")) == "cod10k-c.jpeg_compression@3"
    assert str(parse_step(FOG)) == "cod10k-c.fog"
    with pytest.raises(UnknownNameError):
        parse_step("@3")
