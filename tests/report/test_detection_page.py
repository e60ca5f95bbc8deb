"""The report of a detection benchmark: complete, safe, accessible and small."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from parsed_page import Page
from synthetic_detections import DATASET, ENTRIES, PAPER_ENTRIES, add_pictures, detector, make_detections
from synthetic_runs import HOSTILE, SCRIPT

from crypsis.detection_results import DetectionRun
from crypsis.errors import InputError
from crypsis.metrics.detection import SCORES
from crypsis.report.charts import Series
from crypsis.report.detection_charts import Frame, bundle_chart, named_chart
from crypsis.report.detection_page import CHART_METRICS, build_detection_report, is_detection
from crypsis.report.detection_tables import detection_tables

SECTIONS = ["summary", "map", "severity", "strength", "ranking", "worst", "tables", "made"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> DetectionRun:
    made = make_detections(tmp_path_factory.mktemp("runs") / "run")
    add_pictures(made)
    return made


@pytest.fixture(scope="module")
def page(run: DetectionRun) -> Page:
    return Page(build_detection_report([run]))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> DetectionRun:
    models = {"strong": detector(0.5, 0.2), "steady": detector(0.4, 0.02), "weak": detector(0.2, 0.05)}
    return make_detections(tmp_path_factory.mktemp("runs") / "several", models)


def test_sections(page: Page) -> None:
    assert [a["id"] for a in page.all("section")] == SECTIONS
    links = [a["href"] for a in page.all("a") if (a["href"] or "").startswith("#")]
    assert links[1:] == [f"#{name}" for name in SECTIONS]


def test_in_short(page: Page) -> None:
    kept = re.search(r"net keeps (\d+\.\d)% of its average precision: AP falls from 0\.400 to", page.words)
    assert kept
    assert f"{kept[1]}%" in page.words
    assert "Worst, in points of AP: cause" in page.words
    assert "degradation Broken sensor, real-camera" in page.words
    assert "intervals are wide" not in page.words


def test_few_images_are_said_to_be_few(tmp_path: Path) -> None:
    words = Page(build_detection_report([make_detections(tmp_path / "run", dataset=DATASET | {"images": 16})])).words
    assert "With 16 images, intervals are wide" in words


def test_map_is_a_table_with_a_cell_for_each_place(page: Page, run: DetectionRun) -> None:
    html = build_detection_report([run])
    table = re.search(r'<table class="map">.*?</table>', html, re.S)
    assert table
    cells = re.findall(r'<td class="h(\d)" title="([^"]*)"', table[0])
    assert sum(len(title.partition(": ")[2].split(", ")) for _, title in cells) == len(ENTRIES)
    assert {int(shade) for shade, _ in cells} <= set(range(8))
    assert len(page.classed("levels")) == len(cells)
    assert all("severities 1 to 5: −" in (a["aria-label"] or "") for a in page.classed("levels"))


def test_metrics_without_numbers_are_not_offered(tmp_path: Path) -> None:
    html = build_detection_report([make_detections(tmp_path / "run", {"net": detector(0.4, 0.1, small=False)})])
    shown = [a["data-show"] for a in Page(html).all("button") if "data-show" in a]
    assert shown == [metric for metric in CHART_METRICS if metric != "ap_small"]


def test_severity_panels(page: Page) -> None:
    shown = [a for a in page.all("div") if "data-metric" in a]
    assert [a["data-metric"] for a in shown] == list(CHART_METRICS)
    assert [a["data-metric"] for a in shown if "hidden" not in a] == ["ap"]
    assert len(page.classed("bundle")) == 3 * len(CHART_METRICS)
    assert len(page.classed("named")) == 6 * len(CHART_METRICS)  # groups
    assert len(page.classed("lines")) == len(CHART_METRICS)
    assert len(page.classed("overlay")) == 3  # families, by strength


def test_strength_that_was_not_measured(tmp_path: Path) -> None:
    page = Page(build_detection_report([make_detections(tmp_path / "run", measured=False)]))
    assert "Strength was not measured" in page.words
    assert not page.classed("overlay")


def test_equal_strength_is_said(page: Page) -> None:
    said = re.search(
        r"At equal strength, 1−SSIM (\d\.\d{3}), which (\d) of 8 degradations reach, (.*?) costs most", page.words
    )
    assert said
    assert int(said[2]) >= 4
    assert said[3].startswith("Broken sensor (AP")


def test_all_bars_of_few_entries_stand_in_one_block(page: Page) -> None:
    assert len(page.classed("bars")) == 2
    assert sum(a.get("class") == "category" for a in page.all("text")) == len(ENTRIES)


def test_bars_of_many_entries_are_the_worst_and_the_mildest(tmp_path: Path) -> None:
    page = Page(build_detection_report([make_detections(tmp_path / "run", entries=PAPER_ENTRIES)]))
    assert len(page.classed("bars")) == 3
    assert sum(a.get("class") == "category" for a in page.all("text")) == 15 + 5
    assert "The 15 that cost most and the 5 that cost least" in page.words


def test_moving_operators_are_marked(page: Page) -> None:
    assert "Elastic transform †" in page.words
    assert "† moves content, while the boxes of the truth stayed" in page.words


def test_worst_images(page: Page) -> None:
    assert len(page.classed("drop")) == 2
    images = page.all("img")
    assert len(images) == 4
    assert all((a["src"] or "").startswith("data:image/webp;base64,") for a in images)
    # the larger loss comes first
    assert images[0]["alt"] == "scene-1, clean: 3 of 4 objects found; scores drawn: 0.90, 0.45"
    assert images[1]["alt"] == "scene-1, degraded: 0 of 4 objects found; scores drawn: none"
    assert "Chosen among 120 images." in page.words


def test_tables_have_copy_buttons(page: Page, run: DetectionRun) -> None:
    copied = [a["data-copy"] for a in page.classed("copy") if a["data-name"] == "Markdown"]
    assert copied == [table.markdown() for table in detection_tables([run])]


def test_how_it_was_made(page: Page) -> None:
    for text in ("hotcoco 1.3.0", "by equal names", "24.0 s, 80%", "96 degraded images/s", "c0de" * 16):
        assert text in page.words
    assert "private" not in page.words
    assert "private" not in page.data["crypsis-data"]


def test_data_holds_the_numbers(page: Page, run: DetectionRun) -> None:
    data = json.loads(page.data["crypsis-data"])
    assert tuple(data["metrics"]) == SCORES
    clean = data["runs"][0]["summary"]["models"]["net"]["conditions"]["clean"]
    assert clean[0] == [0.4, 0.38, 0.42]
    assert clean[SCORES.index("ar100")] == 0.48
    assert data["runs"][0]["plan"] == run.plan


def test_several_detectors_are_switched(several: DetectionRun) -> None:
    page = Page(build_detection_report([several]))
    picked = [a for a in page.all("button") if "data-pick" in a]
    assert {a["data-pick"] for a in picked} == {"0", "1", "2"}
    panels = [a for a in page.all("div") if "data-model" in a]
    assert [a["data-model"] for a in panels if "hidden" not in a] == ["0"] * (len(panels) // 3)
    assert len(page.classed("card")) == 3
    assert "steady keeps the largest share" in page.words
    assert "ranks" in [a["id"] for a in page.all("section")]


def test_ranks(several: DetectionRun, tmp_path: Path) -> None:
    words = Page(build_detection_report([several])).words
    clean = several.summary()["models"]
    assert clean["strong"]["corrupted"]["ap"]["value"] < clean["steady"]["corrupted"]["ap"]["value"]
    assert "strong is better on clean images, steady under degradation" in words
    assert "Kendall’s τ" in words
    same = make_detections(tmp_path / "same", {"a": detector(0.5, 0.1), "b": detector(0.4, 0.1)})
    assert "No pair changes places" in Page(build_detection_report([same])).words


def test_incomplete_is_marked(tmp_path: Path) -> None:
    page = Page(build_detection_report([make_detections(tmp_path / "run", failed={"bad.jpg": "is damaged"})]))
    assert len(page.classed("watermark")) == 1
    assert "INCOMPLETE: run scored 119 of 120 images, 1 failed" in page.words
    assert "bad.jpg : is damaged" in page.words


def test_detector_that_finds_nothing(tmp_path: Path) -> None:
    page = Page(build_detection_report([make_detections(tmp_path / "run", {"blind": detector(0.0, 0.1)})]))
    assert "there is nothing that degradation could take" in page.words


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    run = make_detections(
        tmp_path / "a&b",
        {HOSTILE: detector(0.4, 0.1), SCRIPT: detector(0.3, 0.2), "\udce9\x00": None},
        failed={f'"{SCRIPT}': SCRIPT},
        categories={"1": SCRIPT, "7": HOSTILE},
        dataset={"name": SCRIPT, "layout": SCRIPT, "images": 48, "keys_sha256": SCRIPT, "annotations_sha256": SCRIPT},
        keep=[SCRIPT],
    )
    add_pictures(run, image=SCRIPT, model=SCRIPT)
    html = build_detection_report([run])
    page = Page(html)
    assert len(page.all("script")) == 2
    assert SCRIPT in page.words
    assert "http" not in html.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda index: index["worst"][0]["views"]["clean"].update(file="../secret.webp"), "plain name"),
        (lambda index: index["worst"][0].pop("objects"), "is not the index"),
        (lambda index: index.pop("images"), "is not the index"),
    ],
)
def test_pictures_that_are_not(tmp_path: Path, change: object, match: str) -> None:
    run = make_detections(tmp_path / "run")
    add_pictures(run)
    file = run.path / "pictures" / "index.json"
    index = json.loads(file.read_text("utf-8"))
    change(index)  # type: ignore[operator]
    file.write_text(json.dumps(index), "utf-8")
    with pytest.raises(InputError, match=match):
        build_detection_report([run])


def test_pictures_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    models = {f"net-{i}": detector(0.4, 0.1) for i in range(3)}
    run = make_detections(tmp_path / "run", models, entries=PAPER_ENTRIES, severities=(1, 2, 3, 4, 5))
    add_pictures(run, side=480)
    html = build_detection_report([run])
    assert len(html.encode()) < 1_500_000
    assert "left out: the page would become too large" in Page(html).words


def test_pages_are_the_same_bytes(run: DetectionRun) -> None:
    assert build_detection_report([run], title="x") == build_detection_report([run], title="x")


def test_one_degradation_at_one_severity_and_many_detectors(tmp_path: Path) -> None:
    models = {f"net-{i}": detector(0.1 * (i + 1), 0.05 * i) for i in range(8)}
    run = make_detections(tmp_path / "run", models, entries=ENTRIES[:1], severities=(3,))
    page = Page(build_detection_report([run]))
    assert len(page.classed("card")) == 8
    assert len(page.classed("bars")) == 1
    assert any((a["aria-label"] or "").startswith("severity 3: −") for a in page.classed("levels"))


def test_is_detection(run: DetectionRun, tmp_path: Path) -> None:
    assert is_detection(run.path)
    assert not is_detection(tmp_path)
    (tmp_path / "run.json").write_text("[]", "utf-8")
    assert not is_detection(tmp_path)


def frame(*, ranks: bool = True) -> Frame:
    return Frame(["clean", "1", "3"], (0.0, 2.0), "severity", (0.0, 1.0), "AP", ranks)


def line(label: str, *values: float | None, x: list[float] | None = None) -> Series:
    nothing = [None] * len(values)
    return Series(label, values, nothing, nothing, x)


def test_bundle_chart() -> None:
    svg = bundle_chart(
        "family", [line("a", 0.5, 0.4, 0.1), line("b", 0.5, 0.2, 0.3)], line("mean", 0.5, 0.3, 0.2), frame(), series=1
    )
    page = Page(svg)
    assert len(page.classed("thread")) == 2
    assert len(page.classed("bold")) == 1
    assert [a["href"] for a in page.all("use")] == ["#n1", "#n3"]
    assert "mean: clean 0.500, 1 0.300, 3 0.200" in page.words


def test_named_chart_writes_each_name_once_and_skips_lines_without_an_end() -> None:
    lines = [line("whole", 0.5, 0.4, 0.1), line("cut", 0.5, 0.2, None), line("whole too", 0.5, 0.4, 0.1)]
    page = Page(named_chart("group", lines, frame()))
    names = [a for a in page.all("text") if a["class"] == "name"]
    assert len(names) == 2
    places = [float(a["y"] or 0) for a in names]
    assert abs(places[0] - places[1]) >= 11
    assert not page.all("use")


def test_lines_of_a_color_differ_in_dashes() -> None:
    lines = [line(name, 0.5, 0.4, 0.1) for name in "abcd"]
    svg = named_chart("group", lines, frame(), colors=[2, 0, 2, 0])
    assert [a["class"] for a in Page(svg).classed("curve")] == [
        f"curve {s}" for s in ("s2 d2", "s0 d0", "s2 d3", "s0 d1")
    ]
    svg = named_chart("group", [line(str(n), 0.5, 0.4, 0.1) for n in range(8)], frame())
    assert [a["class"] for a in Page(svg).classed("curve")][5:] == ["curve s5 d5", "curve s0 d1", "curve s1 d2"]


def test_large_named_chart_has_severities_and_threads() -> None:
    svg = named_chart(
        "family", [line("a", 0.5, 0.4, 0.1, x=[0, 0.3, 0.9])], frame(ranks=False),
        threads=[line("other", 0.5, 0.5, 0.5, x=[0, 1, 2])], large=True,
    )  # fmt: skip
    page = Page(svg)
    assert [a["href"] for a in page.all("use")] == ["#n1", "#n3"]
    assert len(page.classed("plain")) == 1
    assert "a: clean at 0.000 0.500, 1 at 0.300 0.400, 3 at 0.900 0.100" in page.words
