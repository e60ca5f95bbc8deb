"""All commands, in the order in which `--help` lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from . import degradations, runs, strength
from .shell import app

__all__ = ["app", "degradations", "runs", "strength"]


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
