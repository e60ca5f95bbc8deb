"""The summary against the same numbers computed in the plainest way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crypsis.bench.plan import plan_cod10k_c
from crypsis.bench.run import run_masks
from crypsis.errors import InputError
from crypsis.metrics.curves import e_curve
from crypsis.results import RECORD_SCHEMA, SCORES, RunFolder, summarize
from crypsis.severity.calibration import PSNR_CEILING


@pytest.fixture
def run(make_set: Callable[..., Path], tmp_path: Path) -> RunFolder:
    run_masks(plan_cod10k_c(str(make_set(7)), ["saliency"]), tmp_path / "run")
    return RunFolder.open(tmp_path / "run")


def test_means_are_plain_means(run: RunFolder) -> None:
    rows = pq.read_table(run.path / "parts").to_pylist()
    summary = summarize(run)
    assert summary["complete"] is True
    saliency = summary["models"]["saliency"]
    for score in SCORES:
        by_condition = {
            str(c): np.mean([r[score] for r in rows if (r["entry"], r["severity"]) == (c.entry, c.severity)])
            for c in run.conditions
        }
        for condition, mean in by_condition.items():
            assert saliency["conditions"][condition][score]["value"] == pytest.approx(mean)
        corrupted = np.mean([m for c, m in by_condition.items() if c != "clean"])
        assert saliency["corrupted"][score]["value"] == pytest.approx(corrupted)
        assert saliency["delta"][score]["value"] == pytest.approx(corrupted - by_condition["clean"])
        rain = np.mean([by_condition[f"cod10k-c/rain@{s}"] for s in range(1, 6)])
        assert saliency["entries"]["cod10k-c/rain"][score]["value"] == pytest.approx(rain)
        second = np.mean([m for c, m in by_condition.items() if c.endswith("@2")])
        assert saliency["severities"]["2"][score]["value"] == pytest.approx(second)
    assert saliency["retention"]["dice"]["value"] == pytest.approx(
        saliency["corrupted"]["dice"]["value"] / saliency["conditions"]["clean"]["dice"]["value"]
    )
    assert "mae" not in saliency["retention"]


def test_strength_is_a_mean_over_the_scored_images(run: RunFolder) -> None:
    rows = pq.read_table(run.path / "parts").to_pylist()
    strength = summarize(run)["models"]["saliency"]["strength"]
    assert list(strength) == [str(c) for c in run.conditions]
    assert strength["clean"]["1-ssim"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert strength["clean"]["psnr"]["value"] == pytest.approx(PSNR_CEILING)
    for condition in run.conditions[1:]:
        own = [r for r in rows if (r["entry"], r["severity"]) == (condition.entry, condition.severity)]
        found = strength[str(condition)]
        assert found["1-ssim"]["value"] == pytest.approx(np.mean([r["one_minus_ssim"] for r in own]))
        assert found["psnr"]["value"] == pytest.approx(np.mean([min(r["psnr"], PSNR_CEILING) for r in own]))
        assert found["1-ssim"]["low"] <= found["1-ssim"]["value"] <= found["1-ssim"]["high"]


def test_an_unchanged_image_counts_as_the_ceiling_in_means_of_psnr(run: RunFolder) -> None:
    for part in run.parts():
        table = pq.read_table(part)
        psnr = [np.inf if image == "animal-00" else 30.0 for image in table["image"].to_pylist()]
        place = table.column_names.index("psnr")
        pq.write_table(table.set_column(place, "psnr", pa.array(psnr, pa.float64())), part)
    found = summarize(run)["models"]["saliency"]["strength"]["cod10k-c/fog@3"]["psnr"]["value"]
    assert found == pytest.approx((6 * 30 + PSNR_CEILING) / 7)


def test_pooled_numbers_pool(run: RunFolder) -> None:
    clean = [r for r in pq.read_table(run.path / "parts").to_pylist() if r["severity"] == 0]
    summary = summarize(run)["models"]["saliency"]
    count, confidence, correct = (
        np.sum([r[f"ece_{k}"] for r in clean], axis=0) for k in ("count", "confidence", "correct")
    )
    ece = np.abs(confidence - correct).sum() / count.sum()
    assert summary["conditions"]["clean"]["ece_pooled"]["value"] == pytest.approx(ece)
    curves = [e_curve(r["histogram_object"], r["histogram_background"]) for r in clean]
    assert summary["conditions"]["clean"]["e_max"]["value"] == pytest.approx(np.mean(curves, axis=0).max())
    shares = summary["reliability"]["clean"]["share"]
    assert sum(shares) == pytest.approx(1)


def test_intervals_hold_their_value_and_are_reproducible(run: RunFolder) -> None:
    first = summarize(run)
    assert json.dumps(first) == json.dumps(summarize(run))
    for table in ("corrupted", "delta", "retention"):
        dice = first["models"]["saliency"][table]["dice"]
        assert dice["low"] < dice["value"] < dice["high"]


def test_a_summary_is_made_anew_when_parts_change(run: RunFolder) -> None:
    from crypsis.bench.store import write_json

    write_json(run.path / "summary.json", summarize(run))
    assert run.summary()["scored"] == 7
    last = run.parts()[-1]
    last.unlink()
    (run.path / "summary.json").unlink()
    partial = run.summary()
    assert (partial["scored"], partial["complete"]) == (4, False)


def test_rows_have_the_published_columns(run: RunFolder) -> None:
    for part in run.parts():
        assert pq.read_schema(part).equals(RECORD_SCHEMA)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cannot be read"),
        ('{"schema": "crypsis.run/1"}', "crypsis.run/1"),
        ('{"schema": "other/9"}', "other/9"),
        (None, "no run is here"),
    ],
)
def test_not_a_run(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match=words):
        RunFolder.open(tmp_path)


def test_one_image_has_no_interval(make_set: Callable[..., Path], tmp_path: Path) -> None:
    run_masks(plan_cod10k_c(str(make_set(1)), ["saliency"]), tmp_path / "run")
    found = summarize(RunFolder.open(tmp_path / "run"))["models"]["saliency"]
    for kind in ("corrupted", "retention"):
        assert found[kind]["dice"]["value"] is not None
        assert (found[kind]["dice"]["low"], found[kind]["dice"]["high"]) == (None, None)
