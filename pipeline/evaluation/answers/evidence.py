"""Passages by which a claim is judged: those of the question's papers that are nearest by vectors and words.

They are searched for again for every claim, among all passages of all papers of the question, whatever the system was
shown: a claim may be right though its system never saw why. Front matter is among them, since it says who wrote a
paper.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.answering.questions import Question
from pipeline.corpus.parse.policies import without_markers
from pipeline.embedding.choice import model_name
from pipeline.evaluation.citation_support.passages import best_places, by_month, read_vectors
from pipeline.index.exact import fused_scores, lexical_scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Dense = Callable[[Sequence[str], Sequence[str]], Sequence[NDArray[np.float32]]]
    """(claims, passage ids) → for each claim its score with each passage; minus infinity where there is no vector."""
    from pipeline.embedding.embedder import Embedder
    from pipeline.engine.stage import Workspace
    from pipeline.settings import Settings


def dense_of(
    workspace: Workspace, papers: Collection[str], claims: Sequence[str], make: Callable[[Settings], Embedder]
) -> Dense | None:
    """Scores of any of these claims with passages of these papers: inner products, 0 without a vector.

    None where no passage of them has a vector of the embedder's model, which is then not loaded. Raises SettingError
    where it is to be, and is not there.
    """
    import numpy as np

    model = model_name(workspace.settings)
    held: dict[str, NDArray[np.float32]] = {}
    for choice in by_month(workspace, sorted(papers)):
        held |= read_vectors(workspace, choice, model)
    if not held or not claims:
        return None
    encoded = make(workspace.settings).encode_queries(list(claims))
    vectors = {claim: each.dense for claim, each in zip(claims, encoded, strict=True)}

    def dense(asked: Sequence[str], passage_ids: Sequence[str]) -> list[NDArray[np.float32]]:
        known = [place for place, each in enumerate(passage_ids) if each in held]
        matrix = np.array([held[passage_ids[place]] for place in known], np.float32)
        found = []
        for claim in asked:
            scores = np.zeros(len(passage_ids), np.float32)
            if known:
                scores[known] = matrix @ vectors[claim]
            found.append(scores)
        return found

    return dense


Evidence = Mapping[tuple[str, str], "tuple[Passage, ...]"]
"""(question id, claim) → the passages that it is judged by, best first."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as a judge reads it. heading: its paper's title and its sections, which are no evidence of anything;
    text: without citation markers."""

    passage_id: str
    arxiv_id: str
    anchor: str
    heading: str
    text: str

    def with_heading(self) -> str:
        """Heading and text."""
        return f"{self.heading}\n{self.text}"


def passages_of(rows: Iterable[Mapping[str, Any]]) -> list[Passage]:
    """Rows of the table `passages` (`passage_id`, `arxiv_id`, `anchor`, `title`, `section_path`, `text` are read)."""
    return [
        Passage(
            row["passage_id"],
            row["arxiv_id"],
            row["anchor"],
            " > ".join(filter(None, (row["title"], *(row["section_path"] or ())))),
            without_markers(row["text"]).strip(),
        )
        for row in rows
    ]


def evidence_for(
    question: Question,
    claims: Iterable[str],
    passages: Mapping[str, Sequence[Passage]],
    most: int,
    dense: Dense | None = None,
) -> dict[tuple[str, str], tuple[Passage, ...]]:
    """For each claim the `most` best of the passages of the question's papers, best first.

    passages: arXiv id → passages in the order of the paper. dense: scores by vectors, fused with those by words (BM25);
    by words alone without it. A claim has none where the papers have none.
    """
    texts = sorted(set(claims))
    there = [passage for paper in question.papers for passage in passages.get(paper, ())]
    if not there or not texts:
        return {(question.id, claim): () for claim in texts}
    by_words = lexical_scores([passage.with_heading() for passage in there], texts)
    by_vectors = dense(texts, [passage.passage_id for passage in there]) if dense else None
    found = {}
    for place, claim in enumerate(texts):
        scores = by_words[place] if by_vectors is None else fused_scores(by_vectors[place], by_words[place])
        found[question.id, claim] = tuple(there[each] for each in best_places(scores, most))
    return found
