"""Write tests/data/parity_imagenet_c.npz: what the published implementation makes of small images.

    pip install numpy scipy scikit-image numba opencv-python-headless pillow "setuptools<81"
    python scripts/make_parity_imagenet_c.py PATH_OF_A_CHECKOUT_OF_bethgelab/imagecorruptions

Rows without randomness: the pixels, at all severities of one image and at severity 3 of one with odd sides. Motion
blur: the pixels at given angles. Rows with randomness: mean and standard deviation over many draws of the numbers of
tests/catalog/change_statistics.py.
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from unittest import mock

import cv2
import numpy as np
import scipy.ndimage

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY / "tests" / "catalog"), sys.argv[1]]
sys.modules["scipy.ndimage.interpolation"] = scipy.ndimage  # its old name, which the checkout still uses

from change_statistics import change_statistics  # noqa: E402
from imagecorruptions import corrupt  # noqa: E402

PLAIN = (
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "gaussian_blur",
    "saturate",
)
RANDOM = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "glass_blur",
    "motion_blur",
    "snow",
    "frost",
    "fog",
    "elastic_transform",
    "speckle_noise",
    "spatter",
)
ANGLES = (-45.0, -20.0, 0.0, 33.3, 45.0)
DRAWS = 96
FOLDER = REPOSITORY / "src" / "crypsis" / "data" / "demo" / "images"


def photograph(name: str) -> np.ndarray:
    return cv2.cvtColor(cv2.imread(str(FOLDER / name)), cv2.COLOR_BGR2RGB)


def main() -> None:
    small = np.ascontiguousarray(photograph("demo-test-03-cuckoo.jpg")[150:192, 60:108])
    odd = np.ascontiguousarray(photograph("demo-test-23-lionfish.jpg")[100:147, 150:193])
    middle = cv2.resize(photograph("demo-test-12-squirrel.jpg")[:288, :384], (128, 96), interpolation=cv2.INTER_AREA)
    images = {"small": small, "odd": odd, "middle": middle}
    stored = {
        "origin": np.array(
            f"scripts/{Path(__file__).name} with bethgelab/imagecorruptions@c959e65, "
            + ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("numpy", "scipy", "scikit-image", "numba"))
            + f", OpenCV {cv2.__version__}"
        )
    }
    stored |= {f"image/{name}": image for name, image in images.items()}
    for term in PLAIN:
        for severity in range(1, 6):
            stored[f"small/{term}/{severity}"] = corrupt(small, severity, term)
        stored[f"odd/{term}/3"] = corrupt(odd, 3, term)
    for angle, severity in zip(ANGLES, range(1, 6), strict=True):
        with mock.patch("numpy.random.uniform", return_value=angle):
            stored[f"small/motion_blur/{severity}"] = corrupt(small, severity, "motion_blur")
    for term in RANDOM:
        for severity in range(1, 6):
            np.random.seed(severity)  # noqa: NPY002  the only generator that the published code knows
            numbers = [change_statistics(middle, corrupt(middle, severity, term)) for _ in range(DRAWS)]
            stored[f"statistics/{term}/{severity}"] = np.array([np.mean(numbers, axis=0), np.std(numbers, axis=0)])
    target = REPOSITORY / "tests" / "data" / "parity_imagenet_c.npz"
    np.savez_compressed(target, **stored)
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
