from __future__ import annotations

import inspect
import pickle

import pytest

from crypsis.catalog import get_entry, list_entries
from crypsis.errors import InputError, UnknownNameError
from crypsis.taxonomy import Cause, Effect, Group

NAMES = (
    "cod10k-c/brightness",
    "cod10k-c/contrast",
    "cod10k-c/fog",
    "cod10k-c/rain",
    "cod10k-c/jpeg_compression",
    "cod10k-c/gaussian_noise",
    "cod10k-c/gaussian_blur",
    "cod10k-c/motion_blur",
)


def test_names_in_the_order_of_table_3() -> None:
    assert tuple(e.name for e in list_entries(family="cod10k-c")) == NAMES


@pytest.mark.parametrize(
    ("term", "parameter", "levels"),
    [
        ("gaussian_noise", "sigma", [8, 16, 24, 32, 40]),
        ("motion_blur", "kernel", [3, 5, 7, 9, 11]),
        ("gaussian_blur", "sigma", [0.8, 1.2, 1.6, 2.0, 2.5]),
        ("brightness", "factor", [0.85, 0.70, 0.55, 0.40, 0.30]),
        ("contrast", "factor", [0.85, 0.70, 0.55, 0.40, 0.30]),
        ("fog", "alpha", [0.12, 0.20, 0.28, 0.36, 0.44]),
        ("jpeg_compression", "quality", [70, 55, 40, 30, 20]),
    ],
)
def test_parameters_of_section_3_2(term: str, parameter: str, levels: list[float]) -> None:
    assert [dict(p) for p in get_entry("COD10K-C", term).parameters] == [{parameter: v} for v in levels]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_complete(name: str) -> None:
    entry = get_entry(name)
    assert entry.paper == "COD10K-C"
    assert entry.family == "cod10k-c"
    assert entry.name == f"cod10k-c/{entry.term}"
    assert entry.severities == (1, 2, 3, 4, 5)
    assert "section" in entry.source
    assert entry.note
    assert entry.random == (entry.term in ("rain", "gaussian_noise"))
    assert not entry.moves_pixels
    assert all(
        p.kind is p.KEYWORD_ONLY for n, p in inspect.signature(entry.operator).parameters.items() if n != "image"
    )
    assert pickle.loads(pickle.dumps(entry)) == entry  # noqa: S301  rows travel to worker processes


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (("cod10k-c/rain",), "cod10k-c/rain"),
        (("COD10K-C/Rain",), "cod10k-c/rain"),
        (("cod10k-c/jpeg",), "cod10k-c/jpeg_compression"),
        (("cod10k-c/darkness",), "cod10k-c/brightness"),
        (("COD10K-C", "rain"), "cod10k-c/rain"),
        (("cod10k-c", "jpeg"), "cod10k-c/jpeg_compression"),
    ],
)
def test_addresses(address: tuple[str, ...], name: str) -> None:
    assert get_entry(*address).name == name


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (("cod10k-c/rian",), "did you mean 'rain'"),
        (("cod10k-c/fogg",), "did you mean 'fog'"),
        (("COD10K-C", "motionblur"), "did you mean 'motion_blur'"),
        (("cod10kc/rain",), "did you mean 'cod10k-c/rain'"),
        (("rain",), "use 'cod10k-c/rain'"),
        (("Darkness",), "use 'cod10k-c/brightness'"),
        (("gausian_noise",), "did you mean 'cod10k-c/gaussian_noise'"),
        (("COD10K", "rain"), "did you mean 'cod10k-c'"),
        (("",), "There is no degradation ''"),
        (("cod10k-c/",), "There is no degradation of COD10K-C ''"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(address: tuple[str, ...], message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_entry(*address)
    assert message in str(caught.value)


@pytest.mark.parametrize("address", [(3,), (None,), ("COD10K-C", 3)])
def test_names_are_strings(address: tuple[object, ...]) -> None:
    with pytest.raises(InputError, match="strings"):
        get_entry(*address)


@pytest.mark.parametrize(
    ("condition", "terms"),
    [
        ({"cause": Cause.SENSOR}, {"gaussian_noise", "gaussian_blur", "motion_blur"}),
        ({"cause": "e"}, {"fog", "rain"}),
        ({"effect": "WX"}, {"fog", "rain"}),
        ({"effect": Effect.BLUR}, {"gaussian_blur", "motion_blur"}),
        ({"group": "g10"}, {"contrast"}),
        ({"group": Group.G12}, set()),
        ({"paper": "cod10k-c", "cause": "R", "effect": "CP"}, {"jpeg_compression"}),
        ({"cause": "S", "effect": "WX"}, set()),
    ],
)
def test_filters(condition: dict[str, object], terms: set[str]) -> None:
    assert {e.term for e in list_entries(family="cod10k-c", **condition)} == terms


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"family": "cod10k"}, "did you mean 'cod10k-c'"),
        ({"paper": "COD10K"}, "did you mean 'COD10K-C'"),
        ({"cause": "Q"}, "There is no cause 'Q'; known: E, S, R, T."),
        ({"effect": "wxy"}, "did you mean 'WX'"),
        ({"group": "G13"}, "There is no group 'G13'"),
    ],
)
def test_unknown_filters(condition: dict[str, str], message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        list_entries(**condition)
    assert message in str(caught.value)
