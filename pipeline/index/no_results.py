"""Why a search finds nothing at all: an empty index, or a filter that no passage meets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rapidfuzz import fuzz, process

from pipeline import tables
from pipeline.arxiv.titles import title_words
from pipeline.corpus.paper_index import authors_like, years_of_papers
from pipeline.errors import MissingInput, SettingError
from pipeline.index.passage_index import PassageIndex
from pipeline.index.points import author_keys, venue_words
from pipeline.index.search_options import SearchOptions

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

# Names that a message suggests, and how alike they have to be, of 100.
_SUGGESTED, _LIKENESS = 5, 60.0


def explain_nothing(workspace: Workspace, index: PassageIndex, options: SearchOptions) -> None:
    """Raise where a search finds nothing because the index is empty, or because no paper has the
    value of a filter; the message names the values that are near.

    Only then: to count and list values costs more than a search. Returns where each filter alone
    has papers. Raises MissingInput or SettingError.
    """
    if index.count() == 0:
        raise MissingInput(
            f"the collection {index.name} is empty: run citeloom run --months all --until index"
        )
    for category in options.categories:
        _require_category(index, category)
    kinds = index.values("kind") if options.kinds else []
    for kind in options.kinds:
        if kind not in kinds:
            raise SettingError(
                f"--kind: no passage is of the kind {kind}; the index holds {', '.join(kinds)}"
            )
    for author in options.authors:
        _require_author(workspace, author)
    _require_venue(index, options.venue)
    _require_years(workspace, options)
    _require_months(workspace, options)


def _require_category(index: PassageIndex, category: str) -> None:
    archive, dot, _ = category.partition(".")
    names = index.values("category_keys")
    archives = [name for name in names if "." not in name]
    if archive not in archives:
        raise SettingError(
            f"--category: no passage is of the archive {archive}; the index holds"
            f" {', '.join(archives)}"
        )
    of_archive = [name for name in names if name.startswith(f"{archive}.")]
    if dot and category not in of_archive:
        raise SettingError(
            f"--category: no passage is of the category {category}; of {archive}, there are"
            f" {', '.join(of_archive)}"
        )


def _require_author(workspace: Workspace, author: str) -> None:
    key = " ".join(title_words(author))
    near = authors_like(workspace, author)
    if not any(key in author_keys(name) for name in near):
        raise SettingError(
            f"--author: no author has the name {author!r}{_suggestion(near[:_SUGGESTED])}"
        )


def _require_venue(index: PassageIndex, venue: str) -> None:
    words = venue_words(venue)
    indexed = index.values("venue") if words else []
    for word in words:
        if word not in indexed:
            near = process.extract(
                word, indexed, scorer=fuzz.ratio, limit=_SUGGESTED, score_cutoff=_LIKENESS
            )
            raise SettingError(
                "--venue: within these filters, no journal reference or comment has the word"
                f" {word!r}{_suggestion([name for name, *_ in near])}"
            )


def _require_years(workspace: Workspace, options: SearchOptions) -> None:
    if options.first_year is None and options.last_year is None:
        return
    years = years_of_papers(workspace)
    first, last = options.first_year or 0, options.last_year or 9999
    if years and not any(first <= year <= last for year in years):
        raise SettingError(
            "--year: the corpus has no paper of these years; its papers are of"
            f" {_span(years[0], years[-1])}"
        )


def _require_months(workspace: Workspace, options: SearchOptions) -> None:
    months = workspace.root.months(tables.PASSAGES)
    first, last = options.first_month or "", options.last_month or "9999-12"
    if months and not any(first <= month <= last for month in months):
        raise SettingError(
            "--from, --to: the corpus has no paper of these months; its months are"
            f" {_span(months[0], months[-1])}"
        )


def _span(first: int | str, last: int | str) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _suggestion(names: Sequence[str]) -> str:
    return f"; near: {', '.join(names)}" if names else ""
