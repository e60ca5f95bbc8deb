"""The page of a study in a real browser, driven through its debugging pipe: keys, clicks, reloads and downloads."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import drawn_photographs

from crypsis.camouflage.agreement import judge
from crypsis.camouflage.study import Study, plan_study
from crypsis.camouflage.vote_files import read_votes
from crypsis.report.study import build_study_page

pytestmark = pytest.mark.browser
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
    "--disable-background-networking", "--disable-sync", "--remote-debugging-pipe", "--window-size=1000,800",
)  # fmt: skip
EVIL = '</script><img src=x onerror="document.title=1">, "a"'
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


@pytest.fixture(scope="module")
def browser() -> str:
    names = (os.environ.get("CRYPSIS_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None or shutil.which("bash") is None:
        reason = "no Chromium (and bash) was found; install one or name it in CRYPSIS_CHROMIUM"
        if os.environ.get("CRYPSIS_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="module")
def profile(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tab, Path]]:
    folder = tmp_path_factory.mktemp("browser")
    tab = Tab(browser, folder)
    yield tab, folder
    tab.ask("Browser.close")
    tab.process.wait(30)
    for end in (tab.reader, tab.writer):
        end.close()


@pytest.fixture(scope="module")
def study() -> Study:
    images = {EVIL: "Owl, tawny", "b": "Owl, tawny", "c": "Owl, tawny", "d": "Owl, tawny"}
    return plan_study(images, pairs=6, obvious=["plain"], catch_share=0.2, participants=4, seed=3)


@pytest.fixture(scope="module")
def address(profile: tuple[Tab, Path], study: Study) -> str:
    photographs = drawn_photographs(5)
    pictures = {name: photographs[i][2] for i, name in enumerate(study.images)}
    file = profile[1] / "study.html"
    file.write_text(build_study_page(study, pictures.__getitem__, title=EVIL, size=160), "utf-8")
    return file.as_uri()


@pytest.fixture
def tab(profile: tuple[Tab, Path], address: str) -> Iterator[Tab]:
    profile[0].events.clear()
    profile[0].open(address)
    yield profile[0]
    assert profile[0].complaints() == []
    assert profile[0].run("document.documentElement.dataset.errors") is None
    profile[0].run("localStorage.clear()")


@pytest.fixture
def saved(profile: tuple[Tab, Path]) -> Callable[[str], Path]:
    def wait(name: str) -> Path:
        until = time.monotonic() + 30
        while not (profile[1] / name).exists():
            assert time.monotonic() < until, f"{name} was not saved"
            time.sleep(0.02)
        return profile[1] / name

    return wait


def test_all_pairs_by_keyboard_make_votes_that_are_read(tab: Tab, study: Study, saved: Callable[[str], Path]) -> None:
    tab.begin(2)
    trials = study.lists[1]
    assert tab.count == f"Pair 1 of {len(trials)}"
    sides = [trial.answer or ("left" if i % 3 else "right") for i, trial in enumerate(trials)]
    for side in sides:
        tab.press("ArrowLeft" if side == "left" else "ArrowRight")
    assert tab.shown == "done"
    tab.click("#done [data-save]")
    votes = read_votes(saved("votes-2.csv"))
    assert [(v.participant, v.left, v.right, v.answer, v.species) for v in votes] == [
        (v.participant, v.left, v.right, v.answer, v.species) for v in trials
    ]
    assert [vote.choice for vote in votes] == sides
    found = judge(votes, minimum_votes=1)
    assert (found.participants, found.failed, found.judged) == (1, (), 6)
    header = saved("votes-2.csv").read_text("utf-8").splitlines()[0]
    assert header == "participant,left,right,choice,answer,species"


def test_the_pictures_of_the_trial_are_shown(tab: Tab, study: Study) -> None:
    tab.begin(1)
    for trial in study.lists[0][:3]:
        for side in ("left", "right"):
            number = study.images.index(getattr(trial, side))
            assert tab.run(
                f"document.querySelector('#{side} img').src === "
                f"JSON.parse(document.getElementById('study').textContent).pictures[{number}]"
            )
            assert tab.run(f"document.querySelector('#{side} img').naturalWidth > 0")
        tab.press("ArrowLeft")


def test_a_reload_loses_nothing_and_one_can_go_back(tab: Tab, address: str, saved: Callable[[str], Path]) -> None:
    tab.begin(3)
    for key in ("ArrowLeft", "ArrowRight", "ArrowLeft"):
        tab.press(key)
    assert tab.count.startswith("Pair 4 ")
    tab.open(address)
    assert tab.shown == "run"
    assert tab.count.startswith("Pair 4 ")
    tab.press("Backspace")
    tab.click("[data-back]")
    assert tab.count.startswith("Pair 2 ")
    tab.click("#left")
    assert tab.count.startswith("Pair 3 ")
    tab.click("#run [data-save]")
    assert [vote.choice for vote in read_votes(saved("votes-3.csv"))] == ["left", "left"]


def test_two_participants_on_one_device(tab: Tab, study: Study) -> None:
    tab.begin(1)
    for _ in study.lists[0]:
        tab.press("ArrowLeft")
    tab.click("#next")
    assert tab.shown == "start"
    assert not tab.run("document.getElementById('consent').checked")
    tab.begin(4)
    assert tab.count.startswith("Pair 1 ")
    assert tab.run("Object.keys(localStorage).length") == 3


def test_a_double_click_is_one_answer(tab: Tab) -> None:
    tab.begin(1)
    time.sleep(0.16)
    tab.run("for (const i of [1, 2]) document.getElementById('right').click()")
    assert tab.count.startswith("Pair 2 ")


def test_no_start_without_consent_and_a_known_number(tab: Tab) -> None:
    tab.run("document.getElementById('number').value = '1'")
    tab.click("#begin .main")
    assert tab.shown == "start"
    tab.click("#consent")
    for number in ("", "0", "5", "1.5"):
        tab.run(f"document.getElementById('number').value = '{number}'")
        tab.click("#begin .main")
        assert tab.shown == "start"


def test_the_address_names_a_participant(tab: Tab, address: str) -> None:
    tab.open(f"{address}#3")
    assert tab.run("document.getElementById('number').value") == "3"
    assert tab.shown == "start"


def test_on_paper_all_pairs_of_a_list(tab: Tab, study: Study) -> None:
    tab.run("document.getElementById('number').value = '2'; dispatchEvent(new Event('beforeprint'))")
    assert tab.run("document.querySelectorAll('#paper li').length") == len(study.lists[1])
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert tab.run("document.getElementById('paper').hidden")


def test_a_browser_that_keeps_nothing_says_so_and_works(tab: Tab) -> None:
    tab.run("Storage.prototype.setItem = () => { throw new Error('full'); }")
    tab.begin(1)
    assert not tab.run("document.getElementById('lost').hidden")
    tab.press("ArrowLeft")
    assert tab.count.startswith("Pair 2 ")


@pytest.mark.parametrize(("width", "height"), [(360, 740), (740, 360), (1280, 800)])
def test_both_images_fit_the_screen(tab: Tab, width: int, height: int) -> None:
    tab.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True)
    tab.begin(1)
    tab.run("scrollTo(0, 0)")
    boxes = tab.run(
        "['left', 'right'].map((id) => { const b = document.getElementById(id).getBoundingClientRect();"
        " return [b.left, b.top, b.right, b.bottom, b.width]; })"
    )
    assert all(left >= 0 and right <= width and bottom <= height for left, _, right, bottom, _ in boxes), boxes
    assert all(wide > 150 for *_, wide in boxes)
    assert tab.run("document.documentElement.scrollWidth") <= width
    tab.ask("Emulation.clearDeviceMetricsOverride")
