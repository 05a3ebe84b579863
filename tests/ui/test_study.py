"""The form of a human study in headless Chromium: filled in by keyboard, downloaded, imported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.engine.stage import Workspace
from pipeline.evaluation.human.choosing import Choice
from pipeline.evaluation.human.keeping import import_ratings
from pipeline.evaluation.human.sheets import write_sheets
from pipeline.tables import CRITERIA
from tests.ui.test_ui import FLAGS, chrome, wait_until
from tests.unit.evaluation.human.studied import exported, kept, same, workspace, write_month

if TYPE_CHECKING:
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.ui, pytest.mark.slow, pytest.mark.timeout(300)]

HOSTILE = (
    "</script></style></textarea></title><script>document.title = 'taken'; alert(1)</script>"
    "<img src=x onerror=alert(1)><svg onload=alert(1)><iframe src=https://evil.example/></iframe><base href=https://evil.example/>\u202e"
)


@dataclass(frozen=True, slots=True)
class Form:
    """A form in a browser, as a rater uses it."""

    driver: Any
    downloads: Path
    shots: Path

    def open(self, folder: Path) -> None:
        """Open the form from disk."""
        self.driver.get((folder / "form.html").as_uri())

    def field(self, selector: str) -> WebElement:
        """The first element of a CSS selector."""
        found: WebElement = self.driver.find_element("css selector", selector)
        return found

    def press(self, selector: str, *keys: str) -> None:
        """Type into an element."""
        self.field(selector).send_keys(*keys)

    def name(self, rater: str) -> None:
        """Enter a rater's name, in place of what is there, and leave the field."""
        self.press("#rater", "\ue009a", "\ue000")  # Ctrl
        self.press("#rater", rater, "\ue004")  # Tab

    def mark(self, name: str, value: object) -> None:
        """Choose a radio button as a keyboard does."""
        self.press(f"input[name='{name}'][value='{value}']", " ")

    def chosen(self, name: str) -> str:
        """What is chosen in a group of radio buttons."""
        return str(self.driver.execute_script("return document.forms[0].elements[arguments[0]].value", name))

    def download(self, ending: str) -> Path:
        """Press a download button; the file, once it is whole."""
        before = set(self.downloads.iterdir())
        self.field(f"#{ending}").click()
        made = wait_until(lambda: [*{*self.downloads.glob(f"*.{ending}")} - before], f"download of {ending}", 20)
        return made[0]

    def look(self, name: str, width: int, scheme: str) -> str:
        """The page's background at a width and in a scheme of colours; keeps a picture."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        time.sleep(0.3)
        self.driver.save_screenshot(str(self.shots / f"{name}_{width}_{scheme}.png"))
        return str(self.driver.execute_script("return getComputedStyle(document.body).backgroundColor"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Form]:
    """A browser that downloads into a folder of its own and keeps what its console says."""
    from selenium import webdriver

    downloads = tmp_path_factory.mktemp("downloads")
    options = webdriver.ChromeOptions()
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    with chrome(options) as driver:
        yield Form(driver, downloads, tmp_path_factory.mktemp("shots"))


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """A workspace over an empty data root."""
    return workspace(tmp_path / "data")


def given_out(work: Workspace, folder: Path, text: Callable[[str], str] = same, **settings: Any) -> Choice:
    """A study of two tasks, its form in a folder."""
    write_month(work.root, text=text)
    choice = exported(work.root, tasks=2, **settings)
    write_sheets(choice, folder)
    return choice


def fill(form: Form, choice: Choice) -> None:
    """Mark all of the first task, and one section of the second."""
    for place, letter in enumerate(choice.shown[0].sections):
        for step, criterion in enumerate(CRITERIA):
            form.mark(f"T01-{letter}-{criterion}", 1 + (place + step) % 5)
    form.mark("T01-preferred", "B")
    form.press("textarea[name='T01-A-comment']", '=SUM(A1); "well", ünï\nand a second line')
    form.mark("T02-C-fluency", 5)


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_form_filled_in_by_keyboard_is_downloaded_and_imported(
    browser: Form, work: Workspace, tmp_path: Path, ending: str
) -> None:
    choice = given_out(work, tmp_path / "sheets", name=f"study-{ending}")
    browser.open(tmp_path / "sheets")
    browser.name("Ada Löv")
    fill(browser, choice)
    assert browser.field("#progress").text == "19 of 36 marks, 1 of 2 choices"
    file = browser.download(ending)
    assert file.name == f"ratings-study-{ending}-Ada-Lo-v.{ending}"
    done = import_ratings(work, [file])
    assert (done.raters, done.rows, done.notes) == (("Ada Löv",), 6, ())
    found = {(row["task_id"], row["label"]): row for row in kept(work.root)}
    first, second = (task.task_id for task in choice.study.tasks)
    for place, letter in enumerate("ABC"):
        row = found[first, letter]
        assert [row[criterion] for criterion in CRITERIA] == [1 + (place + step) % 5 for step in range(6)]
        assert (row["system"], row["preferred"]) == (choice.study.tasks[0].labels[letter].system, letter == "B")
    assert found[first, "A"]["comment"] == '=SUM(A1); "well", ünï\nand a second line'
    assert [(found[second, letter]["fluency"], found[second, letter]["preferred"]) for letter in "ABC"] == [
        (None, None), (None, None), (5, None),
    ]  # fmt: skip


def test_what_was_entered_is_there_after_the_page_is_closed(browser: Form, work: Workspace, tmp_path: Path) -> None:
    choice = given_out(work, tmp_path / "sheets", name="kept")
    browser.open(tmp_path / "sheets")
    browser.mark("T01-A-fluency", 3)
    browser.name("Ada")
    fill(browser, choice)
    browser.mark("T01-A-fluency", 2)
    browser.driver.get("about:blank")
    browser.open(tmp_path / "sheets")
    assert browser.field("#rater").get_attribute("value") == "Ada"
    assert (browser.chosen("T01-A-fluency"), browser.chosen("T01-preferred")) == ("2", "B")
    assert "second line" in str(browser.field("textarea[name='T01-A-comment']").get_attribute("value"))


def test_each_rater_has_entries_of_their_own(browser: Form, work: Workspace, tmp_path: Path) -> None:
    given_out(work, tmp_path / "sheets", name="raters")
    browser.open(tmp_path / "sheets")
    browser.mark("T01-A-fluency", 3)
    browser.name("Ada")
    assert browser.chosen("T01-A-fluency") == "3", "what was entered before a name belongs to the first name"
    browser.name("Ben")
    assert browser.chosen("T01-A-fluency") == ""
    browser.mark("T01-A-fluency", 5)
    browser.name("ada")
    assert browser.chosen("T01-A-fluency") == "3"
    browser.mark("T01-A-fluency", "")
    assert browser.field("#progress").text == "0 of 36 marks, 0 of 2 choices"


def test_nothing_is_downloaded_without_a_name(browser: Form, work: Workspace, tmp_path: Path) -> None:
    given_out(work, tmp_path / "sheets", name="nameless")
    browser.open(tmp_path / "sheets")
    before = sorted(browser.downloads.iterdir())
    browser.field("#csv").click()
    assert browser.field("#status").text == "Enter your name first."
    assert browser.driver.switch_to.active_element.get_attribute("id") == "rater"
    time.sleep(0.5)
    assert sorted(browser.downloads.iterdir()) == before


def test_a_hostile_text_does_nothing_and_no_request_leaves_the_page(
    browser: Form, work: Workspace, tmp_path: Path
) -> None:
    from selenium.common.exceptions import NoAlertPresentException

    given_out(work, tmp_path / "sheets", lambda text: f"{HOSTILE} {text}", name="hostile", with_gold=True)
    browser.driver.get_log("browser")
    browser.open(tmp_path / "sheets")
    browser.name("Ada")
    browser.mark("T01-A-fluency", 3)
    with pytest.raises(NoAlertPresentException):
        browser.driver.switch_to.alert  # noqa: B018 - looking for one raises
    assert "rate related-work" in browser.driver.title.lower()
    loaded = "return performance.getEntriesByType('resource').map(entry => entry.name)"
    assert browser.driver.execute_script(loaded) == []
    assert browser.driver.execute_script("return document.querySelectorAll('img, iframe, svg, base').length") == 0
    assert [entry["message"] for entry in browser.driver.get_log("browser")] == []
    assert browser.chosen("T01-A-fluency") == "3"


def test_the_form_holds_in_both_colours_and_at_both_widths(browser: Form, work: Workspace, tmp_path: Path) -> None:
    given_out(work, tmp_path / "sheets", lambda text: f"{text} {'x' * 300}", name="wide", with_gold=True)
    browser.open(tmp_path / "sheets")
    for width in (1280, 390):
        assert browser.look("form", width, "light") == "rgb(252, 251, 248)"
        assert browser.look("form", width, "dark") == "rgb(21, 23, 26)"
        wider = browser.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0
