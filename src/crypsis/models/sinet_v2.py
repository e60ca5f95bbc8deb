"""SINet-V2 as a torch network: Fan, Ji, Cheng, Shao, "Concealed object detection", TPAMI 2022.

A Res2Net-50 encoder; a texture enhanced module on each of its last three features; a decoder that finds the object
roughly; and three rounds that look again at what is not yet found (reverse attention in groups of channels).
The names of the modules are those of the published weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .backbones import ConvBN, Res2Net50, resize

__all__ = ["NeighborDecoder", "SINetV2"]

_CHANNELS = 32


class _TextureEnhanced(nn.Module):
    """Branches with ever larger views, after the receptive field block; nothing is rectified before their sum."""

    def __init__(self, channels_in: int) -> None:
        super().__init__()
        self.branch0 = nn.Sequential(ConvBN(channels_in, _CHANNELS, 1, relu=False))
        self.branch1, self.branch2, self.branch3 = (
            nn.Sequential(
                ConvBN(channels_in, _CHANNELS, 1, relu=False),
                ConvBN(_CHANNELS, _CHANNELS, (1, kernel), relu=False),
                ConvBN(_CHANNELS, _CHANNELS, (kernel, 1), relu=False),
                ConvBN(_CHANNELS, _CHANNELS, 3, dilation=kernel, relu=False),
            )
            for kernel in (3, 5, 7)
        )
        self.conv_cat = ConvBN(4 * _CHANNELS, _CHANNELS, relu=False)
        self.conv_res = ConvBN(channels_in, _CHANNELS, 1, relu=False)

    def forward(self, features: Tensor) -> Tensor:
        branches = (self.branch0, self.branch1, self.branch2, self.branch3)
        joined = self.conv_cat(torch.cat([branch(features) for branch in branches], dim=1))
        return functional.relu(joined + self.conv_res(features))


class NeighborDecoder(nn.Module):
    """Neighbor connection decoder of SINet-V2, also of DGNet: from features at three strides to one map."""

    def __init__(self, channels: int, *, relu: bool) -> None:
        """Make the layers.

        Args:
            channels: of each of the features.
            relu: whether convolutions are rectified (DGNet) or not (SINet-V2).
        """
        super().__init__()

        def conv(times: int) -> ConvBN:
            return ConvBN(times * channels, times * channels, relu=relu)

        self.conv_upsample1, self.conv_upsample2, self.conv_upsample3 = conv(1), conv(1), conv(1)
        self.conv_upsample4, self.conv_upsample5 = conv(1), conv(2)
        self.conv_concat2, self.conv_concat3, self.conv4 = conv(2), conv(3), conv(3)
        self.conv5 = nn.Conv2d(3 * channels, 1, 1)

    def forward(self, deep: Tensor, middle: Tensor, shallow: Tensor) -> Tensor:
        """Return logits N×1×h×w of features at strides 4s, 2s and s, where the last are N×C×h×w."""

        def twice(features: Tensor) -> Tensor:
            return resize(features, 2, corners=True)

        refined = self.conv_upsample1(twice(deep)) * middle
        finest = self.conv_upsample2(twice(refined)) * self.conv_upsample3(twice(middle)) * shallow
        joined = self.conv_concat2(torch.cat([refined, self.conv_upsample4(twice(deep))], dim=1))
        joined = self.conv_concat3(torch.cat([finest, self.conv_upsample5(twice(joined))], dim=1))
        logits: Tensor = self.conv5(self.conv4(joined))
        return logits


class _GroupReversal(nn.Module):
    """Group-reversal attention: the map of what is not yet found, set behind every group of channels."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups
        self.conv = nn.Sequential(nn.Conv2d(_CHANNELS + groups, _CHANNELS, 3, padding=1), nn.ReLU(inplace=True))
        self.score = nn.Conv2d(_CHANNELS, 1, 3, padding=1)

    def forward(self, features: Tensor, remaining: Tensor) -> tuple[Tensor, Tensor]:
        pieces = [piece for group in features.chunk(self.groups, dim=1) for piece in (group, remaining)]
        features = features + self.conv(torch.cat(pieces, dim=1))
        return features, remaining + self.score(features)


class _ReverseStage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weak_gra, self.medium_gra, self.strong_gra = (_GroupReversal(groups) for groups in (1, 4, _CHANNELS))

    def forward(self, features: Tensor, guidance: Tensor) -> Tensor:
        remaining = 1 - guidance.sigmoid()
        for attention in (self.weak_gra, self.medium_gra, self.strong_gra):
            features, remaining = attention(features, remaining)
        return remaining + guidance


class SINetV2(nn.Module):
    """The network; see the module. Sides of images are multiples of 32."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.resnet = Res2Net50()
        self.rfb2_1, self.rfb3_1, self.rfb4_1 = (_TextureEnhanced(channels) for channels in (512, 1024, 2048))
        self.NCD = NeighborDecoder(_CHANNELS, relu=False)
        self.RS5, self.RS4, self.RS3 = _ReverseStage(), _ReverseStage(), _ReverseStage()

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return four maps of logits, each N×1×H×W, from rough to fine; the last is the result.

        Args:
            images: float N×3×H×W RGB, normalized by ImageNet's mean and standard deviation.
        """
        _, *encoded = self.resnet(images)
        shallow, middle, deep = (
            enhance(features)
            for enhance, features in zip((self.rfb2_1, self.rfb3_1, self.rfb4_1), encoded, strict=True)
        )
        rough = self.NCD(deep, middle, shallow)
        fifth = self.RS5(deep, resize(rough, 0.25))
        fourth = self.RS4(middle, resize(fifth, 2))
        third = self.RS3(shallow, resize(fourth, 2))
        return resize(rough, 8), resize(fifth, 32), resize(fourth, 16), resize(third, 8)
