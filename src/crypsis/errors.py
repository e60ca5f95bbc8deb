"""Every error a user can be expected to meet.

    CrypsisError                    exit code
    ├── InputError                  2   a wrong argument, file or array
    │   ├── ImageError              2   an image or mask that cannot be read or is not acceptable
    │   ├── DatasetError            2   a folder or manifest that is not a usable data set
    │   ├── ModelError              2   a model file or prediction that does not fit
    │   ├── UnknownNameError        2   a name that is not in a table (suggests the nearest)
    │   ├── UnreachableError        2   a strength that an image cannot be degraded to
    │   └── PlanChangedError        2   a run folder that holds another plan
    ├── IncompleteError             3   work that ended with some of it missing
    └── MissingDependencyError      4   a package or file to be installed or fetched by the user

Each message is one sentence (or two): what was wrong, where, what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "CrypsisError",
    "DatasetError",
    "ImageError",
    "IncompleteError",
    "InputError",
    "MissingDependencyError",
    "ModelError",
    "PlanChangedError",
    "UnknownNameError",
    "UnreachableError",
]


class CrypsisError(Exception):
    """Root of all expected errors; `exit_code` is what the command line returns."""

    exit_code = 2


class InputError(CrypsisError, ValueError):
    """An argument, file or array that cannot be used as given."""


class ImageError(InputError):
    """An image or mask that cannot be decoded or has an unusable type, shape or value."""


class DatasetError(InputError):
    """A folder, manifest or pairing that is not a usable data set."""


class ModelError(InputError):
    """A model file, model specification or model output that does not fit."""


class UnknownNameError(InputError):
    """A name that is not in a table."""

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str], hint: str = "") -> UnknownNameError:
        """Say what `kind` of thing `name` was meant to be, and the nearest of the `known` names."""
        names = list(known)
        near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.5)
        guess = next((n for n in names if near and n.lower() == near[0]), None)
        if guess:
            advice = f"did you mean {guess!r}?"
        elif len(names) <= 12 and ", ".join(names) not in hint:  # else they would be listed twice
            advice = f"known: {', '.join(names)}."
        else:
            advice = f"{len(names)} are known."
        return cls(f"There is no {kind} {name!r}; {advice} {hint}".rstrip())


class UnreachableError(InputError):
    """An image cannot be degraded to the strength that was asked for.

    Attributes:
        strengths: the smallest and the largest that were met; they enclose the target where levels go in steps.
    """

    strengths: tuple[float, ...] = ()


class PlanChangedError(InputError):
    """The run folder belongs to another plan, or its data changed since."""


class IncompleteError(CrypsisError):
    """The work ended, but not all of it is done; giving the same command again continues."""

    exit_code = 3


class MissingDependencyError(CrypsisError, ImportError):
    """A package or a weights file that the user has to install or fetch; the message says how."""

    exit_code = 4
