"""A dump into `metadata` and `papers`: whole or absent, each page once."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Outcome, Workspace
from pipeline.errors import PermanentFailure
from pipeline.settings import load_settings
from pipeline.storage.provenance import read_provenance
from pipeline.wikipedia import dump as dumps
from pipeline.wikipedia import sorting
from pipeline.wikipedia.dump import open_dump
from pipeline.wikipedia.stages import stages_of
from tests.unit.corpus.building import ledger
from tests.unit.wikipedia.pages import (
    FILE,
    LANTERN,
    MONTH,
    ORCHARD,
    heading,
    html,
    lantern,
    line,
    orchard,
    write_dump,
)

pytestmark = pytest.mark.slow


def workspace_at(folder: Path, **settings: Any) -> Workspace:
    return Workspace(load_settings(_env_file=None, data=folder, **{"workers": 1} | settings))


def run(workspace: Workspace, file: Path, *, force: bool = False) -> list[Outcome]:
    return [run_stage(stage, workspace, MONTH, force=force) for stage in stages_of(open_dump([file]))]


def small(number: int, **changed: Any) -> dict[str, Any]:
    """An article that says its own number."""
    page = html(f"<p>Page {number} is on plum variety {number}.</p>", f"{heading(2, 'Use')}<p>It is eaten.</p>")
    return line(number, f"Plum {number}", page, **changed)


def test_articles_are_rows_of_papers_and_of_metadata(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path / "data")
    file = write_dump(tmp_path, [lantern(), orchard()])
    run(workspace, file)
    made = read_provenance(workspace.root.file(tables.PAPERS, MONTH))
    assert made is not None
    assert (made.inputs, made.rows, made.notes["lines"]) == (open_dump([file]).digests(), 2, 2)
    papers = workspace.root.rows(tables.PAPERS, MONTH)
    assert [(row["arxiv_id"], row["title"], row["primary_category"], row["year"]) for row in papers] == [
        (ORCHARD, "Tumblewick orchard robot", "wikipedia.EN", 2024),
        (LANTERN, "Moth lantern", "wikipedia.EN", 2024),
    ]
    assert {row["subset"] for row in papers} == {"unrated"}
    listed = workspace.root.rows(tables.METADATA, MONTH)
    assert [(row["arxiv_id"], row["version"], row["published"], row["updated"]) for row in listed] == [
        (each, 7, "2011-02-03", "2024-08-30") for each in (ORCHARD, LANTERN)
    ]
    assert ledger(workspace, "papers", MONTH) == []


def test_the_newest_revision_of_a_page_wins_wherever_it_stands(tmp_path: Path) -> None:
    old, new = lantern(revision=3) | {"name": "Lantern of old"}, lantern(revision=9)
    for number, lines in enumerate(([old, new], [new, old], [old, new, new])):
        workspace = workspace_at(tmp_path / str(number))
        run(workspace, write_dump(tmp_path / "dump", lines))
        assert [row["title"] for row in workspace.root.rows(tables.PAPERS, MONTH)] == ["Moth lantern"]
        assert [row["version"] for row in workspace.root.rows(tables.METADATA, MONTH)] == [9]
        assert ledger(workspace, "papers", MONTH) == [(LANTERN, "duplicate")] * (len(lines) - 1)
        assert ledger(workspace, "metadata", MONTH) == ledger(workspace, "papers", MONTH)


def test_every_line_is_a_row_or_in_the_ledger_with_its_reason(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path / "data")
    lines = [
        orchard(),
        b'{"name": "torn',
        line(3, "Lamp", html('<link rel="mw:PageProp/redirect" href="./Lantern"/>')),
        line(4, "Plum", html('<p>Plum may be:</p><meta property="mw:PageProp/disambiguation"/>')),
        line(5, "Template:Lamp", html("<p>A box.</p>"), namespace={"identifier": 10}),
        line(6, "Numbers", html("<ul><li>1</li></ul>")),
        line(7, "Nothing", ""),
        line(8, "lamp", html("<p>A lamp.</p>"), is_part_of={"identifier": "enwiktionary"}),
    ]
    outcome = run(workspace, write_dump(tmp_path, lines))[-1]
    assert ledger(workspace, "papers", MONTH) == [
        (f"{FILE} line 2", "broken_line"),
        ("enwiki:3", "redirect"),
        ("enwiki:4", "disambiguation"),
        (f"{FILE} line 5", "not_an_article"),
        ("enwiki:6", "no_prose"),
        ("enwiki:7", "not_html"),
        (f"{FILE} line 8", "not_wikipedia"),
    ]
    assert outcome.rows + sum(outcome.left_out.values()) == len(lines)


def test_rows_do_not_depend_on_workers_chunks_runs_or_the_order_of_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [small(number, revision=number) for number in range(1, 60)] + [small(7, revision=99)]
    random.Random(1).shuffle(lines)
    found = []
    for workers, chunk, run_bytes, order in ((1, 10**9, 10**9, lines), (2, 2_000, 9_000, lines[::-1])):
        monkeypatch.setattr(dumps, "CHUNK_BYTES", chunk)
        monkeypatch.setattr(sorting, "RUN_BYTES", run_bytes)
        workspace = workspace_at(tmp_path / str(workers), workers=workers)
        run(workspace, write_dump(tmp_path / "dump", order))
        provenances = [read_provenance(workspace.root.file(each, MONTH)) for each in (tables.METADATA, tables.PAPERS)]
        found.append([made.rows_sha256 for made in provenances if made])
        ids = [row["arxiv_id"] for row in workspace.root.rows(tables.PAPERS, MONTH)]
        assert ids == sorted(f"enwiki:{number}" for number in range(1, 60))
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_a_dump_that_breaks_off_leaves_no_file_or_the_tables_of_a_whole_one(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path / "data")
    file = write_dump(tmp_path, [small(number) for number in range(1, 200)])
    whole = file.read_bytes()

    def run_broken() -> None:
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(PermanentFailure, match=f"{FILE} breaks off"):
            run(workspace, file)

    run_broken()
    names = [path.name for path in workspace.root.path.rglob("*") if path.is_file()]
    assert not any(name.endswith((".parquet", ".tmp", ".arrow")) for name in names)
    file.write_bytes(whole)
    run(workspace, file)
    before = [workspace.root.file(table, MONTH).read_bytes() for table in (tables.METADATA, tables.PAPERS)]
    run_broken()
    assert before == [workspace.root.file(table, MONTH).read_bytes() for table in (tables.METADATA, tables.PAPERS)]


def test_a_second_run_finds_the_month_done_and_a_changed_dump_does_not(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path / "data")
    file = write_dump(tmp_path, [lantern()])
    assert [outcome.skipped for outcome in run(workspace, file)] == [False, False]
    assert [outcome.skipped for outcome in run(workspace, file)] == [True, True]
    changed = write_dump(tmp_path, [lantern(revision=8)])
    stages = stages_of(open_dump([changed]))
    assert Counter(state(stage, workspace, MONTH) for stage in stages) == {State.STALE: 2}


def test_what_sorting_needs_is_gone_afterwards(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path / "data")
    leftover = workspace.cache("wikipedia") / f"papers-{MONTH}" / "0.arrow"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"of an import that was killed")
    run(workspace, write_dump(tmp_path, [lantern()]))
    assert workspace.root.rows(tables.PAPERS, MONTH)
    assert list(workspace.cache("wikipedia").iterdir()) == []


def test_a_page_that_takes_too_long_is_left_out_alone(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path / "data", page_seconds=1.0)
    slow = line(9, "Slow", html("<p>Word.</p>" + "<ul><li>x</li></ul>" * 80_000))
    run(workspace, write_dump(tmp_path, [lantern(), slow, orchard()]))
    assert ledger(workspace, "papers", MONTH) == [(f"{FILE} line 2", "too_slow")]
    assert [row["arxiv_id"] for row in workspace.root.rows(tables.PAPERS, MONTH)] == [ORCHARD, LANTERN]
