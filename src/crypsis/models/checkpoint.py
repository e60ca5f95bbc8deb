"""Files of weights by name, as `torch.save(network.state_dict(), FILE)` writes them.

They are read without running anything in them, and loaded only where they fit one by one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor, nn

from ..errors import ModelError
from .foreign import told

__all__ = ["Fit", "compare_weights", "load_weights", "read_weights"]

_CODE = re.compile(r"(?:GLOBAL|Unsupported class) ([\w.]*\w)(?=\s|$)")
"""How versions of torch name what a file asks for that is no tensor."""
_WRAPPED = "module."
"""What `torch.nn.DataParallel` puts before every name."""


def read_weights(path: Path, stream: BinaryIO | None = None) -> dict[str, Tensor]:
    """Return the weights in a file of torch, on the CPU, without running code in it.

    Args:
        path: the file, of the zip format or of the one before torch 1.6.
        stream: what to read instead, where the file lies in another one; `path` is then only named in messages.

    Returns:
        Name → tensor; where all names begin with `module.`, without that.

    Raises:
        ModelError: no such file, one that cannot be read without running code, or one that does not hold weights.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about protocols of pickle that it then refuses
            weights = torch.load(stream or path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ModelError(f"There is no file of weights {path} (looked in {path.absolute().parent}).") from None
    except OSError as error:
        raise ModelError(f"{path}: the file of weights cannot be read ({error.strerror or error}).") from error
    except Exception as error:
        if asked := _CODE.search(str(error)):
            raise ModelError(
                f"{path}: not a readable file of weights; besides tensors it asks for {asked[1]}, and nothing of it "
                "was run: give one that torch.save(network.state_dict(), FILE) wrote."
            ) from error
        raise ModelError(
            f"{path}: not a readable file of weights; it is cut off, damaged or something else, and nothing of it was "
            "run: fetch it anew from where its authors publish it."
        ) from error
    if not isinstance(weights, Mapping):
        raise ModelError(f"{path}: holds {type(weights).__name__}, not the weights of a network by name.")
    others = [key for key, value in weights.items() if not (isinstance(key, str) and isinstance(value, Tensor))]
    if others or not weights:
        held = f"{_some([str(key) for key in others])} besides" if others else "nothing of"
        raise ModelError(f"{path}: holds {held} the weights of a network by name; save its state_dict() alone.")
    wrapped = all(key.startswith(_WRAPPED) for key in weights)
    return {key.removeprefix(_WRAPPED) if wrapped else key: value for key, value in weights.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How weights compare with those that a network needs.

    Attributes:
        matching: how many have the name and the shape of one of the network's.
        missing: names that the network needs.
        unknown: names that it does not have.
        reshaped: names of another shape, each with the shape found and the one needed.
        unused: names, missing, unknown or of any shape, that the network never uses: they do not matter.
    """

    matching: int
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    reshaped: tuple[str, ...]
    unused: tuple[str, ...]

    def differences(self, listed: int | None = 8) -> str:
        """Return what does not fit, at most `listed` names of a kind; nothing where all fits."""
        kinds = {"missing": self.missing, "unknown": self.unknown, "of another shape": self.reshaped}
        return "; ".join(f"{len(keys)} {kind}: {_some(keys, listed)}" for kind, keys in kinds.items() if keys)


def compare_weights(module: nn.Module, weights: Mapping[str, Tensor], unused: Collection[str] = ()) -> Fit:
    """Return how weights compare with a network's, which stays as it is.

    Args:
        module: the network; it may be on torch's device `meta`.
        weights: name → tensor.
        unused: what names begin with that the network never uses.
    """
    own, ignored = module.state_dict(), tuple(unused)
    needed = {key: value.shape for key, value in own.items() if not key.startswith(ignored)}
    given = {key: value.shape for key, value in weights.items() if not key.startswith(ignored)}
    return Fit(
        matching=sum(given.get(key) == shape for key, shape in needed.items()),
        missing=tuple(key for key in needed if key not in given),
        unknown=tuple(sorted(given.keys() - needed.keys())),
        reshaped=tuple(
            f"{key} ({list(given[key])}, needs {list(shape)})"
            for key, shape in needed.items()
            if key in given and given[key] != shape
        ),
        unused=tuple(sorted(key for key in own.keys() | weights.keys() if key.startswith(ignored))),
    )


def load_weights(
    module: nn.Module, weights: Mapping[str, Tensor], source: str, *, unused: Collection[str] = ()
) -> None:
    """Load weights that have to fit one by one.

    Args:
        module: changed in place; left alone if anything does not fit.
        weights: name → tensor.
        source: where they are from, for the message.
        unused: what names begin with that the network never uses; such weights are neither needed nor loaded.

    Raises:
        ModelError: names are missing, unknown, or of another shape; the message lists them.
    """
    if differing := compare_weights(module, weights, unused).differences():
        raise ModelError(f"{source}: the weights are of another network; {differing}.")
    own, ignored = module.state_dict(), tuple(unused)
    try:
        module.load_state_dict({key: value if key.startswith(ignored) else weights[key] for key, value in own.items()})
    except Exception as error:  # such as tensors that are not dense
        raise ModelError(f"{source}: the weights cannot be taken over ({told(error)}).") from error


def _some(keys: Sequence[str], count: int | None = 8) -> str:
    left = 0 if count is None else max(len(keys) - count, 0)
    return ", ".join(keys[:count]) + (f" and {left} more" if left else "")
