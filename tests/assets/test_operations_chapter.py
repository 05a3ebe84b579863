"""Every command of your-own-corpus.md and operate.md, run in the order of the pages.

The commands are read from the pages, so a command that is added there is run here. Those of the table of troubles are
in `test_troubles.py`, which belongs to `make test-faults`.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import pytest
from pytest_httpserver import HTTPServer

from pipeline import tables
from pipeline.errors import CiteloomError
from pipeline.index.opening import open_collections
from pipeline.settings import SAMPLE_QUESTIONS, SAMPLE_SNAPSHOT
from tests.assets.conftest import Place
from tests.assets.processes import start, wait_until
from tests.assets.test_index_commands import lose_points
from tests.assets.test_refresh import page_of, put_page
from tests.documents import DOCS, Line, fenced, inline, table_rows
from tests.fake_oai import FakeOai, raw, record
from tests.server.conftest import KEY, Server, qdrant, qdrant_binary, server_folder, sweep  # noqa: F401 - fixtures
from tests.unit.corpus.test_fetching import FakeSite
from tests.unit.corpus.test_fetching import text as html

MONTH, FETCHED = "2024-05", "2024-06"
CORPUS = (DOCS / "start" / "your-own-corpus.md").read_text()
OPERATIONS = (DOCS / "how-to" / "operate.md").read_text()
LOST_SERVER = "Qdrant's data is lost"


def _commands(text: str, place: str) -> list[Line]:
    return [line for line in inline(text, place) if line.text.startswith("citeloom ")]


BLOCKS = [*fenced(CORPUS, "your-own-corpus.md"), *fenced(OPERATIONS, "operate.md")]
TROUBLES = {row[0]: _commands(row[1], row[0]) for row in table_rows(OPERATIONS, "what you see")}


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Session:
    """A shell: a data root and settings, which `export` changes."""

    place: Place
    stands_for: Mapping[str, str]
    """Parts of a line of the page, and what replaces each of them here."""

    def type(self, line: Line) -> None:
        """Run a line; every command must succeed."""
        text = line.text
        for there, here in self.stands_for.items():
            text = text.replace(there, here)
        program, *arguments = shlex.split(text)
        if program == "export":
            exported = dict(argument.split("=", 1) for argument in arguments)
            self.place = replace(self.place, variables={**self.place.variables, **exported})
        elif (program, *arguments[:1]) == ("citeloom", "ui"):
            _open_and_end(self.place)
        else:
            assert program == "citeloom", line.place
            done = self.place.invoke(*arguments)
            assert done.exit_code == 0, f"{line.place}\n{done.output}"


def _open_and_end(place: Place) -> None:
    """Run `citeloom ui` until its page answers; then Ctrl-C, which ends all processes that it started."""
    port = _port()
    process = start(place, "ui", "--port", str(port))
    try:
        wait_until(lambda: _answers(port) or process.poll() is not None, 240)
        assert process.poll() is None, process.communicate()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert not _answers(port)


def _answers(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=30) as answer:
        return bool(answer.status == 200)
    return False


@pytest.fixture
def session(own: Place, dump: Path, oai: FakeOai, httpserver: HTTPServer, tmp_path: Path) -> Session:
    """A copy of the finished data root, with a fake arXiv that has one paper of a new month."""
    site = FakeSite(httpserver)
    oai.list = [[record("2406.90001", metadata=raw("2406.90001"))]]
    site.script["2406.90001"] = [html(page_of("2405.90002"))]
    httpserver.expect_request("/api/query").respond_with_data("<feed/>")
    place = own.with_settings(
        dump_dir=dump, questions=SAMPLE_QUESTIONS, oai_url=oai.url, html_url=site.url,
        arxiv_api_url=httpserver.url_for("/api/query"), arxiv_user_agent="a test (a@b.org)",
    )  # fmt: skip
    place = replace(place, variables={**place.variables, "XDG_CACHE_HOME": str(tmp_path / "machine")})
    return Session(place, {
        "/data/ar5iv": str(dump), "/data/arxiv-metadata-oai-snapshot.json": str(SAMPLE_SNAPSHOT),
        "/data/citeloom": str(own.root), "/data/export": str(tmp_path / "export"), "2026-10": FETCHED,
    })  # fmt: skip


def _failures(session: Session) -> list[Path]:
    return list((session.place.root / "failures").glob("*.json"))


def _fail(session: Session) -> None:
    """Make a stage fail on a damaged input, then repair the input."""
    file = session.place.root / "papers" / f"{MONTH}.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    assert session.place.invoke("run", "--months", MONTH, "--select", "passages", "--force").exit_code == 1
    file.write_bytes(whole)


def _change_a_page(session: Session) -> None:
    page = page_of("2405.90001").replace(b"</p>", b" And a sentence that is new.</p>", 1)
    put_page(Path(session.place.variables["CITELOOM_DUMP_DIR"]), "2405.90001", page)


def _is_done(session: Session) -> bool:
    told = json.loads(session.place.invoke("status", "--months", MONTH, "--json").stdout)
    return {row["state"] for row in told} == {"done"}


def _damage(session: Session) -> None:
    file = session.place.root / "passages" / f"{MONTH}.parquet"
    file.write_bytes(file.read_bytes()[:-100])


def _can_be_read(session: Session) -> bool:
    try:
        return bool(session.place.workspace().root.rows(tables.PASSAGES, MONTH))
    except CiteloomError:
        return False


def _is_whole(session: Session) -> bool:
    return session.place.invoke("audit").exit_code == 0


def _set_another_form(session: Session) -> None:
    session.place = session.place.with_settings(qdrant_quantization="binary")


def _runs(session: Session) -> bool:
    return session.place.invoke("run", "--months", MONTH, "--until", "index_receipts").exit_code == 0


# For each row of the table of troubles that names a command: how to bring it about, and whether it is fixed.
MENDED: Mapping[str, tuple[Callable[[Session], object], Callable[[Session], bool]]] = {
    "a month is red, the webhook sent a message, or a check of `months` fails": (
        _fail, lambda session: not _failures(session),
    ),
    "a month is yellow": (_change_a_page, _is_done),
    "a table is damaged, or of another version": (_damage, _can_be_read),
    "the audit reports missing, stale or foreign points": (
        lambda session: lose_points(session.place, MONTH, 3), _is_whole,
    ),
    "a run refuses because the model, its form or the quantization changed": (_set_another_form, _runs),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(1800)  # the shared data root takes minutes on a machine that others load
def test_every_command_of_the_pages_succeeds(session: Session, tmp_path: Path) -> None:
    for line in BLOCKS:
        session.type(line)
    assert (session.place.root / "index_receipts" / f"{FETCHED}.parquet").is_file(), "the fetched page is indexed"
    assert (tmp_path / "export" / "README.md").is_file()


def test_every_command_that_the_page_names_is_run() -> None:
    """In a block, or in the row of a trouble."""
    rows = [*MENDED, LOST_SERVER]
    typed = [line.text for line in (*BLOCKS, *(line for trouble in rows for line in TROUBLES[trouble]))]
    named = [line.text for line in _commands(OPERATIONS, "operate.md")]
    assert [text for text in named if not any(each == text or each.startswith(f"{text} ") for each in typed)] == []


@pytest.mark.server
def test_an_index_that_the_server_lost_is_restored(own: Place, qdrant: Server) -> None:  # noqa: F811 - the fixture
    place = own.with_settings(
        qdrant_url=qdrant.url, qdrant_grpc_port=qdrant.grpc_port, qdrant_api_key=KEY, qdrant_collection="operations"
    )
    session = Session(place, {})
    load, take, restore = TROUBLES[LOST_SERVER]
    session.type(load)
    session.type(take)
    (file,) = (own.root / "snapshots").iterdir()
    session.stands_for = {"FILE": str(file)}
    for line in (restore, load):
        _lose(place)
        assert place.invoke("audit").exit_code == 1
        session.type(line)
        assert place.invoke("audit").exit_code == 0, line.place


def _lose(place: Place) -> None:
    """Delete the collections of the place's alias on its server."""
    with place.entered():
        sweep(open_collections(place.workspace()))  # type: ignore[arg-type]


def test_the_table_of_schedules_and_sensors_is_complete() -> None:
    from pipeline.definitions import defs
    from sensors import stuck_runs

    repositories = [each.get_repository_def() for each in (defs, stuck_runs.defs)]
    there: list[tuple[dg.SensorDefinition | dg.ScheduleDefinition, str]]
    there = [(sensor_def, "sensor") for repository in repositories for sensor_def in repository.sensor_defs]
    there += [(schedule_def, "schedule") for repository in repositories for schedule_def in repository.schedule_defs]
    told = {(row[0], row[1]) for row in table_rows(OPERATIONS, "by itself")}
    assert told == {
        (f"{kind} `{each.name}`", "on" if each.default_status.value == "RUNNING" else "off") for each, kind in there
    }
