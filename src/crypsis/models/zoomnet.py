"""ZoomNet as a torch network.

Pang et al., "Zoom in and out: a mixed-scale triplet network for camouflaged object detection", CVPR 2022. One ResNet-50
encodes an image at three sizes; units choose for every place between the sizes; and a decoder of units that exchange
between groups of channels brings them to one map. The names of the modules are those of the published weights, also
where these are misspelled.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .backbones import ConvBN, ResNet50, resize

__all__ = ["ZoomNet"]

_CHANNELS = 64
_GROUPS, _HIDDEN = 6, 32


class _Pyramid(nn.Module):
    """Atrous spatial pyramid pooling."""

    def __init__(self, channels_in: int) -> None:
        super().__init__()
        self.conv1 = ConvBN(channels_in, _CHANNELS, 1)
        self.conv2, self.conv3, self.conv4 = (ConvBN(channels_in, _CHANNELS, dilation=rate) for rate in (2, 5, 7))
        self.conv5 = ConvBN(channels_in, _CHANNELS, 1)
        self.fuse = ConvBN(5 * _CHANNELS, _CHANNELS)

    def forward(self, features: Tensor) -> Tensor:
        seen = [conv(features) for conv in (self.conv1, self.conv2, self.conv3, self.conv4)]
        everywhere = self.conv5(features.mean(dim=(2, 3), keepdim=True))
        fused: Tensor = self.fuse(torch.cat([*seen, resize(everywhere, features)], dim=1))
        return fused


class _Translation(nn.Module):
    """Brings the encoder's features to one number of channels."""

    def __init__(self) -> None:
        super().__init__()
        self.c5_down = nn.Sequential(_Pyramid(2048))
        self.c4_down, self.c3_down, self.c2_down, self.c1_down = (
            nn.Sequential(ConvBN(channels, _CHANNELS)) for channels in (1024, 512, 256, 64)
        )

    def forward(self, encoded: list[Tensor]) -> list[Tensor]:
        layers = (self.c1_down, self.c2_down, self.c3_down, self.c4_down, self.c5_down)
        return [layer(features) for layer, features in zip(layers, encoded, strict=True)][::-1]


def _shrink(features: Tensor, size: tuple[int, int]) -> Tensor:
    """Return the sum of adaptive pooling by maximum and by mean."""
    if not torch.onnx.is_in_onnx_export():
        return functional.adaptive_max_pool2d(features, size) + functional.adaptive_avg_pool2d(features, size)
    # ONNX cannot do it; from three pixels to two, the windows are the first two and the last two of every three
    pooled = functional.max_pool2d(features, 2, 1) + functional.avg_pool2d(features, 2, 1)
    rows, columns = (torch.tensor([3 * (place // 2) + place % 2 for place in range(side)]) for side in size)
    return pooled.index_select(2, rows).index_select(3, columns)


class _ScaleIntegration(nn.Module):
    """Scale integration unit: a weighted mean of three sizes, with weights for every place."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_l_pre_down, self.conv_l_post_down = ConvBN(_CHANNELS, _CHANNELS, 5), ConvBN(_CHANNELS, _CHANNELS)
        self.conv_m = ConvBN(_CHANNELS, _CHANNELS)
        self.conv_s_pre_up, self.conv_s_post_up = ConvBN(_CHANNELS, _CHANNELS), ConvBN(_CHANNELS, _CHANNELS)
        self.trans = nn.Sequential(
            ConvBN(3 * _CHANNELS, _CHANNELS, 1),
            ConvBN(_CHANNELS, _CHANNELS),
            ConvBN(_CHANNELS, _CHANNELS),
            nn.Conv2d(_CHANNELS, 3, 1),
        )

    def forward(self, large: Tensor, medium: Tensor, small: Tensor) -> Tensor:
        size = (medium.shape[2], medium.shape[3])
        large = self.conv_l_pre_down(large)
        large = _shrink(large, size)
        large = self.conv_l_post_down(large)
        small = self.conv_s_post_up(resize(self.conv_s_pre_up(small), medium))
        medium = self.conv_m(medium)
        scales = torch.stack([large, medium, small], dim=1)
        weights: Tensor = self.trans(scales.flatten(1, 2)).softmax(dim=1)
        return (weights.unsqueeze(2) * scales).sum(dim=1)


class _Mixing(nn.Module):
    """Hierarchical mixed-scale unit: groups of channels, each of which hands something on to the next."""

    def __init__(self) -> None:
        super().__init__()
        wide = _GROUPS * _HIDDEN
        self.expand_conv = ConvBN(_CHANNELS, wide, 1)
        self.gate_genator = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(wide, _HIDDEN, 1),
            nn.ReLU(inplace=True),
            nn.Conv2d(_HIDDEN, wide, 1),
            nn.Softmax(dim=1),
        )
        self.interact = nn.ModuleDict(
            {
                str(index): ConvBN((2 if index else 1) * _HIDDEN, (3 if index < _GROUPS - 1 else 2) * _HIDDEN)
                for index in range(_GROUPS)
            }
        )
        self.fuse = nn.Sequential(nn.Conv2d(wide, _CHANNELS, 3, padding=1), nn.BatchNorm2d(_CHANNELS))

    def forward(self, features: Tensor) -> Tensor:
        outputs: list[Tensor] = []
        gates: list[Tensor] = []
        handed: list[Tensor] = []
        for group, conv in zip(self.expand_conv(features).chunk(_GROUPS, dim=1), self.interact.values(), strict=True):
            output, *handed, gate = conv(torch.cat([group, *handed], dim=1)).split(_HIDDEN, dim=1)
            outputs.append(output)
            gates.append(gate)
        gated = torch.cat(outputs, dim=1) * self.gate_genator(torch.cat(gates, dim=1))
        return functional.relu(self.fuse(gated) + features, inplace=True)


class ZoomNet(nn.Module):
    """The network; see the module. Sides of the medium images are multiples of 32."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.shared_encoder = ResNet50()
        self.translayer = _Translation()
        self.merge_layers = nn.ModuleList(_ScaleIntegration() for _ in range(5))
        self.d5, self.d4, self.d3, self.d2, self.d1 = (nn.Sequential(_Mixing()) for _ in range(5))
        self.out_layer_00 = ConvBN(_CHANNELS, _CHANNELS // 2)
        self.out_layer_01 = nn.Conv2d(_CHANNELS // 2, 1, 1)

    def forward(self, large: Tensor, medium: Tensor, small: Tensor) -> Tensor:
        """Return the map of logits, N×1×H×W at the size of `medium`.

        Args:
            large: float N×3×(1.5 H)×(1.5 W) RGB, normalized by ImageNet's mean and standard deviation.
            medium: the same images at H×W.
            small: the same images at (0.5 H)×(0.5 W).
        """
        scales = (self.translayer(self.shared_encoder(images)) for images in (large, medium, small))
        merged = [merge(*features) for merge, *features in zip(self.merge_layers, *scales, strict=True)]
        decoded = self.d5(merged[0])
        for mix, features in zip((self.d4, self.d3, self.d2, self.d1), merged[1:], strict=True):
            decoded = mix(resize(decoded, 2) + features)
        logits: Tensor = self.out_layer_01(self.out_layer_00(resize(decoded, 2)))
        return logits
