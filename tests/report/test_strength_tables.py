"""Tables of measured strength, from numbers that are known."""

from __future__ import annotations

import csv
import io

import numpy as np

from crypsis.report.strength_tables import findings_text, strength_csv, strength_tables
from crypsis.severity.findings import StrengthTable, find_all

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
    assert "58.92 dB" in cod.markdown()
    assert "Images left exactly as they were: Rain s=1 (1 of 4)." in cod.notes
    assert not any("exactly" in note for note in imagenet.notes)


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
    assert "imagenet-c/snow is not monotone in 1-ssim: severity 5 is weaker than 4" in text
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
