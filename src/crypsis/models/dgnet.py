"""DGNet and DGNet-S as torch networks.

Ji et al., "Deep gradient learning for efficient camouflaged object detection", Machine Intelligence Research 2023. An
EfficientNet for what is seen, a small encoder for its texture, which is taught by the image's gradient, and a
transition that groups the two softly, before the decoder of SINet-V2. The names of the modules are those of the
published weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .backbones import ConvBN, EfficientNet, resize
from .sinet_v2 import NeighborDecoder

__all__ = ["DGNet", "DGNetS"]

_TEXTURE = 32
"""Channels of the texture encoder."""
_PIECES = 8
"""Into how many pieces channels of both encoders are cut before they are set beside each other."""


class _Reduction(nn.Module):
    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.reduce = nn.Sequential(ConvBN(channels_in, channels), ConvBN(channels, channels))

    def forward(self, features: Tensor) -> Tensor:
        reduced: Tensor = self.reduce(features)
        return reduced


class _TextureEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = ConvBN(3, 64, 7, stride=2), ConvBN(64, 64, stride=2)
        self.conv3, self.conv_out = ConvBN(64, _TEXTURE, stride=2), ConvBN(_TEXTURE, 1, 1)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        texture = self.conv3(self.conv2(self.conv1(images)))
        return texture, self.conv_out(texture)


class _SoftGrouping(nn.Module):
    """The sum of three 1×1 convolutions with different numbers of groups."""

    def __init__(self, channels: int, groups: tuple[int, int, int]) -> None:
        super().__init__()
        self.g_conv1, self.g_conv2, self.g_conv3 = (
            nn.Conv2d(channels + _TEXTURE, channels, 1, groups=count, bias=False) for count in groups
        )

    def forward(self, features: Tensor) -> Tensor:
        grouped: Tensor = self.g_conv1(features) + self.g_conv2(features) + self.g_conv3(features)
        return grouped


class _GradientTransition(nn.Module):
    """Gradient-induced transition: the texture is added to the features of three strides."""

    def __init__(self, channels: int, groups: tuple[int, int, int]) -> None:
        super().__init__()
        self.sgs3, self.sgs4, self.sgs5 = (_SoftGrouping(channels, groups) for _ in range(3))

    def forward(self, encoded: list[Tensor], texture: Tensor) -> list[Tensor]:
        returned = []
        for features, group, factor in zip(encoded, (self.sgs3, self.sgs4, self.sgs5), (1, 1 / 2, 1 / 4), strict=True):
            seen = texture if factor == 1 else resize(texture, factor, corners=True)
            pairs = zip(features.chunk(_PIECES, dim=1), seen.chunk(_PIECES, dim=1), strict=True)
            returned.append(features + group(torch.cat([piece for pair in pairs for piece in pair], dim=1)))
        return returned


class DGNet(nn.Module):
    """The network with EfficientNet-B4; see the module. Sides of images are multiples of 32."""

    variant, widths = "b4", (56, 160, 448)
    channels, groups = 64, (4, 8, 16)

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.context_encoder = EfficientNet(self.variant)
        self.texture_encoder = _TextureEncoder()
        self.dr3, self.dr4, self.dr5 = (_Reduction(width, self.channels) for width in self.widths)
        self.git = _GradientTransition(self.channels, self.groups)
        self.ncd = NeighborDecoder(self.channels, relu=True)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of the object, which are the result, and the texture, each N×1×H×W.

        Args:
            images: float N×3×H×W RGB, normalized by ImageNet's mean and standard deviation.
        """
        reductions = (self.dr3, self.dr4, self.dr5)
        encoded = [reduce(each) for reduce, each in zip(reductions, self.context_encoder(images), strict=True)]
        texture, gradient = self.texture_encoder(images)
        shallow, middle, deep = self.git(encoded, texture)
        return resize(self.ncd(deep, middle, shallow), 8, corners=True), resize(gradient, 8, corners=True)


class DGNetS(DGNet):
    """The small network, with EfficientNet-B1."""

    variant, widths = "b1", (40, 112, 320)
    channels, groups = 32, (8, 16, 32)
