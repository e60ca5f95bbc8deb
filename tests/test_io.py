from __future__ import annotations

import contextlib
import errno
import io
import os
import struct
import warnings
import zlib
from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.errors import ImageError, IncompleteError, InputError
from crypsis.io import (
    IMAGE_SUFFIXES,
    MAX_PIXELS,
    atomic_path,
    check_place,
    decode_image,
    decode_mask,
    encode_image,
    exif_orientation,
    file_digest,
    read_file,
    read_image,
    read_mask,
    write_atomic,
    write_image,
)

HEIGHT, WIDTH = 12, 20
OBJECT = np.zeros((HEIGHT, WIDTH), bool)
OBJECT[3:7, 4:11] = True
FULL = OBJECT.astype(np.uint8) * 255


def picture(mode: str = "RGB") -> PIL.Image.Image:
    values = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    image = PIL.Image.fromarray(cv2.GaussianBlur(values, (0, 0), 2))
    return PIL.Image.frombytes("LAB", image.size, image.tobytes()) if mode == "LAB" else image.convert(mode)


def saved(image: PIL.Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def with_orientation(image: PIL.Image.Image, kind: str, orientation: int) -> bytes:
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    return saved(image, kind, exif=exif)


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds next to nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("PNG", "RGB"),
        ("PNG", "L"),
        ("PNG", "1"),
        ("PNG", "P"),
        ("PNG", "LA"),
        ("PNG", "RGBA"),
        ("JPEG", "RGB"),
        ("JPEG", "L"),
        ("JPEG", "CMYK"),
        ("TIFF", "CMYK"),
        ("TIFF", "LAB"),
        ("BMP", "RGB"),
        ("WEBP", "RGBA"),
    ],
)
def test_every_kind_of_image_becomes_rgb(kind: str, mode: str) -> None:
    data = saved(picture(mode), kind)
    image = decode_image(data)
    assert (image.dtype, image.shape) == (np.uint8, (HEIGHT, WIDTH, 3))
    with PIL.Image.open(io.BytesIO(data)) as stored:
        expected = np.asarray(stored.convert("RGBA" if "A" in mode else "RGB").convert("RGB"))
    assert np.abs(image.astype(int) - expected).max() == 0
    if mode in ("L", "1", "LA"):
        assert (image == image[:, :, :1]).all()


def test_sixteen_bit_and_float_images_are_scaled() -> None:
    ramp = np.linspace(0, 65535, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH).astype(np.uint16)
    image = decode_image(saved(PIL.Image.fromarray(ramp), "PNG"))
    assert np.abs(image[:, :, 0] - ramp / 257.0).max() <= 0.5
    assert (image == image[:, :, :1]).all()
    unit = (ramp / 65535).astype(np.float32)
    assert np.abs(decode_image(saved(PIL.Image.fromarray(unit), "TIFF"))[:, :, 0] - unit * 255.0).max() <= 0.5001
    for values in (unit * 255, unit - 1, np.full_like(unit, np.nan)):
        with pytest.raises(ImageError, match=r"float pixels must lie in \[0, 1\]"):
            decode_image(saved(PIL.Image.fromarray(values), "TIFF"))


def test_alpha_and_transparent_colors_keep_their_color() -> None:
    image = picture("RGBA")
    image.putalpha(0)
    assert (decode_image(saved(image, "PNG")) == np.asarray(picture("RGB"))).all()
    palette = picture("P")
    data = saved(palette, "PNG", transparency=bytes(range(256)))
    assert (decode_image(data) == np.asarray(palette.convert("RGB"))).all()
    assert decode_mask(data).coding == "palette"


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_exif_orientation_is_applied_to_images_and_masks_alike(kind: str, orientation: int) -> None:
    truth = np.zeros((40, 100), np.uint8)
    truth[8:32, 90:100] = 255
    data = with_orientation(PIL.Image.fromarray(truth), kind, orientation)
    assert exif_orientation(data) == orientation
    turn = [
        lambda a: a,
        np.fliplr,
        lambda a: np.rot90(a, 2),
        np.flipud,
        np.transpose,
        lambda a: np.rot90(a, -1),
        lambda a: np.rot90(a, 2).T,
        np.rot90,
    ][orientation - 1]
    assert (decode_mask(data).mask == turn(truth > 128)).mean() > 0.99
    image = decode_image(data)
    assert ((image[:, :, 0] > 128) == turn(truth > 128)).mean() > 0.99


def test_a_rotated_photograph_reads_as_opencv_reads_it(tmp_path: Path) -> None:
    image = cv2.resize(np.asarray(picture()), (100, 40))
    data = with_orientation(PIL.Image.fromarray(image), "JPEG", 6)
    (tmp_path / "a.jpg").write_bytes(data)
    ours = read_image(tmp_path / "a.jpg")
    theirs = cv2.imread(str(tmp_path / "a.jpg"))[:, :, ::-1]
    assert ours.shape == theirs.shape == (100, 40, 3)
    assert np.abs(ours.astype(int) - theirs).max() <= 3
    # written again, nothing turns it a second time
    write_image(tmp_path / "b.jpg", ours)
    again = (tmp_path / "b.jpg").read_bytes()
    assert exif_orientation(again) == 1
    assert decode_image(again).shape == (100, 40, 3)
    assert cv2.imread(str(tmp_path / "b.jpg")).shape == (100, 40, 3)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"junk",
        png_header(3, 3),
        saved(picture(), "BMP"),
        with_orientation(picture(), "JPEG", 0),
        with_orientation(picture(), "JPEG", 9),
        saved(picture(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff"),
    ],
    ids=["empty", "junk", "png", "bmp", "zero", "nine", "damaged"],
)
def test_no_orientation_or_nonsense_is_one(data: bytes) -> None:
    assert exif_orientation(data) == 1


def palette_mask(colors: list[int]) -> PIL.Image.Image:
    image = PIL.Image.fromarray(OBJECT.astype(np.uint8)).convert("P")
    image.putpalette(colors)
    return image


def rgb_mask(color: tuple[int, int, int]) -> np.ndarray:
    return np.where(OBJECT[:, :, None], np.uint8(color), np.uint8(0))


MASKS: dict[str, tuple[PIL.Image.Image, str, str]] = {
    "1-bit": (PIL.Image.fromarray(FULL).convert("1"), "PNG", "1-bit"),
    "gray": (PIL.Image.fromarray(FULL), "PNG", "gray"),
    "gray bmp": (PIL.Image.fromarray(FULL), "BMP", "gray"),
    "0/1": (PIL.Image.fromarray(OBJECT.astype(np.uint8)), "PNG", "0/1"),
    "dark red palette": (palette_mask([0, 0, 0, 128, 0, 0]), "PNG", "palette"),
    "dark red palette, bmp": (palette_mask([0, 0, 0, 128, 0, 0]), "BMP", "palette"),
    "gray palette": (palette_mask([0, 0, 0, 255, 255, 255]), "PNG", "gray"),
    "gray palette, object first": (
        PIL.Image.fromarray((~OBJECT).astype(np.uint8)).convert("P"),
        "PNG",
        "gray",
    ),
    "identity palette": (palette_mask([0, 0, 0, 1, 1, 1]), "PNG", "0/1"),
    "rgb white": (PIL.Image.fromarray(rgb_mask((255, 255, 255))), "PNG", "gray"),
    "rgb 0/1": (PIL.Image.fromarray(rgb_mask((1, 1, 1))), "PNG", "0/1"),
    "rgb blue": (PIL.Image.fromarray(rgb_mask((0, 0, 255))), "PNG", "color"),
    "rgba opaque": (PIL.Image.fromarray(FULL).convert("RGBA"), "PNG", "gray"),
    "rgba cut out": (
        PIL.Image.fromarray(np.dstack([np.full((HEIGHT, WIDTH, 3), 200, np.uint8), FULL])),
        "PNG",
        "alpha",
    ),
    "la": (PIL.Image.fromarray(FULL).convert("LA"), "PNG", "gray"),
    "la cut out": (
        PIL.Image.merge("LA", (PIL.Image.new("L", (WIDTH, HEIGHT)), PIL.Image.fromarray(FULL))),
        "PNG",
        "alpha",
    ),
    "16-bit": (PIL.Image.fromarray(OBJECT.astype(np.uint16) * 65535), "PNG", "gray"),
    "16-bit of 8": (PIL.Image.fromarray(OBJECT.astype(np.uint16) * 255), "PNG", "gray"),
    "16-bit 0/1": (PIL.Image.fromarray(OBJECT.astype(np.uint16)), "PNG", "0/1"),
    "32-bit": (PIL.Image.fromarray(OBJECT.astype(np.int32) * 255), "TIFF", "gray"),
    "float unit": (PIL.Image.fromarray(OBJECT.astype(np.float32)), "TIFF", "gray"),
    "float of 8 bit": (PIL.Image.fromarray(OBJECT.astype(np.float32) * 255), "TIFF", "gray"),
    "cmyk": (PIL.Image.fromarray(FULL).convert("RGB").convert("CMYK"), "TIFF", "gray"),
    "webp": (PIL.Image.fromarray(FULL), "WEBP", "gray"),
}
MASKS["gray palette, object first"][0].putpalette([255, 255, 255, 0, 0, 0])


@pytest.mark.parametrize("name", MASKS)
def test_every_coding_of_a_mask(name: str) -> None:
    image, kind, coding = MASKS[name]
    found = decode_mask(saved(image, kind, **({"lossless": True} if kind == "WEBP" else {})))
    assert found.mask.dtype == np.bool_
    assert (found.mask == OBJECT).all()
    assert (found.coding, found.gray_pixels) == (coding, 0)


def test_a_jpeg_mask_counts_its_grays() -> None:
    found = decode_mask(saved(PIL.Image.fromarray(FULL), "JPEG", quality=30))
    assert found.coding == "gray"
    assert found.gray_pixels > 20
    assert (found.mask == OBJECT).mean() > 0.95


def test_the_threshold_lies_above_128() -> None:
    values = np.array([[0, 1, 127, 128, 129, 254, 255]], np.uint8)
    found = decode_mask(saved(PIL.Image.fromarray(values), "PNG"))
    assert found.mask.tolist() == [[False, False, False, False, True, True, True]]
    assert found.gray_pixels == 5


@pytest.mark.parametrize("value", [0, 255])
@pytest.mark.parametrize("mode", ["1", "L", "RGB", "RGBA", "LA"])
def test_empty_and_full_masks(mode: str, value: int) -> None:
    found = decode_mask(saved(PIL.Image.new("L", (5, 4), value).convert(mode), "PNG"))
    assert found.mask.shape == (4, 5)
    assert found.mask.all() == found.mask.any() == (value == 255)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "BMP"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_truncated_files_are_refused_whole(kind: str, share: float) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    data = saved(PIL.Image.fromarray(noise), kind)
    for decode in (decode_image, decode_mask):
        with pytest.raises(ImageError, match=r"^photo: "):
            decode(data[: int(len(data) * share)], "photo")


def test_sentences_for_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()
    with pytest.raises(ImageError, match=r"empty\.png: the file is empty\.$"):
        read_image(tmp_path / "empty.png")
    with pytest.raises(ImageError, match=r"gone\.png: cannot be read \(No such file or directory\)\.$"):
        read_mask(tmp_path / "gone.png")
    with pytest.raises(ImageError, match="cannot be read"):
        read_file(tmp_path)
    for data in (b"GIF89a" + bytes(40), b"not an image", saved(picture("P"), "GIF")):
        with pytest.raises(ImageError, match=r"x: not an image that can be read here \(BMP, JPEG, PNG, TIFF, WEBP\)"):
            decode_image(data, "x")


@pytest.mark.parametrize("size", [(100_000, 100_000), (20_000, 10_001), (17_000, 11_000)])
def test_a_huge_size_is_refused_before_decoding(size: tuple[int, int]) -> None:
    for decode in (decode_image, decode_mask):
        with pytest.raises(ImageError) as caught:
            decode(png_header(*size), "bomb")
        assert str(caught.value).startswith("bomb: ")
        assert f"{MAX_PIXELS:,}" in str(caught.value)


@given(st.binary(max_size=200), st.sampled_from(["", "JPEG", "PNG", "TIFF", "WEBP", "BMP"]))
@settings(deadline=None, max_examples=150)
def test_damaged_bytes_give_an_image_or_an_image_error(junk: bytes, kind: str) -> None:
    data = bytearray(saved(picture(), kind) if kind else b"")
    data[len(data) // 3 : len(data) // 3 + len(junk)] = junk
    for decode in (decode_image, decode_mask):
        with contextlib.suppress(ImageError):  # anything else is a bug
            decode(bytes(data), "x")


def test_reading_leaves_warning_filters_alone(tmp_path: Path) -> None:
    before = list(warnings.filters)
    write_image(tmp_path / "a.png", np.asarray(picture()))
    read_image(tmp_path / "a.png")
    read_mask(tmp_path / "a.png")
    assert warnings.filters == before


@pytest.mark.parametrize("suffix", sorted(IMAGE_SUFFIXES))
@pytest.mark.parametrize("gray", [False, True])
def test_written_images_come_back(tmp_path: Path, suffix: str, gray: bool) -> None:
    image = np.asarray(picture("L" if gray else "RGB"))[:, ::-1]
    path = tmp_path / "ünï 目录" / f"{'n' * 200}{suffix.upper()}"
    write_image(path, image, quality=100)
    back = read_image(path)
    expected = np.repeat(image[:, :, None], 3, axis=2) if gray else image
    assert np.abs(back.astype(int) - expected).max() <= (3 if suffix in (".jpg", ".jpeg") else 0)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_what_cannot_be_encoded() -> None:
    with pytest.raises(ImageError, match=r"'\.gif' cannot be written; use one of \.bmp, \.jpeg"):
        encode_image(np.zeros((4, 4, 3), np.uint8), ".gif")
    for suffix, kind in ((".jpg", "JPEG"), (".webp", "WEBP")):
        with pytest.raises(ImageError, match=rf"70000×1 pixels cannot be written as {kind} \(.*\); use \.png\."):
            encode_image(np.zeros((1, 70_000, 3), np.uint8), suffix)


def test_a_file_is_replaced_whole_or_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.bin"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"

    def stop(error: BaseException) -> None:
        with atomic_path(path) as temporary:
            temporary.write_bytes(b"half")
            raise error

    with pytest.raises(RuntimeError, match="stop"):
        stop(RuntimeError("stop"))
    with pytest.raises(KeyboardInterrupt):
        stop(KeyboardInterrupt())
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["a.bin"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("step", ["write", "rename"])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, step: str) -> None:
    path = tmp_path / "a.bin"
    write_atomic(path, b"old")

    def write_half(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(code, os.strerror(code))

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(
            Path, "write_bytes" if step == "write" else "replace", write_half if step == "write" else refuse
        )
        with pytest.raises(IncompleteError, match=r"a\.bin: cannot be written: no space is left on the disk") as caught:
            write_atomic(path, b"new contents")
    assert caught.value.exit_code == 3
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_an_unwritable_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IncompleteError, match=r"cannot be written: .* make the place writable"):
        write_atomic(tmp_path / "file" / "a.bin", b"x")

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", refuse)
        with pytest.raises(IncompleteError, match="Permission denied; make the place writable"):
            write_atomic(tmp_path / "locked" / "a.bin", b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_digest_is_of_the_content(tmp_path: Path) -> None:
    for name, content in (("a", b"12"), ("b", b"12"), ("c", b"21")):
        (tmp_path / name).write_bytes(content)
    a, b, c = (file_digest(tmp_path / name) for name in "abc")
    assert a == b != c
    assert file_digest(tmp_path / "absent") is file_digest(tmp_path) is None


def test_an_image_is_read_by_the_text_of_its_path(tmp_path: Path) -> None:
    write_image(tmp_path / "a.png", np.full((4, 5, 3), 7, np.uint8))
    assert read_image(str(tmp_path / "a.png")).shape == (4, 5, 3)
    with pytest.raises(ImageError, match="cannot be read"):
        read_image(str(tmp_path / "absent.png"))


def test_a_place_is_looked_at_before_the_work(tmp_path: Path) -> None:
    check_place(tmp_path / "new" / "deep" / "a.json", "--out")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.json").write_text("{}")
    check_place(tmp_path / "a.json", "--out")
    with pytest.raises(InputError, match="is a folder; --out names a file"):
        check_place(tmp_path, "--out")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is no regular file; --out names one"):
        check_place(tmp_path / "pipe", "--out")
    with pytest.raises(InputError, match=r"a\.json.b: cannot be written .*name another place for --out"):
        check_place(tmp_path / "a.json" / "b", "--out")


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is no regular file"):
        write_atomic(tmp_path / "pipe", b"1")
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
