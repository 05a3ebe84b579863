"""Papers found by words of the title, author and year, and the order in which they come."""

import pytest

from pipeline import tables
from pipeline.corpus.paper_index import find_papers, papers_with_ids
from pipeline.errors import SettingError
from tests.cases import cases_beside
from tests.month_tables import write_table
from tests.workspaces import make_workspace

TITLES = {
    "2024-01": {"2401.00001": "Étude of {N}eural nets", "2401.00002": "A study of ferns"},
    "2024-02": {"2402.00001": "Neural ferns", "2402.00002": "Ferns in the etude", "2402.00003": ""},
    "2025-01": {"2501.00001": "The ferns of winter"},
}


def write(workspace, month, titles, *authors):
    names = authors or ("Noël Ada Lovelace", "Bo Berg")
    rows = [
        {
            "arxiv_id": arxiv_id,
            "title": title or None,
            "authors": [{"name": name, "affiliations": [], "emails": []} for name in names],
            "year": int(month[:4]),
            "categories": ["cs.CL", "cs.AI"],
        }
        for arxiv_id, title in titles.items()
    ]
    write_table(workspace.root, tables.PAPERS, month, rows)


@pytest.fixture
def workspace(tmp_path):
    made = make_workspace(tmp_path / "data")
    for month, titles in TITLES.items():
        write(made, month, titles)
    return made


@cases_beside("query", "ids")
def test_papers_have_all_words_and_one_author_with_all_names_newest_months_first(
    workspace, query, ids
):
    assert [paper.arxiv_id for paper in find_papers(workspace, **query)] == ids


def test_a_paper_is_as_its_row_says_and_a_month_that_changed_replaces_its_papers(
    workspace,
):
    (paper,) = find_papers(workspace, "nets")
    assert (paper.title, paper.authors, paper.year, paper.categories) == (
        "Étude of {N}eural nets",
        ("Noël Ada Lovelace", "Bo Berg"),
        2024,
        ("cs.CL", "cs.AI"),
    )
    write(workspace, "2024-01", {"2401.00003": "Nets of rope"}, "Cy Clone")
    assert [paper.arxiv_id for paper in find_papers(workspace, "nets")] == ["2401.00003"]
    assert find_papers(workspace, "rope", "Lovelace") == []
    ids = ["2401.00001", "2401.00003", "2402.00003", "9999.00001"]
    held = papers_with_ids(workspace, ids)
    titles = {arxiv_id: paper.title for arxiv_id, paper in held.items()}
    assert titles == {"2401.00003": "Nets of rope", "2402.00003": ""}
    assert papers_with_ids(workspace, []) == {}


def test_a_query_needs_a_word_or_a_year(workspace):
    with pytest.raises(SettingError, match="author"):
        find_papers(workspace, title=" - ")


def test_of_a_title_or_name_longer_than_real_ones_the_beginning_is_shown(
    workspace,
):
    write(workspace, "2025-02", {"2502.00001": "ferns " * 100_000}, "A" * 100_000)
    (paper,) = find_papers(workspace, "ferns", limit=1)
    assert [len(text) for text in (paper.title, *paper.authors)] == [2_001, 2_001]
