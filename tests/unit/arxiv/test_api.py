"""The arXiv client against a loopback server that gives recorded answers, and some bad ones."""

import gzip
import itertools
import json
import re
import sqlite3
import threading
import time
from dataclasses import replace
from email.utils import formatdate

import pytest
from werkzeug import Response

from pipeline.arxiv.api import ArxivApi, read_feed
from pipeline.arxiv.rate_limited_client import Pace
from pipeline.arxiv.record import Record
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.retries import Clock
from pipeline.settings import load_settings
from tests.cases import cases
from tests.fake_arxiv import FEED, entry, feed, reply, status
from tests.fake_clock import FakeClock

from .conftest import start_client

pytestmark = pytest.mark.slow


def numbered(count):
    """So many papers: identifier → entry."""
    return {name: entry(name) for name in (f"2403.{number:05}" for number in range(count))}


@pytest.fixture
def settings(arxiv):
    return load_settings(
        arxiv_api_url=arxiv.url, arxiv_user_agent="citeloom-test (nobody@example.org)"
    )


@pytest.fixture
def api(settings, tmp_path):
    with opened(settings, tmp_path) as client:
        yield client


def opened(settings, folder, gap=0.0, silence=60.0, clock=None):
    pace = Pace(folder / "machine", gap=gap, tries=3, first_back_off=0.01, silence=silence)
    if clock is not None:
        pace = replace(pace, clock=clock)
    return ArxivApi(settings, folder, pace=pace)


def statuses(api, ids):
    return [record.status for record in api.find(ids).values()]


# What arXiv answers.


def test_recorded_papers_give_every_column(shared_data):
    records = {}
    for name in ("1707.08567_s0", "astro-ph"):
        (file,) = (shared_data / "metadata" / "api_recordings").glob(f"id_{name}*.json")
        records |= read_feed(json.loads(file.read_text())["body"].encode("latin-1"))
    found, old = (records[name] for name in ("1707.08567", "astro-ph/0601001"))
    assert (len(found.authors), found.authors[-2]) == (34, "Dirk Wübben")
    assert found.comment.startswith("44 pages, editors for the proceedings")
    assert replace(found, authors=(), comment=None, abstract=None) == Record(
        arxiv_id="1707.08567",
        version=1,
        title="Proceedings of Workshop AEW10: Concepts in Information Theory and Communications",
        categories=("cs.IT",),
        primary_category="cs.IT",
        published="2017-07-27",
        updated="2017-07-27",
        source="api",
    )
    assert old.authors[:3] == ("Andrew Gould", "Susan Dorsher", "B. Scott Gaudi")
    assert old.journal_ref == "ActaAstron.56:1-50,2006"


def test_500_recorded_papers_come_in_five_requests(arxiv, api, shared_data):
    for file in sorted((shared_data / "metadata" / "atom_pages").glob("*.xml")):
        for body in re.findall(r"<entry>.*?</entry>", file.read_text(), re.DOTALL):
            (name,) = re.findall(r"/abs/([^<]+?)v\d+</id>", body)
            arxiv.papers[name] = body
    found = api.find(arxiv.papers)
    assert len(found) == 500
    assert {paper.status for paper in found.values()} == {"present"}
    assert all("cs." in " ".join(paper.categories) for paper in found.values())
    assert [len(ids) for ids in arxiv.asked] == [100] * 5
    assert {request.args["max_results"] for request in arxiv.requests} == {"100"}
    assert arxiv.agents == {"citeloom-test (nobody@example.org)"}


@cases(
    "unit/arxiv/cases.toml", "papers_that_an_answer_lacks_are_asked_for", ["announced", "listed"]
)
def test_papers_that_an_answer_lacks_are_asked_for_once_more_and_no_others_kept(
    arxiv, api, announced, listed
):
    arxiv.papers = numbered(3)
    entries = "".join(entry(f"2403.{number:05}") for number in listed)
    arxiv.script = [reply(FEED.format(announced, entries))]
    assert statuses(api, [*arxiv.papers, "2403.00004"]) == [*["present"] * 3, "absent"]
    assert statuses(api, ["2403.00009"]) == ["absent"]


# What is kept.


def test_answers_that_cannot_be_written_are_named_and_nothing_is_half_kept(arxiv, api, tmp_path):
    arxiv.papers = numbered(1)
    api.find([])
    lock = sqlite3.connect(tmp_path / "answers.sqlite")
    lock.execute(
        "create trigger full before insert on records begin select raise(abort, 'disk is"
        " full'); end"
    )
    lock.commit()
    with pytest.raises(
        PermanentFailure, match=r"answers\.sqlite, cannot be read or written \(disk is full\)"
    ):
        api.find(arxiv.papers)
    lock.execute("drop trigger full")
    lock.close()
    assert statuses(api, arxiv.papers) == ["present"]


# What goes wrong.

WHOLE = FEED.format(1, entry("2403.00000"))


@pytest.mark.parametrize(
    "trouble",
    [
        status(429),
        status(429, Retry_After="0"),
        status(503, Retry_After=formatdate(0, usegmt=True)),
        status(503, Retry_After="soon"),
        status(500),
        reply(WHOLE[:-40]),
        # It breaks off: of a text, and not of an iterator, Werkzeug counts the length itself.
        lambda _: Response(iter([WHOLE[:100]]), headers={"Content-Length": str(len(WHOLE))}),
        reply(FEED.format(1, "")),
        reply(WHOLE.replace("2024-03-05T09", "yesterday")),
        reply(WHOLE.replace("<published>2024-03-04T09:00:00Z</published>", "")),
        reply(WHOLE.replace("<id>http://arxiv.org/abs/2403.00000v1</id>", "")),
    ],
)
def test_trouble_that_passes_is_lived_through(arxiv, api, trouble):
    arxiv.papers = numbered(1)
    arxiv.script = [trouble, trouble]
    assert statuses(api, arxiv.papers) == ["present"]
    assert api.requests == 3


def test_a_pause_longer_than_we_wait_ends_the_request_and_binds_every_process(arxiv, api, tmp_path):
    arxiv.script = [status(503, Retry_After="7200")]
    with pytest.raises(TransientFailure, match="one try: status 503, asking for a pause of 7200 s"):
        api.find(["2403.00001"])
    assert len(arxiv.asked) == 1
    pace = Pace(tmp_path / "machine", gap=0.0)
    pace.postpone(1.0)
    assert pace.rest() > 500


def test_a_redirection_is_a_request_in_its_own_turn(arxiv, settings, tmp_path):
    arxiv.papers = numbered(1)
    arxiv.script = [status(301, Location="/api/query?id_list=2403.00000")]
    clock = FakeClock().clock
    arxiv.now = clock.now
    with opened(settings, tmp_path, gap=3.0, clock=clock) as api:
        assert statuses(api, arxiv.papers) == ["present"]
        assert api.requests == 2
    assert arxiv.times[1] - arxiv.times[0] == pytest.approx(3.0)


def test_a_server_that_hangs_is_asked_again(arxiv, settings, tmp_path):
    arxiv.papers = numbered(1)
    given_up = threading.Event()

    def hang(_):
        given_up.wait()
        return feed([])

    def pause(seconds):
        """The client pauses before it asks again, and the server serves one request at a time."""
        given_up.set()

    arxiv.script = [hang]
    clock = Clock(time.time, pause)
    with opened(settings, tmp_path, silence=1.0, clock=clock) as api:
        assert statuses(api, arxiv.papers) == ["present"]
        assert api.requests >= 2


PACKED = gzip.compress(bytes(40 * 1024 * 1024), 1)


@pytest.mark.parametrize(
    ("reply", "requests", "said"),
    [
        (status(404), 1, "status 404: check CITELOOM_ARXIV_API_URL and CITELOOM_ARXIV_USER_AGENT"),
        (
            reply('<!DOCTYPE feed [<!ENTITY a "ha">]>' + FEED.format(0, "&a;")),
            1,
            "declares a document type or entities",
        ),
        (
            lambda _: Response(PACKED, headers={"Content-Encoding": "gzip"}),
            1,
            "is longer than 33554432 bytes",
        ),
        (
            status(302, Location="/api/query?id_list=2403.00001"),
            6,
            "redirects without end: check CITELOOM_ARXIV_API_URL",
        ),
    ],
    ids=["status", "entities", "length", "redirects"],
)
def test_an_answer_that_another_try_cannot_mend_is_refused_for_good(
    arxiv, api, reply, requests, said
):
    arxiv.script = [reply] * 9
    with pytest.raises(PermanentFailure, match=said):
        api.find(["2403.00001"])
    assert len(arxiv.asked) == requests


@pytest.mark.parametrize("code", [414, 400])
def test_a_list_that_is_too_long_is_halved(arxiv, api, code):
    arxiv.papers = numbered(100)
    arxiv.script = [status(code), status(code), None, None, None, status(code)]
    assert set(statuses(api, arxiv.papers)) == {"present"}
    assert [len(asked) for asked in arxiv.asked] == [100, 50, 25, 25, 50]
    with pytest.raises(PermanentFailure, match="refuses even the single identifier 2404"):
        api.find(["2404.00001"])


def test_one_wrong_identifier_costs_no_other_its_record(arxiv, api):
    error = (
        "<entry><id>https://arxiv.org/api/errors#incorrect_id_format_for_no-id</id><title>Error</title>"
        "<updated>2026-04-12T22:59:06Z</updated><published>2026-04-12T22:59:06Z</published></entry>"
    )
    arxiv.papers = numbered(7)

    def refuse(request):
        return feed([error]) if "no-id" in request.args["id_list"] else arxiv.usual(request)

    arxiv.script = [refuse] * 20
    found = api.find([*arxiv.papers, "no-id"])
    assert [name for name, record in found.items() if record.status != "present"] == ["no-id"]
    assert len(arxiv.asked) == 7


def test_a_server_that_is_not_there_is_named_with_what_to_do(tmp_path):
    url = "http://127.0.0.1:9/api/query"
    with opened(load_settings(arxiv_api_url=url), tmp_path) as api:
        with pytest.raises(TransientFailure, match=f"{url} cannot be reached"):
            api.find(["2403.00001"])
        assert api.requests == 1


@cases("unit/arxiv/cases.toml", "an_address_or_a_user_agent_that_cannot", ["name", "value"])
def test_an_address_or_a_user_agent_that_cannot_be_used_is_a_wrong_setting(tmp_path, name, value):
    settings = load_settings(**{name: value})
    with (
        pytest.raises(SettingError, match=f"CITELOOM_{name.upper()}"),
        opened(settings, tmp_path) as api,
    ):
        api.find(["2403.00001"])


# The pace.


def test_the_api_and_a_harvest_in_two_processes_share_one_pace(arxiv, oai, tmp_path):
    arxiv.papers = numbered(300)
    oai.list = [["2403.00001"], ["2403.00002"], ["2403.00003"]]
    servers = (("api", arxiv.url), ("oai", oai.url))
    clients = [
        start_client(way, url, tmp_path / way, tmp_path / "machine", 0.3) for way, url in servers
    ]
    for client in clients:
        client.join()
    assert [client.exitcode for client in clients] == [0, 0]
    gaps = [later - sooner for sooner, later in itertools.pairwise(sorted(arxiv.times + oai.times))]
    assert len(gaps) == 5
    assert min(gaps) >= 0.3


def test_clients_that_set_nothing_are_three_seconds_apart(arxiv, settings, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    arxiv.papers = numbered(2)
    clock = FakeClock().clock
    arxiv.now = clock.now
    for name in arxiv.papers:
        with ArxivApi(settings, tmp_path, pace=Pace(clock=clock)) as api:
            api.find([name])
    assert arxiv.times[1] - arxiv.times[0] >= 3.0
    assert (tmp_path / "cache" / "citeloom").is_dir()


def test_a_pause_until_a_date_is_kept(arxiv, settings, tmp_path):
    clock = FakeClock().clock
    arxiv.now = clock.now
    arxiv.script = [status(429, Retry_After=formatdate(time.time() + 100, usegmt=True))]
    with opened(settings, tmp_path, clock=clock) as api:
        api.find(["2403.00001"])
    # The date has whole seconds, and the clock stands while this is going on.
    assert 60 < arxiv.times[1] - arxiv.times[0] <= 100


def test_a_clock_that_was_set_back_does_not_stop_us_permanently(tmp_path):
    (tmp_path / "arxiv-api-next-request").write_text("99999999999")
    assert Pace(tmp_path).rest() < 1000


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(PermanentFailure, match="set XDG_CACHE_HOME"),
        Pace(tmp_path / "file" / "citeloom").turn(),
    ):
        pass
