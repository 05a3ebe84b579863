"""The result of a check as a static page, in the look of the reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pipeline.draft_check.check import DraftCheck
from pipeline.draft_check.citations import CitationCheck
from pipeline.draft_check.references import ReferenceCheck
from pipeline.report.grid import Cell, Grid, PageSection
from pipeline.report.pages import Page
from pipeline.report.rendering import render
from pipeline.storage.writing import write_whole

_VERDICTS = {
    "supported": "✓ supported",
    "partly": "◐ partly supported",
    "contradicted": "✗ contradicted",
    "not_found": "? not found",
    "not_checked": "not checked",
}
_WORST_FIRST = ("contradicted", "not_found", "partly", "not_checked", "supported")
_STATUS_ORDER = ("retracted", "withdrawn", "suspicious", "differs", "not_found", "verified")


def write_page(check: DraftCheck, folder: Path) -> Path:
    """Write `index.html` into a folder, which is made where it is missing; the page's path."""
    counts = check.counts()
    verdicts = [citation.verdict for citation in check.citations]
    headline = [
        ("References", str(len(check.references)), f"{counts['verified']} verified"),
        ("Citations", str(len(check.citations)), f"{verdicts.count('supported')} supported"),
        ("Contradicted", str(counts["contradicted"]), ""),
        ("Not checked", str(verdicts.count("not_checked")), "the cited text is not here"),
    ]
    name = check.draft.file.name
    lead = f"{len(check.citations)} citations of {len(check.references)} works in {name}."
    page = Page(f"Check of {name}", [], lead, sections(check), headline, notes=check.problems)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "index.html"
    write_whole(file, render("page.html.j2", page))
    return file


def sections(check: DraftCheck, *, good: bool = True) -> list[PageSection]:
    """Citations, references, and papers that are not cited. good: also those without a fault."""
    judge = (
        "Each citation beside the passage of the cited paper that fits it best. The judge is"
        f" {check.judge}; a contradiction is a sentence of nearly the same words with another"
        " number or a negation."
    )
    about = (
        "Each entry of the bibliography beside arXiv's metadata. An entry that is not found there"
        " may exist all the same."
    )
    citations = _citations(check.citations, good=good)
    references = _references(check.references, good=good)
    parts = [
        PageSection("citations", "What the cited papers say", [judge], [citations]),
        PageSection("references", "References", [about], [references]),
    ]
    if check.missing:
        title = "Papers that the draft does not cite"
        parts.append(PageSection("missing", title, [], [_missing(check)]))
    return parts


def _citations(citations: Sequence[CitationCheck], *, good: bool) -> Grid:
    rows = []
    for check in sorted(citations, key=lambda check: _WORST_FIRST.index(check.verdict)):
        if check.verdict == "supported" and not good:
            continue
        tag = "abstract only" if check.abstract_only else ""
        quote = Cell(f"{check.key}: {check.reason or check.quote}", page=check.url, tag=tag)
        place = f"{check.sentence.file}:{check.sentence.line}"
        rows.append((_VERDICTS[check.verdict], check.sentence.readable, quote, place))
    counts = Counter[str](check.verdict for check in citations)
    summary = ", ".join(
        f"{counts[name]} {words.lstrip('✓◐✗? ')}" for name, words in _VERDICTS.items()
    )
    title = f"{len(citations)} citations: {summary}"
    return Grid(
        "citation-checks",
        title,
        ["verdict", "the draft", "the cited paper", "place"],
        rows,
        stacked=True,
    )


def _references(references: Sequence[ReferenceCheck], *, good: bool) -> Grid:
    rows = []
    for check in sorted(references, key=lambda check: _STATUS_ORDER.index(check.status)):
        if check.status == "verified" and not check.notes and not good:
            continue
        remarks = [
            f"{difference.field}: {difference.draft!r}, arXiv has {difference.metadata!r}"
            for difference in check.differences
        ]
        paper = Cell(check.arxiv_id, arxiv_id=check.arxiv_id)
        remark = "; ".join([*remarks, *check.notes])
        rows.append((check.status.replace("_", " "), check.key, paper, remark))
    verified = sum(check.status == "verified" for check in references)
    title = f"{len(references)} references, {verified} verified"
    return Grid(
        "reference-checks", title, ["status", "key", "paper", "what differs"], rows, stacked=True
    )


def _missing(check: DraftCheck) -> Grid:
    rows = [
        (f"{paper.beginning} …", Cell(paper.arxiv_id, page=paper.url), paper.title, paper.text)
        for paper in check.missing
    ]
    return Grid(
        "missing-papers",
        "Not cited",
        ["paragraph", "paper", "title", "passage"],
        rows,
        stacked=True,
    )
