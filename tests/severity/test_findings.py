"""Findings, on tables whose numbers are known."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from crypsis.severity.calibration import PSNR_CEILING
from crypsis.severity.findings import (
    StrengthTable,
    find_all,
    misalignment,
    monotonicity,
    saturation,
    unevenness,
)

FOG, RAIN, BLUR = "cod10k-c/fog", "imagenet-c/snow", "cod10k-c/motion_blur"


def table_of(curves: dict[str, list[float]], metric: str = "1-ssim") -> StrengthTable:
    """Return a table of one metric over one image."""
    values = np.array(list(curves.values()))[None, :, :, None]
    return StrengthTable.from_values(list(curves), [metric], values, np.zeros((len(curves), 5), np.int64))


def test_statistics_over_images() -> None:
    values = np.arange(2 * 1 * 5 * 21, dtype=float).reshape(2, 1, 5, 21)
    values[1, 0, 0, 3] = math.inf
    table = StrengthTable.from_values([FOG], ["1-ssim", "psnr"], values, np.eye(1, 5, dtype=np.int64))
    capped = np.minimum(values[1], PSNR_CEILING)
    assert table.images == 21
    np.testing.assert_allclose(table.mean, [values[0].mean(-1), capped.mean(-1)])
    np.testing.assert_allclose(table.deviation, [values[0].std(-1), capped.std(-1)])
    np.testing.assert_allclose(table.low[0, 0], [1, 22, 43, 64, 85])  # 5% of 20 distances is one
    np.testing.assert_allclose(table.high[0, 0], [19, 40, 61, 82, 103])
    assert values[1, 0, 0, 3] == math.inf  # what was measured is not changed
    found = table.to_dict()[FOG]
    assert found["unchanged"] == [1, 0, 0, 0, 0]
    assert found["1-ssim"]["p5"] == pytest.approx([1, 22, 43, 64, 85])
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("curve", "metric", "value", "severity"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5], "1-ssim", 0, None),
        ([0.1, 0.1, 0.1, 0.1, 0.1], "1-ssim", 0, None),
        ([0.1, 0.4, 0.3, 0.4, 0.5], "1-ssim", 0.25, 3),
        ([40, 35, 30, 25, 20], "psnr", 0, None),
        ([40, 35, 37, 25, 20], "psnr", 0.1, 3),
    ],
)
def test_monotonicity(curve: list[float], metric: str, value: float, severity: int | None) -> None:
    (finding,) = monotonicity(table_of({FOG: curve}, metric))
    assert finding.value == pytest.approx(value)
    assert finding.severity == severity
    assert finding.notable == (value > 0)
    assert ("not monotone" in finding.text) == finding.notable


def test_saturation() -> None:
    found = saturation(table_of({FOG: [0.0, 0.5, 0.52, 0.9, 1.0], RAIN: [0.2] * 5}))
    assert [(f.entry, f.severity) for f in found] == [(FOG, 3), (RAIN, None)]
    assert found[0].value == pytest.approx(0.02)
    assert "from severity 2 to 3" in found[0].text
    assert len(saturation(table_of({FOG: [0.0, 0.5, 0.52, 0.9, 1.0]}), threshold=0.2)) == 2


def test_unevenness() -> None:
    curves = {FOG: [0.1, 0.2, 0.3, 0.4, 0.5], RAIN: [0.0, 0.0, 0.0, 0.0, 0.4], BLUR: [0.3] * 5}
    even, one = unevenness(table_of(curves))
    assert even.value == pytest.approx(0)
    assert one.value == pytest.approx(math.sqrt(3))
    assert (even.notable, one.notable) == (False, True)


def test_misalignment_compares_within_an_effect() -> None:
    table = table_of({FOG: [0.1, 0.2, 0.3, 0.4, 0.5], RAIN: [0.0, 0.1, 0.3, 0.8, 0.9], BLUR: [0.9] * 5})
    found = misalignment(table)
    assert {f.effect for f in found} == {"WX"}
    assert [f.value for f in found] == pytest.approx([math.inf, 2, 1, 2, 1.8])
    assert (found[0].entry, found[0].other) == (FOG, RAIN)
    assert (found[3].entry, found[3].other) == (RAIN, FOG)
    assert found[0].to_dict()["value"] == "inf"
    json.dumps([f.to_dict() for f in found], allow_nan=False)


def test_no_ratio_of_decibels() -> None:
    found = find_all(table_of({FOG: [40, 35, 30, 25, 20], RAIN: [30, 29, 28, 27, 26]}, "psnr"))
    assert {f.kind for f in found} == {"monotonicity", "unevenness"}
