"""PFNet as a torch network: Mei et al., "Camouflaged object segmentation with distraction mining", CVPR 2021.

A ResNet-50 encoder; a positioning module that attends over channels and over places; and three focus modules, each of
which looks for false alarms and misses of the map before. The names of the modules are those of the published weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .backbones import ResNet50, resize

__all__ = ["PFNet"]


def _conv_bn_relu(channels_in: int, channels: int, kernel: int, dilation: int = 1) -> nn.Sequential:
    """Return a convolution with bias, that keeps the size, normalization and ReLU."""
    padding = dilation * (kernel // 2)
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, kernel, padding=padding, dilation=dilation),
        nn.BatchNorm2d(channels),
        nn.ReLU(inplace=True),
    )


class _ChannelAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1))

    def forward(self, features: Tensor) -> Tensor:
        rows = features.flatten(2)
        attention = (rows @ rows.transpose(1, 2)).softmax(dim=-1)
        return self.gamma * (attention @ rows).view_as(features) + features


class _SpatialAttention(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1))
        self.query_conv, self.key_conv = (nn.Conv2d(channels, channels // 8, 1) for _ in range(2))
        self.value_conv = nn.Conv2d(channels, channels, 1)

    def forward(self, features: Tensor) -> Tensor:
        queries, keys, values = (
            conv(features).flatten(2) for conv in (self.query_conv, self.key_conv, self.value_conv)
        )
        attention = (queries.transpose(1, 2) @ keys).softmax(dim=-1)
        attended: Tensor = self.gamma * (values @ attention.transpose(1, 2)).view_as(features) + features
        return attended


class _Positioning(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cab, self.sab = _ChannelAttention(), _SpatialAttention(channels)
        self.map = nn.Conv2d(channels, 1, 7, padding=3)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        attended = self.sab(self.cab(features))
        return attended, self.map(attended)


class _ContextExploration(nn.Module):
    """Four branches with ever larger views, each of which also sees what the one before found."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        quarter = channels // 4
        for index in range(1, 5):
            self.add_module(f"p{index}_channel_reduction", _conv_bn_relu(channels, quarter, 1))
        for index, (kernel, dilation) in enumerate(((1, 1), (3, 2), (5, 4), (7, 8)), start=1):
            self.add_module(f"p{index}", _conv_bn_relu(quarter, quarter, kernel))
            self.add_module(f"p{index}_dc", _conv_bn_relu(quarter, quarter, 3, dilation))
        self.fusion = _conv_bn_relu(channels, channels, 1)

    def forward(self, features: Tensor) -> Tensor:
        found: list[Tensor] = []
        for index in range(1, 5):
            fed = self.get_submodule(f"p{index}_channel_reduction")(features)
            fed = fed + found[-1] if found else fed
            found.append(self.get_submodule(f"p{index}_dc")(self.get_submodule(f"p{index}")(fed)))
        fused: Tensor = self.fusion(torch.cat(found, dim=1))
        return fused


class _Focus(nn.Module):
    def __init__(self, channels: int, deeper: int) -> None:
        super().__init__()
        self.up = nn.Sequential(*_conv_bn_relu(deeper, channels, 7), nn.UpsamplingBilinear2d(scale_factor=2))
        self.output_map = nn.Conv2d(channels, 1, 7, padding=3)
        self.fp, self.fn = _ContextExploration(channels), _ContextExploration(channels)
        self.alpha, self.beta = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, features: Tensor, deeper: Tensor, rough: Tensor) -> tuple[Tensor, Tensor]:
        found = resize(rough, 2, corners=True).sigmoid()
        refined = self.up(deeper) - self.alpha * self.fp(features * found)
        refined = functional.relu(self.bn1(refined), inplace=True) + self.beta * self.fn(features * (1 - found))
        refined = functional.relu(self.bn2(refined), inplace=True)
        return refined, self.output_map(refined)


class PFNet(nn.Module):
    """The network; see the module. Sides of images are multiples of 32."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        encoder = ResNet50()
        self.layer0 = nn.Sequential(encoder.conv1, encoder.bn1, nn.ReLU(inplace=True))
        self.layer1 = nn.Sequential(nn.MaxPool2d(3, 2, 1), encoder.layer1)
        self.layer2, self.layer3, self.layer4 = encoder.layer2, encoder.layer3, encoder.layer4
        self.cr4, self.cr3 = _conv_bn_relu(2048, 512, 3), _conv_bn_relu(1024, 256, 3)
        self.cr2, self.cr1 = _conv_bn_relu(512, 128, 3), _conv_bn_relu(256, 64, 3)
        self.positioning = _Positioning(512)
        self.focus3, self.focus2, self.focus1 = _Focus(256, 512), _Focus(128, 256), _Focus(64, 128)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return four maps, each N×1×H×W, from rough to fine; the last is the result.

        They are probabilities when the network infers (`eval()`), logits when it is trained.

        Args:
            images: float N×3×H×W RGB, normalized by ImageNet's mean and standard deviation.
        """
        features, encoded = self.layer0(images), []
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            features = layer(features)
            encoded.append(features)
        first, second, third, fourth = (
            reduce(features) for reduce, features in zip((self.cr1, self.cr2, self.cr3, self.cr4), encoded, strict=True)
        )
        attended, rough = self.positioning(fourth)
        maps = [rough]
        for focus, features in ((self.focus3, third), (self.focus2, second), (self.focus1, first)):
            attended, rough = focus(features, attended, rough)
            maps.append(rough)
        four, three, two, one = (resize(each, images, corners=True) for each in maps)
        if self.training:
            return four, three, two, one
        return four.sigmoid(), three.sigmoid(), two.sigmoid(), one.sigmoid()
