from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from parsed_page import Page
from synthetic_runs import PAPER, SCRIPT, drawn_photographs, make_run, paper_model, unmeasured

from crypsis.errors import InputError
from crypsis.report.page import build_report
from crypsis.results import RunFolder


@pytest.fixture(scope="module")
def paper_html(paper_run: RunFolder) -> str:
    return build_report([paper_run])


def test_sections_in_reading_order(paper_html: str) -> None:
    page = Page(paper_html)
    assert [a["id"] for a in page.all("section")] == [
        "summary", "severity", "strength", "corruption", "calibration", "worst", "corruptions", "tables", "made",
    ]  # fmt: skip
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    assert {a["href"] for a in page.all("a")} <= {f"#{i}" for i in ids}
    assert len(page.all("h1")) == 1


def test_headline_sentences(paper_html: str) -> None:
    words = Page(paper_html).words
    assert "Keeps 87.7% of its clean Dice under corruption; worst: motion blur (−18.5 points)." in words
    assert "RobustCODLite keeps the largest share of its clean Dice (92.3%)" in words
    assert "SINet-v2 has the highest Dice under corruption (0.644)" in words


def test_it_loads_nothing(paper_html: str) -> None:
    page = Page(paper_html)
    for tag, attributes in page.tags:
        for name in ("src", "href", "srcset", "action", "data", "poster", "xlink:href"):
            value = attributes.get(name)
            if value is not None:
                assert value.startswith(("data:image/webp;base64,", "#")), f"{tag} {name}={value[:40]}"
        assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in page.data["style"]
    assert "@import" not in page.data["style"]
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-")


def test_it_is_small_and_always_the_same(paper_html: str, paper_run: RunFolder) -> None:
    assert len(paper_html.encode()) < 2_000_000
    assert build_report([paper_run]) == paper_html


@pytest.mark.parametrize(("count", "fewest"), [(2, 1), (6, 0)])
def test_it_stays_small_with_many_models_and_heavy_pictures(tmp_path: Path, count: int, fewest: int) -> None:
    models = {f"model {i}": paper_model(list(PAPER["clean"])[i % 4]) for i in range(count)}
    run = make_run(tmp_path / "big", models, photographs=drawn_photographs(12, side=256))
    noise = next(p for p in sorted((run.path / "pictures").glob("worst*.webp"), key=lambda p: -p.stat().st_size))
    for path in (run.path / "pictures").glob("worst*.webp"):
        path.write_bytes(noise.read_bytes() + b"\0" * 60_000)
    html = build_report([run])
    page = Page(html)
    assert fewest <= len(page.classed("drop")) < 10
    assert page.classed("strip")
    assert len(html.encode()) < 2_000_000


def test_charts_tables_and_pictures_are_there(paper_html: str) -> None:
    page = Page(paper_html)
    assert len(page.classed("lines")) == 2 * 8 * 6
    assert len(page.classed("overlay")) == 4 * 6
    assert len(page.classed("bars")) == 2 * 6
    assert len(page.classed("reliability")) == 4
    assert len(page.classed("table")) == 7
    assert len(page.classed("copy")) == 21
    assert len(page.all("img")) == 2 * 5 + 1 + 40
    assert all(image.get("alt") for image in page.all("img"))
    visible = [a for a in page.classed("panels") if "hidden" not in a]
    assert [a["data-metric"] for a in visible] == ["dice", "dice", "dice"]


def test_equal_strength_is_answered_for_each_model_and_metric(paper_html: str) -> None:
    words = Page(paper_html).words
    assert "The upright line is at 1−SSIM 0.162, the most that all corruptions reach." in words
    assert "RobustCODLite : JPEG (Dice 0.593, −0.092) hurts most, fog (Dice 0.676, −0.009) least; clean 0.685." in words
    assert words.count(" hurts most, ") == 4 * 6
    assert re.search(r"JPEG \(MAE 0\.\d+, \+0\.\d+\) hurts most", words)


def test_without_strength_the_section_says_how_to_get_it(tmp_path: Path) -> None:
    stored = make_run(tmp_path / "stored", {"stored": unmeasured(paper_model("PFNet"))})
    page = Page(build_report([stored]))
    assert "Strength was not measured: these runs score saved predictions only" in page.words
    assert "--model saliency" in page.words
    assert not page.classed("overlay")
    assert len(page.classed("lines")) == 48
    live = make_run(tmp_path / "live", {"live": paper_model("ZoomNet")})
    page = Page(build_report([stored, live]))
    assert "Not measured, and so not drawn: stored." in page.words
    assert len(page.classed("overlay")) == 6
    assert page.words.count(" hurts most, ") == 6


def test_copy_buttons_hold_the_tables(paper_html: str) -> None:
    buttons = Page(paper_html).classed("copy")
    by_kind = {
        kind: [b["data-copy"] for b in buttons if b["data-name"] == kind] for kind in ("Markdown", "LaTeX", "CSV")
    }
    assert (by_kind["Markdown"][3] or "").startswith("**Mean over all corruptions and severities**\n\n| Model | Dice ↑")
    assert (by_kind["Markdown"][1] or "").startswith("**Difference from SINet-v2**\n\n| Model | Clean ΔDice ↑")
    assert "\\begin{tabular}{lrrrrr}" in (by_kind["LaTeX"][2] or "")
    assert (by_kind["CSV"][2] or "").startswith("Model,Dice,Dice low,Dice high")


def test_embedded_data_is_the_summary(paper_html: str, paper_run: RunFolder) -> None:
    data = json.loads(Page(paper_html).data["crypsis-data"])
    run = data["runs"][0]
    assert run["plan"] == paper_run.plan
    found = run["summary"]["models"]["SINet-v2"]["corrupted"]["dice"]["value"]
    assert found == pytest.approx(0.644)


def test_nothing_of_the_machine_s_paths(paper_html: str) -> None:
    assert "/home/someone" not in paper_html
    assert "2026-06-01T12:00:00" in paper_html


def test_provenance(paper_html: str) -> None:
    words = Page(paper_html).words
    for part in ("5f" * 32, "c0de" * 16, "cod10k-c/fog", "alpha 0.12", "numpy", "Soft Dice", "384, 384"):
        assert part in words


def test_every_string_of_the_data_is_escaped(hostile_run: RunFolder) -> None:
    html = build_report([hostile_run], title=SCRIPT)
    html.encode("utf-8")
    assert SCRIPT not in html
    assert "\0" not in html
    page = Page(html)
    scripts = page.all("script")
    assert [s.get("type") for s in scripts] == ["application/json", None]
    assert not any(tag == "b" and "&|_%" in str(a) for tag, a in page.tags)
    assert all((a.get("src") or "").startswith("data:") for a in page.all("img"))
    assert page.words.count(SCRIPT) > 10  # shown as text
    assert json.loads(page.data["crypsis-data"])["runs"][0]["plan"]["dataset"]["name"] == SCRIPT


def test_incomplete_has_banner_watermark_and_reasons(tmp_path: Path) -> None:
    dataset = {"name": "demo", "layout": "manifest", "images": 100, "keys_sha256": "5f" * 32}
    failed = {f"x/{i}": f"damaged {i}" for i in range(60)}
    run = make_run(tmp_path / "part", failed=failed, limit=100, dataset=dataset)
    page = Page(build_report([run]))
    assert len(page.classed("watermark")) == len(page.classed("banner")) == 1
    assert "INCOMPLETE: part scored 40 of 100 images, 60 failed" in page.words
    assert "60 failed in part" in page.words
    assert "damaged 49" in page.words
    assert "damaged 50" not in page.words
    assert "and 10 more" in page.words
    assert "100 images: a trial, not a result" in page.words


def test_complete_has_neither(paper_html: str) -> None:
    page = Page(paper_html)
    assert not page.classed("watermark")
    assert not page.classed("banner")


def test_without_pictures_the_sections_say_so(two_runs: tuple[RunFolder, RunFolder]) -> None:
    words = Page(build_report(two_runs)).words
    assert "There are no pictures of worst drops" in words
    assert "There are no pictures of the corruptions" in words
    assert "first/net" in words
    assert "second/net" in words


def test_undefined_retention(tmp_path: Path) -> None:
    model = json.loads(json.dumps(paper_model("PFNet")))
    nothing = {"value": None, "low": None, "high": None}
    zero = {"value": 0.0, "low": 0.0, "high": 0.0}
    model["retention"]["dice"] = nothing
    for kind in ("conditions", "entries", "severities"):
        for name in model[kind]:
            model[kind][name]["dice"] = zero
    model["corrupted"]["dice"] = model["delta"]["dice"] = zero
    words = Page(build_report([make_run(tmp_path / "zero", {"blind": model})])).words
    assert "there is nothing that corruption could take" in words


def test_a_model_that_loses_nothing(tmp_path: Path) -> None:
    model = json.loads(json.dumps(paper_model("PFNet")))
    for name in model["entries"]:
        model["entries"][name]["dice"] = model["conditions"]["clean"]["dice"]
    words = Page(build_report([make_run(tmp_path / "steady", {"steady": model})])).words
    assert "no corruption lowers it by a tenth of a point" in words


@pytest.fixture
def pictured(paper_run: RunFolder, tmp_path: Path) -> RunFolder:
    """A copy of a run with pictures, to be damaged."""
    shutil.copytree(paper_run.path, tmp_path / "copy")
    return RunFolder.open(tmp_path / "copy")


def edit_index(run: RunFolder, **changes: Any) -> None:
    path = run.path / "pictures" / "index.json"
    index = json.loads(path.read_text("utf-8"))
    for key, value in changes.items():
        if key == "degraded":
            index["worst"][0]["files"]["degraded"] = value
        else:
            index[key] = value
    path.write_text(json.dumps(index), "utf-8")


@pytest.mark.parametrize(
    "name", ["../run.json", "/etc/passwd", "a/b.webp", "..\\x.webp", ".webp", "x.svg", "", 3, None]
)
def test_a_picture_s_name_cannot_leave_the_folder(pictured: RunFolder, name: Any) -> None:
    edit_index(pictured, degraded=name)
    with pytest.raises(InputError, match="not the plain name"):
        build_report([pictured])


def test_a_link_out_of_the_folder_is_refused(pictured: RunFolder) -> None:
    (pictured.path / "pictures" / "link.webp").symlink_to(pictured.path / "run.json")
    edit_index(pictured, degraded="link.webp")
    with pytest.raises(InputError, match="not the plain name"):
        build_report([pictured])


def test_a_missing_or_damaged_picture_is_said(pictured: RunFolder) -> None:
    whole = (pictured.path / "pictures" / "worst-00-truth.webp").read_bytes()
    (pictured.path / "pictures" / "worst-00-degraded.webp").unlink()
    (pictured.path / "pictures" / "worst-00-truth.webp").write_bytes(whole[:20])
    (pictured.path / "pictures" / "worst-00-clean.webp").write_bytes(b"<svg onload=alert(1)>")
    page = Page(build_report([pictured]))
    assert len(page.classed("missing")) == 3
    assert "onload" not in page.words


@pytest.mark.parametrize(
    "content",
    ["{", "[]", "{}", '{"worst": 3, "strip": null}', '{"worst": [{}], "strip": null}', '{"worst": [], "strip": 1}'],
)
def test_a_broken_index_is_one_sentence(pictured: RunFolder, content: str) -> None:
    (pictured.path / "pictures" / "index.json").write_text(content, "utf-8")
    with pytest.raises(InputError, match="is not the index of a run's pictures"):
        build_report([pictured])


def test_no_strip(pictured: RunFolder) -> None:
    edit_index(pictured, strip=None)
    assert "There are no pictures of the corruptions" in Page(build_report([pictured])).words


def test_an_entry_the_catalog_does_not_know_keeps_its_name(tmp_path: Path) -> None:
    model = json.loads(json.dumps(paper_model("PFNet")).replace("cod10k-c/fog", "other/mist"))
    levels = json.loads(json.dumps(make_run(tmp_path / "x").plan["entries"]).replace("cod10k-c/fog", "other/mist"))
    html = build_report([make_run(tmp_path / "later", {"m": model}, entries=levels)])
    assert "other/mist" in Page(html).words


def test_nan_never_reaches_the_page(paper_html: str) -> None:
    assert not re.search(r"\bnan\b|\bNaN\b|\bInfinity\b", re.sub(r"base64,[^\"]*", "", paper_html))
