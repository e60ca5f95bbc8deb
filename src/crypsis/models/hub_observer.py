"""`grounding-dino`, `owlv2`: observers of networks that are published on the hub of Hugging Face.

A detector that reads finds boxes for the name, and a SAM makes a mask of each box. Without a path or name behind the
colon the detector of SeamCam's paper is taken, of the largest size where the paper names none:

    grounding-dino   IDEA-Research/grounding-dino-base, as in most of the paper
    owlv2            google/owlv2-large-patch14-ensemble, one of its alternatives

Options behind commas:

    segment=sam2             what makes the masks: sam2, sam1 or sam3 (which needs torchvision)
    segmenter=PATH_OR_ID     its network; facebook/sam2.1-hiera-large, facebook/sam-vit-huge or facebook/sam3
    alpha=RULE               how α is made; see `crypsis.models.text_detectors`
    score=0.05               boxes with a smaller β are left out; keep it at or below every τβ that is of interest
    limit=50                 proposals of an image at most, the most confident
    batch=N                  boxes in one call of the segmenter, for little memory; all of an image by default
    revision=, segmenter_revision=   branch, tag or commit on the hub
    device=cpu|cuda

Names that are too long for a text encoder lose their last words, of which a run warns. Boxes are clipped to the
image; empty ones are left out. Computing is in float32, on the CPU on one thread, so that results do not depend on
the machine's cores; take one of `crypsis score --workers` for each core that has the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import CrypsisError, ModelError
from ..types import Image, Proposals, check_image
from .box_segmenters import BOX_SEGMENTERS, BoxSegmenter
from .foreign import import_extra, one_thread, told
from .hub import find_pretrained, quiet
from .options import Reader, one_of, positive_integer, read_options, share
from .segmenter import Description
from .text_detectors import Found, GroundingDino, Owlv2, TextDetector

__all__ = ["GROUNDING_DINO", "OWLV2", "HubObserver", "HubObserverKind", "best_boxes"]

EXTRA = "camouflage"
"""The extra of Crypsis that brings what these observers need."""


class HubObserver:
    """A detector that reads, and a segmenter that takes its boxes."""

    def __init__(
        self,
        detector: TextDetector,
        segmenter: BoxSegmenter,
        *,
        name: str,
        score: float = 0.05,
        limit: int = 50,
        batch: int | None = None,
        device: str = "cpu",
    ) -> None:
        """Put both together.

        Args:
            detector: finds the boxes.
            segmenter: makes the masks.
            name: label.
            score: boxes with a smaller β are left out, in [0, 1].
            limit: proposals of an image at most, the most confident.
            batch: boxes in one call of the segmenter; all if None.
            device: where both are, for the description.
        """
        self.name = name
        self._detector, self._segmenter = detector, segmenter
        self._score, self._limit, self._batch, self._device = score, limit, batch, device

    def describe(self) -> Description:
        """Return both networks' hashes, the rule of α, sizes, options, and versions."""
        return {
            "observer": self._detector.kind,
            **self._detector.describe(),
            **self._segmenter.describe(),
            "score": self._score,
            "limit": self._limit,
            **versions(self._device),
        }

    def fit_name(self, category: str) -> str:
        """Return the name that is looked for; see `NameReader.fit_name`."""
        return self._detector.fit_name(category)

    def propose(self, image: Image, category: str) -> Proposals:
        """Return the regions that may show what `fit_name` makes of the category; see `ProposalSource.propose`."""
        height, width = check_image(image).shape[:2]
        try:
            with one_thread(), quiet():
                every = self._detector.find(image, category)
                found, _ = best_boxes(every, (height, width), self._score, self._limit)
                masks = self._segmenter.segment(image, found.boxes, batch=self._batch)
        except CrypsisError as error:
            raise ModelError(f"{self.name}: {error}") from error
        except Exception as error:
            raise ModelError(f"{self.name}: failed on an image of {height}×{width}: {told(error)}.") from error
        return Proposals(found.alpha, found.beta, masks, found.boxes)


def best_boxes(found: Found, size: tuple[int, int], score: float, limit: int) -> tuple[Found, NDArray[np.int64]]:
    """Return the most confident boxes, clipped to the image, from the most to the least confident.

    Args:
        found: what a detector said.
        size: height and width of the image, in pixels.
        score: boxes with a smaller β are left out.
        limit: boxes at most.

    Returns:
        the boxes that are not empty, of equal β the detector's first; and their places in what the detector said.

    Raises:
        ModelError: a box or score is not finite.
    """
    if not all(np.isfinite(values).all() for values in found):
        raise ModelError("the detector returned boxes or scores that are not finite.")
    height, width = size
    boxes = np.clip(found.boxes, 0, (width, height, width, height))
    chosen = np.flatnonzero((found.beta >= score) & (boxes[:, 2:] > boxes[:, :2]).all(axis=1))
    chosen = chosen[np.argsort(-found.beta[chosen], kind="stable")][:limit]
    return Found(boxes[chosen], found.alpha[chosen], found.beta[chosen]), chosen


def versions(device: str) -> Description:
    """Return where and with what networks of transformers compute."""
    import torch

    return {
        "dtype": "float32",
        "device": device,
        "transformers": import_extra("transformers", EXTRA).__version__,
        "torch": torch.__version__,
    }


_READERS: dict[str, Reader] = {
    "segment": one_of(*BOX_SEGMENTERS),
    "segmenter": str,
    "score": share,
    "limit": positive_integer,
    "batch": positive_integer,
    "revision": str,
    "segmenter_revision": str,
    "device": one_of("cpu", "cuda"),
}


@dataclass(frozen=True)
class HubObserverKind:
    """A detector that `crypsis score --observer` may name.

    Attributes:
        detector: its class.
        model: the network that is taken if none is named.
    """

    detector: type[GroundingDino] | type[Owlv2]
    model: str

    def from_specification(self, target: str, options: Mapping[str, str], name: str | None) -> HubObserver:
        """Load `KIND[:PATH_OR_ID][,option=value…]`."""
        kind, rules = self.detector.kind, self.detector.rules
        given = read_options(kind, options, {**_READERS, "alpha": one_of(*rules)})
        segment, device = given.pop("segment", "sam2"), given.get("device", "cpu")
        row = BOX_SEGMENTERS[segment]
        for package in ("torch", "transformers"):
            import_extra(package, EXTRA)
        network = find_pretrained(
            target or self.model, revision=given.pop("revision", None), types=self.detector.types, extra=EXTRA,
            option=f"{kind}:FOLDER", reads=True,
        )  # fmt: skip
        masks = find_pretrained(
            given.pop("segmenter", row.model), revision=given.pop("segmenter_revision", None), types=row.types,
            extra=EXTRA, option="segmenter=FOLDER",
        )  # fmt: skip
        detector = self.detector(network, alpha=given.pop("alpha", rules[0]), device=device, extra=EXTRA)
        return HubObserver(detector, BoxSegmenter(segment, masks, device=device), name=name or kind, **given)


GROUNDING_DINO = HubObserverKind(GroundingDino, "IDEA-Research/grounding-dino-base")
OWLV2 = HubObserverKind(Owlv2, "google/owlv2-large-patch14-ensemble")
