"""What every degradation does with unusual inputs: a table of ok / raising / odd, as it stands in the docs.

    python benchmarks/odd_inputs.py

`odd` is another shape or dtype, NaN or a value out of range, a constant output of a textured image, or a changed
input. The empty array is the one input that must be refused; a refusal in one sentence counts as ok there.
"""

from __future__ import annotations

import argparse

import numpy as np

from crypsis import apply_degradation, list_entries
from crypsis.errors import ImageError


def inputs() -> dict[str, np.ndarray]:
    """Return the inputs by name."""
    rng = np.random.default_rng(0)

    def texture(height: int, width: int, *channels: int) -> np.ndarray:
        y, x = np.mgrid[:height, :width]
        wave = 127 + 80 * np.sin(x / 7.0) * np.cos(y / 5.0)
        field = wave.reshape(height, width, *(1 for _ in channels)) + rng.normal(0, 15, (height, width, *channels))
        return np.clip(field, 0, 255).astype(np.uint8)

    rgb = texture(120, 160, 3)
    locked = rgb.copy()
    locked.setflags(write=False)
    return {
        "rgb 120x160": rgb,
        "gray HxW": texture(120, 160),
        "gray HxWx1": texture(120, 160, 1),
        "rgba": texture(120, 160, 4),
        "uint16 rgb": rgb.astype(np.uint16) * 257,
        "float32 0..1": (rgb / 255).astype(np.float32),
        "float64 0..1": rgb / 255,
        "bool HxW": texture(120, 160) > 127,
        "16x16": texture(16, 16, 3),
        "1x1": texture(1, 1, 3),
        "7x300 thin": texture(7, 300, 3),
        "odd 121x163": texture(121, 163, 3),
        "non-contiguous (flip)": rgb[:, ::-1],
        "read-only": locked,
        "all black": np.zeros((120, 160, 3), np.uint8),
        "all white": np.full((120, 160, 3), 255, np.uint8),
        "empty 0x0": np.zeros((0, 0, 3), np.uint8),
    }


def verdict(name: str, image: np.ndarray, severity: int, entry: str) -> str:
    """Return `ok`, `raising` or `odd`."""
    before = image.copy()
    try:
        result = apply_degradation(image, entry, severity=severity)
    except ImageError:
        return "ok" if image.size == 0 else "raising"
    except Exception:
        return "raising"
    full = {"b": 1, "f": 1.0}.get(image.dtype.kind, np.iinfo(image.dtype).max if image.dtype.kind == "u" else 1)
    wrong = (
        result.shape != image.shape
        or result.dtype != image.dtype
        or not np.isfinite(result.astype(np.float64)).all()
        or result.min() < 0
        or result.max() > full
        or not (image == before).all()
        or (image.dtype.kind != "b" and np.unique(before).size > 50 and np.unique(result).size == 1)
        or (name == "rgba" and not (result[:, :, 3] == image[:, :, 3]).all())
    )
    return "odd" if wrong or image.size == 0 else "ok"


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    entries = list_entries()
    families = list(dict.fromkeys(e.family for e in entries))
    print(f"| input | {' | '.join(families)} |\n|---|{'---|' * len(families)}")
    for name, image in inputs().items():
        cells = []
        for family in families:
            found = [
                [verdict(name, image, s, e.name) for s in (1, 5)] for e in entries if e.family == family
            ]  # fmt: skip
            worst = [next((v for v in ("raising", "odd") if v in pair), "ok") for pair in found]
            cells.append(" / ".join(str(worst.count(kind)) for kind in ("ok", "raising", "odd")))
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
