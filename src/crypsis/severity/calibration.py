"""Calibration: how strong each native severity of an entry is, and five levels evenly spaced in strength.

A severity index is an ordinal: it says that level 3 comes after level 2, not how far. Measured on a few images, the
five levels become five numbers, and "canonical" level k the native level whose number is nearest to the k-th of five
evenly spaced ones (A Causally Grounded Taxonomy for Image Degradation Robustness Evaluation, appendices A and B).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from importlib import resources
from itertools import repeat, zip_longest
from typing import Any

import cv2
import numpy as np
import PIL

from .. import __version__
from ..catalog import get_entry
from ..catalog.apply import check_draw, nearest_severity, through_rgb_and_back
from ..errors import ImageError, InputError, UnknownNameError
from ..seeds import content_key
from ..types import Image
from .lpips import runtime_version
from .strength import METRICS, PSNR_CEILING, CleanImage, capped, check_metric

__all__ = [
    "PSNR_CEILING",
    "SCHEMA",
    "SHIPPED_METRICS",
    "SHIPPED_SCHEMA",
    "Calibration",
    "calibrate_distortion",
    "from_strengths",
    "image_name",
    "shipped_calibration",
]

SCHEMA = "crypsis.calibration/1"
SHIPPED_SCHEMA = "crypsis.calibrations/1"
"""Of a file with several entries in one metric on the same images."""

SHIPPED_METRICS = ("1-ssim", "psnr")
"""Those in which a calibration comes with Crypsis; see `shipped_calibration`."""

_SEVERITIES = 5
_MISSING, _BY_CONTENT = object(), object()


@dataclass(frozen=True)
class Calibration(Mapping[str, Any]):
    """The measured strength of an entry's five severities; every attribute is an item too: `calibration["strengths"]`.

    Attributes:
        entry: canonical name, such as `cod10k-c/fog`.
        metric: `1-ssim`, `lpips`, or `psnr` in dB.
        strengths: mean over the images at the native severities 1..5. A PSNR above `PSNR_CEILING` counts as that.
        deviations: standard deviation over the images (of the population: 0 for a single image), likewise.
        per_image: for each image, in the order given, its five strengths; an infinite PSNR is kept as such. It may be
            empty where a calibration was stored without.
        count: number of images.
        images: fingerprint of the images and their keys; their order does not matter.
        seed: the seed of random entries.
        versions: of what the pixels and numbers depend on.
        canonical_strengths: five strengths evenly spaced between the mildest and the strongest of `strengths`,
            mildest first: rising for `1-ssim` and `lpips`, falling for `psnr`.
    """

    entry: str
    metric: str
    strengths: tuple[float, ...]
    deviations: tuple[float, ...]
    per_image: tuple[tuple[float, ...], ...]
    count: int
    images: str
    seed: int
    versions: Mapping[str, str]
    canonical_strengths: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Place the canonical levels."""
        ends = min(self.strengths), max(self.strengths)
        mildest, strongest = ends if METRICS[self.metric].rising else ends[::-1]
        levels = np.linspace(mildest, strongest, _SEVERITIES)
        object.__setattr__(self, "canonical_strengths", tuple(levels.tolist()))

    def __getitem__(self, key: str) -> Any:
        """Return an attribute by its name."""
        if key not in _FIELDS:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the attributes."""
        return iter(_FIELDS)

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(_FIELDS)

    @property
    def native_severities(self) -> tuple[int, ...]:
        """The native severity that each canonical level 1..5 means; the same one may serve several levels."""
        rising = METRICS[self.metric].rising
        return tuple(nearest_severity(self.strengths, t, rising=rising) for t in self.canonical_strengths)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it (an infinite PSNR as "inf"); `from_dict` takes it back."""
        result: dict[str, Any] = {"schema": SCHEMA, **self}
        result["versions"] = dict(self.versions)
        for name in ("strengths", "deviations", "canonical_strengths"):
            result[name] = list(result[name])
        result["per_image"] = [[v if math.isfinite(v) else "inf" for v in row] for row in self.per_image]
        return result

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Calibration:
        """Return the calibration that `to_dict` wrote.

        Raises:
            InputError: something is missing or makes no sense; the message names it.
            UnknownNameError: its entry or metric does not exist here.
        """
        if not isinstance(content, Mapping) or content.get("schema") != SCHEMA:
            raise InputError(f"This is not a calibration: the content has no 'schema' of {SCHEMA!r}.")
        missing = [name for name in _FIELDS if name not in content]
        if missing:
            raise InputError(f"The calibration has no {missing[0]!r}; make it anew with calibrate_distortion.")
        metric = check_metric(content["metric"])
        count, seed, versions = content["count"], content["seed"], content["versions"]
        if type(count) is not int or count < 1 or type(seed) is not int:
            raise InputError("A calibration's 'count' is a number of images and its 'seed' an integer.")
        if not isinstance(versions, Mapping) or not isinstance(content["images"], str):
            raise InputError("A calibration's 'versions' are names with their versions, and 'images' is a fingerprint.")
        rows = content["per_image"]
        if not isinstance(rows, list | tuple) or len(rows) not in (0, count):
            raise InputError(f"A calibration's 'per_image' has one row for each of its {count} images, or none.")
        calibration = cls(
            entry=get_entry(content["entry"]).name,
            metric=metric,
            strengths=_five(content["strengths"], "strengths"),
            deviations=_five(content["deviations"], "deviations"),
            per_image=tuple(_five(row, "per_image", infinite=metric == "psnr") for row in rows),
            count=count,
            images=content["images"],
            seed=seed,
            versions={str(name): str(version) for name, version in versions.items()},
        )
        if not np.allclose(
            _five(content["canonical_strengths"], "canonical_strengths"), calibration.canonical_strengths
        ):
            raise InputError(
                "The calibration's 'canonical_strengths' are not evenly spaced between the ends of its 'strengths'; "
                "give levels of your own to apply_degradation(canonical_strengths=…) instead."
            )
        return calibration


_FIELDS = tuple(f.name for f in fields(Calibration))


def _five(values: object, name: str, *, infinite: bool = False) -> tuple[float, ...]:
    """Return five numbers of a stored calibration, finite unless said otherwise."""
    if isinstance(values, list | tuple) and len(values) == _SEVERITIES:
        numbers = tuple(math.inf if infinite and v in ("inf", math.inf) else v for v in values)
        if all(isinstance(v, int | float) and (math.isfinite(v) or (infinite and v > 0)) for v in numbers):
            return tuple(float(v) for v in numbers)
    raise InputError(f"A calibration's {name!r} are five numbers, one for each native severity; got {values!r:.80}.")


def calibrate_distortion(
    images: Iterable[Any],
    paper: str,
    term: str,
    metric: str = "1-ssim",
    *,
    seed: int = 0,
    image_keys: Iterable[str] | None = None,
) -> Calibration:
    """Measure how strong an entry's five native severities are on the given images.

    Each image is degraded at severities 1..5 as `apply_degradation` would do, and what that gives back is compared with
    its clean version in 8-bit RGB (alpha is left out). The strength of a severity is the mean over the images.

    Args:
        images: clean images, each of a kind that `apply_degradation` takes; sizes may differ. An iterator is read
            once, one image at a time. A few dozen images of the kind you will degrade are a good number.
        paper: the paper's key or its family.
        term: the paper's word for the degradation.
        metric: `1-ssim`, `psnr` or `lpips`; `crypsis.severity.strength.METRICS` defines them.
        seed: which of many random fields; any integer.
        image_keys: a name for each image, on which all its randomness depends; without them it is derived from the
            pixels.

    Returns:
        The measured strengths, the canonical ones, and what is needed to say where they come from.

    Raises:
        UnknownNameError: there is no such degradation or metric.
        ImageError: an image is not acceptable; the message says which.
        InputError: another argument is wrong, or there is no image.
    """
    check_metric(metric)
    entry = get_entry(paper, term)
    seed = check_draw(seed, None)
    pairs: Iterator[tuple[Any, Any]]
    if image_keys is None:
        pairs = zip(_several(images), repeat(_BY_CONTENT), strict=False)
    else:
        pairs = zip_longest(_several(images), _several(image_keys, "image_keys"), fillvalue=_MISSING)
    rows: list[tuple[float, ...]] = []
    names: list[str] = []
    for index, (image, given) in enumerate(pairs):
        if image is _MISSING or given is _MISSING:
            raise InputError("image_keys holds one name for each image; their numbers differ.")
        if given is not _BY_CONTENT and not isinstance(given, str):
            raise InputError(f"image_keys[{index}] is not a string: {given!r}.")
        try:
            rgb, given_back = _rgb(image)
        except ImageError as error:
            raise ImageError(f"images[{index}]: {error}") from error
        content = content_key(rgb)
        key = given if isinstance(given, str) else content
        clean = CleanImage(rgb)
        degraded = (given_back(entry.degrade(rgb, severity, seed=seed, image_key=key)) for severity in entry.severities)
        lpips = metric == "lpips"
        rows.append(tuple(clean.strengths(picture, lpips=lpips).value(metric) for picture in degraded))
        names.append(image_name(key, content))
    if not rows:
        raise InputError(f"There is no image to calibrate {entry.name} on; give at least one, better a few dozen.")
    return from_strengths(entry.name, metric, rows, names, seed=seed)


def image_name(key: str, content: str) -> str:
    """Return what stands for one image in a fingerprint: its key, and what `crypsis.seeds.content_key` says of it."""
    return f"{key}\0{content}"


def from_strengths(
    entry: str, metric: str, rows: Sequence[Sequence[float]], names: Iterable[str], *, seed: int
) -> Calibration:
    """Return the calibration of strengths that are already measured.

    Args:
        entry: canonical name.
        metric: of the strengths.
        rows: for each image its five strengths, at least one; PSNR may be infinite.
        names: for each image its `image_name`.
        seed: that the images were degraded with.
    """
    measured = capped(rows) if metric == "psnr" else np.asarray(rows)
    means = [math.fsum(level) / len(rows) for level in measured.T]
    deviations = [
        math.sqrt(math.fsum((level - mean) ** 2) / len(rows)) for level, mean in zip(measured.T, means, strict=True)
    ]
    return Calibration(
        entry=entry,
        metric=metric,
        strengths=tuple(means),
        deviations=tuple(deviations),
        per_image=tuple(tuple(row) for row in rows),
        count=len(rows),
        images=hashlib.blake2b("\n".join(sorted(names)).encode(), digest_size=16).hexdigest(),
        seed=seed,
        versions=_versions(metric),
    )


def _versions(metric: str) -> dict[str, str]:
    """Return the versions that a measurement depends on."""
    versions = {
        "crypsis": __version__,
        "numpy": np.__version__,
        "opencv": cv2.__version__,
        "pillow": PIL.__version__,
    }
    if metric == "lpips":
        versions["onnxruntime"] = runtime_version()
    return versions


def shipped_calibration(entry: str, metric: str = "1-ssim") -> Calibration:
    """Return a calibration that comes with Crypsis, so that canonical severities need no images of one's own.

        fog = shipped_calibration("cod10k-c/fog")
        worse = apply_degradation(image, "cod10k-c/fog", severity=3, mode="canonical", calibration=fog)

    It was measured on the 48 photographs of the demo set, seed 0, by `scripts/make_demo_calibrations.py`, and holds
    six significant digits and no strengths of single images. Images unlike those (in size, texture or exposure) have
    other strengths: calibrate on your own where that matters.

    Args:
        entry: a name of the catalog or an alias.
        metric: `1-ssim` or `psnr`.

    Raises:
        UnknownNameError: there is no such entry, or no shipped calibration in that metric.
        InputError: this installation lacks it.
    """
    name = get_entry(entry).name
    if metric not in SHIPPED_METRICS:
        raise UnknownNameError.among(
            "shipped calibration in the metric",
            str(metric),
            SHIPPED_METRICS,
            "Others are measured: calibrate_distortion(images, …), or `crypsis calibrate --data IMAGES`.",
        )
    content = _shipped(metric)
    levels = content["entries"].get(name)
    if levels is None:
        raise InputError(f"No calibration of {name} comes with Crypsis; make one with calibrate_distortion.")
    shared = {key: content[key] for key in ("metric", "count", "images", "seed", "versions")}
    return Calibration(
        entry=name,
        strengths=_five(levels["strengths"], "strengths"),
        deviations=_five(levels["deviations"], "deviations"),
        per_image=(),
        **shared,
    )


@lru_cache(maxsize=len(SHIPPED_METRICS))
def _shipped(metric: str) -> dict[str, Any]:
    """Read the file of shipped calibrations in one metric."""
    file = resources.files("crypsis") / "data" / "calibrations" / f"demo-{metric}.json"
    try:
        content: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read ({error}); install crypsis again with pip.") from error
    return content


def _several(values: Iterable[Any], name: str = "images") -> Iterable[Any]:
    """Refuse one image, path or name where a list of them is meant."""
    shape = getattr(values, "shape", None)
    one = isinstance(values, str | bytes) or not isinstance(values, Iterable) or (shape is not None and len(shape) < 4)
    if one:
        raise InputError(f"{name} is a list, even of one; got a single {type(values).__name__}.")
    return values


def _rgb(image: object) -> tuple[Image, Callable[[Image], Image]]:
    """Return an image of any kind that `apply_degradation` takes as uint8 RGB, and what results become in its kind."""
    seen: list[tuple[Image, Callable[[Image], Image]]] = []

    def keep(rgb: Image, given_back: Callable[[Image], Image]) -> Image:
        seen.append((rgb, given_back))
        return rgb

    through_rgb_and_back(image, keep)
    return seen[0]
