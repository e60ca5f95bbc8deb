"""Commands about degradations: list, describe, degrade, gallery."""

from __future__ import annotations

import difflib
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, UnknownNameError
from .shell import (
    DEGRADATIONS,
    PROCESSORS,
    Json,
    NonCam,
    Quiet,
    Seed,
    Split,
    Truth,
    Unpaired,
    Workers,
    app,
    command,
    end_with_reader,
    fail,
    print_failed,
    read_names,
    read_severities,
    say,
)

if TYPE_CHECKING:
    from ..bench.dataset import DatasetPlan
    from ..catalog.entry import Entry


@command(app, "list", DEGRADATIONS)
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
    console.on_broken_pipe = end_with_reader  # type: ignore[method-assign]
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


@command(app, "describe", DEGRADATIONS)
def describe(
    name: Annotated[str, typer.Argument(help="A degradation, such as cod10k-c/rain, or a model, such as sinet-v2.")],
) -> None:
    """Show all about one degradation, or about one kind of model and how it is run."""
    from ..models.about import KINDS, about

    if name.lower() in KINDS:
        print(about(name.lower()))
        return
    e = _entry(name, KINDS)
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


def _entry(name: str, others: Sequence[str]) -> Entry:
    """Return a row of the catalog; for a name that is unknown, suggest the nearest also of the `others`."""
    from ..catalog import get_entry, list_entries

    try:
        return get_entry(name)
    except UnknownNameError:
        if not difflib.get_close_matches(name.lower(), others, n=1):
            raise
        names = [*(e.name for e in list_entries()), *others]
        raise UnknownNameError.among("degradation or model", name, names) from None


@command(app, "degrade", DEGRADATIONS)
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
    strength: Annotated[
        float | None,
        typer.Option(help="Instead of a severity: degrade every image until the measured strength is this."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Of --strength: 1-ssim, psnr (dB) or lpips.", show_default="1-ssim")
    ] = None,
    tolerance: Annotated[float | None, typer.Option(help="Of --strength.", show_default="0.005; psnr 0.1 dB")] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="With --plan: a COCO JSON file whose file names start from IN.")
    ] = None,
    label_format: Annotated[
        str, typer.Option(help="With --annotations: coco, or yolo (images/, labels/ and data.yaml for each condition).")
    ] = "coco",
    truth: Truth = "published",
    split: Split = "test",
    include_noncam: NonCam = False,
    allow_unpaired: Unpaired = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --plan: count and estimate the disk space, write nothing.")
    ] = False,
    seed: Seed = 0,
    image_format: Annotated[
        str, typer.Option("--format", help="png (lossless), webp or jpg (add losses), bmp, tif, or keep the endings.")
    ] = "png",
    workers: Workers = PROCESSORS,
    quiet: Quiet = False,
) -> int:
    """Write degraded copies, with the same noise as in a benchmark.

    A folder becomes OUT/NAME/SEVERITY/…, a chain OUT/NAME+NAME/SEVERITY/…. With --plan, masks or annotations are
    carried along, a manifest is written beside the images, and the same command continues an interrupted one. With
    --strength, strengths.csv says what was achieved.
    """
    from .progress import Reporter

    if strength is None and (metric is not None or tolerance is not None):
        raise InputError("--metric and --tolerance are of --strength; give one, or leave them out.")
    if plan is None:
        if family or entries or annotations or dry_run or truth != "published" or label_format != "coco":
            raise InputError(
                "--family, --entries, --annotations, --label-format, --truth and --dry-run need "
                "--plan full|round-robin."
            )
        from ..bench.degrade import Target, degrade_files

        with Reporter("images", quiet=quiet) as reporter:
            outcome = degrade_files(
                source, target, ops=op or [], severities=read_severities(severity) if severity else None,
                strength=None if strength is None else Target(strength, metric or "1-ssim", tolerance), seed=seed,
                image_format=image_format, workers=workers, progress=reporter.update,
            )  # fmt: skip
        print_failed(outcome.failures)
        say(f"{outcome.written} written to {target}, {len(outcome.failures)} failed.", quiet=quiet)
        return 3 if outcome.failures else 0
    if strength is not None:
        raise InputError("--strength is for copies without --plan.")
    if op:
        raise InputError("--plan takes single degradations, by --entries or --family; --op is for copies without one.")
    from ..bench.dataset import estimate, plan_dataset

    planned = plan_dataset(
        str(source), arrangement=plan, entries=read_names(entries),
        families=family or [], severities=read_severities(severity or "1-5"), seed=seed, truth=truth,
        image_format=image_format, annotations=annotations, label_format=label_format, split=split,
        include_noncam=include_noncam, allow_unpaired=allow_unpaired,
    )  # fmt: skip
    for warning in planned.warnings:
        say(f"warning: {warning}", quiet=quiet)
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
        fail(f"{len(outcome.errors)} units met a bug in Crypsis ({out / 'errors.log'}); the others are done.", 1)
    print_failed(outcome.failures)
    for warning in outcome.warnings:
        say(f"warning: {warning}", quiet=quiet)
    say(
        f"{outcome.written:,} images written to {out}, {outcome.kept:,} were there, "
        f"{len(outcome.failures):,} source images failed.",
        quiet=quiet,
    )
    return 3 if outcome.failures else 0


@command(app, "gallery", DEGRADATIONS)
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
    say(f"Open {out}", quiet=quiet)
