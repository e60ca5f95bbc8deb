"""What the network is shown: each image clean and corrupted, drawn from names alone, loaded ahead of the step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from ..catalog.cod10k_c import ENTRIES
from ..datasets.masks import MaskDataset
from ..errors import DatasetError
from ..models.resizing import resize_image
from ..seeds import rng_for
from ..types import Image, Mask, Sample

__all__ = ["KERNEL", "SEVERITIES", "Batch", "Views", "batches", "clean_view", "hold_out", "in_groups", "make_views"]

SEVERITIES = (1, 2, 3, 4)
"""Severities trained on; the fifth is kept for the test (COD10K-C, section 4.3)."""

KERNEL = "bilinear-antialias"
"""How images are brought to the training size."""

AHEAD = 2
"""Batches that are loaded while the network works on another."""

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Views:
    """One image as the network sees it in one epoch.

    Attributes:
        clean: uint8 S×S×3, RGB.
        corrupted: the same under one degradation; `clean` itself where nothing is degraded.
        mask: bool S×S.
    """

    clean: Image
    corrupted: Image
    mask: Mask


@dataclass(frozen=True, slots=True)
class Batch:
    """Views of N images.

    Attributes:
        clean: uint8 N×S×S×3, RGB.
        corrupted: the same.
        masks: bool N×S×S.
    """

    clean: NDArray[np.uint8]
    corrupted: NDArray[np.uint8]
    masks: NDArray[np.bool_]

    def __len__(self) -> int:
        """Number of images."""
        return len(self.clean)

    def split(self, counts: Sequence[int]) -> Iterator[Batch]:
        """Yield so many images, then so many of the next, and so on."""
        start = 0
        for count in counts:
            part = slice(start, start + count)
            yield Batch(self.clean[part], self.corrupted[part], self.masks[part])
            start += count


def make_views(sample: Sample, *, size: int, seed: int, epoch: int, repeat: int = 0, augment: bool = True) -> Views:
    """Return a sample clean and corrupted, mirrored in half of the epochs, at the training size.

    One of the eight corruptions of COD10K-C and one of `SEVERITIES` are drawn, and applied at the image's own size,
    as the benchmark does. All draws depend on the seed, the sample's key, the epoch and the repeat alone, and those of
    the flip are the same with and without augmentation.

    Args:
        sample: image and mask of any size.
        size: side of the result, in pixels.
        seed: of the training.
        epoch: from 0.
        repeat: how often the epoch has shown this sample before.
        augment: whether there is a corrupted view.
    """
    rng = rng_for(seed, sample.key, f"train/{epoch}/repeat {repeat}" if repeat else f"train/{epoch}")
    flip = rng.random() < 0.5
    entry = ENTRIES[rng.integers(len(ENTRIES))]
    severity = SEVERITIES[rng.integers(len(SEVERITIES))]
    field = int(rng.integers(2**31))
    worse = entry.degrade(sample.image, severity, seed=field, image_key=sample.key) if augment else sample.image
    view = clean_view(sample, size=size)
    corrupted = resize_image(worse, (size, size), KERNEL) if augment else view.clean
    if not flip:
        return Views(view.clean, corrupted, view.mask)
    return Views(view.clean[:, ::-1], corrupted[:, ::-1], view.mask[:, ::-1])


def clean_view(sample: Sample, *, size: int) -> Views:
    """Return a sample as it is, at `size`×`size` pixels."""
    image = resize_image(sample.image, (size, size), KERNEL)
    mask = cv2.resize(sample.mask.astype(np.uint8) * 255, (size, size), interpolation=cv2.INTER_AREA)
    return Views(image, image, np.asarray(mask > 127))


def hold_out(dataset: MaskDataset, *, seed: int) -> tuple[MaskDataset, MaskDataset]:
    """Split off every tenth image, at least one, for validation: 304 of COD10K's 3,040 (section 4.3).

    Returns:
        What is left to train on, and what is held out.

    Raises:
        DatasetError: there are fewer than two images.
    """
    count = len(dataset)
    if count < 2:
        raise DatasetError(
            f"{dataset.root}: one image cannot be both trained on and held out; give more, or a set for validation."
        )
    order = rng_for(seed, dataset.name, "train/held out").permutation(count)
    held = set(order[: max(1, count // 10)].tolist())
    parts = ([i for i in range(count) if i not in held], sorted(held))
    training, validation = (replace(dataset, items=tuple(dataset.items[i] for i in part)) for part in parts)
    return training, validation


def in_groups(things: Sequence[Thing], size: int) -> list[Sequence[Thing]]:
    """Return `things` in groups of `size`, in order; the last one may be smaller."""
    return [things[i : i + size] for i in range(0, len(things), size)]


def batches(groups: Iterable[Sequence[Thing]], load: Callable[[Thing], Views], *, workers: int) -> Iterator[Batch]:
    """Yield a batch of views for each group, in order, loaded by threads ahead of their use.

    Decoding, degrading and resizing are work of OpenCV, Pillow and NumPy, which let other threads run.

    Args:
        groups: what to load.
        load: how; an error it raises is raised here when its batch is due.
        workers: threads.
    """
    groups = iter(groups)
    pool, threads = ThreadPoolExecutor(workers, thread_name_prefix="views"), cv2.getNumThreads()
    cv2.setNumThreads(1)  # each of ours would start as many
    try:
        waiting: deque[list[Future[Views]]] = deque()
        for group in islice(groups, AHEAD):
            waiting.append([pool.submit(load, thing) for thing in group])
        while waiting:
            views = [future.result() for future in waiting.popleft()]
            for group in islice(groups, 1):
                waiting.append([pool.submit(load, thing) for thing in group])
            yield Batch(*(_stack(views, name) for name in ("clean", "corrupted", "mask")))
    finally:
        pool.shutdown(cancel_futures=True)
        cv2.setNumThreads(threads)


def _stack(views: Sequence[Views], name: str) -> NDArray[Any]:
    return np.stack([getattr(view, name) for view in views])
