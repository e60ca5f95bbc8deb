"""COCO's text of run lengths."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.run_lengths import pack_counts, unpack_counts


@given(st.lists(st.integers(0, 10**9), max_size=30))
@settings(deadline=None, max_examples=200)
def test_what_is_packed_is_unpacked(counts: list[int]) -> None:
    assert unpack_counts(pack_counts(counts)) == counts


def test_known_text() -> None:
    pytest.importorskip("pycocotools")
    from pycocotools import mask

    counts = [3, 40, 5, 1000, 7, 2, 543]
    written = mask.frPyObjects({"size": [40, 40], "counts": counts}, 40, 40)["counts"]
    assert pack_counts(counts) == written.decode()
    assert unpack_counts(written.decode()) == counts


@pytest.mark.parametrize(
    ("text", "message"), [("\x1f", "not COCO's"), ("é", "not COCO's"), ("P" * 20, "not COCO's"), ("5P", "ends within")]
)
def test_text_of_another_form(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpack_counts(text)
