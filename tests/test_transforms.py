"""Random degradations in training pipelines."""

from __future__ import annotations

import multiprocessing
import pickle
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

from crypsis import list_entries
from crypsis.catalog import get_entry
from crypsis.errors import ImageError, InputError, UnknownNameError
from crypsis.transforms import RandomDegradation
from moving_entries import SHIFT, TILES

# Python 3.12 and later warn of forking, which PyTorch does
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

IMAGE = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
NOISE = "cod10k-c/gaussian_noise"


class Images(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Gives one image over and over, degraded, and the worker that did it."""

    def __init__(self, transform: Callable[..., np.ndarray], length: int = 8, keyed: bool = False) -> None:
        self.transform = transform
        self.length = length
        self.keyed = keyed

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> np.ndarray:
        return self.transform(IMAGE, key=f"image-{index}") if self.keyed else self.transform(IMAGE)


def epochs(
    workers: int, *, count: int = 1, keyed: bool = False, persistent: bool = False, seed: int = 0
) -> list[list[bytes]]:
    generator = torch.Generator().manual_seed(11)
    loader = torch.utils.data.DataLoader(
        Images(RandomDegradation([NOISE], seed=seed), keyed=keyed), batch_size=1, num_workers=workers,
        collate_fn=lambda batch: batch[0], generator=generator, persistent_workers=persistent,
        multiprocessing_context="fork" if workers else None,
    )  # fmt: skip
    return [[image.tobytes() for image in loader] for _ in range(count)]


@pytest.mark.parametrize("workers", [0, 2])
def test_no_two_images_of_two_epochs_share_their_noise_and_a_run_repeats(workers: int) -> None:
    first = epochs(workers, count=2)
    assert len({image for epoch in first for image in epoch}) == 16
    assert epochs(workers, count=2) == first
    assert epochs(workers, count=2, seed=1) != first


def test_persistent_workers_go_on_drawing() -> None:
    first = epochs(2, count=2, persistent=True)
    assert len({image for epoch in first for image in epoch}) == 16


def test_keyed_images_do_not_depend_on_workers() -> None:
    transform = RandomDegradation([NOISE])
    expected = [[transform(IMAGE, key=f"image-{index}").tobytes() for index in range(8)]]
    assert epochs(0, keyed=True) == epochs(2, keyed=True) == expected


def _draw(transform: RandomDegradation, count: int) -> tuple[int, list[bytes]]:
    import os

    return os.getpid(), [transform(IMAGE).tobytes() for _ in range(count)]


def test_plain_processes_draw_differently_and_repeatably() -> None:
    """Children of multiprocessing start from equal copies, and must not give equal images."""
    transform = RandomDegradation([NOISE])
    transform(IMAGE)  # a state that is not fresh
    seen = []
    for child in (1, 2):
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            seen.append(pool.submit(_draw, transform, 3).result()[1])
        assert child == len(seen)
    assert len({image for child in seen for image in child}) == 6
    assert not {image for child in seen for image in child} & set(_draw(transform, 8)[1])


def test_ranks_draw_differently(monkeypatch: pytest.MonkeyPatch) -> None:
    images = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        images.append(RandomDegradation([NOISE])(IMAGE).tobytes())
    assert images[0] != images[1]


def test_a_key_decides_everything() -> None:
    transform, same = RandomDegradation(seed=4), RandomDegradation(seed=4)
    for _ in range(5):
        same(IMAGE)
    for number in range(20):
        key = f"a/{number}"
        chosen = transform.choose(key)
        assert chosen == same.choose(key)
        assert chosen is not None
        entry, severity = chosen
        expected = entry.degrade(IMAGE, severity, seed=4, image_key=key)
        assert np.array_equal(transform(IMAGE, key=key), expected)
        assert np.array_equal(same(IMAGE, key=key), expected)


def test_next_key_tells_what_is_about_to_happen() -> None:
    one, two = RandomDegradation(seed=2), RandomDegradation(seed=2)
    for _ in range(10):
        assert np.array_equal(one(IMAGE), two(IMAGE, key=two.next_key()))


def test_draws_are_uniform_and_p_is_a_probability() -> None:
    names = ("cod10k-c/fog", "cod10k-c/rain", "cod10k-c/contrast")
    transform = RandomDegradation(names, severities=(2, 4), p=0.6)
    drawn = [transform.choose(str(number)) for number in range(3000)]
    counts = Counter((d[0].name, d[1]) for d in drawn if d)
    assert set(counts) == {(name, severity) for name in names for severity in (2, 4)}
    assert sum(counts.values()) == pytest.approx(1800, abs=4 * (3000 * 0.24) ** 0.5)
    assert all(count == pytest.approx(300, abs=75) for count in counts.values())


def test_p_zero_returns_the_image_itself() -> None:
    transform = RandomDegradation(p=0)
    assert transform(IMAGE) is IMAGE
    mask = np.zeros((20, 30), np.bool_)
    image, same = transform(IMAGE, mask=mask)
    assert image is IMAGE
    assert same is mask


def test_all_means_all_and_rows_or_names_are_taken() -> None:
    assert RandomDegradation().entries == list_entries()
    assert RandomDegradation("cod10k-c/fog").entries == (get_entry("cod10k-c/fog"),)
    assert RandomDegradation([SHIFT, "cod10k-c/fog"]).entries == (SHIFT, get_entry("cod10k-c/fog"))
    assert "1 entries, severities=(3,)" in repr(RandomDegradation([SHIFT], (3,)))


def test_global_state_is_left_alone_and_the_image_too() -> None:
    before = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
    image = IMAGE.copy()
    transform = RandomDegradation()
    for _ in range(20):
        transform(image)
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before  # noqa: NPY002
    assert np.array_equal(image, IMAGE)


def test_pickles() -> None:
    transform = RandomDegradation(p=0.5, seed=3)
    transform(IMAGE)
    copy = pickle.loads(pickle.dumps(transform))  # noqa: S301
    assert [copy.next_key() for _ in range(3)] == [transform.next_key() for _ in range(3)]
    assert copy.choose("k") == transform.choose("k")


def test_kinds_of_images() -> None:
    transform = RandomDegradation(["cod10k-c/fog"], (3,))
    expected = transform(IMAGE, key="k")
    picture = transform(PIL.Image.fromarray(IMAGE), key="k")
    assert np.array_equal(np.asarray(picture), expected)
    tensor = transform(torch.from_numpy(IMAGE).permute(2, 0, 1), key="k")
    assert np.array_equal(tensor.permute(1, 2, 0).numpy(), expected)


@pytest.mark.parametrize("entry", [SHIFT, TILES], ids=lambda e: e.name)
def test_masks_go_along_when_asked(entry: object) -> None:
    mask = np.zeros((20, 30), np.int32)
    mask[4:12, 5:20] = 7
    image = np.repeat(mask[:, :, None], 3, axis=2).astype(np.uint8)
    aligned = RandomDegradation([entry], seed=1, truth="aligned")  # type: ignore[list-item]
    worse, moved = aligned(image, mask=mask, key="k")
    assert np.array_equal(worse[..., 0], moved)
    assert moved.dtype == np.int32
    assert (moved != mask).any()
    _, kept = RandomDegradation([entry], seed=1)(image, mask=mask, key="k")  # type: ignore[list-item]
    assert kept is mask
    picture, moved_too = aligned(PIL.Image.fromarray(image), mask=mask, key="k")
    assert np.array_equal(np.asarray(picture), worse)
    assert np.array_equal(moved_too, moved)
    with pytest.raises(ImageError, match=r"height and width \(20, 30\)"):
        aligned(image, mask=mask[:10], key="k")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"entries": "cod10k-c/fogg"}, UnknownNameError, "did you mean"),
        ({"entries": []}, InputError, "at least one entry"),
        ({"severities": ()}, InputError, "at least one entry and one severity"),
        ({"severities": (1, 6)}, InputError, "Severities are 1 to 5; got 6"),
        ({"severities": (True,)}, InputError, "Severities are 1 to 5; got True"),
        ({"p": 1.5}, InputError, "probability"),
        ({"p": float("nan")}, InputError, "probability"),
        ({"truth": "moved"}, UnknownNameError, "truth"),
    ],
)
def test_mistakes(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        RandomDegradation(**arguments)  # type: ignore[arg-type]


def test_torch_is_not_needed() -> None:
    import subprocess
    import sys

    code = (
        "import sys, numpy as np; from crypsis.transforms import RandomDegradation;"
        "RandomDegradation()(np.zeros((4, 4, 3), np.uint8)); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    "options",
    [
        {"seed": "a"}, {"seed": 1.7}, {"severities": 3}, {"severities": (1.0,)}, {"entries": 5}, {"entries": [3]},
        {"p": "x"},
    ],
)  # fmt: skip
def test_wrong_options_are_refused_when_it_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        RandomDegradation(**options)
