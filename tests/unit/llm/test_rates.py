"""The endpoint's pace: what its headers say, and when requests then go out, on a clock that jumps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from email.utils import formatdate
from typing import Any

import pytest

from pipeline.errors import TransientFailure
from pipeline.llm.loop import run, side_by_side, without_waiting
from pipeline.llm.rates import Rates, read_duration, retry_after, tokens_of


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


def test_a_moment_in_place_of_a_duration_is_read() -> None:
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
    assert tokens_of({"messages": [{"content": "x" * 300}], "max_tokens": 50, "n": 3}) == 100 + 150


def on_a_jumping_clock(scenario: Callable[[Rates], Coroutine[Any, Any, Any]]) -> Any:
    async def inside() -> Any:
        return await scenario(Rates("http://llm"))

    with without_waiting():
        return run(inside())


def headers(unit: str, left: int, reset: str, limit: int | None = None) -> Mapping[str, str]:
    given = {f"x-ratelimit-remaining-{unit}": str(left), f"x-ratelimit-reset-{unit}": reset}
    return given | ({f"x-ratelimit-limit-{unit}": str(limit)} if limit else {})


async def send_times(rates: Rates, first: Mapping[str, str], count: int, tokens: int = 1) -> list[float]:
    """When each of some requests goes out, after a first one was answered with these headers."""
    number = await rates.turn(tokens)
    rates.answered(number, first)
    rates.landed(number)

    async def send() -> float:
        await rates.turn(tokens)
        return asyncio.get_running_loop().time()

    return await side_by_side(send() for _ in range(count))


def test_without_headers_nothing_waits() -> None:
    assert on_a_jumping_clock(lambda rates: send_times(rates, {}, 5)) == [0.0] * 5


def test_as_many_go_out_as_are_left_and_the_others_wait_for_the_window() -> None:
    times = on_a_jumping_clock(lambda rates: send_times(rates, headers("requests", 2, "6s"), 4))
    assert times == pytest.approx([0, 0, 6, 6])


def test_a_bucket_that_fills_steadily_is_followed() -> None:
    # 60 a minute, all spent: one comes back each second.
    times = on_a_jumping_clock(lambda rates: send_times(rates, headers("requests", 0, "1m0s", 60), 3))
    assert times == pytest.approx([1, 2, 3])


def test_tokens_slow_the_sending_down_as_well() -> None:
    # 6,000 a minute, of which 1,000 are left: two requests of 500, then one each 5 s.
    times = on_a_jumping_clock(lambda rates: send_times(rates, headers("tokens", 1000, "50s", 6000), 4, tokens=500))
    assert times == pytest.approx([0, 0, 5, 10])


def test_requests_that_the_endpoint_may_not_have_counted_are_taken_off() -> None:
    async def scenario(rates: Rates) -> float:
        first = await rates.turn(1)
        for _ in range(3):
            await rates.turn(1)
        rates.answered(first, headers("requests", 3, "9s"))
        await rates.turn(1)
        return asyncio.get_running_loop().time()

    assert on_a_jumping_clock(scenario) == pytest.approx(9)


def test_a_refusal_holds_all() -> None:
    async def scenario(rates: Rates) -> list[float]:
        rates.hold(4.0)
        rates.hold(2.0)
        return await send_times(rates, {}, 2)

    assert on_a_jumping_clock(scenario) == pytest.approx([4, 4])


def test_a_limit_that_is_over_only_tomorrow_ends_the_run() -> None:
    with pytest.raises(TransientFailure, match=r"http://llm takes no more requests for 86400 s"):
        on_a_jumping_clock(lambda rates: send_times(rates, headers("requests", 0, "24h"), 1))


def test_headers_that_say_nothing_change_nothing() -> None:
    odd = {"x-ratelimit-remaining-requests": "many", "x-ratelimit-reset-requests": "1s"}
    assert on_a_jumping_clock(lambda rates: send_times(rates, odd, 2)) == [0, 0]
