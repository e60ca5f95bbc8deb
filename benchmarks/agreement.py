"""How often the bootstrap over participants holds what studies of the same size find on average.

    OMP_NUM_THREADS=1 python benchmarks/agreement.py [--studies N]

Prints a Markdown table. The pairs and a score that is right on 80% of them stay the same; each study draws other
people, whose answers follow how much harder one image of a pair is, some people more closely than others, and has all
of them vote on every pair, or five on each. "truth" is the mean accuracy over the studies; "below" and "above" are the
shares of studies whose 95% interval lies below or above it, "center" how far its middle is from the study's accuracy.
"""

from __future__ import annotations

import argparse

import numpy as np

from crypsis.camouflage.agreement import Vote, agreement, judge

PAIRS, SAMPLES = 200, 400
PEOPLE = 10, 20, 40, 80


def votes_of_a_study(rng: np.random.Generator, people: int, votes: int, harder: np.ndarray) -> list[Vote]:
    """Return the answers of so many people, `votes` of them on each pair; `harder` says by how much the first is."""
    care = np.exp(0.3 * rng.standard_normal(people))
    first = rng.random((people, PAIRS)) < 1 / (1 + np.exp(-2 * care[:, None] * harder))
    asked = np.argsort(rng.random((people, PAIRS)), axis=0) < votes
    return [
        Vote(f"{who:03d}", f"{pair:03d}a", f"{pair:03d}b", "left" if first[who, pair] else "right")
        for who, pair in zip(*np.nonzero(asked), strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=400)
    studies = parser.parse_args().studies
    fixed = np.random.default_rng([7, PAIRS])
    harder = fixed.standard_normal(PAIRS)
    first = (harder > 0) == (fixed.random(PAIRS) < 0.8)
    scores = {f"{pair:03d}{end}": float(first[pair] == (end == "a")) for pair in range(PAIRS) for end in "ab"}
    print("| people | votes a pair | truth | held | below | above | center |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for people in PEOPLE:
        for votes in (5, people):
            found, ends = [], []
            for study in range(studies):
                rng = np.random.default_rng([study, people, votes])
                judgments = judge(votes_of_a_study(rng, people, votes, harder))
                one = agreement(judgments, scores, clusters=("participant",), samples=SAMPLES, seed=study)
                found.append(one.accuracy)
                ends.append(one.bootstrap["participant"])
            truth = float(np.mean(found))
            low, high = np.array(ends).T
            below, above, center = (
                float(np.mean(one)) for one in (high < truth, low > truth, (low + high) / 2 - found)
            )
            print(
                f"| {people} | {votes} | {truth:.1%} | {1 - below - above:.1%} | {below:.1%} | {above:.1%} | "
                f"{center:+.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
