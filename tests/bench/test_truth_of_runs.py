"""What a prediction is scored against where a degradation moves content."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from command_line import run
from crypsis.bench.finish import finish
from crypsis.bench.plan import MaskPlan, plan_cod10k_c
from crypsis.bench.run import run_masks
from crypsis.catalog import get_entry
from crypsis.errors import PlanChangedError, UnknownNameError
from crypsis.io import write_image
from crypsis.types import Image, Prediction
from moving_entries import SHIFT


class SeesRed:
    """A segmenter that is always right about what it is shown."""

    name = "red"

    def describe(self) -> dict[str, str | int | float | bool | None]:
        return {"adapter": "red"}

    def predict(self, images: list[Image]) -> list[Prediction]:
        return [Prediction((image[..., 0].astype(int) - image[..., 1] > 60).astype(np.float32)) for image in images]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for index in range(3):
        mask = np.zeros((40, 60), np.bool_)
        mask[10:30, 45 - 8 * index : 58 - 8 * index] = True
        image = np.full((40, 60, 3), 60, np.uint8)
        image[mask] = (220, 40, 40)
        write_image(tmp_path / "set" / "Imgs" / f"{index}.png", image)
        write_image(tmp_path / "set" / "GT" / f"{index}.png", mask.astype(np.uint8) * 255)
    return tmp_path / "set"


def planned(data: Path, truth: str) -> MaskPlan:
    plan = plan_cod10k_c(str(data), [SeesRed()], truth=truth)
    return dataclasses.replace(plan, entries=(SHIFT, get_entry("cod10k-c/brightness")))


def test_aligned_truth_follows_the_object(data: Path, tmp_path: Path) -> None:
    dice: dict[tuple[str, str, int], list[float]] = {}
    foreground: dict[tuple[str, str, int], list[int]] = {}
    for truth in ("published", "aligned"):
        plan = planned(data, truth)
        outcome = run_masks(plan, tmp_path / truth)
        assert (outcome.failures, outcome.errors) == ((), ())
        for row in pq.read_table(tmp_path / truth / "parts").to_pylist():
            place = (truth, row["entry"], row["severity"])
            dice.setdefault(place, []).append(row["dice"])
            foreground.setdefault(place, []).append(row["foreground"])
        assert finish(tmp_path / truth, plan).plan["truth"] == truth
    for severity in (1, 3, 5):
        assert dice["aligned", "test/shift", severity] == pytest.approx([1, 1, 1], abs=1e-6)
        assert max(dice["published", "test/shift", severity]) < 0.97
    for entry, severity in (("clean", 0), ("cod10k-c/brightness", 1)):
        assert dice["aligned", entry, severity] == dice["published", entry, severity]
    assert foreground["published", "test/shift", 5] == [260, 260, 260]
    assert foreground["aligned", "test/shift", 5] == [20 * 7, 260, 260]  # a part of the first left the image


def test_the_choice_belongs_to_the_plan(data: Path, tmp_path: Path) -> None:
    run_masks(planned(data, "published"), tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["plan"]["truth"] == "published"
    with pytest.raises(PlanChangedError, match='truth: "published" there, "aligned" now'):
        run_masks(planned(data, "aligned"), tmp_path / "run")
    with pytest.raises(UnknownNameError, match="truth 'moved'"):
        plan_cod10k_c(str(data), [SeesRed()], truth="moved")


def test_on_the_command_line(data: Path, tmp_path: Path) -> None:
    command = ["bench", "cod10k-c", "--data", str(data), "--model", "saliency", "--workers", "1", "-q"]
    result = run(*command, "--truth", "aligned", "--out", str(tmp_path / "run"), "--limit", "1")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "run" / "run.json").read_text())["plan"]["truth"] == "aligned"
    result = run(*command, "--truth", "aligend", "--out", str(tmp_path / "other"))
    assert result.exit_code == 2
    assert "did you mean 'aligned'" in result.output
