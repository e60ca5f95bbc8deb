"""Detectors that are told by a name what to look for: Grounding DINO and OWLv2.

Both return, for every box, what SeamCam's Algorithm 1 takes: how well the box fits the name, α, and how sure the
detector is of it, β. Grounding DINO scores each box against every token of its text, which is the name and a full stop,
with a start and an end token around. With p the largest of all these scores and q the scores of the name's tokens,
β = p, as in the library, and α is by one of four rules:

    relative     max(q)/p: does the box mean the name, or what stands around it?
    phrase-max   max(q)
    phrase-min   min(q): each word has to fit
    library      1: the library uses its text threshold only to say which words a box means, and drops none by it

The paper does not say which one it has. α of `phrase-max` and `phrase-min` is never above β, so that where τα ≥ τβ the
threshold τβ does nothing, which the paper's own search contradicts; with `relative` both thresholds act.

OWLv2 scores a box against the name as a whole, and has a score of its own for whether there is any object:

    library      α = 1, β the score of the name, as the library returns it
    phrase-max   α the score of the name, β that of any object
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..types import Image
from .foreign import import_extra, on_device
from .hub import Pretrained
from .segmenter import Description

__all__ = ["Found", "GroundingDino", "Owlv2", "TextDetector", "alpha_of_tokens", "fit_text"]

_SPECIAL = (101, 102, 1012, 1029)
"""Tokens that part Grounding DINO's phrases: start, end, full stop and question mark of BERT's vocabulary."""
_OWL_PROMPT = "a photo of a {}"
_OWL_TOKENS = 16
"""Tokens that OWLv2 takes if its configuration does not say."""


class Found(NamedTuple):
    """Boxes of one image: float64 [N, 4], x1, y1, x2, y2 in pixels, perhaps outside of it; α and β, float64 [N]."""

    boxes: NDArray[np.float64]
    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]


class TextDetector(Protocol):
    """Finds what a name says.

    Attributes:
        kind: what a user calls it.
    """

    kind: str

    def describe(self) -> Description:
        """Return what identifies the detector, the rule of α among it."""
        ...

    def fit_name(self, category: str) -> str:
        """Return the name that is looked for; see `crypsis.models.proposals.NameReader`."""
        ...

    def find(self, image: Image, category: str) -> Found:
        """Return all boxes of an image, uint8 H×W×3 RGB."""
        ...


def fit_text(category: str, count: Callable[[str], int], longest: int) -> str:
    """Return a name without as many last words as are too many for a text encoder; one word stays.

    Args:
        category: words with single spaces.
        count: tokens of a name, with all that is written around it.
        longest: tokens that the encoder takes.
    """
    words = category.split()
    while len(words) > 1 and count(" ".join(words)) > longest:
        words.pop()
    return " ".join(words)


def alpha_of_tokens(rule: str, scores: NDArray[np.float64], phrase: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return α of boxes by a rule of this module.

    Args:
        rule: `relative`, `phrase-max`, `phrase-min` or `library`.
        scores: [N, T] in [0, 1], of each box against each token.
        phrase: [T], which tokens are the name's; one at least.
    """
    own, most = scores[:, phrase], scores.max(axis=1, initial=0.0)
    if rule == "phrase-max":
        return np.asarray(own.max(axis=1))
    if rule == "phrase-min":
        return np.asarray(own.min(axis=1))
    if rule == "library":
        return np.ones(len(scores))
    return np.asarray(np.divide(own.max(axis=1), most, out=np.zeros(len(scores)), where=most > 0))


class GroundingDino:
    """Liu et al., "Grounding DINO" (ECCV 2024), and MM Grounding DINO."""

    kind = "grounding-dino"
    types = ("grounding-dino", "mm-grounding-dino")
    rules = ("relative", "phrase-max", "phrase-min", "library")

    def __init__(self, files: Pretrained, *, alpha: str, device: str, extra: str) -> None:
        """Load network, tokenizer and image processor.

        Args:
            files: of the network.
            alpha: one of `rules`.
            device: `cpu` or `cuda`.
            extra: the extra of Crypsis that brings transformers.

        Raises:
            ModelError: the files are none of such a detector.
            MissingDependencyError: a package is missing, or there is no GPU.
        """
        transformers = import_extra("transformers", extra)
        what = "a Grounding DINO"
        self._files, self._rule, self._device = files, alpha, device
        self._tokenizer = files.tokenizer(transformers.BertTokenizerFast, what=what)
        self._processor = files.read(transformers.GroundingDinoImageProcessorPil, what=what)
        configuration = files.read(transformers.AutoConfig, what=what)
        configuration.disable_custom_kernels = True  # they need a compiler, and a GPU
        dino = f"{'MM' if configuration.model_type == self.types[1] else ''}GroundingDinoForObjectDetection"
        self._network = on_device(files.load(getattr(transformers, dino), what=what, config=configuration), device)
        self._longest = int(configuration.max_text_len)

    def describe(self) -> Description:
        """Return the files' hashes, the rule of α, and how text and images are prepared."""
        size = self._processor.size
        return {
            **self._files.describe("detector"),
            "alpha": self._rule,
            "alpha_never_above_beta": self._rule.startswith("phrase"),
            "prompt": "{}.",
            "longest_text": self._longest,
            "detector_size": f"{size['shortest_edge']} to {size['longest_edge']}",
        }

    def fit_name(self, category: str) -> str:
        """Return the name that is looked for; see `TextDetector.fit_name`."""
        return fit_text(category, lambda name: len(self._tokenizer(f"{name}.")["input_ids"]), self._longest)

    def find(self, image: Image, category: str) -> Found:
        """Return all boxes of an image; see `TextDetector.find`."""
        height, width = image.shape[:2]
        pixels = self._processor(images=[image], return_tensors="pt", input_data_format="channels_last")
        text = self._tokenizer(
            [f"{self.fit_name(category)}."], return_tensors="pt", truncation=True, max_length=self._longest
        )
        tokens = text["input_ids"][0].numpy()
        output = self._network(**pixels.to(self._device), **text.to(self._device))
        scores = _array(output.logits[0].sigmoid())
        phrase = np.zeros(scores.shape[1], np.bool_)
        phrase[: len(tokens)] = ~np.isin(tokens, (*_SPECIAL, self._tokenizer.unk_token_id))
        if not phrase.any():
            raise ModelError(f"{category!r} has no word that the detector knows; write another name.")
        boxes = _corners(output.pred_boxes[0]) * (width, height, width, height)
        return Found(boxes, alpha_of_tokens(self._rule, scores, phrase), scores.max(axis=1))


class Owlv2:
    """Minderer, Gritsenko and Houlsby, "Scaling Open-Vocabulary Object Detection" (NeurIPS 2023)."""

    kind = "owlv2"
    types = ("owlv2",)
    rules = ("library", "phrase-max")

    def __init__(self, files: Pretrained, *, alpha: str, device: str, extra: str) -> None:
        """Load network, tokenizer and image processor; see `GroundingDino`."""
        transformers = import_extra("transformers", extra)
        import_extra("scipy.ndimage", extra)  # its image processor blurs with it before it shrinks
        what = "an OWLv2"
        self._files, self._rule, self._device = files, alpha, device
        self._tokenizer = files.tokenizer(transformers.CLIPTokenizerFast, what=what)
        self._processor = files.read(transformers.Owlv2ImageProcessorPil, what=what)
        self._network = on_device(files.load(transformers.Owlv2ForObjectDetection, what=what), device)
        text = self._network.config.text_config
        self._longest = int(getattr(text, "max_position_embeddings", _OWL_TOKENS))

    def describe(self) -> Description:
        """Return the files' hashes, the rule of α, and how text and images are prepared."""
        size = self._processor.size
        return {
            **self._files.describe("detector"),
            "alpha": self._rule,
            "prompt": _OWL_PROMPT,
            "longest_text": self._longest,
            "detector_size": f"{size['height']}×{size['width']}",
        }

    def fit_name(self, category: str) -> str:
        """Return the name that is looked for; see `TextDetector.fit_name`."""
        return fit_text(
            category, lambda name: len(self._tokenizer(_OWL_PROMPT.format(name))["input_ids"]), self._longest
        )

    def find(self, image: Image, category: str) -> Found:
        """Return all boxes of an image; see `TextDetector.find`."""
        pixels = self._processor(images=[image], return_tensors="pt", input_data_format="channels_last")
        text = self._tokenizer(
            [_OWL_PROMPT.format(self.fit_name(category))],
            return_tensors="pt", padding="max_length", truncation=True, max_length=self._longest,
        )  # fmt: skip
        output = self._network(
            input_ids=text["input_ids"].to(self._device),
            attention_mask=text["attention_mask"].to(self._device),
            pixel_values=pixels["pixel_values"].to(self._device),
        )
        fits, object_score = _array(output.logits[0, :, 0].sigmoid()), _array(output.objectness_logits[0].sigmoid())
        boxes = _corners(output.pred_boxes[0]) * max(image.shape[:2])  # of the image padded to a square
        if self._rule == "library":
            return Found(boxes, np.ones(len(fits)), fits)
        return Found(boxes, fits, object_score)


def _array(values: Any) -> NDArray[np.float64]:
    return np.asarray(values.float().cpu().numpy(), np.float64)


def _corners(boxes: Any) -> NDArray[np.float64]:
    """Return x1, y1, x2, y2 of boxes given as center, width and height."""
    center, half = np.split(_array(boxes), 2, axis=1)
    half = half / 2
    return np.concatenate([center - half, center + half], axis=1)
