"""Commands about detection: bench coco-degradation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .runs import print_tables
from .shell import (
    PROCESSORS,
    Address,
    Engine,
    GpusPerWorker,
    Json,
    MaxMinutes,
    Quiet,
    Seed,
    ShardOption,
    Truth,
    Workers,
    bench_app,
    command,
    is_unfinished,
    print_failed,
    read_labor,
    read_names,
    read_severities,
    refuse_bugs,
    say,
    say_time,
)

if TYPE_CHECKING:
    from ..bench.detection_plan import DetectionPlan
    from ..bench.work import Labor

_WORTH_A_TRIAL = 5_000
"""Images × conditions from which on a run begins with an estimate of its time."""


@command(bench_app, "coco-degradation")
def bench_coco_degradation(
    images: Annotated[str, typer.Option(help="'demo', the folder of the images, or one with YOLO or VOC labels.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; the same command continues it.")],
    model: Annotated[
        list[str],
        typer.Option(
            help="nanodet | onnx:PATH | ultralytics:PATH | torchvision:NAME | transformers:PATH | predictions:DIR | "
            "python:module:function, each with options (,score=…); may be repeated; every one takes ,name=LABEL."
        ),
    ],
    annotations: Annotated[
        str | None, typer.Option(help="COCO JSON whose file names start from --images, or a folder of label files.")
    ] = None,
    family: Annotated[
        list[str] | None, typer.Option(help="All entries of this family; may be repeated.", show_default="the paper's")
    ] = None,
    entries: Annotated[list[str] | None, typer.Option(help="Names of entries, with commas or repeated.")] = None,
    severity: Annotated[str, typer.Option(help="3, or 1-5, or 1,3,5.")] = "1-5",
    labels: Annotated[
        str, typer.Option(help="Classes are categories of the same names, by index, or agnostic: all are one.")
    ] = "names",
    keep: Annotated[
        list[str] | None, typer.Option(help="Only these classes count, with commas.", show_default="all")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many images, evenly spaced (recorded).")] = None,
    strength_images: Annotated[int, typer.Option(min=0, help="On how many images strength is measured.")] = 50,
    workers: Workers = PROCESSORS,
    engine: Engine = "local",
    address: Address = None,
    gpus_per_worker: GpusPerWorker = 0.0,
    shard: ShardOption = "1/1",
    max_minutes: MaxMinutes = None,
    evaluator: Annotated[str, typer.Option(help="hotcoco, or pycocotools (extra).")] = "hotcoco",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how long it takes and how much disk.")] = False,
    seed: Seed = 0,
    truth: Truth = "published",
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Detectors under 59 degradations × 5 severities (COCO-Degradation): run, score, tables and a report."""
    from ..bench.detection_estimate import estimate_detection
    from ..bench.detection_plan import plan_coco_degradation

    plan = plan_coco_degradation(
        images, annotations, model, families=family or [], entries=read_names(entries),
        severities=read_severities(severity), seed=seed, limit=limit, labels=labels, keep=read_names(keep),
        truth=truth, strength_images=strength_images,
    )  # fmt: skip
    labor = read_labor(workers, engine, address, gpus_per_worker, shard, max_minutes)
    if dry_run:
        print(estimate_detection(plan).text(workers))
        return 0
    return detect(plan, out, labor, evaluator=evaluator, quiet=quiet, as_json=as_json)


def detect(
    plan: DetectionPlan, out: Path, labor: Labor, *, evaluator: str = "hotcoco", quiet: bool, as_json: bool = False
) -> int:
    """Run a plan; when all of it is there, score it, make the report, and print the headline tables."""
    from ..bench.detect import run_detection
    from ..bench.detection_estimate import estimate_detection
    from ..bench.detection_finish import finish_detection
    from ..io import write_atomic
    from ..report.detection_page import build_detection_report
    from .progress import Reporter

    for warning in plan.warnings:
        say(f"warning: {warning}", quiet=quiet)
    if len(plan.dataset) * len(plan.conditions) >= _WORTH_A_TRIAL and not quiet and not out.exists():
        hours = estimate_detection(plan).hours(labor.workers) / labor.shard.of
        say(f"about {60 * hours:.0f} minutes, by a short trial; --dry-run says more")
    with Reporter("images", quiet=quiet) as reporter:
        outcome = run_detection(plan, out, labor=labor, progress=reporter.follow)
    refuse_bugs(outcome, out, "Crypsis or a detector")
    say_time(outcome, outcome.images * len(plan.conditions), "images under a condition", quiet=quiet)
    print_failed(outcome.failures, most=20, rest="the report")
    if is_unfinished(outcome, labor, out, len(plan.units()), quiet=quiet):
        return 3 if outcome.left or outcome.failures else 0
    run = finish_detection(out, plan, evaluator=evaluator)
    write_atomic(out / "report.html", build_detection_report([run]).encode())
    print_tables([out], "markdown", as_json=as_json, headline=True)
    say(f"\nReport: {out / 'report.html'}", quiet=quiet)
    return 3 if outcome.failures else 0
