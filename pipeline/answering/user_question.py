"""A user's question with its conversation, and the search query that a model makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict

from pipeline.answering.model_calls import (
    CHARS_PER_TOKEN,
    StepLog,
    Tools,
    as_word,
)
from pipeline.answering.retriever import QUERY_CHARS, searchable
from pipeline.errors import SettingError
from pipeline.index.search_options import check_length
from pipeline.llm.context import first_that_fit, fit
from pipeline.llm.structured import AnswerForm, AtMost
from pipeline.text import one_line

# A follow-up refers to the last few turns; the beginning of a long answer says what it is about.
# Six turns are at most 1,440 tokens.
MOST_TURNS, _TURN_TOKENS = 6, 120
QUESTION_CHARS = 400
_ANSWER_TOKENS = 48 + int((QUERY_CHARS + QUESTION_CHARS) / CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation and its answer."""

    question: str
    answer: str

    def text(self) -> str:
        """The turn in a prompt: a line for the question and one for the answer, each cut."""
        question, answer = (
            fit(one_line(text), _TURN_TOKENS).text for text in (self.question, self.answer)
        )
        return f"User: {question}\nAssistant: {answer}"


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """A question. history: earlier turns of the conversation, oldest first.

    Raises SettingError for a question that is empty, not valid Unicode or too long.
    """

    question: str
    history: tuple[Turn, ...] = ()
    question_id: str = ""

    def __post_init__(self) -> None:
        name = f"the question {self.question_id}" if self.question_id else "the question"
        check_length(self.question, name)
        # Bytes of an argument that are not UTF-8 become lone surrogates (PEP 383), which no
        # endpoint takes.
        if any("\ud800" <= character <= "\udfff" for character in self.question):
            raise SettingError(
                f"{name} is not valid UTF-8: type it again, or see that the terminal's locale is"
                " UTF-8"
            )
        if not searchable(self.question):
            raise SettingError(f"{name} is empty: write what you want to know")

    def conversation(self, tokens: int) -> str:
        """The last turns in a prompt, as many as fit into so many tokens; empty without any."""
        newest_first = [turn.text() for turn in reversed(self.history[-MOST_TURNS:])]
        return "\n".join(reversed(first_that_fit(newest_first, tokens)))


# Requests hold the names and docstrings of forms, and so do the keys of cached answers.
class Query(AnswerForm):
    """The words of a search."""

    query: Annotated[str, AtMost(QUERY_CHARS)]


class FollowUp(AnswerForm):
    """A question that can be understood without the conversation, and the words of a search."""

    question: Annotated[str, AtMost(QUESTION_CHARS)]
    query: Annotated[str, AtMost(QUERY_CHARS)]


class Search(AnswerForm):
    """WikiChat's: whether to search, the question by itself, and the words of the search."""

    # The description is part of a request, and so of the keys of stored answers.
    model_config = ConfigDict(
        json_schema_extra={
            "description": "WikiChat's: whether to search, the question by itself, and the words of"
            " the search.\n\nsearch is a word and not a truth value: a rehearsal makes up the first"
            " of the words, which must be the costlier one."
        }
    )

    search: Annotated[Literal["yes", "no"], BeforeValidator(as_word)]
    question: Annotated[str, AtMost(QUESTION_CHARS)]
    query: Annotated[str, AtMost(QUERY_CHARS)]


async def plan_query(
    tools: Tools, steps: StepLog, question: UserQuestion, *, optional: bool = False
) -> tuple[str, str | None]:
    """The question as it stands alone, and the query to search by; adds the step `query`.

    After a conversation the same call rewrites the question so that it stands alone. The query is
    the question itself if the model names none. optional: use
    WikiChat's prompt, by which the model may decide not to search; the query is then None.
    """
    prompt = "search" if optional else "query"
    form: type[Any] = FollowUp if question.history else Query
    if optional:
        form = Search
    text = tools.shorten(question.question)
    room = tools.room(
        prompt, _ANSWER_TOKENS, question=text, history="-" if question.history else ""
    )
    history = question.conversation(room)
    answer = await tools.ask(prompt, form, _ANSWER_TOKENS, question=text, history=history)
    original = one_line(question.question)
    rewritten = one_line(answer.value.question) if question.history else ""
    alone = rewritten or original
    query: str | None = searchable(answer.value.query)
    made = "model"
    if getattr(answer.value, "search", "yes") == "no":
        query = None
    elif not query:
        # A follow-up ("and how large is it?") finds nothing without the question before it.
        previous = question.history[-1].question if question.history and alone == original else ""
        query, made = searchable(f"{alone} {previous}"), "question"
    steps.add("query", answer.spent, question=alone, query=query, made=made)
    return alone, query
