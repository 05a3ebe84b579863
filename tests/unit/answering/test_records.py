"""Records of the papers and authors that a question names."""

from pipeline.answering.records import MOST_OF_AUTHORS, named_records
from pipeline.answering.retriever import ALL_MONTHS, MonthSpan
from pipeline.tables import PAPERS, PASSAGES
from tests.cases import cases
from tests.month_tables import passage_row, write_table
from tests.unit.answering.corpus import MARCH, MAY, QUILLNET
from tests.unit.index.building import make_workspace


@cases("unit/answering/cases.toml", "records_are_of_the_papers_that_are_named", ["question", "ids"])
def test_records_are_of_the_papers_that_are_named_by_id_title_or_author(corpus, question, ids):
    records = named_records(corpus, ALL_MONTHS, question)
    assert [record.arxiv_id for record in records] == ids
    assert {record.kind for record in records} <= {"front_matter"}


def test_records_are_of_the_months_asked_for(corpus):
    assert named_records(corpus, MonthSpan(first=MAY), f"{QUILLNET} by Ada Quill") == []


def test_of_many_papers_the_first_and_of_an_author_the_newest_have_records(tmp_path):
    workspace = make_workspace(tmp_path / "data")
    ids = [f"2403.{number:05}" for number in range(1, 31)]
    author = {"name": "Ada B. Quill", "affiliations": [], "emails": []}
    papers = [{"arxiv_id": each, "title": each, "year": 2024, "authors": [author]} for each in ids]
    write_table(workspace.root, PAPERS, MARCH, papers)
    rows = [
        passage_row(each, part, each, [], text, kind="front_matter")
        for each in ids
        for part, text in enumerate(("Title", "Authors", f"arXiv:{each} (March 2024)", "Note"))
    ]
    write_table(workspace.root, PASSAGES, MARCH, rows)
    records = named_records(workspace, ALL_MONTHS, f"Ada Quill, {' '.join(reversed(ids))}")
    shown = [*ids[:-4:-1], *ids[:MOST_OF_AUTHORS]]
    assert [(record.arxiv_id, record.text) for record in records] == [
        (each, text) for each in shown for text in ("Title", f"arXiv:{each} (March 2024)")
    ]
