"""The stages that judge and score.

No URL is among the settings of a stage: a judgement belongs to a model's name, and the same model
at another address changes no row.
"""

from __future__ import annotations

from typing import Any

from pipeline import tables
from pipeline.answering.stages import questions_disabled_reason
from pipeline.answering.systems import ANSWERING_WRITERS
from pipeline.engine.stage import CheckResult, MonthCheck, Stage, Workspace
from pipeline.engine.systems import Writers
from pipeline.evaluation import scores
from pipeline.evaluation.answers import judge as answers
from pipeline.evaluation.citation_support import judge as citation_support
from pipeline.evaluation.g_score import judge as g_score
from pipeline.llm.models import judge_model
from pipeline.related_work.systems import RELATED_WORK_WRITERS
from pipeline.settings import Settings

# Of what is not judged, the check names the first.
_MOST_NAMED = 20
_WRITTEN = (tables.RELATED_WORK_TASKS, tables.SUMMARIES)


def _sections_off(settings: Settings) -> str:
    """Why no section is judged: the bundled model judges only beside a system that calls it."""
    return _off(settings, RELATED_WORK_WRITERS)


def _off(settings: Settings, writers: Writers[Any]) -> str:
    ask_models = any(system.calls_model for _, system in writers.lookup_all(settings))
    if not settings.bundled_llm or settings.judges or ask_models:
        return ""
    return (
        f"no endpoint is set, and no system of {writers.option} calls a model: set CITELOOM_LLM_URL"
        " or CITELOOM_JUDGES"
    )


def every_task_is_judged(workspace: Workspace, month: str) -> CheckResult:
    """Every task with a gold section has marks of the judge.

    Tasks without one are not judged, as the ledger says.
    """
    if _sections_off(workspace.settings):
        return CheckResult(True, {"tasks": 0, "not_judged": []})
    root = workspace.root
    tasks = root.rows(tables.RELATED_WORK_TASKS, month, ["task_id", "gold"])
    judge = judge_model(workspace.settings).name
    expected = {f"{task['task_id']} by {judge}" for task in tasks if task["gold"].strip()}
    judged = root.rows(tables.G_SCORES, month, ["task_id", "judge"])
    lacking = sorted(expected - {f"{row['task_id']} by {row['judge']}" for row in judged})
    return CheckResult(not lacking, {"tasks": len(tasks), "not_judged": lacking[:_MOST_NAMED]})


class JudgingStage(Stage):
    """A stage that asks the judge."""

    pool = "llm"
    kinds = ("parquet", "openai")
    asks = "judge"


class GScores(JudgingStage):
    """The G-Score: six marks and a vote, the systems of a candidate set in one conversation as the
    paper has it; and in other orders, which the paper did not ask for.
    """

    table = tables.G_SCORES
    upstream = _WRITTEN
    settings = ("judge_repeats", "candidate_sets")
    version = 4
    checks = (MonthCheck(every_task_is_judged, warning=True),)
    disabled_reason = staticmethod(_sections_off)
    inputs = staticmethod(g_score.inputs)
    build = staticmethod(g_score.build)


class CitationSupport(JudgingStage):
    """Whether a cited work says what the citing sentence claims: a verdict with the words it rests
    on.
    """

    table = tables.CITATION_SUPPORT
    upstream = _WRITTEN
    settings = ("support_passages",)
    version = 5
    inputs = staticmethod(citation_support.inputs)
    build = staticmethod(citation_support.build)

    def disabled_reason(self, settings: Settings) -> str:
        if settings.support_passages == 0:
            return "CITELOOM_SUPPORT_PASSAGES is 0: no citation is judged"
        return _sections_off(settings)


class Scores(Stage):
    """Every metric of every system on each task: ROUGE against the gold section, G-Score,
    citations.
    """

    table = tables.SCORES
    upstream = (*_WRITTEN, tables.G_SCORES, tables.CITATION_SUPPORT)
    version = 4
    build = staticmethod(scores.build_scores)


class AnswerGrades(JudgingStage):
    """Every answer claim by claim: is it correct, and which gold claims does the answer hold?"""

    table = tables.ANSWER_GRADES
    upstream = (tables.QUESTIONS, tables.ANSWERS)
    settings = ("support_passages",)
    version = 2
    inputs = staticmethod(answers.inputs)
    build = staticmethod(answers.build)

    def disabled_reason(self, settings: Settings) -> str:
        return questions_disabled_reason(settings) or _off(settings, ANSWERING_WRITERS)


class AnswerScores(Stage):
    """Factual and coverage shares of every answer, and how much of what it needed was shown: the
    only measure without a model.
    """

    table = tables.ANSWER_SCORES
    upstream = (tables.QUESTIONS, tables.ANSWERS, tables.ANSWER_GRADES)
    disabled_reason = staticmethod(questions_disabled_reason)
    build = staticmethod(scores.build_answer_scores)


G_SCORES, CITATION_SUPPORT, SCORES = GScores(), CitationSupport(), Scores()
ANSWER_GRADES, ANSWER_SCORES = AnswerGrades(), AnswerScores()
