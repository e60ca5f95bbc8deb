"""SAM 3, as an observer and as a segmenter of boxes; both need torchvision."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch")
transformers = pytest.importorskip("transformers", minversion="5.18", reason="needs the extra sam3")

from torchvision_on_cpu import import_torchvision  # noqa: E402

import_torchvision()

import tiny_hub_models as tiny  # noqa: E402
import torch  # noqa: E402

from crypsis.errors import ModelError, UnknownNameError  # noqa: E402
from crypsis.models.proposals import ProposalSource, load_proposer  # noqa: E402
from crypsis.types import Image  # noqa: E402

Saved = Callable[[str], Path]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    root = tmp_path_factory.mktemp("sam3")

    def folder(kind: str) -> Path:
        return root / kind if (root / kind).exists() else tiny.save(kind, root / kind)

    return folder


def noise(height: int, width: int) -> Image:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(("height", "width"), [(60, 90), (90, 61), (200, 300)])
def test_sam3_gives_what_the_package_gives(saved, height, width) -> None:
    image, folder = noise(height, width), saved("sam3")
    observer = load_proposer(f"sam3:{folder},score=0")
    assert isinstance(observer, ProposalSource)
    found = observer.propose(image, "owl")
    processor = transformers.Sam3Processor(
        transformers.Sam3ImageProcessor(size={"height": 112, "width": 112}),
        transformers.CLIPTokenizerFast.from_pretrained(folder),
    )
    network = transformers.Sam3Model.from_pretrained(folder).eval()
    inputs = processor(images=image, text="owl", return_tensors="pt")
    with torch.inference_mode():
        outputs = network(**inputs)
    (expected,) = processor.image_processor.post_process_instance_segmentation(
        outputs, threshold=-1.0, target_sizes=[(height, width)]
    )
    order = np.argsort(-expected["scores"].numpy(), kind="stable")
    assert found.boxes is not None
    np.testing.assert_allclose(found.beta, expected["scores"].numpy()[order], atol=1e-5)
    np.testing.assert_allclose(found.boxes, expected["boxes"].numpy()[order], atol=0.01)
    differing = found.masks != expected["masks"].numpy()[order].astype(bool)
    assert differing.mean() < 1e-3
    assert 0.1 < found.masks.mean() < 0.9
    assert (found.alpha == 1).all()
    presence = load_proposer(f"sam3:{folder},score=0,alpha=presence").propose(image, "owl")
    np.testing.assert_allclose(presence.alpha, float(outputs.presence_logits.sigmoid()), atol=1e-5)
    np.testing.assert_allclose(np.sort(presence.beta * presence.alpha), np.sort(found.beta), atol=1e-6)


def test_what_it_says_leaves_out_and_cuts(saved) -> None:
    observer: Any = load_proposer(f"sam3:{saved('sam3')},limit=2,name=mine")
    described = observer.describe()
    assert (described["observer"], described["alpha"], described["detector_size"]) == ("sam3", "library", "112×112")
    assert str(saved("sam3").parent) not in json.dumps(described)
    found = observer.propose(noise(40, 30), "owl")
    assert found.masks.shape == (2, 40, 30)
    again = observer.propose(noise(40, 30), "owl")
    assert found.masks.tobytes() == again.masks.tobytes()
    assert observer.propose(noise(1, 1), "owl").masks.shape[1:] == (1, 1)
    long = "red snow leopard with long whiskers and spots"
    assert observer.fit_name(long) == "red snow leopard with long whiskers"
    assert len(observer.propose(noise(40, 30), long).alpha) == 2
    observer._network = None
    with pytest.raises(ModelError, match=r"^mine: failed on an image of 40×30: TypeError"):
        observer.propose(noise(40, 30), "owl")


def test_boxes_of_another_detector_become_masks(saved) -> None:
    spec = f"grounding-dino:{saved('grounding-dino')},segment=sam3,segmenter={saved('sam3-tracker')},score=0"
    observer = load_proposer(spec)
    assert observer.describe()["segmenter_size"] == "112×112"
    image = noise(60, 90)
    found = observer.propose(image, "frog")  # type: ignore[union-attr]
    assert len(found.alpha) > 5
    assert found.boxes is not None
    processor = transformers.Sam3TrackerProcessor(transformers.Sam3ImageProcessor(size={"height": 112, "width": 112}))
    network = transformers.Sam3TrackerModel.from_pretrained(saved("sam3-tracker")).eval()
    inputs = processor(images=image, input_boxes=[found.boxes.tolist()], return_tensors="pt")
    with torch.inference_mode():
        outputs = network(
            pixel_values=inputs["pixel_values"], input_boxes=inputs["input_boxes"], multimask_output=False
        )
    (expected,) = processor.post_process_masks([outputs.pred_masks[0]], [(60, 90)])
    assert (found.masks != expected[:, 0].numpy()).mean() < 1e-3
    assert 0 < found.masks.mean() < 1


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_the_file_on_the_hub_which_holds_both_networks_is_read_as_either(saved, tmp_path) -> None:
    from safetensors.torch import load_file, save_file

    detector, tracker = (
        transformers.AutoConfig.from_pretrained(saved(kind)).to_dict() for kind in ("sam3", "sam3-tracker")
    )
    video = transformers.Sam3TrackerVideoConfig(
        vision_config=tracker["vision_config"], prompt_encoder_config=tracker["prompt_encoder_config"],
        mask_decoder_config=tracker["mask_decoder_config"], image_size=112, memory_attention_hidden_size=32,
        memory_attention_num_layers=1, memory_attention_feed_forward_hidden_size=32,
        memory_attention_rope_feat_sizes=[8, 8], memory_encoder_hidden_size=32, memory_encoder_output_channels=16,
        mask_downsampler_embed_dim=32, memory_fuser_embed_dim=32, memory_fuser_intermediate_dim=32,
    )  # fmt: skip
    configuration = transformers.Sam3VideoConfig(detector_config=detector, tracker_config=video.to_dict())
    with torch.random.fork_rng():
        torch.manual_seed(2)
        transformers.Sam3VideoModel(configuration).save_pretrained(tmp_path)
    transformers.CLIPTokenizerFast.from_pretrained(saved("sam3")).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    doubled = "tracker_model.tracker_model."  # as transformers 5.24 saves what is called tracker_model on the hub
    weights = {name.replace(doubled, "tracker_model."): value for name, value in weights.items()}
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    whole: Any = load_proposer(f"sam3:{tmp_path},score=0")
    assert len(whole.propose(noise(60, 90), "owl").alpha) > 0
    boxes: Any = load_proposer(f"owlv2:{saved('owlv2')},segment=sam3,segmenter={tmp_path},score=0")
    found = boxes.propose(noise(60, 90), "owl")
    assert found.masks.any()
    for network, prefixes in ((whole._network, ("detector_model.",)), (boxes._segmenter._network, ("tracker_model.",))):
        for name, value in network.state_dict().items():
            neck = f"tracker_neck.{name.removeprefix('vision_encoder.neck.')}"
            places = [f"{prefix}{name}" for prefix in (*prefixes, "detector_model.")] + [neck]
            assert any(place in weights and torch.equal(weights[place], value) for place in places), name


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        ("sam3:{s},alpha=relative", ModelError, r"library \| presence"),
        ("sam3:{s},segment=sam2", UnknownNameError, "no option of sam3 models 'segment'"),
        ("sam3:{t}", ModelError, "is a network of type sam3_tracker; one of type sam3 or sam3_video is needed"),
    ],
)
def test_wrong_specifications(saved, spec, kind, message) -> None:
    with pytest.raises(kind, match=message):
        load_proposer(spec.format(s=saved("sam3"), t=saved("sam3-tracker")))
