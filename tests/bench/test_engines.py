"""How a pool of processes ends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from crypsis.bench.engines import map_units


def double(number: int) -> int:
    return 2 * number


def maker() -> Callable[[int], int]:
    return double


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return whether each end of a pool waited for its processes."""
    seen: list[bool] = []
    shutdown = ProcessPoolExecutor.shutdown

    def watched(self: ProcessPoolExecutor, wait: bool = True, **options: Any) -> None:
        seen.append(wait)
        shutdown(self, wait, **options)

    monkeypatch.setattr(ProcessPoolExecutor, "shutdown", watched)
    return seen


def test_a_pool_that_is_done_is_waited_for(waits: list[bool]) -> None:
    assert sorted(map_units(maker, range(4), workers=2)) == [0, 2, 4, 6]
    assert waits == [True]


def test_a_pool_that_nobody_listens_to_any_more_is_not(waits: list[bool]) -> None:
    receipts = map_units(maker, range(40), workers=2)
    next(receipts)
    receipts.close()  # type: ignore[attr-defined]
    assert waits == [False]
