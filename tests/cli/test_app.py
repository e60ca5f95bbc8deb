"""The command line: what it prints, and one sentence with the right exit code for every mistake."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from command_line import run
from crypsis.cli import main
from crypsis.io import read_image, write_image


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_list() -> None:
    result = run("list")
    assert result.exit_code == 0
    assert "cod10k-c/rain" in result.stdout
    rows = json.loads(run("list", "--json").stdout)
    assert {"name", "cause", "effect", "group", "parameters"} <= set(rows[0])
    assert all(len(row["parameters"]) == 5 for row in rows)


def test_list_filters() -> None:
    rows = json.loads(run("list", "--cause", "E", "--paper", "Hendrycks_ICLR_2019", "--json").stdout)
    assert {row["name"] for row in rows} == {f"imagenet-c/{n}" for n in ("snow", "frost", "fog", "spatter")}
    assert run("list", "--effect", "XX").exit_code == 2
    assert run("list", "--cause", "E", "--effect", "N").exit_code == 2


def test_describe_takes_aliases() -> None:
    result = run("describe", "cod10k-c/jpeg")
    assert result.exit_code == 0
    assert "quality = 70" in result.stdout


def test_help_imports_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "cv2", "pyarrow", "onnxruntime", "PIL"}
    code = (
        "import sys; from typer.testing import CliRunner; from crypsis.cli.app import app;"
        "r = CliRunner().invoke(app, ['bench', 'cod10k-c', '--help']); assert r.exit_code == 0, r.output;"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    assert python(code).strip() == "[]"


def test_import_is_light() -> None:
    code = (
        "import sys, time; start = time.process_time(); import crypsis; spent = time.process_time() - start;"
        "assert spent < 0.3, spent; print('numpy' in sys.modules, sorted(crypsis.__all__))"
    )
    assert python(code).startswith("False ['apply_degradation'")


def test_public_names() -> None:
    import crypsis

    assert crypsis.__all__ == ["apply_degradation", "degrade_to_strength", "get_entry", "list_entries"]
    assert all(callable(getattr(crypsis, name)) for name in crypsis.__all__)
    assert set(crypsis.__all__) <= set(dir(crypsis))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = crypsis.nothing


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("degrade", "absent.png", "out.png", "--op", "cod10k-c/fog"), 2, "no such file or folder"),
        (("degrade", "{image}", "out.png", "--op", "cod10k-c/fogg"), 2, "did you mean 'fog'?"),
        (("degrade", "{image}", "out.png", "--op", "cod10k-c/fog", "--severity", "0"), 2, "Severities are 1 to 5"),
        (("degrade", "{image}", "out.png", "--op", "cod10k-c/fog", "--severity", "6"), 2, "Severities are 1 to 5"),
        (("degrade", "{image}", "out.png", "--op", "cod10k-c/fog", "--severity", "1-99999999999"), 2, "1 to 5"),
        (("bench", "cod10k-c", "--data", "demo", "--model", "saliency", "-o", "r", "--seed", str(2**63)), 2, "64 bits"),
        (("degrade", "{image}", "out.png", "--op", "cod10k-c/fog", "--severity", "mild"), 2, "Severities are 1 to 5"),
        (("degrade", "{image}", "out.png", "--op", "cod10k-c/fog", "--severity", "1-5"), 2, "must be a folder"),
        (("degrade", "{image}", "out", "--op", "cod10k-c/fog", "--format", "gif"), 2, "cannot be written"),
        (("degrade", "{empty}", "out", "--op", "cod10k-c/fog"), 2, "no image is in this folder"),
        (("describe", "rain"), 2, "There is no"),
        (("gallery", "absent.png"), 2, "cannot be read"),
        (("gallery", "{text}"), 2, "not an image"),
        (("validate", "absent"), 2, "absent"),
        (("validate", "{empty}"), 2, "empty"),
        (("tables", "{empty}"), 2, "no run is here"),
        (("report", "{empty}"), 2, "no run is here"),
        (("bench", "cod10k-c", "--data", "demo", "--model", "salience", "--out", "r"), 2, "saliency"),
        (("bench", "cod10k-c", "--data", "absent", "--model", "saliency", "--out", "r"), 2, "absent"),
        (("bench", "cod10k-c", "--data", "demo", "--model", "onnx:{text}", "--out", "r"), 2, "note.txt"),
        (("bench", "cod10k-c", "--data", "demo", "--model", "python:no.such:f", "--out", "r"), 2, "no.such"),
        (("bench", "cod10k-c", "--data", "demo", "--model", "saliency"), 2, "--out"),
        (("bench", "cod10k-c", "--data", "demo", "--model", "saliency", "--out", "r", "--limit", "0"), 2, "limit"),
    ],
)
def test_mistakes(
    arguments: tuple[str, ...], code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_image(tmp_path / "image.png", np.full((8, 8, 3), 100, np.uint8))
    (tmp_path / "note.txt").write_text("not an image")
    (tmp_path / "empty").mkdir()
    places = {"image": "image.png", "text": "note.txt", "empty": "empty"}
    result = run(*(a.format(**places) for a in arguments))
    assert result.exit_code == code, result.output
    assert words in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "r").exists()


def test_degrade_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    write_image(tmp_path / "in.png", rng.integers(0, 256, (20, 30, 3), np.uint8))
    assert run("degrade", tmp_path / "in.png", tmp_path / "out.png", "--op", "cod10k-c/brightness").exit_code == 0
    dark, bright = read_image(tmp_path / "out.png"), read_image(tmp_path / "in.png")
    assert dark.mean() == pytest.approx(0.55 * bright.mean(), abs=1)


def test_degrade_a_folder_with_a_bad_image(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("a", "sub/b", "ünï 目录/é b"):
        write_image(tmp_path / "in" / f"{name}.png", rng.integers(0, 256, (20, 30, 3), np.uint8))
    (tmp_path / "in" / "bad.jpg").write_bytes(b"\xff\xd8\xff broken")
    result = run("degrade", tmp_path / "in", tmp_path / "out", "--op", "cod10k-c/rain", "--severity", "1-2", "-q")
    assert result.exit_code == 3
    assert "bad.jpg" in result.output
    written = sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.png"))
    assert written == [f"cod10k-c/rain/{s}/{n}.png" for s in (1, 2) for n in ("a", "sub/b", "ünï 目录/é b")]


def test_degrade_matches_the_benchmark_and_any_number_of_workers(tmp_path: Path) -> None:
    from crypsis import get_entry

    rng = np.random.default_rng(0)
    for name in ("a", "b", "c"):
        write_image(tmp_path / "in" / f"{name}.png", rng.integers(0, 256, (20, 30, 3), np.uint8))
    for workers in (1, 2):
        target = tmp_path / f"out{workers}"
        options = ("--op", "cod10k-c/gaussian_noise", "--seed", 7, "--workers", workers, "-q")
        assert run("degrade", tmp_path / "in", target, *options).exit_code == 0
        for name in ("a", "b", "c"):
            expected = get_entry("cod10k-c/gaussian_noise").degrade(
                read_image(tmp_path / "in" / f"{name}.png"), 3, seed=7, image_key=name
            )
            assert (read_image(target / "cod10k-c" / "gaussian_noise" / "3" / f"{name}.png") == expected).all()


def test_degrade_keeps_orientation_right(tmp_path: Path) -> None:
    picture = PIL.Image.fromarray(np.full((40, 100, 3), 90, np.uint8))
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    picture.save(tmp_path / "in.jpg", exif=exif)
    assert run("degrade", tmp_path / "in.jpg", tmp_path / "out.png", "--op", "cod10k-c/fog").exit_code == 0
    with PIL.Image.open(tmp_path / "out.png") as out:
        assert out.size == (40, 100)
        assert 0x0112 not in out.getexif()


def test_degrade_refuses_two_images_for_one_file(tmp_path: Path) -> None:
    for name in ("a.png", "a.bmp"):
        write_image(tmp_path / "in" / name, np.zeros((4, 4, 3), np.uint8))
    result = run("degrade", tmp_path / "in", tmp_path / "out", "--op", "cod10k-c/fog")
    assert result.exit_code == 2
    assert "rename one" in result.output


def test_bench_tables_report_gallery(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data, out = make_set(5), tmp_path / "run"
    command = ("bench", "cod10k-c", "--data", data, "--model", "saliency", "--out", out, "--workers", 1, "-q")
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert "Retention" in result.stdout
    assert (out / "report.html").exists()
    again = run(*command)
    assert again.exit_code == 0
    assert again.stdout == result.stdout
    assert run(*command, "--seed", 1).exit_code == 2
    shown = run("status", out)
    assert (shown.exit_code, shown.stdout) == (0, f"{out}: 5 of 5 images done, 0 of them failed.\n")
    for style, mark in (("markdown", "| saliency"), ("latex", r"\toprule"), ("csv", "run,saliency,clean,dice,")):
        shown = run("tables", out, "--format", style)
        assert shown.exit_code == 0
        assert mark in shown.stdout
    summary = json.loads(run("tables", out, "--json").stdout)[str(out)]
    assert summary["complete"] is True
    rows = list(csv.DictReader(io.StringIO(run("tables", out, "-f", "csv").stdout)))
    value = next(r for r in rows if (r["images"], r["metric"]) == ("cod10k-c/rain@3", "dice"))
    dice = summary["models"]["saliency"]["conditions"]["cod10k-c/rain@3"]["dice"]["value"]
    assert float(value["value"]) == pytest.approx(dice, abs=1e-6)
    assert (value["scored"], value["planned"], value["complete"]) == ("5", "5", "true")
    assert run("report", out, "-o", tmp_path / "page.html").exit_code == 0
    assert "saliency" in (tmp_path / "page.html").read_text("utf-8")
    image = data / "Imgs" / "animal-00.png"
    assert run("gallery", image, "-o", tmp_path / "gallery.html").exit_code == 0
    assert (tmp_path / "gallery.html").read_text("utf-8").count("data:image/webp") >= 41


PICKY = '''
import numpy as np

def dark(image):
    """Fail on images darker than gray 40."""
    if image.mean() < 40:
        raise ValueError("too dark")
    return np.full(image.shape[:2], 0.2)

def loud(image):
    print("hello stdout")
    return np.full(image.shape[:2], 0.2)

def leave(image):
    raise SystemExit(7)
'''


def test_demo_sets_the_networks_beside_the_floor(tmp_path: Path) -> None:
    result = run("demo", "--limit", 1, "--workers", 1, "--out", tmp_path / "run", "-q")
    assert result.exit_code == 0, result.output
    for model in ("robust-cod-lite", "robust-cod-lite-no-augmentation", "saliency"):
        assert f"| {model} |" in result.stdout
    assert "Difference from robust-cod-lite" in (tmp_path / "run" / "report.html").read_text("utf-8")


def test_a_model_that_fails_leaves_the_others_alone(
    make_set: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picky_model.py").write_text(PICKY)
    arguments = ("--data", make_set(5), "--model", "python:picky_model:dark", "--model", "saliency", "-q")
    result = run("bench", "cod10k-c", *arguments, "--out", "run", "--workers", 1, "--json")
    assert result.exit_code == 3, result.output
    summary = json.loads(result.stdout)["run"]
    assert (summary["complete"], summary["scored"], summary["models"]["dark"]) == (False, 0, None)
    assert summary["models"]["saliency"]["scored"] == 5
    assert "dark scored no image" in run("tables", "run").stdout


def test_what_a_model_prints_is_not_a_result(
    make_set: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picky_models.py").write_text(PICKY)
    arguments = ("--data", make_set(2), "--out", "run", "--workers", 1, "--json", "-q")
    result = run("bench", "cod10k-c", *arguments, "--model", "python:picky_models:loud")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["run"]["complete"] is True
    result = run("bench", "cod10k-c", *arguments, "--model", "python:picky_models:leave")
    assert result.exit_code == 2
    assert "picky_models:leave raised SystemExit" in result.output


def test_an_image_too_long_for_an_operator_is_one_failure(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(3)
    write_image(data / "Imgs" / "long.png", np.full((1, 65_600, 3), 90, np.uint8))
    write_image(data / "GT" / "long.png", np.full((1, 65_600), 255, np.uint8))
    arguments = ("--data", data, "--model", "saliency", "--out", tmp_path / "run", "--workers", 1)
    result = run("bench", "cod10k-c", *arguments)
    assert result.exit_code == 3
    assert "long: JPEG holds sides up to 65500" in result.output
    assert run("status", tmp_path / "run").stdout.startswith(
        f"{tmp_path / 'run'}: 4 of 4 images done, 1 of them failed"
    )


def test_damaged_run_folders(make_set: Callable[..., Path], tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ("bench", "cod10k-c", "--data", make_set(5), "--model", "saliency", "--out", out, "--workers", 1, "-q")
    assert run(*command).exit_code == 0
    before = run("tables", out).stdout
    part = sorted((out / "parts").iterdir())[0]
    part.write_bytes(b"")
    result = run("tables", out)
    assert result.exit_code == 2
    assert "is damaged" in result.output
    assert run(*command).exit_code == 0
    assert run("tables", out).stdout == before
    (out / "summary.json").write_text("{")
    assert run("tables", out).stdout == before
    part.unlink()
    assert "INCOMPLETE" in run("tables", out).stdout  # though a summary of all parts lies there
    (out / "timing.jsonl").unlink()
    (out / "timing.jsonl").symlink_to("/dev/full")
    result = run(*command)
    assert result.exit_code == 3
    assert "no space is left" in result.output
    (out / "run.json").write_text('{"schema": "crypsis.run/1"}')
    assert run("status", out).exit_code == 2


def test_empty_masks_are_named(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(3)
    write_image(data / "GT" / "animal-01.png", np.zeros((48, 64), np.uint8))
    arguments = ("--data", data, "--model", "saliency", "--out", tmp_path / "run", "--workers", 1)
    assert "1 masks are empty (animal-01)" in run("bench", "cod10k-c", *arguments).stdout


def test_terminated(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\nimport numpy as np\ndef look(image):\n"
        "    time.sleep(0.2)\n    return np.full(image.shape[:2], 0.2)\n"
    )
    command = [sys.executable, "-m", "crypsis", "bench", "cod10k-c", "--data", "demo", "--model", "python:slow:look"]
    process = subprocess.Popen(
        [*command, "-o", "run", "--workers", "2"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "run" / "run.json").exists():
        time.sleep(0.05)
    time.sleep(2)  # the workers are at it; a unit takes 30 s
    process.terminate()
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 143
    assert stderr.strip() == "crypsis: Terminated. What is done is kept; give the same command again to continue."


def test_interrupted_while_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "crypsis.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "crypsis.cli.app", raising=False)
    monkeypatch.delattr("crypsis.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


def test_closed_stdout_is_no_failure() -> None:
    done = subprocess.run(
        f"{sys.executable} -m crypsis list | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_bench_with_a_bad_image_exits_3(make_set: Callable[..., Path], tmp_path: Path) -> None:
    data = make_set(5)
    (data / "Imgs" / "animal-02.png").write_bytes(b"")
    arguments = ("--data", data, "--model", "saliency", "--out", tmp_path / "run", "--workers", 1)
    result = run("bench", "cod10k-c", *arguments)
    assert result.exit_code == 3
    assert "animal-02" in result.output
    assert "incomplete" in result.output.lower()
    shown = run("status", tmp_path / "run")
    assert shown.exit_code == 3
    assert "animal-02: " in shown.stdout
    assert "incomplete" in (tmp_path / "run" / "report.html").read_text("utf-8").lower()


def test_validate(make_set: Callable[..., Path]) -> None:
    data = make_set(3)
    assert run("validate", data).exit_code == 0
    (data / "GT" / "animal-01.png").unlink()
    result = run("validate", data)
    assert result.exit_code == 2
    assert "animal-01" in result.output
    assert "1 file without a partner" in result.output


def test_missing_folder_in_a_real_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crypsis", "bench", "cod10k-c", "--data", "nowhere", "--model", "saliency"]
    done = subprocess.run([*command, "-o", "run"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
