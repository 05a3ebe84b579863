"""Papers of the corpus to cite for a sentence, with their keys in a bibliography."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.draft_check.check import read_bibliography
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


def papers_to_cite(workspace: Workspace, sentence: str, bibliography: Path | None, limit: int) -> list[PaperToCite]:
    """The papers whose passages fit a sentence, best first; none that do not fit at all. Raises as `search` does."""
    hits = [hit for hit in search(workspace, sentence, limit=limit, per_paper=True) if hit.relevance != "none"]
    keys: dict[str, str] = {}
    if bibliography is not None and hits:
        for check in check_references(read_bibliography(bibliography), KnownPapers(workspace)):
            if check.arxiv_id:
                keys.setdefault(check.arxiv_id, check.key)
    return [PaperToCite(keys.get(hit.arxiv_id), hit) for hit in hits]
