from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crypsis.datasets.naming import COD10K_SPECIES, Cod10kName, parse_cod10k_name


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("COD10K-CAM-1-Aquatic-1-BatFish-2", Cod10kName(True, "Aquatic", 1, "bat fish", 2)),
        ("COD10K-CAM-1-Aquatic-3-Crab-32", Cod10kName(True, "Aquatic", 3, "crab", 32)),
        ("COD10K-CAM-2-Terrestrial-23-Cat-1506", Cod10kName(True, "Terrestrial", 23, "cat", 1506)),
        ("COD10K-CAM-2-Terrestrial-41-Reccoon-1", Cod10kName(True, "Terrestrial", 41, "raccoon", 1)),
        ("COD10K-CAM-4-Amphibian-67-Frog-7", Cod10kName(True, "Amphibian", 67, "frog", 7)),
        ("COD10K-CAM-5-Other-69-Other-5066", Cod10kName(True, "Other", 69, "other", 5066)),
        ("cod10k-cam-3-flying-65-owl-4", Cod10kName(True, "Flying", 65, "owl", 4)),
        # the number decides, not the spelling
        ("COD10K-CAM-1-Aquatic-1-Zebra-2", Cod10kName(True, "Aquatic", 1, "bat fish", 2)),
        # no such number: the name's own spelling
        ("COD10K-CAM-1-Aquatic-70-SeaCow-2", Cod10kName(True, "Aquatic", None, "sea cow", 2)),
        ("COD10K-CAM-1-Aquatic-x-SeaCow-2", Cod10kName(True, "Aquatic", None, "sea cow", 2)),
        # names without a camouflaged object keep to no grammar and have no species
        ("COD10K-NonCAM-1-Amphibian-3", Cod10kName(False, "Amphibian", None, None, 3)),
        ("COD10K-NonCAM-3-Flying-1515", Cod10kName(False, "Flying", None, None, 1515)),
        ("COD10K-NonCAM-5-Background-5-Vegetation-4854", Cod10kName(False, "Background", None, None, 4854)),
        # too few or too many parts
        ("COD10K-CAM-1-Aquatic", Cod10kName(True, "Aquatic")),
        ("COD10K-CAM-1-Aquatic-1-Bat-Fish-2", Cod10kName(True, "Aquatic", None, None, 2)),
        ("COD10K-CAM-1", Cod10kName(True, None, None, None, 1)),
        ("COD10K-CAM-1-Aquatic-1-BatFish-", Cod10kName(True, "Aquatic", 1, "bat fish", None)),
        ("COD10K-CAM-1-Aquatic-²-BatFish-٣", Cod10kName(True, "Aquatic", None, "bat fish", None)),
        ("COD10K-CAM-", None),
        ("COD10K", None),
        ("camourflage_00001", None),
        ("animal-1", None),
        ("", None),
    ],
)
def test_names(stem: str, expected: Cod10kName | None) -> None:
    assert parse_cod10k_name(stem) == expected


def test_species_table() -> None:
    assert len(COD10K_SPECIES) == len(set(COD10K_SPECIES)) == 69
    by_number = {1: "bat fish", 16: "shrimp", 21: "ant", 33: "grouse", 49: "worm", 50: "bat", 66: "owlfly", 68: "toad"}
    assert {n: COD10K_SPECIES[n - 1] for n in by_number} == by_number
    assert all(name == name.lower().strip() for name in COD10K_SPECIES)


@given(st.one_of(st.text(), st.text(alphabet="-0123456789AaZzé²\n\0").map(lambda t: f"COD10K-CAM-{t}")))
@example("COD10K-CAM-1-Aquatic-" + "9" * 5000 + "-BatFish-" + "9" * 5000)
@example("COD10K-CAM-\ud800-\udcff-1-x-1")
@settings(deadline=None, max_examples=300)
def test_never_raises(stem: str) -> None:
    name = parse_cod10k_name(stem)
    if name is not None and name.species_id is not None:
        assert name.species == COD10K_SPECIES[name.species_id - 1]
