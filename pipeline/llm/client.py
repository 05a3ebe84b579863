"""The one client of language models: cached, within a budget, over any OpenAI-compatible endpoint.

A call that is in the cache costs no request; samples of one prompt are one request (`n`), so that a server reads the
prompt once. An answer to a request that was sent is stored even if the run fails meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from pipeline.engine import shutdown
from pipeline.engine.stage import Workspace
from pipeline.llm.budget import Budget, Limits, check_budget, run_budget
from pipeline.llm.cache import CallCache, call_key
from pipeline.llm.context import count_message_tokens
from pipeline.llm.embedded import embedded_endpoint
from pipeline.llm.limiter import FIRST_PATIENCE, PATIENCE, Limiter
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import Completion, LlmAnswerError, Message, Spent, Usage, spent
from pipeline.llm.models import Model, get_model, shown_url
from pipeline.llm.prompts import as_data
from pipeline.llm.structured import copyable, parse_answer, repair, response_format, short
from pipeline.llm.transport import Dialect, Reply, Transport
from pipeline.settings import Settings
from pipeline.storage.mounts import NETWORK, mount_of

__all__ = ["Answer", "Completion", "LlmAnswerError", "LlmClient", "Message", "Spent", "Usage", "open_client", "spent"]

Form = TypeVar("Form", bound=BaseModel)
# Another process's answer is looked up this often, then less and less: a call takes seconds, and a thousand tasks that
# look 20 times a second would take a core.
_POLL_SECONDS, _LONGEST_POLL = 0.05, 1.0
# How much of an unreadable answer its repair shows, and the tokens that a prompt must leave free for that.
REPAIRED_CHARS = 1200
REPAIR_TOKENS = 512
# Sample numbers of one repeat: more than any search takes of one prompt, so that no two repeats share a sample; and few
# enough that the seeds of a thousand repeats of any system are within 31 bits, which is all that some endpoints take.
REPEAT_SAMPLES = 1_000_000
_SYSTEM_SEEDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Answer(Generic[Form]):
    """A structured answer and what it cost: one call, or two if it was repaired."""

    value: Form
    spent: Spent


class Sender(Protocol):
    """What a client needs of a transport; that of a rehearsal invents its answers."""

    dialect: Dialect

    async def send(self, body: Mapping[str, Any]) -> Reply: ...
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Call:
    """A request without its sample number, and the key of its answers in the cache.

    claim: the sample that the process which pays has claimed.
    """

    request: Mapping[str, Any]
    key: str
    first_seed: int
    worst_written: int
    """Most tokens of one answer."""
    claim: tuple[str, int] = ("", 0)

    def worst_case(self, samples: int, *, tokens: bool) -> Spent:
        """The most that so many samples can cost; with `tokens`, also in tokens, by the project's own estimate."""
        if not tokens:
            return Spent(samples)
        return Spent(samples, _count_read(self.request), samples * self.worst_written)


class LlmClient:
    """Calls one model. Belongs to one event loop.

    connect: makes the transport, with the limiter; called for the first request that the cache cannot answer, so that
    a run whose answers are all stored starts no server. budget: limits what requests may cost; none without it.
    usage: what the client did in this run. limiter: another client's of the same loop and endpoint may take its place
    before either makes a call.
    """

    def __init__(
        self,
        model: Model,
        connect: Callable[[Limiter], Awaitable[Sender]],
        cache: CallCache,
        budget: Budget | None = None,
    ) -> None:
        self.model = model
        self._connect, self._cache, self._budget = connect, cache, budget or Budget(Limits())
        # The embedded model's server is not restarted if it dies: nothing is worth waiting for.
        name, patience = (model.name, FIRST_PATIENCE) if model.url is None else (shown_url(model.url), PATIENCE)
        self.usage, self.limiter = Usage(prices=model.prices), Limiter(model.concurrency, name, patience)
        # Views share these: the transport, once it is made, is the list's only member.
        self._transports: list[Sender] = []
        self._connecting = asyncio.Lock()
        self._claims: dict[tuple[str, int], asyncio.Event] = {}
        self._flights: dict[asyncio.Task[set[int]], tuple[str, int]] = {}
        self._system, self._first_sample = "", 0

    def view(self, system: str = "", repeat: int = 0) -> LlmClient:
        """The same client with samples of its own: those of a system, and of a repeat (from 0).

        Equal prompts of two systems are two draws. Each repeat is as deterministic and as well cached as the first; at
        temperature 0 it asks again for the same.
        """
        view = copy.copy(self)
        view._system, view._first_sample = system, repeat * REPEAT_SAMPLES
        return view

    def abandon(self) -> None:
        """Cancel the requests in flight: a user who interrupts a run does not wait for them."""
        for flight in self._flights:
            flight.cancel()

    async def aclose(self) -> None:
        """Close the transport. Answers in flight are paid for: they are awaited and stored, but nothing is retried, and
        an endpoint that is down is not waited for."""
        if not self._transports:
            return
        self.limiter.stop()
        if self.limiter.down:
            self.abandon()
        if self._flights:
            await asyncio.wait(list(self._flights))
        for claim in list(self._claims):
            self._release(claim)
        await self._transports[0].aclose()

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        temperature: float,
        max_tokens: int | None = None,
        sample: int = 0,
    ) -> Completion:
        """One completion. Equal messages, parameters and `sample` always give the same text, from the cache."""
        (completion,) = await self.samples(messages, 1, first=sample, temperature=temperature, max_tokens=max_tokens)
        return completion

    async def samples(
        self,
        messages: Sequence[Message],
        count: int,
        *,
        temperature: float,
        max_tokens: int | None = None,
        first: int = 0,
        form: type[BaseModel] | None = None,
    ) -> list[Completion]:
        """`count` completions of one prompt, numbered from `first`, in order. Raises as `Transport.send` does.

        max_tokens: longest completion; None for the model's own limit. form: schema to which the endpoint constrains
        the completions if it can; they are not parsed here (see `answers`).
        """
        call = self._call(messages, temperature, max_tokens, None if form is None else response_format(form))
        start = self._first_sample + first
        return await self._obtain(call, range(start, start + count))

    async def answer(
        self,
        messages: Sequence[Message],
        schema: type[Form],
        *,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        sample: int = 0,
    ) -> Answer[Form]:
        """An answer in the form of `schema`: constrained by the endpoint if it can, parsed, repaired once.

        Raises LlmAnswerError if the repaired answer cannot be read either.
        """
        (answer,) = await self.answers(
            messages, schema, 1, first=sample, max_tokens=max_tokens, temperature=temperature
        )
        if isinstance(answer, LlmAnswerError):
            raise answer
        return answer

    async def answers(
        self,
        messages: Sequence[Message],
        schema: type[Form],
        count: int,
        *,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        first: int = 0,
    ) -> list[Answer[Form] | LlmAnswerError]:
        """As `answer`, `count` of them on one prompt, numbered from `first`: one request, and each repaired by itself.

        The messages are sent `copyable`. An answer that cannot be read, repair included, is returned as its error.
        """
        prompt = [Message(message.role, copyable(message.content)) for message in messages]

        async def ask(messages: Sequence[Message], count: int, first: int) -> list[Completion]:
            return await self.samples(
                messages, count, first=first, temperature=temperature, max_tokens=max_tokens, form=schema
            )

        async def read(completion: Completion, sample: int) -> Answer[Form] | LlmAnswerError:
            try:
                return Answer(parse_answer(completion.text, schema), spent([completion]))
            except ValueError as error:
                unreadable = Message("assistant", as_data(completion.text[:REPAIRED_CHARS]))
                (repaired,) = await ask([*prompt, unreadable, Message("user", repair(error, schema))], 1, sample)
            cost = spent([completion, repaired])
            try:
                return Answer(parse_answer(repaired.text, schema), cost)
            except ValueError as error:
                return LlmAnswerError(f"no {schema.__name__} could be read, repair included: {short(error)}", cost)

        completions = await ask(prompt, count, first)
        return await side_by_side(read(completion, sample) for sample, completion in enumerate(completions, first))

    def _call(
        self,
        messages: Sequence[Message],
        temperature: float,
        max_tokens: int | None,
        response_format: Mapping[str, Any] | None,
    ) -> _Call:
        max_tokens = max_tokens or self.model.max_tokens
        request: dict[str, Any] = {
            "model": self.model.name,
            "messages": [asdict(message) for message in messages],
            "temperature": temperature,
        }
        optional = {"max_tokens": max_tokens, "response_format": response_format}
        request |= {name: value for name, value in optional.items() if value is not None}
        key = call_key(request | ({"system": self._system} if self._system else {}))
        written = max_tokens or max(self.model.context - _count_read(request), 1)
        return _Call(request, key, _first_seed(self._system), written)

    async def _obtain(self, call: _Call, wanted: range) -> list[Completion]:
        """Completions of these samples: from the cache, from the process that is paying for them, or paid now."""
        self.usage.calls += len(wanted)
        paid: set[int] = set()
        pause = _POLL_SECONDS
        while True:
            stored = self._read(call, wanted)
            missing = [sample for sample in wanted if sample not in stored]
            if not missing:
                break
            paid |= await self._pay_or_wait(call, missing, pause)
            pause = min(1.5 * pause, _LONGEST_POLL)
        self._count_cached([stored[sample] for sample in wanted if sample not in paid])
        # The text is that of the cache also if it was paid for now, so that all that asked at once agree.
        return [replace(stored[sample], cached=sample not in paid) for sample in wanted]

    def _read(self, call: _Call, samples: range) -> dict[int, Completion]:
        stored = self._cache.read(call.key, samples)
        return {sample: Completion(**answer, cached=True) for sample, answer in stored.items()}

    async def _pay_or_wait(self, call: _Call, missing: list[int], pause: float) -> set[int]:
        """Pay for the samples, unless this or another process is paying for the first of them: then wait, `pause`
        seconds for another process."""
        claim = (call.key, missing[0])
        busy = self._claims.get(claim)
        if busy is not None:
            await busy.wait()
            return set()
        if not self._cache.claim(*claim):
            await asyncio.sleep(pause)
            return set()
        self._claims[claim] = asyncio.Event()
        try:
            # Between the reading and the claim another process may have stored its answers and given the claim up.
            if self._cache.read(call.key, missing):
                return set()
            return await self._pay(replace(call, claim=claim), missing)
        finally:
            self._release(claim)

    def _release(self, claim: tuple[str, int]) -> None:
        """Give up the claim, once nothing that was sent under it is in flight any more."""
        if claim not in self._claims:
            return
        flights = [flight for flight, of in self._flights.items() if of == claim]
        if flights:
            asyncio.gather(*flights, return_exceptions=True).add_done_callback(lambda _: self._release(claim))
            return
        self._cache.release(*claim)
        self._claims.pop(claim).set()

    async def _pay(self, call: _Call, missing: list[int]) -> set[int]:
        transport = await self._connected()
        most = 1 if "n" in transport.dialect.refused else self.limiter.concurrency
        parts = [run[i : i + most] for run in _consecutive(missing) for i in range(0, len(run), most)]
        answers = await side_by_side(self._request(transport, call, part) for part in parts)
        return set().union(*answers)

    async def _connected(self) -> Sender:
        async with self._connecting:
            if not self._transports:
                self._transports.append(await self._connect(self.limiter))
            return self._transports[0]

    async def _request(self, transport: Sender, call: _Call, samples: list[int]) -> set[int]:
        """One request for consecutive samples; returns those that it brought into the cache.

        The request is a task of its own: if a task beside this one fails, this one is cancelled, and an answer that is
        paid for would be lost.
        """
        limiter, flights = self.limiter, self._flights
        await limiter.acquire(len(samples))
        try:
            shutdown.end_if_asked()
            worst = call.worst_case(len(samples), tokens=self._budget.counts_tokens)
            while not self._budget.reserve(worst, self.usage.prices):
                await asyncio.sleep(_POLL_SECONDS)
        except BaseException:
            limiter.release(len(samples))
            raise

        def landed(flight: asyncio.Task[set[int]]) -> None:
            del flights[flight]
            limiter.release(len(samples))
            if not flight.cancelled():
                flight.exception()  # asyncio complains of an exception that nobody retrieves

        flight = asyncio.create_task(self._send(transport, call, samples, worst))
        flights[flight] = call.claim
        flight.add_done_callback(landed)
        return await asyncio.shield(flight)

    async def _send(self, transport: Sender, call: _Call, samples: list[int], worst: Spent) -> set[int]:
        """Send a request and store its answers.

        An endpoint that gives fewer than it was asked for is not asked for several again.
        """
        body = dict(call.request) | {"seed": call.first_seed + samples[0]}
        body |= {"n": len(samples)} if len(samples) > 1 else {}
        cost = Spent()
        try:
            reply = await transport.send(body)
            cost = reply.spent
        finally:
            self._budget.settle(worst, cost, self.usage.prices)
            self.usage.retries, self.usage.waited = self.limiter.retries, self.limiter.waited
        self.usage.count_request(cost, reply.seconds)
        completions = dict(zip(samples, reply.completions, strict=False))
        answers = {sample: _stored_fields(completion) for sample, completion in completions.items()}
        self._cache.write(call.key, call.request, answers, cost, reply.seconds)
        if len(completions) < len(samples):
            transport.dialect.refused.add("n")
        return set(completions)

    def _count_cached(self, completions: Sequence[Completion]) -> None:
        usage = self.usage
        usage.cached += len(completions)
        usage.cached_prompt_tokens += max((completion.prompt_tokens for completion in completions), default=0)
        usage.cached_completion_tokens += sum(completion.completion_tokens for completion in completions)


def _count_read(request: Mapping[str, Any]) -> int:
    return count_message_tokens([Message(**message) for message in request["messages"]])


def _first_seed(system: str) -> int:
    """The seed of a system's sample 0: a server that samples by the seed must draw anew for each system."""
    return int(hashlib.sha256(system.encode()).hexdigest()[:8], 16) % _SYSTEM_SEEDS if system else 0


def _consecutive(samples: Sequence[int]) -> list[list[int]]:
    """Runs of numbers that follow one another: one request can ask for a run, its seeds being first, first + 1, …"""
    runs: list[list[int]] = []
    for sample in samples:
        if runs and sample == runs[-1][-1] + 1:
            runs[-1].append(sample)
        else:
            runs.append([sample])
    return runs


def _stored_fields(completion: Completion) -> dict[str, Any]:
    fields = asdict(completion)
    del fields["cached"]
    return fields


def check_model(settings: Settings, name: str | None = None) -> Model:
    """A model (None: the default) that can be used with these settings; nothing is sent over the network.

    Raises SettingError as `get_model` and `Model.check` do, and where money has a ceiling and the model no price.
    """
    model = get_model(settings, name)
    check_budget(settings, model)
    model.check()
    return model


@dataclass(frozen=True)
class ClientWorkspace(Workspace):
    """A workspace whose stages use another client than that of the settings, such as one that only rehearses."""

    make_client: Callable[[Model, CallCache], LlmClient]


@contextlib.asynccontextmanager
async def open_client(workspace: Workspace, model: str | None = None) -> AsyncIterator[LlmClient]:
    """The client of a model, by its name (None: the default model), with the cache of the data root.

    Raises SettingError as `check_model` does; an endpoint's faults show with the first call.
    """
    chosen = check_model(workspace.settings, model)
    with contextlib.closing(_cache_of(workspace)) as cache:
        if isinstance(workspace, ClientWorkspace):
            client = workspace.make_client(chosen, cache)
        else:
            client = _make_client(chosen, cache, workspace.settings)
        try:
            yield client
        except BaseException as error:
            if not isinstance(error, Exception | shutdown.Interrupted):
                client.abandon()
            raise
        finally:
            await client.aclose()


def _make_client(model: Model, cache: CallCache, settings: Settings) -> LlmClient:
    async def connect(limiter: Limiter) -> Transport:
        url = model.url
        if url is None:
            url = await asyncio.to_thread(embedded_endpoint, model, cache.folder)
        return Transport(model, url, limiter)

    return LlmClient(model, connect, cache, run_budget(settings, cache.folder))


def _cache_of(workspace: Workspace) -> CallCache:
    folder = workspace.cache("llm")
    shared = workspace.settings.on_cluster or mount_of(folder)[1] in NETWORK
    return CallCache(folder / "calls.sqlite", shared=shared)
