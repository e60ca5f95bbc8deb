"""Commands about benchmarks of segmenters: validate, bench cod10k-c."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .runs import print_tables
from .shell import (
    BENCHMARKS,
    PROCESSORS,
    Address,
    Data,
    Engine,
    GpusPerWorker,
    Json,
    Limit,
    MaxMinutes,
    NonCam,
    Quiet,
    Seed,
    ShardOption,
    Split,
    Truth,
    Unpaired,
    Workers,
    app,
    bench_app,
    command,
    is_unfinished,
    print_failed,
    read_labor,
    refuse_bugs,
    say,
)

if TYPE_CHECKING:
    from ..bench.plan import MaskPlan
    from ..bench.work import Labor


@command(app, "validate", BENCHMARKS)
def validate(
    data: Annotated[str, typer.Argument(help="'demo', a folder of images and masks, or a .csv/.jsonl manifest.")],
    annotations: Annotated[
        Path | None,
        typer.Option(help="Boxes instead of masks: a COCO .json file, or a folder of YOLO .txt or VOC .xml files."),
    ] = None,
    split: Split = "test",
    include_noncam: NonCam = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Decode every image of a data set with its masks or boxes, and print what is wrong, problem by problem."""
    from ..datasets.detection import open_detection
    from ..datasets.masks import open_masks
    from ..datasets.validation import DetectionReport, ValidationReport, validate_detection, validate_masks
    from .progress import Reporter

    report: DetectionReport | ValidationReport
    with Reporter("images", quiet=quiet) as reporter:
        if annotations is not None:
            report = validate_detection(open_detection(data, annotations), progress=reporter.update)
        else:
            masks = open_masks(data, split=split, include_noncam=include_noncam, allow_unpaired=True)
            report = validate_masks(masks, progress=reporter.update)
    if as_json:
        print(json.dumps(report.to_dict(), indent=1, ensure_ascii=False))
    else:
        print(report.text())
    return 0 if report.ok else 2


@command(bench_app, "cod10k-c")
def bench_cod10k_c(
    data: Data,
    model: Annotated[
        list[str],
        typer.Option(
            help="saliency | onnx:PATH[,size=…] | predictions:DIR | python:module:function; may be repeated; "
            "every one takes ,name=LABEL."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; the same command continues it.")],
    limit: Limit = None,
    workers: Workers = PROCESSORS,
    engine: Engine = "local",
    address: Address = None,
    gpus_per_worker: GpusPerWorker = 0.0,
    shard: ShardOption = "1/1",
    max_minutes: MaxMinutes = None,
    seed: Seed = 0,
    split: Split = "test",
    normalize: Annotated[str, typer.Option(help="raw, or minmax as some evaluators do (recorded).")] = "raw",
    on_size_mismatch: Annotated[str, typer.Option(help="error, or resize-mask, when sizes differ.")] = "error",
    truth: Truth = "published",
    include_noncam: NonCam = False,
    allow_unpaired: Unpaired = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Segmentation under 8 corruptions × 5 severities (COD10K-C): run, score, tables and a report."""
    from ..bench.plan import plan_cod10k_c

    plan = plan_cod10k_c(
        data, model, split=split, seed=seed, limit=limit, normalize=normalize, on_size_mismatch=on_size_mismatch,
        truth=truth, include_noncam=include_noncam, allow_unpaired=allow_unpaired,
    )  # fmt: skip
    labor = read_labor(workers, engine, address, gpus_per_worker, shard, max_minutes)
    return segment(plan, out, labor, quiet=quiet, as_json=as_json)


def segment(plan: MaskPlan, out: Path, labor: Labor, *, quiet: bool, as_json: bool = False) -> int:
    """Run a plan; when all of it is there, make summary, pictures and report, and print the headline tables."""
    from ..bench.finish import finish
    from ..bench.run import run_masks
    from ..io import write_atomic
    from ..report.page import build_report
    from .progress import Reporter

    for warning in plan.dataset.warnings:
        say(f"warning: {warning}", quiet=quiet)
    with Reporter("images", quiet=quiet) as reporter:
        outcome = run_masks(plan, out, labor=labor, progress=reporter.follow)
    refuse_bugs(outcome, out, "Crypsis or a model")
    print_failed(outcome.failures, most=20, rest="the report")
    if is_unfinished(outcome, labor, out, len(list(plan.units())), quiet=quiet):
        return 3 if outcome.left or outcome.failures else 0
    page = build_report([finish(out, plan)])
    write_atomic(out / "report.html", page.encode())
    print_tables([out], "markdown", as_json=as_json, headline=True)
    say(f"\nReport: {out / 'report.html'}", quiet=quiet)
    return 3 if outcome.failures else 0
