"""Write tests/data/compared_reference.json and keys_*.json: what the official code of the compared models says.

    pip install torch numpy opencv-python-headless scipy
    python scripts/make_compared_reference.py FOLDER

FOLDER holds checkouts of GewelsJI/SINet-V2, Mhaiyang/CVPR2021_PFNet, lartpang/ZoomNet and GewelsJI/DGNet. None can be
imported as published: what asks for files or packages that inference does not need is replaced here. ZoomNet's
encoder, timm's ResNet-50, is replaced by the one of Crypsis, which has its names.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import torch

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY / "src"), str(REPOSITORY / "tests" / "models")]

from compared_reference import DATA, filled, normal_images  # noqa: E402

from crypsis.models.backbones import ResNet50  # noqa: E402

FOLDER = Path(sys.argv[1])
COMMITS = {"SINet-V2": "5b9844c", "CVPR2021_PFNet": "2c4cab0", "ZoomNet": "9c65e6c", "DGNet": "1ecc47a"}
RULE = (
    "Per state_dict key, r = numpy.random.RandomState(zlib.crc32(key.encode())): *.num_batches_tracked 0; "
    "*.running_mean 0.1*r.standard_normal; *.running_var r.uniform(0.5, 1.5); two and more dimensions "
    "r.standard_normal*sqrt(1/fan_in), fan_in = prod(shape[1:]); last part of the name gamma, alpha or beta "
    "r.uniform(0.4, 0.6); key ending in bn3.weight r.uniform(0.1, 0.3); any other *.weight r.uniform(0.8, 1.2); all "
    "else 0.05*r.standard_normal. Inputs: RandomState(0).standard_normal((1, 3, side, side)), each from its own."
)


@contextlib.contextmanager
def checkout(place: str, **replaced: Any) -> Iterator[None]:
    """Let modules be imported from a checkout, with some replaced, and forget them afterwards."""
    before, stubs = set(sys.modules), {}
    for name, attributes in replaced.items():
        stubs[name.replace("__", ".")] = stub = ModuleType(name)
        vars(stub).update(attributes)
    sys.path.insert(0, str(FOLDER / place))
    with mock.patch.dict(sys.modules, stubs):
        yield
        for name in set(sys.modules) - before:
            if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")) or "." not in name:
                del sys.modules[name]
    sys.path.remove(str(FOLDER / place))


def sinet_v2() -> torch.nn.Module:
    with checkout("SINet-V2"):
        from lib.Network_Res2Net_GRA_NCD import Network

        return Network(imagenet_pretrained=False)


def pfnet() -> torch.nn.Module:
    with checkout("CVPR2021_PFNet"), mock.patch("torch.load"), mock.patch("torch.nn.Module.load_state_dict"):
        from PFNet import PFNet

        return PFNet()


def zoomnet() -> torch.nn.Module:
    registry = mock.Mock(register=lambda *_, **__: lambda network: network)
    with checkout(
        "ZoomNet",
        timm={"create_model": lambda **_: ResNet50()},
        timm__models={},
        timm__models__layers={"to_2tuple": lambda side: (side, side)},
        methods={"__path__": [str(FOLDER / "ZoomNet" / "methods")]},
        utils__builder={"MODELS": registry},
    ):
        from methods.zoomnet.zoomnet import ZoomNet

        return ZoomNet()


def dgnet(**options: Any) -> torch.nn.Module:
    with checkout("DGNet/lib_pytorch", lib__PVTv2={f"pvt_v2_b{size}": None for size in range(5)}):
        import lib.EfficientNet
        from lib.DGNet import DGNet

        with mock.patch.object(lib.EfficientNet, "load_pretrained_weights"):
            return DGNet(M=[8, 8, 8], **options)


NETWORKS = {
    "sinet-v2": ("SINet-V2", sinet_v2),
    "pfnet": ("CVPR2021_PFNet", pfnet),
    "zoomnet": ("ZoomNet", zoomnet),
    "dgnet": ("DGNet", lambda: dgnet(channel=64, arc="EfficientNet-B4", N=[4, 8, 16])),
    "dgnet-s": ("DGNet", lambda: dgnet(channel=32, arc="EfficientNet-B1", N=[8, 16, 32])),
}


def run(kind: str, network: torch.nn.Module) -> dict[str, Any]:
    network = network.double().eval()
    network.load_state_dict(filled(network.state_dict()))
    sides = {"image1.5": 192, "image1.0": 128, "image0.5": 64} if kind == "zoomnet" else {"image": 128}
    images = {name: normal_images(side) for name, side in sides.items()}
    with torch.inference_mode():
        returned = network(images if kind == "zoomnet" else images["image"])
    outputs = [returned] if isinstance(returned, torch.Tensor) else returned
    return {"input_sizes": sides, "outputs": [summary(output.numpy()) for output in outputs]}


def summary(output: np.ndarray) -> dict[str, Any]:
    values = output.ravel()
    places = np.linspace(0, values.size - 1, 16).astype(int)
    statistics = {name: float(getattr(values, name)()) for name in ("mean", "std", "min", "max")}
    return {"shape": list(output.shape), **statistics, "idx": places.tolist(), "val": values[places].tolist()}


def write(name: str, content: dict[str, Any]) -> None:
    (DATA / name).write_text(json.dumps(content, separators=(",", ":")) + "\n")


def main() -> None:
    torch.set_num_threads(1)
    models = {}
    for kind, (place, build) in NETWORKS.items():
        network = build()
        print(kind, len(network.state_dict()), sum(parameter.numel() for parameter in network.parameters()))
        origin = f"the network of {place}@{COMMITS[place]}: names and shapes; *.num_batches_tracked int64, else float32"
        keys = {key: list(value.shape) for key, value in network.state_dict().items()}
        parameters = sum(parameter.numel() for parameter in network.parameters())
        write(f"keys_{kind}.json", {"origin": origin, "parameters": parameters, "keys": keys})
        models[kind] = run(kind, network)
    origin = "outputs of " + ", ".join(f"{place}@{commit}" for place, commit in COMMITS.items())
    origin += f", in eval mode, float64, torch {torch.__version__}, by scripts/make_compared_reference.py; val is what "
    origin += "the flattened output has at idx"
    write("compared_reference.json", {"origin": origin, "rule": RULE, "models": models})


if __name__ == "__main__":
    main()
