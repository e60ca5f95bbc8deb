"""The command line: a thin shell that parses, calls one public function, and prints."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line; exit codes are those of `crypsis.errors`."""
    from .app import app

    app()
