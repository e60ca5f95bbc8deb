"""A search for thresholds on a run of scores: what it finds, how it continues, and what is refused."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import known_search as known
from crypsis.bench.score import PROPOSALS, ScorePlan, SeamCamSettings, plan_score, read_rows, score_images
from crypsis.bench.sweep import SweepPlan, finish_sweep, plan_sweep, sweep_folder, sweep_images
from crypsis.bench.work import Labor, Outcome
from crypsis.camouflage.agreement import Vote, agreement, judge
from crypsis.camouflage.seamcam import seamcam_score
from crypsis.errors import InputError, UnknownNameError
from crypsis.models.segmenter import Description
from crypsis.types import Image, Proposals

COUNT = 10
GRID: dict[str, Any] = {"tau_alphas": known.ALPHAS, "tau_betas": known.BETAS}


class Knowing:
    """Proposes what is known of each image, which it tells by its gray."""

    name = "knowing"

    def describe(self) -> Description:
        return {"observer": "knowing"}

    def propose(self, image: Image, category: str) -> Proposals:
        return known.proposals(int(image[0, 0, 0]) - 10)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ScorePlan]:
    root = tmp_path_factory.mktemp("sweep")
    plan = plan_score(str(known.write_data(root, COUNT)), observer=Knowing())
    score_images(plan, root / "run")
    return root / "run", plan


@pytest.fixture
def run(made: tuple[Path, ScorePlan], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "run"))


@pytest.fixture
def plan(made: tuple[Path, ScorePlan]) -> SweepPlan:
    return planned(made[1])


def planned(run: ScorePlan, found: list[Vote] | None = None, **options: Any) -> SweepPlan:
    judgments = judge(known.votes(COUNT) if found is None else found)
    return plan_sweep(run, judgments, votes="votes.csv", **{**GRID, "pairs": 15, **options})


def searched(plan: SweepPlan, folder: Path, **options: Any) -> tuple[dict[str, Any], Outcome]:
    rows = read_rows(plan.run, folder)
    outcome = sweep_images(plan, folder, rows, **options)
    return finish_sweep(plan, folder, rows, outcome.failures), outcome


def lines_of(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text("utf-8").splitlines()))


def test_it_finds_the_thresholds_that_are_known_to_be_best(plan: SweepPlan, run: Path) -> None:
    found, outcome = searched(plan, run)
    assert (outcome.units, outcome.left, outcome.images, outcome.failures) == (COUNT, 0, COUNT, ())
    assert set(outcome.seconds) == {"decode", "load", "sweep", "store", "total"}
    chosen, paper = found["thresholds"]["chosen"], found["thresholds"]["paper"]
    assert (chosen["tau_alpha"], chosen["tau_beta"], chosen["top_k"]) == known.BEST
    assert (paper["tau_alpha"], paper["tau_beta"], paper["top_k"]) == (0.5, 0.1, 7)
    assert list(found["thresholds"]) == ["chosen", "paper"]
    assert chosen["on_tuning_pairs"] == chosen["on_evaluation_pairs"]["accuracy"] == 1
    assert chosen["on_evaluation_pairs"]["pairs"] == paper["on_evaluation_pairs"]["pairs"] == 45 - 15
    assert paper["on_evaluation_pairs"]["accuracy"] < 0.8
    difference = found["chosen_less"]["paper"]
    assert difference["difference"] == pytest.approx(1 - paper["on_evaluation_pairs"]["accuracy"])
    assert difference["bootstrap"]["pair"][0] > 0
    # only there: neither the neighbors in the grid nor a smaller K do as well
    accuracy = np.array(found["accuracy"])
    assert accuracy.shape == (3, 3, 12)
    assert np.argwhere(accuracy[:, :, -1] == 1).tolist() == [[1, 1]]
    assert accuracy[1, 1].tolist() == [0.5] + [1.0] * 11
    assert found["stored"] == {"least_alpha": 0.3, "least_beta": 0.15, "most": 4}
    assert found["images"] == {"voted": COUNT, "scored": COUNT, "failed": {}}
    assert json.loads((run / "sweep.json").read_text("utf-8")) == found


def test_no_tuning_pair_is_evaluated(plan: SweepPlan, run: Path) -> None:
    found, _ = searched(plan, run)
    tuning = {tuple(pair) for pair in found["tuning"]}
    assert len(tuning) == 15
    lines = lines_of(run / "tuning_pairs.csv")
    assert {(line["first"], line["second"]) for line in lines} == tuning
    assert {(line["votes_first"], line["votes_second"]) for line in lines} == {("0", "3")}
    # the paper's thresholds, scored one by one, on exactly the pairs that were not tuned on
    judgments = plan.judgments
    keep = np.array([(pair.first, pair.second) not in tuning for pair in judgments.pairs])
    items = plan.run.dataset.items
    truth = plan.run.dataset.load(items[0]).mask
    at = {item.key: seamcam_score(known.proposals(i), truth).score for i, item in enumerate(items)}
    expected = agreement(judgments.subset(keep), at)
    paper = found["thresholds"]["paper"]["on_evaluation_pairs"]
    assert (paper["right"], paper["ties"], paper["wilson"]) == (expected.right, expected.ties, list(expected.wilson))
    assert paper["bootstrap"]["image"] == list(expected.bootstrap["image"])


def test_the_table_has_every_combination(plan: SweepPlan, run: Path) -> None:
    found, _ = searched(plan, run)
    lines = lines_of(run / "sweep.csv")
    assert len(lines) == 3 * 3 * 12
    row = next(line for line in lines if (line["tau_alpha"], line["tau_beta"], line["top_k"]) == ("0.5", "0.1", "7"))
    assert float(row["agreement"]) == found["thresholds"]["paper"]["on_tuning_pairs"] == found["accuracy"][1][0][6]


def test_stopped_and_started_again_or_shared_among_workers_it_is_the_same(plan: SweepPlan, run: Path) -> None:
    whole = searched(plan, run)[0]
    files = {path.name: path.read_bytes() for path in (sweep_folder(plan, run) / "parts").iterdir()}
    for name in list(files)[:4]:
        (sweep_folder(plan, run) / "parts" / name).unlink()
    (sweep_folder(plan, run) / "parts" / list(files)[5]).write_bytes(b"PAR1")  # cut by a power failure
    with pytest.raises(InputError, match="cannot be read"):
        finish_sweep(plan, run, read_rows(plan.run, run))
    again, outcome = searched(plan, run)
    assert (again, outcome.images) == (whole, 5)
    stopped = sweep_images(plan, run, read_rows(plan.run, run), labor=Labor(minutes=1e-9))
    assert (stopped.left, stopped.images) == (0, 0)  # all is there
    shutil.rmtree(run / "sweep")
    assert sweep_images(plan, run, read_rows(plan.run, run), labor=Labor(minutes=1e-9)).left == COUNT
    assert {path.name: path.read_bytes() for path in (sweep_folder(plan, run) / "parts").glob("*")} == {}
    seen: list[tuple[int, int]] = []
    assert searched(plan, run, progress=lambda done, total, receipt: seen.append((done, total)))[0] == whole
    assert seen == [(done, COUNT) for done in range(COUNT + 1)]
    assert {path.name: path.read_bytes() for path in (sweep_folder(plan, run) / "parts").iterdir()} == files


def test_two_workers_do_the_same(made: tuple[Path, ScorePlan], run: Path, tmp_path: Path) -> None:
    root = made[0].parent
    stored = plan_score(str(root / "set"), observer=f"proposals:{root / 'proposals'}")
    score_images(stored, tmp_path / "stored")
    one, _ = searched(planned(made[1]), run)
    two, outcome = searched(planned(stored), tmp_path / "stored", labor=Labor(2))
    assert (outcome.errors, outcome.left) == ((), 0)
    assert {**two, "observer": None} == {**one, "observer": None}


def test_new_votes_use_what_is_there_and_a_new_grid_does_not(plan: SweepPlan, run: Path) -> None:
    few = [vote for vote in known.votes(COUNT) if known.key(9) not in (vote.left, vote.right)]
    first = planned(plan.run, few)
    assert searched(first, run)[1].images == COUNT - 1
    assert searched(plan, run)[1].images == 1
    assert searched(planned(plan.run, seed=3), run)[1].images == 0
    assert searched(planned(plan.run, tau_alphas=(0.3,)), run)[1].images == COUNT
    assert searched(plan, run)[1].images == 0


def test_the_papers_thresholds_and_the_runs_are_always_among_them(made: tuple[Path, ScorePlan], tmp_path: Path) -> None:
    own = replace(made[1], settings=SeamCamSettings(tau_alpha=0.45, tau_beta=0.25, top_k=14, duplicate_iou=0.9))
    score_images(own, tmp_path / "run")
    plan = planned(own, tau_alphas=(0.9, 0.1), tau_betas=(0.3,), top_k=3)
    assert (plan.tau_alphas, plan.tau_betas, plan.top_k) == ((0.1, 0.45, 0.5, 0.9), (0.1, 0.25, 0.3), 14)
    found, _ = searched(plan, tmp_path / "run")
    assert list(found["thresholds"]) == ["chosen", "paper", "run"]
    rows = {row["image"]: row["seamcam"] for row in read_rows(own, tmp_path / "run")}
    tuning = {tuple(pair) for pair in found["tuning"]}
    keep = np.array([(pair.first, pair.second) not in tuning for pair in plan.judgments.pairs])
    expected = agreement(plan.judgments.subset(keep), rows)
    assert found["thresholds"]["run"]["on_evaluation_pairs"]["right"] == expected.right
    assert found["settings"]["duplicate_iou"] == 0.9


def test_pairs_that_share_an_image_can_be_left_out(plan: SweepPlan, run: Path) -> None:
    found, _ = searched(replace(plan, pairs=2, disjoint_images=True), run)
    seen = {name for pair in found["tuning"] for name in pair}
    left = [pair for pair in plan.judgments.pairs if not seen & {pair.first, pair.second}]
    assert found["thresholds"]["chosen"]["on_evaluation_pairs"]["pairs"] == len(left)
    assert found["shared"] == 45 - 2 - len(left)
    with pytest.raises(InputError, match="Every pair shares an image with one of the 15 tuning pairs"):
        searched(replace(plan, disjoint_images=True), run)


def test_images_that_fail_leave_their_pairs_out(plan: SweepPlan, run: Path) -> None:
    damaged = run / PROPOSALS / f"{known.key(3)}.npz"
    kept = damaged.read_bytes()
    damaged.write_bytes(kept[:-20])
    found, outcome = searched(plan, run)
    assert list(found["images"]["failed"]) == [known.key(3)]
    assert found["images"]["scored"] == COUNT - 1
    assert dict(outcome.failures).keys() == {known.key(3)}
    chosen = found["thresholds"]["chosen"]["on_evaluation_pairs"]
    assert (chosen["pairs"], chosen["missing"]) == (45 - 9 - 15, 9)
    damaged.write_bytes(kept)
    found, outcome = searched(plan, run)  # tried again
    assert (outcome.images, found["images"]["failed"]) == (1, {})


def test_proposals_that_are_gone(plan: SweepPlan, run: Path) -> None:
    (run / PROPOSALS / f"{known.key(3)}.npz").unlink()
    with pytest.raises(
        InputError, match=r"of 1 image of 10 that were voted on, what was proposed is gone \(animal-03\)"
    ):
        searched(plan, run)
    shutil.rmtree(run / PROPOSALS)
    with pytest.raises(InputError, match=r"proposals is gone, .*delete .*parts too and give the same command again"):
        searched(plan, run)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pairs": 45}, InputError, r"45 pairs of 45 .* \(0 are tied, 0 have fewer than 3 votes\); tuning on 45"),
        ({"pairs": 0}, InputError, "is at least 1"),
        ({"found": []}, InputError, "0 pairs of 0 have a majority"),
        ({"tau_alphas": (1.2,)}, InputError, "tau_alpha is a threshold in"),
        ({"tau_betas": (-0.1,)}, InputError, "tau_beta is a threshold in"),
        ({"top_k": 21}, InputError, "top_k is 1 to 20"),
        ({"top_k": 0}, InputError, "top_k is 1 to 20"),
        (
            {"found": [*known.votes(3), *(Vote(who, "animal_04", "animal-01", "left") for who in "abc")]},
            UnknownNameError,
            r"no image in the data set 'animal_04'; did you mean 'animal-0\d'\? votes.csv is about 1 such image",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_planned(
    made: tuple[Path, ScorePlan], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        planned(made[1], **options)


def test_a_run_without_seamcam_or_with_a_limit(made: tuple[Path, ScorePlan]) -> None:
    data = str(made[0].parent / "set")
    with pytest.raises(InputError, match="this run scores s_rf, gmm-ot; name a new run folder and --score seamcam"):
        planned(plan_score(data, scores=["s_rf", "gmm-ot"]))
    with pytest.raises(UnknownNameError, match=r"data set \(--limit took 4 of its images\)"):
        planned(plan_score(data, observer=Knowing(), limit=4))
