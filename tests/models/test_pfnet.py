from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from compared_reference import check_keys, check_outputs  # noqa: E402

from crypsis.models.compared import build_network  # noqa: E402


def test_names_and_shapes_are_those_of_the_published_weights() -> None:
    check_keys("pfnet")


def test_outputs_are_those_of_the_official_network() -> None:
    check_outputs("pfnet")


def test_maps_are_logits_while_it_is_trained() -> None:
    network = build_network("pfnet").eval()
    images = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        probabilities = network(images)
        network.training = True  # its parts still infer
        logits = network(images)
    for probability, logit in zip(probabilities, logits, strict=True):
        assert torch.equal(probability, logit.sigmoid())
