"""The result of a check as a static page, in the look of the reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.draft_check.check import DraftCheck
from pipeline.draft_check.citations import CitationCheck
from pipeline.draft_check.references import ReferenceCheck
from pipeline.report.grid import Cell, Grid, Section
from pipeline.report.pages import Page
from pipeline.report.rendering import render
from pipeline.storage.writing import write_whole

VERDICT_WORDS = {
    "supported": "✓ supported",
    "partly": "◐ partly supported",
    "contradicted": "✗ contradicted",
    "not_found": "? not found",
    "not_checked": "not checked",
}
STATUS_WORDS = {
    "verified": "verified",
    "differs": "differs",
    "not_found": "not found",
    "suspicious": "suspicious",
}
_WORST_FIRST = ("contradicted", "not_found", "partly", "not_checked", "supported")
_STATUS_ORDER = ("suspicious", "differs", "not_found", "verified")


def write_page(check: DraftCheck, folder: Path) -> Path:
    """Write `index.html` into a folder, which is made where it is missing; the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "index.html"
    write_whole(file, render("page.html.j2", _page(check)))
    return file


def _page(check: DraftCheck) -> Page:
    counts = check.counts()
    verdicts = [citation.verdict for citation in check.citations]
    headline = [
        ("References", str(len(check.references)), f"{counts['verified']} verified"),
        ("Citations", str(len(check.citations)), f"{verdicts.count('supported')} supported"),
        ("Contradicted", str(counts["contradicted"]), ""),
        ("Not checked", str(verdicts.count("not_checked")), "the cited text is not here"),
    ]
    sections = [
        Section("citations", "What the cited papers say", [_about_judge(check)], [_citations(check.citations)]),
        Section("references", "References", [_ABOUT_REFERENCES], [_references(check.references)]),
    ]
    if check.missing:
        sections.append(Section("missing", "Papers that the draft does not cite", [], [_missing(check)]))
    problems = [*check.draft.problems, *(f"two entries have the key {key}" for key in check.draft.duplicate_keys)]
    problems += [f"{s.file}, line {s.line}: {key} is cited and has no entry" for key, s in check.without_entry]
    return Page(f"Check of {check.draft.file.name}", [], _lead(check), sections, headline, notes=problems)


_ABOUT_REFERENCES = (
    "Each entry of the bibliography beside arXiv's metadata. An entry that is not found there may exist all the same."
)


def _lead(check: DraftCheck) -> str:
    return f"{len(check.citations)} citations of {len(check.references)} works in {check.draft.file.name}."


def _about_judge(check: DraftCheck) -> str:
    return (
        f"Each citation beside the passage of the cited paper that fits it best. The judge is {check.judge}; a "
        "contradiction is a sentence of nearly the same words with another number or a negation."
    )


def _citations(citations: Sequence[CitationCheck]) -> Grid:
    ordered = sorted(citations, key=lambda check: _WORST_FIRST.index(check.verdict))
    rows = [
        (
            VERDICT_WORDS[check.verdict],
            check.sentence.readable,
            check.key,
            check.reason or check.quote,
            Cell(f"{check.arxiv_id}{', abstract only' if check.abstract_only else ''}", page=check.url)
            if check.url
            else Cell(None),
            f"{check.sentence.file}:{check.sentence.line}",
        )
        for check in ordered
    ]
    columns = ["verdict", "the draft", "key", "the cited paper", "passage", "place"]
    return Grid("citation-checks", "Citations", columns, rows, stacked=True)


def _references(references: Sequence[ReferenceCheck]) -> Grid:
    ordered = sorted(references, key=lambda check: _STATUS_ORDER.index(check.status))
    rows = [
        (STATUS_WORDS[check.status], check.key, Cell(check.arxiv_id, arxiv_id=check.arxiv_id), explain(check))
        for check in ordered
    ]
    return Grid("reference-checks", "Entries", ["status", "key", "paper", "what differs"], rows, stacked=True)


def explain(check: ReferenceCheck) -> str:
    """What differs, and the notes, in one text."""
    parts = [
        f"{difference.field}: {difference.draft!r}, arXiv has {difference.metadata!r}"
        for difference in check.differences
    ]
    return "; ".join([*parts, *check.notes])


def _missing(check: DraftCheck) -> Grid:
    rows = [
        (f"{paper.beginning} …", Cell(paper.arxiv_id, page=paper.url), paper.title, paper.text)
        for paper in check.missing
    ]
    return Grid("missing-papers", "Papers", ["paragraph", "paper", "title", "passage"], rows, stacked=True)
