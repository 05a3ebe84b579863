"""The model's own answer, without passages."""

from __future__ import annotations

from pipeline.answering.answer import plain_answer
from pipeline.answering.model_calls import PROMPTS, TEMPERATURE, StepLog, Tools
from pipeline.answering.system import ASKING, AnsweringSystem
from pipeline.answering.user_question import UserQuestion
from pipeline.corpus.nouns import Answer
from pipeline.llm.messages import spent


async def direct(question: UserQuestion, tools: Tools) -> Answer:
    """The model's own answer, in one call at temperature 0."""
    steps = StepLog(tools.on_step)
    text = await write_alone(tools, steps, question)
    return plain_answer(text, steps)


async def write_alone(tools: Tools, steps: StepLog, question: UserQuestion) -> str:
    """The text that the model writes without passages; adds the step `generate`.

    WikiChat makes the same call, so a run of both pays for it once.
    """
    context, tokens = tools.settings.llm_context, tools.settings.answer_tokens
    text = tools.shorten(question.question)
    room = PROMPTS.room(
        context, tokens, "direct", question=text, history="-" if question.history else ""
    )
    messages = PROMPTS.messages("direct", question=text, history=question.conversation(room))
    completion = await tools.model.complete(messages, temperature=TEMPERATURE, max_tokens=tokens)
    steps.add(
        "generate",
        spent([completion]),
        text=completion.text.strip(),
        truncated=completion.truncated,
    )
    return completion.text


DIRECT = AnsweringSystem(
    name="direct", answer=direct, settings=ASKING, prompts=("direct",), retrieves=False
)
