"""The one client of language models: cached, within a budget, over any OpenAI-compatible endpoint.

A call that is in the cache costs no request; samples of one prompt are one request (`n`), so that a
server reads the prompt once. An answer to a request that was sent is stored also if the run fails.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from pipeline.engine import shutdown
from pipeline.engine.stage import Workspace
from pipeline.llm.budget import check_budget, run_budget
from pipeline.llm.bundled import bundled_endpoint
from pipeline.llm.cache import CallCache, call_key
from pipeline.llm.calls import Call, PaidCalls
from pipeline.llm.messages import Completion, LlmAnswerError, Message, Spent, Usage, spent
from pipeline.llm.models import Model, get_model
from pipeline.llm.prompts import as_data
from pipeline.llm.structured import copyable, parse_answer, repair, response_format
from pipeline.llm.transport import Transport
from pipeline.settings import Settings
from pipeline.storage.json_reader import short
from pipeline.storage.mounts import NETWORK, mount_of
from pipeline.text import text_digest

Form = TypeVar("Form", bound=BaseModel)
# How much of an unreadable answer its repair shows, and the tokens that a prompt must leave free
# for that.
REPAIRED_CHARS = 1200
REPAIR_TOKENS = 512
# Sample numbers of one repeat: more than any search takes of one prompt, so that no two repeats
# share a sample; and few enough that the seeds of a thousand repeats of any system are within 31
# bits, which is all that some endpoints take.
REPEAT_SAMPLES = 1_000_000
_SYSTEM_SEEDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StructuredAnswer(Generic[Form]):
    """A structured answer and what it cost: one call, or two if it was repaired."""

    value: Form
    spent: Spent


class LlmClient:
    """Calls one model. Belongs to one event loop.

    system, repeat: whose samples these are. Equal prompts of two systems are two draws. Each repeat
    (from 0) is cached as the first is; at temperature 0 it asks again for the same.
    """

    def __init__(self, calls: PaidCalls, system: str = "", repeat: int = 0) -> None:
        self.calls, self._system, self._first_sample = calls, system, repeat * REPEAT_SAMPLES

    @property
    def model(self) -> Model:
        """The model that is called."""
        return self.calls.model

    @property
    def usage(self) -> Usage:
        """The usage of this run, for all systems and repeats."""
        return self.calls.usage

    def view(self, system: str = "", repeat: int = 0) -> LlmClient:
        """A client of the same calls for the samples of a system and a repeat."""
        return LlmClient(self.calls, system, repeat)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        temperature: float,
        max_tokens: int | None = None,
    ) -> Completion:
        """One completion: the cached text for equal messages and parameters."""
        (completion,) = await self.samples(
            messages, 1, temperature=temperature, max_tokens=max_tokens
        )
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
        """`count` completions of one prompt, numbered from `first`, in order.

        max_tokens: longest completion; None for the model's own limit. form: schema to which the
        endpoint constrains the completions if it can; they are not parsed here (see `answer`).
        Raises LlmAnswerError where one is no answer, else as `Transport.send` does.
        """
        call = self._call(
            messages, temperature, max_tokens, None if form is None else response_format(form)
        )
        start = self._first_sample + first
        return await self.calls.obtain(call, range(start, start + count))

    async def answer(
        self,
        messages: Sequence[Message],
        schema: type[Form],
        *,
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> StructuredAnswer[Form]:
        """An answer in the form of `schema`: constrained if possible, parsed, repaired once. The
        messages are sent `copyable`.

        Raises LlmAnswerError if the repaired answer cannot be read either, or is none.
        """
        prompt = [Message(message.role, copyable(message.content)) for message in messages]

        async def ask(messages: Sequence[Message]) -> Completion:
            (completion,) = await self.samples(
                messages, 1, temperature=temperature, max_tokens=max_tokens, form=schema
            )
            return completion

        first = await ask(prompt)
        try:
            return StructuredAnswer(parse_answer(first.text, schema), spent([first]))
        except ValueError as error:
            unreadable = Message("assistant", as_data(first.text[:REPAIRED_CHARS]))
            request = Message("user", repair(error, schema))
        repaired = await ask([*prompt, unreadable, request])
        cost = spent([first, repaired])
        try:
            return StructuredAnswer(parse_answer(repaired.text, schema), cost)
        except ValueError as error:
            reason = f"no {schema.__name__} could be read, repair included: {short(error)}"
            failure = LlmAnswerError("unreadable", reason, cost)
        call = self._call(prompt, temperature, max_tokens, response_format(schema))
        self.calls.fail(call, self._first_sample, failure)
        raise failure

    def _call(
        self,
        messages: Sequence[Message],
        temperature: float,
        max_tokens: int | None,
        response_format: Mapping[str, Any] | None,
    ) -> Call:
        max_tokens = max_tokens or self.model.max_tokens
        request: dict[str, Any] = {
            "model": self.model.requested,
            "messages": [asdict(message) for message in messages],
            "temperature": temperature,
        }
        if max_tokens is not None:
            request["max_tokens"] = max_tokens
        if response_format is not None:
            request["response_format"] = response_format
        basis = request | {"system": self._system} if self._system else request
        # A seed of the system's own, so that a server draws anew for each.
        first_seed = 0
        if self._system:
            digest = text_digest(self._system)
            first_seed = int(digest[:8], 16) % _SYSTEM_SEEDS
        return Call(request, call_key(basis), first_seed)


def check_model(settings: Settings, name: str | None = None) -> Model:
    """A model (None: the default) that these settings can use; nothing is sent.

    Raises SettingError as `get_model` and `Model.check` do, and where money has a ceiling and the
    model no price.
    """
    model = get_model(settings, name)
    check_budget(settings, model)
    model.check()
    return model


@dataclass(frozen=True)
class ClientWorkspace(Workspace):
    """A workspace whose stages use another client, such as one that only rehearses."""

    make_client: Callable[[Model, CallCache], LlmClient]


@contextlib.asynccontextmanager
async def open_client(
    workspace: Workspace, model: str | None = None, *, keeps_failures: bool = False
) -> AsyncIterator[LlmClient]:
    """The client of a model by name (None: the default), with the data root's cache.

    keeps_failures: as for PaidCalls; a stage keeps them, and who asks a question asks again.

    Raises SettingError as `check_model` does; with a ClientWorkspace, whose client may send
    nothing, only as `get_model` does. An endpoint's faults show with the first call.
    """
    with contextlib.closing(open_cache(workspace)) as cache:
        if isinstance(workspace, ClientWorkspace):
            client = workspace.make_client(get_model(workspace.settings, model), cache)
        else:
            language_model = check_model(workspace.settings, model)

            async def connect() -> Transport:
                url = language_model.url
                if url is None:
                    url = await asyncio.to_thread(bundled_endpoint, language_model, cache.folder)
                return Transport(language_model, url)

            calls = PaidCalls(
                language_model,
                connect,
                cache,
                run_budget(workspace.settings, cache.folder),
                keeps_failures=keeps_failures,
            )
            client = LlmClient(calls)
        try:
            yield client
        except BaseException as error:
            if not isinstance(error, Exception | shutdown.Interrupted):
                client.calls.abandon()
            raise
        finally:
            await client.calls.aclose()


def open_cache(workspace: Workspace) -> CallCache:
    """The cache of the data root's calls. Raises as CallCache does."""
    folder = workspace.cache("llm")
    shared = workspace.settings.on_cluster or mount_of(folder)[1] in NETWORK
    return CallCache(folder / "calls.sqlite", shared=shared)
