"""What questions are drafted about: papers of a month, passages of them for each kind of question, papers to compare.

A paper is compared with the paper of the corpus that most of its passages cite, up to its own month.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline import tables
from pipeline.answering.questions import Kind, holds_phrase
from pipeline.answering.retrieval import PASSAGE_COLUMNS, RetrievedPassage
from pipeline.arxiv.identifiers import month_of
from pipeline.engine.sampling import evenly_spaced
from pipeline.engine.stage import Workspace
from pipeline.index.papers import rows_of_papers
from pipeline.storage.data_root import DataRoot
from pipeline.wikipedia.root import month_in

# Of the some 60 passages of a paper, those that a question of one kind can rest on; 8 of 150 words are 2,000 tokens.
MOST_SHOWN = 8
# The title of a section says more about its passages than words that occur in them.
_SECTION_WEIGHT, _MOST_WORDS_COUNTED = 4, 3

# Titles of sections, and words of passages, that speak of what a question of each kind asks for; in English.
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


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper with all of its passages in order."""

    arxiv_id: str
    title: str
    passages: tuple[RetrievedPassage, ...]

    def rows(self) -> list[dict[str, Any]]:
        """The passages as `gold_passages` reads them."""
        return [{"passage_id": passage.passage_id, "text": passage.text} for passage in self.passages]

    def holds(self, phrase: str) -> bool:
        """Whether a passage holds the phrase, by the comparison that grades use."""
        return any(holds_phrase(passage.text, phrase) for passage in self.passages)


@dataclass(frozen=True, slots=True)
class Subject:
    """What one question is to be about: its kind, the paper, for a comparison another, and what the model reads."""

    kind: Kind
    papers: tuple[Paper, ...]
    shown: tuple[RetrievedPassage, ...]
    """Passages of the first paper, then those of the second."""


def choose_papers(workspace: Workspace, month: str) -> list[str]:
    """The papers of a month for which questions are drafted, by id: those of CITELOOM_DRAFT_PAPERS, which may not be
    in the corpus, and CITELOOM_DRAFT_QUESTIONS papers evenly spaced over the month."""
    settings = workspace.settings
    named = {paper for paper in settings.draft_papers if month_of(paper) == month}
    papers = sorted(row["arxiv_id"] for row in workspace.root.iterate(tables.PAPERS, month, ["arxiv_id"]))
    return sorted(named | {papers[place] for place in evenly_spaced(len(papers), settings.draft_questions)})


def read_papers(root: DataRoot, papers: Collection[str]) -> dict[str, Paper]:
    """Papers with their passages, by id; a paper without passages in the tables is missing."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows_of_papers(root, tables.PASSAGES, papers, [*PASSAGE_COLUMNS, "ordinal"]):
        rows[row["arxiv_id"]].append(row)
    by_id = {}
    for paper, paper_rows in rows.items():
        month = month_in(root, paper) or ""
        passages = [RetrievedPassage.of(row, month) for row in sorted(paper_rows, key=lambda row: row["ordinal"])]
        by_id[paper] = Paper(paper, " ".join(passages[0].title.split()), tuple(passages))
    return by_id


def cited_papers(root: DataRoot, month: str, papers: Collection[str]) -> dict[str, Counter[str]]:
    """Paper → arXiv papers up to this month that it cites, with how many of its passages cite each."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in root.rows_with(tables.CITATIONS, month, "citing", papers, ["citing", "cited", "passage_ids"]):
        paper, cited = row["citing"], row["cited"]
        if row["passage_ids"] and cited != paper and (month_of(cited) or "9999") <= month:
            counts[paper][cited] = len(row["passage_ids"])
    return counts


def related_papers(root: DataRoot, month: str, papers: Collection[str]) -> dict[str, Paper]:
    """Paper → the paper of the corpus that most of its passages cite, of two alike the one with the smaller id.

    A paper that cites none of the corpus, or only papers of later months, is missing."""
    counts = cited_papers(root, month, papers)
    corpus = read_papers(root, {paper for cited in counts.values() for paper in cited})
    related = {}
    for paper, cited in counts.items():
        candidates = [other for other in cited if other in corpus]
        if candidates:
            related[paper] = corpus[min(candidates, key=lambda other: (-cited[other], other))]
    return related


def subjects_of(paper: Paper, related: Paper | None) -> Iterator[tuple[Kind, Subject | None]]:
    """What the model is asked for about a paper, kind by kind; None where the paper has nothing of the kind."""
    for kind in ("dataset", "summary", "limitation"):
        shown = passages_for(paper, kind, MOST_SHOWN)
        yield kind, Subject(kind, (paper,), shown) if shown else None
    papers = (paper, related) if related is not None else ()
    halves = [passages_for(one, "comparison", MOST_SHOWN // 2) for one in papers]
    shown = tuple(passage for half in halves for passage in half)
    yield "comparison", Subject("comparison", papers, shown) if halves and all(halves) else None


def passages_for(paper: Paper, kind: Kind, most: int) -> tuple[RetrievedPassage, ...]:
    """The passages of a paper that say most about what a question of this kind asks for, in the paper's order.

    None where no passage does; for a summary or a comparison, which any text allows, the first passages then."""
    body = [passage for passage in paper.passages if passage.kind != "front_matter"]
    weights = [_weight(passage, kind) for passage in body]
    places = sorted(range(len(body)), key=lambda place: (-weights[place], place))
    if kind in ("dataset", "limitation"):
        places = [place for place in places if weights[place] > 0]
    return tuple(body[place] for place in sorted(places[:most]))


def _weight(passage: RetrievedPassage, kind: Kind) -> int:
    in_section = any(re.search(_SECTIONS[kind], title, re.IGNORECASE) for title in passage.section_path)
    words = {word.casefold() for word in re.findall(rf"\b(?:{_WORDS[kind]})\b", passage.text, re.IGNORECASE)}
    return _SECTION_WEIGHT * in_section + min(len(words), _MOST_WORDS_COUNTED)
