"""The commands `citeloom papers`, `paper` and `find-quote`: read the corpus and its citations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.doors.cli.common import AsJson, open_workspace
from pipeline.errors import SettingError
from pipeline.text import number_of

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.corpus.nouns import FullPaper
    from pipeline.corpus.references.citation_index import CitingPaper
    from pipeline.index.corpus_papers import PaperListing

_AUTHORS_SHOWN = 3

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
    from pipeline.doors.cli.console import out, print_json, print_note
    from pipeline.index.corpus_papers import list_papers

    workspace = open_workspace()
    listing = list_papers(workspace, title, author, year, limit)
    if as_json:
        print_json([asdict(entry) for entry in listing.papers])
    elif as_bibtex:
        typer.echo(bibtex_of([entry.paper for entry in listing.papers]))
    else:
        out.print(_papers_table(listing))
        if listing.has_more:
            print_note(f"the corpus has more: --limit {2 * limit} shows more of them")
    if not listing.papers and listing.near:
        print_note(f"near: {'; '.join(listing.near)}")
    elif not workspace.root.months(tables.PAPERS):
        print_note(
            f"{workspace.root.path} holds no papers yet: citeloom run --months all reads them"
        )
    return 0


def _papers_table(listing: PaperListing) -> Table | str:
    from rich.style import Style
    from rich.text import Text

    from pipeline.doors.cli.console import make_table
    from pipeline.text import visible

    if not listing.papers:
        return "Nothing found."
    count = number_of(len(listing.papers), "paper")
    table = make_table(count, ("arXiv", "year", "title, authors", "categories"))
    table.add_column("passages", justify="right")
    table.add_column("cited by", justify="right")
    for entry in listing.papers:
        title = Text(visible(entry.title), style=Style(link=entry.url))
        table.add_row(
            entry.arxiv_id,
            str(entry.year or ""),
            Text.assemble(title, "\n", (visible(_some_names(entry.authors)), "dim")),
            ", ".join(entry.categories),
            str(entry.passages),
            str(entry.cited_by),
        )
    return table


def _some_names(names: Sequence[str]) -> str:
    first_names = ", ".join(names[:_AUTHORS_SHOWN])
    more = len(names) - _AUTHORS_SHOWN
    return f"{first_names} and {more} more" if more > 0 else first_names


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
    from pipeline.index.papers import read_paper

    workspace = open_workspace()
    if cited_by:
        _show_citing_papers(arxiv_id, read_citing_papers(workspace, arxiv_id), as_json=as_json)
        return 0
    full_paper = read_paper(workspace, arxiv_id)
    if references:
        _show_references(full_paper, as_json=as_json)
    else:
        citing = read_citing_papers(workspace, full_paper.arxiv_id) if not as_json else []
        _show_paper(full_paper, citing, as_json=as_json)
    return 0


def _show_paper(full_paper: FullPaper, citing: Sequence[CitingPaper], *, as_json: bool) -> None:
    from pipeline.doors.cli.console import out, print_json
    from pipeline.index.output import PaperJson
    from pipeline.text import visible

    if as_json:
        print_json(PaperJson.model_validate(full_paper).model_dump())
        return
    facts = (full_paper.arxiv_id, ", ".join(full_paper.categories), full_paper.url)
    lines = [
        visible(full_paper.title),
        visible(", ".join(full_paper.authors)),
        " · ".join(filter(None, facts)),
        "",
        visible(full_paper.abstract or ""),
        "",
        *_outline(full_paper),
        "",
        (
            f"{number_of(len(full_paper.passages), 'passage')}, {_count_references(full_paper)};"
            f" cited by {number_of(len(citing), 'paper')} of the corpus"
        ),
    ]
    for line in lines:
        out.print(line, markup=False, highlight=False)


def _count_references(paper: FullPaper) -> str:
    if not paper.references:
        return "this page has no bibliography"
    resolved = sum(reference.arxiv_id is not None for reference in paper.references)
    return f"{number_of(len(paper.references), 'reference')}, {resolved} of them known to arXiv"


def _outline(paper: FullPaper) -> list[str]:
    """The section titles, indented by depth, each once."""
    from pipeline.text import visible

    titles = dict.fromkeys(
        passage.section_path[:depth]
        for passage in paper.passages
        for depth in range(1, len(passage.section_path) + 1)
    )
    return [f"{'  ' * len(path)}{visible(path[-1])}" for path in titles]


def _show_references(full_paper: FullPaper, *, as_json: bool) -> None:
    from rich.text import Text

    from pipeline.doors.cli.console import make_table, out, print_json
    from pipeline.text import visible

    if as_json:
        print_json([asdict(reference) for reference in full_paper.references])
        return
    if not full_paper.references:
        out.print(f"{full_paper.arxiv_id}: this page has no bibliography", highlight=False)
        return
    table = make_table(
        f"{number_of(len(full_paper.references), 'reference')} of {full_paper.arxiv_id}",
        ("arXiv", "year", "title"),
    )
    for reference in full_paper.references:
        year = str(reference.year or "")
        table.add_row(
            reference.arxiv_id or "", year, Text(visible(reference.title or reference.raw))
        )
    out.print(table)


def _show_citing_papers(arxiv_id: str, papers: Sequence[CitingPaper], *, as_json: bool) -> None:
    from rich.text import Text

    from pipeline.doors.cli.console import make_table, out, print_json
    from pipeline.text import visible

    if as_json:
        print_json([asdict(citing) for citing in papers])
        return
    heading = f"{arxiv_id}, cited by {number_of(len(papers), 'paper')}"
    table = make_table(heading, ("arXiv", "title", "passages"))
    for citing in papers:
        table.add_row(citing.arxiv_id, Text(visible(citing.title)), str(len(citing.passage_ids)))
    out.print(table)


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
    from rich.text import Text

    from pipeline.doors.cli.console import make_table, out, print_json, spinner
    from pipeline.index.output import place
    from pipeline.index.quotes import find_quote as find
    from pipeline.text import visible

    with spinner("searching"):
        sources = find(open_workspace(), quote, limit)
    if as_json:
        print_json([asdict(source) for source in sources])
        return 0
    if not sources:
        out.print("Nothing found.")
        return 0
    table = make_table(
        number_of(len(sources), "passage"), ("match", "passage", "text"), show_lines=True
    )
    for source in sources:
        similarity = "" if source.similarity is None else f"\n{source.similarity:.0%}"
        where = (
            f"{source.hit.title}\n{source.hit.arxiv_id} · {place(source.hit)} ·"
            f" #{source.hit.anchor}"
        )
        table.add_row(
            f"{source.match}{similarity}", Text(visible(where)), Text(visible(source.text))
        )
    out.print(table)
    return 0
