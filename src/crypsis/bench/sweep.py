"""Which thresholds of SeamCam agree best with people: a search over the stored proposals of a run of scores.

RUN/sweep/<grid>/             ζ of each image that was voted on at every combination; killed, it is continued, and new
                              votes use it again
RUN/sweep.json                all that was found
RUN/sweep.csv                 agreement on the tuning pairs: τα, τβ, K
RUN/tuning_pairs.csv          the pairs that were tuned on, and are in no evaluation
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..camouflage.agreement import Judgments, TieRule, agreement, as_document, compare
from ..camouflage.seamcam import Proposals
from ..camouflage.threshold_sweep import ThresholdSweep, sweep_scores, threshold_sweep
from ..datasets.folder import counted, examples
from ..errors import CrypsisError, InputError, UnknownNameError
from ..io import file_digest, write_atomic
from ..results import PARTS
from . import store
from .plan import Unit
from .score import SEAMCAM, ScorePlan, SeamCamSettings, stored_proposals
from .work import Clock, Labor, Outcome, Progress, Receipt, do_units, make_part

__all__ = [
    "SWEEP_SCHEMA",
    "TAU_ALPHAS",
    "TAU_BETAS",
    "SweepPlan",
    "finish_sweep",
    "plan_sweep",
    "sweep_folder",
    "sweep_images",
]

SWEEP_SCHEMA = "crypsis.sweep/1"
_SCORES_SCHEMA = "crypsis.sweep-scores/1"
TAU_ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TAU_BETAS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)
_SLACK = 0.01
_TIES: TieRule = "half"
_COLUMNS = pa.schema(
    [
        ("image", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("mask_digest", pa.string()),
        ("proposals", pa.int32()),
        ("least_alpha", pa.float64()),
        ("least_beta", pa.float64()),
        ("scores", pa.list_(pa.float64())),
    ]
)


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """A search for thresholds.

    Attributes:
        run: the run of scores that it is made on.
        judgments: of people.
        votes: what these were read from, for reports.
        tau_alphas: ascending; those of the paper and of the run are among them.
        tau_betas: likewise.
        top_k: largest K.
        pairs: how many pairs to tune on.
        seed: of the draw of these.
        disjoint_images: whether pairs that share an image with these are left out of the evaluation too.
    """

    run: ScorePlan
    judgments: Judgments = field(repr=False)
    votes: str
    tau_alphas: tuple[float, ...]
    tau_betas: tuple[float, ...]
    top_k: int
    pairs: int
    seed: int
    disjoint_images: bool

    def grid(self) -> dict[str, Any]:
        """Return what decides ζ of an image at every combination, beside the run."""
        return {
            "tau_alphas": list(self.tau_alphas),
            "tau_betas": list(self.tau_betas),
            "top_k": self.top_k,
            "duplicate_iou": self.run.settings.duplicate_iou,
        }

    def named(self) -> dict[str, SeamCamSettings]:
        """Return the thresholds that the chosen ones are compared with: the paper's, and the run's if they differ."""
        paper, own = SeamCamSettings(), self.run.settings
        return {"paper": paper} | ({} if _thresholds(own) == _thresholds(paper) else {"run": own})


def plan_sweep(
    run: ScorePlan,
    judgments: Judgments,
    *,
    votes: str,
    tau_alphas: Sequence[float] = TAU_ALPHAS,
    tau_betas: Sequence[float] = TAU_BETAS,
    top_k: int = 12,
    pairs: int = 100,
    seed: int = 0,
    disjoint_images: bool = False,
) -> SweepPlan:
    """Plan to search on a run of scores, which need not be finished.

    The paper's thresholds, and those of the run, join those that are given.

    Args:
        run: with SeamCam among its scores.
        judgments: of people; every image that they are of is one of the run.
        votes: what these were read from, for reports.
        tau_alphas: values of τα to try, in [0, 1].
        tau_betas: values of τβ, in [0, 1].
        top_k: largest K to try, 1..20.
        pairs: how many to tune on, fewer than there are with a majority.
        seed: of the draw of these.
        disjoint_images: whether pairs that share an image with these are left out of the evaluation too.

    Raises:
        InputError: the run has no SeamCam, there are too few pairs, or a threshold or K is out of its range.
        UnknownNameError: a voted image is not one of the run.
    """
    if SEAMCAM not in run.scores:
        raise InputError(
            f"A search is for SeamCam's thresholds, and this run scores {', '.join(run.scores)}; name a new run folder "
            f"and --score {SEAMCAM}."
        )
    keys = [item.key for item in run.dataset.items]
    _check_images(judgments, keys, votes, run.limit)
    if not 1 <= pairs < judgments.judged:
        raise InputError(
            f"{votes}: {counted(judgments.judged, 'pair')} of {len(judgments.pairs):,} have a majority "
            f"({judgments.tied:,} are tied, {judgments.too_few:,} have fewer than {judgments.minimum_votes} votes); "
            f"tuning on {pairs:,} leaves none to evaluate; --sweep-pairs is at least 1 and less than those."
        )
    known = (SeamCamSettings(), run.settings)
    alphas = sorted({float(t) for t in tau_alphas} | {one.tau_alpha for one in known})
    betas = sorted({float(t) for t in tau_betas} | {one.tau_beta for one in known})
    most = max(top_k, *(one.top_k for one in known))
    nothing = Proposals(np.zeros(0), np.zeros(0), np.zeros((0, 1, 1), np.bool_))
    for k in (top_k, most):  # the core's own checks; the smaller one is refused as well if it is none
        sweep_scores(nothing, np.ones((1, 1), np.bool_), tau_alphas=alphas, tau_betas=betas, top_k=k)
    return SweepPlan(
        run=run,
        judgments=judgments,
        votes=votes,
        tau_alphas=tuple(alphas),
        tau_betas=tuple(betas),
        top_k=most,
        pairs=pairs,
        seed=seed,
        disjoint_images=disjoint_images,
    )


def _check_images(judgments: Judgments, keys: Sequence[str], votes: str, limit: int | None) -> None:
    strange = sorted(set(_voted(judgments)) - set(keys))
    if strange:
        limited = f" (--limit took {limit} of its images)" if limit is not None else ""
        raise UnknownNameError.among(
            f"image in the data set{limited}",
            strange[0],
            keys,
            f"{votes} is about {counted(len(strange), 'such image')}; give the data that the study was made of.",
        )


def _voted(judgments: Judgments) -> list[str]:
    return sorted({name for pair in judgments.pairs for name in (pair.first, pair.second)})


def _thresholds(settings: SeamCamSettings) -> tuple[float, float, int]:
    return settings.tau_alpha, settings.tau_beta, settings.top_k


def sweep_folder(plan: SweepPlan, folder: Path) -> Path:
    """Return where, below the folder of a run, the scores of a grid lie."""
    text = json.dumps(plan.grid(), sort_keys=True)
    return folder / "sweep" / hashlib.sha256(text.encode()).hexdigest()[:12]


def _units(plan: SweepPlan, rows: Sequence[Mapping[str, Any]]) -> list[Unit]:
    """Return a unit for each image that was voted on and scored; it is called after its place in the data set."""
    wanted = set(_voted(plan.judgments)) & {row["image"] for row in rows}
    return [
        Unit(f"images-{number:06d}-{number:06d}", (item,))
        for number, item in enumerate(plan.run.dataset.items)
        if item.key in wanted
    ]


def sweep_images(
    plan: SweepPlan,
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    labor: Labor | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Score what is left of the images that were voted on at all thresholds, from the proposals that were stored.

    Killed at any moment and called again, it goes on.

    Args:
        plan: what to do.
        folder: of the run, whose images are all scored.
        rows: of the run, as `crypsis.bench.score.read_rows` returns them.
        labor: who does it; this process alone if None. Shards are not for this.
        progress: told after each image.

    Returns:
        How it ended; stages are `decode`, `load`, `sweep` and `store`.

    Raises:
        InputError: proposals are missing.
        PlanChangedError: masks changed since they were read.
        IncompleteError: a worker died, or the disk is full.
    """
    units = _units(plan, rows)
    missing = stored_proposals(plan.run, folder).check([unit.items[0].key for unit in units])
    if missing:
        raise InputError(
            f"{folder}: of {counted(len(missing), 'image')} of {len(units):,} that were voted on, what was proposed is "
            f"gone ({examples(missing)}); delete {folder / PARTS} and give the same command again to make it anew."
        )
    place = sweep_folder(plan, folder)
    store.claim_folder(
        place,
        "run.json",
        schema=_SCORES_SCHEMA,
        identity={"run": plan.run.identity(), "grid": plan.grid()},
        session=store.session_of(plan.run.data),
        what="search",
        option="--out",
    )
    return do_units(
        place,
        units,
        partial(_Sweeper, plan, folder, place),
        columns=("image", "mask_digest"),
        files_now=lambda unit: [(item.key, file_digest(item.mask)) for item in unit.items],
        labor=labor,
        progress=progress,
    )


class _Sweeper:
    """Scores images at all thresholds in one process."""

    def __init__(self, plan: SweepPlan, folder: Path, place: Path) -> None:
        self.run = plan.run
        self.grid = plan.grid()
        self.place = place
        self.stored = stored_proposals(plan.run, folder)

    def __call__(self, unit: Unit) -> Receipt:
        return make_part(self.place, unit, _COLUMNS, partial(self._rows, unit))

    def _rows(self, unit: Unit, clock: Clock) -> tuple[list[dict[str, Any]], Iterable[tuple[str, str]]]:
        rows = []
        for item in unit.items:
            row: dict[str, Any] = {"image": item.key, "mask_digest": file_digest(item.mask)}
            try:
                with clock("decode"):
                    truth = self.run.dataset.load(item, on_size_mismatch=self.run.on_size_mismatch).mask
                with clock("load"):
                    height, width = truth.shape
                    found = self.stored.load(item.key, (height, width))
                with clock("sweep"):
                    scores = sweep_scores(found, truth, **self.grid)
                row |= {
                    "status": "ok",
                    "proposals": len(found.alpha),
                    "least_alpha": float(found.alpha.min()) if len(found.alpha) else None,
                    "least_beta": float(found.beta.min()) if len(found.beta) else None,
                    "scores": scores.ravel().tolist(),
                }
            except CrypsisError as error:
                row |= {"status": "failed", "error": str(error)}
            rows.append(row)
        return rows, [(row["image"], row["error"]) for row in rows if row["status"] == "failed"]


def finish_sweep(
    plan: SweepPlan, folder: Path, rows: Sequence[Mapping[str, Any]], failures: Iterable[tuple[str, str]] = ()
) -> dict[str, Any]:
    """Choose thresholds, evaluate them on the other pairs, write the files, and return what `sweep.json` holds.

    Args:
        plan: whose images are all done.
        folder: of the run.
        rows: of the run.
        failures: `(image, reason)` of what could not be scored, by the run or by the search.

    Raises:
        InputError: a part is missing or damaged, or so many images failed that too few pairs are left.
    """
    found = [row for unit in _units(plan, rows) for row in _part(sweep_folder(plan, folder), unit)]
    shape = len(plan.tau_alphas), len(plan.tau_betas), plan.top_k
    scores = {row["image"]: np.array(row["scores"]).reshape(shape) for row in found if row["status"] == "ok"}
    sweep = threshold_sweep(
        plan.judgments,
        scores,
        tau_alphas=plan.tau_alphas,
        tau_betas=plan.tau_betas,
        pairs=plan.pairs,
        seed=plan.seed,
        ties=_TIES,
        slack=_SLACK,
        disjoint_images=plan.disjoint_images,
    )
    document = {
        "schema": SWEEP_SCHEMA,
        "votes": plan.votes,
        "observer": dict(plan.run.description),
        "settings": {
            **plan.grid(), "pairs": plan.pairs, "seed": plan.seed, "ties": _TIES, "slack": _SLACK,
            "disjoint_images": plan.disjoint_images,
        },
        "judgments": _judged(plan.judgments),
        "images": {"voted": len(_voted(plan.judgments)), "scored": len(scores), "failed": dict(failures)},
        "stored": {
            name: pick((row[column] for row in found if row[column] is not None), default=None)
            for name, column, pick in (
                ("least_alpha", "least_alpha", min), ("least_beta", "least_beta", min), ("most", "proposals", max),
            )
        },
        "accuracy": sweep.accuracy.tolist(),
        "tuning": [list(pair) for pair in sweep.tuning],
        **_evaluation(plan, sweep, scores),
    }  # fmt: skip
    store.write_json(folder / "sweep.json", document)
    write_atomic(folder / "sweep.csv", _grid_csv(sweep).encode())
    write_atomic(folder / "tuning_pairs.csv", _pairs_csv(plan.judgments, sweep).encode())
    return document


def _part(place: Path, unit: Unit) -> list[dict[str, Any]]:
    file = place / PARTS / f"{unit.name}.parquet"
    try:
        part: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{file}: cannot be read ({error}); give the same command again.") from error
    return part


def _evaluation(plan: SweepPlan, sweep: ThresholdSweep, scores: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
    """Return the chosen and the named thresholds with their agreement, and how the former differ from the latter."""
    chosen = SeamCamSettings(tau_alpha=sweep.tau_alpha, tau_beta=sweep.tau_beta, top_k=sweep.top_k)
    at: dict[str, dict[str, float]] = {}
    found: dict[str, Any] = {}
    for name, settings in {"chosen": chosen, **plan.named()}.items():
        tau_alpha, tau_beta, top_k = _thresholds(settings)
        cell = plan.tau_alphas.index(tau_alpha), plan.tau_betas.index(tau_beta), top_k - 1
        at[name] = {image: float(array[cell]) for image, array in scores.items()}
        result = agreement(sweep.evaluation, at[name], ties=_TIES, seed=plan.seed)
        found[name] = {
            "tau_alpha": tau_alpha, "tau_beta": tau_beta, "top_k": top_k,
            "on_tuning_pairs": float(sweep.accuracy[cell]), "on_evaluation_pairs": as_document(result),
        }  # fmt: skip
    differences = {
        name: as_document(compare(sweep.evaluation, at["chosen"], at[name], ties=_TIES, seed=plan.seed))
        for name in plan.named()
    }
    return {"thresholds": found, "chosen_less": differences, "shared": sweep.shared}


def _judged(judgments: Judgments) -> dict[str, Any]:
    return {
        "participants": judgments.participants,
        "failed": list(judgments.failed),
        "unchecked": judgments.unchecked,
        "votes": len(judgments.ballots),
        "minimum_votes": judgments.minimum_votes,
        "pairs": len(judgments.pairs),
        "majority": judgments.judged,
        "tied": judgments.tied,
        "too_few": judgments.too_few,
    }


def _grid_csv(sweep: ThresholdSweep) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("tau_alpha", "tau_beta", "top_k", "agreement"))
    for (i, j, k), value in np.ndenumerate(sweep.accuracy):
        writer.writerow((sweep.tau_alphas[i], sweep.tau_betas[j], k + 1, float(value)))
    return out.getvalue()


def _pairs_csv(judgments: Judgments, sweep: ThresholdSweep) -> str:
    votes = {(pair.first, pair.second): (pair.votes_first, pair.votes_second) for pair in judgments.pairs}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("first", "second", "votes_first", "votes_second"))
    writer.writerows((*pair, *votes[pair]) for pair in sweep.tuning)
    return out.getvalue()
