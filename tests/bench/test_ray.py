"""Runs on a real Ray of two workers: the same bytes as here, also when one of them is killed."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crypsis.bench.detect import run_detection
from crypsis.bench.engines import map_units
from crypsis.bench.ray_cluster import RayCluster
from crypsis.bench.work import Labor, Receipt
from crypsis.errors import IncompleteError, InputError, MissingDependencyError
from toy_detection import FAST, MODULE, SLOW, part_bytes, plan_toy, write_set

ray = pytest.importorskip("ray", reason="needs ray")

HERE = RayCluster()


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster that was there before, started somewhere else; the other tests share it."""
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}  # workers import this file
    ray.init(
        num_cpus=2, num_gpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
        runtime_env=environment,
    )  # fmt: skip
    yield
    ray.shutdown()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy_module.py").write_text(MODULE)
    return tmp_path


def test_starts_one_and_ends_it(place: Path) -> None:
    data = write_set(place / "set")
    run_detection(plan_toy(data), place / "here")
    outcome = run_detection(plan_toy(data), place / "ray", labor=Labor(2, HERE))
    assert (outcome.units, outcome.left, outcome.images, outcome.errors) == (3, 0, 10, ())
    assert part_bytes(place / "ray") == part_bytes(place / "here")
    assert not ray.is_initialized()


def test_a_worker_killed_in_the_middle(place: Path, cluster: None) -> None:
    data = write_set(place / "set", 20)
    run_detection(plan_toy(data, [FAST]), place / "here")
    (place / "pids" / str(os.getpid())).unlink(missing_ok=True)
    killed: list[int] = []

    def kill_one(done: int, total: int, receipt: Receipt | None) -> None:
        if receipt and not killed:
            killed.append(next(int(p.name) for p in (place / "pids").iterdir() if int(p.name) != os.getpid()))
            os.kill(killed[0], signal.SIGKILL)

    plan = plan_toy(("set/images", "set/instances.json"), [SLOW])  # relative paths, which a cluster must understand
    outcome = run_detection(plan, Path("ray"), labor=Labor(2, HERE), progress=kill_one)
    assert (outcome.units, outcome.left, outcome.images, outcome.errors) == (5, 0, 20, ())
    assert part_bytes(place / "ray") == part_bytes(place / "here")
    assert len({p.name for p in (place / "pids").iterdir()} - {str(os.getpid())}) == 3, "none was started again"
    assert not list(place.glob("ray/**/*.tmp"))


def _make_double() -> Callable[[int], int]:
    return _double


def _double(unit: int) -> int:
    if unit == 13:
        raise IncompleteError("the disk is full")
    if unit == 14:
        raise RuntimeError("a bug")
    if unit == 15:
        os._exit(9)
    return 2 * unit


def test_each_unit_once(cluster: None) -> None:
    assert sorted(map_units(_make_double, iter(range(9)), workers=2, cluster=HERE)) == [2 * n for n in range(9)]
    assert ray.is_initialized()


@pytest.mark.parametrize(
    ("unit", "words"), [(13, "^the disk is full$"), (14, "a bug.*same command again"), (15, "worker failed.*continue")]
)
def test_what_ends_a_run(cluster: None, unit: int, words: str) -> None:
    with pytest.raises(IncompleteError, match=words):
        list(map_units(_make_double, [1, unit], workers=1, cluster=HERE))


def _make_devices() -> Callable[[int], str]:
    return lambda _: os.environ.get("CUDA_VISIBLE_DEVICES", "")


def test_each_worker_sees_its_gpu(cluster: None) -> None:
    seen = set(map_units(_make_devices, range(2), workers=2, cluster=RayCluster(gpus=1)))
    assert seen == {"0", "1"}


@pytest.mark.parametrize(("gpus", "room"), [(2, 1), (1, 2), (0.4, 4)])
def test_too_few_gpus(cluster: None, gpus: float, room: int) -> None:
    with pytest.raises(InputError, match=f"the 2 GPUs of this Ray cluster are for {room} workers, not 5"):
        list(map_units(_make_devices, range(5), workers=5, cluster=RayCluster(gpus=gpus)))
    assert ray.is_initialized()


@pytest.mark.parametrize("gpus", [-1, 1.5, float("nan"), float("inf")])
def test_gpus_that_ray_cannot_give(gpus: float) -> None:
    with pytest.raises(InputError, match=r"share of a GPU .* got "):
        RayCluster(gpus=gpus)


def _make_nothing() -> Callable[[int], int]:
    raise InputError("there is no such detector here")


def test_a_worker_that_cannot_start(cluster: None) -> None:
    with pytest.raises(IncompleteError, match="there is no such detector here"):
        list(map_units(_make_nothing, [1], workers=1, cluster=HERE))


def test_no_cluster_at_the_address() -> None:
    ray.shutdown()
    with pytest.raises(InputError, match=r"No Ray cluster answers at 'auto'"):
        list(map_units(_make_double, [1], workers=1, cluster=RayCluster("auto")))


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_nobody_listens_at_the_address(scheme: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{closed.getsockname()[1]}"
    begin = time.monotonic()
    with pytest.raises(InputError, match=rf"No Ray cluster answers at '{address}': .*refused"):
        list(map_units(_make_double, [1], workers=1, cluster=RayCluster(address)))
    assert time.monotonic() - begin < 10


def test_ray_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "crypsis\[ray\]"'):
        list(map_units(_make_double, [1], workers=1, cluster=HERE))
