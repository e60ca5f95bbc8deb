"""The page of a measurement, from numbers that are known."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parsed_page import Page
from synthetic_measurements import make_measurement, strengths
from synthetic_runs import SCRIPT

from crypsis.catalog import list_entries
from crypsis.errors import InputError
from crypsis.report.markup import read_asset
from crypsis.report.strength_charts import SHADES
from crypsis.report.strength_page import build_strength_report, is_measurement
from crypsis.report.strength_tables import strength_tables
from crypsis.severity.findings import StrengthTable

FOUR = ["cod10k-c/fog", "imagenet-c/fog", "cod10k-c/rain", "imagenet-c/jpeg_compression"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_measurement(tmp_path_factory.mktemp("measured") / "run")


@pytest.fixture(scope="module")
def html(folder: Path) -> str:
    return build_strength_report(folder)


def known(values: Any, metrics: tuple[str, ...] = ("1-ssim",)) -> StrengthTable:
    """Return a table of means, of `FOUR` or as many as there are, over one image."""
    array = np.array(values, np.float64).reshape(len(metrics), -1, 5, 1)
    entries = FOUR[: array.shape[1]]
    return StrengthTable.from_values(entries, metrics, array, np.zeros((len(entries), 5), np.int64))


def test_sections_in_reading_order(html: str) -> None:
    page = Page(html)
    assert [a["id"] for a in page.all("section")] == ["summary", "curves", "axis", "map", "findings", "tables", "made"]
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    assert {a["href"] for a in [*page.all("a"), *page.all("use")]} <= {f"#{i}" for i in ids}
    assert len(page.all("h1")) == 1


def test_it_loads_nothing_is_small_and_always_the_same(html: str, folder: Path) -> None:
    page = Page(html)
    for _, attributes in page.tags:
        assert not {"src", "srcset", "action", "poster"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in page.data["style"]
    assert len(html.encode()) < 600_000
    assert build_strength_report(folder) == html


def test_every_entry_is_in_every_view_of_every_metric(html: str) -> None:
    page = Page(html)
    entries = list_entries()
    groups, families = {e.group for e in entries}, {e.family for e in entries}
    assert len(page.classed("curves")) == 3 * (len(groups) + len(families))
    assert len(page.classed("curve")) == 3 * (len(entries) + len(families))
    assert len(page.classed("ruler")) == 3 * len(groups)
    assert len(page.classed("measure")) == 3 * (len(entries) + len(groups))
    cells = {(e.cause, e.effect) for e in entries}
    assert len(page.classed("mean")) == 3 * len(cells)
    assert len(page.classed("levels")) == 3 * len(cells)
    assert [a["data-metric"] for a in page.classed("panels") if "hidden" not in a] == ["1-ssim"] * 4


def test_copy_buttons_hold_the_tables(html: str) -> None:
    table = strengths([entry.name for entry in list_entries()])
    copied = [a["data-copy"] for a in Page(html).classed("copy") if a["data-name"] == "Markdown"]
    assert copied == [one.markdown() for one in strength_tables(table)]


def test_in_short_says_the_numbers_of_the_findings(tmp_path: Path) -> None:
    table = known([[0.1, 0.2, 0.3, 0.4, 0.5], [0.6, 0.7, 0.9, 0.8, 0.95], [0.02, 0.04, 0.06, 0.061, 0.1],
                   [0.1, 0.2, 0.3, 0.4, 0.5]])  # fmt: skip
    words = Page(build_strength_report(make_measurement(tmp_path / "run", table))).words
    assert "stands for strengths from 0.060 (cod10k-c’s rain) to 0.900 (imagenet-c’s fog) in 1−SSIM." in words
    assert "3 of 4 entries never get weaker" in words
    assert "Worst: imagenet-c’s fog, which falls back by 29% of its range at severity 4." in words
    assert "×15 is how many times stronger" in words
    assert "(median of 1 effect). Most in Weather/Medium: ×15, imagenet-c’s fog against cod10k-c’s rain." in words
    assert "2 of 3 pairs of entries with the same effect do not overlap" in words
    assert "Widest apart: cod10k-c’s rain below imagenet-c’s fog." in words
    assert "1 of 16 steps to the next severity" in words


def test_a_strength_of_nothing_is_infinitely_weaker(tmp_path: Path) -> None:
    table = known([[0, 0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4, 0.5]])
    html = build_strength_report(make_measurement(tmp_path / "run", table))
    words = Page(html).words
    assert "×∞" in words
    assert "4 of 8 steps" in words
    assert "nan" not in html.partition("<main>")[2]


def test_psnr_alone_is_turned_around(tmp_path: Path) -> None:
    table = known([[40, 35, 30, 25, 20], [30, 25, 20, 15, 10]], metrics=("psnr",))
    page = Page(build_strength_report(make_measurement(tmp_path / "run", table)))
    assert "PSNR (dB), mean over images: up is stronger; the axis is turned around" in page.words
    assert not page.classed("switch")
    assert "how many times stronger" not in page.words
    rows = [a["style"] for a in page.all("b") if a.get("style")]
    assert rows[0] == "left:0%"  # the 40 dB of the weaker entry, which comes first


def test_one_entry(tmp_path: Path) -> None:
    table = known([[0.1, 0.2, 0.3, 0.4, 0.5]])
    words = Page(build_strength_report(make_measurement(tmp_path / "run", table))).words
    assert "Here is what the five of cod10k-c’s fog do to images." in words
    assert "severity 3 is 0.3" in words
    assert "1 of 1" in words
    assert "Nothing stands out" in words


def test_the_map_shows_means_over_entries_and_names_them(tmp_path: Path) -> None:
    table = known([[0.1, 0.2, 0.3, 0.4, 0.5], [0.3, 0.4, 0.5, 0.6, 0.7]])
    page = Page(build_strength_report(make_measurement(tmp_path / "run", table)))
    cells = [a for a in page.all("td") if (a.get("title") or "").startswith("cod10k-c/fog")]
    assert [a["title"] for a in cells] == ["cod10k-c/fog, imagenet-c/fog"]
    assert cells[0]["class"] == "h5"  # 0.4 of 0.6, the round end above the largest mean of the cell
    assert "0.400 2 entries" in page.words
    assert "severities 1 to 5: 0.2, 0.3, 0.4, 0.5, 0.6" in [a.get("aria-label") for a in page.classed("levels")]


def test_how_it_was_made(html: str) -> None:
    words = Page(html).words
    for part in ("5f" * 32, "2026-06-01T12:00:00", "numpy", "alpha 0.12", "measure 14.0 s, 70%", "20.0 s of CPU"):
        assert part in words
    assert "0.2 images/s, 68 degraded images/s on one core" in words
    assert "/home/someone" not in html
    data = json.loads(Page(html).data["crypsis-data"])
    assert data["seconds"] == {"decode": 2, "degrade": 4, "measure": 14, "total": 20}
    assert len(data["summary"]["entries"]) == len(list_entries())


def test_no_times(tmp_path: Path) -> None:
    folder = make_measurement(tmp_path / "run", strengths(FOUR))
    (folder / "timing.jsonl").unlink()
    assert "No times were kept." in Page(build_strength_report(folder)).words


def test_strings_of_the_data_are_escaped_and_folders_left_out(tmp_path: Path) -> None:
    file = f"/home/someone/{SCRIPT.replace('/', '')}.png"
    folder = make_measurement(tmp_path / "a&b", strengths(FOUR), failed={file: f"{file}: {SCRIPT}"})
    html = build_strength_report(folder, title=SCRIPT)
    assert SCRIPT not in html
    assert "/home/someone" not in html
    words = Page(html).words
    assert "1 failed" in words
    assert "Run a&b Images" in words


def change(folder: Path, name: str, **values: Any) -> None:
    file = folder / name
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("summary.json", {"schema": "crypsis.pair-strengths/1"}, "images that exist"),
        ("summary.json", {"schema": "crypsis.strengths/9"}, "this version reads 'crypsis.strengths/1'"),
        ("run.json", {"schema": "crypsis.run/1"}, "this version reads 'crypsis.measurement/2'"),
        ("summary.json", {"entries": {}}, "damaged"),
        ("summary.json", {"entries": {"cod10k-c/fog": {"1-ssim": {"mean": [1]}}}}, "damaged"),
        ("summary.json", {"findings": [{"value": 1}]}, "damaged"),
        ("summary.json", {"failed": []}, "damaged"),
        ("run.json", {"sessions": [{}]}, "damaged"),
        ("run.json", {"plan": {"metrics": ["mse"], "entries": {}}}, "unknown metrics"),
    ],
)
def test_damaged_folders_are_refused(name: str, values: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = make_measurement(tmp_path / "run", strengths(FOUR))
    change(folder, name, **values)
    with pytest.raises(InputError, match=re.escape(said)):
        build_strength_report(folder)


def test_other_entries_infinite_numbers_and_broken_times_are_refused(tmp_path: Path) -> None:
    folder = make_measurement(tmp_path / "run", strengths(FOUR))
    plan = json.loads((folder / "run.json").read_text("utf-8"))["plan"]
    change(folder, "run.json", plan=plan | {"entries": {"cod10k-c/fog": []}})
    with pytest.raises(InputError, match="other entries"):
        build_strength_report(folder)
    change(folder, "run.json", plan=plan)
    entries = json.loads((folder / "summary.json").read_text("utf-8"))["entries"]
    entries["cod10k-c/fog"]["psnr"]["mean"][0] = float("inf")
    change(folder, "summary.json", entries=entries)
    with pytest.raises(InputError, match="five numbers"):
        build_strength_report(folder)
    folder = make_measurement(tmp_path / "times", strengths(FOUR))
    (folder / "timing.jsonl").write_text('{"total": 1}\n{"tot', "utf-8")
    with pytest.raises(InputError, match="without times"):
        build_strength_report(folder)


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
def test_unfinished_or_unreadable(name: str, tmp_path: Path) -> None:
    folder = make_measurement(tmp_path / "run", strengths(FOUR))
    for text, said in (("{", "cannot be read"), ("[]", "not of a measurement")):
        (folder / name).write_text(text, "utf-8")
        with pytest.raises(InputError, match=said):
            build_strength_report(folder)
    (folder / name).unlink()
    with pytest.raises(InputError, match="no finished measurement"):
        build_strength_report(folder)


def test_kinds_of_runs_are_told_apart(folder: Path, tmp_path: Path) -> None:
    assert is_measurement(folder)
    assert not is_measurement(tmp_path)
    for text in ("[]", "{", '{"schema": "crypsis.run/1"}'):
        (tmp_path / "run.json").write_text(text, "utf-8")
        assert not is_measurement(tmp_path)


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_text_on_every_shade_can_be_read_in_both_schemes() -> None:
    found = re.findall(r"--h(\d): (#\w{6}); --t\1: (#\w{6});", read_asset("style.css"))
    assert [int(index) for index, *_ in found] == 2 * list(range(SHADES))
    for _, *pair in found:
        dark, bright = sorted(map(luminance, pair))
        assert (bright + 0.05) / (dark + 0.05) >= 4.5  # WCAG 2.2, success criterion 1.4.3
    for scheme, order in ((found[:SHADES], -1), (found[SHADES:], 1)):  # darker on a light page, brighter on a dark one
        lights = [order * luminance(shade) for _, shade, _ in scheme]
        assert lights == sorted(lights)
