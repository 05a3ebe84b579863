"""When the references of a month are out of date: where a title that its items look up changed."""

import shutil

import pytest

from pipeline import tables
from pipeline.corpus.references.stages import REFERENCES
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings
from tests.month_tables import write_table
from tests.unit.corpus.building import ledger

pytestmark = pytest.mark.slow

JANUARY, FEBRUARY, MARCH, APRIL = MONTHS = ["2024-01", "2024-02", "2024-03", "2024-04"]
CITED, OTHER = "A title that March cites", "Prose of which nobody knows anything"
LATE = "A paper of winter that March cites too"


def write_metadata(workspace, month, **titles):
    rows = [
        {"arxiv_id": f"{month}.{name}", "title": title, "authors": ["A. One"], "status": "present"}
        for name, title in titles.items()
    ]
    write_table(workspace.root, tables.METADATA, month, rows)


def write_papers(workspace, month, *titles):
    """A paper that cites these titles."""
    items = [
        {"key": title, "raw": f"A. One. {title}. 2024.", "title": title, "year": 2024}
        for title in titles
    ]
    empty = {"authors": ["A. One"], "venue": None, "doi": None, "arxiv_id": None}
    paper = {"arxiv_id": f"{month}.9", "bibliography": [empty | item for item in items]}
    write_table(workspace.root, tables.PAPERS, month, [paper])


def states(workspace):
    return {month: state(REFERENCES, workspace, month).value for month in MONTHS}


def cited(workspace, month):
    return [row["cited_arxiv_id"] for row in workspace.root.rows(tables.REFERENCES, month)]


def run_all(workspace):
    """The months that were computed."""
    return [month for month in MONTHS if not run_stage(REFERENCES, workspace, month).skipped]


def stale(*months):
    return {month: State.STALE if month in months else State.DONE for month in MONTHS}


@pytest.fixture
def workspace(tmp_path):
    """Four months; March cites one title of January, and a late one of February in running text."""
    made = Workspace(load_settings(data=tmp_path / "data"))
    write_metadata(made, JANUARY, cited=CITED, other=OTHER)
    for month in MONTHS[1:]:
        write_metadata(made, month, own=f"The only paper of {month} for its readers")
        write_papers(made, month, "Nothing that anybody wrote")
    write_papers(made, JANUARY)
    write_papers(made, MARCH, CITED, LATE)
    assert run_all(made) == MONTHS
    return made


def test_a_second_run_computes_nothing_and_a_month_records_none_of_the_others(
    workspace,
):
    assert run_all(workspace) == []
    sizes = [len(workspace.root.provenance(tables.REFERENCES, m).inputs) for m in MONTHS]
    assert sizes == [4] * 4


@pytest.mark.parametrize(
    ("titles", "out_of_date", "found"),
    [
        ({"cited": CITED, "other": "Verses about unread volumes"}, [], f"{JANUARY}.cited"),
        ({"cited": CITED}, [], f"{JANUARY}.cited"),
        ({"cited": "Poems which June reads", "other": OTHER}, [MARCH], None),
        ({"other": OTHER}, [MARCH], None),
        ({"cited": OTHER, "other": CITED}, [MARCH], f"{JANUARY}.other"),
    ],
    ids=["other corrected", "other deleted", "cited corrected", "cited deleted", "exchanged"],
)
@pytest.mark.parametrize("cache", ["kept", "of another machine"])
def test_a_changed_title_makes_those_months_out_of_date_that_look_it_up(
    workspace, titles, out_of_date, found, cache
):
    if cache == "of another machine":
        shutil.rmtree(workspace.local / "cache")
    write_metadata(workspace, JANUARY, **titles)
    # Its own metadata is an input of each month.
    expected = stale(JANUARY, *out_of_date)
    assert [states(workspace), states(workspace)] == [expected, expected]
    assert run_all(workspace) == [JANUARY, *out_of_date]
    assert cited(workspace, MARCH) == [found, None]
    assert states(workspace) == stale()


def test_a_late_month_and_one_that_goes_count_where_a_title_of_them_is_looked_up(
    workspace,
):
    write_metadata(workspace, "2023-11", other="Nothing of interest to any later month")
    write_metadata(workspace, "2024-05", later=LATE)
    assert states(workspace) == stale()
    write_metadata(workspace, "2023-12", late=LATE)
    assert states(workspace) == stale(MARCH)
    assert run_all(workspace) == [MARCH]
    assert cited(workspace, MARCH) == [f"{JANUARY}.cited", "2023-12.late"]
    workspace.root.file(tables.METADATA, "2023-11").unlink()
    assert states(workspace) == stale()
    workspace.root.file(tables.METADATA, "2023-12").unlink()
    assert states(workspace) == stale(MARCH)
    write_metadata(workspace, "2023-12", late=LATE)
    assert states(workspace) == stale()


def test_a_page_without_a_bibliography_is_in_the_ledger(tmp_path):
    workspace = Workspace(load_settings(data=tmp_path))
    write_metadata(workspace, MARCH)
    write_papers(workspace, MARCH)
    run_stage(REFERENCES, workspace, MARCH)
    assert ledger(workspace, "references", MARCH) == [("2024-03.9", "no_bibliography")]
