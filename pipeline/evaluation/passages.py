"""Passages as judges read them, and the search for those that could support a claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.answering.questions import Question
from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.passage import PASSAGE_COLUMNS, Passage
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.identity.identifiers import month_of
from pipeline.index.exact import fused_scores, lexical_scores
from pipeline.index.papers import rows_of_papers, tables_of_papers
from pipeline.text import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder
    from pipeline.engine.stage import Workspace
    from pipeline.settings import Settings
    from pipeline.storage.data_root import DataRoot

    Vectors = Mapping[str | None, NDArray[np.float32]]
    """Passage id → its dense vector."""

_COLUMNS = ["passage_id", "arxiv_id", "ordinal", "anchor", "kind", "text"]
EVIDENCE_COLUMNS = [*PASSAGE_COLUMNS, "ordinal"]
"""Columns of the table `passages` that `passages_by_paper` needs."""


@dataclass(frozen=True, slots=True)
class EvidencePassage:
    """A passage of a work as a judge reads it, without citation markers.

    ordinal: its place in the work. passage_id, arxiv_id and anchor are None outside of the corpus.
    heading: its paper's title and its sections, which are no evidence of anything; empty where no
    judge is shown them.
    """

    text: str
    ordinal: int = 0
    passage_id: str | None = None
    arxiv_id: str | None = None
    anchor: str | None = None
    heading: str = ""

    def with_heading(self) -> str:
        """Heading and text."""
        return f"{self.heading}\n{self.text}"


def read_vectors(root: DataRoot, papers: Collection[str], model: str) -> Vectors:
    """The vectors that a model made of the passages of these papers. Raises PermanentFailure where
    a month cannot be read.
    """
    import numpy as np
    import pyarrow.compute as pc

    vectors: dict[str | None, NDArray[np.float32]] = {}
    columns = ["passage_id", "model", "dense"]
    for part in tables_of_papers(root, tables.EMBEDDINGS, papers, columns):
        of_model = part.filter(pc.equal(part["model"], model))
        # Arrow would join all chunks into one list, which fails beyond 2^31 numbers.
        for batch in of_model.to_batches():
            numbers = batch["dense"].flatten().to_numpy(zero_copy_only=False)
            matrix = numbers.reshape(len(batch), -1).astype(np.float32)
            vectors.update(zip(batch["passage_id"].to_pylist(), matrix, strict=True))
    return vectors


@dataclass(frozen=True)
class ClaimSearch:
    """Searches passages for those that could support claims. claims: all that it will be asked for,
    encoded at once.

    make: gives the embedder, and is called when vectors are first compared. Raises SettingError
    where the embedder's model is not there.
    """

    claims: Sequence[str]
    settings: Settings
    make: Callable[[Settings], Embedder]

    @cached_property
    def _claim_vectors(self) -> Mapping[str, NDArray[np.float32]]:
        encoded = self.make(self.settings).encode_queries(list(self.claims))
        return {claim: vectors.dense for claim, vectors in zip(self.claims, encoded, strict=True)}

    def best(
        self,
        passages: Sequence[EvidencePassage],
        claims: Sequence[str],
        most: int,
        vectors: Vectors,
    ) -> dict[str, tuple[EvidencePassage, ...]]:
        """For each claim the `most` best of these passages, best first.

        Scores by vectors are fused with those by words (BM25); words alone decide where no passage
        has a vector.
        """
        by_words = lexical_scores([passage.with_heading() for passage in passages], claims)
        has_vectors = any(passage.passage_id in vectors for passage in passages)
        best = {}
        for claim, words in zip(claims, by_words, strict=True):
            scores = words
            if has_vectors:
                scores = fused_scores(self._dense_scores(claim, passages, vectors), words)
            best[claim] = tuple(passages[place] for place in best_places(scores, most))
        return best

    def _dense_scores(
        self, claim: str, passages: Sequence[EvidencePassage], vectors: Vectors
    ) -> NDArray[np.float32]:
        """Inner products with the claim; 0 for a passage without a vector."""
        import numpy as np

        scores = np.zeros(len(passages), np.float32)
        for place, passage in enumerate(passages):
            if passage.passage_id in vectors:
                scores[place] = vectors[passage.passage_id] @ self._claim_vectors[claim]
        return scores


def best_places(scores: NDArray[np.float32], most: int) -> list[int]:
    """Places of the best scores, ties by place. What shares nothing with the claim comes last, in
    order: a judge is to be shown something in any case, and the beginning of a work tells most of
    it.
    """
    import numpy as np

    places: list[int] = np.argsort(-scores, kind="stable")[:most].tolist()
    return places


@dataclass(slots=True)
class RankedEvidence:
    """Passages by (arXiv id, claim), best first, and counts of works by way of ranking."""

    passages: dict[tuple[str, str], tuple[EvidencePassage, ...]] = field(default_factory=dict)
    by_both: int = 0
    by_words: int = 0


def search(
    workspace: Workspace,
    claims: Mapping[str, Sequence[str]],
    most: int,
    make: Callable[[Settings], Embedder] | None,
) -> RankedEvidence:
    """The `most` best passages of each paper for each of its claims, best first.

    claims: arXiv id → claims about this paper. make: gives the embedder, and is called where there
    are vectors to compare with; None to rank by words alone. Papers without passages in the tables
    are missing from the result. Months are read one after another, so that the passages of one are
    held. Raises PermanentFailure where a month cannot be read, SettingError where the embedder's
    model is not there.
    """
    root, settings = workspace.root, workspace.settings
    every_claim = {claim for of_paper in claims.values() for claim in of_paper}
    claim_search = ClaimSearch(sorted(every_claim), settings, make or make_embedder)
    months: dict[str | None, set[str]] = defaultdict(set)
    for arxiv_id in claims:
        months[month_of(arxiv_id)].add(arxiv_id)
    ranked = RankedEvidence()
    for papers in months.values():
        vectors = read_vectors(root, papers, model_name(settings)) if make else {}
        for arxiv_id, passages in read_passages(root, papers).items():
            if any(passage.passage_id in vectors for passage in passages):
                ranked.by_both += 1
            else:
                ranked.by_words += 1
            best = claim_search.best(passages, claims[arxiv_id], most, vectors)
            ranked.passages |= {(arxiv_id, claim): of_claim for claim, of_claim in best.items()}
    return ranked


def read_passages(root: DataRoot, papers: Collection[str]) -> dict[str, list[EvidencePassage]]:
    """Each paper's passages in order, without front matter: authors' names support no claim."""
    passages: dict[str, list[EvidencePassage]] = defaultdict(list)
    rows = [
        row
        for row in rows_of_papers(root, tables.PASSAGES, papers, _COLUMNS)
        if row["kind"] != "front_matter"
    ]
    for row in sorted(rows, key=lambda row: (row["arxiv_id"], row["ordinal"])):
        text = without_markers(row["text"])
        passages[row["arxiv_id"]].append(
            EvidencePassage(text, row["ordinal"], row["passage_id"], row["arxiv_id"], row["anchor"])
        )
    return passages


def paragraphs_of(reference: Mapping[str, Any]) -> list[str]:
    """The paragraphs of what a task has of a work outside of the corpus, headings left out; none of
    a bibliography item, which says nothing of what the work did.

    reference: one of the `references` of a row of `related_work_tasks`.
    """
    if reference["source"] == "item":
        return []
    parts = (one_line(part) for part in (reference["text"] or "").split("\n\n"))
    return [part for part in parts if part and not part.startswith("#")]


def among(paragraphs: Sequence[str], claim: str, most: int) -> tuple[EvidencePassage, ...]:
    """The `most` best of a work's paragraphs for a claim, best first, by words alone."""
    (scores,) = lexical_scores(paragraphs, [claim])
    return tuple(EvidencePassage(paragraphs[place], place) for place in best_places(scores, most))


Evidence = Mapping[tuple[str, str], tuple[EvidencePassage, ...]]
"""(question id, claim) → the passages that it is judged by, best first."""


def passages_by_paper(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[EvidencePassage]]:
    """arXiv id → its passages in the order of the rows, of `passages` with EVIDENCE_COLUMNS."""
    passages: dict[str, list[EvidencePassage]] = defaultdict(list)
    for row in rows:
        passage = Passage.from_row(row)
        passages[passage.arxiv_id].append(
            EvidencePassage(
                text=passage.content(),
                ordinal=row["ordinal"],
                passage_id=passage.passage_id,
                arxiv_id=passage.arxiv_id,
                anchor=passage.anchor,
                heading=passage.heading(),
            )
        )
    return dict(passages)


def evidence_for(
    question: Question,
    claims: Iterable[str],
    passages: Mapping[str, Sequence[EvidencePassage]],
    most: int,
    claim_search: ClaimSearch,
    vectors: Vectors,
) -> dict[tuple[str, str], tuple[EvidencePassage, ...]]:
    """For each claim of an answer the `most` best passages of the question's papers, best first.

    The search is among all passages of all papers of the question, whatever the system was shown: a
    claim may be right though its system never saw why. Front matter is among them, since it says
    who wrote a paper.

    passages: arXiv id → passages in the order of the paper. vectors: of passages; none to rank by
    words alone. A claim has no evidence where the papers have no passages.
    """
    texts = sorted(set(claims))
    candidates = [passage for paper in question.papers for passage in passages.get(paper, ())]
    if not candidates or not texts:
        return {(question.id, claim): () for claim in texts}
    best = claim_search.best(candidates, texts, most, vectors)
    return {(question.id, claim): of_claim for claim, of_claim in best.items()}
