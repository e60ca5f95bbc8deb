"""The ARNIQA rows against what the published code makes of the same pixels (see `origin` in the file)."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crypsis.catalog import Entry, get_entry, list_entries

with np.load(Path(__file__).parent.parent / "data" / "parity_arniqa.npz", allow_pickle=False) as stored:
    REFERENCE = dict(stored)
ORIGIN = json.loads(str(REFERENCE["origin"]))
SMALL, MIDDLE, LARGE = REFERENCE["small"], REFERENCE["middle"], REFERENCE["large"]
SEVERITIES = (1, 2, 3, 4, 5)
each_severity = pytest.mark.parametrize("severity", SEVERITIES)

# The largest mean difference in gray levels: the share of values that are rounded the other way. It is large where
# values lie on a boundary by construction: exact halves, and rounding down after a round trip (colorsat2@1).
MEAN = {
    "gaublur": 0.1,
    "lensblur": 0.001,
    "motionblur": 0.1,
    "colordiff": 0.02,
    "colorshift": 0.001,
    "colorsat1": 0.1,
    "colorsat2": 0.02,
    "jpeg": 0.01,
    "brighten": 0.01,
    "darken": 0,
    "meanshift": 0,
    "pixelate": 0,
    "quantization": 0,
    "highsharpen": 0.01,
    "lincontrchange": 0,
    "nonlincontrchange": 0.2,
}


class Scripted:
    """In place of a generator: gives back what the published code drew."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def integers(self, low: int, high: int) -> int:
        assert low <= self.draw < high
        return self.draw

    def random(self, size: int | tuple[int, ...]) -> np.ndarray:
        return np.asarray(self.draw).reshape(size)


def run(term: str, severity: int, image: np.ndarray, draw: Any = None) -> np.ndarray:
    entry = get_entry("arniqa", term)
    given = {"rng": Scripted(draw)} if entry.random else {}
    return entry.operator(image, **entry.parameters[severity - 1], **given)


@pytest.mark.parametrize("term", MEAN)
@each_severity
def test_same_pixels(term: str, severity: int) -> None:
    image = SMALL[:16] if term in ORIGIN["simple"] else SMALL
    draw = {"motionblur": ORIGIN["angles"], "colorshift": ORIGIN["ways"]}.get(term, SEVERITIES)[severity - 1]
    difference = abs(run(term, severity, image, draw).astype(int) - REFERENCE[f"{term}@{severity}"])
    assert difference.max() <= (0 if MEAN[term] == 0 else 1)
    assert difference.mean() <= (0.6 if (term, severity) == ("colorsat2", 1) else MEAN[term])


@each_severity
def test_same_jpeg2000(severity: int) -> None:
    ours = run("jpeg2000", severity, LARGE)[::2, ::2, (severity - 1) % 3]
    assert abs(ours.astype(int) - REFERENCE[f"jpeg2000@{severity}"]).max() <= 1


def test_same_patches() -> None:
    assert np.array_equal(run("noneccpatch", 5, MIDDLE, REFERENCE["patch_draws"]), REFERENCE["noneccpatch@5"])


def test_same_blocks() -> None:
    assert np.array_equal(run("colorblock", 5, MIDDLE, REFERENCE["block_draws"]), REFERENCE["colorblock@5"])


@pytest.mark.parametrize("term", ORIGIN["random"])
@each_severity
def test_same_distribution(term: str, severity: int) -> None:
    """Mean and deviation of the change in each channel, its correlation between channels and between neighbors."""
    mean, deviation, channels, neighbors = np.split(
        REFERENCE[f"moments@{severity}"][ORIGIN["random"].index(term)], [3, 6, 9]
    )
    entry = get_entry("arniqa", term)
    keys = [str(k) for k in range(ORIGIN["draws"])]
    change = np.stack([entry.degrade(MIDDLE, severity, seed=0, image_key=k) for k in keys]).astype(float) - MIDDLE
    change = change[:, 12:-12, 12:-12]  # at the border the published jitter has values far out of range
    flat = change.reshape(-1, 3)
    few = term == "impulsenoise"  # a hit in a thousand or two hundred values
    assert flat.mean(0) == pytest.approx(mean, abs=0.02 + 0.01 * deviation.max())
    assert flat.std(0) == pytest.approx(deviation, rel={1: 0.17, 2: 0.08}.get(severity, 0.04) if few else 0.04)
    assert np.corrcoef(flat.T)[np.triu_indices(3, 1)] == pytest.approx(channels, abs=0.015)
    across = np.corrcoef(change[:, :, 1:].ravel(), change[:, :, :-1].ravel())[0, 1]
    down = np.corrcoef(change[:, 1:].ravel(), change[:, :-1].ravel())[0, 1]
    # jitter rounds to 8 bits in each of its five passes; the mildest has little else
    assert np.array([across, down]) == pytest.approx(neighbors, abs=0.05 if term == "jitter" else 0.015)


def test_motion_takes_every_direction_alike() -> None:
    class Recorder(np.random.Generator):
        def integers(self, *bounds: int, **options: Any) -> Any:
            asked.append(bounds)
            return super().integers(*bounds, **options)

    asked: list[tuple[int, ...]] = []
    entry = get_entry("arniqa/motionblur")
    entry.operator(SMALL, **entry.parameters[4], rng=Recorder(np.random.SFC64(0)))
    assert asked == [(0, 181)]  # Python's randint(0, 180) of the published code


PUBLISHED = {
    "gaublur": ("sigma", [0.1, 0.5, 1, 2, 5]),
    "lensblur": ("radius", [1, 2, 4, 6, 8]),
    "motionblur": ("length", [1, 2, 4, 6, 10]),
    "colordiff": ("factor", [1, 3, 6, 8, 12]),
    "colorshift": ("amount", [1, 3, 6, 8, 12]),
    "colorsat1": ("factor", [0.4, 0.2, 0.1, 0, -0.4]),
    "colorsat2": ("factor", [1, 2, 3, 6, 9]),
    "jpeg2000": ("ratio", [16, 32, 45, 120, 170]),
    "jpeg": ("quality", [43, 36, 24, 7, 4]),
    "whitenoise": ("sigma", 255 * np.sqrt([0.001, 0.002, 0.003, 0.005, 0.01])),
    "whitenoiseCC": ("sigma", 255 * np.sqrt([0.0001, 0.0005, 0.001, 0.002, 0.003])),
    "impulsenoise": ("density", [0.001, 0.005, 0.01, 0.02, 0.03]),
    "multnoise": ("sigma", np.sqrt([0.001, 0.005, 0.01, 0.02, 0.05])),
    "brighten": ("amount", [0.1, 0.2, 0.4, 0.7, 1.1]),
    "darken": ("amount", [0.05, 0.1, 0.2, 0.4, 0.8]),
    "meanshift": ("offset", 255 * np.array([0, 0.08, -0.08, 0.15, -0.15])),
    "jitter": ("sigma", [0.05, 0.1, 0.2, 0.5, 1]),
    "noneccpatch": ("patches", [20, 40, 60, 80, 100]),
    "pixelate": ("scale", [0.8869, 0.7843, 0.6988, 0.5693, 0.2902]),
    "quantization": ("levels", [20, 16, 13, 10, 7]),
    "colorblock": ("blocks", [2, 4, 6, 8, 10]),
    "highsharpen": ("amount", [1, 2, 3, 6, 12]),
    "lincontrchange": ("amount", [0, 0.15, -0.4, 0.3, -0.6]),
    "nonlincontrchange": ("scale", [0.8, 0.6, 0.4, 0.2, 0.1]),
}
ROWS = list_entries(family="arniqa")


def test_rows_in_the_published_order() -> None:
    assert [e.term for e in ROWS] == list(PUBLISHED)


@pytest.mark.parametrize("entry", ROWS, ids=lambda e: e.term)
def test_row(entry: Entry) -> None:
    parameter, levels = PUBLISHED[entry.term]
    assert [p[parameter] for p in entry.parameters] == pytest.approx(levels, abs=5e-5)
    assert entry.paper == "Agnolucci_WACV_2024"
    assert entry.name == f"arniqa/{entry.term}"
    assert entry.note
    assert entry.moves_pixels == (entry.term in ("colorshift", "jitter", "noneccpatch", "pixelate"))
    assert entry.monotone == (entry.term not in ("meanshift", "lincontrchange"))
    assert get_entry(entry.name.upper()) is entry
    if entry.field is not None:
        field = set(inspect.signature(entry.field).parameters) - {"height", "width"}
        assert field == set(inspect.signature(entry.operator).parameters) - {"image"}


@pytest.mark.parametrize(
    ("alias", "term"),
    [
        ("gaussian_blur", "gaublur"),
        ("white_noise_in_color_component", "whitenoiseCC"),
        ("multiplicative_gaussian_noise", "multnoise"),
        ("brightness_increase", "brighten"),
        ("jpeg2000_compression", "jpeg2000"),
        ("nonlinear_contrast_change", "nonlincontrchange"),
    ],
)
def test_long_names(alias: str, term: str) -> None:
    assert get_entry("Agnolucci_WACV_2024", alias).term == term
