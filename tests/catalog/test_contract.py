"""What every operator of the catalog keeps, whatever the entry, the severity and the image."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from natural_images import make_natural

from crypsis.catalog import Entry, get_entry, list_entries
from crypsis.errors import ImageError, InputError

ENTRIES = list_entries()
RANDOM = [e for e in ENTRIES if e.random]
SEVERITIES = (1, 2, 3, 4, 5)

each_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
each_random_entry = pytest.mark.parametrize("entry", RANDOM, ids=lambda e: e.name)
each_severity = pytest.mark.parametrize("severity", SEVERITIES)

NATURAL = make_natural(96, 128, seed=7)


def odd_images() -> dict[str, np.ndarray]:
    images = {f"{h}x{w}": NATURAL[:h, :w].copy() for h, w in ((1, 1), (2, 3), (1, 7), (7, 1), (31, 47), (7, 90))}
    images["gray"] = np.repeat(NATURAL[:31, :47, :1], 3, axis=2)
    images["black"] = np.zeros((31, 47, 3), np.uint8)
    images["white"] = np.full((31, 47, 3), 255, np.uint8)
    images["every second pixel"] = NATURAL[::2, ::2]
    images["upside down"] = NATURAL[::-1]
    images["BGR view"] = NATURAL[:, :, ::-1]
    images["transposed"] = NATURAL.transpose(1, 0, 2)
    images["one pixel repeated"] = np.broadcast_to(NATURAL[:1, :1], (9, 8, 3))
    images["Fortran order"] = np.asfortranarray(NATURAL)
    for image in images.values():
        image.flags.writeable = False
    return images


ODD = odd_images()


def degrade(entry: Entry, severity: int, image: np.ndarray, seed: int = 0, key: str = "a/b") -> np.ndarray:
    return entry.degrade(image, severity, seed=seed, image_key=key)


def test_number_of_entries() -> None:
    assert len(ENTRIES) == 68
    assert len({e.name for e in ENTRIES}) == 68
    families = Counter(e.family for e in ENTRIES)
    assert families == {"imagenet-c": 19, "arniqa": 24, "real-camera": 17, "cod10k-c": 8}
    assert [e.name for e in ENTRIES if e.extra] == ["real-camera/synchronization_exceptions"]


@each_entry
@each_severity
@pytest.mark.parametrize("image", ODD.values(), ids=ODD)
def test_kept_whatever_the_image(entry: Entry, severity: int, image: np.ndarray) -> None:
    before = image.tobytes()
    result = degrade(entry, severity, image)
    assert result.dtype == np.uint8
    assert result.shape == image.shape
    assert result.flags.c_contiguous
    assert result.flags.writeable
    assert not np.shares_memory(result, image)
    assert image.tobytes() == before
    # the layout in memory has no say
    assert np.array_equal(result, degrade(entry, severity, np.ascontiguousarray(image)))


@each_entry
def test_large_image(entry: Entry) -> None:
    image = np.tile(NATURAL, (12, 15, 1))[:1080, :1920]
    result = degrade(entry, 3, image)
    assert result.shape == image.shape
    assert not np.array_equal(result, image)


@each_entry
@each_severity
def test_same_names_same_bytes(entry: Entry, severity: int) -> None:
    first = degrade(entry, severity, NATURAL)
    np.random.seed(severity)  # noqa: NPY002  the global state is what must not matter
    random.seed(severity)
    assert np.array_equal(degrade(entry, severity, NATURAL), first)


@each_random_entry
@each_severity
def test_other_names_other_bytes(entry: Entry, severity: int) -> None:
    results = [
        degrade(entry, severity, NATURAL, seed, key).tobytes()
        for seed, key in ((0, "a/b"), (1, "a/b"), (-1, "a/b"), (0, "a/c"), (0, "b/a"))
    ]
    if (entry.name, severity) == ("arniqa/motionblur", 1):  # changes nothing
        assert set(results) == {NATURAL.tobytes()}
    elif (entry.name, severity) in (("arniqa/colorshift", 1), ("arniqa/colorshift", 2)):  # few whole-pixel shifts
        assert len(set(results)) > 2
    else:
        assert len(set(results)) == len(results)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if not e.random], ids=lambda e: e.name)
def test_names_do_not_matter_where_nothing_is_random(entry: Entry) -> None:
    assert np.array_equal(degrade(entry, 4, NATURAL, 0, "a"), degrade(entry, 4, NATURAL, 1, "b"))


@each_entry
def test_global_generators_are_left_alone(entry: Entry) -> None:
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    degrade(entry, 3, NATURAL)
    assert str(np.random.get_state()) == str(numpy_state)  # noqa: NPY002
    assert random.getstate() == python_state


def test_another_process_gives_the_same_bytes() -> None:
    program = (
        "import hashlib, numpy as np; from crypsis.catalog import list_entries\n"
        "image = (np.arange(40 * 50 * 3) * 7 % 256).astype(np.uint8).reshape(40, 50, 3)\n"
        "for e in list_entries():\n"
        "    for s in e.severities:\n"
        "        print(hashlib.sha256(e.degrade(image, s, seed=5, image_key='k').tobytes()).hexdigest())\n"
    )
    outputs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0].split())) > 4.5 * len(ENTRIES)  # a few rows have levels that change nothing


@each_random_entry
def test_severities_share_their_field(entry: Entry) -> None:
    image = make_natural(200, 260, seed=3)

    def distance(other: str) -> np.ndarray:
        """How far severity s + 1 of an image is from severity s of it under another key, for s = 1..4."""
        pairs = [
            [degrade(entry, s, image, 0, k).astype(float) - degrade(entry, s + 1, image, 0, k + other) for k in "abc"]
            for s in SEVERITIES[:-1]
        ]
        return np.abs(pairs).mean(axis=(1, 2, 3, 4))

    ratio = distance("") / distance("x")
    assert ratio.mean() < 0.95, ratio


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.monotone], ids=lambda e: e.name)
@pytest.mark.parametrize("seed", range(3))
def test_monotone_entries_grow_in_strength(entry: Entry, seed: int) -> None:
    image = make_natural(240, 320, seed)
    errors = [float(np.mean((degrade(entry, s, image).astype(float) - image) ** 2)) for s in SEVERITIES]
    assert (errors[0] > 0) != (entry.name in ("arniqa/gaublur", "arniqa/motionblur"))  # level 1 is the identity
    assert all(a < b for a, b in pairwise(errors)), errors


@pytest.mark.parametrize("severity", [0, 6, -1, True, 2.5, "3", None])
def test_severities_out_of_range(severity: object) -> None:
    with pytest.raises(InputError, match="severities 1 to 5"):
        degrade(get_entry("cod10k-c/fog"), severity, NATURAL)


@pytest.mark.parametrize(
    "image",
    [NATURAL[:, :, 0], NATURAL[:, :, :2], NATURAL / 255, NATURAL.astype(np.uint16), NATURAL[:0], [[1]], NATURAL[None]],
)
def test_entries_take_eight_bit_rgb_alone(image: object) -> None:
    with pytest.raises(ImageError):
        degrade(get_entry("cod10k-c/rain"), 3, image)


@settings(deadline=None, max_examples=150)
@given(
    image=npst.arrays(np.uint8, st.tuples(st.integers(1, 24), st.integers(1, 24), st.just(3))),
    entry=st.sampled_from(ENTRIES),
    severity=st.sampled_from(SEVERITIES),
    seed=st.integers(-(2**70), 2**70),
    key=st.text(max_size=12),
)
def test_any_small_image(image: np.ndarray, entry: Entry, severity: int, seed: int, key: str) -> None:
    before = image.copy()
    result = degrade(entry, severity, image, seed, key)
    assert result.shape == image.shape
    assert result.dtype == np.uint8
    assert not np.shares_memory(result, image)
    assert np.array_equal(image, before)


def test_options_beside_the_levels() -> None:
    frost = get_entry("imagenet-c/frost").with_options(textures="nowhere")
    assert [levels["textures"] for levels in frost.parameters] == ["nowhere"] * 5
    with pytest.raises(ImageError, match="nowhere"):
        frost.degrade(np.zeros((8, 8, 3), np.uint8), 3, seed=0, image_key="a")
    with pytest.raises(InputError, match="nothing"):
        get_entry("imagenet-c/frost").with_options(nothing=1)
