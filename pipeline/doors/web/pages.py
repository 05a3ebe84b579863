"""The pages: search, paper, question, corpus and reports; and passages as HTML, with
formulas, links to the bibliography, tables and marked sentences.

Every text of a paper is escaped: all elements are written here or by `render_formulas`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from pipeline.corpus.citation_formats import CITATION_FORMATS, entries_of
from pipeline.corpus.nouns import Answer, Claim, Hit, Passage
from pipeline.corpus.parse.policies import CITATION_MARKER, cited_keys, with_printed_citations
from pipeline.corpus.references.citation_index import read_citing_papers
from pipeline.doors.papers import (
    outside_paper,
    papers_citing_the_same,
    read_quality,
    similar_papers,
)
from pipeline.doors.present import (
    CELL_BORDER,
    answer_notes,
    author_line,
    cost_line,
    first_sentences,
)
from pipeline.doors.web.forms import (
    AddressForm,
    ListingForm,
    SearchForm,
    run_paper_listing,
    run_search,
)
from pipeline.doors.web.guard import Problem, problem_of, report_policy
from pipeline.doors.web.same_origin import is_cross_site
from pipeline.doors.web.site import LiveAnswer, Site, asks_model
from pipeline.errors import CiteloomError, MissingInput
from pipeline.identity.months import month_name
from pipeline.index.papers import read_paper
from pipeline.report import publish as reports
from pipeline.report import rendering
from pipeline.settings import SUBSETS
from pipeline.tables import GRADES

TEMPLATES = Path(__file__).parent / "templates"
_KINDS = (
    "front_matter",
    "abstract",
    "paragraph",
    "list",
    "table",
    "caption",
    "theorem",
    "algorithm",
)
# In bytes, as file systems limit names; a question's page has 130 at most.
_LONGEST_NAME = 250
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".json": "application/json",
}
# As the templates of the reports, base.html.j2 and parts.html.j2, write them.
_LINK_TO_ARXIV = re.compile(
    r'<a class="id" href="https://arxiv\.org/abs/([^"]+)" rel="noreferrer">'
)
_SAMPLE_PAPER = re.compile(r'<span class="id">(\d{4}\.\d{5})</span>')
_TABLE_RULE = re.compile(r"\|?(?:\s*:?-{3,}:?\s*\|)+\s*")
_MOST_ROWS = 400


@cache
def _environment() -> Environment:
    environment = rendering.environment_with_filters(TEMPLATES, rendering.TEMPLATES)
    environment.globals.update(
        kind_choices=[(kind, kind.replace("_", " ")) for kind in _KINDS],
        grade_choices=[(grade, f"{grade} or better") for grade in GRADES],
        severity_choices=[(subset, subset.replace("_", " ")) for subset in SUBSETS],
        notes=answer_notes,
        cost=cost_line,
        author_line=author_line,
        claims_by_passage=claims_by_passage,
        render_passage=render_passage,
        render_inline=render_inline,
        paper_path=paper_path,
        search_path=search_path,
        citation_formats=CITATION_FORMATS,
        entries_of=entries_of,
        first_sentences=first_sentences,
    )
    return environment


def style_sheet() -> str:
    """The style sheet of reports, followed by that of these pages."""
    files = (rendering.TEMPLATES / "style.css", TEMPLATES / "serve.css")
    return "\n".join(file.read_text() for file in files)


def paper_path(arxiv_id: str) -> str:
    """The address of a paper's page here."""
    return f"/paper/{quote(arxiv_id)}"


def search_path(form: AddressForm, path: str = "/search", **changes: Any) -> str:
    """The address of a form with some changes. path: of its page."""
    pairs = form.model_copy(update=changes).pairs()
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _page(template: str, request: Request, status: int = 200, **values: Any) -> HTMLResponse:
    html = _environment().get_template(template).render(**_layout_values(request), **values)
    return HTMLResponse(html, status)


def _layout_values(request: Request) -> dict[str, Any]:
    """Values of the layout: the page's address, and whether there are reports."""
    site: Site = request.app.state.site
    return {"path": request.url.path, "has_reports": site.has_reports()}


def problem_page(request: Request, problem: Problem) -> Response:
    """An error as a page."""
    response = _page("problem.html.j2", request, problem.status, problem=problem)
    response.headers.update(problem.headers)
    return response


def results_page(site: Site, request: Request) -> Response:
    """The page of papers or of passages; without a query, the form and what the corpus holds."""
    path = request.url.path if request.url.path != "/" else "/search"
    pairs = request.query_params.multi_items()
    form = SearchForm.read(pairs)
    if any(not value.strip() for _, value in pairs):  # a form sends its empty fields too
        return RedirectResponse(search_path(form, path), 303)
    results, problem = None, None
    if form.q:
        try:
            results = run_search(site, form, "passages" if path == "/passages" else "papers")
        except CiteloomError as error:
            problem = problem_of(error, site.workspace)
    # (Name, value, address without it) of each filter.
    removable = []
    form_pairs = [pair for pair in form.pairs() if pair[0] != "page"]
    for name, value in form.filters:
        others = [pair for pair in form_pairs if pair != (name, value)]
        removable.append((name, value, f"{path}?{urlencode(others)}"))
    response = _page(
        "results.html.j2",
        request,
        problem.status if problem else 200,
        form=form,
        action=path,
        results=results,
        problem=problem,
        removable=removable,
        month_choices=[(month, month_name(month)) for month in site.months()],
        loading=site.loading(),
    )
    response.headers.update(problem.headers if problem else {})
    return response


def papers_page(site: Site, request: Request) -> Response:
    """The list of the corpus's papers."""
    form = ListingForm.of(request)
    listing = run_paper_listing(site, form)
    corpus = site.overview()
    return _page("papers.html.j2", request, form=form, listing=listing, corpus=corpus)


def paper_page(site: Site, request: Request) -> Response:
    """The page of a paper, or of one outside of the corpus with the papers that cite it."""
    workspace, identifier = site.workspace, request.path_params["id"]
    try:
        paper = read_paper(workspace, identifier)
    except MissingInput:
        outside = outside_paper(workspace, identifier)
        if outside is None:
            raise
        other, citing = outside
        status = 200 if citing else 404
        return _page("outside_paper.html.j2", request, status, paper=other, citing=citing)
    similar: list[Hit] = []
    notice = ""
    try:
        similar = similar_papers(workspace, paper.arxiv_id)
    except CiteloomError as error:
        notice = problem_of(error, workspace).detail
    with workspace.read_cache():
        return _page(
            "paper.html.j2",
            request,
            paper=paper,
            citing=read_citing_papers(workspace, paper.arxiv_id),
            citing_the_same=papers_citing_the_same(workspace, paper),
            quality=read_quality(workspace.root, paper),
            similar=similar,
            notice=notice,
            numbers={item.key: number for number, item in enumerate(paper.references, 1)},
        )


def ask_page(site: Site, request: Request) -> Response:
    """The page of a question, sent piece by piece while it is answered.

    A link must not spend tokens: where a model answers, the question of a link is only filled in.
    """
    question = request.query_params.get("q", "").strip()
    by_post = asks_model(site)
    live = None
    is_asked = request.method == ("POST" if by_post else "GET")
    if question and is_asked and not is_cross_site(request.headers):
        live = LiveAnswer(site, question)
    template = _environment().get_template("ask.html.j2")
    pieces = template.generate(
        **_layout_values(request),
        question=question,
        by_post=by_post,
        live=live,
        problem_of=problem_of,
        site=site,
        loading=site.loading(),
    )
    return StreamingResponse(_filled(pieces), media_type="text/html; charset=utf-8")


def _filled(pieces: Iterator[str]) -> Iterator[str]:
    """The pieces of a page, joined up to the end of each line."""
    waiting: list[str] = []
    for piece in pieces:
        waiting.append(piece)
        if piece.endswith("\n"):
            yield "".join(waiting)
            waiting.clear()
    yield "".join(waiting)


def corpus_page(site: Site, request: Request) -> Response:
    """The page of all months."""
    return _page("corpus.html.j2", request, corpus=site.overview())


def report_file(site: Site, request: Request) -> Response:
    """A file of a report. Raises HTTPException if there is none of this name."""
    name = request.path_params["file"]
    parts = name.split("/")
    if parts[-1] == "":
        parts[-1] = "index.html"
    file: Any = site.workspace.root.path / reports.FOLDER
    for part in parts:
        if not part or part.startswith(".") or "\\" in part or "\0" in part:
            raise HTTPException(404, "there is no such report")
        file = file / part
    media_type = _MEDIA_TYPES.get(Path(parts[-1]).suffix)
    if media_type is None or len(name.encode()) > _LONGEST_NAME or not file.is_file():
        raise HTTPException(404, "there is no such report: run citeloom run --until report")
    content = file.read_bytes()
    if media_type == _MEDIA_TYPES[".html"]:
        content = _with_links_of_site(content.decode(), request).encode()
    return Response(
        content,
        headers={"Content-Type": media_type, "Content-Security-Policy": report_policy()},
    )


def _with_links_of_site(report: str, request: Request) -> str:
    """A page of a report with this site's header and links to its pages of papers."""
    header = _environment().get_template("header.html.j2").render(_layout_values(request))
    report = report.replace("<header>", f'<header class="site">{header}', 1)
    report = _LINK_TO_ARXIV.sub(r'<a class="id" href="/paper/\1">', report)
    return _SAMPLE_PAPER.sub(r'<a class="id" href="/paper/\1">\1</a>', report)


def claims_by_passage(answer: Answer) -> list[tuple[Passage, list[Claim]]]:
    """Each passage that claims rest on, once, with these claims; in the order of the first."""
    claims: dict[str, list[Claim]] = {}
    for claim in answer.claims:
        claims.setdefault(claim.passage_id, []).append(claim)
    return [(answer.passages[passage_id], of_passage) for passage_id, of_passage in claims.items()]


def render_passage(
    text: str, kind: str, *, marked: Sequence[str] = (), numbers: Mapping[str, int] | None = None
) -> Markup:
    """A passage as block elements.

    marked: parts of the text to highlight. numbers: key of a bibliography item → its number in the
    list below, to which citations link.
    """
    blocks: list[Markup] = []
    for is_table, group in groupby(text.split("\n"), lambda line: line.startswith("|")):
        lines = list(group)
        words = "\n".join(lines).strip()
        if is_table:
            blocks.append(_table(lines, numbers))
        elif words:
            blocks.append(Markup("<p>%s</p>") % render_inline(words, marked, numbers))
    shown = kind.replace("_", "-"), Markup("").join(blocks)
    return Markup('<div class="text %s">%s</div>') % shown


def render_inline(
    text: str, marked: Sequence[str] = (), numbers: Mapping[str, int] | None = None
) -> Markup:
    """A text without block elements. marked, numbers: as for `render_passage`."""
    parts: list[Markup] = []
    end = 0
    for start, after in sorted(filter(None, (_find_words(text, words) for words in marked))):
        if start >= end:
            parts.append(_cited(text[end:start], numbers))
            parts.append(Markup("<mark>%s</mark>") % _cited(text[start:after], numbers))
            end = after
    return Markup("").join([*parts, _cited(text[end:], numbers)])


def _find_words(text: str, words: str) -> tuple[int, int] | None:
    """Where the words stand in a text, with any white space between them: a quote of two sentences
    may cross a border of paragraphs.
    """
    # To compile a pattern takes longer than these.
    start = text.find(words)
    if start >= 0:
        return start, start + len(words)
    if not all(word in text for word in words.split()):
        return None
    match = re.search(r"\s+".join(map(re.escape, words.split())), text)
    return match.span() if match else None


def _cited(text: str, numbers: Mapping[str, int] | None) -> Markup:
    """A text whose citation markers are links; those of unknown items are numbers alone."""
    parts: list[Markup] = []
    end = 0
    for marker in CITATION_MARKER.finditer(text):
        parts.append(rendering.render_formulas(text[end : marker.start()]))
        links = [
            Markup('<a href="#ref-%s">%s</a>') % (numbers[key], numbers[key])
            for key in cited_keys(marker[0])
            if numbers and key in numbers
        ]
        linked = Markup("[%s]") % Markup(", ").join(links)
        shown = linked if links else with_printed_citations(marker[0])
        parts.append(Markup('<span class="cite">%s</span>') % shown)
        end = marker.end()
    return Markup("").join([*parts, rendering.render_formulas(text[end:])])


def _table(lines: Sequence[str], numbers: Mapping[str, int] | None) -> Markup:
    """The rows of a Markdown table, of which the first is the head where a rule follows it."""
    rows = [
        [cell.strip().replace("\\|", "|") for cell in CELL_BORDER.split(line.strip().strip("|"))]
        for line in lines
        if not _TABLE_RULE.fullmatch(line)
    ][:_MOST_ROWS]
    head: list[Markup] = []
    if len(lines) > 1 and _TABLE_RULE.fullmatch(lines[1]):
        for cell in rows.pop(0):
            head.append(Markup('<th scope="col">%s</th>') % _cited(cell, numbers))
    body = []
    for row in rows:
        cells = [Markup("<td>%s</td>") % _cited(cell, numbers) for cell in row]
        body.append(Markup("<tr>%s</tr>") % Markup("").join(cells))
    table = Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table'
        ' class="figures"><thead><tr>%s</tr></thead><tbody>%s</tbody></table></div>'
    )
    return table % (Markup("").join(head), Markup("").join(body))
