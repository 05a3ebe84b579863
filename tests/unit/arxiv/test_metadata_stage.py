"""The stages `metadata` and `references` on small months."""

import pytest

from pipeline import tables
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.arxiv.rate_limited_client import Pace
from pipeline.corpus.references.stages import REFERENCES
from pipeline.engine.progress import StageAdvanced, listening
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import SettingError
from tests.cases import cases
from tests.fake_arxiv import entry
from tests.month_tables import write_table
from tests.unit.corpus.building import ledger
from tests.workspaces import altered, changed

from .conftest import line, write_members

MONTH = "2024-03"


def written(workspace, table=tables.METADATA, month=MONTH):
    return workspace.root.rows(table, month)


def asking(workspace, url):
    return changed(workspace, arxiv_api=True, arxiv_api_url=url)


@pytest.fixture
def unhurried(tmp_path):
    """The stage with a pace that a test can wait for."""
    pace = Pace(tmp_path / "machine", gap=0.0, tries=2, first_back_off=0.01)
    return altered(METADATA, pace=pace)


# metadata


def test_a_month_holds_its_own_papers_sorted(workspace, snapshot_file):
    snapshot_file.write_text("\n".join(line(f"2403.0000{number}") for number in (3, 1, 2, 9)))
    write_members(workspace, MONTH, ["2403.00002", "2403.00001", "2403.00001"])
    outcome = run_stage(METADATA, workspace, MONTH)
    rows = written(workspace)
    assert [row["arxiv_id"] for row in rows] == ["2403.00001", "2403.00002"]
    assert {row["source"] for row in rows} == {"snapshot"}
    assert {row["fetched_at"] for row in rows} == {None}
    assert outcome.notes == {"sources": {"snapshot": 2}, "status": {"present": 2}}
    assert outcome.measured["snapshot"]["lines"] == 4


def test_the_api_is_asked_for_what_the_snapshot_lacks_alone_and_once(
    workspace, snapshot_file, arxiv, unhurried
):
    arxiv.papers = {"2403.00002": entry("2403.00002")}
    snapshot_file.write_text(line("2403.00001", comments="Withdrawn by the authors"))
    write_members(workspace, MONTH, ["2403.00001", "2403.00002", "2403.00003"])
    asker = asking(workspace, arxiv.url)
    outcome = run_stage(unhurried, asker, MONTH)
    rows = written(workspace)
    assert [(row["source"], row["status"]) for row in rows] == [
        ("snapshot", "withdrawn"),
        ("api", "present"),
        ("api", "absent"),
    ]
    assert [row["fetched_at"] is None for row in rows] == [True, False, False]
    assert outcome.measured["api_requests"] == 2
    assert ledger(workspace, "metadata", fields=["detail"]) == [
        ("snapshot.jsonl has no readable line of this paper; arXiv's API has no such paper",)
    ]
    run_stage(unhurried, asker, MONTH, force=True)
    # Kept answers serve a month that asks no API too.
    run_stage(METADATA, workspace, MONTH)
    assert written(workspace) == rows
    assert arxiv.asked == [["2403.00002", "2403.00003"], ["2403.00003"]]


def test_progress_tells_how_many_papers_the_api_has_yet_to_tell(
    workspace, snapshot_file, arxiv, unhurried
):
    names = [f"2403.{number:05}" for number in range(1, 251)]
    arxiv.papers = {name: entry(name) for name in names[:-1]}
    snapshot_file.write_text(line("2403.90000"))
    write_members(workspace, MONTH, [*names, "2403.90000"])
    events = []
    with listening(events.append):
        run_stage(unhurried, asking(workspace, arxiv.url), MONTH)
    steps = [(event.done, event.total) for event in events if isinstance(event, StageAdvanced)]
    assert steps[:4] == [(100, 250), (200, 250), (250, 250), (251, 251)]


@cases("unit/arxiv/cases.toml", "a_paper_without_a_readable_line_is_a", ["broken", "reason"])
def test_a_paper_without_a_readable_line_is_a_row_and_in_the_ledger(
    workspace, snapshot_file, broken, reason
):
    snapshot_file.write_text(f"{line('2403.00001')}\n{broken}\n")
    write_members(workspace, MONTH, ["2403.00001", "2403.00002"])
    run_stage(METADATA, workspace, MONTH)
    assert [(row["status"], row["source"]) for row in written(workspace)] == [
        ("present", "snapshot"),
        ("absent", None),
    ]
    detail = f"{reason}; CITELOOM_ARXIV_API is false"
    assert ledger(workspace, "metadata") == [("2403.00002", "no_metadata")]
    assert ledger(workspace, "metadata", fields=["detail"]) == [(detail,)]


def test_news_of_another_months_papers_leave_a_month_done(workspace, snapshot_file):
    def state_with(*lines):
        snapshot_file.write_text("\n".join(lines))
        return state(METADATA, workspace, MONTH)

    first = line("2403.00001")
    write_members(workspace, MONTH, ["2403.00001", "2403.00002"])
    assert state_with(first) is State.MISSING
    run_stage(METADATA, workspace, MONTH)
    assert state_with(line("2404.00001"), first) is State.DONE
    assert state_with(line("2403.00002"), first) is State.STALE
    assert state_with(line("2403.00001", title="Another")) is State.STALE


def test_no_source_at_all_is_a_wrong_setting(workspace):
    write_members(workspace, MONTH, ["2403.00001"])
    with pytest.raises(SettingError, match="no source of metadata"):
        run_stage(METADATA, changed(workspace, metadata_snapshot=None), MONTH)


# references


def item(key, **known):
    unknown = dict.fromkeys(("title", "year", "venue", "doi", "arxiv_id"))
    return {"key": key, "raw": "", "authors": []} | unknown | known


def test_each_item_of_each_bibliography_is_a_row_in_order(workspace):
    citing = {"arxiv_id": "2403.00001", "title": "A citing paper of ours", "authors": ["A. One"]}
    write_table(workspace.root, tables.METADATA, MONTH, [citing])
    items = [
        item("bib.2", raw="R", title="T", authors=["A"], year=1999, venue="V", doi="10.1/X"),
        item("bib.1"),
    ]
    bibliographies = {"2403.00002": items, "2403.00001": None, "2403.00003": [item("bib.1")]}
    papers = [{"arxiv_id": name, "bibliography": found} for name, found in bibliographies.items()]
    write_table(workspace.root, tables.PAPERS, MONTH, papers)
    outcome = run_stage(REFERENCES, workspace, MONTH)
    assert outcome.notes["resolved_by"] == {"not_resolved": 3}
    rows = written(workspace, tables.REFERENCES)
    assert [(row["arxiv_id"], row["key"], row["ordinal"]) for row in rows] == [
        ("2403.00002", "bib.2", 0),
        ("2403.00002", "bib.1", 1),
        ("2403.00003", "bib.1", 0),
    ]
    resolution = {"doi": "10.1/x", "cited_arxiv_id": None, "resolved_by": None}
    stated = {name: value for name, value in items[0].items() if name != "arxiv_id"}
    assert rows[0] == {"arxiv_id": "2403.00002", "ordinal": 0} | stated | resolution
