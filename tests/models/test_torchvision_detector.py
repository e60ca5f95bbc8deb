"""A small network of torchvision's with random weights, saved as users save theirs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torchvision_on_cpu import import_torchvision

torchvision = import_torchvision()

import torch  # noqa: E402

from crypsis.errors import MissingDependencyError, ModelError, UnknownNameError  # noqa: E402
from crypsis.models import torchvision_detector  # noqa: E402
from crypsis.models.detector import Detector, load_detector  # noqa: E402

NETWORK = "ssdlite320_mobilenet_v3_large"
CLASSES = ("__background__", "cat", "dog")
OWN_FILE = "ssdlite320_mobilenet_v3_large_coco-a79551df.pth"


def build(classes: int) -> Any:
    """Return the network with random weights, always the same, that finds something."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = torchvision.models.get_model(NETWORK, weights=None, weights_backbone=None, num_classes=classes)
    return network.eval()


@pytest.fixture(scope="module")
def network() -> Any:
    return build(len(CLASSES))


@pytest.fixture(scope="module")
def weights(network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "fish.pth"
    torch.save(network.state_dict(), path)
    return path


@pytest.fixture
def spec(weights) -> str:
    return f"torchvision:{NETWORK},weights={weights},classes={'/'.join(CLASSES)}"


@pytest.fixture
def images() -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.integers(0, 256, (*size, 3), dtype=np.uint8) for size in ((40, 60), (40, 60), (61, 33), (1, 1))]


def test_images_give_what_the_package_gives(network, spec, images) -> None:
    detector = load_detector(f"{spec},score=0.3")
    assert isinstance(detector, Detector)
    assert (detector.name, detector.classes) == ("fish", CLASSES)
    counts = []
    for image, found in zip(images, detector.detect(images), strict=True):
        with torch.inference_mode():
            (expected,) = network([torch.from_numpy(image.transpose(2, 0, 1).astype(np.float32) / np.float32(255))])
        kept = expected["scores"] > 0.3
        counts.append(int(kept.sum()))
        np.testing.assert_allclose(found.boxes, expected["boxes"][kept].numpy(), atol=1e-3)
        np.testing.assert_allclose(found.scores, expected["scores"][kept].numpy(), atol=1e-5)
        np.testing.assert_array_equal(found.labels, expected["labels"][kept].numpy())
    assert max(counts) > 0


def test_neighbors_in_a_batch_change_nothing_that_matters(spec, images) -> None:
    alone, together = (load_detector(f"{spec},batch={batch}").detect(images) for batch in (1, 4))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(np.sort(one.scores), np.sort(other.scores), atol=1e-5)


@pytest.mark.parametrize("form", ["nested.pth", "nested.pt", "fish.safetensors"])
def test_forms_in_which_weights_are_kept(network, spec, weights, images, tmp_path, form) -> None:
    state, path = network.state_dict(), tmp_path / form
    if form.endswith(".safetensors"):
        pytest.importorskip("safetensors.torch", reason="needs safetensors").save_file(state, path)
    else:
        torch.save({"model": state, "epoch": 3} if form.endswith(".pth") else {"state_dict": state}, path)
    expected, found = (load_detector(s).detect(images[:1])[0] for s in (spec, spec.replace(str(weights), str(path))))
    assert found.boxes.tobytes() == expected.boxes.tobytes()


def test_torchvisions_own_weights_are_fetched_once_and_recognized_by_name(images, tmp_path, monkeypatch) -> None:
    own = tmp_path / "own.pth"
    torch.save(build(91).state_dict(), own)
    fetched = []

    def fetch(url: str, destination: str, prefix: str, *, progress: bool) -> None:
        fetched.append((url.rpartition("/")[2], prefix))
        shutil.copy(own, destination)

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    monkeypatch.setattr(torch.hub, "download_url_to_file", fetch)
    with pytest.raises(
        ModelError, match="is damaged, or not the file of that name; remove it and give weights=COCO_V1"
    ):
        load_detector(f"torchvision:{NETWORK},weights=DEFAULT")  # its hash is not that of its name
    monkeypatch.setattr(torchvision_detector, "_hash_prefix", lambda member: "")
    file = tmp_path / "hub/checkpoints" / OWN_FILE
    for weights in ("DEFAULT", "COCO_V1", str(file)):
        detector = load_detector(f"torchvision:{NETWORK},weights={weights},score=0")
        assert (detector.name, len(detector.classes), detector.classes[1]) == (NETWORK, 91, "person")
        assert detector.describe()["weights"] == "COCO_V1"
        assert len(detector.detect(images[:1])[0].scores)
    assert fetched == [(OWN_FILE, "a79551df")]


def test_weights_that_cannot_be_fetched(tmp_path, monkeypatch) -> None:
    def fail(*given: object, **options: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", fail)
    with pytest.raises(ModelError, match=rf"https://.*{OWN_FILE} cannot be fetched \(OSError: no route"):
        load_detector(f"torchvision:{NETWORK},weights=DEFAULT")


@pytest.mark.parametrize(("name", "epsilon"), [("retinanet_resnet50_fpn_coco-eeacb38b.pth", 0.0), ("own.pth", 1e-5)])
def test_normalization_of_the_first_weights_adds_nothing_to_the_variance(tmp_path, monkeypatch, name, epsilon) -> None:
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(torchvision_detector, "_hash_prefix", lambda member: "")
    monkeypatch.setattr(torchvision_detector, "_fill", lambda network, path: None)
    monkeypatch.setattr(torch.nn.init, "normal_", lambda tensor, *given, **options: tensor)  # 34 million numbers
    detector = load_detector(f"torchvision:retinanet_resnet50_fpn,weights={tmp_path / name},classes=a/b")
    assert {m.eps for m in detector._network.modules() if isinstance(m, torch.nn.BatchNorm2d)} == {epsilon}


def test_weights_trained_with_frozen_normalization_fit(tmp_path) -> None:
    frozen = torchvision.ops.FrozenBatchNorm2d(2)
    frozen.running_mean += 3
    torch.save(frozen.state_dict(), tmp_path / "a.pth")
    module = torch.nn.BatchNorm2d(2)
    torchvision_detector._fill(module, tmp_path / "a.pth")
    assert module.running_mean.tolist() == [3, 3]


def test_the_description_has_file_hash_options_and_versions(spec, weights) -> None:
    described = load_detector(f"{spec},name=x,score=0.2").describe()
    assert (described["network"], described["weights"], described["score"]) == (NETWORK, "fish.pth", 0.2)
    assert len(str(described["sha256"])) == 64
    assert described["torchvision"] == torchvision.__version__
    assert str(weights.parent) not in str(described)


class Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("ran",))


def test_a_file_that_would_run_code_is_not_read(tmp_path, capsys) -> None:
    torch.save({"model": Payload()}, tmp_path / "evil.pth")
    with pytest.raises(ModelError, match="not a state dict that can be read without running code") as caught:
        load_detector(f"torchvision:{NETWORK},weights={tmp_path / 'evil.pth'},classes=a/b")
    assert "\n" not in str(caught.value)
    assert "ran" not in capsys.readouterr().out


@pytest.mark.parametrize("data", [b"", b"nonsense" * 9])
@pytest.mark.parametrize("name", ["a.pth", "a.safetensors"])
def test_a_damaged_file_is_one_sentence(tmp_path, name, data) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ModelError, match="is not a state dict") as caught:
        load_detector(f"torchvision:{NETWORK},weights={tmp_path / name},classes=a/b")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("saved", [[1, 2], {"model": {"a": 1}}, {"backbone.x": torch.zeros(2)}])
def test_a_file_of_something_else(tmp_path, saved) -> None:
    torch.save(saved, tmp_path / "a.pth")
    with pytest.raises(ModelError, match="does not fit the network") as caught:
        load_detector(f"torchvision:{NETWORK},weights={tmp_path / 'a.pth'},classes=a/b")
    assert "\n" not in str(caught.value)


def test_classes_that_do_not_fit(weights) -> None:
    with pytest.raises(ModelError, match=r"does not fit the network \(size mismatch .* background included"):
        load_detector(f"torchvision:{NETWORK},weights={weights},classes=cat/dog")
    with pytest.raises(ModelError, match="does not say what its labels mean; add classes="):
        load_detector(f"torchvision:{NETWORK},weights={weights}")


def test_what_fails_inside_is_one_sentence(spec, images, monkeypatch) -> None:
    detector = load_detector(spec)
    monkeypatch.setattr(detector, "_network", lambda tensors: 1 / 0)
    with pytest.raises(ModelError, match=r"fish: the model failed on 1 image.* of 40×60: ZeroDivisionError"):
        detector.detect(images)


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        ("torchvision", ModelError, "weights=DEFAULT or weights=FILE"),
        (f"torchvision:{NETWORK}", ModelError, "weights=DEFAULT or weights=FILE"),
        (
            "torchvision:fasterrcnn_resnet50_fpn_v3,weights=DEFAULT",
            UnknownNameError,
            "did you mean 'fasterrcnn_resnet50",
        ),
        ("torchvision:resnet50,weights=DEFAULT", UnknownNameError, "no detector of torchvision 'resnet50'"),
        (f"torchvision:{NETWORK},weights=COCO_V2", UnknownNameError, "did you mean 'COCO_V1'"),
        (f"torchvision:{NETWORK},weights=gone.pth,classes=a", ModelError, "There is no model file gone.pth"),
        (f"torchvision:{NETWORK},wights=DEFAULT", UnknownNameError, "did you mean 'weights'"),
    ],
)
def test_options_that_are_wrong(spec, kind, message) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        load_detector(spec)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_is_refused(spec) -> None:
    with pytest.raises(MissingDependencyError, match="device=cuda needs a GPU"):
        load_detector(f"{spec},device=cuda")
