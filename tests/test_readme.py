"""The README's Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def test_python_blocks_run() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 2
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    assert namespace["worse"].shape == namespace["image"].shape


def test_what_its_commands_write_is_ignored() -> None:
    root = Path(__file__).parents[1]
    commands = re.findall(r"^crypsis .*", (root / "README.md").read_text("utf-8"), re.MULTILINE)
    written = re.findall(r" (?:--out|-o|degrade \S+) ([\w.-]+)", "\n".join(commands))
    assert {"runs", "even"} <= set(written)
    ignored = {line.strip("/") for line in (root / ".gitignore").read_text("utf-8").splitlines()}
    assert set(written) <= ignored
