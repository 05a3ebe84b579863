"""The passages of a cited work that could bear out a claim: its own, ranked by vectors and by words, both fused.

A work outside of the corpus has paragraphs instead, ranked by words alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.corpus.parse.policies import without_markers
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.evaluation.passages import ClaimSearch, Passage, best_places, read_vectors
from pipeline.index.exact import lexical_scores
from pipeline.index.papers import rows_of_papers
from pipeline.wikipedia.root import month_in

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.engine.stage import Workspace
    from pipeline.settings import Settings
    from pipeline.storage.data_root import DataRoot

_COLUMNS = ["passage_id", "arxiv_id", "ordinal", "anchor", "kind", "text"]


@dataclass(slots=True)
class RankedPassages:
    """Passages by (arXiv id, claim), best first, and how the works were ranked: by both, or by words alone."""

    passages: dict[tuple[str, str], tuple[Passage, ...]] = field(default_factory=dict)
    by_both: int = 0
    by_words: int = 0


def search(
    workspace: Workspace, claims: Mapping[str, Sequence[str]], most: int, make: Callable[[Settings], Embedder] | None
) -> RankedPassages:
    """The `most` best passages of each paper for each of its claims, best first.

    claims: arXiv id → claims about this paper. make: gives the embedder, and is called where there are vectors to
    compare with; None to rank by words alone. Papers without passages in the tables are missing from what is found.
    Months are read one after another, so that the passages of one are held. Raises PermanentFailure where a month
    cannot be read, SettingError where the embedder's model is not there.
    """
    root, settings = workspace.root, workspace.settings
    every_claim = sorted({claim for each in claims.values() for claim in each})
    claim_search = ClaimSearch(every_claim, settings, make or make_embedder)
    months: dict[str | None, set[str]] = defaultdict(set)
    for arxiv_id in claims:
        months[month_in(root, arxiv_id)].add(arxiv_id)
    found = RankedPassages()
    for papers in months.values():
        vectors = read_vectors(root, papers, model_name(settings)) if make else {}
        for arxiv_id, passages in _read_passages(root, papers).items():
            has_vectors = any(passage.passage_id in vectors for passage in passages)
            found.by_both, found.by_words = found.by_both + has_vectors, found.by_words + (not has_vectors)
            best = claim_search.best(passages, claims[arxiv_id], most, vectors)
            found.passages |= {(arxiv_id, claim): chosen for claim, chosen in best.items()}
    return found


def _read_passages(root: DataRoot, papers: Collection[str]) -> dict[str, list[Passage]]:
    """Each paper's passages in order, front matter left out: who wrote a paper bears out no claim of what it did."""
    passages: dict[str, list[Passage]] = defaultdict(list)
    rows = [row for row in rows_of_papers(root, tables.PASSAGES, papers, _COLUMNS) if row["kind"] != "front_matter"]
    for row in sorted(rows, key=lambda row: (row["arxiv_id"], row["ordinal"])):
        text = without_markers(row["text"])
        passages[row["arxiv_id"]].append(
            Passage(text, row["ordinal"], row["passage_id"], row["arxiv_id"], row["anchor"])
        )
    return passages


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
    return tuple(Passage(paragraphs[place], place) for place in best_places(scores, most))
