"""Do people agree with a score: statistics of a two-alternative forced-choice study.

Appendix D of "SeamCam" (arXiv 2605.16515). People see two images and say in which the animal is harder to find; a
pair's truth is the majority, and a score is right where it is higher for that image. Participants who fail catch
trials are left out, then pairs with fewer than three votes, then ties. What the paper leaves open is named here: how
many catch trials must be right (all), what a pair is worth to a score that is equal for both images (`ties`), what the
vote margin is (|a − b| / (a + b)), and what a bootstrap draws:

    pair           as the paper does; pairs count as independent
    participant    the majorities are taken anew from those drawn: other people, the same pairs; fewer different people
                   make noisier majorities, so that samples lie lower than the study, and the interval is moved to
                   have their mean at its value: of 400 simulated studies of 200 pairs, with 10 to 80 people and five
                   votes a pair or all people's, it held what such studies find on average in 95 to 97%
                   (benchmarks/agreement.py); not moved, in as few as 76%;
                   who votes on what matters, so that other designs can have less
    image          images recur in pairs, so a pair counts as often as its first image was drawn times its second; no
                   bootstrap of such data is exact (McCullagh, Bernoulli 2000), and this one errs on the wide side, by
                   √3 where no image recurs

What follows from the paper's own counts, and what does not:

    reported                                   by its counts
    χ² = 300.67 from 833 and 259               300.6676
    p < 1e-67                                  2.36e-67 (uncorrected 1.39e-67); only the exact test, 9.7e-71, is below
    78.82% on 2,290 pairs                      1805 / 2290; no count out of 2,390 gives it
    53.89% and, in the main text, 54.07%       1234 / 2290 and 1228 / 2271: two different sets of pairs
    833 − 259 = 574 pairs between the scores   1805 − 1234 = 571 on 2,290; the 19 pairs left out make up the rest
    SeamCam on those 2,271, not reported       969 + 833 = 1802, 79.35%, if the other has 1228
    77.48% for SAM-3, on 2,290                 1774 / 2290 = 77.47%, 1775 / 2290 = 77.51%: not attainable
    non-overlapping intervals as the test      the scores share their pairs: the difference has an interval of its own,
                                               574 / 2271 = 0.2528, about 0.227 to 0.279
    above chance in all 20 species             a species needs 97 pairs for that at 60%, 43 at 65%, 25 at 70%, 12 at 79%
    ρ = +0.011 and −0.048 with the margin      p = 0.60 and 0.022 on 2,290 pairs
    100 pairs tuned on, 2,390 − 2,290 = 100    whether the tuning pairs are among the 2,290 is not said
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, UnknownNameError
from ..seeds import rng_for
from .proportions import (
    Correlation,
    McNemar,
    binomial_test,
    check_level,
    holm,
    mcnemar,
    spearman,
    wilson_interval,
)

__all__ = [
    "CLUSTERS",
    "TIES",
    "Agreement",
    "Cluster",
    "Comparison",
    "Interval",
    "Judgments",
    "Pair",
    "Side",
    "SpeciesAgreement",
    "TieRule",
    "Vote",
    "agreement",
    "as_document",
    "compare",
    "credit_of",
    "judge",
]

Side: TypeAlias = Literal["left", "right"]
TieRule: TypeAlias = Literal["half", "wrong", "excluded"]
"""What a pair counts for a score that is equal for both images: a coin's toss, an error, or nothing."""
Cluster: TypeAlias = Literal["pair", "participant", "image"]
"""What a bootstrap draws."""
Interval: TypeAlias = tuple[float, float]

TIES: tuple[TieRule, ...] = get_args(TieRule)
CLUSTERS: tuple[Cluster, ...] = get_args(Cluster)
_CELLS = 1 << 21
"""Pairs × samples that a step of the bootstrap holds."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One answer of one participant.

    Attributes:
        participant: who.
        left: image shown there.
        right: likewise.
        choice: the side on which the animal is harder to find; None for no answer.
        answer: the right choice of a catch trial; None for a trial that counts.
        species: of both animals, if known.
    """

    participant: str
    left: str
    right: str
    choice: Side | None
    answer: Side | None = None
    species: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two images and how often each was called the harder one.

    Attributes:
        first: the image whose name sorts first.
        second: the other.
        species: of both animals, if known.
        votes_first: people who called the first one harder.
        votes_second: likewise.
    """

    first: str
    second: str
    species: str | None
    votes_first: int
    votes_second: int

    @property
    def margin(self) -> float:
        """|a − b| / (a + b), in [0, 1]."""
        return abs(self.votes_first - self.votes_second) / (self.votes_first + self.votes_second)


@dataclass(frozen=True, slots=True, eq=False)
class Judgments:
    """What people said, reduced to pairs.

    Attributes:
        pairs: all with a valid vote, sorted.
        harder: int8 [pairs], 1 where the majority calls the first image harder, −1 the second, 0 for a tie or too few.
        ballots: intp [votes, 3]: participant, pair, and 1 or −1 as in `harder`; of those who are kept.
        minimum_votes: fewest votes of a pair that counts.
        participants: how many are kept.
        failed: names of those left out for their catch trials.
        unchecked: how many of those kept saw no catch trial.
        catch_trials: how many were shown.
        unanswered: trials without a choice, of those kept.
        repeated: further votes of one participant on one pair; the first counts.
    """

    pairs: tuple[Pair, ...]
    harder: NDArray[np.int8]
    ballots: NDArray[np.intp]
    minimum_votes: int
    participants: int
    failed: tuple[str, ...]
    unchecked: int
    catch_trials: int
    unanswered: int
    repeated: int

    @property
    def judged(self) -> int:
        """Pairs with a majority."""
        return int(np.count_nonzero(self.harder))

    @property
    def too_few(self) -> int:
        """Pairs with fewer votes than `minimum_votes`."""
        return sum(pair.votes_first + pair.votes_second < self.minimum_votes for pair in self.pairs)

    @property
    def tied(self) -> int:
        """Pairs with enough votes and no majority."""
        return len(self.pairs) - self.judged - self.too_few

    def subset(self, keep: NDArray[np.bool_]) -> Judgments:
        """Return the same with some of the pairs alone, bool [pairs]."""
        place = np.cumsum(keep) - 1
        ballots = self.ballots[keep[self.ballots[:, 1]]]
        ballots[:, 1] = place[ballots[:, 1]]
        pairs = tuple(pair for pair, kept in zip(self.pairs, keep, strict=True) if kept)
        return replace(self, pairs=pairs, harder=self.harder[keep], ballots=ballots)


def judge(
    votes: Iterable[Vote],
    *,
    minimum_votes: int = 3,
    catch_share: float = 1.0,
    species: Mapping[str, str] | None = None,
) -> Judgments:
    """Reduce votes to majorities: catch trials first, then fewer than `minimum_votes`, then ties.

    Args:
        votes: in the order they were given.
        minimum_votes: fewest valid votes of a pair that counts, at least 1.
        catch_share: least share of a participant's catch trials that must be right, in [0, 1]; no answer is wrong.
        species: image → species, for pairs whose votes name none; both images must have the same.

    Raises:
        InputError: an option out of its range.
    """
    if minimum_votes < 1 or not 0 <= catch_share <= 1:
        raise InputError(
            "A majority needs at least 1 vote, and a share of catch trials lies in [0, 1]; "
            f"got {minimum_votes!r} and {catch_share!r}."
        )
    votes = list(votes)
    caught: dict[str, list[bool]] = {vote.participant: [] for vote in votes}
    for vote in votes:
        if vote.answer is not None:
            caught[vote.participant].append(vote.choice == vote.answer)
    failed = {who for who, right in caught.items() if right and sum(right) < catch_share * len(right)}
    numbers = {who: number for number, who in enumerate(sorted(set(caught) - failed))}

    ballots: dict[tuple[tuple[str, str], str], int] = {}
    named: dict[tuple[str, str], str] = {}
    unanswered = repeated = 0
    for vote in votes:
        if vote.answer is not None or vote.participant in failed:
            continue
        if vote.choice is None:
            unanswered += 1
            continue
        first, second = sorted((vote.left, vote.right))
        if vote.species:
            named.setdefault((first, second), vote.species)
        key = (first, second), vote.participant
        if key in ballots:
            repeated += 1
        else:
            ballots[key] = 1 if (vote.left if vote.choice == "left" else vote.right) == first else -1

    keys = sorted({pair for pair, _ in ballots})
    places = {pair: place for place, pair in enumerate(keys)}
    rows = [(numbers[who], places[pair], side) for (pair, who), side in ballots.items()]
    table = np.array(rows, np.intp).reshape(-1, 3)
    counts = [np.bincount(table[table[:, 2] == side, 1], minlength=len(keys)) for side in (1, -1)]
    known = species or {}
    pairs = []
    for (first, second), a, b in zip(keys, *(count.tolist() for count in counts), strict=True):
        both = known.get(first) if known.get(first) == known.get(second) else None
        pairs.append(Pair(first, second, named.get((first, second), both), a, b))
    return Judgments(
        tuple(pairs),
        _majority(counts[0] - counts[1], counts[0] + counts[1], minimum_votes),
        table,
        minimum_votes,
        len(numbers),
        tuple(sorted(failed)),
        sum(not caught[who] for who in numbers),
        sum(map(len, caught.values())),
        unanswered,
        repeated,
    )


@dataclass(frozen=True, slots=True)
class SpeciesAgreement:
    """How often a score is right on one species.

    Attributes:
        species: its name.
        pairs: how many count.
        accuracy: share on which the score agrees with the majority.
        interval: Wilson's.
        p: exact two-sided binomial test against one half, of the pairs on which the score is not tied.
        p_holm: the same, corrected for the number of species by Holm's method.
    """

    species: str
    pairs: int
    accuracy: float
    interval: Interval
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often a score agrees with people.

    Attributes:
        pairs: how many count: those with a majority and a score for both images, but for excluded ties.
        right: on how many the score agrees; a half for each tie under the rule `half`.
        accuracy: `right` / `pairs`.
        wilson: Wilson's interval of it.
        bootstrap: percentile intervals of it, by what was drawn.
        ties: pairs with a majority on which the score is equal for both images.
        tie_rule: what those count.
        missing: pairs with a majority that lack a score.
        species: by name, where pairs have one.
        gap_and_margin: Spearman correlation of the score's absolute gap with the vote margin.
    """

    pairs: int
    right: float
    accuracy: float
    wilson: Interval
    bootstrap: Mapping[Cluster, Interval]
    ties: int
    tie_rule: TieRule
    missing: int
    species: tuple[SpeciesAgreement, ...]
    gap_and_margin: Correlation


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two scores on the pairs that count for both.

    Attributes:
        pairs: how many.
        first_accuracy: of the first score on them.
        second_accuracy: likewise.
        difference: the first less the second.
        bootstrap: percentile intervals of the difference, by what was drawn.
        both: pairs on which both are right.
        neither: on which neither is.
        undecided: left out of these two and of the test because a score is tied, under the rule `half`.
        test: McNemar's; its counts are the pairs on which one score alone is right.
    """

    pairs: int
    first_accuracy: float
    second_accuracy: float
    difference: float
    bootstrap: Mapping[Cluster, Interval]
    both: int
    neither: int
    undecided: int
    test: McNemar


def agreement(
    judgments: Judgments,
    scores: Mapping[str, float],
    *,
    ties: TieRule = "half",
    level: float = 0.95,
    clusters: Sequence[Cluster] = CLUSTERS,
    samples: int = 10_000,
    seed: int = 0,
) -> Agreement:
    """Return how often a score agrees with the majority, with its intervals.

    Args:
        judgments: of people.
        scores: image → number, higher being better hidden; images may be missing, NaN counts as missing.
        ties: what a pair with two equal scores counts.
        level: coverage of all intervals, in (0, 1).
        clusters: what the bootstraps draw.
        samples: of each bootstrap, at least 1; those in which no pair counts are left out.
        seed: of the draws; the same arguments give the same intervals.

    Raises:
        InputError: no pair with a majority has both scores, or an option out of its range.
        UnknownNameError: no tie rule or cluster of that name.
    """
    _check_options(ties, level, clusters, samples)
    gap = _gaps(judgments, scores)
    credit, counted = credit_of(judgments.harder, np.sign(gap), ties)
    pairs = _some(judgments, counted, [scores])
    right = float(credit[counted].sum())
    labeled = judgments.harder != 0
    margins = np.array([pair.margin for pair in judgments.pairs])

    def interval(by: Cluster) -> Interval:
        (drawn,) = _bootstrap(judgments, [np.sign(gap)], ties, by, samples, seed)
        return _interval(drawn, right / pairs, by, level)

    return Agreement(
        pairs,
        right,
        right / pairs,
        wilson_interval(right, pairs, level=level),
        {by: interval(by) for by in clusters},
        int(np.count_nonzero(labeled & (gap == 0))),
        ties,
        int(np.count_nonzero(labeled & np.isnan(gap))),
        _by_species(judgments, credit, counted, level),
        spearman(np.abs(gap[counted]), margins[counted]),
    )


def compare(
    judgments: Judgments,
    first: Mapping[str, float],
    second: Mapping[str, float],
    *,
    ties: TieRule = "half",
    level: float = 0.95,
    clusters: Sequence[Cluster] = CLUSTERS,
    samples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Return how two scores differ on the pairs that count for both; arguments and errors as in `agreement`."""
    _check_options(ties, level, clusters, samples)
    signs = [np.sign(_gaps(judgments, scores)) for scores in (first, second)]
    (a, counted), (b, also) = (credit_of(judgments.harder, sign, ties) for sign in signs)
    counted &= also
    pairs = _some(judgments, counted, [first, second])
    a, b = a[counted], b[counted]
    decided = (a != 0.5) & (b != 0.5)
    table = np.bincount((2 * a + b)[decided].astype(np.intp), minlength=4).tolist()

    def difference(by: Cluster) -> Interval:
        of_first, of_second = _bootstrap(judgments, signs, ties, by, samples, seed)
        return _interval(of_first - of_second, float(a.mean() - b.mean()), by, level, least=-1.0)

    return Comparison(
        pairs,
        float(a.mean()),
        float(b.mean()),
        float(a.mean() - b.mean()),
        {by: difference(by) for by in clusters},
        table[3],
        table[0],
        int(np.count_nonzero(~decided)),
        mcnemar(table[2], table[1]),
    )


def as_document(found: Agreement | Comparison) -> dict[str, Any]:
    """Return what was found as JSON values, None where a number is not defined."""
    document: dict[str, Any] = _defined(asdict(found))
    return document


def _defined(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _defined(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _check_options(ties: str, level: float, clusters: Sequence[str], samples: int) -> None:
    if ties not in TIES:
        raise UnknownNameError.among("rule for ties", ties, TIES)
    for by in clusters:
        if by not in CLUSTERS:
            raise UnknownNameError.among("cluster", by, CLUSTERS)
    check_level(level)
    if samples < 1:
        raise InputError(f"A bootstrap needs at least one sample; got {samples!r}.")


def _some(judgments: Judgments, counted: NDArray[np.bool_], scores: Sequence[Mapping[str, float]]) -> int:
    """Return how many pairs count; raise `InputError` if none does."""
    if counted.any():
        return int(np.count_nonzero(counted))
    images = {name for pair in judgments.pairs for name in (pair.first, pair.second)}
    strange = sorted(name for name in images if not all(name in known for known in scores))
    hint = f"; {len(strange)} images of the votes have no score, such as {strange[0]!r}" if strange else ""
    raise InputError(
        f"No pair can be counted: of {len(judgments.pairs)} voted on, {judgments.judged} have a majority{hint}."
    )


def _majority(net: NDArray[Any], votes: NDArray[Any], minimum: int) -> NDArray[np.int8]:
    return np.asarray(np.where(votes >= minimum, np.sign(net), 0), np.int8)


def _gaps(judgments: Judgments, scores: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the first image's score less the second's, float64 [pairs]; NaN where one is missing."""
    gaps = (scores.get(pair.first, math.nan) - scores.get(pair.second, math.nan) for pair in judgments.pairs)
    return np.fromiter(gaps, np.float64, len(judgments.pairs))


def credit_of(
    harder: NDArray[np.int8], sign: NDArray[np.float64], ties: TieRule
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return what each pair is worth, 0, ½ or 1, and whether it counts; the two arrays are broadcast.

    Args:
        harder: int8 [..., pairs], as in `Judgments`.
        sign: float64 [..., pairs], of the score's gap; NaN where it is missing.
        ties: the rule.
    """
    credit = np.where(sign == 0, 0.5 if ties == "half" else 0.0, harder == sign)
    return credit, (harder != 0) & ~np.isnan(sign) & ((sign != 0) | (ties != "excluded"))


def _by_species(
    judgments: Judgments, credit: NDArray[np.float64], counted: NDArray[np.bool_], level: float
) -> tuple[SpeciesAgreement, ...]:
    found: dict[str, list[float]] = {}
    for pair, worth, counts in zip(judgments.pairs, credit.tolist(), counted, strict=True):
        if counts and pair.species:
            found.setdefault(pair.species, []).append(worth)
    names = sorted(found)
    p_values = [binomial_test(found[name].count(1.0), len(found[name]) - found[name].count(0.5)) for name in names]
    return tuple(
        SpeciesAgreement(
            name,
            len(found[name]),
            sum(found[name]) / len(found[name]),
            wilson_interval(sum(found[name]), len(found[name]), level=level),
            p,
            corrected,
        )
        for name, p, corrected in zip(names, p_values, holm(p_values), strict=True)
    )


def _interval(samples: NDArray[np.float64], value: float, by: Cluster, level: float, *, least: float = 0.0) -> Interval:
    known = samples[~np.isnan(samples)]
    if not known.size:
        return math.nan, math.nan
    ends = np.quantile(known, (0.5 - level / 2, 0.5 + level / 2))
    if by == "participant":
        ends = np.clip(ends + value - known.mean(), least, 1.0)
    return float(ends[0]), float(ends[1])


def _bootstrap(
    judgments: Judgments, signs: Sequence[NDArray[np.float64]], ties: TieRule, by: Cluster, samples: int, seed: int
) -> NDArray[np.float64]:
    """Return the accuracy of each score on the pairs that count for all, float64 [scores, samples]; NaN if none do."""
    judged = [credit_of(judgments.harder, sign, ties)[1] for sign in signs]
    pool = np.flatnonzero(np.logical_and.reduce(judged))
    parts = []
    for weights, harder in _resamples(judgments, pool, by, samples, seed):
        worth = [credit_of(harder, sign, ties) for sign in signs]
        weights = weights * np.logical_and.reduce([counted for _, counted in worth])
        with np.errstate(invalid="ignore"):
            parts.append([(weights * credit).sum(axis=-1) / weights.sum(axis=-1) for credit, _ in worth])
    return np.concatenate(parts, axis=-1)


def _resamples(
    judgments: Judgments, pool: NDArray[np.intp], by: Cluster, samples: int, seed: int
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int8]]]:
    """Return, some samples at a time, how often each pair was drawn [samples, pairs] and which image is harder then."""
    pairs = judgments.pairs
    rng = rng_for(seed, "", f"agreement/{by}")
    if by == "image":
        images = {name: i for i, name in enumerate(sorted({n for pair in pairs for n in (pair.first, pair.second)}))}
        ends = np.array([(images[pair.first], images[pair.second]) for pair in pairs], np.intp)
    elif by == "participant":
        sides = np.zeros((2, judgments.participants, len(pairs)), np.float32)
        who, pair, side = judgments.ballots.T
        sides[:, who, pair] = side, np.abs(side)
    step = max(1, _CELLS // len(pairs))
    for start in range(0, samples, step):
        size = min(step, samples - start)
        if by == "pair":
            weights = np.zeros((size, len(pairs)))
            weights[:, pool] = _drawn(rng, size, len(pool))
            yield weights, judgments.harder
        elif by == "image":
            drawn = _drawn(rng, size, len(images))
            yield (drawn[:, ends[:, 0]] * drawn[:, ends[:, 1]]).astype(np.float64), judgments.harder
        else:
            net, votes = _drawn(rng, size, judgments.participants).astype(np.float32) @ sides  # whole numbers: exact
            yield np.ones_like(net, np.float64), _majority(net, votes, judgments.minimum_votes)


def _drawn(rng: np.random.Generator, samples: int, count: int) -> NDArray[np.intp]:
    """Return how often each of `count` was drawn in each sample, [samples, count]."""
    draws = rng.integers(0, count, (samples, count)) + count * np.arange(samples)[:, None]
    return np.bincount(draws.ravel(), minlength=samples * count).reshape(samples, count)
