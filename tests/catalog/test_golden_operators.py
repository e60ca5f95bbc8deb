"""Output bytes of every entry and severity, pinned: a number measured today can be measured again.

Written by `python tests/catalog/test_golden_operators.py` with the package installed. Entries made of integer
arithmetic are pinned by a digest. Blurs, JPEG and rain go through code of the OpenCV build and may differ by one
gray level in another; their pixels are stored.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from crypsis.catalog import get_entry, list_entries

GOLDEN = Path(__file__).parent.parent / "data" / "golden_operators.json"
STORED = {"cod10k-c/rain", "cod10k-c/jpeg_compression", "cod10k-c/gaussian_blur"}
CASES = [(e.name, s) for e in list_entries() for s in e.severities]


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
    golden = json.loads(GOLDEN.read_text())["pins"][f"{name}@{severity}"]
    if name not in STORED:
        assert pin(name, severity) == golden
        return
    pixels = np.frombuffer(zlib.decompress(base64.b64decode(golden)), np.uint8).reshape(image().shape)
    assert abs(degraded(name, severity).astype(int) - pixels).max() <= 1


def test_every_entry_is_pinned() -> None:
    assert set(json.loads(GOLDEN.read_text())["pins"]) == {f"{n}@{s}" for n, s in CASES}


if __name__ == "__main__":
    content = {
        "origin": "python tests/catalog/test_golden_operators.py",
        "pins": {f"{name}@{severity}": pin(name, severity) for name, severity in CASES},
    }
    GOLDEN.write_text(json.dumps(content, indent=1) + "\n")
