"""For which papers of a month questions are drafted, which paper each is compared with, and what the model reads.

A paper is compared with the paper of the corpus that it cites in most of its passages, up to its own month.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline import tables
from pipeline.answering.binding import rows_of_papers
from pipeline.answering.drafting import Paper, Subject
from pipeline.answering.questions import Kind
from pipeline.answering.retrieving import Found
from pipeline.arxiv.identifiers import month_of
from pipeline.engine.sampling import evenly_spaced
from pipeline.engine.stage import Workspace
from pipeline.storage.data_root import DataRoot
from pipeline.wikipedia.root import month_in

PASSAGE_COLUMNS = (
    "passage_id", "arxiv_id", "ordinal", "anchor", "kind", "title", "section_path", "text", "cited_keys"
)  # fmt: skip
# Of a paper of some 60 passages, those that a question of one kind can rest on; 8 of 150 words are 2,000 tokens.
MOST_SHOWN = 8
# A section that is named after what is asked for is worth more than words that fall in passing.
_BY_SECTION, _MOST_BY_WORDS = 4, 3

# What sections and passages have in them that a question of each kind asks for; in English.
_SECTIONS: Mapping[Kind, str] = {
    "dataset": r"data|corp(?:us|ora)|benchmark|collection|annotat|experiment|evaluation|set-?up|material",
    "summary": r"abstract|introduction|conclu|contribution|summary|overview",
    "limitation": r"limit|weakness|future|threats|shortcoming|discussion|fail|error analysis|open (?:problem|question)",
    "comparison": r"abstract|introduction|method|approach|model|result|conclu",
}
_WORDS: Mapping[Kind, str] = {
    "dataset": r"data ?sets?|corpus|corpora|benchmarks?|annotat\w+|(?:train|test)(?:ing)? (?:set|split)|collected",
    "summary": r"we (?:propose|present|introduce|show|find)|contributions?|in summary|outperforms?",
    "limitation": r"limitations?|weakness(?:es)?|future work|shortcomings?|we (?:did|do) not|remains? open|fails?",
    "comparison": r"we (?:propose|present|introduce|show|find)|outperforms?|compared (?:to|with)|unlike",
}


def chosen_papers(workspace: Workspace, month: str) -> list[str]:
    """The papers of a month for which questions are drafted, in order of id: those of CITELOOM_DRAFT_PAPERS, and as
    many as CITELOOM_DRAFT_QUESTIONS says, evenly over the month. Papers that are named may not be in the corpus."""
    settings = workspace.settings
    named = {each for each in settings.draft_papers if month_of(each) == month}
    there = sorted(row["arxiv_id"] for row in workspace.root.iterate(tables.PAPERS, month, ["arxiv_id"]))
    evenly = {there[place] for place in evenly_spaced(len(there), settings.draft_questions)}
    return sorted(named | evenly)


def cited_months(workspace: Workspace, month: str, papers: Collection[str]) -> list[str]:
    """The months up to this one in which papers lie that these cite."""
    cited = {each for works in _cited(workspace.root, month, papers).values() for each in works.values()}
    return sorted({found for each in cited if (found := month_of(each)) and found <= month})


def read_papers(root: DataRoot, papers: Iterable[str]) -> dict[str, Paper]:
    """Papers with their passages, by id; one without passages in the tables is missing."""
    found: dict[str, Paper] = {}
    for month, wanted in _by_month(root, papers).items():
        rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows_of_papers(root, tables.PASSAGES, month, PASSAGE_COLUMNS, wanted):
            rows[row["arxiv_id"]].append(row)
        found |= {arxiv_id: _paper(arxiv_id, month, each) for arxiv_id, each in rows.items()}
    return found


def _paper(arxiv_id: str, month: str, rows: Iterable[Mapping[str, Any]]) -> Paper:
    ordered = sorted(rows, key=lambda row: row["ordinal"])
    passages = tuple(
        Found(
            row["passage_id"], arxiv_id, row["title"] or "", tuple(row["section_path"]), row["anchor"], row["kind"],
            row["text"], month,
        )
        for row in ordered
    )  # fmt: skip
    return Paper(arxiv_id, " ".join(passages[0].title.split()), passages)


def _by_month(root: DataRoot, papers: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for paper in sorted(set(papers)):
        month = month_in(root, paper)
        if month is not None:
            found[month].append(paper)
    return dict(sorted(found.items()))


def related_papers(root: DataRoot, month: str, papers: Collection[str]) -> dict[str, str]:
    """Paper → the paper of the corpus that it cites in most passages, the smaller id of two alike; not of a later
    month. A paper that cites none is missing."""
    counts = _citations(root, month, papers)
    candidates = {each for cited in counts.values() for each in cited}
    there = {
        row["arxiv_id"]
        for other, wanted in _by_month(root, candidates).items()
        for row in rows_of_papers(root, tables.PASSAGES, other, ("arxiv_id",), wanted)
    }
    ranked = {paper: sorted(cited, key=lambda each: (-cited[each], each)) for paper, cited in counts.items()}
    best = {paper: next((each for each in cited if each in there), None) for paper, cited in ranked.items()}
    return {paper: each for paper, each in best.items() if each is not None}


def _citations(root: DataRoot, month: str, papers: Collection[str]) -> dict[str, Counter[str]]:
    """Paper → how many of its passages cite each paper that was on arXiv by this month."""
    works = _cited(root, month, papers)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows_of_papers(root, tables.PASSAGES, month, ("arxiv_id", "cited_keys"), papers):
        paper = row["arxiv_id"]
        cited = {works[paper][key] for key in row["cited_keys"] or () if key in works[paper]}
        found[paper].update(each for each in cited if each != paper and (month_of(each) or "9999") <= month)
    return found


def _cited(root: DataRoot, month: str, papers: Collection[str]) -> dict[str, dict[str, str]]:
    """Paper → key of its bibliography item → the paper on arXiv that the item is."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows_of_papers(root, tables.REFERENCES, month, ("arxiv_id", "key", "cited_arxiv_id"), papers):
        if row["cited_arxiv_id"]:
            found[row["arxiv_id"]][row["key"]] = row["cited_arxiv_id"]
    return found


def subjects(paper: Paper, other: Paper | None) -> Iterator[tuple[Kind, Subject | None]]:
    """What the model is asked for of a paper, kind by kind; None where nothing in it speaks of such things."""
    for kind in ("dataset", "summary", "limitation"):
        shown = telling(paper, kind, MOST_SHOWN)
        yield kind, Subject(kind, paper, None, shown) if shown else None
    if other is None:
        yield "comparison", None
        return
    halves = [telling(each, "comparison", MOST_SHOWN // 2) for each in (paper, other)]
    yield "comparison", Subject("comparison", paper, other, (*halves[0], *halves[1])) if all(halves) else None


def telling(paper: Paper, kind: Kind, most: int) -> tuple[Found, ...]:
    """The passages of a paper that speak most of what a question of this kind asks for, in the paper's order.

    None where none of them does; of a summary, which any text allows, the first ones then.
    """
    body = [each for each in paper.passages if each.kind != "front_matter"]
    worth = [_worth(each, kind) for each in body]
    places = sorted(range(len(body)), key=lambda place: (-worth[place], place))
    speaking = [place for place in places if worth[place] > 0 or kind in ("summary", "comparison")]
    return tuple(body[place] for place in sorted(speaking[:most]))


def _worth(found: Found, kind: Kind) -> int:
    named = any(re.search(_SECTIONS[kind], part, re.IGNORECASE) for part in found.section_path)
    words: Sequence[str] = re.findall(rf"\b(?:{_WORDS[kind]})\b", found.text, re.IGNORECASE)
    return _BY_SECTION * named + min(len({word.casefold() for word in words}), _MOST_BY_WORDS)
