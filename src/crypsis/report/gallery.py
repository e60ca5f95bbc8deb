"""A gallery: one image under every entry and severity, in one HTML file that opens offline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np

from ..catalog.entry import Entry
from ..errors import InputError
from ..io import encode_image
from ..types import Image, check_image
from .markup import attributes, document, escape, webp_uri

__all__ = ["build_gallery"]

_SHOWN = 200
_LARGE = 400
_BYTES = 2_000_000
_QUALITIES = (80, 55, 25)


def build_gallery(image: Image, *, entries: Sequence[Entry], seed: int, image_key: str, title: str) -> str:
    """Return a page with the image, clean and under every entry at every severity.

    Every picture is degraded at full size and then shrunk; the PSNR beside it is measured at full size. The page
    stays below about 3 MB: pictures are 400 px wide where they are few, 200 px where they are many, and their
    WebP quality follows from their number.

    Args:
        image: uint8 H×W×3, RGB.
        entries: the rows, in order.
        seed: seed of the random ones.
        image_key: the image's name inside its data set, on which the random ones depend.
        title: heading.

    Raises:
        ImageError: `image` is not uint8 H×W×3.
        InputError: there are no entries.
    """
    check_image(image)
    if not entries:
        raise InputError("A gallery needs at least one degradation.")
    cells = 1 + sum(len(entry.severities) for entry in entries)
    width = _LARGE if cells * _LARGE * _LARGE <= 4 * _BYTES else _SHOWN
    most = _BYTES // cells
    clean = _encode(_shrink(image, width), most)
    rows = [_row(image, entry, seed, image_key, width, most) for entry in entries]
    height = image.shape[0]
    body = [
        '<a class="skip" href="#rows">Skip to the pictures</a>',
        f'<header><p class="eyebrow">Crypsis gallery of degradations</p><h1>{escape(title)}</h1>'
        f'<p class="scope">{len(entries)} degradation{"s" * (len(entries) != 1)} of one image '
        f"(<bdi>{escape(image_key)}</bdi>, {image.shape[1]}×{height} px), seed {seed}.</p></header>",
        '<main><div class="strip-intro">'
        f'<figure class="clean wide"><img id="clean"{attributes(src=webp_uri(clean), alt="the clean image")}>'
        "<figcaption>clean</figcaption></figure>",
        "<p>Severities 1 to 5 are each paper's own levels. PSNR is measured over all pixels and channels at full size; "
        "lower means stronger. Select a picture to enlarge it and to compare it with the clean one.</p></div>",
        _filters(entries),
        f'<div id="rows">{"".join(rows)}</div></main>',
        _DIALOG,
    ]
    return document(title, "\n".join(body), script="gallery.js")


def _row(image: Image, entry: Entry, seed: int, image_key: str, width: int, most: int) -> str:
    cells = []
    for severity in entry.severities:
        degraded = entry.degrade(image, severity, seed=seed, image_key=image_key)
        parameters = _parameters(entry.parameters[severity - 1])
        strength = _psnr_text(image, degraded)
        name = f"{entry.title}, severity {severity}"
        more = f"{parameters} · {strength}"
        source = webp_uri(_encode(_shrink(degraded, width), most))
        cells.append(
            f'<figure><button type="button" class="enlarge"{attributes(data_label=name, data_more=more)}>'
            f"<img{attributes(src=source, alt=name, loading='lazy')}></button>"
            f"<figcaption><b>{severity}</b> {escape(parameters)}<span>{escape(strength)}</span></figcaption></figure>"
        )
    chips = "".join(
        f'<span class="chip"{attributes(title=part.meaning)}>{escape(f"{kind}: {part.title}")}</span>'
        for kind, part in (("cause", entry.cause), ("effect", entry.effect), (entry.group.code, entry.group))
    )
    facts = [
        "random" if entry.random else "",
        "moves pixels" if entry.moves_pixels else "",
        "" if entry.monotone else "order of severities not monotone",
    ]
    chips += "".join(f'<span class="chip">{fact}</span>' for fact in facts if fact)
    note = f"<p>{escape(entry.note)}</p>" if entry.note else ""
    return (
        f'<section class="entry"{attributes(data_cause=entry.cause.code, data_effect=entry.effect.code)}'
        f"{attributes(data_family=entry.family)}><h2>{escape(entry.title)} <code>{escape(entry.name)}</code></h2>"
        f'<p class="chips">{chips}</p><div class="cells">{"".join(cells)}</div>'
        f"<details><summary>Source</summary><p>{escape(entry.source)}</p>{note}</details></section>"
    )


def _filters(entries: Sequence[Entry]) -> str:
    causes = {e.cause.code: e.cause.title for e in entries}
    effects = {e.effect.code: e.effect.title for e in entries}
    families = {e.family: e.family for e in entries}
    choices = "".join(
        f'<label>{label} <select data-filter="{name}"><option value="">all</option>{_options(values)}</select></label>'
        for label, name, values in (
            ("Cause", "cause", causes), ("Effect", "effect", effects), ("Family", "family", families),
        )
    )  # fmt: skip
    return f'<div class="filters" role="group" aria-label="Filter">{choices}<output>{len(entries)} shown</output></div>'


def _options(values: Mapping[str, str]) -> str:
    return "".join(f"<option{attributes(value=value)}>{escape(text)}</option>" for value, text in values.items())


_DIALOG = """<dialog aria-labelledby="enlarged-title"><div class="bar"><h2 id="enlarged-title"></h2>
<button type="button" data-step="-1" aria-label="Previous picture">←</button>
<button type="button" data-step="1" aria-label="Next picture">→</button>
<button type="button" data-close>Close</button></div>
<div class="pair"><img id="enlarged-clean" alt=""><img id="enlarged" alt=""></div>
<label class="slide"><span>clean</span><input type="range" min="0" max="100" value="0" autofocus
 aria-label="Share of the clean image shown"><span>degraded</span></label><p id="enlarged-more"></p></dialog>"""


def _parameters(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )


def _psnr_text(clean: Image, degraded: Image) -> str:
    """Return the peak signal-to-noise ratio in dB over all pixels and channels, as text."""
    if clean.shape != degraded.shape:
        return "PSNR undefined: another size"
    error = float(np.mean(cv2.absdiff(clean, degraded).astype(np.float32) ** 2, dtype=np.float64))
    return "identical" if error == 0 else f"{10 * math.log10(255**2 / error):.1f} dB"


def _shrink(image: Image, width: int) -> Image:
    """Shrink to at most `width` px in width, and three times that in height; small images stay."""
    scale = min(width / image.shape[1], 3 * width / image.shape[0])
    if scale >= 1:
        return image
    size = (max(1, round(scale * image.shape[1])), max(1, round(scale * image.shape[0])))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def _encode(image: Image, most: int) -> bytes:
    """Return WebP of the best quality that takes at most `most` bytes; what never fits is shrunk until it does."""
    while True:
        for quality in _QUALITIES:
            data = encode_image(image, ".webp", quality=quality)
            if len(data) <= most:
                return data
        if min(image.shape[:2]) < 16:
            return data
        image = _shrink(image, image.shape[1] // 2)
