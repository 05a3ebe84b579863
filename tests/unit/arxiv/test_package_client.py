"""Faults of `arxiv.Client` (4.0), for which citeloom uses only the package's `Result`.

docs/contributing/upstream.md describes them. A test that fails here means that a fault is mended.
"""

from itertools import pairwise

import pytest

from tests.fake_arxiv import FEED, entry, reply, status

pytestmark = pytest.mark.slow


def _client(api, tries=1):
    import arxiv

    client = arxiv.Client(delay_seconds=0.0, num_retries=tries - 1)
    client.query_url_format = f"{api.url}?{{}}"
    return client


def _ids(client, *names):
    import arxiv

    search = arxiv.Search(id_list=list(names), max_results=None)
    return [result.get_short_id() for result in client.results(search)]


def test_it_finds_papers_over_one_connection_with_a_user_agent_of_its_own(arxiv):
    names = [f"2403.{number:05}" for number in range(150)]
    arxiv.papers = {name: entry(name) for name in names}
    assert len(_ids(_client(arxiv), *names)) == 150
    assert [agent.partition("/")[0] for agent in arxiv.agents] == ["arxiv.py"]


def test_it_does_not_wait_as_long_as_the_server_asks(arxiv):
    import arxiv as package

    arxiv.script = [status(503, Retry_After="60")] * 3
    with pytest.raises(package.HTTPError) as failure:
        _ids(_client(arxiv, tries=3), "2403.00001")
    assert not hasattr(failure.value, "headers")
    assert all(later - earlier < 30 for earlier, later in pairwise(arxiv.times))


def test_it_accepts_a_truncated_entry(arxiv):
    import arxiv as package

    whole = FEED.format(1, entry("2403.00001"))
    arxiv.script = [reply(whole[: whole.index("<author>")])]
    (result,) = _client(arxiv).results(package.Search(id_list=["2403.00001"]))
    assert result.authors == []


def test_it_reads_an_empty_first_page_as_no_papers(arxiv):
    arxiv.script = [reply(FEED.format(100, ""))]
    assert _ids(_client(arxiv), "2403.00001") == []


def test_it_does_not_say_why_a_list_was_refused(arxiv):
    import arxiv as package

    arxiv.script = [reply("incorrect id format for abc", 400)]
    with pytest.raises(package.HTTPError) as failure:
        _ids(_client(arxiv), "abc")
    assert "incorrect" not in str(vars(failure.value))
