"""The training of RobustCODLite, from the first step to the best weights.

DIR/training.json          the settings and the data; what the folder is
DIR/last.safetensors       network and optimizer after the last whole epoch, from where training continues
DIR/best.safetensors       the network with the best Dice on the images held out, for use
DIR/curves.csv             one row per epoch
DIR/tensorboard/           the same, where TensorBoard is installed

Several processes may train together (see `team`): all of them run this loop, and the first one writes.

Source: "COD10K-C: Benchmarking Robustness of Camouflaged Object Detection Under Natural Image Corruptions",
sections 4.2 and 4.3.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..datasets.masks import Item, MaskDataset
from ..errors import DatasetError, IncompleteError, InputError, PlanChangedError
from ..io import atomic_path, discard_leftovers, storing, write_atomic
from ..models.foreign import import_extra, sha256_of, told
from ..models.robust_cod_lite import (
    MEAN,
    STD,
    NetworkOptions,
    RobustCodLite,
    load_encoder,
    load_weights,
    save_checkpoint,
)
from .data import Batch, Views, batches, clean_view, hold_out, in_groups, make_views
from .losses import boundary_loss, consistency_loss, segmentation_loss, total_loss, uncertainty_loss
from .order import Order, read_column
from .settings import Settings
from .team import Piece, Team, team_of

__all__ = ["BEST", "CURVES", "LAST", "PLAN", "Outcome", "Progress", "train"]

BEST, LAST, CURVES, PLAN = "best.safetensors", "last.safetensors", "curves.csv", "training.json"

Progress = Callable[[int, int], None]
"""Told after each step: steps done and steps in all."""

Row = dict[str, float]


@dataclass(frozen=True)
class Outcome:
    """What a training came to.

    Attributes:
        best: the weights to use.
        epoch: after how many epochs they were taken.
        dice: their mean Dice on the images held out.
        history: one row per epoch: `epoch`, the means of its losses (`loss` is the weighted sum), `dice` on the
            images held out, `seconds`.
    """

    best: Path
    epoch: int
    dice: float
    history: tuple[Row, ...]


def train(
    dataset: MaskDataset,
    out: Path,
    settings: Settings | None = None,
    *,
    validation: MaskDataset | None = None,
    encoder_weights: str | Path | None = None,
    weights: Path | None = None,
    curriculum: Path | None = None,
    workers: int = 2,
    device: str | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Train a network; called again on the same folder, continue after the last whole epoch.

    On a CPU, a training that was interrupted and continued ends with the same weights as one that was not. Under
    torchrun, its processes train together, each on its share of every batch.

    Args:
        dataset: the training images.
        out: where everything is written; made if absent.
        settings: how to train; by default as in the paper.
        validation: images held out; by default every tenth of `dataset`.
        encoder_weights: of the encoder at the start, as `load_encoder` takes them; None begins from random numbers.
        weights: CSV with the columns `image` and `weight`, for all of `dataset`: images are drawn by weight, with
            replacement, as many per epoch as without.
        curriculum: CSV with the columns `image` and `rank`, 1 for the easiest: the first epochs show the easiest only.
        workers: threads that load and degrade images; results do not depend on it.
        device: as torch names it; by default a GPU where there is one.
        progress: told after each step, in the first process.

    Raises:
        InputError: the device cannot be used, or a file of weights or ranks does not fit.
        DatasetError: too few images.
        PlanChangedError: the folder holds another training.
        IncompleteError: the loss is not a number, memory or disk are too small, or another process has ended; the last
            whole epoch is kept.
    """
    settings = settings or Settings()
    numbers = [
        read_column(file, column, dataset) if file else None
        for file, column in ((weights, "weight"), (curriculum, "rank"))
    ]
    if validation is None:
        dataset, validation = hold_out(dataset, seed=settings.seed)
    for part in (dataset, validation):
        if not len(part):
            raise DatasetError(f"{part.root}: holds no images.")
    order = Order(tuple(item.key for item in dataset.items), *numbers)
    order.check(settings, str(weights))
    plan: dict[str, Any] = {
        "settings": settings.to_dict(),
        "weights": weights and {"file": weights.name, "sha256": sha256_of([weights])},
        "curriculum": curriculum and {"file": curriculum.name, "sha256": sha256_of([curriculum])},
    }
    for name, part in (("training", dataset), ("validation", validation)):
        plan[name] = {"name": part.name, "images": len(part), "fingerprint": part.fingerprint()}
    with team_of(device) as team:
        plan["processes"] = team.size  # which batch norm may depend on
        if settings.batch < team.size:
            raise InputError(f"A batch of {settings.batch} cannot be shared by {team.size} processes; start fewer.")
        network = RobustCodLite(
            NetworkOptions(
                encoder=settings.encoder, frequency=settings.has("frequency"), uncertainty=settings.has("consistency")
            ),
            seed=settings.seed,
        )
        plan["encoder"] = load_encoder(network, encoder_weights) if encoder_weights is not None else None
        _claim(out, plan, team)
        network = team.prepare(network).to(team.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer = torch.optim.AdamW(network.parameters(), settings.learning_rate, weight_decay=settings.weight_decay)
        precision = _precision(settings, team.device)
        scaler = torch.amp.GradScaler(team.device.type, enabled=precision is torch.float16)
        history = _resume(out / LAST, network, optimizer, scaler, team)
        per_epoch = math.ceil(len(dataset) / settings.batch)
        total = settings.epochs * per_epoch

        for epoch in range(len(history), settings.epochs):
            began = time.monotonic()
            shown = [(dataset.items[place], repeat) for place, repeat in order.epoch(settings, epoch, dataset.name)]
            load = partial(_load, dataset, settings, epoch)
            terms: list[Row] = []
            network.train()
            for batch, share in _share_of_steps(shown, load, settings, team, workers):
                step = epoch * per_epoch + len(terms)
                for group in optimizer.param_groups:
                    group["lr"] = settings.learning_rate * (1 + math.cos(math.pi * step / total)) / 2
                with _within_memory():
                    terms.append(_accumulate(network, batch, share, settings, team, precision, scaler))
                if not math.isfinite(terms[-1]["loss"]):
                    raise _diverged(out, step, epoch)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                if progress and team.leads:
                    progress(step + 1, total)
            team.average_statistics(network)
            dice = _validate(network, validation, settings, team, precision, workers)
            if not math.isfinite(dice):
                raise _diverged(out, step, epoch)
            row = {name: sum(term[name] for term in terms) / len(terms) for name in terms[0]}
            history.append({"epoch": epoch + 1, **row, "dice": dice, "seconds": time.monotonic() - began})
            if team.leads:
                if dice == max(row["dice"] for row in history):
                    about = {"epoch": epoch + 1, "dice": dice, "settings": settings.to_dict()}
                    save_checkpoint(out / BEST, network, about)
                _draw_curves(out, history)
                _save(out / LAST, network, optimizer, scaler, history)
        team.wait()
    best = max(reversed(history), key=lambda row: row["dice"])
    return Outcome(out / BEST, int(best["epoch"]), best["dice"], tuple(history))


def _share_of_steps(
    shown: Sequence[tuple[Item, int]],
    load: Callable[[tuple[Item, int]], Views],
    settings: Settings,
    team: Team,
    workers: int,
) -> Iterator[tuple[Batch, Sequence[Piece]]]:
    """Yield for each step of an epoch this process' images, and the pieces they are worked through in."""
    steps = in_groups(shown, settings.batch)
    shares = [team.shares(len(step), settings.accumulate) for step in steps]
    mine = [[step[i] for piece in share for i in piece.places] for step, share in zip(steps, shares, strict=True)]
    yield from zip(batches(mine, load, workers=workers), shares, strict=True)


def _load(dataset: MaskDataset, settings: Settings, epoch: int, shown: tuple[Item, int]) -> Views:
    item, repeat = shown
    return make_views(
        dataset.load(item),
        size=settings.size,
        seed=settings.seed,
        epoch=epoch,
        repeat=repeat,
        augment=settings.has("augmentation"),
    )


def _accumulate(
    network: RobustCodLite,
    batch: Batch,
    share: Sequence[Piece],
    settings: Settings,
    team: Team,
    precision: torch.dtype,
    scaler: torch.amp.GradScaler,
) -> Row:
    """Add the gradients of one batch, piece by piece, and return the loss and its terms (equation 6).

    Args:
        network: every process gets the gradients of the whole batch in it.
        batch: this process' images, those of its pieces one after the other.
        share: its pieces.
        settings: of the training.
        team: the processes.
        precision: of the forward pass.
        scaler: of the loss.
    """
    sums: Row = {}
    for piece, part in zip(share, batch.split([len(piece.places) for piece in share]), strict=True):
        for terms in _losses(network, part, settings, team.device, precision):
            loss = total_loss(terms)
            scaler.scale(loss * piece.weight).backward()  # type: ignore[no-untyped-call]
            for name, value in {**terms, "loss": loss}.items():
                sums[name] = sums.get(name, 0.0) + float(value.detach()) * piece.weight
    team.add_gradients(network)
    return dict(zip(sums, team.sums(list(sums.values())), strict=True))


@contextlib.contextmanager
def _within_memory() -> Iterator[None]:
    """Say what to do when the memory of a GPU does not suffice."""
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise IncompleteError(
            "The GPU has too little memory for a step; train in another folder with the clean view first, with more "
            "pieces per batch (accumulate), or at a smaller size."
        ) from error


def _losses(
    network: RobustCodLite, batch: Batch, settings: Settings, at: torch.device, precision: torch.dtype
) -> Iterator[dict[str, Tensor]]:
    """Yield terms of the loss, to be worked back before the next ones are asked for.

    All at once, or those of the clean view first: its graph is gone when the corrupted view is computed.
    """
    masks = torch.from_numpy(batch.masks).to(at)[:, None].float()
    clean, error = _predict(network, batch.clean, at, precision)
    terms = {"clean": segmentation_loss(clean, masks), "boundary": boundary_loss(clean, masks)}
    if error is not None:
        terms["uncertainty"] = uncertainty_loss(error, clean, masks)
    if settings.has("augmentation"):
        if settings.clean_view_first:
            yield terms
            terms, clean = {}, clean.detach()
        corrupted, _ = _predict(network, batch.corrupted, at, precision)
        terms["corrupted"] = segmentation_loss(corrupted, masks)
        if error is not None:
            terms["consistency"] = consistency_loss(clean, corrupted, error)
    yield terms


def _predict(
    network: RobustCodLite, images: Any, at: torch.device, precision: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """Return the logits of uint8 N×H×W×3 images, in float32."""
    pixels = torch.from_numpy(images).to(at, non_blocking=True).permute(0, 3, 1, 2).float() / 255
    mean, std = (torch.tensor(values, device=at)[:, None, None] for values in (MEAN, STD))
    with torch.autocast(at.type, precision, enabled=precision is not torch.float32):
        mask_logits, error_logits = network((pixels - mean) / std)
    return mask_logits.float(), None if error_logits is None else error_logits.float()


def _precision(settings: Settings, at: torch.device) -> torch.dtype:
    if settings.precision != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[settings.precision]
    if at.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16


@torch.no_grad()
def _validate(
    network: RobustCodLite,
    dataset: MaskDataset,
    settings: Settings,
    team: Team,
    precision: torch.dtype,
    workers: int,
) -> float:
    """Return the mean over images of the Dice of p > 0.5, at the training size; each process looks at some of them."""
    network.eval()
    scores: list[float] = []
    load = partial(_load_clean, dataset, settings.size)
    mine = dataset.items[team.rank :: team.size]
    for batch in batches(in_groups(mine, settings.batch), load, workers=workers):
        logits, _ = _predict(network, batch.clean, team.device, precision)
        if not bool(logits.isfinite().all()):
            scores.append(math.nan)
            break
        found = (logits[:, 0] > 0).cpu().numpy()
        both = (found & batch.masks).sum(axis=(1, 2))
        total = found.sum(axis=(1, 2)) + batch.masks.sum(axis=(1, 2))
        scores += [2 * b / t if t else 1.0 for b, t in zip(both.tolist(), total.tolist(), strict=True)]
    total_of_all, count = team.sums([sum(scores), len(scores)])
    return total_of_all / count


def _load_clean(dataset: MaskDataset, size: int, item: Item) -> Views:
    return clean_view(dataset.load(item), size=size)


def _diverged(out: Path, step: int, epoch: int) -> IncompleteError:
    kept = f"the best of epochs 1 to {epoch} is kept in {out / BEST}" if epoch else "no epoch was finished"
    return IncompleteError(
        f"The loss is not a number at step {step + 1} (epoch {epoch + 1}); {kept}. Train again with a smaller learning "
        "rate, or with precision float32, in another folder."
    )


def _save(
    path: Path,
    network: RobustCodLite,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    history: Sequence[Row],
) -> None:
    """Write what training continues from: one file, so that its parts are of one epoch."""
    safetensors = import_extra("safetensors.torch", "torch")
    tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in state.items()}
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    about = {"history": json.dumps(list(history)), "scaler": json.dumps(scaler.state_dict())}
    with atomic_path(path, durable=True) as temporary:
        temporary.write_bytes(safetensors.save(tensors, about))


def _resume(
    path: Path, network: RobustCodLite, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler, team: Team
) -> list[Row]:
    """Bring everything to where `_save` left it; return the rows of the epochs that are done."""
    there = path.exists()
    if team.sums([there]) not in ([0], [team.size]):
        raise InputError(f"{path}: is not seen by all processes; all of them need the same folder for --out.")
    if not there:
        return []
    safetensors = import_extra("safetensors", "torch")
    try:
        with safetensors.safe_open(path, "pt") as file:
            about = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        history: list[Row] = json.loads(about["history"])
    except Exception as error:
        raise InputError(f"{path}: is damaged ({told(error)}); delete it to train from the start.") from error
    state: dict[int, dict[str, Tensor]] = {}
    weights: dict[str, Tensor] = {}
    for name, value in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "network":
            weights[rest] = value
        else:
            index, _, rest = rest.partition(".")
            state.setdefault(int(index), {})[rest] = value
    if not path.with_name(BEST).exists():
        raise InputError(f"{path.with_name(BEST)}: is gone; put it back, or delete {path} to train from the start.")
    load_weights(network, weights, str(path))
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    scaler.load_state_dict(json.loads(about["scaler"]))
    return history


def _claim(out: Path, plan: dict[str, Any], team: Team) -> None:
    """Make `out` the folder of this training, or check that it is; the first process does so before the others."""
    if not team.leads:
        team.wait()
    if out.is_file():
        raise InputError(f"{out} is a file; --out names a folder.")
    file = out / PLAN
    if file.exists():
        try:
            before = json.loads(file.read_text("utf-8"))
            # what came later had its default
            before = {"processes": 1, **before, "settings": Settings.from_dict(before["settings"]).to_dict()}
            before, now = ({**p, **p["settings"]} for p in (before, plan))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{file}: is not the {PLAN} of a training ({told(error)}).") from error
        differing = [
            f"{key}: {before.get(key)} there, {now[key]} now"
            for key in now
            if key != "settings" and before.get(key) != now[key]
        ]
        if differing:
            raise PlanChangedError(
                f"{out} holds another training ({'; '.join(differing)}). Give the command it was made with, or "
                "another folder for --out."
            )
    elif not team.leads:
        raise InputError(f"{file}: is not seen by process {team.rank}; all of them need the same folder for --out.")
    elif out.exists() and any(path.suffix != ".tmp" for path in out.iterdir()):
        raise InputError(f"{out} is not empty and not a training; name a new folder for --out.")
    if team.leads:
        discard_leftovers(out)
        write_atomic(file, (json.dumps(plan, indent=1, ensure_ascii=False) + "\n").encode())
        team.wait()


def _draw_curves(out: Path, history: Sequence[Row]) -> None:
    """Write the curves as CSV, and the last epoch's points for TensorBoard where it is installed."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(history[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    write_atomic(out / CURVES, text.getvalue().encode())
    if find_spec("tensorboard"):
        from torch.utils.tensorboard import SummaryWriter

        with storing(out / "tensorboard"), contextlib.closing(SummaryWriter(str(out / "tensorboard"))) as board:
            for name, value in history[-1].items():
                board.add_scalar(name, value, int(history[-1]["epoch"]))
