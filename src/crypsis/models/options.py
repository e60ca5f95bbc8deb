"""Reading the `option=value` pieces of a model specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..errors import ModelError, UnknownNameError

__all__ = ["Reader", "numbers", "one_of", "positive_integer", "positive_number", "read_options", "share", "yes_or_no"]

Reader: TypeAlias = Callable[[str], Any]
"""Text → value; raises `ValueError` with what is allowed."""


def read_options(kind: str, given: Mapping[str, str], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Return the values of the `given` options.

    Raises:
        UnknownNameError: an option that has no reader.
        ModelError: a value that its reader refuses; the message says what is allowed.
    """
    values = {}
    for option, text in given.items():
        if option not in readers:
            raise UnknownNameError.among(f"option of {kind} models", option, [*readers, "name"])
        try:
            values[option] = readers[option](text)
        except ValueError as error:
            raise ModelError(f"{kind} model: {option}={text} is not understood; allowed: {error}.") from None
    return values


def one_of(*allowed: str) -> Reader:
    """Accept one of the `allowed` words."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(" | ".join(allowed))
        return text

    return read


def yes_or_no(text: str) -> bool:
    """Accept `yes` or `no`."""
    return bool(one_of("yes", "no")(text) == "yes")


def positive_integer(text: str) -> int:
    """Accept 1, 2, 3, …."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError("a whole number from 1")
    return int(text)


def positive_number(text: str) -> float:
    """Accept a finite number above 0."""
    return numbers(1, above_zero=True)(text)[0]  # type: ignore[no-any-return]


def share(text: str) -> float:
    """Accept a number from 0 to 1."""
    value = float(numbers(1)(text)[0])
    if not 0.0 <= value <= 1.0:
        raise ValueError("a number from 0 to 1")
    return value


def numbers(count: int, *, above_zero: bool = False) -> Reader:
    """Accept `count` finite numbers separated by slashes, such as `0.485/0.456/0.406`."""

    def read(text: str) -> tuple[float, ...]:
        condition = " above 0" if above_zero else ""
        allowed = f"a number{condition}" if count == 1 else f"{count} numbers{condition} separated by /"
        try:
            values = tuple(float(piece) for piece in text.split("/"))
        except ValueError:
            raise ValueError(allowed) from None
        if len(values) != count or not all(abs(v) < float("inf") and (v > 0 or not above_zero) for v in values):
            raise ValueError(allowed)
        return values

    return read
