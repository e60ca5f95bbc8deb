"""What is made from a run once its parts are there: the summary, the pictures, the report."""

from __future__ import annotations

from pathlib import Path

from ..results import RunFolder, summarize
from .pictures import make_pictures
from .plan import MaskPlan
from .store import write_json

__all__ = ["finish"]


def finish(folder: Path, plan: MaskPlan) -> RunFolder:
    """Write summary.json and pictures of a run whose parts are done, and return it."""
    run = RunFolder.open(folder)
    write_json(folder / "summary.json", summarize(run))
    make_pictures(run, plan)
    return run
