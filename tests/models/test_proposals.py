"""Observers: their names, the embedded one, and proposals that are saved."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.errors import InputError, MissingDependencyError, ModelError, UnknownNameError
from crypsis.models import embedded_observer, robust_cod_lite_segmenter
from crypsis.models.coco_classes import CLASSES
from crypsis.models.embedded_observer import EmbeddedObserver, class_weights, cut_out
from crypsis.models.proposals import ProposalSource, StoredProposals, clean_category, load_proposer
from crypsis.models.saved_proposals import MAX_PROPOSALS, SavedProposals, save_proposals
from crypsis.types import Detections, Image, Prediction, Proposals


@pytest.mark.parametrize(
    ("given_name", "cleaned"),
    [
        ("frog", "frog"),
        ("BatFish", "bat fish"),
        ("leafy_sea  dragon", "leafy sea dragon"),
        ("Rana sp.", "rana sp"),
        ("owl?", "owl"),
        ("Steller's jay", "steller's jay"),
        ("red-eyed tree frog\n", "red-eyed tree frog"),
        ("Ménétries’s warbler", "ménétries’s warbler"),
        ("word " * 13, "word " * 11 + "word"),
        ("x" * 100, "x" * 60),
    ],
)  # fmt: skip
def test_names_are_cleaned(given_name: str, cleaned: str) -> None:
    assert clean_category(given_name) == cleaned


@pytest.mark.parametrize("name", ["", " ", "._?", "-"])
def test_no_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no name of what is shown"):
        clean_category(name)


@given(st.text(max_size=200))
@settings(deadline=None, max_examples=200)
def test_cleaned_names_are_short_single_phrases(name: str) -> None:
    try:
        cleaned = clean_category(name)
    except InputError:
        return
    assert 0 < len(cleaned) <= 60
    assert not set(cleaned) & set(".?\n\t")
    assert "  " not in cleaned


@pytest.mark.parametrize(
    ("category", "own"),
    [
        ("bear", "bear"), ("snow leopard", "cat"), ("owls", "bird"), ("human", "person"), ("wolf", "dog"),
        ("frog", None), ("sea lion", None), ("sea horse", None), ("owl butterfly", None), ("umbrella", "umbrella"),
    ],
)  # fmt: skip
def test_a_category_has_a_class_of_its_own_or_any_animal(category: str, own: str | None) -> None:
    weights = dict(zip(CLASSES, class_weights(category).tolist(), strict=True))
    if own is None:
        assert {name for name, weight in weights.items() if weight == 1} == {
            "bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe"
        }  # fmt: skip
        assert weights["car"] == 0
        return
    assert [name for name, weight in weights.items() if weight == 1] == [own]
    assert weights["giraffe"] == (0 if own in ("person", "umbrella") else 0.5)


def scene() -> tuple[Image, np.ndarray]:
    """Return a gray scene with noise, and a red disc in it."""
    rng = np.random.default_rng(0)
    image = np.clip(110 + 10 * rng.standard_normal((96, 128, 3)), 0, 255).astype(np.uint8)
    y, x = np.mgrid[:96, :128]
    disc = np.hypot(y - 50, x - 60) < 20
    image[disc] = (200, 30, 30)
    return image, disc


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    return float((a & b).sum() / (a | b).sum())


def test_grabcut_cuts_a_plain_object_out_whatever_the_random_state() -> None:
    image, disc = scene()
    box = (slice(26, 76), slice(36, 86))
    cv2.setRNGSeed(1)
    found = cut_out(image, box)
    cv2.setRNGSeed(2)
    assert (cut_out(image, box) == found).all()
    assert overlap(found, disc) > 0.9
    large = cv2.resize(image, (640, 480), interpolation=cv2.INTER_CUBIC)
    assert (
        overlap(cut_out(large, (slice(130, 380), slice(180, 430))), cv2.resize(disc.astype(np.uint8), (640, 480)) > 0)
        > 0.9
    )


def test_grabcut_of_a_box_without_surroundings_is_the_box() -> None:
    image, _ = scene()
    assert cut_out(image, (slice(0, 96), slice(0, 128))).all()


class Detector:
    """Says the same of every image."""

    def __init__(self, rows: Sequence[tuple[str, float, tuple[float, ...]]]) -> None:
        self.found = Detections(
            np.array([box for _, _, box in rows], np.float32).reshape(-1, 4),
            np.array([score for _, score, _ in rows], np.float32),
            np.array([CLASSES.index(name) for name, _, _ in rows], np.int64),
        )

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        return [self.found] * len(images)


def observe(rows: Sequence[tuple[str, float, tuple[float, ...]]], category: str, **options: int) -> Proposals:
    observer = EmbeddedObserver(segment="grabcut", **options)
    observer._detector = Detector(rows)  # type: ignore[assignment]
    return observer.propose(scene()[0], category)


HERE, THERE = (36, 26, 86, 76), (0, 0, 30, 20)


@pytest.mark.parametrize(
    ("rows", "category", "alpha", "beta"),
    [
        ([("bird", 0.4, HERE)], "owl", [1.0], [0.4]),
        ([("cat", 0.4, HERE)], "owl", [0.5], [0.4]),
        ([("cat", 0.4, HERE)], "frog", [1.0], [0.4]),
        ([("bird", 0.3, HERE), ("umbrella", 0.6, HERE)], "owl", [0.5], [0.3]),
        ([("bird", 0.3, HERE), ("umbrella", 0.6, THERE)], "owl", [1.0], [0.3]),
        ([("bird", 0.3, HERE), ("cat", 0.4, HERE)], "owl", [0.75], [0.3]),
        ([("bird", 0.3, THERE), ("cat", 0.4, HERE)], "frog", [1.0, 1.0], [0.4, 0.3]),
        ([("umbrella", 0.6, HERE)], "owl", [], []),
        ([("bird", 0.6, (5, 5, 5, 9))], "owl", [], []),
        ([("bird", 0.6, (-9, -9, -2, -2))], "owl", [], []),
        ([], "owl", [], []),
    ],
)  # fmt: skip
def test_alpha_is_the_share_of_the_categorys_class_at_the_place(rows, category, alpha, beta) -> None:
    found = observe(rows, category)
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-6)
    np.testing.assert_allclose(found.beta, beta, rtol=1e-6)
    assert found.masks.shape == (len(alpha), 96, 128)


def test_masks_stay_in_their_boxes_and_only_the_best_are_made() -> None:
    rows = [("bird", 0.4, HERE), ("bird", 0.2, THERE), ("bird", 0.9, (100.5, 50.5, 300, 300))]
    found = observe(rows, "owl", limit=2)
    np.testing.assert_allclose(found.beta, [0.9, 0.4], rtol=1e-6)
    assert found.boxes is not None
    assert found.boxes.tolist() == [[100.5, 50.5, 128, 96], list(map(float, HERE))]
    assert overlap(found.masks[1], scene()[1]) > 0.9
    assert not found.masks[0][:50].any()
    assert not found.masks[0][:, :100].any()


class Network:
    """Takes the red for the object; remembers the sizes of what it was given."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, ...]] = []

    def predict(self, images: Sequence[Image]) -> list[Prediction]:
        self.sizes = [image.shape[:2] for image in images]
        return [Prediction((image[..., 0] > 150).astype(np.float32)) for image in images]


def test_the_network_sees_the_box_with_40_percent_around_it() -> None:
    observer = EmbeddedObserver(segment="grabcut")
    observer._detector = Detector([("bird", 0.4, HERE), ("bird", 0.2, (30, 30, 60, 70))])  # type: ignore[assignment]
    network = Network()
    observer._segmenter = network  # type: ignore[assignment]
    found = observer.propose(scene()[0], "owl")
    assert network.sizes == [(70, 70), (56, 42)]
    disc = scene()[1]
    assert (found.masks[0] == disc).all()
    half = disc.copy()
    half[:, 60:] = False
    half[70:] = False
    assert (found.masks[1] == half).all()


def test_it_says_what_it_is_and_runs_as_it_ships() -> None:
    observer = load_proposer("embedded,segment=grabcut,limit=3,name=mine")
    assert isinstance(observer, ProposalSource)
    assert observer.name == "mine"
    described = observer.describe()
    assert (described["segment"], described["limit"], described["observer"]) == ("grabcut", 3, "embedded")
    image = scene()[0]
    before = image.copy()
    found = observer.propose(image, "frog")
    assert len(found.alpha) <= 3
    assert (image == before).all()
    again = observer.propose(image, "frog")
    assert (again.masks == found.masks).all()


def test_without_its_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(robust_cod_lite_segmenter, "WEIGHTS", tmp_path / "absent.onnx")
    assert embedded_observer.EmbeddedObserver().describe()["segment"] == "grabcut"
    with pytest.raises(MissingDependencyError, match="segment=grabcut"):
        load_proposer("embedded,segment=network")


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("embeded", UnknownNameError, "no observer 'embeded'; did you mean 'embedded'"),
        (".", UnknownNameError, r"For a folder of saved proposals write proposals:\."),
        ("embedded:x", ModelError, "nothing after the colon"),
        ("embedded,segment=sam", ModelError, r"network \| grabcut"),
        ("embedded,segments=grabcut", UnknownNameError, "did you mean 'segment'"),
        ("proposals", ModelError, "needs a folder"),
        ("proposals:nowhere", ModelError, "no folder of proposals nowhere"),
    ],
)
def test_wrong_specifications(spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_proposer(spec)


def some(count: int = 3, seed: int = 0) -> Proposals:
    rng = np.random.default_rng(seed)
    boxes = rng.uniform(0, 9, (count, 4))
    return Proposals(rng.random(count), rng.random(count), rng.random((count, 4, 5)) < 0.4, boxes)


def test_saved_and_read_back(tmp_path: Path) -> None:
    kept = some()
    save_proposals(tmp_path, "owls/a", kept)
    source = load_proposer(f"proposals:{tmp_path}")
    assert isinstance(source, StoredProposals)
    assert source.check(["owls/a", "b"]) == ["b"]
    found = source.load("owls/a", (4, 5))
    for name in ("alpha", "beta", "masks", "boxes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(kept, name))
    first = (tmp_path / "owls" / "a.npz").read_bytes()
    save_proposals(tmp_path, "owls/a", kept)
    assert (tmp_path / "owls" / "a.npz").read_bytes() == first
    save_proposals(tmp_path, "none", Proposals(np.zeros(0), np.zeros(0), np.zeros((0, 4, 5), bool)))
    assert source.load("none", (4, 5)).boxes is None


def test_json_equals_npz(tmp_path: Path) -> None:
    kept = some()
    masks = []
    for mask in kept.masks:
        flat = [False, *mask.ravel(order="F").tolist()]
        edges = [i for i in range(1, len(flat)) if flat[i] != flat[i - 1]]
        places = [1, *edges, len(flat)]
        masks.append({"size": [4, 5], "counts": [b - a for a, b in pairwise(places)]})
    content = {"alpha": kept.alpha.tolist(), "beta": kept.beta.tolist(), "masks": masks}
    (tmp_path / "a.json").write_text(json.dumps(content))
    found = SavedProposals(tmp_path).load("a", (4, 5))
    np.testing.assert_array_equal(found.masks, kept.masks)
    np.testing.assert_array_equal(found.alpha, kept.alpha)
    assert found.boxes is None


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_masks_as_coco_compresses_them_are_read(tmp_path: Path, share: float) -> None:
    coco = pytest.importorskip("pycocotools.mask")
    masks = np.random.default_rng(3).random((4, 70, 91)) < share
    masks[0, 10:60, 20:80] = True  # long runs, of which the text holds differences
    texts = [coco.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"].decode() for mask in masks]
    content = {
        "alpha": [1.0] * 4, "beta": [0.5] * 4, "masks": [{"size": [70, 91], "counts": text} for text in texts]
    }  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(content))
    np.testing.assert_array_equal(SavedProposals(tmp_path).load("a", (70, 91)).masks, masks)


WHOLE = {"size": [4, 5], "counts": [0, 20]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not readable as JSON"),
        ("[]", "is not an object"),
        ({"alpha": [1.0]}, "no beta and no masks"),
        ({"alpha": [1.0], "beta": [0.5], "masks": [{"size": [5, 4], "counts": [20]}]}, r"size \[5, 4\]"),
        ({"alpha": [1.0], "beta": [0.5], "masks": [{"size": [4, 5], "counts": "~"}]}, "text that is not COCO's"),
        ({"alpha": [1.0], "beta": [0.5], "masks": [{"size": [4, 5], "counts": "P"}]}, "ends within a number"),
        ({"alpha": [1.0], "beta": [0.5], "masks": [{"size": [4, 5], "counts": "5"}]}, "make 5 pixels"),
        ({"alpha": [1.0], "beta": [0.5], "masks": [{"size": [4, 5], "counts": "K"}]}, "whole numbers from 0"),
        ({"alpha": [1.0], "beta": [0.5], "masks": [{"size": [4, 5], "counts": [20.0]}]}, "whole numbers from 0"),
        ({"alpha": [1.0], "beta": [0.5], "masks": [{"size": [4, 5], "counts": [19]}]}, "make 19 pixels"),
        ({"alpha": [1.0], "beta": [0.5], "masks": [3]}, "size None"),
        ({"alpha": [1.5], "beta": [0.5], "masks": [WHOLE]}, r"α lies in \[0, 1\]"),
        ({"alpha": ["x"], "beta": [0.5], "masks": [WHOLE]}, "alpha cannot be read"),
        ({"alpha": [1.0], "beta": [0.5, 0.5], "masks": [WHOLE]}, "two equally long rows"),
        ({"alpha": [1.0], "beta": [0.5], "masks": [WHOLE], "boxes": [[1, 2, 3]]}, "boxes cannot be read"),
        ({"alpha": [0.5] * (MAX_PROPOSALS + 1)}, "at most 1000"),
    ],
)
def test_damaged_json(tmp_path: Path, content: object, message: str) -> None:
    (tmp_path / "a.json").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ModelError, match=message) as caught:
        SavedProposals(tmp_path).load("a", (4, 5))
    assert "a.json" in str(caught.value)


def npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


ONE = {"alpha": np.ones(1), "beta": np.ones(1), "masks": np.ones((1, 4, 5), bool)}


def promising() -> bytes:
    """Return a small file whose header promises a mask of 10^12 pixels."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|b1", "fortran_order": False, "shape": (1, 10**6, 10**6)}
    )  # fmt: skip
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("masks.npy", header.getvalue())
    return buffer.getvalue()


def with_flipped_bits() -> bytes:
    """Return a compressed file whose stream is broken."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **ONE)
    content = bytearray(buffer.getvalue())
    start = content.index(b"alpha.npy") + len(b"alpha.npy") + 20  # behind the member's header
    content[start : start + 8] = b"\xff" * 8
    return bytes(content)


def with_cut_header() -> bytes:
    """Return a file whose header opens a bracket that nothing closes."""
    member = io.BytesIO()
    np.lib.format.write_array(member, np.ones(1))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("alpha.npy", member.getvalue().replace(b"}", b"("))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no zip", "not a readable .npz"),
        (npz(alpha=np.ones(1)), "no beta and no masks"),
        (npz(**{**ONE, "masks": np.ones((1, 5, 4), bool)}), r"shape \('N', 4, 5\)"),
        (npz(**{**ONE, "masks": np.ones((1, 4, 5), np.uint8)}), "bool array"),
        (npz(**{**ONE, "alpha": np.array([None])}), "type object"),
        (npz(**{**ONE, "boxes": np.ones((1, 3))}), "boxes of N"),
        (promising(), "masks of N"),
        (with_flipped_bits(), "not a readable .npz"),
        (with_cut_header(), "not a readable .npz"),
    ],
)
def test_damaged_npz(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ModelError, match=message) as caught:
        SavedProposals(tmp_path).load("a", (4, 5))
    assert "a.npz" in str(caught.value)


def test_none_several_and_outside(tmp_path: Path) -> None:
    source = SavedProposals(tmp_path)
    with pytest.raises(ModelError, match="there are no proposals"):
        source.load("a", (4, 5))
    save_proposals(tmp_path, "a", some())
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ModelError, match="several files"):
        source.load("a", (4, 5))
    for use in (lambda: source.load("../a", (4, 5)), lambda: save_proposals(tmp_path, "../a", some())):
        with pytest.raises(ModelError, match="not a name inside"):
            use()
