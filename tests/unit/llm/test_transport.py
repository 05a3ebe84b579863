"""How long an endpoint is waited for that takes no more requests for now, on a clock that jumps; no network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.errors import TransientFailure
from pipeline.llm.loop import run, without_waiting
from pipeline.llm.messages import Completion
from pipeline.llm.transport import ATTEMPTS, Endpoint, Reply, Transport, _Refused

MINUTE = 60.0


class Limited(Transport):
    """Refuses for its limit until a moment, and names no time to come back at. Others are answered until `fed`."""

    def __init__(self, until: float, fed: float = 0.0) -> None:
        super().__init__(Endpoint("http://127.0.0.1:9/v1", "m", None, 1.0))
        self.until, self.fed = until, fed
        self.asked: list[float] = []

    async def _try(self, body: Mapping[str, Any], *, probe: bool) -> Reply:
        now = asyncio.get_running_loop().time()
        self.asked.append(now)
        if now < self.until:
            self._answered = min(now, self.fed)
            raise _Refused(TransientFailure("429"), limited=True)
        return Reply([Completion("text", 1, 1, False, "stop")], 0.1)


def send(until: float, fed: float = 0.0) -> list[float]:
    """When one request was tried, on a clock that begins at 0."""

    async def inside() -> list[float]:
        endpoint = Limited(until, fed)
        try:
            await endpoint.send({"messages": []})
        finally:
            await endpoint.aclose()
        return endpoint.asked

    with without_waiting():
        return run(inside())


def test_a_limit_by_the_minute_is_outlasted_in_a_few_requests() -> None:
    asked = send(until=MINUTE)
    assert MINUTE <= asked[-1] <= 1.5 * MINUTE
    assert ATTEMPTS < len(asked) <= 12


def test_an_endpoint_that_answers_nobody_is_given_up_after_two_minutes() -> None:
    with pytest.raises(TransientFailure, match="429"):
        send(until=3 * MINUTE)


def test_an_endpoint_that_answers_others_is_waited_for() -> None:
    assert send(until=6 * MINUTE, fed=5 * MINUTE)[-1] >= 6 * MINUTE
