from __future__ import annotations

import pytest

from crypsis.taxonomy import Cause, Effect, Group


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        (Cause, ["E", "S", "R", "T"]),
        (Effect, ["N", "B", "WX", "CP", "CL", "IL", "GD", "RZ", "OC", "TX", "TV"]),
        (Group, [f"G{n}" for n in range(1, 13)]),
    ],
)
def test_codes_titles_meanings(kind: type[Cause] | type[Effect] | type[Group], codes: list[str]) -> None:
    assert [member.code for member in kind] == codes
    assert all(kind(code).title and kind(code).meaning.endswith(".") for code in codes)
    assert [str(member) for member in kind] == codes
