"""The command `citeloom search`: papers or passages for a query, or for a file of queries."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipeline.doors.cli.common import AsBibtex, AsCsl, AsJson, AsRis, only_one, open_workspace
from pipeline.errors import SettingError

if TYPE_CHECKING:
    from pipeline.corpus.nouns import Results
    from pipeline.doors.search import Of

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
    as_bibtex: AsBibtex = False,
    as_ris: AsRis = False,
    as_csl: AsCsl = False,
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
    form = only_one(json=as_json, markdown=as_markdown, bibtex=as_bibtex, ris=as_ris, csl=as_csl)
    if sum(source is not None for source in (words, queries, like)) != 1:
        raise SettingError(
            "give the words to search for, or --queries FILE, or --like ID, and only one of them"
        )

    from pipeline.doors.cli.console import print_markdown, print_note, print_noun, spinner
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
    texts = [] if like is not None else _read_queries(words, queries)
    of: Of = "passages" if passages else "papers"
    with spinner("loading the model, searching"):
        from pipeline.doors.search import search as find
        from pipeline.doors.search import search_like
        from pipeline.ops.run_months import loading_note

        workspace = open_workspace()
        if like is not None:
            pages = [search_like(workspace, like, options, of)]
        else:
            pages = find(workspace, texts, options, of)
    # Markdown has the notes itself.
    notes = [] if form in ("", "markdown") else [page.note for page in pages]
    if pages[0].searched is not None and not is_batch:
        notes.append("--as-typed searches for the words as you typed them")
    print_note(loading_note(workspace), *notes)
    if form == "json":
        print_noun(pages if is_batch else pages[0], form)
    elif form == "markdown":
        typer.echo(_markdown(pages, is_batch=is_batch))
    elif form:
        print_noun(chain.from_iterable(pages), form)
    else:
        print_markdown(_markdown(pages, is_batch=is_batch))
        if pages[0].has_more and not is_batch:
            print_note(f"more {of}: --offset {options.end}")
    return 0


def _markdown(pages: Sequence[Results], *, is_batch: bool) -> str:
    """The hits of each page; those of a file of queries under headings."""
    from pipeline.doors.present import as_markdown, escaped

    if not is_batch:
        return as_markdown(pages[0])
    return "\n\n".join(f"## {escaped(page.query)}\n\n{as_markdown(page)}" for page in pages)


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
