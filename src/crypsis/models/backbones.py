"""Encoders of the compared models, ResNet-50, Res2Net-50 and EfficientNet, under the names of their published weights.

- ResNet-50: He et al., "Deep residual learning for image recognition", CVPR 2016, with the stride on the 3×3
  convolution, as torchvision and timm have it.
- Res2Net-50-v1b-26w-4s: Gao et al., "Res2Net: a new multi-scale backbone architecture", TPAMI 2021, with a stem of
  three 3×3 convolutions and average pooling before the projections of shortcuts.
- EfficientNet: Tan and Le, ICML 2019, in PyTorch as lukemelas ported it.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["ConvBN", "EfficientNet", "Res2Net50", "ResNet50", "resize"]

_DEPTHS = (3, 4, 6, 3)
"""Blocks of the four stages of a network of 50 layers."""
_EXPANSION = 4
"""A bottleneck returns that many times its planes."""


def resize(features: Tensor, to: float | Tensor, *, corners: bool = False) -> Tensor:
    """Return features bilinearly resized, N×C×h×w.

    Args:
        features: N×C×H×W.
        to: a factor, or features whose height and width are taken.
        corners: whether the centers of the corner pixels stay in place (torch's `align_corners`).
    """
    if isinstance(to, Tensor):
        return functional.interpolate(features, size=to.shape[2:], mode="bilinear", align_corners=corners)
    return functional.interpolate(features, scale_factor=to, mode="bilinear", align_corners=corners)


class ConvBN(nn.Module):
    """A convolution without bias, batch normalization and, if wanted, ReLU."""

    def __init__(
        self,
        channels_in: int,
        channels: int,
        kernel: int | tuple[int, int] = 3,
        *,
        stride: int = 1,
        dilation: int = 1,
        relu: bool = True,
    ) -> None:
        """Make the layers; the padding keeps the size where the stride is 1."""
        super().__init__()
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = (dilation * (height // 2), dilation * (width // 2))
        self.conv = nn.Conv2d(channels_in, channels, (height, width), stride, padding, dilation, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.relu = relu

    def forward(self, features: Tensor) -> Tensor:
        """Return N×channels×h×w of N×channels_in×H×W."""
        normalized: Tensor = self.bn(self.conv(features))
        return functional.relu(normalized, inplace=True) if self.relu else normalized


class _Bottleneck(nn.Module):
    def __init__(self, channels_in: int, planes: int, stride: int, *, first: bool) -> None:
        super().__init__()
        channels = planes * _EXPANSION
        self.conv1, self.bn1 = nn.Conv2d(channels_in, planes, 1, bias=False), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False), nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = nn.Conv2d(planes, channels, 1, bias=False), nn.BatchNorm2d(channels)
        self.downsample: nn.Module = nn.Identity()
        if first:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, features: Tensor) -> Tensor:
        inner = functional.relu(self.bn1(self.conv1(features)), inplace=True)
        inner = functional.relu(self.bn2(self.conv2(inner)), inplace=True)
        return functional.relu(self.bn3(self.conv3(inner)) + self.downsample(features), inplace=True)


class _Bottle2neck(nn.Module):
    """A bottleneck whose channels go in four groups: each but the last is convolved, after the one before is added."""

    def __init__(self, channels_in: int, planes: int, stride: int, *, first: bool) -> None:
        super().__init__()
        channels, width = planes * _EXPANSION, planes * 26 // 64
        wide = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(channels_in, wide, 1, bias=False), nn.BatchNorm2d(wide)
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, stride, 1, bias=False) for _ in range(3))
        self.bns = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(3))
        self.conv3, self.bn3 = nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels)
        self.first = first
        self.last: nn.Module = nn.Identity()
        self.downsample: nn.Module = nn.Identity()
        if first:
            self.last = nn.AvgPool2d(3, stride, padding=1)
            self.downsample = nn.Sequential(
                nn.AvgPool2d(stride, stride, ceil_mode=True, count_include_pad=False),
                nn.Conv2d(channels_in, channels, 1, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, features: Tensor) -> Tensor:
        *groups, last = functional.relu(self.bn1(self.conv1(features)), inplace=True).chunk(4, dim=1)
        done: list[Tensor] = []
        for group, conv, bn in zip(groups, self.convs, self.bns, strict=True):
            fed = group if self.first or not done else group + done[-1]
            done.append(functional.relu(bn(conv(fed)), inplace=True))
        inner = torch.cat([*done, self.last(last)], dim=1)
        return functional.relu(self.bn3(self.conv3(inner)) + self.downsample(features), inplace=True)


def _stages(block: type[_Bottleneck | _Bottle2neck]) -> list[nn.Sequential]:
    """Return the four stages behind the stem, at strides 4, 8, 16, 32."""
    stages, before = [], 64
    for planes, depth, stride in zip((64, 128, 256, 512), _DEPTHS, (1, 2, 2, 2), strict=True):
        channels = planes * _EXPANSION
        rest = (block(channels, planes, 1, first=False) for _ in range(depth - 1))
        stages.append(nn.Sequential(block(before, planes, stride, first=True), *rest))
        before = channels
    return stages


class ResNet50(nn.Module):
    """ResNet-50 up to its last convolution."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.layer1, self.layer2, self.layer3, self.layer4 = _stages(_Bottleneck)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Return features of 64, 256, 512, 1024, 2048 channels at strides 2, 4, 8, 16, 32 of N×3×H×W."""
        features = [functional.relu(self.bn1(self.conv1(images)), inplace=True)]
        features.append(self.layer1(functional.max_pool2d(features[0], 3, 2, 1)))
        for stage in (self.layer2, self.layer3, self.layer4):
            features.append(stage(features[-1]))
        return features


class Res2Net50(nn.Module):
    """Res2Net-50-v1b-26w-4s up to its last convolution; the classifier behind it is kept for its weights, unused."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.conv1 = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True),
            nn.Conv2d(32, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True),
            nn.Conv2d(32, 64, 3, 1, 1, bias=False),
        )  # fmt: skip
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1, self.layer2, self.layer3, self.layer4 = _stages(_Bottle2neck)
        self.fc = nn.Linear(512 * _EXPANSION, 1000)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Return features of 256, 512, 1024, 2048 channels at strides 4, 8, 16, 32 of N×3×H×W."""
        features = functional.max_pool2d(functional.relu(self.bn1(self.conv1(images)), inplace=True), 3, 2, 1)
        returned = []
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            features = stage(features)
            returned.append(features)
        return returned


class _StaticSameConv(nn.Conv2d):
    """A convolution padded as TensorFlow's SAME would pad images of one nominal side, whatever their real one."""

    def __init__(self, channels_in: int, channels: int, kernel: int, stride: int, side: int, groups: int = 1) -> None:
        super().__init__(channels_in, channels, kernel, stride, groups=groups, bias=False)
        total = max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
        before, behind = total // 2, total - total // 2
        self.around = (before, behind, before, behind)
        if before == behind:  # the usual case, in which no copy is needed
            self.padding, self.around = (before, before), (0, 0, 0, 0)

    def forward(self, features: Tensor) -> Tensor:
        return super().forward(functional.pad(features, self.around) if any(self.around) else features)


class _MobileBlock(nn.Module):
    """An inverted residual with squeeze and excitation."""

    def __init__(self, channels_in: int, channels: int, kernel: int, stride: int, expansion: int, side: int) -> None:
        super().__init__()
        wide, squeezed = channels_in * expansion, max(1, channels_in // 4)
        self.expands, self.residual = expansion > 1, stride == 1 and channels_in == channels
        if self.expands:
            self._expand_conv = nn.Conv2d(channels_in, wide, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(wide, eps=1e-3)
        self._depthwise_conv = _StaticSameConv(wide, wide, kernel, stride, side, groups=wide)
        self._bn1 = nn.BatchNorm2d(wide, eps=1e-3)
        self._se_reduce, self._se_expand = nn.Conv2d(wide, squeezed, 1), nn.Conv2d(squeezed, wide, 1)
        self._project_conv = nn.Conv2d(wide, channels, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(channels, eps=1e-3)

    def forward(self, features: Tensor) -> Tensor:
        wide = features
        if self.expands:
            wide = functional.silu(self._bn0(self._expand_conv(wide)), inplace=True)
        wide = functional.silu(self._bn1(self._depthwise_conv(wide)), inplace=True)
        gate = self._se_expand(functional.silu(self._se_reduce(functional.adaptive_avg_pool2d(wide, 1))))
        narrow: Tensor = self._bn2(self._project_conv(wide * gate.sigmoid()))
        return narrow + features if self.residual else narrow


_MOBILE_STAGES = ((3, 1, 1), (3, 2, 6), (5, 2, 6), (3, 2, 6), (5, 1, 6), (5, 2, 6), (3, 1, 6))
"""Of EfficientNet: kernel, stride of the first block, expansion."""

_VARIANTS: dict[str, tuple[int, int, tuple[tuple[int, int], ...], int]] = {
    "b1": (240, 32, ((16, 2), (24, 3), (40, 3), (80, 4), (112, 4), (192, 5), (320, 2)), 1280),
    "b4": (380, 48, ((24, 2), (32, 4), (56, 4), (112, 6), (160, 6), (272, 8), (448, 2)), 1792),
}
"""Nominal side, channels of the stem, (channels, blocks) of the stages, channels of the unused head."""


class EfficientNet(nn.Module):
    """EfficientNet-B1 or -B4 up to its last block; the convolution behind it is kept for its weights, unused.

    Its padding is that for images of 240 (B1) or 380 pixels (B4), fixed when the network is made, as in the port.
    """

    def __init__(self, variant: str) -> None:
        """Make the layers.

        Args:
            variant: `b1` or `b4`.
        """
        super().__init__()
        side, stem, stages, head = _VARIANTS[variant]
        self._conv_stem = _StaticSameConv(3, stem, 3, 2, side)
        self._bn0 = nn.BatchNorm2d(stem, eps=1e-3)
        self._blocks, before, side = nn.ModuleList(), stem, math.ceil(side / 2)
        ends = []
        for (kernel, first_stride, expansion), (channels, count) in zip(_MOBILE_STAGES, stages, strict=True):
            for index in range(count):
                stride = 1 if index else first_stride
                self._blocks.append(_MobileBlock(before, channels, kernel, stride, expansion, side))
                before, side = channels, math.ceil(side / stride)
            ends.append(len(self._blocks))
        self._spans = tuple(pairwise((0, ends[2], ends[4], ends[6])))  # blocks up to strides 8, 16, 32
        self._conv_head = nn.Conv2d(before, head, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(head, eps=1e-3)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Return features of 40, 112, 320 (B1) or 56, 160, 448 (B4) channels at strides 8, 16, 32 of N×3×H×W."""
        features = functional.silu(self._bn0(self._conv_stem(images)), inplace=True)
        returned = []
        for start, end in self._spans:
            for block in self._blocks[start:end]:
                features = block(features)
            returned.append(features)
        return returned
