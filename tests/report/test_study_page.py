from __future__ import annotations

import json
from base64 import b64decode

import numpy as np
import pytest
from parsed_page import Page

from crypsis.camouflage.study import QUESTION, Study, plan_study
from crypsis.errors import InputError
from crypsis.io import decode_image
from crypsis.report.study import build_study_page
from crypsis.types import Image

EVIL = "</script><script>alert(1)</script>"
STUDY = plan_study(dict.fromkeys((EVIL, "b", "c", "d"), "owl"), pairs=6, obvious=["plain"], participants=2)


def picture(name: str) -> Image:
    return np.full((30, 90, 3), 20 * STUDY.images.index(name), np.uint8)


def build(study: Study = STUDY, **options: float) -> str:
    return build_study_page(study, picture, title=EVIL, **options)


def test_it_holds_all_trials_and_each_picture_once() -> None:
    data = json.loads(Page(build()).data["study"])
    assert data["names"] == list(STUDY.images)
    found = [
        [(data["names"][left], data["names"][right], answer, species) for left, right, answer, species in trials]
        for trials in data["lists"]
    ]
    assert found == [[(v.left, v.right, v.answer or "", v.species or "") for v in trials] for trials in STUDY.lists]
    for name, uri in zip(data["names"], data["pictures"], strict=True):
        pixels = decode_image(b64decode(uri.removeprefix("data:image/webp;base64,")))
        assert np.abs(pixels.astype(int) - picture(name)).max() <= 3


def test_pictures_are_shrunk_alike() -> None:
    data = json.loads(Page(build(size=45)).data["study"])
    sizes = {decode_image(b64decode(uri.partition(",")[2])).shape for uri in data["pictures"]}
    assert sizes == {(15, 45, 3)}


def test_it_loads_nothing_and_runs_one_script() -> None:
    html = build()
    page = Page(html)
    assert "default-src 'none'" in html
    assert len(page.all("script")) == 2
    assert EVIL not in html
    assert "//" not in "".join(str(a.get(name)) for _, a in page.tags for name in ("src", "href", "action"))


def test_it_asks_the_papers_question_and_for_consent() -> None:
    page = Page(build())
    assert QUESTION in page.words
    assert "harder to find" in page.words
    assert {a["id"] for a in page.all("input") if "required" in a} == {"number", "consent"}
    assert next(a for a in page.all("input") if a["id"] == "number")["max"] == "2"
    labels = {a["for"] for a in page.all("label") if "for" in a}
    assert "number" in labels
    assert all(a.get("aria-label") for a in page.all("button") if a.get("id") in ("left", "right"))


def test_another_study_keeps_its_answers_elsewhere() -> None:
    other = plan_study(dict.fromkeys((EVIL, "b", "c", "d"), "owl"), pairs=6, obvious=["plain"], seed=1)
    first, second = (json.loads(Page(build(study)).data["study"])["id"] for study in (STUDY, other))
    assert first != second
    assert build() == build()


def test_what_is_too_large() -> None:
    with pytest.raises(InputError, match="The first 1 of 5 pictures already take more than 5e-05 MB"):
        build(megabytes=5e-5)
    with pytest.raises(InputError, match="at least 1 pixel"):
        build(size=0)
