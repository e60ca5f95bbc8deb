"""Doing the units of a run: which are left, by whom, until when, and what came of them.

A unit of work is a few images under all conditions (and models); it becomes one Parquet part. Parts are whole or
absent, so that any number of processes, shards and interruptions lead to the same folder.
"""

from __future__ import annotations

import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import pyarrow as pa

from ..errors import IncompleteError, InputError
from ..io import discard_leftovers
from . import store
from .engines import map_units
from .ray_cluster import RayCluster

__all__ = ["Clock", "Labor", "Outcome", "Receipt", "Shard", "UnitOfImages", "do_units", "look_ahead", "make_part"]


class UnitOfImages(Protocol):
    """A unit of work."""

    @property
    def name(self) -> str:
        """Plain text, the part's file stem."""
        ...

    @property
    def images(self) -> int:
        """How many images are in it."""
        ...


AnyUnit = TypeVar("AnyUnit", bound=UnitOfImages)
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Shard:
    """Every `of`-th unit from the `index`-th on, for one of several machines that write into one folder.

    Attributes:
        index: from 1 up to `of`.
        of: number of shards.
    """

    index: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `2/8`.

        Raises:
            InputError: it is written otherwise, or there is no such shard.
        """
        match = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text, re.ASCII)
        index, of = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= index <= of:
            raise InputError(f"A shard is written i/n, from 1/n to n/n; got {text!r}.")
        return cls(index, of)

    def take(self, units: Sequence[AnyUnit]) -> Sequence[AnyUnit]:
        """Return its units; neighbors go to different shards, so that all take about as long."""
        return units[self.index - 1 :: self.of]


@dataclass(frozen=True, slots=True)
class Labor:
    """Who does the units, and for how long.

    Attributes:
        workers: number of processes; 1 works in this one.
        cluster: where they are processes of Ray.
        shard: which units this call is for.
        minutes: no unit is begun later than this; None for no limit.
    """

    workers: int = 1
    cluster: RayCluster | None = None
    shard: Shard = field(default_factory=Shard)
    minutes: float | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        if self.workers < 1:
            raise InputError(f"workers is a number from 1 up; got {self.workers}.")
        if self.minutes is not None and not self.minutes > 0:
            raise InputError(f"A limit in minutes is a number above 0; got {self.minutes}.")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a worker reports of one unit; its rows are already on disk.

    Attributes:
        unit: its name.
        images: number of images in it.
        failures: `(image, reason)` of everything that failed.
        seconds: CPU seconds by stage, and `total`.
        error: the traceback of a bug, which left the unit undone.
    """

    unit: str
    images: int
    failures: tuple[tuple[str, str], ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call that does units ended.

    Attributes:
        units: number of units it was for: those of its shard.
        left: how many of them are not done, by a bug or because time was up.
        images: images that this call did, the failed ones included.
        failures: see `Receipt.failures`.
        errors: tracebacks of bugs.
        seconds: CPU seconds of this call by stage, and `total`.
    """

    units: int
    left: int
    images: int
    failures: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]
    seconds: Mapping[str, float]


Progress = Callable[[int, int, Receipt | None], None]
"""Called with images done, images in all, and the last receipt (None at the start)."""


def do_units(
    folder: Path,
    units: Sequence[AnyUnit],
    make_worker: Callable[[], Callable[[AnyUnit], Receipt]],
    *,
    columns: Sequence[str],
    files_now: Callable[[AnyUnit], Iterable[tuple[Any, ...]]],
    labor: Labor | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Do what is left of the units of a run folder that is already claimed.

    Args:
        folder: of the run.
        units: all of its units, in a fixed order.
        make_worker: returns, once per process, what does a unit; see `crypsis.bench.engines.map_units`.
        columns: see `crypsis.bench.store.remaining_units`.
        files_now: likewise.
        labor: who does them; this process alone if None.
        progress: told after each unit.

    Raises:
        PlanChangedError: files changed since they were read.
        IncompleteError: a worker died, or the disk is full.
    """
    labor = labor or Labor()
    mine = labor.shard.take(units)
    todo = store.remaining_units(folder, mine, columns, files_now)
    total = sum(unit.images for unit in mine)
    done = total - sum(unit.images for unit in todo)
    before, began = done, 0
    failures: dict[tuple[str, str], None] = {}
    errors: list[str] = []
    seconds: Counter[str] = Counter()
    end = None if labor.minutes is None else time.monotonic() + 60 * labor.minutes
    in_time = takewhile(lambda _: end is None or time.monotonic() < end, todo)
    if progress:
        progress(done, total, None)
    workers = min(labor.workers, max(1, len(todo)))
    for receipt in map_units(make_worker, in_time, workers=workers, cluster=labor.cluster):
        began += 1
        done += receipt.images
        failures |= dict.fromkeys(receipt.failures)
        if receipt.error:
            errors.append(receipt.error)
        else:
            seconds.update(receipt.seconds)
            store.append_lines(folder / "timing.jsonl", [{"unit": receipt.unit, **receipt.seconds}])
        if progress:
            progress(done, total, receipt)
    discard_leftovers(folder)  # again: workers of a killed session may have lived on into the start of this one
    left = len(todo) - began + len(errors)
    return Outcome(len(mine), left, done - before, tuple(sorted(failures)), tuple(errors), dict(seconds))


def make_part(
    folder: Path,
    unit: UnitOfImages,
    schema: pa.Schema,
    make_rows: Callable[[Clock], tuple[list[dict[str, Any]], Iterable[tuple[str, str]]]],
    *,
    by: str | None = None,
    clock: Clock | None = None,
) -> Receipt:
    """Make the rows of a unit, write its part and say so; a bug becomes its traceback.

    Args:
        folder: of the run.
        unit: the unit.
        schema: of the part.
        make_rows: returns the rows and `(image, reason)` of what failed, given a clock to run its stages by.
        by: see `crypsis.bench.store.write_part`.
        clock: one that was just started, if not the usual one.

    Raises:
        IncompleteError: the disk is full.
    """
    clock = clock or Clock()
    try:
        rows, failures = make_rows(clock)
        with clock("store"):
            store.write_part(folder, unit.name, pa.Table.from_pylist(rows, schema), by=by)
    except IncompleteError:
        raise
    except Exception:
        return Receipt(unit.name, unit.images, error=f"unit {unit.name}\n{traceback.format_exc()}")
    return Receipt(unit.name, unit.images, tuple(dict.fromkeys(failures)), clock.read())


class Clock:
    """CPU seconds by stage: `with clock("decode"): …`, then `read()`."""

    def __init__(self, timer: Callable[[], float] = time.process_time) -> None:
        """Start.

        Args:
            timer: of stages; `time.thread_time` where several threads run stages at the same time.
        """
        self.start = time.process_time()
        self.timer = timer
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Add what the block takes to a stage."""
        start = self.timer()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + self.timer() - start

    def read(self) -> dict[str, float]:
        """Return the seconds of each stage, and `total` since the start."""
        total = time.process_time() - self.start
        return {stage: round(value, 6) for stage, value in {**self.seconds, "total": total}.items()}


def look_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield items in order while a thread makes the next one, and no more than that one."""
    end = object()
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, items, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, items, end)
            yield cast("Item", item)
