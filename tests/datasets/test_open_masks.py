from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from crypsis.datasets import Item, MaskDataset, open_masks
from crypsis.errors import DatasetError, ImageError, InputError, UnknownNameError

CAM = ("COD10K-CAM-1-Aquatic-1-BatFish-2", "COD10K-CAM-3-Flying-65-Owl-7")
NONCAM = ("COD10K-NonCAM-3-Flying-1515", "COD10K-NonCAM-5-Background-5-Vegetation-4854")


def keys(dataset: MaskDataset) -> list[str]:
    return [item.key for item in dataset.items]


@pytest.mark.parametrize(
    ("images", "masks"),
    [
        ("Image", "GT_Object"),
        ("Imgs", "GT"),
        ("Image", "GT"),
        ("image", "mask"),
        ("Image", "Mask"),
        ("images", "masks"),
        ("Images", "Masks"),
        ("im", "gt"),
        ("img", "gts"),
    ],
)
@pytest.mark.parametrize("below", ["", "Test", "nested", "nested/more", "nested/test"])
def test_layouts(tmp_path: Path, write_tree: Callable[..., Path], images: str, masks: str, below: str) -> None:
    root = write_tree(tmp_path / "set" / below, images, masks)
    (tmp_path / "set" / "__MACOSX").mkdir()
    dataset = open_masks(tmp_path / "set")
    assert keys(dataset) == ["a", "b", "c"]
    assert (dataset.root, dataset.layout, dataset.warnings) == (root, f"{images}+{masks}", ())
    for item in dataset.items:
        assert item.image == root / images / f"{item.key}.jpg"
        assert item.mask == root / masks / f"{item.key}.png"
        assert item.split == ("test" if below.lower().endswith("test") else None)
        sample = dataset.load(item)
        assert sample.key == item.key
        assert sample.image.shape == (16, 24, 3)
        assert int(sample.mask.sum()) == 4 * 6


def test_cod10k_root_and_its_splits(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    root = tmp_path / "COD10K-v3"
    write_tree(root / "Test", "Image", "GT_Object", [*CAM, *NONCAM])
    write_tree(root / "Test", "GT_Edge", "GT_Instance", CAM)
    overlap = "COD10K-CAM-1-Aquatic-3-Crab-32"
    write_tree(root / "Train", "Image", "GT_Object", ["COD10K-CAM-2-Terrestrial-21-Ant-1", overlap])
    (root / "Info").mkdir()

    dataset = open_masks(root)
    assert keys(dataset) == sorted(CAM)
    assert dataset.name == "COD10K-v3"
    assert [(i.species, i.super_class, i.split) for i in dataset.items] == [
        ("bat fish", "Aquatic", "test"),
        ("owl", "Flying", "test"),
    ]
    noncam, count = dataset.warnings
    assert noncam == "Left out, as papers do: 2 NonCAM images (without a camouflaged object)."
    assert count == "COD10K has 2,026 (test) images; found here: 2."
    assert keys(open_masks(root / "Test")) == sorted(CAM)

    everything = open_masks(root, include_noncam=True)
    assert keys(everything) == sorted([*CAM, *NONCAM])
    assert [i.species for i in everything.items if i.key in NONCAM] == [None, None]
    assert everything.warnings == ("COD10K has 4,000 (test) images; found here: 4.",)

    for train in (open_masks(root, split="Train"), open_masks(root / "Train")):
        assert len(train) == 2
        assert {i.split for i in train.items} == {"train"}
        assert train.warnings == (
            "COD10K has 3,040 (train) images; found here: 2.",
            f"In COD10K's training and test split alike: {overlap}.",
        )
    with pytest.raises(DatasetError, match=r"has no split 'val'; its splits are test, train\.$"):
        open_masks(root, split="val")


def test_only_noncam_is_refused(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    write_tree(tmp_path, "Image", "GT_Object", NONCAM)
    with pytest.raises(DatasetError, match="only NonCAM"):
        open_masks(tmp_path)
    assert len(open_masks(tmp_path, include_noncam=True)) == 2


def test_original_camo_shares_its_masks(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    root = tmp_path / "CAMO-V.1.0-CVIU2019"
    write_tree(root, "Images/Test", "GT", ["camourflage_00002", "camourflage_00004"])
    write_tree(root, "Images/Train", "GT", ["camourflage_00001", "camourflage_00003", "camourflage_00005"])
    test, train = open_masks(root), open_masks(root, split="train")
    assert keys(test) == ["camourflage_00002", "camourflage_00004"]
    assert keys(train) == ["camourflage_00001", "camourflage_00003", "camourflage_00005"]
    assert test.layout == "Images/Test+GT"
    assert [item.mask.stem for item in test.items] == keys(test)
    assert test.warnings == ("CAMO has 250 (test) images; found here: 2.",)
    assert train.warnings == ("CAMO has 1,000 (train) images; found here: 3.",)
    (root / "GT" / "camourflage_00004.png").unlink()
    with pytest.raises(DatasetError, match=r"1 image without a mask \(camourflage_00004\), beside 1 pair"):
        open_masks(root)
    with pytest.raises(DatasetError, match="no split 'val'"):
        open_masks(root, split="val")


def test_splits_below_both_folders(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    write_tree(tmp_path, "images/train", "masks/train", ["a", "b"])
    write_tree(tmp_path, "images/val", "masks/val", ["a"])
    assert keys(open_masks(tmp_path, split="train")) == ["a", "b"]
    write_tree(tmp_path, "x", "masks/val", ["z"])
    with pytest.raises(DatasetError, match=r"1 mask without an image \(z\)"):
        open_masks(tmp_path, split="validation")


def test_several_sets_are_listed(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    for name in ("CAMO", "CHAMELEON", "COD10K", "NC4K"):
        write_tree(tmp_path / "TestDataset" / name, "Imgs", "GT")
    write_tree(tmp_path / "TrainDataset", "Imgs", "GT")
    with pytest.raises(DatasetError, match=r"holds 4 data sets; give one of them: CAMO, CHAMELEON, COD10K, NC4K\.$"):
        open_masks(tmp_path / "TestDataset")
    with pytest.raises(DatasetError, match="TestDataset/CAMO, TestDataset/CHAMELEON"):
        open_masks(tmp_path)
    assert open_masks(tmp_path, split="train").name == "TrainDataset"
    chameleon = open_masks(tmp_path / "TestDataset" / "CHAMELEON")
    assert chameleon.items[0].split == "test"
    assert chameleon.warnings == ("CHAMELEON has 76 (test) images; found here: 3.",)
    assert open_masks(tmp_path / "TestDataset" / "NC4K").warnings == ("NC4K has 4,121 (test) images; found here: 3.",)


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("COD10K", "COD10K has 2,026 (test) or 3,040 (train) images; found here: 1."),
        ("TE-COD10K", "COD10K has 2,026 (test) images; found here: 1."),
        ("CAMO-TR", "CAMO has 1,000 (train) images; found here: 1."),
        ("camo-fs", None),
        ("CAMO-COCO", None),
        ("CamoFormer", None),
        ("mine", None),
    ],
)
def test_expected_counts(tmp_path: Path, write_tree: Callable[..., Path], name: str, warning: str | None) -> None:
    assert open_masks(write_tree(tmp_path / name, "im", "gt", ["a"])).warnings == ((warning,) if warning else ())


def test_the_expected_count_is_no_warning(tmp_path: Path) -> None:
    for folder in ("Imgs", "GT"):
        (tmp_path / "CHAMELEON" / folder).mkdir(parents=True)
        for i in range(76):
            (tmp_path / "CHAMELEON" / folder / f"animal-{i}.png").touch()
    dataset = open_masks(tmp_path / "CHAMELEON")
    assert (len(dataset), dataset.warnings) == (76, ())


def test_odd_names_and_debris(tmp_path: Path, write_pair: Callable[..., tuple[Path, Path]]) -> None:
    images, masks = tmp_path / "ünï 目录" / "Imgs", tmp_path / "ünï 目录" / "GT"
    long = "x" * 200
    for image, mask in (
        ("é b.jpg", "é b.png"),
        (f"{long}.png", f"{long}.png"),
        ("UPPER.JPG", "UPPER.PNG"),
        ("dotted.name.v2.jpeg", "dotted.name.v2.bmp"),
        ("swapped.png", "swapped.jpg"),
        ("Case.jpg", "cASE.png"),
        ("both.jpg", "both.png"),
        ("BOTH.jpg", "BOTH.png"),
        ("sub/inner.webp", "sub/inner.tif"),
    ):
        write_pair(images / image, masks / mask)
    # composed in one folder, decomposed in the other, as a copy from macOS leaves it
    write_pair(
        images / (unicodedata.normalize("NFC", "ö") + ".jpg"), masks / (unicodedata.normalize("NFD", "ö") + ".png")
    )
    for debris in ("Thumbs.db", ".DS_Store", "._é b.jpg", "desktop.ini", ".hidden/x.png", "__MACOSX/y.png"):
        (images / debris).parent.mkdir(exist_ok=True)
        (images / debris).write_bytes(b"junk")
    dataset = open_masks(images.parent)
    assert keys(dataset) == sorted(
        ["BOTH", "Case", "UPPER", "both", "dotted.name.v2", "sub/inner", "swapped", long, "é b", "ö"]
    )
    assert dataset.warnings == ()
    by_key = {item.key: item for item in dataset.items}
    assert by_key["both"].mask.name == "both.png"
    assert by_key["Case"].mask.name == "cASE.png"
    for item in dataset.items:
        assert dataset.load(item).mask.any()


def test_other_files_are_named(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    root = write_tree(tmp_path, "Imgs", "GT")
    (root / "Imgs" / "notes.txt").touch()
    (root / "GT" / "a.mat").touch()
    one, two = open_masks(root).warnings
    assert one.endswith("not images, ignored: notes.txt.")
    assert two.endswith("not images, ignored: a.mat.")


@pytest.mark.parametrize("folder", ["Imgs", "GT"])
def test_two_files_of_one_name(tmp_path: Path, write_tree: Callable[..., Path], folder: str) -> None:
    root = write_tree(tmp_path, "Imgs", "GT")
    for suffix in (".png", ".jpg"):
        (root / folder / f"a{suffix}").touch()
    with pytest.raises(DatasetError, match=r"a\.jpg and a\.png have the same name"):
        open_masks(root)


def test_keys_that_differ_in_case_alone_are_not_guessed(
    tmp_path: Path, write_pair: Callable[..., tuple[Path, Path]]
) -> None:
    write_pair(tmp_path / "im" / "x.png", tmp_path / "gt" / "x.png")
    write_pair(tmp_path / "im" / "A.png", tmp_path / "gt" / "aA.png")
    write_pair(tmp_path / "im" / "Aa.png", tmp_path / "gt" / "AA.png")
    with pytest.raises(
        DatasetError, match=r"2 images without a mask \(A, Aa\) and 2 masks without an image \(AA, aA\)"
    ):
        open_masks(tmp_path)


def test_unpaired_both_ways(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    root = write_tree(tmp_path, "Imgs", "GT", [f"n{i}" for i in range(10)])
    for i in range(7):
        (root / "GT" / f"n{i}.png").unlink()
    (root / "Imgs" / "n9.jpg").unlink()
    with pytest.raises(DatasetError) as caught:
        open_masks(root)
    assert "7 images without a mask (n0, n1, n2, n3, n4, and 2 more) and 1 mask without an image (n9)" in str(
        caught.value
    )
    dataset = open_masks(root, allow_unpaired=True)
    assert keys(dataset) == ["n7", "n8"]
    assert dataset.warnings == (
        "Left out: 7 images without a mask (n0, n1, n2, n3, n4, and 2 more) and 1 mask without an image (n9).",
    )
    for i in (7, 8):
        (root / "GT" / f"n{i}.png").unlink()
    with pytest.raises(DatasetError, match="no image has a mask of the same name"):
        open_masks(root, allow_unpaired=True)


def test_refusals(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    root = write_tree(tmp_path / "COD10K", "Imgs", "GT")
    with pytest.raises(DatasetError, match=r"CDO10K: no such file or folder; did you mean .*COD10K\?$"):
        open_masks(tmp_path / "CDO10K")
    with pytest.raises(DatasetError, match=r"did you mean .*COD10K\?$"):
        open_masks(tmp_path / "cod10" / "Test" / "Image")
    with pytest.raises(DatasetError, match=r"demoo: .* did you mean demo, the built-in set\?$"):
        open_masks("demoo")
    with pytest.raises(DatasetError, match=r"exists, 'zzz' in it does not\.$"):
        open_masks(str(tmp_path / "zzz"))
    with pytest.raises(DatasetError, match=r"Give the folder that holds images and masks: .*COD10K\.$"):
        open_masks(root / "Imgs")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match=r"the folder is empty\. Known layouts: Image\+GT_Object"):
        open_masks(tmp_path / "empty")
    (tmp_path / "hollow" / "Imgs").mkdir(parents=True)
    (tmp_path / "hollow" / "GT").mkdir()
    with pytest.raises(DatasetError, match=r"Imgs: holds no images\.$"):
        open_masks(tmp_path / "hollow")
    other = write_tree(tmp_path / "other", "pictures", "labels")
    (other / "x.png").touch()
    (other / "readme.txt").touch()
    with pytest.raises(
        DatasetError, match=r"it holds 2 folders \(labels, pictures\) and 1 image and 1 other file\. Known layouts"
    ):
        open_masks(other)
    (other / "list.csv").touch()
    with pytest.raises(DatasetError, match=r"If list\.csv is its manifest, give that"):
        open_masks(other)
    with pytest.raises(DatasetError, match="is a file; give the folder"):
        open_masks(root / "Imgs" / "a.jpg")
    (tmp_path / "coco.json").write_text("{}")
    with pytest.raises(DatasetError, match="annotations in JSON are not masks"):
        open_masks(tmp_path / "coco.json")
    write_tree(root, "Image", "GT")
    with pytest.raises(DatasetError, match="cannot tell which of Image, Imgs to take"):
        open_masks(root)


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "symlink"), reason="links need no rights only on POSIX")
def test_links_are_followed_once(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    store = write_tree(tmp_path / "store", "Imgs/s", "GT/s", ["a"])
    root = tmp_path / "set"
    root.mkdir()
    for name in ("Imgs", "GT"):
        (root / name).symlink_to(store / name)
        (store / name / "s" / "loop").symlink_to(store / name)
    assert keys(open_masks(root)) == ["s/a"]


@pytest.mark.skipif(os.name == "nt", reason="names are bytes on POSIX alone")
def test_a_name_that_is_not_text(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    root = write_tree(tmp_path, "Imgs", "GT")
    try:
        (root / "Imgs" / os.fsdecode(b"\xff.jpg")).touch()
    except OSError:
        pytest.skip("this file system keeps names as text")
    with pytest.raises(DatasetError, match="is not UTF-8; rename it"):
        open_masks(root)


def test_an_unlistable_folder(tmp_path: Path, write_tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_tree(tmp_path, "Imgs", "GT")
    real = os.scandir

    def scandir(path: str | Path) -> object:
        if Path(path).name == "GT":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(DatasetError, match=r"GT: cannot be listed \(Permission denied\)\.$"):
        open_masks(root)


def test_fingerprint_and_limit(tmp_path: Path) -> None:
    items = tuple(Item(f"k{i:03}", tmp_path / f"{i}.jpg", tmp_path / f"{i}.png") for i in range(100))
    dataset = MaskDataset("x", tmp_path, "im+gt", items, ("w",))
    assert dataset.fingerprint() == hashlib.sha256("\n".join(f"k{i:03}" for i in range(100)).encode()).hexdigest()
    assert MaskDataset("y", Path("elsewhere"), "csv", items[::-1]).fingerprint() == dataset.fingerprint()
    assert dataset.limit(99).fingerprint() != dataset.fingerprint()
    assert [i.key for i in dataset.limit(4).items] == ["k000", "k025", "k050", "k075"]
    assert dataset.limit(4).warnings == ("w",)
    for n in (1, 3, 7, 99, 100, 1000):
        limited = dataset.limit(n)
        assert len(limited) == len({i.key for i in limited.items}) == min(n, 100)
        assert list(limited.items) == sorted(limited.items, key=lambda i: i.key)
    for n in (0, -1):
        with pytest.raises(InputError, match="at least 1 image"):
            dataset.limit(n)


def test_another_size(tmp_path: Path, write_pair: Callable[..., tuple[Path, Path]]) -> None:
    image, mask = write_pair(tmp_path / "im" / "a.png", tmp_path / "gt" / "a.png")
    truth = np.zeros((8, 12), np.uint8)
    truth[2:4, 3:6] = 255
    PIL.Image.fromarray(truth).save(mask)
    dataset = open_masks(tmp_path)
    (item,) = dataset.items
    with pytest.raises(ImageError, match=r"^a: the image is 24×16 pixels, its mask 12×8; repair .* resize-mask\.$"):
        dataset.load(item)
    sample = dataset.load(item, on_size_mismatch="resize-mask")
    expected = np.zeros((16, 24), bool)
    expected[4:8, 6:12] = True
    assert (sample.mask == expected).all()
    with pytest.raises(UnknownNameError, match="did you mean 'resize-mask'"):
        dataset.load(item, on_size_mismatch="resize")
    image.unlink()
    with pytest.raises(ImageError, match=r"cannot be read \(No such file or directory\)"):
        dataset.load(item)


@pytest.mark.parametrize("policy", ["error", "resize-mask"])
def test_a_mask_for_the_image_before_its_exif_rotation(tmp_path: Path, policy: str) -> None:
    for name in ("im", "gt"):
        (tmp_path / name).mkdir()
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    PIL.Image.new("RGB", (100, 40)).save(tmp_path / "im" / "a.jpg", exif=exif)
    PIL.Image.new("L", (100, 40), 255).save(tmp_path / "gt" / "a.png")
    dataset = open_masks(tmp_path)
    with pytest.raises(
        ImageError, match=r"40×100 pixels, its mask 100×40: .* before its EXIF rotation \(orientation 6\)"
    ):
        dataset.load(dataset.items[0], on_size_mismatch=policy)
    PIL.Image.new("L", (40, 100), 255).save(tmp_path / "gt" / "a.png")
    assert dataset.load(dataset.items[0]).image.shape == (100, 40, 3)


def test_the_demo_set_is_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo").mkdir()  # a folder of that name is reached as ./demo
    monkeypatch.chdir(tmp_path)
    dataset = open_masks("demo")
    assert (dataset.name, dataset.layout, dataset.warnings) == ("demo", "demo", ())
    assert len(dataset) == 48
    assert all(item.species and item.split == "test" for item in dataset.items)
    assert dataset.load(dataset.items[0]).mask.any()
    with pytest.raises(DatasetError, match="the folder is empty"):
        open_masks(Path("demo"))
