"""Observers of the hub: tiny random networks, saved as users save theirs, from the specification to the score."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("scipy", reason="needs the extra camouflage")
transformers = pytest.importorskip("transformers", minversion="5.18", reason="needs the extra camouflage")

import huggingface_hub  # noqa: E402
import tiny_hub_models as tiny  # noqa: E402
import torch  # noqa: E402

from crypsis.bench.score import SeamCamSettings, finish_scoring, plan_score, read_rows, score_images  # noqa: E402
from crypsis.errors import CrypsisError, MissingDependencyError, ModelError, UnknownNameError  # noqa: E402
from crypsis.models import hub_observer  # noqa: E402
from crypsis.models.box_segmenters import BoxSegmenter  # noqa: E402
from crypsis.models.hub import find_pretrained  # noqa: E402
from crypsis.models.hub_observer import HubObserver, best_boxes  # noqa: E402
from crypsis.models.proposals import ProposalSource, load_proposer, looked_for  # noqa: E402
from crypsis.models.text_detectors import Found, GroundingDino, Owlv2, alpha_of_tokens, fit_text  # noqa: E402
from crypsis.types import Image, Proposals  # noqa: E402

Saved = Callable[[str], Path]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Folder of a saved network by its kind, written once."""
    root = tmp_path_factory.mktemp("hub")

    def folder(kind: str) -> Path:
        return root / kind if (root / kind).exists() else tiny.save(kind, root / kind)

    return folder


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def noise(height: int, width: int, seed: int = 0) -> Image:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def spec_of(saved: Saved, detector: str, segment: str = "sam2", **options: object) -> str:
    more = "".join(f",{option}={value}" for option, value in options.items())
    return f"{detector}:{saved(detector)},segment={segment},segmenter={saved(segment)}{more}"


def equal(one: Proposals, other: Proposals) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("alpha", "beta", "boxes", "masks"))


TOKENS = np.array(
    [
        [0.01, 0.62, 0.70, 0.02, 0.01],
        [0.01, 0.20, 0.30, 0.02, 0.01],
        [0.01, 0.05, 0.60, 0.02, 0.01],
        [0.45, 0.02, 0.03, 0.05, 0.02],
        [0.01, 0.09, 0.08, 0.02, 0.01],
    ]
)
"""Scores of five boxes against start, "snow", "leopard", full stop and end."""
PHRASE = np.array([False, True, True, False, False])


@pytest.mark.parametrize(
    ("rule", "alpha", "kept"),
    [
        ("phrase-max", [0.70, 0.30, 0.60, 0.03, 0.09], [True, False, True, False, False]),
        ("phrase-min", [0.62, 0.20, 0.05, 0.02, 0.08], [True, False, False, False, False]),
        ("library", [1, 1, 1, 1, 1], [True, True, True, True, False]),
        ("relative", [1, 1, 1, 0.03 / 0.45, 1], [True, True, True, False, False]),
    ],
)
def test_alpha_of_tokens_by_hand_and_what_passes_at_the_papers_thresholds(rule, alpha, kept) -> None:
    found = alpha_of_tokens(rule, TOKENS, PHRASE)
    np.testing.assert_allclose(found, alpha, atol=1e-12)
    np.testing.assert_array_equal((found >= 0.5) & (TOKENS.max(axis=1) >= 0.1), kept)


@pytest.mark.parametrize("rule", GroundingDino.rules)
def test_alpha_of_no_boxes_and_of_scores_that_are_all_zero(rule) -> None:
    assert alpha_of_tokens(rule, np.zeros((0, 5)), PHRASE).shape == (0,)
    assert alpha_of_tokens(rule, np.zeros((1, 5)), PHRASE).tolist() == [1.0 if rule == "library" else 0.0]


def test_long_names_lose_their_last_words() -> None:
    def count(text: str) -> int:
        return len(text.split()) + 2

    assert fit_text("leafy sea dragon", count, 5) == "leafy sea dragon"
    assert fit_text("leafy sea dragon", count, 4) == "leafy sea"
    assert fit_text("leafy sea dragon", count, 1) == "leafy"


@pytest.mark.parametrize(("height", "width"), [(60, 90), (90, 61), (40, 40)])
def test_grounding_dino_gives_what_the_package_gives(saved, height, width) -> None:
    image = noise(height, width)
    folder = saved("grounding-dino")
    detector = GroundingDino(
        find_pretrained(str(folder), types=GroundingDino.types, extra="camouflage", option=""),
        alpha="phrase-max", device="cpu", extra="camouflage",
    )  # fmt: skip
    with torch.inference_mode():
        found = detector.find(image, "snow leopard")
        processor = transformers.GroundingDinoProcessor(
            transformers.GroundingDinoImageProcessorPil.from_pretrained(folder),
            transformers.BertTokenizerFast.from_pretrained(folder),
        )
        network = transformers.GroundingDinoForObjectDetection.from_pretrained(folder).eval()
        inputs = processor(images=[image], text=[["snow leopard"]], return_tensors="pt")
        outputs = network(**inputs)
    (expected,) = processor.post_process_grounded_object_detection(
        outputs, inputs["input_ids"], threshold=-1.0, text_threshold=0.0, target_sizes=[(height, width)]
    )
    assert inputs["input_ids"].tolist() == [[101, 2002, 2003, 1012, 102]]
    np.testing.assert_allclose(found.boxes, expected["boxes"].numpy(), atol=1e-4)
    np.testing.assert_allclose(found.beta, expected["scores"].numpy(), atol=1e-6)
    own = outputs.logits[0, :, 1:3].sigmoid().numpy()
    np.testing.assert_allclose(found.alpha, own.max(axis=1), atol=1e-6)
    assert (found.alpha < found.beta - 1e-3).any()


@pytest.mark.parametrize(("height", "width"), [(60, 90), (90, 61), (40, 40)])
def test_owlv2_gives_what_the_package_gives(saved, height, width) -> None:
    image = noise(height, width)
    folder = saved("owlv2")
    files = find_pretrained(str(folder), types=Owlv2.types, extra="camouflage", option="")
    processor = transformers.Owlv2Processor(
        transformers.Owlv2ImageProcessorPil.from_pretrained(folder),
        transformers.CLIPTokenizerFast.from_pretrained(folder, model_max_length=24),
    )
    network = transformers.Owlv2ForObjectDetection.from_pretrained(folder).eval()
    with torch.inference_mode():
        library, strict = (
            Owlv2(files, alpha=rule, device="cpu", extra="camouflage").find(image, "owl") for rule in Owlv2.rules
        )
        inputs = processor(images=[image], text=[["a photo of a owl"]], return_tensors="pt")
        outputs = network(**inputs)
    (expected,) = processor.post_process_grounded_object_detection(
        outputs, threshold=-1.0, target_sizes=[(height, width)]
    )
    np.testing.assert_allclose(library.boxes, expected["boxes"].numpy(), atol=1e-3)
    np.testing.assert_allclose(library.beta, expected["scores"].numpy(), atol=1e-6)
    np.testing.assert_array_equal(library.alpha, 1)
    np.testing.assert_allclose(strict.alpha, expected["scores"].numpy(), atol=1e-6)
    np.testing.assert_allclose(strict.beta, outputs.objectness_logits[0].sigmoid().numpy(), atol=1e-6)


@pytest.mark.parametrize("detector", ["grounding-dino", "owlv2"])
@pytest.mark.parametrize("segment", ["sam1", "sam2"])
def test_from_the_specification_to_proposals(saved, detector, segment) -> None:
    observer = load_proposer(spec_of(saved, detector, segment, score=0))
    assert isinstance(observer, ProposalSource)
    assert observer.name == detector
    image = noise(60, 90)
    before = image.copy()
    found = observer.propose(image, "frog")
    assert (image == before).all()
    assert len(found.alpha) > 5
    assert found.masks.shape == (len(found.alpha), 60, 90)
    assert 0 < found.masks.mean() < 1
    assert (np.diff(found.beta) <= 0).all()
    assert found.boxes is not None
    assert found.boxes.min() >= 0
    assert (found.boxes <= (90, 60, 90, 60)).all()
    assert (found.boxes[:, 2:] > found.boxes[:, :2]).all()
    again = load_proposer(spec_of(saved, detector, segment, score=0)).propose(image, "frog")
    assert equal(found, again)


def test_what_is_looked_for_matters_and_so_does_the_rule(saved) -> None:
    image = noise(60, 90)
    frog, owl = (load_proposer(spec_of(saved, "grounding-dino", score=0)).propose(image, n) for n in ("frog", "owl"))
    assert not equal(frog, owl)
    named = {
        rule: load_proposer(spec_of(saved, "grounding-dino", score=0, alpha=rule)).propose(image, "snow leopard")
        for rule in GroundingDino.rules
    }
    for found in named.values():
        np.testing.assert_array_equal(found.beta, named["library"].beta)
    assert (named["library"].alpha == 1).all()
    assert (named["phrase-min"].alpha <= named["phrase-max"].alpha).all()
    np.testing.assert_allclose(named["relative"].alpha, named["phrase-max"].alpha / named["library"].beta, rtol=1e-6)


@pytest.mark.parametrize("segment", ["sam1", "sam2"])
def test_boxes_in_one_call_or_several_get_the_same_masks(saved, segment) -> None:
    whole, parts, alone = (
        load_proposer(spec_of(saved, "owlv2", segment, score=0, **more)).propose(noise(60, 90), "frog")
        for more in ({}, {"batch": 3}, {"batch": 1})
    )
    assert len(whole.alpha) > 6
    assert equal(whole, parts)
    assert equal(whole, alone)


def test_the_image_is_embedded_once(saved, monkeypatch) -> None:
    observer: Any = load_proposer(spec_of(saved, "owlv2", score=0, batch=2))
    calls = []
    embed = observer._segmenter._network.get_image_embeddings
    monkeypatch.setattr(
        observer._segmenter._network, "get_image_embeddings", lambda pixels: calls.append(1) or embed(pixels)
    )
    observer.propose(noise(60, 90), "frog")
    assert calls == [1]


def test_score_and_limit_leave_proposals_out(saved) -> None:
    image = noise(60, 90)
    every = load_proposer(spec_of(saved, "grounding-dino", score=0)).propose(image, "frog")
    middle = float(every.beta[4] + every.beta[5]) / 2
    kept = load_proposer(spec_of(saved, "grounding-dino", score=middle)).propose(image, "frog")
    np.testing.assert_array_equal(kept.beta, every.beta[:5])
    best = load_proposer(spec_of(saved, "grounding-dino", score=0, limit=3)).propose(image, "frog")
    np.testing.assert_array_equal(best.masks, every.masks[:3])


def test_mm_grounding_dino_is_loaded_too(saved) -> None:
    observer: Any = load_proposer(f"grounding-dino:{saved('mm-grounding-dino')},segmenter={saved('sam2')},score=0")
    assert type(observer._detector._network).__name__ == "MMGroundingDinoForObjectDetection"
    found = observer.propose(noise(60, 90), "frog")
    assert len(found.alpha) > 5
    assert observer.describe()["observer"] == "grounding-dino"


@pytest.mark.parametrize("segment", ["sam1", "sam2"])
def test_nothing_found_and_images_of_one_pixel(saved, segment) -> None:
    nothing = load_proposer(spec_of(saved, "owlv2", segment, score=1)).propose(noise(60, 90), "frog")
    assert nothing.masks.shape == (0, 60, 90)
    for shape in ((1, 1), (1, 40), (40, 1)):
        for detector in ("owlv2", "grounding-dino"):
            found = load_proposer(spec_of(saved, detector, segment, score=0)).propose(noise(*shape), "frog")
            assert found.masks.shape[1:] == shape
        assert len(found.alpha) > 0


def test_boxes_are_clipped_sorted_and_must_be_numbers() -> None:
    boxes = np.array([[0, 0, 5, 5], [-9, -9, -2, -2], [3, 3, 3, 8], [90, 40, 200, 300], [1, 1, 2, 2.0]])
    found = Found(boxes, np.full(5, 0.5), np.array([0.3, 0.9, 0.8, 0.7, 0.04]))
    best, places = best_boxes(found, (60, 100), 0.05, 9)
    assert best.boxes.tolist() == [[90, 40, 100, 60], [0, 0, 5, 5]]
    assert (best.beta.tolist(), places.tolist()) == ([0.7, 0.3], [3, 0])
    assert len(best_boxes(found, (60, 100), 0.05, 1)[1]) == 1
    for spoiled in (np.nan, np.inf):
        boxes[1, 2] = spoiled
        with pytest.raises(ModelError, match="boxes or scores that are not finite"):
            best_boxes(found, (60, 100), 0.05, 9)


def test_a_detector_that_returns_nan_is_one_sentence(saved, monkeypatch) -> None:
    observer: Any = load_proposer(spec_of(saved, "owlv2", name="mine"))
    nan = Found(np.full((1, 4), np.nan), np.ones(1), np.ones(1))
    monkeypatch.setattr(observer._detector, "find", lambda image, category: nan)
    with pytest.raises(ModelError, match=r"^mine: the detector returned boxes or scores that are not finite\.$"):
        observer.propose(noise(60, 90), "frog")
    monkeypatch.setattr(observer._detector, "find", lambda image, category: 1 / 0)
    with pytest.raises(ModelError, match=r"^mine: failed on an image of 60×90: ZeroDivisionError"):
        observer.propose(noise(60, 90), "frog")


def test_names_that_are_too_long_lose_their_last_words(saved) -> None:
    observer: Any = load_proposer(spec_of(saved, "owlv2", score=0))
    long = "snow leopard of the high mountains"
    assert observer.fit_name(long) == "snow leopard of"
    assert looked_for(observer, long) == "snow leopard of"
    assert looked_for(load_proposer("embedded"), long) == long
    found = observer.propose(noise(60, 90), long)
    assert equal(found, observer.propose(noise(60, 90), "snow leopard of"))
    assert not equal(found, observer.propose(noise(60, 90), "snow leopard"))
    assert len(observer.propose(noise(60, 90), "x" * 60).alpha) > 0  # one word, of which the beginning is seen
    dino: Any = load_proposer(spec_of(saved, "grounding-dino", score=0))
    assert dino.fit_name(long) == long
    assert dino.fit_name("frog " * 300 + "owl") == " ".join(["frog"] * 253)
    assert len(dino.propose(noise(60, 90), "frog " * 300 + "owl").alpha) > 0


def test_no_random_state_is_touched(saved) -> None:
    spec = spec_of(saved, "grounding-dino", "sam1", score=0)
    before = (torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())  # noqa: NPY002
    load_proposer(spec).propose(noise(60, 90), "frog")
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert random.getstate() == before[2]


def test_the_description_has_hashes_and_no_paths(saved, tmp_path) -> None:
    observer = load_proposer(spec_of(saved, "grounding-dino", limit=9, alpha="library"))
    described = observer.describe()
    assert {key: described[key] for key in ("observer", "alpha", "prompt", "segment", "limit", "score", "dtype")} == {
        "observer": "grounding-dino", "alpha": "library", "prompt": "{}.", "segment": "sam2", "limit": 9, "score": 0.05,
        "dtype": "float32",
    }  # fmt: skip
    assert (described["detector_size"], described["segmenter_size"]) == ("72 to 120", "128×128")
    assert (described["detector"], described["detector_revision"]) == ("grounding-dino", None)
    assert (described["transformers"], described["torch"]) == (transformers.__version__, torch.__version__)
    assert str(saved("sam2").parent) not in json.dumps(described)
    other = Path(shutil.copytree(saved("sam2"), tmp_path / "sam2"))
    (other / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.5, 0.5]}')
    changed = load_proposer(f"grounding-dino:{saved('grounding-dino')},segmenter={other},limit=9,alpha=library")
    assert {key for key, value in changed.describe().items() if value != described[key]} == {"segmenter_files_sha256"}
    assert not equal(changed.propose(noise(60, 90), "frog"), observer.propose(noise(60, 90), "frog"))


def test_a_run_of_scores(saved, make_set, tmp_path) -> None:
    data, spec = make_set(3, height=64, width=96), spec_of(saved, "grounding-dino", score=0, limit=8)
    parts = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        plan = plan_score(str(data), species="snow leopard", observer=spec)
        outcome = score_images(plan, folder)
        assert (outcome.images, outcome.failures, outcome.errors) == (3, (), ())
        parts.append([path.read_bytes() for path in sorted((folder / "parts").iterdir())])
    assert parts[0] == parts[1]
    rows = read_rows(plan, tmp_path / "one")
    assert [(row["category"], len(row["alpha"])) for row in rows] == [("snow leopard", 8)] * 3
    summary = finish_scoring(plan, tmp_path / "one")
    assert all(0 <= row["seamcam"] <= 1 for row in summary["ranking"])
    kept = json.loads((tmp_path / "one" / "run.json").read_text("utf-8"))
    assert "detector_weights_sha256" in json.dumps(kept)


INERT = "With alpha=phrase-max no α is above its β: with τβ ≤ τα, τβ drops nothing that τα keeps."


@pytest.mark.parametrize(
    ("alpha", "tau_beta", "warnings"),
    [("phrase-max", 0.1, (INERT,)), ("phrase-min", 0.9, ()), ("relative", 0.1, ())],
)
def test_a_threshold_that_does_nothing_is_told(saved, make_set, alpha, tau_beta, warnings) -> None:
    settings = SeamCamSettings(tau_alpha=0.5, tau_beta=tau_beta)
    spec = spec_of(saved, "grounding-dino", alpha=alpha)
    assert plan_score(str(make_set(1)), species="owl", observer=spec, settings=settings).warnings == warnings


def test_a_name_that_is_too_long_is_told_and_recorded(saved, make_set, tmp_path) -> None:
    long = "snow leopard of the high mountains"
    plan = plan_score(str(make_set(1)), species=long, observer=spec_of(saved, "owlv2", score=0))
    assert plan.warnings == (f"owlv2: {long!r} is too long; 'snow leopard of' is looked for.",)
    score_images(plan, tmp_path / "run")
    (row,) = read_rows(plan, tmp_path / "run")
    assert (row["species"], row["category"]) == (long, "snow leopard of")


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        (
            "grounding-dino:{owlv2}",
            ModelError,
            "owlv2: is a network of type owlv2; one of type grounding-dino or mm-gr",
        ),
        ("owlv2:{grounding-dino}", ModelError, "is a network of type grounding-dino; one of type owlv2 is needed"),
        ("owlv2:{owlv2},segmenter={sam1}", ModelError, "type sam; one of type sam2 or sam2_video is needed"),
        ("owlv2:{owlv2},alpha=relative", ModelError, "alpha=relative is not understood; allowed: library | phrase-max"),
        ("owlv2:{owlv2},alpha=phrase-min", ModelError, "allowed: library | phrase-max"),
        ("grounding-dino:{grounding-dino},alpha=x", ModelError, "relative | phrase-max | phrase-min | library"),
        ("grounding-dino:{grounding-dino},segment=sam", ModelError, "allowed: sam2 | sam1 | sam3"),
        ("grounding-dino:{grounding-dino},batch=0", ModelError, "a whole number from 1"),
        ("grounding-dino:{grounding-dino},segmentor=x", UnknownNameError, "did you mean 'segmenter'"),
        ("grounding-dino:{grounding-dino},revision=main", ModelError, "A revision is for networks on the hub"),
        ("grounding-dino:nowhere", ModelError, "There is no folder nowhere"),
        ("grounding-dino:./no/where", ModelError, "There is no folder ./no/where"),
    ],
)
def test_wrong_specifications(saved, spec, kind, message) -> None:
    filled = re.sub(r"\{([a-z0-9-]+)\}", lambda match: str(saved(match[1])), spec)
    with pytest.raises(kind, match=re.escape(message)) as caught:
        load_proposer(filled)
    assert "\n" not in str(caught.value)


@pytest.fixture
def spoiled(saved, tmp_path) -> Path:
    """A copy of a saved detector that a test may spoil."""
    return Path(shutil.copytree(saved("owlv2"), tmp_path / "mine"))


def spoil_nothing_but_weights(folder: Path) -> None:
    torch.save({}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def spoil_shard(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-00001-of-00002.safetensors"}}')


def spoil_half(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    kept = {key: value for key, value in load_file(folder / "model.safetensors").items() if "box_head" not in key}
    save_file(kept, folder / "model.safetensors", {"format": "pt"})


def cut(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:500])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        (lambda folder: (folder / "config.json").write_text("["), "cannot be read as JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "is not a JSON object"),
        (spoil_nothing_but_weights, "has no weights, or not all of them, in safetensors"),
        (spoil_shard, "has no weights, or not all of them, in safetensors"),
        (spoil_half, "of its weights are missing or of another shape, such as box_head"),
        (cut, "is not an OWLv2 that transformers can load"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "is not an OWLv2 that transformers can load"),
    ],
)
def test_damaged_folders_are_one_sentence(saved, spoiled, spoil, message) -> None:
    spoil(spoiled)
    with pytest.raises(ModelError, match=re.escape(message)) as caught:
        load_proposer(f"owlv2:{spoiled},segmenter={saved('sam2')}")
    assert "mine" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_saved_normalization_that_is_none(saved, tmp_path) -> None:
    folder = Path(shutil.copytree(saved("sam2"), tmp_path / "sam2"))
    for text in ('{"image_std": [0, 1, 1]}', '{"image_mean": "x"}', '{"image_mean": [1, 2]}'):
        (folder / "processor_config.json").write_text(f'{{"image_processor": {text}}}')
        with pytest.raises(ModelError, match="not three usable numbers"):
            load_proposer(f"owlv2:{saved('owlv2')},segmenter={folder}")


def test_code_beside_the_weights_is_not_run(saved, spoiled) -> None:
    (spoiled / "evil.py").write_text(f"open({str(spoiled / 'ran')!r}, 'w')\nclass Net: pass\n")
    for name, hook in (("config.json", "AutoConfig"), ("preprocessor_config.json", "AutoImageProcessor")):
        content = json.loads((spoiled / name).read_text())
        (spoiled / name).write_text(json.dumps(content | {"auto_map": {hook: "evil.Net"}}))
    load_proposer(f"owlv2:{spoiled},segmenter={saved('sam2')}")
    assert not (spoiled / "ran").exists()


@pytest.mark.parametrize("package", ["torch", "transformers", "huggingface_hub", "scipy.ndimage"])
def test_a_missing_package_is_named_with_its_extra(saved, monkeypatch, package) -> None:
    import crypsis.models.foreign as foreign

    def without(name: str) -> Any:
        if name == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return __import__(name, fromlist=["x"])

    monkeypatch.setattr(foreign.importlib, "import_module", without)
    target = "" if package == "huggingface_hub" else str(saved("owlv2"))
    with pytest.raises(MissingDependencyError, match=r"pip install 'crypsis\[camouflage\]'"):
        hub_observer.OWLV2.from_specification(target, {"segmenter": str(saved("sam2"))}, None)


def test_what_is_not_on_this_machine_is_said_with_the_command_that_fetches_it(monkeypatch) -> None:
    def fails(*given: object, **options: object) -> str:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fails)
    with pytest.raises(MissingDependencyError) as caught:
        load_proposer("grounding-dino")
    assert "IDEA-Research/grounding-dino-base are not on this machine" in str(caught.value)
    assert "ConnectionError: no route)" in str(caught.value)
    assert "hf download IDEA-Research/grounding-dino-base --include '*.json'" in str(caught.value)
    assert "for grounding-dino:FOLDER" in str(caught.value)
    assert caught.value.exit_code == 4


def test_gated_weights_say_that_terms_are_to_be_accepted(saved, monkeypatch) -> None:
    class GatedRepoError(Exception): ...

    def fails(*given: object, **options: object) -> str:
        raise GatedRepoError("401 Client Error")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fails)
    with pytest.raises(MissingDependencyError, match="accept its terms on its page of the hub, log in") as caught:
        load_proposer(f"owlv2:{saved('owlv2')}")
    assert "facebook/sam2.1-hiera-large" in str(caught.value)


def test_the_cache_is_asked_first_and_what_it_lacks_is_fetched(saved, monkeypatch, tmp_path) -> None:
    asked: list[tuple[str, str | None, bool]] = []
    half = Path(shutil.copytree(saved("owlv2"), tmp_path / "half"))
    (half / "model.safetensors").unlink()

    def snapshot_download(
        model: str, *, revision: str | None, allow_patterns: list[str], local_files_only: bool = False
    ) -> str:
        assert not any(".py" in pattern or ".bin" in pattern or ".pt" in pattern for pattern in allow_patterns)
        asked.append((model, revision, local_files_only))
        if "sam" in model:
            return str(saved("sam2"))
        return str(half if local_files_only else saved("owlv2"))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    observer = load_proposer("owlv2,revision=v1,segmenter=facebook/sam2.1-hiera-tiny,segmenter_revision=abc")
    assert asked == [
        ("google/owlv2-large-patch14-ensemble", "v1", True),
        ("google/owlv2-large-patch14-ensemble", "v1", False),
        ("facebook/sam2.1-hiera-tiny", "abc", True),
    ]
    described = observer.describe()
    assert described["detector"] == "google/owlv2-large-patch14-ensemble"
    assert (described["detector_revision"], described["segmenter_revision"]) == ("owlv2", "sam2")


@pytest.mark.parametrize("kind", ["grounding-dino", "owlv2"])
def test_without_its_tokenizer_a_network_would_read_all_names_alike(saved, monkeypatch, tmp_path, kind) -> None:
    bare = Path(shutil.copytree(saved(kind), tmp_path / "bare"))
    for name in ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt"):
        (bare / name).unlink(missing_ok=True)
    with pytest.raises(ModelError, match=r"bare: has no tokenizer\.json, .*hf download OWNER/NAME"):
        load_proposer(f"{kind}:{bare},segmenter={saved('sam2')}")

    asked = []

    def snapshot_download(model: str, *, local_files_only: bool = False, **_: object) -> str:
        asked.append(local_files_only)
        return str(bare if local_files_only else saved(kind))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    load_proposer(f"{kind}:owner/name,segmenter={saved('sam2')}")  # a cache without it is not taken for whole
    assert asked == [True, False]


def test_words_that_are_not_in_the_vocabulary_are_not_looked_for(saved) -> None:
    source = load_proposer(f"grounding-dino:{saved('grounding-dino')},segmenter={saved('sam2')}")
    assert isinstance(source, ProposalSource)
    with pytest.raises(ModelError, match="'zzyzx' has no word that the detector knows"):
        source.propose(np.zeros((40, 56, 3), np.uint8), "zzyzx")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_is_refused(saved) -> None:
    with pytest.raises(MissingDependencyError, match="device=cuda needs a GPU"):
        load_proposer(spec_of(saved, "owlv2", device="cuda"))


def test_sam_2_as_the_hub_has_it_for_video_is_the_same_network(saved, tmp_path) -> None:
    image_network = transformers.Sam2Model.from_pretrained(saved("sam2"))
    image_settings = image_network.config
    with torch.random.fork_rng():
        torch.manual_seed(1)
        video = transformers.Sam2VideoModel(
            transformers.Sam2VideoConfig(
                vision_config=image_settings.vision_config.to_dict(),
                prompt_encoder_config=image_settings.prompt_encoder_config.to_dict(),
                mask_decoder_config=image_settings.mask_decoder_config.to_dict(),
                image_size=128, memory_attention_hidden_size=32, memory_attention_num_layers=1,
                memory_attention_feed_forward_hidden_size=32, memory_attention_rope_feat_sizes=[8, 8],
                memory_encoder_hidden_size=32, memory_encoder_output_channels=16, mask_downsampler_embed_dim=32,
                memory_fuser_embed_dim=32, memory_fuser_intermediate_dim=32, memory_fuser_num_layers=1,
            )
        )  # fmt: skip
    video.load_state_dict(image_network.state_dict(), strict=False)
    video.save_pretrained(tmp_path / "video")
    assert json.loads((tmp_path / "video" / "config.json").read_text())["model_type"] == "sam2_video"
    of_image, of_video = (
        load_proposer(f"owlv2:{saved('owlv2')},segmenter={folder},score=0").propose(noise(60, 90), "frog")
        for folder in (saved("sam2"), tmp_path / "video")
    )
    assert equal(of_image, of_video)


def test_observers_can_be_put_together_in_python(saved) -> None:
    class Everywhere:
        kind = "everywhere"

        def describe(self) -> dict[str, Any]:
            return {"detector": "everywhere"}

        def fit_name(self, category: str) -> str:
            return category

        def find(self, image: Image, category: str) -> Found:
            return Found(np.array([[0.0, 0.0, 1e9, 1e9]]), np.ones(1), np.ones(1))

    files = find_pretrained(str(saved("sam1")), types=("sam",), extra="camouflage", option="")
    observer = HubObserver(Everywhere(), BoxSegmenter("sam1", files, device="cpu"), name="everywhere")
    found = observer.propose(noise(60, 90), "frog")
    assert found.boxes is not None
    assert found.boxes.tolist() == [[0, 0, 90, 60]]
    with pytest.raises(CrypsisError):
        observer.propose(noise(60, 90)[..., 0], "frog")
