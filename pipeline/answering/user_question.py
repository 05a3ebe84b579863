"""A user's question with its conversation, and the search query that a model makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from pipeline.answering.model_calls import CHARS_PER_TOKEN, PROMPTS, FormAnswer, as_word, ask, short_question
from pipeline.answering.retrieval import QUERY_CHARS, searchable
from pipeline.errors import SettingError
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent
from pipeline.llm.context import first_that_fit, fit
from pipeline.llm.structured import AnswerForm, AtMost

# A follow-up refers to the last few turns; the beginning of a long answer says what it is about. Six turns are at most
# 1,440 tokens.
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
        question, answer = (fit(" ".join(text.split()), _TURN_TOKENS).text for text in (self.question, self.answer))
        return f"User: {question}\nAssistant: {answer}"


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """A question. history: earlier turns of the conversation, oldest first.

    Raises SettingError for a question that is empty or not valid Unicode.
    """

    question: str
    history: tuple[Turn, ...] = ()
    question_id: str = ""

    def __post_init__(self) -> None:
        name = f"the question {self.question_id}" if self.question_id else "the question"
        # Bytes of an argument that are not UTF-8 become lone surrogates (PEP 383), which no endpoint takes.
        if any("\ud800" <= character <= "\udfff" for character in self.question):
            raise SettingError(f"{name} is not valid UTF-8: type it again, or see that the terminal's locale is UTF-8")
        if not searchable(self.question):
            raise SettingError(f"{name} is empty: write what you want to know")

    def conversation(self, tokens: int) -> str:
        """The last turns in a prompt, as many as fit into so many tokens; empty without any."""
        newest_first = [turn.text() for turn in reversed(self.history[-MOST_TURNS:])]
        return "\n".join(reversed(first_that_fit(newest_first, tokens)))


class Query(AnswerForm):
    """The words of a search."""

    query: Annotated[str, AtMost(QUERY_CHARS)]


class FollowUp(AnswerForm):
    """A question that can be understood without the conversation, and the words of a search."""

    question: Annotated[str, AtMost(QUESTION_CHARS)]
    query: Annotated[str, AtMost(QUERY_CHARS)]


class Search(AnswerForm):
    """WikiChat's: whether to search, the question by itself, and the words of the search.

    search is a word and not a truth value: a rehearsal makes up the first of the words, which must be the costlier one.
    """

    search: Annotated[Literal["yes", "no"], BeforeValidator(as_word)]
    question: Annotated[str, AtMost(QUESTION_CHARS)]
    query: Annotated[str, AtMost(QUERY_CHARS)]


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The question as it stands alone, and its query; None if WikiChat does not search."""

    question: str
    query: str | None
    spent: Spent
    made: str = "model"
    """Whose words the query is: the model's, or the question's if there were none."""
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        return {"question": self.question, "query": self.query, "made": self.made, "failure": self.failure}


async def plan_query(client: LlmClient, question: UserQuestion, context: int) -> QueryPlan:
    """arXivBot's query; after a conversation the same call makes the question stand alone."""
    form: type[Query] | type[FollowUp] = FollowUp if question.history else Query
    answer = await _ask_for(client, "query", question, form, context)
    plan = answer.value
    return _plan(question, getattr(plan, "question", ""), plan.query if plan else "", answer)


async def plan_query_or_none(client: LlmClient, question: UserQuestion, context: int) -> QueryPlan:
    """WikiChat's query, or none; after an answer that cannot be read the question is searched for."""
    answer = await _ask_for(client, "search", question, Search, context)
    plan = answer.value
    if plan is not None and plan.search == "no":
        return QueryPlan(_standing_alone(question, plan.question), None, answer.spent)
    return _plan(question, plan.question if plan else "", plan.query if plan else "", answer)


async def _ask_for(
    client: LlmClient, prompt: str, question: UserQuestion, form: type[Any], context: int
) -> FormAnswer[Any]:
    text = short_question(question.question, context)
    left = PROMPTS.room(
        context, _ANSWER_TOKENS + REPAIR_TOKENS, prompt, question=text, history="-" if question.history else ""
    )
    messages = PROMPTS.messages(prompt, question=text, history=question.conversation(left))
    return await ask(client, messages, form, _ANSWER_TOKENS)


def _plan(question: UserQuestion, rewritten: str, query: str, answer: FormAnswer[Any]) -> QueryPlan:
    """The model's query, or the question's own words if that is empty or cannot be read."""
    alone, words = _standing_alone(question, rewritten), searchable(query)
    if words:
        return QueryPlan(alone, words, answer.spent)
    # A follow-up by itself ("and how large is it?") finds nothing without the question before it.
    unchanged = question.history and alone == " ".join(question.question.split())
    before = question.history[-1].question if unchanged else ""
    return QueryPlan(alone, searchable(f"{alone} {before}"), answer.spent, "question", answer.failure)


def _standing_alone(question: UserQuestion, rewritten: str) -> str:
    """The question as the model rewrote it; without a conversation as it is."""
    own = " ".join(question.question.split())
    return (" ".join(rewritten.split()) or own) if question.history else own
