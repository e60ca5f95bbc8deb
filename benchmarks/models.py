"""CPU seconds per image, multiply-adds and parameters of the compared models and RobustCODLite, one thread.

    OMP_NUM_THREADS=1 python benchmarks/models.py [--rounds 5] [--height 480] [--width 640] [--batch N] [--only NAME…]

Weights are random: they do not change the time. An image goes all the way, from 8-bit pixels to a map of its size;
the models take turns, so that whatever else the machine does meets all alike. Prints Markdown, least and median.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
import torch

from crypsis.models.compared import COMPARED, ComparedModel, build_network, count_operations
from crypsis.models.compared_export import export_compared
from crypsis.models.robust_cod_lite import (
    NetworkOptions,
    RobustCodLite,
    count_multiply_adds,
    count_parameters,
    export_network,
    save_checkpoint,
)
from crypsis.models.robust_cod_lite_segmenter import WEIGHTS, RobustCodLiteSegmenter
from crypsis.models.segmenter import Segmenter, load_model

SIZE = 384
"""Side of RobustCODLite's input where it is not trained yet: the paper's."""


def make_models(folder: Path, batch: int) -> dict[str, tuple[Segmenter, tuple[int, int], str]]:
    """Return name → model, (parameters, multiply-adds), sides of its input."""
    found: dict[str, tuple[Segmenter, tuple[int, int], str]] = {}
    for kind, row in COMPARED.items():
        path = folder / f"{kind}.pth"
        torch.save(build_network(kind).state_dict(), path)
        sides = ", ".join(map(str, row.sides))
        model = ComparedModel(kind, path, batch=batch)
        found[kind] = model, count_operations(kind), sides
        if kind == "sinet-v2":
            export = export_compared(model, path.with_suffix(".onnx"), [np.zeros((352, 352, 3), np.uint8)])
            exported = load_model(f"{export.specification},batch={batch}")
            assert isinstance(exported, Segmenter)
            found[f"{kind}, onnxruntime"] = exported, count_operations(kind), sides
    for encoder in ("efficientnet-b0", "efficientnet-lite0"):
        network, path = RobustCodLite(NetworkOptions(encoder=encoder)), folder / f"{encoder}.safetensors"
        save_checkpoint(path, network)
        export_network(network, path.with_suffix(".onnx"), precision="fp32")
        counts = count_parameters(network), count_multiply_adds(network, (SIZE, SIZE))
        for suffix, runtime in ((".safetensors", ""), (".onnx", ", onnxruntime")):
            segmenter = RobustCodLiteSegmenter(path.with_suffix(suffix), size=(SIZE, SIZE), batch=batch)
            found[f"robust-cod-lite, {encoder}{runtime}"] = segmenter, counts, str(SIZE)
    if WEIGHTS.is_file():
        shipped = RobustCodLiteSegmenter(batch=batch)
        side = int(str(shipped.describe()["size"]).partition("×")[0])
        network = RobustCodLite(NetworkOptions(encoder=str(shipped.describe()["encoder"])))
        counts = count_parameters(network), count_multiply_adds(network, (side, side))
        found["robust-cod-lite, as it comes (onnxruntime)"] = shipped, counts, str(side)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--batch", type=int, default=1, help="Images in one call.")
    parser.add_argument("--only", nargs="+", default=[""], help="Models whose names start so.")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    coarse = np.random.default_rng(0).integers(0, 256, (arguments.batch, 12, 16, 3), dtype=np.uint8)
    size = arguments.width, arguments.height
    images = [cv2.resize(each, size, interpolation=cv2.INTER_CUBIC) for each in coarse]
    with tempfile.TemporaryDirectory() as folder:
        made = make_models(Path(folder), arguments.batch)
    models = {name: model for name, model in made.items() if name.startswith(tuple(arguments.only))}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for turn in range(arguments.rounds + 1):
        for name, (model, *_) in models.items():
            began = time.process_time()
            model.predict(images)
            if turn:  # the first is to warm up
                seconds[name].append((time.process_time() - began) / len(images))
    print("| model | input side | parameters, millions | multiply-adds, billions | CPU s an image | median |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, (_, (parameters, operations), sides) in models.items():
        least, median = min(seconds[name]), statistics.median(seconds[name])
        print(f"| {name} | {sides} | {parameters / 1e6:.2f} | {operations / 1e9:.2f} | {least:.2f} | {median:.2f} |")
    print(
        f"\n{size[0]}×{size[1]}, batches of {arguments.batch}, {arguments.rounds} rounds, "
        f"torch {torch.__version__}, one thread."
    )


if __name__ == "__main__":
    main()
