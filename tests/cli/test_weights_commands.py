"""`crypsis weights check` and `weights export`, and what `crypsis describe` says of models."""

from __future__ import annotations

import builtins
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import run
from crypsis.datasets.demo import demo_folder
from crypsis.io import read_image
from crypsis.models.compared import COMPARED
from crypsis.models.detector import DETECTORS
from crypsis.models.segmenter import MODELS, load_model

SMALL = "dgnet-s"
slow = pytest.mark.skipif("CRYPSIS_SLOW" not in os.environ, reason="takes long; CRYPSIS_SLOW=1 runs it")


@pytest.fixture(scope="module")
def torch() -> Any:
    found = pytest.importorskip("torch", reason="needs torch")
    found.set_num_threads(1)
    return found


@pytest.fixture(scope="module")
def checkpoint(torch: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that writes a random checkpoint of a kind, once; its maps differ from pixel to pixel."""
    from crypsis.models.compared import build_network

    folder = tmp_path_factory.mktemp("checkpoints")

    def write(kind: str) -> Path:
        path = folder / f"{kind}.pth"
        if not path.exists():
            network = build_network(kind)
            with torch.no_grad():
                for module in network.modules():
                    if isinstance(module, torch.nn.Conv2d):  # torch's own draw dies away from layer to layer
                        fan_in = module.weight[0].numel()
                        module.weight.normal_(0, fan_in**-0.5, generator=torch.Generator().manual_seed(fan_in))
            torch.save(network.state_dict(), path)
        return path

    return write


def test_a_checkpoint_that_fits(checkpoint: Callable[[str], Path]) -> None:
    path = checkpoint(SMALL)
    result = run("weights", "check", SMALL, path)
    assert result.exit_code == 0, result.output
    assert f"{path}: 625 weights with 7,084,764 numbers" in result.stdout
    assert "619 of the 619 weights that dgnet-s uses are there" in result.stdout
    assert "6 never used, so they do not matter:\n  context_encoder._bn1.bias\n" in result.stdout
    assert "no SHA-256 is known" in result.stdout
    assert result.stdout.endswith(f"It fits: --model {SMALL}:{path}\n")
    told = json.loads(run("weights", "check", SMALL, path, "--json").stdout)
    assert (told["fits"], told["tensors"], told["matching"], told["unknown"]) == (True, 625, 619, [])
    listed = run("weights", "check", SMALL, path, "--keys").stdout
    assert "ncd.conv5.weight  1×96×1×1\n" in listed
    assert "context_encoder._bn0.num_batches_tracked  1\n" in listed


def test_a_checkpoint_of_another_model(checkpoint: Callable[[str], Path]) -> None:
    path = checkpoint(SMALL)
    result = run("weights", "check", "sinet-v2", path)
    assert result.exit_code == 2
    assert "0 of the 878 weights that sinet-v2 uses are there" in result.stdout
    assert "878 missing:\n  resnet.conv1.0.weight\n" in result.stdout
    assert "\n  … and 858 more (--keys lists all)\n" in result.stdout
    assert result.stdout.endswith(f"It does not fit sinet-v2, but dgnet-s: --model dgnet-s:{path}\n")
    other = run("weights", "check", "dgnet", path)
    assert other.exit_code == 2
    assert "of another shape:\n  context_encoder._conv_stem.weight ([32, 3, 3, 3], needs [48, 3, 3, 3])" in other.stdout


def test_renamed_weights(torch: Any, checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    weights = torch.load(checkpoint(SMALL), weights_only=True)
    torch.save({key.replace("ncd.conv5", "ncd.last"): value for key, value in weights.items()}, tmp_path / "net.pth")
    result = run("weights", "check", SMALL, tmp_path / "net.pth")
    assert result.exit_code == 2
    assert "2 missing:\n  ncd.conv5.weight\n  ncd.conv5.bias\n2 not of this model:\n  ncd.last.bias\n" in result.stdout
    assert result.stdout.endswith("It does not fit dgnet-s.\n")


def test_the_published_file(checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses
    import hashlib

    digest = hashlib.sha256(checkpoint(SMALL).read_bytes()).hexdigest()
    for known, sentence in ((digest, "This is the file that"), ("0" * 64, "This is not the file that")):
        monkeypatch.setitem(COMPARED, SMALL, dataclasses.replace(COMPARED[SMALL], published_sha256=known))
        result = run("weights", "check", SMALL, checkpoint(SMALL))
        assert result.exit_code == 0
        assert f"{sentence} its authors publish (DGNet-S.pth)." in result.stdout


class Writer:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self) -> Any:
        return exec, ("open('written', 'w').close()",)


def test_files_that_are_no_checkpoint(
    torch: Any, checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cut.pth").write_bytes(checkpoint(SMALL).read_bytes()[:100_000])
    torch.save({"a": Writer()}, "code.pth")
    for file, message in (
        ("cut.pth", "cut off, damaged or something else"),
        ("code.pth", "besides tensors it asks for"),
        ("missing.pth", "There is no model file missing.pth"),
    ):
        result = run("weights", "check", SMALL, file)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
    assert not Path("written").exists()
    unknown = run("weights", "check", "dgnet-m", "cut.pth")
    assert unknown.exit_code == 2
    assert "did you mean 'dgnet-s'?" in unknown.stderr


@pytest.mark.parametrize("kind", [SMALL, "sinet-v2", pytest.param("pfnet", marks=slow)])
def test_an_export_says_the_same(kind: str, checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="needs onnx")
    out = tmp_path / "net.onnx"
    result = run("weights", "export", f"{kind}:{checkpoint(kind)}", out)
    assert result.exit_code == 0, result.output
    model, difference = result.stdout.splitlines()
    assert model.startswith(f"--model onnx:{out},activation=")
    assert difference.startswith("largest difference from the checkpoint's maps, on 2 demo images: ")
    assert float(difference.rpartition(" ")[2]) < 1e-3
    assert ("smaller than 416 pixels differ a little" in result.stderr) == (kind == "pfnet")
    image = read_image(demo_folder() / "images" / "demo-test-07-mantis.jpg")
    image = np.ascontiguousarray(np.tile(image, (2, 2, 1)))
    (one,) = load_model(f"{kind}:{checkpoint(kind)}").predict([image])  # type: ignore[union-attr]
    (two,) = load_model(model.removeprefix("--model ")).predict([image])  # type: ignore[union-attr]
    assert np.abs(one.probability - two.probability).max() < np.ptp(one.probability) / 100


def test_an_export_that_says_something_else_is_not_kept(
    checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnx", reason="needs onnx")
    monkeypatch.setattr("crypsis.models.compared_export.TOLERANCE", -1.0)
    result = run("weights", "export", f"{SMALL}:{checkpoint(SMALL)}", tmp_path / "net.onnx")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the export is not kept, as its maps differ" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("precision", [None, "fp32", "int8"])
def test_a_network_of_ones_own_is_exported(precision: str | None, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="needs onnx")
    from crypsis.models.robust_cod_lite import NetworkOptions, RobustCodLite, save_checkpoint

    path, out = tmp_path / "best.safetensors", tmp_path / "net.onnx"
    network = RobustCodLite(NetworkOptions(encoder="efficientnet-lite0"), seed=1)
    save_checkpoint(path, network, {"settings": {"size": 64}})
    options = [] if precision is None else ["--precision", precision]
    result = run("weights", "export", f"robust-cod-lite:{path}", out, *options)
    assert result.exit_code == 0, result.output
    model, difference = result.stdout.splitlines()
    assert model == f"--model robust-cod-lite:{out}"
    assert float(difference.rpartition(" ")[2]) < {"fp32": 1e-4, "int8": 0.1}.get(precision or "", 1e-2)
    assert load_model(model.removeprefix("--model ")).describe()["size"] == "64×64"
    refused = run("weights", "export", f"{SMALL}:x.pth", out, "--precision", "fp16")
    assert refused.exit_code == 2
    assert "--precision is for robust-cod-lite" in refused.stderr


@pytest.mark.parametrize(
    ("model", "out", "message"),
    [
        (
            "saliency",
            "net.onnx",
            "takes a model of robust-cod-lite, sinet-v2, pfnet, zoomnet, dgnet, dgnet-s; got saliency",
        ),
        (f"{SMALL}:missing.pth", "net.pth", "net.pth: an export ends in .onnx"),
        (f"{SMALL}:missing.pth", "net.onnx", "There is no model file missing.pth"),
        (
            "robust-cod-lite",
            "net.onnx",
            "exported from what crypsis train writes, robust-cod-lite:DIR/best.safetensors",
        ),
        (SMALL, "net.onnx", "dgnet-s needs the checkpoint of its authors, DGNet-S.pth"),
    ],
)
def test_exports_that_are_refused(model: str, out: str, message: str) -> None:
    result = run("weights", "export", model, out)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize("kind", COMPARED)
def test_describe_says_how_a_compared_model_is_run(kind: str, torch: Any) -> None:
    row = COMPARED[kind]
    result = run("describe", kind.upper())
    assert result.exit_code == 0, result.output
    for value in (row.paper, row.code, row.resize, row.order, row.map_resize, row.published_file, row.published_at,
                  row.license, row.saved, row.normalize, f"{row.parameters:,}"):  # fmt: skip
        assert value in result.stdout
    assert f"{row.multiply_adds / 1e9:.2f} billion" in result.stdout
    assert all(f"{side}×{side}" in result.stdout for side in row.sides)
    assert ("with minmax=yes as they do" in result.stdout) == row.authors_minmax


@pytest.mark.parametrize("kind", [kind for kind in {**MODELS, **DETECTORS} if kind not in COMPARED])
def test_describe_any_kind(kind: str) -> None:
    result = run("describe", kind)
    assert result.exit_code == 0, result.output
    for what, table in (("segmenter", MODELS), ("detector", DETECTORS)):
        assert (f"{kind}: a {what}\n" in result.stdout) == (kind in table)
    assert f"--model  {kind}" in result.stdout
    assert "`Load" not in result.stdout


def test_describe_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return real(name, *rest, **more)

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(builtins, "__import__", refuse)
    result = run("describe", "zoomnet")
    assert result.exit_code == 0, result.output
    assert "parameters   cannot be counted here: " in result.stdout
    assert "pip install 'crypsis[torch]'" in result.stdout
    assert "normalized   before resizing" in result.stdout
    told = run("describe", "robust-cod-lite")
    assert told.exit_code == 0, told.output
    assert "cannot be counted here" in told.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sinet", "There is no degradation or model 'sinet'; did you mean 'sinet-v2'?"),
        ("salience", "did you mean 'saliency'?"),
        ("rain", "without its family: use 'cod10k-c/rain'"),
        ("cod10k-c/rian", "did you mean 'rain'?"),
        ("quux", "There is no degradation 'quux'"),
    ],
)
def test_describe_suggests_the_nearest(name: str, message: str) -> None:
    result = run("describe", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
