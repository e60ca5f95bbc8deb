"""`sinet-v2:PATH`, `pfnet:PATH`, `zoomnet:PATH`, `dgnet:PATH`, `dgnet-s:PATH`: the models that papers compare with.

They are networks of others, with the weights that their authors publish, run as the authors' own test code runs them;
`COMPARED` says of each how that is. Two things the authors do are left out by default, as they belong to saving maps
and not to the model: stretching every map to [0, 1] (`minmax=yes` does it), which invents an object where a network
sees none, and 8 bits.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image
from numpy.typing import NDArray

from ..errors import ModelError, UnknownNameError
from ..types import Image, Prediction, ProbabilityMap, check_image
from .activations import minmax, sigmoid
from .foreign import import_extra, on_device, one_thread, sha256_of, told
from .onnx_session import ImageInput, in_batches, times
from .options import Reader, one_of, positive_integer, read_options, yes_or_no
from .resizing import resize_image, resize_map
from .robust_cod_lite_segmenter import MEAN, STD
from .segmenter import Description

__all__ = [
    "COMPARED",
    "DGNET",
    "DGNET_S",
    "PFNET",
    "SINET_V2",
    "ZOOMNET",
    "Compared",
    "ComparedModel",
    "build_network",
    "check_checkpoint",
    "count_operations",
]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A network and how its authors run it.

    Attributes:
        kind: what a user calls it.
        network: module in this package and class.
        paper: where it is described.
        code: the authors' repository, at the commit that was read.
        published_file: what the authors call the checkpoint.
        published_at: where they publish it.
        published_sha256: of that file, if known.
        license: terms of code and checkpoint.
        parameters: of the network, with those it never uses.
        multiply_adds: of its convolutions and matrix products for one image.
        unused: what names of weights begin with that are published, but never used.
        sides: of the square images it is fed, in pixels; for several, in the order of its inputs.
        resize: kernel that brings an image to them; see `resizing.KERNELS`.
        normalize: `after resizing`, of 8-bit pixels, or `before resizing`.
        output: which of the network's outputs is the map, from 0.
        activation: what makes probabilities of it; `none` where the network itself has done so.
        order: `resize-then-activate` or `activate-then-resize`.
        map_resize: kernel that brings the map to the size of the image.
        authors_minmax: whether the authors stretch every map to [0, 1] before they save it.
        saved: how they save it.
    """

    kind: str
    network: str
    paper: str
    code: str
    published_file: str
    published_at: str
    published_sha256: str | None = None
    license: str
    parameters: int
    multiply_adds: int
    unused: tuple[str, ...] = ()
    sides: tuple[int, ...]
    resize: str = "bilinear-antialias"
    normalize: str = "after resizing"
    output: int = 0
    activation: str = "sigmoid"
    order: str = "resize-then-activate"
    map_resize: str = "bilinear"
    authors_minmax: bool = False
    saved: str

    def to_dict(self) -> Description:
        """Return plain JSON values: what there is to know without a checkpoint."""
        values = dataclasses.asdict(self)
        del values["kind"], values["network"]
        return {
            **values,
            "sides": "/".join(map(str, self.sides)),
            "unused": ", ".join(f"{start}*" for start in self.unused),
            "mean": "/".join(map(repr, MEAN)),
            "std": "/".join(map(repr, STD)),
        }

    def conventions(self) -> Description:
        """Return `to_dict` without what a map does not depend on: where it is published, and on what terms."""
        return {key: value for key, value in self.to_dict().items() if key not in _ABOUT}

    def from_specification(self, target: str, options: Mapping[str, str], name: str | None) -> ComparedModel:
        """Load `KIND:PATH[,option=value…]`."""
        given = read_options(self.kind, options, _READERS)
        if not target:
            raise ModelError(
                f"{self.kind} needs the checkpoint of its authors, {self.published_file}; fetch it "
                f"({self.published_at}) and write {self.kind}:PATH."
            )
        return ComparedModel(self.kind, Path(target), **given, name=name)


_ABOUT = {"paper", "code", "published_file", "published_at", "published_sha256", "license", "saved"}
_TERMS = "; trained on COD10K, for non-commercial use with all that is derived from it, and CAMO, without clear terms"
_STRETCHED = "min-max again and rounded to 8 bits (scipy.misc.imsave)"

SINET_V2 = Compared(
    kind="sinet-v2",
    network="sinet_v2:SINetV2",
    paper="Fan, Ji, Cheng, Shao, Concealed object detection, TPAMI 2022",
    code="github.com/GewelsJI/SINet-V2, 5b9844c",
    published_file="Net_epoch_best.pth",
    published_at="https://drive.google.com/file/d/1D3RKQ8Nzd0ArV_c47StVKEuaoYTwnclR, from README.md of the repository",
    license="Apache-2.0 by its LICENSE, research and education only by its README" + _TERMS,
    parameters=26_975_642,
    multiply_adds=12_168_580_864,
    unused=("resnet.fc.",),
    sides=(352,),
    output=3,
    authors_minmax=True,
    saved=_STRETCHED,
)
PFNET = Compared(
    kind="pfnet",
    network="pfnet:PFNet",
    paper="Mei et al., Camouflaged object segmentation with distraction mining, CVPR 2021",
    code="github.com/Mhaiyang/CVPR2021_PFNet, 2c4cab0",
    published_file="PFNet.pth",
    published_at="https://mhaiyang.github.io/CVPR2021_PFNet/index.html",
    license="BSD-3-Clause in its wording" + _TERMS,
    parameters=46_497_804,
    multiply_adds=26_481_472_576,
    sides=(416,),
    output=3,
    activation="none",
    order="activate-then-resize",
    map_resize="bilinear-antialias",
    saved="truncated to 8 bits before it is resized",
)
ZOOMNET = Compared(
    kind="zoomnet",
    network="zoomnet:ZoomNet",
    paper="Pang et al., Zoom in and out: a mixed-scale triplet network for camouflaged object detection, CVPR 2022",
    code="github.com/lartpang/ZoomNet, 9c65e6c",
    published_file="cod_zoomnet_r50_bs8_e40_2022-03-04.pth",
    published_at="https://github.com/lartpang/ZoomNet/releases/tag/v0.0.1",
    license="MIT" + _TERMS,
    parameters=32_381_520,
    multiply_adds=101_277_207_552,
    sides=(576, 384, 192),
    resize="bilinear",
    normalize="before resizing",
    order="activate-then-resize",
    saved="truncated to 8 bits",
)
DGNET = Compared(
    kind="dgnet",
    network="dgnet:DGNet",
    paper="Ji et al., Deep gradient learning for efficient camouflaged object detection, MIR 2023",
    code="github.com/GewelsJI/DGNet, 1ecc47a",
    published_file="DGNet.pth",
    published_at="https://drive.google.com/file/d/1ynUqt6DIHWQv7dT0vIbSOANtZsVvFdHs, from lib_pytorch/README.md of the "
    "repository",
    license="MIT, its EfficientNet Apache-2.0" + _TERMS,
    parameters=19_223_467,
    multiply_adds=6_278_793_056,
    unused=("context_encoder._conv_head.", "context_encoder._bn1.", "context_encoder._fc."),
    sides=(352,),
    authors_minmax=True,
    saved=_STRETCHED,
)
DGNET_S = dataclasses.replace(
    DGNET,
    kind="dgnet-s",
    network="dgnet:DGNetS",
    published_file="DGNet-S.pth",
    parameters=7_021_027,
    multiply_adds=2_493_766_560,
)

COMPARED = {row.kind: row for row in (SINET_V2, PFNET, ZOOMNET, DGNET, DGNET_S)}
"""Kind of model → how it is run."""

_READERS: dict[str, Reader] = {"batch": positive_integer, "device": one_of("cpu", "cuda"), "minmax": yes_or_no}


def _compared(kind: str) -> Compared:
    if kind not in COMPARED:
        raise UnknownNameError.among("compared model", kind, COMPARED)
    return COMPARED[kind]


def build_network(kind: str, *, seed: int = 0, device: str = "cpu") -> Any:
    """Return a network with random weights; the global random state stays as it is.

    Args:
        kind: one of `COMPARED`.
        seed: of the weights.
        device: any of torch's; `meta` for one that has shapes and no weights.

    Raises:
        UnknownNameError: no such kind.
        MissingDependencyError: torch is not installed.
    """
    module, _, attribute = _compared(kind).network.partition(":")
    torch = import_extra("torch", "torch")
    network = getattr(importlib.import_module(f".{module}", __package__), attribute)
    with torch.random.fork_rng(devices=[]), torch.device(device):
        torch.random.default_generator.manual_seed(seed)  # torch.manual_seed would change that of a GPU, too
        return network()


def count_operations(kind: str) -> tuple[int, int]:
    """Return how many parameters a network has, and its multiply-adds for one image; nothing is computed.

    Raises:
        UnknownNameError, MissingDependencyError: see `build_network`.
    """
    network = build_network(kind, device="meta").eval()
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(*(torch.zeros(1, 3, side, side, device="meta") for side in COMPARED[kind].sides))
    return sum(parameter.numel() for parameter in network.parameters()), int(counter.get_total_flops()) // 2


def check_checkpoint(kind: str, path: Path) -> dict[str, Any]:
    """Say whether the weights in a file are those of a network; nothing in it is run.

    Returns:
        JSON values: `fits`; `matching`, a count; `missing`, `unknown`, `reshaped` and `unused`, lists of names as in
        `checkpoint.Fit`; `shapes`, name → shape of all weights in the file; `numbers`, how many these hold; `sha256`;
        `published`, whether that is the published file's, None while this is not known; and `network`, the kind whose
        weights they are, or None.

    Raises:
        ModelError: the file cannot be read.
        UnknownNameError, MissingDependencyError: see `build_network`.
    """
    recipe, digest = _compared(kind), sha256_of([path])
    import_extra("torch", "torch")
    from .checkpoint import compare_weights, read_weights

    weights = read_weights(path)
    fit = compare_weights(build_network(kind, device="meta"), weights, recipe.unused)
    return {
        "fits": not fit.differences(),
        "matching": fit.matching,
        **{name: list(getattr(fit, name)) for name in ("missing", "unknown", "reshaped", "unused")},
        "shapes": {key: list(value.shape) for key, value in weights.items()},
        "numbers": sum(value.numel() for value in weights.values()),
        "sha256": digest,
        "published": None if recipe.published_sha256 is None else digest == recipe.published_sha256,
        "network": _recognize(weights),
    }


def _recognize(weights: Mapping[str, Any]) -> str | None:
    """Return the kind of network that has such weights."""
    from .checkpoint import compare_weights

    for kind, recipe in COMPARED.items():
        if not compare_weights(build_network(kind, device="meta"), weights, recipe.unused).differences():
            return kind
    return None


class ComparedModel:
    """One of the compared models as a segmenter; on the CPU it runs on one thread.

    Attributes:
        name: its label.
        recipe: how it is run.
        network: the network, of torch, with its weights.
    """

    def __init__(
        self,
        kind: str,
        path: Path,
        *,
        minmax: bool = False,
        batch: int = 1,
        device: str = "cpu",
        name: str | None = None,
    ) -> None:
        """Load a checkpoint.

        Args:
            kind: one of `COMPARED`.
            path: the checkpoint.
            minmax: stretch each map to [0, 1]; see `activations.minmax`.
            batch: images in one call.
            device: `cpu` or `cuda`.
            name: label; the kind if None.

        Raises:
            UnknownNameError: no such kind.
            ModelError: the file is missing, unreadable, or of another network.
            MissingDependencyError: torch is not installed, or there is no GPU.
        """
        self.recipe = _compared(kind)
        self.name = name or kind
        self._kind, self._file, self._minmax, self._device = kind, path.name, minmax, device
        self._sha256 = sha256_of([path])
        self._torch = import_extra("torch", "torch")
        from .checkpoint import load_weights, read_weights

        weights, network = read_weights(path), build_network(kind)
        try:
            load_weights(network, weights, str(path), unused=self.recipe.unused)
        except ModelError:
            if found := _recognize(weights):
                raise ModelError(
                    f"{path}: holds the weights of {found}, not of {kind}; write {found}:{path}."
                ) from None
            raise
        self.network = on_device(network, device)
        self._input = ImageInput("image", np.float32, "nchw", (self.recipe.sides[0],) * 2, batch, False)

    def describe(self) -> Description:
        """Return the file and its hash, all conventions, and the versions of what runs it."""
        return {
            "adapter": self._kind,
            "file": self._file,
            "sha256": self._sha256,
            **self.recipe.conventions(),
            "minmax": self._minmax,
            "batch": self._input.batch,
            "device": self._device,
            "torch": str(self._torch.__version__),
            "opencv": cv2.__version__,
            "pillow": PIL.__version__,
        }

    def predict(self, images: Sequence[Image]) -> list[Prediction]:
        """Return one prediction per image; see `Segmenter.predict`."""
        size = (self.recipe.sides[0],) * 2
        return in_batches([check_image(image) for image in images], lambda _: size, self._input.batch, self._predict)

    def _predict(self, images: list[Image], size: tuple[int, int]) -> list[Prediction]:
        fed = [np.stack(tensors) for tensors in zip(*map(self._tensors, images), strict=True)]
        try:
            with one_thread():
                returned = self.network(*(self._torch.from_numpy(each).to(self._device) for each in fed))
                output = returned if isinstance(returned, self._torch.Tensor) else returned[self.recipe.output]
                maps = output[:, 0].cpu().numpy()
        except Exception as error:
            raise ModelError(
                f"{self.name}: the model failed on {len(images)} image(s) of {times(size)}: {told(error)}."
            ) from error
        try:
            return [Prediction(self._finish(each, image)) for each, image in zip(maps, images, strict=True)]
        except ModelError as error:
            raise ModelError(f"{self.name}: {error}") from None

    def _tensors(self, image: Image) -> list[NDArray[np.float32]]:
        """Return an image as the network takes it: float32 3×side×side for each of its sides."""
        sides, kernel = self.recipe.sides, self.recipe.resize
        if self.recipe.normalize == "after resizing":
            pixels = [resize_image(image, (side, side), kernel) for side in sides]
            return [self._input.tensor(each, mean=MEAN, std=STD, scale=255.0, channels="rgb") for each in pixels]
        whole = (image - 255 * np.asarray(MEAN, np.float32)) * (1 / (255 * np.asarray(STD, np.float32)))
        resized = (cv2.resize(whole, (side, side), interpolation=cv2.INTER_LINEAR) for side in sides)
        return [np.ascontiguousarray(each.transpose(2, 0, 1), np.float32) for each in resized]

    def _finish(self, values: NDArray[np.float32], image: Image) -> ProbabilityMap:
        """Return the map of an image, at its size, of what the network says of it."""
        recipe, size = self.recipe, (image.shape[0], image.shape[1])
        if recipe.order == "activate-then-resize" and recipe.activation == "sigmoid":
            values = sigmoid(values)
        resize = _resize_smoothly if recipe.map_resize == "bilinear-antialias" else resize_map
        values = resize(values, size)
        if recipe.order == "resize-then-activate" and recipe.activation == "sigmoid":
            values = sigmoid(values)
        return minmax(values) if self._minmax else values


def _resize_smoothly(values: NDArray[np.float32], size: tuple[int, int]) -> ProbabilityMap:
    """Return a map at a size (height, width), by Pillow, which widens the kernel when it shrinks."""
    resized = PIL.Image.fromarray(values).resize(size[::-1], PIL.Image.Resampling.BILINEAR)
    return np.clip(np.asarray(resized, np.float32), values.min(), values.max())
