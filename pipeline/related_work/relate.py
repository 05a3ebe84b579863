"""`citeloom relate`: a related-work section, or notes for one, for the user's own text and papers
of the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.corpus.citation_formats import (
    PLAIN_STYLE,
    LatexStyle,
    author_names,
    bibtex_entry,
    bibtex_keys,
    latex_section,
    markdown_section,
)
from pipeline.embedding.choice import make_embedder
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.identity.identifiers import arxiv_id_of, month_of
from pipeline.identity.months import describe_months
from pipeline.index.papers import rows_of_papers
from pipeline.llm.client import open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.messages import Spent
from pipeline.llm.models import settings_for, small_model_note
from pipeline.related_work.annotated_list import annotated_list, encoder_of
from pipeline.related_work.examples import choose_examples, corpus_examples
from pipeline.related_work.key_elements import Extraction, extract_known
from pipeline.related_work.summary import Summary
from pipeline.related_work.system import RelatedWorkSystem
from pipeline.related_work.systems import NOTES, RELATED_WORK_WRITERS
from pipeline.related_work.task import Task, read_task_file
from pipeline.related_work.task_reader import (
    in_corpus,
    paper_text,
    read_papers,
    reference_passages,
    task_of,
)
from pipeline.settings import Settings

_COLUMNS = ("authors", "year", "primary_category")
# The command reads a draft as UTF-8 and puts U+FFFD for other bytes. French in Latin-1 has 4 in 100
# characters of these, and can still be read; a picture or an archive has most.
_UNREADABLE_SHARE = 0.1
_NOTES = RelatedWorkSystem(
    name=NOTES,
    calls_model=False,
    quote=lambda task, settings: annotated_list(task, encoder_of(make_embedder(settings))),
    reads_passages=True,
)
_NOTES_HEADING = "Related work: notes, not a section"
_ABOUT_NOTES = (
    "No model wrote this: each quotation is a sentence of the cited work. Works closest to your"
    " text come first."
)
_ABOUT_QUOTATIONS = "No model wrote this section: its sentences are quoted from the cited works."


@dataclass(frozen=True, slots=True)
class Related:
    """A related-work section with its list of references and its cost."""

    markdown: str
    """The section under a heading, citations as Pandoc's `[@key]`, then the list of references; or
    notes in place of the section.
    """
    latex: str
    """The section under a heading, citations by the commands of the draft's packages."""
    bibtex: str
    """One entry per reference, under the keys of the citations."""
    summary: Summary
    """The section with `[Reference i]`, its sentences, trace and cost (without key elements)."""
    keys: Mapping[int, str]
    """Number of a reference → its BibTeX key."""
    spent: Spent
    """All calls and tokens, those of key elements and cached calls included."""
    notes: tuple[str, ...] = ()
    """Notes for the reader, such as that the draft was cut."""


def relate(
    workspace: Workspace,
    draft_markdown: str,
    reference_ids: Sequence[str],
    system: str | None = None,
    keys: Mapping[str, str] | None = None,
    packages: Collection[str] = (),
    authors: Mapping[str, Sequence[str]] | None = None,
) -> Related:
    """A related-work section for a draft, over papers of the data root, in the order given.

    A reference is an arXiv id or an address of arXiv's, with a version or without. system: its
    name, or with its model as in `chatcite@gpt-4`; `notes` for the annotated list; None for the
    default. keys: arXiv id → the key of a reference in the author's own bibliography; the others
    get one from author, year and title. packages: of LaTeX that the draft loads. authors: arXiv id
    → those of the bibliography, for works without metadata.
    Raises SettingError for a draft that is empty or no text, no references, ids that are malformed
    or not in the corpus, an unknown system; and what a language model's client raises.
    """
    chosen, model = _lookup(system, workspace.settings)
    _check_draft(draft_markdown)
    arxiv_ids = list(
        dict.fromkeys(arxiv_id_of(reference) or reference for reference in reference_ids)
    )
    papers = _known_papers(workspace, arxiv_ids)
    named: dict[str, Sequence[str]] = dict(authors or {})
    for record in rows_of_papers(
        workspace.root, tables.METADATA, arxiv_ids, ["arxiv_id", "authors"]
    ):
        if record["authors"]:
            named[record["arxiv_id"]] = record["authors"]
    heading = re.search(r"^#\s+(.+)$", draft_markdown, re.MULTILINE)
    row = {
        "task_id": "draft",
        "arxiv_id": None,
        "title": (
            heading.group(1).strip() if heading else draft_markdown.strip().splitlines()[0][:200]
        ),
        "description": draft_markdown.strip(),
        "references": [
            {
                "number": number,
                "arxiv_id": paper["arxiv_id"],
                "title": paper["title"],
                "authors": list(
                    named.get(paper["arxiv_id"]) or [author["name"] for author in paper["authors"]]
                ),
                "year": paper["year"],
                "source": "full_text",
                "text": None,
                "primary_category": paper["primary_category"],
            }
            for number, paper in enumerate(map(papers.__getitem__, arxiv_ids), 1)
        ],
    }
    style = LatexStyle.of_packages(packages)
    return _related(workspace, row, papers, chosen, model, keys, style)


def relate_file(workspace: Workspace, file: Path, system: str | None = None) -> Related:
    """A related-work section for a task file (docs/methods/related-work.md), over the references
    that it lists.

    Raises SettingError for a file that is no task and for papers that it takes from the corpus and
    that are not there; and as `relate` does.
    """
    chosen, model = _lookup(system, workspace.settings)
    row = read_task_file(file).row()
    arxiv_ids = [reference["arxiv_id"] for reference in row["references"] if in_corpus(reference)]
    papers = _known_papers(workspace, arxiv_ids) if arxiv_ids else {}
    return _related(workspace, row, papers, chosen, model)


def _lookup(name: str | None, settings: Settings) -> tuple[RelatedWorkSystem, str | None]:
    """The system of the option --system, None for the default, and its model if it calls one."""
    if (name or RELATED_WORK_WRITERS.default_name(settings)) == NOTES:
        return _NOTES, None
    writer, system = RELATED_WORK_WRITERS.lookup(name, settings)
    return system, writer.model


def _related(
    workspace: Workspace,
    row: Mapping[str, Any],
    papers: Mapping[str, Mapping[str, Any]],
    system: RelatedWorkSystem,
    model: str | None,
    keys: Mapping[str, str] | None = None,
    style: LatexStyle = PLAIN_STYLE,
) -> Related:
    """The section for a row of `related_work_tasks`. papers: its references in the corpus."""
    references = row["references"]
    cited = {reference["arxiv_id"] for reference in references if reference["arxiv_id"]}
    count = system.count_examples(workspace.settings)
    task = task_of(
        row,
        {arxiv_id: paper_text(paper) for arxiv_id, paper in papers.items()},
        reference_passages(workspace, cited) if system.reads_passages else None,
        choose_examples(corpus_examples(workspace, None) if count else (), row, count),
    )
    summary, cost, notes = run(_write(workspace, task, system, model))
    numbered = dict(enumerate(bibtex_keys(references, keys or {}), 1))
    names = {reference.number: author_names(reference.authors) for reference in task.references}
    text, note, headings = summary.text, "", ("Related work", "Related Work")
    if system is _NOTES:
        note, headings = _ABOUT_NOTES, (_NOTES_HEADING, _NOTES_HEADING)
    elif not system.calls_model:
        note = _ABOUT_QUOTATIONS
        for sentence in summary.sentences:
            citation = f" [Reference {sentence.references[0]}]."
            quotation = f"“{sentence.text.removesuffix(citation)}”{citation}"
            text = text.replace(sentence.text, quotation, 1)
    return Related(
        markdown=markdown_section(text, numbered, references, note, headings[0]),
        latex=latex_section(text, numbered, note, style, names, headings[1]),
        bibtex="\n\n".join(bibtex_entry(numbered[item["number"]], item) for item in references)
        + "\n",
        summary=summary,
        keys=numbered,
        spent=cost,
        notes=tuple(notes),
    )


def _check_draft(draft: str) -> None:
    if not draft.strip():
        raise SettingError("the draft is empty: give a file with the text of your paper")
    if "\0" in draft or draft.count("\ufffd") > _UNREADABLE_SHARE * len(draft):
        raise SettingError(
            "the draft is not text in UTF-8: give your paper as Markdown or plain text, saved as"
            " UTF-8"
        )


def _notes(
    summary: Summary, extractions: Sequence[Extraction], settings: Settings
) -> Iterator[str]:
    """Notes for the reader. extractions: of the draft (number 0) and each reference, or none."""
    # The trace of a system that reads the texts themselves says which of them it cut.
    cut = [place for place, item in enumerate(extractions) if item.content_cut]
    cut = cut or summary.trace.get("contents_cut", [])
    if cut:
        yield (
            f"longer than the model reads at once (CITELOOM_LLM_CONTEXT is {settings.llm_context}),"
            f" so only the beginning was used: {_list_numbers(cut)}"
        )
    shortened = [place for place, item in enumerate(extractions) if item.shortened]
    if shortened:
        yield f"key elements were cut at CITELOOM_ELEMENT_TOKENS: {_list_numbers(shortened)}"
    if summary.trace.get("cut"):
        yield "the section ended at the longest answer allowed"
    citations = summary.trace["citations"]
    if citations["uncited"]:
        yield f"the section does not cite {_list_numbers(citations['uncited'])}"
    if citations["out_of_range"]:
        yield (
            "the section cites numbers that no reference has:"
            f" {_list_numbers(citations['out_of_range'])}"
        )


def _list_numbers(numbers: Sequence[int]) -> str:
    return ", ".join(f"[Reference {number}]" if number else "the draft" for number in numbers)


def _known_papers(workspace: Workspace, reference_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Rows of `papers` by arXiv id."""
    if not reference_ids:
        raise SettingError("no reference is named: give the arXiv ids of papers of the corpus")
    papers = read_papers(workspace, reference_ids, _COLUMNS)
    malformed = [each for each in reference_ids if month_of(each) is None]
    unknown = [each for each in reference_ids if each not in papers and each not in malformed]
    faults = []
    if malformed:
        faults.append(
            f"{', '.join(malformed)}: not an arXiv id; write it as 2403.02574 or cs/0112017"
        )
    if unknown:
        months = describe_months(workspace.root.months(tables.PAPERS))
        faults.append(
            f"{', '.join(unknown)}: no such paper in the corpus at {workspace.root.path}, whose"
            f" papers are of {months}: correct the id, or run citeloom run --months … --until"
            " papers for its month"
        )
    if faults:
        raise SettingError("\n".join(faults))
    return papers


async def _write(
    workspace: Workspace, task: Task, system: RelatedWorkSystem, model: str | None
) -> tuple[Summary, Spent, list[str]]:
    """The section, its whole cost, and notes for the reader."""
    settings = settings_for(workspace.settings, model, "--system")
    if system.quote is not None:
        summary = system.quote(task, settings)
        return summary, summary.spent, list(_notes(summary, [], settings))
    async with open_client(workspace, model) as client:
        texts = [(reference.text, reference.source) for reference in task.references]
        extractions = await side_by_side(
            extract_known(client, text, source, settings)
            for text, source in [(task.description, "full_text"), *texts]
            if system.reads_elements
        )
        elements = [item.elements for item in extractions]
        summary = await system.write(client.view(system.name), task, elements, settings)
    cost = sum((item.spent for item in extractions), summary.spent)
    notes = filter(
        None, (small_model_note(settings.llm_model), *_notes(summary, extractions, settings))
    )
    return summary, cost, list(notes)
