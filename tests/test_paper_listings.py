"""The two listings of the paper (appendices A and B), verbatim but for the import root."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import crypsis
from crypsis.io import read_image

CALIBRATE = """\
from PIL import Image
from torchvision.transforms.functional import to_tensor
from pathlib import Path

from crypsis.calibration import calibrate_distortion

# Load calibration images
paths = list(Path("calib_images").glob("*.jpg"))[:50]
images = [to_tensor(Image.open(p).convert("RGB")) for p in paths]

# Calibrate Gaussian blur using SSIM
calibration = calibrate_distortion(
    images=images,
    paper="Agnolucci_WACV_2024",
    term="gaublur",
    metric="1-ssim",
)

canonical_strengths = calibration["canonical_strengths"]
"""

APPLY = """\
from PIL import Image
from torchvision.transforms.functional import to_tensor, to_pil_image

from crypsis import apply_degradation

# Load image to be degraded
x = to_tensor(Image.open("example.jpg").convert("RGB"))

# Apply Gaussian blur at canonical severity k=3
y = apply_degradation(
    image=x,
    paper="Agnolucci_WACV_2024",
    term="gaublur",
    severity=3,
    mode="canonical",
    calibration=calibration,
    canonical_strengths=canonical_strengths,
)

to_pil_image(y).save("gaublur_canonical_k3.png")
"""


def provide_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the two functions of torchvision that the listings import, which is no dependency here."""
    torch = pytest.importorskip("torch", reason="needs torch")

    def to_tensor(picture: PIL.Image.Image) -> Any:
        return torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous().float().div(255)

    def to_pil_image(tensor: Any) -> PIL.Image.Image:
        return PIL.Image.fromarray((tensor.permute(1, 2, 0).numpy() * 255).astype(np.uint8))

    package, transforms, functional = (
        types.ModuleType(name)
        for name in ("torchvision", "torchvision.transforms", "torchvision.transforms.functional")
    )
    functional.to_tensor, functional.to_pil_image = to_tensor, to_pil_image
    for module in (package, transforms, functional):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def provide_photographs(folder: Path) -> None:
    """Write the listings' input from the demo set, half size."""
    demo = sorted((Path(crypsis.__file__).parent / "data" / "demo" / "images").glob("*.jpg"))
    (folder / "calib_images").mkdir()
    for path in demo[:12:2]:
        with PIL.Image.open(path) as picture:
            picture.reduce(2).save(folder / "calib_images" / path.name, quality=95)
    with PIL.Image.open(demo[-1]) as picture:
        picture.reduce(2).save(folder / "example.jpg", quality=95)


def run_listings(folder: Path, monkeypatch: pytest.MonkeyPatch, *, paper: str, term: str) -> dict[str, Any]:
    """Run both listings in `folder`, for another entry than theirs if asked, and return their names."""
    provide_torchvision(monkeypatch)
    provide_photographs(folder)
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    for listing in (CALIBRATE, APPLY):
        exec(listing.replace("Agnolucci_WACV_2024", paper).replace('"gaublur"', f'"{term}"'), names)
    return names


@pytest.mark.parametrize(("paper", "term"), [("Agnolucci_WACV_2024", "gaublur"), ("COD10K-C", "gaussian_blur")])
def test_listings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paper: str, term: str) -> None:
    names = run_listings(tmp_path, monkeypatch, paper=paper, term=term)
    calibration, levels = names["calibration"], names["canonical_strengths"]
    assert len(names["images"]) == calibration["count"] == 6
    assert levels[0] == min(calibration["strengths"]) < max(calibration["strengths"]) == levels[4]
    assert np.diff(levels) == pytest.approx(np.full(4, (levels[4] - levels[0]) / 4))
    assert list(calibration["strengths"]) == sorted(calibration["strengths"])  # blur: a longer path, a stronger level
    native = 1 + int(np.argmin(np.abs(np.subtract(calibration["strengths"], levels[2]))))
    written = read_image(tmp_path / "gaublur_canonical_k3.png")
    expected = crypsis.apply_degradation(read_image(tmp_path / "example.jpg"), paper=paper, term=term, severity=native)
    assert np.array_equal(written, expected)
    assert names["y"].shape == names["x"].shape
    assert names["y"].dtype == names["x"].dtype
