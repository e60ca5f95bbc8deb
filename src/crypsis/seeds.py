"""Where all randomness comes from: one generator per (seed, image, entry).

No global state is read or written, so a result depends on nothing but its names: not on the number of
workers, the order of the images, the batch, or what ran before. Severity is left out on purpose: the five
severities of one image share their random field and can be compared pairwise.
"""

from __future__ import annotations

import hashlib
import unicodedata

import numpy as np

__all__ = ["content_key", "rng_for"]


def rng_for(seed: int, image_key: str, entry: str) -> np.random.Generator:
    """Return the generator of one image under one entry.

    Args:
        seed: the run's seed; any integer.
        image_key: the image's path inside its data set (POSIX, no suffix), or `content_key(image)`. Unicode
            composition does not matter: a name typed on macOS and on Linux is the same key.
        entry: canonical entry name, such as `cod10k-c/rain`.

    Returns:
        A fresh `numpy.random.Generator` over SFC64, whose 256-bit seed is BLAKE2b of the three names.
    """
    name = "\0".join((str(int(seed)), unicodedata.normalize("NFC", image_key), entry))
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=32).digest()
    return np.random.Generator(np.random.SFC64(int.from_bytes(digest, "little")))


def content_key(array: np.ndarray) -> str:
    """Return a key made of an array's shape, type and bytes, for images that have no name."""
    digest = hashlib.blake2b(f"{array.shape}{array.dtype.str}".encode(), digest_size=16)
    digest.update(np.ascontiguousarray(array).data)
    return f"content:{digest.hexdigest()}"
