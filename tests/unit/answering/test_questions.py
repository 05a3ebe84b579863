"""Question sets: what a file may hold, messages on faulty ones, and passages that hold evidence."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pipeline.answering.questions import (
    GoldClaim,
    Question,
    gold_passages,
    holds_phrase,
    read_questions,
)
from pipeline.errors import SettingError
from pipeline.settings import SAMPLE_QUESTIONS
from tests.cases import cases
from tests.unit.corpus.building import passages_of_sample

CLAIM = {"claim": "Boats float.", "paper": "2403.90001", "evidence": "the boats of the study float"}
ENTRY = {
    "id": "q1",
    "question": "Do boats float?",
    "kind": "summary",
    "papers": ["2403.90001"],
    "claims": [CLAIM],
}

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


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


def asked(*evidence):
    claim = GoldClaim.model_construct(claim="Boats float.", paper="2403.90001", evidence=evidence)
    return Question(
        id="q1",
        question="Do boats float?",
        kind="summary",
        papers=("2403.90001",),
        claims=(claim,),
    )


def passages(*texts):
    return {
        "2403.90001": [
            {"passage_id": f"p{place}", "text": text} for place, text in enumerate(texts)
        ]
    }


def test_a_line_becomes_a_question(tmp_path):
    (made,) = read_questions(write(tmp_path, ENTRY))
    assert (made.id, made.question, made.kind) == ("q1", "Do boats float?", "summary")
    assert made.papers == ("2403.90001",)
    evidence = ("the boats of the study float",)
    assert made.claims == (GoldClaim(claim="Boats float.", paper="2403.90001", evidence=evidence),)
    assert (made.date, made.month) == (None, "2024-03")


def test_blank_lines_a_byte_order_mark_and_signs_that_end_lines_elsewhere_do_no_harm(
    tmp_path,
):
    # json.dumps leaves U+2028 as it is, and str.splitlines parts there.
    file = write(tmp_path, "\ufeff", "", ENTRY | {"question": "Do\u2028boats  float?"}, "  ")
    assert [question.question for question in read_questions(file)] == ["Do boats float?"]


def test_a_question_may_be_of_several_papers_and_a_claim_have_several_phrases_or_none(
    tmp_path,
):
    phrases = ["the boats of the study", "all boats float on"]
    claims = [CLAIM | {"evidence": phrases}, {"claim": "Stones sink.", "paper": "2403.90001"}]
    papers = ["arXiv:2403.90001v2", "math.CO/0702001", "2404.90002"]
    (made,) = read_questions(write(tmp_path, ENTRY | {"claims": claims, "papers": papers}))
    assert [claim.evidence for claim in made.claims] == [tuple(phrases), ()]
    assert made.papers == ("2403.90001", "math/0702001", "2404.90002")
    assert made.month == "2024-04"  # that of the newest


def test_yaml_holds_the_same_as_json_lines(tmp_path):
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
    (made,) = read_questions(write(tmp_path, text, name="set.yaml"))
    (same,) = read_questions(write(tmp_path, ENTRY | {"date": "2024-03-04", "reviewed": True}))
    assert made == same
    assert made.date == "2024-03-04"


def test_an_id_without_quotes_in_yaml_is_told_with_its_line(tmp_path):
    text = (
        "- id: q1\n  question: Do boats float?\n  kind: summary\n  papers: [2403.90010]\n "
        " claims: []"
    )
    said = refused(tmp_path, "# boats", text, name="set.yml")
    assert "set.yml: line 2 (q1), papers.0: 2403.9001 is a number: put quotes around the id" in said


@cases("unit/answering/cases.toml", "a_file_of_another_form_is_refused", ["said", "name", "text"])
def test_a_file_of_another_form_is_refused(tmp_path, said, name, text):
    assert re.search(
        rf"{re.escape(name)}.*{said}.*docs/methods/questions\.md",
        refused(tmp_path, text, name=name),
    )


def test_a_file_nested_too_deeply_is_refused(tmp_path):
    assert "line 1 is not a JSON object" in refused(tmp_path, "[" * 5_000)
    assert "is not YAML" in refused(tmp_path, "- " * 5_000, name="set.yaml")


def test_a_file_that_is_not_utf_8_is_refused(tmp_path):
    file = tmp_path / "latin.jsonl"
    file.write_bytes('{"question": "Où?"}'.encode("latin-1"))
    with pytest.raises(SettingError, match=r"latin\.jsonl is not UTF-8 \(byte 15\)"):
        read_questions(file)


@cases("unit/answering/cases.toml", "a_faulty_question_is_told_by", ["said", "changed"])
def test_a_faulty_question_is_told_by_file_line_and_field(tmp_path, said, changed):
    assert re.search(said, refused(tmp_path, ENTRY | changed))


def test_several_faults_are_told_at_once_and_two_questions_of_one_id_with_both_lines(
    tmp_path,
):
    assert "set.jsonl: line 3: id q1 is also that of line 1: give it another" in refused(
        tmp_path, ENTRY, "", ENTRY
    )
    faulty = [ENTRY | {"id": f"q{number}", "kind": "riddle"} for number in range(7)]
    said = refused(tmp_path, *faulty)
    assert [f"line {line} (q{line - 1})" in said for line in (1, 5, 6)] == [True, True, False]
    assert "; and 2 more." in said


@cases(
    "unit/answering/cases.toml", "every_passage_that_holds_the_words", ["gold", "evidence", "texts"]
)
def test_every_passage_that_holds_the_words_of_a_phrase_whole_is_gold(gold, evidence, texts):
    assert gold_passages(asked(*evidence), passages(*texts)) == {0: tuple(gold)}


def test_a_passage_of_another_paper_is_not_gold():
    other = {"2403.90002": [{"passage_id": "p", "text": "Boats will float on."}]}
    assert gold_passages(asked("boats will float on"), other) == {0: ()}


def test_every_phrase_of_the_shipped_set_is_in_a_passage_of_its_paper():
    questions = read_questions(SAMPLE_QUESTIONS)
    of_paper = passages_of_sample({paper for question in questions for paper in question.papers})
    for question in questions:
        for claim in question.claims:
            for phrase in claim.evidence:
                texts = (row["text"] for row in of_paper[claim.paper])
                assert any(holds_phrase(text, phrase) for text in texts), phrase
