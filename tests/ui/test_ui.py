"""The Dagster UI as a user meets it: `citeloom ui` and headless Chromium on the sample corpus and
the scripted LLM.
"""

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.definitions import defs
from pipeline.settings.urls import is_loopback
from pipeline.stages import STAGES
from pipeline.storage.provenance import read_provenance
from tests.assets.conftest import make_place
from tests.processes import (
    ask_graphql,
    family,
    free_port,
    listening,
    start_logged,
    wait_until,
)
from tests.ui.browser import tool

pytestmark = [pytest.mark.ui, pytest.mark.slow]

MONTH = "2024-03"
SHOW_MARKDOWN = "(//tr[td[contains(., '{}')]]//*[text()='[Show Markdown]'])[1]"
PARTITIONS = "//input[starts-with(@placeholder, 'ex: ')]"
MATERIALIZE_ALL = "//button[starts-with(normalize-space(.), 'Materialize all')]"


@dataclass
class Running:
    """A `citeloom ui` at work: its address, its data root, its process, which leads a group of its
    own.
    """

    url: str
    root: Path
    process: subprocess.Popen[bytes]

    def stop(self):
        """End every process that it started: by Ctrl-C, as a user would, then by force."""
        self.interrupt()
        try:
            wait_until(lambda: not self.alive(), "the end of citeloom ui", seconds=60)
        except TimeoutError:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def interrupt(self):
        """What a terminal does on Ctrl-C: the signal goes to the whole group."""
        if self.alive():
            os.killpg(self.process.pid, signal.SIGINT)

    def alive(self):
        """Whether any process of the group is left."""
        self.process.poll()
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def answers(self):
        """Whether the webserver is up and has loaded every code location; raises where the command
        has ended.

        On a busy machine a location may fail to load at first; Dagster starts its server again
        after a minute.
        """
        if self.process.poll() is not None:
            raise RuntimeError(
                f"citeloom ui ended with {self.process.returncode}:"
                f" {(self.root / 'ui.log').read_text()}"
            )
        query = (
            "{ workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError {"
            " __typename } } } } }"
        )
        try:
            entries = ask_graphql(self.url, query)["workspaceOrError"]["locationEntries"]
        except OSError:
            return False
        states = [(entry["locationOrLoadError"] or {}).get("__typename") for entry in entries]
        return bool(states) and set(states) == {"RepositoryLocation"}


def start(place):
    """Start `citeloom ui` on a place and wait until it answers."""
    command = ["ui", "--port", str(free_port())]
    process = start_logged(command, place.root, place.environment, place.root / "ui.log")
    running = Running(f"http://127.0.0.1:{command[-1]}", place.root, process)
    try:
        wait_until(running.answers, "code locations of citeloom ui")
    except BaseException:
        running.stop()
        raise
    return running


@pytest.fixture(scope="module")
def running(tmp_path_factory, llm):
    """A `citeloom ui` for all tests here."""
    tool("chromedriver")
    folder = tmp_path_factory.mktemp("ui")
    server = start(make_place(folder / "data", llm_url=llm.url, llm_model=llm.model))
    yield server
    server.stop()


def test_the_graph_shows_the_groups_and_their_assets(page):
    groups = defaultdict(list)
    for spec in defs.resolve_all_asset_specs():
        groups[spec.group_name].append(spec.key.to_user_string())
    page.open("/asset-groups")
    page.says(*groups)
    for group, assets in groups.items():
        page.open(f"/locations/citeloom/asset-groups/{group}/list")
        page.says(*assets)
        page.open(f"/locations/citeloom/asset-groups/{group}/lineage")
        page.says("Materialize")  # a graph shortens long names, and draws only what is in view


def test_all_that_the_ui_starts_listens_on_loopback_alone(running):
    addresses = listening(family(running.process.pid))
    assert "127.0.0.1" in addresses
    assert all(is_loopback(address) for address in addresses)


def test_the_proxy_in_front_of_dagster_refuses_the_name_of_another_site(running):
    """What else it refuses is in tests/unit/doors/test_dagster_proxy.py."""
    rebound = urllib.request.Request(f"{running.url}/graphql", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="421"):
        urllib.request.urlopen(rebound)


def test_nothing_stands_between_a_new_user_and_the_graph(running):
    """Dagster's own invitation covers the page some seconds after it opened, unless dagster.yaml
    turns it off.
    """
    assert ask_graphql(running.url, "{ shouldShowNux }") == {"shouldShowNux": False}


def test_a_month_materialized_from_the_page_succeeds_and_tells_its_rows(page, running):
    page.open("/locations/citeloom/jobs/refresh_corpus")
    page.click_for(MATERIALIZE_ALL, PARTITIONS)
    page.find(PARTITIONS).send_keys(f"{MONTH}\ue007")  # Enter
    page.says("1 partition")
    page.click("//button[normalize-space(.)='Launch 1 run']")
    page.click("//*[self::a or self::button][normalize-space(.)='View']")
    wait_until(lambda: "Success" in page.text or "Failure" in page.text, "end of the run")
    assert "Failure" not in page.text, page.text
    for stage in STAGES:
        assert (running.root / stage.name / f"{MONTH}.parquet").is_file(), stage.name
    written = read_provenance(running.root / "passages" / f"{MONTH}.parquet")
    page.open(f"/assets/passages?view=partitions&partition={MONTH}")
    page.says("Materialized", "dagster/row_count", str(written.rows), "median_words")
    page.click(SHOW_MARKDOWN.format("preview"))
    page.says("section_path", "front_matter")
    assert "&#" not in page.text, "the preview shows HTML entities as they stand"
    page.open(f"/assets/report?view=partitions&partition={MONTH}")
    page.click(SHOW_MARKDOWN.format("picture"))
    picture = page.find("//img[starts-with(@src, 'data:image/svg+xml;base64,')]")
    assert page.driver.execute_script("return arguments[0].naturalWidth", picture) >= 600


@pytest.mark.faults
def test_ctrl_c_ends_everything_that_the_ui_started(tmp_path, llm):
    server = start(make_place(tmp_path / "data", llm_url=llm.url, llm_model=llm.model))
    try:
        server.interrupt()
        wait_until(lambda: not server.alive(), "end of citeloom ui")
        assert not server.alive()
    finally:
        server.stop()
