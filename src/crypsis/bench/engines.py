"""Where units of work run: in this process, in spawned ones, or on a cluster. Results do not depend on which."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import cv2

from ..errors import IncompleteError
from .ray_cluster import THREAD_VARIABLES, RayCluster, map_units_on_ray

__all__ = ["map_units"]

Unit = TypeVar("Unit")
Receipt = TypeVar("Receipt")

_work: Callable[[Any], Any]  # set once in each worker process


def map_units(
    make_worker: Callable[[], Callable[[Unit], Receipt]],
    units: Iterable[Unit],
    *,
    workers: int,
    cluster: RayCluster | None = None,
) -> Iterator[Receipt]:
    """Yield the receipt of each unit, in the order in which they end.

    Args:
        make_worker: called once per process; returns the function that does one unit. Must be picklable when
            `workers` > 1, as must units and receipts; receipts should be small.
        units: what is to be done.
        workers: 1 runs here; more run in that many spawned processes, each with one OpenCV and BLAS thread.
        cluster: run in that many processes of Ray instead.

    Raises:
        IncompleteError: a worker process died (memory, a crash in native code, a kill).
        MissingDependencyError: Ray is asked for and not installed.
    """
    if cluster is not None:
        yield from map_units_on_ray(make_worker, units, workers=workers, cluster=cluster)
        return
    if workers == 1:
        threads = cv2.getNumThreads()
        cv2.setNumThreads(1)
        try:
            work = make_worker()
            yield from map(work, units)
        finally:
            cv2.setNumThreads(threads)
        return
    context = multiprocessing.get_context("spawn")
    with _single_threaded_children():
        pool = ProcessPoolExecutor(workers, context, initializer=_start, initargs=(make_worker,))
        try:
            yield from _bounded(pool, iter(units), ahead=workers)
        except BaseException as error:  # also when no more receipts are asked for
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
            if not isinstance(error, BrokenProcessPool):
                raise
            raise IncompleteError(
                "A worker process died (out of memory, or a crash in native code). What is done is kept: give the "
                "same command again to continue, with fewer --workers if memory was short. In a script, the call "
                "must stand under `if __name__ == '__main__':`."
            ) from error
        pool.shutdown()  # and wait: else its thread may outlive the files it uses when Python ends


def _bounded(pool: ProcessPoolExecutor, units: Iterator[Any], *, ahead: int) -> Iterator[Any]:
    """Submit so many units at a time: a queue of a million costs nothing, and none is begun after the units end."""
    pending: set[Future[Any]] = {pool.submit(_run, unit) for unit in islice(units, ahead)}
    while pending:
        done, pending = wait(pending, return_when=FIRST_COMPLETED)
        pending |= {pool.submit(_run, unit) for unit in islice(units, len(done))}
        for future in done:
            yield future.result()


def _run(unit: Any) -> Any:
    return _work(unit)


def _start(make_worker: Callable[[], Callable[[Any], Any]]) -> None:
    """Prepare a worker process."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    cv2.setNumThreads(1)
    _work = make_worker()


def _end_with_parent() -> None:
    """Leave when the parent is gone, even by SIGKILL: an orphan would go on computing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _single_threaded_children() -> Iterator[None]:
    """Let spawned processes read one-thread settings before they import anything; restore ours after."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
