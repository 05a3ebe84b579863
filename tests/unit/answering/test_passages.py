"""Answers without a model: records of named papers, then the closest passages without a claim."""

import pytest

from pipeline.answering.model_calls import Tools
from pipeline.answering.passages import CLOSEST, WITH_RECORDS, passages
from pipeline.answering.records import MOST_OF_AUTHORS, named_records
from pipeline.answering.retriever import ALL_MONTHS, MonthSpan
from pipeline.answering.user_question import UserQuestion
from pipeline.errors import PermanentFailure
from pipeline.llm.loop import run
from pipeline.settings import load_settings
from pipeline.tables import PAPERS, PASSAGES
from tests.cases import cases
from tests.month_tables import passage_row, write_table
from tests.unit.answering.corpus import MARCH, MAY, QUILLNET
from tests.unit.answering.scripted_answers import FakeRetriever, passage, shown_ids
from tests.unit.index.building import make_workspace


def answer(text, retriever):
    settings = load_settings(_env_file=None)
    return run(passages(UserQuestion(text), Tools(None, retriever, settings)))


@pytest.mark.parametrize("fits", [True, False])
def test_the_first_passages_of_three_papers_are_shown_without_a_claim(fits):
    papers = (1, 2, 1, 3, 4, 2, 5, 3)
    ranking = [passage(place, arxiv_id=f"2403.0000{n}") for place, n in enumerate(papers)]
    answered = answer("How much fuel does it save?", FakeRetriever(*ranking, fits=fits))
    assert shown_ids(answered) == [["p0", "p1", "p2", "p3", "p5"]]
    assert (answered.text, answered.claims, answered.sentences) == (CLOSEST, (), ())
    assert (answered.abstained, answered.hops, answered.spent.calls) == (False, 1, 0)
    assert answered.queries == ("How much fuel does it save?",)


def test_records_come_before_the_closest_passages_and_each_once():
    found = [passage(number) for number in range(1, 9)]
    answered = answer("Who wrote it?", FakeRetriever(*found, named=(found[2], passage(9))))
    assert (answered.text, answered.claims) == (WITH_RECORDS, ())
    assert shown_ids(answered) == [["p3", "p9", "p1", "p2", "p4"]]


def test_an_id_limits_the_search_to_its_paper_if_there_is_one():
    here = FakeRetriever(passage(1), passage(2))
    assert shown_ids(answer("What is arXiv:2403.00002 on?", here)) == [["p2"]]
    elsewhere = answer("What is arXiv:2403.00007 on?", here)
    assert elsewhere.text == f"No paper here is 2403.00007\n{CLOSEST}"
    assert shown_ids(elsewhere) == [["p1", "p2"]]
    assert elsewhere.queries == ("What is on?",)


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


def test_a_broken_table_is_named(tmp_path, corpus):
    workspace = make_workspace(tmp_path / "data")
    for table in (PAPERS, PASSAGES):
        write_table(workspace.root, table, MARCH, corpus.root.rows(table, MARCH))
    file = workspace.root.file(PASSAGES, MARCH)
    whole = file.read_bytes()
    # The footer stays readable, as when a disk loses pages.
    file.write_bytes(whole[:4] + bytes(200) + whole[204:])
    with pytest.raises(
        PermanentFailure, match="citeloom run --months 2024-03 --select passages --force"
    ):
        named_records(workspace, ALL_MONTHS, QUILLNET)
