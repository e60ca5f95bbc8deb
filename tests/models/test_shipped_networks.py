"""The RobustCODLite weights that come with the package: they load, and see more than the floor."""

from __future__ import annotations

import hashlib
from importlib import resources

import numpy as np
import pytest

from crypsis.datasets.masks import open_masks
from crypsis.environment import WEIGHTS
from crypsis.metrics.segmentation import MaskTruth, score_mask
from crypsis.models.segmenter import Segmenter, load_model

FILES = [name for name in WEIGHTS if name.startswith("robust_cod_lite/")]


def test_the_files_are_those_that_are_described() -> None:
    folder = resources.files("crypsis") / "data"
    card = (folder / "robust_cod_lite" / "README.md").read_text("utf-8")
    assert len(FILES) == 2
    for name in FILES:
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert digest == WEIGHTS[name]
        assert digest in card


@pytest.mark.parametrize("name", FILES)
def test_they_beat_the_floor(name: str) -> None:
    dataset = open_masks("demo")
    samples = [dataset.load(item) for item in dataset.items[::6]]

    def dice(spec: str) -> float:
        model = load_model(spec)
        assert isinstance(model, Segmenter)
        found = model.predict([sample.image for sample in samples])
        each = zip(found, samples, strict=True)
        return float(np.mean([score_mask(p.probability, MaskTruth(s.mask)).dice for p, s in each]))

    with resources.as_file(resources.files("crypsis") / "data" / name) as path:
        assert dice(f"robust-cod-lite:{path}") > dice("saliency") + 0.15
