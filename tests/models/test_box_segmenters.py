"""What happens before and after SAM: the same as in transformers' processors, without torchvision."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch")
transformers = pytest.importorskip("transformers", minversion="5.18", reason="needs the extra camouflage")

import tiny_hub_models as tiny  # noqa: E402
import torch  # noqa: E402

from crypsis.models.box_segmenters import BOX_SEGMENTERS, BoxSegmenter  # noqa: E402
from crypsis.models.hub import find_pretrained  # noqa: E402
from crypsis.types import Image  # noqa: E402

PARITY = json.loads((Path(__file__).parents[1] / "data" / "parity_sam2.json").read_text("utf-8"))


def image_of(height: int, width: int) -> Image:
    """Return the pattern of `scripts/make_parity_sam2.py`."""
    y, x, channel = np.mgrid[:height, :width, :3]
    return (127.5 + 127.5 * np.sin(0.9 * x + 0.5 * y * (channel + 1) + channel)).astype(np.uint8)


def logits_of(count: int, side: int = 6) -> np.ndarray:
    """Return its logits, 1×count×1×side×side."""
    place, y, x = np.mgrid[:count, :side, :side]
    return np.sin(1.3 * x + (place + 1) * 0.7 * y + place).astype(np.float32)[None, :, None]


def boxes_of(height: int, width: int) -> np.ndarray:
    """Return its boxes."""
    return np.array([[0, 0, width, height], [0.25 * width, 1, 0.7 * width, 0.9 * height]])


class Recorder:
    """Stands where the network does: remembers what it was given, and answers with given logits."""

    def __init__(self, logits: np.ndarray) -> None:
        self.logits = torch.from_numpy(logits)
        self.pixels = torch.zeros(0)
        self.boxes: list[torch.Tensor] = []

    def get_image_embeddings(self, pixels: torch.Tensor) -> str:
        self.pixels = pixels
        return "embedded"

    def __call__(self, *, image_embeddings: str, input_boxes: torch.Tensor, multimask_output: bool) -> Any:
        assert image_embeddings == "embedded"
        assert not multimask_output
        start = sum(boxes.shape[1] for boxes in self.boxes)
        self.boxes.append(input_boxes)
        return SimpleNamespace(pred_masks=self.logits[:, start : start + input_boxes.shape[1]])


@pytest.fixture(scope="module")
def segmenters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BoxSegmenter]:
    root = tmp_path_factory.mktemp("sam")
    return {
        kind: BoxSegmenter(
            kind,
            find_pretrained(
                str(tiny.save(kind, root / kind)), types=BOX_SEGMENTERS[kind].types, extra="camouflage", option=""
            ),
            device="cpu",
        )
        for kind in ("sam1", "sam2")
    }


def run(segmenter: Any, monkeypatch: pytest.MonkeyPatch, side: int, size: tuple[int, int], **options: int) -> Any:
    recorder = Recorder(logits_of(2))
    monkeypatch.setattr(segmenter, "_network", recorder)
    monkeypatch.setattr(segmenter, "_side", side)
    masks = segmenter.segment(image_of(*size), boxes_of(*size), **options)
    return recorder, masks


@pytest.mark.parametrize("case", PARITY["cases"], ids=lambda case: "×".join(map(str, case["size"])))
def test_sam2_is_prepared_and_brought_back_as_by_its_processor(segmenters, monkeypatch, case) -> None:
    side, (height, width) = PARITY["side"], case["size"]
    recorder, masks = run(segmenters["sam2"], monkeypatch, side, (height, width))
    mean, std = np.array((0.485, 0.456, 0.406)), np.array((0.229, 0.224, 0.225))
    pixels = (recorder.pixels[0].permute(1, 2, 0).numpy() * std + mean) * 255
    difference = np.abs(pixels.ravel() - case["pixels"])
    assert difference.max() < 1.001  # torch rounds bilinear weights as the processor allows
    assert difference.mean() < 0.01
    np.testing.assert_allclose(recorder.boxes[0][0].numpy(), case["boxes"], rtol=1e-6)
    expected = np.array([list(map(int, mask)) for mask in case["masks"]], np.bool_).reshape(2, height, width)
    np.testing.assert_array_equal(masks, expected)


@pytest.mark.parametrize("size", [(17, 31), (40, 24), (30, 30), (90, 200), (1, 7)])
def test_sam1_is_prepared_and_brought_back_as_by_its_processor(segmenters, monkeypatch, size) -> None:
    side = 24
    recorder, masks = run(segmenters["sam1"], monkeypatch, side, size)
    square = {"height": side, "width": side}
    processor = transformers.SamProcessor(
        transformers.SamImageProcessorPil(size={"longest_edge": side}, pad_size=square)
    )
    inputs = processor(
        images=[image_of(*size)], input_boxes=[boxes_of(*size).tolist()], return_tensors="pt",
        input_data_format="channels_last",
    )  # fmt: skip
    np.testing.assert_allclose(recorder.pixels.numpy(), inputs["pixel_values"].numpy(), atol=1e-5)
    np.testing.assert_allclose(recorder.boxes[0].numpy(), inputs["input_boxes"].numpy(), rtol=1e-6)
    (expected,) = processor.image_processor.post_process_masks(
        torch.from_numpy(logits_of(2)), inputs["original_sizes"], inputs["reshaped_input_sizes"]
    )
    np.testing.assert_array_equal(masks, expected[:, 0].numpy())


@pytest.mark.parametrize("kind", ["sam1", "sam2"])
def test_a_call_of_each_box_gives_the_same(segmenters, monkeypatch, kind) -> None:
    _, together = run(segmenters[kind], monkeypatch, 24, (17, 31))
    recorder, alone = run(segmenters[kind], monkeypatch, 24, (17, 31), batch=1)
    assert [tuple(boxes.shape) for boxes in recorder.boxes] == [(1, 1, 4), (1, 1, 4)]
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("kind", ["sam1", "sam2"])
def test_the_logits_of_a_box_do_not_depend_on_the_others(segmenters, kind) -> None:
    segmenter: Any = segmenters[kind]
    boxes = np.random.default_rng(0).uniform(0, 60, (7, 4)).astype(np.float32)
    network, side = segmenter._network, segmenter._side
    with torch.inference_mode():
        embedded = network.get_image_embeddings(torch.randn(1, 3, side, side, generator=torch.Generator()))

        def logits(prompts: np.ndarray) -> torch.Tensor:
            given = torch.from_numpy(prompts)[None]
            return network(image_embeddings=embedded, input_boxes=given, multimask_output=False).pred_masks

        whole = logits(boxes)
        for place in range(len(boxes)):
            np.testing.assert_allclose(logits(boxes[place : place + 1])[0, 0], whole[0, place], atol=1e-5)


@pytest.mark.parametrize("kind", ["sam1", "sam2"])
def test_no_boxes_need_no_network(segmenters, monkeypatch, kind) -> None:
    segmenter: Any = segmenters[kind]
    monkeypatch.setattr(segmenter, "_network", None)
    assert segmenter.segment(image_of(9, 5), np.zeros((0, 4))).shape == (0, 9, 5)
