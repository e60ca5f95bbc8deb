from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import PIL
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.datasets.demo import demo_folder, demo_species
from crypsis.errors import DatasetError, InputError, MissingDependencyError

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "build_demo_set.py"
FOLDER = demo_folder()
DOCUMENT = json.loads((FOLDER / "annotations.json").read_text(encoding="utf-8"))
PAIRS = list(zip(DOCUMENT["images"], DOCUMENT["annotations"], strict=True))


def _load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_demo_set", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


build_demo_set = _load_script()


# --- what ships -----------------------------------------------------------------------------------------------


def test_the_folder_holds_exactly_the_48_pairs() -> None:
    stems = {Path(image["file_name"]).stem for image in DOCUMENT["images"]}
    assert len(DOCUMENT["images"]) == len(stems) == 48
    assert {p.name for p in (FOLDER / "images").iterdir()} == {f"{s}.jpg" for s in stems}
    assert {p.name for p in (FOLDER / "masks").iterdir()} == {f"{s}.png" for s in stems}
    assert all(s.isascii() for s in stems)
    assert sum(p.stat().st_size for p in FOLDER.rglob("*") if p.is_file()) < 3_500_000


@pytest.mark.parametrize(("image", "annotation"), PAIRS, ids=[i["file_name"] for i, _ in PAIRS])
def test_a_pair_is_what_its_annotation_says(image: dict, annotation: dict) -> None:
    jpeg = (FOLDER / "images" / image["file_name"]).read_bytes()
    png = (FOLDER / "masks" / annotation["mask_file"]).read_bytes()
    assert hashlib.sha256(jpeg).hexdigest() == image["sha256"]
    assert hashlib.sha256(png).hexdigest() == annotation["sha256"]
    assert annotation["image_id"] == image["id"]

    with PIL.Image.open(FOLDER / "images" / image["file_name"]) as picture:
        size, mode = picture.size, picture.mode
    with PIL.Image.open(FOLDER / "masks" / annotation["mask_file"]) as picture:
        mask = np.asarray(picture)
    assert mode == "RGB"
    assert size == mask.shape[::-1] == (image["width"], image["height"])
    assert max(size) <= 384
    assert set(np.unique(mask).tolist()) == {0, 255}
    assert hashlib.sha256((mask > 0).astype(np.uint8).tobytes()).hexdigest() == annotation["pixels_sha256"]
    assert 0.03 <= (mask > 0).mean() <= 0.25
    assert annotation["area"] == np.count_nonzero(mask)
    assert annotation["bbox"] == list(cv2.boundingRect(mask))
    x, y, w, h = annotation["bbox"]
    assert x > 0
    assert y > 0
    assert x + w < image["width"]
    assert y + h < image["height"]


def test_every_image_has_species_license_and_attribution_row() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    licenses = {row["id"]: row["name"] for row in DOCUMENT["licenses"]}
    species = demo_species()
    assert len(species) == 48
    for image in DOCUMENT["images"]:
        assert species[Path(image["file_name"]).stem] == image["species"]
        assert licenses[image["license"]] == "GPL-3.0-or-later"
        assert image["stamp"]["license"] == "GPL-2.0-or-later"
        assert image["background"]["license"] in {"GPL-2.0-or-later", "CC-BY-4.0"}
        row = next(line for line in readme if line.startswith(f"| {image['file_name']} |"))
        for part in (image["species"], image["stamp"]["author"], image["background"]["author"]):
            assert f"| {part} |" in row
        assert "contributors" not in image["stamp"]["author"]  # each shipped animal is credited by name
    license_text = (FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert "GNU GENERAL PUBLIC LICENSE" in license_text
    assert "END OF TERMS AND CONDITIONS" in license_text


def test_variety() -> None:
    images = DOCUMENT["images"]
    blends = [image["blend"] for image in images]
    assert 6 <= blends.count(0.0) <= 12
    assert all(t == 0.0 or 0.55 <= t <= 0.95 for t in blends)
    assert len({image["species"] for image in images}) >= 21
    assert len({image["background"]["name"] for image in images}) >= 5
    assert len({(image["width"], image["height"]) for image in images}) == 3


def test_shipped_annotations_follow_the_plan() -> None:
    planned = [
        (f"{s.stem}.jpg", s.stamp, s.background, s.blend, s.seed, s.width, s.height) for s in build_demo_set.plan_test()
    ]
    shipped = [
        (i["file_name"], i["stamp"]["name"], i["background"]["name"], i["blend"], i["seed"], i["width"], i["height"])
        for i in DOCUMENT["images"]
    ]
    assert shipped == planned


def test_an_installation_without_the_set_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crypsis.datasets.demo.resources.files", lambda _: tmp_path)
    with pytest.raises(DatasetError, match="not in this installation"):
        demo_folder()


# --- splits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), [("train", "val"), ("train", "test"), ("val", "test")])
def test_splits_share_neither_species_nor_stamp_nor_background(one: str, other: str) -> None:
    species, backgrounds = build_demo_set.SPECIES, build_demo_set.BACKGROUNDS
    assert not species[one].keys() & species[other].keys()
    assert not build_demo_set.species_of(one).keys() & build_demo_set.species_of(other).keys()
    assert not {b.path for b in backgrounds[one].values()} & {b.path for b in backgrounds[other].values()}


def test_nothing_with_a_doubtful_license_is_in_any_table() -> None:
    stamps = {s for split in build_demo_set.SPECIES for s in build_demo_set.species_of(split)}
    for name in ("helmeted", "woodlouse", "slug", "pelican", "heron", "cartoon", "toys", "echidna", "hedgehog"):
        assert not [s for s in stamps if name in s.lower()]
    for scenes in build_demo_set.BACKGROUNDS.values():
        assert not [b for b in scenes.values() if "SA" in b.license or "Dragonfly" in b.path]


@pytest.mark.parametrize("split", ["train", "val"])
def test_random_plans_are_reproducible_and_use_every_species(split: str) -> None:
    count = len(build_demo_set.SPECIES[split])
    plan = build_demo_set.plan_random(split, count)
    assert plan == build_demo_set.plan_random(split, count)
    assert plan != build_demo_set.plan_random(split, count, seed=1)
    assert {s.species for s in plan} == set(build_demo_set.SPECIES[split])
    assert len({s.stem for s in plan}) == count


def test_a_series_keeps_what_keys_the_randomness() -> None:
    scene = build_demo_set.plan_test()[0]
    series = build_demo_set.with_blends([scene], [0.0, 0.5, 0.95])
    assert [s.stem for s in series] == [f"{scene.stem}-t00", f"{scene.stem}-t50", f"{scene.stem}-t95"]
    assert {s.series for s in series} == {scene.stem}
    assert [s.blend for s in series] == [0.0, 0.5, 0.95]


# --- compositing on synthetic arrays --------------------------------------------------------------------------


def _arrays(seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    scene, texture = rng.uniform(60, 120, (64, 48, 3)), rng.uniform(60, 120, (64, 48, 3))
    animal = rng.uniform(150, 220, (64, 48, 3))
    alpha = np.zeros((64, 48))
    alpha[20:44, 12:36] = 1.0
    alpha[19, 12:36] = 0.5
    alpha[18, 12:36] = 0.51
    return scene, animal, alpha, texture, np.zeros((64, 48))


def test_without_blending_the_animal_stays_as_pasted_and_the_mask_is_alpha_above_half() -> None:
    scene, animal, alpha, texture, grain = _arrays()
    image, mask = build_demo_set.compose(scene, animal, alpha, texture, grain, blend=0.0, blades=0.0)
    solid = alpha == 1.0
    assert image.dtype == np.uint8
    assert (image[solid] == np.rint(animal[solid])).all()
    assert (mask == (alpha > 0.5)).all()
    assert (image[:10] == np.rint(scene[:10])).all()  # above the animal no shadow falls


@given(seed=st.integers(0, 2**16), blend=st.floats(0.05, 1.0))
@settings(deadline=None, max_examples=25)
def test_blending_moves_the_animal_towards_its_surroundings(seed: int, blend: float) -> None:
    scene, animal, alpha, texture, grain = _arrays(seed)
    solid, ring = alpha == 1.0, build_demo_set.ring_around(alpha > 0.5, 4)

    def distance(t: float) -> float:
        image, _ = build_demo_set.compose(scene, animal, alpha, texture, grain, blend=t, blades=0.0)
        return float(np.abs(image[solid].mean(0) - scene[ring].mean(0)).mean())

    assert distance(blend) < distance(0.0)
    assert distance(1.0) < 0.15 * distance(0.0)


def test_the_ring_touches_no_pixel_of_the_animal() -> None:
    mask = np.zeros((40, 40), bool)
    mask[15:25, 15:25] = True
    ring = build_demo_set.ring_around(mask, 5)
    assert ring.any()
    assert not ring[14:26, 14:26].any()


def test_blades_hide_only_the_lower_half_and_leave_the_mask_visible_alpha() -> None:
    scene, animal, alpha, texture, grain = _arrays()
    scene[:, ::4] = 250.0
    image, mask = build_demo_set.compose(scene, animal, alpha, texture, grain, blend=0.0, blades=1.0)
    whole = alpha > 0.5
    assert (mask[:30] == whole[:30]).all()
    hidden = whole & ~mask
    assert hidden[36:].any()
    assert not (mask & ~whole).any()
    assert np.abs(image[hidden].astype(float) - scene[hidden]).mean() < 80


def test_edges_lose_the_old_background_and_solid_pixels_keep_their_color() -> None:
    alpha = np.zeros((40, 40))
    alpha[10:30, 10:30] = 1.0
    alpha[9, 10:30] = 0.5
    rgb = np.full((40, 40, 3), 100.0)
    rgb[9] = 255.0  # a white rim
    cleaned, softened = build_demo_set.clean_edge(rgb, alpha)
    assert (cleaned[12:28, 12:28] == 100.0).all()
    assert (np.abs(cleaned[9, 12:28] - 100.0) < 1.0).all()
    assert (softened[15:25, 15:25] == 1.0).all()
    assert softened.min() == 0.0


def test_opponent_colors_are_inverted() -> None:
    rgb = np.random.default_rng(0).uniform(0, 255, (5, 7, 3))
    np.testing.assert_allclose(build_demo_set.from_opponent(build_demo_set.to_opponent(rgb)), rgb, atol=1e-9)


# --- the script's own refusals --------------------------------------------------------------------------------


def test_a_damaged_package_is_refused(tmp_path: Path) -> None:
    package = build_demo_set.PACKAGES["mate-backgrounds"]
    (tmp_path / package.file).write_bytes(b"not the package")
    with pytest.raises(InputError, match="damaged or another build"):
        build_demo_set.fetch(package, tmp_path)


def test_a_package_that_cannot_be_downloaded_says_where_to_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no apt-get there
    with pytest.raises(MissingDependencyError, match=r"get mate-backgrounds_1\.26\.0-1_all\.deb from Debian 12"):
        build_demo_set.fetch(build_demo_set.PACKAGES["mate-backgrounds"], tmp_path / "cache")


def test_a_folder_with_other_composites_is_refused(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.jpg").touch()
    with pytest.raises(InputError, match=r"mine\.jpg is not part of this build"):
        build_demo_set.refuse_strangers(build_demo_set.plan_test(), tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--split", "train"],
        ["--blend", "0", "0.5"],
        ["--blend", "1.5", "--out", "x"],
        ["--count", "3"],
        ["--split", "val", "--count", "0", "--out", "x"],
    ],
)
def test_wrong_options_are_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        build_demo_set.main(arguments)
    assert "error:" in capsys.readouterr().err


# --- rebuilding from the packages -----------------------------------------------------------------------------


@pytest.mark.skipif(
    "CRYPSIS_DEMO_BUILD_CACHE" not in os.environ,
    reason="CRYPSIS_DEMO_BUILD_CACHE names no folder with the five Debian packages",
)
def test_the_set_is_rebuilt_from_the_packages() -> None:
    cache = Path(os.environ["CRYPSIS_DEMO_BUILD_CACHE"])
    scenes = build_demo_set.plan_test()
    differences = build_demo_set.check_set(scenes, build_demo_set.Photographs(cache, scenes), FOLDER)
    if build_demo_set.versions() != build_demo_set.MADE_WITH:  # another codec may code the same pixels otherwise
        differences = [d for d in differences if "same pixels" not in d]
    assert differences == []
