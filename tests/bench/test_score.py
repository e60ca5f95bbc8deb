"""Runs of scores: what the rows hold, how they continue, what is looked for, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from crypsis.bench.score import (
    PROPOSALS,
    SCORES,
    ScorePlan,
    SeamCamSettings,
    category_of,
    finish_scoring,
    plan_score,
    read_rows,
    score_images,
)
from crypsis.bench.score_pictures import chosen_ranks
from crypsis.bench.work import Labor, Outcome
from crypsis.camouflage.optimal_transport import gmm_ot_score
from crypsis.camouflage.other_scores import camouflage_degree, reconstruction_fidelity
from crypsis.camouflage.seamcam import seamcam_score
from crypsis.datasets.masks import Item
from crypsis.errors import DatasetError, InputError, ModelError, PlanChangedError, UnknownNameError
from crypsis.io import read_image, write_image
from crypsis.models.segmenter import Description
from crypsis.report.pictures import read_score_pictures
from crypsis.types import Image, Proposals


class Halves:
    """Proposes the upper and the left half of every image; remembers what was looked for."""

    name = "halves"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def describe(self) -> Description:
        return {"observer": "halves"}

    def propose(self, image: Image, category: str) -> Proposals:
        self.asked.append(category)
        height, width = image.shape[:2]
        masks = np.zeros((2, height, width), np.bool_)
        masks[0, : height // 2] = True
        masks[1, :, : width // 2] = True
        boxes = np.array([[0, 0, width, height // 2], [0, 0, width // 2, height]], np.float64)
        return Proposals(np.array([1.0, 0.6]), np.array([0.3, 0.8]), masks, boxes)


@pytest.fixture
def data(make_set: Callable[..., Path]) -> Path:
    return make_set(6, height=96, width=128)


def scored(data: Path, folder: Path, **options: Any) -> tuple[ScorePlan, Outcome]:
    plan = plan_score(str(data), **{"observer": Halves(), **options})
    return plan, score_images(plan, folder)


def parts_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "parts").iterdir()}


def test_rows_hold_what_the_core_says(data: Path, tmp_path: Path) -> None:
    plan, outcome = scored(data, tmp_path / "run", scores=list(SCORES), species="owl")
    assert (outcome.units, outcome.left, outcome.images, outcome.failures, outcome.errors) == (2, 0, 6, (), ())
    assert set(outcome.seconds) == {"decode", "propose", *SCORES, "store", "total"}
    rows = read_rows(plan, tmp_path / "run")
    assert [row["image"] for row in rows] == [item.key for item in plan.dataset.items]
    sample = plan.dataset.load(plan.dataset.items[2])
    proposals = Halves().propose(sample.image, "owl")
    found = seamcam_score(proposals, sample.mask)
    row = rows[2]
    assert (row["seamcam"], row["kept"], row["best"]) == (found.score, list(found.kept), list(found.best))
    assert (row["by_top_k"], row["gains"], row["passed"]) == (list(found.by_top_k), list(found.gains), 2)
    assert (row["alpha"], row["beta"]) == ([1.0, 0.6], [0.3, 0.8])
    assert np.array_equal(row["boxes"], proposals.boxes)
    assert row["gmm-ot"] == gmm_ot_score(sample.image, sample.mask).score
    assert row["s_rf"] == reconstruction_fidelity(sample.image, sample.mask).score
    assert row["camouflage-degree"] == camouflage_degree(sample.image, sample.mask).score
    assert (row["species"], row["category"], row["object_pixels"]) == ("owl", "owl", sample.mask.sum())


def test_settings_reach_the_core(data: Path, tmp_path: Path) -> None:
    plan, _ = scored(data, tmp_path / "run", settings=SeamCamSettings(tau_alpha=0.7, tau_beta=0.2, top_k=3))
    row = read_rows(plan, tmp_path / "run")[0]
    assert (row["kept"], row["passed"], len(row["by_top_k"])) == ([0], 1, 3)
    plan, _ = scored(data, tmp_path / "none", settings=SeamCamSettings(tau_beta=0.9))
    row = read_rows(plan, tmp_path / "none")[0]
    assert row["seamcam"] == 1
    assert row["reasons"] == {"seamcam": "none of 2 proposals passes α ≥ 0.5 and β ≥ 0.9"}


def test_killed_and_continued_or_shared_among_workers_gives_the_same_bytes(data: Path, tmp_path: Path) -> None:
    options = {"observer": "embedded,segment=grabcut,limit=2", "scores": ["seamcam", "s_rf"], "species": "frog"}
    plan, _ = scored(data, tmp_path / "whole", **options)
    whole = parts_of(tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "half")
    (tmp_path / "half" / "parts" / "images-000004-000005.parquet").unlink()
    outcome = score_images(plan, tmp_path / "half")
    assert (outcome.images, parts_of(tmp_path / "half")) == (2, whole)
    assert score_images(plan, tmp_path / "half").images == 0
    outcome = score_images(plan, tmp_path / "two", labor=Labor(2))
    assert (outcome.images, outcome.errors, parts_of(tmp_path / "two")) == (6, (), whole)


def test_what_was_proposed_is_kept_and_can_be_scored_again(data: Path, tmp_path: Path) -> None:
    plan, _ = scored(data, tmp_path / "run")
    stored = f"proposals:{tmp_path / 'run' / PROPOSALS}"
    again, _ = scored(data, tmp_path / "again", observer=stored)
    first, second = (read_rows(p, tmp_path / n) for p, n in ((plan, "run"), (again, "again")))
    assert first == second
    assert not (tmp_path / "again" / PROPOSALS).exists()
    finish_scoring(again, tmp_path / "again")
    assert len(read_score_pictures(tmp_path / "again")) == 6
    (tmp_path / "run" / PROPOSALS / "animal-03.npz").unlink()
    with pytest.raises(ModelError, match=r"of 1 of 6 images there are no proposals \(animal-03\)"):
        plan_score(str(data), observer=stored)


def test_a_damaged_image_fails_alone_and_is_tried_again(data: Path, tmp_path: Path) -> None:
    good = (data / "Imgs" / "animal-01.png").read_bytes()
    (data / "Imgs" / "animal-01.png").write_bytes(b"no image")
    plan, outcome = scored(data, tmp_path / "run")
    assert [image for image, _ in outcome.failures] == ["animal-01"]
    assert len(read_rows(plan, tmp_path / "run")) == 5
    summary = finish_scoring(plan, tmp_path / "run", outcome.failures)
    assert (summary["scored"], summary["images"], list(summary["failed"])) == (5, 6, ["animal-01"])
    (data / "Imgs" / "animal-01.png").write_bytes(good)
    outcome = score_images(plan, tmp_path / "run")
    assert (outcome.images, outcome.failures) == (4, ())
    assert len(read_rows(plan, tmp_path / "run")) == 6


def test_an_empty_mask_and_one_of_another_size(data: Path, tmp_path: Path) -> None:
    write_image(data / "GT" / "animal-00.png", np.zeros((96, 128), np.uint8))
    write_image(data / "GT" / "animal-01.png", np.full((24, 32), 255, np.uint8))
    plan, outcome = scored(data, tmp_path / "run")
    reasons = dict(outcome.failures)
    assert "no object pixel" in reasons["animal-00"]
    assert "resize-mask" in reasons["animal-01"]
    plan, outcome = scored(data, tmp_path / "resized", on_size_mismatch="resize-mask")
    assert list(dict(outcome.failures)) == ["animal-00"]
    finish_scoring(plan, tmp_path / "resized")


def test_the_ranking_goes_from_visible_to_hidden(data: Path, tmp_path: Path) -> None:
    plan, _ = scored(data, tmp_path / "run", scores=["seamcam", "s_rf"])
    summary = finish_scoring(plan, tmp_path / "run")
    scores = [row["seamcam"] for row in summary["ranking"]]
    assert scores == sorted(scores)
    assert summary["scores"]["seamcam"]["lowest"] == scores[0]
    assert summary["scores"]["s_rf"]["images"] == 6
    rows = read_rows(plan, tmp_path / "run")
    assert summary["by_top_k"] == pytest.approx(np.mean([row["by_top_k"] for row in rows], axis=0))
    assert json.loads((tmp_path / "run" / "summary.json").read_text("utf-8")) == summary
    pictures = read_score_pictures(tmp_path / "run")
    assert list(pictures) == [row["image"] for row in summary["ranking"]]
    assert all(set(views) == {"proposals", "best"} for views in pictures.values())


def test_scores_of_pixels_need_no_observer(data: Path, tmp_path: Path) -> None:
    plan, outcome = scored(data, tmp_path / "run", scores=["s_rf"], observer="nobody")
    assert plan.identity()["observer"] == {}
    assert "propose" not in outcome.seconds
    summary = finish_scoring(plan, tmp_path / "run")
    assert (summary["by_top_k"], summary["ranking"][0].keys()) == (
        None, {"image", "species", "category", "s_rf", "reasons"}
    )  # fmt: skip
    assert all(set(views) == {"object"} for views in read_score_pictures(tmp_path / "run").values())


def test_a_score_that_is_not_defined_is_null_and_last(data: Path, tmp_path: Path) -> None:
    thin = np.zeros((96, 128), np.uint8)
    thin[20, 10:40] = 255
    write_image(data / "GT" / "animal-03.png", thin)
    plan, outcome = scored(data, tmp_path / "run", scores=["s_rf"])
    assert outcome.failures == ()
    summary = finish_scoring(plan, tmp_path / "run")
    last = summary["ranking"][-1]
    assert (last["image"], last["s_rf"]) == ("animal-03", None)
    assert "too thin" in last["reasons"]["s_rf"]
    assert summary["scores"]["s_rf"]["images"] == 5


@pytest.mark.parametrize(
    ("key", "species", "given", "category"),
    [
        ("owls/x", None, None, "owls"),
        ("owls/x", "BatFish", None, "bat fish"),
        ("owls/x", "BatFish", "Frog", "frog"),
        ("x", None, None, "animal"),
    ],
)
def test_what_is_looked_for(key: str, species: str | None, given: str | None, category: str) -> None:
    assert category_of(Item(key, Path("x"), Path("x"), species), given) == category


def test_names_reach_the_observer_and_doubts_are_told(data: Path, tmp_path: Path) -> None:
    for kind in ("Imgs", "GT"):
        (data / kind / "Snow_Leopard").mkdir()
        (data / kind / "animal-00.png").rename(data / kind / "Snow_Leopard" / "animal-00.png")
    halves = Halves()
    plan, _ = scored(data, tmp_path / "run", observer=halves)
    assert set(halves.asked) == {"animal", "snow leopard"}
    assert any("1 of 6 images show is taken from the name of their folder" in text for text in plan.warnings)
    assert any("5 of 6 images show is not known" in text for text in plan.warnings)
    assert plan_score(str(data), observer=halves, species="owl").warnings == ()
    species = {row["image"]: row["species"] for row in read_rows(plan, tmp_path / "run")}
    assert (species["Snow_Leopard/animal-00"], species["animal-01"]) == ("Snow_Leopard", None)


def test_names_that_no_file_can_have_are_refused_before_any_work(make_set: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_set(2)
    for part, suffix in (("Imgs", ".png"), ("GT", ".png")):
        (folder / part / f"animal-01{suffix}").rename(folder / part / f"animal 12:30{suffix}")
    with pytest.raises(InputError, match=r"stored under its name, and 'animal 12:30' cannot be"):
        plan_score(str(folder), species="owl")
    assert len(plan_score(str(folder), species="owl", scores=["s_rf"]).dataset) == 2


def test_a_threshold_below_what_an_observer_proposes_is_told(data: Path) -> None:
    floor = "embedded,score=0.2"
    assert any("nothing with a β below 0.2" in text for text in plan_score(str(data), observer=floor).warnings)
    enough = plan_score(str(data), observer=floor, settings=SeamCamSettings(tau_beta=0.2))
    assert not any("nothing with a β" in text for text in enough.warnings)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scores": []}, InputError, "No score was named"),
        ({"scores": ["seemcam"]}, UnknownNameError, "did you mean 'seamcam'"),
        ({"limit": 0}, InputError, "from 1 up"),
        ({"on_size_mismatch": "resize"}, UnknownNameError, "size policy"),
        ({"species": "?"}, InputError, "no name"),
        ({"observer": "embeded"}, UnknownNameError, "did you mean 'embedded'"),
        ({"settings": SeamCamSettings(tau_alpha=2)}, InputError, "tau_alpha"),
        ({"settings": SeamCamSettings(top_k=21)}, InputError, "top_k is 1 to 20"),
        ({"settings": SeamCamSettings(duplicate_iou=0)}, InputError, "duplicate_iou"),
    ],
)
def test_what_cannot_be_planned(data: Path, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plan_score(str(data), **{"observer": Halves(), **options})


def test_no_such_data() -> None:
    with pytest.raises(DatasetError):
        plan_score("nowhere")


def test_another_plan_or_changed_files_are_refused(data: Path, tmp_path: Path) -> None:
    plan, _ = scored(data, tmp_path / "run")
    with pytest.raises(PlanChangedError, match=r"tau_alpha: 0\.5 there, 0\.4 now"):
        score_images(replace(plan, settings=SeamCamSettings(tau_alpha=0.4)), tmp_path / "run")
    image = read_image(data / "Imgs" / "animal-02.png")
    write_image(data / "Imgs" / "animal-02.png", image[::-1].copy())
    with pytest.raises(PlanChangedError, match="animal-02"):
        score_images(plan, tmp_path / "run")


def test_an_unfinished_run_has_no_ranking(data: Path, tmp_path: Path) -> None:
    plan, _ = scored(data, tmp_path / "run")
    (tmp_path / "run" / "parts" / "images-000000-000003.parquet").unlink()
    with pytest.raises(InputError, match="give the score command again"):
        finish_scoring(plan, tmp_path / "run")


def test_nothing_could_be_scored(data: Path, tmp_path: Path) -> None:
    for path in (data / "Imgs").iterdir():
        path.write_bytes(b"")
    plan, _ = scored(data, tmp_path / "run")
    assert (
        pq.read_table(tmp_path / "run" / "parts" / "images-000000-000003.parquet")["status"].to_pylist()
        == ["failed"] * 4
    )
    with pytest.raises(InputError, match="no image could be scored"):
        finish_scoring(plan, tmp_path / "run")


@pytest.mark.parametrize("count", [1, 2, 5, 20, 39, 40, 41, 63, 1000])
def test_pictures_are_of_both_ends_and_between(count: int) -> None:
    ranks = chosen_ranks(count)
    assert ranks == sorted(set(ranks))
    assert {0, count - 1} <= set(ranks) <= set(range(count))
    assert len(ranks) == count if count <= 40 else 40 <= len(ranks) <= 62
