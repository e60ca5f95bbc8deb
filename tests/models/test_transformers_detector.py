"""Tiny randomly initialized models, built from configurations and saved as users save theirs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch")
transformers = pytest.importorskip("transformers", minversion="5.18", reason="needs the extra transformers")

import huggingface_hub  # noqa: E402
import torch  # noqa: E402

from crypsis.errors import MissingDependencyError, ModelError, UnknownNameError  # noqa: E402
from crypsis.models.detector import Detector, load_detector  # noqa: E402

CLASSES = ("cat", "dog", "fish")
STAGES = {"embedding_size": 8, "hidden_sizes": [8, 8, 8, 16], "depths": [1, 1, 1, 1], "layer_type": "basic"}
SHORTEST, SQUARE = {"shortest_edge": 64, "longest_edge": 96}, {"height": 64, "width": 64}


def detr(kind: str, **more: Any) -> Any:
    outputs = more.pop("outputs", ["stage4"])
    return getattr(transformers, f"{kind}Config")(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=transformers.ResNetConfig(**STAGES, out_features=outputs),
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        num_queries=7,
        **more,
    )


def real_time(kind: str, backbone: Any, **more: Any) -> Any:
    return getattr(transformers, f"{kind}Config")(
        backbone_config=backbone,
        d_model=16,
        encoder_hidden_dim=16,
        encoder_in_channels=[8, 8, 16],
        feat_strides=[8, 16, 32],
        encoder_ffn_dim=16,
        encoder_attention_heads=2,
        decoder_in_channels=[16, 16, 16],
        decoder_ffn_dim=16,
        decoder_layers=2,
        decoder_attention_heads=2,
        num_queries=7,
        num_denoising=0,
        **more,
    )


def rt_resnet() -> Any:
    return transformers.RTDetrResNetConfig(**STAGES, out_features=["stage2", "stage3", "stage4"])


def hgnet() -> Any:
    return transformers.HGNetV2Config(
        stem_channels=[3, 8, 8],
        stage_in_channels=[8, 8, 8, 8],
        stage_mid_channels=[8, 8, 8, 8],
        stage_out_channels=[8, 8, 8, 16],
        stage_num_blocks=[1, 1, 1, 1],
        stage_numb_of_layers=[1, 1, 1, 1],
        hidden_sizes=[8, 8, 8, 16],
        depths=[1, 1, 1, 1],
        embedding_size=8,
        out_features=["stage2", "stage3", "stage4"],
    )


def yolos() -> Any:
    return transformers.YolosConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=[64, 64],
        num_detection_tokens=7,
    )


KINDS: dict[str, tuple[Callable[[], Any], str, dict[str, int]]] = {
    "Detr": (lambda: detr("Detr"), "Detr", SHORTEST),
    "ConditionalDetr": (lambda: detr("ConditionalDetr"), "ConditionalDetr", SHORTEST),
    "DeformableDetr": (
        lambda: detr("DeformableDetr", outputs=["stage2", "stage3", "stage4"]),
        "DeformableDetr",
        SHORTEST,
    ),
    "Yolos": (yolos, "Yolos", SHORTEST),
    "RTDetr": (lambda: real_time("RTDetr", rt_resnet()), "RTDetr", SQUARE),
    "RTDetrV2": (lambda: real_time("RTDetrV2", rt_resnet()), "RTDetr", SQUARE),
    "DFine": (lambda: real_time("DFine", hgnet(), decoder_n_points=[2, 2, 2]), "RTDetr", SQUARE),
}
"""Model → its configuration, whose image processor it uses, and to what size that resizes."""


def save(folder: Path, kind: str) -> Path:
    """Save a model of a kind with random weights, always the same."""
    configure, processor, size = KINDS[kind]
    configuration = configure()
    configuration.id2label = dict(enumerate(CLASSES))
    configuration.label2id = {name: label for label, name in enumerate(CLASSES)}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = getattr(transformers, f"{kind}ForObjectDetection")(configuration).eval()
    network.save_pretrained(folder)
    getattr(transformers, f"{processor}ImageProcessorPil")(size=size).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a saved model by its kind, written once."""
    root = tmp_path_factory.mktemp("models")

    def folder(kind: str) -> Path:
        return root / kind if (root / kind).exists() else save(root / kind, kind)

    return folder


@pytest.fixture
def model(saved, tmp_path) -> Path:
    """A copy of a saved DETR that a test may spoil."""
    return Path(shutil.copytree(saved("Detr"), tmp_path / "fish-detr"))


@pytest.fixture
def images() -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.integers(0, 256, (*size, 3), dtype=np.uint8) for size in ((40, 60), (40, 60), (61, 33), (20, 10))]


@pytest.mark.parametrize("kind", KINDS)
def test_images_give_what_the_package_gives(saved, images, kind) -> None:
    detector = load_detector(f"transformers:{saved(kind)},score=0")
    assert isinstance(detector, Detector)
    assert (detector.name, detector.classes) == (kind, CLASSES)
    assert detector.describe()["architecture"] == f"{kind}ForObjectDetection"
    assert str(detector.describe()["processor"]).endswith("ImageProcessorPil")
    processor = transformers.AutoImageProcessor.from_pretrained(saved(kind), backend="pil")
    network = transformers.AutoModelForObjectDetection.from_pretrained(saved(kind)).eval()
    for image, found in zip(images, detector.detect(images), strict=True):
        with torch.inference_mode():
            outputs = network(**processor(images=[image], return_tensors="pt"))
        (expected,) = processor.post_process_object_detection(outputs, threshold=0.0, target_sizes=[image.shape[:2]])
        assert len(found.scores) >= 7
        np.testing.assert_allclose(found.boxes, expected["boxes"].numpy(), atol=1e-3)
        np.testing.assert_allclose(found.scores, expected["scores"].numpy(), atol=1e-6)
        np.testing.assert_array_equal(found.labels, expected["labels"].numpy())


@pytest.mark.parametrize("kind", ["Detr", "Yolos"])
def test_neighbors_in_a_batch_change_nothing_that_matters(saved, images, kind) -> None:
    alone = load_detector(f"transformers:{saved(kind)},score=0").detect(images)
    together = load_detector(f"transformers:{saved(kind)},score=0,batch=4").detect(images)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one.boxes, other.boxes, atol=1e-3)
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-5)


def test_the_same_bytes_each_time_and_the_threads_of_torch_are_kept(saved, images) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first, second = (load_detector(f"transformers:{saved('Detr')},score=0").detect(images) for _ in range(2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    for one, other in zip(first, second, strict=True):
        assert one.boxes.tobytes() == other.boxes.tobytes()
        assert one.scores.tobytes() == other.scores.tobytes()


def test_a_score_leaves_boxes_out(saved, images) -> None:
    scores = np.sort(load_detector(f"transformers:{saved('Detr')},score=0").detect(images[:1])[0].scores)
    middle = float(scores[3] + scores[4]) / 2
    (found,) = load_detector(f"transformers:{saved('Detr')},score={middle}").detect(images[:1])
    np.testing.assert_array_equal(np.sort(found.scores), scores[scores > middle])
    assert 0 < len(found.scores) < len(scores)


def test_gaps_between_the_labels_have_a_name(model) -> None:
    configuration = json.loads((model / "config.json").read_text())
    configuration["id2label"] = {"0": "N/A", "1": "person", "2": "fish"}
    (model / "config.json").write_text(json.dumps(configuration | {"label2id": {"N/A": 0, "person": 1, "fish": 2}}))
    assert load_detector(f"transformers:{model}").classes == ("N/A", "person", "fish")


def test_the_description_has_hashes_options_and_versions(model) -> None:
    before = load_detector(f"transformers:{model},batch=2,name=x").describe()
    assert before["model"] == "fish-detr"
    assert (before["score"], before["batch"], before["device"]) == (0.05, 2, "cpu")
    assert before["transformers"] == transformers.__version__
    assert str(model.parent) not in str(before)
    path = model / "preprocessor_config.json"
    path.write_text(path.read_text().replace("64", "72"))
    after = load_detector(f"transformers:{model},batch=2").describe()
    assert {key for key in before if before[key] != after[key]} == {"configuration_sha256"}


def test_weights_that_run_code_are_not_read(model) -> None:
    network = transformers.AutoModelForObjectDetection.from_pretrained(model)
    (model / "model.safetensors").unlink()
    torch.save(network.state_dict(), model / "pytorch_model.bin")
    with pytest.raises(ModelError, match="no weights in safetensors"):
        load_detector(f"transformers:{model}")


def test_code_beside_the_weights_is_not_run(model) -> None:
    (model / "evil.py").write_text(f"open({str(model / 'ran')!r}, 'w')\nclass Net: pass\nclass Processor: pass\n")
    for file, hooks in (
        ("config.json", {"AutoModelForObjectDetection": "evil.Net", "AutoConfig": "evil.Net"}),
        ("preprocessor_config.json", {"AutoImageProcessor": "evil.Processor"}),
    ):
        path = model / file
        path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": hooks}))
    load_detector(f"transformers:{model}")
    configuration = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(configuration | {"model_type": "evil"}))
    with pytest.raises(ModelError, match="is not a detector that transformers can load"):
        load_detector(f"transformers:{model}")
    assert not (model / "ran").exists()


def test_weights_that_are_missing_would_detect_at_random(model) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(model / "model.safetensors")
    head = {key: value for key, value in weights.items() if not key.startswith("class_labels")}
    save_file(head, model / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=r"2 of its weights are missing .* such as class_labels_classifier.bias"):
        load_detector(f"transformers:{model}")


def test_what_is_no_detector(tmp_path) -> None:
    configuration = transformers.ResNetConfig(**STAGES)
    transformers.ResNetForImageClassification(configuration).save_pretrained(tmp_path / "net")
    with pytest.raises(ModelError, match="net: is not a detector that transformers can load"):
        load_detector(f"transformers:{tmp_path / 'net'}")
    transformers.ConvNextImageProcessorPil().save_pretrained(tmp_path / "net")
    with pytest.raises(ModelError, match="Unrecognized configuration class") as caught:
        load_detector(f"transformers:{tmp_path / 'net'}")
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_one_sentence(model) -> None:
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ModelError, match="is not a detector that transformers can load") as caught:
        load_detector(f"transformers:{model}")
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named(model, monkeypatch) -> None:
    configuration = json.loads((model / "config.json").read_text())
    configuration["backbone_config"] = {"model_type": "timm_backbone", "backbone": "resnet18"}
    (model / "config.json").write_text(json.dumps(configuration))
    monkeypatch.setattr(transformers.utils.import_utils, "is_timm_available", lambda: False)
    with pytest.raises(MissingDependencyError, match=r"a package that this model needs is missing .*timm"):
        load_detector(f"transformers:{model}")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_is_refused(saved) -> None:
    with pytest.raises(MissingDependencyError, match="device=cuda needs a GPU"):
        load_detector(f"transformers:{saved('Detr')},device=cuda")


def test_what_fails_inside_is_one_sentence(saved, images, monkeypatch) -> None:
    detector = load_detector(f"transformers:{saved('Detr')},name=ours")
    monkeypatch.setattr(detector, "_infer", lambda batch: 1 / 0)
    with pytest.raises(ModelError, match=r"ours: the model failed on 1 image.* of 40×60: ZeroDivisionError"):
        detector.detect(images)


def test_a_model_on_the_hub_is_fetched_without_code(saved, monkeypatch) -> None:
    asked = {}

    def snapshot_download(model: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        asked.update(model=model, revision=revision, patterns=allow_patterns)
        return str(saved("Detr"))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    detector = load_detector("transformers:facebook/detr-resnet-50,revision=no_timm")
    assert (asked["model"], asked["revision"]) == ("facebook/detr-resnet-50", "no_timm")
    assert not any(".py" in pattern or ".bin" in pattern for pattern in asked["patterns"])
    assert detector.name == "detr-resnet-50"
    assert detector.describe()["model"] == "facebook/detr-resnet-50"


def test_a_model_that_is_nowhere(monkeypatch, tmp_path) -> None:
    def fails(*given: object, **options: object) -> str:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fails)
    with pytest.raises(ModelError, match=r"neither a folder here nor .*ConnectionError: no route\)"):
        load_detector("transformers:facebook/detr")
    monkeypatch.chdir(tmp_path)
    for path in (str(tmp_path / "gone"), "./gone", "a/b/gone"):
        with pytest.raises(ModelError, match=r"There is no folder .*gone"):
            load_detector(f"transformers:{path}")


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        ("transformers", ModelError, "write transformers:FOLDER or transformers:OWNER/NAME"),
        ("transformers:{m},revision=main", ModelError, "revision= is for models on the hub"),
        ("transformers:{m},score=2", ModelError, "a number from 0 to 1"),
        ("transformers:{m},scores=0.1", UnknownNameError, "did you mean 'score'"),
        ("transformers:{m},device=gpu", ModelError, "cpu | cuda"),
    ],
)
def test_options_that_are_wrong(saved, spec, kind, message) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        load_detector(spec.format(m=saved("Detr")))
