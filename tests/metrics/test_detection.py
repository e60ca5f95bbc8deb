from __future__ import annotations

import contextlib
import io
import itertools
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from crypsis.errors import InputError, MissingDependencyError, UnknownNameError
from crypsis.metrics.detection import (
    EVALUATORS,
    SCORES,
    DetectionEvaluator,
    DetectionScores,
    centered_interval,
    drops_by_label,
    rank_changes,
)
from crypsis.metrics.robustness import aggregate, bootstrap_counts

pycocotools_coco = pytest.importorskip("pycocotools.coco", reason="needs the extra pycocotools")
pycocotools_eval = pytest.importorskip("pycocotools.cocoeval", reason="needs the extra pycocotools")

Truth = dict[str, Any]
CATEGORY_GAPS = (0, 1, 3, 18, 90)
"""Ids with gaps; the last has no object."""


def annotation(number: int, image: int, category: int, box: list[float], *, crowd: bool = False) -> dict[str, Any]:
    return {
        "id": number, "image_id": image, "category_id": category, "bbox": box, "area": box[2] * box[3],
        "iscrowd": int(crowd),
    }  # fmt: skip


def make(seed: int, *, images: int = 40, ties: bool = True) -> tuple[Truth, NDArray[np.float64]]:
    """Crowds, `ignore`, images without objects or detections, category gaps, tiny and huge boxes, more than 100
    detections in an image, all of one category in some, and, with `ties`, few different scores."""
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.choice(10 * images, images, replace=False))
    annotations, detections = [], []

    def boxes(count: int) -> NDArray[np.float64]:
        size = np.exp(rng.uniform(np.log(0.5), np.log(300), (count, 2)))
        return np.concatenate([rng.uniform(-5, 300, (count, 2)), size], axis=1)

    for n, image in enumerate(ids.tolist()):
        count = 0 if n % 7 == 0 else int(rng.integers(1, 12))
        true = boxes(count)
        category = rng.choice(CATEGORY_GAPS[:-1], count)
        for box, k in zip(true.tolist(), category.tolist(), strict=True):
            row = annotation(len(annotations) + 1, image, k, box, crowd=rng.random() < 0.15)
            row["area"] *= rng.uniform(0.4, 1)  # of the outline
            row["ignore"] = int(rng.random() < 0.1)
            annotations.append(row)
        if n % 11 == 5:
            continue
        again = np.repeat(np.arange(count), rng.integers(0, 4, count))
        near = true[again] + rng.normal(0, 0.08, (len(again), 4)) * np.tile(true[again, 2:], 2)
        near[:, 2:] = np.abs(near[:, 2:])
        stray = 260 if n % 13 == 1 else int(rng.integers(0, 25))
        labels = np.concatenate([category[again], rng.choice(CATEGORY_GAPS[: 1 if n % 2 else None], stray)])
        scores = rng.uniform(0.02, 0.7, len(labels)) + 0.3 * (np.arange(len(labels)) < len(again))
        if ties:
            scores = np.round(scores, 1)
        found = np.concatenate([near, boxes(stray)])
        found[-1:, 2:] *= 10.0 ** rng.integers(0, 6)  # up to beyond COCO's largest area
        detections.append(np.column_stack([np.full(len(labels), image), found, scores, labels]))
    truth = {
        "images": [{"id": i, "width": 640, "height": 480, "file_name": f"{i}.jpg"} for i in ids.tolist()],
        "annotations": annotations,
        "categories": [{"id": k, "name": "the same"} for k in CATEGORY_GAPS],
    }
    rows = np.concatenate(detections)
    return truth, rows[rng.permutation(len(rows))]


def reference(truth: Truth, detections: NDArray[np.float64]) -> list[float]:
    """pycocotools as its users call it."""
    with contextlib.redirect_stdout(io.StringIO()):
        coco = pycocotools_coco.COCO()
        coco.dataset = {**truth, "annotations": [dict(a) for a in truth["annotations"]]}
        coco.createIndex()
        evaluation = pycocotools_eval.COCOeval(coco, coco.loadRes(detections.copy()), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [value if value > -1 else np.nan for value in evaluation.stats.tolist()]


def numbers(scores: DetectionScores) -> list[float]:
    return [getattr(scores, name) for name in SCORES]


def one_box(**fields: Any) -> Truth:
    return {
        "images": [{"id": 5}, {"id": 8}],
        "categories": [{"id": 2, "name": "frog"}],
        "annotations": [annotation(1, 5, 2, [10.0, 10.0, 50.0, 40.0]) | fields],
    }


PERFECT = np.array([[5.0, 10, 10, 50, 40, 0.9, 2]])
NOTHING = np.empty((0, 7))


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("seed", range(6))
def test_the_numbers_of_pycocotools(seed: int, evaluator: str) -> None:
    truth, detections = make(seed)
    per_image = np.unique(detections[:, 0], return_counts=True)[1]
    assert per_image.max() > 200
    scores = DetectionEvaluator(truth, evaluator=evaluator).evaluate(detections)
    expected = reference(truth, detections)
    assert numbers(scores) == expected
    assert 0.05 < scores.ap < 0.95
    assert np.isnan(scores.per_category[90])
    assert np.nanmean(list(scores.per_category.values())) == pytest.approx(scores.ap, abs=1e-12)


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_ground_truth_is_prepared_once_and_left_alone(evaluator: str, capfd: pytest.CaptureFixture[str]) -> None:
    truth, detections = make(7)
    kept = [dict(a) for a in truth["annotations"]]
    scorer = DetectionEvaluator(truth, evaluator=evaluator)
    first = numbers(scorer.evaluate(detections))
    scorer.evaluate(detections[::3])
    scorer.match(detections)
    assert numbers(scorer.evaluate(detections)) == first
    assert truth["annotations"] == kept
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_perfect_detection_and_none(evaluator: str) -> None:
    scorer = DetectionEvaluator(one_box(), evaluator=evaluator)
    right, none = scorer.evaluate(PERFECT), scorer.evaluate(NOTHING)
    # 2000 square pixels are medium; no small or large object: nothing is said of these
    for scores, value in ((right, 1.0), (none, 0.0)):
        assert numbers(scores) == pytest.approx(
            [value, value, value, np.nan, value, np.nan, value, value, value, np.nan, value, np.nan], nan_ok=True
        )
        assert scores.per_category == pytest.approx({2: value})


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("detections", [NOTHING, PERFECT])
def test_nothing_to_find(evaluator: str, detections: NDArray[np.float64]) -> None:
    for truth in (one_box(iscrowd=1), one_box() | {"annotations": []}):
        scorer = DetectionEvaluator(truth, evaluator=evaluator)
        assert np.isnan(numbers(scorer.evaluate(detections))).all()
        assert np.isnan(scorer.match(detections).average_precision(np.ones((2, 2), np.uint16))).all()


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_subset_is_scored_by_its_own_truth(evaluator: str) -> None:
    truth, detections = make(8)
    chosen = {image["id"] for image in truth["images"][10:20]}
    part = truth | {
        "images": [i for i in truth["images"] if i["id"] in chosen],
        "annotations": [a for a in truth["annotations"] if a["image_id"] in chosen],
    }
    rows = detections[np.isin(detections[:, 0], list(chosen))]
    scorer = DetectionEvaluator(part, evaluator=evaluator)
    assert numbers(scorer.evaluate(rows)) == reference(part, rows)
    with pytest.raises(InputError, match=r"Detections have image ids .* and \d+ more"):
        scorer.evaluate(detections)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([6.0, 0, 0, 1, 1, 0.5, 2], "image ids that the truth does not list: 6"),
        ([5.5, 0, 0, 1, 1, 0.5, 2], "image ids that the truth does not list: 5.5"),
        ([5.0, 0, 0, 1, 1, 0.5, 3], "category ids that the truth does not list: 3"),
        ([5.0, 0, 0, 1, np.nan, 0.5, 2], "finite"),
        ([5.0, 0, 0, 1, 1, np.inf, 2], "finite"),
        ([5.0, 0, 0, -1, 1, 0.5, 2], "below 0"),
        ([5.0, 0, 0, 1, 1, 0.5], "float64 N×7"),
    ],
)
def test_detections_that_cannot_be_scored(row: list[float], message: str) -> None:
    scorer = DetectionEvaluator(one_box())
    for method in (scorer.evaluate, scorer.match):
        with pytest.raises(InputError, match=message):
            method(np.array([row]))
    with pytest.raises(InputError, match="float32"):
        scorer.evaluate(PERFECT.astype(np.float32))


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (one_box(id=0), "start at 1"),
        (one_box(id=-1), "annotation id -1"),
        (one_box() | {"images": [{"id": "frog-7"}]}, "image id 'frog-7': number them"),
        (one_box() | {"images": []}, "at least one image"),
        (one_box() | {"images": [{"id": 5}, {"id": 5}]}, "image id 5 occurs more than once"),
        (one_box() | {"annotations": one_box()["annotations"] * 2}, "annotation id 1 occurs more than once"),
        (one_box() | {"categories": [{"name": "frog"}]}, "lacks 'id'"),
        (one_box(image_id=6), "Annotations have image ids that the truth does not list: 6"),
        (one_box(category_id=6), "Annotations have category ids that the truth does not list: 6"),
        ({"images": [{"id": 5}], "categories": []}, "lacks 'annotations'"),
        (one_box() | {"annotations": [{"id": 1}]}, "lacks 'image_id'"),
    ],
)
def test_truth_that_cannot_be_used(truth: Truth, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DetectionEvaluator(truth)


def test_an_unknown_evaluator() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'pycocotools'"):
        DetectionEvaluator(one_box(), evaluator="pycoco-tools")


@pytest.mark.parametrize(("evaluator", "module"), [("hotcoco", "hotcoco"), ("pycocotools", "pycocotools.coco")])
def test_a_package_that_is_not_there(evaluator: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=f"pip install {evaluator}"):
        DetectionEvaluator(one_box(), evaluator=evaluator)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("seed", range(4))
def test_the_bootstrap_of_the_set_itself_is_the_evaluators_number(seed: int, evaluator: str) -> None:
    truth, detections = make(seed)
    scorer = DetectionEvaluator(truth, evaluator=evaluator)
    scores = scorer.evaluate(detections)
    by_threshold = scorer.match(detections).average_precision(np.ones((1, len(scorer.image_ids)), np.uint16))[0]
    assert by_threshold.mean() == pytest.approx(scores.ap, abs=1e-14)
    assert by_threshold[0] == pytest.approx(scores.ap50, abs=1e-14)
    assert by_threshold[5] == pytest.approx(scores.ap75, abs=1e-14)


def repeated(
    truth: Truth, detections: NDArray[np.float64], times: NDArray[np.integer[Any]]
) -> tuple[Truth, NDArray[np.float64]]:
    """The set in which the images, by ascending id, occur `times` times, under new ids."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    rows = []
    old_ids = np.repeat(sorted(image["id"] for image in truth["images"]), times).tolist()
    for new, old in enumerate(old_ids):
        images.append({"id": new})
        for a in truth["annotations"]:
            if a["image_id"] == old:
                annotations.append(a | {"id": len(annotations) + 1, "image_id": new})
        copied = detections[detections[:, 0] == old]
        copied[:, 0] = new
        rows.append(copied)
    return truth | {"images": images, "annotations": annotations}, np.concatenate(rows)


@pytest.mark.parametrize("seed", range(3))
def test_the_bootstrap_is_that_of_really_repeated_images(seed: int) -> None:
    truth, detections = make(seed, ties=False)
    scorer = DetectionEvaluator(truth)
    counts = bootstrap_counts(len(scorer.image_ids), samples=8, seed=seed)
    counts[-1] = 0
    counts[-1, [1, 2]] = 20  # few images, so that some categories have nothing left to find
    result = scorer.match(detections).average_precision(counts)
    for row, by_threshold in zip(counts, result, strict=True):
        again, rows = repeated(truth, detections, row)
        scores = DetectionEvaluator(again).evaluate(rows)
        assert by_threshold.mean() == pytest.approx(scores.ap, abs=1e-13)
        assert by_threshold[0] == pytest.approx(scores.ap50, abs=1e-13)
        assert by_threshold[5] == pytest.approx(scores.ap75, abs=1e-13)
    assert np.ptp(result[:-1].mean(axis=1)) > 0.01


def test_equal_scores_in_different_images_are_no_exception() -> None:
    truth, detections = make(3)
    detections = detections[np.unique(detections[:, [0, 5, 6]], axis=0, return_index=True)[1]]
    assert len(np.unique(detections[:, 5])) <= 11
    scorer = DetectionEvaluator(truth)
    counts = bootstrap_counts(len(scorer.image_ids), samples=5, seed=0)
    result = scorer.match(detections).average_precision(counts).mean(axis=1)
    expected = [DetectionEvaluator(t).evaluate(d).ap for t, d in (repeated(truth, detections, row) for row in counts)]
    assert result == pytest.approx(expected, abs=1e-13)


def test_both_evaluators_match_alike_whatever_the_size_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, detections = make(11)
    counts = bootstrap_counts(len(truth["images"]), samples=30, seed=1)
    results = []
    for evaluator, chunk, block in (("hotcoco", 500, 1 << 18), ("hotcoco", 3, 1 << 9), ("pycocotools", 500, 1)):
        monkeypatch.setattr("crypsis.metrics.detection.CHUNK", chunk)
        monkeypatch.setattr("crypsis.metrics.detection.BLOCK", block)
        results.append(DetectionEvaluator(truth, evaluator=evaluator).match(detections).average_precision(counts))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_resamples_without_an_object_say_nothing() -> None:
    matches = DetectionEvaluator(one_box()).match(PERFECT)
    result = matches.average_precision(np.array([[0, 2], [1, 1], [2, 0]], np.uint16)).mean(axis=1)
    assert result == pytest.approx([np.nan, 1, 1], nan_ok=True)


@pytest.mark.parametrize("shape", [(3, 1), (3, 3), (2,)])
def test_counts_of_other_images(shape: tuple[int, ...]) -> None:
    matches = DetectionEvaluator(one_box()).match(PERFECT)
    with pytest.raises(InputError, match="Counts of 2 images"):
        matches.average_precision(np.ones(shape, np.uint16))


def test_resamples_lie_too_high_and_the_interval_does_not() -> None:
    truth, detections = make(0)
    scorer = DetectionEvaluator(truth)
    ap = scorer.evaluate(detections).ap
    counts = bootstrap_counts(len(scorer.image_ids), samples=400, seed=0)
    samples = scorer.match(detections).average_precision(counts).mean(axis=1)
    low, high = centered_interval(ap, samples)
    assert samples.mean() > ap + 0.005
    assert low < ap < high
    assert high - low == pytest.approx(np.diff(np.quantile(samples, (0.025, 0.975)))[0])


def test_intervals_by_hand() -> None:
    assert centered_interval(0.5, np.arange(101) / 100, level=0.9) == pytest.approx((0.05, 0.95))
    assert centered_interval(0.2, [0.3, np.nan, 0.5], level=0.5) == pytest.approx((0.15, 0.25))
    assert np.isnan(centered_interval(0.2, [np.nan])).all()


@pytest.mark.parametrize(("samples", "level"), [([], 0.9), ([[0.5]], 0.9), ([0.5], 0), ([0.5], 1), ([0.5], 95)])
def test_intervals_of_nothing(samples: list[Any], level: float) -> None:
    with pytest.raises(InputError, match="samples"):
        centered_interval(0.5, samples, level=level)


CORRUPTED_DETECTORS = {
    "Faster R-CNN R-50": (36.3, 18.2, 50.2),
    "Faster R-CNN R-101": (38.5, 20.9, 54.2),
    "Faster R-CNN X-101-32x4d": (40.1, 22.3, 55.5),
    "Faster R-CNN R-50 DCN": (40.0, 22.4, 56.1),
    "Cascade R-CNN R-50": (40.4, 20.1, 49.7),
    "RetinaNet R-50": (35.6, 17.8, 50.1),
}
"""Clean AP, mPC and rPC in % of Michaelis et al. 2019 on COCO, as MMDetection's documentation prints them."""


def test_relative_performance_of_the_published_detectors() -> None:
    clean, corrupted, relative = np.array(list(CORRUPTED_DETECTORS.values())).T
    result = aggregate(clean, corrupted[:, None])
    # both AP are rounded to 0.1
    assert 100 * result.retention == pytest.approx(relative, abs=0.05 * (1 + 1 / 1.5) / 35 * 100 + 0.05)


def test_ranks_of_the_published_detectors() -> None:
    clean, corrupted, _ = np.array(list(CORRUPTED_DETECTORS.values())).T
    changes = rank_changes(list(CORRUPTED_DETECTORS), clean, corrupted)
    assert set(changes.swaps) == {
        ("Cascade R-CNN R-50", "Faster R-CNN X-101-32x4d"),
        ("Cascade R-CNN R-50", "Faster R-CNN R-50 DCN"),
        ("Cascade R-CNN R-50", "Faster R-CNN R-101"),
        ("Faster R-CNN X-101-32x4d", "Faster R-CNN R-50 DCN"),
    }
    # 15 pairs, 4 of them swapped; ranks 5, 4, 2, 3, 1, 6 and 5, 3, 2, 1, 4, 6: squared differences 1 + 4 + 9
    assert changes.kendall == pytest.approx((11 - 4) / 15)
    assert changes.spearman == pytest.approx(1 - 6 * 14 / (6 * 35))


def test_ranks_with_ties() -> None:
    # pairs: a = b clean; the other five differ: four alike (c above a and b, d above a and b) and c, d swapped
    changes = rank_changes("abcd", [1, 1, 2, 3], [1, 0, 3, 2])
    assert changes.swaps == (("d", "c"),)
    assert changes.kendall == pytest.approx((4 - 1) / np.sqrt(5 * 6))
    # ranks 1.5, 1.5, 3, 4 and 2, 1, 4, 3: covariance 3.5 (Pearson over ranks)
    assert changes.spearman == pytest.approx(3.5 / np.sqrt(4.5 * 5))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_ranks_that_say_nothing(count: int) -> None:
    changes = rank_changes(list("abc")[:count], [0.5] * count, range(count))
    assert np.isnan([changes.kendall, changes.spearman]).all()
    assert changes.swaps == ()


@pytest.mark.parametrize(("clean", "corrupted"), [([1], [1, 2]), ([1, 2], [1]), ([1, np.nan], [1, 2])])
def test_scores_that_cannot_be_ranked(clean: list[float], corrupted: list[float]) -> None:
    with pytest.raises(InputError, match="Ranks of 2 detectors"):
        rank_changes(["a", "b"], clean, corrupted)


def test_drops_by_label() -> None:
    result = aggregate(0.5, [[0.5, 0.3], [0.2, 0.2], [0.1, 0.3]])
    drops = drops_by_label(result, ["noise", "blur", "noise"])
    assert list(drops) == ["noise", "blur"]
    assert drops == pytest.approx({"noise": -0.2, "blur": -0.3})
    by_entry = drops_by_label(result, ["a", "b", "c"])
    assert np.mean(list(by_entry.values())) == pytest.approx(float(result.delta))


def test_drops_keep_leading_axes() -> None:
    rng = np.random.default_rng(0)
    clean, scores = rng.uniform(size=(3, 20)), rng.uniform(size=(3, 20, 4, 5))
    drops = drops_by_label(aggregate(clean, scores), "xyxx")
    for i, j in itertools.product(range(3), range(20)):
        alone = drops_by_label(aggregate(clean[i, j], scores[i, j]), "xyxx")
        assert list(drops) == list(alone) == ["x", "y"]
        assert [drop[i, j] for drop in drops.values()] == pytest.approx(list(alone.values()))


def test_drops_need_a_label_for_each_corruption() -> None:
    with pytest.raises(InputError, match="3 corruptions and 2 labels"):
        drops_by_label(aggregate(0.5, [0.1, 0.2, 0.3]), ["a", "b"])


def test_scores_are_values() -> None:
    scores = DetectionEvaluator(one_box()).evaluate(PERFECT)
    with pytest.raises(AttributeError):
        scores.ap = 0.0  # type: ignore[misc]
    assert replace(scores, ap=0.5).ap == 0.5
