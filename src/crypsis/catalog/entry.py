"""One row of the catalog: what a paper calls a degradation, as data."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..seeds import rng_for
from ..taxonomy import Cause, Effect, Group
from ..types import Image, check_image

__all__ = ["Entry"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A degradation of a paper: an operator, its parameters at severities 1–5, its place in the taxonomy.

    Attributes:
        name: `family/term`, the canonical name.
        title: what a figure calls it.
        paper: the key of the paper that defines the five levels.
        term: the paper's own word for it.
        operator: pure function uint8 H×W×3 → uint8 H×W×3 with keyword-only physical parameters.
        parameters: five mappings, one per severity, mildest first.
        cause: where in the imaging chain it arises.
        effect: what one sees.
        group: the canonical group.
        source: where operator and parameters are defined.
        field: where the content of each output pixel comes from, for rows that move content: a function
            (height, width, **parameters, rng) → float32 H×W×2 of source coordinates (x, y) in pixels, drawn from
            `rng` as the operator draws. None where content stays in place.
        monotone: True where a higher severity is stronger on average over photographs (PSNR).
        aliases: other terms that mean this row.
        extra: beside the paper's counted rows: not one of those its tables report.
        note: what a user of the numbers should know.
    """

    name: str
    title: str
    paper: str
    term: str
    operator: Callable[..., Image]
    parameters: tuple[Mapping[str, Any], ...]
    cause: Cause
    effect: Effect
    group: Group
    source: str
    field: Callable[..., NDArray[np.float32]] | None = None
    monotone: bool = True
    aliases: tuple[str, ...] = ()
    extra: bool = False
    note: str = ""
    random: bool = dataclasses.field(init=False)
    """Whether the operator draws random numbers (read off its signature)."""

    def __post_init__(self) -> None:
        """Check the row against its operator's signature."""
        signature = inspect.signature(self.operator).parameters
        accepted = {n for n, p in signature.items() if p.kind is p.KEYWORD_ONLY} - {"rng"}
        required = {n for n in accepted if signature[n].default is inspect.Parameter.empty}
        if len(self.parameters) != 5:
            raise ValueError(f"{self.name}: five severities, not {len(self.parameters)}")
        for level, values in enumerate(self.parameters, 1):
            if not required <= set(values) <= accepted:
                raise ValueError(f"{self.name}@{level}: parameters {sorted(values)}, operator {sorted(accepted)}")
        object.__setattr__(self, "random", "rng" in signature)

    def with_options(self, **options: Any) -> Entry:
        """Return this row with more parameters of its operator, the same at every severity.

        For choices that are no part of the published levels, such as `textures=` (a folder) of `imagenet-c/frost`.

        Raises:
            InputError: the operator has no such parameter.
        """
        try:
            return dataclasses.replace(self, parameters=tuple({**levels, **options} for levels in self.parameters))
        except ValueError as error:
            raise InputError(f"An option that the operator does not have: {error}.") from None

    @property
    def family(self) -> str:
        """The part of the name before the slash."""
        return self.name.partition("/")[0]

    @property
    def moves_pixels(self) -> bool:
        """Whether labels may no longer lie on the object they were drawn for."""
        return self.field is not None

    @property
    def severities(self) -> tuple[int, ...]:
        """The native severities, `(1, 2, 3, 4, 5)`."""
        return tuple(range(1, len(self.parameters) + 1))

    def degrade(self, image: Image, severity: int, *, seed: int, image_key: str) -> Image:
        """Return `image` (uint8 H×W×3, RGB) at a native severity, as new memory.

        Args:
            image: the clean image; it is not changed.
            severity: 1..5.
            seed: the run's seed.
            image_key: the image's name inside its data set.

        Raises:
            ImageError: `image` is not uint8 H×W×3.
            InputError: `severity` is not one of 1..5.
        """
        check_image(image)
        return self.operator(image, **self._arguments(severity, seed, image_key))

    def source_of(
        self, height: int, width: int, severity: int, *, seed: int, image_key: str
    ) -> NDArray[np.float32] | None:
        """Return where the content of each pixel of `degrade`'s output comes from.

        Args:
            height: of the image, in pixels.
            width: of the image, in pixels.
            severity: 1..5.
            seed: the run's seed.
            image_key: the image's name inside its data set.

        Returns:
            float32 H×W×2, source coordinates (x, y) in pixels of the clean image; None where nothing moves.

        Raises:
            InputError: `severity` is not one of 1..5.
        """
        if self.field is None:
            return None
        return self.field(height, width, **self._arguments(severity, seed, image_key))

    def _arguments(self, severity: int, seed: int, image_key: str) -> dict[str, Any]:
        """Return the operator's keyword arguments at a severity, with its generator if it takes one."""
        whole = hasattr(severity, "__index__") and not isinstance(severity, bool)
        if not whole or severity not in self.severities:
            raise InputError(f"{self.name} has severities 1 to {len(self.parameters)}; got {severity!r}.")
        values = dict(self.parameters[int(severity) - 1])
        if self.random:
            values["rng"] = rng_for(seed, image_key, self.name)
        return values
