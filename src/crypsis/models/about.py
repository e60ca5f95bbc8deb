"""What there is to know of a kind of model before one is loaded, as text."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ..errors import CrypsisError, MissingDependencyError, UnknownNameError
from .compared import COMPARED, Compared, count_operations
from .detector import DETECTORS, load_detector
from .foreign import import_extra
from .robust_cod_lite_segmenter import WEIGHTS
from .segmenter import MODELS, load_model

__all__ = ["KINDS", "about"]

KINDS: tuple[str, ...] = tuple(dict.fromkeys((*MODELS, *DETECTORS)))
"""What `--model` may begin with, of segmenters and detectors."""

_ENCODERS = ("efficientnet-b0", "efficientnet-lite0")
"""Of RobustCODLite: the paper's, and that of the network that comes with the package."""
_SIDE = 384
"""Side, in pixels, of the image that RobustCODLite's multiply-adds are counted for: what it is trained at."""

_Lines = Iterable[tuple[str, object]]


def about(kind: str) -> str:
    """Return all about a kind of model: how it is run, what it needs, and what it costs, where that is known.

    Args:
        kind: one of `KINDS`.

    Raises:
        UnknownNameError: no such kind.
    """
    if kind not in KINDS:
        raise UnknownNameError.among("kind of model", kind, KINDS)
    if kind in COMPARED:
        return _about_compared(COMPARED[kind])
    texts = []
    for what, table in (("segmenter", MODELS), ("detector", DETECTORS)):
        if kind in table:
            module, _, attribute = table[kind].partition(":")
            home = importlib.import_module(module)
            prose = inspect.cleandoc(home.__doc__ or "")
            usage = (inspect.getdoc(getattr(home, attribute).from_specification) or "").partition("\n")[0]
            texts += [f"{kind}: a {what}", "", prose, "", f"--model  {_usage(usage)}", ""]
            own = [name for name in home.__all__ if name.endswith("Options")]
            texts += [text for name in own for text in (inspect.getdoc(getattr(home, name)) or "", "")]
    if kind == "robust-cod-lite":
        for encoder in _ENCODERS:
            texts += [
                f"{encoder}, at {_SIDE}×{_SIDE}:",
                "",
                _written(_counted(partial(_count_robust_cod_lite, encoder))),
                "",
            ]
    if kind in ("saliency", "nanodet") or (kind == "robust-cod-lite" and WEIGHTS.is_file()):
        load: Any = load_model if kind in MODELS else load_detector
        try:
            texts += ["as it comes:", "", _written(load(kind).describe().items()), ""]
        except MissingDependencyError as error:
            texts += [str(error), ""]
    return "\n".join(texts[:-1])


def _usage(sentence: str) -> str:
    """Return what stands between backticks in a sentence such as "Load `KIND:PATH[,option=value…]`."."""
    return sentence.partition("`")[2].partition("`")[0] or sentence


def _about_compared(row: Compared) -> str:
    """Return all about one of the compared models."""
    normal = "mean {mean}, std {std} of RGB in [0, 1]".format(**row.to_dict())
    sides = " and ".join(f"{side}×{side}" for side in row.sides)
    activation = "none, the network has done it" if row.activation == "none" else row.activation
    stretched = "by its authors before saving; here raw, with minmax=yes as they do" if row.authors_minmax else "no"
    lines: _Lines = (
        ("paper", row.paper),
        ("code", row.code),
        ("--model", f"{row.kind}:PATH[,minmax=yes][,batch=N][,device=cuda][,name=LABEL]"),
        *_counted(partial(count_operations, row.kind)),
        ("input", f"{sides}, RGB, resized by {row.resize}"),
        ("normalized", f"{row.normalize}: {normal}"),
        ("output", f"number {row.output + 1}" if row.output else "the first or only one"),
        ("activation", activation),
        ("order", row.order),
        ("map resized", f"to the size of the image by {row.map_resize}"),
        ("min-max", stretched),
        ("saved", f"{row.saved}, by its authors; here floats, unless maps are saved"),
        ("checkpoint", row.published_file),
        ("from", row.published_at),
        ("SHA-256", row.published_sha256 or "of the published file not known yet"),
        ("not used", ", ".join(f"{start}*" for start in row.unused) or "none of its weights"),
        ("license", row.license),
    )
    return f"{row.kind}: a segmenter, run as its authors run it\n\n{_written(lines)}"


def _counted(count: Callable[[], tuple[int, int]]) -> _Lines:
    """Return what a network consists of, or why that cannot be told here."""
    try:
        parameters, operations = count()
    except CrypsisError as error:
        return (("parameters", f"cannot be counted here: {error}"),)
    return (("parameters", f"{parameters:,}"), ("multiply-adds", f"{operations / 1e9:.2f} billion for one image"))


def _count_robust_cod_lite(encoder: str) -> tuple[int, int]:
    """Return parameters and multiply-adds of RobustCODLite."""
    import_extra("torch", "torch")
    from .robust_cod_lite import NetworkOptions, RobustCodLite, count_multiply_adds, count_parameters

    network = RobustCodLite(NetworkOptions(encoder=encoder))
    return count_parameters(network), count_multiply_adds(network, (_SIDE, _SIDE))


def _written(lines: _Lines) -> str:
    """Return names and values in two columns."""
    pairs = list(lines)
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in pairs)
