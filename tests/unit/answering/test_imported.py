"""Answers made elsewhere, from a CSV: as people and spreadsheet programs write one, with a message
for each fault.
"""

import pytest

from pipeline.answering.answer import ABSTAINED, plain_answer
from pipeline.answering.questions import Question
from pipeline.answering.stages import read_imported
from pipeline.errors import SettingError

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


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfquestion_id,system,answer\r\nq1,site,They do.\r\n",
        b"question_id,system,answer\r\nq1,site,They do.\r\n\r\n,,\r\n",
        b'"system","answer","question_id","question"\n"site","They do.","q1",""\n',
        b"answer , system , question_id\nThey do.,  site ,q1",
        b"answer,system,question\nThey do.,site,do  boats FLOAT?\n",
    ],
)
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no column system, answer in ''"),
        ("question_id,system,answer\n", "holds no answer"),
        ("system,answer\ns,a\n", "line 2: it names no question: fill question_id or question"),
        (
            "question_id;system;answer\nq1;s;a\n",
            "'question_id;system;answer': name .* save it as CSV UTF-8, comma-sep",
        ),
        (
            "question_id,system,answer\nq1,s,a\n".encode("utf-16"),
            "line 1: it is not UTF-8 .*: save it as CSV UTF-8",
        ),
        ("question_id,system,answer,answer\nq1,s,a,b\n", "column answer is there twice"),
        ("question_id,system,answer\nq9,site,a\n", "line 2: question_id 'q9' is none of the set"),
        (
            "question,system,answer\nDo boats sink?,site,a\n",
            "line 2: no question of the set reads 'do boats sink",
        ),
        ("question,system,answer\nWho says so?,site,a\n", "q3 and q4 read alike: give question_id"),
        (
            "question_id,question,system,answer\nq1,Why do they?,s,a\n",
            "its question is not that of q1",
        ),
        ("question_id,system,answer\nq1,,a\n", "line 2: '' names no system"),
        ("question_id,system,answer\nq1,Direct,a\n", "Direct is a system of citeloom"),
        (
            'question_id,system,answer\nq1,s,"a\nb"\nq1,S,c\n',
            "line 4: s wrote for q1 on line 2 too",
        ),
        (
            "question_id,system,answer\nq1,s,One, two\n",
            "line 2: it has more cells than there are columns",
        ),
        (
            'question_id,system,answer\nq1,s,"open\n',
            "line 2: it is not CSV .unexpected end of data.: put quotes",
        ),
        (f"question_id,system,answer\nq1,s,{'a' * 100_001}\n", "its answer has 100,001 characters"),
        (b"question_id,system,answer\nq1,s,\xff\n", "line 2: it is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_taken_says_why(tmp_path, text, message):
    with pytest.raises(SettingError, match=message) as error:
        read(tmp_path, text)
    assert "answers.csv" in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingError, match=r"nowhere\.csv cannot be read \(No such file"):
        read_imported(tmp_path / "nowhere.csv", QUESTIONS)
