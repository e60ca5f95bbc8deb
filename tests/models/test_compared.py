from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from compared_reference import published_keys  # noqa: E402

from crypsis.errors import MissingDependencyError, ModelError, UnknownNameError  # noqa: E402
from crypsis.models.compared import (  # noqa: E402
    COMPARED,
    ComparedModel,
    build_network,
    check_checkpoint,
    count_operations,
)
from crypsis.models.segmenter import MODELS, Segmenter, load_model  # noqa: E402

SMALL = "dgnet-s"
MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    smooth = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return cv2.resize(smooth, (width, height), interpolation=cv2.INTER_CUBIC)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that writes a random checkpoint of a kind, once."""
    folder = tmp_path_factory.mktemp("checkpoints")

    def write(kind: str) -> Path:
        path = folder / f"{kind}.pth"
        if not path.exists():
            torch.save(build_network(kind).state_dict(), path)
        return path

    return write


class Fed:
    """Stands for a network: keeps what it is fed, and returns maps that depend on it."""

    def __init__(self, outputs: int, result: int, activated: bool) -> None:
        self.outputs, self.result, self.activated = outputs, result, activated
        self.inputs: list[np.ndarray] = []

    def __call__(self, *images: Any) -> Any:
        self.inputs = [each.numpy() for each in images]
        logits = images[min(1, len(images) - 1)].mean(dim=1, keepdim=True) * 3
        maps = tuple(logits + index - self.result for index in range(self.outputs))
        maps = tuple(each.sigmoid() for each in maps) if self.activated else maps
        return maps if self.outputs > 1 else maps[0]


def resized(image: np.ndarray, side: int) -> np.ndarray:
    return np.asarray(PIL.Image.fromarray(image).resize((side, side), PIL.Image.Resampling.BILINEAR))


def upsampled(logits: Any, image: np.ndarray) -> np.ndarray:
    maps = torch.nn.functional.interpolate(logits, size=image.shape[:2], mode="bilinear", align_corners=False)
    return maps.sigmoid().numpy()[0, 0]


def as_authors_of_sinet_v2(image: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    fed = ((resized(image, 352) / np.float32(255) - MEAN) / STD).transpose(2, 0, 1)
    return [fed], upsampled(torch.from_numpy(fed[None]).mean(dim=1, keepdim=True) * 3, image)


def as_authors_of_pfnet(image: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    fed = ((resized(image, 416) / np.float32(255) - MEAN) / STD).transpose(2, 0, 1)
    probability = PIL.Image.fromarray(1 / (1 + np.exp(-fed.mean(axis=0) * 3)))
    return [fed], np.asarray(probability.resize(image.shape[1::-1], PIL.Image.Resampling.BILINEAR))


def as_authors_of_zoomnet(image: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    normalized = (image.astype(np.float32) - MEAN * 255) / (STD * 255)
    fed = [cv2.resize(normalized, (side, side)).transpose(2, 0, 1) for side in (576, 384, 192)]
    probability = 1 / (1 + np.exp(-fed[1].mean(axis=0) * 3))
    return fed, cv2.resize(probability, image.shape[1::-1], interpolation=cv2.INTER_LINEAR)


AUTHORS: dict[str, tuple[Fed, Callable[[np.ndarray], tuple[list[np.ndarray], np.ndarray]]]] = {
    "sinet-v2": (Fed(4, 3, False), as_authors_of_sinet_v2),
    "pfnet": (Fed(4, 3, True), as_authors_of_pfnet),
    "zoomnet": (Fed(1, 0, False), as_authors_of_zoomnet),
    "dgnet": (Fed(2, 0, False), as_authors_of_sinet_v2),
    SMALL: (Fed(2, 0, False), as_authors_of_sinet_v2),
}


@pytest.mark.parametrize("kind", COMPARED)
def test_images_and_maps_are_treated_as_by_the_authors(
    kind: str, checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    network, authors = AUTHORS[kind]
    model = ComparedModel(kind, checkpoint(kind))
    monkeypatch.setattr(model, "network", network)
    for size in ((213, 300), (500, 701), (1, 1)):
        image = picture(*size)
        (prediction,) = model.predict([image])
        fed, expected = authors(image)
        assert [each.shape for each in network.inputs] == [(1, *each.shape) for each in fed]
        for given, wanted in zip(network.inputs, fed, strict=True):
            assert np.abs(given[0] - wanted).max() <= 1e-5
        assert prediction.probability.shape == size
        assert np.abs(prediction.probability - expected).max() <= 1e-5
        assert prediction.uncertainty is None


def test_minmax_is_the_habit_that_can_be_asked_for(checkpoint: Callable[[str], Path]) -> None:
    path, image = checkpoint(SMALL), picture(60, 80)
    raw, stretched = (load_model(f"{SMALL}:{path},minmax={answer}") for answer in ("no", "yes"))
    assert isinstance(raw, ComparedModel)
    assert isinstance(stretched, ComparedModel)
    (plain,), (wide,) = raw.predict([image]), stretched.predict([image])
    low, high = plain.probability.min(), plain.probability.max()
    assert (wide.probability.min(), wide.probability.max()) == (0.0, pytest.approx(1.0, abs=1e-3))
    assert np.allclose(wide.probability, (plain.probability - low) / (high - low + 1e-8), atol=1e-6)
    differing = {key for key, value in raw.describe().items() if stretched.describe()[key] != value}
    assert differing == {"minmax"}


def test_images_go_in_batches_and_come_back_in_order(checkpoint: Callable[[str], Path]) -> None:
    images = [picture(40, 50, 1), picture(33, 70, 2), picture(64, 64, 3)]
    alone = ComparedModel(SMALL, checkpoint(SMALL)).predict(images)
    together = ComparedModel(SMALL, checkpoint(SMALL), batch=2).predict(images)
    for one, other, image in zip(alone, together, images, strict=True):
        assert one.probability.shape == image.shape[:2]
        assert np.abs(one.probability - other.probability).max() <= 1e-5


def test_a_model_from_a_specification(checkpoint: Callable[[str], Path]) -> None:
    model = load_model(f"{SMALL}:{checkpoint(SMALL)}")
    assert isinstance(model, Segmenter)
    assert model.name == SMALL
    assert load_model(f"{SMALL}:{checkpoint(SMALL)},name=mine,batch=3").name == "mine"
    told = model.describe()
    assert json.loads(json.dumps(told)) == told
    assert (told["adapter"], told["file"]) == (SMALL, f"{SMALL}.pth")
    assert not told.keys() & {"paper", "published_file", "published_at", "published_sha256", "license"}
    assert (told["sides"], told["output"], told["minmax"], told["authors_minmax"]) == ("352", 0, False, True)
    assert len(str(told["sha256"])) == 64
    assert not any(str(checkpoint(SMALL).parent) in str(value) for value in told.values())


def test_every_row_is_a_kind_of_model() -> None:
    assert {kind for kind, place in MODELS.items() if place.startswith("crypsis.models.compared:")} == set(COMPARED)
    for kind, row in COMPARED.items():
        file = re.escape(row.published_file)
        with pytest.raises(ModelError, match=rf"^{kind} needs the checkpoint of its authors, {file}"):
            load_model(kind)


@pytest.mark.parametrize("kind", COMPARED)
def test_what_a_row_says_of_its_network(kind: str) -> None:
    row = COMPARED[kind]
    assert count_operations(kind) == (row.parameters, row.multiply_adds)
    ignored = [key for key in published_keys(kind)["keys"] if row.unused and key.startswith(row.unused)]
    assert len(ignored) == {"sinet-v2": 2, "dgnet": 6, SMALL: 6}.get(kind, 0)


def test_weights_that_are_not_used_have_no_influence(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    weights = torch.load(checkpoint(SMALL), weights_only=True)
    weights = {f"module.{key}": value for key, value in weights.items() if "._conv_head" not in key}
    weights["module.context_encoder._bn1.weight"] = torch.ones(7)
    weights["module.context_encoder._fc.weight"] = torch.ones(1000, 1280)
    torch.save(weights, tmp_path / "parallel.pth")
    image = picture(50, 40)
    (one,) = ComparedModel(SMALL, checkpoint(SMALL)).predict([image])
    (other,) = ComparedModel(SMALL, tmp_path / "parallel.pth").predict([image])
    assert np.array_equal(one.probability, other.probability)


def test_the_global_random_state_stays(checkpoint: Callable[[str], Path]) -> None:
    before = torch.random.get_rng_state()
    ComparedModel(SMALL, checkpoint(SMALL))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(build_network(SMALL).ncd.conv5.weight, build_network(SMALL).ncd.conv5.weight)
    assert not torch.equal(build_network(SMALL, seed=1).ncd.conv5.weight, build_network(SMALL).ncd.conv5.weight)


def test_a_checkpoint_of_another_model_is_named(checkpoint: Callable[[str], Path]) -> None:
    path = checkpoint(SMALL)
    with pytest.raises(ModelError, match=rf"holds the weights of {SMALL}, not of dgnet; write {SMALL}:.*\.pth\.$"):
        load_model(f"dgnet:{path}")


def test_renamed_keys_are_listed(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    weights = torch.load(checkpoint(SMALL), weights_only=True)
    path = tmp_path / "renamed.pth"
    torch.save({key.replace("ncd.conv5", "ncd.last"): value for key, value in weights.items()}, path)
    with pytest.raises(ModelError, match=r"2 missing: ncd\.conv5\.weight, ncd\.conv5\.bias; 2 unknown: ncd\.last"):
        load_model(f"{SMALL}:{path}")
    told = check_checkpoint(SMALL, path)
    assert (told["fits"], told["network"], told["unknown"]) == (False, None, ["ncd.last.bias", "ncd.last.weight"])


def test_a_checkpoint_is_checked_without_loading_it(checkpoint: Callable[[str], Path]) -> None:
    told = check_checkpoint(SMALL, checkpoint(SMALL))
    assert told["fits"] is True
    assert told["matching"] == len(published_keys(SMALL)["keys"]) - 6
    assert (told["missing"], told["unknown"], told["reshaped"]) == ([], [], [])
    assert (told["network"], told["published"]) == (SMALL, None)
    assert check_checkpoint("zoomnet", checkpoint(SMALL))["network"] == SMALL


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("sinet-v2:missing.pth", ModelError, r"There is no model file missing\.pth"),
        ("sinet-v3:missing.pth", UnknownNameError, "did you mean 'sinet-v2'"),
        ("pfnet:missing.pth,size=352", UnknownNameError, "no option of pfnet models 'size'"),
        ("pfnet:missing.pth,minmax=maybe", ModelError, r"allowed: yes \| no"),
    ],
)
def test_what_a_user_may_get_wrong(spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_model(spec)


def test_unknown_kinds_are_refused(tmp_path: Path) -> None:
    for call in (build_network, count_operations, lambda kind: check_checkpoint(kind, tmp_path)):
        with pytest.raises(UnknownNameError, match=r"no compared model 'zoomnext'; did you mean 'zoomnet'\?"):
            call("zoomnext")


def test_a_network_that_fails_is_told(checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    model = ComparedModel(SMALL, checkpoint(SMALL), name="mine")

    def fail(*images: Any) -> Any:
        raise RuntimeError("out of memory.\nmore")

    monkeypatch.setattr(model, "network", fail)
    with pytest.raises(ModelError, match=r"^mine: the model failed on 1 image\(s\) of 352×352: .*out of memory\.$"):
        model.predict([picture(20, 30)])
    monkeypatch.setattr(model, "network", lambda images: [images[:, :1] * torch.nan])
    with pytest.raises(ModelError, match=r"^mine: A probability map must lie in"):
        model.predict([picture(20, 30)])


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu(checkpoint: Callable[[str], Path]) -> None:
    with pytest.raises(MissingDependencyError, match="device=cuda needs a GPU"):
        load_model(f"{SMALL}:{checkpoint(SMALL)},device=cuda")
