"""CPU time of every operator of the catalog beside its peers and the floor of its arithmetic.

    pip install -r benchmarks/requirements-operators.txt
    python benchmarks/operators.py [--family imagenet-c …] [--imagecorruptions CHECKOUT]

Prints a Markdown table per family of CPU milliseconds per image, uint8 RGB array in and out, one thread. All
contestants of a row run in turn, one call each a round, and the median over the rounds is shown, so that what disturbs
the machine disturbs all of them. A floor is the least that an effect needs: reading and writing every value through
the fastest plain primitives (named in the last column). A peer that is not installed is left out.

Peers marked * have the algorithm of the row (those of the imagecorruptions family, and imaug's imgcorruptlike, in
imagenet-c); the others have an effect of the same kind, and are given the parameters of the severity where they have
them and their defaults where not. imagecorruptions itself does not work from PyPI with current packages: give the path
of a checkout of bethgelab/imagecorruptions. Peers that need different versions of NumPy need different environments,
and so different runs.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import io
import math
import os
import platform
import statistics
import sys
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
Level = dict[str, dict[str, Any]]
"""The parameters of each row at the chosen severity, by its name."""


def test_image(height: int, width: int) -> np.ndarray:
    """Return an image with the 1/f spectrum of photographs."""
    rng = np.random.default_rng(0)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    frequency[0, 0] = 1
    layers = [np.fft.ifft2(np.fft.fft2(rng.standard_normal((height, width))) / frequency**1.2).real for _ in range(4)]
    color = np.stack([layers[0] + 0.3 * layer for layer in layers[1:]], axis=2)
    return np.clip(128 + 50 * color / color.std(), 0, 255).astype(np.uint8)


def named(family: str, calls: dict[str, Call]) -> dict[str, Call]:
    """Return the calls by the names of their rows."""
    return {f"{family}/{term}": call for term, call in calls.items()}


def corrupt_of(module: str, severity: int) -> dict[str, Call]:
    """Return the calls of a package with the interface of imagecorruptions."""
    package = importlib.import_module(module)

    def call(term: str) -> Call:
        return lambda image: package.corrupt(image, severity=severity, corruption_name=term)

    return named("imagenet-c", {term: call(term) for term in package.get_corruption_names("all")})


def imagecorruptions(level: Level, severity: int) -> dict[str, Call]:
    """Return the calls of imagecorruptions: a checkout, or whatever is installed under this name."""
    import scipy.ndimage

    sys.modules.setdefault("scipy.ndimage.interpolation", scipy.ndimage)  # its old name, still used
    return corrupt_of("imagecorruptions", severity)


def imgcorr(level: Level, severity: int) -> dict[str, Call]:
    """Return the calls of imgcorr, imagecorruptions with current requirements."""
    return corrupt_of("imgcorr", severity)


def pillow(level: Level, severity: int) -> dict[str, Call]:
    """Return the calls of Pillow, array to array."""

    def through(change: Callable[[PIL.Image.Image], PIL.Image.Image]) -> Call:
        return lambda image: np.asarray(change(PIL.Image.fromarray(image)))

    def recode(quality: int) -> Call:
        def change(picture: PIL.Image.Image) -> PIL.Image.Image:
            buffer = io.BytesIO()
            picture.save(buffer, "JPEG", quality=quality)
            return PIL.Image.open(buffer)

        return through(change)

    factor, alpha = level["cod10k-c/brightness"]["factor"], level["cod10k-c/fog"]["alpha"]
    sigma, reach = level["cod10k-c/gaussian_blur"]["sigma"], level["cod10k-c/motion_blur"]["kernel"] // 2
    return {
        "cod10k-c/brightness": through(lambda p: PIL.ImageEnhance.Brightness(p).enhance(factor)),
        "cod10k-c/contrast": through(lambda p: PIL.ImageEnhance.Contrast(p).enhance(factor)),
        "cod10k-c/fog": through(lambda p: PIL.Image.blend(p, PIL.Image.new("RGB", p.size, "white"), alpha)),
        "cod10k-c/jpeg_compression": recode(level["cod10k-c/jpeg_compression"]["quality"]),
        "cod10k-c/gaussian_blur": through(lambda p: p.filter(PIL.ImageFilter.GaussianBlur(sigma))),
        "cod10k-c/motion_blur": through(lambda p: p.filter(PIL.ImageFilter.BoxBlur((reach, 0)))),
    }


def albumentations(level: Level, severity: int) -> dict[str, Call]:
    """Return the calls of albumentations."""
    import albumentations as A  # noqa: N812  its documented abbreviation

    def always(transform: Any) -> Call:
        return lambda image: transform(image=image)["image"]

    def tone(brightness: float, contrast: float) -> Call:
        return always(A.RandomBrightnessContrast((brightness, brightness), (contrast, contrast), p=1))

    def jpeg(quality: int) -> Call:
        return always(A.ImageCompression(quality_range=(quality, quality), p=1))

    def noise(sigma: float) -> Call:
        return always(A.GaussNoise(std_range=(sigma / 255, sigma / 255), p=1))

    def soft(sigma: float) -> Call:
        return always(A.GaussianBlur(blur_limit=0, sigma_limit=(sigma, sigma), p=1))

    cod = {name.partition("/")[2]: values for name, values in level.items() if name.startswith("cod10k-c/")}
    own = {name.partition("/")[2]: values for name, values in level.items() if name.startswith("imagenet-c/")}
    change, kernel, alpha = cod["brightness"]["factor"] - 1, cod["motion_blur"]["kernel"], cod["fog"]["alpha"]
    calls = named(
        "cod10k-c",
        {
            "brightness": tone(change, 0),
            "contrast": tone(0, change),
            "fog": always(A.RandomFog(alpha_coef=alpha, fog_coef_range=(alpha, alpha), p=1)),
            "rain": always(
                A.RandomRain(drop_length=cod["rain"]["length"], brightness_coefficient=cod["rain"]["veil"], p=1)
            ),
            "jpeg_compression": jpeg(cod["jpeg_compression"]["quality"]),
            "gaussian_noise": noise(cod["gaussian_noise"]["sigma"]),
            "gaussian_blur": soft(cod["gaussian_blur"]["sigma"]),
            "motion_blur": always(A.MotionBlur((kernel, kernel), allow_shifted=False, angle_range=(0, 0), p=1)),
        },
    )
    amount, scale = own["impulse_noise"]["amount"], own["pixelate"]["scale"]
    disc, glass, zoom = own["defocus_blur"], own["glass_blur"], own["zoom_blur"]
    length, light, flat = 2 * own["motion_blur"]["radius"] + 1, own["brightness"]["amount"], own["contrast"]["factor"]
    gain = (1 - own["speckle_noise"]["sigma"], 1 + own["speckle_noise"]["sigma"])
    vivid = own["saturate"]["factor"]
    return calls | named(
        "imagenet-c",
        {
            "gaussian_noise": noise(own["gaussian_noise"]["sigma"]),
            "shot_noise": always(A.ShotNoise(scale_range=(1 / own["shot_noise"]["photons"],) * 2, p=1)),
            "impulse_noise": always(A.SaltAndPepper(amount=(amount, amount), salt_vs_pepper=(0.5, 0.5), p=1)),
            "defocus_blur": always(A.Defocus((disc["radius"],) * 2, (disc["alias_sigma"],) * 2, p=1)),
            "glass_blur": always(A.GlassBlur(**glass, mode="fast", p=1)),
            "motion_blur": always(A.MotionBlur((length, length), angle_range=(0, 45), p=1)),
            "zoom_blur": always(A.ZoomBlur((zoom["stop"],) * 2, (zoom["step"],) * 2, p=1)),
            "snow": always(A.RandomSnow(method="texture", p=1)),
            "fog": always(A.RandomFog(p=1)),
            "brightness": tone(light, 0),
            "contrast": tone(0, flat - 1),
            "elastic_transform": always(A.ElasticTransform(alpha=own["elastic_transform"]["alpha"], sigma=5, p=1)),
            "pixelate": always(
                A.Downscale((scale, scale), {"downscale": cv2.INTER_AREA, "upscale": cv2.INTER_NEAREST}, p=1)
            ),
            "jpeg_compression": jpeg(own["jpeg_compression"]["quality"]),
            "speckle_noise": always(A.MultiplicativeNoise(gain, per_channel=True, elementwise=True, p=1)),
            "gaussian_blur": soft(own["gaussian_blur"]["sigma"]),
            "spatter": always(A.Spatter(mode="rain" if severity < 4 else "mud", p=1)),
            "saturate": always(A.ColorJitter((1, 1), (1, 1), (vivid, vivid), (0, 0), p=1)),
        },
    )


def imaug(level: Level, severity: int) -> dict[str, Call]:
    """Return the calls of imaug, the maintained fork of imgaug."""
    import imgaug.augmenters as iaa

    def always(augmenter: Any) -> Call:
        return lambda image: augmenter(image=image)

    cod = {name.partition("/")[2]: values for name, values in level.items() if name.startswith("cod10k-c/")}
    factor, quality = cod["brightness"]["factor"], cod["jpeg_compression"]["quality"]
    calls = {
        "brightness": always(iaa.Multiply(factor)),
        "contrast": always(iaa.LinearContrast(factor)),
        "fog": always(iaa.Fog()),
        "rain": always(iaa.Rain()),
        "jpeg_compression": always(iaa.JpegCompression(compression=100 - quality)),
        "gaussian_noise": always(iaa.AdditiveGaussianNoise(scale=cod["gaussian_noise"]["sigma"], per_channel=True)),
        "gaussian_blur": always(iaa.GaussianBlur(cod["gaussian_blur"]["sigma"])),
        "motion_blur": always(iaa.MotionBlur(k=cod["motion_blur"]["kernel"], angle=90)),
    }
    like = iaa.imgcorruptlike
    terms = [e.term for e in list_entries(family="imagenet-c")]
    alike = {t: always(getattr(like, "".join(w.title() for w in t.split("_")))(severity=severity)) for t in terms}
    return named("cod10k-c", calls) | named("imagenet-c", alike)


def kornia(level: Level, severity: int) -> dict[str, Call]:
    """Return the calls of kornia, array to array."""
    import kornia.augmentation as K  # noqa: N812  its documented abbreviation
    import torch

    torch.set_num_threads(1)

    def always(module: Any) -> Call:
        def call(image: np.ndarray) -> np.ndarray:
            with torch.inference_mode():
                batch = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
                changed = (module(batch)[0].clamp(0, 1) * 255).to(torch.uint8)
                return changed.permute(1, 2, 0).contiguous().numpy()

        return call

    own = {name.partition("/")[2]: values for name, values in level.items() if name.startswith("imagenet-c/")}
    amount, sigma = own["impulse_noise"]["amount"], own["gaussian_blur"]["sigma"]
    light, flat = 1 + own["brightness"]["amount"], own["contrast"]["factor"]
    side, length = 2 * math.ceil(4 * sigma) + 1, 2 * own["motion_blur"]["radius"] + 1
    quality, vivid = own["jpeg_compression"]["quality"], own["saturate"]["factor"]
    return named(
        "imagenet-c",
        {
            "gaussian_noise": always(K.RandomGaussianNoise(std=own["gaussian_noise"]["sigma"] / 255, p=1)),
            "impulse_noise": always(K.RandomSaltAndPepperNoise(amount=(amount, amount), p=1)),
            "motion_blur": always(K.RandomMotionBlur(length, (-45.0, 45.0), (1.0, 1.0), p=1)),
            "snow": always(K.RandomSnow(snow_coefficient=(0.5, 0.5), brightness=(2, 2), p=1)),
            "brightness": always(K.RandomBrightness((light, light), p=1)),
            "contrast": always(K.RandomContrast((flat, flat), p=1)),
            "elastic_transform": always(K.RandomElasticTransform(kernel_size=(63, 63), sigma=(5.0, 5.0), p=1)),
            "jpeg_compression": always(K.RandomJPEG((quality, quality), p=1)),
            "gaussian_blur": always(K.RandomGaussianBlur((side, side), (sigma, sigma), p=1)),
            "saturate": always(K.RandomSaturation((vivid, vivid), p=1)),
        },
    )


PEERS: dict[str, Callable[[Level, int], dict[str, Call]]] = {
    "imagecorruptions": imagecorruptions,
    "imgcorr": imgcorr,
    "imaug": imaug,
    "albumentations": albumentations,
    "kornia": kornia,
    "pillow": pillow,
}
SAME_IN_IMAGENET_C = ("imagecorruptions", "imgcorr", "imaug")
"""The peers with the algorithm of these rows."""


def floors(level: Level) -> dict[str, tuple[str, Call]]:
    """Return for rows a primitive that nothing computing the effect can do without, and its name."""
    table = np.arange(256, dtype=np.uint8)
    rng = np.random.Generator(np.random.SFC64(0))

    def blur(image: np.ndarray, sigma: float, reach: float = 3) -> np.ndarray:
        side = 2 * math.ceil(reach * sigma) + 1
        return cv2.GaussianBlur(image, (side, side), sigma)

    def codec(quality: int) -> tuple[str, Call]:
        options = [cv2.IMWRITE_JPEG_QUALITY, quality]
        return "encode + decode", lambda i: cv2.imdecode(cv2.imencode(".jpg", i, options)[1], cv2.IMREAD_COLOR)

    def warp(image: np.ndarray) -> np.ndarray:
        return cv2.warpAffine(image, np.array([[0.9, 0, 1], [0, 0.9, 1]]), image.shape[1::-1])

    def pixelate(image: np.ndarray, scale: float) -> np.ndarray:
        small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        return cv2.resize(small, image.shape[1::-1], interpolation=cv2.INTER_NEAREST)

    def add(image: np.ndarray) -> np.ndarray:
        return cv2.add(image, image)

    lookup = ("table", lambda image: cv2.LUT(image, table))
    random_words = ("2 random bytes a value + sum", lambda image: (rng.bytes(2 * image.size), add(image)))
    field = ("random bytes for each pixel + sum", lambda image: (rng.bytes(2 * image.size // 3), add(image)))
    veil, cod_sigma = level["cod10k-c/rain"]["blur"], level["cod10k-c/gaussian_blur"]["sigma"]
    sigma, glass = level["imagenet-c/gaussian_blur"]["sigma"], level["imagenet-c/glass_blur"]
    scale, kernel = level["imagenet-c/pixelate"]["scale"], level["cod10k-c/motion_blur"]["kernel"]
    return {
        "cod10k-c/brightness": lookup,
        "cod10k-c/contrast": lookup,
        "cod10k-c/fog": lookup,
        "cod10k-c/rain": ("blur + table", lambda image: cv2.LUT(blur(image, veil), table)),
        "cod10k-c/jpeg_compression": codec(level["cod10k-c/jpeg_compression"]["quality"]),
        "cod10k-c/gaussian_noise": random_words,
        "cod10k-c/gaussian_blur": ("blur", lambda image: blur(image, cod_sigma)),
        "cod10k-c/motion_blur": ("box blur", lambda image: cv2.blur(image, (kernel, 1))),
        "imagenet-c/gaussian_noise": random_words,
        "imagenet-c/shot_noise": random_words,
        "imagenet-c/impulse_noise": random_words,
        "imagenet-c/speckle_noise": random_words,
        "imagenet-c/glass_blur": ("2 blurs", lambda image: blur(blur(image, glass["sigma"], 4), glass["sigma"], 4)),
        "imagenet-c/zoom_blur": ("one warp", warp),
        "imagenet-c/snow": field,
        "imagenet-c/frost": ("sum", add),
        "imagenet-c/fog": field,
        "imagenet-c/brightness": lookup,
        "imagenet-c/contrast": lookup,
        "imagenet-c/elastic_transform": ("one warp", warp),
        "imagenet-c/pixelate": ("2 resizes", lambda image: pixelate(image, scale)),
        "imagenet-c/jpeg_compression": codec(level["imagenet-c/jpeg_compression"]["quality"]),
        "imagenet-c/gaussian_blur": ("blur", lambda image: blur(image, sigma, 4)),
        "imagenet-c/spatter": field,
        "imagenet-c/saturate": ("color conversion", lambda image: cv2.cvtColor(image, cv2.COLOR_RGB2HSV)),
    }


def medians(calls: dict[str, Call], image: np.ndarray, rounds: int) -> dict[str, float]:
    """Return each call's median CPU time in milliseconds, all calls taking turns; what fails is left out."""
    times: dict[str, list[int]] = {name: [] for name in calls}
    failed: set[str] = set()
    for turn in range(rounds + 2):
        for name, call in calls.items():
            if name in failed:
                continue
            start = time.process_time_ns()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call(image)
            except Exception as error:  # a peer's own defect is no reason to stop
                if name == "crypsis":
                    raise
                print(f"{name} fails: {error}", file=sys.stderr)
                failed.add(name)
                continue
            spent = time.process_time_ns() - start
            if turn >= 2:  # the first fill caches
                times[name].append(spent)
    return {name: statistics.median(values) / 1e6 for name, values in times.items() if name not in failed}


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


class Table:
    """One family's rows, printed as they are measured."""

    def __init__(self, family: str, peers: list[str]) -> None:
        """Print the head."""
        self.family, self.peers = family, peers
        self.cost: dict[str, dict[str, float]] = {}
        star = [f"{p} *" if family == "imagenet-c" and p in SAME_IN_IMAGENET_C else p for p in peers]
        head = [f"{family}/", "crypsis", *star]
        head += ["ratio to fastest peer *"] if family == "imagenet-c" else []
        head += ["ratio to fastest peer"] if peers else []
        self.columns = [*head, "floor", "ratio to floor", "the floor is"]
        print(f"\n| {' | '.join(self.columns)} |\n|{'---|' * len(self.columns)}")

    def row(self, entry: Entry, cost: dict[str, float], floor: str) -> None:
        """Print one row."""
        self.cost[entry.term] = cost
        own = cost["crypsis"]
        others = [cost[p] for p in self.peers if p in cost]
        same = [cost[p] for p in SAME_IN_IMAGENET_C if p in cost]
        cells = [f"{own:.2f}", *(f"{cost[p]:.2f}" if p in cost else "–" for p in self.peers)]
        if self.family == "imagenet-c":
            cells.append(f"{own / min(same):.2f}" if same else "–")
        if self.peers:
            cells.append(f"{own / min(others):.2f}" if others else "–")
        cells += [f"{cost['floor']:.2f}", f"{own / cost['floor']:.1f}", floor] if "floor" in cost else ["–"] * 3
        print(f"| {entry.term} | {' | '.join(cells)} |", flush=True)

    def summary(self) -> None:
        """Print sums and means."""
        print(
            f"\n{self.family}: {len(self.cost)} rows, {sum(c['crypsis'] for c in self.cost.values()):.1f} ms in total."
        )
        for peer in self.peers:
            ratios = [c[peer] / c["crypsis"] for c in self.cost.values() if peer in c]
            if ratios:
                print(
                    f"Against {peer}: {geometric_mean(ratios):.1f} times as fast (geometric mean of {len(ratios)} "
                    f"rows), no slower on {sum(r >= 1 for r in ratios)}."
                )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    families = list(dict.fromkeys(e.family for e in list_entries()))
    parser.add_argument("--family", action="append", choices=families, help="default: all; may be repeated")
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--severity", type=int, default=3, choices=range(1, 6))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--image", type=Path, help="a photograph, resized; default: a random image with its spectrum")
    parser.add_argument("--imagecorruptions", type=Path, help="a checkout of bethgelab/imagecorruptions")
    options = parser.parse_args()
    if options.imagecorruptions:
        sys.path.insert(0, str(options.imagecorruptions))

    cv2.setNumThreads(1)
    size = (options.height, options.width)
    if options.image:
        image = cv2.resize(read_image(options.image), size[::-1], interpolation=cv2.INTER_AREA)
    else:
        image = test_image(*size)
    level = {e.name: dict(e.parameters[options.severity - 1]) for e in list_entries()}
    peers: dict[str, dict[str, Call]] = {}
    for name, build in PEERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                peers[name] = build(level, options.severity)
        except ImportError as error:
            print(f"{name} is left out: {error}")
    versions = {}
    for name in (*peers, "numpy"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "(a checkout)"
    versions["opencv"] = cv2.__version__
    print(f"{options.width}×{options.height}, severity {options.severity}, {options.rounds} rounds, CPU ms, one thread")
    print(f"Python {platform.python_version()}, " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    least = floors(level)
    total, count = 0.0, 0
    for family in options.family or families:
        entries = list_entries(family=family)
        table = Table(family, [p for p, calls in peers.items() if any(e.name in calls for e in entries)])
        for entry in entries:
            calls: dict[str, Call] = {
                "crypsis": lambda image, e=entry: e.degrade(image, options.severity, seed=0, image_key="benchmark")
            }
            calls |= {p: peers[p][entry.name] for p in table.peers if entry.name in peers[p]}
            if entry.name in least:
                calls["floor"] = least[entry.name][1]
            cost = medians(calls, image, options.rounds)
            total, count = total + cost["crypsis"], count + 1
            table.row(entry, cost, least.get(entry.name, ("", None))[0])
        table.summary()
    print(f"\nAll {count} rows at severity {options.severity}: {total:.1f} ms of CPU per image.")


if __name__ == "__main__":
    main()
