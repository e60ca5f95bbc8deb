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
