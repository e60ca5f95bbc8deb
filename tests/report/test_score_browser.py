"""The pages of scores and of a search for thresholds in a real browser, on wide and narrow screens, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_tab import Tab, opened_tab
from searched_run import make_searched_run

pytestmark = pytest.mark.browser
PAGES = ("report.html", "sweep.html")
CONTRAST = """(() => {
  const read = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  return [...document.querySelectorAll('.heat .value')].map((text) => {
    const [a, b] = [text, text.previousElementSibling].map((e) => light(read(getComputedStyle(e).fill)));
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with opened_tab(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture(scope="module")
def folder(browser: Tab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_searched_run(tmp_path_factory.mktemp("searched"))


@pytest.fixture(params=PAGES)
def tab(browser: Tab, folder: Path, request: pytest.FixtureRequest) -> Iterator[Tab]:
    browser.events.clear()
    browser.open((folder / request.param).as_uri())
    yield browser
    assert browser.complaints() == []
    browser.ask("Emulation.clearDeviceMetricsOverride")
    browser.ask("Emulation.setEmulatedMedia", features=[])


def test_scripts_run_and_pictures_are_shown(tab: Tab) -> None:
    assert tab.run("document.documentElement.dataset.errors") is None
    assert tab.run("document.querySelector('h1').textContent") in (
        "How well hidden are they?", "Which thresholds agree with people?"
    )  # fmt: skip
    tab.run("for (const image of document.images) image.loading = 'eager'")
    tab.wait("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
    scores = "hidden" in str(tab.run("document.querySelector('h1').textContent"))
    assert tab.run("document.images.length") == (20 if scores else 0)
    assert tab.run("document.querySelectorAll('svg.chart').length") == (1 if scores else 2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_all_fits_the_screen(tab: Tab, width: int, scheme: str) -> None:
    tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    tab.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=True)
    assert tab.run("document.documentElement.scrollWidth") <= width
    dark = tab.run("parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]) < 128")
    assert dark == (scheme == "dark")
    # nothing but what scrolls by itself reaches over the right edge, and no two cards lie on each other
    over = tab.run(
        "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll') && !e.closest('svg')"
        " && e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML)"
    )
    assert over == []
    assert min(tab.run(CONTRAST), default=21) >= 4.5
    sizes = tab.run(
        "[...document.querySelectorAll('svg.chart text')].map((text) => parseFloat(getComputedStyle(text).fontSize)"
        " * text.ownerSVGElement.clientWidth / text.ownerSVGElement.viewBox.baseVal.width)"
    )
    assert min(sizes) >= 8.5


def test_tables_are_copied(tab: Tab) -> None:
    tab.run(
        "window.copied = []; Object.defineProperty(navigator, 'clipboard',"
        " { value: { writeText: async (text) => { window.copied.push(text); } } })"
    )
    tab.run("for (const button of document.querySelectorAll('.copy[data-name=Markdown]')) button.click()")
    copied = tab.run("window.copied")
    assert len(copied) == tab.run("document.querySelectorAll('figure.table').length") >= 2
    assert all(text.startswith("**") and "| :-- |" in text for text in copied)
