"""`real-camera` beside the published implementation, or beside what it is described to compute.

Four rows are held to arrays and statistics that imdeg's own code gave (tests/data/parity_real_camera.npz). For the
other twelve imdeg calls the authors' repository, which has no license; they are held to the formula of their
description, evaluated here in another way: double precision, one pixel or one region at a time.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from natural_images import make_natural

from crypsis.catalog import Entry, get_entry

DATA = np.load(Path(__file__).parent.parent / "data" / "parity_real_camera.npz", allow_pickle=False)
PICTURES = ("frog", "squirrel")
LUMA = np.array([0.299, 0.587, 0.114])
SEVERITIES = (1, 2, 3, 4, 5)

each_picture = pytest.mark.parametrize("image", [DATA[f"image {name}"] for name in PICTURES], ids=PICTURES)
each_severity = pytest.mark.parametrize("severity", SEVERITIES)


def row(term: str) -> Entry:
    return get_entry("Liu_IJCV_2024", term)


def degrade(term: str, image: np.ndarray, severity: int, key: object = 0) -> np.ndarray:
    return row(term).degrade(image, severity, seed=0, image_key=str(key)).astype(int)


def values(term: str, severity: int) -> dict[str, float]:
    return dict(row(term).parameters[severity - 1])


# --- beside imdeg's own code


@pytest.mark.parametrize("name", PICTURES)
@each_severity
def test_lens_shading(name: str, severity: int) -> None:
    ours = degrade("lens_shading_damage", DATA[f"image {name}"], severity)
    difference = abs(ours - DATA[f"lens_shading {name}"][severity - 1])
    assert difference.max() <= 1
    assert difference.mean() < 0.01


@pytest.mark.parametrize("name", PICTURES)
@each_severity
def test_color_space_conversion(name: str, severity: int) -> None:
    none, every = DATA[f"color_space {name}"].astype(int)
    ours = degrade("color_space_conversion_damage", DATA[f"image {name}"], severity)
    hit = abs(ours - every).max(axis=2) <= 1
    assert (hit | (abs(ours - none).max(axis=2) <= 1)).all()  # each pixel is imdeg's, hit or not


@each_severity
def test_share_of_pixels_hit(severity: int) -> None:
    none, every = DATA["color_space frog"].astype(int)
    apart = abs(none - every).max(axis=2) > 2
    image = DATA["image frog"]
    shares = [
        (abs(degrade("color_space_conversion_damage", image, severity, k) - every).max(axis=2) <= 1)[apart].mean()
        for k in range(40)
    ]
    assert np.mean(shares) == pytest.approx(DATA["color_space share"][severity - 1], abs=0.005)


@each_severity
def test_bytes_lost(severity: int) -> None:
    image = np.full((300, 400, 3), 200, np.uint8)
    lost = degrade("memory_exceptions", image, severity) == 0
    assert lost.mean() == pytest.approx(DATA["memory share"][severity - 1], abs=0.004)
    assert set(np.unique(degrade("memory_exceptions", image, severity))) == {0, 200}
    assert abs(np.corrcoef(lost.reshape(-1, 3).T) - np.eye(3)).max() < 0.02  # channels on their own
    assert abs(np.corrcoef(lost[:, 1:].ravel(), lost[:, :-1].ravel())[0, 1]) < 0.02  # and neighbors


def parts(severity: int, key: object) -> dict[str, np.ndarray | int]:
    """The three parts of a broken sensor, found in gray 100 of 200×300 pixels."""
    out = degrade("sensor_broken", np.full((200, 300, 3), 100, np.uint8), severity, key)
    black = (out == 0).all(axis=2)
    rows = np.flatnonzero(black.all(axis=1))
    lit = out[(rows.max() + 100) % 200 if rows.size else 0]
    return {
        "rows": rows, "black": black, "band": lit[:, 2] - 100, "spots": (out[:, :, 0] - out[:, :, 2] > 0), "out": out,
    }  # fmt: skip


def test_spots() -> None:
    excess = [parts(s, 1)["out"][:, :, 0] - parts(s, 1)["out"][:, :, 2] for s in SEVERITIES]
    for severity, (found, wanted) in enumerate(zip(excess, DATA["spot levels"], strict=True), 1):
        assert abs(found.max() - min(int(wanted), 155)) <= 1, severity  # gray 100 saturates at 155 more
    areas = [parts(1, k)["spots"].sum() / 3 for k in range(200)]
    reference = DATA["spot area and place"]
    assert np.mean(areas) == pytest.approx(reference[:, 0].mean(), rel=0.1)
    places = np.concatenate([np.argwhere(parts(1, k)["spots"]) for k in range(200)])
    assert places.mean(axis=0) == pytest.approx(reference[:, 1:].mean(axis=0), rel=0.1)
    assert places.std(axis=0) == pytest.approx(reference[:, 1:].std(axis=0), rel=0.1)


@pytest.mark.parametrize("severity", [2, 3, 4, 5])
def test_band(severity: int) -> None:
    profile = DATA["band profiles"][severity - 2]
    middles = []
    for key in range(150):
        found = parts(severity, key)
        band = found["band"]
        middle = int(band.argmax())
        assert np.array_equal(band[max(0, middle - 50) : middle + 51], profile[max(0, 50 - middle) :, 2])
        assert band.sum() == band[max(0, middle - 50) : middle + 51].sum()
        assert (found["out"][:, :, 1][~found["black"]] == 100).all()
        middles.append(middle)
    if severity == 5:
        assert np.mean(middles) == pytest.approx(DATA["band middle"].mean(), abs=10)
        assert np.std(middles) == pytest.approx(DATA["band middle"].std(), rel=0.12)
        assert min(middles) >= DATA["band middle"].min() - 3
        assert max(middles) <= DATA["band middle"].max() + 3


def test_band_of_narrow_images() -> None:
    gray = np.full((20, 90, 3), 100, np.uint8)
    middles = {int(degrade("sensor_broken", gray, 2, key)[0, :, 2].argmax()) for key in range(100)}
    assert middles == set(DATA["band middle, 90 wide"].tolist())


@pytest.mark.parametrize(("severity", "reach"), [(3, 25), (4, 32)])
def test_leak(severity: int, reach: int) -> None:
    drips, ends, middles = [], [], []
    for key in range(400):
        found = parts(severity, key)
        assert 1 <= len(found["rows"]) <= 2
        ends.append(end := found["rows"].max())
        below = found["black"][end + 1 :].sum(axis=0)
        touched = np.flatnonzero(below)
        if end < 150 and len(touched) == 2 * reach - 1:
            drips.append(below[touched])
            middles.append(touched.min() + reach - 1)
    mean, deviation = DATA[f"drips {reach}"]
    side = np.arange(2 * reach - 1) != reach - 1  # imdeg draws the middle column twice and keeps the longer drip
    assert abs(np.mean(drips, axis=0) - mean)[side].max() < 2  # the spread of the two means is 0.5
    assert abs((np.mean(drips, axis=0) - mean)[side].mean()) < 0.3
    assert abs(np.std(drips, axis=0) - deviation)[side].mean() < 0.3
    columns = DATA[f"leak middle {reach}"]
    assert np.mean(middles) == pytest.approx(columns.mean(), abs=12)
    assert np.std(middles) == pytest.approx(columns.std(), rel=0.12)
    assert np.mean(ends) == pytest.approx(DATA["leak row"].mean(), abs=10)


# --- beside the described formula


@pytest.mark.parametrize(
    ("shape", "clips"), [((46, 66), False), ((480, 640), False), ((37, 5000), True)], ids=lambda v: str(v)
)
@each_severity
def test_fog(shape: tuple[int, int], clips: bool, severity: int) -> None:
    height, width = shape
    image = np.resize(make_natural(46, 66, seed=1), (height, width, 3))
    pot = (0.05, 0.1, 0.15, 0.2, 0.25)[severity - 1]
    y, x = np.mgrid[:height, :width].astype(float)
    away = np.sqrt(max(height, width)) - 0.04 * np.hypot(y - height // 5, x - width // 2)
    assert clips == bool(away.min() < 0)
    t = np.minimum(np.exp(-pot * away), 1)[:, :, None]
    exact = 255 * (image / 255 * t + (0.85 - pot) * (1 - t))
    assert abs(degrade("fog", image, severity) - exact).max() < 0.501 + 1e-3


@each_picture
@each_severity
def test_focus_is_opencv_with_the_automatic_sigma(image: np.ndarray, severity: int) -> None:
    level = round(2 + (severity - 1) / 4 * 13)  # half to even
    exact = cv2.GaussianBlur(image, (2 * level - 1, 2 * level - 1), 0, borderType=cv2.BORDER_REFLECT_101)
    assert abs(degrade("focus_motor_damage", image, severity) - exact).max() <= 1


@each_picture
@each_severity
@pytest.mark.parametrize(("term", "channel"), [("insufficient_blc", 0), ("excessive_blc", 1)])
def test_black_level(image: np.ndarray, severity: int, term: str, channel: int) -> None:
    exact = 0.7 * image.astype(float)
    exact[:, :, channel] += 0.3 * round(64 + (severity - 1) / 4 * 191)
    assert abs(degrade(term, image, severity) - exact).max() < 0.501


@each_picture
@each_severity
def test_white_balance(image: np.ndarray, severity: int) -> None:
    p = 0.05 * severity
    mean = image.reshape(-1, 3).mean(axis=0) + np.array([0, 100 * p, 100 * p])
    exact = np.minimum(image * (int(mean.sum()) / 3 / mean), 255)
    assert np.array_equal(degrade("awb_damage", image, severity), np.floor(exact + 1e-6))


@each_picture
@each_severity
def test_gamma(image: np.ndarray, severity: int) -> None:
    gamma = (0.5, 1.125, 1.75, 2.375, 3.0)[severity - 1]
    assert abs(degrade("gamma_damage", image, severity) - 255 * (image / 255) ** gamma).max() < 0.501


@each_picture
@each_severity
def test_cfa_interpolation(image: np.ndarray, severity: int) -> None:
    ours = degrade("cfa_interpolation_damage", image, severity)
    gray = np.rint(image @ LUMA)[:, :, None]
    hit = abs(ours - gray).max(axis=2) <= 1
    kept = (ours == image).all(axis=2)
    assert (hit | kept).all()
    colored = abs(image - gray).max(axis=2) > 1
    assert hit[colored].mean() == pytest.approx(values("cfa_interpolation_damage", severity)["fraction"], abs=0.04)


@each_severity
def test_dead_pixels(severity: int) -> None:
    flat = np.full((300, 400, 3), (200, 150, 100), np.uint8)
    ours = degrade("bad_pixel_correction", flat, severity)
    dead = np.zeros((300, 400), bool)
    for channel, parity in ((0, (0, 0)), (2, (1, 1)), (1, (0, 1)), (1, (1, 0))):  # RGGB: a pixel's own channel
        dead[parity[0] :: 2, parity[1] :: 2] = ours[parity[0] :: 2, parity[1] :: 2, channel] == 0
    inner = dead[1:-1, 1:-1]
    assert inner.mean() == pytest.approx(values("bad_pixel_correction", severity)["fraction"], abs=0.006)
    # a missing red at a blue place is the mean of the four red ones around it
    red = ~dead[2:-2:2, 2:-2:2] * 50.0
    around = red[:-1, :-1] + red[1:, :-1] + red[:-1, 1:] + red[1:, 1:]
    assert abs(ours[3:-3:2, 3:-3:2, 0] - around).max() <= 0.5


@each_severity
def test_sensor_lines(severity: int) -> None:
    defects = (5, 14, 22, 31, 40)[severity - 1]
    gray = np.full((300, 400, 3), 100, np.uint8)
    ccd, cmos = degrade("ccd_sensor_damage", gray, severity), degrade("cmos_sensor_damage", gray, severity)
    white = (ccd == 255).all(axis=(0, 2))
    assert 0.85 * defects <= white.sum() <= defects  # a few coincide
    assert set(np.unique(ccd)) == {100, 255}
    assert set(np.unique(cmos)) == {0, 100, 255}
    mostly = (cmos == 0).all(axis=2)
    assert 0.8 * defects <= (mostly.mean(axis=0) > 0.6).sum() <= defects
    assert 0.8 * defects <= (mostly.mean(axis=1) > 0.6).sum() <= defects


@each_severity
def test_transfer_harness(severity: int) -> None:
    p = (0.05, 0.1625, 0.275, 0.3875, 0.5)[severity - 1]
    image = np.full((200, 300, 3), (90, 60, 30), np.uint8)
    y, cr, cb = cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb)[0, 0].tolist()

    def cleared(value: int) -> list[int]:
        digits = f"{value:b}".ljust(8, "0")
        return [int(digits[:i] + "0" + digits[i + 1 :], 2) for i in range(8)]

    every = np.array([[a, b, c] for a in cleared(y) for b in cleared(cr) for c in cleared(cb)], np.uint8)
    allowed = {tuple(v) for v in cv2.cvtColor(every[None], cv2.COLOR_YCrCb2RGB)[0].tolist()}
    intact = tuple(cv2.cvtColor(np.array([[[y, cr, cb]]], np.uint8), cv2.COLOR_YCrCb2RGB)[0, 0].tolist())
    ours = degrade("transfer_harness_exceptions", image, severity)
    assert {tuple(v) for v in ours.reshape(-1, 3).tolist()} <= allowed | {intact}
    hit = (ours != intact).any(axis=2)
    assert hit.any(axis=1).sum() == int(200 * p)
    assert hit.sum(axis=1).max() <= int(300 * p)
    # where all three cleared bits were 0 already, nothing shows
    seen = 1 - np.mean([tuple(v) == intact for v in cv2.cvtColor(every[None], cv2.COLOR_YCrCb2RGB)[0].tolist()])
    assert hit.mean() == pytest.approx(seen * int(200 * p) * int(300 * p) / 60000, rel=0.03)


@each_severity
def test_lens_obstruction(severity: int) -> None:
    drops = (50, 138, 225, 312, 400)[severity - 1]
    scale = 0.08 - drops / 10000
    image = make_natural(480, 640, seed=4)
    ours = degrade("lens_obstruction", image, severity)
    dimmed = np.clip(image - 0.3 * (image @ LUMA)[:, :, None], 0, 255)
    covered = (abs(ours - dimmed) > 1.5).any(axis=2)
    # half axes: height U(200, 370)·scale, width U(0.6, 0.8) of it; drops overlap at random, and leave the frame
    one = np.pi / 4 * (285**2 + 170**2 / 12) * 0.7 * scale**2 / covered.size
    assert covered.mean() == pytest.approx(1 - (1 - one) ** drops, rel=0.15)
    inside = ours[covered]
    assert inside.mean() == pytest.approx(dimmed.mean(), rel=0.1)
