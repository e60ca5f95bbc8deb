"""How well hidden the animals of a data set are: every image × score; interruptible and continued.

RUN/run.json               the plan, and the versions and machine of each session
RUN/parts/*.parquet        one per unit of work; a part that is there is done
RUN/proposals/<key>.npz    what the observer proposed, which `proposals:RUN/proposals` scores again
RUN/timing.jsonl           CPU seconds of each unit by stage
RUN/summary.json           all images from the most visible to the best hidden, written when all is done
RUN/pictures/              proposals and best subset of some of them
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..camouflage.optimal_transport import gmm_ot_score
from ..camouflage.other_scores import camouflage_degree, reconstruction_fidelity
from ..camouflage.seamcam import seamcam_score
from ..datasets.masks import SIZE_POLICIES, Item, MaskDataset, open_masks
from ..errors import CrypsisError, ImageError, InputError, ModelError, UnknownNameError
from ..io import file_digest, read_image
from ..models.predictions import refuse_escape
from ..models.proposals import (
    ANY_ANIMAL,
    PROPOSERS,
    ProposalSource,
    StoredProposals,
    clean_category,
    load_proposer,
    looked_for,
)
from ..models.saved_proposals import SavedProposals, save_proposals
from ..models.segmenter import parse_specification
from ..results import PARTS
from ..types import Image, Mask, Proposals, Sample
from . import store
from .plan import UNIT_IMAGES, Unit
from .score_pictures import make_score_pictures
from .work import Clock, Labor, Outcome, Progress, Receipt, do_units, make_part

__all__ = [
    "PROPOSALS",
    "ROW_SCHEMA",
    "SCORES",
    "SCORE_SCHEMA",
    "SUMMARY_SCHEMA",
    "ScorePlan",
    "SeamCamSettings",
    "category_of",
    "finish_scoring",
    "plan_score",
    "read_rows",
    "score_images",
    "stored_proposals",
]

SCORE_SCHEMA = "crypsis.score/1"
SUMMARY_SCHEMA = "crypsis.scores/1"
PROPOSALS = "proposals"
"""Folder, in that of a run, of what the observer proposed."""

SEAMCAM = "seamcam"


def _gmm_ot(image: Image, mask: Mask) -> tuple[float, str | None]:
    found = gmm_ot_score(image, mask)
    return found.score, found.reason


def _s_rf(image: Image, mask: Mask) -> tuple[float, str | None]:
    found = reconstruction_fidelity(image, mask)
    return found.score, found.reason


def _degree(image: Image, mask: Mask) -> tuple[float, str | None]:
    found = camouflage_degree(image, mask)
    return found.score, found.reason


_OF_PIXELS: dict[str, Callable[[Image, Mask], tuple[float, str | None]]] = {
    "gmm-ot": _gmm_ot,
    "s_rf": _s_rf,
    "camouflage-degree": _degree,
}

SCORES: dict[str, str] = {
    SEAMCAM: "SeamCam's ζ: one minus the best overlap with the object that a union of an observer's proposals reaches",
    "gmm-ot": "optimal transport between the colors of the object and of its surroundings (not CamOT)",
    "s_rf": "share of the object whose colors patches of its surroundings rebuild (Lamdouar et al. 2023)",
    "camouflage-degree": "likeness to the nearest patches around, mean over the object (Context-measure)",
}
"""Scores by name, with what they are; higher is better hidden in all, between 0 and 1."""

ROW_SCHEMA = pa.schema(
    [
        ("image", pa.string()),
        ("species", pa.string()),
        ("category", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("image_digest", pa.string()),
        ("mask_digest", pa.string()),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("object_pixels", pa.int64()),
        *((name, pa.float64()) for name in SCORES),
        ("reasons", pa.map_(pa.string(), pa.string())),
        ("boxes", pa.list_(pa.list_(pa.float64(), 4))),
        ("alpha", pa.list_(pa.float64())),
        ("beta", pa.list_(pa.float64())),
        ("passed", pa.int32()),
        ("kept", pa.list_(pa.int32())),
        ("best", pa.list_(pa.int32())),
        ("gains", pa.list_(pa.float64())),
        ("by_top_k", pa.list_(pa.float64())),
    ]
)
"""Columns of a part, one row per image. `species` is the data set's name and `category` what was looked for. A score
that was not asked for or is not defined is null, `reasons` saying why, also why a detectability is 0. The columns from
`boxes` on are of SeamCam (see `crypsis.camouflage.seamcam.SeamCamScore`): all proposals' boxes (x1, y1, x2, y2), α and
β; which took part, `kept`, and which make the best union, `best`, as positions among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeamCamSettings:
    """What `crypsis.camouflage.seamcam.seamcam_score` takes beside proposals and truth; the paper's values."""

    tau_alpha: float = 0.5
    tau_beta: float = 0.1
    top_k: int = 7
    duplicate_iou: float | None = None


@dataclass(frozen=True, kw_only=True)
class ScorePlan:
    """Scores of a data set: every image × score.

    Attributes:
        data: the data set as the user named it.
        dataset: the images and masks (after `limit`).
        scores: names of `SCORES`; images are ranked by the first.
        species: what all images show, or None for what the data set says of each.
        observer: a specification, or an object for runs in one process; not used without SeamCam.
        description: everything that identifies the observer; empty without SeamCam.
        settings: of SeamCam.
        limit: number of images asked for, or None for all.
        on_size_mismatch: `error`, or `resize-mask`.
        warnings: what a user should know before trusting numbers.
    """

    data: str
    dataset: MaskDataset = field(repr=False)
    scores: tuple[str, ...] = (SEAMCAM,)
    species: str | None = None
    observer: str | ProposalSource | StoredProposals = "embedded"
    description: Mapping[str, Any] = field(default_factory=dict, repr=False)
    settings: SeamCamSettings = field(default_factory=SeamCamSettings)
    limit: int | None = None
    on_size_mismatch: str = "error"
    warnings: tuple[str, ...] = ()

    def units(self) -> list[Unit]:
        """Return the units of work, in a fixed order."""
        items = self.dataset.items
        chunks = [items[start : start + UNIT_IMAGES] for start in range(0, len(items), UNIT_IMAGES)]
        return [
            Unit(f"images-{k * UNIT_IMAGES:06d}-{k * UNIT_IMAGES + len(chunk) - 1:06d}", tuple(chunk))
            for k, chunk in enumerate(chunks)
        ]

    def identity(self) -> dict[str, Any]:
        """Return what decides the results, as JSON values; two runs with the same identity agree."""
        return {
            "dataset": {
                "name": self.dataset.name,
                "layout": self.dataset.layout,
                "images": len(self.dataset),
                "keys_sha256": self.dataset.fingerprint(),
            },
            "scores": list(self.scores),
            "species": self.species,
            "observer": dict(self.description),
            "seamcam": asdict(self.settings) if SEAMCAM in self.scores else None,
            "limit": self.limit,
            "on_size_mismatch": self.on_size_mismatch,
            "unit_images": UNIT_IMAGES,
        }


def plan_score(
    data: str,
    *,
    scores: Sequence[str] = (SEAMCAM,),
    species: str | None = None,
    observer: str | ProposalSource | StoredProposals = "embedded",
    settings: SeamCamSettings | None = None,
    split: str = "test",
    limit: int | None = None,
    on_size_mismatch: str = "error",
    include_noncam: bool = False,
    allow_unpaired: bool = False,
) -> ScorePlan:
    """Plan to score how well hidden the animals of a data set are.

    The observer is loaded once here and tried on one image; stored proposals are checked to be all there.

    Args:
        data: `demo`, or the path of a folder or manifest; see `crypsis.datasets.masks.open_masks`.
        scores: names of `SCORES`.
        species: what all images show; None for what the data set says of each: the manifest, the file names of COD10K,
            or else the folder that an image lies in.
        observer: a specification such as `embedded` or `proposals:DIR`; see `crypsis.models.proposals.load_proposer`.
        settings: of SeamCam.
        split: `test` or `train`, where the layout has both.
        limit: take only this many images.
        on_size_mismatch: `error` or `resize-mask`.
        include_noncam: keep COD10K's images without camouflaged objects.
        allow_unpaired: go on when images or masks lack their partner.

    Raises:
        InputError: something that cannot be used as given; the message names it.
    """
    chosen = tuple(dict.fromkeys(scores))
    if not chosen:
        raise InputError("No score was named; try seamcam.")
    for name in chosen:
        if name not in SCORES:
            raise UnknownNameError.among("score", name, SCORES)
    if limit is not None and limit < 1:
        raise InputError(f"A limit is a number of images from 1 up; got {limit}.")
    if on_size_mismatch not in SIZE_POLICIES:
        raise UnknownNameError.among("size policy", on_size_mismatch, SIZE_POLICIES)
    settings = settings or SeamCamSettings()
    if species is not None:
        clean_category(species)
    dataset = open_masks(data, split=split, include_noncam=include_noncam, allow_unpaired=allow_unpaired)
    if limit is not None:
        dataset = dataset.limit(limit)
    description: Mapping[str, Any] = {}
    warnings = list(dataset.warnings)
    if SEAMCAM in chosen:
        _check_settings(settings)
        source = load_proposer(observer) if isinstance(observer, str) else observer
        _check_names(dataset.items)
        _try(source, dataset, species)
        description = {"name": source.name, **source.describe()}
        warnings += _doubts(dataset.items, species)
        warnings += _cut_names(source, dataset.items, species)
        floor = description.get("score")
        if isinstance(floor, float) and floor > settings.tau_beta:
            warnings.append(
                f"{source.name} proposes nothing with a β below {floor:g} (its option score=), so that τβ = "
                f"{settings.tau_beta:g} does the same as {floor:g}."
            )
        if description.get("alpha_never_above_beta") and settings.tau_alpha >= settings.tau_beta:
            warnings.append(
                f"With alpha={description['alpha']} no α is above its β: with τβ ≤ τα, τβ drops nothing that τα keeps."
            )
    return ScorePlan(
        data=data,
        dataset=dataset,
        scores=chosen,
        species=species,
        observer=observer,
        description=description,
        settings=settings,
        limit=limit,
        on_size_mismatch=on_size_mismatch,
        warnings=tuple(warnings),
    )


def _check_settings(settings: SeamCamSettings) -> None:
    """Refuse thresholds before any work, by the core's own checks."""
    nothing = Proposals(np.zeros(0), np.zeros(0), np.zeros((0, 1, 1), np.bool_))
    seamcam_score(nothing, np.ones((1, 1), np.bool_), **asdict(settings))


def _check_names(items: Sequence[Item]) -> None:
    """Refuse images whose names cannot be those of files everywhere: what is proposed is stored under them."""
    for item in items:
        try:
            refuse_escape(item.key)
        except ModelError:
            raise InputError(
                f"{item.image}: what is proposed for an image is stored under its name, and {item.key!r} cannot be the "
                'name of a file everywhere (no \\ : " < > | ? *); rename it and its mask.'
            ) from None


def _try(source: ProposalSource | StoredProposals, dataset: MaskDataset, species: str | None) -> None:
    """Find out before any work whether an observer can be used at all.

    Raises:
        ModelError: it fails on an image, or proposals are missing.
    """
    if isinstance(source, StoredProposals):
        missing = source.check([item.key for item in dataset.items])
        if missing:
            shown = ", ".join(missing[:3])
            raise ModelError(
                f"{source.name}: of {len(missing):,} of {len(dataset):,} images there are no proposals ({shown}"
                f"{' …' if len(missing) > 3 else ''}); an image without any needs a file with none."
            )
        return
    for item in dataset.items:
        try:
            image = read_image(item.image)
        except ImageError:
            continue  # counted and reported when its turn comes
        source.propose(image, category_of(item, species))
        return


def _doubts(items: Sequence[Item], species: str | None) -> list[str]:
    if species is not None:
        return []
    unnamed = [item for item in items if item.species is None]
    nameless = sum(1 for item in unnamed if not _folder_of(item))
    doubts = []
    if len(unnamed) > nameless:
        doubts.append(
            f"What {len(unnamed) - nameless:,} of {len(items):,} images show is taken from the name of their folder."
        )
    if nameless:
        doubts.append(
            f"What {nameless:,} of {len(items):,} images show is not known, so {ANY_ANIMAL!r} is looked for there; "
            "name it (--species), or list it in a manifest."
        )
    return doubts


def _cut_names(source: ProposalSource | StoredProposals, items: Sequence[Item], species: str | None) -> list[str]:
    """Say which names are too long for what reads them."""
    cut = {}
    for item in items:
        with contextlib.suppress(InputError):  # told when its turn comes
            name = category_of(item, species)
            if (asked := looked_for(source, name)) != name:
                cut[name] = asked
    return [f"{source.name}: {name!r} is too long; {asked!r} is looked for." for name, asked in sorted(cut.items())]


def _folder_of(item: Item) -> str:
    return PurePosixPath(item.key).parent.name


def category_of(item: Item, species: str | None = None) -> str:
    """Return what is looked for in an image.

    Args:
        item: the image.
        species: what all images show; None for what the data set says of this one, or else the name of its folder,
            or else `animal`.

    Raises:
        InputError: the name has no letter or digit.
    """
    return clean_category(species or item.species or _folder_of(item) or ANY_ANIMAL)


def score_images(
    plan: ScorePlan, folder: Path, *, labor: Labor | None = None, progress: Progress | None = None
) -> Outcome:
    """Do what is left of `plan` in `folder`.

    Killed at any moment and called again, it goes on; images that could not be scored are tried again.

    Args:
        plan: what to do.
        folder: the run folder; made if absent.
        labor: who does it; this process alone if None.
        progress: told after each unit.

    Returns:
        How it ended; stages are `decode`, `propose`, the scores by name, and `store`.

    Raises:
        InputError: the folder holds other things.
        PlanChangedError: the folder holds another plan, or images or masks changed since they were scored.
        IncompleteError: a worker died, or the disk is full.
    """
    store.claim_folder(
        folder,
        "run.json",
        schema=SCORE_SCHEMA,
        identity=plan.identity(),
        session=store.session_of(plan.data),
        what="run of scores",
        option="--out",
    )
    return do_units(
        folder,
        plan.units(),
        partial(_Scorer, plan, folder),
        columns=("image", "image_digest", "mask_digest"),
        files_now=_files_now,
        labor=labor,
        progress=progress,
    )


def _files_now(unit: Unit) -> Iterable[tuple[Any, ...]]:
    return [(item.key, file_digest(item.image), file_digest(item.mask)) for item in unit.items]


class _Scorer:
    """Scores units in one process."""

    def __init__(self, plan: ScorePlan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.source: ProposalSource | StoredProposals | None = None
        if SEAMCAM in plan.scores:
            self.source = load_proposer(plan.observer) if isinstance(plan.observer, str) else plan.observer

    def __call__(self, unit: Unit) -> Receipt:
        return make_part(self.folder, unit, ROW_SCHEMA, partial(self._rows, unit))

    def _rows(self, unit: Unit, clock: Clock) -> tuple[list[dict[str, Any]], Iterable[tuple[str, str]]]:
        rows = [self._score(item, clock) for item in unit.items]
        return rows, [(row["image"], row["error"]) for row in rows if row["status"] == "failed"]

    def _score(self, item: Item, clock: Clock) -> dict[str, Any]:
        """Return the row of one image."""
        plan = self.plan
        row: dict[str, Any] = {
            "image": item.key,
            "species": plan.species or item.species or _folder_of(item) or None,
            "image_digest": file_digest(item.image),
            "mask_digest": file_digest(item.mask),
        }
        reasons: list[tuple[str, str]] = []
        try:
            row["category"] = looked_for(self.source, category_of(item, plan.species))
            with clock("decode"):
                sample = plan.dataset.load(item, on_size_mismatch=plan.on_size_mismatch)
            height, width = sample.mask.shape
            found = {"height": height, "width": width, "object_pixels": int(sample.mask.sum()), "status": "ok"}
            for name in plan.scores:
                if name == SEAMCAM:
                    found |= self._seamcam(sample, row["category"], clock, reasons)
                    continue
                with clock(name):
                    score, reason = _OF_PIXELS[name](sample.image, sample.mask)
                found[name] = None if math.isnan(score) else score
                if reason:
                    reasons.append((name, reason))
        except CrypsisError as error:
            return row | {"status": "failed", "error": str(error)}
        return row | found | {"reasons": reasons}

    def _seamcam(self, sample: Sample, category: str, clock: Clock, reasons: list[tuple[str, str]]) -> dict[str, Any]:
        with clock("propose"):
            proposals = _proposals(self.source, sample, category)
        with clock(SEAMCAM):
            found = seamcam_score(proposals, sample.mask, **asdict(self.plan.settings))
        if isinstance(self.source, ProposalSource):
            with clock("store"):
                save_proposals(self.folder / PROPOSALS, sample.key, proposals)
        if found.reason:
            reasons.append((SEAMCAM, found.reason))
        return {
            SEAMCAM: found.score,
            "boxes": None if proposals.boxes is None else proposals.boxes.astype(float).tolist(),
            "alpha": proposals.alpha.tolist(),
            "beta": proposals.beta.tolist(),
            "passed": found.passed,
            "kept": list(found.kept),
            "best": list(found.best),
            "gains": list(found.gains),
            "by_top_k": list(found.by_top_k),
        }


def _proposals(source: ProposalSource | StoredProposals | None, sample: Sample, category: str) -> Proposals:
    if isinstance(source, StoredProposals):
        height, width = sample.mask.shape
        return source.load(sample.key, (height, width))
    if source is None:
        raise ModelError("SeamCam needs an observer.")
    return source.propose(sample.image, category)


def stored_proposals(plan: ScorePlan, folder: Path) -> StoredProposals:
    """Return all that was proposed for the images of a run, whatever thresholds it passes.

    Raises:
        InputError: the folder of the run holds no proposals.
        ModelError: the folder that the plan names is gone.
    """
    observer = plan.observer
    if isinstance(observer, str) and parse_specification(observer, PROPOSERS).kind == "proposals":
        observer = load_proposer(observer)
    if isinstance(observer, StoredProposals):
        return observer
    if not (folder / PROPOSALS).is_dir():
        raise InputError(
            f"{folder / PROPOSALS} is gone, and with it what the observer proposed; delete {folder / PARTS} too and "
            "give the same command again to make both anew."
        )
    return SavedProposals(folder / PROPOSALS)


def read_rows(plan: ScorePlan, folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all images that were scored, in the order of their keys; see `ROW_SCHEMA`.

    Raises:
        InputError: a part is missing or damaged, or no image could be scored.
    """
    rows: list[dict[str, Any]] = []
    failure = ""
    for unit in plan.units():
        file = folder / PARTS / f"{unit.name}.parquet"
        try:
            part = pq.read_table(file)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{file}: cannot be read ({error}); give the score command again.") from error
        for row in part.to_pylist():
            if row["status"] == "ok":
                rows.append({**row, "reasons": dict(row["reasons"] or ())})
            else:
                failure = failure or f"{row['image']}: {row['error']}"
    if not rows:
        raise InputError(f"{folder}: no image could be scored ({failure}).")
    return rows


def finish_scoring(plan: ScorePlan, folder: Path, failures: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """Rank the images of a run whose parts are there, write `summary.json` and the pictures, and return the summary.

    Images are ranked by the first of the plan's scores, from the most visible on; equal ones by the others, then by
    key. Images without that score come last.

    Raises:
        InputError: a part is missing or damaged, or no image could be scored.
    """
    rows = read_rows(plan, folder)

    def place(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return (*((row[name] is None, row[name] or 0.0) for name in plan.scores), row["image"])

    rows.sort(key=place)
    stored = stored_proposals(plan, folder) if SEAMCAM in plan.scores else None
    make_score_pictures(folder, plan.dataset, rows, stored, on_size_mismatch=plan.on_size_mismatch)
    summary = {
        "schema": SUMMARY_SCHEMA,
        "images": len(plan.dataset),
        "scored": len(rows),
        "failed": dict(failures),
        "scores": {name: _spread([row[name] for row in rows if row[name] is not None]) for name in plan.scores},
        "by_top_k": _mean_by_top_k(rows) if SEAMCAM in plan.scores else None,
        "ranking": [_ranked(row, plan.scores) for row in rows],
    }
    store.write_json(folder / "summary.json", summary)
    return summary


def _ranked(row: Mapping[str, Any], scores: Sequence[str]) -> dict[str, Any]:
    shown = {key: row[key] for key in ("image", "species", "category", *scores)}
    shown["reasons"] = row["reasons"]
    if row["alpha"] is not None:
        shown |= {"proposals": len(row["alpha"]), "passed": row["passed"], "best": len(row["best"])}
    return shown


def _spread(values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return {"images": 0, "mean": None, "median": None, "lowest": None, "highest": None}
    return {
        "images": len(values),
        "mean": statistics.fmean(values),
        "median": statistics.median(values),
        "lowest": min(values),
        "highest": max(values),
    }


def _mean_by_top_k(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    return [statistics.fmean(values) for values in zip(*(row["by_top_k"] for row in rows), strict=True)]
