"""The catalog: what papers call degradations, as rows that can be looked up, filtered and applied."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

from ..errors import InputError, UnknownNameError
from ..taxonomy import Cause, Effect, Group
from . import agnolucci2024, cod10k_c, hendrycks2019, liu2024
from .entry import Entry
from .matrix import taxonomy_matrix

__all__ = ["Entry", "get_entry", "list_entries", "map_paper_term", "select_entries", "taxonomy_matrix"]

_FAMILIES = (hendrycks2019, agnolucci2024, liu2024, cod10k_c)
"""One module a paper, each with a tuple `ENTRIES`; a new paper is a module and its name here."""

_ENTRIES: tuple[Entry, ...] = tuple(entry for family in _FAMILIES for entry in family.ENTRIES)

_Code = TypeVar("_Code", bound=Enum)


def _address(entry: Entry) -> list[tuple[str, str]]:
    """Return every (family or paper, term or alias) that means `entry`, in lower case."""
    terms = (entry.term, entry.name.partition("/")[2], *entry.aliases)
    return [(o.lower(), t.lower()) for o in dict.fromkeys((entry.family, entry.paper)) for t in terms]


_BY_ADDRESS: dict[tuple[str, str], Entry] = {}
for _entry in _ENTRIES:
    for _key in _address(_entry):
        if _BY_ADDRESS.setdefault(_key, _entry) is not _entry:
            raise ValueError(f"{_entry.name} and {_BY_ADDRESS[_key].name} share the name {'/'.join(_key)}")


def get_entry(name: str, term: str | None = None) -> Entry:
    """Return one row of the catalog.

    Args:
        name: `family/term` such as `cod10k-c/rain`, where the family may also be the paper's key and the term an
            alias (`cod10k-c/jpeg`); or the family or paper alone, with `term`. Case does not matter.
        term: the paper's word for the degradation.

    Raises:
        UnknownNameError: no row has that name; the message suggests the nearest.
        InputError: `name` or `term` is not a string.
    """
    if not isinstance(name, str) or not isinstance(term, str | None):
        raise InputError(f"A degradation is named by strings such as 'cod10k-c/rain'; got {name!r}, {term!r}.")
    owner, slash, rest = name.partition("/") if term is None else (name, "/", term)
    if not slash:
        homes = [e.name for e in _ENTRIES if any(t == name.lower() for _, t in _address(e))]
        if homes:
            raise UnknownNameError(
                f"There is no degradation {name!r} without its family: use {' or '.join(map(repr, homes))}."
            )
        raise UnknownNameError.among("degradation", name, (e.name for e in _ENTRIES))
    entry = _BY_ADDRESS.get((owner.lower(), rest.lower()))
    if entry is not None:
        return entry
    own = [e for e in _ENTRIES if owner.lower() in (e.family.lower(), e.paper.lower())]
    if own:
        terms = [term for e in own for term in (e.term, *e.aliases)]
        raise UnknownNameError.among(f"degradation of {own[0].paper}", rest, terms)
    if term is None:
        raise UnknownNameError.among("degradation", name, (e.name for e in _ENTRIES))
    raise UnknownNameError.among(
        "family or paper", owner, dict.fromkeys(o for e in _ENTRIES for o in (e.family, e.paper))
    )


def map_paper_term(paper: str, term: str) -> Entry:
    """Return the row that a paper means by one of its terms.

    Args:
        paper: the paper's key, such as `Liu_IJCV_2024`, or its family. Case does not matter.
        term: the paper's word or abbreviation for the degradation, or another alias.

    Raises:
        UnknownNameError: there is no such paper, or it has no such term; the message suggests the nearest.
        InputError: `paper` or `term` is not a string.
    """
    if not isinstance(term, str):
        raise InputError(f"A paper's term is a string such as 'fog'; got {term!r}.")
    return get_entry(paper, term)


def list_entries(
    *,
    family: str | None = None,
    paper: str | None = None,
    cause: Cause | str | None = None,
    effect: Effect | str | None = None,
    group: Group | str | None = None,
) -> tuple[Entry, ...]:
    """Return the rows that meet every condition given, in the order of their papers; all rows without one.

    Args:
        family: first part of the name, such as `cod10k-c`. Case does not matter.
        paper: key of the paper, such as `COD10K-C`. Case does not matter.
        cause: a `Cause` or its code, such as `S`.
        effect: an `Effect` or its code, such as `WX`.
        group: a `Group` or its code, such as `G8`.

    Raises:
        UnknownNameError: a family, paper or code that does not exist.
    """
    if family is not None:
        family = _among("family", family, [e.family for e in _ENTRIES])
    if paper is not None:
        paper = _among("paper", paper, [e.paper for e in _ENTRIES])
    wanted = (
        family,
        paper,
        None if cause is None else _member(Cause, cause),
        None if effect is None else _member(Effect, effect),
        None if group is None else _member(Group, group),
    )
    return tuple(
        e
        for e in _ENTRIES
        if all(
            w is None or w == v for w, v in zip(wanted, (e.family, e.paper, e.cause, e.effect, e.group), strict=True)
        )
    )


def select_entries(families: Sequence[str] = (), names: Sequence[str | Entry] = ()) -> tuple[Entry, ...]:
    """Return the rows of families, then those named, each once.

    Args:
        families: families, in order.
        names: names, or rows themselves (with options of their own, say).

    Raises:
        UnknownNameError: a family or a name that does not exist.
    """
    rows = [row for family in families for row in list_entries(family=family)]
    rows += [get_entry(name) if isinstance(name, str) else name for name in names]
    return tuple({row.name: row for row in rows}.values())


def _among(kind: str, name: str, known: list[str]) -> str:
    """Return the one of `known` that is `name` but for case."""
    for candidate in known:
        if candidate.lower() == str(name).lower():
            return candidate
    raise UnknownNameError.among(kind, str(name), dict.fromkeys(known))


def _member(axis: type[_Code], value: _Code | str) -> _Code:
    """Return a member given as itself or by its code."""
    if isinstance(value, axis):
        return value
    return axis(_among(axis.__name__.lower(), str(value), [str(m.value) for m in axis]))
