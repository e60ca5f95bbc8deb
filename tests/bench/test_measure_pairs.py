"""Measuring degraded images that exist: which files are pairs, what the numbers are, and what is refused."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from crypsis.bench.dataset import degrade_dataset, plan_dataset
from crypsis.bench.degrade import Target, degrade_files
from crypsis.bench.measure import finish_measuring, measure, plan_measure
from crypsis.bench.pairs import PairPlan, finish_pairs, plan_pairs
from crypsis.errors import DatasetError, InputError, PlanChangedError, UnknownNameError
from crypsis.io import file_digest, read_image, write_image
from crypsis.severity.calibration import PSNR_CEILING
from crypsis.severity.strength import CleanImage

FOG = "cod10k-c/fog"


@pytest.fixture
def clean(make_set: Callable[..., Path]) -> Path:
    """Return a plain folder of 12 images."""
    return make_set(12, height=24, width=32) / "Imgs"


@pytest.fixture
def fog(clean: Path, tmp_path: Path) -> Path:
    """Return what `crypsis degrade` wrote of one entry: folders 1 and 3."""
    degrade_files(clean, tmp_path / "out", ops=[FOG], severities=[1, 3], image_format="bmp")
    return tmp_path / "out" / "cod10k-c" / "fog"


def measured(plan: PairPlan, run: Path) -> list[dict[str, object]]:
    measure(plan, run)
    return [row for part in sorted((run / "parts").iterdir()) for row in pq.read_table(part).to_pylist()]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "parts").iterdir()}


def test_same_numbers_as_measuring_the_entry(clean: Path, fog: Path, tmp_path: Path) -> None:
    plan = plan_pairs(str(clean), [str(fog), f"one={fog / '3'}"])
    assert [(s.label, s.severity, len(s.files)) for s in plan.sets] == [
        ("fog", 1, 12), ("fog", 3, 12), ("one", None, 12),
    ]  # fmt: skip
    assert plan.warnings == ()
    rows = measured(plan, tmp_path / "run")
    assert len(rows) == 12 * 3 * 2
    row = next(r for r in rows if (r["image"], r["entry"], r["metric"]) == ("animal-04", "one", "psnr"))
    file = fog / "3" / "animal-04.bmp"
    assert row["value"] == CleanImage(read_image(clean / "animal-04.png")).strengths(read_image(file)).psnr
    assert (row["severity"], row["seed"], row["degraded_digest"]) == (None, None, file_digest(file))
    sets, placements = finish_pairs(plan, tmp_path / "run", near=[FOG])
    entry = plan_measure(str(clean), entries=[FOG])
    measure(entry, tmp_path / "entry")
    table = finish_measuring(entry, tmp_path / "entry")
    for one, severity in zip(sets, (1, 3, 3), strict=True):
        for m, metric in enumerate(table.metrics):
            numbers = (one.mean[metric], one.deviation[metric], one.low[metric], one.high[metric])
            expected = [a[m, 0, severity - 1] for a in (table.mean, table.deviation, table.low, table.high)]
            assert numbers == pytest.approx(expected, rel=1e-12)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["sets"][1] == sets[1].to_dict()
    assert summary["placement"] == [p.to_dict() for p in placements]
    assert len(placements) == 3 * 2
    assert summary["unpaired"]["one"] == {"clean": 0, "degraded": 0}


def test_same_bytes_for_any_workers_and_interruptions(clean: Path, fog: Path, tmp_path: Path) -> None:
    # 67 sets and more make units of less than 3 images
    against = [f"{index}={fog / '3'}" for index in range(70)]
    plan = plan_pairs(str(clean), against, metrics=["psnr"])
    measure(plan, tmp_path / "one")
    measure(plan, tmp_path / "two", workers=2)
    whole = bytes_of(tmp_path / "one")
    assert len(whole) == 6
    assert bytes_of(tmp_path / "two") == whole
    first, second, *_ = sorted((tmp_path / "two" / "parts").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:100])
    assert measure(plan, tmp_path / "two").images == 4
    assert bytes_of(tmp_path / "two") == whole
    assert measure(plan, tmp_path / "two").images == 0


def test_what_crypsis_degrade_writes_of_a_data_set(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = str(make_set(2, height=24, width=32))
    degrade_dataset(plan_dataset(data, entries=[FOG, "imagenet-c/fog"], severities=[2, 4]), tmp_path / "full")
    labels = ["cod10k-c/fog s=2", "cod10k-c/fog s=4", "imagenet-c/fog s=2", "imagenet-c/fog s=4"]
    assert [s.name for s in plan_pairs(data, [str(tmp_path / "full")]).sets] == labels
    assert plan_pairs(data, [f"mine={tmp_path / 'full'}"]).sets[0].label == "mine/cod10k-c/fog"
    (one,) = plan_pairs(data, [str(tmp_path / "full" / FOG / "2")]).sets  # the data set of one condition
    assert (one.name, sorted(one.files)) == ("fog s=2", ["animal-00", "animal-01"])
    plan = plan_dataset(data, arrangement="round-robin", entries=[FOG], severities=[5])
    degrade_dataset(plan, tmp_path / "round")
    assert [s.name for s in plan_pairs(data, [str(tmp_path / "round")]).sets] == ["round s=5"]
    degrade_files(Path(data) / "Imgs", tmp_path / "chains", ops=[f"{FOG}@1", "cod10k-c/rain@2"])
    chain = next((tmp_path / "chains").iterdir())
    assert plan_pairs(data, [f"chain={chain}"]).sets[0].severity is None


def test_folders_of_one_strength_and_of_one_severity_say_so_in_their_label(clean: Path, fog: Path) -> None:
    degrade_files(clean, fog.parent.parent, ops=[FOG], strength=Target(0.1, tolerance=0.05))
    at = fog / "1-ssim=0.1"
    for against, names in (
        (fog.parent.parent, ["cod10k-c/fog s=1", "cod10k-c/fog/1-ssim=0.1", "cod10k-c/fog s=3"]),
        (fog, ["fog s=1", "fog/1-ssim=0.1", "fog s=3"]),
        (f"x={fog}", ["x s=1", "x/1-ssim=0.1", "x s=3"]),
        (at, ["fog/1-ssim=0.1"]),
        (f"x={at}", ["x"]),
        (fog / "3", ["fog s=3"]),
        (f"x={fog / '3'}", ["x"]),
    ):
        sets = plan_pairs(str(clean), [str(against)]).sets
        assert [s.name for s in sets] == names
        assert all(len(s.files) == 12 for s in sets)


def test_clean_folders_may_be_named_like_severities(clean: Path, tmp_path: Path) -> None:
    for place in ("a", "b"):
        shutil.copytree(clean, tmp_path / place / "1")
    (one,) = plan_pairs(str(tmp_path / "a"), [str(tmp_path / "b")]).sets
    assert (one.name, len(one.files)) == ("b", 12)
    assert "1/animal-00" in one.files


def test_images_beside_folders_named_like_severities(clean: Path, fog: Path) -> None:
    for path in (fog / "1").iterdir():
        shutil.copy(path, fog)
    plan = plan_pairs(str(clean), [str(fog)])
    assert [(s.name, len(s.files), len(s.extra)) for s in plan.sets] == [("fog", 12, 24)]


def test_missing_partners_are_refused_or_left_out(clean: Path, fog: Path, tmp_path: Path) -> None:
    (fog / "3" / "animal-01.bmp").unlink()
    (fog / "3" / "animal-02.bmp").rename(fog / "3" / "other.bmp")
    with pytest.raises(InputError, match=r"fog s=3: 2 of 12 clean images have no partner") as caught:
        plan_pairs(str(clean), [str(fog)])
    assert "(animal-01, animal-02); 1 there have no clean one (other)" in str(caught.value)
    assert "--allow-unpaired leaves them out" in str(caught.value)
    plan = plan_pairs(str(clean), [str(fog)], allow_unpaired=True)
    assert [w.partition(",")[0] for w in plan.warnings] == [
        "fog s=3: 2 of 12 clean images are left out",
        f"fog s=3: 1 image in {fog / '3'} without a clean one left out (other).",
    ]
    measure(plan, tmp_path / "run")
    sets, _ = finish_pairs(plan, tmp_path / "run")
    assert [(s.images, s.severity) for s in sets] == [(12, 1), (10, 3)]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["unpaired"] == {"fog s=1": {"clean": 0, "degraded": 0}, "fog s=3": {"clean": 2, "degraded": 1}}


def test_extra_images_are_only_a_warning(clean: Path, fog: Path) -> None:
    shutil.copy(fog / "1" / "animal-00.bmp", fog / "1" / "more.bmp")
    (warning,) = plan_pairs(str(clean), [str(fog)]).warnings
    assert "1 image in" in warning
    assert "(more)" in warning


def test_a_limit_takes_clean_images(clean: Path, fog: Path) -> None:
    plan = plan_pairs(str(clean), [str(fog)], limit=4)
    assert [s.key for s in plan.sources] == ["animal-00", "animal-03", "animal-06", "animal-09"]
    assert all(len(s.files) == 4 for s in plan.sets)
    assert plan.warnings == (
        "There are only 4 images; strengths over so few say little about others, a few dozen are a good number.",
    )
    for path in (fog / "3").iterdir():
        if path.stem != "animal-01":
            path.unlink()
    with pytest.raises(InputError, match="fog s=3: none of its images is among the 4"):
        plan_pairs(str(clean), [str(fog)], limit=4, allow_unpaired=True)


def test_another_size_fails_and_is_never_resized(clean: Path, fog: Path, tmp_path: Path) -> None:
    small = fog / "1" / "animal-00.bmp"
    write_image(small, np.zeros((24, 30, 3), np.uint8))
    broken = fog / "3" / "animal-00.bmp"
    broken.write_bytes(b"no image")
    plan = plan_pairs(str(clean), [str(fog)])
    outcome = measure(plan, tmp_path / "run")
    assert [path for path, _ in outcome.failures] == [str(small), str(broken)]
    assert outcome.failures[0][1] == (
        f"{small}: Strength compares images of one size, and none is resized: the clean one is 32×24, the "
        "degraded one 30×24."
    )
    sets, _ = finish_pairs(plan, tmp_path / "run", outcome.failures)
    assert [s.images for s in sets] == [11, 11]
    assert len(json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["failed"]) == 2
    for path in (small, broken):
        write_image(path, read_image(clean / "animal-00.png"))
    assert measure(plan, tmp_path / "run").failures == ()
    assert [s.images for s in finish_pairs(plan, tmp_path / "run")[0]] == [12, 12]


def test_a_clean_image_that_cannot_be_read(clean: Path, fog: Path, tmp_path: Path) -> None:
    (clean / "animal-05.png").write_bytes(b"no image")
    plan = plan_pairs(str(clean), [str(fog)])
    ((path, _),) = measure(plan, tmp_path / "run").failures
    assert path == str(clean / "animal-05.png")
    assert [s.images for s in finish_pairs(plan, tmp_path / "run")[0]] == [11, 11]


def test_no_pair_can_be_measured(clean: Path, tmp_path: Path) -> None:
    for path in clean.iterdir():
        write_image(tmp_path / "bad" / path.name, np.zeros((9, 9, 3), np.uint8))
    plan = plan_pairs(str(clean), [str(tmp_path / "bad")])
    assert len(measure(plan, tmp_path / "run").failures) == 12
    with pytest.raises(InputError, match=r"no image could be measured \(.*animal-00\.png: .*degraded one 9×9"):
        finish_pairs(plan, tmp_path / "run")


@pytest.mark.parametrize("size", [(24, 32), (1, 1), (4, 30), (10, 10)], ids=str)
@pytest.mark.parametrize("level", [0, 90, 255])
def test_identical_and_constant_and_tiny_images(size: tuple[int, int], level: int, tmp_path: Path) -> None:
    image = np.full((*size, 3), level, np.uint8)
    other = np.full((*size, 3), abs(level - 40), np.uint8)
    for name, degraded in (("a", image), ("b", other)):
        write_image(tmp_path / "clean" / f"{name}.png", image)
        write_image(tmp_path / "same" / f"{name}.bmp", degraded)
    plan = plan_pairs(str(tmp_path / "clean"), [str(tmp_path / "same")])
    rows = {(r["image"], r["metric"]): r for r in measured(plan, tmp_path / "run")}
    assert (rows["a", "psnr"]["value"], rows["a", "1-ssim"]["value"]) == (math.inf, 0.0)
    assert (rows["a", "psnr"]["unchanged"], rows["b", "psnr"]["unchanged"]) == (True, False)
    assert rows["b", "psnr"]["value"] == pytest.approx(20 * math.log10(255 / 40))
    assert 0 < rows["b", "1-ssim"]["value"] <= 2
    ((one,), _) = finish_pairs(plan, tmp_path / "run")
    assert (one.images, one.unchanged) == (2, 1)
    assert one.mean["psnr"] == pytest.approx((PSNR_CEILING + 20 * math.log10(255 / 40)) / 2)


def test_another_plan_or_other_files_are_refused(clean: Path, fog: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    measure(plan_pairs(str(clean), [str(fog)]), run)
    identity = json.loads((run / "run.json").read_text("utf-8"))["plan"]
    assert str(tmp_path) not in json.dumps(identity)
    assert identity["against"]["fog"]["3"]["images"] == 12
    with pytest.raises(PlanChangedError, match=r"\(against: fog only there, haze only now\)"):
        measure(plan_pairs(str(clean), [f"haze={fog}"]), run)
    with pytest.raises(PlanChangedError, match="holds a measurement of another plan"):
        measure(plan_measure(str(clean), entries=[FOG]), run)
    moved = tmp_path / "elsewhere" / "fog"
    shutil.copytree(fog, moved)
    assert measure(plan_pairs(str(clean), [str(moved)]), run).images == 0
    write_image(moved / "3" / "animal-00.bmp", np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(PlanChangedError, match=r"1 of the images in .* have other files now.*\(animal-00\)"):
        measure(plan_pairs(str(clean), [str(moved)]), run)


@pytest.mark.parametrize("changed", ["clean", "degraded"])
def test_another_folder_with_the_same_names_and_sizes_is_refused(changed: str, tmp_path: Path) -> None:
    folders = {"clean": tmp_path / "clean", "degraded": tmp_path / "fog"}
    for index, folder in enumerate(folders.values()):
        write_image(folder / "a.bmp", np.full((12, 16, 3), 90 + index, np.uint8))
    measure(plan_pairs(str(folders["clean"]), [f"x={folders['degraded']}"]), tmp_path / "run")
    shutil.copytree(folders[changed], tmp_path / "copy")
    folders[changed] = tmp_path / "copy"
    plan = plan_pairs(str(folders["clean"]), [f"x={folders['degraded']}"])
    assert measure(plan, tmp_path / "run").images == 0  # a copy is the same
    write_image(tmp_path / "copy" / "a.bmp", np.full((12, 16, 3), 20, np.uint8))
    with pytest.raises(PlanChangedError, match=r"1 of the images in .* have other files now.*\(a\)"):
        measure(plan, tmp_path / "run")


def test_swapped_severities_are_refused(clean: Path, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    degrade_files(clean, tool, ops=["cod10k-c/gaussian_noise"], severities=[1, 5])
    noise = tool / "cod10k-c" / "gaussian_noise"
    measure(plan_pairs(str(clean), [str(noise)]), tmp_path / "run")
    (noise / "1").rename(noise / "x")
    (noise / "5").rename(noise / "1")
    (noise / "x").rename(noise / "5")
    with pytest.raises(PlanChangedError, match="have other files now"):
        measure(plan_pairs(str(clean), [str(noise)]), tmp_path / "run")


@pytest.mark.parametrize(
    ("against", "error", "message"),
    [
        (["{tmp}/fogg"], DatasetError, r"no such file or folder; did you mean .*fog"),
        (["label="], InputError, "is written FOLDER or LABEL=FOLDER"),
        (["={tmp}/fog"], InputError, "A label starts with a letter or digit; got ''"),
        (["=1+1={tmp}/fog"], DatasetError, "no such file or folder"),
        (["-x={tmp}/fog"], InputError, "A label starts with a letter or digit; got '-x'"),
        (["{tmp}/note.txt"], InputError, "is a file; --against names a folder"),
        (["a={tmp}/fog", "a={tmp}/haze"], InputError, "Two folders have the label 'a'"),
        (["{tmp}/set/Imgs"], InputError, "holds 12 clean images of"),
        (["{tmp}"], InputError, "holds 12 clean images of"),
        (["{tmp}/empty"], InputError, r"12 of 12 clean images have no partner in .*empty \(animal-00, .*suffix\.$"),
        ([], InputError, "No folder of degraded images was named"),
    ],
    ids=str,
)
def test_wrong_folders(against: list[str], error: type[Exception], message: str, clean: Path, tmp_path: Path) -> None:
    for name in ("fog", "haze"):
        shutil.copytree(clean, tmp_path / name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("x")
    with pytest.raises(error, match=message):
        plan_pairs(str(clean), [text.replace("{tmp}", str(tmp_path)) for text in against])


def test_a_folder_with_an_equals_sign_needs_no_label(clean: Path, tmp_path: Path) -> None:
    shutil.copytree(clean, tmp_path / "q=40")
    assert plan_pairs(str(clean), [str(tmp_path / "q=40")]).sets[0].name == "q=40"


def test_wrong_metric(clean: Path, fog: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean '1-ssim'"):
        plan_pairs(str(clean), [str(fog)], metrics=["ssim"])
