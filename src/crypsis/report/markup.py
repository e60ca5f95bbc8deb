"""The little HTML that the page and the gallery share: escaping, data URIs, the shell of a document."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

__all__ = ["attributes", "document", "escape", "json_script", "plain", "read_asset", "webp_uri"]

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def plain(value: object) -> str:
    """Return text that can be encoded and shown: no control characters, no lone surrogates (odd file names)."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", str(value).encode("utf-8", "replace").decode("utf-8"))


def escape(value: object) -> str:
    """Return `value` as HTML text or attribute value."""
    return html.escape(plain(value), quote=True)


def attributes(**values: object) -> str:
    """Return ` name="value"` pairs; `data_copy` becomes `data-copy`, None is left out, True has no value."""
    parts = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        parts.append(f" {name}" if value is True else f' {name}="{escape(value)}"')
    return "".join(parts)


def webp_uri(data: bytes) -> str:
    """Return a WebP file as a `data:` address."""
    return "data:image/webp;base64," + base64.b64encode(data).decode("ascii")


def read_asset(name: str) -> str:
    """Return a style sheet or script that lies beside this module."""
    return (files(__package__) / name).read_text("utf-8")


def json_script(name: str, value: Mapping[str, Any]) -> str:
    """Return `value` as a data block that no string inside can end or turn into markup."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{name}">{text}</script>'


def document(title: str, body: str, *, script: str) -> str:
    """Return a whole page that loads nothing: the policy forbids it, and names the one script that may run.

    Args:
        title: plain text.
        body: HTML.
        script: name of the script beside this module.
    """
    code = read_asset(script)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode("ascii")
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{read_asset('style.css')}</style>\n</head>\n"
        f"<body>\n{body}\n<script>{code}</script>\n</body>\n</html>\n"
    )
