"""The demo set that ships with Crypsis: 48 composites with exact masks and known species.

Its pictures are under GPL-3.0-or-later, apart from the code; see `LICENSE` and `README.md` in the folder.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from ..errors import DatasetError

__all__ = ["demo_blending", "demo_folder", "demo_species"]


def demo_folder() -> Path:
    """Return the folder of the demo set: `images/`, `masks/`, `annotations.json`, `LICENSE`, `README.md`.

    Raises:
        DatasetError: this installation lacks it, or lies in an archive.
    """
    folder = Path(str(resources.files("crypsis") / "data" / "demo"))
    if not (folder / "annotations.json").is_file():
        raise DatasetError(f"{folder}: the demo set is not in this installation; install crypsis again with pip.")
    return folder


def demo_species() -> dict[str, str]:
    """Return file stem → species, such as `demo-test-00-frog` → `frog`, in the order of the set."""
    document = json.loads((demo_folder() / "annotations.json").read_text(encoding="utf-8"))
    names = {row["id"]: row["name"] for row in document["categories"]}
    species = {row["image_id"]: names[row["category_id"]] for row in document["annotations"]}
    return {Path(row["file_name"]).stem: species[row["id"]] for row in document["images"]}


def demo_blending() -> dict[str, float]:
    """Return file stem → how strongly the animal is blended in: 0, pasted as it is, to 1; in the order of the set."""
    document = json.loads((demo_folder() / "annotations.json").read_text(encoding="utf-8"))
    return {Path(row["file_name"]).stem: float(row["blend"]) for row in document["images"]}
