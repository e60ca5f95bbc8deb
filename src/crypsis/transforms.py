"""Random degradations for training pipelines: a plain callable, seeded right in every worker.

    from crypsis.transforms import RandomDegradation
    degrade = RandomDegradation("all", severities=(1, 2, 3), p=0.5, seed=0)

    torchvision.transforms.Compose([degrade, ToTensor()])                     # Pillow in, Pillow out
    albumentations.Lambda(image=lambda image, **_: degrade(image))            # arrays
    dataset.set_transform(lambda batch: {"image": [degrade(x) for x in batch["image"]]})   # Hugging Face

No torch is needed, and no global random state is read or written.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterable
from typing import Any, overload

import numpy as np

from .catalog import get_entry, list_entries
from .catalog.aligned import check_truth, warp_mask
from .catalog.apply import AnyImage, through_rgb
from .catalog.entry import Entry
from .errors import ImageError, InputError
from .seeds import rng_for
from .types import Image

__all__ = ["RandomDegradation"]

_STREAM = "crypsis.transforms"


class RandomDegradation:
    """Degrade each image by a random entry at a random severity, or leave it as it is.

    What happens to an image is a pure function of (seed, key). With `key=` the caller names the image, for example
    `f"{path}/{epoch}"`, and the result does not depend on workers, order or anything else. Without one, keys are
    counted up in the stream of the process that calls: the worker of a PyTorch loader (by its seed, which PyTorch
    draws anew each epoch), else the multiprocessing process by its place in its family tree, and the `RANK` of a
    distributed run. Workers thus differ from each other, epochs differ, and a run is repeated by the same seed (of
    this transform, and `torch.manual_seed` or the loader's `generator`) and number of workers. Two transforms with
    one seed draw the same: give each its own. Bare `os.fork()` and threads are not told apart; give them keys.

    Args:
        entries: `all`, or names and rows of the catalog; each is equally likely. Strings are names.
        severities: the paper's levels to choose from, equally likely.
        p: probability that an image is degraded at all.
        seed: of all draws of this transform.
        truth: what becomes of masks: `published` returns them as they are, `aligned` moves them along where the
            entry moves content.

    Raises:
        UnknownNameError: no such degradation or truth.
        InputError: no entries or severities, a severity not in 1..5, or `p` outside [0, 1].
    """

    def __init__(
        self,
        entries: str | Iterable[str | Entry] = "all",
        severities: Iterable[int] = (1, 2, 3, 4, 5),
        p: float = 1.0,
        *,
        seed: int = 0,
        truth: str = "published",
    ) -> None:
        if isinstance(entries, str):
            entries = list_entries() if entries == "all" else (entries,)
        if not isinstance(entries, Iterable) or not isinstance(severities, Iterable):
            raise InputError("entries and severities are lists, such as ['cod10k-c/rain'] and (1, 2, 3).")
        self.entries = tuple(get_entry(entry) if isinstance(entry, str) else entry for entry in entries)
        for entry in self.entries:
            if not isinstance(entry, Entry):
                raise InputError(f"Entries are names or rows of the catalog; got {entry!r}.")
        self.severities = tuple(severities)
        if not self.entries or not self.severities:
            raise InputError("RandomDegradation needs at least one entry and one severity to choose from.")
        for severity in self.severities:
            whole = hasattr(severity, "__index__") and not isinstance(severity, bool)
            if not whole or severity not in (1, 2, 3, 4, 5):
                raise InputError(f"Severities are 1 to 5; got {severity!r}.")
        if not hasattr(p, "__float__") or not 0 <= p <= 1:
            raise InputError(f"p is a probability in [0, 1]; got {p!r}.")
        if not hasattr(seed, "__index__"):
            raise InputError(f"seed is an integer; got {seed!r}.")
        self.p = float(p)
        self.seed = int(seed)
        self.truth = check_truth(truth)
        self._stream = ""
        self._count = 0

    def __repr__(self) -> str:
        """Say what is drawn from."""
        return (
            f"RandomDegradation({len(self.entries)} entries, severities={self.severities}, p={self.p}, "
            f"seed={self.seed}, truth={self.truth!r})"
        )

    @overload
    def __call__(self, image: AnyImage, *, key: str | None = None) -> AnyImage: ...

    @overload
    def __call__(self, image: AnyImage, *, mask: Any, key: str | None = None) -> tuple[AnyImage, Any]: ...

    def __call__(self, image: AnyImage, *, mask: Any = None, key: str | None = None) -> Any:
        """Return the image, degraded or as it is, as the kind it came; with `mask`, the pair (image, mask).

        Args:
            image: as for `crypsis.apply_degradation`: a uint8 H×W×3 RGB array, and most that people have (gray,
                RGBA, float in [0, 1], Pillow, torch C×H×W). It is not changed; where nothing is done, it is
                returned itself.
            mask: labels of the image, H×W or H×W×K. Under the truth `aligned` a NumPy array of any dtype.
            key: the name of this image in this epoch; counted if None.

        Raises:
            ImageError: an image or mask that cannot be used; the message says why.
        """
        key = self.next_key() if key is None else key
        chosen = self.choose(key)
        if chosen is None:
            return image if mask is None else (image, mask)
        entry, severity = chosen
        size: list[int] = []

        def degrade(rgb: Image) -> Image:
            size[:] = rgb.shape[:2]
            return entry.degrade(rgb, severity, seed=self.seed, image_key=key)

        worse = through_rgb(image, degrade)
        if mask is None:
            return worse
        if self.truth == "aligned" and entry.moves_pixels:
            if not isinstance(mask, np.ndarray) or mask.ndim < 2 or list(mask.shape[:2]) != size:
                raise ImageError(
                    f"A mask that is to be aligned is a NumPy array of the image's height and width {tuple(size)}; "
                    f"got {type(mask).__name__} {tuple(np.shape(mask))}."
                )
            field = entry.source_of(size[0], size[1], severity, seed=self.seed, image_key=key)
            if field is not None:
                mask = warp_mask(mask, field)
        return worse, mask

    def choose(self, key: str) -> tuple[Entry, int] | None:
        """Return the entry and severity that `key` stands for, or None where the image stays as it is."""
        rng = rng_for(self.seed, key, _STREAM)
        applied = rng.random() < self.p
        entry = self.entries[int(rng.random() * len(self.entries))]
        severity = self.severities[int(rng.random() * len(self.severities))]
        return (entry, severity) if applied else None

    def next_key(self) -> str:
        """Return the key of the next call in this process, and count it as used."""
        stream = _stream_of_process()
        if stream != self._stream:
            self._stream, self._count = stream, 0
        self._count += 1
        return f"{stream}/{self._count}"


def _stream_of_process() -> str:
    """Return a name of this process that is the same in the next run, and different in its siblings.

    Process ids differ from run to run, and workers start from copies of one state, so neither can serve.
    """
    rank = os.environ.get("RANK", "0")
    torch = sys.modules.get("torch")  # never imported for this; a worker of a torch loader has it
    data = getattr(getattr(torch, "utils", None), "data", None)
    info = data.get_worker_info() if data is not None else None
    if info is not None:
        return f"rank{rank}/torch{info.seed}"
    # the counters by which multiprocessing numbers its children; a name can be given to several
    place = ".".join(map(str, getattr(multiprocessing.current_process(), "_identity", ())))
    return f"rank{rank}/process{place}"
