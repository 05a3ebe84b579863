"""The commands `citeloom papers`, `paper` and `find-quote`: read the corpus and its citations."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pipeline.doors.cli.common import AsBibtex, AsCsl, AsJson, AsRis, only_one, open_workspace

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
    as_bibtex: AsBibtex = False,
    as_ris: AsRis = False,
    as_csl: AsCsl = False,
    as_json: AsJson = False,
) -> int:
    """List the papers of the corpus, or find them by title, author and year; newest months first.

    Examples:
      citeloom papers
      citeloom papers --title "related work" --author lovelace
      citeloom papers --year 2024 --ris
    """
    form = only_one(bibtex=as_bibtex, ris=as_ris, csl=as_csl, json=as_json)

    from pipeline import tables
    from pipeline.doors.cli.console import print_note, print_noun
    from pipeline.doors.papers import list_papers

    workspace = open_workspace()
    listing = list_papers(workspace, title, author, year, limit)
    print_noun(listing, form)
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
    section: Annotated[
        str, typer.Option(metavar="NAME", help="Print a section, by its title or number (4.2).")
    ] = "",
    as_bibtex: AsBibtex = False,
    as_ris: AsRis = False,
    as_csl: AsCsl = False,
    as_json: AsJson = False,
) -> int:
    """Show a paper of the corpus: front matter and outline, a section, what it cites and what cites
    it.

    Examples:
      citeloom paper 2404.90003 --section introduction
      citeloom paper 2404.90003 --references --ris
      citeloom paper 1706.03762 --cited-by --json
    """
    only_one(references=references, cited_by=cited_by, section=section)
    # A section is printed as text or JSON; it has no entries.
    as_text = section and not as_json
    form = only_one(section=as_text, bibtex=as_bibtex, ris=as_ris, csl=as_csl, json=as_json)

    from pipeline.corpus.references.citation_index import read_citing_papers
    from pipeline.doors.cli.console import print_noun
    from pipeline.doors.papers import read_section
    from pipeline.doors.present import as_markdown
    from pipeline.index.papers import read_paper
    from pipeline.text import visible

    workspace = open_workspace()
    noun: Any = (read_citing_papers if cited_by else read_paper)(workspace, arxiv_id)
    if references:
        noun = noun.references
    elif section:
        noun = read_section(noun, section)
    if form == "section":
        # Not formatted on a terminal: that would drop signs of formulas.
        print(visible(as_markdown(noun)))
    else:
        print_noun(noun, form)
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
    print_noun(results, "json" if as_json else "")
    return 0
