"""What the observers of the hub cost at the sizes that are published: CPU seconds of an image and peak memory.

    OMP_NUM_THREADS=1 python benchmarks/observers.py [NAME…]

Weights are random, built from configurations: they do not change the time. One image of 640×480, one thread, once; each
network in a process of its own. Prints Markdown. A segmenter is timed with one box and with twenty.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from crypsis.models.box_segmenters import BOX_SEGMENTERS, BoxSegmenter
from crypsis.models.hub import find_pretrained, quiet
from crypsis.models.text_detectors import GroundingDino, Owlv2

BERT = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]", 1012: ".", 1029: "?", 2000: "frog"}


def swin(size: int, width: int, window: int, third: int) -> Any:
    return transformers.SwinConfig(
        image_size=size, embed_dim=width, window_size=window, depths=[2, 2, third, 2],
        num_heads=[width // 32 * 2**k for k in range(4)], out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip


def grounding_dino(backbone: Any, folder: Path) -> Any:
    transformers.GroundingDinoImageProcessorPil().save_pretrained(folder)
    vocabulary = {BERT.get(i, f"[unused{i}]"): i for i in range(30522)}
    transformers.BertTokenizerFast(vocab=vocabulary).save_pretrained(folder)
    return transformers.GroundingDinoForObjectDetection(
        transformers.GroundingDinoConfig(backbone_config=backbone, disable_custom_kernels=True)
    )


def owlv2(folder: Path) -> Any:
    transformers.Owlv2ImageProcessorPil(size={"height": 1008, "width": 1008}).save_pretrained(folder)
    letters = [chr(code) for code in range(33, 127)]
    known = ["!", *letters[1:], *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: place for place, token in enumerate(known)}
    transformers.CLIPTokenizerFast(vocab=vocabulary, merges=[], pad_token="!").save_pretrained(folder)
    text = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
    vision = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}
    vision |= {"image_size": 1008, "patch_size": 14}
    return transformers.Owlv2ForObjectDetection(
        transformers.Owlv2Config(text_config=text, vision_config=vision, projection_dim=768)
    )


def sam2(_: Path) -> Any:
    backbone = {
        "model_type": "sam2_hiera_det_model", "hidden_size": 144, "num_attention_heads": 2,
        "blocks_per_stage": [2, 6, 36, 4], "embed_dim_per_stage": [144, 288, 576, 1152],
        "num_attention_heads_per_stage": [2, 4, 8, 16], "window_size_per_stage": [8, 4, 16, 8],
        "global_attention_blocks": [23, 33, 43], "window_positional_embedding_background_size": [7, 7],
    }  # fmt: skip
    vision = {"backbone_config": backbone, "backbone_channel_list": [1152, 576, 288, 144]}
    return transformers.Sam2Model(transformers.Sam2Config(vision_config=vision))


def sam1(_: Path) -> Any:
    vision = {"hidden_size": 1280, "num_hidden_layers": 32, "num_attention_heads": 16, "mlp_dim": 5120}
    return transformers.SamModel(
        transformers.SamConfig(vision_config=vision | {"global_attn_indexes": [7, 15, 23, 31]})
    )


NETWORKS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "grounding-dino-tiny": ("grounding-dino", lambda folder: grounding_dino(swin(224, 96, 7, 6), folder)),
    "grounding-dino-base": ("grounding-dino", lambda folder: grounding_dino(swin(384, 128, 12, 18), folder)),
    "owlv2-large": ("owlv2", owlv2),
    "sam2-large": ("sam2", sam2),
    "sam1-huge": ("sam1", sam1),
}
DETECTORS: dict[str, type[GroundingDino] | type[Owlv2]] = {"grounding-dino": GroundingDino, "owlv2": Owlv2}


def measure(name: str) -> None:
    kind, build = NETWORKS[name]
    image = np.random.default_rng(0).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    boxes = np.array([[10.0 * k, 10, 200 + 10 * k, 300] for k in range(20)])
    with tempfile.TemporaryDirectory() as place, quiet():
        folder = Path(place)
        network = build(folder).eval()
        millions = sum(weight.numel() for weight in network.parameters()) / 1e6
        network.save_pretrained(folder)
        del network
        types = DETECTORS[kind].types if kind in DETECTORS else BOX_SEGMENTERS[kind].types
        files = find_pretrained(str(folder), types=types, extra="camouflage", option="")
        runs: list[Callable[[], object]]
        if kind in DETECTORS:
            detector = DETECTORS[kind](files, alpha="library", device="cpu", extra="camouflage")
            runs = [lambda: detector.find(image, "frog")]
        else:
            segmenter = BoxSegmenter(kind, files, device="cpu")
            runs = [lambda: segmenter.segment(image, boxes[:1]), lambda: segmenter.segment(image, boxes)]
        seconds = []
        for run in runs:
            began = time.process_time()
            with torch.inference_mode():
                run()
            seconds.append(f"{time.process_time() - began:.1f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"| {name} | {millions:.0f} | {' / '.join(seconds)} | {peak:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NETWORKS))
    parser.add_argument("--one", choices=NETWORKS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        torch.set_num_threads(1)
        measure(arguments.one)
        return
    print("| network | parameters, millions | CPU s an image (one box / twenty) | peak, GiB |")
    print("|---|--:|--:|--:|", flush=True)
    for name in arguments.names or NETWORKS:
        subprocess.run([sys.executable, __file__, "--one", name], check=True)


if __name__ == "__main__":
    main()
