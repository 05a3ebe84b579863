"""The form of graders: it asks what their sheet asks, blind, and is inert whatever the texts hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from pipeline.evaluation.answers.choosing import choose
from pipeline.evaluation.answers.form import form
from pipeline.evaluation.answers.people import VERDICTS
from pipeline.evaluation.answers.sheets import Key, Shown, sheet
from pipeline.evaluation.cited import printable
from tests.unit.evaluation.answers.people_month import rows_of, write_answers
from tests.unit.evaluation.hostile import HOSTILE
from tests.unit.evaluation.human.test_sheets import assert_inert
from tests.unit.evaluation.made_up import workspace
from tests.unit.evaluation.test_report import folded


@pytest.fixture
def grading(tmp_path: Path) -> tuple[Key, dict[str, Shown]]:
    """Three answers to two questions."""
    root = workspace(tmp_path / "data").root
    write_answers(root)
    choice = choose(root, "pilot", "all", None, questions=50, seed=0)
    return choice.key, dict(choice.shown)


def test_the_form_asks_what_the_sheet_asks_in_its_order(grading: tuple[Key, dict[str, Shown]], tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_bytes(sheet(*grading, "grader-2"))
    page = LexborHTMLParser(form(*grading, "grader-2").decode())
    asked = [
        (each.attributes["data-label"], each.attributes["data-part"], each.attributes["data-number"],
         each.css_first("legend").text().strip())
        for each in page.css("[data-part]")
    ]  # fmt: skip
    assert asked == [(row["label"], row["part"], row["number"], row["text"]) for row in rows_of(tmp_path / "sheet.csv")]
    for each in page.css("[data-part]"):
        part = each.attributes["data-part"]
        choices = [field.attributes["value"] for field in each.css("input[type=radio]")]
        assert choices == ["", *VERDICTS["claim" if part == "claim" else "gold"]]


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_text_is_shown_and_does_nothing(grading: tuple[Key, dict[str, Shown]], payload: str) -> None:
    key, shown = grading

    def put(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(f"{payload} {text}" for text in texts)

    labels = {
        label: of.model_copy(update={"claims": put(of.claims), "gold": put(of.gold)})
        for label, of in key.labels.items()
    }  # fmt: skip
    words = {
        question: replace(of, question=payload, answers=dict(zip(of.answers, put(of.answers.values()), strict=True)))
        for question, of in shown.items()
    }
    page = form(key.model_copy(update={"labels": labels}), words)
    assert_inert(page)
    assert folded(LexborHTMLParser(page.decode()).text()).count(folded(printable(payload))) >= 3 * len(labels)


def test_every_field_of_the_form_has_a_name_that_a_screen_reader_says(grading: tuple[Key, dict[str, Shown]]) -> None:
    page = LexborHTMLParser(form(*grading).decode())
    assert len(page.css("fieldset")) == len(page.css("fieldset > legend:first-child")) > 0
    for field in page.css("input, textarea"):
        assert field.parent is not None
        assert field.parent.tag == "label" or page.css(f"label[for={field.attributes['id']}]"), field.html
    ids = [node.attributes["id"] for node in page.css("[id]")]
    assert len(ids) == len(set(ids))
