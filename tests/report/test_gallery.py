from __future__ import annotations

import re

import numpy as np
import pytest
from parsed_page import Page
from synthetic_runs import drawn_photographs

from crypsis.catalog import get_entry, list_entries
from crypsis.errors import ImageError, InputError
from crypsis.report import gallery
from crypsis.report.gallery import build_gallery
from crypsis.types import Image

ENTRIES = list_entries(family="cod10k-c")


@pytest.fixture(scope="module")
def image() -> Image:
    found: Image = drawn_photographs(1)[0][2]
    return found


@pytest.fixture(scope="module")
def html(image: Image) -> str:
    return build_gallery(image, entries=ENTRIES, seed=3, image_key="scene-0", title="Scene")


def test_every_entry_and_severity_is_shown(html: str) -> None:
    page = Page(html)
    assert len(page.classed("entry")) == 8
    assert len(page.classed("enlarge")) == 40
    assert "scene-0" in page.words
    assert "seed 3" in page.words
    for part in ("kernel 11", "sigma 40", "quality 20", "cause: Environment", "random"):
        assert part in page.words


@pytest.mark.parametrize(("name", "severity"), [("cod10k-c/fog", 2), ("cod10k-c/gaussian_noise", 5)])
def test_psnr_is_measured_on_the_pictures(html: str, image: Image, name: str, severity: int) -> None:
    degraded = get_entry(name).degrade(image, severity, seed=3, image_key="scene-0")
    error = np.mean((image.astype(float) - degraded.astype(float)) ** 2)
    label = f"{get_entry(name).title}, severity {severity}"
    button = next(a for a in Page(html).classed("enlarge") if a["data-label"] == label)
    assert f"{10 * np.log10(255**2 / error):.1f} dB" in (button["data-more"] or "")


def test_filters_list_what_is_there(html: str) -> None:
    page = Page(html)
    assert [a["data-filter"] for a in page.all("select")] == ["cause", "effect", "family"]
    values = {a["value"] for a in page.all("option")} - {""}
    rows = page.classed("entry")
    assert values == {row[key] for row in rows for key in ("data-cause", "data-effect", "data-family")}


def test_it_loads_nothing(html: str) -> None:
    for _, attributes in Page(html).tags:
        for name in ("src", "href"):
            if attributes.get(name):
                assert str(attributes[name]).startswith(("data:image/webp;base64,", "#"))
    assert "default-src 'none'" in html


def test_the_same_call_gives_the_same_page(html: str, image: Image) -> None:
    assert build_gallery(image, entries=ENTRIES, seed=3, image_key="scene-0", title="Scene") == html


def test_pictures_share_what_a_page_may_weigh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "_BYTES", 100_000)
    noise = np.random.default_rng(0).integers(0, 256, (150, 200, 3)).astype(np.uint8)
    html = build_gallery(noise, entries=ENTRIES, seed=0, image_key="noise", title="heavy")
    assert sum(map(len, re.findall(r"base64,([^\"]*)", html))) < 140_000
    assert len(Page(html).classed("enlarge")) == 40


def test_hostile_names(image: Image) -> None:
    evil = "<script>alert(1)</script>"
    html = build_gallery(image, entries=ENTRIES[:1], seed=0, image_key=evil, title=evil)
    assert evil not in html
    assert len(Page(html).all("script")) == 1


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (1, 300), (300, 1)])
def test_odd_sizes(shape: tuple[int, int]) -> None:
    html = build_gallery(np.full((*shape, 3), 90, np.uint8), entries=ENTRIES, seed=0, image_key="k", title="t")
    assert len(re.findall("data:image/webp", html)) == 41
    assert "identical" in html  # blurring a constant changes nothing


def test_no_entries_and_no_image(image: Image) -> None:
    with pytest.raises(InputError, match="at least one"):
        build_gallery(image, entries=[], seed=0, image_key="k", title="t")
    with pytest.raises(ImageError):
        build_gallery(image[:, :, 0], entries=ENTRIES, seed=0, image_key="k", title="t")
