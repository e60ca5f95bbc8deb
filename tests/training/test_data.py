"""Views of training images: drawn from names alone, the same for any number of threads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest

from crypsis.catalog.cod10k_c import ENTRIES
from crypsis.catalog.entry import Entry
from crypsis.datasets.masks import Item, MaskDataset, open_masks
from crypsis.errors import DatasetError, ImageError
from crypsis.models.resizing import resize_image
from crypsis.training.data import KERNEL, SEVERITIES, Views, batches, clean_view, hold_out, in_groups, make_views
from crypsis.types import Image, Sample


@pytest.fixture
def dataset(make_set: Callable[..., Path]) -> MaskDataset:
    return open_masks(make_set(7, height=40, width=56), split="train")


@pytest.fixture
def sample(dataset: MaskDataset) -> Sample:
    return dataset.load(dataset.items[0])


def test_views_depend_on_seed_key_epoch_and_repeat(sample: Sample) -> None:
    first = make_views(sample, size=64, seed=1, epoch=2)
    same = make_views(sample, size=64, seed=1, epoch=2)
    assert first.clean.shape == first.corrupted.shape == (64, 64, 3)
    assert first.mask.shape == (64, 64)
    assert np.array_equal(first.corrupted, same.corrupted)
    other_key = dataclasses.replace(sample, key="another")
    others = [
        make_views(sample, size=64, seed=3, epoch=2),
        make_views(sample, size=64, seed=1, epoch=3),
        make_views(other_key, size=64, seed=1, epoch=2),
        make_views(sample, size=64, seed=1, epoch=2, repeat=1),
    ]
    assert not any(np.array_equal(first.corrupted, other.corrupted) for other in others)


def test_all_rows_and_the_severities_1_to_4_are_drawn(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[str, int]] = []

    def degrade(self: Entry, image: Image, severity: int, *, seed: int, image_key: str) -> Image:
        drawn.append((self.name, severity))
        return image

    monkeypatch.setattr(Entry, "degrade", degrade)
    flips = [
        not np.array_equal(make_views(sample, size=64, seed=0, epoch=epoch).mask, clean_view(sample, size=64).mask)
        for epoch in range(400)
    ]
    assert {name for name, _ in drawn} == {entry.name for entry in ENTRIES}
    counts = [sum(severity == level for _, severity in drawn) for level in range(1, 6)]
    assert counts[4] == 0
    assert all(70 <= count <= 130 for count in counts[:4])
    assert set(SEVERITIES) == {1, 2, 3, 4}
    assert 160 <= sum(flips) <= 240


def test_a_corrupted_view_is_degraded_at_full_size_then_resized(sample: Sample) -> None:
    views = make_views(sample, size=64, seed=0, epoch=0)
    candidates = []
    for entry in ENTRIES:
        if entry.random:
            continue
        for severity in SEVERITIES:
            worse = resize_image(entry.degrade(sample.image, severity, seed=0, image_key=sample.key), (64, 64), KERNEL)
            candidates += [worse, worse[:, ::-1]]
    epoch = 0
    while not any(np.array_equal(views.corrupted, candidate) for candidate in candidates):
        epoch += 1
        assert epoch < 10, "ten draws without one of the rows that draw nothing"
        views = make_views(sample, size=64, seed=0, epoch=epoch)


@pytest.mark.parametrize("epoch", range(6))
def test_without_augmentation_both_views_are_the_clean_one(sample: Sample, epoch: int) -> None:
    without = make_views(sample, size=64, seed=0, epoch=epoch, augment=False)
    augmented = make_views(sample, size=64, seed=0, epoch=epoch)
    assert np.array_equal(without.clean, without.corrupted)
    assert np.array_equal(without.clean, augmented.clean)
    assert np.array_equal(without.mask, augmented.mask)


@pytest.mark.parametrize("size", [64, 72, 20])
def test_image_and_mask_stay_together(size: int) -> None:
    y, x = np.mgrid[:60, :90]
    mask = (np.hypot(y - 20, x - 60) < 14).astype(np.bool_)
    sample = Sample("disc", np.repeat(mask[:, :, None], 3, axis=2).astype(np.uint8) * 255, mask)
    for epoch in range(4):
        views = make_views(sample, size=size, seed=0, epoch=epoch, augment=False)
        assert np.mean((views.clean[:, :, 0] > 127) != views.mask) < 0.02


def test_a_tenth_is_held_out(tmp_path: Path) -> None:
    items = tuple(Item(f"{i:04d}", tmp_path / "i.png", tmp_path / "m.png") for i in range(3040))
    training, validation = hold_out(MaskDataset("set", tmp_path, "Imgs+GT", items), seed=0)
    assert (len(training), len(validation)) == (2736, 304)  # of the paper
    keys = [{item.key for item in part.items} for part in (training, validation)]
    assert not keys[0] & keys[1]
    _, other = hold_out(MaskDataset("set", tmp_path, "Imgs+GT", items), seed=1)
    assert keys[1] != {item.key for item in other.items}


def test_small_sets_hold_out_one(dataset: MaskDataset) -> None:
    assert [len(part) for part in hold_out(dataset, seed=0)] == [6, 1]
    with pytest.raises(DatasetError, match="one image cannot be both"):
        hold_out(dataset.limit(1), seed=0)


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_come_in_order(dataset: MaskDataset, workers: int) -> None:
    def load(item: Item) -> Views:
        return clean_view(dataset.load(item), size=64)

    threads = cv2.getNumThreads()
    found = list(batches(in_groups(dataset.items, 3), load, workers=workers))
    assert [len(batch) for batch in found] == [3, 3, 1]
    assert found[0].clean.shape == (3, 64, 64, 3)
    assert found[0].masks.dtype == np.bool_
    expected = [load(item).clean for item in dataset.items]
    assert np.array_equal(np.concatenate([batch.clean for batch in found]), np.stack(expected))
    first, rest = found[0].split([1, 2])
    assert (len(first), len(rest)) == (1, 2)
    assert np.array_equal(np.concatenate([first.masks, rest.masks]), found[0].masks)
    assert cv2.getNumThreads() == threads


def test_an_image_that_cannot_be_read_is_named(dataset: MaskDataset) -> None:
    dataset.items[4].image.write_bytes(b"no image")
    load = partial(_load, dataset)
    stream = batches(in_groups(dataset.items, 2), load, workers=2)
    assert len([next(stream), next(stream)]) == 2
    with pytest.raises(ImageError, match="animal-04"):
        next(stream)


def _load(dataset: MaskDataset, item: Item) -> Views:
    return clean_view(dataset.load(item), size=64)
