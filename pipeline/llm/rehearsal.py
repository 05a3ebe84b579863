"""Rehearse a stage: its own code runs with stored answers, and with invented ones.

So calls, tokens and time are known before anything is spent, for any system, without a formula for
each. Nothing is sent, and nothing is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.llm.cache import CachedAnswer, CallCache, Kind
from pipeline.llm.calls import PaidCalls
from pipeline.llm.client import LlmClient
from pipeline.llm.completion import EndpointReply
from pipeline.llm.context import count_message_tokens
from pipeline.llm.messages import Completion, LlmAnswerError, Message, Spent, Usage
from pipeline.llm.models import Model
from pipeline.llm.transport import Dialect
from pipeline.text import text_digest

# Assumed length of a list of texts in an answer, and of an answer without earlier ones of its kind,
# as a share of the longest.
ASSUMED_SHARE = 0.6
# Assumed tokens of an answer without a limit.
ASSUMED_UNLIMITED = 600
# Requests of a kind that make their average worth more than the assumption.
ENOUGH = 5
# Assumed tokens per second of a completion without earlier ones: of one stream of a served model of
# some billion weights.
ASSUMED_READ, ASSUMED_WRITTEN = 2000.0, 40.0

MakeText = Callable[[str, int, str], str]
"""(prompt, tokens of the answer, a word of this answer alone) → a text that a system reads."""


@dataclass(slots=True)
class Rehearsal:
    """The rehearsed work of a stage: its calls, those stored, and time and cost of the others."""

    make_text: MakeText
    invented: dict[tuple[str, int], CachedAnswer] = field(default_factory=dict)
    """Invented answers by (key, sample); rehearsals share it, so that a call is paid for once."""
    usages: list[Usage] = field(default_factory=list)
    """Of each client. `cached`: completions that are stored or were invented before; `requests`:
    those to be paid.
    """
    seconds: float = 0.0
    """Of an endpoint with as many completions in flight as the model's concurrency allows."""
    past_requests: int = 0
    """Requests of earlier runs on which lengths and times are based."""

    def count(self, name: str) -> int:
        """The sum of a counter of `Usage` over all clients."""
        return sum(getattr(usage, name) for usage in self.usages)

    def make_client(self, model: Model, cache: CallCache) -> LlmClient:
        """The client of a rehearsed stage; `usages` has its counts once the stage has finished."""
        kinds = cache.kinds(model.requested)
        self.past_requests = sum(kind.requests for kind in kinds.values())
        sender = _InventingSender(model, kinds, self)

        async def connect() -> _InventingSender:
            return sender

        overlay = _OverlayCache(cache, self.invented)
        client = LlmClient(PaidCalls(model, connect, overlay, keeps_failures=True))
        self.usages.append(client.usage)
        return client


class _OverlayCache(CallCache):
    """A cache that is only read, with invented answers over it in memory."""

    # Without the base's `__init__`: the file is open already.
    def __init__(self, below: CallCache, invented: dict[tuple[str, int], CachedAnswer]) -> None:
        self._below, self._invented = below, invented

    def read(self, key: str, samples: Iterable[int]) -> dict[int, CachedAnswer]:
        numbers = list(samples)
        answers = self._below.read(key, numbers)
        for sample in numbers:
            if (key, sample) in self._invented:
                answers[sample] = self._invented[key, sample]
        return answers

    def write(
        self,
        key: str,
        request: Mapping[str, Any],
        answers: Mapping[int, CachedAnswer],
        cost: Spent,
        seconds: float,
    ) -> None:
        self._invented |= {(key, sample): answer for sample, answer in answers.items()}

    def write_failure(self, key: str, sample: int, error: LlmAnswerError, model: str) -> None:
        pass

    def kept_failure(self, key: str, sample: int, model: str) -> LlmAnswerError | None:
        return self._below.kept_failure(key, sample, model)

    def claim(self, key: str, sample: int) -> bool:
        return True

    def release(self, key: str, sample: int) -> None:
        pass


class _InventingSender:
    """Answers requests with texts of the expected length."""

    down = False

    def __init__(self, model: Model, kinds: Mapping[int, Kind], rehearsal: Rehearsal) -> None:
        self.dialect = Dialect()
        self._model, self._rehearsal = model, rehearsal
        self._kinds = {bound: kind for bound, kind in kinds.items() if kind.requests >= ENOUGH}

    def stop(self) -> None:
        """Nothing is retried here."""

    async def aclose(self) -> None:
        """Nothing is open here."""

    async def send(self, body: Mapping[str, Any], most: int) -> EndpointReply:
        """Invented completions, and the time that a request of this kind takes."""
        messages = [Message(**message) for message in body["messages"]]
        read, count = count_message_tokens(messages), body.get("n", 1)
        longest = body.get("max_tokens", 0)
        kind = self._kinds.get(longest)
        if kind is not None:
            completion_tokens, seconds = round(kind.written), kind.seconds
        else:
            completion_tokens = round(ASSUMED_SHARE * longest) if longest else ASSUMED_UNLIMITED
            completion_tokens += self._model.thinking or 0
            seconds = read / ASSUMED_READ + completion_tokens / ASSUMED_WRITTEN
        self._rehearsal.seconds += seconds * count / self._model.concurrency
        texts = [
            self._text(body, messages, completion_tokens, body["seed"] + place)
            for place in range(count)
        ]
        return EndpointReply(
            [Completion(text, read, completion_tokens, False, "stop") for text in texts], seconds
        )

    def _text(
        self, body: Mapping[str, Any], messages: list[Message], completion_tokens: int, seed: int
    ) -> str:
        prompt = "\n".join(message.content for message in messages)
        # Answers differ, as in a run: otherwise two systems would seem to make the same calls.
        unique = text_digest(f"{seed} {prompt}")[:12]
        form = body.get("response_format")
        if form is not None:
            schema = form["json_schema"]["schema"]
            return json.dumps(fill(schema, schema.get("$defs", {}), completion_tokens, unique))
        return self._rehearsal.make_text(prompt, completion_tokens, unique)


def words(tokens: int) -> str:
    """A meaningless text of so many tokens."""
    return " ".join(["word"] * max(round(tokens / 1.1), 1))


def fill(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], tokens: int, unique: str
) -> Any:
    """A value that fits a JSON schema, of about so many tokens; texts begin with `unique`."""
    if "$ref" in schema:
        return fill(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions, tokens, unique)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        parts = schema.get("properties", {})
        return {
            name: fill(part, definitions, tokens // len(parts), unique)
            for name, part in parts.items()
        }
    if kind == "array":
        items = max(schema.get("minItems", 0), 1)
        # Texts may be claims, each of which costs calls. Of other items, one is enough.
        if schema["items"].get("type") == "string":
            items = max(items, round(ASSUMED_SHARE * schema.get("maxItems", 0)))
        return [
            fill(schema["items"], definitions, tokens // items, f"{unique}{place}")
            for place in range(items)
        ]
    if kind in {"integer", "number"}:
        return schema.get("minimum", 1)
    if kind == "string":
        return f"{unique} {words(tokens - 6)}"[: schema.get("maxLength")]
    return False if kind == "boolean" else None
