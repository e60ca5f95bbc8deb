from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_runs import HOSTILE, PAPER, SCRIPT, drawn_photographs, make_run, paper_model

from crypsis.results import RunFolder


@pytest.fixture(scope="session")
def paper_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The four models of the COD10K-C paper, with pictures."""
    folder = tmp_path_factory.mktemp("runs") / "paper"
    return make_run(folder, {name: paper_model(name) for name in PAPER["clean"]}, photographs=drawn_photographs())


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run in which every string that data can bring is an attack."""
    photographs = [(SCRIPT, SCRIPT, *rest) for _, _, *rest in drawn_photographs(1)]
    return make_run(
        tmp_path_factory.mktemp("runs") / "a&b",
        {HOSTILE: paper_model("SINet-v2"), SCRIPT: paper_model("PFNet"), "\udce9\x00": paper_model("ZoomNet")},
        failed={f'"{SCRIPT}': f"cannot be read ({SCRIPT})", "</script><img src=http://x.example>": "damaged"},
        photographs=photographs,
        dataset={"name": SCRIPT, "layout": SCRIPT, "images": 48, "keys_sha256": SCRIPT},
    )


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[RunFolder, RunFolder]:
    """Two comparable runs that share one label."""
    first = make_run(tmp_path / "first", {"net": paper_model("PFNet"), "other": paper_model("ZoomNet")})
    second = make_run(tmp_path / "second", {"net": paper_model("SINet-v2")})
    return first, second
