"""What each part of RobustCODLite is worth: five configurations, several seeds, the paper's Table 5.

Source: "COD10K-C: Benchmarking Robustness of Camouflaged Object Detection Under Natural Image Corruptions",
section 5.9. The paper trained each configuration once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from .settings import PARTS

__all__ = ["CONFIGURATIONS", "Score", "ablation_rows", "ablation_table"]

CONFIGURATIONS: dict[str, tuple[str, ...]] = {
    "full": (),
    "no-consistency": ("consistency",),
    "no-frequency": ("frequency",),
    "no-augmentation": ("augmentation",),
    "plain": PARTS,
}
"""Name of a configuration → what it is trained without, in the order of Table 5."""

_TITLES = {
    "full": "Full model",
    "no-consistency": "w/o consist. + unc.",
    "no-frequency": "w/o freq. prior",
    "no-augmentation": "w/o corrupt. augment.",
    "plain": "Plain EfficientNet U-Net",
}


@dataclass(frozen=True, slots=True)
class Score:
    """How one trained network did on the test images.

    Attributes:
        clean: mean Dice.
        corrupted: mean Dice over all degraded conditions.
    """

    clean: float
    corrupted: float

    @property
    def retention(self) -> float:
        """Share of the clean Dice that is kept."""
        return self.corrupted / self.clean if self.clean else 0.0


def ablation_rows(scores: Mapping[str, Sequence[Score]]) -> list[dict[str, str | int | float | None]]:
    """Return, for each configuration, mean and standard deviation over its seeds.

    Args:
        scores: name of a configuration → a score for each seed, at least one.

    Returns:
        Rows with `configuration`, `title`, `seeds`, and `clean`, `corrupted`, `retention`, each also with `_sd`
        (of a sample, n − 1; None for one seed). Retention is averaged over seeds, not taken of averages.
    """
    rows: list[dict[str, str | int | float | None]] = []
    for name, found in scores.items():
        row: dict[str, str | int | float | None] = {
            "configuration": name, "title": _TITLES.get(name, name), "seeds": len(found),
        }  # fmt: skip
        for column in ("clean", "corrupted", "retention"):
            values = [getattr(score, column) for score in found]
            row[column] = fmean(values)
            row[f"{column}_sd"] = stdev(values) if len(values) > 1 else None
        rows.append(row)
    return rows


def ablation_table(scores: Mapping[str, Sequence[Score]]) -> str:
    """Return Table 5 as Markdown; see `ablation_rows`."""
    lines = ["| Configuration | Seeds | Clean | Corrupt | Retention |", "| :-- | --: | --: | --: | --: |"]
    for row in ablation_rows(scores):
        cells = [
            _with_deviation(row["clean"], row["clean_sd"], 1, 3, ""),
            _with_deviation(row["corrupted"], row["corrupted_sd"], 1, 3, ""),
            _with_deviation(row["retention"], row["retention_sd"], 100, 1, "%"),
        ]
        lines.append(f"| {row['title']} | {row['seeds']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _with_deviation(mean: object, deviation: object, scale: int, decimals: int, unit: str) -> str:
    texts = [f"{scale * value:.{decimals}f}" for value in (mean, deviation) if isinstance(value, float)]
    return " ± ".join(texts) + unit
