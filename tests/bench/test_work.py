"""Units of work: shards, limits, receipts, and a folder that several claim at once."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.bench.engines import map_units
from crypsis.bench.store import claim_folder, write_part
from crypsis.bench.work import Clock, Labor, Receipt, Shard, do_units, look_ahead, make_part
from crypsis.errors import IncompleteError, InputError, PlanChangedError

SCHEMA = pa.schema([("image", pa.string()), ("status", pa.string()), ("kind", pa.string())])


@dataclass(frozen=True)
class Unit:
    name: str
    images: int = 2


UNITS = [Unit(f"unit-{k}") for k in range(5)]


@settings(deadline=None, max_examples=60)
@given(count=st.integers(0, 40), of=st.integers(1, 12))
def test_shards_share_all_units(count: int, of: int) -> None:
    shares = [Shard(k, of).take(range(count)) for k in range(1, of + 1)]
    assert sorted(unit for share in shares for unit in share) == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(("text", "shard"), [("1/1", Shard()), ("2/8", Shard(2, 8)), (" 3 / 3 ", Shard(3, 3))])
def test_shards_as_written(text: str, shard: Shard) -> None:
    assert Shard.parse(text) == shard


@pytest.mark.parametrize("text", ["", "2", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "a/b", "１/２", "1.0/2"])
def test_no_such_shard(text: str) -> None:
    with pytest.raises(InputError, match="written i/n, from 1/n to n/n"):
        Shard.parse(text)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "workers is a number from 1 up; got 0"),
        ({"minutes": 0}, "minutes is a number above 0; got 0"),
        ({"minutes": -2.5}, "above 0; got -2.5"),
        ({"minutes": float("nan")}, "above 0; got nan"),
    ],
)
def test_labor_that_means_nothing(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Labor(**options)


def test_clock_tells_cpu_time_by_stage() -> None:
    clock = Clock()
    for _ in range(2):
        with clock("work"):
            end = time.process_time() + 0.02
            while time.process_time() < end:
                pass
    with clock("wait"):
        time.sleep(0.05)
    seconds = clock.read()
    assert list(seconds) == ["work", "wait", "total"]
    assert 0.04 <= seconds["work"] < 0.08
    assert seconds["wait"] < 0.03
    assert seconds["total"] >= seconds["work"] + seconds["wait"] - 1e-5


def _rows(unit: Unit) -> list[dict[str, Any]]:
    return [{"image": f"{unit.name}-{k}", "status": "ok", "kind": "ab"[k]} for k in range(unit.images)]


def worker(folder: Path, *, bad: Iterable[str] = (), bug: str = "") -> Callable[[Unit], Receipt]:
    """Return what does a unit; all images of `bad` units fail, `bug` is done by a worker with one."""

    def make(unit: Unit, clock: Clock) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
        if unit.name == bug:
            raise RuntimeError("unexpected")
        rows = _rows(unit)
        if unit.name not in bad:
            return rows, []
        # each image fails under several conditions for one reason
        return [{**row, "status": "failed"} for row in rows], [(row["image"], "it is bad") for row in rows * 3]

    return lambda unit: make_part(folder, unit, SCHEMA, lambda clock: make(unit, clock), by="kind")


def do(folder: Path, labor: Labor | None = None, progress: Any = None, **options: Any) -> Any:
    return do_units(
        folder,
        UNITS,
        lambda: worker(folder, **options),
        columns=("image",),
        files_now=lambda unit: [(row["image"],) for row in _rows(unit)],
        labor=labor,
        progress=progress,
    )


def test_what_is_left_is_done(tmp_path: Path) -> None:
    told: list[tuple[int, int, str | None]] = []
    outcome = do(
        tmp_path,
        bad=["unit-1"],
        bug="unit-3",
        progress=lambda done, total, receipt: told.append((done, total, receipt and receipt.unit)),
    )
    assert (outcome.units, outcome.left, outcome.images) == (5, 1, 10)
    assert outcome.failures == (("unit-1-0", "it is bad"), ("unit-1-1", "it is bad"))
    assert len(outcome.errors) == 1
    assert outcome.errors[0].startswith("unit unit-3\nTraceback")
    assert set(outcome.seconds) == {"store", "total"}
    assert told == [(0, 10, None), *((2 * k + 2, 10, f"unit-{k}") for k in range(5))]
    assert [json.loads(line)["unit"] for line in (tmp_path / "timing.jsonl").read_text().splitlines()] == [
        "unit-0", "unit-1", "unit-2", "unit-4"
    ]  # fmt: skip
    told.clear()
    outcome = do(tmp_path, progress=lambda done, total, receipt: told.append((done, total, receipt and receipt.unit)))
    assert (outcome.left, outcome.images, outcome.failures, outcome.errors) == (0, 4, (), ())
    assert told == [(6, 10, None), (8, 10, "unit-1"), (10, 10, "unit-3")]
    assert pq.ParquetFile(tmp_path / "parts" / "unit-1.parquet").num_row_groups == 2


def test_no_unit_is_begun_after_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 50))  # a look at the clock takes 50 s
    monkeypatch.setattr("crypsis.bench.work.time.monotonic", lambda: next(now))
    outcome = do(tmp_path, Labor(minutes=2))
    assert (outcome.units, outcome.left, outcome.images) == (5, 3, 4)


def test_a_full_disk_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise IncompleteError("no space is left")

    monkeypatch.setattr("crypsis.bench.store.write_part", refuse)
    with pytest.raises(IncompleteError, match="no space"):
        do(tmp_path)


def _make_same() -> Callable[[int], int]:
    return abs


@pytest.mark.parametrize("workers", [1, 2])
def test_units_are_taken_when_someone_is_free(workers: int) -> None:
    taken: list[int] = []
    receipts = map_units(_make_same, (taken.append(n) or n for n in range(20)), workers=workers)
    done = [next(receipts)]
    assert len(taken) <= 2 * workers
    done += receipts
    assert sorted(done) == list(range(20))


def test_look_ahead_makes_the_next_one_meanwhile() -> None:
    made = [threading.Event() for _ in range(6)]

    def make() -> Iterator[int]:
        for number, event in enumerate(made):
            event.set()
            yield number

    seen = []
    for number in look_ahead(make()):
        seen.append(number)
        assert number == 5 or made[number + 1].wait(timeout=10)
        assert not any(event.is_set() for event in made[number + 2 :])
    assert seen == list(range(6))


def test_look_ahead_passes_errors_on() -> None:
    def make() -> Iterator[int]:
        yield 1
        raise InputError("no more")

    found = look_ahead(make())
    assert next(found) == 1
    with pytest.raises(InputError, match="no more"):
        next(found)
    assert list(look_ahead(iter(()))) == []


def test_row_groups_keep_the_order_of_rows(tmp_path: Path) -> None:
    table = pa.table({"kind": ["b", "a", "b", "c", "a"], "n": [0, 1, 2, 3, 4]})
    write_part(tmp_path, "one", table, by="kind")
    file = pq.ParquetFile(tmp_path / "parts" / "one.parquet")
    assert [file.read_row_group(g).to_pydict() for g in range(file.num_row_groups)] == [
        {"kind": ["b", "b"], "n": [0, 2]}, {"kind": ["a", "a"], "n": [1, 4]}, {"kind": ["c"], "n": [3]}
    ]  # fmt: skip
    write_part(tmp_path, "none", table.slice(0, 0), by="kind")
    assert pq.read_table(tmp_path / "parts" / "none.parquet").num_rows == 0


def claim(folder: Path, session: int = 0, plan: int = 1) -> None:
    claim_folder(
        folder, "run.json", schema="s/1", identity={"p": plan}, session={"n": session}, what="run", option="--out"
    )


def test_claims_at_once_lose_no_session(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: claim(tmp_path / "run", n), range(40)))
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    assert sorted(session["n"] for session in content["sessions"]) == list(range(40))


def test_of_two_plans_at_once_one_is_refused(tmp_path: Path) -> None:
    def attempt(plan: int) -> int:
        try:
            claim(tmp_path / "run", plan=plan)
        except PlanChangedError:
            return 0
        return plan

    with ThreadPoolExecutor(8) as pool:
        claimed = set(pool.map(attempt, [1, 2, 3, 4] * 5)) - {0}
    assert claimed == {json.loads((tmp_path / "run" / "run.json").read_text())["plan"]["p"]}


def test_killed_while_claiming(tmp_path: Path) -> None:
    """A session that died before run.json had its name leaves a temporary file, which must not look like another's."""
    from crypsis.io import atomic_path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 2**30)  # no such process
        with atomic_path(tmp_path / "run" / "run.json") as temporary:
            name = temporary.name
            temporary.touch()
    (tmp_path / "run" / "run.json").unlink()
    (tmp_path / "run" / name).write_text("{")
    claim(tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [".run.json.lock", "run.json"]


def test_a_folder_of_other_things_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").touch()
    with pytest.raises(InputError, match="is not empty and not a run; name a new folder for --out"):
        claim(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    with pytest.raises(InputError, match="is a file; --out names a folder"):
        claim(tmp_path / "letter.txt")
