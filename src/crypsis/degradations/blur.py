"""Loss of fine detail by averaging."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Image
from .bands import bands
from .rounding import floor_to_uint8

__all__ = [
    "disc_blur",
    "enlarge",
    "gaussian_blur",
    "glass_blur",
    "glass_copies",
    "glass_field",
    "lens_blur",
    "line_blur",
    "motion_blur",
    "one_sided_blur",
    "one_sided_field",
    "pace",
    "smear",
    "zoom_blur",
    "zoom_field",
]


def motion_blur(image: Image, *, kernel: int) -> Image:
    """Average every pixel with its horizontal neighbors: a camera that moved sideways at constant speed.

    The kernel is a centered 1×k box, so content is smeared but does not move. Beyond the border the image is
    mirrored without repeating the edge pixel (reflect-101).

    Args:
        image: uint8 H×W×3, RGB.
        kernel: length of the box in pixels, odd, ≥ 1.

    Returns:
        The blurred image, as new memory; each value is the exact mean, rounded.

    Raises:
        InputError: `kernel` is even or less than 1.
    """
    if kernel < 1 or kernel % 2 == 0:
        raise InputError(f"kernel is an odd number of pixels, 1 or more; got {kernel!r}.")
    return np.asarray(cv2.blur(image, (kernel, 1), borderType=cv2.BORDER_REFLECT_101), np.uint8)


def gaussian_blur(
    image: Image, *, sigma: float, truncate: float = 3.0, mirror: bool = False, floor: bool = False
) -> Image:
    """Blur with a sampled Gaussian.

    The kernel covers ±⌈truncate·σ⌉ pixels and is normalized to sum 1; beyond the border the edge pixel is repeated,
    or the image mirrored.
    What Pillow calls the radius of its `GaussianBlur` is this σ. Pillow approximates the Gaussian by three box
    blurs and treats the border in each: over twelve photographs and σ from 0.8 to 2.5 the two differ by 0.3 to
    0.6 gray levels on average, by at most 7 (σ = 0.8) or 4 (σ ≥ 1.2) away from the border, and by up to 27 within
    3 σ of it.

    Args:
        image: uint8 H×W×3, RGB.
        sigma: standard deviation in pixels, > 0.
        truncate: reach of the kernel in standard deviations, > 0.
        mirror: mirror the image beyond the border (reflect-101) instead of repeating the edge pixel.
        floor: round down, as a plain cast to 8 bits does, instead of to the nearest.

    Returns:
        The blurred image, as new memory.

    Raises:
        InputError: `sigma` or `truncate` is not positive and finite.
    """
    if not 0 < sigma < np.inf:
        raise InputError(f"sigma is a standard deviation in pixels, more than 0; got {sigma!r}.")
    if not 0 < truncate < np.inf:
        raise InputError(f"truncate is a number of standard deviations, more than 0; got {truncate!r}.")
    side = 2 * math.ceil(truncate * sigma) + 1
    border = cv2.BORDER_REFLECT_101 if mirror else cv2.BORDER_REPLICATE
    if floor:
        taps = cv2.getGaussianKernel(side, sigma, cv2.CV_32F)
        soft = cv2.sepFilter2D(image, cv2.CV_32F, taps, taps, borderType=border)
        return floor_to_uint8(np.asarray(soft, np.float32))
    blurred = cv2.GaussianBlur(image, (side, side), sigma, borderType=border)
    return np.asarray(blurred, np.uint8)


@lru_cache(maxsize=32)
def _misread_disk(radius: int) -> NDArray[np.float32]:
    """MATLAB's `fspecial("disk")` as ARNIQA reads it, (2r+1)×(2r+1), sum 1; right for r = 1 only.

    A cell at distances a ≥ b from the two axes that the circle crosses is covered by the area under the arc from
    m₁ to m₂, less the part below the cell. m₁ is where the arc enters through the cell's far side; ARNIQA's
    port puts 0 there. The arc's integral then starts at the axis while the part taken off does too, and cells
    steep in the arc come out negative.
    """
    far = np.abs(np.arange(-radius, radius + 1.0))
    near, far = np.minimum(far[:, None], far), np.maximum(far[:, None], far)
    square = float(radius**2)

    def under_arc(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return 0.5 * (square * np.arcsin(t / radius) + t * np.sqrt(square - t * t))

    enters = np.where((far + 0.5) ** 2 + (near - 0.5) ** 2 > square, near - 0.5, 0.0)
    arc_top = np.sqrt(square - (near - 0.5) ** 2)
    leaves = np.where((far - 0.5) ** 2 + (near + 0.5) ** 2 < square, near + 0.5, arc_top)
    area = under_arc(leaves) - under_arc(enters) - (far - 0.5) * (leaves - enters) + (enters - near + 0.5)
    corner_out, corner_in = (far + 0.5) ** 2 + (near + 0.5) ** 2, (far - 0.5) ** 2 + (near - 0.5) ** 2
    tip = (near == 0) & (far - 0.5 < radius) & (far + 0.5 >= radius)
    cut = ((corner_out > square) & (corner_in < square)) | tip
    kernel = np.where(cut, area, 0.0) + (corner_out < square)
    kernel[radius, radius] = 1
    return np.asarray(kernel / kernel.sum(), np.float32)


def lens_blur(image: Image, *, radius: int) -> Image:
    """Defocus with the kernel that ARNIQA uses for a disk; beyond the border the edge pixel is repeated.

    For radius 1 it is the disk's area in each pixel. For larger ones it differs from the disk along the rim: some
    cells are negative (down to −0.05), so edges ring. It is kept because published numbers were measured with it.

    Args:
        image: uint8 H×W×3, RGB.
        radius: in whole pixels, ≥ 1.

    Returns:
        The blurred image, as new memory.

    Raises:
        InputError: `radius` is less than 1 or not whole.
    """
    if radius < 1 or int(radius) != radius:
        raise InputError(f"radius is a whole number of pixels, 1 or more; got {radius!r}.")
    kernel = _misread_disk(int(radius))
    return np.asarray(cv2.filter2D(image, -1, kernel, borderType=cv2.BORDER_REPLICATE), np.uint8)


def _line(length: float, angle: float) -> NDArray[np.float32]:
    """MATLAB's `fspecial("motion")`: how far within 1 pixel of a centered segment each cell's center is, sum 1."""
    half = (length - 1) / 2
    reach = int(half) + 1
    x, y = np.arange(-reach, reach + 1), np.arange(reach, -reach - 1, -1)[:, None]  # y points up
    across = y * math.cos(angle) - x * math.sin(angle)
    beyond = np.where(np.hypot(x, y) >= half, half - abs(x * math.cos(angle) + y * math.sin(angle)), 0.0)
    weight = np.maximum(1 - np.hypot(across, beyond), 0)
    weight[weight < 1e-12] = 0
    kernel = weight / weight.sum()
    rows, columns = kernel.any(axis=1), kernel.any(axis=0)  # symmetric, so the center stays in the middle
    return np.asarray(kernel[rows][:, columns], np.float32)


def line_blur(image: Image, *, length: int, rng: np.random.Generator) -> Image:
    """Motion blur along a centered segment of random direction: content is smeared but does not move.

    The direction is a whole number of degrees from 0 to 180, drawn first and alone: generators in the same state
    give the same one at every length. The kernel is that of MATLAB's `fspecial("motion")`; beyond the border the
    edge pixel is repeated.

    Args:
        image: uint8 H×W×3, RGB.
        length: of the segment in pixels, ≥ 1; 1 changes nothing.
        rng: source of the direction.

    Returns:
        The blurred image, as new memory.

    Raises:
        InputError: `length` is less than 1 or not finite.
    """
    if not 1 <= length < np.inf:
        raise InputError(f"length is a number of pixels, 1 or more; got {length!r}.")
    kernel = _line(length, math.radians(int(rng.integers(0, 181)) % 180))
    return np.asarray(cv2.filter2D(image, -1, kernel, borderType=cv2.BORDER_REPLICATE), np.uint8)


_SPARSE = 11  # cells; OpenCV sends kernels of more than 130 cells through Fourier transforms, which do not skip zeros

_Piece: TypeAlias = tuple[int, int, NDArray[np.float32]]
"""Left, top and weights of a part of a kernel."""


def _tiles(kernel: NDArray[np.float32]) -> list[_Piece]:
    """Cut a kernel into pieces of up to `_SPARSE` rows and columns, unless it has so many weights that it is slower."""
    if np.count_nonzero(kernel) > 200:
        return [(0, 0, kernel)]
    cuts = [np.array_split(np.arange(side), -(-side // _SPARSE)) for side in kernel.shape]
    return [(int(x[0]), int(y[0]), kernel[y[0] : y[-1] + 1, x[0] : x[-1] + 1].copy()) for y in cuts[0] for x in cuts[1]]


def _path(offsets: NDArray[np.intp], weights: NDArray[np.float64]) -> list[_Piece]:
    """Cut a kernel of weighted points along a path, each (x, y), into pieces as small as those of `_tiles`."""
    pieces: list[_Piece] = []
    start = 0
    for stop in range(1, len(offsets) + 1):
        if stop == len(offsets) or (np.ptp(offsets[start : stop + 1], axis=0) + 1).prod() > _SPARSE**2:
            part = offsets[start:stop] - offsets[start:stop].min(axis=0)
            kernel = np.zeros(part.max(axis=0)[::-1] + 1, np.float32)
            np.add.at(kernel, (part[:, 1], part[:, 0]), weights[start:stop])
            left, top = offsets[start:stop].min(axis=0)
            pieces.append((int(left), int(top), kernel))
            start = stop
    return pieces


def _correlate(
    wide: NDArray[Any], pieces: list[_Piece], height: int, width: int
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Yield, band by band of rows, the correlation of an image H×W (and ×3), with borders around it, with a kernel.

    Pixel (x, y) of the result is the sum of the pieces' weights times the values from (x + left, y + top) of `wide`.
    """
    border = len(wide) - height
    for rows in bands(height, width, pixels=max(1 << 15, 3 * border * width)):
        block = wide[rows.start : rows.stop + border].astype(np.float32, copy=False)
        total = np.zeros((rows.stop - rows.start, width, *wide.shape[2:]), np.float32)
        for left, top, kernel in pieces:
            reach = len(total) + kernel.shape[0] - 1, width + kernel.shape[1] - 1
            part = block[top : top + reach[0], left : left + reach[1]]
            total += cv2.filter2D(part, -1, kernel, anchor=(0, 0))[: len(total), :width]
        yield rows, total


def _smear(image: NDArray[Any], radius: int, sigma: float, angle: float) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Yield the bands of `smear`'s result."""
    offsets, weights = _trail(radius, sigma, angle)
    (left, top), (right, bottom) = -offsets.min(axis=0), offsets.max(axis=0)
    wide = cv2.copyMakeBorder(image, int(top), int(bottom), int(left), int(right), cv2.BORDER_REPLICATE)
    pieces = _path(offsets + np.array([left, top]), weights)
    return _correlate(np.asarray(wide), pieces, image.shape[0], image.shape[1])


def _trail(radius: int, sigma: float, angle: float) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return where each copy of `smear` takes its pixels from, (2·radius + 1)×2 of (x, y), and its weight."""
    step = np.arange(2 * radius + 1)
    weights = np.exp(-(step**2) / (2 * sigma**2))
    direction = np.array([math.cos(math.radians(angle)), math.sin(math.radians(angle))])
    return np.ceil(step[:, None] * direction - 0.5).astype(np.intp), weights / weights.sum()


def smear(
    image: NDArray[np.uint8] | NDArray[np.float32], *, radius: int, sigma: float, angle: float
) -> NDArray[np.float32]:
    """Average an image with copies of itself moved ever farther along one direction: a one-sided motion blur.

    Copy i of 0..2·radius weighs exp(−i²/2σ²), normalized, and shows at (x, y) what was at
    (x + ⌈i·cos a − ½⌉, y + ⌈i·sin a − ½⌉). Beyond the border the edge pixel is repeated.

    Args:
        image: H×W or H×W×3, uint8 or float32.
        radius: half the number of copies.
        sigma: how fast their weight falls, in pixels.
        angle: in degrees, from the x axis towards growing y.

    Returns:
        float32 of the image's shape.
    """
    result = np.empty(image.shape, np.float32)
    for rows, part in _smear(image, radius, sigma, angle):
        result[rows] = part
    return result


@lru_cache(maxsize=16)
def _disc(radius: int, alias_sigma: float) -> NDArray[np.float32]:
    """Return the disc of pixels within `radius`, sum 1, softened; the softening mirrors at the rim of its window."""
    reach, side = (8, 3) if radius <= 8 else (radius, 5)
    square = np.arange(-reach, reach + 1) ** 2
    disc = (square[:, None] + square <= radius**2).astype(np.float32)
    soft = cv2.GaussianBlur(disc / disc.sum(), (side, side), alias_sigma)
    spare = max(0, reach - radius - side // 2)  # what lies farther out is 0
    return np.ascontiguousarray(soft[spare : len(soft) - spare, spare : len(soft) - spare], np.float32)


def disc_blur(image: Image, *, radius: int, alias_sigma: float) -> Image:
    """Average over a disc: a lens out of focus, with the kernel of ImageNet-C.

    The disc is all pixels whose centers lie within `radius`, softened by a 3×3 Gaussian (5×5 for radii above 8).
    For radii of 8 and more the disc touches the rim of the window it is softened in; the softening mirrors there,
    and the kernel ends up with a sum above 1 (1.013 for 8, 1.011 for 10): the image gets as much brighter. Beyond
    the border the image is mirrored (reflect-101). The result is rounded down.

    Args:
        image: uint8 H×W×3, RGB.
        radius: of the disc in whole pixels, ≥ 1.
        alias_sigma: standard deviation of the softening in pixels, > 0.

    Returns:
        The blurred image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if radius < 1 or int(radius) != radius or not 0 < alias_sigma < np.inf:
        raise InputError(f"disc_blur needs a whole radius ≥ 1 and alias_sigma > 0; got {radius!r}, {alias_sigma!r}.")
    disc = _disc(int(radius), float(alias_sigma))
    reach = len(disc) // 2
    wide = cv2.copyMakeBorder(image, reach, reach, reach, reach, cv2.BORDER_REFLECT_101)
    blurred = np.empty(image.shape, np.uint8)
    for rows, part in _correlate(np.asarray(wide), _tiles(disc), image.shape[0], image.shape[1]):
        blurred[rows] = floor_to_uint8(part)
    return blurred


def one_sided_blur(
    image: Image, *, radius: int, sigma: float, max_angle: float = 45.0, rng: np.random.Generator
) -> Image:
    """Motion blur with the one-sided kernel of ImageNet-C: content is smeared, and moves with it.

    See `smear` for the kernel. Its direction is drawn evenly from ±`max_angle` around the x axis; content moves
    left by the kernel's mean, which `one_sided_field` gives. The result is rounded down.

    Args:
        image: uint8 H×W×3, RGB.
        radius: half the length of the trail in pixels, ≥ 0.
        sigma: how fast the trail fades, in pixels, > 0.
        max_angle: largest angle to the x axis in degrees, ≥ 0.
        rng: source of the direction.

    Returns:
        The blurred image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if radius < 0 or int(radius) != radius or not 0 < sigma < np.inf or not 0 <= max_angle < np.inf:
        raise InputError(
            f"radius is whole and ≥ 0, sigma > 0, max_angle ≥ 0; got {radius!r}, {sigma!r}, {max_angle!r}."
        )
    angle = rng.uniform(-max_angle, max_angle)
    blurred = np.empty(image.shape, np.uint8)
    for rows, part in _smear(image, int(radius), sigma, angle):
        blurred[rows] = floor_to_uint8(part)
    return blurred


def _separable_field(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the field of source coordinates (x, y) that depend on their own axis alone."""
    field = np.empty((len(y), len(x), 2), np.float32)
    field[:, :, 0], field[:, :, 1] = x, y[:, None]
    return field


def one_sided_field(
    height: int, width: int, *, radius: int, sigma: float, max_angle: float = 45.0, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return where `one_sided_blur` takes content from on average: each pixel's place plus the kernel's mean.

    Args:
        height: in pixels.
        width: in pixels.
        radius: as in `one_sided_blur`.
        sigma: as in `one_sided_blur`.
        max_angle: as in `one_sided_blur`.
        rng: a generator in the state that `one_sided_blur` gets.

    Returns:
        float32 H×W×2, source coordinates (x, y).
    """
    offsets, weights = _trail(int(radius), sigma, rng.uniform(-max_angle, max_angle))
    x, y = weights @ offsets
    return _separable_field(np.arange(width) + x, np.arange(height) + y)


def _kept(side: int, factor: float) -> slice:
    """Return the middle of a side, of the length that fills it when enlarged."""
    length = math.ceil(side / factor)
    return slice((side - length) // 2, (side - length) // 2 + length)


def pace(length: int, factor: float) -> float:
    """Return how far apart, in source pixels, an axis of `length` pixels is sampled to enlarge it by `factor`.

    It becomes round(length·factor) pixels long, and the centers of its first and last pixel stay those of the ends,
    as in `scipy.ndimage.zoom`.
    """
    size = round(length * factor)
    return (length - 1) / (size - 1) if size > 1 else 0.0


def enlarge(image: NDArray[np.float32], *, factor: float, height: int, width: int, top: int = 0) -> NDArray[np.float32]:
    """Enlarge by linear interpolation, see `pace`.

    Args:
        image: float32 h×w×3.
        factor: ≥ 1.
        height: of the part of the result to return, in pixels.
        width: of this part, which starts at the left.
        top: the row it starts at.

    Returns:
        float32 height×width×3.
    """
    down, across = pace(image.shape[0], factor), pace(image.shape[1], factor)
    matrix = np.array([[across, 0, 0], [0, down, down * top]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    border = cv2.BORDER_REPLICATE
    return np.asarray(cv2.warpAffine(image, matrix, (width, height), flags=flags, borderMode=border), np.float32)


def _zooms(step: float, stop: float) -> list[float]:
    """Return the factors of all layers: 1 for the image itself, then those of `numpy.arange`, 1 again first."""
    return [1.0, *np.arange(1, stop, step).tolist()]


def zoom_blur(image: Image, *, step: float, stop: float) -> Image:
    """Average an image with enlargements of itself: a camera that zooms in during the exposure.

    The factors are those of `numpy.arange(1, stop, step)`, and 1 once more for the image itself; `enlarge` makes
    each layer from the image's middle, ⌈side/factor⌉ pixels of each side, and the layer's first H×W pixels count.
    The result is rounded down.

    Args:
        image: uint8 H×W×3, RGB.
        step: from one factor to the next, > 0.
        stop: what the factors stay below, > 1.

    Returns:
        The blurred image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if not (0 < step < np.inf and 1 < stop < np.inf):
        raise InputError(f"zoom_blur needs step > 0 and stop > 1; got {step!r}, {stop!r}.")
    height, width = image.shape[:2]
    factors = _zooms(step, stop)
    source = image.astype(np.float32)
    middles = [(factor, source[_kept(height, factor), _kept(width, factor)]) for factor in factors[2:]]
    blurred = np.empty(image.shape, np.uint8)
    for rows in bands(height, width):
        total = 2 * source[rows]
        for factor, middle in middles:
            total += enlarge(middle, factor=factor, height=len(total), width=width, top=rows.start)
        total /= np.float32(len(factors))
        blurred[rows] = floor_to_uint8(total)
    return blurred


def zoom_field(height: int, width: int, *, step: float, stop: float) -> NDArray[np.float32]:
    """Return where `zoom_blur` takes content from on average: the mean of all layers' source coordinates.

    Args:
        height: in pixels.
        width: in pixels.
        step: as in `zoom_blur`.
        stop: as in `zoom_blur`.

    Returns:
        float32 H×W×2, source coordinates (x, y).
    """
    x, y = np.zeros(width), np.zeros(height)
    factors = _zooms(step, stop)
    for factor in factors:
        for axis in (x, y):
            kept = _kept(axis.size, factor)
            axis += kept.start + pace(kept.stop - kept.start, factor) * np.arange(axis.size)
    return _separable_field(x / len(factors), y / len(factors))


def _scatter(values: NDArray[Any], *, max_delta: int, iterations: int, rng: np.random.Generator) -> None:
    """Let the elements of an array H×W copy one another in place, as the pixels of `glass_blur` do.

    The scan goes from the last element to the first, and each copies another: one that was visited and holds what
    it copied itself, or one that was not. So it gets what stands at the end of a chain of copies from visited to
    visited element. Bands of rows are done one after another, from below; within a band, each turn of the inner
    loop follows all chains at once, and twice as far as the last.
    """
    height, width = values.shape
    if min(height, width) <= 2 * max_delta:  # the scan leaves a margin, and nothing is within it
        return
    flat = values.reshape(-1)
    share = np.uint16(-(-65536 // (2 * max_delta)))
    for _ in range(iterations):
        for rows in reversed(list(bands(height, width, pixels=1 << 14))):
            place = np.arange(rows.start * width, rows.stop * width, dtype=np.int32)
            words = rng.integers(0, 2**64, size=-(-place.size // 2), dtype=np.uint64).astype("<u8", copy=False)
            x, y = words.view("<u2")[: 2 * place.size].reshape(2, -1, width) // share
            jump = np.multiply(y, width, dtype=np.int32)
            jump += x
            jump -= max_delta * (width + 1)
            jump[: max(0, max_delta + 1 - rows.start)] = 0
            jump[max(0, height - max_delta + 1 - rows.start) :] = 0
            jump[:, : max_delta + 1] = jump[:, width - max_delta + 1 :] = 0
            source = jump.reshape(-1)
            source += place
            visited = (source > place) & (source <= place[-1])  # what lies below has its final value
            chains = np.flatnonzero(visited)
            while chains.size:
                link = source.take(chains, mode="wrap") - place[0]
                source[chains] = source.take(link, mode="wrap")
                further = visited.take(link, mode="wrap")
                visited[chains] = further
                chains = chains[further]
            flat[rows.start * width : rows.stop * width] = flat.take(source, mode="wrap")


def glass_blur(image: Image, *, sigma: float, max_delta: int, iterations: int, rng: np.random.Generator) -> Image:
    """Blur, let pixels copy near ones at random, and blur again: frosted glass, as in ImageNet-C.

    In each iteration every pixel, from the last to the first, takes the value of another, whose offsets in x and y
    are drawn evenly from −max_delta..max_delta − 1; a margin of max_delta + 1 pixels at the left and above and of
    max_delta − 1 at the right and below stays. The published program means to exchange the two pixels, but its
    array views make it copy, so two thirds of the values are lost; that is what its numbers were measured with, and
    so it is here. Blurs repeat the edge pixel and reach 4 σ. Both results are rounded down.

    Args:
        image: uint8 H×W×3, RGB.
        sigma: standard deviation of both blurs in pixels, > 0.
        max_delta: largest offset in whole pixels, 1..127.
        iterations: number of scans, ≥ 0.
        rng: source of the offsets.

    Returns:
        The blurred image, as new memory.

    Raises:
        InputError: a parameter is out of its range.
    """
    if not (1 <= max_delta < 128 and int(max_delta) == max_delta and iterations >= 0):
        raise InputError(f"max_delta is whole, 1..127, and iterations ≥ 0; got {max_delta!r}, {iterations!r}.")
    soft = gaussian_blur(image, sigma=sigma, truncate=4, floor=True)
    pixels = cv2.cvtColor(soft, cv2.COLOR_RGB2RGBA)  # four bytes move as one number
    _scatter(pixels.view(np.uint32)[:, :, 0], max_delta=int(max_delta), iterations=int(iterations), rng=rng)
    shuffled = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGBA2RGB), np.uint8)
    return gaussian_blur(shuffled, sigma=sigma, truncate=4, floor=True)


def glass_copies(
    height: int, width: int, *, max_delta: int, iterations: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return which pixel each one ends up as a copy of in `glass_blur`.

    Args:
        height: in pixels.
        width: in pixels.
        max_delta: as in `glass_blur`.
        iterations: as in `glass_blur`.
        rng: a generator in the state that `glass_blur` gets.

    Returns:
        intp H×W, row-major numbers of pixels.
    """
    origin = np.arange(height * width, dtype=np.int32).reshape(height, width)
    _scatter(origin, max_delta=int(max_delta), iterations=int(iterations), rng=rng)
    return origin.astype(np.intp)


def glass_field(
    height: int, width: int, *, sigma: float, max_delta: int, iterations: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return where `glass_blur` takes content from: the pixels that each one copies, averaged as the blur does.

    Args:
        height: in pixels.
        width: in pixels.
        sigma: as in `glass_blur`: places are averaged like the colors that are found there.
        max_delta: as in `glass_blur`.
        iterations: as in `glass_blur`.
        rng: a generator in the state that `glass_blur` gets.

    Returns:
        float32 H×W×2, source coordinates (x, y).
    """
    origin = glass_copies(height, width, max_delta=max_delta, iterations=iterations, rng=rng)
    field = np.stack([origin % width, origin // width], axis=2).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(field, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE), np.float32)
