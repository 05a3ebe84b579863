"""The form of graders in headless Chromium: filled in by keyboard, downloaded, imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import tables
from pipeline.evaluation.answers.choosing import choose, write_sheets
from pipeline.evaluation.answers.grading_key import keep_key
from pipeline.evaluation.answers.keeping import import_grades
from tests.ui.test_study import HOSTILE, Form, browser  # noqa: F401 - a fixture
from tests.unit.evaluation.answers.people_month import MONTH, write_answers
from tests.unit.evaluation.made_up import workspace

pytestmark = [pytest.mark.ui, pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_form_filled_in_by_keyboard_is_downloaded_and_imported(browser: Form, tmp_path: Path) -> None:  # noqa: F811
    work = workspace(tmp_path / "data")
    write_answers(work.root, words=HOSTILE)
    choice = choose(work.root, "pilot", "all", None, questions=50, seed=0)
    keep_key(work.root, choice.key)
    write_sheets(choice, tmp_path / "out", 1)
    browser.driver.get_log("browser")
    browser.driver.get((tmp_path / "out" / "form-1.html").as_uri())
    browser.name("Ada Löv")
    label = next(label for label, of in choice.key.labels.items() if len(of.claims) == 2)
    browser.mark(f"{label}-claim-1", "not_checkable")
    browser.mark(f"{label}-gold-1", "partly")
    browser.press(f"textarea[name='{label}-claim-2-comment']", '=SUM(A1); "well"')
    assert browser.field("#progress").text == f"2 of {choice.lines} lines"
    file = browser.download("csv")
    assert file.name == "grades-pilot-Ada-Lo-v.csv"
    assert [entry["message"] for entry in browser.driver.get_log("browser")] == []
    done = import_grades(work, [file])
    assert (done.graders, done.rows) == (("Ada Löv",), 3)
    rows = work.root.rows(tables.HUMAN_GRADES, MONTH)
    assert [(row["part"], row["number"], row["verdict"], row["comment"]) for row in rows] == [
        ("claim", 1, "not_checkable", None), ("claim", 2, None, '=SUM(A1); "well"'), ("gold", 1, "partly", None),
    ]  # fmt: skip
    for width in (1280, 390):
        browser.look("grades", width, "light")
        assert browser.driver.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0
