"""The stages `metadata` and `references` on small months."""

import pytest

from pipeline import tables
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.arxiv.rate_limited_client import Pace
from pipeline.corpus.references.stages import REFERENCES
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import SettingError
from tests.cases import cases
from tests.fake_arxiv import entry
from tests.month_tables import write_table
from tests.unit.corpus.building import ledger
from tests.workspaces import altered, changed

from .conftest import MONTH, line, metadata_of, put_metadata, write_members


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
    outcome = put_metadata(workspace, "2403.00002", "2403.00001", "2403.00001")
    rows = metadata_of(workspace)
    assert list(rows) == ["2403.00001", "2403.00002"]
    assert {(row["source"], row["fetched_at"]) for row in rows.values()} == {("snapshot", None)}
    assert outcome.notes == {"sources": {"snapshot": 2}, "status": {"present": 2}}
    assert outcome.measured["snapshot"]["lines"] == 4


def test_the_api_is_asked_for_what_the_snapshot_lacks_alone_and_once(
    workspace, snapshot_file, arxiv, unhurried
):
    arxiv.papers = {"2403.00002": entry("2403.00002")}
    snapshot_file.write_text(line("2403.00001", comments="Withdrawn by the authors"))
    names = [f"2403.0000{number}" for number in (1, 2, 3)]
    asker = asking(workspace, arxiv.url)
    outcome = put_metadata(asker, *names, stage=unhurried)
    rows = metadata_of(workspace)
    found = [(row["source"], row["status"], bool(row["fetched_at"])) for row in rows.values()]
    assert found == [
        ("snapshot", "withdrawn", False),
        ("api", "present", True),
        ("api", "absent", True),
    ]
    assert rows["2403.00002"]["categories"] == ["cs.CL", "cs.LG"], "the primary one is first"
    assert outcome.measured["api_requests"] == 2
    assert ledger(workspace, "metadata", fields=["detail"]) == [
        ("snapshot.jsonl has no readable line of this paper; arXiv's API has no such paper",)
    ]
    run_stage(unhurried, asker, MONTH, force=True)
    # Kept answers serve a month that asks no API too.
    run_stage(METADATA, workspace, MONTH)
    assert metadata_of(workspace) == rows
    assert arxiv.asked == [["2403.00002", "2403.00003"], ["2403.00003"]]


@cases("unit/arxiv/cases.toml", "a_paper_without_a_readable_line_is_a", ["broken", "reason"])
def test_a_paper_without_a_readable_line_is_a_row_and_in_the_ledger(
    workspace, snapshot_file, broken, reason
):
    snapshot_file.write_text(f"{line('2403.00001')}\n{broken}\n")
    put_metadata(workspace, "2403.00001", "2403.00002")
    found = [(row["status"], row["source"]) for row in metadata_of(workspace).values()]
    assert found == [("present", "snapshot"), ("absent", None)]
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
    with pytest.raises(SettingError, match="no source of metadata"):
        put_metadata(changed(workspace, metadata_snapshot=None), "2403.00001")


# references


def test_each_item_of_each_bibliography_is_a_row_in_order(workspace):
    citing = {"arxiv_id": "2403.00001", "title": "A citing paper of ours", "authors": ["A. One"]}
    write_table(workspace.root, tables.METADATA, MONTH, [citing])
    item = {"raw": "R", "title": "T", "authors": ["A"], "year": 1999, "venue": "V"}
    printed = item | {"doi": "10.1/X", "arxiv_id": None}
    keys = {"2403.00002": ["bib.2", "bib.1"], "2403.00001": [], "2403.00003": ["bib.1"]}
    papers = [
        {"arxiv_id": name, "bibliography": [printed | {"key": key} for key in own] or None}
        for name, own in keys.items()
    ]
    write_table(workspace.root, tables.PAPERS, MONTH, papers)
    outcome = run_stage(REFERENCES, workspace, MONTH)
    assert outcome.notes["resolved_by"] == {"not_resolved": 3}
    resolution = {"doi": "10.1/x", "cited_arxiv_id": None, "resolved_by": None}
    assert workspace.root.rows(tables.REFERENCES, MONTH) == [
        item | resolution | {"arxiv_id": name, "key": key, "ordinal": ordinal}
        for name, own in keys.items()
        for ordinal, key in enumerate(own)
    ]
