"""A corpus: a data root with the settings under which it is searched and written from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pipeline.answering.session import Reply
    from pipeline.corpus.paper import FullPaper
    from pipeline.corpus.references.citation_index import CitingPaper
    from pipeline.engine.stage import Workspace
    from pipeline.index.output import Hits
    from pipeline.index.paper_results import SearchResults
    from pipeline.index.quotes import QuoteSource
    from pipeline.related_work.relate import Related


def open_corpus(path: str | Path | None = None, **settings: Any) -> Corpus:
    """Open the corpus of a data root.

    path: folder, or address on an object store (s3://bucket/folder); None for the one that
    `CITELOOM_DATA` names, by default `data/demo` below the working directory for the sample corpus.
    settings: by their names without `CITELOOM_` in lower case, such as
    `qdrant_url="http://localhost:6333"`; they take precedence over the environment and `.env`.
    docs/reference/settings.md lists them all.

    Nothing is read until a method asks for it. Raises SettingError for an unknown or wrong setting.
    """
    from pipeline.engine.stage import Workspace
    from pipeline.settings import Settings, load_settings

    unknown = sorted(settings.keys() - Settings.model_fields.keys())
    if unknown:
        from pipeline.errors import SettingError

        raise SettingError(
            f"not a setting: {', '.join(unknown)}; docs/reference/settings.md lists all settings"
        )
    if path is not None:
        settings["data"] = path
    return Corpus(Workspace(load_settings(**settings)))


class Corpus:
    """Papers, their index, and texts written from them. Made by `open_corpus`.

    One process at a time can have the in-process index open: a corpus lets go of it after a second
    without a request or when another process waits, and at once at `close` or the end of a `with`
    block. A Qdrant server has no such limit.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def months(self) -> list[str]:
        """The months that are processed as far as passages, YYYY-MM, oldest first."""
        from pipeline import tables

        return self._workspace.root.months(tables.PASSAGES)

    def search(self, query: str, *, include_unfit: bool = False, **options: Any) -> SearchResults:
        """A page of the papers that fit a query, best first, each with its best passages; where
        none fits, the nearest ones, with `results.fits` false. `results.note` says how the query
        was read, where it is not as it was typed.

        query: words, a sentence, a whole paragraph, or an arXiv id, DOI, address or name of a
        method, which gives its paper first. include_unfit: also return papers that do not fit
        (`paper.relevance == "none"`). options: those of `citeloom search`, such as `limit=5`,
        `offset=10`, `categories=["cs.CL"]`, `first_month="2024-03"`, `kinds=["table"]`; see
        `pipeline.index.search_options.SearchOptions`.

        Raises SettingError for a wrong option, MissingInput if nothing is indexed, TransientFailure
        if the index does not answer or another process holds it.
        """
        from pipeline.index.paper_results import search_papers
        from pipeline.index.search_options import SearchOptions

        return search_papers(
            self._workspace, [query], SearchOptions(**options), include_unfit=include_unfit
        )[0]

    def search_passages(self, query: str, *, include_unfit: bool = False, **options: Any) -> Hits:
        """The passages that fit a query, whatever their papers, best first; empty if none does.
        `hits.note` says how the query was read. Arguments and errors as those of `search`.
        """
        from pipeline.index.output import Hits
        from pipeline.index.passage_results import search_passages
        from pipeline.index.search_options import SearchOptions

        results = search_passages(self._workspace, [query], SearchOptions(**options))[0]
        return Hits(results.hits(include_unfit=include_unfit), results.note)

    def paper(self, arxiv_id: str) -> FullPaper:
        """A paper with its passages and references. Raises MissingInput if there is none."""
        from pipeline.index.papers import read_paper

        return read_paper(self._workspace.root, arxiv_id)

    def cited_by(self, arxiv_id: str) -> list[CitingPaper]:
        """The papers of the corpus that cite a paper, which need not be in the corpus itself.

        Raises SettingError for a malformed id.
        """
        from pipeline.corpus.references.citation_index import read_citing_papers

        return read_citing_papers(self._workspace, arxiv_id)

    def find_quote(self, quote: str, *, limit: int = 5) -> list[QuoteSource]:
        """The passages that a sentence or quote may be from, best first: by its exact words, nearly
        the same words, or else by meaning (`source.match`).

        Raises SettingError for a quote of fewer than four words, and as `search` does.
        """
        from pipeline.index.quotes import find_quote

        return find_quote(self._workspace, quote, limit)

    def ask(self, question: str, *, system: str | None = None, months: str = "all") -> Reply:
        """The answer to a question, with the passages that support each sentence.

        system: `arxivbot`, `wikichat`, `direct` or `extractive`, alone or with a model
        (`arxivbot@gpt-4`); by default `extractive` without a model endpoint, else `arxivbot`.
        months: a month, a range (2024-03..2024-05), or all.

        Raises SettingError for a wrong argument, MissingInput if nothing is indexed, and what the
        client of the model raises.
        """
        from pipeline.answering.session import open_conversation

        return open_conversation(self._workspace, system, months).ask(question)

    def relate(
        self, draft: str, references: Sequence[str], *, system: str | None = None
    ) -> Related:
        """A related-work section for a draft, which cites papers of the corpus in the order given.

        draft: Markdown or plain text. references: arXiv ids. system: `chatcite`, `zero_shot`,
        `extractive` and others, alone or with a model; by default `extractive` without a model
        endpoint, else `chatcite`.

        Raises SettingError for an empty draft and for references that are malformed or not in the
        corpus, and what the model's client raises.
        """
        from pipeline.related_work.relate import relate

        return relate(self._workspace, draft, references, system)

    def close(self) -> None:
        """Let go of the in-process index for other processes. The next search opens it again."""
        from pipeline.index.opening import close_indexes

        close_indexes()
