"""The commands `citeloom paper`, `references`, `cited-by` and `find-quote`: read the corpus and its citations."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.common import AsJson, open_workspace

if TYPE_CHECKING:
    from pipeline.index.papers import Paper

PaperArgument = Annotated[str, typer.Argument(metavar="ID", help="arXiv id, such as 2404.90003.")]


def paper(arxiv_id: PaperArgument, as_json: AsJson = False) -> int:
    """Show a paper of the corpus: front matter, outline, and how much it cites and is cited.

    Examples:
      citeloom paper 2404.90003
      citeloom paper 2404.90003 --json
    """
    from pipeline.cli.console import out, print_json
    from pipeline.index.answers import visible
    from pipeline.index.papers import read_citing_papers, read_paper

    root = open_workspace().root
    shown = read_paper(root, arxiv_id)
    if as_json:
        print_json(asdict(shown))
        return 0
    citing = read_citing_papers(root, shown.arxiv_id) if ":" not in shown.arxiv_id else []
    known = sum(reference.arxiv_id is not None for reference in shown.references)
    lines = [
        visible(shown.title),
        visible(", ".join(shown.authors)),
        f"{shown.arxiv_id} · {', '.join(shown.categories)} · {shown.url}",
        "",
        visible(shown.abstract),
        "",
        *_outline(shown),
        "",
        f"{len(shown.passages)} passages, {len(shown.references)} references, {known} of them known to arXiv; cited by "
        f"{len(citing)} papers of the corpus",
    ]
    for line in lines:
        out.print(line, markup=False, highlight=False)
    return 0


def _outline(paper: Paper) -> list[str]:
    """The section titles, indented by depth, each once."""
    from pipeline.index.answers import visible

    titles = dict.fromkeys(
        passage.section_path[:depth] for passage in paper.passages for depth in range(1, len(passage.section_path) + 1)
    )
    return [f"{'  ' * len(path)}{visible(path[-1])}" for path in titles]


def references(arxiv_id: PaperArgument, as_json: AsJson = False) -> int:
    """List the bibliography of a paper, with the arXiv ids of the papers that it cites.

    Examples:
      citeloom references 2404.90003
      citeloom references 2404.90003 --json
    """
    from rich.text import Text

    from pipeline.cli.console import make_table, out, print_json
    from pipeline.index.answers import visible
    from pipeline.index.papers import read_paper

    shown = read_paper(open_workspace().root, arxiv_id)
    if as_json:
        print_json([asdict(reference) for reference in shown.references])
        return 0
    table = make_table(f"{len(shown.references)} references of {shown.arxiv_id}", ("arXiv", "year", "title"))
    for reference in shown.references:
        year = str(reference.year or "")
        table.add_row(reference.arxiv_id or "", year, Text(visible(reference.title or reference.raw)))
    out.print(table)
    return 0


def cited_by(arxiv_id: PaperArgument, as_json: AsJson = False) -> int:
    """List the papers of the corpus that cite a paper, which need not be in the corpus itself.

    Examples:
      citeloom cited-by 2403.90001
      citeloom cited-by 1706.03762 --json
    """
    from rich.text import Text

    from pipeline.cli.console import make_table, out, print_json
    from pipeline.index.answers import visible
    from pipeline.index.papers import read_citing_papers

    papers = read_citing_papers(open_workspace().root, arxiv_id)
    if as_json:
        print_json([asdict(citing) for citing in papers])
        return 0
    table = make_table(f"{len(papers)} papers cite {arxiv_id}", ("arXiv", "title", "passages"))
    for citing in papers:
        table.add_row(citing.arxiv_id, Text(visible(citing.title)), str(len(citing.passage_ids)))
    out.print(table)
    return 0


def find_quote(
    quote: Annotated[str, typer.Argument(metavar="QUOTE", help="A sentence or a part of one, at least four words.")],
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=50, help="Most passages.")] = 5,
    as_json: AsJson = False,
) -> int:
    """Find the passage that a sentence or quote is from: exact words, then nearly the same, then the same meaning.

    Examples:
      citeloom find-quote "drafts related work one reference at a time"
      citeloom find-quote "removing the reflection raises the variance" --json
    """
    from rich.text import Text

    from pipeline.cli.console import make_table, out, print_json, spinner
    from pipeline.index.answers import place, visible
    from pipeline.index.quotes import find_quote as find

    with spinner("searching"):
        sources = find(open_workspace(), quote, limit)
    if as_json:
        print_json([asdict(source) for source in sources])
        return 0
    if not sources:
        out.print("Nothing found.")
        return 0
    table = make_table(f"{len(sources)} passages", ("match", "passage", "text"), show_lines=True)
    for source in sources:
        similarity = "" if source.similarity is None else f"\n{source.similarity:.0%}"
        where = f"{source.hit.title}\n{source.hit.arxiv_id} · {place(source.hit)} · #{source.hit.anchor}"
        table.add_row(f"{source.match}{similarity}", Text(visible(where)), Text(visible(source.text)))
    out.print(table)
    return 0
