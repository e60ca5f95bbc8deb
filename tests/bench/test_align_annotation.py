"""COCO annotations that move along with the content."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from crypsis.bench.annotations import AnnotationWriter, align_annotation
from crypsis.catalog.aligned import warp_mask
from crypsis.datasets.coco import decode_rle, encode_rle
from crypsis.errors import DatasetError
from moving_entries import grid, shift_field, wobble_field

FIELD = shift_field(40, 60, right=4, down=-3)
SQUARE = [10.0, 10.0, 20.0, 10.0, 20.0, 25.0, 10.0, 25.0]


def annotation(**parts: Any) -> dict[str, Any]:
    return {"id": 5, "image_id": 1, "category_id": 2, "iscrowd": 0, "area": 150, "bbox": [10, 10, 10, 15], **parts}


def test_a_shift_moves_everything() -> None:
    given = annotation(segmentation=[SQUARE], keypoints=[12, 12, 2, 0, 0, 0, 58, 20, 1], num_keypoints=2, extra="kept")
    before = json.dumps(given)
    moved = align_annotation(given, FIELD)
    assert moved is not None
    assert json.dumps(given) == before
    assert moved["segmentation"] == [[14.0, 7.0, 24.0, 7.0, 24.0, 22.0, 14.0, 22.0]]
    assert moved["bbox"] == [14.0, 7.0, 10.0, 15.0]
    assert moved["area"] == pytest.approx(150)
    assert moved["keypoints"] == [16.0, 9.0, 2, 0.0, 0.0, 0, 0.0, 0.0, 0]
    assert moved["num_keypoints"] == 1
    assert {name: moved[name] for name in ("id", "image_id", "category_id", "iscrowd", "extra")} == {
        "id": 5, "image_id": 1, "category_id": 2, "iscrowd": 0, "extra": "kept",
    }  # fmt: skip
    assert json.loads(json.dumps(moved)) == moved


@pytest.mark.parametrize("segmentation", [{}, {"segmentation": []}, {"segmentation": [SQUARE]}])
def test_no_displacement_changes_no_number(segmentation: dict[str, Any]) -> None:
    given = annotation(**segmentation)
    moved = align_annotation(given, grid(40, 60))
    assert moved == given


@pytest.mark.parametrize("compressed", [True, False])
def test_run_lengths_are_sampled(compressed: bool) -> None:
    mask = np.zeros((40, 60), np.bool_)
    mask[10:25, 10:20] = mask[12:14, 30:50] = True
    field = wobble_field(40, 60, amplitude=4, rng=np.random.default_rng(2))
    moved = align_annotation(annotation(segmentation=encode_rle(mask, compressed=compressed), iscrowd=1), field)
    assert moved is not None
    expected = warp_mask(mask, field)
    assert isinstance(moved["segmentation"]["counts"], str if compressed else list)
    assert np.array_equal(decode_rle(moved["segmentation"], 40, 60), expected)
    rows, columns = np.nonzero(expected)
    x, y = columns.min(), rows.min()
    assert moved["bbox"] == [x, y, columns.max() + 1 - x, rows.max() + 1 - y]
    assert moved["area"] == pytest.approx(150 * expected.sum() / mask.sum(), abs=1e-3)


def test_what_leaves_the_image_is_cut_or_lost() -> None:
    far = shift_field(40, 60, right=45)
    moved = align_annotation(annotation(segmentation=[SQUARE]), far)
    assert moved is not None
    assert moved["bbox"] == [55.0, 10.0, 5.0, 15.0]
    assert moved["area"] == pytest.approx(75)
    gone = shift_field(40, 60, right=70)
    mask = np.zeros((40, 60), np.bool_)
    mask[10:25, 10:20] = True
    for segmentation in ([], [SQUARE], encode_rle(mask, compressed=True)):
        assert align_annotation(annotation(segmentation=segmentation), gone) is None
    without_box = annotation(segmentation=[SQUARE])
    del without_box["bbox"]
    assert align_annotation(without_box, gone) is None


def test_a_caption_stays() -> None:
    caption = {"id": 1, "image_id": 1, "caption": "a moth on bark"}
    assert align_annotation(caption, FIELD) == caption


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"bbox": [1, 2, 3]}, "annotation 5: bbox must be 4 finite numbers"),
        ({"bbox": [1, 2, 3, float("nan")]}, "finite"),
        ({"bbox": [1, 2, 0, 4]}, "annotation 5: bbox has no area"),
        ({"bbox": "1 2 3 4"}, "bbox must be 4"),
        ({"bbox": [True, 1, 1, 1]}, "bbox must be 4"),
        ({"segmentation": [[1, 2, 3, 4]]}, "at least three points"),
        ({"segmentation": [[1, 2, 3, 4, 5, 6, 7]]}, "at least three points"),
        ({"segmentation": SQUARE}, "segmentation must be some finite numbers"),
        ({"segmentation": "x"}, "segmentation must be"),
        ({"segmentation": {"size": [1, 1], "counts": [1]}}, "annotation 5: run lengths of size"),
        ({"keypoints": [1, 2]}, "triples"),
    ],
)
def test_wrong_annotations_are_a_sentence(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        align_annotation(annotation(**parts), FIELD)


def test_the_writer_writes_json() -> None:
    file = io.StringIO()
    writer = AnnotationWriter(file, {"info": {"a": "é"}, "categories": []})
    writer.add(['{"id": 1}', '{"id": 2}'])
    writer.add([])
    writer.add(['{"id": 3}'])
    writer.close([{"id": 9}], {"truth": "aligned"})
    assert json.loads(file.getvalue()) == {
        "info": {"a": "é"}, "categories": [], "annotations": [{"id": 1}, {"id": 2}, {"id": 3}],
        "images": [{"id": 9}], "crypsis": {"truth": "aligned"},
    }  # fmt: skip
    empty = io.StringIO()
    AnnotationWriter(empty, {}).close([], {})
    assert json.loads(empty.getvalue()) == {"annotations": [], "images": [], "crypsis": {}}
