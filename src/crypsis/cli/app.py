"""All commands. Heavy imports stand inside them: `--help` and completion must be quick."""

from __future__ import annotations

import errno
import functools
import inspect
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec

import typer

from ..errors import CrypsisError, InputError

if TYPE_CHECKING:
    from ..bench.dataset import DatasetPlan
    from ..bench.measure import Measured
    from ..bench.plan import MaskPlan
    from ..bench.run import Outcome

__all__ = ["app"]

app = typer.Typer(
    help="How hard is an object to see, and does your model still see it?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench_app = typer.Typer(help="Run a benchmark; the same command continues an interrupted run.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")

Parameters = ParamSpec("Parameters")


def command(home: typer.Typer, name: str) -> Callable[[Callable[Parameters, int | None]], Callable[Parameters, None]]:
    """Register a command whose expected errors become one sentence and an exit code."""

    def register(function: Callable[Parameters, int | None]) -> Callable[Parameters, None]:
        @functools.wraps(function)
        def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
            terminated = signal.signal(signal.SIGTERM, _terminate)
            try:
                code = function(*args, **kwargs)
                sys.stdout.flush()
            except CrypsisError as error:
                _fail(str(error), error.exit_code)
            except _Terminated:
                _fail("Terminated. What is done is kept; give the same command again to continue.", 143)
            except KeyboardInterrupt:
                _fail("Interrupted. What is done is kept; give the same command again to continue.", 130)
            except BrokenPipeError:  # the reader of our output left
                _drop_stdout()
                raise SystemExit(0) from None
            except Exception as error:
                if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                    _drop_stdout()
                    _fail("No space is left where the output goes; free some and give the same command again.", 3)
                traceback.print_exc()
                _fail("This is a bug in Crypsis; please report it with the lines above.", 1)
            finally:
                signal.signal(signal.SIGTERM, terminated)
            raise SystemExit(code or 0)

        home.command(name)(run)
        return run

    return register


class _Terminated(BaseException):
    """The process was asked to end (SIGTERM): as with Ctrl-C, everything is left in order."""


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise _Terminated


def _drop_stdout() -> None:
    """Let nothing more be written where nothing can be: Python flushes once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end_with_reader() -> NoReturn:
    """End as every command does when the reader of its output left; rich would report a failure."""
    _drop_stdout()
    raise SystemExit(0)


def _fail(message: str, code: int) -> NoReturn:
    print(f"crypsis: {message}", file=sys.stderr, flush=True)
    raise SystemExit(code)


def _say(text: str, *, quiet: bool = False) -> None:
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def _processors() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


PROCESSORS = _processors()


class TableFormat(str, Enum):
    """How a table is written."""

    markdown = "markdown"
    latex = "latex"
    csv = "csv"


Seed = Annotated[int, typer.Option(help="Seed of all random draws.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no hints; results and errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes; results do not depend on it.", show_default="all")]
Data = Annotated[str, typer.Option("--data", help="'demo', a folder of images and masks, or a .csv/.jsonl manifest.")]
Split = Annotated[str, typer.Option(help="Which split, where the data set has several: test or train.")]
NonCam = Annotated[bool, typer.Option("--include-noncam", help="Keep COD10K's images without camouflaged objects.")]
Unpaired = Annotated[bool, typer.Option("--allow-unpaired", help="Go on when images or masks lack their partner.")]
Truth = Annotated[
    str, typer.Option(help="published: labels stay; aligned: they move along where content moves (recorded).")
]
Runs = Annotated[list[Path], typer.Argument(help="Run folders.", metavar="RUN...")]


def _version(value: bool) -> None:
    if value:
        from .. import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@command(app, "list")
def list_(
    family: Annotated[str | None, typer.Option(help="Only this family, such as cod10k-c.")] = None,
    paper: Annotated[str | None, typer.Option(help="Only this paper, such as Hendrycks_ICLR_2019.")] = None,
    cause: Annotated[str | None, typer.Option(help="Only this cause: E, S, R or T.")] = None,
    effect: Annotated[str | None, typer.Option(help="Only this effect, such as N, B or WX.")] = None,
    group: Annotated[str | None, typer.Option(help="Only this group, G1 to G12.")] = None,
    as_json: Json = False,
) -> None:
    """List the degradations, with their place on the cause × effect taxonomy."""
    from ..catalog import list_entries, taxonomy_matrix

    entries = list_entries(family=family, paper=paper, cause=cause, effect=effect, group=group)
    if not entries:
        raise InputError("No degradation has all of these; leave one out.")
    if as_json:
        rows = [
            {
                "name": e.name, "title": e.title, "paper": e.paper, "cause": e.cause.code, "effect": e.effect.code,
                "group": e.group.code, "random": e.random, "moves_pixels": e.moves_pixels, "monotone": e.monotone,
                "extra": e.extra,
                "parameters": [dict(values) for values in e.parameters],
            }
            for e in entries
        ]  # fmt: skip
        print(json.dumps(rows, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)
    for column in ("cause", "effect", "group", "random"):
        table.add_column(column, no_wrap=True)
    table.add_column("parameters at severities 1–5")
    for e in entries:
        random = "yes" if e.random else "no"
        table.add_row(e.name, e.cause.code, e.effect.code, e.group.code, random, _levels(e.parameters))
    # elsewhere than on a terminal, a line is as long as it needs to be
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.on_broken_pipe = _end_with_reader  # type: ignore[method-assign]
    console.print(table)
    matrix = taxonomy_matrix(entries)
    causes, effects = (dict.fromkeys(axis) for axis in zip(*matrix, strict=True))
    counts = Table(box=None, header_style="bold", pad_edge=False, title="\ncauses and effects")
    counts.add_column("", no_wrap=True)
    for column in effects:
        counts.add_column(column.code, justify="right", no_wrap=True)
    for row in causes:
        counts.add_row(f"{row.code}  {row.title}", *(str(matrix[row, column] or "·") for column in effects))
    console.print(counts)
    legend = (f"[bold]{column.code}[/] {column.title}".replace(" ", "\N{NO-BREAK SPACE}") for column in effects)
    console.print("  ".join(legend))


def _levels(parameters: Any) -> str:
    """Write five parameter mappings as `sigma 8 16 24 32 40`, a line for each parameter."""
    names = list(dict.fromkeys(name for values in parameters for name in values))
    return "\n".join(f"{name} " + " ".join(f"{values.get(name, '–')}" for values in parameters) for name in names)


@command(app, "describe")
def describe(name: Annotated[str, typer.Argument(help="Name of a degradation, such as cod10k-c/rain.")]) -> None:
    """Show one degradation: parameters, taxonomy, source, notes."""
    from ..catalog import get_entry

    e = get_entry(name)
    prose = inspect.cleandoc(e.operator.__doc__ or "").partition("\nArgs:")[0]
    print(f"{e.name}: {e.title}\n\n{prose}")
    for level, values in enumerate(e.parameters, 1):
        print(f"severity {level}: " + ", ".join(f"{key} = {value}" for key, value in values.items()))
    print(f"\ncause   {e.cause.code}  {e.cause.title}. {e.cause.meaning}")
    print(f"effect  {e.effect.code}  {e.effect.title}. {e.effect.meaning}")
    print(f"group   {e.group.code}  {e.group.title}. {e.group.meaning}")
    print(f"random  {'yes' if e.random else 'no'}\nmoves pixels  {'yes' if e.moves_pixels else 'no'}")
    print(f"also called  {', '.join(e.aliases) or '–'}\npaper   {e.paper}{', an extra row' if e.extra else ''}")
    print(f"source  {e.source}")
    if e.note:
        print(f"note    {e.note}")


def _severities(text: str) -> list[int]:
    """Read `3`, `1-5` or `1,3,5`."""
    try:
        found: list[int] = []
        for piece in text.split(","):
            low, dash, high = piece.partition("-")
            first, last = int(low), int(high if dash else low)
            found += range(first, last + 1) if 1 <= first <= last <= 5 else [0]
    except ValueError:
        found = []
    if not found or 0 in found:
        raise InputError(f"Severities are 1 to 5, written as 3, 1-5 or 1,3,5; got {text!r}.")
    return list(dict.fromkeys(found))


@command(app, "degrade")
def degrade(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="An image or a folder of images; with --plan a data set, or 'demo'.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="A file for one image at one severity, else a folder.")],
    op: Annotated[
        list[str] | None,
        typer.Option(help="NAME or NAME@SEVERITY; see `crypsis list`. Several are applied one after the other."),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            help="full: every image under every entry, in ENTRY/SEVERITY; round-robin: each image keeps its one entry, "
            "in SEVERITY."
        ),
    ] = None,
    family: Annotated[list[str] | None, typer.Option(help="With --plan: all entries of this family.")] = None,
    entries: Annotated[list[str] | None, typer.Option(help="With --plan: names, with commas or repeated.")] = None,
    severity: Annotated[
        str | None, typer.Option(help="3, or 1-5, or 1,3,5.", show_default="3; with --plan 1-5")
    ] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="With --plan: a COCO JSON file whose file names start from IN.")
    ] = None,
    truth: Truth = "published",
    split: Split = "test",
    include_noncam: NonCam = False,
    allow_unpaired: Unpaired = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --plan: count and estimate the disk space, write nothing.")
    ] = False,
    seed: Seed = 0,
    image_format: Annotated[
        str, typer.Option("--format", help="png (lossless), webp, jpg (adds losses), bmp, tif, or keep the endings.")
    ] = "png",
    workers: Workers = PROCESSORS,
    quiet: Quiet = False,
) -> int:
    """Write degraded copies, with the same noise as in a benchmark.

    A folder becomes OUT/NAME/SEVERITY/…, a chain OUT/NAME+NAME/SEVERITY/…. With --plan, masks or annotations are
    carried along, a manifest is written beside the images, and the same command continues an interrupted one.
    """
    from .progress import Reporter

    if plan is None:
        if family or entries or annotations or dry_run or truth != "published":
            raise InputError("--family, --entries, --annotations, --truth and --dry-run need --plan full|round-robin.")
        from ..bench.degrade import degrade_files

        with Reporter("images", quiet=quiet) as reporter:
            outcome = degrade_files(
                source, target, ops=op or [], severities=_severities(severity) if severity else None, seed=seed,
                image_format=image_format, workers=workers, progress=reporter.update,
            )  # fmt: skip
        _print_failed(outcome.failures)
        _say(f"{outcome.written} written to {target}, {len(outcome.failures)} failed.", quiet=quiet)
        return 3 if outcome.failures else 0
    if op:
        raise InputError("--plan takes single degradations, by --entries or --family; --op is for copies without one.")
    from ..bench.dataset import estimate, plan_dataset

    planned = plan_dataset(
        str(source), arrangement=plan, entries=_names(entries),
        families=family or [], severities=_severities(severity or "1-5"), seed=seed, truth=truth,
        image_format=image_format, annotations=annotations, split=split, include_noncam=include_noncam,
        allow_unpaired=allow_unpaired,
    )  # fmt: skip
    for warning in planned.warnings:
        _say(f"warning: {warning}", quiet=quiet)
    if dry_run:
        print(estimate(planned, target).text(planned))
        return 0
    return _degrade_dataset(planned, target, workers, quiet=quiet)


def _degrade_dataset(plan: DatasetPlan, out: Path, workers: int, *, quiet: bool) -> int:
    from ..bench.dataset import degrade_dataset
    from .progress import Reporter

    with Reporter("images", quiet=quiet) as reporter:
        outcome = degrade_dataset(
            plan, out, workers=workers, progress=lambda done, total, failed: reporter.update(done, total, failed=failed)
        )
    if outcome.errors:
        (out / "errors.log").write_text("\n".join(outcome.errors), "utf-8")
        _fail(f"{len(outcome.errors)} units met a bug in Crypsis ({out / 'errors.log'}); the others are done.", 1)
    _print_failed(outcome.failures)
    _say(
        f"{outcome.written:,} images written to {out}, {outcome.kept:,} were there, "
        f"{len(outcome.failures):,} source images failed.",
        quiet=quiet,
    )
    return 3 if outcome.failures else 0


def _print_failed(failures: tuple[tuple[str, str], ...]) -> None:
    for path, reason in failures:
        print(f"failed: {reason if path in reason else f'{path}: {reason}'}", file=sys.stderr, flush=True)


@command(app, "gallery")
def gallery(
    image: Annotated[Path, typer.Argument(help="An image file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("gallery.html"),
    family: Annotated[str | None, typer.Option(help="Only this family, such as cod10k-c.")] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Show an image under every degradation and severity, on one page."""
    from ..catalog import list_entries
    from ..io import read_image, write_atomic
    from ..report.gallery import build_gallery

    pixels = read_image(image)
    page = build_gallery(pixels, entries=list_entries(family=family), seed=seed, image_key=image.stem, title=image.name)
    write_atomic(out, page.encode())
    _say(f"Open {out}", quiet=quiet)


@command(app, "validate")
def validate(
    data: Annotated[str, typer.Argument(help="'demo', a folder of images and masks, or a .csv/.jsonl manifest.")],
    split: Split = "test",
    include_noncam: NonCam = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Decode every image and mask of a data set, and print what is wrong, problem by problem."""
    from ..datasets.masks import open_masks
    from ..datasets.validation import validate_masks
    from .progress import Reporter

    dataset = open_masks(data, split=split, include_noncam=include_noncam, allow_unpaired=True)
    with Reporter("images", quiet=quiet) as reporter:
        report = validate_masks(dataset, progress=reporter.update)
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
    from ..bench.run import Receipt, run_masks
    from ..io import write_atomic
    from ..report.page import build_report
    from .progress import Reporter

    for warning in plan.dataset.warnings:
        _say(f"warning: {warning}", quiet=quiet)
    failed: set[str] = set()
    with Reporter("images", quiet=quiet) as reporter:

        def progress(done: int, total: int, receipt: Receipt | None) -> None:
            if receipt:
                failed.update(image for image, _ in receipt.failures)
            reporter.update(done, total, failed=len(failed))

        outcome = run_masks(plan, out, workers=workers, progress=progress)
    if outcome.errors:
        write_atomic(out / "errors.log", "\n".join(outcome.errors).encode())
        _fail(
            f"{len(outcome.errors)} of {outcome.units} units met a bug in Crypsis or a model ({out / 'errors.log'}); "
            "the others are done, and the same command tries these again.",
            1,
        )
    _report_failures(outcome)
    page = build_report([finish(out, plan)])
    write_atomic(out / "report.html", page.encode())
    _print_tables([out], "markdown", "dice", intervals=True, as_json=as_json, headline=True)
    _say(f"\nReport: {out / 'report.html'}", quiet=quiet)
    return 3 if outcome.failures else 0


def _report_failures(outcome: Outcome) -> None:
    _print_failed(outcome.failures[:20])
    if len(outcome.failures) > 20:
        print(f"… and {len(outcome.failures) - 20} more; all stand in the report.", file=sys.stderr, flush=True)


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


Images = Annotated[str, typer.Option("--data", help="'demo', a folder of images, or a data set with masks.")]


@command(app, "measure")
def measure(
    data: Images,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; the same command continues it.")],
    entries: Annotated[
        list[str] | None, typer.Option(help="Names, with commas or repeated.", show_default="all")
    ] = None,
    family: Annotated[list[str] | None, typer.Option(help="All entries of this family; may be repeated.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Metric of strength, with commas or repeated.", show_default="1-ssim,psnr"),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many images, evenly spaced (recorded).")] = None,
    workers: Workers = PROCESSORS,
    seed: Seed = 0,
    split: Split = "test",
    style: Annotated[
        TableFormat, typer.Option("--format", "-f", help="How to write the tables; csv is one long table.")
    ] = TableFormat.markdown,
    spread: Annotated[bool, typer.Option("--spread", help="Show the 5–95% range over images with each mean.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Measure how strong degradations are on your images: a table of entries × severities × metrics, and findings.

    The same command continues an interrupted measurement; when all is done, it prints the tables again.
    """
    from ..bench.measure import DEFAULT_METRICS, finish_measuring, plan_measure
    from ..bench.measure import measure as measure_images
    from ..io import write_atomic
    from ..report.strength_tables import findings_text, strength_csv, strength_tables
    from ..severity.findings import find_all
    from .progress import Reporter

    plan = plan_measure(
        data, entries=_names(entries), families=family or [], metrics=_names(metric) or DEFAULT_METRICS, seed=seed,
        limit=limit, split=split,
    )  # fmt: skip
    for warning in plan.images.warnings:
        _say(f"warning: {warning}", quiet=quiet)
    with Reporter("images", quiet=quiet) as reporter:
        outcome = measure_images(
            plan, out, workers=workers, progress=lambda done, total, failed: reporter.update(done, total, failed=failed)
        )
    if outcome.errors:
        write_atomic(out / "errors.log", "\n".join(outcome.errors).encode())
        _fail(
            f"{len(outcome.errors)} of {outcome.units} units met a bug in Crypsis ({out / 'errors.log'}); "
            "the others are done, and the same command tries these again.",
            1,
        )
    _print_failed(outcome.failures[:20])
    if len(outcome.failures) > 20:
        print(
            f"… and {len(outcome.failures) - 20} more; all stand in {out / 'summary.json'}.",
            file=sys.stderr,
            flush=True,
        )
    table = finish_measuring(plan, out, outcome.failures)
    if as_json:
        print((out / "summary.json").read_text("utf-8"), end="")
    elif style is TableFormat.csv:
        print(strength_csv(table), end="")
    else:
        print("\n".join(getattr(one, style.value)() for one in strength_tables(table, spread=spread)))
        if style is TableFormat.markdown:
            print(findings_text(find_all(table)), end="")
    if outcome.images:
        _say(_time_spent(outcome), quiet=quiet)
    return 3 if outcome.failures else 0


def _names(texts: list[str] | None) -> list[str]:
    """Read names that are given with commas or by repeating the option."""
    return [name for text in texts or [] for name in text.split(",")]


def _time_spent(outcome: Measured) -> str:
    total = outcome.seconds.get("total", 0.0)
    stages = ", ".join(
        f"{stage} {spent / total:.0%}" for stage, spent in outcome.seconds.items() if stage != "total" and total
    )
    return f"{outcome.images:,} images in {total:.1f} s of CPU, {total / outcome.images:.2f} s each ({stages})."


@command(app, "calibrate")
def calibrate(
    data: Images,
    entry: Annotated[str, typer.Option(help="Name of a degradation, such as cod10k-c/fog.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The JSON file to write.")],
    metric: Annotated[str, typer.Option(help="Metric of strength.")] = "1-ssim",
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many images, evenly spaced.")] = None,
    seed: Seed = 0,
    split: Split = "test",
    quiet: Quiet = False,
) -> int:
    """Measure the strength of one degradation's severities on your images, for canonical severities."""
    from ..bench.measure import calibrate as calibrate_images
    from ..bench.measure import plan_measure
    from ..io import write_atomic
    from .progress import Reporter

    plan = plan_measure(data, entries=[entry], metrics=[metric], seed=seed, limit=limit, split=split)
    for warning in plan.images.warnings:
        _say(f"warning: {warning}", quiet=quiet)
    with Reporter("images", quiet=quiet) as reporter:
        found, failures = calibrate_images(
            plan, progress=lambda done, total, failed: reporter.update(done, total, failed=failed)
        )
    _print_failed(failures)
    write_atomic(out, f"{json.dumps(found.to_dict(), indent=1, allow_nan=False)}\n".encode())
    print(f"{found.entry}, {found.metric}, {found.count} images\n")
    print("severity  strength      sd  canonical strength  native severity")
    rows = zip(found.strengths, found.deviations, found.canonical_strengths, found.native_severities, strict=True)
    for level, (strength, sd, canonical, native) in enumerate(rows, 1):
        print(f"{level:>8}  {strength:>8.4f}  {sd:>6.4f}  {canonical:>18.4f}  {native:>15}")
    _say(f"Written to {out}; use it with apply_degradation(…, mode='canonical', calibration=…).", quiet=quiet)
    return 3 if failures else 0


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
    """Write one self-contained HTML page about one or several runs."""
    from ..io import write_atomic
    from ..report.page import build_report
    from ..results import RunFolder

    write_atomic(out, build_report([RunFolder.open(path) for path in runs]).encode())
    _say(f"Open {out}", quiet=quiet)


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
