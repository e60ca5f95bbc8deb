from __future__ import annotations

import json
from pathlib import Path

import PIL.Image

from command_line import run


def test_validate_boxes(tmp_path: Path) -> None:
    images = [{"id": n, "file_name": f"{n}.png", "width": 30, "height": 20} for n in (1, 2)]
    box = {"id": 3, "image_id": 1, "category_id": 4, "bbox": [1, 2, 5, 6], "area": 30, "iscrowd": 0}
    flat = {**box, "id": 5, "bbox": [1, 2, 0, 6]}
    path = tmp_path / "instances.json"
    path.write_text(
        json.dumps({"images": images, "annotations": [box, flat], "categories": [{"id": 4, "name": "owl"}]})
    )
    for n in (1, 2):
        PIL.Image.new("RGB", (30, 20), (n, n, n)).save(tmp_path / f"{n}.png")
    good = run("validate", tmp_path, "--annotations", path)
    assert good.exit_code == 0
    assert "1 annotation whose box has no area left out: 5 (1.png)" in good.stdout
    assert good.stdout.endswith("2 images checked, all can be scored.\n")

    PIL.Image.new("RGB", (31, 20)).save(tmp_path / "2.png")
    bad = run("validate", tmp_path, "--annotations", path, "--json", "--quiet")
    assert bad.exit_code == 2
    report = json.loads(bad.stdout)
    assert (report["ok"], report["objects"], report["empty"], report["categories"]) == (False, 1, 1, {"owl": 1})
    assert [(p["key"], p["kind"]) for p in report["problems"]] == [("2", "size-mismatch")]

    (tmp_path / "2.png").unlink()
    absent = run("validate", tmp_path, "--annotations", path)
    assert absent.exit_code == 2
    assert "1 of the 2 images" in absent.stderr
