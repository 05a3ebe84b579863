"""The limiter on a clock that jumps: when requests are sent, sent again, and given up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from email.utils import formatdate
from typing import Any

import pytest

from pipeline.errors import TransientFailure
from pipeline.llm.limiter import (
    ATTEMPTS,
    FIRST_PATIENCE,
    LONGEST_BACK_OFF,
    PATIENCE,
    EndpointDown,
    Limiter,
    NoAnswer,
    read_duration,
    retry_after,
)
from pipeline.llm.loop import run, side_by_side, without_waiting
from pipeline.llm.transport import count_request_tokens

MINUTE = 60.0
Scenario = Callable[[Limiter], Coroutine[Any, Any, Any]]


def on_a_jumping_clock(scenario: Scenario, concurrency: int = 100) -> Any:
    async def inside() -> Any:
        return await scenario(Limiter(concurrency, "http://llm"))

    with without_waiting():
        return run(inside())


def now() -> float:
    return asyncio.get_running_loop().time()


def headers(unit: str, left: int, reset: str, limit: int | None = None) -> Mapping[str, str]:
    fields = {f"x-ratelimit-remaining-{unit}": str(left), f"x-ratelimit-reset-{unit}": reset}
    return fields | ({f"x-ratelimit-limit-{unit}": str(limit)} if limit else {})


class Endpoint:
    """Fails in a given way until a time; remembers when it was asked."""

    def __init__(self, limiter: Limiter, until: float, failure: Callable[[], NoAnswer]) -> None:
        self.limiter, self.until, self.failure = limiter, until, failure
        self.asked: list[float] = []

    async def ask(self) -> float:
        """When the request was answered."""

        async def send() -> float:
            self.asked.append(now())
            await asyncio.sleep(0.01)
            if now() < self.until:
                raise self.failure()
            self.limiter.note_response({}, 1, 200)
            return now()

        return await self.limiter.run(send)


def refused_connection() -> NoAnswer:
    return NoAnswer(TransientFailure("connection refused"))


def server_error() -> NoAnswer:
    return NoAnswer(TransientFailure("answers 500"))


def rate_refusal() -> NoAnswer:
    return NoAnswer(TransientFailure("answers 429"), limited=True)


def test_completions_in_flight_never_pass_the_limit_and_all_are_freed() -> None:
    held: list[int] = []
    most = []

    async def scenario(limiter: Limiter) -> None:
        async def work(count: int) -> None:
            await limiter.acquire(count)
            held.append(count)
            most.append(sum(held))
            await asyncio.sleep(0.001)
            held.remove(count)
            limiter.release(count)

        tasks = [asyncio.create_task(work(count)) for count in (1, 2, 3, 3, 1, 1, 2)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.wait_for(limiter.acquire(3), 1)

    on_a_jumping_clock(scenario, concurrency=3)
    assert max(most) == 3


class TestRates:
    @staticmethod
    async def send_times(limiter: Limiter, first: Mapping[str, str], count: int, tokens: int = 1) -> list[float]:
        """When each of some requests is sent, after a first one was answered with these headers."""
        async with limiter.pace(tokens):
            limiter.note_response(first, tokens, 200)

        async def send() -> float:
            async with limiter.pace(tokens):
                return now()

        return await side_by_side(send() for _ in range(count))

    @pytest.mark.parametrize(
        ("fields", "tokens", "times"),
        [
            ({}, 1, [0, 0, 0, 0]),
            (headers("requests", 2, "6s"), 1, [0, 0, 6, 6]),
            # 60 a minute, all spent: one comes back each second.
            (headers("requests", 0, "1m0s", 60), 1, [1, 2, 3, 4]),
            # 6,000 a minute, of which 1,000 are left: two requests of 500, then one each 5 s.
            (headers("tokens", 1000, "50s", 6000), 500, [0, 0, 5, 10]),
            ({"x-ratelimit-remaining-requests": "many", "x-ratelimit-reset-requests": "1s"}, 1, [0, 0, 0, 0]),
        ],
    )
    def test_requests_are_sent_as_the_headers_allow(
        self, fields: Mapping[str, str], tokens: int, times: list[float]
    ) -> None:
        assert on_a_jumping_clock(lambda limiter: self.send_times(limiter, fields, 4, tokens)) == pytest.approx(times)

    def test_requests_in_flight_count_as_sent(self) -> None:
        async def scenario(limiter: Limiter) -> float:
            async with limiter.pace(1), limiter.pace(1), limiter.pace(1), limiter.pace(1):
                limiter.note_response(headers("requests", 3, "9s"), 1, 200)
                async with limiter.pace(1):
                    return now()

        assert on_a_jumping_clock(scenario) == pytest.approx(9)

    def test_a_refusal_holds_all_requests_for_as_long_as_it_asks(self) -> None:
        async def scenario(limiter: Limiter) -> float:
            refused = Endpoint(limiter, 4.0, lambda: NoAnswer(TransientFailure("429"), 4.0, limited=True))
            task = asyncio.create_task(refused.ask())
            await asyncio.sleep(0.1)
            async with limiter.pace(1):
                sent = now()
            await task
            return sent

        assert on_a_jumping_clock(scenario) == pytest.approx(4, abs=0.1)


class TestRefusalsForTheRate:
    @staticmethod
    def ask(until: float, others_until: float = 0.0) -> list[float]:
        """When a request was sent that is refused until a time, while others are answered until another time."""

        async def scenario(limiter: Limiter) -> list[float]:
            async def others() -> None:
                while now() < others_until:
                    await Endpoint(limiter, 0.0, rate_refusal).ask()
                    await asyncio.sleep(5)

            endpoint = Endpoint(limiter, until, rate_refusal)
            await side_by_side([endpoint.ask(), others()])
            return endpoint.asked

        asked: list[float] = on_a_jumping_clock(scenario)
        return asked

    def test_a_limit_per_minute_is_outlasted_in_a_few_requests(self) -> None:
        asked = self.ask(until=MINUTE)
        assert MINUTE <= asked[-1] <= 1.5 * MINUTE + 1
        assert ATTEMPTS < len(asked) <= 12

    def test_an_endpoint_that_answers_nobody_is_given_up_after_two_minutes(self) -> None:
        with pytest.raises(TransientFailure, match="429"):
            self.ask(until=4 * MINUTE)

    def test_an_endpoint_that_answers_others_is_waited_for(self) -> None:
        assert self.ask(until=6 * MINUTE, others_until=5 * MINUTE)[-1] >= 6 * MINUTE


class TestOutages:
    def test_an_endpoint_that_comes_back_answers_every_request(self) -> None:
        async def scenario(limiter: Limiter) -> tuple[list[float], list[float]]:
            limiter.note_response({}, 1, 200)
            endpoint = Endpoint(limiter, 20.0, refused_connection)
            done = await asyncio.gather(*(endpoint.ask() for _ in range(50)))
            return endpoint.asked, done

        asked, done = on_a_jumping_clock(scenario)
        assert len(done) == 50
        assert max(done) < 20 + LONGEST_BACK_OFF
        assert len(asked) <= 50 * 8

    def test_after_patience_every_call_ends_with_what_is_wrong(self) -> None:
        async def scenario(limiter: Limiter) -> tuple[list[Any], float, int]:
            limiter.note_response({}, 1, 200)
            endpoint = Endpoint(limiter, 1e9, refused_connection)
            ended = await asyncio.gather(*(endpoint.ask() for _ in range(30)), return_exceptions=True)
            return ended, now(), len(endpoint.asked)

        ended, moment, asked = on_a_jumping_clock(scenario)
        assert {type(error) for error in ended} == {EndpointDown}
        assert "http://llm is down since" in str(ended[0])
        assert "connection refused" in str(ended[0])
        assert PATIENCE <= moment <= PATIENCE + LONGEST_BACK_OFF + 1
        assert asked <= 30 * 12

    def test_an_endpoint_that_never_answered_is_given_up_sooner(self) -> None:
        async def scenario(limiter: Limiter) -> float:
            with pytest.raises(EndpointDown):
                await asyncio.gather(*(Endpoint(limiter, 1e9, refused_connection).ask() for _ in range(5)))
            return now()

        assert on_a_jumping_clock(scenario) <= FIRST_PATIENCE + 8

    def test_a_server_that_loads_its_model_is_waited_for(self) -> None:
        """It answers 503 meanwhile, and no single request uses up its attempts."""

        async def scenario(limiter: Limiter) -> list[float]:
            limiter.note_response({}, 1, 503)
            endpoint = Endpoint(limiter, MINUTE, server_error)
            return await asyncio.gather(*(endpoint.ask() for _ in range(8)))

        assert max(on_a_jumping_clock(scenario)) <= MINUTE + 31

    def test_a_request_that_alone_fails_is_given_up(self) -> None:
        async def scenario(limiter: Limiter) -> int:
            endpoint = Endpoint(limiter, 1e9, refused_connection)

            async def others() -> None:
                while len(endpoint.asked) < ATTEMPTS:
                    await Endpoint(limiter, 0.0, refused_connection).ask()
                    await asyncio.sleep(0.1)

            with pytest.raises(TransientFailure, match=r"^connection refused"):
                await side_by_side([endpoint.ask(), others()])
            return len(endpoint.asked)

        assert on_a_jumping_clock(scenario) == ATTEMPTS

    def test_nothing_is_tried_again_once_it_is_stopped(self) -> None:
        async def scenario(limiter: Limiter) -> int:
            endpoint = Endpoint(limiter, 1e9, server_error)
            limiter.stop()
            with pytest.raises(TransientFailure):
                await endpoint.ask()
            return len(endpoint.asked)

        assert on_a_jumping_clock(scenario) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1), ("6m0s", 360), ("250ms", 0.25), ("1h2m3.5s", 3723.5), ("12ms", 0.012), ("20", 20), ("0.5", 0.5),
        ("1d", 86400), ("", None), (None, None), ("soon", None), ("1s and", None), ("-1s", None), ("nan", None),
        ("inf", None),
    ],
)  # fmt: skip
def test_a_duration_is_read_in_every_form_that_gateways_send(text: str | None, seconds: float | None) -> None:
    assert read_duration(text) == (pytest.approx(seconds) if seconds is not None else None)


def test_a_time_of_day_in_place_of_a_duration_is_read() -> None:
    assert read_duration(str(int(time.time()) + 60)) == pytest.approx(60, abs=2)
    assert read_duration("1000000001") == 0


def test_retry_after_is_read_as_seconds_and_as_a_date() -> None:
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5
    assert retry_after({"retry-after": formatdate(time.time() + 30, usegmt=True)}) == pytest.approx(30, abs=2)
    assert retry_after({"retry-after": formatdate(time.time() - 30, usegmt=True)}) == 0
    assert retry_after({"retry-after": "-5"}) == 0
    assert retry_after({"retry-after": "later"}) is None
    assert retry_after({}) is None


def test_tokens_of_a_request_are_its_prompt_and_its_longest_answers() -> None:
    assert count_request_tokens({"messages": [{"content": "x" * 300}], "max_tokens": 50, "n": 3}) == 100 + 150
