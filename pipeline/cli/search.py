"""The command `citeloom search`: papers or passages for a query, or for a file of queries."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipeline.cli.common import AsJson, open_workspace
from pipeline.errors import SettingError
from pipeline.text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from pipeline.engine.stage import Workspace
    from pipeline.index.output import Hit
    from pipeline.index.paper_results import PaperHit, SearchResults
    from pipeline.index.passage_results import PassageRanking
    from pipeline.index.search_options import SearchOptions

QueriesOption = Annotated[
    Path | None,
    typer.Option(
        help="File of queries, one on each line, to search for at once; - for standard input."
    ),
]
LimitOption = Annotated[
    int, typer.Option(metavar="N", min=1, max=1000, help="Most results for each query.")
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
    typer.Option(help="Only pages of this severity, such as no_problem; repeatable."),
]
GradeOption = Annotated[
    str | None, typer.Option(help="Only pages of this grade (A, B, C or D) or better.")
]
AuthorOption = Annotated[
    list[str] | None,
    typer.Option(help="Only papers of this author, by whole or family name; repeatable."),
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
RerankOption = Annotated[
    Literal["none", "colbert", "cross-encoder"],
    typer.Option(help="Rank the best candidates again with this model."),
]

Format = Literal["table", "json", "markdown", "bibtex"]

# Characters of a passage that a terminal shows; --json and --markdown print all of it.
_CHARACTERS_SHOWN = 360


def search(
    words: Annotated[
        str | None, typer.Argument(metavar="WORDS", help="What to search for, in words.")
    ] = None,
    queries: QueriesOption = None,
    limit: LimitOption = 10,
    offset: OffsetOption = 0,
    category: CategoryOption = None,
    kind: KindOption = None,
    severity: SeverityOption = None,
    grade: GradeOption = None,
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
    rerank: RerankOption = "none",
    passages: Annotated[
        bool, typer.Option("--passages", help="List passages, whatever their papers.")
    ] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Compare with every passage and with uncompressed vectors."),
    ] = False,
    as_typed: Annotated[
        bool, typer.Option("--as-typed", help="Do not correct misspelt words.")
    ] = False,
    show_all: Annotated[
        bool,
        typer.Option("--all", help="Show the nearest results also where they do not fit."),
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

    Each result is a paper with its two best passages. An arXiv id, a DOI, an address or the name of
    a method gives its paper first. Misspelt words are corrected by the words of the corpus, and a
    note says so; where nothing fits, the nearest papers are shown as such.

    Examples:
      citeloom search "reciprocal rank fusion" --limit 5
      citeloom search "graph neural networks" --category cs.LG --year 2024
      citeloom search arXiv:2404.90003
      citeloom search "decoding words" --passages
      citeloom search --like 2404.90003
    """
    form = _output_format(as_json=as_json, as_markdown=as_markdown, as_bibtex=as_bibtex)
    if passages and form == "bibtex":
        raise SettingError("--passages and --bibtex exclude each other: entries are of papers")
    if sum(source is not None for source in (words, queries, like)) != 1:
        raise SettingError(
            "give the words to search for, or --queries FILE, or --like ID, and only one of them"
        )

    from pipeline.index.search_options import SearchOptions, parse_years

    first_year, last_year = parse_years(year)
    options = SearchOptions(
        limit=limit,
        offset=offset,
        categories=category or (),
        kinds=kind or (),
        subsets=severity or (),
        worst_grade=grade,
        first_month=first,
        last_month=last,
        authors=author or (),
        venue=venue,
        first_year=first_year,
        last_year=last_year,
        by=by,
        rerank=rerank,
        exact=exact,
        as_typed=as_typed,
    ).checked()
    request = _Request(
        texts=[] if like is not None else _read_queries(words, queries),
        like=like,
        is_batch=queries is not None,
        options=options,
        show_all=show_all,
    )
    if passages:
        _show_passages(request, form)
    else:
        _show_papers(request, form)
    return 0


@dataclass(frozen=True, slots=True)
class _Request:
    """What to search for. texts: the queries; with `like`, none. is_batch: they are of a file."""

    texts: Sequence[str]
    like: str | None
    is_batch: bool
    options: SearchOptions
    show_all: bool


def _output_format(*, as_json: bool, as_markdown: bool, as_bibtex: bool) -> Format:
    chosen: list[Format] = []
    if as_json:
        chosen.append("json")
    if as_markdown:
        chosen.append("markdown")
    if as_bibtex:
        chosen.append("bibtex")
    if len(chosen) > 1:
        raise SettingError(f"--{chosen[0]} and --{chosen[1]} exclude each other: give one of them")
    return chosen[0] if chosen else "table"


def _show_papers(request: _Request, form: Format) -> None:
    from pipeline.cli.console import out, print_json, print_note, spinner

    with spinner("loading the model, searching"):
        from pipeline.index import output

        answers = _find_papers(open_workspace(), request)
    for answer in answers:
        if answer.note:
            print_note(f"{answer.query}: {answer.note}" if request.is_batch else answer.note)
        if answer.searched is not None and not request.is_batch:
            print_note("--as-typed searches for the words as you typed them")
    rows = [asdict(answer) for answer in answers]
    if form == "json":
        print_json(rows if request.is_batch else rows[0])
    elif form == "bibtex":
        typer.echo("\n\n".join(dict.fromkeys(hit.bibtex for answer in answers for hit in answer)))
    elif form == "markdown":
        typer.echo(output.papers_markdown(answers, headings=request.is_batch))
    else:
        for answer in answers:
            out.print(papers_listing(answer, with_query=request.is_batch))
            if answer.has_more and not request.is_batch:
                print_note(f"more papers fit: --offset {request.options.end}")


def _find_papers(workspace: Workspace, request: _Request) -> list[SearchResults]:
    from pipeline.index.paper_results import papers_like, search_papers

    if request.like is not None:
        return [
            papers_like(workspace, request.like, request.options, include_unfit=request.show_all)
        ]
    return search_papers(workspace, request.texts, request.options, include_unfit=request.show_all)


def _show_passages(request: _Request, form: Format) -> None:
    from pipeline.cli.console import out, print_json, print_note, spinner

    with spinner("loading the model, searching"):
        from pipeline.index import output
        from pipeline.index.output import Hit

        answers = _find_passages(open_workspace(), request)
    texts = request.texts or [answers[0].text]
    results = [
        [Hit.of(scored) for scored in answer.passages if request.show_all or scored.fits]
        for answer in answers
    ]
    for query, answer in zip(texts, answers, strict=True):
        if answer.note:
            print_note(f"{query}: {answer.note}" if request.is_batch else answer.note)
    number = request.options.offset + 1
    if form == "json" and request.is_batch:
        print_json(output.batch_rows(texts, results))
    elif form == "json":
        print_json(output.as_rows(results[0]))
    elif form == "markdown" and request.is_batch:
        typer.echo(output.batch_markdown(texts, results, number))
    elif form == "markdown":
        typer.echo(output.as_markdown(results[0], number))
    else:
        for query, hits in zip(texts, results, strict=True):
            out.print(search_table(hits, number, query if request.is_batch else None))
    unfit = sum(len(answer.passages) for answer in answers) - sum(map(len, results))
    if unfit:
        print_note(
            f"{unfit} passages are left out because they do not fit the query: --all shows them too"
        )


def _find_passages(workspace: Workspace, request: _Request) -> list[PassageRanking]:
    from pipeline.index.passage_results import passages_like, search_passages

    if request.like is not None:
        return [passages_like(workspace, request.like, request.options)]
    return search_passages(workspace, request.texts, request.options)


def _read_queries(words: str | None, file: Path | None) -> list[str]:
    """The one query of the arguments, or those of a file."""
    from pipeline.index.search_options import check_query, read_queries

    if words is not None:
        check_query(words)
        return [words]
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

    from pipeline.text import visible

    blocks: list[RenderableType] = []
    if with_query:
        blocks.append(Text(f"{one_line(visible(results.query))}:", style="bold"))
    if not results.papers:
        blocks.append(Text("Nothing found."))
    for number, paper in enumerate(results.papers, results.first):
        blocks.append(_paper_block(number, paper))
    return Group(*blocks)


def _paper_block(number: int, paper: PaperHit) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.style import Style
    from rich.text import Text

    from pipeline.index.output import facts_of, place
    from pipeline.text import visible

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
    """A passage as a terminal shows it: one line, cut between words."""
    from pipeline.corpus.parse.policies import without_known_markers
    from pipeline.text import visible

    line = one_line(visible(without_known_markers(text)))
    if len(line) <= _CHARACTERS_SHOWN:
        return line
    return f"{line[:_CHARACTERS_SHOWN].rsplit(' ', 1)[0]} …"


def search_table(hits: Sequence[Hit], first: int = 1, query: str | None = None) -> Table | str:
    """The hits of a query: number, score, paper, section and anchor, text.

    first: the number of the first hit. query: shown above the table; given if there are several
    queries.
    """
    from rich.markup import escape
    from rich.text import Text

    from pipeline.cli.console import make_table
    from pipeline.text import visible

    heading = "" if query is None else f"{escape(visible(query))}: "
    if not hits:
        return f"{heading}Nothing found."
    count = "1 passage" if len(hits) == 1 else f"{len(hits)} passages"
    table = make_table(f"{heading}{count}", (), show_lines=True)
    table.add_column("", justify="right")
    table.add_column("score", justify="right")
    table.add_column("paper", ratio=1)
    table.add_column("passage", ratio=2)
    for number, hit in enumerate(hits, first):
        fit = f"{hit.score:.3f}" if hit.relevance is None else f"{hit.score:.3f}\n{hit.relevance}"
        table.add_row(str(number), fit, _describe_paper(hit), Text(_shortened(hit.text)))
    return table


def _describe_paper(hit: Hit) -> Text:
    """The title, which a terminal may link to the passage, and the place in the paper."""
    from rich.style import Style
    from rich.text import Text

    from pipeline.index.output import place
    from pipeline.text import visible

    title = Text(visible(hit.title), style=Style(link=hit.passage_url))
    anchor = f" · #{hit.anchor}" if hit.anchor else ""
    return Text.assemble(title, "\n", (visible(f"{hit.arxiv_id} · {place(hit)}{anchor}"), "dim"))
