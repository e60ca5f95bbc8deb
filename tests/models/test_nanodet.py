from __future__ import annotations

import hashlib
import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from crypsis.datasets.demo import demo_folder
from crypsis.errors import MissingDependencyError, ModelError, UnknownNameError
from crypsis.io import read_image
from crypsis.models import nanodet
from crypsis.models.coco_classes import CLASSES
from crypsis.models.detection_formats import FORMATS
from crypsis.models.detector import Detector, load_detector
from crypsis.models.nanodet import WEIGHTS, NanoDet
from crypsis.models.onnx_session import open_session

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "nanodet_reference.json").read_text("utf-8"))
FOLDER = demo_folder()
MEAN, STD = np.array([103.53, 116.28, 123.675]), np.array([57.375, 57.12, 58.395])


@pytest.fixture(scope="module")
def detector() -> NanoDet:
    return NanoDet()


def photograph(name: str) -> np.ndarray:
    return read_image(FOLDER / "images" / name)


@pytest.mark.parametrize("name", REFERENCE["images"])
def test_the_network_is_the_published_one(name: str) -> None:
    stretched = cv2.resize(photograph(name)[:, :, ::-1], (416, 416))
    fed = ((stretched - MEAN) / STD).transpose(2, 0, 1)[None].astype(np.float32)
    rows = open_session(WEIGHTS, "cpu").run(None, {"image": fed})[0][0]
    for expected in REFERENCE["images"][name]:
        row = rows[expected["cell"]]
        assert row[:80].argmax() == expected["class"]
        assert row[expected["class"]] == pytest.approx(expected["score"], abs=1e-3)
        np.testing.assert_allclose(row[80:], expected["bins"], atol=1e-3)


@pytest.mark.parametrize(
    ("name", "kind", "score"),
    [
        ("demo-test-14-lark.jpg", "bird", 0.5),
        ("demo-test-34-chamois.jpg", "sheep", 0.5),
        ("demo-test-39-bear.jpg", "bear", 0.4),
    ],
)
def test_animals_of_the_demo_set(detector: NanoDet, name: str, kind: str, score: float) -> None:
    found = detector.detect([photograph(name)])[0]
    listed = json.loads((FOLDER / "annotations.json").read_text("utf-8"))
    (number,) = [image["id"] for image in listed["images"] if image["file_name"] == name]
    (box,) = [entry["bbox"] for entry in listed["annotations"] if entry["image_id"] == number]
    left, top, width, height = box
    x1, y1, x2, y2 = found.boxes[0]
    shared = max(0, min(x2, left + width) - max(x1, left)) * max(0, min(y2, top + height) - max(y1, top))
    assert shared / ((x2 - x1) * (y2 - y1) + width * height - shared) > 0.5
    assert detector.classes[found.labels[0]] == kind
    assert found.scores[0] > score


def test_distances_are_means_of_distributions() -> None:
    size = (32, 64)  # 4×8 cells of stride 8, 2×4 of 16, 1×2 of 32
    rows = np.zeros((42, 2 + 4 * 11), np.float32)
    rows[:, 2:] = -100
    bins = rows[:, 2:].reshape(42, 4, 11)
    bins[9, [0, 1, 2, 3], [1, 0, 2, 3]] = 100  # second row, second column of stride 8: its middle is 12, 12
    bins[33, :, 4:6] = 100  # first row, second column of stride 16: 24, 8; half-way between 4 and 5
    bins[41, :, 1] = 100  # second of stride 32: 48, 16
    candidates = FORMATS["nanodet"].decode([rows], 2, size)
    np.testing.assert_allclose(candidates.boxes[9], [12 - 8, 12, 12 + 16, 12 + 24], atol=1e-9)
    np.testing.assert_allclose(candidates.boxes[33], [24 - 72, 8 - 72, 24 + 72, 8 + 72], atol=1e-9)
    np.testing.assert_allclose(candidates.boxes[41], [48 - 32, 16 - 32, 48 + 32, 16 + 32], atol=1e-9)


def test_boxes_lie_in_images_of_any_shape(detector: NanoDet) -> None:
    image = photograph("demo-test-14-lark.jpg")
    images = [image, image[:, :40], image[:1, :1], np.zeros((7, 300, 3), np.uint8), image]
    results = detector.detect(images)
    for fed, found in zip(images, results, strict=True):
        assert (found.boxes >= 0).all()
        assert (found.boxes <= [fed.shape[1], fed.shape[0]] * 2).all()
        assert (np.diff(found.scores) <= 0).all()
        assert len(found.scores) <= 100
        assert found.scores.min(initial=1.0) > 0.05
    np.testing.assert_array_equal(results[0].boxes, results[-1].boxes)


def test_a_batch_is_its_images(detector: NanoDet) -> None:
    images = [photograph(name) for name in REFERENCE["images"]]
    together = load_detector("nanodet,batch=3")
    assert isinstance(together, Detector)
    for one, other in zip(detector.detect(images), together.detect(images), strict=True):
        np.testing.assert_allclose(one.boxes[:5], other.boxes[:5], atol=1e-2)
        np.testing.assert_allclose(one.scores[:5], other.scores[:5], atol=1e-5)


def test_the_description(detector: NanoDet) -> None:
    described = detector.describe()
    assert detector.classes == CLASSES
    assert described["sha256"] == hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()
    assert str(described["sha256"]) in (WEIGHTS.parent / "README.md").read_text("utf-8")
    expected = {"adapter": "nanodet", "size": "416×416", "channels": "bgr", "letterbox": True, "pad": 0, "nms": 0.6}
    assert expected.items() <= described.items()
    assert load_detector("nanodet,score=0.3,name=g").name == "g"


def test_what_it_does_not_take(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nanodet takes nothing after the colon; got 'net.onnx'"):
        load_detector("nanodet:net.onnx")
    with pytest.raises(UnknownNameError, match=r"no option of nanodet models 'size'"):
        load_detector("nanodet,size=320")
    monkeypatch.setattr(nanodet, "WEIGHTS", tmp_path / "nanodet.onnx")
    with pytest.raises(MissingDependencyError, match=r"nanodet needs its network .* reinstall"):
        NanoDet()
