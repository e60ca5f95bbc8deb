"""Crypsis: how hard is an object to see, and does your model still see it?

    import crypsis
    foggy = crypsis.apply_degradation(image, "cod10k-c/fog", severity=3)

Names are loaded when they are first used, so that `import crypsis` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .catalog import get_entry, list_entries
    from .catalog.apply import apply_degradation
    from .severity.inverse import degrade_to_strength

__all__ = ["apply_degradation", "degrade_to_strength", "get_entry", "list_entries"]
__version__ = "0.1.0"

_HOME = {
    "apply_degradation": "crypsis.catalog.apply",
    "degrade_to_strength": "crypsis.severity.inverse",
    "get_entry": "crypsis.catalog",
    "list_entries": "crypsis.catalog",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'crypsis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))
