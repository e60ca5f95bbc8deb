"""The paper's tables beside a run over 2,026 images that has the paper's own numbers, or others."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic_runs import ENTRIES, PAPER, make_run, paper_model

from command_line import run
from crypsis.errors import InputError
from crypsis.report.paper_tables import paper_csv, paper_rows, paper_tables, printed_numbers
from crypsis.results import RunFolder

KINDS = {"sinet-v2": "SINet-v2", "zoomnet": "ZoomNet", "pfnet": "PFNet", "robust-cod-lite": "RobustCODLite"}
DATASET = {"name": "COD10K", "layout": "Imgs+GT", "images": 2026, "keys_sha256": "5f" * 32}


def full_run(
    folder: Path,
    adapters: dict[str, str] | None = None,
    key: str = "COD10K-CAM-1-Aquatic-1-BatFish-{}",
    failed: dict[str, str] | None = None,
    **plan: Any,
) -> RunFolder:
    """Write a run of models (label → adapter), each with the numbers of the paper's of that label."""
    adapters = adapters or {label: kind for kind, label in KINDS.items()}
    scores = {label: paper_model(label) for label in adapters}
    made = make_run(folder, scores, failed=failed, **{"dataset": DATASET, **plan})
    images = [key.format(index) for index in range(made.plan["dataset"]["images"])]
    (folder / "parts").mkdir()
    pq.write_table(pa.table({"image": images}), folder / "parts" / "images.parquet")
    for file, change in (
        ("run.json", lambda content: content["plan"].update(models={k: {"adapter": v} for k, v in adapters.items()})),
        ("summary.json", lambda content: content.update(parts=made.parts_digest())),
    ):
        content = json.loads((folder / file).read_text())
        change(content)
        (folder / file).write_text(json.dumps(content))
    return RunFolder.open(folder)


@pytest.fixture
def paper(tmp_path: Path) -> RunFolder:
    return full_run(tmp_path / "paper")


def test_the_printed_numbers_are_those_of_the_paper() -> None:
    models = printed_numbers()["models"]
    assert {kind: model["name"] for kind, model in models.items()} == KINDS
    for label, model in zip(KINDS.values(), models.values(), strict=True):
        clean, corrupted = PAPER["clean"][label], PAPER["mean_corrupted"][label]
        assert list(model["conditions"]["clean"].values()) == list(clean.values())
        assert [*model["corrupted"].values(), model["delta"]["dice"]] == list(corrupted.values())
        assert 100 * model["retention"]["dice"] == pytest.approx(PAPER["retention_percent"][label])
        entries = [model["entries"][entry]["dice"] for entry in ENTRIES]
        assert [*entries, model["corrupted"]["dice"]] == list(PAPER["dice_by_corruption"][label].values())
        for entry in ("gaussian_noise", "motion_blur"):
            levels = [model["conditions"][f"cod10k-c/{entry}@{s}"]["dice"] for s in range(1, 6)]
            assert levels == PAPER["dice_by_severity"][entry][label]


def test_a_run_with_the_numbers_of_the_paper_differs_in_nothing(paper: RunFolder) -> None:
    tables = paper_tables([paper])
    assert [table.title.partition(":")[0] for table in tables] == [f"Table {n}" for n in (1, 2, 3, 4, 4)]
    differences = [row for row in paper_rows(tables) if row["numbers"] == "here − paper"]
    assert len(differences) == 4 * (5 + 7 + 9 + 5 + 5)
    # retention is the ratio here, rounded there
    assert all(abs(float(row["value"] or 0)) < 1e-9 for row in differences if row["column"] != "Retention %")
    assert all(abs(float(row["value"] or 0)) < 1e-3 for row in differences)
    table_1 = tables[0].markdown()
    assert "| SINet-v2 | paper | 0.734 | 0.627 | 0.037 | 0.473 | 0.024 |" in table_1
    assert "|  | here: SINet-v2 | 0.734 [0.713, 0.753] |" in table_1
    assert "\n|  | here − paper | 0.000 | 0.000 |" in table_1


def test_differences_are_here_less_paper(tmp_path: Path) -> None:
    made = full_run(tmp_path / "run", {"PFNet": "sinet-v2", "ZoomNet": "onnx"})
    (table, *_) = paper_tables([made], intervals=False)
    text = table.markdown()
    assert "| SINet-v2 | paper | 0.734 |" in text
    assert "|  | here: PFNet | 0.681 |" in text
    assert "|  | here − paper | −0.053 | −0.055 | +0.004 | −0.039 | +0.007 |" in text
    assert "| ZoomNet | paper | 0.699 | 0.605 | 0.036 | 0.479 | 0.026 |\n| PFNet | paper" in text
    assert "| ZoomNet | here | 0.699 |" in text  # an export has no adapter of its own


def test_what_is_doubtful_is_said(paper: RunFolder) -> None:
    (table, *_) = paper_tables([paper])
    notes = " ".join(table.notes)
    assert "COD10K: 2,026 of 2,026 images scored" in notes
    assert "MAE of 0.029" in notes
    assert "rain" in notes
    assert sum(note.startswith("Doubtful in the paper") for note in table.notes) == 3


OTHER = {e: [{"factor": 1.0}] * 5 for e in ENTRIES}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": DATASET | {"images": 48, "name": "demo"}}, "it covers 48 images of demo. Without --paper"),
        ({"dataset": DATASET | {"images": 100}, "limit": 100}, "100 images of COD10K, by --limit 100."),
        ({"limit": 2026}, "2,026 images of COD10K, by --limit 2026."),
        ({"key": "frog-{}"}, "not COD10K's, such as frog-0."),
        ({"key": "COD10K-NonCAM-1-Amphibian-{}"}, "not COD10K's, such as COD10K-NonCAM-1-Amphibian-0."),
        ({"failed": {"COD10K-CAM-1-Aquatic-1-BatFish-3": "damaged"}}, "it scored 2,025 of 2,026 images."),
        ({"normalize": "minmax"}, "its normalize is minmax, not raw."),
        ({"truth": "aligned"}, "its truth is aligned, not published."),
        ({"entries": OTHER}, "its corruptions are not those of this version."),
    ],
)
def test_runs_that_cannot_stand_beside_the_paper(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    made = full_run(tmp_path / "run", **changes)
    with pytest.raises(InputError) as told:
        paper_tables([made])
    assert str(told.value).startswith(f"{made.path}: its numbers cannot stand beside the paper's")
    assert message in str(told.value)
    result = run("tables", made.path, "--paper")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_as_csv(paper: RunFolder) -> None:
    rows = list(csv.DictReader(io.StringIO(paper_csv(paper_tables([paper])))))
    (found,) = [r for r in rows if (r["model"], r["numbers"], r["column"]) == ("PFNet", "paper", "Retention %")]
    assert (found["value"], found["low"]) == ("0.841000", "")
    assert {row["table"][:7] for row in rows} == {f"Table {n}" for n in (1, 2, 3, 4)}


def test_the_command(paper: RunFolder) -> None:
    result = run("tables", paper.path, "--paper", "--no-intervals")
    assert result.exit_code == 0, result.output
    assert "**Table 3: Dice by corruption, mean over severities**" in result.stdout
    assert result.stdout.count("MAE of 0.029") == 1
    assert "[0." not in result.stdout
    assert "\\toprule" in run("tables", paper.path, "--paper", "-f", "latex").stdout
    assert run("tables", paper.path, "--paper", "-f", "csv").stdout.startswith("table,model,numbers,")
    told = json.loads(run("tables", paper.path, "--paper", "--json").stdout)
    assert len(told["notes"]) == 5
    assert told["tables"][0]["value"] == 0.734
    refused = run("tables", paper.path, "--paper", "--metric", "mae")
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_two_runs_beside_the_paper(tmp_path: Path) -> None:
    runs = [full_run(tmp_path / "one", {"PFNet": "pfnet"}), full_run(tmp_path / "two", {"SINet-v2": "sinet-v2"})]
    rows = paper_rows(paper_tables(runs))
    assert {row["model"] for row in rows if str(row["numbers"]).startswith("here:")} == {"PFNet", "SINet-v2"}
