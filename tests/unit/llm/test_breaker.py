"""The circuit breaker, on a clock that jumps: who may ask, and when everybody is told that it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from pipeline.errors import TransientFailure
from pipeline.llm.breaker import FIRST_PATIENCE, PATIENCE, THRESHOLD, Breaker, EndpointDown
from pipeline.llm.loop import run, without_waiting


def on_a_jumping_clock(scenario: Callable[[Breaker], Coroutine[Any, Any, Any]]) -> Any:
    async def inside() -> Any:
        return await scenario(Breaker("http://llm"))

    with without_waiting():
        return run(inside())


def now() -> float:
    return asyncio.get_running_loop().time()


class Endpoint:
    """Asked through a breaker; answers from a moment on, and remembers when it was asked."""

    def __init__(self, breaker: Breaker, back: float) -> None:
        self.breaker, self.back = breaker, back
        self.asked: list[float] = []

    async def ask(self) -> float:
        """When the request was answered; raises EndpointDown."""
        while True:
            probe = await self.breaker.admit()
            self.asked.append(now())
            await asyncio.sleep(0.01)
            if now() >= self.back:
                self.breaker.succeeded()
                return now()
            self.breaker.failed(TransientFailure("connection refused"), probe=probe)


def test_a_few_failures_open_nothing() -> None:
    async def scenario(breaker: Breaker) -> bool:
        for _ in range(THRESHOLD - 1):
            breaker.failed(TransientFailure("busy"), probe=False)
        breaker.succeeded()
        breaker.failed(TransientFailure("busy"), probe=False)
        return breaker.open

    assert not on_a_jumping_clock(scenario)


def test_an_endpoint_that_comes_back_is_asked_again_by_one_at_a_time() -> None:
    async def scenario(breaker: Breaker) -> tuple[list[float], list[float]]:
        breaker.succeeded()
        endpoint = Endpoint(breaker, back=20.0)
        done = await asyncio.gather(*(endpoint.ask() for _ in range(50)))
        return endpoint.asked, done

    asked, done = on_a_jumping_clock(scenario)
    assert len(done) == 50
    assert max(done) < 40
    probes = [moment for moment in asked if 0.1 < moment < 20.0]
    assert 2 <= len(probes) <= 6
    assert len(set(probes)) == len(probes)


def test_after_patience_every_caller_is_told_the_same_at_once() -> None:
    async def scenario(breaker: Breaker) -> tuple[list[Any], float, int]:
        breaker.succeeded()
        endpoint = Endpoint(breaker, back=1e9)
        ended = await asyncio.gather(*(endpoint.ask() for _ in range(30)), return_exceptions=True)
        return ended, now(), len(endpoint.asked)

    ended, moment, asked = on_a_jumping_clock(scenario)
    assert {type(error) for error in ended} == {EndpointDown}
    assert len({str(error) for error in ended}) == 1
    assert "http://llm is down since" in str(ended[0])
    assert "connection refused" in str(ended[0])
    assert PATIENCE <= moment <= PATIENCE + 1
    assert asked <= 30 + THRESHOLD + 8  # once each, while it was not yet known, and the probes


def test_an_endpoint_that_never_answered_is_given_up_sooner() -> None:
    async def scenario(breaker: Breaker) -> float:
        with pytest.raises(EndpointDown):
            await Endpoint(breaker, back=1e9).ask()
        return now()

    assert on_a_jumping_clock(scenario) <= FIRST_PATIENCE + 1


def test_an_endpoint_that_says_it_is_not_ready_yet_is_waited_for() -> None:
    """A server that loads its model answers 503 meanwhile."""

    async def scenario(breaker: Breaker) -> float:
        while True:
            probe = await breaker.admit()
            await asyncio.sleep(0.01)
            if now() > 60:
                breaker.succeeded()
                return now()
            breaker.failed(TransientFailure("loading model"), probe=probe, reached=True)

    assert on_a_jumping_clock(scenario) <= 60 + 31


def test_a_probe_that_is_cancelled_leaves_the_place_to_another() -> None:
    async def scenario(breaker: Breaker) -> bool:
        breaker.succeeded()
        for _ in range(THRESHOLD):
            breaker.failed(TransientFailure("refused"), probe=False)
        assert await breaker.admit()
        breaker.abandoned(probe=True)
        return await breaker.admit()

    assert on_a_jumping_clock(scenario)
