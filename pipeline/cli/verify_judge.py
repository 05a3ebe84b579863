"""The command `citeloom verify-judge`: judges measured on claims that other people labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.cli.common import AsJson, open_workspace

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.engine.stage import Workspace
    from pipeline.evaluation.judge_check.record import JudgeCheck
    from pipeline.evaluation.judge_check.verify import SetResult, VerificationCost
    from pipeline.evaluation.statistics import Estimate
    from pipeline.llm.models import Model


def verify_judge(
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder with the labelled sets.")],
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Most claims of each set, always the same ones.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Only this model; by default those that judge.")
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only estimate the cost; call no model.")] = False,
    as_json: AsJson = False,
) -> int:
    """Measure the judges on claims that other people labelled: Citation-Integrity and SciFact.

    The cost is estimated before any model is called. The judge that calls no model is measured beside them, and the
    figures go into the report.

    Examples:
      citeloom verify-judge --data labelled --estimate
      citeloom verify-judge --data labelled --limit 100 --judge gpt-4
    """
    from pipeline.cli.console import out, print_json, print_note, spinner
    from pipeline.evaluation.judge_check.labelled_claims import read_sets
    from pipeline.evaluation.judge_check.verify import estimate_cost

    workspace = open_workspace()
    sets = read_sets(data, "dev", limit)
    models = _models(workspace, judge)
    if not models:
        print_note("no endpoint judges: only the judge that calls no model is measured; --judge names a model")
    with spinner("counting the calls; no model is called"):
        costs = [estimate_cost(workspace, model, sets) for model in models]
    for cost in costs:
        print_note(_cost_text(cost))
    if estimate:
        if as_json:
            print_json({"estimates": [asdict(cost) for cost in costs]})
        return 0
    with spinner("judging labelled claims"):
        checks = _checks(workspace, models, sets)
    if as_json:
        print_json({"estimates": [asdict(cost) for cost in costs], "checks": [asdict(check) for check in checks]})
        return 0
    for check in checks:
        for result in check.sets:
            out.print(_result_table(check, result))
    return 0


def _models(workspace: Workspace, judge: str | None) -> list[Model]:
    """The models to measure. The embedded one is measured only where it is named: it takes hours on a CPU."""
    from pipeline.llm.models import get_model, judge_models

    if judge is not None:
        return [get_model(workspace.settings, judge, "--judge")]
    return [model for model in judge_models(workspace.settings) if model.url is not None]


def _checks(workspace: Workspace, models: Sequence[Model], sets: Sequence[Any]) -> list[JudgeCheck]:
    from pipeline.evaluation.citation_support.overlap_judge import OverlapJudge
    from pipeline.evaluation.judge_check.record import JudgeCheck, current_digest, write_check
    from pipeline.evaluation.judge_check.verify import verify_model, verify_overlap
    from pipeline.settings.validators import OVERLAP_JUDGE

    overlap = verify_overlap(OverlapJudge.of(workspace.settings), sets)
    checks = [
        JudgeCheck(OVERLAP_JUDGE, "citation_support", current_digest(OVERLAP_JUDGE, "citation_support"), tuple(overlap))
    ]
    for model in models:
        for task, results in verify_model(workspace, model, sets).items():
            checks.append(JudgeCheck(model.name, task, current_digest(model.name, task), tuple(results)))
    for check in checks:
        write_check(workspace.root, check)
    return checks


def _cost_text(cost: VerificationCost) -> str:
    money = "" if cost.money is None else f", {cost.money:,.2f} of money"
    return (
        f"{cost.model}: {cost.calls:,} calls, {cost.answered:,} of them answered before; to pay are "
        f"{cost.prompt_tokens:,} tokens read and {cost.completion_tokens:,} written{money}"
    )


def _result_table(check: JudgeCheck, result: SetResult) -> Table:
    """One judge at one task on one set: a line for each class with its verdicts, and macro-F1."""
    from rich.markup import escape

    from pipeline.cli.console import make_table
    from pipeline.evaluation.judge_check.labelled_claims import LABELS
    from pipeline.evaluation.judge_check.verify import TASKS

    measures = result.measures
    title = (
        f"{escape(check.judge)}, {TASKS[check.task].title}: {result.set}, {measures.claims:,} of {result.available:,}"
    )
    table = make_table(title, ("label", "claims", "accuracy", "F1", "verdicts"), right=("claims",))
    for name, of_class in (measures.classes or measures.support).items():
        # Of two classes, the second is every label but the first.
        labels = (name,) if name in LABELS else LABELS[1:]
        counts = sum((Counter(measures.confusion[label]) for label in labels), Counter[str]())
        verdicts = ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())) or "–"
        table.add_row(name, f"{of_class.claims:,}", _interval(of_class.accuracy), _interval(of_class.f1), verdicts)
    table.add_section()
    macro = {"macro-F1, three classes": measures.macro_f1, "macro-F1, supported or not": measures.support_macro_f1}
    for name, figure in macro.items():
        if figure is not None:
            table.add_row(name, "", "", _interval(figure), "")
    if result.calls:
        money = "" if result.money is None else f", {result.money:,.2f} of money"
        table.caption = f"{result.calls:,} calls, {result.prompt_tokens + result.completion_tokens:,} tokens{money}"
    return table


def _interval(figure: Estimate | None) -> str:
    return "–" if figure is None else f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"
