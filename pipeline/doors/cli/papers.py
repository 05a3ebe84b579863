"""The commands `citeloom papers`, `paper` and `find-quote`: read the corpus and its citations."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.doors.cli.common import AsJson, open_workspace
from pipeline.errors import SettingError

PaperArgument = Annotated[str, typer.Argument(metavar="ID", help="arXiv id, such as 2404.90003.")]


def papers(
    title: Annotated[str, typer.Option(help="Only papers whose title has these words.")] = "",
    author: Annotated[
        str, typer.Option(help="Only papers of an author whose name has these words.")
    ] = "",
    year: Annotated[int | None, typer.Option(help="Only papers of this year.")] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="At most N papers.")
    ] = 50,
    as_bibtex: Annotated[
        bool, typer.Option("--bibtex", help="Print the BibTeX entries of the papers.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """List the papers of the corpus, or find them by title, author and year; newest months first.

    Examples:
      citeloom papers
      citeloom papers --title "related work" --author lovelace
      citeloom papers --year 2024 --bibtex
    """
    if as_bibtex and as_json:
        raise SettingError("--bibtex and --json exclude each other: give one of them")

    from pipeline import tables
    from pipeline.corpus.citation_formats import bibtex_of
    from pipeline.doors.cli.console import print_note, print_noun
    from pipeline.doors.papers import list_papers

    workspace = open_workspace()
    listing = list_papers(workspace, title, author, year, limit)
    if as_bibtex:
        typer.echo(bibtex_of([hit.paper for hit in listing]))
    else:
        print_noun(listing, as_json=as_json)
    if listing.has_more and not as_json:
        print_note(f"the corpus has more: --limit {2 * limit} shows more of them")
    if not workspace.root.months(tables.PAPERS):
        print_note(
            f"{workspace.root.path} holds no papers yet: citeloom run --months all reads them"
        )
    return 0


def paper(
    arxiv_id: PaperArgument,
    references: Annotated[
        bool,
        typer.Option(
            "--references", help="List its bibliography, with arXiv ids where they are known."
        ),
    ] = False,
    cited_by: Annotated[
        bool,
        typer.Option(
            "--cited-by",
            help="List the papers of the corpus that cite it; it may be outside the corpus.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show a paper of the corpus: front matter, outline, what it cites and what cites it.

    Examples:
      citeloom paper 2404.90003
      citeloom paper 2404.90003 --references
      citeloom paper 1706.03762 --cited-by --json
    """
    if references and cited_by:
        raise SettingError("--references and --cited-by exclude each other: give one of them")

    from pipeline.corpus.references.citation_index import read_citing_papers
    from pipeline.doors.cli.console import print_noun
    from pipeline.index.papers import read_paper

    workspace = open_workspace()
    if cited_by:
        print_noun(read_citing_papers(workspace, arxiv_id), as_json=as_json)
    else:
        full_paper = read_paper(workspace, arxiv_id)
        print_noun(full_paper.references if references else full_paper, as_json=as_json)
    return 0


def find_quote(
    quote: Annotated[
        str,
        typer.Argument(metavar="QUOTE", help="A sentence or a part of one, at least four words."),
    ],
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=50, help="At most N passages.")] = 5,
    as_json: AsJson = False,
) -> int:
    """Find the passage that a sentence or quote is from: exact words, then nearly the same, then
    the same meaning.

    Examples:
      citeloom find-quote "drafts related work one reference at a time"
      citeloom find-quote "removing the reflection raises the variance" --json
    """
    from pipeline.doors.cli.console import print_noun, spinner
    from pipeline.index.quotes import find_quote as find

    with spinner("searching"):
        results = find(open_workspace(), quote, limit)
    print_noun(results, as_json=as_json)
    return 0
