"""Runs set side by side: which can be, under which labels, and what their numbers are over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from ..catalog import get_entry
from ..errors import InputError, UnknownNameError
from ..metrics.segmentation import METRICS
from ..results import RunFolder

__all__ = [
    "METRIC_LABELS",
    "Comparison",
    "ModelResult",
    "arrow",
    "check_comparable",
    "check_metric",
    "compare_runs",
    "higher_is_better",
    "label_results",
]

METRIC_LABELS = {
    "dice": "Dice",
    "iou": "IoU",
    "mae": "MAE",
    "boundary_f1": "BF1",
    "ece_pooled": "ECE",
    "s_measure": "S",
    "weighted_f": "wF",
    "e_adaptive": "E adp",
    "e_mean": "E mean",
    "e_max": "E max",
    "f_adaptive": "F adp",
    "f_mean": "F mean",
    "f_max": "F max",
    "ece": "ECE per image",
}
"""What tables and charts call each metric of a summary. "ECE" is the one pooled over pixels."""


def check_metric(metric: str) -> str:
    """Return `metric`; raise `UnknownNameError` if tables and charts do not know it."""
    if metric not in METRIC_LABELS:
        raise UnknownNameError.among("metric", metric, METRIC_LABELS, f"Known: {', '.join(METRIC_LABELS)}.")
    return metric


def higher_is_better(metric: str) -> bool:
    """Whether more is better."""
    return METRICS[metric].higher_is_better


def arrow(metric: str) -> str:
    """`↑` where more is better, else `↓`."""
    return "↑" if higher_is_better(metric) else "↓"


@dataclass(frozen=True, slots=True)
class ModelResult:
    """One model of one run.

    Attributes:
        label: its name here, unique among all results compared.
        model: its label in its own run.
        run: index of the run.
        scores: its part of the run's summary.
    """

    label: str
    model: str
    run: int
    scores: Mapping[str, Any]

    def interval(self, kind: str, metric: str, name: str | None = None) -> Mapping[str, float | None]:
        """Return value, low and high of a metric in one of the summary's tables.

        Args:
            kind: `conditions`, `entries`, `severities`, `strength`, `corrupted`, `delta` or `retention`.
            metric: metric name, of `crypsis.severity.strength.METRICS` for `strength`.
            name: which condition, entry or severity, for the first four.
        """
        table = self.scores[kind] if name is None else self.scores[kind][name]
        found: Mapping[str, float | None] = table[metric]
        return found

    def value(self, kind: str, metric: str, name: str | None = None) -> float | None:
        """Return the value alone; see `interval`."""
        return self.interval(kind, metric, name)["value"]

    def strengths(self, conditions: Sequence[str]) -> list[float] | None:
        """Return the mean measured strength, 1 − SSIM, of conditions; None if one of them was not measured."""
        found = [self.value("strength", "1-ssim", condition) for condition in conditions]
        return None if None in found else [value for value in found if value is not None]

    def at_strength(self, metric: str, conditions: Sequence[str], strength: float) -> float | None:
        """Return a metric where a path of conditions first reaches a strength (1 − SSIM), linear between them.

        None where it never does, was not measured, or the metric is undefined.
        """
        places = self.strengths(conditions) or []
        for i, (start, end) in enumerate(pairwise(places)):
            if start <= strength <= end:
                part = (strength - start) / (end - start) if end > start else 0.0
                before, after = (self.value("conditions", metric, c) for c in conditions[i : i + 2])
                return None if before is None or after is None else before + part * (after - before)
        return None

    def worst_entry(self, metric: str = "dice") -> tuple[str, float] | None:
        """Return the entry with the largest loss, and its mean minus the clean value; None if undefined."""
        clean = self.value("conditions", metric, "clean")
        if clean is None:
            return None
        sign = 1 if higher_is_better(metric) else -1
        means = {name: self.value("entries", metric, name) for name in self.scores["entries"]}
        changes = {name: mean - clean for name, mean in means.items() if mean is not None}
        if not changes:
            return None
        worst = min(changes, key=lambda name: sign * changes[name])
        return worst, changes[worst]


@dataclass(frozen=True)
class Comparison:
    """Runs over the same images, degradations and rules.

    Attributes:
        runs: the run folders, as given.
        summaries: the summary of each.
        results: all models of all runs, in order.
    """

    runs: tuple[RunFolder, ...]
    summaries: tuple[Mapping[str, Any], ...]
    results: tuple[ModelResult, ...]

    @property
    def plan(self) -> Mapping[str, Any]:
        """The first run's plan; all agree in images, entries, seed, normalization and size policy."""
        return self.runs[0].plan

    @cached_property
    def titles(self) -> dict[str, str]:
        """Entry name → what a figure calls it, in plan order; an entry this version does not know keeps its name."""
        titles = {}
        for name in self.plan["entries"]:
            try:
                titles[name] = get_entry(name).title
            except UnknownNameError:
                titles[name] = name
        return titles

    @property
    def severities(self) -> tuple[int, ...]:
        """All severities that occur, rising."""
        return tuple(range(1, max((len(levels) for levels in self.plan["entries"].values()), default=0) + 1))

    def path(self, entry: str) -> list[str]:
        """Return the conditions of an entry as it grows: `clean`, then `entry@1` and on."""
        return ["clean", *(f"{entry}@{s}" for s in range(1, len(self.plan["entries"][entry]) + 1))]

    def common_strength(self) -> float | None:
        """Return the largest strength (1 − SSIM) that every entry reaches for every model it was measured for."""
        paths = [result.strengths(self.path(entry)) for result in self.results for entry in self.plan["entries"]]
        return min((max(path) for path in paths if path), default=None)

    @property
    def complete(self) -> bool:
        """Whether every run scored every planned image."""
        return all(summary["complete"] for summary in self.summaries)

    def warnings(self) -> list[str]:
        """Return what must be said loudly: what is incomplete, by how much, and masks that mean nothing."""
        found = []
        for run, summary in zip(self.runs, self.summaries, strict=True):
            if not summary["complete"]:
                failed = len(summary["failed"])
                rest = f", {failed:,} failed" if failed else ""
                found.append(
                    f"INCOMPLETE: {run.name} scored {summary['scored']:,} of {summary['images']:,} images{rest}; "
                    "these numbers are not results of the whole set."
                )
            for model, scores in summary["models"].items():
                scored = scores["scored"] if scores else 0
                if not scored or scored != summary["scored"]:
                    what = (
                        f"the numbers of {model} are over {scored:,} images" if scored else f"{model} scored no image"
                    )
                    found.append(f"{run.name}: {what}; differences to the others are not paired.")
            for kind in ("empty", "full"):
                odd = summary[f"{kind}_masks"]
                if odd:
                    names = ", ".join(odd[:3]) + (" …" if len(odd) > 3 else "")
                    found.append(
                        f"{run.name}: {len(odd):,} masks are {kind} ({names}); is the truth what it should be?"
                    )
        scored = {(s["scored"], frozenset(s["failed"])) for s in self.summaries}
        if len(scored) > 1:
            found.append("The runs scored different subsets of the images; differences between them are not paired.")
        return found

    def scope(self) -> str:
        """Return one sentence on what the numbers are over."""
        plan = self.plan
        counts = " / ".join(dict.fromkeys(f"{s['scored']:,} of {s['images']:,} images scored" for s in self.summaries))
        limits = list(dict.fromkeys(run.plan["limit"] for run in self.runs))
        limit = ", ".join("none" if value is None else f"{value:,} (a trial)" for value in limits)
        return (
            f"{plan['dataset']['name']}: {counts}; seed {plan['seed']}; limit {limit}; "
            f"maps {'as they are' if plan['normalize'] == 'raw' else plan['normalize']}."
        )


def compare_runs(runs: Sequence[RunFolder]) -> Comparison:
    """Set runs side by side.

    A label that occurs in two runs is prefixed by its run's folder name, or by its path where that is the same.

    Raises:
        InputError: no run, one given twice, or runs that differ in images, entries, seed, normalization or size
            policy; the message names the differences.
    """
    check_comparable(runs, ("benchmark", "seed", "normalize", "on_size_mismatch", "truth"))
    summaries = tuple(run.summary() for run in runs)
    return Comparison(tuple(runs), summaries, label_results(runs, [summary["models"] for summary in summaries]))


class _Run(Protocol):
    """A run folder of any benchmark."""

    @property
    def path(self) -> Path: ...

    @property
    def name(self) -> str: ...

    @property
    def plan(self) -> Mapping[str, Any]: ...

    @property
    def models(self) -> tuple[str, ...]: ...


def check_comparable(runs: Sequence[_Run], rules: Sequence[str]) -> None:
    """Refuse runs that cannot stand side by side.

    Args:
        runs: run folders of one benchmark.
        rules: names of what else the plans must agree in, beside images and entries.

    Raises:
        InputError: no run, one given twice, or two that differ; the message names the differences.
    """
    if not runs:
        raise InputError("No run was given; name at least one run folder.")
    twice = [path for path, n in Counter(run.path.resolve() for run in runs).items() if n > 1]
    if twice:
        raise InputError(f"{twice[0]} was given twice; name each run once.")
    for other in runs[1:]:
        differences = _differences(runs[0].plan, other.plan, rules)
        if differences:
            raise InputError(
                f"{runs[0].path} and {other.path} cannot be compared: they differ in {'; '.join(differences)}. "
                "Report them separately."
            )


def label_results(
    runs: Sequence[_Run], models: Sequence[Mapping[str, Mapping[str, Any] | None]]
) -> tuple[ModelResult, ...]:
    """Return all models that have scores, under labels that tell them apart.

    A label that occurs in two runs is prefixed by its run's folder name, or by its path where that is the same.

    Args:
        runs: the runs.
        models: for each run its models' parts of the summary, None for a model that scored nothing.
    """
    names = Counter(model for run in runs for model in run.models)
    folders = Counter(run.name for run in runs)
    results = []
    for index, (run, scores) in enumerate(zip(runs, models, strict=True)):
        prefix = run.name if folders[run.name] == 1 else str(run.path)
        results += [
            ModelResult(f"{prefix}/{model}" if names[model] > 1 else model, model, index, found)
            for model in run.models
            if (found := scores[model])
        ]
    return tuple(results)


def _differences(one: Mapping[str, Any], two: Mapping[str, Any], rules: Sequence[str]) -> list[str]:
    """Name what keeps two plans from being compared."""
    found = []
    if one["dataset"]["keys_sha256"] != two["dataset"]["keys_sha256"]:
        sets = (f"{plan['dataset']['images']:,} of {plan['dataset']['name']}" for plan in (one, two))
        found.append(f"images ({' and '.join(sets)})")
    if one["dataset"].get("annotations_sha256") != two["dataset"].get("annotations_sha256"):
        found.append("annotations")
    if one["entries"] != two["entries"]:
        both = dict.fromkeys((*one["entries"], *two["entries"]))
        names = [name for name in both if one["entries"].get(name) != two["entries"].get(name)]
        found.append(f"entries ({', '.join(names[:5])}{' …' if len(names) > 5 else ''})")
    for key in rules:
        if one.get(key) != two.get(key):
            found.append(f"{key} ({one.get(key)} and {two.get(key)})")
    return found
