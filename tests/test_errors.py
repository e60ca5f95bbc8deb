from __future__ import annotations

import inspect
import pickle

import pytest

from crypsis import errors
from crypsis.errors import CrypsisError, UnknownNameError

CODES = {"InputError": 2, "IncompleteError": 3, "MissingDependencyError": 4}


def test_every_error_is_exported_and_stands_in_the_tree() -> None:
    found = {n for n, c in vars(errors).items() if inspect.isclass(c) and issubclass(c, Exception)}
    assert found == set(errors.__all__)
    assert errors.__doc__ is not None
    for name in found:
        assert name in errors.__doc__
        error = getattr(errors, name)
        assert issubclass(error, CrypsisError)
        kind = next((k for k in CODES if issubclass(error, getattr(errors, k))), "InputError")
        assert error.exit_code == CODES[kind]


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_cross_process_borders(name: str) -> None:
    error = getattr(errors, name)("a sentence.")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), str(again)) == (type(error), "a sentence.")


def test_unknown_names() -> None:
    known = ["cod10k-c/rain", "cod10k-c/fog"]
    assert "did you mean 'cod10k-c/rain'?" in str(UnknownNameError.among("degradation", "cod10k-c/rainn", known))
    assert "known: cod10k-c/rain, cod10k-c/fog." in str(UnknownNameError.among("degradation", "zzz", known))
    assert "100 are known" in str(UnknownNameError.among("thing", "zzz", [f"name{i}" for i in range(100)]))
    assert str(UnknownNameError.among("thing", "zzz", known, "Look in the list.")).endswith("Look in the list.")
