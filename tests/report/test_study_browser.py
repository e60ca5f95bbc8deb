"""The page of a study in a real browser, driven through its debugging pipe: keys, clicks, reloads and downloads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser_tab import Tab, opened_tab
from synthetic_runs import drawn_photographs

from crypsis.camouflage.agreement import judge
from crypsis.camouflage.study import Study, plan_study
from crypsis.camouflage.vote_files import read_votes
from crypsis.report.study import build_study_page

pytestmark = pytest.mark.browser
EVIL = '</script><img src=x onerror="document.title=1">, "a"'


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tab, Path]]:
    folder = tmp_path_factory.mktemp("browser")
    with opened_tab(folder) as tab:
        yield tab, folder


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
