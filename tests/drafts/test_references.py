"""Entries of bibliographies against a small snapshot: which are as stated, and what differs."""

import tomllib

import pytest

from benchmarks import hallmark
from drafts.reading import read_bibliography
from drafts.references import check_references
from pipeline.errors import SettingError
from pipeline.index.known_papers import KnownPapers
from tests.cases import TESTS, cases
from tests.unit.arxiv.conftest import line
from tests.workspaces import changed, make_workspace

CASES = "drafts/references.toml"


def work(number, paper):
    """A line of a snapshot: a paper of May 2021."""
    return line(
        paper.get("id") or f"2105.{number:05}",
        title=paper["title"],
        authors=paper["authors"],
        authors_parsed=None,
        update_date="2021-05-03",
        versions=[{"version": "v1", "created": "Mon, 3 May 2021 10:00:00 GMT"}],
        doi=paper.get("doi"),
        comments=paper.get("comment"),
        **{"journal-ref": paper.get("journal_ref")},
    )


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("references")
    papers = tomllib.loads((TESTS / CASES).read_text())["papers"]
    papers += [
        {"id": f"2104.{number:05}", "title": f"Paper {number}", "authors": "Una Moe"}
        for number in range(2, 42)
    ]
    lines = [work(number, paper) for number, paper in enumerate(papers, start=1)]
    (folder / "snapshot.jsonl").write_text("\n".join(lines))
    return make_workspace(folder / "data", metadata_snapshot=folder / "snapshot.jsonl")


def check(workspace, folder, entry):
    (folder / "refs.bib").write_text(entry)
    (single,) = check_references(read_bibliography(folder / "refs.bib"), KnownPapers(workspace))
    return single


@cases(CASES, "cases")
def test_an_entry_gets_its_status_and_the_reason(workspace, tmp_path, case):
    for entry in case["entries"]:
        result = check(workspace, tmp_path, f"@{case.get('kind', 'misc')}{{key, {entry}}}")
        fields = [difference.field for difference in result.differences]
        said = " | ".join([*result.rules, *fields, *result.notes])
        assert result.status == case["status"], (entry, said)
        assert case["words"] in said, (entry, said)
        assert list(result.notes) == case.get("notes", list(result.notes))


RETRACTIONS = """Record ID,Title,Author,RetractionDate,RetractionDOI,RetractionNature,OriginalPaperDOI
1,Other,A B,6/1/2023 0:00,10.1/r,Retraction,10.1109/CVPR46437.2021.00001
2,Old Pages in a Cache of Pages,Ann Doe;Gus Joe,6/2/2023 0:00,unavailable,Expression of concern,unavailable
3,A Preprint That Nobody Has Printed Yet,Zoe Nobody,6/1/2023 0:00,,Retraction,unavailable
4,Widths of Margins in Books,Kai Koe,6/1/2023 0:00,,Retraction,
5,Widths of Margins in Books,Kai Koe,7/1/2023 0:00,,Reinstatement,
"""


def test_retracted_works_are_marked_where_the_user_gives_a_list(workspace, tmp_path):
    listed = tmp_path / "retraction_watch.csv"
    listed.write_text(RETRACTIONS)
    papers = KnownPapers(changed(workspace, retractions=listed))
    titles = {
        "seeing": "Seeing Small Things with Large Models",
        "caches": "Old Pages in a Cache of Pages",
        "preprint": "A Preprint That Nobody Has Printed Yet",
        "margins": "Widths of Margins in Books",
    }
    authors = {"seeing": "Bo Roe", "caches": "Ann Doe", "preprint": "Eva Voe", "margins": "Kai Koe"}
    (tmp_path / "refs.bib").write_text(
        "".join(
            f"@misc{{{key}, title = {{{title}}}, author = {{{authors[key]} and others}}}}\n"
            for key, title in titles.items()
        )
    )
    checks = check_references(read_bibliography(tmp_path / "refs.bib"), papers)
    statuses = {single.key: single.status for single in checks}
    assert statuses == {
        "seeing": "retracted",
        "caches": "verified",
        "preprint": "verified",
        "margins": "not_found",
    }
    assert "expression of concern of 2023-06-02" in checks[1].notes[0]
    listed.write_text("Title\nx\n")
    with pytest.raises(SettingError, match="no column Author"):
        check_references(read_bibliography(tmp_path / "refs.bib"), papers)


@pytest.mark.skipif(not hallmark.DATA.is_dir(), reason="HALLMARK is not on this machine")
def test_the_unseen_half_of_hallmark_keeps_its_figures(tmp_path):
    hallmark.write_snapshot(tmp_path / "snapshot.jsonl", with_venues=True)
    entries = hallmark.read_entries("held")
    counts = hallmark.count(entries, hallmark.check_entries(entries, tmp_path))
    assert counts.found >= 0.85 * counts.faults
    assert counts.alarms <= 0.02 * counts.valid
    assert counts.mcc >= 0.8
