"""What of this machine matters to Crypsis: Python, packages, devices, weights; and what to install."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from . import __version__

__all__ = ["CORE", "EXTRAS", "WEIGHTS", "describe_environment", "environment_text"]

T = TypeVar("T")

CORE = {
    "numpy": "numpy",
    "opencv-python-headless": "cv2",
    "pillow": "PIL",
    "pyarrow": "pyarrow",
    "onnxruntime": "onnxruntime",
    "hotcoco": "hotcoco",
    "rich": "rich",
    "typer": "typer",
}
"""Packages that Crypsis needs, and the module of each."""

EXTRAS = {
    "ray": {"ray": "ray"},
    "torch": {"torch": "torch", "safetensors": "safetensors", "onnx": "onnx"},
    "transformers": {"transformers": "transformers", "torch": "torch", "safetensors": "safetensors"},
    "camouflage": {
        "transformers": "transformers", "torch": "torch", "safetensors": "safetensors", "scipy": "scipy",
    },
    "sam3": {
        "transformers": "transformers", "torch": "torch", "torchvision": "torchvision", "safetensors": "safetensors",
    },
    "torchvision": {"torchvision": "torchvision", "safetensors": "safetensors"},
    "ultralytics": {"ultralytics": "ultralytics"},
    "pycocotools": {"pycocotools": "pycocotools"},
}  # fmt: skip
"""Extra of Crypsis → packages that it brings, and the module of each."""

WEIGHTS = {
    "lpips/alexnet-v0.1.onnx": "65020df6238cb137a53ec66e35ced2fa4462433b4f11014ee5c5555717968336",
    "nanodet/nanodet.onnx": "f359ac9007f7a315b34d805a440e14820a8e9916b23aafe10f4301924323627e",
    "robust_cod_lite/robust_cod_lite.onnx": "0b9efecd491dc367c737eb26f0cc088a0cd2ab7f6286cb49cf6e5d4f722a4724",
    "robust_cod_lite/robust_cod_lite_no_augmentation.onnx": (
        "cb04c2ab84a422f702078215cb6397ac768c9cd22fcdddef1bee5669e2c7b637"
    ),
}
"""Networks that come with Crypsis, below its folder `data`, and their SHA-256 (hex)."""

_DATA = Path(__file__).parent / "data"


def describe_environment() -> dict[str, Any]:
    """Look at packages, devices, weights and the temporary folder; nothing that goes wrong is raised.

    torch, which takes a second or more to import, is imported where it is installed, to ask it for devices.

    Returns:
        JSON values: `crypsis`, `python`, `platform`, `processors`; `packages` (needed ones: version, `unknown`, or
        None if missing); `extras`, each with `packages`, and `install`, the command that brings what is missing, or
        None; `devices`, with `cuda` (names of GPUs) and `mps`, None without torch, and `onnxruntime` (its providers);
        `weights` (`ok`, `missing`, or `other` bytes than were shipped); `temporary` (folder, whether it is
        `writable`, and `free_bytes`); and `problems`, a sentence each of what keeps Crypsis from working.
    """
    problems: list[str] = []
    packages = {package: _version(package, module) for package, module in CORE.items()}
    for package, known in packages.items():
        if known is None:
            problems.append(f"{package}, which Crypsis needs, is missing: pip install {package}.")
    found = {
        "crypsis": __version__,
        "python": platform.python_version(),
        "platform": _try(platform.platform, "unknown", problems),
        "processors": _try(_processors, None, problems),
        "packages": packages,
        "extras": {extra: _extra(extra, modules) for extra, modules in EXTRAS.items()},
        "devices": _devices(problems),
        "weights": {name: _weights(name, digest, problems) for name, digest in WEIGHTS.items()},
        "temporary": _temporary(problems),
    }
    return {**found, "problems": problems}


def _try(ask: Callable[[], T], otherwise: T, problems: list[str], what: str = "") -> T:
    """Return what `ask` says; `otherwise`, and a sentence about `what`, where it fails."""
    try:
        return ask()
    except Exception as error:  # a broken package may raise anything when it is imported
        if what:
            problems.append(f"{what} ({type(error).__name__}: {' '.join(str(error).split())[:200]}).")
        return otherwise


def _processors() -> int | None:
    """Return the number that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _version(package: str, module: str) -> str | None:
    if _try(lambda: importlib.util.find_spec(module), None, []) is None:
        return None
    # another build of the same module, such as opencv-python, goes by another name
    return _try(lambda: importlib.metadata.version(package), "unknown", [])


def _extra(extra: str, modules: Mapping[str, str]) -> dict[str, Any]:
    packages = {package: _version(package, module) for package, module in modules.items()}
    install = None if all(packages.values()) else f"pip install 'crypsis[{extra}]'"
    return {"packages": packages, "install": install}


def _devices(problems: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"cuda": None, "mps": None, "onnxruntime": []}
    if _version("torch", "torch"):
        found |= _try(_torch_devices, dict[str, Any](), problems, "torch is installed and cannot be used; reinstall it")
    if _version("onnxruntime", "onnxruntime"):
        broken = "onnxruntime is installed and cannot be imported; reinstall it"
        found |= _try(_runtime_devices, dict[str, Any](), problems, broken)
    return found


def _runtime_devices() -> dict[str, Any]:
    return {"onnxruntime": list(importlib.import_module("onnxruntime").get_available_providers())}


def _torch_devices() -> dict[str, Any]:
    torch: Any = importlib.import_module("torch")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    names = [str(torch.cuda.get_device_name(index)) for index in range(count)]
    return {"cuda": names, "mps": bool(torch.backends.mps.is_available())}


def _weights(name: str, digest: str, problems: list[str]) -> str:
    path = _DATA / name
    data = _try(path.read_bytes, None, [])
    state = "missing" if data is None else "ok" if hashlib.sha256(data).hexdigest() == digest else "other"
    if state != "ok":
        fault = "is missing" if data is None else "holds other bytes than were shipped"
        problems.append(f"{path} {fault}; reinstall Crypsis.")
    return state


def _temporary(problems: list[str]) -> dict[str, Any]:
    def write() -> bool:
        with tempfile.TemporaryFile() as file:
            return file.write(b"crypsis") > 0

    folder = _try(tempfile.gettempdir, None, problems, "No temporary folder can be written; name one by TMPDIR")
    if folder is None:
        return {"folder": None, "writable": False, "free_bytes": None}
    writable = _try(write, False, problems, f"The temporary folder {folder} cannot be written; name another by TMPDIR")
    free = _try(lambda: shutil.disk_usage(folder).free, None, problems)
    return {"folder": folder, "writable": writable, "free_bytes": free}


def environment_text(found: Mapping[str, Any]) -> str:
    """Return what `describe_environment` found as lines to print."""
    devices, temporary = found["devices"], found["temporary"]
    lines = [f"crypsis {found['crypsis']}, Python {found['python']}, {found['platform']}, "
             f"{found['processors']} processors"]  # fmt: skip
    lines += ["", "Packages", *(f"  {name} {known or 'MISSING'}" for name, known in found["packages"].items())]
    lines += ["", "Extras"]
    for extra, state in found["extras"].items():
        known = ", ".join(f"{name} {known or 'missing'}" for name, known in state["packages"].items())
        lines.append(f"  {extra}: {known}{'' if state['install'] is None else '   → ' + state['install']}")
    cuda = "unknown without torch" if devices["cuda"] is None else ", ".join(devices["cuda"]) or "none"
    mps = "unknown without torch" if devices["mps"] is None else "yes" if devices["mps"] else "no"
    lines += ["", "Devices", f"  CUDA in torch: {cuda}", f"  MPS in torch: {mps}"]
    lines.append(f"  onnxruntime: {', '.join(devices['onnxruntime']) or 'none'}")
    lines += ["", "Weights", *(f"  {name}: {state}" for name, state in found["weights"].items())]
    free = "unknown" if temporary["free_bytes"] is None else f"{temporary['free_bytes'] / 1e9:.1f} GB"
    lines += ["", f"Temporary folder {temporary['folder']}: {'writable' if temporary['writable'] else 'NOT writable'}, "
              f"{free} free"]  # fmt: skip
    lines += ["", *(found["problems"] or ["No problem found."])]
    return "\n".join(lines)
