"""The result of a check as a static page, in the look of the reports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from drafts.check import DraftCheck, MissingPaper
from drafts.citations import CitationCheck, Verdict
from drafts.references import NEVER_CITED, ReferenceCheck
from drafts.text import number_of
from pipeline.report.grid import Cell, Grid, PageSection

# In the order of rows.
_VERDICTS: dict[Verdict, str] = {
    "number_not_found": "number not found",
    "not_about_paper": "not about this paper",
    "contradicted": "contradicted",
    "not_supported": "not supported",
    "partly": "partly supported",
    "read": "read this",
    "not_checked": "not checked",
    "supported": "supported",
}
_STATUS_ORDER = ("retracted", "withdrawn", "suspicious", "differs", "not_found", "verified")


def write_page(check: DraftCheck, folder: Path) -> Path:
    """Write `index.html` into a folder, which is made where it is missing; the page's path."""
    # A fifth of a second of imports, which a check without a page need not take.
    from pipeline.report.pages import write_single_page

    counts = check.counts()
    unchecked = sum(citation.verdict == "not_checked" for citation in check.citations)
    headline = [
        ("References", str(len(check.references)), f"{counts['verified']} verified"),
        ("Citations", str(len(check.citations)), ""),
        ("Number not found", str(counts["number_not_found"]), ""),
        ("Not about this paper", str(counts["not_about_paper"]), ""),
        ("Not checked", str(unchecked), "the cited text is not here"),
    ]
    if check.judge:
        headline[2:2] = [
            ("Contradicted", str(counts["contradicted"]), check.judge),
            ("Not supported", str(counts["not_supported"]), ""),
        ]
    name = check.draft.file.name
    citations = number_of(len(check.citations), "citation")
    lead = f"{citations} of {number_of(len(check.references), 'work')} in {name}."
    file = folder / "index.html"
    title = f"Check of {name}"
    write_single_page(file, title, lead, sections(check), headline, check.problems)
    return file


def sections(check: DraftCheck, *, good: bool = True) -> list[PageSection]:
    """Citations, references, and papers that are not cited. A part without rows is one sentence.

    good: give every citation and reference a row. Otherwise, sentences list the keys of citations
    that are not checked and of references that are not found, and verified references without a
    note are left out.
    """
    judged = f"{check.judge} judged." if check.judge else "No model judged: read the quotes."
    quoted = f"Each with the nearest sentence of the cited paper. {judged}"
    about = (
        "Each entry of the bibliography beside arXiv's metadata. An entry that is not found there"
        " may exist all the same."
    )
    parts = []
    if check.citations:
        parts.append(_citations(check.citations, quoted, good=good))
    else:
        nothing = f"{check.draft.file.name} has no sentence that cites a work."
        parts.append(PageSection("citations", "What the cited papers say", [nothing]))
    if check.references:
        parts.append(_references(check.references, about, good=good))
    else:
        nothing = "It has no bibliography that could be read."
        parts.append(PageSection("references", "References", [nothing]))
    if check.missing is not None:
        title = "Papers that the draft does not cite"
        nothing = "No paper of the corpus fits a paragraph that does not cite it."
        grids = [_missing(check.missing)] if check.missing else []
        parts.append(PageSection("missing", title, [] if grids else [nothing], grids))
    return parts


def _citations(citations: Sequence[CitationCheck], about: str, *, good: bool) -> PageSection:
    rows = []
    unchecked: dict[str, list[str]] = defaultdict(list)
    order = list(_VERDICTS)
    for check in sorted(citations, key=lambda check: order.index(check.verdict)):
        if check.verdict == "not_checked" and not good:
            unchecked[check.reason].append(check.key)
            continue
        sentence = Cell(check.sentence.readable, marks=(check.ours,))
        quoted = check.quote and f"“{check.quote}”"
        paper = ": ".join(filter(None, [check.key, check.reason, quoted]))
        quote = Cell(paper, page=check.url, tag=check.extent or "", marks=(check.theirs,))
        place = f"{check.sentence.file}:{check.sentence.line}"
        rows.append((_VERDICTS[check.verdict], sentence, quote, place))
    counts = Counter(check.verdict for check in citations)
    summary = ", ".join(
        f"{counts[verdict]} {words}" for verdict, words in _VERDICTS.items() if counts[verdict]
    )
    lists = [f"Not checked, as {reason}: {_distinct(keys)}." for reason, keys in unchecked.items()]
    return _section(
        "citations",
        "What the cited papers say",
        [about] if rows else [],
        Grid(
            "citation-checks",
            f"{number_of(len(citations), 'citation')}: {summary}",
            ["verdict", "the draft", "the cited paper", "place"],
            rows,
            stacked=True,
        ),
        lists,
    )


def _references(references: Sequence[ReferenceCheck], about: str, *, good: bool) -> PageSection:
    rows, not_found = [], []
    for check in sorted(references, key=lambda check: _STATUS_ORDER.index(check.status)):
        notes = [note for note in check.notes if note != NEVER_CITED]
        if not (good or notes or check.differences):
            if check.status == "not_found":
                not_found.append(check.key)
            continue
        remarks = [
            f"{difference.field}: {difference.draft!r}, arXiv has {difference.metadata!r}"
            for difference in check.differences
        ]
        paper = Cell(check.arxiv_id, arxiv_id=check.arxiv_id)
        remark = "; ".join([*remarks, *notes])
        rows.append((check.status.replace("_", " "), check.key, paper, remark))
    verified = sum(check.status == "verified" for check in references)
    uncited = [check.key for check in references if NEVER_CITED in check.notes]
    lists = []
    if not_found:
        lists.append(f"Not found: {_distinct(not_found)}.")
    if uncited:
        lists.append(f"Never cited: {_distinct(uncited)}.")
    return _section(
        "references",
        "References",
        [about],
        Grid(
            "reference-checks",
            f"{number_of(len(references), 'reference')}, {verified} verified",
            ["status", "key", "paper", "what differs"],
            rows,
            stacked=True,
        ),
        lists,
    )


def _section(
    name: str, title: str, texts: list[str], grid: Grid, lists: Sequence[str]
) -> PageSection:
    """A section with texts, lists of keys and a table; a table without rows is only its title."""
    if grid.rows:
        return PageSection(name, title, [*texts, *lists], [grid])
    return PageSection(name, title, [*texts, f"{grid.title}.", *lists])


def _distinct(keys: Sequence[str]) -> str:
    """The distinct keys, separated by commas."""
    return ", ".join(dict.fromkeys(keys))


def _missing(papers: Sequence[MissingPaper]) -> Grid:
    """Each paper once, those of most paragraphs first."""
    by_id: dict[str, list[MissingPaper]] = defaultdict(list)
    for paper in papers:
        by_id[paper.arxiv_id].append(paper)
    rows = []
    for first, *others in sorted(by_id.values(), key=len, reverse=True):
        beginnings = "\n".join(f"{paper.beginning} …" for paper in (first, *others))
        rows.append((Cell(first.arxiv_id, page=first.url), first.title, beginnings))
    return Grid(
        "missing-papers",
        f"{number_of(len(rows), 'paper')} not cited",
        ["paper", "title", "paragraphs"],
        rows,
        stacked=True,
    )
