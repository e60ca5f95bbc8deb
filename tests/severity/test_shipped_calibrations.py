"""The calibrations that come with the package."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crypsis
from crypsis.calibration import shipped_calibration
from crypsis.catalog import get_entry, list_entries
from crypsis.errors import UnknownNameError
from crypsis.severity.calibration import Calibration

METRICS = ("1-ssim", "psnr")


@pytest.mark.parametrize("metric", METRICS)
def test_every_entry_has_one(metric: str) -> None:
    for entry in list_entries():
        found = shipped_calibration(entry.name, metric)
        assert (found.entry, found.metric, found.count, found.seed) == (entry.name, metric, 48, 0)
        assert Calibration.from_dict(found.to_dict()) == found


def script() -> Any:
    path = Path(__file__).parents[2] / "scripts" / "make_demo_calibrations.py"
    spec = importlib.util.spec_from_file_location("make_demo_calibrations", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_makes_the_files_again() -> None:
    """A row of each kind (random, codec, warp, weather, table); `--check` of the script does all of them."""
    make = script()
    names = ("imagenet-c/shot_noise", "cod10k-c/rain", "arniqa/jpeg", "real-camera/fog", "cod10k-c/contrast")
    for metric, found in make.calibrated([get_entry(name) for name in names]).items():
        content = json.loads((make.TARGET / f"demo-{metric}.json").read_text("utf-8"))
        made = make.content_of(found)
        if made["versions"] == content["versions"]:
            assert made["images"] == content["images"]
            assert made["entries"] == {name: content["entries"][name] for name in names}
        for name in names:  # decoders of JPEG differ by a gray level between builds
            for kind, rtol in (("strengths", 5e-3), ("deviations", 2e-2)):
                np.testing.assert_allclose(made["entries"][name][kind], content["entries"][name][kind], rtol=rtol)


def test_the_files_are_laid_out_as_the_script_writes_them() -> None:
    make = script()
    for metric in METRICS:
        text = (make.TARGET / f"demo-{metric}.json").read_text("utf-8")
        assert make.text_of(json.loads(text)) == text


def test_canonical_mode_takes_it() -> None:
    image = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    name = "arniqa/lincontrchange"
    calibration = shipped_calibration(name)
    levels = calibration.native_severities
    assert levels[0] == np.argmin(calibration.strengths) + 1
    assert levels[4] == np.argmax(calibration.strengths) + 1
    assert levels != (1, 2, 3, 4, 5)
    for canonical, native in enumerate(levels, 1):
        worse = crypsis.apply_degradation(image, name, severity=canonical, mode="canonical", calibration=calibration)
        np.testing.assert_array_equal(worse, crypsis.apply_degradation(image, name, severity=native))


def test_names_that_have_none() -> None:
    with pytest.raises(UnknownNameError, match="did you mean"):
        shipped_calibration("cod10k-c/fogg")
    with pytest.raises(UnknownNameError, match="known: 1-ssim, psnr"):
        shipped_calibration("cod10k-c/fog", "lpips")
