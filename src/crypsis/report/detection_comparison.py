"""Detection runs set side by side: what their numbers are over, and what is called how."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..catalog import get_entry
from ..catalog.entry import Entry
from ..detection_results import DetectionRun
from ..taxonomy import Cause, Effect, Group
from .comparison import ModelResult, check_comparable, label_results

__all__ = ["MOVING", "SCORE_LABELS", "SCORE_TITLES", "DetectionComparison", "compare_detections", "place_title"]

_SIZES = {"small": "below 32² square pixels", "medium": "from 32² to 96² square pixels", "large": "above 96²"}
SCORE_LABELS: Mapping[str, str] = {
    "ap": "AP", "ap50": "AP50", "ap75": "AP75", "ap_small": "APs", "ap_medium": "APm", "ap_large": "APl",
    "ar1": "AR1", "ar10": "AR10", "ar100": "AR100", "ar_small": "ARs", "ar_medium": "ARm", "ar_large": "ARl",
}  # fmt: skip
"""What tables and charts call each of `crypsis.metrics.detection.SCORES`, as COCO does."""
SCORE_TITLES: Mapping[str, str] = {
    "ap": "average precision, the mean over IoU thresholds 0.50 to 0.95 and over categories",
    "ap50": "average precision at IoU 0.50",
    "ap75": "average precision at IoU 0.75",
    **{f"ap_{size}": f"average precision of {size} objects, {area}" for size, area in _SIZES.items()},
    "ar1": "average recall with 1 detection per image and category",
    "ar10": "average recall with 10 detections per image and category",
    "ar100": "average recall with 100 detections per image and category",
    **{f"ar_{size}": f"average recall of {size} objects, {area}" for size, area in _SIZES.items()},
}
"""What each is."""

MOVING = "†"
"""The sign of degradations that move content."""

_RULES = ("benchmark", "severities", "seed", "labels", "keep", "truth")
_TITLES = {kind.code: kind.title for kinds in (Cause, Effect) for kind in kinds}
_LABEL: Mapping[str, Callable[[Entry], str]] = {
    "family": lambda entry: entry.family,
    "cause": lambda entry: entry.cause.code,
    "effect": lambda entry: entry.effect.code,
    "group": lambda entry: entry.group.code,
    "cell": lambda entry: f"{entry.cause.code}-{entry.effect.code}",
}
_ORDER: Mapping[str, Sequence[str]] = {
    "cause": [cause.code for cause in Cause],
    "effect": [effect.code for effect in Effect],
    "group": [group.code for group in Group],
    "cell": [f"{cause.code}-{effect.code}" for cause in Cause for effect in Effect],
}


def place_title(place: str, label: str) -> str:
    """Return what a table calls a label of one of `crypsis.detection_results.PLACES`."""
    if place == "family":
        return label
    if place == "cell":
        return " → ".join(_TITLES[code] for code in label.split("-"))
    if place == "group":
        return f"{label} {next(group.title for group in Group if group.code == label)}"
    return _TITLES[label]


@dataclass(frozen=True)
class DetectionComparison:
    """Detection runs over the same images, objects, degradations and rules.

    Attributes:
        runs: the run folders, as given.
        summaries: the summary of each.
        results: all detectors of all runs that found scores, in order; their `strength` is that of their run.
    """

    runs: tuple[DetectionRun, ...]
    summaries: tuple[Mapping[str, Any], ...]
    results: tuple[ModelResult, ...]

    @property
    def plan(self) -> Mapping[str, Any]:
        """The first run's plan; all agree in what decides whether they can be compared."""
        return self.runs[0].plan

    @property
    def severities(self) -> tuple[int, ...]:
        """At which every entry was run, rising."""
        return self.runs[0].severities

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """The degradations by name, in plan order."""
        return {name: get_entry(name) for name in self.runs[0].entries}

    @cached_property
    def titles(self) -> dict[str, str]:
        """Entry → what a figure calls it: with its family where that is needed, with a sign if it moves content."""
        count = Counter(entry.title for entry in self.entries.values())
        return {
            name: entry.title
            + (f" ({entry.family})" if count[entry.title] > 1 else "")
            + (f" {MOVING}" if entry.moves_pixels else "")
            for name, entry in self.entries.items()
        }

    def members(self, place: str) -> dict[str, list[str]]:
        """Return the entries by label of one of `crypsis.detection_results.PLACES`, in the order of the taxonomy."""
        found: dict[str, list[str]] = {code: [] for code in _ORDER.get(place, ())}
        for name, entry in self.entries.items():
            found.setdefault(_LABEL[place](entry), []).append(name)
        return {label: names for label, names in found.items() if names}

    @property
    def categories(self) -> Mapping[str, str]:
        """Id → name of what was to be found."""
        found: Mapping[str, str] = self.summaries[0]["categories"]
        return found

    def path(self, entry: str) -> list[str]:
        """Return the conditions of an entry as it grows: `clean`, then `entry@1` and on."""
        return ["clean", *(f"{entry}@{severity}" for severity in self.severities)]

    def drops(self, result: ModelResult, metric: str = "ap") -> dict[str, float]:
        """Return by how much each entry's mean over severities differs from clean, most negative first."""
        clean = result.value("conditions", metric, "clean")
        means = {name: result.value("entries", metric, name) for name in self.entries}
        if clean is None:
            return {}
        found = {name: mean - clean for name, mean in means.items() if mean is not None}
        return dict(sorted(found.items(), key=lambda item: item[1]))

    def mean_path(self, result: ModelResult, entries: Sequence[str], metric: str) -> list[float | None]:
        """Return a metric along `path`, the mean over entries."""
        columns = zip(*([result.value("conditions", metric, c) for c in self.path(e)] for e in entries), strict=True)
        return [None if None in column else statistics.fmean(v for v in column if v is not None) for column in columns]

    @property
    def complete(self) -> bool:
        """Whether every run scored every planned image."""
        return all(summary["complete"] for summary in self.summaries)

    @cached_property
    def moving(self) -> str:
        """What must be known of degradations that move content; nothing if there is none."""
        if not any(entry.moves_pixels for entry in self.entries.values()):
            return ""
        if self.plan["truth"] == "aligned":
            return f"{MOVING} moves content; the boxes of the truth moved along with it (--truth aligned)."
        return (
            f"{MOVING} moves content, while the boxes of the truth stayed where they were drawn, as published: part of "
            "the drop may be this. --truth aligned moves them along."
        )

    def warnings(self) -> list[str]:
        """Return what must be said loudly: what is incomplete, by how much."""
        found = []
        for run, summary in zip(self.runs, self.summaries, strict=True):
            scored = {model: scores["scored"] if scores else 0 for model, scores in summary["models"].items()}
            most = max(scored.values())
            if not summary["complete"]:
                failed = len(summary["failed"])
                rest = f", {failed:,} failed" if failed else ""
                found.append(
                    f"INCOMPLETE: {run.name} scored {most:,} of {summary['images']:,} images{rest}; these numbers are "
                    "not results of the whole set."
                )
            for model, count in scored.items():
                if count != most:
                    what = f"the numbers of {model} are over {count:,} images" if count else f"{model} scored no image"
                    found.append(f"{run.name}: {what}; differences to the others are not paired.")
            # all failed images beside those that each detector lost: no two counts differ, but the images do
            if set(scored.values()) == {most} and len(summary["failed"]) > summary["images"] - most:
                found.append(
                    f"{run.name}: the detectors failed on different images; their numbers, differences and ranks are "
                    "not over the same images."
                )
        subsets = {frozenset(summary["failed"]) for summary in self.summaries}
        if len(subsets) > 1 or len({result.scores["scored"] for result in self.results}) > 1 < len(self.runs):
            found.append("The runs scored different subsets of the images; differences between them are not paired.")
        return found

    def scope(self) -> str:
        """Return one sentence on what the numbers are over."""
        plan = self.plan
        counts = " / ".join(
            dict.fromkeys(
                f"{result.scores['scored']:,} of {self.summaries[result.run]['images']:,} images scored"
                for result in self.results
            )
        )
        limit = "none" if plan["limit"] is None else f"{plan['limit']:,} (a trial)"
        severities = ", ".join(map(str, self.severities))
        return (
            f"{plan['dataset']['name']}: {counts}; severities {severities}; seed {plan['seed']}; limit {limit}; labels "
            f"by {self._labels()}; truth {plan['truth']}."
        )

    def _labels(self) -> str:
        """Say how labels became categories; saved detections name the categories themselves."""
        how = _LABELS[self.plan["labels"]]
        if self.plan["labels"] == "agnostic":
            return how
        saved = [about.get("adapter") == "predictions" for run in self.runs for about in run.plan["models"].values()]
        if all(saved):
            return "category id"
        return f"{how} (of saved detections by category id)" if any(saved) else how


_LABELS = {"names": "equal names", "index": "index", "agnostic": "no class (agnostic)"}


def compare_detections(runs: Sequence[DetectionRun]) -> DetectionComparison:
    """Set detection runs side by side.

    Raises:
        InputError: no run, one given twice, runs that differ in images, annotations, entries, severities, seed, labels,
            kept classes or truth, or nothing was detected; the message names it.
        UnknownNameError: an entry is not in this version's catalog.
    """
    check_comparable(runs, _RULES)
    summaries = tuple(run.summary() for run in runs)
    models = [_with_strength(run, summary) for run, summary in zip(runs, summaries, strict=True)]
    return DetectionComparison(tuple(runs), summaries, label_results(runs, models))


def _with_strength(run: DetectionRun, summary: Mapping[str, Any]) -> dict[str, Mapping[str, Any] | None]:
    """Return a run's detectors with its measured strength in the form of `ModelResult.strengths`."""
    strength = {
        str(condition): {
            metric: {"value": summary["strength"].get(str(condition), {}).get(metric)} for metric in ("1-ssim", "psnr")
        }
        for condition in run.conditions
    }
    return {
        model: None if scores is None else {**scores, "strength": strength}
        for model, scores in summary["models"].items()
    }
