"""Question sets, and answers made elsewhere: what their files may hold, messages on faulty ones, and
passages that hold evidence.
"""

import json
import re

import pytest

from pipeline.answering.questions import (
    GoldClaim,
    Question,
    gold_passages,
    holds_phrase,
    read_questions,
)
from pipeline.answering.stages import read_imported
from pipeline.errors import SettingError
from pipeline.settings import SAMPLE_QUESTIONS
from tests.cases import cases, cases_beside
from tests.unit.corpus.building import passages_of_sample

CLAIM = {"claim": "Boats float.", "paper": "2403.90001", "evidence": "the boats of the study float"}
ENTRY = {
    "id": "q1",
    "question": "Do boats float?",
    "kind": "summary",
    "papers": ["2403.90001"],
    "claims": [CLAIM],
}


def write(folder, *entries, name="set.jsonl"):
    file = folder / name
    lines = [
        entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)
        for entry in entries
    ]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def refused(folder, *entries, name="set.jsonl"):
    with pytest.raises(SettingError) as error:
        read_questions(write(folder, *entries, name=name))
    return str(error.value)


def test_a_line_or_an_item_of_yaml_becomes_a_question(tmp_path):
    (made,) = read_questions(write(tmp_path, ENTRY | {"date": "2024-03-04"}))
    claim = GoldClaim(**CLAIM | {"evidence": (CLAIM["evidence"],)})
    assert made == Question(
        id="q1",
        question="Do boats float?",
        kind="summary",
        papers=("2403.90001",),
        claims=(claim,),
        date="2024-03-04",
    )
    text = """
        - id: q1
          question: Do boats float?
          kind: summary
          papers: ["2403.90001"]
          date: 2024-03-04
          claims:
            - claim: Boats float.
              paper: "2403.90001"
              evidence: the boats of the study float
    """
    assert read_questions(write(tmp_path, text, name="set.yaml")) == (made,)


def test_blank_lines_a_byte_order_mark_and_signs_that_end_lines_elsewhere_do_no_harm(tmp_path):
    # json.dumps leaves U+2028 as it is, and str.splitlines parts there.
    file = write(tmp_path, "\ufeff", "", ENTRY | {"question": "Do\u2028boats  float?"}, "  ")
    assert [question.question for question in read_questions(file)] == ["Do boats float?"]


def test_a_question_may_be_of_several_papers_and_a_claim_have_several_phrases_or_none(tmp_path):
    phrases = ["the boats of the study", "all boats float on"]
    claims = [CLAIM | {"evidence": phrases}, {"claim": "Stones sink.", "paper": "2403.90001"}]
    papers = ["arXiv:2403.90001v2", "math.CO/0702001", "2404.90002"]
    (made,) = read_questions(write(tmp_path, ENTRY | {"claims": claims, "papers": papers}))
    assert [claim.evidence for claim in made.claims] == [tuple(phrases), ()]
    assert made.papers == ("2403.90001", "math/0702001", "2404.90002")
    assert made.month == "2024-04"  # that of the newest


@cases_beside("said", "name", "text")
def test_a_file_of_another_form_is_refused(tmp_path, said, name, text):
    message = refused(tmp_path, text, name=name)
    assert re.search(rf"{re.escape(name)}.*{said}", message)
    assert "docs/methods/questions.md" in message


@pytest.mark.parametrize("name", ["set.jsonl", "set.yaml"])
def test_a_file_nested_too_deeply_is_refused(tmp_path, name):
    assert name in refused(tmp_path, ("[" if "json" in name else "- ") * 5_000, name=name)


def test_a_file_that_is_not_utf_8_is_refused(tmp_path):
    file = tmp_path / "latin.jsonl"
    file.write_bytes('{"question": "Où?"}'.encode("latin-1"))
    with pytest.raises(SettingError, match=r"latin\.jsonl is not UTF-8 \(byte 15\)"):
        read_questions(file)


@cases("unit/answering/cases.toml", "a_faulty_question_is_told_by", ["said", "changed"])
def test_a_faulty_question_is_told_by_file_line_and_field(tmp_path, said, changed):
    assert re.search(said, refused(tmp_path, ENTRY | changed))


@cases(
    "unit/answering/cases.toml", "every_passage_that_holds_the_words", ["gold", "evidence", "texts"]
)
def test_every_passage_that_holds_the_words_of_a_phrase_whole_is_gold(gold, evidence, texts):
    claim = GoldClaim.model_construct(claim="Boats float.", paper="2403.90001", evidence=evidence)
    question = Question(**ENTRY | {"claims": [claim]})
    passages = [{"passage_id": f"p{place}", "text": text} for place, text in enumerate(texts)]
    elsewhere = [{"passage_id": "other", "text": " ".join(evidence)}]
    passages_of = {"2403.90001": passages, "2403.90002": elsewhere}
    assert gold_passages(question, passages_of) == {0: tuple(gold)}


def test_every_phrase_of_the_shipped_set_is_in_a_passage_of_its_paper():
    questions = read_questions(SAMPLE_QUESTIONS)
    of_paper = passages_of_sample({paper for question in questions for paper in question.papers})
    for question in questions:
        for claim in question.claims:
            for phrase in claim.evidence:
                texts = (row["text"] for row in of_paper[claim.paper])
                assert any(holds_phrase(text, phrase) for text in texts), phrase


TEXTS = ["Do boats float?", "Why do they?", "Who says so?", "Who  says SO?"]
QUESTIONS = [
    Question.model_construct(id=f"q{number}", question=text, papers=("2403.90001",))
    for number, text in enumerate(TEXTS, 1)
]


def read(folder, text):
    """The answers of a file, as (question, system, text), and what was noted."""
    file = folder / "answers.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    imported = read_imported(file, QUESTIONS)
    texts = [(each.subject_id, each.system, each.text) for each in imported.texts]
    return texts, [note.partition(": ")[2] for note in imported.notes]


def test_answers_are_read_with_their_questions_and_systems(tmp_path):
    text = (
        "question_id,system,answer,asked_on\n"
        'q1,GPT-4,"They do. All ""good"" ones,\nat least.",Monday\nq2,gpt-4,,Monday\n'
    )
    texts, notes = read(tmp_path, text)
    assert texts == [
        ("q1", "GPT-4", 'They do. All "good" ones,\nat least.'),
        ("q2", "GPT-4", ""),
    ]
    assert notes == [
        "column asked_on is not known, and was not read",
        "1 of 2 answers of GPT-4 are empty",
        "GPT-4 has answers for 2 of 4 questions",
    ]


@cases("unit/answering/cases.toml", "files_of_spreadsheet_programs", "text")
def test_files_of_spreadsheet_programs_are_read(tmp_path, text):
    texts, _ = read(tmp_path, text)
    assert texts == [("q1", "site", "They do.")]


@cases_beside("message", "text")
def test_a_file_that_cannot_be_taken_says_why(tmp_path, message, text):
    with pytest.raises(SettingError, match=message) as error:
        read(tmp_path, text)
    assert "answers.csv" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("question_id,system,answer\n".encode("utf-16"), "line 1: it is not UTF-8 .*: save it as"),
        (f"question_id,system,answer\nq1,s,{'a' * 100_001}\n", "its answer has 100,001 characters"),
        (b"question_id,system,answer\nq1,s,\xff\n", "line 2: it is not UTF-8"),
    ],
)
def test_a_file_of_another_encoding_or_too_long_an_answer_is_refused(tmp_path, text, message):
    with pytest.raises(SettingError, match=message):
        read(tmp_path, text)
