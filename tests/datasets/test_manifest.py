from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crypsis.datasets import open_masks
from crypsis.errors import DatasetError

Pair = Callable[..., tuple[Path, Path]]


@pytest.fixture
def folder(tmp_path: Path, write_pair: Pair) -> Path:
    for stem in ("a", "b, c", "ünï"):
        write_pair(tmp_path / "photos" / f"{stem}.jpg", tmp_path / "truth" / f"{stem}_mask.png")
    return tmp_path


def test_csv(folder: Path) -> None:
    path = folder / "list.csv"
    path.write_text(
        "\ufeffImage, mask,species,super_class,note\r\n"
        "photos/ünï.jpg,truth/ünï_mask.png,owl,Flying,x\r\n"
        "\r\n"
        '"photos/b, c.jpg","truth/b, c_mask.png",,,\r\n'
        f"{folder}/photos/a.jpg,truth/../truth/a_mask.png,  ,,\r\n",
        encoding="utf-8",
    )
    dataset = open_masks(path)
    assert [(i.key, i.species, i.super_class, i.split) for i in dataset.items] == [
        ("photos/a", None, None, None),
        ("photos/b, c", None, None, None),
        ("photos/ünï", "owl", "Flying", None),
    ]
    assert (dataset.name, dataset.layout, dataset.root) == ("list", "csv", path)
    assert dataset.warnings == (f"{path}: columns not known here, ignored: note.",)
    assert all(dataset.load(item).mask.any() for item in dataset.items)


def test_jsonl_with_splits(folder: Path) -> None:
    rows = [
        {"image": "photos/a.jpg", "mask": "truth/a_mask.png", "split": "Train"},
        {"image": "photos/b, c.jpg", "mask": "truth/b, c_mask.png", "split": "test", "species": "fox\u2028"},
        {"image": "photos/ünï.jpg", "mask": "truth/ünï_mask.png", "split": None},
    ]
    path = folder / "list.JSONL"
    path.write_text("\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    assert [(i.key, i.split, i.species) for i in open_masks(path).items] == [
        ("photos/b, c", "test", "fox"),
        ("photos/ünï", None, None),
    ]
    assert [i.key for i in open_masks(path, split="training").items] == ["photos/a", "photos/ünï"]
    path.write_text(json.dumps(rows[0]))
    with pytest.raises(DatasetError, match=r"no row belongs to split 'test'; its splits are train \(1\)\.$"):
        open_masks(path)


def test_cod10k_names_in_a_manifest(tmp_path: Path, write_pair: Pair) -> None:
    stems = ("COD10K-CAM-1-Aquatic-1-BatFish-2", "COD10K-NonCAM-3-Flying-1515")
    for stem in stems:
        write_pair(tmp_path / f"{stem}.jpg", tmp_path / f"{stem}.png")
    path = tmp_path / "list.csv"
    path.write_text("image,mask\n" + "".join(f"{s}.jpg,{s}.png\n" for s in stems))
    dataset = open_masks(path)
    assert [(i.species, i.super_class) for i in dataset.items] == [("bat fish", "Aquatic")]
    assert dataset.warnings[0].startswith("Left out, as papers do: 1 NonCAM image (")
    assert len(open_masks(path, include_noncam=True)) == 2


def test_missing_files(folder: Path) -> None:
    path = folder / "list.csv"
    path.write_text(
        "image,mask\nphotos/a.jpg,truth/a_mask.png\nphotos/gone.jpg,truth/a_mask.png\nphotos/ünï.jpg,truth/gone.png\n"
    )
    with pytest.raises(
        DatasetError,
        match=r"1 image without a mask \(photos/ünï\) and 1 mask without an image \(photos/gone\), beside 1 pair",
    ):
        open_masks(path)
    dataset = open_masks(path, allow_unpaired=True)
    assert [i.key for i in dataset.items] == ["photos/a"]
    assert dataset.warnings[0].startswith("Left out: 1 image without a mask")


@pytest.mark.parametrize(
    "name",
    ["../secret.png", "/etc/passwd", "photos/../../secret.png", "..", ".", "photos/..", "/", "photos/\0a.jpg"],
)
def test_paths_that_lead_out(folder: Path, name: str) -> None:
    path = folder / "list.jsonl"
    for row in ({"image": name, "mask": "truth/a_mask.png"}, {"image": "photos/a.jpg", "mask": name}):
        path.write_text(json.dumps(row))
        with pytest.raises(DatasetError, match=r"line 1: the path .* leads out of the manifest's folder"):
            open_masks(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.csv", b"", "has no column image or mask; its header is empty"),
        ("m.csv", b"img,msk\n1,2\n", "has no column image or mask; its header is img, msk"),
        ("m.csv", b"image;mask\na.jpg;a.png\n", "has no column image or mask"),
        ("m.csv", b"image,species\na.jpg,x\n", "has no column mask"),
        ("m.csv", b"image,mask,mask\na.jpg,b,c\n", "a column name occurs twice"),
        ("m.csv", b"image,mask\n", "the manifest has no rows"),
        ("m.csv", b"image,mask\na,b.jpg,a.png\n", "line 2: has 3 values for 2 columns; put names with a comma"),
        ("m.csv", b"image,mask\na.jpg,\n", "line 2: mask is missing"),
        ("m.csv", b'image,mask\n"a.jpg,b.png\n', "is not CSV"),
        ("m.csv", "image,mask\né.jpg,é.png\n".encode("latin-1"), "is not UTF-8 text"),
        ("m.csv", b"image,mask\na.jpg,a.png\na.jpg,b.png\n", "line 3: a.jpg has the same key as an earlier row, 'a'"),
        ("m.csv", b"image,mask\na.jpg,a.png\na.png,b.png\n", "line 3: a.png has the same key"),
        ("m.jsonl", b"\n \n", "the manifest has no rows"),
        ("m.jsonl", b"{'image': 1}", "line 1: is not JSON"),
        ("m.jsonl", b"[" * 100_000, "line 1: is not JSON"),
        ("m.jsonl", b"[1, 2]", "line 1: must be a JSON object"),
        ("m.jsonl", b'{"image": "a.jpg"}', "line 1: mask is missing"),
        ("m.jsonl", b'{"image": 3, "mask": "a.png"}', "line 1: image must be text; got 3"),
        ("m.jsonl", b'{"image": "a.jpg", "mask": "a.png"}', "no image has a mask of the same name"),
    ],
)
def test_refusals(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        open_masks(tmp_path / name)
    assert message in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)
