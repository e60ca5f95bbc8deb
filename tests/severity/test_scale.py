"""One scale of strength for several entries."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crypsis
from command_line import run
from crypsis.calibration import Calibration, CommonScale, calibrate_distortion, common_scale, shipped_calibration
from crypsis.catalog import get_entry, list_entries
from crypsis.datasets.masks import open_masks
from crypsis.errors import InputError, UnknownNameError
from crypsis.io import read_image
from crypsis.severity.strength import CleanImage

FOG, BLUR, RAIN, JPEG = "imagenet-c/fog", "imagenet-c/gaussian_blur", "cod10k-c/rain", "imagenet-c/jpeg_compression"


def shipped(*names: str, metric: str = "1-ssim") -> list[Calibration]:
    return [shipped_calibration(name, metric) for name in names]


@pytest.mark.parametrize("metric", ["1-ssim", "psnr"])
def test_evenly_spaced_over_what_all_reach(metric: str) -> None:
    calibrations = shipped(BLUR, RAIN, "cod10k-c/fog", metric=metric)
    scale = common_scale(calibrations, levels=7)
    assert len(scale.strengths) == 7
    np.testing.assert_allclose(np.diff(scale.strengths, n=2), 0, atol=1e-9)
    assert (scale.strengths[0] < scale.strengths[-1]) == (metric == "1-ssim")  # mildest first
    assert min(scale.strengths) == max(min(c.strengths) for c in calibrations)
    assert max(scale.strengths) == min(max(c.strengths) for c in calibrations)
    assert not scale.cannot_reach()
    for calibration in calibrations:
        for strength, place in zip(scale.strengths, scale.places[calibration.entry], strict=True):
            assert place is not None
            nearest = min(abs(s - strength) for s in calibration.strengths)
            assert abs(place.measured - strength) == pytest.approx(nearest)
            assert np.interp(place.level, range(1, 6), calibration.strengths) == pytest.approx(strength)


def test_a_level_means_the_same_for_all_on_average() -> None:
    """Degraded at the levels of one strength, the images it was calibrated on come out that strong on average."""
    items = open_masks("demo").items[::6]
    images = [np.ascontiguousarray(read_image(item.image)[:200, :240]) for item in items]
    keys = [item.key for item in items]
    names = ("cod10k-c/fog", "cod10k-c/gaussian_blur", "cod10k-c/gaussian_noise", RAIN)
    scale = common_scale(calibrate_distortion(images, *name.split("/"), image_keys=keys) for name in names)
    target = scale.strengths[2]
    for name in names:
        entry, level = get_entry(name), scale.place(name, target).level
        degraded = [entry.degrade_at(i, level, seed=0, image_key=k) for i, k in zip(images, keys, strict=True)]
        mean = np.mean([1 - CleanImage(i).ssim(d) for i, d in zip(images, degraded, strict=True)])
        assert mean == pytest.approx(target, abs=0.02)


def test_what_an_entry_cannot_reach_is_said() -> None:
    scale = common_scale(shipped(FOG, JPEG), [0.1, 0.2, 0.45])
    assert scale.places[FOG][:2] == (None, None)
    assert scale.places[JPEG][2] is None
    assert "0.1, 0.2" in scale.cannot_reach()[FOG]
    with pytest.raises(InputError, match=r"imagenet-c/fog reaches 1-ssim from .* so not 0\.1"):
        scale.place(FOG, 0.1)
    with pytest.raises(UnknownNameError, match="entry on this scale"):
        scale.place(RAIN, 0.2)
    with pytest.raises(InputError, match="have no strength in common: imagenet-c/fog begins at"):
        common_scale(shipped(FOG, JPEG))


def test_its_strengths_serve_as_canonical_ones() -> None:
    image = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    scale = common_scale(shipped(BLUR, RAIN))
    for name, places in scale.places.items():
        for level, place in enumerate(places, 1):
            canonical = crypsis.apply_degradation(
                image, name, severity=level, mode="canonical", calibration=scale.calibrations[name],
                canonical_strengths=scale.strengths,
            )  # fmt: skip
            assert place is not None
            assert np.array_equal(canonical, crypsis.apply_degradation(image, name, severity=place.severity))


def test_every_entry_alone_is_its_canonical_scale() -> None:
    for entry in list_entries():
        calibration = shipped_calibration(entry.name)
        scale = common_scale([calibration])
        assert scale.strengths == calibration.canonical_strengths
        assert tuple(p.severity for p in scale.places[entry.name] if p) == calibration.native_severities


def constant() -> list[Calibration]:
    """Return what rain does where it changes nothing."""
    return [replace(shipped_calibration(RAIN), strengths=(0.0,) * 5, images="x")]


def test_numbers_of_numpy() -> None:
    scale = common_scale(shipped(RAIN), np.array([0.2, 0.3], np.float32))
    assert scale.strengths == pytest.approx((0.2, 0.3))
    assert scale.place(RAIN, np.float32(0.25)) == scale.place(RAIN, float(np.float32(0.25)))


@pytest.mark.parametrize("strength", ["a", None, math.nan, True])
def test_places_of_what_is_no_number(strength: object) -> None:
    with pytest.raises(InputError, match="A strength is a finite number; got"):
        common_scale(shipped(RAIN)).place(RAIN, strength)  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", ["1-ssim", "psnr"])
def test_json_round_trip(metric: str) -> None:
    scale = common_scale(shipped(RAIN, BLUR, metric=metric))
    again = CommonScale.from_dict(json.loads(json.dumps(scale.to_dict())))
    assert again == scale
    assert again.place(BLUR, scale.strengths[2]) == scale.places[BLUR][2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "crypsis.calibration/1"}, "This is not a scale"),
        ({"metric": "psnr"}, "are others than those of its 'calibrations'"),
        ({"metric": None}, "no usable 'metric'"),
        ({"strengths": 3}, "no usable 'strengths'"),
        ({"strengths": [0.3, 0.2]}, "from the mildest to the strongest"),
        ({"calibrations": {}}, "one calibration or more"),
        ({"calibrations": {RAIN: {}}}, "not a calibration"),
        ({"calibrations": {BLUR: shipped_calibration(RAIN).to_dict()}}, "are others than those"),
        ({"places": {}}, "'places' do not follow"),
        ({"places": []}, "no usable 'places'"),
    ],
    ids=str,
)
def test_bad_content_of_a_scale(change: dict[str, object], message: str) -> None:
    content = common_scale(shipped(RAIN), [0.2, 0.3]).to_dict()
    with pytest.raises(InputError, match=message):
        CommonScale.from_dict({**content, **change})
    with pytest.raises(InputError, match="This is not a scale"):
        CommonScale.from_dict([])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("calibrations", "strengths", "message"),
    [
        ([], None, "one calibration or more"),
        (["fog"], None, "made of calibrations; got str"),
        (shipped(RAIN, RAIN), None, "was given twice"),
        ([shipped_calibration(RAIN), shipped_calibration(BLUR, "psnr")], None, "one axis has one metric"),
        ([shipped_calibration(RAIN), replace(shipped_calibration(BLUR), images="0")], None, "on different images"),
        (shipped(RAIN), [0.2, 0.1], "from the mildest to the strongest"),
        (shipped(RAIN, metric="psnr"), [20, 30], "from the mildest to the strongest"),
        (shipped(RAIN), [], "different finite numbers"),
        (shipped(RAIN), [0.1, float("nan")], "different finite numbers"),
        (shipped(RAIN), 3, "different finite numbers.*got 3"),
        (shipped(RAIN), [0.1, True], "different finite numbers"),
        (constant(), None, r"cod10k-c/rain: all severities have the same strength on these images \(1-ssim 0\)"),
        ([*constant(), replace(shipped_calibration(BLUR), images="x")], None, "cod10k-c/rain: all severities"),
    ],
)
def test_what_makes_no_scale(calibrations: list[Calibration], strengths: list[float] | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        common_scale(calibrations, strengths)


@pytest.mark.parametrize("levels", [1, 2.5, True])
def test_numbers_of_levels_there_are_not(levels: object) -> None:
    with pytest.raises(InputError, match="levels is a whole number from 2 up"):
        common_scale(shipped(RAIN), levels=levels)  # type: ignore[arg-type]


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "scale.json"
    result = run("calibrate", "--entry", f"{FOG},{JPEG}", "--strengths", "0.2,0.4", "-o", file)
    assert result.exit_code == 0, result.output
    assert "imagenet-c/fog reaches 1-ssim from 0.3318" in result.output
    content = json.loads(file.read_text())
    assert content["schema"] == "crypsis.scale/1"
    assert content["places"][FOG][0] is None
    assert content["places"][FOG][1]["severity"] == 2
    assert Calibration.from_dict(content["calibrations"][JPEG]).entry == JPEG
    assert CommonScale.from_dict(content).place(JPEG, 0.2).severity == content["places"][JPEG][0]["severity"]
    assert "CommonScale.from_dict" in result.output
    result = run("calibrate", "--data", "demo", "--limit", 2, "--entry", RAIN, "--entry", "cod10k-c/fog", "-q")
    assert result.exit_code == 0, result.output
    assert "1-ssim, 2 images" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--entry", RAIN, "--strengths", "a,b"), "takes numbers with commas"),
        (("--entry", RAIN, "--limit", 3), "are for measuring"),
        (("--entry", RAIN, "--metric", "lpips"), "No calibration in lpips ships with Crypsis; name images to measure"),
        (("--entry", RAIN, "--split", "train"), "--limit, --seed and --split are for measuring; name the images"),
        (("--entry", "cod10k-c/rian"), "did you mean 'rain'"),
    ],
)
def test_wrong_use(arguments: tuple[object, ...], message: str) -> None:
    result = run("calibrate", *arguments)
    assert (result.exit_code, message in result.output) == (2, True), result.output
