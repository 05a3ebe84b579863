"""The command `citeloom search`: passages for a query, or for a file of queries."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipeline.cli.common import AsJson, open_workspace
from pipeline.errors import SettingError
from pipeline.text import one_line

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from pipeline.index.output import Hit

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
    typer.Option(help="Vectors that rank the passages; fused is dense and lexical."),
]
RerankOption = Annotated[
    Literal["none", "colbert", "cross-encoder"],
    typer.Option(help="Rank the best candidates again with this model."),
]

# Characters of a passage that a table shows; --json and --markdown print all of it.
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
    per_paper: Annotated[
        bool, typer.Option("--per-paper", help="Only the best passage of each paper.")
    ] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Compare with every passage and with uncompressed vectors."),
    ] = False,
    show_all: Annotated[
        bool,
        typer.Option(
            "--all", help="Show the nearest passages also where they do not fit the query."
        ),
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown with links to the passages.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Find passages by meaning and by words, for a query, or like a paper or passage.

    An arXiv id, a DOI or an address gives its paper's abstract first, and then what is similar.
    Misspelt words are corrected by the words of the corpus, and a note says so.

    Examples:
      citeloom search "reciprocal rank fusion" --limit 5
      citeloom search "graph neural networks" --category cs.LG --year 2024
      citeloom search arXiv:2404.90003
      citeloom search --like 2404.90003 --per-paper
    """
    if as_json and as_markdown:
        raise SettingError("--json and --markdown exclude each other: give one of them")
    if sum(source is not None for source in (words, queries, like)) != 1:
        raise SettingError(
            "give the words to search for, or --queries FILE, or --like ID, and only one of them"
        )

    from pipeline.cli.console import out, print_json, print_note, spinner
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
        per_paper=per_paper,
        exact=exact,
    ).checked()
    texts = [] if like is not None else _read_queries(words, queries)
    with spinner("loading the model, searching"):
        from pipeline.index import output
        from pipeline.index.output import Hit
        from pipeline.index.search import search_many
        from pipeline.index.typed_queries import TypedResults, search_typed

        workspace = open_workspace()
        if like is not None:
            from pipeline.index.papers import read_like

            text, paper = read_like(workspace, like)
            texts, options = [text], replace(options, without_papers=(paper,))
            answers = [TypedResults(text, search_many(workspace, texts, options)[0])]
        else:
            answers = search_typed(workspace, texts, options)
    results = [
        [Hit.of(scored) for scored in answer.passages if show_all or scored.fits]
        for answer in answers
    ]
    unfit = sum(len(answer.passages) for answer in answers) - sum(map(len, results))
    is_batch = queries is not None
    for query, answer in zip(texts, answers, strict=True):
        if answer.note:
            print_note(f"{query}: {answer.note}" if is_batch else answer.note)
    if as_json:
        print_json(output.batch_rows(texts, results) if is_batch else output.as_rows(results[0]))
    elif as_markdown:
        number = offset + 1
        markdown = (
            output.batch_markdown(texts, results, number)
            if is_batch
            else output.as_markdown(results[0], number)
        )
        typer.echo(markdown)
    else:
        for query, hits in zip(texts, results, strict=True):
            out.print(search_table(hits, offset + 1, query if is_batch else None))
    if unfit:
        print_note(
            f"{unfit} passages are left out because they do not fit the query: --all shows them too"
        )
    return 0


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


def search_table(hits: Sequence[Hit], first: int = 1, query: str | None = None) -> Table | str:
    """The hits of a query: number, score, paper, section and anchor, text.

    first: the number of the first hit. query: shown above the table; given if there are several
    queries.
    """
    from rich.markup import escape
    from rich.text import Text

    from pipeline.cli.console import make_table
    from pipeline.corpus.parse.policies import without_known_markers
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
        text = one_line(visible(without_known_markers(hit.text)))
        if len(text) > _CHARACTERS_SHOWN:
            text = f"{text[:_CHARACTERS_SHOWN].rsplit(' ', 1)[0]} …"
        fit = f"{hit.score:.3f}" if hit.relevance is None else f"{hit.score:.3f}\n{hit.relevance}"
        table.add_row(str(number), fit, _describe_paper(hit), Text(text))
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
