from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypsis.errors import ModelError
from crypsis.models import saved_detections
from crypsis.models.detector import DetectionSource, load_detector
from crypsis.models.saved_detections import SavedDetections
from crypsis.types import Condition

CLEAN, FOG, RAIN = Condition("clean", 0), Condition("imagenet-c/fog", 3), Condition("cod10k-c/rain", 1)


def row(image: object = 7, category: object = 90, box: object = (1, 2, 3, 4), score: object = 0.5) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": box, "score": score}


def put(path: Path, results: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results))
    return path


@pytest.mark.parametrize(
    ("file", "condition"),
    [
        ("clean.json", CLEAN),
        ("clean/part.json", CLEAN),
        ("imagenet-c/fog/3.json", FOG),
        ("fog/3.json", FOG),
        ("imagenet-c/fog/3/a.json", FOG),
        ("fog/3/a.json", FOG),
    ],
)
def test_conditions_by_full_or_bare_name_in_a_file_or_in_parts(tmp_path, file, condition) -> None:
    put(tmp_path / file, [row(), row(image=8, box=[0, 0, 5.5, 0], category=0, score=1)])
    source = load_detector(f"predictions:{tmp_path}")
    assert isinstance(source, DetectionSource)
    assert source.check([7, 8, 9], {0, 90}, [condition]) == ([], [])
    found = source.load(7, condition)
    assert (found.boxes.tolist(), found.scores.tolist(), found.labels.tolist()) == ([[1, 2, 3, 4]], [0.5], [90])
    assert source.load(8, condition).boxes.tolist() == [[0, 0, 5.5, 0]]
    assert len(source.load(9, condition).scores) == 0


def test_parts_are_one_set_and_images_keep_their_order(tmp_path) -> None:
    put(tmp_path / "clean/a.json", [row(7, score=0.1), row("b", score=0.2), row(7, score=0.9)])
    put(tmp_path / "clean/b.json", [row(7, score=0.4)])
    source = SavedDetections(tmp_path)
    assert source.load(7, CLEAN).scores.tolist() == [0.1, 0.9, 0.4]
    assert source.load("b", CLEAN).scores.tolist() == [0.2]
    assert len(source.load("7", CLEAN).scores) == 0


def test_a_detector_that_found_nothing(tmp_path) -> None:
    put(tmp_path / "clean.json", [])
    source = SavedDetections(tmp_path)
    assert source.load(7, CLEAN).boxes.shape == (0, 4)
    assert source.check([7], {90}, [CLEAN]) == ([], [])


def test_exact_repetitions_count_once_and_are_told(tmp_path) -> None:
    near = row(score=0.5000001)
    put(tmp_path / "clean.json", [row(), near, row(), row(image=8), row(category=1), row()])
    source = SavedDetections(tmp_path, name="ours")
    assert len(source.load(7, CLEAN).scores) == 3
    assert source.check([7, 8], {1, 90}, [CLEAN]) == (
        [],
        ["ours: 2 detections under clean repeat others in every number; each counts once."],
    )


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([3, 1, "1", "b"]),
            st.integers(0, 3),
            st.integers(-5, 5),
            st.integers(0, 2),
            st.sampled_from([0, 0.5, 1]),
        )
    )
)
def test_each_image_gets_its_own(tmp_path_factory, rows) -> None:
    folder = tmp_path_factory.mktemp("saved")
    put(folder / "clean.json", [row(image, category, [x, 0, w, 1], score) for image, category, x, w, score in rows])
    source = SavedDetections(folder)
    for image_id in (1, 3, "1", "b", "c"):
        own = list(dict.fromkeys(r for r in rows if r[0] == image_id))
        found = source.load(image_id, CLEAN)
        assert found.labels.tolist() == [category for _, category, *_ in own]
        assert found.boxes.tolist() == [[x, 0, w, 1] for _, _, x, w, _ in own]
        assert found.scores.tolist() == [score for *_, score in own]


def test_missing_conditions_and_unknown_images_are_named(tmp_path) -> None:
    put(tmp_path / "clean.json", [row(image) for image in range(10)])
    put(tmp_path / "fog/3.json", [row("1"), row("fish.jpg")])
    faults, notes = SavedDetections(tmp_path, name="ours").check([0, 1, 2], {90}, [CLEAN, FOG, RAIN])
    assert notes == [
        "ours: under clean, 7 of 10 image ids are not in the data set (3, 4, 5, 6, 7, and 2 more); "
        "their detections are left out."
    ]
    assert faults[0] == (
        "ours: under imagenet-c/fog@3, 2 of 2 image ids are not in the data set ('1', 'fish.jpg'); "
        "write ids as the annotation file does, numbers without quotes and texts with."
    )
    assert "there are no detections under cod10k-c/rain@1" in faults[1]
    assert str(tmp_path / "cod10k-c/rain/1.json") in faults[1]
    assert str(tmp_path / "rain/1.json") in faults[1]
    assert len(faults) == 2


@pytest.mark.parametrize("image_ids", [[1, 2], list(range(70, 90))])
def test_results_of_other_images_alone_are_a_fault(tmp_path, image_ids) -> None:
    put(tmp_path / "clean.json", [row(image) for image in (7, 8)])
    put(tmp_path / "fog/3.json", [])
    assert SavedDetections(tmp_path, name="ours").check(image_ids, {90}, [CLEAN, FOG]) == (
        [
            "ours: under clean, 2 of 2 image ids are not in the data set (7, 8); "
            "give the annotations that these detections were made for."
        ],
        [],
    )


def test_unknown_categories_are_a_fault_where_labels_count(tmp_path) -> None:
    put(tmp_path / "clean.json", [row(category=number) for number in (90, 0, 17)])
    put(tmp_path / "fog/3.json", [row()])
    source = SavedDetections(tmp_path, name="ours")
    assert source.check([7], {1, 90}, [CLEAN, FOG]) == (
        [
            "ours: under clean, 2 of 3 category ids are not in the data set (0, 17); write them as the annotation file "
            "does (many models count classes from 0, COCO ids go to 90)."
        ],
        [],
    )
    assert source.check([7], None, [CLEAN, FOG]) == ([], [])


@pytest.mark.parametrize(
    "files", [("clean.json", "clean/a.json"), ("imagenet-c/fog/3.json", "fog/3.json"), ("fog/3.json", "fog/3/a.json")]
)
def test_two_sets_for_one_condition(tmp_path, files) -> None:
    for file in files:
        put(tmp_path / file, [])
    with pytest.raises(ModelError, match="several sets of detections") as caught:
        SavedDetections(tmp_path).load(7, CLEAN if "clean.json" in files else FOG)
    assert all(str(tmp_path / file) in str(caught.value) for file in files)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({"annotations": []}, "is not a list of COCO results"),
        ([[]], r"\[0\]: must be an object; got list"),
        ([row(), "box"], r"\[1\]: must be an object; got str"),
        *(([row(), {k: v for k, v in row().items() if k != gone}], rf"\[1\]: there is no {gone}") for gone in row()),
        ([row(image=1.5)], "image_id must be a number without fraction or text; got 1.5"),
        ([row(image=None)], "image_id must be"),
        ([row(image=[1])], "image_id must be"),
        ([row(image=True)], "image_id must be"),
        ([row(category="cat")], "category_id must be a number from 0 without fraction; got 'cat'"),
        ([row(category=-1)], "category_id must be"),
        ([row(category=1.5), row(category=1)], r"\[0\]: category_id must be"),
        ([row(category=2**64)], "category_id must be"),
        ([row(category=2**63)], "category_id must be"),
        ([row(box=[1, 2, 3])], "bbox must be four numbers"),
        ([row(), row(box=[1, 2, 3, 4, 5])], r"\[1\]: bbox must be four numbers"),
        ([row(box=[1, 2, -3, 4])], r"a width and height from 0; got \[1, 2, -3, 4\]"),
        ([row(box=[1, 2, 3, float("nan")])], "bbox must be"),
        ([row(box=[1e300, 2, 3, 4])], "bbox must be"),
        ([row(box=[1, 2, 3, None])], "bbox must be"),
        ([row(box=[1, 2, 3, 10**400])], "bbox must be"),
        ([row(box="1234")], "bbox must be"),
        ([row(score=50)], "score must be a number from 0 to 1; got 50"),
        ([row(score=None)], "score must be"),
        ([row(score=[0.5])], "score must be"),
        ([row(score=float("nan"))], "score must be"),
    ],
)
def test_files_that_are_no_results(tmp_path, results, message) -> None:
    path = put(tmp_path / "clean.json", results)
    source = SavedDetections(tmp_path)
    with pytest.raises(ModelError, match=message) as caught:
        source.load(7, CLEAN)
    assert str(path) in str(caught.value)
    assert source.check([7], {90}, [CLEAN]) == ([str(caught.value)], [])


@pytest.mark.parametrize("data", [b"", b"[{]", b"\xff\xfe\x00", b"[" * 100_000])
def test_damaged_files_are_one_sentence(tmp_path, data) -> None:
    (tmp_path / "clean.json").write_bytes(data)
    with pytest.raises(ModelError, match=r"clean.json: is not JSON"):
        SavedDetections(tmp_path).load(7, CLEAN)


def test_a_file_too_large_to_parse_is_refused(tmp_path, monkeypatch) -> None:
    put(tmp_path / "clean.json", [row()] * 2)
    monkeypatch.setattr(saved_detections, "MAX_BYTES", 100)
    with pytest.raises(ModelError, match=r"is larger than .* split its list into files in a folder clean\."):
        SavedDetections(tmp_path).load(7, CLEAN)


def test_conditions_asked_for_last_are_kept(tmp_path, monkeypatch) -> None:
    for number, file in enumerate(("clean.json", "fog/3.json", "rain/1.json")):
        put(tmp_path / file, [row(score=score) for score in (0.1 * number, 0.5, 0.6)])
    read = []
    inner = saved_detections._read
    monkeypatch.setattr(saved_detections, "_read", lambda path, ids: (read.append(path.stem), inner(path, ids))[1])
    monkeypatch.setattr(saved_detections, "_KEPT_ROWS", 6)
    source = SavedDetections(tmp_path)
    for condition in (CLEAN, FOG, CLEAN, RAIN, CLEAN, FOG):
        source.load(7, condition)
    assert read == ["clean", "3", "1", "3"]


def test_the_folder_gives_the_name_and_its_files_the_digest(tmp_path) -> None:
    with pytest.raises(ModelError, match=r"no folder of predictions .*gone \(looked in "):
        load_detector(f"predictions:{tmp_path / 'gone'}")
    with pytest.raises(ModelError, match="write predictions:DIR"):
        load_detector("predictions")
    put(tmp_path / "yolo,v9/clean.json", [])
    source = load_detector(f"predictions:{tmp_path / 'yolo,v9'}")
    before = source.describe()
    assert source.name == before["folder"] == "yolo,v9"
    assert str(tmp_path) not in str(before)
    put(tmp_path / "yolo,v9/clean.json", [row()])
    other = source.describe()
    assert other != before
    size = (tmp_path / "yolo,v9/clean.json").stat().st_size
    assert put(tmp_path / "yolo,v9/clean.json", [row(score=0.6)]).stat().st_size == size
    assert source.describe() != other, "files of the same size are other results"
    assert load_detector(f"predictions:{tmp_path},name=ours").name == "ours"


def test_an_entry_that_leaves_the_folder_is_refused(tmp_path) -> None:
    put(tmp_path / "secret/1.json", [])
    (tmp_path / "saved").mkdir()
    with pytest.raises(ModelError, match="is not a name inside a folder"):
        SavedDetections(tmp_path / "saved").load(7, Condition("../secret", 1))
