"""LPIPS: how different two images look to a network, after Zhang, Isola, Efros, Shechtman and Wang.

"The Unreasonable Effectiveness of Deep Features as a Perceptual Metric" (CVPR 2018), with AlexNet and the linear
weights of version 0.1, as most papers report it. The network runs in onnxruntime on one CPU thread; nothing of it is
loaded before the first image. Its kernels are stored in half precision: LPIPS then is within 1e-3 of its value with
the weights as published, or within 2e-7 where it is nearly 0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import MissingDependencyError
from ..types import Image, check_image, check_pair

__all__ = [
    "MINIMUM_SIDE",
    "WEIGHTS",
    "Features",
    "LpipsNetwork",
    "lpips",
    "lpips_distance",
    "runtime_version",
    "shared_network",
]

WEIGHTS = Path(__file__).parents[1] / "data" / "lpips" / "alexnet-v0.1.onnx"
"""The network that comes with the package; `scripts/make_lpips_onnx.py` says what it was made from."""

MINIMUM_SIDE = 31
"""Pixels along a side below which AlexNet's second pooling has nothing left to pool."""

Features: TypeAlias = list[NDArray[np.float32]]
"""Five maps, each 1×C×h×w with C of 64, 192, 384, 256, 256: what `lpips_distance` compares."""


class LpipsNetwork:
    """AlexNet's five feature maps, scaled so that LPIPS is a sum of mean squared differences between them."""

    def __init__(self, path: Path = WEIGHTS) -> None:
        """Name the ONNX file; it is loaded when the first image comes."""
        self._path = path

    @functools.cached_property
    def _session(self) -> Any:
        """The network, on one thread, so that results do not depend on the machine's number of cores."""
        import onnxruntime

        if not self._path.is_file():
            raise MissingDependencyError(f"LPIPS needs its network {self._path}, which is missing; reinstall Crypsis.")
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.use_deterministic_compute = True
        return onnxruntime.InferenceSession(str(self._path), settings, providers=["CPUExecutionProvider"])

    def features(self, image: Image) -> Features:
        """Return what LPIPS compares of an image, to be computed once where the image is compared several times.

        A side shorter than `MINIMUM_SIDE`, which the network cannot take, is first continued at both ends by its
        mirror image (edge pixel repeated, as often as needed) up to that length.

        Args:
            image: uint8 H×W×3, RGB.

        Returns:
            Five float32 maps, which take about 13 times the image's bytes together.

        Raises:
            ImageError: `image` has another type, or is empty.
            MissingDependencyError: the file of the network is missing.
        """
        height, width = check_image(image).shape[:2]
        missing = (max(MINIMUM_SIDE - side, 0) for side in (height, width))
        padding = [(short // 2, short - short // 2) for short in missing]
        if any(map(any, padding)):
            image = np.pad(image, [*padding, (0, 0)], mode="symmetric")
        scaled = np.ascontiguousarray(image.transpose(2, 0, 1), np.float32)
        scaled /= np.float32(127.5)
        scaled -= np.float32(1)
        features: Features = self._session.run(None, {"image": scaled[None]})
        return features

    def lpips(self, clean: Image, degraded: Image) -> float:
        """Return the distance of two images; see the function `lpips`."""
        check_pair(clean, degraded)
        return lpips_distance(self.features(clean), self.features(degraded))


@functools.cache
def shared_network() -> LpipsNetwork:
    """Return the network that comes with the package, the same one for the whole process."""
    return LpipsNetwork()


def runtime_version() -> str:
    """Return the version of onnxruntime, on which the last digits depend."""
    import onnxruntime

    return str(onnxruntime.__version__)


def lpips_distance(clean: Sequence[NDArray[np.float32]], degraded: Sequence[NDArray[np.float32]]) -> float:
    """Return LPIPS from the features of two images of one size.

    Args:
        clean: as `LpipsNetwork.features` returns them.
        degraded: likewise.
    """
    # the weights of the channels are in the features already; the mean is over positions, the sum over channels
    distance = 0.0
    for x, y in zip(clean, degraded, strict=True):
        distance += cv2.norm(x.ravel(), y.ravel(), cv2.NORM_L2SQR) / (x.shape[2] * x.shape[3])
    return distance


def lpips(clean: Image, degraded: Image) -> float:
    """Return LPIPS (AlexNet, version 0.1) of two images at their own size.

    Args:
        clean: uint8 H×W×3, RGB.
        degraded: uint8, of the same shape.

    Returns:
        A number from 0, which identical images have exactly, without an upper bound of much use.

    Raises:
        ImageError: an image has another type, or the two differ in shape.
        MissingDependencyError: the file of the network is missing.
    """
    return shared_network().lpips(clean, degraded)
