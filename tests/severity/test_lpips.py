"""LPIPS: parity with torch, on the weights as published and on those that ship, and what must hold for any pair."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from onnx import numpy_helper

from crypsis.errors import ImageError, MissingDependencyError
from crypsis.severity.lpips import MINIMUM_SIDE, WEIGHTS, LpipsNetwork, lpips, lpips_distance, shared_network
from crypsis.severity.strength import CleanImage, psnr, ssim

DATA = Path(__file__).parents[1] / "data"
REFERENCE = json.loads((DATA / "lpips_reference.json").read_text("utf-8"))
SHIPPED = {
    tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).astype(np.float64))
    for tensor in onnx.load(WEIGHTS).graph.initializer
}
SIDES = st.integers(1, 48)
PAIRS = st.tuples(SIDES, SIDES).flatmap(
    lambda size: st.tuples(*[arrays(np.uint8, (*size, 3), elements=st.integers(0, 255), fill=st.integers(0, 255))] * 2)
)


def load(index: int) -> tuple[np.ndarray, np.ndarray]:
    with np.load(DATA / "strength_pairs.npz", allow_pickle=False) as stored:
        return stored[f"clean_{index:02d}"], stored[f"degraded_{index:02d}"]


def noise(seed: int, height: int, width: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


class AlexNet(torch.nn.Module):
    """The convolutions of AlexNet as modules, with the weights that ship, in double precision."""

    def __init__(self) -> None:
        super().__init__()
        first = torch.nn.Conv2d(3, 64, kernel_size=11, stride=4, padding=2)
        second = torch.nn.Conv2d(64, 192, kernel_size=5, padding=2)
        rest = [torch.nn.Conv2d(*sides, kernel_size=3, padding=1) for sides in ((192, 384), (384, 256), (256, 256))]
        layers = [first, second, *rest]
        for i, layer in enumerate(layers):
            layer.load_state_dict({"weight": SHIPPED[f"kernel{i}_half"], "bias": SHIPPED[f"bias{i}"]})
        pools = [torch.nn.Identity(), torch.nn.MaxPool2d(3, 2), torch.nn.MaxPool2d(3, 2), *[torch.nn.Identity()] * 2]
        self.stages = torch.nn.ModuleList(
            torch.nn.Sequential(pool, layer, torch.nn.ReLU()) for pool, layer in zip(pools, layers, strict=True)
        )
        self.double()

    @torch.no_grad()
    def distance(self, clean: np.ndarray, degraded: np.ndarray) -> float:
        mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
        # LPIPS states ImageNet's mean and deviation for [-1, 1], which is these
        x, y = (torch.from_numpy((image / 255 - mean) / deviation).movedim(2, 0)[None] for image in (clean, degraded))
        result = 0.0
        for i, stage in enumerate(self.stages):
            x, y = stage(x), stage(y)
            u, v = (z / (torch.sqrt((z**2).sum(dim=1, keepdim=True)) + 1e-10) for z in (x, y))
            result += ((SHIPPED[f"root{i}"] ** 2) * (u - v) ** 2).sum(dim=1).mean().item()
        return result


ALEXNET = AlexNet()


@pytest.mark.parametrize("pair", REFERENCE["pairs"], ids=lambda pair: pair["id"])
def test_parity_with_the_published_weights(pair: dict) -> None:
    # half precision moves a distance by up to 1.8e-4, and by 1.1e-7 where it is 3e-5
    assert lpips(*load(pair["id"])) == pytest.approx(pair["lpips"], rel=1e-3, abs=2e-7)


@pytest.mark.parametrize("size", [(31, 31), (31, 64), (32, 33), (34, 45), (47, 31), (63, 64), (97, 131), (120, 79)])
def test_parity_with_torch_at_any_size(size: tuple[int, int]) -> None:
    clean, other = noise(0, *size), noise(1, *size)
    mixed = (0.8 * clean + 0.2 * other).astype(np.uint8)
    for degraded in (other, mixed, np.roll(clean, 3, axis=1), 255 - clean):
        assert lpips(clean, degraded) == pytest.approx(ALEXNET.distance(clean, degraded), rel=1e-4)


def test_the_weights_are_those_of_alexnet() -> None:
    kernels = [SHIPPED[f"kernel{i}_half"] for i in range(5)]
    assert sum(k.numel() for k in kernels) + sum(SHIPPED[f"bias{i}"].numel() for i in range(5)) == 2_469_696
    properties = {entry.key: entry.value for entry in onnx.load(WEIGHTS).metadata_props}
    assert properties["weights_sha256"] == REFERENCE["weights_sha256"]


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_bounds_symmetry_and_identity(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    assert lpips(x, x.copy()) == 0
    assert lpips(x, y) == lpips(y, x) >= 0


@pytest.mark.parametrize("size", [(1, 1), (1, 200), (30, 31), (31, 30), (7, 5), (15, 40)])
def test_small_images_are_continued_by_their_mirror_image(size: tuple[int, int]) -> None:
    clean, degraded = noise(2, *size), noise(3, *size)
    padding = [((31 - side) // 2, 31 - side - (31 - side) // 2) if side < 31 else (0, 0) for side in size]
    continued = [np.pad(image, [*padding, (0, 0)], mode="symmetric") for image in (clean, degraded)]
    assert min(continued[0].shape[:2]) >= MINIMUM_SIDE
    assert lpips(clean, degraded) == lpips(*continued) > 0


def test_features() -> None:
    features = LpipsNetwork().features(noise(4, 95, 127))
    assert [f.shape for f in features] == [
        (1, 64, 23, 31), (1, 192, 11, 15), (1, 384, 5, 7), (1, 256, 5, 7), (1, 256, 5, 7)
    ]  # fmt: skip
    assert all(f.dtype == np.float32 for f in features)
    assert lpips_distance(features, features) == 0


def test_repeats_and_memory_order_do_not_matter() -> None:
    clean, degraded = load(0)
    kept, network = clean.copy(), LpipsNetwork()
    once = network.lpips(clean, degraded)
    assert once == network.lpips(clean, degraded) == shared_network().lpips(clean, degraded)
    assert once == lpips(np.asfortranarray(clean), degraded[::-1][::-1])
    assert once == lpips(np.repeat(clean, 2, axis=1)[:, ::2], np.repeat(degraded, 2, axis=0)[::2])
    assert np.array_equal(clean, kept)


def test_a_clean_image_meets_the_network_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clean, degraded = load(0)
    seen = []
    features = LpipsNetwork.features

    def count(network: LpipsNetwork, image: np.ndarray) -> list[np.ndarray]:
        seen.append(image)
        return features(network, image)

    expected = [lpips(clean, picture) for picture in (degraded, 255 - clean)]
    monkeypatch.setattr(LpipsNetwork, "features", count)
    image = CleanImage(clean)
    plain = image.strengths(degraded)
    assert (plain.lpips, seen) == (None, [])
    full = [image.strengths(picture, lpips=True) for picture in (degraded, 255 - clean)]
    assert [strengths.value("lpips") for strengths in full] == expected
    assert (full[0].psnr, full[0].ssim) == (plain.psnr, plain.ssim) == (psnr(clean, degraded), ssim(clean, degraded))
    assert len(seen) == 3


def test_onnxruntime_is_loaded_by_the_first_image_only() -> None:
    code = (
        "import sys, numpy; from crypsis.severity.strength import CleanImage; image = numpy.zeros((40, 40, 3), 'u1')\n"
        "clean = CleanImage(image); clean.strengths(image); assert 'onnxruntime' not in sys.modules\n"
        "assert clean.lpips(image) == 0; assert 'onnxruntime' in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_network(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match=r"network .*none\.onnx, which is missing"):
        LpipsNetwork(tmp_path / "none.onnx").features(noise(0, 40, 40))


@pytest.mark.parametrize("measure", [lpips, lambda x, y: CleanImage(x).lpips(y)])
def test_images_that_cannot_be_compared(measure: object) -> None:
    with pytest.raises(ImageError, match="the clean one is 30×20, the degraded one 31×20"):
        measure(noise(0, 20, 30), noise(0, 20, 31))
    with pytest.raises(ImageError, match="float64"):
        measure(noise(0, 20, 30), noise(0, 20, 30) / 255)
    with pytest.raises(ImageError, match="empty"):
        measure(noise(0, 0, 4), noise(0, 0, 4))
