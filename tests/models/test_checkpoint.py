from __future__ import annotations

import io
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from crypsis.errors import ModelError  # noqa: E402
from crypsis.models.checkpoint import compare_weights, load_weights, read_weights  # noqa: E402


def small(seed: int = 0) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 2))


def equal(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(value, right[key]) for key, value in left.items())


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_weights_are_read_from_both_formats(zipped: bool, prefix: str, tmp_path: Path) -> None:
    state, path = small().state_dict(), tmp_path / "net.pth"
    named = {prefix + key: value for key, value in state.items()}
    torch.save(named, path, _use_new_zipfile_serialization=zipped)
    assert equal(read_weights(path), dict(state))
    assert equal(read_weights(Path("elsewhere.whl"), io.BytesIO(path.read_bytes())), dict(state))


def test_a_prefix_of_only_some_names_stays(tmp_path: Path) -> None:
    torch.save({"module.a": torch.zeros(1), "b": torch.zeros(1)}, tmp_path / "net.pth")
    assert set(read_weights(tmp_path / "net.pth")) == {"module.a", "b"}


class Hostile:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


def save_hostile(path: Path, trace: Path, how: str) -> None:
    if how == "plain":
        path.write_bytes(pickle.dumps({"weight": Hostile(trace)}))
    else:
        torch.save({"weight": Hostile(trace)}, path, _use_new_zipfile_serialization=how == "zip")


@pytest.mark.parametrize("how", ["zip", "legacy", "plain"])
def test_code_in_a_file_is_not_run(how: str, tmp_path: Path) -> None:
    path, trace = tmp_path / "net.pth", tmp_path / "trace"
    save_hostile(path, trace, how)
    with pytest.raises(ModelError, match=r"not a readable file of weights; .*nothing of it was run") as caught:
        read_weights(path)
    assert "\n" not in str(caught.value)
    assert "weights_only" not in str(caught.value)
    assert not trace.exists()
    if how != "plain":  # else the file would have proved nothing
        torch.load(path, weights_only=False)
        assert trace.exists()
        assert re.search(r"it asks for \w+\.mkdir,", str(caught.value))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.95])
def test_a_truncated_file_is_refused(zipped: bool, kept: float, tmp_path: Path) -> None:
    path = tmp_path / "net.pth"
    torch.save(small().state_dict(), path, _use_new_zipfile_serialization=zipped)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(ModelError, match="cut off, damaged or something else"):
        read_weights(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html><html>a page of warning</html>", "not a readable file of weights"),
        ([torch.zeros(1)], "holds list, not the weights of a network by name"),
        ({}, "holds nothing of the weights"),
        ({"epoch": 3, "state_dict": {"weight": torch.zeros(1)}}, r"holds epoch, state_dict besides the weights"),
        ({3: torch.zeros(1)}, "holds 3 besides the weights"),
        (small(), r"it asks for torch\.nn\.modules"),
    ],
)
def test_anything_but_weights_by_name_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "net.pth"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with pytest.raises(ModelError, match=message):
        read_weights(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no file of weights .*net\.pth \(looked in"):
        read_weights(tmp_path / "net.pth")
    with pytest.raises(ModelError, match="cannot be read"):
        read_weights(tmp_path)


def test_weights_are_loaded() -> None:
    network, other = small(0), small(1)
    assert not equal(network.state_dict(), other.state_dict())
    load_weights(network, other.state_dict(), "net.pth")
    assert equal(network.state_dict(), other.state_dict())


def change(weights: dict[str, Any], how: str) -> dict[str, Any]:
    if how == "missing":
        return {key: value for key, value in weights.items() if key != "0.bias"}
    if how == "unknown":
        return {**weights, "3.weight": torch.zeros(2)}
    if how == "reshaped":
        return {**weights, "0.bias": torch.zeros(5)}
    return {key.replace("0.", "first."): value for key, value in weights.items()}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("missing", r"^net\.pth: the weights are of another network; 1 missing: 0\.bias\.$"),
        ("unknown", r"; 1 unknown: 3\.weight\.$"),
        ("reshaped", r"; 1 of another shape: 0\.bias \(\[5\], needs \[4\]\)\.$"),
        ("renamed", r"; 2 missing: 0\.weight, 0\.bias; 2 unknown: first\.bias, first\.weight\.$"),
    ],
)
def test_weights_that_do_not_fit_are_refused_with_the_list(how: str, message: str) -> None:
    network = small()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    with pytest.raises(ModelError, match=message):
        load_weights(network, change(dict(small(1).state_dict()), how), "net.pth")
    assert equal(network.state_dict(), before)


def test_long_lists_are_cut() -> None:
    fit = compare_weights(small(), {f"{index:02d}": torch.zeros(1) for index in range(20)})
    assert re.search(r"20 unknown: 00, 01, .*07 and 12 more$", fit.differences())
    assert "19" in fit.differences(None)
    assert "more" not in fit.differences(None)


@pytest.mark.parametrize("given", [None, (2, 4), (7, 4)])
def test_weights_that_are_never_used_do_not_matter(given: tuple[int, int] | None) -> None:
    network, weights = small(0), dict(small(1).state_dict())
    own = network.state_dict()["2.weight"].clone()
    del weights["2.bias"], weights["2.weight"]
    if given:
        weights["2.weight"] = torch.ones(given)
    weights["2.extra"] = torch.zeros(1)
    fit = compare_weights(network, weights, ["2."])
    assert fit.matching == 7
    assert not fit.differences()
    assert set(fit.unused) == {"2.bias", "2.weight", "2.extra"}
    load_weights(network, weights, "net.pth", unused=["2."])
    state = network.state_dict()
    assert torch.equal(state["0.weight"], weights["0.weight"])
    assert torch.equal(state["2.weight"], own)


def test_tensors_of_another_layout_are_refused() -> None:
    weights = dict(small(1).state_dict())
    weights["2.weight"] = torch.empty((2, 4), device="meta")
    with pytest.raises(ModelError, match=r"^net\.pth: the weights cannot be taken over"):
        load_weights(small(), weights, "net.pth")
