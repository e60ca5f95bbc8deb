"""Labels that move along with the content."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.catalog import Entry, get_entry, list_entries
from crypsis.catalog.aligned import (
    TRUTHS,
    align_mask,
    check_truth,
    degrade,
    warp_boxes,
    warp_mask,
    warp_points,
    warp_polygons,
)
from crypsis.errors import InputError, UnknownNameError
from crypsis.types import Sample
from moving_entries import SHIFT, TILES, WOBBLE, grid, shift_field, wobble_field

each_mover = pytest.mark.parametrize("entry", [SHIFT, WOBBLE, TILES], ids=lambda e: e.name)


def painted(height: int = 60, width: int = 90) -> Sample:
    """An image in which the object, and nothing else, is red."""
    y, x = np.mgrid[:height, :width]
    mask = (np.hypot(y - 0.5 * height, x - 0.4 * width) < 0.25 * height) | ((y > 50) & (x > 70))
    image = np.zeros((height, width, 3), np.uint8)
    image[..., 2] = 100
    image[mask] = (255, 0, 0)
    return Sample("folder/disc", image, mask, "disc", "Shape")


@each_mover
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_the_aligned_mask_lies_on_the_moved_object(entry: Entry, severity: int) -> None:
    sample = painted()
    worse = degrade(sample, entry, severity, seed=3, truth="aligned")
    assert np.array_equal(worse.mask, worse.image[..., 0] == 255)
    assert (worse.mask != sample.mask).any()
    assert (worse.key, worse.species, worse.super_class) == (sample.key, "disc", "Shape")
    assert np.array_equal(worse.image, entry.degrade(sample.image, severity, seed=3, image_key=sample.key))


@each_mover
def test_published_is_the_default_and_keeps_the_mask(entry: Entry) -> None:
    sample = painted()
    worse = degrade(sample, entry, 5)
    assert np.array_equal(worse.mask, sample.mask)
    assert (worse.image != sample.image).any()


@pytest.mark.parametrize("truth", TRUTHS)
def test_a_row_that_moves_nothing_keeps_the_mask(truth: str) -> None:
    sample = painted()
    worse = degrade(sample, "cod10k-c/fog", 3, seed=1, truth=truth)
    assert np.array_equal(worse.mask, sample.mask)
    expected = get_entry("cod10k-c/fog").degrade(sample.image, 3, seed=1, image_key=sample.key)
    assert np.array_equal(worse.image, expected)


def test_mistakes() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'aligned'"):
        degrade(painted(), SHIFT, 1, truth="alligned")
    assert check_truth("published") == "published"
    with pytest.raises(InputError, match="severities 1 to 5"):
        degrade(painted(), SHIFT, 6, truth="aligned")
    field = grid(4, 5)
    with pytest.raises(InputError, match=r"mask is \(5, 4\)"):
        warp_mask(np.zeros((5, 4), np.bool_), field)
    with pytest.raises(InputError, match="field is an array"):
        warp_boxes([[0, 0, 1, 1]], field[..., 0])
    with pytest.raises(InputError, match="finite numbers"):
        warp_boxes([[0, 0, np.nan, 1]], field)
    with pytest.raises(InputError, match="finite numbers"):
        warp_boxes([0, 0, 1, 1], field)
    with pytest.raises(InputError, match="finite numbers"):
        warp_points([[0, np.inf]], field)
    with pytest.raises(InputError, match="finite numbers"):
        warp_polygons([[0, 0, 1]], field)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.float32])
@pytest.mark.parametrize("depth", [(), (1,), (3,)])
def test_masks_are_sampled_as_opencv_does(dtype: type, depth: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    mask = (rng.integers(0, 2 if dtype is np.bool_ else 9, (31, 47, *depth))).astype(dtype)
    field = wobble_field(31, 47, amplitude=6, rng=rng)
    before, field_before = mask.tobytes(), field.tobytes()
    moved = warp_mask(mask, field)
    assert (moved.dtype, moved.shape) == (mask.dtype, mask.shape)
    assert not np.shares_memory(moved, mask)
    assert (mask.tobytes(), field.tobytes()) == (before, field_before)
    seen = mask.astype(np.float32)
    expected = cv2.remap(seen, field, None, cv2.INTER_NEAREST, borderMode=cv2.BORDER_CONSTANT, borderValue=(0,) * 4)
    assert np.array_equal(moved, expected.reshape(mask.shape).astype(dtype))


def test_content_from_outside_and_nowhere_is_background() -> None:
    field = grid(3, 4)
    field[0] = -1
    field[1, 1] = np.nan
    field[2, 3] = (4, 2)
    moved = warp_mask(np.ones((3, 4), np.bool_), field)
    assert np.array_equal(moved, [[0, 0, 0, 0], [1, 0, 1, 1], [1, 1, 1, 0]])


boxes_inside = st.tuples(st.floats(0, 40), st.floats(0, 20), st.floats(0.1, 20), st.floats(0.1, 10)).map(
    lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])
)


@settings(deadline=None, max_examples=60)
@given(boxes=st.lists(boxes_inside, min_size=1, max_size=5), right=st.floats(-5, 5), down=st.floats(-5, 5))
def test_a_shift_moves_boxes_by_itself(boxes: list[tuple[float, ...]], right: float, down: float) -> None:
    field = shift_field(50, 80, right=right, down=down)
    moved, visible = warp_boxes(boxes, field)
    expected = np.array(boxes) + np.array([right, down, right, down])
    inside = np.clip(expected, 0, [80, 50, 80, 50])
    whole = (inside == expected).all(axis=1)
    assert visible[whole].all()
    np.testing.assert_allclose(moved[whole], expected[whole], atol=1e-4)
    assert (moved >= 0).all()
    assert (moved <= [80, 50, 80, 50]).all()


@settings(deadline=None, max_examples=30)
@given(boxes=st.lists(boxes_inside, min_size=1, max_size=5))
def test_no_displacement_changes_nothing(boxes: list[tuple[float, ...]]) -> None:
    field = grid(50, 80)
    moved, visible = warp_boxes(boxes, field)
    np.testing.assert_allclose(moved, boxes, atol=1e-9)
    assert visible.all()
    polygon = np.array(boxes)[:, :2]
    np.testing.assert_allclose(warp_polygons([polygon], field)[0], polygon, atol=1e-9)


def test_boxes_that_are_lost_or_empty_are_flagged_without_nan() -> None:
    field = shift_field(20, 30, right=10)
    moved, visible = warp_boxes([[22, 2, 28, 8], [5, 5, 5, 9], [-9, -9, -1, -1], [15, 5, 25, 9]], field)
    assert visible.tolist() == [False, False, False, True]
    np.testing.assert_allclose(moved, [[22, 2, 22, 2], [5, 5, 5, 5], [0, 0, 0, 0], [25, 5, 30, 9]], atol=1e-5)
    nothing, flags = warp_boxes([], field)
    assert nothing.shape == (0, 4)
    assert flags.shape == (0,)
    assert warp_points([], field).shape == (0, 2)
    assert warp_polygons([], field) == []


def test_a_magnified_box_grows() -> None:
    field = (grid(40, 40) - 19.5) / 2 + 19.5  # twice as large around the center
    moved, visible = warp_boxes([[16, 17, 24, 22.5]], field)
    assert visible.all()
    np.testing.assert_allclose(moved, [[12, 14, 28, 25]], atol=0.51)


@each_mover
def test_boxes_hold_what_was_in_them(entry: Entry) -> None:
    """Against brute force: paint the box, degrade, look where the paint is."""
    box = np.array([20, 10, 41, 33])
    mask = np.zeros((60, 90), np.bool_)
    mask[box[1] : box[3], box[0] : box[2]] = True
    field = entry.source_of(60, 90, 4, seed=0, image_key="k")
    assert field is not None
    moved, _ = warp_boxes([box], field)
    rows, columns = np.nonzero(align_mask(mask, entry, 4, seed=0, image_key="k"))
    tight = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    np.testing.assert_allclose(moved[0], tight, atol=0.501)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), amplitude=st.floats(0, 6))
def test_points_go_where_the_field_takes_their_content(seed: int, amplitude: float) -> None:
    """The place that a point goes to shows the point: checked on the field itself."""
    rng = np.random.default_rng(seed)
    field = wobble_field(80, 100, amplitude=amplitude, rng=rng)
    points = rng.uniform((20, 20), (80, 60), (20, 2))
    moved = warp_points(points, field)
    there = np.float32(moved - 0.5)[None]
    shown = cv2.remap(field, there, None, cv2.INTER_LINEAR)[0] + 0.5
    np.testing.assert_allclose(shown, points, atol=0.25)


def test_a_warped_polygon_covers_the_warped_mask() -> None:
    corners = np.array([[25, 15], [60, 20], [70, 45], [40, 50], [20, 35]], np.float64)
    sides = zip(corners, np.roll(corners, -1, 0), strict=True)
    outline = np.concatenate([np.linspace(a, b, 12, endpoint=False) for a, b in sides])
    field = wobble_field(70, 100, amplitude=5, rng=np.random.default_rng(4))

    def fill(polygon: np.ndarray) -> np.ndarray:
        canvas = np.zeros((70 * 8, 100 * 8), np.uint8)
        cv2.fillPoly(canvas, [np.rint(polygon * 8).astype(np.int32)], 1)
        return canvas[4::8, 4::8].astype(bool)

    wanted = warp_mask(fill(outline), field)
    got = fill(warp_polygons([outline], field)[0])
    unmoved = fill(outline)

    def iou(a: np.ndarray) -> float:
        return float((a & wanted).sum() / (a | wanted).sum())

    assert iou(got) > 0.97
    assert iou(unmoved) < 0.9


def test_points_stay_finite_where_a_field_jumps() -> None:
    field = TILES.source_of(48, 48, 5, seed=1, image_key="k")
    assert field is not None
    points = np.random.default_rng(0).uniform(0, 48, (50, 2))
    assert np.isfinite(warp_points(points, field)).all()


MOVERS = [e for e in list_entries() if e.moves_pixels]


@pytest.mark.parametrize("entry", MOVERS, ids=lambda e: e.name)
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (31, 47)])
def test_every_row_that_moves_content_says_where_to(entry: Entry, size: tuple[int, int]) -> None:
    for severity in entry.severities:
        field = entry.source_of(*size, severity=severity, seed=0, image_key="k")
        assert field is not None
        assert (field.dtype, field.shape) == (np.float32, (*size, 2))
        assert np.isfinite(field).all()
        _, visible = warp_boxes([[0, 0, size[1], size[0]]], field)
        assert visible.dtype == np.bool_


@pytest.mark.parametrize(
    "name",
    [
        "imagenet-c/motion_blur", "imagenet-c/zoom_blur", "imagenet-c/elastic_transform", "arniqa/jitter",
        "arniqa/noneccpatch", "arniqa/pixelate", "real-camera/synchronization_exceptions",
    ],
)  # fmt: skip
def test_the_aligned_mask_fits_the_picture_better_than_the_published_one(name: str) -> None:
    y, x = np.mgrid[:120, :160]
    mask = np.hypot(y - 60, x - 70) < 30
    image = np.full((120, 160, 3), 40, np.uint8)
    image[mask] = 200
    worse = degrade(Sample("k", image, mask), name, 5, truth="aligned")
    gray = worse.image.mean(axis=2).ravel()
    published, aligned = (np.corrcoef(gray, m.ravel())[0, 1] for m in (mask, worse.mask))
    assert aligned > published + 0.01
    assert aligned > 0.94
