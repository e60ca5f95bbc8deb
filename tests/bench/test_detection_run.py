"""Detection runs: what is stored does not depend on who did it, how often they were killed, nor what failed before."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from crypsis.bench.detect import run_detection
from crypsis.bench.work import Labor, Shard
from crypsis.catalog import get_entry
from crypsis.catalog.aligned import warp_boxes
from crypsis.catalog.entry import Entry
from crypsis.detection_results import DetectionRun, summarize_detections
from crypsis.errors import InputError, ModelError, PlanChangedError
from crypsis.models.python_callable import PythonDetector
from crypsis.types import Detections, Image
from toy_detection import ENTRIES, FAST, MODULE, SLOW, Nobody, part_bytes, plan_toy, write_results, write_set

SCRIPT = """
import sys
from pathlib import Path
from crypsis.bench.detect import run_detection
from crypsis.bench.detection_plan import plan_coco_degradation
from crypsis.bench.work import Labor, Shard

if __name__ == "__main__":
    images, annotations, model, entries, out, workers, shard = sys.argv[1:]
    plan = plan_coco_degradation(
        images, annotations, [model], entries=entries.split(","), severities=(1, 5), strength_images=2
    )
    outcome = run_detection(plan, Path(out), labor=Labor(int(workers), shard=Shard.parse(shard)))
    sys.exit(outcome.left)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("detection")
    (folder / "toy_module.py").write_text(MODULE)
    (folder / "script.py").write_text(SCRIPT)
    return folder


@pytest.fixture(scope="module")
def data(place: Path) -> tuple[str, str]:
    return write_set(place / "set")


@pytest.fixture(autouse=True)
def _at_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


@pytest.fixture(scope="module")
def expected(place: Path, data: tuple[str, str]) -> dict[str, bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        run_detection(plan_toy(data), place / "expected")
    return part_bytes(place / "expected")


def start(data: tuple[str, str], out: Path, model: str, workers: int = 1, shard: str = "1/1") -> subprocess.Popen[str]:
    command = [sys.executable, "script.py", *data, model, ",".join(ENTRIES), str(out), str(workers), shard]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()  # ends when the workers have left too: they hold the other end
    assert process.returncode == -signal.SIGKILL


def test_rows_are_complete(place: Path, expected: dict[str, bytes]) -> None:
    assert list(expected) == ["images-000000-000003.parquet", "images-000004-000007.parquet",
                              "images-000008-000009.parquet"]  # fmt: skip
    table = pq.read_table(place / "expected" / "parts")
    assert table.num_rows == 10 * (1 + 4 * 2)
    assert set(table["status"].to_pylist()) == {"ok"}
    cells = zip(*(table[name].to_pylist() for name in ("image", "entry", "severity")), strict=True)
    assert len(set(cells)) == table.num_rows
    rows = {(row["image"], row["entry"], row["severity"]): row for row in table.to_pylist()}
    row = rows["photo-03", "clean", 0]
    assert (row["number"], row["height"], row["width"], row["model"]) == (4, 48, 64, "toy")
    assert row["categories"] == [3, 7]
    assert len(row["boxes"]) == 8
    assert row["boxes"][4:] == [0, 0, 20, 20]
    assert row["truth_boxes"] is None
    assert (rows["photo-00", "clean", 0]["psnr"], rows["photo-00", "clean", 0]["one_minus_ssim"]) == (np.inf, 0)
    assert {image for (image, _, _), row in rows.items() if row["psnr"] is not None} == {"photo-00", "photo-05"}


def test_each_entry_is_a_row_group(place: Path, expected: dict[str, bytes]) -> None:
    file = pq.ParquetFile(place / "expected" / "parts" / next(iter(expected)))
    groups = [set(file.read_row_group(g, ["entry"])["entry"].to_pylist()) for g in range(file.num_row_groups)]
    assert groups == [{"clean"}, *({entry} for entry in ENTRIES)]


def test_workers_do_not_change_bytes(data: tuple[str, str], expected: dict[str, bytes], tmp_path: Path) -> None:
    outcome = run_detection(plan_toy(data), tmp_path / "run", labor=Labor(2))
    assert (outcome.units, outcome.left, outcome.images, outcome.errors) == (3, 0, 10, ())
    assert part_bytes(tmp_path / "run") == expected


def test_what_is_kept_in_memory_does_not_change_bytes(
    data: tuple[str, str], expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crypsis.bench.detect.LARGE", 100)
    run_detection(plan_toy(data), tmp_path / "run")
    assert part_bytes(tmp_path / "run") == expected


def test_shards_make_the_same_parts(data: tuple[str, str], expected: dict[str, bytes], tmp_path: Path) -> None:
    for index in (3, 1, 2):
        outcome = run_detection(plan_toy(data), tmp_path / "run", labor=Labor(shard=Shard(index, 3)))
        assert (outcome.units, outcome.left) == (1, 0)
    assert part_bytes(tmp_path / "run") == expected
    assert run_detection(plan_toy(data), tmp_path / "run").images == 0


def test_shards_at_the_same_time(data: tuple[str, str], expected: dict[str, bytes], tmp_path: Path) -> None:
    processes = [start(data, tmp_path / "run", FAST, shard=f"{k}/3") for k in (1, 2, 3)]
    assert [(p.communicate(timeout=60)[1], p.returncode) for p in processes] == [("", 0)] * 3
    assert part_bytes(tmp_path / "run") == expected
    assert len(json.loads((tmp_path / "run" / "run.json").read_text())["sessions"]) == 3
    assert len((tmp_path / "run" / "timing.jsonl").read_text().splitlines()) == 3


def test_killed_at_random_moments_and_resumed(
    data: tuple[str, str], expected: dict[str, bytes], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    moments = random.Random(7)
    for workers, wanted in ((1, "run.json"), (2, "parts/*.parquet")):
        process = start(data, run, SLOW, workers)
        deadline = time.monotonic() + 60
        while not list(run.glob(wanted)) and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.3))
        kill(process)
    assert len(list((run / "parts").glob("*.parquet"))) < 3
    run_detection(plan_toy(data, [SLOW]), run)
    assert part_bytes(run) == expected
    assert not list(run.glob("**/*.tmp"))


def test_minutes_end_it_and_it_goes_on(data: tuple[str, str], expected: dict[str, bytes], tmp_path: Path) -> None:
    plan = plan_toy(data, [SLOW])
    told: list[tuple[int, int]] = []
    outcome = run_detection(
        plan, tmp_path / "run", labor=Labor(minutes=0.1 / 60), progress=lambda *now: told.append(now[:2])
    )
    assert (outcome.units, outcome.left, outcome.images) == (3, 2, 4)
    assert told == [(0, 10), (4, 10)]
    outcome = run_detection(plan, tmp_path / "run", labor=Labor(minutes=9))
    assert (outcome.units, outcome.left, outcome.images) == (3, 0, 6)
    assert part_bytes(tmp_path / "run") == expected


def test_bad_images_are_counted_and_mended(place: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    data = write_set(tmp_path / "set")
    damaged = Path(data[0]) / "photo-05.png"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:300])
    outcome = run_detection(plan_toy(data), tmp_path / "run")
    assert [image for image, _ in outcome.failures] == ["photo-05"]
    assert outcome.failures[0][1].startswith("photo-05.png: damaged or truncated")
    rows = pq.read_table(tmp_path / "run" / "parts").to_pylist()
    failed = [row for row in rows if row["status"] == "failed"]
    assert len(failed) == 9
    assert {(row["image"], row["model"], row["boxes"]) for row in failed} == {("photo-05", "toy", None)}
    summary = summarize_detections(DetectionRun.open(tmp_path / "run"), samples=0)
    assert (summary["complete"], summary["images"], list(summary["failed"])) == (False, 10, ["photo-05"])
    assert summary["models"]["toy"]["scored"] == 9
    damaged.write_bytes(whole)
    outcome = run_detection(plan_toy(data), tmp_path / "run")
    assert (outcome.images, outcome.failures) == (4, ())
    assert part_bytes(tmp_path / "run") == expected


def test_failed_rows_do_not_tell_where_the_data_lie(place: Path, tmp_path: Path) -> None:
    found = []
    for name in ("here", "there"):
        data = write_set(tmp_path / name, 4)
        (Path(data[0]) / "photo-01.png").write_bytes(b"nothing")
        run_detection(plan_toy(data), tmp_path / f"{name}-run")
        found.append(part_bytes(tmp_path / f"{name}-run"))
    assert found[0] == found[1]


def test_other_plans_and_changed_files_are_refused(expected: dict[str, bytes], tmp_path: Path) -> None:
    data = write_set(tmp_path / "set", 4)
    run_detection(plan_toy(data), tmp_path / "run")
    with pytest.raises(PlanChangedError, match='truth: "published" there, "aligned" now'):
        run_detection(plan_toy(data, truth="aligned"), tmp_path / "run")
    file = Path(data[0]) / "photo-02.png"
    file.write_bytes(file.read_bytes()[::-1])  # of the same size
    with pytest.raises(PlanChangedError, match="photo-02"):
        run_detection(plan_toy(data), tmp_path / "run")


def test_a_damaged_part_is_made_anew(data: tuple[str, str], expected: dict[str, bytes], tmp_path: Path) -> None:
    run_detection(plan_toy(data), tmp_path / "run")
    part = sorted((tmp_path / "run" / "parts").iterdir())[1]
    part.write_bytes(part.read_bytes()[:-20])
    assert run_detection(plan_toy(data), tmp_path / "run").images == 4
    assert part_bytes(tmp_path / "run") == expected


@pytest.mark.parametrize("labor", [Labor(2), Labor(3, shard=Shard(1, 2))])
def test_objects_run_in_this_process_only(data: tuple[str, str], tmp_path: Path, labor: Labor) -> None:
    with pytest.raises(InputError, match="in this process only"):
        run_detection(plan_toy(data, [Nobody()]), tmp_path / "run", labor=labor)
    assert not (tmp_path / "run").exists()


class Fussy(Nobody):
    """A detector that refuses dark images, and has bugs with pale ones if asked to."""

    def __init__(self, *, buggy: bool = False) -> None:
        super().__init__("fussy")
        self.buggy = buggy

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        for image in images:
            if image.mean() < 43.5:
                raise ModelError("too dark to see")
            if self.buggy and image.std() < 15:
                raise RuntimeError("a bug")
        return super().detect(images)


def test_a_detector_that_fails_on_one_condition(data: tuple[str, str], tmp_path: Path) -> None:
    entries = [name for name in ENTRIES if name != "arniqa/darken"]
    outcome = run_detection(plan_toy(data, [Fussy(), Nobody()], entries=entries), tmp_path / "run")
    assert outcome.failures == (("photo-05", "too dark to see"), ("photo-08", "too dark to see"))
    rows = pq.read_table(tmp_path / "run" / "parts").to_pylist()
    failed = {(row["entry"], row["severity"], row["model"]) for row in rows if row["status"] == "failed"}
    assert failed == {("real-camera/gamma_damage", 5, "fussy")}
    summary = summarize_detections(DetectionRun.open(tmp_path / "run"), samples=0)
    assert summary["complete"] is False
    assert {name: scores["scored"] for name, scores in summary["models"].items()} == {"fussy": 8, "nobody": 10}


def test_a_bug_leaves_its_unit_undone(data: tuple[str, str], tmp_path: Path) -> None:
    outcome = run_detection(plan_toy(data, [Fussy(buggy=True)]), tmp_path / "run")
    assert (outcome.units, outcome.left, outcome.images) == (3, 3, 10)
    assert all("a bug" in error and "unit images-" in error for error in outcome.errors)
    assert not (tmp_path / "run" / "parts").exists()


def test_stored_detections_need_no_degraded_image(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perfect = write_results(tmp_path / "perfect", plan_toy(data, [Nobody()]), lambda _, thing: thing)
    monkeypatch.setattr(Entry, "degrade", lambda *_, **__: pytest.fail("degraded for nothing"))
    run_detection(plan_toy(data, [perfect]), tmp_path / "run")
    table = pq.read_table(tmp_path / "run" / "parts")
    assert table["psnr"].null_count == table.num_rows
    row = next(row for row in table.to_pylist() if row["image"] == "photo-00")
    assert row["categories"] == [3, 7]
    assert row["scores"] == pytest.approx([0.9, 0.9])


class OnGpu(PythonDetector):
    """A detector of which it is said that it runs on a GPU."""

    def describe(self) -> dict[str, str | int | float | bool | None]:
        return {**super().describe(), "device": "cuda"}


def test_looking_ahead_does_not_change_bytes(
    data: tuple[str, str], expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = set()
    degrade = Entry.degrade

    def noted(self: Entry, *args: Any, **options: Any) -> Image:
        threads.add(threading.get_ident())
        return degrade(self, *args, **options)

    monkeypatch.setattr(Entry, "degrade", noted)
    plan = plan_toy(data, [OnGpu("toy_module", "find", ("Cat", "sea_lion"), name="toy")])
    outcome = run_detection(plan, tmp_path / "run")
    assert (outcome.left, outcome.failures, outcome.errors) == (0, (), ())
    assert part_bytes(tmp_path / "run") == expected
    assert threads
    assert threading.get_ident() not in threads


def test_inference_overlaps_with_degradation(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a detector looks at a batch, images of the next one come to be degraded."""
    begun = 0
    degrade = Entry.degrade

    def noted(self: Entry, *args: Any, **options: Any) -> Image:
        nonlocal begun
        time.sleep(0.01)
        begun += 1
        return degrade(self, *args, **options)

    class Waiting(Nobody):
        overlapped = 0

        def describe(self) -> dict[str, str | int | float | bool | None]:
            return {"device": "cuda"}

        def detect(self, images: Sequence[Image]) -> list[Detections]:
            before, deadline = begun, time.monotonic() + 0.1
            while begun == before and time.monotonic() < deadline:
                time.sleep(0.001)
            self.overlapped += begun > before
            return super().detect(images)

    model = Waiting()
    plan = plan_toy(data, [model], strength_images=0, limit=4)
    model.overlapped = 0
    monkeypatch.setattr(Entry, "degrade", noted)
    outcome = run_detection(plan, tmp_path / "run")
    assert outcome.failures == outcome.errors == ()
    assert begun == 4 * 2 * len(ENTRIES)
    assert model.overlapped >= 12, "of 16: clean images are not degraded"


def test_truth_can_move_along(data: tuple[str, str], tmp_path: Path) -> None:
    """Detections of where the objects are seen under elastic warps are perfect by that truth, and by that alone."""
    entry = get_entry("imagenet-c/elastic_transform")
    plan = plan_toy(data, [Nobody()], entries=[entry.name, "arniqa/darken"])
    keys = {item.id: item.key for item in plan.dataset.items}

    def say(condition: Any, thing: dict[str, Any]) -> dict[str, Any]:
        if condition.entry != entry.name:
            return thing
        field = entry.source_of(48, 64, condition.severity, seed=0, image_key=keys[thing["image_id"]])
        x, y, width, height = thing["bbox"]
        ((x1, y1, x2, y2),) = warp_boxes(np.array([[x, y, x + width, y + height]]), field)[0].tolist()
        return {**thing, "bbox": [x1, y1, x2 - x1, y2 - y1]}

    saved = write_results(tmp_path / "seen", plan, say)
    ap = {}
    for truth in ("aligned", "published"):
        run_detection(plan_toy(data, [saved], entries=[entry.name, "arniqa/darken"], truth=truth), tmp_path / truth)
        conditions = summarize_detections(DetectionRun.open(tmp_path / truth))["models"]["seen"]["conditions"]
        ap[truth] = {name: scores["ap"]["value"] for name, scores in conditions.items()}
    assert set(ap["aligned"].values()) == {1.0}
    assert ap["published"]["clean"] == ap["published"]["arniqa/darken@5"] == 1.0
    assert ap["published"][f"{entry.name}@1"] < 1.0
    rows = pq.read_table(tmp_path / "aligned" / "parts").to_pylist()
    moved = {(row["entry"], row["image"]) for row in rows if row["truth_boxes"] is not None}
    assert moved == {(entry.name, f"photo-{k:02d}") for k in range(9)}


def test_the_truth_is_kept_with_the_run(data: tuple[str, str], tmp_path: Path) -> None:
    run_detection(plan_toy(data, limit=2), tmp_path / "names")
    run_detection(plan_toy(data, limit=2, labels="agnostic"), tmp_path / "agnostic")
    names, agnostic = (DetectionRun.open(tmp_path / name).truth() for name in ("names", "agnostic"))
    assert [image["id"] for image in names["images"]] == [1, 6]
    assert [found["category_id"] for found in names["annotations"]] == [3, 7] * 2
    assert [found["category_id"] for found in agnostic["annotations"]] == [3] * 4
    assert agnostic["categories"] == [{"id": 3, "name": "object"}]
    assert {c for row in pq.read_table(tmp_path / "agnostic" / "parts").to_pylist() for c in row["categories"]} == {3}
