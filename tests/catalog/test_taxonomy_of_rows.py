"""The catalog on the cause × effect taxonomy: filters, papers' terms, the matrix, and the rows of `real-camera`."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest

from command_line import run
from crypsis.catalog import Entry, get_entry, list_entries, map_paper_term, taxonomy_matrix
from crypsis.errors import InputError, UnknownNameError
from crypsis.taxonomy import Cause, Effect, Group

ENTRIES = list_entries()
AXES: dict[str, Any] = {"cause": Cause, "effect": Effect, "group": Group}
USUAL = {  # group → its usual cause and effect; None where any will do
    "G1": "S N", "G2": "S B", "G3": "R RZ", "G4": "R CP", "G5": "R CL", "G6": "R IL", "G7": "R GD", "G8": "E WX",
    "G9": "E OC", "G10": "R TX", "G11": "T *", "G12": "* TV",
}  # fmt: skip

REAL_CAMERA = {  # in the order of the paper's stages: cause, effect, group, abbreviation
    "fog": "E WX G8 F",
    "lens_obstruction": "S OC G9 LO",
    "focus_motor_damage": "S B G2 FM-D",
    "ccd_sensor_damage": "S N G1 CCD-D",
    "cmos_sensor_damage": "S N G1 CMOS-D",
    "insufficient_blc": "R IL G6 I-BLC",
    "excessive_blc": "R IL G6 E-BLC",
    "lens_shading_damage": "R IL G6 LSC-D",
    "awb_damage": "R CL G5 AWB-D",
    "bad_pixel_correction": "R N G1 BPC-D",
    "cfa_interpolation_damage": "R TX G10 CFAI-D",
    "gamma_damage": "R TX G10 GC-D",
    "color_space_conversion_damage": "R CL G5 CSC-D",
    "memory_exceptions": "T TV G11 ME",
    "transfer_harness_exceptions": "T TV G11 THE",
    "sensor_broken": "T TV G11 broken_sensor",
    "synchronization_exceptions": "T TV G11 SE",
}


def test_rows_of_real_camera() -> None:
    rows = list_entries(family="real-camera")
    assert [e.term for e in rows] == list(REAL_CAMERA)
    assert {e.term: f"{e.cause} {e.effect} {e.group} {e.aliases[0]}" for e in rows} == REAL_CAMERA
    assert [e.term for e in rows if e.extra] == ["synchronization_exceptions"]
    assert [e.term for e in rows if e.moves_pixels] == ["synchronization_exceptions"]
    assert {e.paper for e in rows} == {"Liu_IJCV_2024"}


def ramp(low: float, high: float) -> list[float]:
    """imdeg's five levels between two values."""
    return [low + step / 4 * (high - low) for step in range(5)]


@pytest.mark.parametrize(
    ("term", "parameter", "levels"),
    [
        ("fog", "density", ramp(0.05, 0.25)),
        ("fog", "airlight", [0.85 - p for p in ramp(0.05, 0.25)]),
        ("ccd_sensor_damage", "defects", [round(d) for d in ramp(5, 40)]),
        ("cmos_sensor_damage", "defects", [round(d) for d in ramp(5, 40)]),
        ("lens_shading_damage", "falloff", ramp(0.1, 0.8)),
        ("awb_damage", "excess", [100 * p for p in ramp(0.05, 0.25)]),
        ("bad_pixel_correction", "fraction", ramp(0.01, 0.6)),
        ("cfa_interpolation_damage", "fraction", ramp(0.05, 0.6)),
        ("color_space_conversion_damage", "fraction", ramp(0.05, 0.6)),
        ("gamma_damage", "gamma", ramp(0.5, 3.0)),
        ("transfer_harness_exceptions", "share", ramp(0.05, 0.5)),
        ("lens_obstruction", "drops", [round(d) for d in ramp(50, 400)]),
        ("lens_obstruction", "scale", [round(0.08 - round(d) / 10000, 4) for d in ramp(50, 400)]),
        ("sensor_broken", "spots", [round(n) for n in ramp(3, 15)]),
        ("sensor_broken", "spot_weight", ramp(0.2, 0.8)),
        ("sensor_broken", "band_strength", [0, *ramp(0.2, 1.0)[1:]]),
        ("sensor_broken", "leak_half_width", [0, 0, *(round(n) for n in ramp(10, 40)[2:])]),
    ],
)
def test_levels_are_imdegs_ramps(term: str, parameter: str, levels: list[float]) -> None:
    found = [values[parameter] for values in get_entry("real-camera", term).parameters]
    assert found == pytest.approx(levels, abs=1e-9)


@pytest.mark.parametrize("axis", AXES)
def test_filters_divide_the_catalog(axis: str) -> None:
    parts = [list_entries(**{axis: member}) for member in AXES[axis]]
    for member, part in zip(AXES[axis], parts, strict=True):
        assert part == tuple(e for e in ENTRIES if getattr(e, axis) is member)
        assert part == list_entries(**{axis: member.code}) == list_entries(**{axis: member.code.lower()})
    assert sorted(e.name for part in parts for e in part) == sorted(e.name for e in ENTRIES)


def test_filters_together() -> None:
    for cause, effect in product(Cause, Effect):
        expected = [e for e in ENTRIES if e.cause is cause and e.effect is effect]
        assert list(list_entries(cause=cause, effect=effect)) == expected
    rows = list_entries(paper="liu_ijcv_2024", cause="R", effect="IL")
    assert [e.term for e in rows] == ["insufficient_blc", "excessive_blc", "lens_shading_damage"]
    assert rows == list_entries(family="Real-Camera", group="g6")
    assert list_entries(family="cod10k-c", paper="Liu_IJCV_2024") == ()
    assert list_entries(group="G12") == ()


def test_families_and_papers_are_whole() -> None:
    assert tuple(e for f in dict.fromkeys(e.family for e in ENTRIES) for e in list_entries(family=f)) == ENTRIES
    assert tuple(e for p in dict.fromkeys(e.paper for e in ENTRIES) for e in list_entries(paper=p)) == ENTRIES


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_other_places_than_the_usual_are_explained(entry: Entry) -> None:
    cause, effect = USUAL[entry.group.code].split()
    if (cause, effect) != (entry.cause.code, entry.effect.code) and cause not in ("*", entry.cause.code):
        assert "cause" in entry.note.lower()
    if effect not in ("*", entry.effect.code):
        assert "effect" in entry.note.lower()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_all_names_resolve(entry: Entry) -> None:
    for owner in (entry.family, entry.paper, entry.paper.upper()):
        for term in (entry.term, entry.name.partition("/")[2], *entry.aliases):
            assert map_paper_term(owner, term) is entry
            assert map_paper_term(owner, term.upper()) is entry
            assert get_entry(f"{owner}/{term}") is entry


@pytest.mark.parametrize("family", dict.fromkeys(e.family for e in ENTRIES))
def test_names_are_unique_in_a_family(family: str) -> None:
    names = Counter(name.lower() for e in list_entries(family=family) for name in dict.fromkeys((e.term, *e.aliases)))
    assert [name for name, count in names.items() if count > 1] == []
    titles = Counter(e.title for e in list_entries(family=family))
    assert max(titles.values()) == 1


@pytest.mark.parametrize(
    ("paper", "term", "name"),
    [
        ("Liu_IJCV_2024", "fog", "real-camera/fog"),
        ("Liu_IJCV_2024", "CSC-D", "real-camera/color_space_conversion_damage"),
        ("Liu_IJCV_2024", "automated_white_balance_damage", "real-camera/awb_damage"),
        ("real-camera", "se", "real-camera/synchronization_exceptions"),
        ("COD10K-C", "fog", "cod10k-c/fog"),
    ],
)
def test_terms_of_papers(paper: str, term: str, name: str) -> None:
    assert map_paper_term(paper, term).name == name


@pytest.mark.parametrize(
    ("paper", "term", "message"),
    [
        ("Liu_IJCV_2024", "foog", "did you mean 'fog'"),
        ("Liu_IJCV_2024", "sensor_damage", "There is no degradation of Liu_IJCV_2024 'sensor_damage'; did you mean"),
        ("Liu_IJCV_2023", "fog", "There is no family or paper 'Liu_IJCV_2023'; did you mean 'Liu_IJCV_2024'"),
        ("COD10K-C", "awb_damage", "There is no degradation of COD10K-C 'awb_damage'"),
    ],
)
def test_unknown_terms(paper: str, term: str, message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        map_paper_term(paper, term)
    assert message in str(caught.value)


@pytest.mark.parametrize(("paper", "term"), [("COD10K-C", None), (None, "fog"), (3, "fog"), ("COD10K-C", 3)])
def test_terms_are_strings(paper: object, term: object) -> None:
    with pytest.raises(InputError, match="string"):
        map_paper_term(paper, term)


def test_matrix_counts_every_row_once() -> None:
    matrix = taxonomy_matrix(ENTRIES)
    assert list(matrix) == list(product(Cause, Effect))
    assert sum(matrix.values()) == len(ENTRIES)
    for (cause, effect), count in matrix.items():
        assert count == len(list_entries(cause=cause, effect=effect))
    real = taxonomy_matrix(list_entries(family="real-camera"))
    assert {f"{c}{e}": n for (c, e), n in real.items() if n} == {
        "EWX": 1, "SN": 2, "SB": 1, "SOC": 1, "RN": 1, "RCL": 2, "RIL": 3, "RTX": 2, "TTV": 4,
    }  # fmt: skip
    assert not any(taxonomy_matrix([]).values())


def test_list_prints_the_matrix_below_the_table() -> None:
    lines = run("list", "--family", "real-camera").stdout.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split() == [e.code for e in Effect])
    assert head > max(i for i, line in enumerate(lines) if "synchronization_exceptions" in line)
    body = [line.split()[-len(Effect) :] for line in lines[head + 1 : head + 1 + len(Cause)]]
    matrix = taxonomy_matrix(list_entries(family="real-camera"))
    assert body == [[str(matrix[c, e] or "·") for e in Effect] for c in Cause]
    assert [line.split()[0] for line in lines[head + 1 : head + 1 + len(Cause)]] == [c.code for c in Cause]
    assert "Occlusion/Obstruction" in "".join(lines[head:])
