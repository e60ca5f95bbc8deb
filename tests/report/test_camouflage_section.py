"""What the pages of benchmarks show by camouflage."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from parsed_page import Page
from synthetic_camouflage import IMAGES, make_rows, write_scores

from crypsis.bench.detect import run_detection
from crypsis.detection_results import DetectionRun
from crypsis.errors import InputError
from crypsis.report.camouflage_results import CamouflageScores, masks_by_camouflage, read_camouflage
from crypsis.report.camouflage_tables import camouflage_document, camouflage_tables
from crypsis.report.comparison import compare_runs
from crypsis.report.detection_page import build_detection_report
from crypsis.report.page import build_report
from crypsis.results import RunFolder
from toy_detection import Nobody, plan_toy, write_results, write_set

SCRIPT = "<script>alert(1)</script>"


def fading(i: int, entry: str, severity: int) -> float:
    return max(0.9 - 0.1 * (i // 5) - 0.04 * severity * (i // 5 + 1), 0.0)


def blind(i: int, entry: str, severity: int) -> float:
    return 0.0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_rows(tmp_path_factory.mktemp("section") / "run", {"net": fading, SCRIPT: blind})


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> CamouflageScores:
    values = {image: i / 20 for i, image in enumerate(IMAGES)}
    return read_camouflage(write_scores(tmp_path_factory.mktemp("scores") / "scores.csv", **{SCRIPT: values}))


def test_the_surface_of_each_model(run: RunFolder, scores: CamouflageScores) -> None:
    html = build_report([run], camouflage=scores)
    page = Page(html)
    assert html.count(SCRIPT) == 0
    assert len(page.classed("surface")) == 2 * 2
    # of 4 groups × 6 fields by severity and by strength, 3 + 3 rows of one model have a first field below the line
    assert len(page.classed("stop")) == 6
    assert re.search(
        r"line is at Dice 0\.450\. On the easiest images, clean 0\.900, it stays above that up to severity 5; on the "
        r"hardest, clean 0\.600, it falls below that at severity 1\.",
        page.words,
    )
    assert "Sees nothing even on the easiest clean images" in page.words
    first = html.index('<table class="map surface">')
    fields = re.findall(r"<tr>.*?</tr>", html[first : html.index("</table>", first)])[1:]
    shown = [re.findall(r">(?:<b>)?(\d\.\d\d)(?:</b>)?</td>", row) for row in fields]
    assert shown[0] == ["0.90", "0.86", "0.82", "0.78", "0.74", "0.70"]
    assert shown[3] == ["0.60", "0.44", "0.28", "0.12", "0.00", "0.00"]
    assert [row.count("<b>") for row in fields] == [6, 5, 3, 1], "what is above the line is bold"
    assert [row.index("stop") > 0 if "stop" in row else None for row in fields] == [None, True, True, True]


def test_the_page_holds_the_tables_and_the_numbers(run: RunFolder, scores: CamouflageScores) -> None:
    page = Page(build_report([run], camouflage=scores))
    comparison = compare_runs([run])
    found = masks_by_camouflage(comparison, scores)
    copied = [a["data-copy"] for a in page.classed("copy") if a["data-name"] == "Markdown"]
    for table in camouflage_tables(comparison, found):
        assert table.markdown() in copied
    data = json.loads(page.data["crypsis-data"])["camouflage"]
    document = camouflage_document(found)
    assert data["groups"] == document["groups"]
    for name, model in document["models"].items():
        for g in range(4):
            assert data["models"][name]["clean"][g]["value"] == pytest.approx(model["clean"][g]["value"], rel=1e-5)
    order = [a["id"] for a in page.all("section")]
    assert order.index("camouflage") == order.index("corruption") + 1
    assert "#camouflage" in [a["href"] for a in page.all("a")]


def test_without_scores_nothing_of_it_is_there(run: RunFolder) -> None:
    page = Page(build_report([run]))
    assert not page.classed("surface")
    assert "camouflage" not in json.loads(page.data["crypsis-data"])


def test_a_run_of_saved_predictions_has_no_strength(tmp_path: Path, scores: CamouflageScores) -> None:
    saved = make_rows(tmp_path / "saved", {"net": fading}, measured=False)
    page = Page(build_report([saved], camouflage=scores))
    assert len(page.classed("surface")) == 1
    assert "By measured strength" not in page.words


def test_detectors(tmp_path: Path) -> None:
    data = write_set(tmp_path, 12)
    plan = plan_toy(data, [Nobody()])
    models = [write_results(tmp_path / name, plan, lambda _, thing: thing) for name in ("all", "same")]
    run_detection(plan_toy(data, models), tmp_path / "run")
    run = DetectionRun.open(tmp_path / "run")
    file = write_scores(tmp_path / "s.csv", gmm={image: i / 12 for i, image in enumerate(run.progress()[0])})
    page = Page(build_detection_report([run], camouflage=read_camouflage(file, groups=2)))
    assert len(page.classed("surface")) == 2, "saved detections have no strength"
    assert "On the easiest images, clean 1.000, it stays above that up to severity 5" in page.words
    assert json.loads(page.data["crypsis-data"])["camouflage"]["score"] == "gmm"
    order = [a["id"] for a in page.all("section")]
    assert order.index("camouflage") == order.index("ranking") + 1
    others = write_scores(tmp_path / "o.csv", gmm={"a": 1.0, "b": 2.0})
    with pytest.raises(InputError, match="of other images"):
        build_detection_report([run], camouflage=read_camouflage(others))
