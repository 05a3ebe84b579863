"""Builders of the tests of arXiv's metadata: small workspaces, dump months, snapshots, clients in
other processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from pipeline import tables
from pipeline.engine.progress import Event, Notice
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings
from tests.fake_arxiv import FakeApi, FakeServer
from tests.month_tables import write_table

PROJECT = Path(__file__).resolve().parents[3]


def write_members(workspace: Workspace, month: str, ids: Iterable[str]) -> None:
    """A month of the dump that holds these papers."""
    write_table(
        workspace.root,
        tables.DUMP_MEMBERS,
        month,
        [{"arxiv_id": name, "subset": "no_problem"} for name in ids],
    )


def line(arxiv_id: str, **changes: Any) -> str:
    """A line of the snapshot."""
    content: Mapping[str, Any] = {
        "id": arxiv_id,
        "authors": "A. One and B. Two",
        "title": f"On {arxiv_id}",
        "comments": None,
        "doi": None,
        "journal-ref": None,
        "categories": "cs.CL cs.LG",
        "abstract": "We say.",
        "update_date": "2024-05-01",
        "versions": [{"version": "v1", "created": "Mon, 4 Mar 2024 09:00:00 GMT"}],
        "authors_parsed": [["One", "A.", ""], ["Two", "B.", ""]],
    }
    return json.dumps({**content, **changes})


def messages(events: Iterable[Event]) -> list[str]:
    """The messages for the user among the events of a run."""
    return [event.message for event in events if isinstance(event, Notice)]


CLIENT = """
    import sys
    from pathlib import Path
    from pipeline.arxiv.api import ArxivApi
    from pipeline.arxiv.harvest import harvest
    from pipeline.arxiv.rate_limited_client import Pace
    from pipeline.engine.stage import Workspace
    from pipeline.settings import load_settings

    way, url, data, machine, gap = sys.argv[1:]
    settings = load_settings(arxiv_api_url=url, oai_url=url, data=data, metadata_snapshot=None)
    pace = Pace(Path(machine), gap=float(gap))
    if way == "api":
        with ArxivApi(settings, Path(data), pace=pace) as api:
            api.find(f"2403.{number:05}" for number in range(300))
    else:
        harvest(Workspace(settings), pace=pace)
"""


def start_client(
    way: str, url: str, data: Path, machine: Path, gap: float = 0.0
) -> subprocess.Popen[bytes]:
    """A process that looks up 300 papers (`way` is api) or harvests (oai)."""
    data.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", dedent(CLIENT), way, url, str(data), str(machine), str(gap)],
        cwd=PROJECT,
    )


def kill_in_third_request(server: FakeServer, way: str, data: Path) -> None:
    """Start a client, and kill it while the server holds its third request."""
    reached, released = threading.Event(), threading.Event()

    def hold(request: Any) -> Response:
        reached.set()
        released.wait()
        return server.usual(request)

    server.script = [None, None, hold]
    client = start_client(way, server.url, data, data / "machine")
    reached.wait()
    client.kill()
    client.wait()
    released.set()


@pytest.fixture
def arxiv(httpserver: HTTPServer) -> FakeApi:
    """An API without papers."""
    return FakeApi(httpserver)


@pytest.fixture
def snapshot_file(tmp_path: Path) -> Path:
    return tmp_path / "snapshot.jsonl"


@pytest.fixture
def workspace(tmp_path: Path, snapshot_file: Path) -> Workspace:
    """A workspace whose snapshot is `snapshot_file` and that asks no API."""
    return Workspace(
        load_settings(data=tmp_path / "data", metadata_snapshot=snapshot_file, arxiv_api=False)
    )
