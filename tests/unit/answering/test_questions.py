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


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("questions: none", "set.yaml", "is not a list"),
        ("- id: [", "set.yaml", "is not YAML"),
        ("- &a {id: q1}\n- *a", "set.yaml", "is not YAML: aliases are not read"),
        ("", "set.yaml", "holds no question"),
        ("", "set.jsonl", "holds no question"),
        ('{"id": "q1",', "set.jsonl", "line 1 is not a JSON object"),
        pytest.param("[" * 5_000, "set.jsonl", "line 1 is not a JSON object", id="deep JSON"),
        pytest.param("- " * 5_000, "set.yaml", "is not YAML", id="deep YAML"),
        ("[1]", "set.jsonl", "line 1: is not an object with the fields of a question"),
        ("- date: 2024-13-40", "set.yaml", "is not YAML: month must be in 1..12"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, text, name, said):
    assert re.search(
        rf"{re.escape(name)}.*{said}.*docs/methods/questions\.md",
        refused(tmp_path, text, name=name),
    )


def test_a_file_that_is_not_there_or_not_utf_8_is_refused(tmp_path):
    with pytest.raises(SettingError, match=r"away\.jsonl cannot be read \(No such file"):
        read_questions(tmp_path / "away.jsonl")
    file = tmp_path / "latin.jsonl"
    file.write_bytes('{"question": "Où?"}'.encode("latin-1"))
    with pytest.raises(SettingError, match=r"latin\.jsonl is not UTF-8 \(byte 15\)"):
        read_questions(file)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"kind": "riddle"},
            r"line 1 \(q1\), kind: Input should be 'author', 'dataset', 'summary'",
        ),
        ({"papers": ["boats"]}, r"papers\.0: 'boats' is not an arXiv id"),
        ({"papers": ["2403.90001"] * 2}, r"papers has 2403\.90001 2 times: name each paper once"),
        ({"reviewed": False}, "reviewed: Input should be True"),
        ({"claims": []}, "claims: .*at least 1 item"),
        ({"claims": [CLAIM, CLAIM]}, r"the claim 'Boats float\.' occurs 2 times"),
        ({"papers": ["2403.90002"]}, r"claims\.0 is of 2403\.90001, which is not among papers"),
        ({"claims": [CLAIM | {"evidence": "a " * 3}]}, r"claims\.0\.evidence\.0: .* has 3 words"),
        ({"claims": [CLAIM | {"evidence": "a " * 21}]}, r"evidence\.0: .* has 21 words"),
        ({"claims": [CLAIM | {"page": 3}]}, r"claims\.0\.page: Extra inputs"),
        ({"question": "  "}, "question: "),
        ({"id": "q 1"}, "id: "),
        ({"date": "last May"}, "date: 'last May' is not a day"),
    ],
)
def test_a_faulty_question_is_told_by_file_line_and_field(tmp_path, changed, said):
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


SAYINGS = (
    "We see that boats will float.",
    "Nothing.",
    "That BOATS\n will  float is old, others say.",
)
MARKED = ("The “big” boat [@bib.bib1; @bib.bib2] of 3–4 masts", "| Big boat | 0.52 | 1,200 |")
FIGURES = ("It reaches a recall of 0.61 there.", "Overall it is 0.6 of them")


@pytest.mark.parametrize(
    ("texts", "evidence", "gold"),
    [
        (SAYINGS, ["that boats will float"], ("p0", "p2")),
        (SAYINGS, ["no such words here", "float is old, others"], ("p2",)),
        (MARKED, ['the "big" boat of 3-4 masts'], ("p0",)),
        (MARKED, ["Big boat | 0.52 | 1,200"], ("p1",)),
        (MARKED, ["big boat 0.52 1,200"], ("p1",)),
        (FIGURES, ["reaches a recall of 0.6"], ()),
        (FIGURES, ["all it is 0.6"], ()),
        (["Boats float."], ["boats will float on"], ()),
        (["Boats float."], [], ()),
    ],
)
def test_every_passage_that_holds_the_words_of_a_phrase_whole_is_gold(texts, evidence, gold):
    assert gold_passages(asked(*evidence), passages(*texts)) == {0: gold}


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
