from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from compared_reference import check_keys, check_outputs  # noqa: E402

from crypsis.models.compared import build_network  # noqa: E402


@pytest.mark.parametrize("kind", ["dgnet", "dgnet-s"])
def test_names_and_shapes_are_those_of_the_published_weights(kind: str) -> None:
    check_keys(kind)


@pytest.mark.parametrize("kind", ["dgnet", "dgnet-s"])
def test_outputs_are_those_of_the_official_network(kind: str) -> None:
    check_outputs(kind)


@pytest.mark.parametrize(
    ("kind", "padded"),
    [
        ("dgnet", {"stem": (0, 1), 2: (0, 1), 6: (2, 2), 10: (0, 1), 22: (1, 2)}),
        ("dgnet-s", {"stem": (0, 1), 2: (0, 1), 5: (1, 2), 8: (0, 1), 16: (2, 2)}),
    ],
)
def test_padding_before_and_behind_is_that_of_the_nominal_size(kind: str, padded: dict) -> None:
    encoder = build_network(kind, device="meta").context_encoder
    convolutions = {"stem": encoder._conv_stem} | {i: b._depthwise_conv for i, b in enumerate(encoder._blocks)}
    found = {}
    for name, convolution in convolutions.items():
        left, right, top, bottom = convolution.around
        assert (left, right) == (top, bottom)
        if convolution.stride[0] == 2:
            inside = convolution.padding[0]
            found[name] = (left + inside, right + inside)
        else:
            assert convolution.padding[0] == convolution.kernel_size[0] // 2
            assert not left
            assert not right
    assert found == padded
