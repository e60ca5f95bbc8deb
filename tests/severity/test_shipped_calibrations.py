"""The calibrations that come with the package."""

from __future__ import annotations

import numpy as np
import pytest

import crypsis
from crypsis.calibration import shipped_calibration
from crypsis.catalog import list_entries
from crypsis.datasets.masks import open_masks
from crypsis.errors import UnknownNameError
from crypsis.io import read_image
from crypsis.severity.calibration import Calibration, calibrate_distortion

METRICS = ("1-ssim", "psnr")


@pytest.mark.parametrize("metric", METRICS)
def test_every_entry_has_one(metric: str) -> None:
    for entry in list_entries():
        found = shipped_calibration(entry.name, metric)
        assert (found.entry, found.metric, found.count, found.seed) == (entry.name, metric, 48, 0)
        assert Calibration.from_dict(found.to_dict()) == found


@pytest.mark.parametrize("metric", METRICS)
def test_it_is_what_the_demo_images_give(metric: str) -> None:
    items = open_masks("demo").items
    images = (read_image(item.image) for item in items)
    keys = [item.key for item in items]
    measured = calibrate_distortion(images, "cod10k-c", "contrast", metric, image_keys=keys)
    shipped = shipped_calibration("cod10k-c/contrast", metric)
    # decoders of JPEG differ by a gray level between builds
    np.testing.assert_allclose(shipped.strengths, measured.strengths, rtol=2e-3)
    np.testing.assert_allclose(shipped.deviations, measured.deviations, rtol=2e-2)


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
