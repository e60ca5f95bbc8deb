"""Build the demo set: photographs of animals set into photographs of natural scenes, with exact masks.

    python scripts/build_demo_set.py                                  # the 48 test images that ship
    python scripts/build_demo_set.py --check                          # rebuild and compare, change nothing
    python scripts/build_demo_set.py --split train --count 240 --out TRAIN
    python scripts/build_demo_set.py --blend 0 0.5 0.95 --out SERIES  # each animal at three strengths

The photographs come from five packages of Debian 12, fetched with `apt-get download` when they are not in the
cache (325 MB; a Debian or Ubuntu machine whose sources offer these versions, or put the .deb files there by
hand). Only the files named below are read from them; nothing is installed.

The same packages give the same files, byte for byte, with the libraries the set was made with: numpy 2.4.6,
opencv-python-headless 5.0.0.93, pillow 13.0.0, on x86-64. All 96 files also came out the same with numpy 1.26.4,
opencv-python-headless 4.9.0.80 and pillow 10.3.0; only the versions noted in annotations.json differ then. This
is not promised for others: JPEG and PNG bytes depend on the codec, pixels on how Pillow decodes and resizes.
`--check` tells the two apart: it compares the composed pixels before coding as well as the files, and names
every difference. Arithmetic is float64 so that the last bits of one processor do not reach the 8-bit result of
another.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image
from numpy.typing import NDArray

from crypsis.errors import CrypsisError, InputError, MissingDependencyError
from crypsis.io import write_atomic
from crypsis.seeds import rng_for

Pixels = NDArray[np.float64]
Row = dict[str, Any]

SHIPPED = Path(__file__).resolve().parents[1] / "src" / "crypsis" / "data" / "demo"
CACHE = Path("~/.cache/crypsis/demo-build")
MADE_WITH = {"numpy": "2.4.6", "opencv": "5.0.0", "pillow": "13.0.0"}

# --- sources ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Package:
    """A Debian package, pinned: the file `apt-get download` leaves and its SHA-256."""

    name: str
    version: str
    file: str
    sha256: str


PACKAGES = {
    p.name: p
    for p in (
        Package(
            "tuxpaint-stamps-default",
            "2022.06.04-1",
            "tuxpaint-stamps-default_2022.06.04-1_all.deb",
            "6db6c1bfc870a47f1499d6203b083522eacb57c5f9c87d468f2e92eb6d9d5f34",
        ),
        Package(
            "tuxpaint-data",
            "1:0.9.28-sdl2-1",
            "tuxpaint-data_1%3a0.9.28-sdl2-1_all.deb",
            "f5d0de8f9a70d2efc1241d19f26168cb8bf279f1b77abd3631e7a1a55c40e5e5",
        ),
        Package(
            "lomiri-wallpapers-16.04",
            "20.04.0-2",
            "lomiri-wallpapers-16.04_20.04.0-2_all.deb",
            "a99ff6a3bfe451e4cc0682ecb3cc82e71740626d59e4845ae34a0a0e45421eab",
        ),
        Package(
            "mate-backgrounds",
            "1.26.0-1",
            "mate-backgrounds_1.26.0-1_all.deb",
            "7bf4c2209f34b4f61ba6d24c8b58c28b361e82e4b943aae6d42c030169af9e04",
        ),
        Package(
            "plasma-workspace-wallpapers",
            "4:5.27.5-2",
            "plasma-workspace-wallpapers_4%3a5.27.5-2_all.deb",
            "32cd18b71c8c938a18b3b351f217c02ac590e323caa3cf322fbb875ce8892f8b",
        ),
    )
}

STAMPS = "tuxpaint-stamps-default"
STAMP_ROOT = "usr/share/tuxpaint/stamps/animals/"


@dataclass(frozen=True)
class Background:
    """A photograph of a scene.

    Attributes:
        package: key of `PACKAGES`.
        path: where it lies in the package.
        author: whom to credit.
        license: SPDX identifier, from the package's copyright file (Plasma: from the wallpaper's metadata).
        region: usable part as fractions (left, top, right, bottom): no sky, no letterbox.
        blades: 0..1, how far grass or leaves in front hide the animal's feet.
    """

    package: str
    path: str
    author: str
    license: str
    region: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)
    blades: float = 0.0


def _template(name: str, region: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)) -> Background:
    path = f"usr/share/tuxpaint/templates/{name}.jpg"
    return Background("tuxpaint-data", path, "Bill Kendrick", "GPL-2.0-or-later", region)


def _mate(
    name: str, author: str, region: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0), blades: float = 0.0
) -> Background:
    path = f"usr/share/backgrounds/mate/nature/{name}.jpg"
    return Background("mate-backgrounds", path, author, "GPL-2.0-or-later", region, blades)


def _lomiri(name: str, author: str, license_: str = "CC-BY-4.0") -> Background:
    return Background("lomiri-wallpapers-16.04", f"usr/share/backgrounds/{name}.jpg", author, license_)


def _plasma(name: str, author: str) -> Background:
    path = f"usr/share/wallpapers/{name}/contents/images/2560x1600.jpg"
    return Background("plasma-workspace-wallpapers", path, author, "LGPL-3.0-only")


# What ships (test) uses only GPL-2.0-or-later and CC-BY-4.0, which both may pass into GPL-3.0-or-later. Left
# out everywhere: lomiri's Dragonfly and the other CC-BY-SA photographs.
BACKGROUNDS: dict[str, dict[str, Background]] = {
    "test": {
        "burnt_bark": _template("burnt_bark"),
        "mossy_log": _template("mossy_log"),
        "mudstone": _template("mudstone"),
        "rocks": _template("rocks", (0.0, 0.15, 1.0, 1.0)),
        "life": _lomiri("life_by_Aitzol_Berasategi", "Aitzol Berasategi"),
        "Dune": _mate("Dune", "Marco Cogoni, Hylke Bons", (0.0, 0.42, 1.0, 1.0), 1.0),
    },
    "val": {
        "cliff": _template("cliff", (0.0, 0.25, 1.0, 1.0)),
        "ocean_splash": _template("ocean_splash"),
        "RainDrops": _mate("RainDrops", "blackcombwhistler07"),
        "Wood": _mate("Wood", "Jean-François Fortin Tam"),
        "Path": _plasma("Path", "Risto Saukonpää"),
    },
    "train": {
        "corn_maze": _template("corn_maze"),
        "mossy_bark": _template("mossy_bark", (0.0, 0.09, 1.0, 0.91)),
        "ocean_waves": _template("ocean_waves"),
        "redwoods_above": _template("redwoods_above"),
        "sun_behind_leaves": _template("sun_behind_leaves"),
        "trees_above": _template("trees_above"),
        "trees_at_dusk": _template("trees_at_dusk"),
        "Blinds": _mate("Blinds", "Lennart Poettering, Andrea Cimitan"),
        "Garden": _mate("Garden", "Charles Barbin"),
        "GreenMeadow": _mate("GreenMeadow", "Timothy Schellhase, Lapo Calamandrei", blades=1.0),
        "TwoWings": _mate("TwoWings", "Charles Barbin, Hylke Bons"),
        "aitzgorri": _lomiri("aitzgorri_by_Aitzol_Berasategi", "Aitzol Berasategi"),
        "picosdeeuropa": _lomiri("picosdeeuropa_by_Aitzol_Berasategi", "Aitzol Berasategi"),
        "seeding": _lomiri("seeding_by_Clements_Engelhardt", "Clemens Engelhardt", "CC0-1.0"),
        "BytheWater": _plasma("BytheWater", "Maciej Wiklo"),
        "FallenLeaf": _plasma("FallenLeaf", "Martin Klapetek"),
        "OneStandsOut": _plasma("OneStandsOut", "Risto Saukonpää"),
    },
}

# Species → stamps. Left out everywhere: cartoons, drawings and poor cut-outs; and the stamps which the changelog
# of the package lists under GFDL or CC-BY-SA (helmeted guinea fowl, woodlouse, brown slug, pelican, herons).
SPECIES: dict[str, dict[str, tuple[str, ...]]] = {
    "test": {
        "abalone": ("shellfish/abalone",),
        "bear": ("mammals/bears/european-bear", "mammals/bears/bear"),
        "beaver": ("mammals/rodents/beaver",),
        "capybara": ("mammals/rodents/capybara",),
        "chamois": ("mammals/bovines/mountaingoat",),
        "coral trout": ("fish/coraltrout",),
        "cuckoo": ("birds/cuckoo",),
        "deer": ("mammals/deer/doe", "mammals/deer/deer"),
        "frog": ("amphibians/frog", "amphibians/frog-1"),
        "gnu": (
            "mammals/bovines/gnu-sitting",
            "mammals/bovines/gnu-stand",
            "mammals/bovines/gnu-baby",
            "mammals/bovines/gnu-baby-stand",
        ),
        "grasshopper": ("insects/grasshopper",),
        "iguana": ("lizards/iguana",),
        "lark": ("birds/lark",),
        "lionfish": ("fish/lionfish",),
        "mantis": ("insects/mantis",),
        "marmot": ("mammals/rodents/marmot",),
        "owl": ("birds/owl",),
        "sea lion": ("mammals/aquatic/sea_lion",),
        "spiny lobster": ("fish/lobster",),
        "squirrel": ("mammals/rodents/squirrel",),
        "tiger": ("mammals/cats/tiger", "mammals/cats/tiger_sumatran"),
        "vulture": ("birds/vulture",),
        "wild boar": ("mammals/wildboar",),
        "xanthia moth": ("insects/xanthia",),
    },
    "val": {
        "badger": ("mammals/badger",),
        "bison": ("mammals/bovines/bison",),
        "butterflyfish": ("fish/butterflyfish",),
        "camel": ("mammals/camel/camel",),
        "crow": ("birds/crow",),
        "dolphin": ("mammals/aquatic/dolphin",),
        "donkey": ("mammals/equines/donkey", "mammals/equines/donkey_eating"),
        "fox": ("mammals/dogs/fox",),
        "hornet": ("insects/hornet",),
        "kangaroo": ("marsupials/kangaroo",),
        "koala": ("marsupials/koala",),
        "otter": ("mammals/aquatic/otter",),
        "rhinoceros": ("mammals/rhino_black",),
        "seagull": ("birds/seagull",),
        "sheep": ("mammals/bovines/sheep", "mammals/bovines/sheep_lamb", "mammals/bovines/ram"),
        "toucan": ("birds/tucan",),
        "turkey": ("birds/turkey",),
        "zebra": ("mammals/equines/zebra",),
    },
    "train": {
        "adelaide rosella": ("birds/adelaide-rosella",),
        "blackbird": ("birds/blackbird",),
        "blackbuck": ("mammals/bovines/indian_blackbuck",),
        "blue groper": ("fish/bluegroper",),
        "caribou": ("mammals/deer/caribou",),
        "cattle": ("mammals/bovines/cow", "mammals/bovines/cow_white", "mammals/bovines/bull"),
        "chicken": ("birds/chicken_profile", "birds/hen", "birds/rooster"),
        "chimpanzee": ("mammals/apes/chimp",),
        "clownfish": ("fish/clownfish",),
        "crowned crane": ("birds/crowned_crane",),
        "dingo": ("mammals/dogs/dingo",),
        "dog": ("mammals/dogs/dog",),
        "dolphinfish": ("fish/dolphinfish",),
        "dromedary": ("mammals/camel/dromedary",),
        "duck": ("birds/duck", "birds/drake"),
        "elephant": ("mammals/elephant",),
        "ferret": ("mammals/ferret",),
        "freshwater mussel": ("shellfish/murray-mussel",),
        "giraffe": ("mammals/giraffe",),
        "goat": ("mammals/bovines/goat",),
        "goose": ("birds/gander",),
        "gorilla": ("mammals/apes/gorilla",),
        "guinea fowl": ("birds/guineafowl",),
        "hippopotamus": ("mammals/hippopotamus",),
        "horse": ("mammals/equines/horse",),
        "hoverfly": ("insects/hoverfly",),
        "lion": ("mammals/cats/lion", "mammals/cats/lion-2"),
        "little penguin": ("birds/little-penguin",),
        "magellanic penguin": ("birds/magellanic_penguin",),
        "magpie": ("birds/magpie",),
        "moon wrasse": ("fish/moonwrasse",),
        "mouse": ("mammals/rodents/mouse",),
        "orca": ("mammals/aquatic/orca",),
        "ostrich": ("birds/ostrich",),
        "peacock": ("birds/peacock",),
        "penguin": ("birds/penguin",),
        "pig": ("mammals/pig", "mammals/pig_golden", "mammals/pig_golden2"),
        "pigeon": ("birds/pigeon",),
        "pink flamingo": ("birds/pink_flamingo",),
        "quetzal": ("birds/quetzal",),
        "rabbit": ("mammals/rodents/rabbit", "mammals/rodents/rabbit-2", "mammals/rabbit_little"),
        "rainbow lorikeet": ("birds/rainbow-lorikeet",),
        "rat": ("mammals/rodents/rat",),
        "rhea": ("birds/nandou",),
        "silver gull": ("birds/silver-gull",),
        "stripey fish": ("fish/stripedfish",),
        "wapiti": ("mammals/deer/wapiti",),
        "whale": ("mammals/aquatic/whale",),
        "wombat": ("marsupials/wombat",),
        "yak": ("mammals/bovines/yak",),
        "zebu": ("mammals/bovines/zebu",),
    },
}

# The changelog of tuxpaint-stamps names the donors; all of these are GPL-2.0-or-later as packaged.
_CHILDSPLAY = "Childsplay (Stas Zytkiewicz), adapted by Pere Pujal i Carabantes"
CREDITS = {
    "amphibians/frog-1": "Pere Pujal i Carabantes",
    "fish/coraltrout": "John O'Sullivan",
    "fish/lionfish": "John O'Sullivan",
    "fish/lobster": "NOAA photo library (public domain)",
    "insects/mantis": "Pere Pujal i Carabantes",
    "mammals/bears/european-bear": "Pere Pujal i Carabantes",
    "mammals/bovines/gnu-sitting": "Pere Pujal i Carabantes",
    "mammals/bovines/gnu-stand": "Pere Pujal i Carabantes",
    "mammals/rodents/capybara": "Bill Kendrick (San Francisco Zoo)",
    "shellfish/abalone": "Chris Goerner",
} | dict.fromkeys(
    (
        "amphibians/frog",
        "birds/cuckoo",
        "birds/lark",
        "birds/owl",
        "birds/vulture",
        "insects/grasshopper",
        "insects/xanthia",
        "lizards/iguana",
        "mammals/aquatic/sea_lion",
        "mammals/bovines/mountaingoat",
        "mammals/cats/tiger",
        "mammals/deer/doe",
        "mammals/rodents/beaver",
        "mammals/rodents/marmot",
        "mammals/rodents/squirrel",
        "mammals/wildboar",
    ),
    _CHILDSPLAY,
)


@dataclass(frozen=True)
class Scene:
    """What one composite is made of; everything else is drawn from `rng_for(seed, stem, ...)`.

    Attributes:
        stem: file name without suffix.
        split: `train`, `val` or `test`.
        species: key of `SPECIES[split]`.
        stamp: path of the animal below `STAMP_ROOT`, no suffix.
        background: key of `BACKGROUNDS[split]`.
        width, height: of the image, in pixels.
        blend: 0 (pasted as it is) to 1 (colors and texture of the surroundings).
        coverage: share of the image the animal should cover, if the enlargement limit and the frame allow it.
        seed: changes the draw.
        series: stem that keys the randomness; one for all strengths of a series.
    """

    stem: str
    split: str
    species: str
    stamp: str
    background: str
    width: int
    height: int
    blend: float
    coverage: float
    seed: int = 0
    series: str = ""


SQUARE, WIDE, TALL = (384, 384), (384, 288), (288, 384)

# (stamp, background, size, blend, coverage, seed). Chosen by hand: animals where they could live and at a
# believable size; the seed is the most natural of six draws.
TEST_PLAN: tuple[tuple[str, str, tuple[int, int], float, float, int], ...] = (
    ("amphibians/frog", "mossy_log", SQUARE, 0.80, 0.09, 2),
    ("amphibians/frog-1", "burnt_bark", TALL, 0.70, 0.13, 0),
    ("birds/cuckoo", "mossy_log", WIDE, 0.75, 0.08, 3),
    ("birds/cuckoo", "burnt_bark", SQUARE, 0.90, 0.10, 2),
    ("insects/grasshopper", "mossy_log", SQUARE, 0.60, 0.06, 1),
    ("insects/grasshopper", "rocks", WIDE, 0.00, 0.10, 0),
    ("insects/mantis", "mossy_log", SQUARE, 0.70, 0.07, 2),
    ("insects/mantis", "burnt_bark", WIDE, 0.85, 0.09, 3),
    ("insects/xanthia", "mossy_log", SQUARE, 0.65, 0.08, 4),
    ("insects/xanthia", "burnt_bark", TALL, 0.85, 0.12, 3),
    ("lizards/iguana", "mossy_log", WIDE, 0.00, 0.08, 4),
    ("lizards/iguana", "burnt_bark", SQUARE, 0.80, 0.08, 2),
    ("mammals/rodents/squirrel", "mossy_log", SQUARE, 0.90, 0.12, 4),
    ("mammals/rodents/squirrel", "burnt_bark", WIDE, 0.00, 0.14, 1),
    ("birds/lark", "mossy_log", WIDE, 0.85, 0.10, 3),
    ("birds/lark", "burnt_bark", SQUARE, 0.75, 0.07, 4),
    ("birds/owl", "burnt_bark", TALL, 0.95, 0.18, 4),
    ("birds/owl", "life", TALL, 0.60, 0.08, 4),
    ("mammals/rodents/marmot", "rocks", SQUARE, 0.70, 0.12, 4),
    ("mammals/rodents/marmot", "life", WIDE, 0.85, 0.10, 4),
    ("fish/coraltrout", "rocks", WIDE, 0.75, 0.09, 2),
    ("fish/coraltrout", "mudstone", SQUARE, 0.90, 0.09, 2),
    ("fish/lionfish", "rocks", SQUARE, 0.65, 0.06, 3),
    ("fish/lionfish", "mudstone", WIDE, 0.80, 0.08, 4),
    ("shellfish/abalone", "rocks", SQUARE, 0.80, 0.06, 2),
    ("shellfish/abalone", "mudstone", WIDE, 0.55, 0.07, 3),
    ("fish/lobster", "rocks", SQUARE, 0.85, 0.08, 1),
    ("fish/lobster", "mudstone", SQUARE, 0.00, 0.09, 4),
    ("mammals/aquatic/sea_lion", "rocks", SQUARE, 0.80, 0.14, 1),
    ("mammals/aquatic/sea_lion", "mudstone", WIDE, 0.70, 0.12, 4),
    ("mammals/rodents/beaver", "rocks", WIDE, 0.00, 0.12, 4),
    ("mammals/rodents/beaver", "life", SQUARE, 0.75, 0.09, 3),
    ("birds/vulture", "mudstone", TALL, 0.85, 0.15, 4),
    ("birds/vulture", "Dune", SQUARE, 0.65, 0.09, 2),
    ("mammals/bovines/mountaingoat", "mudstone", SQUARE, 0.75, 0.10, 4),
    ("mammals/bovines/mountaingoat", "life", TALL, 0.80, 0.11, 3),
    ("mammals/rodents/capybara", "mudstone", WIDE, 0.60, 0.14, 3),
    ("mammals/rodents/capybara", "Dune", WIDE, 0.85, 0.12, 5),
    ("mammals/bears/european-bear", "life", SQUARE, 0.85, 0.18, 5),
    ("mammals/bears/european-bear", "Dune", WIDE, 0.00, 0.19, 4),
    ("mammals/deer/doe", "life", TALL, 0.70, 0.12, 4),
    ("mammals/deer/doe", "Dune", SQUARE, 0.80, 0.11, 5),
    ("mammals/wildboar", "life", WIDE, 0.95, 0.13, 3),
    ("mammals/wildboar", "Dune", SQUARE, 0.60, 0.10, 2),
    ("mammals/cats/tiger", "life", SQUARE, 0.00, 0.10, 2),
    ("mammals/cats/tiger", "Dune", WIDE, 0.75, 0.12, 2),
    ("mammals/bovines/gnu-sitting", "Dune", SQUARE, 0.90, 0.12, 1),
    ("mammals/bovines/gnu-stand", "Dune", WIDE, 0.70, 0.16, 3),
)


def slug(name: str) -> str:
    """Return a species name as it stands in a file name."""
    return name.replace(" ", "-")


def species_of(split: str) -> dict[str, str]:
    """Return stamp → species for one split."""
    return {stamp: species for species, stamps in SPECIES[split].items() for stamp in stamps}


def plan_test() -> list[Scene]:
    """Return the 48 scenes that ship."""
    names = species_of("test")
    scenes = []
    for i, (stamp, background, (width, height), blend, coverage, seed) in enumerate(TEST_PLAN):
        species = names[stamp]
        stem = f"demo-test-{i:02d}-{slug(species)}"
        scenes.append(Scene(stem, "test", species, stamp, background, width, height, blend, coverage, seed, stem))
    return scenes


def plan_random(split: str, count: int, seed: int = 0) -> list[Scene]:
    """Return `count` scenes of the train or val split; every species comes once before any comes again."""
    digits = max(2, len(str(count - 1)))
    order: list[str] = []
    scenes = []
    rng = rng_for(seed, f"demo-{split}", "demo/plan")
    for i in range(count):
        if not order:
            order = [str(s) for s in rng.permutation(sorted(SPECIES[split]))]
        species = order.pop()
        stamp = str(rng.choice(SPECIES[split][species]))
        background = str(rng.choice(sorted(BACKGROUNDS[split])))
        width, height = (SQUARE, WIDE, TALL)[int(rng.integers(3))]
        blend = 0.0 if rng.random() < 0.15 else round(float(rng.uniform(0.55, 0.95)), 2)
        coverage = round(float(np.exp(rng.uniform(np.log(0.05), np.log(0.20)))), 3)
        stem = f"demo-{split}-{i:0{digits}d}-{slug(species)}"
        scenes.append(Scene(stem, split, species, stamp, background, width, height, blend, coverage, seed, stem))
    return scenes


def with_blends(scenes: Iterable[Scene], blends: Sequence[float]) -> list[Scene]:
    """Return each scene once per strength: the same animal at the same place, `-t50` appended to the stem."""
    return [replace(s, stem=f"{s.stem}-t{round(t * 100):02d}", blend=t) for s in scenes for t in blends]


# --- getting the photographs ----------------------------------------------------------------------------------


def fetch(package: Package, cache: Path) -> Path:
    """Return the package's .deb in `cache`, downloaded if absent and checked.

    Raises:
        MissingDependencyError: apt-get is absent or cannot get this version.
        InputError: the file is not the one this set was made from.
    """
    deb = cache / package.file
    if not deb.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        command = ["apt-get", "download", f"{package.name}={package.version}"]
        try:
            print(f"downloading {package.file}", file=sys.stderr)
            subprocess.run(command, cwd=cache, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
            raise MissingDependencyError(
                f"{' '.join(command)!r} failed ({reason}); get {package.file} from Debian 12 and put it into {cache}."
            ) from error
    digest = hashlib.sha256()
    with deb.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    found = digest.hexdigest()
    if found != package.sha256:
        raise InputError(
            f"{deb} has SHA-256 {found}, not {package.sha256}: it is damaged or another build; delete it and "
            f"get {package.name} {package.version} again."
        )
    return deb


class Photographs:
    """The files named in the tables, taken out of the packages once and kept in the cache."""

    def __init__(self, cache: Path, scenes: Iterable[Scene]) -> None:
        """Fetch what `scenes` need."""
        self._cache = cache
        wanted: dict[str, set[str]] = {}
        for scene in scenes:
            wanted.setdefault(STAMPS, set()).add(stamp_path(scene.stamp))
            background = BACKGROUNDS[scene.split][scene.background]
            wanted.setdefault(background.package, set()).add(background.path)
        for name, paths in sorted(wanted.items()):
            self._extract(PACKAGES[name], paths)
        self._backgrounds: dict[str, PIL.Image.Image] = {}

    def _place(self, package: Package, path: str) -> Path:
        return self._cache / "files" / f"{package.name}-{package.sha256[:12]}" / path

    def _extract(self, package: Package, paths: set[str]) -> None:
        missing = {p for p in paths if not self._place(package, p).is_file()}
        if not missing:
            return
        deb = fetch(package, self._cache)
        # streamed: only the named members are ever written, so nothing in a package chooses a path
        if shutil.which("dpkg-deb") is None:
            raise MissingDependencyError("dpkg-deb is needed to read the packages; install Debian's dpkg.")
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    name = member.name.removeprefix("./")
                    if name in missing and member.isfile():
                        content = archive.extractfile(member)
                        assert content is not None
                        write_atomic(self._place(package, name), content.read())
                        missing.discard(name)
        if missing:
            raise InputError(f"{package.file} lacks {', '.join(sorted(missing))}.")

    def stamp(self, name: str) -> PIL.Image.Image:
        """Return an animal as RGBA."""
        with PIL.Image.open(self._place(PACKAGES[STAMPS], stamp_path(name))) as picture:
            return picture.convert("RGBA")

    def background(self, background: Background) -> PIL.Image.Image:
        """Return the usable region of a scene as RGB."""
        if background.path not in self._backgrounds:
            with PIL.Image.open(self._place(PACKAGES[background.package], background.path)) as picture:
                left, top, right, bottom = background.region
                w, h = picture.size
                box = (round(left * w), round(top * h), round(right * w), round(bottom * h))
                self._backgrounds[background.path] = picture.convert("RGB").crop(box)
        return self._backgrounds[background.path]


def stamp_path(name: str) -> str:
    """Return the path of a stamp inside its package."""
    return f"{STAMP_ROOT}{name}.png"


# --- compositing ----------------------------------------------------------------------------------------------

# Luma and two color differences (BT.601): linear, so float64 gives the same 8-bit result everywhere, and close
# enough to an opponent space for moving means and spreads.
_TO_OPPONENT = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
_FROM_OPPONENT = np.linalg.inv(_TO_OPPONENT)


def to_opponent(rgb: Pixels) -> Pixels:
    """Return luma and two color differences of H×W×3 RGB (0..255)."""
    return np.asarray(rgb @ _TO_OPPONENT.T)


def from_opponent(opponent: Pixels) -> Pixels:
    """Invert `to_opponent`; values may leave 0..255."""
    return np.asarray(opponent @ _FROM_OPPONENT.T)


def blur(values: Pixels, sigma: float) -> Pixels:
    """Gaussian blur with mirrored borders; `sigma` in pixels."""
    return np.asarray(cv2.GaussianBlur(values, (0, 0), sigma, borderType=cv2.BORDER_REFLECT_101), np.float64)


def clean_edge(rgb: Pixels, alpha: Pixels, feather: float = 0.8) -> tuple[Pixels, Pixels]:
    """Return colors and alpha of a cut-out without the rim of its old background.

    Half-covered pixels take the color of the solid ones near them (where there are any: whiskers keep theirs),
    and alpha is feathered by `feather` px and drawn in by about half a pixel.
    """
    solid = np.asarray(cv2.erode((alpha > 0.97).astype(np.float64), np.ones((3, 3)), borderValue=0.0), np.float64)
    near = blur(solid, 1.5)
    inner = blur(rgb * solid[..., None], 1.5) / np.maximum(near, 1e-6)[..., None]
    trust = np.clip(near / 0.05, 0.0, 1.0) * (1.0 - solid)
    cleaned = rgb + trust[..., None] * (inner - rgb)
    softened = np.clip((blur(alpha, feather) - 0.5) * 1.25 + 0.38, 0.0, 1.0)
    softened[blur(alpha, feather) >= 0.999] = 1.0
    return cleaned, softened


def ring_around(mask: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Return the pixels at most `width` px from the mask, outside it and not touching it."""
    grown = cv2.dilate(mask.astype(np.uint8), cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * width + 1,) * 2))
    touching = cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8))
    return np.asarray((grown > 0) & (touching == 0))


def camouflage(animal: Pixels, alpha: Pixels, scene: Pixels, texture: Pixels, *, blend: float) -> Pixels:
    """Return the animal with its colors and texture drawn towards its surroundings.

    Args:
        animal: H×W×3 RGB, 0..255, already in place.
        alpha: H×W, 0..1.
        scene: H×W×3, the background.
        texture: H×W×3, another part of the same photograph. Taken from elsewhere so that the background's own
            lines do not run on through the animal, which would make it look transparent.
        blend: 0 returns `animal` unchanged; 1 replaces its mean and spread by those of the ring around it.
    """
    if blend == 0.0:
        return animal
    size = max(alpha.shape)
    mask = alpha > 0.5
    a, b, t = to_opponent(animal), to_opponent(scene), to_opponent(texture)
    ring = ring_around(mask, max(2, size // 16))
    mean_a, mean_b = a[mask].mean(0), b[ring].mean(0)
    gain = np.clip(b[ring].std(0) / np.maximum(a[mask].std(0), 1.0), 0.3, 1.5)

    # light and color of the place vary along a large animal: half of the target follows them
    outside = (~mask).astype(np.float64)
    weight = blur(outside, size / 10)[..., None]
    local = (blur(b * outside[..., None], size / 10) + 0.05 * mean_b) / (weight + 0.05)
    target = 0.5 * mean_b + 0.5 * local

    center = (1.0 - blend) * mean_a + blend * target
    own = (1.0 - blend) * (a - mean_a) + blend * gain * (a - mean_a)
    share = 0.55 * blend
    detail = t - blur(t, size / 20)
    most = 1.5 * detail[mask].std(0) + 1e-6
    detail = most * np.tanh(detail / most)  # no holes and no sparks
    return from_opponent(center + np.sqrt(1.0 - share**2) * own + share * detail)


def blades_in_front(scene: Pixels, alpha: Pixels, strength: float) -> Pixels:
    """Return H×W opacity, 0..1, of bright blades of the scene that stand before the animal's lower part."""
    if strength == 0.0:
        return np.zeros_like(alpha)
    rows = np.flatnonzero((alpha > 0.5).any(1))
    top, bottom = float(rows[0]), float(rows[-1])
    height = np.arange(alpha.shape[0])[:, None]
    ramp = np.clip((height - (top + 0.5 * (bottom - top))) / (0.5 * (bottom - top)), 0.0, 1.0)
    luma = blur(to_opponent(scene)[..., 0], 0.7)
    raised = luma - blur(luma, alpha.shape[0] / 24)
    # the share of the scene in front grows from nothing at half height to about four fifths at the feet
    above = np.clip((raised / max(raised.std(), 1.0) - (1.2 - 2.1 * ramp)) / 0.5, 0.0, 1.0)
    return np.asarray(strength * above * (ramp > 0))


def contact_shadow(alpha: Pixels) -> Pixels:
    """Return H×W factors, at most 1, that darken the ground below and beside the animal."""
    size = max(alpha.shape)
    rows = np.flatnonzero((alpha > 0.5).any(1))
    top, bottom = float(rows[0]), float(rows[-1])
    drop = max(1, size // 64)
    cast = np.vstack([np.zeros((drop, alpha.shape[1])), alpha[:-drop]])
    ramp = np.clip((np.arange(alpha.shape[0])[:, None] - top) / max(bottom - top, 1.0), 0.0, 1.0) ** 2
    return np.asarray(1.0 - 0.4 * blur(cast, size / 60) * ramp)


def compose(
    scene: Pixels, animal: Pixels, alpha: Pixels, texture: Pixels, grain: Pixels, *, blend: float, blades: float
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Set an animal into a scene.

    Args:
        scene, animal, texture: H×W×3 RGB, 0..255 (see `camouflage`).
        alpha: H×W, 0..1, the animal's opacity.
        grain: H×W, sensor-like noise in gray levels, added to everything.
        blend: 0..1, see `camouflage`; at 0 the animal's colors are those given.
        blades: 0..1, see `blades_in_front`.

    Returns:
        The image, uint8 H×W×3, and the mask, bool H×W: where the animal's visible opacity is above one half.
    """
    visible = alpha * (1.0 - blades_in_front(scene, alpha, blades))
    mixed = camouflage(animal, alpha, scene, texture, blend=blend)
    ground = scene * contact_shadow(alpha)[..., None]
    image = ground + visible[..., None] * (mixed - ground) + grain[..., None]
    return np.clip(np.rint(image), 0, 255).astype(np.uint8), visible > 0.5


def crop_of(rng: np.random.Generator, picture: PIL.Image.Image, scene: Scene) -> tuple[int, int, int, int]:
    """Draw a crop with the scene's proportions, 45–95% of the largest that fits: x, y, width, height."""
    w, h = picture.size
    largest = min(w / scene.width, h / scene.height)
    # enlarge the background at most 1.25 times: an animal sharper than its surroundings gives itself away
    least = min(1.0, 0.8 / largest)
    scale = largest * float(rng.uniform(max(0.45, least), max(0.95, least)))
    cw, ch = min(w, round(scale * scene.width)), min(h, round(scale * scene.height))
    return int(rng.integers(w - cw + 1)), int(rng.integers(h - ch + 1)), cw, ch


def cut(picture: PIL.Image.Image, box: tuple[int, int, int, int], scene: Scene, mirror: bool) -> Pixels:
    """Return a crop at the scene's size as float64."""
    x, y, w, h = box
    part = picture.resize((scene.width, scene.height), PIL.Image.Resampling.LANCZOS, box=(x, y, x + w, y + h))
    values = np.asarray(part, np.float64)
    return values[:, ::-1].copy() if mirror else values


MAX_ENLARGEMENT = 1.7
MARGIN = 6


def cut_out(stamp: PIL.Image.Image, scene: Scene, *, mirror: bool, angle: float) -> tuple[Pixels, float]:
    """Return the turned and scaled animal as H×W×4 (0..255) and the scale used."""
    box = stamp.getchannel("A").point([0] * 17 + [255] * 239).getbbox()
    animal = stamp.crop(box)
    if mirror:
        animal = animal.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)
    animal = animal.rotate(angle, PIL.Image.Resampling.BICUBIC, expand=True)
    animal = animal.crop(animal.getchannel("A").point([0] * 17 + [255] * 239).getbbox())
    area = np.count_nonzero(np.asarray(animal.getchannel("A")) > 127)
    scale = min(
        float(np.sqrt(scene.coverage * scene.width * scene.height / area)),
        MAX_ENLARGEMENT,
        (scene.width - 2 * MARGIN) / animal.width,
        (scene.height - 2 * MARGIN) / animal.height,
    )
    size = (max(1, round(animal.width * scale)), max(1, round(animal.height * scale)))
    return np.asarray(animal.resize(size, PIL.Image.Resampling.LANCZOS), np.float64), scale


@dataclass(frozen=True)
class Composite:
    """A finished scene and how it came about."""

    image: NDArray[np.uint8]
    mask: NDArray[np.bool_]
    placement: dict[str, object]


# Animals that stand on the ground tilt little; what clings to bark or swims may turn.
_TURNS = ("amphibians", "fish", "insects", "lizards", "shellfish")


def build(scene: Scene, photographs: Photographs) -> Composite:
    """Compose one scene; depends on the scene's fields and nothing else."""
    rng = rng_for(scene.seed, scene.series, "demo/composite")
    background = BACKGROUNDS[scene.split][scene.background]
    picture = photographs.background(background)
    box, flipped = crop_of(rng, picture, scene), bool(rng.integers(2))
    ground = cut(picture, box, scene, flipped)

    limit = 12.0 if scene.stamp.startswith(_TURNS) else 5.0
    mirror, angle = bool(rng.integers(2)), round(float(rng.uniform(-limit, limit)), 1)
    stamp, scale = cut_out(photographs.stamp(scene.stamp), scene, mirror=mirror, angle=angle)
    h, w = stamp.shape[:2]

    # An animal chooses where it rests: of twelve places, the one nearest to its own colors.
    low, high = max(MARGIN, round(0.6 * scene.height) - h), scene.height - MARGIN - h
    places = [
        (int(rng.integers(MARGIN, scene.width - MARGIN - w + 1)), int(rng.integers(low, high + 1))) for _ in range(12)
    ]
    own = to_opponent(stamp[..., :3])[stamp[..., 3] > 127].mean(0)
    opponent = to_opponent(ground)
    misfits = [float(np.abs(opponent[y : y + h, x : x + w].mean((0, 1)) - own).sum()) for x, y in places]
    x, y = places[int(np.argmin(misfits))]

    animal, alpha = np.zeros_like(ground), np.zeros(ground.shape[:2])
    animal[y : y + h, x : x + w] = stamp[..., :3]
    alpha[y : y + h, x : x + w] = stamp[..., 3] / 255.0
    animal, alpha = clean_edge(animal, alpha)

    # The texture comes from another crop at about the same magnification; of eight, the likest to the ring.
    ring = ring_around(alpha > 0.5, max(2, max(scene.width, scene.height) // 16))
    wanted = np.concatenate([opponent[ring].mean(0), opponent[ring].std(0)])
    textures = []
    for _ in range(8):
        tx, ty = int(rng.integers(picture.width - box[2] + 1)), int(rng.integers(picture.height - box[3] + 1))
        candidate = cut(picture, (tx, ty, box[2], box[3]), scene, bool(rng.integers(2)) != flipped)
        part = to_opponent(candidate)[alpha > 0.5]
        textures.append((float(np.abs(np.concatenate([part.mean(0), part.std(0)]) - wanted).sum()), candidate))
    texture = min(textures, key=lambda pair: pair[0])[1]

    grain = rng.normal(0.0, 1.5, alpha.shape)
    image, mask = compose(ground, animal, alpha, texture, grain, blend=scene.blend, blades=background.blades)
    return Composite(
        image,
        mask,
        {
            "bbox": [x, y, w, h],
            "scale": round(scale, 4),
            "angle": angle,
            "mirrored": mirror,
            "background_crop": list(box),
            "background_mirrored": flipped,
        },
    )


# --- writing --------------------------------------------------------------------------------------------------

QUALITY = 92


def encode_jpeg(image: NDArray[np.uint8]) -> bytes:
    """Return JPEG bytes (quality 92, 4:2:0)."""
    buffer = io.BytesIO()
    PIL.Image.fromarray(image).save(buffer, "JPEG", quality=QUALITY, subsampling=2, optimize=True)
    return buffer.getvalue()


def encode_mask(mask: NDArray[np.bool_]) -> bytes:
    """Return PNG bytes of 0 and 255."""
    buffer = io.BytesIO()
    PIL.Image.fromarray(mask.astype(np.uint8) * 255).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def annotate(scenes: Sequence[Scene], photographs: Photographs) -> Iterator[tuple[Scene, bytes, bytes, Row, Row]]:
    """Build each scene: the scene, its JPEG, its mask as PNG, its image row and its annotation row."""
    categories = {name: i for i, name in enumerate(sorted({s.species for s in scenes}), 1)}
    for i, scene in enumerate(scenes, 1):
        done = build(scene, photographs)
        jpeg, png = encode_jpeg(done.image), encode_mask(done.mask)
        background = BACKGROUNDS[scene.split][scene.background]
        ys, xs = np.nonzero(done.mask)
        box = [int(xs.min()), int(ys.min()), int(np.ptp(xs)) + 1, int(np.ptp(ys)) + 1]
        image = {
            "id": i,
            "file_name": f"{scene.stem}.jpg",
            "width": scene.width,
            "height": scene.height,
            "license": 2 if background.license == "LGPL-3.0-only" else 1,
            "split": scene.split,
            "species": scene.species,
            "blend": scene.blend,
            "seed": scene.seed,
            "series": scene.series,
            "background": {
                "name": scene.background,
                "package": background.package,
                "file": background.path,
                "author": background.author,
                "license": background.license,
            },
            "stamp": {
                "name": scene.stamp,
                "package": STAMPS,
                "file": stamp_path(scene.stamp),
                "author": CREDITS.get(scene.stamp, "Tux Paint contributors"),
                "license": "GPL-2.0-or-later",
            },
            "placement": done.placement,
            "sha256": sha256(jpeg),
            "pixels_sha256": sha256(done.image.tobytes()),
        }
        annotation = {
            "id": i,
            "image_id": i,
            "category_id": categories[scene.species],
            "bbox": box,
            "area": int(done.mask.sum()),
            "iscrowd": 0,
            "mask_file": f"{scene.stem}.png",
            "sha256": sha256(png),
            "pixels_sha256": sha256(done.mask.astype(np.uint8).tobytes()),
        }
        yield scene, jpeg, png, image, annotation


def write_set(scenes: Sequence[Scene], photographs: Photographs, out: Path) -> None:
    """Write images, masks, annotations.json and README.md into `out`, and LICENSE if it has none."""
    images, annotations = [], []
    for scene, jpeg, png, image, annotation in annotate(scenes, photographs):
        write_atomic(out / "images" / f"{scene.stem}.jpg", jpeg)
        write_atomic(out / "masks" / f"{scene.stem}.png", png)
        images.append(image)
        annotations.append(annotation)
    species = sorted({s.species for s in scenes})
    document = {
        "info": {
            "description": "Crypsis demo set: animals composited into natural scenes, with exact masks.",
            "made_by": "scripts/build_demo_set.py",
            "made_with": versions(),
        },
        "licenses": [
            {"id": i, "name": name, "url": "https://www.gnu.org/licenses/gpl-3.0.html"}
            for i, name in ((1, "GPL-3.0-or-later"), (2, "GPL-3.0-only"))
            if any(image["license"] == i for image in images)
        ],
        "images": images,
        "annotations": annotations,
        "categories": [{"id": i, "name": name, "supercategory": "animal"} for i, name in enumerate(species, 1)],
    }
    write_atomic(out / "annotations.json", (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
    write_atomic(out / "README.md", readme(images).encode())
    if not (out / "LICENSE").exists():
        write_atomic(out / "LICENSE", (SHIPPED / "LICENSE").read_bytes())


def refuse_strangers(scenes: Sequence[Scene], out: Path) -> None:
    """Refuse a folder with composites that are not part of this build: the set would not be what it says."""
    stems = {s.stem for s in scenes}
    for folder in ("images", "masks"):
        for path in sorted((out / folder).glob("*")):
            if path.stem not in stems:
                raise InputError(f"{path} is not part of this build; give another --out or delete {out} first.")


_README = """\
# Crypsis demo set

{count} composites: photographs of animals (Tux Paint stamps) set into photographs of natural
scenes, with their colors and texture drawn towards the surroundings. `images/*.jpg`, `masks/*.png` (255 is the
animal, exact by construction), `annotations.json` (COCO form, species as category; per image also the blending
strength, sources, placement, seed and checksums). Made by `scripts/build_demo_set.py`; do not edit by hand.

Blending strength: 0 is pasted as it is, 0.55 to 0.95 is camouflaged.

## License

**These pictures, masks and annotations are licensed under {license}** (`LICENSE` in this folder), because
they are derived from works under GPL-2.0-or-later. The code of Crypsis is licensed under Apache-2.0; it only
reads these files. To use Crypsis without them, delete this folder: nothing but the data set `demo` needs it.

Changes made to the originals: cropped, resized, mirrored, turned, recolored, composited, noise added.
Stamps are from the Debian package `{stamps} {stamps_version}` (Copyright 2002-2022 Bill Kendrick and
contributors; credits as given in its changelog). Scenes are from:

| scene | author | license | Debian package | file |
|---|---|---|---|---|
{scenes}

CC-BY-4.0: <https://creativecommons.org/licenses/by/4.0/>. GPL: <https://www.gnu.org/licenses/>.

## Attribution of each image

| image | species | blend | animal: stamp | by | scene | by | scene license |
|---|---|---|---|---|---|---|---|
{rows}
"""


def readme(images: Sequence[Row]) -> str:
    """Return the set's README.md, with the origin of every image."""
    scenes = {}
    rows = []
    for image in images:
        b, s = image["background"], image["stamp"]
        version = PACKAGES[b["package"]].version
        scenes[b["name"]] = (
            f"| {b['name']} | {b['author']} | {b['license']} | {b['package']} {version} | `{b['file']}` |"
        )
        rows.append(
            f"| {image['file_name']} | {image['species']} | {image['blend']:.2f} | {s['name']} | {s['author']} "
            f"| {b['name']} | {b['author']} | {b['license']} |"
        )
    parts = {b.license for b in (BACKGROUNDS[i["split"]][i["background"]["name"]] for i in images)}
    only = " (composites with an LGPL-3.0-only scene: GPL-3.0-only)" if "LGPL-3.0-only" in parts else ""
    return _README.format(
        license="GPL-3.0-or-later" + only,
        count=len(images),
        stamps=STAMPS,
        stamps_version=PACKAGES[STAMPS].version,
        scenes="\n".join(scenes[name] for name in sorted(scenes)),
        rows="\n".join(rows),
    )


def check_set(scenes: Sequence[Scene], photographs: Photographs, shipped: Path) -> list[str]:
    """Rebuild in memory; return one sentence for each difference from the folder `shipped`."""
    path = shipped / "annotations.json"
    if not path.is_file():
        raise InputError(f"{path} does not exist: there is no demo set to compare with.")
    document = json.loads(path.read_text(encoding="utf-8"))
    known = {row["file_name"]: row for row in document["images"]}
    masks = {row["mask_file"]: row for row in document["annotations"]}
    differences = [f"{name}: not in the plan" for name in sorted(known.keys() - {f"{s.stem}.jpg" for s in scenes})]
    for _, _, _, image, annotation in annotate(scenes, photographs):
        if image["file_name"] not in known:
            differences.append(f"{image['file_name']}: not in {shipped / 'annotations.json'}")
            continue
        for row, now, path in (
            (known[image["file_name"]], image, shipped / "images" / image["file_name"]),
            (masks[annotation["mask_file"]], annotation, shipped / "masks" / annotation["mask_file"]),
        ):
            if row["pixels_sha256"] != now["pixels_sha256"]:
                differences.append(f"{path.name}: composed pixels differ")
            elif row["sha256"] != now["sha256"]:
                differences.append(f"{path.name}: same pixels, coded to other bytes (another codec version)")
            if not path.is_file():
                differences.append(f"{path.name}: missing")
            elif sha256(path.read_bytes()) != row["sha256"]:
                differences.append(f"{path.name}: the file is not the one annotations.json describes")
    return differences


def versions() -> dict[str, str]:
    """Return the versions of the libraries the bytes depend on."""
    return {"numpy": np.__version__, "opencv": cv2.__version__, "pillow": PIL.__version__}


def warn_versions() -> None:
    """Say so when the libraries are not those the set was made with."""
    other = [f"{k} {v} (made with {MADE_WITH[k]})" for k, v in versions().items() if v != MADE_WITH[k]]
    if other:
        print(f"note: {', '.join(other)}: file bytes may differ from the shipped ones.", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--split", choices=("test", "train", "val"), default="test")
    parser.add_argument("--count", type=int, help="composites of the train or val split (default 240 or 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the train or val split (default 0)")
    parser.add_argument("--blend", type=float, nargs="+", metavar="T", help="each scene once per strength, 0..1")
    parser.add_argument("--out", type=Path, help="folder to write; the package's own for the test split")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"folder of the packages (default {CACHE})")
    parser.add_argument("--check", action="store_true", help="rebuild, compare with --out, write nothing")
    options = parser.parse_args(argv)

    if options.split == "test":
        if options.count is not None or options.seed:
            parser.error("--count and --seed belong to --split train or val; the test split is a fixed table")
        scenes = plan_test()
    else:
        count = {"train": 240, "val": 60}[options.split] if options.count is None else options.count
        if count < 1:
            parser.error("--count must be at least 1")
        scenes = plan_random(options.split, count, options.seed)
    if options.blend is not None:
        if not all(0.0 <= t <= 1.0 for t in options.blend):
            parser.error("--blend takes strengths from 0 to 1")
        scenes = with_blends(scenes, options.blend)
    if options.out is None:
        if options.split != "test" or options.blend is not None:
            parser.error("--out FOLDER is needed: only the plain test split has a place in the package")
        options.out = SHIPPED

    warn_versions()
    try:
        photographs = Photographs(options.cache.expanduser(), scenes)
        if options.check:
            differences = check_set(scenes, photographs, options.out)
            print("\n".join(differences) or f"{len(scenes)} composites: no difference from {options.out}")
            return 3 if differences else 0
        refuse_strangers(scenes, options.out)
        write_set(scenes, photographs, options.out)
    except CrypsisError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{len(scenes)} composites in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
