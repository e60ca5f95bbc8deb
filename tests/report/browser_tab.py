"""A tab of a headless Chromium, driven through its debugging pipe."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
    "--disable-background-networking", "--disable-sync", "--remote-debugging-pipe", "--window-size=1000,800",
)  # fmt: skip
KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "Backspace": 8}


class Tab:
    """One tab of a headless Chromium: messages of its debugging protocol, each ended by a zero byte."""

    def __init__(self, browser: str, folder: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        # the browser reads from 3 and writes to 4; ends above 9 cannot be overwritten while these are set
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs[0], ours[1])]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash", browser, *_FLAGS,
             f"--user-data-dir={folder / 'profile'}", "about:blank"],
            pass_fds=ends, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (*ends, theirs[0], ours[1]):
            os.close(end)
        self.reader, self.writer = os.fdopen(ours[0], "rb", 0), os.fdopen(theirs[1], "wb", 0)
        self.buffer, self.number, self.session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        self.target = ""
        self.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if not method.startswith(("Browser.", "Target.")):
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self.number:
            self.events.append(answer)
        assert "error" not in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready = select.select([self.reader], [], [], 60)[0]
            piece = self.reader.read(1 << 16) if ready else b""
            assert piece, f"the browser ended or is silent after {self.events[-3:]}"
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, address: str) -> None:
        """Open a page in a new tab, and close the one before."""
        if self.target:
            self.ask("Target.closeTarget", targetId=self.target)
        self.target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready")

    def run(self, script: str) -> Any:
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        until = time.monotonic() + 30
        while not self.run(script):
            assert time.monotonic() < until, f"never came true: {script}"
            time.sleep(0.02)

    def press(self, key: str) -> None:
        time.sleep(0.16)  # a pair counts as seen after 150 ms
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=KEYS[key])

    def click(self, selector: str) -> None:
        time.sleep(0.16)
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({ behavior: 'instant', block: 'center' });"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def begin(self, number: int) -> None:
        self.run(f"document.getElementById('number').value = '{number}'")
        self.click("#consent")
        self.click("#begin .main")
        self.wait("document.documentElement.dataset.shown !== 'start'")

    @property
    def count(self) -> str:
        return str(self.run("document.getElementById('count').textContent"))

    @property
    def shown(self) -> str:
        return str(self.run("document.documentElement.dataset.shown"))

    def complaints(self) -> list[dict[str, Any]]:
        """What the page asked of the network, logged or threw."""
        kinds = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Network.requestWillBeSent")
        asked = [one["params"].get("request", {}).get("url", "") for one in self.events]
        return [
            one
            for one, url in zip(self.events, asked, strict=True)
            if one["method"] in kinds and not url.startswith(("data:", "blob:", "file:", "about:"))
        ]


@contextmanager
def opened_tab(folder: Path) -> Iterator[Tab]:
    """Give a tab, with its profile and downloads in a folder; skip where no browser is, unless one is required."""
    names = (os.environ.get("CRYPSIS_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None or shutil.which("bash") is None:
        reason = "no Chromium (and bash) was found; install one or name it in CRYPSIS_CHROMIUM"
        if os.environ.get("CRYPSIS_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    tab = Tab(found, folder)
    yield tab
    tab.ask("Browser.close")
    tab.process.wait(30)
    for end in (tab.reader, tab.writer):
        end.close()
