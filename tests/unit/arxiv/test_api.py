"""The arXiv client against a loopback server that speaks recorded answers, and some bad ones."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from email.utils import formatdate
from pathlib import Path
from textwrap import dedent

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pipeline.arxiv.api import ArxivApi
from pipeline.arxiv.pace import Pace
from pipeline.arxiv.rate_limited_client import Patience
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.settings import Settings, load_settings

PROJECT = Path(__file__).resolve().parents[3]
EMPTY = (
    '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom" '
    'xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">'
    "<opensearch:totalResults>{}</opensearch:totalResults>{}</feed>"
)
Reply = Callable[[list[str]], Response]


def entry(arxiv_id: str, version: int = 1) -> str:
    """An entry as arXiv writes it."""
    return (
        f"<entry><id>http://arxiv.org/abs/{arxiv_id}v{version}</id><title>On\n  {arxiv_id}</title>"
        "<updated>2024-03-05T09:00:00Z</updated><summary> We say. </summary>"
        '<category term="cs.LG"/><category term="cs.CL"/><published>2024-03-04T09:00:00Z</published>'
        '<arxiv:primary_category term="cs.CL"/><author><name>A. One</name></author></entry>'
    )


def feed(entries: Sequence[str]) -> Response:
    """A whole answer."""
    return Response(EMPTY.format(len(entries), "".join(entries)), content_type="application/atom+xml")


def status(code: int, **headers: str) -> Reply:
    return lambda ids: Response("", code, {name.replace("_", "-"): value for name, value in headers.items()})


def text(body: str, kind: str = "application/atom+xml") -> Reply:
    return lambda ids: Response(body, content_type=kind)


class FakeArxiv:
    """Answers from `papers` (identifier → entry), or with the next of `script`; keeps what it was asked."""

    def __init__(self, server: HTTPServer) -> None:
        self.papers: dict[str, str] = {}
        self.script: list[Reply | None] = []
        self.asked: list[list[str]] = []
        self.requests: list[Request] = []
        self.times: list[float] = []
        self.url = server.url_for("/api/query")
        server.expect_request("/api/query").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        self.times.append(time.time())
        ids = request.args["id_list"].split(",")
        self.asked.append(ids)
        self.requests.append(request)
        reply = self.script.pop(0) if self.script else None
        return reply(ids) if reply else self.usual(ids)

    def usual(self, ids: list[str]) -> Response:
        """Those papers that it has, the last first: arXiv promises no order."""
        return feed([self.papers[name] for name in reversed(ids) if name in self.papers])


@pytest.fixture
def arxiv(httpserver: HTTPServer) -> FakeArxiv:
    return FakeArxiv(httpserver)


@pytest.fixture
def settings(arxiv: FakeArxiv) -> Settings:
    return load_settings(arxiv_api_url=arxiv.url, arxiv_user_agent="citeloom-test (nobody@example.org)")


@pytest.fixture
def api(settings: Settings, tmp_path: Path) -> Iterator[ArxivApi]:
    with opened(settings, tmp_path) as client:
        yield client


def opened(settings: Settings, folder: Path) -> ArxivApi:
    pace, patience = Pace(folder / "machine", gap=0.0), Patience(tries=3, first_back_off=0.01)
    return ArxivApi(settings, folder, pace=pace, patience=patience)


@pytest.fixture
def recordings(shared_data: Path) -> dict[str, tuple[int, bytes]]:
    """Recorded answers by their id_list."""
    answers = {}
    for file in (shared_data / "metadata" / "api_recordings").glob("id_*.json"):
        content = json.loads(file.read_text())
        found = re.search(r"id_list=([^&]*)", content["url"])
        assert found
        name = found[1].replace("%2C", ",").replace("%2F", "/")
        answers[name] = (content["status_code"], content["body"].encode("latin-1"))
    return answers


@pytest.fixture
def recorded(arxiv: FakeArxiv, recordings: dict[str, tuple[int, bytes]]) -> FakeArxiv:
    def reply(ids: list[str]) -> Response:
        code, body = recordings[",".join(ids)]
        return Response(body, code, content_type="application/atom+xml")

    arxiv.script = [reply] * 20
    return arxiv


@pytest.fixture
def pages(arxiv: FakeArxiv, shared_data: Path) -> FakeArxiv:
    """A server that has the 500 papers of the recorded pages."""
    for file in sorted((shared_data / "metadata" / "atom_pages").glob("*.xml")):
        for body in re.findall(r"<entry>.*?</entry>", file.read_text(encoding="utf-8"), re.DOTALL):
            found = re.search(r"/abs/([^<]+?)v\d+</id>", body)
            assert found
            arxiv.papers[found[1]] = body
    return arxiv


# What arXiv answers.


def test_a_recorded_paper_gives_every_column(recorded: FakeArxiv, api: ArxivApi) -> None:
    record = api.find(["1707.08567"])["1707.08567"]
    assert record.title == "Proceedings of Workshop AEW10: Concepts in Information Theory and Communications"
    assert record.categories[0] == record.primary_category == "cs.IT"
    assert (record.version, record.published, record.updated) == (1, "2017-07-27", "2017-07-27")
    assert record.comment.startswith("44 pages, editors for the proceedings")
    assert (record.source, record.status) == ("api", "present")
    assert record.fetched_at is not None
    assert len(record.authors) == 34
    assert record.authors[-2] == "Dirk Wübben"


def test_an_old_identifier_is_found_with_its_authors(recorded: FakeArxiv, api: ArxivApi) -> None:
    record = api.find(["astro-ph/0601001"])["astro-ph/0601001"]
    assert record.authors[:3] == ("Andrew Gould", "Susan Dorsher", "B. Scott Gaudi")
    assert record.journal_ref == "ActaAstron.56:1-50,2006"


def test_an_identifier_that_vanished_from_a_recorded_answer_is_asked_once_more_then_absent(
    recorded: FakeArxiv, api: ArxivApi
) -> None:
    found = api.find(["1707.08567", "0808.05394"])
    assert found["1707.08567"].status == "present"
    assert found["0808.05394"].status == "absent"
    assert recorded.asked == [["0808.05394", "1707.08567"], ["0808.05394"]]


def test_the_recorded_refusal_of_a_wrong_identifier_makes_it_absent(recorded: FakeArxiv, api: ArxivApi) -> None:
    assert api.find(["abc"])["abc"].status == "absent"
    assert recorded.asked == [["abc"]]


def test_500_recorded_papers_come_in_five_requests(pages: FakeArxiv, api: ArxivApi) -> None:
    assert len(pages.papers) == 500
    seen: list[tuple[int, int]] = []
    found = api.find(pages.papers, lambda done, total: seen.append((done, total)))
    assert {record.status for record in found.values()} == {"present"}
    assert all(any(name.startswith("cs.") for name in record.categories) for record in found.values())
    assert [len(ids) for ids in pages.asked] == [100] * 5
    assert {request.args["max_results"] for request in pages.requests} == {"100"}
    assert seen == [(100, 500), (200, 500), (300, 500), (400, 500), (500, 500)]


def test_the_answer_to_four_identifiers_with_one_entry_is_joined_by_identifier(
    arxiv: FakeArxiv, api: ArxivApi, shared_data: Path
) -> None:
    body = (shared_data / "metadata" / "atom_small" / "query_missing_id.xml").read_text(encoding="utf-8")
    arxiv.script = [text(body)]
    found = api.find(["2201.13452", "2201.13453", "2201.13454", "2201.13455"])
    assert [name for name, record in found.items() if record.status == "present"] == ["2201.13452"]


def test_a_small_answer_is_read_in_any_order_with_the_primary_category_first(arxiv: FakeArxiv, api: ArxivApi) -> None:
    arxiv.papers = {"2403.00001": entry("2403.00001", 3), "math/0309136": entry("math/0309136")}
    found = api.find(arxiv.papers)
    assert found["2403.00001"].categories == ("cs.CL", "cs.LG")
    assert found["2403.00001"].version == 3
    assert found["2403.00001"].title == "On 2403.00001"
    assert found["math/0309136"].abstract == "We say."


def test_an_identifier_that_vanishes_once_is_found_the_second_time(arxiv: FakeArxiv, api: ArxivApi) -> None:
    arxiv.papers = {"2403.00001": entry("2403.00001"), "2403.00002": entry("2403.00002")}
    arxiv.script = [lambda ids: feed([entry("2403.00001")])]
    assert api.find(arxiv.papers)["2403.00002"].status == "present"
    assert arxiv.asked == [["2403.00001", "2403.00002"], ["2403.00002"]]


def test_a_first_page_that_is_empty_is_not_believed_at_once(arxiv: FakeArxiv, api: ArxivApi) -> None:
    arxiv.papers = {"2403.00001": entry("2403.00001")}
    arxiv.script = [lambda ids: feed([])]
    assert api.find(["2403.00001"])["2403.00001"].status == "present"


def test_papers_that_nobody_asked_for_are_not_kept(arxiv: FakeArxiv, api: ArxivApi) -> None:
    arxiv.script = [lambda ids: feed([entry("2403.00001"), entry("2403.00009")])]
    assert set(api.find(["2403.00001"])) == {"2403.00001"}
    assert api.find(["2403.00009"])["2403.00009"].status == "absent"


def test_a_withdrawn_paper_is_marked(arxiv: FakeArxiv, api: ArxivApi) -> None:
    notice = "<arxiv:comment>This paper has been withdrawn by the authors</arxiv:comment></entry>"
    arxiv.papers = {"2403.00001": entry("2403.00001").replace("</entry>", notice)}
    assert api.find(["2403.00001"])["2403.00001"].status == "withdrawn"


def test_we_say_who_we_are(arxiv: FakeArxiv, api: ArxivApi) -> None:
    api.find(["2403.00001"])
    assert {request.headers["User-Agent"] for request in arxiv.requests} == {"citeloom-test (nobody@example.org)"}


# What is kept.


def test_nothing_is_asked_twice(arxiv: FakeArxiv, settings: Settings, tmp_path: Path) -> None:
    arxiv.papers = {"2403.00001": entry("2403.00001")}
    with opened(settings, tmp_path) as api:
        first = api.find(["2403.00001", "2403.00002"])
    asked = len(arxiv.asked)
    with opened(settings, tmp_path) as api:
        assert api.find(["2403.00001", "2403.00002"]) == first
        assert api.requests == 0
    assert len(arxiv.asked) == asked


def test_answers_that_cannot_be_written_are_named_and_nothing_is_half_kept(
    arxiv: FakeArxiv, settings: Settings, tmp_path: Path
) -> None:
    arxiv.papers = {"2403.00001": entry("2403.00001")}
    with opened(settings, tmp_path) as api:
        lock = sqlite3.connect(tmp_path / "answers.sqlite")
        lock.execute("create trigger full before insert on answers begin select raise(abort, 'disk is full'); end")
        lock.commit()
        with pytest.raises(PermanentFailure, match=r"answers\.sqlite, cannot be read or written \(disk is full\)"):
            api.find(["2403.00001"])
        lock.execute("drop trigger full")
        lock.close()
        assert api.find(["2403.00001"])["2403.00001"].status == "present"


def test_what_was_answered_before_a_failure_is_kept(arxiv: FakeArxiv, settings: Settings, tmp_path: Path) -> None:
    ids = [f"2403.{number:05}" for number in range(250)]
    arxiv.papers = {name: entry(name) for name in ids}
    arxiv.script = [None, None, status(404)]
    with opened(settings, tmp_path) as api, pytest.raises(PermanentFailure, match="status 404: check CITELOOM_ARXIV"):
        api.find(ids)
    with opened(settings, tmp_path) as api:
        assert len(api.find(ids)) == 250
    assert arxiv.asked[3:] == [ids[200:]]


CHILD = """
    import sys
    from pathlib import Path
    from pipeline.arxiv.api import ArxivApi
    from pipeline.arxiv.pace import Pace
    from pipeline.settings import load_settings

    folder = Path(sys.argv[2])
    with ArxivApi(load_settings(arxiv_api_url=sys.argv[1]), folder, pace=Pace(folder / "machine", gap=0.0)) as api:
        api.find([f"2403.{number:05}" for number in range(500)])
"""


def test_a_kill_loses_no_more_than_the_request_in_flight(arxiv: FakeArxiv, settings: Settings, tmp_path: Path) -> None:
    ids = [f"2403.{number:05}" for number in range(500)]
    arxiv.papers = {name: entry(name) for name in ids}
    reached, released = threading.Event(), threading.Event()

    def hang(asked: list[str]) -> Response:
        reached.set()
        released.wait(60)
        return arxiv.usual(asked)

    arxiv.script = [None, None, hang]
    child = subprocess.Popen([sys.executable, "-c", dedent(CHILD), arxiv.url, str(tmp_path)], cwd=PROJECT)
    assert reached.wait(60)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    released.set()
    with opened(settings, tmp_path) as api:
        assert {record.status for record in api.find(ids).values()} == {"present"}
        assert api.requests == 3
    assert [asked[0] for asked in arxiv.asked] == [ids[start] for start in (0, 100, 200, 200, 300, 400)]


def test_kept_answers_that_are_no_such_file_are_named(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "answers.sqlite").write_bytes(b"something else " * 100)
    with pytest.raises(PermanentFailure, match=r"answers\.sqlite, cannot be read or written .* move the file away"):
        opened(settings, tmp_path)


# What goes wrong.


@pytest.mark.parametrize(
    "trouble",
    [
        status(429, Retry_After="0"),
        status(429),
        status(503, Retry_After=formatdate(0, usegmt=True)),
        status(503, Retry_After="soon"),
        status(500),
        text("<!DOCTYPE html><html><body>Rate exceeded.</body></html>", "text/html"),
        text("<html><p>Sorry"),
        text(EMPTY.format(1, entry("2403.00001"))[:-40]),
        text("<?xml version='1.0'?><rss/>"),
        text(""),
        text(EMPTY.format(1, entry("2403.00001").replace("2024-03-05T09", "yesterday"))),
    ],
)
def test_trouble_that_passes_is_lived_through(arxiv: FakeArxiv, api: ArxivApi, trouble: Reply) -> None:
    arxiv.papers = {"2403.00001": entry("2403.00001")}
    arxiv.script = [trouble, trouble]
    assert api.find(["2403.00001"])["2403.00001"].status == "present"
    assert api.requests == 3


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (status(429), "status 429"),
        (status(503, Retry_After="0"), "status 503"),
        (text("<!doctype HTML><html></html>", "text/html"), "it is an HTML page"),
        (text(EMPTY.format(1, "<entry>")), "it is truncated or not XML"),
        (text("<rss/>"), "its root is rss"),
    ],
)
def test_trouble_that_stays_ends_with_one_message(arxiv: FakeArxiv, api: ArxivApi, trouble: Reply, said: str) -> None:
    arxiv.script = [trouble] * 9
    with pytest.raises(TransientFailure, match=said) as caught:
        api.find(["2403.00001"])
    assert arxiv.url in str(caught.value)
    assert "3 tries" in str(caught.value)
    assert "CITELOOM_METADATA_SNAPSHOT" in str(caught.value)
    assert len(arxiv.asked) == 3


def test_a_rest_longer_than_we_wait_is_told_at_once(arxiv: FakeArxiv, api: ArxivApi) -> None:
    arxiv.script = [status(429, Retry_After="3600")]
    with pytest.raises(TransientFailure, match="one try: status 429, asking for a pause of 3600 s"):
        api.find(["2403.00001"])
    assert len(arxiv.asked) == 1


def test_the_rest_that_arxiv_asks_for_binds_every_process(arxiv: FakeArxiv, settings: Settings, tmp_path: Path) -> None:
    arxiv.script = [status(503, Retry_After="7200")]
    with opened(settings, tmp_path) as api, pytest.raises(TransientFailure):
        api.find(["2403.00001"])
    before = float((tmp_path / "machine" / "arxiv-api-next-request").read_text())
    with Pace(tmp_path / "machine", gap=0.0)._lock():
        Pace(tmp_path / "machine", gap=0.0).postpone(1.0)
    assert float((tmp_path / "machine" / "arxiv-api-next-request").read_text()) >= before


@pytest.mark.parametrize("announced", ["100", "0", "-1", "many", ""])
def test_a_wrong_count_loses_nothing(arxiv: FakeArxiv, api: ArxivApi, announced: str) -> None:
    arxiv.papers = {name: entry(name) for name in ("2403.00001", "2403.00002", "2403.00003")}
    arxiv.script = [text(EMPTY.format(announced, entry("2403.00002")))]
    found = api.find([*arxiv.papers, "2403.00004"])
    assert [record.status for record in found.values()] == ["present", "present", "present", "absent"]


def test_an_empty_page_where_papers_are_announced_is_no_answer(arxiv: FakeArxiv, api: ArxivApi) -> None:
    arxiv.papers = {"2403.00001": entry("2403.00001")}
    arxiv.script = [text(EMPTY.format(1, ""))] * 2
    assert api.find(arxiv.papers)["2403.00001"].status == "present"


def test_entries_that_lack_what_every_entry_has_are_asked_for_again(arxiv: FakeArxiv, api: ArxivApi) -> None:
    arxiv.papers = {name: entry(name) for name in ("2403.00001", "2403.00002")}
    maimed = entry("2403.00001").replace("<published>2024-03-04T09:00:00Z</published>", "")
    anonymous = entry("2403.00002").replace("<id>http://arxiv.org/abs/2403.00002v1</id>", "")
    arxiv.script = [text(EMPTY.format(2, maimed + anonymous))]
    found = api.find(arxiv.papers)
    assert [(record.status, record.published) for record in found.values()] == [("present", "2024-03-04")] * 2


def test_a_redirection_is_a_request_in_its_own_turn(arxiv: FakeArxiv, settings: Settings, tmp_path: Path) -> None:
    arxiv.papers = {"2403.00001": entry("2403.00001")}
    arxiv.script = [lambda ids: Response("", 301, {"Location": f"/api/query?id_list={ids[0]}"})]
    with ArxivApi(settings, tmp_path, pace=Pace(tmp_path / "machine", gap=0.3)) as api:
        assert api.find(["2403.00001"])["2403.00001"].status == "present"
        assert api.requests == 2
    assert arxiv.times[1] - arxiv.times[0] >= 0.25  # the first of them may arrive late


def test_redirections_without_end_are_named(arxiv: FakeArxiv, api: ArxivApi) -> None:
    arxiv.script = [lambda ids: Response("", 302, {"Location": f"/api/query?id_list={ids[0]}"})] * 9
    with pytest.raises(PermanentFailure, match="redirects without end: check CITELOOM_ARXIV_API_URL"):
        api.find(["2403.00001"])
    assert len(arxiv.asked) == 6


def test_a_server_that_hangs_is_asked_again(arxiv: FakeArxiv, settings: Settings, tmp_path: Path) -> None:
    arxiv.papers = {"2403.00001": entry("2403.00001")}
    released = threading.Event()

    def hang(asked: list[str]) -> Response:
        released.wait(60)
        return feed([])

    arxiv.script = [hang]
    pace, patience = Pace(tmp_path / "machine", gap=0.0), Patience(3, 0.01, silence=0.5)
    threading.Timer(1.0, released.set).start()
    with ArxivApi(settings, tmp_path, pace=pace, patience=patience) as api:
        assert api.find(["2403.00001"])["2403.00001"].status == "present"
        assert api.requests >= 2


def test_an_answer_that_breaks_off_is_asked_for_again(settings: Settings, arxiv: FakeArxiv, api: ArxivApi) -> None:
    arxiv.papers = {"2403.00001": entry("2403.00001")}
    whole = feed([entry("2403.00001")]).get_data()
    # From an iterator: of a text Werkzeug counts the length itself.
    arxiv.script = [lambda ids: Response(iter([whole[:100]]), headers={"Content-Length": str(len(whole))})]
    assert api.find(["2403.00001"])["2403.00001"].status == "present"
    assert api.requests == 2


def test_an_answer_that_unpacks_to_more_than_we_hold_is_given_up(arxiv: FakeArxiv, api: ArxivApi) -> None:
    packed = gzip.compress(bytes(40 * 1024 * 1024))
    arxiv.script = [lambda ids: Response(packed, headers={"Content-Encoding": "gzip"})] * 9
    with pytest.raises(PermanentFailure, match="is longer than 33554432 bytes"):
        api.find(["2403.00001"])


def test_an_entity_bomb_is_refused_for_good(arxiv: FakeArxiv, api: ArxivApi) -> None:
    bomb = '<!DOCTYPE feed [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    arxiv.script = [text(bomb + EMPTY.format(0, "<title>&b;</title>"))]
    with pytest.raises(PermanentFailure, match="declares a document type or entities"):
        api.find(["2403.00001"])
    assert len(arxiv.asked) == 1


@pytest.mark.parametrize("code", [414, 400])
def test_a_list_that_is_too_long_is_halved(arxiv: FakeArxiv, api: ArxivApi, code: int) -> None:
    ids = [f"2403.{number:05}" for number in range(100)]
    arxiv.papers = {name: entry(name) for name in ids}
    arxiv.script = [status(code), status(code), None, None, None]
    assert {record.status for record in api.find(ids).values()} == {"present"}
    assert [len(asked) for asked in arxiv.asked] == [100, 50, 25, 25, 50]


def test_one_wrong_identifier_costs_no_other_its_record(arxiv: FakeArxiv, api: ArxivApi) -> None:
    error = (
        "<entry><id>https://arxiv.org/api/errors#incorrect_id_format_for_no-id</id><title>Error</title>"
        "<updated>2026-04-12T22:59:06Z</updated><published>2026-04-12T22:59:06Z</published></entry>"
    )
    ids = [f"2403.{number:05}" for number in range(7)]
    arxiv.papers = {name: entry(name) for name in ids}

    def strict(asked: list[str]) -> Response:
        return feed([error]) if "no-id" in asked else arxiv.usual(asked)

    arxiv.script = [strict] * 20
    found = api.find([*ids, "no-id"])
    assert [name for name, record in found.items() if record.status != "present"] == ["no-id"]
    assert len(arxiv.asked) == 7


def test_a_server_that_refuses_everything_is_no_list_of_absent_papers(arxiv: FakeArxiv, api: ArxivApi) -> None:
    arxiv.script = [status(400)] * 9
    with pytest.raises(PermanentFailure, match="refuses even the single identifier 2403"):
        api.find(["2403.00001", "2403.00002"])


def test_a_server_that_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    settings = load_settings(arxiv_api_url="http://127.0.0.1:9/api/query")
    with opened(settings, tmp_path) as api, pytest.raises(TransientFailure) as caught:
        api.find(["2403.00001"])
    assert "http://127.0.0.1:9/api/query cannot be reached" in str(caught.value)
    assert "CITELOOM_METADATA_SNAPSHOT" in str(caught.value)
    assert "CITELOOM_ARXIV_API=false" in str(caught.value)
    assert api.requests == 1


@pytest.mark.parametrize("url", ["nonsense", "ftp://arxiv.org/api", "http://host:port"])
def test_an_address_that_is_none_is_a_wrong_setting(url: str, tmp_path: Path) -> None:
    with (
        opened(load_settings(arxiv_api_url=url), tmp_path) as api,
        pytest.raises(SettingError, match="CITELOOM_ARXIV_API_URL"),
    ):
        api.find(["2403.00001"])


@pytest.mark.parametrize("name", ["Jörg <j@example.org>", "two\nlines"])
def test_a_user_agent_that_cannot_be_sent_is_a_wrong_setting(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="CITELOOM_ARXIV_USER_AGENT"):
        opened(load_settings(arxiv_user_agent=name), tmp_path)


# The pace.


TAKE_TURNS = """
    import sys, time
    from pathlib import Path
    from pipeline.arxiv.pace import Pace

    pace = Pace(Path(sys.argv[1]), gap=float(sys.argv[2]))
    for _ in range(3):
        with pace.turn():
            pace.wait()
            print(time.time(), flush=True)
"""


def test_two_processes_keep_the_gap_between_them(tmp_path: Path) -> None:
    gap = 0.3
    command = [sys.executable, "-c", dedent(TAKE_TURNS), str(tmp_path), str(gap)]
    children = [subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    starts = sorted(float(word) for child in children for word in child.communicate(timeout=60)[0].split())
    assert len(starts) == 6
    assert min(later - sooner for sooner, later in itertools.pairwise(starts)) >= gap


ASK = """
    import sys
    from pathlib import Path
    from pipeline.arxiv.api import ArxivApi
    from pipeline.arxiv.harvest import harvest
    from pipeline.arxiv.pace import Pace
    from pipeline.arxiv.rate_limited_client import Patience
    from pipeline.settings import load_settings
    from pipeline.engine.stage import Workspace

    url, machine, own, gap, way = sys.argv[1:]
    Path(own).mkdir()
    oai_url = url.replace("/api/query", "/oai")
    settings = load_settings(arxiv_api_url=url, oai_url=oai_url, data=own, metadata_snapshot=None)
    pace = Pace(Path(machine), gap=float(gap))
    if way == "api":
        with ArxivApi(settings, Path(own), pace=pace, patience=Patience(first_back_off=0.01)) as api:
            api.find(f"2403.{number:05}" for number in range(200))
    else:
        harvest(settings, Workspace(settings), pace=pace)
"""


def asking(arxiv: FakeArxiv, folder: Path, gap: float, ways: Sequence[str]) -> list[float]:
    """Gaps between the requests that several processes made, as the server saw them."""
    arxiv.papers = {f"2403.{number:05}": entry(f"2403.{number:05}") for number in range(200)}
    children = []
    for number, way in enumerate(ways):
        told = [arxiv.url, str(folder / "machine"), str(folder / f"own-{number}"), str(gap), way]
        children.append(subprocess.Popen([sys.executable, "-c", dedent(ASK), *told], cwd=PROJECT))
    assert [child.wait(120) for child in children] == [0] * len(ways)
    return [later - sooner for sooner, later in itertools.pairwise(arxiv.times)]


def test_the_server_sees_the_gap_between_the_requests_of_two_processes(arxiv: FakeArxiv, tmp_path: Path) -> None:
    gaps = asking(arxiv, tmp_path, 0.3, ["api", "api"])
    assert len(gaps) == 3
    assert min(gaps) >= 0.3


def test_the_api_and_a_harvest_share_one_pace(arxiv: FakeArxiv, httpserver: HTTPServer, tmp_path: Path) -> None:
    pages = iter([f"<ListRecords><resumptionToken>{number}</resumptionToken></ListRecords>" for number in range(3)])

    def reply(request: Request) -> Response:
        arxiv.times.append(time.time())
        content = next(pages, '<error code="noRecordsMatch"/>')
        head = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-11-20T00:00:00Z</responseDate>'
        return Response(f"{head}{content}</OAI-PMH>", content_type="application/xml")

    httpserver.expect_request("/oai").respond_with_handler(reply)
    gaps = asking(arxiv, tmp_path, 0.3, ["api", "oai"])
    assert len(gaps) == 5
    assert min(gaps) >= 0.3


ASK_ONCE = """
    import sys
    from pathlib import Path
    from pipeline.arxiv.api import ArxivApi
    from pipeline.settings import load_settings

    with ArxivApi(load_settings(arxiv_api_url=sys.argv[1]), Path(sys.argv[2])) as api:
        api.find([sys.argv[3]])
"""


def test_two_processes_that_set_nothing_are_three_seconds_apart(arxiv: FakeArxiv, tmp_path: Path) -> None:
    arxiv.papers = {name: entry(name) for name in ("2403.00001", "2403.00002")}
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", dedent(ASK_ONCE), arxiv.url, str(tmp_path)]
    children = [subprocess.Popen([*command, name], cwd=PROJECT, env=environment) for name in arxiv.papers]
    assert [child.wait(60) for child in children] == [0, 0]
    assert arxiv.times[1] - arxiv.times[0] >= 3.0


def test_a_rest_that_arxiv_asks_for_is_kept_by_another_process(arxiv: FakeArxiv, tmp_path: Path) -> None:
    arxiv.script = [status(503, Retry_After="2")]
    gaps = asking(arxiv, tmp_path, 0.05, ["api", "api"])
    assert gaps[0] >= 2.0
    assert len(gaps) == 4


@pytest.mark.parametrize("code", [429, 503])
def test_a_rest_until_a_date_is_kept(arxiv: FakeArxiv, api: ArxivApi, code: int) -> None:
    # The date has whole seconds, so that a rest until two seconds from now is one of at least one second.
    arxiv.script = [lambda ids: Response("", code, {"Retry-After": formatdate(time.time() + 2, usegmt=True)})]
    api.find(["2403.00001"])
    assert arxiv.times[1] - arxiv.times[0] >= 0.9


def test_a_clock_that_was_set_back_does_not_stop_us_for_ever(tmp_path: Path) -> None:
    (tmp_path / "arxiv-api-next-request").write_text("99999999999")
    assert Pace(tmp_path)._next() < 99999999999


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PermanentFailure, match="set XDG_CACHE_HOME"), Pace(tmp_path / "file" / "citeloom").turn():
        pass


def test_our_rules_are_arxivs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pace = Pace()
    assert (pace.gap, pace._folder) == (3.0, tmp_path / "citeloom")
