"""The one client of language models: cached, bounded, over any OpenAI-compatible endpoint.

A call that is in the cache costs no request; samples of one prompt go out as one request (`n`), so that a server
reads the prompt once. Not here: HTTP and its errors (`transport`), the file of answers (`cache`), what is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.errors import PermanentFailure
from pipeline.llm.cache import CallCache, call_key
from pipeline.llm.embedded import check_embedded, embedded_endpoint
from pipeline.llm.loop import Slots, side_by_side
from pipeline.llm.messages import Completion, LlmAnswerError, Message, Spent, Usage, spent
from pipeline.llm.transport import Endpoint, Transport, check_url
from pipeline.settings import Settings
from pipeline.stages import Workspace

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

__all__ = ["Answer", "Completion", "LlmAnswerError", "LlmClient", "Message", "Spent", "Usage", "open_client", "spent"]

Model = TypeVar("Model", bound=BaseModel)
# Another process's answer is looked for this often; a call takes seconds.
_POLL_SECONDS = 0.05
# How much of a bad answer its repair is shown, and the tokens that a prompt must leave free for that.
REPAIRED_CHARS = 1200
REPAIR_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Answer(Generic[Model]):
    """A structured answer and what it cost: one call, or two where it had to be repaired."""

    value: Model
    spent: Spent


@dataclass(frozen=True, slots=True)
class _Call:
    """A request without its sample number."""

    request: Mapping[str, Any]
    key: str


class LlmClient:
    """Asks one model. Belongs to one event loop.

    `connect` gives the transport, and is called for the first request that the cache cannot answer: a run whose
    answers are all there starts no server. `concurrency` limits the completions in flight.
    """

    def __init__(
        self, model: str, connect: Callable[[], Awaitable[Transport]], cache: CallCache, concurrency: int
    ) -> None:
        self.model = model
        self.usage = Usage()
        self._connect, self._cache = connect, cache
        self._slots = Slots(concurrency)
        self._transport: Transport | None = None
        self._connecting = asyncio.Lock()
        self._at_work: dict[tuple[str, int], asyncio.Event] = {}

    async def aclose(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        temperature: float,
        max_tokens: int,
        sample: int = 0,
        top_p: float | None = None,
    ) -> Completion:
        """One completion. The same messages, parameters and `sample` give the same text for ever, from the cache."""
        found = await self.samples(
            messages, 1, first=sample, temperature=temperature, max_tokens=max_tokens, top_p=top_p
        )
        return found[0]

    async def samples(
        self,
        messages: Sequence[Message],
        count: int,
        *,
        temperature: float,
        max_tokens: int,
        first: int = 0,
        top_p: float | None = None,
    ) -> list[Completion]:
        """`count` completions of one prompt, numbered from `first`, in order. Raises as `Transport.send` does."""
        call = self._call(messages, temperature, max_tokens, top_p, None)
        return await self._obtain(call, range(first, first + count))

    async def answer(
        self,
        messages: Sequence[Message],
        schema: type[Model],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        sample: int = 0,
    ) -> Answer[Model]:
        """An answer in the form of `schema`: constrained by the endpoint where it can, parsed, repaired once.

        Raises LlmAnswerError where the repaired answer cannot be read either.
        """
        form = _response_format(schema)

        async def ask(asked: Sequence[Message]) -> Completion:
            call = self._call(asked, temperature, max_tokens, None, form)
            return (await self._obtain(call, range(sample, sample + 1)))[0]

        given = await ask(messages)
        try:
            return Answer(parse_answer(given.text, schema), spent([given]))
        except ValueError as error:
            bad = Message("assistant", given.text[:REPAIRED_CHARS])
            repaired = await ask([*messages, bad, Message("user", _repair(error, schema))])
        cost = spent([given, repaired])
        try:
            return Answer(parse_answer(repaired.text, schema), cost)
        except ValueError as error:
            message = f"no {schema.__name__} could be read, repair included: {_short(error)}"
            raise LlmAnswerError(message, cost) from None

    def _call(
        self,
        messages: Sequence[Message],
        temperature: float,
        max_tokens: int,
        top_p: float | None,
        response_format: Mapping[str, Any] | None,
    ) -> _Call:
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [asdict(message) for message in messages],
            "temperature": temperature,
            "max_tokens": max_tokens,
        }
        optional = {"top_p": top_p, "response_format": response_format}
        request |= {name: value for name, value in optional.items() if value is not None}
        return _Call(request, call_key(request))

    async def _obtain(self, call: _Call, wanted: range) -> list[Completion]:
        """Completions of these samples: from the cache, from whoever is asking for them now, or paid."""
        self.usage.calls += len(wanted)
        paid: set[int] = set()
        while True:
            found = {sample: _kept(answer) for sample, answer in self._cache.read(call.key, wanted).items()}
            missing = [sample for sample in wanted if sample not in found]
            if not missing:
                break
            paid |= await self._pay_or_wait(call, missing)
        self.usage.cached += len(wanted) - len(paid)
        # The text is the cache's also where it was paid for now, so that all who asked at once agree.
        return [replace(found[sample], cached=sample not in paid) for sample in wanted]

    async def _pay_or_wait(self, call: _Call, missing: list[int]) -> set[int]:
        """Pay for the samples, unless this or another process is at the first of them: then wait a while."""
        mark = (call.key, missing[0])
        busy = self._at_work.get(mark)
        if busy is not None:
            await busy.wait()
            return set()
        if not self._cache.claim(*mark):
            await asyncio.sleep(_POLL_SECONDS)
            return set()
        done = self._at_work[mark] = asyncio.Event()
        try:
            return await self._pay(call, missing)
        finally:
            self._cache.release(*mark)
            del self._at_work[mark]
            done.set()

    async def _pay(self, call: _Call, missing: list[int]) -> set[int]:
        transport = await self._connected()
        most = 1 if "n" in transport.dialect.refused else self._slots.total
        parts = [part[i : i + most] for part in _consecutive(missing) for i in range(0, len(part), most)]
        answers = await side_by_side(self._request(transport, call, part) for part in parts)
        return set().union(*answers)

    async def _connected(self) -> Transport:
        async with self._connecting:
            if self._transport is None:
                self._transport = await self._connect()
            return self._transport

    async def _request(self, transport: Transport, call: _Call, samples: list[int]) -> set[int]:
        """One request for consecutive samples; which of them it brought into the cache.

        An endpoint that gives fewer than it was asked for is not asked for several again.
        """
        body = dict(call.request) | {"seed": samples[0]} | ({"n": len(samples)} if len(samples) > 1 else {})
        async with self._slots.taking(len(samples)):
            started = time.perf_counter()
            response = await transport.send(body)
            self.usage.seconds += time.perf_counter() - started
        found = dict(zip(samples, _completions(response, transport.endpoint), strict=False))
        self._count(transport, found)
        self._cache.write(call.key, call.request, {sample: _keepable(each) for sample, each in found.items()})
        if len(found) < len(samples):
            transport.dialect.refused.add("n")
        return set(found)

    def _count(self, transport: Transport, found: Mapping[int, Completion]) -> None:
        self.usage.requests += 1
        self.usage.retries = transport.retries
        self.usage.prompt_tokens += max((each.prompt_tokens for each in found.values()), default=0)
        self.usage.completion_tokens += sum(each.completion_tokens for each in found.values())


def _consecutive(samples: Sequence[int]) -> list[list[int]]:
    """Runs of numbers that follow one another: one request can ask for a run, seeds being first, first + 1, …"""
    runs: list[list[int]] = []
    for sample in samples:
        if runs and sample == runs[-1][-1] + 1:
            runs[-1].append(sample)
        else:
            runs.append([sample])
    return runs


def _completions(response: ChatCompletion, endpoint: Endpoint) -> list[Completion]:
    if not getattr(response, "choices", None):
        raise PermanentFailure(
            f"{endpoint.shown} does not answer as an OpenAI-compatible endpoint: its answer has no choices; correct "
            "CITELOOM_LLM_URL"
        )
    texts = [choice.message.content or "" for choice in response.choices]
    read = response.usage.prompt_tokens if response.usage else 0
    # llama.cpp's server, known by its timings, reports the tokens of the first choice alone.
    first_alone = bool((response.model_extra or {}).get("timings"))
    written = _shares(response.usage.completion_tokens if response.usage else 0, texts, first_alone)
    return [
        Completion(text, read, tokens, False, choice.finish_reason or "")
        for text, tokens, choice in zip(texts, written, response.choices, strict=True)
    ]


def _shares(reported: int, texts: Sequence[str], first_alone: bool) -> list[int]:
    """Tokens of each text, out of what the endpoint reported for all of them or for the first."""
    lengths = [max(len(text), 1) for text in texts]
    basis = lengths[0] if first_alone else sum(lengths)
    return [round(reported * length / basis) for length in lengths]


def _keepable(completion: Completion) -> dict[str, Any]:
    kept = asdict(completion)
    del kept["cached"]
    return kept


def _kept(answer: Mapping[str, Any]) -> Completion:
    return Completion(**answer, cached=True)


def _response_format(schema: type[BaseModel]) -> dict[str, Any]:
    form = {"name": schema.__name__, "strict": True, "schema": schema.model_json_schema()}
    return {"type": "json_schema", "json_schema": form}


def parse_answer(text: str, schema: type[Model]) -> Model:
    """The JSON object in a text, validated. Raises ValueError (pydantic's is one) where there is none that fits."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise ValueError("there is no JSON object in the answer")
    return schema.model_validate_json(text[start : end + 1])


def _repair(error: ValueError, schema: type[BaseModel]) -> str:
    fields = ", ".join(schema.model_fields)
    return (
        f"That answer cannot be used: {_short(error)}. Answer again with one JSON object alone; its fields: {fields}."
    )


def _short(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        faults = [f"{'.'.join(map(str, each['loc'])) or 'answer'}: {each['msg']}" for each in error.errors()[:3]]
        return "; ".join(faults)
    return re.sub(r"\s+", " ", str(error))[:200]


def check_llm(settings: Settings) -> None:
    """Raise SettingError where the settings ask of the embedded model what it cannot do, or where CITELOOM_LLM_URL
    is no address or would carry the key in the clear. Asks no network."""
    if settings.llm_url is None:
        check_embedded(settings)
    else:
        check_url(settings.llm_url, has_key=settings.llm_api_key is not None)


@contextlib.asynccontextmanager
async def open_client(workspace: Workspace) -> AsyncIterator[LlmClient]:
    """The client that the settings describe, with the cache of the data root.

    Raises SettingError as `check_llm` does; an endpoint's faults show with the first call.
    """
    settings = workspace.settings
    check_llm(settings)

    async def connect() -> Transport:
        return Transport(await asyncio.to_thread(_endpoint, settings))

    with contextlib.closing(CallCache(workspace.cache("llm") / "calls.sqlite")) as cache:
        client = LlmClient(settings.llm_model, connect, cache, settings.llm_concurrency)
        try:
            yield client
        finally:
            await client.aclose()


def _endpoint(settings: Settings) -> Endpoint:
    plain = Endpoint(settings.llm_url or "", settings.llm_model, settings.llm_api_key, settings.llm_timeout)
    if settings.llm_url is not None:
        return plain
    return replace(plain, url=embedded_endpoint(settings), embedded=True, api_key=None)
