"""Harvesting over OAI-PMH, against a loopback server that speaks arXiv's dialect, and some bad answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from lxml import etree
from werkzeug import Request, Response

from pipeline import tables
from pipeline.arxiv.harvest import HarvestReport, harvest
from pipeline.arxiv.harvest_store import HarvestStore
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.arxiv.oai import read_record
from pipeline.arxiv.pace import Pace
from pipeline.arxiv.rate_limited_client import Patience
from pipeline.engine import progress
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.settings import load_settings
from tests.fake_oai import TODAY, FakeOai, Reply, answer, deleted, error, page, raw, record, status, text

from .conftest import line, write_members

PROJECT = Path(__file__).resolve().parents[3]
OAI = "{http://www.openarchives.org/OAI/2.0/}"


@pytest.fixture
def place(oai: FakeOai, tmp_path: Path) -> Workspace:
    """A workspace without a snapshot that harvests from the fake."""
    settings = load_settings(
        data=tmp_path / "data",
        metadata_snapshot=None,
        arxiv_api=False,
        oai_url=oai.url,
        arxiv_user_agent="test (a@b.org)",
    )
    return Workspace(settings)


def run(place: Workspace, **more: Any) -> HarvestReport:
    pace = Pace(place.settings.data_root / "machine", gap=0.0)
    return harvest(place.settings, place, pace=pace, patience=Patience(3, 0.01), **more)


def kept(place: Workspace, *ids: str) -> dict[str, Any]:
    return HarvestStore(place.cache("oai")).find(ids)


def with_snapshot(place: Workspace, file: Path) -> Workspace:
    return Workspace(place.settings.model_copy(update={"metadata_snapshot": file}))


# What a record says.


def test_every_recorded_record_is_read(shared_data: Path) -> None:
    found = {}
    for file in sorted((shared_data / "metadata" / "oai_pmh").glob("*.xml")):
        for metadata in etree.parse(file).iter(f"{OAI}metadata"):
            told = read_record(metadata)
            found[told.arxiv_id] = told
    assert len(found) == 19
    assert all(
        told.title and told.authors and told.abstract and told.categories and told.published for told in found.values()
    )
    single = found["1401.2122"]
    assert (single.published, single.updated, single.version) == ("2014-01-09", "2017-10-23", None)
    assert (single.authors, single.primary_category) == (("A. Sergyeyev",), "math.AP")
    assert single.doi == "10.1007/s11005-017-1013-4"
    assert single.journal_ref == "Lett. Math. Phys. 108 (2018), no. 2, 359-376"


def test_the_raw_format_tells_the_versions(oai: FakeOai, place: Workspace) -> None:
    oai.list = [[record("2403.00001", metadata=raw("2403.00001", 3, comments="9 pages", doi="10.1/x"))]]
    run(place)
    told = kept(place, "2403.00001")["2403.00001"].record
    assert (told.version, told.published, told.updated) == (3, "2024-04-01", "2024-04-03")
    assert (told.title, told.authors, told.abstract) == ("On 2403.00001", ("A. One", "B. C. Two"), "We say.")
    assert (told.categories, told.comment, told.doi) == (("cs.CL", "cs.LG"), "9 pages", "10.1/x")
    assert (told.source, told.fetched_at, told.status) == ("oai", f"{TODAY}T01:02:03Z", "present")


def test_a_newest_version_without_source_is_withdrawn(oai: FakeOai, place: Workspace) -> None:
    gone = raw("2403.00001", source="<source_type>I</source_type>")
    noted = raw("2403.00002", comments="This paper has been withdrawn by the authors")
    oai.list = [[record("2403.00001", metadata=gone), record("2403.00002", metadata=noted), record("2403.00003")]]
    report = run(place)
    assert (report.withdrawn, report.new) == (2, 1)
    assert kept(place, "2403.00001")["2403.00001"].record.status == "withdrawn"


# What is asked, and how far it goes.


def test_the_first_harvest_asks_for_everything_of_computer_science(oai: FakeOai, place: Workspace) -> None:
    oai.list = [[record("2403.00001"), record("cs/0001001")], [record("2404.00001")], [record("2404.00002")]]
    report = run(place)
    assert oai.asked == [
        {"verb": "ListRecords", "metadataPrefix": "arXivRaw", "set": "cs"},
        {"verb": "ListRecords", "resumptionToken": "from=x&skip=1"},
        {"verb": "ListRecords", "resumptionToken": "from=x&skip=2"},
    ]
    assert oai.agents == {"test (a@b.org)"}
    assert (report.new, report.months, report.requests) == (4, ("2000-01", "2024-03", "2024-04"), 3)
    assert (report.since, report.until) == (None, TODAY)
    assert str(report) == (
        "Harvested up to 2024-11-20 in 3 requests: 4 new; of 2000-01, 2024-03, 2024-04: citeloom run does them again"
    )


def test_with_a_snapshot_the_first_harvest_begins_a_day_before_its_newest_change(
    oai: FakeOai, place: Workspace, snapshot_file: Path
) -> None:
    snapshot_file.write_text(
        line("2403.00001", update_date="2024-10-01") + "\n" + line("2403.00002", update_date="2023-01-01")
    )
    assert run(with_snapshot(place, snapshot_file)).since == "2024-09-30"
    assert oai.asked[0]["from"] == "2024-09-30"


def test_the_next_harvest_begins_a_day_before_the_last_one_did_and_what_comes_again_is_no_news(
    oai: FakeOai, place: Workspace
) -> None:
    oai.list = [[record("2403.00001"), record("2403.00002")]]
    run(place)
    before = HarvestStore(place.cache("oai")).digest(["2403.00001"])
    oai.list = [
        [
            record("2403.00001", "2024-11-19"),
            record("2403.00002", "2024-11-19", raw("2403.00002", 2)),
            record("2404.00009", "2024-11-20"),
        ]
    ]
    report = run(place)
    assert oai.asked[1]["from"] == "2024-11-19"
    assert (report.unchanged, report.changed, report.new) == (1, 1, 1)
    assert report.months == ("2024-03", "2024-04")
    assert HarvestStore(place.cache("oai")).digest(["2403.00001"]) == before


def test_nothing_new_is_no_error(oai: FakeOai, place: Workspace) -> None:
    report = run(place)
    assert (report.new, report.months, report.until) == (0, (), TODAY)
    assert str(report) == "Harvested up to 2024-11-20 in 1 requests: nothing"
    assert run(place).since == "2024-11-19"


def test_a_last_day_is_asked_for_and_remembered(oai: FakeOai, place: Workspace) -> None:
    oai.list = [[record("2403.00001", "2024-10-01")]]
    assert run(place, until="2024-10-05", since="2024-09-01").until == "2024-10-05"
    assert (oai.asked[0]["from"], oai.asked[0]["until"]) == ("2024-09-01", "2024-10-05")
    run(place)
    assert oai.asked[1]["from"] == "2024-10-04"


def test_days_left_out_by_a_later_beginning_are_asked_for_the_next_time(oai: FakeOai, place: Workspace) -> None:
    run(place, until="2024-10-05")
    run(place, since="2024-11-01")
    run(place)
    assert [asked.get("from") for asked in oai.asked] == [None, "2024-11-01", "2024-10-04"]


@pytest.mark.parametrize("day", ["yesterday", "2024-13-01", "20261101", "2024-11-01T00:00:00"])
def test_a_day_that_is_none_is_a_wrong_argument(place: Workspace, oai: FakeOai, day: str) -> None:
    with pytest.raises(SettingError, match=r"--from .* is not a day"):
        run(place, since=day)
    assert oai.asked == []


# Breaking off.


CHILD = """
    import sys
    from pathlib import Path
    from pipeline.arxiv.harvest import harvest
    from pipeline.arxiv.pace import Pace
    from pipeline.settings import load_settings
    from pipeline.engine.stage import Workspace

    url, data = sys.argv[1:]
    place = Workspace(load_settings(data=data, metadata_snapshot=None, oai_url=url))
    harvest(place.settings, place, pace=Pace(Path(data) / "machine", gap=0.0))
"""


def test_a_killed_harvest_goes_on_from_its_last_page(oai: FakeOai, place: Workspace) -> None:
    oai.list = [[record(f"2403.0000{number}")] for number in range(5)]
    reached, released = threading.Event(), threading.Event()

    def hang(request: Request) -> Response:
        reached.set()
        released.wait(60)
        return oai.usual(request)

    oai.script = [None, None, hang]
    command = [sys.executable, "-c", dedent(CHILD), oai.url, str(place.settings.data_root)]
    child = subprocess.Popen(command, cwd=PROJECT)
    assert reached.wait(60)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    released.set()
    report = run(place)
    assert [asked.get("resumptionToken", "")[-1:] for asked in oai.asked] == ["", "1", "2", "2", "3", "4"]
    assert (report.new, report.requests) == (3, 3)
    assert len(kept(place, *(f"2403.0000{number}" for number in range(5)))) == 5
    assert run(place).since == "2024-11-19"


def test_a_token_that_has_expired_is_not_used(oai: FakeOai, place: Workspace) -> None:
    oai.script = [lambda _: page([record("2403.00001", "2024-11-03")], "t1", "2020-01-01T00:00:00Z"), status(404)]
    with pytest.raises(PermanentFailure, match="status 404: check CITELOOM_OAI_URL"):
        run(place)
    oai.list = [[record("2403.00001", "2024-11-03"), record("2403.00002", "2024-11-04")]]
    report = run(place)
    assert (oai.asked[2]["from"], report.new, report.unchanged) == ("2024-11-03", 1, 1)


def test_a_refused_token_begins_again_from_the_last_day(oai: FakeOai, place: Workspace) -> None:
    oai.script = [
        lambda _: page([record("2403.00001", "2024-11-03"), record("2403.00002", "2024-11-04")], "t1"),
        lambda _: error("badResumptionToken"),
    ]
    oai.list = [[record("2403.00002", "2024-11-04"), record("2403.00003", "2024-11-05")]]
    listener = Notes()
    with progress.listening(listener):
        report = run(place)
    assert [asked.get("from") for asked in oai.asked] == [None, None, "2024-11-04"]
    assert (report.new, report.unchanged, report.since) == (3, 1, None)
    assert "refuses to go on (as it is); beginning again from 2024-11-04" in listener.notes[0]


def test_pages_in_no_order_begin_again_from_the_first_day(oai: FakeOai, place: Workspace) -> None:
    oai.script = [
        lambda _: page([record("2403.00001", "2024-11-09"), record("2403.00002", "2024-11-04")], "t1"),
        lambda _: error("badResumptionToken"),
    ]
    run(place, since="2024-11-01")
    assert [asked.get("from") for asked in oai.asked] == ["2024-11-01", None, "2024-11-01"]


def test_that_pages_came_in_no_order_is_known_to_the_next_harvest(oai: FakeOai, place: Workspace) -> None:
    oai.script = [
        lambda _: page([record("2403.00001", "2024-11-09"), record("2403.00002", "2024-11-04")], "t1"),
        status(404),
        lambda _: error("badResumptionToken"),
    ]
    with pytest.raises(PermanentFailure):
        run(place, since="2024-11-01")
    run(place)
    assert [asked.get("from") for asked in oai.asked] == ["2024-11-01", None, None, "2024-11-01"]


def test_a_server_whose_clock_is_ahead_loses_us_no_day(oai: FakeOai, place: Workspace) -> None:
    oai.script = [lambda _: page([record("2403.00001")], day="2099-01-01")]
    assert run(place).until == datetime.now(UTC).date().isoformat()


def test_a_server_that_refuses_all_its_tokens_is_given_up(oai: FakeOai, place: Workspace) -> None:
    def reply(request: Request) -> Response:
        return error("badResumptionToken") if "resumptionToken" in request.args else page([record("2403.00001")], "t")

    oai.script = [reply] * 20
    with pytest.raises(TransientFailure, match="refuses its own resumption tokens"):
        run(place)
    assert len(oai.asked) == 8


def test_a_token_that_leads_to_itself_is_no_endless_harvest(oai: FakeOai, place: Workspace) -> None:
    oai.script = [lambda _: page([record("2403.00001")], "t")] * 9
    with pytest.raises(TransientFailure, match="the same resumption token twice"):
        run(place)
    assert len(oai.asked) == 2


def test_a_list_that_ends_with_no_more_records_is_at_its_end(oai: FakeOai, place: Workspace) -> None:
    oai.script = [lambda _: page([record("2403.00001")], "t"), lambda _: error("noRecordsMatch")]
    assert run(place).new == 1
    assert run(place).since == "2024-11-19"


def test_one_harvest_runs_at_a_time(oai: FakeOai, place: Workspace) -> None:
    def second(request: Request) -> Response:
        with pytest.raises(TransientFailure, match="another harvest holds"):
            run(place)
        return oai.usual(request)

    oai.script = [second]
    oai.list = [[record("2403.00001")]]
    assert run(place).new == 1
    assert len(oai.asked) == 1


# Bad answers.


WHOLE = page([record("2403.00001")]).get_data(as_text=True)


@pytest.mark.parametrize(
    "trouble",
    [
        status(503, Retry_After="0"),
        status(503),
        status(429, Retry_After="Thu, 01 Jan 1970 00:00:00 GMT"),
        status(500),
        text("<!DOCTYPE html><html><body>Rate exceeded.</body></html>", "text/html"),
        text('<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x.dtd"><html/>'),
        text(WHOLE[:-30]),
        text(WHOLE[: len(WHOLE) // 2]),
        text(WHOLE.replace("UTF-8", "no-such-encoding")),
        text(""),
        text("<feed xmlns='http://www.w3.org/2005/Atom'/>"),
        text(answer("").get_data(as_text=True)),
        text(answer("<ListRecords/>", "some day").get_data(as_text=True)),
        text(WHOLE.replace("<metadata>", "<metadata>" + "<a>" * 500 + "</a>" * 500)),
    ],
)
def test_trouble_that_passes_is_lived_through(oai: FakeOai, place: Workspace, trouble: Reply) -> None:
    oai.list = [[record("2403.00001")], [record("2403.00002")]]
    oai.script = [trouble, None, trouble, trouble, None]
    report = run(place)
    assert (report.new, report.requests) == (2, 5)


def test_trouble_that_stays_ends_with_one_message_and_keeps_the_pages_before(oai: FakeOai, place: Workspace) -> None:
    oai.list = [[record("2403.00001")], [record("2403.00002")]]
    oai.script = [None, *[text(WHOLE[:-30])] * 3]
    with pytest.raises(TransientFailure, match="3 tries: its answer is not usable: it is truncated") as caught:
        run(place)
    assert oai.url in str(caught.value)
    assert "run citeloom harvest again to go on from there" in str(caught.value)
    assert (run(place).requests, len(kept(place, "2403.00001", "2403.00002"))) == (1, 2)


def test_an_entity_bomb_is_refused_for_good(oai: FakeOai, place: Workspace) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    oai.script = [text(WHOLE.replace("?>", f"?>{bomb}", 1).replace("We say", "&b;"))]
    with pytest.raises(PermanentFailure, match="declares a document type or entities"):
        run(place)
    assert len(oai.asked) == 1


@pytest.mark.parametrize("code", ["badArgument", "cannotDisseminateFormat", "noSetHierarchy", "somethingElse"])
def test_a_refused_request_is_named(oai: FakeOai, place: Workspace, code: str) -> None:
    oai.script = [lambda _: error(code)]
    with pytest.raises(PermanentFailure, match=r"refuses to list records: .* as it is; check CITELOOM_OAI_URL"):
        run(place)


def test_an_answer_in_another_encoding_is_read(oai: FakeOai, place: Workspace) -> None:
    content = page([record("2403.00001", metadata=raw("2403.00001", title="Über Ähnlichkeit"))]).get_data(as_text=True)
    oai.script = [text(content.replace("UTF-8", "UTF-16").encode("utf-16"))]
    run(place)
    assert kept(place, "2403.00001")["2403.00001"].record.title == "Über Ähnlichkeit"


def test_a_record_that_is_there_twice_counts_as_its_newest(oai: FakeOai, place: Workspace) -> None:
    old, new = raw("2403.00001", title="Old"), raw("2403.00001", 2, title="New")
    oai.list = [[record("2403.00001", "2024-11-04", new), record("2403.00001", "2024-11-03", old)]]
    assert run(place).new == 1
    assert kept(place, "2403.00001")["2403.00001"].record.title == "New"


def test_a_broken_record_costs_no_other_its_place_and_is_in_the_ledger(oai: FakeOai, place: Workspace) -> None:
    wrong = record("2403.00002", metadata=raw("2403.00009"))
    unknown = record("2403.00003", metadata="<oai_dc:dc xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/'/>")
    undated = record("2403.00004").replace("Mon, 1 Apr 2024 09:00:00 GMT", "some day")
    headless = "<record><metadata/></record>"
    never = record("2403.00005", "2024-02-31")
    aimless = record("2403.00006", metadata=raw("2403.00006", categories=""))
    oai.list = [[wrong, record("2403.00001"), unknown, undated, headless, never, aimless]]
    report = run(place)
    assert (report.new, report.broken) == (1, 6)
    write_members(place, "2024-03", ["2403.00001", "2403.00002"])
    outcome = run_stage(METADATA, place, "2024-03")
    assert outcome.left_out == {"broken_harvested_record": 1, "no_metadata": 1}
    oai.list = [[record("2403.00002")]]
    run(place)
    assert run_stage(METADATA, place, "2024-03").left_out == {}


def test_a_store_that_is_none_is_named(oai: FakeOai, place: Workspace) -> None:
    (place.cache("oai") / "harvest.sqlite").write_bytes(b"something else " * 1000)
    with pytest.raises(PermanentFailure, match=r"harvest\.sqlite, cannot be read or written .* move the file away"):
        run(place)


def test_a_store_that_a_kill_left_without_tables_holds_nothing_yet(oai: FakeOai, place: Workspace) -> None:
    (place.cache("oai") / "harvest.sqlite").touch()
    assert (kept(place, "2403.00001"), HarvestStore(place.cache("oai")).digest(["2403.00001"])) == ({}, None)
    oai.list = [[record("2403.00001")]]
    assert run(place).new == 1


def test_records_that_tell_no_identifier_are_counted_one_by_one(oai: FakeOai, place: Workspace) -> None:
    oai.list = [["<record><metadata/></record>"] * 3]
    report = run(place)
    assert (report.broken, report.months) == (3, ())


def test_a_record_that_becomes_unreadable_makes_its_month_due_once(oai: FakeOai, place: Workspace) -> None:
    oai.list = [[record("2403.00001")]]
    run(place)
    write_members(place, "2024-03", ["2403.00001"])
    run_stage(METADATA, place, "2024-03")
    oai.list = [[record("2403.00001", "2024-11-19", "<nothing/>")]]
    report = run(place)
    assert (report.broken, report.months) == (1, ("2024-03",))
    assert state(METADATA, place, "2024-03") is State.STALE
    assert run_stage(METADATA, place, "2024-03").left_out == {"broken_harvested_record": 1}
    report = run(place)
    assert (report.broken, report.months, state(METADATA, place, "2024-03")) == (1, (), State.DONE)


def test_a_token_of_blanks_is_none(oai: FakeOai, place: Workspace) -> None:
    oai.script = [lambda _: page([record("2403.00001")], "\n  ")]
    assert (run(place).requests, run(place).since) == (1, "2024-11-19")


def test_going_on_from_a_token_warns_of_nothing(
    oai: FakeOai, place: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    oai.list = [[record("2403.00001")], [record("2403.00002")]]
    oai.script = [None, status(404)]
    with pytest.raises(PermanentFailure):
        run(place)
    assert run(place).new == 1
    assert [told.getMessage() for told in caplog.records if told.levelname == "WARNING"] == []


class Notes(progress.Listener):
    """Keeps what a user is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def noted(self, message: str) -> None:
        self.notes.append(message)


# What the stage makes of it.


def rows(place: Workspace, month: str = "2024-03") -> dict[str, dict[str, Any]]:
    return {row["arxiv_id"]: row for row in place.root.rows(tables.METADATA, month)}


def test_the_newer_of_snapshot_and_harvest_is_believed(oai: FakeOai, place: Workspace, snapshot_file: Path) -> None:
    here = with_snapshot(place, snapshot_file)
    old, new = line("2403.00001", update_date="2024-11-09"), line("2403.00002", update_date="2024-11-11")
    snapshot_file.write_text(f"{old}\n{new}\n")
    oai.list = [
        [record(f"2403.0000{number}", "2024-11-10", raw(f"2403.0000{number}", 2, title="News")) for number in (1, 2, 3)]
    ]
    run(here)
    write_members(here, "2024-03", ["2403.00001", "2403.00002", "2403.00003", "2403.00004"])
    run_stage(METADATA, here, "2024-03")
    found = {name: (row["source"], row["title"], row["status"]) for name, row in rows(here).items()}
    assert found == {
        "2403.00001": ("oai", "News", "present"),
        "2403.00002": ("snapshot", "On 2403.00002", "present"),
        "2403.00003": ("oai", "News", "present"),
        "2403.00004": (None, None, "absent"),
    }


def test_a_harvest_makes_those_months_due_whose_papers_changed(
    oai: FakeOai, place: Workspace, snapshot_file: Path
) -> None:
    here = with_snapshot(place, snapshot_file)
    snapshot_file.write_text("\n".join(line(name) for name in ("2403.00001", "2404.00001", "2405.00001")))
    for month, name in (("2024-03", "2403.00001"), ("2024-04", "2404.00001"), ("2024-05", "2405.00001")):
        write_members(here, month, [name])
        run_stage(METADATA, here, month)
    oai.list = [[record("2403.00001"), record("2405.99999")]]
    assert run(here).months == ("2024-03", "2024-05")
    months = ("2024-03", "2024-04", "2024-05")
    assert [state(METADATA, here, month) for month in months] == [State.STALE, State.DONE, State.DONE]
    run_stage(METADATA, here, "2024-03")
    oai.list = [[record("2403.00001", "2024-11-19")]]
    run(here)
    assert [state(METADATA, here, month) for month in months] == [State.DONE] * 3


def test_a_harvest_that_says_what_the_snapshot_says_leaves_the_row_as_it_is(
    oai: FakeOai, place: Workspace, snapshot_file: Path
) -> None:
    here = with_snapshot(place, snapshot_file)
    snapshot_file.write_text(
        line("2403.00001", versions=[{"version": "v1", "created": "Mon, 1 Apr 2024 09:00:00 GMT"}])
    )
    write_members(here, "2024-03", ["2403.00001"])
    run_stage(METADATA, here, "2024-03")
    before = rows(here)
    oai.list = [[record("2403.00001", metadata=raw("2403.00001", authors="A. One and B. Two"))]]
    run(here)
    assert not run_stage(METADATA, here, "2024-03").skipped
    assert rows(here) == before


def test_a_paper_that_arxiv_deleted_counts_as_withdrawn(oai: FakeOai, place: Workspace, snapshot_file: Path) -> None:
    here = with_snapshot(place, snapshot_file)
    snapshot_file.write_text(line("2403.00001"))
    oai.list = [
        [record("2403.00002"), deleted("2403.00001", "2024-11-10")],
        [deleted("2403.00002", "2024-11-11"), deleted("2403.00003", "2024-11-11")],
    ]
    report = run(here)
    assert (report.new, report.deleted) == (1, 3)
    write_members(here, "2024-03", ["2403.00001", "2403.00002", "2403.00003"])
    run_stage(METADATA, here, "2024-03")
    found = {name: (row["title"], row["status"]) for name, row in rows(here).items()}
    assert found == {
        "2403.00001": ("On 2403.00001", "withdrawn"),
        "2403.00002": ("On 2403.00002", "withdrawn"),
        "2403.00003": (None, "withdrawn"),
    }
    oai.list = [[record("2403.00002", "2024-11-19")]]
    assert run(here).changed == 1
    run_stage(METADATA, here, "2024-03")
    assert rows(here)["2403.00002"]["status"] == "present"


def test_the_command_tells_what_it_brought(oai: FakeOai, tmp_path: Path) -> None:
    oai.list = [[record("2403.00001")]]
    here = {"CITELOOM_OAI_URL": oai.url, "CITELOOM_DATA": str(tmp_path / "data"), "CITELOOM_METADATA_SNAPSHOT": ""}
    environment = {**os.environ, **here, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    program = "from pipeline.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "harvest", "--from", "2024-11-01", "--json"],
        cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["new"], told["months"], told["since"]) == (1, ["2024-03"], "2024-11-01")


def test_a_record_whose_text_alone_changed_is_changed(oai: FakeOai, place: Workspace) -> None:
    oai.list = [[record("2403.00001")]]
    run(place)
    oai.list = [[record("2403.00001", "2024-11-19", raw("2403.00001", comments="A note"))]]
    assert replace(run(place), requests=0).changed == 1
