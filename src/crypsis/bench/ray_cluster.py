"""Units of work on a Ray cluster: actors do them, and one that dies is started again.

The run folder and the data must be reachable under the same paths on every machine, and Crypsis installed there.
"""

from __future__ import annotations

import importlib
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import cv2

from ..errors import IncompleteError, InputError, MissingDependencyError

__all__ = ["THREAD_VARIABLES", "RayCluster", "map_units_on_ray"]

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
"""What worker processes have set to 1: many threads on busy cores cost more than they bring."""

_ANSWER_SECONDS = 5.0
"""How long an address may take to answer; Ray itself would wait for minutes."""

_RETRIES = 3
"""How often a unit is tried again after the death of its worker: what kills it every time is the unit's own fault."""


@dataclass(frozen=True, slots=True)
class RayCluster:
    """Where Ray runs.

    Attributes:
        address: of a running cluster, `auto` for the one this machine belongs to, or None to start one here.
        gpus: how many GPUs each worker asks for, below 1 a share of one; Ray then says which of them it sees.
    """

    address: str | None = None
    gpus: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what Ray cannot give out."""
        if not (0 <= self.gpus <= 1 or (1 < self.gpus < 1e6 and self.gpus == int(self.gpus))):
            raise InputError(f"A worker has a share of a GPU (0 to 1) or a whole number of them; got {self.gpus}.")


def map_units_on_ray(
    make_worker: Callable[[], Callable[[Any], Any]], units: Iterable[Any], *, workers: int, cluster: RayCluster
) -> Iterator[Any]:
    """Yield the receipt of each unit, in the order in which they end; see `crypsis.bench.engines.map_units`.

    Raises:
        MissingDependencyError: Ray is not installed.
        InputError: no cluster answers at the address, or it has too few GPUs.
        IncompleteError: a unit's worker died again and again.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # workers that ask for no GPU keep the CUDA_VISIBLE_DEVICES that they find, as a later version of Ray will have it
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise MissingDependencyError('The engine ray needs Ray: pip install "crypsis[ray]".') from error
    started = not ray.is_initialized()
    if started:
        _connect(ray, workers, cluster)
    try:
        _check_gpus(ray, workers, cluster.gpus)
    except InputError:
        if started:
            ray.shutdown()
        raise
    actor = ray.remote(num_cpus=1, num_gpus=cluster.gpus, max_restarts=-1, max_task_retries=_RETRIES)(_Worker)
    actors = [actor.remote(make_worker, os.getcwd()) for _ in range(workers)]  # noqa: PTH109
    try:
        remaining = iter(units)
        pending = {a.do.remote(unit): a for a in actors for unit in islice(remaining, 1)}
        while pending:
            (done,), _ = ray.wait(list(pending), num_returns=1)
            free = pending.pop(done)
            try:
                receipt = ray.get(done)
            except (ray.exceptions.RayActorError, ray.exceptions.RayTaskError) as error:
                cause = getattr(error, "cause", None)
                if isinstance(cause, IncompleteError):
                    raise cause from error
                reason = str(error).strip().splitlines()[-1]
                raise IncompleteError(
                    f"A Ray worker failed ({reason}). What is done is kept: give the same command again to continue."
                ) from error
            pending |= {free.do.remote(unit): free for unit in islice(remaining, 1)}
            yield receipt
    finally:
        for a in actors:
            ray.kill(a)
        if started:
            ray.shutdown()


def _connect(ray: Any, workers: int, cluster: RayCluster) -> None:
    threads = dict.fromkeys(THREAD_VARIABLES, "1")
    options: dict[str, Any] = {"runtime_env": {"env_vars": threads}, "log_to_driver": False, "logging_level": "ERROR"}
    if cluster.address is None:
        options |= {"num_cpus": workers, "include_dashboard": False}
    else:
        _check_answer(cluster.address)
    try:
        ray.init(address=cluster.address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(f"No Ray cluster answers at {cluster.address!r}: {str(error).splitlines()[0]}") from error


def _check_answer(address: str) -> None:
    """Refuse an address `host:port`, with or without `ray://`, at which nobody listens."""
    match = re.fullmatch(r"(?:ray://)?\[?(.+?)\]?:(\d{1,5})", address)
    if not match:
        return  # such as auto
    try:
        socket.create_connection((match[1], int(match[2])), _ANSWER_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(f"No Ray cluster answers at {address!r}: {error}") from error


def _check_gpus(ray: Any, workers: int, each: float) -> None:
    """Refuse more workers than the GPUs are for: those left over would be waited for without end."""
    if not each:
        return
    found = ray.cluster_resources().get("GPU", 0.0)
    room = int(found) * int(1 / each) if each < 1 else int(found // each)
    if workers > room:
        raise InputError(
            f"With {each:g} GPUs per worker, the {found:g} GPUs of this Ray cluster are for {room} workers, not "
            f"{workers}; use fewer --workers, or a smaller --gpus-per-worker."
        )


class _Worker:
    """One process of the cluster."""

    def __init__(self, make_worker: Callable[[], Callable[[Any], Any]], folder: str) -> None:
        os.chdir(folder)  # relative paths mean here what they mean where the command was given
        cv2.setNumThreads(1)
        self.work = make_worker()

    def do(self, unit: Any) -> Any:
        """Return the receipt of a unit."""
        return self.work(unit)
