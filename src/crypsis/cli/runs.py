"""Commands about runs that exist: tables, report, eval, status, verify, export; and demo and doctor."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .shell import (
    BENCHMARKS,
    PROCESSORS,
    RUNS,
    Json,
    Limit,
    Quiet,
    Runs,
    TableFormat,
    Workers,
    app,
    command,
    read_names,
    say,
)

if TYPE_CHECKING:
    from ..report.camouflage_results import CamouflageScores
    from ..report.comparison import Comparison
    from ..report.detection_comparison import DetectionComparison
    from ..report.tables import Table
    from ..types import Condition

Run = Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")]

ScoreFile = Annotated[
    Path | None,
    typer.Option("--camouflage", help="Scores of the images: results by camouflage. A CSV, or a run of crypsis score."),
]
Score = Annotated[
    str | None, typer.Option(help="With --camouflage: which column.", show_default="the first one of scores")
]
Groups = Annotated[
    int | None, typer.Option(help="With --camouflage: in how many groups to divide the images.", show_default="4")
]
SeenFrom = Annotated[
    float | None,
    typer.Option(
        help="With --camouflage: the score below which a model counts as blind.",
        show_default="half of its clean score on the easiest group",
    ),
]

MASKS, _DETECTIONS, _MEASUREMENT = "a run of segmenters", "a run of detectors", "a measurement of strength"
_SCORES = "a run of camouflage scores"


def kind_of_runs(runs: Sequence[Path]) -> str:
    """Return what kind of runs these are; refuse a mixture."""
    from ..bench.measure import MEASURE_SCHEMA
    from ..bench.score import SCORE_SCHEMA
    from ..detection_results import DETECTION_RUN_SCHEMA
    from ..results import run_schema

    known = {DETECTION_RUN_SCHEMA: _DETECTIONS, MEASURE_SCHEMA: _MEASUREMENT, SCORE_SCHEMA: _SCORES}
    kinds = {path: known.get(run_schema(path), MASKS) for path in runs}
    first, *others = kinds
    for other in others:
        if kinds[other] != kinds[first]:
            raise InputError(f"{first} holds {kinds[first]} and {other} {kinds[other]}; give them one by one.")
    return kinds[first]


def print_tables(
    runs: Sequence[Path],
    style: str,
    *,
    metric: str | None = None,
    intervals: bool = True,
    as_json: bool = False,
    headline: bool = False,
) -> None:
    """Print the tables of runs, or their summaries as JSON."""
    kind = kind_of_runs(runs)
    if kind == _MEASUREMENT:
        raise InputError(f"{runs[0]} is {kind}; its tables come from `crypsis measure`, given again.")
    if kind == _SCORES:
        raise InputError(f"{runs[0]} is {kind}; its tables come from `crypsis score`, given again.")
    made = _of_detections(runs) if kind == _DETECTIONS else _of_masks(runs)
    summaries, long_csv, make_tables, usual = made
    if as_json:
        found = {str(path): summary for path, summary in zip(runs, summaries(), strict=True)}
        print(json.dumps(found, indent=1, ensure_ascii=False))
    elif style == "csv":
        print(long_csv(), end="")
    else:
        tables = make_tables(metric or usual, intervals)
        print(_texts(tables[:3] if headline else tables, style))


_Made = tuple[Callable[[], Sequence[Any]], Callable[[], str], "Callable[[str, bool], Sequence[Table]]", str]


def _of_masks(runs: Sequence[Path]) -> _Made:
    from ..report.comparison import compare_runs
    from ..report.differences import difference_table
    from ..report.tables import build_tables, long_csv
    from ..results import RunFolder

    folders = [RunFolder.open(path) for path in runs]

    def make_tables(metric: str, intervals: bool) -> list[Table]:
        comparison = compare_runs(folders)
        difference = difference_table(comparison, metric) if intervals else None
        return [*build_tables(comparison, metric=metric, intervals=intervals), *([difference] if difference else [])]

    return lambda: compare_runs(folders).summaries, lambda: long_csv(folders), make_tables, "dice"


def _of_detections(runs: Sequence[Path]) -> _Made:
    from ..detection_results import DetectionRun
    from ..report.detection_comparison import compare_detections
    from ..report.detection_tables import detection_csv, detection_tables

    folders = [DetectionRun.open(path) for path in runs]
    return (
        lambda: compare_detections(folders).summaries,
        lambda: detection_csv(folders),
        lambda metric, intervals: detection_tables(folders, metric=metric, intervals=intervals),
        "ap",
    )


def _texts(tables: Sequence[Table], style: str) -> str:
    """Return tables as text; a note that holds for several is printed once, but a LaTeX table must stand alone."""
    said: set[str] = set()
    texts = []
    for table in tables:
        notes = table.notes if style == "latex" else tuple(note for note in table.notes if note not in said)
        said.update(notes)
        texts.append(getattr(replace(table, notes=notes), style)())
    return "\n".join(texts)


@command(app, "tables", RUNS)
def tables(
    runs: Runs,
    style: Annotated[TableFormat, typer.Option("--format", "-f", help="How to write them.")] = TableFormat.markdown,
    metric: Annotated[
        str | None, typer.Option(help="Metric of the tables by condition.", show_default="dice; ap of detectors")
    ] = None,
    intervals: Annotated[bool, typer.Option(help="Show 95% bootstrap intervals over images.")] = True,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="Beside what the COD10K-C paper prints; for runs over all of COD10K's test set."),
    ] = False,
    camouflage: ScoreFile = None,
    score: Score = None,
    groups: Groups = None,
    seen_from: SeenFrom = None,
    as_json: Json = False,
) -> None:
    """Print the tables of one run, or of several side by side; CSV is one long table of every number.

    With --camouflage, those by camouflage: where do the models stop seeing?
    """
    scores = _read_scores(camouflage, score, groups, seen_from)
    if paper and scores is not None:
        raise InputError("--paper and --camouflage print different tables; give one of them.")
    if scores is not None:
        _print_by_camouflage(runs, scores, style.value, metric, intervals=intervals, as_json=as_json)
        return
    if paper:
        _print_paper(runs, style.value, metric, intervals=intervals, as_json=as_json)
        return
    print_tables(runs, style.value, metric=metric, intervals=intervals, as_json=as_json)


def _read_scores(
    path: Path | None, score: str | None, groups: int | None, seen_from: float | None
) -> CamouflageScores | None:
    """Return scores of camouflage, if a file of them was given."""
    if path is None:
        for option, value in (("--score", score), ("--groups", groups), ("--seen-from", seen_from)):
            if value is not None:
                raise InputError(f"{option} is for --camouflage; name a file of scores as well.")
        return None
    from ..report.camouflage_results import read_camouflage

    return read_camouflage(path, score, groups=4 if groups is None else groups, seen_from=seen_from)


def _print_by_camouflage(
    runs: Sequence[Path],
    scores: CamouflageScores,
    style: str,
    metric: str | None,
    *,
    intervals: bool,
    as_json: bool,
) -> None:
    """Print the results of runs by camouflage."""
    from ..report.camouflage_results import detections_by_camouflage, masks_by_camouflage
    from ..report.camouflage_tables import camouflage_csv, camouflage_document, camouflage_tables

    kind = kind_of_runs(runs)
    comparison: Comparison | DetectionComparison
    if kind == _DETECTIONS:
        from ..detection_results import DetectionRun
        from ..report.detection_comparison import compare_detections

        comparison = compare_detections([DetectionRun.open(path) for path in runs])
        found = detections_by_camouflage(comparison, scores, metric or "ap")
    elif kind == MASKS:
        from ..report.comparison import compare_runs
        from ..results import RunFolder

        comparison = compare_runs([RunFolder.open(path) for path in runs])
        found = masks_by_camouflage(comparison, scores, metric or "dice")
    else:
        raise InputError(f"{runs[0]} is {kind}; --camouflage is for runs of segmenters and of detectors.")
    if as_json:
        print(json.dumps(camouflage_document(found), indent=1, ensure_ascii=False))
    elif style == "csv":
        print(camouflage_csv(comparison, found), end="")
    else:
        print(_texts(camouflage_tables(comparison, found, intervals=intervals), style))


def _print_paper(runs: Sequence[Path], style: str, metric: str | None, *, intervals: bool, as_json: bool) -> None:
    """Print Tables 1–4 of the COD10K-C paper beside the numbers of runs."""
    from ..report.paper_tables import paper_csv, paper_rows, paper_tables
    from ..results import RunFolder

    if (kind := kind_of_runs(runs)) != MASKS:
        raise InputError(f"{runs[0]} is {kind}; --paper is for {MASKS}.")
    if metric not in (None, "dice"):
        raise InputError("--metric is for tables without --paper: by condition, the paper prints Dice alone.")
    found = paper_tables([RunFolder.open(path) for path in runs], intervals=intervals)
    if as_json:
        print(json.dumps({"tables": paper_rows(found), "notes": found[0].notes}, indent=1, ensure_ascii=False))
    else:
        print(paper_csv(found) if style == "csv" else _texts(found, style), end="" if style == "csv" else "\n")


@command(app, "report", RUNS)
def report(
    runs: Runs,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    camouflage: ScoreFile = None,
    score: Score = None,
    groups: Groups = None,
    seen_from: SeenFrom = None,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained HTML page about one or several runs, or one measurement of strength or of camouflage.

    With --camouflage, also by camouflage: where do the models stop seeing?
    """
    from ..io import write_atomic

    kind = kind_of_runs(runs)
    scores = _read_scores(camouflage, score, groups, seen_from)
    if kind in (_MEASUREMENT, _SCORES):
        if scores is not None:
            raise InputError(f"{runs[0]} is {kind}; --camouflage is for runs of segmenters and of detectors.")
        from ..report.score_page import build_score_report
        from ..report.strength_page import build_strength_report

        if len(runs) > 1:
            raise InputError(f"{runs[0]} is {kind}; its report is of that folder alone.")
        page = build_strength_report(runs[0]) if kind == _MEASUREMENT else build_score_report(runs[0])
    elif kind == _DETECTIONS:
        from ..detection_results import DetectionRun
        from ..report.detection_page import build_detection_report

        page = build_detection_report([DetectionRun.open(path) for path in runs], camouflage=scores)
    else:
        from ..report.page import build_report
        from ..results import RunFolder

        page = build_report([RunFolder.open(path) for path in runs], camouflage=scores)
    write_atomic(out, page.encode())
    say(f"Open {out}", quiet=quiet)


@command(app, "eval", RUNS)
def evaluate(
    run: Run,
    evaluator: Annotated[
        str | None, typer.Option(help="Of detections: hotcoco, or pycocotools (extra).", show_default="hotcoco")
    ] = None,
    bootstrap: Annotated[
        int | None,
        typer.Option(min=0, help="Resamplings of the images for intervals of AP.", show_default="1000 for small runs"),
    ] = None,
    style: Annotated[TableFormat, typer.Option("--format", "-f", help="How to write them.")] = TableFormat.markdown,
    as_json: Json = False,
) -> None:
    """Score a run again from what it holds, without images or models; prints its tables, renews its report."""
    if kind_of_runs([run]) == _DETECTIONS:
        from ..bench.detection_finish import score_detection
        from ..io import write_atomic
        from ..report.detection_page import build_detection_report

        page = build_detection_report([score_detection(run, evaluator=evaluator or "hotcoco", samples=bootstrap)])
        write_atomic(run / "report.html", page.encode())
    elif kind_of_runs([run]) == MASKS:
        from ..bench.store import write_json
        from ..io import write_atomic
        from ..report.page import build_report
        from ..results import RunFolder, summarize

        if evaluator is not None or bootstrap is not None:
            raise InputError("--evaluator and --bootstrap are for runs of detectors.")
        write_json(run / "summary.json", summarize(RunFolder.open(run)))
        write_atomic(run / "report.html", build_report([RunFolder.open(run)]).encode())
    print_tables([run], style.value, as_json=as_json)


@command(app, "status", RUNS)
def status(run: Run) -> int:
    """Say how much of a run is done."""
    kind = kind_of_runs([run])
    failed: dict[str, str] = {}
    if kind == _DETECTIONS:
        from ..detection_results import DetectionRun

        folder = DetectionRun.open(run)
        images, by_model = folder.progress()
        done, planned = len(images), folder.plan["dataset"]["images"]
        failed = {image: reason for reasons in by_model.values() for image, reason in reasons.items()}
    elif kind == MASKS:
        from ..results import RunFolder

        masks = RunFolder.open(run)
        progress = masks.progress()
        done, planned, failed = len(progress.images), masks.plan["dataset"]["images"], progress.failures
    else:
        raise InputError(f"{run} is {kind}; give the command it was made with again, or `crypsis verify`.")
    print(f"{run}: {done} of {planned} images done, {len(failed)} of them failed.")
    for image, reason in failed.items():
        print(f"failed: {image}: {reason}")
    return 0 if done == planned and not failed else 3


@command(app, "verify", RUNS)
def verify(run: Run, as_json: Json = False) -> int:
    """Look through a run from outside: is every part readable and every result there once? And its digest."""
    from ..bench.verify import verify_run

    found = verify_run(run)
    print(json.dumps(found.to_dict(), indent=1, ensure_ascii=False) if as_json else found.text())
    return 0 if found.ok else 3


@command(app, "export", RUNS)
def export(
    run: Run,
    out: Annotated[Path, typer.Argument(help="A new folder.", metavar="OUT")],
    style: Annotated[str, typer.Option("--format", "-f", help="coco: results as JSON, or fiftyone.")] = "coco",
    model: Annotated[str | None, typer.Option(help="Which detector.", show_default="the only one")] = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(help="Only these, such as clean or imagenet-c/fog@3; with commas.", show_default="all"),
    ] = None,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Leave out detections of lower scores.")] = 0.0,
    images: Annotated[Path | None, typer.Option(help="For fiftyone: the folder of the images.")] = None,
) -> None:
    """Write the detections of a run for other tools."""
    from ..bench.export import export_detections
    from ..detection_results import DetectionRun

    folder = DetectionRun.open(run)
    if model is None and len(folder.models) > 1:
        raise InputError(f"{run} has several detectors ({', '.join(folder.models)}); choose one with --model.")
    found = export_detections(
        folder, out, model=model or folder.models[0], style=style, threshold=threshold,
        conditions=[_condition(text) for text in read_names(condition)], images=images,
    )  # fmt: skip
    print(found.text())


def _condition(text: str) -> Condition:
    """Read `clean`, or `imagenet-c/fog@3`."""
    from ..bench.degrade import parse_step
    from ..types import Condition

    if text == "clean":
        return Condition("clean", 0)
    step = parse_step(text)
    if step.severity is None:
        raise InputError(f"A condition is clean, or a degradation with its severity such as {text}@3.")
    return Condition(step.entry.name, step.severity)


@command(app, "doctor", RUNS)
def doctor(as_json: Json = False) -> None:
    """Say which packages, extras, devices and weights are here, and how to get what is not."""
    from ..environment import describe_environment, environment_text

    found = describe_environment()
    print(json.dumps(found, indent=1) if as_json else environment_text(found))


@command(app, "demo", BENCHMARKS)
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")] = Path("runs/demo"),
    detection: Annotated[bool, typer.Option("--detection", help="A detector instead of segmenters.")] = False,
    limit: Limit = None,
    workers: Workers = PROCESSORS,
    quiet: Quiet = False,
) -> int:
    """Run a benchmark on the 48 images that come with Crypsis: COD10K-C, or with --detection COCO-Degradation.

    The segmenters are RobustCODLite, its ablation that never saw a degraded image, and a classical one as the floor.
    The detector is NanoDet-g, which looks for animals, of whatever kind, under a few degradations of each family. All
    weights come along.
    """
    from ..bench.work import Labor

    if detection:
        from ..bench.detection_plan import plan_demo
        from .detection import detect

        return detect(plan_demo(limit), out, Labor(workers), quiet=quiet)
    from ..bench.plan import plan_cod10k_c
    from .masks import segment

    models = ["robust-cod-lite", "robust-cod-lite:no-augmentation", "saliency"]
    return segment(plan_cod10k_c("demo", models, limit=limit), out, Labor(workers), quiet=quiet)
