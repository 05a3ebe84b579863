"""Write a related-work section for a draft, under the keys of its bibliography."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from citeloom import Corpus, SettingError
from drafts.draft import Draft
from drafts.reading import DRAFT_SUFFIXES, LATEX_SUFFIXES, read_bibliography, read_draft
from drafts.references import keys_by_paper
from pipeline.index.papers import rows_of_papers
from pipeline.tables import PAPERS

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.related_work.relate import Related


def relate_draft(
    workspace: Workspace,
    file: Path,
    bibliography: Path | None = None,
    references: Sequence[str] = (),
    system: str | None = None,
) -> Related:
    """A related-work section for a draft in LaTeX, Markdown or plain text, which has no keys.

    bibliography: as for `read_draft`. references: keys of the bibliography and arXiv ids, in the
    order in which the writer reads them; none means every entry whose paper is in the corpus.
    system: as for `relate`. Raises SettingError for a key whose paper is not in the corpus, for a
    bibliography without a paper of the corpus, and as `read_draft` and `relate` do.
    """
    if file.suffix.lower() in DRAFT_SUFFIXES:
        draft = read_draft(file, bibliography, every_entry=True)
    else:
        draft = read_bibliography(bibliography) if bibliography else Draft(file)
    keys = keys_by_paper(workspace, draft) if draft.entries else {}
    rows = rows_of_papers(workspace.root, PAPERS, list(keys), ["arxiv_id"])
    in_corpus = {row["arxiv_id"] for row in rows}
    ids = {key: arxiv_id for arxiv_id, key in keys.items() if arxiv_id in in_corpus}
    absent = [key for key in draft.entries if key not in ids]
    if references:
        papers = [_paper_of(reference, draft, ids, workspace) for reference in references]
        absent = []
    elif ids:
        papers = list(ids.values())
    else:
        fault = (
            f"no entry of its bibliography (of {len(draft.entries)}) is a paper of the corpus at"
            f" {workspace.root.path}"
            if draft.entries
            else "no bibliography of it was found"
        )
        raise SettingError(
            f"{file}: {fault}: name papers with --reference, or a bibliography with --bib"
        )
    authors = {arxiv_id: draft.entries[key].authors for arxiv_id, key in keys.items()}
    related = Corpus(workspace).relate(
        _text(file, draft),
        papers,
        system=system,
        keys=keys,
        packages=draft.packages,
        authors=authors,
    )
    if absent:
        note = (
            "not cited, since the corpus lacks them or they repeat another entry:"
            f" {', '.join(absent)}"
        )
        related = replace(related, notes=(*related.notes, note))
    return related


def _paper_of(reference: str, draft: Draft, ids: Mapping[str, str], workspace: Workspace) -> str:
    """The arXiv id of a key of the bibliography; any other text is an id."""
    if reference in draft.entries and reference not in ids:
        raise SettingError(
            f"--reference {reference}: its paper is not in the corpus at {workspace.root.path}"
        )
    return ids.get(reference, reference)


def _text(file: Path, draft: Draft) -> str:
    """The draft as Markdown. LaTeX becomes its title and plain paragraphs."""
    if file.suffix.lower() not in LATEX_SUFFIXES:
        return file.read_text(encoding="utf-8", errors="replace")
    heading = [f"# {draft.title}"] if draft.title else []
    return "\n\n".join([*heading, *draft.paragraphs])
