"""Reading a structured answer: formulas through JSON's escapes, and what is none."""

import pytest
from pydantic import BaseModel

from pipeline.llm.structured import copyable, parse_answer
from tests.cases import cases, cases_beside


class Verdict(BaseModel):
    why: str


@cases("unit/llm/cases.toml", "a_formula_keeps_its_macros_and_half_a", ["written", "read"])
def test_a_formula_keeps_its_macros_and_half_a_character_is_replaced(written, read):
    assert parse_answer(f'{{"why": "{written}"}}', Verdict).why == read


@cases("unit/llm/cases.toml", "a_copy_of_a_copyable_text_is", "text")
def test_a_copy_of_a_copyable_text_is_read_as_the_text(text):
    assert parse_answer(f'{{"why": "{copyable(text)}"}}', Verdict).why == text


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "} then {",
        '{"why": ["' + "'" * 20_000 + "}",
        '{"grade": 3}',
        '{"why": ' + "[" * 5000 + "}",
        '{"why": ' * 5000 + "}",
    ],
)
def test_what_holds_no_answer_is_an_error(answer):
    with pytest.raises(ValueError, match=r"JSON|why|nested too deeply"):
        parse_answer(answer, Verdict)


def test_a_broken_object_of_many_brackets_is_too_long_to_be_mended():
    with pytest.raises(ValueError, match="too long to be mended"):
        parse_answer('{"why": "' + "{a:" * 2_000 + "}", Verdict)


class Claims(BaseModel):
    claims: list[Verdict]


@cases_beside("answer")
def test_broken_json_is_read_without_another_call(answer):
    assert parse_answer(answer, Claims) == Claims(claims=[Verdict(why="it floats")])
