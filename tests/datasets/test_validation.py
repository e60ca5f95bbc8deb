from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from crypsis.datasets import Item, Problem, open_masks, validate_masks, validation
from crypsis.errors import UnknownNameError

Pair = Callable[..., tuple[Path, Path]]
HEIGHT, WIDTH = 16, 24


@pytest.fixture
def folder(tmp_path: Path, write_pair: Pair) -> Path:
    """A set with every problem there is, one an image."""
    truth = np.zeros((HEIGHT, WIDTH), np.uint8)
    truth[4:8, 6:12] = 255
    gray = truth.copy()
    gray[8, 6:8] = 90
    soft = truth // 2
    palette = PIL.Image.fromarray(truth // 255).convert("P")
    palette.putpalette([0, 0, 0, 128, 0, 0])
    color = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    color[4:8, 6:12, 1] = 255
    tiny = np.zeros((HEIGHT, WIDTH), np.uint8)
    tiny[0, :15] = 255
    masks = {
        "alpha": PIL.Image.merge("LA", (PIL.Image.new("L", (WIDTH, HEIGHT), 255), PIL.Image.fromarray(truth))),
        "color": PIL.Image.fromarray(color),
        "dim": PIL.Image.fromarray(soft),
        "empty": PIL.Image.new("L", (WIDTH, HEIGHT)),
        "full": PIL.Image.new("1", (WIDTH, HEIGHT), 1),
        "gray": PIL.Image.fromarray(gray),
        "one": PIL.Image.fromarray(truth // 255),
        "palette": palette,
        "size": PIL.Image.fromarray(truth[:-1]),
        "tiny": PIL.Image.fromarray(tiny),
    }
    for name in (*masks, "COD10K-NonCAM-1-Amphibian-3", "bad-image", "bad-mask", "good", "rotated", "turned"):
        write_pair(tmp_path / "im" / f"{name}.png", tmp_path / "gt" / f"{name}.png")
        if name in masks:
            masks[name].save(tmp_path / "gt" / f"{name}.png")
    masks["empty"].save(tmp_path / "gt" / "COD10K-NonCAM-1-Amphibian-3.png")
    (tmp_path / "im" / "good-copy.png").write_bytes((tmp_path / "im" / "good.png").read_bytes())
    (tmp_path / "gt" / "good-copy.png").write_bytes((tmp_path / "gt" / "good.png").read_bytes())
    (tmp_path / "im" / "bad-image.png").write_bytes((tmp_path / "im" / "bad-image.png").read_bytes()[:300])
    (tmp_path / "gt" / "bad-mask.png").write_bytes(b"")
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    for name, size in (("rotated", (HEIGHT, WIDTH)), ("turned", (WIDTH, HEIGHT))):
        (tmp_path / "im" / f"{name}.png").unlink()
        PIL.Image.new("RGB", size, (9, 9, 9)).save(tmp_path / "im" / f"{name}.jpg", exif=exif)
    return tmp_path


EXPECTED = {
    ("alpha", "note", "mask-coding"),
    ("bad-image", "error", "unreadable-image"),
    ("bad-mask", "error", "unreadable-mask"),
    ("color", "note", "mask-coding"),
    ("dim", "warning", "empty-mask"),
    ("dim", "warning", "gray-mask"),
    ("empty", "warning", "empty-mask"),
    ("COD10K-NonCAM-1-Amphibian-3", "note", "empty-mask"),
    ("full", "warning", "full-mask"),
    ("good-copy", "warning", "duplicate-image"),
    ("gray", "note", "gray-mask"),
    ("one", "note", "mask-coding"),
    ("palette", "note", "mask-coding"),
    ("rotated", "note", "exif-rotation"),
    ("size", "error", "size-mismatch"),
    ("tiny", "warning", "tiny-object"),
    ("turned", "note", "exif-rotation"),
    ("turned", "error", "size-mismatch"),
}


def test_every_problem_is_found(folder: Path) -> None:
    dataset = open_masks(folder, include_noncam=True)
    seen: list[tuple[int, int]] = []
    filters = list(warnings.filters)
    report = validate_masks(dataset, progress=lambda done, total: seen.append((done, total)))
    assert warnings.filters == filters
    assert {(p.key, p.severity, p.kind) for p in report.problems} == EXPECTED
    assert len(report.problems) == len(EXPECTED)
    assert [p.key for p in report.problems] == sorted(p.key for p in report.problems)
    assert seen == [(i + 1, len(dataset)) for i in range(len(dataset))]
    assert (report.images, report.usable, report.ok) == (17, 13, False)
    assert {p.key for p in report.errors} == {"bad-image", "bad-mask", "size", "turned"}
    assert (report.width, report.height) == ((16, 24), (16, 24))
    assert report.codings == {"gray": 11, "0/1": 1, "1-bit": 1, "alpha": 1, "color": 1, "palette": 1}
    assert report.super_classes == {"Amphibian": 1}
    assert report.coverage["min"] == 0.0
    assert report.coverage["max"] == 1.0
    assert report.coverage["median"] == pytest.approx(24 / 384)
    assert report.file_bytes == sum(file.stat().st_size for item in dataset.items for file in (item.image, item.mask))
    assert validate_masks(dataset) == report


@pytest.mark.parametrize(
    ("key", "kind", "message"),
    [
        ("bad-image", "unreadable-image", "damaged or truncated image"),
        ("bad-mask", "unreadable-mask", "the file is empty"),
        ("dim", "empty-mask", "24 pixels are gray but not above 128"),
        ("good-copy", "duplicate-image", "The image file is the same as that of good."),
        ("gray", "gray-mask", "2 pixels of the mask (0.52%) are gray"),
        ("palette", "mask-coding", "any index but 0 is the object"),
        ("rotated", "exif-rotation", "EXIF orientation 6"),
        ("size", "size-mismatch", "the image is 24×16 pixels, its mask 24×15; repair one"),
        ("tiny", "tiny-object", "The object is tiny: 15 of 384 pixels."),
        ("turned", "size-mismatch", "fits the image before its EXIF rotation"),
    ],
)
def test_messages(folder: Path, key: str, kind: str, message: str) -> None:
    report = validate_masks(open_masks(folder, include_noncam=True))
    (problem,) = [p for p in report.problems if (p.key, p.kind) == (key, kind)]
    assert message in problem.message


def test_resize_policy(folder: Path) -> None:
    report = validate_masks(open_masks(folder), on_size_mismatch="resize-mask")
    assert {p.key: p.severity for p in report.problems if p.kind == "size-mismatch"} == {
        "size": "warning",
        "turned": "error",
    }
    with pytest.raises(UnknownNameError, match="did you mean 'error'"):
        validate_masks(open_masks(folder), on_size_mismatch="errors")


def test_dictionary_and_text(folder: Path) -> None:
    report = validate_masks(open_masks(folder))
    values = json.loads(json.dumps(report.to_dict()))
    assert values["ok"] is False
    assert values["counts"] == report.counts() == dict(sorted(report.counts().items(), key=lambda p: (-p[1], p[0])))
    assert [Problem(**p) for p in values["problems"]] == list(report.problems)
    text = report.text(limit=1)
    assert "warning: Left out, as papers do: 1 NonCAM image " in text
    assert "mask-coding (4)\n  note    alpha: " in text
    assert "… and 3 more" in text
    assert all(p.key in text and p.message in text for p in report.errors)
    assert text.endswith("16 images checked, 4 cannot be scored.")


def test_a_clean_set(tmp_path: Path, write_tree: Callable[..., Path]) -> None:
    stems = [f"COD10K-CAM-3-Flying-{n}-X-{i}" for n, count in ((65, 3), (64, 1)) for i in range(count)]
    report = validate_masks(open_masks(write_tree(tmp_path, "im", "gt", stems)))
    assert report.ok
    assert report.problems == ()
    assert report.species == {"owl": 3, "moth": 1}
    assert "2: owl 3, moth 1" in report.text()
    assert report.text().endswith("4 images checked, all can be scored.")


def test_nothing_readable(tmp_path: Path) -> None:
    for name in ("im", "gt"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    report = validate_masks(open_masks(tmp_path))
    assert [p.kind for p in report.problems] == ["unreadable-image", "unreadable-mask"]
    assert (report.width, report.coverage, report.usable) == (None, {}, 0)
    assert "1 cannot be scored" in report.text()


def test_interruption_leaves_the_rest_undone(
    tmp_path: Path, write_tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = open_masks(write_tree(tmp_path, "im", "gt", [f"{i:03}" for i in range(60)]))
    examined: list[str] = []
    real = validation._examine

    def slowly(item: Item, policy: str) -> object:
        examined.append(item.key)
        time.sleep(0.02)
        return real(item, policy)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(validation, "_examine", slowly)
    with pytest.raises(KeyboardInterrupt):
        validate_masks(dataset, progress=interrupt)
    assert len(examined) < 30
