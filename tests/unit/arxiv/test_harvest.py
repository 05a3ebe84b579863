"""Harvesting over OAI-PMH, against a loopback server that speaks arXiv's dialect, and some bad
answers.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape

import pytest

from pipeline.arxiv.api import read_feed
from pipeline.arxiv.harvest import harvest
from pipeline.arxiv.harvest_store import HarvestStore
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.arxiv.rate_limited_client import Pace
from pipeline.arxiv.snapshot import parse_record
from pipeline.engine.progress import listening
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from tests.command import invoke
from tests.fake_arxiv import FEED, TODAY, answer, deleted, error, page, raw, record, reply, status
from tests.workspaces import changed, make_workspace

from .conftest import (
    MONTH,
    kill_in_third_request,
    line,
    messages,
    metadata_of,
    put_metadata,
    write_members,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def place(oai, tmp_path):
    """A workspace without a snapshot that harvests from the fake."""
    return make_workspace(
        tmp_path / "data",
        metadata_snapshot=None,
        arxiv_api=False,
        oai_url=oai.url,
        arxiv_user_agent="test (a@b.org)",
    )


def run(place, **more):
    pace = Pace(place.settings.data_root / "machine", gap=0.0, tries=3, first_back_off=0.01)
    return harvest(place, pace=pace, **more)


def stored(place, *ids):
    changes = HarvestStore(place.cache("oai")).find(ids)
    return {name: change.record for name, change in changes.items()}


def with_snapshot(place, file, *lines):
    """The workspace with a snapshot of these lines."""
    file.write_text("\n".join(lines))
    return changed(place, metadata_snapshot=file)


def days_asked_from(oai):
    return [asked.get("from") for asked in oai.asked]


# What a record says.


@pytest.mark.parametrize("comment", ["12 pages", "We withdraw this paper"])
def test_api_harvest_and_snapshot_give_the_same_record(oai, place, comment):
    told = {
        "title": "On\n  words &amp; numbers",
        "authors": "Ann Lee, Bob Roe and Caf\u00e9 Ole",
        "abstract": " We say. ",
        "comments": comment,
        "doi": "https://doi.org/10.1/A",
        "journal-ref": "J. Words\n 3",
    }
    oai.list = [[record("2404.00001", metadata=raw("2404.00001", 2, **told))]]
    run(place)
    names = "".join(
        f"<author><name>{name}</name></author>" for name in ("Ann Lee", "Bob Roe", "Caf\u00e9 Ole")
    )
    entry = (
        "<entry><id>http://arxiv.org/abs/2404.00001v2</id>"
        f"<title>{told['title']}</title><summary>{told['abstract']}</summary>{names}"
        "<published>2024-04-01T09:00:00Z</published><updated>2024-04-02T09:00:00Z</updated>"
        f"<arxiv:comment>{comment}</arxiv:comment><arxiv:doi>{told['doi']}</arxiv:doi>"
        f"<arxiv:journal_ref>{told['journal-ref']}</arxiv:journal_ref>"
        '<arxiv:primary_category term="cs.CL"/><category term="cs.CL"/><category term="cs.LG"/>'
        "</entry>"
    )
    days = ("Mon, 1 Apr 2024 09:00:00 GMT", "Tue, 2 Apr 2024 09:00:00 GMT")
    snapshot = parse_record(
        {name: unescape(text) for name, text in told.items()}
        | {
            "id": "2404.00001",
            "categories": "cs.CL cs.LG",
            "versions": [{"version": f"v{n}", "created": day} for n, day in enumerate(days, 1)],
        }
    )
    harvested = stored(place, "2404.00001")["2404.00001"]
    assert (harvested.source, harvested.fetched_at) == ("oai", f"{TODAY}T01:02:03Z")
    asked = read_feed(FEED.format(1, entry).encode())["2404.00001"]
    assert asked.status == ("present" if comment == "12 pages" else "withdrawn")
    for other in (harvested, asked):
        assert replace(other, source="snapshot", fetched_at=None) == snapshot


def test_a_newest_version_without_source_is_withdrawn(oai, place):
    gone = raw("2403.00001", source="<source_type>I</source_type>")
    noted = raw("2403.00002", comments="This paper has been withdrawn by the authors")
    twice = record("2403.00003", metadata=raw("2403.00003", 2, title="New"))
    oai.list = [
        [
            record("2403.00001", metadata=gone),
            record("2403.00002", metadata=noted),
            twice,
            record("2403.00003", "2024-11-01"),
        ]
    ]
    report = run(place)
    assert (report.withdrawn, report.new) == (2, 1)
    assert stored(place, "2403.00003")["2403.00003"].title == "New"
    assert stored(place, "2403.00001")["2403.00001"].status == "withdrawn"


# What is asked, and how far it goes.


def test_the_first_harvest_asks_for_everything_of_computer_science(oai, place):
    oai.list = [
        ["2403.00001", "cs/0001001"],
        ["2404.00001"],
        ["2404.00002"],
    ]
    report = run(place)
    assert oai.asked == [
        {"verb": "ListRecords", "metadataPrefix": "arXivRaw", "set": "cs"},
        {"verb": "ListRecords", "resumptionToken": "from=x&skip=1"},
        {"verb": "ListRecords", "resumptionToken": "from=x&skip=2"},
    ]
    assert oai.agents == {"test (a@b.org)"}
    assert (report.new, report.months, report.requests) == (4, ("2000-01", "2024-03", "2024-04"), 3)
    assert (report.since, report.until) == (None, TODAY)
    assert str(report).startswith("Harvested up to 2024-11-20 in 3 requests: 4 new; of 2000-01, ")
    oai.list = []
    report = run(place)
    assert (report.since, report.new, report.months) == ("2024-11-19", 0, ())


def test_with_a_snapshot_the_first_harvest_begins_a_day_before_its_newest_change(
    oai, place, snapshot_file
):
    lines = (
        line("2403.00001", update_date="2024-10-01"),
        line("2403.00002", update_date="2023-01-01"),
    )
    assert run(with_snapshot(place, snapshot_file, *lines)).since == "2024-09-30"
    assert days_asked_from(oai) == ["2024-09-30"]


def test_the_next_harvest_begins_a_day_before_the_last_one_did_and_what_comes_again_is_no_news(
    oai, place
):
    oai.list = [["2403.00001", "2403.00002", "2403.00003"]]
    run(place)
    before = HarvestStore(place.cache("oai")).digest(["2403.00001"])
    changed = [
        record("2403.00001", "2024-11-19"),
        record("2403.00002", "2024-11-19", raw("2403.00002", 2)),
        record("2403.00003", "2024-11-19", raw("2403.00003", comments="A note")),
    ]
    oai.list = [[*changed, record("2404.00009", "2024-11-20")]]
    report = run(place)
    assert days_asked_from(oai) == [None, "2024-11-19"]
    assert (report.unchanged, report.changed, report.new) == (1, 2, 1)
    assert report.months == ("2024-03", "2024-04")
    assert HarvestStore(place.cache("oai")).digest(["2403.00001"]) == before


def test_days_left_out_by_a_later_beginning_are_asked_for_the_next_time(oai, place):
    run(place)
    run(place, since="2024-11-25")
    run(place)
    assert days_asked_from(oai) == [None, "2024-11-25", "2024-11-19"]


@pytest.mark.parametrize("day", ["yesterday", "2024-13-01", "20261101"])
def test_a_day_that_is_none_is_a_wrong_argument(place, oai, day):
    with pytest.raises(SettingError, match=r"--from .* is not a day"):
        run(place, since=day)
    assert oai.asked == []


# Breaking off.


@pytest.mark.faults
def test_a_killed_harvest_goes_on_from_its_last_page(oai, place):
    names = [f"2403.0000{number}" for number in range(5)]
    oai.list = [[name] for name in names]
    kill_in_third_request(oai, "oai", place.settings.data_root)
    report = run(place)
    assert "".join(asked.get("resumptionToken", "")[-1:] for asked in oai.asked) == "12234"
    assert (report.new, report.requests) == (3, 3)
    assert len(stored(place, *names)) == 5
    assert run(place).since == "2024-11-19"


def test_a_token_that_has_expired_is_not_used(oai, place):
    oai.script = [
        page([record("2403.00001", "2024-11-03")], "t1", "2020-01-01T00:00:00Z"),
        status(404),
    ]
    with pytest.raises(PermanentFailure, match="status 404: check CITELOOM_OAI_URL"):
        run(place)
    oai.list = [[record("2403.00001", "2024-11-03"), record("2403.00002", "2024-11-04")]]
    report = run(place)
    assert (oai.asked[2]["from"], report.new, report.unchanged) == ("2024-11-03", 1, 1)


def test_a_refused_token_begins_again_from_the_last_day(oai, place):
    oai.script = [
        page([record("2403.00001", "2024-11-03"), record("2403.00002", "2024-11-04")], "t1"),
        error("badResumptionToken"),
    ]
    oai.list = [[record("2403.00002", "2024-11-04"), record("2403.00003", "2024-11-05")]]
    events = []
    with listening(events.append):
        report = run(place)
    assert days_asked_from(oai) == [None, None, "2024-11-04"]
    assert (report.new, report.unchanged, report.since) == (3, 1, None)
    assert "refuses to go on (as it is); beginning again from 2024-11-04" in messages(events)[0]


def test_after_pages_in_no_order_a_refused_token_begins_again_from_the_first_day(oai, place):
    oai.script = [
        page([record("2403.00001", "2024-11-09"), record("2403.00002", "2024-11-04")], "t1"),
        status(404),  # the next harvest has to know the order too
        error("badResumptionToken"),
    ]
    with pytest.raises(PermanentFailure):
        run(place, since="2024-11-01")
    run(place)
    assert days_asked_from(oai) == ["2024-11-01", None, None, "2024-11-01"]


def test_a_server_whose_clock_is_ahead_loses_us_no_day(oai, place):
    oai.script = [page(["2403.00001"], day="2099-01-01")]
    before, until = datetime.now(UTC).date().isoformat(), run(place).until
    assert before <= until <= datetime.now(UTC).date().isoformat()


def test_a_server_that_refuses_all_its_tokens_is_given_up(oai, place):
    oai.script = [page(["2403.00001"], "t"), error("badResumptionToken")] * 10
    with pytest.raises(TransientFailure, match="refuses its own resumption tokens"):
        run(place)
    assert len(oai.asked) == 8


def test_a_token_that_leads_to_itself_is_no_endless_harvest(oai, place):
    oai.script = [page(["2403.00001"], "t")] * 9
    with pytest.raises(TransientFailure, match="the same resumption token twice"):
        run(place)
    assert len(oai.asked) == 2


@pytest.mark.parametrize("token", ["t", "\n  "])
def test_a_list_ends_with_a_blank_token_or_with_no_more_records(oai, place, token):
    oai.script = [page(["2403.00001"], token), error("noRecordsMatch")]
    report = run(place)
    assert (report.new, report.requests) == (1, 2 if token.strip() else 1)
    oai.script = []
    assert run(place).since == "2024-11-19"


def test_one_harvest_runs_at_a_time(oai, place):
    def second(request):
        with pytest.raises(TransientFailure, match="another harvest holds"):
            run(place)
        return oai.usual(request)

    oai.script = [second]
    oai.list = [["2403.00001"]]
    assert run(place).new == 1
    assert len(oai.asked) == 1


# Bad answers.


WHOLE = page(["2403.00001"]).get_data(as_text=True)


@pytest.mark.parametrize(
    "trouble",
    [
        reply("<feed xmlns='http://www.w3.org/2005/Atom'/>"),
        answer(""),
        answer("<ListRecords/>", "some day"),
    ],
)
def test_trouble_that_passes_is_lived_through(oai, place, trouble):
    oai.list = [["2403.00001"], ["2403.00002"]]
    oai.script = [trouble, None, trouble, trouble, None]
    report = run(place)
    assert (report.new, report.requests) == (2, 5)


def test_trouble_that_stays_ends_with_one_message_and_keeps_the_pages_before(oai, place, caplog):
    oai.list = [["2403.00001"], ["2403.00002"]]
    oai.script = [None, *[reply(WHOLE[:-30])] * 3]
    with pytest.raises(TransientFailure, match=f"{oai.url} .*: it is truncated"):
        run(place)
    caplog.clear()
    assert (run(place).requests, len(stored(place, "2403.00001", "2403.00002"))) == (1, 2)
    assert [entry.getMessage() for entry in caplog.records if entry.levelname == "WARNING"] == []


def test_a_refused_request_is_named(oai, place):
    oai.script = [error("badArgument")]
    with pytest.raises(PermanentFailure, match=r"refuses to list records: .*CITELOOM_OAI_URL"):
        run(place)


def test_a_broken_record_costs_no_other_its_place_and_is_in_the_ledger(oai, place):
    broken = [
        record("2403.00002", metadata=raw("2403.00009")),
        record(
            "2403.00003",
            metadata="<oai_dc:dc xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/'/>",
        ),
        record("2403.00004").replace("Mon, 1 Apr 2024 09:00:00 GMT", "some day"),
        record("2403.00005", "2024-02-31"),
        record("2403.00006", metadata=raw("2403.00006", categories="")),
        *["<record><metadata/></record>"] * 3,  # without an identifier they are counted one by one
    ]
    oai.list = [[*broken, "2403.00001"]]
    report = run(place)
    assert (report.new, report.broken) == (1, 8)
    outcome = put_metadata(place, "2403.00001", "2403.00002")
    assert outcome.left_out == {"broken_harvested_record": 1, "no_metadata": 1}
    oai.list = [["2403.00002"]]
    run(place)
    assert run_stage(METADATA, place, MONTH).left_out == {}


def test_a_store_that_is_none_is_named(oai, place):
    (place.cache("oai") / "harvest.sqlite").write_bytes(b"something else " * 1000)
    with pytest.raises(
        PermanentFailure, match=r"harvest\.sqlite, cannot be read or written .* move the file away"
    ):
        run(place)


def test_a_store_that_a_kill_left_without_tables_holds_nothing_yet(oai, place):
    (place.cache("oai") / "harvest.sqlite").touch()
    assert stored(place, "2403.00001") == {}
    assert HarvestStore(place.cache("oai")).digest(["2403.00001"]) is None
    oai.list = [["2403.00001"]]
    assert run(place).new == 1


def test_a_record_that_becomes_unreadable_makes_its_month_due_once(oai, place):
    oai.list = [["2403.00001"]]
    run(place)
    put_metadata(place, "2403.00001")
    oai.list = [[record("2403.00001", "2024-11-19", "<nothing/>")]]
    report = run(place)
    assert (report.broken, report.months) == (1, ("2024-03",))
    assert state(METADATA, place, MONTH) is State.STALE
    assert run_stage(METADATA, place, MONTH).left_out == {"broken_harvested_record": 1}
    report = run(place)
    assert (report.broken, report.months, state(METADATA, place, MONTH)) == (1, (), State.DONE)


# What the stage makes of it.


def test_the_newer_of_snapshot_and_harvest_is_believed(oai, place, snapshot_file):
    old, new = (
        line("2403.00001", update_date="2024-11-09"),
        line("2403.00002", update_date="2024-11-11"),
    )
    here = with_snapshot(place, snapshot_file, old, new)
    names = [f"2403.0000{number}" for number in (1, 2, 3)]
    oai.list = [[record(name, "2024-11-10", raw(name, 2, title="News")) for name in names]]
    run(here)
    put_metadata(here, *names, "2403.00004")
    found = {
        name: (row["source"], row["title"], row["status"])
        for name, row in metadata_of(here).items()
    }
    assert found == {
        "2403.00001": ("oai", "News", "present"),
        "2403.00002": ("snapshot", "On 2403.00002", "present"),
        "2403.00003": ("oai", "News", "present"),
        "2403.00004": (None, None, "absent"),
    }


def test_a_harvest_makes_those_months_due_whose_papers_changed(oai, place, snapshot_file):
    papers = {"2024-03": "2403.00001", "2024-04": "2404.00001", "2024-05": "2405.00001"}
    here = with_snapshot(place, snapshot_file, *map(line, papers.values()))

    def states():
        return [state(METADATA, here, month) for month in papers]

    for month, name in papers.items():
        write_members(here, month, [name])
        run_stage(METADATA, here, month)
    oai.list = [["2403.00001", "2405.99999"]]
    assert run(here).months == ("2024-03", "2024-05")
    assert states() == [State.STALE, State.DONE, State.DONE]
    run_stage(METADATA, here, MONTH)
    oai.list = [[record("2403.00001", "2024-11-19")]]
    run(here)
    assert states() == [State.DONE] * 3


def test_a_paper_that_arxiv_deleted_counts_as_withdrawn(oai, place, snapshot_file):
    here = with_snapshot(place, snapshot_file, line("2403.00001"))
    oai.list = [
        ["2403.00002", deleted("2403.00001", "2024-11-10")],
        [deleted("2403.00002", "2024-11-11"), deleted("2403.00003", "2024-11-11")],
    ]
    report = run(here)
    assert (report.new, report.deleted) == (1, 3)
    put_metadata(here, "2403.00001", "2403.00002", "2403.00003")
    assert {row["status"] for row in metadata_of(here).values()} == {"withdrawn"}
    assert [row["title"] for row in metadata_of(here).values()] == [
        "On 2403.00001",
        "On 2403.00002",
        None,
    ]
    oai.list = [[record("2403.00002", "2024-11-19")]]
    assert run(here).changed == 1
    run_stage(METADATA, here, MONTH)
    assert metadata_of(here)["2403.00002"]["status"] == "present"


def test_the_command_tells_what_it_brought(oai, tmp_path, monkeypatch):
    oai.list = [["2403.00001"]]
    variables = {
        "CITELOOM_OAI_URL": oai.url,
        "CITELOOM_DATA": str(tmp_path / "data"),
        "CITELOOM_METADATA_SNAPSHOT": "",
    }
    for name, value in (variables | {"XDG_CACHE_HOME": str(tmp_path / "cache")}).items():
        monkeypatch.setenv(name, value)
    done = invoke("harvest", "--from", "2024-11-01", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["new"], told["months"], told["since"]) == (1, ["2024-03"], "2024-11-01")
