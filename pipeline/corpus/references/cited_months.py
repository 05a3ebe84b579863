"""The months of the papers that a month of a table cites, noted in its file when it is written.

Fingerprints of later stages depend on these months; without the note, the status of a month would
read all of its citations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pipeline.arxiv.identifiers import months_of
from pipeline.engine.stage import Job, Workspace
from pipeline.tables import REFERENCES, Table

_NOTE = "cited_months"


def note_cited_months(job: Job, papers: Iterable[str]) -> None:
    """Note the months of these papers, which the rows of the job cite."""
    job.notes[_NOTE] = months_of(papers)


def cited_months(
    workspace: Workspace, table: Table, month: str, read_papers: Callable[[], Iterable[str]]
) -> list[str]:
    """The months that a month of a table cites, oldest first.

    read_papers: reads the cited papers from the rows; called for files of earlier versions, which
    lack the note. Raises what it raises.
    """
    provenance = workspace.root.provenance(table, month)
    noted = provenance.notes.get(_NOTE) if provenance else None
    return months_of(read_papers()) if noted is None else list(noted)


def months_cited_by_references(workspace: Workspace, month: str) -> list[str]:
    """The months of the papers to which a month of `references` is resolved, oldest first.

    Raises as `DataRoot.read` does.
    """

    def read_papers() -> set[str]:
        rows = workspace.root.read(REFERENCES, month, ["cited_arxiv_id"])
        return set(rows["cited_arxiv_id"].drop_null().to_pylist())

    return cited_months(workspace, REFERENCES, month, read_papers)
