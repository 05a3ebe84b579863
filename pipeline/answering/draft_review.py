"""Review of drafted questions: which drafts wait, how they are shown, and what accepting or rejecting one does.

Accepted drafts are added to a question set; rejected ones are recorded in the data root.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pipeline import tables
from pipeline.answering.draft_subjects import Paper, read_papers
from pipeline.answering.questions import (
    Question,
    add_to_file,
    entry_of,
    gold_passages,
    plain,
    read_posed_questions,
    read_set,
)
from pipeline.answering.rendering import one_line
from pipeline.answering.retrieval import RetrievedPassage, looks_like_prompt_injection
from pipeline.arxiv.months import select_months
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, PermanentFailure, TransientFailure
from pipeline.index.links import abstract_url, passage_url
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole

_LOCK_SECONDS = 60
# Longer passages are cut in the list; the link leads to the whole.
_PASSAGE_CHARS = 800


@dataclass(frozen=True, slots=True)
class DraftedQuestion:
    """A draft of the table. model: what proposed it; None if it was made from tables."""

    question: Question
    model: str | None


@dataclass(frozen=True, slots=True)
class WaitingDrafts:
    """Drafts that wait for a decision, by month, paper and kind; how many are in the set already, or were rejected."""

    drafts: tuple[DraftedQuestion, ...]
    in_set: int
    rejected: int


def read_drafts(workspace: Workspace, months: str) -> list[DraftedQuestion]:
    """The drafts of these months. Raises SettingError for months without drafts, MissingInput if there are none."""
    drafted = workspace.root.months(tables.QUESTION_DRAFTS)
    if not drafted:
        raise MissingInput(
            f"nothing was drafted in {workspace.root.path}: set CITELOOM_DRAFT_QUESTIONS or CITELOOM_DRAFT_PAPERS and "
            "run citeloom run --select question_drafts"
        )
    drafts = []
    for month in select_months(months, drafted):
        for row in workspace.root.rows(tables.QUESTION_DRAFTS, month):
            (posed,) = read_posed_questions([row])
            # The table has the month where no day is known; a set has days only.
            has_day = posed.question.date and len(posed.question.date) > len("2024-03")
            question = posed.question if has_day else posed.question.model_copy(update={"date": None})
            drafts.append(DraftedQuestion(question, row["model"]))
    return drafts


def waiting_drafts(workspace: Workspace, months: str, file: Path, *, with_rejected: bool = False) -> WaitingDrafts:
    """The drafts that the set does not have and nobody rejected. with_rejected: these too.

    Raises SettingError if the set cannot be read, and as `read_drafts` does.
    """
    known = {key for question in read_set(file) for key in _keys(question)}
    rejected = read_rejected(workspace)
    drafts = read_drafts(workspace, months)
    new = [draft for draft in drafts if not known & _keys(draft.question)]
    waiting = [draft for draft in new if with_rejected or draft.question.id not in rejected]
    return WaitingDrafts(tuple(waiting), len(drafts) - len(new), len(new) - len(waiting))


def _keys(question: Question) -> set[object]:
    """What makes two questions the same: the id, or the same text about the same papers."""
    return {question.id, (plain(question.question), frozenset(question.papers))}


def accept(workspace: Workspace, file: Path, questions: Sequence[Question]) -> list[str]:
    """Add questions to the set as reviewed, all or none, except those that it has; returns the ids added.

    Raises SettingError as `add_to_file` does.
    """
    with _locked(workspace, file):
        known = {key for question in read_set(file) for key in _keys(question)}
        new = []
        for question in questions:
            if not known & _keys(question):
                new.append(question.model_copy(update={"reviewed": True}))
                known |= _keys(question)
        add_to_file(file, new)
    return [question.id for question in new]


def reject(workspace: Workspace, questions: Iterable[Question]) -> None:
    """Record that these drafts are rejected."""
    file = _rejected_file(workspace)
    with _locked(workspace, file):
        rejected = {**read_rejected(workspace), **{question.id: question.question for question in questions}}
        write_whole(file, f"{json.dumps(dict(sorted(rejected.items())), ensure_ascii=False, indent=1)}\n".encode())


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


@contextmanager
def _locked(workspace: Workspace, file: DataPath) -> Iterator[None]:
    """Lock a file against another review, so that no question of either is lost."""
    place = file.resolve() if isinstance(file, Path) else file
    name = hashlib.sha256(str(place).encode()).hexdigest()[:16]
    lock = FileLock(workspace.cache("locks") / f"review-{name}.lock", timeout=_LOCK_SECONDS)
    try:
        with lock:
            yield
    except Timeout:
        raise TransientFailure(f"another review has held {file} for {_LOCK_SECONDS} s: end it first") from None


def papers_of(workspace: Workspace, drafts: Iterable[DraftedQuestion]) -> dict[str, Paper]:
    """The papers of drafts that are in the corpus, by id."""
    return read_papers(workspace.root, {paper for draft in drafts for paper in draft.question.papers})


def claim_passages(question: Question, papers: Mapping[str, Paper]) -> list[list[RetrievedPassage]]:
    """For each claim the passages that hold one of its phrases, as the tables are now."""
    own = {arxiv_id: papers[arxiv_id] for arxiv_id in question.papers if arxiv_id in papers}
    passages = {passage.passage_id: passage for paper in own.values() for passage in paper.passages}
    gold = gold_passages(question, {arxiv_id: paper.rows() for arxiv_id, paper in own.items()})
    return [[passages[passage_id] for passage_id in ids] for ids in gold.values()]


def draft_lines(draft: DraftedQuestion, papers: Mapping[str, Paper]) -> Iterator[str]:
    """A draft in text: question, papers with links, claims with the passages that hold their evidence.

    No line holds what steers a terminal; a passage that holds several claims is shown with the first of them.
    """
    question = draft.question
    origin = f"proposed by {one_line(draft.model)}" if draft.model else "from the tables"
    yield f"{question.id} · {question.kind} · {origin}"
    yield f"Q: {one_line(question.question)}"
    for arxiv_id in question.papers:
        title = one_line(papers[arxiv_id].title) if arxiv_id in papers else "not in the corpus"
        yield f"   {title} (arXiv:{arxiv_id}) {abstract_url(arxiv_id)}"
    shown: set[str] = set()
    claims = zip(question.claims, claim_passages(question, papers), strict=True)
    for number, (claim, passages) in enumerate(claims, 1):
        yield f"{number}. {one_line(claim.claim)} (arXiv:{claim.paper})"
        yield from (f'   "{one_line(phrase)}"' for phrase in claim.evidence)
        if not passages:
            reason = "no passage holds this phrase" if claim.evidence else "it has no evidence"
            yield f"   {reason}: the claim can be graded, and does not count for retrieval"
        for passage in passages:
            section = " › ".join(passage.section_path or (passage.kind.replace("_", " "),))
            yield f"   in {one_line(section)}: {passage_url(passage.arxiv_id, passage.anchor)}"
            if passage.passage_id not in shown:
                yield f"      {one_line(passage.content(), _PASSAGE_CHARS)}"
                if looks_like_prompt_injection(passage.text):
                    yield "      this passage addresses the model, which read it as data"
            shown.add(passage.passage_id)


def draft_json(draft: DraftedQuestion, papers: Mapping[str, Paper]) -> dict[str, Any]:
    """A draft as an entry of a set, with the passages that hold the evidence of each claim."""
    entry = entry_of(draft.question)
    for claim, passages in zip(entry["claims"], claim_passages(draft.question, papers), strict=True):
        claim["passages"] = [
            passage.trace()
            | {
                "section_path": list(passage.section_path),
                "text": passage.text,
                "passage_url": passage_url(passage.arxiv_id, passage.anchor),
            }
            for passage in passages
        ]
    return entry | {"model": draft.model, "month": draft.question.month}
