"""A finished run of scores with a search for thresholds, whose best are known, as the command leaves it."""

from __future__ import annotations

from pathlib import Path

import known_search as known
from command_line import run
from crypsis.camouflage.agreement import Vote


def make_searched_run(root: Path, *, count: int = 10, images: str = "") -> Path:
    """Return the run folder, below `root`; its data set bears the name `images` where one is given."""
    data = known.write_data(root, count)
    if images:
        data = data.rename(data.with_name(images))
    votes = [*known.votes(count), *(Vote("d<b>", known.key(0), "plain", "left", "right") for _ in range(2))]
    known.write_votes(root / "votes.csv", votes)
    found = run(
        "score", "--data", data, "--observer", f"proposals:{root / 'proposals'}", "--species", "owl", "--score",
        "seamcam,s_rf", "--workers", 1, "--out", root / "run", "--sweep", root / "votes.csv", "--sweep-pairs", 15,
        "--tau-alpha", 0.6, "-q",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    return root / "run"
