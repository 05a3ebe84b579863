"""The transport on a clock that jumps: when requests are sent, sent again, and given up."""

import asyncio
import gzip
import json
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from email.utils import formatdate

import httpx2
import pytest

from pipeline.errors import SettingError, TransientFailure
from pipeline.llm.completion import EndpointReply
from pipeline.llm.endpoint_client import ATTEMPTS, MOST_BYTES, PATIENCE
from pipeline.llm.loop import side_by_side
from pipeline.llm.models import get_model
from pipeline.llm.transport import PaidInVain, Transport, UnusableAnswer
from pipeline.settings import load_settings
from tests.cases import cases_beside
from tests.fake_clock import run_without_waiting

SECRET = "sk-sentinel-9f31"
# The longest that the SDK waits before another attempt, if the endpoint asks for nothing.
LONGEST_WAIT = 8.0

Answer = Callable[[str, float], "httpx2.Response | Exception"]
"""(prompt, time) → the answer to a request."""


def now():
    return asyncio.get_running_loop().time()


def completion():
    choice = {"index": 0, "message": {"content": "Yes."}, "finish_reason": "stop"}
    return httpx2.Response(200, json={"choices": [choice]})


def failure_of(kind, headers=None):
    """A failure of an endpoint: a status, no connection, or silence."""
    if kind == "no connection":
        return httpx2.ConnectError("connection refused")
    if kind == "silence":
        return httpx2.ReadTimeout("silence")
    return httpx2.Response(kind, json={"error": {"message": "refused"}}, headers=headers)


class Endpoint:
    """An endpoint without a network. asked: when each prompt was sent."""

    def __init__(self, answer, seconds=0.01):
        self.answer, self.seconds = answer, seconds
        self.asked = {}
        own = {"llm_url": "http://llm/v1", "llm_model": "m", "llm_api_key": SECRET}
        model = get_model(load_settings(_env_file=None, **own))
        responder = httpx2.MockTransport(self._respond)
        self.transport = Transport(model, "http://llm/v1", transport=responder)

    async def _respond(self, request):
        prompt = json.loads(request.content)["messages"][0]["content"]
        self.asked.setdefault(prompt, []).append(now())
        await asyncio.sleep(self.seconds)
        answer = self.answer(prompt, now())
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask(self, prompt="this"):
        return await self.transport.send(
            {"model": "m", "messages": [{"role": "user", "content": prompt}], "temperature": 0.0},
            512,
        )

    async def ask_others(self, until, pause):
        """Ask for other answers until a time."""
        while now() < until:
            await self.ask("other")
            await asyncio.sleep(pause)


def ask_once(answer, *, after_an_answer=False):
    """The reply to one request or its error, when it came, and when the request was sent."""

    async def scenario():
        endpoint = Endpoint(answer)
        if after_an_answer:
            await endpoint.ask("first")
        reply: EndpointReply | Exception
        try:
            reply = await endpoint.ask()
        except TransientFailure as error:
            reply = error
        return reply, now(), endpoint.asked["this"]

    return run_without_waiting(scenario())


def until(end, *failure):
    """An endpoint that fails until a time, except for the prompts "first" and "other"."""

    def answer(prompt, moment):
        return failure_of(*failure) if prompt == "this" and moment < end else completion()

    return answer


@cases_beside("after_an_answer", "failure", "seconds", "ended", "requests", "error")
def test_an_endpoint_that_fails_is_outlasted_or_given_up(
    after_an_answer, failure, seconds, ended, requests, error
):
    """The moment of the end, and how many requests were sent, are within bounds."""
    reply, moment, asked = ask_once(until(seconds, *failure), after_an_answer=after_an_answer)
    assert isinstance(reply, TransientFailure if error else EndpointReply)
    assert str(error or "") in str(reply)
    assert ended[0] <= moment <= ended[1]
    assert requests[0] <= len(asked) <= requests[1]
    assert error or reply.retries == len(asked) - 1


def test_a_refusal_for_longer_than_two_minutes_ends_the_request_at_once():
    date = formatdate(time.time() + 3600, usegmt=True)
    reply, moment, asked = ask_once(until(1e9, 429, {"retry-after": date}))
    assert "asks to wait 3" in str(reply)
    assert (len(asked), moment < 1) == (1, True)


def test_an_endpoint_that_refuses_one_request_and_answers_others_is_waited_for():
    async def scenario():
        endpoint = Endpoint(until(6 * 60, 429))
        await endpoint.ask("first")
        await side_by_side([endpoint.ask(), endpoint.ask_others(5 * 60, pause=5.0)])
        return endpoint.asked["this"][-1]

    assert run_without_waiting(scenario()) >= 6 * 60


def test_after_patience_every_request_ends_with_what_is_wrong():
    async def scenario():
        endpoint = Endpoint(until(1e9, "no connection"))
        await endpoint.ask("first")
        ended = await asyncio.gather(*(endpoint.ask() for _ in range(30)), return_exceptions=True)
        return ended, now(), endpoint.transport.down

    ended, moment, down = run_without_waiting(scenario())
    assert {type(error) for error in ended} == {TransientFailure}
    assert PATIENCE <= moment <= PATIENCE + 2 * LONGEST_WAIT
    assert down


@pytest.mark.parametrize(
    ("failure", "seconds", "attempts"),
    [("no connection", 0.01, ATTEMPTS), (500, 0.01, ATTEMPTS), ("silence", 300.0, 1)],
)
def test_a_request_that_alone_fails_is_given_up(failure, seconds, attempts):
    """At once where it met no answer for its whole time."""

    async def scenario():
        endpoint = Endpoint(until(1e9, failure))
        await endpoint.ask("first")
        endpoint.seconds = seconds
        others = asyncio.create_task(endpoint.ask_others(1e9, pause=0.1))
        with pytest.raises(TransientFailure):
            await endpoint.ask()
        others.cancel()
        return len(endpoint.asked["this"])

    assert run_without_waiting(scenario()) == attempts


@pytest.mark.parametrize("failure", ["no connection", 503])
def test_nothing_is_tried_again_once_it_is_stopped(failure):
    async def scenario():
        endpoint = Endpoint(until(1e9, failure))
        asked = asyncio.create_task(endpoint.ask())
        await asyncio.sleep(0.1)
        endpoint.transport.stop()
        with pytest.raises(TransientFailure):
            await asked
        return len(endpoint.asked["this"])

    assert run_without_waiting(scenario()) == 1


def reply_to(content, status=200, headers=None):
    """The reply where every answer has this content, or its error."""
    reply, _, asked = ask_once(
        lambda prompt, _: httpx2.Response(status, content=content, headers=headers)
    )
    assert len(asked) == 1, "an attempt needs room in the budget"
    return reply


def test_an_error_inside_an_answer_is_tried_again():
    """Gateways answer 200, and say in the body that what is behind them failed."""
    error = {"message": f"upstream is down for {SECRET}", "code": 502}
    reply, _, asked = ask_once(lambda prompt, _: httpx2.Response(200, json={"error": error}))
    assert len(asked) > 1
    assert "answers 502 (upstream is down for ***)" in str(reply)


@cases_beside("body")
def test_an_answer_that_is_no_completion_is_shown_with_the_endpoint(body):
    check_unusable(body.encode())


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": [{"message": {"content": "\xff"}}]}',
        b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"choices": "' + bytes(MOST_BYTES) + b'"}',
    ],
    ids=["not UTF-8", "nested", "too large"],
)
def test_bytes_that_no_endpoint_should_send_are_shown_with_it(body):
    check_unusable(body)


def check_unusable(body):
    reply = reply_to(body)
    assert isinstance(reply, UnusableAnswer)
    assert re.search("^http://llm/v1 does not answer as .* correct CITELOOM_LLM_URL$", str(reply))
    assert str(reply).isprintable()
    assert len(str(reply)) < 700


READ = """
import resource
from pipeline.llm.completion import read_reply
from pipeline.llm.structured import make_form, parse_answer
text = '{"choices":[' + "1," * 1_000_000 + "1]}"
Form = make_form("Form", choices=list[str])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 100_000_000,) * 2)
for read, *arguments in (read_reply, 64, None), (parse_answer, Form):
    try:
        read(text, *arguments)
    except ValueError:
        print("refused")
"""


def test_millions_of_values_are_refused_in_little_memory():
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True)
    assert done.stdout.split() == ["refused"] * 2, done.stderr


def test_a_compressed_answer_is_bounded_by_what_it_unpacks_to():
    packed = gzip.compress(bytes(8 * MOST_BYTES), 1)

    async def chunks():
        for start in range(0, len(packed), 1 << 16):
            yield packed[start : start + (1 << 16)]

    tracemalloc.start()
    reply = reply_to(chunks(), headers={"content-encoding": "gzip"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "it has over 32 MB" in str(reply)
    assert peak < 4 * MOST_BYTES


@pytest.mark.parametrize("status", [200, 400])
def test_a_large_error_is_refused_before_it_is_parsed(status):
    reply = reply_to(b'{"error": [' + b"{}," * 400_000 + b"{}]}", status)
    assert isinstance(reply, UnusableAnswer)
    assert "over 1 MB" in str(reply)


def test_an_answer_that_breaks_off_is_one_that_may_be_paid_for():
    async def half():
        yield b'{"choices": ['
        raise httpx2.RemoteProtocolError("closed")

    assert isinstance(reply_to(half()), UnusableAnswer)


def test_an_encoding_that_repeats_the_key_is_not_shown():
    reply = reply_to(b"x", headers={"content-encoding": "e" * 50 + SECRET})
    assert SECRET[:12] not in str(reply)


def test_an_answer_that_trickles_ends_with_its_time():
    async def trickle():
        while True:
            await asyncio.sleep(0.5)
            yield b" "

    reply, moment, asked = ask_once(lambda prompt, _: httpx2.Response(200, content=trickle()))
    assert isinstance(reply, PaidInVain)
    assert "gave no answer within 300 s" in str(reply)
    assert (moment, len(asked)) == (pytest.approx(300, abs=1), 1)


def test_a_redirect_takes_no_prompt_elsewhere():
    with pytest.raises(SettingError, match=r"redirects to http://other/v1 \(307\)"):
        reply_to(b"", 307, {"location": "http://other/v1?key=1"})
