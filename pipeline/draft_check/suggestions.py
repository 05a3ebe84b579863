"""Papers of the corpus to cite for a sentence, with their keys in a bibliography."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.draft_check.check import read_bibliography
from pipeline.draft_check.draft import Draft
from pipeline.draft_check.known_papers import KnownPapers
from pipeline.draft_check.references import check_references
from pipeline.engine.stage import Workspace
from pipeline.index.search import Hit, search


@dataclass(frozen=True, slots=True)
class PaperToCite:
    """A paper, by its best passage. key: in the bibliography; None if it has no such entry."""

    key: str | None
    hit: Hit

    def as_json(self) -> dict[str, Any]:
        """The paper as plain data."""
        return {"key": self.key, **asdict(self.hit)}


def keys_by_paper(workspace: Workspace, draft: Draft) -> dict[str, str]:
    """arXiv id → the key of the first entry of a draft's bibliography that means this work."""
    keys: dict[str, str] = {}
    for check in check_references(draft, KnownPapers(workspace)):
        if check.arxiv_id:
            keys.setdefault(check.arxiv_id, check.key)
    return keys


def papers_to_cite(workspace: Workspace, sentence: str, bibliography: Path | None, limit: int) -> list[PaperToCite]:
    """The papers whose passages fit a sentence, best first; none that do not fit at all. Raises as `search` does."""
    hits = [hit for hit in search(workspace, sentence, limit=limit, per_paper=True) if hit.relevance != "none"]
    keys = keys_by_paper(workspace, read_bibliography(bibliography)) if bibliography is not None and hits else {}
    return [PaperToCite(keys.get(hit.arxiv_id), hit) for hit in hits]
