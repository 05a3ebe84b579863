"""Passages as judges read them, and the search for those that could support a claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.corpus.links import abstract_url, passage_url
from pipeline.corpus.nouns import PASSAGE_COLUMNS, Passage
from pipeline.corpus.parse.policies import without_markers
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.lexical import lexical_query, lexical_rows
from pipeline.identity.identifiers import month_of
from pipeline.index.exact import SparseScores, fused_scores, lexical_scores
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

    @property
    def url(self) -> str:
        """The address of its place on the paper's page, else of the abstract; "" without an id."""
        if not self.arxiv_id:
            return ""
        anchor = self.anchor
        return passage_url(self.arxiv_id, anchor) if anchor else abstract_url(self.arxiv_id)


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


def rank(
    passages: Sequence[EvidencePassage],
    claims: Sequence[str],
    most: int,
    vectors: Vectors,
    encode: Callable[[], Mapping[str, NDArray[np.float32]]],
) -> dict[str, tuple[EvidencePassage, ...]]:
    """For each claim the `most` best of these passages that could support it, best first.

    Scores by vectors are fused with those by words (BM25); words alone decide where no passage has
    a vector. encode: gives each claim's vector, and is called where there are vectors to compare.
    """
    import numpy as np

    by_words = lexical_scores([passage.with_heading() for passage in passages], claims)
    known = [place for place, each in enumerate(passages) if each.passage_id in vectors]
    best = {}
    for claim, scores in zip(claims, by_words, strict=True):
        if known:
            # A passage without a vector has an inner product of 0.
            dense = np.zeros(len(passages), np.float32)
            for place in known:
                dense[place] = vectors[passages[place].passage_id] @ encode()[claim]
            scores = fused_scores(dense, scores)
        best[claim] = tuple(passages[place] for place in _best_places(scores, most))
    return best


def _best_places(scores: NDArray[np.float32], most: int) -> list[int]:
    """Places of the best scores, ties by place. What shares nothing with the claim comes last, in
    order: a judge is to be shown something in any case, and the beginning of a work tells most of
    it.
    """
    places: list[int] = (-scores).argsort(kind="stable")[:most].tolist()
    return places


class PassageScores:
    """Scores of passages for sentences, dense and lexical ones fused as those of a search."""

    def __init__(
        self,
        workspace: Workspace,
        passages: Sequence[EvidencePassage],
        sentences: Sequence[str],
    ) -> None:
        """sentences: all that scores are asked for. Raises as `search` does."""
        import numpy as np

        encoded = make_embedder(workspace.settings).encode_queries(list(sentences))
        queries = [lexical_query(sentence) for sentence in sentences]
        self._queries = {
            sentence: (vectors.dense, words)
            for sentence, vectors, words in zip(sentences, encoded, queries, strict=True)
        }
        papers = {passage.arxiv_id for passage in passages if passage.arxiv_id}
        vectors = read_vectors(workspace.root, papers, model_name(workspace.settings))
        none = np.zeros(len(encoded[0].dense), np.float32)
        self._dense = np.stack([vectors.get(passage.passage_id, none) for passage in passages])
        terms = {term for words in queries for term in words.ids.tolist()}
        rows = lexical_rows([passage.text for passage in passages], only=terms)
        self._words = SparseScores(rows, idf=True)

    def of(self, sentence: str) -> NDArray[np.float32]:
        """The score of each passage."""
        dense, words = self._queries[sentence]
        return fused_scores(self._dense @ dense, self._words.of([words])[0])


@dataclass(slots=True)
class RankedEvidence:
    """Passages by (subject, claim), best first, and counts of subjects by way of ranking."""

    passages: dict[tuple[str, str], tuple[EvidencePassage, ...]] = field(default_factory=dict)
    by_both: int = 0
    by_words: int = 0


def search(
    workspace: Workspace,
    claims: Mapping[str, Sequence[str]],
    most: int,
    make: Callable[[Settings], Embedder] | None,
    papers_of: Mapping[str, Sequence[str]] | None = None,
) -> RankedEvidence:
    """The `most` best passages of each subject's papers for each of its claims, best first.

    claims: subject → claims about it. make: gives the embedder, and is called where there are
    vectors to compare with; None to rank by words alone. papers_of: subject → arXiv ids, whose
    passages have headings and are ranked together; None where each subject is an arXiv id. Subjects
    without passages in the tables are missing from the result. Subjects of the same months are read
    together, so that the passages of these months are held. Raises PermanentFailure where a month
    cannot be read, SettingError where the embedder's model is not there.
    """
    root, settings = workspace.root, workspace.settings
    every_claim = sorted({claim for of_subject in claims.values() for claim in of_subject})

    @cache
    def encode() -> Mapping[str, NDArray[np.float32]]:
        encoded = (make or make_embedder)(settings).encode_queries(every_claim)
        return {claim: each.dense for claim, each in zip(every_claim, encoded, strict=True)}

    groups: dict[frozenset[str | None], dict[str, Sequence[str]]] = defaultdict(dict)
    for subject, of_subject in claims.items():
        papers = [subject] if papers_of is None else papers_of[subject]
        if of_subject:
            groups[frozenset(map(month_of, papers))][subject] = papers
    ranked = RankedEvidence()
    for subjects in groups.values():
        every_paper = {paper for papers in subjects.values() for paper in papers}
        vectors = read_vectors(root, every_paper, model_name(settings)) if make else {}
        by_paper = read_passages(root, every_paper, with_headings=papers_of is not None)
        for subject, papers in subjects.items():
            passages = [passage for paper in papers for passage in by_paper.get(paper, ())]
            if not passages:
                continue
            if any(passage.passage_id in vectors for passage in passages):
                ranked.by_both += 1
            else:
                ranked.by_words += 1
            best = rank(passages, claims[subject], most, vectors, encode)
            ranked.passages |= {(subject, claim): of_claim for claim, of_claim in best.items()}
    return ranked


def read_passages(
    root: DataRoot, papers: Collection[str], *, with_headings: bool = False
) -> dict[str, list[EvidencePassage]]:
    """Each paper's passages in order. Without headings front matter is left out: authors' names
    support no claim about a work, but a question may ask who wrote it.
    """
    rows = rows_of_papers(root, tables.PASSAGES, papers, [*PASSAGE_COLUMNS, "ordinal"])
    return passages_by_paper(rows, with_headings=with_headings)


def passages_by_paper(
    rows: Iterable[Mapping[str, Any]], *, with_headings: bool = False
) -> dict[str, list[EvidencePassage]]:
    """As `read_passages`, of rows of `passages`."""
    passages: dict[str, list[EvidencePassage]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["arxiv_id"], row["ordinal"])):
        passage = Passage.from_row(row)
        if with_headings:
            text, heading = passage.content(), passage.heading()
        elif passage.kind == "front_matter":
            continue
        else:
            text, heading = without_markers(passage.text), ""
        paper = passage.arxiv_id
        passages[paper].append(
            EvidencePassage(
                text, row["ordinal"], passage.passage_id, paper, passage.anchor, heading
            )
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
    return tuple(EvidencePassage(paragraphs[place], place) for place in _best_places(scores, most))
