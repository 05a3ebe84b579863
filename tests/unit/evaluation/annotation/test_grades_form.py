"""The form of graders: it asks what their sheet asks, blind, and is inert whatever the texts hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from pipeline.evaluation.annotation.grades import VERDICTS
from pipeline.evaluation.cited import printable
from pipeline.storage.data_root import DataRoot
from pipeline.tables import ANSWER_GRADES
from tests.unit.evaluation.annotation.people_month import MONTH, give_out, rows_of, write_answers
from tests.unit.evaluation.annotation.test_export import assert_fields_are_named, assert_inert
from tests.unit.evaluation.hostile import HOSTILE
from tests.unit.evaluation.made_up import workspace, write_table
from tests.unit.report.test_pages import folded

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> DataRoot:
    """Three answers to two questions."""
    root = workspace(tmp_path / "data").root
    write_answers(root)
    return root


def test_the_form_asks_what_the_sheet_asks_in_its_order(root: DataRoot, tmp_path: Path) -> None:
    _, sheets = give_out(root, tmp_path / "out")
    page = LexborHTMLParser((tmp_path / "out" / "form-2.html").read_text())
    asked = [
        (each.attributes["data-unit"], each.css_first("legend").text().strip()) for each in page.css("[data-unit]")
    ]
    assert asked == [(row["unit"], row["text"]) for row in rows_of(sheets[1])]
    for each in page.css("[data-unit]"):
        choices = [field.attributes["value"] for field in each.css("input[type=radio]")]
        assert choices == ["", *VERDICTS["claim" if "-claim-" in (each.attributes["data-unit"] or "") else "gold"]]
    assert_fields_are_named(page)


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_text_is_shown_and_does_nothing(root: DataRoot, tmp_path: Path, payload: str) -> None:
    write_answers(root, words=payload)
    rows = root.rows(ANSWER_GRADES, MONTH)
    for row in rows:
        for claim in (*row["claims"], *row["gold"]):
            claim["claim"] = f"{payload} {claim['claim']}"
    write_table(root, ANSWER_GRADES, MONTH, rows)
    export, _ = give_out(root, tmp_path / "out", 1)
    page = (tmp_path / "out" / "form-1.html").read_bytes()
    assert_inert(page)
    shown = folded(LexborHTMLParser(page.decode()).text()).count(folded(printable(payload)))
    answers_of_direct = len({unit.label for unit in export.study.units.values() if unit.system == "direct"})
    assert shown >= len(export.study.units) + answers_of_direct
