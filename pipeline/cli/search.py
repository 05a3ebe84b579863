"""The command `citeloom search`: passages for a query, or for a file of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipeline.cli.options import AsJson
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import load_settings

if TYPE_CHECKING:
    from pipeline.index.search import Hit

QueriesOption = Annotated[
    Path | None, typer.Option(help="File of queries, one on each line, to ask at once; - for standard input.")
]
LimitOption = Annotated[int, typer.Option(min=1, max=1000, help="Results at most, for each query.")]
OffsetOption = Annotated[int, typer.Option(min=0, help="Leave out this many results that come first.")]
CategoryOption = Annotated[
    list[str] | None, typer.Option(help="Only papers of this category (cs.CL) or archive (cs); once for each.")
]
KindOption = Annotated[list[str] | None, typer.Option(help="Only passages of this kind, such as table; once for each.")]
SeverityOption = Annotated[
    list[str] | None, typer.Option(help="Only pages of this severity, such as no_problem; once for each.")
]
GradeOption = Annotated[str | None, typer.Option(help="Only pages of this grade (A, B, C or D) or better.")]
ByOption = Annotated[Literal["fused", "dense", "sparse"], typer.Option(help="Which vectors rank.")]
RerankOption = Annotated[
    Literal["none", "colbert", "cross-encoder"], typer.Option(help="What ranks the best candidates again.")
]


def search(
    words: Annotated[str | None, typer.Argument(help="What to look for, in words.")] = None,
    queries: QueriesOption = None,
    limit: LimitOption = 10,
    offset: OffsetOption = 0,
    category: CategoryOption = None,
    kind: KindOption = None,
    severity: SeverityOption = None,
    grade: GradeOption = None,
    first: Annotated[str | None, typer.Option("--from", help="Only papers of this month or later.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Only papers of this month or earlier.")] = None,
    by: ByOption = "fused",
    rerank: RerankOption = "none",
    per_paper: Annotated[bool, typer.Option("--per-paper", help="Only the best passage of each paper.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Compare with every passage, uncompressed.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown with links to the passages.")] = False,
    as_json: AsJson = False,
) -> int:
    """Find passages: dense and sparse vectors, fused; ranked again where asked."""
    from pipeline.cli.console import waiting
    from pipeline.index.asked import Asked

    if as_json and as_markdown:
        raise SettingError("--json and --markdown exclude each other: give one of them")
    asked = Asked(
        limit=limit, offset=offset, categories=category or (), kinds=kind or (), subsets=severity or (),
        worst_grade=grade, first_month=first, last_month=last, by=by, rerank=rerank, per_paper=per_paper, exact=exact,
    ).checked()  # fmt: skip
    wanted = _queries(words, queries)
    with waiting("loading the model, searching"):
        from pipeline.index.search import ask

        answers = ask(Workspace(load_settings()), wanted, asked)
    _show_answers(None if queries is None else wanted, answers, offset + 1, as_json=as_json, as_markdown=as_markdown)
    return 0


def _queries(words: str | None, file: Path | None) -> list[str]:
    """The one query of the arguments, or those of a file."""
    from pipeline.index.asked import check_query, read_queries

    if (words is None) == (file is None):
        raise SettingError("give the words to search for, or --queries FILE, and not both")
    if words is None:
        return read_queries(sys.stdin.buffer.read() if str(file) == "-" else _content(file), str(file))
    check_query(words)
    return [words]


def _content(file: Path | None) -> bytes:
    try:
        return Path(file or "").read_bytes()
    except OSError as error:
        raise SettingError(f"--queries {file} cannot be read ({error.strerror}): give a file of queries") from error


def _show_answers(
    queries: list[str] | None, answers: list[list[Hit]], first: int, *, as_json: bool, as_markdown: bool
) -> None:
    """Each query's hits, under the query where there is a file of them; first: the number of the first hit."""
    from pipeline.cli.console import out, print_json, search_table
    from pipeline.index import answers as told

    if as_json:
        print_json(told.as_rows(answers[0]) if queries is None else told.batch_rows(queries, answers))
    elif as_markdown:
        typer.echo(
            told.as_markdown(answers[0], first) if queries is None else told.batch_markdown(queries, answers, first)
        )
    else:
        for number, hits in enumerate(answers):
            out.print(search_table(hits, first, None if queries is None else queries[number]))
