"""Two processes that train one network, over Gloo on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("safetensors", reason="needs safetensors")

from safetensors.torch import load_file  # noqa: E402
from tiny_network import SMALL, without_batch_norm  # noqa: E402

from crypsis.datasets.masks import open_masks  # noqa: E402
from crypsis.errors import InputError  # noqa: E402
from crypsis.training import loop, team  # noqa: E402
from crypsis.training.settings import Settings  # noqa: E402
from crypsis.training.team import Team, team_of  # noqa: E402

CPU = torch.device("cpu")
HERE = Path(__file__).parent


@settings(deadline=None, max_examples=200)
@given(count=st.integers(1, 20), pieces=st.integers(1, 6), size=st.integers(1, 9))
def test_every_image_weighs_the_same(count: int, pieces: int, size: int) -> None:
    shares = [Team(CPU, rank, size).shares(count, pieces) for rank in range(size)]
    assert {len(share) for share in shares} == {min(pieces, count)}  # else a process would wait for ever
    weight = [0.0] * count
    for share in shares:
        for piece in share:
            assert piece.places
            for place in piece.places:
                weight[place] += piece.weight / len(piece.places)
    assert weight == pytest.approx([1 / count] * count)
    for number in range(min(pieces, count)):  # pieces are the same images for any number of processes
        (alone,) = {Team(CPU).shares(count, pieces)[number].places}
        assert tuple(sorted({place for share in shares for place in share[number].places})) == alone


def test_alone_nothing_is_added() -> None:
    alone, tensor = Team(CPU), torch.tensor([1.0, 2.0])
    alone.add([tensor])
    alone.wait()
    assert tensor.tolist() == [1, 2]
    assert alone.sums([3.5]) == [3.5]
    assert alone.leads
    network = torch.nn.BatchNorm2d(2)
    assert alone.prepare(network) is network


def test_on_gpus_batch_norm_is_shared() -> None:
    network = Team(torch.device("cuda", 0), 0, 2).prepare(torch.nn.Sequential(torch.nn.BatchNorm2d(2)))
    assert isinstance(network[0], torch.nn.SyncBatchNorm)


WHOLE = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}


@pytest.mark.parametrize(
    ("change", "device", "message"),
    [
        (
            {"MASTER_ADDR": ""},
            None,
            "WORLD_SIZE is 2, but there is no MASTER_ADDR; start several processes with torchrun",
        ),
        ({"RANK": "", "MASTER_PORT": ""}, None, "there is no RANK and no MASTER_PORT"),
        ({"WORLD_SIZE": "two"}, None, "WORLD_SIZE is 'two', not a number"),
        ({"WORLD_SIZE": "0"}, None, "WORLD_SIZE is '0', not a number"),
        ({"RANK": "-1"}, None, "RANK is '-1', not a number"),
        ({"RANK": "2"}, None, "RANK is 2, which is none of the 2 processes"),
        ({}, "cuda:1", "each takes a GPU of its own; the device is cuda or cpu, not cuda:1"),
        ({}, "cuda", "number 2 on this machine, where torch finds 1 GPUs; start no more processes than GPUs"),
        ({"WORLD_SIZE": "1"}, "cuba", "cannot use the device 'cuba'"),
        ({"WORLD_SIZE": ""}, "meta:x", "cannot use the device 'meta:x'"),
    ],
)
def test_environments_that_are_wrong(
    change: dict[str, str], device: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**WHOLE, **change}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError) as caught, team_of(device):
        pytest.fail("joined")
    assert message in str(caught.value)


def test_the_others_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**WHOLE, "MASTER_PORT": free_ports(1)[0]}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(team, "PATIENCE", team.timedelta(seconds=1))
    with pytest.raises(team.IncompleteError, match=r"Process 1 of 2 could not reach the others at 127\.0\.0\.1:\d+"):
        team_of("cpu").__enter__()


def test_more_processes_than_a_batch_has_images(
    make_set: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @team.contextlib.contextmanager
    def nine(device: str | None):  # type: ignore[no-untyped-def]
        yield Team(CPU, 0, 9)

    monkeypatch.setattr(loop, "team_of", nine)
    with pytest.raises(InputError, match="A batch of 4 cannot be shared by 9 processes"):
        loop.train(open_masks(make_set(4)), tmp_path / "run", Settings(**SMALL), device="cpu")


def free_ports(count: int) -> list[str]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [str(each.getsockname()[1]) for each in sockets]


def run_both(*arguments: object) -> None:
    """Run a case of two_processes.py, and show what went wrong in it."""
    ports = free_ports(8)
    environment = {**os.environ, **WHOLE, "OMP_NUM_THREADS": "1", "PORTS": ",".join(ports), "MASTER_PORT": ports[0]}
    command = [sys.executable, str(HERE / "two_processes.py"), *map(str, arguments)]
    processes = [
        subprocess.Popen(command, env={**environment, "RANK": rank}, stderr=subprocess.PIPE, text=True)
        for rank in ("0", "1")
    ]
    try:
        errors = [process.communicate(timeout=240)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(errors)


def test_the_sum_of_gradients_is_that_of_the_whole_batch() -> None:
    run_both("gradients")


def test_two_processes_train(make_set: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, both = make_set(11, height=40, width=56), tmp_path / "both"
    run_both("trainings", root, both)
    whole, cut = (load_file(both / name / "last.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    assert sorted(path.name for path in (both / "plain").iterdir()) == [
        "best.safetensors", "curves.csv", "last.safetensors", "training.json",
    ]  # fmt: skip
    torch.set_num_threads(1)
    monkeypatch.setattr(loop, "RobustCodLite", without_batch_norm)
    dataset = open_masks(root, split="train")
    loop.train(dataset, tmp_path / "alone", Settings(**{**SMALL, "batch": 3}), device="cpu", workers=1)
    alone, plain = (load_file(folder / "last.safetensors") for folder in (tmp_path / "alone", both / "plain"))
    assert alone.keys() == plain.keys()
    assert all(torch.allclose(alone[name], plain[name], rtol=1e-4, atol=1e-5) for name in alone)
