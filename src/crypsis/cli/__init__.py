"""The command line: a thin shell that parses, calls one public function, and prints."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line; exit codes are those of `crypsis.errors`."""
    try:
        from .app import app
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # nothing was begun; app() sees to it from here on
    app()
