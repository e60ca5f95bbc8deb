"""Every expected number is worked out by hand beside it; logits are ln(p / (1 − p)) of simple probabilities."""

from __future__ import annotations

from math import log

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from crypsis.training.losses import (  # noqa: E402
    WEIGHTS,
    boundary_loss,
    boundary_map,
    consistency_loss,
    segmentation_loss,
    total_loss,
    uncertainty_loss,
)

THREE, ZERO, LOW = log(3), 0.0, -log(3)  # of the probabilities 3/4, 1/2, 1/4


def maps(*values: float, rows: int = 1) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32).reshape(1, 1, rows, -1)


def test_segmentation_is_cross_entropy_plus_dice() -> None:
    # cross-entropy: -ln 3/4 for the object's pixel, -ln 1/2 for the other, halved
    entropy = (log(4 / 3) + log(2)) / 2
    # Dice: twice the 3/4 that lie on the object, plus 1; below the line, 3/4 + 1/2 and the mask's 1, plus 1
    dice = 1 - (2 * 0.75 + 1) / (1.25 + 1 + 1)
    assert segmentation_loss(maps(THREE, ZERO), maps(1, 0)).item() == pytest.approx(entropy + dice, rel=1e-6)


def test_dice_is_of_each_image() -> None:
    # the first image: 1 - (2·1/2 + 1) / (1 + 1 + 1) = 1/3; the second, without object: 1 - 1 / (1 + 0 + 1) = 1/2
    logits = torch.zeros(2, 1, 1, 2)
    mask = torch.tensor([1.0, 0.0, 0.0, 0.0]).reshape(2, 1, 1, 2)
    expected = log(2) + (1 / 3 + 1 / 2) / 2
    assert segmentation_loss(logits, mask).item() == pytest.approx(expected, rel=1e-6)


def test_a_right_and_sure_map_costs_nothing() -> None:
    mask = maps(1, 0, 0, 1, rows=2)
    assert segmentation_loss(40 * (2 * mask - 1), mask).item() < 1e-6
    assert boundary_loss(40 * (2 * mask - 1), mask).item() < 1e-6


def test_boundary_map_is_dilation_minus_erosion() -> None:
    values = torch.zeros(1, 1, 9, 9)
    values[..., 4:] = 1
    found = boundary_map(values)
    # an edge between columns 3 and 4: of 5 columns around, both sides are seen from columns 2 to 5
    expected = torch.zeros(1, 1, 9, 9)
    expected[..., 2:6] = 1
    assert torch.equal(found, expected)
    assert boundary_map(values, kernel=3).sum().item() == 9 * 2
    assert boundary_map(torch.full((1, 1, 9, 9), 0.7)).abs().max().item() == 0  # nor at the image's border


def test_boundary_is_l1() -> None:
    # 1×6 pixels, k = 5. Mask 0 0 0 0 0 1: boundary from column 3 on: 0 0 0 1 1 1.
    # Map 1/2 … 1/2 3/4: boundary 0 0 0 1/4 1/4 1/4. Three differences of 3/4 in six pixels.
    logits = maps(*[ZERO] * 5, THREE)
    assert boundary_loss(logits, maps(0, 0, 0, 0, 0, 1)).item() == pytest.approx(3 * 0.75 / 6, rel=1e-6)


def test_uncertainty_learns_the_error_and_not_the_map() -> None:
    # errors |3/4 - 1| = 1/4 and |1/2 - 0| = 1/2; û says 3/4 and 1/2:
    # -(1/4 ln 3/4 + 3/4 ln 1/4) and ln 2, halved
    expected = (0.25 * log(4 / 3) + 0.75 * log(4) + log(2)) / 2
    logits, uncertainty = maps(THREE, ZERO).requires_grad_(), maps(THREE, ZERO).requires_grad_()
    loss = uncertainty_loss(uncertainty, logits, maps(1, 0))
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    loss.backward()
    assert logits.grad is None
    # the gradient of such a cross-entropy is (σ(û) - error) / pixels
    assert uncertainty.grad.ravel().tolist() == pytest.approx([(0.75 - 0.25) / 2, 0.0])


def test_consistency_is_weighted_by_reliability() -> None:
    # |3/4 - 1/4| times 1 - 3/4, and |1/2 - 3/4| times 1 - 1/4, halved
    expected = (0.5 * 0.25 + 0.25 * 0.75) / 2
    clean, corrupted, uncertainty = (
        maps(*values).requires_grad_() for values in ((THREE, ZERO), (LOW, THREE), (THREE, LOW))
    )
    loss = consistency_loss(clean, corrupted, uncertainty)
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    loss.backward()
    assert uncertainty.grad is None
    # σ' = 3/16 at 3/4; the first pixel pulls the clean view down and the corrupted one up, by its reliability / pixels
    assert clean.grad.ravel()[0].item() == pytest.approx(3 / 16 * 0.25 / 2)
    assert corrupted.grad.ravel()[0].item() == pytest.approx(-3 / 16 * 0.25 / 2)


def test_total_is_equation_6() -> None:
    terms = {name: torch.tensor(float(value)) for name, value in zip(WEIGHTS, (3, 5, 7, 11, 13), strict=True)}
    assert list(terms) == ["clean", "corrupted", "boundary", "uncertainty", "consistency"]
    # 1·3 + 0.5·5 + 0.2·7 + 0.1·11 + 0.2·13
    assert total_loss(terms).item() == pytest.approx(10.6)
    del terms["uncertainty"], terms["consistency"]
    assert total_loss(terms).item() == pytest.approx(6.9)
