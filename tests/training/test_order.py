"""Which images an epoch shows: by weight, by rank, by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.datasets.masks import MaskDataset, open_masks
from crypsis.errors import CrypsisError, DatasetError, InputError, UnknownNameError
from crypsis.seeds import rng_for
from crypsis.training.order import Order, pace, read_column
from crypsis.training.settings import Settings

KEYS = tuple("abcdefghij")


@pytest.fixture
def dataset(make_set: Callable[..., Path]) -> MaskDataset:
    return open_masks(make_set(3), split="train")


def test_without_numbers_each_image_comes_once_in_the_order_of_its_seed() -> None:
    shown = Order(KEYS).epoch(Settings(seed=3), 2, "set")
    assert shown == [(place, 0) for place in rng_for(3, "set", "train/2/order").permutation(10)]


def test_a_weight_is_how_often() -> None:
    weights = dict.fromkeys(KEYS, 0.0) | {"b": 1.0, "e": 3.0}
    order = Order(KEYS, weights)
    counts: Counter[int] = Counter()
    for epoch in range(200):
        shown = order.epoch(Settings(epochs=200), epoch, "set")
        assert len(shown) == 10
        counts.update(place for place, _ in shown)
        for place in {place for place, _ in shown}:  # repeats are numbered
            repeats = [repeat for at, repeat in shown if at == place]
            assert repeats == list(range(len(repeats)))
    assert set(counts) == {1, 4}
    assert counts[4] / counts.total() == pytest.approx(0.75, abs=0.04)  # deviation of 2,000 draws: 0.01
    assert order.epoch(Settings(), 7, "set") == order.epoch(Settings(), 7, "set")
    assert order.epoch(Settings(), 7, "set") != order.epoch(Settings(), 8, "set")
    tiny = Order(KEYS, {key: weight * 1e-300 for key, weight in weights.items()})
    assert tiny.epoch(Settings(), 7, "set") == order.epoch(Settings(), 7, "set")  # only their ratio counts


@pytest.mark.parametrize(
    ("start", "until", "shares"),
    [
        (0.4, 0.5, [0.4, 0.52, 0.64, 0.76, 0.88, 1, 1, 1, 1, 1]),
        (0.5, 1.0, [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]),
        (0.2, 0.0, [1] * 10),
        (1.0, 1.0, [1] * 10),
    ],
)
def test_the_pace(start: float, until: float, shares: list[float]) -> None:
    paced = Settings(epochs=10, curriculum_start=start, curriculum_until=until)
    assert [pace(paced, epoch) for epoch in range(10)] == pytest.approx(shares)


def test_the_easiest_come_first() -> None:
    ranks = {key: float(10 - place) for place, key in enumerate(KEYS)}  # j is the easiest
    order, paced = Order(KEYS, ranks=ranks), Settings(epochs=10)
    for epoch, share in enumerate([0.4, 0.52, 0.64, 0.76, 0.88, 1.0, 1.0]):
        shown = order.epoch(paced, epoch, "set")
        counts = Counter(place for place, _ in shown)
        assert len(shown) == 10
        assert set(counts) == set(range(10 - int(np.ceil(10 * share)), 10))
        assert max(counts.values()) - min(counts.values()) <= 1


def test_weights_among_those_whose_turn_has_come() -> None:
    ranks = {key: float(place + 1) for place, key in enumerate(KEYS)}
    order = Order(KEYS, {**dict.fromkeys(KEYS, 0.0), "a": 1.0, "j": 1e6}, ranks)
    order.check(Settings(epochs=10), "w.csv")
    assert {place for place, _ in order.epoch(Settings(epochs=10), 0, "set")} == {0}
    assert {place for place, _ in order.epoch(Settings(epochs=10), 9, "set")} == {9}
    late = Order(KEYS, {**dict.fromkeys(KEYS, 0.0), "j": 1.0}, ranks)
    with pytest.raises(DatasetError, match=r"w\.csv: the weights of the 4 images that the first epoch draws from sum"):
        late.check(Settings(epochs=10), "w.csv")


def test_equal_ranks_go_by_name() -> None:
    order = Order(("b", "a", "c"), ranks=dict.fromkeys("abc", 1.0))
    shown = order.epoch(Settings(epochs=10, curriculum_start=0.1), 0, "set")
    assert {place for place, _ in shown} == {1}


@settings(deadline=None, max_examples=100)
@given(
    count=st.integers(1, 12),
    epochs=st.integers(1, 6),
    start=st.floats(0.01, 1),
    until=st.floats(0, 1),
    weighted=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_epoch_shows_as_many(
    count: int, epochs: int, start: float, until: float, weighted: bool, seed: int
) -> None:
    keys = KEYS[:count] + tuple("xyz"[: max(0, count - 10)])
    numbers = {key: float(place + 1) for place, key in enumerate(keys)}
    order = Order(keys, numbers if weighted else None, numbers)
    paced, pools = Settings(epochs=epochs, seed=seed, curriculum_start=start, curriculum_until=until), []
    for epoch in range(epochs):
        shown = order.epoch(paced, epoch, "set")
        assert len(shown) == len(set(shown)) == count
        pools.append(len(order._pool(paced, epoch)))
        assert {place for place, _ in shown} <= set(range(pools[-1]))
    assert pools == sorted(pools)


@pytest.mark.parametrize("value", [float("inf"), 1e308])
def test_weights_too_large_to_add(value: float) -> None:
    with pytest.raises(DatasetError, match="too large to add; divide all of them"):
        Order(KEYS, dict.fromkeys(KEYS, value)).check(Settings(), "w.csv")


def test_reading(dataset: MaskDataset, tmp_path: Path) -> None:
    file = tmp_path / "numbers.csv"
    file.write_text("rank,note,Image,weight\n2,x,animal-00,0.5\n1,y,animal-01,0\n3,,animal-02,1e3\n")
    assert read_column(file, "weight", dataset) == {"animal-00": 0.5, "animal-01": 0, "animal-02": 1000}
    assert read_column(file, "rank", dataset) == {"animal-00": 2, "animal-01": 1, "animal-02": 3}


ALL = "animal-00,1\nanimal-01,1\nanimal-02,1\n"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (f"image,wait\n{ALL}", UnknownNameError, "no column in .*w.csv 'weight'; did you mean 'wait'"),
        (f"name,weight\n{ALL}", DatasetError, "has no column image"),
        ("", DatasetError, "has no column image"),
        ("image,weight\nanimal-00,1\nanimal-02,1\n", DatasetError, r"1 image of .*set without a weight \(animal-01\)"),
        ("image,weight\n", DatasetError, "lists no image below its header"),
        (
            f"image,weight\n{ALL}animal-1,1\n",
            UnknownNameError,
            "no image in .*set 'animal-1'; did you mean 'animal-01'",
        ),
        (f"image,weight\n{ALL}animal-00,2\n", DatasetError, "line 5: 'animal-00' is listed a second time"),
        (f"image,weight\n{ALL}".replace("-01,1", "-01,nan"), DatasetError, r"without a weight \(animal-01\)"),
        (f"image,weight\n{ALL}".replace("-01,1", "-01,inf"), DatasetError, "line 3: weight is a finite number"),
        (f"image,weight\n{ALL}".replace("-01,1", "-01,much"), DatasetError, "line 3: weight is a finite number"),
    ],
)
def test_files_that_are_wrong(
    text: str, error: type[CrypsisError], message: str, dataset: MaskDataset, tmp_path: Path
) -> None:
    (tmp_path / "w.csv").write_text(text)
    with pytest.raises(error, match=message):
        read_column(tmp_path / "w.csv", "weight", dataset)


def test_a_weight_below_zero() -> None:
    with pytest.raises(DatasetError, match=r"w\.csv: the weight of c is -1; a weight is at least 0"):
        Order(KEYS, {**dict.fromkeys(KEYS, 1.0), "c": -1.0}).check(Settings(), "w.csv")
    with pytest.raises(DatasetError, match=r"10 images .* sum to 0; some of them have to be above 0"):
        Order(KEYS, dict.fromkeys(KEYS, 0.0)).check(Settings(), "w.csv")


def test_the_name_of_encoder_weights(dataset: MaskDataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"imagenet: there is no such file; --weights .* --encoder-weights"):
        read_column(Path("imagenet"), "weight", dataset)
    with pytest.raises(InputError, match=r"--curriculum names a CSV with the columns image,rank\."):
        read_column(tmp_path / "no.csv", "rank", dataset)
