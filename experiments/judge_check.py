"""Print the table in methods/g-score.md: whether a judge recognises sections that were damaged on purpose.

    .venv/bin/python -m experiments.judge_check RELATED_WORK_FOLDER NEW_ROOT [TASKS]

RELATED_WORK_FOLDER holds related-work sections with the papers that they cite, as JSON. The beginning of each is the
gold section, and four made of it, or of another paper's, go to the judge of the settings (CITELOOM_JUDGES,
CITELOOM_LLM_URL, …) by the stage `g_scores`, in the place of four systems. TASKS: how many of
the sections are taken, all by default. Only NEW_ROOT is written.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Stage, Workspace
from pipeline.evaluation.stages import G_SCORES
from pipeline.evaluation.statistics import values_by_system, vote_disorder, votes_by_task
from pipeline.related_work.importers.rwsg import import_rwsg
from pipeline.related_work.summary import split_sentences
from pipeline.settings import load_settings
from pipeline.tables import CRITERIA, Table

MONTH = "2024-01"
# Enough to tell order and comparison by; whole sections of four kinds would not fit an embedded model's context.
SENTENCES = 8
MADE = {
    "chatcite": "the gold section itself",
    "few_shot": "its sentences in random order",
    "litllm": "its citations with other numbers",
    "zero_shot": "another paper's section",
}

_CITATION = re.compile(r"\[Reference (\d+)\]")

Row = dict[str, Any]


def made_of(text: str, other: str, references: int) -> dict[str, str]:
    """The four sections, by the system in whose place they stand."""
    sentences = split_sentences(text)
    mixed = sorted(sentences, key=lambda sentence: hashlib.sha256(sentence.encode()).digest())

    def renumbered(match: re.Match[str]) -> str:
        return f"[Reference {int(match[1]) % references + 1}]"

    texts = (text, " ".join(mixed), _CITATION.sub(renumbered, text), other)
    return dict(zip(MADE, texts, strict=True))


def _beginning(text: str) -> str:
    return " ".join(split_sentences(text)[:SENTENCES])


def _write(work: Workspace, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    kept = list(rows)
    run_stage(Stage(table=table, build=lambda job: kept), work, MONTH, force=True)


def write_month(work: Workspace, folder: Path, tasks: int | None = None) -> None:
    """The tasks, or the first of them, and the four sections of each."""
    rows = [import_rwsg(file, MONTH).task.row() for file in sorted(folder.glob("*.json"))]
    rows = [{**row, "gold": _beginning(row["gold"])} for row in rows]
    others = [row["gold"] for row in rows[1:] + rows[:1]]
    made = {
        row["task_id"]: made_of(row["gold"], other, len(row["references"]))
        for row, other in zip(rows, others, strict=True)
    }
    rows = rows[:tasks]
    _write(work, tables.RELATED_WORK_TASKS, rows)
    sections = (_section(row, system, made[row["task_id"]]) for system in sorted(MADE) for row in rows)
    _write(work, tables.SUMMARIES, sections)


def _section(row: Row, system: str, made: Mapping[str, str]) -> Row:
    return {**dict.fromkeys(tables.SUMMARIES.schema.names), "task_id": row["task_id"], "system": system,
            "text": made[system], "sentences": []}  # fmt: skip


def lines(rows: Sequence[Row]) -> Iterable[str]:
    """A table for each mode, and how far the judge's votes agree."""
    cast = [vote for each in votes_by_task(rows).values() for vote in each]
    votes = {system: cast.count(system) / len(cast) for system in cast}
    for mode in ("together", "alone"):
        yield f"\n| judged {mode} | {' | '.join(CRITERIA)} | mean | votes |\n|---|{'---|' * (len(CRITERIA) + 2)}"
        for system, told in MADE.items():
            means = [_mean(rows, mode, system, criterion) for criterion in (*CRITERIA, None)]
            vote = f"{votes.get(system, 0):.0%}" if mode == "together" else ""
            yield f"| {told} | {' | '.join(f'{mean:.2f}' for mean in means)} | {vote} |"
    yield f"votes: {vote_disorder(rows)}"


def _mean(rows: Sequence[Row], mode: str, system: str, criterion: str | None) -> float:
    values = values_by_system(rows, mode, criterion=criterion).get(system, {})
    return fmean(fmean(value) for value in values.values()) if values else float("nan")


def main() -> None:
    folder, root = (Path(argument) for argument in sys.argv[1:3])
    work = Workspace(load_settings(data=root, judge_repeats=4, judge_alone=True))
    write_month(work, folder, int(sys.argv[3]) if sys.argv[3:] else None)
    outcome = run_stage(G_SCORES, work, MONTH)
    rows = work.root.rows(tables.G_SCORES, MONTH)
    print(*lines(rows), sep="\n")
    print({row["judge"] for row in rows}, outcome.notes, dict(outcome.left_out), f"{outcome.seconds:.0f} s")


if __name__ == "__main__":
    main()
