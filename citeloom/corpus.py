"""A corpus: a data root with the settings under which it is searched and written from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    from drafts.check import DraftCheck, PaperToCite
    from pipeline.corpus.nouns import Answer, CitingPaper, FullPaper, Paper, Results
    from pipeline.doors.search import Of
    from pipeline.engine.stage import Workspace
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


def as_json(noun: Any) -> Any:
    """A result, or a collection of them, as the values that `--json` and the JSON API have."""
    from pipeline.doors import present

    return present.as_json(noun)


def as_bibtex(
    papers: Sequence[Paper], keys: Mapping[str, str] | None = None
) -> list[tuple[str, str]]:
    """(key, BibTeX entry) of each paper. keys: arXiv id → its key in your own bibliography; others
    get unique ones.
    """
    from pipeline.corpus.citation_formats import keyed_bibtex

    return keyed_bibtex(papers, keys)


def as_markdown(noun: Any) -> str:
    """A result, or a collection of them, as Markdown."""
    from pipeline.doors import present

    return present.as_markdown(noun)


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

    def search(self, query: str, **options: Any) -> Results:
        """A page of the papers that fit a query best, best first, each with its best passages;
        `results.fits` is false where nothing in the corpus fits well. `results.note` says how the
        query was read, where it is not as it was typed.

        query: words, a sentence, a whole paragraph, or an arXiv id, DOI, address or name of a
        method, which gives its paper first, or an author's name. options: fields of
        `SearchOptions`, such as limit, offset, categories, first_month, kinds and authors; its help
        describes them.

        Raises SettingError for a wrong option, MissingInput if nothing is indexed,
        TransientFailure if the index does not answer or another process holds it.
        """
        return self._search(query, options, "papers")

    def search_passages(self, query: str, **options: Any) -> Results:
        """The passages that fit a query best, of all papers, best first. Options and errors as
        those of `search`.
        """
        return self._search(query, options, "passages")

    def _search(self, query: str, options: Mapping[str, Any], of: Of) -> Results:
        from pipeline.doors.search import search
        from pipeline.index.search_options import SearchOptions

        try:
            checked = SearchOptions(**options)
        except TypeError as error:
            from pipeline.errors import SettingError

            names = ", ".join(field.name for field in fields(SearchOptions))
            raise SettingError(f"corpus.search: {error}; its options are {names}") from None
        return search(self._workspace, [query], checked, of)[0]

    @_checks_arguments
    def similar(self, identifier: str, *, limit: int = 10, offset: int = 0) -> Results:
        """A page of the papers that are like a paper (its arXiv id) or a passage (its id).

        Raises SettingError for an id that the corpus does not have, and as `search` does.
        """
        from pipeline.doors.search import search_like
        from pipeline.index.search_options import SearchOptions

        return search_like(self._workspace, identifier, SearchOptions(limit=limit, offset=offset))

    @_checks_arguments
    def papers(
        self,
        *,
        title: str = "",
        author: str = "",
        year: int | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Results:
        """The papers of the corpus, newest months first, or those whose title has these words, one
        of whose authors has this name, and of this year. `listing.has_more`: whether others follow.
        """
        from pipeline.doors.papers import list_papers

        return list_papers(self._workspace, title, author, year, limit, offset)

    @_checks_arguments
    def bibtex(self, arxiv_ids: Sequence[str]) -> str:
        """The BibTeX entries of papers, with unique keys. Raises MissingInput if one is missing."""
        from pipeline.corpus.citation_formats import entries_of

        return entries_of([self.paper(arxiv_id) for arxiv_id in arxiv_ids])

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
    def find_quote(self, quote: str, *, limit: int = 5) -> Results:
        """The passages that a sentence or quote may be from, best first: by its exact words, nearly
        the same words, or else by meaning (`hit.reason`).

        Raises SettingError for a quote of fewer than four words, and as `search` does.
        """
        from pipeline.index.quotes import find_quote

        return find_quote(self._workspace, quote, limit)

    @_checks_arguments
    def ask(self, question: str, *, system: str | None = None, months: str = "all") -> Answer:
        """The answer to a question, with the passages that support each sentence; `as_markdown`
        shows it as `citeloom ask` does.

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
        self,
        draft: str,
        references: Sequence[str],
        *,
        system: str | None = None,
        keys: Mapping[str, str] | None = None,
        packages: Collection[str] = (),
        authors: Mapping[str, Sequence[str]] | None = None,
    ) -> Related:
        """A related-work section for a draft, which cites papers of the corpus in the order given.

        draft: Markdown or plain text. references: arXiv ids. system: `chatcite`, `zero_shot`,
        `lead` and others, alone or with a model, or `notes`: the references, each with a
        quotation, and no section. By default `notes` without a model endpoint, else `chatcite`.
        keys: arXiv id → its key in your own bibliography. packages: of LaTeX that the draft loads,
        whose commands cite. authors: arXiv id → authors, for papers without metadata.

        Raises SettingError for an empty draft and for references that are malformed or not in the
        corpus, and what the model's client raises.
        """
        from pipeline.related_work.relate import relate

        return relate(self._workspace, draft, references, system, keys, packages, authors)

    @_checks_arguments
    def check(
        self, draft: str | Path, *, bibliography: str | Path | None = None, missing: bool = False
    ) -> DraftCheck:
        """The check of a draft's citations: `check.references`, `check.citations`, `check.problems`
        and, as plain data, `check.as_json()`.

        draft: main file, .tex, .md, .qmd or .Rmd. bibliography: file in place of the draft's
        own. missing: also find papers that the draft does not cite.

        Raises SettingError for a file that cannot be read, MissingInput without metadata, and as
        `search` does.
        """
        from pipeline.plugins import of_drafts

        file = Path(bibliography) if bibliography else None
        result: DraftCheck = of_drafts("check")(self._workspace, Path(draft), file, missing=missing)
        return result

    @_checks_arguments
    def cite(
        self, sentence: str, *, bibliography: str | Path | None = None, limit: int = 5
    ) -> list[PaperToCite]:
        """The papers to cite for a sentence, best first, with their keys in a bibliography or new
        ones; `hit.fits` is false of those that are only near. Raises SettingError for a file that
        cannot be read, and as `search` does.
        """
        from pipeline.plugins import of_drafts

        file = Path(bibliography) if bibliography else None
        papers: list[PaperToCite] = of_drafts("cite")(self._workspace, sentence, file, limit)
        return papers

    def close(self) -> None:
        """Let go of the in-process index for other processes. The next search opens it again."""
        from pipeline.index.opening import close_indexes

        close_indexes()
