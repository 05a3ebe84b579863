"""The tools for assistants, called by the SDK's own client over HTTP and over standard input and
output.
"""

import json
import os
import re
import sys
import threading
from collections.abc import Awaitable, Callable
from io import BytesIO
from itertools import cycle

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters

from pipeline.doors import mcp as mcp_server
from pipeline.doors.mcp import INSTRUCTIONS, MOST_CHARACTERS, CorpusTools, pass_on
from pipeline.doors.web.app import make_app
from pipeline.doors.web.site import Site
from pipeline.index.opening import close_indexes
from tests.cases import cases_beside, read_cases
from tests.processes import PATIENCE
from tests.unit.doors.conftest import serving
from tests.unit.doors.corpus import FUSION, HOSTILE_TEXTS, passage_id

pytestmark = pytest.mark.slow

TOOLS = {"search", "paper", "section", "references", "citations", "find_quote", "ask"}
Use = Callable[[Client], Awaitable[None]]


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """A call on a slow machine may take longer than a user would wait."""
    monkeypatch.setattr(mcp_server, "TIME_LIMIT", PATIENCE)


@pytest.fixture(scope="module")
def address(corpus):
    """The address of the tools on a server of their own."""
    with serving(make_app(corpus)) as server:
        yield f"http://{server}/mcp"


@pytest.fixture(params=["http", "stdio"])
def connect(request, corpus):
    """Runs a function with a client of the server, over each transport."""
    if request.param == "http":
        target = request.getfixturevalue("address")
    else:
        close_indexes()
        environment = {**os.environ, "CITELOOM_DATA": str(corpus.root.path)}
        command = ["-c", "from pipeline.doors.cli import main; main()", "mcp"]
        target = StdioServerParameters(command=sys.executable, args=command, env=environment)

    def run(use):
        async def connected():
            async with Client(target, read_timeout_seconds=PATIENCE) as client:
                await use(client)

        anyio.run(connected)

    return run


def test_an_assistant_searches_reads_and_cites(connect):
    async def use(client):
        assert client.instructions.startswith(INSTRUCTIONS)
        held = "papers of the categories cs in 2 months, 2024-03 to 2024-04, as of"
        assert held in client.instructions
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        assert all(tool.annotations.read_only_hint and tool.output_schema for tool in tools)
        fence = fence_of(client)

        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.content
            assert len(str(result.structured_content)) < 2 * MOST_CHARACTERS
            return result.structured_content["result"]

        table = await call("search", query="recall of BM25 on Tidepool", kind="table")
        (passage,) = table["hits"][0]["passages"]
        assert (passage["kind"], "| BM25 " in passage["text"]) == ("table", True)
        assert passage["text"].startswith(f"<{fence}>\n")
        bibtex = await call("paper", arxiv_id=f"https://arxiv.org/abs/{FUSION}v1", form="bibtex")
        assert bibtex.startswith(f"<{fence}>\n@misc{{lovelace2024fusion")
        for section, numbers in (("method", [5]), (passage_id(5), [4, 5, 6])):
            passages = (await call("section", arxiv_id=FUSION, section=section))["passages"]
            assert [each["passage_id"] for each in passages] == list(map(passage_id, numbers))

    connect(use)


def test_a_message_with_half_a_surrogate_pair_is_read_and_each_unreadable_one_is_answered(tmp_path):
    message = '{"jsonrpc": "2.0", "id": %s, "method": "\\ud83d\\ude00 \\\\ud800 %s"}'
    unreadable = [
        message % ("1", f'\\ud800", "params": {{"a": {value}}}, "b": "')
        for value in ("9" * 5_000, "[" * 1_500 + "]" * 1_500, "[" * 300 + "]" * 300)
    ]
    unreadable += [message % (1.5, ""), message % ("null", ""), "[]", '{"\\ud800']
    lines = [message % (1, "\\uD800"), *unreadable]
    pass_on(BytesIO("\n".join(lines).encode()), (tmp_path / "passed").open("wb"))
    first, *others = map(json.loads, (tmp_path / "passed").read_text().splitlines())
    assert first == json.loads(message % (1, "?"))
    assert [other["method"] for other in others] == ["a message that cannot be read"] * 7


def fence_of(client):
    """The name of the tags around texts of papers."""
    return client.instructions.partition("</")[2].partition(">")[0]


def assert_fenced(result, fence):
    """No text of a paper is outside of the tags, nor an end of them inside.

    Such texts are words of the hostile ones, and the author's name. An error repeats arguments.
    """
    if result.is_error:
        return
    for text in (result.structured_content, *(part.text for part in result.content)):
        outside = re.sub(rf"<{fence}>\\?\n?.*?</{fence}>", "", str(text), flags=re.DOTALL)
        assert "<|im_start|>" not in str(text)
        for words in ("pirate", "passwd", "Lovelace", "script", fence):
            assert words not in outside, (words, outside)


@cases_beside("tool", "arguments")
def test_wrong_arguments_are_errors_that_say_what_is_wrong(address, tool, arguments):
    async def use():
        async with Client(address) as client:
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert "Traceback" not in str(result.content)
            assert "log has the reason" not in str(result.content)

    anyio.run(use)


def test_hostile_arguments_and_passages_are_data(address):
    others = cycle(read_cases("unit/doors/cases.toml")["hostile_arguments"])
    calls = [("search", {"query": text, "kind": "passages"}) for text in HOSTILE_TEXTS]
    for text, (tool, name, more) in zip(HOSTILE_TEXTS, others, strict=False):
        calls.append((tool, {name: text, **more}))
    last, wicked = (f"2404.{len(HOSTILE_TEXTS) - number:05d}" for number in (1, 2))
    calls.append(("section", {"arxiv_id": wicked, "section": HOSTILE_TEXTS[-2]}))
    for arxiv_id in (last, wicked):
        calls += [(tool, {"arxiv_id": arxiv_id}) for tool in ("paper", "references", "citations")]

    async def use():
        async with Client(address) as client:
            for tool, arguments in calls:
                result = await client.call_tool(tool, arguments)
                assert "log has the reason" not in str(result.content), (tool, arguments)
                assert_fenced(result, fence_of(client))
            for arxiv_id in (last, wicked):
                bibtex = await client.call_tool("paper", {"arxiv_id": arxiv_id, "form": "bibtex"})
                assert_fenced(bibtex, fence_of(client))
                assert "\\input" not in bibtex.structured_content["result"]
            assert (await client.call_tool("search", {"query": "x" * 10_001})).is_error

    anyio.run(use)


def test_a_long_section_comes_in_parts(corpus, monkeypatch):
    monkeypatch.setattr(mcp_server, "MOST_CHARACTERS", 100)
    tools = CorpusTools(Site(corpus))
    markdown = tools.section(FUSION, "Method", form="markdown")
    assert "## Formula\n\nRanks outdo scores" in markdown["result"]
    assert markdown["next_start"] == 100
    rest = tools.section(FUSION, "Method", form="markdown", start=80)["result"]
    assert r"\sum_i \frac{1}{k + r_i}" in rest
    references = tools.references(FUSION, limit=2)
    assert (len(references["result"]), references["total"], references["next_start"]) == (1, 3, 1)
    query = {"query": "rank fusion of lists with rare terms", "kind": "passages", "limit": 3}
    shown, others = (tools.search(**query, start=start) for start in (0, 1))
    assert (len(shown["result"]["hits"]), shown["next_start"]) == (1, 1)
    assert others["result"]["hits"][0]["passages"] != shown["result"]["hits"][0]["passages"]
    close_indexes()


def test_a_tool_that_takes_too_long_is_an_error(corpus, monkeypatch):
    monkeypatch.setattr(mcp_server, "TIME_LIMIT", 0.2)
    ended = threading.Event()
    monkeypatch.setattr(CorpusTools, "_paper", lambda tools, arxiv_id: ended.wait())

    async def use():
        async with Client(mcp_server.make_server(Site(corpus))) as client:
            result = await client.call_tool("paper", {"arxiv_id": FUSION})
            ended.set()
            assert result.is_error
            assert "ask for less" in str(result.content)

    anyio.run(use)


def test_a_page_of_another_site_cannot_call_the_tools(address):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    for extra, status in (
        ({"Origin": "https://evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
    ):
        assert httpx2.post(address, json=body, headers=headers | extra).status_code == status
    assert httpx2.post(address, content=b"x" * (2 << 20), headers=headers).status_code == 413
