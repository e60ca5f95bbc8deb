"""`sam3`: SAM 3 as an observer, which finds and cuts out what a name says in one go (SeamCam's paper, appendix E).

SAM 3 says of the image how sure it is that what the name says is there at all, its presence p, and of each of its
queries how well it fits, q.

    alpha=library    α = 1, β = p·q, which is what transformers returns (the default)
    alpha=presence   α = p, β = q: nothing is proposed that passes where SAM 3 doubts that there is any

Images and masks are prepared and brought back as transformers' processor does it; see `crypsis.models.box_segmenters`.
SAM 3 needs torchvision: pip install 'crypsis[sam3]'. Its weights, facebook/sam3, are given to those who accept their
terms on their page of the hub. Options as for `grounding-dino`, without those of a segmenter.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..errors import CrypsisError, ModelError
from ..types import Image, Proposals, check_image
from .box_segmenters import normalization, square_pixels
from .foreign import import_extra, on_device, one_thread, told
from .hub import Pretrained, find_pretrained, quiet
from .hub_observer import best_boxes, versions
from .options import Reader, one_of, positive_integer, read_options, share
from .segmenter import Description
from .text_detectors import Found, fit_text

__all__ = ["Sam3Observer"]

MODEL = "facebook/sam3"
EXTRA = "sam3"
RULES = ("library", "presence")
_READERS: dict[str, Reader] = {
    "alpha": one_of(*RULES),
    "score": share,
    "limit": positive_integer,
    "revision": str,
    "device": one_of("cpu", "cuda"),
}


class Sam3Observer:
    """SAM 3, loaded."""

    def __init__(
        self,
        files: Pretrained,
        *,
        alpha: str = "library",
        score: float = 0.05,
        limit: int = 50,
        device: str = "cpu",
        name: str = "sam3",
    ) -> None:
        """Load network and tokenizer.

        Args:
            files: of the network.
            alpha: `library` or `presence`.
            score: proposals with a smaller β are left out, in [0, 1].
            limit: proposals of an image at most, the most confident.
            device: `cpu` or `cuda`.
            name: label.

        Raises:
            ModelError: the files are none of SAM 3.
            MissingDependencyError: a package is missing, or there is no GPU.
        """
        transformers = import_extra("transformers", EXTRA)
        import_extra("torchvision", EXTRA)
        self.name = name
        self._files, self._rule, self._score, self._limit, self._device = files, alpha, score, limit, device
        self._tokenizer = files.tokenizer(transformers.CLIPTokenizerFast, what="a SAM 3")
        self._network = on_device(files.load(transformers.Sam3Model, what="a SAM 3"), device)
        configuration = self._network.config
        self._side = int(configuration.vision_config.backbone_config.image_size)
        self._longest = int(configuration.text_config.max_position_embeddings)
        self._mean, self._std = normalization(files, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))

    @classmethod
    def from_specification(cls, target: str, options: Mapping[str, str], name: str | None) -> Sam3Observer:
        """Load `sam3[:PATH_OR_ID][,option=value…]`."""
        given = read_options("sam3", options, _READERS)
        for package in ("torch", "transformers", "torchvision"):
            import_extra(package, EXTRA)
        files = find_pretrained(
            target or MODEL, revision=given.pop("revision", None), types=("sam3", "sam3_video"), extra=EXTRA,
            option="sam3:FOLDER", reads=True,
        )  # fmt: skip
        return cls(files, **given, name=name or "sam3")

    def describe(self) -> Description:
        """Return the files' hashes, the rule of α, sizes, options, and versions."""
        return {
            "observer": "sam3",
            **self._files.describe("detector"),
            "alpha": self._rule,
            "prompt": "{}",
            "longest_text": self._longest,
            "detector_size": f"{self._side}×{self._side}",
            "score": self._score,
            "limit": self._limit,
            **versions(self._device),
        }

    def fit_name(self, category: str) -> str:
        """Return the name that is looked for; see `NameReader.fit_name`."""
        return fit_text(category, lambda name: len(self._tokenizer(name)["input_ids"]), self._longest)

    def propose(self, image: Image, category: str) -> Proposals:
        """Return the regions that may show what `fit_name` makes of the category; see `ProposalSource.propose`."""
        height, width = check_image(image).shape[:2]
        try:
            with one_thread(), quiet():
                found, masks = self._find(image, category)
        except CrypsisError as error:
            raise ModelError(f"{self.name}: {error}") from error
        except Exception as error:
            raise ModelError(f"{self.name}: failed on an image of {height}×{width}: {told(error)}.") from error
        return Proposals(found.alpha, found.beta, masks, found.boxes)

    def _find(self, image: Image, category: str) -> tuple[Found, NDArray[np.bool_]]:
        from torch.nn.functional import interpolate

        height, width = image.shape[:2]
        text = self._tokenizer(
            [self.fit_name(category)],
            return_tensors="pt",
            padding="max_length",
            truncation=True,
            max_length=self._longest,
        )
        output = self._network(
            pixel_values=square_pixels(image, self._side, self._mean, self._std).to(self._device),
            input_ids=text["input_ids"].to(self._device),
            attention_mask=text["attention_mask"].to(self._device),
        )
        fits = np.asarray(output.pred_logits[0].sigmoid().float().cpu().numpy(), np.float64)
        presence = float(output.presence_logits[0].sigmoid())
        corners = np.asarray(output.pred_boxes[0].float().cpu().numpy(), np.float64)
        boxes = corners * (width, height, width, height)
        if self._rule == "library":
            every = Found(boxes, np.ones(len(fits)), fits * presence)
        else:
            every = Found(boxes, np.full(len(fits), presence), fits)
        found, chosen = best_boxes(every, (height, width), self._score, self._limit)
        masks = np.zeros((len(chosen), height, width), np.bool_)
        for place, query in enumerate(chosen):  # one by one: memory
            small = output.pred_masks[0, int(query)].float().sigmoid().cpu()[None, None]
            large = interpolate(small, (height, width), mode="bilinear", align_corners=False)
            masks[place] = (large[0, 0] > 0.5).numpy()
        return found, masks
