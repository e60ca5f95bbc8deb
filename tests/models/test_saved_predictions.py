from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from crypsis.errors import ModelError
from crypsis.models.predictions import SavedPredictions
from crypsis.models.segmenter import load_model
from crypsis.types import Condition

CLEAN, RAIN, FOG = Condition("clean", 0), Condition("cod10k-c/rain", 3), Condition("cod10k-c/fog", 1)
SHAPE = (6, 9)


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(3).random(SHAPE)


def put(path: Path, array: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npy":
        np.save(path, array)
    else:
        PIL.Image.fromarray(array).save(path)
    return path


def u8(values: np.ndarray) -> np.ndarray:
    return np.rint(values * 255).astype(np.uint8)


def u16(values: np.ndarray) -> np.ndarray:
    return np.rint(values * 65535).astype(np.uint16)


@pytest.mark.parametrize(
    ("file", "coded", "step"),
    [
        ("fish.png", u8, 1 / 255),
        ("fish.PNG", u8, 1 / 255),
        ("fish.bmp", u8, 1 / 255),
        ("fish.png", u16, 1 / 65535),
        ("fish.tif", u16, 1 / 65535),
        ("fish.tif", lambda v: v.astype(np.float32), 1e-7),
        ("fish.png", lambda v: v > 0.5, 1.0),
        ("fish.png", lambda v: np.repeat(u8(v)[:, :, None], 3, axis=2), 1 / 255),
        ("fish.npy", lambda v: v, 1e-7),
        ("fish.npy", lambda v: v.astype(np.float16), 1e-3),
        ("fish.npy", lambda v: np.asfortranarray(v.astype(">f4")), 1e-7),
        ("fish.npy", lambda v: v[None], 1e-7),
        ("fish.npy", lambda v: v[:, :, None], 1e-7),
        ("fish.npy", u8, 1 / 255),
        ("fish.npy", u16, 1 / 65535),
        ("fish.npy", lambda v: v > 0.5, 1.0),
    ],
)
def test_what_was_saved_is_loaded(tmp_path, values, file, coded, step) -> None:
    put(tmp_path / "clean" / file, coded(values))
    prediction = load_model(f"predictions:{tmp_path}").load("fish", CLEAN, SHAPE)
    assert prediction.probability.dtype == np.float32
    assert prediction.uncertainty is None
    np.testing.assert_allclose(prediction.probability, values, atol=step / 2 + 1e-7)


def test_a_gray_palette_is_gray(tmp_path, values) -> None:
    (tmp_path / "clean").mkdir()
    PIL.Image.fromarray(u8(values)).convert("P").save(tmp_path / "clean/fish.png")
    loaded = SavedPredictions(tmp_path).load("fish", CLEAN, SHAPE).probability
    np.testing.assert_allclose(loaded, values, atol=0.51 / 255)


def test_jpeg_is_read_as_well_as_it_can_be(tmp_path) -> None:
    put(tmp_path / "clean/fish.jpg", np.full((16, 16), 51, np.uint8))
    loaded = SavedPredictions(tmp_path).load("fish", CLEAN, (16, 16)).probability
    np.testing.assert_allclose(loaded, 0.2, atol=1 / 255)


@pytest.mark.parametrize("place", ["cod10k-c/rain/3", "rain/3"])
@pytest.mark.parametrize("key", ["fish", "test/Imgs/a.b", "größe", "a b"])
def test_conditions_by_full_or_bare_name_and_keys_with_folders(tmp_path, values, place, key) -> None:
    put(tmp_path / place / f"{key}.png", u8(values))
    source = SavedPredictions(tmp_path)
    np.testing.assert_allclose(source.load(key, RAIN, SHAPE).probability, values, atol=0.51 / 255)
    assert source.check([key], [RAIN]) == []


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_composed_and_decomposed_names_are_one(tmp_path, values, form) -> None:
    put(tmp_path / "clean" / (unicodedata.normalize(form, "größe") + ".png"), u8(values))
    assert SavedPredictions(tmp_path).load("größe", CLEAN, SHAPE).probability.shape == SHAPE


def test_a_map_of_another_size_is_resized_to_the_image(tmp_path) -> None:
    put(tmp_path / "clean/fish.npy", np.array([[0.0, 1.0]]))
    loaded = SavedPredictions(tmp_path).load("fish", CLEAN, (2, 4)).probability
    np.testing.assert_allclose(loaded, [[0, 0.25, 0.75, 1]] * 2)


def test_an_uncertainty_map_beside_the_map(tmp_path, values) -> None:
    put(tmp_path / "clean/fish.png", u8(values))
    put(tmp_path / "clean/fish.uncertainty.npy", 1 - values)
    prediction = SavedPredictions(tmp_path).load("fish", CLEAN, SHAPE)
    np.testing.assert_allclose(prediction.uncertainty, 1 - values, atol=1e-6)
    put(tmp_path / "clean/fish.uncertainty.png", u8(values))
    with pytest.raises(ModelError, match="several uncertainty maps"):
        SavedPredictions(tmp_path).load("fish", CLEAN, SHAPE)


def test_a_missing_map_names_the_places(tmp_path, values) -> None:
    put(tmp_path / "rain/3/fish.png", u8(values))
    source = SavedPredictions(tmp_path, name="ours")
    with pytest.raises(ModelError, match=r"^ours: there is no map .*cod10k-c/fog/1/fish.png or .*/fog/1/fish.png"):
        source.load("fish", FOG, SHAPE)
    assert source.check(["fish", "crab"], [CLEAN, RAIN, FOG]) == [
        ("fish", CLEAN),
        ("crab", CLEAN),
        ("crab", RAIN),
        ("fish", FOG),
        ("crab", FOG),
    ]


def test_two_maps_for_one_image_are_refused(tmp_path, values) -> None:
    put(tmp_path / "rain/3/fish.png", u8(values))
    put(tmp_path / "cod10k-c/rain/3/fish.npy", values)
    with pytest.raises(ModelError, match=r"several maps for fish under cod10k-c/rain@3: .*keep one"):
        SavedPredictions(tmp_path).load("fish", RAIN, SHAPE)


@pytest.mark.parametrize(
    "key", ["../x", "a/../../x", "/etc/x", "", ".", "a//b", "a/", "a\\..\\x", "C:x", "a\0b", "a/./b"]
)
def test_keys_never_leave_the_folder(tmp_path, values, key) -> None:
    put(tmp_path / "x.png", u8(values))
    put(tmp_path / "maps/clean/y.png", u8(values))
    source = SavedPredictions(tmp_path / "maps")
    for act in (lambda: source.load(key, CLEAN, SHAPE), lambda: source.check([key], [CLEAN])):
        with pytest.raises(ModelError, match="not a name inside a folder of predictions"):
            act()


def test_entries_never_leave_the_folder(tmp_path) -> None:
    with pytest.raises(ModelError, match="not a name inside"):
        SavedPredictions(tmp_path).load("fish", Condition("../rain", 1), SHAPE)


@pytest.mark.parametrize(
    ("file", "array", "message"),
    [
        ("fish.npy", np.array([[0.0, 3.5]]), r"must lie in \[0, 1\]"),
        ("fish.npy", np.array([[0.0, np.nan]]), "without NaN"),
        ("fish.npy", np.zeros((2, 3, 4)), r"two axes, height and width; got shape \(2, 3, 4\)"),
        ("fish.npy", np.zeros(5), "two axes"),
        ("fish.npy", np.zeros((0, 5)), "two axes|not a readable"),
        ("fish.npy", np.zeros((2, 2), np.int64), "float, bool, uint8 or uint16; got int64"),
        ("fish.npy", np.zeros((2, 2), complex), "got complex128"),
        ("fish.npy", np.array([[{}]], dtype=object), "not a readable NumPy array"),
        ("fish.png", np.arange(12, dtype=np.uint8).reshape(2, 2, 3), "color picture, not a map"),
        ("fish.tif", np.float32([[0.0, 40.0]]), r"must lie in \[0, 1\]"),
        ("fish.tif", np.int32([[0, 70000]]), "holds values up to 70000"),
    ],
)
def test_files_that_are_no_maps(tmp_path, file, array, message) -> None:
    path = put(tmp_path / "clean" / file, array)
    with pytest.raises(ModelError, match=message) as caught:
        SavedPredictions(tmp_path).load("fish", CLEAN, SHAPE)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("file", ["fish.png", "fish.npy", "fish.tif"])
@pytest.mark.parametrize("data", [b"", b"nonsense" * 9])
def test_damaged_files_are_one_sentence(tmp_path, file, data) -> None:
    (tmp_path / "clean").mkdir()
    (tmp_path / "clean" / file).write_bytes(data)
    with pytest.raises(ModelError, match=file):
        SavedPredictions(tmp_path).load("fish", CLEAN, SHAPE)


def test_a_header_that_promises_too_much_is_refused(tmp_path) -> None:
    path = put(tmp_path / "clean/fish.npy", np.zeros((4, 4)))
    path.write_bytes(path.read_bytes().replace(b"(4, 4)", b"(4000000, 4000000)"))
    with pytest.raises(ModelError, match="not a readable NumPy array"):
        SavedPredictions(tmp_path).load("fish", CLEAN, SHAPE)


def test_the_folder_must_be_there_and_gives_the_name(tmp_path) -> None:
    with pytest.raises(ModelError, match=r"no folder of predictions .*gone \(looked in "):
        load_model(f"predictions:{tmp_path / 'gone'}")
    (tmp_path / "sinet,v2").mkdir()
    source = load_model(f"predictions:{tmp_path / 'sinet,v2'}")
    assert source.name == source.describe()["folder"] == "sinet,v2"
    assert str(tmp_path) not in str(source.describe())
    assert load_model(f"predictions:{tmp_path},name=ours").name == "ours"
