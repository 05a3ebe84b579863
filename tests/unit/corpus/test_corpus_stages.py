"""The stages dump_members and papers: what is kept, what is left out and why, and when they are out
of date.
"""

import os

import pytest

from pipeline import tables
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.corpus.dump.catalogue import months_in_dump
from pipeline.corpus.stages import DUMP_MEMBERS, PAPERS
from pipeline.engine.progress import Notice, listening
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import MissingInput, PermanentFailure
from tests.cases import agrees, cases, cases_beside
from tests.unit.corpus import harmful_parser
from tests.unit.corpus.building import (
    MONTH,
    byline,
    ledger,
    page,
    para,
    put_loose,
    put_metadata,
    section,
    workspace_for,
    write_zip,
)
from tests.workspaces import altered, make_workspace

pytestmark = pytest.mark.slow

APRIL = "2024-04"
FIRST, SECOND, THIRD, FOURTH = (f"2403.0000{number}" for number in range(1, 5))
GOOD = page(section(para("Words.")))
HARMFUL = altered(PAPERS, parser=lambda _: harmful_parser.parse, page_seconds=0.2)


@pytest.fixture
def workspace(tmp_path):
    return workspace_for(tmp_path)


def put_zip(workspace, subset, *names, content=GOOD):
    """A zip of one subset, of files below its folder."""
    members = {f"{subset}/{name}": content for name in names}
    return write_zip(workspace.settings.dump_dir / f"ar5iv-{subset}.zip", members)


def listed(workspace, month=MONTH, *, force=False):
    """The identifiers that dump_members has after a run."""
    run_stage(DUMP_MEMBERS, workspace, month, force=force)
    return [row["arxiv_id"] for row in workspace.root.rows(tables.DUMP_MEMBERS, month)]


def put_papers(workspace, contents, **metadata):
    """A month of these pages, all of computer science, listed and ready to be parsed."""
    names = {f"error/2403/{arxiv_id}.html": content for arxiv_id, content in contents.items()}
    file = write_zip(workspace.settings.dump_dir / "errors.zip", names)
    rows = ({"arxiv_id": arxiv_id} | metadata for arxiv_id in sorted(contents))
    put_metadata(workspace, *rows)
    run_stage(DUMP_MEMBERS, workspace, MONTH)
    return file


def parsed_ids(workspace):
    return [row["arxiv_id"] for row in workspace.root.rows(tables.PAPERS, MONTH)]


def one_paper(workspace, content=GOOD, **metadata):
    """The row of a month's one paper."""
    put_papers(workspace, {FIRST: content}, **metadata)
    run_stage(PAPERS, workspace, MONTH)
    (row,) = workspace.root.rows(tables.PAPERS, MONTH)
    return row


# dump_members


def states_of_both(workspace):
    """The states of dump_members in both months."""
    return [state(DUMP_MEMBERS, workspace, month) for month in (MONTH, APRIL)]


def test_members_are_listed_by_identifier_in_the_best_conversion(workspace):
    put_zip(workspace, "warning", f"2403/{THIRD}.html", f"2403/{FIRST}.html")
    put_zip(workspace, "error", f"2403/{FIRST}.html", "2404/2404.00002.html")
    put_zip(workspace, "no-problem", f"2403/{FIRST}.html")
    assert listed(workspace) == [FIRST, THIRD]
    rows = workspace.root.rows(tables.DUMP_MEMBERS, MONTH)
    assert [row["subset"] for row in rows] == ["no_problem", "warning"]
    assert ledger(workspace, "dump_members") == [(FIRST, "duplicate")] * 2


def test_names_that_are_no_pages_are_in_the_ledger_of_one_month(workspace):
    put_zip(
        workspace, "error", f"2403/{FIRST}.html", "2404/2404.00001.html", "2404/x.html", "notes.txt"
    )
    for month in (MONTH, APRIL):
        listed(workspace, month)
    assert ledger(workspace, "dump_members") == [
        ("ar5iv-error.zip:error/notes.txt", "not_an_arxiv_page")
    ]
    assert ledger(workspace, "dump_members", APRIL) == [
        ("ar5iv-error.zip:error/2404/x.html", "not_an_arxiv_page")
    ]


def test_only_the_chosen_subsets_and_their_strays_are_listed(tmp_path):
    workspace = workspace_for(tmp_path, subsets="warning")
    put_zip(workspace, "warning", f"2403/{THIRD}.html", "2403/notes.txt")
    put_zip(workspace, "error", f"2403/{FIRST}.html", "2403/notes.txt")
    put_loose(workspace.settings.dump_dir, f"warning/2403/{FOURTH}.html", GOOD)
    put_loose(workspace.settings.dump_dir, f"2403/{SECOND}.html", GOOD)
    assert listed(workspace) == [THIRD, FOURTH]
    assert ledger(workspace, "dump_members") == [
        ("ar5iv-warning.zip:warning/2403/notes.txt", "not_an_arxiv_page")
    ]


def test_a_changed_page_makes_its_month_alone_out_of_date_and_a_touched_file_none(workspace):
    loose = put_loose(workspace.settings.dump_dir, "2404/2404.00003.html", b"<html>one</html>")
    names = [f"2403/{FIRST}.html", "2404/2404.00001.html", "2404/2404.00002.html"]
    file = put_zip(workspace, "error", *names[:2])
    for month in (MONTH, APRIL):
        listed(workspace, month)
    for touched in (file, loose):
        os.utime(touched, (1, 1))
    assert states_of_both(workspace) == [State.DONE, State.DONE]
    loose.write_bytes(b"<html>two</html>")
    assert states_of_both(workspace) == [State.DONE, State.STALE]
    listed(workspace, APRIL)
    put_zip(workspace, "error", *names)
    assert states_of_both(workspace) == [State.DONE, State.STALE]


def test_a_broken_zip_changes_no_month_but_those_that_have_its_pages_once_it_is_mended(workspace):
    put_zip(workspace, "error", f"2403/{FIRST}.html", "2404/2404.00001.html")
    file = put_zip(workspace, "warning", "2404/2404.00002.html")
    whole = file.read_bytes()
    file.write_bytes(whole[:-30])
    assert (listed(workspace), listed(workspace, APRIL)) == ([FIRST], ["2404.00001"])
    assert ledger(workspace, "dump_members") == ledger(workspace, "dump_members", APRIL) == []
    file.write_bytes(whole)
    assert states_of_both(workspace) == [State.DONE, State.STALE]
    assert listed(workspace, APRIL) == ["2404.00001", "2404.00002"]


def test_a_month_that_has_pages_of_a_zip_that_broke_stays_as_it_is_unless_forced(workspace):
    put_zip(workspace, "error", f"2403/{FIRST}.html", "2404/2404.00001.html")
    file = put_zip(workspace, "warning", "2404/2404.00002.html")
    assert listed(workspace, APRIL) == ["2404.00001", "2404.00002"]
    file.write_bytes(file.read_bytes()[:-30])
    assert listed(workspace) == [FIRST]
    with pytest.raises(
        MissingInput, match=r"warning\.zip is no zip.*2024-04 has pages of it.*--force"
    ):
        run_stage(DUMP_MEMBERS, workspace, APRIL)
    assert workspace.root.read(tables.DUMP_MEMBERS, APRIL).num_rows == 2
    assert listed(workspace, APRIL, force=True) == ["2404.00001"]


# papers


@cases_beside("case")
def test_a_paper_has_the_fields_of_page_and_metadata(workspace, case):
    content = page(section(para("Words.")), title=case.get("title", "A Page"))
    metadata = {name: value or None for name, value in case.get("metadata", {}).items()}
    row = one_paper(workspace, content, **metadata)
    assert agrees(case["row"], row), row


def test_metadata_wins_over_the_page_and_differences_are_counted(workspace):
    content = page(byline("Ann B. Lee") + byline("Cid Moe") + para("Words."))
    row = one_paper(workspace, content, authors=["Ann Lee", "Bob Roe"])
    assert [author["name"] for author in row["authors"]] == ["Ann Lee", "Bob Roe"]
    assert (row["authors_source"], row["authors_differ"]) == ("page", 1)
    notes = {
        "papers_with_other_authors": 1,
        "papers_with_other_titles": 1,
        "papers_with_unlinked_affiliations": 0,
        "low_grades": row["grade"] in ("C", "D"),
        "cut_off": row["truncated"],
    }
    assert agrees(notes, workspace.root.provenance(tables.PAPERS, MONTH).notes)


def test_a_page_with_another_title_and_another_abstract_is_another_document(workspace):
    ours = (
        "We argue that parsers should be slow and that pages should be read twice by machines, once"
        " forwards, once backwards, while readers wait."
    )
    theirs = (
        "Reviewers asked for further experiments, longer tables, clearer figures, smaller fonts and"
        " three more citations of their work."
    )
    for heading, abstract, is_paper in (
        ("Response to Reviewers", theirs, False),
        ("Response to Reviewers", ours.replace("slow", "fast"), True),
        ("Slow Reading", theirs, True),
    ):
        content = page(
            f'<div class="ltx_abstract">{para(abstract)}</div>' + para("Words."), title=heading
        )
        put_papers(workspace, {FIRST: content}, title="Slow Reading of Pages", abstract=ours)
        run_stage(PAPERS, workspace, MONTH, force=True)
        assert parsed_ids(workspace) == [FIRST] * is_paper
        assert ledger(workspace, "papers") == [(FIRST, "other_document")] * (not is_paper)


def test_a_page_that_a_failed_conversion_left_is_no_paper(workspace):
    put_papers(workspace, {FIRST: page(para("See pages 1-last of paper.pdf"))})
    run_stage(PAPERS, workspace, MONTH)
    assert parsed_ids(workspace) == []
    assert ledger(workspace, "papers") == [(FIRST, "failed_conversion")]


def test_metadata_decides_before_any_page_is_read(workspace):
    """The zip is gone when papers runs: had one of these pages been asked for, the stage would
    fail.
    """
    file = put_papers(workspace, dict.fromkeys((FIRST, SECOND, THIRD, FOURTH), GOOD))
    put_metadata(
        workspace,
        {"arxiv_id": FIRST, "status": "absent", "categories": None, "primary_category": None},
        {"arxiv_id": SECOND, "status": "withdrawn"},
        {"arxiv_id": THIRD, "categories": ["physics.optics"], "primary_category": "physics.optics"},
    )
    file.unlink()
    assert run_stage(PAPERS, workspace, MONTH).rows == 0
    assert ledger(workspace, "papers") == [
        (FIRST, "no_metadata"),
        (SECOND, "withdrawn"),
        (THIRD, "not_computer_science"),
        (FOURTH, "no_metadata"),
    ]


def test_both_parsers_write_rows_of_the_same_paper(tmp_path):
    fast, slow = (
        one_paper(workspace_for(tmp_path / parser, parser=parser))
        for parser in ("fast", "reference")
    )
    assert fast["sections"] == slow["sections"]


@cases("unit/corpus/cases.toml", "a_page_that_harms_its_worker_is_in", ["word", "reason", "detail"])
def test_a_page_that_harms_its_worker_is_in_the_ledger_and_its_neighbours_are_parsed(
    workspace, word, reason, detail
):
    put_papers(workspace, {FIRST: GOOD, SECOND: page(section(para(word))), THIRD: GOOD})
    outcome = run_stage(HARMFUL, workspace, MONTH)
    assert parsed_ids(workspace) == [FIRST, THIRD]
    assert ledger(workspace, "papers") == [(SECOND, reason)]
    ((said,),) = ledger(workspace, "papers", fields=["detail"])
    assert f"errors.zip:error/2403/{SECOND}.html: " in said
    assert detail in said
    assert outcome.left_out == {reason: 1}
    assert state(HARMFUL, workspace, MONTH) is State.DONE


@cases_beside("word", "pages", "message")
def test_a_fault_of_the_environment_fails_the_month(workspace, word, pages, message):
    harm = page(section(para(word)))
    put_papers(workspace, {f"2403.{number:05}": harm for number in range(pages)})
    with pytest.raises(PermanentFailure, match=message):
        run_stage(HARMFUL, workspace, MONTH)
    assert state(HARMFUL, workspace, MONTH) is State.MISSING


@pytest.mark.parametrize("others", [{}, {"2403.00050": GOOD}])
def test_pages_that_fail_beside_others_or_by_themselves_are_in_the_ledger(workspace, others):
    harm = page(section(para("raise")))
    failing = {f"2403.{number:05}": harm for number in range(19)}
    put_papers(workspace, failing | others)
    outcome = run_stage(HARMFUL, workspace, MONTH)
    assert outcome.left_out == {"parser_error": 19}
    assert parsed_ids(workspace) == [*others]


def test_pages_of_a_zip_that_was_cut_off_since_it_was_listed_are_not_given_up(workspace):
    """The month stays as it was: with the zip whole again nothing would be out of date, and they be
    missed for good.
    """
    file = put_papers(
        workspace, {FIRST: page(section(para("a"))), SECOND: page(section(para("b")))}
    )
    run_stage(PAPERS, workspace, MONTH)
    file.write_bytes(file.read_bytes()[:400])
    write_zip(file.with_name("warnings.zip"), {"warning/2404/2404.00001.html": b""})
    with pytest.raises(
        MissingInput, match=r"the dump has changed since 2024-03 was listed, and \d of its pages"
    ):
        run_stage(PAPERS, workspace, MONTH, force=True)
    file.unlink()
    with pytest.raises(MissingInput, match=r"errors\.zip"):
        run_stage(PAPERS, workspace, MONTH, force=True)
    assert parsed_ids(workspace) == [FIRST, SECOND]


def test_a_page_with_a_disk_error_is_reported_and_tried_again(workspace):
    file = put_loose(workspace.settings.dump_dir, f"2403/{FIRST}.html", GOOD)
    file.unlink()
    file.symlink_to("/proc/self/mem")  # it says that it is empty, and to read it is an error
    put_papers(workspace, {SECOND: GOOD})
    put_metadata(workspace, {"arxiv_id": FIRST}, {"arxiv_id": SECOND})
    events = []
    with listening(events.append):
        run_stage(PAPERS, workspace, MONTH)
    assert (parsed_ids(workspace), ledger(workspace, "papers")) == (
        [SECOND],
        [(FIRST, "unreadable")],
    )
    message = next(event.message for event in events if isinstance(event, Notice))
    assert message.endswith("run citeloom run --months 2024-03 --select papers --force")
    assert state(PAPERS, workspace, MONTH) is State.STALE


def test_rows_and_ledger_are_the_same_with_any_number_of_workers(tmp_path):
    """Pages of 100 KB, cut into three chunks, of which one is done again page by page."""
    contents = {
        f"2403.{number:05d}": page(section(para("Words. " * 15_000 + str(number))))
        for number in range(1, 26)
    }
    for number, word in ((3, "raise"), (12, "crash"), (24, "raise")):
        contents[f"2403.{number:05d}"] = page(section(para("Words. " * 15_000 + word)))
    results = []
    for workers in (1, 2, 7):
        workspace = workspace_for(tmp_path / str(workers), workers=workers)
        put_papers(workspace, contents)
        run_stage(HARMFUL, workspace, MONTH)
        file = workspace.root.file(tables.PAPERS, MONTH)
        results.append((file.read_bytes(), ledger(workspace, "papers")))
    assert results[0] == results[1] == results[2]
    assert [arxiv_id for arxiv_id, _ in results[0][1]] == ["2403.00003", "2403.00012", "2403.00024"]


def test_exactly_the_eleven_papers_of_computer_science_are_parsed(shared_data, tmp_path):
    workspace = make_workspace(
        tmp_path,
        dump_dir=shared_data / "dump",
        metadata_snapshot=shared_data / "metadata" / "snapshot.jsonl",
        arxiv_api=False,
    )
    rows, left_out = 0, []
    for month in months_in_dump(workspace.settings):
        for stage in (DUMP_MEMBERS, METADATA):
            run_stage(stage, workspace, month)
        rows += run_stage(PAPERS, workspace, month).rows
        left_out += [reason for _, reason in ledger(workspace, "papers", month)]
    assert (rows, left_out) == (11, ["not_computer_science"] * 10)
