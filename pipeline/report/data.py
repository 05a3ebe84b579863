"""The data of a report on one or several months, read from the tables.

A month is read whole before anything of it is counted, so that a damaged table leaves no half of
its month in the figures over all months.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.answering.questions import read_posed_questions
from pipeline.engine.parts import statistics_name
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError
from pipeline.evaluation.answers.measures import Grade, age_of, read_grades
from pipeline.evaluation.answers.people_measures import (
    GradeResults,
    pool_months,
    read_month_grades,
)
from pipeline.evaluation.answers.results import ALL, QuestionGroup, SystemResult, results
from pipeline.evaluation.g_score.measures import named_judgement
from pipeline.evaluation.g_score.people_measures import (
    RATING_COLUMNS,
    RatingResults,
    current_ratings,
    rating_results,
)
from pipeline.evaluation.g_score.sample import TOGETHER
from pipeline.evaluation.statistics import Estimate, estimate
from pipeline.llm.messages import Prices
from pipeline.llm.models import known_prices, small_model_among
from pipeline.report.formatting import is_sample
from pipeline.settings import Settings
from pipeline.settings.validators import OVERLAP_JUDGE
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.storage.reading import read_table
from pipeline.system_names import ANSWERING_SYSTEMS, RELATED_WORK_SYSTEMS
from pipeline.tables import Table
from pipeline.tables.writers import parse_writer, short_names, with_writer_names

Row = Mapping[str, Any]

USAGE = ("calls", "prompt_tokens", "completion_tokens")
_SUPPORT = ["system", "verdict", "unjudged", "quote_found"]
_JUDGEMENT = ["task_id", "mode", "judge", "repeat", "order", "marks", "best"]
_SCORE = ["task_id", "system", "model", "metric", "value", "judge", "mode", "repeat"]
_COLUMNS: tuple[tuple[Table, list[str]], ...] = (
    (tables.INDEX_RECEIPTS, tables.INDEX_RECEIPTS.schema.names),
    (tables.RELATED_WORK_TASKS, ["task_id"]),
    (tables.KEY_ELEMENTS, ["model", *USAGE]),
    (tables.SUMMARIES, ["system", "model", "repeat", *USAGE]),
    (tables.G_SCORES, ["judge", *USAGE]),
    (tables.CITATION_SUPPORT, [*_SUPPORT, "model", "judge", *USAGE]),
    (tables.SCORES, _SCORE),
    (tables.ANSWERS, ["question_id", "system", "model", "hops", *USAGE]),
    (tables.ANSWER_GRADES, ["system", "model", "judge", *USAGE]),
)
# From the dump to the tasks of related work: table, what its rows are, and one of them.
FUNNEL: tuple[tuple[Table, str, str], ...] = (
    (tables.DUMP_MEMBERS, "In the dump", "page"),
    (tables.METADATA, "Known to arXiv", "paper"),
    (tables.PAPERS, "In the chosen categories and parsed", "paper"),
    (tables.PASSAGES, "Split into passages", "passage"),
    (tables.EMBEDDINGS, "Embedded", "passage"),
    (tables.INDEX_RECEIPTS, "Found in the index", "passage"),
    (tables.REFERENCES, "References read", "reference"),
    (tables.RETRIEVAL_QUERIES, "Citing sentences used as queries", "sentence"),
    (tables.RETRIEVAL_SCORES, "Retrieval scores", "score"),
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
# A month of the whole dump has thousands of papers, whose ids need not be read to know that it is
# no sample.
_MOST_SAMPLE_PAPERS = 1_000
# The order of the arXivBot report's Table 1: the model alone, sites (imported answers), WikiChat,
# arXivBot.
_ANSWERING_ORDER = {"direct": 0, "wikichat": 2, "arxivbot_report": 3, "arxivbot": 4}
_IMPORTED = 1


def answering_order(system: str) -> tuple[int, str]:
    """The position of an answering system among others."""
    return _ANSWERING_ORDER.get(parse_writer(system).system, _IMPORTED), system


def judges_of(settings: Settings) -> list[str]:
    """The judges in their order. Overlap judges citations alone, so the default model follows
    it.
    """
    if set(settings.judges) - {OVERLAP_JUDGE}:
        return list(settings.judges)
    return [*settings.judges, settings.llm_model]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One item of the ledger, or an answer that a system went on without. page: of the task or
    question it is of.
    """

    stage: str
    subject: str
    reason: str
    detail: str
    page: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls and tokens of some rows, answers from the cache included.

    items: how many rows it made. tokens: (model, `prompt_tokens` or `completion_tokens`) → tokens,
    of every model that wrote or judged, one that needs no tokens too.
    """

    items: int = 0
    calls: int = 0
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def models(self) -> set[str]:
        return {model for model, _ in self.tokens if model}

    def tokens_of(self, kind: str) -> int:
        """Tokens of one kind, `prompt_tokens` or `completion_tokens`, of all models."""
        return sum(number for (_, name), number in self.tokens.items() if name == kind)

    def money(self, prices: Mapping[str, Prices]) -> float | None:
        """Money for the tokens of models with a price; None where no model has one."""
        priced = sorted(self.models & prices.keys())
        if not priced:
            return None
        return sum(
            prices[model].cost(
                self.tokens[model, "prompt_tokens"], self.tokens[model, "completion_tokens"]
            )
            for model in priced
        )


def _cost(rows: pa.Table, model: str) -> Cost:
    """The cost of rows. model: the column with the model whose tokens these are."""
    calls, tokens = 0, Counter[tuple[str, str]]()
    sums = rows.group_by(model, use_threads=False).aggregate([(name, "sum") for name in USAGE])
    for row in sums.to_pylist():
        calls += row["calls_sum"] or 0
        for kind in USAGE[1:]:
            tokens[row[model] or "", kind] += row[f"{kind}_sum"] or 0
    return Cost(rows.num_rows, calls, tokens)


class Scores:
    """Values of `scores` by metric, system and task; repeats of one judgement are averaged."""

    def __init__(self, rows: pa.Table, preferred_judges: Sequence[str] = ()) -> None:
        """rows: of sections that are compared with one another. preferred_judges: in order; the
        main tables show the first that judged.
        """
        self._values: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        keys = ["metric", "judge", "system", "task_id"]
        means = rows.group_by(keys, use_threads=False).aggregate([("value", "mean")])
        columns = [means[name].to_pylist() for name in (*keys, "value_mean")]
        for metric, judge, system, task, value in zip(*columns, strict=True):
            if value is not None:
                judged_by = (judge or "") if metric.startswith("g_") else ""
                self._values[metric, judged_by][system][task] = value
        judged = {judge for _, judge in self._values if judge}
        self.judges = _preferred_first(judged, preferred_judges)
        """Models that judged, the preferred ones first."""

    @property
    def judge(self) -> str:
        """The model whose marks the main tables show; '' where none judged."""
        return next(iter(self.judges), "")

    def by_task(self, system: str, metric: str, judge: str | None = None) -> Mapping[str, float]:
        """Task → value. A judge applies to metrics of the G-Score alone; None: the first."""
        judged_by = (self.judge if judge is None else judge) if metric.startswith("g_") else ""
        return self._values.get((metric, judged_by), {}).get(system, {})

    def mean(self, system: str, metric: str, judge: str | None = None) -> Estimate:
        """The mean over tasks with its interval."""
        values = self.by_task(system, metric, judge)
        return estimate({task: [value] for task, value in values.items()})

    def of_task(self, task: str, systems: Iterable[str], metric: str) -> dict[str, float]:
        """System → value of one task, by the first judge where a judge is needed; only systems that
        have one.
        """
        values = {system: self.by_task(system, metric).get(task) for system in systems}
        return {system: value for system, value in values.items() if value is not None}

    def best_voted(self, task: str, systems: Iterable[str]) -> set[str]:
        """The systems with most votes for a task."""
        votes = self.of_task(task, systems, "g_vote")
        most = max(votes.values(), default=0.0)
        return {system for system, share in votes.items() if share == most and share > 0}


def _preferred_first(judged: Collection[str], preferred: Sequence[str]) -> list[str]:
    return [judge for judge in preferred if judge in judged] + sorted(
        set(judged).difference(preferred)
    )


class Writings:
    """The texts of systems in one or several months, and their cost."""

    def __init__(
        self,
        table: Table,
        systems_known: Collection[str],
        months: Sequence[MonthData],
        prices: Mapping[str, Prices],
    ) -> None:
        """table: of the texts. systems_known: those of citeloom; others were imported."""
        rows = _pooled(months, table)
        self._table = table
        self._systems_known = systems_known
        self.months = [month.month for month in months]
        self.prices = prices
        self.names = short_names(with_writer_names(rows)["system"].to_pylist())
        """Name of a writer → its name in the report, which is the `system` of everything else."""
        self.rows = with_writer_names(rows, self.names)
        self.costs = {
            system: _cost(self.rows.filter(pc.equal(self.rows["system"], system)), "model")
            for system in sorted(set(self.rows["system"].to_pylist()))
        }
        """System → the cost of its sections or answers."""
        self.other_costs: dict[str, Cost] = {}
        """Name of a table → the cost of extracting, judging or grading."""

    @property
    def systems(self) -> list[str]:
        """Systems that wrote anything, by name."""
        return list(self.costs)

    @property
    def _all_costs(self) -> list[Cost]:
        return [*self.costs.values(), *self.other_costs.values()]

    @property
    def small_model(self) -> str:
        """The embedded model's name where it wrote or judged, else ''."""
        return small_model_among(model for cost in self._all_costs for model in cost.models)

    def model_of(self, system: str) -> str:
        """The model, or models, that a system wrote with; `elsewhere` for imported texts."""
        models = ", ".join(sorted(self.costs[system].models))
        if models:
            return models
        return "no model" if parse_writer(system).system in self._systems_known else "elsewhere"

    def statistics_of(self, system: str) -> str:
        """The name of a system's statistics in the records of runs."""
        writers = {name: writer for writer, name in self.names.items()}
        return statistics_name(self._table.name, writers[system])


class RelatedWorkData(Writings):
    """Related work of one or several months. Judgements and ratings are those of a month's own
    report; the report over all months has none.
    """

    def __init__(
        self, months: Sequence[MonthData], judges: Sequence[str], prices: Mapping[str, Prices]
    ) -> None:
        """judges: in order of preference."""
        super().__init__(tables.SUMMARIES, RELATED_WORK_SYSTEMS, months, prices)
        first_runs = self.rows.filter(pc.equal(self.rows["repeat"], 0))
        support = with_writer_names(_pooled(months, tables.CITATION_SUPPORT), self.names)
        judgements = _pooled(months, tables.G_SCORES)
        compared, repeated = _scores_of(
            with_writer_names(_pooled(months, tables.SCORES), self.names)
        )
        self.other_costs = {
            tables.KEY_ELEMENTS.name: _cost(_pooled(months, tables.KEY_ELEMENTS), "model"),
            tables.G_SCORES.name: _cost(judgements, "judge"),
            tables.CITATION_SUPPORT.name: _cost(support, "judge"),
        }
        self.tasks = _pooled(months, tables.RELATED_WORK_TASKS).num_rows
        self.sections = Counter[str](first_runs["system"].to_pylist())
        """System → its sections, repeats not counted."""
        self.scores = Scores(compared, judges)
        self.repeats: list[Row] = repeated.to_pylist()
        """Scores of the tasks that were written repeatedly, of every repeat; those of the G-Score
        from sections that were marked alone.
        """
        self.verdicts, self.unquoted = _citations_by_verdict(support)
        """System → its citations by verdict, `unjudged: <why>` for those without; and system → its
        supported citations whose quote was not found.
        """
        self.judgements = [
            named_judgement(row, self.names)
            for row in judgements.to_pylist()
            if row.get("mode") == TOGETHER
        ]
        self.ratings: list[Row] = [
            {**row, "system": self.names.get(row["system"], row["system"])}
            for month in months
            for row in month.ratings
        ]
        self.outdated_ratings = sum(month.outdated_ratings for month in months)
        """Ratings of sections that have changed since."""
        self.disabled_stages = {
            stage: reason for month in months for stage, reason in month.disabled_stages.items()
        }
        """Stage that was not run → the reason."""

    @cached_property
    def people(self) -> RatingResults | None:
        """The results of the ratings; None where nobody rated."""
        return rating_results(self.ratings, self.judgements) if self.ratings else None

    @property
    def support_judges(self) -> list[str]:
        """Models that judged citations."""
        return sorted(self.other_costs[tables.CITATION_SUPPORT.name].models)


class AnswersData(Writings):
    """Questions and answers of one or several months."""

    def __init__(
        self,
        months: Sequence[MonthData],
        judges: Sequence[str],
        prices: Mapping[str, Prices],
        cutoff: str,
    ) -> None:
        """judges: in order of preference. cutoff: the knowledge cut-off that divides old from
        recent questions.
        """
        super().__init__(tables.ANSWERS, ANSWERING_SYSTEMS, months, prices)
        self.cutoff = cutoff
        self.other_costs = {
            tables.ANSWER_GRADES.name: _cost(_pooled(months, tables.ANSWER_GRADES), "judge")
        }
        self.questions = [question for month in months for question in month.questions]
        self.why_none = next((m.why_no_question for m in months if m.why_no_question), "")
        """Why there is no question."""
        self.hops: dict[str, Counter[int]] = defaultdict(Counter)
        """System → number of searches → questions."""
        for system, hops in zip(
            self.rows["system"].to_pylist(), self.rows["hops"].to_pylist(), strict=True
        ):
            self.hops[system][hops] += 1
        self.grades: list[Grade] = []
        for month in months:
            # Two months may have a question of one id.
            prefix = f"{month.month} " if len(months) > 1 else ""
            for grade in month.grades:
                question_id = prefix + grade["question_id"]
                system = self.names.get(grade["system"], grade["system"])
                self.grades.append({**grade, "question_id": question_id, "system": system})
        self.judges = _preferred_first({grade["judge"] for grade in self.grades}, judges)
        """Models that graded, the preferred ones first."""

    @property
    def systems(self) -> list[str]:
        """Systems that answered, in the order of Table 1."""
        return sorted(self.costs, key=answering_order)

    @property
    def called_model(self) -> bool:
        """Whether a model was called."""
        return any(cost.calls for cost in self._all_costs)

    @property
    def judge(self) -> str:
        """The model whose verdicts the main tables show; '' where none graded."""
        return next(iter(self.judges), "")

    @cached_property
    def _results(self) -> dict[tuple[str, str, QuestionGroup], SystemResult]:
        measured = results(self.grades, lambda grade: age_of(grade["date"], self.cutoff))
        return {(item.judge, item.system, item.group): item for item in measured}

    def result(
        self, system: str, group: QuestionGroup = ALL, judge: str | None = None
    ) -> SystemResult | None:
        """The results of a system over a group of questions, by the first judge unless another is
        named.
        """
        return self._results.get((self.judge if judge is None else judge, system, group))

    def mean(self, system: str, metric: str, group: QuestionGroup = ALL) -> Estimate | None:
        """The mean of a system over a group of questions, by the first judge; None without one."""
        result = self.result(system, group)
        return result.measures.get(metric) if result else None


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """A month of `retrieval_scores`: (method, metric) → row. notes: those of its file."""

    rows: Mapping[tuple[str, str], Mapping[str, Any]]
    notes: Mapping[str, Any]

    @property
    def queries(self) -> int:
        """How many sentences were searched for. Raises StopIteration without scores."""
        return int(next(iter(self.rows.values()))["queries"])


class MonthData:
    """A month as reports pool it; a table that is missing has no rows."""

    def __init__(self, root: DataRoot, month: str, *, details: bool) -> None:
        """details: single judgements and people's ratings too, which only the month's own report
        shows.

        Raises as `DataRoot.read` does for a file that is damaged or of another version.
        """
        self.month = month
        self.finished = read_provenance(root.file(tables.SCORES, month)) is not None
        """Whether its systems were scored, which every figure of the report needs."""
        self.rows = {table.name: rows_out(root, month, table) for table, *_ in FUNNEL}
        """Stage of the funnel → the rows that come out of it."""
        self.left_out = count_left_out(root, month)
        """(Stage of the funnel, reason) → how much was left out."""
        self.sample = _is_sample(root, month)
        """Whether it has papers of the sample corpus."""
        columns = {table.name: names for table, names in _COLUMNS}
        if details:
            columns[tables.G_SCORES.name] = [*_JUDGEMENT, *USAGE]
        self.tables = {
            name: read_or_empty(root, tables.TABLES[name], month, names)
            for name, names in columns.items()
        }
        """Name of a table → the columns that reports pool."""
        self.retrieval = read_retrieval(root, month)
        self.questions = read_posed_questions(_iterate(root, tables.QUESTIONS, month))
        self.why_no_question = "" if self.questions else _why_no_question(root, month)
        self.grades = read_grades(root, month)
        self.people = read_month_grades(root, month, self.grades)
        ratings = (
            list(_iterate(root, tables.HUMAN_RATINGS, month, RATING_COLUMNS)) if details else []
        )
        self.ratings = current_ratings(root, month, ratings)
        self.outdated_ratings = len(ratings) - len(self.ratings)
        """Ratings of sections that have changed since."""
        self.disabled_stages = _disabled_stages(root, month)
        """Stage that calls a model and was not run → the reason, where its file has it."""


@dataclass(frozen=True)
class ReportData:
    """One month, or all months, and the settings by which they are shown."""

    root: DataRoot
    judges: Sequence[str]
    """In order of preference."""
    prices: Mapping[str, Prices]
    cutoff: str
    months: Sequence[MonthData]
    unreadable: Sequence[str] = ()
    """Months with a table that cannot be read."""

    @property
    def finished(self) -> list[MonthData]:
        return [month for month in self.months if month.finished]

    @property
    def sample(self) -> bool:
        """Whether papers of the sample corpus are shown."""
        return any(month.sample for month in self.months)

    def rows(self, table: Table) -> int:
        """How many rows came out of a stage of the funnel."""
        return sum(month.rows[table.name] for month in self.months)

    def left_out(self, stage: str) -> list[tuple[str, int]]:
        """Counts of what a stage of the funnel left out, by reason, the most frequent first."""
        counts = Counter[str]()
        for month in self.months:
            for (of_stage, reason), number in month.left_out.items():
                if of_stage == stage:
                    counts[reason] += number
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))

    @property
    def audit(self) -> Counter[str]:
        """Points that were expected in the index, are present, missing, and should not be there."""
        sums = Counter[str]()
        for month in self.months:
            for receipt in month.tables[tables.INDEX_RECEIPTS.name].to_pylist():
                for name in ("expected", "present", "missing", "stale"):
                    sums[name] += receipt[name]
        return sums

    @cached_property
    def people(self) -> GradeResults:
        """The results of the grades by people."""
        return pool_months({month.month: month.people for month in self.finished})

    @cached_property
    def related(self) -> RelatedWorkData:
        return RelatedWorkData(self.finished, self.judges, self.prices)

    @cached_property
    def answers(self) -> AnswersData:
        return AnswersData(self.finished, self.judges, self.prices, self.cutoff)


def _pooled(months: Sequence[MonthData], table: Table) -> pa.Table:
    if not months:
        return table.schema.empty_table()
    return pa.concat_tables([month.tables[table.name] for month in months])


def _scores_of(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The scores by which systems are compared, and those of the tasks that were written
    repeatedly.
    """
    together = pc.fill_null(pc.equal(rows["mode"], TOGETHER), fill_value=False)
    alone = pc.invert(together)
    unjudged = pc.and_(pc.is_null(rows["mode"]), pc.equal(rows["repeat"], 0))
    repeats = pc.and_(pc.greater(rows["repeat"], 0), alone)
    tasks = pc.unique(rows.filter(repeats)["task_id"])
    return (
        rows.filter(pc.or_(together, unjudged)),
        rows.filter(pc.and_(pc.is_in(rows["task_id"], tasks), alone)),
    )


def _citations_by_verdict(support: pa.Table) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """System → its citations by verdict, and system → supported ones whose quote was not found."""
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    unquoted = Counter[str]()
    counts = support.group_by(_SUPPORT, use_threads=False).aggregate([([], "count_all")])
    for row in counts.to_pylist():
        verdict = row["verdict"] or f"unjudged: {row['unjudged'] or 'unknown'}"
        verdicts[row["system"]][verdict] += row["count_all"]
        if verdict == "supported" and not row["quote_found"]:
            unquoted[row["system"]] += row["count_all"]
    return verdicts, unquoted


def read_month_report(workspace: Workspace, month: str) -> ReportData:
    """The data of a month's report. Raises as `DataRoot.read` does."""
    return _report_data(workspace, [MonthData(workspace.root, month, details=True)])


def read_overall_report(workspace: Workspace) -> ReportData:
    """The data of the report over all months; months with a damaged table are `unreadable`."""
    months, unreadable = [], []
    for month in workspace.root.months(tables.DUMP_MEMBERS):
        try:
            months.append(MonthData(workspace.root, month, details=False))
        except CiteloomError:
            unreadable.append(month)
    return _report_data(workspace, months, unreadable)


def _report_data(
    workspace: Workspace, months: Sequence[MonthData], unreadable: Sequence[str] = ()
) -> ReportData:
    settings = workspace.settings
    return ReportData(
        root=workspace.root,
        judges=judges_of(settings),
        prices=known_prices(settings),
        cutoff=settings.llm_cutoff,
        months=months,
        unreadable=unreadable,
    )


def read_or_empty(
    root: DataRoot, table: Table, month: str, columns: list[str] | None = None
) -> pa.Table:
    """A month of a table; no rows where it is missing."""
    if read_provenance(root.file(table, month)) is None:
        return table.schema.empty_table().select(columns or table.schema.names)
    return root.read(table, month, columns)


def _iterate(
    root: DataRoot, table: Table, month: str, columns: list[str] | None = None
) -> Iterable[Row]:
    if read_provenance(root.file(table, month)) is None:
        return ()
    return root.iterate(table, month, columns)


def rows_by(
    root: DataRoot,
    month: str,
    table: Table,
    key: str,
    ids: Collection[str],
    columns: list[str] | None = None,
) -> Mapping[str, list[Row]]:
    """Rows of these tasks or questions by id, in the table's order; [] for any other id, and where
    the table is missing.

    key: the column with the id. Raises as `DataRoot.read` does.
    """
    rows: dict[str, list[Row]] = defaultdict(list)
    if read_provenance(root.file(table, month)) is not None:
        for row in root.rows_with(table, month, key, ids, columns or table.schema.names):
            rows[row[key]].append(row)
    return rows


def rows_out(root: DataRoot, month: str, table: Table) -> int:
    """Rows of a month; for the index the points found there; 0 where the month is missing."""
    provenance = read_provenance(root.file(table, month))
    if provenance is None:
        return 0
    if table is tables.INDEX_RECEIPTS:
        return sum(row["present"] for row in root.rows(table, month, ["present"]))
    return provenance.rows


def count_left_out(root: DataRoot, month: str) -> Counter[tuple[str, str]]:
    """(Stage, reason) → how much the stages of the corpus left out of a month."""
    return Counter(
        (stage, reason or "")
        for stage in FUNNEL_STAGES
        for reason in _ledger(root, month, stage, ["reason"])["reason"].to_pylist()
    )


def read_ledger(root: DataRoot, month: str, stages: Sequence[str]) -> list[LeftOut]:
    """Items that these stages left out of a month, stage by stage, sorted within each."""
    items: list[LeftOut] = []
    for stage in stages:
        rows = _ledger(root, month, stage, ["subject", "reason", "detail"]).to_pylist()
        mine = [
            LeftOut(stage, row["subject"] or "", row["reason"] or "", row["detail"] or "")
            for row in rows
        ]
        items += sorted(mine, key=lambda item: (item.subject, item.reason, item.detail))
    return items


def _ledger(root: DataRoot, month: str, stage: str, columns: list[str]) -> pa.Table:
    file = root.ledger_file(stage, month)
    if read_provenance(file) is None:
        return tables.LEDGER.schema.empty_table().select(columns)
    return read_table(file, columns=columns)


def _disabled_stages(root: DataRoot, month: str) -> dict[str, str]:
    notes = {stage: _notes(root, tables.TABLES[stage], month) for stage in MODEL_STAGES}
    return {stage: str(note["off"]) for stage, note in notes.items() if note.get("off")}


def _notes(root: DataRoot, table: Table, month: str) -> Mapping[str, Any]:
    provenance = read_provenance(root.file(table, month))
    return provenance.notes if provenance else {}


def read_retrieval(root: DataRoot, month: str) -> RetrievalScores:
    """The month's retrieval scores. Raises as `DataRoot.rows` does."""
    rows = _iterate(root, tables.RETRIEVAL_SCORES, month)
    by_key = {(row["method"], row["metric"]): row for row in rows}
    return RetrievalScores(by_key, retrieval_notes(root, month))


def retrieval_notes(root: DataRoot, month: str) -> Mapping[str, Any]:
    """The notes in the file of the scores, such as why something was not measured."""
    return _notes(root, tables.RETRIEVAL_SCORES, month)


def _is_sample(root: DataRoot, month: str) -> bool:
    """Whether a month is one of the sample corpus, which has ten papers a month at most."""
    papers = read_provenance(root.file(tables.PAPERS, month))
    if papers is None or papers.rows > _MOST_SAMPLE_PAPERS:
        return False
    return any(
        map(is_sample, root.read(tables.PAPERS, month, ["arxiv_id"])["arxiv_id"].to_pylist())
    )


def _why_no_question(root: DataRoot, month: str) -> str:
    provenance = read_provenance(root.file(tables.QUESTIONS, month))
    if provenance is None:
        return "the month has no table of questions"
    if provenance.notes.get("off"):
        return str(provenance.notes["off"])
    if provenance.left_out:
        return "all were left out"
    return "the question set has no question for this month"
