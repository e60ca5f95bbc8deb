"""Commands about camouflage: score."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .agreement import read_all_votes
from .shell import (
    CAMOUFLAGE,
    PROCESSORS,
    Data,
    Json,
    Limit,
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
    read_numbers,
    refuse_bugs,
    say,
    say_time,
)

if TYPE_CHECKING:
    from ..bench.score import ScorePlan
    from ..bench.sweep import SweepPlan
    from ..bench.work import Labor

_SEARCH = "Search for SeamCam's thresholds by people's votes (--sweep)"


@command(app, "score", CAMOUFLAGE)
def score(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; the same command continues it.")],
    species: Annotated[
        str | None, typer.Option(help="What all images show.", show_default="what the data set says of each")
    ] = None,
    observer: Annotated[
        str,
        typer.Option(help="Who looks: embedded; grounding-dino, owlv2 or sam3, each [:PATH_OR_ID]; or proposals:DIR."),
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
    limit: Limit = None,
    workers: Workers = PROCESSORS,
    shard: ShardOption = "1/1",
    max_minutes: MaxMinutes = None,
    split: Split = "test",
    on_size_mismatch: Annotated[str, typer.Option(help="error, or resize-mask, when sizes differ.")] = "error",
    include_noncam: NonCam = False,
    allow_unpaired: Unpaired = False,
    quiet: Quiet = False,
    as_json: Json = False,
    sweep: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=_SEARCH,
            help="votes.csv of a study of these images, or a folder of such files: which τα, τβ and K agree best?",
        ),
    ] = None,
    sweep_pairs: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_SEARCH,
            help="How many pairs to choose them on; the others evaluate.",
            show_default="100",
        ),
    ] = None,
    sweep_seed: Annotated[
        int | None, typer.Option(rich_help_panel=_SEARCH, help="Seed of the draw of these pairs.", show_default="0")
    ] = None,
    sweep_alphas: Annotated[
        str | None,
        typer.Option(rich_help_panel=_SEARCH, help="Values of τα, with commas.", show_default="0 to 0.9 by 0.1"),
    ] = None,
    sweep_betas: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_SEARCH,
            help="Values of τβ, with commas.",
            show_default="0.05 to 0.4 by 0.05, 0.5, 0.6",
        ),
    ] = None,
    sweep_top_k: Annotated[
        int | None, typer.Option(min=7, max=20, rich_help_panel=_SEARCH, help="Largest K.", show_default="12")
    ] = None,
    sweep_apart: Annotated[
        bool,
        typer.Option(
            "--sweep-apart",
            rich_help_panel=_SEARCH,
            help="Do not evaluate on pairs that share an image with one of these pairs either.",
        ),
    ] = False,
    minimum_votes: Annotated[
        int | None,
        typer.Option(rich_help_panel=_SEARCH, help="Fewest votes of a pair that counts.", show_default="3"),
    ] = None,
    catch_share: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=_SEARCH,
            help="Least share of a participant's catch trials that must be right.",
            show_default="1.0",
        ),
    ] = None,
) -> int:
    """Score how well hidden the animals of a data set are: scores.csv, and a page that ranks the images.

    With --sweep, it also says which thresholds agree best with people, and how well on pairs they were not chosen on.

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
    begun = time.monotonic()
    search = _plan_search(
        plan, sweep, apart=sweep_apart, pairs=sweep_pairs, seed=sweep_seed, alphas=sweep_alphas, betas=sweep_betas,
        top_k=sweep_top_k, minimum_votes=minimum_votes, catch_share=catch_share,
    )  # fmt: skip
    for warning in plan.warnings:
        say(f"warning: {warning}", quiet=quiet)
    with Reporter("images", quiet=quiet) as reporter:
        outcome = score_images(plan, out, labor=labor, progress=reporter.follow)
    refuse_bugs(outcome, out, "Crypsis or an observer")
    print_failed(outcome.failures, most=20, rest="the report")
    if is_unfinished(outcome, labor, out, len(plan.units()), quiet=quiet):
        return 3 if outcome.left or outcome.failures else 0
    summary = finish_scoring(plan, out, outcome.failures)
    write_atomic(out / "scores.csv", scores_csv(out).encode())
    write_atomic(out / "report.html", build_score_report(out).encode())
    say_time(outcome, outcome.images, "images", quiet=quiet)
    if not as_json:
        overall, by_species, _ = score_tables(out)
        print(f"{replace(overall, notes=()).markdown()}\n{by_species.markdown()}", end="")
    say(f"\nScores: {out / 'scores.csv'}\nReport: {out / 'report.html'}", quiet=quiet)
    code = 3 if outcome.failures else 0
    if search:
        left = None if max_minutes is None else max(1e-9, max_minutes - (time.monotonic() - begun) / 60)
        found = _search(search, out, outcome.failures, Labor(workers, minutes=left), quiet=quiet, as_json=as_json)
        if found is None:
            return 3
        summary["sweep"] = found
        code = 3 if found["images"]["failed"] else code
    if as_json:
        print(json.dumps(summary, indent=1, ensure_ascii=False))
    return code


def _plan_search(
    plan: ScorePlan,
    votes: Path | None,
    *,
    apart: bool,
    pairs: int | None,
    seed: int | None,
    alphas: str | None,
    betas: str | None,
    top_k: int | None,
    minimum_votes: int | None,
    catch_share: float | None,
) -> SweepPlan | None:
    """Return the search that is asked for, all of which is checked before any image is scored."""
    from ..bench.sweep import TAU_ALPHAS, TAU_BETAS, plan_sweep
    from ..camouflage.agreement import judge

    if votes is None:
        given = {
            "--sweep-pairs": pairs, "--sweep-seed": seed, "--sweep-alphas": alphas, "--sweep-betas": betas,
            "--sweep-top-k": top_k, "--sweep-apart": apart or None, "--minimum-votes": minimum_votes,
            "--catch-share": catch_share,
        }  # fmt: skip
        for option, value in given.items():
            if value is not None:
                raise InputError(f"{option} is for a search; give --sweep votes.csv too.")
        return None
    judgments = judge(
        read_all_votes(votes),
        minimum_votes=3 if minimum_votes is None else minimum_votes,
        catch_share=1.0 if catch_share is None else catch_share,
        species={item.key: item.species for item in plan.dataset.items if item.species},
    )
    return plan_sweep(
        plan,
        judgments,
        votes=votes.name,
        tau_alphas=read_numbers(alphas, "--sweep-alphas") if alphas else TAU_ALPHAS,
        tau_betas=read_numbers(betas, "--sweep-betas") if betas else TAU_BETAS,
        top_k=12 if top_k is None else top_k,
        pairs=100 if pairs is None else pairs,
        seed=seed or 0,
        disjoint_images=apart,
    )


def _search(
    plan: SweepPlan,
    out: Path,
    failures: Sequence[tuple[str, str]],
    labor: Labor,
    *,
    quiet: bool,
    as_json: bool,
) -> dict[str, Any] | None:
    """Search on a run whose images are scored; return what was found, or None where some is left."""
    from ..bench.score import PROPOSALS, read_rows
    from ..bench.sweep import finish_sweep, sweep_images
    from ..io import write_atomic
    from ..report.sweep_page import build_sweep_report, sweep_lines, sweep_tables
    from .progress import Reporter

    rows = read_rows(plan.run, out)
    with Reporter("images at all thresholds", quiet=quiet) as reporter:
        outcome = sweep_images(plan, out, rows, labor=labor, progress=reporter.follow)
    refuse_bugs(outcome, out)
    print_failed(outcome.failures, most=20, rest="sweep.json")
    if outcome.left:
        say(
            f"{outcome.left:,} of {outcome.units:,} images are left to search; the same command continues.", quiet=quiet
        )
        return None
    found = finish_sweep(plan, out, rows, [*failures, *outcome.failures])
    write_atomic(out / "sweep.html", build_sweep_report(out).encode())
    if not as_json:
        tables = "\n".join(replace(table, notes=()).markdown() for table in sweep_tables(out))
        print("\n" + "\n".join((tables, *sweep_lines(out))))
    say_time(outcome, outcome.images, "images at all thresholds", quiet=quiet)
    chosen, observer = found["thresholds"]["chosen"], str(plan.run.observer)
    given = {
        "--data": plan.run.data,
        "--observer": observer if observer.startswith("proposals:") else f"proposals:{out / PROPOSALS}",
        "--tau-alpha": f"{chosen['tau_alpha']:g}",
        "--tau-beta": f"{chosen['tau_beta']:g}",
        "--top-k": str(chosen["top_k"]),
        "--out": "NEW",
    }
    shown = " ".join(f"{option} {shlex.quote(value)}" for option, value in given.items())
    say(
        f"\nSearch: {out / 'sweep.html'}\nTo score with these thresholds, nothing proposed anew: crypsis score {shown}",
        quiet=quiet,
    )
    return found
