"""Commands about benchmarks and their runs: validate, bench cod10k-c, tables, report, status, demo."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .shell import (
    PROCESSORS,
    Data,
    Json,
    NonCam,
    Quiet,
    Runs,
    Seed,
    Split,
    TableFormat,
    Truth,
    Unpaired,
    Workers,
    app,
    bench_app,
    command,
    print_failed,
    refuse_bugs,
    say,
)

if TYPE_CHECKING:
    from ..bench.plan import MaskPlan


@command(app, "validate")
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
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many images, for a trial (recorded).")] = None,
    workers: Workers = PROCESSORS,
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
    return _bench(plan, out, workers, quiet=quiet, as_json=as_json)


def _bench(plan: MaskPlan, out: Path, workers: int, *, quiet: bool, as_json: bool) -> int:
    """Run a plan, then make summary, pictures and report, and print the headline tables."""
    from ..bench.finish import finish
    from ..bench.run import run_masks
    from ..io import write_atomic
    from ..report.page import build_report
    from .progress import Reporter

    for warning in plan.dataset.warnings:
        say(f"warning: {warning}", quiet=quiet)
    with Reporter("images", quiet=quiet) as reporter:
        outcome = run_masks(plan, out, workers=workers, progress=reporter.follow)
    refuse_bugs(outcome, out, "Crypsis or a model")
    print_failed(outcome.failures, most=20, rest="the report")
    page = build_report([finish(out, plan)])
    write_atomic(out / "report.html", page.encode())
    _print_tables([out], "markdown", "dice", intervals=True, as_json=as_json, headline=True)
    say(f"\nReport: {out / 'report.html'}", quiet=quiet)
    return 3 if outcome.failures else 0


def _print_tables(
    runs: list[Path], style: str, metric: str, *, intervals: bool, as_json: bool, headline: bool = False
) -> None:
    from ..report.comparison import compare_runs
    from ..report.tables import long_csv, run_tables
    from ..results import RunFolder

    folders = [RunFolder.open(path) for path in runs]
    if as_json:
        summaries = compare_runs(folders).summaries
        found = {str(folder.path): summary for folder, summary in zip(folders, summaries, strict=True)}
        print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    if style == "csv":
        print(long_csv(folders), end="")
        return
    tables = run_tables(folders, metric=metric, intervals=intervals)
    said: set[str] = set()
    texts = []
    for table in tables[:3] if headline else tables:
        # a note that holds for several tables is printed once; a LaTeX table must stand alone
        notes = table.notes if style == "latex" else tuple(note for note in table.notes if note not in said)
        said.update(notes)
        texts.append(getattr(replace(table, notes=notes), style)())
    print("\n".join(texts))


@command(app, "tables")
def tables(
    runs: Runs,
    style: Annotated[TableFormat, typer.Option("--format", "-f", help="How to write them.")] = TableFormat.markdown,
    metric: Annotated[str, typer.Option(help="Metric of the per-corruption and per-severity tables.")] = "dice",
    intervals: Annotated[bool, typer.Option(help="Show 95% bootstrap intervals over images.")] = True,
    as_json: Json = False,
) -> None:
    """Print the tables of one run, or of several side by side; CSV is one long table of every number."""
    _print_tables(runs, style.value, metric, intervals=intervals, as_json=as_json)


@command(app, "report")
def report(
    runs: Runs,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    quiet: Quiet = False,
) -> None:
    """Write one self-contained HTML page about one or several runs, or about one measurement of strength."""
    from ..io import write_atomic
    from ..report.page import build_report
    from ..report.strength_page import build_strength_report, is_measurement
    from ..results import RunFolder

    measurement = next((path for path in runs if is_measurement(path)), None)
    if measurement is None:
        page = build_report([RunFolder.open(path) for path in runs])
    elif len(runs) == 1:
        page = build_strength_report(measurement)
    else:
        raise InputError(f"{measurement} is a measurement of strength; its report is of that folder alone.")
    write_atomic(out, page.encode())
    say(f"Open {out}", quiet=quiet)


@command(app, "status")
def status(run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")]) -> int:
    """Say how much of a run is done."""
    from ..results import RunFolder

    folder = RunFolder.open(run)
    progress = folder.progress()
    done, failed = progress.images, progress.failures
    planned = folder.plan["dataset"]["images"]
    print(f"{run}: {len(done)} of {planned} images done, {len(failed)} of them failed.")
    for image, reason in failed.items():
        print(f"failed: {image}: {reason}")
    return 0 if len(done) == planned and not failed else 3


@command(app, "demo")
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")] = Path("runs/demo"),
    workers: Workers = PROCESSORS,
    quiet: Quiet = False,
) -> int:
    """Run COD10K-C on the 48 images that come with Crypsis, with the built-in saliency segmenter."""
    from ..bench.plan import plan_cod10k_c

    return _bench(plan_cod10k_c("demo", ["saliency"]), out, workers, quiet=quiet, as_json=False)
