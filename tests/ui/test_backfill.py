"""A backfill from the page of the Dagster UI: three months, one of which lies in a bad zip; mended,
and retried.
"""

import re

import pytest
from selenium.common.exceptions import WebDriverException

from tests.monthly_dump import cut_short, write_monthly_dump
from tests.processes import wait_until
from tests.ui.browser import tool
from tests.ui.test_ui import MATERIALIZE_ALL, PARTITIONS, start

pytestmark = [pytest.mark.faults, pytest.mark.ui, pytest.mark.slow]

MONTHS = ("2024-03", "2024-04", "2024-05")
BAD = "2024-05"
BAD_ZIP = "ar5iv-2405.zip"
STAGES = ("dump_members", "metadata", "papers", "passages", "references")
VIEW = "//*[self::a or self::button][normalize-space(.)='View']"


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """The sample's pages in one zip a month."""
    return write_monthly_dump(tmp_path_factory.mktemp("dump"))


@pytest.fixture(scope="module")
def running(tmp_path_factory, llm, dump):
    """A `citeloom ui` on that dump."""
    tool("chromedriver")
    server = start(tmp_path_factory.mktemp("backfill"), llm, DUMP_DIR=dump)
    yield server
    server.stop()


def test_a_backfill_tells_which_month_failed_and_why_and_is_retried_once_mended(
    page, running, dump
):
    choose_all_months(page)
    whole = cut_short(dump / BAD_ZIP)
    first = launch(page)
    assert ended(page) == "Failed"
    assert made(running) == {"2024-03", "2024-04"}
    _the_failed_run_says_why(page, first)
    (dump / BAD_ZIP).write_bytes(whole)
    page.open(first)
    _choose(page, "Re-execute from failure")
    page.click(VIEW)
    assert ended(page) == "Succeeded"
    page.keep("retried")
    assert made(running) == set(MONTHS)
    assert not list((running.root / "failures").glob("*.json"))


def _choose(page, words):
    """Choose from the menu of the page's actions, which closes where the page is drawn anew just
    then.
    """

    def chosen():
        page.click("//button[not(normalize-space(.))]")
        try:
            page.find(f"//*[@role='menuitem'][normalize-space(.)='{words}']", seconds=3).click()
        except (TimeoutError, WebDriverException):
            page.find("//body").send_keys("\ue00c")  # Escape: a menu of something else may be open
            return False
        return True

    wait_until(chosen, words)


def choose_all_months(page):
    """Open the dialog that materializes the group of assets, and choose the dump's months in it."""
    page.open("/locations/citeloom/asset-groups/corpus/lineage")
    page.click_for(MATERIALIZE_ALL, PARTITIONS)
    page.find(PARTITIONS).send_keys(f"[{MONTHS[0]}...{MONTHS[-1]}]\ue007")  # Enter
    page.says(f"{len(MONTHS)} partitions")
    page.keep("range_chosen")


def launch(page):
    """Launch the backfill from the dialog that is open; its path."""
    page.click("//button[normalize-space(.)='Launch backfill']")
    page.click(VIEW)
    page.says("In progress", "dump_members")
    return str(page.driver.current_url).removeprefix(page.url)


def ended(page):
    """How the backfill on the page ended, once it has."""
    over = re.compile(r"Status\n(?!In progress|Requested)(\S+)")
    return wait_until(lambda: over.search(page.text), "end of the backfill")[1]


def made(running):
    """Months of which every stage of the backfill is there."""
    found = [{file.stem for file in (running.root / stage).glob("*.parquet")} for stage in STAGES]
    return set.intersection(*found)


def _the_failed_run_says_why(page, backfill):
    page.open(f"{backfill}?tab=runs")
    others = "".join(
        f" and not(contains(., 'partition: {month}'))" for month in MONTHS if month != BAD
    )
    row = f"ancestor::div[contains(., 'partition: {BAD}') and contains(., 'Failure'){others}]"
    page.click(f"//a[normalize-space(.)='View'][{row}]")
    page.says(
        f"the dump has no page of {BAD}", BAD_ZIP, "is no zip, or is cut off", "fetch it again"
    )
    page.keep("explained")
