"""Rows of one or several months, as reports read them: counts, scores of systems, and what their
texts cost.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.corpus.links import is_sample
from pipeline.corpus.passages.packing import length_histogram
from pipeline.engine.stage import STATES, Workspace
from pipeline.errors import CiteloomError
from pipeline.evaluation.annotation.results import (
    GradeResults,
    RatingResults,
    read_grade_results,
    read_rating_results,
)
from pipeline.evaluation.answers.measures import age_of, hop_gains, latest_cutoff, read_grades
from pipeline.evaluation.g_score.sample import ABLATIONS, MAIN, candidate_sets
from pipeline.evaluation.statistics import Estimate, estimate, paired_difference
from pipeline.llm.models import known_cutoffs, known_prices, models_served_as, small_model_among
from pipeline.report import UPSTREAM
from pipeline.report.formatting import answering_system, question_date, words
from pipeline.settings import Settings
from pipeline.stage_names import ANSWERING_SYSTEMS, RELATED_WORK_SYSTEMS
from pipeline.storage.data_root import DataRoot
from pipeline.storage.read_cache import remember
from pipeline.storage.store import DataPath, file_version
from pipeline.system_names import FORMER_ANSWERING_SYSTEMS, FORMER_RELATED_WORK_SYSTEMS
from pipeline.tables import Table
from pipeline.tables.writers import parse_writer, short_names, with_writer_names, writer_name

Row = Mapping[str, Any]

USAGE = ("calls", "prompt_tokens", "completion_tokens")
_AUDIT = ("expected", "present", "missing", "stale")
# The columns by which rows of a month are counted, and those that are summed.
_GROUPS: Mapping[Table, tuple[Sequence[str], Sequence[str]]] = {
    tables.INDEX_RECEIPTS: (("collection", "engine", "model"), _AUDIT),
    tables.KEY_ELEMENTS: (("model",), USAGE),
    tables.SUMMARIES: (("system", "model", "repeat"), USAGE),
    tables.G_SCORES: (("judge",), USAGE),
    tables.CITATION_SUPPORT: (
        ("system", "model", "judge", "verdict", "unjudged", "quote_found"),
        USAGE,
    ),
    tables.ANSWERS: (("system", "model"), USAGE),
    tables.ANSWER_GRADES: (("system", "model", "judge", "kind", "outcome"), USAGE),
}
_SCORE_COLUMNS = [name for name in tables.SCORES.schema.names if name != "order"]
_SET_TITLES = {MAIN: "Main comparison", ABLATIONS: "Ablations"}
# The order of the arXivBot report's Table 1: the model alone, sites (imported answers), WikiChat,
# arXivBot.
_ANSWERING_ORDER = {"direct": 0, "wikichat": 2, "arxivbot": 3, "arxivbot_fused": 4}
_IMPORTED = 1
NO_MODEL = "no model"


def answering_order(system: str) -> tuple[int, str]:
    """The position of an answering system among others."""
    return _ANSWERING_ORDER.get(parse_writer(system).system, _IMPORTED), system


def judges_of(settings: Settings) -> list[str]:
    """The judges in their order."""
    return list(settings.judges) or [settings.llm_model]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One item of the ledger, or an answer that a system went on without, which has the system's
    name as its stage. page: of the task or question it is of.
    """

    stage: str
    subject: str
    reason: str
    detail: str
    page: str = ""


@dataclass(frozen=True, slots=True)
class Month:
    """A month as reports read it.

    finished: whether its systems were scored. rows, left_out, notes: table → its rows, reason →
    what was left out, and notes in its file. counts: table → its rows counted by some columns
    (`rows`), with sums; `lengths`: range of words → passages; `gains` of `hop_gains`; `sample`:
    whether it has papers of the sample corpus. questions: rows of `questions`, by id. Ids of
    questions begin with the month, since two months may have a question of one id.
    """

    month: str
    finished: bool
    rows: Mapping[str, int]
    left_out: Mapping[str, Mapping[str, int]]
    notes: Mapping[str, Row]
    counts: Mapping[str, Any]
    questions: Mapping[str, Row]
    scores: pa.Table
    answer_scores: pa.Table


def read_month(root: DataRoot, month: str) -> Month:
    """A month; tables that are missing have no rows. Raises as `DataRoot.read` does."""
    # Facts of 424 months take 8 s to read, and 0.1 s where they were read before.
    versions = versions_of(root.file(table, month) for table in UPSTREAM)
    name = f"report's facts of {month} in {root.path}"
    facts = json.loads(remember(name, versions, lambda: json.dumps(_read_facts(root, month))))

    def scores(table: Table, columns: list[str]) -> pa.Table:
        if facts["rows"].get(table.name):
            return root.read(table, month, columns)
        return table.schema.empty_table().select(columns)

    answers = scores(tables.ANSWER_SCORES, tables.ANSWER_SCORES.schema.names)
    ids = pc.binary_join_element_wise(month, answers["question_id"], " ")
    return Month(
        **facts,
        scores=scores(tables.SCORES, _SCORE_COLUMNS),
        answer_scores=_with_column(answers, "question_id", ids),
    )


def versions_of(files: Iterable[DataPath]) -> str:
    """A text that differs once one of these files was rewritten, made or removed."""
    versions: list[object] = []
    for file in files:
        try:
            versions.append(file_version(file))
        except FileNotFoundError:
            versions.append(None)
    return str(versions)


def _read_facts(root: DataRoot, month: str) -> dict[str, Any]:
    """The fields of a `Month` but the scores."""
    files = {table: file for table in UPSTREAM if (file := root.provenance(table, month))}
    columns = ["question_id", "question", "kind", "papers", "date"]
    questions = read_or_empty(root, tables.QUESTIONS, month, columns).to_pylist()
    counts = _count(root, month)
    rows = {table.name: file.rows for table, file in files.items()}
    return {
        "month": month,
        "finished": tables.SCORES in files,
        "rows": rows | {"index_receipts": sum(row["present"] for row in counts["index_receipts"])},
        "left_out": {table.name: dict(file.left_out) for table, file in files.items()},
        "notes": {table.name: dict(file.notes) for table, file in files.items()},
        "counts": counts,
        "questions": {f"{month} {row['question_id']}": row for row in questions},
    }


def _count(root: DataRoot, month: str) -> dict[str, Any]:
    """The `counts` of a month."""
    counts: dict[str, Any] = {}
    for table, (keys, sums) in _GROUPS.items():
        rows = read_or_empty(root, table, month, [*keys, *sums])
        wanted = [([], "count_all"), *((name, "sum") for name in sums)]
        counted = rows.group_by(list(keys), use_threads=False).aggregate(wanted)
        names = {"count_all": "rows", **{f"{name}_sum": name for name in sums}}
        columns = [names.get(name, name) for name in counted.column_names]
        counts[table.name] = counted.rename_columns(columns).to_pylist()
    papers = read_or_empty(root, tables.PAPERS, month, ["arxiv_id"])["arxiv_id"]
    counts["sample"] = any(map(is_sample, papers.to_pylist()))
    lengths = read_or_empty(root, tables.PASSAGES, month, ["words"])["words"]
    counts["lengths"] = length_histogram(lengths)
    counts["gains"] = hop_gains(read_grades(root, month))
    return counts


def _with_column(rows: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, column)


def read_or_empty(
    root: DataRoot, table: Table, month: str, columns: list[str] | None = None
) -> pa.Table:
    """A month of a table; no rows where it is missing."""
    provenance = root.provenance(table, month)
    if provenance is None or not provenance.rows:
        return table.schema.empty_table().select(columns or table.schema.names)
    return root.read(table, month, columns)


def rows_out(root: DataRoot, month: str, table: Table) -> int:
    """Rows of a month; for the index the points found there; 0 where the month is missing."""
    if table is tables.INDEX_RECEIPTS:
        return sum(row["present"] for row in read_or_empty(root, table, month).to_pylist())
    provenance = root.provenance(table, month)
    return provenance.rows if provenance else 0


def read_ledger(root: DataRoot, month: str, stages: Iterable[Table]) -> list[LeftOut]:
    """Items that the stages of these tables left out of a month, stage by stage, sorted within."""
    items: list[LeftOut] = []
    for table in stages:
        rows = root.ledger(table.name, month, ["subject", "reason", "detail"]).to_pylist()
        texts = sorted(
            [row[name] or "" for name in ("subject", "reason", "detail")] for row in rows
        )
        items += [LeftOut(table.name, *of_item) for of_item in texts]
    return items


@dataclass(frozen=True)
class ReportData:
    """One month, or all months, and the settings by which they are shown."""

    root: DataRoot
    settings: Settings
    months: Sequence[Month]
    unreadable: Sequence[str] = ()
    """Months with a table that cannot be read."""

    @property
    def finished(self) -> list[Month]:
        return [month for month in self.months if month.finished]

    @property
    def sample(self) -> bool:
        """Whether papers of the sample corpus are shown."""
        return any(month.counts["sample"] for month in self.months)

    def rows(self, table: Table) -> int:
        """How many rows came out of a stage of the funnel."""
        return sum(month.rows.get(table.name, 0) for month in self.months)

    def left_out(self, stage: str) -> Counter[str]:
        """Reason → how much a stage of the funnel left out."""
        return _sum(month.left_out.get(stage, {}) for month in self.months)

    @property
    def lengths(self) -> Counter[str]:
        """Range of words → passages, the shortest first."""
        return _sum(month.counts["lengths"] for month in self.months)

    def groups(self, table: Table) -> list[Row]:
        """Counts of a table's rows in the finished months."""
        return [row for month in self.finished for row in month.counts[table.name]]

    @property
    def audit(self) -> Counter[str]:
        """Points that were expected in the index, are present, missing, and should not be there."""
        loads = (row for month in self.months for row in month.counts["index_receipts"])
        return _sum({name: row[name] for name in _AUDIT} for row in loads)

    def note(self, table: Table, name: str) -> str:
        """The note of the first finished month that has it; '' for none."""
        notes = (month.notes.get(table.name, {}).get(name) for month in self.finished)
        return next(filter(None, notes), "")

    @cached_property
    def related(self) -> RelatedWork:
        return RelatedWork(self)

    @cached_property
    def answers(self) -> Answers:
        return Answers(self)


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total = Counter[str]()
    for of_one in counts:
        total.update(of_one)
    return total


def read_report(
    workspace: Workspace, months: Sequence[str], *, skip_damaged: bool = False
) -> ReportData:
    """The data of the report on some months. skip_damaged: a month with a table that cannot be read
    is among the `unreadable`. Raises as `DataRoot.read` does otherwise.
    """
    read, unreadable = [], []
    with workspace.read_cache():
        for month in months:
            try:
                read.append(read_month(workspace.root, month))
            except CiteloomError:
                if not skip_damaged:
                    raise
                unreadable.append(month)
    return ReportData(workspace.root, workspace.settings, read, unreadable)


class Scores:
    """Values by metric, judge, system and task or question, those of several orders averaged."""

    def __init__(
        self, rows: pa.Table, item: str, names: Mapping[str, str], preferred_judges: Sequence[str]
    ) -> None:
        """rows: of `scores` or `answer_scores`; those of repeats do not count. item: the column of
        ids. names: writer → its name in the report. preferred_judges: in order; the main tables
        show the first that judged.
        """
        self._values: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        if item == "task_id":
            rows = rows.filter(pc.equal(rows["repeat"], 0))
            # Measures of citations name their judge too, but are by one judge only.
            judges = pc.if_else(pc.is_valid(rows["candidate_set"]), rows["judge"], None)
            rows = _with_column(rows, "judge", judges)
        keys = ["metric", "judge", "system", item]
        means = with_writer_names(rows).group_by(keys, use_threads=False)
        columns = means.aggregate([("value", "mean")])
        values = (columns[name].to_pylist() for name in (*keys, "value_mean"))
        for metric, judge, writer, of_item, value in zip(*values, strict=True):
            if value is not None:
                self._values[metric, judge or ""][names.get(writer, writer)][of_item] = value
        judged = {judge for _, judge in self._values if judge}
        preferred = [judge for judge in preferred_judges if judge in judged]
        self.judges = [*preferred, *sorted(judged.difference(preferred))]
        """Models that judged, the preferred ones first."""

    @property
    def judge(self) -> str:
        """The model whose marks the main tables show; '' where none judged."""
        return next(iter(self.judges), "")

    def by_item(self, system: str, metric: str) -> Mapping[str, float]:
        """Task or question → value, by the first judge where a judge is needed."""
        by_judge = self._values.get((metric, self.judge), {}).get(system)
        return by_judge or self._values.get((metric, ""), {}).get(system, {})

    def mean(self, system: str, metric: str, items: Collection[str] | None = None) -> Estimate:
        """The mean with its interval. items: the only ones that count; None for all."""
        values = self.by_item(system, metric)
        return estimate({i: [value] for i, value in values.items() if items is None or i in items})

    def difference(self, first: str, second: str, metric: str) -> Estimate | None:
        """The first system less the second, over what both have; None for fewer than two."""
        ours, theirs = self.by_item(first, metric), self.by_item(second, metric)
        return paired_difference(
            {item: [value] for item, value in ours.items()},
            {item: [value] for item, value in theirs.items()},
        )

    def of_task(self, task: str, systems: Iterable[str], metric: str) -> dict[str, float]:
        """System → value of one task; only systems that have one."""
        values = {system: self.by_item(system, metric).get(task) for system in systems}
        return {system: value for system, value in values.items() if value is not None}

    def best_voted(self, task: str, systems: Iterable[str]) -> set[str]:
        """The systems with most votes for a task."""
        votes = self.of_task(task, systems, "g_vote")
        most = max(votes.values(), default=0.0)
        return {system for system, share in votes.items() if share == most and share > 0}


class Writings:
    """The texts of systems in one or several months, and their cost."""

    def __init__(
        self, data: ReportData, table: Table, others: Sequence[Table], known: Collection[str]
    ) -> None:
        """table: of the texts. others: tables of extracting, judging or grading. known: systems of
        citeloom; others were imported.
        """
        self.data = data
        self._known = known
        self.months = [month.month for month in data.finished]
        self.prices = known_prices(data.settings)
        groups = data.groups(table)
        self.names = short_names(map(writer_name, groups))
        """Name of a writer → its name in the report, which is the `system` of everything else."""
        self.costs: dict[str, list[Row]] = defaultdict(list)
        """System → the counts of its texts, with calls and tokens by model."""
        for row in sorted(groups, key=writer_name):
            self.costs[self.name_of(row)].append(row)
        self.other_costs = {
            other.name: [
                {**row, "model": row["judge"] if "judge" in row else row["model"]}
                for row in data.groups(other)
            ]
            for other in others
        }
        """Name of a table → the same of extracting, judging or grading."""
        self.states: dict[str, Counter[str]] = defaultdict(Counter)
        """System → its texts by state, as `engine.stage.STATES` names them."""
        for month in data.finished:
            for writer, part in month.notes.get(table.name, {}).get("parts", {}).items():
                states = part["notes"].get(STATES, {})
                self.states[self.names.get(writer, writer)].update(states)

    def name_of(self, row: Row) -> str:
        """The name in the report of a row's writer."""
        name = writer_name(row)
        return self.names.get(name, name)

    def title_of(self, system: str) -> str:
        """A system as reports call it."""
        return words(system)

    @property
    def systems(self) -> list[str]:
        """Systems that wrote anything, by name."""
        return list(self.costs)

    @property
    def all_costs(self) -> list[Row]:
        return list(chain(*self.costs.values(), *self.other_costs.values()))

    @property
    def models(self) -> set[str]:
        """The models that wrote or judged."""
        return {row["model"] for row in self.all_costs if row["model"]}

    @property
    def served_as(self) -> dict[str, str]:
        """The models here for which another one answered, which is the value."""
        served = models_served_as(self.data.settings)
        return {name: model for name, model in served.items() if name in self.models}

    @property
    def small_model(self) -> str:
        """The bundled model's name where it wrote or judged, else ''."""
        return small_model_among(self.models)

    def model_of(self, system: str) -> str:
        """The model, or models, that a system wrote with; `elsewhere` for imported texts."""
        models = {row["model"] for row in self.costs[system] if row["model"]}
        return ", ".join(sorted(models)) or (
            NO_MODEL if parse_writer(system).system in self._known else "elsewhere"
        )


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Systems that were marked in one conversation.

    title: its heading in reports, empty for the only set. scores: marks and votes that were given
    there, and measures that need no judge.
    """

    name: str
    title: str
    systems: Sequence[str]
    scores: Scores

    @property
    def suffix(self) -> str:
        """Its title at the end of another, such as ` (ablations)`; empty for the only set."""
        return f" ({self.title[0].lower()}{self.title[1:]})" if self.title else ""


class RelatedWork(Writings):
    """Related work of one or several months."""

    def __init__(self, data: ReportData) -> None:
        judging = (tables.KEY_ELEMENTS, tables.G_SCORES, tables.CITATION_SUPPORT)
        known = (*RELATED_WORK_SYSTEMS, *FORMER_RELATED_WORK_SYSTEMS)
        super().__init__(data, tables.SUMMARIES, judging, known)
        self.tasks = sum(month.rows.get("related_work_tasks", 0) for month in data.finished)
        sections = (row for row in data.groups(tables.SUMMARIES) if row["repeat"] == 0)
        self.sections = _sum({self.name_of(row): row["rows"]} for row in sections)
        """System → its sections, repeats not counted."""
        self.unquoted = Counter[str]()
        """System → its supported citations whose quote was not found."""
        self.verdicts: dict[str, Counter[str]] = defaultdict(Counter)
        """System → its citations by verdict, `unjudged: <why>` for those without."""
        for row in data.groups(tables.CITATION_SUPPORT):
            system = self.name_of(row)
            verdict = row["verdict"] or f"unjudged: {row['unjudged'] or 'unknown'}"
            self.verdicts[system][verdict] += row["rows"]
            if verdict == "supported" and not row["quote_found"]:
                self.unquoted[system] += row["rows"]
        none = tables.SCORES.schema.empty_table().select(_SCORE_COLUMNS)
        self.rows = pa.concat_tables([none, *(month.scores for month in data.finished)])
        """Rows of `scores`, those of repeats too."""
        sets = candidate_sets(data.settings, self.names) or {MAIN: []}
        self.sets = [
            self._candidate_set(name, writers, alone=len(sets) == 1)
            for name, writers in sets.items()
        ]
        """The candidate sets, one at least; the first is the main one."""

    def _candidate_set(self, name: str, writers: Sequence[str], *, alone: bool) -> CandidateSet:
        in_set = pc.fill_null(pc.equal(self.rows["candidate_set"], name), fill_value=True)
        return CandidateSet(
            name=name,
            title="" if alone else _SET_TITLES.get(name, f"Candidate set {name}"),
            systems=sorted(self.names[writer] for writer in writers),
            scores=Scores(
                self.rows.filter(in_set), "task_id", self.names, judges_of(self.data.settings)
            ),
        )

    @property
    def scores(self) -> Scores:
        """The scores of the main set."""
        return self.sets[0].scores

    def scores_of(self, system: str) -> Scores:
        """The scores of the first set that has a system."""
        of_sets = (candidates.scores for candidates in self.sets if system in candidates.systems)
        return next(of_sets, self.scores)

    @cached_property
    def repeats(self) -> list[Row]:
        """Scores of every repeat of the tasks that were written repeatedly.

        Of the marks of repeat 0 those of the conversation in whose order the others were marked.
        """
        repeated, rows = set(), []
        conversation = itemgetter("task_id", "judge", "candidate_set", "order")
        for month in self.data.finished:
            if pc.any(pc.greater(month.scores["repeat"], 0)).as_py():
                mine = self.data.root.rows(tables.SCORES, month.month)
                repeated |= {conversation(row) for row in mine if row["repeat"]}
                rows += mine
        return [
            {**row, "system": self.name_of(row)} for row in rows if conversation(row) in repeated
        ]

    @cached_property
    def people(self) -> RatingResults:
        """The results of the ratings."""
        return read_rating_results(self.data.root, self.data.settings, self.months)

    @property
    def support_judges(self) -> list[str]:
        """Models that judged citations."""
        rows = self.other_costs[tables.CITATION_SUPPORT.name]
        return sorted({row["model"] for row in rows if row["model"]})


class Answers(Writings):
    """Questions and answers of one or several months."""

    def __init__(self, data: ReportData) -> None:
        known = (*ANSWERING_SYSTEMS, *FORMER_ANSWERING_SYSTEMS)
        super().__init__(data, tables.ANSWERS, (tables.ANSWER_GRADES,), known)
        cutoffs = known_cutoffs(data.settings)
        models = sorted({row["model"] for row in chain(*self.costs.values()) if row["model"]})
        self.cutoffs = {model: cutoffs.get(model, "") for model in models}
        """Model that answered → its knowledge cut-off, '' where it is not known."""
        self.cutoff = latest_cutoff(filter(None, self.cutoffs.values()))
        """The latest cut-off, which divides old from recent questions for every system."""
        self.questions = {
            key: row for month in data.finished for key, row in month.questions.items()
        }
        """Month and id of a question → its row."""
        none = tables.ANSWER_SCORES.schema.empty_table()
        rows = pa.concat_tables([none, *(month.answer_scores for month in data.finished)])
        self.scores = Scores(rows, "question_id", self.names, judges_of(data.settings))
        self.gains = [row for month in data.finished for row in month.counts["gains"]]

    def title_of(self, system: str) -> str:
        """A system with its model where that is shown; an imported one as its file names it."""
        return answering_system(system)

    @property
    def systems(self) -> list[str]:
        """Systems that answered, in the order of Table 1."""
        return sorted(self.costs, key=answering_order)

    @property
    def graded_systems(self) -> list[str]:
        """Systems of which an answer was graded, in the order of Table 1."""
        return [system for system in self.systems if (system, "") in self.outcomes]

    @cached_property
    def outcomes(self) -> Mapping[tuple[str, str], Counter[str]]:
        """System and kind of question, '' for all → how many answers came to what, by the first
        judge.
        """
        counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for row in self.data.groups(tables.ANSWER_GRADES):
            for kind in (row["kind"], "") if row["judge"] == self.scores.judge else ():
                counts[self.name_of(row), kind][row["outcome"]] += row["rows"]
        return dict(counts)

    def of_age(self, age: str) -> set[str]:
        """The questions of an age by the cut-off."""
        return {
            key
            for key, row in self.questions.items()
            if age_of(question_date(row), self.cutoff) == age
        }

    @cached_property
    def people(self) -> GradeResults:
        """The results of the grades by people."""
        return read_grade_results(self.data.root, self.months)
