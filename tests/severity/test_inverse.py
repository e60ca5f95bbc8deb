"""Degrading to a strength: the search hits what can be reached and names what cannot."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import crypsis
from command_line import run
from crypsis.catalog import get_entry, list_entries
from crypsis.datasets.masks import open_masks
from crypsis.errors import ImageError, InputError, UnknownNameError, UnreachableError
from crypsis.io import read_image
from crypsis.severity.calibration import calibrate_distortion
from crypsis.severity.inverse import TOLERANCES, degrade_to_strength
from crypsis.severity.strength import CleanImage
from crypsis.types import Image

ITEMS = open_masks("demo").items
ENTRIES = list_entries()
RNG = np.random.default_rng(20261130)
TRIPLES = [
    (ENTRIES[RNG.integers(len(ENTRIES))].name, int(RNG.integers(len(ITEMS))), float(RNG.random())) for _ in range(100)
]


@pytest.fixture(scope="module")
def photo() -> Image:
    return np.ascontiguousarray(read_image(ITEMS[0].image)[:160, :200])


@pytest.mark.parametrize(("name", "index", "share"), TRIPLES)
def test_targets_between_native_strengths(name: str, index: int, share: float) -> None:
    """A target between the mildest and the strongest severity of that very image is met, or lies in a true gap."""
    entry, key = get_entry(name), ITEMS[index].key
    image = np.ascontiguousarray(read_image(ITEMS[index].image)[60:220, 60:260])
    clean = CleanImage(image)

    def measured(level: float) -> float:
        return clean.strengths(entry.degrade_at(image, level, seed=0, image_key=key)).value("1-ssim")

    natives = [measured(severity) for severity in entry.severities]
    target = min(natives) + share * (max(natives) - min(natives))
    tolerance = TOLERANCES["1-ssim"]
    try:
        found = degrade_to_strength(image, name, strength=target, image_key=key)
    except UnreachableError:
        levels = np.linspace(1, 5, 201)
        assert min(abs(measured(level) - target) for level in levels) > tolerance
        return
    assert abs(found.strength - target) <= tolerance
    assert found.strength == pytest.approx(clean.strengths(found.image).value("1-ssim"), abs=0)
    assert np.array_equal(found.image, entry.degrade_at(image, found.level, seed=0, image_key=key))
    assert dict(found.parameters) == entry.parameters_at(found.level)


def test_most_of_those_triples_are_reached() -> None:
    """The share that falls into gaps of whole-number parameters is small, so that the test above tests the search."""
    missed = 0
    for name, index, share in TRIPLES[:40]:
        image = np.ascontiguousarray(read_image(ITEMS[index].image)[60:220, 60:260])
        clean, entry, key = CleanImage(image), get_entry(name), ITEMS[index].key
        natives = [1 - clean.ssim(entry.degrade(image, s, seed=0, image_key=key)) for s in entry.severities]
        target = min(natives) + share * (max(natives) - min(natives))
        try:
            degrade_to_strength(image, name, strength=target, image_key=key)
        except UnreachableError:
            missed += 1
    assert missed <= 8


@pytest.mark.parametrize("metric", ["psnr", "lpips"])
def test_other_metrics(photo: Image, metric: str) -> None:
    clean = CleanImage(photo)
    entry = get_entry("cod10k-c/gaussian_noise")
    ends = [clean.strengths(entry.degrade(photo, s, seed=1, image_key="a"), lpips=True).value(metric) for s in (1, 5)]
    target = sum(ends) / 2
    found = degrade_to_strength(photo, entry.name, strength=target, metric=metric, seed=1, image_key="a")
    assert abs(found.strength - target) <= TOLERANCES[metric]
    assert 1 < found.level < 5


def test_an_infinite_psnr_at_one_end_is_no_obstacle(photo: Image) -> None:
    """Level 1 of this row changes nothing."""
    found = degrade_to_strength(photo, "arniqa/lincontrchange", strength=33.0, metric="psnr")
    assert abs(found.strength - 33.0) <= TOLERANCES["psnr"]


def test_severities_that_are_not_in_order(photo: Image) -> None:
    """Between severities 2 and 3 of saturation lies the unchanged image: weaker than any severity, and found."""
    clean, entry = CleanImage(photo), get_entry("imagenet-c/saturate")
    weakest = min(1 - clean.ssim(entry.degrade(photo, s, seed=0, image_key="a")) for s in entry.severities)
    found = degrade_to_strength(photo, entry.name, strength=weakest / 2, tolerance=weakest / 10, image_key="a")
    assert 2 < found.level < 3


def test_the_kind_of_image_is_kept(photo: Image) -> None:
    picture = PIL.Image.fromarray(photo)
    found = degrade_to_strength(picture, paper="COD10K-C", term="fog", strength=0.2)
    assert isinstance(found.image, PIL.Image.Image)
    assert np.array_equal(np.asarray(found.image), degrade_to_strength(photo, "cod10k-c/fog", strength=0.2).image)


@pytest.mark.parametrize("name", ["arniqa/colorshift", "arniqa/whitenoiseCC", "real-camera/lens_shading_damage"])
def test_a_gray_image_is_measured_as_it_comes_back(photo: Image, name: str) -> None:
    gray = np.ascontiguousarray(photo[:, :, 1])
    (curve,) = calibrate_distortion([gray], *name.split("/"), image_keys=["a"]).per_image
    found = degrade_to_strength(gray, name, strength=curve[2], image_key="a")
    seen = CleanImage(np.repeat(gray[:, :, None], 3, axis=2)).ssim(np.repeat(found.image[:, :, None], 3, axis=2))
    assert 1 - seen == pytest.approx(found.strength, abs=0)
    assert abs(found.strength - curve[2]) <= TOLERANCES["1-ssim"]


def test_a_black_and_white_image_is_measured_as_it_comes_back(photo: Image) -> None:
    """Fog of no severity carries a value over the threshold, so that nothing changes in black and white."""
    with pytest.raises(UnreachableError, match="all levels have 0"):
        degrade_to_strength(photo[:, :, 1] > 128, "cod10k-c/fog", strength=0.25)


@pytest.mark.parametrize("strength", [np.float32(0.2), np.float64(0.2)])
def test_numbers_of_numpy(photo: Image, strength: float) -> None:
    assert abs(degrade_to_strength(photo, "cod10k-c/fog", strength=strength).strength - 0.2) <= 0.005


def test_what_cannot_be_reached_is_said(photo: Image) -> None:
    with pytest.raises(
        UnreachableError, match=r"cod10k-c/fog cannot reach 1-ssim 0\.9 .* the levels tried lie between"
    ) as caught:
        degrade_to_strength(photo, "cod10k-c/fog", strength=0.9)
    low, high = caught.value.strengths
    assert 0 < low < high < 0.9
    with pytest.raises(UnreachableError, match="go in steps"):
        degrade_to_strength(photo, "arniqa/motionblur", strength=0.01, tolerance=1e-5)
    constant = np.full((20, 30, 3), 90, np.uint8)
    with pytest.raises(UnreachableError, match="all levels have 0"):
        degrade_to_strength(constant, "imagenet-c/gaussian_blur", strength=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strength": -0.1}, "strength is a finite number from 0 up"),
        ({"strength": math.nan}, "strength is a finite number"),
        ({"strength": True}, "strength is a finite number"),
        ({"strength": 0.1, "tolerance": 0}, "tolerance is a finite number above 0"),
        ({"strength": 0.1, "metric": "ssim"}, "did you mean '1-ssim'"),
        ({"strength": 0.1, "seed": 1.5}, "seed is an integer"),
        ({"strength": 0.1, "image_key": 3}, "image_key is a string"),
    ],
)
def test_wrong_arguments(photo: Image, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        degrade_to_strength(photo, "cod10k-c/fog", **arguments)  # type: ignore[arg-type]


def test_wrong_names_and_images(photo: Image) -> None:
    with pytest.raises(UnknownNameError):
        degrade_to_strength(photo, "cod10k-c/fogg", strength=0.2)
    with pytest.raises(InputError, match="Name the degradation"):
        degrade_to_strength(photo, strength=0.2)
    with pytest.raises(ImageError):
        degrade_to_strength(photo.astype(np.int64), "cod10k-c/fog", strength=0.2)
    assert crypsis.degrade_to_strength is degrade_to_strength


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_levels_between_severities(entry: object) -> None:
    """Whole levels are the severities; every level in between is one the operator takes."""
    assert isinstance(entry, type(ENTRIES[0]))
    image = np.random.default_rng(0).integers(0, 256, (24, 31, 3), np.uint8)
    for severity in entry.severities:
        assert (
            entry.parameters_at(severity)
            == entry.parameters_at(float(severity))
            == dict(entry.parameters[severity - 1])
        )
        expected = entry.degrade(image, severity, seed=2, image_key="k")
        assert np.array_equal(entry.degrade_at(image, float(severity), seed=2, image_key="k"), expected)
    for level in (1.25, 1.5, 2.4, 3.5, 4.75):
        between = entry.parameters_at(level)
        lower, upper = entry.parameters[int(level) - 1], entry.parameters[int(level)]
        for name, value in between.items():
            if isinstance(value, int | float) and name in lower and name in upper:
                assert min(lower[name], upper[name]) <= value <= max(lower[name], upper[name])
        assert entry.degrade_at(image, level, seed=2, image_key="k").shape == image.shape


@pytest.mark.parametrize("level", [0.99, 5.01, math.nan, True, "3", None])
def test_levels_there_are_not(level: object) -> None:
    with pytest.raises(InputError, match="has levels from 1 to 5"):
        get_entry("cod10k-c/fog").parameters_at(level)  # type: ignore[arg-type]


def test_the_command(tmp_path: Path) -> None:
    source, out = Path(ITEMS[0].image).parent, tmp_path / "out"
    picture = source / Path(ITEMS[0].image).name
    result = run("degrade", picture, out, "--op", "cod10k-c/fog", "--strength", "0.2", "-q", "--workers", 1)
    assert result.exit_code == 0, result.output
    folder = out / "cod10k-c/fog/1-ssim=0.2"
    header, line = (folder / "strengths.csv").read_text().splitlines()
    row = dict(zip(header.split(","), line.split(","), strict=True))
    image = read_image(picture)
    written = read_image(folder / row["file"])
    assert abs(float(row["strength"]) - 0.2) <= 0.005
    assert 1 - CleanImage(image).ssim(written) == pytest.approx(float(row["strength"]), rel=1e-5)
    again = get_entry(row["entry"]).degrade_at(image, float(row["level"]), seed=0, image_key=picture.stem)
    assert np.array_equal(again, written)
    result = run("degrade", picture, out, "--op", "cod10k-c/fog", "--strength", "0.95", "-q", "--workers", 1)
    assert result.exit_code == 3
    assert "cannot reach 1-ssim 0.95" in result.output
    result = run("degrade", picture, out, "--op", "cod10k-c/fog@2", "--strength", "0.2", "-q")
    assert result.exit_code == 2
    assert "takes the place of a severity" in result.output
    result = run("degrade", source, out, "--plan", "full", "--strength", "0.2", "-q")
    assert (result.exit_code, "without --plan" in result.output) == (2, True)
