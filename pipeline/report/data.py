"""The data of a report on one or several months, pooled from their summaries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError
from pipeline.evaluation.annotation.grades import GradeResults, MonthGrades, pool_months
from pipeline.evaluation.annotation.ratings import RatingResults, rating_results
from pipeline.evaluation.answers.measures import (
    ALL,
    Grade,
    QuestionGroup,
    SystemResult,
    latest_cutoff,
    results,
)
from pipeline.evaluation.g_score.measures import named_judgement
from pipeline.evaluation.g_score.sample import ABLATIONS, MAIN, candidate_sets
from pipeline.evaluation.statistics import Estimate, estimate
from pipeline.llm.messages import Prices
from pipeline.llm.models import known_cutoffs, known_prices, models_served_as, small_model_among
from pipeline.report.summary import (
    MonthSummary,
    Row,
    ScoresByTask,
    read_summary,
)
from pipeline.settings import Settings
from pipeline.storage.data_root import DataRoot
from pipeline.system_names import (
    ANSWERING_SYSTEMS,
    FORMER_ANSWERING_SYSTEMS,
    FORMER_RELATED_WORK_SYSTEMS,
    RELATED_WORK_SYSTEMS,
)
from pipeline.tables import Table
from pipeline.tables.writers import parse_writer, short_names

Value = TypeVar("Value")

_SET_TITLES = {MAIN: "Main comparison", ABLATIONS: "Ablations"}

# The order of the arXivBot report's Table 1: the model alone, sites (imported answers), WikiChat,
# arXivBot.
_ANSWERING_ORDER = {"direct": 0, "wikichat": 2, "arxivbot": 3, "arxivbot_fused": 4}
_IMPORTED = 1


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


@dataclass(slots=True)
class Cost:
    """Calls and tokens of some rows, answers from the cache included.

    items: how many rows it made. tokens_read, tokens_written: by model, of every model that wrote
    or judged, one that needs no tokens too.
    """

    items: int = 0
    calls: int = 0
    tokens_read: Counter[str] = field(default_factory=Counter)
    tokens_written: Counter[str] = field(default_factory=Counter)

    def add(self, model: str, items: int, calls: int, read: int, written: int) -> None:
        """Add rows that a model made; '' for no model."""
        self.items += items
        self.calls += calls
        self.tokens_read[model] += read
        self.tokens_written[model] += written

    @property
    def models(self) -> set[str]:
        return {model for model in self.tokens_read if model}

    def money(self, prices: Mapping[str, Prices]) -> float | None:
        """Money for the tokens of models with a price; None where no model has one."""
        priced = sorted(self.models & prices.keys())
        if not priced:
            return None
        return sum(
            prices[model].cost(self.tokens_read[model], self.tokens_written[model])
            for model in priced
        )


class Scores:
    """Values of `scores` by metric, judge, system and task."""

    def __init__(
        self,
        scores: Iterable[ScoresByTask],
        preferred_judges: Sequence[str] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        """scores: of sections that are compared with one another, marked in one candidate set.
        preferred_judges: in order; the main tables show the first that judged. names: name of a
        writer → its name in the report.
        """
        names = names or {}
        self._values: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        for metric, judge, _, writer, by_task in scores:
            self._values[metric, judge][names.get(writer, writer)].update(by_task)
        judged = {judge for _, judge in self._values if judge}
        self.judges = _preferred_first(judged, preferred_judges)
        """Models that judged, the preferred ones first."""

    @property
    def judge(self) -> str:
        """The model whose marks the main tables show; '' where none judged."""
        return next(iter(self.judges), "")

    def by_task(self, system: str, metric: str) -> Mapping[str, float]:
        """Task → value; metrics of the G-Score by the first judge."""
        judged_by = self.judge if metric.startswith("g_") else ""
        return self._values.get((metric, judged_by), {}).get(system, {})

    def mean(self, system: str, metric: str) -> Estimate:
        """The mean over tasks with its interval."""
        values = self.by_task(system, metric)
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


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Systems that were marked in one conversation.

    title: its heading in reports, empty for the only set. scores: marks and votes that were given
    there, and measures that need no judge. judgements: rows of `g_scores`.
    """

    name: str
    title: str
    systems: Sequence[str]
    scores: Scores
    judgements: Sequence[Row]

    @property
    def suffix(self) -> str:
        """Its title at the end of another, such as ` (ablations)`; empty for the only set."""
        return f" ({self.title[0].lower()}{self.title[1:]})" if self.title else ""


class Writings:
    """The texts of systems in one or several months, and their cost."""

    def __init__(
        self,
        table: Table,
        others: Sequence[Table],
        systems_known: Collection[str],
        months: Sequence[MonthSummary],
        settings: Settings,
    ) -> None:
        """table: of the texts. others: tables of extracting, judging or grading. systems_known:
        those of citeloom; others were imported.
        """
        self._months = months
        self._systems_known = systems_known
        self.months = [month.month for month in months]
        self.prices = known_prices(settings)
        self.judge_order = judges_of(settings)
        self._served_as = models_served_as(settings)
        self.names = short_names(
            writer for month in months for writer, *_ in month.usage[table.name]
        )
        """Name of a writer → its name in the report, which is the `system` of everything else."""
        self.costs = dict(sorted(self._pool_costs(table).items()))
        """System → the cost of its sections or answers."""
        self.other_costs = {other.name: self._pool_costs(other).get("", Cost()) for other in others}
        """Name of a table → the cost of extracting, judging or grading."""
        self.states: dict[str, Counter[str]] = defaultdict(Counter)
        """System → its texts by state, as `engine.stage.STATES` names them."""
        for month in months:
            for writer, counts in month.states.items():
                self.states[self.names.get(writer, writer)].update(counts)

    def _pool_costs(self, table: Table) -> dict[str, Cost]:
        costs: dict[str, Cost] = defaultdict(Cost)
        for month in self._months:
            for writer, model, items, calls, read, written in month.usage[table.name]:
                cost = costs[self.names.get(writer, writer)]
                cost.add(model, items, calls, read, written)
        return costs

    @property
    def systems(self) -> list[str]:
        """Systems that wrote anything, by name."""
        return list(self.costs)

    @property
    def all_costs(self) -> list[Cost]:
        return [*self.costs.values(), *self.other_costs.values()]

    @property
    def served_as(self) -> dict[str, str]:
        """The models here for which another one answered, which is the value."""
        models = {model for cost in self.all_costs for model in cost.models}
        return {name: served for name, served in self._served_as.items() if name in models}

    @property
    def small_model(self) -> str:
        """The bundled model's name where it wrote or judged, else ''."""
        return small_model_among(model for cost in self.all_costs for model in cost.models)

    def model_of(self, system: str) -> str:
        """The model, or models, that a system wrote with; `elsewhere` for imported texts."""
        models = ", ".join(sorted(self.costs[system].models))
        if models:
            return models
        return "no model" if parse_writer(system).system in self._systems_known else "elsewhere"


class RelatedWorkData(Writings):
    """Related work of one or several months."""

    def __init__(self, months: Sequence[MonthSummary], settings: Settings) -> None:
        judging = (tables.KEY_ELEMENTS, tables.G_SCORES, tables.CITATION_SUPPORT)
        known = (*RELATED_WORK_SYSTEMS, *FORMER_RELATED_WORK_SYSTEMS)
        super().__init__(tables.SUMMARIES, judging, known, months, settings)
        self.tasks = sum(month.rows[tables.RELATED_WORK_TASKS.name] for month in months)
        self.why_no_task = next((month.why_no_task for month in months if month.why_no_task), "")
        self.references = sum((Counter(month.task_references) for month in months), Counter[str]())
        """Source of a task's reference → how many references of all tasks."""
        self.sections = Counter[str]()
        """System → its sections, repeats not counted."""
        self.unquoted = Counter[str]()
        """System → its supported citations whose quote was not found."""
        self.verdicts: dict[str, Counter[str]] = defaultdict(Counter)
        """System → its citations by verdict, `unjudged: <why>` for those without."""
        for month in months:
            self.sections.update(self._named(month.sections))
            self.unquoted.update(self._named(month.unquoted))
            for system, counts in self._named(month.verdicts).items():
                self.verdicts[system].update(counts)
        self.sets = self._read_sets(settings)
        """The candidate sets, one at least; the first is the main one."""
        self.ratings = [self._with_name(row) for month in months for row in month.ratings]
        self.repeats = [self._with_name(row) for month in months for row in month.repeats]
        """Scores of the tasks that were written repeatedly, of every repeat."""
        self.disabled_stages = {
            stage: reason for month in months for stage, reason in month.disabled_stages.items()
        }
        """Stage that was not run → the reason."""

    def _read_sets(self, settings: Settings) -> list[CandidateSet]:
        scores = [of_writer for month in self._months for of_writer in month.scores]
        judgements = [
            named_judgement(row, self.names) for month in self._months for row in month.judgements
        ]
        sets = candidate_sets(settings, self.names) or {MAIN: []}
        return [
            CandidateSet(
                name=name,
                title=_SET_TITLES.get(name, f"Candidate set {name}") if len(sets) > 1 else "",
                systems=sorted(self.names[writer] for writer in writers),
                scores=Scores(
                    (item for item in scores if item[2] in ("", name)),
                    self.judge_order,
                    self.names,
                ),
                judgements=[row for row in judgements if row["candidate_set"] == name],
            )
            for name, writers in sets.items()
        ]

    @property
    def scores(self) -> Scores:
        """The scores of the main set."""
        return self.sets[0].scores

    def scores_of(self, system: str) -> Scores:
        """The scores of the first set that has a system."""
        return next(
            (candidates.scores for candidates in self.sets if system in candidates.systems),
            self.scores,
        )

    def _named(self, by_writer: Mapping[str, Value]) -> dict[str, Value]:
        return {self.names.get(writer, writer): value for writer, value in by_writer.items()}

    def _with_name(self, row: Row) -> Row:
        return {**row, "system": self.names.get(row["system"], row["system"])}

    @cached_property
    def people(self) -> RatingResults:
        """The results of the ratings."""
        outdated = sum(month.outdated_ratings for month in self._months)
        judgements = [row for candidates in self.sets for row in candidates.judgements]
        sets = {candidates.name: candidates.systems for candidates in self.sets}
        return rating_results(self.ratings, sets, judgements, outdated)

    @property
    def support_judges(self) -> list[str]:
        """Models that judged citations."""
        return sorted(self.other_costs[tables.CITATION_SUPPORT.name].models)


class AnswersData(Writings):
    """Questions and answers of one or several months."""

    def __init__(self, months: Sequence[MonthSummary], settings: Settings) -> None:
        grading = (tables.ANSWER_GRADES,)
        known = (*ANSWERING_SYSTEMS, *FORMER_ANSWERING_SYSTEMS)
        super().__init__(tables.ANSWERS, grading, known, months, settings)
        cutoffs = known_cutoffs(settings)
        models = sorted({model for cost in self.costs.values() for model in cost.models})
        self.cutoffs = {model: cutoffs.get(model, "") for model in models}
        """Model that answered → its knowledge cut-off, '' where it is not known."""
        self.cutoff = latest_cutoff(filter(None, self.cutoffs.values()))
        """The latest cut-off, which divides old from recent questions for every system."""
        loads = [load for month in months for load in month.loads]
        self.indexes = sorted({(row["collection"], row["engine"], row["model"]) for row in loads})
        """Collection, engine and embedding model of the indexes that were searched."""
        self.questions = [question for month in months for question in month.questions]
        self.why_none = next((m.why_no_question for m in months if m.why_no_question), "")
        """Why there is no question."""
        self.grades: list[Grade] = []
        self.shown: list[Grade] = []
        """Answers that only show passages, which no judge grades."""
        for month in months:
            # Two months may have a question of one id.
            prefix = f"{month.month} " if len(months) > 1 else ""
            for grade in (*month.grades, *month.shown):
                question_id = prefix + grade["question_id"]
                system = self.names.get(grade["system"], grade["system"])
                rows = self.grades if grade["judge"] else self.shown
                rows.append({**grade, "question_id": question_id, "system": system})
        self.judges = _preferred_first({grade["judge"] for grade in self.grades}, self.judge_order)
        """Models that graded, the preferred ones first."""

    @property
    def systems(self) -> list[str]:
        """Systems that answered, in the order of Table 1."""
        return sorted(self.costs, key=answering_order)

    @property
    def graded_systems(self) -> list[str]:
        """Systems of which an answer was graded, in the order of Table 1."""
        graded = {grade["system"] for grade in self.grades}
        return [system for system in self.systems if system in graded]

    @property
    def judge(self) -> str:
        """The model whose verdicts the main tables show; '' where none graded."""
        return next(iter(self.judges), "")

    @cached_property
    def people(self) -> GradeResults:
        """The results of the grades by people."""
        return pool_months(
            {
                month.month: MonthGrades(
                    month.human_grades, month.judge_grades, month.outdated_grades
                )
                for month in self._months
            }
        )

    @cached_property
    def _results(self) -> dict[tuple[str, str, QuestionGroup], SystemResult]:
        return {
            (result.judge, result.system, result.group): result
            for result in results([*self.grades, *self.shown], self.cutoff)
        }

    def result(self, system: str, group: QuestionGroup = ALL) -> SystemResult | None:
        """The results of a system over a group of questions, by the first judge; of one that only
        shows passages, by none.
        """
        judged = self._results.get((self.judge, system, group))
        return judged or self._results.get(("", system, group))

    def mean(self, system: str, metric: str, group: QuestionGroup = ALL) -> Estimate | None:
        """The mean of a system over a group of questions, by the first judge; None without one."""
        result = self.result(system, group)
        return result.measures.get(metric) if result else None


@dataclass(frozen=True)
class ReportData:
    """One month, or all months, and the settings by which they are shown."""

    root: DataRoot
    settings: Settings
    months: Sequence[MonthSummary]
    unreadable: Sequence[str] = ()
    """Months with a table that cannot be read."""

    @property
    def finished(self) -> list[MonthSummary]:
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
            counts.update(month.left_out.get(stage, {}))
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))

    @property
    def passage_lengths(self) -> Counter[str]:
        """Range of words → passages, the shortest first."""
        sums = Counter[str]()
        for month in self.months:
            sums.update(month.passage_lengths)
        return sums

    @property
    def audit(self) -> Counter[str]:
        """Points that were expected in the index, are present, missing, and should not be there."""
        sums = Counter[str]()
        for month in self.months:
            for load in month.loads:
                for name in ("expected", "present", "missing", "stale"):
                    sums[name] += load[name]
        return sums

    @cached_property
    def related(self) -> RelatedWorkData:
        return RelatedWorkData(self.finished, self.settings)

    @cached_property
    def answers(self) -> AnswersData:
        return AnswersData(self.finished, self.settings)


def read_month_report(workspace: Workspace, month: str) -> ReportData:
    """The data of a month's report. Raises as `DataRoot.read` does."""
    return ReportData(workspace.root, workspace.settings, [read_summary(workspace.root, month)])


def read_overall_report(workspace: Workspace) -> ReportData:
    """The data of the report over all months; months with a damaged table are `unreadable`."""
    months, unreadable = [], []
    for month in workspace.root.months(tables.DUMP_MEMBERS):
        try:
            months.append(read_summary(workspace.root, month))
        except CiteloomError:
            unreadable.append(month)
    return ReportData(workspace.root, workspace.settings, months, unreadable)


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
    if root.provenance(table, month) is not None:
        for row in root.rows_with(table, month, key, ids, columns or table.schema.names):
            rows[row[key]].append(row)
    return rows


def read_ledger(root: DataRoot, month: str, stages: Sequence[str]) -> list[LeftOut]:
    """Items that these stages left out of a month, stage by stage, sorted within each."""
    items: list[LeftOut] = []
    for stage in stages:
        rows = root.ledger(stage, month, ["subject", "reason", "detail"]).to_pylist()
        mine = [
            LeftOut(stage, row["subject"] or "", row["reason"] or "", row["detail"] or "")
            for row in rows
        ]
        items += sorted(mine, key=lambda item: (item.subject, item.reason, item.detail))
    return items
