"""What a training is: everything its weights depend on, beside the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, UnknownNameError

__all__ = ["PARTS", "PRECISIONS", "Settings"]

PARTS = ("consistency", "frequency", "augmentation")
"""What an ablation may leave out: the losses of uncertainty and consistency, the branch of the frequency prior, the
corrupted view."""

PRECISIONS = ("auto", "float32", "bfloat16", "float16")
"""Of the forward pass. `auto`: on a GPU bfloat16 where it has it, else float16; on a CPU float32."""


@dataclass(frozen=True)
class Settings:
    """How to train; the defaults are those of the paper (COD10K-C, section 4.3).

    Attributes:
        epochs: passes over the training images.
        batch: images per step, of all processes together; the last step of an epoch takes what is left.
        size: side of the square that images are brought to, in pixels.
        learning_rate: of AdamW at the start; it falls to 0 along half a cosine.
        weight_decay: of AdamW.
        seed: of the first weights, the order of the images, the corruptions, the flips, and what is held out.
        without: parts left out; some of `PARTS`.
        encoder: a name that `NetworkOptions` knows.
        precision: one of `PRECISIONS`.
        accumulate: pieces that a batch is worked through in, for less memory; batch norm sees one piece at a time.
        clean_view_first: work through the clean view and forget its graph before the corrupted view, for half the
            memory; the consistency loss then draws the corrupted prediction to the clean one, not both together.
        curriculum_start: share of the images, the easiest, that the first epoch of a curriculum shows.
        curriculum_until: share of the epochs after which a curriculum shows all images.
    """

    epochs: int = 50
    batch: int = 8
    size: int = 384
    learning_rate: float = 1e-4
    weight_decay: float = 0.05
    seed: int = 0
    without: tuple[str, ...] = ()
    encoder: str = "efficientnet-b0"
    precision: str = "auto"
    accumulate: int = 1
    clean_view_first: bool = False
    curriculum_start: float = 0.4
    curriculum_until: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        for name in ("epochs", "batch", "accumulate"):
            if getattr(self, name) < 1:
                raise InputError(f"Training needs {name} of at least 1; got {getattr(self, name)}.")
        if self.size < 64:
            raise InputError(f"Training needs a size of at least 64 pixels; got {self.size}.")
        if not (0 < self.learning_rate < float("inf")) or not (0 <= self.weight_decay < float("inf")):
            raise InputError(
                f"The learning rate is above 0 and the weight decay at least 0; got {self.learning_rate} and "
                f"{self.weight_decay}."
            )
        if not (0 < self.curriculum_start <= 1 and 0 <= self.curriculum_until <= 1):
            raise InputError(
                "A curriculum starts with a share of the images above 0 and at most 1, and shows all of them after a "
                f"share of the epochs from 0 to 1; got {self.curriculum_start} and {self.curriculum_until}."
            )
        for part in self.without:
            if part not in PARTS:
                raise UnknownNameError.among("part to train without", part, PARTS)
        if self.precision not in PRECISIONS:
            raise UnknownNameError.among("precision", self.precision, PRECISIONS)
        object.__setattr__(self, "without", tuple(part for part in PARTS if part in self.without))

    def has(self, part: str) -> bool:
        """Tell whether one of `PARTS` is trained with."""
        return part not in self.without

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {**dataclasses.asdict(self), "without": list(self.without)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        """Return the settings that `to_dict` wrote."""
        without: Sequence[str] = values["without"]
        return cls(**{**values, "without": tuple(without)})
