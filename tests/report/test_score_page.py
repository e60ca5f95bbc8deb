"""The page of a run of scores and its CSV, from numbers that are known."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parsed_page import Page

from crypsis.camouflage.vote_files import read_scores
from crypsis.errors import InputError
from crypsis.io import encode_image
from crypsis.report.score_page import build_score_report, score_tables, scores_csv

PLAN = {
    "dataset": {"name": "hills", "layout": "Imgs + GT", "images": 5, "keys_sha256": "abc"},
    "scores": ["seamcam", "s_rf"],
    "species": None,
    "observer": {"name": "embedded", "observer": "embedded", "segment": "grabcut"},
    "seamcam": {"tau_alpha": 0.5, "tau_beta": 0.1, "top_k": 3, "duplicate_iou": None},
    "limit": None,
}
SESSION = {"started": "2026-01-01T00:00:00+00:00", "data": "/secret/hills", "versions": {}, "machine": {}}


def ranked(image: str, species: str | None, zeta: float, s_rf: float | None, **more: Any) -> dict[str, Any]:
    row = {"image": image, "species": species, "category": species or "animal", "seamcam": zeta, "s_rf": s_rf}
    return {**row, "reasons": {}, "proposals": 9, "passed": 4, "best": 2, **more}


def spread(mean: float | None, images: int) -> dict[str, Any]:
    return {"images": images, "mean": mean, "median": mean, "lowest": mean, "highest": mean}


RANKING = [
    ranked("<b>a</b>", "owl", 0.1, 0.25),
    ranked("c,\"x\"", "frog", 0.5, None, reasons={"s_rf": "the object is too thin"}),
    ranked("b", "owl", 0.7, 0.5),
    ranked("d", None, 1.0, 0.75, reasons={"seamcam": "no proposals"}),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    (run / "pictures").mkdir(parents=True)
    write(run / "run.json", {"schema": "crypsis.score/1", "plan": PLAN, "sessions": [SESSION]})
    summary = {
        "schema": "crypsis.scores/1",
        "images": 5,
        "scored": 4,
        "failed": {"e": "e.png: <damaged>"},
        "scores": {"seamcam": spread(0.575, 4), "s_rf": spread(0.5, 3)},
        "by_top_k": [0.2, 0.3, 0.4],
        "ranking": RANKING,
    }
    write(run / "summary.json", summary)
    lines = [{"unit": "a", "propose": 1.5, "seamcam": 0.5, "total": 2.0}]
    (run / "timing.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    picture = encode_image(np.full((8, 9, 3), 120, np.uint8), ".webp")
    images = []
    for index, row in enumerate(RANKING[:3]):
        files = {view: f"rank-{index:06d}-{view}.webp" for view in ("proposals", "best")}
        for name in files.values():
            (run / "pictures" / name).write_bytes(picture)
        images.append({"image": row["image"], "rank": index, "files": files})
    (run / "pictures" / "rank-000002-best.webp").unlink()
    write(run / "pictures" / "index.json", {"images": images})
    return run


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), "utf-8")


def changed(folder: Path, name: str, **values: object) -> None:
    write(folder / name, {**json.loads((folder / name).read_text("utf-8")), **values})


def test_the_page_ranks_and_shows(folder: Path) -> None:
    html = build_score_report(folder)
    page = Page(html)
    assert [a["id"] for a in page.all("section")] == ["summary", "ranking", "tables", "proposals", "made"]
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    assert len(page.classed("drop")) == 3
    words = page.words
    places = [words.index(text) for text in ("1. <b>a</b>", '2. c,"x"', "3. b")]
    assert places == sorted(places)
    assert "1 more are in the tables alone" in words
    assert "missing or damaged" in words
    assert len(page.all("img")) == 5
    assert "S_Rf: the object is too thin" in words
    assert "4 of 9 proposals pass, 2 make the best union" in words
    assert "25% 1 of 4 images have no proposal that overlaps" in words
    assert "far weaker than that of SeamCam’s paper" in words
    assert "1 failed" in words
    assert "375 ms an image, 75%" in words
    assert json.loads(page.data["crypsis-data"])["summary"]["ranking"][2]["seamcam"] == 0.7


def test_it_loads_nothing_leaks_no_folder_and_is_always_the_same(folder: Path) -> None:
    html = build_score_report(folder)
    for _, attributes in Page(html).tags:
        assert (attributes.get("src") or "data:").startswith("data:")
        assert not any(name.startswith("on") for name in attributes)
    assert "/secret" not in html
    assert "<b>a</b>" not in html
    assert build_score_report(folder) == html


def test_another_observer_and_no_pictures(folder: Path) -> None:
    changed(folder, "run.json", plan={**PLAN, "observer": {"name": "dino", "observer": "grounding-dino"}})
    (folder / "pictures" / "index.json").unlink()
    (folder / "timing.jsonl").unlink()
    words = Page(build_score_report(folder, title="Mine")).words
    assert "far weaker" not in words
    assert "as dino sees them" in words
    assert "No pictures were kept." in words
    assert "No times were kept." in words
    assert "Mine" in words


def test_the_csv_is_what_agreement_reads(folder: Path, tmp_path: Path) -> None:
    text = scores_csv(folder)
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["image", "species", "seamcam", "s_rf"]
    assert [row[0] for row in rows[1:]] == ["<b>a</b>", "b", 'c,"x"', "d"]
    (tmp_path / "scores.csv").write_text(text, "utf-8")
    found = read_scores(tmp_path / "scores.csv")
    assert found.scores["seamcam"] == {"<b>a</b>": 0.1, "b": 0.7, 'c,"x"': 0.5, "d": 1.0}
    assert found.scores["s_rf"] == {"<b>a</b>": 0.25, "b": 0.5, "d": 0.75}
    assert found.species == {"<b>a</b>": "owl", "b": "owl", 'c,"x"': "frog"}
    assert found.ignored == ()


def test_tables(folder: Path) -> None:
    overall, species, images = score_tables(folder)
    assert [row[0] for row in overall.rows] == ["SeamCam ζ", "S_Rf"]
    assert [row[0] for row in species.rows] == ["owl", "frog", "not known"]
    assert "| owl | 2 | 0.400 | 0.375 |" in species.markdown()
    assert "| frog | 1 | 0.500 | – |" in species.markdown()
    assert len(images.rows) == 4


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("run.json", {"schema": "crypsis.score/9"}, "not of a run of scores"),
        ("summary.json", {"schema": None}, "not of a run of scores"),
        ("summary.json", {"ranking": [{"image": "a"}]}, "damaged"),
        ("summary.json", {"ranking": [ranked("a", "owl", float("inf"), None)]}, "damaged"),
        ("summary.json", {"scores": {}}, "damaged"),
        ("run.json", {"plan": {"scores": ["seamcam", "s_rf"]}}, "damaged"),
    ],
)
def test_damaged_files(folder: Path, name: str, values: dict[str, object], message: str) -> None:
    changed(folder, name, **values)
    with pytest.raises(InputError, match=message):
        build_score_report(folder)


def test_unfinished_and_unreadable(folder: Path) -> None:
    (folder / "summary.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        scores_csv(folder)
    (folder / "summary.json").unlink()
    with pytest.raises(InputError, match="no finished run of scores"):
        scores_csv(folder)


@pytest.mark.parametrize("index", [{"images": [{"image": "a", "files": {"best": "../x.webp"}}]}, {"images": 3}, []])
def test_pictures_from_elsewhere_are_refused(folder: Path, index: object) -> None:
    write(folder / "pictures" / "index.json", index)
    with pytest.raises(InputError, match=r"index\.json"):
        build_score_report(folder)
