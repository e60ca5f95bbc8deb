from __future__ import annotations

import io

import numpy as np
import PIL.Image
import pytest

from crypsis.degradations import jpeg
from crypsis.errors import ImageError, InputError


@pytest.mark.parametrize("quality", [1, 20, 30, 40, 55, 70, 95, 100])
@pytest.mark.parametrize("size", [(1, 1), (7, 13), (120, 161)])
def test_jpeg_gives_the_pixels_of_pillow(natural: np.ndarray, quality: int, size: tuple[int, int]) -> None:
    image = natural[: size[0], : size[1]]
    buffer = io.BytesIO()
    PIL.Image.fromarray(image).save(buffer, "JPEG", quality=quality, subsampling="4:2:0")
    pillow = np.asarray(PIL.Image.open(buffer))
    # equal where both packages carry libjpeg-turbo, as their wheels do; one level is left for other builds
    assert abs(jpeg(image, quality=quality).astype(int) - pillow).max() <= 1


@pytest.mark.parametrize("quality", [0, 101, -5])
def test_bad_quality(quality: int) -> None:
    with pytest.raises(InputError, match="quality"):
        jpeg(np.zeros((8, 8, 3), np.uint8), quality=quality)


def test_side_beyond_the_format() -> None:
    with pytest.raises(ImageError, match="65500"):
        jpeg(np.zeros((1, 65501, 3), np.uint8), quality=50)
    assert jpeg(np.zeros((1, 65500, 3), np.uint8), quality=50).shape == (1, 65500, 3)
