"""Records of the papers and authors that a question names: the papers' front matter, unjudged."""

from __future__ import annotations

from pipeline import tables
from pipeline.answering.retriever import MonthSpan
from pipeline.corpus.links import source_name
from pipeline.corpus.nouns import PASSAGE_COLUMNS, Passage
from pipeline.corpus.paper_index import papers_named_in
from pipeline.engine.stage import Workspace
from pipeline.identity.identifiers import arxiv_ids_among_words, month_of
from pipeline.index.papers import rows_of_papers

MOST_PAPERS, MOST_OF_AUTHORS = 3, 10
# Of front matter in several passages: the first, with title and first authors, and that with date
# and categories, which is a later one where there are many authors.
_MOST_PARTS = 2


def named_records(workspace: Workspace, span: MonthSpan, question: str) -> list[Passage]:
    """The front matter (title, authors with affiliations, date, categories) of the papers of these
    months that a question names by id, title or short name, at most MOST_PAPERS; then of those by
    authors whom it names in full, newest first, at most MOST_OF_AUTHORS.

    Raises as the index of papers does, and PermanentFailure if a table is broken.
    """
    named, written = papers_named_in(workspace, question)
    named = _in_span([*arxiv_ids_among_words(question), *named], span)[:MOST_PAPERS]
    papers = list(dict.fromkeys([*named, *_in_span(written, span)[:MOST_OF_AUTHORS]]))
    rows = rows_of_papers(workspace.root, tables.PASSAGES, papers, [*PASSAGE_COLUMNS, "ordinal"])
    parts = [row for row in rows if row["kind"] == "front_matter"]
    parts.sort(
        key=lambda row: (
            row["ordinal"] > 0 and source_name(row["arxiv_id"]) not in row["text"],
            row["ordinal"],
        )
    )
    return [
        Passage.from_row(row)
        for paper in papers
        for row in [row for row in parts if row["arxiv_id"] == paper][:_MOST_PARTS]
    ]


def _in_span(papers: list[str], span: MonthSpan) -> list[str]:
    return [paper for paper in dict.fromkeys(papers) if span.holds(month_of(paper) or "")]
