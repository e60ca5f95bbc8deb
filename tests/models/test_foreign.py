from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from crypsis.errors import ImageError, MissingDependencyError, ModelError
from crypsis.models.detector import load_detector
from crypsis.models.foreign import batches, import_extra, on_device, one_thread, sha256_of, told


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("weights"), "KeyError: 'weights'"),
        (ValueError("  first.\nsecond"), "ValueError: first"),
        (ValueError(), "ValueError"),
    ],
)
def test_an_error_is_told_in_a_line(error, text) -> None:
    assert told(error) == text


@pytest.mark.parametrize(
    ("spec", "package"),
    [
        ("transformers:facebook/detr-resnet-50", "transformers"),
        ("torchvision:fasterrcnn_resnet50_fpn_v2,weights=DEFAULT", "torchvision"),
        ("ultralytics:yolo.pt,trust=yes", "ultralytics"),
    ],
)
def test_a_detector_whose_package_is_missing_names_the_command(tmp_path, monkeypatch, spec, package) -> None:
    monkeypatch.chdir(tmp_path)
    Path("yolo.pt").write_bytes(b"weights")
    for module in (package, f"{package}.models"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        MissingDependencyError, match=rf"need the package {package}.*pip install 'crypsis\[{package}\]'"
    ):
        load_detector(spec)


def test_a_package_that_cannot_be_imported_says_why(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "crypsis_broken.py").write_text("raise RuntimeError('operator nms does not exist')")
    (tmp_path / "crypsis_needy.py").write_text("import crypsis_absent")
    with pytest.raises(
        MissingDependencyError, match=r"cannot be imported \(RuntimeError: operator nms does not exist\)"
    ):
        import_extra("crypsis_broken", "torchvision")
    with pytest.raises(MissingDependencyError, match="need the package crypsis_absent, which is not installed"):
        import_extra("crypsis_needy", "torchvision")
    assert import_extra("os.path", "torchvision") is sys.modules["os.path"]


def test_one_thread_without_gradients_and_back() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
            assert torch.is_inference_mode_enabled()
        assert torch.get_num_threads() == 2
        assert not torch.is_inference_mode_enabled()
    finally:
        torch.set_num_threads(threads)


def test_a_network_infers_on_its_device() -> None:
    network = on_device(torch.nn.Dropout(), "cpu")
    assert not network.training
    if not torch.cuda.is_available():
        with pytest.raises(MissingDependencyError, match="device=cuda needs a GPU"):
            on_device(network, "cuda")


def test_batches_hold_neighbors_of_one_shape() -> None:
    shapes = [(4, 5), (4, 5), (4, 5), (5, 4), (4, 5)]
    images = [np.full((*shape, 3), n, np.uint8) for n, shape in enumerate(shapes)]
    assert [[int(image[0, 0, 0]) for image in batch] for batch in batches(images, 2)] == [[0, 1], [2], [3], [4]]
    assert list(batches([], 2)) == []
    with pytest.raises(ImageError, match="uint8 array"):
        list(batches([np.zeros((4, 4), np.uint8)], 2))


def test_the_hash_is_of_all_contents_in_order(tmp_path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(name.encode() * 2_000_000)
    digest = hashlib.sha256(b"a" * 2_000_000 + b"b" * 2_000_000).hexdigest()
    assert sha256_of([tmp_path / "a", tmp_path / "b"]) == digest
    with pytest.raises(ModelError, match=r"There is no model file .*gone \(looked in "):
        sha256_of([tmp_path / "gone"])
    with pytest.raises(ModelError, match="cannot be read"):
        sha256_of([tmp_path])
