"""All commands, in the order in which `--help` lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from . import agreement, camouflage, curriculum, degradations, detection, masks, runs, strength, training, weights
from .shell import PANELS, app

__all__ = [
    "agreement",
    "app",
    "camouflage",
    "curriculum",
    "degradations",
    "detection",
    "masks",
    "runs",
    "strength",
    "training",
    "weights",
]

app.registered_commands.sort(key=lambda info: PANELS.index(str(info.rich_help_panel)))


def _version(value: bool) -> None:
    if value:
        from .. import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
