"""A month's report and the pages of annotators in headless Chromium, from disk: clicks, hostile
texts, layout, colours.

They are made of rows that `tests.unit.evaluation.made_up` writes; no model is asked.
"""

import json
from itertools import cycle

import pytest

from pipeline.engine.run import run_stage
from pipeline.report.formatting import task_file
from pipeline.report.publish import write_overall_page
from pipeline.report.rendering import TEMPLATES
from pipeline.report.stages import REPORT
from tests.ui.browser import (
    COLOURS,
    WIDTHS,
    assert_no_alert,
    background,
    chrome_options,
    click,
    look,
    overflow,
)
from tests.ui.browser import chrome as open_chrome
from tests.unit.evaluation.annotation.studies import MONTH, give_out, write_sections
from tests.unit.evaluation.hostile import HOSTILE
from tests.unit.evaluation.made_up import QUOTE, same, write_month
from tests.unit.evaluation.made_up_answers import write_answers
from tests.workspaces import make_workspace

pytestmark = [pytest.mark.ui, pytest.mark.slow]

TASK = task_file(f"{MONTH[2:4]}{MONTH[5:]}.90001#S2")
INKS = {"light": "rgb(29, 31, 33)", "dark": "rgb(228, 226, 221)"}
SYSTEMS = ("chatcite", "chatcite_no_reflection", "litllm_plan", "zero_shot")
# Runs before anything on a page, whatever the page's own policy: what calls one of these is
# noticed.
WATCH = """
window.ran = [];
for (const name of ["alert", "confirm", "prompt", "open", "fetch", "eval"]) window[name] = (...told) => ran.push(name);
addEventListener("error", event => { if (event.target !== window) ran.push(event.target.tagName); }, true);
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The folder of a report whose texts are harmless."""
    return published(tmp_path_factory.mktemp("plain"), 2)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The folder of a report in which every title and text begins with another hostile one."""
    return published(tmp_path_factory.mktemp("hostile"), len(HOSTILE), hostile=True)


def published(folder, tasks, *, hostile=False):
    """The folder of a month's report with so many tasks, and of annotators' pages."""
    turn = cycle(HOSTILE)
    place = make_workspace(folder)
    text = (lambda told: f"{next(turn)} {told}") if hostile else same
    write_month(
        place.root,
        MONTH,
        text=text,
        tasks=tasks,
        papers=tasks,
        systems=SYSTEMS,
        judges=("judge-one", "judge-two"),
        repeats=4,
        raters=2,
    )
    write_answers(place.root, MONTH, text=text, questions=8, judges=("judge-one", "judge-two"))
    run_stage(REPORT, place, MONTH)
    write_overall_page(place)
    report = place.root.path / "reports" / MONTH
    study = make_workspace(folder / "study")
    write_sections(study.root, text=text)
    write_answers(study.root, MONTH, text=text)
    for kind in ("ratings", "grades"):
        give_out(study, report, kind=kind, name=kind, most=2)
    return report


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    """A browser that notices scripts that run, and keeps a record of every request."""
    options = chrome_options(tmp_path_factory)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    with open_chrome(options) as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        driver.get("about:blank")  # the page that a new window opens with asks for many things
        yield driver


def requests(chrome):
    """Addresses that were asked for since this was last called."""
    entries = [json.loads(entry["message"])["message"] for entry in chrome.get_log("performance")]
    return [
        entry["params"]["request"]["url"]
        for entry in entries
        if entry["method"] == "Network.requestWillBeSent"
    ]


def css(chrome, selector):
    return chrome.find_element("css selector", selector)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("name", "system", "shown", "source"),
    [
        (TASK, "chatcite", QUOTE, "Read this passage in the paper"),
        ("question-q1.html", "arxivbot", "Claim 1 of the answer.", "2403.90001 sample"),
    ],
)
def test_a_click_on_a_sentence_shows_its_evidence_and_where_it_stands(
    chrome, plain, width, name, system, shown, source
):
    look(chrome, width)
    chrome.get((plain / name).as_uri())
    panel = css(chrome, f"#{system}-1")
    assert not panel.is_displayed()
    click(chrome, css(chrome, f"#{system} a.said"))
    assert panel.is_displayed()
    assert shown in panel.text
    assert source in panel.find_element("css selector", ".source").text
    panel.find_element("css selector", ".close").click()
    assert not panel.is_displayed()


def test_the_leaderboard_is_sorted_by_a_click_on_a_column(chrome, plain):
    look(chrome, 1280)
    chrome.get((plain.parent / "index.html").as_uri())
    rows = "document.querySelector('table.sortable').tBodies[0].rows"
    read = f"return [...{rows}].map(row => row.cells[3].dataset.sort)"
    button = chrome.find_elements("css selector", "table.sortable th button")[3]
    for descending in (True, False):
        button.click()
        values = [float(value) for value in chrome.execute_script(read)]
        assert len(values) == len(SYSTEMS)
        assert values == sorted(values, reverse=descending)


def test_a_page_that_does_something_is_noticed(chrome, tmp_path):
    """What the next test rests on."""
    page = tmp_path / "page.html"
    page.write_text(
        "<img src=http://127.0.0.1:9/x.png><script>alert(1)</script><div"
        " style='width:3000px'>x</div>"
    )
    requests(chrome)
    look(chrome, 1280)
    chrome.get(page.as_uri())
    assert "alert" in chrome.execute_script("return ran")
    assert "http://127.0.0.1:9/x.png" in requests(chrome)
    assert overflow(chrome) > 0


@pytest.mark.faults
def test_fifty_hostile_texts_do_nothing(chrome, hostile):
    assert len(HOSTILE) >= 50
    requests(chrome)
    for file in sorted(hostile.glob("*.html")):
        look(chrome, 1280)
        chrome.get(file.as_uri())
        chrome.execute_script(
            "document.querySelectorAll('details').forEach(each => each.open = true)"
        )
        chrome.execute_script(
            "document.querySelectorAll('a, summary, p').forEach(each => each.focus())"
        )
        assert_no_alert(chrome)
        assert chrome.execute_script("return ran") == [], file.name
        assert chrome.execute_script("return document.images.length") == 0
        scripts = chrome.execute_script(
            "return [...document.scripts].map(script => script.textContent.trim())"
        )
        assert set(scripts) <= {(TEMPLATES / "sort.js").read_text().strip()}, file.name
        assert chrome.current_url == file.as_uri()
        assert overflow(chrome) <= 0, f"{file.name} at 1280"
        look(chrome, 390)
        assert overflow(chrome) <= 0, f"{file.name} at 390"
    asked = requests(chrome)
    assert len(asked) >= len(HOSTILE)
    assert [url for url in asked if not url.startswith("file://")] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("colours", COLOURS)
def test_the_pages_are_readable_in_light_and_dark(chrome, plain, width, colours):
    look(chrome, width, colours)
    for name in (
        "index.html",
        TASK,
        f"{TASK}#chatcite-2",
        "failed.html",
        "answers.html",
        "question-q1.html#arxivbot-2",
        "ratings-1.html",
        "grades-1.html",
    ):
        file, anchor, target = name.partition("#")
        chrome.get((plain / file).as_uri())
        chrome.get((plain / file).as_uri() + anchor + target)
        assert background(chrome) == COLOURS[colours]
        ink = chrome.execute_script("return getComputedStyle(document.body).color")
        assert ink == INKS[colours], "with a contrast of at least 7"
        assert overflow(chrome) <= 0
