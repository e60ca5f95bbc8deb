"""The rows of ImageNet-C against the published implementation, bethgelab/imagecorruptions.

Its results are stored in tests/data/parity_imagenet_c.npz; scripts/make_parity_imagenet_c.py made them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from change_statistics import NAMES, change_statistics

from crypsis.catalog import get_entry

STORED = np.load(Path(__file__).parent.parent / "data" / "parity_imagenet_c.npz", allow_pickle=False)
SEVERITIES = (1, 2, 3, 4, 5)

# largest difference in gray levels, and largest share of values that differ: where the published arithmetic, in
# double precision, misses a whole number from below, it cuts it to the one before
TOLERANCES = {
    "defocus_blur": (1, 0.05),
    "zoom_blur": (1, 0.05),
    "brightness": (1, 0.02),
    "contrast": (0, 0),
    "pixelate": (0, 0),
    "jpeg_compression": (1, 0.01),
    "gaussian_blur": (1, 0.02),
    "saturate": (1, 0.25),
}
DRAWS = 48


def degrade(term: str, severity: int, image: np.ndarray, key: str = "") -> np.ndarray:
    return get_entry("imagenet-c", term).degrade(image, severity, seed=0, image_key=key)


def compare(ours: np.ndarray, published: np.ndarray, largest: int, share: float) -> None:
    difference = abs(ours.astype(int) - published)
    assert difference.max() <= largest
    assert (difference > 0).mean() <= share


@pytest.mark.parametrize("term", TOLERANCES)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_rows_without_randomness(term: str, severity: int) -> None:
    ours = degrade(term, severity, STORED["image/small"])
    compare(ours, STORED[f"small/{term}/{severity}"], *TOLERANCES[term])


@pytest.mark.parametrize("term", TOLERANCES)
def test_odd_sides(term: str) -> None:
    compare(degrade(term, 3, STORED["image/odd"]), STORED[f"odd/{term}/3"], *TOLERANCES[term])


@pytest.mark.parametrize(("severity", "angle"), [(1, -45.0), (2, -20.0), (3, 0.0), (4, 33.3), (5, 45.0)])
def test_motion_blur_at_a_given_angle(severity: int, angle: float) -> None:
    class Given:
        def uniform(self, low: float, high: float) -> float:
            assert (low, high) == (-45, 45)
            return angle

    entry = get_entry("imagenet-c/motion_blur")
    ours = entry.operator(STORED["image/small"], **entry.parameters[severity - 1], rng=Given())
    compare(ours, STORED[f"small/motion_blur/{severity}"], 1, 0.02)


@pytest.mark.parametrize(
    "term",
    [
        "gaussian_noise",
        "shot_noise",
        "impulse_noise",
        "glass_blur",
        "motion_blur",
        "snow",
        "fog",
        "elastic_transform",
        "speckle_noise",
        "spatter",
    ],
)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_rows_with_randomness_agree_in_distribution(term: str, severity: int) -> None:
    clean = STORED["image/middle"]
    numbers = np.array([change_statistics(clean, degrade(term, severity, clean, str(i))) for i in range(DRAWS)])
    mean, deviation = STORED[f"statistics/{term}/{severity}"]
    error = np.sqrt(deviation**2 / 96 + numbers.var(axis=0) / DRAWS)
    # 650 numbers are compared: five standard errors, and what the last digit of floating-point numbers may add
    for name, ours, theirs, e in zip(NAMES, numbers.mean(axis=0), mean, error, strict=True):
        assert abs(ours - theirs) <= 5 * e + 0.03, (name, ours, theirs, e)
    ratio = numbers.std(axis=0) / np.maximum(deviation, 1e-9)
    assert (ratio < 2).all(), dict(zip(NAMES, ratio, strict=True))
    assert (ratio > 0.5).all(), dict(zip(NAMES, ratio, strict=True))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_computed_frost_is_as_strong_as_photographs(severity: int) -> None:
    clean = STORED["image/middle"]
    numbers = [change_statistics(clean, degrade("frost", severity, clean, str(i))) for i in range(DRAWS)]
    ours, theirs = np.mean(numbers, axis=0), STORED[f"statistics/frost/{severity}"][0]
    assert ours[0] == pytest.approx(theirs[0], abs=0.5)  # dB
    assert np.allclose(ours[1:4], theirs[1:4], atol=8)
