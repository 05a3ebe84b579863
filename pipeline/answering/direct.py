"""The model alone: what it says of a question by itself."""

from __future__ import annotations

from pipeline.answering.answered import Answered, plain_answer
from pipeline.answering.asked import Asked
from pipeline.answering.params import Params
from pipeline.answering.prompting import PROMPTS, TEMPERATURE, room, short_question
from pipeline.answering.steps import Steps, Tell
from pipeline.llm.client import Completion, LlmClient, spent


async def direct(client: LlmClient, asked: Asked, params: Params, tell: Tell | None = None) -> Answered:
    """The model's own answer, in one call at temperature 0."""
    steps = Steps(tell)
    written = await written_alone(client, asked, params)
    steps.add("generate", spent([written]), text=written.text.strip(), truncated=written.truncated)
    return plain_answer(written.text, steps)


async def written_alone(client: LlmClient, asked: Asked, params: Params) -> Completion:
    """What the model writes by itself, the conversation before it. WikiChat asks the same, so both pay for it once."""
    question = short_question(asked.question, params.context)
    left = room(params.context, params.tokens, "direct", question=question, history="-" if asked.history else "")
    messages = PROMPTS.messages("direct", question=question, history=asked.conversation(left))
    return await client.complete(messages, temperature=TEMPERATURE, max_tokens=params.tokens)
