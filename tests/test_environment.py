"""What is said of the machine, also of one where much is missing or broken."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import re
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import pytest

import crypsis
from crypsis import environment as module
from crypsis.environment import CORE, EXTRAS, WEIGHTS, describe_environment, environment_text
from crypsis.models.nanodet import WEIGHTS as NANODET
from crypsis.severity.lpips import WEIGHTS as LPIPS

ROOT = Path(__file__).parents[1]


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> types.ModuleType:
    """Put a module of some members in the place of a package."""
    found = types.ModuleType(name)
    found.__spec__ = importlib.machinery.ModuleSpec(name, None)
    vars(found).update(members)
    monkeypatch.setitem(sys.modules, name, found)
    return found


@pytest.fixture(autouse=True)
def _without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "torch")


def test_this_machine_is_described() -> None:
    found = describe_environment()
    assert found["problems"] == []
    assert (found["crypsis"], found["python"]) == (crypsis.__version__, platform.python_version())
    assert found["processors"] >= 1
    assert all(found["packages"].values())
    assert found["packages"]["numpy"] == importlib.metadata.version("numpy")
    assert set(found["weights"].values()) == {"ok"}
    assert found["temporary"]["writable"]
    assert found["temporary"]["free_bytes"] > 0
    assert "CPUExecutionProvider" in found["devices"]["onnxruntime"]
    assert (found["devices"]["cuda"], found["devices"]["mps"]) == (None, None)
    assert json.loads(json.dumps(found)) == found
    text = environment_text(found)
    assert f"numpy {found['packages']['numpy']}" in text
    assert text.endswith("No problem found.")


def test_a_missing_extra_has_its_command_and_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, *(name for modules in EXTRAS.values() for name in modules.values()))
    found = describe_environment()
    assert found["problems"] == []
    text = environment_text(found)
    for extra in EXTRAS:
        assert not any(found["extras"][extra]["packages"].values())
        assert found["extras"][extra]["install"] == f"pip install 'crypsis[{extra}]'"
        assert re.search(rf"^  {extra}: .*missing.* → pip install 'crypsis\[{extra}\]'$", text, re.MULTILINE)


def test_an_extra_that_is_there_has_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "pycocotools")
    state = describe_environment()["extras"]["pycocotools"]
    assert state["install"] is None
    assert state["packages"]["pycocotools"]


def test_a_part_of_an_extra_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "transformers")
    stand_in(monkeypatch, "safetensors")
    state = describe_environment()["extras"]["transformers"]
    assert state["packages"]["torch"] is None
    assert state["packages"]["safetensors"]
    assert state["install"] == "pip install 'crypsis[transformers]'"


@pytest.mark.parametrize(("package", "name"), CORE.items())
def test_a_missing_package_is_a_problem(monkeypatch: pytest.MonkeyPatch, package: str, name: str) -> None:
    hide(monkeypatch, name)
    found = describe_environment()
    assert found["packages"][package] is None
    assert found["problems"] == [f"{package}, which Crypsis needs, is missing: pip install {package}."]
    text = environment_text(found)
    assert f"  {package} MISSING\n" in text
    assert text.endswith(found["problems"][0])


def test_another_build_of_a_module_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = describe_environment()
    assert set(found["packages"].values()) == {"unknown"}
    assert found["problems"] == []


@pytest.mark.parametrize("names", [[], ["H200", "L4"]])
def test_devices_of_torch(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    cuda = types.SimpleNamespace(
        is_available=lambda: bool(names), device_count=lambda: len(names), get_device_name=lambda k: names[k]
    )
    mps = types.SimpleNamespace(is_available=lambda: not names)
    stand_in(monkeypatch, "torch", cuda=cuda, backends=types.SimpleNamespace(mps=mps))
    found = describe_environment()
    assert (found["devices"]["cuda"], found["devices"]["mps"]) == (names, not names)
    assert f"CUDA in torch: {', '.join(names) or 'none'}\n  MPS in torch: {'no' if names else 'yes'}" in (
        environment_text(found)
    )


def test_packages_that_are_broken_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "torch")
    stand_in(monkeypatch, "onnxruntime")
    found = describe_environment()
    assert found["devices"] == {"cuda": None, "mps": None, "onnxruntime": []}
    first, second = found["problems"]
    assert first.startswith("torch is installed and cannot be used; reinstall it (AttributeError: ")
    assert second.startswith("onnxruntime is installed and cannot be imported; reinstall it (AttributeError: ")
    assert environment_text(found).endswith(f"{first}\n{second}")


def test_weights_that_are_missing_or_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_DATA", tmp_path)
    (tmp_path / "nanodet").mkdir()
    (tmp_path / "nanodet/nanodet.onnx").write_bytes(b"x")
    found = describe_environment()
    assert found["weights"] == {name: "other" if name == "nanodet/nanodet.onnx" else "missing" for name in WEIGHTS}
    assert found["problems"][:2] == [
        f"{tmp_path / 'lpips/alexnet-v0.1.onnx'} is missing; reinstall Crypsis.",
        f"{tmp_path / 'nanodet/nanodet.onnx'} holds other bytes than were shipped; reinstall Crypsis.",
    ]


def test_digests_are_of_the_files_that_are_used() -> None:
    assert {LPIPS, NANODET} < {module._DATA / name for name in WEIGHTS}
    for name, digest in WEIGHTS.items():
        assert hashlib.sha256((module._DATA / name).read_bytes()).hexdigest() == digest


def test_a_temporary_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    found = describe_environment()
    assert found["temporary"] == {"folder": str(tmp_path / "nowhere"), "writable": False, "free_bytes": None}
    (problem,) = found["problems"]
    assert problem.startswith(f"The temporary folder {tmp_path / 'nowhere'} cannot be written; name another by TMPDIR")
    assert "NOT writable, unknown free" in environment_text(found)


def test_no_temporary_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("none")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    found = describe_environment()
    assert found["temporary"]["folder"] is None
    assert found["problems"] == ["No temporary folder can be written; name one by TMPDIR (FileNotFoundError: none)."]
    assert environment_text(found)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")
def test_packages_and_extras_are_those_of_the_project() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[<>=!~ \[]", text)[0] for text in requirements}

    assert names(project["dependencies"]) == set(CORE)
    extras = {name: names(texts) for name, texts in project["optional-dependencies"].items()}
    assert {name: found for name, found in extras.items() if name not in ("test", "dev")} == {
        name: set(packages) for name, packages in EXTRAS.items()
    }
