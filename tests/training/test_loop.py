"""The training loop, with a network of a few weights; the real one is trained in tests/cli."""

from __future__ import annotations

import csv
import errno
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("safetensors", reason="needs safetensors")

from safetensors.torch import load_file  # noqa: E402
from tiny_network import SMALL, Tiny  # noqa: E402

from crypsis.datasets.masks import MaskDataset, open_masks  # noqa: E402
from crypsis.errors import (  # noqa: E402
    CrypsisError,
    DatasetError,
    IncompleteError,
    InputError,
    PlanChangedError,
    UnknownNameError,
)
from crypsis.models.robust_cod_lite import NetworkOptions  # noqa: E402
from crypsis.training import loop  # noqa: E402
from crypsis.training.data import Batch, Views, make_views  # noqa: E402
from crypsis.training.losses import total_loss  # noqa: E402
from crypsis.training.settings import Settings  # noqa: E402
from crypsis.training.team import Team  # noqa: E402
from crypsis.types import Sample  # noqa: E402


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(loop, "RobustCodLite", Tiny)


@pytest.fixture
def dataset(make_set: Callable[..., Path]) -> MaskDataset:
    return open_masks(make_set(11, height=40, width=56), split="train")


def test_a_training_leaves_weights_and_curves(dataset: MaskDataset, tmp_path: Path) -> None:
    before = torch.get_rng_state(), random.getstate()
    told: list[tuple[int, int]] = []
    outcome = loop.train(
        dataset, tmp_path / "run", Settings(**SMALL), device="cpu", progress=lambda *step: told.append(step)
    )
    assert told == [(step, 9) for step in range(1, 10)]  # 10 images are trained on, 1 is held out
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert outcome.best == tmp_path / "run" / "best.safetensors"
    assert load_file(outcome.best)
    rows = list(csv.DictReader((tmp_path / "run" / "curves.csv").read_text().splitlines()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert list(rows[0]) == [
        "epoch", "clean", "boundary", "uncertainty", "corrupted", "consistency", "loss", "dice", "seconds",
    ]  # fmt: skip
    assert float(rows[2]["loss"]) < float(rows[0]["loss"])
    weighted = {"clean": 1, "corrupted": 0.5, "boundary": 0.2, "uncertainty": 0.1, "consistency": 0.2}
    for row in outcome.history:
        assert row["loss"] == pytest.approx(sum(weight * row[name] for name, weight in weighted.items()), rel=1e-5)
    assert outcome.dice == max(row["dice"] for row in outcome.history)
    plan = json.loads((tmp_path / "run" / "training.json").read_text())
    assert Settings.from_dict(plan["settings"]) == Settings(**SMALL)
    assert (plan["training"]["images"], plan["validation"]["images"]) == (10, 1)


@pytest.mark.parametrize("at", [1, 4, 8])
def test_interrupted_and_continued_is_undisturbed(dataset: MaskDataset, tmp_path: Path, at: int) -> None:
    settings = Settings(**SMALL)
    whole = loop.train(dataset, tmp_path / "whole", settings, device="cpu", workers=1)

    def interrupt(step: int, steps: int) -> None:
        if step == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop.train(dataset, tmp_path / "cut", settings, device="cpu", workers=3, progress=interrupt)
    steps: list[int] = []
    cut = loop.train(
        dataset, tmp_path / "cut", settings, device="cpu", workers=3, progress=lambda step, _: steps.append(step)
    )
    assert steps[0] == at // 3 * 3 + 1  # three steps are an epoch
    assert (cut.epoch, cut.dice) == (whole.epoch, whole.dice)
    for name in ("best.safetensors", "last.safetensors"):
        one, two = load_file(tmp_path / "whole" / name), load_file(tmp_path / "cut" / name)
        assert one.keys() == two.keys()
        assert all(torch.equal(one[key], two[key]) for key in one)
    again = loop.train(dataset, tmp_path / "cut", settings, device="cpu", progress=lambda *_: pytest.fail("a step"))
    assert again == cut


@pytest.mark.parametrize(
    ("without", "terms"),
    [
        ((), {"clean", "boundary", "uncertainty", "corrupted", "consistency"}),
        (("consistency",), {"clean", "boundary", "corrupted"}),
        (("frequency",), {"clean", "boundary", "uncertainty", "corrupted", "consistency"}),
        (("augmentation",), {"clean", "boundary", "uncertainty"}),
        (("augmentation", "consistency", "frequency"), {"clean", "boundary"}),
    ],
)
@pytest.mark.parametrize("clean_view_first", [False, True])
def test_what_is_left_out(
    dataset: MaskDataset,
    tmp_path: Path,
    without: tuple[str, ...],
    terms: set[str],
    clean_view_first: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[NetworkOptions] = []

    def build(options: NetworkOptions, *, seed: int) -> Tiny:
        built.append(options)
        return Tiny(options, seed=seed)

    monkeypatch.setattr(loop, "RobustCodLite", build)
    settings = Settings(**{**SMALL, "epochs": 1}, without=without, clean_view_first=clean_view_first)
    row = loop.train(dataset, tmp_path / "run", settings, device="cpu").history[0]
    assert set(row) - {"epoch", "loss", "dice", "seconds"} == terms
    assert built[0].frequency == ("frequency" not in without)
    assert built[0].uncertainty == ("consistency" not in without)


def _gradients(settings: Settings) -> tuple[list[Any], dict[str, float]]:
    rng = np.random.default_rng(0)
    views = rng.integers(0, 256, (2, 4, 64, 64, 3), dtype=np.uint8)
    batch = Batch(views[0], views[1], rng.random((4, 64, 64)) < 0.3)
    network, alone = Tiny(NetworkOptions(encoder="efficientnet-lite0")), Team(torch.device("cpu"))
    share = alone.shares(4, settings.accumulate)
    terms = loop._accumulate(
        network, batch, share, settings, alone, torch.float32, torch.amp.GradScaler("cpu", enabled=False)
    )
    return [parameter.grad for parameter in network.parameters()], terms


def test_clean_view_first_changes_only_what_the_consistency_pulls(monkeypatch: pytest.MonkeyPatch) -> None:
    together, terms = _gradients(Settings(**SMALL))
    first, terms_first = _gradients(Settings(**SMALL, clean_view_first=True))
    assert terms_first == pytest.approx(terms, rel=1e-5)
    assert any(not torch.allclose(a, b, atol=1e-5) for a, b in zip(together, first, strict=True))
    monkeypatch.setattr(  # without consistency there is nothing between the views
        loop, "total_loss", lambda terms: total_loss({k: v for k, v in terms.items() if k != "consistency"})
    )
    together, first = (_gradients(Settings(**SMALL, clean_view_first=flag))[0] for flag in (False, True))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(together, first, strict=True))


def test_pieces_of_a_batch_add_up() -> None:
    """Batch norm sees other statistics in a piece, so gradients are near, not equal; one piece is the batch."""
    whole, terms = _gradients(Settings(**SMALL))
    pieces, of_pieces = _gradients(Settings(**SMALL, accumulate=3))
    more, _ = _gradients(Settings(**SMALL, accumulate=40))  # than images
    assert of_pieces == pytest.approx(terms, rel=0.05)
    for found in (pieces, more):
        cosine = torch.nn.functional.cosine_similarity(
            torch.cat([g.flatten() for g in whole]), torch.cat([g.flatten() for g in found]), dim=0
        )
        assert cosine > 0.95


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_narrow_precision_trains(dataset: MaskDataset, tmp_path: Path, precision: str) -> None:
    settings = Settings(**SMALL, precision=precision)
    outcome = loop.train(dataset, tmp_path / "run", settings, device="cpu")
    assert outcome.history[-1]["loss"] < outcome.history[0]["loss"]


def test_a_loss_that_is_no_number_stops_at_its_step(
    dataset: MaskDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []

    def diverge(terms: dict[str, Any]) -> Any:
        return total_loss(terms) * (float("nan") if len(steps) == 4 else 1)

    monkeypatch.setattr(loop, "total_loss", diverge)
    with pytest.raises(IncompleteError, match=r"step 5 \(epoch 2\).*best of epochs 1 to 1 is kept in .*best"):
        loop.train(
            dataset, tmp_path / "run", Settings(**SMALL), device="cpu", progress=lambda step, _: steps.append(step)
        )
    assert all(value.isfinite().all() for value in load_file(tmp_path / "run" / "last.safetensors").values())


def test_weights_that_are_no_numbers_are_not_kept(dataset: MaskDataset, tmp_path: Path) -> None:
    settings = Settings(**{**SMALL, "learning_rate": 1e30, "weight_decay": 0.0, "batch": 10})  # a step is an epoch
    with pytest.raises(IncompleteError, match="no epoch was finished"):
        loop.train(dataset, tmp_path / "run", settings, device="cpu")
    assert not list((tmp_path / "run").glob("*.safetensors"))


def test_a_full_disk_is_one_sentence(dataset: MaskDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, data: bytes) -> int:
        if self.suffix == ".tmp" and len(data) > 2000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    write = Path.write_bytes
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", refuse)
        with pytest.raises(IncompleteError, match="no space is left"):
            loop.train(dataset, tmp_path / "run", Settings(**SMALL), device="cpu")
    assert loop.train(dataset, tmp_path / "run", Settings(**SMALL), device="cpu").epoch


def test_too_little_memory_says_what_helps(
    dataset: MaskDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhaust(terms: dict[str, Any]) -> Any:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop, "total_loss", exhaust)
    with pytest.raises(IncompleteError, match="clean view first"):
        loop.train(dataset, tmp_path / "run", Settings(**SMALL), device="cpu")


def test_another_training_in_the_folder(dataset: MaskDataset, tmp_path: Path) -> None:
    settings = Settings(**{**SMALL, "epochs": 1})
    loop.train(dataset, tmp_path / "run", settings, device="cpu")
    with pytest.raises(PlanChangedError, match="epochs: 1 there, 3 now"):
        loop.train(dataset, tmp_path / "run", Settings(**SMALL), device="cpu")
    with pytest.raises(PlanChangedError, match="training: "):
        loop.train(dataset.limit(5), tmp_path / "run", settings, device="cpu")
    plan = tmp_path / "run" / "training.json"
    plan.write_text(plan.read_text("utf-8").replace('"processes": 1', '"processes": 2'), "utf-8")
    with pytest.raises(PlanChangedError, match="processes: 2 there, 1 now"):
        loop.train(dataset, tmp_path / "run", settings, device="cpu")


def test_a_training_from_before_there_were_curricula_continues(dataset: MaskDataset, tmp_path: Path) -> None:
    settings = Settings(**{**SMALL, "epochs": 1})
    before = loop.train(dataset, tmp_path / "run", settings, device="cpu")
    plan = json.loads((tmp_path / "run" / "training.json").read_text())
    for name in ("weights", "curriculum"):
        del plan[name]
    for name in ("curriculum_start", "curriculum_until"):
        del plan["settings"][name]
    (tmp_path / "run" / "training.json").write_text(json.dumps(plan))
    assert loop.train(dataset, tmp_path / "run", settings, device="cpu") == before


def test_images_by_weight_and_by_rank(dataset: MaskDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = tmp_path / "numbers.csv"
    rows = [f"{item.key},{1 if number < 2 else 0},{number + 1}" for number, item in enumerate(dataset.items)]
    numbers.write_text("\n".join(["image,weight,rank", *rows]))
    seen: list[tuple[int, str, int]] = []

    def remember(sample: Sample, **more: Any) -> Views:
        seen.append((more["epoch"], sample.key, more["repeat"]))
        return make_views(sample, **more)

    monkeypatch.setattr(loop, "make_views", remember)
    settings = Settings(**SMALL)
    steps: list[int] = []

    def interrupt(step: int, of: int) -> None:
        steps.append(step)
        if step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop.train(dataset, tmp_path / "cut", settings, device="cpu", workers=1, weights=numbers, progress=interrupt)
    seen.clear()
    loop.train(dataset, tmp_path / "whole", settings, device="cpu", workers=1, weights=numbers)
    assert len(seen) == 3 * 10  # as many as without weights
    assert {key for _, key, _ in seen} <= {item.key for item in dataset.items[:2]}
    assert len(set(seen)) == len(seen)  # a repeat is another view
    loop.train(dataset, tmp_path / "cut", settings, device="cpu", workers=2, weights=numbers)
    one, two = (load_file(tmp_path / name / "last.safetensors") for name in ("cut", "whole"))
    assert all(torch.equal(one[name], two[name]) for name in one)

    seen.clear()
    loop.train(dataset, tmp_path / "easy", settings, device="cpu", workers=1, curriculum=numbers)
    shown = [sorted({key for at, key, _ in seen if at == epoch}) for epoch in range(3)]
    assert [len(keys) for keys in shown] == [4, 8, 10]  # 40%, then 80%, then all of the ten trained on
    assert shown[0] == shown[2][:4]
    assert len(seen) == 30

    numbers.write_text(numbers.read_text().replace(",0,", ",1,"))
    with pytest.raises(PlanChangedError, match=r"weights: .*numbers\.csv.* there, .*numbers\.csv.* now"):
        loop.train(dataset, tmp_path / "whole", settings, device="cpu", weights=numbers)
    with pytest.raises(PlanChangedError, match=r"curriculum: .*numbers\.csv.* there, None now"):
        loop.train(dataset, tmp_path / "easy", settings, device="cpu")


def test_a_damaged_checkpoint(dataset: MaskDataset, tmp_path: Path) -> None:
    settings = Settings(**{**SMALL, "epochs": 1})
    loop.train(dataset, tmp_path / "run", settings, device="cpu")
    (tmp_path / "run" / "best.safetensors").unlink()
    with pytest.raises(InputError, match=r"best\.safetensors: is gone; put it back, or delete .*last\.safetensors"):
        loop.train(dataset, tmp_path / "run", settings, device="cpu")
    (tmp_path / "run" / "last.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"last\.safetensors: is damaged"):
        loop.train(dataset, tmp_path / "run", settings, device="cpu")
    (tmp_path / "run" / "training.json").write_text("[1]")
    with pytest.raises(InputError, match=r"is not the training\.json of a training"):
        loop.train(dataset, tmp_path / "run", settings, device="cpu")


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_killed_while_a_file_is_written(
    dataset: MaskDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As if the process was gone at once: half a temporary file stays, whichever of the four files it was for."""
    settings = Settings(**{**SMALL, "epochs": 2})
    loop.train(dataset, tmp_path / "whole", settings, device="cpu")
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    write, written = Path.write_bytes, 0

    def half(self: Path, data: bytes) -> int:
        nonlocal written
        written += 1
        if written < number:
            return write(self, data)
        left = self.with_name(self.name.replace(f".{os.getpid()}.", f".{int(gone.stdout)}."))
        write(left, data[: len(data) // 2])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", half)
        with pytest.raises(KeyboardInterrupt):
            loop.train(dataset, tmp_path / "killed", settings, device="cpu")
    assert list((tmp_path / "killed").glob(".*.tmp"))
    loop.train(dataset, tmp_path / "killed", settings, device="cpu")
    names = ["best.safetensors", "curves.csv", "last.safetensors", "training.json"]
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == names
    for name in ("best.safetensors", "last.safetensors"):
        one, two = load_file(tmp_path / "whole" / name), load_file(tmp_path / "killed" / name)
        assert all(torch.equal(one[key], two[key]) for key in one)


def test_folders_that_are_no_training(dataset: MaskDataset, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").write_text("buy milk")
    with pytest.raises(InputError, match="not empty and not a training"):
        loop.train(dataset, tmp_path / "notes", Settings(**SMALL), device="cpu")
    with pytest.raises(InputError, match="is a file"):
        loop.train(dataset, tmp_path / "notes" / "todo.txt", Settings(**SMALL), device="cpu")


def test_one_image_needs_a_validation_set(dataset: MaskDataset, tmp_path: Path) -> None:
    settings = Settings(**{**SMALL, "epochs": 1})
    with pytest.raises(DatasetError, match="one image"):
        loop.train(dataset.limit(1), tmp_path / "run", settings, device="cpu")
    outcome = loop.train(dataset.limit(1), tmp_path / "run", settings, device="cpu", validation=dataset)
    assert 0 <= outcome.dice <= 1


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"epochs": 0}, InputError, "epochs of at least 1; got 0"),
        ({"batch": -1}, InputError, "batch"),
        ({"accumulate": 0}, InputError, "accumulate"),
        ({"size": 32}, InputError, "at least 64 pixels; got 32"),
        ({"learning_rate": float("nan")}, InputError, "learning rate"),
        ({"weight_decay": -1.0}, InputError, "weight decay"),
        ({"curriculum_start": 0.0}, InputError, "above 0 and at most 1.*got 0.0 and 0.5"),
        ({"curriculum_until": 1.5}, InputError, "from 0 to 1; got 0.4 and 1.5"),
        ({"without": ("consistensy",)}, UnknownNameError, "did you mean 'consistency'"),
        ({"precision": "float23"}, UnknownNameError, "did you mean 'float32'"),
    ],
)
def test_settings_are_checked(change: dict[str, Any], error: type[CrypsisError], message: str) -> None:
    with pytest.raises(error, match=message):
        Settings(**{**SMALL, **change})


def test_settings_in_any_order_are_the_same() -> None:
    one = Settings(without=("augmentation", "consistency", "augmentation"))
    assert one == Settings(without=("consistency", "augmentation"))
    assert Settings.from_dict(json.loads(json.dumps(one.to_dict()))) == one
