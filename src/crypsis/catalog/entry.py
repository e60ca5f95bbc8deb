"""One row of the catalog: what a paper calls a degradation, as data."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
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

    def degrade_at(self, image: Image, level: float, *, seed: int, image_key: str) -> Image:
        """Return `image` at a level between the native severities; at 1, 2, … 5 the same as `degrade`.

        Args:
            image: the clean image, uint8 H×W×3, RGB; it is not changed.
            level: 1..5; see `parameters_at`.
            seed: the run's seed.
            image_key: the image's name inside its data set.

        Raises:
            ImageError: `image` is not uint8 H×W×3.
            InputError: `level` is not in 1..5.
        """
        check_image(image)
        return self.operator(image, **self._with_generator(self.parameters_at(level), seed, image_key))

    def parameters_at(self, level: float) -> dict[str, Any]:
        """Return the parameters at a level, those between two severities interpolated linearly.

        Parameters that the operator takes as whole numbers are rounded to the nearest (of two, to that of the lower
        severity's side; to an odd one where all five are odd), so they go in steps. Where two neighboring severities
        have other parameters altogether, as water and mud of `imagenet-c/spatter`, the nearer one's hold.

        Args:
            level: 1..5.

        Raises:
            InputError: `level` is not in 1..5.
        """
        if not _is_number(level) or not 1 <= level <= len(self.parameters):
            raise InputError(f"{self.name} has levels from 1 to {len(self.parameters)}; got {level!r}.")
        lower = min(int(level), len(self.parameters) - 1)
        before, after, share = self.parameters[lower - 1], self.parameters[lower], float(level) - lower
        if share in (0.0, 1.0) or before.keys() != after.keys():
            return dict(after if share > 0.5 else before)
        return {name: self._between(name, before[name], after[name], share) for name in before}

    def _between(self, name: str, before: Any, after: Any, share: float) -> Any:
        """Return a parameter's value at a share of the way from one severity to the next."""
        if before == after:
            return before
        if isinstance(before, tuple):
            return tuple(self._between(name, a, b, share) for a, b in zip(before, after, strict=True))
        if not _is_number(before):
            return after if share > 0.5 else before
        distance = (after - before) * share
        kind = str(inspect.signature(self.operator).parameters[name].annotation)
        if "float" in kind:
            return before + distance
        # an odd number stays odd where it must be, as the length of a centered kernel
        step = 2 if all(isinstance(p[name], int) and p[name] % 2 for p in self.parameters) else 1
        return before + step * math.ceil(abs(distance) / step - 0.5) * (1 if after > before else -1)

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
        return self._with_generator(dict(self.parameters[int(severity) - 1]), seed, image_key)

    def _with_generator(self, parameters: dict[str, Any], seed: int, image_key: str) -> dict[str, Any]:
        """Return parameters, with the generator of an image if the operator takes one."""
        return {**parameters, "rng": rng_for(seed, image_key, self.name)} if self.random else parameters


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
