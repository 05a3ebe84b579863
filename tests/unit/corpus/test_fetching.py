"""Fetching pages from arXiv's site, against a loopback server that answers as the site does, or
badly.
"""

from dataclasses import replace
from functools import partial

import pytest

from pipeline.arxiv.harvest_store import STORE, Change, HarvestPage, HarvestStore
from pipeline.arxiv.rate_limited_client import GAP_SECONDS, Pace
from pipeline.arxiv.record import Record
from pipeline.corpus.dump.catalogue import read_dump
from pipeline.corpus.dump.loose_pages import PageLedger, page_file
from pipeline.corpus.dump.member import Member
from pipeline.corpus.dump.reader import MemberReader
from pipeline.corpus.fetching import MOST_WITHOUT_PAGE, fetch, select_papers
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.settings import SAMPLE_DUMP
from tests.cases import cases
from tests.fake_arxiv import FakeSite, reply, status
from tests.fake_clock import FakeClock
from tests.unit.arxiv.conftest import line
from tests.unit.corpus.arxiv_site import site_page
from tests.unit.corpus.building import math, names, page, para, section, write_zip
from tests.workspaces import changed, make_workspace

pytestmark = pytest.mark.slow

MONTH = "2026-10"
FIRST, SECOND, THIRD = "2610.00001", "2610.00002", "2610.00003"
CITED = '<cite class="ltx_cite">[<a href="#bib.bib1" class="ltx_ref">1</a>]</cite>'
BODY = section(para(f"We read margins {CITED} of books with {math('x_1')}."))


def text(body, kind="text/html"):
    return reply(body, kind=kind)


@pytest.fixture
def site(httpserver):
    return FakeSite(httpserver, BODY)


@pytest.fixture
def dump(tmp_path):
    (tmp_path / "dump").mkdir()
    return tmp_path / "dump"


@pytest.fixture
def place(site, dump, tmp_path):
    return make_workspace(
        tmp_path / "data",
        dump_dir=dump,
        metadata_snapshot=None,
        html_url=site.url,
        arxiv_user_agent="t (a@b.org)",
    )


def run(place, *ids, fake=None, gap=0.0, **more):
    pace = Pace(place.settings.data_root / "machine", gap=gap, tries=3, first_back_off=0.01)
    if fake is not None:
        pace = replace(pace, clock=fake.clock)
    return fetch(place, select_papers(place, None, ids), pace=pace, **more)


def detail(place, name):
    """What the ledger says of a page."""
    return PageLedger(place.cache("html_pages") / "fetched.jsonl").read()[name].detail


def test_a_page_is_fetched_into_the_folder_that_the_dump_reads(place, site, dump):
    report = run(place, SECOND, FIRST, "arXiv:cs/0112017v2")
    assert site.asked == ["robots", FIRST, SECOND, "cs/0112017"]
    assert (report.fetched, report.left_out, report.waiting, report.requests) == (3, {}, 0, 4)
    assert names(dump) == ["0112/cs0112017.html", f"2610/{FIRST}.html", f"2610/{SECOND}.html"]
    member = Member(**read_dump(place.settings).pages(MONTH).to_pylist()[0])
    with MemberReader(dump) as reader:
        content = reader.read(member)
    assert (member.arxiv_id, member.subset, content) == (FIRST, "unrated", site_page(BODY, FIRST))
    assert run(place, FIRST, SECOND).left_out == {"in_dump": 2}
    assert len(site.asked) == 4


def test_the_papers_of_a_month_are_those_that_metadata_knows_and_the_dump_lacks(
    place, site, dump, tmp_path
):
    snapshot = tmp_path / "snapshot.jsonl"
    lines = [
        line(FIRST),
        line(SECOND),
        line("2610.00004", categories="math.GT"),
        line("2610.00005", comments="This paper has been withdrawn by the authors"),
        line("2609.00001"),
        line("2610.00007")[:-20] + "}",
    ]
    snapshot.write_text("\n".join(lines))
    newer = Record(THIRD, categories=("cs.IR",), primary_category="cs.IR", source="oai")
    page_of_harvest = HarvestPage((Change(THIRD, "2026-11-01", newer),), {}, "2026-11-02T00:00:00Z")
    HarvestStore(place.cache(STORE)).add(page_of_harvest, {})
    write_zip(dump / "warnings.zip", {f"warning/2610/{FIRST}.html": page(BODY)})
    known = changed(place, metadata_snapshot=snapshot, subsets=("unrated",))
    choice = select_papers(known, MONTH)
    assert choice.ids == (SECOND, THIRD)
    assert choice.left_out == {"in_dump": 1, "not_computer_science": 1, "withdrawn": 1}


def test_a_paper_without_html_is_asked_for_once_until_told_again(place, site):
    site.without = {FIRST}
    report = run(place, FIRST, SECOND)
    assert (report.fetched, report.left_out) == (1, {"no_html": 1})
    assert detail(place, FIRST) == "arXiv has no HTML of it (status 404)"
    assert run(place, FIRST, SECOND).left_out == {"in_dump": 1, "no_html": 1}
    assert site.asked == ["robots", FIRST, SECOND]
    site.without = set()
    assert run(place, FIRST, again=True).fetched == 1


def test_a_page_that_does_not_come_is_asked_for_last_the_next_time(place, site):
    site.script = [None, *[status(503)] * 3]
    with pytest.raises(
        TransientFailure, match=r"status 503.*run citeloom fetch-html again to go on"
    ):
        run(place, FIRST, SECOND, THIRD)
    site.requests.clear()
    assert run(place, FIRST, SECOND, THIRD).fetched == 2
    assert site.asked == ["robots", THIRD, SECOND]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (text("%PDF-1.7", "application/pdf"), "not_html"),
        (text("all is well"), "not_html"),
        (text("<html><body>Are you a person?</body></html>"), "not_latexml"),
        (text(site_page(BODY)[:-30]), "cut"),
        (text(site_page(BODY * 200)), "too_large"),
        (status(302, Location="http://localhost:9/html/2610.00001"), "other_host"),
        (status(302, Location="/html/2610.00009"), "elsewhere"),
    ],
    ids=["a PDF", "text", "another page", "cut", "too large", "another host", "another paper"],
)
def test_what_is_no_page_of_the_paper_is_left_out(place, site, dump, wrong, reason):
    site.script = [wrong]
    report = run(place, FIRST, largest=50_000)
    assert (report.fetched, report.left_out, names(dump)) == (0, {reason: 1}, [])
    passing = reason == "cut"
    assert run(place, FIRST).fetched == passing


def test_a_redirection_within_the_host_is_followed(place, site):
    site.script = [status(301, Location=f"/html/{FIRST}v2")]
    report = run(place, FIRST)
    assert (report.fetched, detail(place, FIRST)) == (1, f"{site.url}/{FIRST}v2")


def test_denied_access_ends_everything_at_once(place, site):
    site.script = [status(403)]
    with pytest.raises(PermanentFailure, match=r"denies access \(status 403\): stop, because"):
        run(place, FIRST, SECOND)
    assert site.asked == ["robots", FIRST]


def test_many_papers_in_a_row_without_a_page_end_the_fetch(place, site):
    ids = [f"2610.{number:05}" for number in range(1, MOST_WITHOUT_PAGE + 3)]
    site.without = set(ids)
    with pytest.raises(TransientFailure, match=f"{MOST_WITHOUT_PAGE} papers in a row have no page"):
        run(place, *ids)
    assert len(site.asked) == MOST_WITHOUT_PAGE + 1
    assert run(place, *ids).left_out == {"no_html": len(ids)}


def test_what_robots_txt_says_holds(place, site):
    site.robots = "User-agent: *\nDisallow: /html"
    with pytest.raises(PermanentFailure, match=r"robots\.txt closes .*2610\.00001 to programs"):
        run(place, FIRST)
    assert site.asked == ["robots"]


@cases(
    "unit/corpus/cases.toml", "of_the_pauses_that_robots_txt_and_arxiv", ["asked", "gap", "kept"]
)
def test_of_the_pauses_that_robots_txt_and_arxiv_ask_for_the_longer_is_kept(
    place, site, asked, gap, kept
):
    fake = FakeClock()
    site.now = fake.clock.now
    site.robots = f"User-agent: other\nDisallow: /\n\nUser-agent: *\nCrawl-delay: {asked}"
    assert run(place, FIRST, SECOND, fake=fake, gap=gap).fetched == 2
    assert site.times[2] - site.times[1] == pytest.approx(kept)


def test_a_line_of_the_ledger_that_a_kill_cut_off_is_ignored(place, site):
    site.without = {FIRST, SECOND}
    run(place, FIRST, SECOND)
    file = place.cache("html_pages") / "fetched.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    site.requests.clear()
    assert run(place, FIRST, SECOND).left_out == {"no_html": 2}
    assert site.asked == ["robots", SECOND]
    assert run(place, FIRST, SECOND).requests == 0


def test_a_limit_says_how_many_are_asked_for(place, site):
    report = run(place, FIRST, SECOND, THIRD, limit=2)
    assert (report.fetched, report.waiting, site.asked) == (2, 1, ["robots", FIRST, SECOND])
    assert "1 still to fetch" in str(report)


def test_a_page_that_cannot_be_put_in_place_is_named(place, dump):
    page_file(dump, FIRST).mkdir(parents=True)
    with pytest.raises(PermanentFailure, match=f"{FIRST}.html cannot be written"):
        run(place, FIRST)
    page_file(dump, FIRST).rmdir()
    assert run(place, FIRST).fetched == 1
    assert names(dump) == [f"2610/{FIRST}.html"]


NAMED = {"named": [FIRST]}


@pytest.mark.parametrize(
    ("changed", "asked", "message"),
    [
        ({"dump_dir": SAMPLE_DUMP}, NAMED, "is the sample corpus"),
        ({"dump_dir": "/nowhere/at/all"}, NAMED, "there is no folder /nowhere/at/all"),
        ({"subsets": "warning"}, NAMED, "CITELOOM_SUBSETS leaves out unrated"),
        ({}, {"month": MONTH}, "there is no metadata of 2026-10: run citeloom harvest"),
        ({}, {"named": ["2610.1"]}, "2610.1: no arXiv id"),
        ({}, {"month": MONTH, "named": ["2609.00001"]}, "2609.00001 is not of 2026-10"),
    ],
)
def test_what_cannot_be_fetched_is_refused(dump, changed, asked, message):
    settings = {"dump_dir": dump, "metadata_snapshot": None} | changed
    place = make_workspace(dump.parent / "data", **settings)
    with pytest.raises(SettingError, match=message):
        select_papers(place, **{"month": None} | asked)


@pytest.fixture
def command(site, dump, tmp_path, monkeypatch):
    """`citeloom fetch-html` with these arguments."""
    from tests.command import invoke

    values = {
        "DUMP_DIR": dump,
        "DATA": tmp_path / "data",
        "METADATA_SNAPSHOT": "",
        "HTML_URL": site.url,
    }
    for name, value in values.items():
        monkeypatch.setenv(f"CITELOOM_{name}", str(value))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "machine"))
    return partial(invoke, "fetch-html")


def test_without_accepted_terms_they_are_told_and_nothing_is_asked(command, site):
    done = command("--ids", FIRST)
    assert done.exit_code == 2
    assert "Copyright stays with the authors" in done.output
    assert "--accept-terms" in done.output
    assert site.asked == []


def test_the_command_fetches_at_arxiv_s_pace(command, site, dump):
    done = command("--ids", FIRST, "--accept-terms")
    assert done.exit_code == 0, done.output
    assert "1 page fetched in 2 requests" in " ".join(done.output.split())
    assert site.times[1] - site.times[0] >= GAP_SECONDS
    assert '"in_dump": 1' in command("--ids", FIRST, "--accept-terms", "--json").output
    assert names(dump) == [f"2610/{FIRST}.html"]
