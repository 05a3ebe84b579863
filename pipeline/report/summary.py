"""The summary of a month: what reports pool of its tables, in a small file.

The page over all months is made from these files. A summary is a cache: it is made again from the
tables where it is missing, damaged, or made from other tables.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.answering.answer import hides_failure
from pipeline.answering.questions import read_posed_questions
from pipeline.corpus.links import is_sample
from pipeline.corpus.passages.packing import length_histogram
from pipeline.engine.digests import json_digest
from pipeline.engine.stage import STATES
from pipeline.evaluation.annotation.grades import read_month_grades
from pipeline.evaluation.annotation.ratings import read_ratings
from pipeline.evaluation.answers.measures import Grade, read_grades, read_shown
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.storage.read_cache import remember
from pipeline.storage.store import DataPath, file_version
from pipeline.storage.writing import write_whole
from pipeline.tables import CRITERIA, Table
from pipeline.tables.writers import with_writer_names, writer_name

Row = Mapping[str, Any]
ScoresByTask = tuple[str, str, str, str, Mapping[str, float]]
"""Metric, judge and candidate set ('' where none is needed), writer, and task → value."""

FOLDER = "reports/summaries"
# Raised when summaries have other fields or values for the same tables.
_VERSION = 8

# From the dump to the tasks of related work: table, what its rows are, and one of them.
FUNNEL: tuple[tuple[Table, str, str], ...] = (
    (tables.DUMP_MEMBERS, "In the dump", "page"),
    (tables.METADATA, "Known to arXiv", "paper"),
    (tables.PAPERS, "In the chosen categories and parsed", "paper"),
    (tables.PASSAGES, "Split into passages", "passage"),
    (tables.EMBEDDINGS, "Embedded", "passage"),
    (tables.INDEX_RECEIPTS, "Found in the index", "passage"),
    (tables.REFERENCES, "References read", "reference"),
    (tables.RELATED_WORK_TASKS, "Related-work tasks", "task"),
)
FUNNEL_STAGES = tuple(table.name for table, *_ in FUNNEL)
ANSWER_STAGES = tuple(
    table.name
    for table in (tables.QUESTIONS, tables.ANSWERS, tables.ANSWER_GRADES, tables.ANSWER_SCORES)
)
MODEL_STAGES = (
    tables.KEY_ELEMENTS.name,
    tables.SUMMARIES.name,
    tables.G_SCORES.name,
    tables.CITATION_SUPPORT.name,
    tables.SCORES.name,
    *ANSWER_STAGES,
)
USAGE = ("calls", "prompt_tokens", "completion_tokens")
# Tables whose rows were made by a model, with the column that names it.
_MODEL_COLUMNS = {
    tables.KEY_ELEMENTS: "model",
    tables.SUMMARIES: "model",
    tables.G_SCORES: "judge",
    tables.CITATION_SUPPORT: "judge",
    tables.ANSWERS: "model",
    tables.ANSWER_GRADES: "judge",
}
_WRITTEN = (tables.SUMMARIES, tables.ANSWERS)
_SUPPORT = ["system", "verdict", "unjudged", "quote_found"]
_CONVERSATION = ("task_id", "judge", "candidate_set", "order")
_SCORE = ["system", "model", "metric", "value", "repeat", *_CONVERSATION]
_JUDGEMENT = ["task_id", "candidate_set", "judge", "repeat", "order", "best", "marks"]
_RATING = ("study", "rater", "task_id", "system", "preferred", *CRITERIA)
_GRADE = ("question_id", "system", "judge", "kind", "date", "outcome", "hops_shown")
_HUMAN_GRADE = ("study", "grader", "question_id", "system", "part", "text", "verdict", "comment")
# A month of the whole dump has thousands of papers, whose ids need not be read to know that it is
# no sample.
_MOST_SAMPLE_PAPERS = 1_000


@dataclass(frozen=True, slots=True)
class MonthSummary:
    """A month as reports pool it, in values that JSON has; writers have their full names.

    finished: whether its systems were scored. sample: whether it has papers of the sample corpus.
    rows: stage of the funnel → the rows that come out of it. passage_lengths: range of words →
    passages. left_out: stage of the funnel → reason → how much was left out. loads: rows of
    `index_receipts`. disabled_stages: stage that calls a model and was not run → the reason.

    usage: table → [writer, model, rows, calls, tokens read, tokens written], the writer '' where
    the table has none. sections: writer → its sections, repeats not counted. scores: those by which
    systems are compared, orders of one conversation averaged. repeats: scores of the tasks that
    were written repeatedly, of every repeat; marks of all repeats are of one order. verdicts:
    writer → its citations by verdict, `unjudged: <why>` for those without. unquoted: writer →
    supported citations whose quote was not found. judgements: rows of `g_scores` on the sections
    that are compared, with marks only where people rated. outdated_ratings: of sections that have
    changed since. task_references: source of a task's reference → how many.

    grades: of answers, without texts. shown: answers that only show passages. human_grades: rows by
    people, judge_grades: the grades that they are compared with, outdated_grades: rows on answers
    that have changed since. states: writer → its sections or answers that failed, and sections by
    the states of `STATES`.
    """

    month: str
    finished: bool
    sample: bool
    rows: Mapping[str, int]
    passage_lengths: Mapping[str, int]
    left_out: Mapping[str, Mapping[str, int]]
    loads: Sequence[Row]
    disabled_stages: Mapping[str, str]
    usage: Mapping[str, Sequence[tuple[str, str, int, int, int, int]]]
    sections: Mapping[str, int]
    scores: Sequence[ScoresByTask]
    repeats: Sequence[Row]
    verdicts: Mapping[str, Mapping[str, int]]
    unquoted: Mapping[str, int]
    judgements: Sequence[Row]
    ratings: Sequence[Row]
    outdated_ratings: int
    task_references: Mapping[str, int]
    why_no_task: str
    questions: Sequence[Row]
    why_no_question: str
    grades: Sequence[Row]
    shown: Sequence[Row]
    human_grades: Sequence[Row]
    judge_grades: Sequence[Row]
    outdated_grades: int
    states: Mapping[str, Mapping[str, int]]


def summary_file(root: DataRoot, month: str) -> DataPath:
    """The file of a month's summary."""
    return root.path / FOLDER / f"{month}.json"


def summary_key(root: DataRoot, month: str) -> str:
    """SHA-256 of what a month's summary and pages are made from. Raises PermanentFailure where a
    file cannot be read.
    """
    stages = (*FUNNEL_STAGES, *MODEL_STAGES)
    read = [*(tables.TABLES[name] for name in stages), tables.HUMAN_RATINGS, tables.HUMAN_GRADES]
    files = [root.file(table, month) for table in read]

    def digest() -> str:
        ledgers = [root.ledger_file(stage, month) for stage in stages]
        parts: list[Any] = [_VERSION]
        for file in [*files, *ledgers]:
            provenance = read_provenance(file)
            if provenance is None:
                parts.append(None)
            else:
                parts.append([provenance.rows_sha256, provenance.left_out, provenance.notes])
        return json_digest(parts)

    # A stage writes its ledger before its table: where no table was rewritten, no ledger was.
    versions = [_version_of(file) for file in files]
    return remember(f"summary key of {month} in {root.path}", str([_VERSION, *versions]), digest)


def _version_of(file: DataPath) -> tuple[object, ...] | None:
    try:
        return file_version(file)
    except FileNotFoundError:
        return None


def read_summary(root: DataRoot, month: str) -> MonthSummary:
    """The summary of a month; made, and its file written, where it is not up to date.

    A table that is missing has no rows. Raises as `DataRoot.read` does for a table that is damaged
    or of another version.
    """
    key, file = summary_key(root, month), summary_file(root, month)
    with contextlib.suppress(FileNotFoundError, ValueError, TypeError, KeyError):
        stored = json.loads(file.read_bytes())
        if stored.pop("key") == key:
            return MonthSummary(**stored)
    summary = _summarize(root, month)
    values = {field.name: getattr(summary, field.name) for field in fields(summary)}
    content = json.dumps({"key": key, **values}, ensure_ascii=False, separators=(",", ":"))
    write_whole(file, content.encode())
    # A summary that was just made has the types of one that was read.
    return MonthSummary(**json.loads(json.dumps(values)))


def _summarize(root: DataRoot, month: str) -> MonthSummary:
    related = {
        table: read_or_empty(root, table, month, columns)
        for table, columns in {
            tables.SUMMARIES: ["system", "model", "repeat", *USAGE],
            tables.CITATION_SUPPORT: [*_SUPPORT, "model", "judge", *USAGE],
            tables.SCORES: _SCORE,
            tables.KEY_ELEMENTS: ["model", *USAGE],
            tables.G_SCORES: ["section_repeat", *_JUDGEMENT, *USAGE],
            tables.ANSWERS: ["system", "model", *USAGE],
            tables.ANSWER_GRADES: ["judge", *USAGE],
        }.items()
    }
    summaries = with_writer_names(related[tables.SUMMARIES])
    first_runs = summaries.filter(pc.equal(summaries["repeat"], 0))["system"]
    scores = with_writer_names(related[tables.SCORES])
    verdicts, unquoted = _citations_by_verdict(with_writer_names(related[tables.CITATION_SUPPORT]))
    ratings, outdated_ratings = read_ratings(root, month)
    questions = read_posed_questions(iterate(root, tables.QUESTIONS, month))
    states = _states(root, month)
    failed = _failed_answers(root, month)
    for _, writer in failed:
        states.setdefault(writer, Counter())["failed"] += 1
    grades = [
        grade
        for grade in read_grades(root, month)
        if (grade["question_id"], grade["system"]) not in failed
    ]
    people = read_month_grades(root, month, grades)
    tasks = notes_of(root, tables.RELATED_WORK_TASKS, month)
    return MonthSummary(
        month=month,
        finished=root.provenance(tables.SCORES, month) is not None,
        sample=_is_sample(root, month),
        rows={table.name: rows_out(root, month, table) for table, *_ in FUNNEL},
        passage_lengths=length_histogram(
            read_or_empty(root, tables.PASSAGES, month, ["words"])["words"]
        ),
        left_out=count_left_out(root, month),
        loads=list(iterate(root, tables.INDEX_RECEIPTS, month)),
        disabled_stages=_disabled_stages(root, month),
        usage={table.name: _usage(table, rows) for table, rows in related.items()},
        sections=Counter(first_runs.to_pylist()),
        scores=mean_scores(scores),
        repeats=_repeats(scores),
        verdicts=verdicts,
        unquoted=unquoted,
        judgements=_judgements(related[tables.G_SCORES], with_marks=bool(ratings)),
        ratings=[{name: row[name] for name in _RATING} for row in ratings],
        outdated_ratings=outdated_ratings,
        task_references=tasks.get("references", {}),
        why_no_task=tasks.get("no_task", ""),
        questions=[
            {
                "id": posed.question.id,
                "question": posed.question.question,
                "kind": posed.question.kind,
                "papers": posed.question.papers,
                "date": posed.question.date or posed.question.month,
            }
            for posed in questions
        ],
        why_no_question="" if questions else _why_no_question(root, month),
        grades=[_without_texts(grade) for grade in grades],
        shown=read_shown(root, month),
        human_grades=[{name: row[name] for name in _HUMAN_GRADE} for row in people.rows],
        judge_grades=people.grades if people.rows else [],
        outdated_grades=people.outdated,
        states=states,
    )


def _states(root: DataRoot, month: str) -> dict[str, Counter[str]]:
    """What the parts of sections and answers note of their writers."""
    parts = [notes_of(root, table, month).get("parts", {}) for table in _WRITTEN]
    return {
        writer: Counter(part["notes"].get(STATES, {}))
        for of_table in parts
        for writer, part in of_table.items()
    }


def _failed_answers(root: DataRoot, month: str) -> list[tuple[str, str]]:
    """(question id, writer) of rows of earlier versions that abstain, as a step failed."""
    columns = ["question_id", "system", "model", "abstained", "trace"]
    rows = iterate(root, tables.ANSWERS, month, columns)
    return [(row["question_id"], writer_name(row)) for row in rows if hides_failure(row)]


def _usage(table: Table, rows: pa.Table) -> list[tuple[Any, ...]]:
    """Rows, calls and tokens by writer and model; [] for a table that no model makes."""
    if table not in _MODEL_COLUMNS:
        return []
    model = _MODEL_COLUMNS[table]
    keys = ["system", model] if table in _WRITTEN else [model]
    named = with_writer_names(rows) if table in _WRITTEN else rows
    sums = named.group_by(keys, use_threads=False).aggregate(
        [([], "count_all"), *((name, "sum") for name in USAGE)]
    )
    return [
        (
            row.get("system", ""),
            row[model] or "",
            row["count_all"],
            *(row[f"{name}_sum"] or 0 for name in USAGE),
        )
        for row in sums.to_pylist()
    ]


def _repeats(scores: pa.Table) -> list[Row]:
    """Scores of every repeat of the tasks that were written repeatedly.

    Of the marks of repeat 0 those of the conversation in whose order the others were marked.
    """
    tasks = pc.unique(scores.filter(pc.greater(scores["repeat"], 0))["task_id"])
    rows = scores.filter(pc.is_in(scores["task_id"], tasks)).to_pylist()

    def conversation(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in _CONVERSATION)

    repeated = {conversation(row) for row in rows if row["repeat"]}
    return [row for row in rows if conversation(row) in repeated]


def mean_scores(rows: pa.Table) -> list[ScoresByTask]:
    """Scores of the sections that are compared, by metric, judge, candidate set, system and task;
    those of several orders are averaged.
    """
    scores: dict[tuple[str, str, str, str], dict[str, float]] = defaultdict(dict)
    keys = ["metric", "judge", "candidate_set", "system", "task_id"]
    compared = rows.filter(pc.equal(rows["repeat"], 0))
    means = compared.group_by(keys, use_threads=False).aggregate([("value", "mean")])
    for row in means.to_pylist():
        if row["value_mean"] is not None:
            # Measures of citations name their judge too, but are by one judge only.
            judge = row["judge"] if row["candidate_set"] else None
            by_task = scores[row["metric"], judge or "", row["candidate_set"] or "", row["system"]]
            by_task[row["task_id"]] = row["value_mean"]
    return [(*key, by_task) for key, by_task in scores.items()]


def _citations_by_verdict(support: pa.Table) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Writer → its citations by verdict, and writer → supported ones whose quote was not found."""
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    unquoted = Counter[str]()
    counts = support.group_by(_SUPPORT, use_threads=False).aggregate([([], "count_all")])
    for row in counts.to_pylist():
        verdict = row["verdict"] or f"unjudged: {row['unjudged'] or 'unknown'}"
        verdicts[row["system"]][verdict] += row["count_all"]
        if verdict == "supported" and not row["quote_found"]:
            unquoted[row["system"]] += row["count_all"]
    return verdicts, unquoted


def _judgements(rows: pa.Table, *, with_marks: bool) -> list[Row]:
    """Judgements on the sections that are compared. Marks are most of them, and are compared with
    people's alone.
    """
    compared = rows.filter(pc.equal(rows["section_repeat"], 0)).select(_JUDGEMENT).to_pylist()
    return compared if with_marks else [{**row, "marks": []} for row in compared]


def _without_texts(grade: Grade) -> Row:
    """A grade with what its measures need. Quotes, which are most of it, count as not found: no
    report has the measures that need them.
    """
    claims = [{"verdict": claim["verdict"], "quoted": None} for claim in grade["claims"]]
    gold = [
        {
            "verdict": claim["verdict"],
            "quoted": None,
            "shown_in_hop": claim["shown_in_hop"],
            "has_passage": claim["has_passage"],
        }
        for claim in grade["gold"]
    ]
    return {**{name: grade[name] for name in _GRADE}, "claims": claims, "gold": gold}


def read_or_empty(
    root: DataRoot, table: Table, month: str, columns: list[str] | None = None
) -> pa.Table:
    """A month of a table; no rows where it is missing."""
    if root.provenance(table, month) is None:
        return table.schema.empty_table().select(columns or table.schema.names)
    return root.read(table, month, columns)


def iterate(
    root: DataRoot, table: Table, month: str, columns: list[str] | None = None
) -> Iterable[Row]:
    """The rows of a month of a table; none where it is missing."""
    if root.provenance(table, month) is None:
        return ()
    return root.iterate(table, month, columns)


def rows_out(root: DataRoot, month: str, table: Table) -> int:
    """Rows of a month; for the index the points found there; 0 where the month is missing."""
    provenance = root.provenance(table, month)
    if provenance is None:
        return 0
    if table is tables.INDEX_RECEIPTS:
        return sum(row["present"] for row in root.rows(table, month, ["present"]))
    return provenance.rows


def count_left_out(root: DataRoot, month: str) -> dict[str, Counter[str]]:
    """Stage of the funnel → reason → how much it left out of a month."""
    counts = {}
    for stage in FUNNEL_STAGES:
        reasons = root.ledger(stage, month, ["reason"])["reason"].to_pylist()
        if reasons:
            counts[stage] = Counter(reason or "" for reason in reasons)
    return counts


def notes_of(root: DataRoot, table: Table, month: str) -> Mapping[str, Any]:
    """The notes in the file of a month, such as why something was not measured."""
    provenance = root.provenance(table, month)
    return provenance.notes if provenance else {}


def _disabled_stages(root: DataRoot, month: str) -> dict[str, str]:
    notes = {stage: notes_of(root, tables.TABLES[stage], month) for stage in MODEL_STAGES}
    return {stage: str(note["off"]) for stage, note in notes.items() if note.get("off")}


def _is_sample(root: DataRoot, month: str) -> bool:
    """Whether a month is one of the sample corpus, which has ten papers a month at most."""
    papers = root.provenance(tables.PAPERS, month)
    if papers is None or papers.rows > _MOST_SAMPLE_PAPERS:
        return False
    return any(
        map(is_sample, root.read(tables.PAPERS, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    )


def _why_no_question(root: DataRoot, month: str) -> str:
    provenance = root.provenance(tables.QUESTIONS, month)
    if provenance is None:
        return "the month has no table of questions"
    if provenance.notes.get("off"):
        return str(provenance.notes["off"])
    if provenance.left_out:
        return "all were left out"
    return "the question set has no question for this month"
