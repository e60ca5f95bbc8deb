"""Write tests/data/parity_arniqa.npz: what the published distortions of ARNIQA do to three small photographs.

    git clone https://github.com/beckerio/imdeg && git -C imdeg checkout 952d6b3
    pip install torch==2.13.0 kornia==0.9.0 scipy pillow
    python scripts/make_parity_arniqa.py imdeg

imdeg carries a copy of miccunifi/ARNIQA@f60c0f2 that runs on present versions of NumPy and PyTorch. Its `jpeg2000`
is another codec setting than ARNIQA's, which it keeps as `jpeg2000_old`; that one is used here. torchvision is not
needed: its JPEG functions and `ToTensor` are replaced by Pillow's libjpeg-turbo and a division by 255. Everything is
float in 0..1 there; what is stored is 255 times the result, rounded. Random distortions are run twice: with draws
given from outside, for equality, and with their own, for the moments of the change.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import math
import random
import sys
import types
import unittest.mock
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch

ROOT = Path(__file__).parent.parent
PHOTOS = ROOT / "src" / "crypsis" / "data" / "demo" / "images"
PLAIN = ("gaublur", "lensblur", "colordiff", "colorsat2", "jpeg", "brighten", "pixelate", "highsharpen")
SIMPLE = ("colorsat1", "darken", "meanshift", "quantization", "lincontrchange", "nonlincontrchange")
RANDOM = ("whitenoise", "whitenoiseCC", "impulsenoise", "multnoise", "jitter")
DRAWS = 120
ANGLES = (0, 17, 45, 90, 133)
WAYS = ((0.9, 0.1), (0.1, 0.9), (0.5, 0.6), (0.3, 0.8), (0.95, 0.6))


def stand_in_for_torchvision() -> None:
    """Give imdeg the three functions of torchvision that it imports."""

    def encode_jpeg(pixels: torch.Tensor, quality: int) -> bytes:
        buffer = io.BytesIO()
        PIL.Image.fromarray(pixels.numpy().transpose(1, 2, 0)).save(buffer, "JPEG", quality=int(quality))
        return buffer.getvalue()

    def decode_jpeg(code: bytes) -> torch.Tensor:
        return torch.from_numpy(np.array(PIL.Image.open(io.BytesIO(code))).transpose(2, 0, 1).copy())

    class ToTensor:
        def __call__(self, picture: PIL.Image.Image) -> torch.Tensor:
            return torch.from_numpy(np.array(picture).transpose(2, 0, 1).copy()).float() / 255

    names = ("torchvision", "torchvision.io", "torchvision.io.image", "torchvision.transforms")
    top, inner, image, transforms = modules = [types.ModuleType(name) for name in names]
    image.encode_jpeg, image.decode_jpeg, transforms.ToTensor = encode_jpeg, decode_jpeg, ToTensor
    top.io, top.transforms, inner.image = inner, transforms, image
    sys.modules.update(zip(names, modules, strict=True))


def load(folder: Path) -> Any:
    """Import imdeg's copy of ARNIQA by its file."""
    stand_in_for_torchvision()
    spec = importlib.util.spec_from_file_location("arniqa", folder / "src" / "imdeg" / "backends" / "arniqa.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.distortion_functions["jpeg2000"] = module.jpeg2000_old
    return module


def degrade(arniqa: Any, term: str, image: np.ndarray, value: float) -> np.ndarray:
    """Return the distorted image on the 0..255 scale, rounded."""
    tensor = torch.from_numpy(image.transpose(2, 0, 1).copy()).float() / 255
    result = torch.clip(arniqa.distortion_functions[term](tensor, value).to(torch.float32), 0, 1)
    return np.rint(255 * result.numpy().transpose(1, 2, 0)).astype(np.uint8)


def crop(name: str, top: int, left: int, height: int, width: int) -> np.ndarray:
    return np.asarray(PIL.Image.open(PHOTOS / name).convert("RGB"))[top : top + height, left : left + width]


def moments(changes: np.ndarray) -> list[float]:
    """Return each channel's mean and deviation, their correlations, and those of neighbors, of draws×H×W×3."""
    changes = changes[:, 12:-12, 12:-12]  # jitter divides by almost nothing at the border
    flat = changes.reshape(-1, 3)
    across = np.corrcoef(changes[:, :, 1:].ravel(), changes[:, :, :-1].ravel())[0, 1]
    down = np.corrcoef(changes[:, 1:].ravel(), changes[:, :-1].ravel())[0, 1]
    return [*flat.mean(0), *flat.std(0), *np.corrcoef(flat.T)[np.triu_indices(3, 1)], across, down]


def jitter(arniqa: Any, image: np.ndarray, sigma: float) -> np.ndarray:
    """Degrade, drawing displacements again until both axes get the same margin.

    ARNIQA exchanges the two margins when it takes them off, so that the picture moves by a pixel where they differ.
    """
    draw = torch.randn

    def equal_margins(shape: tuple[int, ...], **options: Any) -> torch.Tensor:
        while True:
            field = draw(shape, **options)
            if len({math.ceil(sigma * float(axis.max())) for axis in field}) == 1:
                return field

    with unittest.mock.patch("torch.randn", equal_margins):
        return degrade(arniqa, "jitter", image, sigma)


def main() -> None:
    arniqa = load(Path(sys.argv[1]))
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  what the reference draws from
    random.seed(0)
    small = crop("demo-test-21-coral-trout.jpg", 150, 120, 31, 41)
    middle = crop("demo-test-15-lark.jpg", 120, 120, 64, 80)
    large = crop("demo-test-15-lark.jpg", 100, 100, 129, 130)
    arrays = {"small": small, "middle": middle, "large": large}
    for level in range(5):
        value = {term: levels[level] for term, levels in arniqa.distortion_range.items()}
        for term in PLAIN:
            arrays[f"{term}@{level + 1}"] = degrade(arniqa, term, small, value[term])
        for term in SIMPLE:  # one pixel at a time, so that few say all
            arrays[f"{term}@{level + 1}"] = degrade(arniqa, term, small[:16], value[term])
        arrays[f"jpeg2000@{level + 1}"] = degrade(arniqa, "jpeg2000", large, value["jpeg2000"])[::2, ::2, level % 3]
        with unittest.mock.patch("random.randint", return_value=ANGLES[level]):
            arrays[f"motionblur@{level + 1}"] = degrade(arniqa, "motionblur", small, value["motionblur"])
        with unittest.mock.patch("numpy.random.random", return_value=np.array([WAYS[level]])):
            arrays[f"colorshift@{level + 1}"] = degrade(arniqa, "colorshift", small, value["colorshift"])
        rows = []
        for term in RANDOM:
            once = functools.partial(jitter, arniqa) if term == "jitter" else functools.partial(degrade, arniqa, term)
            rows.append(moments(np.stack([once(middle, value[term]) for _ in range(DRAWS)]).astype(float) - middle))
        arrays[f"moments@{level + 1}"] = np.array(rows)
    draws = np.random.default_rng(5).random((100, 4))
    with unittest.mock.patch("random.random", side_effect=draws[:, [1, 0, 3, 2]].ravel()):  # x before y
        arrays["noneccpatch@5"] = degrade(arniqa, "noneccpatch", middle, 100)
    block_draws = np.random.default_rng(6).random((10, 5))
    with (
        unittest.mock.patch("random.random", side_effect=block_draws[:, :2].ravel()),
        unittest.mock.patch("numpy.random.random", side_effect=block_draws[:, 2:]),
    ):
        arrays["colorblock@5"] = degrade(arniqa, "colorblock", middle, 10)
    origin = {
        "script": "scripts/make_parity_arniqa.py",
        "reference": "beckerio/imdeg@952d6b3 src/imdeg/backends/arniqa.py, after miccunifi/ARNIQA@f60c0f2 (Apache-2.0)",
        "versions": {"torch": torch.__version__, "numpy": np.__version__, "pillow": PIL.__version__},
        "random": RANDOM,
        "simple": SIMPLE,
        "draws": DRAWS,
        "angles": ANGLES,
        "ways": WAYS,
    }
    np.savez_compressed(
        ROOT / "tests" / "data" / "parity_arniqa.npz",
        **arrays,
        patch_draws=draws,
        block_draws=block_draws,
        origin=np.array(json.dumps(origin)),
    )


if __name__ == "__main__":
    main()
