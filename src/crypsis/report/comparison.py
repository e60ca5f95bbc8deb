"""Runs set side by side: which can be, under which labels, and what their numbers are over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..catalog import get_entry
from ..errors import InputError, UnknownNameError
from ..metrics.segmentation import METRICS
from ..results import RunFolder

__all__ = ["METRIC_LABELS", "Comparison", "ModelResult", "arrow", "check_metric", "compare_runs", "higher_is_better"]

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
            kind: `conditions`, `entries`, `severities`, `corrupted`, `delta` or `retention`.
            metric: metric name.
            name: which condition, entry or severity, for the first three.
        """
        table = self.scores[kind] if name is None else self.scores[kind][name]
        found: Mapping[str, float | None] = table[metric]
        return found

    def value(self, kind: str, metric: str, name: str | None = None) -> float | None:
        """Return the value alone; see `interval`."""
        return self.interval(kind, metric, name)["value"]

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
    if not runs:
        raise InputError("No run was given; name at least one run folder.")
    twice = [path for path, n in Counter(run.path.resolve() for run in runs).items() if n > 1]
    if twice:
        raise InputError(f"{twice[0]} was given twice; name each run once.")
    for other in runs[1:]:
        differences = _differences(runs[0].plan, other.plan)
        if differences:
            raise InputError(
                f"{runs[0].path} and {other.path} cannot be compared: they differ in {'; '.join(differences)}. "
                "Report them separately."
            )
    names = Counter(model for run in runs for model in run.models)
    folders = Counter(run.name for run in runs)
    summaries = tuple(run.summary() for run in runs)
    results = []
    for index, (run, summary) in enumerate(zip(runs, summaries, strict=True)):
        prefix = run.name if folders[run.name] == 1 else str(run.path)
        results += [
            ModelResult(f"{prefix}/{model}" if names[model] > 1 else model, model, index, summary["models"][model])
            for model in run.models
            if summary["models"][model]
        ]
    return Comparison(tuple(runs), summaries, tuple(results))


def _differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """Name what keeps two plans from being compared."""
    found = []
    if one["dataset"]["keys_sha256"] != two["dataset"]["keys_sha256"]:
        sets = (f"{plan['dataset']['images']:,} of {plan['dataset']['name']}" for plan in (one, two))
        found.append(f"images ({' and '.join(sets)})")
    if one["entries"] != two["entries"]:
        both = dict.fromkeys((*one["entries"], *two["entries"]))
        names = [name for name in both if one["entries"].get(name) != two["entries"].get(name)]
        found.append(f"entries ({', '.join(names[:5])}{' …' if len(names) > 5 else ''})")
    for key in ("benchmark", "seed", "normalize", "on_size_mismatch", "truth"):
        if one.get(key) != two.get(key):
            found.append(f"{key} ({one.get(key)} and {two.get(key)})")
    return found
