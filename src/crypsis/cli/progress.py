"""Progress of long work: a bar on a terminal, a line every 30 s elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

if TYPE_CHECKING:
    from ..bench.work import Receipt

__all__ = ["Reporter"]

_EVERY = 30.0


class _Rate(ProgressColumn):
    """Things per second of this session."""

    def render(self, task: object) -> Text:
        speed = getattr(task, "finished_speed", None) or getattr(task, "speed", None)
        return Text("" if speed is None else f"{speed:.1f}/s", style="progress.data.speed")


class Reporter:
    """Shows how far some work is, on stderr.

    Args:
        what: plural of what is counted, such as `images`.
        quiet: show nothing.
    """

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self.what = what
        self.quiet = quiet
        self.console = Console(stderr=True)
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        self.started = self.last = time.monotonic()
        self.first: int | None = None
        self.failed: set[str] = set()

    def __enter__(self) -> Reporter:
        if not self.quiet and self.console.is_terminal:
            self.bar = Progress(
                TextColumn(self.what), BarColumn(), MofNCompleteColumn(), _Rate(), TimeElapsedColumn(),
                TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=self.console,
            )  # fmt: skip
            self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.bar:
            self.bar.stop()

    def follow(self, done: int, total: int, receipt: Receipt | None) -> None:
        """Tell how far the units of a run are; a `crypsis.bench.work.Progress`."""
        if receipt:
            self.failed.update(image for image, _ in receipt.failures)
        self.update(done, total, failed=len(self.failed))

    def update(self, done: int, total: int, *, failed: int = 0) -> None:
        """Tell that `done` of `total` are done, `failed` of them without success."""
        if self.quiet:
            return
        note = f"{failed} failed" if failed else ""
        if self.bar:
            if self.task is None:
                self.task = self.bar.add_task(self.what, total=total, completed=done, note=note)
            self.bar.update(self.task, completed=done, total=total, note=note)
            return
        now = time.monotonic()
        if self.first is None:  # what an earlier session did
            self.first = done
        if now - self.last >= _EVERY or done == total:
            rate = (done - self.first) / (now - self.started) if now > self.started else 0.0
            left = f", {(total - done) / rate:.0f} s left" if rate > 0 and done < total else ""
            print(
                f"{done}/{total} {self.what}, {rate:.2f}/s{left}{', ' + note if note else ''}",
                file=sys.stderr,
                flush=True,
            )
            self.last = now
