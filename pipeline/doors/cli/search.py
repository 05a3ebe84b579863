"""The command `citeloom search`: papers or passages for a query, or for a file of queries."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipeline.doors.cli.common import AsJson, open_workspace
from pipeline.errors import SettingError
from pipeline.text import number_of, one_line, visible

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from pipeline.index.paper_results import PaperHit, SearchResults
    from pipeline.index.passage_results import PassageRanking
    from pipeline.index.scored import Hit
    from pipeline.index.search_options import SearchOptions

QueriesOption = Annotated[
    Path | None,
    typer.Option(
        help="File of queries, one on each line, to search for at once; - for standard input."
    ),
]
LimitOption = Annotated[
    int, typer.Option(metavar="N", min=1, max=1000, help="At most N results for each query.")
]
OffsetOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="Skip this many of the first results.")
]
CategoryOption = Annotated[
    list[str] | None,
    typer.Option(help="Only papers of this category (cs.CL) or archive (cs); repeatable."),
]
KindOption = Annotated[
    list[str] | None, typer.Option(help="Only passages of this kind, such as table; repeatable.")
]
SeverityOption = Annotated[
    list[str] | None,
    typer.Option(help="Only pages of this conversion severity, such as no_problem; repeatable."),
]
PageQualityOption = Annotated[
    str | None,
    typer.Option(
        "--page-quality", "--grade", help="Only pages of this quality (A, B, C or D) or better."
    ),
]
AuthorOption = Annotated[
    list[str] | None,
    typer.Option(help="Only papers of this author: D. Blei, David Blei or Blei; repeatable."),
]
VenueOption = Annotated[
    str, typer.Option(help="Only papers whose journal reference or comment has these words.")
]
YearOption = Annotated[
    str | None, typer.Option(metavar="YEAR", help="Only papers of this year, or of 2020..2023.")
]
LikeOption = Annotated[
    str | None,
    typer.Option(
        metavar="ID", help="Search for what is like this paper (arXiv id) or passage (its id)."
    ),
]
ByOption = Annotated[
    Literal["fused", "dense", "lexical", "sparse"],
    typer.Option(help="Vectors that rank; fused is dense and lexical."),
]

# Characters of a passage that a terminal shows; --json and --markdown print all of it.
_CHARACTERS_SHOWN = 360


def search(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS", help="What to search for, in words."),
    ] = None,
    queries: QueriesOption = None,
    limit: LimitOption = 10,
    offset: OffsetOption = 0,
    category: CategoryOption = None,
    kind: KindOption = None,
    severity: SeverityOption = None,
    page_quality: PageQualityOption = None,
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="MONTH", help="Only papers of this month or later."),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="MONTH", help="Only papers of this month or earlier."),
    ] = None,
    author: AuthorOption = None,
    venue: VenueOption = "",
    year: YearOption = None,
    like: LikeOption = None,
    by: ByOption = "fused",
    passages: Annotated[
        bool, typer.Option("--passages", help="List passages, whatever their papers.")
    ] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Compare with every passage and with uncompressed vectors."),
    ] = False,
    as_typed: Annotated[
        bool, typer.Option("--as-typed", help="Read no names and correct no misspelt words.")
    ] = False,
    as_bibtex: Annotated[
        bool, typer.Option("--bibtex", help="Print the BibTeX entries of the papers.")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown with links to the passages.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Find papers by meaning and by words, for a query, or like a paper or passage.

    Each result is a paper with its two best passages. An arXiv id, a DOI, an address or a
    title gives its paper first, the name of an author that author's papers. Misspelt words are
    corrected by the words of the corpus. A note says so, and where nothing fits well.

    Examples:
      citeloom search "reciprocal rank fusion" --limit 5
      citeloom search "graph neural networks" --category cs.LG --year 2024
      citeloom search arXiv:2404.90003
      citeloom search "decoding words" --passages
      citeloom search --like 2404.90003
    """
    flags = {"json": as_json, "markdown": as_markdown, "bibtex": as_bibtex}
    forms = [name for name, is_set in flags.items() if is_set]
    if len(forms) > 1:
        raise SettingError(f"--{forms[0]} and --{forms[1]} exclude each other: give one of them")
    form = forms[0] if forms else "table"
    if passages and as_bibtex:
        raise SettingError("--passages and --bibtex exclude each other: entries are of papers")
    if sum(source is not None for source in (words, queries, like)) != 1:
        raise SettingError(
            "give the words to search for, or --queries FILE, or --like ID, and only one of them"
        )

    from pipeline.doors.cli.console import print_note
    from pipeline.index.search_options import SearchOptions, parse_years

    first_year, last_year = parse_years(year)
    options = SearchOptions(
        limit=limit,
        offset=offset,
        categories=category or (),
        kinds=kind or (),
        severities=severity or (),
        worst_quality=page_quality,
        first_month=first,
        last_month=last,
        authors=author or (),
        venue=venue,
        first_year=first_year,
        last_year=last_year,
        by=by,
        exact=exact,
        as_typed=as_typed,
    ).checked()
    is_batch = queries is not None
    texts = [like] if like is not None else _read_queries(words, queries)
    if passages:
        rankings = _find_passages(texts, like, options)
        _print_notes(texts, [ranking.hits.note for ranking in rankings], is_batch=is_batch)
        hits = [ranking.hits for ranking in rankings]
        _print_passages(texts, hits, form, options.offset + 1, is_batch=is_batch)
        return 0
    answers = _find_papers(texts, like, options)
    _print_notes(texts, [answer.note for answer in answers], is_batch=is_batch)
    if answers[0].searched is not None and not is_batch:
        print_note("--as-typed searches for the words as you typed them")
    _print_papers(answers, form, is_batch=is_batch)
    if form == "table" and answers[0].has_more and not is_batch:
        print_note(f"more papers: --offset {options.end}")
    return 0


def _find_papers(
    texts: Sequence[str], like: str | None, options: SearchOptions
) -> list[SearchResults]:
    from pipeline.doors.cli.console import spinner

    with spinner("loading the model, searching"):
        from pipeline.index.paper_results import papers_like, search_papers

        workspace = open_workspace()
        if like is not None:
            return [papers_like(workspace, like, options)]
        return search_papers(workspace, texts, options)


def _find_passages(
    texts: Sequence[str], like: str | None, options: SearchOptions
) -> list[PassageRanking]:
    from pipeline.doors.cli.console import spinner

    with spinner("loading the model, searching"):
        from pipeline.index.passage_results import passages_like, search_passages

        workspace = open_workspace()
        if like is not None:
            return [passages_like(workspace, like, options)]
        return search_passages(workspace, texts, options)


def _print_notes(texts: Sequence[str], notes: Sequence[str], *, is_batch: bool) -> None:
    from pipeline.doors.cli.console import print_note
    from pipeline.ops.run_months import loading_note

    loading = loading_note(open_workspace())
    if loading:
        print_note(loading)
    for text, note in zip(texts, notes, strict=True):
        if note:
            print_note(f"{text}: {note}" if is_batch else note)


def _print_papers(answers: Sequence[SearchResults], form: str, *, is_batch: bool) -> None:
    from pipeline.corpus.citation_formats import bibtex_of
    from pipeline.doors.cli.console import out, print_json
    from pipeline.index.output import papers_markdown

    if form == "json":
        rows = [asdict(answer) for answer in answers]
        print_json(rows if is_batch else rows[0])
    elif form == "bibtex":
        typer.echo(bibtex_of([hit.paper for answer in answers for hit in answer]))
    elif form == "markdown":
        typer.echo(papers_markdown(answers, headings=is_batch))
    else:
        for answer in answers:
            out.print(papers_listing(answer, with_query=is_batch))


def _print_passages(
    texts: Sequence[str],
    answers: Sequence[Sequence[Hit]],
    form: str,
    first: int,
    *,
    is_batch: bool,
) -> None:
    """first: the number of the first hit."""
    from pipeline.doors.cli.console import out, print_json
    from pipeline.index import output

    if form == "json":
        rows = output.batch_rows(texts, answers)
        print_json(rows if is_batch else rows[0]["hits"])
    elif form == "markdown" and is_batch:
        typer.echo(output.batch_markdown(texts, answers, first))
    elif form == "markdown":
        typer.echo(output.as_markdown(answers[0], first))
    else:
        for text, hits in zip(texts, answers, strict=True):
            out.print(search_table(hits, first, text if is_batch else None))


def _read_queries(words: Sequence[str] | None, file: Path | None) -> list[str]:
    """The one query of the arguments, or those of a file."""
    from pipeline.index.search_options import check_query, read_queries

    if words is not None:
        query = " ".join(words)
        check_query(query)
        return [query]
    if str(file) == "-":
        return read_queries(sys.stdin.buffer.read(), "-")
    try:
        content = Path(file or "").read_bytes()
    except OSError as error:
        raise SettingError(
            f"--queries {file} cannot be read ({error.strerror}): give a file of queries"
        ) from error
    return read_queries(content, str(file))


def papers_listing(results: SearchResults, *, with_query: bool = False) -> RenderableType:
    """The papers of a page: number, title, authors, facts, abstract, and passages with places.

    with_query: the query stands above them.
    """
    from rich.console import Group
    from rich.text import Text

    blocks: list[RenderableType] = []
    if with_query:
        blocks.append(Text(f"{one_line(visible(results.query))}:", style="bold"))
    if not results.papers:
        blocks.append(Text("Nothing found." if results.first == 1 else "No more papers."))
    for number, paper in enumerate(results.papers, results.first):
        blocks.append(_paper_block(number, paper))
    return Group(*blocks)


def _paper_block(number: int, paper: PaperHit) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.style import Style
    from rich.text import Text

    from pipeline.index.output import facts_of, place

    indent = len(f"{number}. ")
    title = Text.assemble(f"{number}. ", (visible(paper.title), Style(bold=True, link=paper.url)))
    lines: list[RenderableType] = [Text(visible(facts_of(paper)), style="dim")]
    if paper.abstract:
        lines.append(Text(one_line(visible(paper.abstract))))
    for passage in paper.passages:
        anchor = f" #{passage.anchor}" if passage.anchor else ""
        where = Text(
            visible(f"{place(passage)}{anchor}: "), style=Style(link=passage.passage_url, dim=True)
        )
        lines.append(Padding(Text.assemble(where, _shortened(passage.excerpt)), (0, 0, 0, 2)))
    return Group(title, Padding(Group(*lines), (0, 0, 1, indent)))


def _shortened(text: str) -> str:
    """A passage as a terminal shows it, cut between words: prose on one line, each row of a table
    on one of its own.
    """
    from pipeline.corpus.parse.policies import without_known_markers

    blocks = groupby(
        visible(without_known_markers(text)).splitlines(), lambda line: line.startswith("|")
    )
    lines: list[str] = []
    for is_table, block in blocks:
        if is_table:
            rows = (row for row in block if not set(row) <= set("|-: "))
            lines += [one_line(row.removeprefix("|").removesuffix("|")) for row in rows]
        else:
            lines.append(one_line(" ".join(block)))
    whole = "\n".join(lines)
    if len(whole) <= _CHARACTERS_SHOWN:
        return whole
    return f"{whole[:_CHARACTERS_SHOWN].rsplit(' ', 1)[0]} …"


def search_table(hits: Sequence[Hit], first: int = 1, query: str | None = None) -> Table | str:
    """The hits of a query: number, score, paper, section and anchor, text.

    first: the number of the first hit. query: shown above the table; given if there are several
    queries.
    """
    from rich.markup import escape
    from rich.text import Text

    from pipeline.doors.cli.console import make_table

    heading = "" if query is None else f"{escape(visible(query))}: "
    if not hits:
        return f"{heading}Nothing found."
    count = number_of(len(hits), "passage")
    table = make_table(f"{heading}{count}", (), show_lines=True)
    table.add_column("", justify="right")
    table.add_column("score", justify="right")
    table.add_column("paper", ratio=1)
    table.add_column("passage", ratio=2)
    for number, hit in enumerate(hits, first):
        score = f"{hit.score:.3f}"
        table.add_row(str(number), score, _describe_paper(hit), Text(_shortened(hit.text)))
    return table


def _describe_paper(hit: Hit) -> Text:
    """The title, which a terminal may link to the passage, and the place in the paper."""
    from rich.style import Style
    from rich.text import Text

    from pipeline.index.output import place

    title = Text(visible(hit.title), style=Style(link=hit.passage_url))
    anchor = f" · #{hit.anchor}" if hit.anchor else ""
    return Text.assemble(title, "\n", (visible(f"{hit.arxiv_id} · {place(hit)}{anchor}"), "dim"))
