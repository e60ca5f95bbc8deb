from __future__ import annotations

from pathlib import Path

import pytest

from crypsis.camouflage.agreement import Vote
from crypsis.camouflage.vote_files import read_scores, read_votes
from crypsis.errors import DatasetError, UnknownNameError


def write(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, "utf-8")
    return path


def test_votes(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "\ufeffParticipant,left,right,Choice,answer,species,milliseconds\n"
        'ann, a ,b,left,,"Owl, tawny",812\n'
        "ann,plain,b,RIGHT,right,,90\n\n"
        "bob,b,a,,,,\n",
    )
    assert read_votes(path) == (
        Vote("ann", "a", "b", "left", None, "Owl, tawny"),
        Vote("ann", "plain", "b", "right", "right"),
        Vote("bob", "b", "a", None),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column participant, left, right, choice; its header is empty"),
        ("participant,left,choice\n", "no column right"),
        ("participant,left,right,choice,choice\n", "twice"),
        ("participant,left,right,choice\nann,a,b,L\n", "line 2: choice is left, right or empty; got 'L'"),
        ("participant,left,right,choice,answer\nann,a,b,left,yes\n", "line 2: answer is left, right or empty"),
        ("participant,left,right,choice\nann,a,b,left\n,a,b,left\n", "line 3: participant is missing"),
        ("participant,left,right,choice\nann,a,,left\n", "line 2: right is missing"),
        ("participant,left,right,choice\nann,a,a,left\n", "'a' is shown beside itself"),
        ("participant,left,right,choice\nann,a,b\n", "line 2: has 3 values for 4 columns"),
        ('participant,left,right,choice\nann,"a,b,left\n', "is not CSV"),
    ],
)
def test_votes_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message) as caught:
        read_votes(write(tmp_path, text))
    assert "table.csv" in str(caught.value)


def test_scores(tmp_path: Path) -> None:
    path = write(tmp_path, "image,species,seamcam,gmm-ot,source\na,Owl,0.5,nan,unet\nb,Owl,1,,unet\nc,,,1e-3,unet\n")
    table = read_scores(path)
    assert table.scores == {"seamcam": {"a": 0.5, "b": 1.0}, "gmm-ot": {"c": 0.001}}
    assert table.species == {"a": "Owl", "b": "Owl"}
    assert table.ignored == ("source",)
    chosen = read_scores(path, ["seamcam"])
    assert (list(chosen.scores), chosen.ignored) == (["seamcam"], ("gmm-ot", "source"))


@pytest.mark.parametrize(
    ("text", "names", "error", "message"),
    [
        ("key,seamcam\na,1\n", None, DatasetError, "no column image; its header is key, seamcam"),
        ("image,seamcam\na,1\na,2\n", None, DatasetError, "line 3: 'a' is listed a second time"),
        ("image,seamcam\n,1\n", None, DatasetError, "line 2: image is missing"),
        ("image,source\na,unet\n", None, DatasetError, "no column of scores, with finite numbers .* are source"),
        ("image\na\n", None, DatasetError, "no column of scores, with finite numbers .* are none"),
        ("image,seamcam\na,1\n", ["semcam"], UnknownNameError, "did you mean 'seamcam'"),
        ("image,seamcam\na,1\nb,high\n", ["seamcam"], DatasetError, "line 3: seamcam is a finite number.*'high'"),
        ("image,seamcam\na,inf\n", ["seamcam"], DatasetError, "line 2: seamcam is a finite number"),
    ],
)
def test_scores_that_cannot_be_used(
    tmp_path: Path, text: str, names: list[str] | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_scores(write(tmp_path, text), names)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"absent\.csv: cannot be read"):
        read_votes(tmp_path / "absent.csv")
    (tmp_path / "latin.csv").write_bytes("image,seamcam\nré,1\n".encode("latin-1"))
    with pytest.raises(DatasetError, match="not UTF-8"):
        read_scores(tmp_path / "latin.csv")
