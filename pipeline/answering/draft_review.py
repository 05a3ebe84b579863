"""Review of drafted questions: which drafts wait, how they are shown, and what accepting or rejecting one does.

Accepted drafts are added to a question set; rejected ones are recorded in the data root.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from pipeline import tables
from pipeline.answering.draft_subjects import Paper, read_papers
from pipeline.answering.questions import (
    GoldClaim,
    Question,
    holds_phrase,
    parse_questions,
    read_posed_questions,
    read_questions,
)
from pipeline.answering.rendering import one_line
from pipeline.answering.retrieval import RetrievedPassage, looks_like_prompt_injection
from pipeline.arxiv.months import select_months
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.links import abstract_url, passage_url
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole

# Longer passages are cut in the list; the link leads to the whole.
_PASSAGE_CHARS = 800


def read_drafts(workspace: Workspace, months: str) -> dict[str, Question]:
    """The drafts of these months by id.

    Raises SettingError for months without drafts, MissingInput if there are none at all.
    """
    drafted = workspace.root.months(tables.QUESTION_DRAFTS)
    if not drafted:
        raise MissingInput(
            f"nothing was drafted in {workspace.root.path}: set CITELOOM_DRAFT_QUESTIONS or CITELOOM_DRAFT_PAPERS and "
            "run citeloom run --select question_drafts"
        )
    drafts = {}
    for month in select_months(months, drafted):
        for posed in read_posed_questions(workspace.root.rows(tables.QUESTION_DRAFTS, month)):
            # The table has the month where no day is known; a set has days only.
            date = posed.question.date if posed.question.date != posed.question.month else None
            drafts[posed.question.id] = posed.question.model_copy(update={"date": date})
    return drafts


def accept(workspace: Workspace, file: Path, questions: Sequence[Question]) -> list[str]:
    """Add questions to the set as reviewed, all or none, except those whose ids it has; returns the ids added.

    Raises SettingError as `add_to_file` does.
    """
    with _lock(workspace):
        known = {question.id for question in read_set(file)}
        new = {question.id: question for question in questions if question.id not in known}
        add_to_file(file, [question.model_copy(update={"reviewed": True}) for question in new.values()])
    return list(new)


def reject(workspace: Workspace, questions: Sequence[Question]) -> None:
    """Record that these drafts are rejected."""
    with _lock(workspace):
        rejected = {**read_rejected(workspace), **{question.id: question.question for question in questions}}
        text = json.dumps(dict(sorted(rejected.items())), ensure_ascii=False, indent=1)
        write_whole(_rejected_file(workspace), f"{text}\n".encode())


def read_rejected(workspace: Workspace) -> Mapping[str, str]:
    """Id → question of the rejected drafts. Raises PermanentFailure if the file that records them is damaged."""
    file = _rejected_file(workspace)
    if not file.exists():
        return {}
    try:
        return {str(name): str(text) for name, text in json.loads(file.read_bytes()).items()}
    except (ValueError, AttributeError, OSError) as error:
        raise PermanentFailure(
            f"{file}, which records rejected drafts, is damaged ({error}): delete it to see all drafts again"
        ) from None


def _rejected_file(workspace: Workspace) -> DataPath:
    return workspace.root.path / "question_reviews" / "rejected.json"


def _lock(workspace: Workspace) -> FileLock:
    """A lock against another review of this data root, so that no question of either is lost."""
    return FileLock(workspace.cache("locks") / "question-review.lock")


def read_set(file: Path) -> tuple[Question, ...]:
    """The questions of a set; none if the file is absent or empty. Raises SettingError if it is not a set."""
    return read_questions(file) if file.exists() and file.stat().st_size else ()


def add_to_file(file: Path, questions: Sequence[Question]) -> None:
    """Add questions at the end of a set, which is created if absent; its text so far stays as it is.

    Raises SettingError if the result is no set, as of a YAML list that is indented or in brackets, or if the file
    cannot be written.
    """
    import yaml

    if not questions:
        return
    place = file.resolve()  # the file that a link leads to, not the link
    before = place.read_bytes().decode("utf-8") if place.exists() else ""
    entries = [entry_of(question) for question in questions]
    if place.suffix.lower() in (".yaml", ".yml"):
        added = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True)
    else:
        added = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries)
    after = (before if not before or before.endswith("\n") else f"{before}\n") + added
    try:
        parse_questions(place, after.removeprefix("\ufeff"))
    except SettingError as error:
        raise SettingError(f"{file} cannot be added to, give a .jsonl file by --into: {error}") from error
    try:
        write_whole(place, after.encode("utf-8"))
    except OSError as error:
        raise SettingError(f"{file} cannot be written ({error.strerror}): give another file by --into") from error


def entry_of(question: Question) -> dict[str, Any]:
    """The entry of a set that is read as this question, without fields that are unknown."""
    return {**question.model_dump(mode="json", exclude_defaults=True), "reviewed": question.reviewed}


def papers_of(workspace: Workspace, questions: Collection[Question]) -> dict[str, Paper]:
    """The papers of questions that are in the corpus, by id."""
    return read_papers(workspace.root, {paper for question in questions for paper in question.papers})


def claim_passages(claim: GoldClaim, papers: Mapping[str, Paper]) -> list[RetrievedPassage]:
    """The passages that hold one of a claim's phrases, as the tables are now."""
    passages = papers[claim.paper].passages if claim.paper in papers else ()
    return [passage for passage in passages if any(holds_phrase(passage.text, phrase) for phrase in claim.evidence)]


def draft_lines(question: Question, papers: Mapping[str, Paper]) -> Iterator[str]:
    """A draft in text: question, papers with links, claims with the passages that hold their evidence.

    No line holds what steers a terminal.
    """
    yield f"{question.id} · {question.kind}"
    yield f"Q: {one_line(question.question)}"
    for arxiv_id in question.papers:
        title = one_line(papers[arxiv_id].title) if arxiv_id in papers else "not in the corpus"
        yield f"   {title} (arXiv:{arxiv_id}) {abstract_url(arxiv_id)}"
    for number, claim in enumerate(question.claims, 1):
        yield f"{number}. {one_line(claim.claim)} (arXiv:{claim.paper})"
        yield from (f'   "{one_line(phrase)}"' for phrase in claim.evidence)
        passages = claim_passages(claim, papers)
        if not passages:
            yield "   no passage holds its evidence: the claim can be graded, and does not count for retrieval"
        for passage in passages:
            section = " › ".join(passage.section_path or (passage.kind.replace("_", " "),))
            yield f"   in {one_line(section)}: {passage_url(passage.arxiv_id, passage.anchor)}"
            yield f"      {one_line(passage.content(), _PASSAGE_CHARS)}"
            if looks_like_prompt_injection(passage.text):
                yield "      this passage addresses the model, which read it as data"


def draft_json(question: Question, papers: Mapping[str, Paper]) -> dict[str, Any]:
    """A draft as an entry of a set, with its month and the passages that hold the evidence of each claim."""
    entry = entry_of(question)
    for item, claim in zip(entry["claims"], question.claims, strict=True):
        item["passages"] = [
            passage.trace()
            | {
                "section_path": list(passage.section_path),
                "text": passage.text,
                "passage_url": passage_url(passage.arxiv_id, passage.anchor),
            }
            for passage in claim_passages(claim, papers)
        ]
    return entry | {"month": question.month}
