"""Calibration: measured strengths, canonical levels, the way to JSON and back, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crypsis.calibration
from crypsis.catalog import get_entry
from crypsis.catalog.apply import apply_degradation, nearest_severity
from crypsis.errors import ImageError, InputError, UnknownNameError
from crypsis.io import read_image
from crypsis.severity.calibration import PSNR_CEILING, SCHEMA, Calibration, calibrate_distortion
from crypsis.severity.lpips import lpips
from crypsis.severity.strength import psnr, ssim

PAPER = "COD10K-C"
MEASURE: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "psnr": psnr,
    "1-ssim": lambda x, y: 1 - ssim(x, y),
    "lpips": lpips,
}


def textured(seed: int, height: int = 40, width: int = 52) -> np.ndarray:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3))
    return np.repeat(np.repeat(coarse, 4, axis=0), 4, axis=1)[:height, :width].astype(np.uint8)


IMAGES = [textured(0), textured(1, 25, 60), textured(2, 9, 7)]


def made(strengths: tuple[float, ...], metric: str = "1-ssim", entry: str = "cod10k-c/rain") -> Calibration:
    return Calibration(entry, metric, strengths, (0.0,) * 5, (), 1, "none", 0, {})


def test_where_the_paper_looks_for_it() -> None:
    assert crypsis.calibration.calibrate_distortion is calibrate_distortion


@pytest.mark.parametrize("metric", MEASURE)
@pytest.mark.parametrize("term", ["rain", "gaussian_noise", "gaussian_blur", "contrast"])
def test_strengths_are_those_of_apply_degradation(metric: str, term: str) -> None:
    calibration = calibrate_distortion(IMAGES, PAPER, term, metric, seed=5)
    rows = [
        [
            MEASURE[metric](image, apply_degradation(image, paper=PAPER, term=term, severity=s, seed=5))
            for s in range(1, 6)
        ]
        for image in IMAGES
    ]
    assert calibration["per_image"] == tuple(map(tuple, rows))
    assert calibration.strengths == pytest.approx(np.mean(rows, axis=0))
    assert calibration.deviations == pytest.approx(np.std(rows, axis=0))
    assert (calibration.entry, calibration.metric) == (f"cod10k-c/{term}", metric)
    assert (calibration.count, calibration.seed) == (3, 5)
    runtime = {"onnxruntime"} if metric == "lpips" else set()
    assert {"crypsis", "numpy", "opencv", "pillow"} | runtime == set(calibration.versions)


def test_canonical_strengths_span_the_measured_ones() -> None:
    rising = made((0.3, 0.1, 0.25, 0.9, 0.7))
    assert rising["canonical_strengths"] == pytest.approx((0.1, 0.3, 0.5, 0.7, 0.9))
    assert (rising.canonical_strengths[0], rising.canonical_strengths[4]) == (0.1, 0.9)
    assert rising.native_severities == (2, 1, 1, 5, 4)  # 0.5 is as near to 0.3 as to 0.7
    falling = made((40.0, 30.0, 31.0, 12.0, 20.0), "psnr")
    assert falling.canonical_strengths == (40.0, 33.0, 26.0, 19.0, 12.0)
    assert falling.native_severities == (1, 3, 2, 5, 4)


def test_real_entry_has_both_ends() -> None:
    calibration = calibrate_distortion(IMAGES[:2], PAPER, "gaussian_blur")
    assert calibration.canonical_strengths[0] == min(calibration.strengths)
    assert calibration.canonical_strengths[4] == max(calibration.strengths)
    assert (calibration.native_severities[0], calibration.native_severities[4]) == (1, 5)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 2000).map(lambda v: v / 1000), min_size=5, max_size=5), st.booleans())
def test_canonical_levels_never_become_milder(strengths: list[float], rising: bool) -> None:
    calibration = made(tuple(strengths), "1-ssim" if rising else "psnr")
    reached = [strengths[s - 1] for s in calibration.native_severities]
    assert reached == sorted(reached, reverse=not rising)
    span = max(strengths) - min(strengths)
    for target, got in zip(calibration.canonical_strengths, reached, strict=True):
        assert abs(got - target) <= min(abs(s - target) for s in strengths) + 1e-9 * span
    assert {reached[0], reached[4]} == {min(strengths), max(strengths)}


@pytest.mark.parametrize(
    ("strengths", "target", "rising", "severity"),
    [
        ((0.1, 0.2, 0.3, 0.4, 0.5), 0.3, True, 3),
        ((0.1, 0.2, 0.3, 0.4, 0.5), 0.15, True, 1),  # a tie, though not in binary
        ((0.1, 0.2, 0.3, 0.4, 0.5), 0.45, True, 4),
        ((50.0, 40.0, 30.0, 20.0, 10.0), 35.0, False, 2),
        ((0.5, 0.4, 0.3, 0.2, 0.1), 0.15, True, 5),
        ((0.2, 0.2, 0.2, 0.2, 0.2), 0.2, True, 1),
        ((0.0, 0.0, 0.1, 0.1, 0.1), 0.07, True, 3),
    ],
)
def test_nearest_severity(strengths: tuple[float, ...], target: float, rising: bool, severity: int) -> None:
    assert nearest_severity(strengths, target, rising=rising) == severity


def test_an_unchanged_image_has_infinite_psnr_and_counts_with_the_ceiling() -> None:
    black = np.zeros((12, 12, 3), np.uint8)
    assert math.isclose(PSNR_CEILING, 58.92, abs_tol=0.005)
    calibration = calibrate_distortion([black, IMAGES[0]], PAPER, "gaussian_blur", "psnr")
    assert calibration.per_image[0] == (math.inf,) * 5
    assert calibration.strengths == pytest.approx([(PSNR_CEILING + v) / 2 for v in calibration.per_image[1]])
    alone = calibrate_distortion([black], PAPER, "gaussian_blur", "psnr")
    assert alone.strengths == pytest.approx((PSNR_CEILING,) * 5)
    assert alone.deviations == (0.0,) * 5
    assert calibrate_distortion([black], PAPER, "gaussian_blur").strengths == (0.0,) * 5
    assert Calibration.from_dict(json.loads(json.dumps(calibration.to_dict(), allow_nan=False))) == calibration


@pytest.mark.parametrize("metric", MEASURE)
def test_json_round_trip(metric: str) -> None:
    calibration = calibrate_distortion(IMAGES, PAPER, "rain", metric, image_keys=["a", "b", "c"])
    text = json.dumps(calibration.to_dict(), allow_nan=False)
    back = Calibration.from_dict(json.loads(text))
    assert back == calibration
    assert dict(back) == dict(calibration)
    assert json.dumps(back.to_dict()) == text
    assert json.loads(text)["schema"] == SCHEMA
    assert set(calibration) | {"schema"} == set(json.loads(text))
    assert len(calibration) == len(list(calibration))
    with pytest.raises(KeyError):
        calibration["entry_name"]
    short = {**calibration.to_dict(), "per_image": []}
    assert Calibration.from_dict(short).canonical_strengths == calibration.canonical_strengths


def test_calibration_is_reproducible_and_knows_its_images() -> None:
    first = calibrate_distortion(IMAGES, PAPER, "rain")
    assert calibrate_distortion((image.copy() for image in IMAGES), PAPER, "rain") == first
    turned = calibrate_distortion(IMAGES[::-1], PAPER, "rain")
    assert (turned.images, turned.strengths) == (first.images, first.strengths)
    assert turned.per_image == first.per_image[::-1]
    assert calibrate_distortion(IMAGES[:2], PAPER, "rain").images != first.images
    keyed = calibrate_distortion(IMAGES, PAPER, "rain", image_keys=["a", "b", "c"])
    assert keyed.images != first.images
    assert keyed.strengths != first.strengths
    assert calibrate_distortion(IMAGES, PAPER, "rain", seed=1).strengths != first.strengths


def test_kinds_of_images_measure_the_same() -> None:
    image = IMAGES[0]
    first = calibrate_distortion([image], PAPER, "fog").strengths
    kinds = [
        PIL.Image.fromarray(image),
        image / 255,
        image.astype(np.uint16) * 257,
        np.dstack([image, image[:, :, 0]]),
        (image / 255).astype(np.float32),
    ]
    for kind in kinds:
        assert calibrate_distortion([kind], PAPER, "fog").strengths == first
    gray = image[:, :, 0]
    assert (
        calibrate_distortion([gray], PAPER, "fog").strengths
        == calibrate_distortion([np.repeat(gray[:, :, None], 3, axis=2)], PAPER, "fog").strengths
    )


def test_images_are_not_changed() -> None:
    image = IMAGES[0].copy()
    calibrate_distortion([image], PAPER, "rain")
    assert np.array_equal(image, IMAGES[0])


# Bad input


def test_names_that_do_not_exist() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'gaussian_blur'"):
        calibrate_distortion(IMAGES, PAPER, "gaussian_blurr")
    with pytest.raises(UnknownNameError, match="did you mean '1-ssim'"):
        calibrate_distortion(IMAGES, PAPER, "fog", "ssim")
    with pytest.raises(UnknownNameError, match="known: 1-ssim, psnr, lpips"):
        calibrate_distortion(IMAGES, PAPER, "fog", "vmaf")


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        ([], {}, "no image to calibrate cod10k-c/fog on"),
        (IMAGES[0], {}, "images is a list, even of one; got a single ndarray"),
        ("photos", {}, "images is a list, even of one; got a single str"),
        (Path("photos"), {}, "images is a list"),
        (PIL.Image.new("RGB", (4, 4)), {}, "images is a list, even of one; got a single Image"),
        ([IMAGES[0], Path("a.png")], {}, r"images\[1\]: An image is given as pixels, not as a path"),
        ([IMAGES[0], np.full((4, 4), np.nan)], {}, r"images\[1\]: The float image has NaN"),
        (IMAGES, {"image_keys": ["a", "b"]}, "one name for each image"),
        (IMAGES[:1], {"image_keys": ["a", "b"]}, "one name for each image"),
        (IMAGES, {"image_keys": "abc"}, "image_keys is a list"),
        (IMAGES, {"image_keys": ["a", None, "c"]}, r"image_keys\[1\] is not a string: None"),
        (IMAGES, {"image_keys": ["a", 2, "c"]}, r"image_keys\[1\] is not a string: 2"),
        (IMAGES, {"seed": 1.5}, "seed is an integer"),
        (IMAGES, {"seed": True}, "seed is an integer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_arguments(images: object, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibrate_distortion(images, PAPER, "fog", **options)


def test_a_metric_that_is_no_text() -> None:
    content = calibrate_distortion(IMAGES, PAPER, "fog").to_dict()
    with pytest.raises(UnknownNameError, match="no strength metric"):
        calibrate_distortion(IMAGES, PAPER, "fog", ["1-ssim"])  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="no strength metric"):
        Calibration.from_dict({**content, "metric": ["1-ssim"]})


def test_a_bad_image_is_an_image_error() -> None:
    with pytest.raises(ImageError, match=r"images\[0\]: "):
        calibrate_distortion([np.zeros((4, 4), complex)], PAPER, "fog")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "crypsis.run/1"}, "not a calibration"),
        ({"entry": "cod10k-c/fogg"}, "did you mean 'fog'"),
        ({"metric": "ssim"}, "did you mean '1-ssim'"),
        ({"strengths": [0.1, 0.2, 0.3, 0.4]}, "'strengths' are five numbers"),
        ({"strengths": [0.1, 0.2, 0.3, 0.4, math.nan]}, "'strengths' are five numbers"),
        ({"strengths": ["inf", 0.2, 0.3, 0.4, 0.5]}, "'strengths' are five numbers"),
        ({"strengths": None}, "'strengths' are five numbers"),
        ({"deviations": "0.1"}, "'deviations' are five numbers"),
        ({"per_image": [[0.1] * 5]}, "one row for each of its 3 images"),
        ({"per_image": [[0.1] * 5, [0.1] * 5, ["inf"] * 5]}, "'per_image' are five numbers"),
        ({"canonical_strengths": [0.1, 0.2, 0.3, 0.4, 0.5]}, "not evenly spaced between the ends"),
        ({"count": 0}, "'count' is a number of images"),
        ({"seed": "0"}, "'seed' an integer"),
        ({"versions": []}, "'versions' are names"),
        ({"images": 3}, "'images' is a fingerprint"),
    ],
    ids=str,
)
def test_bad_content(change: dict, message: str) -> None:
    content = calibrate_distortion(IMAGES, PAPER, "fog").to_dict()
    with pytest.raises(InputError, match=message):
        Calibration.from_dict({**content, **change})


@pytest.mark.parametrize("name", ["entry", "metric", "strengths", "per_image", "images", "versions"])
def test_missing_content(name: str) -> None:
    content = calibrate_distortion(IMAGES, PAPER, "fog").to_dict()
    del content[name]
    with pytest.raises(InputError, match=f"has no '{name}'"):
        Calibration.from_dict(content)


@pytest.mark.parametrize("content", [None, [], "text", {}])
def test_content_of_another_kind(content: object) -> None:
    with pytest.raises(InputError, match="not a calibration"):
        Calibration.from_dict(content)


# Canonical mode


@pytest.fixture(scope="module")
def blur() -> Calibration:
    return calibrate_distortion(IMAGES[:2], PAPER, "gaussian_blur")


@pytest.mark.parametrize("level", range(1, 6))
def test_canonical_mode_applies_the_nearest_native_level(blur: Calibration, level: int) -> None:
    image = IMAGES[0]
    native = apply_degradation(image, "cod10k-c/gaussian_blur", severity=blur.native_severities[level - 1])
    options = {"severity": level, "mode": "canonical"}
    for calibration in (blur, blur.to_dict(), json.loads(json.dumps(blur.to_dict()))):
        got = apply_degradation(image, "cod10k-c/gaussian_blur", calibration=calibration, **options)
        assert np.array_equal(got, native)
    for levels in (
        blur["canonical_strengths"],
        list(blur["canonical_strengths"]),
        np.array(blur["canonical_strengths"]),
    ):
        got = apply_degradation(
            image, "cod10k-c/gaussian_blur", calibration=blur, canonical_strengths=levels, **options
        )
        assert np.array_equal(got, native)


@pytest.mark.parametrize(
    ("metric", "strengths", "natives"),
    [
        ("1-ssim", (0.5, 0.1, 0.2, 0.9, 0.4), (2, 3, 1, 1, 4)),  # .1 .3 .5 .7 .9
        ("psnr", (20.0, 40.0, 36.0, 10.0, 30.0), (2, 5, 5, 1, 4)),  # 40 32.5 25 17.5 10
        ("1-ssim", (0.5, 0.4, 0.3, 0.2, 0.1), (5, 4, 3, 2, 1)),
        ("1-ssim", (0.2, 0.2, 0.2, 0.2, 0.2), (1, 1, 1, 1, 1)),
    ],
)
def test_mapping_goes_through_strength_not_index(
    metric: str, strengths: tuple[float, ...], natives: tuple[int, ...]
) -> None:
    calibration = made(strengths, metric, "cod10k-c/gaussian_noise")
    image = IMAGES[0]
    for level, native in enumerate(natives, 1):
        got = apply_degradation(
            image, "cod10k-c/gaussian_noise", severity=level, mode="canonical", calibration=calibration
        )
        assert np.array_equal(got, apply_degradation(image, "cod10k-c/gaussian_noise", severity=native))


@pytest.mark.parametrize("metric", ["psnr", "1-ssim"])
@pytest.mark.parametrize("name", ["arniqa/meanshift", "arniqa/lincontrchange", "real-camera/gamma_damage"])
def test_entries_whose_index_is_no_order(name: str, metric: str) -> None:
    entry = get_entry(name)
    demo = sorted((Path(crypsis.__file__).parent / "data" / "demo" / "images").glob("*.jpg"))
    photographs = [read_image(path)[::2, ::2] for path in demo[:8:2]]
    calibration = calibrate_distortion(photographs, entry.paper, entry.term, metric)
    rising = metric == "1-ssim"
    mildest, strongest = (f(calibration.strengths) for f in ((min, max) if rising else (max, min)))
    assert list(calibration.strengths) != sorted(calibration.strengths, reverse=not rising)
    reached = [calibration.strengths[s - 1] for s in calibration.native_severities]
    assert reached == sorted(reached, reverse=not rising)
    assert (reached[0], reached[4]) == (mildest, strongest)
    worst = apply_degradation(photographs[0], name, severity=5, mode="canonical", calibration=calibration)
    native = calibration.strengths.index(strongest) + 1
    assert np.array_equal(worst, apply_degradation(photographs[0], name, severity=native))


def test_levels_of_ones_own() -> None:
    calibration = made((0.1, 0.2, 0.3, 0.4, 0.5), entry="cod10k-c/contrast")
    levels = [0.1, 0.12, 0.29, 0.31, 0.32]
    for level, native in enumerate((1, 1, 3, 3, 3), 1):
        got = apply_degradation(
            IMAGES[0],
            "cod10k-c/contrast",
            severity=level,
            mode="canonical",
            calibration=calibration,
            canonical_strengths=levels,
        )
        assert np.array_equal(got, get_entry("cod10k-c/contrast").degrade(IMAGES[0], native, seed=0, image_key=""))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "canonical"}, "needs a calibration of cod10k-c/rain; measure one with"),
        ({"mode": "canonical", "calibration": [0.1] * 5}, "what calibrate_distortion returns; got list"),
        ({"mode": "canonical", "calibration": made((1.0,) * 5, entry="cod10k-c/fog")}, "of 'cod10k-c/fog', not of"),
        ({"mode": "canonical", "calibration": {}}, "The calibration is of None, not of 'cod10k-c/rain'"),
        ({"mode": "canonical", "calibration": {"entry": "cod10k-c/rain"}}, "the calibration's strengths are 5 finite"),
        (
            {"mode": "canonical", "calibration": {"entry": "cod10k-c/rain", "strengths": [1, 2, 3, 4, 5]}},
            "canonical_strengths are 5 finite numbers; got None",
        ),
        ({"mode": "canonical", "canonical_strengths": [0.1, 0.2, 0.3, 0.4, math.inf]}, "are 5 finite numbers"),
        ({"mode": "canonical", "canonical_strengths": [0.1, 0.3, 0.2, 0.4, 0.5]}, "mildest to the strongest"),
        ({"mode": "canonical", "canonical_strengths": [0.1, 0.2, 0.3]}, "are 5 finite numbers"),
        (
            {"mode": "canonical", "canonical_strengths": [0.1, 0.2, 0.6, 0.7, 0.8]},
            r"cannot reach the strength 0.6 of canonical level 3.*\(1-ssim\) it lies between 0.1 and 0.5",
        ),
        (  # a calibration in another metric than the levels
            {
                "mode": "canonical",
                "calibration": made((40.0, 33.0, 26.0, 19.0, 12.0), "psnr"),
                "canonical_strengths": [0.5, 0.4, 0.3, 0.2, 0.1],
            },
            r"cannot reach the strength 0.3 of canonical level 3.*\(psnr\) it lies between 12 and 40",
        ),
        (
            {
                "mode": "canonical",
                "calibration": made((40.0, 33.0, 26.0, 19.0, 12.0), "psnr"),
                "canonical_strengths": [12, 19, 26, 33, 40],
            },
            "to the strongest, which fall in psnr; got",
        ),
        ({"mode": "canonical", "canonical_strengths": [0.5, 0.4, 0.3, 0.2, 0.1]}, "which rise in 1-ssim; got"),
        ({"mode": "canonical", "severity": 6}, "severities 1 to 5; got 6"),
        ({"mode": "original"}, "mode is 'native' or 'canonical'; got 'original'"),
        ({"calibration": made((1.0,) * 5)}, "are for mode='canonical'"),
        ({"canonical_strengths": [0.1] * 5}, "are for mode='canonical'"),
    ],
    ids=str,
)
def test_canonical_mode_refuses(options: dict, message: str) -> None:
    if "canonical_strengths" in options and "mode" in options:
        options = {"calibration": made((0.1, 0.2, 0.3, 0.4, 0.5)), **options}
    with pytest.raises(InputError, match=message):
        apply_degradation(IMAGES[0], "cod10k-c/rain", **{"severity": 3, **options})
