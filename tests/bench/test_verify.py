"""A run folder read from outside: what is wrong with it is named, whichever kind it is of."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crypsis.bench.dataset import degrade_dataset, plan_dataset
from crypsis.bench.detect import run_detection
from crypsis.bench.measure import measure, plan_measure
from crypsis.bench.pairs import plan_pairs
from crypsis.bench.plan import plan_cod10k_c
from crypsis.bench.run import run_masks
from crypsis.bench.verify import VerifyReport, verify_run
from crypsis.catalog import list_entries
from crypsis.errors import InputError
from crypsis.io import write_image
from toy_detection import Nobody, plan_toy, write_set

KINDS = ("segmentation", "detection", "measurement", "pairs")
SEGMENTER = "def gray(image):\n    return image.mean(axis=2) / 255\n"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a run of each kind over ten images in three parts, one of the images damaged."""
    root = tmp_path_factory.mktemp("verify")
    data = write_set(root)
    for image in (root / "images").iterdir():
        write_image(root / "set/Imgs" / image.name, np.full((16, 20, 3), int(image.stem[-2:]) * 9, np.uint8))
        write_image(root / "set/GT" / image.name, np.full((16, 20), 255, np.uint8))
    (root / "verify_segmenter.py").write_text(SEGMENTER)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root))
        patch.setattr("crypsis.bench.dataset._UNIT_FILES", 20)
        patch.setattr("crypsis.bench.pairs._UNIT_PAIRS", 8)
        patch.setattr("crypsis.bench.plan.list_entries", lambda family: list_entries(family=family)[:2])
        plan = plan_dataset(str(root / "images"), entries=["cod10k-c/fog"], severities=[1, 4])
        degrade_dataset(plan, root / "degraded")
        (root / "degraded/cod10k-c/fog/4/photo-05.png").unlink()
        for damaged in (root / "images/photo-06.png", root / "set/Imgs/photo-06.png"):
            damaged.write_bytes(b"\x89PNG")
        run_masks(plan_cod10k_c(str(root / "set"), ["python:verify_segmenter:gray"]), root / "segmentation")
        run_detection(plan_toy(data, [Nobody("one"), Nobody("two")]), root / "detection")
        measure(plan_measure(str(root / "images"), entries=["cod10k-c/fog"]), root / "measurement")
        pairs = plan_pairs(str(root / "images"), [str(root / "degraded")], allow_unpaired=True)
        measure(pairs, root / "pairs")
        yield root


@pytest.fixture(params=KINDS)
def run(runs: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of a run of each kind."""
    return Path(shutil.copytree(runs / request.param, tmp_path / request.param))


def parts(run: Path) -> list[Path]:
    return sorted((run / "parts").glob("*.parquet"))


def change(run: Path, number: int, edit: Callable[[pa.Table], pa.Table]) -> None:
    """Write one part anew, edited."""
    part = parts(run)[number]
    pq.write_table(edit(pq.read_table(part)), part)


def replaced(table: pa.Table, name: str, old: object, new: object) -> pa.Table:
    """Put another value in place of one in a column."""
    place = table.schema.get_field_index(name)
    values = [new if value == old else value for value in table[name].to_pylist()]
    return table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))


def faults(run: Path) -> tuple[str, ...]:
    report = verify_run(run)
    assert not report.ok
    return report.faults


ROWS = {
    "segmentation": (10 * 11, 11),
    "detection": (10 * 9 * 2, 18),
    "measurement": (9 * 5 * 2 + 1, 1),
    "pairs": (9 * 2 * 2 - 2 + 1, 1),
}


def test_a_run_that_is_whole(runs: Path, run: Path) -> None:
    report = verify_run(run)
    assert report.ok, report.faults
    assert (report.images, report.done, report.parts) == (10, 10, 3)
    assert (report.rows, report.failed) == ROWS[run.name]
    assert (report.kind, report.leftovers) == (run.name.replace("pairs", "measurement"), ())
    lines = report.text().splitlines()
    assert lines[0].startswith(f"{run}: {report.kind}, 10 of 10 images in 3 parts, {report.rows} rows, ")
    assert lines[1:] == ["Every planned row is there once.", f"digest {report.digest}"]
    assert json.loads(json.dumps(report.to_dict()))["digest"] == verify_run(runs / run.name).digest


def test_nothing_is_changed(run: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    verify_run(run)
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_the_digest_is_of_names_and_bytes_of_parts(run: Path) -> None:
    first = verify_run(run).digest
    (run / "summary.json").write_text("{}")
    assert verify_run(run).digest == first
    change(run, 0, lambda table: replaced(table, "image_digest", table["image_digest"][0].as_py(), "other"))
    report = verify_run(run)
    assert report.ok
    assert report.digest != first


def test_a_part_that_is_missing(run: Path) -> None:
    parts(run)[1].unlink()
    (found,) = faults(run)
    assert "images 5 to 8 in the order of the plan are not done" in found
    parts(run)[1].unlink()
    found = faults(run)
    assert "images 5 to 10 in the order" in found[0]
    report = verify_run(run)
    assert (report.done, report.parts) == (4, 1)


@pytest.mark.parametrize("cut", [-40, 0], ids=["cut short", "empty"])
def test_a_part_that_is_damaged(run: Path, cut: int) -> None:
    part = parts(run)[2]
    part.write_bytes(part.read_bytes()[:cut])
    (found,) = faults(run)
    assert found.startswith(f"{part}: is damaged (")
    assert "delete it and give the command of the run again" in found


def test_bytes_changed_inside_a_part_are_seen(run: Path) -> None:
    part = parts(run)[0]
    data = bytearray(part.read_bytes())
    data[4:60] = bytes(56)
    part.write_bytes(data)
    (found,) = faults(run)
    assert found.startswith(f"{part}: is damaged (")


def test_a_part_of_another_version(run: Path) -> None:
    change(run, 0, lambda table: table.append_column("more", pa.array([1] * len(table))).drop_columns(["seed"] if "seed" in table.schema.names else ["psnr"]))  # fmt: skip  # noqa: E501
    (found,) = faults(run)
    assert re.search(r"has other columns than this version writes \(more, (seed|psnr)\)", found)


def test_a_part_that_is_there_twice(run: Path) -> None:
    shutil.copy(parts(run)[0], run / "parts" / parts(run)[0].name.replace("images-", "images-copy-"))
    (found,) = faults(run)
    assert found.endswith("images-copy-" + parts(run)[0].name[7:] + ": is no part of this run; take it out of the folder.")  # fmt: skip  # noqa: E501
    (run / "parts" / parts(run)[-1].name).unlink()
    shutil.copy(parts(run)[0], parts(run)[1])
    (found,) = faults(run)
    assert "'photo-00' should come before 'photo-03' of the part before it, or is in both" in found


def test_a_part_over_others(run: Path) -> None:
    first, last = parts(run)[0], parts(run)[2]
    digits = len(first.stem.split("-")[1])
    shutil.copy(first, first.with_name(f"images-{2:0{digits}}-{5:0{digits}}.parquet"))
    shutil.copy(last, last.with_name(f"images-{10:0{digits}}-{11:0{digits}}.parquet"))
    found = faults(run)
    assert len(found) == 2
    assert all("is of images that are in another part, or not in the plan" in fault for fault in found)


@pytest.mark.parametrize("name", ["notes.txt", "images-0-1.parquet", ".hidden", "images-000000-000003.jsonl"])
def test_other_files_among_the_parts(run: Path, name: str) -> None:
    (run / "parts" / name).write_text("x")
    (found,) = faults(run)
    assert found == f"{run / 'parts' / name}: is no part of this run; take it out of the folder."


def test_rows_that_are_missing(run: Path) -> None:
    change(run, 0, lambda table: table.slice(1))
    (found,) = faults(run)
    if run.name == "pairs":  # a whole pair may be missing, half of one not
        assert re.search(r": lacks 1 of \d+ rows \(photo-00 ", found)
    else:
        assert re.search(r": lacks 1 of \d+ rows \(photo-0", found)


def test_a_pair_that_is_missing(runs: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(runs / "pairs", tmp_path / "run"))
    change(run, 0, lambda table: table.slice(2))
    assert faults(run) == (f"{run}: cod10k-c/fog s=1 was measured on 8 images and planned on 10.",)


def test_an_image_that_is_missing(run: Path) -> None:
    change(run, 0, lambda table: table.filter(pa.compute.not_equal(table["image"], "photo-02")))
    (found,) = faults(run)
    assert "holds 3 images in place of 4" in found


def test_rows_that_are_there_twice(run: Path) -> None:
    change(run, 0, lambda table: pa.concat_tables([table, table.slice(0, 1)]))
    (found,) = faults(run)
    assert ": holds 1 row more than once (photo-0" in found


def test_rows_that_are_not_planned(run: Path) -> None:
    change(run, 0, lambda table: replaced(table, "entry", table["entry"][-1].as_py(), "imagenet-c/snow"))
    (found,) = faults(run)
    assert "holds rows that are not planned (" in found
    assert "imagenet-c/snow" in found


def test_rows_of_another_status(run: Path) -> None:
    change(run, 0, lambda table: replaced(table, "status", "ok", "fine"))
    (found,) = faults(run)
    assert "holds rows that neither are ok nor failed (fine)" in found


@pytest.mark.parametrize("kind", ["measurement", "pairs"])
def test_an_image_that_failed_and_did_not(runs: Path, tmp_path: Path, kind: str) -> None:
    run = Path(shutil.copytree(runs / kind, tmp_path / "run"))
    change(run, 1, lambda table: replaced(table, "image", "photo-06", "photo-07"))
    (found,) = faults(run)
    assert "says of images that they failed, and more (photo-07)" in found


def test_a_failed_version_stands_for_all_metrics(runs: Path, tmp_path: Path) -> None:
    def fail(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        rows[0] |= {"status": "failed", "error": "too long", "metric": None, "value": None}
        return pa.Table.from_pylist([rows[0], *rows[2:]], table.schema)

    for kind in ("measurement", "pairs"):
        run = Path(shutil.copytree(runs / kind, tmp_path / kind))
        change(run, 0, fail)
        report = verify_run(run)
        assert report.ok, report.faults
        assert report.failed == 2


@pytest.mark.parametrize("kind", ["segmentation", "detection"])
def test_parts_of_other_images(runs: Path, tmp_path: Path, kind: str) -> None:
    run = Path(shutil.copytree(runs / kind, tmp_path / "run"))
    change(run, 2, lambda table: replaced(table, "image", "photo-09", "photo-99"))
    (found,) = faults(run)
    assert found == f"{run}: its parts are of other images than those of its plan; they are another run's."


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "truth.json: cannot be read"),
        ("[", "truth.json: cannot be read"),
        ('{"images": 3}', "its truth is damaged"),
        ('{"images": [{"id": 1}]}', "its truth is of 1 image, its plan of 10."),
    ],
)
def test_the_truth_of_a_detection_run(runs: Path, tmp_path: Path, content: str | None, sentence: str) -> None:
    run = Path(shutil.copytree(runs / "detection", tmp_path / "run"))
    (run / "truth.json").unlink() if content is None else (run / "truth.json").write_text(content)
    (found,) = faults(run)
    assert sentence in found


def test_leftovers_are_named_and_are_no_fault(run: Path) -> None:
    for name in (".ab.cd.12.tmp", "parts/.ef.cd.12.tmp"):
        (run / name).write_text("x")
    report = verify_run(run)
    assert report.ok
    assert report.leftovers == (".ab.cd.12.tmp", "parts/.ef.cd.12.tmp")
    line = "2 temporary files, which the next session removes: .ab.cd.12.tmp, parts/.ef.cd.12.tmp."
    assert line in report.text().splitlines()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "no run is here"),
        ("{", "cannot be read"),
        ("[]", "has schema None; this version reads crypsis.run/3, "),
        ('{"schema": "crypsis.run/1"}', "has schema 'crypsis.run/1'"),
        ('{"schema": "crypsis.run/3", "sessions": []}', "is damaged"),
        ('{"schema": "crypsis.run/3", "sessions": [], "plan": {"dataset": {}}}', "the plan in it is damaged"),
        (
            '{"schema": "crypsis.run/3", "sessions": [], "plan": {"dataset": {"images": 1}}}',
            "the plan in it is damaged",
        ),
        ('{"schema": "crypsis.measurement/2", "sessions": [], "plan": 5}', "the plan in it is damaged"),
    ],
)
def test_folders_that_are_no_run(tmp_path: Path, content: str | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match=re.escape(sentence)):
        verify_run(tmp_path)


def test_many_faults_are_counted(tmp_path: Path) -> None:
    report = VerifyReport(tmp_path, "detection", 9, 0, 1, 0, 0, tuple(f"fault {k}" for k in range(25)), (), "ab")
    lines = report.text().splitlines()
    assert lines[1:-1] == [*(f"fault {k}" for k in range(20)), "… and 5 more of these."]
    assert lines[-1] == "digest ab"
    assert len(report.to_dict()["faults"]) == 25
    assert not report.to_dict()["ok"]
    assert replace(report, faults=()).ok
