"""Parity with PySODMetrics 1.6.2 on the stored pairs; tests/data/sod_reference.json says where they come from."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from crypsis.metrics import curves, overlap
from crypsis.metrics.segmentation import MaskTruth, score_mask
from crypsis.metrics.structure import s_measure
from crypsis.results import SCORES

DATA = Path(__file__).parents[1] / "data"
PAIRS = json.loads((DATA / "sod_reference.json").read_text("utf-8"))["pairs"]
MODES = {"raw": "normalize_false", "minmax": "normalize_true"}
TOLERANCE = 1e-6


def load(pair: dict) -> tuple[np.ndarray, np.ndarray]:
    with np.load(DATA / "sod_pairs.npz", allow_pickle=False) as arrays:
        return arrays[f"pred_{pair['id']:02d}"] / 255.0, arrays[f"gt_{pair['id']:02d}"] > 128


def stretch(p: np.ndarray) -> np.ndarray:
    return p if p.max() == p.min() else (p - p.min()) / (p.max() - p.min())


@pytest.mark.parametrize("normalize", MODES)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["name"])
def test_scores_of_a_pair(pair: dict, normalize: str) -> None:
    wanted = pair[MODES[normalize]]
    p, mask = load(pair)
    scores = score_mask(p, MaskTruth(mask), normalize=normalize)
    got = {
        "mae": scores.mae,
        "wfm": scores.weighted_f,
        "em adaptive": scores.e_adaptive,
        "em mean": scores.e_mean,
        "f adaptive": scores.f_adaptive,
        "f mean": scores.f_mean,
        "iou binary": scores.iou,
    }
    expected = {
        "mae": wanted["mae"],
        "wfm": wanted["wfm"],
        "em adaptive": wanted["em"]["adaptive"],
        "em mean": wanted["em"]["mean"],
        "f adaptive": wanted["f_beta2_0.3"]["adaptive"],
        "f mean": wanted["f_beta2_0.3"]["mean"],
        "iou binary": wanted["iou"]["binary"],
    }
    if wanted["sm"] != "nan":
        got["sm"], expected["sm"] = scores.s_measure, wanted["sm"]
    assert got == pytest.approx(expected, abs=TOLERANCE, rel=0)


@pytest.mark.parametrize("normalize", MODES)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["name"])
def test_curves_of_a_pair(pair: dict, normalize: str) -> None:
    wanted = pair[MODES[normalize]]
    p, mask = load(pair)
    scores = score_mask(p, MaskTruth(mask), normalize=normalize)
    histograms = scores.histogram_object, scores.histogram_background
    made = {
        "f_beta2_0.3": curves.f_curve(*histograms),
        "f1": curves.f_curve(*histograms, beta2=1.0),
        "precision": curves.precision_curve(*histograms),
        "recall": curves.recall_curve(*histograms),
        "iou": curves.iou_curve(*histograms),
        "dice": curves.dice_curve(*histograms),
        "em": curves.e_curve(*histograms),
    }
    for name, curve in made.items():
        assert curve.mean() == pytest.approx(wanted[name]["mean"], abs=TOLERANCE, rel=0), name
        assert curves.maximum_of_mean(curve) == pytest.approx(wanted[name]["max"], abs=TOLERANCE, rel=0), name
    e = made["em"]
    assert e[:4] == pytest.approx(wanted["em"]["curve_head"], abs=TOLERANCE, rel=0)
    assert e[127] == pytest.approx(wanted["em"]["curve_mid"], abs=TOLERANCE, rel=0)
    assert e[-4:] == pytest.approx(wanted["em"]["curve_tail"], abs=TOLERANCE, rel=0)


@pytest.mark.parametrize("normalize", MODES)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["name"])
def test_binary_and_adaptive_counts_of_a_pair(pair: dict, normalize: str) -> None:
    wanted = pair[MODES[normalize]]
    p, mask = load(pair)
    p = stretch(p) if normalize == "minmax" else p
    truth = MaskTruth(mask)
    for kind, predicted in {"binary": p > 0.5, "adaptive": p >= overlap.adaptive_threshold(p)}.items():
        tp, fp, fn = overlap.confusion(predicted, truth)
        got = {
            "f_beta2_0.3": overlap.f_beta(tp, fp, fn),
            "f1": overlap.f_beta(tp, fp, fn, beta2=1.0),
            "precision": overlap.precision(tp, fp),
            "recall": overlap.recall(tp, fn),
            "iou": overlap.iou(tp, fp, fn),
            "dice": overlap.dice(tp, fp, fn),
        }
        assert got == pytest.approx({name: wanted[name][kind] for name in got}, abs=TOLERANCE, rel=0), kind


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["name"])
def test_float32_maps_score_the_same(pair: dict) -> None:
    p, mask = load(pair)
    double, single = (score_mask(q, MaskTruth(mask)) for q in (p, p.astype(np.float32)))
    # the calibration error may differ: 85/255 in float32 lies on the other side of an edge of its bins
    for name in set(SCORES) - {"ece"}:
        assert getattr(single, name) == pytest.approx(getattr(double, name), abs=TOLERANCE, rel=0), name
    assert (single.histogram_object == double.histogram_object).all()


def s_by_definition(p: np.ndarray, mask: np.ndarray) -> float:
    """S-measure written out pixel by pixel, leaving out quadrants without pixels."""

    def uniformity(x: np.ndarray) -> float:
        return 2 * x.mean() / (x.mean() ** 2 + 1 + (x.std(ddof=1) if x.size > 1 else 0.0))

    if mask.all() or not mask.any():
        return float(p.mean() if mask.all() else 1 - p.mean())
    rows, columns = np.nonzero(mask)
    row, column = int(np.round(rows.mean())) + 1, int(np.round(columns.mean())) + 1
    region = 0.0
    for block in np.s_[:row, :column], np.s_[:row, column:], np.s_[row:, :column], np.s_[row:, column:]:
        x, y = p[block], mask[block].astype(float)
        if x.size == 0:
            continue
        dx, dy, n = x - x.mean(), y - y.mean(), max(x.size - 1, 1)
        top = 4 * x.mean() * y.mean() * (dx * dy).sum() / n
        bottom = (x.mean() ** 2 + y.mean() ** 2) * ((dx * dx).sum() + (dy * dy).sum()) / n
        region += x.size / p.size * (top / bottom if top != 0 else float(bottom == 0))
    objects = mask.mean() * uniformity(p[mask]) + (1 - mask.mean()) * uniformity(1 - p[~mask])
    return max(0.0, 0.5 * objects + 0.5 * region)


@pytest.mark.parametrize("normalize", MODES)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["name"])
def test_s_measure_where_the_reference_is_nan(pair: dict, normalize: str) -> None:
    # An object whose centroid lies in the last row or column leaves quadrants without pixels. The reference takes
    # their mean, 0/0, and one such image makes a data set's S-measure NaN; a part without area has no weight.
    wanted = pair[MODES[normalize]]["sm"]
    p, mask = load(pair)
    p = stretch(p) if normalize == "minmax" else p
    assert (wanted == "nan") == (pair["name"] in ("corner_pixel", "last_column_strip"))
    expected = s_by_definition(p, mask)
    if wanted != "nan":
        assert expected == pytest.approx(wanted, abs=TOLERANCE)
    got = s_measure(p, MaskTruth(mask))
    assert math.isfinite(got)
    assert got == pytest.approx(expected, abs=TOLERANCE)
