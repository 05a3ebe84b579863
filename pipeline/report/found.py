"""What the tables of some months hold on related work, read once for all tables of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.engine.parts import statistics_name
from pipeline.engine.run_stats import StageEstimate, StageTiming, read_estimates, read_timings
from pipeline.evaluation.annotation.rating_results import RATING_COLUMNS, RatingResults, rating_results
from pipeline.evaluation.annotation.ratings import digests
from pipeline.evaluation.judge_check.record import JudgeChecks, read_checks
from pipeline.evaluation.judging import TOGETHER, named_judgement
from pipeline.llm.messages import Prices
from pipeline.llm.models import Models, is_small_model
from pipeline.report.scores import Scores
from pipeline.settings import Settings
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.tables import CRITERIA, Table, full_name, short_names, with_shown_name, with_writer_names, writer_name

Row = dict[str, Any]
Read = Mapping[str, pa.Table]
"""Name of a table → its rows of a month."""

_SPENT = ("calls", "prompt_tokens", "completion_tokens")
# What a run measured of tokens; a prompt counts once for all samples of a request, in a row once for each.
_ANSWERED = ("llm_prompt_tokens", "llm_completion_tokens", "llm_cached_tokens")
_SUPPORT = ["system", "verdict", "unjudged", "quote_found"]
_JUDGEMENT = ["task_id", "mode", "judge", "repeat", "order", "marks", "best"]
_REPEATED = [
    "task_id",
    "system",
    "varied",
    "repeat",
    "rouge1",
    "rouge2",
    "rougeL",
    "coverage",
    "g_score",
    *(f"g_{criterion}" for criterion in CRITERIA),
    "model",
    "judge",
]
# What was paid for beside the sections: table → its columns with the models that one row's tokens are of.
_BESIDE: dict[str, tuple[str, ...]] = {
    tables.KEY_ELEMENTS.name: ("model",),
    tables.G_SCORES.name: ("judge",),
    tables.CITATION_SUPPORT.name: ("judge",),
    tables.STABILITY.name: ("model", "judge"),
}
_COLUMNS: dict[str, list[str]] = {
    tables.RELATED_WORK_TASKS.name: ["task_id"],
    tables.SCORES.name: ["task_id", "system", "model", "metric", "value", "judge", "mode"],
    tables.SUMMARIES.name: ["system", "model", *_SPENT],
    **{name: [*models, *_SPENT] for name, models in _BESIDE.items()},
    tables.CITATION_SUPPORT.name: [*_SUPPORT, "model", "judge", *_SPENT],
}
_DEEP: dict[str, list[str]] = {
    tables.G_SCORES.name: [*_JUDGEMENT, *_SPENT],
    tables.STABILITY.name: [*_REPEATED, *_SPENT],
    tables.HUMAN_RATINGS.name: list(RATING_COLUMNS),
}


@dataclass(slots=True)
class Cost:
    """What one thing cost, cached calls counted as the rest. `done`: how many rows it made."""

    done: int = 0
    calls: int = 0
    tokens: Counter[tuple[tuple[str, ...], str]] = field(default_factory=Counter)
    """(Models that share them, `prompt_tokens` or `completion_tokens`) → tokens. Where a section was written and judged
    in one row there are two models, and no telling whose tokens are whose."""

    def add(self, table: pa.Table, models: Sequence[str]) -> None:
        """Take the rows of a month; `models`: names of the columns with those that the tokens are of."""
        self.done += table.num_rows
        sums = table.group_by(list(models), use_threads=False).aggregate([(name, "sum") for name in _SPENT])
        for row in sums.to_pylist():
            self.calls += row["calls_sum"] or 0
            who = tuple(sorted({row[name] for name in models if row[name]}))
            for name in _SPENT[1:]:
                self.tokens[who, name] += row[f"{name}_sum"] or 0

    def join(self, other: Cost) -> None:
        """Take what another cost; not what it made, which may be another kind of thing."""
        self.calls += other.calls
        self.tokens.update(other.tokens)

    @property
    def models(self) -> set[str]:
        """Every model that it was paid for."""
        return {model for who, _ in self.tokens for model in who}

    @property
    def prompt_tokens(self) -> int:
        """Tokens read, by all models."""
        return sum(number for (_, name), number in self.tokens.items() if name == "prompt_tokens")

    @property
    def completion_tokens(self) -> int:
        """Tokens written, by all models."""
        return sum(number for (_, name), number in self.tokens.items() if name == "completion_tokens")


@dataclass(frozen=True, slots=True)
class Money:
    """Money, had no answer been kept; `at_most` where tokens of several models are told together, and so are taken at
    the dearer price. `unpriced`: models without a price, whose tokens are not in it."""

    value: float
    at_most: bool = False
    unpriced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by model, of those that have one."""

    by_model: Mapping[str, Prices] = field(default_factory=dict)

    @property
    def set(self) -> bool:
        """Whether there is any price."""
        return bool(self.by_model)

    def of(self, cost: Cost) -> Money | None:
        """What tokens cost; None where none of their models has a price."""
        unpriced = tuple(sorted(model for model in cost.models if model not in self.by_model))
        if len(unpriced) == len(cost.models):
            return None
        total, at_most = 0.0, False
        for (who, kind), number in sorted(cost.tokens.items()):
            prices = {self._price(model, kind) for model in who}
            total += number * max(prices, default=0.0) / 1e6
            at_most |= len(prices) > 1
        return Money(total, at_most, unpriced)

    def _price(self, model: str, kind: str) -> float:
        prices = self.by_model.get(model, Prices())
        return prices.read if kind == "prompt_tokens" else prices.written


@dataclass(slots=True)
class Retained:
    """Shares of earlier references that a step kept, summed by system and step, filled task by task."""

    sums: dict[str, dict[int, list[float]]] = field(default_factory=dict)

    def add(self, system: str, shares: Sequence[float]) -> None:
        """Take one section's; shares: after the second step, the third, …: before that there is nothing to lose."""
        for step, share in enumerate(shares, 2):
            self.sums.setdefault(system, {}).setdefault(step, []).append(share)


@dataclass(kw_only=True)
class Accounts:
    """What stages of some months took, what they were expected to, and by which prices."""

    prices: PriceList = field(default_factory=PriceList)
    expected: dict[str, StageEstimate] = field(default_factory=dict)
    """Name of a table → what making it was expected to take, where an estimate was made before."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Name of a table → seconds that making it took."""
    tokens: dict[str, int] = field(default_factory=dict)
    """Name of a table → tokens that making it took, those of kept answers too, as an estimate counts them."""
    paid: dict[str, float] = field(default_factory=dict)
    """Name of a table → money that was paid for it."""

    def add_accounts(self, root: DataRoot, month: str, stages: Iterable[str]) -> None:
        """Take what these stages took, by the longest run of the month as it is: later ones found answers kept."""
        for stage, expected in read_estimates(root, month).items():
            before = self.expected.get(stage, StageEstimate(0, 0, 0.0, 0.0))
            sums = (one + other for one, other in zip(astuple(before), astuple(expected), strict=True))
            self.expected[stage] = StageEstimate(*sums)
        for stage in stages:
            longest = longest_run(root, stage, month)
            if longest is not None:
                self.seconds[stage] = self.seconds.get(stage, 0.0) + longest.seconds
                self.tokens[stage] = self.tokens.get(stage, 0) + int(_sum(longest, *_ANSWERED))
                self.paid[stage] = self.paid.get(stage, 0.0) + _sum(longest, "llm_cost")


def longest_run(root: DataRoot, stage: str, month: str) -> StageTiming | None:
    """The longest run of a stage with the month as it is; None where none is kept."""
    return max(read_timings(root, stage, month), key=lambda run: run.seconds, default=None)


@dataclass
class Found(Accounts):
    """Related work of one month or several."""

    scores: Scores
    months: list[str] = field(default_factory=list)
    tasks: int = 0
    shown: Mapping[str, str] = field(default_factory=dict)
    """Name of a writer → the name by which the report shows it, which is the `system` of everything below."""
    written: dict[str, Cost] = field(default_factory=dict)
    """System → its sections."""
    beside: dict[str, Cost] = field(default_factory=dict)
    """Name of a table → what it cost beside the sections."""
    judgements: list[Row] = field(default_factory=list)
    verdicts: dict[str, Counter[str]] = field(default_factory=dict)
    """System → its citations by verdict, `unjudged: <why>` for those without."""
    quotes: dict[str, Counter[bool]] = field(default_factory=dict)
    """System → its supported citations by whether the quote was found."""
    stability: list[Row] = field(default_factory=list)
    ratings: list[Row] = field(default_factory=list)
    off: dict[str, str] = field(default_factory=dict)
    """Name of a table without rows → why, where it says so."""
    retained: Retained = field(default_factory=Retained)

    judge_checks: JudgeChecks = field(default_factory=JudgeChecks)
    outdated: int = 0
    """Ratings of sections that are not there, or no longer as they were rated."""

    @cached_property
    def people(self) -> RatingResults | None:
        """What raters said; None where nobody rated."""
        return rating_results(self.ratings, self.judgements) if self.ratings else None

    @property
    def systems(self) -> list[str]:
        """Systems that wrote anything, by name."""
        return sorted(system for system, cost in self.written.items() if cost.done)

    def models(self) -> set[str]:
        """Every model that wrote or judged."""
        return {model for cost in (*self.written.values(), *self.beside.values()) for model in cost.models}

    @property
    def small_model(self) -> str:
        """The embedded model's name where it wrote or judged, else ''."""
        return min(filter(is_small_model, self.models()), default="")


def find(root: DataRoot, month: str, judges: Sequence[str], prices: PriceList) -> Found:
    """One month, with single judgements, ratings and repeats, which only its own page shows. Raises as `read_month`."""
    found = Found(Scores(judges), prices=prices, shown=shown_writers(root, tables.SUMMARIES, [month]))
    add_month(found, root, month, read_month(root, month, deep=True))
    return found


def shown_writers(root: DataRoot, table: Table, months: Iterable[str]) -> dict[str, str]:
    """Name of a writer → the name to show, over all writers of some months of a table.

    Raises as `DataRoot.read` does.
    """
    names: set[str] = set()
    for month in months:
        names.update(with_writer_names(read_or_none(root, table, month, ["system", "model"]))["system"].to_pylist())
    return short_names(names)


def read_month(root: DataRoot, month: str, *, deep: bool) -> Read:
    """What of a month's tables is wanted, by name; no rows of one that is not there. deep: as for `find`, or for all
    months together, where a month is added to others.

    Raises as `DataRoot.read` does for a file that is damaged or of another version: before anything is counted, so
    that no half of a month is.
    """
    wanted = _COLUMNS | (_DEEP if deep else {})
    found = {name: read_or_none(root, tables.TABLES[name], month, columns) for name, columns in wanted.items()}
    if not deep:
        scores = found[tables.SCORES.name]
        together = pc.or_(pc.is_null(scores["mode"]), pc.equal(scores["mode"], TOGETHER))
        found[tables.SCORES.name] = scores.filter(pc.fill_null(together, fill_value=True))
    return found


def add_month(found: Found, root: DataRoot, month: str, read: Read) -> None:
    """Count a month, as `read_month` read it, with the others."""
    found.judge_checks = read_checks(root)
    found.months.append(month)
    found.tasks += read[tables.RELATED_WORK_TASKS.name].num_rows
    sections = with_writer_names(read[tables.SUMMARIES.name], found.shown)
    for system in sorted(set(sections["system"].to_pylist())):
        found.written.setdefault(system, Cost()).add(sections.filter(pc.equal(sections["system"], system)), ("model",))
    for name, models in _BESIDE.items():
        found.beside.setdefault(name, Cost()).add(read[name], models)
    found.scores.add(with_writer_names(read[tables.SCORES.name], found.shown))
    _add_support(found, with_writer_names(read[tables.CITATION_SUPPORT.name], found.shown))
    judgements = _rows(read, tables.G_SCORES, _JUDGEMENT)
    found.judgements += [named_judgement(row, found.shown) for row in judgements]
    found.stability += [with_shown_name(row, found.shown) for row in _rows(read, tables.STABILITY, _REPEATED)]
    _add_ratings(found, root, month, _rows(read, tables.HUMAN_RATINGS, RATING_COLUMNS))
    _add_off(found, root, month)
    parts = [statistics_name(tables.SUMMARIES.name, name) for name in found.shown]
    found.add_accounts(root, month, (*found.beside, *parts))


def _add_ratings(found: Found, root: DataRoot, month: str, ratings: list[dict[str, Any]]) -> None:
    """Count ratings of the sections as they are; those of sections that were written anew since are counted apart."""
    if not ratings:
        return
    sections = digests(root, month)
    names = {name for _, name in sections}
    named = [{**row, "system": full_name(writer_name(row), names)} for row in ratings]
    current = [row for row in named if sections.get((row["task_id"], row["system"])) == row["text_sha256"]]
    found.ratings += [{**row, "system": found.shown.get(row["system"], row["system"])} for row in current]
    found.outdated += len(ratings) - len(current)


def prices_of(settings: Settings) -> PriceList:
    """The known prices of all models."""
    return PriceList(Models.of(settings).prices())


def read_or_none(root: DataRoot, table: Table, month: str, columns: list[str] | None = None) -> pa.Table:
    """A month of a table; no rows where it is not there."""
    if read_provenance(root.file(table, month)) is None:
        return table.schema.empty_table().select(columns or table.schema.names)
    return root.read(table, month, columns)


def _rows(read: Read, table: Table, columns: list[str]) -> list[Row]:
    """The rows of a table where these columns of it were read."""
    there = read.get(table.name)
    return there.select(columns).to_pylist() if there is not None and set(columns) <= set(there.column_names) else []


def _add_off(found: Found, root: DataRoot, month: str) -> None:
    for name in (*_BESIDE, tables.SUMMARIES.name):
        written = read_provenance(root.file(tables.TABLES[name], month))
        if written is not None and written.notes.get("off"):
            found.off[name] = str(written.notes["off"])


def _add_support(found: Found, read: pa.Table) -> None:
    counts = read.group_by(_SUPPORT, use_threads=False).aggregate([([], "count_all")])
    for row in counts.to_pylist():
        verdict = row["verdict"] or f"unjudged: {row['unjudged'] or 'unknown'}"
        found.verdicts.setdefault(row["system"], Counter())[verdict] += row["count_all"]
        if verdict == "supported":
            found.quotes.setdefault(row["system"], Counter())[bool(row["quote_found"])] += row["count_all"]


def _sum(run: StageTiming, *names: str) -> float:
    """What a run measured under these names, of those that are numbers."""
    return sum(value for name in names if isinstance(value := run.measured.get(name), int | float))
