"""Commands about RobustCODLite: train, ablate; and predict, with any segmenter."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError, ModelError
from .shell import (
    PROCESSORS,
    TRAINING,
    Json,
    NonCam,
    Quiet,
    Seed,
    Unpaired,
    app,
    command,
    print_failed,
    read_names,
    say,
)

if TYPE_CHECKING:
    from ..datasets.masks import MaskDataset
    from ..training.ablation import Score
    from ..training.loop import Outcome
    from ..training.settings import Settings

__all__ = ["ablate", "predict", "train"]

TrainingData = Annotated[str, typer.Option("--data", help="A folder of images and masks, or a .csv/.jsonl manifest.")]
Validation = Annotated[
    str | None,
    typer.Option(help="A set like --data, to choose the best epoch by.", show_default="a tenth of --data held out"),
]
TrainSplit = Annotated[str, typer.Option("--split", help="Which split of --data, where it has several.")]
Epochs = Annotated[int, typer.Option(help="Passes over the images.")]
BatchSize = Annotated[int, typer.Option("--batch", help="Images per step, of all processes together.")]
Size = Annotated[int, typer.Option(help="Side of the square that images are brought to, in pixels.")]
Rate = Annotated[float, typer.Option("--learning-rate", help="At the start; it falls to 0 along half a cosine.")]
Decay = Annotated[float, typer.Option("--weight-decay", help="Of AdamW.")]
Encoder = Annotated[str, typer.Option(help="efficientnet-b0 (extra transformers) or efficientnet-lite0.")]
EncoderWeights = Annotated[
    str,
    typer.Option(help="To start the encoder from: imagenet, a path, a package, OWNER/NAME, or none."),
]
Precision = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
Accumulate = Annotated[int, typer.Option(help="Work through a batch in so many pieces, for less memory.")]
CleanFirst = Annotated[
    bool,
    typer.Option(
        "--clean-view-first", help="Forget the clean view's graph before the corrupted view: half the memory."
    ),
]
Threads = Annotated[
    int, typer.Option("--workers", min=1, help="Threads that load and degrade images; results do not depend on it.")
]
Device = Annotated[str | None, typer.Option(help="As torch names it.", show_default="a GPU if there is one")]


@command(app, "train", TRAINING)
def train(
    data: TrainingData,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder of the training; the same command continues it.")
    ],
    validation: Validation = None,
    split: TrainSplit = "train",
    without: Annotated[
        list[str] | None, typer.Option(help="Leave out consistency, frequency, augmentation; with commas or repeated.")
    ] = None,
    epochs: Epochs = 50,
    batch: BatchSize = 8,
    size: Size = 384,
    learning_rate: Rate = 1e-4,
    weight_decay: Decay = 0.05,
    encoder: Encoder = "efficientnet-b0",
    encoder_weights: EncoderWeights = "imagenet",
    precision: Precision = "auto",
    accumulate: Accumulate = 1,
    clean_view_first: CleanFirst = False,
    weights: Annotated[
        Path | None, typer.Option(help="CSV with image,weight: draw images by weight, with replacement.")
    ] = None,
    curriculum: Annotated[
        Path | None, typer.Option(help="CSV with image,rank: show the easiest images first (rank 1).")
    ] = None,
    curriculum_start: Annotated[
        float, typer.Option(help="Share of the images that the first epoch of a curriculum shows.")
    ] = 0.4,
    curriculum_until: Annotated[
        float, typer.Option(help="Share of the epochs after which a curriculum shows all images.")
    ] = 0.5,
    workers: Threads = PROCESSORS,
    device: Device = None,
    seed: Seed = 0,
    include_noncam: NonCam = False,
    allow_unpaired: Unpaired = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Train RobustCODLite on images with masks; the best weights by validation are for robust-cod-lite:PATH.

    The same command continues an interrupted training after its last whole epoch. Several GPUs share every batch with
    torchrun --nproc-per-node N -m crypsis train …
    """
    from ..training.settings import Settings

    leads = not _several_processes() or os.environ.get("RANK") == "0"
    quiet = quiet or not leads
    settings = Settings(
        epochs=epochs, batch=batch, size=size, learning_rate=learning_rate, weight_decay=weight_decay, seed=seed,
        without=tuple(read_names(without)), encoder=encoder, precision=precision, accumulate=accumulate,
        clean_view_first=clean_view_first, curriculum_start=curriculum_start, curriculum_until=curriculum_until,
    )  # fmt: skip
    sets = _open(data, validation, split, include_noncam=include_noncam, allow_unpaired=allow_unpaired, quiet=quiet)
    outcome = _trained(
        sets, out, settings, encoder_weights, workers, device, weights=weights, curriculum=curriculum, quiet=quiet
    )
    if not leads:
        return 0
    if as_json:
        print(json.dumps({"best": str(outcome.best), "epoch": outcome.epoch, "dice": outcome.dice}))
    else:
        print(f"{outcome.best}: Dice {outcome.dice:.3f} on the images held out, after epoch {outcome.epoch}")
    say(f"Use it as --model robust-cod-lite:{outcome.best}", quiet=quiet)
    return 0


@command(app, "ablate", TRAINING)
def ablate(
    data: TrainingData,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of all trainings; the same command continues.")],
    test: Annotated[
        str, typer.Option(help="Images with masks to score on, clean and under COD10K-C: 'demo' or a set.")
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Train each configuration with so many seeds.")] = 3,
    configuration: Annotated[
        list[str] | None,
        typer.Option(
            help="full, no-consistency, no-frequency, no-augmentation, plain; with commas.", show_default="all"
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score on only this many test images.")] = None,
    validation: Validation = None,
    split: TrainSplit = "train",
    epochs: Epochs = 50,
    batch: BatchSize = 8,
    size: Size = 384,
    learning_rate: Rate = 1e-4,
    weight_decay: Decay = 0.05,
    encoder: Encoder = "efficientnet-b0",
    encoder_weights: EncoderWeights = "imagenet",
    precision: Precision = "auto",
    accumulate: Accumulate = 1,
    clean_view_first: CleanFirst = False,
    workers: Threads = PROCESSORS,
    device: Device = None,
    seed: Annotated[int, typer.Option(help="The first of the seeds.")] = 0,
    include_noncam: NonCam = False,
    allow_unpaired: Unpaired = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Train the five configurations of the ablation over several seeds, and print the paper's Table 5.

    Each training and each scoring continues where it was interrupted.
    """
    from ..errors import UnknownNameError
    from ..training.ablation import CONFIGURATIONS, ablation_rows, ablation_table
    from ..training.settings import Settings

    if _several_processes():
        raise InputError(
            "crypsis ablate works in one process; start it without torchrun, or train each configuration with torchrun "
            "--nproc-per-node N -m crypsis train --without …"
        )
    names = read_names(configuration) or list(CONFIGURATIONS)
    for name in names:
        if name not in CONFIGURATIONS:
            raise UnknownNameError.among("configuration", name, CONFIGURATIONS)
    sets = _open(data, validation, split, include_noncam=include_noncam, allow_unpaired=allow_unpaired, quiet=quiet)
    if shared := _shared(sets, test):
        say(f"warning: {shared:,} images of --test are trained on; scores on them say little of others.", quiet=quiet)
    scores: dict[str, list[Score]] = {name: [] for name in names}
    for number in range(seed, seed + seeds):
        for name in names:
            folder = out / f"{name}-{number}"
            say(f"{name}, seed {number}:", quiet=quiet)
            settings = Settings(
                epochs=epochs, batch=batch, size=size, learning_rate=learning_rate, weight_decay=weight_decay,
                seed=number, without=CONFIGURATIONS[name], encoder=encoder, precision=precision,
                accumulate=accumulate, clean_view_first=clean_view_first,
            )  # fmt: skip
            outcome = _trained(sets, folder / "training", settings, encoder_weights, workers, device, quiet=quiet)
            scores[name].append(_scored(outcome.best, test, folder / "cod10k-c", limit, workers, quiet=quiet))
    print(json.dumps(ablation_rows(scores)) if as_json else ablation_table(scores), end="\n" if as_json else "")
    return 0


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block: in the import of torch it would end in a crash of C++."""
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def _several_processes() -> bool:
    """Tell whether torchrun started this process among others, of which the first one alone talks."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


def _shared(sets: tuple[MaskDataset, MaskDataset | None], test: str) -> int:
    """Return how many images of a test set are also trained on, or chosen the epoch by."""
    from ..datasets.masks import open_masks

    used = {item.image.resolve() for part in sets if part for item in part.items}
    return sum(item.image.resolve() in used for item in open_masks(test).items)


def _open(
    data: str, validation: str | None, split: str, *, include_noncam: bool, allow_unpaired: bool, quiet: bool
) -> tuple[MaskDataset, MaskDataset | None]:
    """Return the images to train on, and those held out if they are a set of their own."""
    from ..datasets.masks import open_masks

    training = open_masks(data, split=split, include_noncam=include_noncam, allow_unpaired=allow_unpaired)
    held_out = None
    if validation is not None:
        held_out = open_masks(validation, split="val", include_noncam=include_noncam, allow_unpaired=allow_unpaired)
    for warning in (*training.warnings, *(held_out.warnings if held_out else ())):
        say(f"warning: {warning}", quiet=quiet)
    return training, held_out


def _trained(
    sets: tuple[MaskDataset, MaskDataset | None],
    out: Path,
    settings: Settings,
    encoder_weights: str,
    workers: int,
    device: str | None,
    *,
    weights: Path | None = None,
    curriculum: Path | None = None,
    quiet: bool,
) -> Outcome:
    """Do what is left of a training."""
    from ..models.foreign import import_extra

    with _interrupted_later():
        import_extra("torch", "torch")
        from ..training.loop import train as train_network
    from .progress import Reporter

    with Reporter("steps", quiet=quiet) as reporter:
        return train_network(
            sets[0], out, settings, validation=sets[1],
            encoder_weights=None if encoder_weights == "none" else encoder_weights, weights=weights,
            curriculum=curriculum, workers=workers, device=device, progress=reporter.update,
        )  # fmt: skip


def _scored(best: Path, test: str, out: Path, limit: int | None, workers: int, *, quiet: bool) -> Score:
    """Return how weights do on COD10K-C; a run that is there is not done again."""
    from ..bench.finish import finish
    from ..bench.plan import plan_cod10k_c
    from ..bench.run import run_masks
    from ..report.comparison import compare_runs
    from ..training.ablation import Score
    from .progress import Reporter

    plan = plan_cod10k_c(test, [f"robust-cod-lite:{best}"], limit=limit)
    with Reporter("images", quiet=quiet) as reporter:
        outcome = run_masks(plan, out, workers=workers, progress=reporter.follow)
    if outcome.errors or outcome.failures:
        raise ModelError(f"{out}: not all images could be scored; crypsis bench cod10k-c with {best} says why.")
    (result,) = compare_runs([finish(out, plan)]).results
    clean, corrupted = result.value("conditions", "dice", "clean"), result.value("corrupted", "dice")
    if clean is None or corrupted is None:
        raise ModelError(f"{out}: Dice is undefined; are the masks of {test} empty?")
    return Score(clean, corrupted)


@command(app, "predict", TRAINING)
def predict(
    image: Annotated[
        list[Path],
        typer.Argument(metavar="IMAGE...", help="Images, folders of them, or 'demo' (with its truth)."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the maps; files there are replaced.")],
    model: Annotated[
        str, typer.Option(help="robust-cod-lite[:PATH] | saliency | onnx:PATH[,size=…] | python:module:function.")
    ] = "robust-cod-lite",
    panel: Annotated[
        bool, typer.Option("--panel", help="Also image, truth, probability and uncertainty side by side.")
    ] = False,
    truth: Annotated[
        Path | None,
        typer.Option(help="Folder of masks named like the images: for panels, and to judge the uncertainty by."),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Write what a segmenter says of images: gray PNG maps, 255 is certain, at each image's own size.

    In probability/ and, where the model tells it, uncertainty/; with --panel, in panels/ as in the paper's Figure 1.
    Where the truth is known too, uncertainty.csv and a table say how well the uncertainty tells the error, beside
    p(1 − p), which costs nothing.
    """
    from ..io import read_image, read_mask, write_atomic, write_image
    from ..metrics.uncertainty import UncertaintyScores, uncertainty_scores
    from ..models.segmenter import Segmenter, load_model
    from ..report.panel import draw_panel, gray_levels
    from ..report.uncertainty_table import uncertainty_csv, uncertainty_table
    from .progress import Reporter

    images, masks = _images(image)
    if truth is not None:
        masks |= _masks(truth, images)
    segmenter = load_model(model)
    if not isinstance(segmenter, Segmenter):
        raise InputError(f"--model {model} holds maps that are made already; name a model that makes them.")
    failures: list[tuple[str, str]] = []
    judged: dict[str, UncertaintyScores] = {}
    with Reporter("images", quiet=quiet) as reporter:
        for done, (key, path) in enumerate(images.items(), 1):
            try:
                pixels = read_image(path)
                mask = read_mask(masks[key]).mask if key in masks else None
                if mask is not None and mask.shape != pixels.shape[:2]:
                    raise InputError(f"{masks[key]}: the mask has another size than {path}; repair one of them.")
                (prediction,) = segmenter.predict([pixels])
                write_image(out / "probability" / f"{key}.png", gray_levels(prediction.probability))
                if prediction.uncertainty is not None:
                    write_image(out / "uncertainty" / f"{key}.png", gray_levels(prediction.uncertainty))
                    if mask is not None:
                        judged[key] = uncertainty_scores(prediction.probability, mask, prediction.uncertainty)
                if panel:
                    write_image(out / "panels" / f"{key}.png", draw_panel(pixels, prediction, mask))
            except InputError as error:
                failures.append((str(path), str(error)))
            reporter.update(done, len(images), failed=len(failures))
    print_failed(failures)
    if judged:
        write_atomic(out / "uncertainty.csv", uncertainty_csv(judged).encode())
        print(uncertainty_table(judged).markdown(), end="")
    elif truth is not None and not failures:
        say(f"{segmenter.name} tells no uncertainty, so that there is nothing to judge.", quiet=quiet)
    return 3 if failures else 0


def _images(paths: Sequence[Path]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Return the image files that are meant, by the name their maps will have, and the masks that are known."""
    from ..datasets.folder import list_images, missing_path
    from ..datasets.masks import open_masks

    found: dict[str, Path] = {}
    masks: dict[str, Path] = {}
    for path in paths:
        if str(path) == "demo":
            items = open_masks("demo").items
            listed = {item.key: item.image for item in items}
            masks |= {item.key: item.mask for item in items}
        else:
            if not path.exists():
                raise missing_path(path)
            listed = list_images(path)[0] if path.is_dir() else {path.stem: path}
        if not listed:
            raise InputError(f"{path}: holds no images.")
        for key, file in listed.items():
            if found.get(key) == file:
                raise InputError(f"{file} was named twice; name each image once.")
            if key in found:
                raise InputError(f"{found[key]} and {file} would both become {key}.png; give them one after the other.")
            found[key] = file
    return found, masks


def _masks(folder: Path, images: dict[str, Path]) -> dict[str, Path]:
    from ..datasets.folder import list_images

    masks = list_images(folder)[0]
    missing = [key for key in images if key not in masks]
    if missing:
        raise InputError(f"{folder}: holds no mask for {missing[0]}; name the masks like the images.")
    return masks
