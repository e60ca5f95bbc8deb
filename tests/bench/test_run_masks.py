"""The engine: what it writes does not depend on how often it was killed, nor on the number of workers."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from crypsis.bench.engines import map_units
from crypsis.bench.finish import finish
from crypsis.bench.plan import UNIT_IMAGES, plan_cod10k_c
from crypsis.bench.run import run_masks
from crypsis.errors import DatasetError, IncompleteError, InputError, ModelError, PlanChangedError
from crypsis.io import read_image
from crypsis.results import RUN_SCHEMA, RunFolder, summarize
from crypsis.severity.strength import psnr, ssim
from crypsis.types import Image, Prediction

SLOW_MODEL = '''
import time
import numpy as np

def look(image):
    """A soft map that is slow enough to be killed in the middle of."""
    time.sleep(0.004)
    return np.abs(image.mean(axis=2) - image.mean()) / 255
'''


class Constant:
    """A segmenter that says the same everywhere."""

    def __init__(self, value: float = 0.3, name: str = "constant") -> None:
        self.name = name
        self.value = value

    def describe(self) -> dict[str, str | int | float | bool | None]:
        return {"adapter": "constant", "value": self.value}

    def predict(self, images: list[Image]) -> list[Prediction]:
        return [Prediction(np.full(image.shape[:2], self.value, np.float32)) for image in images]


def part_bytes(run: Path) -> dict[str, bytes]:
    return {part.name: part.read_bytes() for part in sorted((run / "parts").iterdir())}


def test_rows_are_complete_and_finite(make_set: Callable[..., Path], tmp_path: Path) -> None:
    plan = plan_cod10k_c(str(make_set(6)), ["saliency", Constant()])
    outcome = run_masks(plan, tmp_path / "run")
    assert (outcome.units, outcome.left, outcome.failures, outcome.errors) == (2, 0, (), ())
    table = pq.read_table(tmp_path / "run" / "parts")
    assert table.num_rows == 6 * 41 * 2
    assert set(table["status"].to_pylist()) == {"ok"}
    for name in ("dice", "boundary_f1", "ece", "s_measure", "weighted_f", "e_mean", "f_adaptive"):
        values = table[name].to_numpy()
        assert np.isfinite(values).all()
        assert values.min() >= 0
    cells = set(zip(*(table[c].to_pylist() for c in ("image", "model", "entry", "severity")), strict=True))
    assert len(cells) == table.num_rows


def test_strength_is_measured_once_for_all_models(make_set: Callable[..., Path], tmp_path: Path) -> None:
    plan = plan_cod10k_c(str(make_set(2)), ["saliency", Constant()])
    run_masks(plan, tmp_path / "run")
    image = read_image(plan.dataset.items[1].image)
    for row in pq.read_table(tmp_path / "run" / "parts").to_pylist():
        measured = row["one_minus_ssim"], row["psnr"]
        if row["severity"] == 0:
            assert measured == (0.0, np.inf)
        elif row["image"] == "animal-01":
            degraded = plan.entry(row["entry"]).degrade(image, row["severity"], seed=0, image_key="animal-01")
            assert measured == (1 - ssim(image, degraded), psnr(image, degraded))


def test_what_is_kept_in_memory_does_not_change_bytes(
    make_set: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_cod10k_c(str(make_set(2)), ["saliency"])
    run_masks(plan, tmp_path / "small")
    monkeypatch.setattr("crypsis.bench.run.LARGE", 100)
    run_masks(plan, tmp_path / "large")
    assert part_bytes(tmp_path / "small") == part_bytes(tmp_path / "large")


def test_workers_do_not_change_bytes(make_set: Callable[..., Path], tmp_path: Path) -> None:
    plan = plan_cod10k_c(str(make_set(9)), ["saliency"])
    run_masks(plan, tmp_path / "one", workers=1)
    run_masks(plan, tmp_path / "two", workers=2)
    assert part_bytes(tmp_path / "one") == part_bytes(tmp_path / "two")


def _members(session: int) -> list[int]:
    """Return the living processes of a session (Linux)."""
    alive = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            alive.append(int(stat.parent.name))
    return alive


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc to see that no worker is left behind")
def test_killed_three_times_and_resumed(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(60)
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    command = [sys.executable, "-m", "crypsis", "bench", "cod10k-c", "--data", str(data), "--workers", "2", "-q"]
    command += ["--model", "python:slow:look", "--model", "saliency", "--out"]
    moments = random.Random(5)
    run = tmp_path / "killed"
    seen = 0
    for _ in range(3):
        process = subprocess.Popen([*command, str(run)], cwd=tmp_path, start_new_session=True)
        deadline = time.monotonic() + 60
        while len(list((run / "parts").glob("*.parquet"))) <= seen and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.3))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        seen = len(list((run / "parts").glob("*.parquet")))
        deadline = time.monotonic() + 10
        while _members(process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not _members(process.pid), "workers outlived their parent"
    assert 3 <= seen < 60 / UNIT_IMAGES
    assert subprocess.run([*command, str(run)], cwd=tmp_path, check=False).returncode == 0
    undisturbed = tmp_path / "undisturbed"
    assert subprocess.run([*command, str(undisturbed)], cwd=tmp_path, check=False).returncode == 0
    assert part_bytes(run) == part_bytes(undisturbed)
    assert json.loads((run / "summary.json").read_text()) == json.loads((undisturbed / "summary.json").read_text())
    assert not list(run.glob("**/*.tmp"))


def test_ctrl_c_ends_quickly_and_resumes(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(24)
    (tmp_path / "slow.py").write_text(SLOW_MODEL.replace("0.004", "0.02"))
    command = [sys.executable, "-m", "crypsis", "bench", "cod10k-c", "--data", str(data), "--workers", "2"]
    command += ["--model", "python:slow:look", "--out", str(tmp_path / "run")]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not list((tmp_path / "run" / "parts").glob("*.parquet")):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "give the same command again" in stderr
    assert "Traceback" not in stderr


def test_other_plan_is_refused(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = str(make_set(4))
    run_masks(plan_cod10k_c(data, [Constant()]), tmp_path / "run")
    with pytest.raises(PlanChangedError, match=r"seed: 0 there, 1 now"):
        run_masks(plan_cod10k_c(data, [Constant()], seed=1), tmp_path / "run")
    with pytest.raises(PlanChangedError, match=r"models\.constant\.value: 0\.3 there, 0\.4 now"):
        run_masks(plan_cod10k_c(data, [Constant(0.4)]), tmp_path / "run")
    with pytest.raises(PlanChangedError, match="limit"):
        run_masks(plan_cod10k_c(data, [Constant()], limit=2), tmp_path / "run")


def test_a_run_with_other_columns_is_refused(make_set: Callable[..., Path], tmp_path: Path) -> None:
    plan = plan_cod10k_c(str(make_set(4)), [Constant()])
    run_masks(plan, tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    old = file.read_text().replace(RUN_SCHEMA, "crypsis.run/1")
    file.write_text(old)
    with pytest.raises(PlanChangedError, match=r"schema 'crypsis\.run/1' and this version writes 'crypsis\.run/3'"):
        run_masks(plan, tmp_path / "run")
    assert file.read_text() == old


def test_changed_files_are_refused(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(4)
    run_masks(plan_cod10k_c(str(data), [Constant()]), tmp_path / "run")
    for folder, name in (("Imgs", "animal-01"), ("GT", "animal-02")):
        file = data / folder / f"{name}.png"
        before = file.read_bytes()
        for changed in (b"more" + before, before[::-1]):  # also of the same size
            file.write_bytes(changed)
            with pytest.raises(PlanChangedError, match=name):
                run_masks(plan_cod10k_c(str(data), [Constant()]), tmp_path / "run")
        file.write_bytes(before)
    copy = shutil.copytree(data, tmp_path / "elsewhere" / data.name)
    assert run_masks(plan_cod10k_c(str(copy), [Constant()]), tmp_path / "run").images == 0


def test_bad_images_are_counted_and_mended(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(6)
    damaged = data / "Imgs" / "animal-03.png"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    plan = plan_cod10k_c(str(data), [Constant()])
    outcome = run_masks(plan, tmp_path / "run")
    assert [image for image, _ in outcome.failures] == ["animal-03"]
    assert "damaged or truncated" in outcome.failures[0][1]
    summary = finish(tmp_path / "run", plan).summary()
    assert summary["complete"] is False
    assert summary["scored"] == 5
    assert list(summary["failed"]) == ["animal-03"]
    damaged.write_bytes(whole)
    outcome = run_masks(plan_cod10k_c(str(data), [Constant()]), tmp_path / "run")
    assert outcome.failures == ()
    summary = finish(tmp_path / "run", plan).summary()
    assert (summary["complete"], summary["scored"]) == (True, 6)


def test_all_bad_images_are_an_error_not_an_empty_table(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(2)
    for image in (data / "Imgs").iterdir():
        image.write_bytes(b"not an image")
    plan = plan_cod10k_c(str(data), [Constant()])
    assert len(run_masks(plan, tmp_path / "run").failures) == 2
    with pytest.raises(InputError, match="nothing was scored"):
        finish(tmp_path / "run", plan)


def test_full_disk_is_a_sentence(
    make_set: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    plan = plan_cod10k_c(str(make_set(2)), [Constant()])
    monkeypatch.setattr(pq.ParquetWriter, "write_table", no_space)
    with pytest.raises(IncompleteError, match="no space is left on the disk"):
        run_masks(plan, tmp_path / "run")
    assert not list((tmp_path / "run" / "parts").iterdir())


class _Broken(Constant):
    def predict(self, images: list[Image]) -> list[Prediction]:
        if len(images) > 1:
            raise RuntimeError("a bug in the model")
        return super().predict(images)


def test_a_bug_leaves_its_unit_undone(make_set: Callable[..., Path], tmp_path: Path) -> None:
    outcome = run_masks(plan_cod10k_c(str(make_set(6)), [_Broken()]), tmp_path / "run")
    assert outcome.left == outcome.units == 2
    assert len(outcome.errors) == 2
    assert "a bug in the model" in outcome.errors[0]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"models": []}, InputError, "No model was named"),
        ({"models": ["saliency", "saliency"]}, InputError, "name=LABEL"),
        ({"limit": 0}, InputError, "from 1 up"),
        ({"normalize": "max"}, InputError, "'raw' or 'minmax'"),
        ({"on_size_mismatch": "guess"}, InputError, "resize-mask"),
        ({"models": ["onnx:absent.onnx"]}, ModelError, r"absent\.onnx"),
        ({"data": "no/such/folder"}, DatasetError, "no/such/folder"),
    ],
)
def test_wrong_plans(
    make_set: Callable[..., Path], options: dict[str, object], error: type[Exception], words: str
) -> None:
    arguments = {"data": str(make_set(2)), "models": [Constant()], **options}
    with pytest.raises(error, match=words):
        plan_cod10k_c(**arguments)  # type: ignore[arg-type]


def test_wrong_folders(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = str(make_set(2))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    plan = plan_cod10k_c(data, [Constant()])
    with pytest.raises(InputError, match="not empty and not a run"):
        run_masks(plan, tmp_path / "full")
    with pytest.raises(InputError, match="is a file"):
        run_masks(plan, tmp_path / "full" / "letter.txt")
    with pytest.raises(InputError, match="workers"):
        run_masks(plan, tmp_path / "new", workers=0)
    with pytest.raises(InputError, match="in this process only"):
        run_masks(plan, tmp_path / "new", workers=2)
    with pytest.raises(InputError, match="no run is here"):
        RunFolder.open(tmp_path / "full")


def _die(unit: int) -> int:
    if unit == 3:
        os._exit(9)
    return unit


def _make_die() -> Callable[[int], int]:
    return _die


def test_a_dead_worker_is_a_sentence() -> None:
    with pytest.raises(IncompleteError, match="A worker process died"):
        list(map_units(_make_die, range(8), workers=2))


def _make_square() -> Callable[[int], int]:
    return _square


def _square(unit: int) -> int:
    return unit * unit


@pytest.mark.parametrize("workers", [1, 2])
def test_map_units_does_each_once(workers: int) -> None:
    before = os.environ.get("OMP_NUM_THREADS")
    assert sorted(map_units(_make_square, range(50), workers=workers)) == [n * n for n in range(50)]
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_stored_predictions_need_no_pixels(make_set: Callable[..., Path], tmp_path: Path) -> None:
    from crypsis.io import write_image

    data = make_set(2)
    plan = plan_cod10k_c(str(data), [Constant()])
    for condition in plan.conditions:
        folder = "clean" if condition.severity == 0 else f"{condition.entry}/{condition.severity}"
        for item in plan.dataset.items:
            write_image(tmp_path / "maps" / folder / f"{item.key}.png", np.full((48, 64), 77, np.uint8))
    stored = plan_cod10k_c(str(data), [f"predictions:{tmp_path / 'maps'}"])
    run_masks(stored, tmp_path / "stored")
    run_masks(plan_cod10k_c(str(data), [Constant(77 / 255)]), tmp_path / "live")
    dice = [pq.read_table(tmp_path / run / "parts")["dice"].to_pylist() for run in ("stored", "live")]
    assert dice[0] == pytest.approx(dice[1], abs=1e-6)
    rows = pq.read_table(tmp_path / "stored" / "parts")
    assert rows["psnr"].null_count == rows["one_minus_ssim"].null_count == rows.num_rows
    strength = summarize(RunFolder.open(tmp_path / "stored"))["models"][next(iter(stored.descriptions))]["strength"]
    assert {v["value"] for found in strength.values() for v in found.values()} == {None}
    (tmp_path / "maps" / "cod10k-c" / "rain" / "3" / "animal-01.png").unlink()
    with pytest.raises(ModelError, match=r"1 of 82 maps are missing: animal-01 under cod10k-c/rain@3"):
        plan_cod10k_c(str(data), [f"predictions:{tmp_path / 'maps'}"])


def test_a_failed_row_does_not_say_where_the_data_lie(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(2)
    broken = data / "Imgs" / "animal-01.png"
    broken.write_bytes(broken.read_bytes()[:60])
    outcome = run_masks(plan_cod10k_c(str(data), ["saliency"]), tmp_path / "run")
    ((image, reason),) = outcome.failures
    assert image == "animal-01"
    assert "animal-01.png" in reason
    assert str(data) not in reason
