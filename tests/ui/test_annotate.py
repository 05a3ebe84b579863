"""The pages of annotators in headless Chromium: nothing on them acts, and they can be read at every
width.
"""

import pytest

from tests.processes import wait_until
from tests.ui.browser import (
    COLOURS,
    WIDTHS,
    assert_no_alert,
    background,
    chrome,
    chrome_options,
    look,
    overflow,
)
from tests.unit.evaluation.annotation.studies import MONTH, give_out, write_sections
from tests.unit.evaluation.made_up_answers import write_answers
from tests.workspaces import make_workspace

pytestmark = [pytest.mark.ui, pytest.mark.slow]

HOSTILE = (
    "</script></style></textarea></title><script>document.title = 'taken'; alert(1)</script><img"
    " src=x onerror=alert(1)><svg onload=alert(1)><iframe src=https://evil.example/></iframe><base"
    f" href=https://evil.example/>\u202e{'x' * 300} "
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser that keeps what its console says."""
    options = chrome_options(tmp_path_factory)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with chrome(options) as driver:
        yield driver


@pytest.fixture
def work(tmp_path):
    """A workspace over an empty data root."""
    return make_workspace(tmp_path / "data")


@pytest.mark.parametrize("kind", ["ratings", "grades"])
def test_a_hostile_text_does_nothing_and_the_page_holds_in_both_colours_and_at_both_widths(
    browser, work, tmp_path, kind
):
    write_sections(work.root, text=lambda text: f"{HOSTILE}{text}")
    write_answers(work.root, MONTH, text=lambda text: f"{HOSTILE}{text}")
    _, (sheet,) = give_out(work, tmp_path / "out", kind=kind, most=2)
    browser.get_log("browser")
    browser.get(sheet.with_suffix(".html").as_uri())
    assert_no_alert(browser)
    assert "taken" not in browser.title
    loaded = "return performance.getEntriesByType('resource').map(entry => entry.name)"
    assert browser.execute_script(loaded) == []
    assert (
        browser.execute_script(
            "return document.querySelectorAll('img, iframe, svg, base, script').length"
        )
        == 0
    )
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    for width in WIDTHS:
        for scheme, colour in COLOURS.items():
            look(browser, width, scheme)
            wait_until(lambda: background(browser) == colour, f"{scheme} page")  # noqa: B023
            assert overflow(browser) <= 0
