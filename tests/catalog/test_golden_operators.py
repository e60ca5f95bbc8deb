"""Output bytes of every entry and severity, pinned: a number measured today can be measured again.

One file a family, written by `python tests/catalog/test_golden_operators.py FAMILY` with the package installed.
Entries made of integer arithmetic are pinned by a digest. What goes through code of the OpenCV build that another may
round otherwise (blurs, JPEG, color conversions, rain) may differ by one gray level; its pixels are stored.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from crypsis.catalog import get_entry, list_entries

DATA = Path(__file__).parent.parent / "data"
STORED = {"cod10k-c/rain", "cod10k-c/jpeg_compression", "cod10k-c/gaussian_blur"}
STORED |= {f"arniqa/{t}" for t in ("gaublur", "lensblur", "motionblur", "jitter", "jpeg", "jpeg2000", "brighten")}
STORED |= {f"arniqa/{t}" for t in ("colordiff", "colorshift", "colorsat1", "colorsat2", "highsharpen")}
STORED |= {"arniqa/whitenoiseCC", "arniqa/multnoise"}
EXACT_IMAGENET_C = ("gaussian_noise", "shot_noise", "impulse_noise", "brightness", "contrast", "pixelate")
STORED |= {e.name for e in list_entries(family="imagenet-c") if e.term not in EXACT_IMAGENET_C}
STORED |= {f"real-camera/{t}" for t in ("fog", "lens_obstruction", "focus_motor_damage", "lens_shading_damage")}
STORED |= {f"real-camera/{t}" for t in ("color_space_conversion_damage", "transfer_harness_exceptions")}
LARGEST = {"imagenet-c/zoom_blur": 2, "imagenet-c/elastic_transform": 5}  # older OpenCV warps to 1/32 pixel
CASES = [(e.name, s) for e in list_entries() for s in e.severities]


def golden(name: str) -> Path:
    """Return the file that pins an entry or a family."""
    family = name.partition("/")[0]
    return DATA / f"golden_{'operators' if family == 'cod10k-c' else family.replace('-', '_')}.json"


def image() -> np.ndarray:
    """Smooth colors with an edge and some texture, uint8 18×26×3, by integer arithmetic."""
    y, x = np.mgrid[:18, :26]
    channels = [9 * x + 3 * y, 255 - 8 * x + y, 40 + 5 * y + (x * y * 37 % 41)]
    return (np.stack(channels, axis=2) // np.where(x + y > 20, 2, 1)[:, :, None] % 256).astype(np.uint8)


def degraded(name: str, severity: int) -> np.ndarray:
    return get_entry(name).degrade(image(), severity, seed=11, image_key="golden/one")


def pin(name: str, severity: int) -> str:
    pixels = degraded(name, severity).tobytes()
    if name in STORED:
        return base64.b64encode(zlib.compress(pixels, 9)).decode()
    return hashlib.blake2b(pixels, digest_size=16).hexdigest()


@pytest.mark.parametrize(("name", "severity"), CASES)
def test_bytes(name: str, severity: int) -> None:
    expected = json.loads(golden(name).read_text())["pins"][f"{name}@{severity}"]
    if name not in STORED:
        assert pin(name, severity) == expected
        return
    pixels = np.frombuffer(zlib.decompress(base64.b64decode(expected)), np.uint8).reshape(image().shape)
    assert abs(degraded(name, severity).astype(int) - pixels).max() <= LARGEST.get(name, 1)


def test_every_entry_is_pinned() -> None:
    pinned = [key for file in {golden(n) for n, _ in CASES} for key in json.loads(file.read_text())["pins"]]
    assert sorted(pinned) == sorted(f"{n}@{s}" for n, s in CASES)


if __name__ == "__main__":
    content = {
        "origin": f"python tests/catalog/test_golden_operators.py {sys.argv[1]}",
        "pins": {f"{n}@{s}": pin(n, s) for n, s in CASES if n.startswith(sys.argv[1] + "/")},
    }
    golden(sys.argv[1]).write_text(json.dumps(content, indent=1) + "\n")
