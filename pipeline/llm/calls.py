"""Pay for calls of one model once, by cache, budget and a limit of completions in flight."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline.engine import shutdown
from pipeline.llm.budget import Budget, Limits
from pipeline.llm.cache import CallCache
from pipeline.llm.completion import THINKING_TOKENS, EndpointReply
from pipeline.llm.context import count_message_tokens
from pipeline.llm.messages import Completion, LlmAnswerError, Message, Spent, Usage, spent
from pipeline.llm.models import Model
from pipeline.llm.transport import Dialect, PaidInVain, UnusableAnswer

# Another process's answer is looked up this often, then less and less: a call takes seconds, and a
# thousand tasks that look 20 times a second would take a core.
_POLL_SECONDS, _LONGEST_POLL = 0.05, 1.0
# The longest answer without a limit of its own: twice the room that prompts leave for it.
_UNLIMITED = 4096

item_failures: ContextVar[list[LlmAnswerError]] = ContextVar("item_failures")
"""The failures of the item that a task works on, in a stage's loop."""


class Sender(Protocol):
    """The interface of a transport; that of a rehearsal invents its answers.

    down: whether the endpoint answers no request any more.
    """

    dialect: Dialect

    @property
    def down(self) -> bool: ...
    async def send(self, body: Mapping[str, Any], most: int) -> EndpointReply: ...
    def stop(self) -> None: ...
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Call:
    """A request without its sample number, and the key of its answers in the cache."""

    request: Mapping[str, Any]
    key: str
    first_seed: int

    def longest(self, context: int, thinking: int) -> int:
        """Tokens that one answer may take with its thoughts: no request goes without a limit, and
        none is part of the key but the caller's own.
        """
        room = context - count_read(self.request)
        limit = self.request.get("max_tokens") or max(min(_UNLIMITED, room), 1)
        return max(limit, min(limit + thinking, room))


class PaidCalls:
    """The calls of one model, each paid for once. Belongs to one event loop.

    connect: makes the transport; called for the first request that the cache cannot answer, so that
    a run whose answers are all stored starts no server. budget: limits what requests may cost; none
    without it. usage: what was done in this run. keeps_failures: whether failures that were asked
    for often enough are met without asking again.
    """

    def __init__(
        self,
        model: Model,
        connect: Callable[[], Awaitable[Sender]],
        cache: CallCache,
        budget: Budget | None = None,
        *,
        keeps_failures: bool = False,
    ) -> None:
        self.model, self.usage = model, Usage(prices=model.prices)
        self._connect, self._cache, self._budget = connect, cache, budget or Budget(Limits())
        self._slots, self._acquiring = asyncio.Semaphore(model.concurrency), asyncio.Lock()
        self._keeps_failures, self._thinking = keeps_failures, model.thinking or 0
        self._failures: dict[tuple[str, int], LlmAnswerError] = {}
        self._transport: Sender | None = None
        self._connecting = asyncio.Lock()
        # By claim: the key of the call, and the first of the samples that are paid for.
        self._payments: dict[tuple[str, int], asyncio.Task[set[int]]] = {}

    def abandon(self) -> None:
        """Cancel the requests in flight: a user who interrupts a run does not wait for them."""
        for payment in self._payments.values():
            payment.cancel()

    async def aclose(self) -> None:
        """Close the transport. Answers in flight are paid for: they are awaited and stored, but
        nothing is retried, and an endpoint that is down is not waited for.
        """
        transport = self._transport
        if transport is not None:
            transport.stop()
        if transport is None or transport.down:
            self.abandon()
        if self._payments:
            await asyncio.wait(list(self._payments.values()))
        if transport is not None:
            await transport.aclose()

    @property
    def failures(self) -> Counter[str]:
        """How many samples failed in this run, by kind."""
        return Counter(error.kind for error in self._failures.values())

    def fail(self, call: Call, sample: int, error: LlmAnswerError) -> None:
        """Record the failure of a sample, which is not asked for again in this run."""
        self._failures[call.key, sample] = error
        item_failures.get([]).append(error)
        self._cache.write_failure(call.key, sample, error, self.model.table_digest)

    def _check_failures(self, call: Call, missing: Sequence[int]) -> None:
        """Raise LlmAnswerError where one of these samples failed, and is not asked for now."""
        for sample in missing:
            if (call.key, sample) not in self._failures and self._keeps_failures:
                kept = self._cache.kept_failure(call.key, sample, self.model.table_digest)
                if kept is not None:
                    self._failures[call.key, sample] = kept
            failure = self._failures.get((call.key, sample))
            if failure is not None:
                item_failures.get([]).append(failure)
                raise failure

    async def obtain(self, call: Call, samples: range) -> list[Completion]:
        """Completions of these samples: cached, paid by another process, or paid now.

        Raises LlmAnswerError where one of them is no answer.
        """
        self.usage.calls += len(samples)
        paid: set[int] = set()
        pause = _POLL_SECONDS
        while True:
            stored = self._cache.read(call.key, samples)
            missing = [sample for sample in samples if sample not in stored]
            if not missing:
                break
            self._check_failures(call, missing)
            claim = (call.key, missing[0])
            if claim in self._payments:
                await asyncio.wait([self._payments[claim]])
            elif self._cache.claim(*claim):
                paid |= await self._start_payment(call, claim, missing)
            else:
                await asyncio.sleep(pause)
                pause = min(1.5 * pause, _LONGEST_POLL)
        # The text is that of the cache also if it was paid for now, so that all that asked at once
        # agree.
        completions = [
            Completion(**stored[sample], cached=sample not in paid) for sample in samples
        ]
        self.usage.count_cached([completion for completion in completions if completion.cached])
        return completions

    async def _start_payment(
        self, call: Call, claim: tuple[str, int], missing: list[int]
    ) -> set[int]:
        """Pay for samples under a claim of this process; returns those that are in the cache then.

        The payment is a task of its own: if a task beside this one fails, this one is cancelled,
        and answers that are paid for would be lost.
        """

        def settle(payment: asyncio.Task[set[int]]) -> None:
            del self._payments[claim]
            self._cache.release(*claim)
            if not payment.cancelled():
                payment.exception()  # asyncio complains of an exception that nobody retrieves

        payment = asyncio.create_task(self._pay(call, missing))
        self._payments[claim] = payment
        payment.add_done_callback(settle)
        return await asyncio.shield(payment)

    async def _pay(self, call: Call, missing: list[int]) -> set[int]:
        # Between the reading and the claim another process may have stored its answers and given
        # the claim up.
        if self._cache.read(call.key, missing):
            return set()
        async with self._connecting:
            if self._transport is None:
                self._transport = await self._connect()
        transport = self._transport
        most = 1 if "n" in transport.dialect.refused else self.model.concurrency
        parts = [
            run[i : i + most] for run in _consecutive(missing) for i in range(0, len(run), most)
        ]
        requests = [self._send(transport, call, part) for part in parts]
        paid: set[int] = set()
        # A request that fails cancels no other one.
        for answered in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(answered, BaseException):
                raise answered
            paid |= answered
        return paid

    async def _send(self, transport: Sender, call: Call, samples: list[int]) -> set[int]:
        """Send a request for consecutive samples once so many completions may be in flight; store
        its answers, and record its failures. Returns the samples with an answer.

        An endpoint that gives fewer than it was asked for is not asked for several again.
        """
        async with self._acquiring:  # first come, first served
            for _ in samples:
                await self._slots.acquire()
        try:
            shutdown.end_if_asked()
            reply = await self._reply(transport, call, samples)
        finally:
            for _ in samples:
                self._slots.release()
        answers = {}
        for sample, completion in zip(samples, reply.completions, strict=False):
            if completion.failure is not None:
                cost = spent([completion])
                error = LlmAnswerError(completion.failure, completion.detail, cost)
                self.fail(call, sample, error)
                continue
            answers[sample] = {
                "text": completion.text,
                "prompt_tokens": completion.prompt_tokens,
                "completion_tokens": completion.completion_tokens,
                "finish_reason": completion.finish_reason,
            }
        self._cache.write(call.key, call.request, answers, reply.spent, reply.seconds)
        if len(reply.completions) < len(samples):
            transport.dialect.refused.add("n")
        return set(answers)

    async def _reply(self, transport: Sender, call: Call, samples: list[int]) -> EndpointReply:
        """The reply to a request, within the budget.

        A reply that the endpoint broke off is asked for again, and so is one whose limit its
        thoughts took, with an allowance for these.
        """
        from pipeline.llm.endpoint_client import ATTEMPTS

        body = {**call.request, "seed": call.first_seed + samples[0]}
        if len(samples) > 1:
            body["n"] = len(samples)
        context = self.model.context + (self.model.thinking or 0)
        for attempt in range(1, ATTEMPTS + 1):
            most = call.longest(context, self._thinking)
            try:
                reply = await self._paid_reply(transport, body, most)
            except UnusableAnswer:
                if attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(0.25 * 2**attempt)
                continue
            kinds = {completion.failure for completion in reply.completions}
            if "cut" in kinds and reply.thinks and self.model.thinking is None:
                self._thinking = THINKING_TOKENS
            elif "error" in kinds:
                await asyncio.sleep(0.25 * 2**attempt)
                continue
            if most == call.longest(context, self._thinking):
                break
        return reply

    async def _paid_reply(
        self, transport: Sender, body: Mapping[str, Any], most: int
    ) -> EndpointReply:
        """The reply to one request, counted in the budget; at its worst where it cannot be used or
        is not whole in time, as it may have been paid for.
        """
        read, count = count_read(body), body.get("n", 1)
        worst = Spent(count)
        if self._budget.counts_tokens:
            worst = Spent(count, read, count * most)
        while not self._budget.reserve(worst, self.usage.prices):
            await asyncio.sleep(_POLL_SECONDS)
        cost = Spent()
        try:
            reply = await transport.send(body, most)
            paid = reply.spent
            # Some endpoints report no tokens, or too few; our own count is one from above.
            cost = Spent(
                paid.calls,
                max(paid.prompt_tokens, read),
                max(paid.completion_tokens, reply.written),
            )
        except PaidInVain:
            cost = worst
            raise
        finally:
            self._budget.settle(worst, cost, self.usage.prices)
        self.usage.count_request(paid, reply.seconds)
        self.usage.retries += reply.retries
        self.usage.waited += reply.waited
        return reply


def count_read(request: Mapping[str, Any]) -> int:
    """Tokens of a request's messages, estimated from above."""
    return count_message_tokens([Message(**message) for message in request["messages"]])


def _consecutive(samples: Sequence[int]) -> list[list[int]]:
    """Runs of consecutive numbers, since one request can ask for a run of seeds."""
    runs: list[list[int]] = []
    for sample in samples:
        if runs and sample == runs[-1][-1] + 1:
            runs[-1].append(sample)
        else:
            runs.append([sample])
    return runs
