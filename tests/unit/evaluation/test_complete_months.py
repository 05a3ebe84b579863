"""Checks of the stages that call models: each writer, task and question is accounted for."""

import pytest

from pipeline.answering.stages import ANSWERS
from pipeline.evaluation.stages import G_SCORES
from pipeline.related_work.stages import SUMMARIES
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import write_month
from tests.unit.evaluation.made_up_answers import write_answers
from tests.workspaces import make_workspace

MONTH = "2024-03"


@pytest.mark.parametrize(
    ("stage", "change"),
    [
        (SUMMARIES, lambda rows: [rows[0] | {"text": ""}, *rows[1:]]),
        (
            G_SCORES,
            lambda rows: [row for row in rows if row["task_id"] != rows[0]["task_id"]],
        ),
        (ANSWERS, lambda rows: rows[1:]),
    ],
)
def test_a_month_that_lacks_something_is_reported(tmp_path, stage, change):
    """A month by two writers and two answering systems that lacks nothing, then one that lacks
    something.
    """
    systems = {"systems": "chatcite,zero_shot", "answer_systems": "arxivbot,direct"}
    place = make_workspace(
        tmp_path, llm_url="http://127.0.0.1:9/v1", llm_model="some-model", **systems
    )
    write_month(place.root, MONTH)
    write_answers(place.root, MONTH, systems=("arxivbot", "direct"))
    (check,) = stage.checks
    assert (check.warning, check.blocking) == (True, False)
    rows = place.root.rows(stage.table, MONTH)
    for changed, passed in ((rows, True), (change(rows), False)):
        write_table(place.root, stage.table, MONTH, changed)
        assert check.evaluate(place, MONTH).passed is passed
