"""Checks of the stages that call models: each writer, task, question and reference is accounted for."""

from typing import Any

import pytest

from pipeline import tables
from pipeline.answering.stages import ANSWERS
from pipeline.evaluation.stages import G_SCORES
from pipeline.related_work.stages import SUMMARIES
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import workspace, write_month
from tests.unit.evaluation.made_up_answers import write_answers

MONTH = "2024-03"
Row = dict[str, Any]


@pytest.fixture
def place(tmp_path):
    """A month by two writers and two answering systems that lacks nothing."""
    place = workspace(
        tmp_path,
        llm_url="http://127.0.0.1:9/v1",
        llm_model="some-model",
        systems="chatcite,zero_shot",
        answer_systems="arxivbot,direct",
    )
    write_month(place.root, MONTH)
    write_answers(place.root, MONTH, systems=("arxivbot", "direct"))
    rewrite(place, tables.SUMMARIES, lambda rows: rows)
    return place


def rewrite(place, table, change):
    """Write a month again with other rows, and as many uncited references as were counted."""
    counted = {"citations": {"uncited": 0}}
    parts = {f"{system}@some-model": {"notes": counted} for system in ("chatcite", "zero_shot")}
    rows = change([dict(row) for row in place.root.rows(table, MONTH)])
    write_table(place.root, table, MONTH, rows, notes={"parts": parts})


def evaluate(place, stage, name):
    (check,) = [check for check in stage.checks if check.name == name]
    assert check.warning
    assert not check.blocking
    return check.evaluate(place, MONTH)


def without_citations(rows):
    return [
        {**row, "sentences": [{**each, "references": []} for each in row["sentences"]]}
        for row in rows
    ]


@pytest.mark.parametrize(
    ("stage", "name", "table", "change"),
    [
        (
            SUMMARIES,
            "every_task_has_a_section_by_every_writer",
            tables.SUMMARIES,
            lambda rows: rows[1:],
        ),
        (
            SUMMARIES,
            "every_task_has_a_section_by_every_writer",
            tables.SUMMARIES,
            lambda rows: [{**rows[0], "text": ""}, *rows[1:]],
        ),
        (
            SUMMARIES,
            "every_reference_is_cited_or_counted",
            tables.SUMMARIES,
            without_citations,
        ),
        (
            G_SCORES,
            "every_task_is_judged",
            tables.G_SCORES,
            lambda rows: [row for row in rows if row["task_id"] != rows[0]["task_id"]],
        ),
        (ANSWERS, "every_question_is_answered", tables.ANSWERS, lambda rows: rows[1:]),
    ],
)
def test_a_month_that_lacks_something_is_reported(
    place,
    stage,
    name,
    table,
    change,
):
    assert evaluate(place, stage, name).passed
    rewrite(place, table, change)
    assert not evaluate(place, stage, name).passed
