"""The smallest model of Ultralytics, built from its configuration with random weights, and saved by the package."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torchvision_on_cpu import import_torchvision

if importlib.util.find_spec("ultralytics") is None:
    pytest.skip("needs the extra ultralytics", allow_module_level=True)
import_torchvision()

import torch  # noqa: E402

from crypsis.errors import MissingDependencyError, ModelError, UnknownNameError  # noqa: E402
from crypsis.models.detector import Detector, load_detector  # noqa: E402


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The package, offline, with its settings in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YOLO_CONFIG_DIR", str(tmp_path_factory.mktemp("settings")))
        for variable in ("YOLO_OFFLINE", "YOLO_AUTOINSTALL", "YOLO_VERBOSE"):
            patch.setenv(variable, "true" if variable == "YOLO_OFFLINE" else "false")
        yield pytest.importorskip("ultralytics", reason="needs the extra ultralytics")


def save(package: Any, path: Path, configuration: str = "yolo11n.yaml") -> Path:
    """Save a model with random weights, always the same, whose scores are spread."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = package.YOLO(configuration)
        for name, weights in model.model.named_parameters():
            if ".cv3." in name and name.endswith("2.bias"):  # what starts as "rarely anything" at the class scores
                torch.nn.init.normal_(weights.data, -2.0, 1.0)
    model.model.names = {label: f"kind {label}" for label in model.names}
    model.save(path)
    return path


@pytest.fixture(scope="module")
def model(package, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(package, tmp_path_factory.mktemp("models") / "tiny.pt")


@pytest.fixture
def images() -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.integers(0, 256, (*size, 3), dtype=np.uint8) for size in ((40, 60), (40, 60), (61, 33), (2, 2))]


def test_images_give_what_the_package_gives(package, model, images) -> None:
    detector = load_detector(f"ultralytics:{model},trust=yes,size=64,score=0.3,nms=0.6,limit=9")
    assert isinstance(detector, Detector)
    assert (detector.name, len(detector.classes), detector.classes[0]) == ("tiny", 80, "kind 0")
    package_model = package.YOLO(model)
    for image, found in zip(images, detector.detect(images), strict=True):
        (expected,) = package_model.predict(
            image[:, :, ::-1].copy(), imgsz=64, conf=0.3, iou=0.6, max_det=9, device="cpu", verbose=False
        )
        assert 0 < len(found.scores) <= 9
        np.testing.assert_allclose(found.boxes, expected.boxes.xyxy.numpy(), atol=1e-3)
        np.testing.assert_allclose(found.scores, expected.boxes.conf.numpy(), atol=1e-5)
        np.testing.assert_array_equal(found.labels, expected.boxes.cls.numpy())


def test_neighbors_in_a_batch_change_nothing_that_matters(model, images) -> None:
    alone, together = (
        load_detector(f"ultralytics:{model},trust=yes,size=64,batch={batch}").detect(images) for batch in (1, 4)
    )
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(np.sort(one.scores), np.sort(other.scores), atol=1e-5)


def test_a_score_that_nothing_reaches(model, images) -> None:
    (found,) = load_detector(f"ultralytics:{model},trust=yes,size=64,score=1").detect(images[:1])
    assert found.boxes.shape == (0, 4)


def test_the_terminal_and_the_threads_of_torch_are_kept(model, images, capfd) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        load_detector(f"ultralytics:{model},trust=yes,size=64").detect(images)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert capfd.readouterr().out == ""


def test_the_description_has_hash_settings_and_versions(package, model) -> None:
    described = load_detector(f"ultralytics:{model},trust=yes,size=64,name=x").describe()
    assert described["file"] == "tiny.pt"
    assert len(str(described["sha256"])) == 64
    assert (described["conf"], described["iou"], described["max_det"], described["imgsz"]) == (0.05, 0.7, 300, 64)
    assert (described["architecture"], described["task"]) == ("DetectionModel", "detect")
    assert described["ultralytics"] == package.__version__
    assert str(model.parent) not in str(described)


class Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("ran",))


@pytest.mark.parametrize("trust", ["", ",trust=no"])
def test_without_trust_nothing_is_loaded(tmp_path, capsys, trust) -> None:
    torch.save(Payload(), tmp_path / "evil.pt")
    with pytest.raises(ModelError, match=r"is a pickle, .*; add trust=yes if .* write onnx:FILE.onnx"):
        load_detector(f"ultralytics:{tmp_path / 'evil.pt'}{trust}")
    assert "ran" not in capsys.readouterr().out


@pytest.mark.parametrize("data", [b"", b"nonsense" * 9])
def test_a_damaged_file_is_one_sentence(tmp_path, data) -> None:
    (tmp_path / "a.pt").write_bytes(data)
    with pytest.raises(ModelError, match="is not a model that Ultralytics can load") as caught:
        load_detector(f"ultralytics:{tmp_path / 'a.pt'},trust=yes")
    assert "\n" not in str(caught.value)


def test_a_classifier_is_no_detector(package, tmp_path) -> None:
    save(package, tmp_path / "a.pt", "yolo11n-cls.yaml")
    with pytest.raises(ModelError, match="is a model to classify; it must detect, segment, pose"):
        load_detector(f"ultralytics:{tmp_path / 'a.pt'},trust=yes")


def test_what_fails_inside_is_one_sentence(model, images, monkeypatch) -> None:
    detector = load_detector(f"ultralytics:{model},trust=yes,size=64,name=ours")
    monkeypatch.setattr(detector, "_infer", lambda batch: 1 / 0)
    with pytest.raises(ModelError, match=r"ours: the model failed on 1 image.* of 40×60: ZeroDivisionError"):
        detector.detect(images)


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        ("ultralytics", ModelError, "write ultralytics:FILE.pt,trust=yes"),
        ("ultralytics:gone.pt,trust=yes", ModelError, "There is no model file gone.pt"),
        ("ultralytics:yolo11n.onnx,trust=yes", ModelError, "for an exported model write onnx:FILE.onnx"),
        ("ultralytics:a.pt,conf=0.1", UnknownNameError, "no option of ultralytics models 'conf'"),
        ("ultralytics:a.pt,trust=maybe", ModelError, "yes | no"),
    ],
)
def test_options_that_are_wrong(spec, kind, message) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        load_detector(spec)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_is_refused(model) -> None:
    with pytest.raises(MissingDependencyError, match="device=cuda needs a GPU"):
        load_detector(f"ultralytics:{model},trust=yes,device=cuda")
