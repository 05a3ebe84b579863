"""Questions on who, where, when and in which category: recognised, and answered from tables."""

import asyncio

from pipeline.answering.facts import MOST_AUTHORS, facets_of, fact_claims, named_papers
from pipeline.answering.front_matter import FrontMatter
from pipeline.answering.questions import read_questions
from pipeline.corpus.parse.parsed_page import Author
from pipeline.settings import SAMPLE_QUESTIONS
from tests.cases import cases
from tests.unit.answering.scripted_answers import FakeTables, passage


@cases("unit/answering/facets.toml", "questions")
def test_what_a_question_asks_of_a_paper_itself_is_recognised(case):
    question, *facets = case
    assert facets_of(question) == tuple(facets)


def test_of_the_sample_s_questions_none_on_limits_asks_for_authors():
    found = {
        kind: [
            facets_of(question.question)
            for question in read_questions(SAMPLE_QUESTIONS)
            if question.kind == kind
        ]
        for kind in ("author", "limitation")
    }
    assert found["limitation"] == [()] * 10
    assert len(found["author"]) == 10
    assert all({"authors", "affiliations"}.intersection(facets) for facets in found["author"])


FOUND = [
    passage(1, title="QuillNet: Reading Margins"),
    passage(2, title="Attention: A Survey"),
    passage(3, title="On Night Trains"),
]


@cases("unit/answering/cases.toml", "the_papers_that_a_question_is_on_are", ["question", "papers"])
def test_the_papers_that_a_question_is_on_are_named_by_id_title_or_rank(question, papers):
    assert named_papers(question, FOUND) == papers


def told(question, *known, most=3):
    claims = asyncio.run(
        fact_claims(FakeTables(*known), question, named_papers(question, FOUND), most)
    )
    assert {source for _, _, source in claims} <= {"front_matter"}
    return [(text, passage) for text, passage, _ in claims]


def front(number, **changed):
    made = passage(
        number, kind="front_matter", passage_id=f"front{number}", title=FOUND[number - 1].title
    )
    return FrontMatter(made, **changed)  # type: ignore[arg-type]


def test_each_claim_is_one_fact_and_rests_on_the_front_matter():
    known = front(
        1, authors=(Author("Ada Okafor"),), date="2024-03-05", categories=("cs.IR", "cs.CL")
    )
    found = told("Who wrote QuillNet, when was it published, and in which arXiv category?", known)
    assert [text for text, _ in found] == [
        '"QuillNet: Reading Margins" (arXiv:2403.00001) was written by Ada Okafor.',
        '"QuillNet: Reading Margins" (arXiv:2403.00001) first appeared on arXiv in 2024-03-05.',
        (
            '"QuillNet: Reading Margins" (arXiv:2403.00001) is in arXiv\'s primary category cs.IR,'
            " also in cs.CL."
        ),
    ]
    assert {passage.passage_id for _, passage in found} == {"front1"}


def test_authors_are_counted_and_their_addresses_named():
    known = front(1, authors=(Author("Ada", (), ("ada@nib.org",)), Author("Ben")))
    (counted, _), *_ = told("How many authors does QuillNet have?", known)
    assert counted.endswith("(arXiv:2403.00001) has 2 authors.")
    ((addresses, _),) = told("Which e-mail address is on QuillNet?", known)
    assert addresses.endswith("gives e-mail addresses of Ada (ada@nib.org).")


def test_there_are_no_more_claims_than_wanted_and_none_of_what_tables_do_not_hold():
    question = "Who wrote QuillNet and On Night Trains, and when were they published?"
    ada = (Author("Ada Okafor"),)
    assert (
        len(told(question, front(1, authors=ada, date="2024-03"), front(3, authors=ada), most=2))
        == 2
    )
    assert told(question, front(1), front(3)) == []
    assert told(question) == []


def test_of_a_long_list_of_authors_the_first_are_named_and_the_others_counted():
    many = tuple(Author(f"Author {number}") for number in range(MOST_AUTHORS + 12))
    ((text, _),) = told("Who wrote QuillNet?", front(1, authors=many))
    assert text.endswith(f"Author {MOST_AUTHORS - 1}, and 12 others.")
