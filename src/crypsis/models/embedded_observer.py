"""`embedded`: an observer from what comes with the package, so that scores need no download.

It is a far weaker observer than the one of SeamCam's paper (Grounding DINO with SAM-2), and its scores are not
comparable with published ones: of the 80 classes that its detector was trained on, ten are animals, none of them a
fish, a frog or an insect, so that it misses much that people see at once. What it misses counts as perfectly hidden.

1. NanoDet finds boxes. β is the score of a box.
2. A category has a class of its own where COCO has one (`owl` → bird, `snow leopard` → cat), by a table of last words;
   the other animals are half as good. A category without one, such as `frog`, may be any animal. α is that weight
   times the class's share at the place: the box's score over that of the most confident box of any class that overlaps
   it by 0.6 or more. A lizard that looks more like a banana thus has a low α.
3. Of boxes of several classes at one place, the one with the largest α·β stays.
4. In each box, enlarged by 40%, the object is told from the rest: by GrabCut from the colors inside and outside of the
   box (`segment=grabcut`, the default), or by RobustCODLite (`segment=network`). What lies outside of the box is cut
   off.

The two see differently. Of the 48 animals of the demo set blended in at strengths 0, 0.5 and 0.95
(`benchmarks/blending.py --series`), the score follows the strength with Spearman's ρ = 0.51 with GrabCut (95% interval
over animals 0.41 to 0.62) and 0.21 with the network (0.13 to 0.31); at 0.95 an animal is scored better hidden than at 0
in 91% (84 to 96) and 76% (64 to 87). The network was trained on such composites to see through them, and follows their
strength less. Of the time of an image, 0.5 s on one core with either, finding boxes takes a tenth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import MissingDependencyError, ModelError
from ..types import Image, Mask, Proposals, check_image
from . import robust_cod_lite_segmenter
from .coco_classes import CLASSES
from .nanodet import NanoDet
from .onnx_detector import OnnxDetectorOptions
from .options import Reader, one_of, positive_integer, read_options, share
from .robust_cod_lite_segmenter import RobustCodLiteSegmenter
from .segmenter import Description
from .suppression import suppress

__all__ = ["EmbeddedObserver", "class_weights", "cut_out"]

_ANIMALS = ("bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe")

_OWN_CLASS: dict[str, tuple[str, ...]] = {
    "person": ("human", "man", "woman", "child", "people", "soldier", "sniper", "hunter"),
    "bird": (
        "bittern", "chicken", "crow", "cuckoo", "duck", "eagle", "falcon", "frogmouth", "goose", "grouse", "gull",
        "hawk", "hen", "heron", "lark", "mockingbird", "nightjar", "ostrich", "owl", "parrot", "penguin", "pheasant",
        "pigeon", "plover", "ptarmigan", "quail", "rooster", "snipe", "sparrow", "swan", "vulture", "woodcock",
    ),
    "cat": ("bobcat", "cheetah", "cougar", "jaguar", "leopard", "lion", "lynx", "ocelot", "panther", "puma", "tiger"),
    "dog": ("coyote", "dingo", "fox", "hyena", "jackal", "wolf"),
    "horse": ("donkey", "mule", "pony"),
    "sheep": ("chamois", "goat", "ibex", "lamb", "mouflon"),
    "cow": ("bison", "buffalo", "bull", "cattle", "gnu", "ox", "wildebeest", "yak"),
    "bear": ("panda",),
}  # fmt: skip
"""COCO's class → last words of the names of animals that belong to it, beside its own."""

_CLASS_OF = {word: name for name, words in _OWN_CLASS.items() for word in (name, *words)}
_MISLEADING = ("ant", "prairie", "sea")
"""Words before the last that make it another animal: a sea lion is no cat."""

_OTHER_ANIMAL = 0.5
_SAME_PLACE = 0.6
_MARGIN = 0.4
_GRABCUT_SIDE = 160
"""Longest side, in pixels, at which GrabCut works."""
_GRABCUT_ROUNDS = 3
_COMPONENTS = 5
"""Gaussians of each of GrabCut's mixtures."""

_READERS: dict[str, Reader] = {
    "segment": one_of("network", "grabcut"),
    "score": share,
    "limit": positive_integer,
}


class EmbeddedObserver:
    """The observer; see the module for how it works and what it cannot see."""

    def __init__(
        self, *, segment: str = "grabcut", score: float = 0.05, limit: int = 20, name: str = "embedded"
    ) -> None:
        """Load its networks.

        Args:
            segment: `grabcut`, or `network` (RobustCODLite).
            score: boxes with this β or less are left out, in [0, 1].
            limit: proposals of an image at most, the most confident.
            name: label.

        Raises:
            MissingDependencyError: a network is missing.
        """
        weights = robust_cod_lite_segmenter.WEIGHTS
        self.name = name
        self._limit = limit
        self._score = score
        self._detector = NanoDet(OnnxDetectorOptions(score=score))
        self._segmenter: RobustCodLiteSegmenter | None = None
        if segment == "network" and not weights.is_file():
            raise MissingDependencyError(
                f"segment=network needs the network {weights.name}, which is not in this installation; install Crypsis "
                "again, or write segment=grabcut."
            )
        if segment == "network":
            self._segmenter = RobustCodLiteSegmenter(batch=limit)

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> EmbeddedObserver:
        """Load `embedded[,segment=network|grabcut][,score=…][,limit=…]`."""
        if target:
            raise ModelError(f"embedded takes nothing after the colon; got {target!r}.")
        return cls(**read_options("embedded", options, _READERS), name=name or "embedded")

    def describe(self) -> Description:
        """Return both networks' hashes, and the rules by which boxes become proposals."""
        segmenter = self._segmenter.describe() if self._segmenter else {}
        return {
            "observer": "embedded",
            "detector": "nanodet",
            "detector_sha256": self._detector.describe()["sha256"],
            "segment": "network" if self._segmenter else "grabcut",
            **{f"segmenter_{key}": segmenter[key] for key in ("sha256", "size") if key in segmenter},
            "alpha": "relative: weight of the class times its share at the place",
            "other_animal": _OTHER_ANIMAL,
            "same_place": _SAME_PLACE,
            "margin": _MARGIN,
            "score": self._score,
            "limit": self._limit,
        }

    def propose(self, image: Image, category: str) -> Proposals:
        """Return the regions that may show the category; see `ProposalSource.propose`."""
        height, width = check_image(image).shape[:2]
        found = self._detector.detect([image])[0]
        boxes = np.clip(found.boxes.astype(np.float64), 0, (width, height, width, height))
        scores = found.scores.astype(np.float64)
        weights = class_weights(category)[found.labels]
        alpha = weights * scores / np.where(_overlaps(boxes) >= _SAME_PLACE, scores, 0).max(axis=1, initial=1e-12)
        alpha = np.minimum(alpha, 1.0)
        chosen = np.flatnonzero((alpha > 0) & (boxes[:, 2:] - boxes[:, :2] >= 1).all(axis=1))
        one_class = np.zeros(len(chosen), np.int64)
        chosen = chosen[suppress(boxes[chosen], (alpha * scores)[chosen], one_class, iou=_SAME_PLACE)]
        chosen = chosen[np.argsort(-scores[chosen], kind="stable")][: self._limit]
        return Proposals(alpha[chosen], scores[chosen], self._masks(image, boxes[chosen]), boxes[chosen])

    def _masks(self, image: Image, boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
        masks = np.zeros((len(boxes), *image.shape[:2]), np.bool_)
        crops = [_crop(box, image.shape[:2]) for box in boxes]
        pieces = [np.ascontiguousarray(image[outer]) for outer, _ in crops]
        found: Sequence[Mask]
        if self._segmenter is None:
            found = [cut_out(piece, inner) for piece, (_, inner) in zip(pieces, crops, strict=True)]
        else:
            found = [p.probability >= 0.5 for p in self._segmenter.predict(pieces)] if pieces else []
        for mask, (outer, inner), piece in zip(masks, crops, found, strict=True):
            mask[outer][inner] = piece[inner]
        return masks


_Window = tuple[slice, slice]
"""Rows and columns."""


def class_weights(category: str) -> NDArray[np.float64]:
    """Return how well each of COCO's 80 classes fits a category, float64 [80] in [0, 1]."""
    words = category.split()
    own = category if category in CLASSES else None
    if own is None and words and not set(words[:-1]) & set(_MISLEADING):
        own = _CLASS_OF.get(words[-1], _CLASS_OF.get(words[-1].removesuffix("s")))
    weights = np.zeros(len(CLASSES))
    if own is None or own in _ANIMALS:
        weights[[CLASSES.index(animal) for animal in _ANIMALS]] = 1.0 if own is None else _OTHER_ANIMAL
    if own is not None:
        weights[CLASSES.index(own)] = 1.0
    return weights


def _crop(box: NDArray[np.float64], size: tuple[int, ...]) -> tuple[_Window, _Window]:
    """Return the enlarged box in the image, and the box in it, in whole pixels."""
    outer, inner = [], []
    for low, high, most in ((box[1], box[3], size[0]), (box[0], box[2], size[1])):
        margin = (high - low) * _MARGIN / 2
        first, last = int(np.floor(low)), int(np.ceil(high))
        start, stop = max(0, int(np.floor(low - margin))), min(most, int(np.ceil(high + margin)))
        outer.append(slice(start, stop))
        inner.append(slice(first - start, last - start))
    return (outer[0], outer[1]), (inner[0], inner[1])


def _overlaps(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return intersection over union of each box with each, N×N; 1 with itself, whatever its size."""
    sides = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    common = np.maximum(sides, 0).prod(axis=2)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    union = areas[:, None] + areas[None, :] - common
    overlaps = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    np.fill_diagonal(overlaps, 1.0)
    return np.asarray(overlaps, np.float64)


def cut_out(image: Image, box: _Window) -> Mask:
    """Return what GrabCut takes for the object in a box; the whole box where nothing lies around it.

    Rother, Kolmogorov and Blake, "GrabCut" (SIGGRAPH 2004), as OpenCV has it, on an image of at most 160 pixels a side.
    OpenCV starts its mixtures from random groups of pixels; here they start from groups of equal size by brightness, so
    that the same image gives the same mask.

    Args:
        image: uint8 H×W×3, RGB.
        box: rows and columns.

    Returns:
        bool H×W, False outside of the box.
    """
    size = image.shape[:2]
    scale = min(1.0, _GRABCUT_SIDE / max(size))
    width, height = (max(1, round(scale * side)) for side in size[::-1])
    small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA) if scale < 1 else image
    inside = np.zeros(size, np.uint8)
    inside[box] = 1
    within = cv2.resize(inside, (width, height), interpolation=cv2.INTER_NEAREST_EXACT).astype(np.bool_)
    if within.all() or not within.any():
        return inside.astype(np.bool_)
    labels = np.where(within, cv2.GC_PR_FGD, cv2.GC_BGD).astype(np.uint8)
    models = (_start_mixture(small[~within]), _start_mixture(small[within]))
    cv2.grabCut(small, labels, None, *models, _GRABCUT_ROUNDS, cv2.GC_EVAL)  # type: ignore[call-overload]
    found = ((labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD)).astype(np.uint8) * 255
    full = cv2.resize(found, size[::-1], interpolation=cv2.INTER_LINEAR) > 127
    return np.asarray(full & inside.astype(np.bool_), np.bool_)


def _start_mixture(pixels: NDArray[Any]) -> NDArray[np.float64]:
    """Return OpenCV's form of a mixture of five Gaussians: 1×65, weights, then means, then covariances."""
    colors = pixels.reshape(-1, 3).astype(np.float64)
    colors = colors[np.argsort(colors.sum(axis=1), kind="stable")]
    groups = [group if len(group) else colors for group in np.array_split(colors, _COMPONENTS)]
    means = np.array([group.mean(axis=0) for group in groups])
    covariances = np.array(
        [(group - mean).T @ (group - mean) / len(group) + np.eye(3) for group, mean in zip(groups, means, strict=True)]
    )
    weights = np.full(_COMPONENTS, 1 / _COMPONENTS)
    return np.concatenate([weights, means.ravel(), covariances.ravel()])[None]
