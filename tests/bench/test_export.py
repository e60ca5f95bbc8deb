"""Detections of a run as other tools read them, and as they are read back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crypsis.bench import export as module
from crypsis.bench.detect import run_detection
from crypsis.bench.detection_plan import plan_coco_degradation
from crypsis.bench.export import Export, export_detections, field_name
from crypsis.catalog import list_entries
from crypsis.datasets.detection import open_detection
from crypsis.detection_results import DetectionRun, summarize_detections
from crypsis.errors import InputError, UnknownNameError
from crypsis.io import write_image
from crypsis.types import Condition

FOG, ELASTIC = "cod10k-c/fog", "imagenet-c/elastic_transform"
CLEAN = Condition("clean", 0)

DETECTOR = """
import numpy as np

def bright(image):
    rows, columns = np.nonzero(image.mean(axis=2) > 150)
    rng = np.random.default_rng(int(image.sum()))
    corners = np.sort(rng.uniform(0, 40, (6, 2, 2)), axis=1).reshape(6, 4)
    if len(rows):
        corners[0] = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
        corners[1] = corners[0] + rng.uniform(-2, 2, 4)
    return corners, rng.uniform(0.2, 1, 6), rng.integers(0, 2, 6)
"""


def make_objects(root: Path, count: int = 6) -> Path:
    """Write dark images with a bright object in all but the last, and their annotations."""
    rng = np.random.default_rng(0)
    images, annotations = [], []
    for index in range(count):
        image = rng.integers(0, 60, (48, 64, 3), np.uint8)
        left, top = rng.integers(2, 30, 2).tolist()
        if index < count - 1:
            image[top : top + 16, left : left + 20] = 230
            box = {"image_id": 10 + index, "bbox": [left, top, 20, 16], "area": 320, "iscrowd": int(index == 1)}
            annotations.append({"id": index + 1, "category_id": (3, 7)[index % 2], **box})
        name = f"sub/{index}.png"
        write_image(root / "images" / name, image)
        images.append({"id": 10 + index, "file_name": name, "width": 64, "height": 48})
    content = {"images": images, "annotations": annotations}
    content["categories"] = [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat"}]
    (root / "instances.json").write_text(json.dumps(content))
    return root


def detect(root: Path, model: str, out: Path, annotations: Path | None = None, truth: str = "aligned") -> DetectionRun:
    plan = plan_coco_degradation(
        str(root / "images"), str(annotations or root / "instances.json"), [model], entries=[FOG, ELASTIC],
        severities=(1, 3), truth=truth, strength_images=0,
    )  # fmt: skip
    assert not run_detection(plan, out).errors
    return DetectionRun.open(out)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a set, and of a run over it whose third image is damaged."""
    root = make_objects(tmp_path_factory.mktemp("export"))
    (root / "export_detector.py").write_text(DETECTOR)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root))
        detect(root, "python:export_detector:bright,classes=cat/dog", root / "run")
        shutil.copytree(root / "images", root / "damaged" / "images")
        shutil.copy(root / "instances.json", root / "damaged")
        (root / "damaged/images/sub/2.png").write_bytes(b"\x89PNG")
        detect(root / "damaged", "python:export_detector:bright,classes=cat/dog", root / "run-damaged")
        yield root


@pytest.fixture
def run(made: Path) -> DetectionRun:
    return DetectionRun.open(made / "run")


def conditions_of(run: DetectionRun) -> Any:
    (model,) = run.models
    return summarize_detections(run, samples=0)["models"][model]["conditions"]


@pytest.mark.parametrize("name", ["run", "run-damaged"])
def test_results_that_are_read_back_give_the_same_scores(made: Path, tmp_path: Path, name: str) -> None:
    run = DetectionRun.open(made / name)
    done = export_detections(run, tmp_path / "out", model="bright")
    root = made if name == "run" else made / "damaged"
    left_out = [] if name == "run" else ["sub/2"]
    assert (done.images, done.conditions, list(done.failed), done.missing) == (6 - len(left_out), 5, left_out, 0)
    assert done.detections == 6 * 5 * done.images
    again = detect(root, f"predictions:{tmp_path / 'out'}", tmp_path / "again", tmp_path / "out/instances.json")
    scores = conditions_of(again)
    assert scores == conditions_of(run)
    assert 0 < scores["clean"]["ap"]["value"] < 1
    assert scores[f"{ELASTIC}@3"]["ap"]["value"] != scores["clean"]["ap"]["value"]


def test_the_layout_of_results_and_their_ids(run: DetectionRun, tmp_path: Path) -> None:
    export_detections(run, tmp_path / "out", model="bright")
    names = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    degraded = {f"{entry}/{severity}.json" for entry in (FOG, ELASTIC) for severity in (1, 3)}
    assert names == {"clean.json", "instances.json", *degraded}
    instances = json.loads((tmp_path / "out/instances.json").read_text())
    assert instances.pop("info") == {"run": "run", "model": "bright", "threshold": 0.0, "crypsis": "0.1.0"}
    assert instances == run.truth()
    results = json.loads((tmp_path / "out/clean.json").read_text())
    assert {result["image_id"] for result in results} == {image["id"] for image in instances["images"]}
    assert {result["category_id"] for result in results} <= {3, 7}
    held = dict(run.rows(["clean"]))["bright", "clean", 0].detections
    assert [[r["image_id"], *r["bbox"], r["score"], r["category_id"]] for r in results] == held.tolist()


def test_several_passes_write_the_same_files(
    run: DetectionRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_detections(run, tmp_path / "one", model="bright")
    monkeypatch.setattr(module, "_OPEN_FILES", 2)
    export_detections(run, tmp_path / "three", model="bright")
    for file in (tmp_path / "one").rglob("*.json"):
        assert (tmp_path / "three" / file.relative_to(tmp_path / "one")).read_bytes() == file.read_bytes()


def test_a_threshold_and_some_conditions(run: DetectionRun, tmp_path: Path) -> None:
    chosen = [Condition(FOG, 3), CLEAN]
    done = export_detections(run, tmp_path / "out", model="bright", threshold=0.6, conditions=chosen)
    files = [tmp_path / "out/clean.json", tmp_path / "out" / FOG / "3.json"]
    assert sorted((tmp_path / "out").rglob("*.json")) == sorted([*files, tmp_path / "out/instances.json"])
    scores = [result["score"] for file in files for result in json.loads(file.read_text())]
    assert done.detections == len(scores) < 6 * 2 * 6
    assert min(scores) >= 0.6
    none = export_detections(run, tmp_path / "none", model="bright", threshold=1.0)
    assert none.detections == 0
    assert json.loads((tmp_path / "none/clean.json").read_text()) == []


def test_images_that_are_not_done_are_left_out(run: DetectionRun, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    (tmp_path / "run/parts" / run.parts()[1].name).unlink()
    done = export_detections(DetectionRun.open(tmp_path / "run"), tmp_path / "out", model="bright")
    assert (done.images, done.missing) == (4, 2)
    instances = json.loads((tmp_path / "out/instances.json").read_text())
    assert [image["id"] for image in instances["images"]] == [10, 11, 12, 13]
    assert {found["image_id"] for found in instances["annotations"]} == {10, 11, 12, 13}
    for part in (tmp_path / "run/parts").iterdir():
        part.unlink()
    with pytest.raises(InputError, match="nothing of bright to export"):
        export_detections(DetectionRun.open(tmp_path / "run"), tmp_path / "none", model="bright")


@pytest.mark.parametrize("given", [True, False])
def test_fiftyone_samples_hold_paths_truth_and_each_condition(
    made: Path, run: DetectionRun, tmp_path: Path, given: bool
) -> None:
    images = made / "images" if given else None
    done = export_detections(run, tmp_path / "out", model="bright", style="fiftyone", images=images)
    assert (done.images, done.conditions, done.detections) == (6, 5, 180)
    metadata = json.loads((tmp_path / "out/metadata.json").read_text())
    assert "version" not in metadata  # by which FiftyOne knows this form from the other
    assert metadata["info"]["classes"] == ["cat", "dog"]
    samples = json.loads((tmp_path / "out/samples.json").read_text())["samples"]
    assert [sample["filepath"] for sample in samples] == [str(made / f"images/sub/{k}.png") for k in range(6)]
    truth = run.truth()
    held = dict(run.rows(["clean"]))["bright", "clean", 0].detections
    names = {3: "cat", 7: "dog"}
    for image, sample in zip(truth["images"], samples, strict=True):
        assert {field_name(condition) for condition in run.conditions} <= sample.keys()
        objects = [found for found in truth["annotations"] if found["image_id"] == image["id"]]
        listed = sample["ground_truth"]["detections"]
        assert [(f["label"], f["iscrowd"]) for f in listed] == [
            (names[f["category_id"]], f["iscrowd"]) for f in objects
        ]
        np.testing.assert_allclose(pixels(listed), [f["bbox"] for f in objects] or np.empty((0, 4)), atol=1e-5)
        mine = held[held[:, 0] == image["id"]]
        found = sample["predictions_clean"]["detections"]
        assert [f["confidence"] for f in found] == mine[:, 5].tolist()
        assert [f["label"] for f in found] == [names[int(number)] for number in mine[:, 6]]
        np.testing.assert_allclose(pixels(found), mine[:, 1:5], atol=1e-5)
        assert {label["_cls"] for label in sample.values() if isinstance(label, dict)} == {"Detections"}
        assert {f["_cls"] for f in [*listed, *found]} == {"Detection"}


def pixels(found: list[dict[str, Any]]) -> np.ndarray:
    return np.array([f["bounding_box"] for f in found]).reshape(-1, 4) * [64, 48, 64, 48]


def test_fiftyone_truth_that_moved_has_a_field_of_its_own(run: DetectionRun, tmp_path: Path) -> None:
    export_detections(run, tmp_path / "out", model="bright", style="fiftyone")
    samples = json.loads((tmp_path / "out/samples.json").read_text())["samples"]
    moved = {name for name in samples[0] if name.startswith("ground_truth_")}
    assert moved == {f"ground_truth_imagenet_c_elastic_transform_{severity}" for severity in (1, 3)}
    before, after = (samples[0][name]["detections"][0] for name in ("ground_truth", max(moved)))
    assert after["label"] == before["label"]
    assert after["bounding_box"] != before["bounding_box"]
    expected = dict(run.rows([ELASTIC]))["bright", ELASTIC, 3].truth_boxes[10][0] / [64, 48, 64, 48]
    x, y, width, height = after["bounding_box"]
    np.testing.assert_allclose([x, y, x + width, y + height], expected, atol=1e-6)


def test_field_names_are_names_and_differ() -> None:
    conditions = [CLEAN, *(Condition(entry.name, s) for entry in list_entries() for s in range(1, 6))]
    names = [field_name(condition) for condition in conditions]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)
    assert field_name(Condition("imagenet-c/fog", 3)) == "predictions_imagenet_c_fog_3"


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"style": "cocoo"}, UnknownNameError, "did you mean 'coco'"),
        ({"model": "brght"}, UnknownNameError, "did you mean 'bright'"),
        ({"conditions": [Condition(FOG, 2)]}, UnknownNameError, f"did you mean '{FOG}@"),
        ({"threshold": 1.5}, InputError, "from 0 to 1; got 1.5"),
        ({"threshold": float("nan")}, InputError, "from 0 to 1; got nan"),
        ({"style": "fiftyone", "images": Path("nowhere")}, InputError, "6 of 6 images of .* are not there"),
    ],
)
def test_mistakes_are_named_before_anything_is_written(
    run: DetectionRun, tmp_path: Path, options: dict[str, Any], error: type[InputError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        export_detections(run, tmp_path / "out", **{"model": "bright", **options})
    assert not (tmp_path / "out").exists()


def test_a_target_that_holds_something_is_refused(run: DetectionRun, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for target in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(InputError, match="is not an empty folder; name a new one"):
            export_detections(run, target, model="bright")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "empty").mkdir()
    assert export_detections(run, tmp_path / "empty", model="bright").images == 6


def test_a_damaged_part_is_one_sentence(run: DetectionRun, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    part = tmp_path / "run/parts" / run.parts()[0].name
    part.write_bytes(part.read_bytes()[:-30])
    with pytest.raises(InputError, match=rf"{part.name}: is damaged .* give the bench command again"):
        export_detections(DetectionRun.open(tmp_path / "run"), tmp_path / "out", model="bright")


def test_what_was_written_in_words() -> None:
    whole = Export(2, 1, 12, {}, 0)
    assert whole.text() == "2 images, 1 condition, 12 detections."
    lines = Export(2, 1, 12, {"a": "it is torn"}, 3).text().splitlines()
    assert lines[1:] == [
        "Left out, as in the run's scores: 1 image that failed: a (it is torn).",
        "Left out: 3 images of the plan not done yet.",
    ]


def test_exported_instances_are_a_detection_set(made: Path, run: DetectionRun, tmp_path: Path) -> None:
    export_detections(run, tmp_path / "out", model="bright")
    again = open_detection(made / "images", tmp_path / "out/instances.json")
    first = open_detection(made / "images", made / "instances.json")
    assert (again.items, again.categories, again.warnings) == (first.items, first.categories, ())
    assert {k: [f["bbox"] for f in v] for k, v in again.annotations.items()} == {
        k: [f["bbox"] for f in v] for k, v in first.annotations.items()
    }
