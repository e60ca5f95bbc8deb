"""Checkpoints of the compared models through the benchmark: interrupted, resumed, reported."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from command_line import Result, run  # noqa: E402
from crypsis.models.compared import build_network  # noqa: E402

slow = pytest.mark.skipif("CRYPSIS_SLOW" not in os.environ, reason="takes minutes; CRYPSIS_SLOW=1 runs it")


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Result]:
    """Return a function that benches a random checkpoint of a kind on images of the demo set."""

    def call(kind: str, *options: object) -> Result:
        path = tmp_path / f"{kind}.pth"
        if not path.exists():
            torch.save(build_network(kind).state_dict(), path)
        model = ("--model", f"{kind}:{path}", "--workers", 1, "--out", tmp_path / "run")
        return run("bench", "cod10k-c", "--data", "demo", *model, *options)

    return call


def check_run(folder: Path, kind: str, images: int) -> dict[str, Any]:
    """Check that a run is whole, and return how it describes its model."""
    rows = pq.read_table(folder / "parts")
    assert rows.num_rows == images * 41
    assert set(rows["status"].to_pylist()) == {"ok"}
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["complete"]
    assert summary["scored"] == images
    assert kind in (folder / "report.html").read_text("utf-8")
    plan = json.loads((folder / "run.json").read_text())["plan"]
    described: dict[str, Any] = plan["models"][kind]
    assert described["adapter"] == kind
    return described


def test_interrupted_between_images(
    bench: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crypsis.bench.plan.UNIT_IMAGES", 1)
    stopped = bench("dgnet-s", "--limit", 2, "--max-minutes", 0.01)  # a unit takes seconds, not half of one
    assert stopped.exit_code == 3, stopped.output
    assert "1 of 2 units are left; the same command continues." in stopped.stderr
    (part,) = (tmp_path / "run" / "parts").iterdir()
    first = part.read_bytes()
    resumed = bench("dgnet-s", "--limit", 2)
    assert resumed.exit_code == 0, resumed.output
    assert "| dgnet-s |" in resumed.stdout
    assert part.read_bytes() == first
    described = check_run(tmp_path / "run", "dgnet-s", 2)
    assert (described["sides"], described["minmax"], described["order"]) == ("352", False, "resize-then-activate")
    assert "license" not in described
    refused = run("tables", tmp_path / "run", "--paper")
    assert refused.exit_code == 2
    assert "it covers 2 images of demo, by --limit 2" in refused.stderr


@pytest.mark.parametrize(
    "kind", ["sinet-v2", *(pytest.param(kind, marks=slow) for kind in ("dgnet", "pfnet", "zoomnet"))]
)
def test_stopped_before_the_first_image(kind: str, bench: Callable[..., Result], tmp_path: Path) -> None:
    assert bench(kind, "--limit", 1, "--max-minutes", 1e-9).exit_code == 3
    assert not list((tmp_path / "run").glob("parts/*"))
    result = bench(kind, "--limit", 1)
    assert result.exit_code == 0, result.output
    assert f"| {kind} |" in result.stdout
    check_run(tmp_path / "run", kind, 1)
