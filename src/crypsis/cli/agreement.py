"""Commands about people: study build, agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import DatasetError, InputError
from .shell import (
    CAMOUFLAGE,
    Images,
    Json,
    Quiet,
    Seed,
    Split,
    TableFormat,
    app,
    command,
    read_names,
    say,
    study_app,
)

if TYPE_CHECKING:
    from ..camouflage.agreement import Vote
    from ..datasets.masks import Item
    from ..types import Image

__all__ = ["agree", "build", "read_all_votes"]

_HIDDEN_FROM = 0.85
"""Blending of the demo set's animals from which they may stand beside an obvious one."""


@command(app, "agree", CAMOUFLAGE)
def agree(
    votes: Annotated[Path, typer.Argument(help="votes.csv of a study, or a folder of such files.", metavar="VOTES")],
    scores: Annotated[
        Path, typer.Argument(metavar="SCORES", help="CSV of scores, with a column image; or a run of crypsis score.")
    ],
    score: Annotated[
        list[str] | None, typer.Option(help="Columns to use, with commas or repeated.", show_default="all numbers")
    ] = None,
    ties: Annotated[str, typer.Option(help="What a pair with two equal scores counts: half, wrong or excluded.")] = (
        "half"
    ),
    minimum_votes: Annotated[int, typer.Option(help="Fewest votes of a pair that counts.")] = 3,
    catch_share: Annotated[
        float, typer.Option(help="Least share of a participant's catch trials that must be right.")
    ] = 1.0,
    level: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.95,
    samples: Annotated[int, typer.Option(help="Samples of each bootstrap.")] = 10_000,
    seed: Seed = 0,
    style: Annotated[
        TableFormat, typer.Option("--format", "-f", help="How to write the tables; csv is one long table.")
    ] = TableFormat.markdown,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say how often scores of images agree with people who chose the better hidden animal of each pair.

    A pair's truth is the majority; participants who fail catch trials, pairs with too few votes and ties are left out
    and counted. Scores are compared with each other by McNemar's test.
    """
    from ..camouflage.agreement import TIES, agreement, compare, judge
    from ..camouflage.vote_files import read_scores
    from ..errors import UnknownNameError
    from ..report.agreement_tables import Findings, agreement_csv, agreement_document, agreement_tables

    rule = next((known for known in TIES if known == ties), None)
    if rule is None:
        raise UnknownNameError.among("rule for ties", ties, TIES)
    table = read_scores(scores, read_names(score) or None)
    if table.ignored and not score:
        say(f"Not scores, ignored: {', '.join(table.ignored)}.", quiet=quiet)
    judgments = judge(
        read_all_votes(votes), minimum_votes=minimum_votes, catch_share=catch_share, species=table.species
    )
    found = {
        name: agreement(judgments, values, ties=rule, level=level, samples=samples, seed=seed)
        for name, values in table.scores.items()
    }
    comparisons = {
        (first, second): compare(
            judgments, table.scores[first], table.scores[second], ties=rule, level=level, samples=samples, seed=seed
        )
        for first, second in combinations(found, 2)
    }
    findings = Findings(judgments, found, comparisons, level)
    if as_json:
        print(json.dumps(agreement_document(findings), indent=1, ensure_ascii=False))
    elif style is TableFormat.csv:
        print(agreement_csv(findings), end="")
    else:
        print("\n".join(getattr(one, style.value)() for one in agreement_tables(findings)), end="")


def read_all_votes(path: Path) -> list[Vote]:
    """Read a file of votes, or all of a folder's."""
    from ..camouflage.vote_files import read_votes

    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if not files:
        raise DatasetError(f"{path}: holds no .csv file of votes.")
    return [vote for file in files for vote in read_votes(file)]


@command(study_app, "build")
def build(
    data: Images,
    pairs: Annotated[int, typer.Option(help="How many pairs are voted on.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the study.")],
    species_within: Annotated[
        bool, typer.Option("--species-within", help="Pair images of one species only, as the paper does.")
    ] = False,
    catch_share: Annotated[
        float, typer.Option(help="Catch trials for each pair of a list; 0 for none, else at least one.")
    ] = 0.1,
    obvious: Annotated[
        Path | None,
        typer.Option(
            help="Images whose animal nobody can miss, for catch trials: a text file, a name of --data a line.",
            show_default="animals cut out by their masks",
        ),
    ] = None,
    per_participant: Annotated[
        int | None, typer.Option(help="Pairs that each participant is shown.", show_default="all")
    ] = None,
    participants: Annotated[
        int | None, typer.Option(help="How many lists to make.", show_default="three votes for each pair")
    ] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Which animal is better hidden?",
    size: Annotated[int, typer.Option(help="Longest side of a picture, in pixels.")] = 640,
    megabytes: Annotated[float, typer.Option(help="Most that the pictures may take in the page.")] = 40.0,
    split: Split = "test",
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Make a study of which animals people find better hidden: one HTML page, for screens and for paper.

    study.html runs offline, keeps answers in the browser, and saves votes for `crypsis agree`; participants have
    numbers, and study.html#7 is for the seventh. lists.csv holds the same trials, for the choices of those who answered
    on paper. study.json says how the study was made.
    """
    from ..bench.store import claim_folder, session_of
    from ..camouflage.study import plan_study, votes_csv
    from ..io import write_atomic
    from ..report.study import build_study_page

    items, warnings = _open(data, split)
    for warning in warnings:
        say(f"warning: {warning}", quiet=quiet)
    species = {item.key: item.species for item in items.values()}
    picture, cut_outs = _pictures(items)
    named = _names(obvious, species) if obvious else []
    study = plan_study(
        {name: kind for name, kind in species.items() if name not in named},
        pairs=pairs,
        within_species=species_within,
        obvious=named or cut_outs,
        hidden=_hidden(data),
        catch_share=catch_share,
        per_participant=per_participant,
        participants=participants,
        seed=seed,
    )
    page = build_study_page(study, picture, title=title, size=size, megabytes=megabytes)
    identity = {
        "pairs": pairs, "within_species": species_within, "catch_share": catch_share, "obvious": sorted(named),
        "per_participant": per_participant, "participants": len(study.lists), "title": title, "size": size,
        "seed": seed, "images": list(study.images),
    }  # fmt: skip
    claim_folder(
        out, "study.json", schema="crypsis/study-1", identity=identity, session=session_of(data), what="study",
        option="--out",
    )  # fmt: skip
    write_atomic(out / "lists.csv", votes_csv(study.votes).encode())
    write_atomic(out / "study.html", page.encode())
    trials = len(study.lists[0])
    print(
        f"{out / 'study.html'}: {len(study.pairs)} pairs, {len(study.lists)} participants of {trials} trials each, "
        f"{len(page) / 1e6:.1f} MB"
    )
    say("Give each participant the page and a number; crypsis agree reads the votes that they save.", quiet=quiet)


def _open(data: str, split: str) -> tuple[dict[str, Item], tuple[str, ...]]:
    """Return images by name, with masks and species where the data have them, and warnings."""
    from ..datasets.folder import holds_mask_folder, list_images, missing_path
    from ..datasets.masks import Item, open_masks
    from ..datasets.naming import parse_cod10k_name

    path = Path(data)
    if data == "demo" or not path.is_dir() or holds_mask_folder(path):
        if data != "demo" and not path.exists():
            raise missing_path(path)
        found = open_masks(data, split=split)
        return {item.key: item for item in found.items}, found.warnings
    items = {}
    for key, image in list_images(path)[0].items():
        name = parse_cod10k_name(key.rpartition("/")[2])
        items[key] = Item(key, image, Path(), name.species if name else None)  # an empty path: no mask
    if not items:
        raise InputError(f"{path}: holds no images.")
    return items, ()


def _pictures(items: dict[str, Item]) -> tuple[Callable[[str], Image], list[str]]:
    """Return what reads a picture by its name, and the names of animals that can be cut out by their masks."""
    from ..camouflage.study import cut_out
    from ..io import read_image, read_mask

    cut_outs = {f"{key} (cut out)": item for key, item in items.items() if item.mask != Path()}

    def read(name: str) -> Image:
        if name in items:
            return read_image(items[name].image)
        item = cut_outs[name]
        image, mask = read_image(item.image), read_mask(item.mask).mask
        if mask.shape != image.shape[:2]:
            raise InputError(f"{item.mask}: the mask has another size than {item.image}; repair one of them.")
        return cut_out(image, mask)

    return read, list(cut_outs)


def _hidden(data: str) -> list[str] | None:
    """Return which images may stand beside an obvious one: in the demo set, not all animals are hidden."""
    from ..datasets.demo import demo_blending

    return [name for name, blend in demo_blending().items() if blend >= _HIDDEN_FROM] if data == "demo" else None


def _names(file: Path, known: dict[str, str | None]) -> list[str]:
    """Read names of images, one a line."""
    from ..errors import UnknownNameError
    from ..io import read_file

    try:
        lines = read_file(file).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: is not UTF-8 text; save it as UTF-8.") from error
    names = [name for line in lines if (name := line.strip())]
    for name in names:
        if name not in known:
            raise UnknownNameError.among(f"image ({file})", name, known)
    if not names:
        raise InputError(f"{file}: names no image; write one a line.")
    return names
