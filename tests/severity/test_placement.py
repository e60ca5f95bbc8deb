"""Where existing degraded images lie among the shipped calibrations."""

from __future__ import annotations

import numpy as np
import pytest

from crypsis.errors import UnknownNameError
from crypsis.severity.calibration import PSNR_CEILING, shipped_calibration
from crypsis.severity.placement import PairStrength, place
from crypsis.severity.strength import METRICS

FOG = "cod10k-c/fog"


def made(metric: str, value: float, severity: int | None = None) -> PairStrength:
    return PairStrength.from_values("real-fog", severity, [metric], np.array([[value]]), 0)


def test_statistics_are_over_the_pairs() -> None:
    values = np.array([[0.1, 0.2, 0.6], [np.inf, 20.0, 30.0]])
    one = PairStrength.from_values("x", 3, ["1-ssim", "psnr"], values, 1)
    assert (one.name, one.images, one.unchanged) == ("x s=3", 3, 1)
    assert one.mean["1-ssim"] == pytest.approx(0.3)
    assert one.mean["psnr"] == pytest.approx((PSNR_CEILING + 50) / 3)
    assert one.deviation["1-ssim"] == pytest.approx(np.std(values[0]))
    assert one.low["1-ssim"] == pytest.approx(np.quantile(values[0], 0.05))
    assert one.to_dict()["1-ssim"]["p95"] == one.high["1-ssim"]


@pytest.mark.parametrize("metric", ["1-ssim", "psnr"])
def test_between_two_native_severities(metric: str) -> None:
    levels = shipped_calibration(FOG, metric).strengths
    (found,) = place([made(metric, (levels[1] + levels[2]) / 2)], near=[FOG])
    milder, stronger = found.between[FOG]
    assert (milder.severity, stronger.severity) == (2, 3)
    assert f"between {FOG} s=2 ({levels[1]:.3g}) and {FOG} s=3 ({levels[2]:.3g})" in found.text
    assert len(found.nearest) == 3
    distances = [abs(level.strength - found.value) for level in found.nearest]
    assert distances == sorted(distances)


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        ("1-ssim", 0.0, "milder than cod10k-c/fog s=1 (0.0762), the mildest of its entry"),
        ("1-ssim", 1.5, "stronger than cod10k-c/fog s=5 (0.306), the strongest of its entry"),
        ("psnr", 50.0, "milder than cod10k-c/fog s=1 (22.3), the mildest of its entry"),
        ("psnr", 3.0, "stronger than cod10k-c/fog s=5 (11), the strongest of its entry"),
    ],
)
def test_out_of_reach_of_an_entry(metric: str, value: float, words: str) -> None:
    (found,) = place([made(metric, value)], near=[FOG])
    assert words in found.text
    assert None in found.between[FOG]
    assert None in found.to_dict()["between"][FOG].values()


@pytest.mark.parametrize("metric", ["1-ssim", "psnr"])
def test_as_strong_as_a_level_itself(metric: str) -> None:
    level = shipped_calibration(FOG, metric).strengths[3] * (1 + 2e-6)  # as rounding to six digits would differ
    (found,) = place([made(metric, level, 4)], near=[FOG])
    title = METRICS[metric].title
    assert f"real-fog s=4: {title} " in found.text
    assert f"as strong as {FOG} s=4" in found.text
    assert found.nearest[0].entry == FOG


def test_order_of_severities_does_not_matter() -> None:
    name = "arniqa/lincontrchange"  # stronger at both ends than in the middle
    levels = shipped_calibration(name).strengths
    ordered = sorted(levels)
    assert list(levels) != ordered
    (found,) = place([made("1-ssim", (ordered[1] + ordered[2]) / 2)], near=[name])
    milder, stronger = found.between[name]
    assert (milder.strength, stronger.strength) == (ordered[1], ordered[2])


def test_a_metric_without_calibration_has_no_place() -> None:
    assert place([made("lpips", 0.2)]) == []


def test_an_entry_that_does_not_exist() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'fog'"):
        place([made("1-ssim", 0.2)], near=["cod10k-c/fogg"])
