"""Passages by which a claim is judged: those of the question's papers that are nearest by vectors and words.

They are searched for again for every claim, among all passages of all papers of the question, whatever the system was
shown: a claim may be right though its system never saw why. Front matter is among them, since it says who wrote a
paper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.answering.questions import Question
from pipeline.corpus.parse.policies import without_markers
from pipeline.evaluation.passages import ClaimSearch, Passage

if TYPE_CHECKING:
    from pipeline.evaluation.passages import Vectors

Evidence = Mapping[tuple[str, str], tuple[Passage, ...]]
"""(question id, claim) → the passages that it is judged by, best first."""

PASSAGE_COLUMNS = ["passage_id", "arxiv_id", "ordinal", "anchor", "title", "section_path", "text"]


def passages_by_paper(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Passage]]:
    """arXiv id → its passages in the order of the rows, which are of the table `passages`, with PASSAGE_COLUMNS."""
    passages: dict[str, list[Passage]] = defaultdict(list)
    for row in rows:
        heading = " > ".join(filter(None, (row["title"], *(row["section_path"] or ()))))
        text = without_markers(row["text"]).strip()
        passage = Passage(text, row["ordinal"], row["passage_id"], row["arxiv_id"], row["anchor"], heading)
        passages[row["arxiv_id"]].append(passage)
    return dict(passages)


def evidence_for(
    question: Question,
    claims: Iterable[str],
    passages: Mapping[str, Sequence[Passage]],
    most: int,
    search: ClaimSearch,
    vectors: Vectors,
) -> dict[tuple[str, str], tuple[Passage, ...]]:
    """For each claim the `most` best of the passages of the question's papers, best first.

    passages: arXiv id → passages in the order of the paper. vectors: of passages; none to rank by words alone. A claim
    has none where the papers have none.
    """
    texts = sorted(set(claims))
    there = [passage for paper in question.papers for passage in passages.get(paper, ())]
    if not there or not texts:
        return {(question.id, claim): () for claim in texts}
    return {(question.id, claim): best for claim, best in search.best(there, texts, most, vectors).items()}
