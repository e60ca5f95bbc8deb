"""`apply_degradation`: whatever kind of image goes in comes out, or a sentence says why not."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from natural_images import make_natural

import crypsis
from crypsis.catalog import get_entry, list_entries
from crypsis.catalog.apply import apply_degradation
from crypsis.errors import ImageError, InputError, UnknownNameError

RGB = make_natural(31, 33, seed=2)
GRAY = RGB[:, :, 1]
ALPHA = (np.arange(31 * 33).reshape(31, 33) % 256).astype(np.uint8)
RGBA = np.dstack([RGB, ALPHA])
NAMES = [e.name for e in list_entries()]
PLAIN = [e.name for e in list_entries() if not e.random]
SIZES = [(1, 1), (2, 2), (7, 300), (31, 33), (33, 31), (121, 163)]


def by_entry(image: np.ndarray, name: str, severity: int, key: str = "k") -> np.ndarray:
    return get_entry(name).degrade(image, severity, seed=0, image_key=key)


def test_public_name() -> None:
    assert crypsis.apply_degradation is apply_degradation


def test_three_ways_to_name_it() -> None:
    named = apply_degradation(RGB, "cod10k-c/rain", severity=3, image_key="k")
    assert np.array_equal(apply_degradation(RGB, paper="COD10K-C", term="rain", severity=3, image_key="k"), named)
    assert np.array_equal(by_entry(RGB, "cod10k-c/rain", 3), named)
    alias = apply_degradation(RGB, "cod10k-c/jpeg", severity=3)
    assert np.array_equal(alias, apply_degradation(RGB, paper="cod10k-c", term="jpeg_compression", severity=3))


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"paper": "COD10K-C"},
        {"term": "rain"},
        {"name": "cod10k-c/rain", "term": "rain"},
        {"name": "cod10k-c/rain", "paper": "COD10K-C", "term": "rain"},
    ],
)
def test_half_a_name(names: dict[str, str]) -> None:
    with pytest.raises(InputError, match="both paper= and term="):
        apply_degradation(RGB, severity=3, **names)


def test_unknown_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'fog'"):
        apply_degradation(RGB, "cod10k-c/fogg", severity=3)


@pytest.mark.parametrize("severity", [0, 6, -1, 3.0, 2.5, True, "3", None, np.float64(3), [3], np.array([3])])
def test_severity_is_never_guessed(severity: object) -> None:
    with pytest.raises(InputError, match="severities 1 to 5; got"):
        apply_degradation(RGB, "cod10k-c/fog", severity=severity)


def test_numpy_integers_are_integers() -> None:
    result = apply_degradation(RGB, "cod10k-c/rain", severity=np.int64(3), seed=np.int32(4), image_key="k")
    assert np.array_equal(result, apply_degradation(RGB, "cod10k-c/rain", severity=3, seed=4, image_key="k"))


@pytest.mark.parametrize("seed", [1.0, "1", None, True])
def test_bad_seed(seed: object) -> None:
    with pytest.raises(InputError, match="seed is an integer"):
        apply_degradation(RGB, "cod10k-c/rain", severity=3, seed=seed)


def test_bad_key() -> None:
    with pytest.raises(InputError, match="image_key is a string"):
        apply_degradation(RGB, "cod10k-c/rain", severity=3, image_key=Path("a"))


# Seeds (the situations of bethgelab/imagecorruptions#11, AugLy random_noise, kornia#4445)


@pytest.mark.parametrize("name", ["cod10k-c/rain", "cod10k-c/gaussian_noise"])
def test_without_a_key_the_pixels_are_the_key(name: str) -> None:
    first = apply_degradation(RGB, name, severity=3)
    for _ in range(20):
        apply_degradation(GRAY, name, severity=5)
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    assert np.array_equal(apply_degradation(RGB.copy(), name, severity=3), first)
    assert not np.array_equal(apply_degradation(RGB, name, severity=3, seed=1), first)
    other = RGB.copy()
    other[0, 0, 0] ^= 1
    field = first.astype(int) - RGB
    assert (apply_degradation(other, name, severity=3).astype(int) - other != field).mean() > 0.05


def test_another_process_gives_the_same_bytes() -> None:
    program = (
        "import hashlib, numpy as np, crypsis\n"
        "i = (np.arange(3000) % 256).astype(np.uint8).reshape(20, 50, 3)\n"
        "print(hashlib.sha256(crypsis.apply_degradation(i, 'cod10k-c/rain', severity=4)).hexdigest())"
    )
    runs = {subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(runs) == 1


# Kinds of arrays (bethgelab/imagecorruptions#5, #6, #21; AlbumentationsX#123)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("severity", [1, 5])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("channels", [None, 1, 3, 4])
def test_any_size_and_channels(name: str, severity: int, size: tuple[int, int], channels: int | None) -> None:
    image = np.resize(RGBA, (*size, 4))
    image = image[:, :, 0] if channels is None else image[:, :, :channels]
    before = image.copy()
    result = apply_degradation(image, name, severity=severity)
    assert result.shape == image.shape
    assert result.dtype == np.uint8
    assert not np.shares_memory(result, image)
    assert np.array_equal(image, before)
    if channels == 4:
        assert np.array_equal(result[:, :, 3], image[:, :, 3])


@pytest.mark.parametrize("name", NAMES)
def test_channels_mean_what_they_mean_alone(name: str) -> None:
    color = apply_degradation(RGB, name, severity=3, image_key="k")
    assert np.array_equal(apply_degradation(RGBA, name, severity=3, image_key="k")[:, :, :3], color)
    gray = apply_degradation(GRAY, name, severity=3, image_key="k")
    assert np.array_equal(gray, by_entry(np.repeat(GRAY[:, :, None], 3, axis=2), name, 3)[:, :, 1])
    assert np.array_equal(apply_degradation(GRAY[:, :, None], name, severity=3, image_key="k")[:, :, 0], gray)


def test_gray_noise_keeps_its_sigma() -> None:
    gray = np.full((200, 200), 128, np.uint8)
    assert apply_degradation(gray, "cod10k-c/gaussian_noise", severity=3).std() == pytest.approx(24, rel=0.03)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["<u2", ">u2"])
def test_sixteen_bits(name: str, dtype: str) -> None:
    ramp = np.resize(np.arange(65536, dtype=dtype), (256, 256, 3))
    eight = ((ramp.astype(int) + 128) // 257).astype(np.uint8)
    result = apply_degradation(ramp, name, severity=3)
    assert result.dtype == ramp.dtype
    assert abs(result / 257 - apply_degradation(eight, name, severity=3)).max() <= 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("dtype", "error"), [(np.float16, 3e-4), (np.float32, 1e-7), (np.float64, 1e-15), (">f4", 1e-7)]
)
def test_floats(name: str, dtype: object, error: float) -> None:
    image = (RGB / 255).astype(dtype)
    result = apply_degradation(image, name, severity=3, image_key="k")
    assert result.dtype == image.dtype
    assert 0 <= result.min() < result.max() <= 1
    assert abs(result.astype(float) - by_entry(RGB, name, 3) / 255).max() <= error


def test_bool_is_black_and_white() -> None:
    image = GRAY > 128
    result = apply_degradation(image, "cod10k-c/gaussian_noise", severity=1)
    assert result.dtype == np.bool_
    assert np.array_equal(result, image)  # noise of 8 never crosses the threshold
    assert not apply_degradation(image, "cod10k-c/brightness", severity=5).any()


def test_alpha_keeps_all_its_bits() -> None:
    image = np.dstack([RGB.astype(np.uint16) * 257, np.arange(31 * 33, dtype=np.uint16).reshape(31, 33) * 61])
    assert np.array_equal(apply_degradation(image, "cod10k-c/fog", severity=3)[:, :, 3], image[:, :, 3])


def test_views_and_read_only_arrays() -> None:
    image = RGB[::-1, ::2, ::-1]
    image.flags.writeable = False
    result = apply_degradation(image, "cod10k-c/rain", severity=3)
    assert np.array_equal(result, apply_degradation(image.copy(), "cod10k-c/rain", severity=3))
    assert result.flags.writeable


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (RGB.astype(np.int32), r"got int32 with values up to 255; convert it with image.astype\('uint8'\)"),
        (RGB.astype(np.int64) * 257, r"got int64 with values up to 65535; convert it with image.astype\('uint16'\)"),
        (RGB.astype(np.uint32) << 20, "scale it to 0..65535"),
        (RGB.astype(np.int16) - 128, "negative values"),
        (RGB.astype(np.float32), r"A float image lies in \[0, 1\]; this one in .*: divide it by 255"),
        (RGB / 127.5 - 1, "rescale it, or clip it"),
        (RGB / 250, "clip it"),
        (np.where(RGB > 250, np.nan, 0.5), "NaN or infinite"),
        (np.full((3, 3), np.inf), "NaN or infinite"),
        (np.full((3, 3), -np.inf, np.float16), "NaN or infinite"),
        (RGB.astype(complex), "got complex128"),
        (RGB.astype(object), "got object"),
        (RGB.astype("U3"), "got <U3"),
        (np.zeros((0, 5, 3), np.uint8), "empty"),
        (np.zeros((0, 0)), "empty"),
        (np.zeros(5), r"got the shape \(5,\)"),
        (np.float32(0.5), "got float32"),
        (np.array(0.5), r"got the shape \(\)"),
        (RGB[:, :, :2], r"got the shape \(31, 33, 2\)"),
        (RGB.transpose(2, 0, 1), r"use image.transpose\(1, 2, 0\)"),
        (RGB[None], "one by one"),
        (np.ma.masked_array(RGB, RGB > 9), "filled"),
        (RGB.tolist(), "got list. Convert it with numpy.asarray"),
        (None, "got NoneType"),
        ("a.png", "read it with crypsis.io.read_image"),
        (Path("a.png"), "read it with crypsis.io.read_image"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_with_a_sentence(image: object, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        apply_degradation(image, "cod10k-c/fog", severity=3)


# Pillow


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("array", "mode"),
    [
        (GRAY, "L"),
        (np.dstack([GRAY, ALPHA]), "LA"),
        (RGB, "RGB"),
        (RGBA, "RGBA"),
        (GRAY > 128, "1"),
        (GRAY.astype("<u2") * 257, "I;16"),
        (GRAY.astype(np.float32) / 255, "F"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_pillow_modes(name: str, array: np.ndarray, mode: str) -> None:
    picture = PIL.Image.fromarray(array)
    assert picture.mode == mode
    picture.info["dpi"] = (72, 72)
    result = apply_degradation(picture, name, severity=3, image_key="k")
    assert isinstance(result, PIL.Image.Image)
    assert result.mode == mode
    assert result.size == picture.size
    assert result.info == picture.info
    assert np.array_equal(np.asarray(picture), array)
    if mode != "LA":
        assert np.array_equal(np.asarray(result), apply_degradation(array, name, severity=3, image_key="k"))
    else:
        gray, alpha = np.moveaxis(np.asarray(result), 2, 0)
        assert np.array_equal(gray, apply_degradation(GRAY, name, severity=3, image_key="k"))
        assert np.array_equal(alpha, ALPHA)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("P", r"convert\('RGB'\) first, or to 'RGBA'"),
        ("CMYK", r"convert\('RGB'\)"),
        ("YCbCr", r"convert\('RGB'\)"),
        ("HSV", r"convert\('RGB'\)"),
        ("I", r"convert\('I;16'\)"),
    ],
)
def test_pillow_modes_that_cannot_come_back(mode: str, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        apply_degradation(PIL.Image.new(mode, (4, 4)), "cod10k-c/fog", severity=3)


def test_pillow_image_of_a_truncated_file() -> None:
    buffer = io.BytesIO()
    PIL.Image.fromarray(RGB).save(buffer, "PNG")
    broken = PIL.Image.open(io.BytesIO(buffer.getvalue()[:-400]))
    with pytest.raises(ImageError, match="cannot be decoded"):
        apply_degradation(broken, "cod10k-c/fog", severity=3)


# torch


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("channels", [None, 1, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32", "float64", "bool", "uint16"])
def test_tensors(name: str, channels: int | None, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    array = GRAY if channels is None else RGBA[:, :, :channels]
    if dtype == "bool":
        array = array > 128
    elif dtype == "uint16":
        array = array.astype(np.uint16) * 257
    elif dtype != "uint8":
        array = array.astype(np.float32) / 255
    tensor = torch.from_numpy(array if channels is None else array.transpose(2, 0, 1).copy())
    tensor = tensor.to(getattr(torch, dtype))
    before = tensor.clone()
    result = apply_degradation(tensor, name, severity=3, image_key="k")
    assert type(result) is torch.Tensor
    assert result.shape == tensor.shape
    assert result.dtype == tensor.dtype
    assert result.device == tensor.device
    assert torch.equal(tensor, before)
    assert result.data_ptr() != tensor.data_ptr()
    expected = apply_degradation(array, name, severity=3, image_key="k").astype(float)
    got = result.double().numpy()
    got = got if channels is None else got.transpose(1, 2, 0)
    error = {"bfloat16": 1 / 255, "float16": 1e-3, "float32": 1e-6, "float64": 1e-6}.get(dtype, 0)
    if dtype == "bfloat16":  # eight bits of precision round the input; noise and rain do not move
        assert abs(got - expected).mean() < 2 * error
    else:
        assert abs(got - expected).max() <= error


def test_tensor_with_a_gradient_and_a_parameter() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    tensor = torch.full((3, 5, 6), 0.5, requires_grad=True)
    assert not apply_degradation(tensor, "cod10k-c/fog", severity=3).requires_grad
    parameter = torch.nn.Parameter(torch.full((3, 5, 6), 0.5))
    assert apply_degradation(parameter, "cod10k-c/fog", severity=3).shape == (3, 5, 6)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 3, 8, 8), "got a batch of shape .* Loop over it"),
        ((8, 8, 3), r"use image.permute\(2, 0, 1\)"),
        ((2, 8, 8), r"got the shape \(2, 8, 8\)"),
        ((8,), r"got the shape \(8,\)"),
        ((3, 0, 8), "empty"),
    ],
)
def test_tensor_shapes(shape: tuple[int, ...], message: str) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    with pytest.raises(ImageError, match=message):
        apply_degradation(torch.zeros(shape), "cod10k-c/fog", severity=3)


def test_tensors_without_values() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    with pytest.raises(ImageError, match="cannot be read as an array"):
        apply_degradation(torch.zeros((3, 4, 4), device="meta"), "cod10k-c/fog", severity=3)


def test_torch_is_never_imported() -> None:
    program = (
        "import sys, numpy, crypsis; crypsis.apply_degradation(numpy.zeros((4, 4)), 'cod10k-c/fog', severity=1)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
