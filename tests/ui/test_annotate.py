"""The forms of annotators in headless Chromium: filled in by keyboard, downloaded, imported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.engine.stage import Workspace
from pipeline.evaluation.annotation.export import Export, write_files
from pipeline.evaluation.annotation.importer import import_files
from pipeline.tables import CRITERIA, HUMAN_GRADES
from tests.processes import wait_until
from tests.ui.browser import COLOURS, WIDTHS, assert_no_alert, background, chrome, chrome_options, look, overflow
from tests.unit.evaluation.annotation.people_month import MONTH, give_out, write_answers
from tests.unit.evaluation.annotation.studied import exported, kept, same, workspace, write_month

if TYPE_CHECKING:
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.ui, pytest.mark.slow]

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
        self.driver.get((folder / "form-1.html").as_uri())

    def field(self, selector: str) -> WebElement:
        """The first element of a CSS selector."""
        found: WebElement = self.driver.find_element("css selector", selector)
        return found

    def press(self, selector: str, *keys: str) -> None:
        """Type into an element."""
        self.field(selector).send_keys(*keys)

    def name(self, rater: str) -> None:
        """Enter a rater's name, in place of what is there, and leave the field."""
        self.press("#annotator", "\ue009a", "\ue000")  # Ctrl
        self.press("#annotator", rater, "\ue004")  # Tab

    def mark(self, name: str, value: object) -> None:
        """Choose a radio button as a keyboard does."""
        self.press(f"input[name='{name}'][value='{value}']", " ")

    def chosen(self, name: str) -> str:
        """What is chosen in a group of radio buttons."""
        return str(self.driver.execute_script("return document.forms[0].elements[arguments[0]].value", name))

    def download(self) -> Path:
        """Press the download button; the file, once it is whole."""
        before = set(self.downloads.iterdir())
        self.field("#csv").click()
        made = wait_until(lambda: [*{*self.downloads.glob("*.csv")} - before], "download of CSV")
        return made[0]

    def look(self, name: str, width: int, scheme: str) -> str:
        """The page's background at a width and in a scheme of colours; keeps a picture."""
        look(self.driver, width, scheme)
        time.sleep(0.3)
        self.driver.save_screenshot(str(self.shots / f"{name}_{width}_{scheme}.png"))
        return background(self.driver)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Form]:
    """A browser that downloads into a folder of its own and keeps what its console says."""
    downloads = tmp_path_factory.mktemp("downloads")
    options = chrome_options(tmp_path_factory)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    with chrome(options) as driver:
        yield Form(driver, downloads, tmp_path_factory.mktemp("shots"))


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """A workspace over an empty data root."""
    return workspace(tmp_path / "data")


def given_out(work: Workspace, folder: Path, text: Callable[[str], str] = same, **settings: Any) -> Export:
    """A study of two tasks, its form in a folder."""
    write_month(work.root, text=text)
    export = exported(work.root, items=2, **settings)
    write_files(export, folder, 1)
    return export


def fill(form: Form) -> None:
    """Mark all of the first task, and one section of the second."""
    for place, letter in enumerate("ABC"):
        for step, criterion in enumerate(CRITERIA):
            form.mark(f"T01-{letter}-{criterion}", 1 + (place + step) % 5)
    form.mark("T01-preferred", "T01-B")
    form.press("textarea[name='T01-A-comment']", '=SUM(A1); "well", ünï\nand a second line')
    form.mark("T02-C-fluency", 5)


def test_ratings_filled_in_by_keyboard_are_downloaded_and_imported(
    browser: Form, work: Workspace, tmp_path: Path
) -> None:
    export = given_out(work, tmp_path / "sheets", name="study")
    browser.open(tmp_path / "sheets")
    browser.name("Ada Löv")
    fill(browser)
    assert browser.field("#progress").text == "19 of 36 entries, 1 of 2 choices"
    file = browser.download()
    assert file.name == "ratings-study-Ada-Lo-v.csv"
    done = import_files(work, [file])
    assert (done.annotators, done.rows, len(done.notes)) == (("Ada Löv",), 4, 1)
    found = {row["label"]: row for row in kept(work.root)}
    for place, letter in enumerate("ABC"):
        row, unit = found[f"T01-{letter}"], export.study.units[f"T01-{letter}"]
        assert [row[criterion] for criterion in CRITERIA] == [1 + (place + step) % 5 for step in range(6)]
        assert (row["task_id"], row["system"], row["preferred"]) == (unit.item_id, unit.system, letter == "B")
    assert found["T01-A"]["comment"] == '=SUM(A1); "well", ünï\nand a second line'
    assert (found["T02-C"]["fluency"], found["T02-C"]["preferred"]) == (5, None)


def test_grades_filled_in_by_keyboard_are_downloaded_and_imported(
    browser: Form, work: Workspace, tmp_path: Path
) -> None:
    write_answers(work.root, words=HOSTILE)
    export, _ = give_out(work.root, tmp_path / "out", 1)
    browser.driver.get_log("browser")
    browser.open(tmp_path / "out")
    browser.name("Ada Löv")
    label = next(unit.label for name, unit in export.study.units.items() if name.endswith("-claim-2"))
    browser.mark(f"{label}-claim-1-verdict", "not_checkable")
    browser.mark(f"{label}-gold-1-verdict", "partly")
    browser.press(f"textarea[name='{label}-claim-2-comment']", '=SUM(A1); "well"')
    assert browser.field("#progress").text == f"2 of {len(export.study.units)} entries"
    file = browser.download()
    assert file.name == "grades-pilot-Ada-Lo-v.csv"
    assert [entry["message"] for entry in browser.driver.get_log("browser")] == []
    import_files(work, [file])
    assert [(r["part"], r["number"], r["verdict"], r["comment"]) for r in work.root.rows(HUMAN_GRADES, MONTH)] == [
        ("claim", 1, "not_checkable", None), ("claim", 2, None, '=SUM(A1); "well"'), ("gold", 1, "partly", None),
    ]  # fmt: skip
    for width in WIDTHS:
        browser.look("grades", width, "light")
        assert overflow(browser.driver) <= 0


def test_what_was_entered_is_there_after_the_page_is_closed(browser: Form, work: Workspace, tmp_path: Path) -> None:
    given_out(work, tmp_path / "sheets", name="kept")
    browser.open(tmp_path / "sheets")
    browser.mark("T01-A-fluency", 3)
    browser.name("Ada")
    fill(browser)
    browser.mark("T01-A-fluency", 2)
    browser.driver.get("about:blank")
    browser.open(tmp_path / "sheets")
    assert browser.field("#annotator").get_attribute("value") == "Ada"
    assert (browser.chosen("T01-A-fluency"), browser.chosen("T01-preferred")) == ("2", "T01-B")
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
    assert browser.field("#progress").text == "0 of 36 entries, 0 of 2 choices"


def test_nothing_is_downloaded_without_a_name(browser: Form, work: Workspace, tmp_path: Path) -> None:
    given_out(work, tmp_path / "sheets", name="nameless")
    browser.open(tmp_path / "sheets")
    before = sorted(browser.downloads.iterdir())
    browser.field("#csv").click()
    assert browser.field("#status").text == "Enter your name first."
    assert browser.driver.switch_to.active_element.get_attribute("id") == "annotator"
    time.sleep(0.5)
    assert sorted(browser.downloads.iterdir()) == before


def test_a_hostile_text_does_nothing_and_no_request_leaves_the_page(
    browser: Form, work: Workspace, tmp_path: Path
) -> None:
    given_out(work, tmp_path / "sheets", lambda text: f"{HOSTILE} {text}", name="hostile", with_gold=True)
    browser.driver.get_log("browser")
    browser.open(tmp_path / "sheets")
    browser.name("Ada")
    browser.mark("T01-A-fluency", 3)
    assert_no_alert(browser.driver)
    assert "rate related-work" in browser.driver.title.lower()
    loaded = "return performance.getEntriesByType('resource').map(entry => entry.name)"
    assert browser.driver.execute_script(loaded) == []
    assert browser.driver.execute_script("return document.querySelectorAll('img, iframe, svg, base').length") == 0
    assert [entry["message"] for entry in browser.driver.get_log("browser")] == []
    assert browser.chosen("T01-A-fluency") == "3"


def test_the_form_holds_in_both_colours_and_at_both_widths(browser: Form, work: Workspace, tmp_path: Path) -> None:
    given_out(work, tmp_path / "sheets", lambda text: f"{text} {'x' * 300}", name="wide", with_gold=True)
    browser.open(tmp_path / "sheets")
    for width in WIDTHS:
        for scheme, colour in COLOURS.items():
            assert browser.look("form", width, scheme) == colour
            assert overflow(browser.driver) <= 0
