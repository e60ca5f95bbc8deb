"""What all commands share: how they end, what they print, and the options that several of them take.

Heavy imports stand inside the commands: `--help` and completion must be quick.
"""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn, ParamSpec

import typer

from ..errors import CrypsisError, InputError

if TYPE_CHECKING:
    from ..bench.work import Labor, Outcome

__all__ = [
    "BENCHMARKS",
    "CAMOUFLAGE",
    "DEGRADATIONS",
    "PANELS",
    "PROCESSORS",
    "RUNS",
    "STRENGTH",
    "TRAINING",
    "Address",
    "Data",
    "Engine",
    "GpusPerWorker",
    "Images",
    "Json",
    "MaxMinutes",
    "NonCam",
    "Quiet",
    "Runs",
    "Seed",
    "ShardOption",
    "Split",
    "TableFormat",
    "Truth",
    "Unpaired",
    "Workers",
    "app",
    "bench_app",
    "command",
    "drop_stdout",
    "end_with_reader",
    "fail",
    "is_unfinished",
    "print_failed",
    "read_labor",
    "read_names",
    "read_numbers",
    "read_severities",
    "refuse_bugs",
    "say",
    "say_time",
    "study_app",
]

PANELS = DEGRADATIONS, STRENGTH, CAMOUFLAGE, BENCHMARKS, RUNS, TRAINING = (
    "Degrade images", "Measure strength", "Measure camouflage", "Run benchmarks", "Read runs", "Train and predict"
)  # fmt: skip
"""Headings of `--help`, in order."""

app = typer.Typer(
    help="How hard is an object to see, and does your model still see it?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

bench_app = typer.Typer(help="Run a benchmark; the same command continues an interrupted run.", no_args_is_help=True)

app.add_typer(bench_app, name="bench", rich_help_panel=BENCHMARKS)

study_app = typer.Typer(help="Ask people which animals are better hidden.", no_args_is_help=True)

app.add_typer(study_app, name="study", rich_help_panel=CAMOUFLAGE)

Parameters = ParamSpec("Parameters")


def command(
    home: typer.Typer, name: str, panel: str | None = None
) -> Callable[[Callable[Parameters, int | None]], Callable[Parameters, None]]:
    """Register a command whose expected errors become one sentence and an exit code.

    Args:
        home: what it is a command of.
        name: what it is called.
        panel: heading that `--help` lists it under.
    """

    def register(function: Callable[Parameters, int | None]) -> Callable[Parameters, None]:
        @functools.wraps(function)
        def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
            terminated = signal.signal(signal.SIGTERM, _terminate)
            try:
                code = function(*args, **kwargs)
                sys.stdout.flush()
            except CrypsisError as error:
                fail(str(error), error.exit_code)
            except _Terminated:
                fail("Terminated. What is done is kept; give the same command again to continue.", 143)
            except KeyboardInterrupt:
                fail("Interrupted. What is done is kept; give the same command again to continue.", 130)
            except BrokenPipeError:  # the reader of our output left
                drop_stdout()
                raise SystemExit(0) from None
            except Exception as error:
                if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                    drop_stdout()
                    fail("No space is left where the output goes; free some and give the same command again.", 3)
                traceback.print_exc()
                fail("This is a bug in Crypsis; please report it with the lines above.", 1)
            finally:
                signal.signal(signal.SIGTERM, terminated)
            raise SystemExit(code or 0)

        home.command(name, rich_help_panel=panel)(run)
        return run

    return register


class _Terminated(BaseException):
    """The process was asked to end (SIGTERM): as with Ctrl-C, everything is left in order."""


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise _Terminated


def drop_stdout() -> None:
    """Let nothing more be written where nothing can be: Python flushes once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end_with_reader() -> NoReturn:
    """End as every command does when the reader of its output left; rich would report a failure."""
    drop_stdout()
    raise SystemExit(0)


def fail(message: str, code: int) -> NoReturn:
    """Print a message and end with an exit code."""
    print(f"crypsis: {message}", file=sys.stderr, flush=True)
    raise SystemExit(code)


def say(text: str, *, quiet: bool = False) -> None:
    """Print to stderr, unless quiet."""
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
Limit = Annotated[int | None, typer.Option(min=1, help="Only this many images, for a trial (recorded).")]
Images = Annotated[str, typer.Option("--data", help="'demo', a folder of images, or a data set with masks.")]


Engine = Annotated[str, typer.Option(help="local: processes of this machine; ray: of a Ray cluster (extra ray).")]
Address = Annotated[
    str | None,
    typer.Option(help="With --engine ray: of a running cluster, such as auto.", show_default="start one here"),
]
GpusPerWorker = Annotated[
    float,
    typer.Option(help="With --engine ray: GPUs that Ray gives each worker, such as 1 or 0.25.", show_default="none"),
]
ShardOption = Annotated[
    str, typer.Option("--shard", help="i/n: do the i-th of n shares of the work, for several machines with one folder.")
]
MaxMinutes = Annotated[
    float | None, typer.Option(help="Begin nothing new after so many minutes; the same command continues.")
]


def read_labor(workers: int, engine: str, address: str | None, gpus: float, shard: str, minutes: float | None) -> Labor:
    """Return who does the units of a run."""
    from ..bench.ray_cluster import RayCluster
    from ..bench.work import Labor, Shard

    if engine not in ("local", "ray"):
        raise InputError(f"--engine is local or ray; got {engine!r}.")
    if address is not None and engine != "ray":
        raise InputError("--address is for --engine ray.")
    if gpus and engine != "ray":
        raise InputError("--gpus-per-worker is for --engine ray; local processes share the GPUs they find.")
    cluster = RayCluster(address, gpus) if engine == "ray" else None
    return Labor(workers, cluster, Shard.parse(shard), minutes)


def say_time(outcome: Outcome, pictures: int, what: str, *, quiet: bool) -> None:
    """Say where the time of a run went.

    Args:
        outcome: of the call.
        pictures: how many images under a condition it went through.
        what: what these are called.
        quiet: say nothing.
    """
    total = outcome.seconds.get("total", 0.0)
    if pictures and total:
        stages = ", ".join(
            f"{stage} {spent / total:.0%}" for stage, spent in outcome.seconds.items() if stage != "total"
        )
        say(
            f"{pictures:,} {what} in {total:,.2f} s of CPU, {1000 * total / pictures:.1f} ms each, "
            f"{pictures / total:.1f}/s ({stages}).",
            quiet=quiet,
        )


def is_unfinished(outcome: Outcome, labor: Labor, folder: Path, units: int, *, quiet: bool) -> bool:
    """Say what is left of a run, if anything is, by this call or by other shards."""
    from ..results import PARTS

    done = len(list((folder / PARTS).glob("*.parquet")))
    if outcome.left:
        say(f"{outcome.left:,} of {outcome.units:,} units are left; the same command continues.", quiet=quiet)
    elif done < units:
        shard = labor.shard
        say(f"Shard {shard.index}/{shard.of} is done; {done:,} of {units:,} units of the run are there.", quiet=quiet)
    return outcome.left > 0 or done < units


def print_failed(failures: Sequence[tuple[str, str]], *, most: int | None = None, rest: str = "") -> None:
    """Print `(file, reason)` of what failed, at most so many of them, and where the rest stands."""
    for path, reason in failures[:most]:
        print(f"failed: {reason if path in reason else f'{path}: {reason}'}", file=sys.stderr, flush=True)
    if most is not None and len(failures) > most:
        print(f"… and {len(failures) - most} more; all stand in {rest}.", file=sys.stderr, flush=True)


def refuse_bugs(outcome: Outcome, out: Path, cause: str = "Crypsis") -> None:
    """End with code 1 if units of a run met a bug, whose tracebacks go into the run folder."""
    from ..io import write_atomic

    if outcome.errors:
        write_atomic(out / "errors.log", "\n".join(outcome.errors).encode())
        fail(
            f"{len(outcome.errors)} of {outcome.units} units met a bug in {cause} ({out / 'errors.log'}); "
            "the others are done, and the same command tries these again.",
            1,
        )


def read_names(texts: list[str] | None) -> list[str]:
    """Read names that are given with commas or by repeating the option."""
    return [name for text in texts or [] for name in text.split(",")]


def read_numbers(text: str, option: str) -> list[float]:
    """Read `0.1,0.2,0.3`."""
    try:
        return [float(piece) for piece in text.split(",")]
    except ValueError:
        raise InputError(f"{option} takes numbers with commas, such as 0.1,0.2,0.3; got {text!r}.") from None


def read_severities(text: str) -> list[int]:
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
