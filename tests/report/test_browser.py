"""The pages in a real browser: scripts run, nothing is refused, and what was promised is in the document."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from parsed_page import Page
from synthetic_camouflage import IMAGES, make_rows, write_scores
from synthetic_detections import add_pictures, detector, make_detections
from synthetic_measurements import make_measurement
from synthetic_runs import drawn_photographs

from crypsis.catalog import list_entries
from crypsis.report.camouflage_results import read_camouflage
from crypsis.report.detection_page import CHART_METRICS, build_detection_report
from crypsis.report.gallery import build_gallery
from crypsis.report.page import build_report
from crypsis.report.strength_page import build_strength_report
from crypsis.report.tables import run_tables
from crypsis.results import RunFolder

pytestmark = pytest.mark.browser
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-logging=stderr", "--virtual-time-budget=5000",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> str:
    """Path of a Chromium; skips where there is none, unless one is required."""
    names = (os.environ.get("CRYPSIS_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None:
        reason = "no Chromium was found; install one or name it in CRYPSIS_CHROMIUM"
        if os.environ.get("CRYPSIS_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def load(browser: str, html: str, folder: Path) -> tuple[Page, dict[str, str | None]]:
    """Open a page from a file and return its document after the scripts, and the root's attributes."""
    file = folder / "page.html"
    file.write_text(html, "utf-8")
    done = subprocess.run(
        [browser, *_FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", file.as_uri()],
        capture_output=True, encoding="utf-8", timeout=120, check=True,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not said, said
    page = Page(done.stdout)
    return page, page.all("html")[0]


def drive(html: str, script: str) -> str:
    """Return the page with a script that acts as a user would, let in by its hash."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert html.count("script-src '") == 1
    html = html.replace("script-src '", f"script-src 'sha256-{digest}' '")
    return html.replace("</body>", f"<script>{script}</script></body>")


def test_report(browser: str, paper_run: RunFolder, tmp_path: Path) -> None:
    page, root = load(browser, build_report([paper_run]), tmp_path)
    assert root.get("data-ready") == "1"
    assert "data-errors" not in root
    assert len(page.classed("lines")) == 2 * 48  # by severity and by strength
    assert len(page.classed("table")) == 7
    assert len(page.classed("drop")) == 2
    assert len(page.all("img")) == 51
    copied = [a["data-copy"] for a in page.classed("copy") if a["data-name"] == "Markdown"]
    assert copied[2:] == [table.markdown() for table in run_tables([paper_run])]


def test_the_metric_of_all_charts_is_switched_at_once(browser: str, paper_run: RunFolder, tmp_path: Path) -> None:
    html = drive(build_report([paper_run]), "document.querySelector('[data-show=mae]').click();")
    page, _ = load(browser, html, tmp_path)
    shown = [a["data-metric"] for a in page.classed("panels") if "hidden" not in a]
    assert set(shown) == {"mae"}
    assert [a["data-show"] for a in page.all("button") if a.get("aria-pressed") == "true"] == shown


def test_hostile_report_runs_no_foreign_script(browser: str, hostile_run: RunFolder, tmp_path: Path) -> None:
    page, root = load(browser, build_report([hostile_run]), tmp_path)
    assert root.get("data-ready") == "1"
    assert len(page.all("script")) == 2
    assert len(page.classed("watermark")) == 1


def test_report_by_camouflage(browser: str, tmp_path: Path) -> None:
    run = make_rows(tmp_path / "run", {"net": lambda i, entry, severity: 0.9 - 0.02 * i - 0.05 * severity})
    scores = read_camouflage(
        write_scores(tmp_path / "scores.csv", seamcam={image: float(i) for i, image in enumerate(IMAGES)})
    )
    page, root = load(browser, build_report([run], camouflage=scores), tmp_path)
    assert root.get("data-ready") == "1"
    assert "data-errors" not in root
    assert len(page.classed("surface")) == 2


def test_strengths(browser: str, tmp_path: Path) -> None:
    html = build_strength_report(make_measurement(tmp_path / "run"))
    page, root = load(browser, drive(html, "document.querySelector('[data-show=psnr]').click();"), tmp_path)
    assert root.get("data-ready") == "1"
    assert "data-errors" not in root
    assert [a["data-metric"] for a in page.classed("panels") if "hidden" not in a] == ["psnr"] * 4
    assert [a["data-show"] for a in page.all("button") if a.get("aria-pressed") == "true"] == ["psnr"] * 4


def test_detections(browser: str, tmp_path: Path) -> None:
    run = make_detections(tmp_path / "run", {"a": detector(0.5, 0.2), "b": detector(0.4, 0.02)})
    add_pictures(run)
    page, root = load(browser, build_detection_report([run]), tmp_path)
    assert root.get("data-ready") == "1"
    assert "data-errors" not in root
    assert len(page.all("img")) == 4
    assert len(page.classed("bundle")) == 2 * 3 * len(CHART_METRICS)


def test_metric_and_detector_are_switched_apart(browser: str, tmp_path: Path) -> None:
    run = make_detections(tmp_path / "run", {"a": detector(0.5, 0.2), "b": detector(0.4, 0.02)})
    script = "document.querySelector('[data-show=ap50]').click(); document.querySelector('[data-pick=\"1\"]').click();"
    page, _ = load(browser, drive(build_detection_report([run]), script), tmp_path)
    shown = [a for a in page.all("div") if "hidden" not in a]
    assert {a["data-metric"] for a in shown if "data-metric" in a} == {"ap50"}
    assert {a["data-model"] for a in shown if "data-model" in a} == {"1"}
    pressed = [a for a in page.all("button") if a.get("aria-pressed") == "true"]
    assert {a.get("data-show") or a.get("data-pick") for a in pressed} == {"ap50", "1"}


def test_gallery(browser: str, tmp_path: Path) -> None:
    image = drawn_photographs(1)[0][2]
    html = build_gallery(image, entries=list_entries(), seed=0, image_key="scene", title="Scene")
    page, root = load(browser, html, tmp_path)
    assert root.get("data-ready") == "1"
    assert "data-errors" not in root
    assert len(page.classed("enlarge")) == 5 * len(list_entries())


def test_gallery_filters_and_enlarges(browser: str, tmp_path: Path) -> None:
    entries = list_entries(family="cod10k-c")
    html = build_gallery(drawn_photographs(1)[0][2], entries=entries, seed=0, image_key="k", title="t")
    script = """
        const cause = document.querySelector('[data-filter=cause]');
        cause.value = 'E';
        cause.dispatchEvent(new Event('change'));
        document.querySelector('.entry:not([hidden]) .enlarge').click();
        document.querySelector('[data-step="1"]').click();
        const slide = document.querySelector('dialog input');
        slide.value = 40;
        slide.dispatchEvent(new Event('input'));
    """
    page, _ = load(browser, drive(html, script), tmp_path)
    shown = [a for a in page.classed("entry") if "hidden" not in a]
    assert {a["data-cause"] for a in shown} == {"E"}
    assert len(shown) == sum(entry.cause.code == "E" for entry in entries)
    assert f"{len(shown)} shown" in page.words
    assert "open" in page.all("dialog")[0]
    enlarged = next(a for a in page.all("img") if a.get("id") == "enlarged")
    assert (enlarged["alt"] or "").endswith("severity 2")
    assert "40%" in (enlarged["style"] or "")


def test_the_policy_is_enforced(browser: str, tmp_path: Path) -> None:
    """The check above would see a script that the page did not mean to have."""
    html = build_gallery(drawn_photographs(1)[0][2], entries=list_entries()[:1], seed=0, image_key="k", title="t")
    with pytest.raises(AssertionError, match="Executing inline script violates"):
        load(browser, html.replace("<main>", "<main><script>document.title = 'x'</script>"), tmp_path)
