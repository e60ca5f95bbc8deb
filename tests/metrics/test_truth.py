from __future__ import annotations

import numpy as np
import pytest

from crypsis.errors import ImageError
from crypsis.metrics import boundary, structure
from crypsis.metrics.segmentation import MaskTruth, score_mask


def test_everything_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for owner in (structure.Quadrants, structure.ErrorWeights, boundary.BoundaryTruth):
        real = owner.of

        def counted(*args: object, _real=real, _name=owner.__name__, **kwargs: object) -> object:
            calls.append(_name)
            return _real(*args, **kwargs)

        monkeypatch.setattr(owner, "of", counted)
    rng = np.random.default_rng(0)
    truth = MaskTruth(rng.random((20, 30)) < 0.3)
    for _ in range(41):
        score_mask(rng.random((20, 30), np.float32), truth)
    assert sorted(calls) == ["BoundaryTruth", "ErrorWeights", "Quadrants"]


def test_the_mask_is_a_copy_that_cannot_be_changed() -> None:
    mask = np.zeros((6, 8), bool)
    mask[2:4, 2:5] = True
    truth = MaskTruth(mask)
    mask[:] = True
    assert truth.mask.sum() == truth.foreground == 6
    with pytest.raises(ValueError, match="read-only"):
        truth.mask[0, 0] = True


@pytest.mark.parametrize(
    "mask", [np.zeros((4, 5), np.uint8), np.zeros((4, 5, 1), bool), np.zeros((0, 5), bool), [[True]]]
)
def test_other_masks_are_refused(mask: object) -> None:
    with pytest.raises(ImageError, match="A true mask is a bool array"):
        MaskTruth(mask)
