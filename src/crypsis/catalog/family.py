"""What the rows of one paper share, and how a row is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..taxonomy import Cause, Effect, Group
from ..types import Image
from .entry import Entry

__all__ = ["Family"]


@dataclass(frozen=True, slots=True)
class Family:
    """The rows of one paper.

    Attributes:
        name: what their names begin with.
        paper: the paper's key.
        source: where operators and levels are defined, unless a row says otherwise.
    """

    name: str
    paper: str
    source: str

    def row(
        self,
        term: str,
        title: str,
        operator: Callable[..., Image],
        place: tuple[Cause, Effect, Group],
        note: str,
        *levels: Mapping[str, Any],
        aliases: tuple[str, ...] = (),
        source: str | None = None,
        field: Callable[..., NDArray[np.float32]] | None = None,
        monotone: bool = True,
        extra: bool = False,
        **parameters: Any,
    ) -> Entry:
        """Return one row; see `Entry` for what is not named here.

        Args:
            term: the paper's own word.
            title: what a figure calls it.
            operator: the operator.
            place: cause, effect and group.
            note: what a user of the numbers should know.
            levels: the parameters at each severity; or, instead,
            parameters: each parameter's five values as a tuple, or the one it has at all five.
            aliases: other terms.
            source: where this row is defined.
            field: where content comes from.
            monotone: whether a higher severity is stronger on average.
            extra: whether the row stands beside the paper's counted ones.
        """
        five = {name: value if isinstance(value, tuple) else (value,) * 5 for name, value in parameters.items()}
        by_level = levels or tuple(dict(zip(five, row, strict=True)) for row in zip(*five.values(), strict=True))
        return Entry(
            name=f"{self.name}/{term}",
            title=title,
            paper=self.paper,
            term=term,
            operator=operator,
            parameters=by_level,
            cause=place[0],
            effect=place[1],
            group=place[2],
            source=source or self.source,
            field=field,
            monotone=monotone,
            aliases=aliases,
            extra=extra,
            note=note,
        )
