"""CPU time of measuring strength, beside its peers and the floor of its arithmetic.

    pip install -r benchmarks/requirements-strength.txt
    OMP_NUM_THREADS=1 python benchmarks/strength.py

Prints a Markdown table of CPU milliseconds per pair of images, uint8 RGB arrays in and a number out, one thread. All
rows run in turn, one call each a round, and the median over the rounds is shown, so that what disturbs the machine
disturbs all of them. The floor of SSIM is its Gaussian means alone: four of float32 images of this size through
OpenCV, three where those of the clean image are known. Peers are given the convention of `crypsis`
where they have it (torchmetrics and kornia treat the border in another way, so their number differs). A peer that
is not installed is left out; LPIPS has none here that does without torchvision.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

import crypsis
from crypsis.io import read_image
from crypsis.severity.lpips import lpips, runtime_version
from crypsis.severity.strength import CleanImage, psnr, ssim

Measure = Callable[[], object]
DEMO = Path(crypsis.__file__).parent / "data" / "demo" / "images" / "demo-test-44-tiger.jpg"


def scikit_image(clean: np.ndarray, degraded: np.ndarray) -> dict[str, Measure]:
    """Return the calls of scikit-image."""
    from skimage.metrics import peak_signal_noise_ratio, structural_similarity

    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 255}
    return {
        "PSNR": lambda: peak_signal_noise_ratio(clean, degraded, data_range=255),
        "SSIM": lambda: structural_similarity(clean, degraded, channel_axis=2, **options),
    }


def tensors(clean: np.ndarray, degraded: np.ndarray) -> list:
    """Return both images as 1×3×H×W float tensors in [0, 1]."""
    import torch

    torch.set_num_threads(1)
    return [torch.from_numpy(i).permute(2, 0, 1).contiguous().float().div(255)[None] for i in (clean, degraded)]


def torchmetrics(clean: np.ndarray, degraded: np.ndarray) -> dict[str, Measure]:
    """Return the calls of torchmetrics, the conversion to tensors included."""
    from torchmetrics.functional.image import (
        peak_signal_noise_ratio,
        structural_similarity_index_measure,
    )

    tensors(clean, degraded)
    return {
        "PSNR": lambda: float(peak_signal_noise_ratio(*tensors(degraded, clean), data_range=1.0)),
        "SSIM": lambda: float(structural_similarity_index_measure(*tensors(degraded, clean), data_range=1.0)),
    }


def kornia(clean: np.ndarray, degraded: np.ndarray) -> dict[str, Measure]:
    """Return the calls of kornia, the conversion to tensors included."""
    from kornia.metrics import psnr as kornia_psnr
    from kornia.metrics import ssim as kornia_ssim

    return {
        "PSNR": lambda: float(kornia_psnr(*tensors(degraded, clean), 1.0)),
        "SSIM": lambda: float(kornia_ssim(*tensors(clean, degraded), 11, padding="valid").mean()),
    }


PEERS = {"scikit-image": scikit_image, "torchmetrics": torchmetrics, "kornia": kornia}


def floor(clean: np.ndarray, means: int) -> Measure:
    """Return a call that does nothing but the Gaussian means."""
    window = cv2.getGaussianKernel(11, 1.5, cv2.CV_32F)
    values = clean.astype(np.float32)

    def run() -> None:
        for _ in range(means):
            cv2.sepFilter2D(values, cv2.CV_32F, window, window)

    return run


def medians(calls: dict[str, Measure], rounds: int) -> dict[str, float]:
    """Return each call's median CPU time in milliseconds, all calls taking turns."""
    times: dict[str, list[int]] = {name: [] for name in calls}
    for turn in range(rounds + 2):
        for name, call in calls.items():
            start = time.process_time_ns()
            call()
            spent = time.process_time_ns() - start
            if turn >= 2:  # the first fill caches
                times[name].append(spent)
    return {name: statistics.median(values) / 1e6 for name, values in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--image", type=Path, default=DEMO, help="a photograph, resized; default: one of the demo set")
    options = parser.parse_args()

    cv2.setNumThreads(1)
    size = (options.width, options.height)
    clean = cv2.resize(read_image(options.image), size, interpolation=cv2.INTER_CUBIC)
    noise = np.random.default_rng(0).normal(0, 10, clean.shape)
    degraded = np.clip(clean + noise, 0, 255).astype(np.uint8)
    known = CleanImage(clean)
    calls: dict[str, Measure] = {
        "PSNR crypsis": lambda: psnr(clean, degraded),
        "SSIM crypsis": lambda: ssim(clean, degraded),
        "SSIM crypsis, clean image known": lambda: known.ssim(degraded),
        "SSIM floor: four Gaussian means": floor(clean, 4),
        "SSIM floor: three Gaussian means": floor(clean, 3),
        "LPIPS crypsis": lambda: lpips(clean, degraded),
        "LPIPS crypsis, clean image known": lambda: known.lpips(degraded),
    }
    versions = {"numpy": np.__version__, "opencv": cv2.__version__, "onnxruntime": runtime_version()}
    for name, build in PEERS.items():
        try:
            calls |= {f"{metric} {name}": call for metric, call in build(clean, degraded).items()}
            versions[name] = importlib.metadata.version(name)
        except ImportError as error:
            print(f"{name} is left out: {error}")
    took = medians(calls, options.rounds)
    print(f"{options.width}×{options.height}, {options.rounds} rounds, CPU ms, one thread")
    print(f"Python {platform.python_version()}, " + ", ".join(f"{k} {v}" for k, v in versions.items()), end="\n\n")
    print("| what | CPU ms | times crypsis | value |\n|---|---:|---:|---:|")
    for name, call in sorted(calls.items(), key=lambda item: item[0].split()[0]):
        value = call()
        shown = "–" if value is None else f"{float(value):.6f}"
        print(f"| {name} | {took[name]:.3f} | {took[name] / took[f'{name.split()[0]} crypsis']:.2f} | {shown} |")


if __name__ == "__main__":
    main()
