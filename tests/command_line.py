"""Runs a command in this process, with its two output streams apart."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from typer.testing import CliRunner

from crypsis.cli.app import app

# click below 8.2 mixes the streams unless told not to; later ones know no such option
_OPTIONS = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it printed where."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Both streams."""
        return self.stdout + self.stderr


def run(*arguments: object) -> Result:
    """Run `crypsis` with these arguments."""
    result = CliRunner(**_OPTIONS).invoke(app, [str(a) for a in arguments])
    return Result(result.exit_code, result.stdout, result.stderr)
