"""Weather between the scene and the lens."""

from __future__ import annotations

import math
import os
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..io import read_image
from ..types import Image
from .bands import bands
from .blur import gaussian_blur, pace, smear
from .noise import normal_field
from .rounding import FLOOR, floor_to_uint8
from .tone import linear

__all__ = [
    "distance_fog",
    "frost",
    "plasma_fog",
    "rain",
    "snow",
    "spatter",
    "white_veil",
]

_SHORT_SIDE = 480  # pixels; the size rain's lengths are given for
_MIN_SCALE = 1 / 8  # below a short side of 60 pixels, streaks would be too thin to be streaks
_MAX_TILT = 20.0  # degrees from vertical
_BLOCK = 128  # drops drawn at once: temporaries stay in the cache
_STREAK_GRAY = 200  # what an opaque streak looks like: lighter than most scenes, darker than a bright sky


def white_veil(image: Image, *, alpha: float) -> Image:
    """Blend with white: (1 − alpha)·x + alpha·255, rounded half up; a fog of equal density everywhere.

    Args:
        image: uint8 H×W×3, RGB.
        alpha: share of white, 0..1.

    Returns:
        The veiled image, as new memory.

    Raises:
        InputError: `alpha` is not in [0, 1].
    """
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha is a share from 0 to 1; got {alpha!r}.")
    return linear(image, scale=1 - alpha, offset=255 * alpha)


def _streaks(
    height: int, width: int, *, density: float, length: float, thickness: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return how much of each pixel is covered by streaks, H×W, 0 and more; units as in `rain`, scaled."""
    tilt = math.radians(rng.uniform(-_MAX_TILT, _MAX_TILT))
    drops = rng.random((round(density * height * width), 3))  # one row a drop: fewer drops are the first of more
    drops = drops[drops[:, 2].argsort(kind="stable")]  # alike lengths together, so that few rows are empty
    cover = np.zeros(height * width, np.float32)
    for part in range(0, len(drops), _BLOCK):
        block = drops[part : part + _BLOCK]
        x0, y0 = block[:, :1] * width, block[:, 1:2] * height
        size = 0.4 + 1.1 * block[:, 2:] ** 2  # many far drops, few near ones
        fall = size * (length * math.cos(tilt))
        # A drop meets its pixel rows one by one; in each it covers a part of the row's height (its ends are
        # fractions) and, in width, a share of the two pixels beside its axis. What leaves the frame on one side
        # comes in on the other, so that streaks are as dense at the border as inside.
        row = np.floor(y0) + np.arange(math.ceil(fall[-1, 0]) + 1)
        upper = np.maximum(row, y0)
        lower = np.minimum(row + 1, y0 + fall)
        middle = (upper + lower) / 2 - y0
        along = middle / fall
        ink = np.maximum(lower - upper, 0) * np.maximum(4 * along * (1 - along), 0)  # the ends fade
        ink *= thickness * 1.2 * np.minimum(size, 1)
        axis = x0 + middle * math.tan(tilt)
        left = np.floor(axis)
        share = axis - left
        start = row.astype(np.intp) % height * width
        column = left.astype(np.intp)
        np.add.at(cover, (start + column % width).ravel(), (ink - ink * share).astype(np.float32).ravel())
        np.add.at(cover, (start + (column + 1) % width).ravel(), (ink * share).astype(np.float32).ravel())
    return cover.reshape(height, width)


def rain(
    image: Image,
    *,
    density: float,
    length: float,
    thickness: float,
    opacity: float,
    veil: float,
    blur: float,
    rng: np.random.Generator,
) -> Image:
    """Let it rain: the scene is blurred a little and darkened, and light streaks fall in front of it.

    All streaks of an image share one direction, drawn evenly from ±20° around the vertical. Each has a place, and
    a nearness r (the square of a uniform number) that makes it 0.4 + 1.1 r times as long as `length`, and as
    opaque up to full; it fades towards both ends. Streaks are drawn with sub-pixel precision and blended over the
    scene with gray 200. Pixel sizes are given for a short side of 480 and scale with the image (down to a short
    side of 60; smaller images are treated as if 60), so that an image and its enlargement show the same rain.
    Generators in the same state give nested rain: the drops at a lower density are the first of those at a
    higher one.

    Args:
        image: uint8 H×W×3, RGB.
        density: streaks per pixel, ≥ 0.
        length: length of a streak of middle size in pixels, > 0.
        thickness: width of a streak in pixels, > 0.
        opacity: opacity of a fully covered pixel, 0..1.
        veil: factor on the scene's brightness, 0..1.
        blur: standard deviation of the blur of the scene in pixels, > 0.
        rng: source of direction and places.

    Returns:
        The rainy image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if not (0 <= density < 1 and 0 < length < np.inf and 0 < thickness < np.inf and 0 < blur < np.inf):
        raise InputError("rain needs a density from 0 to 1, and length, thickness and blur of more than 0 pixels.")
    if not (0 <= opacity <= 1 and 0 <= veil <= 1):
        raise InputError(f"opacity and veil are shares from 0 to 1; got {opacity!r} and {veil!r}.")
    height, width = image.shape[:2]
    scale = max(min(height, width) / _SHORT_SIDE, _MIN_SCALE)
    cover = _streaks(
        height,
        width,
        density=density / scale**2,
        length=length * scale,
        thickness=thickness * scale,
        rng=rng,
    )
    spread = 0.45 * thickness * scale  # gives the one-pixel axis its thickness
    side = 2 * math.ceil(3 * spread) + 1
    thick = cv2.GaussianBlur(cover, (side, side), spread, borderType=cv2.BORDER_REPLICATE)
    full = 255 * opacity
    _, mask = cv2.threshold(cv2.convertScaleAbs(thick, alpha=full), full, full, cv2.THRESH_TRUNC)
    clear, light = cv2.bitwise_not(mask), cv2.convertScaleAbs(mask, alpha=_STREAK_GRAY / 255)
    scene = gaussian_blur(image, sigma=blur * scale)
    three = cv2.merge([clear, clear, clear])
    behind = cv2.multiply(scene, three, dst=scene, scale=veil / 255)
    return np.asarray(cv2.add(behind, cv2.merge([light, light, light], dst=three), dst=behind), np.uint8)


def distance_fog(image: Image, *, density: float, airlight: float) -> Image:
    """Blend with gray by distance, as seen along a road: thinner away from a point in the upper middle.

    The transmission is t = exp(−density·d), at most 1, with d = √max(H, W) − 0.04·r and r the distance in pixels
    from row ⌊H/5⌋, column ⌊W/2⌋; the result is t·x + (1 − t)·255·airlight. Fog therefore grows with the image's
    size: at equal density an image and its enlargement differ.

    Args:
        image: uint8 H×W×3, RGB.
        density: extinction for one unit of d, ≥ 0.
        airlight: brightness of the fog, 0..1.

    Returns:
        The foggy image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if not (0 <= density < np.inf and 0 <= airlight <= 1):
        raise InputError(f"density is 0 or more, airlight from 0 to 1; got {density!r} and {airlight!r}.")
    height, width = image.shape[:2]
    across = np.square(np.arange(width, dtype=np.float32) - width // 2)
    down = np.square(np.arange(height, dtype=np.float32) - height // 5)[:, None]
    near, slope = np.float32(-density * math.sqrt(max(height, width))), np.float32(0.04 * density)
    foggy = np.empty(image.shape, np.uint8)
    for rows in bands(height, width):
        exponent = np.sqrt(across + down[rows])
        exponent *= slope
        exponent += near
        clear = np.exp(np.minimum(exponent, 0, out=exponent), out=exponent)
        veil = (1 - clear) * np.float32(255 * airlight)
        # in one type throughout: OpenCV 4 takes many times as long to multiply bytes by floats
        scene = cv2.multiply(image[rows].astype(np.float32), cv2.merge([clear, clear, clear]))
        foggy[rows] = cv2.convertScaleAbs(cv2.add(scene, cv2.merge([veil, veil, veil]), dst=scene))
    return foggy


def _lengthened(layer: NDArray[np.float32], factor: float) -> NDArray[np.float32]:
    """Enlarge the rows' axis by linear interpolation, see `pace`."""
    length = len(layer)
    place = np.arange(round(length * factor)) * pace(length, factor)
    above = np.minimum(place.astype(np.intp), length - 1)
    share = (place - above).astype(np.float32)[:, None]
    first = layer[above]
    slope: NDArray[np.float32] = layer[np.minimum(above + 1, length - 1)]
    slope -= first
    slope *= share
    slope += first
    return slope


def snow(
    image: Image,
    *,
    mean: float,
    std: float,
    zoom: float,
    threshold: float,
    blur_radius: int,
    blur_sigma: float,
    blend: float,
    rng: np.random.Generator,
) -> Image:
    """Let it snow: the scene is bleached, and flakes fall in front of it, as in ImageNet-C.

    Flakes are normal noise, enlarged, of which values below a threshold are taken out; they are smeared upwards in
    one direction per image, within 45° of the vertical, and rounded to 8 bits. The same layer turned by 180° is
    added. The scene becomes blend·x + (1 − blend)·max(x, 1.5·gray(x) + 127.5). The sum is clipped and rounded down.
    Generators in the same state give the same direction, and some flakes in the same places at every enlargement.

    Args:
        image: uint8 H×W×3, RGB.
        mean: of the noise, on a scale where 1 is white.
        std: standard deviation of the noise, ≥ 0.
        zoom: enlargement of the noise, ≥ 1.
        threshold: what is less is no flake.
        blur_radius: half the length of a flake's trail in pixels, ≥ 0.
        blur_sigma: how fast the trail fades, in pixels, > 0.
        blend: share of the scene that is not bleached, 0..1.
        rng: source of direction and flakes.

    Returns:
        The snowy image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if not (1 <= zoom < np.inf and 0 < blur_sigma < np.inf and blur_radius >= 0 and std >= 0 and 0 <= blend <= 1):
        raise InputError("snow needs zoom ≥ 1, blur_sigma > 0, blur_radius ≥ 0, std ≥ 0, and blend from 0 to 1.")
    height, width = image.shape[:2]
    angle = rng.uniform(-135, -45)
    places = [(np.arange(math.ceil(side / zoom)) * zoom).astype(np.intp) for side in (height, width)]
    noise = normal_field(height, width, rng=rng)[np.ix_(*places)]
    noise *= np.float32(std)
    noise += np.float32(mean)
    wide = np.ascontiguousarray(_lengthened(np.ascontiguousarray(noise.T), zoom).T)
    layer = _lengthened(wide, zoom)
    cv2.threshold(layer, threshold, 0, cv2.THRESH_TOZERO, dst=layer)
    trails = smear(np.minimum(layer, 1, out=layer), radius=blur_radius, sigma=blur_sigma, angle=angle)
    flakes = cv2.convertScaleAbs(trails[:height, :width], alpha=255)
    flakes = cv2.add(flakes, cv2.rotate(flakes, cv2.ROTATE_180))
    snowy = np.empty(image.shape, np.uint8)
    for rows in bands(height, width, pixels=1 << 15):
        scene = image[rows].astype(np.float32)
        light = np.asarray(cv2.cvtColor(scene, cv2.COLOR_RGB2GRAY), np.float32) * np.float32(1.5) + np.float32(127.5)
        pale = cv2.max(scene, cv2.merge([light, light, light]))
        base = floor_to_uint8(np.asarray(cv2.addWeighted(scene, blend, pale, 1 - blend, 0), np.float32))
        snowy[rows] = cv2.add(base, cv2.merge([flakes[rows]] * 3))
    return snowy


_FROST = (
    # height, width, mean red, green and blue, standard deviation of gray
    (600, 900, (78, 149, 166), 18),
    (315, 560, (201, 205, 215), 22),
    (315, 560, (201, 205, 215), 22),
    (350, 527, (138, 153, 165), 29),
    (495, 660, (112, 123, 135), 43),
)
"""Size and colors of the five photographs that ImageNet-C chooses from, which are measured facts about them."""
_FROST_FILES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
_NUCLEI = 60  # ice crystals in a texture
_BANKS = 8  # directions of fibers, over 180°


def _value_noise(height: int, width: int, cell: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return random numbers of mean 0 on a grid of `cell` pixels, interpolated to float32 H×W."""
    rows, columns = math.ceil(height / cell) + 1, math.ceil(width / cell) + 1
    grid = rng.random((rows, columns), dtype=np.float32) - np.float32(0.5)
    size = round(columns * cell), round(rows * cell)
    return np.asarray(cv2.resize(grid, size, interpolation=cv2.INTER_CUBIC)[:height, :width], np.float32)


@lru_cache(maxsize=len(_FROST))
def _frost_texture(index: int) -> Image:
    """Return a picture of frost: ice crystals that grew from nuclei, each with fibers along six arms.

    Every pixel belongs to its nearest nucleus, in coordinates bent by smooth noise. Its fiber runs at 60° to the
    nearest of the crystal's six arms, away from it, and shows as noise filtered along that direction. Borders
    between crystals are light, and noise of two scales varies the thickness of the ice. The result has the size,
    mean color and contrast of the published photograph of that index.
    """
    height, width, color, contrast = _FROST[index]
    short = min(height, width)
    rng = np.random.Generator(np.random.SFC64(index))
    reach = round(0.03 * short)
    fibers = np.empty((_BANKS, height, width), np.float32)
    for bank in range(_BANKS):
        line = np.zeros((2 * reach + 1, 2 * reach + 1), np.float32)
        angle = math.pi * bank / _BANKS
        end = round(reach * math.cos(angle)), round(reach * math.sin(angle))
        cv2.line(line, (reach - end[0], reach - end[1]), (reach + end[0], reach + end[1]), 1.0)
        fiber = cv2.filter2D(normal_field(height, width, rng=rng), -1, line)
        fibers[bank] = fiber / fiber.std()
    bend = 0.06 * short * 2
    x = np.arange(width, dtype=np.float32) + bend * _value_noise(height, width, short / 2.2, rng)
    y = np.arange(height, dtype=np.float32)[:, None] + bend * _value_noise(height, width, short / 2.2, rng)
    nuclei = (rng.random((_NUCLEI, 2)) * 1.1 - 0.05) * (width, height)
    axes = rng.random(_NUCLEI) * math.pi / 3
    nearest = np.full((height, width), np.inf, np.float32)
    second = nearest.copy()
    owner = np.zeros((height, width), np.intp)
    for number, (left, top) in enumerate(nuclei):
        distance = (x - np.float32(left)) ** 2 + (y - np.float32(top)) ** 2
        owner[distance < nearest] = number
        second = np.minimum(second, np.maximum(nearest, distance))
        nearest = np.minimum(nearest, distance)
    rim = np.sqrt(second) - np.sqrt(nearest)
    polar = np.arctan2(y - nuclei[owner, 1], x - nuclei[owner, 0]) - axes[owner]
    arm = np.rint(polar / (math.pi / 3))
    direction = axes[owner] + (arm + np.sign(polar - arm * math.pi / 3)) * (math.pi / 3)
    bank = np.rint(direction / (math.pi / _BANKS)).astype(np.intp) % _BANKS
    fiber = np.maximum(np.take_along_axis(fibers, bank[None], axis=0)[0], -0.2)
    fiber = cv2.GaussianBlur(fiber, (0, 0), 1.0)
    ice = 0.5 * fiber / fiber.std() + 0.4 * np.exp(rim / (-0.006 * short))
    ice += 3.5 * _value_noise(height, width, short / 2.2, rng) + 0.8 * _value_noise(height, width, short / 30, rng)
    ice = contrast * (ice - ice.mean()) / ice.std()
    channels = [np.clip(ice + mean, 0, 255) for mean in color]
    texture = np.stack(channels, axis=2).astype(np.uint8)
    texture.flags.writeable = False
    return texture


@lru_cache(maxsize=len(_FROST_FILES))
def _frost_photograph(path: Path) -> Image:
    """Read a texture of the user's."""
    texture = read_image(path)
    texture.flags.writeable = False
    return texture


_FROST_SPARE = 4  # times the image (and a million pixels): how large the enlarged picture may be


def frost(
    image: Image,
    *,
    image_weight: float,
    frost_weight: float,
    textures: str | os.PathLike[str] | None = None,
    rng: np.random.Generator,
) -> Image:
    """Add a picture of ice crystals: image_weight·x + frost_weight·frost, clipped, rounded down.

    One of five pictures is drawn, enlarged to cover the image with 10 % to spare (never shrunk, bicubic) and cut at
    a random place, as in ImageNet-C. Its photographs are of unknown origin and not part of this package: without
    `textures` the pictures are computed, with the photographs' sizes, mean colors and contrasts. Numbers measured
    with them are near published ones and not equal to them.

    Args:
        image: uint8 H×W×3, RGB.
        image_weight: factor on the image, ≥ 0.
        frost_weight: factor on the picture of frost, ≥ 0.
        textures: folder with frost1.png, frost2.png, frost3.png, frost4.jpg and frost5.jpg to be used instead.
        rng: source of picture and place.

    Returns:
        The frosted image, as new memory.

    Raises:
        InputError: a weight is negative or not finite.
        ImageError: a file of `textures` is missing or no image.
    """
    if not (0 <= image_weight < np.inf and 0 <= frost_weight < np.inf):
        raise InputError(f"weights are factors, 0 or more; got {image_weight!r} and {frost_weight!r}.")
    index = int(rng.integers(5))
    texture = _frost_texture(index) if textures is None else _frost_photograph(Path(textures) / _FROST_FILES[index])
    height, width = image.shape[:2]
    rows, columns = texture.shape[:2]
    scale = 1.1 * max(1.0, height / rows, width / columns)
    size = math.ceil(columns * scale), math.ceil(rows * scale)
    top, left = (int(n) for n in rng.integers(0, (size[1] - height, size[0] - width)))
    if size[0] * size[1] <= _FROST_SPARE * (height * width + (1 << 20)):
        large = cv2.resize(texture, size, interpolation=cv2.INTER_CUBIC)
        ice = large[top : top + height, left : left + width]
    else:  # of a thin image's picture hardly anything is cut out: only that is enlarged
        x, y = columns / size[0], rows / size[1]
        place = np.array([[x, 0, (left + 0.5) * x - 0.5], [0, y, (top + 0.5) * y - 0.5]])
        way = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
        ice = cv2.warpAffine(texture, place, (width, height), flags=way, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.addWeighted(image, image_weight, ice, frost_weight, FLOOR), np.uint8)


def _octave(grid: NDArray[np.float32], spread: float, rng: np.random.Generator, *, wraps: bool) -> NDArray[np.float32]:
    """Halve the distance of points by a step of diamond-square: each new one is its four neighbors' mean plus noise.

    Args:
        grid: (h+2)×(w+2) points; those of the outer rows and columns count as neighbors only.
        spread: noise is even within ±spread.
        rng: source of the noise.
        wraps: the first row and column of the inside are the neighbors of the last, too.

    Returns:
        float32 2h×2w, with the points of the grid's inside at even places.
    """

    def noise(shape: tuple[int, ...]) -> NDArray[np.float32]:
        values = rng.random(shape, dtype=np.float32)
        values -= np.float32(0.5)
        values *= np.float32(2 * spread)
        return values

    height, width = grid.shape[0] - 2, grid.shape[1] - 2
    inside = grid[1:-1, 1:-1]
    quarter = grid * np.float32(0.25)
    square = noise((height + 1, width + 1))
    square += quarter[:-1, :-1]
    square += quarter[1:, :-1]
    square += quarter[:-1, 1:]
    square += quarter[1:, 1:]
    if wraps:
        square[0], square[:, 0] = square[-1], square[:, -1]
    half = square * np.float32(0.25)
    across, down = noise((height, width)), noise((height, width))
    across += quarter[1:-1, 1:-1]
    across += quarter[1:-1, 2:]
    across += half[1:, 1:]
    across += half[:-1, 1:]
    down += quarter[1:-1, 1:-1]
    down += quarter[2:, 1:-1]
    down += half[1:, 1:]
    down += half[1:, :-1]
    fine = np.empty((2 * height, 2 * width), np.float32)
    fine[::2, ::2], fine[::2, 1::2], fine[1::2, ::2], fine[1::2, 1::2] = inside, across, down, square[1:, 1:]
    return fine


def _plasma(height: int, width: int, decay: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return a cloud: the top left H×W of a square diamond-square map, in 0..1 over the whole map.

    The map's side is the power of two from max(H, W), 3 up; it wraps round. Noise starts at ±100² and shrinks by
    decay² from octave to octave. The last two octaves, whose noise hardly counts for the map's range, are made only
    where they show; in images more than 16 times as long as wide, more of them are.
    """
    grid = np.zeros((1, 1), np.float32)
    side = 1 << (max(height, width, 3) - 1).bit_length()
    cut = 2
    while (side >> cut) ** 2 > 4 * height * width + (1 << 20):
        cut += 1
    wibble = 100.0
    while len(grid) << cut < side:
        grid = _octave(np.pad(grid, 1, mode="wrap"), wibble**2, rng, wraps=True)
        wibble /= decay
    # which points of each octave are needed, from the last to the grid: an octave doubles all but its outer ones
    needed = [[(0, height), (0, width)]]
    for _ in range(cut):
        needed.append([(low // 2 - 1, (high + 1) // 2 + 1) for low, high in needed[-1]])
    down, across = (np.arange(*ends) for ends in needed[-1])
    cloud = grid.take(down, 0, mode="wrap").take(across, 1, mode="wrap")
    low, high = float(grid.min()), float(grid.max())
    for inner, outer in zip(needed[-2::-1], needed[:0:-1], strict=True):
        cloud = _octave(cloud, wibble**2, rng, wraps=False)
        wibble /= decay
        rows, columns = (slice(a - 2 * (o + 1), b - 2 * (o + 1)) for (a, b), (o, _) in zip(inner, outer, strict=True))
        cloud = cloud[rows, columns]
        low, high = min(low, float(cloud.min())), max(high, float(cloud.max()))
    cloud = cloud - np.float32(low)
    cloud *= np.float32(1 / (high - low))
    return cloud


def plasma_fog(image: Image, *, weight: float, wibble_decay: float, rng: np.random.Generator) -> Image:
    """Add a cloud and dim the sum back: (x + 255·weight·cloud)·m/(m + weight), as in ImageNet-C.

    m is the image's maximum on 0..1, so the lightest value stays about where it is, and black stays black
    throughout. The cloud, a diamond-square map, does not know the scene's depth; how large its billows are against
    the image jumps where the longer side passes a power of two. The result is rounded down.

    Args:
        image: uint8 H×W×3, RGB.
        weight: of the cloud, ≥ 0.
        wibble_decay: by what the cloud's roughness is divided from octave to octave, > 0; less is rougher.
        rng: source of the cloud.

    Returns:
        The foggy image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if not (0 <= weight < np.inf and 0 < wibble_decay < np.inf):
        raise InputError(f"weight is 0 or more, wibble_decay more than 0; got {weight!r} and {wibble_decay!r}.")
    height, width = image.shape[:2]
    cloud = _plasma(height, width, wibble_decay, rng)
    most = int(image.max()) / 255
    dim = most / (most + weight) if most else 0.0
    foggy = np.empty(image.shape, np.uint8)
    for rows in bands(height, width):
        veil = cloud[rows] * np.float32(255 * weight * dim)
        scene = image[rows].astype(np.float32)
        scene *= np.float32(dim)
        scene += cv2.merge([veil] * 3)
        foggy[rows] = floor_to_uint8(scene)
    return foggy


_WATER = (175, 238, 238)
_MUD = (63, 42, 20)
_EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)


def _water(image: Image, liquid: NDArray[np.float32], intensity: float) -> Image:
    """Add light where there is liquid, more of it inside drops; `liquid` is 0 where it is dry."""
    amount = floor_to_uint8(255 * np.maximum(liquid, 0))
    apart = cv2.distanceTransform(cv2.bitwise_not(cv2.Canny(amount, 50, 150)), cv2.DIST_L2, 5)
    depth = cv2.equalizeHist(floor_to_uint8(np.asarray(cv2.blur(np.minimum(apart, 20), (3, 3)), np.float32)))
    depth = cv2.blur(cv2.filter2D(depth, cv2.CV_8U, _EMBOSS), (3, 3))
    light = amount.astype(np.float32) * np.asarray(depth, np.float32)
    most = float(light.max())
    share = intensity / most if most else 0.0
    colors = [floor_to_uint8(light * np.float32(share * level)) for level in _WATER]
    return np.asarray(cv2.add(image, cv2.merge(colors)), np.uint8)


def _mud(image: Image, wet: NDArray[np.float32], mask_sigma: float) -> Image:
    """Cover with brown where it is wet (1) and not dry (0)."""
    side = 2 * math.ceil(4 * mask_sigma) + 1
    cover = np.asarray(cv2.GaussianBlur(wet, (side, side), mask_sigma, borderType=cv2.BORDER_REPLICATE), np.float32)
    cv2.threshold(cover, 0.8, 0, cv2.THRESH_TOZERO, dst=cover)
    muddy = np.empty(image.shape, np.uint8)
    for rows in bands(*image.shape[:2]):
        clear = 1 - cover[rows]
        scene = image[rows].astype(np.float32)
        scene *= cv2.merge([clear] * 3)
        scene += cv2.merge([cover[rows] * np.float32(level) for level in _MUD])
        muddy[rows] = floor_to_uint8(scene)
    return muddy


def spatter(
    image: Image,
    *,
    mean: float,
    std: float,
    blur_sigma: float,
    threshold: float,
    intensity: float | None = None,
    mask_sigma: float | None = None,
    rng: np.random.Generator,
) -> Image:
    """Splash water or mud on the lens, as in ImageNet-C.

    Liquid is blurred normal noise above a threshold. With `intensity` it is water: light is added in proportion to
    the liquid, in 8 bits, times the distance from the edges of drops (up to 20 pixels), which is smoothed,
    equalized and embossed; the lightest place gets `intensity` times (175, 238, 238). With `mask_sigma` it is mud:
    the mask of the liquid is blurred, set to 0 below 0.8, and is the opacity of (63, 42, 20) over the image.
    Results are rounded down. Without any liquid the image stays as it is.

    Args:
        image: uint8 H×W×3, RGB.
        mean: of the noise.
        std: standard deviation of the noise, ≥ 0.
        blur_sigma: standard deviation of the blur of the noise in pixels, > 0.
        threshold: up to which it is dry.
        intensity: of water, 0..1.
        mask_sigma: instead, of mud: standard deviation of the blur of its mask in pixels, > 0.
        rng: source of the noise.

    Returns:
        The splashed image, as new memory.

    Raises:
        InputError: a parameter is out of its range, or not one of `intensity` and `mask_sigma` is given.
    """
    if not (0 <= std < np.inf and 0 < blur_sigma < np.inf):
        raise InputError(f"std is 0 or more, blur_sigma more than 0; got {std!r} and {blur_sigma!r}.")
    noise = normal_field(*image.shape[:2], rng=rng)
    noise *= np.float32(std)
    noise += np.float32(mean)
    side = 2 * math.ceil(4 * blur_sigma) + 1
    soft = cv2.GaussianBlur(noise, (side, side), blur_sigma, borderType=cv2.BORDER_REPLICATE)
    liquid = np.asarray(soft, np.float32)
    if intensity is not None and mask_sigma is None and 0 <= intensity <= 1:
        cv2.threshold(liquid, threshold, 0, cv2.THRESH_TOZERO, dst=liquid)
        return _water(image, liquid, intensity)
    if intensity is None and mask_sigma is not None and 0 < mask_sigma < np.inf:
        return _mud(image, (liquid > threshold).astype(np.float32), mask_sigma)
    raise InputError(
        f"spatter needs an intensity from 0 to 1 for water, or a mask_sigma above 0 for mud; got {intensity!r} and "
        f"{mask_sigma!r}."
    )
