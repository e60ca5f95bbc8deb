from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from compared_reference import check_keys, check_outputs  # noqa: E402


def test_names_and_shapes_are_those_of_the_published_weights() -> None:
    check_keys("sinet-v2")


def test_outputs_are_those_of_the_official_network() -> None:
    check_outputs("sinet-v2")
