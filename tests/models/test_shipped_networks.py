"""The RobustCODLite weights that come with the package: they load, and see more than the floor."""

from __future__ import annotations

import hashlib
from importlib import resources

import numpy as np
import pytest

from crypsis.datasets.masks import open_masks
from crypsis.environment import WEIGHTS
from crypsis.errors import ModelError
from crypsis.metrics.segmentation import MaskTruth, score_mask
from crypsis.models.segmenter import Segmenter, load_model

FILES = [name for name in WEIGHTS if name.startswith("robust_cod_lite/")]
SPECIFICATIONS = ["robust-cod-lite", "robust-cod-lite:no-augmentation"]


def test_the_files_are_those_that_are_described() -> None:
    folder = resources.files("crypsis") / "data"
    card = (folder / "robust_cod_lite" / "README.md").read_text("utf-8")
    assert len(FILES) == 2
    for name in FILES:
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert digest == WEIGHTS[name]
        assert digest in card


@pytest.mark.parametrize("spec", SPECIFICATIONS)
def test_they_beat_the_floor(spec: str) -> None:
    dataset = open_masks("demo")
    samples = [dataset.load(item) for item in dataset.items[::6]]

    def dice(spec: str) -> float:
        model = load_model(spec)
        assert isinstance(model, Segmenter)
        found = model.predict([sample.image for sample in samples])
        each = zip(found, samples, strict=True)
        return float(np.mean([score_mask(p.probability, MaskTruth(s.mask)).dice for p, s in each]))

    assert dice(spec) > dice("saliency") + 0.15


def test_each_is_reached_by_name() -> None:
    models = [load_model(spec) for spec in SPECIFICATIONS]
    assert [model.name for model in models] == ["robust-cod-lite", "robust-cod-lite-no-augmentation"]
    assert [model.describe()["sha256"] for model in models] == [WEIGHTS[name] for name in FILES]
    assert load_model("robust-cod-lite:no-augmentation,name=mine").name == "mine"
    with pytest.raises(ModelError, match=r"one of its own by name: no-augmentation\."):
        load_model("robust-cod-lite:no-augment")
