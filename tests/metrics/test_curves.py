from __future__ import annotations

import numpy as np
import pytest

from crypsis.errors import InputError
from crypsis.metrics import curves

EPS = np.finfo(np.float64).eps


def histograms(seed: int, foreground: float = 0.2, shape: tuple[int, int] = (13, 17)):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < foreground
    q = np.where(mask, rng.integers(60, 256, shape), rng.integers(0, 200, shape))
    return q, mask, np.bincount(q[mask], minlength=256), np.bincount(q[~mask], minlength=256)


def e_by_definition(predicted: np.ndarray, mask: np.ndarray) -> float:
    f, g = predicted.astype(float), mask.astype(float)
    if not mask.any() or mask.all():
        return float((predicted == mask).sum() / (mask.size - 1))
    a, b = f - f.mean(), g - g.mean()
    return float((((2 * a * b / (a * a + b * b + EPS)) + 1) ** 2 / 4).sum() / (mask.size - 1))


@pytest.mark.parametrize("foreground", [0.0, 0.02, 0.3, 0.9, 1.0])
def test_every_threshold_is_what_it_says(foreground: float) -> None:
    q, mask, inside, outside = histograms(3, foreground)
    made = {
        "e": curves.e_curve(inside, outside),
        "p": curves.precision_curve(inside, outside),
        "r": curves.recall_curve(inside, outside),
        "iou": curves.iou_curve(inside, outside),
        "dice": curves.dice_curve(inside, outside),
        "f": curves.f_curve(inside, outside),
    }
    for i, threshold in enumerate(range(255, -1, -1)):
        predicted = q >= threshold
        both, marked, true = (predicted & mask).sum(), predicted.sum(), mask.sum()
        p, r = both / max(marked, 1), both / max(true, 1)
        assert made["e"][i] == pytest.approx(e_by_definition(predicted, mask), abs=1e-9)
        assert made["p"][i] == pytest.approx(p)
        assert made["r"][i] == pytest.approx(r)
        assert made["iou"][i] == pytest.approx(both / max((predicted | mask).sum(), 1))
        assert made["dice"][i] == pytest.approx(2 * both / max(marked + true, 1))
        assert made["f"][i] == pytest.approx(1.3 * p * r / (0.3 * p + r) if both else 0)


def test_images_stack() -> None:
    stacked = [np.stack(h) for h in zip(*(histograms(s)[2:] for s in range(5)), strict=True)]
    for curve in (curves.e_curve, curves.f_curve, curves.iou_curve):
        together = curve(*stacked)
        assert together.shape == (5, 256)
        for i in range(5):
            assert together[i] == pytest.approx(curve(stacked[0][i], stacked[1][i]), abs=1e-12)


def test_the_maximum_is_of_the_averaged_curve() -> None:
    opposed = np.zeros((2, 256))
    opposed[0, 10] = opposed[1, 20] = 1.0
    assert curves.maximum_of_mean(opposed) == 0.5
    assert curves.maximum_of_mean(opposed[0]) == 1.0


@pytest.mark.parametrize(
    ("inside", "outside"),
    [(np.zeros(255), np.zeros(255)), (np.zeros(256), np.zeros((1, 256))), (np.int64(1), np.int64(1))],
)
def test_wrong_shapes(inside: np.ndarray, outside: np.ndarray) -> None:
    with pytest.raises(InputError, match="256"):
        curves.f_curve(inside, outside)


def test_nothing_to_score() -> None:
    with pytest.raises(InputError, match="at least one pixel"):
        curves.e_curve(np.zeros(256), np.zeros(256))
    with pytest.raises(InputError, match="at least one image"):
        curves.maximum_of_mean(np.zeros((0, 256)))
