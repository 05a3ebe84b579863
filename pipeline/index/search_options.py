"""Options of a search: checked, and turned into a request to the index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from pipeline import tables
from pipeline.errors import SettingError
from pipeline.identity.months import parse_month
from pipeline.identity.titles import title_words
from pipeline.index.fusion import By, Ranking
from pipeline.index.passage_index import MONTH_NUMBER, Condition, month_number
from pipeline.index.points import venue_words
from pipeline.settings import SUBSETS
from pipeline.settings.categories import normalize_category

BY: tuple[By, ...] = get_args(By)

# Of a query that somebody types: one page of text. The models read some 500 words of it.
LONGEST_QUERY = 10_000
# A search reads whole row groups of passages for its texts.
MOST = 1_000
DEEPEST = 10_000
# The tail of a ranking depends on the length of its list of candidates. Lists therefore have 50
# passages, 100, 200 and so on, and the pages of a search within one length are pages of one
# ranking.
FIRST_DEPTH = 50


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of a search.

    limit and offset: the part of the ranking, in passages or, with per_paper, in papers.
    categories: the paper has one of them; cs.CL or a whole archive such as cs, in any case.
    first_month and last_month: YYYY-MM, both included. kinds: of passages, such as table.
    severities: of the conversion. worst_quality: of the page, A to D; better ones are included.
    authors: the paper has one of them, by name. venue: words that its
    journal reference or comment has, all of them. first_year and last_year: both included.
    papers: arXiv ids of the only papers; all for none. without_papers: arXiv ids of papers that are
    left out. by: vectors that rank; `fused` is dense and lexical. per_paper: only the best passage
    of each paper. exact: compare with every passage, uncompressed. as_typed: correct no misspelt
    words.
    """

    limit: int = 10
    offset: int = 0
    categories: Sequence[str] = ()
    first_month: str | None = None
    last_month: str | None = None
    kinds: Sequence[str] = ()
    severities: Sequence[str] = ()
    worst_quality: str | None = None
    authors: Sequence[str] = ()
    venue: str = ""
    first_year: int | None = None
    last_year: int | None = None
    papers: Sequence[str] = ()
    without_papers: Sequence[str] = ()
    by: By = "fused"
    per_paper: bool = False
    exact: bool = False
    as_typed: bool = False

    def checked(self) -> SearchOptions:
        """The options with categories, kinds and severities as the index spells them, and tuples,
        so that they can be compared.

        Raises SettingError, naming the option, for an invalid value.
        """
        self._check_numbers()
        self._check_months()
        _one_of("--by", self.by, BY)
        return replace(
            self,
            authors=tuple(_listed(self.authors)),
            papers=tuple(self.papers),
            without_papers=tuple(self.without_papers),
            categories=tuple(map(_category, _listed(self.categories))),
            kinds=tuple(map(_kind, _listed(self.kinds))),
            severities=tuple(
                _one_of("--severity", severity.strip().lower(), SUBSETS)
                for severity in _listed(self.severities)
            ),
        )

    @property
    def end(self) -> int:
        """Number of results up to the end of the requested part."""
        return self.offset + self.limit

    def ranking(self, depth: int) -> Ranking:
        """The ranking of the best `depth` passages to request from the index."""
        return Ranking(depth, by=self.by, where=self.conditions(), exact=self.exact)

    def depth(self) -> int:
        """How many passages to rank for the requested part."""
        depth = FIRST_DEPTH
        while depth < self.end:
            depth *= 2
        return depth

    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that a passage must meet."""
        authors = tuple(" ".join(title_words(name)) for name in _listed(self.authors))
        named = {
            "category_keys": tuple(self.categories),
            "kind": tuple(self.kinds),
            "subset": tuple(self.severities),
            "grade": _grades(self.worst_quality),
            "authors": authors,
            "arxiv_id": tuple(self.papers),
        }
        conditions = [Condition(field, values) for field, values in named.items() if values]
        conditions += [Condition("venue", (word,)) for word in venue_words(self.venue)]
        first, last = (
            None if month is None else month_number(month)
            for month in (self.first_month, self.last_month)
        )
        for field, low, high in (
            (MONTH_NUMBER, first, last),
            ("year", self.first_year, self.last_year),
        ):
            if low is not None or high is not None:
                conditions.append(Condition(field, low=low, high=high))
        if self.without_papers:
            conditions.append(Condition("arxiv_id", tuple(self.without_papers), negated=True))
        return tuple(conditions)

    def _check_numbers(self) -> None:
        if not 1 <= self.limit <= MOST:
            raise SettingError(f"--limit {self.limit} is not between 1 and {MOST}")
        if self.offset < 0 or self.end > DEEPEST:
            raise SettingError(
                f"--offset {self.offset} with --limit {self.limit}: results number 1 to"
                f" {DEEPEST} are available"
            )
        _grades(self.worst_quality)
        if (self.first_year or 0) > (self.last_year or 9999):
            raise SettingError(f"--year: {self.first_year} is later than {self.last_year}")

    def _check_months(self) -> None:
        named = {"--from": self.first_month, "--to": self.last_month}
        months = [_month(option, month) for option, month in named.items() if month is not None]
        if months != sorted(months):
            raise SettingError(f"--from {self.first_month} is later than --to {self.last_month}")


def check_query(query: str, where: str = "the query") -> None:
    """Raise SettingError for a query that has no letter or digit, or is not valid Unicode.

    where: its name in the message.
    """
    # Bytes of an argument that are not UTF-8 become lone surrogates (PEP 383).
    if any("\ud800" <= character <= "\udfff" for character in query):
        raise SettingError(
            f"{where} is not valid UTF-8: type it again, or see that the terminal's locale is UTF-8"
        )
    if not any(map(str.isalnum, query)):
        lack = "has no word" if query.strip() else "is empty"
        raise SettingError(f"{where} {lack}: give some words to search for")


def check_length(text: str, where: str) -> None:
    """Raise SettingError for a query, question or quote that is longer than LONGEST_QUERY."""
    if len(text) > LONGEST_QUERY:
        raise SettingError(f"{where} has {len(text):,} characters: give at most {LONGEST_QUERY:,}")


def check_queries(queries: Sequence[str]) -> None:
    """Raise SettingError for the first query that `check_query` refuses, named by its number where
    there are several.
    """
    for number, query in enumerate(queries, 1):
        check_query(query, f"query {number}" if len(queries) > 1 else "the query")


def parse_years(text: str | None) -> tuple[int | None, int | None]:
    """First and last year of 2023, 2020..2023, 2020.. or ..2023; None for no bound. Raises
    SettingError.
    """
    if text is None:
        return None, None
    first, dots, last = text.partition("..")
    if not dots:
        last = first
    years = [year for year in (first, last) if year]
    if not years or not all(
        year.isascii() and year.isdecimal() and len(year) == 4 for year in years
    ):
        raise SettingError(f"--year: {text!r} is no year: write 2023, 2020..2023, 2020.. or ..2023")
    return int(first) if first else None, int(last) if last else None


def read_queries(content: bytes, file: str) -> list[str]:
    """The queries of a file in UTF-8, one on each line; empty lines are skipped.

    Raises SettingError for a line that is not UTF-8, or a file without queries.
    """
    lines = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            lines.append(line.decode("utf-8-sig").strip())
        except UnicodeDecodeError as error:
            raise SettingError(
                f"--queries {file}: line {number} is not UTF-8 ({error.reason}): write it anew"
            ) from error
    queries = [query for query in lines if query]
    if not queries:
        raise SettingError(f"--queries {file} holds no query: write one on each line")
    return queries


def _listed(values: Sequence[str]) -> Sequence[str]:
    """A single text counts as one value, not as a sequence of letters."""
    return (values,) if isinstance(values, str) else values


def _month(option: str, month: str) -> str:
    try:
        return parse_month(month)
    except SettingError as error:
        raise SettingError(f"{option}: {error}") from None


def _grades(worst: str | None) -> tuple[str, ...]:
    """The grades from the best down to `worst`; empty for None."""
    if worst is None:
        return ()
    if worst.upper() not in tables.GRADES:
        raise SettingError(
            f"--page-quality: there is no page quality {worst}: give one of"
            f" {', '.join(tables.GRADES)}"
        )
    return tables.GRADES[: tables.GRADES.index(worst.upper()) + 1]


def _category(category: str) -> str:
    normalized = normalize_category(category)
    if normalized is None:
        raise SettingError(
            f"--category: {category!r} is not a category: write one such as cs.CL, or an archive"
            " such as cs"
        )
    return normalized


def _kind(kind: str) -> str:
    """A kind as tables spell it: front_matter for "Front matter"."""
    normalized = "_".join(kind.lower().replace("-", " ").replace("_", " ").split())
    if not normalized:
        raise SettingError("--kind is empty: name a kind of passage, such as paragraph or table")
    return normalized


def _one_of(option: str, value: str, choices: Collection[str]) -> str:
    if value not in choices:
        raise SettingError(f"{option}: {value!r} is none of {', '.join(choices)}")
    return value
