"""Commands about what is hard: curriculum."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .shell import CAMOUFLAGE, Quiet, app, command, say

__all__ = ["curriculum"]


@command(app, "curriculum", CAMOUFLAGE)
def curriculum(
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV file to write.")],
    scores: Annotated[
        Path | None,
        typer.Argument(help="Scores of camouflage: a CSV with a column image, or a run of crypsis score."),
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="Which column of SCORES.", show_default="the first one of scores")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Instead of SCORES: a run of segmenters, for what one of them gets wrong.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="With --run: which model.", show_default="the only one")] = None,
    on: Annotated[
        str, typer.Option(help="With --run: its loss, 1 − Dice, on corrupted images, the mean, or on clean.")
    ] = "corrupted",
    strength: Annotated[
        float, typer.Option(help="The hardest image weighs this plus one times as much as the easiest.")
    ] = 2.0,
    quiet: Quiet = False,
) -> None:
    """Order images from easy to hard, and weigh hard ones more: a CSV for crypsis train --curriculum and --weights.

    Columns: image; the score, or loss-clean or loss-corrupted; rank, 1 being the easiest; and weight, whose mean is 1.
    With q from 0 to 1 for how far up the order an image stands, its weight is (1+strength·q)/(1+strength/2).
    """
    from ..camouflage.curriculum import curriculum_csv, make_curriculum
    from ..io import write_atomic

    if (scores is None) == (run is None):
        raise InputError("Name a file of scores, or a run of segmenters with --run; one of the two.")
    if scores is not None:
        if model is not None:
            raise InputError("--model is for --run.")
        name, difficulty = _of_scores(scores, score)
    else:
        assert run is not None
        if score is not None:
            raise InputError("--score is for a file of scores, not for --run.")
        name, difficulty = f"loss-{on}", _of_run(run, model, on)
    made = make_curriculum(difficulty, strength=strength)
    write_atomic(out, curriculum_csv(made, name).encode())
    shared = len(made.images) - sum(count == 1 for count in Counter(made.difficulty).values())
    ties = f"; {shared:,} share their {name} with another and stand in the order of their names" if shared else ""
    say(
        f"{out}: {len(made.images):,} images by {name}, from {made.images[0]} to {made.images[-1]}; weights "
        f"{made.weights[0]:.3f} to {made.weights[-1]:.3f}{ties}",
        quiet=quiet,
    )


def _of_scores(path: Path, score: str | None) -> tuple[str, dict[str, float]]:
    """Return a column of scores and its name; refuse one that lacks numbers."""
    from ..camouflage.vote_files import read_scores

    file = path / "scores.csv" if path.is_dir() else path
    table = read_scores(file, None if score is None else [score])
    name, values = next(iter(table.scores.items()))
    missing = [image for image in table.images if image not in values]
    if missing:
        raise InputError(
            f"{file}: {len(missing)} of {len(table.images)} images have no {name}, such as {missing[0]}; score them, "
            "or delete their lines."
        )
    return name, dict(values)


def _of_run(path: Path, model: str | None, on: str) -> dict[str, float]:
    """Return the losses of one model of a run."""
    from ..report.camouflage_results import image_losses
    from ..results import RunFolder
    from .runs import MASKS, kind_of_runs

    if (kind := kind_of_runs([path])) != MASKS:
        raise InputError(f"{path} holds {kind}; what a model gets wrong, image by image, is in {MASKS}.")
    run = RunFolder.open(path)
    if model is None and len(run.models) > 1:
        raise InputError(f"{path} has several models ({', '.join(run.models)}); choose one with --model.")
    return image_losses(run, model or run.models[0], on)
