"""Commands about strength: measure, calibrate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .shell import (
    PROCESSORS,
    STRENGTH,
    Images,
    Json,
    Quiet,
    Seed,
    Split,
    TableFormat,
    Workers,
    app,
    command,
    print_failed,
    read_names,
    read_numbers,
    refuse_bugs,
    say,
    say_time,
)

if TYPE_CHECKING:
    from ..bench.measure import MeasurePlan
    from ..bench.pairs import PairPlan
    from ..bench.work import Outcome
    from ..calibration import Calibration, CommonScale


@command(app, "measure", STRENGTH)
def measure(
    data: Images,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; the same command continues it.")],
    entries: Annotated[
        list[str] | None, typer.Option(help="Names, with commas or repeated.", show_default="all")
    ] = None,
    family: Annotated[list[str] | None, typer.Option(help="All entries of this family; may be repeated.")] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LABEL=]FOLDER",
            help="Instead of entries: degraded images that exist, of the same names, or in subfolders 1 to 5 for "
            "severities (or METRIC=STRENGTH); may be repeated.",
        ),
    ] = None,
    near: Annotated[
        list[str] | None, typer.Option(help="With --against: entries to say the neighboring severities of.")
    ] = None,
    allow_unpaired: Annotated[
        bool, typer.Option("--allow-unpaired", help="With --against: leave out clean images without a degraded one.")
    ] = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Metric of strength, with commas or repeated.", show_default="1-ssim,psnr"),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many images, evenly spaced (recorded).")] = None,
    workers: Workers = PROCESSORS,
    seed: Annotated[int | None, typer.Option(help="Seed of all random draws.", show_default="0")] = None,
    split: Split = "test",
    style: Annotated[
        TableFormat, typer.Option("--format", "-f", help="How to write the tables; csv is one long table.")
    ] = TableFormat.markdown,
    spread: Annotated[bool, typer.Option("--spread", help="Show the 5–95% range over images with each mean.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Measure how strong degradations are on your images: a table of entries × severities × metrics, and findings.

    With --against, the strength of degraded images that exist, and where they lie among the entries. The same command
    continues an interrupted measurement; when all is done, it prints the tables again.
    """
    from ..bench.measure import DEFAULT_METRICS, finish_measuring, plan_measure
    from ..io import write_atomic
    from ..report.strength_page import build_strength_report
    from ..report.strength_tables import findings_text, strength_csv, strength_tables
    from ..severity.findings import find_all

    metrics = read_names(metric) or DEFAULT_METRICS
    if against:
        if entries or family or seed is not None:
            raise InputError("--against takes images as they are, so --entries, --family and --seed are not for it.")
        return _measure_pairs(
            data, against, out, metrics, limit, workers, split, style,
            near=read_names(near), allow_unpaired=allow_unpaired, quiet=quiet, as_json=as_json,
        )  # fmt: skip
    if near or allow_unpaired:
        raise InputError("--near and --allow-unpaired are for degraded images that exist; name these with --against.")
    plan = plan_measure(
        data,
        entries=read_names(entries),
        families=family or [],
        metrics=metrics,
        seed=seed or 0,
        limit=limit,
        split=split,
    )
    outcome = _measured(plan, out, workers, quiet=quiet)
    table = finish_measuring(plan, out, outcome.failures)
    write_atomic(out / "report.html", build_strength_report(out).encode())
    if as_json:
        print((out / "summary.json").read_text("utf-8"), end="")
    elif style is TableFormat.csv:
        print(strength_csv(table), end="")
    else:
        print("\n".join(getattr(one, style.value)() for one in strength_tables(table, spread=spread)))
        if style is TableFormat.markdown:
            print(findings_text(find_all(table)), end="")
    say(f"Report: {out / 'report.html'}", quiet=quiet)
    say_time(outcome, outcome.images * len(plan.conditions), "degraded images", quiet=quiet)
    return 3 if outcome.failures else 0


def _measure_pairs(
    data: str,
    against: list[str],
    out: Path,
    metrics: Sequence[str],
    limit: int | None,
    workers: int,
    split: str,
    style: TableFormat,
    *,
    near: list[str],
    allow_unpaired: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    from ..bench.pairs import finish_pairs, plan_pairs
    from ..catalog import get_entry
    from ..report.strength_tables import pair_csv, pair_table, placement_text
    from ..severity.calibration import SHIPPED_METRICS

    near = [get_entry(name).name for name in near]  # a name that does not exist is said before hours of work
    if near and not set(metrics) & set(SHIPPED_METRICS):
        raise InputError(f"--near compares in {' or '.join(SHIPPED_METRICS)}; name one of these with --metric too.")
    plan = plan_pairs(data, against, metrics=metrics, limit=limit, split=split, allow_unpaired=allow_unpaired)
    outcome = _measured(plan, out, workers, quiet=quiet)
    sets, placements = finish_pairs(plan, out, outcome.failures, near=near)
    if as_json:
        print((out / "summary.json").read_text("utf-8"), end="")
    elif style is TableFormat.csv:
        print(pair_csv(sets), end="")
    else:
        print(getattr(pair_table(sets), style.value)(), end="")
        if style is TableFormat.markdown:
            print(f"\n{placement_text(placements)}", end="")
    say_time(outcome, outcome.images * len(plan.conditions), "degraded images", quiet=quiet)
    return 3 if outcome.failures else 0


def _measured(plan: MeasurePlan | PairPlan, out: Path, workers: int, *, quiet: bool) -> Outcome:
    """Do what is left of a measurement, and say what failed."""
    from ..bench.measure import measure as measure_images
    from .progress import Reporter

    for warning in plan.warnings:
        say(f"warning: {warning}", quiet=quiet)
    with Reporter("images", quiet=quiet) as reporter:
        outcome = measure_images(plan, out, workers=workers, progress=reporter.follow)
    refuse_bugs(outcome, out)
    print_failed(outcome.failures, most=20, rest=str(out / "summary.json"))
    return outcome


@command(app, "calibrate", STRENGTH)
def calibrate(
    entry: Annotated[
        list[str], typer.Option(help="Name of a degradation, such as cod10k-c/fog; several share one scale.")
    ],
    data: Annotated[
        str | None,
        typer.Option(help="'demo', a folder of images, or a data set with masks.", show_default="what ships"),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A JSON file to write.")] = None,
    metric: Annotated[str, typer.Option(help="Metric of strength: 1-ssim, psnr or lpips.")] = "1-ssim",
    strengths: Annotated[
        str | None,
        typer.Option(help="Levels of the common scale, with commas, mildest first.", show_default="5, evenly spaced"),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many images, evenly spaced.")] = None,
    seed: Seed = 0,
    split: Split = "test",
    quiet: Quiet = False,
) -> int:
    """Measure the strength of degradations' severities on your images, for canonical severities.

    Several entries are put on one scale of strength, where a level means the same for all; what an entry cannot reach
    is said. Without --data, the calibrations that ship with Crypsis are used (of the demo images).
    """
    from ..bench.measure import calibrate as calibrate_images
    from ..bench.measure import plan_measure
    from ..calibration import common_scale, shipped_calibration
    from ..catalog import get_entry
    from ..io import check_place, write_atomic
    from ..severity.calibration import SHIPPED_METRICS
    from ..severity.strength import check_metric
    from .progress import Reporter

    if out:
        check_place(out, "--out")
    names = list(dict.fromkeys(get_entry(name).name for name in read_names(entry)))
    levels = read_numbers(strengths, "--strengths") if strengths is not None else None
    calibrations: list[Calibration] = []
    failures: dict[str, str] = {}
    if data is None:
        if limit is not None or seed or split != "test":
            raise InputError("--limit, --seed and --split are for measuring; name the images with --data.")
        if check_metric(metric) not in SHIPPED_METRICS:
            raise InputError(f"No calibration in {metric} ships with Crypsis; name images to measure with --data.")
        calibrations = [shipped_calibration(name, metric) for name in names]
    else:
        for name in names:
            plan = plan_measure(data, entries=[name], metrics=[metric], seed=seed, limit=limit, split=split)
            for warning in plan.warnings if not calibrations else ():
                say(f"warning: {warning}", quiet=quiet)
            with Reporter("images", quiet=quiet) as reporter:
                found, failed = calibrate_images(
                    plan, progress=lambda done, total, failed: reporter.update(done, total, failed=failed)
                )
            calibrations.append(found)
            failures |= dict(failed)
    print_failed(tuple(failures.items()))
    scale = common_scale(calibrations, levels) if len(calibrations) > 1 or levels else None
    if out:
        content = scale.to_dict() if scale else calibrations[0].to_dict()
        write_atomic(out, f"{json.dumps(content, indent=1, allow_nan=False)}\n".encode())
    for one in calibrations if scale is None else ():
        print(f"{one.entry}, {one.metric}, {one.count} images\n")
        print("severity  strength      sd  canonical strength  native severity")
        rows = zip(one.strengths, one.deviations, one.canonical_strengths, one.native_severities, strict=True)
        for level, (strength, sd, canonical, native) in enumerate(rows, 1):
            print(f"{level:>8}  {strength:>8.4f}  {sd:>6.4f}  {canonical:>18.4f}  {native:>15}")
    if scale:
        _print_scale(scale)
    if out:
        use = "CommonScale.from_dict(…).place" if scale else "apply_degradation(…, mode='canonical', calibration=…)"
        say(f"Written to {out}; read it with json.load and use it with {use}.", quiet=quiet)
    return 3 if failures else 0


def _print_scale(scale: CommonScale) -> None:
    """Print a common scale: for each entry and strength the level, and the nearest native severity with its own."""
    first = next(iter(scale.calibrations.values()))
    print(f"{scale.metric}, {first.count} images: level (nearest native severity: its strength)\n")
    rows = [["strength", *(f"{strength:.4g}" for strength in scale.strengths)]]
    for name, places in scale.places.items():
        rows.append([name, *(f"{p.level:.2f} ({p.severity}: {p.measured:.4g})" if p else "–" for p in places)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for sentence in scale.cannot_reach().values():
        print(sentence)
