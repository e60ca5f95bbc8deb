"""A run of scores read from outside: rows, numbers that fit each other, and the proposals they come from."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import run as crypsis
from crypsis.bench.score import PROPOSALS, SCORES, SeamCamSettings, plan_score, score_images
from crypsis.bench.verify import verify_run
from crypsis.errors import InputError
from crypsis.models.saved_proposals import SavedProposals, save_proposals
from crypsis.models.segmenter import Description
from crypsis.types import Image, Proposals

SIZE = 72, 80


class Halves:
    """Proposes the upper and the left half of every image."""

    name = "halves"

    def describe(self) -> Description:
        return {"observer": "halves"}

    def propose(self, image: Image, category: str) -> Proposals:
        masks = np.zeros((2, *image.shape[:2]), np.bool_)
        masks[0, : image.shape[0] // 2] = True
        masks[1, :, : image.shape[1] // 2] = True
        return Proposals(np.array([1.0, 0.6]), np.array([0.3, 0.8]), masks)


@pytest.fixture
def data(make_set: Callable[..., Path]) -> Path:
    return make_set(6, height=SIZE[0], width=SIZE[1])


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Path:
    """Six images in two parts, one of them damaged, by SeamCam and a score of pixels."""
    (data / "Imgs" / "animal-02.png").write_bytes(b"\x89PNG")
    score_images(plan_score(str(data), observer=Halves(), scores=["seamcam", "s_rf"]), tmp_path / "run")
    return tmp_path / "run"


def parts(run: Path) -> list[Path]:
    return sorted((run / "parts").glob("*.parquet"))


def change(run: Path, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], number: int = 0) -> None:
    table = pq.read_table(parts(run)[number])
    pq.write_table(pa.Table.from_pylist(edit(table.to_pylist()), table.schema), parts(run)[number])


def with_first(values: dict[str, Any]) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    return lambda rows: [{**rows[0], **values}, *rows[1:]]


def fault(run: Path) -> str:
    report = verify_run(run)
    assert not report.ok
    (found,) = report.faults
    return found


def test_a_run_that_is_whole(run: Path) -> None:
    report = verify_run(run)
    assert report.ok, report.faults
    assert (report.kind, report.images, report.done, report.parts, report.rows, report.failed) == (
        "camouflage", 6, 6, 2, 6, 1
    )  # fmt: skip
    result = crypsis("verify", run)
    assert (result.exit_code, result.stdout.splitlines()[1]) == (0, "Every planned row is there once.")


def test_all_scores_and_stored_proposals(data: Path, run: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    for item in plan_score(str(data), scores=["s_rf"]).dataset.items:
        save_proposals(tmp_path / "kept", item.key, Halves().propose(np.zeros((*SIZE, 3), np.uint8), ""))
    plan = plan_score(str(data), observer=f"proposals:{tmp_path / 'kept'}", scores=list(SCORES))
    score_images(plan, tmp_path / "stored")
    assert not (tmp_path / "stored" / PROPOSALS).exists()
    assert verify_run(tmp_path / "stored").ok
    score_images(plan_score(str(data), scores=["s_rf"]), tmp_path / "pixels")
    assert verify_run(tmp_path / "pixels").ok


def test_scores_at_a_threshold_pass_in_their_own_precision(data: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    masks = np.ones((2, *SIZE), bool)
    for item in plan_score(str(data), scores=["s_rf"]).dataset.items:
        proposals = Proposals(np.array([0.7, 0.6], np.float32), np.array([0.1, 0.9], np.float32), masks)
        save_proposals(tmp_path / "kept", item.key, proposals)
    settings = SeamCamSettings(tau_alpha=0.7)
    plan = plan_score(str(data), observer=f"proposals:{tmp_path / 'kept'}", settings=settings)
    score_images(plan, tmp_path / "run")
    assert pq.read_table(parts(tmp_path / "run")[0])["kept"].to_pylist()[0] == [0]  # 0.7 in single precision is less
    assert verify_run(tmp_path / "run").ok


def test_a_part_that_is_missing_or_damaged_or_of_another_version(run: Path) -> None:
    first, last = parts(run)
    kept = last.read_bytes()
    last.unlink()
    assert "images 5 to 6 in the order of the plan are not done" in fault(run)
    last.write_bytes(kept[:-40])
    assert fault(run).startswith(f"{last}: is damaged (")
    last.write_bytes(kept)
    pq.write_table(pq.read_table(first).drop_columns(["gains"]), first)
    assert "has other columns than this version writes (gains)" in fault(run)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda rows: rows[1:], "holds 3 images in place of 4"),
        (lambda rows: [rows[0], *rows], r"holds 1 row more than once (animal-00)"),
        (with_first({"status": "fine"}), "neither are ok nor failed (fine)"),
        (with_first({"status": "failed", "error": "x"}), "'animal-00' says that it failed, and holds seamcam, s_rf"),
        (with_first({"image_digest": None}), "lacks image_digest"),
        (with_first({"mask_digest": None, "height": None}), "lacks mask_digest, height"),
        (with_first({"s_rf": None}), "lacks s_rf, and a reason for that"),
        (with_first({"seamcam": None, "reasons": [("seamcam", "x")]}), "lacks seamcam, and a reason for that"),
        (with_first({"s_rf": 1.5}), "holds s_rf = 1.5, which is not in [0, 1]"),
        (with_first({"s_rf": float("nan")}), "holds s_rf = nan, which is not in [0, 1]"),
        (with_first({"gmm-ot": 0.5}), "holds gmm-ot = 0.5, which is not planned"),
        (with_first({"by_top_k": None, "gains": None}), "lacks gains, by_top_k"),
        *(
            (with_first(values), "do not fit each other")
            for values in (
                {"seamcam": 0.123}, {"beta": [0.3]}, {"boxes": [[0, 0, 1, 1]]}, {"best": []}, {"best": [5]},
                {"gains": [0.0]}, {"gains": [9.0, 9.0]}, {"by_top_k": [0.1] * 6}, {"by_top_k": [0.9] + [0.1] * 6},
            )
        ),
        *(
            (with_first(values), "holds other proposals than its α, β and thresholds let pass")
            for values in ({"kept": [1, 2]}, {"kept": [1]}, {"passed": 1})
        ),
        (with_first({"object_pixels": -3}), "says that the object has -3 pixels"),
        (with_first({"boxes": [[0, 0, 1, 1], [0, 0, 2, 2]]}), "is not what its row was scored from"),
    ],
)  # fmt: skip
def test_rows_that_are_not_right(run: Path, edit: Callable[..., list[dict[str, Any]]], message: str) -> None:
    change(run, edit)
    found = fault(run)
    assert message in found
    assert found.startswith(f"{parts(run)[0]}: ")
    assert "delete it and give the command of the run again" in found


def test_a_failed_row_without_a_reason(run: Path) -> None:
    change(run, lambda rows: [{**row, "error": row["error"] and ""} for row in rows])
    assert "'animal-02' says that it failed, and not why" in fault(run)


def test_parts_of_other_images(run: Path) -> None:
    (run / PROPOSALS / "animal-05.npz").rename(run / PROPOSALS / "animal-99.npz")
    change(run, lambda rows: [rows[0], {**rows[1], "image": "animal-99"}], 1)
    assert fault(run) == f"{run}: its parts are of other images than those of its plan; they are another run's."


def test_proposals_that_are_gone_damaged_or_others(run: Path) -> None:
    file = run / PROPOSALS / "animal-01.npz"
    kept = file.read_bytes()
    file.unlink()
    assert re.search(
        r"what was proposed for 'animal-01' cannot be used \(proposals: there are no proposals", fault(run)
    )
    file.write_bytes(kept[:-30])
    assert "what was proposed for 'animal-01' cannot be used" in fault(run)
    file.write_bytes(kept)
    proposals = SavedProposals(run / PROPOSALS).load("animal-01", SIZE)
    save_proposals(run / PROPOSALS, "animal-01", Proposals(proposals.alpha, proposals.beta / 2, proposals.masks))
    assert "what was proposed for 'animal-01' is not what its row was scored from" in fault(run)
    smaller = Proposals(proposals.alpha, proposals.beta, proposals.masks[:, 1:])
    save_proposals(run / PROPOSALS, "animal-01", smaller)
    assert "cannot be used" in fault(run)
    file.write_bytes(kept)
    assert verify_run(run).ok
    shutil.rmtree(run / PROPOSALS)
    report = verify_run(run)
    assert len(report.faults) == 2
    assert all("what was proposed for its images is gone" in one for one in report.faults)
    assert crypsis("verify", run).exit_code == 3


@pytest.mark.parametrize(("name", "value"), [("observer", None), ("seamcam", None), ("scores", 3)])
def test_a_damaged_plan(run: Path, name: str, value: object) -> None:
    content = json.loads((run / "run.json").read_text("utf-8"))
    content["plan"][name] = value
    (run / "run.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(InputError, match="the plan in it is damaged"):
        verify_run(run)
