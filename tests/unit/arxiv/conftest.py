"""Builders of the tests of arXiv's metadata: small workspaces, dump months, snapshots, clients in
other processes.
"""

import json
import threading

import pytest

from pipeline import tables
from pipeline.arxiv.api import ArxivApi
from pipeline.arxiv.harvest import harvest
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.arxiv.rate_limited_client import Pace
from pipeline.engine.progress import Notice
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings
from tests.fake_arxiv import FakeApi
from tests.month_tables import write_table
from tests.processes import SPAWN
from tests.workspaces import make_workspace

MONTH = "2024-03"


def write_members(workspace, month, ids):
    """A month of the dump that holds these papers."""
    rows = [{"arxiv_id": name, "subset": "no_problem"} for name in ids]
    write_table(workspace.root, tables.DUMP_MEMBERS, month, rows)


def put_metadata(workspace, *names, stage=METADATA):
    """Run the stage `metadata` over a month of the dump that holds these papers."""
    write_members(workspace, MONTH, names)
    return run_stage(stage, workspace, MONTH)


def metadata_of(workspace):
    """The rows of the month by paper."""
    return {row["arxiv_id"]: row for row in workspace.root.rows(tables.METADATA, MONTH)}


def line(arxiv_id, **changes):
    """A line of the snapshot."""
    content = {
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


def messages(events):
    """The messages for the user among the events of a run."""
    return [event.message for event in events if isinstance(event, Notice)]


def ask(way, url, data, machine, gap):
    """Look up 300 papers (`way` is api), or harvest (oai)."""
    settings = load_settings(arxiv_api_url=url, oai_url=url, data=data, metadata_snapshot=None)
    pace = Pace(machine, gap=gap)
    if way == "api":
        with ArxivApi(settings, data, pace=pace) as api:
            api.find(f"2403.{number:05}" for number in range(300))
    else:
        harvest(Workspace(settings), pace=pace)


def start_client(way, url, data, machine, gap=0.0):
    """A process that asks."""
    data.mkdir(exist_ok=True)
    client = SPAWN.Process(target=ask, args=(way, url, data, machine, gap))
    client.start()
    return client


def kill_in_third_request(server, way, data):
    """Start a client, and kill it while the server holds its third request."""
    reached, released = threading.Event(), threading.Event()

    def hold(request):
        reached.set()
        released.wait()
        return server.usual(request)

    server.script = [None, None, hold]
    client = start_client(way, server.url, data, data / "machine")
    reached.wait()
    client.kill()
    client.join()
    released.set()


@pytest.fixture
def arxiv(httpserver):
    """An API without papers."""
    return FakeApi(httpserver)


@pytest.fixture
def snapshot_file(tmp_path):
    return tmp_path / "snapshot.jsonl"


@pytest.fixture
def workspace(tmp_path, snapshot_file):
    """A workspace whose snapshot is `snapshot_file` and that asks no API."""
    return make_workspace(tmp_path / "data", metadata_snapshot=snapshot_file, arxiv_api=False)
