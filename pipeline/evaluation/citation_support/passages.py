"""The passages of a cited work that could bear out a claim: its own, ranked by vectors and by words, both fused.

A work outside of the corpus has paragraphs instead, ranked by words alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline import tables
from pipeline.corpus.parse.policies import without_markers
from pipeline.embedding.choice import model_name
from pipeline.evaluation.retrieval.pool import Choice, read_papers
from pipeline.evaluation.retrieval.vectors import matrix_of
from pipeline.index.exact import fused_scores, lexical_scores
from pipeline.wikipedia.root import month_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder
    from pipeline.engine.stage import Workspace
    from pipeline.settings import Settings

_COLUMNS = ["passage_id", "arxiv_id", "ordinal", "anchor", "kind", "text"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a cited work. `ordinal`: its place there; id and anchor are None outside of the corpus."""

    ordinal: int
    text: str
    passage_id: str | None = None
    anchor: str | None = None


@dataclass(slots=True)
class RankedPassages:
    """Passages by (arXiv id, claim), best first, and how the works were ranked: by both, or by words alone."""

    passages: dict[tuple[str, str], tuple[Passage, ...]] = field(default_factory=dict)
    by_both: int = 0
    by_words: int = 0


@dataclass(frozen=True)
class _Claims:
    """What is searched for, and its vectors, for which a model is loaded only where there is anything to compare."""

    texts: Sequence[str]
    settings: Settings
    make: Callable[[Settings], Embedder]

    @cached_property
    def model(self) -> str:
        return model_name(self.settings)

    @cached_property
    def vectors(self) -> Mapping[str, NDArray[np.float32]]:
        encoded = self.make(self.settings).encode_queries(list(self.texts))
        return {text: each.dense for text, each in zip(self.texts, encoded, strict=True)}


def search(
    workspace: Workspace, claims: Mapping[str, Sequence[str]], most: int, make: Callable[[Settings], Embedder] | None
) -> RankedPassages:
    """The `most` best passages of each paper for each of its claims, best first.

    claims: arXiv id → claims about this paper. make: gives the embedder, and is called where there are vectors to
    compare with; None to rank by words alone. Papers without passages in the tables are missing from what is found.
    Months are read one after another, so that the passages of one are held. Raises PermanentFailure where a month
    cannot be read, SettingError where the embedder's model is not there.
    """
    texts = sorted({claim for each in claims.values() for claim in each})
    asked = _Claims(texts, workspace.settings, make) if make else None
    found = RankedPassages()
    for choice in by_month(workspace, claims):
        vectors = read_vectors(workspace, choice, asked.model) if asked else {}
        for arxiv_id, passages in _read_passages(workspace, choice):
            _search_paper(found, asked, claims[arxiv_id], passages, vectors, (arxiv_id, most))
    return found


def by_month(workspace: Workspace, papers: Iterable[str]) -> Iterator[Choice]:
    """The papers, month by month, as `read_papers` wants them."""
    months: dict[str, dict[str, str]] = defaultdict(dict)
    for arxiv_id in papers:
        month = month_in(workspace.root, arxiv_id)
        if month is not None:
            months[month][arxiv_id] = month
    return (Choice(months[month], 0, len(months[month]), 0) for month in sorted(months))


def _read_passages(workspace: Workspace, choice: Choice) -> Iterator[tuple[str, list[Passage]]]:
    """Each paper's passages in order, front matter left out: who wrote a paper bears out no claim of what it did."""
    rows = [row for part in read_papers(workspace, tables.PASSAGES, choice, _COLUMNS) for row in part.to_pylist()]
    kept = sorted((row for row in rows if row["kind"] != "front_matter"), key=_place)
    for arxiv_id, mine in groupby(kept, key=_paper):
        yield arxiv_id, [_passage(row) for row in mine]


def _paper(row: Mapping[str, Any]) -> str:
    return str(row["arxiv_id"])


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["arxiv_id"], row["ordinal"]


def _passage(row: Mapping[str, Any]) -> Passage:
    return Passage(row["ordinal"], without_markers(row["text"]), row["passage_id"], row["anchor"])


def read_vectors(workspace: Workspace, choice: Choice, model: str) -> Mapping[str, NDArray[np.float32]]:
    """Passage → its dense vector, of those of the chosen papers that this model made; nothing where there are none."""
    import numpy as np
    import pyarrow.compute as pc

    columns = ["passage_id", "model", "dense"]
    parts = [
        part.filter(pc.equal(part["model"], model))
        for part in read_papers(workspace, tables.EMBEDDINGS, choice, columns)
    ]
    held = pa.concat_tables(parts) if parts else None
    if held is None or not held.num_rows:
        return {}
    matrix = matrix_of(held["dense"], np.arange(held.num_rows))
    return dict(zip(held["passage_id"].to_pylist(), matrix, strict=True))


def _search_paper(
    found: RankedPassages,
    asked: _Claims | None,
    claims: Sequence[str],
    passages: Sequence[Passage],
    vectors: Mapping[str, NDArray[np.float32]],
    wanted: tuple[str, int],
) -> None:
    """Add one paper's passages for its claims. wanted: its arXiv id, and how many passages a claim has at most."""
    arxiv_id, most = wanted
    known = any(passage.passage_id in vectors for passage in passages)
    found.by_both, found.by_words = found.by_both + known, found.by_words + (not known)
    by_words = lexical_scores([passage.text for passage in passages], claims)
    for claim, words in zip(claims, by_words, strict=True):
        scores = words
        if asked and known:
            scores = fused_scores(_dense_scores(asked.vectors[claim], passages, vectors), words)
        found.passages[arxiv_id, claim] = tuple(passages[place] for place in best_places(scores, most))


def _dense_scores(
    claim: NDArray[np.float32], passages: Sequence[Passage], vectors: Mapping[str, NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Inner products with the claim; 0 for a passage without a vector."""
    import numpy as np

    scores = [
        float(vectors[passage.passage_id] @ claim) if passage.passage_id in vectors else 0.0  # type: ignore[index]
        for passage in passages
    ]
    return np.array(scores, np.float32)


def paragraphs_of(reference: Mapping[str, Any]) -> list[str]:
    """The paragraphs of what a task has of a work outside of the corpus, headings left out; none of a bibliography
    item, which says nothing of what the work did.

    reference: one of the `references` of a row of `related_work_tasks`.
    """
    if reference["source"] == "item":
        return []
    parts = (" ".join(part.split()) for part in (reference["text"] or "").split("\n\n"))
    return [part for part in parts if part and not part.startswith("#")]


def among(paragraphs: Sequence[str], claim: str, most: int) -> tuple[Passage, ...]:
    """The `most` best of a work's paragraphs for a claim, best first, by words alone."""
    (scores,) = lexical_scores(paragraphs, [claim])
    return tuple(Passage(place, paragraphs[place]) for place in best_places(scores, most))


def best_places(scores: NDArray[np.float32], most: int) -> list[int]:
    """Places of the best scores, ties by place. What shares nothing with the claim comes last, in order: a judge is to
    be shown something in any case, and the beginning of a work tells most of it."""
    import numpy as np

    places: list[int] = np.argsort(-scores, kind="stable")[:most].tolist()
    return places
