"""Make tests/data/parity_real_camera.npz: what imdeg's own code gives for four rows of `real-camera`.

    python scripts/make_parity_real_camera.py IMDEG

IMDEG is a checkout of github.com/beckerio/imdeg at 952d6b3 (Apache-2.0), whose requirements are installed; Crypsis
is not needed. imdeg carries code for these four alone. For the other twelve it calls the authors' repository, which
has no license; it is not used here.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import cv2
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SHADING = (0.1, 0.275, 0.45, 0.625, 0.8)
FRACTIONS = (0.05, 0.1875, 0.325, 0.4625, 0.6)
STRENGTHS = (0.4, 0.6, 0.8, 1.0)
WEIGHTS = (0.2, 0.35, 0.5, 0.65, 0.8)
LEAKS = (25, 32)  # with wider ones, drips at the rim can have no length
DRAWS = 400
PARTS = ("spot", "deviation", "leak")


def crop(name: str, height: int, width: int) -> np.ndarray:
    """Return the middle of a demo photograph at half its size, RGB."""
    image = cv2.imread(str(ROOT / "src/crypsis/data/demo/images" / f"{name}.jpg"))[:, :, ::-1]
    image = cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    return np.ascontiguousarray(image[top : top + height, left : left + width])


def main() -> None:
    sys.path.insert(0, str(Path(sys.argv[1]) / "src"))
    from imdeg.backends.Liu_IJCV_2024 import Liu_IJCV_2024_adapted as imdeg

    def seed(number: int) -> None:
        random.seed(number)
        np.random.seed(number)  # noqa: NPY002  imdeg draws from the global generators

    def swapped(function, image, *args):  # it works on BGR
        return function(np.ascontiguousarray(image[:, :, ::-1]), *args)[:, :, ::-1]

    def broken(image, part, number, **values):
        seed(number)
        return imdeg.sensor_broken_adapted(image, **values, **{name: name == part for name in PARTS})[:, :, ::-1]

    images = {"frog": crop("demo-test-00-frog", 64, 80), "squirrel": crop("demo-test-12-squirrel", 46, 66)}
    data: dict[str, np.ndarray] = {}
    for name, image in images.items():
        data[f"image {name}"] = image
        data[f"lens_shading {name}"] = np.stack([swapped(imdeg.lens_shading_error_adapted, image, a) for a in SHADING])
        data[f"color_space {name}"] = np.stack([swapped(imdeg.color_space_error_adapted, image, f) for f in (0.0, 1.0)])

    frog = images["frog"]
    none, every = data["color_space frog"].astype(int)
    apart = (none != every).any(axis=2)
    plain = np.full((64, 80, 3), 200, np.uint8)
    share = np.zeros(5)
    zeros = np.zeros(5)
    for number in range(20):
        seed(number)
        for level, fraction in enumerate(FRACTIONS):
            out = swapped(imdeg.color_space_error_adapted, frog, fraction)
            share[level] += (out == every).all(axis=2)[apart].mean() / 20
            zeros[level] += (imdeg.memory_corruption_adapted(plain, level + 1) == 0).mean() / 20
    data["color_space share"], data["memory share"] = share, zeros

    black, gray = np.zeros((200, 300, 3), np.uint8), np.full((200, 300, 3), 100, np.uint8)
    spots = [broken(black, "spot", 0, spot_count=9, spot_alpha=w) for w in WEIGHTS]
    data["spot levels"] = np.array([spot[:, :, 0].max() for spot in spots])
    bands = [broken(gray, "deviation", 0, deviation_strength=s)[0].astype(int) - 100 for s in STRENGTHS]
    middle = int(bands[0][:, 0].argmax())
    data["band profiles"] = np.stack([band[middle - 50 : middle + 51] for band in bands])
    narrow = gray[:, :90]
    data["band middle, 90 wide"] = np.array(
        [broken(narrow, "deviation", n, deviation_strength=1.0)[0, :, 0].argmax() for n in range(100)]
    )
    columns, areas, rows = [], [], []
    for number in range(DRAWS):
        columns.append(broken(gray, "deviation", number, deviation_strength=1.0)[0, :, 0].argmax())
        spot = broken(black, "spot", number, spot_count=1, spot_alpha=1.0)[:, :, 0] > 0
        areas.append((spot.sum(), *np.argwhere(spot).mean(axis=0)))
        leak = broken(gray, "leak", number, leak_length=25)[:, :, 0] == 0
        rows.append(np.flatnonzero(leak.all(axis=1)).max())
    data["band middle"], data["spot area and place"] = np.array(columns), np.array(areas)
    data["leak row"] = np.array(rows)
    for reach in LEAKS:
        drips, middles = [], []
        for number in range(DRAWS):
            leak = broken(gray, "leak", number, leak_length=reach)[:, :, 0] == 0
            row = np.flatnonzero(leak.all(axis=1)).max()
            below = leak[row + 1 :].sum(axis=0)
            touched = np.flatnonzero(below)
            if row < 150 and len(touched) == 2 * reach - 1:  # neither cut by the border
                drips.append(below[touched])
                middles.append(touched.min() + reach - 1)
        data[f"leak middle {reach}"] = np.array(middles)
        data[f"drips {reach}"] = np.stack([np.mean(drips, axis=0), np.std(drips, axis=0)])

    origin = (
        "python scripts/make_parity_real_camera.py, with imdeg 952d6b3 (Apache-2.0), "
        f"NumPy {np.__version__}, OpenCV {cv2.__version__}; images: crops of the demo set"
    )
    target = ROOT / "tests/data/parity_real_camera.npz"
    np.savez_compressed(target, origin=np.array(json.dumps(origin)), **data)
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
