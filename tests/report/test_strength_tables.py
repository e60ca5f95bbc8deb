"""Tables of measured strength, from numbers that are known."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from crypsis.report.strength_tables import (
    findings_text,
    pair_csv,
    pair_table,
    placement_text,
    strength_csv,
    strength_tables,
)
from crypsis.severity.findings import StrengthTable, find_all
from crypsis.severity.placement import PairStrength, place

ENTRIES = ["cod10k-c/fog", "imagenet-c/snow", "cod10k-c/rain"]


def make_table() -> StrengthTable:
    values = np.empty((2, 3, 5, 4))
    values[0] = np.linspace(0.1, 0.5, 5)[:, None] * np.array([1, 0.8, 1.2, 1])
    values[0, 1] *= 3
    values[0, 1, 4] = 0.2
    values[1] = np.linspace(40, 20, 5)[:, None]
    values[1, 2, 0, 0] = np.inf
    unchanged = np.zeros((3, 5), np.int64)
    unchanged[2, 0] = 1
    return StrengthTable.from_values(ENTRIES, ["1-ssim", "psnr"], values, unchanged)


def test_a_table_for_each_family_in_the_layout_of_the_paper() -> None:
    cod, imagenet = strength_tables(make_table())
    assert cod.title == "Measured strength of cod10k-c, mean over 4 images"
    assert len(cod.header) == 1 + 2 * 5
    assert cod.header[1] == "1−SSIM s=1 ↑"
    assert cod.header[10] == "PSNR dB s=5 ↓"
    assert [row[0] for row in cod.rows] == ["Fog", "Rain"]
    assert [row[0] for row in imagenet.rows] == ["Snow"]
    assert "| Fog | 0.100 | 0.200 |" in cod.markdown()
    assert "Fog & 0.100 & 0.200 &" in cod.latex()
    assert "| 0.500 | 40.0 | 35.0 | 30.0 | 25.0 | 20.0 |" in cod.markdown()
    assert "58.92 dB" in cod.markdown()
    assert "Images left exactly as they were: Rain s=1 (1 of 4)." in cod.notes
    assert not any("exactly" in note for note in imagenet.notes)


@pytest.mark.parametrize("spread", [False, True])
def test_the_psnr_of_images_that_are_all_unchanged_is_infinite(spread: bool) -> None:
    values = np.array([[[[0.0, 0.0]] * 5], [[[np.inf, np.inf], [np.inf, 30], *[[20, 20]] * 3]]])
    table = StrengthTable.from_values(ENTRIES[:1], ["1-ssim", "psnr"], values, np.array([[2, 1, 0, 0, 0]]))
    (one,) = strength_tables(table, spread=spread)
    assert "| ∞ | 44.5" in one.markdown()
    assert "& $\\infty$ & 44.5" in one.latex()
    assert "∞ is where all images are unchanged" in one.markdown()
    same = PairStrength.from_values("same", None, ["psnr"], np.array([[np.inf, np.inf]]), 2)
    assert "| same | ∞ | 0.0 | 2 | 2 |" in pair_table([same]).markdown()
    assert "nan" not in strength_csv(table) + pair_csv([same])


def test_spread() -> None:
    (cod, _) = strength_tables(make_table(), spread=True)
    low, high = np.quantile([0.1, 0.08, 0.12, 0.1], (0.05, 0.95))
    assert f"0.100 [{low:.3f}, {high:.3f}]" in cod.markdown()


def test_csv_has_every_number() -> None:
    rows = list(csv.DictReader(io.StringIO(strength_csv(make_table()))))
    assert len(rows) == 3 * 5 * 2
    last = rows[-1]
    assert (last["family"], last["entry"], last["severity"], last["metric"]) == ("cod10k-c", ENTRIES[2], "5", "psnr")
    assert float(last["mean"]) == 20
    assert next(r for r in rows if r["unchanged"] == "1")["images"] == "4"


def test_findings_name_what_is_odd_first() -> None:
    text = findings_text(find_all(make_table()))
    assert "**1−SSIM: not monotone: 1**" in text
    assert "imagenet-c/snow is not monotone in 1−SSIM: severity 5 is weaker than 4" in text
    assert "Effect WX" in text
    even = StrengthTable.from_values(
        ENTRIES[:1], ["psnr"], np.linspace(40, 20, 5).reshape(1, 1, 5, 1), np.zeros((1, 5), np.int64)
    )
    assert (
        findings_text(find_all(even))
        == "Nothing stands out: no entry falls back, saturates or has very uneven steps.\n"
    )


def test_long_lists_are_cut() -> None:
    values = np.tile(np.array([0.1, 0.2, 0.2, 0.2, 0.9]), (3, 1))[None, :, :, None]
    table = StrengthTable.from_values(ENTRIES, ["1-ssim"], values, np.zeros((3, 5), np.int64))
    assert "… and 4 more, in summary.json" in findings_text(find_all(table), longest=2)


def test_notes_do_not_repeat_the_name_of_a_metric() -> None:
    table = StrengthTable.from_values(ENTRIES[:1], ["lpips", "psnr"], np.ones((2, 1, 5, 1)), np.zeros((1, 5), np.int64))
    (one,) = strength_tables(table)
    assert any(note.startswith("LPIPS (Zhang et al. 2018") for note in one.notes)
    assert any(note.startswith("PSNR dB: Peak signal-to-noise ratio") for note in one.notes)


def pairs(label: str, severity: int | None, ssim: list[float], psnr: list[float]) -> PairStrength:
    return PairStrength.from_values(label, severity, ["1-ssim", "psnr"], np.array([ssim, psnr]), psnr.count(np.inf))


def test_existing_images_have_a_row_a_set() -> None:
    sets = [pairs("a|b", 2, [0.1, 0.3], [20, 30]), pairs("a|b", 3, [0, 0.4], [np.inf, 10]), pairs("c", None, [1], [5])]
    text = pair_table(sets).markdown()
    assert "| a\\|b | 2 | 0.200 [0.110, 0.290] | 0.100 | 25.0 [20.5, 29.5] | 5.0 | 2 | 0 |" in text
    assert "|  | 3 | 0.200 [0.020, 0.380] | 0.200 | 34.5 [12.4, 56.5] | 24.5 | 2 | 1 |" in text
    assert "| c | – | 1.000 [1.000, 1.000] | 0.000 | 5.0 [5.0, 5.0] | 0.0 | 1 | 0 |" in text
    assert "different numbers of pairs" in text
    plain = pair_table(sets[2:])
    assert plain.header[:2] == ("Degraded images", "1−SSIM ↑")
    assert "different numbers" not in plain.markdown()
    rows = list(csv.DictReader(io.StringIO(pair_csv(sets))))
    assert len(rows) == 6
    assert (rows[3]["severity"], rows[3]["metric"], rows[3]["unchanged"]) == ("3", "psnr", "1")
    assert rows[4]["severity"] == ""
    assert float(rows[0]["mean"]) == 0.2


def test_placement_says_what_it_is_of() -> None:
    text = placement_text(place([pairs("c", None, [0.2], [15])], near=["cod10k-c/fog"]))
    assert "- c: 1−SSIM 0.2; between cod10k-c/fog s=3" in text
    assert "means over the demo images" in text
    assert placement_text([]) == ""
