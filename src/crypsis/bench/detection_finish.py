"""What is made from a detection run once its parts are there: the summary and the pictures."""

from __future__ import annotations

import time
from pathlib import Path

from ..detection_results import DetectionRun, summarize_detections
from ..metrics.detection import EVALUATORS
from .detection_pictures import make_detection_pictures
from .detection_plan import DetectionPlan
from .store import append_lines, write_json

__all__ = ["finish_detection", "score_detection"]


def finish_detection(
    folder: Path, plan: DetectionPlan, *, evaluator: str = EVALUATORS[0], samples: int | None = None
) -> DetectionRun:
    """Write summary.json and pictures of a run whose parts are done, and return it.

    Args:
        folder: of the run.
        plan: what was run there.
        evaluator: see `crypsis.detection_results.summarize_detections`.
        samples: likewise.

    Raises:
        InputError: nothing was detected.
        MissingDependencyError: the evaluator is not installed.
    """
    start = time.process_time()
    run = score_detection(folder, evaluator=evaluator, samples=samples)
    seconds = round(time.process_time() - start, 6)
    append_lines(folder / "timing.jsonl", [{"unit": "score", "evaluate": seconds, "total": seconds}])
    make_detection_pictures(run, plan)
    return run


def score_detection(folder: Path, *, evaluator: str = EVALUATORS[0], samples: int | None = None) -> DetectionRun:
    """Score what a run folder holds, without its images or detectors, write summary.json, and return the run.

    Args and errors as in `finish_detection`.
    """
    run = DetectionRun.open(folder)
    write_json(folder / "summary.json", summarize_detections(run, evaluator=evaluator, samples=samples))
    return run
