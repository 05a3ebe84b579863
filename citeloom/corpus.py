"""A corpus: a data root with the settings under which it is searched and written from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    from pipeline.answering.reply import Reply
    from pipeline.corpus.nouns import FullPaper
    from pipeline.corpus.references.citation_index import CitingPaper
    from pipeline.draft_check.check import DraftCheck, PaperToCite
    from pipeline.engine.stage import Workspace
    from pipeline.index.corpus_papers import PaperListing
    from pipeline.index.paper_results import SearchResults
    from pipeline.index.quotes import QuoteSource
    from pipeline.index.scored import Hits
    from pipeline.related_work.relate import Related

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


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


def _checks_arguments(
    method: Callable[Concatenate[Corpus, Arguments], Result],
) -> Callable[Concatenate[Corpus, Arguments], Result]:
    """A decorator: wrong arguments raise SettingError, which names the right ones."""
    signature = inspect.signature(method)

    @wraps(method)
    def call(self: Corpus, /, *args: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        try:
            signature.bind(self, *args, **keywords)
        except TypeError as error:
            from pipeline.errors import SettingError

            names = ", ".join(name for name in signature.parameters if name != "self")
            message = f"corpus.{method.__name__}: {error}; its arguments are {names}"
            raise SettingError(message) from None
        return method(self, *args, **keywords)

    return call


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

    def __exit__(self, *_: object) -> None:
        self.close()

    def months(self) -> list[str]:
        """The months that are processed as far as passages, YYYY-MM, oldest first."""
        from pipeline import tables

        return self._workspace.root.months(tables.PASSAGES)

    @_checks_arguments
    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        offset: int = 0,
        categories: Sequence[str] = (),
        first_month: str | None = None,
        last_month: str | None = None,
        kinds: Sequence[str] = (),
        severities: Sequence[str] = (),
        worst_quality: str | None = None,
        authors: Sequence[str] = (),
        venue: str = "",
        first_year: int | None = None,
        last_year: int | None = None,
        by: Literal["fused", "dense", "sparse", "lexical"] = "fused",
        exact: bool = False,
        as_typed: bool = False,
    ) -> SearchResults:
        """A page of the papers that fit a query best, best first, each with its best passages;
        `results.fits` is false where nothing in the corpus fits well. `results.note` says how the
        query was read, where it is not as it was typed.

        query: words, a sentence, a whole paragraph, or an arXiv id, DOI, address or name of a
        method, which gives its paper first, or an author's name. limit, offset: the part of the
        ranking. categories: cs.CL, or an archive such as cs. first_month, last_month: YYYY-MM, both
        included. kinds: of passages, such as table. severities: of the conversion, such as
        no_problem. worst_quality: of the page, A to D. authors: by name. venue: words of the
        journal reference or comment. first_year, last_year: both included. by: vectors that rank.
        exact: compare with every passage, uncompressed. as_typed: read no names
        and correct no misspelt words.

        Raises SettingError for a wrong argument, MissingInput if nothing is indexed,
        TransientFailure if the index does not answer or another process holds it.
        """
        from pipeline.index.paper_results import search_papers
        from pipeline.index.search_options import SearchOptions

        options = SearchOptions(
            limit=limit,
            offset=offset,
            categories=categories,
            first_month=first_month,
            last_month=last_month,
            kinds=kinds,
            severities=severities,
            worst_quality=worst_quality,
            authors=authors,
            venue=venue,
            first_year=first_year,
            last_year=last_year,
            by=by,
            exact=exact,
            as_typed=as_typed,
        )
        return search_papers(self._workspace, [query], options)[0]

    @_checks_arguments
    def search_passages(
        self,
        query: str,
        *,
        limit: int = 10,
        offset: int = 0,
        categories: Sequence[str] = (),
        first_month: str | None = None,
        last_month: str | None = None,
        kinds: Sequence[str] = (),
        severities: Sequence[str] = (),
        worst_quality: str | None = None,
        authors: Sequence[str] = (),
        venue: str = "",
        first_year: int | None = None,
        last_year: int | None = None,
        papers: Sequence[str] = (),
        by: Literal["fused", "dense", "sparse", "lexical"] = "fused",
        exact: bool = False,
        as_typed: bool = False,
    ) -> Hits:
        """The passages that fit a query best, of all papers, best first; `hits.fits` is false where
        nothing fits well, and `hits.note` says how the query was read.

        papers: arXiv ids of the only papers. Other arguments and errors as those of `search`.
        """
        from pipeline.index.passage_results import search_passages
        from pipeline.index.search_options import SearchOptions

        options = SearchOptions(
            limit=limit,
            offset=offset,
            categories=categories,
            first_month=first_month,
            last_month=last_month,
            kinds=kinds,
            severities=severities,
            worst_quality=worst_quality,
            authors=authors,
            venue=venue,
            first_year=first_year,
            last_year=last_year,
            papers=papers,
            by=by,
            exact=exact,
            as_typed=as_typed,
        )
        return search_passages(self._workspace, [query], options)[0].hits

    @_checks_arguments
    def similar(self, identifier: str, *, limit: int = 10, offset: int = 0) -> SearchResults:
        """A page of the papers that are like a paper (its arXiv id) or a passage (its id).

        Raises SettingError for an id that the corpus does not have, and as `search` does.
        """
        from pipeline.index.paper_results import papers_like
        from pipeline.index.search_options import SearchOptions

        return papers_like(self._workspace, identifier, SearchOptions(limit=limit, offset=offset))

    @_checks_arguments
    def papers(
        self,
        *,
        title: str = "",
        author: str = "",
        year: int | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> PaperListing:
        """The papers of the corpus, newest months first, or those whose title has these words, one
        of whose authors has this name, and of this year. `listing.has_more`: whether others follow.
        """
        from pipeline.index.corpus_papers import list_papers

        return list_papers(self._workspace, title, author, year, limit, offset)

    @_checks_arguments
    def bibtex(self, arxiv_ids: Sequence[str]) -> str:
        """The BibTeX entries of papers, with unique keys. Raises MissingInput if one is missing."""
        from pipeline.corpus.citation_formats import bibtex_of

        return bibtex_of([self.paper(arxiv_id) for arxiv_id in arxiv_ids])

    @_checks_arguments
    def paper(self, arxiv_id: str) -> FullPaper:
        """A paper with its passages and references. Raises MissingInput if there is none."""
        from pipeline.index.papers import read_paper

        return read_paper(self._workspace, arxiv_id)

    @_checks_arguments
    def cited_by(self, arxiv_id: str) -> list[CitingPaper]:
        """The papers of the corpus that cite a paper, which need not be in the corpus itself.

        Raises SettingError for a malformed id.
        """
        from pipeline.corpus.references.citation_index import read_citing_papers

        return read_citing_papers(self._workspace, arxiv_id)

    @_checks_arguments
    def find_quote(self, quote: str, *, limit: int = 5) -> list[QuoteSource]:
        """The passages that a sentence or quote may be from, best first: by its exact words, nearly
        the same words, or else by meaning (`source.match`).

        Raises SettingError for a quote of fewer than four words, and as `search` does.
        """
        from pipeline.index.quotes import find_quote

        return find_quote(self._workspace, quote, limit)

    @_checks_arguments
    def ask(self, question: str, *, system: str | None = None, months: str = "all") -> Reply:
        """The answer to a question, with the passages that support each sentence.

        system: `arxivbot_fused`, `arxivbot`, `wikichat`, `direct` or `passages`, alone or with a
        model (`arxivbot@gpt-4`); by default `passages` without a model endpoint, else
        `arxivbot_fused`.
        months: a month, a range (2024-03..2024-05), or all.

        Raises SettingError for a wrong argument, MissingInput if nothing is indexed, and what the
        client of the model raises.
        """
        from pipeline.answering.session import open_conversation

        return open_conversation(self._workspace, system, months).ask(question)

    @_checks_arguments
    def relate(
        self, draft: str, references: Sequence[str], *, system: str | None = None
    ) -> Related:
        """A related-work section for a draft, which cites papers of the corpus in the order given.

        draft: Markdown or plain text. references: arXiv ids. system: `chatcite`, `zero_shot`,
        `lead` and others, alone or with a model, or `notes`: the references in groups, each with a
        quotation, and no section. By default `notes` without a model endpoint, else `chatcite`.

        Raises SettingError for an empty draft and for references that are malformed or not in the
        corpus, and what the model's client raises.
        """
        from pipeline.related_work.relate import relate

        return relate(self._workspace, draft, references, system)

    @_checks_arguments
    def check(
        self, draft: str | Path, *, bibliography: str | Path | None = None, missing: bool = False
    ) -> DraftCheck:
        """The check of a draft's citations: `check.references`, `check.citations`, `check.problems`
        and, as plain data, `check.as_json()`.

        draft: main file, .tex, .md, .qmd, .Rmd or .txt. bibliography: file in place of the draft's
        own. missing: also find papers that the draft does not cite.

        Raises SettingError for a file that cannot be read, MissingInput without metadata, and as
        `search` does.
        """
        from pipeline.draft_check.check import check_draft
        from pipeline.draft_check.reading import read_draft

        loaded = read_draft(Path(draft), Path(bibliography) if bibliography else None)
        return check_draft(self._workspace, loaded, suggest=missing)

    @_checks_arguments
    def cite(
        self, sentence: str, *, bibliography: str | Path | None = None, limit: int = 5
    ) -> list[PaperToCite]:
        """The papers to cite for a sentence, best first, with their keys in a bibliography or new
        ones. Raises SettingError for a file that cannot be read, and as `search` does.
        """
        from pipeline.draft_check.check import papers_to_cite

        file = Path(bibliography) if bibliography else None
        return papers_to_cite(self._workspace, sentence, file, limit)

    def close(self) -> None:
        """Let go of the in-process index for other processes. The next search opens it again."""
        from pipeline.index.opening import close_indexes

        close_indexes()
