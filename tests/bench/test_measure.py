"""Measuring strength: what the rows hold, how it continues, and what it refuses."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from crypsis.bench.measure import calibrate, finish_measuring, measure, plan_measure, read_strengths
from crypsis.catalog import get_entry
from crypsis.errors import InputError, PlanChangedError, UnknownNameError
from crypsis.io import read_image, write_image
from crypsis.severity.strength import CleanImage

ENTRIES = ["cod10k-c/fog", "cod10k-c/gaussian_noise", "arniqa/lincontrchange"]


@pytest.fixture
def images(make_set: Callable[..., Path]) -> Path:
    """Return a plain folder of 15 images, which three entries make two units of."""
    return make_set(15, height=24, width=32) / "Imgs"


def rows_of(folder: Path) -> list[dict[str, object]]:
    return [row for part in sorted((folder / "parts").iterdir()) for row in pq.read_table(part).to_pylist()]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "parts").iterdir()}


def test_rows_and_table(images: Path, tmp_path: Path) -> None:
    plan = plan_measure(str(images), entries=ENTRIES, seed=3)
    outcome = measure(plan, tmp_path / "run")
    assert (outcome.units, outcome.images, outcome.failures, outcome.errors) == (2, 15, (), ())
    rows = rows_of(tmp_path / "run")
    assert len(rows) == 15 * 3 * 5 * 2
    row = next(
        r for r in rows
        if (r["image"], r["entry"], r["severity"], r["metric"]) == ("animal-04", ENTRIES[1], 2, "psnr")
    )  # fmt: skip
    clean = read_image(images / "animal-04.png")
    degraded = get_entry(ENTRIES[1]).degrade(clean, 2, seed=3, image_key="animal-04")
    assert row["value"] == CleanImage(clean).strengths(degraded).psnr
    assert (row["height"], row["width"], row["seed"], row["unchanged"]) == (24, 32, 3, False)
    table = finish_measuring(plan, tmp_path / "run")
    assert (table.entries, table.metrics, table.images) == (tuple(ENTRIES), ("1-ssim", "psnr"), 15)
    values = [r["value"] for r in rows if (r["entry"], r["severity"], r["metric"]) == (ENTRIES[0], 5, "1-ssim")]
    assert table.mean[0, 0, 4] == pytest.approx(np.mean(values))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["measured"] == 15
    assert summary["entries"][ENTRIES[0]]["1-ssim"]["mean"][4] == table.mean[0, 0, 4]
    assert {f["kind"] for f in summary["findings"]} >= {"monotonicity", "unevenness"}


def test_same_bytes_for_any_workers_and_interruptions(images: Path, tmp_path: Path) -> None:
    plan = plan_measure(str(images), entries=ENTRIES)
    measure(plan, tmp_path / "one")
    measure(plan, tmp_path / "two", workers=2)
    whole = bytes_of(tmp_path / "one")
    assert bytes_of(tmp_path / "two") == whole
    shutil.copytree(tmp_path / "one", tmp_path / "cut")
    first, second = sorted((tmp_path / "cut" / "parts").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:100])
    assert measure(plan, tmp_path / "cut").images == 15
    assert bytes_of(tmp_path / "cut") == whole
    assert measure(plan, tmp_path / "cut").images == 0


def test_calibration_agrees_with_the_table(images: Path, tmp_path: Path) -> None:
    plan = plan_measure(str(images), entries=ENTRIES[:1], metrics=["psnr"], limit=4)
    assert [s.key for s in plan.sources] == ["animal-00", "animal-03", "animal-07", "animal-11"]
    measure(plan, tmp_path / "run")
    table = read_strengths(plan, tmp_path / "run")
    calibration, failures = calibrate(plan)
    assert failures == ()
    assert calibration.count == 4
    np.testing.assert_allclose(calibration.strengths, table.curve(ENTRIES[0], "psnr"), rtol=1e-12)
    np.testing.assert_allclose(calibration.deviations, table.deviation[0, 0], rtol=1e-9)


def test_unchanged_images(tmp_path: Path) -> None:
    for index, level in enumerate((128, 100)):  # mid-gray has no contrast to lose
        write_image(tmp_path / "gray" / f"{index}.png", np.full((16, 20, 3), level, np.uint8))
    name = "cod10k-c/contrast"
    plan = plan_measure(str(tmp_path / "gray"), entries=[name])
    measure(plan, tmp_path / "run")
    rows = [r for r in rows_of(tmp_path / "run") if r["unchanged"]]
    assert rows
    assert {r["value"] for r in rows} == {math.inf, 0.0}
    table = read_strengths(plan, tmp_path / "run")
    assert table.unchanged.sum() == len(rows) / 2
    assert np.isfinite(table.mean).all()


def test_bad_images_are_counted_left_out_and_tried_again(images: Path, tmp_path: Path) -> None:
    whole = (images / "animal-03.png").read_bytes()
    (images / "animal-03.png").write_bytes(whole[:50])
    plan = plan_measure(str(images), entries=ENTRIES[:1])
    outcome = measure(plan, tmp_path / "run")
    assert [Path(path).name for path, _ in outcome.failures] == ["animal-03.png"]
    assert finish_measuring(plan, tmp_path / "run", outcome.failures).images == 14
    calibration, failures = calibrate(plan_measure(str(images), entries=ENTRIES[:1], metrics=["1-ssim"]))
    assert (calibration.count, failures) == (14, outcome.failures)
    (images / "animal-03.png").write_bytes(whole)
    assert measure(plan, tmp_path / "run").failures == ()
    assert read_strengths(plan, tmp_path / "run").images == 15


def test_no_image_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.png").write_bytes(b"no image")
    plan = plan_measure(str(tmp_path / "set"), entries=ENTRIES[:1], metrics=["psnr"])
    assert len(measure(plan, tmp_path / "run").failures) == 1
    with pytest.raises(InputError, match="no image could be measured"):
        read_strengths(plan, tmp_path / "run")
    with pytest.raises(InputError, match="no image could be read"):
        calibrate(plan)


def test_another_plan_or_other_images_are_refused(images: Path, tmp_path: Path) -> None:
    measure(plan_measure(str(images), entries=ENTRIES[:1], limit=2), tmp_path / "run")
    with pytest.raises(PlanChangedError, match=r"measurement of another plan \(seed: 0 there, 1 now\)"):
        measure(plan_measure(str(images), entries=ENTRIES[:1], limit=2, seed=1), tmp_path / "run")
    write_image(images / "animal-00.png", np.zeros((24, 32, 3), np.uint8))
    with pytest.raises(PlanChangedError, match=r"1 of the images in .* have other files now"):
        measure(plan_measure(str(images), entries=ENTRIES[:1], limit=2), tmp_path / "run")


def test_the_same_names_and_sizes_are_not_the_same_images(tmp_path: Path) -> None:
    for folder, level in (("a", 90), ("b", 20)):
        write_image(tmp_path / folder / "x.bmp", np.full((12, 16, 3), level, np.uint8))
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    measure(plan_measure(str(tmp_path / "a"), entries=ENTRIES[:1]), tmp_path / "run")
    assert measure(plan_measure(str(tmp_path / "copy"), entries=ENTRIES[:1]), tmp_path / "run").images == 0
    with pytest.raises(PlanChangedError, match=r"1 of the images in .* have other files now"):
        measure(plan_measure(str(tmp_path / "b"), entries=ENTRIES[:1]), tmp_path / "run")


def test_what_differs_is_said_by_name(images: Path, tmp_path: Path) -> None:
    measure(plan_measure(str(images), entries=ENTRIES[:2], limit=1), tmp_path / "run")
    with pytest.raises(PlanChangedError) as caught:
        measure(plan_measure(str(images), families=["imagenet-c"], limit=1), tmp_path / "run")
    assert (
        "(entries: cod10k-c/fog, cod10k-c/gaussian_noise only there, imagenet-c/gaussian_noise, imagenet-c/shot_noise, "
        "imagenet-c/impulse_noise, imagenet-c/defocus_blur, imagenet-c/glass_blur, and 14 more only now)"
    ) in str(caught.value)


def test_wrong_arguments(images: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean '1-ssim'"):
        plan_measure(str(images), metrics=["ssim"])
    with pytest.raises(InputError, match="No metric"):
        plan_measure(str(images), metrics=[])
    with pytest.raises(InputError, match="1 up"):
        plan_measure(str(images), limit=0)
    with pytest.raises(InputError, match="of one entry in one metric"):
        calibrate(plan_measure(str(images), entries=ENTRIES))
