"""Answers made elsewhere, from a CSV: as people and spreadsheet programs write one, with a message
for each fault.
"""

import pytest

from pipeline.answering.answer import ABSTAINED, plain_answer
from pipeline.answering.questions import Question
from pipeline.answering.stages import read_imported
from pipeline.errors import SettingError
from tests.cases import cases

QUESTIONS = [
    Question.model_construct(
        id=name, question=text, kind="summary", papers=("2403.90001",), claims=()
    )
    for name, text in (
        ("q1", "Do boats float?"),
        ("q2", "Why do they?"),
        ("q3", "Who says so?"),
        ("q4", "Who  says SO?"),
    )
]


def write(folder, text):
    file = folder / "answers.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def read(folder, text):
    return [_told(each) for each in read_imported(write(folder, text), QUESTIONS).texts]


def _told(imported):
    return imported.subject_id, imported.system, plain_answer(imported.text).text


def test_answers_are_read_with_their_questions_and_systems(tmp_path):
    text = (
        'question_id,system,answer\nq1,chat site,"They do. All ""good"" ones,\nat'
        ' least."\nq2,other,Because.\n'
    )
    found = read_imported(write(tmp_path, text), QUESTIONS)
    assert [*map(_told, found.texts)] == [
        ("q1", "chat site", 'They do. All "good" ones,\nat least.'),
        ("q2", "other", "Because."),
    ]
    answered = plain_answer(found.texts[0].text)
    assert [sentence.text for sentence in answered.sentences] == [
        "They do.",
        'All "good" ones,',
        "at least.",
    ]
    assert (answered.claims, answered.hops, answered.abstained) == ((), 0, False)


@cases("unit/answering/cases.toml", "files_of_spreadsheet_programs", "text")
def test_files_of_spreadsheet_programs_are_read(tmp_path, text):
    assert read(tmp_path, text) == [("q1", "site", "They do.")]


def test_empty_answers_abstain_and_are_told_as_are_columns_that_are_not_read(
    tmp_path,
):
    text = "question_id,system,answer,asked_on\nq1,site,,Monday\nq2,site,Because.,Monday\n"
    found = read_imported(write(tmp_path, text), QUESTIONS)
    assert [plain_answer(text.text).abstained for text in found.texts] == [True, False]
    assert plain_answer(found.texts[0].text).text == ABSTAINED
    assert [note.partition(": ")[2] for note in found.notes] == [
        "column asked_on is not known, and was not read",
        "1 of 2 answers of site are empty",
        "site has answers for 2 of 4 questions",
    ]


def test_one_system_has_one_name_however_it_is_spelt(tmp_path):
    text = "question_id,system,answer\nq1,GPT-4,a\nq2,gpt-4,b\n"
    assert [system for _, system, _ in read(tmp_path, text)] == ["GPT-4", "GPT-4"]


@cases("unit/answering/cases.toml", "a_file_that_cannot_be_taken_says_why", ["message", "text"])
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
