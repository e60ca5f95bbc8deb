"""Degraded copies of data sets: what is written, in any number of workers and interruptions."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from command_line import run
from crypsis.bench import dataset as module
from crypsis.bench.dataset import degrade_dataset, estimate, plan_dataset
from crypsis.catalog import get_entry, list_entries
from crypsis.catalog.aligned import align_mask
from crypsis.datasets.masks import open_masks
from crypsis.errors import CrypsisError, DatasetError, IncompleteError, InputError, PlanChangedError, UnknownNameError
from crypsis.io import read_image, read_mask, write_image
from moving_entries import SHIFT, WOBBLE

FOG, NOISE, RAIN = "cod10k-c/fog", "cod10k-c/gaussian_noise", "cod10k-c/rain"


def tree(folder: Path) -> dict[str, bytes]:
    """Everything in a folder but the plan, whose sessions have times."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != "plan.json")
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


def manifest(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of images at several depths, of several sizes and formats."""
    rng = np.random.default_rng(0)
    for index, name in enumerate(("a.png", "b.jpg", "sub/c.png", "sub/deep/é d.bmp", "e.webp")):
        write_image(tmp_path / "photos" / name, rng.integers(0, 256, (20 + index, 30, 3), np.uint8))
    return tmp_path / "photos"


@pytest.fixture
def coco(photos: Path, tmp_path: Path) -> Path:
    """Annotations of three of the photos, one of them without an object."""
    content = {
        "info": {"year": 2026},
        "categories": [{"id": 3, "name": "animal"}],
        "images": [
            {"id": 70, "file_name": "a.png", "width": 30, "height": 20, "license": 4},
            {"id": 20, "file_name": "sub/c.png", "width": 30, "height": 22},
            {"id": 30, "file_name": "b.jpg", "width": 30, "height": 21},
        ],
        "annotations": [
            {"id": 1, "image_id": 70, "category_id": 3, "bbox": [1, 2, 10, 5], "area": 50, "iscrowd": 0},
            {"id": 8, "image_id": 20, "category_id": 3, "bbox": [25, 2, 4, 5], "area": 20, "iscrowd": 0},
            {"id": 2, "image_id": 70, "category_id": 3, "bbox": [2, 2, 6, 6], "area": 36, "iscrowd": 0,
             "segmentation": [[2, 2, 8, 2, 8, 8, 2, 8]]},
        ],
    }  # fmt: skip
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(content))
    return path


def test_full_writes_every_image_under_every_condition(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = plan_dataset(str(photos), entries=[FOG, NOISE], severities=[1, 4], seed=6)
    outcome = degrade_dataset(plan, out)
    assert (outcome.written, outcome.kept, outcome.failures, outcome.errors) == (20, 0, (), ())
    rows = manifest(out)
    keys = ("a", "b", "e", "sub/c", "sub/deep/é d")
    assert {r["file"] for r in rows} == {f"{e}/{s}/{k}.png" for e in (FOG, NOISE) for s in (1, 4) for k in keys}
    assert {p for p in tree(out) if p.endswith(".png")} == {r["file"] for r in rows}
    for row in rows:
        source = read_image(photos / row["source"])
        key = row["source"].rpartition(".")[0]
        worse = read_image(out / row["file"])
        expected = get_entry(row["entry"]).degrade(source, row["severity"], seed=6, image_key=key)
        assert np.array_equal(worse, expected)
        assert (row["height"], row["width"]) == worse.shape[:2]
        assert row["sha256"] == hashlib.sha256((out / row["file"]).read_bytes()).hexdigest()
        assert (row["seed"], row["truth"]) == (6, "published")
        assert row["image_key"] == key
        assert set(row) == {
            "source",
            "image_key",
            "entry",
            "severity",
            "seed",
            "truth",
            "file",
            "sha256",
            "width",
            "height",
        }


def test_round_robin_keeps_one_entry_for_each_image(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = plan_dataset(str(photos), arrangement="round-robin", entries=[FOG, NOISE], severities=[2, 3])
    assert degrade_dataset(plan, out).written == 10
    rows = manifest(out)
    assert {r["file"] for r in rows} == {f"{r['severity']}/{r['source'].rpartition('.')[0]}.png" for r in rows}
    entries = {source: {r["entry"] for r in rows if r["source"] == source} for source in {r["source"] for r in rows}}
    assert all(len(names) == 1 for names in entries.values())
    assert sorted(Counter(min(names) for names in entries.values()).values()) == [2, 3]


def test_the_assignment_is_balanced_and_drawn_from_the_seed(tmp_path: Path) -> None:
    for index in range(37):
        write_image(tmp_path / "many" / f"{index:03d}.png", np.zeros((2, 2, 3), np.uint8))

    def assigned(seed: int) -> list[str | None]:
        plan = plan_dataset(str(tmp_path / "many"), arrangement="round-robin", families=["cod10k-c"], seed=seed)
        return [source.entry for source in plan.sources]

    assert sorted(Counter(assigned(0)).values()) == [4, 4, 4, 5, 5, 5, 5, 5]
    assert assigned(0) == assigned(0)
    assert assigned(0) != assigned(1)
    assert assigned(0)[:8] != sorted(assigned(0)[:8], key=str)


@pytest.mark.parametrize("arrangement", ["full", "round-robin"])
def test_masks_go_along_and_the_folder_is_a_data_set_again(
    arrangement: str, make_set: Callable[..., Path], tmp_path: Path
) -> None:
    data, out = make_set(5), tmp_path / "out"
    plan = plan_dataset(str(data), arrangement=arrangement, entries=[FOG, NOISE], severities=[3])
    degrade_dataset(plan, out)
    for row in manifest(out):
        source = data / "GT" / Path(row["mask"]).name
        assert (out / row["mask"]).read_bytes() == source.read_bytes()
        assert row["mask_sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
    again = open_masks(out / (f"{FOG}/3" if arrangement == "full" else "3"))
    assert [item.key for item in again.items] == [item.key for item in open_masks(data).items]
    sample = again.load(again.items[0])
    assert np.array_equal(sample.mask, read_mask(data / "GT" / f"{again.items[0].key}.png").mask)


def test_aligned_masks_move(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(3)
    for truth in ("published", "aligned"):
        plan = plan_dataset(str(data), entries=[SHIFT, FOG], severities=[2, 5], truth=truth)
        degrade_dataset(plan, tmp_path / truth)
        for row in manifest(tmp_path / truth):
            key = row["source"].removesuffix(".png")
            clean = read_mask(data / "GT" / row["source"]).mask
            got = read_mask(tmp_path / truth / row["mask"]).mask
            moved = truth == "aligned" and row["entry"] == "test/shift"
            expected = align_mask(clean, SHIFT, row["severity"], seed=0, image_key=key) if moved else clean
            assert np.array_equal(got, expected)
            assert row["truth"] == truth
            assert (got != clean).any() == moved


def annotations(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "annotations.json").read_text("utf-8"))
    return value


def test_coco_annotations_go_along(photos: Path, coco: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = plan_dataset(str(photos), entries=[FOG, NOISE], severities=[1, 2], annotations=coco)
    assert degrade_dataset(plan, out).written == 12
    original = json.loads(coco.read_text())
    for place in (f"{e}/{s}" for e in (FOG, NOISE) for s in (1, 2)):
        written = annotations(out / place)
        assert sorted(written["annotations"], key=lambda a: a["id"]) == sorted(
            original["annotations"], key=lambda a: a["id"]
        )
        assert (written["categories"], written["info"]) == (original["categories"], original["info"])
        by_id = {image["id"]: image for image in written["images"]}
        assert by_id[70] == {"id": 70, "file_name": "a.png", "width": 30, "height": 20, "license": 4}
        assert by_id[30]["file_name"] == "b.png"
        for image in written["images"]:
            assert read_image(out / place / image["file_name"]).shape[:2] == (image["height"], image["width"])
        files = {p.relative_to(out / place).as_posix() for p in (out / place).rglob("*") if p.is_file()}
        assert files == {"a.png", "b.png", "sub/c.png", "annotations.json"}


def test_coco_images_without_a_size_get_one(photos: Path, coco: Path, tmp_path: Path) -> None:
    content = json.loads(coco.read_text())
    for image in content["images"]:
        del image["width"], image["height"]
    coco.write_text(json.dumps(content))
    degrade_dataset(plan_dataset(str(photos), entries=[FOG], severities=[1], annotations=coco), tmp_path / "out")
    sizes = {
        image["id"]: (image["width"], image["height"]) for image in annotations(tmp_path / "out" / FOG / "1")["images"]
    }
    assert sizes == {70: (30, 20), 20: (30, 22), 30: (30, 21)}


def test_coco_file_names_are_kept_on_request(photos: Path, coco: Path, tmp_path: Path) -> None:
    plan = plan_dataset(str(photos), entries=[FOG], severities=[1], annotations=coco, image_format="keep")
    degrade_dataset(plan, tmp_path / "out")
    names = {image["file_name"] for image in annotations(tmp_path / "out" / FOG / "1")["images"]}
    assert names == {"a.png", "b.jpg", "sub/c.png"}
    with PIL.Image.open(tmp_path / "out" / FOG / "1" / "b.jpg") as picture:
        assert picture.format == "JPEG"


@pytest.mark.parametrize("arrangement", ["full", "round-robin"])
def test_aligned_coco_annotations_move(arrangement: str, photos: Path, coco: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = plan_dataset(
        str(photos), entries=[SHIFT], severities=[1, 5], annotations=coco, truth="aligned", arrangement=arrangement
    )
    degrade_dataset(plan, out)
    folder = (lambda s: out / "test" / "shift" / s) if arrangement == "full" else (lambda s: out / s)
    mild, strong = annotations(folder("1")), annotations(folder("5"))
    boxes = {a["id"]: a["bbox"] for a in mild["annotations"]}
    assert boxes == {1: [2.0, 2.0, 10.0, 5.0], 2: [3.0, 2.0, 6.0, 6.0], 8: [26.0, 2.0, 4.0, 5.0]}
    nothing: dict[str, list[str]] = {"failed_images": [], "lost_annotations": [], "unusable_annotations": []}
    assert mild["crypsis"] == {"truth": "aligned", "seed": 0, **nothing}
    assert {a["id"] for a in strong["annotations"]} == {1, 2}
    assert strong["crypsis"]["lost_annotations"] == [8]
    assert len(strong["images"]) == 3
    assert next(a for a in strong["annotations"] if a["id"] == 2)["segmentation"] == [[10, 2, 16, 2, 16, 8, 10, 8]]


def test_an_annotation_that_cannot_move_is_left_out_alone(photos: Path, coco: Path, tmp_path: Path) -> None:
    content = json.loads(coco.read_text())
    content["annotations"] += [
        {"id": 90 + n, "image_id": 70, "category_id": 3, "bbox": box} for n, box in enumerate([[1, 2, 3], [1, 2, 0, 4]])
    ]
    coco.write_text(json.dumps(content))
    plan = plan_dataset(str(photos), entries=[SHIFT, FOG], severities=[1, 2], annotations=coco, truth="aligned")
    outcome = degrade_dataset(plan, tmp_path / "out")
    assert (outcome.failures, outcome.errors, outcome.written) == ((), (), 12)
    assert len(outcome.warnings) == 1
    assert "2 annotations that cannot be moved along left out where content moves (annotation 90" in outcome.warnings[0]
    moved = annotations(tmp_path / "out" / "test" / "shift" / "1")
    assert {a["id"] for a in moved["annotations"]} == {1, 2, 8}
    assert moved["crypsis"]["unusable_annotations"] == ["90", "91"]
    assert len(annotations(tmp_path / "out" / FOG / "1")["annotations"]) == 5
    assert degrade_dataset(plan, tmp_path / "out").warnings == outcome.warnings


def test_workers_and_open_files_do_not_change_bytes(
    photos: Path, coco: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_UNIT_FILES", 5)
    monkeypatch.setattr(module, "_OPEN_FILES", 2)
    for workers in (1, 2):
        plan = plan_dataset(str(photos), entries=[WOBBLE, NOISE], annotations=coco, truth="aligned")
        degrade_dataset(plan, tmp_path / f"out{workers}", workers=workers)
    assert tree(tmp_path / "out1") == tree(tmp_path / "out2")
    monkeypatch.setattr(module, "_OPEN_FILES", 64)
    degrade_dataset(plan_dataset(str(photos), entries=[WOBBLE, NOISE], annotations=coco, truth="aligned"),
                    tmp_path / "out3")  # fmt: skip
    assert annotations(tmp_path / "out1" / NOISE / "3") == annotations(tmp_path / "out3" / NOISE / "3")


def test_only_what_is_missing_is_done_again(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_UNIT_FILES", 2)
    plan = plan_dataset(str(photos), entries=[FOG], severities=[1, 2])
    out = tmp_path / "out"
    degrade_dataset(plan, out)
    before = tree(out)
    stamps = {p: p.stat().st_mtime_ns for p in out.rglob("*.png")}
    outcome = degrade_dataset(plan, out)
    assert (outcome.written, outcome.kept) == (0, 10)
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*.png")} == stamps
    (out / FOG / "2" / "a.png").unlink()
    broken = out / FOG / "1" / "sub" / "c.png"
    broken.write_bytes(broken.read_bytes()[:50])
    outcome = degrade_dataset(plan, out)
    assert (outcome.written, outcome.kept) == (4, 6)
    assert tree(out) == before
    (out / "manifest.jsonl").unlink()
    assert degrade_dataset(plan, out).written == 0
    assert tree(out) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sends SIGKILL")
def test_killed_and_continued_is_the_same(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(40)
    command = [sys.executable, "-m", "crypsis", "degrade", str(data)]
    options = ["--plan", "full", "--family", "cod10k-c", "--workers", "2", "-q"]
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    process = subprocess.Popen([*command, str(killed), *options])
    deadline = time.monotonic() + 60
    while not list((killed / "parts").glob("*.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    time.sleep(0.5)  # its workers notice and leave
    assert 1 <= len(list((killed / "parts").glob("*.jsonl"))) < 8
    assert not (killed / "manifest.jsonl").exists()
    assert subprocess.run([*command, str(killed), *options], check=False).returncode == 0
    assert subprocess.run([*command, str(calm), *options], check=False).returncode == 0
    assert len(manifest(killed)) == 40 * 40
    assert tree(killed) == tree(calm)


def test_bad_images_are_reported_and_tried_again(photos: Path, coco: Path, tmp_path: Path) -> None:
    whole = (photos / "b.jpg").read_bytes()
    (photos / "b.jpg").write_bytes(whole[:100])
    out = tmp_path / "out"
    command = ("degrade", photos, out, "--plan", "full", "--entries", f"{FOG},{RAIN}", "--severity", "1-2",
               "--annotations", coco, "--workers", 1)  # fmt: skip
    result = run(*command)
    assert result.exit_code == 3, result.output
    assert "b.jpg" in result.output
    assert "8 images written" in result.output
    assert "1 source images failed" in result.output
    written = annotations(out / FOG / "1")
    assert {image["id"] for image in written["images"]} == {70, 20}
    assert written["crypsis"]["failed_images"] == ["b.jpg"]
    assert len(manifest(out)) == 8
    (photos / "b.jpg").write_bytes(whole)
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert len(manifest(out)) == 12
    assert annotations(out / FOG / "1")["crypsis"]["failed_images"] == []


def test_sizes_that_do_not_fit_are_reported(
    make_set: Callable[..., Path], photos: Path, coco: Path, tmp_path: Path
) -> None:
    data = make_set(3)
    write_image(data / "GT" / "animal-01.png", np.zeros((5, 5), np.uint8))
    outcome = degrade_dataset(plan_dataset(str(data), entries=[FOG], severities=[1]), tmp_path / "masks")
    assert [Path(name).name for name, _ in outcome.failures] == ["animal-01.png"]
    assert "its mask 5×5" in outcome.failures[0][1]
    coco.write_text(coco.read_text().replace('"width": 30, "height": 21', '"width": 21, "height": 30'))
    plan = plan_dataset(str(photos), entries=[FOG], severities=[1], annotations=coco)
    outcome = degrade_dataset(plan, tmp_path / "coco")
    assert [Path(name).name for name, _ in outcome.failures] == ["b.jpg"]
    assert "is 30×21 pixels upright, but 21×30 in the annotations" in outcome.failures[0][1]


def test_annotations_that_cannot_be_moved_are_reported(photos: Path, coco: Path, tmp_path: Path) -> None:
    coco.write_text(coco.read_text().replace("[25, 2, 4, 5]", "[25, 2, 4]"))
    plan = plan_dataset(str(photos), entries=[SHIFT], severities=[1], annotations=coco, truth="aligned")
    outcome = degrade_dataset(plan, tmp_path / "out")
    assert outcome.failures == ()
    assert "annotation 8: bbox must be 4 finite numbers" in outcome.warnings[0]


def test_another_plan_is_refused(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("degrade", photos, out, "--plan", "full", "--entries", FOG, "--severity", 1, "--workers", 1, "-q")
    assert run(*command).exit_code == 0
    for more, words in (
        (("--seed", 1), "seed: 0 there, 1 now"),
        (("--truth", "aligned"), "truth"),
        (("--entries", RAIN), "entries"),
        (("--format", "webp"), "format"),
        (("--plan", "round-robin"), "arrangement"),
    ):
        result = run(*command, *more)
        assert result.exit_code == 2, result.output
        assert words in result.output
    write_image(photos / "new.png", np.zeros((4, 4, 3), np.uint8))
    assert "dataset.images: 5 there, 6 now" in run(*command).output


def test_changed_images_are_refused(photos: Path, tmp_path: Path) -> None:
    plan = plan_dataset(str(photos), entries=[FOG], severities=[1])
    degrade_dataset(plan, tmp_path / "out")
    with (photos / "a.png").open("ab") as file:
        file.write(b"more")
    with pytest.raises(PlanChangedError, match=r"a\.png"):
        degrade_dataset(plan, tmp_path / "out")


def test_places_that_cannot_be_meant(photos: Path, tmp_path: Path) -> None:
    plan = plan_dataset(str(photos), entries=[FOG], severities=[1])
    with pytest.raises(InputError, match="lies inside"):
        degrade_dataset(plan, photos / "out")
    assert not (photos / "out").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty and not a degraded data set; name a new folder for OUT"):
        degrade_dataset(plan, tmp_path / "full")
    with pytest.raises(InputError, match="workers"):
        degrade_dataset(plan, tmp_path / "new", workers=0)


def test_coco_names_never_leave_the_folder(photos: Path, coco: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret.png"
    write_image(outside, np.zeros((4, 4, 3), np.uint8))
    coco.write_text(coco.read_text().replace('"a.png"', '"../secret.png"'))
    result = run("degrade", photos, tmp_path / "out", "--plan", "full", "--annotations", coco)
    assert result.exit_code == 2
    assert "leads out of the image folder" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"arrangement": "half"}, UnknownNameError, "plan 'half'"),
        ({"entries": ["cod10k-c/fogg"]}, UnknownNameError, "did you mean 'fog'"),
        ({"families": ["cod10k"]}, UnknownNameError, "cod10k-c"),
        ({"severities": []}, InputError, "Severities are 1 to 5"),
        ({"severities": [0]}, InputError, "Severities are 1 to 5"),
        ({"truth": "moved"}, UnknownNameError, "truth"),
        ({"image_format": "gif"}, InputError, "cannot be written"),
        ({"data": "absent"}, DatasetError, "absent"),
        ({"annotations": Path("absent.json")}, DatasetError, "absent"),
    ],
)
def test_wrong_plans(photos: Path, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        plan_dataset(**{"data": str(photos), **options})


def test_a_set_of_masks_with_a_fault_is_not_taken_for_plain_images(make_set: Callable[..., Path]) -> None:
    data = make_set(3)
    (data / "GT" / "animal-01.png").unlink()
    with pytest.raises(CrypsisError, match="without a mask"):
        plan_dataset(str(data))
    assert len(plan_dataset(str(data), allow_unpaired=True).sources) == 2
    shutil.rmtree(data / "Imgs")
    with pytest.raises(CrypsisError, match="no folder of images with a folder of masks"):
        plan_dataset(str(data))
    shutil.rmtree(data / "GT")
    with pytest.raises(InputError, match="no image is in this folder"):
        plan_dataset(str(data))


def test_dry_run_counts_and_writes_nothing(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("degrade", photos, out, "--plan", "full", "--family", "cod10k-c")
    result = run(*command, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "5 images × 5 severities of 8 entries: 200 images, 0 of them done." in result.output
    assert not out.exists()
    plan = plan_dataset(str(photos), families=["cod10k-c"])
    guess = estimate(plan, out)
    assert (guess.images, guess.left) == (200, 200)
    assert run(*command, "-q").exit_code == 0
    real = sum(p.stat().st_size for p in out.rglob("*.png"))
    assert guess.bytes == pytest.approx(real, rel=0.3)
    done = estimate(plan, out)
    assert (done.left, done.bytes) == (0, None)
    assert "200 of them done" in run(*command, "--dry-run").output


def test_too_little_space_is_known_before_it_starts(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(IncompleteError, match="GB are needed for 5 images"):
        degrade_dataset(plan_dataset(str(photos), entries=[FOG], severities=[1]), tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.png"))


def test_a_bug_leaves_its_unit_undone(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a bug")

    plan = plan_dataset(str(photos), entries=[FOG], severities=[1])
    with monkeypatch.context() as patch:
        patch.setattr(module, "encode_image", broken)
        patch.setattr(module, "_estimate", lambda *_: module.Estimate(5, 5, None, 0))
        outcome = degrade_dataset(plan, tmp_path / "out")
    assert len(outcome.errors) == 1
    assert "a bug" in outcome.errors[0]
    assert not (tmp_path / "out" / "manifest.jsonl").exists()
    assert degrade_dataset(plan, tmp_path / "out").written == 5


def test_the_demo_set_is_a_data_set(tmp_path: Path) -> None:
    plan = plan_dataset("demo", arrangement="round-robin", entries=[FOG, RAIN], severities=[1])
    assert plan.settings.kind == "masks"
    assert plan.files == len(plan.sources) == 48


def test_progress_counts_images(photos: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int, int]] = []
    plan = plan_dataset(str(photos), entries=[FOG], severities=[1])
    degrade_dataset(plan, tmp_path / "out", progress=lambda *numbers: told.append(numbers))
    assert (told[0], told[-1]) == ((0, 5, 0), (5, 5, 0))


def test_any_row_of_the_catalog_can_be_continued(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    write_image(photos / "a.png", np.full((20, 30, 3), 90, np.uint8))
    plan = plan_dataset(str(photos), entries=[e.name for e in list_entries()], severities=[1])
    assert degrade_dataset(plan, tmp_path / "out").written == 68
    assert degrade_dataset(plan, tmp_path / "out").kept == 68
