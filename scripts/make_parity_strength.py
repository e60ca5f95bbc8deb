"""Write pairs of images and what scikit-image says of them, for tests/severity/test_strength.py.

    pip install scikit-image==0.26.0 -e .
    python scripts/make_parity_strength.py

Writes tests/data/strength_pairs.npz and tests/data/strength_reference.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import skimage
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from crypsis.io import read_image

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "src" / "crypsis" / "data" / "demo" / "images"
PHOTOGRAPHS = {"frog": "demo-test-00-frog", "tiger": "demo-test-44-tiger"}


def jpeg(image: np.ndarray) -> np.ndarray:
    return cv2.imdecode(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 10])[1], cv2.IMREAD_COLOR)


def make_pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return crops of photographs under six degradations, and images that are hard on the arithmetic."""
    rng = np.random.default_rng(0)
    pairs = {}
    for name, file in PHOTOGRAPHS.items():
        clean = read_image(DEMO / f"{file}.jpg")[40:80, 60:108]
        pairs |= {
            f"{name}, noise": (clean, np.clip(clean + rng.normal(0, 25, clean.shape), 0, 255).astype(np.uint8)),
            f"{name}, blur": (clean, cv2.GaussianBlur(clean, (0, 0), 2)),
            f"{name}, JPEG": (clean, jpeg(clean)),
            f"{name}, brighter": (clean, np.minimum(clean.astype(np.uint16) + 60, 255).astype(np.uint8)),
            f"{name}, inverted": (clean, 255 - clean),
            f"{name}, last bit": (clean, clean ^ 1),
            f"{name}, 11 rows": (clean[:11], np.roll(clean, 2, axis=1)[:11]),
        }

    def few(height: int, width: int, low: int, high: int) -> np.ndarray:
        return rng.integers(low, high, (height, width, 3), np.uint8, endpoint=True)

    return pairs | {
        "almost white": (few(24, 30, 235, 255), few(24, 30, 235, 255)),
        "almost black": (few(24, 30, 0, 20), few(24, 30, 0, 20)),
        "white, last bit": (np.full((24, 30, 3), 255, np.uint8), few(24, 30, 254, 255)),
        "dark against bright": (few(24, 30, 10, 11), few(24, 30, 240, 241)),
        "black against white": (np.zeros((20, 30, 3), np.uint8), np.full((20, 30, 3), 255, np.uint8)),
        "constant 254 against 255": (np.full((20, 30, 3), 254, np.uint8), np.full((20, 30, 3), 255, np.uint8)),
        "one window": (few(11, 11, 0, 255), few(11, 11, 0, 255)),
        "one column of windows, several strips": (few(211, 11, 0, 255), few(211, 11, 0, 255)),
    }


def main() -> None:
    pairs = make_pairs()
    arrays, reference = {}, []
    for index, (name, (clean, degraded)) in enumerate(pairs.items()):
        arrays[f"clean_{index:02d}"], arrays[f"degraded_{index:02d}"] = clean, degraded
        options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 255}
        reference.append(
            {
                "id": index,
                "name": name,
                "psnr": float(peak_signal_noise_ratio(clean, degraded, data_range=255)),
                "ssim": float(structural_similarity(clean, degraded, channel_axis=2, **options)),
            }
        )
    np.savez_compressed(ROOT / "tests" / "data" / "strength_pairs.npz", **arrays)
    origin = f"python scripts/make_parity_strength.py, scikit-image {skimage.__version__}, OpenCV {cv2.__version__}"
    content = {"origin": origin, "pairs": reference}
    path = ROOT / "tests" / "data" / "strength_reference.json"
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
