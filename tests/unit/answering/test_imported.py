"""Answers made elsewhere, from a CSV: as people and spreadsheet programs write one, with a message
for each fault.
"""

import pytest

from pipeline.answering.questions import Question
from pipeline.answering.stages import read_imported
from pipeline.errors import SettingError
from tests.cases import cases, cases_beside

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
