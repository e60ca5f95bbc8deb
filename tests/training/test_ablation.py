"""Table 5: means, deviations, and the paper's layout."""

from __future__ import annotations

import pytest

from crypsis.training.ablation import CONFIGURATIONS, Score, ablation_rows, ablation_table
from crypsis.training.settings import PARTS


def test_the_papers_table() -> None:
    printed = {
        "full": (Score(0.685, 0.632), "| Full model | 1 | 0.685 | 0.632 | 92.3% |"),
        "no-consistency": (Score(0.684, 0.619), "| w/o consist. + unc. | 1 | 0.684 | 0.619 | 90.5% |"),
        "no-augmentation": (Score(0.683, 0.591), "| w/o corrupt. augment. | 1 | 0.683 | 0.591 | 86.5% |"),
        "plain": (Score(0.680, 0.576), "| Plain EfficientNet U-Net | 1 | 0.680 | 0.576 | 84.7% |"),
    }
    lines = ablation_table({name: [score] for name, (score, _) in printed.items()}).splitlines()
    assert lines[0] == "| Configuration | Seeds | Clean | Corrupt | Retention |"
    assert lines[2:] == [line for _, line in printed.values()]


def test_mean_and_deviation_over_seeds() -> None:
    scores = [Score(0.5, 0.25), Score(0.7, 0.7)]
    (row,) = ablation_rows({"full": scores})
    assert (row["seeds"], row["clean"], row["corrupted"]) == (2, pytest.approx(0.6), pytest.approx(0.475))
    assert row["retention"] == pytest.approx(0.75)  # of 0.5 and 1
    assert row["clean_sd"] == pytest.approx(0.02**0.5)
    assert "0.600 ± 0.141 | 0.475 ± 0.318 | 75.0 ± 35.4%" in ablation_table({"full": scores})


def test_nothing_found_keeps_nothing() -> None:
    assert Score(0.0, 0.0).retention == 0.0


def test_configurations_leave_out_each_part_and_all() -> None:
    assert list(CONFIGURATIONS.values()) == [(), *((part,) for part in PARTS), PARTS]
