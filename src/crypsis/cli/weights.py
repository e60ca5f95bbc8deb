"""Commands about files of weights: weights check, weights export."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, ModelError, UnknownNameError
from .shell import BENCHMARKS, Json, app, command, say

if TYPE_CHECKING:
    from ..models.compared import Compared
    from ..types import Image

__all__ = ["check", "export_weights", "weights_app"]

weights_app = typer.Typer(help="Look into checkpoints, and write them as ONNX.", no_args_is_help=True)

app.add_typer(weights_app, name="weights", rich_help_panel=BENCHMARKS)

_SHOWN = 20
"""Names that are printed of a list; --keys prints all."""
_TRIED = 2
"""Demo images that an export is compared on."""
_OWN = "robust-cod-lite"


@command(weights_app, "check")
def check(
    model: Annotated[str, typer.Argument(help="sinet-v2, pfnet, zoomnet, dgnet or dgnet-s.")],
    path: Annotated[Path, typer.Argument(help="The checkpoint; nothing in it is run.")],
    keys: Annotated[bool, typer.Option("--keys", help="List every weight with its shape.")] = False,
    as_json: Json = False,
) -> int:
    """Say whether a file holds the weights of a model: names, shapes, counts, and what differs. 2 if it does not."""
    from ..models.compared import COMPARED, check_checkpoint

    found = check_checkpoint(model, path)
    if not keys:
        shapes = found.pop("shapes")
        found["tensors"] = len(shapes)
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        print(_checked(COMPARED[model], path, found, None if keys else _SHOWN))
    return 0 if found["fits"] else 2


def _checked(recipe: Compared, path: Path, found: dict[str, Any], shown: int | None) -> str:
    """Return what was found in a file as text."""
    shapes = found.get("shapes", {})
    tensors = len(shapes) if shapes else found["tensors"]
    lines = [f"{key}  {'×'.join(map(str, shape)) or '1'}" for key, shape in shapes.items()]
    lines.append(f"{path}: {tensors:,} weights with {found['numbers']:,} numbers, SHA-256 {found['sha256']}")
    needed = found["matching"] + len(found["missing"]) + len(found["reshaped"])
    lines.append(f"{found['matching']:,} of the {needed:,} weights that {recipe.kind} uses are there, in their shapes.")
    for kind, title in (
        ("missing", "missing"),
        ("unknown", "not of this model"),
        ("reshaped", "of another shape"),
        ("unused", "never used, so they do not matter"),
    ):
        names = found[kind]
        if names:
            rest = len(names) - len(names[:shown])
            lines += [f"{len(names):,} {title}:", *(f"  {name}" for name in names[:shown])]
            lines += [f"  … and {rest:,} more (--keys lists all)"] if rest else []
    published = {
        True: f"This is the file that its authors publish ({recipe.published_file}).",
        False: f"This is not the file that its authors publish ({recipe.published_file}).",
        None: f"Whether it is what its authors publish as {recipe.published_file} cannot be told: no SHA-256 is known.",
    }
    if found["fits"]:
        lines += [published[found["published"]], f"It fits: --model {recipe.kind}:{path}"]
    elif found["network"]:
        lines.append(f"It does not fit {recipe.kind}, but {found['network']}: --model {found['network']}:{path}")
    else:
        lines.append(f"It does not fit {recipe.kind}.")
    return "\n".join(lines)


@command(weights_app, "export")
def export_weights(
    model: Annotated[str, typer.Argument(help="KIND:PATH, as --model takes it.", metavar="MODEL:PATH")],
    out: Annotated[Path, typer.Argument(help="The file to write; it ends in .onnx.", metavar="OUT.onnx")],
    precision: Annotated[
        str | None,
        typer.Option(help="Of robust-cod-lite: how weights are stored, fp32, fp16 or int8.", show_default="fp16"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a checkpoint as an ONNX file, compare their maps, and say with which --model it gives the same."""
    from ..datasets.demo import demo_folder
    from ..io import read_image
    from ..models.compared import COMPARED, ComparedModel
    from ..models.segmenter import load_model, parse_specification

    kind = parse_specification(model).kind
    if kind not in (_OWN, *COMPARED):
        raise UnknownNameError(f"weights export takes a model of {', '.join((_OWN, *COMPARED))}; got {kind}.")
    if out.suffix.lower() != ".onnx":
        raise ModelError(f"{out}: an export ends in .onnx; give such a name.")
    tried = [read_image(path) for path in sorted((demo_folder() / "images").iterdir())[:_TRIED]]
    if kind == _OWN:
        notes: Sequence[str] = ()
        specification, difference = _export_own(parse_specification(model).target, out, precision, tried)
    else:
        if precision is not None:
            raise InputError(f"--precision is for {_OWN}; an export of {kind} keeps its numbers as they are.")
        loaded = load_model(model)
        assert isinstance(loaded, ComparedModel)
        from ..models.compared_export import export_compared

        export = export_compared(loaded, out, tried)
        specification, difference, notes = export.specification, export.difference, export.notes
    if as_json:
        print(json.dumps({"model": specification, "difference": difference, "notes": notes}))
        return
    print(f"--model {specification}")
    print(f"largest difference from the checkpoint's maps, on {_TRIED} demo images: {difference:.1e}")
    for note in notes:
        say(note)


def _export_own(target: str, out: Path, precision: str | None, images: list[Image]) -> tuple[str, float]:
    """Export a checkpoint of RobustCODLite; return how it is named, and how far its maps are from the checkpoint's."""
    import numpy as np

    from ..models.foreign import import_extra
    from ..models.robust_cod_lite_segmenter import RobustCodLiteSegmenter

    path = Path(target)
    if path.suffix.lower() != ".safetensors":
        raise ModelError(f"{_OWN} is exported from what crypsis train writes, {_OWN}:DIR/best.safetensors.")
    import_extra("torch", "torch")
    from ..models.robust_cod_lite import export_network, load_checkpoint

    network, meta = load_checkpoint(path)
    export_network(network, out, precision=precision or "fp16", meta=meta)
    before, after = (RobustCodLiteSegmenter(file).predict(images) for file in (path, out))
    pairs = zip(before, after, strict=True)
    return f"{_OWN}:{out}", max(float(np.abs(one.probability - other.probability).max()) for one, other in pairs)
