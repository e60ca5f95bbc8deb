"""The page of a two-alternative study: one HTML file that shows pairs, keeps the answers, and saves votes.csv.

It needs no network and allows none. Whoever reads its source finds the right answers of the catch trials.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import cv2
import numpy as np

from ..camouflage.study import QUESTION, Study, votes_csv
from ..errors import InputError
from ..io import encode_image
from ..types import Image
from .markup import attributes, document, escape, json_script, webp_uri

__all__ = ["build_study_page"]

_QUALITY = 85


def build_study_page(
    study: Study, picture: Callable[[str], Image], *, title: str, size: int = 640, megabytes: float = 40.0
) -> str:
    """Return the page that runs a study.

    All pictures are shrunk and compressed alike, so that none is harder to see for that.

    Args:
        study: who is shown what.
        picture: returns the image of a name, uint8 H×W×3 RGB; called once for each.
        title: heading.
        size: longest side of a picture in pixels, at least 1; smaller images stay.
        megabytes: most that the pictures may take in the page, in 10⁶ bytes.

    Raises:
        InputError: the pictures take more, or `size` is below 1.
        CrypsisError: whatever `picture` raises.
    """
    if size < 1:
        raise InputError(f"A picture is at least 1 pixel large; got {size!r}.")
    names = study.images
    pictures: list[str] = []
    total = 0
    for name in names:
        pictures.append(webp_uri(encode_image(_shrink(picture(name), size), ".webp", quality=_QUALITY)))
        total += len(pictures[-1])
        if total > megabytes * 1e6:
            raise InputError(
                f"The first {len(pictures)} of {len(names)} pictures already take more than {megabytes:g} MB in the "
                "page; allow more, or choose a smaller size or fewer pairs."
            )
    place = {name: i for i, name in enumerate(names)}
    lists = [
        [(place[v.left], place[v.right], v.answer or "", v.species or "") for v in trials] for trials in study.lists
    ]
    data = {
        "id": hashlib.sha256(votes_csv(study.votes).encode()).hexdigest()[:16],
        "names": names,
        "pictures": pictures,
        "lists": lists,
    }
    body = _BODY.format(
        title=escape(title),
        question=escape(QUESTION),
        trials=max(map(len, study.lists)),
        number=attributes(min=1, max=len(study.lists)),
        most=len(study.lists),
    )
    return document(title, body + json_script("study", data), script="study.js")


def _shrink(image: Image, size: int) -> Image:
    scale = size / max(image.shape[:2])
    if scale >= 1:
        return image
    width, height = (max(1, round(scale * n)) for n in image.shape[1::-1])
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


_BODY = """<div class="study">
<p id="lost" class="banner" role="alert" hidden>This browser keeps nothing: save your answers before you close or reload
this page, or open it in another browser.</p>
<main>
<section id="start"><p class="eyebrow">A study of camouflage</p><h1>{title}</h1>
<p class="lead">You will see about {trials} pairs of images. In each image there is an animal.
Choose the image in which the animal is harder to find.</p>
<p>There is no time limit; go by your first impression. Press <kbd>←</kbd> or <kbd>→</kbd>, or select the image.
Your answers stay in this browser until you save them as a file; nothing is sent anywhere, and no name is asked for.</p>
<form id="begin"><p><label for="number">Your participant number, 1 to {most}</label>
<input id="number" type="number" inputmode="numeric" required{number}></p>
<p><label><input id="consent" type="checkbox" required> I take part of my own free will, agree that my answers are used
for research, and know that I may stop at any time.</label></p>
<p class="actions"><button class="main">Begin</button>
<button type="button" id="print">Print this list</button></p></form></section>
<section id="run" hidden><div class="asked"><h2 id="question" tabindex="-1">{question}</h2>
<p><progress id="progress" aria-labelledby="count"></progress> <span id="count" role="status"></span></p></div>
<div class="choices"><button type="button" id="left" aria-label="A: this image is more camouflaged"
 aria-keyshortcuts="ArrowLeft"><img alt="" decoding="sync"><span><kbd>←</kbd> A</span></button>
<button type="button" id="right" aria-label="B: this image is more camouflaged"
 aria-keyshortcuts="ArrowRight"><img alt="" decoding="sync"><span>B <kbd>→</kbd></span></button></div>
<p class="actions"><button type="button" data-back aria-keyshortcuts="Backspace">Back</button>
<button type="button" data-save>Save my answers so far</button></p></section>
<section id="done" hidden><h2 tabindex="-1">Thank you</h2>
<p class="lead">All pairs are answered. Save your answers and give the file to whoever runs the study.</p>
<p class="actions"><button type="button" class="main" data-save>Save votes.csv</button>
<button type="button" data-back>Back</button>
<button type="button" id="next">Next participant</button></p></section>
<p id="saved" role="status"></p></main>
<section id="paper" hidden></section>
</div>
"""
