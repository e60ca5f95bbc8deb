"""Commands about camouflage: score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .shell import (
    CAMOUFLAGE,
    PROCESSORS,
    Data,
    Json,
    MaxMinutes,
    NonCam,
    Quiet,
    ShardOption,
    Split,
    Unpaired,
    Workers,
    app,
    command,
    is_unfinished,
    print_failed,
    read_names,
    refuse_bugs,
    say,
    say_time,
)


@command(app, "score", CAMOUFLAGE)
def score(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; the same command continues it.")],
    species: Annotated[
        str | None, typer.Option(help="What all images show.", show_default="what the data set says of each")
    ] = None,
    observer: Annotated[
        str, typer.Option(help="Who looks: embedded[,segment=network|grabcut], or proposals:DIR.")
    ] = "embedded",
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            help="seamcam, gmm-ot, s_rf, camouflage-degree, with commas or repeated; the first one ranks.",
            show_default="seamcam",
        ),
    ] = None,
    tau_alpha: Annotated[float, typer.Option(help="SeamCam: least fit of a proposal to the species.")] = 0.5,
    tau_beta: Annotated[float, typer.Option(help="SeamCam: least confidence of a proposal.")] = 0.1,
    top_k: Annotated[int, typer.Option(help="SeamCam: how many proposals take part, 1 to 20.")] = 7,
    duplicate_iou: Annotated[
        float | None,
        typer.Option(help="SeamCam: drop proposals that overlap a better one by this much.", show_default="keep all"),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many images, for a trial (recorded).")] = None,
    workers: Workers = PROCESSORS,
    shard: ShardOption = "1/1",
    max_minutes: MaxMinutes = None,
    split: Split = "test",
    on_size_mismatch: Annotated[str, typer.Option(help="error, or resize-mask, when sizes differ.")] = "error",
    include_noncam: NonCam = False,
    allow_unpaired: Unpaired = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Score how well hidden the animals of a data set are: scores.csv, and a page that ranks the images.

    The embedded observer needs no download and is far weaker than that of SeamCam's paper: compare its scores with each
    other only.
    """
    from ..bench.score import SeamCamSettings, finish_scoring, plan_score, score_images
    from ..bench.work import Labor, Shard
    from ..io import write_atomic
    from ..report.score_page import build_score_report, score_tables, scores_csv
    from .progress import Reporter

    plan = plan_score(
        data, scores=read_names(scores) or ["seamcam"], species=species, observer=observer,
        settings=SeamCamSettings(tau_alpha=tau_alpha, tau_beta=tau_beta, top_k=top_k, duplicate_iou=duplicate_iou),
        split=split, limit=limit, on_size_mismatch=on_size_mismatch, include_noncam=include_noncam,
        allow_unpaired=allow_unpaired,
    )  # fmt: skip
    labor = Labor(workers, None, Shard.parse(shard), max_minutes)
    for warning in plan.warnings:
        say(f"warning: {warning}", quiet=quiet)
    with Reporter("images", quiet=quiet) as reporter:
        outcome = score_images(plan, out, labor=labor, progress=reporter.follow)
    refuse_bugs(outcome, out, "Crypsis or an observer")
    print_failed(outcome.failures, most=20, rest="the report")
    if is_unfinished(outcome, labor, out, len(plan.units()), quiet=quiet):
        return 3 if outcome.left or outcome.failures else 0
    finish_scoring(plan, out, outcome.failures)
    write_atomic(out / "scores.csv", scores_csv(out).encode())
    write_atomic(out / "report.html", build_score_report(out).encode())
    if as_json:
        print((out / "summary.json").read_text("utf-8"), end="")
    else:
        overall, by_species, _ = score_tables(out)
        print(f"{replace(overall, notes=()).markdown()}\n{by_species.markdown()}", end="")
    say(f"\nScores: {out / 'scores.csv'}\nReport: {out / 'report.html'}", quiet=quiet)
    say_time(outcome, outcome.images, "images", quiet=quiet)
    return 3 if outcome.failures else 0
