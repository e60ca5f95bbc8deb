"""CPU time of every COD10K-C operator beside its peers and the floor of its arithmetic.

    pip install -r benchmarks/requirements-operators.txt
    python benchmarks/operators.py

Prints a Markdown table of CPU milliseconds per image, uint8 RGB array in and out, one thread. All contestants of a
row run in turn, one call each a round, and the median over the rounds is shown, so that what disturbs the machine
disturbs all of them. A floor is the least that the effect needs: reading and writing every value through the
fastest plain primitive (named in the last column). A peer that is not installed is left out. Peers do not compute
the same pixels: each is given the parameters of the severity where it has them, and its defaults where not.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import io
import math
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")

import cv2
import numpy as np
import PIL.Image
import PIL.ImageEnhance
import PIL.ImageFilter

from crypsis.catalog import Entry, list_entries
from crypsis.io import read_image

Call = Callable[[np.ndarray], Any]


def test_image(height: int, width: int) -> np.ndarray:
    """Return an image with the 1/f spectrum of photographs."""
    rng = np.random.default_rng(0)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    frequency[0, 0] = 1
    layers = [np.fft.ifft2(np.fft.fft2(rng.standard_normal((height, width))) / frequency**1.2).real for _ in range(4)]
    color = np.stack([layers[0] + 0.3 * layer for layer in layers[1:]], axis=2)
    return np.clip(128 + 50 * color / color.std(), 0, 255).astype(np.uint8)


def pillow(level: dict[str, dict[str, Any]]) -> dict[str, Call]:
    """Return the calls of Pillow, array to array."""

    def through(change: Callable[[PIL.Image.Image], PIL.Image.Image]) -> Call:
        return lambda image: np.asarray(change(PIL.Image.fromarray(image)))

    def recode(picture: PIL.Image.Image) -> PIL.Image.Image:
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=level["jpeg_compression"]["quality"])
        return PIL.Image.open(buffer)

    factor, alpha = level["brightness"]["factor"], level["fog"]["alpha"]
    sigma, reach = level["gaussian_blur"]["sigma"], level["motion_blur"]["kernel"] // 2
    return {
        "brightness": through(lambda p: PIL.ImageEnhance.Brightness(p).enhance(factor)),
        "contrast": through(lambda p: PIL.ImageEnhance.Contrast(p).enhance(factor)),
        "fog": through(lambda p: PIL.Image.blend(p, PIL.Image.new("RGB", p.size, "white"), alpha)),
        "jpeg_compression": through(recode),
        "gaussian_blur": through(lambda p: p.filter(PIL.ImageFilter.GaussianBlur(sigma))),
        "motion_blur": through(lambda p: p.filter(PIL.ImageFilter.BoxBlur((reach, 0)))),
    }


def albumentations(level: dict[str, dict[str, Any]]) -> dict[str, Call]:
    """Return the calls of albumentations."""
    import albumentations as A  # noqa: N812  its documented abbreviation

    def always(transform: Any) -> Call:
        return lambda image: transform(image=image)["image"]

    change = level["brightness"]["factor"] - 1
    sigma, noise = level["gaussian_blur"]["sigma"], level["gaussian_noise"]["sigma"] / 255
    rain = level["rain"]
    kernel, quality, alpha = level["motion_blur"]["kernel"], level["jpeg_compression"]["quality"], level["fog"]["alpha"]
    return {
        "brightness": always(A.RandomBrightnessContrast((change, change), (0, 0), p=1)),
        "contrast": always(A.RandomBrightnessContrast((0, 0), (change, change), p=1)),
        "fog": always(A.RandomFog(alpha_coef=alpha, fog_coef_range=(alpha, alpha), p=1)),
        "rain": always(A.RandomRain(drop_length=rain["length"], brightness_coefficient=rain["veil"], p=1)),
        "jpeg_compression": always(A.ImageCompression(quality_range=(quality, quality), p=1)),
        "gaussian_noise": always(A.GaussNoise(std_range=(noise, noise), p=1)),
        "gaussian_blur": always(A.GaussianBlur(blur_limit=0, sigma_limit=(sigma, sigma), p=1)),
        "motion_blur": always(A.MotionBlur((kernel, kernel), allow_shifted=False, angle_range=(0, 0), p=1)),
    }


def imaug(level: dict[str, dict[str, Any]]) -> dict[str, Call]:
    """Return the calls of imaug, the maintained fork of imgaug."""
    import imgaug.augmenters as iaa

    def always(augmenter: Any) -> Call:
        return lambda image: augmenter(image=image)

    factor, quality = level["brightness"]["factor"], level["jpeg_compression"]["quality"]
    return {
        "brightness": always(iaa.Multiply(factor)),
        "contrast": always(iaa.LinearContrast(factor)),
        "fog": always(iaa.Fog()),
        "rain": always(iaa.Rain()),
        "jpeg_compression": always(iaa.JpegCompression(compression=100 - quality)),
        "gaussian_noise": always(iaa.AdditiveGaussianNoise(scale=level["gaussian_noise"]["sigma"], per_channel=True)),
        "gaussian_blur": always(iaa.GaussianBlur(level["gaussian_blur"]["sigma"])),
        "motion_blur": always(iaa.MotionBlur(k=level["motion_blur"]["kernel"], angle=90)),
    }


PEERS: dict[str, Callable[[dict[str, dict[str, Any]]], dict[str, Call]]] = {
    "albumentations": albumentations,
    "imaug": imaug,
    "pillow": pillow,
}


def floors(level: dict[str, dict[str, Any]]) -> dict[str, tuple[str, Call]]:
    """Return for each term a primitive that nothing computing the effect can do without, and its name."""
    table = np.arange(256, dtype=np.uint8)
    rng = np.random.Generator(np.random.SFC64(0))

    def blur(image: np.ndarray, sigma: float) -> np.ndarray:
        side = 2 * math.ceil(3 * sigma) + 1
        return cv2.GaussianBlur(image, (side, side), sigma)

    def codec(image: np.ndarray) -> np.ndarray:
        quality = level["jpeg_compression"]["quality"]
        return cv2.imdecode(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], cv2.IMREAD_COLOR)

    def lookup(image: np.ndarray) -> np.ndarray:
        return cv2.LUT(image, table)

    veil = level["rain"]["blur"]
    return {
        "brightness": ("table", lookup),
        "contrast": ("table", lookup),
        "fog": ("table", lookup),
        "rain": ("blur + table", lambda image: lookup(blur(image, veil))),
        "jpeg_compression": ("encode + decode", codec),
        "gaussian_noise": ("2 random bytes a value + copy", lambda image: (rng.bytes(2 * image.size), image.copy())),
        "gaussian_blur": ("blur", lambda image: blur(image, level["gaussian_blur"]["sigma"])),
        "motion_blur": ("box blur", lambda image: cv2.blur(image, (level["motion_blur"]["kernel"], 1))),
    }


def medians(calls: dict[str, Call], image: np.ndarray, rounds: int) -> dict[str, float]:
    """Return each call's median CPU time in milliseconds, all calls taking turns."""
    times: dict[str, list[int]] = {name: [] for name in calls}
    for turn in range(rounds + 3):
        for name, call in calls.items():
            start = time.process_time_ns()
            call(image)
            spent = time.process_time_ns() - start
            if turn >= 3:  # the first fill caches
                times[name].append(spent)
    return {name: statistics.median(values) / 1e6 for name, values in times.items()}


def row(entry: Entry, severity: int, peers: dict[str, dict[str, Call]], floor: tuple[str, Call], took: Any) -> str:
    """Measure one entry and return its line of the table."""
    calls: dict[str, Call] = {"crypsis": lambda image: entry.degrade(image, severity, seed=0, image_key="benchmark")}
    calls |= {name: own[entry.term] for name, own in peers.items() if entry.term in own}
    calls["floor"] = floor[1]
    cost = took(calls)
    others = {name: cost[name] for name in peers if name in cost}
    cells = [f"{others[name]:.2f}" if name in others else "–" for name in peers]
    ratio = f"{cost['crypsis'] / min(others.values()):.2f}" if others else "–"
    numbers = [
        f"{cost['crypsis']:.2f}",
        *cells,
        ratio,
        f"{cost['floor']:.2f}",
        f"{cost['crypsis'] / cost['floor']:.2f}",
    ]
    return f"| {entry.term} | {' | '.join(numbers)} | {floor[0]} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--severity", type=int, default=3, choices=range(1, 6))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--image", type=Path, help="a photograph, resized; default: a random image with its spectrum")
    options = parser.parse_args()

    cv2.setNumThreads(1)
    size = (options.height, options.width)
    if options.image:
        image = cv2.resize(read_image(options.image), size[::-1], interpolation=cv2.INTER_AREA)
    else:
        image = test_image(*size)
    entries = list_entries(family="cod10k-c")
    level = {e.term: dict(e.parameters[options.severity - 1]) for e in entries}
    peers: dict[str, dict[str, Call]] = {}
    for name, build in PEERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                peers[name] = build(level)
        except ImportError as error:
            print(f"{name} is left out: {error}")
    versions = {name: importlib.metadata.version(name) for name in (*peers, "numpy")} | {"opencv": cv2.__version__}
    print(f"{options.width}×{options.height}, severity {options.severity}, {options.rounds} rounds, CPU ms, one thread")
    print(f"Python {platform.python_version()}, " + ", ".join(f"{k} {v}" for k, v in versions.items()), end="\n\n")
    head = ["operator", "crypsis", *peers, "ratio to fastest peer", "floor", "ratio to floor", "the floor is"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    least = floors(level)
    for entry in entries:
        print(row(entry, options.severity, peers, least[entry.term], lambda c: medians(c, image, options.rounds)))


if __name__ == "__main__":
    main()
